#include "compiler/compile.h"

#include <algorithm>
#include <functional>

#include "compiler/ir/operators.h"
#include "compiler/lower/lower.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/passes.h"
#include "runtime/plan/plan.h"

namespace takt::compiler {
namespace {

std::string names_of(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  std::string names;
  for (const ir::ValueId value : values) names += (names.empty() ? "" : ", ") + ir::printable(graph[value].name);
  return names;
}

// What a loader demands of them, before any work is spent.
Status check_parts(const std::vector<std::uint16_t>& parts) {
  std::string list;
  for (const std::uint16_t k : parts) list += (list.empty() ? "" : ",") + std::to_string(k);
  if (!parts.empty() && parts.front() == 1 && parts.back() <= 64 &&
      std::adjacent_find(parts.begin(), parts.end(), std::greater_equal<>()) == parts.end()) {
    return {};
  }
  return fail(Code::kUsage,
              "the numbers of workers (parts) are to ascend from 1 to at most 64, as in 1,2,4; given is " +
                  (list.empty() ? "none" : list));
}

Status check_precision(kernels::DType precision, kernels::Target target) {
  const std::string name = kernels::name_of(precision);
  if (precision != kernels::DType::kF32 && precision != kernels::DType::kF16) {
    return fail(Code::kUsage, "the precision is f32 or f16, not " + name);
  }
  if (precision == kernels::DType::kF32 || kernels::is_cuda(target)) return {};
  return fail(Code::kUsage, std::string(kernels::name_of(target)) + " has no kernels in " + name +
                                ": compile for cuda:sm_87 or cuda:sm_90, or in f32");
}

// Puts takt.Preprocess in front of an input of the network; the image's payload becomes the input in its place.
Status add_preprocess(ir::Graph& graph, const Preprocess& p) {
  std::size_t index = 0;
  if (!p.tensor.empty()) {
    while (index < graph.inputs.size() && graph[graph.inputs[index]].name != p.tensor) ++index;
  }
  if (index >= graph.inputs.size() || (p.tensor.empty() && graph.inputs.size() != 1)) {
    return fail(Code::kUsage, "the image is to feed " +
                                  (p.tensor.empty() ? "the network's only input" : "input '" + p.tensor + "'") +
                                  ", the network has: " + names_of(graph, graph.inputs));
  }
  const ir::ValueId network = graph.inputs[index];
  const ir::Type& type = *graph[network].type;
  if (type.dtype != ir::DType::kF32 || type.shape.rank != 4 || type.shape.dims[0] != 1 || type.shape.dims[1] != 3) {
    return fail(Code::kUsage, "an image feeds f32[1,3,height,width]; input '" + ir::printable(graph[network].name) +
                                  "' is " + to_string(type));
  }
  if (p.payload_bytes < 1 || p.payload_bytes > ir::kMaxElements) {
    return fail(Code::kUsage, "an image chunk of " + std::to_string(p.payload_bytes) + " bytes");
  }
  ir::Node node;
  node.op = "takt.Preprocess";
  node.name = "preprocess";
  node.attributes = attributes_of(p);
  node.attributes["out_width"] = type.shape.dims[3];
  node.attributes["out_height"] = type.shape.dims[2];
  ir::Type image;
  image.dtype = ir::DType::kU8;
  image.shape = {1, {p.payload_bytes}};
  const std::string name = graph[network].name;
  graph[network].name = name + ":network";
  graph.inputs[index] = graph.add_value(name, image);
  node.inputs = {graph.inputs[index]};
  node.outputs = {network};
  const auto inferred = ir::infer(graph, node);
  if (!inferred) return fail(Code::kUsage, inferred.error().message);
  graph.nodes.insert(graph.nodes.begin(), std::move(node));
  return ir::verify(graph);
}

}  // namespace

std::map<std::string, ir::Attribute> attributes_of(const Preprocess& p) {
  std::map<std::string, ir::Attribute> out = {{"format", p.format},
                                              {"width", p.width},
                                              {"height", p.height},
                                              {"pitch", p.pitch},
                                              {"offset", p.offset},
                                              {"mode", std::string(p.letterbox ? "letterbox" : "plain")},
                                              {"pad", p.pad},
                                              {"colour", p.colour},
                                              {"scale", p.scale},
                                              {"mean", std::vector<float>(p.mean.begin(), p.mean.end())},
                                              {"std", std::vector<float>(p.std.begin(), p.std.end())}};
  if (p.format == "nv12") {
    out["chroma_offset"] = p.chroma_offset;
    out["chroma_pitch"] = p.chroma_pitch;
  }
  return out;
}

Result<std::vector<std::byte>> compile(ir::Graph graph, const Digest& source, const Options& options) {
  TAKT_RETURN_IF_ERROR(check_parts(options.parts));
  TAKT_RETURN_IF_ERROR(check_precision(options.precision, options.target));
  const auto after = [&](std::string_view pass) {
    if (options.after_pass) options.after_pass(pass, graph);
  };
  after("import");
  const auto operators_before = static_cast<std::uint32_t>(graph.nodes.size());
  if (options.preprocess) {
    TAKT_RETURN_IF_ERROR(add_preprocess(graph, *options.preprocess));
    after("preprocess");
  }
  if (options.optimise) {
    TAKT_RETURN_IF_ERROR(run_passes(graph, {.after = options.after_pass, .stop = options.stop}));
  }
  TAKT_ASSIGN(lower::Lowered lowered, lower::lower(graph, {.target = options.target,
                                                           .precision = options.precision,
                                                           .parts = options.parts,
                                                           .stop = options.stop}));
  plan::Description& d = lowered.description;
  d.name = options.name.empty() ? graph.name : options.name;
  d.source = source;
  d.contract = options.contract;
  d.statistics.operators_before = operators_before;
  d.statistics.operators_after = static_cast<std::uint32_t>(graph.nodes.size());
  TAKT_ASSIGN(std::vector<std::byte> bytes, plan::write(d, lowered.sections));
  // Nothing leaves here that a loader would not take.
  if (const auto plan = plan::Plan::parse(bytes); !plan) {
    return fail(Code::kInternal, "the compiled plan does not pass its verification: " + plan.error().message);
  }
  return bytes;
}

Result<std::vector<std::byte>> compile_onnx(std::span<const std::byte> onnx, const Options& options) {
  TAKT_RETURN_IF_ERROR(check_parts(options.parts));
  TAKT_RETURN_IF_ERROR(check_precision(options.precision, options.target));
  ImportOptions import;
  if (!options.source.empty()) import.source = options.source;
  import.folder = options.folder;
  import.dims = options.dims;
  import.input_shapes = options.input_shapes;
  import.loops = options.loops;
  import.states = options.states;
  import.note = options.note;
  import.reads = options.reads;
  TAKT_ASSIGN(ir::Graph graph, import_onnx(onnx, import));
  return compile(std::move(graph), digest(onnx), options);
}

}  // namespace takt::compiler
