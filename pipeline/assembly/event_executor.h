// Runs the stages of a table without its starts: event-driven or in epochs, in real time (pipeline/report/baselines.h).
// What such systems do, done well, so that the table has something to be compared with:
//
//   one thread per core (SCHED_FIFO, pinned, as the table's workers are); whichever is free takes what its stages'
//   queue says is next and runs it to completion, without changing threads; a job on several cores waits until all are
//   free.
//
// Nothing takes a core from a job, and no bound is given for anything.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "pipeline/report/ready_queue.h"
#include "runtime/base/status.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

struct EventOptions {
  Way way = Way::kFifo;  // any but the table
  std::uint64_t hyperperiods = 0;
  const std::atomic<bool>* stop = nullptr;  // releases end; what was released is finished
};

// Blocks until everything that was released has run or was dropped. Records as those of a dispatcher: a job's nominal
// start is the instant at which it began and its inputs were selected, its slot ends a period after its release; one
// that was released and dropped is skipped (kPreviousRunning). Of a mode's table, with the inputs that the mode reads.
// `arrivals` as for releases(). kEnvironment when threads cannot be created.
Result<sched::DispatchResult> run_without_table(const sched::Problem& problem, const sched::ModeTable& mode,
                                                const std::vector<std::vector<std::int64_t>>& arrivals,
                                                const std::vector<sched::StageHost*>& hosts,
                                                const EventOptions& options,
                                                const std::function<void(std::size_t, const sched::JobRecord&)>& sink);

}  // namespace takt::pipeline
