// Exact search over cyclic tables for one combination of choices: home cores, orders modulo H, and which job reads
// which, as decisions over differences of starts (differences.h).
//
// A limit on a chain is a statement about threads: from every job of its first stage (or every sample of a locked
// sensor) a path of jobs, each starting when the one before is published, ends in time. Newest-value reading can only
// do better, so the threads are neither more nor less than the limit:
//   reaction, until replaced: for every source job b a thread with end - start(b - 1) <= limit - period - delay
//   age at output:            for every output a thread backwards with end - start(source) <= limit - period - delay
//   latency:                  for every b one of
//                               end - start(b - 1) <= limit - delay
//                               end - start(b) <= limit - delay - period
//                               b is never used: its earliest output is that of b + 1, which does not rely on b
// (scheduler/analysis/README.md derives the quantities.) Locked sensors: the sample's arrival stands for the source.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/synthesis/deadline.h"
#include "scheduler/synthesis/table.h"

namespace takt::sched {

class ExactSearch {
 public:
  struct Outcome {
    enum class Stop {
      kTable,  // `table` has no bound / limit above the ratio
      kNone,   // no table has all of them at or below `refuted`, at least the ratio and at most 1.5 times as large
      kOpen,   // not decided; `table` may hold one that came out
    };
    Stop stop = Stop::kOpen;
    std::optional<Table> table;
    double refuted = 0;
    std::uint64_t conflicts = 0;
  };

  ExactSearch(const Problem& problem, const Choices& choices) : problem_(&problem), choices_(choices) {}

  // Whether the problem is of a size that a search may decide, and made of what it knows: jobs on cores, of one
  // segment.
  [[nodiscard]] bool fits(double ratio) const;
  // Looks for a table whose bounds are all at most `ratio` times their limits, for at most `conflicts` conflicts;
  // begins near `like`, a complete table of the same choices, if there is one.
  Outcome find(double ratio, const Table* like, std::uint64_t conflicts, const Deadline& deadline = {}) const;

 private:
  const Problem* problem_;
  Choices choices_;
};

}  // namespace takt::sched
