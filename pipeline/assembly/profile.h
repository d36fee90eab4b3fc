// Measures execution-time budgets: every stage, variant and admissible core count, back to back at full capacity, under
// stated interference classes (DESIGN section 5, "Budgets").
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/assembly/extreme_value.h"
#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/status.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// What runs on the board beside the measured stage.
enum class Beside : std::uint8_t {
  kAlone,   // nothing of takt
  kStages,  // the other stages, back to back at their full capacity, on every core
  kMemory,  // threads that saturate memory and last-level cache, on every core
};
const char* name_of(Beside beside);  // "alone", "stages", "memory"

struct ProfileOptions {
  std::vector<Beside> beside{Beside::kAlone, Beside::kStages, Beside::kMemory};  // the budget covers all of them
  std::uint64_t samples = 1000;  // per class; fewer than 1000 makes the budgets `exploratory`
  std::uint64_t warm_up = 20;    // runs before the first sample, apart from it
  double margin = 1.3;           // budget = high-water mark * margin
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double, double)> progress;  // runs done, runs in all
};

// One stage, variant and core count under one class.
struct ProfileClass {
  Beside beside = Beside::kAlone;
  Duration median, p99, max;
  Duration warm_up_max;  // of the warm-up runs, reported apart
  TailEstimate tail;     // for people; no budget is made of it
  // Jobs that the hypervisor interrupted, measured again and in none of these times, and the most that it took of one:
  // in a run it makes an overrun that is void, and no budget could bear it.
  std::uint64_t interrupted = 0;
  Duration most_taken;
};

// A segment of jobs: from when it is told to begin until it has ended. Of a device also how long it took to hand the
// work over, and the device's own time for it.
struct SegmentTimes {
  Duration time, launch, on_device;
  void cover(const SegmentTimes& other) {
    time = std::max(time, other.time);
    launch = std::max(launch, other.launch);
    on_device = std::max(on_device, other.on_device);
  }
};

struct ProfileRow {
  std::string stage, variant;
  sched::Budget budget;  // of the largest time of all classes; its steps of the largest of each step
  std::vector<ProfileClass> classes;
  std::vector<SegmentTimes> segments;  // the longest of all classes, in the budget's order; empty: it has none
};

struct Profile {
  std::vector<ProfileRow> rows;
  // How late jobs that do nothing began and were published: p99.9 within two seconds, on the worst core.
  Duration start_error, publish_error;
  // w and p of this machine: these, but at least 0.2 ms and at most 5 ms.
  Duration wakeup_window, publish_window;
  // p99.9 of start errors, by core: of dispatched jobs and of threads that only sleep, medians of alternating blocks on
  // the same cores. What lies between them is the dispatcher's; what both have is the machine's.
  std::vector<Duration> dispatch_error, sleep_error;
  std::string refused;  // real-time rights that were refused, in words
};

// The board's cores that no thread of this process may run on, "core4 (CPU 4), core5 (CPU 5)"; "" where it has them
// all.
std::string cores_not_here(const sched::Board& board);

// kInterrupted when stopped; kEnvironment when a device refused a job or was lost; kConfiguration where a budget has
// segments on units and the stage runs on the cores.
Result<Profile> profile_stages(const PipelineConfig& config, const ProfileOptions& options);

// What goes into a budgets file.
sched::BudgetTable budget_table(const PipelineConfig& config, const Profile& profile);

}  // namespace takt::pipeline
