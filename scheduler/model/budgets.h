// Measured budgets, kept apart from the pipeline file: what `takt profile` found, and how it gets into a problem.
//
//   board: generic2
//   machine: "x86-64, 2 cores, kernel 6.1"
//   wakeup_window_us: 340       # optional: w and p as measured there, for every core
//   publish_window_us: 340
//   budgets:
//     - {stage: camera_detect, variant: full, cores: 1, budget_ms: 5.2, high_water_ms: 4, margin: 1.3, samples: 1000,
//        provenance: profiled, interference: any, beside: [alone, stages, memory]}
//     - {stage: lidar_detect, ..., budget_ms: 5, segments_ms: [1, 3, 1]}    # of each segment; budget_ms is their sum
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

struct StageBudget {
  std::string stage;
  std::string variant;
  Budget budget;
  std::vector<std::string> beside = {};  // what ran beside it when it was measured, in the profiler's words
};

struct BudgetTable {
  std::string board;    // Board::name of the machine they were taken on
  std::string machine;  // in words
  std::optional<Duration> wakeup_window, publish_window;
  std::vector<StageBudget> budgets;
};

// Budget from a measured maximum: high-water mark * margin, rounded up; profiled with at least 1000 samples, else
// exploratory.
Budget budget_from(int cores, Duration high_water, double margin, std::uint64_t samples);

// Replaces budgets of the same stage, variant and core count; adds one for a core count that was not declared. Budgets
// that the table does not name stay. Segments keep their places, guards and mutexes. Windows, where given, replace
// those of every core. kConfiguration, with the budget's place, when stage or variant is unknown, jobs have other
// segments or the board is another one.
Status apply_budgets(Problem& problem, const BudgetTable& table);

// The file's text: readable back without loss.
std::string to_yaml(const BudgetTable& table);
// Written atomically; kEnvironment when that fails.
Status save_budgets(const std::string& path, const BudgetTable& table);

}  // namespace takt::sched
