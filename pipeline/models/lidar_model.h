// Networks of LiDARs: their model file (docs/model_format.md, "LiDAR") and its way to a plan. Host only (yaml-cpp,
// compiler).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/nets/pillars.h"
#include "pipeline/models/contract.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct LidarModel {
  ModelContract contract;  // name, licence, classes; file and hash of an ONNX file, empty when takt builds the network
  compiler::PillarNetwork network;  // what takt builds; also the capacities that are printed beside its counts
};

// kConfiguration with every error of the file at once; `model_file` replaces the file that it names.
Result<LidarModel> load_lidar_model(const std::string& path, const std::string& model_file = "");
Result<LidarModel> parse_lidar_model(const std::string& text, const std::string& name);

// The plan for clouds of this sensor. `target`: of this machine's cores, or a device's, which may have kF16.
// kConfiguration when an ONNX file is not there or is another one; kInput when it cannot be compiled, or sizes do not
// fit each other.
Result<std::shared_ptr<const plan::Plan>> compile_lidar_model(const LidarModel& model, const sensors::RigSensor& lidar,
                                                              const std::vector<std::uint16_t>& parts,
                                                              kernels::Target target = kernels::best_target(),
                                                              kernels::DType precision = kernels::DType::kF32);

}  // namespace takt::pipeline
