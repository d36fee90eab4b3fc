#include "pipeline/assembly/pipeline_file.h"

#include <filesystem>

#include "scheduler/dispatch/record.h"
#include "scheduler/model/yaml.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {
namespace {

// Files are named relative to the pipeline file, so that a configuration can be moved as a whole.
std::string beside(const std::string& pipeline_file, const std::string& name) {
  const std::filesystem::path path(name);
  if (name.empty() || path.is_absolute()) return name;
  return (std::filesystem::path(pipeline_file).parent_path() / path).lexically_normal().string();
}

// Samples of a locked sensor are stamped to the nanosecond: the rounding of its period is all that remains.
constexpr Duration kStampRounding{1};

sched::Sensor timing_of(const sensors::RigSensor& sensor) {
  sched::Sensor out;
  out.name = sensor.name;
  out.period = sensor.period;
  out.delay_min = sensor.delay_min();
  out.delay_max = sensor.delay_max();
  out.drift_ppm = sensor.drift_ppm;
  if (sensor.phase) out.phase = sched::Sensor::Phase{*sensor.phase, kStampRounding};
  return out;
}

// The sensor whose samples a detection stage turns into objects: its first sensor input.
std::size_t sensor_behind(const sched::Problem& problem, std::size_t stage) {
  for (const sched::Input& input : problem.stages[stage].inputs) {
    if (input.from_sensor) return input.source;
  }
  return 0;
}

}  // namespace

std::uint32_t payload_schema(sensors::SensorKind kind) {
  switch (kind) {
    case sensors::SensorKind::kCamera: return sensors::kImageSchema;
    case sensors::SensorKind::kLidar: return sensors::kPointCloudSchema;
    case sensors::SensorKind::kRadar: return sensors::kRadarScanSchema;
    case sensors::SensorKind::kEgo: return sensors::kEgoMotionSchema;
  }
  return 0;
}

std::uint64_t payload_capacity(const sensors::RigSensor& sensor) {
  switch (sensor.kind) {
    case sensors::SensorKind::kCamera: return sensors::Image::bytes_for(sensor.camera->width, sensor.camera->height, 3);
    case sensors::SensorKind::kLidar: return sensors::PointCloud::bytes_for(sensor.capacity);
    case sensors::SensorKind::kRadar: return sensors::RadarScan::bytes_for(sensor.capacity);
    case sensors::SensorKind::kEgo: return sensors::EgoMotion::bytes_for();
  }
  return 0;
}

Result<std::unique_ptr<Stage>> PipelineConfig::create(std::size_t stage, std::size_t variant) const {
  StageSpec spec;
  spec.type = stages[stage].type;
  spec.variant = problem.stages[stage].variants[variant].name;
  spec.name = stages[stage].name;
  spec.inputs = stages[stage].connections;
  spec.rig = rig.get();
  return create_stage(spec, params_[stage]);
}

Result<PipelineConfig> load_pipeline(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  const YamlNode root = document.root();
  PipelineConfig config;
  config.file = path;
  config.name = root.at("name").text();
  config.board_file = beside(path, root.at("board").text());
  config.rig_file = beside(path, root.at("rig").text());
  if (config.board_file.empty() || config.rig_file.empty()) {
    TAKT_RETURN_IF_ERROR(document.finish());
  }
  TAKT_ASSIGN(sensors::Rig rig, sensors::load_rig(config.rig_file));
  config.rig = std::make_shared<const sensors::Rig>(std::move(rig));
  TAKT_ASSIGN(const sched::Board board, sched::load_board(config.board_file));
  std::vector<sched::Sensor> timing;
  for (const sensors::RigSensor& sensor : config.rig->sensors) timing.push_back(timing_of(sensor));
  config.problem = sched::read_problem(root, config.name, board, timing);

  const std::vector<YamlNode> nodes = root.at("stages").items();
  for (std::size_t s = 0; s < nodes.size() && s < config.problem.stages.size(); ++s) {
    const sched::Stage& stage = config.problem.stages[s];
    StageConfig& out = config.stages.emplace_back();
    out.name = stage.name;
    out.type = nodes[s].at("type").one_of(stage_types());
    config.params_.push_back(nodes[s].at("params"));
    const std::vector<YamlNode> inputs = nodes[s].at("inputs").items();
    for (std::size_t i = 0; i < inputs.size() && i < stage.inputs.size(); ++i) {
      const auto required = inputs[i].find("required");
      out.required.push_back(required ? required->boolean() : true);
      StageConnection& connection = out.connections.emplace_back();
      connection.name = stage.inputs[i].name;
      if (stage.inputs[i].from_sensor) {
        connection.sensor_index = stage.inputs[i].source;
        connection.sensor = &config.rig->sensors[connection.sensor_index];
        connection.schema = payload_schema(connection.sensor->kind);
      }
    }
    if (inputs.size() > sched::kMaxInputs) {
      nodes[s].at("inputs").error("at most " + std::to_string(sched::kMaxInputs) + " inputs per stage");
    }
  }
  // The scheduling side must be sound before stages are made from it.
  TAKT_RETURN_IF_ERROR(document.finish());
  if (const Status sound = sched::check(config.problem); !sound) {
    return fail(Code::kConfiguration, path + ": " + sound.error().message);
  }
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (std::size_t i = 0; i < config.stages[s].connections.size(); ++i) {
      const sched::Input& input = config.problem.stages[s].inputs[i];
      if (input.from_sensor) continue;
      StageConnection& connection = config.stages[s].connections[i];
      connection.sensor_index = sensor_behind(config.problem, input.source);
      connection.schema = kObjectListSchema;
    }
  }
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (std::size_t v = 0; v < config.problem.stages[s].variants.size(); ++v) {
      if (auto stage = config.create(s, v); !stage) {
        return fail(Code::kConfiguration, path + ": stage '" + config.stages[s].name + "': " + stage.error().message);
      }
    }
  }
  TAKT_RETURN_IF_ERROR(document.finish());
  return config;
}

}  // namespace takt::pipeline
