// Private: a node of a model on its way into the graph, and the tables of forms by family. A form that differs from
// takt's is one entry and a function: it rewrites the call, or adds the calls that it stands for.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "kernels/reference/elementwise.h"

namespace takt::compiler {

using ir::Constant;
using ir::DType;
using ir::kNoValue;
using ir::Node;
using ir::to_string;
using ir::ValueId;
using Integers = std::vector<std::int64_t>;

// A node on its way into the graph.
struct Call {
  ir::Graph& graph;
  std::int64_t opset;
  Node node;

  [[nodiscard]] bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  [[nodiscard]] const ir::Type& type(std::size_t i) const { return *graph[node.inputs[i]].type; }
  [[nodiscard]] ValueId constant(std::string_view what, Constant value) {
    return graph.add_constant(node.name + "." + std::string(what), std::move(value));
  }
  void take(std::string_view key) { node.attributes.erase(std::string(key)); }
  // Moves an attribute of whole numbers to input i, where newer operator sets have it.
  void to_input(std::string_view key, std::size_t i) {
    if (node.attributes.count(std::string(key)) == 0) return;
    if (node.inputs.size() <= i) node.inputs.resize(i + 1, kNoValue);
    node.inputs[i] = constant(key, Constant::of(node.integers(key)));
    take(key);
  }
  Status emit() { return ir::append(graph, std::move(node)); }
};

// Adds the calls that an operator stands for, one after the other; the last one writes the operator's own output.
class Steps {
 public:
  explicit Steps(Call& call) : call_(call) {}

  ValueId operator()(std::string op, std::vector<ValueId> inputs,
                     std::map<std::string, ir::Attribute> attributes = {}) {
    const ValueId result = call_.graph.add_value(call_.node.name + "." + std::to_string(++count_));
    add(std::move(op), std::move(inputs), result, std::move(attributes));
    return result;
  }
  Status last(std::string op, std::vector<ValueId> inputs, std::map<std::string, ir::Attribute> attributes = {}) {
    return output(0, std::move(op), std::move(inputs), std::move(attributes));
  }
  // Writes output i, where the model has it.
  Status output(std::size_t i, std::string op, std::vector<ValueId> inputs,
                std::map<std::string, ir::Attribute> attributes = {}) {
    if (i < call_.node.outputs.size())
      add(std::move(op), std::move(inputs), call_.node.outputs[i], std::move(attributes));
    return status_;
  }
  ValueId number(float value, DType type) {
    Constant constant = Constant::allocate(type, ir::Shape{});
    kernels::reference::cast(Constant::scalar(value).tensor(), constant.tensor());
    return call_.constant("number" + std::to_string(++count_), std::move(constant));
  }
  ValueId number(float value) { return number(value, DType::kF32); }
  // In the type of another value.
  ValueId number_like(float value, ValueId other) { return number(value, call_.graph[other].type->dtype); }
  ValueId cast(ValueId x, DType to) { return (*this)("Cast", {x}, {{"to", std::string(kernels::name_of(to))}}); }
  [[nodiscard]] const ir::Shape& shape(ValueId value) const { return call_.graph[value].type->shape; }
  [[nodiscard]] const Status& status() const { return status_; }
  ValueId list(std::span<const std::int64_t> values) {
    return call_.constant("list" + std::to_string(++count_), Constant::of(values));
  }
  ValueId reshape(ValueId x, std::span<const std::int64_t> extents) {
    return (*this)("Reshape", {x, list(extents)}, {{"allowzero", std::int64_t{1}}});
  }
  ValueId transpose(ValueId x, std::vector<std::int64_t> perm) {
    return (*this)("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  Status last_reshape(ValueId x, std::span<const std::int64_t> extents) {
    return last("Reshape", {x, list(extents)}, {{"allowzero", std::int64_t{1}}});
  }

 private:
  // After a failure nothing more is added; its message is what counts. A type that nobody reads stands in for the
  // result.
  void add(std::string op, std::vector<ValueId> inputs, ValueId output,
           std::map<std::string, ir::Attribute> attributes) {
    if (!status_) {
      call_.graph[output].type = ir::Type{};
      return;
    }
    Node node;
    node.name = call_.node.name + (call_.node.outputs[0] == output ? "" : "." + std::to_string(++count_));
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = std::move(attributes);
    status_ = ir::append(call_.graph, std::move(node));
    if (!status_) call_.graph[output].type = ir::Type{};
  }

  Call& call_;
  Status status_;
  int count_ = 0;
};

// Attributes by name and type as in ir::Operator::attributes. Whatever is not named is refused, since it may change the
// meaning.
struct Form {
  std::string_view name;
  std::string_view attributes;
  Status (*convert)(Call&);
  std::size_t outputs = 1;  // at most so many are computed
};
inline constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);

std::span<const Form> element_forms();
std::span<const Form> movement_forms();
std::span<const Form> reduction_forms();
std::span<const Form> image_forms();
std::span<const Form> normalisation_forms();
std::span<const Form> matrix_forms();
std::span<const Form> recurrent_forms();
std::span<const Form> quantisation_forms();
std::span<const Form> loss_forms();

Status as_it_is(Call& call);
// The numbers of a constant input, as an attribute in newer or older operator sets.
Result<Integers> constant_integers(const Call& call, std::size_t i, std::string_view what);
Result<std::int64_t> constant_integer(const Call& call, std::size_t i, std::string_view what);
Status emit_reshape(Call& call, ValueId from, ValueId to, const ir::Shape& shape, std::string_view what);
// Before operator set 7 some operators trained unless told otherwise.
Status for_inference(Call& call);
// Axes as an attribute, from input 1 where they are there; without any and told so, the operator does nothing.
Status settle_axes(Call& call);
// Strides, dilations, pads and group of a convolution, for every dimension, nothing implied.
Result<std::map<std::string, ir::Attribute>> settled_window(const Call& call, const ir::Shape& x,
                                                            const ir::Shape& weights);
// [first, last)
Integers axes_between(std::int64_t first, std::int64_t last);

}  // namespace takt::compiler
