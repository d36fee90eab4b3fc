// State from ONNX to sessions: what a model declares, what jobs see of it, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using ::testing::AllOf;
using ::testing::HasSubstr;

// sum' = sum + x, y = 2 sum'; `first` is the first value of the sum.
OnnxModel summing(const std::vector<float>& first = {}) {
  OnnxModel model(13);
  model.input("x", {2}).input("sum", {2});
  if (!first.empty()) model.floats("sum", {2}, first);
  model.node("Add", {"sum", "x"}, {"next"}).node("Add", {"next", "next"}, {"y"}).output("y").output("next");
  auto* state = model.model.add_metadata_props();
  state->set_key("takt.state:sum");
  state->set_value("next");
  return model;
}

std::shared_ptr<const plan::Plan> planned(const OnnxModel& model, bool optimise) {
  const std::string onnx = model.bytes();
  Options options;
  options.target = test::targets_of_this_machine().front();
  options.optimise = optimise;
  const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), options);
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes ? *plan::Plan::parse(*bytes) : nullptr;
}

std::string error_of(const OnnxModel& model, const ImportOptions& options = {}) {
  const std::string onnx = model.bytes();
  const auto graph = import_onnx(std::as_bytes(std::span(onnx)), options);
  EXPECT_FALSE(graph);
  return graph ? "" : graph.error().message;
}

// A session with its input and output; a run gives the first element.
struct Job {
  std::unique_ptr<exec::Session> session;
  test::AlignedBytes x{8}, y{8};
  explicit Job(const std::shared_ptr<const plan::Plan>& plan, std::shared_ptr<exec::StateStore> state = nullptr) {
    exec::Placement placement;
    placement.state = std::move(state);
    auto made = exec::Session::create(plan, placement);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    session = *std::move(made);
    EXPECT_TRUE(session->bind_input(0, x.span()));
    EXPECT_TRUE(session->bind_output(0, y.span()));
  }
  float run(float a, float b) {
    const float values[2] = {a, b};
    std::memcpy(x.span().data(), values, sizeof values);
    session->run();
    float first = 0;
    std::memcpy(&first, y.span().data(), sizeof first);
    return first;
  }
};

TEST(OnnxState, LeavesTheInterfaceAndGoesOnFromJobToJob) {
  for (const bool optimise : {false, true}) {
    const auto plan = planned(summing({10, 0}), optimise);
    ASSERT_TRUE(plan);
    const plan::Description& d = plan->description();
    EXPECT_EQ(d.inputs.size(), 1U);
    EXPECT_EQ(d.outputs.size(), 1U);
    ASSERT_EQ(d.states.size(), 1U);
    EXPECT_EQ(d.states[0].name, "sum");
    Job job(plan);
    EXPECT_EQ(job.run(1, 0), 22);
    job.session->publish();
    EXPECT_EQ(job.run(2, 0), 26);
    // Given up: it does not publish, and the next one begins where the last published one ended.
    EXPECT_EQ(job.run(100, 0), 222);
    EXPECT_EQ(job.run(2, 0), 26);
    job.session->publish();
    EXPECT_EQ(job.run(0, 0), 26);
  }
}

TEST(OnnxState, BeginsWithZerosWithoutAnInitializer) {
  const auto plan = planned(summing(), true);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->description().states[0].initial, plan::kNone);
  Job job(plan);
  EXPECT_EQ(job.run(3, 0), 6);
}

TEST(OnnxState, VariantsShareIt) {
  const auto full = planned(summing({1, 1}), true);
  OnnxModel other = summing({7, 7});  // another first value, the same schema
  other.model.mutable_graph()->mutable_node(1)->set_op_type("Sub");
  const auto lite = planned(other, true);
  ASSERT_TRUE(full && lite);
  EXPECT_EQ(full->description().state_schema, lite->description().state_schema);
  const auto state = exec::StateStore::create(full, device::cpu());
  ASSERT_TRUE(state);
  Job a(full, *state), b(lite, *state);
  EXPECT_EQ(a.run(4, 0), 10);
  a.session->publish();
  b.session->refresh_state();
  EXPECT_EQ(b.run(1, 0), 0);  // next - next, with next = 6
  b.session->publish();
  a.session->refresh_state();
  EXPECT_EQ(a.run(0, 0), 12);
}

TEST(OnnxState, WhatDoesNotFitIsRefused) {
  OnnxModel model = summing();
  model.model.mutable_metadata_props(0)->set_value("nothing");
  EXPECT_THAT(error_of(model), HasSubstr("has no output nothing, which state sum needs"));
  EXPECT_THAT(error_of(summing(), {.states = {{"sum", "y"}}}),
              AllOf(HasSubstr("by the model's metadata"), HasSubstr("as y elsewhere")));
  EXPECT_THAT(error_of(summing(), {.states = {{"x", "next"}}}), HasSubstr("has no output next, which state x needs"));
  OnnxModel wide(13);
  wide.input("x", {2}).input("h", {2}).node("Concat", {"h", "x"}, {"n"}).with("axis", std::int64_t{0}).output("n");
  EXPECT_THAT(error_of(wide, {.states = {{"h", "n"}}}), HasSubstr("state h is f32[2] and becomes f32[4]"));
  EXPECT_THAT(error_of(summing({1, 2}), {.input_shapes = {{"sum", {1, {2}}}}, .states = {{"q", "y"}}}),
              HasSubstr("has no input q"));
}

TEST(OnnxState, TheInterpreterBeginsWithTheFirstValue) {
  const std::string onnx = summing({10, 20}).bytes();
  const auto graph = import_onnx(std::as_bytes(std::span(onnx)), {});
  ASSERT_TRUE(graph);
  const float x[] = {1, 2};
  const ir::Constant input = ir::Constant::of(x, kernels::Shape{1, {2}});
  const auto values = ir::interpret(*graph, std::span(&input, 1));
  ASSERT_TRUE(values);
  EXPECT_EQ((*values)[static_cast<std::size_t>(graph->outputs[0])].tensor().as<float>()[1], 44);
}

}  // namespace
}  // namespace takt::compiler
