// Plans against the interpreter of the graph they were made from: equal bytes, since kernels follow the reference bit
// by bit, on every target of this machine, for any number of workers, whatever lay in memory before.

#include "compiler/lower/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "compiler/compile.h"
#include "tests/compiler/lower/random_net.h"
#include "tests/support/run_plan.h"

namespace takt::lower {
namespace {

using test::RandomNet;
using testing::HasSubstr;

// The graph as the lowering saw it, and its plan.
struct Compiled {
  ir::Graph graph;
  std::shared_ptr<const plan::Plan> plan;
};

Compiled compiled(const ir::Graph& graph, kernels::Target target, bool optimise) {
  Compiled out{graph, nullptr};
  compiler::Options options;
  options.target = target;
  options.parts = {1, 2, 3};
  options.optimise = optimise;
  options.after_pass = [&](std::string_view, const ir::Graph& now) { out.graph = now; };
  const auto bytes = compiler::compile(graph, {}, options);
  EXPECT_TRUE(bytes) << bytes.error().message << "\n" << ir::dump(graph);
  if (bytes) out.plan = *plan::Plan::parse(*bytes);
  return out;
}

void expect_equal(const Compiled& compiled, const std::vector<ir::Constant>& inputs, const std::string& what) {
  const auto values = ir::interpret(compiled.graph, inputs);
  ASSERT_TRUE(values) << values.error().message;
  std::vector<std::vector<std::byte>> bytes;
  for (const ir::Constant& input : inputs) bytes.push_back(input.bytes);
  for (const auto& [parts, fill] : {std::pair{1, 0x7f}, {2, 0xff}, {3, 0}}) {
    const auto found = test::run_plan(compiled.plan, bytes, parts, fill);
    ASSERT_EQ(found.size(), compiled.graph.outputs.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const ir::ValueId id = compiled.graph.outputs[i];
      const ir::Constant& expected = (*values)[static_cast<std::size_t>(id)];
      if (found[i] == expected.bytes) continue;
      std::size_t at = 0;
      while (at < expected.bytes.size() && found[i][at] == expected.bytes[at]) ++at;
      float a = 0, b = 0;
      std::memcpy(&a, found[i].data() + at / 4 * 4, 4);
      std::memcpy(&b, expected.bytes.data() + at / 4 * 4, 4);
      FAIL() << what << ", " << parts << " parts: output " << i << " ('" << compiled.graph[id].name << "', "
             << to_string(*compiled.graph[id].type) << ") differs first at element " << at / 4 << ": " << a
             << ", expected " << b << "\n"
             << ir::dump(compiled.graph);
    }
  }
}

TEST(Lower, RandomGraphsEqualTheInterpreter) {
  std::map<std::string, int> operators, kernels_used;
  plan::Statistics sum;
  for (std::uint32_t seed = 0; seed < 250; ++seed) {
    RandomNet net(seed);
    for (int i = 0; i < 14; ++i) net.grow();
    const ir::Graph graph = net.finish();
    if (graph.outputs.empty() || testing::Test::HasFailure()) break;
    const std::vector<ir::Constant> inputs = net.inputs();
    for (const ir::Node& node : graph.nodes) ++operators[node.op];
    for (const kernels::Target target : test::targets_of_this_machine()) {
      for (const bool optimise : {false, true}) {
        const Compiled now = compiled(graph, target, optimise);
        ASSERT_TRUE(now.plan);
        expect_equal(now, inputs,
                     "seed " + std::to_string(seed) + " for " + kernels::name_of(target) +
                         (optimise ? ", optimised" : ", as imported"));
        if (testing::Test::HasFailure()) return;
        for (std::size_t i = 0; i < now.plan->description().steps.size(); ++i) ++kernels_used[now.plan->kernel(i).name];
        const plan::Statistics& s = now.plan->description().statistics;
        sum.views += s.views;
        sum.placements += s.placements;
        sum.in_place += s.in_place;
        sum.reorders += s.reorders;
        sum.copies += s.copies;
      }
    }
  }
  std::printf("  %u views, %u placements, %u in place, %u reorders, %u copies\n  steps:", sum.views, sum.placements,
              sum.in_place, sum.reorders, sum.copies);
  for (const auto& [name, count] : kernels_used) std::printf(" %s %d", name.c_str(), count);
  std::printf("\n");
  // The dice have really met everything.
  for (const char* op : {"Conv", "Concat", "Split", "Slice", "Resize", "Pad", "takt.ChannelGather", "Softmax", "Gemm",
                         "MatMul", "Expand", "Gather", "BatchNormalization", "ReduceMean", "MaxPool", "AveragePool"}) {
    EXPECT_GT(operators[op], 5) << op;
  }
  EXPECT_GT(kernels_used["conv_pointwise_mapped_f32"], 0);
  EXPECT_GT(sum.placements, 0U);
  EXPECT_GT(sum.in_place, 0U);
  EXPECT_GT(sum.views, 0U);
}

TEST(Lower, RandomGraphsWithBranchesEqualTheInterpreter) {
  std::size_t guarded = 0;
  for (std::uint32_t seed = 1000; seed < 1150; ++seed) {
    RandomNet net(seed);
    for (int i = 0; i < 4; ++i) net.grow();
    for (int i = 0; i < 3; ++i) {
      net.branch(4);
      net.grow();
    }
    const ir::Graph graph = net.finish();
    const kernels::Target target = test::targets_of_this_machine().front();
    for (const bool optimise : {false, true}) {
      const Compiled now = compiled(graph, target, optimise);
      ASSERT_TRUE(now.plan);
      for (const plan::Step& step : now.plan->description().steps) guarded += step.guard != plan::kNone ? 1 : 0;
      // Other conditions, other branches.
      for (int run = 0; run < 4; ++run) {
        expect_equal(now, net.inputs(), "seed " + std::to_string(seed) + (optimise ? ", optimised" : ", as imported"));
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(guarded, 1000U);
}

TEST(Lower, SameBytesOnEveryCall) {
  RandomNet net(11);
  for (int i = 0; i < 30; ++i) net.grow();
  const ir::Graph graph = net.finish();
  for (const auto target : kernels::kTargets) {
    compiler::Options options;
    options.target = target;
    const auto once = compiler::compile(graph, {}, options), again = compiler::compile(graph, {}, options);
    ASSERT_TRUE(once) << once.error().message;
    EXPECT_EQ(*once, *again);
  }
}

ir::Graph one_node(ir::Node node, const std::vector<ir::Type>& inputs) {
  ir::Graph graph;
  for (const ir::Type& type : inputs) {
    graph.inputs.push_back(graph.add_value("x" + std::to_string(graph.inputs.size()), type));
  }
  node.inputs.insert(node.inputs.begin(), graph.inputs.begin(), graph.inputs.end());
  node.outputs = {graph.add_value("y")};
  graph.outputs = node.outputs;
  EXPECT_TRUE(ir::append(graph, node));
  return graph;
}

ir::Type f32(kernels::Shape shape) {
  ir::Type type;
  type.shape = shape;
  return type;
}

TEST(Lower, WhatHasNoKernelIsNamedAtOnce) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", f32({4, {1, 2, 3, 4}}));
  const ir::ValueId limit = graph.add_value("limit", f32({}));
  graph.inputs = {x, limit};
  for (const char* name : {"first", "second"}) {
    ir::Node pad;
    pad.op = "Pad";
    pad.name = name;
    const std::vector<std::int64_t> pads = {1, 1, 1, 1, 1, 1, 1, 1};
    pad.inputs = {x, graph.add_constant(std::string(name) + "_pads", ir::Constant::of(pads)), limit};
    pad.outputs = {graph.add_value(std::string(name) + "_out")};
    graph.outputs.push_back(pad.outputs[0]);
    ASSERT_TRUE(ir::append(graph, pad));
  }
  ir::Node clip;
  clip.op = "Clip";
  clip.name = "third";
  clip.inputs = {x, limit};
  clip.outputs = {graph.add_value("third_out")};
  graph.outputs.push_back(clip.outputs[0]);
  ASSERT_TRUE(ir::append(graph, clip));
  const auto lowered = lower(graph, {});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, Code::kInput);
  EXPECT_THAT(lowered.error().message, HasSubstr("Pad: a value that is not constant (first, second)"));
  EXPECT_THAT(lowered.error().message, HasSubstr("Clip: limits that are not constant (third)"));
}

TEST(Lower, APadValueOfRunTimeIsRefusedForBlockedImages) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", f32({4, {1, 16, 5, 7}}));
  const ir::ValueId value = graph.add_value("value", f32({}));
  graph.inputs = {x, value};
  ir::Node pool;
  pool.op = "MaxPool";
  pool.name = "pool";
  pool.inputs = {x};
  pool.attributes = {{"kernel_shape", std::vector<std::int64_t>{3, 3}}};
  pool.outputs = {graph.add_value("pooled")};
  ASSERT_TRUE(ir::append(graph, pool));
  ir::Node pad;
  pad.op = "Pad";
  pad.name = "pad";
  const std::vector<std::int64_t> pads = {0, 0, 1, 1, 0, 0, 1, 1};
  pad.inputs = {pool.outputs[0], graph.add_constant("pads", ir::Constant::of(pads)), value};
  pad.outputs = {graph.add_value("y")};
  graph.outputs = pad.outputs;
  ASSERT_TRUE(ir::append(graph, pad));
  const auto lowered = lower(graph, {});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, Code::kInput);
  EXPECT_THAT(lowered.error().message, HasSubstr("Pad: a value that is not constant (pad)"));
}

// a[m,k] by the constant b, plus the constant number c.
ir::Graph gemm(std::int64_t m, std::int64_t k, kernels::Shape b, bool transposed) {
  ir::Graph graph;
  const ir::ValueId a = graph.add_value("a", f32({2, {m, k}}));
  graph.inputs = {a};
  std::vector<float> values(static_cast<std::size_t>(b.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 2.5F;
  ir::Node node;
  node.op = "Gemm";
  node.name = "gemm";
  node.inputs = {a, graph.add_constant("b", ir::Constant::of(values, b)),
                 graph.add_constant("c", ir::Constant::scalar(0.75F))};
  node.attributes = {{"beta", 2.0F}, {"transB", std::int64_t{transposed}}};
  node.outputs = {graph.add_value("y")};
  graph.outputs = node.outputs;
  EXPECT_TRUE(ir::append(graph, node));
  return graph;
}

TEST(Lower, GemmTakesANumberAsC) {
  const Compiled plan = compiled(gemm(2, 3, {2, {5, 3}}, true), kernels::best_target(), false);
  ASSERT_NE(plan.plan, nullptr);
  const std::vector<float> a = {1, -2, 3, 0.5F, 4, -1};
  expect_equal(plan, {ir::Constant::of(a, kernels::Shape{2, {2, 3}})}, "gemm");
}

TEST(Lower, SumsOverNothingAreRefused) {
  for (const bool transposed : {false, true}) {
    const kernels::Shape b = transposed ? kernels::Shape{2, {5, 0}} : kernels::Shape{2, {0, 5}};
    const auto lowered = lower(gemm(2, 0, b, transposed), {});
    ASSERT_FALSE(lowered);
    EXPECT_EQ(lowered.error().code, Code::kInput);
    EXPECT_THAT(lowered.error().message, HasSubstr("Gemm: a sum over no elements (K = 0) (gemm)"));
  }
}

TEST(Lower, ConcatAtBlockBordersCopiesNothing) {
  ir::Graph graph;
  std::vector<ir::ValueId> parts;
  for (int i = 0; i < 3; ++i) {
    const ir::ValueId x = graph.add_value("x" + std::to_string(i), f32({4, {1, 16, 5, 7}}));
    graph.inputs.push_back(x);
    ir::Node pool;
    pool.op = "MaxPool";
    pool.name = "pool" + std::to_string(i);
    pool.inputs = {x};
    pool.attributes = {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
                       {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
    pool.outputs = {graph.add_value("part" + std::to_string(i))};
    parts.push_back(pool.outputs[0]);
    ASSERT_TRUE(ir::append(graph, pool));
  }
  ir::Node concat;
  concat.op = "Concat";
  concat.name = "concat";
  concat.inputs = parts;
  concat.attributes = {{"axis", std::int64_t{1}}};
  concat.outputs = {graph.add_value("whole")};
  ASSERT_TRUE(ir::append(graph, concat));
  ir::Node pool;
  pool.op = "GlobalAveragePool";
  pool.name = "mean";
  pool.inputs = concat.outputs;
  pool.outputs = {graph.add_value("y")};
  graph.outputs = pool.outputs;
  ASSERT_TRUE(ir::append(graph, pool));
  const auto lowered = lower(graph, {.target = kernels::Target::kAvx512});
  ASSERT_TRUE(lowered) << lowered.error().message;
  EXPECT_EQ(lowered->description.statistics.placements, 3U);
  EXPECT_EQ(lowered->description.statistics.copies, 0U);
}

// Numbers between -1 and 1 that repeat nowhere soon.
ir::Constant noise(const kernels::Shape& shape, std::uint32_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(seed >> 8) / 8388608.0F - 1.0F);
  }
  return ir::Constant::of(values, shape);
}

// Layers of a network one after the other, on images.
struct Layers {
  ir::Graph graph;
  std::uint32_t seed = 1;

  ir::ValueId add(const char* op, std::vector<ir::ValueId> inputs, std::map<std::string, ir::Attribute> attributes) {
    ir::Node node;
    node.op = op;
    node.name = op + std::to_string(graph.nodes.size());
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    node.outputs = {graph.add_value(node.name + ".y")};
    const ir::ValueId out = node.outputs[0];
    const Status added = ir::append(graph, std::move(node));
    EXPECT_TRUE(added) << added.error().message;
    return out;
  }
  ir::ValueId conv(ir::ValueId x, std::int64_t out, std::int64_t kernel, std::int64_t stride, bool depthwise) {
    const std::int64_t in = graph[x].type->shape.dims[1];
    const std::int64_t pad = kernel / 2;
    const ir::ValueId w = graph.add_constant("w", noise({4, {out, depthwise ? 1 : in, kernel, kernel}}, ++seed));
    const ir::ValueId b = graph.add_constant("b", noise({1, {out}}, ++seed));
    return add("Conv", {x, w, b},
               {{"group", depthwise ? in : std::int64_t{1}},
                {"strides", std::vector<std::int64_t>{stride, stride}},
                {"dilations", std::vector<std::int64_t>{1, 1}},
                {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
                {"activation", std::string("relu")}});
  }
  ir::ValueId gather(ir::ValueId x, std::int64_t first, std::int64_t step) {
    std::vector<std::int64_t> channels;
    for (std::int64_t c = first; c < graph[x].type->shape.dims[1]; c += step) channels.push_back(c);
    return add("takt.ChannelGather", {x}, {{"channels", channels}});
  }
};

// A unit of a shuffle network, and two readers of its result that take every channel: parts that do not fill their
// blocks lie side by side with holes, half of the shuffle is a list of channels.
TEST(Lower, ConcatsWithHolesAndShufflesCopyNothing) {
  Layers net;
  const ir::ValueId x = net.graph.add_value("x", f32({4, {1, 24, 9, 11}}));
  net.graph.inputs = {x};
  const ir::ValueId a = net.conv(x, 24, 1, 1, false), b = net.conv(x, 24, 3, 1, false);
  const ir::ValueId first = net.add("Concat", {a, b}, {{"axis", std::int64_t{1}}});
  const ir::ValueId kept = net.gather(first, 0, 2);
  const ir::ValueId worked = net.conv(net.conv(net.gather(first, 1, 2), 24, 1, 1, false), 24, 3, 1, true);
  const ir::ValueId second = net.add("Concat", {kept, worked}, {{"axis", std::int64_t{1}}});
  const ir::ValueId pooled = net.add("AveragePool", {net.conv(second, 48, 3, 2, true)},
                                     {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
                                      {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
                                      {"strides", std::vector<std::int64_t>{1, 1}}});
  const ir::ValueId third = net.add("Concat", {pooled, net.conv(second, 40, 3, 2, false)}, {{"axis", std::int64_t{1}}});
  net.graph.outputs = {net.conv(third, 20, 1, 1, false), net.conv(second, 10, 1, 1, false)};
  const std::vector<ir::Constant> inputs = {noise({4, {1, 24, 9, 11}}, 99)};
  for (const kernels::Target target : test::targets_of_this_machine()) {
    const Compiled now = compiled(net.graph, target, false);
    ASSERT_TRUE(now.plan);
    expect_equal(now, inputs, kernels::name_of(target));
    EXPECT_EQ(now.plan->description().statistics.copies, 0U);
    std::map<std::string, int> used;
    for (std::size_t i = 0; i < now.plan->description().steps.size(); ++i) ++used[now.plan->kernel(i).name];
    EXPECT_EQ(used["channel_gather_f32"], target == kernels::Target::kAvx512 ? 2 : 1);
    EXPECT_GT(used["conv_pointwise_mapped_f32"], 0);
  }
}

TEST(Lower, StateGoesToItsNextHalf) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", f32({1, {64}}));
  const ir::ValueId before = graph.add_value("total", f32({1, {64}}));
  graph.inputs = {x};
  ir::Node add;
  add.op = "Add";
  add.name = "add";
  add.inputs = {before, x};
  add.outputs = {graph.add_value("sum")};
  graph.outputs = add.outputs;
  graph.states.push_back({"total", before, add.outputs[0], nullptr});
  ASSERT_TRUE(ir::append(graph, add));
  compiler::Options options;
  const auto bytes = compiler::compile(graph, {}, options);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto plan = *plan::Plan::parse(*bytes);
  ASSERT_EQ(plan->description().states.size(), 1U);
  auto session = exec::Session::create(plan);
  if (!session) GTEST_SKIP() << session.error().message;
  test::AlignedBytes in(256), out(256);
  const std::vector<float> ones(64, 1.0F);
  std::memcpy(in.span().data(), ones.data(), 256);
  ASSERT_TRUE((*session)->bind_input(0, in.span()));
  ASSERT_TRUE((*session)->bind_output(0, out.span()));
  for (int i = 1; i < 4; ++i) {
    (*session)->run();
    (*session)->publish();
    float total = 0;
    std::memcpy(&total, out.span().data(), sizeof total);
    EXPECT_EQ(total, static_cast<float>(i));
    std::memcpy(&total, (*session)->state(0).data(), sizeof total);
    EXPECT_EQ(total, static_cast<float>(i));
  }
}

TEST(Compile, ImageGoesThroughPreprocess) {
  ir::Node relu;
  relu.op = "Relu";
  relu.name = "relu";
  const ir::Graph graph = one_node(relu, {f32({4, {1, 3, 4, 6}})});
  compiler::Options options;
  options.parts = {1, 2, 3};
  options.preprocess.emplace();
  compiler::Preprocess& p = *options.preprocess;
  p.width = 11;
  p.height = 9;
  p.pitch = 36;
  p.offset = 64;
  p.payload_bytes = 64 + 9 * 36;
  p.colour = "bgr";
  p.scale = 1.0F / 255;
  p.mean = {0.4F, 0.5F, 0.6F};
  p.std = {0.2F, 0.3F, 0.4F};
  ir::Graph last;
  options.after_pass = [&](std::string_view, const ir::Graph& now) { last = now; };
  const auto bytes = compiler::compile(graph, {}, options);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto plan = *plan::Plan::parse(*bytes);
  EXPECT_EQ(plan->find_input("x0"), 0U);
  const plan::Tensor& input = plan->description().tensors[plan->description().inputs[0]];
  EXPECT_EQ(input.dtype, kernels::DType::kU8);
  EXPECT_EQ(input.bytes, static_cast<std::uint64_t>(p.payload_bytes));
  if (kernels::unsupported(options.target) != nullptr) return;
  ir::Constant image = ir::Constant::allocate(kernels::DType::kU8, {1, {p.payload_bytes}});
  for (std::size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = static_cast<std::byte>(i * 37 % 251);
  expect_equal({last, plan}, {image}, "preprocess");
}

TEST(Compile, PartsThatNoPlanMayHaveAreRefused) {
  ir::Node relu;
  relu.op = "Relu";
  relu.name = "relu";
  const ir::Graph graph = one_node(relu, {f32({1, {8}})});
  for (const std::vector<std::uint16_t>& parts :
       {std::vector<std::uint16_t>{}, {2}, {1, 1}, {1, 4, 2}, {1, 65}, {0, 1}}) {
    compiler::Options options;
    options.parts = parts;
    // Before anything else: the file is not even looked at.
    for (const auto& bytes : {compiler::compile(graph, {}, options), compiler::compile_onnx({}, options)}) {
      ASSERT_FALSE(bytes);
      EXPECT_EQ(bytes.error().code, Code::kUsage);
      EXPECT_THAT(bytes.error().message, HasSubstr("ascend from 1 to at most 64"));
    }
  }
  compiler::Options options;
  options.parts = {1, 3, 64};
  EXPECT_TRUE(compiler::compile(graph, {}, options));
}

TEST(Compile, ImageThatDoesNotFitIsRefused) {
  ir::Node relu;
  relu.op = "Relu";
  relu.name = "relu";
  const ir::Graph graph = one_node(relu, {f32({4, {1, 4, 4, 6}})});
  compiler::Options options;
  options.preprocess.emplace();
  options.preprocess->width = options.preprocess->height = 8;
  options.preprocess->pitch = 24;
  options.preprocess->payload_bytes = 192;
  const auto four = compiler::compile(graph, {}, options);
  ASSERT_FALSE(four);
  EXPECT_EQ(four.error().code, Code::kUsage);
  EXPECT_THAT(four.error().message, HasSubstr("an image feeds f32[1,3,height,width]; input 'x0' is f32[1,4,4,6]"));
  options.preprocess->tensor = "y0";
  EXPECT_THAT(compiler::compile(graph, {}, options).error().message, HasSubstr("'y0', the network has: x0"));
  const ir::Graph three = one_node(relu, {f32({4, {1, 3, 4, 6}})});
  options.preprocess->tensor = "x0";
  options.preprocess->payload_bytes = 191;
  EXPECT_THAT(compiler::compile(three, {}, options).error().message, HasSubstr("191 bytes"));
}

}  // namespace
}  // namespace takt::lower
