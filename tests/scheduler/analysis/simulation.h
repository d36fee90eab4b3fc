// An adversary for chain bounds: delivers samples at the phases, jitters and drifts that hurt most, latches and follows
// the bindings as the dispatcher does, and measures the four quantities on what came out. Shares nothing with walk().
// All instants are real time. The clock of the table is that of its hyperperiods, each of which may begin earlier or
// later than the one before says, by what the phase lock corrects.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched::test {

class Simulation {
 public:
  Simulation(const Problem& problem, const Schedule& schedule, std::uint32_t chain, std::uint64_t seed)
      : problem_(problem), schedule_(schedule), chain_(problem.chains[chain]), random_(seed) {}

  struct Worst {
    std::array<std::int64_t, kQuantities> ns{};
    std::uint64_t samples = 0;
  };

  // From now on each stage skips that many consecutive jobs, once per run, at a random place.
  void skip(std::vector<std::int64_t> jobs_by_stage) { skips_ = std::move(jobs_by_stage); }

  // From now on a job publishes when it completes, at any time up to the end of its last slot; otherwise at that end.
  void publish_at_completion() { at_completion_ = true; }

  // From now on the phase lock corrects at every boundary, at random or as far as it may. Stamps of locked sensors lie
  // where they are declared in the table all the same: that is what the corrections are for.
  void correct_the_phase() { corrects_ = true; }

  // From now on the reference of the phase lock is lost where a run begins to be judged: nothing is corrected any more,
  // and its stamps drift away from the table as fast as they may. For runs no longer than the hold-over.
  void lose_the_reference() { loses_ = true; }

  // One run of `hyperperiods` with its own phase; adds to the worst figures.
  void run(int hyperperiods, Worst& worst) {
    const std::int64_t h = problem_.hyperperiod.ns;
    const std::int64_t warm_up = 12 * h;
    const std::int64_t end = warm_up + hyperperiods * h;
    make_corrections(end / h + 8, warm_up / h);
    first_skipped_.assign(skips_.size(), 0);
    const std::int64_t place = between(13, 12 + std::max(1, hyperperiods / 2));
    for (std::size_t stage = 0; stage < skips_.size(); ++stage) {
      first_skipped_[stage] = place * schedule_.choices[stage].rate +
                              between(-2 * schedule_.choices[stage].rate, 2 * schedule_.choices[stage].rate);
    }
    make_samples(-2 * h, end + 3 * h);
    worst.samples += samples_.size();
    // Latch: the newest sample with arrival <= start.
    const std::uint32_t first = chain_.stages.front();
    std::map<std::int64_t, std::size_t> latched;  // job of the first stage -> sample
    std::size_t next = 0;
    for (std::int64_t job = 0; start(first, job) < end + 2 * h; ++job) {
      if (skipped(first, job)) continue;
      while (next < samples_.size() && samples_[next].arrival <= start(first, job)) ++next;
      if (next > 0) latched[job] = next - 1;
    }
    // Outputs in order of publication, each with the sample it goes back to.
    struct Output {
      std::int64_t end;
      std::size_t sample;
    };
    std::vector<Output> outputs;
    const bool full = random_() % 3 == 0;  // every job takes its whole budget
    const std::uint32_t last = chain_.stages.back();
    for (std::int64_t job = 0; end_of(last, job) < end + h; ++job) {
      if (skipped(last, job)) continue;
      std::int64_t source = job;
      for (std::size_t i = chain_.stages.size(); i-- > 1;) {
        source = bound(chain_.stages[i], chain_.stages[i - 1], source);
        while (skipped(chain_.stages[i - 1], source)) --source;
      }
      const auto found = latched.find(source);
      if (source >= 0 && found != latched.end()) outputs.push_back({published(last, job, full), found->second});
    }
    const auto take = [&](std::size_t quantity, std::int64_t value) {
      worst.ns[quantity] = std::max(worst.ns[quantity], value);
    };
    for (std::size_t i = 1; i + 1 < outputs.size(); ++i) {
      const Output& output = outputs[i];
      if (output.end < warm_up || output.end > end) continue;
      const std::int64_t stamp = samples_[output.sample].stamp;
      take(2, output.end - stamp);
      take(3, outputs[i + 1].end - stamp);
      if (outputs[i - 1].sample == output.sample) continue;
      take(0, output.end - stamp);
      // Events just after each sample that the output before knew or that was skipped: this is the first reaction.
      for (std::size_t sample = outputs[i - 1].sample; sample < output.sample; ++sample) {
        take(1, output.end - samples_[sample].stamp);
      }
    }
  }

 private:
  struct Sample {
    std::int64_t stamp;
    std::int64_t arrival;
  };

  std::int64_t between(std::int64_t a, std::int64_t b) {
    return a + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(b - a + 1));
  }
  // Extremes more often than the middle.
  std::int64_t extreme(std::int64_t a, std::int64_t b) {
    switch (random_() % 4) {
      case 0: return between(a, b);
      case 1: return a;
      default: return b;
    }
  }

  // The table's hyperperiods begin so much later than without corrections; from `lost` on without any.
  void make_corrections(std::int64_t hyperperiods, std::int64_t lost) {
    later_.assign(static_cast<std::size_t>(hyperperiods + kBefore), 0);
    if (!corrects_) return;
    const PhaseLock& lock = *problem_.phase_lock;
    const double drift = problem_.sensors[lock.sensor].drift_ppm * 1e-6;
    const auto most = static_cast<std::int64_t>(static_cast<double>(problem_.hyperperiod.ns) * drift) + lock.filter.ns;
    const std::uint64_t style = random_() % 3;  // all longer, all shorter, mixed
    for (std::size_t i = 1; i < later_.size(); ++i) {
      later_[i] = later_[i - 1];
      if (loses_ && static_cast<std::int64_t>(i) >= lost + kBefore) continue;
      later_[i] += style == 0 ? most : style == 1 ? -most : extreme(-most, most);
    }
  }
  // Where an instant of the table lies in real time.
  [[nodiscard]] std::int64_t real(std::int64_t table) const {
    const std::int64_t h = problem_.hyperperiod.ns;
    const std::int64_t turn = table >= 0 ? table / h : -((-table + h - 1) / h);
    const std::int64_t at = std::clamp<std::int64_t>(turn + kBefore, 0, static_cast<std::int64_t>(later_.size()) - 1);
    return table + later_[static_cast<std::size_t>(at)];
  }

  void make_samples(std::int64_t from, std::int64_t to) {
    samples_.clear();
    const Sensor& sensor = problem_.sensors[chain_.sensor];
    const std::uint64_t style = random_() % 4;  // early always, mixed, or (twice as often) late always
    const auto delay = [&] {
      if (style == 0) return sensor.delay_min.ns;
      if (style >= 2) return sensor.delay_max.ns;
      return extreme(sensor.delay_min.ns, sensor.delay_max.ns);
    };
    // An arrival one nanosecond after a start has just been missed: the worst moment.
    const std::uint32_t first = chain_.stages.front();
    if (!sensor.phase) {
      const double drift = static_cast<double>(sensor.period.ns) * sensor.drift_ppm * 1e-6;
      const auto longest = static_cast<std::int64_t>(std::floor(static_cast<double>(sensor.period.ns) + drift));
      const auto shortest = static_cast<std::int64_t>(std::ceil(static_cast<double>(sensor.period.ns) - drift));
      const std::uint64_t pace = random_() % 4;  // 0 slow samples, twice as often; 1 fast, 2 nominal
      std::int64_t stamp = from + between(0, sensor.period.ns);
      if (random_() % 2 == 0) {
        // Aligned somewhere inside the run.
        const std::int64_t target = start(first, between(12, 14) * schedule_.choices[first].rate +
                                                     between(0, schedule_.choices[first].rate - 1)) +
                                    1 - sensor.delay_max.ns;
        const std::int64_t step = pace == 0 || pace == 3 ? longest : pace == 1 ? shortest : sensor.period.ns;
        stamp = target - ((target - from) / step) * step;
      }
      while (stamp < to) {
        samples_.push_back({stamp, stamp + delay()});
        stamp += pace == 0 || pace == 3 ? longest : pace == 1 ? shortest : sensor.period.ns;
      }
      return;
    }
    const std::int64_t h = problem_.hyperperiod.ns;
    const std::int64_t lost_at = 12 * h;
    double drifting = 0;
    if (loses_ && problem_.phase_lock->sensor == chain_.sensor) {
      drifting = sensor.drift_ppm * 1e-6 * (random_() % 2 == 0 ? 1 : -1);
    }
    const double per_hyperperiod = static_cast<double>(h) / static_cast<double>(sensor.period.ns);
    // Sample k of the endless sequence lies at offset + k * period, the period being the exact fraction of H.
    std::int64_t samples = std::llround(per_hyperperiod);
    std::int64_t turns = 1;
    while (std::abs(per_hyperperiod * static_cast<double>(turns) -
                    std::round(per_hyperperiod * static_cast<double>(turns))) > 1e-6)
      ++turns;
    samples = std::llround(per_hyperperiod * static_cast<double>(turns));
    for (std::int64_t turn = from / (turns * h) - 1; turn * turns * h < to; ++turn) {
      for (std::int64_t k = 0; k < samples; ++k) {
        __extension__ using Wide = __int128;
        auto in_table = sensor.phase->offset.ns + turn * turns * h +
                        static_cast<std::int64_t>(static_cast<Wide>(k) * turns * h / samples);
        if (drifting != 0 && in_table > lost_at) {
          in_table += static_cast<std::int64_t>(static_cast<double>(in_table - lost_at) * drifting);
        }
        const std::int64_t base = real(in_table);
        std::int64_t stamp = real(in_table + extreme(0, sensor.phase->jitter.ns));
        if (random_() % 3 == 0) stamp = base;
        std::int64_t arrival = stamp + delay();
        const bool whole = real(in_table + sensor.phase->jitter.ns) == base + sensor.phase->jitter.ns;
        if (whole && random_() % 2 == 0) {
          // Just missed a start, when that can be.
          std::int64_t job = std::max<std::int64_t>(in_table / h - 1, 0) * schedule_.choices[first].rate;
          while (start(first, job) + 1 < base + sensor.delay_min.ns) ++job;
          const std::int64_t missed = start(first, job) + 1;
          const std::int64_t stamp_then = std::max(base, missed - sensor.delay_max.ns);
          if (stamp_then <= base + sensor.phase->jitter.ns && missed - stamp_then >= sensor.delay_min.ns) {
            stamp = stamp_then;
            arrival = missed;
          }
        }
        samples_.push_back({stamp, arrival});
      }
    }
  }

  std::int64_t start(std::uint32_t stage, std::int64_t job) const { return at(stage, job, true); }
  std::int64_t end_of(std::uint32_t stage, std::int64_t job) const { return at(stage, job, false); }
  std::int64_t at(std::uint32_t stage, std::int64_t job, bool begin) const {
    const std::int64_t rate = schedule_.choices[stage].rate;
    // Jobs before 0 are not asked for.
    const auto h = static_cast<std::uint64_t>(job / rate);
    // From the first slot of the job, where inputs are latched, to the last, where the output is published.
    const Slot* found = nullptr;
    for (const Slot& slot : schedule_.slots) {
      if (slot.stage != stage || slot.job != job % rate) continue;
      if (found == nullptr || (begin ? slot.segment < found->segment : slot.segment > found->segment)) found = &slot;
    }
    if (found == nullptr) return 0;
    return real(begin ? schedule_.clock.start_at(h, found->start).ns : schedule_.clock.end_at(h, found->end).ns);
  }
  std::int64_t bound(std::uint32_t stage, std::uint32_t producer, std::int64_t job) const {
    if (job < 0) return -1;
    const std::int64_t rate = schedule_.choices[stage].rate;
    for (const Binding& binding : schedule_.bindings) {
      if (binding.stage != stage || binding.job != job % rate || binding.producer_stage != producer) continue;
      return (job / rate + binding.producer_shift) * schedule_.choices[producer].rate + binding.producer_job;
    }
    return -1;
  }

  // The output is out. Jobs of a stage never overlap, so outputs keep their order.
  std::int64_t published(std::uint32_t stage, std::int64_t job, bool full) {
    const std::int64_t end = end_of(stage, job);
    if (!at_completion_ || full) return end;
    return extreme(start(stage, job) + 1, end);
  }

  [[nodiscard]] bool skipped(std::uint32_t stage, std::int64_t job) const {
    return stage < skips_.size() && job >= first_skipped_[stage] && job < first_skipped_[stage] + skips_[stage];
  }

  const Problem& problem_;
  const Schedule& schedule_;
  const Chain& chain_;
  std::mt19937_64 random_;
  static constexpr std::int64_t kBefore = 8;  // hyperperiods before 0 that samples may come from
  bool at_completion_ = false, corrects_ = false, loses_ = false;
  std::vector<std::int64_t> later_;                  // by hyperperiod, from -kBefore on
  std::vector<std::int64_t> skips_, first_skipped_;  // by stage
  std::vector<Sample> samples_;
};

}  // namespace takt::sched::test
