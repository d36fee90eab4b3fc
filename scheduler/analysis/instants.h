// A schedule as instants: absolute jobs of every stage in nanoseconds and the jobs they are bound to. Private to the
// analysis.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched::analysis {

class Instants {
 public:
  // Expects every stage to have as many slots as its rate, job numbers 0 .. rate - 1.
  explicit Instants(const Problem& problem, const Schedule& schedule);

  // Absolute job numbers of any sign.
  [[nodiscard]] std::int64_t start(std::uint32_t stage, std::int64_t job) const;
  [[nodiscard]] std::int64_t end(std::uint32_t stage, std::int64_t job) const;
  // Absolute producer job of `stage`'s input from `producer`.
  [[nodiscard]] std::int64_t bound(std::uint32_t stage, std::uint32_t producer, std::int64_t job) const;
  // Another end of a job of hyperperiod 0.
  void set_end(std::uint32_t stage, std::size_t job, std::int64_t ns) { ends_[stage][job] = ns; }
  [[nodiscard]] std::int64_t jobs(std::uint32_t stage) const { return rates_[stage]; }

 private:
  struct Turn {
    std::int64_t turn;
    std::size_t rest;
  };
  [[nodiscard]] Turn split(std::uint32_t stage, std::int64_t job) const;
  std::int64_t hyperperiod_;
  std::vector<std::int64_t> rates_;
  std::vector<std::vector<std::int64_t>> starts_, ends_;  // by stage, job
  struct Source {
    std::uint32_t producer;
    std::vector<std::int64_t> jobs;  // absolute, by job of the consumer in hyperperiod 0
  };
  std::vector<std::vector<Source>> sources_;  // by stage
};

// The bounds of walk() on one view of the table that many chains share.
std::array<Duration, kQuantities> bounds_of(const Problem& problem, const Instants& instants, std::uint32_t chain);

}  // namespace takt::sched::analysis
