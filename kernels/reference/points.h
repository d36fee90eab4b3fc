// The operators of kernels/points.h. Row-wise ones take a part of the rows; all parts together do the whole, whatever
// their number, and none reads what another writes. Allocate nothing. A count that is nullptr is the
// capacity. The kernels of plans call these: the loops are
// short, and memory is what they wait for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device_code.h"
#include "kernels/points.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

// nullptr, or what is wrong with the parameters: extents, sizes that overflow, numbers that are not finite.
const char* invalid(const CloudParams& p);
const char* invalid(const DeskewParams& p);
const char* invalid(const CropParams& p);
const char* invalid(const SweepsParams& p);

// --- what Deskew and Sweeps are made of ----------------------------------------------------------------------------
// w x y z
struct Quaternion {
  double w = 1, x = 0, y = 0, z = 0;
};
struct Pose {
  double position[3] = {};
  Quaternion rotation;
};
// [R|t], rows.
struct Rigid {
  double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  double t[3] = {};

  TAKT_BOTH void apply(const double* p, double* out) const {
    for (std::ptrdiff_t i = 0; i < 3; ++i) {
      const double* const row = r + 3 * i;
      out[i] = row[0] * p[0] + row[1] * p[1] + row[2] * p[2] + t[i];
    }
  }
};
// Between, and beyond, two poses with times.
class Arc {
 public:
  Arc() = default;
  TAKT_BOTH Arc(const Pose& a, double ta, const Pose& b, double tb);
  [[nodiscard]] TAKT_BOTH Pose at(double t) const;

 private:
  Pose a_, b_;
  double ta_ = 0, span_ = 1;
  double angle_ = 0, sine_ = 1;  // of the arc between the unit quaternions: at most pi/2
  bool straight_ = true;
};

// The motion of a sweep; keeps what neighbouring points share.
class Deskew {
 public:
  TAKT_BOTH Deskew(const DeskewParams& p, const double* poses, const std::int32_t* pose_count,
                   const double* vehicle_from_sensor);
  // Whether the motion at an instant is known; a point at another is `held`.
  [[nodiscard]] TAKT_BOTH bool reaches(double t) const { return known_ == 0 || (t >= from_ && t <= to_); }
  TAKT_BOTH void move(const float* in, float* out);  // rows of kPointColumns

 private:
  TAKT_BOTH Pose pose_at(double t);

  const double* poses_;
  std::int64_t known_ = 0;
  double from_ = 0, to_ = 0;
  Rigid sensor_;
  Pose stamp_;
  Arc arc_;  // of the poses around an instant, kept while points stay on it
  std::int64_t segment_ = -1;
  Rigid motion_;
  double time_of_motion_ = 0;
  bool has_motion_ = false;
};

// The rule of Crop that a point breaks; -1: none.
TAKT_BOTH int crop_reason(const CropParams& p, const float* row);

// --- the operators ---------------------------------------------------------------------------------------------------
TAKT_BOTH void cloud(const CloudParams& p, const std::byte* payload, float* points, std::int32_t* count, int part,
                     int parts);

// `poses`: the first *pose_count rows are valid.
TAKT_BOTH void deskew(const DeskewParams& p, const float* points, const std::int32_t* count, const double* poses,
                      const std::int32_t* pose_count, const double* vehicle_from_sensor, float* out, std::int32_t* held,
                      int part, int parts);

TAKT_BOTH void crop(const CropParams& p, const float* points, const std::int32_t* count, float* out,
                    std::int32_t* rejected, std::int32_t* dropped, std::int32_t* kept);

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
TAKT_BOTH void sweeps(const SweepsParams& p, const SweepsOperands& o, int part, int parts);

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
