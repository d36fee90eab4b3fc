// NumPy arrays in .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to 3:
// little-endian float64 in C order with one or two dimensions, which is what comma2k19 holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace takt::tools {

struct NpyArray {
  std::size_t rows = 0, columns = 1;
  std::vector<double> values;  // row-major
  [[nodiscard]] double at(std::size_t row, std::size_t column = 0) const { return values[row * columns + column]; }
};

// kInput: no .npy, another type or order, a size that does not fit the shape.
Result<NpyArray> parse_npy(const std::string& bytes, const std::string& name);
Result<NpyArray> load_npy(const std::string& path);

}  // namespace takt::tools
