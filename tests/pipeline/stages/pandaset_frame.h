// Reads one frame of the compact PandaSet form (see its README in the recorded data): points and vehicle cuboids, both
// in a vehicle frame (x forward, y left) whose ground lies at 0 under the car.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "detection_score.h"
#include "stage_fixture.h"

namespace takt::pipeline::testing {

// The cloud's frame is x right, y forward; its road lies 0.32 m below its origin (fit over the points labelled road
// within 15 m of frame 0), and its rays begin about 1.9 m above the road.
inline sensors::RigSensor pandaset_lidar() {
  sensors::RigSensor sensor = lidar_sensor(120'000);
  sensor.vehicle_from_sensor = {};
  sensor.vehicle_from_sensor.rotation = {0, 1, 0, -1, 0, 0, 0, 0, 1};
  sensor.vehicle_from_sensor.translation = {0, 0, 0.32};
  sensor.ray_origin = {0.03, -0.15, 1.55};
  sensor.motion_compensated = true;
  return sensor;
}

// Sensor frame. Empty when the file is unreadable or damaged.
inline std::vector<CloudPoint> read_pandaset_points(const std::string& folder, int frame) {
  char name[32];
  std::snprintf(name, sizeof name, "/lidar/%02d.psl.gz", frame);
  gzFile file = gzopen((folder + name).c_str(), "rb");
  if (file == nullptr) return {};
  std::vector<char> bytes(4'000'000);
  const int size = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  if (size < 28 || std::memcmp(bytes.data(), "PSL1", 4) != 0) return {};
  std::uint32_t count = 0;
  std::memcpy(&count, bytes.data() + 4, 4);
  if (static_cast<std::uint64_t>(size) != 28 + std::uint64_t{10} * count) return {};
  std::vector<CloudPoint> points(count);
  const auto centimetres = [&](std::uint32_t array, std::uint32_t i) {
    std::int16_t value = 0;
    std::memcpy(&value, bytes.data() + 28 + std::size_t{2} * (std::size_t{array} * count + i), 2);
    return static_cast<float>(value) * 0.01F;
  };
  for (std::uint32_t i = 0; i < count; ++i) points[i] = {centimetres(0, i), centimetres(1, i), centimetres(2, i)};
  return points;
}

inline std::vector<TruthBox> read_pandaset_vehicles(const std::string& folder, int frame) {
  static const std::set<std::string> vehicles{"Car",
                                              "Pickup Truck",
                                              "Medium-sized Truck",
                                              "Semi-truck",
                                              "Bus",
                                              "Other Vehicle - Construction Vehicle",
                                              "Tram / Subway",
                                              "Emergency Vehicle",
                                              "Other Vehicle - Uncommon"};
  std::vector<TruthBox> boxes;
  std::ifstream file(folder + "/cuboids.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> f;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) f.push_back(field);
    if (f.size() < 19 || f[0] != std::to_string(frame) || f[6] == "1" || vehicles.count(f[3]) == 0) continue;
    TruthBox box;
    box.x = std::stof(f[12]);   // forward
    box.y = -std::stof(f[11]);  // left
    box.yaw = std::stof(f[14]);
    box.width = std::stof(f[15]);
    box.length = std::stof(f[16]);
    box.points = static_cast<std::uint32_t>(std::stoul(f[18]));
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace takt::pipeline::testing
