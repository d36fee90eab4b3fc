// The outcome of a run and its reasons, from chains and requirements that were judged.
#pragma once

#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// Fills outcome, reasons, sums and what is mostly void of a judgement whose chains, requirements and
// `deadlines_not_judged` stand.
void conclude(const RunData& run, Judgement& out);

}  // namespace takt::pipeline
