#include "kernels/reference/tracking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/reference/assignment.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

namespace {

constexpr double kLargestLogDeterminant = 12;  // two axes of 20 m: more uncertain positions cost no more
constexpr double kLogOddsMin = -4, kLogOddsMax = 6;
constexpr float kEvidenceDecay = 0.9F;
constexpr double kGrow = 0.5, kShrink = 0.05;  // share of a new extent that is believed
constexpr double kTurn = 0.3;                  // and of a new yaw
constexpr double kHeadingSpeed = 2;            // m/s above which an object is taken to drive forward
constexpr double kMaxRate = 100;               // m/s; a larger range rate is noise
constexpr float kMaxExtent = 50;               // m; a longer box is noise
constexpr double kPositionKnown = 1e12;        // noise of a position that says nothing new

TAKT_BOTH double clamp_log_odds(double value) {
  return value < kLogOddsMin ? kLogOddsMin : value > kLogOddsMax ? kLogOddsMax : value;
}

// Stamps may be hostile: the difference wraps.
TAKT_BOTH std::int64_t between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns));
}
TAKT_BOTH double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(between(from_ns, to_ns)) * 1e-9;
}

// Tallies are 32 bits wide.
TAKT_BOTH std::int64_t one_more(std::int64_t tally) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(tally) + 1);
}

TAKT_BOTH std::size_t class_of(double value) {
  return value >= 0 && value < kObjectClasses ? static_cast<std::size_t>(value) : std::size_t{0};
}

// A planar rigid transform with its sine and cosine ready: from the vehicle frame into that of the tracks, and back.
class GroundTransform {
 public:
  TAKT_BOTH explicit GroundTransform(const GroundPose& pose) : pose_(pose), c_(cos(pose.yaw)), s_(sin(pose.yaw)) {}
  TAKT_BOTH void direction(double& x, double& y) const {
    const double rx = c_ * x - s_ * y;
    y = s_ * x + c_ * y;
    x = rx;
  }
  TAKT_BOTH void point(double& x, double& y) const {
    direction(x, y);
    x += pose_.x;
    y += pose_.y;
  }
  TAKT_BOTH void inverse_direction(double& x, double& y) const {
    const double rx = c_ * x + s_ * y;
    y = -s_ * x + c_ * y;
    x = rx;
  }
  TAKT_BOTH void inverse_point(double& x, double& y) const {
    x -= pose_.x;
    y -= pose_.y;
    inverse_direction(x, y);
  }

 private:
  GroundPose pose_;
  double c_, s_;
};

TAKT_BOTH GroundPose extrapolate(const EgoSample& from, double dt) {
  // Heading of the middle of the interval: exact to second order on an arc.
  double dx = from.vx * dt, dy = from.vy * dt;
  GroundTransform({0, 0, from.pose.yaw + 0.5 * from.rate * dt}).direction(dx, dy);
  return {from.pose.x + dx, from.pose.y + dy, wrap_angle(from.pose.yaw + from.rate * dt)};
}

TAKT_BOTH double yaw_of(const double (&q)[4]) {
  const double norm2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  return atan2(2 * (q[0] * q[3] + q[1] * q[2]), norm2 - 2 * (q[2] * q[2] + q[3] * q[3]));
}

TAKT_BOTH int kept_of(const std::int64_t* stamps) {
  int count = 0;
  while (count < kEgoSamples && stamps[count] != kNever) ++count;
  return count;
}

}  // namespace

TAKT_BOTH bool ego_usable(const EgoReading& m) {
  bool ok = true;
  for (int i = 0; i < 3; ++i) {
    ok = ok && std::isfinite(m.position[i]) && std::isfinite(m.velocity[i]) && std::isfinite(m.angular_velocity[i]);
  }
  double norm2 = 0;
  for (const double q : m.orientation) norm2 += q * q;
  return ok && std::isfinite(norm2) && norm2 > 1e-6;
}

TAKT_BOTH void ego_motion(std::int64_t stamp_ns, const EgoReading& reading, double jump_limit,
                          const std::int64_t* stamps, const EgoSample* samples, std::int64_t* next_stamps,
                          EgoSample* next_samples) {
  for (int i = 0; i < kEgoSamples; ++i) next_stamps[i] = stamps[i];
  for (int i = 0; i < kEgoRows; ++i) next_samples[i] = samples[i];
  int count = kept_of(stamps);
  if (stamp_ns == kNever || !ego_usable(reading) || (count > 0 && stamp_ns <= stamps[count - 1])) return;

  GroundPose& anchor_world = next_samples[kEgoSamples].pose;
  GroundPose& anchor = next_samples[kEgoSamples + 1].pose;
  const GroundPose world{reading.position[0], reading.position[1], yaw_of(reading.orientation)};
  double dx = world.x - anchor_world.x, dy = world.y - anchor_world.y;
  const double turn = anchor.yaw - anchor_world.yaw;
  GroundTransform({0, 0, turn}).direction(dx, dy);
  GroundPose local{anchor.x + dx, anchor.y + dy, wrap_angle(world.yaw + turn)};
  const GroundPose expected = ego_pose(stamps, samples, stamp_ns);
  const double ex = local.x - expected.x, ey = local.y - expected.y;
  if (count == 0 || ex * ex + ey * ey > jump_limit * jump_limit) {
    anchor_world = world;
    anchor = expected;
    local = expected;
  }
  if (count == kEgoSamples) {
    for (int i = 1; i < kEgoSamples; ++i) {
      next_stamps[i - 1] = next_stamps[i];
      next_samples[i - 1] = next_samples[i];
    }
    --count;
  }
  next_stamps[count] = stamp_ns;
  next_samples[count] = {local, reading.velocity[0], reading.velocity[1], reading.angular_velocity[2]};
}

TAKT_BOTH GroundPose ego_pose(const std::int64_t* stamps, const EgoSample* samples, std::int64_t stamp_ns) {
  const int count = kept_of(stamps);
  if (count == 0 || stamp_ns == kNever) return {};
  if (stamp_ns <= stamps[0]) return extrapolate(samples[0], seconds_between(stamps[0], stamp_ns));
  if (stamp_ns >= stamps[count - 1]) {
    return extrapolate(samples[count - 1], seconds_between(stamps[count - 1], stamp_ns));
  }
  int i = count - 1;
  while (i > 1 && stamps[i - 1] > stamp_ns) --i;
  const GroundPose& a = samples[i - 1].pose;
  const GroundPose& b = samples[i].pose;
  const double t =
      static_cast<double>(between(stamps[i - 1], stamp_ns)) / static_cast<double>(between(stamps[i - 1], stamps[i]));
  return {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), wrap_angle(a.yaw + t * wrap_angle(b.yaw - a.yaw))};
}

namespace {

TAKT_BOTH bool usable_box(const ObjectRow& o) {
  const auto extent = [](float v) { return v > 0.05F && v < kMaxExtent; };
  return (o.means & kMeansBox) != 0 && extent(o.length) && extent(o.width) && extent(o.height) && std::isfinite(o.yaw);
}

TAKT_BOTH bool usable_rate(const ObjectRow& o) {
  if ((o.means & kMeansRate) == 0 || !(std::fabs(o.range_rate) < kMaxRate)) return false;
  const float norm2 = o.ray_x * o.ray_x + o.ray_y * o.ray_y;
  return norm2 > 0.5F && norm2 < 2.0F;
}

TAKT_BOTH Modality modality_of(const ListSource& source) {
  return source.modality == 1 ? Modality::kRadar : source.modality == 2 ? Modality::kCamera : Modality::kLidar;
}

// Noise of a position in the vehicle frame: along and across the ray from the sensor. The object's own variance stands
// for the weaker of the two: a radar's across the ray, a camera's along it; a LiDAR's for both.
TAKT_BOTH void set_noise(const ObjectRow& o, const ListSource& source, Detection& d) {
  const double dx = o.x - source.x, dy = o.y - source.y;
  const double range2 = dx * dx + dy * dy;
  const bool given = std::isfinite(o.position_variance) && o.position_variance > 0;
  double along = source.range_sigma * source.range_sigma + source.range_sigma_share * source.range_sigma_share * range2;
  double across = source.range_sigma * source.range_sigma + source.bearing_sigma * source.bearing_sigma * range2;
  if (given) {
    const double own = o.position_variance;
    switch (modality_of(source)) {
      case Modality::kLidar: along = across = std::max(own, 0.01); break;
      case Modality::kRadar: across = std::max(across, own); break;
      case Modality::kCamera: along = std::max(along, own); break;
    }
  }
  if (range2 < 1e-6) {
    d.noise_xx = d.noise_yy = std::max(along, across);
    d.noise_xy = 0;
    return;
  }
  const double cc = dx * dx / range2, ss = dy * dy / range2, cs = dx * dy / range2;
  d.noise_xx = cc * along + ss * across;
  d.noise_xy = cs * (along - across);
  d.noise_yy = ss * along + cc * across;
}

TAKT_BOTH Detection detection_of(const ObjectRow& o, double range2, const ListSource& source, const GroundPose& pose,
                                 const GroundTransform& odometry) {
  Detection d;
  d.x = o.x;
  d.y = o.y;
  d.z = o.z;
  d.range2 = range2;
  d.object_class = o.object_class < static_cast<std::uint32_t>(kObjectClasses) ? o.object_class : 0;
  if (usable_box(o)) {
    d.has_box = 1;
    d.length = o.length;
    d.width = o.width;
    d.height = o.height;
    d.yaw = wrap_angle(o.yaw + pose.yaw);
  } else if (source.surface_offset != 0) {
    const double dx = d.x - source.x, dy = d.y - source.y;
    const double range = std::sqrt(dx * dx + dy * dy);
    if (range > 1) {
      d.x += source.surface_offset * dx / range;
      d.y += source.surface_offset * dy / range;
    }
  }
  if (usable_rate(o)) {
    const double norm = std::sqrt(double{o.ray_x} * o.ray_x + double{o.ray_y} * o.ray_y);
    d.has_rate = 1;
    d.rate = o.range_rate;
    d.ray_x = o.ray_x / norm;
    d.ray_y = o.ray_y / norm;
    odometry.direction(d.ray_x, d.ray_y);
  }
  // The covariance turns with the vehicle: R C R'.
  set_noise(o, source, d);
  double ax = d.noise_xx, ay = d.noise_xy, bx = d.noise_xy, by = d.noise_yy;
  odometry.direction(ax, ay);
  odometry.direction(bx, by);
  odometry.direction(ax, bx);
  odometry.direction(ay, by);
  d.noise_xx = ax;
  d.noise_xy = 0.5 * (ay + bx);
  d.noise_yy = by;
  odometry.point(d.x, d.y);
  return d;
}

}  // namespace

TAKT_BOTH const ListSource* source_of(const ListInfo& info, std::span<const ListSource> sources) {
  const auto row = static_cast<std::uint64_t>(info.source);
  return row < sources.size() ? &sources[row] : nullptr;
}

TAKT_BOTH Detected detections(const ListOf& list, std::span<const ListSource> sources, const TrackClock& clock,
                              const TrackerModel& model, Detection* out) {
  Detected found;
  const ListSource* const source = source_of({list.stamp_ns, list.source}, sources);
  if (source == nullptr || list.stamp_ns == kNever) return found;
  const bool fresh = clock.time_ns == kNever || list.stamp_ns >= clock.time_ns;
  const std::int64_t late_ns = fresh ? 0 : between(list.stamp_ns, clock.time_ns);
  // A difference beyond 64 bits wraps below zero.
  if (late_ns < 0 || !(static_cast<double>(late_ns) <= model.late_limit_ns)) {
    found.repaired = 1;
    return found;
  }
  found.info = {list.stamp_ns, list.source};
  Moment& moment = found.moment;
  if (fresh) {
    moment.advances = 1;
    moment.dt = clock.time_ns == kNever ? 0 : seconds_between(clock.time_ns, list.stamp_ns);
  } else {
    moment.lag = seconds_between(list.stamp_ns, clock.time_ns);
  }
  const GroundTransform odometry(list.pose);
  moment.sensor_x = source->x;
  moment.sensor_y = source->y;
  odometry.point(moment.sensor_x, moment.sensor_y);
  for (std::int32_t i = 0; i < list.count; ++i) {
    const ObjectRow& o = list.rows[i];
    if ((o.means & kMeansPosition) == 0) continue;
    const double range2 = double{o.x} * o.x + double{o.y} * o.y;
    if (!std::isfinite(o.x) || !std::isfinite(o.y) || !std::isfinite(o.z) ||
        range2 > model.range_max * model.range_max) {
      found.repaired = 1;
      continue;
    }
    out[found.count++] = detection_of(o, range2, *source, list.pose, odometry);
  }
  return found;
}

template <int states>
TAKT_BOTH void kalman_predict(const Moment& moment, const TrackerModel& model, const Filter<states>* motion,
                              Filter<states>* next, Rows rows) {
  for (std::int32_t t = rows.begin; t < rows.end; ++t) {
    next[t] = motion[t];
    if (moment.advances != 0) predict(next[t], moment.dt, model);
  }
}

namespace {

TAKT_BOTH Measurement measurement_of(const Detection& d, const Moment& moment, const ListSource& source,
                                     const TrackerModel& model) {
  Measurement m;
  m.x = d.x;
  m.y = d.y;
  m.noise_xx = d.noise_xx;
  m.noise_xy = d.noise_xy;
  m.noise_yy = d.noise_yy;
  m.lag = moment.lag;
  m.q = model.acceleration_density;
  m.has_rate = d.has_rate != 0;
  m.rate = d.rate;
  m.ray_x = d.ray_x;
  m.ray_y = d.ray_y;
  m.rate_variance = source.rate_sigma * source.rate_sigma;
  return m;
}

}  // namespace

template <int states>
TAKT_BOTH void gate(const Filter<states>* motion, std::span<const Detection> objects, std::int32_t capacity,
                    const Moment& moment, const ListSource* source, const TrackerModel& model, double* cost,
                    Rows rows) {
  const double gate2 = model.gate_distance * model.gate_distance;
  for (std::int32_t t = rows.begin; t < rows.end; ++t) {
    double* const row = cost + std::int64_t{t} * capacity;
    for (std::int32_t o = 0; o < capacity; ++o) row[o] = kNotAllowed;
    if (source == nullptr) continue;
    const GroundVelocity velocity = velocity_of(motion[t]);
    const double x = motion[t].state[0] - moment.lag * velocity.x, y = motion[t].state[1] - moment.lag * velocity.y;
    for (std::size_t o = 0; o < objects.size(); ++o) {
      const double dx = objects[o].x - x, dy = objects[o].y - y;
      if (dx * dx + dy * dy > gate2) continue;
      const GateDistance distance = gate(motion[t], measurement_of(objects[o], moment, *source, model));
      if (distance.distance2 > model.gate_chi2) continue;
      const double uncertain = distance.log_determinant;
      row[o] = distance.distance2 + (uncertain > kLargestLogDeterminant ? kLargestLogDeterminant : uncertain);
    }
  }
}

TAKT_BOTH double unassigned_cost(const TrackerModel& model) { return model.gate_chi2 + kLargestLogDeterminant; }

namespace {

// Box yaw is known up to a half turn (up to a quarter turn, with the sides changed, when they are nearly equal): takes
// the reading nearest to the track's yaw.
TAKT_BOTH void fold_yaw(double reference, Detection& d) {
  double turn = wrap_angle(d.yaw - reference);
  if (std::fabs(turn) > kPi / 2) turn = wrap_angle(turn + kPi);
  if (std::fabs(turn) > kPi / 4 && d.length < 1.4 * d.width) {
    turn -= turn > 0 ? kPi / 2 : -kPi / 2;
    std::swap(d.length, d.width);
  }
  d.yaw = wrap_angle(reference + turn);
}

TAKT_BOTH void follow_extent(double& value, double measured) {
  value += (measured > value ? kGrow : kShrink) * (measured - value);
}

TAKT_BOTH void follow_box(const Detection& d, TrackBody& track) {
  if (track.has_box == 0) {
    track.length = d.length;
    track.width = d.width;
    track.height = d.height;
    track.yaw = d.yaw;
    track.has_box = 1;
    return;
  }
  follow_extent(track.length, d.length);
  follow_extent(track.width, d.width);
  follow_extent(track.height, d.height);
  track.yaw = wrap_angle(track.yaw + kTurn * wrap_angle(d.yaw - track.yaw));
}

// A partly seen box ends where the rays end: its near side is right, its far side is not. Moves the centre of a box
// shorter (narrower) than the track's away from the sensor by half of what is missing.
TAKT_BOTH void complete_box(const Moment& moment, const TrackBody& track, Detection& d) {
  const double c = cos(track.yaw), s = sin(track.yaw);
  const double away_x = d.x - moment.sensor_x, away_y = d.y - moment.sensor_y;
  const auto shift = [&](double ux, double uy, double missing, double half) {
    if (missing <= 0 || half <= 0) return;
    const double side = std::clamp((away_x * ux + away_y * uy) / half, -1.0, 1.0);
    d.x += 0.5 * missing * side * ux;
    d.y += 0.5 * missing * side * uy;
  };
  shift(c, s, track.length - d.length, 0.5 * track.length);
  shift(-s, c, track.width - d.width, 0.5 * track.width);
}

}  // namespace

TAKT_BOTH void align(const TrackBody* body, std::span<const Detection> objects, const std::int32_t* column,
                     const Moment& moment, Aligned* out, Rows rows) {
  for (std::int32_t t = rows.begin; t < rows.end; ++t) {
    Aligned& a = out[t];
    a = {};
    const auto object = static_cast<std::uint32_t>(column[t]);
    if (object >= objects.size()) continue;
    a.given = 1;
    a.detection = objects[object];
    if (a.detection.has_box == 0) continue;
    TrackBody followed = body[t];
    if (followed.has_box != 0) fold_yaw(followed.yaw, a.detection);
    follow_box(a.detection, followed);
    complete_box(moment, followed, a.detection);
  }
}

template <int states>
TAKT_BOTH void kalman_update(const Filter<states>* motion, const Aligned* aligned, const Moment& moment,
                             const ListSource* source, const TrackerModel& model, Filter<states>* next, Rows rows) {
  for (std::int32_t t = rows.begin; t < rows.end; ++t) {
    next[t] = motion[t];
    if (aligned[t].given == 0 || source == nullptr) continue;
    Measurement m = measurement_of(aligned[t].detection, moment, *source, model);
    m.has_yaw = aligned[t].detection.has_box != 0;
    m.yaw = aligned[t].detection.yaw;
    m.yaw_variance = model.yaw_sigma * model.yaw_sigma;
    update(next[t], m);
  }
}

namespace {

// Vehicles drive forward: above walking speed a yaw against the velocity is a flip.
TAKT_BOTH void face_velocity(const GroundVelocity& v, TrackBody& track) {
  if (v.x * v.x + v.y * v.y < kHeadingSpeed * kHeadingSpeed) return;
  const double heading = atan2(v.y, v.x);
  if (track.has_box == 0) {
    track.yaw = heading;
  } else if (std::fabs(wrap_angle(track.yaw - heading)) > kPi / 2) {
    track.yaw = wrap_angle(track.yaw + kPi);
  }
}

TAKT_BOTH void add_class(TrackBody& track, double object_class, double weight) {
  const std::size_t row = class_of(object_class);
  if (row == 0) return;
  for (double& evidence : track.evidence) evidence = static_cast<float>(evidence) * kEvidenceDecay;
  track.evidence[row] = static_cast<float>(track.evidence[row]) + static_cast<float>(weight);
}

// Most evidence; ties to the lower class.
TAKT_BOTH std::size_t best_class(const TrackBody& track) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < kObjectClasses; ++c) {
    if (track.evidence[c] > track.evidence[best]) best = c;
  }
  return best;
}

TAKT_BOTH void take_usual(const Extent& usual, TrackBody& track) {
  track.length = usual.length;
  track.width = usual.width;
  track.height = usual.height;
}

TAKT_BOTH std::int64_t sensor_bit(const ListSource& source) {
  return source.sensor >= 0 && source.sensor < 1e9 ? std::int64_t{1} << (static_cast<std::uint32_t>(source.sensor) % 32)
                                                   : std::int64_t{1};
}

}  // namespace

template <int states>
TAKT_BOTH void track_update(const TrackTables& tracks, const Aligned* aligned, const Filter<states>* motion,
                            const ListInfo& info, const ListSource* source, const Extent* usual, bool opens,
                            TrackBody* next_body, TrackLife* next_life, Rows rows) {
  for (std::int32_t t = rows.begin; t < rows.end; ++t) {
    TrackBody& body = next_body[t];
    TrackLife& life = next_life[t];
    body = tracks.body[t];
    life = tracks.life[t];
    if (opens) life.sensors_now = 0;
    if (source == nullptr) continue;
    const std::int64_t bit = sensor_bit(*source);
    if (aligned[t].given == 0) {
      if ((life.sensors_ever & bit) != 0) body.log_odds = clamp_log_odds(body.log_odds - source->miss_log_odds);
      continue;
    }
    const Detection& d = aligned[t].detection;
    if (d.has_box != 0) {
      follow_box(d, body);
      body.z += 0.5 * (d.z - body.z);
    }
    face_velocity(velocity_of(motion[t]), body);
    add_class(body, d.object_class, source->class_weight);
    if (body.has_box == 0) take_usual(usual[best_class(body)], body);
    body.log_odds = clamp_log_odds(body.log_odds + source->hit_log_odds);
    life.hits = one_more(life.hits);
    life.updated_ns = std::max(life.updated_ns, info.stamp_ns);
    life.sensors_now |= bit;
    life.sensors_ever |= bit;
  }
}

namespace {

// True when a point lies in a track's box grown by `margin` on each side.
template <int states>
TAKT_BOTH bool covers(const Filter<states>& motion, const TrackBody& body, double x, double y, double margin) {
  const double dx = x - motion.state[0], dy = y - motion.state[1];
  const double reach = 0.5 * (body.length + body.width) + 2 * margin;  // of every corner
  if (dx * dx + dy * dy > reach * reach) return false;
  const double c = cos(body.yaw), s = sin(body.yaw);
  return std::fabs(c * dx + s * dy) <= 0.5 * body.length + margin &&
         std::fabs(-s * dx + c * dy) <= 0.5 * body.width + margin;
}

// Nearest first, ties by index. Heap sort: in place, and bounded whatever the numbers are.
TAKT_BOTH void sort_by_range(std::span<const Detection> objects, std::span<std::int32_t> order) {
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const double ra = objects[static_cast<std::size_t>(a)].range2, rb = objects[static_cast<std::size_t>(b)].range2;
    return ra < rb || (!(rb < ra) && a < b);
  };
  const auto sift = [&](std::size_t at, std::size_t size) {
    for (std::size_t child = 2 * at + 1; child < size; at = child, child = 2 * at + 1) {
      if (child + 1 < size && before(order[child], order[child + 1])) ++child;
      if (!before(order[at], order[child])) return;
      std::swap(order[at], order[child]);
    }
  };
  for (std::size_t i = order.size() / 2; i-- > 0;) sift(i, order.size());
  for (std::size_t size = order.size(); size > 1;) {
    std::swap(order[0], order[--size]);
    sift(0, size);
  }
}

template <int states>
TAKT_BOTH void start_track(const Detection& d, const Moment& moment, const ListSource& source,
                           const TrackerModel& model, const Extent* usual, Filter<states>& motion, TrackBody& body) {
  // A late list starts a track at its own stamp; with nothing known of its speed the mean stays, the noise grows.
  begin(motion, d, model);
  if (d.has_rate != 0) {
    Measurement rate = measurement_of(d, moment, source, model);
    rate.noise_xx = rate.noise_yy = kPositionKnown;  // the position is in already
    rate.lag = 0;
    update(motion, rate);
  }
  predict(motion, moment.lag, model);
  body = {};
  add_class(body, d.object_class, source.class_weight);
  take_usual(usual[class_of(d.object_class)], body);
  body.z = d.z;
  if (d.has_box != 0) follow_box(d, body);
  face_velocity(velocity_of(motion), body);
  body.log_odds = clamp_log_odds(model.birth_log_odds + source.hit_log_odds);
}

// The list moves the clock; whether it may start tracks.
TAKT_BOTH bool may_start(const ListSource& source, const Moment& moment, const ListInfo& info,
                         const TrackerModel& model, TrackClock& clock) {
  if (moment.advances != 0) clock.time_ns = info.stamp_ns;
  const bool camera = modality_of(source) == Modality::kCamera;
  if (!camera) clock.ranging_ns = std::max(clock.ranging_ns, info.stamp_ns);
  const bool ranging_alive =
      clock.ranging_ns != kNever &&
      static_cast<double>(between(clock.ranging_ns, info.stamp_ns)) <= model.late_limit_ns + model.coast_ns;
  return !camera || !ranging_alive;
}

template <int states>
TAKT_BOTH void add_track(const Detection& d, const Moment& moment, const ListInfo& info, const ListSource& source,
                         const TrackerModel& model, const Extent* usual, TrackTable<states>& table, TrackClock& clock) {
  const std::int32_t t = table.count++;
  start_track(d, moment, source, model, usual, table.motion[t], table.body[t]);
  TrackLife& life = table.life[t];
  life = {};
  life.id = clock.next_id;
  clock.next_id = one_more(clock.next_id);
  life.hits = 1;
  life.sensors_now = life.sensors_ever = sensor_bit(source);
  life.updated_ns = info.stamp_ns;
}

}  // namespace

template <int states>
TAKT_BOTH std::int32_t birth(std::span<const Detection> objects, std::span<const std::int32_t> column,
                             const Moment& moment, const ListInfo& info, const ListSource* source,
                             const TrackerModel& model, const Extent* usual, TrackTable<states>& table,
                             TrackClock& clock, std::int32_t* order, std::uint8_t* used) {
  if (source == nullptr || !may_start(*source, moment, info, model, clock)) return 0;
  for (std::size_t o = 0; o < objects.size(); ++o) used[o] = 0;
  for (const std::int32_t c : column) {
    if (static_cast<std::uint32_t>(c) < objects.size()) used[c] = 1;
  }
  std::size_t unused = 0;
  for (std::size_t o = 0; o < objects.size(); ++o) {
    if (used[o] == 0) order[unused++] = static_cast<std::int32_t>(o);
  }
  sort_by_range(objects, {order, unused});
  std::int32_t dropped = 0;
  for (std::size_t k = 0; k < unused; ++k) {
    const Detection& d = objects[static_cast<std::size_t>(order[k])];
    bool known = false;
    for (std::int32_t t = 0; t < table.count && !known; ++t) {
      known = covers(table.motion[t], table.body[t], d.x, d.y, model.duplicate_margin);
    }
    if (known) continue;
    if (table.count >= table.capacity) {
      ++dropped;
      continue;
    }
    add_track(d, moment, info, *source, model, usual, table, clock);
  }
  return dropped;
}

namespace {

// Whether track `a` is the better proven one of two.
TAKT_BOTH bool better_proven(const TrackBody& a_body, const TrackLife& a, const TrackBody& b_body, const TrackLife& b) {
  if ((a.confirmed != 0) != (b.confirmed != 0)) return a.confirmed != 0;
  if ((a_body.has_box != 0) != (b_body.has_box != 0)) return a_body.has_box != 0;
  if (a.hits != b.hits) return a.hits > b.hits;
  return a.id < b.id;
}

// A track at the end of a cycle; whether it lives on.
TAKT_BOTH bool judge(const TrackBody& body, const TrackLife& life, std::int64_t now_ns, const TrackerModel& model,
                     TrackLife& judged) {
  judged = life;
  judged.misses = judged.sensors_now != 0 ? 0 : one_more(judged.misses);
  if (static_cast<double>(judged.hits) >= model.confirm_hits && body.log_odds >= model.confirm_log_odds) {
    judged.confirmed = 1;
  }
  const double coast = judged.confirmed != 0 ? model.coast_ns : model.tentative_coast_ns;
  const double least = judged.confirmed != 0 ? model.delete_log_odds : model.birth_log_odds;
  const auto silent = static_cast<double>(between(judged.updated_ns, now_ns));
  return !(body.log_odds < least || silent > coast);
}

// Whether two tracks are one object.
template <int states>
TAKT_BOTH bool duplicates(const Filter<states>& a, const TrackBody& a_body, const Filter<states>& b,
                          const TrackBody& b_body, const TrackerModel& model) {
  const GroundVelocity va = velocity_of(a), vb = velocity_of(b);
  const double dvx = va.x - vb.x, dvy = va.y - vb.y;
  if (dvx * dvx + dvy * dvy > model.duplicate_speed * model.duplicate_speed) return false;
  return covers(a, a_body, b.state[0], b.state[1], model.duplicate_margin) ||
         covers(b, b_body, a.state[0], a.state[1], model.duplicate_margin);
}

}  // namespace

template <int states>
TAKT_BOTH void death(const Filter<states>* motion, const TrackBody* body, const TrackLife* life, std::int32_t count,
                     std::int64_t now_ns, const TrackerModel& model, TrackTable<states>& survivors, TrackLife* judged,
                     std::uint8_t* alive) {
  for (std::int32_t t = 0; t < count; ++t) alive[t] = judge(body[t], life[t], now_ns, model, judged[t]) ? 1 : 0;
  for (std::int32_t i = 0; i < count; ++i) {
    for (std::int32_t j = i + 1; j < count && alive[i] != 0; ++j) {
      if (alive[j] == 0 || !duplicates(motion[i], body[i], motion[j], body[j], model)) continue;
      alive[better_proven(body[i], judged[i], body[j], judged[j]) ? j : i] = 0;
    }
  }
  survivors.count = 0;
  for (std::int32_t t = 0; t < count; ++t) {
    if (alive[t] == 0) continue;
    const std::int32_t to = survivors.count++;
    survivors.motion[to] = motion[t];
    survivors.body[to] = body[t];
    survivors.life[to] = judged[t];
  }
}

template <int states>
TAKT_BOTH std::int32_t track_output(const Filter<states>* motion, const TrackBody* body, const TrackLife* life,
                                    std::int32_t count, std::int64_t time_ns, std::int64_t now_ns,
                                    const GroundPose& pose, const TrackerModel& model, TrackRow* out) {
  const GroundTransform odometry(pose);
  const double dt = time_ns == kNever ? 0 : seconds_between(time_ns, now_ns);
  std::int32_t written = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    if (life[i].confirmed == 0) continue;
    Filter<states> now = motion[i];
    predict(now, dt, model);
    const GroundVelocity velocity = velocity_of(now);
    double x = now.state[0], y = now.state[1], vx = velocity.x, vy = velocity.y;
    odometry.inverse_point(x, y);
    odometry.inverse_direction(vx, vy);
    TrackRow& t = out[written++];
    t.id = static_cast<std::uint32_t>(life[i].id);
    t.object_class = static_cast<std::uint32_t>(best_class(body[i]));
    t.x = static_cast<float>(x);
    t.y = static_cast<float>(y);
    t.z = static_cast<float>(body[i].z);
    t.length = static_cast<float>(body[i].length);
    t.width = static_cast<float>(body[i].width);
    t.height = static_cast<float>(body[i].height);
    t.yaw = static_cast<float>(wrap_angle(body[i].yaw - pose.yaw));
    t.vx = static_cast<float>(vx);
    t.vy = static_cast<float>(vy);
    t.position_variance = static_cast<float>(0.5 * (now.covariance[0][0] + now.covariance[1][1]));
    t.score = static_cast<float>(1 / (1 + exp(-body[i].log_odds)));
    t.hits = static_cast<std::uint32_t>(life[i].hits);
    t.misses = static_cast<std::uint32_t>(life[i].misses);
    t.sensors = static_cast<std::uint32_t>(life[i].sensors_now);
  }
  return written;
}

#define TAKT_TRACKING(states)                                                                                          \
  template TAKT_BOTH void kalman_predict(const Moment&, const TrackerModel&, const Filter<states>*, Filter<states>*,   \
                                         Rows);                                                                        \
  template TAKT_BOTH void gate(const Filter<states>*, std::span<const Detection>, std::int32_t, const Moment&,         \
                               const ListSource*, const TrackerModel&, double*, Rows);                                 \
  template TAKT_BOTH void kalman_update(const Filter<states>*, const Aligned*, const Moment&, const ListSource*,       \
                                        const TrackerModel&, Filter<states>*, Rows);                                   \
  template TAKT_BOTH void track_update(const TrackTables&, const Aligned*, const Filter<states>*, const ListInfo&,     \
                                       const ListSource*, const Extent*, bool, TrackBody*, TrackLife*, Rows);          \
  template TAKT_BOTH std::int32_t birth(std::span<const Detection>, std::span<const std::int32_t>, const Moment&,      \
                                        const ListInfo&, const ListSource*, const TrackerModel&, const Extent*,        \
                                        TrackTable<states>&, TrackClock&, std::int32_t*, std::uint8_t*);               \
  template TAKT_BOTH void death(const Filter<states>*, const TrackBody*, const TrackLife*, std::int32_t, std::int64_t, \
                                const TrackerModel&, TrackTable<states>&, TrackLife*, std::uint8_t*);                  \
  template TAKT_BOTH std::int32_t track_output(const Filter<states>*, const TrackBody*, const TrackLife*,              \
                                               std::int32_t, std::int64_t, std::int64_t, const GroundPose&,            \
                                               const TrackerModel&, TrackRow*);
TAKT_TRACKING(4)
TAKT_TRACKING(5)
#undef TAKT_TRACKING

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
