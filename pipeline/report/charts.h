// Small charts of the report, drawn as SVG.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/statistics.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// Counts over logarithmic bins (eight per factor of two) with the budget as a line. `none`: shown when empty.
std::string histogram_svg(const Distribution& times, Duration budget, std::uint32_t stage, std::string_view title);

// Measured maxima as bars against the bound, and the limit if there is one, on one scale.
std::string bound_bar_svg(const QuantityJudgement& quantity);

// Every instance over the drive: published latency as dots, the bound as a line. Void ones are hollow, violated ones
// crossed out. The axis ends at `last`.
std::string timeline_svg(const RunData& run, const ChainJudgement& chain, SensorTime last);

// A stacked bar of the parts of one instance.
std::string breakdown_svg(const std::vector<Part>& parts, std::optional<Duration> bound);

}  // namespace takt::pipeline
