// The four quantities of a chain, each from its definition. Notation and derivation: README.md of this folder.
#include <algorithm>
#include <numeric>
#include <optional>

#include "scheduler/analysis/instants.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/table_time.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

// The outputs of one chain, numbered like the jobs of its last stage.
class Outputs {
 public:
  Outputs(const Problem& problem, const analysis::Instants& instants, const Chain& chain)
      : instants_(instants), stages_(chain.stages), hyperperiod_(problem.hyperperiod.ns) {}

  [[nodiscard]] std::int64_t per_hyperperiod() const { return instants_.jobs(stages_.back()); }
  // Publication.
  [[nodiscard]] std::int64_t end(std::int64_t output) const { return instants_.end(stages_.back(), output); }
  // The job of the first stage it goes back to, and that job's start: the latch of the sensor sample.
  [[nodiscard]] std::int64_t source(std::int64_t output) const {
    std::int64_t job = output;
    for (std::size_t i = stages_.size() - 1; i > 0; --i) job = instants_.bound(stages_[i], stages_[i - 1], job);
    return job;
  }
  [[nodiscard]] std::int64_t latch(std::int64_t output) const {
    return instants_.start(stages_.front(), source(output));
  }
  // The first output whose latch is not before `when`.
  [[nodiscard]] std::int64_t first_from(std::int64_t when) const {
    std::int64_t output = (when / hyperperiod_) * per_hyperperiod();
    while (latch(output) >= when) --output;
    while (latch(output) < when) ++output;
    return output;
  }
  // Where the time of one output goes, from the latch on: " + stage slot + wait w + stage slot".
  [[nodiscard]] std::string slots(const Problem& problem, std::int64_t output) const {
    std::vector<std::int64_t> jobs{output};
    for (std::size_t i = stages_.size() - 1; i > 0; --i) {
      jobs.push_back(instants_.bound(stages_[i], stages_[i - 1], jobs.back()));
    }
    std::reverse(jobs.begin(), jobs.end());
    std::string text;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const std::int64_t start = instants_.start(stages_[i], jobs[i]);
      if (i > 0) {
        const std::int64_t wait = start - instants_.end(stages_[i - 1], jobs[i - 1]);
        if (wait > 1) text += " + wait " + ms_text({wait});
      }
      text += " + " + problem.stages[stages_[i]].name + " " + ms_text({instants_.end(stages_[i], jobs[i]) - start});
    }
    return text;
  }

 private:
  const analysis::Instants& instants_;
  std::vector<std::uint32_t> stages_;
  std::int64_t hyperperiod_;
};

// The worst latency and how it came about.
struct Latency {
  std::int64_t ns = 0;
  std::int64_t output = 0;
  std::int64_t wait = 0;  // from the sample's latest arrival to the latch
  void offer(std::int64_t latency, std::int64_t of_output, std::int64_t wait_before) {
    if (latency <= ns) return;
    ns = latency;
    output = of_output;
    wait = wait_before;
  }
};

Latency free_latency(const Outputs& outputs, std::int64_t period, std::int64_t delay) {
  Latency worst;
  for (std::int64_t output = 0; output < outputs.per_hyperperiod(); ++output) {
    const std::int64_t latch = outputs.latch(output);
    const std::int64_t latch_before = outputs.latch(output - 1);
    if (latch == latch_before) continue;  // not the first output of this source job
    // The sample arrived after the latch before, and less than a period before this one.
    const std::int64_t arrival = std::max(latch_before, latch - period);
    worst.offer(outputs.end(output) - arrival + delay, output, latch - arrival);
  }
  return worst;
}

std::int64_t free_reaction(const Outputs& outputs, std::int64_t period, std::int64_t delay) {
  std::int64_t worst = 0;
  for (std::int64_t output = 0; output < outputs.per_hyperperiod(); ++output) {
    const std::int64_t latch_before = outputs.latch(output - 1);
    if (outputs.latch(output) == latch_before) continue;
    // The event fell just behind a sample; the next one arrived just behind the latch before.
    worst = std::max(worst, outputs.end(output) - latch_before + delay + period);
  }
  return worst;
}

std::int64_t free_age(const Outputs& outputs, std::int64_t period, std::int64_t delay, std::int64_t later) {
  std::int64_t worst = 0;
  for (std::int64_t output = 0; output < outputs.per_hyperperiod(); ++output) {
    worst = std::max(worst, outputs.end(output + later) - outputs.latch(output) + period + delay);
  }
  return worst;
}

// A locked sensor's samples: stamp reference in [stamp(k), stamp(k) + jitter], arrived for certain at settled(k).
class Samples {
 public:
  Samples(const Sensor& sensor, const SamplePattern& pattern, std::int64_t hyperperiod)
      : sensor_(sensor), pattern_(pattern), span_(pattern.hyperperiods * hyperperiod) {}
  [[nodiscard]] std::int64_t count() const { return pattern_.samples; }
  [[nodiscard]] std::int64_t stamp(std::int64_t k) const {
    const std::int64_t rest = ((k % pattern_.samples) + pattern_.samples) % pattern_.samples;
    const std::int64_t turn = (k - rest) / pattern_.samples;
    __extension__ using Wide = __int128;
    return sensor_.phase->offset.ns + turn * span_ +
           static_cast<std::int64_t>(static_cast<Wide>(rest) * span_ / pattern_.samples);
  }
  [[nodiscard]] std::int64_t earliest_arrival(std::int64_t k) const { return stamp(k) + sensor_.delay_min.ns; }
  [[nodiscard]] std::int64_t settled(std::int64_t k) const {
    return stamp(k) + sensor_.phase->jitter.ns + sensor_.delay_max.ns;
  }

 private:
  const Sensor& sensor_;
  SamplePattern pattern_;
  std::int64_t span_;
};

Latency locked_latency(const Outputs& outputs, const Samples& samples, std::int64_t delay) {
  Latency worst;
  for (std::int64_t k = 0; k < samples.count(); ++k) {
    // Every output that may be the first to use sample k, from its earliest arrival to its latest.
    std::int64_t latch_before = outputs.latch(outputs.first_from(samples.earliest_arrival(k)) - 1);
    while (latch_before < samples.settled(k)) {
      const std::int64_t output = outputs.first_from(latch_before + 1);
      const std::int64_t latch = outputs.latch(output);
      if (samples.settled(k + 1) <= latch) break;  // the next sample is newer there
      const std::int64_t stamp = std::max(samples.stamp(k), latch_before - delay);
      worst.offer(outputs.end(output) - stamp, output, latch - stamp - delay);
      latch_before = latch;
    }
  }
  return worst;
}

std::int64_t locked_reaction(const Outputs& outputs, const Samples& samples) {
  std::int64_t worst = 0;
  for (std::int64_t k = 0; k < samples.count(); ++k) {
    worst = std::max(worst, outputs.end(outputs.first_from(samples.settled(k))) - samples.stamp(k - 1));
  }
  return worst;
}

std::int64_t locked_age(const Outputs& outputs, const Samples& samples, std::int64_t later) {
  std::int64_t worst = 0;
  // Sample k may still be the newest at every latch before sample k + 1 has settled.
  for (std::int64_t k = 0; k < samples.count(); ++k) {
    const std::int64_t last = outputs.first_from(samples.settled(k + 1)) - 1;
    if (outputs.latch(last) < samples.earliest_arrival(k)) continue;
    worst = std::max(worst, outputs.end(last + later) - samples.stamp(k));
  }
  return worst;
}

// All four, without the corrections of a phase lock, and how the latency came about.
struct Walked {
  Latency latency;
  std::int64_t ns[kQuantities] = {};
};

Walked walk_outputs(const Problem& problem, const Outputs& outputs, const Sensor& sensor) {
  Walked out;
  if (sensor.phase) {
    const Samples samples(sensor, *sample_pattern(sensor, problem.hyperperiod), problem.hyperperiod.ns);
    out.latency = locked_latency(outputs, samples, sensor.delay_max.ns);
    out.ns[1] = locked_reaction(outputs, samples);
    out.ns[2] = locked_age(outputs, samples, 0);
    out.ns[3] = locked_age(outputs, samples, 1);
  } else {
    const std::int64_t period = longest_period(sensor).ns;
    out.latency = free_latency(outputs, period, sensor.delay_max.ns);
    out.ns[1] = free_reaction(outputs, period, sensor.delay_max.ns);
    out.ns[2] = free_age(outputs, period, sensor.delay_max.ns, 0);
    out.ns[3] = free_age(outputs, period, sensor.delay_max.ns, 1);
  }
  out.ns[0] = out.latency.ns;
  return out;
}

}  // namespace

std::array<Duration, kQuantities> analysis::bounds_of(const Problem& problem, const Instants& instants,
                                                      std::uint32_t chain_index) {
  const Chain& chain = problem.chains[chain_index];
  const Walked walked =
      walk_outputs(problem, Outputs(problem, instants, chain), in_table_time(problem, problem.sensors[chain.sensor]));
  std::array<Duration, kQuantities> out;
  for (std::size_t q = 0; q < kQuantities; ++q) out[q] = with_corrections(problem, {walked.ns[q]});
  return out;
}

ChainBound walk(const Problem& problem, const Schedule& schedule, std::uint32_t chain_index) {
  const Chain& chain = problem.chains[chain_index];
  const Sensor sensor = in_table_time(problem, problem.sensors[chain.sensor]);
  const analysis::Instants instants(problem, schedule);
  const Outputs outputs(problem, instants, chain);
  const Walked walked = walk_outputs(problem, outputs, sensor);
  ChainBound bound;
  bound.chain = chain_index;
  for (std::size_t q = 0; q < kQuantities; ++q) bound.bounds[q] = with_corrections(problem, {walked.ns[q]});
  // A sample that is used before its latest arrival has no wait; its delay is then what was left for it.
  const Duration wait{std::max<std::int64_t>(walked.latency.wait, 0)};
  const Duration delay = sensor.delay_max + Duration{std::min<std::int64_t>(walked.latency.wait, 0)};
  bound.terms =
      sensor.name + " delay " + ms_text(delay) + " + wait for the slot " + ms_text(wait) +
      outputs.slots(problem, walked.latency.output) +
      (problem.phase_lock ? " + corrections of the phase " + ms_text(bound.bounds[0] - Duration{walked.ns[0]}) : "") +
      " = " + ms_text(bound.bounds[0]);
  return bound;
}

namespace {

// The part of a chain that ends in one stage, seen from that stage's jobs.
struct Member {
  Outputs outputs;
  const Sensor* sensor;  // in table time
  std::string name;      // of the chain
  std::optional<Samples> samples;
};

// Stamps of the samples that may be the newest at a latch, each between its earliest and its latest.
std::pair<std::int64_t, std::int64_t> stamps_of(const Member& member, std::int64_t latch) {
  const Sensor& sensor = *member.sensor;
  const std::int64_t newest = latch - sensor.delay_min.ns;
  if (!member.samples) return {latch - sensor.delay_max.ns - longest_period(sensor).ns, newest};
  const Samples& samples = *member.samples;
  std::int64_t k = (latch - samples.settled(0)) / sensor.period.ns - 1;
  while (samples.settled(k + 1) <= latch) ++k;  // sample k is there for certain
  while (samples.settled(k) > latch) --k;
  const std::int64_t oldest = samples.stamp(k);
  while (samples.earliest_arrival(k + 1) <= latch) ++k;  // and this one if it came early
  return {oldest, std::min(samples.stamp(k) + sensor.phase->jitter.ns, newest)};
}

}  // namespace

DisparityBound walk_disparity(const Problem& problem, const Schedule& schedule, std::size_t index) {
  const Disparity& limit = problem.disparities[index];
  const analysis::Instants instants(problem, schedule);
  std::vector<Sensor> sensors;
  for (const Sensor& sensor : problem.sensors) sensors.push_back(in_table_time(problem, sensor));
  std::vector<Member> members;
  std::int64_t turns = 1;
  for (const std::uint32_t c : limit.chains) {
    Chain part = problem.chains[c];
    while (part.stages.back() != limit.stage) part.stages.pop_back();
    const Sensor& sensor = sensors[part.sensor];
    Member member{Outputs(problem, instants, part), &sensor, part.name, std::nullopt};
    if (const auto pattern = sample_pattern(sensor, problem.hyperperiod)) {
      member.samples.emplace(sensor, *pattern, problem.hyperperiod.ns);
      turns = std::lcm(turns, pattern->hyperperiods);
    }
    members.push_back(std::move(member));
  }
  DisparityBound worst;
  worst.terms = "the newest sample of '" + members[0].name + "' beside the oldest of '" + members[1].name + "'";
  for (std::int64_t output = 0; output < members[0].outputs.per_hyperperiod() * turns; ++output) {
    for (const Member& one : members) {
      const std::int64_t latch = one.outputs.latch(output);
      for (const Member& other : members) {
        if (&one == &other) continue;
        const std::int64_t other_latch = other.outputs.latch(output);
        // Of one sensor an earlier latch never sees a newer sample, and the same instant sees the same one.
        if (one.sensor == other.sensor && latch <= other_latch) continue;
        const Duration apart{stamps_of(one, latch).second - stamps_of(other, other_latch).first};
        if (apart <= worst.bound) continue;
        worst.bound = apart;
        worst.terms = "the newest sample of '" + one.name + "' beside the oldest of '" + other.name + "'";
      }
    }
  }
  worst.bound = with_corrections(problem, worst.bound);
  return worst;
}

Problem holding_over(const Problem& problem) {
  Problem out = problem;
  if (!problem.phase_lock) return out;
  Sensor& sensor = out.sensors[problem.phase_lock->sensor];
  const PhaseLock alone{0, {}, {}, {}};
  const Duration drifted = largest_correction(alone, sensor, problem.phase_lock->hold_over);
  sensor.phase->offset = sensor.phase->offset - drifted;
  sensor.phase->jitter += drifted * 2;
  return out;
}

}  // namespace takt::sched
