#include "compiler/nets/net.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/operators.h"
#include "kernels/voxels.h"

namespace takt::compiler {

ir::Type Net::type_of(ir::DType dtype, std::initializer_list<std::int64_t> extents) const {
  ir::Type type{dtype, {}};
  for (const std::int64_t extent : extents) type.shape.dims[type.shape.rank++] = extent;
  return type;
}

Net::Value Net::input(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents) {
  graph_.inputs.push_back(graph_.add_value(name, type_of(dtype, extents)));
  return graph_.inputs.back();
}

Net::Value Net::counted_input(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents) {
  const Value value = input(name, dtype, extents);
  const Value count = input(name + "_count", ir::DType::kI32, {});
  graph_[value].type->count = count;
  return value;
}

Net::Value Net::state(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents) {
  const Value value = graph_.add_value(name, type_of(dtype, extents));
  graph_.states.push_back({name, value, ir::kNoValue, nullptr});
  return value;
}

void Net::next(const std::string& state, Value value) {
  for (ir::State& s : graph_.states) {
    if (s.name == state) s.next = value;
  }
}

Net::Value Net::constant(const std::string& name, ir::Constant constant) {
  return graph_.add_constant(name, std::move(constant));
}

Net::Value Net::weights(const std::string& name, std::initializer_list<std::int64_t> extents, std::int64_t fan_in) {
  ir::Constant constant = ir::Constant::allocate(ir::DType::kF32, type_of(ir::DType::kF32, extents).shape);
  const auto bound = static_cast<float>(std::sqrt(3.0 / static_cast<double>(fan_in)));
  auto* const values = constant.tensor().as<float>();
  for (std::int64_t i = 0; i < constant.shape.elements(); ++i) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    values[i] = (static_cast<float>(z >> 40) * 0x1p-23F - 1.0F) * bound;
  }
  return this->constant(name, std::move(constant));
}

std::vector<Net::Value> Net::node(const std::string& op, std::vector<Value> inputs,
                                  const std::vector<std::string>& outputs, Attributes attributes) {
  ir::Node node;
  node.op = op;
  node.name = outputs.front();
  node.inputs = std::move(inputs);
  for (const std::string& name : outputs) node.outputs.push_back(graph_.add_value(name));
  node.attributes = std::move(attributes);
  std::vector<Value> results = node.outputs;
  if (status_) status_ = ir::append(graph_, std::move(node));
  return results;
}

ir::Shape Net::shape(Value value) const { return graph_[value].type ? graph_[value].type->shape : ir::Shape{}; }

Net::Value Net::conv(Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride, bool relu,
                     const std::string& name) {
  const std::int64_t in = shape(x).dims[1], pad = kernel / 2;
  // ReLU halves the second moment.
  const std::int64_t fan_in = std::max<std::int64_t>(in * kernel * kernel / 2, 1);
  const Value w = weights(name + ".weight", {channels, in, kernel, kernel}, fan_in);
  const Value b = weights(name + ".bias", {channels}, 300);
  const Value y = call("Conv", {x, w, b}, relu ? name + ".sum" : name,
                       {{"kernel_shape", std::vector<std::int64_t>{kernel, kernel}},
                        {"strides", std::vector<std::int64_t>{stride, stride}},
                        {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}}});
  return relu ? call("Relu", {y}, name) : y;
}

std::int64_t Net::cells(float minimum, float maximum, float size) {
  const double cells =
      std::round((static_cast<double>(maximum) - static_cast<double>(minimum)) / static_cast<double>(size));
  return cells >= 1 && cells <= kernels::kMostCells ? static_cast<std::int64_t>(cells) : 0;
}

Net::Value Net::upsampled(Value x, std::int64_t channels, std::int64_t factor, const std::string& name) {
  const std::int64_t in = shape(x).dims[1];
  const Value w = weights(name + ".weight", {in, channels, factor, factor}, std::max<std::int64_t>(in / 2, 1));
  const Value b = weights(name + ".bias", {channels}, 300);
  const Value y = call("ConvTranspose", {x, w, b}, name + ".sum",
                       {{"kernel_shape", std::vector<std::int64_t>{factor, factor}},
                        {"strides", std::vector<std::int64_t>{factor, factor}}});
  return call("Relu", {y}, name);
}

std::vector<Net::Value> Net::centre_head(Value x, std::int64_t classes) {
  const Value heat = conv(x, classes, 1, 1, false, "heat");
  const Value offset = conv(x, 2, 1, 1, false, "offset");
  const Value height = conv(x, 1, 1, 1, false, "height");
  const Value extents = conv(x, 3, 1, 1, false, "size");
  const Value rotation = conv(x, 2, 1, 1, false, "rotation");
  return {heat, offset, height, extents, rotation, conv(x, 2, 1, 1, false, "velocity")};
}

Result<ir::Graph> Net::finish() {
  TAKT_RETURN_IF_ERROR(status_);
  TAKT_RETURN_IF_ERROR(ir::verify(graph_));
  return std::move(graph_);
}

}  // namespace takt::compiler
