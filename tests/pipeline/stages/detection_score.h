// Recall and precision of detections against truth boxes: one-to-one, nearest pairs first, within 2 m on the ground.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "pipeline/messages/messages.h"

namespace takt::pipeline::testing {

struct TruthBox {
  float x = 0, y = 0;  // centre, vehicle frame
  std::uint32_t points = 0;
  float length = 0, width = 0, yaw = 0;
};

struct DetectionScore {
  std::uint32_t expected = 0;  // truth that counts
  std::uint32_t found = 0;     // of these
  std::uint32_t wrong = 0;     // detections without truth
  double distance = 0;         // sum over found, m
  [[nodiscard]] double recall() const { return expected == 0 ? 0 : double(found) / expected; }
  [[nodiscard]] double precision() const { return found + wrong == 0 ? 0 : double(found) / (found + wrong); }
  [[nodiscard]] double mean_distance() const { return found == 0 ? 0 : distance / found; }
};

// Truth with fewer than `points_min` points or beyond `range_m` may be found, but neither counts; detections beyond
// the range do not count either.
inline void add_frame(DetectionScore& score, std::span<const Object> objects, const std::vector<TruthBox>& truth,
                      float range_m, std::uint32_t points_min, std::vector<char>* truth_found = nullptr,
                      std::vector<char>* right = nullptr) {
  std::vector<std::tuple<float, std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].object_class != ObjectClass::kVehicle) continue;
    for (std::size_t j = 0; j < truth.size(); ++j) {
      const float d = std::hypot(objects[i].x - truth[j].x, objects[i].y - truth[j].y);
      if (d <= 2) pairs.emplace_back(d, i, j);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  std::vector<char> object_used(objects.size()), truth_used(truth.size());
  const auto counts = [&](const TruthBox& t) { return t.points >= points_min && std::hypot(t.x, t.y) <= range_m; };
  for (const auto& [d, i, j] : pairs) {
    if (object_used[i] || truth_used[j]) continue;
    object_used[i] = truth_used[j] = 1;
    if (!counts(truth[j])) continue;
    ++score.found;
    score.distance += d;
  }
  for (const TruthBox& t : truth) score.expected += counts(t) ? 1 : 0;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].object_class != ObjectClass::kVehicle || object_used[i]) continue;
    if (std::hypot(objects[i].x, objects[i].y) <= range_m) ++score.wrong;
  }
  if (truth_found != nullptr) *truth_found = truth_used;
  if (right != nullptr) *right = object_used;
}

}  // namespace takt::pipeline::testing
