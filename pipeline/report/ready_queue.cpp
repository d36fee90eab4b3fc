#include "pipeline/report/ready_queue.h"

#include <algorithm>
#include <tuple>

namespace takt::pipeline {
namespace {

std::vector<std::int64_t> rates_of(const sched::Problem& problem, const sched::Schedule& table) {
  std::vector<std::int64_t> rates(problem.stages.size(), 0);
  for (const sched::Slot& slot : table.slots) ++rates[slot.stage];
  return rates;
}

// The sensor whose every sample releases the stage. `hyperperiod`: of the table, which a mode may have its own of.
std::optional<std::size_t> releasing_sensor(const sched::Problem& problem, Duration hyperperiod, std::size_t stage,
                                            std::int64_t rate) {
  for (const sched::Input& input : problem.stages[stage].inputs) {
    if (!input.from_sensor) continue;
    const sched::Sensor& sensor = problem.sensors[input.source];
    const auto exact = sched::sample_pattern(sensor, hyperperiod);
    const bool every = exact ? exact->samples == rate * exact->hyperperiods : hyperperiod == sensor.period * rate;
    return every ? std::optional<std::size_t>(input.source) : std::nullopt;
  }
  return std::nullopt;
}

std::int64_t nth(std::int64_t n, std::int64_t rate, std::int64_t h) { return n / rate * h + n % rate * h / rate; }

}  // namespace

std::vector<Release> releases(const sched::Problem& problem, const sched::Schedule& table, Way way,
                              std::uint64_t hyperperiods, const std::vector<std::vector<std::int64_t>>& arrivals) {
  const std::int64_t h = table.clock.hyperperiod.ns;
  const auto count = static_cast<std::int64_t>(hyperperiods);
  const std::vector<std::int64_t> rates = rates_of(problem, table);
  const std::int64_t fastest = std::max<std::int64_t>(1, *std::max_element(rates.begin(), rates.end()));
  std::vector<Release> out;
  for (std::uint32_t s = 0; s < problem.stages.size(); ++s) {
    const std::int64_t rate = rates[s];
    if (rate == 0) continue;
    std::uint64_t job = 0;
    const auto add = [&](std::int64_t at) { out.push_back({at, s, job++, at + h / rate}); };
    const auto sensor = way == Way::kEpoch ? std::nullopt : releasing_sensor(problem, table.clock.hyperperiod, s, rate);
    if (sensor) {
      for (const std::int64_t at : arrivals[*sensor]) {
        if (at >= 0 && at < count * h) add(at);
      }
      continue;
    }
    for (std::int64_t k = 0; k < count * rate; ++k) {
      // In an epoch with the fastest stage's job that begins at or before the k-th period.
      add(way == Way::kEpoch ? nth(k * fastest / rate, fastest, h) : nth(k, rate, h));
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Release& a, const Release& b) { return std::tuple(a.at, a.stage) < std::tuple(b.at, b.stage); });
  return out;
}

ReadyQueue::ReadyQueue(const sched::Problem& problem, const sched::Schedule& table, Way way,
                       std::vector<Release> releases)
    : problem_(problem),
      way_(way),
      coming_(std::move(releases)),
      cores_(problem.stages.size()),
      waiting_(problem.stages.size()),
      running_(problem.stages.size(), false),
      taken_(problem.board.cores.size(), false) {
  for (const sched::Slot& slot : table.slots) cores_[slot.stage] = slot.cores;
  dropped_.reserve(coming_.size());
  order_.reserve(problem.stages.size());
  started_.reserve(problem.stages.size());
}

std::span<const Release> ReadyQueue::release_until(std::int64_t now) {
  dropped_.clear();
  while (next_release() <= now) {
    const std::int64_t at = next_release();
    const bool falls_out = way_ == Way::kEpoch && !idle();
    for (; next_release() == at; ++next_) {
      std::optional<Release>& waiting = waiting_[coming_[next_].stage];
      if (falls_out) {
        dropped_.push_back(coming_[next_]);
        continue;
      }
      if (waiting) dropped_.push_back(*waiting);
      waiting = coming_[next_];
    }
  }
  return dropped_;
}

bool ReadyQueue::idle() const {
  return std::none_of(waiting_.begin(), waiting_.end(), [](const auto& w) { return w.has_value(); }) &&
         std::find(running_.begin(), running_.end(), true) == running_.end();
}

// In an epoch a job waits for its producers of the same epoch.
bool ReadyQueue::inputs_ready(std::uint32_t stage) const {
  if (way_ != Way::kEpoch) return true;
  for (const sched::Input& input : problem_.stages[stage].inputs) {
    if (input.from_sensor || input.feedback) continue;
    if (waiting_[input.source] || running_[input.source]) return false;
  }
  return true;
}

bool ReadyQueue::core_taken(std::uint32_t stage) const {
  return std::any_of(cores_[stage].begin(), cores_[stage].end(), [this](std::uint32_t core) { return taken_[core]; });
}

// A job that must wait for a core keeps later ones off all of its cores.
std::span<const Release> ReadyQueue::start_ready() {
  order_.clear();
  started_.clear();
  for (const auto& waiting : waiting_) {
    if (waiting) order_.push_back(*waiting);
  }
  std::sort(order_.begin(), order_.end(), [this](const Release& a, const Release& b) {
    const auto key = [this](const Release& r) {
      return std::tuple(way_ == Way::kEdf ? r.deadline : r.at, r.at, r.stage);
    };
    return key(a) < key(b);
  });
  std::fill(taken_.begin(), taken_.end(), false);
  const auto take = [this](std::uint32_t stage) {
    for (const std::uint32_t core : cores_[stage]) taken_[core] = true;
  };
  for (std::uint32_t s = 0; s < running_.size(); ++s) {
    if (running_[s]) take(s);
  }
  for (const Release& job : order_) {
    if (!inputs_ready(job.stage)) continue;
    if (!running_[job.stage] && !core_taken(job.stage)) {
      running_[job.stage] = true;
      waiting_[job.stage].reset();
      started_.push_back(job);
    }
    take(job.stage);
  }
  return started_;
}

void ReadyQueue::complete(std::uint32_t stage) { running_[stage] = false; }

}  // namespace takt::pipeline
