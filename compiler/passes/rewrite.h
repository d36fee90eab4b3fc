// What the passes share: who writes and reads a value, and how a match is replaced without breaking order or names.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace takt::compiler {

// Writers and readers of every value; stale after any change of the graph.
class Uses {
 public:
  explicit Uses(const ir::Graph& graph);
  // Index of the node that writes it; -1 for inputs and constants.
  [[nodiscard]] int writer(ir::ValueId id) const { return writers_[static_cast<std::size_t>(id)]; }
  // Index of the one node that reads it, once, under the guard of its writer, where nothing else does and it is no
  // output or state; -1 otherwise.
  [[nodiscard]] int only_reader(ir::ValueId id) const;
  [[nodiscard]] const std::vector<int>& readers(ir::ValueId id) const { return readers_[static_cast<std::size_t>(id)]; }
  // Output of the graph or next value of a state: its name and place are the caller's. Also a condition or a count,
  // which guards and types name.
  [[nodiscard]] bool is_result(ir::ValueId id) const { return results_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<int> writers_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> results_;
  std::vector<int> guards_;  // by node
};

// Tries `rule` at every node, over and over, until it matches nowhere; after each match dead nodes go. A rule returns
// whether it changed the graph, and never undoes what it did, so this ends. Most rules know fixed shapes alone: nodes
// of counted tensors are for those that ask for them, and for them only these.
enum class Nodes { kFixed, kCounted };
void rewrite(ir::Graph& graph, bool (*rule)(ir::Graph& graph, const Uses& uses, std::size_t n),
             Nodes nodes = Nodes::kFixed);

// Everybody who reads `from` reads `to` instead; the writer of `from` is then dead. A result of the graph keeps its
// name: there the writer of `to` writes `from`. False, and nothing changed, where that cannot be: `to` is an input, a
// constant or a result too.
bool substitute(ir::Graph& graph, const Uses& uses, ir::ValueId from, ir::ValueId to);

// The value of a constant of one f32 element.
std::optional<float> scalar(const ir::Graph& graph, ir::ValueId id);
std::span<const float> floats(const ir::Constant& constant);

// An activation as the attributes of a convolution (activation, alpha, beta); false when it is none that a convolution
// can have.
bool describe_activation(const ir::Graph& graph, const ir::Node& node, ir::Node* conv);

// Whether the rule of the operator still gives the types that the node's outputs have: for trying a change.
bool keeps_types(const ir::Graph& graph, const ir::Node& node);

}  // namespace takt::compiler
