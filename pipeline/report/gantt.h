// Planned against actual: one hyperperiod as a picture.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/report/record_index.h"
#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// Per core and unit a lane with the planned slots above and the actual runs below, per sensor a row from stamp to arrival of
// the samples that were latched. SVG in table time, stage i in colour class "si" (i modulo 8).
std::string gantt_svg(const RunData& run, const RecordIndex& index, std::uint64_t hyperperiod);

// Colour class of a stage, the same in every chart.
std::string stage_class(std::uint32_t stage);

}  // namespace takt::pipeline
