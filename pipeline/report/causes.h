// Why a job was not ok, and what that did to the jobs behind it.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/record_index.h"
#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// Back to where it came from: the job's own figures, the job that held its core or its worker, the host that took time
// from its cores. "" for a job that was ok.
std::string cause_of(const RunData& run, const RecordIndex& index, const sched::JobRecord& record);

// The same, with the causes of the jobs that brought it, nearest first: "not started: fusion#7 was still running, it
// took 12.0 ms; fusion#7: overran by 4.00 ms: ...". At most three of them.
std::string cause_chain(const RunData& run, const RecordIndex& index, const sched::JobRecord& record);

// Forward along the bindings: "so fusion#824 used hold(1) of lidar_detect, data age 61.0 ms"; "" when no consumer
// noticed.
std::string effect_of(const RunData& run, const RecordIndex& index, const sched::JobRecord& record);

// The jobs that brought trouble to this one, nearest first: each held the core or the worker of the one before, or was
// bound to an input and published nothing. Empty when the job was ok with all its inputs, or the trouble began with
// itself. A job in segments may stand there twice: what its first one did to another job may hold up its last one.
std::vector<const sched::JobRecord*> origins_of(const RunData& run, const RecordIndex& index,
                                                const sched::JobRecord& record);

// Of a job that lost its core at the end of its slot: for how long it ran on although the gaps that the jobs of the
// table left it there would have been enough for the CPU time that it took. Other programs had the core then, for a
// worker that lost it runs below all of them. Zero for a job that waited for something itself, that never came back, or
// in segments.
Duration starved(const RunData& run, const RecordIndex& index, const sched::JobRecord& record);

// Why a change of mode came: "lidar_detect#12 overran".
std::string in_words(const RunData& run, const sched::ModeChange& change);

// Of the variant that the job ran, on its cores: a degraded job has another budget than the admitted one.
Duration budget_of(const RunData& run, const sched::JobRecord& record);

// Of a job in several segments, the one that exceeded its budget by most: "segment 2 of 3, on gpu, ", and its times.
// "" for a job in one piece, which leaves the times as they are.
std::string worst_segment(const RunData& run, const sched::JobRecord& record, Duration& took, Duration& budget);
// The one that began latest after its own slot's start, likewise; "" where that is the job's start.
std::string latest_segment(const RunData& run, const sched::JobRecord& record, Duration& late);

// "; meanwhile the hypervisor took 20.0 ms of core1", "; meanwhile the process was stopped for 300 ms", or "".
std::string host_evidence(const RunData& run, const sched::JobRecord& record);

}  // namespace takt::pipeline
