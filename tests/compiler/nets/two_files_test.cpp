// Pillar networks come in two files, the encoder of pillars and what looks at the map; takt's operators stand before,
// between and behind them. Composed they give what the one graph with the fused encoder gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/compose.h"
#include "kernels/boxes.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

constexpr std::int64_t kPoints = 400, kPillars = 120, kMost = 4, kFeatures = 10, kChannels = 12;
const Floats kRange{-4, -4, -2, 4, 4, 2}, kSize{0.5F, 0.5F, 4};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}
Floats random_floats(std::size_t n, float scale, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> unit(-scale, scale);
  Floats out(n);
  for (float& v : out) v = unit(engine);
  return out;
}
const Floats& weights() {
  static const Floats values = random_floats(kFeatures * kChannels, 0.4F, 1);
  return values;
}
const Floats& bias() {
  static const Floats values = random_floats(kChannels, 0.2F, 2);
  return values;
}

// Product, activation, maximum over the points of a pillar: rows that the data count.
std::string encoder() {
  OnnxModel model(13);
  model.input("features", {kPillars, kMost, kFeatures})
      .floats("w", {kFeatures, kChannels}, weights())
      .floats("b", {kChannels}, bias());
  model.node("MatMul", {"features", "w"}, {"product"})
      .node("Add", {"product", "b"}, {"sum"})
      .node("Relu", {"sum"}, {"active"})
      .node("ReduceMax", {"active"}, {"encoded"})
      .with("axes", std::vector<std::int64_t>{1})
      .with("keepdims", std::int64_t{0})
      .output("encoded");
  return model.bytes();
}

// Maps of a centre head, each by one convolution.
std::string backbone() {
  OnnxModel model(13);
  model.input("map", {1, kChannels, 16, 16});
  unsigned seed = 10;
  for (const auto& [name, channels] :
       {std::pair<std::string, std::int64_t>{"heat", 2}, {"offset", 2}, {"height", 1}, {"size", 3}, {"rotation", 2}}) {
    model.floats(name + "_w", {channels, kChannels, 3, 3},
                 random_floats(static_cast<std::size_t>(channels * kChannels * 9), 0.3F, seed++));
    model.node("Conv", {"map", name + "_w"}, {name}).with("pads", std::vector<std::int64_t>{1, 1, 1, 1}).output(name);
  }
  return model.bytes();
}

Composition composed(bool fused) {
  Composition c;
  c.name = "pillars";
  c.inputs = {{"points", {ir::DType::kF32, {2, {kPoints, 5}}}, "c:1", "count"},
              {"count", {ir::DType::kI32, {}}, "c:2", ""}};
  const auto from = [](const std::string& of, const std::string& output = "") {
    return Composition::Source{of, output, nullptr, "c"};
  };
  const auto constant = [](const Floats& values, const ir::Shape& shape) {
    return Composition::Source{"", "", std::make_shared<const ir::Constant>(ir::Constant::of(values, shape)), "c"};
  };
  const auto op = [&](const std::string& name, const std::string& kind, std::vector<Composition::Source> inputs,
                      std::vector<std::string> outputs, std::map<std::string, ir::Attribute> attributes) {
    Composition::Part& part = c.parts.emplace_back();
    part.name = name;
    part.where = "c:" + name;
    part.op = kind;
    part.outputs = std::move(outputs);
    part.attributes = std::move(attributes);
    for (Composition::Source& source : inputs) part.feeds.push_back({"", std::move(source)});
  };
  const auto network = [&](const std::string& name, std::string onnx, const std::string& input,
                           Composition::Source source) {
    Composition::Part& part = c.parts.emplace_back();
    part.name = name;
    part.where = "c:" + name;
    part.onnx = std::move(onnx);
    part.source = name + ".onnx";
    part.feeds.push_back({input, std::move(source)});
  };
  op("voxels", "takt.Voxelise", {from("points")}, {"cells", "ends", "members"},
     {{"range", kRange}, {"size", kSize}, {"capacity", kPillars}, {"points", kMost}});
  std::vector<Composition::Source> groups{from("points"), from("voxels", "cells"), from("voxels", "ends"),
                                          from("voxels", "members")};
  const std::map<std::string, ir::Attribute> grid{{"range", kRange}, {"size", kSize}, {"points", kMost}};
  if (fused) {
    groups.push_back(constant(weights(), {2, {kFeatures, kChannels}}));
    groups.push_back(constant(bias(), {1, {kChannels}}));
    op("encoded", "takt.PillarEncode", groups, {}, grid);
  } else {
    op("features", "takt.PillarFeatures", groups, {}, grid);
    network("encoder", encoder(), "features", from("features"));
  }
  op("map", "takt.ScatterBev", {fused ? from("encoded") : from("encoder", "encoded"), from("voxels", "cells")}, {},
     {{"grid", std::vector<std::int64_t>{1, 16, 16}}});
  network("backbone", backbone(), "map", from("map"));
  op("best", "takt.TopKDecode",
     {from("backbone", "heat"), from("backbone", "offset"), from("backbone", "height"), from("backbone", "size"),
      from("backbone", "rotation")},
     {"boxes", "scores", "classes"},
     {{"capacity", std::int64_t{30}}, {"score", 0.3F}, {"origin", Floats{-4, -4}}, {"cell", Floats{0.5F, 0.5F}}});
  op("kept", "takt.RotatedNms", {from("best", "boxes"), from("best", "scores"), from("best", "classes")},
     {"boxes", "scores", "classes", "index", "count"}, {{"limit", Floats{0.2F}}});
  for (const char* name : {"boxes", "scores", "classes", "count"}) c.outputs.push_back({name, from("kept", name)});
  return c;
}

TEST(TwoFiles, ComposedWithOperatorsGiveWhatOneGraphGives) {
  std::vector<std::shared_ptr<const plan::Plan>> plans;
  for (const bool fused : {false, true}) {
    const auto bytes = compile_composition(composed(fused), {});
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto plan = plan::Plan::parse(*bytes);
    ASSERT_TRUE(plan) << plan.error().message;
    plans.push_back(*plan);
  }
  for (const std::int32_t count : {400, 57, 0}) {
    Floats points = random_floats(kPoints * 5, 4.5F, static_cast<unsigned>(count));
    for (std::size_t i = static_cast<std::size_t>(count) * 5; i < points.size(); ++i) {
      points[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const std::vector<Bytes> inputs{bytes_of(points), bytes_of(std::vector<std::int32_t>{count})};
    std::vector<std::vector<Bytes>> found;
    for (const auto& plan : plans) {
      found.push_back(test::run_plan(plan, inputs, 1));
      EXPECT_EQ(test::run_plan(plan, inputs, 2), found.back()) << "two workers";
    }
    std::int32_t boxes[2];
    for (std::size_t i = 0; i < 2; ++i) std::memcpy(&boxes[i], found[i][*plans[i]->find_output("count")].data(), 4);
    ASSERT_EQ(boxes[0], boxes[1]) << count;
    EXPECT_TRUE(boxes[0] > 0 || count == 0);
    for (const char* name : {"boxes", "scores"}) {
      const Bytes &a = found[0][*plans[0]->find_output(name)], &b = found[1][*plans[1]->find_output(name)];
      const std::size_t row = name == std::string("boxes") ? kernels::kBoxColumns : 1;
      for (std::size_t i = 0; i < row * static_cast<std::size_t>(boxes[0]); ++i) {
        float x = 0, y = 0;
        std::memcpy(&x, a.data() + 4 * i, 4);
        std::memcpy(&y, b.data() + 4 * i, 4);
        ASSERT_NEAR(x, y, 2e-5 * std::max(1.0F, std::fabs(y))) << name << " " << i;
      }
    }
  }
}

TEST(TwoFiles, WhatIsWrongIsSaidWithItsPlace) {
  Composition c = composed(true);
  c.inputs[0].counted = "points";
  auto graph = compose(c);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kConfiguration);
  EXPECT_THAT(graph.error().message, ::testing::HasSubstr("c:1: rows of input 'points' are counted by 'points'"));
  c = composed(true);
  c.parts[0].op = "takt.Voxelize";
  graph = compose(c);
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, ::testing::HasSubstr("did you mean 'takt.Voxelise'?"));
  c = composed(true);
  c.parts[0].attributes["sizes"] = kSize;
  graph = compose(c);
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, ::testing::HasSubstr("did you mean 'size'?"));
}

}  // namespace
}  // namespace takt::compiler
