// Which jobs wait and which may start where there is no table (baselines.h): decisions only, no clock of its own. The
// simulation asks with virtual time, the executor (pipeline/assembly/event_executor) with the machine's.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/report/ways.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// A job of a stage and the instant at which it may start, in ns of table time.
struct Release {
  std::int64_t at = 0;
  std::uint32_t stage = 0;
  std::uint64_t job = 0;
  std::int64_t deadline = 0;  // at + the stage's period
};

// Everything that is released before the end of hyperperiod `hyperperiods` - 1, ascending. `arrivals`: of each sensor's
// samples, ascending, in ns of table time; FIFO and EDF release a stage by those of its first sensor, where it takes
// each of them, else by its period.
std::vector<Release> releases(const sched::Problem& problem, const sched::Schedule& table, Way way,
                              std::uint64_t hyperperiods, const std::vector<std::vector<std::int64_t>>& arrivals);

// After construction nothing allocates.
class ReadyQueue {
 public:
  static constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

  ReadyQueue(const sched::Problem& problem, const sched::Schedule& table, Way way, std::vector<Release> releases);

  // The next instant at which something is released; kFar: nothing more will be.
  [[nodiscard]] std::int64_t next_release() const { return next_ < coming_.size() ? coming_[next_].at : kFar; }
  // Takes in what is due at `now`. Returns released jobs that will not run: each stage's queue holds one, the newest;
  // an epoch whose predecessor is not over when it should begin falls out. Valid until the next call.
  std::span<const Release> release_until(std::int64_t now);
  // The jobs that start now, in the order of their starts; they run until complete(). Valid until the next call.
  std::span<const Release> start_ready();
  void complete(std::uint32_t stage);
  // No release that is still to come counts any more.
  void cut() { coming_.resize(next_); }
  [[nodiscard]] bool over() const { return next_ == coming_.size() && idle(); }
  [[nodiscard]] const std::vector<std::uint32_t>& cores(std::uint32_t stage) const { return cores_[stage]; }

 private:
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool inputs_ready(std::uint32_t stage) const;
  [[nodiscard]] bool core_taken(std::uint32_t stage) const;

  const sched::Problem& problem_;
  Way way_;
  std::vector<Release> coming_;
  std::size_t next_ = 0;
  std::vector<std::vector<std::uint32_t>> cores_;  // by stage
  std::vector<std::optional<Release>> waiting_;    // by stage
  std::vector<bool> running_;                      // by stage
  std::vector<bool> taken_;                        // by core, while jobs are chosen
  std::vector<Release> dropped_, order_, started_;
};

}  // namespace takt::pipeline
