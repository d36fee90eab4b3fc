#include "pipeline/assembly/process_faults.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace takt::pipeline {
namespace {

constexpr const char* kClientName = "fault-client";
constexpr std::uint32_t kClientHeld = 2;

void sleep_for(Duration d) {
  timespec left{d.ns / 1'000'000'000, d.ns % 1'000'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// False when the parent is gone.
bool await(int fd) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

// It is told twice: when the transport stands, and when the table begins.
bool await_begin(int fd) {
  const bool stands = await(fd);
  return stands && await(fd);
}

// Only calls that are safe behind a fork of a process with threads.
[[noreturn]] void stop_parent(const ProcessFault& fault, pid_t parent, int told) {
  if (await_begin(told)) {
    sleep_for(fault.at);
    kill(parent, SIGSTOP);
    sleep_for(fault.length);
    kill(parent, SIGCONT);
  }
  _exit(0);
}

[[noreturn]] void own_roudi_and_die(const ProcessFault& fault, transport::TransportSpec spec, int told, int tell) {
  spec.backend = transport::Backend::kIceoryxEmbedded;
  ++spec.run;  // its own ports are none of the run's
  auto transport = transport::make_transport(spec);
  if (!transport || write(tell, "x", 1) != 1) _exit(1);
  if (!await_begin(told)) _exit(1);
  sleep_for(fault.at);
  kill(getpid(), SIGKILL);
  _exit(1);
}

[[noreturn]] void hold_chunks_and_die(const ProcessFault& fault, const transport::TransportSpec& spec,
                                      const std::string& topic, int told) {
  if (!await(told)) _exit(0);
  auto transport = transport::attach_transport(spec, kClientName);
  if (!transport) _exit(1);
  auto in = (*transport)->subscriber(topic, kClientName);
  if (!in || !(*transport)->wait_connected() || !await(told)) _exit(1);
  const HostTime death = host_now() + fault.at;
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
                              const transport::TransportSpec& spec) {
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
      if (fault.kind == ProcessFault::Kind::kStop) stop_parent(fault, parent, ends[0]);
      if (fault.kind == ProcessFault::Kind::kKillRoudi) own_roudi_and_die(fault, spec, ends[0], back[1]);
      hold_chunks_and_die(fault, spec, stage_topics[fault.stage], ends[0]);
    }
    close(ends[0]);
    close(back[1]);
    helpers_.push_back({pid, ends[1]});
    const bool ready = fault.kind != ProcessFault::Kind::kKillRoudi || await(back[0]);
    close(back[0]);
    if (!ready)
      return fail(Code::kEnvironment, "the process of a fault could not start RouDi; is another one running?");
  }
  return {};
}

void ProcessFaults::tell_all() {
  for (const Helper& helper : helpers_) {
    // A helper that is gone already has nothing to do any more; its end of the pipe is closed.
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    [[maybe_unused]] const ssize_t told = write(helper.tell, "x", 1);
    std::signal(SIGPIPE, before);
  }
}

void ProcessFaults::transport_stands() { tell_all(); }
void ProcessFaults::begin() { tell_all(); }

ProcessFaults::~ProcessFaults() {
  for (const Helper& helper : helpers_) {
    close(helper.tell);
    kill(helper.pid, SIGKILL);
    waitpid(helper.pid, nullptr, 0);
  }
}

}  // namespace takt::pipeline
