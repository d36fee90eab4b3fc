// FastestDet as a CUDA plan on the device cuda-host: the bytes of the CPU plan, and the golden outputs.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/compile.h"
#include "pipeline/models/contract_file.h"
#include "pipeline/models/detection_head.h"
#include "runtime/device/cuda_host.h"
#include "tests/support/fastestdet.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"

namespace takt {
namespace {

std::shared_ptr<const plan::Plan> compiled(const std::string& folder, kernels::Target target,
                                           kernels::DType precision = kernels::DType::kF32) {
  const std::string onnx = *read_file(folder + "/FastestDet.onnx");
  compiler::Options options;
  options.target = target;
  options.precision = precision;
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

void print(const plan::Plan& plan) {
  const plan::Description& d = plan.description();
  std::printf("  %zu steps, %u reorders, arena %.1f kB, plan %.1f kB\n", d.steps.size(), d.statistics.reorders,
              static_cast<double>(d.arena_bytes) * 1e-3, static_cast<double>(plan.file_bytes()) * 1e-3);
}

std::vector<pipeline::ImageBox> objects_of(const std::vector<float>& output) {
  const auto contract = pipeline::load_model(TAKT_SOURCE_DIR "/configs/models/fastestdet.yaml");
  EXPECT_TRUE(contract) << contract.error().message;
  const pipeline::NamedTensor tensor{"758", kernels::DType::kF32, {4, {1, 85, 22, 22}}};
  auto head = pipeline::DetectionHead::create(*contract, {&tensor, 1}, 352, 352);
  EXPECT_TRUE(head) << head.error().message;
  const float* const data = output.data();
  const auto boxes = head->decode({&data, 1});
  return {boxes.kept.begin(), boxes.kept.end()};
}

double overlap(const pipeline::ImageBox& a, const pipeline::ImageBox& b) {
  const auto area = [](double u0, double v0, double u1, double v1) {
    return std::max(u1 - u0, 0.0) * std::max(v1 - v0, 0.0);
  };
  const auto of = [&](const pipeline::ImageBox& box) { return area(box.u0, box.v0, box.u1, box.v1); };
  const double both = area(std::max(a.u0, b.u0), std::max(a.v0, b.v0), std::min(a.u1, b.u1), std::min(a.v1, b.v1));
  return both / (of(a) + of(b) - both);
}

// How many of `objects` clear the threshold of 0.5 by 0.05; each of these has its like among the others.
int expect_found(const std::vector<pipeline::ImageBox>& objects, const std::vector<pipeline::ImageBox>& others,
                 double* least) {
  int clear = 0;
  for (const pipeline::ImageBox& object : objects) {
    if (object.score < 0.55F) continue;
    ++clear;
    double best = 0;
    for (const pipeline::ImageBox& other : others) {
      if (other.channel == object.channel) best = std::max(best, overlap(object, other));
    }
    EXPECT_GE(best, 0.9) << "class " << object.channel << ", score " << object.score;
    *least = std::min(*least, best);
  }
  return clear;
}

TEST(FastestDetOnCudaHost, FindsTheSameObjectsInF16) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const auto f32 = compiled(folder, kernels::Target::kCudaSm87);
  const auto plan = compiled(folder, kernels::Target::kCudaSm87, kernels::DType::kF16);
  ASSERT_TRUE(plan && f32);
  print(*f32);
  print(*plan);
  EXPECT_LT(static_cast<double>(plan->description().arena_bytes),
            0.56 * static_cast<double>(f32->description().arena_bytes));
  const auto device = device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 11});
  int clear = 0;
  for (const test::Golden& golden : test::kGolden) {
    const std::vector<float> expected = test::golden_output(folder, golden);
    const auto found = test::run_plan(plan, {test::golden_input(folder, golden).bytes}, 1, 0xff, *device);
    ASSERT_EQ(found.size(), 1U);
    std::vector<float> values(expected.size());
    ASSERT_EQ(found[0].size(), values.size() * sizeof(float));
    std::memcpy(values.data(), found[0].data(), found[0].size());
    float worst = 0, largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    const auto there = objects_of(expected), here = objects_of(values);
    double least = 1;
    clear += expect_found(there, here, &least) + expect_found(here, there, &least);
    std::printf(
        "  golden %s in f16: largest difference %.2e of numbers up to %.1f, %zu objects, %zu in f32, smallest overlap "
        "%.4f\n",
        golden.name, static_cast<double>(worst), static_cast<double>(largest), here.size(), there.size(), least);
    EXPECT_LE(worst, 0.03F * largest);
  }
  EXPECT_GE(clear, 4);
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
