#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "pipeline/app/app.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/report/commands.h"
#include "runtime/base/time.h"

namespace takt::app {
namespace {

std::string g_command_line;
std::atomic<bool> g_interrupted{false};

extern "C" void on_signal(int signal) {
  if (g_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void set_command_line(int argc, char** argv) {
  pipeline::set_program(argc > 0 ? argv[0] : "takt");
  g_command_line = pipeline::program();
  for (int i = 1; i < argc; ++i) g_command_line += " " + pipeline::shell_quoted(argv[i]);
}
const std::string& command_line() { return g_command_line; }

void refuse_together(const CLI::App& verb, std::initializer_list<Exclusion> exclusions) {
  for (const Exclusion& e : exclusions) {
    if (verb.get_option(e.one)->count() == 0 || verb.get_option(e.other)->count() == 0) continue;
    throw CLI::ParseError(
        std::string(e.one) + " and " + e.other + " cannot both be meant: " + e.why + "; leave one of them out",
        exit_code(Code::kUsage));
  }
}

int report_error(const Error& error) {
  std::fprintf(stderr, "takt: %s\n", error.message.c_str());
  return exit_code(error.code);
}

const std::atomic<bool>& interrupted() { return g_interrupted; }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A file above the limit (ulimit -f) is a write that fails, said and cleared away like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), enabled_(!quiet && isatty(STDERR_FILENO) != 0), start_ns_(host_now().ns) {}

Progress::~Progress() {
  if (enabled_ && last_ns_ != 0) std::fprintf(stderr, "\r\033[K");
}

void Progress::update(double done, double total, const char* rate) {
  if (!enabled_) return;
  const std::int64_t now = host_now().ns;
  if (now - last_ns_ < 100'000'000) return;
  last_ns_ = now;
  const double elapsed = static_cast<double>(now - start_ns_) * 1e-9;
  const double share = total > 0 ? std::min(1.0, done / total) : 0;
  const double left = share > 0.02 ? elapsed / share - elapsed : 0;
  if (rate != nullptr) {
    std::fprintf(stderr, "\r\033[K%s  %3.0f %%  %s  %.0f s left", label_.c_str(), share * 100, rate, left);
    return;
  }
  std::fprintf(stderr, "\r\033[K%s  %3.0f %%  %.1f of %.1f  %.0f s left", label_.c_str(), share * 100, done, total,
               left);
}

Result<std::string> shipped_folder() {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (const char* home = std::getenv("TAKT_HOME")) places.emplace_back(home);
  const fs::path binary = pipeline::executable_path();
  places.push_back(binary.parent_path().parent_path());
  places.push_back(binary.parent_path().parent_path().parent_path());
  places.push_back(fs::current_path());
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (!fs::exists(place / "configs" / "pipelines" / "sim.yaml", ignored)) continue;
    // Short paths read better in reports and in the commands that reproduce them.
    const std::string near = fs::proximate(place, ignored).string();
    return near.empty() || near.rfind("..", 0) == 0 ? place.string() : near;
  }
  return fail(
      Code::kEnvironment,
      "the shipped configs/ and replay_data/ are not beside this program; set TAKT_HOME to the project's folder");
}

}  // namespace takt::app
