#include "pipeline/models/compile_model.h"

#include <span>

#include "pipeline/models/contract_file.h"
#include "pipeline/models/detection_head.h"

namespace takt::pipeline {
namespace {

const char* format_name(kernels::PixelSource format) {
  switch (format) {
    case kernels::PixelSource::kRgb8: return "rgb8";
    case kernels::PixelSource::kBgr8: return "bgr8";
    case kernels::PixelSource::kMono8: return "mono8";
    case kernels::PixelSource::kNv12: return "nv12";
    case kernels::PixelSource::kBayerRggb8: return "bayer_rggb8";
  }
  return "";
}

std::vector<NamedTensor> tensors_of(const ir::Graph& graph, const std::vector<ir::ValueId>& ids) {
  std::vector<NamedTensor> out;
  for (const ir::ValueId id : ids) {
    const ir::Value& value = graph[id];
    if (value.type) out.push_back({value.name, value.type->dtype, value.type->shape});
  }
  return out;
}

}  // namespace

compiler::Preprocess preprocess_for(const ModelInput& input, const CameraPicture& picture) {
  const kernels::Preprocess geometry = preprocess_of(input, picture);
  compiler::Preprocess preprocess;
  preprocess.tensor = input.tensor;
  preprocess.format = format_name(picture.format);
  preprocess.width = picture.width;
  preprocess.height = picture.height;
  preprocess.pitch = picture.pitch;
  preprocess.offset = static_cast<std::int64_t>(picture.offset);
  preprocess.chroma_offset = static_cast<std::int64_t>(geometry.chroma_offset);
  preprocess.chroma_pitch = geometry.chroma_pitch;
  preprocess.payload_bytes = static_cast<std::int64_t>(picture_bytes(picture));
  preprocess.letterbox = input.fit == kernels::Fit::kLetterbox;
  preprocess.pad = static_cast<float>(input.pad);
  preprocess.colour = input.colour == kernels::ColourOrder::kBgr ? "bgr" : "rgb";
  preprocess.scale = static_cast<float>(input.scale);
  for (std::size_t c = 0; c < 3; ++c) {
    preprocess.mean[c] = static_cast<float>(input.mean[c]);
    preprocess.std[c] = static_cast<float>(input.std[c]);
  }
  return preprocess;
}

Result<std::shared_ptr<const plan::Plan>> compile_model(const ModelContract& contract, const CameraPicture& picture,
                                                        const std::vector<std::uint16_t>& parts, kernels::Target target,
                                                        kernels::DType precision) {
  TAKT_ASSIGN(const std::string file, read_model_file(contract));
  TAKT_ASSIGN(const Digest contract_digest, digest_file(contract.contract_file));
  const ModelInput& input = contract.input;
  compiler::Options options;
  options.name = contract.name;
  options.contract = contract_digest;
  options.parts = parts;
  options.target = target;
  options.precision = precision;
  options.loops = contract.loops;
  options.states = contract.states;
  options.input_shapes[input.tensor] = {4, {1, 3, input.height, input.width}};
  options.preprocess = preprocess_for(input, picture);

  // Shapes are compared where they still are those of the file: after import.
  Status fits;
  options.after_pass = [&](std::string_view pass, const ir::Graph& graph) {
    if (pass != "import") return;
    fits = check_input(contract, tensors_of(graph, graph.inputs));
    if (!fits) return;
    const std::vector<NamedTensor> outputs = tensors_of(graph, graph.outputs);
    const auto head = DetectionHead::create(contract, outputs, picture.width, picture.height);
    if (!head) fits = fail(head.error());
  };
  auto compiled = compiler::compile_onnx(std::as_bytes(std::span(file.data(), file.size())), options);
  TAKT_RETURN_IF_ERROR(fits);
  if (!compiled) return fail(std::move(compiled).error().with_context(contract.file));
  return plan::Plan::parse(*compiled);
}

}  // namespace takt::pipeline
