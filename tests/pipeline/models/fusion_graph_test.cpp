// The fusion stage's graph without its stage: its shape, and its plan against the interpreter, job after job.
#include "pipeline/models/fusion_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "compiler/ir/operators.h"
#include "pipeline/messages/messages.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"
#include "tests/pipeline/models/fusion_jobs.h"

namespace takt::pipeline {
namespace {

using ::testing::ElementsAre;

TEST(FusionGraph, IsMadeOfTaktsOperators) {
  const auto graph = fusion_graph({}, lidar_and_radar(), 3);
  ASSERT_TRUE(graph) << graph.error().message;
  const Status sound = ir::verify(*graph);
  ASSERT_TRUE(sound) << sound.error().message;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < 9; ++i) first.push_back(graph->nodes[i].op);
  EXPECT_THAT(first, ElementsAre("takt.EgoMotion", "takt.Detections", "takt.KalmanPredict", "takt.Gate", "takt.Assign",
                                 "takt.Align", "takt.KalmanUpdate", "takt.TrackUpdate", "takt.Birth"));
  EXPECT_EQ(graph->nodes.size(), 1 + 2 * 8 + 2U);
  EXPECT_EQ(graph->nodes.back().op, "takt.TrackOutput");
  std::vector<std::string> states;
  for (const ir::State& s : graph->states) states.push_back(s.name);
  EXPECT_THAT(states, ElementsAre("count", "motion", "body", "life", "clock", "ego_stamps", "ego_samples", "used"));
}

TEST(FusionGraph, PlansAreTheSameAndKeepTheStateAcrossParameters) {
  const auto a = compile_fusion({}, lidar_and_radar(), 3, {1, 2}), b = compile_fusion({}, lidar_and_radar(), 3, {1, 2});
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->digest(), (*b)->digest());
  FusionModel other;
  other.tracker.gate_chi2 = 9;
  const auto c = compile_fusion(other, lidar_and_radar(), 3, {1});
  ASSERT_TRUE(c);
  EXPECT_EQ((*a)->description().state_schema, (*c)->description().state_schema);
  other.motion = kernels::MotionModel::kTurnRate;
  const auto d = compile_fusion(other, lidar_and_radar(), 3, {1});
  ASSERT_TRUE(d);
  EXPECT_NE((*a)->description().state_schema, (*d)->description().state_schema);
}

void compare_with_interpreter(kernels::MotionModel motion, int parts) {
  FusionModel model;
  model.motion = motion;
  auto built = fusion_graph(model, lidar_and_radar(), 3);
  ASSERT_TRUE(built);
  ir::Graph graph = *std::move(built);
  const auto plan = compile_fusion(model, lidar_and_radar(), 3, {1, 2});
  ASSERT_TRUE(plan) << plan.error().message;
  auto session = exec::Session::create(*plan);
  ASSERT_TRUE(session);
  std::mt19937 random(3);
  std::uint32_t most = 0;
  for (int n = 0; n < 25; ++n) {
    const std::vector<ir::Constant> inputs = job_of(graph, n, random).in_order(graph);
    std::vector<memory::AlignedBuffer> buffers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      buffers.push_back(*memory::AlignedBuffer::create(inputs[i].bytes.size()));
      std::memcpy(buffers.back().data(), inputs[i].bytes.data(), inputs[i].bytes.size());
      ASSERT_TRUE((*session)->bind_input(i, buffers.back().span()));
    }
    std::vector<memory::AlignedBuffer> outputs;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const ir::Type& type = *graph[graph.outputs[i]].type;
      outputs.push_back(
          *memory::AlignedBuffer::create(static_cast<std::uint64_t>(type.shape.elements()) * size_of(type.dtype)));
      ASSERT_TRUE((*session)->bind_output(i, outputs.back().span()));
    }
    ASSERT_TRUE((*session)->ready(parts));
    for (std::size_t step = 0; step < (*session)->steps(); ++step) {
      for (int part = parts; part-- > 0;) (*session)->run_step(step, part, parts);
    }
    (*session)->publish();

    const auto values = ir::interpret(graph, inputs);
    ASSERT_TRUE(values) << values.error().message;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ir::Constant& expected = (*values)[static_cast<std::size_t>(graph.outputs[i])];
      ASSERT_EQ(std::memcmp(outputs[i].data(), expected.bytes.data(), expected.bytes.size()), 0)
          << "job " << n << ", output " << graph[graph.outputs[i]].name;
    }
    most = std::max(most, reinterpret_cast<const TrackList*>(outputs[0].data())->count);
    // What the states hold now is what the interpreter begins with in the next job.
    std::int32_t count = 0;
    std::memcpy(&count, (*session)->state(0).data(), sizeof count);
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      ir::State& state = graph.states[s];
      const ir::Constant& expected = (*values)[static_cast<std::size_t>(state.next)];
      const ir::Type& type = *graph[state.next].type;
      const std::size_t rows = type.count == ir::kNoValue ? 1 : static_cast<std::size_t>(kMaxTracks);
      const std::size_t valid = type.count == ir::kNoValue ? 1 : static_cast<std::size_t>(count);
      ASSERT_EQ(std::memcmp((*session)->state(s).data(), expected.bytes.data(), expected.bytes.size() / rows * valid),
                0)
          << "job " << n << ", state " << state.name;
      state.initial = std::make_shared<const ir::Constant>(expected);
    }
  }
  EXPECT_GT(most, 15U);
}

TEST(FusionGraph, PlanEqualsTheInterpreter) { compare_with_interpreter(kernels::MotionModel::kConstantVelocity, 1); }
TEST(FusionGraph, PlanInTwoPartsEqualsTheInterpreter) {
  compare_with_interpreter(kernels::MotionModel::kConstantVelocity, 2);
}
TEST(FusionGraph, TurnRatePlanEqualsTheInterpreter) { compare_with_interpreter(kernels::MotionModel::kTurnRate, 2); }

}  // namespace
}  // namespace takt::pipeline
