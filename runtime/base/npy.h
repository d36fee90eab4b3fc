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

// An element type: its name in a file, as takt says it, and bytes of one element.
struct NpyType {
  std::string_view npy;   // "<f4", "|u1", ...
  std::string_view takt;  // "f32", "u8", ...
  std::size_t size = 0;
};
// All that takt's tensors may be of, but bf16: NumPy has no such type, its values are written as "<f4", which holds
// every one of them exactly.
std::span<const NpyType> npy_types();

// Row-major, little-endian.
struct NpyArray {
  std::string type;  // as in the file, one of npy_types()
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
