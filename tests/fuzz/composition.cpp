// Any text as a composition over small networks: read, linked, and what is accepted passes the graph's verifier
// (compose asks it) and the passes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/passes/passes.h"
#include "pipeline/models/composition_file.h"
#include "tests/support/onnx_model.h"

using namespace takt;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// y = x * w + x of any width, and a contract around it.
const std::string& network() {
  static const std::string bytes = [] {
    test::OnnxModel model(13);
    model.input("x", {1, 3, -1, -1}).output("y").floats("w", {1}, {2});
    model.node("Mul", {"x", "w"}, {"z"}).node("Add", {"z", "x"}, {"y"});
    return model.model.SerializeAsString();
  }();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  // So that a corpus does not depend on how protobuf orders bytes.
  static const std::string hash = digest(network()).hex();
  for (std::size_t at = 0; (at = text.find("HASH", at)) != std::string::npos;) text.replace(at, 4, hash);
  const std::string contract =
      "{name: net, file: net.onnx, hash: " + hash +
      ", licence: none, input: {tensor: x, width: 32, height: 16, colour: bgr, resize: plain, scale: 1, mean: [0, 0, "
      "0], "
      "std: [1, 1, 1]}, head: {type: fastestdet, tensor: y, score_min: 0.5, nms_iou: 0.5, objects_max: 1}, "
      "classes: {car: vehicle}}";
  const auto composition = pipeline::parse_composition(
      text, "fuzz.yaml", [&](const std::string&, const std::string& file) -> Result<std::string> {
        if (file.ends_with(".onnx")) return network();
        if (file.ends_with(".yaml")) return contract;
        return fail(Code::kInput, file + ": cannot be opened");
      });
  if (!composition) {
    require(composition.error().code == Code::kConfiguration && !composition.error().message.empty());
    return 0;
  }
  auto graph = compiler::compose(*composition);
  if (!graph) {
    const Code code = graph.error().code;
    require((code == Code::kConfiguration || code == Code::kInput) && !graph.error().message.empty());
    return 0;
  }
  std::int64_t elements = 0;  // a fuzzer's time, not a rule
  for (const ir::Value& value : graph->values) elements += value.type ? value.type->shape.elements() : 0;
  if (elements > 1 << 20) return 0;
  const Status passed = compiler::run_passes(*graph, {});
  require(passed || passed.error().code != Code::kInternal);
  return 0;
}
