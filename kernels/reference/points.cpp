#include "kernels/reference/points.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {
namespace {

bool in_range(std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; }

TAKT_BOTH std::int64_t clamp_count(const std::int32_t* count, std::int64_t capacity) {
  return count == nullptr ? capacity : std::clamp<std::int64_t>(*count, 0, capacity);
}

struct Rows {
  std::int64_t begin, end;
};
TAKT_BOTH Rows share(std::int64_t rows, int part, int parts) {
  return {rows * part / parts, rows * (part + 1) / parts};
}

TAKT_BOTH bool finite(const double* values, int n) {
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

TAKT_BOTH double dot(const Quaternion& a, const Quaternion& b) { return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z; }
TAKT_BOTH Quaternion mixed(const Quaternion& a, double wa, const Quaternion& b, double wb) {
  return {a.w * wa + b.w * wb, a.x * wa + b.x * wb, a.y * wa + b.y * wb, a.z * wa + b.z * wb};
}
TAKT_BOTH Quaternion normalised(const Quaternion& q) { return mixed(q, 1 / std::sqrt(dot(q, q)), q, 0); }

// Position and quaternion; false when it is no pose.
TAKT_BOTH bool read_pose(const double* row, Pose* out) {
  if (!finite(row, 7)) return false;
  const Quaternion q{row[3], row[4], row[5], row[6]};
  const double length = dot(q, q);
  if (!(length > 1e-6 && length < 1e6)) return false;
  for (int i = 0; i < 3; ++i) out->position[i] = row[i];
  out->rotation = normalised(q);
  return true;
}

TAKT_BOTH Rigid rotation_of(const Quaternion& q) {
  Rigid m;
  m.r[0] = 1 - 2 * (q.y * q.y + q.z * q.z);
  m.r[1] = 2 * (q.x * q.y - q.w * q.z);
  m.r[2] = 2 * (q.x * q.z + q.w * q.y);
  m.r[3] = 2 * (q.x * q.y + q.w * q.z);
  m.r[4] = 1 - 2 * (q.x * q.x + q.z * q.z);
  m.r[5] = 2 * (q.y * q.z - q.w * q.x);
  m.r[6] = 2 * (q.x * q.z - q.w * q.y);
  m.r[7] = 2 * (q.y * q.z + q.w * q.x);
  m.r[8] = 1 - 2 * (q.x * q.x + q.y * q.y);
  return m;
}

// T_to_from of two poses in one world: positions are subtracted first, so that a far origin of the world costs nothing.
TAKT_BOTH Rigid relative(const Pose& to, const Pose& from) {
  const Quaternion& a = to.rotation;
  const Quaternion& b = from.rotation;
  const Quaternion q{a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z, a.w * b.x - a.x * b.w - a.y * b.z + a.z * b.y,
                     a.w * b.y + a.x * b.z - a.y * b.w - a.z * b.x, a.w * b.z - a.x * b.y + a.y * b.x - a.z * b.w};
  Rigid m = rotation_of(normalised(q));
  const Rigid inverse = rotation_of(a);
  double d[3];
  for (int i = 0; i < 3; ++i) d[i] = from.position[i] - to.position[i];
  for (int i = 0; i < 3; ++i) m.t[i] = inverse.r[i] * d[0] + inverse.r[3 + i] * d[1] + inverse.r[6 + i] * d[2];
  return m;
}

}  // namespace

TAKT_BOTH Arc::Arc(const Pose& a, double ta, const Pose& b, double tb) : a_(a), b_(b), ta_(ta), span_(tb - ta) {
  if (dot(a_.rotation, b_.rotation) < 0) b_.rotation = mixed(b_.rotation, -1, b_.rotation, 0);
  const Quaternion chord = mixed(b_.rotation, 1, a_.rotation, -1);
  const Quaternion sum = mixed(b_.rotation, 1, a_.rotation, 1);
  angle_ = 2 * takt::kernels::atan2(std::sqrt(dot(chord, chord)), std::sqrt(dot(sum, sum)));
  // Shorter arcs are straight to the last bit.
  straight_ = angle_ < 1e-7;
  sine_ = straight_ ? 1 : takt::kernels::sin(angle_);
}

TAKT_BOTH Pose Arc::at(double t) const {
  const double u = (t - ta_) / span_;
  Pose out;
  for (int i = 0; i < 3; ++i) out.position[i] = a_.position[i] + (b_.position[i] - a_.position[i]) * u;
  const double wa = straight_ ? 1 - u : takt::kernels::sin((1 - u) * angle_) / sine_;
  const double wb = straight_ ? u : takt::kernels::sin(u * angle_) / sine_;
  out.rotation = normalised(mixed(a_.rotation, wa, b_.rotation, wb));
  return out;
}

const char* invalid(const CloudParams& p) {
  return in_range(p.capacity, kMaxPoints) ? nullptr : "the capacity is out of range";
}

const char* invalid(const DeskewParams& p) {
  if (!in_range(p.capacity, kMaxPoints)) return "the capacity is out of range";
  if (!in_range(p.poses, kMaxPoses)) return "the number of poses is out of range";
  return p.extrapolate_s >= 0 && p.extrapolate_s <= 10 ? nullptr : "extrapolate is not between 0 and 10 s";
}

const char* invalid(const CropParams& p) {
  if (!in_range(p.capacity, kMaxPoints) || !in_range(p.capacity_out, kMaxPoints)) return "a capacity is out of range";
  const auto all_finite = [](const float(&v)[3]) {
    return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
  };
  if (!all_finite(p.min) || !all_finite(p.max) || !all_finite(p.ego_min) || !all_finite(p.ego_max) ||
      !all_finite(p.origin) || !std::isfinite(p.range_min) || !std::isfinite(p.range_max)) {
    return "a limit is not finite";
  }
  for (int d = 0; d < 3; ++d) {
    if (!(p.min[d] < p.max[d])) return "range is empty: least is not below most, so no point would stay";
    if (p.ego_min[d] > p.ego_max[d]) return "ego is turned round: least is above most";
  }
  return p.range_min < p.range_max ? nullptr : "distance is empty: least is not below most, so no point would stay";
}

const char* invalid(const SweepsParams& p) {
  if (!in_range(p.capacity, kMaxPoints) || !in_range(p.capacity_out, kMaxPoints)) return "a capacity is out of range";
  if (!in_range(p.history, kMaxSweeps)) return "the number of sweeps is out of range";
  if (p.capacity * p.history * kPastColumns > 0x7fffffff) return "remembered points are too many";
  return p.age_ns >= 0 && p.gap_ns >= 0 ? nullptr : "age_ms or gap_ms is negative";
}

TAKT_BOTH void cloud(const CloudParams& p, const std::byte* payload, float* points, std::int32_t* count, int part,
                     int parts) {
  const auto* const header = reinterpret_cast<const std::uint32_t*>(payload);
  const std::int64_t n =
      header[1] == static_cast<std::uint64_t>(p.capacity) ? std::min<std::int64_t>(header[0], p.capacity) : 0;
  if (part == 0) *count = static_cast<std::int32_t>(n);
  const auto array = [&](int i) { return payload + 64 + i * cloud_array_bytes(p.capacity); };
  const auto* const x = reinterpret_cast<const float*>(array(0));
  const auto* const y = reinterpret_cast<const float*>(array(1));
  const auto* const z = reinterpret_cast<const float*>(array(2));
  const auto* const intensity = reinterpret_cast<const float*>(array(3));
  const auto* const time = reinterpret_cast<const std::int32_t*>(array(4));
  const Rows rows = share(n, part, parts);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    float* const row = points + i * kPointColumns;
    row[0] = x[i];
    row[1] = y[i];
    row[2] = z[i];
    row[3] = intensity[i];
    row[4] = static_cast<float>(time[i]) * 1e-9F;
  }
}

TAKT_BOTH Deskew::Deskew(const DeskewParams& p, const double* poses, const std::int32_t* pose_count,
                         const double* vehicle_from_sensor)
    : poses_(poses) {
  Pose pose;
  double first = 0, last = 0;
  for (const std::int64_t all = clamp_count(pose_count, p.poses); known_ < all; ++known_) {
    const double t = poses[8 * known_];
    if (!std::isfinite(t) || !(known_ == 0 || t > last) || !read_pose(poses + 8 * known_ + 1, &pose)) break;
    if (known_ == 0) first = t;
    last = t;
  }
  from_ = known_ == 0 ? 0 : first - p.extrapolate_s;
  to_ = known_ == 0 ? 0 : last + p.extrapolate_s;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) sensor_.r[3 * i + j] = vehicle_from_sensor[4 * i + j];
    sensor_.t[i] = vehicle_from_sensor[4 * i + 3];
  }
  if (known_ >= 2) stamp_ = pose_at(0.0 < from_ ? from_ : 0.0 > to_ ? to_ : 0.0);
}

TAKT_BOTH Pose Deskew::pose_at(double t) {
  std::int64_t low = 0;
  while (low + 2 < known_ && t >= poses_[8 * (low + 1)]) ++low;
  if (low != segment_) {
    Pose a, b;
    read_pose(poses_ + 8 * low + 1, &a);
    read_pose(poses_ + 8 * low + 9, &b);
    arc_ = Arc(a, poses_[8 * low], b, poses_[8 * low + 8]);
    segment_ = low;
  }
  return arc_.at(t);
}

TAKT_BOTH void Deskew::move(const float* in, float* out) {
  const double at_sensor[3] = {in[0], in[1], in[2]};
  double at_stamp[3];
  sensor_.apply(at_sensor, at_stamp);
  if (known_ >= 2) {
    double t = in[4];
    t = t >= from_ ? (t < to_ ? t : to_) : from_;
    // Lasers that fire together share an instant.
    if (!has_motion_ || t != time_of_motion_) {
      motion_ = relative(stamp_, pose_at(t));
      time_of_motion_ = t;
      has_motion_ = true;
    }
    const double in_vehicle[3] = {at_stamp[0], at_stamp[1], at_stamp[2]};
    motion_.apply(in_vehicle, at_stamp);
  }
  for (int c = 0; c < 3; ++c) out[c] = static_cast<float>(at_stamp[c]);
  out[3] = in[3];
  out[4] = in[4];
}

TAKT_BOTH void deskew(const DeskewParams& p, const float* points, const std::int32_t* count, const double* poses,
                      const std::int32_t* pose_count, const double* vehicle_from_sensor, float* out, std::int32_t* held,
                      int part, int parts) {
  const std::int64_t n = clamp_count(count, p.capacity);
  Deskew deskew(p, poses, pose_count, vehicle_from_sensor);
  if (part == 0) {
    std::int32_t outside = 0;
    for (std::int64_t i = 0; i < n; ++i) outside += deskew.reaches(points[i * kPointColumns + 4]) ? 0 : 1;
    *held = outside;
  }
  const Rows rows = share(n, part, parts);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    deskew.move(points + i * kPointColumns, out + i * kPointColumns);
  }
}

TAKT_BOTH int crop_reason(const CropParams& p, const float* row) {
  if (!std::isfinite(row[0]) || !std::isfinite(row[1]) || !std::isfinite(row[2])) return 0;
  const auto within = [row](const float(&min)[3], const float(&max)[3]) {
    return row[0] >= min[0] && row[0] < max[0] && row[1] >= min[1] && row[1] < max[1] && row[2] >= min[2] &&
           row[2] < max[2];
  };
  const auto squared = [](double v) { return v * v; };
  const double range = squared(double{row[0]} - p.origin[0]) + squared(double{row[1]} - p.origin[1]) +
                       squared(double{row[2]} - p.origin[2]);
  const double nearest = p.range_min > 0 ? squared(p.range_min) : 0,
               farthest = p.range_max > 0 ? squared(p.range_max) : 0;
  if (!(range >= nearest && range < farthest)) return 1;
  if (!within(p.min, p.max)) return 2;
  return within(p.ego_min, p.ego_max) ? 3 : -1;
}

TAKT_BOTH void crop(const CropParams& p, const float* points, const std::int32_t* count, float* out,
                    std::int32_t* rejected, std::int32_t* dropped, std::int32_t* kept) {
  const std::int64_t n = clamp_count(count, p.capacity);
  std::int64_t wanted = 0;
  std::int32_t counts[kCropReasons] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const float* const row = points + i * kPointColumns;
    if (const int reason = crop_reason(p, row); reason >= 0) {
      ++counts[reason];
      continue;
    }
    if (wanted < p.capacity_out) {
      for (std::int64_t c = 0; c < kPointColumns; ++c) out[wanted * kPointColumns + c] = row[c];
    }
    ++wanted;
  }
  for (std::int64_t r = 0; r < kCropReasons; ++r) rejected[r] = counts[r];
  *kept = static_cast<std::int32_t>(std::min(wanted, p.capacity_out));
  *dropped = static_cast<std::int32_t>(wanted - *kept);
}

TAKT_BOTH void sweeps(const SweepsParams& p, const SweepsOperands& o, int part, int parts) {
  const std::int64_t now = *o.stamp;
  const std::int64_t present = clamp_count(o.count, p.capacity);
  const auto points_of = [&](std::int64_t i) { return std::clamp<std::int64_t>(o.sweeps[2 * i + 1], 0, p.capacity); };
  // Stamps may be anything: unsigned differences do not overflow.
  const auto older_by = [](std::int64_t stamp, std::int64_t than, std::int64_t most) {
    return stamp < than &&
           static_cast<std::uint64_t>(than) - static_cast<std::uint64_t>(stamp) <= static_cast<std::uint64_t>(most);
  };
  Pose here, there;
  const bool placed = read_pose(o.pose, &here);
  std::int64_t used = 0;
  std::int32_t forgotten = 0;
  bool reaches = placed;
  for (std::int64_t i = 0; i < p.history; ++i) {
    const std::int64_t stamp = o.sweeps[2 * i], after = i == 0 ? now : o.sweeps[2 * i - 2];
    reaches = reaches && points_of(i) > 0 && older_by(stamp, after, p.gap_ns) && older_by(stamp, now, p.age_ns) &&
              read_pose(o.poses + 7 * i, &there);
    if (reaches) {
      ++used;
    } else if (points_of(i) > 0) {
      ++forgotten;
    }
  }

  // Rows of the result: the present sweep, then each that is used.
  std::int64_t first = 0;  // row of a sweep
  for (std::int64_t s = -1; s < used; ++s) {
    const std::int64_t n = s < 0 ? present : points_of(s);
    const Rows rows = share(std::min(n, std::max<std::int64_t>(p.capacity_out - first, 0)), part, parts);
    float* const out = o.out + first * kPointColumns;
    if (s < 0) {
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        for (std::int64_t c = 0; c < 4; ++c) out[i * kPointColumns + c] = o.points[i * kPointColumns + c];
        out[i * kPointColumns + 4] = 0;
      }
    } else {
      read_pose(o.poses + 7 * s, &there);
      const Rigid motion = relative(here, there);
      const float age = static_cast<float>(
          static_cast<double>(static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(o.sweeps[2 * s])) * 1e-9);
      const float* const past = o.past + s * p.capacity * kPastColumns;
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const float* const from = past + i * kPastColumns;
        const double before[3] = {from[0], from[1], from[2]};
        double moved[3];
        motion.apply(before, moved);
        float* const to = out + i * kPointColumns;
        for (int c = 0; c < 3; ++c) to[c] = static_cast<float>(moved[c]);
        to[3] = from[3];
        to[4] = age;
      }
    }
    first += n;
  }

  // What is remembered: sweep `from` of the past, -1: the present one.
  const bool remember = present > 0 && placed;
  for (std::int64_t i = 0; i < p.history; ++i) {
    const std::int64_t from = remember ? i - 1 : i;
    const std::int64_t n = from < 0 ? present : (from < used ? points_of(from) : 0);
    if (part == 0) {
      o.next_sweeps[2 * i] = n == 0 ? 0 : (from < 0 ? now : o.sweeps[2 * from]);
      o.next_sweeps[2 * i + 1] = n;
      for (int c = 0; c < 7; ++c) {
        o.next_poses[7 * i + c] = n == 0 ? 0 : (from < 0 ? o.pose[c] : o.poses[7 * from + c]);
      }
    }
    float* const to = o.next_past + i * p.capacity * kPastColumns;
    const Rows rows = share(n, part, parts);
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      const float* const row =
          from < 0 ? o.points + r * kPointColumns : o.past + (from * p.capacity + r) * kPastColumns;
      for (std::int64_t c = 0; c < kPastColumns; ++c) to[r * kPastColumns + c] = row[c];
    }
  }
  if (part == 0) {
    *o.kept = static_cast<std::int32_t>(std::min(first, p.capacity_out));
    *o.dropped = static_cast<std::int32_t>(first - *o.kept);
    *o.forgotten = forgotten;
  }
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
