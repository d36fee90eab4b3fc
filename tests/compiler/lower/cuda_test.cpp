// CUDA plans, run by the device cuda-host with every memory access judged: the bytes of the interpreter of the graph,
// as CPU plans have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

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
