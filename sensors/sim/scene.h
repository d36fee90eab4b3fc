// A scene: what the simulator drives through, read from YAML (configs/scenes). Metres, seconds, radians.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/sim/road.h"
#include "sensors/sim/vector.h"

namespace takt::sensors::sim {

enum class ActorKind { kCar, kVan, kTruck, kPedestrian };

// Something with truth: moves along the road with constant acceleration until it stands, and across with constant
// speed. Pose: centre of its footprint, on the ground (on the pavement where it is raised).
struct Actor {
  std::uint32_t id = 0;  // in the truth; 1.. in the order of the file
  ActorKind kind = ActorKind::kCar;
  double length = 0, width = 0, height = 0;
  Vec3 colour;              // reflectance 0..1, linear
  double station = 0;       // at t = 0
  double offset = 0;        // left of the centre line, at t = 0
  double heading = 0;       // relative to the road; 0 = with the stations, pi = oncoming
  double speed = 0;         // along the heading, at t = 0
  double acceleration = 0;  // along the heading
  double across_speed = 0;  // to the left of the road
};

// Scenery without truth.
struct Building {
  double station = 0, offset = 0;  // centre of the footprint
  double length = 0, depth = 0, height = 0;
  std::uint64_t look = 0;  // random bits: colour, window pattern
};
struct Plant {  // a tree
  double station = 0, offset = 0;
  double height = 0, crown_radius = 0;
  std::uint64_t look = 0;
};
struct Lamp {
  double station = 0, offset = 0;
  double height = 0;
};

struct LidarSettings {
  std::vector<double> elevations;  // rad, ring 0 first
  std::uint32_t columns = 0;       // firings per turn
  double maximum_range = 0;
  double range_noise = 0;  // standard deviation, m
  double dropout = 0;      // probability of losing a good return
};
struct RadarSettings {
  double field_of_view = 0;  // half angle, rad
  double maximum_range = 0;
  double range_noise = 0;    // m
  double azimuth_noise = 0;  // rad
  double speed_noise = 0;    // m/s
  double clutter = 0;        // mean number of false returns per scan
};
struct CameraSettings {
  int jpeg_quality = 85;
  double noise = 0;     // standard deviation in 8-bit steps
  double exposure = 1;  // factor on linear radiance
};

struct Scene {
  std::string name;
  std::string file;
  std::string rig_file;  // resolved against the scene's folder
  std::uint64_t seed = 0;
  SensorTime start;                           // stamp of t = 0
  Duration duration;                          // only messages that arrive before start + duration are written
  double sun_elevation = 0, sun_azimuth = 0;  // azimuth counter-clockwise from world x
  Road road;
  double ego_station = 0, ego_offset = 0, ego_speed = 0, ego_acceleration = 0;
  std::vector<Actor> actors;
  std::vector<Building> buildings;
  std::vector<Plant> plants;
  std::vector<Lamp> lamps;
  LidarSettings lidar;
  RadarSettings radar;
  CameraSettings camera;
  Duration truth_period;
};

// kConfiguration with every error of the file.
Result<Scene> load_scene(const std::string& path);
Result<Scene> parse_scene(const std::string& text, const std::string& name);

}  // namespace takt::sensors::sim
