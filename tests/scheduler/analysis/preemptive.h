// A preemptive fixed-priority processor and its response times: oracles for published cases, no part of takt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/analysis/trace.h"

namespace takt::sched::test {

struct Task {
  std::int64_t period = 0;
  std::int64_t cost = 0;  // worst case, and always taken
  int priority = 0;       // smaller: more urgent
  std::int64_t jitter = 0;
};

// All tasks released at 0 and then each period; a job reads when it first runs and writes when it is through.
inline std::vector<TraceTask> simulate(const std::vector<Task>& tasks, std::int64_t until) {
  std::vector<TraceTask> traces(tasks.size());
  std::vector<std::size_t> urgent(tasks.size());
  for (std::size_t i = 0; i < urgent.size(); ++i) urgent[i] = i;
  std::stable_sort(urgent.begin(), urgent.end(),
                   [&](std::size_t a, std::size_t b) { return tasks[a].priority < tasks[b].priority; });
  std::vector<std::int64_t> released(tasks.size(), 0);  // jobs
  std::vector<std::int64_t> done(tasks.size(), 0);
  std::vector<std::int64_t> left(tasks.size(), 0);  // of the job that is running or waiting to go on
  std::int64_t now = 0;
  while (now < until) {
    std::int64_t next_release = until;
    std::size_t running = tasks.size();
    for (const std::size_t i : urgent) {
      while (released[i] * tasks[i].period <= now) ++released[i];
      next_release = std::min(next_release, released[i] * tasks[i].period);
      if (running == tasks.size() && done[i] < released[i]) running = i;
    }
    if (running == tasks.size()) {
      now = next_release;
      continue;
    }
    if (left[running] == 0) {
      left[running] = tasks[running].cost;
      traces[running].reads.push_back(now);
    }
    const std::int64_t step = std::min(left[running], next_release - now);
    left[running] -= step;
    now += step;
    if (left[running] > 0) continue;
    ++done[running];
    traces[running].writes.push_back(now);
  }
  for (TraceTask& trace : traces) trace.reads.resize(trace.writes.size());
  return traces;
}

// Busy window of one task: with preemption, or blocked by one running job of lower priority.
inline std::int64_t response_time(const std::vector<Task>& tasks, std::size_t task, bool preemptive = true) {
  std::int64_t blocked = 0;
  if (!preemptive) {
    for (const Task& other : tasks) {
      if (other.priority > tasks[task].priority) blocked = std::max(blocked, other.cost);
    }
  }
  // Non-preemptive: once it runs, nothing delays it; what counts is what comes before its start.
  const std::int64_t own = tasks[task].cost;
  std::int64_t before = preemptive ? own : blocked;
  for (;;) {
    std::int64_t sum = preemptive ? own : blocked;
    for (const Task& other : tasks) {
      if (other.priority >= tasks[task].priority) continue;
      const std::int64_t window = before + other.jitter + (preemptive ? 0 : 1);
      sum += (window + other.period - 1) / other.period * other.cost;
    }
    if (sum == before) return preemptive ? sum : sum + own;
    before = sum;
  }
}

}  // namespace takt::sched::test
