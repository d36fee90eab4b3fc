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

// A CPU core of the board.
struct Core {
  std::string name;
  int cpu = 0;              // index for affinity
  double reserve = 0;       // for housekeeping, 0..1: of every slot and the pause behind it, so of every hyperperiod
  Duration wakeup_window;   // w: how late a job may begin
  Duration publish_window;  // p: how long publication may take
};

// A resource beside the cores that holds one segment at a time, never preempted by plan: a copy engine (one per
// direction, where the hardware has two), or a compute partition of a GPU (all of it, a green context, a MIG slice).
enum class UnitKind { kCopyEngine, kGpuPartition };
const char* name_of(UnitKind kind);
struct Unit {
  std::string name;
  UnitKind kind = UnitKind::kGpuPartition;
};

inline constexpr Duration kMostSwitchCost = milliseconds(1);
struct Board {
  std::string name;
  std::vector<Core> cores;
  std::vector<Unit> units = {};
  Duration clock_error;     // between the timelines of two cores; a unit runs on that of the core that releases it
  std::int64_t memory = 0;  // bytes for weights, pools and arenas; 0: not checked
  // How long it takes to take a core from a worker that is not done in time, so that the next job there begins as if it
  // had not been there. At most kMostSwitchCost.
  Duration switch_cost = {};
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

// What may run on the board beside a job without making its budget void.
enum class Interference {
  kAny,    // anything: the budget was taken under full load, or its margin covers it
  kCores,  // jobs on other cores; nothing on any unit but this job's own segments
  kNone,   // no other job at all
};
const char* name_of(Interference interference);

// A part of a job on one resource: CPU submit, copy, GPU, CPU complete (DESIGN section 2). Each has its own slot. A
// unit's segment is submitted before and released at its slot's start by the dispatcher of the job's last core.
struct Segment {
  std::optional<std::uint32_t> unit;  // index into Board::units; nullopt: the stage's home cores, all of them
  Duration time;                      // budget of this segment, from its actual start
  // GPU segments: an overrun is not aborted, the next submission is dropped; what was submitted already ends within
  // the guard, so the partition stays free that long behind the slot.
  Duration guard;
  std::vector<std::uint32_t> mutexes;  // indices into Problem::mutexes, held from the slot's start to its end
};

// Wall time a job may take from its actual start on `cores` cores, and where the figure is from.
struct Budget {
  int cores = 1;
  Duration time;                       // with segments: their sum
  std::vector<Segment> segments = {};  // in order, the first and the last on the cores; empty: one, on the cores
  Interference interference = Interference::kAny;
  Provenance provenance = Provenance::kDeclared;
  std::uint64_t samples = 0;
  double margin = 0;  // budget = high-water mark * margin
  Duration high_water = {};
  std::vector<Duration> steps = {};  // worst case of each step of a job, for the policy `abort`; empty: not known
  std::string place = {};            // "file:line:column" where it was read; "" elsewhere
};

// The segments of a job with this budget: the declared ones, or the one on the cores.
std::vector<Segment> segments_of(const Budget& budget);

// Whether a job with this budget runs in the slots of one with the other: on as many cores, segment by segment in the
// same place under the same mutexes, and nowhere for longer.
bool fits(const Budget& budget, const Budget& slots);

struct Variant {
  std::string name;
  std::vector<Budget> budgets;  // one per admissible k
  std::int64_t resident = 0;    // bytes kept for the whole run: weights, state, its share of the pools
  std::int64_t arena = 0;       // bytes used while a job runs, from its first segment's start to its last one's end
  // Index into Problem::mutexes: the arena is one block of memory with those of all stages that name the same mutex,
  // and every job holds it from its first segment's start to its last one's end.
  std::optional<std::uint32_t> arena_mutex = {};
};

struct Mutex {
  std::string name;
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

// What becomes of a job that does not keep its budget, and of those after it. In every case nothing of it goes out
// later than the named slack, and its state stays at the last published half unless its output goes out.
enum class OverrunPolicy {
  kContinueLate,  // it goes on; its output goes out within the slack
  kAbort,         // it is given up between two steps, as soon as the next one may not fit the budget
  kSkipNext,      // it goes on; the stage's next job is skipped
  kDegrade,       // it goes on; later jobs run another variant in the same slots, or another mode begins
};
const char* name_of(OverrunPolicy policy);  // its word in files
inline constexpr std::uint32_t kDegradedJobs = 10;

struct Stage {
  std::string name;
  std::vector<std::int64_t> rates;  // admissible jobs per hyperperiod, best first
  std::vector<Variant> variants;    // best first
  std::vector<Input> inputs;
  OverrunPolicy overrun = OverrunPolicy::kContinueLate;
  // kDegrade, one of the two, by name: a variant whose budget fits the slots, until kDegradedJobs jobs in a row have
  // kept it, or a mode. A problem that has no such variant (a what-if or a mode left it out) has nothing to degrade to.
  std::string degraded_variant = {};
  std::string degraded_mode = {};
  Duration slack;  // named slack: kept free of other jobs on the stage's cores behind every slot
};

// Index of the variant that jobs degrade to; nullopt when there is none, or it was left out.
std::optional<std::uint32_t> degraded_variant(const Stage& stage);

// The four quantities of a chain (DESIGN section 2).
enum class Quantity { kLatency, kReaction, kAgeAtOutput, kAgeUntilReplaced };
inline constexpr std::size_t kQuantities = 4;
const char* name_of(Quantity quantity);
// By quantity: its key in files, changes, certificates and JSON.
inline constexpr const char* kQuantityKeys[kQuantities] = {"latency", "reaction", "age_at_output",
                                                           "age_until_replaced"};

struct Chain {
  std::string name;
  std::uint32_t sensor = 0;           // index into sensors
  std::vector<std::uint32_t> stages;  // indices, first reads the sensor
  std::optional<Duration> limits[kQuantities];
};

// Limit on the time disparity of a fusion stage: the largest difference of the stamp references of the samples that one
// of its jobs brings together, one sample by each chain (as far as that stage, which lies on all of them).
struct Disparity {
  std::string name;
  std::uint32_t stage = 0;
  std::vector<std::uint32_t> chains;  // indices, at least two
  Duration limit;
};

// The table's clock follows the stamps of one sensor: at the end of a hyperperiod the idle gap reserved there is
// lengthened or shortened, slots are never scaled. The sensor has a phase and a drift; its phase jitter covers what
// drift and filter leave. When the reference is lost the table holds over for a while, then a declared mode is entered.
struct PhaseLock {
  std::uint32_t sensor = 0;
  Duration gap;        // at the end of the hyperperiod, free of slots, slack and guards on every resource
  Duration filter;     // how far the filter's estimate of the phase may be off
  Duration hold_over;  // how long the table runs on without its reference
};
// The largest correction at one boundary: drift * H + filter, rounded up. A gap below it is refused.
Duration largest_correction(const PhaseLock& lock, const Sensor& sensor, Duration hyperperiod);

struct Problem {
  std::string name;
  Board board;
  Duration hyperperiod;  // H, whole nanoseconds
  std::vector<Sensor> sensors;
  std::vector<Mutex> mutexes;
  std::vector<Stage> stages;  // in an order in which every non-feedback input precedes its consumer
  std::vector<Chain> chains;
  std::vector<Disparity> disparities;
  std::optional<PhaseLock> phase_lock;
  std::int64_t ticks = 0;  // N; 0: the smallest for the chosen rates. Modes share the tick, so theirs is given
};

// A time between two instants of the table, and what corrections at the boundaries in between may add to it.
Duration with_corrections(const Problem& problem, Duration time);

// What stays free of other jobs on a stage's cores behind every slot: its named slack, at whose end a worker that is
// not done loses the core, and the board's switch cost.
Duration free_behind(const Problem& problem, std::size_t stage);

// Everything a table relies on: names unique, indices in range, non-feedback inputs precede their consumers, chains
// follow inputs, samples of a sensor cannot overtake each other, w and p inside [0, 5 ms], segments begin and end on
// the cores, the gap of a phase lock holds its corrections. kConfiguration with the first fault. Synthesis and
// validation assume a problem that passes.
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

// A slot: end = start + w + budget, and + p in a job's last slot, where the output is published; on each of its cores
// at the same time. Inputs are latched at the start of a job's first slot. w and p are those of the home cores.
struct Slot {
  std::uint32_t stage = 0;
  std::uint32_t job = 0;                   // 0 .. rate - 1 within the hyperperiod
  std::vector<std::uint32_t> cores;        // indices into Board::cores, the last one publishes; none in a unit's slot
  Tick start = 0;                          // in [0, N) in a job's first slot; later ones may exceed N
  Tick end = 0;                            // may exceed N
  std::uint32_t segment = 0;               // of the job, in order
  std::optional<std::uint32_t> unit = {};  // index into Board::units
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

struct DisparityBound {
  Duration bound;
  std::string terms;  // which samples lie that far apart, in words
};

struct Schedule {
  TickClock clock;
  std::vector<Choice> choices;              // by stage
  std::vector<Slot> slots;                  // by (start, stage, job, segment)
  std::vector<Binding> bindings;            // by (stage, job, input); stage inputs only
  std::vector<ChainBound> bounds;           // by chain
  std::vector<DisparityBound> disparities;  // by limit
  [[nodiscard]] Digest hash() const;        // over everything that decides bytes: clock, choices, slots, bindings
};

enum class Verdict { kFeasible, kInfeasible, kUndecided };
const char* name_of(Verdict verdict);

struct Certificate;  // certificate.h

// One level of the objective, most important first: what the table has, and what no valid table of the same choices
// (rates, variants, core counts) can be better than.
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
