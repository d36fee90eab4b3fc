// Takes the core from a worker that has not finished when its slot and slack are over, so that the next slot starts in
// time (DESIGN section 5, "Dispatch"). The worker keeps its job and runs on in the core's idle gaps:
//
//   with SCHED_FIFO   and the right to come back it is demoted to SCHED_IDLE; the kernel finds the gaps
//   without           it is parked: a signal to its thread, whose handler waits; its dispatcher finds the gaps.
//                     (An unprivileged thread may go to SCHED_IDLE but not back.)
//
// Timed code of takt takes no locks, so a worker that lost its core holds nothing that another one waits for. The
// driver of a device takes its own, and dispatchers and other workers call it too: a worker inside such a call
// (ForeignCall) comes back first, and loses its core then.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <csignal>

#include "runtime/base/foreign_call.h"
#include "runtime/base/time.h"
#include "scheduler/dispatch/futex.h"

namespace takt::sched {

// Whether a thread of this process may leave SCHED_IDLE again: CAP_SYS_NICE, or RLIMIT_NICE of 20 (sched(7)). A limit
// on real-time priorities alone does not give that.
bool may_leave_idle();

// Of one worker thread. Everything but adopt() is called by the dispatcher of its core only.
class Isolation {
 public:
  // The worker itself, before its first job.
  void adopt();

  void hold_back();
  // Gives the core back; before the worker's next job.
  void let_go();
  [[nodiscard]] bool held() const { return held_; }
  // Since it was asked last, any thread: did the worker keep its core for a while because it was inside a call?
  [[nodiscard]] bool take_deferred() { return deferred_.exchange(false); }
  // Of a held worker: whether it may run now, because its core has nothing else to do.
  void run_in_gap(bool idle);
  // Behind the last job of a run, any thread: the worker executes no further instruction of its stage, whose memory may
  // go. This object and the handler of the signal must stay for good. False: it has not been seen to stop within
  // `limit`: it sleeps in the kernel, uninterruptibly, or is inside a foreign call, and stops when it comes out.
  bool stop_for_good(Duration limit);

 private:
  void park();
  void unpark();
  [[nodiscard]] bool demote();
  // The worker itself:
  void stand_still();
  void left_call();
  friend void wait_parked(int signal);

  std::atomic<pid_t> thread_{0};  // 0: not adopted yet
  ForeignCall::Calls* calls_ = nullptr;
  int policy_ = 0;
  bool may_demote_ = false;
  int priority_ = 0;
  bool held_ = false;
  bool demoted_ = false;
  std::atomic<bool> demotion_due_{false};  // when it comes back from a call
  std::atomic<bool> deferred_{false};
  Futex parked_;   // 1: the handler waits
  Futex waiting_;  // 1: it does
};

// Installs the handler of the parking signal for the length of a run. SIGURG, because its default is to be ignored:
// one that comes too late harms nobody.
class ParkingSignal {
 public:
  ParkingSignal();
  ~ParkingSignal();
  void keep() { kept_ = true; }  // for those that were stopped for good
  ParkingSignal(const ParkingSignal&) = delete;
  ParkingSignal& operator=(const ParkingSignal&) = delete;

 private:
  struct sigaction before_ {};
  bool kept_ = false;
};

}  // namespace takt::sched
