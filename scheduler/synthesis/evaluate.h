// Chain bounds of a table under construction, fast enough for a search. Definitions and derivation:
// scheduler/analysis/README.md; the analysis computes the same figures by other means.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/synthesis/table.h"

namespace takt::sched {

// What a search compares, most important first.
struct Score {
  double worst = 0;          // maximum over chains and limits of bound / limit
  double sum = 0;            // sum of the same, plus latency / H of chains without a limit
  double jitter = 0;         // sum over stages of (longest - shortest distance of two starts) / period
  double disparity = 0;      // maximum over disparity limits of bound / limit; above 1 it comes before all else
  double disparity_sum = 0;  // sum of the same, beside the jitter
  [[nodiscard]] bool feasible() const { return worst <= 1.0 && disparity <= 1.0; }
  // Differences below one in a million are ties, so that a later criterion may decide.
  [[nodiscard]] bool better_than(const Score& other) const;
};

class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);

  // The four bounds of the first `stages` stages of a chain, all of them placed.
  [[nodiscard]] std::array<Duration, kQuantities> bounds(const Table& table, const Chain& chain,
                                                         std::size_t stages) const;
  // Over all chains, each as far as its stages are placed; what is missing counts with its shortest length. With
  // `only`, chains without that stage are left out.
  [[nodiscard]] Score score(const Table& table, std::optional<std::size_t> only = std::nullopt) const;
  // The bounds of a complete table with the terms of the latency in words.
  [[nodiscard]] ChainBound describe(const Table& table, std::uint32_t chain) const;
  // The largest disparity that a limit speaks of; its stages are placed.
  [[nodiscard]] DisparityBound disparity(const Table& table, const Disparity& limit) const;

 private:
  // One output of a chain in the walk; instants in ns of the table, absolute.
  struct Output {
    std::int64_t job = 0;     // of the last stage
    std::int64_t source = 0;  // job of the first stage it goes back to
    std::int64_t end = 0;
    std::int64_t start = 0;  // of the source job
  };
  struct Walk {
    std::vector<Output> outputs;  // one hyperperiod and the output after it
    std::int64_t before = 0;      // start of the source of the output before the first
    std::int64_t before_job = 0;
  };
  [[nodiscard]] Walk walk(const Table& table, const Chain& chain, std::size_t stages) const;
  struct Bounds {
    std::array<std::int64_t, kQuantities> ns{};
    std::size_t latency_output = 0;  // the output with the worst latency
    std::int64_t latency_wait = 0;   // from its sample's latest arrival to the start of the first stage
  };
  [[nodiscard]] Bounds evaluate(const Table& table, const Chain& chain, std::size_t stages) const;
  // Oldest and newest stamp that the newest sample at a latch may have.
  struct Stamps {
    std::int64_t oldest = 0;
    std::int64_t newest = 0;
  };
  [[nodiscard]] Stamps stamps_at(std::uint32_t sensor, std::int64_t latch) const;
  void free_running(const Walk& walk, const Sensor& sensor, Bounds& out) const;
  void locked(const Walk& walk, const Sensor& sensor, const SamplePattern& pattern, std::int64_t hyperperiod,
              Bounds& out) const;

  const Problem* problem_;
  std::vector<std::optional<SamplePattern>> patterns_;  // by sensor
  std::vector<Sensor> sensors_;                         // in table time
  std::vector<std::vector<std::size_t>> chains_of_;     // by stage
  // By disparity limit: the part of each of its chains that ends in its stage; and how many hyperperiods its sensors
  // take to line up.
  struct Members {
    std::vector<Chain> chains;
    std::int64_t turns = 1;
  };
  std::vector<Members> members_;
};

}  // namespace takt::sched
