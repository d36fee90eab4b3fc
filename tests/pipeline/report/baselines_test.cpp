#include "pipeline/report/baselines.h"

#include <gtest/gtest.h>
#include <utility>

#include "pipeline/report/verdict.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using namespace test;

// All jobs of a stage take so long.
RunData with_times(std::int64_t camera_us, std::int64_t lidar_us, std::int64_t fusion_us) {
  RunData run = synthetic_run(12, true);
  const std::int64_t times[] = {camera_us * 1000, lidar_us * 1000, fusion_us * 1000};
  for (sched::JobRecord& r : run.records) r.completion = r.actual_start + times[r.stage];
  return run;
}

TEST(Baselines, TheTablesFiguresAreThoseOfItsLockstepRun) {
  const RunData run = with_times(4000, 10000, 2000);
  const Baseline table = simulate(run, Way::kTable, 1);
  const Judgement judged = judge(synthetic_run(12, false));
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(table.chains[c].worst_latency, judged.chains[c].latency().published_max) << c;
    EXPECT_EQ(table.chains[c].planned, c == 0 ? 20U : 10U);
    EXPECT_EQ(table.chains[c].outputs, c == 0 ? 20U : 10U);
    EXPECT_EQ(table.chains[c].misses, 0U);
  }
  // Fusion's slots end at 24.8 and 88.8 ms: 64 and 36 ms apart.
  EXPECT_EQ(table.chains[0].jitter.ns, 28'000'000);
}

TEST(Baselines, TheTableDoesNotMoveWhileEveryJobFits) {
  const RunData run = with_times(4000, 10000, 2000);
  const Baseline one = simulate(run, Way::kTable, 1), more = simulate(run, Way::kTable, 1.9);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(one.chains[c].worst_latency, more.chains[c].worst_latency);
    EXPECT_EQ(one.chains[c].jitter, more.chains[c].jitter);
  }
}

TEST(Baselines, OverrunsOfTheTableAreMissesOfTheirChainOnly) {
  // Twice 12 ms exceed the LiDAR's slot of 20.8 ms, which has no slack; it ends before its next job.
  const RunData run = with_times(2000, 12000, 1000);
  const Baseline table = simulate(run, Way::kTable, 2);
  EXPECT_EQ(table.chains[0].misses, 0U);
  EXPECT_EQ(table.chains[0].worst_latency, simulate(run, Way::kTable, 1).chains[0].worst_latency);
  EXPECT_EQ(table.chains[1].outputs, 0U);  // no LiDAR data reaches an output
  EXPECT_EQ(table.chains[1].misses, 10U);
}

TEST(Baselines, EventDrivenByHand) {
  // Camera stamps 2 ms + k 100/3, longest delay 5.9 ms; stage 1 ms on core 1. Fusion at 0 and 50 ms on core 0, 1 ms.
  // The newest camera output at 50 ms is that of 35.33 ms (arrived 41.23, done 42.23); at 0 that of 68.67 ms before.
  // LiDAR: arrives 52 + 98 ms, both cores for 10 ms.
  const RunData run = with_times(1000, 10000, 1000);
  const Baseline fifo = simulate(run, Way::kFifo, 1);
  EXPECT_EQ(fifo.chains[0].outputs, 20U);
  // Released at 50, but the gang holds core 0 from 52 of the cycle before... the longest: sample 68.67, used at
  // 100: 32.3 ms.
  EXPECT_GT(fifo.chains[0].worst_latency.ns, 15'000'000);
  EXPECT_LT(fifo.chains[0].worst_latency.ns, 45'000'000);
  EXPECT_EQ(fifo.chains[0].misses, 0U);
  // Alone on the machine, order does not matter.
  const Baseline edf = simulate(run, Way::kEdf, 1);
  EXPECT_EQ(edf.chains[0].worst_latency, fifo.chains[0].worst_latency);
}

TEST(Baselines, LoadMakesEventDrivenLatencyWorse) {
  const RunData run = with_times(6000, 18000, 3000);
  for (const Way way : {Way::kFifo, Way::kEdf}) {
    EXPECT_GT(simulate(run, way, 2).chains[0].worst_latency, simulate(run, way, 1).chains[0].worst_latency);
  }
}

TEST(Baselines, AnEpochThatIsTooLongMakesTheNextFallOut) {
  // Epochs of 33.3 ms. The gang of 30 ms and the others fit at load 1, not at 2.
  const RunData run = with_times(3000, 25000, 1000);
  const Baseline fits = simulate(run, Way::kEpoch, 1), over = simulate(run, Way::kEpoch, 2);
  EXPECT_EQ(fits.chains[0].outputs, 20U);
  EXPECT_EQ(fits.chains[0].misses, 0U);
  EXPECT_LT(over.chains[0].outputs, 20U);
  EXPECT_GT(over.chains[0].misses, 0U);
}

// What the records of the table's own run say is what the simulation of it says.
TEST(Baselines, MeasuredFiguresOfTheTableAreThoseOfItsRecords) {
  RunData run = synthetic_run(12, true);
  for (sched::JobRecord& r : run.records) r.publication = r.publication == sched::kNever ? r.publication : r.slot_end;
  // Samples arrive until the last job: eleven hyperperiods of the log were there in whole.
  EXPECT_EQ(compared_hyperperiods(run), 11U);
  const Baseline real = measure(run, Way::kTable, 1, 11), simulated = simulate(run, Way::kTable, 1);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(real.chains[c].planned, c == 0 ? 18U : 9U);
    EXPECT_EQ(real.chains[c].outputs, real.chains[c].planned);
    EXPECT_EQ(real.chains[c].misses, 0U);
    EXPECT_EQ(real.chains[c].jitter, simulated.chains[c].jitter);
    EXPECT_LE(real.chains[c].worst_latency, simulated.chains[c].worst_latency);
    EXPECT_GT(real.chains[c].worst_latency, simulated.chains[c].worst_latency - milliseconds(2));
  }
  // An output that did not come, and one that brought nothing new along the chain.
  skip_job(run, kLidarStage, 5);
  record_of(run, kFusionStage, 9).inputs[0] = record_of(run, kFusionStage, 8).inputs[0];
  const Baseline hurt = measure(run, Way::kTable, 1, 11);
  EXPECT_EQ(hurt.chains[0].misses, 1U);
  EXPECT_EQ(hurt.chains[1].misses, 1U);
}

TEST(Baselines, LockstepRunsTakeTheHighWaterMarks) {
  const RunData run = synthetic_run(12, false);
  const Baseline fifo = simulate(run, Way::kFifo, 1);
  EXPECT_EQ(fifo.chains[0].outputs, 20U);
  EXPECT_EQ(baselines(run).size(), 12U);
}

// Of a run with modes the first one is compared, with its limits, chains and times.
TEST(Baselines, OfSeveralModesTheFirstIsCompared) {
  RunData run = with_times(4000, 10000, 2000);
  const Baseline alone = simulate(run, Way::kFifo, 1);
  for (const char* const name : {"first", "second"}) {
    run.modes.push_back(sched::only_table(run.problem, run.schedule));
    run.modes.back().name = name;
  }
  for (sched::JobRecord& r : run.records) {
    if (r.hyperperiod < 6) continue;
    r.mode = 1;
    r.completion += 20'000'000;
  }
  const auto same = [](const BaselineChain& a, const BaselineChain& b) {
    return a.worst_latency == b.worst_latency && a.outputs == b.outputs && a.misses == b.misses;
  };
  const Baseline first = simulate(run, Way::kFifo, 1);
  for (std::size_t c = 0; c < 2; ++c) EXPECT_TRUE(same(first.chains[c], alone.chains[c])) << c;
  EXPECT_EQ(baselines(run).size(), 12U);
  // With a hyperperiod of its own, from which rates and samples are counted.
  const Duration whole = std::exchange(run.problem.hyperperiod, milliseconds(50));
  for (const Way way : {Way::kTable, Way::kFifo, Way::kEpoch}) {
    const Baseline other = simulate(run, way, 1);
    run.problem.hyperperiod = whole;
    const Baseline same_length = simulate(run, way, 1);
    run.problem.hyperperiod = milliseconds(50);
    for (std::size_t c = 0; c < 2; ++c) EXPECT_TRUE(same(other.chains[c], same_length.chains[c])) << name_of(way);
  }
  run.problem.hyperperiod = whole;
  // A limit of its own, and a chain that it has not.
  const auto latency = static_cast<std::size_t>(sched::Quantity::kLatency);
  run.modes[0].limits[0][latency] = microseconds(1);
  std::erase_if(run.modes[0].schedule.bounds, [](const sched::ChainBound& bound) { return bound.chain == 1; });
  const Baseline narrow = simulate(run, Way::kFifo, 1);
  EXPECT_EQ(narrow.chains[0].misses, alone.chains[0].misses + narrow.chains[0].outputs);
  EXPECT_EQ(narrow.chains[1].planned, 0U);
  EXPECT_EQ(narrow.chains[1].misses, 0U);
}

// They would take each segment for a job of its own.
TEST(Baselines, JobsInSegmentsAreNotCompared) {
  RunData run = synthetic_run(12, false);
  EXPECT_TRUE(in_one_piece(run.schedule));
  cut_camera(run);
  EXPECT_FALSE(in_one_piece(run.schedule));
  EXPECT_TRUE(baselines(run).empty());
}

}  // namespace
}  // namespace takt::pipeline
