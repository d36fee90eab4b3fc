#include "pipeline/stages/stage.h"

#include "pipeline/stages/camera_classical.h"
#include "pipeline/stages/fusion_tracker.h"
#include "pipeline/stages/lidar_classical.h"
#include "pipeline/stages/radar_cluster.h"
#include "runtime/base/suggest.h"

namespace takt::pipeline {

const std::vector<std::string>& stage_types() {
  static const std::vector<std::string> types{"camera_classical", "lidar_classical", "radar_cluster", "fusion_tracker"};
  return types;
}

Result<std::unique_ptr<Stage>> create_stage(const StageSpec& spec, const YamlNode& params) {
  static const std::vector<std::string> variants{"full", "lite"};
  if (spec.variant != "full" && spec.variant != "lite") {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' has no variant '" + spec.variant + "'" +
                                          did_you_mean(spec.variant, variants));
  }
  if (spec.type == "camera_classical") return create_camera_classical(spec, read_camera_config(params));
  if (spec.type == "lidar_classical") return create_lidar_classical(spec, read_lidar_config(params));
  if (spec.type == "radar_cluster") return create_radar_cluster(spec, read_radar_config(params));
  if (spec.type == "fusion_tracker") return create_fusion_tracker(spec, read_fusion_parameters(params));
  return fail(Code::kConfiguration, "stage '" + spec.name + "' has the unknown type '" + spec.type + "'" +
                                        did_you_mean(spec.type, stage_types()));
}

}  // namespace takt::pipeline
