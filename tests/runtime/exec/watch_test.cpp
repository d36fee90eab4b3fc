#include "runtime/exec/watch.h"

#include <gtest/gtest.h>
#include <barrier>
#include <cmath>
#include <optional>
#include <thread>

#include "runtime/device/fault.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/session.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

// Bound to memory of its own; nullptr where this machine has no target.
struct Watched {
  std::unique_ptr<Session> session;
  std::optional<Buffers> buffers;
  explicit Watched(const test::SmallPlan& small) {
    session = *Session::create(*plan::Plan::parse(small.bytes()));
    buffers.emplace(*Buffers::create(*session));
  }
  std::optional<NonFinite> watched() const {
    EXPECT_TRUE(session->watch(true));
    EXPECT_EQ(session->run(), session->steps());
    return session->first_non_finite();
  }
};

TEST(Watch, NamesTheFirstTensorStepAndIndex) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  Watched w(test::small_plan());
  const std::span<float> x = w.buffers->input_as<float>(0);
  x[5] = 10;
  EXPECT_FALSE(w.watched());
  EXPECT_GT(w.buffers->output_as<float>(0)[5], 22000);
  // exp overflows in step 1; what comes behind it is not blamed.
  x[5] = x[60] = 1000;
  auto found = w.watched();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1U);
  EXPECT_EQ(found->index[0], 5);
  EXPECT_EQ(found->count, 2U);
  EXPECT_EQ(to_string(*found, w.session->plan()),
            "b[5] is infinity, one of 2 such values of 64; step 1 (unary_f32) wrote it, for node node");
  x[5] = NAN;
  found = w.watched();
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found, w.session->plan()), "x[5] is NaN, one of 1 such values of 64; it came in as an input");
}

TEST(Watch, KeepsTheFirstOneAndItsRunWhateverTheNumberOfWorkers) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  const Watched w(test::small_plan());
  const std::span<float> x = w.buffers->input_as<float>(0);
  EXPECT_FALSE(w.session->first_non_finite());
  ASSERT_TRUE(w.session->watch(true));
  std::barrier<> meeting(2);
  const auto worker = [&](int part) {
    for (int run = 1; run <= 6; ++run) {
      if (part == 0) x[9] = run == 4 ? 500.0F : run > 4 ? NAN : 1.0F;
      meeting.arrive_and_wait();
      for (std::size_t step = 0; step < w.session->steps(); ++step) {
        w.session->run_step(step, part, 2);
        meeting.arrive_and_wait();
      }
    }
  };
  std::thread other(worker, 1);
  worker(0);
  other.join();
  const auto found = w.session->first_non_finite();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->run, 4U);
  EXPECT_EQ(found->step, 1U);
  EXPECT_EQ(found->index[0], 9);
  ASSERT_TRUE(w.session->watch(false));
  EXPECT_FALSE(w.session->first_non_finite());
}

TEST(Watch, IsForDevicesWhoseStepsTheCallerRuns) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  const auto device = device::FaultDevice::create(device::cpu(), {});
  Placement placement;
  placement.device = device.get();
  const auto session = Session::create(*plan::Plan::parse(test::small_plan().bytes()), placement);
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->watch(true).error().code, Code::kConfiguration);
}

// y = x, element by element, of a float type that is stored and not computed in.
test::SmallPlan copy_of(kernels::DType type) {
  const kernels::Target target = kernels::best_target();
  test::SmallPlan small = test::small_plan();
  plan::Description& d = small.description;
  d.tensors = {test::small_tensor("x", plan::Storage::kInput, 0), test::small_tensor("y", plan::Storage::kOutput, 0)};
  for (plan::Tensor& t : d.tensors) {
    t.dtype = type;
    t.bytes = test::kElements * kernels::size_of(type);
    t.first_step = t.last_step = 0;
  }
  const kernels::Shape shape = d.tensors[0].shape;
  const std::int64_t extents[] = {test::kElements}, start[] = {0}, step[] = {1};
  const kernels::cpu::Call copy = kernels::cpu::make_copy(shape, shape, type, extents, start, step, start);
  d.steps = {test::small_step(target, copy.id, copy.params.front(), {0, 1})};
  d.steps[0].params = copy.params;
  d.outputs = {1};
  d.sections.clear();
  small.sections.clear();
  d.arena_bytes = d.lower_bound = 0;
  return small;
}

TEST(Watch, LooksIntoFloatsOfAnyWidth) {
  if (kernels::unsupported(kernels::best_target()) != nullptr) GTEST_SKIP() << "no target of this machine";
  using kernels::DType;
  const std::pair<DType, std::uint64_t> cases[] = {
      {DType::kF64, 0xfff0000000000000}, {DType::kF16, 0xfc00}, {DType::kBF16, 0xff80}};
  for (const auto& [type, infinity] : cases) {
    const Watched w(copy_of(type));
    const std::span<std::byte> x = w.buffers->input(0);
    EXPECT_FALSE(w.watched());
    std::memcpy(x.data() + 7 * kernels::size_of(type), &infinity, kernels::size_of(type));
    const auto found = w.watched();
    ASSERT_TRUE(found) << kernels::name_of(type);
    EXPECT_EQ(to_string(*found, w.session->plan()),
              "x[7] is -infinity, one of 1 such values of 64; it came in as an input");
  }
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
  const auto found = w.watched();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1U);
  EXPECT_EQ(found->index[1], 5);
  EXPECT_EQ(found->index[3], 2);
}

}  // namespace
}  // namespace takt::exec
