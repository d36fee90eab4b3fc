#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "pipeline/app/app.h"
#include "pipeline/report/commands.h"
#include "runtime/base/suggest.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 gate failed (infeasible, undecided, violated, differs), 2 usage, 3 input, 4 configuration,\n"
    "5 environment, 70 an error of takt itself, 130 interrupted with a partial report.";

// The first word behind the verbs that looks like an option and is none of this verb's; "" where there is none.
std::string unknown_option(const CLI::App& verb, int argc, char** argv, std::vector<std::string>& known) {
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  for (int i = 1; i < argc; ++i) {
    std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (word == "--") break;
    if (word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9') || word[1] == '.') continue;
    const bool is_long = word[1] == '-';
    if (std::find(known.begin(), known.end(), is_long ? word : word.substr(0, 2)) == known.end()) return word;
  }
  return "";
}

// CLI11 says only that a subcommand is required; a newcomer wants the nearest word.
int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  std::string message = error.what();
  bool known = false;
  for (const std::string& verb : verbs) known = known || (argc > 1 && verb == argv[1]);
  if (argc > 1 && argv[1][0] != '-' && !known) {
    message = "unknown verb '" + std::string(argv[1]) + "'" + takt::did_you_mean(argv[1], verbs);
  }
  std::string command = takt::pipeline::program();
  const CLI::App* innermost = &app;
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    command += " " + innermost->get_name();
  }
  std::vector<std::string> options;
  if (const std::string word = unknown_option(*innermost, argc, argv, options); !word.empty()) {
    const std::string near = takt::nearest_word(word, options);
    message = "unknown option '" + word + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  std::fprintf(stderr, "takt: %s\n  -> %s --help\n", message.c_str(), command.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  takt::app::set_command_line(argc, argv);
  takt::app::install_signal_handlers();
  CLI::App app{"takt: a real-time perception pipeline with admitted schedules and measured deadlines"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "takt 0.1.0");
  app.footer(kExitCodes);
  takt::app::Command chosen;
  takt::app::add_demo(app, chosen);
  takt::app::add_init(app, chosen);
  takt::app::add_rig(app, chosen);
  takt::app::add_model(app, chosen);
  takt::app::add_compile(app, chosen);
  takt::app::add_plan(app, chosen);
  takt::app::add_schedule(app, chosen);
  takt::app::add_profile(app, chosen);
  takt::app::add_replay(app, chosen);
  takt::app::add_simulate(app, chosen);
  takt::app::add_report(app, chosen);
  takt::app::add_diff(app, chosen);
  takt::app::add_log(app, chosen);
  takt::app::add_doctor(app, chosen);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stdout);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* innermost = &app;
    while (!innermost->get_subcommands().empty()) innermost = innermost->get_subcommands().front();
    std::fputs(innermost->help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::puts("takt 0.1.0");
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  }
  try {
    const int code = chosen();
    // What was printed is a result too: a full disk behind a pipe or a redirection must not read as success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fputs("takt: standard output could not be written in full\n  -> free space where it is redirected to\n",
               stderr);
    return code == 0 ? 5 : code;
  } catch (const std::bad_alloc&) {
    // Sizes that a file declares are bounded, but this machine or its limits (ulimit) may have less.
    std::fputs("takt: out of memory\n  -> more memory for this process, or a smaller input\n", stderr);
  } catch (const std::system_error& error) {  // a thread that the system refuses
    std::fprintf(stderr, "takt: the system refuses: %s\n  -> look at the limits of this process (ulimit -a)\n",
                 error.what());
  }
  return 5;
}
