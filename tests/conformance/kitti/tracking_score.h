// KITTI's multi-object tracking benchmark as far as cars need it: label and detection rows, boxes on the ground, and
// the CLEAR MOT figures over 3-D boxes (Bernardin, Stiefelhagen 2008; KITTI's rules of what is ignored, with the 3-D
// overlap of Weng et al. 2020, "3D Multi-Object Tracking: A Baseline and New Evaluation Metrics").
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/hungarian.h"

namespace takt::testing {

// Camera frame of its picture: x right, y down, z forward; bottom centre; ry clockwise from above, 0 = +x.
struct KittiBox {
  int id = -1;
  std::string type;
  double truncation = 0, occlusion = 0;
  double u0 = 0, v0 = 0, u1 = 0, v1 = 0;  // in the picture
  double h = 0, w = 0, l = 0, x = 0, y = 0, z = 0, ry = 0;
  double score = 0;
};
using KittiFrames = std::vector<std::vector<KittiBox>>;

inline void put(KittiFrames& frames, std::size_t frame, KittiBox box) {
  if (frames.size() <= frame) frames.resize(frame + 1);
  frames[frame].push_back(std::move(box));
}

inline KittiFrames read_kitti_labels(const std::string& path) {
  KittiFrames frames;
  std::ifstream in(path);
  std::size_t frame = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    KittiBox b;
    double alpha = 0;
    fields >> frame >> b.id >> b.type >> b.truncation >> b.occlusion >> alpha >> b.u0 >> b.v0 >> b.u1 >> b.v1 >> b.h >>
        b.w >> b.l >> b.x >> b.y >> b.z >> b.ry;
    if (fields) put(frames, frame, b);
  }
  return frames;
}

inline KittiFrames read_kitti_detections(const std::string& path) {
  KittiFrames frames;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::size_t frame = 0;
    int type = 0;
    KittiBox b;
    fields >> frame >> type >> b.u0 >> b.v0 >> b.u1 >> b.v1 >> b.score >> b.h >> b.w >> b.l >> b.x >> b.y >> b.z >>
        b.ry;
    if (fields) put(frames, frame, b);
  }
  return frames;
}

// P2 of a calibration file: rectified camera frame to pixels.
inline std::array<double, 12> read_kitti_projection(const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("P2", 0) != 0) continue;
    std::istringstream fields(line.substr(line.find(' ')));
    std::array<double, 12> p{};
    for (double& v : p) fields >> v;
    if (fields) return p;
  }
  return {};
}

using Corners = std::vector<std::array<double, 2>>;  // counter-clockwise in (x, z)

inline Corners corners_of(const KittiBox& b) {
  Corners out;
  const double c = std::cos(b.ry), s = std::sin(b.ry);
  for (const auto& [al, aw] : {std::pair{0.5, 0.5}, {-0.5, 0.5}, {-0.5, -0.5}, {0.5, -0.5}}) {
    const double dx = al * b.l, dz = aw * b.w;
    out.push_back({b.x + c * dx + s * dz, b.z - s * dx + c * dz});
  }
  return out;
}

inline double area_of(const Corners& p) {
  double twice = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto& a = p[i];
    const auto& b = p[(i + 1) % p.size()];
    twice += a[0] * b[1] - a[1] * b[0];
  }
  return std::fabs(twice) / 2;
}

// Sutherland and Hodgman 1974.
inline Corners clip(Corners subject, const Corners& window) {
  for (std::size_t e = 0; e < window.size() && !subject.empty(); ++e) {
    const auto& a = window[e];
    const auto& b = window[(e + 1) % window.size()];
    const auto side = [&](const std::array<double, 2>& p) {
      return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
    };
    Corners next;
    for (std::size_t i = 0; i < subject.size(); ++i) {
      const auto& p = subject[i];
      const auto& q = subject[(i + 1) % subject.size()];
      const double dp = side(p), dq = side(q);
      if (dp >= 0) next.push_back(p);
      if ((dp >= 0) != (dq >= 0)) {
        const double t = dp / (dp - dq);
        next.push_back({p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])});
      }
    }
    subject = std::move(next);
  }
  return subject;
}

inline double overlap_3d(const KittiBox& a, const KittiBox& b) {
  const double top = std::max(a.y - a.h, b.y - b.h), bottom = std::min(a.y, b.y);
  if (bottom <= top) return 0;
  const double reach = 0.5 * (a.l + a.w + b.l + b.w);
  if (std::fabs(a.x - b.x) > reach || std::fabs(a.z - b.z) > reach) return 0;
  const double both = area_of(clip(corners_of(a), corners_of(b))) * (bottom - top);
  return both / (a.l * a.w * a.h + b.l * b.w * b.h - both);
}

// The picture's part of a projected box; false where none of it is in front of the camera.
inline bool project(const std::array<double, 12>& p, KittiBox& b) {
  constexpr double kWidth = 1242, kHeight = 375;
  b.u0 = b.v0 = std::numeric_limits<double>::infinity();
  b.u1 = b.v1 = -std::numeric_limits<double>::infinity();
  for (const auto& corner : corners_of(b)) {
    for (const double y : {b.y, b.y - b.h}) {
      const double depth = p[8] * corner[0] + p[9] * y + p[10] * corner[1] + p[11];
      if (depth < 0.1) continue;
      const double u = (p[0] * corner[0] + p[1] * y + p[2] * corner[1] + p[3]) / depth;
      const double v = (p[4] * corner[0] + p[5] * y + p[6] * corner[1] + p[7]) / depth;
      b.u0 = std::min(b.u0, u), b.u1 = std::max(b.u1, u);
      b.v0 = std::min(b.v0, v), b.v1 = std::max(b.v1, v);
    }
  }
  b.u0 = std::clamp(b.u0, 0.0, kWidth), b.u1 = std::clamp(b.u1, 0.0, kWidth);
  b.v0 = std::clamp(b.v0, 0.0, kHeight), b.v1 = std::clamp(b.v1, 0.0, kHeight);
  return b.u1 > b.u0 && b.v1 > b.v0;
}

struct MotFigures {
  int objects = 0, hits = 0, misses = 0, false_positives = 0, switches = 0;
  double overlap = 0;  // sum over hits
  [[nodiscard]] double mota() const {
    return objects == 0 ? 0 : 1 - static_cast<double>(misses + false_positives + switches) / objects;
  }
  [[nodiscard]] double motp() const { return hits == 0 ? 0 : overlap / hits; }
  void add(const MotFigures& o) {
    objects += o.objects, hits += o.hits, misses += o.misses, false_positives += o.false_positives;
    switches += o.switches, overlap += o.overlap;
  }
};

// One sequence: `tracks` with ids and boxes of the picture's frame. KITTI's rules: vans, and cars that are truncated or
// hidden (occlusion 3), count neither way; nor does an unmatched track of at most 25 pixels or half inside a DontCare
// region. A switch is counted against the last track that held the object, however long ago: stricter than KITTI, which
// forgets it across a gap.
inline MotFigures score_cars(const KittiFrames& truth, const KittiFrames& tracks, double least_overlap) {
  MotFigures f;
  std::map<int, int> last;  // track of an object
  for (std::size_t frame = 0; frame < truth.size(); ++frame) {
    std::vector<KittiBox> objects, outside;
    for (const KittiBox& b : truth[frame]) {
      if (b.type == "Car" || b.type == "Van") objects.push_back(b);
      if (b.type == "DontCare") outside.push_back(b);
    }
    const std::vector<KittiBox> found = frame < tracks.size() ? tracks[frame] : std::vector<KittiBox>{};
    std::vector<std::vector<double>> cost(objects.size(), std::vector<double>(found.size()));
    for (std::size_t i = 0; i < objects.size(); ++i) {
      for (std::size_t j = 0; j < found.size(); ++j) {
        const double overlap = overlap_3d(objects[i], found[j]);
        cost[i][j] = overlap >= least_overlap ? 1 - overlap : std::numeric_limits<double>::infinity();
      }
    }
    const std::vector<int> column = hungarian(cost, 10);
    std::vector<bool> used(found.size(), false);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const KittiBox& o = objects[i];
      const bool ignored = o.type != "Car" || o.truncation > 0 || o.occlusion > 2;
      const int j = column[i];
      if (j >= 0) used[static_cast<std::size_t>(j)] = true;
      if (ignored) continue;
      ++f.objects;
      if (j < 0) {
        ++f.misses;
        continue;
      }
      ++f.hits;
      f.overlap += 1 - cost[i][static_cast<std::size_t>(j)];
      const int id = found[static_cast<std::size_t>(j)].id;
      if (const auto at = last.find(o.id); at != last.end() && at->second != id) ++f.switches;
      last[o.id] = id;
    }
    for (std::size_t j = 0; j < found.size(); ++j) {
      const KittiBox& t = found[j];
      if (used[j] || t.v1 - t.v0 <= 25) continue;
      const bool dont_care = std::any_of(outside.begin(), outside.end(), [&](const KittiBox& d) {
        const double u = std::min(t.u1, d.u1) - std::max(t.u0, d.u0), v = std::min(t.v1, d.v1) - std::max(t.v0, d.v0);
        return u > 0 && v > 0 && u * v >= 0.5 * (t.u1 - t.u0) * (t.v1 - t.v0);
      });
      if (!dont_care) ++f.false_positives;
    }
  }
  return f;
}

}  // namespace takt::testing
