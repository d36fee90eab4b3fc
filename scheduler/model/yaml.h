// Readers of the scheduler's part of a pipeline file and of board files. Errors are collected in the document with
// file, line and column; call YamlDocument::finish(). Host only.
//
// A pipeline file, as far as the scheduler reads it (`type`, `params` and other keys of a stage are left to others):
//
//   hyperperiod_ms: 100
//   stages:
//     - name: camera_detect
//       rates_hz: [30, 15]          # best first; each a whole number of jobs per hyperperiod. Or: rate_hz: 30
//       inputs:
//         - {name: image, sensor: camera_front}
//       variants:                   # best first
//         - name: full
//           resident_mb: 2000         # default 0: weights, state, share of the pools; decimal megabytes
//           arena_mb: 120             # default 0: while a job runs
//           budgets:                # one per number of cores, preferred first
//             - {cores: 1, ms: 8.0}
//             - {cores: 2, ms: 4.8, provenance: profiled, samples: 1000, margin: 1.3, high_water_ms: 3.7}
//       overrun: continue_late      # default
//       slack_ms: 1.0               # default 0
//     - name: fusion
//       rate_hz: 10
//       inputs:
//         - {name: camera, stage: camera_detect, hold: 1}
//         - {name: own_tracks, stage: fusion, feedback: true}
//       variants: [{name: full, budgets: [{cores: 1, ms: 2.0}]}]
//   chains:
//     - name: camera
//       path: [camera_front, camera_detect, fusion]    # sensor, then stages
//       limit_ms: {latency: 150, reaction: 200, age_at_output: 160, age_until_replaced: 260}    # any of the four
//
// A board file:
//
//   name: generic2
//   clock_error_us: 1
//   memory_mb: 8000               # default: not checked
//   cores:
//     - {name: core0, cpu: 0, reserve: 0.25, wakeup_window_us: 1000, publish_window_us: 500}
#pragma once

#include <string>
#include <vector>

#include "runtime/base/yaml.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/model.h"

namespace takt::sched {

// A problem by itself, without a rig or perception behind it (configs/schedules): the keys of a pipeline file, and
//
//   board: ../boards/orin8.yaml
//   sensors:
//     - {name: camera, rate_hz: 30, delay_ms: [12, 15], drift_ppm: 100}               # free-running; or period_ms: 33
//     - {name: lidar, rate_hz: 10, delay_ms: [2, 4], phase_ms: 10, phase_jitter_ms: 0.1}   # locked to the table
//
// kConfiguration with every error.
Result<Problem> load_problem(const std::string& path);
// Whether a readable file is of this kind: only such files list sensors.
bool is_problem_file(const std::string& path);
std::vector<Sensor> read_sensors(const YamlNode& list);

// A whole board file: kConfiguration with every error.
Result<Board> load_board(const std::string& path);
Board read_board(const YamlNode& root);

// `root` is the mapping that holds hyperperiod_ms.
Duration read_hyperperiod(const YamlNode& root);
// Stage i of the result is item i of the list. Inputs find sensors by name in `sensors`, in the order given there.
std::vector<Stage> read_stages(const YamlNode& list, Duration hyperperiod, const std::vector<Sensor>& sensors);
std::vector<Chain> read_chains(const YamlNode& list, const std::vector<Sensor>& sensors,
                               const std::vector<Stage>& stages);
// All of the above from one mapping (hyperperiod_ms, stages, chains). Whether the whole makes sense is for check().
Problem read_problem(const YamlNode& root, const std::string& name, const Board& board,
                     const std::vector<Sensor>& sensors);

// A budgets file (see budgets.h): kConfiguration with every error.
Result<BudgetTable> load_budgets(const std::string& path);
BudgetTable read_budgets(const YamlNode& root);

}  // namespace takt::sched
