#include "pipeline/app/supervise.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/app/app.h"
#include "runtime/base/file.h"
#include "runtime/base/time.h"

extern char** environ;

namespace takt::app {
namespace {

// Tells a child that it is one.
constexpr const char* kRestartsVariable = "TAKT_RESTARTS";

// A child that fails at once should not be started in a tight loop.
constexpr auto kPause = std::chrono::milliseconds(500);

// The arguments of this process, without --supervise.
Result<std::vector<std::string>> arguments() {
  TAKT_ASSIGN(const std::string text, read_file("/proc/self/cmdline"));
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  // In each form that the parser takes: a child that supervised again would never end.
  std::erase_if(out, [](const std::string& arg) { return arg.starts_with("--supervise"); });
  return out;
}

Result<pid_t> start(std::vector<std::string> args) {
  std::vector<char*> pointers;
  for (std::string& arg : args) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  // A process group of its own: an interrupt from the terminal comes through this process, once. Then the terminal's
  // keys are not its either.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &files, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(Code::kEnvironment, std::string("no process can be started: ") + std::strerror(error));
  return child;
}

// Waits for the child; an interrupt is passed on, so that it ends with its report.
int wait_for(pid_t child) {
  bool told = false;
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (interrupted() && !std::exchange(told, true)) kill(child, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

std::optional<int> restarts_before() {
  const char* const text = std::getenv(kRestartsVariable);
  return text == nullptr ? std::nullopt : std::optional(std::atoi(text));
}

int supervise(const std::string& folder) {
  const Result<std::vector<std::string>> args = arguments();
  if (!args) return report_error(args.error());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return report_error({Code::kEnvironment, folder + ": the run folder cannot be made: " + error.message()});

  nlohmann::ordered_json log;
  log["schema"] = "takt.supervision";
  log["processes"] = nlohmann::ordered_json::array();
  bool failed = false;  // a process before the last one
  for (int restarts = 0;; ++restarts) {
    const HostTime begin = host_now();
    setenv(kRestartsVariable, std::to_string(restarts).c_str(), 1);
    const Result<pid_t> child = start(*args);
    if (!child) return report_error(child.error());
    const int status = wait_for(*child);
    const double lasted = (host_now() - begin).seconds();
    nlohmann::ordered_json entry{{"process", *child}, {"seconds", lasted}};
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool asks = code == kRestartMe || code == kRestartMeFailed;
    if (asks) {
      entry["reason"] = "its device was lost";
      if (code == kRestartMeFailed) entry["exit_code"] = exit_code(Code::kGate);
      failed = failed || code == kRestartMeFailed;
    } else if (WIFSIGNALED(status)) {
      entry["signal"] = WTERMSIG(status);
      entry["reason"] = strsignal(WTERMSIG(status));
    } else {
      entry["exit_code"] = code;
    }
    log["processes"].push_back(entry);
    log["restarts"] = restarts;
    const Status written = write_file_atomically(folder + "/supervision.json", log.dump(1) + "\n");
    if (!written) return report_error(written.error());
    if (!asks && !WIFSIGNALED(status)) return code == 0 && failed ? exit_code(Code::kGate) : code;
    const std::string cause =
        asks ? "because its device was lost"
             : "by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    std::fprintf(stderr, "takt: the process was ended after %.1f s %s%s\n", lasted, cause.c_str(),
                 restarts < kMostRestarts && !interrupted() ? "; it is started again" : "");
    if (interrupted()) return exit_code(Code::kInterrupted);
    if (restarts == kMostRestarts) return exit_code(Code::kEnvironment);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace takt::app
