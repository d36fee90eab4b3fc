// List scheduling: each job in turn at its earliest place, in the order of a priority rule.
#include <algorithm>
#include <array>
#include <map>

#include "scheduler/shop/paths.h"
#include "scheduler/shop/shop.h"

namespace takt::sched::shop {
namespace {

// How much of a resource is held over time, as steps.
class Profile {
 public:
  explicit Profile(std::int64_t capacity) : capacity_(capacity) { steps_[-kNever] = 0; }

  // The earliest start >= from at which `demand` is free for `duration`.
  [[nodiscard]] Time earliest(Time from, Time duration, std::int64_t demand) const {
    Time start = from;
    auto step = std::prev(steps_.upper_bound(from));
    while (step != steps_.end() && step->first < start + duration) {
      if (step->second + demand > capacity_) {
        const auto next = std::next(step);
        start = next->first;  // the last step is 0, so there is a next one
      }
      ++step;
    }
    return start;
  }
  void take(Time start, Time end, std::int64_t demand) {
    if (start == end) return;
    const auto first = cut(start);
    const auto last = cut(end);
    for (auto step = first; step != last; ++step) step->second += demand;
  }

 private:
  std::map<Time, std::int64_t>::iterator cut(Time when) {
    const auto next = steps_.upper_bound(when);
    const auto here = std::prev(next);
    return here->first == when ? here : steps_.emplace_hint(next, when, here->second);
  }
  std::int64_t capacity_;
  std::map<Time, std::int64_t> steps_;
};

enum class Rule { kTail, kHeadThenTail, kSlack, kDeadline, kLongest, kEarliestEnd };

std::optional<Plan> schedule(const Shop& shop, const Paths& paths, Rule rule) {
  const std::size_t n = shop.jobs.size();
  std::vector<Profile> profiles;
  for (const std::int64_t capacity : shop.capacities) profiles.emplace_back(capacity);
  Plan plan{std::vector<Time>(n, 0), std::vector<std::uint32_t>(n, 0), -kNever};
  std::vector<Time> ready(n);
  std::vector<std::size_t> missing(n);
  std::vector<std::size_t> open;
  for (std::size_t j = 0; j < n; ++j) {
    ready[j] = shop.jobs[j].release;
    missing[j] = paths.before[j].size();
    if (missing[j] == 0) open.push_back(j);
  }
  struct Place {
    Time start = 0, end = 0;
    std::uint32_t mode = 0;
  };
  const auto place_of = [&](std::size_t j) {
    Place best{0, kNever, 0};
    for (std::uint32_t m = 0; m < shop.jobs[j].modes.size(); ++m) {
      const Mode& mode = shop.jobs[j].modes[m];
      Time start = ready[j];
      for (bool moved = true; moved;) {
        moved = false;
        for (const Use& use : mode.uses) {
          const Time at = profiles[use.resource].earliest(start, mode.duration, use.demand);
          moved |= at != start;
          start = at;
        }
      }
      if (start + mode.duration < best.end) best = {start, start + mode.duration, m};
    }
    return best;
  };
  const auto key = [&](std::size_t j) -> std::array<Time, 2> {
    const Time tail = paths.tail[j] + paths.shortest[j];
    switch (rule) {
      case Rule::kTail: return {-tail, paths.head[j]};
      case Rule::kHeadThenTail: return {ready[j], -tail};
      case Rule::kSlack: return {ready[j] - tail, 0};
      case Rule::kDeadline: return {paths.latest[j] - paths.shortest[j], -tail};
      case Rule::kLongest: return {-paths.shortest[j], -tail};
      case Rule::kEarliestEnd: return {place_of(j).end, -tail};
    }
    return {};
  };
  while (!open.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < open.size(); ++i) {
      if (key(open[i]) < key(open[best])) best = i;
    }
    const std::size_t j = open[best];
    open[best] = open.back();
    open.pop_back();
    std::sort(open.begin(), open.end());
    const Place place = place_of(j);
    if (place.end > shop.jobs[j].deadline) return std::nullopt;
    plan.starts[j] = place.start;
    plan.modes[j] = place.mode;
    if (shop.jobs[j].tail != kNoTail) plan.objective = std::max(plan.objective, place.end + shop.jobs[j].tail);
    for (const Use& use : shop.jobs[j].modes[place.mode].uses) {
      profiles[use.resource].take(place.start, place.end, use.demand);
    }
    for (const std::uint32_t i : paths.after[j]) {
      const Order& order = shop.orders[i];
      ready[order.after] = std::max(ready[order.after], place.end + order.delay);
      if (--missing[order.after] == 0) open.push_back(order.after);
    }
  }
  return plan;
}

}  // namespace

std::optional<Plan> list_schedule(const Shop& shop) {
  const Paths paths(shop);
  std::optional<Plan> best;
  for (const Rule rule :
       {Rule::kTail, Rule::kHeadThenTail, Rule::kSlack, Rule::kDeadline, Rule::kLongest, Rule::kEarliestEnd}) {
    std::optional<Plan> plan = schedule(shop, paths, rule);
    if (plan && (!best || plan->objective < best->objective)) best = std::move(plan);
  }
  return best;
}

}  // namespace takt::sched::shop
