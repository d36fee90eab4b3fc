// ONNX files to takt's IR (https://github.com/onnx/onnx/blob/main/docs/IR.md). The protobuf classes are the onnx
// library's; what an operator means is takt's own (operators.cpp, compiler/ir). Operator sets 7 to 23, of older
// ones the forms that have stayed the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

struct ImportOptions {
  std::string source = "model";  // the file's name, for messages
  std::string folder = {};       // of the model, for tensors whose data lie beside it; empty: those are refused
  std::map<std::string, std::int64_t> dims = {};  // values of symbolic dimensions, by their names in the model
  // Whole shapes of inputs, by input; the symbolic dimensions that they fix hold for the other inputs too.
  std::map<std::string, kernels::Shape> input_shapes = {};
  // Inputs whose rows are counted by an input of their own, an i32 scalar called INPUT:count. The model may say in its
  // metadata that one of its inputs counts another: key "takt.count:INPUT", value the counting input.
  std::vector<std::string> counted = {};
  // State: an input and the output that is its value in the next job, by their names. Both leave the interface. The
  // first value is the input's initializer where the model has one, else zeros. The model may say the same in its
  // metadata, key "takt.state:INPUT", value OUTPUT.
  std::map<std::string, std::string> states = {};
  // How often a Loop runs at most, by its node's name: for those whose trip count is known only when they run.
  std::map<std::string, std::int64_t> loops = {};
  // Called with what a user may not expect, but can be right: inputs that became constants. One line.
  std::function<void(const std::string& text)> note = {};
  // Called for each tensor whose data lie beside the model, with their file, below `folder`.
  std::function<void(const std::string& file)> reads = {};
};

// The graph with every type known, shape arithmetic done, all attributes explicit, older operator forms converted
// (canonical forms: compiler/ir/README.md), in the order of the file where that is topological. Verified.
// kInput: no ONNX file, damaged (with the byte offset), inconsistent (with the node), cyclic, dimensions that are not
// fixed (all listed), operators that takt does not have (all listed: domain, name, operator set, count, nodes), loops
// without a known maximum. Branches and loops become nodes under guards (control.h).
// Never throws; reads nothing but `bytes` and, where it is named, files below `folder`.
Result<ir::Graph> import_onnx(std::span<const std::byte> bytes, const ImportOptions& options);

}  // namespace takt::compiler
