// The stages of a run under other ways to schedule them: what the table is worth beside them.
//
//   table   the admitted table: starts never move, outputs at the end of their slots, unfinished jobs lose their core
//           at the end of slot and slack and go on in its gaps
//   fifo    event-driven: a stage is released by each sample of its first sensor (by its period where it takes no
//           sensor or not every sample), and runs to completion on its home cores in the order of releases; outputs at
//           completion
//   edf     the same in the order of deadlines: release + the stage's period
//   epoch   epochs of the fastest stage's period; all jobs of an epoch begin with it, in the order of their inputs, and
//           a barrier ends it: an epoch that is not over at its end makes the next ones fall out
//
// Simulated, samples come as the rig's model says, with its longest delay, and each job takes what the run recorded for
// it (in lockstep: the profile's high-water mark, or the budget), times the load. For real (RunOptions::way, load), the
// same stages run on the same drive and cores, and compute until each job has taken its CPU time that many times.
//
// Other ways know one table: of a pipeline with modes its first mode is compared, alone; changes of mode are the
// table's own.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/report/run_data.h"
#include "pipeline/report/ways.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

// Other ways run each job in one piece on its home cores: they say nothing about a table with jobs in several segments,
// whose work is partly on units that they do not know.
bool in_one_piece(const sched::Schedule& table);

// The whole problem with the limits of one of its modes; chains that the mode lacks have no stages.
sched::Problem problem_of_mode(const sched::Problem& whole, const sched::ModeTable& mode);

// Of a table whose jobs are in one piece.
Baseline simulate(const RunData& run, Way way, double load);
// Every way at every load, loads in the outer order; none of a table with segments.
std::vector<Baseline> baselines(const RunData& run);

// Runs of other ways are compared over so many hyperperiods: those of the log that `run` had in whole, at most
// kMostHyperperiods.
inline constexpr std::uint64_t kMostHyperperiods = 100;
std::uint64_t compared_hyperperiods(const RunData& run);
// What a real run came to. An output at either edge of the compared hyperperiods may make a difference of one.
Baseline measure(const RunData& run, Way way, double load, std::uint64_t hyperperiods);

}  // namespace takt::pipeline
