// What the records measured, per stage and per core: the figures behind report.json and the histograms.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// Exact order statistics (nearest rank) of a set of durations.
struct Distribution {
  std::vector<Duration> sorted;
  [[nodiscard]] bool empty() const { return sorted.empty(); }
  [[nodiscard]] Duration quantile(double q) const;  // 0..1; zero when empty
  [[nodiscard]] Duration max() const { return sorted.empty() ? Duration{} : sorted.back(); }
  [[nodiscard]] Duration min() const { return sorted.empty() ? Duration{} : sorted.front(); }
};
Distribution distribution(std::vector<Duration> values);

struct StageStatistics {
  Distribution run;      // at work (sched::time_used); in lockstep the budget, by definition
  Distribution cpu;      // CPU time of all workers of the job
  Distribution launch;   // of jobs on a device: until their work was handed over
  Distribution device;   // and the device's own time; both empty for stages on the cores
  Distribution start;    // actual - nominal start
  Distribution publish;  // publication - completion
  std::uint64_t jobs = 0, published = 0, fill = 0;
  std::uint64_t classes[sched::kJobClasses] = {};  // by sched::JobClass; jobs of pipeline fill left out
  std::uint64_t repeats = 0, held_inputs = 0, missing_inputs = 0, repaired = 0;
  std::uint64_t page_faults = 0, page_faults_after_warmup = 0, major_faults_after_warmup = 0;
  std::uint64_t allocations_after_warmup = 0, most_copied = 0;
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;  // of the workers, during jobs
};
// By stage of the problem.
std::vector<StageStatistics> stage_statistics(const RunData& run);

// A budget that jobs of a stage run under: that of a variant on so many cores, as tables admit it or as the variant to
// which the stage degrades.
struct BudgetUse {
  std::uint32_t stage = 0, variant = 0;
  sched::Budget budget;
  struct Admitted {
    std::uint32_t mode = 0;
    std::int64_t jobs = 0;  // in a hyperperiod
  };
  std::vector<Admitted> admitted;  // none: only degraded to
  Distribution run, cpu;           // as in StageStatistics, of its jobs
};
// By stage, then in the order of the modes that have them first. Without modes, mode 0 is the run's table.
std::vector<BudgetUse> budget_uses(const RunData& run);

struct CoreShare {
  double planned = 0;  // share of the run's hyperperiods covered by slots
  double busy = 0;     // measured share; 0 in lockstep
};
// By core of the board.
std::vector<CoreShare> core_shares(const RunData& run);

}  // namespace takt::pipeline
