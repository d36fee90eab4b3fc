// A published detector through import and reference kernels, against golden outputs of ONNX Runtime.
#include "tests/support/fastestdet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/operators.h"
#include "compiler/ir/statistics.h"
#include "compiler/onnx/import.h"
#include "tests/support/test_data.h"

namespace takt::compiler {
namespace {

TEST(FastestDet, ImportedGraphGivesTheGoldenOutputs) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  const std::string file = read_file(folder + "/FastestDet.onnx").value();
  const auto graph = import_onnx(std::as_bytes(std::span(file)), {.source = "FastestDet.onnx"});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->inputs.size(), 1U);
  EXPECT_EQ(to_string(*(*graph)[graph->inputs[0]].type), "f32[1,3,352,352]");
  ASSERT_EQ(graph->outputs.size(), 1U);
  EXPECT_EQ(to_string(*(*graph)[graph->outputs[0]].type), "f32[1,85,22,22]");
  // Operator counts of the README of the recorded data.
  const ir::Statistics statistics = ir::statistics(*graph);
  EXPECT_EQ(statistics.operators.at("Conv"), 70U);
  EXPECT_EQ(statistics.operators.at("Relu"), 48U);
  EXPECT_EQ(statistics.operators.at("Gather"), 26U);
  EXPECT_EQ(statistics.operators.at("Transpose"), 15U);

  for (const test::Golden& golden : test::kGolden) {
    const ir::Constant input = test::golden_input(folder, golden);
    const auto values = ir::interpret(*graph, std::span(&input, 1));
    ASSERT_TRUE(values) << values.error().message;
    const ir::Constant& output = (*values)[static_cast<std::size_t>(graph->outputs[0])];
    const std::vector<float> expected = test::golden_output(folder, golden);
    ASSERT_EQ(output.bytes.size(), expected.size() * sizeof(float));
    double worst = 0;
    double sum = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto value = static_cast<double>(output.tensor().as<float>()[i]);
      worst = std::max(worst, std::fabs(value - static_cast<double>(expected[i])));
      sum += value;
    }
    RecordProperty(std::string("worst_") + golden.name, std::to_string(worst));
    EXPECT_LT(worst, 1e-3) << golden.name;
    EXPECT_NEAR(sum, golden.sum, 0.01) << golden.name;
  }
}

}  // namespace
}  // namespace takt::compiler
