#include "pipeline/assembly/process_faults.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>

namespace takt::pipeline {
namespace {

constexpr const char* kClientName = "fault-client";
constexpr std::uint32_t kClientHeld = 2;

void sleep_for(Duration d) {
  timespec left{d.ns / 1'000'000'000, d.ns % 1'000'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// Of CLOCK_MONOTONIC, as host_now().
void sleep_until(HostTime instant) {
  const timespec until{instant.ns / 1'000'000'000, instant.ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// A pipe takes it whole.
bool tell(int fd, HostTime what) { return write(fd, &what.ns, sizeof what.ns) == ssize_t{sizeof what.ns}; }

// nullopt when the other end is gone.
std::optional<HostTime> await(int fd) {
  HostTime told;
  ssize_t got = 0;
  do {
    got = read(fd, &told.ns, sizeof told.ns);
  } while (got < 0 && errno == EINTR);
  if (got != ssize_t{sizeof told.ns}) return std::nullopt;
  return told;
}

// It is told twice: when the transport stands, and when the table has begun, that of table time 0.
std::optional<HostTime> await_begin(int fd) { return await(fd) ? await(fd) : std::nullopt; }

// Only calls that are safe behind a fork of a process with threads.
[[noreturn]] void stop_parent(Duration at, Duration length, pid_t parent, int told) {
  if (const auto origin = await_begin(told)) {
    sleep_until(*origin + at);
    kill(parent, SIGSTOP);
    sleep_for(length);
    kill(parent, SIGCONT);
  }
  _exit(0);
}

[[noreturn]] void own_roudi_and_die(Duration at, transport::TransportSpec spec, int told, int back) {
  spec.backend = transport::Backend::kIceoryxEmbedded;
  ++spec.run;  // its own ports are none of the run's
  auto transport = transport::make_transport(spec);
  if (!transport || !tell(back, host_now())) _exit(1);
  const auto origin = await_begin(told);
  if (!origin) _exit(1);
  sleep_until(*origin + at);
  kill(getpid(), SIGKILL);
  _exit(1);
}

[[noreturn]] void hold_chunks_and_die(Duration at, const transport::TransportSpec& spec, const std::string& topic,
                                      int told) {
  if (!await(told)) _exit(0);
  auto transport = transport::attach_transport(spec, kClientName);
  if (!transport) _exit(1);
  auto in = (*transport)->subscriber(topic, kClientName);
  if (!in || !(*transport)->wait_connected()) _exit(1);
  const auto origin = await(told);
  if (!origin) _exit(1);
  const HostTime death = *origin + at;
  for (std::uint32_t held = 0; host_now() < death; sleep_for(milliseconds(1))) {
    if (held < kClientHeld && (*in)->take()) ++held;
  }
  kill(getpid(), SIGKILL);
  _exit(1);
}

}  // namespace

void ProcessFaults::declare(const FaultPlan& plan, const std::vector<std::string>& stage_topics,
                            transport::TransportSpec& spec) {
  for (const ProcessFault& fault : plan.processes) {
    if (fault.kind == ProcessFault::Kind::kKillRoudi && spec.backend == transport::Backend::kIceoryxEmbedded) {
      spec.backend = transport::Backend::kIceoryxExternal;
    }
    if (fault.kind != ProcessFault::Kind::kKillClient) continue;
    spec.external_clients = true;
    for (transport::TopicSpec& topic : spec.topics) {
      if (topic.name == stage_topics[fault.stage]) topic.subscribers.push_back({kClientName, 2, kClientHeld});
    }
  }
}

Status ProcessFaults::prepare(const FaultPlan& plan, const std::vector<std::string>& stage_topics,
                              const transport::TransportSpec& spec, double rate) {
  rate_ = rate;
  for (const ProcessFault& fault : plan.processes) {
    if (fault.kind == ProcessFault::Kind::kDiskFull || fault.kind == ProcessFault::Kind::kMode) continue;
    if (fault.kind != ProcessFault::Kind::kStop && spec.backend == transport::Backend::kLocal) {
      return fail(Code::kUsage,
                  std::string("the fault '") + name_of(fault.kind) + "' needs the transport 'iceoryx', not 'local'");
    }
    int ends[2], back[2];
    if (pipe(back) != 0) return fail(Code::kEnvironment, std::string("no pipe for a fault: ") + std::strerror(errno));
    const pid_t parent = getpid();
    pid_t pid = -1;
    if (pipe(ends) == 0) {
      pid = fork();
      if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
      }
    }
    if (pid < 0) return fail(Code::kEnvironment, std::string("no process for a fault: ") + std::strerror(errno));
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[1]);
      close(back[0]);
      for (const Helper& other : helpers_) close(other.tell);
      const Duration at = in_host_time(fault.at);
      if (fault.kind == ProcessFault::Kind::kStop) stop_parent(at, fault.length, parent, ends[0]);
      if (fault.kind == ProcessFault::Kind::kKillRoudi) own_roudi_and_die(at, spec, ends[0], back[1]);
      hold_chunks_and_die(at, spec, stage_topics[fault.stage], ends[0]);
    }
    close(ends[0]);
    close(back[1]);
    helpers_.push_back({pid, ends[1]});
    const bool ready = fault.kind != ProcessFault::Kind::kKillRoudi || await(back[0]).has_value();
    close(back[0]);
    if (!ready)
      return fail(Code::kEnvironment, "the process of a fault could not start RouDi; is another one running?");
  }
  return {};
}

void ProcessFaults::tell_all(HostTime what) {
  for (const Helper& helper : helpers_) {
    // A helper that is gone already has nothing to do any more; its end of the pipe is closed.
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    [[maybe_unused]] const bool told = tell(helper.tell, what);
    std::signal(SIGPIPE, before);
  }
}

Duration ProcessFaults::in_host_time(Duration of_table) const {
  return {static_cast<std::int64_t>(static_cast<double>(of_table.ns) / rate_)};
}

void ProcessFaults::transport_stands() { tell_all(host_now()); }

void ProcessFaults::reached(TableTime instant) {
  if (!began_.exchange(true)) tell_all(host_now() - in_host_time(instant - TableTime{0}));
}

ProcessFaults::~ProcessFaults() {
  for (const Helper& helper : helpers_) {
    close(helper.tell);
    kill(helper.pid, SIGKILL);
    waitpid(helper.pid, nullptr, 0);
  }
}

}  // namespace takt::pipeline
