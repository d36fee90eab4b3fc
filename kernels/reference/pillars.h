// The operators of kernels/pillars.h. Parts divide the pillars. Allocate nothing.
#pragma once

#include <cstdint>

#include "kernels/pillars.h"

namespace takt::kernels::reference {

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

// The features of one pillar, rows of pillar_features(p) floats in `rows` (room for p.most); how many there are.
std::int32_t pillar_rows(const PillarParams& p, const PillarOperands& o, std::int64_t pillar, float* rows);

void pillar_features(const PillarParams& p, const PillarOperands& o, float* out, int part, int parts);
void pillar_encode(const PillarParams& p, const PillarOperands& o, const float* weights, const float* bias, float* out,
                   int part, int parts);

}  // namespace takt::kernels::reference
