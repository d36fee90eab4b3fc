#include "scheduler/dispatch/wakeup.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/dispatch/cpu_latency.h"
#include "scheduler/dispatch/table_clock.h"
#include "scheduler/dispatch/thread_team.h"

namespace takt::sched {
namespace {

// A stage that does nothing: what remains of its job are the errors of start and publication.
class EmptyHost final : public StageHost {
 public:
  bool latch(const Job&, Duration, JobRecord&) override { return true; }
  void run(const Job&, int, Gang&) override {}
  void publish(const Job&, JobRecord& record) override { record.published = 1; }
  void discard(const Job&) override {}
  void finish(const Job&, JobRecord&) override {}
};

constexpr Duration kStep = milliseconds(1);

// The smallest value that 99.9 % do not exceed; sorts the values.
Duration p999_of(std::vector<std::int64_t>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * 999 + 999) / 1000;
  return {values[rank - 1]};
}

}  // namespace

WakeupTable wakeup_table(const Board& board) {
  constexpr Tick kTicks = 2000, kLength = 500;
  WakeupTable table;
  table.problem.board = board;
  table.problem.hyperperiod = WakeupTable::hyperperiod;
  table.schedule.clock = {WakeupTable::hyperperiod, kTicks};
  const auto cores = static_cast<std::uint32_t>(board.cores.size());
  for (std::uint32_t core = 0; core < cores; ++core) {
    table.problem.board.cores[core].publish_window = {};
    table.problem.stages.emplace_back().name = "wake" + std::to_string(core);
    table.schedule.choices.emplace_back().rate = 1;
    const Tick start = kTicks * core / cores;
    table.schedule.slots.push_back({.stage = core, .job = 0, .cores = {core}, .start = start, .end = start + kLength});
  }
  return table;
}

// The dispatcher itself runs the table: the error includes everything that delays a job in a real run (timer,
// dispatcher, latch, hand-over to the worker). Of a job that was not started, because the core woke behind its slot, it
// is how late that was.
Result<WakeupErrors> measure_wakeup(const Board& board, Duration how_long) {
  const std::size_t cores = board.cores.size();
  WakeupErrors errors{std::vector<Duration>(cores), std::vector<Duration>(cores), std::vector<Duration>(cores)};
  if (cores == 0 || how_long.ns <= 0) return errors;

  const WakeupTable table = wakeup_table(board);
  EmptyHost host;
  DispatchOptions options;
  options.hyperperiods =
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, how_long.ns / WakeupTable::hyperperiod.ns));
  std::vector<std::vector<std::int64_t>> samples(cores), publications(cores);
  std::vector<std::vector<std::pair<TableTime, HostTime>>> behind(cores);  // nominal start, when the core came to it
  for (std::size_t core = 0; core < cores; ++core) {
    samples[core].reserve(options.hyperperiods);
    publications[core].reserve(options.hyperperiods);
    behind[core].reserve(options.hyperperiods);
  }
  // Each core's dispatcher appends to its own vectors only.
  const auto take = [&](std::size_t core, const JobRecord& record) {
    if (record.actual_start != kNever) samples[core].push_back(record.actual_start - record.nominal_start);
    if (record.reason == Reason::kSlotOver) behind[core].emplace_back(TableTime{record.nominal_start}, host_now());
    // p is zero here: publication is planned for the end of the slot itself.
    if (record.publication != kNever) publications[core].push_back(record.publication - record.slot_end);
  };
  const auto result = dispatch(table.problem, table.schedule, std::vector<StageHost*>(cores, &host), options, take);
  if (!result) return fail(result.error());

  const TableClock clock{.origin = result->started, .rate = 1};
  for (std::size_t core = 0; core < cores; ++core) {
    for (const auto& [nominal, came] : behind[core]) samples[core].push_back((came - clock.host(nominal)).ns);
    errors.p999[core] = p999_of(samples[core]);
    errors.publish_p999[core] = p999_of(publications[core]);
    if (!samples[core].empty()) errors.max[core] = {samples[core].back()};
  }
  return errors;
}

Result<WakeupErrors> measure_sleep(const Board& board, Duration how_long) {
  const std::size_t cores = board.cores.size();
  WakeupErrors errors{std::vector<Duration>(cores), {}, std::vector<Duration>(cores)};
  const auto wakeups = static_cast<std::size_t>(std::max<std::int64_t>(1, how_long.ns / kStep.ns));
  std::vector<std::vector<std::int64_t>> samples(cores, std::vector<std::int64_t>(wakeups));
  HostTime begin;
  {
    const CpuLatency cpu_latency;  // as the dispatcher has it
    ThreadTeam team;
    for (std::size_t core = 0; core < cores; ++core) {
      const ThreadSpec spec{"sleep." + board.cores[core].name, board.cores[core].cpu, kDispatcherPriority};
      TAKT_RETURN_IF_ERROR(team.add(spec, [&, core] {
        HostTime next = begin;
        for (std::int64_t& error : samples[core]) {
          next = next + kStep;
          const timespec until{next.ns / 1'000'000'000, next.ns % 1'000'000'000};
          while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
          }
          error = (host_now() - next).ns;
        }
      }));
    }
    team.await_ready();
    begin = host_now() + kStep * 10;
    team.release();
    team.join();
  }
  for (std::size_t core = 0; core < cores; ++core) {
    errors.p999[core] = p999_of(samples[core]);
    errors.max[core] = {samples[core].back()};
  }
  return errors;
}

}  // namespace takt::sched
