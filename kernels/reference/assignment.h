// Which object belongs to which track: optimal one-to-one assignment over fixed capacities, in the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/device_code.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

inline constexpr std::int32_t kUnassigned = -1;
// The cost of a pair that is not allowed. Finite, so that tables of costs hold no infinities.
inline constexpr double kNotAllowed = std::numeric_limits<double>::max();

// Bytes that assign() works in, at a multiple of 8.
std::size_t assign_scratch_bytes(std::size_t max_rows, std::size_t columns);

// Minimises the sum of the costs of the assigned pairs plus `unassigned` for every row without a column. cost: rows x
// columns, row-major; a pair whose cost is kNotAllowed, or no finite number, is not allowed. Writes the column of each
// row, or kUnassigned. `unassigned` is finite; of another, or of sums that overflow, no optimum is promised.
//
// Shortest augmenting paths with row and column potentials (Kuhn 1955; Jonker and Volgenant 1987): each row is one
// search that settles a column at most once, so rows x columns steps of `columns` each bound the work. Deterministic:
// rows enter in ascending order, of equally near columns the lowest is taken first, and a column before none; callers
// order rows by track id and columns by object index.
TAKT_BOTH void assign(std::size_t rows, std::size_t columns, const double* cost, double unassigned,
                      std::int32_t* column_of_row, std::byte* scratch);

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
