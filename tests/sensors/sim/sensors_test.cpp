#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/elementary.h"
#include "sensors/sim/camera.h"
#include "sensors/sim/lidar.h"
#include "sensors/sim/radar.h"

namespace takt::sensors::sim {
namespace {

// A straight road, the ego vehicle at (0, 0) and one car 20 m ahead of it.
Scene one_car(double ego_speed, double car_speed) {
  Scene scene;
  scene.seed = 1;
  scene.sun_elevation = 0.8;
  scene.road = Road({{400, 0}});
  scene.ego_speed = ego_speed;
  Actor car;
  car.id = 1;
  car.length = 4.5;
  car.width = 1.8;
  car.height = 1.5;
  car.colour = {0.5, 0.05, 0.05};
  car.station = 20;
  car.speed = car_speed;
  scene.actors = {car};
  scene.lidar.columns = 600;
  for (double e = -25; e <= 2; e += 0.5) scene.lidar.elevations.push_back(e * kernels::kPi / 180);
  scene.lidar.maximum_range = 100;
  scene.radar.field_of_view = 1;
  scene.radar.maximum_range = 100;
  scene.camera.noise = 0;
  return scene;
}

RigSensor lidar_on_roof() {
  RigSensor sensor;
  sensor.kind = SensorKind::kLidar;
  sensor.capacity = 100000;
  sensor.duration = milliseconds(100);
  sensor.vehicle_from_sensor.translation = {1, 0, 1.9};
  return sensor;
}

TEST(SimulatedLidar, SeesTheRoadAndTheBackOfTheCar) {
  const World world(one_car(0, 0));
  Sweep sweep;
  simulate_sweep(world, lidar_on_roof(), 0, 0, milliseconds(100), &sweep);
  std::size_t ground = 0, car = 0;
  double nearest = 1e9;
  for (const auto& p : sweep.points) {
    EXPECT_LE(p.time_ns, 0);
    EXPECT_GE(p.time_ns, -100'000'000);
    if (std::fabs(p.z + 1.9) < 0.01) {
      ++ground;
    } else if (std::fabs(p.y) < 1 && p.x > 10 && p.x < 25) {
      ++car;
      nearest = std::min(nearest, static_cast<double>(p.x));
    }
  }
  EXPECT_GT(ground, 1000u);
  EXPECT_GT(car, 20u);
  EXPECT_EQ(sweep.actor_points[0], car);
  EXPECT_NEAR(nearest, 20 - 2.25 - 1, 0.1);
}

TEST(SimulatedLidar, PointsAreNotCompensatedForMotion) {
  // The sweep starts at the rear and looks ahead after half of its time, 1 m further on at 20 m/s.
  const World world(one_car(20, 0));
  Sweep sweep;
  simulate_sweep(world, lidar_on_roof(), 0, 0, milliseconds(100), &sweep);
  double nearest = 1e9;
  std::int32_t when = 0;
  for (const auto& p : sweep.points) {
    if (std::fabs(p.y) < 0.5 && p.x > 10 && p.x < 25 && p.z > -1.4 && p.x < nearest) {
      nearest = p.x;
      when = p.time_ns;
    }
  }
  EXPECT_NEAR(when, -50'000'000, 3'000'000);
  EXPECT_NEAR(nearest, 20 - 2.25 - 1 - 20 * 0.05, 0.15);
}

TEST(SimulatedLidar, CapacityIsKeptAndCounted) {
  const World world(one_car(0, 0));
  RigSensor sensor = lidar_on_roof();
  Sweep all, some;
  simulate_sweep(world, sensor, 0, 0, milliseconds(100), &all);
  sensor.capacity = 100;
  simulate_sweep(world, sensor, 0, 0, milliseconds(100), &some);
  EXPECT_EQ(some.points.size(), 100u);
  EXPECT_EQ(some.dropped, all.points.size() - 100);
}

RigSensor radar_in_front() {
  RigSensor sensor;
  sensor.kind = SensorKind::kRadar;
  sensor.capacity = 256;
  sensor.vehicle_from_sensor.translation = {3.5, 0, 0.5};
  return sensor;
}

TEST(SimulatedRadar, DopplerIsRelativeToTheMovingSensor) {
  for (const auto& [ego, car] : {std::pair{0.0, 5.0}, {10.0, 4.0}, {10.0, 0.0}, {8.0, 8.0}}) {
    const World world(one_car(ego, car));
    std::vector<RadarReturn> returns;
    std::size_t found = 0;
    for (std::uint64_t k = 0; k < 20; ++k) {
      simulate_scan(world, radar_in_front(), k, 0, &returns);
      for (const RadarReturn& r : returns) {
        ++found;
        const double cosine = r.x / std::hypot(r.x, r.y);
        EXPECT_NEAR(r.range_rate, (car - ego) * cosine, 1e-3) << ego << " " << car;
        EXPECT_NEAR(r.x, 20 - 2.25 - 3.5, 0.2) << "only the rear faces the sensor";
        EXPECT_LT(std::fabs(r.y), 1);
      }
    }
    EXPECT_GT(found, 15u);
  }
}

TEST(SimulatedRadar, ATurningSensorMovesSidewaysAheadOfTheAxle) {
  Scene scene = one_car(10, 0);
  scene.road = Road({{400, 1.0 / 50}});
  scene.ego_station = 1;
  scene.actors[0].station = 30;
  const World world(scene);
  const Motion ego = world.ego(0);
  std::vector<RadarReturn> returns;
  const RigSensor sensor = radar_in_front();
  std::size_t found = 0;
  for (std::uint64_t k = 0; k < 20; ++k) {
    simulate_scan(world, sensor, k, 0, &returns);
    for (const RadarReturn& r : returns) {
      ++found;
      // A standing target: minus the sensor's velocity (10, yaw rate * 3.5) along the ray.
      const double range = std::hypot(r.x, r.y);
      EXPECT_NEAR(r.range_rate, -(10 * r.x + ego.yaw_rate * 3.5 * r.y) / range, 1e-3);
    }
  }
  EXPECT_GT(found, 10u);
}

TEST(SimulatedRadar, AHiddenCarIsNotSeen) {
  Scene scene = one_car(0, 0);
  Actor truck = scene.actors[0];
  truck.id = 2;
  truck.kind = ActorKind::kTruck;
  truck.station = 12;
  truck.length = 6;
  truck.width = 2.5;
  truck.height = 3.3;
  scene.actors.push_back(truck);
  const World world(scene);
  std::vector<RadarReturn> returns;
  for (std::uint64_t k = 0; k < 20; ++k) {
    simulate_scan(world, radar_in_front(), k, 0, &returns);
    for (const RadarReturn& r : returns) EXPECT_LT(r.x, 20 - 2.25 - 3.5 - 0.5);
  }
}

RigSensor front_camera() {
  RigSensor sensor;
  sensor.kind = SensorKind::kCamera;
  sensor.camera = CameraModel{320, 192, 230, 230, 159.5, 95.5, {}};
  sensor.vehicle_from_sensor.rotation = {0, 0, 1, -1, 0, 0, 0, -1, 0};
  sensor.vehicle_from_sensor.translation = {1.6, 0, 1.4};
  return sensor;
}

struct Red {  // extent of reddish pixels
  int u0 = 1 << 20, v0 = 1 << 20, u1 = -1, v1 = -1;
};
Red find_red(const std::vector<std::uint8_t>& rgb, int width, int height) {
  Red red;
  for (int v = 0; v < height; ++v) {
    for (int u = 0; u < width; ++u) {
      const auto i = static_cast<std::size_t>(3 * (v * width + u));
      if (rgb[i] < 2 * rgb[i + 1]) continue;
      red.u0 = std::min(red.u0, u);
      red.u1 = std::max(red.u1, u);
      red.v0 = std::min(red.v0, v);
      red.v1 = std::max(red.v1, v);
    }
  }
  return red;
}

TEST(SimulatedCamera, TheCarIsWhereTheModelPutsIt) {
  const World world(one_car(0, 0));
  const RigSensor sensor = front_camera();
  Camera camera(world, sensor);
  const Red red = find_red(camera.render(0, 0), 320, 192);
  const double depth = 20 - 2.25 - 1.6;
  EXPECT_NEAR(red.u0, 159.5 - 230 * 0.9 / depth, 2);
  EXPECT_NEAR(red.u1, 159.5 + 230 * 0.9 / depth, 2);
  EXPECT_NEAR(red.v0, 95.5 + 230 * (1.4 - 0.61 * 1.5) / depth, 2.5);  // paint begins below the window
  EXPECT_LT(red.v1, 95.5 + 230 * 1.4 / depth + 1);
}

TEST(SimulatedCamera, DistortionMovesTheCarAsTheModelSays) {
  Scene scene = one_car(0, 0);
  scene.actors[0].offset = -6;  // right of the road's middle
  const World world(scene);
  RigSensor sensor = front_camera();
  Camera straight(world, sensor);
  const Red before = find_red(straight.render(0, 0), 320, 192);
  sensor.camera->distortion = {-0.2, 0.03, 0, 0, 0};
  Camera bent(world, sensor);
  const Red after = find_red(bent.render(0, 0), 320, 192);
  const auto distorted = [](double u) {
    const double x = (u - 159.5) / 230;
    return 159.5 + 230 * x * (1 - 0.2 * x * x + 0.03 * x * x * x * x);
  };
  EXPECT_NEAR(after.u1, distorted(before.u1), 1.5);
  EXPECT_LT(after.u1, before.u1 - 1);
}

TEST(SimulatedCamera, PicturesRepeat) {
  const World world(one_car(5, 7));
  const RigSensor sensor = front_camera();
  Camera a(world, sensor), b(world, sensor);
  a.render(0, 0.3);
  EXPECT_EQ(a.render(4, 0.7), b.render(4, 0.7));
}

}  // namespace
}  // namespace takt::sensors::sim
