// Sessions on devices that work beside the caller: segments, quarantine, loss, shared weights and state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

#include "kernels/reference/elementary_f32.h"
#include "runtime/device/fault.h"
#include "runtime/device/null.h"
#include "runtime/exec/session.h"
#include "runtime/memory/alloc_guard.h"
#include "runtime/memory/process.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

using device::FaultDevice;
using device::Progress;
using test::counting_plan;
using test::Floats;
using test::kElements;
using test::small_plan;
using testing::HasSubstr;

std::shared_ptr<const plan::Plan> parsed(const test::SmallPlan& small) {
  auto plan = plan::Plan::parse(small.bytes());
  EXPECT_TRUE(plan) << plan.error().message;
  return *plan;
}

// One session and what it is bound to.
struct Job {
  std::unique_ptr<Session> session;
  Floats x, y;
  explicit Job(std::shared_ptr<const plan::Plan> plan, const Placement& placement) {
    auto created = Session::create(std::move(plan), placement);
    EXPECT_TRUE(created) << created.error().message;
    if (!created) return;
    session = *std::move(created);
    for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = 1;
    EXPECT_TRUE(session->bind_input(0, x.bytes()));
    EXPECT_TRUE(session->bind_output(0, y.bytes()));
  }
};

Placement on(device::Device& device) {
  Placement placement;
  placement.device = &device;
  return placement;
}

class DeviceSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
};

TEST_F(DeviceSessionTest, SegmentsInOrderAreTheWholeJob) {
  const auto device = FaultDevice::create(device::cpu(), {.polls = 2});
  const auto stream = *device->stream(0, 0);
  const std::size_t cuts[] = {1, 3};
  Placement placement = on(*device);
  placement.segments = cuts;
  Job job(parsed(small_plan()), placement);
  ASSERT_EQ(job.session->segments(), 3U);
  EXPECT_EQ(job.session->poll(), Progress::kDone);
  EXPECT_EQ(job.session->submit(*stream, 1).error().code, Code::kUsage);
  for (int run = 0; run < 2; ++run) {
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(job.session->submit(*stream, i));
    EXPECT_EQ(job.session->submit(*stream, 3).error().code, Code::kUsage);
    EXPECT_EQ(job.session->poll(), Progress::kPending);
    EXPECT_EQ(job.y.values[3], 0);
    while (job.session->poll() == Progress::kPending) continue;
    EXPECT_EQ(job.session->poll(), Progress::kDone);
    EXPECT_FLOAT_EQ(job.y.values[3], (1 + kernels::exp_f32(1)) * 0.75F);
    job.y = {};
  }
  EXPECT_EQ(job.session->run(), 4U);  // by a stream of its own
  EXPECT_FLOAT_EQ(job.y.values[3], (1 + kernels::exp_f32(1)) * 0.75F);
}

TEST_F(DeviceSessionTest, WhatIsInFlightIsInQuarantine) {
  const auto device = FaultDevice::create(device::cpu(), {});
  const auto stream = *device->stream(0, 0);
  Job job(parsed(counting_plan()), on(*device));
  ASSERT_TRUE(job.session->submit(*stream, 0));
  device->hold(true);
  EXPECT_EQ(job.session->poll(), Progress::kPending);
  // Chunks, arena and state stay as they are until the event completes.
  EXPECT_EQ(job.session->bind_input(0, job.x.bytes()).error().code, Code::kUsage);
  EXPECT_THAT(job.session->bind_output(0, job.y.bytes()).error().message, HasSubstr("is in use by a job in flight"));
  EXPECT_THAT(job.session->submit(*stream, 0).error().message, HasSubstr("a job is in flight"));
  job.session->publish();
  float total = 0;
  std::memcpy(&total, job.session->state(0).data(), sizeof total);
  EXPECT_EQ(total, 5);  // the late job has published nothing
  device->hold(false);
  EXPECT_EQ(job.session->poll(), Progress::kDone);
  EXPECT_EQ(job.y.values[0], 6);
  job.session->publish();
  std::memcpy(&total, job.session->state(0).data(), sizeof total);
  EXPECT_EQ(total, 6);
  EXPECT_TRUE(job.session->bind_input(0, job.x.bytes()));
}

TEST_F(DeviceSessionTest, ALostDeviceKeepsItsQuarantineAndLastState) {
  const auto device = FaultDevice::create(device::cpu(), {});
  const auto stream = *device->stream(0, 0);
  const auto plan = parsed(counting_plan());
  Job job(plan, on(*device));
  ASSERT_TRUE(job.session->submit(*stream, 0));
  EXPECT_EQ(job.session->poll(), Progress::kDone);
  job.session->publish();
  ASSERT_TRUE(job.session->submit(*stream, 0));
  device->lose("its context is poisoned");
  EXPECT_EQ(job.session->poll(), Progress::kLost);
  EXPECT_EQ(job.session->poll(), Progress::kLost);
  EXPECT_EQ(job.session->bind_input(0, job.x.bytes()).error().code, Code::kUsage);
  job.session->publish();
  float total = 0;
  std::memcpy(&total, job.session->state(0).data(), sizeof total);
  EXPECT_EQ(total, 6);
  EXPECT_EQ(job.session->run(), 0U);
  const auto another = Session::create(plan, on(*device));
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, Code::kEnvironment);
  EXPECT_THAT(another.error().message, HasSubstr("its context is poisoned"));
  // The stage goes on elsewhere.
  Job elsewhere(plan, on(device::cpu()));
  EXPECT_EQ(elsewhere.session->run(), elsewhere.session->steps());
}

TEST_F(DeviceSessionTest, ARefusalAtCreationLeavesNothingBehind) {
  const auto plan = parsed(counting_plan());
  std::uint64_t made = 0;
  for (std::uint64_t n = 1; n < 100; ++n) {
    const auto device = FaultDevice::create(device::cpu(), {.refuse = n});
    const auto session = Session::create(plan, on(*device));
    if (session) break;
    EXPECT_EQ(session.error().code, Code::kEnvironment);
    ++made;
  }
  EXPECT_GE(made, 6U);  // arena, state with its first value, weights, recording, events
  EXPECT_LT(made, 50U);
}

TEST_F(DeviceSessionTest, SubmittingAllocatesNothing) {
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted here";
  const auto device = FaultDevice::create(device::cpu(), {.polls = 1});
  const auto stream = *device->stream(0, 0);
  Job job(parsed(counting_plan()), on(*device));
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(job.session->bind_input(0, job.x.bytes()));
    ASSERT_TRUE(job.session->submit(*stream, 0));
    while (job.session->poll() == Progress::kPending) continue;
    job.session->publish();
  }
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
  EXPECT_EQ(job.y.values[0], 15);
}

TEST_F(DeviceSessionTest, TheNullDeviceRunsNothing) {
  Job job(parsed(small_plan(kernels::Target::kNeon)), on(device::null()));
  ASSERT_NE(job.session, nullptr);
  EXPECT_EQ(job.session->run(), 4U);
  EXPECT_EQ(job.y.values[3], 0);
}

TEST_F(DeviceSessionTest, SessionsOfOnePlanShareItsWeights) {
  // By address, and by resident memory: a plan of 32 MB costs each further session pages of its own size only.
  test::SmallPlan small = small_plan();
  constexpr std::int64_t kMany = std::int64_t{8} << 20;
  constexpr std::uint64_t kBytes = kMany * sizeof(float);
  plan::Description& d = small.description;
  d.sections.push_back({0, kBytes, 0});
  small.sections.emplace_back(kBytes, std::byte{1});
  // A window of the large section stands in for the small one.
  d.tensors[4].slot = 1;
  d.tensors[4].offset = kBytes - d.tensors[4].bytes;
  d.sections[0] = {};
  const auto plan = parsed(small);
  const auto first = Session::create(plan);
  ASSERT_TRUE(first);
  const std::uint64_t before = memory::resident_bytes();
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 8; ++i) {
    auto session = Session::create(plan);
    ASSERT_TRUE(session);
    EXPECT_EQ((*session)->tensor(4).data(), (*first)->tensor(4).data());
    EXPECT_NE((*session)->tensor(1).data(), (*first)->tensor(1).data());
    sessions.push_back(*std::move(session));
  }
  EXPECT_EQ((*first)->tensor(4).data(), plan->section(1).data() + d.tensors[4].offset);
  if (before > 0) {
    EXPECT_LT(memory::resident_bytes(), before + kBytes / 4);
  }
}

TEST_F(DeviceSessionTest, SessionsOfAStageShareItsState) {
  const auto plan = parsed(counting_plan());
  Placement placement;
  placement.state = *StateStore::create(plan, device::cpu());
  Job a(plan, placement);
  Job b(plan, placement);
  a.session->run();
  a.session->publish();
  EXPECT_EQ(a.y.values[0], 6);
  b.session->refresh_state();
  b.session->run();
  EXPECT_EQ(b.y.values[0], 7);
  b.session->run();  // given up: not published
  a.session->refresh_state();
  a.session->run();
  EXPECT_EQ(a.y.values[0], 7);
  test::SmallPlan other = counting_plan();
  other.description.states[0].name = "sum";
  const auto refused = Session::create(parsed(other), placement);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  EXPECT_THAT(refused.error().message, HasSubstr("state 0 ('total') is called 'sum'"));
  EXPECT_THAT(Session::create(parsed(small_plan()), placement).error().message,
              HasSubstr("0 state tensors instead of 1"));
}

}  // namespace
}  // namespace takt::exec
