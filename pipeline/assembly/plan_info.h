// What the report says about a compiled graph: from its plan and the times of its session.
#pragma once

#include <cstdint>

#include "pipeline/models/contract.h"
#include "pipeline/report/run_data.h"
#include "runtime/exec/session.h"

namespace takt::pipeline {

PlanInfo plan_info(std::uint32_t stage, const ModelContract& model, const exec::Session& session);

}  // namespace takt::pipeline
