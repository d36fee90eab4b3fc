// Sparse convolutions take in what follows them: an imported BatchNormalization, a residual, an activation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/passes.h"
#include "tests/support/onnx_model.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

std::vector<float> noise(std::size_t count, float low, float high) {
  static std::uint32_t state = 7;
  std::vector<float> values(count);
  for (float& v : values) {
    state = state * 1664525U + 1013904223U;
    v = low + (high - low) * static_cast<float>(state >> 8) / 16777216.0F;
  }
  return values;
}

OnnxModel& takt(OnnxModel& model) {
  auto* graph = model.model.mutable_graph();
  graph->mutable_node(graph->node_size() - 1)->set_domain("takt");
  return model;
}

void normalisation(OnnxModel& model, const std::string& x, const std::string& y, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  for (const char* what : {"scale", "shift", "mean"}) model.floats(y + what, {channels}, noise(count, -1, 1));
  model.floats(y + "variance", {channels}, noise(count, 0.5F, 2));
  model.node("BatchNormalization", {x, y + "scale", y + "shift", y + "mean", y + "variance"}, {y});
}

// A residual block over the voxels of a cloud, as exporters write it.
OnnxModel block() {
  OnnxModel model(13);
  auto* own = model.model.add_opset_import();
  own->set_domain("takt");
  own->set_version(1);
  model.input("cloud", {200, 4});
  model.node("Voxelise", {"cloud"}, {"cells", "ends", "members", "count", "kept", "dropped"})
      .with("range", std::vector<float>{-2, -2, -2, 2, 2, 2})
      .with("size", std::vector<float>{1, 1, 1})
      .with("capacity", std::int64_t{64});
  takt(model);
  takt(model.node("VoxelMean", {"cloud", "ends", "members"}, {"mean"}));
  model.node("SparseMap", {"cells", "cells"}, {"map"}).with("padding", OnnxModel::Dims{1, 1, 1});
  takt(model);
  model.floats("w1", {27, 4, 6}, noise(648, -1, 1)).floats("w2", {27, 6, 6}, noise(972, -1, 1));
  model.floats("b1", {6}, noise(6, -1, 1));
  takt(model.node("SparseConv", {"mean", "w1", "map", "b1"}, {"c1"}));
  normalisation(model, "c1", "n1", 6);
  model.node("Relu", {"n1"}, {"r1"});
  takt(model.node("SparseConv", {"r1", "w2", "map"}, {"c2"}));
  normalisation(model, "c2", "n2", 6);
  model.node("Add", {"n2", "r1"}, {"sum"});
  model.node("Relu", {"sum"}, {"y"}).output("y");
  return model;
}

TEST(Sparse, AResidualBlockBecomesTwoConvolutions) {
  const std::string bytes = block().bytes();
  const auto before = import_onnx(std::as_bytes(std::span(bytes)), {});
  ASSERT_TRUE(before) << before.error().message;
  ir::Graph after = *before;
  const Status done = run_passes(after, {});
  ASSERT_TRUE(done) << done.error().message;
  std::map<std::string, int> operators;
  for (const ir::Node& node : after.nodes) ++operators[node.op];
  EXPECT_EQ(operators, (std::map<std::string, int>{
                           {"takt.Voxelise", 1}, {"takt.VoxelMean", 1}, {"takt.SparseMap", 1}, {"takt.SparseConv", 2}}))
      << ir::dump(after);

  const ir::Constant cloud = ir::Constant::of(noise(800, -2.2F, 2.2F), ir::Shape{2, {200, 4}});
  const auto first = ir::interpret(*before, std::span(&cloud, 1)), second = ir::interpret(after, std::span(&cloud, 1));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  const ir::Constant& expected = (*first)[static_cast<std::size_t>(before->outputs[0])];
  const ir::Constant& found = (*second)[static_cast<std::size_t>(after.outputs[0])];
  ASSERT_EQ(found.bytes.size(), expected.bytes.size());
  float most = 0, differ = 0;
  for (std::int64_t i = 0; i < expected.shape.elements(); ++i) {
    const float a = expected.tensor().as<float>()[i], b = found.tensor().as<float>()[i];
    most = std::max(most, std::abs(a));
    differ = std::max(differ, std::abs(a - b));
  }
  EXPECT_GT(most, 1);
  EXPECT_LT(differ, 1e-5F * most);
}

// What others read as well stays, and so does what is not one number per channel.
TEST(Sparse, WhatCannotGoInStays) {
  OnnxModel model = block();
  model.output("c1");
  const std::string bytes = model.bytes();
  auto graph = import_onnx(std::as_bytes(std::span(bytes)), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(run_passes(*graph, {}));
  std::map<std::string, int> operators;
  for (const ir::Node& node : graph->nodes) ++operators[node.op];
  EXPECT_THAT(operators, Contains(Key("Relu")));
  EXPECT_EQ(operators["takt.SparseConv"], 2);
}

}  // namespace
}  // namespace takt::compiler
