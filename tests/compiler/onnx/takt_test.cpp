// takt's own operators from an ONNX file to a plan: domain, attributes, counts, results that a file leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

#include "compiler/compile.h"
#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "kernels/voxels.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInt32 = ::onnx::TensorProto::INT32;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// A cloud of at most six points, counted by an input, to the means of its voxels.
OnnxModel means() {
  OnnxModel model(13);
  auto* own = model.model.add_opset_import();
  own->set_domain("takt");
  own->set_version(1);
  auto* counted = model.model.add_metadata_props();
  counted->set_key("takt.count:cloud");
  counted->set_value("points");
  model.input("cloud", {6, 4}).input("points", {}, kInt32);
  model.node("Voxelise", {"cloud"}, {"cells", "ends", "members", "voxels"})
      .with("range", std::vector<float>{-4, -4, -4, 4, 4, 4})
      .with("size", std::vector<float>{1, 1, 1})
      .with("capacity", std::int64_t{3});
  model.model.mutable_graph()->mutable_node(0)->set_domain("takt");
  model.node("VoxelMean", {"cloud", "ends", "members"}, {"mean"}).output("mean");
  model.model.mutable_graph()->mutable_node(1)->set_domain("takt");
  return model;
}

Result<ir::Graph> import(const OnnxModel& model) {
  const std::string bytes = model.bytes();
  return import_onnx(std::as_bytes(std::span(bytes)), {});
}

TEST(TaktOperators, FromAFileToAPlanWithCounts) {
  const OnnxModel model = means();
  const auto graph = import(model);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(ir::dump(*graph), HasSubstr("takt.Voxelise(cloud) capacity=3"));

  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<std::byte>> inputs = {
      bytes_of<float>({0, 0, 0, 1, 3, 3, 3, 5, 0.5F, 0.5F, 0, 2, 9, 0, 0, 0, nan, nan, nan, nan, 1, 1, 1, 1}),
      bytes_of<std::int32_t>({4})};
  const std::string onnx = model.bytes();
  for (const auto target : test::targets_of_this_machine()) {
    Options options;
    options.target = target;
    const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), options);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto plan = plan::Plan::parse(*bytes);
    ASSERT_TRUE(plan) << plan.error().message;
    const plan::Description& d = (*plan)->description();
    ASSERT_EQ(d.outputs.size(), 2U) << "the count goes with the rows";
    for (const auto& [parts, fill] : {std::pair{1, 0x7f}, {2, 0xff}}) {
      const auto out = test::run_plan(*plan, inputs, parts, fill);
      ASSERT_EQ(values_of<std::int32_t>(out[1]), std::vector<std::int32_t>{2});
      std::vector<float> rows = values_of<float>(out[0]);
      rows.resize(8);
      EXPECT_THAT(rows, ElementsAre(0.25F, 0.25F, 0, 1.5F, 3, 3, 3, 5));
    }
  }
  const auto values = ir::interpret(
      *graph, std::vector<ir::Constant>{{ir::DType::kF32, {2, {6, 4}}, inputs[0]}, {ir::DType::kI32, {}, inputs[1]}});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_THAT(values_of<float>((*values)[static_cast<std::size_t>(graph->outputs[0])].bytes),
              ElementsAre(0.25F, 0.25F, 0, 1.5F, 3, 3, 3, 5, 0, 0, 0, 0));
}

TEST(TaktOperators, WhatTheyCannotDoIsSaidWithTheNode) {
  const auto refused = [](auto change) {
    OnnxModel model = means();
    change(model);
    const auto graph = import(model);
    return graph ? std::string("accepted") : graph.error().message;
  };
  const auto graph_of = [](OnnxModel& m) { return m.model.mutable_graph(); };
  EXPECT_THAT(refused([&](OnnxModel& m) { graph_of(m)->mutable_node(0)->set_op_type("Voxelize"); }),
              HasSubstr("takt.Voxelize (operator set wanted: 1, had: none of 1), 1 node: ncells"));
  EXPECT_THAT(refused([&](OnnxModel& m) { graph_of(m)->mutable_node(0)->set_domain(""); }),
              HasSubstr("ai.onnx.Voxelise"));
  EXPECT_THAT(refused([&](OnnxModel& m) {
                graph_of(m)->mutable_node(0)->set_domain("");
                graph_of(m)->mutable_node(0)->set_op_type("takt.Voxelise");
              }),
              HasSubstr("ai.onnx.takt.Voxelise"));
  EXPECT_THAT(refused([&](OnnxModel& m) { m.model.mutable_opset_import(1)->set_version(2); }),
              HasSubstr("version 2 of takt's operators; this takt reads version 1"));
  EXPECT_THAT(refused([&](OnnxModel& m) { graph_of(m)->mutable_node(0)->mutable_attribute(2)->set_i(0); }),
              HasSubstr("attribute capacity is 0"));
  EXPECT_THAT(refused([&](OnnxModel& m) { graph_of(m)->mutable_node(0)->mutable_attribute(0)->set_floats(3, -4); }),
              HasSubstr("dimension 0 of its range holds no voxel"));
  EXPECT_THAT(refused([&](OnnxModel& m) { m.model.mutable_metadata_props(0)->set_value("pointz"); }),
              HasSubstr("there is no input pointz"));
  EXPECT_THAT(refused([&](OnnxModel& m) { m.model.mutable_metadata_props(0)->set_value("cloud"); }),
              HasSubstr("cannot be counted by input cloud"));
}

}  // namespace
}  // namespace takt::compiler
