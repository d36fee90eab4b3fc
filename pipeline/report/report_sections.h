// The sections of report.html, each as HTML without its frame. Private to this folder.
#pragma once

#include <string>

#include "pipeline/report/report_view.h"

namespace takt::pipeline {

// section_verdict.cpp: the first screen with its frame. Verdict, why, and what to do next.
std::string verdict_html(const ReportView& v);

// section_drive.cpp: what went into the run, and what came of it beside the truth.
std::string faults_html(const ReportView& v);  // done to it on purpose; of a run with faults
std::string inputs_html(const ReportView& v);
std::string score_html(const ReportView& v);

// section_table.cpp: the table and what became of it in time.
std::string modes_html(const ReportView& v);  // of a run with modes
std::string gantt_html(const ReportView& v);

// section_chains.cpp: every quantity beside its bound.
std::string chains_html(const ReportView& v);
std::string latency_html(const ReportView& v);
std::string assumptions_html(const ReportView& v);

// section_ways.cpp: beside other ways to schedule. "" where they cannot run the table's jobs.
std::string ways_html(const ReportView& v);

// section_stages.cpp: jobs, their times and budgets.
std::string budgets_html(const ReportView& v);
std::string jobs_html(const ReportView& v);

// section_machine.cpp: memory, bytes and machine.
std::string memory_html(const ReportView& v);
std::string digests_html(const ReportView& v);
std::string environment_html(const ReportView& v);

}  // namespace takt::pipeline
