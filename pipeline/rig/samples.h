// Decoded samples of a log at chosen places, for tools that look at a drive as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/rig/pictures.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// A payload in memory of its own, aligned as payloads must be.
class Payload {
 public:
  explicit Payload(std::uint64_t bytes);
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_}; }
  template <class T>
  [[nodiscard]] const T& as() const {
    return *reinterpret_cast<const T*>(data_);
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
  std::size_t size_;
};

struct Sample {
  SensorTime stamp;
  std::shared_ptr<const Payload> payload;
};

// Stamps of every sensor of the rig, ascending, in the order of the rig. kInput when the log has none of its topics.
Result<std::vector<std::vector<SensorTime>>> read_stamps(const std::string& log_path, const sensors::Rig& rig);

// The samples with the wanted stamps, by sensor; bad frames are left out.
Result<std::vector<std::vector<Sample>>> read_samples(const std::string& log_path, const sensors::Rig& rig,
                                                      const std::vector<std::vector<SensorTime>>& wanted);

// Calls `use(sensor index, sample)` for every good frame of the named sensors, in the order of the log.
Status for_each_sample(const std::string& log_path, const sensors::Rig& rig, const std::vector<std::size_t>& sensors,
                       const std::function<Status(std::size_t, const Sample&)>& use);

// Points of a sweep in the vehicle frame.
std::vector<VehiclePoint> vehicle_points(const sensors::PointCloud& cloud, const sensors::RigSensor& sensor);

// What tells how the vehicle moved: points 2 to 60 m away that are neither the vehicle nor the ground. The rings of a
// LiDAR on a plain road move with it, so the ground would say that it stands.
std::vector<VehiclePoint> landmarks(const Sample& sweep, const sensors::RigSensor& sensor, const VehicleBox& box);

// The same as vehicle_points, each point moved to where the world was at `at`, as seen from the vehicle: with the ego
// motion of the sweep and the points' times (compensated clouds have one time, their stamp).
std::vector<VehiclePoint> vehicle_points_at(const Sample& sweep, const sensors::RigSensor& sensor,
                                            const sensors::EgoMotion& ego, SensorTime at);

}  // namespace takt::pipeline
