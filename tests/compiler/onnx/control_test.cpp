// If, Loop and Scan from ONNX to plans: results against values worked out by hand, as imported and optimised, and what
// branches cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

using test::bytes_of;
using test::OnnxModel;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kBool = ::onnx::TensorProto::BOOL;
constexpr auto kInt64 = ::onnx::TensorProto::INT64;

std::vector<std::byte> truth(bool value) { return {std::byte{value}}; }
std::vector<std::byte> number(std::int64_t value) { return bytes_of(std::vector<std::int64_t>{value}); }

std::shared_ptr<const plan::Plan> planned(const OnnxModel& model, bool optimise, Options options = {}) {
  const std::string onnx = model.bytes();
  options.target = test::targets_of_this_machine().front();
  options.optimise = optimise;
  const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), options);
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes ? *plan::Plan::parse(*bytes) : nullptr;
}

// Output `slot` as floats; both plans, any number of workers, whatever lay in memory before.
std::vector<float> run(const OnnxModel& model, const std::vector<std::vector<std::byte>>& inputs, std::size_t slot = 0,
                       const Options& options = {}) {
  std::vector<std::byte> first;
  for (const bool optimise : {false, true}) {
    const auto plan = planned(model, optimise, options);
    if (plan == nullptr) return {};
    for (const auto& [parts, fill] : {std::pair{1, 0x7f}, {2, 0xff}, {1, 0}}) {
      const auto outputs = test::run_plan(plan, inputs, parts, fill);
      if (first.empty()) first = outputs[slot];
      EXPECT_EQ(outputs[slot], first) << (optimise ? "optimised" : "as imported") << ", " << parts << " parts";
    }
  }
  std::vector<float> out(first.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), first.data(), first.size());
  return out;
}

std::string error_of(const OnnxModel& model, const Options& options = {}) {
  const std::string onnx = model.bytes();
  const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), options);
  EXPECT_FALSE(bytes);
  return bytes ? "" : bytes.error().message;
}

// y = condition ? exp(x) + x : 2 x, with x from outside.
OnnxModel choice() {
  OnnxModel then_body(13), else_body(13);
  then_body.node("Exp", {"x"}, {"e"}).node("Add", {"e", "x"}, {"a"}).output("a");
  else_body.node("Add", {"x", "x"}, {"b"}).output("b");
  return OnnxModel(13)
      .input("c", {}, kBool)
      .input("x", {3})
      .node("If", {"c"}, {"y"})
      .with("then_branch", then_body)
      .with("else_branch", else_body)
      .output("y");
}

TEST(If, RunsTheBranchThatItsConditionNames) {
  const auto x = bytes_of<float>({0, 1, -2});
  EXPECT_THAT(run(choice(), {truth(true), x}),
              ElementsAre(1, testing::FloatNear(3.7182818F, 1e-6F), testing::FloatNear(-1.8646647F, 1e-6F)));
  EXPECT_THAT(run(choice(), {truth(false), x}), ElementsAre(0, 2, -4));
}

TEST(If, AKnownConditionLeavesOneBranch) {
  OnnxModel model = choice();
  model.node("Constant", {}, {"always"}).with("value_int", std::int64_t{7});
  model.node("Cast", {"always"}, {"yes"}).with("to", std::int64_t{kBool});
  model.model.mutable_graph()->mutable_node(0)->set_input(0, "yes");
  const auto plan = planned(model, false);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->description().guards.empty());
  EXPECT_THAT(run(model, {truth(false), bytes_of<float>({0, 0, 0})}), ElementsAre(1, 1, 1));
}

TEST(If, BranchesOfTwoTypesAreRefused) {
  OnnxModel then_body(13), else_body(13);
  then_body.floats("a", {2}, {1, 2}).output("a");
  else_body.floats("b", {3}, {1, 2, 3}).output("b");
  OnnxModel model(13);
  model.input("c", {}, kBool).node("If", {"c"}, {"y"}).with("then_branch", then_body).with("else_branch", else_body);
  EXPECT_THAT(error_of(model.output("y")), AllOf(HasSubstr("node ny (If)"), HasSubstr("f32[2] and f32[3]")));
}

TEST(If, UnsupportedOperatorsOfBranchesAreListed) {
  OnnxModel then_body(13), else_body(13);
  then_body.node("Frobnicate", {"x"}, {"a"}).output("a");
  else_body.node("Bogus", {"x"}, {"b"}).output("b");
  OnnxModel model(13);
  model.input("c", {}, kBool).input("x", {3}).node("If", {"c"}, {"y"});
  model.with("then_branch", then_body).with("else_branch", else_body).output("y");
  EXPECT_THAT(error_of(model), AllOf(HasSubstr("2 operators"), HasSubstr("Frobnicate"), HasSubstr("Bogus")));
}

// One branch holds `wide` floats at a time, the other `narrow`; both make a mean.
OnnxModel wide_and_narrow(std::int64_t wide, std::int64_t narrow, bool both) {
  const auto body = [](std::int64_t extent, const char* op, const char* result) {
    OnnxModel out(13);
    const std::string r = result;
    out.integers(r + "s", {extent}).node("Expand", {"x", r + "s"}, {r + "1"});
    out.node(op, {r + "1"}, {r + "2"}).node("Neg", {r + "2"}, {r + "3"});
    out.node("Mul", {r + "2", r + "3"}, {r + "4"});
    out.node("ReduceMean", {r + "4"}, {r}).with("axes", OnnxModel::Dims{0}).with("keepdims", std::int64_t{1});
    return out.output(r);
  };
  OnnxModel model(13);
  model.input("c", {}, kBool).input("x", {1});
  model.node("If", {"c"}, {"y"}).with("then_branch", body(wide, "Exp", "a"));
  model.with("else_branch", both ? body(narrow, "Tanh", "b") : body(wide, "Exp", "b")).output("y");
  return model;
}

TEST(If, CostsItsDearerBranch) {
  const auto plan = planned(wide_and_narrow(64'000, 48'000, true), false);
  ASSERT_TRUE(plan);
  const plan::Description& d = plan->description();
  // Three tensors of the wide branch are alive at once; nothing of the narrow one comes on top but two means.
  EXPECT_GE(d.arena_bytes, 2 * 64'000 * sizeof(float));
  EXPECT_LE(d.arena_bytes, 3 * 64'000 * sizeof(float) + 4 * plan::kAlignment);
  std::vector<std::uint64_t> flops, ones(d.steps.size(), 1);
  std::uint64_t wide = 0, narrow = 0, always = 0;
  for (const plan::Step& step : d.steps) {
    flops.push_back(step.flops);
    (step.guard == plan::kNone ? always : d.guards[step.guard].when ? wide : narrow) += step.flops;
  }
  EXPECT_GT(narrow, 0U);
  EXPECT_GT(wide, narrow);
  EXPECT_EQ(plan::dearest(d, flops), always + wide);
}

TEST(If, NestedBranchesCostTheDearestWay) {
  plan::Description d;
  d.guards = {{0, plan::kNone, true}, {0, plan::kNone, false}, {1, 0, true}, {1, 0, false}, {2, plan::kNone, true}};
  for (const std::uint32_t guard : {plan::kNone, 0U, 1U, 2U, 3U, 4U}) {
    plan::Step step;
    step.guard = guard;
    d.steps.push_back(step);
  }
  // always 1; 0: 10 with the dearer of 2 (5) and 3 (7) inside; 1: 16; another condition: 100.
  EXPECT_EQ(plan::dearest(d, std::vector<std::uint64_t>{1, 10, 16, 5, 7, 100}), 1 + 17 + 100U);
  EXPECT_EQ(plan::dearest(d, std::vector<std::uint64_t>{1, 10, 18, 5, 7, 100}), 1 + 18 + 100U);
}

TEST(If, RunsWithoutAllocation) {
  if (!memory::guard_available()) GTEST_SKIP() << "counting needs the interposed allocator (not under sanitizers)";
  const auto plan = planned(choice(), true);
  const auto session = exec::Session::create(plan);
  ASSERT_TRUE(session);
  test::AlignedBytes c(1), x(12), y(12);
  ASSERT_TRUE((*session)->bind_input(0, c.span()));
  ASSERT_TRUE((*session)->bind_input(1, x.span()));
  ASSERT_TRUE((*session)->bind_output(0, y.span()));
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 100; ++i) {
    c.span()[0] = std::byte{i % 2 == 0};
    (*session)->run();
  }
  const memory::ThreadCounters used = memory::thread_counters() - before;
  EXPECT_EQ(used.allocations, 0U);
  EXPECT_EQ(used.copied_bytes, 0U);
}

// v doubles until it is at least `limit`; every iteration writes down 10 i + v.
OnnxModel doubling(const char* condition) {
  OnnxModel body(13);
  body.input("i", {}, kInt64).input("going", {}, kBool).input("v", {1});
  body.node("Add", {"v", "v"}, {"v2"}).node("Less", {"v2", "limit"}, {"go"});
  body.output(condition).output("v2");
  return OnnxModel(13)
      .input("trips", {}, kInt64)
      .input("start", {1})
      .input("limit", {1})
      .node("Loop", {"trips", "", "start"}, {"y"})
      .with("body", body)
      .output("y");
}

TEST(Loop, EndsByItsConditionOrItsTrips) {
  Options options;
  options.loops = {{"ny", 6}};
  const auto start = bytes_of<float>({1});
  const OnnxModel model = doubling("go");
  EXPECT_THAT(run(model, {number(5), start, bytes_of<float>({10})}, 0, options), ElementsAre(16));
  EXPECT_THAT(run(model, {number(3), start, bytes_of<float>({10})}, 0, options), ElementsAre(8));
  EXPECT_THAT(run(model, {number(0), start, bytes_of<float>({10})}, 0, options), ElementsAre(1));
  EXPECT_THAT(run(model, {number(99), start, bytes_of<float>({1e9F})}, 0, options), ElementsAre(64)) << "the maximum";
}

// A maximum that is certain to cut is refused; where a condition may end the loop before, it is the user's word.
TEST(Loop, AMaximumBelowAKnownNumberOfTrips) {
  OnnxModel body(13);
  body.input("i", {}, kInt64).input("going", {}, kBool).input("v", {1});
  body.node("Identity", {"going"}, {"on"}).node("Add", {"v", "v"}, {"v2"}).output("on").output("v2");
  OnnxModel model(13);
  model.integers("trips", {}, {9}).input("start", {1}).node("Loop", {"trips", "", "start"}, {"y"}).with("body", body);
  model.output("y");
  const auto start = bytes_of<float>({1});
  Options options;
  for (const std::int64_t most : {9, 20}) {
    options.loops = {{"ny", most}};
    EXPECT_THAT(run(model, {start}, 0, options), ElementsAre(512));
  }
  options.loops = {{"ny", 5}};
  const std::string onnx = model.bytes();
  const auto cut = compile_onnx(std::as_bytes(std::span(onnx)), options);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("runs 9 times; its maximum (--loop ny=5) would cut it short"));

  OnnxModel whilst = doubling("go");  // for as long as it likes: the usual form of a while
  whilst.model.mutable_graph()->mutable_input()->DeleteSubrange(0, 1);
  whilst.integers("trips", {}, {std::numeric_limits<std::int64_t>::max()});
  EXPECT_THAT(run(whilst, {start, bytes_of<float>({10})}, 0, options), ElementsAre(16));
}

TEST(Loop, CollectsOfTheIterationsThatRan) {
  OnnxModel model = doubling("go");
  auto* loop = model.model.mutable_graph()->mutable_node(0);
  loop->add_output("rows");
  auto* body = loop->mutable_attribute(0)->mutable_g();
  body->add_output()->set_name("v2");
  model.output("rows");
  Options options;
  options.loops = {{"ny", 6}};
  const auto collected = [&](std::int64_t trips, float limit) {
    const auto plan = planned(model, true, options);
    const auto outputs = test::run_plan(plan, {number(trips), bytes_of<float>({1}), bytes_of<float>({limit})});
    std::int32_t count = -1;
    std::memcpy(&count, outputs[2].data(), sizeof count);
    std::vector<float> rows(static_cast<std::size_t>(count));
    if (count > 0) std::memcpy(rows.data(), outputs[1].data(), rows.size() * sizeof(float));
    return rows;
  };
  EXPECT_THAT(collected(5, 10), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(collected(2, 10), ElementsAre(2, 4));
  EXPECT_THAT(collected(0, 10), ElementsAre());
  EXPECT_THAT(collected(99, 1e9F), ElementsAre(2, 4, 8, 16, 32, 64));
}

TEST(Loop, WithoutAKnownMaximumIsRefused) {
  EXPECT_THAT(error_of(doubling("go")),
              AllOf(HasSubstr("node ny (Loop)"), HasSubstr("known only when it runs"), HasSubstr("--loop ny=NUMBER")));
}

TEST(Loop, OfAConstantNumberOfTripsHasNoGuards) {
  OnnxModel body(13);
  body.input("i", {}, kInt64).input("going", {}, kBool).input("v", {2});
  body.node("Cast", {"i"}, {"f"}).with("to", std::int64_t{::onnx::TensorProto::FLOAT});
  body.node("Add", {"v", "f"}, {"w"}).node("Identity", {"w"}, {"row"});
  body.node("Identity", {"going"}, {"go"}).output("go").output("w").output("row");
  OnnxModel model(13);
  model.integers("four", {}, {4}).input("start", {2}).node("Loop", {"four", "", "start"}, {"y", "rows"});
  model.with("body", body).output("y").output("rows");
  const auto plan = planned(model, false);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->description().guards.empty());
  const auto start = bytes_of<float>({1, 2});
  EXPECT_THAT(run(model, {start}), ElementsAre(7, 8));
  EXPECT_THAT(run(model, {start}, 1), ElementsAre(1, 2, 2, 3, 4, 5, 7, 8));
}

TEST(Loop, ThatUnrollsBeyondReasonIsRefused) {
  OnnxModel inner(13), outer(13), model(13);
  inner.input("i", {}, kInt64).input("c", {}, kBool).input("v", {1}).node("Identity", {"c"}, {"d"});
  inner.node("Exp", {"v"}, {"w"}).output("d").output("w");
  outer.integers("many", {}, {60'000}).input("j", {}, kInt64).input("e", {}, kBool).input("p", {1});
  outer.node("Identity", {"e"}, {"f"}).node("Loop", {"many", "", "p"}, {"q"}).with("body", inner);
  outer.output("f").output("q");
  model.integers("n", {}, {60'000}).input("x", {1}).node("Loop", {"n", "", "x"}, {"y"}).with("body", outer).output("y");
  EXPECT_THAT(error_of(model), HasSubstr("more than 65536 nodes"));
}

TEST(Loop, AConstantConditionThatIsNotOneBoolIsRefused) {
  const auto refusal = [](const OnnxModel::Dims& dims, std::int32_t type, const std::string& raw) {
    OnnxModel body(13);
    body.input("i", {}, kInt64).input("going", {}, kBool).input("v", {1}).integers("go", {}, {});
    auto* go = body.model.mutable_graph()->mutable_initializer(0);
    for (const std::int64_t extent : dims) go->add_dims(extent);
    go->set_data_type(type);
    go->set_raw_data(raw);
    body.node("Exp", {"v"}, {"w"}).output("go").output("w");
    OnnxModel model(13);
    model.integers("n", {}, {3}).input("x", {1}).node("Loop", {"n", "", "x"}, {"y"}).with("body", body).output("y");
    return error_of(model);
  };
  EXPECT_THAT(refusal({0}, kBool, ""), HasSubstr("its condition is bool[0]; expected one bool"));
  EXPECT_THAT(refusal({2}, kBool, std::string(2, '\1')), HasSubstr("its condition is bool[2]; expected one bool"));
  EXPECT_THAT(refusal({}, kInt64, std::string("\0\1\0\0\0\0\0\0", 8)), HasSubstr("its condition is i64"));
}

TEST(Loop, AValueThatChangesItsTypeInAnUnsureIterationIsRefused) {
  OnnxModel body(13);
  body.input("i", {}, kInt64).input("going", {}, kBool).input("v", {1});
  body.node("Concat", {"v", "v"}, {"w"}).with("axis", std::int64_t{0});
  body.node("Identity", {"going"}, {"go"}).output("go").output("w");
  OnnxModel model(13);
  model.integers("n", {}, {2}).input("c", {}, kBool).input("x", {1}).node("Loop", {"n", "c", "x"}, {"y"});
  model.with("body", body).output("y");
  EXPECT_THAT(error_of(model), HasSubstr("from f32[1] to f32[2] in an iteration that may be left out"));
}

TEST(Scan, GoesBackwardsAndAlongOtherDimensions) {
  OnnxModel body(13);
  body.input("sum", {2}).input("next", {2}).node("Add", {"sum", "next"}, {"t"}).node("Neg", {"t"}, {"n"});
  body.output("t").output("n");
  OnnxModel model(13);
  model.input("s", {2}).input("x", {2, 3}).node("Scan", {"s", "x"}, {"y", "z"}).with("body", body);
  model.with("num_scan_inputs", std::int64_t{1}).with("scan_input_axes", OnnxModel::Dims{1});
  model.with("scan_input_directions", OnnxModel::Dims{1}).with("scan_output_axes", OnnxModel::Dims{-1});
  model.output("y").output("z");
  const std::vector<std::vector<std::byte>> inputs = {bytes_of<float>({0, 0}), bytes_of<float>({1, 2, 3, 10, 20, 30})};
  EXPECT_THAT(run(model, inputs), ElementsAre(6, 60));
  EXPECT_THAT(run(model, inputs, 1), ElementsAre(-3, -5, -6, -30, -50, -60));
}

}  // namespace
}  // namespace takt::compiler
