// The shipped drive again and again, every pass without state: nothing may grow, and every pass must give the bytes of
// the first.
//
//   bench_soak PIPELINE LOG PASSES   lockstep, local transport; one line of JSON
//
// Exit code 1 when the outputs of a pass differ from the first one's, a timed thread allocated after warm-up, or a page
// came from the disk. The memory slope is that of the resident bytes over the second half of the passes (least
// squares).

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "pipeline/assembly/runner.h"
#include "runtime/memory/process.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"

using namespace takt;

namespace {

double slope(const std::vector<double>& values) {
  const std::size_t half = values.size() / 2, n = values.size() - half;
  double x_mean = 0, y_mean = 0, xy = 0, xx = 0;
  for (std::size_t i = half; i < values.size(); ++i) {
    x_mean += static_cast<double>(i) / static_cast<double>(n);
    y_mean += values[i] / static_cast<double>(n);
  }
  for (std::size_t i = half; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - x_mean;
    xy += x * (values[i] - y_mean);
    xx += x * x;
  }
  return xx > 0 ? xy / xx : 0;
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "bench_soak: %s\n", error.message.c_str());
  return exit_code(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::atol(argv[3]) < 2) {
    std::fprintf(stderr, "usage: bench_soak PIPELINE LOG PASSES (at least 2)\n");
    return 2;
  }
  const auto config = pipeline::load_pipeline(argv[1]);
  if (!config) return fail_with(config.error());
  const sched::Answer answer = sched::synthesize(config->problem);
  if (!answer.schedule) return 1;
  if (const Status valid = sched::validate(config->problem, *answer.schedule); !valid) return fail_with(valid.error());
  pipeline::RunOptions options;
  options.log_path = argv[2];
  options.lockstep = true;
  options.backend = transport::Backend::kLocal;

  std::vector<pipeline::TopicDigest> first;
  std::vector<double> resident;
  std::uint64_t hyperperiods = 0, frames = 0, allocations = 0, major_faults = 0, different = 0;
  for (long pass = 0; pass < std::atol(argv[3]); ++pass) {
    const auto run = pipeline::run_pipeline(*config, *answer.schedule, options);
    if (!run) return fail_with(run.error());
    hyperperiods += run->dispatch.hyperperiods_run;
    for (const pipeline::SensorHealth& health : run->health) {
      const auto sensor = run->rig.find(health.sensor);
      if (sensor && run->rig.sensors[*sensor].kind == sensors::SensorKind::kCamera) frames += health.delivered;
    }
    for (const sched::JobRecord& record : run->records) {
      if (record.hyperperiod == 0) continue;
      allocations += record.allocations;
      major_faults += record.major_faults;
    }
    if (pass == 0) first = run->digests;
    for (std::size_t i = 0; i < first.size(); ++i) different += run->digests[i].digest == first[i].digest ? 0 : 1;
    resident.push_back(static_cast<double>(memory::resident_bytes()));
  }
  std::printf(
      "{\"passes\": %ld, \"hyperperiods\": %llu, \"camera_frames\": %llu, \"different_digests\": %llu, "
      "\"allocations\": %llu, \"major_faults\": %llu, \"resident_first_mb\": %.1f, \"resident_last_mb\": %.1f, "
      "\"growth_kb_per_pass\": %.2f}\n",
      std::atol(argv[3]), static_cast<unsigned long long>(hyperperiods), static_cast<unsigned long long>(frames),
      static_cast<unsigned long long>(different), static_cast<unsigned long long>(allocations),
      static_cast<unsigned long long>(major_faults), resident.front() / 1e6, resident.back() / 1e6,
      slope(resident) / 1e3);
  return different + allocations + major_faults == 0 ? 0 : 1;
}
