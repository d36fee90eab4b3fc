// Folders of tests as ONNX has them (model.onnx, test_data_set_0) run as plans, unoptimised and optimised, and beside
// them by reference kernels. A pass executes at least one step of a plan; operators whose results are known when a plan
// is compiled are the only exception, and are named here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/passes/passes.h"
#include "kernels/reference/elementwise.h"
#include "runtime/base/file.h"
#include "tests/support/run_plan.h"

namespace takt::test {

namespace fs = std::filesystem;

inline std::vector<fs::path> folders(const fs::path& parent) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Inputs that decide shapes have to be constants of a plan; the test's values are then put into the model.
inline bool decides_shape(const std::string& op, int input) {
  static const std::map<std::string, std::set<int>> kOperands = {
      {"CenterCropPad", {1}}, {"ConstantOfShape", {0}}, {"CumSum", {1}},       {"Dropout", {1, 2}},
      {"MaxUnpool", {2}},     {"Expand", {1}},          {"OneHot", {1}},       {"Pad", {1, 2, 3}},
      {"Range", {0, 1, 2}},   {"ReduceMax", {1}},       {"ReduceMean", {1}},   {"ReduceMin", {1}},
      {"ReduceSum", {1}},     {"Reshape", {1}},         {"Resize", {1, 2, 3}}, {"Slice", {1, 2, 3, 4}},
      {"Split", {1}},         {"Squeeze", {1}},         {"Tile", {1}},         {"TopK", {1}},
      {"Trilu", {1}},         {"Unsqueeze", {1}},       {"Upsample", {1}},     {"Loop", {0}}};
  const auto found = kOperands.find(op);
  return found != kOperands.end() && found->second.count(input) != 0;
}

inline Result<ir::Constant> tensor_file(const fs::path& path) {
  TAKT_ASSIGN(const std::string bytes, read_file(path.string()));
  ::onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return fail(Code::kInput, path.string() + " is no tensor");
  return compiler::read_tensor(proto);
}

// Operators of which nothing may be left to execute.
inline bool known_ahead(const std::string& op) {
  static const std::set<std::string> kOps = {"Constant", "ConstantOfShape", "EyeLike", "Range", "Shape", "Size"};
  return kOps.count(op) != 0;
}

// The files of the suite hold the bits of bfloat16 under another type's name.
inline void name_type(const ::onnx::ValueInfoProto& declared, ir::Constant* tensor) {
  const auto type = compiler::element_type(declared.type().tensor_type().elem_type());
  if (type && *type == ir::DType::kBF16 && tensor->dtype == ir::DType::kU16) tensor->dtype = ir::DType::kBF16;
}

struct Case {
  ::onnx::ModelProto model;
  std::vector<std::pair<std::string, ir::Constant>> inputs;  // those that are fed
  std::vector<ir::Constant> outputs;
  std::size_t frozen = 0;
};

inline Status load(const fs::path& folder, Case* out) {
  Case& c = *out;
  TAKT_ASSIGN(const std::string bytes, read_file((folder / "model.onnx").string()));
  if (!c.model.ParseFromString(bytes)) return fail(Code::kInput, "no model");
  std::set<std::string> frozen;
  std::set<std::string> missing;
  for (const auto& node : c.model.graph().node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (decides_shape(node.op_type(), i)) frozen.insert(node.input(i));
    }
  }
  const fs::path data = folder / "test_data_set_0";
  std::set<std::string> initialised;
  for (const auto& tensor : c.model.graph().initializer()) initialised.insert(tensor.name());
  int fed = 0;
  for (const auto& input : c.model.graph().input()) {
    if (initialised.count(input.name()) != 0) continue;
    const fs::path file = data / ("input_" + std::to_string(fed++) + ".pb");
    if (frozen.count(input.name()) != 0) {
      TAKT_ASSIGN(const std::string tensor, read_file(file.string()));
      auto* initializer = c.model.mutable_graph()->add_initializer();
      if (!initializer->ParseFromString(tensor)) return fail(Code::kInput, file.string() + " is no tensor");
      initializer->set_name(input.name());
      ++c.frozen;
      continue;
    }
    TAKT_ASSIGN(ir::Constant tensor, tensor_file(file));
    name_type(input, &tensor);
    c.inputs.emplace_back(input.name(), std::move(tensor));
  }
  for (int i = 0; i < c.model.graph().output_size(); ++i) {
    TAKT_ASSIGN(ir::Constant tensor, tensor_file(data / ("output_" + std::to_string(i) + ".pb")));
    name_type(c.model.graph().output(i), &tensor);
    c.outputs.push_back(std::move(tensor));
  }
  return {};
}

// As f64, for a comparison.
inline std::vector<double> numbers(const ir::Constant& c) {
  std::vector<double> values(static_cast<std::size_t>(c.shape.elements()));
  kernels::reference::cast(c.tensor(), {ir::DType::kF64, c.shape, values.data()});
  return values;
}

// The tolerances of ONNX's own runner.
inline Status close(const ir::Constant& found, const ir::Constant& expected) {
  const std::string types = to_string(ir::Type{found.dtype, found.shape}) + ", expected " +
                            to_string(ir::Type{expected.dtype, expected.shape});
  if (found.dtype != expected.dtype || !(found.shape == expected.shape)) return fail(Code::kGate, "is " + types);
  if (found.bytes == expected.bytes) return {};
  // Results of f16 and bf16 may lie one place apart.
  const bool narrow = found.dtype == ir::DType::kF16 || found.dtype == ir::DType::kBF16;
  const double relative = narrow ? 4e-3 : 1e-3, absolute = narrow ? 1e-3 : 1e-7;
  const bool real = found.dtype == ir::DType::kF32 || found.dtype == ir::DType::kF64 ||
                    found.dtype == ir::DType::kF16 || found.dtype == ir::DType::kBF16;
  if (!real) return fail(Code::kGate, "other elements");
  const std::vector<double> a = numbers(found), b = numbers(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::fabs(a[i] - b[i]) <= absolute + relative * std::fabs(b[i]))) {
      return fail(Code::kGate, "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
                                   std::to_string(b[i]));
    }
  }
  return {};
}

// A counted output as far as it is valid; counts are outputs behind those of the model.
template <class Get>
ir::Constant valid_part(const ir::Graph& graph, ir::ValueId id, Get value) {
  const ir::Type& type = *graph[id].type;
  if (type.count == ir::kNoValue) return value(id);
  return ir::cut(value(id), type.axis, *value(type.count).tensor().template as<std::int32_t>());
}

inline Status check(const ir::Graph& graph, const Case& c) {
  std::vector<ir::Constant> inputs;
  for (const ir::ValueId id : graph.inputs) {
    const auto found = std::find_if(c.inputs.begin(), c.inputs.end(),
                                    [&](const auto& entry) { return entry.first == graph[id].name; });
    if (found == c.inputs.end()) return fail(Code::kGate, "no data for input " + graph[id].name);
    inputs.push_back(found->second);
  }
  TAKT_ASSIGN(const std::vector<ir::Constant> values, ir::interpret(graph, inputs));
  const auto value = [&](ir::ValueId id) { return values[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    TAKT_RETURN_IF_ERROR(close(valid_part(graph, graph.outputs[i], value), c.outputs[i]));
  }
  return {};
}

// The plan of a graph as it stands. kInput: takt has no kernel for it; kGate: other values, or nothing executed.
inline Status run_as_plan(const ir::Graph& graph, const Case& c) {
  compiler::Options options;
  options.target = targets_of_this_machine().front();
  options.optimise = false;
  TAKT_ASSIGN(const std::vector<std::byte> bytes, compiler::compile(graph, Digest{}, options));
  TAKT_ASSIGN(const auto plan, plan::Plan::parse(bytes));
  const auto& nodes = c.model.graph().node();
  const bool ahead = std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return known_ahead(n.op_type()); });
  if (!ahead && (graph.nodes.empty() || plan->description().steps.empty())) {
    return fail(Code::kGate, "nothing is executed");
  }
  std::vector<std::vector<std::byte>> inputs;
  for (const std::uint32_t id : plan->description().inputs) {
    const std::string& name = plan->description().tensors[id].name;
    const auto found =
        std::find_if(c.inputs.begin(), c.inputs.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == c.inputs.end()) return fail(Code::kGate, "no data for input " + name);
    inputs.push_back(found->second.bytes);
  }
  const auto outputs = run_plan(plan, inputs);
  const auto value = [&](ir::ValueId id) {
    const auto at = std::find(graph.outputs.begin(), graph.outputs.end(), id) - graph.outputs.begin();
    const ir::Type& type = *graph[id].type;
    return ir::Constant{type.dtype, type.shape, outputs[static_cast<std::size_t>(at)]};
  };
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    if (Status same = close(valid_part(graph, graph.outputs[i], value), c.outputs[i]); !same) {
      return fail(Code::kGate, "as a plan: " + same.error().message);
    }
  }
  return {};
}

struct Outcome {
  Status plain, optimised;
};
inline Outcome run(const Case& c) {
  const std::string bytes = c.model.SerializeAsString();
  auto graph = compiler::import_onnx(std::as_bytes(std::span(bytes)), {});
  if (!graph) return {fail(graph.error()), fail(graph.error())};
  const auto both = [&](std::string_view when) {
    Status done = check(*graph, c);
    if (done) done = run_as_plan(*graph, c);
    return done ? done : fail(std::move(done).error().with_context(std::string(when)));
  };
  Outcome outcome{both("unoptimised"), {}};
  outcome.optimised = compiler::run_passes(*graph, {});
  if (outcome.optimised) outcome.optimised = both("optimised");
  return outcome;
}

}  // namespace takt::test
