// takt's operators on pillars: the features of PointPillars (Lang et al. 2019, section 2.1) from what takt.Voxelise
// grouped, and its first layer on them.
//
// Both read points f32[capacity][5] (kernels/points.h), cells i64[pillars] counted (z << 42 | y << 21 | x, each of 21
// bits), ends i32[pillars] (of each pillar's part of `members`), members i32[members] (rows of points). What the data
// say beyond their tensors is left out. A pillar's features of a point, in this order:
//   `columns` of the point: x y z intensity [time]
//   x y z minus the mean of the pillar's points (summed in their order, in double)
//   x y [z] minus the centre of the cell: (index + 0.5) * size + min, computed in double
// 4 columns and 2 of the centre make 9, 4 and 3 10 (CUDA-PointPillars), 5 and 3 11.
#pragma once

#include <cstdint>

namespace takt::kernels {

inline constexpr std::int64_t kMaxPillarFeatures = 11;
inline constexpr std::int64_t kMaxPillarPoints = 1024;
inline constexpr std::int64_t kMaxPillarChannels = 512;

// takt.PillarFeatures: -> f32[pillars][most][features] counted: the first `most` points of each pillar; the mean is of
// these. Rows behind the points of a pillar are zero, as networks are trained.
//
// takt.PillarEncode: ..., weights f32[features][channels], bias f32[channels] -> f32[pillars][channels] counted: per
// channel the largest of relu(bias + sum over features, in order, each by fma) over the points of the pillar; at
// least relu(bias) where the pillar has fewer than `most` points, since the rows of zeros of PillarFeatures count too.
// The same function as PillarFeatures, a product, an activation and a maximum, without their memory.
struct PillarParams {
  std::int64_t points = 1, pillars = 1, members = 1;  // capacities
  std::int32_t most = 1;                              // points of a pillar
  std::int32_t columns = 4;                           // 4 or 5
  std::int32_t centre = 2;                            // 2 or 3
  std::int32_t channels = 0;                          // PillarFeatures: 0
  double min[3] = {}, size[3] = {1, 1, 1};            // m
};
static_assert(sizeof(PillarParams) == 88);
constexpr std::int64_t pillar_features(const PillarParams& p) { return p.columns + 3 + p.centre; }

}  // namespace takt::kernels
