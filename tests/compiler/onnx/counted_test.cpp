// Counted tensors from ONNX to plans: how many there are, what they are, and that nothing behind the count is ever
// read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/compile.h"
#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/import.h"
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

std::vector<std::byte> flags(const std::vector<int>& values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(std::byte{v != 0});
  return out;
}

// The valid part of output 0, from plans as imported and optimised, for any number of workers and with anything in
// memory before; and from the interpreter.
template <class T>
std::vector<T> run(const OnnxModel& model, const std::vector<std::vector<std::byte>>& inputs) {
  const std::string onnx = model.bytes();
  std::vector<std::byte> first;
  bool any = false;
  const auto agree = [&](std::vector<std::byte> found, const char* what) {
    if (!any) first = found;
    any = true;
    EXPECT_EQ(found, first) << what;
  };
  for (const bool optimise : {false, true}) {
    Options options;
    options.target = test::targets_of_this_machine().front();
    options.optimise = optimise;
    std::optional<ir::Graph> graph;
    options.after_pass = [&](std::string_view, const ir::Graph& now) { graph = now; };
    const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), options);
    EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
    if (!bytes) return {};
    const auto plan = *plan::Plan::parse(*bytes);
    const plan::Description& d = plan->description();
    const plan::Tensor& y = d.tensors[d.outputs[0]];
    const auto slot = [&]() -> std::size_t {
      for (std::size_t i = 0; i < d.outputs.size(); ++i) {
        if (d.tensors[d.outputs[i]].name == y.name + ":count" || i + 1 == d.outputs.size()) return i;
      }
      return 0;
    };
    for (const auto& [parts, fill] : {std::pair{1, 0x7f}, {2, 0xff}, {1, 0}}) {
      auto outputs = test::run_plan(plan, inputs, parts, fill);
      if (y.count != plan::kNone) {
        std::int32_t count = 0;
        std::memcpy(&count, outputs[slot()].data(), sizeof count);
        outputs[0] = ir::cut({y.dtype, y.shape, outputs[0]}, y.count_axis, count).bytes;
      }
      agree(outputs[0], optimise ? "optimised" : "as imported");
    }
    std::vector<ir::Constant> constants;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ir::Type& type = *(*graph)[graph->inputs[i]].type;
      constants.push_back({type.dtype, type.shape, inputs[i]});
    }
    const auto values = ir::interpret(*graph, constants);
    EXPECT_TRUE(values) << (values ? "" : values.error().message);
    if (!values) return {};
    const ir::Type& type = *(*graph)[graph->outputs[0]].type;
    ir::Constant result = (*values)[static_cast<std::size_t>(graph->outputs[0])];
    if (type.count != ir::kNoValue) {
      result = ir::cut(result, type.axis, *(*values)[static_cast<std::size_t>(type.count)].tensor().as<std::int32_t>());
    }
    agree(result.bytes, "interpreted");
  }
  std::vector<T> out(first.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), first.data(), first.size());
  return out;
}

std::string error_of(const OnnxModel& model) {
  const std::string onnx = model.bytes();
  const auto bytes = compile_onnx(std::as_bytes(std::span(onnx)), {});
  EXPECT_FALSE(bytes);
  return bytes ? "" : bytes.error().message;
}

// x [6,2] where mask [6], as torch writes x[mask]: NonZero, Transpose, GatherND.
OnnxModel masked(const std::string& rows = "rows") {
  OnnxModel model(13);
  model.input("x", {6, 2}).input("mask", {6}, kBool);
  model.node("NonZero", {"mask"}, {"at"}).node("Transpose", {"at"}, {"where"}).with("perm", OnnxModel::Dims{1, 0});
  return model.node("GatherND", {"x", "where"}, {rows});
}
const std::vector<std::byte> kX = bytes_of<float>({0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51});

TEST(Counted, RowsOfAMask) {
  const OnnxModel model = masked().output("rows");
  EXPECT_THAT(run<float>(model, {kX, flags({0, 1, 0, 0, 1, 0})}), ElementsAre(10, 11, 40, 41));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 0, 0, 0, 0})}), ElementsAre());
  EXPECT_THAT(run<float>(model, {kX, flags({1, 1, 1, 1, 1, 1})}).size(), 12U);
}

TEST(Counted, RowWiseOperatorsFollow) {
  OnnxModel model = masked();
  model.floats("two", {2}, {2, 100}).floats("w", {2, 3}, {1, 0, 1, 0, 1, 1}).floats("b", {3}, {0, 0, 0.5F});
  model.node("Mul", {"rows", "two"}, {"m"}).node("Neg", {"m"}, {"n"}).node("Relu", {"m"}, {"r"});
  model.node("Add", {"n", "r"}, {"zero"}).node("Add", {"zero", "rows"}, {"again"});
  model.node("Gemm", {"again", "w", "b"}, {"y"}).output("y");
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 1, 0, 0, 1})}), ElementsAre(20, 21, 41.5F, 50, 51, 101.5F));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 0, 0, 0, 0})}), ElementsAre());
}

TEST(Counted, ReductionsConsumeTheCount) {
  for (const auto& [op, some, none] : {std::tuple{"ReduceSum", std::pair{40.0F, 42.0F}, std::pair{0.0F, 0.0F}},
                                       {"ReduceMean", std::pair{20.0F, 21.0F}, std::pair{0.0F, 0.0F}},
                                       {"ReduceMax", std::pair{30.0F, 31.0F}, std::pair{-HUGE_VALF, -HUGE_VALF}}}) {
    OnnxModel model = masked();
    if (std::string(op) == "ReduceSum") {
      model.integers("zero", {0}).node(op, {"rows", "zero"}, {"y"}).with("keepdims", std::int64_t{0}).output("y");
    } else {
      model.node(op, {"rows"}, {"y"}).with("axes", OnnxModel::Dims{0}).with("keepdims", std::int64_t{0}).output("y");
    }
    EXPECT_THAT(run<float>(model, {kX, flags({0, 1, 0, 1, 0, 0})}), ElementsAre(some.first, some.second)) << op;
    EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 0, 0, 0, 0})}), ElementsAre(none.first, none.second)) << op;
  }
}

TEST(Counted, TopKTakesWhatThereIs) {
  OnnxModel model = masked();
  model.integers("k", {3})
      .node("Slice", {"rows", "s0", "s1", "one"}, {"column"})
      .node("Squeeze", {"column", "one"}, {"c"});
  model.integers("s0", {1}).integers("s1", {2}).integers("one", {1});
  model.node("TopK", {"c", "k"}, {"best", "top"}).node("Gather", {"rows", "top"}, {"y"}).output("y").output("best");
  EXPECT_THAT(run<float>(model, {kX, flags({1, 1, 1, 0, 1, 1})}), ElementsAre(50, 51, 40, 41, 20, 21));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 1, 0, 0, 0})}), ElementsAre(20, 21));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 0, 0, 0, 0})}), ElementsAre());
}

TEST(Counted, ConcatsAndSlicesMakeACount) {
  OnnxModel model = masked();
  model.floats("more", {1, 2}, {-1, -2})
      .node("Concat", {"rows", "more", "rows"}, {"all"})
      .with("axis", std::int64_t{0});
  model.integers("from", {1})
      .integers("to", {4})
      .integers("axis", {0})
      .node("Slice", {"all", "from", "to", "axis"}, {"y"});
  model.output("y");
  EXPECT_THAT(run<float>(model, {kX, flags({0, 1, 0, 0, 0, 0})}), ElementsAre(-1, -2, 10, 11));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 0, 0, 0, 0, 0})}), ElementsAre());
  EXPECT_THAT(run<float>(model, {kX, flags({1, 0, 0, 0, 1, 1})}), ElementsAre(40, 41, 50, 51, -1, -2));
  OnnxModel last = masked();
  last.integers("from", {-1}).integers("to", {std::numeric_limits<std::int64_t>::max()}).integers("axis", {0});
  last.node("Slice", {"rows", "from", "to", "axis"}, {"y"}).output("y");
  EXPECT_THAT(run<float>(last, {kX, flags({1, 0, 0, 0, 1, 0})}), ElementsAre(40, 41)) << "the last that there is";
}

TEST(Counted, CountsAlongOtherDimensions) {
  // NonZero gives [rank, count].
  OnnxModel model(13);
  model.input("x", {2, 3}).node("NonZero", {"x"}, {"at"}).integers("one", {}, {1});
  model.node("Gather", {"at", "one"}, {"columns"}).with("axis", std::int64_t{0}).output("columns");
  EXPECT_THAT(run<std::int64_t>(model, {bytes_of<float>({0, 5, 0, 6, 0, 7})}), ElementsAre(1, 0, 2));
  OnnxModel wide(13);
  wide.input("x", {2, 3}).node("NonZero", {"x"}, {"at"}).output("at");
  EXPECT_THAT(run<std::int64_t>(wide, {bytes_of<float>({0, 5, 0, 6, 0, 7})}), ElementsAre(0, 1, 1, 1, 0, 2));
}

// Boxes, scores [1,2,4] of 4 boxes: the usual tail of a detector.
TEST(Counted, SuppressionAndWhatFollowsIt) {
  OnnxModel model(13);
  model.input("boxes", {1, 4, 4}).input("scores", {1, 2, 4});
  model.integers("most", {2}).floats("iou", {1}, {0.5F}).floats("least", {1}, {0.1F});
  model.node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "least"}, {"chosen"});
  model.integers("two", {}, {2}).node("Gather", {"chosen", "two"}, {"index"}).with("axis", std::int64_t{1});
  model.integers("flat", {4, 4}).node("Reshape", {"boxes", "flat"}, {"table"});
  model.node("Gather", {"table", "index"}, {"y"}).with("axis", std::int64_t{0}).output("y");
  const auto boxes = bytes_of<float>({0, 0, 1, 1, 0, 0, 1, 0.9F, 2, 2, 3, 3, 4, 4, 5, 5});
  EXPECT_THAT(run<float>(model, {boxes, bytes_of<float>({0.9F, 0.8F, 0, 0.3F, 0, 0, 0.2F, 0})}),
              ElementsAre(0, 0, 1, 1, 4, 4, 5, 5, 2, 2, 3, 3));
  EXPECT_THAT(run<float>(model, {boxes, bytes_of<float>({0, 0, 0, 0, 0, 0, 0, 0})}), ElementsAre());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(run<float>(model, {boxes, bytes_of<float>({nan, 0.8F, 0, 0, nan, 0, 0, 0})}), ElementsAre(0, 0, 1, 0.9F));
}

TEST(Counted, UniqueSortsAndCounts) {
  OnnxModel model(13);
  model.input("x", {7}, kInt64).node("Unique", {"x"}, {"y", "first", "inverse", "counts"}).output("counts").output("y");
  const auto x = bytes_of<std::int64_t>({5, 3, 5, 5, 9, 3, 0});
  EXPECT_THAT(run<std::int64_t>(model, {x}), ElementsAre(1, 2, 3, 1));
  model.model.mutable_graph()->mutable_output(0)->set_name("inverse");
  EXPECT_THAT(run<std::int64_t>(model, {x}), ElementsAre(2, 1, 2, 2, 3, 1, 0));
  model.model.mutable_graph()->mutable_output(0)->set_name("first");
  EXPECT_THAT(run<std::int64_t>(model, {x}), ElementsAre(6, 1, 0, 4));
}

TEST(Counted, WhatIsKnownAtImportHasNoCount) {
  OnnxModel model(13);
  model.floats("mask", {4}, {0, 1, 0, 1}).input("x", {4}).node("NonZero", {"mask"}, {"at"});
  model.integers("zero", {}, {0}).node("Gather", {"at", "zero"}, {"i"}).node("Gather", {"x", "i"}, {"y"}).output("y");
  const std::string onnx = model.bytes();
  const auto graph = import_onnx(std::as_bytes(std::span(onnx)), {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_string(*(*graph)[graph->outputs[0]].type), "f32[2]");
  EXPECT_THAT(run<float>(model, {bytes_of<float>({1, 2, 3, 4})}), ElementsAre(2, 4));
}

TEST(Counted, WhatTakesNoCountsIsRefusedByName) {
  OnnxModel shape = masked();
  EXPECT_THAT(error_of(shape.node("Shape", {"rows"}, {"s"}).output("s")),
              AllOf(HasSubstr("node ns (Shape)"), HasSubstr("takes no counted tensors")));
  OnnxModel two = masked();
  two.node("Not", {"mask"}, {"other"}).node("NonZero", {"other"}, {"at2"}).node("Transpose", {"at2"}, {"w2"});
  two.node("GatherND", {"x", "w2"}, {"rows2"}).node("Add", {"rows", "rows2"}, {"y"}).output("y");
  EXPECT_THAT(error_of(two), AllOf(HasSubstr("node ny (Add)"), HasSubstr("its operands have different counts")));
  OnnxModel fixed = masked();
  EXPECT_THAT(error_of(fixed.node("Add", {"rows", "x"}, {"y"}).output("y")), HasSubstr("different counts"));
  OnnxModel flat = masked();
  flat.integers("s", {12}).node("Reshape", {"rows", "s"}, {"y"});
  EXPECT_THAT(error_of(flat.output("y")), HasSubstr("does not keep the counted dimension"));
  OnnxModel tile = masked();
  tile.integers("pads", {0, 0, 1, 0}).node("Pad", {"rows", "pads"}, {"y"});
  EXPECT_THAT(error_of(tile.output("y")), HasSubstr("takes no counted tensors"));
}

TEST(Counted, UnderABranch) {
  OnnxModel then_body(13), else_body(13);
  then_body.integers("zero", {0})
      .node("ReduceSum", {"rows", "zero"}, {"a"})
      .with("keepdims", std::int64_t{0})
      .output("a");
  else_body.floats("b", {2}, {7, 8}).output("b");
  OnnxModel model = masked();
  model.input("c", {}, kBool).node("If", {"c"}, {"y"}).with("then_branch", then_body).with("else_branch", else_body);
  model.output("y");
  EXPECT_THAT(run<float>(model, {kX, flags({0, 1, 0, 1, 0, 0}), flags({1})}), ElementsAre(40, 42));
  EXPECT_THAT(run<float>(model, {kX, flags({0, 1, 0, 1, 0, 0}), flags({0})}), ElementsAre(7, 8));
}

}  // namespace
}  // namespace takt::compiler
