#include "scheduler/synthesis/table.h"

#include <algorithm>
#include <cmath>

namespace takt::sched {
namespace {

constexpr Duration kRounding{2};  // start rounded up and end rounded down: less than one nanosecond each

std::vector<std::int64_t> rates_of(const Choices& choices) {
  std::vector<std::int64_t> rates;
  for (const Choice& choice : choices) rates.push_back(choice.rate);
  return rates;
}

}  // namespace

Table::Table(const Problem& problem, const Choices& choices)
    : problem_(&problem),
      choices_(choices),
      clock_{problem.hyperperiod, ticks_per_hyperperiod(problem.hyperperiod, rates_of(choices))},
      clock_error_(clock_.ticks_up(problem.board.clock_error)),
      cores_(problem.board.cores.size(), Timeline(clock_.ticks)),
      load_(problem.board.cores.size(), 0),
      placements_(problem.stages.size()) {
  for (const Core& core : problem.board.cores) {
    allowed_.push_back(static_cast<Tick>(std::floor(static_cast<double>(clock_.ticks) * (1.0 - idle_share(core)))));
  }
}

Tick Table::length(std::size_t stage, const std::vector<std::uint32_t>& cores) const {
  Duration wakeup;
  Duration publish;
  for (const std::uint32_t core : cores) {
    wakeup = std::max(wakeup, problem_->board.cores[core].wakeup_window);
    publish = std::max(publish, problem_->board.cores[core].publish_window);
  }
  return clock_.ticks_up(wakeup + choices_[stage].budget.time + publish + kRounding);
}

Tick Table::occupied(std::size_t stage, Tick length, std::size_t core) const {
  const double share = problem_->board.cores[core].reserve;
  const auto with_reserve = static_cast<Tick>(std::ceil(static_cast<double>(length) / (1.0 - share)));
  return std::max(with_reserve, length + clock_.ticks_up(problem_->stages[stage].slack));
}

std::optional<Placement> Table::fit(std::size_t stage, const std::vector<std::uint32_t>& cores, Tick anchor) const {
  for (std::int64_t quarters = 4; quarters >= 0; --quarters) {
    std::optional<Placement> placement = fit_spaced(stage, cores, anchor, period(stage) * quarters / 4);
    if (placement || choices_[stage].rate == 1) return placement;
  }
  return std::nullopt;
}

std::optional<Placement> Table::fit_spaced(std::size_t stage, const std::vector<std::uint32_t>& cores, Tick anchor,
                                           Tick distance) const {
  Placement placement;
  placement.length = length(stage, cores);
  const std::int64_t rate = choices_[stage].rate;
  Tick longest = 0;
  std::vector<Tick> taken;
  for (const std::uint32_t core : cores) {
    if (load_[core] + placement.length * rate > allowed_[core]) return std::nullopt;
    taken.push_back(occupied(stage, placement.length, core));
    longest = std::max(longest, taken.back());
  }
  Tick earliest = anchor;
  placement.starts.reserve(static_cast<std::size_t>(rate));
  for (std::int64_t k = 0; k < rate; ++k) {
    const Tick wanted = std::max(earliest, anchor + k * distance);
    Tick start = wanted;
    // All cores of a gang must be free at one common start.
    for (std::size_t agreed = 0, i = 0; agreed < cores.size(); i = (i + 1) % cores.size()) {
      const std::optional<Tick> free = cores_[cores[i]].first_fit(start, taken[i]);
      if (!free || *free - wanted > clock_.ticks) return std::nullopt;
      agreed = *free == start ? agreed + 1 : 1;
      start = *free;
    }
    placement.starts.push_back(start);
    earliest = start + longest;
  }
  if (earliest > placement.starts.front() + clock_.ticks) return std::nullopt;
  for (Tick& start : placement.starts) start = floor_mod(start, clock_.ticks);
  std::sort(placement.starts.begin(), placement.starts.end());
  placement.cores = cores;
  for (const Tick start : placement.starts) {
    placement.start_ns.push_back(clock_.start_at(0, start).ns);
    placement.end_ns.push_back(clock_.end_at(0, start + placement.length).ns);
  }
  return placement;
}

void Table::place(std::size_t stage, Placement placement) {
  for (const std::uint32_t core : placement.cores) {
    for (const Tick start : placement.starts) {
      cores_[core].insert(start, occupied(stage, placement.length, core), static_cast<std::uint32_t>(stage));
    }
    load_[core] += placement.length * choices_[stage].rate;
  }
  placements_[stage] = std::move(placement);
}

void Table::remove(std::size_t stage) {
  Placement& placement = placements_[stage];
  for (const std::uint32_t core : placement.cores) {
    cores_[core].erase(static_cast<std::uint32_t>(stage));
    load_[core] -= placement.length * choices_[stage].rate;
  }
  placement = {};
}

Tick Table::crossing(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores) const {
  const bool one_timeline = consumer_cores.size() == 1 && producer.cores.back() == consumer_cores.front();
  return one_timeline ? 0 : clock_error_;
}

std::int64_t Table::newest(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores,
                           Tick start) const {
  const auto jobs = static_cast<std::int64_t>(producer.starts.size());
  // A job is there when start + length + crossing <= the consumer's start.
  const Tick latest_start = start - producer.length - crossing(producer, consumer_cores);
  const std::int64_t turn = floor_div(latest_start, clock_.ticks);
  const Tick rest = latest_start - turn * clock_.ticks;
  const auto after = std::upper_bound(producer.starts.begin(), producer.starts.end(), rest);
  return turn * jobs + (after - producer.starts.begin()) - 1;
}

bool Table::memory_enough() const {
  if (problem_->board.memory == 0) return true;
  std::int64_t resident = 0;
  std::vector<std::pair<Tick, std::int64_t>> changes;  // what is given back comes first
  for (std::size_t stage = 0; stage < placements_.size(); ++stage) {
    const Variant& variant = problem_->stages[stage].variants[choices_[stage].variant];
    resident += variant.resident;
    for (const Tick start : placements_[stage].starts) {
      for (const Tick turn : {Tick{0}, clock_.ticks}) {
        changes.emplace_back(start + turn, variant.arena);
        changes.emplace_back(start + turn + placements_[stage].length, -variant.arena);
      }
    }
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [when, by] : changes) most = std::max(most, now += by);
  return resident + most <= problem_->board.memory;
}

bool Table::idle_enough() const {
  const double window = 1e9 * static_cast<double>(clock_.ticks) / static_cast<double>(clock_.hyperperiod.ns);
  const auto second = static_cast<Tick>(std::floor(window));
  const std::int64_t turns = second / clock_.ticks;
  const Tick rest = second - turns * clock_.ticks;
  for (std::size_t core = 0; core < cores_.size(); ++core) {
    std::vector<std::pair<Tick, Tick>> busy;  // two turns, so that a window may wrap
    for (std::size_t stage = 0; stage < placements_.size(); ++stage) {
      const Placement& placement = placements_[stage];
      if (std::find(placement.cores.begin(), placement.cores.end(), core) == placement.cores.end()) continue;
      for (const Tick start : placement.starts) {
        for (Tick turn = -1; turn <= 1; ++turn) {
          busy.emplace_back(start + turn * clock_.ticks, start + turn * clock_.ticks + placement.length);
        }
      }
    }
    Tick worst = 0;  // the fullest window of `rest` ticks begins at the start of a slot or ends at an end
    for (const auto& [start, end] : busy) {
      for (const Tick from : {start, end - rest}) {
        if (from < 0 || from >= clock_.ticks) continue;
        Tick sum = 0;
        for (const auto& [other_start, other_end] : busy) {
          sum += std::max<Tick>(0, std::min(other_end, from + rest) - std::max(other_start, from));
        }
        worst = std::max(worst, sum);
      }
    }
    const auto full = static_cast<double>(turns * load_[core] + worst);
    if (full > window * (1.0 - kLeastIdleShare)) return false;
  }
  return true;
}

}  // namespace takt::sched
