// takt's operators on boxes: from the maps of a centre head to the best k, and the suppression of doubles.
//
// Boxes are rows f32[capacity][kBoxColumns]: centre x y z, length width height (m), yaw (rad, counter-clockwise from
// +x), velocity x y (m/s). Scores f32, classes i32. Order everywhere: score descending, class ascending, index
// ascending: total, so that no result depends on how something was sorted.
#pragma once

#include <cstdint>

namespace takt::kernels {

inline constexpr std::int64_t kBoxColumns = 9;
inline constexpr std::int64_t kMaxBoxes = 65536;  // of a capacity
inline constexpr std::int32_t kMaxBoxClasses = 16;

// takt.TopKDecode: heat f32[1][classes][h][w] (logits), offset [1][2] (cells, x y), height [1][1] (m), size [1][3]
// (logarithms, length width height), rotation [1][2] (sine, cosine), [velocity [1][2]], all [h][w]
//   -> boxes f32[k][9], scores f32[k], classes i32[k], cells i32[k] (row w + column), dropped i32; count.
// A cell is a candidate of a class when its logit is above `logit_min`, no neighbour of the 3x3 around it has a larger
// one, nor an equal one and a smaller index; its numbers are finite, its size too; and the length of its rotation is at
// least `yaw_norm_min` of the class (Autoware: 0.3, pedestrians 0). The k first of the order above are taken, the
// others are dropped and counted. centre = (cell + offset) * cell_m + origin, size = exp, yaw = atan2(sine, cosine),
// score = sigmoid(logit). CenterPoint (Yin et al. 2021, section 4), Autoware lidar_centerpoint.
struct TopKDecodeParams {
  std::int32_t classes = 1, h = 1, w = 1, k = 1;
  std::int32_t velocity = 0;  // 1: the operand is present
  float logit_min = 0;
  float origin[2] = {};  // x, y of the map's first corner, m
  float cell_m[2] = {1, 1};
  float yaw_norm_min[kMaxBoxClasses] = {};
};

// takt.CircleNms, takt.AxisAlignedNms, takt.RotatedNms: boxes, scores f32, classes i32, all counted -> the same three
// of what stays, best first; index i32 (rows of the input); count. In the order above a box stays unless one that
// stays, of the same class unless `agnostic`, is too near to it:
//   circle        distance of the centres in x and y at most `limit` m (CenterPoint compares squared distances: its
//                 radii are squares; here they are distances)
//   axis-aligned  intersection over union in x and y above `limit`, each box turned to the nearest axis (SECOND)
//   rotated       the same of the boxes as they lie: polygon clipping in the frame of one of them, in double
// `limit` of the class of the worse box. A box with a score or a number of its footprint that is NaN or infinite, or of
// a class outside 0 .. kMaxBoxClasses-1, does not stay. After `most` boxes nothing stays.
struct NmsParams {
  std::int64_t capacity = 1;
  std::int32_t most = 1;
  std::int32_t agnostic = 0;
  float limit[kMaxBoxClasses] = {};
};

static_assert(sizeof(TopKDecodeParams) == 104 && sizeof(NmsParams) == 80);

}  // namespace takt::kernels
