// The answer of `takt schedule` as one HTML file without network: verdict, Gantt, bounds against limits, slack, gap.
#pragma once

#include <string>
#include <vector>

#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/modes.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// `command` reproduces the answer. The same answer gives the same bytes.
std::string schedule_html(const sched::Problem& problem, const sched::Answer& answer, const std::string& command,
                          const sched::Beside& beside = {});

// The same for a set of modes: every mode, and the bounds across every permitted change.
std::string modes_html(const sched::ModeSet& set, const std::vector<sched::Answer>& answers,
                       const sched::ModesAnswer& judged, const std::string& command);

// One hyperperiod of a table: a lane per core and unit, slots with their wake-up and publish windows around the budget.
// Stage i in colour class "si" (i modulo 8).
std::string table_svg(const sched::Problem& problem, const sched::Schedule& schedule);

}  // namespace takt::pipeline
