// report.html: one file for people. No network, no scripts; light and dark; prints.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/run_data.h"
#include "pipeline/report/statistics.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// `pictures`: HTML of the pictures section (pictures.h), or why there is none.
std::string report_html(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages,
                        const std::string& pictures);

}  // namespace takt::pipeline
