// A perception function as the scheduler runs it: fixed phases over fixed capacities, no allocation after create().
//
// A job runs phase 0, 1, ... in order. Between two phases all parts of the gang meet, so a phase may read whatever an
// earlier phase wrote. In a `parallel` phase part p of k works on its share; results must not depend on k (byte for
// byte). In a serial phase only part 0 works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/messages/messages.h"
#include "pipeline/models/contract.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/yaml.h"
#include "runtime/exec/offload.h"
#include "runtime/transport/chunk.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::exec {
class CountLog;
}  // namespace takt::exec

namespace takt::pipeline {

// One latched input. chunk is empty when missing.
struct StageInput {
  transport::ChunkView chunk;
  bool repeat = false;  // a sensor sample that an earlier job used already
  bool held = false;    // an older producer job's output (hold(n))
};

// What a job sees. Output: payload capacity is output_bytes(); header.sources, capture and payload_bytes are set by
// the stage's last phase through `output_header`.
struct StageJob {
  std::uint64_t number = 0;
  SensorTime now;                      // end of the slot in sensor time: what a track list is predicted to
  std::span<const StageInput> inputs;  // in the order of the pipeline file
  transport::ChunkHeader* output_header = nullptr;
  std::byte* output = nullptr;
  bool repaired = false;  // out: a bad frame was repaired or left out by a stated rule
  bool failed = false;    // out: the stage's device refused the work or was lost; there is nothing to publish
  // Out, of a job on a device: until the work was handed over, and from its first piece to its last by the device's
  // clock.
  Duration launch, on_device;
};

class Stage {
 public:
  virtual ~Stage() = default;
  [[nodiscard]] virtual int phases() const = 0;
  [[nodiscard]] virtual bool parallel(int phase) const = 0;
  // Worker threads. Deterministic: equal inputs and state give equal bytes for any `parts`.
  virtual void run(int phase, int part, int parts, StageJob& job) = 0;
  // State is double-buffered: published() makes this job's state the current one; without it the last one stays.
  virtual void published() {}
  [[nodiscard]] virtual std::uint32_t output_schema() const = 0;
  [[nodiscard]] virtual std::uint64_t output_bytes() const = 0;
  // Fills chunks with the most expensive input of the declared capacity, for `takt profile`; input i of `inputs`.
  virtual void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                 std::span<std::byte> payload) const = 0;
  // Of a plan on a device beside the cores; nullptr: there is none. Once the device is lost, no job can run.
  [[nodiscard]] virtual exec::Offload* offload() const { return nullptr; }
  // The first phase that comes behind its work: whoever gives that a slot of its own begins it between this phase and
  // the one before, and runs this phase when it has ended. Without, this phase waits for it. 0: there is no device.
  [[nodiscard]] virtual int behind_device() const { return 0; }
  // The plan it runs, with the times of its steps; nullptr for stages that are plain code.
  [[nodiscard]] virtual exec::Session* session() { return nullptr; }
  // What that plan counted, job by job; nullptr: nothing.
  [[nodiscard]] virtual const exec::CountLog* counts() const { return nullptr; }
};

// How an input of a stage is connected: to a sensor of the rig, or to a stage whose objects come from a sensor.
struct StageConnection {
  std::string name;                            // input name of the pipeline file
  const sensors::RigSensor* sensor = nullptr;  // direct sensor input
  std::size_t sensor_index = 0;                // in the rig; for stage inputs: of the sensor behind an object list
  std::uint32_t schema = 0;                    // payload that arrives
};

// Types: "camera_classical", "camera_network", "lidar_classical", "lidar_network", "radar_cluster", "fusion_tracker".
// Reads its parameters from `params` (errors are collected in the document) and allocates everything it will ever use.
struct StageSpec {
  std::string type;
  std::string variant;  // "full", "lite", "classical"
  std::string name;
  std::vector<StageConnection> inputs;
  const sensors::Rig* rig = nullptr;
  // camera_network, lidar_network: its plan, compiled for pictures of the camera in this format or for clouds of the
  // LiDAR, and the contract of its model.
  // fusion_tracker: its plan, compiled for its inputs and parameters.
  // lidar_network, fusion_tracker: what survives its jobs, where variants share it, on the cores or on the device.
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<exec::StateStore> state;
  std::shared_ptr<const ModelContract> model;
  sensors::PixelFormat pixel_format = sensors::PixelFormat::kRgb8;
  std::span<std::byte>
      arena;  // for the plan, shared with stages that never run at the same time; empty: one of its own
  std::shared_ptr<exec::Accelerator> accelerator;  // where the plan is for a device and not for the cores
  exec::Submissions submissions;                   // there
};
Result<std::unique_ptr<Stage>> create_stage(const StageSpec& spec, const YamlNode& params);

// Known type names, for "did you mean".
const std::vector<std::string>& stage_types();

}  // namespace takt::pipeline
