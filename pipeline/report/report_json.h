// report.json and junit.xml: the same facts for machines. docs/report.schema.json describes the former.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/run_data.h"
#include "pipeline/report/statistics.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// Version of the layout of report.json; a change that breaks a reader gets a new number.
inline constexpr int kReportVersion = 1;

// UTF-8, indented, keys in the order of the schema. Deterministic: equal runs give equal bytes.
std::string report_json(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages);

// JUnit XML: one test case per requirement; FAIL is a failure, NOT JUDGED is skipped with its reason.
std::string junit_xml(const RunData& run, const Judgement& judgement);

}  // namespace takt::pipeline
