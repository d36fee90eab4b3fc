// Compositions: what the parts compute together is what they compute alone, bit by bit; what is wrong is said with its
// place.
#include "pipeline/models/composition_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <sstream>

#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/exec/trace.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"

namespace takt::pipeline {
namespace {

using compiler::Composition;
using ::testing::HasSubstr;

const std::string kModels = TAKT_SOURCE_DIR "/configs/models/";

std::shared_ptr<const plan::Plan> compiled(const Composition& composition) {
  const auto bytes = compiler::compile_composition(composition, {});
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? *plan::Plan::parse(*bytes) : nullptr;
}

std::vector<std::byte> made_up(const plan::Plan& plan) {
  return exec::made_up_input(plan.description().tensors[plan.description().inputs[0]]);
}

// The output of that name of a plan with one input.
std::vector<std::byte> output_of(const std::shared_ptr<const plan::Plan>& plan, const std::vector<std::byte>& input,
                                 const std::string& name) {
  const auto slot = plan->find_output(name);
  EXPECT_TRUE(slot) << name;
  return slot ? test::run_plan(plan, {input})[*slot] : std::vector<std::byte>{};
}

class CompositionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
};

TEST_F(CompositionTest, TheShippedPairComputesWhatItsNetworksComputeAlone) {
  const auto composition = load_composition(kModels + "sim_camera_pair.yaml", {});
  ASSERT_TRUE(composition) << composition.error().message;
  const auto plan = compiled(*composition);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->description().name, "sim_camera_pair");
  ASSERT_EQ(plan->description().inputs.size(), 1U);
  ASSERT_EQ(plan->description().outputs.size(), 4U);
  const std::vector<std::byte> picture = made_up(*plan);
  constexpr CameraPicture kPicture{kernels::PixelSource::kRgb8, 640, 384, 1920, 64};
  ASSERT_EQ(picture.size(), picture_bytes(kPicture));
  const auto alone = [&](const char* file) { return *compile_model(*load_model(kModels + file), kPicture, {1}); };
  const auto lite = alone("sim_camera_lite.yaml"), full = alone("sim_camera_full.yaml");
  EXPECT_EQ(output_of(plan, picture, "wide_heatmap"), output_of(lite, picture, "heatmap"));
  EXPECT_EQ(output_of(plan, picture, "wide_box"), output_of(lite, picture, "box"));
  EXPECT_EQ(output_of(plan, picture, "box"), output_of(full, picture, "box"));
  // Where both agree: nowhere hotter than the full one, somewhere cooler.
  const auto both = output_of(plan, picture, "heatmap"), fine = output_of(full, picture, "heatmap");
  std::size_t cooler = 0;
  for (std::size_t i = 0; i < both.size(); i += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, both.data() + i, sizeof a);
    std::memcpy(&b, fine.data() + i, sizeof b);
    ASSERT_LE(a, b);
    cooler += a < b ? 1 : 0;
  }
  EXPECT_GT(cooler, 0U);
  // Weights that both networks have lie in the plan once.
  EXPECT_LT(plan->file_bytes(), lite->file_bytes() + full->file_bytes() / 2);
}

TEST_F(CompositionTest, OrderOfPartsDoesNotMatter) {
  auto composition = *load_composition(kModels + "sim_camera_pair.yaml", {});
  const auto plan = compiled(composition);
  std::reverse(composition.parts.begin(), composition.parts.end());
  const auto turned = compiled(composition);
  const auto picture = made_up(*plan);
  for (const char* name : {"heatmap", "box", "wide_heatmap", "wide_box"}) {
    EXPECT_EQ(output_of(plan, picture, name), output_of(turned, picture, name));
  }
}

TEST_F(CompositionTest, ARecordedDetectorBesideOurs) {
  TAKT_TEST_DATA_OR_SKIP(model, "models/fastestdet/FastestDet.onnx");
  const std::string text = R"(
composition: two_detectors
inputs:
  camera: {picture: rgb8, width: 640, height: 384}
parts:
  coco: {model: fastestdet.yaml, inputs: {input.1: camera}}
  ours: {model: sim_camera_full.yaml, inputs: {image: camera}}
outputs: {coco: coco.758, heatmap: ours.heatmap, box: ours.box}
)";
  const std::string file = std::string(TAKT_BINARY_DIR) + "/two_detectors.yaml";
  ASSERT_TRUE(write_file_atomically(file, text));
  // Contracts are looked for beside the file.
  const auto astray = load_composition(file, {{"coco", model}});
  ASSERT_FALSE(astray);
  EXPECT_THAT(astray.error().message, HasSubstr("two_detectors.yaml:6:17: "));
  EXPECT_THAT(astray.error().message, HasSubstr("fastestdet.yaml"));
  const auto composition = parse_composition(text, "two.yaml", [&](const std::string& part, const std::string& name) {
    return read_file(part == "coco" ? model : kModels + name);
  });
  ASSERT_TRUE(composition) << composition.error().message;
  const auto plan = compiled(*composition);
  const auto picture = made_up(*plan);
  constexpr CameraPicture kPicture{kernels::PixelSource::kRgb8, 640, 384, 1920, 64};
  const auto coco = *compile_model(*load_model(kModels + "fastestdet.yaml", model), kPicture, {1});
  const auto ours = *compile_model(*load_model(kModels + "sim_camera_full.yaml"), kPicture, {1});
  EXPECT_EQ(output_of(plan, picture, "coco"), output_of(coco, picture, "758"));
  EXPECT_EQ(output_of(plan, picture, "heatmap"), output_of(ours, picture, "heatmap"));
  EXPECT_EQ(output_of(plan, picture, "box"), output_of(ours, picture, "box"));
  // One after the other in one arena: no more than the larger one needs, and what waits for its end.
  const plan::Description& d = plan->description();
  EXPECT_LT(d.arena_bytes, coco->description().arena_bytes + ours->description().arena_bytes);
}

// A small network: y = x * w, of any width.
std::string small_network() {
  test::OnnxModel model(13);
  model.input("x", {1, -1}).output("y").floats("w", {1}, {2}).node("Mul", {"x", "w"}, {"y"});
  return model.model.SerializeAsString();
}

Result<Composition> small(const std::string& text) {
  static const std::string network = small_network();
  std::string filled = text;
  const std::string hash = digest(network).hex();
  for (std::size_t at = 0; (at = filled.find("HASH", at)) != std::string::npos;) filled.replace(at, 4, hash);
  return parse_composition(filled, "c.yaml", [](const std::string&, const std::string& file) -> Result<std::string> {
    if (file == "net.onnx") return network;
    return fail(Code::kInput, file + ": cannot be opened");
  });
}

constexpr const char* kSmall = R"(composition: small
inputs:
  a: {type: f32, shape: [1, 3]}
parts:
  net: {onnx: net.onnx, hash: HASH, inputs: {x: a}}
  next: {onnx: net.onnx, hash: HASH, inputs: {x: sum}}
  sum: {operator: Add, inputs: [net.y, {f32: [1, 10, 100]}]}
  halves: {operator: Split, inputs: [next, {i64: [1, 2]}], attributes: {axis: 1}, outputs: [left, right]}
outputs: {left: halves.left, right: halves.right}
)";

TEST_F(CompositionTest, NetworksOperatorsAndConstantsAreLinked) {
  const auto composition = small(kSmall);
  ASSERT_TRUE(composition) << composition.error().message;
  const auto plan = compiled(*composition);
  ASSERT_NE(plan, nullptr);
  const float x[] = {1, 2, 3};
  const auto bytes = std::as_bytes(std::span(x));
  const auto outputs = test::run_plan(plan, {{bytes.begin(), bytes.end()}});
  std::vector<float> y(3);
  std::memcpy(y.data(), outputs[0].data(), sizeof(float));
  std::memcpy(y.data() + 1, outputs[1].data(), 2 * sizeof(float));
  EXPECT_EQ(y, (std::vector<float>{(1 * 2 + 1) * 2, (2 * 2 + 10) * 2, (3 * 2 + 100) * 2}));
}

// The text with one thing replaced, read and composed.
std::string message_of(const std::string& from, const std::string& to, Code code = Code::kConfiguration) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto composition = small(text);
  if (!composition) {
    EXPECT_EQ(composition.error().code, code);
    return composition.error().message;
  }
  const auto graph = compiler::compose(*composition);
  if (graph) return "accepted";
  EXPECT_EQ(graph.error().code, code) << graph.error().message;
  return graph.error().message;
}

TEST_F(CompositionTest, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(message_of("composition: small", "composition: small"), "accepted");
  EXPECT_THAT(message_of("x: a}}", "x: b}}"),
              HasSubstr("c.yaml:5:77: there is no input or part 'b'; did you mean 'a'?"));
  EXPECT_THAT(message_of("net.y, {f32", "net.z, {f32"),
              HasSubstr("c.yaml:7:33: 'net' has no output 'z'; did you mean 'y'?"));
  EXPECT_THAT(message_of("left: halves.left", "left: halves"),
              HasSubstr("c.yaml:9:17: 'halves' has several outputs, name one: halves.left"));
  EXPECT_THAT(message_of("inputs: {x: a}", "inputs: {z: a}", Code::kInput),
              HasSubstr("c.yaml:5:8: net.onnx: has no input z"));
  EXPECT_THAT(message_of("{x: a}", "{x: next}"),
              HasSubstr("c.yaml:5:8: parts feed each other in a circle, or wait for one: net, next, sum, halves"));
  EXPECT_THAT(message_of("type: f32", "type: i64"),
              HasSubstr("c.yaml:5:77: input 'x' of the network is f32[1,3], it is fed i64[1,3]"));
  EXPECT_THAT(message_of("shape: [1, 3]", "shape: [2, 3]", Code::kInput), HasSubstr("c.yaml:5:8: net.onnx: "));
  EXPECT_THAT(message_of("operator: Add", "operator: Sum2"),
              HasSubstr("c.yaml:7:8: operator Sum2 is none that takt reads"));
  EXPECT_THAT(message_of("operator: Add", "operator: takt.Preproces"),
              HasSubstr("c.yaml:7:8: takt has no operator takt.Preproces; did you mean 'takt.Preprocess'?"));
  EXPECT_THAT(message_of("axis: 1", "axs: 1"), HasSubstr("c.yaml:8:11: node halves (Split): attribute axs is unknown"));
  EXPECT_THAT(message_of("axis: 1", "axis: row"), HasSubstr("c.yaml:8:11: node halves (Split): attribute axis"));
  EXPECT_THAT(message_of("[1, 10, 100]", "[1, 10, 100, 1000]"), HasSubstr("c.yaml:7:8: node sum (Add)"));
  EXPECT_THAT(message_of("{f32: [1, 10, 100]}", "{f32: [1, 10], shape: [3]}"),
              HasSubstr("c.yaml:7:46: parts.sum.inputs[1].f32: 2 numbers for 3 elements"));
  EXPECT_THAT(message_of("net.onnx, hash: HASH", "nat.onnx, hash: HASH"),
              HasSubstr("c.yaml:5:15: parts.net.onnx: nat.onnx: cannot be opened"));
  EXPECT_THAT(message_of("hash: HASH", "hash: 00"),
              HasSubstr("c.yaml:5:31: parts.net.hash: expected hash 00, net.onnx has "));
  EXPECT_THAT(message_of("{left: halves.left,", "{left: halves.left, once: halves.left,"),
              HasSubstr("output 'once' is an input or another output already; leave it out"));
  EXPECT_THAT(message_of("{left: halves.left,", "{left: {f32: [1]},"), HasSubstr("output 'left' is a constant"));
  EXPECT_THAT(message_of("parts:\n", "  b: {type: f32, shape: [4]}\nparts:\n"),
              HasSubstr("c.yaml:4:6: no output needs input 'b'"));
  EXPECT_THAT(message_of("  net:", "  a: {operator: Relu, inputs: [a]}\n  net:"),
              HasSubstr("'a' is the name of an input already"));
  EXPECT_THAT(message_of("  sum: {", "  sum: {operater: Add, "), HasSubstr("operater"));
  EXPECT_THAT(message_of("outputs: {left: halves.left, right: halves.right}", "outputs: {}"),
              HasSubstr("a composition has outputs"));
  EXPECT_THAT(message_of("  halves: {", "  ha.lves: {"), HasSubstr("a name is of letters, digits"));
  // Nothing of a broken network gets further than its place.
  std::string text = kSmall;
  text.replace(text.find("net.onnx"), 8, "bad.onnx");
  const std::string bad = "this is no network";
  text.replace(text.find("HASH"), 4, digest(bad).hex());
  for (std::size_t at = 0; (at = text.find("HASH", at)) != std::string::npos;)
    text.replace(at, 4, digest(small_network()).hex());
  const auto composition = parse_composition(text, "c.yaml", [&](const std::string&, const std::string& file) {
    return Result<std::string>(file == "bad.onnx" ? bad : small_network());
  });
  ASSERT_TRUE(composition) << composition.error().message;
  const auto graph = compiler::compose(*composition);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kInput);
  EXPECT_THAT(graph.error().message, HasSubstr("c.yaml:5:8: bad.onnx: "));
}

// A network with a memory, twice: total' = total + x, in a loop of at most so many trips that only x decides.
TEST_F(CompositionTest, NetworksHaveStateAndLoopsOfTheirOwn) {
  test::OnnxModel body(13);
  body.input("i", {}, ::onnx::TensorProto::INT64).input("going", {}, ::onnx::TensorProto::BOOL).input("v", {1});
  body.node("Add", {"v", "x"}, {"v2"}).node("Less", {"v2", "limit"}, {"go"}).output("go").output("v2");
  test::OnnxModel model(13);
  model.input("x", {1}).input("trips", {}, ::onnx::TensorProto::INT64).input("total", {1}).floats("limit", {1}, {1e6F});
  model.node("Loop", {"trips", "", "total"}, {"next"}).with("body", body).node("Neg", {"next"}, {"y"});
  model.output("y").output("next");
  const std::string network = model.bytes();
  const std::string hash = digest(network).hex();
  const std::string text = R"(composition: twice
inputs:
  a: {type: f32, shape: [1]}
  n: {type: i64, shape: []}
parts:
  one: {onnx: net.onnx, hash: )" +
                           hash + R"(, inputs: {x: a, trips: n}, loops: {nnext: 3}, state: {total: next}}
  two: {onnx: net.onnx, hash: )" +
                           hash + R"(, inputs: {x: one.y, trips: n}}
outputs: {one: one.y, two: two.y}
)";
  auto composition = parse_composition(
      text, "c.yaml", [&](const std::string&, const std::string&) { return Result<std::string>(network); });
  ASSERT_TRUE(composition) << composition.error().message;
  EXPECT_EQ(composition->parts[0].states.at("total"), "next");
  const auto without = compiler::compose(*composition);
  ASSERT_FALSE(without) << "the second part says neither";
  EXPECT_THAT(without.error().message, HasSubstr("c.yaml:7:8: "));
  composition->parts[1].loops = {{"nnext", 2}};
  composition->parts[1].states = {{"total", "next"}};
  const auto plan = compiled(*composition);
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(plan->description().states.size(), 2U);
  EXPECT_EQ(plan->description().states[0].name, "one/total");
  EXPECT_EQ(plan->description().states[1].name, "two/total");
  auto session = exec::Session::create(plan);
  ASSERT_TRUE(session);
  test::AlignedBytes x(4), n(8), one(4), two(4);
  ASSERT_TRUE((*session)->bind_input(0, x.span()) && (*session)->bind_input(1, n.span()));
  ASSERT_TRUE((*session)->bind_output(0, one.span()) && (*session)->bind_output(1, two.span()));
  const auto run = [&](float value, std::int64_t trips) {
    std::memcpy(x.span().data(), &value, sizeof value);
    std::memcpy(n.span().data(), &trips, sizeof trips);
    (*session)->run();
    (*session)->publish();
    std::pair<float, float> out;
    std::memcpy(&out.first, one.span().data(), sizeof(float));
    std::memcpy(&out.second, two.span().data(), sizeof(float));
    return out;
  };
  EXPECT_EQ(run(1, 9), (std::pair{-3.0F, 6.0F})) << "at most 3 trips of 1, at most 2 of -3";
  EXPECT_EQ(run(2, 1), (std::pair{-5.0F, 11.0F})) << "3 + 2, -6 - 5";
}

TEST_F(CompositionTest, TaktsOwnLayerNormStandsByItself) {
  const auto composition = small(R"(composition: norm
inputs:
  a: {type: f32, shape: [1, 2]}
parts:
  norm: {operator: takt.LayerNorm, inputs: [a, {f32: [2, 4]}], attributes: {epsilon: 0.0}}
outputs: {y: norm}
)");
  ASSERT_TRUE(composition) << composition.error().message;
  const auto plan = compiled(*composition);
  ASSERT_NE(plan, nullptr);
  const float x[] = {1, 3};
  const auto bytes = std::as_bytes(std::span(x));
  const auto outputs = test::run_plan(plan, {{bytes.begin(), bytes.end()}});
  float y[2];
  std::memcpy(y, outputs[0].data(), sizeof y);
  EXPECT_FLOAT_EQ(y[0], -2);
  EXPECT_FLOAT_EQ(y[1], 4);
}

// Of five points two share a voxel, and one lies outside.
TEST_F(CompositionTest, TaktsOperatorsOnPointsStandByThemselves) {
  const auto composition = small(R"(composition: voxels
inputs:
  points: {type: f32, shape: [5, 3]}
parts:
  cells:
    operator: takt.Voxelise
    inputs: [points]
    attributes: {range: [0, 0, 0, 4, 4, 1], size: [1, 1, 1.0], capacity: 8, points: 8}
    outputs: [cells, ends, members, count, kept, dropped]
  mean: {operator: takt.VoxelMean, inputs: [points, cells.ends, cells.members]}
outputs: {mean: mean, count: cells.count}
)");
  ASSERT_TRUE(composition) << composition.error().message;
  const auto plan = compiled(*composition);
  ASSERT_NE(plan, nullptr);
  const std::vector<float> points = {0.5F, 0.5F, 0.5F, 3.5F, 0.5F, 0.5F, 0.25F, 0.25F, 0.5F, 9, 9, 0, 2.5F, 3.5F, 0.5F};
  const auto outputs = test::run_plan(plan, {test::bytes_of(points)});
  std::int32_t count = 0;
  std::memcpy(&count, outputs[*plan->find_output("count")].data(), sizeof count);
  EXPECT_EQ(count, 3);
  std::vector<float> mean(9);
  std::memcpy(mean.data(), outputs[*plan->find_output("mean")].data(), mean.size() * sizeof(float));
  EXPECT_EQ(mean, (std::vector<float>{0.375F, 0.375F, 0.5F, 3.5F, 0.5F, 0.5F, 2.5F, 3.5F, 0.5F}));
}

// Who asks for a counted tensor gets its count as well, once.
TEST_F(CompositionTest, CountsOfOutputsAreOutputs) {
  const std::string head = R"(composition: voxels
inputs:
  points: {type: f32, shape: [5, 3]}
parts:
  v:
    operator: takt.Voxelise
    inputs: [points]
    attributes: {range: [0, 0, 0, 4, 4, 1], size: [1, 1, 1.0], capacity: 8, points: 8}
    outputs: [cells, ends, members, count, kept, dropped]
  which: {operator: NonZero, inputs: [points]}
)";
  for (const auto& [outputs, names] :
       std::map<std::string, std::vector<std::string>>{{"{cells: v.cells}", {"cells", "v/count"}},
                                                       {"{cells: v.cells, ends: v.ends}", {"cells", "ends", "v/count"}},
                                                       {"{cells: v.cells, n: v.count}", {"cells", "n"}},
                                                       {"{y: which}", {"y", "which:count"}}}) {
    const auto composition = small(head + "outputs: " + outputs + "\n");
    ASSERT_TRUE(composition) << composition.error().message;
    const auto plan = compiled(*composition);
    ASSERT_NE(plan, nullptr) << outputs;
    std::vector<std::string> seen;
    for (const std::uint32_t output : plan->description().outputs) {
      seen.push_back(plan->description().tensors[output].name);
    }
    EXPECT_EQ(seen, names);
  }
}

TEST_F(CompositionTest, ACountedTensorOfAnotherDimensionDoesNotFeedANetwork) {
  const auto composition = small(R"(composition: counted
inputs:
  a: {type: f32, shape: [3]}
parts:
  which: {operator: NonZero, inputs: [a]}
  rows: {operator: Cast, inputs: [which], attributes: {to: 1}}
  net: {onnx: net.onnx, hash: HASH, inputs: {x: rows}}
outputs: {y: net.y}
)");
  ASSERT_TRUE(composition) << composition.error().message;
  const auto graph = compiler::compose(*composition);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::kConfiguration);
  EXPECT_THAT(graph.error().message,
              HasSubstr("c.yaml:7:77: input 'x' of the network takes counted rows; it is fed f32[1,3]"));
}

TEST_F(CompositionTest, FilesOfPartsThatAreNotThereAreRefused) {
  const auto composition = load_composition(kModels + "sim_camera_pair.yaml", {{"fime", "x.onnx"}});
  ASSERT_FALSE(composition);
  EXPECT_EQ(composition.error().code, Code::kUsage);
  EXPECT_THAT(composition.error().message, HasSubstr("did you mean 'fine'?"));
  EXPECT_TRUE(*is_composition(kModels + "sim_camera_pair.yaml"));
  EXPECT_FALSE(*is_composition(kModels + "sim_camera_full.yaml"));
}

}  // namespace
}  // namespace takt::pipeline
