// From a model to a plan: import, passes, lowering, memory plan, file bytes. The one entry for the command and the
// pipeline.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "kernels/kernel.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

namespace takt::compiler {

// A camera image's way into a network: becomes a takt.Preprocess in front of the network's input. The plan's input is
// then the payload of the image chunk, u8[payload_bytes]; its name stays that of the network's input.
struct Preprocess {
  std::string tensor;              // input of the network it feeds, f32[1,3,height,width]; empty: its only input
  std::string format = "rgb8";     // rgb8, bgr8, mono8, nv12, bayer_rggb8
  std::int64_t width = 0;          // of the image, pixels
  std::int64_t height = 0;         // of the image, pixels
  std::int64_t pitch = 0;          // bytes from row to row
  std::int64_t offset = 0;         // of pixel (0, 0) in the payload, bytes
  std::int64_t chroma_offset = 0;  // nv12: of the chroma plane in the payload, bytes
  std::int64_t chroma_pitch = 0;   // nv12: bytes from chroma row to chroma row
  std::int64_t payload_bytes = 0;  // of the image chunk
  bool letterbox = false;          // keep the aspect and pad, instead of stretching
  float pad = 0;                   // letterbox: value of the border, in the image's units (0 to 255)
  std::string colour = "rgb";      // order of the network's channels: rgb, bgr
  float scale = 1;                 // input = (value * scale - mean) / std, per channel of the network
  std::array<float, 3> mean = {0, 0, 0};
  std::array<float, 3> std = {1, 1, 1};
};

// Attributes of the takt.Preprocess that it becomes, without the extents of its output (out_width, out_height).
std::map<std::string, ir::Attribute> attributes_of(const Preprocess& p);

struct Options {
  kernels::Target target = kernels::best_target();
  // What the images inside a network and their weights are held in: f32, or f16 (CUDA targets alone), each result
  // computed in f32 and rounded once. Inputs, outputs, state and everything row-major stay f32.
  kernels::DType precision = kernels::DType::kF32;
  std::vector<std::uint16_t> parts = {1, 2};  // workers that the plan admits: 1, then ascending to 64
  std::string source;                         // the file's name, for messages
  std::string folder;                         // of the model, for weights that lie beside it; empty: those are refused
  std::map<std::string, std::int64_t> dims;   // values of the model's symbolic dimensions, by name
  // Whole shapes of the model's inputs, by input; they fix symbolic dimensions too.
  std::map<std::string, kernels::Shape> input_shapes;
  std::map<std::string, std::int64_t>
      loops;  // the most trips of a Loop, by its node's name, where the model does not say
  std::map<std::string, std::string> states;  // inputs that are state, and the outputs that continue them
  std::string name;                           // of the plan; empty: the graph's
  Digest contract;                            // stored in the plan
  std::optional<Preprocess> preprocess;
  // Called with what a user may not expect of a model, but can be right. One line.
  std::function<void(const std::string& text)> note;
  std::function<void(const std::string& file)> reads;  // with each file below `folder` that holds weights
  bool optimise = true;                                // false: the graph is lowered as it was imported
  // Compiling ends with kInterrupted soon after this becomes true; nullptr: never.
  const std::atomic<bool>* stop = nullptr;
  // Called after import ("import") and after every pass (their names: compiler/passes).
  std::function<void(std::string_view pass, const ir::Graph& graph)> after_pass;
};

// The bytes of a plan file, verified by its loader. The same model and options give the same bytes on every machine.
// kInput: the model cannot be read, has unsupported operators (all listed at once), or dimensions that are not fixed;
// kUsage: options that do not fit the model, or parts that no plan may have, naming what was expected and found.
Result<std::vector<std::byte>> compile_onnx(std::span<const std::byte> onnx, const Options& options);
// The same for a graph built by other means; `source` is stored in the plan.
Result<std::vector<std::byte>> compile(ir::Graph graph, const Digest& source, const Options& options);

}  // namespace takt::compiler
