#include "pipeline/assembly/pipeline_file.h"

#include <algorithm>
#include <filesystem>

#include "pipeline/assembly/submissions.h"
#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "pipeline/models/fusion_graph.h"
#include "pipeline/models/lidar_model.h"
#include "pipeline/stages/camera_network.h"
#include "pipeline/stages/fusion_tracker.h"
#include "runtime/base/suggest.h"
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

// The rig says where the stamps of locked sensors lie. Where the table follows one of them, these stamps move in it by
// what is left between two corrections: those of the reference, and those of all others, which keep their distance from
// it. `timing`: the sensors as the rig has them.
void follow_reference(const std::vector<sched::Sensor>& timing, sched::Problem& problem) {
  const auto& lock = problem.phase_lock;
  if (!lock || lock->sensor >= timing.size() || !timing[lock->sensor].phase) return;
  const sched::Sensor& reference = timing[lock->sensor];
  const Duration jitter =
      std::max(reference.phase->jitter, sched::largest_correction(*lock, reference, problem.hyperperiod));
  for (std::size_t s = 0; s < timing.size(); ++s) {
    if (!timing[s].phase || !problem.sensors[s].phase) continue;
    problem.sensors[s].phase->jitter = s == lock->sensor ? jitter : timing[s].phase->jitter + jitter;
  }
}

// The sensor whose samples a detection stage turns into objects: its first sensor input.
std::size_t sensor_behind(const sched::Problem& problem, std::size_t stage) {
  for (const sched::Input& input : problem.stages[stage].inputs) {
    if (input.from_sensor) return input.source;
  }
  return 0;
}

// Names of sensors::PixelFormat, as in docs/model_format.md.
const std::vector<std::string> kPixelFormats{"rgb8", "bgr8", "mono8", "nv12", "bayer_rggb8"};

sensors::PixelFormat read_pixel_format(const YamlNode& params) {
  const auto node = params.find("pixel_format");
  if (!node) return sensors::PixelFormat::kRgb8;
  const std::string name = node->one_of(kPixelFormats);
  const auto at = std::find(kPixelFormats.begin(), kPixelFormats.end(), name);
  // Numbered from 1 in this order; a wrong word is an error of the document.
  return at == kPixelFormats.end() ? sensors::PixelFormat::kRgb8
                                   : static_cast<sensors::PixelFormat>(at - kPixelFormats.begin() + 1);
}

// Where a variant's contract is named, until the rig and the document are known to be sound.
struct NamedModel {
  std::size_t stage = 0, variant = 0;
  std::string contract;
  kernels::DType precision = kernels::DType::kF32;
};

bool runs_graph(const std::string& type) {
  return type == "camera_network" || type == "lidar_network" || type == "fusion_tracker";
}

// `precision` of a variant with a model.
kernels::DType read_precision(const YamlNode& variant, bool on_device) {
  const auto node = variant.find("precision");
  if (!node || node->one_of({"f32", "f16"}) != "f16") return kernels::DType::kF32;
  if (!on_device) {
    node->error(variant.find("device") ? "plans for the cores have no f16: leave out 'device: cpu' or 'precision'"
                                       : "plans for the cores have no f16: name a GPU with --device, or leave it out");
  }
  return kernels::DType::kF16;
}

// What `type`, `model`, `precision` and `device` of a stage's variants say.
void read_variants(const YamlNode& list, const std::string& pipeline_file, std::size_t stage, bool has_device,
                   StageConfig& out, std::vector<NamedModel>& models) {
  const std::vector<YamlNode> items = list.items();
  for (std::size_t v = 0; v < items.size(); ++v) {
    VariantConfig& variant = out.variants.emplace_back();
    variant.name = items[v].at("name").text();
    const auto type = items[v].find("type");
    variant.type = type ? type->one_of(stage_types()) : out.type;
    const auto place = items[v].find("device");
    variant.on_device = has_device && runs_graph(variant.type) && !place;
    if (place) (void)place->one_of({"cpu"});
    variant.params = items[v].find("params");
    if (variant.params && variant.type != "fusion_tracker") {
      variant.params->error(
          "only variants of type fusion_tracker have parameters of their own; those of a variant of type " +
          variant.type + " are the stage's");
    }
    const auto model = items[v].find("model");
    if (variant.type == "camera_network" || variant.type == "lidar_network") {
      if (!model) items[v].error("a variant of type " + variant.type + " needs 'model', the file of its model");
      const kernels::DType precision = read_precision(items[v], variant.on_device);
      if (model) models.push_back({stage, v, beside(pipeline_file, model->text()), precision});
      continue;
    }
    for (const char* const key : {"model", "precision"}) {
      const auto node = items[v].find(key);
      if (!node) continue;
      node->error("only variants of type camera_network and lidar_network have a " + std::string(key) +
                  "; this one is of type " + variant.type);
    }
  }
}

const sensors::RigSensor* sensor_of(const StageConfig& stage, sensors::SensorKind kind) {
  for (const StageConnection& connection : stage.connections) {
    if (connection.sensor != nullptr && connection.sensor->kind == kind) return connection.sensor;
  }
  return nullptr;
}

// The plan and the contract of a variant. Without a sensor of the right kind neither: creating the stage says so.
Status compile_variant(const StageConfig& stage, const NamedModel& named, const std::string& model_file,
                       const std::vector<std::uint16_t>& parts, kernels::Target target, VariantConfig* variant) {
  if (variant->type == "lidar_network") {
    const sensors::RigSensor* lidar = sensor_of(stage, sensors::SensorKind::kLidar);
    if (lidar == nullptr) return {};
    TAKT_ASSIGN(LidarModel model, load_lidar_model(named.contract, model_file));
    TAKT_ASSIGN(variant->plan, compile_lidar_model(model, *lidar, parts, target, named.precision));
    variant->model = std::make_shared<const ModelContract>(std::move(model.contract));
    return {};
  }
  const sensors::RigSensor* camera = sensor_of(stage, sensors::SensorKind::kCamera);
  if (camera == nullptr || !camera->camera) return {};
  TAKT_ASSIGN(ModelContract contract, load_model(named.contract, model_file));
  TAKT_ASSIGN(variant->plan,
              compile_model(contract, picture_of(*camera->camera, stage.pixel_format), parts, target, named.precision));
  variant->model = std::make_shared<const ModelContract>(std::move(contract));
  return {};
}

// Cores that some budget of the variant uses: what its plan is partitioned for.
std::vector<std::uint16_t> parts_of(const sched::Variant& variant) {
  std::vector<std::uint16_t> parts{1};  // what one worker does is the plan; others share it
  for (const sched::Budget& budget : variant.budgets) parts.push_back(static_cast<std::uint16_t>(budget.cores));
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

// Every key of `files` must name something that has a model.
Status check_model_files(const ModelFiles& files, const PipelineConfig& config, const std::vector<NamedModel>& models) {
  std::vector<std::string> known;
  for (const NamedModel& model : models) {
    const std::string& stage = config.stages[model.stage].name;
    if (known.empty() || std::find(known.begin(), known.end(), stage) == known.end()) known.push_back(stage);
    known.push_back(stage + "/" + config.problem.stages[model.stage].variants[model.variant].name);
  }
  for (const auto& [name, file] : files) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fail(Code::kUsage, config.file + ": no stage with a model is called '" + name + "'" +
                                  (known.empty() ? "; this pipeline has none" : did_you_mean(name, known)));
  }
  return {};
}

// A mode may leave out inputs without which a job still runs, no others.
void check_left_out(const std::vector<YamlNode>& nodes, const PipelineConfig& config) {
  for (std::size_t m = 0; m < nodes.size() && m < config.modes->modes.size(); ++m) {
    for (const sched::Stage& stage : config.modes->modes[m].problem.stages) {
      const auto whole = std::find_if(config.problem.stages.begin(), config.problem.stages.end(),
                                      [&stage](const sched::Stage& own) { return own.name == stage.name; });
      const auto s = static_cast<std::size_t>(whole - config.problem.stages.begin());
      for (std::size_t i = 0; i < whole->inputs.size(); ++i) {
        const std::string& name = whole->inputs[i].name;
        const bool kept = std::any_of(stage.inputs.begin(), stage.inputs.end(),
                                      [&name](const sched::Input& input) { return input.name == name; });
        if (kept || !config.stages[s].required[i]) continue;
        nodes[m].error("it leaves out input '" + name + "' of stage '" + stage.name +
                       "', without which that does not run: say 'required: false' there, or leave out the stage");
      }
    }
  }
}

}  // namespace

Status PipelineConfig::compile_fusion_stage(std::size_t stage, const sched::Variant& planned) {
  for (VariantConfig& variant : stages[stage].variants) {
    if (variant.name != planned.name || variant.type != "fusion_tracker") continue;
    const FusionModel model = read_fusion_model(params_of(stage, variant));
    const auto sources = fusion_sources(spec_of(stage, variant), model);
    if (!sources) continue;  // creating the stage says what is wrong
    TAKT_ASSIGN(variant.plan, compile_fusion(model, *sources, stages[stage].connections.size(), parts_of(planned),
                                             variant.on_device ? device.target : kernels::best_target()));
  }
  return {};
}

Status PipelineConfig::runs_in_mode(std::size_t stage, const sched::Stage& in_mode) const {
  for (const sched::Variant& planned : in_mode.variants) {
    const VariantConfig& variant = stages[stage].variant(planned.name);
    if (variant.type != "fusion_tracker") continue;
    StageSpec spec = spec_of(stage, variant);
    std::erase_if(spec.inputs, [&in_mode](const StageConnection& connection) {
      return std::none_of(in_mode.inputs.begin(), in_mode.inputs.end(),
                          [&](const sched::Input& input) { return input.name == connection.name; });
    });
    if (const auto sources = fusion_sources(spec, {}); !sources) return fail(sources.error());
  }
  return {};
}

Result<PipelineConfig> load_pipeline(const std::string& path, const ModelFiles& model_files, const DevicePlace& device,
                                     const std::string& board_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  const YamlNode root = document.root();
  PipelineConfig config;
  config.file = path;
  config.device = device;
  config.name = root.at("name").text();
  config.board_file = beside(path, root.at("board").text());
  if (!board_file.empty()) config.board_file = board_file;
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
  follow_reference(timing, config.problem);
  config.modes = sched::read_modes(root, config.problem);
  if (config.modes) {
    for (sched::ModeSpec& mode : config.modes->modes) follow_reference(timing, mode.problem);
  }

  std::vector<NamedModel> models;
  const std::vector<YamlNode> nodes = root.at("stages").items();
  for (std::size_t s = 0; s < nodes.size() && s < config.problem.stages.size(); ++s) {
    const sched::Stage& stage = config.problem.stages[s];
    StageConfig& out = config.stages.emplace_back();
    out.name = stage.name;
    out.type = nodes[s].at("type").one_of(stage_types());
    config.params_.push_back(nodes[s].at("params"));
    read_variants(nodes[s].at("variants"), path, s, device.device != nullptr, out, models);
    const bool looks = std::any_of(out.variants.begin(), out.variants.end(),
                                   [](const VariantConfig& variant) { return variant.type == "camera_network"; });
    if (looks) out.pixel_format = read_pixel_format(config.params_.back());
    const std::vector<YamlNode> inputs = nodes[s].at("inputs").items();
    for (std::size_t i = 0; i < inputs.size() && i < stage.inputs.size(); ++i) {
      const auto required = inputs[i].find("required");
      out.required.push_back(required ? required->boolean() : true);
      StageConnection& connection = out.connections.emplace_back();
      connection.name = stage.inputs[i].name;
      if (stage.inputs[i].from_sensor) {
        connection.sensor_index = stage.inputs[i].source;
        connection.sensor = &config.rig->sensors[connection.sensor_index];
        connection.schema = sensors::payload_schema(connection.sensor->kind);
      }
    }
    if (inputs.size() > sched::kMaxInputs) {
      nodes[s].at("inputs").error("at most " + std::to_string(sched::kMaxInputs) + " inputs per stage");
    }
  }
  // The scheduling side must be sound before stages are made from it.
  TAKT_RETURN_IF_ERROR(document.finish());
  sched::check_in_place(root, config.problem);
  if (config.modes) sched::check_in_place(root, *config.modes);
  TAKT_RETURN_IF_ERROR(document.finish());
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    const sched::Stage& stage = config.problem.stages[s];
    if (config.modes || stage.degraded_mode.empty()) continue;
    nodes[s].at("degrade_to").error("this file has no modes, and so no '" + stage.degraded_mode + "' to degrade to");
  }
  if (config.modes) check_left_out(root.at("modes").items(), config);
  TAKT_RETURN_IF_ERROR(document.finish());
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (std::size_t i = 0; i < config.stages[s].connections.size(); ++i) {
      const sched::Input& input = config.problem.stages[s].inputs[i];
      if (input.from_sensor) continue;
      StageConnection& connection = config.stages[s].connections[i];
      connection.sensor_index = sensor_behind(config.problem, input.source);
      connection.schema = kObjectListSchema;
    }
  }
  if (config.modes) {
    const std::vector<YamlNode> mode_nodes = root.at("modes").items();
    for (std::size_t m = 0; m < mode_nodes.size(); ++m) {
      for (const sched::Stage& stage : config.modes->modes[m].problem.stages) {
        const auto is = [&stage](const StageConfig& whole) { return whole.name == stage.name; };
        const auto s = std::find_if(config.stages.begin(), config.stages.end(), is) - config.stages.begin();
        const Status stands = config.runs_in_mode(static_cast<std::size_t>(s), stage);
        if (!stands) mode_nodes[m].error(stands.error().message + ", or leave the stage out of this mode");
      }
    }
    TAKT_RETURN_IF_ERROR(document.finish());
  }
  TAKT_RETURN_IF_ERROR(check_model_files(model_files, config, models));
  TAKT_ASSIGN(const sched::UnitFigures figures, sched::load_unit_figures(config.board_file));
  for (const NamedModel& model : models) {
    StageConfig& stage = config.stages[model.stage];
    VariantConfig& variant = stage.variants[model.variant];
    const sched::Variant& planned = config.problem.stages[model.stage].variants[model.variant];
    std::string file;
    for (const std::string& key : {stage.name, stage.name + "/" + planned.name}) {
      if (const auto given = model_files.find(key); given != model_files.end()) file = given->second;
    }
    TAKT_RETURN_IF_ERROR(compile_variant(stage, model, file, parts_of(planned),
                                         variant.on_device ? device.target : kernels::best_target(), &variant));
  }
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (const sched::Variant& planned : config.problem.stages[s].variants) {
      TAKT_RETURN_IF_ERROR(config.compile_fusion_stage(s, planned));
    }
    for (std::size_t v = 0; v < config.problem.stages[s].variants.size(); ++v) {
      VariantConfig& variant = config.stages[s].variants[v];
      if (variant.on_device && variant.plan && device.judged) {
        variant.submissions = submissions_of(config, s, v, figures, model_files, nodes[s].at("variants").items()[v]);
      }
      const auto stage = config.create(s, v);
      if (!stage) {
        return fail(Code::kConfiguration, path + ": stage '" + config.stages[s].name + "': " + stage.error().message);
      }
      const sched::Stage& planned_stage = config.problem.stages[s];
      if (planned_stage.overrun == sched::OverrunPolicy::kAbort && (*stage)->phases() < 2) {
        nodes[s].at("overrun").error("variant '" + planned_stage.variants[v].name + "' (" +
                                     config.stages[s].variant(planned_stage.variants[v].name).type +
                                     ") runs in one step, so that a job of it can be given up nowhere: choose "
                                     "skip_next, continue_late or degrade");
      }
    }
  }
  TAKT_RETURN_IF_ERROR(document.finish());
  return config;
}

}  // namespace takt::pipeline
