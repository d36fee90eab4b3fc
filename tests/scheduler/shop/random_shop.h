// Small random shops, and their optimum by trying everything.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "scheduler/shop/shop.h"

namespace takt::sched::shop::test {

inline Shop random_shop(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Shop shop;
  const std::int64_t resources = 1 + below(2);
  for (std::int64_t r = 0; r < resources; ++r) shop.capacities.push_back(below(2) == 0 ? 1 : 1 + below(3));
  const auto jobs = static_cast<std::uint32_t>(3 + below(4));
  for (std::uint32_t j = 0; j < jobs; ++j) {
    Job job;
    for (std::int64_t m = 0; m < 1 + below(2); ++m) {
      Mode mode;
      mode.duration = below(12);
      for (std::uint32_t r = 0; r < resources; ++r) {
        if (below(4) != 0) mode.uses.push_back({r, 1 + below(static_cast<std::uint64_t>(shop.capacities[r]))});
      }
      job.modes.push_back(mode);
    }
    job.release = below(20);
    job.tail = below(4) == 0 ? kNoTail : below(30) - 5;
    if (below(4) == 0) job.deadline = job.release + 14 + below(40);
    shop.jobs.push_back(job);
    for (std::uint32_t before = 0; before < j; ++before) {
      if (below(4) == 0) shop.orders.push_back({before, j, below(4)});
    }
  }
  shop.jobs.back().tail = below(5);
  return shop;
}

// Every choice of modes and every order of the jobs, each at its earliest place: some optimal plan is among them.
inline std::optional<Time> best_by_force(const Shop& shop) {
  const std::size_t n = shop.jobs.size();
  std::optional<Time> best;
  std::vector<std::uint32_t> modes(n, 0);
  for (;;) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    do {
      std::vector<Time> starts(n, -1);
      bool possible = true;
      Time objective = -kNever;
      for (const std::size_t j : order) {
        const Job& job = shop.jobs[j];
        const Mode& mode = job.modes[modes[j]];
        Time start = job.release;
        for (const Order& o : shop.orders) {
          if (o.after != j) continue;
          if (starts[o.before] < 0) possible = false;
          start = std::max(start, starts[o.before] + shop.jobs[o.before].modes[modes[o.before]].duration + o.delay);
        }
        if (!possible) break;
        const auto free_at = [&](Time t) {
          for (const Use& use : mode.uses) {
            std::int64_t held = use.demand;
            for (std::size_t k = 0; k < n; ++k) {
              const Mode& other = shop.jobs[k].modes[modes[k]];
              if (starts[k] < 0 || t < starts[k] || t >= starts[k] + other.duration) continue;
              for (const Use& theirs : other.uses) held += theirs.resource == use.resource ? theirs.demand : 0;
            }
            if (held > shop.capacities[use.resource]) return false;
          }
          return true;
        };
        for (Time t = start; t < start + mode.duration; ++t) {
          if (!free_at(t)) start = t + 1;
        }
        starts[j] = start;
        possible = start + mode.duration <= job.deadline;
        if (!possible) break;
        if (job.tail != kNoTail) objective = std::max(objective, start + mode.duration + job.tail);
      }
      if (possible && (!best || objective < *best)) best = objective;
    } while (std::next_permutation(order.begin(), order.end()));
    std::size_t j = 0;
    while (j < n && ++modes[j] == shop.jobs[j].modes.size()) modes[j++] = 0;
    if (j == n) return best;
  }
}

}  // namespace takt::sched::shop::test
