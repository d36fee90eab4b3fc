#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference/elementary.h"
#include "sensors/sim/random.h"
#include "sensors/sim/road.h"
#include "sensors/sim/shape.h"
#include "sensors/sim/world.h"

namespace takt::sensors::sim {
namespace {

TEST(Random, IsAFunctionOfItsKeys) {
  static_assert(bits(1, 2, 3, 4) == bits(1, 2, 3, 4));
  static_assert(bits(1, 2, 3, 4) != bits(1, 2, 4, 3));
  Random a(7, 1, 5), b(7, 1, 5), c(7, 1, 6);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(Random, HasTheMomentsItPromises) {
  Random random(1, 2, 3);
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, uniform = 0;
  for (int i = 0; i < kCount; ++i) {
    const double g = random.gauss();
    sum += g;
    squares += g * g;
    uniform += random.uniform();
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.015);
  EXPECT_NEAR(uniform / kCount, 0.5, 0.005);
}

TEST(Road, LocateInvertsAt) {
  const Road road({{50, 0}, {60, 1.0 / 80}, {30, 0}, {70, -1.0 / 60}, {40, 0}});
  for (double s = -20; s < 260; s += 3.7) {
    for (const double d : {-8.0, -1.75, 0.0, 3.5, 12.0}) {
      const RoadPoint p = road.at(s);
      const RoadCoordinates found = road.locate(p.x - d * kernels::sin(p.heading), p.y + d * kernels::cos(p.heading));
      EXPECT_NEAR(found.station, s, 1e-6) << s << " " << d;
      EXPECT_NEAR(found.offset, d, 1e-6) << s << " " << d;
    }
  }
}

TEST(Road, IsContinuous) {
  const Road road({{50, 0}, {60, 1.0 / 80}, {30, -1.0 / 100}});
  RoadPoint before = road.at(-5);
  for (double s = -4.99; s < 150; s += 0.01) {
    const RoadPoint now = road.at(s);
    EXPECT_NEAR(std::hypot(now.x - before.x, now.y - before.y), 0.01, 1e-4) << s;
    EXPECT_NEAR(now.heading, before.heading, 2e-4) << s;
    before = now;
  }
}

Actor car() {
  Actor actor;
  actor.id = 1;
  actor.kind = ActorKind::kCar;
  actor.length = 4.5;
  actor.width = 1.8;
  actor.height = 1.5;
  return actor;
}

TEST(Shape, StaysWithinTheBoxOfItsTruth) {
  for (const ActorKind kind : {ActorKind::kCar, ActorKind::kVan, ActorKind::kTruck, ActorKind::kPedestrian}) {
    Actor actor = car();
    actor.kind = kind;
    if (kind == ActorKind::kPedestrian) actor.length = actor.width = 0.6;
    const Shape shape = shape_of(actor);
    Random random(3, 4, static_cast<std::uint64_t>(kind));
    int hits = 0;
    for (int i = 0; i < 20000; ++i) {
      // From a sphere around it towards a point inside its box.
      const Vec3 from = unit({random.gauss(), random.gauss(), std::fabs(random.gauss())}) * 15;
      const Vec3 to{random.uniform(-0.5, 0.5) * actor.length, random.uniform(-0.5, 0.5) * actor.width,
                    random.uniform() * actor.height};
      ShapeHit hit;
      if (!cast(shape, {from, unit(to - from)}, random.uniform(0, 6), &hit)) continue;
      ++hits;
      EXPECT_LE(std::fabs(hit.point.x), actor.length / 2 + 1e-9);
      EXPECT_LE(std::fabs(hit.point.y), actor.width / 2 + 1e-9);
      EXPECT_GE(hit.point.z, -1e-9);
      EXPECT_LE(hit.point.z, actor.height + 1e-9);
      EXPECT_NEAR(norm(hit.normal), 1, 1e-9);
      EXPECT_LE(dot(hit.normal, to - from), 1e-9) << "the surface faces the ray";
      EXPECT_NEAR(norm(hit.point - from), hit.range, 1e-9);
    }
    EXPECT_GT(hits, 5000);
  }
}

TEST(Shape, AVehicleShowsPlatesAndLightsAtItsEnds) {
  const Shape shape = shape_of(car());
  const auto look = [&](Vec3 from, Vec3 to) {
    ShapeHit hit;
    EXPECT_TRUE(cast(shape, {from, unit(to - from)}, 0, &hit));
    return surface_at(shape, hit);
  };
  EXPECT_EQ(look({-10, 0, 0.56}, {0, 0, 0.56}), Surface::kPlate);
  EXPECT_EQ(look({-10, 0.75, 0.7}, {0, 0.75, 0.7}), Surface::kTaillight);
  EXPECT_EQ(look({10, 0.7, 0.6}, {0, 0.7, 0.6}), Surface::kHeadlight);
  EXPECT_EQ(look({10, 0, 1.2}, {0, 0, 1.2}), Surface::kGlass);
  EXPECT_EQ(look({0, 0, 9}, {0, 0, 0}), Surface::kPaint);
}

TEST(World, GroundHasRoadKerbAndPavement) {
  Scene scene;
  scene.road = Road({{200, 0}});
  const World world(scene);
  const auto down = [&](double y) {
    Hit hit;
    EXPECT_TRUE(cast_ground(world, {{50, y, 2}, {0, 0, -1}}, &hit));
    return hit;
  };
  EXPECT_NEAR(down(1).range, 2, 1e-12);
  EXPECT_NEAR(down(7).range, 2 - Road::kKerb, 1e-12);
  EXPECT_EQ(down(7).surface, Surface::kPavement);
  EXPECT_EQ(down(scene.road.lane_width).surface, Surface::kMarking);
  // A flat ray from the road meets the kerb's face.
  Hit kerb;
  const Vec3 from{50, 0, 0.3};
  const Vec3 to{50, scene.road.edge(), Road::kKerb / 2};
  ASSERT_TRUE(cast_ground(world, {from, unit(to - from)}, &kerb));
  EXPECT_EQ(kerb.surface, Surface::kKerb);
  EXPECT_NEAR(kerb.range, norm(to - from), 1e-6);
  EXPECT_NEAR(kerb.normal.y, -1, 1e-9);
}

TEST(World, VelocityIsTheDerivativeOfPosition) {
  Scene scene;
  scene.road = Road({{30, 0}, {100, 1.0 / 60}});
  scene.ego_station = 40;
  scene.ego_offset = -1.75;
  scene.ego_speed = 9;
  scene.ego_acceleration = -1;
  Actor oncoming = car();
  oncoming.station = 90;
  oncoming.offset = 1.75;
  oncoming.heading = kernels::kPi;
  oncoming.speed = 7;
  Actor walker = car();
  walker.kind = ActorKind::kPedestrian;
  walker.station = 60;
  walker.offset = 2;
  walker.across_speed = -1.2;
  Actor stopping = car();
  stopping.station = 50;
  stopping.speed = 2;
  stopping.acceleration = -4;
  scene.actors = {oncoming, walker, stopping};
  const World world(scene);
  constexpr double h = 1e-5;
  for (const double t : {0.1, 0.4, 1.0, 2.0}) {
    for (int i = -1; i < 3; ++i) {
      const auto at = [&](double when) {
        return i < 0 ? world.ego(when) : world.actor(static_cast<std::size_t>(i), when);
      };
      const Motion motion = at(t);
      const Vec3 slope = (at(t + h).position - at(t - h).position) * (1 / (2 * h));
      EXPECT_NEAR(slope.x, motion.velocity.x, 1e-5) << i << " " << t;
      EXPECT_NEAR(slope.y, motion.velocity.y, 1e-5) << i << " " << t;
      const double turn = kernels::wrap_angle(at(t + h).yaw - at(t - h).yaw) / (2 * h);
      EXPECT_NEAR(turn, motion.yaw_rate, 1e-5) << i << " " << t;
    }
  }
  EXPECT_EQ(norm(world.actor(2, 2.0).velocity), 0) << "it stands once its speed has reached zero";
}

}  // namespace
}  // namespace takt::sensors::sim
