// The operators of kernels/points.h. Row-wise ones take a part of the rows; all parts together do the whole, whatever
// their number, and none reads what another writes. Allocate nothing. A count that is nullptr is the
// capacity. The kernels of plans call these: the loops are
// short, and memory is what they wait for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/points.h"

namespace takt::kernels::reference {

// nullptr, or what is wrong with the parameters: extents, sizes that overflow, numbers that are not finite.
const char* invalid(const CloudParams& p);
const char* invalid(const DeskewParams& p);
const char* invalid(const CropParams& p);
const char* invalid(const SweepsParams& p);

void cloud(const CloudParams& p, const std::byte* payload, float* points, std::int32_t* count, int part, int parts);

// `poses`: the first *pose_count rows are valid.
void deskew(const DeskewParams& p, const float* points, const std::int32_t* count, const double* poses,
            const std::int32_t* pose_count, const double* vehicle_from_sensor, float* out, std::int32_t* held, int part,
            int parts);

void crop(const CropParams& p, const float* points, const std::int32_t* count, float* out, std::int32_t* rejected,
          std::int32_t* dropped, std::int32_t* kept);

struct SweepsOperands {
  const float* points = nullptr;
  const std::int32_t* count = nullptr;
  const std::int64_t* stamp = nullptr;
  const double* pose = nullptr;
  const float* past = nullptr;
  const std::int64_t* sweeps = nullptr;
  const double* poses = nullptr;
  float* out = nullptr;
  float* next_past = nullptr;
  std::int64_t* next_sweeps = nullptr;
  double* next_poses = nullptr;
  std::int32_t* forgotten = nullptr;
  std::int32_t* dropped = nullptr;
  std::int32_t* kept = nullptr;
};
void sweeps(const SweepsParams& p, const SweepsOperands& o, int part, int parts);

}  // namespace takt::kernels::reference
