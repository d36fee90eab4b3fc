#include "kernels/reference/boxes.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {
namespace {

struct Point {
  double x, y;
};

// Vertices of a convex polygon; a rectangle cut by four lines has at most eight.
struct Polygon {
  Point at[8];
  int size = 0;
};

// What lies on the side sign * coordinate <= limit. An edge that crosses has an end on each side, so that nothing is
// divided by zero; one along the line does not cross.
template <double Point::*coordinate>
TAKT_BOTH Polygon cut(const Polygon& in, double sign, double limit) {
  Polygon out;
  for (int i = 0; i < in.size; ++i) {
    const Point &a = in.at[i], &b = in.at[(i + 1) % in.size];
    const double da = sign * a.*coordinate - limit, db = sign * b.*coordinate - limit;
    if (da <= 0 && out.size < 8) out.at[out.size++] = a;
    if ((da < 0 && db > 0) || (da > 0 && db < 0)) {
      const double u = da / (da - db);
      if (out.size < 8) out.at[out.size++] = {a.x + (b.x - a.x) * u, a.y + (b.y - a.y) * u};
    }
  }
  return out;
}

TAKT_BOTH double area_of(const Polygon& p) {
  double twice = 0;
  for (int i = 1; i + 1 < p.size; ++i) {
    twice +=
        (p.at[i].x - p.at[0].x) * (p.at[i + 1].y - p.at[0].y) - (p.at[i + 1].x - p.at[0].x) * (p.at[i].y - p.at[0].y);
  }
  return std::fabs(twice) / 2;
}

TAKT_BOTH bool has_area(const float* box) { return box[3] > 0 && box[4] > 0; }

TAKT_BOTH double over_union(double common, double area_a, double area_b) {
  const double all = area_a + area_b - common;
  return all > 0 ? std::clamp(common / all, 0.0, 1.0) : 0;
}

TAKT_BOTH bool finite_footprint(const float* box) {
  return std::isfinite(box[0]) && std::isfinite(box[1]) && std::isfinite(box[3]) && std::isfinite(box[4]) &&
         std::isfinite(box[6]);
}

// Half extents in x and y of a box turned to the nearest axis.
TAKT_BOTH Point half_extents(const float* box) {
  const double sine = std::fabs(takt::kernels::sin(box[6])), cosine = std::fabs(takt::kernels::cos(box[6]));
  return sine > cosine ? Point{box[4] / 2.0, box[3] / 2.0} : Point{box[3] / 2.0, box[4] / 2.0};
}

TAKT_BOTH bool too_near(Nearness nearness, const float* a, const float* b, float limit) {
  switch (nearness) {
    case Nearness::kCircle: {
      const double dx = double{a[0]} - b[0], dy = double{a[1]} - b[1];
      return limit >= 0 && dx * dx + dy * dy <= double{limit} * limit;
    }
    case Nearness::kAxisAligned: return axis_aligned_iou(a, b) > limit;
    case Nearness::kRotated: return rotated_iou(a, b) > limit;
  }
  return false;
}

// A heap whose root is the last in the order of `before`; sorting it gives the order itself. Written out: nothing of
// the standard library allocates here, but what it copies is counted in timed threads.
template <class Swap, class Before>
TAKT_BOTH void sink(std::int64_t i, std::int64_t n, const Swap& swap, const Before& before) {
  for (;;) {
    std::int64_t last = i;
    for (const std::int64_t child : {2 * i + 1, 2 * i + 2}) {
      if (child < n && before(last, child)) last = child;
    }
    if (last == i) return;
    swap(i, last);
    i = last;
  }
}
template <class Swap, class Before>
TAKT_BOTH void sort_heap(std::int64_t n, const Swap& swap, const Before& before) {
  for (std::int64_t i = n - 1; i > 0; --i) {
    swap(0, i);
    sink(0, i, swap, before);
  }
}

}  // namespace

const char* invalid(const TopKDecodeParams& p) {
  if (p.classes < 1 || p.classes > kMaxBoxClasses) return "the number of classes is out of range";
  if (p.h < 1 || p.w < 1 || std::int64_t{p.h} * p.w * kMaxBoxClasses > 0x7fffffff) return "the map is out of range";
  if (p.k < 1 || p.k > kMaxBoxes) return "the capacity is out of range";
  for (int d = 0; d < 2; ++d) {
    if (!std::isfinite(p.origin[d])) return "origin is not finite";
    if (!std::isfinite(p.cell_m[d]) || !(p.cell_m[d] > 0)) return "cell is not above zero and finite";
  }
  if (p.velocity != 0 && p.velocity != 1) return "the presence of velocity is neither 0 nor 1";
  return nullptr;
}

const char* invalid(const NmsParams& p) {
  if (p.capacity < 1 || p.capacity > kMaxBoxes) return "the capacity is out of range";
  for (const float limit : p.limit) {
    if (!std::isfinite(limit) || limit < 0) return "limit is negative or not finite";
  }
  return p.most >= 0 ? nullptr : "most is negative";
}

TAKT_BOTH bool CentreMaps::is_candidate(std::int32_t category, std::int32_t cell) const {
  const float* const map = heat + category * pixels();
  const float centre = map[cell];
  if (!(centre > p.logit_min) || std::isinf(centre)) return false;
  const std::int32_t y = cell / p.w, x = cell % p.w;
  for (std::int32_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < p.h; ++v) {
    for (std::int32_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < p.w; ++u) {
      const float other = map[std::int64_t{v} * p.w + u];
      if (other > centre || (other == centre && (v < y || (v == y && u < x)))) return false;
    }
  }
  return is_box(category, cell);
}

TAKT_BOTH bool CentreMaps::is_box(std::int32_t category, std::int64_t cell) const {
  const float sine = rotation[cell], cosine = rotation[pixels() + cell];
  const double norm = std::sqrt(double{sine} * sine + double{cosine} * cosine);
  bool sound = std::isfinite(norm) && norm >= p.yaw_norm_min[category] && std::isfinite(height[cell]) &&
               std::isfinite(x_at(cell)) && std::isfinite(y_at(cell));
  for (std::int64_t c = 0; c < 3; ++c) {
    sound = sound && std::isfinite(size[c * pixels() + cell]) && std::isfinite(size_at(c, cell));
  }
  for (std::int64_t c = 0; c < 2 && velocity != nullptr; ++c) {
    sound = sound && std::isfinite(velocity[c * pixels() + cell]);
  }
  return sound;
}

TAKT_BOTH float CentreMaps::size_at(std::int64_t c, std::int64_t cell) const {
  return static_cast<float>(takt::kernels::exp(double{size[c * pixels() + cell]}));
}

TAKT_BOTH float CentreMaps::x_at(std::int64_t cell) const {
  return (static_cast<float>(cell % p.w) + offset[cell]) * p.cell_m[0] + p.origin[0];
}
TAKT_BOTH float CentreMaps::y_at(std::int64_t cell) const {
  return (static_cast<float>(cell / p.w) + offset[pixels() + cell]) * p.cell_m[1] + p.origin[1];
}

TAKT_BOTH void CentreMaps::decode(std::int32_t cell, float* box) const {
  box[0] = x_at(cell);
  box[1] = y_at(cell);
  box[2] = height[cell];
  for (std::int64_t c = 0; c < 3; ++c) box[3 + c] = size_at(c, cell);
  box[6] = static_cast<float>(takt::kernels::atan2(double{rotation[cell]}, double{rotation[pixels() + cell]}));
  box[7] = velocity != nullptr ? velocity[cell] : 0;
  box[8] = velocity != nullptr ? velocity[pixels() + cell] : 0;
}

TAKT_BOTH float score_of(float logit) { return static_cast<float>(1 / (1 + takt::kernels::exp(-double{logit}))); }

TAKT_BOTH void top_k_decode(const TopKDecodeParams& p, const DecodeOperands& o) {
  const CentreMaps maps{p, o.heat, o.offset, o.height, o.size, o.rotation, o.velocity};
  // Until the end `scores` holds logits.
  const auto precedes = [&](float logit, std::int32_t category, std::int32_t cell, std::int64_t other) {
    if (logit != o.scores[other]) return logit > o.scores[other];
    if (category != o.classes[other]) return category < o.classes[other];
    return cell < o.cells[other];
  };
  const auto before = [&](std::int64_t a, std::int64_t b) {
    return precedes(o.scores[a], o.classes[a], o.cells[a], b);
  };
  const auto swap = [&](std::int64_t a, std::int64_t b) {
    std::swap(o.scores[a], o.scores[b]);
    std::swap(o.classes[a], o.classes[b]);
    std::swap(o.cells[a], o.cells[b]);
  };

  std::int64_t n = 0, candidates = 0;
  for (std::int32_t category = 0; category < p.classes; ++category) {
    for (std::int32_t cell = 0; cell < maps.pixels(); ++cell) {
      if (!maps.is_candidate(category, cell)) continue;
      const float logit = o.heat[category * maps.pixels() + cell];
      ++candidates;
      if (n < p.k) {
        o.scores[n] = logit;
        o.classes[n] = category;
        o.cells[n] = cell;
        // Up to where its parent comes later.
        for (std::int64_t i = n++; i > 0 && before((i - 1) / 2, i); i = (i - 1) / 2) swap(i, (i - 1) / 2);
      } else if (precedes(logit, category, cell, 0)) {
        o.scores[0] = logit;
        o.classes[0] = category;
        o.cells[0] = cell;
        sink(0, n, swap, before);
      }
    }
  }
  sort_heap(n, swap, before);
  for (std::int64_t i = 0; i < n; ++i) {
    maps.decode(o.cells[i], o.boxes + i * kBoxColumns);
    o.scores[i] = score_of(o.scores[i]);
  }
  *o.count = static_cast<std::int32_t>(n);
  *o.dropped = static_cast<std::int32_t>(candidates - n);
}

TAKT_BOTH double rotated_iou(const float* a, const float* b) {
  if (!finite_footprint(a) || !finite_footprint(b) || !has_area(a) || !has_area(b)) return 0;
  if (std::lexicographical_compare(b, b + 7, a, a + 7)) std::swap(a, b);
  // Corners of b in the frame of a, whose own lie at half its extents.
  const double turn = double{b[6]} - a[6];
  const double ca = takt::kernels::cos(a[6]), sa = takt::kernels::sin(a[6]);
  const double cb = takt::kernels::cos(turn), sb = takt::kernels::sin(turn);
  const double dx = double{b[0]} - a[0], dy = double{b[1]} - a[1];
  const double x = ca * dx + sa * dy, y = ca * dy - sa * dx;
  const double l = b[3] / 2.0, w = b[4] / 2.0;
  Polygon p;
  p.size = 4;
  p.at[0] = {x + cb * l - sb * w, y + sb * l + cb * w};
  p.at[1] = {x - cb * l - sb * w, y - sb * l + cb * w};
  p.at[2] = {x - cb * l + sb * w, y - sb * l - cb * w};
  p.at[3] = {x + cb * l + sb * w, y + sb * l - cb * w};
  const double half_length = a[3] / 2.0, half_width = a[4] / 2.0;
  p = cut<&Point::x>(p, 1, half_length);
  p = cut<&Point::x>(p, -1, half_length);
  p = cut<&Point::y>(p, 1, half_width);
  p = cut<&Point::y>(p, -1, half_width);
  return over_union(area_of(p), double{a[3]} * a[4], double{b[3]} * b[4]);
}

TAKT_BOTH double axis_aligned_iou(const float* a, const float* b) {
  if (!finite_footprint(a) || !finite_footprint(b) || !has_area(a) || !has_area(b)) return 0;
  const Point ha = half_extents(a), hb = half_extents(b);
  const auto common = [](double ca, double ra, double cb, double rb) {
    return std::max(0.0, std::min(ca + ra, cb + rb) - std::max(ca - ra, cb - rb));
  };
  return over_union(common(a[0], ha.x, b[0], hb.x) * common(a[1], ha.y, b[1], hb.y), 4 * ha.x * ha.y, 4 * hb.x * hb.y);
}

TAKT_BOTH bool may_stay(const NmsOperands& o, std::int64_t i) {
  return std::isfinite(o.scores[i]) && o.classes[i] >= 0 && o.classes[i] < kMaxBoxClasses &&
         finite_footprint(o.boxes + i * kBoxColumns);
}

TAKT_BOTH bool precedes(const NmsOperands& o, std::int32_t i, std::int32_t j) {
  if (o.scores[i] != o.scores[j]) return o.scores[i] > o.scores[j];
  if (o.classes[i] != o.classes[j]) return o.classes[i] < o.classes[j];
  return i < j;
}

TAKT_BOTH bool suppresses(Nearness nearness, const NmsParams& p, const NmsOperands& o, std::int32_t better,
                          std::int32_t worse) {
  const std::int32_t category = o.classes[worse];
  if (p.agnostic == 0 && o.classes[better] != category) return false;
  return too_near(nearness, o.boxes + std::int64_t{better} * kBoxColumns, o.boxes + std::int64_t{worse} * kBoxColumns,
                  p.limit[category]);
}

TAKT_BOTH void nms(Nearness nearness, const NmsParams& p, const NmsOperands& o) {
  const std::int64_t all = o.count == nullptr ? p.capacity : std::clamp<std::int64_t>(*o.count, 0, p.capacity);
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < all; ++i) {
    if (may_stay(o, i)) o.index[n++] = static_cast<std::int32_t>(i);
  }
  const auto before = [&](std::int64_t a, std::int64_t b) { return precedes(o, o.index[a], o.index[b]); };
  const auto swap = [&](std::int64_t a, std::int64_t b) { std::swap(o.index[a], o.index[b]); };
  for (std::int64_t i = n / 2; i-- > 0;) sink(i, n, swap, before);
  sort_heap(n, swap, before);

  // The list of those that stay grows behind the one that is looked at, in the same array.
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < n && kept < p.most; ++i) {
    const std::int32_t row = o.index[i];
    const float* const box = o.boxes + row * kBoxColumns;
    bool stays = true;
    for (std::int64_t j = 0; stays && j < kept; ++j) stays = !suppresses(nearness, p, o, o.index[j], row);
    if (!stays) continue;
    o.index[kept] = row;
    for (std::int64_t c = 0; c < kBoxColumns; ++c) o.out_boxes[kept * kBoxColumns + c] = box[c];
    o.out_scores[kept] = o.scores[row];
    o.out_classes[kept] = o.classes[row];
    ++kept;
  }
  *o.kept = static_cast<std::int32_t>(kept);
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
