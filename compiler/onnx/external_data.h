// Data of tensors that lie beside the model, in other files of its folder.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace takt::compiler {

// The `bytes` bytes that a tensor names by location, offset and length (onnx/docs/ExternalData.md). A location is a
// path below `folder`: no "..", no absolute path, no symbolic link on the way, and at its end a plain file that holds
// all of them. kInput when it is none, or where the length is another; nothing is allocated before the file's size is
// known.
Result<std::vector<std::byte>> read_external(const ::onnx::TensorProto& tensor, const std::string& folder,
                                             std::uint64_t bytes);

}  // namespace takt::compiler
