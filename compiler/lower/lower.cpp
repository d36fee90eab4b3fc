#include "compiler/lower/lower.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "compiler/ir/counted.h"
#include "compiler/ir/takt_operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {

Status lower_node(Builder& out, const ir::Node& node) {
  for (const ir::ValueId output : node.outputs) {
    const ir::Type& type = out.type(output);
    if (type.shape.elements() < 1) return fail(Code::kInput, "a tensor without elements (" + to_string(type) + ")");
  }
  if (ir::find_takt_operator(node.op) != nullptr) return lower_takt_node(out, node);
  if (ir::is_counted(out.graph(), node)) return lower_counted_node(out, node);
  bool known = false;
  if (wants_generic(out, node)) return lower_generic_node(out, node, &known);
  for (const auto lower : {lower_image_node, lower_math_node, lower_movement_node, lower_generic_node}) {
    Status status = lower(out, node, &known);
    if (known) return status;
  }
  // Passes compute what is constant (fold_constants), unless it is large.
  const bool constant = std::ranges::all_of(
      node.inputs, [&](ir::ValueId id) { return id == ir::kNoValue || out.graph()[id].constant != nullptr; });
  if (constant) {
    return fail(Code::kInput, "a constant of " + to_string(out.type(node.outputs[0])) +
                                  ", too large to be computed when the model is compiled");
  }
  return fail(Code::kInput, "no kernel");
}

namespace {

// What a target cannot do, in the words of the model: "Sin of f32 on cuda:sm_87", "Add of counted f32 on cuda:sm_87".
std::string on_target(const Builder& out, const ir::Node& node) {
  const ir::ValueId value = !node.inputs.empty() && node.inputs[0] != ir::kNoValue ? node.inputs[0] : node.outputs[0];
  return node.op + " of " + (ir::is_counted(out.graph(), node) ? "counted " : "") +
         kernels::name_of(out.type(value).dtype) + " on " + kernels::name_of(out.target());
}

// `mapped`: whether anything is read by list, so that another spread may give another plan.
Result<Lowered> lower_spread(const ir::Graph& graph, const Options& options, std::int64_t most_spread, bool* mapped) {
  Builder out(graph, options, most_spread);
  // By reason: the nodes, so that a model is refused once and for everything.
  std::map<std::string, std::string> refused;
  for (const ir::Node& node : graph.nodes) {
    if (options.stop != nullptr && *options.stop) {
      return fail(Code::kInterrupted, "stopped before node " + ir::printable(node.name) + " was lowered");
    }
    out.set_guard(node.guard);
    Status status = lower_node(out, node);
    const bool missing = out.take_missing();
    if (const auto beyond = out.take_beyond(); beyond && status) {
      char text[64];
      std::snprintf(text, sizeof text, "a constant of %g, which f16 cannot hold", static_cast<double>(*beyond));
      status = fail(Code::kInput, text);
    }
    if (!status || missing) {
      std::string& names = refused[status ? on_target(out, node) : node.op + ": " + status.error().message];
      names += (names.empty() ? "" : ", ") + ir::printable(node.name);
    }
    // Whatever follows needs a form of the results.
    for (const ir::ValueId output : node.outputs) {
      if (node.outputs.size() > 1 && !out.is_read(output)) continue;
      if (!out.has_linear(output) && !out.has_blocked(output)) out.define(output, false);
    }
  }
  for (const ir::ValueId output : graph.outputs) {
    if (out.shape(output).elements() < 1) {
      refused["an output without elements (" + to_string(out.type(output)) + ")"] = ir::printable(graph[output].name);
    }
  }
  if (!refused.empty()) {
    std::string message = "takt has no kernel for";
    for (const auto& [reason, nodes] : refused) message += "\n  " + reason + " (" + nodes + ")";
    return fail(Code::kInput, message);
  }
  *mapped = out.any_mapped();
  return out.finish();
}

}  // namespace

// Reading by list costs next to nothing as long as the blocks of a tile of pixels stay in the first-level cache; but
// what is spread far lies in one place from its first part to its last reader. The smallest arena wins, then the
// farther spread.
Result<Lowered> lower(const ir::Graph& graph, const Options& options) {
  bool mapped = false;
  TAKT_ASSIGN(Lowered best, lower_spread(graph, options, 6, &mapped));
  for (const std::int64_t spread : {2, 0}) {
    if (!mapped) break;
    TAKT_ASSIGN(Lowered other, lower_spread(graph, options, spread, &mapped));
    if (other.description.arena_bytes < best.description.arena_bytes) best = std::move(other);
  }
  return best;
}

}  // namespace takt::lower
