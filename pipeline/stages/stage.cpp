#include "pipeline/stages/stage.h"

#include <algorithm>

#include "pipeline/stages/camera_classical.h"
#include "pipeline/stages/camera_network.h"
#include "pipeline/stages/fusion_tracker.h"
#include "pipeline/stages/lidar_classical.h"
#include "pipeline/stages/lidar_network.h"
#include "pipeline/stages/radar_cluster.h"
#include "runtime/base/suggest.h"

namespace takt::pipeline {

namespace {

// Of plain code; variants of a graph are its plans, by any name. "classical" is camera_classical's "full" beside
// networks.
const std::vector<std::string>& variants_of(const std::string& type) {
  static const std::vector<std::string> camera{"full", "lite", "classical"};
  static const std::vector<std::string> others{"full"};
  return type == "camera_classical" ? camera : others;
}

}  // namespace

const std::vector<std::string>& stage_types() {
  static const std::vector<std::string> types{"camera_classical", "camera_network", "lidar_classical",
                                              "lidar_network",    "radar_cluster",  "fusion_tracker"};
  return types;
}

Result<std::unique_ptr<Stage>> create_stage(const StageSpec& spec, const YamlNode& params) {
  if (std::find(stage_types().begin(), stage_types().end(), spec.type) == stage_types().end()) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' has the unknown type '" + spec.type + "'" +
                                          did_you_mean(spec.type, stage_types()));
  }
  if (spec.type == "camera_network") return create_camera_network(spec, read_network_config(params));
  if (spec.type == "lidar_network") return create_lidar_network(spec, read_lidar_network_config(params));
  if (spec.type == "fusion_tracker") {
    read_fusion_model(params);  // its numbers are in the plan; errors are the document's
    return create_fusion_tracker(spec);
  }
  const std::vector<std::string>& variants = variants_of(spec.type);
  if (std::find(variants.begin(), variants.end(), spec.variant) == variants.end()) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (" + spec.type + ") has no variant '" + spec.variant +
                                          "'" + did_you_mean(spec.variant, variants));
  }
  if (spec.type == "camera_classical") return create_camera_classical(spec, read_camera_config(params));
  if (spec.type == "lidar_classical") return create_lidar_classical(spec, read_lidar_config(params));
  return create_radar_cluster(spec, read_radar_config(params));
}

}  // namespace takt::pipeline
