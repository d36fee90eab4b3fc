// The graph of the compiler: values, nodes in topological order, constants, inputs, outputs, state.
//
// A type is an element type, static extents (capacities) and an optional count: a scalar i32 value that says how many
// rows are valid (compiler/ir/README.md, "Counts"). After import every extent is a number; symbolic dimensions of a
// model are fixed by flag before.
//
// Control flow is predication: the list of nodes stays flat, a node may have a guard and runs only where the guard's
// condition holds. takt.Select takes one of two values where guards end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/status.h"

namespace takt::ir {

using kernels::DType;
using kernels::Shape;

// Largest tensor that is accepted anywhere: 2^31 - 1 elements.
inline constexpr std::int64_t kMaxElements = 0x7fffffff;

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input that is absent

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  ValueId count = kNoValue;
  int axis = 0;  // the dimension that is counted; its extent is the capacity
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type& type);    // "f32[1,3,352,352]"
std::string to_string(const Shape& shape);  // "[1,3,352,352]"
// Rank at most kMaxRank, extents at least 0, at most kMaxElements elements. elements() may be called only then.
bool within_limits(const Shape& shape);
// A name of a model as it may stand in a message: control characters escaped, cut when very long.
std::string printable(std::string_view text);

// Elements of a constant, row-major. Shared between graphs, never changed.
struct Constant {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  static Constant allocate(DType dtype, const Shape& shape);  // zeros
  static Constant of(std::span<const std::int64_t> values);   // rank 1
  static Constant of(std::span<const float> values, const Shape& shape);
  static Constant scalar(float value);
  [[nodiscard]] kernels::Tensor tensor() const {
    return {dtype, shape, const_cast<std::byte*>(bytes.data())};  // NOLINT: reference kernels only read inputs
  }
};

struct Value {
  std::string name;
  std::optional<Type> type;                  // absent until shape inference
  std::shared_ptr<const Constant> constant;  // set for initialisers and folded values
};

using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                               std::vector<std::string>, std::shared_ptr<const Constant>>;

// One operator call. Operators carry their ONNX name and the semantics of the newest opset takt knows (import converts
// older forms); takt's own have the domain "takt".
struct Node {
  std::string op;    // "Conv"; takt's own: "takt.Preprocess"
  std::string name;  // for messages: of the model, or made from the first output
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::map<std::string, Attribute> attributes;  // ordered: dumps and hashes are reproducible
  int guard = -1;                               // index in Graph::guards; -1: runs always

  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  [[nodiscard]] float number(std::string_view key, float otherwise) const;
  [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise) const;
  // Empty when absent.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<float> numbers(std::string_view key) const;
};

// A tensor that outlives a job; double-buffered by the runtime, flipped at publication.
struct State {
  std::string name;
  ValueId previous = kNoValue;              // read by the graph
  ValueId next = kNoValue;                  // written by the graph
  std::shared_ptr<const Constant> initial;  // nullptr: zeros
};

// Nodes of a branch or an iteration run only where its condition has this value, and its parent's too.
struct Guard {
  ValueId condition = kNoValue;  // bool of one element
  bool when = true;
  int parent = -1;  // a guard with a smaller index
  friend bool operator==(const Guard&, const Guard&) = default;
};

struct Graph {
  std::string name;
  std::vector<Value> values;  // index = ValueId; passes leave unused ones, compact() removes them
  std::vector<Node> nodes;    // topological order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<State> states;
  std::vector<Guard> guards;

  ValueId add_value(std::string name, std::optional<Type> type = {});
  ValueId add_constant(std::string name, Constant constant);
  Value& operator[](ValueId id) { return values[static_cast<std::size_t>(id)]; }
  const Value& operator[](ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  // Replaces every use of `from` (inputs of nodes, conditions, counts, outputs of the graph) by `to`.
  void replace_uses(ValueId from, ValueId to);
  // The same but for the outputs of the graph and states, which keep their names.
  void replace_reads(ValueId from, ValueId to);
  // Whether a node with guard `inner` runs only where one with guard `outer` runs too.
  [[nodiscard]] bool implies(int inner, int outer) const;
  // Index of the producing node by value; -1 for inputs and constants.
  [[nodiscard]] std::vector<int> producers() const;
  // Nodes that read a value, ascending, once per use; graph outputs are not counted.
  [[nodiscard]] std::vector<std::vector<int>> consumers() const;
  void compact();
};

// Every rule of the form above: ids in range, each value written once, topological order, types present and
// consistent with the operators' shape rules, constants of the size of their type, no unknown operator; no node reads
// what a guard that its own does not imply may have left unwritten, takt.Select apart, which reads what it selects.
// kInternal after a pass, since a pass broke it.
Status verify(const Graph& graph);

// A readable text, stable across runs: one line per node with types, constants summarised. `takt compile --dump-after`.
std::string dump(const Graph& graph);

}  // namespace takt::ir
