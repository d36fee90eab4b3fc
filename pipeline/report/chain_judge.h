// Judges one chain: follows its samples to its outputs, and searches both paths for broken assumptions (verdict.h says
// how).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/report/record_index.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// One judgement for each context in which the chain, an index into the problem's, has a bound: a mode, a change of
// mode; a run without modes is one. `index` is that of `run`.
std::vector<ChainJudgement> judge_chain(const RunData& run, const RecordIndex& index, std::uint32_t chain);

}  // namespace takt::pipeline
