// Writes run folders of several kinds for check_report.py: write_reports OUT. A test that prepares another.

#include <cstdio>
#include <filesystem>

#include "pipeline/report/baselines.h"
#include "pipeline/report/report.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using namespace test;

// Names as hostile as files allow.
RunData hostile() {
  RunData run = synthetic_run(4, true);
  run.pipeline_name = "<script>alert(\"1\")</script> & 'x' \x01\xff";
  run.problem.stages[0].name = "camera\"><b>";
  run.environment.warnings = {"</p><p>\n]]>"};
  run.schedule_notes = {"<i>"};
  run.health[0].examples = {"frame 3 <img src=x>"};
  run.log_problems = {{"bad CRC", 1234, "<chunk>"}};
  return run;
}

RunData eventful() {
  RunData run = synthetic_run(20, true);
  sched::JobRecord& late = record_of(run, kCameraStage, 3);
  late.actual_start = late.nominal_start + 2'000'000;
  late.completion = late.actual_start + 5'000'000;
  late.flags |= sched::kFlagLateStart;
  late.job_class = sched::JobClass::kLateStart;
  skip_job(run, kLidarStage, 7);
  record_of(run, kFusionStage, 21).publication += 40'000'000;  // violated
  run.interrupted = true;
  run.measured = baselines(run);
  return run;
}

RunData segments() {
  RunData run = synthetic_run(10, true);
  cut_camera(run);
  return run;
}

// Nothing of the LiDAR reached an output.
RunData dead() {
  RunData run = synthetic_run(6, true);
  for (std::uint64_t job = 0; job < 6; ++job) skip_job(run, kLidarStage, job);
  return run;
}

RunData empty() {
  RunData run = synthetic_run(2, false);
  run.records.clear();
  run.tracks.clear();
  run.truth.clear();
  run.log_path = "/nonexistent/drive.mcap";
  return run;
}

int write_all(const std::string& out) {
  struct Case {
    const char* name;
    RunData run;
  };
  const Case cases[] = {{"lockstep", synthetic_run(10, false)},
                        {"real-time", synthetic_run(10, true)},
                        {"eventful", eventful()},
                        {"hostile", hostile()},
                        {"segments", segments()},
                        {"dead", dead()},
                        {"empty", empty()}};
  std::filesystem::remove_all(out);
  for (const Case& c : cases) {
    const auto written = write_run(c.run, out + "/" + c.name);
    if (!written) {
      std::fprintf(stderr, "%s: %s\n", c.name, written.error().message.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace takt::pipeline

int main(int argc, char** argv) { return argc == 2 ? takt::pipeline::write_all(argv[1]) : 2; }
