#pragma once

#include <onnx/onnx_pb.h>

#include "compiler/ir/graph.h"

namespace takt::compiler {

// TensorProto.DataType as takt's element type; kInput with the type's name when takt has none.
Result<ir::DType> element_type(std::int32_t onnx_type);

// The elements of a TensorProto. All lengths are compared before anything is allocated. `folder`: of the model, for
// data that lie in another file there (external_data.h); empty: such data are refused. kInput: unknown types, lengths
// that do not fit the shape.
Result<ir::Constant> read_tensor(const ::onnx::TensorProto& tensor, const std::string& folder = {});

}  // namespace takt::compiler
