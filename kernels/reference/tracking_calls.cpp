#include "kernels/reference/tracking_calls.h"

#include <algorithm>
#include <cstring>

#include "kernels/reference/assignment.h"
#include "kernels/reference/tracking.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

namespace {

TAKT_BOTH TrackingParams load(const void* params) {
  TrackingParams p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

template <class T>
TAKT_BOTH T* at(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}
template <class T>
TAKT_BOTH const T& one(const Operand& operand, std::int32_t row = 0) {
  return at<const T>(operand)[row];
}

TAKT_BOTH std::int32_t rows_of(const Operand& count, std::int32_t capacity) {
  return count.data == nullptr ? capacity : std::clamp(one<std::int32_t>(count), 0, capacity);
}
TAKT_BOTH Rows share_of(std::int32_t count, int part, int parts) {
  const auto bound = [&](int p) { return static_cast<std::int32_t>(std::int64_t{count} * p / parts); };
  return {bound(part), bound(part + 1)};
}
TAKT_BOTH std::span<const Detection> objects_of(const Operand& objects, const Operand& count, std::int32_t capacity) {
  return {at<const Detection>(objects), static_cast<std::size_t>(rows_of(count, capacity))};
}
TAKT_BOTH std::span<const ListSource> sources_of(const Operand& sources, const TrackingParams& p) {
  return {at<const ListSource>(sources), static_cast<std::size_t>(p.sources)};
}

template <int states>
TAKT_BOTH TrackTable<states> table_of(Filter<states>* motion, const Operand& body, const Operand& life,
                                      std::int32_t count, std::int32_t capacity) {
  return {motion, at<TrackBody>(body), at<TrackLife>(life), count, capacity};
}

// Calls with the filter of the model.
template <class Work>
TAKT_BOTH void with_filter(MotionModel model, const Work& work) {
  if (model == MotionModel::kTurnRate) {
    work(TurnFilter{});
  } else {
    work(VelocityFilter{});
  }
}

}  // namespace

TAKT_BOTH void ego_motion_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  auto* const stamps = at<std::int64_t>(operands[6]);
  auto* const samples = at<EgoSample>(operands[7]);
  ego_motion(one<std::int64_t>(operands[1]), one<EgoReading>(operands[2]),
             one<TrackerModel>(operands[5]).ego_jump_limit, at<const std::int64_t>(operands[3]),
             at<const EgoSample>(operands[4]), stamps, samples);
  for (std::int32_t k = 0; k < p.stamps; ++k) {
    at<GroundPose>(operands[8])[k] = ego_pose(stamps, samples, one<std::int64_t>(operands[0], k));
  }
}

TAKT_BOTH void detections_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  ListOf list;
  list.rows = reinterpret_cast<const ObjectRow*>(operands[0].data + kObjectRowsOffset);
  list.count = static_cast<std::int32_t>(std::clamp<std::int64_t>(one<std::int64_t>(operands[1]), 0, p.objects));
  list.source = one<std::int64_t>(operands[1], 1);
  list.stamp_ns = one<std::int64_t>(operands[2], p.slot);
  list.pose = one<GroundPose>(operands[3], p.slot);
  const Detected found = detections(list, sources_of(operands[5], p), one<TrackClock>(operands[4]),
                                    one<TrackerModel>(operands[6]), at<Detection>(operands[7]));
  *at<Moment>(operands[8]) = found.moment;
  *at<ListInfo>(operands[9]) = found.info;
  *at<std::int32_t>(operands[10]) = found.count;
  *at<std::int32_t>(operands[11]) = found.repaired;
}

TAKT_BOTH void kalman_predict_call(const void* params, const Operand* operands, int part, int parts) {
  const TrackingParams p = load(params);
  const Rows rows = share_of(rows_of(operands[3], p.tracks), part, parts);
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    kalman_predict(one<Moment>(operands[1]), one<TrackerModel>(operands[2]), at<const F>(operands[0]),
                   at<F>(operands[4]), rows);
  });
}

TAKT_BOTH void gate_call(const void* params, const Operand* operands, int part, int parts) {
  const TrackingParams p = load(params);
  const Rows rows = share_of(rows_of(operands[6], p.tracks), part, parts);
  const ListSource* const source = source_of(one<ListInfo>(operands[3]), sources_of(operands[4], p));
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    gate(at<const F>(operands[0]), objects_of(operands[1], operands[7], p.objects), p.objects, one<Moment>(operands[2]),
         source, one<TrackerModel>(operands[5]), at<double>(operands[8]), rows);
  });
}

TAKT_BOTH void assign_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  assign(static_cast<std::size_t>(rows_of(operands[2], p.tracks)), static_cast<std::size_t>(p.objects),
         at<const double>(operands[0]), unassigned_cost(one<TrackerModel>(operands[1])), at<std::int32_t>(operands[3]),
         operands[4].data);
}

TAKT_BOTH void align_call(const void* params, const Operand* operands, int part, int parts) {
  const TrackingParams p = load(params);
  align(at<const TrackBody>(operands[0]), objects_of(operands[1], operands[5], p.objects),
        at<const std::int32_t>(operands[2]), one<Moment>(operands[3]), at<Aligned>(operands[6]),
        share_of(rows_of(operands[4], p.tracks), part, parts));
}

TAKT_BOTH void kalman_update_call(const void* params, const Operand* operands, int part, int parts) {
  const TrackingParams p = load(params);
  const Rows rows = share_of(rows_of(operands[6], p.tracks), part, parts);
  const ListSource* const source = source_of(one<ListInfo>(operands[3]), sources_of(operands[4], p));
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    kalman_update(at<const F>(operands[0]), at<const Aligned>(operands[1]), one<Moment>(operands[2]), source,
                  one<TrackerModel>(operands[5]), at<F>(operands[7]), rows);
  });
}

TAKT_BOTH void track_update_call(const void* params, const Operand* operands, int part, int parts) {
  const TrackingParams p = load(params);
  const Rows rows = share_of(rows_of(operands[7], p.tracks), part, parts);
  const ListInfo& info = one<ListInfo>(operands[4]);
  const ListSource* const source = source_of(info, sources_of(operands[5], p));
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    track_update({at<const TrackBody>(operands[0]), at<const TrackLife>(operands[1])}, at<const Aligned>(operands[2]),
                 at<const F>(operands[3]), info, source, at<const Extent>(operands[6]), p.first != 0,
                 at<TrackBody>(operands[8]), at<TrackLife>(operands[9]), rows);
  });
}

TAKT_BOTH void birth_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  const std::int32_t count = rows_of(operands[11], p.tracks);
  const ListInfo& info = one<ListInfo>(operands[7]);
  const ListSource* const source = source_of(info, sources_of(operands[8], p));
  TrackClock clock = one<TrackClock>(operands[5]);
  auto* const order = at<std::int32_t>(operands[19]);
  auto* const used = reinterpret_cast<std::uint8_t*>(order + p.objects);
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    auto table = table_of(at<F>(operands[13]), operands[14], operands[15], count, p.tracks);
    for (std::int32_t t = 0; t < count; ++t) {
      table.motion[t] = one<F>(operands[0], t);
      table.body[t] = one<TrackBody>(operands[1], t);
      table.life[t] = one<TrackLife>(operands[2], t);
    }
    *at<std::int32_t>(operands[18]) =
        birth(objects_of(operands[3], operands[12], p.objects),
              {at<const std::int32_t>(operands[4]), static_cast<std::size_t>(count)}, one<Moment>(operands[6]), info,
              source, one<TrackerModel>(operands[9]), at<const Extent>(operands[10]), table, clock, order, used);
    *at<std::int32_t>(operands[17]) = table.count;
  });
  *at<TrackClock>(operands[16]) = clock;
}

TAKT_BOTH void death_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    auto survivors = table_of(at<F>(operands[6]), operands[7], operands[8], 0, p.tracks);
    auto* const judged = at<TrackLife>(operands[10]);
    death(at<const F>(operands[0]), at<const TrackBody>(operands[1]), at<const TrackLife>(operands[2]),
          rows_of(operands[5], p.tracks), one<std::int64_t>(operands[3], p.slot), one<TrackerModel>(operands[4]),
          survivors, judged, reinterpret_cast<std::uint8_t*>(judged + p.tracks));
    *at<std::int32_t>(operands[9]) = survivors.count;
  });
}

TAKT_BOTH void track_output_call(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const TrackingParams p = load(params);
  const std::int64_t now = one<std::int64_t>(operands[4], p.slot);
  auto* const header = at<TrackListHeader>(operands[8]);
  auto* const rows = reinterpret_cast<TrackRow*>(operands[8].data + sizeof(TrackListHeader));
  *header = {};
  header->stamp_ns = now;
  with_filter(p.model, [&](auto filter) {
    using F = decltype(filter);
    header->count = static_cast<std::uint32_t>(
        track_output(at<const F>(operands[0]), at<const TrackBody>(operands[1]), at<const TrackLife>(operands[2]),
                     rows_of(operands[7], p.tracks), one<TrackClock>(operands[3]).time_ns, now,
                     one<GroundPose>(operands[5], p.slot), one<TrackerModel>(operands[6]), rows));
  });
  for (std::int32_t t = static_cast<std::int32_t>(header->count); t < p.tracks; ++t) rows[t] = {};
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
