// takt's operators on points against the plain functions of sensors/lidar and against properties.
#include "kernels/reference/points.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sensors/lidar/crop.h"
#include "sensors/lidar/deskew.h"
#include "sensors/messages/messages.h"

namespace takt::kernels::reference {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_points(int n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> place(-60, 60), unit(0, 1);
  std::vector<float> out;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < 3; ++c) out.push_back(place(engine));
    out.push_back(unit(engine));
    out.push_back(unit(engine) * -0.1F);
  }
  return out;
}

// A payload as sensors write it.
std::vector<std::uint64_t> payload_of(const std::vector<float>& points, std::uint32_t capacity) {
  std::vector<std::uint64_t> bytes(sensors::PointCloud::bytes_for(capacity) / 8 + 1);
  auto* const cloud = new (bytes.data()) sensors::PointCloud;
  cloud->capacity = capacity;
  cloud->count = static_cast<std::uint32_t>(points.size() / 5);
  for (std::uint32_t i = 0; i < cloud->count; ++i) {
    cloud->x()[i] = points[5 * i];
    cloud->y()[i] = points[5 * i + 1];
    cloud->z()[i] = points[5 * i + 2];
    cloud->intensity()[i] = points[5 * i + 3];
    cloud->time_ns()[i] = static_cast<std::int32_t>(points[5 * i + 4] * 1e9F);
  }
  return bytes;
}
sensors::PointCloud& cloud_in(std::vector<std::uint64_t>& payload) {
  return *reinterpret_cast<sensors::PointCloud*>(payload.data());
}

TEST(Cloud, ReadsWhatSensorsWrite) {
  const std::vector<float> points = random_points(37, 1);
  std::vector<std::uint64_t> payload = payload_of(points, 50);
  for (const int parts : {1, 2, 3}) {
    std::vector<float> rows(50 * 5, kNaN);
    std::int32_t count = -1;
    for (int part = 0; part < parts; ++part) {
      cloud({50}, reinterpret_cast<const std::byte*>(payload.data()), rows.data(), &count, part, parts);
    }
    ASSERT_EQ(count, 37);
    for (int i = 0; i < 37; ++i) {
      for (int c = 0; c < 4; ++c) EXPECT_EQ(rows[5 * i + c], points[5 * i + c]);
      EXPECT_NEAR(rows[5 * i + 4], points[5 * i + 4], 1e-8);
    }
    EXPECT_TRUE(std::isnan(rows[37 * 5]));  // behind the count nothing is written
  }
}

TEST(Cloud, HostileHeadersAreClampedOrEmpty) {
  std::vector<std::uint64_t> payload = payload_of(random_points(8, 2), 8);
  std::vector<float> rows(8 * 5);
  std::int32_t count = -1;
  cloud_in(payload).count = 0xffffffff;
  cloud({8}, reinterpret_cast<const std::byte*>(payload.data()), rows.data(), &count, 0, 1);
  EXPECT_EQ(count, 8);
  cloud_in(payload).capacity = 0xffffffff;  // arrays would lie elsewhere
  cloud({8}, reinterpret_cast<const std::byte*>(payload.data()), rows.data(), &count, 0, 1);
  EXPECT_EQ(count, 0);
}

struct Motion {
  std::vector<double> rows;  // time, position, quaternion
  std::vector<sensors::StampedPose> poses;
};
Motion turning(int n, double step_s, double origin = 0) {
  Motion m;
  for (int i = 0; i < n; ++i) {
    const double t = -0.1 + i * step_s, yaw = 0.9 * t + 0.4, pitch = 0.1 * t;
    const std::array<double, 4> q{std::cos(yaw / 2) * std::cos(pitch / 2), -std::sin(yaw / 2) * std::sin(pitch / 2),
                                  std::cos(yaw / 2) * std::sin(pitch / 2), std::sin(yaw / 2) * std::cos(pitch / 2)};
    const std::array<double, 3> at{origin + 20 * t, origin + 3 * t, 0.2 * t};
    m.rows.insert(m.rows.end(), {t, at[0], at[1], at[2], q[0], q[1], q[2], q[3]});
    m.poses.push_back({SensorTime{static_cast<std::int64_t>(std::llround(t * 1e9))}, at, q});
  }
  return m;
}
constexpr std::array<double, 12> kMount{0, -1, 0, 0.9, 1, 0, 0, 0.1, 0, 0, 1, 1.7};  // x right, y forward

struct Deskewed {
  std::vector<float> points;
  std::int32_t held = -1;
};
Deskewed run_deskew(const std::vector<float>& points, const std::vector<double>& poses, int parts = 1) {
  const auto n = static_cast<std::int64_t>(points.size() / 5), k = static_cast<std::int64_t>(poses.size() / 8);
  const DeskewParams p{n, std::max<std::int64_t>(k, 1), 0.05};
  EXPECT_EQ(invalid(p), nullptr);
  Deskewed out{std::vector<float>(points.size()), -1};
  const auto count = static_cast<std::int32_t>(n), pose_count = static_cast<std::int32_t>(k);
  std::vector<double> room = poses;
  room.resize(static_cast<std::size_t>(p.poses) * 8, std::numeric_limits<double>::quiet_NaN());
  for (int part = 0; part < parts; ++part) {
    deskew(p, points.data(), &count, room.data(), &pose_count, kMount.data(), out.points.data(), &out.held, part,
           parts);
  }
  return out;
}

// The reference of sensors/lidar works in the sensor's frame, pose by pose, by other formulas.
TEST(Deskew, IsTheReferenceOfSensors) {
  for (const double step : {0.1, 0.05, 0.013}) {
    const Motion motion = turning(static_cast<int>(0.1 / step) + 2, step);
    const std::vector<float> points = random_points(500, 3);
    std::vector<std::uint64_t> payload = payload_of(points, 500);
    sensors::DeskewSetup setup;
    setup.vehicle_from_sensor.rotation = {0, -1, 0, 1, 0, 0, 0, 0, 1};
    setup.vehicle_from_sensor.translation = {0.9, 0.1, 1.7};
    setup.extrapolate = milliseconds(50);
    ASSERT_TRUE(sensors::deskew(cloud_in(payload), SensorTime{0}, setup, motion.poses, SensorTime{0}).has_value());
    const Deskewed out = run_deskew(points, motion.rows);
    EXPECT_EQ(out.held, 0);
    for (std::uint32_t i = 0; i < 500; ++i) {
      const auto expected = setup.vehicle_from_sensor.apply(
          {cloud_in(payload).x()[i], cloud_in(payload).y()[i], cloud_in(payload).z()[i]});
      for (std::size_t c = 0; c < 3; ++c) ASSERT_NEAR(out.points[5 * i + c], expected[c], 3e-5) << step << " " << i;
      EXPECT_EQ(out.points[5 * i + 3], points[5 * i + 3]);
      EXPECT_EQ(out.points[5 * i + 4], points[5 * i + 4]);
    }
  }
}

TEST(Deskew, IsTheSameForAnyNumberOfPartsAndFarFromTheOrigin) {
  const std::vector<float> points = random_points(301, 4);
  const Motion near = turning(3, 0.05), far = turning(3, 0.05, 4.2e5);
  const Deskewed one = run_deskew(points, near.rows);
  for (const int parts : {2, 3, 7}) EXPECT_EQ(run_deskew(points, near.rows, parts).points, one.points);
  const Deskewed moved = run_deskew(points, far.rows);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_NEAR(moved.points[i], one.points[i], 1e-5);
}

TEST(Deskew, WhatPosesDoNotReachIsHeldAtTheirEnd) {
  std::vector<float> points = random_points(4, 5);
  points[4] = -0.30F;  // poses from -0.1 on, extrapolated by 0.05
  points[9] = -0.149F;
  points[14] = kNaN;
  points[19] = -0.12F;
  const Motion motion = turning(3, 0.05);
  const Deskewed out = run_deskew(points, motion.rows);
  EXPECT_EQ(out.held, 2);
  std::vector<float> ended = points;
  ended[4] = ended[14] = -0.15F;
  const Deskewed expected = run_deskew(ended, motion.rows);
  for (const std::size_t i : {0, 1, 2, 10, 11, 12}) EXPECT_NEAR(out.points[i], expected.points[i], 1e-5);
}

TEST(Deskew, PosesThatAreNoneEndTheList) {
  const std::vector<float> points = random_points(20, 6);
  const Motion good = turning(3, 0.05);
  for (const int broken : {0, 1}) {
    std::vector<double> rows = good.rows;
    rows.insert(rows.end(), rows.end() - 8, rows.end());
    rows[24] = broken == 0 ? rows[16] : 0.5;  // not later; or later with a rotation of no length
    for (int i = 28; i < 32 && broken == 1; ++i) rows[static_cast<std::size_t>(i)] = 0;
    EXPECT_EQ(run_deskew(points, rows).points, run_deskew(points, good.rows).points);
  }
  const Deskewed still = run_deskew(points, {});
  EXPECT_EQ(still.held, 0);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(still.points[5 * i], static_cast<float>(-double{points[5 * i + 1]} + 0.9));
    EXPECT_EQ(still.points[5 * i + 1], static_cast<float>(double{points[5 * i]} + 0.1));
  }
}

struct Cropped {
  std::vector<float> points;
  std::array<std::int32_t, 4> rejected{};
  std::int32_t dropped = -1, kept = -1;
};
CropParams around(std::int64_t n, std::int64_t out) {
  CropParams p;
  p.capacity = n;
  p.capacity_out = out;
  std::fill_n(p.min, 3, -40.0F);
  std::fill_n(p.max, 3, 40.0F);
  p.ego_min[0] = p.ego_min[1] = p.ego_min[2] = -5;
  p.ego_max[0] = p.ego_max[1] = p.ego_max[2] = 5;
  p.range_min = 1;
  p.range_max = 50;
  return p;
}
Cropped run_crop(const CropParams& p, const std::vector<float>& points) {
  EXPECT_EQ(invalid(p), nullptr);
  Cropped out{std::vector<float>(static_cast<std::size_t>(p.capacity_out) * 5, kNaN), {}, -1, -1};
  const auto count = static_cast<std::int32_t>(points.size() / 5);
  crop(p, points.data(), &count, out.points.data(), out.rejected.data(), &out.dropped, &out.kept);
  return out;
}

TEST(Crop, IsTheReferenceOfSensors) {
  std::vector<float> points = random_points(2000, 7);
  for (const std::size_t i : {5, 25, 105}) points[i] = i == 25 ? kInf : kNaN;
  std::vector<std::uint64_t> payload = payload_of(points, 2000);
  sensors::CropRule rule;
  rule.range_min_m = 1;
  rule.range_max_m = 50;
  rule.region = sensors::Box3{{-40, -40, -40}, {40, 40, 40}};
  rule.ego = sensors::Box3{{-5, -5, -5}, {5, 5, 5}};
  const sensors::CropCount expected = sensors::crop(cloud_in(payload), rule);
  const Cropped out = run_crop(around(2000, 2000), points);
  EXPECT_EQ(out.rejected, (std::array<std::int32_t, 4>{
                              static_cast<std::int32_t>(expected.invalid), static_cast<std::int32_t>(expected.range),
                              static_cast<std::int32_t>(expected.region), static_cast<std::int32_t>(expected.ego)}));
  EXPECT_EQ(expected.invalid, 3U);
  EXPECT_EQ(out.dropped, 0);
  ASSERT_EQ(out.kept, static_cast<std::int32_t>(expected.kept));
  for (std::uint32_t i = 0; i < expected.kept; ++i) ASSERT_EQ(out.points[5 * i], cloud_in(payload).x()[i]);
  const Cropped few = run_crop(around(2000, 100), points);
  EXPECT_EQ(few.kept, 100);
  EXPECT_EQ(few.dropped, out.kept - 100);
  EXPECT_TRUE(std::equal(few.points.begin(), few.points.end(), out.points.begin()));  // the last are dropped
}

TEST(Crop, LimitsAreHalfOpen) {
  const float below = std::nextafter(40.0F, 0.0F);
  std::vector<float> points{-40, 0, 0, 1, 0, 40, 0, 0, 1, 0, below, 0, 0, 1, 0, 5, 0, 0, 1, 0, -5, 0, 0, 1, 0};
  const Cropped out = run_crop(around(5, 5), points);
  EXPECT_EQ(out.kept, 3);
  EXPECT_EQ(out.rejected, (std::array<std::int32_t, 4>{0, 0, 1, 1}));
}

// One stage's memory over several jobs.
class History {
 public:
  explicit History(const SweepsParams& p) : p_(p) {
    EXPECT_EQ(invalid(p), nullptr);
    for (auto* half : {&now_, &next_}) {
      half->past.assign(static_cast<std::size_t>(p.history * p.capacity * 4), 0);
      half->sweeps.assign(static_cast<std::size_t>(p.history * 2), 0);
      half->poses.assign(static_cast<std::size_t>(p.history * 7), 0);
    }
  }
  std::vector<float> out;
  std::int32_t count = -1, dropped = -1, forgotten = -1;

  void run(const std::vector<float>& points, std::int64_t stamp, const std::vector<double>& pose, int parts = 1) {
    out.assign(static_cast<std::size_t>(p_.capacity_out) * 5, kNaN);
    std::fill(next_.past.begin(), next_.past.end(), kNaN);  // behind its count a sweep may hold anything
    const auto n = static_cast<std::int32_t>(points.size() / 5);
    SweepsOperands o{points.data(),
                     &n,
                     &stamp,
                     pose.data(),
                     now_.past.data(),
                     now_.sweeps.data(),
                     now_.poses.data(),
                     out.data(),
                     next_.past.data(),
                     next_.sweeps.data(),
                     next_.poses.data(),
                     &forgotten,
                     &dropped,
                     &count};
    for (int part = 0; part < parts; ++part) sweeps(p_, o, part, parts);
    std::swap(now_, next_);
    ASSERT_LE(count, p_.capacity_out);
    out.resize(static_cast<std::size_t>(count) * 5);
  }

 private:
  struct Half {
    std::vector<float> past;
    std::vector<std::int64_t> sweeps;
    std::vector<double> poses;
  };
  SweepsParams p_;
  Half now_, next_;
};
constexpr std::int64_t kTenth = 100'000'000;
std::vector<double> pose_at(double x, double yaw) { return {x, 0, 0, std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)}; }
std::vector<float> at(float x, float y) { return {x, y, 0.5F, 0.25F, -0.01F}; }

TEST(Sweeps, AStandingThingStaysWhileTheVehicleMoves) {
  for (const int parts : {1, 2}) {
    History h({4, 3, 20, 400'000'000, 150'000'000});
    // The vehicle drives 1 m a sweep towards something at x = 30, then turns by 90 degrees.
    h.run(at(30, 0), 0, pose_at(0, 0), parts);
    EXPECT_EQ(h.count, 1);
    h.run(at(29, 0), kTenth, pose_at(1, 0), parts);
    ASSERT_EQ(h.count, 2);
    EXPECT_NEAR(h.out[5], 29, 1e-5);
    EXPECT_FLOAT_EQ(h.out[9], 0.1F);
    EXPECT_EQ(h.out[4], 0);
    h.run(at(0, -28), 2 * kTenth, pose_at(2, 1.5707963267948966), parts);
    ASSERT_EQ(h.count, 3);
    for (int s = 0; s < 3; ++s) {
      EXPECT_NEAR(h.out[static_cast<std::size_t>(5 * s)], 0, 1e-5);
      EXPECT_NEAR(h.out[static_cast<std::size_t>(5 * s + 1)], -28, 1e-5);
      EXPECT_EQ(h.out[static_cast<std::size_t>(5 * s + 3)], 0.25F);
      EXPECT_NEAR(h.out[static_cast<std::size_t>(5 * s + 4)], 0.1 * s, 1e-6);
    }
    EXPECT_EQ(h.forgotten, 0);
  }
}

TEST(Sweeps, HistoryEndsAtAGapAndAtAJumpBack) {
  History h({4, 3, 20, 400'000'000, 150'000'000});
  h.run(at(1, 0), 0, pose_at(0, 0));
  h.run(at(2, 0), kTenth, pose_at(0, 0));
  h.run(at(3, 0), 5 * kTenth, pose_at(0, 0));  // four tenths of a second without a sweep
  EXPECT_EQ(h.count, 1);
  EXPECT_EQ(h.forgotten, 2);
  h.run(at(4, 0), 6 * kTenth, pose_at(0, 0));
  EXPECT_EQ(h.count, 2);
  h.run(at(5, 0), 6 * kTenth, pose_at(0, 0));  // not later than what is remembered
  EXPECT_EQ(h.count, 1);
  EXPECT_EQ(h.forgotten, 2);
  h.run(at(6, 0), -7 * kTenth, pose_at(0, 0));  // a log that begins again
  EXPECT_EQ(h.count, 1);
  h.run({}, -6 * kTenth, pose_at(0, 0));  // an empty sweep sees the past and leaves none
  EXPECT_EQ(h.count, 1);
  EXPECT_EQ(h.out[0], 6);
  h.run(at(7, 0), std::numeric_limits<std::int64_t>::max(), pose_at(0, 0));
  h.run(at(8, 0), std::numeric_limits<std::int64_t>::min(), pose_at(0, 0));
  EXPECT_EQ(h.count, 1);
  h.run(at(9, 0), std::numeric_limits<std::int64_t>::min() + kTenth, {kNaN, 0, 0, 1, 0, 0, 0});  // no pose
  EXPECT_EQ(h.count, 1);
  EXPECT_EQ(h.forgotten, 1);
}

TEST(Sweeps, DropsTheOldestAndIsTheSameForAnyNumberOfParts) {
  const SweepsParams p{64, 2, 100, 400'000'000, 150'000'000};
  History one(p), three(p);
  for (int s = 0; s < 5; ++s) {
    const std::vector<float> points = random_points(40 + s, static_cast<unsigned>(s));
    one.run(points, s * kTenth, pose_at(s, 0.1 * s));
    three.run(points, s * kTenth, pose_at(s, 0.1 * s), 3);
    EXPECT_EQ(one.out, three.out);
    EXPECT_EQ(one.dropped, three.dropped);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i % 5 != 4) {
        EXPECT_EQ(one.out[i], points[i]);
      }
    }
    const int wanted = s < 2 ? (s == 0 ? 40 : 81) : 3 * 40 + 3 * s - 3;
    EXPECT_EQ(one.dropped, std::max(wanted - 100, 0)) << s;
  }
}

}  // namespace
}  // namespace takt::kernels::reference
