// What a run must meet, each met, failed or NOT JUDGED: bounds and limits of its chains, zero copy and steady state,
// stages that come back, digests, what its faults were to come to, the verdict of a run that is repeated.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// Of a run and its chains as they were judged; `deadlines_not_judged` as in Judgement.
std::vector<Requirement> requirements_of(const RunData& run, const std::vector<ChainJudgement>& chains,
                                         const std::string& deadlines_not_judged);

}  // namespace takt::pipeline
