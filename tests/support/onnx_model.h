// Small ONNX models, built in a test. Links onnx_proto (find_package(ONNX) in the CMakeLists of the test).
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace takt::test {

class OnnxModel {
 public:
  using Names = std::vector<std::string>;
  using Dims = std::vector<std::int64_t>;

  explicit OnnxModel(std::int64_t opset) {
    model.set_ir_version(7);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("small");
  }

  // A negative extent is a symbolic dimension named "d<position>".
  OnnxModel& input(const std::string& name, const Dims& dims, std::int32_t type = ::onnx::TensorProto::FLOAT) {
    describe(model.mutable_graph()->add_input(), name, dims, type);
    return *this;
  }
  OnnxModel& output(const std::string& name) {
    model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  OnnxModel& output(const std::string& name, const Dims& dims, std::int32_t type = ::onnx::TensorProto::FLOAT) {
    describe(model.mutable_graph()->add_output(), name, dims, type);
    return *this;
  }
  OnnxModel& floats(const std::string& name, const Dims& dims, const std::vector<float>& values) {
    ::onnx::TensorProto* tensor = initializer(name, dims, ::onnx::TensorProto::FLOAT);
    for (const float v : values) tensor->add_float_data(v);
    return *this;
  }
  // As raw bytes, as most exporters write them.
  OnnxModel& integers(const std::string& name, const Dims& dims, const std::vector<std::int64_t>& values) {
    ::onnx::TensorProto* tensor = initializer(name, dims, ::onnx::TensorProto::INT64);
    tensor->set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
    return *this;
  }
  OnnxModel& integers(const std::string& name, const std::vector<std::int64_t>& values) {
    return integers(name, {static_cast<std::int64_t>(values.size())}, values);
  }
  // The node's name is its first output's with an n in front.
  OnnxModel& node(const std::string& op, const Names& inputs, const Names& outputs) {
    ::onnx::NodeProto* node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name("n" + (outputs.empty() ? std::string() : outputs[0]));
    for (const std::string& name : inputs) node->add_input(name);
    for (const std::string& name : outputs) node->add_output(name);
    return *this;
  }
  // Attributes of the node added last.
  OnnxModel& with(const std::string& key, std::int64_t value) {
    attribute(key, ::onnx::AttributeProto::INT)->set_i(value);
    return *this;
  }
  OnnxModel& with(const std::string& key, float value) {
    attribute(key, ::onnx::AttributeProto::FLOAT)->set_f(value);
    return *this;
  }
  OnnxModel& with(const std::string& key, const char* value) {
    attribute(key, ::onnx::AttributeProto::STRING)->set_s(value);
    return *this;
  }
  OnnxModel& with(const std::string& key, const Dims& values) {
    ::onnx::AttributeProto* list = attribute(key, ::onnx::AttributeProto::INTS);
    for (const std::int64_t v : values) list->add_ints(v);
    return *this;
  }
  OnnxModel& with(const std::string& key, const std::vector<float>& values) {
    ::onnx::AttributeProto* list = attribute(key, ::onnx::AttributeProto::FLOATS);
    for (const float v : values) list->add_floats(v);
    return *this;
  }
  // A subgraph: the graph of another model.
  OnnxModel& with(const std::string& key, const OnnxModel& body) {
    *attribute(key, ::onnx::AttributeProto::GRAPH)->mutable_g() = body.model.graph();
    return *this;
  }
  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }

  ::onnx::ModelProto model;

 private:
  static void describe(::onnx::ValueInfoProto* value, const std::string& name, const Dims& dims, std::int32_t type) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (std::size_t d = 0; d < dims.size(); ++d) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (dims[d] < 0) {
        dim->set_dim_param("d" + std::to_string(d));
      } else {
        dim->set_dim_value(dims[d]);
      }
    }
  }
  ::onnx::TensorProto* initializer(const std::string& name, const Dims& dims, std::int32_t type) {
    ::onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const std::int64_t extent : dims) tensor->add_dims(extent);
    return tensor;
  }
  ::onnx::AttributeProto* attribute(const std::string& key, ::onnx::AttributeProto::AttributeType type) {
    auto* graph = model.mutable_graph();
    ::onnx::AttributeProto* attribute = graph->mutable_node(graph->node_size() - 1)->add_attribute();
    attribute->set_name(key);
    attribute->set_type(type);
    return attribute;
  }
};

}  // namespace takt::test
