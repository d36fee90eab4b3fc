// The tracking operators as kernels: memory, parts, counts and capacities. What they compute is said in
// tests/kernels/reference/tracking_test.cpp and by the stage's tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "kernels/reference/assignment.h"
#include "kernels/tracking.h"
#include "tests/kernels/cpu/operator_calls.h"
#include "tests/kernels/cpu/operator_harness.h"

namespace takt::kernels::cpu {
namespace {

using ::testing::ElementsAre;

template <class Row>
Bytes rows(const std::vector<Row>& values, std::size_t capacity, std::byte behind = std::byte{0xFF}) {
  Bytes bytes(capacity * sizeof(Row), behind);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(Row));
  return bytes;
}
template <class Row>
Bytes row(const Row& value) {
  return rows<Row>({value}, 1);
}

// Whatever lies in the operands, nothing else is touched, and the parts do not matter.
TEST(Tracking, AnyBytesAreOnlyNumbers) {
  std::mt19937 random(5);
  constexpr double kDoubles[] = {0, -0.0, 1, -3, 1e300, -1e300, 4e-320, std::numeric_limits<double>::infinity()};
  constexpr std::int64_t kWhole[] = {0, 1, -1, 7, 1'000'000, kNever, std::numeric_limits<std::int64_t>::max()};
  for (int round = 0; round < 40; ++round) {
    for (const Call& call : tracking_calls()) {
      const OperatorKernel& kernel = *find_operator_kernel(call.id);
      OperandBytes needed;
      ASSERT_EQ(kernel.operand_bytes(call.params.data(), &needed), nullptr);
      std::vector<Bytes> inputs;
      for (int i = 0; i < kernel.inputs; ++i) {
        Bytes bytes(needed.bytes[i]);
        for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
          const std::uint64_t noise = std::uint64_t{random()} << 32 | random();
          const std::uint32_t kind = random() % 4;
          if (kind == 0) std::memcpy(&bytes[at], &kDoubles[random() % std::size(kDoubles)], 8);
          if (kind == 1) std::memcpy(&bytes[at], &kWhole[random() % std::size(kWhole)], 8);
          if (kind == 2) std::memcpy(&bytes[at], &noise, 8);
        }
        inputs.push_back(std::move(bytes));
      }
      std::vector<std::optional<std::int32_t>> counts(kernel.counts);
      constexpr std::int32_t kCounts[] = {0, 1, 3, 5, 100, -4};
      for (auto& count : counts) {
        if (random() % 5 != 0) count = kCounts[random() % std::size(kCounts)];
      }
      run_operator(call.id, call.params, inputs, counts);
    }
  }
}

TrackingParams small() {
  TrackingParams p;
  p.tracks = 4;
  p.objects = 6;
  return p;
}
constexpr std::size_t kState = 20;
using Motion = std::array<double, kState>;
Motion at(double x, double y) {
  Motion m{x, y};
  for (std::size_t i = 0; i < 4; ++i) m[4 + 5 * i] = 1;
  return m;
}
Detection object(double x, double y) {
  Detection d;
  d.x = x;
  d.y = y;
  d.range2 = x * x + y * y;
  d.noise_xx = d.noise_yy = 0.1;
  return d;
}
ListInfo heard(std::int64_t stamp) { return {stamp, 0}; }

TEST(Gate, WhatIsOutsideOrBehindACountIsNotAllowed) {
  const auto out = run_operator(
      KernelId::kGate, small(),
      {rows<Motion>({at(0, 0), at(10, 0)}, 4), rows<Detection>({object(0.5, 0), object(10, 1), object(99, 0)}, 6),
       row(Moment{}), row(heard(5)), row(ListSource{}), row(TrackerModel{})},
      {2, 3});
  const auto cost = values_of<double>(out[0]);
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t o = 0; o < 6; ++o) EXPECT_EQ(cost[6 * t + o] < reference::kNotAllowed, t == o) << t << ", " << o;
  }
}

TEST(Gate, ANobodysListAllowsNothing) {
  const auto out = run_operator(KernelId::kGate, small(),
                                {rows<Motion>({at(0, 0)}, 4), rows<Detection>({object(0, 0)}, 6), row(Moment{}),
                                 row(ListInfo{}), row(ListSource{}), row(TrackerModel{})},
                                {1, 1});
  for (std::size_t o = 0; o < 6; ++o) EXPECT_EQ(values_of<double>(out[0])[o], reference::kNotAllowed);
}

TEST(Assign, RowsBehindTheCountTakeNothing) {
  constexpr double kNo = reference::kNotAllowed;
  std::vector<double> cost(24, kNo);
  cost[0] = 3, cost[1] = 1;  // track 0: objects 0 and 1
  cost[7] = 2;               // track 1: object 1
  cost[12] = -50;            // a row behind the count would like object 0
  const auto out = run_operator(KernelId::kAssign, small(), {rows(cost, 24), row(TrackerModel{})}, {2});
  const auto column = values_of<std::int32_t>(out[0]);
  EXPECT_EQ(column[0], 0);
  EXPECT_EQ(column[1], 1);
}

struct Born {
  std::vector<TrackLife> life;
  std::vector<Motion> motion;
  TrackClock clock;
  std::int32_t count = 0, dropped = 0;
};
Born birth(const TrackingParams& p, const std::vector<Detection>& objects) {
  const auto tracks = static_cast<std::size_t>(p.tracks), capacity = static_cast<std::size_t>(p.objects);
  Moment moment;
  moment.advances = 1;
  const auto out = run_operator(KernelId::kBirth, p,
                                {rows<Motion>({}, tracks), rows<TrackBody>({}, tracks), rows<TrackLife>({}, tracks),
                                 rows<Detection>(objects, capacity), rows<std::int32_t>({}, tracks), row(TrackClock{}),
                                 row(moment), row(heard(77)), row(ListSource{}), row(TrackerModel{}),
                                 rows<Extent>(std::vector<Extent>(kObjectClasses), kObjectClasses)},
                                {0, static_cast<std::int32_t>(objects.size())});
  Born born{values_of<TrackLife>(out[2]), values_of<Motion>(out[0]), values_of<TrackClock>(out[3])[0],
            values_of<std::int32_t>(out[4])[0], values_of<std::int32_t>(out[5])[0]};
  born.life.resize(static_cast<std::size_t>(born.count));
  born.motion.resize(static_cast<std::size_t>(born.count));
  return born;
}

TEST(Birth, NearestFirstAndTheRestIsCounted) {
  const Born born =
      birth(small(), {object(30, 0), object(20, 0), object(-10, 0), object(20, 0.1), object(0, 5), object(40, 0)});
  ASSERT_EQ(born.count, 4);
  EXPECT_EQ(born.dropped, 1) << "of two at one place the farther one is no second track";
  EXPECT_THAT((std::vector<double>{born.motion[0][1], born.motion[1][0], born.motion[2][0], born.motion[3][0]}),
              ElementsAre(5, -10, 20, 30));
  EXPECT_EQ(born.life[3].id, 4);
  EXPECT_EQ(born.clock.next_id, 5);
  EXPECT_EQ(born.clock.time_ns, 77);
}

// Ten times what a list holds, ten times what there is room for.
TEST(Birth, AThousandObjects) {
  TrackingParams p;
  p.tracks = 128;
  p.objects = 1000;
  std::vector<Detection> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(object(3.0 * (i * 7 % 40) - 60, 3.0 * (i * 7 / 40 % 25) - 36));
  const Born born = birth(p, objects);
  EXPECT_EQ(born.count, 128);
  EXPECT_EQ(born.dropped, 872);
  double farthest = 0;
  for (const Motion& m : born.motion) farthest = std::max(farthest, m[0] * m[0] + m[1] * m[1]);
  std::vector<double> ranges;
  for (const Detection& d : objects) ranges.push_back(d.range2);
  std::sort(ranges.begin(), ranges.end());
  EXPECT_EQ(farthest, ranges[127]) << "no nearer object may have been left out for a farther one";
}

TEST(Death, SurvivorsMoveTogether) {
  TrackLife old, fresh, other;
  old.id = 1, old.updated_ns = 0;
  fresh.id = 2, fresh.updated_ns = 990'000'000, fresh.hits = 3, fresh.sensors_now = 1;
  other.id = 5, other.updated_ns = 900'000'000;
  TrackBody body;
  body.log_odds = 3;
  const auto out =
      run_operator(KernelId::kDeath, small(),
                   {rows<Motion>({at(0, 0), at(10, 0), at(20, 0)}, 4), rows<TrackBody>({body, body, body}, 4),
                    rows<TrackLife>({old, fresh, other}, 4), row(std::int64_t{1'000'000'000}), row(TrackerModel{})},
                   {3});
  ASSERT_EQ(values_of<std::int32_t>(out[3])[0], 2);
  const auto life = values_of<TrackLife>(out[2]);
  EXPECT_EQ(life[0].id, 2);
  EXPECT_EQ(life[0].confirmed, 1);
  EXPECT_EQ(life[0].misses, 0);
  EXPECT_EQ(life[1].id, 5);
  EXPECT_EQ(life[1].misses, 1);
  EXPECT_EQ(values_of<Motion>(out[0])[1][0], 20);
}

}  // namespace
}  // namespace takt::kernels::cpu
