// takt doctor: can this machine run a pipeline, and what would make it better?

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "pipeline/app/app.h"
#include "pipeline/assembly/environment.h"
#include "runtime/transport/transport.h"

namespace takt::app {
namespace {

namespace fs = std::filesystem;

enum class Level { kOk, kWarning, kError };

struct Finding {
  Level level;
  std::string what, found, remedy;
};

constexpr std::uint64_t kSharedMemoryNeeded = 200ULL << 20;  // the shipped drive: library management + pools

Finding shared_memory() {
  const Result<std::uint64_t> free = transport::shared_memory_free();
  if (!free)
    return {Level::kError, "shared memory", free.error().message, "mount -t tmpfs -o size=512M tmpfs /dev/shm"};
  const std::string text = std::to_string(*free >> 20) + " MB free";
  if (*free < kSharedMemoryNeeded) {
    return {Level::kError, "shared memory", text,
            "200 MB are needed: mount -o remount,size=512M /dev/shm (container: --shm-size=512m)"};
  }
  return {Level::kOk, "shared memory", text, ""};
}

Finding roudi() {
  const Result<bool> running = transport::roudi_running();
  if (!running) return {Level::kWarning, "RouDi", running.error().message, "run as that user, or remove the file"};
  if (*running) {
    return {Level::kWarning, "RouDi", "one runs on this machine already (iox-roudi or a takt run)",
            "use it with --roudi external, or stop it; only one can run at a time"};
  }
  return {Level::kOk, "RouDi", "none runs; takt embeds its own", ""};
}

Finding stale_files() {
  if (transport::roudi_running().value_or(false))
    return {Level::kOk, "stale files", "a RouDi runs: not looked for", ""};
  std::string names;
  std::uint64_t bytes = 0;
  for (const std::string& path : transport::shared_memory_files()) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    if (error) continue;
    names += (names.empty() ? "" : " ") + path;
    bytes += size;
  }
  if (names.empty()) return {Level::kOk, "stale files", "none", ""};
  return {Level::kWarning, "stale files", std::to_string(bytes >> 20) + " MB left behind by an aborted run",
          "the next run replaces them; to free the memory now: rm " + names};
}

Finding realtime() {
  sched_param parameter{};
  parameter.sched_priority = 50;
  sched_param old{};
  int policy = 0;
  pthread_getschedparam(pthread_self(), &policy, &old);
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) != 0) {
    return {Level::kWarning, "real-time priority", "refused",
            "real-time deadlines will be NOT JUDGED; run as root, or: setcap cap_sys_nice,cap_ipc_lock+ep takt"};
  }
  pthread_setschedparam(pthread_self(), policy, &old);
  return {Level::kOk, "real-time priority", "granted (SCHED_FIFO)", ""};
}

Finding locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY) return {Level::kOk, "locked memory", "unlimited", ""};
  return {Level::kWarning, "locked memory", std::to_string(limit.rlim_cur >> 10) + " kB",
          "page faults may delay jobs; raise it: ulimit -l unlimited"};
}

Finding machine(const pipeline::Environment& env) {
  const std::string text = std::to_string(env.cores) + " core(s), " + env.cpu_model;
  if (env.cores < 2) return {Level::kWarning, "cores", text, "two are needed for the shipped board file"};
  return {Level::kOk, "cores", text, ""};
}

std::vector<Finding> examine() {
  const pipeline::Environment env = pipeline::read_environment();
  std::vector<Finding> out{machine(env), shared_memory(), roudi(), stale_files(), realtime(), locked_memory()};
  out.push_back({Level::kOk, "clock source", env.clock_source.empty() ? "unknown" : env.clock_source, ""});
  out.push_back({Level::kOk, "digest class", env.isa_class + ", " + env.jpeg_library, ""});
  for (const std::string& warning : env.warnings) out.push_back({Level::kWarning, "timing", warning, ""});
  return out;
}

int run(bool as_json) {
  const std::vector<Finding> findings = examine();
  static constexpr const char* kNames[] = {"ok", "warning", "error"};
  bool failed = false;
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& f : findings) {
    failed = failed || f.level == Level::kError;
    const char* level = kNames[static_cast<int>(f.level)];
    if (as_json) {
      list.push_back({{"check", f.what}, {"level", level}, {"found", f.found}, {"remedy", f.remedy}});
      continue;
    }
    std::printf("%-8s %-20s %s\n", level, f.what.c_str(), f.found.c_str());
    if (!f.remedy.empty()) std::printf("%-8s %-20s -> %s\n", "", "", f.remedy.c_str());
  }
  if (as_json) std::printf("%s\n", list.dump(2).c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Command& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb =
      app.add_subcommand("doctor", "Can this machine run a pipeline? Limits, shared memory, RouDi, rights");
  verb->add_flag("--json", *json, "machine-readable findings on stdout");
  verb->callback([json, &chosen] { chosen = [json] { return run(*json); }; });
}

}  // namespace takt::app
