// Any bytes as an ONNX model: import ends in a graph that the verifier accepts or in a message; a graph goes through
// the passes and, where it is small, through the reference kernels, before and after, without a crash.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "compiler/ir/operators.h"
#include "compiler/ir/statistics.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/passes.h"

namespace {

using takt::Code;
using takt::ir::Graph;

void refuse_internal(const takt::Error& error) {
  if (error.code != Code::kInternal) return;
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::abort();
}

// Work that a fuzzer can afford thousands of times.
bool small(const Graph& graph) {
  const takt::ir::Statistics statistics = takt::ir::statistics(graph);
  return statistics.flops < 1'000'000 && statistics.activation_bytes < 1'000'000;
}

void run(const Graph& graph) {
  std::vector<takt::ir::Constant> inputs;
  for (const takt::ir::ValueId id : graph.inputs) {
    inputs.push_back(takt::ir::Constant::allocate(graph[id].type->dtype, graph[id].type->shape));
  }
  const auto values = takt::ir::interpret(graph, inputs);
  if (!values) refuse_internal(values.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  takt::compiler::ImportOptions options;
  options.source = "fuzz.onnx";
  options.dims = {{"d2", 8}, {"d3", 8}};
  auto graph = takt::compiler::import_onnx(std::as_bytes(std::span(data, size)), options);
  if (!graph) {
    refuse_internal(graph.error());
    if (graph.error().message.rfind("fuzz.onnx: ", 0) != 0) std::abort();
    return 0;
  }
  (void)takt::ir::dump(*graph);
  if (!small(*graph)) return 0;
  run(*graph);
  takt::compiler::PassOptions passes;
  passes.verify = true;
  if (takt::Status done = takt::compiler::run_passes(*graph, passes); !done) {
    refuse_internal(done.error());
    return 0;
  }
  run(*graph);
  return 0;
}
