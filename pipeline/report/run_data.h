// Everything one run leaves behind, in memory: what pipeline/assembly fills and the report reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/messages/messages.h"
#include "pipeline/report/ways.h"
#include "runtime/base/digest.h"
#include "runtime/base/time.h"
#include "runtime/transport/transport.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"
#include "sensors/logs/log_reader.h"
#include "sensors/rig/rig.h"
#include "sensors/sync/clock_estimate.h"

namespace takt::pipeline {

// One file that decided the bytes of the run.
struct HashedInput {
  std::string role;  // "log", "pipeline", "rig", "board", "budgets", "binary", "model STAGE", "contract STAGE"
  std::string path;
  Digest digest;
};

// The machine, and whether its timing can be trusted.
struct Environment {
  std::string host, kernel, cpu_model, isa_class, clock_source, governor, compiler, jpeg_library;
  int cores = 0;
  bool preempt_rt = false;
  double cgroup_quota_cores = 0;  // 0 = none
  double steal_share = 0;         // of CPU time during the run
  std::uint64_t shared_memory_free = 0;
  std::vector<std::string> warnings;  // in words: no real-time rights, steal time, foreign threads, ...
};

// Time that the machine took from a run: evidence beside late starts and overruns. Of a window in which the watch
// looked once; where in it the time was lost is not known.
struct HostStall {
  std::int64_t from_ns = 0, to_ns = 0;  // table time
  std::int32_t core = -1;               // of the board: the hypervisor ran something else; -1: the process was stopped
  Duration lost;
};

// One digest per topic over every published chunk in job order (payload and identity fields).
struct TopicDigest {
  std::string topic;
  std::uint64_t chunks = 0;
  Digest digest;
  std::string compared;  // "equal", "differs", "NOT COMPARED: reason"
};

// How one sensor of the rig was read from the log.
struct SensorSource {
  std::string topic;  // in the log, whatever the rig calls it; "" = left out of the run
  // Stamp in the log -> stamp reference: the rig's offset, or the estimated map of a clock of its own, whose error
  // enters every bound and age of the sensor.
  sensors::DeviceClockMap stamp;
};

// A message that gave no sample.
struct BadFrame {
  std::uint64_t index = 0;  // in its channel
  SensorTime capture, arrival;
};

// What the feeder met on one sensor's topic.
struct SensorHealth {
  std::string sensor;
  std::uint64_t messages = 0;
  std::uint64_t delivered = 0;        // published as a chunk
  std::uint64_t bad_frames = 0;       // could not be decoded: left out
  std::uint64_t invalid_points = 0;   // NaN or infinite
  std::uint64_t dropped_points = 0;   // over capacity
  std::uint64_t gaps = 0;             // missing frames: distance above 1.5 periods
  std::uint64_t repeats = 0;          // equal stamp or equal bytes as the frame before
  std::uint64_t order_faults = 0;     // stamp earlier than the frame before (swapped stamps): left out
  std::uint64_t other_stamps = 0;     // the stamp inside the message is not the log's, which is used
  std::uint64_t unused = 0;           // delivered, never latched
  std::vector<BadFrame> left_out;     // the bad frames, by arrival
  std::vector<std::string> examples;  // the first few, in words with index and stamp
};

// A published list that occupies what it uses instead of its capacity, so that a run may last for hours.
template <class List>
class KeptList {
 public:
  KeptList() : KeptList(List{}) {}
  KeptList(const List& list)  // NOLINT(google-explicit-constructor): it stands for the list
      : bytes_(used_bytes(list)), count_(list.count), stamp_ns_(list.stamp_ns) {
    std::memcpy(bytes_.data(), &list, bytes_.size());
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] SensorTime stamp() const { return {stamp_ns_}; }
  [[nodiscard]] List get() const {
    List list;
    std::memcpy(&list, bytes_.data(), bytes_.size());
    return list;
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t count_ = 0;
  std::int64_t stamp_ns_ = 0;
};

struct ObjectFrame {
  std::uint32_t stage = 0;
  std::uint64_t job = 0;
  KeptList<ObjectList> list;
};
struct TrackFrame {
  std::uint32_t stage = 0;
  std::uint64_t job = 0;
  KeptList<TrackList> list;
  std::int64_t published_ns = 0;
};

// Ground truth of one instant, vehicle frame.
struct TruthBox {
  std::uint32_t id = 0;
  ObjectClass object_class = ObjectClass::kUnknown;
  double x = 0, y = 0, z = 0, length = 0, width = 0, height = 0, yaw = 0, vx = 0, vy = 0;
  std::uint32_t lidar_points = 0;
};
struct TruthFrame {
  SensorTime stamp;
  std::vector<TruthBox> boxes;
};

struct StageInfo {
  std::string type, variant;
  std::string topic;
};

// A tensor in the arena of a plan.
struct PlanTensor {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t first_step = 0, last_step = 0;
};
// One kernel call of a plan, and its times in this run over all parts (0 runs: the stage never came to it).
struct PlanStep {
  std::string kernel;
  std::string nodes;  // of the model, separated by blanks; "" for what the compiler added
  std::uint64_t flops = 0, bytes_moved = 0;
  std::uint64_t live_bytes = 0;  // in the arena during this step
  std::uint64_t runs = 0;
  Duration minimum, maximum;
};
// What a plan counted in this run: rows against the capacity of what they count, or what was left out (capacity 0).
struct PlanCounter {
  std::string name;
  std::int64_t capacity = 0;
  std::int32_t maximum = 0;
  std::int64_t total = 0;            // over all jobs
  std::vector<std::int32_t> latest;  // job by job, oldest first
};
// The compiled graph of a stage in the variant that was taken.
struct PlanInfo {
  std::uint32_t stage = 0;
  std::string model, model_file, licence;  // of the contract; a graph of takt's own has a name alone
  std::string target;                      // "cpu:avx2"
  Digest plan;
  std::uint32_t operators_before = 0, operators_after = 0;  // passes
  std::uint32_t views = 0, placements = 0, in_place = 0, reorders = 0, copies = 0;
  std::uint64_t file_bytes = 0, weight_bytes = 0;
  std::uint64_t arena_bytes = 0, lower_bound = 0;
  std::string proof;  // what is known of the arena's size
  std::vector<PlanStep> steps;
  std::vector<PlanTensor> arena;
  std::uint64_t counted_jobs = 0;
  std::vector<PlanCounter> counters;
};

// What was done to the run on purpose (pipeline/assembly/fault_plan), and what had to come of it.
struct FaultExpectation {
  std::string what, expected, seen;
  bool met = false;
};
struct FaultReport {
  std::string name, what;
  std::string text;                   // of the fault file: --reproduce does to the log again what it says
  std::vector<std::string> injected;  // in words
  std::vector<std::uint64_t> struck;  // by injected: messages that it changed, jobs and instants that the run reached
  std::vector<FaultExpectation> expectations;
  [[nodiscard]] bool met() const {
    return std::all_of(expectations.begin(), expectations.end(), [](const auto& e) { return e.met; });
  }
};

// What the run that a reproduction repeats had come to, its faults judged as well (verdict.h).
struct RepeatedRun {
  std::string outcome;  // "PASS", "FAIL", "NOT JUDGED"
  std::string reason;   // the first one that it was no plain PASS
};

struct RunData {
  std::string run_folder;
  std::string command;  // as it was typed
  // Those of it that decide what is read and on what it is computed, with where a pass that a key began stands in the
  // log: the same again for --reproduce.
  std::vector<std::string> options;
  bool sought = false;  // a key began it: the command gives another pass
  std::string pipeline_name;
  std::string log_path;
  std::string mode;       // "lockstep" or "real time"
  std::string transport;  // "iceoryx (embedded RouDi)", ...
  double rate = 1;
  std::vector<HashedInput> inputs;
  Environment environment;
  sensors::Rig rig;
  std::vector<SensorSource> sources;  // by sensor of the rig
  sched::Problem problem;
  sched::Schedule schedule;
  // A run with modes: its tables, over the whole problem; `schedule` is the first one's. Empty: it has no modes.
  std::vector<sched::ModeTable> modes;
  std::vector<std::string> schedule_notes;
  std::vector<StageInfo> stages;  // by stage
  std::vector<PlanInfo> plans;    // of the stages that run one
  ClockMap<TableDomain, SensorDomain> sensor_from_table;
  sched::DispatchResult dispatch;
  std::vector<HostStall> host_stalls;  // real time only; ascending
  Duration watch_cost;                 // CPU time of the thread that looked for them
  bool interrupted = false;
  std::vector<std::string> undeclared_subscribers;  // timed topics that somebody else subscribed to during the run
  std::uint64_t lost_records = 0;                   // the recorder got too little time: nothing can be judged
  std::uint64_t lost_outputs = 0;                   // published, but gone before they were digested
  std::uint64_t lost_inputs = 0;                    // chunks lost in the queues of stages: an error of the plan
  std::vector<sensors::LogProblem> log_problems;
  std::vector<sched::JobRecord> records;  // by (stage, job)
  std::vector<TopicDigest> digests;
  std::vector<SensorHealth> health;
  transport::PoolPlan pools;
  std::vector<transport::PoolUse> pool_use;
  std::uint64_t resident_bytes = 0;
  bool allocation_guard = false;  // counted; false under sanitizers
  std::vector<ObjectFrame> objects;
  std::vector<TrackFrame> tracks;
  std::vector<TruthFrame> truth;  // ascending; empty when the log has none
  std::optional<FaultReport> faults;
  std::optional<RepeatedRun> repeats;  // of a reproduction
  std::vector<Baseline> measured;      // real runs of every way at every load beside this one; empty: not asked for

  // The table that a job ran in.
  [[nodiscard]] const sched::Schedule& table_of(const sched::JobRecord& record) const {
    return record.mode < modes.size() ? modes[record.mode].schedule : schedule;
  }
};

}  // namespace takt::pipeline
