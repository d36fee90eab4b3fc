// Plans cut by a guard, and the times of what they were cut into.
#include "runtime/exec/segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "runtime/device/fault.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

using device::FaultDevice;
using test::Floats;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const plan::Plan> four_steps() { return *plan::Plan::parse(test::small_plan().bytes()); }

std::vector<Duration> milliseconds(std::initializer_list<std::int64_t> of) {
  std::vector<Duration> out;
  for (const std::int64_t ms : of) out.push_back({ms * 1'000'000});
  return out;
}
Duration guard(double ms) { return {static_cast<std::int64_t>(ms * 1e6)}; }

TEST(Segments, AreAsFewAsTheGuardAllows) {
  const auto plan = four_steps();
  const std::vector<Duration> steps = milliseconds({2, 3, 4, 1});
  const auto two = cut_into_segments(*plan, steps, guard(5));
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_THAT(two->cuts, ElementsAre(2U));
  EXPECT_EQ(two->longest, guard(5));
  EXPECT_EQ(two->first, 0U);
  EXPECT_EQ(two->last, 1U);
  const auto four = cut_into_segments(*plan, steps, guard(4));
  ASSERT_TRUE(four);
  EXPECT_THAT(four->cuts, ElementsAre(1U, 2U, 3U));
  EXPECT_EQ(four->longest, guard(4));
  EXPECT_EQ(four->first, 2U);
  EXPECT_EQ(four->last, 2U);
  EXPECT_THAT(cut_into_segments(*plan, steps, guard(10))->cuts, IsEmpty());

  const auto none = cut_into_segments(*plan, steps, guard(3.5));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kConfiguration);
  EXPECT_THAT(none.error().message,
              HasSubstr("step 2 (binary_f32) alone takes 4.000 ms, more than the guard of 3.500 ms"));
  EXPECT_FALSE(cut_into_segments(*plan, std::span(steps).first(3), guard(5)));
}

TEST(Segments, ArePredictedByWhatIsLonger) {
  plan::Description d;
  d.steps.resize(3);
  d.steps[0].flops = 8'000'000;      // 4 us at 2000 GFLOP/s
  d.steps[0].bytes_moved = 100'000;  // 1 us at 100 GB/s
  d.steps[1].bytes_moved = 700'000;
  const std::vector<Duration> times = predicted_times(d, {2000, 100, {3'000}});
  EXPECT_THAT(times, ElementsAre(Duration{4'000}, Duration{7'000}, Duration{3'000}));
}

// Against the fewest by trying every way to cut.
TEST(Segments, AreNoMoreThanTheFewest) {
  const auto plan = four_steps();
  std::mt19937 engine(1);
  std::uniform_int_distribution<std::int64_t> time(1, 9);
  for (int i = 0; i < 500; ++i) {
    const std::vector<Duration> steps = milliseconds({time(engine), time(engine), time(engine), time(engine)});
    const Duration limit = guard(static_cast<double>(time(engine)) + 4);
    const auto found = cut_into_segments(*plan, steps, limit);
    std::size_t fewest = SIZE_MAX;
    for (unsigned way = 0; way < 8; ++way) {  // bit k: a cut behind step k
      std::size_t count = 1;
      Duration sum, most;
      for (unsigned k = 0; k < 4; ++k) {
        sum += steps[k];
        most = std::max(most, sum);
        if (k < 3 && (way >> k & 1U) != 0) {
          sum = {};
          ++count;
        }
      }
      if (most <= limit) fewest = std::min(fewest, count);
    }
    ASSERT_EQ(found.has_value(), fewest != SIZE_MAX);
    EXPECT_TRUE(!found || found->cuts.size() + 1 == fewest);
  }
}

TEST(Segments, AreTimedOnADevice) {
  if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  const auto device = FaultDevice::create(device::cpu(), {.polls = 2});
  const std::vector<std::size_t> cuts = {1, 3};
  Placement placement;
  placement.device = device.get();
  placement.segments = cuts;
  const auto session = Session::create(four_steps(), placement);
  ASSERT_TRUE(session) << session.error().message;
  Floats x, y;
  ASSERT_TRUE((*session)->bind_input(0, x.bytes()));
  ASSERT_TRUE((*session)->bind_output(0, y.bytes()));
  const auto times = time_segments(**session, 3);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->size(), 3U);
  for (const Duration time : *times) EXPECT_GE(time.ns, 0);

  device->reject_next();
  const auto told = time_segments(**session, 1);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message, HasSubstr("segment 1 of 3: device refused"));
  ASSERT_TRUE(time_segments(**session, 1));
  device->hold(true);
  const auto lost = time_segments(**session, 1);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kEnvironment);
  EXPECT_THAT(lost.error().message, HasSubstr("segment 1 of 3: its work hangs"));

  const auto on_cpu = Session::create(four_steps());
  ASSERT_TRUE(on_cpu);
  const auto refused = time_segments(**on_cpu, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
}

}  // namespace
}  // namespace takt::exec
