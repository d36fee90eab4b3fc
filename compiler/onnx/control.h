// If, Loop and Scan. takt's graphs are flat: a branch becomes nodes under a guard, a loop its body as often as it may
// run at most, and takt.Select joins what comes out. What is known at import leaves no trace: a constant condition
// keeps one branch, a loop of a constant number of trips has no guards.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

// What control flow needs of the import that it is a part of.
class Scopes {
 public:
  virtual ~Scopes() = default;
  virtual ir::Graph& graph() = 0;
  // Adds the nodes of a subgraph behind those that are there, with these values as its inputs; they see the values of
  // the graphs around it. Gives its outputs. `prefix` goes before the names of what it makes.
  virtual Result<std::vector<ir::ValueId>> inline_body(const ::onnx::GraphProto& body,
                                                       std::span<const ir::ValueId> inputs,
                                                       const std::string& prefix) = 0;
  // Nodes that are added have this guard.
  virtual int guard() const = 0;
  virtual void set_guard(int guard) = 0;
};

// One node of a model, as the import of plain operators has it.
struct ControlNode {
  const ::onnx::NodeProto& proto;
  std::int64_t opset = 0;
  std::string name;
  std::vector<ir::ValueId> inputs;
  std::vector<ir::ValueId> outputs;
};

bool is_control(std::string_view domain, std::string_view op);

// kInput with the node in front: branches of different types, a loop without a known maximum (`limits` may give one, by
// the node's name), one too large to unroll, a value whose type changes where an iteration may be left out.
Status import_control(Scopes& scopes, const ControlNode& node, const std::map<std::string, std::int64_t>& limits);

}  // namespace takt::compiler
