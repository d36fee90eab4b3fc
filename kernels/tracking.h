// Rows of the tracking operators and the parameter block of their kernels. takt.EgoMotion, takt.Detections,
// takt.KalmanPredict, takt.Gate, takt.Assign, takt.Align, takt.KalmanUpdate, takt.TrackUpdate, takt.Birth, takt.Death
// and takt.TrackOutput share all of it (docs/operators.md; kernels/reference/tracking.h has the rules).
//
// Tables are tensors of rows: f64 or i64, one column for each member in this order. Metres, radians, seconds, m/s;
// stamps are nanoseconds. A count is an i32 and counts rows. Tracks and objects lie in one frame that does not move
// (odometry); payloads of lists lie in the vehicle's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace takt::kernels {

// A stamp of nothing.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

// How an object moves between lists. Numbered as stored.
enum class MotionModel : std::int32_t {
  kConstantVelocity = 0,  // x y vx vy; white acceleration
  kTurnRate = 1,          // x y yaw v w (CTRV); white acceleration along and white acceleration of the yaw
};
constexpr int motion_states(MotionModel model) { return model == MotionModel::kTurnRate ? 5 : 4; }
// Columns of a motion row: the state, then its covariance, row-major.
constexpr int motion_columns(MotionModel model) { return motion_states(model) * (motion_states(model) + 1); }

inline constexpr int kObjectClasses = 5;  // unknown, vehicle, pedestrian, cyclist, other

// What a tracker believes; one row, a constant of the graph.
struct TrackerModel {
  double acceleration_density = 2;    // q of the motion models, m^2/s^3
  double turn_density = 0.5;          // turn rate: of the yaw's acceleration, rad^2/s^3
  double initial_speed_sigma = 6;     // m/s
  double initial_turn_sigma = 0.3;    // turn rate: rad/s
  double yaw_sigma = 0.2;             // turn rate: of a box's yaw
  double gate_chi2 = 12;              // on the squared Mahalanobis distance
  double gate_distance = 4;           // and on the distance on the ground
  double birth_log_odds = -1;         // before the first hit
  double confirm_log_odds = 1;        //
  double confirm_hits = 2;            //
  double delete_log_odds = -0.5;      // of a confirmed track
  double coast_ns = 600e6;            // a confirmed track's life without an update
  double tentative_coast_ns = 250e6;  // a tentative one's
  double late_limit_ns = 250e6;       // a list older than the tracks by more is left out
  double duplicate_margin = 0.2;      // grows the box in the tests for duplicates and births
  double duplicate_speed = 5;         // two tracks differing by more are two objects
  double range_max = 150;             // of an object, from the vehicle
  double ego_jump_limit = 5;          // a pose further than this from the expected one moves the anchor
};

// A list's source: its sensor and what the tracker believes of it; one row for each input, a constant of the graph.
enum class Modality : std::int32_t { kLidar = 0, kRadar = 1, kCamera = 2 };
struct ListSource {
  double modality = 0;           // Modality
  double sensor = 0;             // index in the rig; bit sensor % 32 of a track's sensors
  double x = 0, y = 0;           // of the sensor, vehicle frame
  double range_sigma = 0.4;      // along the ray, when the object names no variance
  double range_sigma_share = 0;  // of the range, added in quadrature
  double bearing_sigma = 0;      // across the ray
  double rate_sigma = 0.5;       // of a range rate
  double surface_offset = 0;     // from the measured near surface to the centre, objects without a box
  double hit_log_odds = 1;
  double miss_log_odds = 0.5;
  double class_weight = 1;
};

// Length, width, height that an object without a measured box is taken for; one row for each class, a constant.
struct Extent {
  double length = 1, width = 1, height = 1;
};

// One object of a list in the frame of the tracks.
struct Detection {
  double x = 0, y = 0, z = 0;
  double noise_xx = 0, noise_xy = 0, noise_yy = 0;  // covariance of x and y
  double range2 = 0;                                // from the vehicle, squared: the order of births
  double has_rate = 0;                              // 1: rate along the unit ray is meant
  double rate = 0, ray_x = 0, ray_y = 0;
  double has_box = 0;  // 1: extent and yaw are meant
  double length = 0, width = 0, height = 0, yaw = 0;
  double object_class = 0;
};

// The detection that a track was given, as the track reads it: yaw and sides turned to the track's, the centre of a
// partly seen box moved to where the whole one's is.
struct Aligned {
  double given = 0;  // 0: none; the other columns are 0
  Detection detection;
};

// A list's place in time and space.
struct Moment {
  double dt = 0;                      // the tracks are predicted by so much before the list is compared with them, s
  double lag = 0;                     // or: the list is older than the tracks by this much, s
  double advances = 0;                // 1: dt is meant
  double sensor_x = 0, sensor_y = 0;  // origin of its rays
};
struct ListInfo {
  std::int64_t stamp_ns = kNever;
  std::int64_t source = -1;  // row of the sources; -1: no list, nothing changes
};

// A track is one row in each of three tables: motion (see MotionModel), body, life. Ascending by id.
struct TrackBody {
  double z = 0, length = 0, width = 0, height = 0, yaw = 0;
  double has_box = 0;  // 1: extent and yaw were measured
  double log_odds = 0;
  double evidence[kObjectClasses] = {};  // decaying sums, single precision
};
struct TrackLife {
  std::int64_t id = 0;
  std::int64_t confirmed = 0;
  std::int64_t hits = 0, misses = 0;
  std::int64_t sensors_now = 0;   // bit i: sensor i updated it in this cycle
  std::int64_t sensors_ever = 0;  // bit i: sensor i has updated it
  std::int64_t updated_ns = 0;    // stamp of the newest detection used
};
struct TrackClock {
  std::int64_t time_ns = kNever;     // of every motion row
  std::int64_t ranging_ns = kNever;  // newest list of a ranging sensor
  std::int64_t next_id = 1;
};

// A pose of the vehicle in the frame of the tracks.
struct GroundPose {
  double x = 0, y = 0, yaw = 0;
};
// What EgoMotion keeps: samples, oldest first, with stamps in a tensor of their own (kNever: none), then the same place
// in the world and in the frame of the tracks.
inline constexpr int kEgoSamples = 16;  // at 20 Hz: 0.8 s, several times the age of the oldest list used
struct EgoSample {
  GroundPose pose;
  double vx = 0, vy = 0, rate = 0;  // in the vehicle frame
};
inline constexpr int kEgoRows = kEgoSamples + 2;
// A motion sample as it arrives.
struct EgoReading {
  double position[3] = {};               // of the vehicle in the world
  double orientation[4] = {1, 0, 0, 0};  // quaternion w x y z
  double velocity[3] = {};               // in the vehicle frame
  double angular_velocity[3] = {};
};

// Payloads: rows of 4-byte members behind a header.
inline constexpr std::uint32_t kMeansPosition = 1, kMeansBox = 2, kMeansRate = 4;  // bits of ObjectRow::means
struct ObjectRow {
  float x, y, z, length, width, height, yaw, score, range_rate, ray_x, ray_y;
  float picture[4];
  float position_variance;
  std::uint32_t object_class, means, points, reserved;
};
inline constexpr int kObjectRowsOffset = 32;
struct TrackRow {
  std::uint32_t id, object_class;
  float x, y, z, length, width, height, yaw, vx, vy, position_variance, score;
  std::uint32_t hits, misses, sensors;
};
// The header of a track list: count, three words that are the caller's, stamp.
struct TrackListHeader {
  std::uint32_t count, dropped, missing, repeated;
  std::int64_t stamp_ns;
};

// Columns of a table of rows.
template <class Row>
inline constexpr int kColumns = static_cast<int>(sizeof(Row) / 8);
static_assert(kColumns<TrackerModel> == 18 && kColumns<ListSource> == 12 && kColumns<Extent> == 3);
static_assert(kColumns<Detection> == 17 && kColumns<Aligned> == 18 && kColumns<Moment> == 5);
static_assert(kColumns<ListInfo> == 2 && kColumns<TrackBody> == 12 && kColumns<TrackLife> == 7);
static_assert(kColumns<TrackClock> == 3 && kColumns<GroundPose> == 3 && kColumns<EgoSample> == 6);
static_assert(kColumns<EgoReading> == 13 && sizeof(ObjectRow) == 80 && sizeof(TrackRow) == 64);
static_assert(sizeof(TrackListHeader) == 24);

// The parameter block of every tracking kernel. Extents that a kernel does not have are 1.
inline constexpr std::int32_t kMostTracks = 4096, kMostDetections = 4096, kMostLists = 64;
struct TrackingParams {
  MotionModel model = MotionModel::kConstantVelocity;
  std::int32_t tracks = 1;   // capacity
  std::int32_t objects = 1;  // capacity, of a list and of detections
  std::int32_t sources = 1;
  std::int32_t stamps = 1;  // poses asked for
  std::int32_t slot = 0;    // Detections, TrackOutput: which of the stamps is its own
  std::int32_t first = 0;   // TrackUpdate: 1: opens a cycle, what the last one saw is forgotten
  std::int32_t reserved = 0;
};

}  // namespace takt::kernels
