#include "runtime/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "kernels/cpu/host.h"
#include "kernels/reference/counted.h"
#include "runtime/base/file.h"
#include "runtime/plan/buckets.h"
#include "runtime/plan/crc32c.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::plan {
namespace {

using test::small_plan;
using test::SmallPlan;
using testing::HasSubstr;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string message_of(std::span<const std::byte> bytes) {
  const auto plan = Plan::parse(bytes);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, Code::kInput);
  return plan.error().message;
}

// RFC 3720, B.4.
TEST(Crc32c, HasThePublishedValues) {
  const std::string zeros(32, '\0'), ones(32, '\xff');
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(crc32c(as_bytes(zeros)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(as_bytes(ones)), 0x62a8ab43U);
  EXPECT_EQ(crc32c(as_bytes(ascending)), 0x46dd794eU);
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, TableAndInstructionAgree) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(1000);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (const std::size_t length : {0, 1, 7, 8, 9, 63, 64, 500}) {
      const auto piece = std::span(bytes).subspan(begin, length);
      EXPECT_EQ(crc32c(piece), crc32c_by_table(piece));
    }
  }
}

TEST(Plan, ComesBackAsItWasWritten) {
  const SmallPlan small = small_plan();
  const auto plan = Plan::parse(small.bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  const Description& d = (*plan)->description();
  EXPECT_EQ(d.name, "small");
  EXPECT_EQ(d.target, small.description.target);
  ASSERT_EQ(d.tensors.size(), small.description.tensors.size());
  for (std::size_t i = 0; i < d.tensors.size(); ++i) {
    EXPECT_EQ(d.tensors[i].name, small.description.tensors[i].name);
    EXPECT_EQ(d.tensors[i].offset, small.description.tensors[i].offset);
    EXPECT_EQ(d.tensors[i].last_step, small.description.tensors[i].last_step);
  }
  ASSERT_EQ(d.steps.size(), 4U);
  EXPECT_EQ(d.steps[2].operands, small.description.steps[2].operands);
  EXPECT_EQ(d.steps[2].params, small.description.steps[2].params);
  EXPECT_EQ(d.steps[2].nodes, small.description.steps[2].nodes);
  EXPECT_STREQ((*plan)->kernel(2).name, "binary_f32");
  EXPECT_TRUE(std::ranges::equal((*plan)->section(0), small.sections[0]));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*plan)->section(0).data()) % kAlignment, 0U);
  EXPECT_TRUE((*plan)->admits(2));
  EXPECT_FALSE((*plan)->admits(3));
  EXPECT_EQ((*plan)->find_input("x"), 0U);
  EXPECT_EQ((*plan)->find_output("y"), 0U);
  EXPECT_EQ((*plan)->find_output("x"), std::nullopt);
}

TEST(Plan, SameDescriptionSameBytes) { EXPECT_EQ(small_plan().bytes(), small_plan().bytes()); }

TEST(Plan, LoadsFromAFile) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = small_plan().bytes();
  const std::string path = folder / "small.plan";
  ASSERT_TRUE(write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  const auto plan = Plan::load(path);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ((*plan)->file_bytes(), bytes.size());
  EXPECT_EQ((*plan)->digest(), digest(bytes));

  EXPECT_THAT(Plan::load(folder / "absent.plan").error().message, HasSubstr("cannot be opened"));
  EXPECT_THAT(Plan::load(folder / ".").error().message, HasSubstr("is no file"));
  ASSERT_TRUE(write_file_atomically(path, "hello"));
  const auto bad = Plan::load(path);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInput);
  EXPECT_THAT(bad.error().message, HasSubstr("small.plan: the plan ends at byte 5"));
  ASSERT_TRUE(write_file_atomically(path, ""));
  EXPECT_THAT(Plan::load(path).error().message, HasSubstr("ends at byte 0"));
}

TEST(Plan, EveryTruncationIsNamed) {
  const std::vector<std::byte> bytes = small_plan().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string message = message_of(std::span(bytes).first(length));
    EXPECT_THAT(message, HasSubstr("byte " + std::to_string(length)));
    EXPECT_THAT(message, HasSubstr("compile the model again"));
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THAT(message_of(longer), HasSubstr("goes on at byte " + std::to_string(bytes.size())));
}

TEST(Plan, EveryChangedByteIsNoticed) {
  const std::vector<std::byte> bytes = small_plan().bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{0x10};
    ASSERT_NE(message_of(changed), "accepted") << "byte " << i;
  }
}

TEST(Plan, DamageIsNamed) {
  const std::vector<std::byte> bytes = small_plan().bytes();
  const auto with = [&](std::size_t at, int value) {
    std::vector<std::byte> changed = bytes;
    changed[at] = static_cast<std::byte>(value);
    return message_of(changed);
  };
  EXPECT_THAT(with(0, 'X'), HasSubstr("is no plan"));
  EXPECT_THAT(with(8, 99), HasSubstr("format version 99, this program reads 2; compile the model again"));
  EXPECT_THAT(with(40, 7), HasSubstr("checksum of its head"));
  EXPECT_THAT(with(100, 200), HasSubstr("checksum of its metadata ("));
  EXPECT_THAT(with(bytes.size() - 1, 77), HasSubstr("checksum of section 0 (256 bytes at byte"));
}

// A description that was changed and signed again: the semantic verification alone stands between it and a crash.
struct Change {
  const char* what;
  std::function<void(SmallPlan&)> apply;
  const char* message;
};

class Resigned : public testing::TestWithParam<Change> {};

TEST_P(Resigned, IsRefused) {
  SmallPlan small = small_plan();
  GetParam().apply(small);
  EXPECT_THAT(message_of(small.bytes()), HasSubstr(GetParam().message));
}

const Change kChanges[] = {
    {"target", [](SmallPlan& p) { p.description.target = static_cast<kernels::Target>(9); }, "target 9 is unknown"},
    {"parts",
     [](SmallPlan& p) {
       p.description.parts = {1, 3, 2};
     },
     "ascending"},
    {"no_parts", [](SmallPlan& p) { p.description.parts = {}; }, "ascending"},
    {"huge_arena", [](SmallPlan& p) { p.description.arena_bytes = ~std::uint64_t{0}; }, "its arena has"},
    {"arena_unaligned",
     [](SmallPlan& p) {
       p.description.arena_bytes += 4;
       p.description.proof = Proof::kOpen;
     },
     "its arena of 516 bytes does not end at a multiple of 64"},
    {"dtype", [](SmallPlan& p) { p.description.tensors[1].dtype = static_cast<kernels::DType>(77); }, "tensor 1 ('a')"},
    {"bytes", [](SmallPlan& p) { p.description.tensors[1].bytes = 128; }, "has 128 bytes, which is not what"},
    {"extent", [](SmallPlan& p) { p.description.tensors[1].shape.dims[0] = -1; }, "tensor 1 ('a')"},
    {"huge_extents",
     [](SmallPlan& p) {
       p.description.tensors[1].shape = {4, {1 << 20, 1 << 20, 1 << 20, 1 << 20}};
     },
     "tensor 1 ('a')"},
    {"block", [](SmallPlan& p) { p.description.tensors[1].layout.block = 8; }, "blocked layout"},
    {"block_of_f16",
     [](SmallPlan& p) {
       Tensor& t = p.description.tensors[1];
       t.layout.block = kernels::block_of(p.description.target);
       t.shape = {4, {1, 8, 1, 1}};
       t.dtype = kernels::DType::kF16;  // of GPUs alone
     },
     "blocked layout"},
    {"storage", [](SmallPlan& p) { p.description.tensors[1].storage = static_cast<Storage>(9); }, "unknown storage"},
    {"offset_outside", [](SmallPlan& p) { p.description.tensors[2].offset = 320; }, "leaves its arena"},
    {"offset_overflow", [](SmallPlan& p) { p.description.tensors[2].offset = ~std::uint64_t{63}; }, "leaves its arena"},
    {"offset_unaligned",
     [](SmallPlan& p) {
       p.description.arena_bytes += 64;
       p.description.tensors[2].offset = 260;
     },
     "multiple of 64"},
    {"section_outside", [](SmallPlan& p) { p.description.tensors[4].slot = 1; }, "leaves its weights 1"},
    {"overlap",
     [](SmallPlan& p) {
       p.description.steps[1].operands[0] = 0;
       p.description.tensors[2].offset = 64;
     },
     "reads tensor 1 ('a'), but tensor 2 ('b') lies there"},
    {"view_of_nothing", [](SmallPlan& p) { p.description.tensors[1].view_of = 99; }, "view without an end"},
    {"view_of_itself", [](SmallPlan& p) { p.description.tensors[1].view_of = 1; }, "view without an end"},
    {"view_outside", [](SmallPlan& p) { p.description.tensors[1].view_of = 2; }, "is no part of"},
    {"view_elsewhere", [](SmallPlan& p) { p.description.tensors[1].view_of = 0; }, "is no part of"},
    {"input", [](SmallPlan& p) { p.description.inputs = {1}; }, "input"},
    {"no_tensor", [](SmallPlan& p) { p.description.outputs = {1000}; }, "output 0"},
    {"two_inputs",
     [](SmallPlan& p) {
       p.description.inputs = {0, 0};
     },
     "input 1"},
    {"kernel", [](SmallPlan& p) { p.description.steps[0].kernel = 4711; }, "needs kernel 4711"},
    {"version", [](SmallPlan& p) { p.description.steps[0].version = 77; }, "was packed for version 77 of its kernel"},
    {"params_size", [](SmallPlan& p) { p.description.steps[0].params.pop_back(); }, "parameters or operands"},
    {"params",
     [](SmallPlan& p) {
       kernels::cpu::UnaryParams params;
       params.pixels = 65;
       std::memcpy(p.description.steps[0].params.data(), &params, sizeof params);
     },
     "an operand is smaller than the parameters say"},
    {"params_of_less",
     [](SmallPlan& p) {
       kernels::cpu::UnaryParams params;
       params.pixels = 63;
       std::memcpy(p.description.steps[0].params.data(), &params, sizeof params);
     },
     "an output is larger than the parameters say"},
    {"bytes_as_floats",
     [](SmallPlan& p) {
       Tensor part = test::small_tensor("part", Storage::kWeights, 1);
       part.dtype = kernels::DType::kU8;
       part.shape.dims[0] = part.bytes = 256;
       part.view_of = 6;
       Tensor whole = part;
       whole.offset = 0;
       whole.shape.dims[0] = whole.bytes = 260;
       whole.view_of = kNone;
       whole.slot = part.slot = 1;
       p.description.tensors.push_back(whole);
       p.description.tensors.push_back(part);
       p.description.sections.emplace_back();
       p.sections.emplace_back(260);
       p.description.steps[3].operands[1] = 7;
     },
     "an operand does not start at a multiple of its kernel's elements"},
    {"operand_count", [](SmallPlan& p) { p.description.steps[0].operands.push_back(1); }, "parameters or operands"},
    {"operand_range", [](SmallPlan& p) { p.description.steps[0].operands[0] = 6; }, "an operand that is no tensor"},
    {"operand_absent", [](SmallPlan& p) { p.description.steps[0].operands[0] = kNone; }, "an operand is smaller"},
    {"reads_too_early", [](SmallPlan& p) { p.description.steps[0].operands[0] = 2; }, "before it is written"},
    {"writes_input", [](SmallPlan& p) { p.description.steps[1].operands[1] = 0; }, "which lies in input"},
    {"writes_weights", [](SmallPlan& p) { p.description.steps[1].operands[1] = 4; }, "which lies in weights"},
    {"writes_twice",
     [](SmallPlan& p) {
       std::swap(p.description.steps[2].operands[2], p.description.steps[0].operands[1]);
       p.description.steps[1].operands = {3, 3};
     },
     "over its operand"},
    {"again",
     [](SmallPlan& p) {
       p.description.steps[3].operands = {3, 4, 2};
       p.description.steps.push_back(p.description.steps[3]);
     },
     "a second time"},
    {"over_second_input",
     [](SmallPlan& p) { std::swap(p.description.steps[2].operands[0], p.description.steps[2].operands[1]); },
     "over its operand"},
    {"lifetime", [](SmallPlan& p) { p.description.tensors[1].last_step = 3; }, "claims to live"},
    {"lower_bound", [](SmallPlan& p) { p.description.lower_bound = 448; }, "lower bound"},
    {"proof", [](SmallPlan& p) { p.description.proof = Proof::kOpen; }, "proof status"},
    {"output_missing",
     [](SmallPlan& p) {
       p.description.steps.pop_back();
       for (std::size_t i = 3; i < 6; ++i)
         p.description.tensors[i].first_step = p.description.tensors[i].last_step = i == 3 ? 2 : kNone;
     },
     "the caller reads tensor 5 ('y') before it is written"},
    {"state_size",
     [](SmallPlan& p) {
       p.description.states.push_back({"s", kernels::DType::kF32, {1, {4}}, 15, kNone});
     },
     "state 's' has not the size"},
    {"state_initial",
     [](SmallPlan& p) {
       p.description.states.push_back({"s", kernels::DType::kF32, {1, {4}}, 16, 0});
     },
     "a section that has not its size"},
    {"state_unwritten",
     [](SmallPlan& p) {
       p.description.states.push_back({"s", kernels::DType::kF32, {1, {4}}, 16, kNone});
     },
     "is not written as a whole"},
};

INSTANTIATE_TEST_SUITE_P(Changes, Resigned, testing::ValuesIn(kChanges),
                         [](const auto& test) { return std::string(test.param.what); });

// Tensors: 0 x and 1 c (inputs), 2 relu(x) where c, 3 exp(x) where not, 4 y (output), the one of the two that there is.
SmallPlan guarded_plan() {
  using kernels::cpu::KernelId;
  SmallPlan out;
  Description& d = out.description;
  d.name = "guarded";
  d.target = kernels::best_target();
  d.parts = {1};
  d.tensors = {test::small_tensor("x", Storage::kInput, 0), test::small_tensor("c", Storage::kInput, 0),
               test::small_tensor("relu", Storage::kArena, 0), test::small_tensor("exp", Storage::kArena, 256),
               test::small_tensor("y", Storage::kOutput, 0)};
  d.tensors[1].dtype = kernels::DType::kBool;
  d.tensors[1].shape = {};
  d.tensors[1].bytes = d.tensors[1].slot = 1;
  kernels::cpu::UnaryParams relu;
  relu.activation = kernels::cpu::Activation::kRelu;
  relu.pixels = test::kElements;
  kernels::cpu::UnaryParams exp = relu;
  exp.op = kernels::cpu::Unary::kExp;
  d.steps = {
      test::small_step(d.target, KernelId::kUnary, relu, {0, 2}),
      test::small_step(d.target, KernelId::kUnary, exp, {0, 3}),
      test::small_step(d.target, KernelId::kSelect, kernels::cpu::SelectParams{4, test::kElements}, {1, 2, 3, 4})};
  d.guards = {{1, kNone, true}, {1, kNone, false}};
  d.steps[0].guard = 0;
  d.steps[1].guard = 1;
  const std::pair<std::uint32_t, std::uint32_t> lives[] = {{0, 1}, {0, 2}, {0, 2}, {1, 2}, {2, 2}};
  for (std::size_t i = 0; i < d.tensors.size(); ++i) {
    d.tensors[i].first_step = lives[i].first;
    d.tensors[i].last_step = lives[i].second;
  }
  d.inputs = {0, 1};
  d.outputs = {4};
  d.arena_bytes = d.lower_bound = 512;
  d.proof = Proof::kOptimal;
  return out;
}

class ResignedGuards : public testing::TestWithParam<Change> {};

TEST_P(ResignedGuards, IsRefused) {
  SmallPlan small = guarded_plan();
  GetParam().apply(small);
  EXPECT_THAT(message_of(small.bytes()), HasSubstr(GetParam().message));
}

const Change kGuardChanges[] = {
    {"guard", [](SmallPlan& p) { p.description.steps[0].guard = 2; }, "a guard that is none of the plan"},
    {"condition_of_floats", [](SmallPlan& p) { p.description.guards[0].condition = 0; }, "no condition of one bool"},
    {"condition_of_nothing", [](SmallPlan& p) { p.description.guards[0].condition = 99; }, "no condition of one bool"},
    {"parent", [](SmallPlan& p) { p.description.guards[1].parent = 1; }, "no parent before it"},
    {"parent_outside", [](SmallPlan& p) { p.description.guards[1].parent = 7; }, "no parent before it"},
    {"wrong_branch", [](SmallPlan& p) { std::swap(p.description.steps[0].guard, p.description.steps[1].guard); },
     "reads tensor 2 ('relu'), which steps under a guard wrote that may not have run"},
    {"from_a_branch", [](SmallPlan& p) { p.description.steps[1].operands[0] = 2; },
     "reads tensor 2 ('relu'), which steps under a guard wrote that may not have run"},
    {"result_in_a_branch",
     [](SmallPlan& p) {
       p.description.steps.pop_back();
       p.description.steps[1].operands[1] = 4;
     },
     "the caller reads tensor 4 ('y'), which steps under a guard wrote that may not have run"},
    {"nested",
     [](SmallPlan& p) {
       for (std::uint32_t g = 1; g < 40; ++g) p.description.guards.push_back({1, g, true});
     },
     "nested more than 32 deep"},
    {"condition_too_late",
     [](SmallPlan& p) {
       p.description.tensors[1].storage = Storage::kArena;
       p.description.tensors[1].slot = 0;
       p.description.tensors[1].offset = 448;
       p.description.inputs = {0};
     },
     "reads tensor 1 ('c') before it is written"},
    {"life_of_a_condition", [](SmallPlan& p) { p.description.tensors[1].first_step = 2; },
     "tensor 1 ('c') claims to live from step 2"},
};

INSTANTIATE_TEST_SUITE_P(GuardChanges, ResignedGuards, testing::ValuesIn(kGuardChanges),
                         [](const auto& test) { return std::string(test.param.what); });

// Tensors: 0 x and 1 its count (inputs), 2 abs(x) (output), of as many.
SmallPlan counted_plan() {
  using namespace kernels::reference;
  SmallPlan out;
  Description& d = out.description;
  d.name = "counted";
  d.target = kernels::best_target();
  d.parts = {1};
  d.tensors = {test::small_tensor("x", Storage::kInput, 0), test::small_tensor("x:count", Storage::kInput, 0),
               test::small_tensor("y", Storage::kOutput, 0)};
  d.tensors[0].count = d.tensors[2].count = 1;
  d.tensors[1].dtype = kernels::DType::kI32;
  d.tensors[1].shape = {};
  d.tensors[1].bytes = 4;
  d.tensors[1].slot = 1;
  GenericParams p;
  p.op = Generic::kFunction;
  p.integers[0] = static_cast<std::int64_t>(Function::kAbs);
  p.operands[0] = generic_type(kernels::DType::kF32, {1, {test::kElements}});
  p.operands[0].count = 1;
  EXPECT_EQ(counted_infer(&p), nullptr);
  std::vector<std::uint32_t> operands(kGenericInputs + kMostCounts + 1, kNone);
  operands[0] = 0;
  operands[kGenericInputs] = 1;
  operands.back() = 2;
  d.steps = {test::small_step(d.target, kernels::cpu::KernelId::kCounted, p, operands)};
  for (Tensor& t : d.tensors) t.first_step = t.last_step = 0;
  d.inputs = {0, 1};
  d.outputs = {2};
  d.proof = Proof::kOptimal;
  return out;
}

class ResignedCounts : public testing::TestWithParam<Change> {};

TEST_P(ResignedCounts, IsRefused) {
  SmallPlan small = counted_plan();
  const auto plan = Plan::parse(small.bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  GetParam().apply(small);
  EXPECT_THAT(message_of(small.bytes()), HasSubstr(GetParam().message));
}

const Change kCountChanges[] = {
    {"overlooked", [](SmallPlan& p) { p.description.tensors[0].count = kNone; },
     "does not take tensor 0 ('x') by its count"},
    {"overlooked_result", [](SmallPlan& p) { p.description.tensors[2].count = kNone; },
     "does not take tensor 2 ('y') by its count"},
    {"of_another_kernel",
     [](SmallPlan& p) {
       kernels::cpu::UnaryParams relu;
       relu.pixels = test::kElements;
       p.description.steps[0] = test::small_step(p.description.target, kernels::cpu::KernelId::kUnary, relu, {0, 2});
     },
     "does not take tensor 0 ('x') by its count"},
    {"no_count_given",
     [](SmallPlan& p) { p.description.steps[0].operands[kernels::reference::kGenericInputs] = kNone; },
     "an operand is smaller"},
    {"axis", [](SmallPlan& p) { p.description.tensors[0].count_axis = 1; }, "a dimension that it has not"},
    {"axis_without_count", [](SmallPlan& p) { p.description.tensors[1].count_axis = 1; },
     "a counted dimension and no count"},
    {"itself", [](SmallPlan& p) { p.description.tensors[1].count = 1; }, "a count that is no tensor of one i32"},
    {"nothing", [](SmallPlan& p) { p.description.tensors[0].count = 77; }, "a count that is no tensor of one i32"},
    {"floats", [](SmallPlan& p) { p.description.tensors[1].dtype = kernels::DType::kF32; },
     "a count that is no tensor of one i32"},
    {"params",
     [](SmallPlan& p) {
       kernels::reference::GenericParams params;
       std::memcpy(&params, p.description.steps[0].params.data(), sizeof params);
       params.operands[kernels::reference::kGenericInputs].count = 0;
       std::memcpy(p.description.steps[0].params.data(), &params, sizeof params);
     },
     "another type or count than the operator gives"},
    {"kept_back",
     [](SmallPlan& p) {
       Tensor& count = p.description.tensors[1];
       count.storage = Storage::kWeights;
       count.slot = 0;
       p.description.inputs = {0};
       p.description.sections.emplace_back();
       p.sections.emplace_back(4);
     },
     "a count that is not handed over with it"},
};

INSTANTIATE_TEST_SUITE_P(CountChanges, ResignedCounts, testing::ValuesIn(kCountChanges),
                         [](const auto& test) { return std::string(test.param.what); });

TEST(Plan, GuardsSurviveTheFile) {
  const SmallPlan small = guarded_plan();
  const auto plan = Plan::parse(small.bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  const Description& d = (*plan)->description();
  ASSERT_EQ(d.guards.size(), 2U);
  EXPECT_EQ(d.guards[1].condition, 1U);
  EXPECT_FALSE(d.guards[1].when);
  EXPECT_EQ(d.steps[1].guard, 1U);
  EXPECT_EQ(d.steps[2].guard, kNone);
}

TEST(Plan, TheSchemaOfItsStateIsItsNamesTypesAndShapes) {
  SmallPlan small = small_plan();
  Description& d = small.description;
  d.states = {{"a", kernels::DType::kF32, {1, {4}}, 16, kNone}, {"b", kernels::DType::kI32, {2, {2, 2}}, 16, kNone}};
  const Digest schema = state_schema(d);
  d.states[0].initial = 0;  // the first value is no part of it
  EXPECT_EQ(state_schema(d), schema);
  for (int change = 0; change < 4; ++change) {
    Description other = d;
    if (change == 0) other.states[1].name = "c";
    if (change == 1) other.states[1].dtype = kernels::DType::kF32;
    if (change == 2) other.states[1].shape = {1, {4}};
    if (change == 3) std::swap(other.states[0], other.states[1]);
    EXPECT_NE(state_schema(other), schema) << change;
  }
  Description stateless = small_plan().description;
  stateless.state_schema = schema;
  EXPECT_THAT(verify(stateless).error().message, HasSubstr("its state has another schema than it says"));
}

TEST(Plan, AnotherTargetLoads) {
  const auto other = kernels::best_target() == kernels::Target::kAvx2 ? kernels::Target::kNeon : kernels::Target::kAvx2;
  const auto plan = Plan::parse(small_plan(other).bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ((*plan)->description().target, other);
}

TEST(Plan, ViewsOfViewsShareTheirBytes) {
  // b becomes the second half of a concat with a; both are written as parts, the whole is read.
  SmallPlan small = small_plan();
  Description& d = small.description;
  Tensor whole = test::small_tensor("whole", Storage::kArena, 0);
  whole.shape = {1, {2 * test::kElements}};
  whole.bytes = 512;
  d.tensors.push_back(whole);
  d.tensors[1].view_of = d.tensors[2].view_of = 6;
  d.tensors[1].first_step = d.tensors[2].first_step = d.tensors[6].first_step = 0;
  d.tensors[1].last_step = d.tensors[2].last_step = d.tensors[6].last_step = 3;
  d.tensors[3].offset = 512;
  d.arena_bytes = d.lower_bound = 768;
  // The product reads the first half.
  d.steps[3].operands = {1, 4, 5};
  d.tensors[3].last_step = 2;
  const auto plan = Plan::parse(small.bytes());
  ASSERT_TRUE(plan) << plan.error().message;
  // A part that reaches outside.
  d.tensors[2].offset = 320;
  EXPECT_THAT(message_of(small.bytes()), HasSubstr("is no part of"));
}

TEST(Buckets, TheSmallestThatHoldsTheInputsIsChosen) {
  const auto plan_of = [](std::int64_t rows, std::int64_t columns) {
    Description d;
    d.name = "r" + std::to_string(rows);
    d.target = kernels::Target::kAvx2;
    d.parts = {1};
    d.proof = Proof::kOptimal;
    const auto bytes = static_cast<std::uint64_t>(rows * columns) * sizeof(float);
    Tensor x;
    x.name = "x";
    x.shape = {2, {rows, columns}};
    x.bytes = bytes;
    x.storage = Storage::kInput;
    x.first_step = x.last_step = 0;
    Tensor y = x;
    y.name = "y";
    y.storage = Storage::kOutput;
    d.tensors = {x, y};
    d.inputs = {0};
    d.outputs = {1};
    kernels::cpu::UnaryParams p;
    p.pixels = rows * columns;
    kernels::cpu::Call call = kernels::cpu::make_call(kernels::cpu::KernelId::kUnary, p);
    Step step;
    step.kernel = static_cast<std::uint32_t>(call.id);
    step.version = kernels::find_kernel(d.target, step.kernel)->version;
    step.params = call.params;
    step.operands = {0, 1};
    d.steps = {step};
    const auto file = write(d, {});
    EXPECT_TRUE(file) << file.error().message;
    const auto plan = Plan::parse(*file);
    EXPECT_TRUE(plan) << plan.error().message;
    return *plan;
  };
  const std::vector<std::shared_ptr<const Plan>> plans = {plan_of(4, 8), plan_of(1, 8), plan_of(2, 8), plan_of(2, 8)};
  const auto chosen = [&](std::int64_t rows, std::int64_t columns) {
    const kernels::Shape shape{2, {rows, columns}};
    return bucket_for(plans, {&shape, 1});
  };
  EXPECT_EQ(*chosen(1, 8), 1U);
  EXPECT_EQ(*chosen(1, 3), 1U);
  EXPECT_EQ(*chosen(2, 8), 2U) << "the first of two equal ones";
  EXPECT_EQ(*chosen(3, 8), 0U);
  const auto large = chosen(5, 8);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kInput);
  EXPECT_THAT(large.error().message, HasSubstr("no plan takes inputs of [5,8]; there are:\n  r4: [4,8]\n  r1: [1,8]"));
  EXPECT_FALSE(chosen(0, 8));
  const kernels::Shape flat{1, {8}};
  EXPECT_FALSE(bucket_for(plans, {&flat, 1})) << "another rank";
  EXPECT_FALSE(bucket_for(plans, {})) << "an input without a shape";
}

// A corpus of another format would be refused at its head: the fuzzer would try nothing.
TEST(Plan, CorpusOfTheFuzzerIsOfThisFormat) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TAKT_SOURCE_DIR "/tests/fuzz/corpus/plan")) {
    const auto plan = Plan::load(entry.path().string());
    EXPECT_TRUE(plan) << plan.error().message << "\nmake_plan_corpus tests/fuzz/corpus writes it anew";
    ++files;
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace takt::plan
