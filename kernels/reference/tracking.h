// Multi-object tracking over object lists of any mix of sensors: what each tracking operator computes. A cycle of the
// graph is EgoMotion; for every list, oldest first, Detections, KalmanPredict, Gate, Assign, Align, KalmanUpdate,
// TrackUpdate, Birth; then Death and TrackOutput.
//
// Rules:
//  - Lists come in stamp order. All tracks are predicted to a newer list's stamp. A list older than the tracks by at
//    most the late limit is compared with the tracks taken back to its time (motion.h); an older one is left out.
//  - Pairs inside the chi-square gate and the distance gate cost d^2 + ln|S|; the assignment is optimal.
//  - Existence is a sum of log odds: a hit adds, a miss subtracts. A list counts as a miss only for tracks that its
//    sensor has hit before: a sensor that never saw a place says nothing about it.
//  - An object without a track starts a tentative one, nearest first, unless it lies in the box of a known track. A
//    camera starts tracks only while no ranging sensor (LiDAR, radar) has delivered for late limit + coast.
//  - Tentative becomes confirmed by hits and log odds. Tracks end without an update for the coast time, or by log odds:
//    a confirmed one below delete_log_odds, a tentative one below what it had before its first hit.
//  - Of two tracks of which one's centre lies in the other's box, moving alike, the less proven one ends.
// An absent list (ListInfo::source < 0) is an empty one from nobody: every operator then passes the tables on.
//
// Rows are kernels/tracking.h's. Functions over a range of rows read what else they are given as a whole and write
// these rows alone. No function trusts a number in the data: whatever they are, memory stays untouched that is not the
// caller's, and the same data give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/device_code.h"
#include "kernels/reference/motion.h"
#include "kernels/tracking.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

struct Rows {
  std::int32_t begin = 0, end = 0;
};

// --- the vehicle --------------------------------------------------------------------------------------------------
// The frame of the tracks is the vehicle's at the first sample, so numbers stay small however far the log's origin
// lies, and a jump of the world pose (a corrected fix) moves the anchor instead of every track.

// Keeps a sample. Nothing changes when its stamp is not later than the newest one or a number is not finite
// (ego_usable). A pose further than `jump_limit` from where the last sample leads to is a jump.
TAKT_BOTH bool ego_usable(const EgoReading& reading);
TAKT_BOTH void ego_motion(std::int64_t stamp_ns, const EgoReading& reading, double jump_limit,
                          const std::int64_t* stamps, const EgoSample* samples, std::int64_t* next_stamps,
                          EgoSample* next_samples);
// Linear between two samples; before the oldest and after the newest one with that sample's velocity and yaw rate, for
// as long as nothing newer comes. The origin when there has been no sample, or for kNever.
TAKT_BOTH GroundPose ego_pose(const std::int64_t* stamps, const EgoSample* samples, std::int64_t stamp_ns);

// --- a list -------------------------------------------------------------------------------------------------------
// Objects of a list with a position, in its order, brought into the frame of the tracks by the vehicle's pose at its
// stamp, with their noise along and across the ray. Left out: objects that are not finite or beyond the range, and the
// whole list when it is too late.
struct ListOf {
  const ObjectRow* rows = nullptr;
  std::int32_t count = 0;  // within `rows`
  std::int64_t stamp_ns = kNever;
  std::int64_t source = -1;  // outside the sources: no list
  GroundPose pose;
};
struct Detected {
  Moment moment;
  ListInfo info;
  std::int32_t count = 0;     // of detections
  std::int32_t repaired = 0;  // 1: something was left out
};
TAKT_BOTH Detected detections(const ListOf& list, std::span<const ListSource> sources, const TrackClock& clock,
                              const TrackerModel& model, Detection* out);

// --- tracks -------------------------------------------------------------------------------------------------------
template <int states>
TAKT_BOTH void kalman_predict(const Moment& moment, const TrackerModel& model, const Filter<states>* motion,
                              Filter<states>* next, Rows rows);

// The list's source, or nothing when there is no list.
TAKT_BOTH const ListSource* source_of(const ListInfo& info, std::span<const ListSource> sources);

// cost: tracks x capacity of objects; kNotAllowed (assignment.h) outside the gates and beyond the count.
template <int states>
TAKT_BOTH void gate(const Filter<states>* motion, std::span<const Detection> objects, std::int32_t capacity,
                    const Moment& moment, const ListSource* source, const TrackerModel& model, double* cost, Rows rows);
// What a track without an object costs: a pair in its gate never costs more.
TAKT_BOTH double unassigned_cost(const TrackerModel& model);

TAKT_BOTH void align(const TrackBody* body, std::span<const Detection> objects, const std::int32_t* column,
                     const Moment& moment, Aligned* out, Rows rows);

template <int states>
TAKT_BOTH void kalman_update(const Filter<states>* motion, const Aligned* aligned, const Moment& moment,
                             const ListSource* source, const TrackerModel& model, Filter<states>* next, Rows rows);

// `motion` is the updated one. `opens`: this list opens a cycle.
struct TrackTables {
  const TrackBody* body;
  const TrackLife* life;
};
template <int states>
TAKT_BOTH void track_update(const TrackTables& tracks, const Aligned* aligned, const Filter<states>* motion,
                            const ListInfo& info, const ListSource* source, const Extent* usual, bool opens,
                            TrackBody* next_body, TrackLife* next_life, Rows rows);

// Rows 0 to count - 1 of the next tables hold the tracks already; new ones follow. Returns the objects that found no
// room. `order`: room for as many as there are objects.
template <int states>
struct TrackTable {
  Filter<states>* motion;
  TrackBody* body;
  TrackLife* life;
  std::int32_t count = 0, capacity = 0;
};
template <int states>
TAKT_BOTH std::int32_t birth(std::span<const Detection> objects, std::span<const std::int32_t> column,
                             const Moment& moment, const ListInfo& info, const ListSource* source,
                             const TrackerModel& model, const Extent* usual, TrackTable<states>& table,
                             TrackClock& clock, std::int32_t* order, std::uint8_t* used);

// Ends a cycle: the tracks that live on, in their order. `judged`, `alive`: room for `count` each.
template <int states>
TAKT_BOTH void death(const Filter<states>* motion, const TrackBody* body, const TrackLife* life, std::int32_t count,
                     std::int64_t now_ns, const TrackerModel& model, TrackTable<states>& survivors, TrackLife* judged,
                     std::uint8_t* alive);

// Confirmed tracks, predicted to `now` and brought into the vehicle frame there. Returns their number; at most `count`
// rows are written.
template <int states>
TAKT_BOTH std::int32_t track_output(const Filter<states>* motion, const TrackBody* body, const TrackLife* life,
                                    std::int32_t count, std::int64_t time_ns, std::int64_t now_ns,
                                    const GroundPose& pose, const TrackerModel& model, TrackRow* out);

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
