#include "scheduler/model/model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>
#include <span>

#include "scheduler/model/limits.h"
#include "scheduler/model/subject.h"
#include "scheduler/model/table_time.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

__extension__ using Wide = __int128;

// floor(a * b / c) for c > 0.
std::int64_t scale_down(std::int64_t a, std::int64_t b, std::int64_t c) {
  const Wide product = static_cast<Wide>(a) * b;
  Wide quotient = product / c;
  if (product % c < 0) --quotient;
  return static_cast<std::int64_t>(quotient);
}

std::int64_t scale_up(std::int64_t a, std::int64_t b, std::int64_t c) { return -scale_down(-a, b, c); }

template <class T>
Status check_names(const std::vector<T>& list, const char* kind, std::size_t* at = nullptr) {
  std::set<std::string> seen;
  for (const T& item : list) {
    if (at != nullptr) *at = static_cast<std::size_t>(&item - list.data());
    if (item.name.empty()) return fail(Code::kConfiguration, std::string("a ") + kind + " has no name");
    if (!seen.insert(item.name).second) {
      return fail(Code::kConfiguration, std::string("two ") + kind + "s are named '" + item.name + "'");
    }
  }
  return {};
}

// Longest time of anything in a problem, wherever it is from: sums of a few stay far from the end of 64 bits. Files and
// what-ifs allow less (limits.h).
constexpr Duration kLongest = seconds(1000);
constexpr Duration kMostClockError = milliseconds(1);
constexpr std::int64_t kMostMemory = std::int64_t{1} << 50;  // of the board, and of all stages together
static_assert(kLongest.ns * 3 * static_cast<std::int64_t>(kMostSegments) < (std::int64_t{1} << 62) / kMostJobs);
constexpr std::int64_t kMostTurns = 10'000;  // hyperperiods that a walk over several locked sensors may take

Status check_sensor(const Sensor& sensor, Duration hyperperiod, bool reference) {
  const std::string where = "sensor '" + sensor.name + "': ";
  if (sensor.period.ns <= 0) return fail(Code::kConfiguration, where + "the period must be positive");
  if (sensor.period > kLongest || sensor.delay_max > kLongest) {
    return fail(Code::kConfiguration, where + "period and delays must not exceed 1000 s");
  }
  if (sensor.delay_min.ns < 0 || sensor.delay_max < sensor.delay_min) {
    return fail(Code::kConfiguration, where + "delays must satisfy 0 <= delay_min <= delay_max");
  }
  if (!(sensor.drift_ppm >= 0 && sensor.drift_ppm <= 100'000)) {
    return fail(Code::kConfiguration, where + "drift must lie in 0 to 100000 ppm");
  }
  Duration spread = sensor.delay_max - sensor.delay_min;
  if (sensor.phase) {
    if (sensor.drift_ppm != 0 && !reference) {
      return fail(Code::kConfiguration,
                  where + "a sensor that is locked to the table has no drift; put it into jitter");
    }
    if (sensor.phase->jitter.ns < 0) return fail(Code::kConfiguration, where + "the phase jitter is negative");
    if (sensor.phase->offset > kLongest || sensor.phase->offset < Duration{-kLongest.ns} ||
        sensor.phase->jitter > kLongest) {
      return fail(Code::kConfiguration, where + "phase and jitter must not exceed 1000 s");
    }
    if (!sample_pattern(sensor, hyperperiod)) {
      return fail(Code::kConfiguration, where + "a period of " + ms_text(sensor.period) +
                                            " never lines up with the hyperperiod of " + ms_text(hyperperiod) +
                                            "; declare it free-running or change the hyperperiod");
    }
    spread += sensor.phase->jitter;
  }
  const auto shortest =
      static_cast<std::int64_t>(std::floor(static_cast<double>(sensor.period.ns) * (1.0 - sensor.drift_ppm * 1e-6)));
  if (spread.ns >= shortest) {
    return fail(Code::kConfiguration, where + "the arrival jitter of " + ms_text(spread) +
                                          " is not below the period of " + ms_text(sensor.period) +
                                          ", so samples could overtake each other");
  }
  return {};
}

Status check_segments(const Problem& problem, const Variant& variant, const Budget& budget, const std::string& which) {
  if (budget.segments.empty()) return {};
  if (budget.segments.size() > kMostSegments) {
    return fail(Code::kConfiguration,
                which + "more than " + std::to_string(kMostSegments) + " segments in one job are not planned");
  }
  if (budget.segments.front().unit || budget.segments.back().unit) {
    return fail(Code::kConfiguration, which +
                                          "a job begins and ends on the cores, where inputs are latched and the output "
                                          "is published: add a segment for submission or completion");
  }
  Duration sum;
  for (std::size_t i = 0; i < budget.segments.size(); ++i) {
    const Segment& segment = budget.segments[i];
    const std::string here = which + "segment " + std::to_string(i + 1) + ": ";
    if (segment.unit && *segment.unit >= problem.board.units.size()) {
      return fail(Code::kConfiguration, here + "the board has no such unit");
    }
    if (segment.time.ns <= 0 || segment.time > kLongest) {
      return fail(Code::kConfiguration, here + "a budget must be positive and at most 1000 s");
    }
    if (segment.guard.ns < 0 || segment.guard > kLongest) {
      return fail(Code::kConfiguration, here + "a guard must lie in 0 to 1000 s");
    }
    const bool gpu = segment.unit && problem.board.units[*segment.unit].kind == UnitKind::kGpuPartition;
    if (segment.guard.ns > 0 && !gpu) {
      return fail(Code::kConfiguration, here + "only a segment on a GPU partition has a guard");
    }
    const std::set<std::uint32_t> distinct(segment.mutexes.begin(), segment.mutexes.end());
    if (distinct.size() != segment.mutexes.size()) {
      return fail(Code::kConfiguration, here + "it names a mutex twice");
    }
    for (const std::uint32_t mutex : distinct) {
      if (mutex >= problem.mutexes.size()) return fail(Code::kConfiguration, here + "unknown mutex");
      if (variant.arena_mutex == mutex) {
        return fail(Code::kConfiguration, here + "mutex '" + problem.mutexes[mutex].name +
                                              "' guards the arena, which the whole job holds already");
      }
    }
    sum += segment.time;
  }
  if (sum != budget.time) {
    return fail(Code::kConfiguration,
                which + "the budget of " + ms_text(budget.time) + " is not the sum of its segments, " + ms_text(sum));
  }
  return {};
}

// A degraded job runs in the slots of the variant that the table chose, and that may be any: on as many cores the
// degraded one has the same segments and needs no more time, and where it shares an arena it is the same.
Status check_degraded(const Stage& stage, const std::string& where) {
  const std::optional<std::uint32_t> degraded = degraded_variant(stage);
  if (!degraded) return {};
  const Variant& lesser = stage.variants[*degraded];
  for (const Variant& variant : stage.variants) {
    const std::string which = where + "jobs of '" + variant.name + "' degrade to '" + lesser.name + "', ";
    if (variant.arena_mutex != lesser.arena_mutex) {
      return fail(Code::kConfiguration, which + "whose arena is under another mutex");
    }
    for (const Budget& budget : variant.budgets) {
      const auto in_its_slots = [&budget](const Budget& b) { return fits(b, budget); };
      if (std::any_of(lesser.budgets.begin(), lesser.budgets.end(), in_its_slots)) continue;
      return fail(Code::kConfiguration, which + "which has no budget of at most " + ms_text(budget.time) + " on " +
                                            std::to_string(budget.cores) + " core(s)" +
                                            (budget.segments.empty() ? "" : " in the same segments") +
                                            ", so that it would fit the same slots; give it one, or take "
                                            "that budget from '" +
                                            variant.name + "'");
    }
  }
  return {};
}

Status check_stage(const Problem& problem, std::size_t index) {
  const Stage& stage = problem.stages[index];
  const std::string where = "stage '" + stage.name + "': ";
  if (stage.rates.empty()) return fail(Code::kConfiguration, where + "no rate");
  for (const std::int64_t rate : stage.rates) {
    if (rate < 1 || rate > kMostJobs) {
      return fail(Code::kConfiguration,
                  where + std::to_string(rate) + " jobs per hyperperiod; allowed: 1 to " + std::to_string(kMostJobs));
    }
  }
  if (stage.variants.empty()) return fail(Code::kConfiguration, where + "no variant");
  TAKT_RETURN_IF_ERROR(check_names(stage.variants, "variant").map_error([&](Error e) {
    return std::move(e).with_context("stage '" + stage.name + "'");
  }));
  for (const Variant& variant : stage.variants) {
    if (variant.resident < 0 || variant.arena < 0) {
      return fail(Code::kConfiguration, where + "variant '" + variant.name + "' needs a negative amount of memory");
    }
    if (variant.arena_mutex && (*variant.arena_mutex >= problem.mutexes.size() || variant.arena == 0)) {
      return fail(Code::kConfiguration, where + "variant '" + variant.name +
                                            "' shares an arena under an unknown mutex, or has no arena to share");
    }
    if (variant.budgets.empty())
      return fail(Code::kConfiguration, where + "variant '" + variant.name + "' has no budget");
    std::set<int> cores;
    for (const Budget& budget : variant.budgets) {
      const std::string which = where + "variant '" + variant.name + "': ";
      if (budget.cores < 1 || budget.cores > static_cast<int>(kMaxGang)) {
        return fail(Code::kConfiguration, which + "a budget for " + std::to_string(budget.cores) +
                                              " cores; allowed: 1 to " + std::to_string(kMaxGang));
      }
      if (!cores.insert(budget.cores).second) {
        return fail(Code::kConfiguration, which + "two budgets for " + std::to_string(budget.cores) + " cores");
      }
      if (budget.time.ns <= 0) return fail(Code::kConfiguration, which + "a budget must be positive");
      if (budget.time > kLongest) return fail(Code::kConfiguration, which + "a budget must not exceed 1000 s");
      TAKT_RETURN_IF_ERROR(check_segments(problem, variant, budget, which));
    }
  }
  const int targets = (stage.degraded_variant.empty() ? 0 : 1) + (stage.degraded_mode.empty() ? 0 : 1);
  if (targets != (stage.overrun == OverrunPolicy::kDegrade ? 1 : 0)) {
    return fail(Code::kConfiguration,
                where + "'overrun: degrade' goes with one variant of the stage, or with one mode");
  }
  TAKT_RETURN_IF_ERROR(check_degraded(stage, where));
  if (stage.slack.ns < 0) return fail(Code::kConfiguration, where + "the slack is negative");
  if (stage.slack > kLongest) return fail(Code::kConfiguration, where + "a slack must not exceed 1000 s");
  TAKT_RETURN_IF_ERROR(check_names(stage.inputs, "input").map_error([&](Error e) {
    return std::move(e).with_context("stage '" + stage.name + "'");
  }));
  std::set<std::uint32_t> producers;
  for (const Input& input : stage.inputs) {
    const std::string which = where + "input '" + input.name + "' ";
    if (input.source >= (input.from_sensor ? problem.sensors.size() : problem.stages.size())) {
      return fail(Code::kConfiguration, which + "has no source");
    }
    if (input.from_sensor) {
      if (input.feedback) return fail(Code::kConfiguration, which + "comes from a sensor and cannot be a feedback");
      continue;
    }
    if (!input.feedback && input.source >= index) {
      return fail(Code::kConfiguration, which + "reads stage '" + problem.stages[input.source].name +
                                            "', which comes later; list that stage first or mark the input feedback");
    }
    if (!producers.insert(input.source).second) {
      return fail(Code::kConfiguration,
                  which + "reads stage '" + problem.stages[input.source].name + "' a second time");
    }
  }
  return {};
}

// What every sum over variants stays below, whatever is chosen. Sums over jobs do as well: kMostJobs of kMostSegments,
// each with its guard of kLongest, are far below 2^63 ns.
Status check_sums(const Problem& problem, std::size_t& at) {
  std::int64_t memory = 0;
  std::int64_t jobs = 0;
  for (const Stage& stage : problem.stages) {
    at = static_cast<std::size_t>(&stage - problem.stages.data());
    const std::string where = "stage '" + stage.name + "': ";
    jobs += *std::max_element(stage.rates.begin(), stage.rates.end());
    if (jobs > kMostJobs) {
      return fail(Code::kConfiguration, where + "with the stages before it, there are " + std::to_string(jobs) +
                                            " jobs in one hyperperiod; at most " + std::to_string(kMostJobs) +
                                            " are planned");
    }
    std::int64_t most = 0;
    for (const Variant& variant : stage.variants) {
      if (variant.resident > kMostMemory || variant.arena > kMostMemory) {
        return fail(Code::kConfiguration,
                    where + "variant '" + variant.name + "' needs more memory than any board has");
      }
      most = std::max(most, variant.resident + variant.arena);
    }
    memory += most;
    if (memory > kMostMemory) {
      return fail(Code::kConfiguration, where + "with the stages before it, it needs more memory than any board has");
    }
  }
  return {};
}

Status check_chain(const Problem& problem, const Chain& chain) {
  const std::string where = "chain '" + chain.name + "': ";
  if (chain.sensor >= problem.sensors.size()) return fail(Code::kConfiguration, where + "no sensor at its head");
  if (chain.stages.empty()) return fail(Code::kConfiguration, where + "no stage behind the sensor");
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    if (chain.stages[i] >= problem.stages.size()) return fail(Code::kConfiguration, where + "unknown stage");
    const Stage& stage = problem.stages[chain.stages[i]];
    bool connected = false;
    for (const Input& input : stage.inputs) {
      connected |= i == 0 ? input.from_sensor && input.source == chain.sensor
                          : !input.from_sensor && input.source == chain.stages[i - 1];
    }
    if (!connected) {
      const std::string& before =
          i == 0 ? problem.sensors[chain.sensor].name : problem.stages[chain.stages[i - 1]].name;
      return fail(Code::kConfiguration, where + "stage '" + stage.name + "' has no input from '" + before + "'");
    }
  }
  for (const std::optional<Duration>& limit : chain.limits) {
    if (limit && limit->ns <= 0) return fail(Code::kConfiguration, where + "a limit must be positive");
  }
  return {};
}

Status check_disparity(const Problem& problem, const Disparity& disparity) {
  const std::string where = "disparity '" + disparity.name + "': ";
  if (disparity.stage >= problem.stages.size()) return fail(Code::kConfiguration, where + "unknown stage");
  if (disparity.limit.ns <= 0) return fail(Code::kConfiguration, where + "the limit must be positive");
  const std::set<std::uint32_t> distinct(disparity.chains.begin(), disparity.chains.end());
  if (distinct.size() < 2 || distinct.size() != disparity.chains.size()) {
    return fail(Code::kConfiguration, where + "samples of at least two different chains are compared");
  }
  for (const std::uint32_t index : disparity.chains) {
    if (index >= problem.chains.size()) return fail(Code::kConfiguration, where + "unknown chain");
    const std::vector<std::uint32_t>& path = problem.chains[index].stages;
    if (std::count(path.begin(), path.end(), disparity.stage) != 1) {
      return fail(Code::kConfiguration, where + "chain '" + problem.chains[index].name + "' does not lead through '" +
                                            problem.stages[disparity.stage].name + "' once");
    }
  }
  std::int64_t turns = 1;
  for (const std::uint32_t index : disparity.chains) {
    const auto pattern = sample_pattern(problem.sensors[problem.chains[index].sensor], problem.hyperperiod);
    if (pattern) turns = std::lcm(turns, pattern->hyperperiods);
    if (turns > kMostTurns) {
      return fail(Code::kConfiguration, where + "its locked sensors line up only after more than " +
                                            std::to_string(kMostTurns) + " hyperperiods");
    }
  }
  return {};
}

Status check_phase_lock(const Problem& problem, const PhaseLock& lock) {
  const std::string where = "phase lock: ";
  if (lock.sensor >= problem.sensors.size()) return fail(Code::kConfiguration, where + "unknown sensor");
  const Sensor& sensor = problem.sensors[lock.sensor];
  if (!sensor.phase) {
    return fail(Code::kConfiguration,
                where + "sensor '" + sensor.name + "' has no phase; say where in the table its stamps are to lie");
  }
  const bool read = std::any_of(problem.stages.begin(), problem.stages.end(), [&lock](const Stage& stage) {
    return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                       [&lock](const Input& input) { return input.from_sensor && input.source == lock.sensor; });
  });
  if (!read) {
    return fail(Code::kConfiguration, where + "no stage reads sensor '" + sensor.name +
                                          "', so that nobody sees the stamps that the table shall follow; keep a "
                                          "stage that does, or the table free of the lock");
  }
  if (lock.gap.ns < 0 || lock.filter.ns < 0 || lock.hold_over.ns < 0 || lock.filter > problem.hyperperiod ||
      lock.gap >= problem.hyperperiod || lock.hold_over > kLongest) {
    return fail(Code::kConfiguration,
                where + "gap, filter term and hold-over must not be negative, and gap and filter be below H");
  }
  const Duration correction = largest_correction(lock, sensor, problem.hyperperiod);
  if (lock.gap < correction) {
    return fail(Code::kConfiguration,
                where + "the gap of " + ms_text(lock.gap) + " is smaller than the largest correction, " +
                    ms_text(correction) +
                    " (drift times hyperperiod plus the filter term); reserve at least that much");
  }
  if (sensor.phase->jitter < correction) {
    return fail(Code::kConfiguration, where + "between two corrections the stamps of '" + sensor.name +
                                          "' move by up to " + ms_text(correction) + ", but its phase jitter is " +
                                          ms_text(sensor.phase->jitter) + "; declare at least that much");
  }
  return {};
}

}  // namespace

std::optional<std::uint32_t> degraded_variant(const Stage& stage) {
  for (std::uint32_t v = 0; v < stage.variants.size() && !stage.degraded_variant.empty(); ++v) {
    if (stage.variants[v].name == stage.degraded_variant) return v;
  }
  return std::nullopt;
}

bool fits(const Budget& budget, const Budget& slots) {
  const auto same_place = [](const Segment& a, const Segment& b) {
    return a.unit == b.unit && a.mutexes == b.mutexes && a.time <= b.time && a.guard <= b.guard;
  };
  return budget.cores == slots.cores && budget.time <= slots.time &&
         std::equal(budget.segments.begin(), budget.segments.end(), slots.segments.begin(), slots.segments.end(),
                    same_place);
}

std::vector<Segment> segments_of(const Budget& budget) {
  if (!budget.segments.empty()) return budget.segments;
  Segment whole;
  whole.time = budget.time;
  return {whole};
}

Duration largest_correction(const PhaseLock& lock, const Sensor& sensor, Duration hyperperiod) {
  const auto drift_ppb = static_cast<std::int64_t>(std::ceil(sensor.drift_ppm * 1000.0));
  return {scale_up(hyperperiod.ns, drift_ppb, 1'000'000'000) + lock.filter.ns};
}

Duration with_corrections(const Problem& problem, Duration time) {
  if (!problem.phase_lock || time.ns <= 0) return time;
  const Sensor& sensor = problem.sensors[problem.phase_lock->sensor];
  const std::int64_t boundaries = time.ns / problem.hyperperiod.ns + 1;
  return time + largest_correction(*problem.phase_lock, sensor, problem.hyperperiod) * boundaries;
}

Duration free_behind(const Problem& problem, std::size_t stage) {
  return problem.stages[stage].slack + problem.board.switch_cost;
}

Sensor in_table_time(const Problem& problem, const Sensor& sensor) {
  Sensor out = sensor;
  if (!problem.phase_lock || !sensor.phase) return out;
  const Duration correction =
      largest_correction(*problem.phase_lock, problem.sensors[problem.phase_lock->sensor], problem.hyperperiod);
  const std::int64_t boundaries = (sensor.phase->jitter + sensor.delay_max).ns / problem.hyperperiod.ns + 1;
  out.delay_min = out.delay_min - correction * boundaries;
  out.delay_max = out.delay_max + correction * boundaries;
  return out;
}

std::string ms_text(Duration d) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f ms", d.ms());
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::fabs(value) >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

std::string percent_text(double share) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100.0);
  return text;
}

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kLatency: return "latency";
    case Quantity::kReaction: return "reaction";
    case Quantity::kAgeAtOutput: return "age at output";
    case Quantity::kAgeUntilReplaced: return "age until replaced";
  }
  return "?";
}

const char* name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::kDeclared: return "declared";
    case Provenance::kExploratory: return "exploratory";
    case Provenance::kProfiled: return "profiled";
  }
  return "?";
}

const char* name_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kCopyEngine: return "copy engine";
    case UnitKind::kGpuPartition: return "GPU partition";
  }
  return "?";
}

const char* name_of(OverrunPolicy policy) {
  switch (policy) {
    case OverrunPolicy::kContinueLate: return "continue_late";
    case OverrunPolicy::kAbort: return "abort";
    case OverrunPolicy::kSkipNext: return "skip_next";
    case OverrunPolicy::kDegrade: return "degrade";
  }
  return "unknown";
}

const char* name_of(Interference interference) {
  switch (interference) {
    case Interference::kAny: return "any";
    case Interference::kCores: return "cores";
    case Interference::kNone: return "none";
  }
  return "?";
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFeasible: return "feasible";
    case Verdict::kInfeasible: return "infeasible";
    case Verdict::kUndecided: return "undecided";
  }
  return "?";
}

Duration longest_period(const Sensor& sensor) {
  const auto drift_ppb = static_cast<std::int64_t>(std::ceil(sensor.drift_ppm * 1000.0));
  return {sensor.period.ns + scale_up(sensor.period.ns, drift_ppb, 1'000'000'000) + 1};
}

std::optional<SamplePattern> sample_pattern(const Sensor& sensor, Duration hyperperiod) {
  if (!sensor.phase || sensor.period.ns <= 0) return std::nullopt;
  const std::int64_t period = sensor.period.ns;
  for (std::int64_t m = 1; m <= 1000; ++m) {
    const std::int64_t span = m * hyperperiod.ns;
    const std::int64_t n = (span + period / 2) / period;
    // A period that was rounded to whole nanoseconds, either way, is off by less than one nanosecond per sample.
    if (n > 0 && std::abs(n * period - span) < n) return SamplePattern{n, m};
  }
  return std::nullopt;
}

double idle_share(const Core& core) { return core.reserve > kLeastIdleShare ? core.reserve : kLeastIdleShare; }

Status check(const Problem& problem) {
  Subject unasked;
  return check(problem, unasked);
}

Status check(const Problem& problem, Subject& at) {
  at = {Subject::Kind::kWhole, 0};
  if (problem.hyperperiod < microseconds(10) || problem.hyperperiod > seconds(100)) {
    return fail(Code::kConfiguration,
                "the hyperperiod of " + ms_text(problem.hyperperiod) + " is out of range; allowed: 0.01 ms to 100 s");
  }
  at.kind = Subject::Kind::kBoard;
  if (problem.board.cores.empty()) return fail(Code::kConfiguration, "the board has no core");
  if (problem.board.memory < 0 || problem.board.memory > kMostMemory) {
    return fail(Code::kConfiguration, "the board's memory must lie in 0 B to " + bytes_text(kMostMemory));
  }
  if (problem.board.clock_error.ns < 0 || problem.board.clock_error > kMostClockError) {
    return fail(Code::kConfiguration, "the board's clock error must lie in 0 to 1 ms");
  }
  if (problem.board.switch_cost.ns < 0 || problem.board.switch_cost > kMostSwitchCost) {
    return fail(Code::kConfiguration, "the board's switch cost must lie in 0 to " + ms_text(kMostSwitchCost));
  }
  TAKT_RETURN_IF_ERROR(check_names(problem.board.cores, "core"));
  std::set<int> cpus;
  for (const Core& core : problem.board.cores) {
    const std::string where = "core '" + core.name + "': ";
    if (!(core.reserve >= 0 && core.reserve <= 0.99))
      return fail(Code::kConfiguration, where + "reserve outside 0 to 0.99");
    if (core.wakeup_window.ns < 0 || core.publish_window.ns < 0 || core.wakeup_window > milliseconds(5) ||
        core.publish_window > milliseconds(5)) {
      return fail(Code::kConfiguration, where + "wake-up and publish windows must lie in 0 to 5 ms");
    }
    if (!cpus.insert(core.cpu).second) {
      return fail(Code::kConfiguration, where + "cpu " + std::to_string(core.cpu) + " is listed twice");
    }
  }
  std::vector<Mutex> resources = problem.mutexes;  // of all kinds, which share their names' space
  for (const Core& core : problem.board.cores) resources.push_back({core.name});
  for (const Unit& unit : problem.board.units) resources.push_back({unit.name});
  TAKT_RETURN_IF_ERROR(check_names(resources, "resource"));
  at.kind = Subject::Kind::kSensor;
  TAKT_RETURN_IF_ERROR(check_names(problem.sensors, "sensor", &at.index));
  for (std::size_t i = 0; i < problem.sensors.size(); ++i) {
    at.index = i;
    const bool reference = problem.phase_lock && problem.phase_lock->sensor == i;
    TAKT_RETURN_IF_ERROR(check_sensor(problem.sensors[i], problem.hyperperiod, reference));
  }
  at = {Subject::Kind::kWhole, 0};
  if (problem.stages.empty()) return fail(Code::kConfiguration, "no stage");
  at.kind = Subject::Kind::kStage;
  TAKT_RETURN_IF_ERROR(check_names(problem.stages, "stage", &at.index));
  for (std::size_t i = 0; i < problem.stages.size(); ++i) {
    at.index = i;
    TAKT_RETURN_IF_ERROR(check_stage(problem, i));
  }
  TAKT_RETURN_IF_ERROR(check_sums(problem, at.index));
  std::int64_t unit = 1;
  for (const Stage& stage : problem.stages) {
    at.index = static_cast<std::size_t>(&stage - problem.stages.data());
    for (const std::int64_t rate : stage.rates) {
      unit = std::lcm(unit, rate);
      if (unit > problem.hyperperiod.ns / 1000) {  // a tick, H / (1000 * unit) or longer, is never below 1 ns
        return fail(Code::kConfiguration,
                    "stage '" + stage.name + "': its rates have no practical common multiple with the other stages'");
      }
    }
  }
  at.kind = Subject::Kind::kChain;
  TAKT_RETURN_IF_ERROR(check_names(problem.chains, "chain", &at.index));
  for (std::size_t i = 0; i < problem.chains.size(); ++i) {
    at.index = i;
    TAKT_RETURN_IF_ERROR(check_chain(problem, problem.chains[i]));
  }
  at.kind = Subject::Kind::kDisparity;
  TAKT_RETURN_IF_ERROR(check_names(problem.disparities, "disparity limit", &at.index));
  for (std::size_t i = 0; i < problem.disparities.size(); ++i) {
    at.index = i;
    TAKT_RETURN_IF_ERROR(check_disparity(problem, problem.disparities[i]));
  }
  at = {Subject::Kind::kPhaseLock, 0};
  if (problem.phase_lock) TAKT_RETURN_IF_ERROR(check_phase_lock(problem, *problem.phase_lock));
  at = {Subject::Kind::kWhole, 0};
  if (problem.ticks != 0 && (problem.ticks < (problem.hyperperiod.ns + 999) / 1000 ||
                             problem.ticks % (1000 * unit) != 0 || problem.ticks > problem.hyperperiod.ns)) {
    return fail(Code::kConfiguration, std::to_string(problem.ticks) +
                                          " ticks per hyperperiod are longer than 1 us, shorter than 1 ns, or no "
                                          "multiple of 1000 times the stages' rates");
  }
  return {};
}

TableTime TickClock::start_at(std::uint64_t hyperperiod_count, Tick tick) const {
  return {static_cast<std::int64_t>(hyperperiod_count) * hyperperiod.ns + scale_up(tick, hyperperiod.ns, ticks)};
}

TableTime TickClock::end_at(std::uint64_t hyperperiod_count, Tick tick) const {
  return {static_cast<std::int64_t>(hyperperiod_count) * hyperperiod.ns + scale_down(tick, hyperperiod.ns, ticks)};
}

Tick TickClock::ticks_up(Duration d) const { return scale_up(d.ns, ticks, hyperperiod.ns); }

Tick ticks_per_hyperperiod(Duration hyperperiod, const std::vector<std::int64_t>& jobs_per_hyperperiod) {
  std::int64_t unit = 1;
  for (const std::int64_t jobs : jobs_per_hyperperiod) unit = std::lcm(unit, jobs);
  unit *= 1000;
  const std::int64_t least = (hyperperiod.ns + 999) / 1000;  // tick <= 1 us
  return (least + unit - 1) / unit * unit;
}

Digest digest_of(const Problem& problem) {
  Digester digester;
  const auto add = [&](std::int64_t value) { digester.add_value(value); };
  const auto add_real = [&](double value) { digester.add_value(value); };
  const auto add_size = [&](std::size_t size) { add(static_cast<std::int64_t>(size)); };
  const auto add_text = [&](const std::string& text) {
    add_size(text.size());
    digester.add(std::as_bytes(std::span(text)));
  };
  add(problem.hyperperiod.ns);
  add(problem.board.clock_error.ns);
  add(problem.board.memory);
  add_size(problem.board.cores.size());
  for (const Core& core : problem.board.cores) {
    add_text(core.name);
    add(core.cpu);
    add_real(core.reserve);
    add(core.wakeup_window.ns);
    add(core.publish_window.ns);
  }
  add_size(problem.sensors.size());
  for (const Sensor& sensor : problem.sensors) {
    add_text(sensor.name);
    for (const Duration d : {sensor.period, sensor.delay_min, sensor.delay_max}) add(d.ns);
    add_real(sensor.drift_ppm);
    add(sensor.phase ? 1 : 0);
    if (sensor.phase) add(sensor.phase->offset.ns);
    if (sensor.phase) add(sensor.phase->jitter.ns);
  }
  add_size(problem.stages.size());
  for (const Stage& stage : problem.stages) {
    add_text(stage.name);
    add_size(stage.rates.size());
    for (const std::int64_t rate : stage.rates) add(rate);
    add_size(stage.variants.size());
    for (const Variant& variant : stage.variants) {
      add_text(variant.name);
      add(variant.resident);
      add(variant.arena);
      add_size(variant.budgets.size());
      for (const Budget& budget : variant.budgets) {
        add(budget.cores);
        add(budget.time.ns);
        // Kinds of things that a problem does not have leave no trace, so that digests outlive them.
        if (budget.interference != Interference::kAny) add(-static_cast<std::int64_t>(budget.interference));
        if (!budget.segments.empty()) add_size(budget.segments.size());
        for (const Segment& segment : budget.segments) {
          add(segment.unit ? static_cast<std::int64_t>(*segment.unit) : -1);
          add(segment.time.ns);
          add(segment.guard.ns);
          add_size(segment.mutexes.size());
          for (const std::uint32_t mutex : segment.mutexes) add(mutex);
        }
      }
      if (variant.arena_mutex) add(*variant.arena_mutex);
    }
    add_size(stage.inputs.size());
    for (const Input& input : stage.inputs) {
      add_text(input.name);
      add((input.from_sensor ? 1 : 0) + (input.feedback ? 2 : 0));
      add(input.source);
      add(input.absence.hold);
    }
    add(stage.slack.ns);
  }
  add_size(problem.chains.size());
  for (const Chain& chain : problem.chains) {
    add_text(chain.name);
    add(chain.sensor);
    add_size(chain.stages.size());
    for (const std::uint32_t stage : chain.stages) add(stage);
    for (const std::optional<Duration>& limit : chain.limits) add(limit ? limit->ns : -1);
  }
  if (problem.board.switch_cost.ns != 0) {
    add_text("switch cost");
    add(problem.board.switch_cost.ns);
  }
  for (const Unit& unit : problem.board.units) {
    add_text("unit");
    add_text(unit.name);
    add(static_cast<std::int64_t>(unit.kind));
  }
  for (const Mutex& mutex : problem.mutexes) {
    add_text("mutex");
    add_text(mutex.name);
  }
  for (const Disparity& disparity : problem.disparities) {
    add_text("disparity");
    add_text(disparity.name);
    add(disparity.stage);
    add_size(disparity.chains.size());
    for (const std::uint32_t chain : disparity.chains) add(chain);
    add(disparity.limit.ns);
  }
  if (problem.phase_lock) {
    add_text("phase lock");
    add(problem.phase_lock->sensor);
    for (const Duration d : {problem.phase_lock->gap, problem.phase_lock->filter, problem.phase_lock->hold_over})
      add(d.ns);
  }
  if (problem.ticks != 0) add(problem.ticks);
  return digester.finish();
}

Digest Schedule::hash() const {
  Digester digester;
  const auto add = [&](std::int64_t value) { digester.add_value(value); };
  const auto add_size = [&](std::size_t size) { add(static_cast<std::int64_t>(size)); };
  add(clock.hyperperiod.ns);
  add(clock.ticks);
  add_size(choices.size());
  for (const Choice& choice : choices) {
    add(choice.rate);
    add(choice.variant);
    add(choice.budget.cores);
    add(choice.budget.time.ns);
    // As in digest_of: a table on cores alone hashes as it did before there were segments.
    for (const Segment& segment : choice.budget.segments) {
      add(segment.unit ? static_cast<std::int64_t>(*segment.unit) : -1);
      add(segment.time.ns);
    }
  }
  add_size(slots.size());
  for (const Slot& slot : slots) {
    add(slot.stage);
    add(slot.job);
    add_size(slot.cores.size());
    for (const std::uint32_t core : slot.cores) add(core);
    add(slot.start);
    add(slot.end);
    if (slot.segment != 0) add(slot.segment);
    if (slot.unit) add(-1 - static_cast<std::int64_t>(*slot.unit));
  }
  add_size(bindings.size());
  for (const Binding& binding : bindings) {
    add(binding.stage);
    add(binding.job);
    add(binding.input);
    add(binding.producer_stage);
    add(binding.producer_job);
    add(binding.producer_shift);
  }
  return digester.finish();
}

}  // namespace takt::sched
