// Each pass on small models: what it makes of them, and that they still compute the same.
#include "compiler/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "compiler/ir/operators.h"
#include "compiler/ir/statistics.h"
#include "compiler/onnx/import.h"
#include "tests/support/onnx_model.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using ::testing::ElementsAre;
using Dims = OnnxModel::Dims;

// Numbers between -2 and 2 that repeat nowhere soon; the same on every machine.
std::vector<float> noise(std::int64_t n, std::uint32_t seed = 1) {
  std::vector<float> values;
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(state >> 8) / 4194304.0F - 2.0F);
  }
  return values;
}

ir::Graph imported(const OnnxModel& model) {
  const std::string bytes = model.bytes();
  auto graph = import_onnx(std::as_bytes(std::span(bytes)), {});
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  return graph ? *std::move(graph) : ir::Graph{};
}

std::vector<std::vector<float>> run(const ir::Graph& graph) {
  std::vector<ir::Constant> inputs;
  for (const ir::ValueId id : graph.inputs) {
    const ir::Shape& shape = graph[id].type->shape;
    inputs.push_back(ir::Constant::of(noise(shape.elements(), static_cast<std::uint32_t>(inputs.size()) + 1), shape));
  }
  const auto values = ir::interpret(graph, inputs);
  EXPECT_TRUE(values) << (values ? "" : values.error().message);
  std::vector<std::vector<float>> results;
  for (const ir::ValueId id : graph.outputs) {
    if (!values) break;
    const ir::Constant& output = (*values)[static_cast<std::size_t>(id)];
    const auto* first = output.tensor().as<float>();
    results.emplace_back(first, first + output.shape.elements());
  }
  return results;
}

// Runs all passes, or one; checks that the outputs keep names, types and, within 1e-5 of their range, values.
ir::Graph optimised(const OnnxModel& model, std::string_view only = {}) {
  const ir::Graph before = imported(model);
  ir::Graph after = before;
  PassOptions options;
  for (const Pass& pass : passes()) {
    if (!only.empty() && pass.name != only) options.off.insert(std::string(pass.name));
  }
  const Status done = run_passes(after, options);
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  EXPECT_EQ(before.outputs.size(), after.outputs.size());
  for (std::size_t i = 0; i < before.outputs.size(); ++i) {
    EXPECT_EQ(before[before.outputs[i]].name, after[after.outputs[i]].name);
    EXPECT_EQ(*before[before.outputs[i]].type, *after[after.outputs[i]].type);
  }
  const auto expected = run(before);
  const auto found = run(after);
  for (std::size_t o = 0; o < expected.size(); ++o) {
    float range = 1e-3F;
    for (const float v : expected[o]) range = std::max(range, std::fabs(v));
    for (std::size_t i = 0; i < expected[o].size(); ++i) {
      EXPECT_NEAR(expected[o][i], found[o][i], 1e-5F * range) << "output " << o << " element " << i;
    }
  }
  return after;
}

std::vector<std::string> operators(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) names.push_back(node.op);
  return names;
}

// x[1,4,6,6] through a 3x3 convolution to "a"[1,4,6,6].
OnnxModel convolution(std::int64_t opset = 13) {
  return OnnxModel(opset)
      .input("x", {1, 4, 6, 6})
      .floats("w", {4, 4, 3, 3}, noise(144, 7))
      .floats("bias", {4}, noise(4, 8))
      .node("Conv", {"x", "w", "bias"}, {"a"})
      .with("pads", Dims{1, 1, 1, 1});
}

TEST(FoldConstants, CallsOnConstantsGo) {
  // Larger than the shape arithmetic that import does.
  const auto model = OnnxModel(13)
                         .input("x", {8, 1024})
                         .floats("c", {1024, 8}, noise(8192))
                         .node("Transpose", {"c"}, {"t"})
                         .node("Add", {"x", "t"}, {"y"})
                         .output("y");
  EXPECT_THAT(operators(optimised(model, "fold")), ElementsAre("Add"));
}

TEST(RemoveIdentities, WhatChangesNothingGoes) {
  const auto model = OnnxModel(13)
                         .input("x", {2, 3, 4})
                         .integers("same", {2, 3, 4})
                         .integers("flat", {24})
                         .integers("pads", {0, 0, 0, 0, 0, 0})
                         .integers("from", {0})
                         .integers("to", {99})
                         .node("Relu", {"x"}, {"r"})
                         .node("Identity", {"r"}, {"a"})
                         .node("Reshape", {"a", "flat"}, {"b"})
                         .node("Reshape", {"b", "same"}, {"c"})
                         .node("Pad", {"c", "pads"}, {"d"})
                         .node("Slice", {"d", "from", "to"}, {"e"})
                         .node("Expand", {"e", "same"}, {"f"})
                         .node("Concat", {"f"}, {"g"})
                         .with("axis", std::int64_t{1})
                         .node("Transpose", {"g"}, {"h"})
                         .with("perm", Dims{2, 0, 1})
                         .node("Transpose", {"h"}, {"i"})
                         .with("perm", Dims{1, 2, 0})
                         .node("Dropout", {"i"}, {"y"})
                         .output("y");
  EXPECT_THAT(operators(optimised(model, "identities")), ElementsAre("Relu"));
}

TEST(RemoveIdentities, AnInputOrAResultThatIsReadTwiceKeepsItsCopy) {
  const auto input = OnnxModel(13).input("x", {2}).node("Identity", {"x"}, {"y"}).output("y");
  EXPECT_THAT(operators(optimised(input)), ElementsAre("Identity"));
  const auto twice =
      OnnxModel(13).input("x", {2}).node("Relu", {"x"}, {"a"}).node("Identity", {"a"}, {"y"}).output("a").output("y");
  EXPECT_THAT(operators(optimised(twice)), ElementsAre("Relu", "Identity"));
}

TEST(RemoveIdentities, SoftmaxMovesBetweenTransposesThatMeet) {
  const auto model = OnnxModel(13)
                         .input("x", {1, 5, 2, 3})
                         .node("Transpose", {"x"}, {"a"})
                         .with("perm", Dims{0, 2, 3, 1})
                         .node("Softmax", {"a"}, {"b"})
                         .node("Transpose", {"b"}, {"y"})
                         .with("perm", Dims{0, 3, 1, 2})
                         .output("y");
  const ir::Graph graph = optimised(model, "identities");
  ASSERT_THAT(operators(graph), ElementsAre("Softmax"));
  EXPECT_EQ(graph.nodes[0].integer("axis", -1), 1);
}

TEST(FoldAffine, NormalisationAndConstantsGoIntoTheWeights) {
  auto model = convolution()
                   .floats("s", {4}, {0.5F, 1, 2, 3})
                   .floats("v", {4}, {1, 2, 0.1F, 4})
                   .floats("m", {1, 4, 1, 1}, {1, -2, 3, 0.5F})
                   .floats("two", {}, {2})
                   .node("BatchNormalization", {"a", "s", "bias", "bias", "v"}, {"n"})
                   .node("Mul", {"m", "n"}, {"o"})
                   .node("Sub", {"two", "o"}, {"p"})
                   .node("Div", {"p", "two"}, {"y"})
                   .output("y");
  EXPECT_THAT(operators(optimised(model, "affine")), ElementsAre("Conv"));
}

TEST(FoldAffine, GroupedTransposedConvolution) {
  const auto model = OnnxModel(13)
                         .input("x", {1, 4, 3, 3})
                         .floats("w", {4, 3, 2, 2}, noise(48))
                         .floats("s", {6}, noise(6, 3))
                         .floats("v", {6}, {1, 2, 3, 4, 5, 6})
                         .node("ConvTranspose", {"x", "w"}, {"a"})
                         .with("group", std::int64_t{2})
                         .with("strides", Dims{2, 2})
                         .node("BatchNormalization", {"a", "s", "s", "s", "v"}, {"y"})
                         .output("y");
  EXPECT_THAT(operators(optimised(model, "affine")), ElementsAre("ConvTranspose"));
}

TEST(FoldAffine, AConvolutionWithTwoReadersKeepsItsWeights) {
  auto model = convolution().floats("two", {}, {2}).node("Mul", {"a", "two"}, {"y"}).output("y").output("a");
  EXPECT_THAT(operators(optimised(model)), ElementsAre("Conv", "Mul"));
}

TEST(FoldAffine, NormalisationAloneBecomesADepthwiseConvolution) {
  const auto model = OnnxModel(13)
                         .input("x", {2, 3, 4, 5})
                         .floats("s", {3}, {0.5F, 1, 2})
                         .node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"a"})
                         .node("Relu", {"a"}, {"y"})
                         .output("y");
  const ir::Graph graph = optimised(model);
  ASSERT_THAT(operators(graph), ElementsAre("Conv"));
  EXPECT_EQ(graph.nodes[0].integer("group", 1), 3);
  EXPECT_EQ(graph.nodes[0].text("activation", ""), "relu");
}

TEST(FoldAffine, NormalisationAloneKeepsItsBits) {
  constexpr std::int64_t kChannels = 64;
  std::vector<float> variance = noise(kChannels, 5);
  for (float& v : variance) v = std::fabs(v) + 0.01F;
  const auto model = OnnxModel(13)
                         .input("x", {1, kChannels, 3, 3})
                         .floats("s", {kChannels}, noise(kChannels, 2))
                         .floats("b", {kChannels}, noise(kChannels, 3))
                         .floats("m", {kChannels}, noise(kChannels, 4))
                         .floats("v", {kChannels}, variance)
                         .node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"})
                         .output("y");
  const ir::Graph graph = optimised(model);
  ASSERT_THAT(operators(graph), ElementsAre("Conv"));
  EXPECT_EQ(run(graph), run(imported(model)));
}

TEST(FoldPads, ZerosGoIntoConvolutionsAndAveragePools) {
  const auto model = OnnxModel(13)
                         .input("x", {1, 2, 5, 5})
                         .integers("pads", {0, 0, 1, 0, 0, 0, 2, 1})
                         .floats("w", {2, 2, 3, 3}, noise(36))
                         .node("Pad", {"x", "pads"}, {"a"})
                         .node("Conv", {"a", "w"}, {"c"})
                         .node("AveragePool", {"a"}, {"p"})
                         .with("kernel_shape", Dims{3, 3})
                         .output("c")
                         .output("p");
  const ir::Graph graph = optimised(model, "pads");
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_THAT(graph.nodes[0].integers("pads"), ElementsAre(1, 0, 2, 1));
  EXPECT_EQ(graph.nodes[1].integer("count_include_pad", 0), 1);
}

TEST(FoldPads, OtherPadsStay) {
  const auto model = [](const char* mode, float value, const Dims& window) {
    return OnnxModel(11)
        .input("x", {1, 2, 5, 5})
        .integers("pads", {0, 0, 1, 1, 0, 0, 1, 1})
        .floats("value", {}, {value})
        .node("Pad", {"x", "pads", "value"}, {"a"})
        .with("mode", mode)
        .node("AveragePool", {"a"}, {"y"})
        .with("kernel_shape", window)
        .output("y");
  };
  EXPECT_THAT(operators(optimised(model("constant", 1, {3, 3}))), ElementsAre("Pad", "AveragePool"));
  EXPECT_THAT(operators(optimised(model("reflect", 0, {3, 3}))), ElementsAre("Pad", "AveragePool"));
  // A window of one pixel would lie wholly in the padding.
  EXPECT_THAT(operators(optimised(model("constant", 0, {1, 1}))), ElementsAre("Pad", "AveragePool"));
  EXPECT_THAT(operators(optimised(model("constant", 0, {3, 3}))), ElementsAre("AveragePool"));
}

TEST(RecogniseActivations, SiluAndHardSwishInEverySpelling) {
  const auto base = [] {
    return OnnxModel(13)
        .input("x", {1, 2, 3, 4})
        .floats("three", {}, {3})
        .floats("six", {}, {6})
        .floats("zero", {}, {0})
        .floats("sixth", {1}, {1.0F / 6.0F});
  };
  EXPECT_THAT(operators(optimised(base().node("Sigmoid", {"x"}, {"a"}).node("Mul", {"a", "x"}, {"y"}).output("y"))),
              ElementsAre("takt.Silu"));
  EXPECT_THAT(operators(optimised(base()
                                      .node("HardSigmoid", {"x"}, {"a"})
                                      .with("alpha", 1.0F / 6.0F)
                                      .node("Mul", {"x", "a"}, {"y"})
                                      .output("y"))),
              ElementsAre("HardSwish"));
  const auto relu6 = [&] {
    return base().node("Add", {"three", "x"}, {"a"}).node("Clip", {"a", "zero", "six"}, {"c"});
  };
  EXPECT_THAT(operators(optimised(relu6().node("Div", {"c", "six"}, {"d"}).node("Mul", {"x", "d"}, {"y"}).output("y"))),
              ElementsAre("HardSwish"));
  EXPECT_THAT(
      operators(optimised(relu6().node("Mul", {"c", "x"}, {"d"}).node("Mul", {"d", "sixth"}, {"y"}).output("y"))),
      ElementsAre("HardSwish"));
  // Another offset is another function.
  EXPECT_EQ(optimised(base()
                          .node("Add", {"six", "x"}, {"a"})
                          .node("Clip", {"a", "zero", "six"}, {"c"})
                          .node("Mul", {"c", "x"}, {"d"})
                          .node("Div", {"d", "six"}, {"y"})
                          .output("y"))
                .nodes.size(),
            4U);
  EXPECT_THAT(operators(optimised(base().node("Clip", {"x", "zero"}, {"y"}).output("y"))), ElementsAre("Relu"));
}

TEST(RecogniseActivations, GeluInEverySpelling) {
  const auto error_function = [](bool quotient) {
    OnnxModel model(13);
    model.input("x", {2, 3, 5})
        .floats("root", {}, {quotient ? std::sqrt(2.0F) : std::sqrt(0.5F)})
        .floats("one", {}, {1})
        .floats("half", {1}, {0.5F});
    model.node(quotient ? "Div" : "Mul", {"x", "root"}, {"a"})
        .node("Erf", {"a"}, {"b"})
        .node("Add", {"b", "one"}, {"c"});
    return model;
  };
  for (const bool quotient : {false, true}) {
    EXPECT_THAT(
        operators(optimised(
            error_function(quotient).node("Mul", {"x", "c"}, {"d"}).node("Mul", {"d", "half"}, {"y"}).output("y"))),
        ElementsAre("Gelu"));
    EXPECT_THAT(
        operators(optimised(
            error_function(quotient).node("Mul", {"half", "x"}, {"d"}).node("Mul", {"d", "c"}, {"y"}).output("y"))),
        ElementsAre("Gelu"));
    EXPECT_THAT(
        operators(optimised(
            error_function(quotient).node("Mul", {"c", "half"}, {"d"}).node("Mul", {"x", "d"}, {"y"}).output("y"))),
        ElementsAre("Gelu"));
  }
  // Without the half, and of another value, it is another function.
  EXPECT_EQ(optimised(error_function(true).node("Mul", {"x", "c"}, {"y"}).output("y")).nodes.size(), 4U);
  EXPECT_EQ(optimised(error_function(true).node("Mul", {"a", "c"}, {"d"}).node("Mul", {"d", "half"}, {"y"}).output("y"))
                .nodes.size(),
            5U);
}

// As exporters spell it (power or product, quotient or product with an inverse), with and without scale and shift.
TEST(RecogniseNorms, EverySpelling) {
  for (int spelling = 0; spelling < 16; ++spelling) {
    const bool power = (spelling & 1) != 0, inverse = (spelling & 2) != 0, scaled = (spelling & 4) != 0,
               shifted = (spelling & 8) != 0;
    OnnxModel m = OnnxModel(13)
                      .input("x", {2, 3, 8})
                      .floats("two", {}, {2})
                      .floats("one", {}, {1})
                      .floats("epsilon", {}, {1e-3F})
                      .floats("scale", {8}, noise(8, 2))
                      .floats("shift", {1, 1, 8}, noise(8, 3))
                      .node("ReduceMean", {"x"}, {"mean"})
                      .with("axes", Dims{-1})
                      .node("Sub", {"x", "mean"}, {"centred"});
    power ? m.node("Pow", {"centred", "two"}, {"square"}) : m.node("Mul", {"centred", "centred"}, {"square"});
    m.node("ReduceMean", {"square"}, {"variance"}).with("axes", Dims{2});
    m.node("Add", {"epsilon", "variance"}, {"sum"}).node("Sqrt", {"sum"}, {"deviation"});
    inverse ? m.node("Div", {"one", "deviation"}, {"factor"}).node("Mul", {"factor", "centred"}, {"normal"})
            : m.node("Div", {"centred", "deviation"}, {"normal"});
    std::string last = "normal";
    if (scaled) m.node("Mul", {std::exchange(last, "scaled"), "scale"}, {"scaled"});
    if (shifted) m.node("Add", {"shift", std::exchange(last, "shifted")}, {"shifted"});
    const ir::Graph graph = optimised(m.node("Identity", {last}, {"y"}).output("y"));
    ASSERT_THAT(operators(graph), ElementsAre("takt.LayerNorm")) << spelling;
    EXPECT_EQ(graph.nodes[0].number("epsilon", 0), 1e-3F);
    EXPECT_EQ(graph.nodes[0].inputs.size(), shifted ? 3U : scaled ? 2U : 1U);
  }
}

// Another axis, another tensor under the root, a mean without its extent of 1: not a normalisation that the kernel
// does.
TEST(RecogniseNorms, WhatOnlyLooksLikeOneStays) {
  const auto model = [](std::int64_t axis, const char* squared) {
    return OnnxModel(13)
        .input("x", {2, 8, 8})
        .floats("epsilon", {}, {1e-3F})
        .node("ReduceMean", {"x"}, {"mean"})
        .with("axes", Dims{axis})
        .node("Sub", {"x", "mean"}, {"centred"})
        .node("Mul", {"centred", squared}, {"square"})
        .node("ReduceMean", {"square"}, {"variance"})
        .with("axes", Dims{axis})
        .node("Add", {"variance", "epsilon"}, {"sum"})
        .node("Sqrt", {"sum"}, {"deviation"})
        .node("Div", {"centred", "deviation"}, {"y"})
        .output("y");
  };
  EXPECT_THAT(operators(optimised(model(2, "centred"))), ElementsAre("takt.LayerNorm"));
  for (const auto& [axis, squared] : {std::pair(1, "centred"), std::pair(2, "x")}) {
    EXPECT_THAT(operators(optimised(model(axis, squared))), testing::Not(testing::Contains("takt.LayerNorm")));
  }
}

TEST(RecogniseTokens, ImagesBecomeSequencesByOneTranspose) {
  const auto one = OnnxModel(13)
                       .input("x", {2, 3, 4, 5})
                       .integers("flat", {3}, {0, 0, -1})
                       .node("Reshape", {"x", "flat"}, {"cells"})
                       .node("Transpose", {"cells"}, {"y"})
                       .with("perm", Dims{0, 2, 1})
                       .output("y");
  const ir::Graph graph = optimised(one);
  ASSERT_THAT(operators(graph), ElementsAre("Transpose", "Reshape"));
  EXPECT_THAT(graph.nodes[0].integers("perm"), ElementsAre(0, 2, 3, 1));

  const auto several = OnnxModel(13)
                           .input("a", {1, 3, 4, 5})
                           .input("b", {1, 3, 2, 2})
                           .integers("flat", {3}, {0, 0, -1})
                           .node("Reshape", {"a", "flat"}, {"first"})
                           .node("Reshape", {"b", "flat"}, {"second"})
                           .node("Concat", {"first", "second"}, {"joined"})
                           .with("axis", std::int64_t{2})
                           .node("Transpose", {"joined"}, {"y"})
                           .with("perm", Dims{0, 2, 1})
                           .output("y");
  EXPECT_THAT(operators(optimised(several)),
              testing::UnorderedElementsAre("Transpose", "Reshape", "Transpose", "Reshape", "Concat"));
}

TEST(RecogniseTokens, OtherSequencesStay) {
  auto model = [](const Dims& flat, const Dims& perm) {
    return OnnxModel(13)
        .input("x", {2, 3, 4, 5})
        .integers("flat", {3}, flat)
        .node("Reshape", {"x", "flat"}, {"cells"})
        .node("Transpose", {"cells"}, {"y"})
        .with("perm", perm)
        .output("y");
  };
  EXPECT_THAT(operators(optimised(model({2, 12, 5}, {0, 2, 1}))), ElementsAre("Reshape", "Transpose"));
  EXPECT_THAT(operators(optimised(model({2, 3, 20}, {1, 0, 2}))), ElementsAre("Reshape", "Transpose"));
  EXPECT_THAT(operators(optimised(model({2, 3, 20}, {0, 2, 1}).output("cells"))),
              ElementsAre("Reshape", "Transpose"));  // the other form is wanted as well
}

TEST(RecogniseChannelGathers, ShufflesSlicesSplits) {
  const auto shuffle = OnnxModel(13)
                           .input("x", {2, 6, 2, 2})
                           .integers("in", {2, 2, 3, 2, 2})
                           .integers("out", {2, 6, 2, 2})
                           .node("Reshape", {"x", "in"}, {"a"})
                           .node("Transpose", {"a"}, {"b"})
                           .with("perm", Dims{0, 2, 1, 3, 4})
                           .node("Reshape", {"b", "out"}, {"c"})
                           .node("Split", {"c"}, {"d", "e"})
                           .with("axis", std::int64_t{1})
                           .node("Add", {"d", "e"}, {"y"})
                           .output("y");
  const ir::Graph graph = optimised(shuffle);
  ASSERT_THAT(operators(graph), ElementsAre("takt.ChannelGather", "takt.ChannelGather", "Add"));
  EXPECT_THAT(graph.nodes[0].integers("channels"), ElementsAre(0, 3, 1));
  EXPECT_THAT(graph.nodes[1].integers("channels"), ElementsAre(4, 2, 5));

  const auto slice = OnnxModel(13)
                         .input("x", {1, 6, 2, 2})
                         .integers("from", {5})
                         .integers("to", {0})
                         .integers("axis", {1})
                         .integers("step", {-2})
                         .node("Slice", {"x", "from", "to", "axis", "step"}, {"y"})
                         .output("y");
  EXPECT_THAT(optimised(slice).nodes[0].integers("channels"), ElementsAre(5, 3, 1));
}

TEST(RecogniseChannelGathers, MovesOfPixelsStay) {
  const auto model =
      OnnxModel(13).input("x", {1, 2, 3, 3}).node("Transpose", {"x"}, {"y"}).with("perm", Dims{0, 1, 3, 2}).output("y");
  EXPECT_THAT(operators(optimised(model)), ElementsAre("Transpose"));
}

TEST(FuseConvolutions, ResidualThenActivation) {
  auto model = convolution().node("Add", {"x", "a"}, {"s"}).node("Relu", {"s"}, {"y"}).output("y");
  const ir::Graph graph = optimised(model);
  ASSERT_THAT(operators(graph), ElementsAre("Conv"));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 4U);
  EXPECT_EQ(graph[graph.nodes[0].inputs[3]].name, "x");
  EXPECT_EQ(graph.nodes[0].text("activation", ""), "relu");
}

TEST(FuseConvolutions, TheResidualMayBeWrittenAfterTheConvolution) {
  auto model = convolution().node("Abs", {"x"}, {"late"}).node("Add", {"a", "late"}, {"y"}).output("y");
  EXPECT_THAT(operators(optimised(model)), ElementsAre("Abs", "Conv"));
}

TEST(FuseConvolutions, OneActivationAndOnlyForItsOneReader) {
  auto twice = convolution().node("Relu", {"a"}, {"b"}).node("Sigmoid", {"b"}, {"y"}).output("y");
  EXPECT_THAT(operators(optimised(twice)), ElementsAre("Conv", "Sigmoid"));
  auto shared = convolution().node("Relu", {"a"}, {"b"}).node("Sub", {"b", "a"}, {"y"}).output("y");
  EXPECT_THAT(operators(optimised(shared)), ElementsAre("Conv", "Relu", "Sub"));
  auto broadcast = convolution().input("r", {1, 4, 1, 1}).node("Add", {"a", "r"}, {"y"}).output("y");
  EXPECT_THAT(operators(optimised(broadcast)), ElementsAre("Conv", "Add"));
}

TEST(FuseConvolutions, EveryActivation) {
  const auto activation = [](OnnxModel model) {
    const ir::Graph graph = optimised(model.output("y"));
    EXPECT_EQ(graph.nodes.size(), 1U);
    return graph.nodes.empty() ? std::string() : graph.nodes[0].text("activation", "");
  };
  EXPECT_EQ(activation(convolution().node("LeakyRelu", {"a"}, {"y"}).with("alpha", 0.2F)), "leaky");
  EXPECT_EQ(activation(convolution().node("Sigmoid", {"a"}, {"y"})), "sigmoid");
  EXPECT_EQ(activation(convolution(14).node("HardSwish", {"a"}, {"y"})), "hardswish");
  EXPECT_EQ(activation(convolution().node("Sigmoid", {"a"}, {"s"}).node("Mul", {"a", "s"}, {"y"})), "silu");
  EXPECT_EQ(activation(convolution(10).node("Clip", {"a"}, {"y"}).with("min", 0.0F).with("max", 6.0F)), "clip");
}

TEST(FuseConvolutions, ATransposedOneTakesAnActivationAndNoResidual) {
  const auto model = [](const char* then) {
    OnnxModel m = OnnxModel(13)
                      .input("x", {1, 4, 3, 3})
                      .floats("w", {4, 5, 2, 2}, noise(80))
                      .node("ConvTranspose", {"x", "w"}, {"a"})
                      .with("strides", Dims{2, 2});
    if (std::string(then) == "Add") return m.input("r", {1, 5, 6, 6}).node("Add", {"a", "r"}, {"y"}).output("y");
    return m.node(then, {"a"}, {"y"}).output("y");
  };
  const ir::Graph graph = optimised(model("Relu"));
  ASSERT_THAT(operators(graph), ElementsAre("ConvTranspose"));
  EXPECT_EQ(graph.nodes[0].text("activation", ""), "relu");
  EXPECT_THAT(operators(optimised(model("Add"))), ElementsAre("ConvTranspose", "Add"));
}

TEST(MergeCommon, EqualCallsAndConstants) {
  const auto model = OnnxModel(13)
                         .input("x", {2})
                         .floats("c", {2}, {1, 2})
                         .floats("d", {2}, {1, 2})
                         .node("Mul", {"x", "c"}, {"a"})
                         .node("Mul", {"x", "d"}, {"b"})
                         .node("Exp", {"a"}, {"e"})
                         .node("Exp", {"b"}, {"f"})
                         .node("Sub", {"e", "f"}, {"y"})
                         .output("y");
  EXPECT_THAT(operators(optimised(model, "common")), ElementsAre("Mul", "Exp", "Sub"));
}

TEST(RemoveDead, UnreadResultsGo) {
  const auto model = OnnxModel(13)
                         .input("x", {2})
                         .node("Exp", {"x"}, {"a"})
                         .node("Relu", {"a"}, {"b"})
                         .node("Abs", {"x"}, {"y"})
                         .output("y");
  EXPECT_THAT(operators(optimised(model, "dead")), ElementsAre("Abs"));
}

TEST(RunPasses, AnUnknownPassIsNamed) {
  ir::Graph graph = imported(convolution().output("a"));
  PassOptions options;
  options.off = {"magic"};
  const Status done = run_passes(graph, options);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUsage);
  EXPECT_THAT(done.error().message, ::testing::HasSubstr("magic"));
}

// Random chains of operators through all passes: whatever meets, the function stays.
TEST(RunPasses, RandomGraphsKeepTheirFunction) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::uint32_t state = seed;
    const auto pick = [&](std::uint32_t n) {
      state = state * 1664525U + 1013904223U;
      return (state >> 16) % n;
    };
    OnnxModel model(13);
    model.input("v0", {1, 4, 6, 6})
        .floats("w3", {4, 4, 3, 3}, noise(144, seed))
        .floats("w1", {4, 4, 1, 1}, noise(16, seed + 1))
        .floats("dw", {4, 1, 3, 3}, noise(36, seed + 2))
        .floats("c", {1, 4, 1, 1}, noise(4, seed + 3))
        .floats("v", {4}, {0.5F, 1, 2, 3})
        .integers("shape", {4, 2, 18})
        .integers("back", {1, 4, 6, 6});
    std::vector<std::string> values = {"v0"};
    const auto any = [&] {
      return values[values.size() - 1 - pick(static_cast<std::uint32_t>(std::min<std::size_t>(values.size(), 4)))];
    };
    for (int step = 0; step < 14; ++step) {
      const std::string x = any();
      const std::string y = "v" + std::to_string(step + 1);
      switch (pick(13)) {
        case 0: model.node("Conv", {x, "w3"}, {y}).with("pads", Dims{1, 1, 1, 1}); break;
        case 1: model.node("Conv", {x, "w1", "v"}, {y}); break;
        case 2: model.node("Conv", {x, "dw"}, {y}).with("group", std::int64_t{4}).with("auto_pad", "SAME_UPPER"); break;
        case 3: model.node("BatchNormalization", {x, "v", "v", "v", "v"}, {y}); break;
        case 4: model.node("Relu", {x}, {y}); break;
        case 5: model.node("Sigmoid", {x}, {y}); break;
        case 6: model.node("Mul", {x, any()}, {y}); break;
        case 7: model.node("Add", {x, any()}, {y}); break;
        case 8: model.node("Mul", {x, "c"}, {y}); break;
        case 9: model.node("Transpose", {x}, {y}).with("perm", Dims{0, 1, 3, 2}); break;
        case 10:
          model.node("Reshape", {x, "shape"}, {y + "a"})
              .node("Transpose", {y + "a"}, {y + "b"})
              .with("perm", Dims{1, 0, 2})
              .node("Reshape", {y + "b", "back"}, {y});
          break;
        case 11: model.node("Softmax", {x}, {y}).with("axis", std::int64_t{1}); break;
        default: model.node("Tanh", {x}, {y}); break;
      }
      values.push_back(y);
    }
    model.output(values.back()).output(values[values.size() - 2]);
    SCOPED_TRACE(seed);
    (void)optimised(model);
  }
}

}  // namespace
}  // namespace takt::compiler
