// The networks as CUDA plans: voxels, pillars, maps, heads and boxes on one device, the bytes of CPU plans, whatever
// the clouds hold.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/compiler/nets/pillar_jobs.h"
#include "tests/compiler/nets/voxel_jobs.h"
#include "tests/support/cuda_plans.h"

namespace takt::compiler {
namespace {

std::set<std::string> kernels_of(const plan::Plan& plan) {
  std::set<std::string> names;
  for (std::size_t s = 0; s < plan.description().steps.size(); ++s) names.insert(plan.kernel(s).name);
  return names;
}

TEST(CudaNetworks, PillarPlansGiveTheBytesOfTheCpu) {
  for (const std::int64_t sweeps : {0, 2}) {
    const auto graph = pillar_network(pillars::small(sweeps));
    ASSERT_TRUE(graph) << graph.error().message;
    std::vector<std::vector<std::vector<std::byte>>> jobs;
    for (const pillars::Job& job : pillars::all_jobs()) jobs.push_back(job.inputs(sweeps > 0));
    const auto plan = test::expect_bytes_of_the_cpu(*graph, jobs, kernels::Target::kCudaSm87).plan;
    ASSERT_NE(plan, nullptr);
    const auto names = kernels_of(*plan);
    for (const char* const name : {"cloud", "deskew", "crop", "voxelise_f32", "pillar_encode_f32", "scatter_bev_f32",
                                   "top_k_decode_f32", "circle_nms"}) {
      EXPECT_EQ(names.count(name), 1U) << name;
    }
    EXPECT_EQ(names.count("sweeps"), sweeps > 0 ? 1U : 0U);
  }
}

TEST(CudaNetworks, VoxelPlansGiveTheBytesOfTheCpu) {
  const auto graph = voxel_network(voxels::small());
  ASSERT_TRUE(graph) << graph.error().message;
  for (const kernels::Target target : {kernels::Target::kCudaSm87, kernels::Target::kCudaSm90}) {
    const auto plan = test::expect_bytes_of_the_cpu(*graph, voxels::all_jobs(), target).plan;
    ASSERT_NE(plan, nullptr);
    const auto names = kernels_of(*plan);
    for (const char* const name : {"voxel_mean_f32", "sparse_cells", "sparse_map", "sparse_conv_f32"}) {
      EXPECT_EQ(names.count(name), 1U) << name;
    }
  }
}

}  // namespace
}  // namespace takt::compiler
