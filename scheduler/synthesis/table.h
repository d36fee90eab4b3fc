// A table under construction: for one combination of rate, variant and core count per stage, where its jobs lie.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/model/model.h"
#include "scheduler/synthesis/timeline.h"

namespace takt::sched {

// One combination of what the problem leaves open.
using Choices = std::vector<Choice>;  // by stage

// Where the jobs of one stage lie. Starts ascend within [0, N); job k of hyperperiod h starts at starts[k] + h * N.
struct Placement {
  std::vector<std::uint32_t> cores;  // empty: not placed
  std::vector<Tick> starts;
  Tick length = 0;
  std::vector<std::int64_t> start_ns;  // rounded up
  std::vector<std::int64_t> end_ns;    // rounded down, may exceed H
  [[nodiscard]] bool placed() const { return !cores.empty(); }
};

class Table {
 public:
  Table(const Problem& problem, const Choices& choices);

  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] const Choices& choices() const { return choices_; }
  [[nodiscard]] const TickClock& clock() const { return clock_; }
  [[nodiscard]] const Placement& at(std::size_t stage) const { return placements_[stage]; }
  [[nodiscard]] const Timeline& core(std::size_t core) const { return cores_[core]; }
  [[nodiscard]] Tick period(std::size_t stage) const { return clock_.ticks / choices_[stage].rate; }

  // Slot length of a stage on these cores: w + budget + p, the windows of the slowest core, plus what rounding to
  // nanoseconds may take away.
  [[nodiscard]] Tick length(std::size_t stage, const std::vector<std::uint32_t>& cores) const;
  // Time a slot of that length takes on one core: its share of the housekeeping reserve, or the stage's slack, follows
  // it, so that the reserve is spread over the hyperperiod in proportion to the load.
  [[nodiscard]] Tick occupied(std::size_t stage, Tick length, std::size_t core) const;

  // All jobs of `stage` at the earliest free positions not before anchor + k * period, or, where a long slot of another
  // stage is in the way, with a smaller distance; nullopt when they do not fit. Does not change the table.
  [[nodiscard]] std::optional<Placement> fit(std::size_t stage, const std::vector<std::uint32_t>& cores,
                                             Tick anchor) const;
  void place(std::size_t stage, Placement placement);
  void remove(std::size_t stage);

  // Newest job of `producer` whose output is there when a job on `consumer_cores` starts at tick `start`; absolute
  // number, negative before hyperperiod 0.
  [[nodiscard]] std::int64_t newest(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores,
                                    Tick start) const;
  // Clock error in ticks where producer and consumer lie on different timelines, else 0.
  [[nodiscard]] Tick crossing(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores) const;

  // Least idle time over every window of one second holds on every core.
  [[nodiscard]] bool idle_enough() const;
  // What is resident and the arenas of jobs that run together fit the board's memory.
  [[nodiscard]] bool memory_enough() const;

 private:
  [[nodiscard]] std::optional<Placement> fit_spaced(std::size_t stage, const std::vector<std::uint32_t>& cores,
                                                    Tick anchor, Tick distance) const;
  const Problem* problem_;
  Choices choices_;
  TickClock clock_;
  Tick clock_error_ = 0;
  std::vector<Timeline> cores_;
  std::vector<Tick> load_;     // slot ticks by core
  std::vector<Tick> allowed_;  // most slot ticks by core
  std::vector<Placement> placements_;
};

}  // namespace takt::sched
