// The scheduling problem below the tables: jobs with durations on resources that hold one or several jobs at a time,
// orders, windows, and a latest completion to be minimised. Knows neither stages nor cores nor cycles; times are whole
// units of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace takt::sched::shop {

using Time = std::int64_t;
inline constexpr Time kNever = std::int64_t{1} << 50;

struct Use {
  std::uint32_t resource = 0;
  std::int64_t demand = 1;
};

// One way to run a job: how long, and what it holds meanwhile.
struct Mode {
  Time duration = 0;
  std::vector<Use> uses;
};

struct Job {
  std::vector<Mode> modes;  // at least one
  Time release = 0;
  Time deadline = kNever;  // of its end
  Time tail = 0;           // counts as end + tail in the objective; kNoTail: does not count
};
inline constexpr Time kNoTail = -kNever;

// start(after) >= end(before) + delay
struct Order {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  Time delay = 0;
};

// Objective: the maximum over jobs of end + tail.
struct Shop {
  std::vector<std::int64_t> capacities;  // by resource; 1: one job at a time
  std::vector<Job> jobs;
  std::vector<Order> orders;
};

struct Plan {
  std::vector<Time> starts;          // by job
  std::vector<std::uint32_t> modes;  // by job
  Time objective = 0;
};

// Sizes, indices, signs, demands within capacities. kConfiguration with the first fault.
Status check(const Shop& shop);
// Whether a plan keeps every rule and has the objective it states. Own code: shares nothing with the search. kGate.
Status verify(const Shop& shop, const Plan& plan);

// What no plan can be better than, without search: longest paths, the preemptive one-machine bound on every resource
// that holds one job, and the energy of windows on the others.
Time lower_bound(const Shop& shop);

// Best of a portfolio of priority rules, each job at its earliest place; nullopt where deadlines do not let it.
std::optional<Plan> list_schedule(const Shop& shop);

struct Limits {
  std::uint64_t conflicts = 1'000'000;  // of the search: the reproducible limit
  double seconds = 0;                   // 0: none; a result that this limit cut off depends on the machine
  std::uint64_t seed = 1;
  std::optional<Time> good_enough;  // stop at a plan that is not worse
};

enum class Proof { kOptimal, kFeasible, kInfeasible, kUnknown };

struct Outcome {
  Proof proof = Proof::kUnknown;
  std::optional<Plan> plan;
  Time lower_bound = 0;  // proved
  std::uint64_t conflicts = 0;
  bool cut_by_time = false;
};

// Branch and bound over orders of jobs that compete for a resource, learning from every conflict. Contract: check(shop)
// holds; a shop that it refuses is answered with Proof::kUnknown and no plan.
Outcome solve(const Shop& shop, const Limits& limits = {});

}  // namespace takt::sched::shop
