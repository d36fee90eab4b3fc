// The graph's rules, its text, its statistics, and what operators mean in numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/counted.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/operators.h"
#include "compiler/ir/statistics.h"

namespace takt::ir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Shape shape(std::initializer_list<std::int64_t> dims) {
  Shape s;
  for (const std::int64_t d : dims) s.dims[s.rank++] = d;
  return s;
}

Node call(std::string op, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node node;
  node.name = "n" + op;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

// x[1,2,4,4] -> Conv -> Relu -> y
Graph small() {
  Graph graph;
  graph.name = "small";
  const ValueId x = graph.add_value("x", Type{DType::kF32, shape({1, 2, 4, 4})});
  const ValueId w = graph.add_constant("w", Constant::of(std::vector<float>(6, 0.5F), shape({3, 2, 1, 1})));
  graph.inputs = {x};
  const ValueId a = graph.add_value("a");
  const ValueId y = graph.add_value("y");
  EXPECT_TRUE(append(graph, call("Conv", {x, w}, {a})));
  EXPECT_TRUE(append(graph, call("Relu", {a}, {y})));
  graph.outputs = {y};
  return graph;
}

std::string refusal(const Graph& graph) {
  const Status ok = verify(graph);
  EXPECT_FALSE(ok);
  if (ok) return {};
  EXPECT_EQ(ok.error().code, Code::kInternal);
  return ok.error().message;
}

TEST(Graph, IsVerified) {
  const Graph graph = small();
  const Status ok = verify(graph);
  EXPECT_TRUE(ok) << ok.error().message;
}

TEST(Graph, BrokenRulesAreNamed) {
  Graph graph = small();
  std::swap(graph.nodes[0], graph.nodes[1]);
  EXPECT_THAT(refusal(graph), AllOf(HasSubstr("nRelu"), HasSubstr("before it is written")));

  graph = small();
  graph.nodes[1].outputs = graph.nodes[0].outputs;
  EXPECT_THAT(refusal(graph), HasSubstr("something else writes"));

  graph = small();
  graph[graph.outputs[0]].type->shape.dims[1] = 4;
  EXPECT_THAT(refusal(graph), AllOf(HasSubstr("f32[1,4,4,4]"), HasSubstr("f32[1,3,4,4]")));

  graph = small();
  graph[graph.outputs[0]].type.reset();
  EXPECT_THAT(refusal(graph), HasSubstr("has no type"));

  graph = small();
  graph.nodes[0].inputs[1] = 77;
  EXPECT_THAT(refusal(graph), HasSubstr("no value of the graph"));

  graph = small();
  graph.nodes[1].op = "Magic";
  EXPECT_THAT(refusal(graph), HasSubstr("unknown operator"));

  graph = small();
  graph.nodes[1].inputs.push_back(graph.inputs[0]);
  EXPECT_THAT(refusal(graph), HasSubstr("2 inputs, expected 1"));

  graph = small();
  auto cut = std::make_shared<Constant>(*graph.values[1].constant);
  cut->bytes.pop_back();
  graph.values[1].constant = cut;
  EXPECT_THAT(refusal(graph), HasSubstr("constant w"));

  graph = small();
  graph.outputs = {graph.add_value("lost", Type{})};
  EXPECT_THAT(refusal(graph), HasSubstr("output is never written"));
}

TEST(Graph, DumpIsOneLineForEachNode) {
  EXPECT_EQ(dump(small()),
            "graph small\n"
            "input x f32[1,2,4,4]\n"
            "a f32[1,3,4,4] = Conv(x, w f32[3,2,1,1] #" +
                dump(small()).substr(dump(small()).find('#') + 1, 8) +
                ") dilations=[1,1] group=1 pads=[0,0,0,0] strides=[1,1]  ; nConv\n"
                "y f32[1,3,4,4] = Relu(a)  ; nRelu\n"
                "output y f32[1,3,4,4]\n");
}

TEST(Graph, CompactDropsUnusedValues) {
  Graph graph = small();
  (void)graph.add_constant("unused", Constant::scalar(1));
  const std::string before = dump(graph);
  const std::size_t values = graph.values.size();
  graph.compact();
  EXPECT_EQ(graph.values.size(), values - 1);
  EXPECT_EQ(dump(graph), before);
  EXPECT_TRUE(verify(graph));
}

TEST(Graph, StatisticsCountWorkAndBytes) {
  const Statistics s = statistics(small());
  EXPECT_EQ(s.nodes, 2U);
  EXPECT_EQ(s.operators.at("Conv"), 1U);
  EXPECT_EQ(s.flops, 2U * 48 * 2 + 48);  // 48 outputs of 2 multiply-adds, then 48 comparisons
  EXPECT_EQ(s.constant_bytes, 6U * 4);
  EXPECT_EQ(s.activation_bytes, (32U + 48 + 48 + 48) * 4);  // x, a written, a read, y
}

TEST(Graph, LimitsAreCheckedWithoutOverflow) {
  EXPECT_TRUE(within_limits(shape({})));
  EXPECT_TRUE(within_limits(shape({kMaxElements})));
  EXPECT_FALSE(within_limits(shape({kMaxElements, 2})));
  EXPECT_FALSE(within_limits(shape({1 << 30, 1 << 30, 1 << 30, 1 << 30})));
  EXPECT_FALSE(within_limits(shape({-1})));
  EXPECT_TRUE(within_limits(shape({0, 1 << 30, 1})));
  EXPECT_FALSE(within_limits(shape({std::numeric_limits<std::int64_t>::max()})));
}

TEST(Operators, EveryOneHasARuleAndAKernel) {
  const auto names = operator_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_GT(names.size(), 50U);
  for (const std::string_view name : names) {
    const Operator* op = find_operator(name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_NE(op->infer, nullptr) << name;
    // What makes a count is evaluated with counts (evaluate_counted).
    Node node;
    node.op = name;
    EXPECT_TRUE(op->evaluate != nullptr || is_counted({}, node)) << name;
    EXPECT_LE(op->min_inputs, op->max_inputs) << name;
  }
  EXPECT_EQ(find_operator("Magic"), nullptr);
  EXPECT_EQ(find_operator(""), nullptr);
}

TEST(Operators, InterpretChecksItsInputs) {
  const Graph graph = small();
  EXPECT_FALSE(interpret(graph, {}));
  const Constant wrong = Constant::of(std::vector<float>(4, 0), shape({4}));
  const auto result = interpret(graph, std::span(&wrong, 1));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("f32[4]"), HasSubstr("f32[1,2,4,4]")));
}

TEST(Operators, StateIsReadAtItsInitialValue) {
  Graph graph;
  const ValueId x = graph.add_value("x", Type{DType::kF32, shape({1})});
  const ValueId old = graph.add_value("old", Type{DType::kF32, shape({1})});
  const ValueId sum = graph.add_value("sum");
  graph.inputs = {x};
  graph.states = {
      {"counter", old, sum, std::make_shared<const Constant>(Constant::of(std::vector<float>{5}, shape({1})))}};
  ASSERT_TRUE(append(graph, call("Add", {x, old}, {sum})));
  graph.outputs = {sum};
  const Status ok = verify(graph);
  ASSERT_TRUE(ok) << ok.error().message;
  const Constant one = Constant::of(std::vector<float>{1}, shape({1}));
  const auto values = interpret(graph, std::span(&one, 1));
  ASSERT_TRUE(values);
  EXPECT_EQ(*(*values)[static_cast<std::size_t>(sum)].tensor().as<float>(), 6.0F);
}

// What counts the rows of a state in one job must count them in the next.
TEST(Graph, ACountedStateGoesOnWithTheStateThatCountsIt) {
  Graph graph;
  const ValueId count = graph.add_value("count", Type{DType::kI32, {}});
  const ValueId spare = graph.add_value("spare", Type{DType::kI32, {}});
  const ValueId rows = graph.add_value("rows", Type{DType::kF32, shape({8}), count});
  const ValueId next = graph.add_value("next");
  ASSERT_TRUE(append(graph, call("Relu", {rows}, {next})));
  const State counter{"count", count, count, nullptr}, table{"rows", rows, next, nullptr};
  graph.states = {counter, table};
  const Status ok = verify(graph);
  EXPECT_TRUE(ok) << ok.error().message;
  for (const std::vector<State>& states :
       {std::vector<State>{{"count", count, spare, nullptr}, {"spare", spare, count, nullptr}, table}, {table}}) {
    graph.states = states;
    const Status refused = verify(graph);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("state rows has not one type"));
  }
}

// A node over tensors without a graph: constants have data.
struct Operands {
  std::vector<Constant> constants;
  std::vector<kernels::Tensor> tensors;
  Node node;

  explicit Operands(const Shape& x) { tensors.push_back({DType::kF32, x, nullptr}); }
  Operands& integers(const std::vector<std::int64_t>& values) {
    constants.push_back(Constant::of(values));
    return *this;
  }
  Tensors all() {
    for (const Constant& c : constants) tensors.push_back(c.tensor());
    for (std::size_t i = 0; i < tensors.size(); ++i) node.inputs.push_back(static_cast<ValueId>(i));
    return tensors;
  }
};

TEST(Geometry, SliceClampsAsNumpyDoes) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kBack = std::numeric_limits<std::int64_t>::min();
  struct Case {
    std::int64_t start, end, step, extent, length, first;
  };
  for (const Case& c : {Case{0, kFar, 1, 10, 10, 0}, Case{-3, kFar, 1, 10, 3, 7}, Case{2, -2, 3, 10, 2, 2},
                        Case{kFar, kBack, -1, 10, 10, 9}, Case{8, 2, -2, 10, 3, 8}, Case{5, 5, 1, 10, 0, 0},
                        Case{-99, 3, 1, 10, 3, 0}, Case{0, kFar, kFar, 10, 1, 0}, Case{9, kBack, kBack, 10, 1, 9},
                        Case{0, 1, 1, 0, 0, 0}, Case{0, 1, -1, 0, 0, 0}}) {
    Operands o(shape({c.extent}));
    o.integers({c.start}).integers({c.end}).integers({0}).integers({c.step});
    const Tensors tensors = o.all();
    const auto g = slice_geometry(o.node, tensors);
    ASSERT_TRUE(g) << g.error().message;
    EXPECT_EQ(g->out.dims[0], c.length) << c.start << ":" << c.end << ":" << c.step;
    EXPECT_EQ(g->start[0], c.first) << c.start << ":" << c.end << ":" << c.step;
  }
}

TEST(Geometry, PadIndices) {
  const auto indices = [](const char* mode, std::int64_t before, std::int64_t after) {
    Operands o(shape({3}));
    o.integers({before, after});
    o.node.attributes["mode"] = std::string(mode);
    const Tensors tensors = o.all();
    const auto g = pad_geometry(o.node, tensors);
    return g ? g->indices(0, 3) : std::vector<std::int64_t>{};
  };
  EXPECT_THAT(indices("constant", 2, 1), ElementsAre(-1, -1, 0, 1, 2, -1));
  EXPECT_THAT(indices("edge", 2, 1), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(indices("reflect", 2, 2), ElementsAre(2, 1, 0, 1, 2, 1, 0));
  EXPECT_THAT(indices("constant", -1, -1), ElementsAre(1));
  EXPECT_THAT(indices("reflect", 3, 0), ::testing::IsEmpty());  // refused: nothing to mirror
}

TEST(Geometry, PoolRoundsUpOnlyToWindowsThatBeginInside) {
  const auto pooled = [](std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    Operands o(shape({1, 1, extent, extent}));
    o.node.op = "MaxPool";
    o.node.attributes["kernel_shape"] = std::vector<std::int64_t>{kernel, kernel};
    o.node.attributes["strides"] = std::vector<std::int64_t>{stride, stride};
    o.node.attributes["pads"] = std::vector<std::int64_t>{pad, pad, pad, pad};
    o.node.attributes["ceil_mode"] = std::int64_t{1};
    const Tensors tensors = o.all();
    const auto g = pool_geometry(o.node, tensors);
    return g ? g->out[0] : -1;
  };
  EXPECT_EQ(pooled(4, 3, 2, 0), 2);
  EXPECT_EQ(pooled(5, 3, 2, 0), 2);
  EXPECT_EQ(pooled(6, 1, 3, 0), 2);   // a third window would begin behind the last element
  EXPECT_EQ(pooled(4, 2, 2, 2), -1);  // padding as large as the window
}

TEST(Geometry, PreprocessChecksThePayload) {
  const auto fits = [](std::int64_t bytes, const char* format, std::int64_t pitch, std::int64_t chroma = 0) {
    Operands o(shape({bytes}));
    o.tensors[0].dtype = DType::kU8;
    o.node.attributes = {
        {"format", std::string(format)}, {"width", std::int64_t{4}},      {"height", std::int64_t{2}},
        {"out_width", std::int64_t{2}},  {"out_height", std::int64_t{2}}, {"pitch", pitch},
        {"offset", std::int64_t{1}},     {"chroma_offset", chroma},       {"chroma_pitch", std::int64_t{4}}};
    const Tensors tensors = o.all();
    return preprocess_geometry(o.node, tensors).has_value();
  };
  EXPECT_TRUE(fits(1 + 16 + 12, "rgb8", 16));
  EXPECT_FALSE(fits(1 + 16 + 11, "rgb8", 16));
  EXPECT_FALSE(fits(1000, "rgb8", 11));
  EXPECT_FALSE(fits(1000, "yuyv", 16));
  EXPECT_TRUE(fits(1 + 8 + 4, "nv12", 4, 9));
  EXPECT_FALSE(fits(1 + 8 + 4, "nv12", 4, 10));
  EXPECT_FALSE(fits(1 + 8 + 4, "nv12", 4, -1));
}

}  // namespace
}  // namespace takt::ir
