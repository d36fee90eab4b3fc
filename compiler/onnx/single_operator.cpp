#include "compiler/onnx/single_operator.h"

#include <utility>

#include "compiler/onnx/operators.h"

namespace takt::compiler {
namespace {

using ::onnx::AttributeProto;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

bool set(AttributeProto& proto, const ir::Attribute& value) {
  return std::visit(Overloaded{[&](std::int64_t v) {
                                 proto.set_type(AttributeProto::INT);
                                 proto.set_i(v);
                                 return true;
                               },
                               [&](float v) {
                                 proto.set_type(AttributeProto::FLOAT);
                                 proto.set_f(v);
                                 return true;
                               },
                               [&](const std::string& v) {
                                 proto.set_type(AttributeProto::STRING);
                                 proto.set_s(v);
                                 return true;
                               },
                               [&](const std::vector<std::int64_t>& v) {
                                 proto.set_type(AttributeProto::INTS);
                                 proto.mutable_ints()->Add(v.begin(), v.end());
                                 return true;
                               },
                               [&](const std::vector<float>& v) {
                                 proto.set_type(AttributeProto::FLOATS);
                                 proto.mutable_floats()->Add(v.begin(), v.end());
                                 return true;
                               },
                               [](const auto&) { return false; }},
                    value);
}

}  // namespace

Status append_onnx_operator(ir::Graph& graph, const std::string& op, const std::string& name,
                            const std::map<std::string, ir::Attribute>& attributes, std::vector<ir::ValueId> inputs,
                            std::vector<ir::ValueId> outputs) {
  if (!imports_operator("", op)) {
    return fail(Code::kInput, "operator " + ir::printable(op) + " is none that takt reads (docs/model_format.md)");
  }
  ::onnx::NodeProto proto;
  proto.set_op_type(op);
  for (const auto& [key, value] : attributes) {
    AttributeProto& attribute = *proto.add_attribute();
    attribute.set_name(key);
    if (!set(attribute, value)) return fail(Code::kInput, "attribute " + ir::printable(key) + " has another type");
  }
  return import_node(graph, proto, kNewestOpset, name, std::move(inputs), std::move(outputs));
}

}  // namespace takt::compiler
