// An adversary for changes of mode: runs the old table, then the new one behind the drain, over free-running sensors at
// the phases that hurt most, and measures the four quantities on what came out. Shares nothing with walk_change().
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "scheduler/analysis/change.h"

namespace takt::sched::test {

class ChangeSimulation {
 public:
  // The change lies at 0; each table runs as many hyperperiods as the chain may need to settle.
  ChangeSimulation(const Mode& from, const Mode& to, const std::string& chain, Duration drain, std::uint64_t seed)
      : random_(seed) {
    const Chain& before = find(from, chain);
    const Chain& after = find(to, chain);
    sensors_ = {from.problem->sensors[before.sensor], to.problem->sensors[after.sensor]};
    const std::int64_t reach = 3 * static_cast<std::int64_t>(before.stages.size()) + 6;
    std::vector<std::vector<Job>> jobs;
    for (std::size_t i = 0; i < before.stages.size(); ++i) {
      std::vector<Job> all;
      for (std::int64_t turn = -reach; turn < 0; ++turn) {
        add(from, before.stages[i], turn * from.problem->hyperperiod.ns, all);
      }
      for (std::int64_t turn = 0; turn < reach; ++turn) {
        add(to, after.stages[i], drain.ns + turn * to.problem->hyperperiod.ns, all);
      }
      jobs.push_back(std::move(all));
    }
    for (const Job& job : jobs.front()) latches_.push_back(job.start);
    const std::int64_t error = std::max(from.problem->board.clock_error.ns, to.problem->board.clock_error.ns);
    begin_ = -reach / 2 * from.problem->hyperperiod.ns;
    end_ = drain.ns + reach / 2 * to.problem->hyperperiod.ns;
    // Every consumer takes the newest output that is there when it starts.
    for (const Job& last : jobs.back()) {
      const Job* job = &last;
      for (std::size_t i = jobs.size() - 1; i > 0 && job != nullptr; --i) {
        const Job* newest = nullptr;
        for (const Job& producer : jobs[i - 1]) {
          const std::int64_t seen = producer.end + (producer.core == job->core ? 0 : error);
          if (seen <= job->start) newest = &producer;
        }
        job = newest;
      }
      if (job != nullptr) outputs_.push_back({last.end, job->start});
    }
  }

  struct Worst {
    std::array<std::int64_t, kQuantities> ns{};
    std::uint64_t samples = 0;
  };

  // One drive over the change with its own phase.
  void run(Worst& worst) {
    make_samples();
    worst.samples += samples_.size();
    struct Seen {
      std::int64_t end;
      std::size_t sample;
    };
    std::vector<Seen> seen;
    std::size_t next = 0;
    for (const Output& output : outputs_) {
      while (next < samples_.size() && samples_[next].arrival <= output.latch) ++next;
      if (next > 0) seen.push_back({output.end, next - 1});
    }
    const auto take = [&](std::size_t quantity, std::int64_t value) {
      worst.ns[quantity] = std::max(worst.ns[quantity], value);
    };
    for (std::size_t i = 1; i + 1 < seen.size(); ++i) {
      if (seen[i].end < begin_ || seen[i].end > end_) continue;
      const std::int64_t stamp = samples_[seen[i].sample].stamp;
      take(2, seen[i].end - stamp);
      take(3, seen[i + 1].end - stamp);
      if (seen[i - 1].sample == seen[i].sample) continue;
      take(0, seen[i].end - stamp);
      for (std::size_t sample = seen[i - 1].sample; sample < seen[i].sample; ++sample) {
        take(1, seen[i].end - samples_[sample].stamp);
      }
    }
  }

 private:
  struct Job {
    std::int64_t start, end;
    std::string core;  // the one that publishes
  };
  struct Output {
    std::int64_t end, latch;
  };
  struct Sample {
    std::int64_t stamp, arrival;
  };

  static const Chain& find(const Mode& mode, const std::string& name) {
    return *std::find_if(mode.problem->chains.begin(), mode.problem->chains.end(),
                         [&](const Chain& chain) { return chain.name == name; });
  }

  // The jobs of one hyperperiod, from the latch of their first slot to the end of their last.
  static void add(const Mode& mode, std::uint32_t stage, std::int64_t offset, std::vector<Job>& out) {
    std::vector<std::optional<Job>> jobs(static_cast<std::size_t>(mode.schedule->choices[stage].rate));
    std::vector<std::uint32_t> last(jobs.size(), 0);
    for (const Slot& slot : mode.schedule->slots) {
      if (slot.stage != stage) continue;
      std::optional<Job>& job = jobs[slot.job];
      const std::int64_t start = mode.schedule->clock.start_at(0, slot.start).ns + offset;
      const std::int64_t end = mode.schedule->clock.end_at(0, slot.end).ns + offset;
      if (!job) job = Job{start, end, ""};
      job->start = std::min(job->start, start);
      job->end = std::max(job->end, end);
      if (!slot.cores.empty() && slot.segment >= last[slot.job]) {
        last[slot.job] = slot.segment;
        job->core = mode.problem->board.cores[slot.cores.back()].name;
      }
    }
    for (const std::optional<Job>& job : jobs) out.push_back(*job);
  }

  std::int64_t between(std::int64_t a, std::int64_t b) {
    return a + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(b - a + 1));
  }

  // The longest, shortest or nominal distance throughout; an arrival one nanosecond behind some latch near the change.
  void make_samples() {
    samples_.clear();
    const Sensor& sensor = sensors_[0].period > sensors_[1].period ? sensors_[0] : sensors_[1];
    const double drift = static_cast<double>(sensor.period.ns) * sensor.drift_ppm * 1e-6;
    const auto longest = static_cast<std::int64_t>(std::floor(static_cast<double>(sensor.period.ns) + drift));
    const auto shortest = static_cast<std::int64_t>(std::ceil(static_cast<double>(sensor.period.ns) - drift));
    const std::uint64_t pace = random_() % 4;
    const std::int64_t step = pace < 2 ? longest : pace == 2 ? shortest : sensor.period.ns;
    const std::uint64_t style = random_() % 3;
    const auto delay = [&] {
      if (style == 0) return sensor.delay_max.ns;
      if (style == 1) return sensor.delay_min.ns;
      return between(sensor.delay_min.ns, sensor.delay_max.ns);
    };
    const std::int64_t from = latches_.front() - 4 * sensor.period.ns;
    std::int64_t stamp = from + between(0, sensor.period.ns);
    if (random_() % 4 != 0) {
      const auto middle =
          static_cast<std::int64_t>(std::lower_bound(latches_.begin(), latches_.end(), 0) - latches_.begin());
      const std::int64_t near =
          std::clamp<std::int64_t>(middle + between(-12, 12), 0, static_cast<std::int64_t>(latches_.size()) - 1);
      const std::int64_t target = latches_[static_cast<std::size_t>(near)] + 1 - sensor.delay_max.ns;
      stamp = target - (target - from) / step * step;
    }
    for (; stamp < latches_.back(); stamp += step) samples_.push_back({stamp, stamp + delay()});
  }

  std::mt19937_64 random_;
  std::array<Sensor, 2> sensors_;
  std::vector<std::int64_t> latches_;
  std::vector<Output> outputs_;
  std::vector<Sample> samples_;
  std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace takt::sched::test
