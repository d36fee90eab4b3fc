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
//         - name: gpu               # a job of several segments, each on its resource
//           arena_mutex: scratch      # default: an arena of its own. Or one block of memory for all that name it
//           budgets:
//             - interference: cores   # default any: what may run beside it; or none
//               segments:
//                 - {on: cores, ms: 0.4}                       # submit
//                 - {on: h2d, ms: 1.0}                         # a unit of the board
//                 - {on: gpu, ms: 5.0, guard_ms: 0.5}          # guard: default 0
//                 - {on: cores, ms: 0.3, mutexes: [tracks]}    # complete, publish
//       overrun: continue_late      # default
//       slack_ms: 1.0               # default 0
//     - name: fusion
//       rate_hz: 10
//       inputs:
//         - {name: camera, stage: camera_detect, hold: 1}
//         - {name: own_tracks, stage: fusion, feedback: true}
//       variants: [{name: full, budgets: [{cores: 1, ms: 2.0}]}]
//   mutexes: [scratch, tracks]    # names that segments and arenas use
//   chains:
//     - name: camera
//       path: [camera_front, camera_detect, fusion]    # sensor, then stages
//       limit_ms: {latency: 150, reaction: 200, age_at_output: 160, age_until_replaced: 260}    # any of the four
//
//   disparities:                  # how far apart samples may lie that one job of a stage brings together
//     - {name: fused, stage: fusion, chains: [camera, lidar], limit_ms: 80}
//   phase_lock:                   # the table's clock follows a sensor's stamps; its phase_ms says where they lie
//     sensor: camera_front
//     gap_ms: 0.2                 # idle at the end of every hyperperiod
//     filter_ms: 0.05             # default 0
//     hold_over_ms: 500           # default 0
//
//   modes:                        # default: none, the problem is one table. A run begins in the first
//     - name: full
//       exits: [night]            # the modes that may follow, at the end of a hyperperiod
//       dwell_ms: 1000            # default 0: least time in the mode
//       lost: night               # with a phase lock: where to go when its reference stays lost
//     - name: night
//       hyperperiod_ms: 200       # default: the file's
//       entry_drain_ms: 2         # default 0: idle before its first hyperperiod
//       locked: false             # default true: whether the phase lock holds here
//       stages:                   # default: all, at their rates
//         - {name: camera_detect, rates_hz: [15], variants: [full]}
//         - {name: fusion, without: [lidar]}    # inputs that are not there
//       chains:                   # default: all whose stages are there
//         - {name: camera, limit_ms: {latency: 200}}    # other limits stay
//       exits: [full]
//
// A board file:
//
//   name: generic2
//   clock_error_us: 1
//   switch_cost_us: 200           # default 0: to take a core from a worker that is not done; kept free behind slots
//   memory_mb: 8000               # default: not checked
//   cores:
//     - {name: core0, cpu: 0, reserve: 0.25, wakeup_window_us: 1000, publish_window_us: 500}
//   units:                        # default none; kind: copy or gpu
//     - {name: h2d, kind: copy}    # default none: figures: {gb_s: 64}, its peak (gpu.h)
//     - {name: gpu, kind: gpu}    # a whole GPU, a green context, a MIG slice; of a GPU, all or none of:
//       figures: {gflops: 5300, gb_s: 204.8, step_us: 5, guard_ms: 1}    # gpu.h, `takt plan show --board`
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/yaml.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

// A problem by itself, without a rig or perception behind it (configs/schedules): the keys of a pipeline file, and
//
//   board: ../boards/orin8.yaml
//   sensors:
//     - {name: camera, rate_hz: 30, delay_ms: [12, 15], drift_ppm: 100}               # free-running; or period_ms: 33
//     - {name: lidar, rate_hz: 10, delay_ms: [2, 4], phase_ms: 10, phase_jitter_ms: 0.1}   # locked to the table
//
// kConfiguration with every error. `board_file`: another board than the file names; "": that one.
Result<Problem> load_problem(const std::string& path, const std::string& board_file = "");
// Whether a readable file is of this kind: only such files list sensors.
bool is_problem_file(const std::string& path);
std::vector<Sensor> read_sensors(const YamlNode& list);

// A whole board file: kConfiguration with every error.
Result<Board> load_board(const std::string& path);
Board read_board(const YamlNode& root);

// `root` is the mapping that holds hyperperiod_ms.
Duration read_hyperperiod(const YamlNode& root);
// The scheduler's part of one mapping (hyperperiod_ms, stages, chains and what follows above). Stage i of the result is
// item i of `stages`. Whether the whole makes sense is for check().
Problem read_problem(const YamlNode& root, const std::string& name, const Board& board,
                     const std::vector<Sensor>& sensors);

// The key `modes`, for a base problem that was read from the same mapping; nullopt without it. Errors are recorded.
std::optional<ModeSet> read_modes(const YamlNode& root, const Problem& base);

// What check() finds wrong, as an error at the part of the file that it is about; `root` is the mapping that the
// problem or the modes were read from. For a document without errors so far: call finish() again.
void check_in_place(const YamlNode& root, const Problem& problem);
void check_in_place(const YamlNode& root, const ModeSet& set);

// A file as load_problem() reads it, with its modes where it declares any.
struct LoadedProblem {
  Problem problem;
  std::optional<ModeSet> modes;
};
Result<LoadedProblem> load_problem_and_modes(const std::string& path, const std::string& board_file = "");

// A budgets file (see budgets.h): kConfiguration with every error.
Result<BudgetTable> load_budgets(const std::string& path);
BudgetTable read_budgets(const YamlNode& root);

}  // namespace takt::sched
