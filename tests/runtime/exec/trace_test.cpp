#include "runtime/exec/trace.h"

#include <gtest/gtest.h>
#include <cmath>
#include <cstring>

#include "runtime/exec/buffers.h"
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

TEST(Compare, NanMeetsNan) {
  const std::vector<TracedTensor> a = {floats("p", {NAN, 1})};
  EXPECT_EQ(compare(a, a, 0).first.name, "");
}

// Bound to memory of its own; nullptr where this machine has no target.
struct Watched {
  std::unique_ptr<Session> session;
  std::optional<Buffers> buffers;
  explicit Watched(const test::SmallPlan& small) {
    session = *Session::create(*plan::Plan::parse(small.bytes()));
    buffers.emplace(*Buffers::create(*session));
  }
};

TEST(Watch, NamesTheFirstTensorStepAndIndex) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  Watched w(test::small_plan());
  const std::span<float> x = w.buffers->input_as<float>(0);
  x[5] = 10;
  EXPECT_FALSE(run_watched(*w.session));
  EXPECT_GT(w.buffers->output_as<float>(0)[5], 22000);
  // exp overflows in step 1; the steps behind it are not run.
  x[5] = x[60] = 1000;
  auto found = run_watched(*w.session);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1U);
  EXPECT_EQ(found->index[0], 5);
  EXPECT_EQ(found->count, 2U);
  EXPECT_EQ(to_string(*found, w.session->plan()),
            "b[5] is infinity, one of 2 such values of 64; step 1 (unary_f32) wrote it, for node node");
  x[5] = NAN;
  found = run_watched(*w.session);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found, w.session->plan()), "x[5] is NaN, one of 1 such values of 64; it came in as an input");
}

TEST(Watch, CountsInTheShapeOfABlockedTensor) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  // x[1,block,1,columns] becomes blocked, its exponential is taken there.
  using kernels::cpu::KernelId;
  const kernels::Target target = kernels::best_target();
  const std::int64_t block = kernels::block_of(target), columns = test::kElements / block;
  test::SmallPlan small = test::small_plan();
  plan::Description& d = small.description;
  d.tensors = {test::small_tensor("x", plan::Storage::kInput, 0), test::small_tensor("a", plan::Storage::kArena, 0),
               test::small_tensor("b", plan::Storage::kArena, 256), test::small_tensor("y", plan::Storage::kOutput, 0)};
  const std::uint32_t lives[][2] = {{0, 0}, {0, 1}, {1, 2}, {2, 2}};
  for (std::size_t i = 0; i < 4; ++i) {
    d.tensors[i].shape = {4, {1, block, 1, columns}};
    if (i == 1 || i == 2) d.tensors[i].layout = {kernels::block_of(target)};
    d.tensors[i].first_step = lives[i][0];
    d.tensors[i].last_step = lives[i][1];
  }
  kernels::cpu::ReorderParams reorder;
  reorder.c = static_cast<std::int32_t>(block);
  reorder.pixels = columns;
  kernels::cpu::UnaryParams exp;
  exp.op = kernels::cpu::Unary::kExp;
  exp.c = static_cast<std::int32_t>(block);
  exp.pixels = columns;
  exp.blocked = 1;
  d.steps = {test::small_step(target, KernelId::kReorderToBlocked, reorder, {0, 1}),
             test::small_step(target, KernelId::kUnary, exp, {1, 2}),
             test::small_step(target, KernelId::kReorderToLinear, reorder, {2, 3})};
  d.outputs = {3};
  d.sections.clear();
  small.sections.clear();
  Watched w(small);
  w.buffers->input_as<float>(0)[static_cast<std::size_t>(5 * columns + 2)] = 1000;  // channel 5, column 2
  const auto found = run_watched(*w.session);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1U);
  EXPECT_EQ(found->index[1], 5);
  EXPECT_EQ(found->index[3], 2);
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

}  // namespace
}  // namespace takt::exec
