#include "pipeline/report/baselines.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace takt::pipeline {
namespace {

using sched::kNever;

constexpr std::uint64_t kMostHyperperiods = 100;
constexpr std::uint64_t kWarmUp = 2;  // hyperperiods until every chain is filled, not counted

// Newest capture stamp of each chain's sensor that an output carries along that chain's path; by chain.
using Carried = std::vector<std::optional<std::int64_t>>;

class Simulation {
 public:
  Simulation(const RunData& run, Way way, double load)
      : run_(run),
        problem_(run.problem),
        table_(run.schedule),
        way_(way),
        load_(load),
        h_(run.schedule.clock.hyperperiod.ns),
        hyperperiods_(std::clamp<std::uint64_t>(run.dispatch.hyperperiods_run, 10, kMostHyperperiods)),
        chains_(problem_.chains.size()),
        last_(problem_.stages.size()),
        cores_(problem_.stages.size()),
        rates_(problem_.stages.size(), 0) {
    for (const sched::Slot& slot : table_.slots) {
      cores_[slot.stage] = slot.cores;
      ++rates_[slot.stage];
    }
    times_.resize(problem_.stages.size());
    if (run.mode != "lockstep") {
      for (const sched::JobRecord& record : run.records) {
        if (record.actual_start == kNever || record.completion <= record.actual_start) continue;
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
      case Way::kEdf: event_driven(); break;
      case Way::kEpoch: epochs(); break;
    }
    Baseline out{way_, load_, {}};
    for (std::size_t c = 0; c < chains_.size(); ++c) out.chains.push_back(close(c));
    return out;
  }

 private:
  struct Track {  // of one chain
    std::vector<std::int64_t> outputs;
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    std::vector<std::int64_t> latencies;
  };

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
    if (const auto exact = sched::sample_pattern(s, problem_.hyperperiod)) {
      return {exact->samples, exact->hyperperiods * h_};
    }
    return {1, s.period.ns};
  }

  // What a job of `stage` carries that reads its stage inputs through `input` (a Carried of the producer, or null).
  template <class FromStage>
  [[nodiscard]] Carried carry(std::size_t stage, std::int64_t now, const FromStage& from_stage) const {
    Carried out(chains_.size());
    for (std::size_t c = 0; c < chains_.size(); ++c) {
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
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      if (problem_.chains[c].stages.empty() || problem_.chains[c].stages.back() != stage) continue;
      if (at < static_cast<std::int64_t>(kWarmUp) * h_ || at >= end()) {
        if (carried[c]) chains_[c].newest = std::max(chains_[c].newest, *carried[c]);
        continue;
      }
      chains_[c].outputs.push_back(at);
      if (carried[c] && *carried[c] > chains_[c].newest) {
        chains_[c].newest = *carried[c];
        chains_[c].latencies.push_back(at - *carried[c]);
      }
    }
    last_[stage] = std::move(carried);
  }

  BaselineChain close(std::size_t c) {
    Track& track = chains_[c];
    const sched::Chain& chain = problem_.chains[c];
    BaselineChain out;
    std::sort(track.outputs.begin(), track.outputs.end());
    out.outputs = track.latencies.size();
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (const std::uint32_t stage : chain.stages) slowest = std::min(slowest, rate(stage));
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

  struct Waiting {
    std::int64_t release = 0, deadline = 0;
    std::uint64_t job = 0;
  };

  // Instants at which the stage is released, ascending.
  [[nodiscard]] std::vector<std::int64_t> releases(std::size_t stage) const {
    std::vector<std::int64_t> out;
    for (const sched::Input& input : problem_.stages[stage].inputs) {
      if (!input.from_sensor) continue;
      const sched::Sensor& sensor = problem_.sensors[input.source];
      const auto [samples, span] = pattern(sensor);
      if (samples * h_ == rate(stage) * span) {  // takes every sample
        const std::int64_t first = (sensor.phase ? sensor.phase->offset.ns : 0) + sensor.delay_max.ns;
        for (std::int64_t k = 0;; ++k) {
          const std::int64_t at = first + k / samples * span + k % samples * span / samples;
          if (at >= end()) return out;
          out.push_back(at);
        }
      }
      break;
    }
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(hyperperiods_) * rate(stage); ++k) {
      out.push_back(k / rate(stage) * h_ + k % rate(stage) * h_ / rate(stage));
    }
    return out;
  }

  void event_driven() {
    std::vector<std::tuple<std::int64_t, std::size_t, std::uint64_t>> coming;  // release, stage, job
    for (std::size_t s = 0; s < problem_.stages.size(); ++s) {
      std::uint64_t job = 0;
      for (const std::int64_t at : releases(s)) coming.emplace_back(at, s, job++);
    }
    std::sort(coming.begin(), coming.end());
    std::size_t next = 0;
    reset();
    while (next < coming.size() || !running_.empty()) {
      const std::int64_t now = std::min(next < coming.size() ? std::get<0>(coming[next]) : kFar, next_completion());
      complete_until(now);
      for (; next < coming.size() && std::get<0>(coming[next]) == now; ++next) {
        const auto [at, stage, job] = coming[next];
        // A queue of one: a release that finds one waiting replaces it.
        waiting_[stage] = Waiting{at, at + h_ / rate(stage), job};
      }
      start_ready(now);
    }
  }

  void epochs() {
    std::int64_t fastest = 1;
    for (std::size_t s = 0; s < problem_.stages.size(); ++s) fastest = std::max(fastest, rate(s));
    const auto epoch_start = [&](std::int64_t e) { return e / fastest * h_ + e % fastest * h_ / fastest; };
    const auto count = static_cast<std::int64_t>(hyperperiods_) * fastest;
    reset();
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t begin = epoch_start(e);
      if (!running_.empty() || has_waiting()) {
        // The barrier has not been reached when this epoch should begin: finish, and let it fall out.
        finish_epoch(begin);
        if (!running_.empty() || has_waiting()) continue;
      }
      for (std::size_t s = 0; s < problem_.stages.size(); ++s) {
        for (std::int64_t k = 0; k < rate(s); ++k) {
          if (k * fastest / rate(s) != e % fastest) continue;
          waiting_[s] = Waiting{begin, begin, static_cast<std::uint64_t>(e / fastest * rate(s) + k)};
        }
      }
      start_ready(begin);
    }
    finish_epoch(kFar);
  }

  // Runs what was begun until `until`.
  void finish_epoch(std::int64_t until) {
    while (!running_.empty() && next_completion() <= until) {
      const std::int64_t now = next_completion();
      complete_until(now);
      start_ready(now);
    }
  }

  static constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  struct Running {
    std::int64_t completion = 0;
    Carried carried;
  };

  void reset() {
    waiting_.assign(problem_.stages.size(), std::nullopt);
    running_.clear();
  }
  [[nodiscard]] bool has_waiting() const {
    return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& w) { return w.has_value(); });
  }
  [[nodiscard]] std::int64_t next_completion() const {
    std::int64_t next = kFar;
    for (const auto& [stage, job] : running_) next = std::min(next, job.completion);
    return next;
  }
  void complete_until(std::int64_t now) {
    for (auto at = running_.begin(); at != running_.end();) {
      if (at->second.completion > now) {
        ++at;
        continue;
      }
      publish(at->first, at->second.completion, std::move(at->second.carried));
      at = running_.erase(at);
    }
  }

  // In an epoch a job waits for its producers of the same epoch.
  [[nodiscard]] bool inputs_ready(std::size_t stage) const {
    if (way_ != Way::kEpoch) return true;
    for (const sched::Input& input : problem_.stages[stage].inputs) {
      if (input.from_sensor || input.feedback) continue;
      if (waiting_[input.source] || running_.contains(input.source)) return false;
    }
    return true;
  }

  // Starts what may start, in order; a job that must wait for a core keeps later ones off all of its cores.
  void start_ready(std::int64_t now) {
    std::vector<std::pair<std::tuple<std::int64_t, std::int64_t, std::size_t>, std::size_t>> order;
    for (std::size_t s = 0; s < waiting_.size(); ++s) {
      if (!waiting_[s]) continue;
      const std::int64_t first = way_ == Way::kEdf ? waiting_[s]->deadline : waiting_[s]->release;
      order.push_back({{first, waiting_[s]->release, s}, s});
    }
    std::sort(order.begin(), order.end());
    std::set<std::uint32_t> taken;
    for (const auto& [stage, job] : running_) taken.insert(cores_[stage].begin(), cores_[stage].end());
    for (const auto& [key, stage] : order) {
      if (!inputs_ready(stage)) continue;
      const bool blocked =
          running_.contains(stage) || std::any_of(cores_[stage].begin(), cores_[stage].end(),
                                                  [&](std::uint32_t core) { return taken.contains(core); });
      if (!blocked) {
        running_[stage] = {now + time_of(stage, waiting_[stage]->job), carry(stage, now, [&](std::size_t producer) {
                             return last_[producer] ? &*last_[producer] : nullptr;
                           })};
        waiting_[stage].reset();
      }
      taken.insert(cores_[stage].begin(), cores_[stage].end());
    }
  }

  const RunData& run_;
  const sched::Problem& problem_;
  const sched::Schedule& table_;
  Way way_;
  double load_;
  std::int64_t h_;
  std::uint64_t hyperperiods_;
  std::vector<std::vector<std::int64_t>> times_;  // by stage, of its recorded jobs in order
  std::vector<Track> chains_;
  std::vector<std::optional<Carried>> last_;  // by stage: its newest output
  std::vector<std::vector<std::uint32_t>> cores_;
  std::vector<std::int64_t> rates_;              // jobs per hyperperiod, as the table has them
  std::vector<std::optional<Waiting>> waiting_;  // by stage
  std::map<std::size_t, Running> running_;       // by stage
};

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

Baseline simulate(const RunData& run, Way way, double load) { return Simulation(run, way, load).run(); }

std::vector<Baseline> baselines(const RunData& run) {
  std::vector<Baseline> out;
  for (const double load : kLoads) {
    for (const Way way : kWays) out.push_back(simulate(run, way, load));
  }
  return out;
}

}  // namespace takt::pipeline
