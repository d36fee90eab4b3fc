#include "runtime/exec/swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>
#include <thread>

#include "runtime/device/fault.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

using test::counting_plan;
using test::Floats;
using test::SmallPlan;
using testing::HasSubstr;
using Warmth = SwappableSession::Warmth;

std::shared_ptr<const plan::Plan> parsed(const SmallPlan& small) {
  auto plan = plan::Plan::parse(small.bytes());
  EXPECT_TRUE(plan) << plan.error().message;
  return *plan;
}

// The same state and interface, another graph: total' = max(total, x).
SmallPlan largest_plan() {
  SmallPlan small = counting_plan();
  kernels::cpu::BinaryParams params;
  std::memcpy(&params, small.description.steps[0].params.data(), sizeof params);
  params.op = kernels::cpu::Binary::kMax;
  std::memcpy(small.description.steps[0].params.data(), &params, sizeof params);
  small.description.name = "largest";
  return small;
}

// Long ones: nothing here is about time, and the machine may be busy.
PlanBudget budget_of(const plan::Plan& plan, Duration step = milliseconds(100)) {
  return {std::vector<Duration>(plan.description().steps.size(), step), seconds(10)};
}

SwappableSession::Reserve reserve() {
  SwappableSession::Reserve out;
  out.arena_bytes = 4096;
  out.weight_bytes = 4096;
  out.slot = seconds(20);
  out.maintenance = seconds(10);
  return out;
}

class SwapTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
  std::unique_ptr<SwappableSession> stage(device::Device& device = device::cpu(),
                                          SwappableSession::Reserve limits = reserve()) {
    const auto plan = parsed(counting_plan());
    auto out = SwappableSession::create(plan, budget_of(*plan), std::move(limits), device);
    EXPECT_TRUE(out) << out.error().message;
    x_.values[0] = 1;
    EXPECT_TRUE((*out)->current().bind_input(0, x_.bytes()));
    EXPECT_TRUE((*out)->current().bind_output(0, y_.bytes()));
    return *std::move(out);
  }
  float job(SwappableSession& stage) {
    EXPECT_EQ(stage.current().run(), stage.current().steps());
    stage.current().publish();
    return y_.values[0];
  }
  Floats x_, y_;
};

TEST_F(SwapTest, TheNewPlanGoesOnWithStateAndBindings) {
  const auto stage_ = stage();
  EXPECT_EQ(job(*stage_), 6);
  const auto next = parsed(largest_plan());
  EXPECT_EQ(stage_->warm_up(), Warmth::kNothing);
  EXPECT_FALSE(stage_->commit());
  ASSERT_TRUE(stage_->prepare(next, budget_of(*next)));
  EXPECT_FALSE(stage_->commit());  // cold
  EXPECT_EQ(job(*stage_), 7);      // jobs go on
  EXPECT_EQ(stage_->warm_up(), Warmth::kWarm);
  EXPECT_EQ(job(*stage_), 8);  // the warm-up has touched nothing of theirs
  EXPECT_EQ(stage_->prepare(next, budget_of(*next)).error().code, Code::kUsage);
  ASSERT_TRUE(stage_->commit());
  EXPECT_EQ(stage_->current().plan().description().name, "largest");
  EXPECT_EQ(job(*stage_), 8);  // max(8, 1)
  x_.values[0] = 20;
  EXPECT_EQ(job(*stage_), 20);
  // And back again, in the region that became free.
  const auto first = parsed(counting_plan());
  ASSERT_TRUE(stage_->prepare(first, budget_of(*first)));
  EXPECT_EQ(stage_->warm_up(), Warmth::kWarm);
  ASSERT_TRUE(stage_->commit());
  EXPECT_EQ(job(*stage_), 40);
}

// Two variants of a stage, in two modes. The plan of one is exchanged at the boundary at which the mode of the other
// ends: its first job goes on with what the other one published last, and so the other way round.
TEST_F(SwapTest, IsCommittedAtTheBoundaryOfAChangeOfMode) {
  auto limits = reserve();
  limits.state = *StateStore::create(parsed(counting_plan()), device::cpu());
  const auto full = stage(device::cpu(), limits), lite = stage(device::cpu(), limits);
  const auto run = [&](SwappableSession& variant) {
    variant.current().refresh_state();  // as a stage does that has several
    return job(variant);
  };
  EXPECT_EQ(run(*full), 6);
  EXPECT_EQ(run(*lite), 7);  // the other mode
  const auto next = parsed(largest_plan());
  ASSERT_TRUE(full->prepare(next, budget_of(*next)));
  EXPECT_EQ(run(*lite), 8);
  EXPECT_EQ(full->warm_up(), Warmth::kWarm);
  x_.values[0] = 100;
  EXPECT_EQ(run(*lite), 108);
  x_.values[0] = 1;
  ASSERT_TRUE(full->commit());
  EXPECT_EQ(run(*full), 108);  // max(108, 1)
  EXPECT_EQ(run(*lite), 109);
  EXPECT_EQ(run(*full), 109);
  // A state of another form is another stage's.
  SmallPlan other = counting_plan();
  other.description.states[0].name = "somebody_elses";
  const auto stranger = parsed(other);
  limits.state = *StateStore::create(stranger, device::cpu());
  const auto plan = parsed(counting_plan());
  const auto refused = SwappableSession::create(plan, budget_of(*plan), limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
}

TEST_F(SwapTest, WarmUpComesInPiecesThatFitTheMaintenanceSlot) {
  const auto limits = reserve();
  const auto stage_ = stage();
  const auto next = parsed(largest_plan());
  ASSERT_TRUE(stage_->prepare(next, budget_of(*next, limits.maintenance)));
  EXPECT_EQ(job(*stage_), 6);
  int pieces = 1;
  while (stage_->warm_up() == Warmth::kCold) {
    ++pieces;
    // A job that publishes between two pieces: the next piece may not write over what it published.
    EXPECT_EQ(job(*stage_), 5 + pieces);
    ASSERT_LT(pieces, 100);
  }
  EXPECT_EQ(pieces, 2);  // one step each
  EXPECT_EQ(job(*stage_), 6 + pieces);
  EXPECT_TRUE(stage_->commit());
}

TEST_F(SwapTest, WhatDoesNotFitIsRefusedInWords) {
  const auto stage_ = stage();
  const auto refused = [&](const SmallPlan& small, const PlanBudget* given = nullptr) -> std::string {
    const auto plan = parsed(small);
    const Status status = stage_->prepare(plan, given != nullptr ? *given : budget_of(*plan));
    EXPECT_FALSE(status);
    if (status) return "";
    EXPECT_EQ(status.error().code, Code::kConfiguration);
    return status.error().message;
  };
  SmallPlan other = largest_plan();
  other.sections.emplace_back(8192);
  other.description.sections.push_back({0, 8192, 0});
  EXPECT_THAT(refused(other), HasSubstr("its weights have 8448 bytes, reserved are 4096"));
  other = largest_plan();
  other.description.arena_bytes = 8192;
  other.description.proof = plan::Proof::kOpen;
  EXPECT_THAT(refused(other), HasSubstr("its arena has 8192 bytes, reserved are 4096"));
  other = largest_plan();
  other.description.tensors[0].name = "z";
  EXPECT_THAT(refused(other), HasSubstr("input 0 ('x') is called 'z'"));
  other = largest_plan();
  other.description.tensors[3].shape = {2, {8, 8}};
  EXPECT_THAT(refused(other), HasSubstr("output 0 ('y') has another type or shape"));
  EXPECT_THAT(refused(test::small_plan()), HasSubstr("0 state tensors instead of 1"));
  other = largest_plan();
  other.description.states[0].name = "most";
  EXPECT_THAT(refused(other), HasSubstr("state 0 ('total') is called 'most'"));
  PlanBudget budget;
  EXPECT_THAT(refused(largest_plan(), &budget), HasSubstr("no budget for each of its 2 steps; profile it first"));
  budget = {{milliseconds(1), milliseconds(1)}, seconds(21)};
  EXPECT_THAT(refused(largest_plan(), &budget), HasSubstr("21000.000 ms is longer than the 20000.000 ms"));
  budget = {{milliseconds(1), milliseconds(10001)}, seconds(20)};
  EXPECT_THAT(refused(largest_plan(), &budget),
              HasSubstr("pieces of 10001.000 ms, the maintenance slot has 10000.000 ms"));
  EXPECT_EQ(job(*stage_), 6);  // nothing of it touched the stage
}

TEST_F(SwapTest, TheWorkersOfTheStageAreAdmitted) {
  auto limits = reserve();
  limits.parts = 2;
  const auto plan = parsed(counting_plan());
  const auto made = SwappableSession::create(plan, budget_of(*plan), limits);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("does not admit the 2 workers"));
}

TEST_F(SwapTest, TheScheduleIsAskedLast) {
  auto limits = reserve();
  int asked = 0;
  limits.admits = [&](const plan::Plan& plan, const PlanBudget& budget) -> Status {
    ++asked;
    EXPECT_EQ(budget.job, seconds(10));
    if (plan.description().name == "largest") return fail(Code::kGate, "infeasible with it");
    return {};
  };
  const auto stage_ = stage(device::cpu(), limits);
  EXPECT_EQ(asked, 1);
  const auto next = parsed(largest_plan());
  EXPECT_EQ(stage_->prepare(next, budget_of(*next)).error().message, "infeasible with it");
  EXPECT_EQ(stage_->prepare(next, {}).error().code, Code::kConfiguration);
  EXPECT_EQ(asked, 2);
  const auto same = parsed(counting_plan());
  ASSERT_TRUE(stage_->prepare(same, budget_of(*same)));
  stage_->discard();
  EXPECT_EQ(stage_->warm_up(), Warmth::kNothing);
  ASSERT_TRUE(stage_->prepare(same, budget_of(*same)));
}

TEST_F(SwapTest, TimedPartsAllocateNothing) {
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted here";
  const auto stage_ = stage();
  const auto next = parsed(largest_plan());
  ASSERT_TRUE(stage_->prepare(next, budget_of(*next)));
  const memory::ThreadCounters before = memory::thread_counters();
  EXPECT_EQ(stage_->warm_up(), Warmth::kWarm);
  EXPECT_TRUE(stage_->commit());
  job(*stage_);
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
}

TEST_F(SwapTest, PreparesWhileJobsRun) {
  const auto stage_ = stage();
  std::atomic<bool> ended{false};
  std::thread host([&] {
    for (int i = 0; i < 20; ++i) {
      const auto next = parsed(i % 2 == 0 ? largest_plan() : counting_plan());
      while (!stage_->prepare(next, budget_of(*next))) std::this_thread::yield();
    }
    ended = true;
  });
  float last = 5;
  int commits = 0;
  while (!ended || commits < 20) {
    const float now = job(*stage_);
    ASSERT_GE(now, last);  // no state is lost
    last = now;
    if (stage_->warm_up() == Warmth::kWarm && stage_->commit()) ++commits;
  }
  host.join();
  EXPECT_EQ(commits, 20);
}

TEST_F(SwapTest, OnADeviceBesideTheCaller) {
  const auto device = device::FaultDevice::create(device::cpu(), {.polls = 2});
  const auto stage_ = stage(*device);
  EXPECT_EQ(job(*stage_), 6);
  const auto next = parsed(largest_plan());
  ASSERT_TRUE(stage_->prepare(next, budget_of(*next)));
  int slots = 1;
  while (stage_->warm_up() == Warmth::kCold) ++slots;
  EXPECT_GT(slots, 2);
  const auto stream = *device->stream(0, 0);
  ASSERT_TRUE(stage_->current().submit(*stream, 0));
  EXPECT_FALSE(stage_->commit());  // a job is in flight
  while (stage_->current().poll() == device::Progress::kPending) continue;
  stage_->current().publish();
  ASSERT_TRUE(stage_->commit());
  EXPECT_EQ(job(*stage_), 7);  // max(7, 1)
  ASSERT_TRUE(stage_->prepare(next, budget_of(*next)));
  device->lose("its context is poisoned");
  EXPECT_EQ(stage_->warm_up(), Warmth::kLost);
  stage_->discard();
}

}  // namespace
}  // namespace takt::exec
