// FastestDet from its ONNX file through plan and executor, against the recorded golden outputs of ONNX Runtime.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "runtime/base/file.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/support/fastestdet.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"

namespace takt {
namespace {

class FastestDet : public testing::TestWithParam<kernels::Target> {
 protected:
  void SetUp() override {
    TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
    folder_ = folder;
    onnx_ = *read_file(folder_ + "/FastestDet.onnx");
    options_.target = GetParam();
  }
  [[nodiscard]] std::vector<std::byte> compiled() const {
    const auto bytes = compiler::compile_onnx(std::as_bytes(std::span(onnx_.data(), onnx_.size())), options_);
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes ? *bytes : std::vector<std::byte>();
  }
  [[nodiscard]] std::shared_ptr<const plan::Plan> plan() const {
    auto plan = plan::Plan::parse(compiled());
    EXPECT_TRUE(plan) << plan.error().message;
    return *plan;
  }

  std::string folder_, onnx_;
  compiler::Options options_;
};

TEST_P(FastestDet, MeetsTheGoldenOutputs) {
  const auto plan = this->plan();
  const plan::Description& d = plan->description();
  ASSERT_EQ(d.inputs.size(), 1U);
  ASSERT_EQ(d.outputs.size(), 1U);
  std::printf(
      "  %s: %u operators, %u after passes, %zu steps, %u reorders, %u copies, %u placements, %u in place, "
      "arena %.1f kB, lower bound %.1f kB (%s), plan %.1f kB\n",
      kernels::name_of(d.target), d.statistics.operators_before, d.statistics.operators_after, d.steps.size(),
      d.statistics.reorders, d.statistics.copies, d.statistics.placements, d.statistics.in_place,
      static_cast<double>(d.arena_bytes) * 1e-3, static_cast<double>(d.lower_bound) * 1e-3, plan::name_of(d.proof),
      static_cast<double>(plan->file_bytes()) * 1e-3);
  EXPECT_LE(static_cast<double>(d.arena_bytes), 1.01 * static_cast<double>(d.lower_bound));
  // Its concats and shuffles are placements and lists of channels; the three parts of the output leave the layout.
  EXPECT_EQ(d.statistics.copies, 0U);
  EXPECT_EQ(d.statistics.reorders, 3U);
  for (std::size_t i = 0; i < d.steps.size(); ++i) EXPECT_NE(plan->kernel(i).name, std::string("channel_gather_f32"));
  if (const char* reason = kernels::unsupported(GetParam())) GTEST_SKIP() << "compiled, not run: " << reason;
  for (const test::Golden& golden : test::kGolden) {
    const std::vector<float> expected = test::golden_output(folder_, golden);
    const std::vector<std::byte> input = test::golden_input(folder_, golden).bytes;
    const auto once = test::run_plan(plan, {input}, 1, 0x7f);
    ASSERT_EQ(once.size(), 1U);
    ASSERT_EQ(once[0].size(), expected.size() * sizeof(float));
    std::vector<float> found(expected.size());
    std::memcpy(found.data(), once[0].data(), once[0].size());
    float worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - expected[i]));
    std::printf("  golden %s: largest difference %.2e (allowed 1e-3)\n", golden.name, static_cast<double>(worst));
    EXPECT_LE(worst, 1e-3F);
    // The same bytes for any admitted number of workers, and whatever lay in memory before.
    EXPECT_EQ(test::run_plan(plan, {input}, 2, 0x7f), once);
    EXPECT_EQ(test::run_plan(plan, {input}, 1, 0xff), once);
  }
}

TEST_P(FastestDet, CompilesToTheSameBytes) { EXPECT_EQ(compiled(), compiled()); }

TEST_P(FastestDet, AllocatesNothingInARun) {
  if (!memory::guard_available()) GTEST_SKIP() << "counting needs the interposed allocator (not under sanitizers)";
  if (const char* reason = kernels::unsupported(GetParam())) GTEST_SKIP() << reason;
  const auto session = exec::Session::create(plan());
  ASSERT_TRUE(session) << session.error().message;
  const std::vector<std::byte> from = test::golden_input(folder_, test::kGolden[0]).bytes;
  test::AlignedBytes x(from.size()), y(85 * 22 * 22 * sizeof(float));
  std::memcpy(x.span().data(), from.data(), from.size());
  ASSERT_TRUE((*session)->bind_input(0, x.span()));
  ASSERT_TRUE((*session)->bind_output(0, y.span()));
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 3; ++i) (*session)->run();
  const memory::ThreadCounters used = memory::thread_counters() - before;
  EXPECT_EQ(used.allocations, 0U);
  EXPECT_LT(used.copied_bytes, 64U << 10);
}

INSTANTIATE_TEST_SUITE_P(Targets, FastestDet,
                         testing::Values(kernels::Target::kAvx2, kernels::Target::kAvx512, kernels::Target::kNeon),
                         [](const auto& test) { return std::string(kernels::name_of(test.param)).substr(4); });

}  // namespace
}  // namespace takt
