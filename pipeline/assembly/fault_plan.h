// What goes wrong in a run on purpose, and what must come of it (`takt replay --faults`, configs/faults,
// docs/faults.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// Jobs [job, job + count) of a stage, real time only. Exactly one of the four is set.
struct StageFault {
  std::string where;  // in the fault file: "FILE:LINE:COLUMN"; so for every fault
  std::uint32_t stage = 0;
  std::uint64_t job = 0, count = 1;
  double budgets = 0;    // its worker computes until so many budgets have passed
  Duration stall;        // its worker waits so long behind its work
  bool endless = false;  // its worker loops until the table has ended
  bool hang = false;     // it loops for ever
};

// Messages of a sensor in [from, from + length) after the first message of the log; of `every` such the last.
struct SensorFault {
  std::string where;
  enum class Kind : std::uint8_t { kDrop, kDuplicate, kLate, kReorder, kCorrupt, kClockStep, kClockDrift };
  std::uint32_t sensor = 0;
  Kind kind = Kind::kDrop;
  Duration from, length;
  std::uint32_t every = 1;
  Duration by;     // kLate: of the arrival; kClockStep: of the stamp
  double ppm = 0;  // kClockDrift: of the stamp, since `from`
};
// Words of files, by kind.
inline constexpr std::array kSensorKinds{"drop",    "duplicate",  "late",       "reorder",
                                         "corrupt", "clock_step", "clock_drift"};
const char* name_of(SensorFault::Kind kind);  // as in the file: "drop"

struct ProcessFault {
  std::string where;
  enum class Kind : std::uint8_t {
    kStop,        // SIGSTOP, and SIGCONT after `length`; real time only
    kKillClient,  // a declared client of `stage`'s topic in another process holds chunks and is killed; iceoryx only
    kKillRoudi,   // another process owns RouDi and is killed; iceoryx only
    kDiskFull,    // of the run folder no file can be written beyond 64 KiB
    kMode,        // somebody asks for a mode of the pipeline, at the first boundary from `at` on
  };
  Kind kind = Kind::kStop;
  Duration at, length;
  std::uint32_t stage = 0;
  std::uint32_t mode = 0;
  std::string mode_name;
};
inline constexpr std::array kProcessKinds{"stop", "kill_client", "kill_roudi", "disk_full", "mode"};
const char* name_of(ProcessFault::Kind kind);

// The device that a stage runs on fails its jobs [job, job + count); of a run with a device only, in any clock.
struct DeviceFault {
  std::string where;
  enum class Kind : std::uint8_t {
    kRefuse,  // the work of each job is refused, the device goes on
    kLose,    // the device is lost with the first of them, for good
    kHang,    // a kernel of the first of them never ends
  };
  Kind kind = Kind::kRefuse;
  std::uint32_t stage = 0;
  std::uint64_t job = 0, count = 1;
};
inline constexpr std::array kDeviceKinds{"refuse", "lose", "hang"};
const char* name_of(DeviceFault::Kind kind);

// Least and most of a count.
struct CountRange {
  std::uint64_t least = 0, most = 0;
};

// One figure that must lie in a range.
struct CountExpectation {
  enum class Kind : std::uint8_t { kJobs, kInstances, kMessages };
  Kind kind = Kind::kJobs;
  std::uint32_t subject = 0;  // kJobs: stage; kInstances: chain; kMessages: sensor
  std::string figure;         // "overrun" (of the job classes), "void" (of the latency), "bad_frames" (of the health)
  CountRange range;
};

struct FaultPlan {
  std::string name, what;
  std::string text;  // of the file
  std::vector<StageFault> stages;
  std::vector<SensorFault> sensors;
  std::vector<ProcessFault> processes;
  std::vector<DeviceFault> devices;

  // What must come of it. No chain instance may be violated, whatever the file says.
  int exit = 0;                       // of the run without faults in mind
  std::vector<std::string> verdicts;  // any of them; empty: not looked at
  std::vector<CountExpectation> counts;
  std::optional<std::uint64_t>
      recovery;                    // hyperperiods behind the last faulty one, after which every job is as planned
  std::vector<std::string> modes;  // that the run is in, one after the other; empty: not looked at

  [[nodiscard]] bool needs_real_time() const;
  [[nodiscard]] bool needs_iceoryx() const;  // it is done by other processes that attach
  [[nodiscard]] bool fills_disk() const;
};

// Strict: unknown names, keys and values are all reported with their place. kConfiguration.
// `modes`: names of the pipeline's modes, none where it has none.
Result<FaultPlan> load_faults(const std::string& path, const sched::Problem& problem, const sensors::Rig& rig,
                              const std::vector<std::string>& modes = {});
Result<FaultPlan> parse_faults(const std::string& text, const std::string& name, const sched::Problem& problem,
                               const sensors::Rig& rig, const std::vector<std::string>& modes = {});

// Whether every fault can strike in a run as long as so many hyperperiods of the first mode, over a log of that length,
// whichever modes it comes through; its table begins so long after the log's first message, or before. kConfiguration
// names those that cannot, with their places: a scenario that tests nothing passes too easily.
Status check_reach(const FaultPlan& plan, const sched::Problem& problem, const std::vector<sched::ModeTable>& modes,
                   std::uint64_t hyperperiods, Duration log, Duration table_begins);

// What is done to a run, in words; nothing is expected of it yet. `touched`: messages changed, by plan.sensors.
FaultReport describe_faults(const FaultPlan& plan, const sched::Problem& problem,
                            const std::vector<std::uint64_t>& touched = {});
// Adds each expectation beside what the run shows. `exit`: what the run came to, as an exit code; `run`, whose own
// FaultReport says what was done to it, is null when it ended with an error.
FaultReport check_faults(const FaultPlan& plan, const sched::Problem& problem, const RunData* run, int exit);

}  // namespace takt::pipeline
