// What a run asks of the tables that it executes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

// The same table with `stage` on `cores` of its cores; kConfiguration, with the place of that budget, unless it fits
// the slots.
Result<sched::Schedule> with_cores(const sched::Problem& problem, sched::Schedule schedule, const std::string& stage,
                                   int cores);

// Segments on units are in an order in which jobs can be handed over (submissions.h). In virtual time the cores may do
// the work of units too: a table is tried, and gives its bytes, where its device is not. kConfiguration of a table with
// other segments.
Status check_segments(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes, bool lockstep);

// The longest time from a boundary to the end of a hyperperiod that begins there or behind a drain.
Duration longest_turn(const std::vector<sched::ModeTable>& modes);

// What a job of the stage may take, by mode and variant. 0 of one that the mode cannot run.
std::vector<std::vector<Duration>> budgets_of(const sched::Stage& stage, const std::vector<sched::ModeTable>& modes,
                                              std::size_t s);

// By mode: whether some job of it looks at the reference of the phase lock. The problem has one.
std::vector<bool> modes_that_read(const sched::Problem& problem, const std::vector<sched::ModeTable>& modes);

}  // namespace takt::pipeline
