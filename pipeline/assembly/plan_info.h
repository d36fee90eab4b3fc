// What the report says about a compiled graph: from its plan and the times of its session.
#pragma once

#include <cstdint>

#include "pipeline/models/contract.h"
#include "pipeline/report/run_data.h"
#include "runtime/exec/counts.h"
#include "runtime/exec/session.h"

namespace takt::pipeline {

// `model`: nullptr where the graph is takt's own. `counts`: nullptr where the stage keeps none.
PlanInfo plan_info(std::uint32_t stage, const ModelContract* model, const exec::Session& session,
                   const exec::CountLog* counts);

}  // namespace takt::pipeline
