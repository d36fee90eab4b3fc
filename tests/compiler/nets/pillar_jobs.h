// The pillar network in small, and jobs of it: sweeps as a sensor gives them, and as none does.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compiler/nets/pillars.h"
#include "sensors/messages/messages.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace pillars {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kPoints = 300;

inline PillarNetwork small(std::int64_t sweeps) {
  PillarNetwork n;
  n.payload_bytes = static_cast<std::int64_t>(sensors::PointCloud::bytes_for(kPoints));
  n.points = kPoints;
  n.poses = 4;
  n.sweeps = sweeps;
  n.vehicle_from_sensor = {0, -1, 0, 0.5, 1, 0, 0, 0.25, 0, 0, 1, 1};
  n.range = {-6.4F, -6.4F, -2, 6.4F, 6.4F, 3};
  n.ego = {-1, -0.5F, -1, 1, 0.5F, 2};
  n.pillar = {0.4F, 0.4F};
  n.pillars = 200;
  n.points_per_pillar = 3;
  n.channels = {8, 16};
  n.convs = {1, 1};
  n.neck = 8;
  n.boxes = 20;
  return n;
}

using test::bytes_of;

// One job's inputs, in the order of the graph's.
struct Job {
  Bytes cloud, poses, pose_count, stamp, pose;
  [[nodiscard]] std::vector<Bytes> inputs(bool remembers) const {
    std::vector<Bytes> out{cloud, poses, pose_count};
    if (remembers) out.insert(out.end(), {stamp, pose});
    return out;
  }
};

enum class Kind { kStreet, kEmpty, kNoNumbers, kFarAway, kOnePlace };

inline Job job(int number, Kind kind, std::uint32_t count = kPoints) {
  std::mt19937 engine(static_cast<unsigned>(number) + 1);
  std::uniform_real_distribution<float> unit(0, 1);
  Job out;
  out.cloud.resize(sensors::PointCloud::bytes_for(kPoints));
  std::vector<std::uint64_t> room(out.cloud.size() / 8 + 8, 0x7fc0'0000'7fc0'0000);  // NaN wherever nothing is written
  auto& cloud = *new (room.data()) sensors::PointCloud;
  cloud.capacity = kPoints;
  cloud.count = kind == Kind::kEmpty ? 0 : count;
  for (std::uint32_t i = 0; i < std::min(cloud.count, kPoints); ++i) {
    float* const xyz[3] = {cloud.x() + i, cloud.y() + i, cloud.z() + i};
    for (int d = 0; d < 3; ++d) *xyz[d] = (unit(engine) - 0.5F) * (d == 2 ? 2 : 14);
    if (kind == Kind::kNoNumbers) *xyz[i % 3] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
    if (kind == Kind::kFarAway) *xyz[0] += 206494.75F;
    if (kind == Kind::kOnePlace) *xyz[0] = *xyz[1] = 3;
    cloud.intensity()[i] = unit(engine);
    cloud.time_ns()[i] = static_cast<std::int32_t>(unit(engine) * -1e8F);
  }
  std::memcpy(out.cloud.data(), room.data(), out.cloud.size());
  const double t = 0.1 * number;
  std::vector<double> poses;
  for (int i = 0; i < 4; ++i) {
    const double at = 0.05 * i - 0.1;
    poses.insert(poses.end(), {at, 4e5 + 8 * (t + at), 3, 0, std::cos(0.2 * (t + at)), 0, 0, std::sin(0.2 * (t + at))});
  }
  out.poses = bytes_of(poses);
  out.pose_count = bytes_of(std::vector<std::int32_t>{number % 3 == 2 ? 0 : 4});
  out.stamp = bytes_of(std::vector<std::int64_t>{1'700'000'000'000'000'000 + number * 100'000'000LL});
  out.pose = bytes_of(std::vector<double>{4e5 + 8 * t, 3, 0, std::cos(0.2 * t), 0, 0, std::sin(0.2 * t)});
  return out;
}

inline std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  for (const Kind kind : {Kind::kStreet, Kind::kStreet, Kind::kEmpty, Kind::kStreet, Kind::kNoNumbers, Kind::kStreet,
                          Kind::kStreet, Kind::kFarAway, Kind::kOnePlace, Kind::kStreet}) {
    jobs.push_back(job(static_cast<int>(jobs.size()), kind));
  }
  jobs.push_back(job(40, Kind::kStreet));  // three seconds without a sweep
  jobs.push_back(job(39, Kind::kStreet));  // and one out of order
  return jobs;
}

}  // namespace pillars
}  // namespace takt::compiler
