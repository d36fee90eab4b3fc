// Import of hand-made models: older operator forms against values worked out by hand, and everything that is wrong.
#include "compiler/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "compiler/ir/operators.h"
#include "tests/support/onnx_model.h"

namespace takt::compiler {
namespace {

using test::OnnxModel;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Result<ir::Graph> import_model(const OnnxModel& model, ImportOptions options = {}) {
  const std::string bytes = model.bytes();
  options.source = "m.onnx";
  return import_onnx(std::as_bytes(std::span(bytes)), options);
}

std::string error_of(const OnnxModel& model, const ImportOptions& options = {}) {
  const auto graph = import_model(model, options);
  EXPECT_FALSE(graph);
  if (graph) return {};
  EXPECT_EQ(graph.error().code, Code::kInput);
  EXPECT_THAT(graph.error().message, StartsWith("m.onnx: "));
  return graph.error().message;
}

// The first output for the first input.
std::vector<float> run(const OnnxModel& model, const std::vector<float>& values, std::string* type = nullptr) {
  const auto graph = import_model(model);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  if (!graph) return {};
  const ir::Constant input = ir::Constant::of(values, (*graph)[graph->inputs[0]].type->shape);
  const auto results = ir::interpret(*graph, std::span(&input, 1));
  EXPECT_TRUE(results) << (results ? "" : results.error().message);
  if (!results) return {};
  const ir::Constant& output = (*results)[static_cast<std::size_t>(graph->outputs[0])];
  if (type != nullptr) *type = to_string(ir::Type{output.dtype, output.shape});
  const auto* first = output.tensor().as<float>();
  return {first, first + output.shape.elements()};
}

OnnxModel relu() { return OnnxModel(13).input("x", {1, 2}).node("Relu", {"x"}, {"y"}).output("y"); }

// --- older forms

TEST(OnnxForms, ClipBefore11HasItsLimitsAsAttributes) {
  const auto model =
      OnnxModel(6).input("x", {3}).node("Clip", {"x"}, {"y"}).with("min", 0.0F).with("max", 6.0F).output("y");
  EXPECT_THAT(run(model, {-1, 3, 9}), ElementsAre(0, 3, 6));
}

TEST(OnnxForms, SoftmaxBefore13FlattensFromItsAxis) {
  // Axis 1 of [1,2,2]: all four elements are one distribution, not two.
  const auto model =
      OnnxModel(11).input("x", {1, 2, 2}).node("Softmax", {"x"}, {"y"}).with("axis", std::int64_t{1}).output("y");
  std::string type;
  EXPECT_THAT(run(model, {0, 0, 0, 0}, &type), ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
  EXPECT_EQ(type, "f32[1,2,2]");
  const auto newer =
      OnnxModel(13).input("x", {1, 2, 2}).node("Softmax", {"x"}, {"y"}).with("axis", std::int64_t{1}).output("y");
  EXPECT_THAT(run(newer, {0, 0, 0, 0}), ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
}

TEST(OnnxForms, SplitSqueezeUnsqueezeBefore13HaveAttributes) {
  const auto model = OnnxModel(11)
                         .input("x", {1, 4})
                         .node("Split", {"x"}, {"a", "b"})
                         .with("axis", std::int64_t{1})
                         .with("split", OnnxModel::Dims{1, 3})
                         .node("Squeeze", {"b"}, {"s"})
                         .with("axes", OnnxModel::Dims{0})
                         .node("Unsqueeze", {"s"}, {"y"})
                         .with("axes", OnnxModel::Dims{-1})
                         .output("y");
  std::string type;
  EXPECT_THAT(run(model, {1, 2, 3, 4}, &type), ElementsAre(2, 3, 4));
  EXPECT_EQ(type, "f32[3,1]");
}

TEST(OnnxForms, SliceBefore10AndPadBefore11HaveAttributes) {
  const auto model = OnnxModel(9)
                         .input("x", {4})
                         .node("Slice", {"x"}, {"s"})
                         .with("starts", OnnxModel::Dims{1})
                         .with("ends", OnnxModel::Dims{-1})
                         .node("Pad", {"s"}, {"y"})
                         .with("pads", OnnxModel::Dims{1, 0})
                         .with("value", 7.0F)
                         .output("y");
  EXPECT_THAT(run(model, {1, 2, 3, 4}), ElementsAre(7, 2, 3));
}

TEST(OnnxForms, UpsampleIsAResize) {
  const auto attributes = OnnxModel(7)
                              .input("x", {1, 1, 1, 2})
                              .node("Upsample", {"x"}, {"y"})
                              .with("scales", std::vector<float>{1, 1, 1, 2})
                              .output("y");
  EXPECT_THAT(run(attributes, {1, 2}), ElementsAre(1, 1, 2, 2));
  const auto input = OnnxModel(9)
                         .input("x", {1, 1, 1, 2})
                         .floats("s", {4}, {1, 1, 2, 1})
                         .node("Upsample", {"x", "s"}, {"y"})
                         .output("y");
  EXPECT_THAT(run(input, {1, 2}), ElementsAre(1, 2, 1, 2));
}

TEST(OnnxForms, ResizeLinearWithHalfPixelCentres) {
  const auto model = OnnxModel(13)
                         .input("x", {1, 1, 1, 2})
                         .integers("sizes", {1, 1, 1, 4})
                         .node("Resize", {"x", "", "", "sizes"}, {"y"})
                         .with("mode", "linear")
                         .output("y");
  // Centres at -0.25, 0.25, 0.75, 1.25 of the input.
  EXPECT_THAT(run(model, {0, 4}), ElementsAre(0, 1, 3, 4));
}

TEST(OnnxForms, SumOfThreeIsAChain) {
  const auto model = OnnxModel(13)
                         .input("x", {2})
                         .floats("a", {2}, {10, 20})
                         .floats("b", {1}, {100})
                         .node("Sum", {"x", "a", "b"}, {"y"})
                         .output("y");
  EXPECT_THAT(run(model, {1, 2}), ElementsAre(111, 122));
}

TEST(OnnxForms, BroadcastBefore7FollowsItsAxis) {
  const auto model = OnnxModel(6)
                         .input("x", {1, 2, 2})
                         .floats("b", {2}, {10, 20})
                         .node("Add", {"x", "b"}, {"y"})
                         .with("axis", std::int64_t{1})
                         .with("broadcast", std::int64_t{1})
                         .output("y");
  EXPECT_THAT(run(model, {1, 2, 3, 4}), ElementsAre(11, 12, 23, 24));
}

TEST(OnnxForms, ShapeArithmeticIsDoneAtImport) {
  const auto model = OnnxModel(11)
                         .input("x", {2, 3, 2})
                         .integers("zero", {}, {0})
                         .integers("rest", {-1})
                         .node("Shape", {"x"}, {"shape"})
                         .node("Gather", {"shape", "zero"}, {"rows"})
                         .node("Unsqueeze", {"rows"}, {"list"})
                         .with("axes", OnnxModel::Dims{0})
                         .node("Concat", {"list", "rest"}, {"wanted"})
                         .with("axis", std::int64_t{0})
                         .node("Reshape", {"x", "wanted"}, {"y"})
                         .output("y", {2, 6});
  const auto graph = import_model(model);
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->nodes.size(), 1U) << dump(*graph);
  EXPECT_EQ(graph->nodes[0].op, "Reshape");
}

TEST(OnnxForms, WindowsAreExplicitAfterImport) {
  const auto model = OnnxModel(13)
                         .input("x", {1, 1, 5, 5})
                         .floats("w", {1, 1, 2, 3}, {1, 1, 1, 1, 1, 1})
                         .node("Conv", {"x", "w"}, {"y"})
                         .with("auto_pad", "SAME_LOWER")
                         .with("strides", OnnxModel::Dims{2, 2})
                         .output("y", {1, 1, 3, 3});
  const auto graph = import_model(model);
  ASSERT_TRUE(graph) << graph.error().message;
  const ir::Node& conv = graph->nodes[0];
  // Three outputs at stride 2 reach over 6 rows and 7 columns; the odd row of padding lies in front.
  EXPECT_THAT(conv.integers("pads"), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(conv.integers("dilations"), ElementsAre(1, 1));
  EXPECT_EQ(conv.attributes.count("auto_pad"), 0U);
}

// --- symbolic dimensions

OnnxModel symbolic() {
  return OnnxModel(13).input("x", {1, -1, -1}).input("z", {-1, -1, 4}).node("Relu", {"x"}, {"y"}).output("y");
}

TEST(OnnxDimensions, UnfixedOnesAreAllListed) {
  EXPECT_THAT(error_of(symbolic()), AllOf(HasSubstr("--fix"), HasSubstr("input x: d1"), HasSubstr("input x: d2"),
                                          HasSubstr("input z: d0"), HasSubstr("input z: d1")));
}

TEST(OnnxDimensions, FixedByNameOrByTheShapeOfAnInput) {
  ImportOptions options;
  options.dims = {{"d0", 5}, {"d1", 2}, {"d2", 3}};
  auto graph = import_model(symbolic(), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_string(*(*graph)[graph->outputs[0]].type), "f32[1,2,3]");

  options.dims = {{"d0", 5}};
  options.input_shapes = {{"x", kernels::Shape{3, {1, 2, 3}}}};
  graph = import_model(symbolic(), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_string(*(*graph)[graph->inputs[1]].type), "f32[5,2,4]");
}

TEST(OnnxDimensions, ContradictionsAreNamed) {
  ImportOptions options;
  options.input_shapes = {{"x", kernels::Shape{3, {2, 2, 3}}}};
  EXPECT_THAT(error_of(symbolic(), options), AllOf(HasSubstr("input x"), HasSubstr("[1,d1,d2]"), HasSubstr("[2,2,3]")));
  options.input_shapes = {{"x", kernels::Shape{3, {1, 2, 3}}}, {"z", kernels::Shape{3, {5, 7, 4}}}};
  EXPECT_THAT(error_of(symbolic(), options), AllOf(HasSubstr("d1"), HasSubstr("2"), HasSubstr("[5,7,4]")));
  options.input_shapes = {{"nothing", kernels::Shape{}}};
  EXPECT_THAT(error_of(symbolic(), options), HasSubstr("no input nothing"));
  options.input_shapes = {};
  options.dims = {{"d0", 5}, {"d1", 2}, {"d2", 3}, {"d9", 1}};
  EXPECT_THAT(error_of(symbolic(), options), HasSubstr("no dimension d9"));
}

// --- what is wrong

TEST(OnnxRefusal, AllUnsupportedOperatorsAtOnce) {
  auto model = OnnxModel(13)
                   .input("x", {1, 2})
                   .node("TfIdfVectorizer", {"x"}, {"a"})
                   .node("TfIdfVectorizer", {"a"}, {"b"})
                   .node("Fancy", {"b"}, {"c"})
                   .output("c");
  model.model.mutable_graph()->mutable_node(2)->set_domain("com.example");
  EXPECT_THAT(
      error_of(model),
      AllOf(HasSubstr("2 operators are not supported"),
            HasSubstr("ai.onnx.TfIdfVectorizer (operator set wanted: 13, had: none of 1 to 23), 2 nodes: na, nb"),
            HasSubstr("com.example.Fancy"), HasSubstr("nc")));
}

TEST(OnnxRefusal, EveryPrefixOfAModel) {
  const std::string bytes = relu().bytes();
  ImportOptions options;
  options.source = "m.onnx";
  std::size_t refused = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto graph = import_onnx(std::as_bytes(std::span(bytes.data(), n)), options);
    if (graph) continue;  // protobuf fields may end anywhere between two of them
    ++refused;
    EXPECT_EQ(graph.error().code, Code::kInput) << n;
    EXPECT_THAT(graph.error().message, StartsWith("m.onnx: ")) << n;
  }
  EXPECT_GT(refused, bytes.size() / 2);
  const auto cut = import_onnx(std::as_bytes(std::span(bytes.data(), bytes.size() - 3)), options);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr(" of " + std::to_string(bytes.size() - 3)));
}

TEST(OnnxRefusal, NoModel) {
  ImportOptions options;
  EXPECT_THAT(import_onnx({}, options).error().message, HasSubstr("empty"));
  const std::string text = "name: model\nfile: model.onnx\n";
  EXPECT_THAT(import_onnx(std::as_bytes(std::span(text)), options).error().message, HasSubstr("no ONNX model"));
}

TEST(OnnxRefusal, OperatorSet) {
  EXPECT_THAT(error_of(OnnxModel(99).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y")),
              AllOf(HasSubstr("operator set 99"), HasSubstr("1 to 23")));
  auto none = relu();
  none.model.clear_opset_import();
  EXPECT_THAT(error_of(none), HasSubstr("operator set 0"));
}

TEST(OnnxRefusal, Cycle) {
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b")),
      AllOf(HasSubstr("cyclic"), HasSubstr("na"), HasSubstr("nb")));
}

TEST(OnnxRefusal, NamesThatDoNotFit) {
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).node("Add", {"x", "lost"}, {"y"}).output("y")),
              AllOf(HasSubstr("node ny (Add)"), HasSubstr("lost"), HasSubstr("nothing writes")));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).node("Relu", {"x"}, {"y"}).node("Abs", {"x"}, {"y"}).output("y")),
              HasSubstr("something else writes"));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).node("Relu", {"x"}, {"x"}).output("x")),
              HasSubstr("something else writes"));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).node("Relu", {"x"}, {"y"}).output("z")),
              HasSubstr("output z is never written"));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).input("x", {2}).node("Relu", {"x"}, {"y"}).output("y")),
              HasSubstr("input x"));
}

TEST(OnnxRefusal, TypesThatDoNotFit) {
  const auto weights = [](const OnnxModel::Dims& dims, std::size_t n) {
    return OnnxModel(13)
        .input("x", {1, 3, 8, 8})
        .floats("w", dims, std::vector<float>(n, 1))
        .node("Conv", {"x", "w"}, {"y"})
        .output("y");
  };
  EXPECT_THAT(error_of(weights({4, 2, 3, 3}, 72)),
              AllOf(HasSubstr("node ny (Conv)"), HasSubstr("[4,2,3,3]"), HasSubstr("[1,3,8,8]")));
  EXPECT_THAT(error_of(weights({4, 3, 9, 9}, 972)), HasSubstr("does not fit an extent of 8"));
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {2}, ::onnx::TensorProto::INT64).node("Sigmoid", {"x"}, {"y"}).output("y")),
      AllOf(HasSubstr("node ny (Sigmoid)"), HasSubstr("i64[2]"), HasSubstr("f32")));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {1, 2}).node("Relu", {"x"}, {"y"}).output("y", {1, 3})),
              AllOf(HasSubstr("output y"), HasSubstr("f32[1,3]"), HasSubstr("f32[1,2]")));
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {1}, ::onnx::TensorProto::STRING).node("Relu", {"x"}, {"y"}).output("y")),
      AllOf(HasSubstr("input x"), HasSubstr("STRING")));
  EXPECT_THAT(error_of(OnnxModel(13)
                           .input("x", {2})
                           .input("s", {1}, ::onnx::TensorProto::INT64)
                           .node("Reshape", {"x", "s"}, {"y"})
                           .output("y")),
              AllOf(HasSubstr("node ny (Reshape)"), HasSubstr("run time")));
}

TEST(OnnxRefusal, Attributes) {
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {1}).node("Relu", {"x"}, {"y"}).with("slope", 1.0F).output("y")),
              AllOf(HasSubstr("node ny (Relu)"), HasSubstr("attribute slope"), HasSubstr("unknown")));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {1, 1}).node("Softmax", {"x"}, {"y"}).with("axis", 1.0F).output("y")),
              AllOf(HasSubstr("attribute axis"), HasSubstr("another type")));
  EXPECT_THAT(
      error_of(
          OnnxModel(13).input("x", {1, 1}).node("Softmax", {"x"}, {"y"}).with("axis", std::int64_t{5}).output("y")),
      AllOf(HasSubstr("axis is 5"), HasSubstr("rank 2")));
}

TEST(OnnxRefusal, AnAxisBefore7OutsideTheRank) {
  for (const std::int64_t axis : {std::int64_t{2}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_THAT(error_of(OnnxModel(6)
                             .input("x", {2, 2})
                             .floats("b", {2}, {1, 2})
                             .node("Add", {"x", "b"}, {"y"})
                             .with("axis", axis)
                             .with("broadcast", std::int64_t{1})
                             .output("y")),
                HasSubstr("attribute axis is outside the rank"));
  }
}

TEST(OnnxRefusal, AnInputThatIsLeftOutInTheMiddle) {
  EXPECT_THAT(
      error_of(
          OnnxModel(13).input("x", {2}).floats("v", {2}, {0, 1}).node("OneHot", {"x", "", "v"}, {"y"}).output("y")),
      AllOf(HasSubstr("node ny (OneHot)"), HasSubstr("expects three inputs")));
}

TEST(OnnxRefusal, OutputsThatNothingWrites) {
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {2}).node("Reciprocal", {"x"}, {"y", "z"}).output("y").output("z")),
              AllOf(HasSubstr("node ny (Reciprocal)"), HasSubstr("its second output is used")));
  // Read by a later node, whose importer asks for the type.
  EXPECT_THAT(
      error_of(
          OnnxModel(13).input("x", {2, 2}).node("Size", {"x"}, {"y", "z"}).node("EyeLike", {"z"}, {"e"}).output("e")),
      AllOf(HasSubstr("node ny (Size)"), HasSubstr("its second output is used")));
  EXPECT_THAT(error_of(OnnxModel(17)
                           .input("x", {2, 2})
                           .floats("s", {2}, {1, 1})
                           .node("LayerNormalization", {"x", "s"}, {"y", "mean", "factor", "more"})
                           .output("more")),
              HasSubstr("has 4 outputs, expected at most 3"));
  EXPECT_THAT(error_of(OnnxModel(10)
                           .input("x", {4})
                           .integers("k", {1}, {2})
                           .node("TopK", {"x", "k"}, {"y", "i", "more"})
                           .output("more")),
              HasSubstr("has 3 outputs, expected at most 2"));
}

TEST(OnnxRefusal, ATypeThatIsUnknownNamesThoseThatAre) {
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {1}, ::onnx::TensorProto::STRING).node("Relu", {"x"}, {"y"}).output("y")),
      HasSubstr("whole numbers of 8 to 64 bits and BOOL are)"));
}

TEST(OnnxRefusal, SizesThatAreImpossible) {
  // A header that promises 2^40 elements: refused before anything is allocated.
  EXPECT_THAT(error_of(OnnxModel(13)
                           .input("x", {1})
                           .floats("w", {1 << 20, 1 << 20}, {1})
                           .node("Add", {"x", "w"}, {"y"})
                           .output("y")),
              AllOf(HasSubstr("initializer w"), HasSubstr("not possible")));
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {1}).floats("w", {1 << 20}, {1}).node("Add", {"x", "w"}, {"y"}).output("y")),
      AllOf(HasSubstr("needs 1048576 elements"), HasSubstr("holds 1")));
  EXPECT_THAT(
      error_of(OnnxModel(13).input("x", {1}).integers("w", {3}, {1, 2}).node("Add", {"x", "w"}, {"y"}).output("y")),
      AllOf(HasSubstr("needs 24 bytes"), HasSubstr("holds 16")));
  EXPECT_THAT(error_of(OnnxModel(13).input("x", {1 << 30, 1 << 30}).node("Relu", {"x"}, {"y"}).output("y")),
              AllOf(HasSubstr("not possible"), HasSubstr("at most 2147483647 elements")));
  EXPECT_THAT(error_of(OnnxModel(13)
                           .input("x", {1})
                           .integers("s", {4}, {1 << 20, 1 << 20, 1, 1})
                           .node("Expand", {"x", "s"}, {"y"})
                           .output("y")),
              AllOf(HasSubstr("node ny (Expand)"), HasSubstr("larger than")));
}

TEST(OnnxRefusal, ExternalData) {
  auto model = OnnxModel(13).input("x", {1}).floats("w", {1}, {}).node("Add", {"x", "w"}, {"y"}).output("y");
  auto* tensor = model.model.mutable_graph()->mutable_initializer(0);
  tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto* location = tensor->add_external_data();
  location->set_key("location");
  location->set_value("/etc/passwd");
  EXPECT_THAT(error_of(model), AllOf(HasSubstr("initializer w"), HasSubstr("another file"), HasSubstr("one file")));
}

TEST(OnnxRefusal, DeepNesting) {
  // Graphs within attributes of graphs, deeper than any model goes.
  auto model = relu();
  ::onnx::GraphProto* graph = model.model.mutable_graph();
  for (int depth = 0; depth < 200; ++depth) {
    graph = graph->add_node()->add_attribute()->mutable_g();
  }
  EXPECT_THAT(error_of(model), HasSubstr("is nested deeper than 32 messages"));
  for (int depth = 0; depth < 2000; ++depth) graph = graph->add_node()->add_attribute()->mutable_g();
  EXPECT_THAT(error_of(model), HasSubstr("damaged")) << "deeper than anybody looks";
}

// Eleven Ifs in one another are well-formed, and more than takt follows.
TEST(OnnxRefusal, DeepNestingIsToldFromDamage) {
  const auto nested = [](int ifs) {
    OnnxModel graph(13);
    graph.node("Relu", {"x"}, {"y0"}).output("y0");
    for (int i = 1; i <= ifs; ++i) {
      OnnxModel around(13);
      const std::string y = "y" + std::to_string(i);
      around.node("If", {"c"}, {y}).with("then_branch", graph).with("else_branch", graph).output(y);
      graph = std::move(around);
    }
    graph.input("x", {2}).input("c", {}, ::onnx::TensorProto::BOOL);
    return graph;
  };
  EXPECT_TRUE(import_model(nested(9)));
  EXPECT_THAT(error_of(nested(11)), HasSubstr("is nested deeper than 32 messages"));
}

TEST(OnnxRefusal, AnOutputThatIsThereTwice) {
  EXPECT_THAT(error_of(relu().output("y")), HasSubstr("output y is there twice"));
}

TEST(OnnxRefusal, ALoopThatIsNotThere) {
  ImportOptions options;
  options.loops = {{"L", 3}};
  EXPECT_THAT(error_of(relu(), options), HasSubstr("runs no Loop L, for which a maximum of 3 was given"));
}

TEST(OnnxRefusal, ControlCharactersOfNamesStayOutOfMessages) {
  const std::string message = error_of(OnnxModel(13).input("x", {1}).node("Bad\n\x1b[31mOp", {"x"}, {"y"}).output("y"));
  EXPECT_THAT(message, HasSubstr("Bad\\x0a\\x1b[31mOp"));
}

// --- data beside the model

class BesideTheModel : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(TAKT_BINARY_DIR) / ("external_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "model" / "weights");
    write("model/weights/w.bin", std::vector<float>{0, 1, 2, 3, 4});
    write("outside.bin", std::vector<float>{9, 9, 9, 9});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::vector<float>& values) const {
    std::ofstream file(folder_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
  }
  // x + w, where w of three elements lies where `place` says.
  static OnnxModel model(const std::map<std::string, std::string>& place) {
    auto model = OnnxModel(13).input("x", {3}).floats("w", {3}, {}).node("Add", {"x", "w"}, {"y"}).output("y");
    auto* tensor = model.model.mutable_graph()->mutable_initializer(0);
    tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : place) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return model;
  }
  [[nodiscard]] Result<ir::Graph> read(const std::map<std::string, std::string>& place) const {
    const std::string bytes = model(place).bytes();
    return import_onnx(std::as_bytes(std::span(bytes)), {.folder = (folder_ / "model").string()});
  }
  [[nodiscard]] std::string refused(const std::map<std::string, std::string>& place) const {
    const auto graph = read(place);
    return graph ? "" : graph.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(BesideTheModel, DataAreRead) {
  const auto graph = read({{"location", "weights/w.bin"}, {"offset", "4"}, {"length", "12"}});
  ASSERT_TRUE(graph) << graph.error().message;
  bool found = false;
  for (const auto& value : graph->values) {
    if (value.name != "w") continue;
    found = true;
    const auto* w = value.constant->tensor().as<float>();
    EXPECT_EQ(std::vector<float>(w, w + 3), (std::vector<float>{1, 2, 3}));
  }
  EXPECT_TRUE(found);
}

TEST_F(BesideTheModel, NothingOutsideTheFolderIsRead) {
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  std::filesystem::create_directory_symlink(folder_, folder_ / "model" / "up");
  EXPECT_THAT(refused({{"location", "../outside.bin"}}), HasSubstr("does not stay in the model's folder"));
  EXPECT_THAT(refused({{"location", "weights/../../outside.bin"}}), HasSubstr("does not stay"));
  EXPECT_THAT(refused({{"location", (folder_ / "outside.bin").string()}}), HasSubstr("absolute path"));
  EXPECT_THAT(refused({{"location", "link.bin"}}), HasSubstr("symbolic link"));
  EXPECT_THAT(refused({{"location", "up/outside.bin"}}), Not(IsEmpty()));
  EXPECT_THAT(refused({{"location", "weights"}}), HasSubstr("no plain file"));
  EXPECT_THAT(refused({{"location", "absent.bin"}}), HasSubstr("absent.bin"));
  EXPECT_THAT(refused({}), HasSubstr("without a location"));
}

TEST_F(BesideTheModel, SizesAreCompared) {
  EXPECT_THAT(refused({{"location", "weights/w.bin"}, {"offset", "12"}}), HasSubstr("beyond its end at 20"));
  EXPECT_THAT(refused({{"location", "weights/w.bin"}, {"offset", "18446744073709551615"}}),
              HasSubstr("beyond its end"));
  EXPECT_THAT(refused({{"location", "weights/w.bin"}, {"offset", "-4"}}), HasSubstr("offset is"));
  EXPECT_THAT(refused({{"location", "weights/w.bin"}, {"length", "16"}}), HasSubstr("needs 12 bytes"));
}

// --- f16 and bf16 are stored; f32 is computed in

TEST(OnnxNarrowTypes, ComputingIsWidenedAndResultsKeepTheirTypes) {
  const auto half = ::onnx::TensorProto::FLOAT16;
  const auto graph = import_model(OnnxModel(14)
                                      .input("x", {2}, half)
                                      .node("Exp", {"x"}, {"e"})
                                      .node("Reshape", {"e", "shape"}, {"r"})
                                      .integers("shape", {2, 1})
                                      .node("TopK", {"r", "k"}, {"y", "at"})
                                      .integers("k", {1})
                                      .with("axis", std::int64_t{0})
                                      .output("y", {1, 1}, half)
                                      .output("at", {1, 1}, ::onnx::TensorProto::INT64));
  ASSERT_TRUE(graph) << graph.error().message;
  std::vector<std::string> ops;
  for (const auto& node : graph->nodes) ops.push_back(node.op);
  EXPECT_THAT(ops, ElementsAre("Cast", "Exp", "Cast", "Reshape", "Cast", "TopK", "Cast", "Identity"));
}

}  // namespace
}  // namespace takt::compiler
