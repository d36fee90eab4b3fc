#include "scheduler/dispatch/thread_team.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/memory/alloc_guard.h"

namespace takt::sched {
namespace {

// Small enough that locking all memory does not pin tens of megabytes of never used stack, large enough for stages,
// which keep their data in buffers of their own.
constexpr std::size_t kStackBytes = std::size_t{2} << 20;
constexpr std::size_t kTouchedBytes = std::size_t{256} << 10;

constexpr std::uint32_t kOpen = 1;
constexpr std::uint32_t kCancelled = 2;

// Touches every page of the stack that a job may use, so that the first jobs take no page faults.
[[gnu::noinline]] void touch_stack() {
  std::byte bytes[kTouchedBytes];
  volatile std::byte* touched = bytes;
  for (std::size_t i = 0; i < kTouchedBytes; i += 1024) touched[i] = std::byte{0};
}

void add_sentence(std::string& text, const std::string& sentence) {
  if (!text.empty()) text += "; ";
  text += sentence;
}

}  // namespace

struct ThreadTeam::Member {
  ThreadTeam* team = nullptr;
  ThreadSpec spec;
  std::function<void()> body;
  pthread_t thread{};
  bool joined = false;
  int affinity_error = 0;
  int policy_error = 0;

  // Affinity before policy: a real-time thread should never run on another core, not even for a moment.
  void set_up() {
    pthread_setname_np(pthread_self(), spec.name.substr(0, 15).c_str());
    if (spec.cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      if (spec.cpu < CPU_SETSIZE) CPU_SET(spec.cpu, &set);
      affinity_error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    }
    if (spec.priority > 0) {
      sched_param parameters{};
      parameters.sched_priority = spec.priority;
      policy_error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    }
    prctl(PR_SET_TIMERSLACK, 1UL);  // matters to the ordinary policy only: wake at the instant, not 50 us around it
    touch_stack();
    memory::mark_timed_thread(spec.name.c_str());  // last: setting up is not timed
  }
};

ThreadTeam::ThreadTeam() = default;

ThreadTeam::~ThreadTeam() {
  if (gate_.load() != kOpen) {
    gate_.store(kCancelled);
    gate_.wake_all();
  }
  join();
}

void* ThreadTeam::enter(void* member) {
  auto& self = *static_cast<Member*>(member);
  self.set_up();
  self.team->ready_.add(1);
  self.team->ready_.wake_all();
  const std::uint32_t gate = self.team->gate_.wait([](std::uint32_t value) { return value != 0; });
  if (gate == kOpen) self.body();
  return nullptr;
}

Status ThreadTeam::add(ThreadSpec spec, std::function<void()> body) {
  auto member = std::make_unique<Member>();
  member->team = this;
  member->spec = std::move(spec);
  member->body = std::move(body);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int error = pthread_create(&member->thread, &attributes, &ThreadTeam::enter, member.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    return fail(Code::kEnvironment, "cannot create thread '" + member->spec.name + "': " + std::strerror(error) +
                                        "; raise the limits on processes (ulimit -u) and locked memory (ulimit -l)");
  }
  members_.push_back(std::move(member));
  return {};
}

void ThreadTeam::await_ready() {
  const auto all = static_cast<std::uint32_t>(members_.size());
  ready_.wait([all](std::uint32_t value) { return value >= all; });
}

void ThreadTeam::release() {
  gate_.store(kOpen);
  gate_.wake_all();
}

void ThreadTeam::join() {
  for (const auto& member : members_) {
    if (member->joined) continue;
    pthread_join(member->thread, nullptr);
    member->joined = true;
  }
}

void ThreadTeam::leave(const std::string& name) {
  for (auto& member : members_) {
    if (member->joined || member->spec.name != name) continue;
    pthread_detach(member->thread);
    member->joined = true;
    static_cast<void>(member.release());  // NOLINT(bugprone-unused-return-value): its thread stands in its body
    std::erase(members_, nullptr);
    return;
  }
}

void ThreadTeam::report(RealtimeRights& rights) const {
  std::size_t asked_policy = 0;
  std::size_t refused_policy = 0;
  std::size_t asked_affinity = 0;
  const Member* policy = nullptr;
  const Member* affinity = nullptr;
  for (const auto& member : members_) {
    asked_policy += member->spec.priority > 0 ? 1U : 0U;
    asked_affinity += member->spec.cpu >= 0 ? 1U : 0U;
    if (member->policy_error != 0) {
      ++refused_policy;
      policy = member.get();
    }
    if (member->affinity_error != 0) affinity = member.get();
  }
  rights.fifo = asked_policy > 0 && policy == nullptr;
  rights.affinity = asked_affinity > 0 && affinity == nullptr;
  if (policy != nullptr) {
    add_sentence(rights.refused, "SCHED_FIFO for " + std::to_string(refused_policy) + " of " +
                                     std::to_string(asked_policy) + " threads: " + std::strerror(policy->policy_error) +
                                     " (grant rtprio 80 in /etc/security/limits.conf or run with CAP_SYS_NICE)");
  }
  if (affinity != nullptr) {
    add_sentence(rights.refused, "affinity of '" + affinity->spec.name + "' to CPU " +
                                     std::to_string(affinity->spec.cpu) + ": " +
                                     std::strerror(affinity->affinity_error) + " (" +
                                     std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs online here)");
  }
}

}  // namespace takt::sched
