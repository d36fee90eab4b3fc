// Measures execution-time budgets: every stage, variant and admissible core count, back to back at full capacity, alone
// on the machine (DESIGN section 5, "Budgets"; other interference classes come later).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/status.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

struct ProfileOptions {
  std::uint64_t samples = 1000;  // fewer than 1000 makes the budgets `exploratory`
  std::uint64_t warm_up = 20;    // runs before the first sample, apart from it
  double margin = 1.3;           // budget = high-water mark * margin
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double, double)> progress;  // runs done, runs in all
};

struct ProfileRow {
  std::string stage, variant;
  sched::Budget budget;  // measured
  Duration median;
  Duration p99;
  Duration warm_up_max;  // of the warm-up runs, reported apart
};

struct Profile {
  std::vector<ProfileRow> rows;
  Duration wakeup_window;  // w and p of this machine
  Duration publish_window;
  std::string refused;  // real-time rights that were refused, in words
};

// kInterrupted when stopped.
Result<Profile> profile_stages(const PipelineConfig& config, const ProfileOptions& options);

// What goes into a budgets file.
sched::BudgetTable budget_table(const PipelineConfig& config, const Profile& profile);

}  // namespace takt::pipeline
