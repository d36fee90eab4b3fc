#include <algorithm>
#include <string>

#include "scheduler/dispatch/dispatch.h"

namespace takt::sched {
namespace {

// A stage that does nothing: what remains of its job is the start error.
class EmptyHost final : public StageHost {
 public:
  bool latch(const Job&, Duration, JobRecord&) override { return true; }
  void run(const Job&, int, Gang&) override {}
  void publish(const Job&, JobRecord&) override {}
  void discard(const Job&) override {}
  void finish(const Job&) override {}
};

constexpr Duration kStep = milliseconds(1);

}  // namespace

// A table with one empty stage per core, started one after the other, run by the dispatcher itself: the error includes
// everything that delays a job in a real run (timer, dispatcher, latch, hand-over to the worker).
WakeupErrors measure_wakeup(const Board& board, Duration how_long) {
  const std::size_t cores = board.cores.size();
  WakeupErrors errors{std::vector<Duration>(cores), std::vector<Duration>(cores)};
  if (cores == 0 || how_long.ns <= 0) return errors;

  Problem problem;
  problem.board = board;
  Schedule schedule;
  // At least two steps, so that a core sleeps between two starts.
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(cores, 2));
  schedule.clock.hyperperiod = kStep * steps;
  schedule.clock.ticks = 1000 * steps;
  EmptyHost host;
  std::vector<StageHost*> hosts;
  for (std::uint32_t core = 0; core < cores; ++core) {
    problem.board.cores[core].publish_window = {};
    problem.stages.emplace_back().name = "wake" + std::to_string(core);
    schedule.choices.emplace_back().rate = 1;
    const Tick start = 1000 * static_cast<Tick>(core);
    schedule.slots.push_back({.stage = core, .job = 0, .cores = {core}, .start = start, .end = start + 500});
    hosts.push_back(&host);
  }

  DispatchOptions options;
  options.hyperperiods =
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, how_long.ns / schedule.clock.hyperperiod.ns));
  std::vector<std::vector<std::int64_t>> samples(cores);
  for (auto& of_core : samples) of_core.reserve(options.hyperperiods);
  // Each core's dispatcher appends to its own vector only.
  const auto result =
      dispatch(problem, schedule, hosts, options, [&samples](std::size_t core, const JobRecord& record) {
        if (record.actual_start != kNever) samples[core].push_back(record.actual_start - record.nominal_start);
      });
  if (!result) return errors;

  for (std::size_t core = 0; core < cores; ++core) {
    auto& of_core = samples[core];
    if (of_core.empty()) continue;
    std::sort(of_core.begin(), of_core.end());
    const std::size_t rank = (of_core.size() * 999 + 999) / 1000;  // ceil: the smallest value that 99.9 % do not exceed
    errors.p999[core] = {of_core[rank - 1]};
    errors.max[core] = {of_core.back()};
  }
  return errors;
}

}  // namespace takt::sched
