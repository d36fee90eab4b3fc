// The report of a run and its folder: the one header that the `takt` command needs.
//
//   run.json       manifest: everything that decided and describes the run (run_folder.h)
//   records.mcap   one takt.JobRecord per job        results.mcap  objects, tracks, truth (results.h)
//   report.json    docs/report.schema.json           junit.xml     one test case per requirement
//   report.html    the same for people               trace.pftrace  the same for Perfetto (trace.h)
#pragma once

#include <string>

#include "pipeline/report/diff.h"
#include "pipeline/report/results.h"
#include "pipeline/report/run_data.h"
#include "pipeline/report/run_folder.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// Writes report.json, report.html, junit.xml and trace.pftrace into `folder`, which is there, each atomically.
// kEnvironment: disk full, rights; nothing half-written is left behind.
Status write_report(const RunData& run, const std::string& folder);

// All files of a run folder, the report last; the outcome as judged.
Result<Outcome> write_run(const RunData& run, const std::string& folder);

Outcome outcome_of(const RunData& run);

// Whether it had to bear injected faults in a declared way: a run that is repeated bore them before.
bool faults_are_judged(const RunData& run);
// "first_job: 3 of 4 expectations met"
std::string expectations_met(const FaultReport& report);

// report.json as text.
std::string report_json(const RunData& run);

// The terminal summary: ten lines, one more of injected faults, each at most about 100 characters.
std::string ten_lines(const RunData& run);

}  // namespace takt::pipeline
