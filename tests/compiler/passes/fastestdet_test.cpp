// The published detector after every pass, and after all: the same function, with far fewer operators.
#include "tests/support/fastestdet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/operators.h"
#include "compiler/ir/statistics.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/passes.h"
#include "tests/support/test_data.h"

namespace takt::compiler {
namespace {

std::vector<float> run(const ir::Graph& graph, const ir::Constant& input) {
  const auto values = ir::interpret(graph, std::span(&input, 1));
  EXPECT_TRUE(values) << values.error().message;
  if (!values) return {};
  const ir::Constant& output = (*values)[static_cast<std::size_t>(graph.outputs[0])];
  const auto* first = output.tensor().as<float>();
  return {first, first + output.shape.elements()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

TEST(FastestDet, OptimisedGraphGivesTheSameWithFewerOperators) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const std::string file = read_file(folder + "/FastestDet.onnx").value();
  auto imported = import_onnx(std::as_bytes(std::span(file)), {.source = "FastestDet.onnx"});
  ASSERT_TRUE(imported) << imported.error().message;
  const ir::Graph before = *imported;
  ir::Graph after = before;
  const Status done = run_passes(after, {});
  ASSERT_TRUE(done) << done.error().message;

  const ir::Statistics statistics = ir::statistics(after);
  // 70 convolutions hold all 48 Relus, the Sigmoid and the Add; 13 shuffles are two channel gathers each; the
  // transposes around Softmax have met; the Pad is in the pool.
  EXPECT_EQ(statistics.operators, (std::map<std::string, std::uint64_t>{{"AveragePool", 1},
                                                                        {"Concat", 19},
                                                                        {"Conv", 70},
                                                                        {"MaxPool", 1},
                                                                        {"Resize", 1},
                                                                        {"Softmax", 1},
                                                                        {"takt.ChannelGather", 26}}));
  EXPECT_EQ(after[after.outputs[0]].name, before[before.outputs[0]].name);

  for (const test::Golden& golden : test::kGolden) {
    const ir::Constant input = test::golden_input(folder, golden);
    const std::vector<float> optimised = run(after, input);
    EXPECT_LT(largest_difference(optimised, test::golden_output(folder, golden)), 1e-3) << golden.name;
    EXPECT_LT(largest_difference(optimised, run(before, input)), 1e-5) << golden.name;
  }
}

TEST(FastestDet, EveryPassAloneKeepsTheFunction) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const std::string file = read_file(folder + "/FastestDet.onnx").value();
  const auto imported = import_onnx(std::as_bytes(std::span(file)), {.source = "FastestDet.onnx"});
  ASSERT_TRUE(imported) << imported.error().message;
  const ir::Constant input = test::golden_input(folder, test::kGolden[0]);
  const std::vector<float> expected = run(*imported, input);
  for (const Pass& pass : passes()) {
    ir::Graph graph = *imported;
    ASSERT_TRUE(pass.run(graph));
    graph.compact();
    const Status ok = ir::verify(graph);
    ASSERT_TRUE(ok) << pass.name << ": " << ok.error().message;
    EXPECT_LT(largest_difference(run(graph, input), expected), 1e-5) << pass.name;
  }
}

}  // namespace
}  // namespace takt::compiler
