#include "pipeline/report/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/report/causes.h"
#include "pipeline/report/text.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using namespace test;
using sched::Quantity;

const QuantityJudgement& of(const Judgement& j, std::size_t chain, Quantity quantity) {
  return j.chains[chain].quantities[static_cast<std::size_t>(quantity)];
}

const Requirement* requirement(const Judgement& j, const std::string& group, const std::string& name) {
  for (const Requirement& r : j.requirements) {
    if (r.group == group && r.name == name) return &r;
  }
  return nullptr;
}

const Instance* instance_of_sample(const QuantityJudgement& quantity, std::uint64_t sample) {
  for (const Instance& i : quantity.instances) {
    if (i.sample == sample) return &i;
  }
  return nullptr;
}

bool broke(const Instance& instance, Assumption assumption) {
  return std::any_of(instance.broken.begin(), instance.broken.end(),
                     [&](const Broken& b) { return b.assumption == assumption; });
}

TEST(Verdict, LockstepHoldsEveryInstance) {
  const RunData run = synthetic_run(10, false);
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kPass);
  EXPECT_EQ(j.violated, 0U);
  EXPECT_EQ(j.void_count, 0U);
  ASSERT_TRUE(j.share_held());
  EXPECT_EQ(*j.share_held(), 1.0);
  EXPECT_NE(j.deadlines_not_judged.find("lockstep"), std::string::npos);
  // Two camera samples of three reach an output in every hyperperiod, one LiDAR sample does.
  EXPECT_EQ(of(j, 0, Quantity::kLatency).held, 20U);
  EXPECT_EQ(of(j, 1, Quantity::kLatency).held, 10U);
  EXPECT_TRUE(j.misses.empty());
}

TEST(Verdict, FourQuantitiesFollowFromTheTable) {
  const RunData run = synthetic_run(4, false);
  const Judgement j = judge(run);
  // Camera: sample at 2 ms is published with fusion's slot at 24.8 ms; the one at 68.67 ms at 88.8 ms.
  EXPECT_EQ(of(j, 0, Quantity::kLatency).published_max.ns, 22'800'000);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).completed_max.ns, 22'000'000);
  // An event right after the sample at 2 ms waits for the one at 68.666666 ms, out at 88.8 ms.
  EXPECT_EQ(of(j, 0, Quantity::kReaction).published_max.ns, 86'800'000);
  EXPECT_EQ(of(j, 0, Quantity::kAgeAtOutput).published_max.ns, 22'800'000);
  EXPECT_EQ(of(j, 0, Quantity::kAgeUntilReplaced).published_max.ns, 86'800'000);
  // LiDAR: stamp -2 ms, published at 88.8 ms, used again at 124.8 ms, replaced at 188.8 ms.
  EXPECT_EQ(of(j, 1, Quantity::kLatency).published_max.ns, 90'800'000);
  EXPECT_EQ(of(j, 1, Quantity::kReaction).published_max.ns, 190'800'000);
  EXPECT_EQ(of(j, 1, Quantity::kAgeAtOutput).published_max.ns, 126'800'000);
  EXPECT_EQ(of(j, 1, Quantity::kAgeUntilReplaced).published_max.ns, 190'800'000);
}

TEST(Verdict, RealTimeWithRightsIsJudged) {
  const Judgement j = judge(synthetic_run(10, true));
  EXPECT_EQ(j.outcome, Outcome::kPass);
  EXPECT_EQ(j.deadlines_not_judged, "");
  EXPECT_TRUE(j.reasons.empty());
}

TEST(Verdict, RefusedRightsAndOtherRatesAreNotJudged) {
  RunData run = synthetic_run(4, true);
  run.dispatch.rights.refused = "SCHED_FIFO";
  const Judgement refused = judge(run);
  EXPECT_EQ(refused.outcome, Outcome::kNotJudged);
  EXPECT_NE(refused.deadlines_not_judged.find("SCHED_FIFO"), std::string::npos);
  EXPECT_EQ(requirement(refused, "chain camera to tracks", "latency")->outcome, Outcome::kNotJudged);
  RunData fast = synthetic_run(4, true);
  fast.rate = 2;
  EXPECT_EQ(judge(fast).outcome, Outcome::kNotJudged);

  // That rights were refused comes before what that does to a run.
  for (sched::JobRecord& r : run.records) {
    if (r.stage != kFusionStage) continue;
    r.actual_start = r.nominal_start + 700'000;
    r.flags |= sched::kFlagLateStart;
    r.job_class = sched::JobClass::kLateStart;
  }
  const Judgement late = judge(run);
  ASSERT_GT(late.void_count, 0U);
  ASSERT_GT(late.reasons.size(), 1U);
  EXPECT_NE(late.reasons.front().find("without real-time rights"), std::string::npos) << late.reasons.front();
  record_of(run, kCameraStage, 1).copied_bytes = 1 << 20;  // where something failed, that is the reason
  const Judgement failed = judge(run);
  EXPECT_EQ(failed.outcome, Outcome::kFail);
  EXPECT_NE(failed.reasons.back().find("without real-time rights"), std::string::npos) << failed.reasons.back();
}

// A part of it is not that run, whatever became of that.
TEST(Verdict, AReproductionThatWasCutOffIsNotJudged) {
  RunData run = synthetic_run(10, false);
  run.repeats = {"FAIL", "1 chain instance violated"};
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);
  run.interrupted = true;
  run.digests = {{"t", 1, {}, "NOT COMPARED: the run was interrupted"}};
  EXPECT_EQ(judge(run).outcome, Outcome::kNotJudged);
}

TEST(Verdict, LateStartMakesExactlyItsOwnInstancesVoid) {
  RunData run = synthetic_run(6, true);
  sched::JobRecord& r = record_of(run, kCameraStage, 3);  // feeds fusion job 2
  r.actual_start = r.nominal_start + 2'000'000;
  r.completion = r.actual_start + 5'000'000;
  r.flags |= sched::kFlagLateStart;
  r.job_class = sched::JobClass::kLateStart;
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kPass);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).void_count, 1U);
  EXPECT_EQ(of(j, 1, Quantity::kLatency).void_count, 0U);
  const Instance* instance = instance_of_sample(of(j, 0, Quantity::kLatency), 3);
  ASSERT_NE(instance, nullptr);
  EXPECT_EQ(instance->state, InstanceState::kVoid);
  ASSERT_EQ(instance->broken.size(), 1U);
  EXPECT_EQ(instance->broken[0].assumption, Assumption::kStart);
  EXPECT_EQ(instance->broken[0].number, 3U);
  EXPECT_NE(instance->broken[0].detail.find("2.00 ms"), std::string::npos);
  ASSERT_EQ(j.misses.size(), 1U);
  EXPECT_EQ(j.misses[0].record->job, 3U);
  EXPECT_NE(j.misses[0].cause.find("2.00 ms"), std::string::npos);
}

// A job that was not started, or not gone on with, because its core woke too late is one whose start window was broken.
TEST(Verdict, AJobWhoseDispatcherWokeTooLateMakesItsOwnInstancesVoid) {
  RunData run = synthetic_run(6, true);
  skip_job(run, kCameraStage, 3, sched::Reason::kSlotOver);
  const sched::JobRecord& lost = record_of(run, kCameraStage, 3);
  run.host_stalls = {{lost.nominal_start - 1'000'000, lost.slot_end + 1'000'000, 1, milliseconds(10)}};
  Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kPass);
  EXPECT_EQ(j.violated, 0U);
  EXPECT_GT(of(j, 0, Quantity::kLatency).void_count, 0U);
  EXPECT_EQ(of(j, 1, Quantity::kLatency).void_count, 0U);
  const Instance* instance = instance_of_sample(of(j, 0, Quantity::kLatency), 3);
  ASSERT_NE(instance, nullptr);
  EXPECT_EQ(instance->state, InstanceState::kVoid);
  const auto start = std::find_if(instance->broken.begin(), instance->broken.end(),
                                  [](const Broken& b) { return b.assumption == Assumption::kStart; });
  ASSERT_NE(start, instance->broken.end());
  EXPECT_EQ(start->number, 3U);
  EXPECT_NE(start->detail.find("skipped: its dispatcher woke behind the end of its slot"), std::string::npos);
  EXPECT_NE(start->detail.find("the hypervisor took 10.00 ms of core1"), std::string::npos) << start->detail;
  const auto cause_of_lost = [&] {
    for (const Miss& miss : j.misses) {
      if (miss.record == &lost) return miss.cause;
    }
    return std::string("no miss");
  };
  EXPECT_NE(cause_of_lost().find("not started: its dispatcher woke behind the end of its slot"), std::string::npos);
  EXPECT_NE(cause_of_lost().find("the hypervisor took 10.00 ms of core1"), std::string::npos) << cause_of_lost();

  // Where another job was still on the core, that is where the trouble began.
  sched::JobRecord& lidar = record_of(run, kLidarStage, 0);
  lidar.completion = lost.nominal_start + 3'000'000;
  lidar.flags |= sched::kFlagOverrun;
  lidar.job_class = sched::JobClass::kOverrun;
  j = judge(run);
  EXPECT_NE(cause_of_lost().find(": lidar_detect#0 held its core for another 3.00 ms"), std::string::npos)
      << cause_of_lost();
}

TEST(Verdict, AJobThatWasGivenUpBecauseItsDispatcherWokeTooLateSaysSo) {
  RunData run = synthetic_run(6, true);
  sched::JobRecord& r = record_of(run, kCameraStage, 3);
  const sched::JobRecord planned = r;
  skip_job(run, kCameraStage, 3);  // its consumers see nothing
  r = planned;
  r.reason = sched::Reason::kSlotOver;
  r.publication = sched::kNever;
  r.published = 0;
  r.flags |= sched::kFlagDiscarded;
  sched::classify(r, {.wakeup_window = milliseconds(1), .budget = milliseconds(100)});
  ASSERT_EQ(r.job_class, sched::JobClass::kLateStart);
  const Judgement j = judge(run);
  EXPECT_EQ(j.violated, 0U);
  std::string causes, details;
  for (const Miss& miss : j.misses) causes += miss.cause + "\n";
  for (const Instance& instance : of(j, 0, Quantity::kLatency).instances) {
    for (const Broken& broken : instance.broken) {
      if (broken.assumption == Assumption::kStart) details += broken.detail + "\n";
    }
  }
  const std::string text = "given up: a dispatcher woke when it was too late to go on";
  EXPECT_NE(causes.find(text), std::string::npos) << causes;
  EXPECT_NE(details.find(text), std::string::npos) << details;
  EXPECT_EQ(details.find("began"), std::string::npos) << details;
}

TEST(Verdict, ExceededBoundWithoutABrokenAssumptionIsViolated) {
  RunData run = synthetic_run(6, true);
  record_of(run, kFusionStage, 4).publication += 30'000'000;  // no flag says why
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kFail);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).violated, 1U);
  EXPECT_EQ(requirement(j, "chain camera to tracks", "latency")->outcome, Outcome::kFail);
  ASSERT_FALSE(j.reasons.empty());
  EXPECT_NE(j.reasons[0].find("violated"), std::string::npos);
}

TEST(Verdict, AViolationIsAFailureEvenWithoutRights) {
  RunData run = synthetic_run(6, true);
  run.dispatch.rights.refused = "SCHED_FIFO";
  record_of(run, kFusionStage, 4).publication += 30'000'000;
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);
}

TEST(Verdict, OverrunAndDiscardedOutputLoseTheSample) {
  RunData run = synthetic_run(6, true);
  sched::JobRecord& r = record_of(run, kFusionStage, 5);  // camera sample 8, LiDAR sample 2
  r.job_class = sched::JobClass::kOverrun;
  r.flags |= sched::kFlagOverrun | sched::kFlagDiscarded;
  r.published = 0;
  r.publication = sched::kNever;
  r.completion = r.actual_start + 9'000'000;
  const Judgement j = judge(run);
  const Instance* lost = instance_of_sample(of(j, 0, Quantity::kLatency), 8);
  ASSERT_NE(lost, nullptr);
  EXPECT_FALSE(lost->reached);
  EXPECT_EQ(lost->state, InstanceState::kVoid);
  EXPECT_TRUE(broke(*lost, Assumption::kBudget));
  // The LiDAR sample reaches the next output instead, late, and void for the same reason.
  const Instance* later = instance_of_sample(of(j, 1, Quantity::kLatency), 2);
  ASSERT_NE(later, nullptr);
  EXPECT_TRUE(later->reached);
  EXPECT_EQ(later->output, 6U);
  EXPECT_EQ(later->state, InstanceState::kVoid);
  EXPECT_EQ(j.violated, 0U);
  // The output before it stayed longer: void as well, not violated.
  EXPECT_EQ(of(j, 0, Quantity::kAgeUntilReplaced).violated, 0U);
  EXPECT_GE(of(j, 0, Quantity::kAgeUntilReplaced).void_count, 1U);
}

TEST(Verdict, ASampleIsMissedAtTheVeryInstantAtWhichItWasDue) {
  RunData run = synthetic_run(6, true);
  // The sample stamped 68.67 ms arrives at the latest when the third camera job latches, at 75 ms; in hyperperiod 3 it
  // is lost. The job takes the one before, which no output used otherwise.
  sched::Sensor& front = run.problem.sensors[0];
  front.phase->jitter = {};
  front.delay_max = nanoseconds(75'000'000 - 68'666'666);
  sched::JobRecord& camera = record_of(run, kCameraStage, 11);
  camera.inputs[0] = record_of(run, kCameraStage, 10).inputs[0];
  camera.inputs[0].kind = 1;
  camera.flags |= sched::kFlagRepeatInput;
  const Judgement j = judge(run);
  const Instance* instance = instance_of_sample(of(j, 0, Quantity::kLatency), camera.inputs[0].job);
  ASSERT_NE(instance, nullptr);
  EXPECT_GT(instance->published, *of(j, 0, Quantity::kLatency).bound);
  EXPECT_EQ(instance->state, InstanceState::kVoid);
  EXPECT_TRUE(broke(*instance, Assumption::kPeriod));
  for (const QuantityJudgement& quantity : j.chains[0].quantities) EXPECT_EQ(quantity.violated, 0U);
}

TEST(Verdict, AWaitThatBeginsAtAWrongStampIsVoid) {
  RunData run = synthetic_run(6, true);
  for (sched::JobRecord& r : run.records) {  // the clock stood back by 45 ms for one sample
    if (r.stage == kCameraStage && r.job == 8) r.inputs[0].capture_ns -= 45'000'000;
  }
  const Judgement j = judge(run);
  const QuantityJudgement& reaction = of(j, 0, Quantity::kReaction);
  EXPECT_EQ(reaction.violated, 0U);
  EXPECT_GT(reaction.published_max, *reaction.bound);
  ASSERT_TRUE(reaction.worst);
  const Instance& worst = reaction.instances[*reaction.worst];
  EXPECT_EQ(worst.state, InstanceState::kVoid);
  EXPECT_TRUE(std::any_of(worst.broken.begin(), worst.broken.end(), [](const Broken& b) { return b.by_sensor; }));
}

TEST(Verdict, CausesGoBackToTheJobAndEffectsForwardToItsConsumers) {
  RunData run = synthetic_run(6, true);
  // LiDAR job 3 overran by 5 ms, and its output was discarded: fusion holds the output of job 2.
  sched::JobRecord& lidar = record_of(run, kLidarStage, 3);
  lidar.completion = lidar.actual_start + 25'000'000;
  lidar.cpu_ns = 2 * 24'000'000;
  lidar.published = 0;
  lidar.publication = sched::kNever;
  lidar.flags |= sched::kFlagOverrun | sched::kFlagDiscarded;
  lidar.job_class = sched::JobClass::kOverrun;
  sched::JobRecord& fusion = record_of(run, kFusionStage, 7);
  const std::int64_t held_capture = record_of(run, kLidarStage, 2).inputs[0].capture_ns;
  fusion.inputs[1] = {2, held_capture, 0, 2, sched::Reason::kNone, 0, {}};
  fusion.flags |= sched::kFlagHeldInput;
  record_of(run, kFusionStage, 8).inputs[1] = {.kind = 3, .reason = sched::Reason::kProducerNothing};
  // The camera stage shares core 1 and begins while LiDAR job 3 still runs.
  sched::JobRecord& camera = record_of(run, kCameraStage, 11);
  camera.actual_start = lidar.completion + 100'000;
  camera.completion = camera.actual_start + 1'000'000;
  camera.publication = camera.slot_end - 1;
  camera.flags |= sched::kFlagLateStart;
  camera.job_class = sched::JobClass::kLateStart;
  const Judgement j = judge(run);
  ASSERT_EQ(j.misses.size(), 2U);
  EXPECT_EQ(j.misses[0].cause, "overran by 5.00 ms: ran for 25.00 ms, its budget is 20.00 ms; output discarded");
  const double age =
      static_cast<double>(run.sensor_from_table.map_unchecked(TableTime{fusion.publication}).ns - held_capture) * 1e-6;
  EXPECT_NE(
      j.misses[0].effect.find("so fusion#7 used hold(1) of lidar_detect, age " + std::to_string(age).substr(0, 5)),
      std::string::npos)
      << j.misses[0].effect;
  EXPECT_NE(j.misses[0].effect.find(", fusion#8 ran without it"), std::string::npos) << j.misses[0].effect;
  EXPECT_NE(j.misses[1].cause.find(": lidar_detect#3 held its core for another"), std::string::npos)
      << j.misses[1].cause;
  EXPECT_NE(j.misses[1].cause.find("; lidar_detect#3: overran by 5.00 ms"), std::string::npos)
      << "and why it did: " << j.misses[1].cause;
  EXPECT_EQ(j.misses[1].effect, "");
}

// Of a job in segments each has its own start and budget; the words name the one that broke them.
TEST(Verdict, TheSegmentThatWasLateOrTookTooLongIsNamed) {
  RunData run = synthetic_run(6, true);
  cut_camera(run);
  EXPECT_EQ(judge(run).violated, 0U);
  sched::JobRecord& late = record_of(run, kCameraStage, 3);
  late.segments[1].start += 700'000;
  late.flags |= sched::kFlagLateStart;
  late.job_class = sched::JobClass::kLateStart;
  sched::JobRecord& slow = record_of(run, kCameraStage, 6);
  slow.segments[1].end += 500'000;
  slow.segments[0].end -= 1'000'000;  // the sum is below the sum of the budgets
  slow.flags |= sched::kFlagOverrun;
  slow.job_class = sched::JobClass::kOverrun;
  const Judgement j = judge(run);
  std::string details;
  for (const Instance& instance : j.chains[0].latency().instances) {
    for (const Broken& broken : instance.broken) details += broken.detail + "\n";
  }
  const std::int64_t wake = late.actual_start - late.nominal_start;
  EXPECT_NE(details.find("segment 2 of 3, on gpu, began " + ms_text({wake + 700'000}) + " after its nominal start"),
            std::string::npos)
      << details;
  EXPECT_NE(details.find("segment 2 of 3, on gpu, took 3.50 ms of a budget of 3.00 ms"), std::string::npos) << details;
  ASSERT_EQ(j.misses.size(), 2U);
  EXPECT_EQ(j.misses[0].cause.find("segment 2 of 3, on gpu, began "), 0U) << j.misses[0].cause;
}

// A job whose unit works holds no core meanwhile, and none after the segment that kept it.
TEST(Verdict, WhoIsOnItsUnitHoldsNoCore) {
  RunData run = synthetic_run(6, true);
  cut_camera(run);
  sched::JobRecord& camera = record_of(run, kCameraStage, 4);
  sched::JobRecord& lidar = record_of(run, kLidarStage, 1);
  lidar.actual_start = lidar.nominal_start + 4'000'000;
  lidar.flags |= sched::kFlagLateStart;
  lidar.job_class = sched::JobClass::kLateStart;
  const auto cause = [&] {
    for (const Miss& miss : judge(run).misses) {
      if (miss.record->stage == kLidarStage) return miss.cause;
    }
    return std::string("no miss");
  };
  // The unit works until 2 ms behind the LiDAR's nominal start, the last segment until 3 ms.
  camera.segments[1].end = lidar.nominal_start + 2'000'000;
  camera.segments[2] = {lidar.nominal_start + 2'000'000, lidar.nominal_start + 3'000'000};
  camera.completion = camera.segments[2].end;
  EXPECT_NE(cause().find(": camera_detect#4 held its core for another 3.00 ms"), std::string::npos) << cause();
  camera.segments[2] = {};  // given up: it never came back to the cores
  EXPECT_EQ(cause().find("camera_detect"), std::string::npos) << cause();
}

// The last segment of a job waits for the core that a job of a later slot still holds; and that one had begun late
// because of the first segment, so that all of it came from the job itself.
TEST(Verdict, ALaterSegmentIsHeldUpByAJobOfALaterSlot) {
  RunData run = synthetic_run(6, true);
  cut_camera(run);
  // While the camera is on its unit, fusion has 2 ms on the same core.
  for (sched::Slot& slot : run.schedule.slots) {
    if (slot.stage != kFusionStage || slot.job != 0) continue;
    slot.cores = {1};
    slot.start = run.schedule.clock.ticks_up(microseconds(11'200));
    slot.end = run.schedule.clock.ticks_up(milliseconds(14));
  }
  sched::JobRecord& camera = record_of(run, kCameraStage, 3);
  sched::JobRecord& fusion = record_of(run, kFusionStage, 2);
  const std::int64_t begin = camera.nominal_start;  // 8 ms into its hyperperiod
  const auto at = [begin](double ms) { return begin + static_cast<std::int64_t>(ms * 1e6); };
  fusion.nominal_start = at(3.2);
  fusion.slot_end = at(6);
  fusion.actual_start = at(3.3);
  fusion.completion = at(8.4);
  fusion.flags |= sched::kFlagOverrun;
  fusion.job_class = sched::JobClass::kOverrun;
  camera.actual_start = at(0.1);
  camera.segments[0] = {at(0.1), at(2)};
  camera.segments[1] = {at(3), at(5)};
  camera.segments[2] = {at(8.5), at(9.5)};
  camera.completion = at(9.5);
  camera.flags |= sched::kFlagLateStart;
  camera.job_class = sched::JobClass::kLateStart;
  using Jobs = std::vector<const sched::JobRecord*>;
  EXPECT_EQ(origins_of(run, RecordIndex(run), camera), Jobs{&fusion});
  EXPECT_EQ(origins_of(run, RecordIndex(run), fusion), Jobs{});
  const std::string chain = cause_chain(run, RecordIndex(run), camera);
  EXPECT_NE(chain.find("segment 3 of 3, began 2.50 ms after its nominal start: fusion#2 held its core for another "
                       "2.40 ms; fusion#2: overran by"),
            std::string::npos)
      << chain;

  // The first segment ran 2.3 ms over, into fusion's slot: it brought that, and with it its own last segment's trouble.
  camera.segments[0].end = at(5.3);
  fusion.actual_start = at(5.4);
  fusion.flags |= sched::kFlagLateStart;
  fusion.job_class = sched::JobClass::kLateStart;
  EXPECT_EQ(origins_of(run, RecordIndex(run), fusion), Jobs{&camera});
  EXPECT_EQ(origins_of(run, RecordIndex(run), camera), (Jobs{&fusion, &camera}));
  const std::string whole = cause_chain(run, RecordIndex(run), camera);
  EXPECT_NE(whole.find("fusion#2: began 2.20 ms after its nominal start: camera_detect#3 held its core"),
            std::string::npos)
      << whole;
  EXPECT_EQ(whole.find("camera_detect#3:"), std::string::npos) << "it is the job that is explained: " << whole;
  // Within its window it began in time, whoever was there: it ran over by itself.
  fusion.actual_start = at(3.2) + run.problem.board.cores[1].wakeup_window.ns;
  EXPECT_EQ(origins_of(run, RecordIndex(run), camera), Jobs{&fusion});
}

// A worker that was to lose its core while it was inside a driver is why the next one began late.
TEST(Verdict, WhoWasInsideADriverKeptItsCore) {
  RunData run = synthetic_run(6, true);
  sched::JobRecord& lidar = record_of(run, kLidarStage, 3);
  lidar.completion = record_of(run, kCameraStage, 11).nominal_start + 5'000'000;
  lidar.publication = sched::kNever;
  lidar.published = 0;
  lidar.flags |= sched::kFlagOverrun | sched::kFlagDiscarded | sched::kFlagIsolated;
  lidar.job_class = sched::JobClass::kOverrun;
  sched::JobRecord& camera = record_of(run, kCameraStage, 11);
  camera.actual_start = camera.nominal_start + 2'000'000;
  camera.flags |= sched::kFlagLateStart;
  camera.job_class = sched::JobClass::kLateStart;
  const auto causes = [&] {
    std::string all;
    for (const Miss& miss : judge(run).misses) all += miss.cause + "\n";
    return all;
  };
  EXPECT_EQ(causes().find("lidar_detect#3"), std::string::npos) << causes();
  lidar.flags |= sched::kFlagInCall;
  EXPECT_NE(causes().find("lost its core when it came back from its device's driver"), std::string::npos) << causes();
  const std::string kept = ": lidar_detect#3 kept its core until it came back from a call";
  EXPECT_NE(causes().find(kept), std::string::npos) << causes();

  // It computes on in gaps until the next job of that core begins late, but a job has begun there meanwhile.
  sched::JobRecord& next = record_of(run, kCameraStage, 12);
  lidar.completion = next.nominal_start + 5'000'000;
  next.actual_start = next.nominal_start + 2'000'000;
  next.flags |= sched::kFlagLateStart;
  next.job_class = sched::JobClass::kLateStart;
  const auto cause_of_next = [&] {
    for (const Miss& miss : judge(run).misses) {
      if (miss.record == &next) return miss.cause;
    }
    return std::string("no miss");
  };
  EXPECT_NE(cause_of_next().find("after its nominal start"), std::string::npos) << cause_of_next();
  EXPECT_EQ(cause_of_next().find(kept), std::string::npos) << cause_of_next();
  // Where that one did not begin, the core may have been kept all the time.
  skip_job(run, kCameraStage, 11);
  EXPECT_NE(cause_of_next().find(kept), std::string::npos) << cause_of_next();
}

// What it computed would have fitted into the gaps of its core; behind that instant other programs kept it from them.
TEST(Verdict, AWorkerThatLostItsCoreIsToldFromOneThatOthersKeptFromIt) {
  RunData run = synthetic_run(6, true);
  sched::JobRecord& fusion = record_of(run, kFusionStage, 1);
  const sched::JobRecord& lidar = record_of(run, kLidarStage, 1);
  for (std::uint64_t job = 2; job < 6; ++job) skip_job(run, kFusionStage, job);
  fusion.flags |= sched::kFlagOverrun | sched::kFlagDiscarded | sched::kFlagIsolated;
  fusion.job_class = sched::JobClass::kOverrun;
  fusion.published = 0;
  fusion.publication = sched::kNever;
  fusion.completion = fusion.nominal_start + 250'000'000;
  const std::int64_t had_it = fusion.slot_end - fusion.actual_start;
  const auto waited = [&](std::int64_t cpu_ns) {
    fusion.cpu_ns = cpu_ns;
    return starved(run, RecordIndex(run), fusion);
  };
  EXPECT_EQ(waited(had_it / 2).ns, fusion.completion - fusion.slot_end);
  EXPECT_EQ(waited(had_it + 10'000'000).ns, fusion.completion - fusion.slot_end - 10'000'000);
  // A job of the table has the core in between; when it loses it itself, not longer than its slot.
  const std::int64_t first_gap = lidar.actual_start - fusion.slot_end;
  EXPECT_EQ(waited(had_it + first_gap + 1'000'000).ns, fusion.completion - lidar.completion - 1'000'000);
  record_of(run, kLidarStage, 1).completion += 100'000'000;
  EXPECT_EQ(waited(had_it + first_gap + 1'000'000).ns, fusion.completion - lidar.slot_end - 1'000'000);
  EXPECT_EQ(waited(1'000'000'000).ns, 0);
  static_cast<void>(waited(had_it + 10'000'000));
  std::string cause;
  for (const Miss& miss : judge(run).misses) {
    if (miss.record == &fusion) cause = miss.cause;
  }
  EXPECT_NE(cause.find("lost its core, and other programs then kept it waiting for 23"), std::string::npos) << cause;
  // In a repetition the times are those of the first run, and the CPU time is not.
  run.repeats.emplace();
  EXPECT_EQ(waited(had_it).ns, 0);
  run.repeats.reset();
  // It waited by itself, it never came back, it had its core: nobody kept it from there.
  fusion.voluntary_switches = 1;
  EXPECT_EQ(waited(had_it).ns, 0);
  fusion.voluntary_switches = 0;
  fusion.flags |= sched::kFlagStuck;
  EXPECT_EQ(waited(had_it).ns, 0);
  fusion.flags &= ~static_cast<std::uint32_t>(sched::kFlagStuck | sched::kFlagIsolated);
  EXPECT_EQ(waited(had_it).ns, 0);
}

TEST(Verdict, HostEvidenceStandsBesideTheJobsOfItsCoreAndTime) {
  RunData run = synthetic_run(6, true);
  for (const std::uint64_t job : {3U, 9U}) {  // both on core 1
    sched::JobRecord& r = record_of(run, kCameraStage, job);
    r.completion = r.actual_start + 8'500'000;
    r.cpu_ns = 1'000'000;
    r.involuntary_switches = 4;
    r.flags |= sched::kFlagOverrun;
    r.job_class = sched::JobClass::kOverrun;
  }
  const std::int64_t at = record_of(run, kCameraStage, 3).nominal_start;
  run.host_stalls = {{at - 10'000'000, at + 40'000'000, 1, milliseconds(10)},
                     {at - 10'000'000, at + 40'000'000, 0, milliseconds(30)}};
  Judgement j = judge(run);
  ASSERT_EQ(j.misses.size(), 2U);
  EXPECT_NE(j.misses[0].cause.find("with 1.00 ms of CPU time and 4 involuntary switches"), std::string::npos);
  EXPECT_NE(j.misses[0].cause.find("the hypervisor took 10.00 ms of core1"), std::string::npos) << j.misses[0].cause;
  EXPECT_EQ(j.misses[0].cause.find("core0"), std::string::npos);
  EXPECT_EQ(j.misses[1].cause.find("hypervisor"), std::string::npos);
  EXPECT_EQ(j.violated, 0U);
  // A stopped process is every core's.
  run.host_stalls = {{at, at + 40'000'000, -1, milliseconds(30)}};
  j = judge(run);
  EXPECT_NE(j.misses[0].cause.find("the process was stopped for up to 30.00 ms"), std::string::npos);
}

TEST(Verdict, SkippedProducerMakesItsSampleVoid) {
  RunData run = synthetic_run(6, true);
  skip_job(run, kCameraStage, 6);
  const Judgement j = judge(run);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).violated, 0U);
  EXPECT_EQ(of(j, 0, Quantity::kReaction).violated, 0U);
  // The sample that job 6 would have used was latched by nobody, but surely there; the next output waits longer.
  EXPECT_EQ(of(j, 0, Quantity::kLatency).void_count, 1U);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).held, 11U);
  EXPECT_EQ(of(j, 0, Quantity::kReaction).void_count, 1U);
  ASSERT_EQ(j.misses.size(), 1U);
  EXPECT_NE(j.misses[0].cause.find("still running"), std::string::npos);
}

// A stage that never runs again leaves no samples in the records; what its chain lost is counted all the same.
TEST(Verdict, WhatAStageThatSkipsForLongHasLostIsVoid) {
  RunData run = synthetic_run(12, true);
  for (std::uint64_t job = 4; job < 12; ++job) skip_job(run, kLidarStage, job);
  const Judgement j = judge(run);
  const QuantityJudgement& lidar = of(j, 1, Quantity::kLatency);
  EXPECT_EQ(lidar.held, 4U);
  EXPECT_EQ(lidar.violated, 0U);
  // The sweeps of jobs 4 to 11, but for the last ones: nobody says that the log went on.
  EXPECT_GE(lidar.void_count, 7U);
  EXPECT_LE(lidar.void_count, 8U);
  EXPECT_TRUE(broke(lidar.instances.back(), Assumption::kWorkerFree));
  EXPECT_FALSE(lidar.instances.back().reached);
  EXPECT_LT(*j.share_held(), 0.9);
  EXPECT_EQ(of(j, 0, Quantity::kLatency).void_count, 0U);
}

TEST(Verdict, WhatAStageThatSkipsFromTheBeginningHasLostIsVoid) {
  RunData run = synthetic_run(12, true);
  for (std::uint64_t job = 0; job < 8; ++job) skip_job(run, kLidarStage, job);
  const Judgement j = judge(run);
  const QuantityJudgement& lidar = of(j, 1, Quantity::kLatency);
  EXPECT_EQ(lidar.held, 4U);
  EXPECT_EQ(lidar.void_count, 8U);
  EXPECT_EQ(lidar.violated, 0U);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  // No sample is made up that the log did not have.
  for (std::uint64_t job = 8; job < 12; ++job) record_of(run, kLidarStage, job).inputs[0].job -= 8;
  EXPECT_EQ(of(judge(run), 1, Quantity::kLatency).void_count, 0U);
}

// Makes the LiDAR's jobs from `first` on skip to the end of the run.
RunData run_that_loses_its_lidar(std::uint64_t hyperperiods, std::uint64_t first) {
  RunData run = synthetic_run(hyperperiods, true);
  for (std::uint64_t job = first; job < hyperperiods; ++job) skip_job(run, kLidarStage, job);
  return run;
}

// Each chain is judged on its own: what the others held says nothing about its bound.
TEST(Verdict, AChainThatIsMostlyVoidIsNotJudgedHoweverManyTheOthersHeld) {
  const Judgement j = judge(run_that_loses_its_lidar(12, 4));
  ASSERT_GT(*j.share_held(), 0.7);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  const QuantityJudgement& lidar = of(j, 1, Quantity::kLatency);
  ASSERT_FALSE(j.reasons.empty());
  EXPECT_EQ(j.reasons.front().rfind("most are void, so the run says little about their bounds: LiDAR to tracks "
                                    "latency " +
                                        std::to_string(lidar.held) + " of " + std::to_string(lidar.judged()) + " held",
                                    0),
            0U)
      << j.reasons.front();
  EXPECT_EQ(j.reasons.front().find("camera"), std::string::npos) << j.reasons.front();
  const Requirement* latency = requirement(j, "chain LiDAR to tracks", "latency");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->outcome, Outcome::kNotJudged);
  EXPECT_NE(latency->detail.find("most are void"), std::string::npos) << latency->detail;
  EXPECT_EQ(requirement(j, "chain camera to tracks", "latency")->outcome, Outcome::kPass);
  // Why a run failed comes first.
  RunData failed = run_that_loses_its_lidar(12, 4);
  record_of(failed, kFusionStage, 3).publication += 40'000'000;
  const Judgement fail = judge(failed);
  EXPECT_EQ(fail.outcome, Outcome::kFail);
  EXPECT_NE(fail.reasons.front().find(" violated: "), std::string::npos) << fail.reasons.front();
  EXPECT_EQ(fail.mostly_void.size(), j.mostly_void.size());
  // One half that is void is no more than the other.
  EXPECT_EQ(judge(run_that_loses_its_lidar(12, 8)).outcome, Outcome::kPass);
}

// A sensor that falls silent has no samples whose latency could be void; the ages of what is used instead are.
TEST(Verdict, AQuantityThatIsMostlyVoidIsNotJudged) {
  RunData run = synthetic_run(12, true);
  const sched::InputRecord last = record_of(run, kCameraStage, 9).inputs[0];
  for (std::uint64_t job = 10; job < 36; ++job) {
    record_of(run, kCameraStage, job).inputs[0] = last;
    record_of(run, kCameraStage, job).inputs[0].kind = 1;
  }
  for (std::uint64_t job = 7; job < 24; ++job) record_of(run, kFusionStage, job).inputs[0].capture_ns = last.capture_ns;
  const Judgement j = judge(run);
  EXPECT_FALSE(of(j, 0, Quantity::kLatency).mostly_void());
  const QuantityJudgement& age = of(j, 0, Quantity::kAgeAtOutput);
  ASSERT_TRUE(age.mostly_void());
  EXPECT_EQ(j.violated, 0U);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  EXPECT_NE(j.reasons.front().find("camera to tracks age at output " + std::to_string(age.held) + " of " +
                                   std::to_string(age.judged()) + " held"),
            std::string::npos)
      << j.reasons.front();
  // In lockstep, too.
  run.mode = "lockstep";
  EXPECT_EQ(judge(run).outcome, Outcome::kNotJudged);
}

TEST(Verdict, HeldInputIsABrokenAssumption) {
  RunData run = synthetic_run(6, true);
  // LiDAR job 3 produced nothing: fusion jobs 7 and 8 hold the output of job 2.
  skip_job(run, kLidarStage, 3);
  for (const std::uint64_t job : {7U, 8U}) {
    sched::JobRecord& r = record_of(run, kFusionStage, job);
    const sched::JobRecord& held = record_of(run, kLidarStage, 2);
    r.inputs[1] = {2, held.inputs[0].capture_ns, 0, 2, sched::Reason::kNone, 0, {}};
    r.flags |= sched::kFlagHeldInput;
  }
  const Judgement j = judge(run);
  EXPECT_EQ(of(j, 1, Quantity::kAgeAtOutput).violated, 0U);
  EXPECT_EQ(of(j, 1, Quantity::kAgeAtOutput).void_count, 2U);
  EXPECT_GT(of(j, 1, Quantity::kAgeAtOutput).published_max, *of(j, 1, Quantity::kAgeAtOutput).bound);
  EXPECT_LE(of(j, 1, Quantity::kAgeAtOutput).held_max, *of(j, 1, Quantity::kAgeAtOutput).bound);
}

TEST(Verdict, ArrivalOutsideItsModelIsVoid) {
  RunData run = synthetic_run(6, false);
  record_of(run, kLidarStage, 2).inputs[0].arrival_ns -= 2'000'000;  // 51 ms; declared 52 to 54
  const Judgement j = judge(run);
  const Instance* instance = instance_of_sample(of(j, 1, Quantity::kLatency), 2);
  ASSERT_NE(instance, nullptr);
  EXPECT_EQ(instance->state, InstanceState::kVoid);
  EXPECT_TRUE(broke(*instance, Assumption::kArrival));
  EXPECT_TRUE(instance->broken[0].by_sensor);
}

TEST(Verdict, MissingFrameIsASampleGap) {
  RunData run = synthetic_run(6, false);
  // Frame 9 (meant for camera job 9, fusion job 6) is not in the log: job 9 repeats frame 8.
  const sched::JobRecord& before = record_of(run, kCameraStage, 8);
  sched::JobRecord& r = record_of(run, kCameraStage, 9);
  r.inputs[0] = before.inputs[0];
  r.inputs[0].kind = 1;
  r.flags |= sched::kFlagRepeatInput;
  record_of(run, kFusionStage, 6).inputs[0].capture_ns = before.inputs[0].capture_ns;
  const Judgement j = judge(run);
  const QuantityJudgement& age = of(j, 0, Quantity::kAgeAtOutput);
  EXPECT_EQ(age.violated, 0U);
  ASSERT_EQ(age.void_count, 1U);
  const auto is_void = [](const Instance& i) { return i.state == InstanceState::kVoid; };
  const auto gap = std::find_if(age.instances.begin(), age.instances.end(), is_void);
  EXPECT_EQ(gap->output, 6U);
  EXPECT_TRUE(broke(*gap, Assumption::kPeriod));
  EXPECT_EQ(of(j, 0, Quantity::kReaction).violated, 0U);
  // No sample stands for the frame, so no latency is void: reactions and ages say what it did.
  EXPECT_EQ(j.void_count, 0U);
  EXPECT_GE(j.void_others, 2U);
  ASSERT_FALSE(j.reasons.empty());
  const std::string& said = j.reasons.front();
  EXPECT_NE(said.find("void and beyond their bounds: "), std::string::npos) << said;
  EXPECT_NE(said.find("age at output up to " + ms_text(age.published_max)), std::string::npos) << said;
}

TEST(Verdict, ASensorOfWhichNothingCouldBeUsedIsSaidFirst) {
  RunData run = synthetic_run(6, false);
  run.health[0].messages = 90;
  run.health[0].bad_frames = 90;
  run.health[0].examples = {"message 0 (stamp 5 ns): 640 x 360 is not the rig's 1920 x 1080: left out"};
  const Judgement j = judge(run);
  ASSERT_FALSE(j.reasons.empty());
  EXPECT_EQ(j.reasons.front(),
            run.health[0].sensor + ": none of its 90 messages could be used, first " + run.health[0].examples.front());
  run.mode = "real time";
  run.dispatch.rights.refused = "SCHED_FIFO";
  EXPECT_EQ(judge(run).reasons.front(), j.reasons.front());
}

TEST(Verdict, ABadFrameIsNoSampleGap) {
  RunData run = synthetic_run(6, false);
  // Frame 9 is in the log, but nobody can read it.
  const sched::JobRecord& before = record_of(run, kCameraStage, 8);
  sched::JobRecord& r = record_of(run, kCameraStage, 9);
  run.health[0].left_out = {{9, {r.inputs[0].capture_ns}, {r.inputs[0].arrival_ns}}};
  r.inputs[0] = before.inputs[0];
  r.inputs[0].kind = 1;
  record_of(run, kFusionStage, 6).inputs[0].capture_ns = before.inputs[0].capture_ns;
  const Judgement j = judge(run);
  EXPECT_EQ(j.violated, 0U);
  std::size_t bad = 0;
  for (const QuantityJudgement& quantity : j.chains[0].quantities) {
    for (const Instance& i : quantity.instances) {
      EXPECT_FALSE(broke(i, Assumption::kPeriod));
      if (!broke(i, Assumption::kFrame)) continue;
      ++bad;
      EXPECT_EQ(i.state, InstanceState::kVoid);
      EXPECT_EQ(i.broken.front().number, 9U);
    }
  }
  EXPECT_GE(bad, 2U) << "the age of fusion job 6, the reaction across the frame";
}

TEST(Verdict, EndOfTheLogIsNoGap) {
  RunData run = synthetic_run(6, false);
  // The last frame is 15; camera jobs 16 and 17 repeat it.
  const sched::InputRecord last = record_of(run, kCameraStage, 15).inputs[0];
  for (const std::uint64_t job : {16U, 17U}) {
    record_of(run, kCameraStage, job).inputs[0] = last;
    record_of(run, kCameraStage, job).inputs[0].kind = 1;
  }
  record_of(run, kFusionStage, 11).inputs[0].capture_ns = last.capture_ns;
  // The last sweep, too: job 5 repeats sweep 4, so nothing arrives after frame 15.
  record_of(run, kLidarStage, 5).inputs[0] = record_of(run, kLidarStage, 4).inputs[0];
  record_of(run, kLidarStage, 5).inputs[0].kind = 1;
  const Judgement j = judge(run);
  EXPECT_EQ(of(j, 0, Quantity::kAgeAtOutput).violated, 0U);
  EXPECT_EQ(of(j, 0, Quantity::kAgeAtOutput).void_count, 0U);
  EXPECT_EQ(of(j, 0, Quantity::kAgeAtOutput).fill, 1U);
}

TEST(Verdict, StampOffItsPhaseIsVoid) {
  RunData run = synthetic_run(6, false);
  record_of(run, kLidarStage, 2).inputs[0].capture_ns += 30'000;
  record_of(run, kLidarStage, 2).inputs[0].arrival_ns += 30'000;
  const Judgement j = judge(run);
  const Instance* instance = instance_of_sample(of(j, 1, Quantity::kLatency), 2);
  ASSERT_NE(instance, nullptr);
  EXPECT_TRUE(broke(*instance, Assumption::kPhase));
}

TEST(Verdict, CameraAtThirtyHertzKeepsItsPhaseForever) {
  RunData run = synthetic_run(400, false);
  run.problem.sensors[0].phase->jitter = nanoseconds(1);
  EXPECT_EQ(judge(run).void_count, 0U);
}

TEST(Verdict, MovedChunkCopiesAndAllocationsFail) {
  RunData run = synthetic_run(4, false);
  record_of(run, kFusionStage, 3).inputs[0].moved = 1;
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);

  run = synthetic_run(4, false);
  record_of(run, kCameraStage, 3).copied_bytes = 64 * 1024 + 1;
  EXPECT_EQ(requirement(judge(run), "zero copy and steady state", "bytes copied per job")->outcome, Outcome::kFail);

  run = synthetic_run(4, false);
  record_of(run, kCameraStage, 1).allocations = 5;  // warm-up
  EXPECT_EQ(judge(run).outcome, Outcome::kPass);
  record_of(run, kCameraStage, 3).allocations = 1;
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);
  run.allocation_guard = false;  // sanitizer build: not counted, so not judged
  EXPECT_EQ(requirement(judge(run), "zero copy and steady state", "allocations after warm-up")->outcome,
            Outcome::kNotJudged);
}

TEST(Verdict, DifferingDigestFails) {
  RunData run = synthetic_run(4, false);
  run.digests[0].compared = "NOT COMPARED: another JPEG library";
  EXPECT_EQ(judge(run).outcome, Outcome::kPass);
  run.digests[1].compared = "differs";
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);
}

TEST(Verdict, NothingReachedAnOutputIsNotJudged) {
  RunData run = synthetic_run(4, false);
  run.records.clear();
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  EXPECT_FALSE(j.share_held());
}

TEST(Verdict, AnUndeclaredSubscriberMakesEveryInstanceVoid) {
  RunData run = synthetic_run(4, true);
  run.undeclared_subscribers = {"/camera/objects"};
  const Judgement j = judge(run);
  EXPECT_EQ(j.held, 0U);
  EXPECT_EQ(j.violated, 0U);
  EXPECT_TRUE(broke(of(j, 0, Quantity::kLatency).instances[1], Assumption::kSubscriber));
}

TEST(Verdict, LostRecordsAreNotJudged) {
  RunData run = synthetic_run(4, true);
  run.lost_records = 1;
  record_of(run, kFusionStage, 4).publication += 30'000'000;
  EXPECT_EQ(judge(run).outcome, Outcome::kNotJudged);
}

TEST(Verdict, ChunksLostInQueuesFailUnlessAJobWasSkipped) {
  RunData run = synthetic_run(4, true);
  run.lost_inputs = 2;
  EXPECT_EQ(judge(run).outcome, Outcome::kFail);
  skip_job(run, kCameraStage, 4);
  EXPECT_EQ(judge(run).outcome, Outcome::kPass);
}

// The same table under two names, and a change from one to the other before hyperperiod 4.
RunData run_with_a_change(std::uint64_t hyperperiods) {
  RunData run = test::synthetic_run(hyperperiods, true);
  for (const char* name : {"a", "b"}) {
    run.modes.push_back(sched::only_table(run.problem, run.schedule));
    run.modes.back().name = name;
  }
  sched::ModeTable::Seam seam;
  seam.bounds = run.schedule.bounds;
  for (sched::ChainBound& bound : seam.bounds) {
    for (Duration& of : bound.bounds) of = of * 2;
  }
  run.modes[1].seams = {seam};
  sched::ModeChange change;
  change.hyperperiod = 4;
  change.begin = TableTime{4 * run.problem.hyperperiod.ns};
  change.to = 1;
  run.dispatch.changes = {change};
  for (sched::JobRecord& record : run.records) record.mode = record.hyperperiod >= 4 ? 1 : 0;
  return run;
}

TEST(Verdict, ModesAndTheirChangesHaveBoundsOfTheirOwn) {
  const Judgement plain = judge(test::synthetic_run(8, true));
  RunData run = run_with_a_change(8);
  const Judgement judgement = judge(run);
  EXPECT_EQ(judgement.outcome, Outcome::kPass);
  EXPECT_EQ(judgement.held, plain.held);
  for (const ChainJudgement& whole : plain.chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      std::uint64_t held = 0;
      for (const ChainJudgement& part : judgement.chains) {
        if (part.chain != whole.chain) continue;
        EXPECT_EQ(part.name, whole.name + " (" + part.context + ")");
        held += part.quantities[q].held;
        const Duration bound = *whole.quantities[q].bound;
        EXPECT_EQ(part.quantities[q].bound, part.context == "a -> b" ? bound * 2 : bound);
      }
      EXPECT_EQ(held, whole.quantities[q].held);
    }
  }
  // A bound that is too small for what lies across the change is exceeded there, and nowhere else.
  for (sched::ChainBound& bound : run.modes[1].seams[0].bounds) {
    for (Duration& of : bound.bounds) of = milliseconds(1);
  }
  std::uint64_t violated = 0;
  for (const ChainJudgement& part : judge(run).chains) {
    for (const QuantityJudgement& quantity : part.quantities) {
      if (part.context != "a -> b") {
        EXPECT_EQ(quantity.violated, 0U) << part.name;
      }
      violated += quantity.violated;
    }
  }
  EXPECT_GE(violated, 4U);
}

// A mode is judged on its own, too; a change of mode has too few instances for that.
TEST(Verdict, AModeInWhichAChainIsMostlyVoidIsNotJudged) {
  RunData run = run_with_a_change(20);
  for (const std::uint64_t job : {0U, 1U, 2U}) skip_job(run, kLidarStage, job);
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  ASSERT_FALSE(j.reasons.empty());
  EXPECT_NE(j.reasons.front().find("LiDAR to tracks (a) latency "), std::string::npos) << j.reasons.front();

  run = run_with_a_change(20);
  skip_job(run, kLidarStage, 3);  // what it would have published is used behind the change
  const Judgement across = judge(run);
  EXPECT_EQ(across.outcome, Outcome::kPass);
  bool seen = false;
  for (const ChainJudgement& part : across.chains) {
    for (const QuantityJudgement& quantity : part.quantities) seen = seen || quantity.mostly_void();
  }
  EXPECT_TRUE(seen) << "nothing of the change is mostly void: the premise is gone";
  for (const Requirement& one : across.requirements) EXPECT_EQ(one.outcome, Outcome::kPass) << one.group << one.name;
}

TEST(Verdict, AcrossAModeWithoutTheChainNothingIsJudged) {
  RunData run = run_with_a_change(8);
  run.modes.push_back(run.modes[0]);
  run.modes[2].name = "c";
  run.modes[1].schedule.bounds.clear();
  run.modes[1].seams.clear();
  sched::ModeChange change = run.dispatch.changes[0];
  change.hyperperiod = 5;
  change.begin = TableTime{5 * run.problem.hyperperiod.ns};
  change.from = 1;
  change.to = 2;
  run.dispatch.changes.push_back(change);
  for (sched::JobRecord& record : run.records) record.mode = record.hyperperiod >= 5 ? 2 : record.mode;
  const Judgement judgement = judge(run);
  EXPECT_EQ(judgement.outcome, Outcome::kPass);
  for (const ChainJudgement& part : judgement.chains) {
    EXPECT_TRUE(part.context == "a" || part.context == "c") << part.context;
  }
  EXPECT_LT(judgement.held, judge(run_with_a_change(8)).held);
  EXPECT_GT(judgement.fill, judge(run_with_a_change(8)).fill);
}

TEST(Verdict, FillIsCountedApart) {
  RunData run = synthetic_run(4, false);
  // Sample 0 had arrived before the table began.
  for (const std::uint64_t job : {0U}) {
    record_of(run, kLidarStage, job).inputs[0].arrival_ns -= milliseconds(52).ns;
    record_of(run, kLidarStage, job).inputs[0].capture_ns -= milliseconds(52).ns;
  }
  const Judgement j = judge(run);
  EXPECT_EQ(of(j, 1, Quantity::kLatency).fill, 1U);
  EXPECT_EQ(of(j, 1, Quantity::kLatency).held, 3U);
  EXPECT_EQ(j.violated, 0U);
}

TEST(Verdict, ClockMapErrorEntersEveryFigure) {
  RunData run = synthetic_run(4, false);
  run.sensor_from_table.error = milliseconds(1);
  EXPECT_EQ(of(judge(run), 0, Quantity::kLatency).published_max.ns, 23'800'000);
}

// Sensor 0 has a clock of its own: figures grow by the error of its map, bounds by twice that.
TEST(Verdict, AMappedClockEntersBoundsAndFigures) {
  RunData run = synthetic_run(6, true);
  const Judgement exact = judge(run);
  run.sources[0].stamp.error = microseconds(500);
  const Judgement mapped = judge(run);
  for (std::size_t q = 0; q < sched::kQuantities; ++q) {
    const QuantityJudgement &a = exact.chains[0].quantities[q], &b = mapped.chains[0].quantities[q];
    EXPECT_EQ(*b.bound - *a.bound, milliseconds(1));
    EXPECT_EQ(b.published_max - a.published_max, microseconds(500));
    EXPECT_EQ(b.completed_max - a.completed_max, microseconds(500));
    EXPECT_EQ(*mapped.chains[1].quantities[q].bound, *exact.chains[1].quantities[q].bound);
  }
  EXPECT_EQ(mapped.violated, 0U);
  EXPECT_EQ(mapped.outcome, Outcome::kPass);
}

TEST(Verdict, StampsOfAMappedClockMayMissTheirModelByItsError) {
  RunData run = synthetic_run(6, false);
  record_of(run, kLidarStage, 2).inputs[0].arrival_ns -= 1'400'000;  // 51.6 ms; declared 52 to 54
  run.sources[1].stamp.error = microseconds(500);
  EXPECT_EQ(judge(run).void_count, 0U);
  run.sources[1].stamp.error = microseconds(300);
  EXPECT_EQ(judge(run).void_count, 1U);
}

TEST(Verdict, ALimitWithoutRoomForTheClockMapIsNotJudged) {
  RunData run = synthetic_run(6, true);
  run.sources[0].stamp.error = milliseconds(40);  // bound 24 + 80, limit 100 ms
  const Judgement j = judge(run);
  EXPECT_EQ(j.violated, 0U);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  const Requirement* latency = requirement(j, "chain camera to tracks", "latency");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->outcome, Outcome::kNotJudged);
  EXPECT_NE(latency->detail.find("clock map's error of 40"), std::string::npos) << latency->detail;
  EXPECT_EQ(requirement(j, "chain LiDAR to tracks", "latency")->outcome, Outcome::kPass);
}

TEST(Verdict, TableTimeInvertsTheClockMap) {
  ClockMap<TableDomain, SensorDomain> map;
  map.from_origin = {5};
  map.to_origin = {1'600'000'000'000'000'000};
  for (const std::int64_t rate : {0, 37, -50'000, 123'456}) {
    map.rate_ppb = rate;
    for (const std::int64_t t :
         {std::int64_t{-1'000'000'007}, std::int64_t{0}, std::int64_t{3}, std::int64_t{86'400'000'000'001}}) {
      const TableTime back = table_time(map, map.map_unchecked(TableTime{t}));
      EXPECT_EQ(map.map_unchecked(back).ns, map.map_unchecked(TableTime{t}).ns);
      EXPECT_NEAR(static_cast<double>(back.ns), static_cast<double>(t), 1.0);
    }
  }
}

}  // namespace
}  // namespace takt::pipeline
