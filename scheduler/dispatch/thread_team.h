// The threads of a run: created together, set up (name, CPU, policy, touched stack) and held until all are ready.
#pragma once

#include <pthread.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/futex.h"

namespace takt::sched {

inline constexpr int kDispatcherPriority = 80;

struct ThreadSpec {
  std::string name;  // shown by the system, cut to 15 characters
  int cpu = -1;      // -1: not pinned
  int priority = 0;  // SCHED_FIFO; 0: the ordinary policy
};

class ThreadTeam {
 public:
  ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();  // threads that were never released end without running their body

  // kEnvironment when the system gives no thread. `body` starts after release().
  Status add(ThreadSpec spec, std::function<void()> body);
  // Waits until every thread has been set up; nothing of a body has run yet.
  void await_ready();
  void release();
  void join();
  // The thread of this name never ends: it is not joined, and what it uses stays for good.
  void leave(const std::string& name);

  // After await_ready(): which rights the threads that asked for some were given; adds what was refused in words.
  void report(RealtimeRights& rights) const;

 private:
  struct Member;
  static void* enter(void* member);

  std::vector<std::unique_ptr<Member>> members_;
  Futex ready_;
  Futex gate_;  // 0 closed, 1 open, 2 cancelled
};

}  // namespace takt::sched
