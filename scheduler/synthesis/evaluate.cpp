#include "scheduler/synthesis/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/model/table_time.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

// Absolute start of job `job` of a placement in ns.
std::int64_t start_of(const Placement& placement, std::int64_t job, std::int64_t hyperperiod) {
  const auto jobs = static_cast<std::int64_t>(placement.starts.size());
  const std::int64_t turn = floor_div(job, jobs);
  return turn * hyperperiod + placement.start_ns[static_cast<std::size_t>(job - turn * jobs)];
}

std::int64_t end_of(const Placement& placement, std::int64_t job, std::int64_t hyperperiod) {
  const auto jobs = static_cast<std::int64_t>(placement.starts.size());
  const std::int64_t turn = floor_div(job, jobs);
  return turn * hyperperiod + placement.end_ns[static_cast<std::size_t>(job - turn * jobs)];
}

// The job of the producing stage that job `job` of the consuming stage is bound to.
std::int64_t bound_to(const Table& table, std::size_t consumer, std::size_t producer, std::int64_t job) {
  const Placement& to = table.at(consumer);
  const auto jobs = static_cast<std::int64_t>(to.starts.size());
  const std::int64_t turn = floor_div(job, jobs);
  const Tick start = to.starts[static_cast<std::size_t>(job - turn * jobs)];
  const Placement& from = table.at(producer);
  return table.newest(from, to.cores, start) + turn * static_cast<std::int64_t>(from.starts.size());
}

// First sample not before `k` of a locked sensor lies at at(k); see Evaluator::locked.
std::int64_t sample_at(const Sensor& sensor, const SamplePattern& pattern, std::int64_t hyperperiod, std::int64_t k) {
  const std::int64_t span = pattern.hyperperiods * hyperperiod;
  const std::int64_t turn = floor_div(k, pattern.samples);
  __extension__ using Wide = __int128;
  return sensor.phase->offset.ns + turn * span +
         static_cast<std::int64_t>(static_cast<Wide>(k - turn * pattern.samples) * span / pattern.samples);
}

// The newest sample with at(k) + after <= when.
std::int64_t newest_sample(const Sensor& sensor, const SamplePattern& pattern, std::int64_t hyperperiod,
                           std::int64_t after, std::int64_t when) {
  const auto at = [&](std::int64_t k) { return sample_at(sensor, pattern, hyperperiod, k); };
  std::int64_t k = floor_div(when - after - sensor.phase->offset.ns, sensor.period.ns) + 1;
  while (at(k) + after > when) --k;
  while (at(k + 1) + after <= when) ++k;
  return k;
}

bool smaller(double a, double b) { return a < b - 1e-6; }

}  // namespace

bool Score::better_than(const Score& other) const {
  const double broken = std::max({1.0, worst, disparity});
  const double other_broken = std::max({1.0, other.worst, other.disparity});
  if (smaller(broken, other_broken) || smaller(other_broken, broken)) return broken < other_broken;
  if (smaller(worst, other.worst) || smaller(other.worst, worst)) return worst < other.worst;
  if (smaller(sum, other.sum) || smaller(other.sum, sum)) return sum < other.sum;
  return smaller(jitter + disparity_sum, other.jitter + other.disparity_sum);
}

Evaluator::Evaluator(const Problem& problem) : problem_(&problem), chains_of_(problem.stages.size()) {
  for (const Sensor& sensor : problem.sensors) {
    patterns_.push_back(sample_pattern(sensor, problem.hyperperiod));
    sensors_.push_back(in_table_time(problem, sensor));
  }
  for (std::size_t c = 0; c < problem.chains.size(); ++c) {
    for (const std::uint32_t stage : problem.chains[c].stages) {
      if (chains_of_[stage].empty() || chains_of_[stage].back() != c) chains_of_[stage].push_back(c);
    }
  }
  for (const Disparity& limit : problem.disparities) {
    Members members;
    for (const std::uint32_t c : limit.chains) {
      Chain part = problem.chains[c];
      part.stages.erase(std::find(part.stages.begin(), part.stages.end(), limit.stage) + 1, part.stages.end());
      if (patterns_[part.sensor]) members.turns = std::lcm(members.turns, patterns_[part.sensor]->hyperperiods);
      members.chains.push_back(std::move(part));
    }
    members_.push_back(std::move(members));
  }
}

Evaluator::Walk Evaluator::walk(const Table& table, const Chain& chain, std::size_t stages) const {
  const std::int64_t hyperperiod = problem_->hyperperiod.ns;
  const Placement& first = table.at(chain.stages.front());
  const Placement& last = table.at(chain.stages[stages - 1]);
  const auto outputs = static_cast<std::int64_t>(last.starts.size());
  Walk out;
  out.outputs.reserve(static_cast<std::size_t>(outputs) + 1);
  for (std::int64_t job = -1; job <= outputs; ++job) {
    std::int64_t source = job;
    for (std::size_t i = stages - 1; i > 0; --i) {
      source = bound_to(table, chain.stages[i], chain.stages[i - 1], source);
    }
    const std::int64_t start = start_of(first, source, hyperperiod);
    if (job < 0) {
      out.before = start;
      out.before_job = source;
    } else {
      out.outputs.push_back({job, source, end_of(last, job, hyperperiod), start});
    }
  }
  return out;
}

// Any phase: the oldest sample that can still be the newest at a start s has its stamp reference just after
// s - longest period - delay_max; a sample that the output before did not use arrived after that output's start.
void Evaluator::free_running(const Walk& walk, const Sensor& sensor, Bounds& out) const {
  const std::int64_t period = longest_period(sensor).ns;
  const std::int64_t delay = sensor.delay_max.ns;
  std::int64_t before = walk.before;
  std::int64_t before_job = walk.before_job;
  for (std::size_t i = 0; i + 1 < walk.outputs.size(); ++i) {
    const Output& output = walk.outputs[i];
    if (output.source != before_job) {
      const std::int64_t wait = std::min(period, output.start - before);
      const std::int64_t latency = output.end - output.start + wait + delay;
      if (latency > out.ns[0]) {
        out.ns[0] = latency;
        out.latency_output = i;
        out.latency_wait = wait;
      }
      out.ns[1] = std::max(out.ns[1], output.end - before + period + delay);
    }
    out.ns[2] = std::max(out.ns[2], output.end - output.start + period + delay);
    out.ns[3] = std::max(out.ns[3], walk.outputs[i + 1].end - output.start + period + delay);
    before = output.start;
    before_job = output.source;
  }
}

// Known phase: sample k has its stamp reference in [at(k), at(k) + jitter] and has arrived for certain at
// at(k) + settled.
void Evaluator::locked(const Walk& walk, const Sensor& sensor, const SamplePattern& pattern, std::int64_t hyperperiod,
                       Bounds& out) const {
  const std::int64_t settled = sensor.phase->jitter.ns + sensor.delay_max.ns;
  const auto at = [&](std::int64_t k) { return sample_at(sensor, pattern, hyperperiod, k); };
  // The newest sample that has arrived for certain at `when`.
  const auto certain = [&](std::int64_t when) { return newest_sample(sensor, pattern, hyperperiod, settled, when); };
  std::int64_t before = walk.before;
  std::int64_t before_job = walk.before_job;
  for (std::int64_t turn = 0; turn < pattern.hyperperiods; ++turn) {
    const std::int64_t shift = turn * hyperperiod;
    if (turn > 0) {
      before = walk.before + shift;
      before_job = walk.before_job;
    }
    for (std::size_t i = 0; i + 1 < walk.outputs.size(); ++i) {
      const Output& output = walk.outputs[i];
      const std::int64_t start = output.start + shift;
      const std::int64_t end = output.end + shift;
      if (output.source != before_job) {
        const std::int64_t missed = certain(before);
        // Latency: the oldest sample that may be new to this output.
        const std::int64_t sample = std::max(certain(start), missed + 1);
        if (at(sample) + sensor.delay_min.ns <= start) {
          const std::int64_t stamp = std::max(at(sample), before - sensor.delay_max.ns);
          if (end - stamp > out.ns[0]) {
            out.ns[0] = end - stamp;
            out.latency_output = i;
            out.latency_wait = start - stamp - sensor.delay_max.ns;
          }
        }
        // Reaction: an event just after sample `missed`, first in a sample that this output is the first to use.
        if (at(missed + 1) + settled <= start) out.ns[1] = std::max(out.ns[1], end - at(missed));
      }
      const std::int64_t oldest = at(certain(start));
      out.ns[2] = std::max(out.ns[2], end - oldest);
      out.ns[3] = std::max(out.ns[3], walk.outputs[i + 1].end + shift - oldest);
      before = start;
      before_job = output.source;
    }
  }
}

Evaluator::Bounds Evaluator::evaluate(const Table& table, const Chain& chain, std::size_t stages) const {
  Bounds out;
  const Walk outputs = walk(table, chain, stages);
  const Sensor& sensor = sensors_[chain.sensor];
  if (sensor.phase) {
    locked(outputs, sensor, *patterns_[chain.sensor], problem_->hyperperiod.ns, out);
  } else {
    free_running(outputs, sensor, out);
  }
  for (std::int64_t& ns : out.ns) ns = with_corrections(*problem_, {ns}).ns;
  return out;
}

Evaluator::Stamps Evaluator::stamps_at(std::uint32_t index, std::int64_t latch) const {
  const Sensor& sensor = sensors_[index];
  if (!sensor.phase) {
    return {latch - longest_period(sensor).ns - sensor.delay_max.ns, latch - sensor.delay_min.ns};
  }
  const std::int64_t hyperperiod = problem_->hyperperiod.ns;
  const SamplePattern& pattern = *patterns_[index];
  const std::int64_t settled = sensor.phase->jitter.ns + sensor.delay_max.ns;
  const std::int64_t first = newest_sample(sensor, pattern, hyperperiod, settled, latch);
  const std::int64_t last = newest_sample(sensor, pattern, hyperperiod, sensor.delay_min.ns, latch);
  return {
      sample_at(sensor, pattern, hyperperiod, first),
      std::min(sample_at(sensor, pattern, hyperperiod, last) + sensor.phase->jitter.ns, latch - sensor.delay_min.ns)};
}

DisparityBound Evaluator::disparity(const Table& table, const Disparity& limit) const {
  const Members& members = members_[static_cast<std::size_t>(&limit - problem_->disparities.data())];
  const std::int64_t hyperperiod = problem_->hyperperiod.ns;
  std::vector<Walk> walks;
  for (const Chain& chain : members.chains) walks.push_back(walk(table, chain, chain.stages.size()));
  std::int64_t worst = 0;
  std::size_t newer = 0;
  std::size_t older = 1;
  for (std::int64_t turn = 0; turn < members.turns; ++turn) {
    for (std::size_t job = 0; job + 1 < walks.front().outputs.size(); ++job) {
      for (std::size_t a = 0; a < walks.size(); ++a) {
        const std::uint32_t sensor = members.chains[a].sensor;
        const std::int64_t latch = walks[a].outputs[job].start + turn * hyperperiod;
        const std::int64_t newest = stamps_at(sensor, latch).newest;
        for (std::size_t b = 0; b < walks.size(); ++b) {
          const std::int64_t other = walks[b].outputs[job].start + turn * hyperperiod;
          // Two latches of one sensor: what is newest never gets older, and one instant has one newest sample.
          if (a == b || (members.chains[b].sensor == sensor && latch <= other)) continue;
          const std::int64_t apart = newest - stamps_at(members.chains[b].sensor, other).oldest;
          if (apart <= worst) continue;
          worst = apart;
          newer = a;
          older = b;
        }
      }
    }
  }
  DisparityBound out;
  out.bound = with_corrections(*problem_, {worst});
  out.terms = "the newest sample of '" + problem_->chains[limit.chains[newer]].name + "' beside the oldest of '" +
              problem_->chains[limit.chains[older]].name + "'";
  return out;
}

std::array<Duration, kQuantities> Evaluator::bounds(const Table& table, const Chain& chain, std::size_t stages) const {
  const Bounds found = evaluate(table, chain, stages);
  std::array<Duration, kQuantities> out;
  for (std::size_t q = 0; q < kQuantities; ++q) out[q] = {found.ns[q]};
  return out;
}

Score Evaluator::score(const Table& table, std::optional<std::size_t> only) const {
  Score out;
  const auto add_chain = [&](std::size_t c) {
    const Chain& chain = problem_->chains[c];
    std::size_t placed = 0;
    std::int64_t missing = 0;
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      if (table.at(chain.stages[i]).placed() && placed == i) {
        ++placed;
      } else {
        missing += table.choices()[chain.stages[i]].budget.time.ns;
      }
    }
    if (placed == 0) return;
    const Bounds found = evaluate(table, chain, placed);
    bool limited = false;
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (!chain.limits[q]) continue;
      limited = true;
      const double ratio = static_cast<double>(found.ns[q] + missing) / static_cast<double>(chain.limits[q]->ns);
      out.worst = std::max(out.worst, ratio);
      out.sum += ratio;
    }
    if (!limited) out.sum += static_cast<double>(found.ns[0] + missing) / static_cast<double>(problem_->hyperperiod.ns);
  };
  const auto add_jitter = [&](std::size_t stage) {
    const Placement& placement = table.at(stage);
    if (!placement.placed()) return;
    Tick shortest = table.clock().ticks;
    Tick longest = 0;
    for (std::size_t k = 0; k < placement.starts.size(); ++k) {
      const Tick next =
          k + 1 < placement.starts.size() ? placement.starts[k + 1] : placement.starts.front() + table.clock().ticks;
      shortest = std::min(shortest, next - placement.starts[k]);
      longest = std::max(longest, next - placement.starts[k]);
    }
    out.jitter += static_cast<double>(longest - shortest) / static_cast<double>(table.period(stage));
  };
  for (std::size_t d = 0; d < members_.size(); ++d) {
    bool placed = true;
    bool meant = !only;
    for (const Chain& chain : members_[d].chains) {
      for (const std::uint32_t stage : chain.stages) {
        placed &= table.at(stage).placed();
        meant |= only == stage;
      }
    }
    if (!placed || !meant) continue;
    const Disparity& limit = problem_->disparities[d];
    const double ratio = static_cast<double>(disparity(table, limit).bound.ns) / static_cast<double>(limit.limit.ns);
    out.disparity = std::max(out.disparity, ratio);
    out.disparity_sum += ratio;
  }
  if (only) {
    for (const std::size_t c : chains_of_[*only]) add_chain(c);
    add_jitter(*only);
  } else {
    for (std::size_t c = 0; c < problem_->chains.size(); ++c) add_chain(c);
    for (std::size_t stage = 0; stage < problem_->stages.size(); ++stage) add_jitter(stage);
  }
  return out;
}

ChainBound Evaluator::describe(const Table& table, std::uint32_t chain_index) const {
  const Chain& chain = problem_->chains[chain_index];
  const Sensor& sensor = sensors_[chain.sensor];
  const std::int64_t hyperperiod = problem_->hyperperiod.ns;
  const Bounds found = evaluate(table, chain, chain.stages.size());
  ChainBound out;
  out.chain = chain_index;
  for (std::size_t q = 0; q < kQuantities; ++q) out.bounds[q] = {found.ns[q]};
  // From the worst output back to its sample.
  std::string slots;
  std::int64_t in_slots = 0;
  std::int64_t job = static_cast<std::int64_t>(found.latency_output);
  for (std::size_t i = chain.stages.size(); i-- > 0;) {
    const Placement& placement = table.at(chain.stages[i]);
    const std::int64_t start = start_of(placement, job, hyperperiod);
    const std::int64_t slot = end_of(placement, job, hyperperiod) - start;
    in_slots += slot;
    std::string term = problem_->stages[chain.stages[i]].name + " " + ms_text({slot});
    if (i > 0) {
      job = bound_to(table, chain.stages[i], chain.stages[i - 1], job);
      const std::int64_t wait = start - end_of(table.at(chain.stages[i - 1]), job, hyperperiod);
      in_slots += wait;
      if (wait > 1) term.insert(0, "wait " + ms_text({wait}) + " + ");
    }
    slots.insert(0, " + " + term);
  }
  // A sample that is used before its latest arrival has no wait; its delay is then what was left for it.
  const Duration wait{std::max<std::int64_t>(found.latency_wait, 0)};
  const Duration delay = sensor.delay_max + Duration{std::min<std::int64_t>(found.latency_wait, 0)};
  if (problem_->phase_lock) {
    slots += " + corrections of the phase " + ms_text(out.bounds[0] - delay - wait - Duration{in_slots});
  }
  out.terms = sensor.name + " delay " + ms_text(delay) + " + wait for the slot " + ms_text(wait) + slots + " = " +
              ms_text(out.bounds[0]);
  return out;
}

}  // namespace takt::sched
