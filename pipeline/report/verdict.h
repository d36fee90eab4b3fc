// Judges a run: every chain instance is held, void or violated (DESIGN sections 1 and 2), every requirement is met,
// failed or NOT JUDGED.
//
// A latency instance is one source sample and the first output that uses it. It is followed back from the output
// through the producer jobs that the records name (the actual path), and forward through those that the table binds
// (the planned path), so that a sample that should have reached an output and did not is seen too. An age instance is
// one output. Broken assumptions are searched on both paths: one is enough to make the instance void.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// The monitored assumptions of the bounds.
enum class Assumption : std::uint8_t {
  kStart,           // a job begins within the wake-up window
  kBudget,          // a job keeps its budget
  kPublish,         // publication is complete by the slot's end
  kFeeder,          // a sample that has arrived is physically there
  kWorkerFree,      // the stage's worker is free at the slot's start, and what it shares with others
  kCredit,          // an output chunk is free
  kProducerOutput,  // the bound job has published
  kFrame,           // the sample can be decoded
  kArrival,         // arrival - stamp lies within the rig's arrival model
  kPeriod,          // the next sample comes within the rig's period
  kPhase,           // the stamp keeps its phase to the table
  kDevice,          // the device of a stage takes its work and does it
  kSubscriber,      // nobody subscribes to a timed topic but the declared clients
};
const char* name_of(Assumption assumption);  // the broken form, in words: "late start"
inline constexpr std::size_t kAssumptions = 13;

// One broken assumption.
struct Broken {
  Assumption assumption = Assumption::kStart;
  bool by_sensor = false;  // subject is a sensor of the problem, number a sample; else a stage and a job
  std::uint32_t subject = 0;
  std::uint64_t number = 0;
  std::string detail;  // by how much, in words
};

// kFill: the pipeline was filling, or draining after the end of the log; counted apart.
enum class InstanceState : std::uint8_t { kHeld, kVoid, kViolated, kFill };
const char* name_of(InstanceState state);

// What one quantity of one instance measured. All durations in sensor time, clock map error included.
struct Instance {
  std::uint64_t sample = 0;  // index of the source sample in its channel
  SensorTime capture;        // its stamp reference
  std::uint64_t output = 0;  // job of the chain's last stage; meaningless when !reached
  bool reached = false;      // false: planned to reach an output, but none used it
  Duration published;        // the quantity, up to publication
  Duration completed;        // the same up to completion (latency, reaction and age at output)
  InstanceState state = InstanceState::kHeld;
  std::vector<std::uint64_t> path;     // jobs of the chain's stages, first to last; actual where reached, else planned
  std::optional<std::size_t> context;  // of the chain: the mode or the change of mode whose bound it is judged by
  std::vector<Broken> broken;
};

// All instances of one quantity of one chain. Maxima are over every instance that reached an output except pipeline
// fill; `held_max` over the held ones alone, which is what the bound speaks about.
struct QuantityJudgement {
  std::optional<Duration> bound, limit;
  Duration stamp_error;  // of the map of the sensor's own clock; twice in the bound, once in each figure
  std::uint64_t held = 0, void_count = 0, violated = 0, fill = 0;
  Duration published_max, completed_max, held_max;
  std::optional<std::size_t> worst;  // index into instances: the largest published figure
  std::vector<Instance> instances;   // ascending by capture (latency, reaction) or output job (ages)
  [[nodiscard]] std::uint64_t judged() const { return held + void_count + violated; }
  // Without a violation that is no evidence for the bound.
  [[nodiscard]] bool mostly_void() const { return 2 * void_count > judged(); }
};

// A chain in a run without modes; in one mode; or across one change of mode, for instances that begin in the mode
// before and end in the one behind it. An instance that spans more, or a mode without the chain, is counted as fill.
struct ChainJudgement {
  std::uint32_t chain = 0;         // of the problem
  std::string name;                // with the mode or the change, "camera (day -> night)"
  std::string context;             // "day", "day -> night"; "" without modes
  std::uint32_t from = 0, to = 0;  // modes; equal unless it is a change
  QuantityJudgement quantities[sched::kQuantities];
  [[nodiscard]] const QuantityJudgement& latency() const {
    return quantities[static_cast<std::size_t>(sched::Quantity::kLatency)];
  }
};

enum class Outcome : std::uint8_t { kPass, kFail, kNotJudged };
const char* name_of(Outcome outcome);  // "PASS", "FAIL", "NOT JUDGED"

// One line of the verdict and one JUnit test case.
struct Requirement {
  std::string group;  // "chain camera", "transport", "replay"
  std::string name;   // "latency"
  Outcome outcome = Outcome::kPass;
  std::string detail;        // the figures, or why it was not judged
  bool mostly_void = false;  // why it was not judged: most instances are void
};

// A job that was not ok.
struct Miss {
  const sched::JobRecord* record = nullptr;  // in RunData::records
  std::string cause;                         // in words, back to the job or the host that it came from
  std::string effect;                        // in words: what its consumers did without it; "" when they did not mind
};

// A quantity of a chain of which most judged instances are void, in the whole run or in one mode.
struct MostlyVoid {
  std::uint32_t chain = 0;  // of the problem
  sched::Quantity quantity = sched::Quantity::kLatency;
  std::vector<std::size_t> parts;  // in Judgement::chains, whose instances they are
};

struct Judgement {
  Outcome outcome = Outcome::kNotJudged;
  std::vector<std::string> reasons;    // why it is not a plain PASS, most important first
  std::string deadlines_not_judged;    // why real-time deadlines were not judged; "" when they were
  std::vector<ChainJudgement> chains;  // by chain of the problem, then by mode, then by change
  std::vector<MostlyVoid> mostly_void;
  bool void_decides = false;  // NOT JUDGED because of `mostly_void` alone
  std::vector<Requirement> requirements;
  std::vector<Miss> misses;     // jobs not ok, pipeline fill left out, by (nominal start, stage)
  std::uint64_t fill_jobs = 0;  // jobs before the pipeline was full
  std::uint64_t held = 0, void_count = 0, violated = 0, fill = 0;  // latency instances of all chains
  std::uint64_t void_others = 0;                                   // void reactions and ages of all chains
  // Share of held among held, void and violated latency instances; nullopt when there was none.
  [[nodiscard]] std::optional<double> share_held() const;
};

// Pure function of the run. Chains, bounds and records must fit together (as assembly or load_run gives them).
Judgement judge(const RunData& run);

// What a reproduction of this run ends with, where its bytes are the same: the verdict of the run, FAIL also where it
// did not bear its faults as expected.
RepeatedRun came_to(const RunData& run);

// Table time of an instant of sensor time: the inverse of RunData::sensor_from_table.
TableTime table_time(const ClockMap<TableDomain, SensorDomain>& sensor_from_table, SensorTime t);

}  // namespace takt::pipeline
