#include <algorithm>
#include <map>

#include "compiler/ir/generic.h"
#include "compiler/ir/operator_tables.h"

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::GenericParams;
using kernels::reference::kGenericInputs;
using kernels::reference::kGenericOutputs;

std::string types_of(std::span<const Tensor> inputs) {
  std::string text;
  for (const Tensor& t : inputs) text += (text.empty() ? "" : ", ") + to_string(Type{t.dtype, t.shape});
  return text;
}

}  // namespace

const GenericForm* find_generic_form(std::string_view op) {
  static const std::map<std::string_view, const GenericForm*> forms = [] {
    std::map<std::string_view, const GenericForm*> all;
    for (const auto family : {element_forms(), image_forms()}) {
      for (const GenericForm& form : family) all.emplace(form.name, &form);
    }
    return all;
  }();
  const auto found = forms.find(op);
  return found != forms.end() ? found->second : nullptr;
}

bool has_generic(std::string_view op) { return find_generic_form(op) != nullptr; }

Result<DType> element_type_of(const Node& node, std::string_view key) {
  const std::string wanted = node.text(key, "");
  for (int type = 1; type <= kernels::kDTypes; ++type) {
    if (wanted == kernels::name_of(static_cast<DType>(type))) return static_cast<DType>(type);
  }
  return fail(Code::kInput, "attribute " + std::string(key) + " is \"" + printable(wanted) + "\", no element type");
}

Result<GenericParams> generic_params(const Node& node, std::span<const Tensor> inputs) {
  const GenericForm* form = find_generic_form(node.op);
  if (form == nullptr) return fail(Code::kInternal, node.op + " has no generic form");
  if (inputs.empty() || inputs.size() > kGenericInputs || node.inputs[0] == kNoValue) {
    return fail(Code::kInput, "the number of inputs is wrong");
  }
  GenericParams p;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) {
      p.operands[i] = kernels::reference::generic_type(inputs[i].dtype, inputs[i].shape);
    }
  }
  TAKT_RETURN_IF_ERROR(form->encode(node, inputs[0].shape.rank, &p));
  if (const char* const error = kernels::reference::generic_infer(&p)) {
    return fail(Code::kInput, std::string(error) + ": " + types_of(inputs));
  }
  return p;
}

Result<Types> infer_generic(const OperatorInputs& in) {
  TAKT_ASSIGN(const GenericParams p, generic_params(in.node, in.tensors()));
  Types types;
  for (int i = kGenericInputs; i < kGenericInputs + kGenericOutputs; ++i) {
    const auto& t = p.operands[i];
    if (t.dtype == 0) continue;
    Type type{static_cast<DType>(t.dtype), {}};
    type.shape.rank = t.rank;
    std::copy_n(t.dims, t.rank, type.shape.dims);
    types.push_back(type);
  }
  return types;
}

Status evaluate_generic(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const GenericParams p, generic_params(node, in));
  std::byte* operands[kernels::reference::kGenericOperands] = {};
  for (std::size_t i = 0; i < in.size(); ++i) operands[i] = in[i].as<std::byte>();
  for (std::size_t i = 0; i < out.size(); ++i) operands[kGenericInputs + i] = out[i].as<std::byte>();
  kernels::reference::generic_run(p, operands);
  return {};
}

std::span<const Operator> generic_operators() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> all;
    for (const auto family : {element_forms(), image_forms()}) {
      for (const GenericForm& form : family) {
        if (form.flops == nullptr) continue;
        all.push_back(
            {form.name, form.least, form.most, infer_generic, evaluate_generic, form.flops, nullptr, form.attributes});
      }
    }
    return all;
  }();
  return operators;
}

}  // namespace takt::ir
