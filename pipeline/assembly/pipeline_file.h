// A pipeline file with the rig and the board it names: what shall run, on what, from which sensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/models/contract.h"
#include "pipeline/stages/stage.h"
#include "runtime/base/status.h"
#include "runtime/base/yaml.h"
#include "runtime/exec/offload.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct Bundle;
struct BoardPipeline;

// The perception side of a variant. A variant may be of another type than its stage, and names its own model.
struct VariantConfig {
  std::string name;
  std::string type;
  // camera_network: the model's contract, and its plan for the pictures of the stage's camera. fusion_tracker: the plan
  // of its graph.
  std::shared_ptr<const ModelContract> model;
  std::shared_ptr<const plan::Plan> plan;
  bool on_device = false;          // the plan is for PipelineConfig::device
  exec::Submissions submissions;   // there
  std::optional<YamlNode> params;  // of this variant instead of the stage's; a bundle has them in the plan
};

// What graphs run on instead of the cores, and how chunks get there. Without a device: on the cores.
struct DevicePlace {
  std::shared_ptr<device::Device> device;
  kernels::Target target = kernels::Target::kCudaSm87;  // that it can run
  exec::Exchange exchange = exec::Exchange::kInPlace;
  bool judged =
      true;  // plans are cut by the board's guard and budgets are held against that; false: plans are looked at
};

// The perception side of a stage; its scheduling side is Problem::stages[i].
struct StageConfig {
  std::string name;
  std::string type;                                                 // of variants that name no other
  std::vector<VariantConfig> variants;                              // by name: what-ifs may leave fewer in the problem
  sensors::PixelFormat pixel_format = sensors::PixelFormat::kRgb8;  // of the pictures that plans are compiled for
  std::vector<StageConnection> connections;                         // by input
  std::vector<bool> required;  // by input: a job without it does not run (class `missing`)
  [[nodiscard]] std::string topic() const { return "/stage/" + name; }
  [[nodiscard]] const VariantConfig& variant(const std::string& variant_name) const;
};

// ONNX files that replace those of the contracts: by "stage", or "stage/variant" for one of them.
using ModelFiles = std::map<std::string, std::string>;

struct PipelineConfig {
  std::string name;
  std::string file, rig_file, board_file;
  std::shared_ptr<const sensors::Rig> rig;
  sched::Problem problem;               // problem.sensors[i] is rig sensor i
  std::optional<sched::ModeSet> modes;  // where the file declares any
  std::vector<StageConfig> stages;      // by stage, as in problem.stages
  DevicePlace device;

  // Creates the stage in the given variant; allocates everything it will ever use, but a plan's arena and state if they
  // are given. kConfiguration when the state is of another form than the plan's.
  // `accelerator`: of this pipeline's device, for a variant that runs on it; nullptr: one that knows no chunks.
  [[nodiscard]] Result<std::unique_ptr<Stage>> create(std::size_t stage, std::size_t variant,
                                                      std::span<std::byte> arena = {},
                                                      const std::shared_ptr<exec::Accelerator>& accelerator = nullptr,
                                                      std::shared_ptr<exec::StateStore> state = nullptr) const;
  [[nodiscard]] const YamlNode& params(std::size_t stage) const { return params_[stage]; }

 private:
  [[nodiscard]] StageSpec spec_of(std::size_t stage, const VariantConfig& chosen) const;
  [[nodiscard]] const YamlNode& params_of(std::size_t stage, const VariantConfig& chosen) const {
    return chosen.params ? *chosen.params : params_[stage];
  }
  Status compile_fusion_stage(std::size_t stage, const sched::Variant& planned);
  // Whether the stage can do its work with the inputs and in the variants that a mode leaves it.
  [[nodiscard]] Status runs_in_mode(std::size_t stage, const sched::Stage& in_mode) const;
  friend Result<BoardPipeline> pipeline_of(const Bundle& bundle);
  friend Result<PipelineConfig> load_pipeline(const std::string& path, const ModelFiles& model_files,
                                              const DevicePlace& device, const std::string& board_file);
  std::vector<YamlNode> params_;  // by stage
};

// Reads the pipeline file, its rig, its board and its models, compiles the models, and creates every stage variant
// once, so that every error of every file is reported here (kConfiguration) and none later. With a `device` all graphs
// (networks, fusion) are compiled for it, but in variants that say `device: cpu`. `board_file`: another one than the
// file names.
Result<PipelineConfig> load_pipeline(const std::string& path, const ModelFiles& model_files = {},
                                     const DevicePlace& device = {}, const std::string& board_file = "");

}  // namespace takt::pipeline
