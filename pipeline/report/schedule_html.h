// The answer of `takt schedule` as one HTML file without network: verdict, Gantt, bounds against limits, slack, gap.
#pragma once

#include <string>
#include <vector>

#include "scheduler/analysis/explain.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// `command` reproduces the answer. The same answer gives the same bytes.
std::string schedule_html(const sched::Problem& problem, const sched::Answer& answer, const std::string& command,
                          const sched::Beside& beside = {});

// One hyperperiod of a table: a lane per core, slots with their wake-up and publish windows around the budget. Stage i
// in colour class "si" (i modulo 8).
std::string table_svg(const sched::Problem& problem, const sched::Schedule& schedule);

}  // namespace takt::pipeline
