// A preemptive fixed-priority processor, its response times, and ages of chains known only by response times: oracles
// for published cases, no part of takt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "scheduler/analysis/trace.h"

namespace takt::sched::test {

struct Task {
  std::int64_t period = 0;
  std::int64_t cost = 0;  // worst case, and always taken
  int priority = 0;       // smaller: more urgent
  std::int64_t jitter = 0;
  std::int64_t phase = 0;       // of the releases; for ages
  std::int64_t least_cost = 0;  // best case; for jitter behind the task, and ages
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

// The activations of a task that runs whenever `task` is through: its releases vary by what the response varies more.
inline std::int64_t jitter_behind(const Task& task, std::int64_t response) {
  return task.jitter + response - task.least_cost;
}

// A periodic task of a chain: it reads when it begins and writes when it is through.
struct ChainTask {
  Task task;
  std::int64_t response = 0;
};

// Longest time from the earliest write of a job to a read of the next task that may still find it: job m may be the
// newest at read n if it may be there by then and job m + 1 may not.
inline std::int64_t write_to_read(const ChainTask& writer, const ChainTask& reader) {
  const auto earliest_end = [&](std::int64_t m) {
    return m * writer.task.period + writer.task.phase + writer.task.least_cost;
  };
  const auto latest_end = [&](std::int64_t m) { return m * writer.task.period + writer.task.phase + writer.response; };
  const std::int64_t hyperperiod = std::lcm(writer.task.period, reader.task.period);
  std::int64_t longest = 0;
  for (std::int64_t n = 0; n < hyperperiod / reader.task.period; ++n) {
    const std::int64_t first_start = n * reader.task.period + reader.task.phase;
    const std::int64_t last_start = first_start + reader.response - reader.task.least_cost;
    const std::int64_t around = hyperperiod / writer.task.period;
    for (std::int64_t m = -around; m <= 2 * around; ++m) {
      if (earliest_end(m) > last_start || latest_end(m + 1) <= first_start) continue;
      longest = std::max(longest, last_start - earliest_end(m));
    }
  }
  return longest;
}

// Age of the data at the end of the last task, from the release of the first.
inline std::int64_t data_age(const std::vector<ChainTask>& chain) {
  std::int64_t age = chain.front().task.phase;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    age += chain[i].response;
    if (i + 1 < chain.size()) age += write_to_read(chain[i], chain[i + 1]);
  }
  return age;
}

}  // namespace takt::sched::test
