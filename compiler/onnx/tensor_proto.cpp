#include "compiler/onnx/tensor_proto.h"

#include <cstring>

#include "compiler/onnx/external_data.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::DType;

// Typed fields hold one number per element, int32_data also the narrower types; raw_data holds little-endian bytes.
template <class T, class Field>
void narrow(const Field& field, Constant* out) {
  for (int i = 0; i < field.size(); ++i) {
    const T value = static_cast<T>(field[i]);
    std::memcpy(out->bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
}

int typed_size(const ::onnx::TensorProto& tensor, DType dtype) {
  switch (dtype) {
    case DType::kF32: return tensor.float_data_size();
    case DType::kF64: return tensor.double_data_size();
    case DType::kI64: return tensor.int64_data_size();
    case DType::kU32:
    case DType::kU64: return tensor.uint64_data_size();
    default: return tensor.int32_data_size();
  }
}

// A bool is 0 or 1 in memory, whatever the file says.
void settle_truth(Constant* constant) {
  if (constant->dtype != DType::kBool) return;
  for (std::byte& byte : constant->bytes) {
    if (byte != std::byte{0}) byte = std::byte{1};
  }
}

}  // namespace

Result<ir::DType> element_type(std::int32_t onnx_type) {
  using Proto = ::onnx::TensorProto;
  switch (onnx_type) {
    case Proto::FLOAT: return DType::kF32;
    case Proto::FLOAT16: return DType::kF16;
    case Proto::INT64: return DType::kI64;
    case Proto::INT32: return DType::kI32;
    case Proto::INT8: return DType::kI8;
    case Proto::UINT8: return DType::kU8;
    case Proto::BOOL: return DType::kBool;
    case Proto::DOUBLE: return DType::kF64;
    case Proto::INT16: return DType::kI16;
    case Proto::UINT16: return DType::kU16;
    case Proto::UINT32: return DType::kU32;
    case Proto::UINT64: return DType::kU64;
    case Proto::BFLOAT16: return DType::kBF16;
    default: break;
  }
  const std::string name = Proto::DataType_IsValid(onnx_type)
                               ? Proto::DataType_Name(static_cast<Proto::DataType>(onnx_type))
                               : std::to_string(onnx_type);
  return fail(Code::kInput, "element type " + name +
                                " is not supported (floating-point numbers of 16, 32 and 64 bits, whole numbers of 8 "
                                "to 64 bits and BOOL are)");
}

Result<ir::Constant> read_tensor(const ::onnx::TensorProto& tensor, const std::string& folder) {
  const bool external = tensor.data_location() == ::onnx::TensorProto::EXTERNAL || tensor.external_data_size() > 0;
  if (external && folder.empty()) {
    return fail(Code::kInput,
                "its data lie in another file; save the model as one file (in Python: "
                "onnx.save(onnx.load(path), out, save_as_external_data=False))");
  }
  if (tensor.has_segment()) return fail(Code::kInput, "tensors in segments are not supported");
  TAKT_ASSIGN(const DType dtype, element_type(tensor.data_type()));
  ir::Shape shape;
  if (tensor.dims_size() > kernels::kMaxRank) {
    return fail(Code::kInput, "rank " + std::to_string(tensor.dims_size()) + " is above 8");
  }
  for (const std::int64_t extent : tensor.dims()) shape.dims[shape.rank++] = extent;
  const std::string type = to_string(ir::Type{dtype, shape});
  if (!ir::within_limits(shape)) return fail(Code::kInput, "a shape of " + type + " is not possible");
  const auto elements = static_cast<std::uint64_t>(shape.elements());
  const std::uint64_t bytes = elements * kernels::size_of(dtype);
  if (external) {
    TAKT_ASSIGN(std::vector<std::byte> data, read_external(tensor, folder, bytes));
    Constant constant{dtype, shape, std::move(data)};
    settle_truth(&constant);
    return constant;
  }
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != bytes) {
      return fail(Code::kInput, type + " needs " + std::to_string(bytes) + " bytes, the file holds " +
                                    std::to_string(tensor.raw_data().size()));
    }
    Constant constant = Constant::allocate(dtype, shape);
    if (bytes > 0) std::memcpy(constant.bytes.data(), tensor.raw_data().data(), bytes);
    settle_truth(&constant);
    return constant;
  }
  if (static_cast<std::uint64_t>(typed_size(tensor, dtype)) != elements) {
    return fail(Code::kInput, type + " needs " + std::to_string(elements) + " elements, the file holds " +
                                  std::to_string(typed_size(tensor, dtype)));
  }
  Constant constant = Constant::allocate(dtype, shape);
  switch (dtype) {
    case DType::kF32: narrow<float>(tensor.float_data(), &constant); break;
    case DType::kI64: narrow<std::int64_t>(tensor.int64_data(), &constant); break;
    case DType::kI32: narrow<std::int32_t>(tensor.int32_data(), &constant); break;
    case DType::kF64: narrow<double>(tensor.double_data(), &constant); break;
    case DType::kU64: narrow<std::uint64_t>(tensor.uint64_data(), &constant); break;
    case DType::kU32: narrow<std::uint32_t>(tensor.uint64_data(), &constant); break;
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16: narrow<std::uint16_t>(tensor.int32_data(), &constant); break;
    case DType::kI16: narrow<std::int16_t>(tensor.int32_data(), &constant); break;
    case DType::kI8: narrow<std::int8_t>(tensor.int32_data(), &constant); break;
    case DType::kU8: narrow<std::uint8_t>(tensor.int32_data(), &constant); break;
    case DType::kBool: narrow<bool>(tensor.int32_data(), &constant); break;
  }
  return constant;
}

}  // namespace takt::compiler
