#include "scheduler/dispatch/isolation.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace takt::sched {
namespace {

thread_local Isolation* of_this_thread = nullptr;

bool set_policy(pid_t thread, int policy, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return sched_setscheduler(thread, policy, &parameters) == 0;
}

}  // namespace

// Async-signal-safe: nothing but futex calls.
void wait_parked(int /*signal*/) {
  const int error = errno;
  if (Isolation* const isolation = of_this_thread) {
    isolation->stand_still();
  }
  errno = error;
}

bool may_leave_idle() {
  rlimit nice{};
  if (getrlimit(RLIMIT_NICE, &nice) == 0 && nice.rlim_cur >= 20) return true;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective >> CAP_SYS_NICE & 1U) != 0;
}

void Isolation::adopt() {
  policy_ = sched_getscheduler(0);
  may_demote_ = policy_ == SCHED_FIFO && may_leave_idle();
  sched_param parameters{};
  if (sched_getparam(0, &parameters) == 0) priority_ = parameters.sched_priority;
  of_this_thread = this;
  calls_ = &ForeignCall::of_this_thread();
  calls_->left = [] {
    if (of_this_thread != nullptr) of_this_thread->left_call();
  };
  thread_.store(static_cast<pid_t>(syscall(SYS_gettid)));
}

void Isolation::hold_back() {
  const pid_t thread = thread_.load();
  if (held_ || thread == 0) return;
  held_ = true;
  demoted_ = may_demote_ && demote();
  if (!demoted_) park();
}

bool Isolation::demote() {
  // Where threads are pinned a worker enters no call meanwhile: it does not run while its dispatcher does.
  if (calls_->inside.load() != 0) {
    deferred_.store(true);
    demotion_due_.store(true);
    if (calls_->inside.load() != 0 || !demotion_due_.exchange(false)) return true;  // it does so itself
  }
  return set_policy(thread_.load(), SCHED_IDLE, 0);
}

void Isolation::left_call() {
  if (demotion_due_.exchange(false)) set_policy(thread_.load(), SCHED_IDLE, 0);
  stand_still();
}

void Isolation::stand_still() {
  if (parked_.load() == 0) return;  // no longer
  if (calls_->inside.load() != 0) {
    deferred_.store(true);
    return;
  }
  waiting_.store(1);
  waiting_.wake_all();
  parked_.wait([](std::uint32_t value) { return value == 0; });
  waiting_.store(0);
}

void Isolation::let_go() {
  if (!held_) return;
  if (demoted_) {
    demotion_due_.store(false);
    set_policy(thread_.load(), policy_, priority_);
  } else {
    unpark();
  }
  held_ = demoted_ = false;
}

void Isolation::run_in_gap(bool idle) {
  if (!held_ || demoted_) return;
  const bool parked = parked_.load() != 0;
  if (idle && parked) unpark();
  if (!idle && !parked) park();
}

bool Isolation::stop_for_good(Duration limit) {
  let_go();  // at idle priority it might not come to its handler
  park();
  return waiting_.wait_until(host_now() + limit, [](std::uint32_t value) { return value != 0; });
}

void Isolation::park() {
  parked_.store(1);
  syscall(SYS_tgkill, getpid(), thread_.load(), SIGURG);
}

void Isolation::unpark() {
  parked_.store(0);
  parked_.wake_all();
}

ParkingSignal::ParkingSignal() {
  struct sigaction action {};
  action.sa_handler = wait_parked;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGURG, &action, &before_);
}

ParkingSignal::~ParkingSignal() {
  if (!kept_) sigaction(SIGURG, &before_, nullptr);
}

}  // namespace takt::sched
