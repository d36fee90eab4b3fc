#include "pipeline/report/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace takt::pipeline {

namespace {

constexpr double kPi = 3.14159265358979323846;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

const TruthBox* find_box(const TruthFrame& frame, std::uint32_t id) {
  const auto box = std::find_if(frame.boxes.begin(), frame.boxes.end(), [&](const TruthBox& b) { return b.id == id; });
  return box == frame.boxes.end() ? nullptr : &*box;
}

// `from` moved on by share t of the way to `to`: inside [0, 1] interpolated, outside extrapolated.
TruthBox between(const TruthBox& from, const TruthBox& to, double t) {
  TruthBox box = from;
  box.x += t * (to.x - from.x);
  box.y += t * (to.y - from.y);
  box.z += t * (to.z - from.z);
  double turn = std::fmod(to.yaw - from.yaw, 2 * kPi);
  if (turn > kPi) turn -= 2 * kPi;
  if (turn < -kPi) turn += 2 * kPi;
  box.yaw += t * turn;
  return box;
}

double range_of(double x, double y) { return std::sqrt(x * x + y * y); }

struct Pair {
  double distance;
  std::uint32_t track, truth;  // ids
  std::size_t track_index, truth_index;
};

// Nearest first; every track and every truth box once.
template <class Keep>
std::vector<Pair> match(const std::vector<const Track*>& tracks, const std::vector<TruthBox>& boxes, double limit,
                        const Keep& keep) {
  std::vector<Pair> pairs;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      const double distance = range_of(tracks[t]->x - boxes[b].x, tracks[t]->y - boxes[b].y);
      if (distance <= limit && keep(t, b)) pairs.push_back({distance, tracks[t]->id, boxes[b].id, t, b});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tuple(a.distance, a.track, a.truth, a.track_index, a.truth_index) <
           std::tuple(b.distance, b.track, b.truth, b.track_index, b.truth_index);
  });
  std::vector<bool> track_used(tracks.size()), truth_used(boxes.size());
  std::vector<Pair> chosen;
  for (const Pair& p : pairs) {
    if (track_used[p.track_index] || truth_used[p.truth_index]) continue;
    track_used[p.track_index] = truth_used[p.truth_index] = true;
    chosen.push_back(p);
  }
  return chosen;
}

// Adds one list of one class; returns the number of pairs.
std::size_t score_list(const TrackList& list, const std::vector<TruthBox>& truth, const ScoreRule& rule,
                       ClassScore& score, std::map<std::uint32_t, std::uint32_t>& last_track) {
  std::vector<const Track*> tracks;
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxTracks); ++i) {
    if (list.tracks[i].object_class == score.object_class) tracks.push_back(&list.tracks[i]);
  }
  std::vector<TruthBox> boxes;
  std::vector<bool> counts;
  for (const TruthBox& box : truth) {
    if (box.object_class != score.object_class) continue;
    boxes.push_back(box);
    counts.push_back(box.lidar_points >= rule.min_lidar_points && range_of(box.x, box.y) <= rule.range_m);
  }
  const auto truths = static_cast<std::uint64_t>(std::count(counts.begin(), counts.end(), true));
  const auto pairs = match(tracks, boxes, rule.match_distance_m, [&](std::size_t, std::size_t b) { return counts[b]; });
  std::vector<bool> paired(tracks.size());
  for (const Pair& p : pairs) {
    paired[p.track_index] = true;
    score.position_error_sum_m += p.distance;
    const auto [last, first_time] = last_track.emplace(p.truth, p.track);
    if (!first_time && last->second != p.track) ++score.id_switches;
    last->second = p.track;
  }
  const auto on_ignored = match(tracks, boxes, rule.match_distance_m,
                                [&](std::size_t t, std::size_t b) { return !paired[t] && !counts[b]; });
  std::vector<bool> ignored(tracks.size());
  for (const Pair& p : on_ignored) ignored[p.track_index] = true;
  std::uint64_t left_out = 0;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    if (!paired[t] && (ignored[t] || range_of(tracks[t]->x, tracks[t]->y) > rule.range_m)) ++left_out;
  }
  score.truth += truths;
  score.matched += pairs.size();
  score.missed += truths - pairs.size();
  score.ignored_tracks += left_out;
  score.tracks += tracks.size() - left_out;
  score.false_positives += tracks.size() - left_out - pairs.size();
  return pairs.size();
}

}  // namespace

double ClassScore::recall() const { return share(matched, truth); }
double ClassScore::precision() const { return share(matched, tracks); }
double ClassScore::mean_position_error_m() const {
  return matched == 0 ? 0 : position_error_sum_m / static_cast<double>(matched);
}

TruthAt truth_at(const std::vector<TruthFrame>& truth, SensorTime stamp, Duration gap) {
  TruthAt at;
  const auto later =
      static_cast<std::size_t>(std::lower_bound(truth.begin(), truth.end(), stamp,
                                                [](const TruthFrame& f, SensorTime t) { return f.stamp < t; }) -
                               truth.begin());
  std::size_t nearest = later;
  if (later > 0 && (later == truth.size() || stamp - truth[later - 1].stamp <= truth[later].stamp - stamp)) --nearest;
  if (nearest == truth.size()) return at;  // no truth at all
  const TruthFrame& frame = truth[nearest];
  const Duration distance = stamp - frame.stamp;
  if (distance > gap || -distance > gap) return at;
  at.found = true;
  // The frame on the other side of the stamp; at an end of the drive the neighbour on the same side.
  const bool has_later = nearest + 1 < truth.size();
  const TruthFrame* other = nullptr;
  if (has_later && (frame.stamp <= stamp || nearest == 0)) {
    other = &truth[nearest + 1];
  } else if (nearest > 0) {
    other = &truth[nearest - 1];
  }
  const bool usable = other != nullptr && other->stamp != frame.stamp;
  for (const TruthBox& box : frame.boxes) {
    const TruthBox* there = usable ? find_box(*other, box.id) : nullptr;
    TruthBox& moved = at.boxes.emplace_back(box);
    if (there != nullptr) {
      moved = between(box, *there, distance.seconds() / (other->stamp - frame.stamp).seconds());
    } else {
      moved.x += box.vx * distance.seconds();
      moved.y += box.vy * distance.seconds();
    }
  }
  return at;
}

Score score_tracks(const std::vector<TrackFrame>& tracks, const std::vector<TruthFrame>& truth, const ScoreRule& rule) {
  Score score;
  score.total.object_class = score.after_fill.object_class = rule.object_class;
  for (ObjectClass c : {ObjectClass::kVehicle, ObjectClass::kPedestrian, ObjectClass::kCyclist, ObjectClass::kOther}) {
    score.classes.emplace_back().object_class = c;
  }
  std::vector<std::map<std::uint32_t, std::uint32_t>> followed(score.classes.size());
  std::map<std::uint32_t, std::uint32_t> followed_total, followed_after_fill;
  for (const TrackFrame& frame : tracks) {
    const TruthAt at = truth_at(truth, frame.list.stamp(), rule.truth_gap);
    if (!at.found) {
      ++score.unjudged;
      continue;
    }
    ++score.lists;
    const TrackList list = frame.list.get();
    for (std::size_t c = 0; c < score.classes.size(); ++c) {
      score_list(list, at.boxes, rule, score.classes[c], followed[c]);
    }
    score_list(list, at.boxes, rule, score.total, followed_total);
    if (score.total.matched == 0) {
      ++score.fill_lists;
    } else {
      score_list(list, at.boxes, rule, score.after_fill, followed_after_fill);
    }
  }
  return score;
}

}  // namespace takt::pipeline
