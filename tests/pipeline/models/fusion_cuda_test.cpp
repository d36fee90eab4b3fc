// The fusion graph as a CUDA plan: the bytes of the CPU plan, job after job.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "tests/pipeline/models/fusion_jobs.h"
#include "tests/support/cuda_plans.h"

namespace takt::pipeline {
namespace {

TEST(FusionOnCuda, PlansGiveTheBytesOfTheCpu) {
  for (const auto motion : {kernels::MotionModel::kConstantVelocity, kernels::MotionModel::kTurnRate}) {
    FusionModel model;
    model.motion = motion;
    const auto graph = fusion_graph(model, lidar_and_radar(), 3);
    ASSERT_TRUE(graph) << graph.error().message;
    std::mt19937 random(3);
    std::vector<std::vector<std::vector<std::byte>>> jobs;
    for (int n = 0; n < 25; ++n) {
      auto& job = jobs.emplace_back();
      for (const ir::Constant& input : job_of(*graph, n, random).in_order(*graph)) job.push_back(input.bytes);
    }
    const test::CudaRun run = test::expect_bytes_of_the_cpu(*graph, jobs, kernels::Target::kCudaSm87);
    ASSERT_EQ(run.jobs.size(), 25U);
    std::uint32_t tracks = 0;
    std::memcpy(&tracks, run.jobs.back()[0].data() + offsetof(TrackList, count), sizeof tracks);
    EXPECT_GT(tracks, 15U);
  }
}

}  // namespace
}  // namespace takt::pipeline
