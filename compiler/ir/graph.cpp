#include "compiler/ir/graph.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "compiler/ir/operators.h"
#include "runtime/base/digest.h"

namespace takt::ir {
namespace {

template <class T>
const T* find(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(std::string(key));
  return found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
}

std::string to_text(std::int64_t v) { return std::to_string(v); }
std::string to_text(float v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(v));
  return text;
}
std::string to_text(const std::string& v) { return '"' + printable(v) + '"'; }

template <class T>
std::string list(const std::vector<T>& items) {
  std::string text = "[";
  for (const T& item : items) text += (text.size() > 1 ? "," : "") + to_text(item);
  return text + "]";
}

// Small integers are worth reading; of other constants the type and a digest say whether two are the same.
std::string summary(const Constant& constant) {
  const std::string type = to_string(Type{constant.dtype, constant.shape, kNoValue});
  const std::int64_t elements = constant.shape.elements();
  if (constant.dtype == DType::kI64 && elements <= 16) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(elements));
    if (elements > 0) std::memcpy(values.data(), constant.bytes.data(), constant.bytes.size());
    return type + " " + list(values);
  }
  if (constant.dtype == DType::kF32 && elements == 1) {
    float value = 0;
    std::memcpy(&value, constant.bytes.data(), sizeof value);
    return type + " " + to_text(value);
  }
  return type + " #" + digest(std::span(constant.bytes)).hex().substr(0, 8);
}

std::string to_text(const Attribute& attribute) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::shared_ptr<const Constant>>) {
          return v ? summary(*v) : "none";
        } else if constexpr (requires { v.begin(); } && !std::is_same_v<T, std::string>) {
          return list(v);
        } else {
          return to_text(v);
        }
      },
      attribute);
}

Status broken(const Node& node, const std::string& what) {
  return fail(Code::kInternal, "graph: node " + printable(node.name) + " (" + node.op + "): " + what);
}

}  // namespace

std::string printable(std::string_view text) {
  static constexpr std::size_t kLongest = 200;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"') {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return text.size() > kLongest ? out + "..." : out;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank; ++d) text += (d > 0 ? "," : "") + std::to_string(shape.dims[d]);
  return text + "]";
}

std::string to_string(const Type& type) {
  std::string text = kernels::name_of(type.dtype) + to_string(type.shape);
  if (type.count != kNoValue) {
    text += " count %" + std::to_string(type.count) + (type.axis != 0 ? " of " + std::to_string(type.axis) : "");
  }
  return text;
}

bool within_limits(const Shape& shape) {
  if (shape.rank < 0 || shape.rank > kernels::kMaxRank) return false;
  std::int64_t elements = 1;
  bool empty = false;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape.dims[d] < 0 || shape.dims[d] > kMaxElements) return false;
    if (shape.dims[d] == 0) {
      empty = true;
      continue;
    }
    if (elements > kMaxElements / shape.dims[d]) return false;
    elements *= shape.dims[d];
  }
  return empty || elements <= kMaxElements;
}

Constant Constant::allocate(DType dtype, const Shape& shape) {
  Constant constant{dtype, shape, {}};
  constant.bytes.resize(static_cast<std::size_t>(shape.elements()) * kernels::size_of(dtype));
  return constant;
}

Constant Constant::of(std::span<const std::int64_t> values) {
  Constant constant = allocate(DType::kI64, Shape{1, {static_cast<std::int64_t>(values.size())}});
  if (!values.empty()) std::memcpy(constant.bytes.data(), values.data(), constant.bytes.size());
  return constant;
}

Constant Constant::of(std::span<const float> values, const Shape& shape) {
  Constant constant = allocate(DType::kF32, shape);
  if (!values.empty()) std::memcpy(constant.bytes.data(), values.data(), constant.bytes.size());
  return constant;
}

Constant Constant::scalar(float value) { return of(std::span(&value, 1), Shape{}); }

std::int64_t Node::integer(std::string_view key, std::int64_t otherwise) const {
  const auto* value = find<std::int64_t>(*this, key);
  return value != nullptr ? *value : otherwise;
}
float Node::number(std::string_view key, float otherwise) const {
  const auto* value = find<float>(*this, key);
  return value != nullptr ? *value : otherwise;
}
std::string Node::text(std::string_view key, std::string_view otherwise) const {
  const auto* value = find<std::string>(*this, key);
  return value != nullptr ? *value : std::string(otherwise);
}
std::vector<std::int64_t> Node::integers(std::string_view key) const {
  const auto* value = find<std::vector<std::int64_t>>(*this, key);
  return value != nullptr ? *value : std::vector<std::int64_t>{};
}
std::vector<float> Node::numbers(std::string_view key) const {
  const auto* value = find<std::vector<float>>(*this, key);
  return value != nullptr ? *value : std::vector<float>{};
}

ValueId Graph::add_value(std::string value_name, std::optional<Type> type) {
  values.push_back(Value{std::move(value_name), type, nullptr});
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_constant(std::string value_name, Constant constant) {
  const Type type{constant.dtype, constant.shape, kNoValue};
  values.push_back(Value{std::move(value_name), type, std::make_shared<const Constant>(std::move(constant))});
  return static_cast<ValueId>(values.size()) - 1;
}

void Graph::replace_reads(ValueId from, ValueId to) {
  for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for (Guard& guard : guards) {
    if (guard.condition == from) guard.condition = to;
  }
  for (Value& value : values) {
    if (value.type && value.type->count == from) value.type->count = to;
  }
}

bool Graph::implies(int inner, int outer) const {
  while (inner != outer && inner >= 0) inner = guards[static_cast<std::size_t>(inner)].parent;
  return inner == outer;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  replace_reads(from, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
  for (State& state : states) {
    if (state.next == from) state.next = to;
  }
}

std::vector<int> Graph::producers() const {
  std::vector<int> producer(values.size(), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId id : nodes[n].outputs) {
      if (id != kNoValue) producer[static_cast<std::size_t>(id)] = static_cast<int>(n);
    }
  }
  return producer;
}

std::vector<std::vector<int>> Graph::consumers() const {
  std::vector<std::vector<int>> readers(values.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId id : nodes[n].inputs) {
      if (id != kNoValue) readers[static_cast<std::size_t>(id)].push_back(static_cast<int>(n));
    }
  }
  return readers;
}

void Graph::compact() {
  // Guards that no node has go first, and their conditions with them; equal ones become one.
  std::vector<int> guard_at(guards.size(), -1);
  for (const Node& node : nodes) {
    for (int g = node.guard; g >= 0; g = guards[static_cast<std::size_t>(g)].parent) {
      guard_at[static_cast<std::size_t>(g)] = 0;
    }
  }
  std::vector<Guard> kept_guards;
  for (std::size_t g = 0; g < guards.size(); ++g) {
    if (guard_at[g] < 0) continue;
    Guard guard = guards[g];
    if (guard.parent >= 0) guard.parent = guard_at[static_cast<std::size_t>(guard.parent)];
    const auto same = std::find(kept_guards.begin(), kept_guards.end(), guard);
    guard_at[g] = static_cast<int>(same - kept_guards.begin());
    if (same == kept_guards.end()) kept_guards.push_back(guard);
  }
  const auto move_guard = [&](int& g) {
    if (g >= 0) g = guard_at[static_cast<std::size_t>(g)];
  };
  for (Node& node : nodes) move_guard(node.guard);
  guards = std::move(kept_guards);

  std::vector<ValueId> moved(values.size(), kNoValue);
  const auto keep = [&](ValueId id) {
    if (id != kNoValue) moved[static_cast<std::size_t>(id)] = 0;
  };
  std::for_each(inputs.begin(), inputs.end(), keep);
  std::for_each(outputs.begin(), outputs.end(), keep);
  for (const Node& node : nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), keep);
    std::for_each(node.outputs.begin(), node.outputs.end(), keep);
  }
  for (const State& state : states) {
    keep(state.previous);
    keep(state.next);
  }
  for (const Guard& guard : guards) keep(guard.condition);
  // The type of a value that goes keeps nothing.
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (moved[i] != kNoValue && values[i].type) keep(values[i].type->count);
  }
  std::vector<Value> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (moved[i] == kNoValue) continue;
    moved[i] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(values[i]));
  }
  values = std::move(kept);
  const auto move = [&](ValueId& id) {
    if (id != kNoValue) id = moved[static_cast<std::size_t>(id)];
  };
  std::for_each(inputs.begin(), inputs.end(), move);
  std::for_each(outputs.begin(), outputs.end(), move);
  for (Node& node : nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), move);
    std::for_each(node.outputs.begin(), node.outputs.end(), move);
  }
  for (State& state : states) {
    move(state.previous);
    move(state.next);
  }
  for (Guard& guard : guards) move(guard.condition);
  for (Value& value : values) {
    if (value.type) move(value.type->count);
  }
}

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), written_(graph.values.size(), false), guard_(graph.values.size(), -1) {}

  Status run() {
    TAKT_RETURN_IF_ERROR(constants());
    for (const ValueId id : graph_.inputs) {
      if (!write(id)) return fail(Code::kInternal, "graph: an input is a constant, another input, or no value");
      if (!graph_[id].type) {
        return fail(Code::kInternal, "graph: input " + printable(graph_[id].name) + " has no type");
      }
    }
    for (const State& state : graph_.states) {
      if (!write(state.previous) || !in_range(state.next)) {
        return fail(Code::kInternal, "graph: state " + printable(state.name) + " is no value of its own");
      }
      const auto& type = graph_[state.previous].type;
      const auto& next = graph_[state.next].type;
      const bool one_type = type && next && type->dtype == next->dtype && type->shape == next->shape &&
                            type->axis == next->axis && goes_on(type->count, next->count);
      if (!one_type || (state.initial != nullptr &&
                        (state.initial->dtype != type->dtype || !(state.initial->shape == type->shape)))) {
        return fail(Code::kInternal, "graph: state " + printable(state.name) + " has not one type");
      }
    }
    for (const State& state : graph_.states) TAKT_RETURN_IF_ERROR(counted(state.previous));
    for (const ValueId id : graph_.inputs) TAKT_RETURN_IF_ERROR(counted(id));
    TAKT_RETURN_IF_ERROR(guards());
    for (const Node& node : graph_.nodes) TAKT_RETURN_IF_ERROR(this->node(node));
    return results();
  }

 private:
  [[nodiscard]] bool in_range(ValueId id) const { return id >= 0 && id < static_cast<ValueId>(graph_.values.size()); }
  [[nodiscard]] bool is_written(ValueId id) const { return in_range(id) && written_[static_cast<std::size_t>(id)]; }
  bool write(ValueId id, int guard = -1) {
    if (!in_range(id) || written_[static_cast<std::size_t>(id)]) return false;
    written_[static_cast<std::size_t>(id)] = true;
    guard_[static_cast<std::size_t>(id)] = guard;
    return true;
  }

  Status constants() {
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!value.constant) continue;
      const Constant& constant = *value.constant;
      if (!value.type || value.type->dtype != constant.dtype || !(value.type->shape == constant.shape) ||
          !within_limits(constant.shape) ||
          constant.bytes.size() !=
              static_cast<std::size_t>(constant.shape.elements()) * kernels::size_of(constant.dtype)) {
        return fail(Code::kInternal, "graph: constant " + printable(value.name) + " differs from its type");
      }
      written_[i] = true;
    }
    return {};
  }

  // The count of a counted state is a state too: what counts the rows of one job counts them in the next.
  [[nodiscard]] bool goes_on(ValueId previous, ValueId next) const {
    if (previous == kNoValue && next == kNoValue) return true;
    return std::any_of(graph_.states.begin(), graph_.states.end(),
                       [&](const State& count) { return count.previous == previous && count.next == next; });
  }

  // A count is a scalar that is known wherever the rows are.
  [[nodiscard]] Status counted(ValueId id) const {
    const Type& type = *graph_[id].type;
    if (type.count == kNoValue) return {};
    const bool scalar =
        is_written(type.count) && graph_[type.count].type && *graph_[type.count].type == Type{DType::kI32, {}} &&
        type.axis >= 0 && type.axis < type.shape.rank &&
        graph_.implies(guard_[static_cast<std::size_t>(id)], guard_[static_cast<std::size_t>(type.count)]);
    if (scalar) return {};
    return fail(Code::kInternal, "graph: " + printable(graph_[id].name) + " has a count that is no i32 scalar");
  }

  [[nodiscard]] Status guards() const {
    for (std::size_t g = 0; g < graph_.guards.size(); ++g) {
      const Guard& guard = graph_.guards[g];
      if (!in_range(guard.condition) || !graph_[guard.condition].type ||
          graph_[guard.condition].type->dtype != DType::kBool || graph_[guard.condition].type->shape.elements() != 1 ||
          guard.parent < -1 || guard.parent >= static_cast<int>(g)) {
        return fail(Code::kInternal, "graph: guard " + std::to_string(g) + " has no condition or no parent");
      }
    }
    return {};
  }

  // Whether input i of a node with guard `at` is there when the node runs, though its writer has guard `from`.
  [[nodiscard]] bool reaches(const Node& node, std::size_t i, int from) const {
    if (graph_.implies(node.guard, from)) return true;
    if (node.op != "takt.Select" || i == 0) return false;
    const Guard& guard = graph_.guards[static_cast<std::size_t>(from)];
    return guard.condition == node.inputs[0] && guard.when == (i == 1) && graph_.implies(node.guard, guard.parent);
  }

  Status node(const Node& node) {
    if (node.guard < -1 || node.guard >= static_cast<int>(graph_.guards.size())) {
      return broken(node, "has a guard that is none of the graph");
    }
    if (node.guard >= 0) {
      const Guard& guard = graph_.guards[static_cast<std::size_t>(node.guard)];
      if (!is_written(guard.condition) ||
          !graph_.implies(guard.parent, guard_[static_cast<std::size_t>(guard.condition)])) {
        return broken(node, "runs under a condition that is not known there");
      }
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue) continue;
      if (!in_range(id)) return broken(node, "reads no value of the graph");
      if (!is_written(id)) return broken(node, "reads " + printable(graph_[id].name) + " before it is written");
      if (!reaches(node, i, guard_[static_cast<std::size_t>(id)])) {
        return broken(node, "reads " + printable(graph_[id].name) + ", which a guard may have left unwritten");
      }
    }
    auto types = infer(graph_, node);
    if (!types) return fail(Code::kInternal, "graph: " + types.error().message);
    for (const ValueId id : node.outputs) {
      if (!write(id, node.guard)) return broken(node, "writes a value that something else writes too");
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (!graph_[id].type) return broken(node, "output " + printable(graph_[id].name) + " has no type");
      if (!(*graph_[id].type == (*types)[i])) {
        return broken(node, "output " + printable(graph_[id].name) + " is " + to_string(*graph_[id].type) +
                                ", by the operator's rule " + to_string((*types)[i]));
      }
      TAKT_RETURN_IF_ERROR(counted(id));
    }
    return {};
  }

  [[nodiscard]] Status results() const {
    const auto always = [&](ValueId id) { return is_written(id) && guard_[static_cast<std::size_t>(id)] == -1; };
    for (const ValueId id : graph_.outputs) {
      if (!always(id)) return fail(Code::kInternal, "graph: an output is never written, or not always");
    }
    for (const State& state : graph_.states) {
      if (!always(state.next)) {
        return fail(Code::kInternal, "graph: state " + printable(state.name) + " is never written, or not always");
      }
    }
    return {};
  }

  const Graph& graph_;
  std::vector<bool> written_;  // by value
  std::vector<int> guard_;     // of the writer, by value
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

std::string dump(const Graph& graph) {
  const auto typed = [&](ValueId id) {
    const Value& value = graph[id];
    return printable(value.name) + " " + (value.type ? to_string(*value.type) : "?");
  };
  std::string text = "graph " + printable(graph.name) + "\n";
  for (const ValueId id : graph.inputs) text += "input " + typed(id) + "\n";
  for (const State& state : graph.states) {
    text += "state " + printable(state.name) + ": " + typed(state.previous) + " -> " + typed(state.next) + "\n";
  }
  for (std::size_t g = 0; g < graph.guards.size(); ++g) {
    const Guard& guard = graph.guards[g];
    text += "guard " + std::to_string(g) + ": " + printable(graph[guard.condition].name) + (guard.when ? "" : " not");
    text += (guard.parent >= 0 ? " in guard " + std::to_string(guard.parent) : "") + "\n";
  }
  for (const Node& node : graph.nodes) {
    if (node.guard >= 0) text += "[guard " + std::to_string(node.guard) + "] ";
    for (std::size_t i = 0; i < node.outputs.size(); ++i) text += (i > 0 ? ", " : "") + typed(node.outputs[i]);
    text += " = " + node.op + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0) text += ", ";
      const ValueId id = node.inputs[i];
      if (id == kNoValue) {
        text += "-";
      } else if (graph[id].constant) {
        text += printable(graph[id].name) + " " + summary(*graph[id].constant);
      } else {
        text += printable(graph[id].name);
      }
    }
    text += ")";
    for (const auto& [key, attribute] : node.attributes) text += " " + key + "=" + to_text(attribute);
    text += "  ; " + printable(node.name) + "\n";
  }
  for (const ValueId id : graph.outputs) text += "output " + typed(id) + "\n";
  return text;
}

}  // namespace takt::ir
