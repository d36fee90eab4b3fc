// Operators on tracking: the reference functions, compiled for the device. Filters, gates and alignment have a thread
// for each track; assignment, births and deaths a warp, whose lanes share what is done for every column, object or
// track; lists and poses one thread.
#include "kernels/cuda/calls.h"
#include "kernels/reference/tracking_calls.h"
// Their bodies, once more for this side.
#include "kernels/reference/assignment.cpp"      // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/motion.cpp"          // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/tracking.cpp"        // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/tracking_calls.cpp"  // NOLINT(bugprone-suspicious-include)

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::KernelId;

template <class Work, int count>
int serial(const char* name, const Call& call) {
  return by_parts<Work, count>(name, load_params<TrackingParams>(call.params), 1, call);
}
template <class Work, int count>
int by_track(const char* name, const Call& call) {
  const auto p = load_params<TrackingParams>(call.params);
  return by_parts<Work, count>(name, p, p.tracks, call);
}

// --- a warp --------------------------------------------------------------------------------------------------------
// One search of reference::Work::augment(), columns shared among the lanes: nearest first, of equally near columns the
// lowest, as there.
TAKT_DEVICE void augment(const reference::Work& w, std::size_t row, std::uint32_t lane) {
  std::size_t from = row;
  std::int32_t from_column = reference::kUnassigned, give_up_column = reference::kUnassigned;
  std::int32_t last = reference::kUnassigned;
  double base = 0, give_up = reference::kInfinity, length = 0;
  const auto columns = static_cast<std::int32_t>(w.columns);
  for (;;) {
    const double reduced = base - w.row_potential[from];
    if (reduced + w.unassigned < give_up) {
      give_up = reduced + w.unassigned;
      give_up_column = from_column;
    }
    const double* const costs = w.cost + from * w.columns;
    double nearest = reference::kInfinity;
    std::int32_t next = reference::kUnassigned;
    for (auto c = static_cast<std::int32_t>(lane); c < columns; c += kWarp) {
      if (w.settled[c] != 0) continue;
      if (costs[c] > -reference::kInfinity && costs[c] < reference::kNotAllowed) {
        const double to = reduced + costs[c] - w.column_potential[c];
        if (w.reached[c] == 0 || !(to >= w.distance[c])) {
          w.reached[c] = 1;
          w.distance[c] = to;
          w.previous[c] = from_column;
        }
      }
      if (w.reached[c] != 0 && w.distance[c] < nearest) {
        nearest = w.distance[c];
        next = c;
      }
    }
    for (std::uint32_t other = kWarp / 2; other > 0; other /= 2) {
      const double there = shuffle_xor(nearest, other);
      const std::int32_t column = shuffle_xor(next, other);
      if (column >= 0 && (next < 0 || there < nearest || (there == nearest && column < next))) {
        nearest = there;
        next = column;
      }
    }
    if (next == reference::kUnassigned || give_up < nearest) {
      length = give_up;
      break;
    }
    if (static_cast<std::uint32_t>(next) % kWarp == lane) w.settled[next] = 1;
    base = nearest;
    from_column = next;
    if (w.row_of_column[next] == reference::kUnassigned) {
      length = nearest;
      last = next;
      break;
    }
    from = static_cast<std::size_t>(w.row_of_column[next]);
  }
  sync_warp();
  if (lane == 0) w.row_potential[row] += length;
  for (auto c = static_cast<std::int32_t>(lane); c < columns; c += kWarp) {
    if (w.settled[c] != 0 && c != last) {
      w.row_potential[w.row_of_column[c]] += length - w.distance[c];
      w.column_potential[c] -= length - w.distance[c];
    }
    w.reached[c] = w.settled[c] = 0;
  }
  sync_warp();
  for (std::int32_t c = last != reference::kUnassigned ? last : give_up_column; lane == 0 && c >= 0;) {
    const std::int32_t before = w.previous[c];
    w.row_of_column[c] = before >= 0 ? w.row_of_column[before] : static_cast<std::int32_t>(row);
    c = before;
  }
  sync_warp();
}

TAKT_KERNEL void assign_kernel(TrackingParams p, Operands<5> o, Conditions conditions) {
  if (!hold(conditions)) return;
  const std::uint32_t lane = thread_x();
  const auto rows = static_cast<std::size_t>(rows_of(o.at[2], p.tracks));
  const reference::Work w(rows, static_cast<std::size_t>(p.objects), at<const double>(o.at[0]),
                          reference::unassigned_cost(*at<const TrackerModel>(o.at[1])), at<std::byte>(o.at[4]));
  auto* const column_of_row = at<std::int32_t>(o.at[3]);
  w.clear(rows, lane, kWarp);
  for (std::size_t r = lane; r < rows; r += kWarp) column_of_row[r] = reference::kUnassigned;
  sync_warp();
  for (std::size_t r = 0; r < rows; ++r) augment(w, r, lane);
  for (std::size_t c = lane; c < w.columns; c += kWarp) {
    if (w.row_of_column[c] >= 0) column_of_row[w.row_of_column[c]] = static_cast<std::int32_t>(c);
  }
}
int assign(const Call& call) {
  return launch("assign", assign_kernel, Grid{}, call.stream, load_params<TrackingParams>(call.params),
                operands_of<5>(call), call.conditions);
}

template <int states>
TAKT_KERNEL void birth_kernel(TrackingParams p, Operands<20> o, Conditions conditions) {
  if (!hold(conditions)) return;
  using Filter = reference::Filter<states>;
  const auto lane = static_cast<std::int32_t>(thread_x());
  const auto count = static_cast<std::int32_t>(rows_of(o.at[11], p.tracks));
  const auto objects = static_cast<std::int32_t>(rows_of(o.at[12], p.objects));
  const auto* const detections = at<const Detection>(o.at[3]);
  const auto* const column = at<const std::int32_t>(o.at[4]);
  const Moment& moment = *at<const Moment>(o.at[6]);
  const ListInfo& info = *at<const ListInfo>(o.at[7]);
  const ListSource* const source =
      reference::source_of(info, {at<const ListSource>(o.at[8]), static_cast<std::size_t>(p.sources)});
  const TrackerModel& model = *at<const TrackerModel>(o.at[9]);
  const auto* const usual = at<const Extent>(o.at[10]);
  reference::TrackTable<states> table{at<Filter>(o.at[13]), at<TrackBody>(o.at[14]), at<TrackLife>(o.at[15]), count,
                                      p.tracks};
  TrackClock clock = *at<const TrackClock>(o.at[5]);
  for (std::int32_t t = lane; t < count; t += kWarp) {
    table.motion[t] = at<const Filter>(o.at[0])[t];
    table.body[t] = at<const TrackBody>(o.at[1])[t];
    table.life[t] = at<const TrackLife>(o.at[2])[t];
  }
  std::int32_t dropped = 0;
  if (source != nullptr && reference::may_start(*source, moment, info, model, clock)) {
    auto* const order = at<std::int32_t>(o.at[19]);
    auto* const used = reinterpret_cast<std::uint8_t*>(order + p.objects);
    for (std::int32_t d = lane; d < objects; d += kWarp) {
      used[d] = 0;
      for (std::int32_t t = 0; t < count; ++t) {
        if (column[t] == d) used[d] = 1;
      }
    }
    sync_warp();
    std::int32_t unused = 0;
    if (lane == 0) {
      for (std::int32_t d = 0; d < objects; ++d) {
        if (used[d] == 0) order[unused++] = d;
      }
      reference::sort_by_range({detections, static_cast<std::size_t>(objects)},
                               {order, static_cast<std::size_t>(unused)});
    }
    unused = shuffle(unused, 0);
    sync_warp();
    for (std::int32_t k = 0; k < unused; ++k) {
      const Detection& d = detections[order[k]];
      bool known = false;
      for (std::int32_t first = 0; first < table.count && !known; first += kWarp) {
        const std::int32_t t = first + lane;
        known =
            any(t < table.count && reference::covers(table.motion[t], table.body[t], d.x, d.y, model.duplicate_margin));
      }
      if (known) continue;
      if (table.count >= table.capacity) {
        ++dropped;
        continue;
      }
      sync_warp();
      if (lane == 0) reference::add_track(d, moment, info, *source, model, usual, table, clock);
      table.count = shuffle(table.count, 0);
      sync_warp();
    }
  }
  if (lane == 0) {
    *at<TrackClock>(o.at[16]) = clock;
    *at<std::int32_t>(o.at[17]) = table.count;
    *at<std::int32_t>(o.at[18]) = dropped;
  }
}
int birth(const Call& call) {
  const auto p = load_params<TrackingParams>(call.params);
  return launch("birth", p.model == MotionModel::kTurnRate ? birth_kernel<5> : birth_kernel<4>, Grid{}, call.stream, p,
                operands_of<20>(call), call.conditions);
}

template <int states>
TAKT_KERNEL void death_kernel(TrackingParams p, Operands<11> o, Conditions conditions) {
  if (!hold(conditions)) return;
  using Filter = reference::Filter<states>;
  const auto lane = static_cast<std::int32_t>(thread_x());
  const auto count = static_cast<std::int32_t>(rows_of(o.at[5], p.tracks));
  const auto* const motion = at<const Filter>(o.at[0]);
  const auto* const body = at<const TrackBody>(o.at[1]);
  const auto* const life = at<const TrackLife>(o.at[2]);
  const std::int64_t now = at<const std::int64_t>(o.at[3])[p.slot];
  const TrackerModel& model = *at<const TrackerModel>(o.at[4]);
  auto* const judged = at<TrackLife>(o.at[10]);
  auto* const alive = reinterpret_cast<std::uint8_t*>(judged + p.tracks);
  for (std::int32_t t = lane; t < count; t += kWarp) {
    alive[t] = reference::judge(body[t], life[t], now, model, judged[t]) ? 1 : 0;
  }
  sync_warp();
  // Track i against all behind it, in their order: it ends those that are less proven until one ends it.
  for (std::int32_t i = 0; i < count; ++i) {
    bool goes_on = alive[i] != 0;
    for (std::int32_t first = i + 1; goes_on && first < count; first += kWarp) {
      const std::int32_t j = first + lane;
      const bool twin =
          j < count && alive[j] != 0 && reference::duplicates(motion[i], body[i], motion[j], body[j], model);
      const bool wins = twin && reference::better_proven(body[i], judged[i], body[j], judged[j]);
      const std::uint32_t losses = ballot(twin && !wins);
      const std::uint32_t before_first_loss = losses == 0 ? ~0U : (losses & (0U - losses)) - 1;
      if (wins && (before_first_loss >> lane & 1) != 0) alive[j] = 0;
      goes_on = losses == 0;
    }
    const bool lost = alive[i] != 0 && !goes_on;
    sync_warp();
    if (lane == 0 && lost) alive[i] = 0;
    sync_warp();
  }
  std::int32_t survivors = 0;
  for (std::int32_t first = 0; first < count; first += kWarp) {
    const std::int32_t t = first + lane;
    const bool stays = t < count && alive[t] != 0;
    const std::uint32_t lanes = ballot(stays);
    const std::int32_t to = survivors + count_ones(lanes & ((1U << lane) - 1));
    if (stays) {
      at<Filter>(o.at[6])[to] = motion[t];
      at<TrackBody>(o.at[7])[to] = body[t];
      at<TrackLife>(o.at[8])[to] = judged[t];
    }
    survivors += count_ones(lanes);
  }
  if (lane == 0) *at<std::int32_t>(o.at[9]) = survivors;
}
int death(const Call& call) {
  const auto p = load_params<TrackingParams>(call.params);
  return launch("death", p.model == MotionModel::kTurnRate ? death_kernel<5> : death_kernel<4>, Grid{}, call.stream, p,
                operands_of<11>(call), call.conditions);
}

// --- parts ---------------------------------------------------------------------------------------------------------
#define TAKT_TRACKING_KERNEL(name, how, count)                                                            \
  struct name##_work {                                                                                    \
    TAKT_DEVICE void operator()(const void* params, const Operand* operands, int part, int parts) const { \
      reference::name##_call(params, operands, part, parts);                                              \
    }                                                                                                     \
  };                                                                                                      \
  int name(const Call& call) { return how<name##_work, count>(#name, call); }
TAKT_TRACKING_KERNEL(ego_motion, serial, 9)
TAKT_TRACKING_KERNEL(detections, serial, 12)
TAKT_TRACKING_KERNEL(kalman_predict, by_track, 5)
TAKT_TRACKING_KERNEL(gate, by_track, 9)
TAKT_TRACKING_KERNEL(align, by_track, 7)
TAKT_TRACKING_KERNEL(kalman_update, by_track, 8)
TAKT_TRACKING_KERNEL(track_update, by_track, 10)
TAKT_TRACKING_KERNEL(track_output, serial, 9)
#undef TAKT_TRACKING_KERNEL

}  // namespace

std::span<const DeviceHalf> tracking_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kEgoMotion, ego_motion},
                                           {KernelId::kDetections, detections},
                                           {KernelId::kKalmanPredict, kalman_predict},
                                           {KernelId::kGate, gate},
                                           {KernelId::kAssign, assign},
                                           {KernelId::kAlign, align},
                                           {KernelId::kKalmanUpdate, kalman_update},
                                           {KernelId::kTrackUpdate, track_update},
                                           {KernelId::kBirth, birth},
                                           {KernelId::kDeath, death},
                                           {KernelId::kTrackOutput, track_output}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
