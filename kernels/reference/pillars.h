// The operators of kernels/pillars.h. Parts divide the pillars. Allocate nothing.
#pragma once

#include <cstdint>

#include "kernels/device_code.h"
#include "kernels/pillars.h"
#include "kernels/points.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

const char* invalid(const PillarParams& p);

struct PillarOperands {
  const float* points = nullptr;
  const std::int64_t* cells = nullptr;
  const std::int32_t* ends = nullptr;
  const std::int32_t* members = nullptr;
  // Counts; nullptr: the capacity.
  const std::int32_t* point_count = nullptr;
  const std::int32_t* pillar_count = nullptr;
  const std::int32_t* member_count = nullptr;
};

// The valid ones of a counted tensor.
TAKT_BOTH std::int64_t count_of(const std::int32_t* count, std::int64_t capacity);

// One pillar: which points it has, and what their features are taken from.
struct Pillar {
  const PillarParams& p;
  const PillarOperands& o;
  std::int64_t points, begin, end;
  std::int32_t rows = 0;  // points that count
  float mean[3] = {}, centre[3] = {};

  TAKT_BOTH Pillar(const PillarParams& params, const PillarOperands& operands, std::int64_t pillar);
  // f(point) for the first p.most points, in order.
  template <class F>
  TAKT_BOTH void for_each_point(const F& f) const {
    std::int32_t n = 0;
    for (std::int64_t m = begin; m < end && n < p.most; ++m) {
      const std::int64_t row = o.members[m];
      if (row < 0 || row >= points) continue;
      f(o.points + row * kPointColumns);
      ++n;
    }
  }
  TAKT_BOTH void features(const float* point, float* row) const;  // pillar_features(p) of them
};

// The features of one pillar, rows of pillar_features(p) floats in `rows` (room for p.most); how many there are.
TAKT_BOTH std::int32_t pillar_rows(const PillarParams& p, const PillarOperands& o, std::int64_t pillar, float* rows);
// One channel of PillarEncode; `weights` at the channel's first one.
TAKT_BOTH float pillar_channel(const Pillar& pillar, const float* weights, float bias);

TAKT_BOTH void pillar_features(const PillarParams& p, const PillarOperands& o, float* out, int part, int parts);
TAKT_BOTH void pillar_encode(const PillarParams& p, const PillarOperands& o, const float* weights, const float* bias,
                             float* out, int part, int parts);

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
