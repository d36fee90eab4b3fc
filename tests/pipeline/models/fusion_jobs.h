// Jobs of the fusion graph: what two sensors give on a road.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/operators.h"
#include "pipeline/messages/messages.h"
#include "pipeline/models/fusion_graph.h"

namespace takt::pipeline {

inline std::vector<kernels::ListSource> lidar_and_radar() {
  kernels::ListSource lidar, radar;
  radar.modality = 1;
  radar.sensor = 3;
  radar.x = 3.5;
  radar.bearing_sigma = 0.03;
  return {lidar, radar};
}

// Bytes of a job's inputs by name.
class Job {
 public:
  explicit Job(const ir::Graph& graph) {
    for (const ir::ValueId id : graph.inputs) {
      values_[graph[id].name] = ir::Constant::allocate(graph[id].type->dtype, graph[id].type->shape);
    }
  }
  template <class T>
  T* at(const std::string& name) {
    return reinterpret_cast<T*>(values_.at(name).bytes.data());
  }
  [[nodiscard]] std::vector<ir::Constant> in_order(const ir::Graph& graph) const {
    std::vector<ir::Constant> out;
    for (const ir::ValueId id : graph.inputs) out.push_back(values_.at(graph[id].name));
    return out;
  }

 private:
  std::map<std::string, ir::Constant> values_;
};

// Cars on three lanes, seen by both sensors in turn; in some jobs one is absent, or late.
inline Job job_of(const ir::Graph& graph, int n, std::mt19937& random) {
  Job job(graph);
  const auto noise = [&] { return 0.2F * (static_cast<float>(random() % 1000) / 500 - 1); };
  const std::int64_t now = (n + 1) * std::int64_t{100'000'000};
  for (int k = 0; k < 2; ++k) {
    const std::string name = std::to_string(k);
    const bool there = (n + k) % 5 != 0;
    job.at<std::int64_t>("stamps")[k] =
        there ? now - 40'000'000 + 20'000'000 * k - (n % 7 == 3 ? 90'000'000 : 0) : kernels::kNever;
    job.at<std::int64_t>("list_rows_" + name)[1] = there ? k : -1;
    if (!there) continue;
    auto& list = *job.at<ObjectList>("list_" + name);
    for (int i = 0; i < 20; ++i) {
      Object& o = list.objects[i];
      o.x = 6.0F * static_cast<float>(i) - 50 + 0.3F * static_cast<float>(n * (i % 3)) + noise();
      o.y = 4.0F * static_cast<float>(i % 3) - 4 + noise();
      o.flags = kHasPosition | (k == 0 ? std::uint32_t{kHasBox} : std::uint32_t{kHasRangeRate});
      o.length = 4.4F, o.width = 1.8F, o.height = 1.5F, o.yaw = noise();
      o.object_class = ObjectClass::kVehicle;
      o.ray_x = 1;
      o.range_rate = static_cast<float>(i % 3) * 3;
    }
    job.at<std::int64_t>("list_rows_" + name)[0] = 20;
  }
  job.at<std::int64_t>("stamps")[2] = now;
  *job.at<std::int64_t>("ego_stamp") = n % 3 == 0 ? kernels::kNever : now - 5'000'000;
  auto& ego = *job.at<kernels::EgoReading>("ego_sample");
  ego = {};
  ego.position[0] = 1.2 * n;
  ego.velocity[0] = 12;
  return job;
}

}  // namespace takt::pipeline
