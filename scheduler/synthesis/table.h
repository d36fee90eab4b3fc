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
// Jobs of one stage never overlap, so ends ascend too; they may exceed N.
struct Placement {
  std::vector<std::uint32_t> cores;  // empty: not placed
  std::vector<Tick> starts;          // of the first segments
  std::vector<Tick> ends;            // of the last segments
  Tick length = 0;                   // shortest distance of the two: no segment waits for its resource
  // Start of every segment after its job's start, by job and segment; empty for jobs of one segment.
  std::vector<std::vector<Tick>> offsets;
  std::vector<std::int64_t> start_ns;  // rounded up
  std::vector<std::int64_t> end_ns;    // rounded down, may exceed H
  [[nodiscard]] bool placed() const { return !cores.empty(); }
  [[nodiscard]] Tick segment_start(std::size_t job, std::size_t segment) const {
    return starts[job] + (offsets.empty() ? 0 : offsets[job][segment]);
  }
};

// One segment of a stage's jobs on given home cores: its slot, and what that takes from which lines.
struct Step {
  struct Take {
    std::size_t line = 0;  // Table::line
    Tick occupied = 0;     // from the slot's start on
  };
  Tick offset = 0;  // after the job's start, when no segment waits
  Tick length = 0;  // of the slot
  bool on_cores = true;
  std::vector<Take> takes;
};

class Table {
 public:
  Table(const Problem& problem, const Choices& choices);

  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] const Choices& choices() const { return choices_; }
  [[nodiscard]] const TickClock& clock() const { return clock_; }
  [[nodiscard]] const Placement& at(std::size_t stage) const { return placements_[stage]; }
  // Occupancy of every unary resource: the cores, then the units, then the mutexes.
  [[nodiscard]] const Timeline& line(std::size_t line) const { return lines_[line]; }
  [[nodiscard]] Tick period(std::size_t stage) const { return clock_.ticks / choices_[stage].rate; }

  // The segments of a stage's jobs on these cores. A slot is w + budget long, and p longer where the job ends: windows
  // of the slowest core, plus what rounding to nanoseconds may take away. Behind it a core stays free for its share of
  // the housekeeping reserve, or for slack and switch cost, so that the reserve is spread over the hyperperiod in
  // proportion to the load; a unit for the guard; units, mutexes and, where something runs alone, cores for the clock
  // error.
  [[nodiscard]] std::vector<Step> steps(std::size_t stage, const std::vector<std::uint32_t>& cores) const;
  // How long a slot of that length takes a core, with what stays free behind it.
  [[nodiscard]] Tick occupied(std::size_t stage, Tick length, std::size_t core) const;
  // From a job's start to its end, when no segment waits.
  [[nodiscard]] Tick length(std::size_t stage, const std::vector<std::uint32_t>& cores) const;

  // All jobs of `stage` at the earliest free positions not before anchor + k * period, or, where a long slot of another
  // stage is in the way, with a smaller distance; nullopt when they do not fit. Segments that must wait pull those
  // before them along where there is room. Does not change the table.
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
  [[nodiscard]] bool one_segment(std::size_t stage) const;
  [[nodiscard]] std::optional<Placement> fit_spaced(std::size_t stage, const std::vector<std::uint32_t>& cores,
                                                    Tick anchor, Tick distance) const;
  [[nodiscard]] std::optional<Placement> fit_segments(std::size_t stage, const std::vector<std::uint32_t>& cores,
                                                      const std::vector<Step>& steps, Tick anchor, Tick distance) const;
  [[nodiscard]] std::optional<std::size_t> arena_line(std::size_t stage) const;
  const Problem* problem_;
  Choices choices_;
  TickClock clock_;
  Tick clock_error_ = 0;
  Tick behind_ = 0;  // every slot on a core, at least
  std::vector<Timeline> lines_;
  std::vector<Tick> load_;     // slot ticks by core
  std::vector<Tick> allowed_;  // most slot ticks by core
  std::vector<Placement> placements_;
};

}  // namespace takt::sched
