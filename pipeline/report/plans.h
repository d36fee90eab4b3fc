// The compiled graphs of a run: what the passes made of them, their memory, and the time of every step.
#pragma once

#include <string>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// Sums over the steps of a plan.
struct PlanTotals {
  std::uint64_t flops = 0, bytes_moved = 0;
  std::uint64_t runs = 0;     // of the step that ran least: whole runs
  Duration minimum, maximum;  // sums of the steps' own extremes: no run need have taken them
  Duration maps;              // share of the minimum that only finds which rows of sparse convolutions meet
};
PlanTotals totals(const PlanInfo& plan);

// The section's content; says so when no stage runs a plan.
std::string plans_html(const RunData& run);

}  // namespace takt::pipeline
