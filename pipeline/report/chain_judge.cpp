#include "pipeline/report/chain_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "pipeline/report/causes.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;
using sched::Quantity;
using sched::Reason;

constexpr std::uint8_t kInputHeld = 2, kInputMissing = 3;

// A sample as the records know it.
struct Sample {
  std::uint64_t index = 0;
  SensorTime capture, arrival;
  bool latched = true;  // false: nobody did; it stands for one that must have arrived meanwhile
};

// Jobs of a chain's stages, first to last.
struct Path {
  std::vector<std::uint64_t> jobs;
  Sample sample;
};

// Nominal stamps of a locked sensor around `capture`: the newest one not after it, and the next.
struct NominalStamps {
  std::int64_t newest_ns = 0, next_ns = 0;  // table time
};
NominalStamps nominal_stamps(const sched::Sensor& sensor, Duration hyperperiod, TableTime capture) {
  std::int64_t samples = 1, span = sensor.period.ns;
  if (const auto pattern = sched::sample_pattern(sensor, hyperperiod)) {
    samples = pattern->samples;
    span = pattern->hyperperiods * hyperperiod.ns;
  }
  const std::int64_t since = capture.ns - sensor.phase->offset.ns;
  __extension__ using Wide = __int128;
  const auto floor_div = [](Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); };
  // The newest nominal stamp not after `capture`: floor(k * span / samples) <= since.
  auto k = floor_div(static_cast<Wide>(since) * samples, span) + 1;
  while (floor_div(k * span, samples) > since) --k;
  const auto stamp = [&](Wide n) {
    return sensor.phase->offset.ns + static_cast<std::int64_t>(floor_div(n * span, samples));
  };
  return {stamp(k), stamp(k + 1)};
}

// How far a stamp lies after the nominal stamp of a locked sensor that it belongs to.
Duration after_phase(const sched::Sensor& sensor, Duration hyperperiod, TableTime capture) {
  return {capture.ns - nominal_stamps(sensor, hyperperiod, capture).newest_ns};
}

class ChainJudge {
 public:
  ChainJudge(const RunData& run, const RecordIndex& index, std::uint32_t chain)
      : run_(run), index_(index), chain_(run.problem.chains[chain]), sensor_(run.problem.sensors[chain_.sensor]) {
    for (std::size_t i = 0; i < chain_.stages.size(); ++i) {
      inputs_.push_back(index_.input_from(chain_.stages[i], i == 0, i == 0 ? chain_.sensor : chain_.stages[i - 1]));
    }
    collect_samples();
    collect_contexts(chain);
    if (chain_.sensor < run.sources.size()) stamp_error_ = run.sources[chain_.sensor].stamp.error;
    const TableTime zero{0};
    table_start_ = run_.sensor_from_table.map_unchecked(zero);
  }

  // One judgement for each context in which the chain has a bound.
  std::vector<ChainJudgement> judge() {
    ChainJudgement out;
    const bool walkable = std::all_of(inputs_.begin(), inputs_.end(), [](const auto& i) { return i.has_value(); });
    if (walkable && !chain_.stages.empty()) {
      walk_outputs();
      latencies(out.quantities[static_cast<std::size_t>(Quantity::kLatency)]);
      reactions(out.quantities[static_cast<std::size_t>(Quantity::kLatency)],
                out.quantities[static_cast<std::size_t>(Quantity::kReaction)]);
      ages(out.quantities[static_cast<std::size_t>(Quantity::kAgeAtOutput)],
           out.quantities[static_cast<std::size_t>(Quantity::kAgeUntilReplaced)]);
    }
    return by_context(out);
  }

 private:
  // What one output job has used and should have used.
  struct Output {
    const JobRecord* record = nullptr;
    std::optional<Path> actual, planned;
  };

  [[nodiscard]] std::uint32_t stage_at(std::size_t position) const { return chain_.stages[position]; }
  [[nodiscard]] SensorTime in_sensor_time(std::int64_t table_ns) const {
    return run_.sensor_from_table.map_unchecked(TableTime{table_ns});
  }

  // Every sample of the sensor that any job latched, in the order in which selection sees them.
  void collect_samples() {
    for (std::uint32_t stage = 0; stage < run_.problem.stages.size(); ++stage) {
      const auto input = index_.input_from(stage, true, chain_.sensor);
      if (!input) continue;
      for (const JobRecord* record : index_.stage(stage)) {
        if (*input >= record->input_count || record->inputs[*input].kind == kInputMissing) continue;
        const sched::InputRecord& latched = record->inputs[*input];
        samples_.push_back({latched.job, {latched.capture_ns}, {latched.arrival_ns}, true});
      }
    }
    for (const JobRecord& record : run_.records) {
      const sched::Stage& stage = run_.problem.stages[record.stage];
      for (std::size_t i = 0; i < record.input_count && i < stage.inputs.size(); ++i) {
        if (!stage.inputs[i].from_sensor || record.inputs[i].kind == kInputMissing) continue;
        last_arrival_ = std::max(last_arrival_, SensorTime{record.inputs[i].arrival_ns});
      }
    }
    const auto key = [](const Sample& s) { return std::tie(s.arrival.ns, s.capture.ns, s.index); };
    std::sort(samples_.begin(), samples_.end(), [&](const Sample& a, const Sample& b) { return key(a) < key(b); });
    samples_.erase(std::unique(samples_.begin(), samples_.end(),
                               [&](const Sample& a, const Sample& b) { return key(a) == key(b); }),
                   samples_.end());
  }

  [[nodiscard]] const Sample* newest_arrived(SensorTime latch) const {
    const auto after = std::upper_bound(samples_.begin(), samples_.end(), latch,
                                        [](SensorTime t, const Sample& s) { return t < s.arrival; });
    return after == samples_.begin() ? nullptr : &*std::prev(after);
  }

  // ---- contexts: a mode, or the change between two ---------------------------------------------------------------

  // Every mode that has the chain, then every change between two such modes; one without a name in a run without modes.
  void collect_contexts(std::uint32_t chain) {
    const auto bound_of = [chain](const std::vector<sched::ChainBound>& bounds) -> const sched::ChainBound* {
      const auto at = std::find_if(bounds.begin(), bounds.end(), [&](const auto& b) { return b.chain == chain; });
      return at == bounds.end() ? nullptr : &*at;
    };
    const std::vector<sched::ModeTable>& modes = run_.modes;
    if (modes.empty()) {
      std::array<std::optional<Duration>, sched::kQuantities> limits;
      std::copy(std::begin(chain_.limits), std::end(chain_.limits), limits.begin());
      contexts_.push_back({"", 0, 0, bound_of(run_.schedule.bounds), limits});
      return;
    }
    for (std::uint32_t m = 0; m < modes.size(); ++m) {
      const sched::ChainBound* const bound = bound_of(modes[m].schedule.bounds);
      if (bound != nullptr) contexts_.push_back({modes[m].name, m, m, bound, modes[m].limits[chain]});
    }
    for (std::uint32_t m = 0; m < modes.size(); ++m) {
      for (const sched::ModeTable::Seam& seam : modes[m].seams) {
        const sched::ChainBound* const bound = bound_of(seam.bounds);
        if (bound == nullptr) continue;
        std::array<std::optional<Duration>, sched::kQuantities> limits;
        for (std::size_t q = 0; q < sched::kQuantities; ++q) {
          const std::optional<Duration>&before = modes[seam.from].limits[chain][q], &after = modes[m].limits[chain][q];
          if (before && after) limits[q] = std::max(*before, *after);
        }
        contexts_.push_back({modes[seam.from].name + " -> " + modes[m].name, seam.from, m, bound, limits});
      }
    }
  }

  // Of an instance that begins and ends with these jobs of these places of the chain: the mode that they lie in, or the
  // change that lies between them. None where it lasts over more than that, or over a mode without the chain.
  [[nodiscard]] std::optional<std::size_t> context_of(std::uint64_t first, std::uint64_t last) const {
    const std::size_t from = index_.stay_of(stage_at(0), first);
    const std::size_t to = index_.stay_of(chain_.stages.back(), last);
    if (to > from + 1) return std::nullopt;
    for (std::size_t c = 0; c < contexts_.size(); ++c) {
      const bool same = contexts_[c].from == index_.stays()[from].mode && contexts_[c].to == index_.stays()[to].mode;
      if (same) return c;
    }
    return std::nullopt;
  }

  void place(Instance& instance, Quantity quantity, std::uint64_t first, std::uint64_t last, bool fill) const {
    instance.context = context_of(first, last);
    std::optional<Duration> bound;
    if (instance.context && contexts_[*instance.context].bound != nullptr) {
      bound =
          contexts_[*instance.context].bound->bounds[static_cast<std::size_t>(quantity)] + stamp_error_ + stamp_error_;
    }
    decide(instance, bound, fill || (!run_.modes.empty() && !instance.context));
  }

  // The instances of `all` by their contexts. Those without one were fill, and stay with the first.
  [[nodiscard]] std::vector<ChainJudgement> by_context(const ChainJudgement& all) const {
    std::vector<ChainJudgement> out;
    for (std::size_t c = 0; c < contexts_.size(); ++c) {
      const Context& context = contexts_[c];
      ChainJudgement of;
      of.chain = static_cast<std::uint32_t>(&chain_ - run_.problem.chains.data());
      of.context = context.name;
      of.name = context.name.empty() ? chain_.name : chain_.name + " (" + context.name + ")";
      of.from = context.from;
      of.to = context.to;
      for (std::size_t q = 0; q < sched::kQuantities; ++q) {
        QuantityJudgement& quantity = of.quantities[q];
        // Of a sensor with a clock of its own the true stamp is unknown by the error of its map: a delay that kept its
        // model may look longer by it, and a figure is given as the largest that it may be.
        if (context.bound != nullptr) quantity.bound = context.bound->bounds[q] + stamp_error_ + stamp_error_;
        quantity.stamp_error = stamp_error_;
        quantity.limit = context.limits[q];
        for (const Instance& instance : all.quantities[q].instances) {
          if (instance.context.value_or(0) == c) quantity.instances.push_back(instance);
        }
        close(quantity);
      }
      // Modes and changes that the run did not come to have nothing to judge.
      const bool came = std::any_of(std::begin(of.quantities), std::end(of.quantities),
                                    [](const QuantityJudgement& quantity) { return !quantity.instances.empty(); });
      if (came || context.name.empty()) out.push_back(std::move(of));
    }
    return out;
  }

  // Back along the inputs that the records name.
  [[nodiscard]] std::optional<Path> actual_path(const JobRecord& output) const {
    Path path;
    path.jobs.resize(chain_.stages.size());
    const JobRecord* record = &output;
    for (std::size_t i = chain_.stages.size(); i-- > 0;) {
      path.jobs[i] = record->job;
      if (*inputs_[i] >= record->input_count) return std::nullopt;
      const sched::InputRecord& input = record->inputs[*inputs_[i]];
      if (input.kind == kInputMissing) return std::nullopt;
      if (i == 0) {
        path.sample = {input.job, {input.capture_ns}, {input.arrival_ns}, true};
        return path;
      }
      record = index_.find(stage_at(i - 1), input.job);
      if (record == nullptr) return std::nullopt;
    }
    return std::nullopt;
  }

  // Back along the bindings of the table.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> planned_jobs(const JobRecord& output) const {
    std::vector<std::uint64_t> jobs(chain_.stages.size());
    jobs.back() = output.job;
    for (std::size_t i = jobs.size() - 1; i > 0; --i) {
      const auto producer = index_.bound_job(stage_at(i), jobs[i], *inputs_[i]);
      if (!producer) return std::nullopt;
      jobs[i - 1] = *producer;
    }
    return jobs;
  }

  [[nodiscard]] std::optional<Path> planned_path(const JobRecord& output) const {
    auto jobs = planned_jobs(output);
    if (!jobs) return std::nullopt;
    Path path;
    path.jobs = std::move(*jobs);
    const JobRecord* first = index_.find(stage_at(0), path.jobs.front());
    if (first == nullptr) return std::nullopt;
    const SensorTime latch = in_sensor_time(first->nominal_start);
    const Sample* sample = newest_arrived(latch);
    if (sample != nullptr) {
      path.sample = latched_nothing(*first) ? successor(*sample, latch) : *sample;
      return path;
    }
    const auto before = latched_nothing(*first) ? predecessor(latch) : std::nullopt;
    if (!before) return std::nullopt;
    path.sample = *before;
    return path;
  }

  // A job that was not started, or for which the feeder was too late: which sample it would have used, no record says.
  [[nodiscard]] bool latched_nothing(const JobRecord& record) const {
    if (record.job_class == JobClass::kSkipped) return true;
    return *inputs_[0] < record.input_count && record.inputs[*inputs_[0]].reason == Reason::kFeederLate;
  }

  // The sample that by its sensor's period had surely arrived at the latch, where `known` is the newest that any job
  // used: what a stage that skips for long has lost is counted, too. `known` itself when there was no newer one, or the
  // log had ended.
  [[nodiscard]] Sample successor(const Sample& known, SensorTime latch) const {
    const Duration period = sched::longest_period(sensor_);
    const Duration since = latch - known.capture - sensor_.delay_max - stamp_error_;
    if (period.ns <= 0 || since < period) return known;
    const std::int64_t newer = since.ns / period.ns;
    const SensorTime capture = known.capture + period * newer;
    if (capture + sensor_.delay_max > last_arrival_) return known;
    return {known.index + static_cast<std::uint64_t>(newer), capture, capture + sensor_.delay_max, false};
  }

  // The sample that by its sensor's period had arrived at the latch, which lies before every sample that any job used:
  // a stage that skips from the beginning loses, too. None before the log's first.
  [[nodiscard]] std::optional<Sample> predecessor(SensorTime latch) const {
    const Duration period = sched::longest_period(sensor_);
    if (period.ns <= 0 || samples_.empty()) return std::nullopt;
    const Sample& known = samples_.front();
    const std::int64_t older = ((known.arrival - latch).ns + period.ns - 1) / period.ns;
    if (known.index < static_cast<std::uint64_t>(older)) return std::nullopt;
    const Duration since = period * older;
    return Sample{known.index - static_cast<std::uint64_t>(older), known.capture - since, known.arrival - since, false};
  }

  void walk_outputs() {
    for (const JobRecord* record : index_.stage(chain_.stages.back())) {
      Output output;
      output.record = record;
      output.planned = planned_path(*record);
      if (record->published != 0) output.actual = actual_path(*record);
      outputs_.push_back(std::move(output));
    }
    // The first output that used, or should have used, each sample.
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].actual) note_first(uses_[key_of(outputs_[i].actual->sample)].actual, i);
      if (outputs_[i].planned) note_first(uses_[key_of(outputs_[i].planned->sample)].planned, i);
    }
  }

  using SampleKey = std::pair<std::int64_t, std::uint64_t>;  // capture, index
  struct Use {
    std::optional<std::size_t> actual, planned;  // index into outputs_
  };
  static void note_first(std::optional<std::size_t>& first, std::size_t i) {
    if (!first) first = i;
  }
  static SampleKey key_of(const Sample& sample) { return {sample.capture.ns, sample.index}; }

  // ---- broken assumptions -------------------------------------------------------------------------------------

  static void add(std::vector<Broken>& list, Broken broken) {
    for (const Broken& known : list) {
      if (known.assumption == broken.assumption && known.by_sensor == broken.by_sensor &&
          known.subject == broken.subject && known.number == broken.number) {
        return;
      }
    }
    list.push_back(std::move(broken));
  }

  void job_assumptions(std::size_t position, std::uint64_t job, std::vector<Broken>& list, bool& fill) const {
    const std::uint32_t stage = stage_at(position);
    const JobRecord* record = index_.find(stage, job);
    if (record == nullptr) return;
    const auto broken = [&](Assumption assumption, std::string detail) {
      add(list, {assumption, false, stage, job, std::move(detail)});
    };
    if (index_.filling(*record)) {
      fill = true;
      return;
    }
    own_assumptions(*record, broken, fill);
    if (*inputs_[position] < record->input_count) {
      const sched::InputRecord& input = record->inputs[*inputs_[position]];
      if (input.kind == kInputMissing && !fill) missing_input(input.reason, broken, fill);
      if (input.kind == kInputHeld) {
        broken(Assumption::kProducerOutput,
               "the bound job published nothing, the output of job " + std::to_string(input.job) + " was held");
      }
    }
  }

  template <class Report>
  static void missing_input(Reason reason, const Report& broken, bool& fill) {
    switch (reason) {
      case Reason::kFeederLate: broken(Assumption::kFeeder, "the sample was not physically there in time"); break;
      case Reason::kProducerNothing: broken(Assumption::kProducerOutput, "the bound job published nothing"); break;
      case Reason::kBadFrame: broken(Assumption::kFrame, "the sample could not be decoded"); break;
      case Reason::kFill: fill = true; break;
      // Not the first one, which is fill (RecordIndex::filling): the sensor is silent or its frames are unusable.
      case Reason::kNoSample: broken(Assumption::kPeriod, "no sample has arrived at all"); break;
      default: broken(Assumption::kProducerOutput, "the input was missing"); break;
    }
  }

  template <class Report>
  void own_assumptions(const JobRecord& record, const Report& broken, bool& fill) const {
    if (record.job_class == JobClass::kSkipped) {
      if (record.reason == Reason::kPreviousRunning) {
        broken(Assumption::kWorkerFree, "skipped: its worker was still busy with an earlier job");
      } else if (record.reason == Reason::kNoCredit) {
        broken(Assumption::kCredit, "skipped: no output chunk was free");
      } else if (record.reason == Reason::kArena) {
        broken(Assumption::kWorkerFree, "skipped: the arena that it shares was still in use");
      } else if (record.reason == Reason::kDevice) {
        broken(Assumption::kDevice, "skipped: its device is lost");
      } else if (record.reason == Reason::kSkipNext) {
        broken(Assumption::kBudget, "skipped by its policy, because the job before overran");
      } else if (record.reason == Reason::kSlotOver) {
        broken(Assumption::kStart,
               "skipped: its dispatcher woke behind the end of its slot" + host_evidence(run_, record));
      } else {
        broken(Assumption::kWorkerFree, "skipped");
      }
      return;
    }
    if (record.job_class == JobClass::kMissing) {
      missing_input(record.reason, broken, fill);
      return;
    }
    if ((record.flags & sched::kFlagLateStart) != 0 && record.reason != Reason::kSlotOver) {
      Duration late;
      const std::string which = latest_segment(run_, record, late);
      broken(Assumption::kStart, which + "began " + ms_text(late) + " after its nominal start, the window is " +
                                     ms_text(start_window(record)) + host_evidence(run_, record));
    }
    if ((record.flags & sched::kFlagOverrun) != 0) {
      Duration took = sched::time_used(record), budget = budget_of(run_, record);
      const std::string which = worst_segment(run_, record, took, budget);
      broken(Assumption::kBudget,
             which + "took " + ms_text(took) + " of a budget of " + ms_text(budget) + host_evidence(run_, record));
    }
    if (record.reason == Reason::kDevice) {
      broken(Assumption::kDevice, "its device refused the work or was lost: nothing was published");
    } else if (record.reason == Reason::kUnit) {
      broken(Assumption::kWorkerFree, "given up: the unit of its next segment was still at work for another job");
    } else if (record.reason == Reason::kArena) {
      broken(Assumption::kWorkerFree, "given up: a mutex that its next segment shares was still in use");
    } else if (record.reason == Reason::kSlotOver) {
      broken(Assumption::kStart,
             "given up: a dispatcher woke when it was too late to go on" + host_evidence(run_, record));
    } else if ((record.flags & sched::kFlagDiscarded) != 0 || record.published == 0) {
      broken(Assumption::kPublish, "its late output was discarded");
    } else if ((record.flags & sched::kFlagLate) != 0) {
      broken(Assumption::kPublish, "published " + ms_text({record.publication - record.slot_end}) +
                                       " after the end of its slot" + host_evidence(run_, record));
    }
  }

  // w of the job's cores: the largest.
  [[nodiscard]] Duration start_window(const JobRecord& record) const {
    Duration window;
    const std::vector<sched::Slot>& slots = run_.table_of(record).slots;
    if (record.slot < slots.size()) {
      for (const std::uint32_t core : slots[record.slot].cores) {
        if (core < run_.problem.board.cores.size()) {
          window = std::max(window, run_.problem.board.cores[core].wakeup_window);
        }
      }
    }
    return window;
  }

  // What the stamps of a locked sensor count from, and their hyperperiod, in the table of a job of the first stage.
  struct Frame {
    TableTime origin;
    Duration hyperperiod;
  };
  [[nodiscard]] Frame frame_of(std::uint64_t first_job) const {
    const JobRecord* const record = index_.find(stage_at(0), first_job);
    if (record == nullptr) return {{}, run_.schedule.clock.hyperperiod};
    return {index_.origin(*record), run_.table_of(*record).clock.hyperperiod};
  }

  void sample_assumptions(const Sample& sample, std::uint64_t first_job, std::vector<Broken>& list) const {
    if (!sample.latched) return;
    const auto broken = [&](Assumption assumption, std::string detail) {
      add(list, {assumption, true, chain_.sensor, sample.index, std::move(detail)});
    };
    const Duration delay = sample.arrival - sample.capture;
    if (delay + stamp_error_ < sensor_.delay_min || delay > sensor_.delay_max + stamp_error_) {
      broken(Assumption::kArrival, "arrived " + ms_text(delay) + " after its stamp, declared are " +
                                       ms_text(sensor_.delay_min) + " to " + ms_text(sensor_.delay_max));
    }
    if (sensor_.phase) {
      const Frame frame = frame_of(first_job);
      const TableTime stamp = table_time(run_.sensor_from_table, sample.capture);
      const Duration late = after_phase(sensor_, frame.hyperperiod, TableTime{(stamp - frame.origin).ns});
      if (late > sensor_.phase->jitter) {
        broken(Assumption::kPhase, "its stamp lies " + ms_text(late) + " after the declared phase, allowed are " +
                                       ms_text(sensor_.phase->jitter));
      }
    }
  }

  // At the latch of the first stage's `job` the successor of the sample it used had to be there. After the end of the
  // log there is none: the pipeline drains.
  void gap_assumption(std::uint64_t job, std::vector<Broken>& list, bool& drain) const {
    const JobRecord* record = index_.find(stage_at(0), job);
    if (record == nullptr || *inputs_[0] >= record->input_count) return;
    const sched::InputRecord& input = record->inputs[*inputs_[0]];
    if (input.kind == kInputMissing) return;
    const SensorTime due = successor_due(SensorTime{input.capture_ns}, job);
    const SensorTime latch = in_sensor_time(record->nominal_start);
    if (latch < due) return;  // at the very instant it counts as arrived
    if (const BadFrame* bad = bad_frame_after(input, latch)) {
      add(list, {Assumption::kFrame, true, chain_.sensor, bad->index, "the sample could not be decoded"});
    } else if (due > last_arrival_) {
      drain = true;
    } else {
      add(list, {Assumption::kPeriod, true, chain_.sensor, input.job,
                 "no newer sample had arrived " + ms_text(latch - SensorTime{input.capture_ns}) +
                     " after its stamp; the period is " + ms_text(sensor_.period)});
    }
  }

  // When the sample after the one stamped `capture` has arrived at the latest. Of a locked sensor by its pattern, whose
  // stamps are exact: its slots may begin at that very nanosecond.
  [[nodiscard]] SensorTime successor_due(SensorTime capture, std::uint64_t first_job) const {
    if (!sensor_.phase) return capture + sched::longest_period(sensor_) + sensor_.delay_max + stamp_error_;
    const TableTime stamp = table_time(run_.sensor_from_table, capture);
    const Frame frame = frame_of(first_job);
    const NominalStamps nominal = nominal_stamps(sensor_, frame.hyperperiod, TableTime{(stamp - frame.origin).ns});
    return in_sensor_time(nominal.next_ns + frame.origin.ns) + sensor_.phase->jitter + sensor_.delay_max + stamp_error_;
  }

  // The first message after the latched sample that had arrived and could not be used.
  [[nodiscard]] const BadFrame* bad_frame_after(const sched::InputRecord& latched, SensorTime latch) const {
    for (const SensorHealth& health : run_.health) {
      if (health.sensor != sensor_.name) continue;
      const auto bad = std::upper_bound(health.left_out.begin(), health.left_out.end(), SensorTime{latched.arrival_ns},
                                        [](SensorTime t, const BadFrame& frame) { return t < frame.arrival; });
      if (bad != health.left_out.end() && bad->arrival <= latch) return &*bad;
    }
    return nullptr;
  }

  void path_assumptions(const Path& path, Instance& instance, bool& fill) const {
    for (std::size_t i = 0; i < path.jobs.size(); ++i) job_assumptions(i, path.jobs[i], instance.broken, fill);
    sample_assumptions(path.sample, path.jobs.front(), instance.broken);
    for (const std::string& topic : run_.undeclared_subscribers) {
      add(instance.broken, {Assumption::kSubscriber, true, chain_.sensor, path.sample.index,
                            "somebody subscribed to the timed topic " + topic + " during the run"});
    }
  }

  // ---- the quantities -----------------------------------------------------------------------------------------

  [[nodiscard]] Duration published_since(const JobRecord& record, SensorTime capture) const {
    return in_sensor_time(record.publication) - capture + run_.sensor_from_table.error + stamp_error_;
  }
  [[nodiscard]] Duration completed_since(const JobRecord& record, SensorTime capture) const {
    return in_sensor_time(record.completion) - capture + run_.sensor_from_table.error + stamp_error_;
  }

  static void decide(Instance& instance, const std::optional<Duration>& bound, bool fill) {
    if (fill) {
      instance.state = InstanceState::kFill;
    } else if (!instance.broken.empty()) {
      instance.state = InstanceState::kVoid;
    } else {
      const bool exceeded = !instance.reached || (bound && instance.published > *bound);
      instance.state = exceeded ? InstanceState::kViolated : InstanceState::kHeld;
    }
  }

  void latencies(QuantityJudgement& out) const {
    for (const auto& [key, use] : uses_) {
      Instance instance;
      bool fill = false;
      const Path* shown = nullptr;
      if (use.planned) {
        const Path& planned = *outputs_[*use.planned].planned;
        path_assumptions(planned, instance, fill);
        shown = &planned;
      }
      if (use.actual) {
        const Output& output = outputs_[*use.actual];
        path_assumptions(*output.actual, instance, fill);
        shown = &*output.actual;
        // Used again because its successor did not come: a gap of the sensor, or the end of the log.
        gap_assumption(shown->jobs.front(), instance.broken, fill);
        instance.reached = true;
        instance.output = output.record->job;
        instance.published = published_since(*output.record, shown->sample.capture);
        instance.completed = completed_since(*output.record, shown->sample.capture);
      }
      instance.sample = shown->sample.index;
      instance.capture = shown->sample.capture;
      instance.path = shown->jobs;
      // A sample that had arrived before the table began was meant for jobs that do not exist.
      fill = fill || shown->sample.arrival < table_start_;
      place(instance, Quantity::kLatency, shown->jobs.front(), shown->jobs.back(), fill);
      out.instances.push_back(std::move(instance));
    }
  }

  // Jobs that published nothing on the planned paths of the outputs in (first, last): what they would have carried may
  // never have been latched, so no sample stands for it.
  void lost_outputs(std::uint64_t first, std::uint64_t last, std::vector<Broken>& list) const {
    auto output = std::upper_bound(outputs_.begin(), outputs_.end(), first,
                                   [](std::uint64_t job, const Output& o) { return job < o.record->job; });
    for (; output != outputs_.end() && output->record->job < last; ++output) {
      const auto jobs = planned_jobs(*output->record);
      if (!jobs) continue;
      for (std::size_t i = 0; i < jobs->size(); ++i) {
        const JobRecord* record = index_.find(stage_at(i), (*jobs)[i]);
        bool fill = false;
        if (record != nullptr && record->published == 0) job_assumptions(i, record->job, list, fill);
      }
    }
  }

  // Latency plus the distance from the previous sample that reached an output: the wait of an event that happened
  // right after that sample.
  void reactions(const QuantityJudgement& latency, QuantityJudgement& out) const {
    const Instance* previous = nullptr;
    std::vector<Broken> between;  // of planned samples that were lost since `previous`
    for (const Instance& current : latency.instances) {
      if (!current.reached) {
        for (const Broken& broken : current.broken) add(between, broken);
        continue;
      }
      if (previous != nullptr) {
        Instance instance = current;
        const Duration wait = current.capture - previous->capture;
        instance.published += wait;
        instance.completed += wait;
        for (const Broken& broken : between) add(instance.broken, broken);
        // The wait begins at the stamp of the sample before.
        for (const Broken& broken : previous->broken) {
          if (broken.by_sensor) add(instance.broken, broken);
        }
        lost_outputs(previous->output, current.output, instance.broken);
        bool fill = current.state == InstanceState::kFill || previous->state == InstanceState::kFill;
        for (std::uint64_t job = previous->path.front() + 1; job <= current.path.front(); ++job) {
          gap_assumption(job, instance.broken, fill);
        }
        place(instance, Quantity::kReaction, previous->path.front(), current.path.back(), fill);
        out.instances.push_back(std::move(instance));
      }
      previous = &current;
      between.clear();
    }
  }

  void ages(QuantityJudgement& at_output, QuantityJudgement& until_replaced) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      if (!output.actual) continue;
      Instance instance;
      bool fill = false;
      path_assumptions(*output.actual, instance, fill);
      gap_assumption(output.actual->jobs.front(), instance.broken, fill);
      if (output.planned) {
        path_assumptions(*output.planned, instance, fill);
        gap_assumption(output.planned->jobs.front(), instance.broken, fill);
      } else {
        fill = true;  // the table binds this output to a job before job 0
      }
      instance.reached = true;
      instance.sample = output.actual->sample.index;
      instance.capture = output.actual->sample.capture;
      instance.output = output.record->job;
      instance.path = output.actual->jobs;
      instance.published = published_since(*output.record, instance.capture);
      instance.completed = completed_since(*output.record, instance.capture);
      Instance replaced = instance;
      place(instance, Quantity::kAgeAtOutput, instance.path.front(), instance.path.back(), fill);
      at_output.instances.push_back(std::move(instance));

      for (std::size_t next = i + 1; next < outputs_.size(); ++next) {
        const JobRecord& successor = *outputs_[next].record;
        const auto broken = [&](Assumption assumption, std::string detail) {
          add(replaced.broken, {assumption, false, successor.stage, successor.job, std::move(detail)});
        };
        bool successor_fill = false;
        own_assumptions(successor, broken, successor_fill);
        if (successor.published == 0) continue;
        replaced.published = published_since(successor, replaced.capture);
        replaced.completed = completed_since(successor, replaced.capture);
        place(replaced, Quantity::kAgeUntilReplaced, replaced.path.front(), successor.job, fill);
        until_replaced.instances.push_back(std::move(replaced));
        break;
      }
    }
  }

  static void close(QuantityJudgement& quantity) {
    for (std::size_t i = 0; i < quantity.instances.size(); ++i) {
      const Instance& instance = quantity.instances[i];
      switch (instance.state) {
        case InstanceState::kHeld: ++quantity.held; break;
        case InstanceState::kVoid: ++quantity.void_count; break;
        case InstanceState::kViolated: ++quantity.violated; break;
        case InstanceState::kFill: ++quantity.fill; continue;
      }
      if (!instance.reached) continue;
      if (instance.state == InstanceState::kHeld) quantity.held_max = std::max(quantity.held_max, instance.published);
      quantity.completed_max = std::max(quantity.completed_max, instance.completed);
      if (!quantity.worst || instance.published > quantity.instances[*quantity.worst].published) quantity.worst = i;
    }
    if (quantity.worst) quantity.published_max = quantity.instances[*quantity.worst].published;
  }

  struct Context {
    std::string name;
    std::uint32_t from = 0, to = 0;  // modes
    const sched::ChainBound* bound = nullptr;
    std::array<std::optional<Duration>, sched::kQuantities> limits;
  };

  const RunData& run_;
  const RecordIndex& index_;
  const sched::Chain& chain_;
  const sched::Sensor& sensor_;
  std::vector<Context> contexts_;
  std::vector<std::optional<std::uint32_t>> inputs_;  // by position in the chain
  std::vector<Sample> samples_;                       // by (arrival, capture, index)
  std::vector<Output> outputs_;                       // by job of the last stage
  std::map<SampleKey, Use> uses_;
  Duration stamp_error_;  // of the map of the sensor's own clock
  SensorTime table_start_;
  SensorTime last_arrival_{std::numeric_limits<std::int64_t>::min()};  // of any sensor
};

}  // namespace

std::vector<ChainJudgement> judge_chain(const RunData& run, const RecordIndex& index, std::uint32_t chain) {
  return ChainJudge(run, index, chain).judge();
}

}  // namespace takt::pipeline
