// How late the dispatcher starts jobs, beside the least that this machine can do: a table of one empty stage at 1 kHz
// against a loop that only sleeps and looks at the clock (as cyclictest does), on the same core, at the same priority,
// with the same request not to sleep deeply, in alternating blocks, so that whatever else the machine does hits both.
//
//   bench_dispatch BLOCKS WAKEUPS [CPU]   one line of JSON; exit code 1 when a job was neither started nor skipped
//
// An error of the dispatcher is that of the job: its worker's first instruction after the nominal start, so it includes
// the dispatcher's own wake-up, the latch and the hand-over. Of a job that is not started, because its dispatcher woke
// behind the end of its slot (`slot_over`), it is how long after the nominal start the dispatcher came to it: as the
// loop, which wakes late for each period that the machine stood still. One that finds the job before it running, since
// the machine stood still in between (`previous_running`), counts as late by a whole period.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "scheduler/dispatch/dispatch.h"

namespace {

using namespace takt;
using namespace takt::sched;

constexpr Duration kPeriod = milliseconds(1);

class EmptyHost final : public StageHost {
 public:
  bool latch(const Job&, Duration, JobRecord&) override { return true; }
  void run(const Job&, int, Gang&) override {}
  void publish(const Job&, JobRecord& record) override { record.published = 1; }
  void discard(const Job&) override {}
  void finish(const Job&, JobRecord&) override {}
};

struct Block {
  std::vector<std::int64_t> errors;
  std::size_t slot_over = 0;
  std::size_t previous_running = 0;
  bool rights = false;
};

Board board_of(int cpu) {
  Core core;
  core.name = "core";
  core.cpu = cpu;
  core.wakeup_window = microseconds(200);
  core.publish_window = microseconds(200);
  Board board;
  board.cores = {core};
  return board;
}

Block dispatched(std::uint64_t wakeups, const Board& board) {
  Problem problem;
  problem.hyperperiod = kPeriod;
  problem.board = board;
  problem.stages.emplace_back().name = "empty";
  Schedule schedule;
  schedule.clock = {kPeriod, 1000};
  schedule.choices.emplace_back().rate = 1;
  schedule.choices.back().budget.time = microseconds(100);
  schedule.slots.push_back({.stage = 0, .job = 0, .cores = {0}, .start = 0, .end = 500});
  EmptyHost host;
  Block out;
  out.errors.reserve(wakeups);
  // Nominal starts of jobs whose slots were over, and when the dispatcher came to them.
  std::vector<std::pair<TableTime, HostTime>> over;
  over.reserve(wakeups);
  DispatchOptions options;
  options.hyperperiods = wakeups;
  const auto result = dispatch(problem, schedule, {&host}, options, [&](std::size_t, const JobRecord& record) {
    if (record.actual_start != kNever) {
      out.errors.push_back(record.actual_start - record.nominal_start);
    } else if (record.reason == Reason::kSlotOver) {
      over.emplace_back(TableTime{record.nominal_start}, host_now());
    } else {
      ++out.previous_running;
      out.errors.push_back(kPeriod.ns);
    }
  });
  for (const auto& [nominal, came] : over) {
    out.errors.push_back((came - (result->started + (nominal - TableTime{0}))).ns);
  }
  out.slot_over = over.size();
  out.rights = result && result->rights.refused.empty();
  return out;
}

double us_at(std::vector<std::int64_t>& errors, double quantile) {
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<std::size_t>(quantile * static_cast<double>(errors.size()) + 0.999999);
  return static_cast<double>(errors[std::min(errors.size(), std::max<std::size_t>(rank, 1)) - 1]) * 1e-3;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[values.size() / 2]
                                : (values[values.size() / 2 - 1] + values[values.size() / 2]) / 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_dispatch BLOCKS WAKEUPS [CPU]\n");
    return 2;
  }
  const long blocks = std::atol(argv[1]), wakeups = std::atol(argv[2]);
  const int cpu = argc > 3 ? std::atoi(argv[3]) : 0;
  if (blocks < 1 || wakeups < 10 || cpu < 0) return 2;
  const Board board = board_of(cpu);
  std::vector<double> ratios, differences;
  double dispatch_max = 0, loop_max = 0;
  bool rights = true, complete = true;
  std::size_t slot_over = 0, previous_running = 0;
  std::string each;
  for (long block = 0; block < blocks; ++block) {
    Block ours = dispatched(static_cast<std::uint64_t>(wakeups), board);
    const auto loop = measure_sleep(board, kPeriod * wakeups);
    if (!loop) {
      std::fprintf(stderr, "bench_dispatch: %s\n", loop.error().message.c_str());
      return exit_code(loop.error().code);
    }
    const double a = us_at(ours.errors, 0.999), b = loop->p999[0].us();
    ratios.push_back(b > 0 ? a / b : 0);
    differences.push_back(a - b);
    dispatch_max = std::max(dispatch_max, us_at(ours.errors, 1));
    loop_max = std::max(loop_max, loop->max[0].us());
    slot_over += ours.slot_over;
    previous_running += ours.previous_running;
    rights = rights && ours.rights;
    complete = complete && ours.errors.size() == static_cast<std::size_t>(wakeups);
    char text[256];
    std::snprintf(text, sizeof text, "%s{\"dispatch_p50\": %.1f, \"dispatch_p999\": %.1f, \"loop_p999\": %.1f}",
                  block == 0 ? "" : ", ", us_at(ours.errors, 0.5), a, b);
    each += text;
  }
  std::printf(
      "{\"median_ratio\": %.3f, \"median_difference_us\": %.1f, \"dispatch_max_us\": %.1f, \"loop_max_us\": %.1f, "
      "\"slot_over\": %zu, \"previous_running\": %zu, \"rights\": %d, \"blocks_us\": [%s]}\n",
      median(ratios), std::max(0.0, median(differences)), dispatch_max, loop_max, slot_over, previous_running,
      rights ? 1 : 0, each.c_str());
  if (!complete) std::fprintf(stderr, "bench_dispatch: a job has no record\n");
  return complete ? 0 : 1;
}
