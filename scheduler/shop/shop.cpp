#include "scheduler/shop/shop.h"

#include <algorithm>
#include <map>

#include "scheduler/shop/paths.h"

namespace takt::sched::shop {
namespace {

constexpr Time kLargest = kNever / 1024;  // of a figure of the caller: sums stay far from overflow

std::string job_text(std::size_t job) { return "job " + std::to_string(job); }

}  // namespace

Status check(const Shop& shop) {
  for (const std::int64_t capacity : shop.capacities) {
    if (capacity < 1 || capacity > kLargest) return fail(Code::kConfiguration, "a resource has no capacity");
  }
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    const Job& job = shop.jobs[j];
    if (job.modes.empty()) return fail(Code::kConfiguration, job_text(j) + " has no way to run");
    if (job.release < 0 || job.release > kLargest || job.deadline < 0 ||
        (job.deadline > kLargest && job.deadline != kNever) || job.tail > kLargest ||
        (job.tail < -kLargest && job.tail != kNoTail)) {
      return fail(Code::kConfiguration, job_text(j) + " has a time out of range");
    }
    for (const Mode& mode : job.modes) {
      if (mode.duration < 0 || mode.duration > kLargest) {
        return fail(Code::kConfiguration, job_text(j) + " has a duration out of range");
      }
      for (const Use& use : mode.uses) {
        if (use.resource >= shop.capacities.size() || use.demand < 1 || use.demand > shop.capacities[use.resource]) {
          return fail(Code::kConfiguration, job_text(j) + " asks for more than a resource has, or an unknown one");
        }
      }
    }
  }
  for (const Order& order : shop.orders) {
    if (order.before >= shop.jobs.size() || order.after >= shop.jobs.size()) {
      return fail(Code::kConfiguration, "an order names an unknown job");
    }
    if (order.delay < 0 || order.delay > kLargest)
      return fail(Code::kConfiguration, "an order has a delay out of range");
  }
  if (!Paths::acyclic(shop)) return fail(Code::kConfiguration, "the orders go around in a circle");
  return {};
}

Status verify(const Shop& shop, const Plan& plan) {
  const auto refuse = [](const std::string& why) { return fail(Code::kGate, "the plan is not valid: " + why); };
  if (plan.starts.size() != shop.jobs.size() || plan.modes.size() != shop.jobs.size()) {
    return refuse("it is for another number of jobs");
  }
  std::vector<Time> ends;
  Time objective = -kNever;
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    const Job& job = shop.jobs[j];
    if (plan.modes[j] >= job.modes.size()) return refuse(job_text(j) + " runs in an unknown way");
    ends.push_back(plan.starts[j] + job.modes[plan.modes[j]].duration);
    if (plan.starts[j] < job.release) return refuse(job_text(j) + " begins before its release");
    if (ends[j] > job.deadline) return refuse(job_text(j) + " ends after its deadline");
    if (job.tail != kNoTail) objective = std::max(objective, ends[j] + job.tail);
  }
  for (const Order& order : shop.orders) {
    if (plan.starts[order.after] < ends[order.before] + order.delay) {
      return refuse(job_text(order.after) + " begins before " + job_text(order.before) + " is through");
    }
  }
  for (std::uint32_t r = 0; r < shop.capacities.size(); ++r) {
    std::map<Time, std::int64_t> change;  // ends count before starts at the same instant
    for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
      for (const Use& use : shop.jobs[j].modes[plan.modes[j]].uses) {
        if (use.resource != r || ends[j] == plan.starts[j]) continue;
        change[plan.starts[j]] += use.demand;
        change[ends[j]] -= use.demand;
      }
    }
    std::int64_t level = 0;
    for (const auto& [when, by] : change) {
      level += by;
      if (level > shop.capacities[r]) {
        return refuse("resource " + std::to_string(r) + " holds " + std::to_string(level) + " of " +
                      std::to_string(shop.capacities[r]) + " at " + std::to_string(when));
      }
    }
  }
  if (objective != plan.objective) {
    return refuse("its objective is " + std::to_string(objective) + ", stated is " + std::to_string(plan.objective));
  }
  return {};
}

Time lower_bound(const Shop& shop) {
  const Paths paths(shop);
  Time bound = -kNever;
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    if (paths.tail[j] > kNoTail) bound = std::max(bound, paths.head[j] + paths.shortest[j] + paths.tail[j]);
  }
  // Jobs that must use a resource: of all with head >= r and tail >= q, the last one ends no earlier than
  // r + work / capacity, and q follows it. With capacity 1 this is the preemptive one-machine bound.
  for (std::uint32_t r = 0; r < shop.capacities.size(); ++r) {
    std::vector<std::size_t> members;
    std::vector<std::int64_t> work(shop.jobs.size(), 0);
    for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
      Time least = kNever;
      for (const Mode& mode : shop.jobs[j].modes) {
        Time here = 0;
        for (const Use& use : mode.uses) here += use.resource == r ? use.demand * mode.duration : 0;
        least = std::min(least, here);
      }
      work[j] = least;
      if (least > 0 && paths.tail[j] > kNoTail) members.push_back(j);
    }
    std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return paths.head[a] != paths.head[b] ? paths.head[a] > paths.head[b] : a < b;
    });
    std::vector<Time> tails;
    for (const std::size_t j : members) tails.push_back(paths.tail[j]);
    std::sort(tails.begin(), tails.end());
    tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
    for (const Time tail : tails) {
      std::int64_t sum = 0;
      for (const std::size_t j : members) {
        if (paths.tail[j] < tail) continue;
        sum += work[j];
        const std::int64_t capacity = shop.capacities[r];
        bound = std::max(bound, paths.head[j] + (sum + capacity - 1) / capacity + tail);
      }
    }
  }
  return bound;
}

}  // namespace takt::sched::shop
