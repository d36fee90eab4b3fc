// The scene as solid objects at one instant, and rays through it. World frame (road.h), metres, seconds from the
// scene's start. Immutable after construction; a Snapshot belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sensors/rig/rig.h"
#include "sensors/sim/scene.h"
#include "sensors/sim/shape.h"

namespace takt::sensors::sim {

// Pose and motion of an object or of the ego vehicle: planar.
struct Motion {
  Vec3 position;                // world
  double yaw = 0;               // counter-clockwise from world x, rad
  double cosine = 1, sine = 0;  // of yaw
  Vec3 velocity;                // world, m/s
  double yaw_rate = 0;          // rad/s
  double gait = 0;              // phase of walking legs, rad
  [[nodiscard]] Vec3 to_world(Vec3 local) const { return position + rotate(local); }
  [[nodiscard]] Vec3 rotate(Vec3 local) const {
    return {cosine * local.x - sine * local.y, sine * local.x + cosine * local.y, local.z};
  }
  [[nodiscard]] Vec3 to_local(Vec3 world) const { return rotate_back(world - position); }
  [[nodiscard]] Vec3 rotate_back(Vec3 world) const {
    return {cosine * world.x + sine * world.y, cosine * world.y - sine * world.x, world.z};
  }
  // Velocity of a point that moves with the object, world frame.
  [[nodiscard]] Vec3 velocity_at(Vec3 world) const {
    const Vec3 arm = world - position;
    return velocity + Vec3{-yaw_rate * arm.y, yaw_rate * arm.x, 0};
  }
};

// What a ray met.
struct Hit {
  static constexpr std::int32_t kNothing = -1;
  static constexpr std::int32_t kGround = -2;
  double range = 1e300;            // m
  std::int32_t object = kNothing;  // index into World::shapes(), kGround or kNothing
  Surface surface = Surface::kSky;
  Vec3 point, normal;    // world
  ShapeHit local;        // objects: object frame
  RoadCoordinates road;  // ground: where
};

class World {
 public:
  explicit World(const Scene& scene);

  [[nodiscard]] const Scene& scene() const { return scene_; }
  // Actors first, in the order of Scene::actors, then scenery.
  [[nodiscard]] const std::vector<Shape>& shapes() const { return shapes_; }
  [[nodiscard]] Motion ego(double t) const;
  [[nodiscard]] Motion actor(std::size_t index, double t) const;
  // Motion of every shape; `out` is resized.
  void pose(double t, std::vector<Motion>* out) const;

 private:
  const Scene scene_;
  std::vector<Shape> shapes_;
  std::vector<Motion> fixed_;  // of the scenery
};

// Nearest crossing with one object; improves `hit`, its surface is filled in by `resolve`.
bool cast_object(const World& world, std::int32_t object, const Motion& motion, const Ray& ray, Hit* hit);
// The same for road, kerb and pavement.
bool cast_ground(const World& world, const Ray& ray, Hit* hit);
// Nearest of everything; objects farther than `maximum` do not count.
Hit cast_all(const World& world, const std::vector<Motion>& motions, const Ray& ray, double maximum);
// Fills in surface and world normal of a hit.
void resolve(const World& world, const std::vector<Motion>& motions, Hit* hit);

// Reflectivity for the LiDAR's wave length, 0..1 (retroreflectors above 1), of a resolved hit.
double reflectivity(const World& world, const Hit& hit);

// T_world_sensor from the vehicle's motion and the sensor's extrinsics.
struct SensorPose {
  Vec3 origin;
  std::array<double, 9> rotation;  // row-major
  [[nodiscard]] Vec3 rotate(Vec3 v) const {
    return {rotation[0] * v.x + rotation[1] * v.y + rotation[2] * v.z,
            rotation[3] * v.x + rotation[4] * v.y + rotation[5] * v.z,
            rotation[6] * v.x + rotation[7] * v.y + rotation[8] * v.z};
  }
  [[nodiscard]] Vec3 rotate_back(Vec3 v) const {
    return {rotation[0] * v.x + rotation[3] * v.y + rotation[6] * v.z,
            rotation[1] * v.x + rotation[4] * v.y + rotation[7] * v.z,
            rotation[2] * v.x + rotation[5] * v.y + rotation[8] * v.z};
  }
};
SensorPose sensor_pose(const Motion& vehicle, const Transform& vehicle_from_sensor);

}  // namespace takt::sensors::sim
