// Writes the corpus of fuzz_onnx: make_onnx_corpus FOLDER. Small models that between them use every operator and form.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/support/onnx_model.h"

using takt::test::OnnxModel;

namespace {

using Dims = OnnxModel::Dims;
constexpr std::int64_t kOne = 1;

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(0.25F * static_cast<float>(i % 7) - 0.5F);
  return values;
}

OnnxModel convolutions() {
  return OnnxModel(13)
      .input("x", {1, 3, -1, -1})
      .floats("w", {4, 3, 3, 3}, ramp(108))
      .floats("one", {4}, {1, 2, 1, 2})
      .floats("d", {4, 1, 3, 3}, ramp(36))
      .floats("t", {4, 2, 2, 2}, ramp(32))
      .node("Conv", {"x", "w", "one"}, {"a"})
      .with("pads", Dims{1, 1, 1, 1})
      .with("strides", Dims{2, 2})
      .node("BatchNormalization", {"a", "one", "one", "one", "one"}, {"b"})
      .with("epsilon", 0.001F)
      .node("LeakyRelu", {"b"}, {"c"})
      .with("alpha", 0.1F)
      .node("Conv", {"c", "d"}, {"e"})
      .with("group", std::int64_t{4})
      .with("auto_pad", "SAME_UPPER")
      .with("dilations", Dims{2, 2})
      .node("Add", {"e", "c"}, {"f"})
      .node("Relu", {"f"}, {"g"})
      .node("ConvTranspose", {"g", "t"}, {"h"})
      .with("strides", Dims{2, 2})
      .with("output_padding", Dims{1, 1})
      .node("Sigmoid", {"h"}, {"s"})
      .node("Mul", {"h", "s"}, {"y"})
      .output("y");
}
OnnxModel pools() {
  return OnnxModel(11)
      .input("x", {1, 4, 8, 8})
      .integers("pads", {0, 0, 1, 1, 0, 0, 1, 1})
      .floats("scales", {4}, {1, 1, 2, 2})
      .floats("none", {0}, {})
      .node("MaxPool", {"x"}, {"a"})
      .with("kernel_shape", Dims{3, 3})
      .with("strides", Dims{2, 2})
      .with("ceil_mode", kOne)
      .node("Pad", {"a", "pads"}, {"b"})
      .with("mode", "constant")
      .node("AveragePool", {"b"}, {"c"})
      .with("kernel_shape", Dims{3, 3})
      .with("count_include_pad", kOne)
      .node("Resize", {"c", "none", "scales"}, {"d"})
      .with("mode", "linear")
      .with("coordinate_transformation_mode", "align_corners")
      .node("Resize", {"c", "none", "scales"}, {"n"})
      .with("mode", "nearest")
      .with("nearest_mode", "floor")
      .with("coordinate_transformation_mode", "asymmetric")
      .node("Concat", {"d", "n"}, {"e"})
      .with("axis", kOne)
      .node("GlobalAveragePool", {"e"}, {"f"})
      .node("Flatten", {"f"}, {"y"})
      .output("y");
}
OnnxModel shuffle() {
  return OnnxModel(11)
      .input("x", {1, 8, 4, 4})
      .integers("split", {4, 2, 16})
      .integers("joined", {2, -1, 4, 4, 4})
      .integers("i0", {}, {0})
      .integers("i1", {}, {1})
      .node("Reshape", {"x", "split"}, {"a"})
      .node("Transpose", {"a"}, {"b"})
      .with("perm", Dims{1, 0, 2})
      .node("Reshape", {"b", "joined"}, {"c"})
      .node("Gather", {"c", "i0"}, {"d"})
      .with("axis", std::int64_t{0})
      .node("Gather", {"c", "i1"}, {"e"})
      .with("axis", std::int64_t{0})
      .node("Transpose", {"d"}, {"f"})
      .with("perm", Dims{0, 2, 3, 1})
      .node("Softmax", {"f"}, {"g"})
      .with("axis", std::int64_t{3})
      .node("Transpose", {"g"}, {"h"})
      .with("perm", Dims{0, 3, 1, 2})
      .node("Concat", {"h", "e"}, {"y"})
      .with("axis", kOne)
      .output("y");
}
OnnxModel shapes() {
  return OnnxModel(13)
      .input("x", {2, 3, 4})
      .integers("zero", {}, {0})
      .integers("one", {1})
      .integers("rest", {-1})
      .integers("axes", {0})
      .integers("from", {0, 1})
      .integers("to", {2, 9})
      .integers("steps", {1, 2})
      .node("Shape", {"x"}, {"s"})
      .node("Gather", {"s", "zero"}, {"r"})
      .node("Unsqueeze", {"r", "axes"}, {"u"})
      .node("Concat", {"u", "rest"}, {"w"})
      .with("axis", std::int64_t{0})
      .node("Reshape", {"x", "w"}, {"a"})
      .node("Slice", {"a", "from", "to", "", "steps"}, {"b"})
      .node("ConstantOfShape", {"s"}, {"c"})
      .node("Add", {"x", "c"}, {"d"})
      .node("Expand", {"d", "one"}, {"e"})
      .node("ReduceMean", {"e"}, {"f"})
      .with("axes", Dims{1, 2})
      .with("keepdims", std::int64_t{0})
      .node("Range", {"zero", "r", "r"}, {"g"})
      .node("Cast", {"g"}, {"h"})
      .with("to", kOne)
      .node("Split", {"b"}, {"p", "q"})
      .with("axis", kOne)
      .node("Squeeze", {"h"}, {"z"})
      .output("f")
      .output("p")
      .output("z");
}
OnnxModel matrices() {
  return OnnxModel(13)
      .input("x", {2, 3})
      .floats("b", {4, 3}, ramp(12))
      .floats("c", {4}, ramp(4))
      .floats("m", {2, 4, 2}, ramp(16))
      .floats("lo", {}, {-1})
      .floats("hi", {}, {6})
      .floats("two", {}, {2})
      .node("Gemm", {"x", "b", "c"}, {"a"})
      .with("transB", kOne)
      .with("alpha", 0.5F)
      .node("MatMul", {"a", "m"}, {"d"})
      .node("Clip", {"d", "lo", "hi"}, {"e"})
      .node("Pow", {"e", "two"}, {"f"})
      .node("Sqrt", {"f"}, {"g"})
      .node("Tanh", {"g"}, {"h"})
      .node("Exp", {"h"}, {"i"})
      .node("Max", {"i", "two", "hi"}, {"j"})
      .node("HardSigmoid", {"j"}, {"k"})
      .node("Div", {"k", "two"}, {"l"})
      .node("Greater", {"l", "lo"}, {"n"})
      .node("Where", {"n", "l", "hi"}, {"y"})
      .output("y");
}
OnnxModel older() {
  return OnnxModel(9)
      .input("x", {1, 2, 4, 4})
      .floats("scales", {4}, {1, 1, 2, 2})
      .node("Clip", {"x"}, {"a"})
      .with("min", 0.0F)
      .with("max", 6.0F)
      .node("Upsample", {"a", "scales"}, {"b"})
      .with("mode", "nearest")
      .node("Pad", {"b"}, {"c"})
      .with("pads", Dims{0, 0, 1, 0, 0, 0, 0, 1})
      .with("mode", "reflect")
      .node("Slice", {"c"}, {"d"})
      .with("starts", Dims{0, 1})
      .with("ends", Dims{9, -1})
      .with("axes", Dims{1, 2})
      .node("Softmax", {"d"}, {"e"})
      .with("axis", std::int64_t{2})
      .node("Dropout", {"e"}, {"f"})
      .node("Sum", {"f", "e"}, {"y"})
      .output("y", {1, 2, 7, 9});
}
OnnxModel windows() {
  return OnnxModel(18)
      .input("x", {1, 2, 9})
      .floats("w", {4, 1, 3}, ramp(12))
      .floats("t", {4, 2, 2}, ramp(16))
      .integers("deep", {1, 2, 2, 3, 3})
      .floats("cube", {1, 2, 2, 2, 2}, ramp(16))
      .node("Conv", {"x", "w"}, {"a"})
      .with("group", std::int64_t{2})
      .with("pads", Dims{1, 1})
      .node("ConvTranspose", {"a", "t"}, {"b"})
      .with("strides", Dims{2})
      .node("MaxPool", {"b"}, {"c", "at"})
      .with("kernel_shape", Dims{1})
      .node("LpPool", {"c"}, {"d"})
      .with("kernel_shape", Dims{2})
      .with("p", std::int64_t{3})
      .node("Reshape", {"c", "deep"}, {"e"})
      .node("Conv", {"e", "cube"}, {"f"})
      .node("AveragePool", {"f"}, {"y"})
      .with("kernel_shape", Dims{1, 2, 2})
      .output("y")
      .output("at")
      .output("d");
}
OnnxModel sampling() {
  return OnnxModel(19)
      .input("x", {1, 2, 5, 4})
      .floats("none", {0}, {})
      .floats("scales", {4}, {1, 1, 1.5F, 0.7F})
      .floats("grid", {1, 2, 2, 2}, ramp(8))
      .floats("rois", {1, 4}, {0, 0, 3, 3})
      .integers("which", {0})
      .node("Resize", {"x", "none", "scales"}, {"a"})
      .with("mode", "cubic")
      .with("antialias", kOne)
      .node("GridSample", {"a", "grid"}, {"b"})
      .with("padding_mode", "reflection")
      .node("RoiAlign", {"b", "rois", "which"}, {"c"})
      .with("output_height", std::int64_t{2})
      .with("sampling_ratio", std::int64_t{2})
      .node("LRN", {"c"}, {"y"})
      .with("size", std::int64_t{3})
      .output("y");
}
OnnxModel recurrent() {
  return OnnxModel(14)
      .input("x", {3, 2, 2})
      .floats("w", {2, 8, 2}, ramp(32))
      .floats("r", {2, 8, 2}, ramp(32))
      .floats("b", {2, 16}, ramp(32))
      .floats("g", {1, 6, 4}, ramp(24))
      .floats("h", {1, 6, 2}, ramp(12))
      .integers("flat", {3, 2, 4})
      .node("LSTM", {"x", "w", "r", "b"}, {"a", "last", "cell"})
      .with("direction", "bidirectional")
      .with("hidden_size", std::int64_t{2})
      .node("Reshape", {"a", "flat"}, {"c"})
      .node("GRU", {"c", "g", "h"}, {"y"})
      .with("hidden_size", std::int64_t{2})
      .with("linear_before_reset", kOne)
      .output("y")
      .output("cell");
}
OnnxModel quantised() {
  return OnnxModel(13)
      .input("x", {1, 2, 3, 3})
      .input("u", {2, 3}, ::onnx::TensorProto::UINT8)
      .floats("s", {2}, {0.1F, 0.2F})
      .floats("one", {}, {0.05F})
      .node("QuantizeLinear", {"x", "s"}, {"q"})
      .with("axis", kOne)
      .node("DequantizeLinear", {"q", "s"}, {"d"})
      .with("axis", kOne)
      .node("ConvInteger", {"q", "q"}, {"c"})
      .node("DynamicQuantizeLinear", {"d"}, {"e", "f", "g"})
      .node("Einsum", {"d", "d"}, {"h"})
      .with("equation", "...ij,...kj->...ik")
      .node("Transpose", {"u"}, {"v"})
      .node("MatMulInteger", {"u", "v"}, {"y"})
      .output("c")
      .output("e")
      .output("h")
      .output("y");
}
OnnxModel narrow() {
  const auto half = ::onnx::TensorProto::FLOAT16;
  return OnnxModel(17)
      .input("x", {2, 3}, half)
      .input("t", {2}, ::onnx::TensorProto::INT64)
      .node("LayerNormalization", {"x", "x"}, {"a"})
      .node("Cast", {"a"}, {"b"})
      .with("to", std::int64_t{::onnx::TensorProto::DOUBLE})
      .node("Softmax", {"b"}, {"c"})
      .node("CastLike", {"c", "x"}, {"d"})
      .node("SoftmaxCrossEntropyLoss", {"d", "t"}, {"y"})
      .with("ignore_index", kOne)
      .output("y");
}
// Its condition has no element.
OnnxModel endless() {
  OnnxModel body(13);
  body.input("i", {}, ::onnx::TensorProto::INT64).input("going", {}, ::onnx::TensorProto::BOOL).input("v", {1});
  body.integers("go", {0}, {}).node("Exp", {"v"}, {"w"}).output("go").output("w");
  body.model.mutable_graph()->mutable_initializer(0)->set_data_type(::onnx::TensorProto::BOOL);
  return OnnxModel(13)
      .integers("n", {}, {3})
      .input("x", {1})
      .node("Loop", {"n", "", "x"}, {"y"})
      .with("body", body)
      .output("y");
}
OnnxModel refused() {
  return OnnxModel(13).input("x", {1, 2}).node("TopK", {"x"}, {"a", "b"}).node("Fancy", {"a"}, {"y"}).output("y");
}
OnnxModel cyclic() {
  return OnnxModel(13).input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
}

void save(const std::string& path, const OnnxModel& model) { std::ofstream(path, std::ios::binary) << model.bytes(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_onnx_corpus FOLDER\n");
    return 2;
  }
  const std::string root = argv[1];
  std::filesystem::create_directories(root);
  save(root + "/convolutions.onnx", convolutions());
  save(root + "/pools.onnx", pools());
  save(root + "/shuffle.onnx", shuffle());
  save(root + "/shapes.onnx", shapes());
  save(root + "/matrices.onnx", matrices());
  save(root + "/older.onnx", older());
  save(root + "/windows.onnx", windows());
  save(root + "/sampling.onnx", sampling());
  save(root + "/recurrent.onnx", recurrent());
  save(root + "/quantised.onnx", quantised());
  save(root + "/narrow.onnx", narrow());
  save(root + "/endless.onnx", endless());
  save(root + "/refused.onnx", refused());
  save(root + "/cyclic.onnx", cyclic());
  return 0;
}
