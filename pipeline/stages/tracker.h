// Multi-object tracking over object lists of any mix of sensors: gated optimal assignment, Kalman update, life cycle.
// Everything lies in one frame that does not move (odometry); the stage around it knows vehicles and chunks.
//
// Rules, in the order of a cycle:
//  - Lists come in stamp order. All tracks are predicted to a newer list's stamp. A list older than the tracks by at
//    most `late_limit` is compared with the tracks taken back to its time (track_filter.h); an older one is left out.
//  - Pairs inside the chi-square gate and the distance gate cost d^2 + ln|S|; the assignment is optimal.
//  - Existence is a sum of log odds: a hit adds, a miss subtracts. A list counts as a miss only for tracks that its
//    sensor has hit before: a sensor that never saw a place says nothing about it.
//  - An object without a track starts a tentative one, nearest first, unless it lies in the box of a known track. A
//    camera starts tracks only while no ranging sensor (LiDAR, radar) has delivered for `late_limit` + `coast`.
//  - Tentative becomes confirmed by hits and log odds. Tracks end without an update for `coast`, or by log odds: a
//    confirmed one below delete_log_odds, a tentative one below what it had before its first hit.
//  - Of two tracks of which one's centre lies in the other's box, moving alike, the less proven one ends.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "pipeline/messages/messages.h"
#include "pipeline/stages/association.h"
#include "pipeline/stages/track_filter.h"

namespace takt::pipeline {

enum class Modality : std::uint32_t { kLidar = 0, kRadar = 1, kCamera = 2 };
inline constexpr std::size_t kModalities = 3;

// What the tracker believes of one kind of sensor.
struct SensorModel {
  double range_sigma_m = 0.4;    // along the ray, when the object names no variance
  double range_sigma_share = 0;  // of the range, added in quadrature
  double bearing_sigma_rad = 0;  // across the ray
  double rate_sigma_mps = 0.5;   // of a range rate
  double surface_offset_m = 0;   // from the measured near surface to the centre, objects without a box
  double hit_log_odds = 1;
  double miss_log_odds = 0.5;
  double class_weight = 1;
};

struct TrackerParameters {
  std::array<SensorModel, kModalities> sensors{};  // by Modality
  double acceleration_density_m2ps3 = 2;           // q of the filter
  double initial_speed_sigma_mps = 6;
  double gate_chi2 = 12;       // on the squared Mahalanobis distance
  double gate_distance_m = 4;  // and on the distance on the ground
  double birth_log_odds = -1;  // before the first hit
  double confirm_log_odds = 1;
  std::uint32_t confirm_hits = 2;
  double delete_log_odds = -0.5;
  std::int64_t coast_ns = 600'000'000;            // a confirmed track's life without an update
  std::int64_t tentative_coast_ns = 250'000'000;  // a tentative one's
  std::int64_t late_limit_ns = 250'000'000;
  double duplicate_margin_m = 0.2;  // grows the box in the tests for duplicates and births
  double duplicate_speed_mps = 5;   // two tracks differing by more are two objects
};

// One object of a list in the odometry frame, m, rad, m/s.
struct Detection {
  double x = 0, y = 0, z = 0;
  GroundCovariance noise;
  double range2 = 0;  // from the vehicle, squared: the order of births
  bool has_rate = false;
  double rate = 0, ray_x = 0, ray_y = 0;
  bool has_box = false;
  double length = 0, width = 0, height = 0, yaw = 0;
  ObjectClass object_class = ObjectClass::kUnknown;
};

struct DetectionList {
  std::int64_t stamp_ns = 0;
  std::uint32_t sensor = 0;  // index in the rig, < 32
  Modality modality = Modality::kLidar;
  double sensor_x = 0, sensor_y = 0;  // origin of its rays, odometry frame
  std::uint32_t count = 0;
  std::array<Detection, kMaxObjects> detections;
};

inline constexpr std::size_t kObjectClasses = 5;

struct TrackState {
  std::uint32_t id = 0;
  bool alive = false;
  bool confirmed = false;
  bool has_box = false;
  TrackFilter filter;
  double z = 0, length = 0, width = 0, height = 0, yaw = 0;
  double log_odds = 0;
  std::array<float, kObjectClasses> class_evidence{};  // by ObjectClass, decaying sums
  std::uint32_t hits = 0, misses = 0;
  std::uint32_t sensors_now = 0;   // bit i: sensor i updated it in this cycle
  std::uint32_t sensors_ever = 0;  // bit i: sensor i has updated it
  std::int64_t updated_ns = 0;     // stamp of the newest detection used

  [[nodiscard]] ObjectClass object_class() const;  // most evidence; ties to the lower class
  // True when a point lies in the box grown by `margin` on each side.
  [[nodiscard]] bool covers(double x, double y, double margin) const;
};

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

// All tracks, ascending by id. Plain data: copied once per cycle.
struct TrackTable {
  std::int64_t time_ns = kNever;     // of every filter state
  std::int64_t ranging_ns = kNever;  // newest list of a ranging sensor
  std::uint32_t next_id = 1;
  std::uint32_t count = 0;
  std::array<TrackState, kMaxTracks> tracks;
};

// Method and workspace; the tracks themselves are the caller's. Allocates at construction only; one thread at a time.
class Tracker {
 public:
  explicit Tracker(const TrackerParameters& parameters);

  // Starts a cycle: the living tracks of `from` in `to`.
  void begin(const TrackTable& from, TrackTable& to) const;
  // One list. False when it is older than the tracks by more than the limit: nothing changed.
  bool apply(const DetectionList& list, TrackTable& table);
  // Ends a cycle at `now_ns`: life cycle and duplicates. Ended tracks stay in the table with alive = false.
  void finish(std::int64_t now_ns, TrackTable& table) const;
  // Objects that found no room since begin().
  [[nodiscard]] std::uint32_t dropped() const { return dropped_; }

 private:
  void associate(const DetectionList& list, const TrackTable& table, double lag_s);
  void update(const DetectionList& list, const Detection& detection, const Measurement& m, TrackState& track) const;
  void start_tracks(const DetectionList& list, TrackTable& table);
  void end_duplicates(TrackTable& table) const;

  TrackerParameters parameters_;
  Assignment assignment_;
  mutable std::uint32_t dropped_ = 0;
  std::array<Measurement, kMaxObjects> measurements_;
  std::array<std::uint32_t, kMaxTracks> row_track_{};  // track of a row of the assignment
  std::array<int, kMaxTracks> column_of_track_{};      // object of each track, -1 none
  std::array<std::uint32_t, kMaxObjects> order_{};
  std::array<bool, kMaxObjects> used_{};
};

}  // namespace takt::pipeline
