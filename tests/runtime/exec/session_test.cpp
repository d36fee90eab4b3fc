#include "runtime/exec/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/elementary_f32.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

using test::counting_plan;
using test::Floats;
using test::kElements;
using test::small_plan;
using test::SmallPlan;
using testing::HasSubstr;

std::shared_ptr<const plan::Plan> parsed(const SmallPlan& small) {
  auto plan = plan::Plan::parse(small.bytes());
  EXPECT_TRUE(plan) << plan.error().message;
  return *plan;
}

Floats some_input() {
  Floats x;
  for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = 0.1F * static_cast<float>(i - 20);
  return x;
}

float expected(float x, std::int64_t i) {
  const float relu = x < 0 ? 0 : x;
  return (relu + kernels::exp_f32(relu)) * static_cast<float>(i) * 0.25F;
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
};

TEST_F(SessionTest, RunsItsSteps) {
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session) << session.error().message;
  Floats x = some_input(), y;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  ASSERT_TRUE((*session)->ready(1));
  EXPECT_EQ((*session)->run(), 4U);
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_FLOAT_EQ(y.values[i], expected(x.values[i], i)) << i;
  }
}

TEST_F(SessionTest, AnyAdmittedNumberOfPartsGivesTheSameBytes) {
  Floats x = some_input(), once, parts;
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, once.bytes()));
  (*session)->run();
  ASSERT_TRUE((*session)->bind_output(0, parts.bytes()));
  ASSERT_TRUE((*session)->ready(2));
  for (std::size_t step = 0; step < (*session)->steps(); ++step) {
    (*session)->run_step(step, 1, 2);
    (*session)->run_step(step, 0, 2);
  }
  EXPECT_EQ(std::memcmp(once.values, parts.values, sizeof once.values), 0);
  EXPECT_THAT((*session)->ready(3).error().message, HasSubstr("does not admit 3 workers, only 1, 2"));
}

TEST_F(SessionTest, BindingsAreChecked) {
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session);
  Floats x, y;
  EXPECT_THAT((*session)->ready(1).error().message, HasSubstr("input 0 ('x') is not bound"));
  EXPECT_THAT((*session)->bind_input(0, x.bytes().first(252)).error().message,
              HasSubstr("input 0 ('x') needs 256 bytes, it was given 252"));
  alignas(64) std::byte room[512];
  EXPECT_THAT((*session)->bind_input(0, std::span(room).subspan(4)).error().message, HasSubstr("multiple of 64"));
  EXPECT_THAT((*session)->bind_input(1, x.bytes()).error().message, HasSubstr("there is no input 1"));
  EXPECT_THAT((*session)->bind_output(7, x.bytes()).error().message, HasSubstr("there is no output 7"));
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  EXPECT_THAT((*session)->ready(1).error().message, HasSubstr("output 0 ('y') is not bound"));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  EXPECT_TRUE((*session)->ready(1));
}

TEST_F(SessionTest, AnotherMachinesPlanIsRefusedInWords) {
  for (const auto target : kernels::kTargets) {
    const auto session = Session::create(parsed(small_plan(target)));
    if (kernels::unsupported(target) == nullptr) {
      EXPECT_TRUE(session);
      continue;
    }
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, Code::kEnvironment);
    EXPECT_THAT(session.error().message, HasSubstr(kernels::name_of(target)));
    EXPECT_THAT(session.error().message, HasSubstr("compile the model for this machine"));
  }
}

TEST_F(SessionTest, TheArenaMayBeGiven) {
  const auto plan = parsed(small_plan());
  alignas(64) std::byte arena[512] = {};
  EXPECT_FALSE(Session::create(plan, std::span(arena).first(511)));
  EXPECT_FALSE(Session::create(plan, std::span(arena).subspan(4)));
  const auto session = Session::create(plan, arena);
  ASSERT_TRUE(session);
  Floats x = some_input(), y;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  (*session)->run();
  EXPECT_FLOAT_EQ(y.values[50], expected(x.values[50], 50));
  float sum = 0;
  std::memcpy(&sum, arena + 50 * sizeof(float), sizeof sum);
  EXPECT_FLOAT_EQ(sum * 50 * 0.25F, y.values[50]);  // in place of the relu, at offset 0
}

TEST_F(SessionTest, PagesOfAGivenArenaAreTouchedAndKept) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<std::byte> arena(static_cast<std::byte*>(memory), page);
  unsigned char resident = 0;
  ASSERT_EQ(::mincore(memory, page, &resident), 0);
  ASSERT_EQ(resident & 1, 0);
  ASSERT_TRUE(Session::create(parsed(small_plan()), arena));
  ASSERT_EQ(::mincore(memory, page, &resident), 0);
  EXPECT_EQ(resident & 1, 1);
  std::ranges::fill(arena, std::byte{0x5a});
  ASSERT_TRUE(Session::create(parsed(small_plan()), arena));
  EXPECT_TRUE(std::ranges::all_of(arena, [](std::byte b) { return b == std::byte{0x5a}; }));
  ::munmap(memory, page);
}

TEST_F(SessionTest, NothingIsAllocatedAfterCreation) {
  if (!memory::guard_available()) GTEST_SKIP() << "counting needs the interposed allocator (not under sanitizers)";
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session);
  Floats x = some_input(), y;
  const std::vector<Duration> worst(4, microseconds(1));
  ASSERT_TRUE((*session)->set_budget(worst, seconds(1)));
  (*session)->enable_profile(true);
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 1000; ++i) {
    if (!(*session)->bind_input(0, x.bytes()) || !(*session)->bind_output(0, y.bytes())) break;
    (*session)->run();
    (*session)->publish();
  }
  const memory::ThreadCounters used = memory::thread_counters() - before;
  EXPECT_EQ(used.allocations, 0U);
  EXPECT_EQ(used.copied_bytes, 0U);
}

TEST_F(SessionTest, AStepThatWouldNotFitDoesNotStart) {
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session);
  Floats x = some_input(), y;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  EXPECT_TRUE((*session)->may_start(0, seconds(100)));  // no limit yet
  const std::vector<Duration> worst = {milliseconds(1), milliseconds(2), seconds(100), milliseconds(1)};
  ASSERT_TRUE((*session)->set_budget(worst, seconds(50)));
  EXPECT_TRUE((*session)->may_start(0, seconds(50) - milliseconds(1)));
  EXPECT_FALSE((*session)->may_start(0, seconds(50)));
  EXPECT_EQ((*session)->run(), 2U);  // the third never fits
  EXPECT_EQ((*session)->set_budget(std::span(worst).first(3), seconds(1)).error().code, Code::kConfiguration);
  ASSERT_TRUE((*session)->set_budget({}, {}));
  EXPECT_EQ((*session)->run(), 4U);
}

TEST_F(SessionTest, ProfilesEveryStep) {
  const auto session = Session::create(parsed(small_plan()));
  ASSERT_TRUE(session);
  Floats x = some_input(), y;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  (*session)->run();
  EXPECT_EQ((*session)->profile(0).count, 0U);
  (*session)->enable_profile(true);
  const auto runs = StepProfile::kRunsPerBlock * 3;
  for (std::uint32_t i = 0; i < runs; ++i) (*session)->run();
  for (std::size_t step = 0; step < 4; ++step) {
    const StepProfile p = (*session)->profile(step);
    EXPECT_EQ(p.count, runs);
    EXPECT_GT(p.minimum_ns, 0);
    EXPECT_GE(p.maximum_ns, p.minimum_ns);
    std::int64_t most = 0;
    for (const std::int64_t block : p.recent_maximum_ns) most = std::max(most, block);
    EXPECT_EQ(most, p.maximum_ns);  // only three blocks: none has been forgotten
    EXPECT_EQ(p.recent_maximum_ns[3], 0);
  }
}

TEST_F(SessionTest, StateStaysAtItsLastPublishedHalf) {
  const auto session = Session::create(parsed(counting_plan()));
  ASSERT_TRUE(session) << session.error().message;
  Floats x, y;
  for (float& v : x.values) v = 1;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  (*session)->run();
  EXPECT_EQ(y.values[3], 6.0F);
  (*session)->publish();
  (*session)->run();
  EXPECT_EQ(y.values[3], 7.0F);
  // Not published: the next job begins where the last published one ended.
  (*session)->run();
  EXPECT_EQ(y.values[3], 7.0F);
  (*session)->publish();
  float published = 0;
  std::memcpy(&published, (*session)->state(0).data(), sizeof published);
  EXPECT_EQ(published, 7.0F);
}

TEST_F(SessionTest, SessionsOfOnePlanShareNothingButWeights) {
  const auto plan = parsed(counting_plan());
  const auto a = Session::create(plan), b = Session::create(plan);
  ASSERT_TRUE(a && b);
  Floats x, y;
  for (float& v : x.values) v = 1;
  for (const auto* session : {&a, &b}) {
    ASSERT_TRUE((**session)->bind_input(0, x.bytes()));
    ASSERT_TRUE((**session)->bind_output(0, y.bytes()));
  }
  (*a)->run();
  (*a)->publish();
  (*b)->run();
  EXPECT_EQ(y.values[0], 6.0F);
}

}  // namespace
}  // namespace takt::exec
