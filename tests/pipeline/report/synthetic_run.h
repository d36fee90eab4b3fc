// A small run made by hand: two sensors, three stages, two chains on two cores, executed exactly as planned. Tests
// damage copies of it and look at what the report says.
#pragma once

#include "pipeline/report/run_data.h"

namespace takt::pipeline::test {

enum StageIndex : std::uint32_t { kCameraStage = 0, kLidarStage = 1, kFusionStage = 2 };

// The table (H = 100 ms; starts and slot lengths in ms):
//   core 1  camera_detect 8.0 + 8.8 | 41.0 + 8.8 | 75.0 + 8.8
//   both    lidar_detect  52.8 + 20.8
//   core 0  fusion        20.0 + 4.8 (camera job 0, LiDAR job of the hyperperiod before) | 84.0 + 4.8 (camera 2, LiDAR
//   0)
// Camera stamps 2 ms + k * 100/3 ms, arrival + 5.5 ms; LiDAR stamps -2 ms + k * 100 ms, arrival + 53 ms.
// real_time: measured times below the budgets, with rights granted; otherwise lockstep.
RunData synthetic_run(std::uint64_t hyperperiods, bool real_time);

// The record of a job; it must exist.
sched::JobRecord& record_of(RunData& run, std::uint32_t stage, std::uint64_t job);

// Makes a job skip (its worker was busy, or what the reason says), and its consumers see nothing.
void skip_job(RunData& run, std::uint32_t stage, std::uint64_t job,
              sched::Reason reason = sched::Reason::kPreviousRunning);

// The camera's jobs in three segments, 3 ms on their core, 3 ms on the unit "gpu" from 3 ms into the slot, 2 ms on the
// core from 6 ms; each took exactly that long.
void cut_camera(RunData& run);

}  // namespace takt::pipeline::test
