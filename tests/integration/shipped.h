// The shipped pipeline and drive, admitted once, run in process.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/assembly/run_tables.h"
#include "pipeline/assembly/runner.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/what_if.h"
#include "scheduler/synthesis/synthesis.h"

namespace takt::test {

inline std::string project(const std::string& path) { return std::string(TAKT_SOURCE_DIR) + "/" + path; }
inline const std::string kPipeline = project("configs/pipelines/sim.yaml");
inline const std::string kDrive = project("replay_data/city.mcap");
inline const std::string kDigests = project("replay_data/digests.json");

// The problem with `stage` restricted to budgets for `cores` cores.
inline void restrict_cores(sched::Problem& problem, const std::string& stage, int cores) {
  const Status done = sched::apply_what_if(problem, stage + ".cores=" + std::to_string(cores));
  EXPECT_TRUE(done) << done.error().message;
}

inline sched::Schedule admitted(const sched::Problem& problem) {
  const sched::Answer answer = sched::synthesize(problem, {});
  EXPECT_EQ(answer.verdict, sched::Verdict::kFeasible) << answer.reason;
  if (!answer.schedule) return {};
  const Status valid = sched::validate(problem, *answer.schedule);
  EXPECT_TRUE(valid) << valid.error().message;
  return *answer.schedule;
}

inline pipeline::RunOptions lockstep(const std::string& log, transport::Backend backend) {
  pipeline::RunOptions options;
  options.log_path = log;
  options.backend = backend;
  options.lockstep = true;
  return options;
}

}  // namespace takt::test
