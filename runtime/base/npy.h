// NumPy's array files, version 1.0 (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): how
// tensors enter and leave takt for comparison with other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace takt {

// Row-major, little-endian.
struct NpyArray {
  std::string type;  // as in the file: "<f4", "<f8", "<f2", "<i8", "<i4", "|i1", "|u1", "|b1"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// Bytes of one element; 0 for a type that is not supported.
std::size_t npy_element_size(std::string_view type);

// Versions 1.0 to 3.0. kInput, with the byte offset: no .npy, damaged, column-major, another type, or fewer or more
// bytes than the shape says. At most 8 dimensions.
Result<NpyArray> parse_npy(std::span<const std::byte> file);
Result<NpyArray> read_npy(const std::string& path);

std::string npy_bytes(const NpyArray& array);

}  // namespace takt
