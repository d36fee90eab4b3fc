// takt's operators on points: a sweep's payload to rows, motion compensation, crop, accumulation of sweeps. What each
// means, its order and its capacities stand here; reference, kernels, shape rules and docs/operators.md follow it.
//
// Points are rows f32[capacity][kPointColumns]: x y z (m), intensity, time (s, see the operator). Counts are clamped to
// the capacity; rows behind a count are never read.
#pragma once

#include <cstdint>

namespace takt::kernels {

inline constexpr std::int64_t kPointColumns = 5;
inline constexpr std::int64_t kMaxPoints = std::int64_t{1} << 24;  // of a capacity
inline constexpr std::int64_t kMaxSweeps = 32;                     // remembered ones
inline constexpr std::int64_t kMaxPoses = 1024;

// takt.Cloud: payload u8 -> points, count. The payload is a structure of arrays (sensors::PointCloud): u32 count, u32
// capacity, 8 bytes, and from byte 64 on x y z intensity (f32) and time (i32, ns from the stamp), each array of
// `capacity` elements from a multiple of 64 bytes on. A payload that names another capacity has no points.
struct CloudParams {
  std::int64_t capacity = 1;
};
constexpr std::int64_t cloud_array_bytes(std::int64_t capacity) { return (capacity * 4 + 63) / 64 * 64; }
constexpr std::int64_t cloud_bytes(std::int64_t capacity) { return 64 + 5 * cloud_array_bytes(capacity); }

// takt.Deskew: points of a sensor, time from the stamp; poses f64[k][8] counted (time s from the same stamp, position
// m, quaternion w x y z: T_world_vehicle), ascending in time; sensor f64[3][4], T_vehicle_sensor -> points in the
// vehicle frame at the stamp, each from where it was measured, order and columns 3 and 4 unchanged; held i32. Between
// two poses: position linear, rotation along the shorter arc at constant speed. Outside them the motion of the nearest
// two goes on, for at most `extrapolate_s`; a point further outside, or with a time that is NaN, is moved as one at
// that end and counted in `held`. Poses are taken up to the first that is not finite, not later than the one before, or
// has no length. One pose: no motion. No pose: the points are taken as measured at the stamp, none is held.
struct DeskewParams {
  std::int64_t capacity = 1, poses = 1;
  double extrapolate_s = 0.1;
};

// takt.Crop: points -> the points that are looked at, in their order; rejected i32[4]; dropped i32; count. A point is
// rejected by the first rule that it breaks and counted there: 0 a coordinate is NaN or infinite, 1 the distance from
// `origin` is outside [range_min, range_max), 2 outside the box [min, max), 3 inside the box [ego_min, ego_max): the
// vehicle itself. Beyond the capacity the last points are dropped.
struct CropParams {
  std::int64_t capacity = 1, capacity_out = 1;
  float min[3] = {}, max[3] = {};
  float ego_min[3] = {}, ego_max[3] = {};  // empty where min is max
  float origin[3] = {};
  float range_min = 0, range_max = 0;
  std::int32_t reserved = 0;
};
inline constexpr std::int64_t kCropReasons = 4;

// takt.Sweeps: the points of this sweep and of those before it, in the vehicle frame of this one.
//   points f32[capacity][5] counted, stamp i64[1] (ns), pose f64[7] (position, quaternion w x y z: T_world_vehicle at
//   the stamp), and what was remembered: past f32[history][capacity][4] (x y z intensity in the vehicle frame of their
//   stamp), sweeps i64[history][2] (stamp, points), poses f64[history][7], newest first
//   -> points f32[capacity_out][5] counted, column 4 the age of the sweep (s); the next past, sweeps, poses; forgotten
//   i32; dropped i32.
// A sweep without points is none. A remembered one is used when it is older than the one after it (the present one, for
// the newest), by at most `gap_ns`, and at most `age_ns` older than the present one. The first that is not, and all
// behind it, are forgotten, and counted: history does not reach over a gap, and not into the future after a jump back.
// A pose that is not finite or has no length is a gap too. Order: newest sweep first, points in their own; beyond the
// capacity the last ones are dropped. What is remembered next: this sweep, if it has points and a pose, before those
// that were used; the oldest beyond `history` is left out.
struct SweepsParams {
  std::int64_t capacity = 1, history = 1, capacity_out = 1;
  std::int64_t age_ns = 0, gap_ns = 0;
};
inline constexpr std::int64_t kPastColumns = 4;

static_assert(sizeof(CloudParams) == 8 && sizeof(DeskewParams) == 24);
static_assert(sizeof(CropParams) == 88 && sizeof(SweepsParams) == 40);

}  // namespace takt::kernels
