#include "pipeline/stages/tracker.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/usual_extent.h"

namespace takt::pipeline {

namespace {

constexpr double kLargestLogDeterminant = 12;  // two axes of 20 m: more uncertain positions cost no more
constexpr double kLogOddsMin = -4, kLogOddsMax = 6;
constexpr float kEvidenceDecay = 0.9F;
constexpr double kGrow = 0.5, kShrink = 0.05;  // share of a new extent that is believed
constexpr double kTurn = 0.3;                  // and of a new yaw
constexpr double kHeadingSpeed = 2;            // m/s above which an object is taken to drive forward

double clamp_log_odds(double value) { return std::clamp(value, kLogOddsMin, kLogOddsMax); }

double seconds_between(std::int64_t from_ns, std::int64_t to_ns) { return static_cast<double>(to_ns - from_ns) * 1e-9; }

void add_class(TrackState& track, ObjectClass object_class, double weight) {
  if (object_class == ObjectClass::kUnknown) return;
  for (float& evidence : track.class_evidence) evidence *= kEvidenceDecay;
  track.class_evidence[static_cast<std::size_t>(object_class) % kObjectClasses] += static_cast<float>(weight);
}

// A partly seen box ends where the rays end: its near side is right, its far side is not. Moves the centre of a box
// shorter (narrower) than the track's away from the sensor by half of what is missing.
void complete_box(const DetectionList& list, const TrackState& track, double& x, double& y, const Detection& d) {
  const double c = kernels::cos(track.yaw), s = kernels::sin(track.yaw);
  const double away_x = d.x - list.sensor_x, away_y = d.y - list.sensor_y;
  const auto shift = [&](double ux, double uy, double missing, double half) {
    if (missing <= 0 || half <= 0) return;
    const double side = std::clamp((away_x * ux + away_y * uy) / half, -1.0, 1.0);
    x += 0.5 * missing * side * ux;
    y += 0.5 * missing * side * uy;
  };
  shift(c, s, track.length - d.length, 0.5 * track.length);
  shift(-s, c, track.width - d.width, 0.5 * track.width);
}

// Box yaw is known up to a half turn (up to a quarter turn, with the sides changed, when they are nearly equal): takes
// the reading nearest to the track's yaw.
void fold_yaw(double reference, Detection& d) {
  double turn = kernels::wrap_angle(d.yaw - reference);
  if (std::fabs(turn) > kernels::kPi / 2) turn = kernels::wrap_angle(turn + kernels::kPi);
  if (std::fabs(turn) > kernels::kPi / 4 && d.length < 1.4 * d.width) {
    turn -= turn > 0 ? kernels::kPi / 2 : -kernels::kPi / 2;
    std::swap(d.length, d.width);
  }
  d.yaw = kernels::wrap_angle(reference + turn);
}

void follow_extent(double& value, double measured) {
  value += (measured > value ? kGrow : kShrink) * (measured - value);
}

void follow_box(const Detection& d, TrackState& track) {
  if (!track.has_box) {
    track.length = d.length;
    track.width = d.width;
    track.height = d.height;
    track.yaw = d.yaw;
    track.has_box = true;
    return;
  }
  follow_extent(track.length, d.length);
  follow_extent(track.width, d.width);
  follow_extent(track.height, d.height);
  track.yaw = kernels::wrap_angle(track.yaw + kTurn * kernels::wrap_angle(d.yaw - track.yaw));
}

// Vehicles drive forward: above walking speed a yaw against the velocity is a flip.
void face_velocity(TrackState& track) {
  const double vx = track.filter.state[2], vy = track.filter.state[3];
  if (vx * vx + vy * vy < kHeadingSpeed * kHeadingSpeed) return;
  const double heading = kernels::atan2(vy, vx);
  if (!track.has_box) {
    track.yaw = heading;
  } else if (std::fabs(kernels::wrap_angle(track.yaw - heading)) > kernels::kPi / 2) {
    track.yaw = kernels::wrap_angle(track.yaw + kernels::kPi);
  }
}

// Whether `a` is the better proven one of two tracks.
bool better_proven(const TrackState& a, const TrackState& b) {
  if (a.confirmed != b.confirmed) return a.confirmed;
  if (a.has_box != b.has_box) return a.has_box;
  if (a.hits != b.hits) return a.hits > b.hits;
  return a.id < b.id;
}

}  // namespace

ObjectClass TrackState::object_class() const {
  std::size_t best = 0;
  for (std::size_t c = 1; c < kObjectClasses; ++c) {
    if (class_evidence[c] > class_evidence[best]) best = c;
  }
  return static_cast<ObjectClass>(best);
}

bool TrackState::covers(double x, double y, double margin) const {
  const double dx = x - filter.state[0], dy = y - filter.state[1];
  const double reach = 0.5 * (length + width) + 2 * margin;  // of every corner
  if (dx * dx + dy * dy > reach * reach) return false;
  const double c = kernels::cos(yaw), s = kernels::sin(yaw);
  return std::fabs(c * dx + s * dy) <= 0.5 * length + margin && std::fabs(-s * dx + c * dy) <= 0.5 * width + margin;
}

Tracker::Tracker(const TrackerParameters& parameters) : parameters_(parameters), assignment_(kMaxTracks, kMaxObjects) {}

void Tracker::begin(const TrackTable& from, TrackTable& to) const {
  to.time_ns = from.time_ns;
  to.ranging_ns = from.ranging_ns;
  to.next_id = from.next_id;
  to.count = 0;
  for (std::uint32_t i = 0; i < from.count; ++i) {
    if (!from.tracks[i].alive) continue;
    TrackState& track = to.tracks[to.count++];
    track = from.tracks[i];
    track.sensors_now = 0;
  }
  dropped_ = 0;
}

bool Tracker::apply(const DetectionList& list, TrackTable& table) {
  if (table.time_ns == kNever) table.time_ns = list.stamp_ns;
  double lag_s = 0;
  if (list.stamp_ns >= table.time_ns) {
    const double dt = seconds_between(table.time_ns, list.stamp_ns);
    for (std::uint32_t i = 0; i < table.count; ++i) {
      table.tracks[i].filter.predict(dt, parameters_.acceleration_density_m2ps3);
    }
    table.time_ns = list.stamp_ns;
  } else if (table.time_ns - list.stamp_ns <= parameters_.late_limit_ns) {
    lag_s = seconds_between(list.stamp_ns, table.time_ns);
  } else {
    return false;
  }

  associate(list, table, lag_s);
  const std::uint32_t sensor_bit = 1U << (list.sensor % 32);
  for (std::uint32_t t = 0; t < table.count; ++t) {
    TrackState& track = table.tracks[t];
    const int object = column_of_track_[t];
    if (object != Assignment::kUnassigned) {
      update(list, list.detections[object], measurements_[object], track);
      track.sensors_now |= sensor_bit;
      track.sensors_ever |= sensor_bit;
    } else if (track.sensors_ever & sensor_bit) {
      const double miss = parameters_.sensors[static_cast<std::size_t>(list.modality)].miss_log_odds;
      track.log_odds = clamp_log_odds(track.log_odds - miss);
    }
  }
  if (list.modality != Modality::kCamera) table.ranging_ns = std::max(table.ranging_ns, list.stamp_ns);
  start_tracks(list, table);
  return true;
}

void Tracker::associate(const DetectionList& list, const TrackTable& table, double lag_s) {
  const SensorModel& sensor = parameters_.sensors[static_cast<std::size_t>(list.modality)];
  const double q = parameters_.acceleration_density_m2ps3;
  for (std::uint32_t o = 0; o < list.count; ++o) {
    const Detection& d = list.detections[o];
    measurements_[o] = Measurement::position(d.x, d.y, d.noise, lag_s, q);
    if (d.has_rate) {
      const double variance = sensor.rate_sigma_mps * sensor.rate_sigma_mps;
      measurements_[o].add_range_rate(d.rate, d.ray_x, d.ray_y, variance, lag_s, q);
    }
    used_[o] = false;
  }
  assignment_.reset(table.count, list.count);
  const double gate2 = parameters_.gate_distance_m * parameters_.gate_distance_m;
  for (std::uint32_t t = 0; t < table.count; ++t) {
    const TrackFilter& filter = table.tracks[t].filter;
    const double x = filter.state[0] - lag_s * filter.state[2], y = filter.state[1] - lag_s * filter.state[3];
    for (std::uint32_t o = 0; o < list.count; ++o) {
      const double dx = list.detections[o].x - x, dy = list.detections[o].y - y;
      if (dx * dx + dy * dy > gate2) continue;
      const Gate gate = filter.gate(measurements_[o]);
      if (gate.distance2 > parameters_.gate_chi2) continue;
      assignment_.allow(t, o, gate.distance2 + std::min(gate.log_determinant, kLargestLogDeterminant));
    }
  }
  // A pair in its gate never costs more than leaving the track without an object.
  const auto columns = assignment_.solve(parameters_.gate_chi2 + kLargestLogDeterminant);
  for (std::uint32_t t = 0; t < table.count; ++t) {
    column_of_track_[t] = columns[t];
    if (columns[t] != Assignment::kUnassigned) used_[static_cast<std::size_t>(columns[t])] = true;
  }
}

void Tracker::update(const DetectionList& list, const Detection& detection, const Measurement& m,
                     TrackState& track) const {
  const SensorModel& sensor = parameters_.sensors[static_cast<std::size_t>(list.modality)];
  Measurement measured = m;
  if (detection.has_box) {
    Detection d = detection;
    if (track.has_box) fold_yaw(track.yaw, d);
    follow_box(d, track);
    complete_box(list, track, measured.value[0], measured.value[1], d);
    track.z += 0.5 * (d.z - track.z);
  }
  track.filter.update(measured);
  face_velocity(track);
  add_class(track, detection.object_class, sensor.class_weight);
  if (!track.has_box) {
    const Extent usual = usual_extent(track.object_class());
    track.length = usual.length;
    track.width = usual.width;
    track.height = usual.height;
  }
  track.log_odds = clamp_log_odds(track.log_odds + sensor.hit_log_odds);
  ++track.hits;
  track.updated_ns = std::max(track.updated_ns, list.stamp_ns);
}

void Tracker::start_tracks(const DetectionList& list, TrackTable& table) {
  const bool ranging_alive = table.ranging_ns != kNever &&
                             list.stamp_ns - table.ranging_ns <= parameters_.late_limit_ns + parameters_.coast_ns;
  if (list.modality == Modality::kCamera && ranging_alive) return;
  std::uint32_t unused = 0;
  for (std::uint32_t o = 0; o < list.count; ++o) {
    if (!used_[o]) order_[unused++] = o;
  }
  std::sort(order_.begin(), order_.begin() + unused, [&](std::uint32_t a, std::uint32_t b) {
    const double ra = list.detections[a].range2, rb = list.detections[b].range2;
    return ra != rb ? ra < rb : a < b;
  });
  const SensorModel& sensor = parameters_.sensors[static_cast<std::size_t>(list.modality)];
  for (std::uint32_t k = 0; k < unused; ++k) {
    const Detection& d = list.detections[order_[k]];
    const bool known = std::any_of(table.tracks.begin(), table.tracks.begin() + table.count, [&](const TrackState& t) {
      return t.covers(d.x, d.y, parameters_.duplicate_margin_m);
    });
    if (known) continue;
    if (table.count == kMaxTracks) {
      ++dropped_;
      continue;
    }
    TrackState& track = table.tracks[table.count++];
    track = TrackState{};
    track.id = table.next_id++;
    track.alive = true;
    // A late list starts a track at its own stamp; with nothing known of its speed the mean stays, the noise grows.
    const double speed2 = parameters_.initial_speed_sigma_mps * parameters_.initial_speed_sigma_mps;
    track.filter.state = {d.x, d.y, 0, 0};
    track.filter.covariance[0] = {d.noise.xx, d.noise.xy, 0, 0};
    track.filter.covariance[1] = {d.noise.xy, d.noise.yy, 0, 0};
    track.filter.covariance[2][2] = track.filter.covariance[3][3] = speed2;
    if (d.has_rate) {
      Measurement rate = Measurement::position(d.x, d.y, d.noise, 0, 0);
      rate.noise[0][0] = rate.noise[1][1] = 1e12;  // the position is in already
      rate.add_range_rate(d.rate, d.ray_x, d.ray_y, sensor.rate_sigma_mps * sensor.rate_sigma_mps, 0, 0);
      track.filter.update(rate);
    }
    track.filter.predict(seconds_between(list.stamp_ns, table.time_ns), parameters_.acceleration_density_m2ps3);
    add_class(track, d.object_class, sensor.class_weight);
    const Extent usual = usual_extent(d.object_class);
    track.length = usual.length;
    track.width = usual.width;
    track.height = usual.height;
    track.z = d.z;
    if (d.has_box) follow_box(d, track);
    face_velocity(track);
    track.log_odds = clamp_log_odds(parameters_.birth_log_odds + sensor.hit_log_odds);
    track.hits = 1;
    track.sensors_now = track.sensors_ever = 1U << (list.sensor % 32);
    track.updated_ns = list.stamp_ns;
  }
}

void Tracker::finish(std::int64_t now_ns, TrackTable& table) const {
  for (std::uint32_t i = 0; i < table.count; ++i) {
    TrackState& track = table.tracks[i];
    track.misses = track.sensors_now != 0 ? 0 : track.misses + 1;
    if (track.hits >= parameters_.confirm_hits && track.log_odds >= parameters_.confirm_log_odds) {
      track.confirmed = true;
    }
    const std::int64_t coast = track.confirmed ? parameters_.coast_ns : parameters_.tentative_coast_ns;
    const double least = track.confirmed ? parameters_.delete_log_odds : parameters_.birth_log_odds;
    if (track.log_odds < least || now_ns - track.updated_ns > coast) track.alive = false;
  }
  end_duplicates(table);
}

void Tracker::end_duplicates(TrackTable& table) const {
  const double speed2 = parameters_.duplicate_speed_mps * parameters_.duplicate_speed_mps;
  const double margin = parameters_.duplicate_margin_m;
  for (std::uint32_t i = 0; i < table.count; ++i) {
    for (std::uint32_t j = i + 1; j < table.count && table.tracks[i].alive; ++j) {
      TrackState& a = table.tracks[i];
      TrackState& b = table.tracks[j];
      if (!b.alive) continue;
      const auto& sa = a.filter.state;
      const auto& sb = b.filter.state;
      const double dvx = sa[2] - sb[2], dvy = sa[3] - sb[3];
      if (dvx * dvx + dvy * dvy > speed2) continue;
      if (!a.covers(sb[0], sb[1], margin) && !b.covers(sa[0], sa[1], margin)) continue;
      (better_proven(a, b) ? b : a).alive = false;
    }
  }
}

}  // namespace takt::pipeline
