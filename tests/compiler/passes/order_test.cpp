// The order that needs least: against every order of small graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"

namespace takt::compiler {
namespace {

ir::Type floats(std::int64_t n) {
  ir::Type type;
  type.shape = {1, {n}};
  return type;
}

ir::ValueId add_node(ir::Graph& graph, const char* op, std::vector<ir::ValueId> inputs, std::int64_t elements) {
  ir::Node node;
  node.op = op;
  node.name = op + std::to_string(graph.nodes.size());
  node.inputs = std::move(inputs);
  const ir::ValueId out = graph.add_value(node.name + ".y", floats(elements));
  node.outputs = {out};
  graph.nodes.push_back(std::move(node));
  return out;
}

// Most bytes alive at a node, without what the caller owns.
std::uint64_t peak(const ir::Graph& graph, const std::vector<std::size_t>& order) {
  std::vector<int> unread(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId id : node.inputs) ++unread[static_cast<std::size_t>(id)];
  }
  const auto bytes = [&](ir::ValueId id) -> std::uint64_t {
    const auto is = [&](ir::ValueId other) { return other == id; };
    const bool callers = std::any_of(graph.inputs.begin(), graph.inputs.end(), is) ||
                         std::any_of(graph.outputs.begin(), graph.outputs.end(), is);
    return callers ? 0 : 4 * static_cast<std::uint64_t>(graph[id].type->shape.elements());
  };
  std::uint64_t live = 0, most = 0;
  for (const std::size_t n : order) {
    for (const ir::ValueId id : graph.nodes[n].outputs) live += bytes(id);
    most = std::max(most, live);
    for (const ir::ValueId id : graph.nodes[n].inputs) {
      if (--unread[static_cast<std::size_t>(id)] == 0) live -= bytes(id);
    }
    for (const ir::ValueId id : graph.nodes[n].outputs) {
      if (unread[static_cast<std::size_t>(id)] == 0) live -= bytes(id);
    }
  }
  return most;
}
std::uint64_t peak(const ir::Graph& graph) {
  std::vector<std::size_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return peak(graph, order);
}

std::uint64_t least_peak(const ir::Graph& graph) {
  const std::vector<int> producers = graph.producers();
  std::vector<std::size_t> order(graph.nodes.size()), at(graph.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t least = UINT64_MAX;
  do {
    for (std::size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
    bool topological = true;
    for (std::size_t n = 0; n < graph.nodes.size() && topological; ++n) {
      for (const ir::ValueId id : graph.nodes[n].inputs) {
        const int from = producers[static_cast<std::size_t>(id)];
        topological = topological && (from < 0 || at[static_cast<std::size_t>(from)] < at[n]);
      }
    }
    if (topological) least = std::min(least, peak(graph, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// Two branches that widen and end small: side by side both are wide at the same time.
TEST(Order, OneBranchAfterTheOther) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", floats(8));
  graph.inputs = {x};
  const ir::ValueId a = add_node(graph, "Expand", {x}, 1000), b = add_node(graph, "Expand", {x}, 1000);
  const ir::ValueId c = add_node(graph, "Slice", {a}, 8), d = add_node(graph, "Slice", {b}, 8);
  graph.outputs = {add_node(graph, "Add", {c, d}, 8)};
  EXPECT_EQ(peak(graph), 4U * 2008);
  ASSERT_TRUE(order_for_peak(graph));
  EXPECT_EQ(peak(graph), 4U * 1016);
}

TEST(Order, StaysWhereNothingIsWon) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value("x", floats(8));
  graph.inputs = {x};
  const ir::ValueId a = add_node(graph, "Relu", {x}, 8), b = add_node(graph, "Exp", {x}, 8);
  graph.outputs = {add_node(graph, "Add", {a, b}, 8)};
  ASSERT_TRUE(order_for_peak(graph));
  EXPECT_EQ(graph.nodes[0].op, "Relu");
  EXPECT_EQ(graph.nodes[1].op, "Exp");
}

TEST(Order, ReachesTheLeastPeakOfSmallGraphs) {
  std::mt19937 engine(7);
  const auto random = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine()) % n; };
  int improved = 0;
  for (int round = 0; round < 60; ++round) {
    ir::Graph graph;
    std::vector<ir::ValueId> values = {graph.add_value("x", floats(4))};
    graph.inputs = values;
    for (int i = 0; i < 7; ++i) {
      const ir::ValueId a = values[random(static_cast<std::uint32_t>(values.size()))];
      const ir::ValueId b = values[values.size() - 1 - random(std::min(3U, static_cast<std::uint32_t>(values.size())))];
      std::vector<ir::ValueId> inputs = {a};
      if (b != a) inputs.push_back(b);
      values.push_back(add_node(graph, "Add", inputs, 1 + random(50)));
    }
    graph.outputs = {values.back()};
    const std::uint64_t before = peak(graph), least = least_peak(graph);
    ASSERT_TRUE(order_for_peak(graph));
    ASSERT_EQ(peak(graph), least) << "round " << round;
    improved += least < before ? 1 : 0;
  }
  EXPECT_GT(improved, 5);
}

}  // namespace
}  // namespace takt::compiler
