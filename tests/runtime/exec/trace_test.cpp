#include "runtime/exec/trace.h"

#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <set>

#include "kernels/reference/narrow_float.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

TracedTensor floats(const std::string& name, const std::vector<float>& values) {
  TracedTensor t{name, 0, kernels::DType::kF32, {1, {static_cast<std::int64_t>(values.size())}}, {}};
  const auto bytes = std::as_bytes(std::span(values));
  t.bytes.assign(bytes.begin(), bytes.end());
  return t;
}

TEST(Trace, KeepsTheResultOfEveryStep) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  const auto plan = *plan::Plan::parse(test::small_plan().bytes());
  std::vector<float> x(test::kElements, -1);
  x[3] = 2;
  const auto bytes = std::as_bytes(std::span(x));
  const std::vector<std::vector<std::byte>> inputs = {{bytes.begin(), bytes.end()}};
  const auto traced = trace(plan, inputs);
  ASSERT_TRUE(traced) << traced.error().message;
  ASSERT_EQ(traced->size(), 4U);
  EXPECT_EQ((*traced)[0].name, "a");
  float relu = 0;
  std::memcpy(&relu, (*traced)[0].bytes.data() + 12, sizeof relu);
  EXPECT_EQ(relu, 2.0F);  // the sum was written over it later
  EXPECT_EQ((*traced)[3].name, "y");
  EXPECT_EQ(trace(plan, {}).error().code, Code::kUsage);
}

TEST(Trace, AnOutputThatIsWrittenInPartsComesLast) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  test::SmallPlan small = test::small_plan();
  plan::Description& d = small.description;
  const auto half = [&](std::uint32_t of, std::uint64_t offset) {
    plan::Tensor t = d.tensors[of];
    t.name += "_half";
    t.shape.dims[0] /= 2;
    t.bytes /= 2;
    t.offset += offset;
    t.view_of = of;
    d.tensors.push_back(t);
  };
  half(3, 0);
  half(3, 128);
  half(5, 0);
  half(5, 128);
  kernels::cpu::UnaryParams copy;
  copy.pixels = test::kElements / 2;
  d.steps.pop_back();
  d.steps.push_back(test::small_step(d.target, kernels::cpu::KernelId::kUnary, copy, {6, 8}));
  d.steps.push_back(test::small_step(d.target, kernels::cpu::KernelId::kUnary, copy, {7, 9}));
  for (const std::size_t i : {3, 6, 7}) d.tensors[i].last_step = 4;
  for (const std::size_t i : {5, 8, 9}) d.tensors[i].last_step = 4;
  d.tensors[4].first_step = d.tensors[4].last_step = plan::kNone;
  const auto plan = plan::Plan::parse(small.bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  const std::vector<std::vector<std::byte>> inputs = {made_up_input(d.tensors[0])};
  const auto traced = trace(*plan, inputs);
  ASSERT_TRUE(traced) << traced.error().message;
  ASSERT_EQ(traced->size(), 6U);
  EXPECT_EQ(traced->back().name, "y");
  EXPECT_EQ(traced->back().bytes, (*traced)[2].bytes);  // the sum
}

TEST(Compare, NamesTheFirstTensorBeyondTheTolerance) {
  const std::vector<TracedTensor> a = {floats("p", {1, 100}), floats("q", {1, 2}), floats("r", {4, 4}),
                                       floats("only_here", {1})};
  std::vector<TracedTensor> b = {floats("r", {4, 5}), floats("q", {1, 2.1F}), floats("p", {1.001F, 100})};
  const Divergence d = compare(a, b, 1e-3);
  EXPECT_EQ(d.compared, 3U);
  EXPECT_EQ(d.unmatched, 1U);
  EXPECT_EQ(d.first.name, "q");
  EXPECT_NEAR(d.first.difference, 0.05, 1e-6);
  EXPECT_EQ(d.first.index, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(d.first.a, 2);
  EXPECT_NEAR(d.first.b, 2.1, 1e-6);
  EXPECT_EQ(d.worst.name, "r");
  EXPECT_NEAR(d.worst.difference, 0.25, 1e-6);
  EXPECT_EQ(compare(a, a, 0).first.name, "");
  b[2] = floats("p", {1, NAN});
  EXPECT_EQ(compare(a, b, 1e9).first.name, "p");
}

TEST(Compare, FloatsOfAnyWidthByValue) {
  const auto narrow = [](kernels::DType type, std::uint16_t first) {
    TracedTensor t{"p", 0, type, {1, {2}}, {}};
    const std::uint16_t values[] = {first, 0x3c00};
    const auto bytes = std::as_bytes(std::span(values));
    t.bytes.assign(bytes.begin(), bytes.end());
    return t;
  };
  // f16: 1 and the next number, 1 + 2^-10.
  const std::vector<TracedTensor> a = {narrow(kernels::DType::kF16, 0x3c00)};
  std::vector<TracedTensor> b = {narrow(kernels::DType::kF16, 0x3c01)};
  EXPECT_EQ(compare(a, b, 0x1p-10).worst.difference, 0x1p-10);
  EXPECT_EQ(compare(a, b, 1e-3).worst.b, 1 + 0x1p-10);
  EXPECT_EQ(compare(a, b, 0x1p-10).first.name, "");
  b = {narrow(kernels::DType::kI16, 0x3c01)};
  EXPECT_EQ(compare(a, b, 1e9).unmatched, 1U);
  const std::vector<TracedTensor> whole = {narrow(kernels::DType::kI16, 0x3c00)};
  EXPECT_EQ(compare(whole, b, 1e9).first.name, "p");
}

TEST(Compare, NanMeetsNan) {
  const std::vector<TracedTensor> a = {floats("p", {NAN, 1})};
  EXPECT_EQ(compare(a, a, 0).first.name, "");
}

TEST(MadeUpInput, IsTheSameEverywhereAndInRange) {
  const plan::Tensor tensor = test::small_tensor("x", plan::Storage::kInput, 0);
  const std::vector<std::byte> bytes = made_up_input(tensor);
  EXPECT_EQ(bytes, made_up_input(tensor));
  float sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    float v = 0;
    std::memcpy(&v, bytes.data() + i, 4);
    EXPECT_GE(v, -1.0F);
    EXPECT_LT(v, 1.0F);
    sum += v;
  }
  EXPECT_LT(std::abs(sum), 20.0F);
}

TEST(MadeUpInput, FloatsOfAnyWidthAreNumbersOfThatWidth) {
  using kernels::DType;
  for (const DType type : {DType::kF64, DType::kF16, DType::kBF16}) {
    plan::Tensor tensor = test::small_tensor("x", plan::Storage::kInput, 0);
    tensor.dtype = type;
    tensor.bytes = test::kElements * kernels::size_of(type);
    const std::vector<std::byte> bytes = made_up_input(tensor);
    std::set<double> values;
    double sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += kernels::size_of(type)) {
      double v = 0;
      std::uint16_t narrow = 0;
      if (type == DType::kF64) {
        std::memcpy(&v, bytes.data() + i, sizeof v);
      } else {
        std::memcpy(&narrow, bytes.data() + i, sizeof narrow);
        v = static_cast<double>(kernels::from_narrow(narrow, type == DType::kF16 ? kernels::kHalf : kernels::kBfloat));
      }
      EXPECT_GE(v, -1.0);
      EXPECT_LT(v, 1.0);
      values.insert(v);
      sum += v;
    }
    EXPECT_GT(values.size(), 40U) << kernels::name_of(type);
    EXPECT_GT(*values.rbegin() - *values.begin(), 1.0) << kernels::name_of(type);
    EXPECT_LT(std::abs(sum), 20.0);
  }
}

}  // namespace
}  // namespace takt::exec
