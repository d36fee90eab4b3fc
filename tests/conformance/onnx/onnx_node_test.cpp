// ONNX's own tests (Debian's libonnx-testdata) through import and reference kernels, before and after the passes, and
// as plans where every operator has a kernel.
// Every test passes, or is listed in unsupported.txt: either its operator, which takt then refuses by name, or the
// test. A listed test that passes is an error too, so the list stays true.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/passes/passes.h"
#include "runtime/base/file.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "/usr/share/libonnx-testdata/data";

std::vector<fs::path> folders(const fs::path& parent) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Inputs that decide shapes have to be constants of a plan; the test's values are then put into the model.
bool decides_shape(const std::string& op, int input) {
  static const std::map<std::string, std::set<int>> kOperands = {
      {"ConstantOfShape", {0}}, {"CumSum", {1}},         {"Dropout", {2}},
      {"Expand", {1}},          {"OneHot", {1}},         {"Pad", {1, 2, 3}},
      {"Range", {0, 1, 2}},     {"ReduceMax", {1}},      {"ReduceMean", {1}},
      {"ReduceMin", {1}},       {"ReduceSum", {1}},      {"Reshape", {1}},
      {"Resize", {1, 2, 3}},    {"Slice", {1, 2, 3, 4}}, {"Split", {1}},
      {"Squeeze", {1}},         {"Tile", {1}},           {"TopK", {1}},
      {"Trilu", {1}},           {"Unsqueeze", {1}},      {"Upsample", {1}}};
  const auto found = kOperands.find(op);
  return found != kOperands.end() && found->second.count(input) != 0;
}

Result<ir::Constant> tensor_file(const fs::path& path) {
  TAKT_ASSIGN(const std::string bytes, read_file(path.string()));
  ::onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return fail(Code::kInput, path.string() + " is no tensor");
  return read_tensor(proto);
}

struct Case {
  ::onnx::ModelProto model;
  std::vector<std::pair<std::string, ir::Constant>> inputs;  // those that are fed
  std::vector<ir::Constant> outputs;
  std::size_t frozen = 0;
};

Status load(const fs::path& folder, Case* out) {
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
    c.inputs.emplace_back(input.name(), std::move(tensor));
  }
  for (int i = 0; i < c.model.graph().output_size(); ++i) {
    TAKT_ASSIGN(ir::Constant tensor, tensor_file(data / ("output_" + std::to_string(i) + ".pb")));
    c.outputs.push_back(std::move(tensor));
  }
  return {};
}

// The tolerances of ONNX's own runner.
Status close(const ir::Constant& found, const ir::Constant& expected) {
  const std::string types = to_string(ir::Type{found.dtype, found.shape}) + ", expected " +
                            to_string(ir::Type{expected.dtype, expected.shape});
  if (found.dtype != expected.dtype || !(found.shape == expected.shape)) return fail(Code::kGate, "is " + types);
  if (found.dtype != ir::DType::kF32) {
    return found.bytes == expected.bytes ? Status{} : fail(Code::kGate, "other elements");
  }
  for (std::int64_t i = 0; i < found.shape.elements(); ++i) {
    const float a = found.tensor().as<float>()[i];
    const float b = expected.tensor().as<float>()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= 1e-7F + 1e-3F * std::fabs(b))) {
      return fail(Code::kGate,
                  "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b));
    }
  }
  return {};
}

Status check(const ir::Graph& graph, const Case& c) {
  std::vector<ir::Constant> inputs;
  for (const ir::ValueId id : graph.inputs) {
    const auto found = std::find_if(c.inputs.begin(), c.inputs.end(),
                                    [&](const auto& entry) { return entry.first == graph[id].name; });
    if (found == c.inputs.end()) return fail(Code::kGate, "no data for input " + graph[id].name);
    inputs.push_back(found->second);
  }
  TAKT_ASSIGN(const std::vector<ir::Constant> values, ir::interpret(graph, inputs));
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    TAKT_RETURN_IF_ERROR(close(values[static_cast<std::size_t>(graph.outputs[i])], c.outputs[i]));
  }
  return {};
}

// Both forms against the expected outputs; the optimised graph.
Result<ir::Graph> run(const Case& c) {
  const std::string bytes = c.model.SerializeAsString();
  TAKT_ASSIGN(ir::Graph graph, import_onnx(std::as_bytes(std::span(bytes)), {}));
  TAKT_RETURN_IF_ERROR(check(graph, c));
  TAKT_RETURN_IF_ERROR(run_passes(graph, {}));
  if (Status same = check(graph, c); !same) return fail(std::move(same).error().with_context("optimised"));
  return graph;
}

// The plan of an optimised graph. kInput: takt has no kernel for it; kGate: other values.
Status run_as_plan(const ir::Graph& graph, const Case& c) {
  if (graph.nodes.empty()) return fail(Code::kInput, "nothing is computed");
  Options options;
  options.target = test::targets_of_this_machine().front();
  options.optimise = false;
  TAKT_ASSIGN(const std::vector<std::byte> bytes, compile(graph, Digest{}, options));
  TAKT_ASSIGN(const auto plan, plan::Plan::parse(bytes));
  std::vector<std::vector<std::byte>> inputs;
  for (const std::uint32_t id : plan->description().inputs) {
    const std::string& name = plan->description().tensors[id].name;
    const auto found =
        std::find_if(c.inputs.begin(), c.inputs.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == c.inputs.end()) return fail(Code::kGate, "no data for input " + name);
    inputs.push_back(found->second.bytes);
  }
  const auto outputs = test::run_plan(plan, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ir::Type& type = *graph[graph.outputs[i]].type;
    if (Status same = close(ir::Constant{type.dtype, type.shape, outputs[i]}, c.outputs[i]); !same) {
      return fail(Code::kGate, "as a plan: " + same.error().message);
    }
  }
  return {};
}

// name -> reason; operators are written as "operator Name: reason".
std::map<std::string, std::string> unsupported_list() {
  std::ifstream file(TAKT_SOURCE_DIR "/tests/conformance/onnx/unsupported.txt");
  std::map<std::string, std::string> list;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#') continue;
    EXPECT_NE(colon, std::string::npos) << line;
    list[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return list;
}

void run_suite(const std::string& suite, std::size_t floor, std::size_t plan_floor) {
  const fs::path data = fs::path(kData) / suite;
  if (!fs::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto listed = unsupported_list();
  std::size_t passed = 0;
  std::size_t unsupported = 0;
  std::size_t frozen = 0;
  std::size_t failed = 0;
  std::size_t plans = 0;
  std::map<std::string, int> without_plan;
  for (const fs::path& folder : folders(data)) {
    const std::string name = folder.filename().string();
    Case c;
    Status status = load(folder, &c);
    if (status) {
      const auto graph = run(c);
      status = graph ? Status{} : fail(graph.error());
      const Status planned = graph ? run_as_plan(*graph, c) : Status{};
      if (graph && planned) ++plans;
      if (!planned && planned.error().code == Code::kInput) ++without_plan[planned.error().message];
      if (!planned && planned.error().code != Code::kInput) status = fail(planned.error());
    }
    frozen += c.frozen;
    bool known = listed.count(name) != 0;
    if (!status) {
      for (const auto& node : c.model.graph().node()) {
        const std::string op = "operator " + (node.domain().empty() ? "" : node.domain() + ".") + node.op_type();
        known = known || listed.count(op) != 0;
      }
    }
    if (status) {
      ++passed;
      EXPECT_EQ(listed.count(name), 0U) << name << " passes, but is listed as unsupported";
    } else if (known && status.error().code == Code::kInput) {
      ++unsupported;
    } else {
      ++failed;
      ADD_FAILURE() << name << ": " << status.error().message;
    }
  }
  std::cout << suite << ": " << passed << " pass, " << unsupported << " unsupported, " << failed << " fail; " << frozen
            << " inputs frozen; " << plans << " pass as plans too\n";
  if (std::getenv("TAKT_LIST_WITHOUT_PLAN") != nullptr) {
    for (const auto& [reason, count] : without_plan)
      std::cout << "  " << count << " without a plan: " << reason << "\n";
  }
  EXPECT_GE(plans, plan_floor) << "the floor only rises";
  EXPECT_GE(passed, floor) << "the floor only rises";
}

TEST(OnnxConformance, Node) { run_suite("node", 601, 547); }
TEST(OnnxConformance, Simple) { run_suite("simple", 7, 7); }
TEST(OnnxConformance, PytorchOperator) { run_suite("pytorch-operator", 29, 28); }
TEST(OnnxConformance, PytorchConverted) { run_suite("pytorch-converted", 58, 53); }

}  // namespace
}  // namespace takt::compiler
