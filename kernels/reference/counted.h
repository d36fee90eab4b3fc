// Counted tensors: of one dimension only so many are valid as a number says that is known when the step runs; those lie
// together at the start, row-major as if the extent were that number. The generic kernel (generic.h) runs on them with
// that dimension cut to its count, so that what lies behind is never read or written.
//
// An operator is one of three: row-wise (its result has the count of its input), count-consuming (the counted dimension
// is reduced, indexed or summed over), or count-creating (how many there are is a result). Which of the first two
// follows from the operator's shape rule alone: it is asked how the result changes when there is one more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/reference/generic.h"

namespace takt::kernels::reference {

// GenericType::count: 0, or 1 to kMostCounts: the count operand that says how many are valid; kMade: the count that the
// step makes, its second result. GenericType::axis: the dimension.
inline constexpr int kMostCounts = 4;
inline constexpr std::uint8_t kMade = kMostCounts + 1;

// Whether an operator may read counted tensors or make them.
bool takes_counts(Generic op);
// Whether these parameters make a count: always (kNonZero, kCompress, kUnique, kNms), or because the dimension that the
// operator picks from, cuts or joins is counted (kTopK, kSlice, kConcat).
bool makes_count(const GenericParams& params);

// Sets the outputs, counts included, by the inputs. nullptr, or what is wrong: counts that do not fit each other, a
// count that would become another number, an operator that takes none. Never overflows.
const char* counted_infer(GenericParams* params);

// The loader's check, as generic_check. `makes`: the step has a second result, its count; otherwise a count that the
// operator makes was made by another step, and is read.
const char* counted_check(const GenericParams& params, std::span<const std::uint64_t> bytes, bool makes);

// Runs checked parameters. `counts`: one pointer for each count operand, nullptr where absent; numbers beyond the
// capacity count as the capacity, negative ones as 0. `made` receives the count of a step that makes one. Of nothing,
// sums are 0, products 1, maxima and minima the ends of the type's range, means and positions 0. What would go beyond
// the capacity of a result is left out, in the order of the result. Allocates nothing.
void counted_run(const GenericParams& params, std::byte* const* operands, const std::int32_t* const* counts,
                 std::int32_t* made);

}  // namespace takt::kernels::reference
