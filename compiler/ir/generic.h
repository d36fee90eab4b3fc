// Operators without a kernel of their own run by the generic reference kernel (kernels/reference/generic.h). One entry
// here is such an operator: its ONNX attributes and how a call becomes the kernel's parameters; shape rule, evaluation,
// import and lowering follow. Also the way out where a fast kernel exists for f32 only.
#pragma once

#include "compiler/ir/operators.h"
#include "kernels/reference/generic.h"

namespace takt::ir {

struct GenericForm {
  std::string_view name;
  // The attributes of the ONNX operator (Operator::attributes); kNotImported where import has a form of its own.
  std::string_view attributes;
  std::size_t least = 1, most = 1;  // inputs
  // Writes operator and attributes; `rank` is that of the first input.
  Status (*encode)(const Node& node, int rank, kernels::reference::GenericParams* p) = nullptr;
  // Of an operator that has no other entry; nullptr: it has one, in another table.
  std::uint64_t (*flops)(const OperatorInputs& inputs, std::span<const Type> outputs) = nullptr;
};
std::span<const GenericForm> element_forms();  // elementwise, along axes, by index
std::span<const GenericForm> image_forms();    // windows, sampling, matrices, recurrent cells, quantisation

const GenericForm* find_generic_form(std::string_view op);  // nullptr: none
bool has_generic(std::string_view op);

// kInput when the types do not fit the operator; kInternal when it has no generic form (has_generic is false).
Result<kernels::reference::GenericParams> generic_params(const Node& node, std::span<const kernels::Tensor> inputs);

// Shape rule and evaluation of an operator by its generic form.
Result<std::vector<Type>> infer_generic(const OperatorInputs& inputs);
Status evaluate_generic(const Node& node, std::span<const kernels::Tensor> in, std::span<const kernels::Tensor> out);

// Element type that a node names in takt's words ("f32"); kInput when there is none such.
Result<DType> element_type_of(const Node& node, std::string_view key);

}  // namespace takt::ir
