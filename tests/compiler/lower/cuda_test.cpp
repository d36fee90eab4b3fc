// CUDA plans, run by the device cuda-host with every memory access judged: the bytes of the interpreter of the graph,
// as CPU plans have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "compiler/compile.h"
#include "runtime/device/cuda_host.h"
#include "tests/compiler/lower/random_net.h"
#include "tests/support/run_plan.h"

namespace takt::lower {
namespace {

using test::RandomNet;
using testing::HasSubstr;

TEST(CudaPlans, RandomGraphsEqualTheInterpreter) {
  const auto device = device::CudaHost::create(kernels::cuda::simt_checked::launch_of, {.seed = 5, .check = true});
  std::map<std::string, int> kernels_used;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomNet net(seed);
    for (int i = 0; i < 14; ++i) net.grow();
    const ir::Graph graph = net.finish();
    ASSERT_FALSE(graph.outputs.empty() || testing::Test::HasFailure());
    const std::vector<ir::Constant> inputs = net.inputs();
    compiler::Options options;
    options.target = seed % 2 == 0 ? kernels::Target::kCudaSm87 : kernels::Target::kCudaSm90;
    ir::Graph lowered = graph;
    options.after_pass = [&](std::string_view, const ir::Graph& now) { lowered = now; };
    const auto bytes = compiler::compile(graph, {}, options);
    ASSERT_TRUE(bytes) << bytes.error().message << "\n" << ir::dump(graph);
    const std::shared_ptr<const plan::Plan> plan = *plan::Plan::parse(*bytes);
    for (std::size_t i = 0; i < plan->description().steps.size(); ++i) ++kernels_used[plan->kernel(i).name];
    const auto values = ir::interpret(lowered, inputs);
    ASSERT_TRUE(values) << values.error().message;
    std::vector<std::vector<std::byte>> given;
    for (const ir::Constant& input : inputs) given.push_back(input.bytes);
    const auto found = test::run_plan(plan, given, 1, 0xff, *device);
    for (const simt::Finding& finding : device->take_findings()) ADD_FAILURE() << seed << ": " << finding.text;
    ASSERT_EQ(found.size(), lowered.outputs.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], (*values)[static_cast<std::size_t>(lowered.outputs[i])].bytes)
          << "seed " << seed << ", output " << i << "\n"
          << ir::dump(lowered);
    }
  }
  EXPECT_GT(kernels_used.size(), 20U);
}

TEST(CudaPlans, BranchesRunUnderTheirConditions) {
  const auto device = device::CudaHost::create(kernels::cuda::simt::launch_of, {});
  std::size_t guarded = 0;
  for (std::uint32_t seed = 1000; seed < 1040; ++seed) {
    RandomNet net(seed);
    for (int i = 0; i < 4; ++i) net.grow();
    for (int i = 0; i < 3; ++i) {
      net.branch(4);
      net.grow();
    }
    const ir::Graph graph = net.finish();
    const std::vector<ir::Constant> inputs = net.inputs();
    compiler::Options options;
    options.target = kernels::Target::kCudaSm87;
    ir::Graph lowered = graph;
    options.after_pass = [&](std::string_view, const ir::Graph& now) { lowered = now; };
    const auto bytes = compiler::compile(graph, {}, options);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const std::shared_ptr<const plan::Plan> plan = *plan::Plan::parse(*bytes);
    for (const plan::Step& step : plan->description().steps) guarded += step.guard != plan::kNone ? 1 : 0;
    const auto values = ir::interpret(lowered, inputs);
    ASSERT_TRUE(values) << values.error().message;
    std::vector<std::vector<std::byte>> given;
    for (const ir::Constant& input : inputs) given.push_back(input.bytes);
    const auto found = test::run_plan(plan, given, 1, 0x7f, *device);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], (*values)[static_cast<std::size_t>(lowered.outputs[i])].bytes) << seed << ", output " << i;
    }
  }
  EXPECT_GT(guarded, 100U);
}

float at(const std::vector<std::byte>& bytes, std::size_t i) {
  float value = 0;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Results within what rounding at each operator leaves, of the largest of the output; every access judged, and the same
// bytes in another order.
TEST(CudaPlans, RandomGraphsInF16StayCloseToTheInterpreter) {
  std::set<std::string> forms;
  double worst = 0;
  int judged = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomNet net(seed);
    for (int i = 0; i < 14; ++i) net.grow();
    const ir::Graph graph = net.finish();
    const std::vector<ir::Constant> inputs = net.inputs();
    compiler::Options options;
    options.target = kernels::Target::kCudaSm87;
    options.precision = kernels::DType::kF16;
    ir::Graph lowered = graph;
    options.after_pass = [&](std::string_view, const ir::Graph& now) { lowered = now; };
    const auto bytes = compiler::compile(graph, {}, options);
    ASSERT_TRUE(bytes) << bytes.error().message << "\n" << ir::dump(graph);
    const std::shared_ptr<const plan::Plan> plan = *plan::Plan::parse(*bytes);
    const plan::Description& d = plan->description();
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
      const std::string name = plan->kernel(i).name;
      if (name.ends_with("_f16")) forms.insert(name);
    }
    for (const plan::Tensor& tensor : d.tensors) {
      EXPECT_TRUE(tensor.layout.block == 0 || tensor.dtype == kernels::DType::kF16) << tensor.name;
    }
    const auto values = ir::interpret(lowered, inputs);
    ASSERT_TRUE(values) << values.error().message;
    std::vector<std::vector<std::byte>> given, first;
    for (const ir::Constant& input : inputs) given.push_back(input.bytes);
    for (const std::uint64_t order : {5, 6}) {
      const auto device =
          device::CudaHost::create(kernels::cuda::simt_checked::launch_of, {.seed = order, .check = true});
      const auto found = test::run_plan(plan, given, 1, 0xff, *device);
      for (const simt::Finding& finding : device->take_findings()) ADD_FAILURE() << seed << ": " << finding.text;
      if (first.empty()) first = found;
      EXPECT_EQ(found, first) << seed;
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      const auto output = static_cast<std::size_t>(lowered.outputs[i]);
      if (lowered.values[output].type->dtype != kernels::DType::kF32) continue;
      const std::vector<std::byte>& expected = (*values)[output].bytes;
      double most = 0, error = 0;
      for (std::size_t k = 0; k < expected.size() / sizeof(float); ++k) {
        most = std::max(most, std::abs(static_cast<double>(at(expected, k))));
        error = std::max(error, std::abs(static_cast<double>(at(first[i], k)) - static_cast<double>(at(expected, k))));
      }
      if (!(most > 0 && most < 1e4)) continue;  // beyond, f16 overflows on the way
      ++judged;
      worst = std::max(worst, error / most);
      EXPECT_LE(error / most, 5e-3) << "seed " << seed << ", output " << i << "\n" << ir::dump(lowered);
    }
  }
  std::printf("  %d outputs, largest difference %.2e of the output's largest number; %zu kernels\n", judged, worst,
              forms.size());
  EXPECT_GT(judged, 100);
  EXPECT_GT(forms.size(), 15U);
}

// What a camera network begins with: the picture in f16 from its first step on, the output in f32.
TEST(CudaPlans, F16BeginsAtThePictureAndEndsAtTheOutput) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", ir::Type{kernels::DType::kF32, {4, {1, 3, 8, 8}}});
  graph.inputs = {x};
  const auto constant = [&](const char* name, const kernels::Shape& shape, float value) {
    const std::vector<float> all(static_cast<std::size_t>(shape.elements()), value);
    return graph.add_constant(name, ir::Constant::of(all, shape));
  };
  const auto conv = [&](float weight) {
    ir::Node node;
    node.op = "Conv";
    node.name = "my_conv";
    node.inputs = {x, constant("w", {4, {40, 3, 1, 1}}, weight), constant("b", {1, {40}}, 1e6F)};
    node.outputs = {graph.add_value("y")};
    graph.outputs = {node.outputs[0]};
    return ir::append(graph, std::move(node));
  };
  ASSERT_TRUE(conv(0.5F));
  compiler::Options options;
  options.target = kernels::Target::kCudaSm87;
  options.precision = kernels::DType::kF16;
  compiler::Preprocess& picture = options.preprocess.emplace();
  picture.width = picture.height = 8;
  picture.pitch = 24;
  picture.payload_bytes = 192;
  const auto bytes = compiler::compile(graph, {}, options);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto plan = *plan::Plan::parse(*bytes);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan->description().steps.size(); ++i) names.emplace_back(plan->kernel(i).name);
  EXPECT_THAT(names, testing::ElementsAre("preprocess_u8_f16", "conv_first_f16", "reorder_to_linear_f16"));
  EXPECT_EQ(plan->description().tensors[plan->description().outputs[0]].dtype, kernels::DType::kF32);

  // From an input of f32 the picture is rounded first.
  options.preprocess.reset();
  const auto plain = plan::Plan::parse(*compiler::compile(graph, {}, options));
  ASSERT_TRUE(plain);
  EXPECT_STREQ((*plain)->kernel(0).name, "cast_f16");

  options.target = kernels::Target::kAvx2;
  const auto cpu = compiler::compile(graph, {}, options);
  ASSERT_FALSE(cpu);
  EXPECT_EQ(cpu.error().code, Code::kUsage);
  EXPECT_THAT(cpu.error().message, HasSubstr("cpu:avx2 has no kernels in f16"));

  // A bias stays f32; a weight that f16 cannot hold is refused, with its node.
  graph.nodes.clear();
  ASSERT_TRUE(conv(7e4F));
  options.target = kernels::Target::kCudaSm87;
  const auto beyond = compiler::compile(graph, {}, options);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kInput);
  EXPECT_THAT(beyond.error().message, HasSubstr("Conv: a constant of 70000, which f16 cannot hold (my_conv)"));
}

TEST(CudaPlans, WhatHasNoKernelIsRefusedByNameAllAtOnce) {
  ir::Graph graph;
  const ir::Type type{kernels::DType::kF32, {2, {2, 8}}};
  const ir::ValueId x = graph.add_value("x", type);
  graph.inputs = {x};
  for (const char* op : {"Sin", "Relu", "Cos"}) {
    ir::Node node;
    node.op = op;
    node.name = std::string("my_") + op;
    node.inputs = {x};
    node.outputs = {graph.add_value(std::string("y_") + op)};
    graph.outputs.push_back(node.outputs[0]);
    ASSERT_TRUE(ir::append(graph, std::move(node)));
  }
  compiler::Options options;
  options.target = kernels::Target::kCudaSm90;
  const auto bytes = compiler::compile(graph, {}, options);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kInput);
  EXPECT_THAT(bytes.error().message,
              testing::AllOf(HasSubstr("takt has no kernel for\n"), HasSubstr("  Sin of f32 on cuda:sm_90 (my_Sin)"),
                             HasSubstr("  Cos of f32 on cuda:sm_90 (my_Cos)"), testing::Not(HasSubstr("my_Relu")),
                             testing::Not(HasSubstr("reference"))));
}

}  // namespace
}  // namespace takt::lower
