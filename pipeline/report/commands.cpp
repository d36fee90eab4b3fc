#include "pipeline/report/commands.h"

#include <optional>

namespace takt::pipeline {
namespace {

std::string& the_program() {
  static std::string program = "takt";
  return program;
}

constexpr const char* kReplay = " replay ";

// The program that made the run, as it was called then: a page is a function of its run.
std::string program_of(const RunData& run) {
  const std::size_t end = run.command.find(kReplay);
  return end == std::string::npos ? "takt" : run.command.substr(0, end);
}

// The same bytes once more. A run in virtual time gives them by its own command, unless a key began it in the middle of
// the log; a run in real time by its decisions, repeated.
std::optional<std::string> command_to_reproduce(const RunData& run) {
  if (run.command.find(kReplay) == std::string::npos || (run.mode == "lockstep" && !run.sought)) return std::nullopt;
  std::string pipeline;
  for (const HashedInput& input : run.inputs) {
    if (input.role == "pipeline") pipeline = input.path;
  }
  if (pipeline.empty()) return std::nullopt;
  std::string out = program_of(run) + kReplay + shell_quoted(pipeline) + " " + shell_quoted(run.log_path);
  for (const std::string& word : run.options) out += " " + shell_quoted(word);
  return out + " -o REPEATED --reproduce " + shell_quoted(run.run_folder);
}

}  // namespace

void set_program(const char* argv0) { the_program() = shell_quoted(argv0); }
const std::string& program() { return the_program(); }

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "-_./=+:,%@") == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<Command> commands_to_try(const RunData& run) {
  std::vector<Command> out;
  // That of a pass which a key began gives the first pass again.
  if (!run.command.empty() && !run.sought) out.push_back({"This run once more", run.command});
  if (!run.run_folder.empty()) {
    const std::string folder = shell_quoted(run.run_folder);
    if (const auto again = command_to_reproduce(run)) {
      out.push_back({"The decisions of this run once more, in virtual time: the same bytes", *again});
    }
    out.push_back({"This page once more, from the run folder", program_of(run) + " report " + folder});
    out.push_back({"Beside another run: what differs first", program_of(run) + " diff " + folder + " OTHER_RUN"});
  }
  return out;
}

}  // namespace takt::pipeline
