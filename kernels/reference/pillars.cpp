#include "kernels/reference/pillars.h"

#include <algorithm>
#include <cmath>

#include "kernels/points.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {
TAKT_BOTH std::int64_t count_of(const std::int32_t* count, std::int64_t capacity) {
  return count == nullptr ? capacity : std::clamp<std::int64_t>(*count, 0, capacity);
}

const char* invalid(const PillarParams& p) {
  for (const std::int64_t capacity : {p.points, p.pillars, p.members}) {
    if (capacity < 1 || capacity > kMaxPoints) return "a capacity is out of range";
  }
  if (p.most < 1 || p.most > kMaxPillarPoints) return "the points of a pillar are out of range";
  if (p.columns != 4 && p.columns != 5) return "columns are neither 4 nor 5";
  if (p.centre != 2 && p.centre != 3) return "the centre has neither 2 nor 3 columns";
  if (p.channels < 0 || p.channels > kMaxPillarChannels) return "the channels are out of range";
  const std::int64_t row = p.channels > 0 ? p.channels : p.most * pillar_features(p);
  if (p.pillars * row > 0x7fffffff) return "the result is too large";
  for (int i = 0; i < 3; ++i) {
    if (!std::isfinite(p.min[i]) || !(p.size[i] > 0 && p.size[i] < 1e6)) return "the grid is no grid";
  }
  return nullptr;
}

TAKT_BOTH Pillar::Pillar(const PillarParams& params, const PillarOperands& operands, std::int64_t pillar)
    : p(params), o(operands), points(count_of(o.point_count, p.points)) {
  const std::int64_t members = count_of(o.member_count, p.members);
  const auto end_of = [&](std::int64_t v, std::int64_t least) {
    const std::int64_t v_end = o.ends[v];
    return v_end < least ? least : v_end < members ? v_end : members;
  };
  begin = pillar == 0 ? 0 : end_of(pillar - 1, 0);
  end = end_of(pillar, begin);
  double sum[3] = {};
  for_each_point([&](const float* point) {
    for (int c = 0; c < 3; ++c) sum[c] += point[c];
    ++rows;
  });
  const auto key = static_cast<std::uint64_t>(o.cells[pillar]);
  for (int c = 0; c < 3 && rows > 0; ++c) {
    mean[c] = static_cast<float>(sum[c] / rows);
    const auto index = static_cast<double>(key >> (21 * c) & 0x1fffff);
    centre[c] = static_cast<float>((index + 0.5) * p.size[c] + p.min[c]);
  }
}

TAKT_BOTH void Pillar::features(const float* point, float* row) const {
  for (std::int32_t c = 0; c < p.columns; ++c) row[c] = point[c];
  for (int c = 0; c < 3; ++c) row[p.columns + c] = point[c] - mean[c];
  for (int c = 0; c < p.centre; ++c) row[p.columns + 3 + c] = point[c] - centre[c];
}

TAKT_BOTH std::int32_t pillar_rows(const PillarParams& p, const PillarOperands& o, std::int64_t pillar, float* rows) {
  const Pillar all(p, o, pillar);
  all.for_each_point([&](const float* point) {
    all.features(point, rows);
    rows += pillar_features(p);
  });
  return all.rows;
}

TAKT_BOTH void pillar_features(const PillarParams& p, const PillarOperands& o, float* out, int part, int parts) {
  const std::int64_t pillars = count_of(o.pillar_count, p.pillars), features = takt::kernels::pillar_features(p);
  const std::int64_t size = p.most * features;
  for (std::int64_t v = pillars * part / parts; v < pillars * (part + 1) / parts; ++v) {
    float* const rows = out + v * size;
    const std::int32_t n = pillar_rows(p, o, v, rows);
    for (std::int64_t i = n * features; i < size; ++i) rows[i] = 0;
  }
}

TAKT_BOTH float pillar_channel(const Pillar& pillar, const float* weights, float bias) {
  float most = pillar.rows < pillar.p.most && bias > 0.0F ? bias : 0.0F;
  pillar.for_each_point([&](const float* point) {
    float row[kMaxPillarFeatures];
    pillar.features(point, row);
    float sum = bias;
    for (std::int64_t f = 0; f < takt::kernels::pillar_features(pillar.p); ++f) {
      sum = std::fma(row[f], weights[f * pillar.p.channels], sum);
    }
    most = sum > most ? sum : most;  // a NaN is none
  });
  return most;
}

TAKT_BOTH void pillar_encode(const PillarParams& p, const PillarOperands& o, const float* weights, const float* bias,
                             float* out, int part, int parts) {
  const std::int64_t pillars = count_of(o.pillar_count, p.pillars);
  for (std::int64_t v = pillars * part / parts; v < pillars * (part + 1) / parts; ++v) {
    const Pillar pillar(p, o, v);
    for (std::int64_t c = 0; c < p.channels; ++c)
      out[v * p.channels + c] = pillar_channel(pillar, weights + c, bias[c]);
  }
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
