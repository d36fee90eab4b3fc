// The stage as the scheduler sees it: chunks in, chunk out, published() or not.
#include "pipeline/stages/fusion_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/reference/elementary.h"
#include "runtime/base/digest.h"
#include "runtime/memory/alloc_guard.h"
#include "sensors/messages/messages.h"
#include "tests/pipeline/stages/fusion_fixture.h"

namespace takt::pipeline {
namespace {

using testing::Aligned;

constexpr std::int64_t kMs = 1'000'000;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A rig of camera, LiDAR, radar and ego, all at the vehicle's origin.
sensors::Rig make_rig() {
  sensors::Rig rig;
  for (auto [name, kind] :
       {std::pair{"camera", sensors::SensorKind::kCamera}, std::pair{"lidar", sensors::SensorKind::kLidar},
        std::pair{"radar", sensors::SensorKind::kRadar}, std::pair{"ego", sensors::SensorKind::kEgo}}) {
    sensors::RigSensor& sensor = rig.sensors.emplace_back();
    sensor.name = name;
    sensor.kind = kind;
  }
  return rig;
}
enum Input : std::size_t { kCamera, kLidar, kRadar, kEgo, kInputs };

Object lidar_car(double x, double y, double yaw = 0) {
  Object o;
  o.x = static_cast<float>(x);
  o.y = static_cast<float>(y);
  o.z = 0.8F;
  o.length = 4.4F;
  o.width = 1.8F;
  o.height = 1.5F;
  o.yaw = static_cast<float>(yaw);
  o.score = 0.9F;
  o.position_variance = 0.04F;
  o.object_class = ObjectClass::kVehicle;
  o.flags = kHasPosition | kHasBox;
  return o;
}

Object radar_hit(double x, double y, double vx, double vy) {
  Object o;
  const double range = std::sqrt(x * x + y * y);
  o.x = static_cast<float>(x);
  o.y = static_cast<float>(y);
  o.ray_x = static_cast<float>(x / range);
  o.ray_y = static_cast<float>(y / range);
  o.range_rate = static_cast<float>((vx * x + vy * y) / range);
  o.position_variance = 0.25F;
  o.flags = kHasPosition | kHasRangeRate;
  return o;
}

Object camera_car(double x, double y) {
  Object o = lidar_car(x, y);
  o.flags = kHasPosition | kHasImageBox;
  o.position_variance = 1;
  return o;
}

// One job after another over chunks in ordinary memory.
class Bench {
 public:
  explicit Bench(const FusionModel& parameters = defaults(), std::shared_ptr<exec::StateStore> state = {}) {
    StageSpec spec;
    spec.type = "fusion_tracker";
    spec.variant = "full";
    spec.name = "fusion";
    spec.rig = &rig_;
    for (std::size_t i = 0; i < kInputs; ++i) {
      StageConnection& c = spec.inputs.emplace_back();
      c.name = rig_.sensors[i].name;
      c.sensor_index = i;
      c.schema = i == kEgo ? std::uint32_t{sensors::kEgoMotionSchema} : std::uint32_t{kObjectListSchema};
      if (i == kEgo) c.sensor = &rig_.sensors[i];
    }
    state_ = state ? std::move(state) : testing::fusion_state(spec, parameters);
    spec.state = state_;
    auto stage = testing::make_fusion(spec, parameters);
    EXPECT_TRUE(stage) << stage.error().message;
    stage_ = *std::move(stage);
    lists_ = std::make_unique<std::array<Aligned<ObjectList>, 3>>();
    output_ = std::make_unique<Aligned<TrackList>>();
  }

  static FusionModel defaults() { return read_fusion_model(YamlDocument::parse("{}", "test").value().root()); }

  void give(std::size_t input, std::int64_t ms, const std::vector<Object>& objects) {
    ObjectList& list = (*lists_)[input].payload;
    list.count = static_cast<std::uint32_t>(objects.size());
    list.sensor = static_cast<std::uint32_t>(input);
    list.stamp_ns = ms * kMs;
    std::copy(objects.begin(), objects.end(), list.objects);
    set(input, ms, reinterpret_cast<const std::byte*>(&list),
        offsetof(ObjectList, objects) + objects.size() * sizeof(Object));
  }
  void give_ego(std::int64_t ms, const sensors::EgoMotion& motion) {
    ego_.payload = motion;
    set(kEgo, ms, reinterpret_cast<const std::byte*>(&ego_), sizeof ego_.payload);
  }
  // The vehicle at a place, with speed forward and yaw rate.
  void give_ego(std::int64_t ms, double x, double y, double yaw, double speed, double rate) {
    sensors::EgoMotion m;
    m.position[0] = x;
    m.position[1] = y;
    m.orientation[0] = kernels::cos(yaw / 2);
    m.orientation[3] = kernels::sin(yaw / 2);
    m.velocity[0] = speed;
    m.angular_velocity[2] = rate;
    give_ego(ms, m);
  }
  void take_away(std::size_t input) { inputs_[input] = {}; }
  void take_all_away() { inputs_ = {}; }

  const TrackList& run(std::int64_t ms, bool publish = true) {
    StageJob job;
    job.number = jobs_++;
    job.now = {ms * kMs};
    job.inputs = inputs_;
    job.output_header = &header;
    job.output = reinterpret_cast<std::byte*>(output_.get());
    header = {};
    for (int phase = 0; phase < stage_->phases(); ++phase) stage_->run(phase, 0, 1, job);
    if (publish) stage_->published();
    repaired = job.repaired;
    return output_->payload;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(output_.get()), header.payload_bytes};
  }
  Stage& stage() { return *stage_; }
  [[nodiscard]] const std::shared_ptr<exec::StateStore>& state() const { return state_; }
  ObjectList& list(std::size_t input) { return (*lists_)[input].payload; }

  transport::ChunkHeader header;
  bool repaired = false;

 private:
  void set(std::size_t input, std::int64_t ms, const std::byte* payload, std::uint64_t size) {
    headers_[input] = {};
    headers_[input].capture_ns = ms * kMs;
    headers_[input].payload_bytes = size;
    headers_[input].sources[input] = {(ms - 10) * kMs, ms * kMs};
    inputs_[input] = {{&headers_[input], payload}, false, false};
  }

  sensors::Rig rig_ = make_rig();
  std::shared_ptr<exec::StateStore> state_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<std::array<Aligned<ObjectList>, 3>> lists_;
  Aligned<sensors::EgoMotion> ego_;
  std::array<transport::ChunkHeader, kInputs> headers_;
  std::array<StageInput, kInputs> inputs_{};
  std::unique_ptr<Aligned<TrackList>> output_;
  std::uint64_t jobs_ = 0;
};

TEST(FusionTracker, ConfirmsCoastsAndEndsATrack) {
  Bench bench;
  bench.give(kLidar, 0, {lidar_car(20, 3)});
  EXPECT_EQ(bench.run(40).count, 0U) << "one detection is no object yet";
  int confirmed_after = 0;
  std::uint32_t id = 0;
  for (int i = 1; i <= 10; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(20, 3)});
    const TrackList& out = bench.run(100 * i + 40);
    if (out.count == 0) continue;
    if (confirmed_after == 0) confirmed_after = i + 1;
    ASSERT_EQ(out.count, 1U);
    if (id == 0) id = out.tracks[0].id;
    EXPECT_EQ(out.tracks[0].id, id);
  }
  EXPECT_GE(confirmed_after, 2);
  EXPECT_LE(confirmed_after, 4);
  {
    const TrackList& out = bench.run(1045);
    ASSERT_EQ(out.count, 1U);
    EXPECT_EQ(out.tracks[0].object_class, ObjectClass::kVehicle);
    EXPECT_NEAR(out.tracks[0].x, 20, 0.05);
    EXPECT_NEAR(out.tracks[0].y, 3, 0.05);
    EXPECT_NEAR(out.tracks[0].length, 4.4, 0.01);
    EXPECT_EQ(out.tracks[0].hits, 11U);
    EXPECT_EQ(out.tracks[0].misses, 1U) << "a repeated list is no update";
    EXPECT_GT(out.tracks[0].score, 0.9F);
  }
  // The object leaves: the track coasts, then ends.
  bench.give(kLidar, 1100, {});
  EXPECT_EQ(bench.run(1140).count, 1U);
  for (int i = 12; i <= 20; ++i) {
    bench.give(kLidar, 100 * i, {});
    bench.run(100 * i + 40);
  }
  EXPECT_EQ(bench.run(2090).count, 0U);
  // It comes back as another one.
  for (int i = 21; i <= 25; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(20, 3)});
    bench.run(100 * i + 40);
  }
  const TrackList& out = bench.run(2590);
  ASSERT_EQ(out.count, 1U);
  EXPECT_GT(out.tracks[0].id, id) << "ids are never reused";
}

TEST(FusionTracker, PredictsToTheInstantOfTheJob) {
  Bench bench;
  for (int i = 0; i <= 15; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(10 + i, 0)});  // 10 m/s
    bench.run(100 * i + 40);
  }
  const TrackList& out = bench.run(1600);
  ASSERT_EQ(out.count, 1U);
  EXPECT_EQ(out.stamp_ns, 1600 * kMs);
  EXPECT_NEAR(out.tracks[0].x, 26, 0.15);
  EXPECT_NEAR(out.tracks[0].vx, 10, 0.5);
  EXPECT_NEAR(out.tracks[0].vy, 0, 0.2);
}

// A parked car and a moving vehicle: the car must stand still over ground however the vehicle drives and turns.
TEST(FusionTracker, EgoMotionDoesNotMoveAParkedCar) {
  Bench bench;
  const double rate = 0.6, radius = 15;
  const double car_x = 2e5 + 25, car_y = -3e5 + 12, car_yaw = 0.3;
  const auto pose = [&](double t) {
    const double a = rate * t;
    return std::array{2e5 + radius * std::sin(a), -3e5 + radius * (1 - std::cos(a)), a};
  };
  const auto seen_at = [&](double t) {
    const auto [px, py, a] = pose(t);
    const double dx = car_x - px, dy = car_y - py;
    return std::array{std::cos(a) * dx + std::sin(a) * dy, -std::sin(a) * dx + std::cos(a) * dy, car_yaw - a};
  };
  for (int i = 0; i <= 20; ++i) {
    const double t = 0.1 * i;
    const auto [px, py, a] = pose(t + 0.03);
    bench.give_ego(100 * i + 30, px, py, a, rate * radius, rate);
    const auto [x, y, yaw] = seen_at(t);
    bench.give(kLidar, 100 * i, {lidar_car(x, y, yaw)});
    const TrackList& out = bench.run(100 * i + 60);
    if (i < 8) continue;
    ASSERT_EQ(out.count, 1U);
    const Track& track = out.tracks[0];
    const auto [ox, oy, oyaw] = seen_at(t + 0.06);
    EXPECT_NEAR(track.x, ox, 0.1);
    EXPECT_NEAR(track.y, oy, 0.1);
    EXPECT_NEAR(std::remainder(track.yaw - oyaw, 3.14159265), 0, 0.02);
    EXPECT_LT(std::hypot(track.vx, track.vy), 0.3F);
    EXPECT_EQ(track.id, 1U);
  }
}

TEST(FusionTracker, WithoutEgoSamplesTheVehicleGoesOn) {
  Bench bench;
  for (int i = 0; i <= 10; ++i) {
    bench.give_ego(100 * i, i, 0, 0, 10, 0);
    bench.give(kLidar, 100 * i, {lidar_car(40 - i, 4)});  // parked
    bench.run(100 * i + 20);
  }
  bench.take_away(kEgo);
  for (int i = 11; i <= 15; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(40 - i, 4)});
    const TrackList& out = bench.run(100 * i + 20);
    ASSERT_EQ(out.count, 1U);
    EXPECT_EQ(out.missing_inputs & (1U << kEgo), 1U << kEgo);
    EXPECT_NEAR(out.tracks[0].x, 40 - i - 0.2, 0.1);
    EXPECT_NEAR(out.tracks[0].vx, 0, 0.3);
  }
}

// A radar gives one speed along its ray at once; LiDAR positions alone need time.
TEST(FusionTracker, RangeRateGivesVelocityFromTheStart) {
  Bench bench;
  for (int i = 0; i <= 4; ++i) {
    bench.give(kRadar, 50 * i, {radar_hit(30 + 0.75 * i, 0, 15, 0)});
    bench.run(50 * i + 10);
  }
  const TrackList& out = bench.run(215);
  ASSERT_EQ(out.count, 1U);
  EXPECT_NEAR(out.tracks[0].vx, 15, 0.5);
  EXPECT_EQ(out.tracks[0].object_class, ObjectClass::kUnknown);
}

TEST(FusionTracker, RangeRateAlongTwoRaysGivesBothComponents) {
  FusionModel parameters = Bench::defaults();
  parameters.sensors[static_cast<std::size_t>(Modality::kRadar)].surface_offset = 0;  // a point passes
  Bench bench(parameters);
  // Two radars would be needed at one instant; one that passes an object sees it along many rays in time.
  double x = 20, y = -10;
  for (int i = 0; i <= 60; ++i) {
    bench.give(kRadar, 50 * i, {radar_hit(x, y, -6, 8)});
    bench.run(50 * i + 5);
    x -= 6 * 0.05;
    y += 8 * 0.05;
  }
  const TrackList& out = bench.run(3050);
  ASSERT_EQ(out.count, 1U);
  EXPECT_NEAR(out.tracks[0].vx, -6, 1.0);
  EXPECT_NEAR(out.tracks[0].vy, 8, 1.0);
}

TEST(FusionTracker, AnySubsetOfInputsWorksAndSaysWhatIsMissing) {
  for (unsigned present = 0; present < 1U << kInputs; ++present) {
    Bench bench;
    const TrackList* out = nullptr;
    for (int i = 0; i <= 12; ++i) {
      bench.take_all_away();
      if (present & 1U << kCamera) bench.give(kCamera, 50 * i, {camera_car(15, 0)});
      if (present & 1U << kLidar) bench.give(kLidar, 50 * i, {lidar_car(15, 0)});
      if (present & 1U << kRadar) bench.give(kRadar, 50 * i, {radar_hit(13.5, 0, 0, 0)});
      if (present & 1U << kEgo) bench.give_ego(50 * i, 0, 0, 0, 0, 0);
      out = &bench.run(50 * i + 10);
      EXPECT_EQ(out->missing_inputs, ~present & ((1U << kInputs) - 1)) << present;
    }
    const bool any_list = (present & 7U) != 0;
    ASSERT_EQ(out->count, any_list ? 1U : 0U) << "inputs " << present;
    if (any_list) {
      EXPECT_NEAR(out->tracks[0].x, 15, 1.5) << present;
      EXPECT_EQ(out->tracks[0].sensors, present & 7U);
    }
  }
}

TEST(FusionTracker, RepeatedListsUpdateNothing) {
  Bench twice, once;
  for (int i = 0; i <= 10; ++i) {
    for (Bench* bench : {&twice, &once}) {
      bench->give(kLidar, 100 * i, {lidar_car(20 + 0.5 * i, 0)});
      bench->run(100 * i + 20);
    }
    const TrackList& out = twice.run(100 * i + 70);  // the same chunk again
    EXPECT_EQ(out.repeat_inputs, 1U << kLidar);
    once.take_away(kLidar);
    EXPECT_EQ(once.run(100 * i + 70).repeat_inputs, 0U);
  }
  ASSERT_EQ(twice.run(1100).count, 1U);
  const TrackList& a = twice.run(1100);
  const TrackList& b = once.run(1100);
  ASSERT_EQ(b.count, 1U);
  EXPECT_EQ(a.tracks[0].x, b.tracks[0].x);
  EXPECT_EQ(a.tracks[0].vx, b.tracks[0].vx);
  EXPECT_EQ(a.tracks[0].hits, b.tracks[0].hits);
}

TEST(FusionTracker, StateStaysAtTheLastPublishedHalf) {
  Bench kept, disturbed;
  for (int i = 0; i <= 10; ++i) {
    kept.give(kLidar, 100 * i, {lidar_car(20, 0)});
    kept.run(100 * i + 20);
    // Two jobs whose output was thrown away must leave no trace.
    disturbed.give(kLidar, 100 * i, {lidar_car(22, 1), lidar_car(40, 5)});
    disturbed.run(100 * i + 10, false);
    disturbed.give(kLidar, 100 * i, {});
    disturbed.run(100 * i + 15, false);
    disturbed.give(kLidar, 100 * i, {lidar_car(20, 0)});
    disturbed.run(100 * i + 20);
    EXPECT_EQ(digest(kept.bytes()), digest(disturbed.bytes()));
  }
  EXPECT_EQ(kept.run(1040).count, 1U);
}

// On a bend the turn-rate model knows where a car goes; the one of constant velocity follows behind.
TEST(FusionTracker, TheTurnRateModelFollowsABend) {
  const auto error_of = [](kernels::MotionModel motion) {
    FusionModel model = Bench::defaults();
    model.motion = motion;
    Bench bench(model);
    double sum = 0;
    for (int i = 0; i <= 40; ++i) {
      const auto pose = [](double t) {  // a circle of 15 m at 9 m/s
        const double a = 0.6 * t;
        return std::array<double, 3>{25 + 15 * kernels::sin(a), 15 * (1 - kernels::cos(a)) - 10,
                                     kernels::wrap_angle(a)};
      };
      const auto seen = pose(0.1 * i), then = pose(0.1 * i + 0.09);
      bench.give_ego(100 * i, 0, 0, 0, 0, 0);
      bench.give(kLidar, 100 * i, {lidar_car(seen[0], seen[1], seen[2])});
      const TrackList& out = bench.run(100 * i + 90);
      if (i < 20) continue;
      EXPECT_EQ(out.count, 1U);
      if (out.count != 1) return 1e9;
      const double dx = out.tracks[0].x - then[0], dy = out.tracks[0].y - then[1];
      sum += dx * dx + dy * dy;
      if (motion == kernels::MotionModel::kTurnRate) {
        EXPECT_NEAR(std::hypot(out.tracks[0].vx, out.tracks[0].vy), 9, 0.5);
      }
    }
    return std::sqrt(sum / 21);
  };
  const double straight = error_of(kernels::MotionModel::kConstantVelocity);
  const double turning = error_of(kernels::MotionModel::kTurnRate);
  EXPECT_LT(turning, 0.15);
  EXPECT_LT(turning, 0.6 * straight);
}

// Variants of a stage: other numbers in the graph, one state. A job of either goes on where the last one left off.
TEST(FusionTracker, VariantsGoOnWithEachOthersState) {
  FusionModel lite = Bench::defaults();
  lite.tracker.gate_chi2 = 9;
  lite.tracker.acceleration_density = 4;
  Bench full;
  Bench other(lite, full.state());
  Bench alone(lite);
  std::uint32_t id = 0;
  for (int i = 0; i <= 12; ++i) {
    Bench& bench = i % 2 == 0 ? full : other;
    const std::vector<Object> cars = {lidar_car(20 + 0.5 * i, 3)};
    bench.give(kLidar, 100 * i, cars);
    const TrackList& out = bench.run(100 * i + 40);
    if (i < 4) continue;
    ASSERT_EQ(out.count, 1U) << i;
    if (id == 0) id = out.tracks[0].id;
    EXPECT_EQ(out.tracks[0].id, id);
    EXPECT_EQ(out.tracks[0].hits, static_cast<std::uint32_t>(i + 1)) << "no hit of the other variant is lost";
  }
  other.give(kLidar, 1200, {lidar_car(26, 3)});
  EXPECT_NE(other.run(1250).repeat_inputs & 1U << kLidar, 0U) << "the other variant has used this list already";
  alone.give(kLidar, 1200, {lidar_car(26, 3)});
  EXPECT_EQ(alone.run(1250).count, 0U);
}

TEST(FusionTracker, LateListHelpsAndATooLateOneIsLeftOut) {
  Bench bench;
  for (int i = 0; i <= 6; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(20 + i, 0)});
    bench.give(kRadar, 100 * i - 60, {radar_hit(18.5 + i - 0.6, 0, 10, 0)});  // older than what is already in
    bench.run(100 * i + 20);
    EXPECT_FALSE(bench.repaired);
  }
  const TrackList& out = bench.run(620);
  ASSERT_EQ(out.count, 1U);
  EXPECT_NEAR(out.tracks[0].vx, 10, 0.3);
  bench.give(kLidar, 1300, {});
  bench.give(kCamera, 700, {camera_car(27, 0)});
  bench.run(1310);
  EXPECT_FALSE(bench.repaired) << "lists are applied in stamp order: nothing was late";
  bench.give(kRadar, 800, {radar_hit(28, 0, 10, 0)});
  bench.run(1320);
  EXPECT_TRUE(bench.repaired) << "500 ms older than the tracks";
}

TEST(FusionTracker, ListStampedAfterTheJobIsLeftOut) {
  Bench bench;
  bench.give(kLidar, 500, {lidar_car(20, 0)});
  bench.run(100);
  EXPECT_TRUE(bench.repaired);
}

TEST(FusionTracker, LeavesOutObjectsThatAreNotFinite) {
  Bench clean, dirty;
  for (int i = 0; i <= 8; ++i) {
    clean.give(kLidar, 100 * i, {lidar_car(20, 0)});
    clean.run(100 * i + 20);
    Object bad = lidar_car(20, 0);
    bad.x = kNaN;
    Object far = lidar_car(1e30, 0);
    Object infinite = lidar_car(20, 0);
    infinite.z = std::numeric_limits<float>::infinity();
    dirty.give(kLidar, 100 * i, {bad, far, lidar_car(20, 0), infinite});
    dirty.run(100 * i + 20);
    EXPECT_TRUE(dirty.repaired);
    EXPECT_EQ(digest(clean.bytes()), digest(dirty.bytes()));
  }
  // Broken details cost the detail, not the object.
  Object odd = lidar_car(20, 0);
  odd.yaw = kNaN;
  odd.position_variance = -1;
  odd.flags |= kHasRangeRate;
  odd.range_rate = kNaN;
  dirty.give(kLidar, 900, {odd});
  const TrackList& out = dirty.run(920);
  ASSERT_EQ(out.count, 1U);
  EXPECT_TRUE(std::isfinite(out.tracks[0].x + out.tracks[0].yaw + out.tracks[0].vx));
  EXPECT_EQ(out.tracks[0].sensors, 1U << kLidar);
}

TEST(FusionTracker, BadEgoSampleIsLeftOut) {
  Bench bench;
  sensors::EgoMotion motion;
  motion.position[0] = std::numeric_limits<double>::quiet_NaN();
  bench.give_ego(0, motion);
  bench.give(kLidar, 0, {lidar_car(20, 0)});
  bench.run(10);
  EXPECT_TRUE(bench.repaired);
}

TEST(FusionTracker, CountsBeyondThePayloadAreCut) {
  Bench bench;
  bench.give(kLidar, 0, {lidar_car(20, 0)});
  // The header promises one object only, whatever the list says.
  for (int i = 0; i <= 5; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(20, 0)});
    bench.list(kLidar).count = 4'000'000'000U;
    const TrackList& out = bench.run(100 * i + 10);
    EXPECT_TRUE(bench.repaired);
    EXPECT_LE(out.count, 1U);
  }
}

TEST(FusionTracker, OverCapacityKeepsTheNearestAndCounts) {
  Bench bench;
  std::vector<Object> many;
  for (int i = 0; i < 200; ++i) {
    Object o = lidar_car(-100 + 9.0 * (i % 20), -40 + 8.0 * (i / 20));
    o.length = o.width = 1;
    many.push_back(o);
  }
  const TrackList* out = nullptr;
  for (int i = 0; i <= 6; ++i) {
    bench.give(kLidar, 100 * i, many);
    out = &bench.run(100 * i + 10);
    EXPECT_EQ(out->dropped, 200 - kMaxTracks);
  }
  ASSERT_EQ(out->count, kMaxTracks);
  double farthest_kept = 0;
  std::vector<double> ranges;
  for (const Object& o : many) ranges.push_back(std::hypot(o.x, o.y));
  std::sort(ranges.begin(), ranges.end());
  for (std::uint32_t i = 0; i < out->count; ++i) {
    farthest_kept = std::max(farthest_kept, std::hypot(double{out->tracks[i].x}, double{out->tracks[i].y}));
    if (i > 0) {
      EXPECT_GT(out->tracks[i].id, out->tracks[i - 1].id);
    }
  }
  EXPECT_NEAR(farthest_kept, ranges[kMaxTracks - 1], 0.5);
}

TEST(FusionTracker, YawFlipsAreFolded) {
  Bench bench;
  const TrackList* out = nullptr;
  for (int i = 0; i <= 12; ++i) {
    const double yaw = i % 2 == 0 ? 0.2 : 0.2 - 3.14159265;
    bench.give(kLidar, 100 * i, {lidar_car(20, 0, yaw)});
    out = &bench.run(100 * i + 10);
  }
  ASSERT_EQ(out->count, 1U);
  EXPECT_NEAR(out->tracks[0].yaw, 0.2, 0.01);
}

TEST(FusionTracker, AMovingVehicleFacesItsVelocity) {
  Bench bench;
  const TrackList* out = nullptr;
  for (int i = 0; i <= 12; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(50 - i, 0, 0)});  // comes nearer, box yaw says 0
    out = &bench.run(100 * i + 10);
  }
  ASSERT_EQ(out->count, 1U);
  EXPECT_NEAR(std::fabs(out->tracks[0].yaw), 3.14159265, 0.01);
}

// The radar first sees a second object, which turns out to lie on the same vehicle.
TEST(FusionTracker, DuplicatesEnd) {
  Bench bench;
  std::uint32_t most = 0;
  const TrackList* out = nullptr;
  for (int i = 0; i <= 20; ++i) {
    bench.give(kLidar, 100 * i, {lidar_car(20, 0)});
    const int moved = std::min(i, 14);
    bench.give(kRadar, 100 * i + 10, {radar_hit(26 - 0.4 * moved, 0, moved < 14 ? -4 : 0, 0)});
    out = &bench.run(100 * i + 20);
    most = std::max(most, out->count);
  }
  EXPECT_EQ(most, 2U);
  ASSERT_EQ(out->count, 1U);
  EXPECT_EQ(out->tracks[0].id, 1U) << "the one with a box stays";
}

TEST(FusionTracker, CrossingVehiclesKeepTheirIds) {
  Bench bench;
  std::uint32_t right = 0, left = 0;
  for (int i = 0; i <= 30; ++i) {
    const double t = 0.1 * i;
    bench.give(kLidar, 100 * i, {lidar_car(10 + 8 * t, 1.8), lidar_car(34 - 8 * t, -1.8)});
    const TrackList& out = bench.run(100 * i);
    if (i < 5) continue;
    ASSERT_EQ(out.count, 2U) << i;
    const Track& a = out.tracks[0].y > 0 ? out.tracks[0] : out.tracks[1];
    const Track& b = out.tracks[0].y > 0 ? out.tracks[1] : out.tracks[0];
    if (right == 0) right = a.id, left = b.id;
    EXPECT_EQ(a.id, right);
    EXPECT_EQ(b.id, left);
  }
}

TEST(FusionTracker, HeaderMergesTheSourcesOfItsInputs) {
  Bench bench;
  bench.give(kLidar, 100, {});
  bench.give(kRadar, 130, {});
  bench.give_ego(140, 0, 0, 0, 0, 0);
  bench.run(150);
  EXPECT_EQ(bench.header.schema, kTrackListSchema);
  EXPECT_EQ(bench.header.payload_bytes, offsetof(TrackList, tracks));
  EXPECT_EQ(bench.header.capture_ns, 140 * kMs);
  EXPECT_EQ(bench.header.sources[kCamera], transport::SourceStamps{});
  EXPECT_EQ(bench.header.sources[kLidar], (transport::SourceStamps{90 * kMs, 100 * kMs}));
  EXPECT_EQ(bench.header.sources[kRadar], (transport::SourceStamps{120 * kMs, 130 * kMs}));
  EXPECT_EQ(bench.header.sources[kEgo].newest_ns, 140 * kMs);
}

// Hostile full lists: the same bytes every time, nothing allocated, little copied.
TEST(FusionTracker, SameInputsGiveSameBytes) {
  std::vector<Digest> first;
  for (int round = 0; round < 2; ++round) {
    Bench bench;
    std::size_t most = 0;
    auto payloads = std::make_unique<std::array<Aligned<ObjectList>, 3>>();
    Aligned<sensors::EgoMotion> ego;
    std::array<transport::ChunkHeader, kInputs> headers;
    std::array<StageInput, kInputs> inputs;
    auto output = std::make_unique<Aligned<TrackList>>();
    for (std::uint32_t n = 0; n < 25; ++n) {
      for (std::size_t i = 0; i < kInputs; ++i) {
        headers[i] = {};
        auto* payload = i == kEgo ? reinterpret_cast<std::byte*>(&ego) : reinterpret_cast<std::byte*>(&(*payloads)[i]);
        bench.stage().adversarial_input(i, n, headers[i],
                                        {payload, i == kEgo ? sizeof ego.payload : sizeof(ObjectList)});
        ASSERT_EQ(headers[i].payload_bytes, i == kEgo ? sizeof ego.payload : sizeof(ObjectList));
        inputs[i] = {{&headers[i], payload}, false, false};
      }
      transport::ChunkHeader header;
      StageJob job;
      job.now = {headers[0].capture_ns + 10 * kMs};
      job.inputs = inputs;
      job.output_header = &header;
      job.output = reinterpret_cast<std::byte*>(output.get());
      const memory::ThreadCounters before = memory::thread_counters();
      for (int phase = 0; phase < bench.stage().phases(); ++phase) {
        const int parts = bench.stage().parallel(phase) ? 1 + round : 1;
        for (int part = parts; part-- > 0;) bench.stage().run(phase, part, parts, job);
      }
      const memory::ThreadCounters used = memory::thread_counters() - before;
      EXPECT_EQ(used.allocations, 0U);
      EXPECT_LT(used.copied_bytes, 64U * 1024);
      bench.stage().published();
      EXPECT_EQ(output->payload.repeat_inputs, 0U);
      most = std::max<std::size_t>(most, output->payload.count);
      const Digest d = digest(std::span(job.output, header.payload_bytes));
      if (round == 0) {
        first.push_back(d);
      } else {
        EXPECT_EQ(d, first[n]);
      }
    }
    EXPECT_GT(most, 100U) << "the hostile input must fill the table";
  }
}

// 400 jobs over everything that the stage has a rule for: sensors of three kinds that come, stay away, repeat, come
// late, too late or from the future, jobs that are not published, a turning vehicle whose position jumps, clutter,
// numbers that are none, full lists. The digest is that of the plain code which the graph replaced.
TEST(FusionTracker, GivesTheBytesOfThePlainTracker) {
  Bench bench;
  std::minstd_rand engine(20261129);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  const auto uniform = [&](double low, double high) { return low + (high - low) * (random() >> 7) * 0x1p-24; };
  Digester digester;
  std::size_t most = 0, seen = 0, repaired = 0;
  for (int n = 0; n < 400; ++n) {
    const int now = 50 * n + 40;
    const double yaw = 0.02 * n;
    if (random() % 8 != 0) {
      const double jump = n > 200 ? 100 : 0;
      bench.give_ego(50 * n, jump + 0.7 * n, 0.01 * n * n, yaw, random() % 50 == 0 ? kNaN : 14, 0.4);
    }
    for (const std::size_t input : {kCamera, kLidar, kRadar}) {
      const std::uint32_t what = random() % 10;
      if (what == 0) bench.take_away(input);
      if (what < 2) continue;
      std::vector<Object> objects;
      for (int k = 0; k < 24; ++k) {  // cars that drive on lanes of the world
        if (random() % 5 == 0) continue;
        const double along = 6.0 * k - 60 + 0.05 * n * (k % 5), across = 3.5 * (k % 7) - 10;
        const double x = kernels::cos(0.1 * k) * along - 0.2 * across + uniform(-0.2, 0.2),
                     y = across + uniform(-0.2, 0.2);
        Object o = input == kLidar   ? lidar_car(x, y, 0.1 * k)
                   : input == kRadar ? radar_hit(x, y, k % 5, 0)
                                     : camera_car(x, y);
        if (random() % 4 == 0) o.yaw += 3.1F;
        if (random() % 3 == 0) o.object_class = static_cast<ObjectClass>(random() % 7);
        if (input == kLidar && random() % 3 == 0) o.length *= 0.5F;
        if (input == kLidar && random() % 9 == 0) o.flags = kHasPosition;
        if (random() % 60 == 0) o.position_variance = kNaN;
        if (random() % 200 == 0) o.x = kNaN;
        objects.push_back(o);
      }
      const std::uint32_t clutter = random() % 40 == 0 ? 220 : random() % 4;
      for (std::uint32_t k = 0; k < clutter; ++k) objects.push_back(lidar_car(uniform(-90, 90), uniform(-90, 90)));
      const int lag = what == 9 ? 300 : what == 8 ? -30 : static_cast<int>(random() % 120);
      bench.give(input, now - lag, objects);
    }
    const TrackList& out = bench.run(now, random() % 12 != 0);
    most = std::max<std::size_t>(most, out.count);
    seen += out.count;
    repaired += bench.repaired ? 1 : 0;
    digester.add(bench.bytes());
    digester.add_value(bench.header.capture_ns);
    digester.add_value(bench.header.sources);
    digester.add_value(bench.repaired);
  }
  EXPECT_GT(seen, 4000U);
  EXPECT_GT(most, 20U);
  EXPECT_GT(repaired, 20U);
  EXPECT_EQ(digester.finish().hex(), "38772633b982fce9462c78a6ee59c6e7");
}

TEST(FusionTracker, OrderOfObjectsInAListDoesNotMatter) {
  Bench forward, backward;
  std::vector<Object> cars;
  for (int k = 0; k < 12; ++k) cars.push_back(lidar_car(8 + 7.0 * (k % 4), -12 + 6.0 * (k / 4) + 0.1 * k));
  for (int i = 0; i <= 10; ++i) {
    for (Object& o : cars) o.x += 0.3F;
    forward.give(kLidar, 100 * i, cars);
    backward.give(kLidar, 100 * i, {cars.rbegin(), cars.rend()});
    forward.run(100 * i + 10);
    backward.run(100 * i + 10);
    EXPECT_EQ(digest(forward.bytes()), digest(backward.bytes()));
  }
  EXPECT_EQ(forward.run(1050).count, 12U);
}

TEST(FusionTracker, ReadsItsParametersAndRefusesUnknownOnes) {
  auto good = YamlDocument::parse("gate_chi2: 9\ncoast_ms: 400\nradar: { rate_sigma_mps: 0.3 }\n", "p.yaml").value();
  const FusionModel p = read_fusion_model(good.root());
  EXPECT_TRUE(good.finish());
  EXPECT_EQ(p.tracker.gate_chi2, 9);
  EXPECT_EQ(p.tracker.coast_ns, 400e6);
  EXPECT_EQ(p.sensors[static_cast<std::size_t>(Modality::kRadar)].rate_sigma, 0.3);
  auto bad = YamlDocument::parse("gate_chi: 9\nlidar: { hit_logodds: 1 }\n", "p.yaml").value();
  read_fusion_model(bad.root());
  const Status status = bad.finish();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("gate_chi"), std::string::npos);
  EXPECT_NE(status.error().message.find("hit_logodds"), std::string::npos);
}

TEST(FusionTracker, RefusesInputsItCannotFuse) {
  const sensors::Rig rig = make_rig();
  StageSpec spec;
  spec.type = "fusion_tracker";
  spec.name = "fusion";
  spec.rig = &rig;
  const auto refused = [&](const char* word) {
    const auto stage = testing::make_fusion(spec, Bench::defaults());
    return !stage && stage.error().code == Code::kConfiguration &&
           stage.error().message.find(word) != std::string::npos;
  };
  EXPECT_TRUE(refused("no object list"));
  StageConnection ego;
  ego.name = "motion";
  ego.sensor = &rig.sensors[kEgo];
  ego.sensor_index = kEgo;
  ego.schema = sensors::kEgoMotionSchema;
  spec.inputs = {ego};
  EXPECT_TRUE(refused("no object list"));
  spec.inputs = {ego, ego};
  EXPECT_TRUE(refused("second ego"));
  StageConnection cloud;
  cloud.name = "cloud";
  cloud.sensor = &rig.sensors[kLidar];
  cloud.sensor_index = kLidar;
  cloud.schema = sensors::kPointCloudSchema;
  spec.inputs = {cloud};
  EXPECT_TRUE(refused("'cloud'"));
}

}  // namespace
}  // namespace takt::pipeline
