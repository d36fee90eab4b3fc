#include "pipeline/report/baselines.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "pipeline/report/ready_queue.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/verdict.h"
#include "runtime/transport/binder.h"

namespace takt::pipeline {
namespace {

using sched::kNever;

constexpr std::uint64_t kWarmUp = 2;  // hyperperiods until every chain is filled, not counted

// Collects what comes out of every chain between warm-up and end, simulated or real.
class Meter {
 public:
  Meter(const sched::Problem& problem, const sched::Schedule& table, std::uint64_t hyperperiods)
      : problem_(problem),
        table_(table),
        hyperperiods_(std::max(hyperperiods, kWarmUp)),
        rates_(problem.stages.size(), 0),
        chains_(problem.chains.size()) {
    for (const sched::Slot& slot : table.slots) ++rates_[slot.stage];
  }

  // An output of chain `c` at `at`, and the capture stamp of the newest sample that it carries along the chain. Both in
  // table time; in the order of the outputs, or nearly.
  void output(std::size_t c, std::int64_t at, std::optional<std::int64_t> carried) {
    const std::int64_t h = table_.clock.hyperperiod.ns;
    Track& track = chains_[c];
    if (at < static_cast<std::int64_t>(kWarmUp) * h || at >= static_cast<std::int64_t>(hyperperiods_) * h) {
      if (carried) track.newest = std::max(track.newest, *carried);
      return;
    }
    track.outputs.push_back(at);
    if (carried && *carried > track.newest) {
      track.newest = *carried;
      track.latencies.push_back(at - *carried);
    }
  }

  [[nodiscard]] Baseline close(Way way, double load) {
    Baseline out{way, load, {}};
    for (std::size_t c = 0; c < chains_.size(); ++c) out.chains.push_back(close(c));
    return out;
  }

 private:
  struct Track {
    std::vector<std::int64_t> outputs;
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    std::vector<std::int64_t> latencies;
  };

  BaselineChain close(std::size_t c) {
    Track& track = chains_[c];
    const sched::Chain& chain = problem_.chains[c];
    BaselineChain out;
    if (chain.stages.empty()) return out;
    std::sort(track.outputs.begin(), track.outputs.end());
    out.outputs = track.latencies.size();
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (const std::uint32_t stage : chain.stages)
      slowest = std::min(slowest, std::max<std::int64_t>(1, rates_[stage]));
    out.planned = (hyperperiods_ - kWarmUp) * static_cast<std::uint64_t>(slowest);
    out.misses = out.planned - std::min(out.planned, out.outputs);
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (std::size_t i = 1; i < track.outputs.size(); ++i) {
      least = std::min(least, track.outputs[i] - track.outputs[i - 1]);
      most = std::max(most, track.outputs[i] - track.outputs[i - 1]);
    }
    if (track.outputs.size() > 1) out.jitter = {most - least};
    std::optional<Duration> limit = chain.limits[static_cast<std::size_t>(sched::Quantity::kLatency)];
    for (const sched::ChainBound& bound : table_.bounds) {
      if (bound.chain == c && !limit) limit = bound.bounds[static_cast<std::size_t>(sched::Quantity::kLatency)];
    }
    for (const std::int64_t latency : track.latencies) {
      out.worst_latency = std::max(out.worst_latency, Duration{latency});
      if (limit && latency > limit->ns) ++out.misses;
    }
    return out;
  }

  const sched::Problem& problem_;
  const sched::Schedule& table_;
  std::uint64_t hyperperiods_;
  std::vector<std::int64_t> rates_;
  std::vector<Track> chains_;
};

// Newest capture stamp of each chain's sensor that an output carries along that chain's path; by chain.
using Carried = std::vector<std::optional<std::int64_t>>;

class Simulation {
 public:
  Simulation(const RunData& run, Way way, double load)
      : problem_(run.modes.empty() ? run.problem : problem_of_mode(run.problem, run.modes.front())),
        table_(run.schedule),
        way_(way),
        load_(load),
        h_(run.schedule.clock.hyperperiod.ns),
        hyperperiods_(std::clamp<std::uint64_t>(run.dispatch.hyperperiods_run, 10, kMostHyperperiods)),
        meter_(problem_, table_, hyperperiods_),
        last_(problem_.stages.size()),
        rates_(problem_.stages.size(), 0) {
    for (const sched::Slot& slot : table_.slots) ++rates_[slot.stage];
    times_.resize(problem_.stages.size());
    if (run.mode != "lockstep") {
      for (const sched::JobRecord& record : run.records) {
        if (record.mode != 0 || record.actual_start == kNever || record.completion <= record.actual_start) continue;
        times_[record.stage].push_back(record.completion - record.actual_start);
      }
    }
    for (std::size_t s = 0; s < times_.size(); ++s) {
      const sched::Budget& budget = table_.choices[s].budget;
      if (times_[s].empty()) times_[s].push_back(budget.high_water.ns > 0 ? budget.high_water.ns : budget.time.ns);
    }
  }

  Baseline run() {
    switch (way_) {
      case Way::kTable: table(); break;
      case Way::kFifo:
      case Way::kEdf:
      case Way::kEpoch: without_table(); break;
    }
    return meter_.close(way_, load_);
  }

 private:
  [[nodiscard]] std::int64_t rate(std::size_t stage) const { return std::max<std::int64_t>(1, rates_[stage]); }
  [[nodiscard]] std::int64_t end() const { return static_cast<std::int64_t>(hyperperiods_) * h_; }
  [[nodiscard]] std::int64_t time_of(std::size_t stage, std::uint64_t job) const {
    const auto t = static_cast<double>(times_[stage][job % times_[stage].size()]);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(t * load_));
  }

  // Newest stamp of a sensor that has arrived at `now`; nullopt before the first.
  [[nodiscard]] std::optional<std::int64_t> newest_sample(std::size_t sensor, std::int64_t now) const {
    const sched::Sensor& s = problem_.sensors[sensor];
    const std::int64_t phase = s.phase ? s.phase->offset.ns : 0;
    const std::int64_t since = now - phase - s.delay_max.ns;
    if (since < 0 || s.period.ns <= 0) return std::nullopt;
    return phase + nth(s, since);
  }
  // The largest k-th distance from the first stamp that is not above `since`: the exact period, no sum of rounded ones.
  [[nodiscard]] std::int64_t nth(const sched::Sensor& s, std::int64_t since) const {
    const auto [samples, span] = pattern(s);
    const std::int64_t k = since / span * samples + since % span * samples / span;
    for (std::int64_t i = k + 1;; --i) {
      const std::int64_t at = i / samples * span + i % samples * span / samples;
      if (at <= since) return at;
    }
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> pattern(const sched::Sensor& s) const {
    if (const auto exact = sched::sample_pattern(s, Duration{h_})) {
      return {exact->samples, exact->hyperperiods * h_};
    }
    return {1, s.period.ns};
  }

  // What a job of `stage` carries that reads its stage inputs through `input` (a Carried of the producer, or null).
  template <class FromStage>
  [[nodiscard]] Carried carry(std::size_t stage, std::int64_t now, const FromStage& from_stage) const {
    Carried out(problem_.chains.size());
    for (std::size_t c = 0; c < out.size(); ++c) {
      const sched::Chain& chain = problem_.chains[c];
      const auto at = std::find(chain.stages.begin(), chain.stages.end(), stage);
      if (at == chain.stages.end()) continue;
      if (at == chain.stages.begin()) {
        out[c] = newest_sample(chain.sensor, now);
      } else if (const Carried* producer = from_stage(*(at - 1))) {
        out[c] = (*producer)[c];
      }
    }
    return out;
  }

  void publish(std::size_t stage, std::int64_t at, Carried carried) {
    for (std::size_t c = 0; c < problem_.chains.size(); ++c) {
      if (problem_.chains[c].stages.empty() || problem_.chains[c].stages.back() != stage) continue;
      meter_.output(c, at, carried[c]);
    }
    last_[stage] = std::move(carried);
  }

  // ---- the table ----------------------------------------------------------------------------------------------

  void table() {
    std::vector<const sched::Slot*> order;
    for (const sched::Slot& slot : table_.slots) order.push_back(&slot);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::tuple(a->start, a->stage) < std::tuple(b->start, b->stage);
    });
    const std::size_t cores = problem_.board.cores.size();
    std::vector<std::int64_t> free_at(cores, 0);                   // of slots; leftovers run behind it
    std::vector<std::map<std::size_t, std::int64_t>> left(cores);  // per core: stage -> time that it still needs there
    std::vector<std::map<std::uint64_t, Carried>> published(problem_.stages.size());
    for (std::uint64_t cycle = 0; cycle < hyperperiods_; ++cycle) {
      for (const sched::Slot* slot : order) {
        const std::size_t stage = slot->stage;
        const std::int64_t start = table_.clock.start_at(cycle, slot->start).ns;
        const std::int64_t slot_end = table_.clock.end_at(cycle, slot->end).ns;
        bool busy = false;
        for (const std::uint32_t core : slot->cores) {
          catch_up(left[core], start - free_at[core]);
          free_at[core] = std::max(free_at[core], start);
          busy = busy || left[core].contains(stage);
        }
        if (busy) continue;  // skipped: its worker still runs
        const std::uint64_t job = cycle * static_cast<std::uint64_t>(rate(stage)) + slot->job;
        const std::int64_t until =
            std::min(slot_end + problem_.stages[stage].slack.ns, next_start(order, *slot, cycle));
        const std::int64_t completion = start + time_of(stage, job);
        for (const std::uint32_t core : slot->cores) {
          free_at[core] = std::min(completion, until);
          if (completion > until) left[core][stage] = completion - until;
        }
        if (completion > until) continue;  // discarded
        Carried carried = carry(stage, start, [&](std::size_t producer) -> const Carried* {
          return bound_output(published[producer], stage, producer, cycle, slot->job);
        });
        published[stage][job] = carried;
        publish(stage, std::max(slot_end, completion), std::move(carried));
      }
    }
  }

  static void catch_up(std::map<std::size_t, std::int64_t>& left, std::int64_t gap) {
    for (auto at = left.begin(); at != left.end() && gap > 0;) {
      const std::int64_t done = std::min(gap, at->second);
      gap -= done;
      at->second -= done;
      at = at->second == 0 ? left.erase(at) : std::next(at);
    }
  }

  // Of the next slot on any core of this one.
  [[nodiscard]] std::int64_t next_start(const std::vector<const sched::Slot*>& order, const sched::Slot& slot,
                                        std::uint64_t cycle) const {
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (const sched::Slot* other : order) {
      if (std::find_first_of(slot.cores.begin(), slot.cores.end(), other->cores.begin(), other->cores.end()) ==
          slot.cores.end()) {
        continue;
      }
      const std::uint64_t when = other->start > slot.start ? cycle : cycle + 1;
      next = std::min(next, table_.clock.start_at(when, other->start).ns);
    }
    return next;
  }

  [[nodiscard]] const Carried* bound_output(const std::map<std::uint64_t, Carried>& outputs, std::size_t stage,
                                            std::size_t producer, std::uint64_t cycle, std::uint32_t job) const {
    for (const sched::Binding& b : table_.bindings) {
      if (b.stage != stage || b.job != job || b.producer_stage != producer) continue;
      const std::int64_t bound = (static_cast<std::int64_t>(cycle) + b.producer_shift) * rate(producer) +
                                 static_cast<std::int64_t>(b.producer_job);
      const auto& inputs = problem_.stages[stage].inputs;
      const std::int64_t oldest = b.input < inputs.size() ? bound - inputs[b.input].absence.hold : bound;
      for (std::int64_t j = bound; j >= std::max<std::int64_t>(0, oldest); --j) {
        const auto at = outputs.find(static_cast<std::uint64_t>(j));
        if (at != outputs.end()) return &at->second;
      }
    }
    return nullptr;
  }

  // ---- event-driven and epochs --------------------------------------------------------------------------------

  // Arrivals of every sensor's samples as the rig's model says, with its longest delay.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> arrivals() const {
    std::vector<std::vector<std::int64_t>> out(problem_.sensors.size());
    for (std::size_t s = 0; s < out.size(); ++s) {
      const sched::Sensor& sensor = problem_.sensors[s];
      if (sensor.period.ns <= 0) continue;
      const auto [samples, span] = pattern(sensor);
      const std::int64_t first = (sensor.phase ? sensor.phase->offset.ns : 0) + sensor.delay_max.ns;
      for (std::int64_t k = 0;; ++k) {
        const std::int64_t at = first + k / samples * span + k % samples * span / samples;
        if (at >= end()) break;
        out[s].push_back(at);
      }
    }
    return out;
  }

  void without_table() {
    ReadyQueue queue(problem_, table_, way_, releases(problem_, table_, way_, hyperperiods_, arrivals()));
    struct Running {
      std::int64_t completion = 0;
      Carried carried;
    };
    std::map<std::uint32_t, Running> running;  // by stage
    while (!queue.over()) {
      std::int64_t now = queue.next_release();
      for (const auto& [stage, job] : running) now = std::min(now, job.completion);
      for (auto at = running.begin(); at != running.end();) {
        if (at->second.completion > now) {
          ++at;
          continue;
        }
        publish(at->first, at->second.completion, std::move(at->second.carried));
        queue.complete(at->first);
        at = running.erase(at);
      }
      queue.release_until(now);
      for (const Release& job : queue.start_ready()) {
        running[job.stage] = {now + time_of(job.stage, job.job), carry(job.stage, now, [&](std::size_t producer) {
                                return last_[producer] ? &*last_[producer] : nullptr;
                              })};
      }
    }
  }

  const sched::Problem problem_;
  const sched::Schedule& table_;
  Way way_;
  double load_;
  std::int64_t h_;
  std::uint64_t hyperperiods_;
  std::vector<std::vector<std::int64_t>> times_;  // by stage, of its recorded jobs in order
  Meter meter_;
  std::vector<std::optional<Carried>> last_;  // by stage: its newest output
  std::vector<std::int64_t> rates_;           // jobs per hyperperiod, as the table has them
};

// The newest capture stamp of the chain's sensor that a job of its stage number `at` used, followed back through the
// jobs that the records name; nullopt where one of them had nothing.
std::optional<SensorTime> carried_by(const RecordIndex& index, const sched::Chain& chain, std::size_t at,
                                     const sched::JobRecord& record) {
  const std::uint32_t source = at == 0 ? chain.sensor : chain.stages[at - 1];
  const auto input = index.input_from(chain.stages[at], at == 0, source);
  if (!input || *input >= record.input_count) return std::nullopt;
  const sched::InputRecord& used = record.inputs[*input];
  if (static_cast<transport::Selection>(used.kind) == transport::Selection::kMissing) return std::nullopt;
  if (at == 0) return SensorTime{used.capture_ns};
  const sched::JobRecord* const producer = index.find(source, used.job);
  return producer == nullptr ? std::nullopt : carried_by(index, chain, at - 1, *producer);
}

}  // namespace

const char* name_of(Way way) {
  switch (way) {
    case Way::kTable: return "table";
    case Way::kFifo: return "event-driven, FIFO";
    case Way::kEdf: return "event-driven, EDF";
    case Way::kEpoch: return "epochs with a barrier";
  }
  return "";
}

bool in_one_piece(const sched::Schedule& table) {
  return std::all_of(table.slots.begin(), table.slots.end(), [](const sched::Slot& slot) { return slot.segment == 0; });
}

sched::Problem problem_of_mode(const sched::Problem& whole, const sched::ModeTable& mode) {
  sched::Problem out = whole;
  for (std::size_t c = 0; c < out.chains.size(); ++c) {
    sched::Chain& chain = out.chains[c];
    std::copy(mode.limits[c].begin(), mode.limits[c].end(), std::begin(chain.limits));
    const bool there = std::any_of(mode.schedule.bounds.begin(), mode.schedule.bounds.end(),
                                   [c](const sched::ChainBound& bound) { return bound.chain == c; });
    if (!there) chain.stages.clear();
  }
  return out;
}

Baseline simulate(const RunData& run, Way way, double load) { return Simulation(run, way, load).run(); }

std::uint64_t compared_hyperperiods(const RunData& run) {
  std::int64_t newest = 0;  // arrival of a sample that was used
  for (const sched::JobRecord& record : run.records) {
    const std::vector<sched::Input>& inputs = run.problem.stages[record.stage].inputs;
    for (std::size_t i = 0; i < inputs.size() && i < record.input_count; ++i) {
      if (!inputs[i].from_sensor || record.inputs[i].kind > 1) continue;
      newest = std::max(newest, table_time(run.sensor_from_table, {record.inputs[i].arrival_ns}).ns);
    }
  }
  return std::min(kMostHyperperiods, static_cast<std::uint64_t>(newest / run.schedule.clock.hyperperiod.ns));
}

Baseline measure(const RunData& run, Way way, double load, std::uint64_t hyperperiods) {
  Meter meter(run.problem, run.schedule, hyperperiods);
  const RecordIndex index(run);
  std::vector<const sched::JobRecord*> outputs;
  for (const sched::JobRecord& record : run.records) {
    if (record.published != 0) outputs.push_back(&record);
  }
  std::stable_sort(outputs.begin(), outputs.end(),
                   [](const auto* a, const auto* b) { return a->publication < b->publication; });
  for (const sched::JobRecord* const record : outputs) {
    for (std::size_t c = 0; c < run.problem.chains.size(); ++c) {
      const sched::Chain& chain = run.problem.chains[c];
      if (chain.stages.empty() || chain.stages.back() != record->stage) continue;
      const auto capture = carried_by(index, chain, chain.stages.size() - 1, *record);
      meter.output(c, record->publication,
                   capture ? std::optional(table_time(run.sensor_from_table, *capture).ns) : std::nullopt);
    }
  }
  return meter.close(way, load);
}

std::vector<Baseline> baselines(const RunData& run) {
  if (!in_one_piece(run.schedule)) return {};  // other ways know whole jobs
  std::vector<Baseline> out;
  for (const double load : kLoads) {
    for (const Way way : kWays) out.push_back(simulate(run, way, load));
  }
  return out;
}

}  // namespace takt::pipeline
