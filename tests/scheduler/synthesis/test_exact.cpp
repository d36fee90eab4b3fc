// The exact search against brute force: small problems whose figures are whole milliseconds, every placement on that
// grid tried, chains evaluated by their definitions.
#include "scheduler/synthesis/exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/evaluate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGrid = 12;  // H in ms: a tick is a microsecond, whatever the rates

// At most 12 jobs on one or two cores; slots of 1 or 2 ms; one limit per chain.
Problem tiny_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem;
  problem.name = "tiny " + std::to_string(seed);
  problem.board.name = "tiny";
  problem.board.clock_error = milliseconds(below(2));
  const std::int64_t cores = 1 + below(2);
  for (std::int64_t c = 0; c < cores; ++c) {
    problem.board.cores.push_back({"core" + std::to_string(c), static_cast<int>(c), 0, {}, {}});
  }
  problem.hyperperiod = milliseconds(kGrid);
  for (std::int64_t s = 0; s < 2; ++s) {
    constexpr std::int64_t kPeriods[] = {4, 6, 12, 24};
    const Duration period = milliseconds(kPeriods[below(4)]);
    Sensor sensor;
    sensor.name = "sensor" + std::to_string(s);
    sensor.period = period;
    sensor.delay_max = milliseconds(below(3));
    if (below(3) == 0) sensor.phase = Sensor::Phase{milliseconds(below(kGrid)), {}};
    problem.sensors.push_back(sensor);
  }
  const std::int64_t stages = 2 + below(3);
  std::int64_t jobs = 0;
  std::int64_t load = 0;
  for (std::int64_t i = 0; i < stages; ++i) {
    std::int64_t rate = 1 + below(3);
    std::int64_t length = 1 + below(2);
    if (load + rate * length > cores * kGrid - 2 * cores || jobs + rate > 12) rate = length = 1;
    jobs += rate;
    load += rate * length;
    Stage next = test::stage("stage" + std::to_string(i), {rate}, {test::variant("full", {length * kMs - 2})});
    if (i == 0 || below(3) == 0) next.inputs.push_back(test::from_sensor("in", static_cast<std::uint32_t>(below(2))));
    for (std::int64_t producer = 0; producer < i; ++producer) {
      if (next.inputs.empty() ? producer + 1 == i : below(2) == 0) {
        next.inputs.push_back(
            test::from_stage("from" + std::to_string(producer), static_cast<std::uint32_t>(producer)));
      }
    }
    problem.stages.push_back(next);
  }
  for (std::int64_t c = 0; c < 1 + below(3); ++c) {
    std::vector<std::uint32_t> path{static_cast<std::uint32_t>(stages - 1 - below(2))};
    std::uint32_t sensor = 0;
    for (;;) {
      const std::vector<Input>& inputs = problem.stages[path.front()].inputs;
      const Input& input = inputs[static_cast<std::size_t>(below(inputs.size()))];
      sensor = input.source;
      if (input.from_sensor) break;
      path.insert(path.begin(), input.source);
    }
    Chain next = test::chain("chain" + std::to_string(c), sensor, path);
    // The latency of locked sensors is what the exact search leaves to the evaluation.
    const std::int64_t first = problem.sensors[sensor].phase ? 1 : 0;
    next.limits[static_cast<std::size_t>(first + below(static_cast<std::uint64_t>(4 - first)))] =
        milliseconds(30 + 10 * below(4));
    problem.chains.push_back(next);
  }
  return problem;
}

// Where every stage lies: one core, starts in ms.
struct Place {
  std::uint32_t core = 0;
  std::vector<std::int64_t> starts;
};

class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem), places_(problem.stages.size()) {
    for (const Stage& stage : problem.stages) lengths_.push_back((stage.variants[0].budgets[0].time.ns + 2) / kMs);
    for (const Chain& chain : problem.chains) any_phase_ = any_phase_ && !problem.sensors[chain.sensor].phase;
    busy_.assign(problem.board.cores.size(), std::vector<bool>(kGrid, false));
    place(0);
  }
  // The least maximum over chains of bound / limit; infinite when the jobs do not fit.
  double best = std::numeric_limits<double>::infinity();

 private:
  void place(std::size_t stage) {
    const double so_far = worst(stage);
    if (so_far >= best - 1e-12) return;
    if (stage == problem_.stages.size()) {
      best = so_far;
      return;
    }
    // Alike cores: the first stage lies on the first.
    for (std::uint32_t core = 0; core < (stage == 0 ? 1 : problem_.board.cores.size()); ++core) {
      places_[stage] = {core, {}};
      put(stage, 0, 0);
    }
    places_[stage] = {};
  }

  void put(std::size_t stage, std::int64_t job, std::int64_t from) {
    if (job == problem_.stages[stage].rates[0]) return place(stage + 1);
    const std::uint32_t core = places_[stage].core;
    for (std::int64_t start = from; start < kGrid; ++start) {
      if (stage == 0 && job == 0 && start > 0 && any_phase_) break;  // the circle may be turned
      bool free = true;
      for (std::int64_t t = 0; t < lengths_[stage]; ++t) free = free && !busy_[core][at(start + t)];
      if (!free) continue;
      for (std::int64_t t = 0; t < lengths_[stage]; ++t) busy_[core][at(start + t)] = true;
      places_[stage].starts.push_back(start);
      put(stage, job + 1, start + lengths_[stage]);
      places_[stage].starts.pop_back();
      for (std::int64_t t = 0; t < lengths_[stage]; ++t) busy_[core][at(start + t)] = false;
    }
  }
  static std::size_t at(std::int64_t time) { return static_cast<std::size_t>(floor_mod(time, kGrid)); }

  [[nodiscard]] std::int64_t start(std::uint32_t stage, std::int64_t job) const {
    const auto rate = static_cast<std::int64_t>(places_[stage].starts.size());
    return floor_div(job, rate) * kGrid + places_[stage].starts[static_cast<std::size_t>(floor_mod(job, rate))];
  }
  [[nodiscard]] std::int64_t newest(std::uint32_t producer, std::uint32_t consumer, std::int64_t when) const {
    const bool crosses = places_[producer].core != places_[consumer].core;
    const std::int64_t ready = lengths_[producer] + (crosses ? problem_.board.clock_error.ns / kMs : 0);
    std::int64_t job = (floor_div(when, kGrid) + 2) * static_cast<std::int64_t>(places_[producer].starts.size());
    while (start(producer, job) + ready > when) --job;
    return job;
  }

  // Over the chains, as far as their stages are among the first `placed`; what is missing at its shortest.
  [[nodiscard]] double worst(std::size_t placed) const {
    double out = 0;
    for (const Chain& chain : problem_.chains) {
      std::vector<std::uint32_t> stages;
      std::int64_t rest = 0;
      for (const std::uint32_t stage : chain.stages) {
        if (stage < placed && rest == 0) {
          stages.push_back(stage);
        } else {
          rest += lengths_[stage] * kMs;
        }
      }
      if (stages.empty()) continue;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        if (!chain.limits[q]) continue;
        const std::int64_t bound = bound_of(problem_.sensors[chain.sensor], stages, static_cast<Quantity>(q)) + rest;
        out = std::max(out, static_cast<double>(bound) / static_cast<double>(chain.limits[q]->ns));
      }
    }
    return out;
  }

  [[nodiscard]] std::int64_t bound_of(const Sensor& sensor, const std::vector<std::uint32_t>& stages,
                                      Quantity quantity) const {
    const std::uint32_t last = stages.back();
    const auto outputs = static_cast<std::int64_t>(places_[last].starts.size());
    const auto source = [&](std::int64_t output) {  // start of the job of the first stage that it goes back to
      std::int64_t job = output;
      for (std::size_t i = stages.size(); i-- > 1;) job = newest(stages[i - 1], stages[i], start(stages[i], job));
      return start(stages.front(), job) * kMs;
    };
    const auto end = [&](std::int64_t output) { return (start(last, output) + lengths_[last]) * kMs; };
    std::int64_t out = 0;
    if (!sensor.phase) {
      const std::int64_t period = longest_period(sensor).ns;
      const std::int64_t delay = sensor.delay_max.ns;
      for (std::int64_t o = 0; o < outputs; ++o) {
        const std::int64_t s = source(o);
        const std::int64_t before = source(o - 1);
        std::int64_t bound = 0;
        if (quantity == Quantity::kLatency && s != before) bound = end(o) - s + std::min(period, s - before) + delay;
        if (quantity == Quantity::kReaction && s != before) bound = end(o) - before + period + delay;
        if (quantity == Quantity::kAgeAtOutput) bound = end(o) - s + period + delay;
        if (quantity == Quantity::kAgeUntilReplaced) bound = end(o + 1) - s + period + delay;
        out = std::max(out, bound);
      }
      return out;
    }
    const std::int64_t period = sensor.period.ns;
    const auto stamp = [&](std::int64_t k) { return sensor.phase->offset.ns + k * period; };
    const auto there = [&](std::int64_t k) { return stamp(k) + sensor.delay_max.ns; };
    for (std::int64_t k = 0; k < 6 && quantity == Quantity::kReaction; ++k) {  // two turns at least
      std::int64_t o = -20;
      while (source(o) < there(k)) ++o;
      out = std::max(out, end(o) - stamp(k - 1));
    }
    for (std::int64_t o = 0; o < 2 * outputs && quantity != Quantity::kReaction; ++o) {
      std::int64_t k = 20;
      while (there(k) > source(o)) --k;
      out = std::max(out, end(quantity == Quantity::kAgeAtOutput ? o : o + 1) - stamp(k));
    }
    return out;
  }

  const Problem& problem_;
  std::vector<std::int64_t> lengths_;  // ms
  std::vector<Place> places_;
  std::vector<std::vector<bool>> busy_;
  bool any_phase_ = true;
};

Choices only_choices(const Problem& problem) {
  Choices choices;
  for (const Stage& stage : problem.stages) {
    choices.push_back({stage.rates[0], 0, stage.variants[0].budgets[0]});
  }
  return choices;
}

TEST(ExactSearch, EqualsBruteForceOnSmallProblems) {
  int equal = 0;
  int between = 0;  // better than any placement on the grid
  int locked = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Problem problem = tiny_problem(seed);
    ASSERT_TRUE(check(problem)) << problem.name << ": " << check(problem).error().message;
    const double best = BruteForce(problem).best;
    if (!std::isfinite(best)) continue;
    const ExactSearch exact(problem, only_choices(problem));
    const ExactSearch::Outcome at = exact.find(best + 1e-9, nullptr, 100'000);
    ASSERT_EQ(at.stop, ExactSearch::Outcome::Stop::kTable) << problem.name << " " << best << " " << at.refuted;
    const ExactSearch::Outcome below = exact.find(best - 2e-5, nullptr, 100'000);
    ASSERT_NE(below.stop, ExactSearch::Outcome::Stop::kOpen) << problem.name;
    if (below.stop == ExactSearch::Outcome::Stop::kNone) {
      EXPECT_LE(below.refuted, best + 1e-12) << problem.name;
      ++equal;
    } else {
      ++between;
    }
    for (const Chain& chain : problem.chains) locked += problem.sensors[chain.sensor].phase ? 1 : 0;
    // The whole way: the same optimum, proved, and a table that the analysis accepts.
    const Answer answer = synthesize(problem);
    if (best > 1) {
      EXPECT_TRUE(answer.verdict != Verdict::kFeasible || below.stop == ExactSearch::Outcome::Stop::kTable);
      continue;
    }
    ASSERT_EQ(answer.verdict, Verdict::kFeasible) << problem.name;
    const Status valid = validate(problem, *answer.schedule);
    EXPECT_TRUE(valid) << valid.error().message;
    EXPECT_LE(answer.levels[0].value, best + 4e-5) << problem.name;
    EXPECT_LE(answer.levels[0].bound, answer.levels[0].value) << problem.name;
    EXPECT_LE(answer.levels[0].gap(), 4e-4) << problem.name << " " << answer.levels[0].value;
  }
  std::cout << equal << " equal, " << between << " better between the milliseconds, " << locked
            << " chains of locked sensors\n";
  EXPECT_GE(equal, 100);
  EXPECT_GE(locked, 30);
}

// One core, three evenly spaced jobs that leave gaps of 2 ms for one of 3 ms: no arithmetic on loads says no.
TEST(ExactSearch, RefutesWhatDoesNotFitBetweenEvenStarts) {
  Problem problem = test::single();
  problem.board.cores[0].wakeup_window = {};
  problem.board.cores[0].publish_window = {};
  problem.hyperperiod = milliseconds(30);
  Stage fast = test::stage("fast", {3}, {test::variant("full", {7 * kMs - 2})});
  fast.inputs = {test::from_sensor("in", 0)};
  Stage slow = test::stage("slow", {1}, {test::variant("full", {4 * kMs - 2})});
  slow.inputs = {test::from_sensor("in", 0)};
  problem.stages = {fast, slow};
  problem.sensors[0].period = milliseconds(100);
  problem.sensors[0].delay_max = {};
  // Starts at even distances of 10 ms give 17 ms; with the slow job between two of them one distance is 11 ms.
  problem.chains = {test::chain("c", 0, {0}, milliseconds(17))};
  const ExactSearch exact(problem, only_choices(problem));
  const ExactSearch::Outcome none = exact.find(1, nullptr, 1000);
  EXPECT_EQ(none.stop, ExactSearch::Outcome::Stop::kNone);
  const Answer undecided = synthesize(problem);
  EXPECT_EQ(undecided.verdict, Verdict::kUndecided);
  EXPECT_THAT(undecided.reason, testing::HasSubstr("an exact search finds that none exists"));
  problem.chains[0].limits[0] = milliseconds(18);
  EXPECT_EQ(ExactSearch(problem, only_choices(problem)).find(1, nullptr, 1000).stop,
            ExactSearch::Outcome::Stop::kTable);
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_NEAR(answer.levels[0].bound, 1, 1e-4);
}

TEST(ExactSearch, SameBytesEveryTime) {
  const Problem problem = test::perception();
  const Answer a = synthesize(problem);
  const Answer b = synthesize(problem);
  ASSERT_TRUE(a.schedule && b.schedule);
  EXPECT_EQ(a.schedule->hash(), b.schedule->hash());
  EXPECT_EQ(a.levels[0].bound, b.levels[0].bound);
}

}  // namespace
}  // namespace takt::sched
