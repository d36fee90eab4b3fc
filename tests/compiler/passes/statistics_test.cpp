// What the passes leave of two networks, as files that a change of a pass has to change with it.
#include "compiler/ir/statistics.h"

#include <gtest/gtest.h>

#include "compiler/onnx/import.h"
#include "compiler/passes/passes.h"
#include "runtime/base/file.h"
#include "tests/support/test_data.h"

namespace takt::compiler {
namespace {

const std::string kGolden = TAKT_SOURCE_DIR "/tests/compiler/passes/golden/";

void compare(const std::string& model, const std::string& name, const ImportOptions& options) {
  const std::string file = read_file(model).value();
  auto graph = import_onnx(std::as_bytes(std::span(file)), options);
  ASSERT_TRUE(graph) << graph.error().message;
  const std::string again = "; when that is meant: takt compile " + model +
                            " --statistics-after PASS, the JSON into tests/compiler/passes/golden";
  EXPECT_EQ(ir::to_json(ir::statistics(*graph)), read_file(kGolden + name + ".import.json").value()) << again;
  ASSERT_TRUE(run_passes(*graph, {}));
  EXPECT_EQ(ir::to_json(ir::statistics(*graph)), read_file(kGolden + name + ".order.json").value()) << again;
}

TEST(Statistics, OfTheShippedNetwork) {
  compare(TAKT_SOURCE_DIR "/configs/models/sim_camera.onnx", "sim_camera", {.dims = {{"height", 256}, {"width", 416}}});
}

TEST(Statistics, OfFastestDet) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  compare(folder + "/FastestDet.onnx", "fastestdet", {});
}

// By hand: x[4] -> a = Relu(x) -> b = Add(a, c), c constant; b is the result.
TEST(Statistics, CountWhatIsReadAndWrittenAndWhatIsAlive) {
  ir::Graph graph;
  ir::Type type;
  type.shape = {1, {4}};
  const ir::ValueId x = graph.add_value("x", type), a = graph.add_value("a", type), b = graph.add_value("b", type);
  const std::vector<float> ones(4, 1.0F);
  const ir::ValueId c = graph.add_constant("c", ir::Constant::of(ones, type.shape));
  graph.inputs = {x};
  graph.outputs = {b};
  graph.nodes.push_back({.op = "Relu", .name = "relu", .inputs = {x}, .outputs = {a}, .attributes = {}});
  graph.nodes.push_back({.op = "Add", .name = "add", .inputs = {a, c}, .outputs = {b}, .attributes = {}});
  const ir::Statistics s = ir::statistics(graph);
  EXPECT_EQ(s.nodes, 2U);
  EXPECT_EQ(s.activation_bytes, 4U * 16);
  EXPECT_EQ(s.constant_bytes, 16U);
  EXPECT_EQ(s.peak_bytes, 2U * 16);
}

}  // namespace
}  // namespace takt::compiler
