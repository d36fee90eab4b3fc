// CUDA plans against CPU plans of the same graph: the device cuda-host with every memory access judged, and the CPU.
#pragma once

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "kernels/cuda/table.h"
#include "runtime/device/cuda_host.h"
#include "tests/support/run_plan.h"

namespace takt::test {

struct CudaRun {
  std::shared_ptr<const plan::Plan> plan;                 // nullptr: there is none
  std::vector<std::vector<std::vector<std::byte>>> jobs;  // their outputs
};
// Every job by both, the same bytes.
inline CudaRun expect_bytes_of_the_cpu(const ir::Graph& graph,
                                       const std::vector<std::vector<std::vector<std::byte>>>& jobs,
                                       kernels::Target target) {
  const auto device = device::CudaHost::create(kernels::cuda::simt_checked::launch_of, {.seed = 7, .check = true});
  const auto plan_of = [&](kernels::Target of) -> std::shared_ptr<const plan::Plan> {
    compiler::Options options;
    options.target = of;
    const auto bytes = compiler::compile(graph, {}, options);
    EXPECT_TRUE(bytes) << bytes.error().message;
    if (!bytes) return nullptr;
    const auto plan = plan::Plan::parse(*bytes);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? *plan : nullptr;
  };
  const auto on_cpu = plan_of(kernels::best_target()), on_cuda = plan_of(target);
  if (on_cpu == nullptr || on_cuda == nullptr) return {};
  CudaRun run{on_cuda, {}};
  Running cpu(on_cpu), cuda(on_cuda, *device);
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const auto wanted = cpu.run(jobs[job]);
    const auto& found = run.jobs.emplace_back(cuda.run(jobs[job]));
    for (const simt::Finding& finding : device->take_findings()) ADD_FAILURE() << "job " << job << ": " << finding.text;
    EXPECT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
      EXPECT_TRUE(found[i] == wanted[i]) << "job " << job << ", output " << graph[graph.outputs[i]].name;
    }
  }
  return run;
}

}  // namespace takt::test
