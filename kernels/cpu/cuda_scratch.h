// Where the CUDA kernels of takt's operators keep what lives as long as their step: one operand of scratch, laid out
// alike by the host half, which says how large it is, and by the kernels (kernels/cuda/order.h).
#pragma once

#include <cstdint>

#include "kernels/boxes.h"
#include "kernels/points.h"
#include "kernels/voxels.h"

namespace takt::kernels::cpu {

inline constexpr std::int64_t kTileItems = 256;  // of a block that sorts, counts or compacts
inline constexpr int kRadixBits = 6;
inline constexpr std::uint64_t kThresholdBytes = 16;

constexpr std::int64_t tiles_of(std::int64_t items) { return (items + kTileItems - 1) / kTileItems; }

class ScratchLayout {
 public:
  // Offset of so many elements.
  constexpr std::uint64_t add(std::int64_t count, std::uint64_t element) {
    const std::uint64_t at = bytes_;
    bytes_ = (bytes_ + static_cast<std::uint64_t>(count) * element + 15) / 16 * 16;
    return at;
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

// Sums over tiles (u64) take the place of the histogram of a sort (i32[64][tiles]), which is larger.
constexpr std::uint64_t add_histogram(ScratchLayout& layout, std::int64_t items) {
  return layout.add(tiles_of(items) << kRadixBits, sizeof(std::int32_t));
}

struct VoxeliseScratch {
  std::uint64_t keys[2], rows[2], begins, histogram, threshold, counters, bytes;
  constexpr explicit VoxeliseScratch(const VoxeliseParams& p) : VoxeliseScratch(p, ScratchLayout()) {}

 private:
  constexpr VoxeliseScratch(const VoxeliseParams& p, ScratchLayout layout)
      : keys{layout.add(p.points, 8), layout.add(p.points, 8)},
        rows{layout.add(p.points, 4), layout.add(p.points, 4)},
        begins(layout.add(std::int64_t{p.points} + 1, 4)),
        histogram(add_histogram(layout, p.points)),
        threshold(layout.add(1, kThresholdBytes)),
        counters(layout.add(2, 4)),  // points in range, voxels
        bytes(layout.bytes()) {}
};

// The results that a cell may have, in each dimension: of taps with the same remainder of the stride.
constexpr std::int64_t streams_of(const SparseCellsParams& p) {
  std::int64_t streams = 1;
  for (int d = 0; d < 3; ++d) streams *= (p.kernel[d] + p.stride[d] - 1) / p.stride[d];
  return streams;
}
struct SparseCellsScratch {
  std::int64_t candidates;
  std::uint64_t keys[2], histogram, threshold, counters, bytes;
  constexpr explicit SparseCellsScratch(const SparseCellsParams& p) : SparseCellsScratch(p, ScratchLayout()) {}

 private:
  constexpr SparseCellsScratch(const SparseCellsParams& p, ScratchLayout layout)
      : candidates(p.cells * streams_of(p)),
        keys{layout.add(candidates, 8), layout.add(candidates, 8)},
        histogram(add_histogram(layout, candidates)),
        threshold(layout.add(1, kThresholdBytes)),
        counters(layout.add(2, 4)),  // candidates, different ones
        bytes(layout.bytes()) {}
};

struct CropScratch {
  std::uint64_t tile_sums, bytes;
  constexpr explicit CropScratch(const CropParams& p) : CropScratch(p, ScratchLayout()) {}

 private:
  constexpr CropScratch(const CropParams& p, ScratchLayout layout)
      : tile_sums(layout.add(tiles_of(p.capacity), 8)), bytes(layout.bytes()) {}
};

struct TopKScratch {
  std::int64_t places;  // class by class, cell by cell
  std::uint64_t candidates, taken, tile_sums, threshold, counters, bytes;
  constexpr explicit TopKScratch(const TopKDecodeParams& p) : TopKScratch(p, ScratchLayout()) {}

 private:
  constexpr TopKScratch(const TopKDecodeParams& p, ScratchLayout layout)
      : places(std::int64_t{p.classes} * p.h * p.w),
        candidates(layout.add(places, 4)),
        taken(layout.add(p.k, 4)),
        tile_sums(layout.add(tiles_of(places), 8)),
        threshold(layout.add(1, kThresholdBytes)),
        counters(layout.add(1, 4)),  // candidates
        bytes(layout.bytes()) {}
};

}  // namespace takt::kernels::cpu
