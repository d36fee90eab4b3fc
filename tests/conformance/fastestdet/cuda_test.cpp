// FastestDet as a CUDA plan on the device cuda-host: the bytes of the CPU plan, and the golden outputs.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/compile.h"
#include "runtime/device/cuda_host.h"
#include "tests/support/fastestdet.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"

namespace takt {
namespace {

std::shared_ptr<const plan::Plan> compiled(const std::string& folder, kernels::Target target) {
  const std::string onnx = *read_file(folder + "/FastestDet.onnx");
  compiler::Options options;
  options.target = target;
  const auto bytes = compiler::compile_onnx(std::as_bytes(std::span(onnx.data(), onnx.size())), options);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? *plan::Plan::parse(*bytes) : nullptr;
}

TEST(FastestDetOnCudaHost, MeetsTheGoldenOutputsWithTheBytesOfTheCpu) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const auto plan = compiled(folder, kernels::Target::kCudaSm87);
  const auto cpu = compiled(folder, kernels::best_target());
  ASSERT_TRUE(plan && cpu);
  const plan::Description& d = plan->description();
  std::printf("  %s: %zu steps, %u reorders, %u copies, arena %.1f kB, lower bound %.1f kB, plan %.1f kB\n",
              kernels::name_of(d.target), d.steps.size(), d.statistics.reorders, d.statistics.copies,
              static_cast<double>(d.arena_bytes) * 1e-3, static_cast<double>(d.lower_bound) * 1e-3,
              static_cast<double>(plan->file_bytes()) * 1e-3);
  const auto device = device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 11});
  const test::Golden& golden = test::kGolden[0];
  const std::vector<float> expected = test::golden_output(folder, golden);
  const std::vector<std::byte> input = test::golden_input(folder, golden).bytes;
  const auto found = test::run_plan(plan, {input}, 1, 0xff, *device);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found, test::run_plan(cpu, {input}));
  std::vector<float> values(expected.size());
  ASSERT_EQ(found[0].size(), values.size() * sizeof(float));
  std::memcpy(values.data(), found[0].data(), found[0].size());
  float worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - expected[i]));
  std::printf("  golden %s: largest difference %.2e (allowed 1e-3)\n", golden.name, static_cast<double>(worst));
  EXPECT_LE(worst, 1e-3F);
}

TEST(FastestDetOnCudaHost, TouchesNoMemoryWrongly) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const auto plan = compiled(folder, kernels::Target::kCudaSm87);
  ASSERT_TRUE(plan);
  const auto device = device::CudaHost::create(kernels::cuda::simt_checked::launch_of, {.seed = 3, .check = true});
  const std::vector<std::byte> input = test::golden_input(folder, test::kGolden[1]).bytes;
  const auto found = test::run_plan(plan, {input}, 1, 0xff, *device);
  for (const simt::Finding& finding : device->take_findings()) ADD_FAILURE() << finding.text;
  EXPECT_EQ(found, test::run_plan(compiled(folder, kernels::best_target()), {input}));
}

}  // namespace
}  // namespace takt
