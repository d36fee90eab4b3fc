// The run as a trace for Perfetto (https://ui.perfetto.dev, trace_processor): written in protobuf wire form with the
// published field numbers of perfetto.protos.Trace; docs/replay.md says how to look at it.
//
// Tracks: per core the planned slots, one track per stage with what its jobs did there, and what the hypervisor took;
// per unit of the board the planned slots and what it worked on; per sensor the samples that were used. A flow follows
// each sample of a chain through its jobs to the output. Instants are table time, moved so that none is negative.
#pragma once

#include <string>

#include "pipeline/report/run_data.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

std::string perfetto_trace(const RunData& run, const Judgement& judgement);

}  // namespace takt::pipeline
