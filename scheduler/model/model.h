// The scheduling problem and its answer: resources, sensors, stages, chains, and the table (DESIGN sections 2 and 5).
// Plain values; nothing here knows perception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sched {

inline constexpr std::size_t kMaxGang = 2;  // cores of one job in this version

// ---- the problem ----------------------------------------------------------------------------------------------

// A CPU core of the board. Copy engines, GPU partitions and mutexes join here as further kinds.
struct Core {
  std::string name;
  int cpu = 0;              // index for affinity
  double reserve = 0;       // share of every hyperperiod kept free of jobs for housekeeping, 0..1
  Duration wakeup_window;   // w: how late a job may begin
  Duration publish_window;  // p: how long publication may take
};

struct Board {
  std::string name;
  std::vector<Core> cores;
  Duration clock_error;     // between the timelines of two cores
  std::int64_t memory = 0;  // bytes for weights, pools and arenas; 0: not checked
};

// When samples arrive: arrival = stamp reference + [delay_min, delay_max] (exposure or sweep remainder, readout, driver
// delay, jitter: everything between the stamp reference and "the system has it").
struct Sensor {
  std::string name;
  Duration period;  // nominal distance of two samples
  Duration delay_min;
  Duration delay_max;
  double drift_ppm = 0;  // bound on the deviation of the period
  // Locked sensors: the stamp reference of sample k lies in [phase, phase + phase_jitter] + k * period of table time.
  // Free-running sensors (nullopt) may have any phase.
  struct Phase {
    Duration offset;
    Duration jitter;
  };
  std::optional<Phase> phase;
};

// Longest distance of two consecutive stamp references of a free-running sensor: period * (1 + drift), rounded up, plus
// one nanosecond because periods such as 1/30 s are rounded to whole nanoseconds.
Duration longest_period(const Sensor& sensor);

// A locked sensor's samples repeat with the table: sample k has its stamp reference in
// [offset, offset + jitter] + floor(k * hyperperiods * H / samples). nullopt for free-running sensors and for periods
// that have no common multiple with H within 1000 hyperperiods.
struct SamplePattern {
  std::int64_t samples = 0;
  std::int64_t hyperperiods = 0;
};
std::optional<SamplePattern> sample_pattern(const Sensor& sensor, Duration hyperperiod);

enum class Provenance { kDeclared, kExploratory, kProfiled };
const char* name_of(Provenance provenance);

// Wall time a job may take from its actual start on `cores` cores, and where the figure is from.
struct Budget {
  int cores = 1;
  Duration time;
  Provenance provenance = Provenance::kDeclared;
  std::uint64_t samples = 0;
  double margin = 0;  // budget = high-water mark * margin
  Duration high_water;
};

struct Variant {
  std::string name;
  std::vector<Budget> budgets;  // one per admissible k
  std::int64_t resident = 0;    // bytes kept for the whole run: weights, state, its share of the pools
  std::int64_t arena = 0;       // bytes used while a job runs
};

// What applies when the bound producer job produced nothing.
struct Absence {
  std::uint32_t hold = 0;  // hold(n); 0 = missing at once
};

struct Input {
  std::string name;
  bool from_sensor = false;
  std::uint32_t source = 0;  // index into sensors or stages
  bool feedback = false;     // delay of at least one job; no precedence
  Absence absence;
};

enum class OverrunPolicy { kContinueLate };

struct Stage {
  std::string name;
  std::vector<std::int64_t> rates;  // admissible jobs per hyperperiod, best first
  std::vector<Variant> variants;    // best first
  std::vector<Input> inputs;
  OverrunPolicy overrun = OverrunPolicy::kContinueLate;
  Duration slack;  // named slack of continue_late: kept free of other jobs on the stage's cores behind every slot
};

// The four quantities of a chain (DESIGN section 2).
enum class Quantity { kLatency, kReaction, kAgeAtOutput, kAgeUntilReplaced };
inline constexpr std::size_t kQuantities = 4;
const char* name_of(Quantity quantity);

struct Chain {
  std::string name;
  std::uint32_t sensor = 0;           // index into sensors
  std::vector<std::uint32_t> stages;  // indices, first reads the sensor
  std::optional<Duration> limits[kQuantities];
};

struct Problem {
  std::string name;
  Board board;
  Duration hyperperiod;  // H, whole nanoseconds
  std::vector<Sensor> sensors;
  std::vector<Stage> stages;  // in an order in which every non-feedback input precedes its consumer
  std::vector<Chain> chains;
};

// Everything a table relies on: names unique, indices in range, non-feedback inputs precede their consumers, chains
// follow inputs, samples of a sensor cannot overtake each other, w and p inside [0, 5 ms]. kConfiguration with the
// first fault. Synthesis and validation assume a problem that passes.
Status check(const Problem& problem);

// Over everything that decides the answer: a certificate belongs to one problem.
Digest digest_of(const Problem& problem);

// Share of a core that must stay idle over any second or more: its reserve, at least 6 % (the kernel throttles
// real-time threads otherwise).
inline constexpr double kLeastIdleShare = 0.06;
double idle_share(const Core& core);

// ---- the answer -----------------------------------------------------------------------------------------------

// Table position in ticks within [0, N); ends may exceed N (a job may wrap around).
using Tick = std::int64_t;

// Tick = H / N. Instants are computed absolutely from the hyperperiod count, so nothing accumulates.
struct TickClock {
  Duration hyperperiod;
  Tick ticks = 1;  // N
  // floor / ceil of hyperperiod_count * H + tick * H / N (128-bit inside). Starts are rounded up, ends down.
  [[nodiscard]] TableTime start_at(std::uint64_t hyperperiod_count, Tick tick) const;
  [[nodiscard]] TableTime end_at(std::uint64_t hyperperiod_count, Tick tick) const;
  [[nodiscard]] Tick ticks_up(Duration d) const;  // smallest tick count not shorter than d
};

// The smallest N that is a multiple of 1000 * lcm(jobs per hyperperiod) with H / N <= 1 us.
Tick ticks_per_hyperperiod(Duration hyperperiod, const std::vector<std::int64_t>& jobs_per_hyperperiod);

// A slot: end = start + w + budget + p, on each of its cores at the same time.
struct Slot {
  std::uint32_t stage = 0;
  std::uint32_t job = 0;             // 0 .. rate - 1 within the hyperperiod
  std::vector<std::uint32_t> cores;  // indices into Board::cores; the last one publishes
  Tick start = 0;
  Tick end = 0;  // may exceed N
};

// Absolute producer job of input `input` of consumer job (hyperperiod h, job j): (h + producer_shift) * rate +
// producer_job.
struct Binding {
  std::uint32_t stage = 0;  // consumer
  std::uint32_t job = 0;
  std::uint32_t input = 0;
  std::uint32_t producer_stage = 0;
  std::uint32_t producer_job = 0;
  std::int32_t producer_shift = 0;  // <= 0
};

// What synthesis chose for a stage.
struct Choice {
  std::int64_t rate = 0;  // jobs per hyperperiod
  std::uint32_t variant = 0;
  Budget budget;  // of the chosen variant and core count
};

struct ChainBound {
  std::uint32_t chain = 0;
  Duration bounds[kQuantities];
  std::string terms;  // how the latency bound adds up, in words
};

struct Schedule {
  TickClock clock;
  std::vector<Choice> choices;        // by stage
  std::vector<Slot> slots;            // by (start, stage, job)
  std::vector<Binding> bindings;      // by (stage, job, input); stage inputs only
  std::vector<ChainBound> bounds;     // by chain
  [[nodiscard]] Digest hash() const;  // over everything that decides bytes: clock, choices, slots, bindings
};

enum class Verdict { kFeasible, kInfeasible, kUndecided };
const char* name_of(Verdict verdict);

struct Certificate;  // certificate.h

// One level of the objective, most important first: what the table has, and what no table with its choices can be
// better than.
struct Level {
  std::string name;
  double value = 0;
  double bound = 0;
  [[nodiscard]] double gap() const { return value > bound && value > 0 ? (value - bound) / value : 0; }
};

// The three-valued answer. A table is present when feasible, and when undecided if a best attempt exists; a certificate
// when infeasible.
struct Answer {
  Verdict verdict = Verdict::kUndecided;
  std::optional<Schedule> schedule;
  std::string reason;              // infeasible or undecided: which chain, resource or window, and by how much
  std::vector<std::string> notes;  // a cheaper variant or lower rate that had to be taken, and why
  std::vector<Level> levels;       // of the table
  std::shared_ptr<const Certificate> certificate;
  bool cut_by_time = false;  // a limit in seconds ended the search: another run may answer differently
};

}  // namespace takt::sched
