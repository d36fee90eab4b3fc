#include "kernels/reference/pillars.h"

#include <algorithm>
#include <cmath>

#include "kernels/points.h"

namespace takt::kernels::reference {
namespace {

std::int64_t count_of(const std::int32_t* count, std::int64_t capacity) {
  return count == nullptr ? capacity : std::clamp<std::int64_t>(*count, 0, capacity);
}

}  // namespace

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

std::int32_t pillar_rows(const PillarParams& p, const PillarOperands& o, std::int64_t pillar, float* rows) {
  const std::int64_t points = count_of(o.point_count, p.points), members = count_of(o.member_count, p.members);
  const std::int64_t begin = pillar == 0 ? 0 : std::clamp<std::int64_t>(o.ends[pillar - 1], 0, members);
  const std::int64_t end = std::clamp<std::int64_t>(o.ends[pillar], begin, members);
  const std::int64_t features = pillar_features(p);
  std::int32_t n = 0;
  double sum[3] = {};
  for (std::int64_t m = begin; m < end && n < p.most; ++m) {
    const std::int64_t row = o.members[m];
    if (row < 0 || row >= points) continue;
    const float* const from = o.points + row * kPointColumns;
    float* const to = rows + n * features;
    for (std::int32_t c = 0; c < p.columns; ++c) to[c] = from[c];
    for (int c = 0; c < 3; ++c) sum[c] += from[c];
    ++n;
  }
  if (n == 0) return 0;
  const auto key = static_cast<std::uint64_t>(o.cells[pillar]);
  float mean[3], centre[3];
  for (int c = 0; c < 3; ++c) {
    mean[c] = static_cast<float>(sum[c] / n);
    const auto index = static_cast<double>(key >> (21 * c) & 0x1fffff);
    centre[c] = static_cast<float>((index + 0.5) * p.size[c] + p.min[c]);
  }
  for (std::int32_t i = 0; i < n; ++i) {
    float* const to = rows + i * features;
    for (int c = 0; c < 3; ++c) to[p.columns + c] = to[c] - mean[c];
    for (int c = 0; c < p.centre; ++c) to[p.columns + 3 + c] = to[c] - centre[c];
  }
  return n;
}

void pillar_features(const PillarParams& p, const PillarOperands& o, float* out, int part, int parts) {
  const std::int64_t pillars = count_of(o.pillar_count, p.pillars), features = takt::kernels::pillar_features(p);
  const std::int64_t size = p.most * features;
  for (std::int64_t v = pillars * part / parts; v < pillars * (part + 1) / parts; ++v) {
    float* const rows = out + v * size;
    const std::int32_t n = pillar_rows(p, o, v, rows);
    for (std::int64_t i = n * features; i < size; ++i) rows[i] = 0;
  }
}

void pillar_encode(const PillarParams& p, const PillarOperands& o, const float* weights, const float* bias, float* out,
                   int part, int parts) {
  const std::int64_t pillars = count_of(o.pillar_count, p.pillars), features = takt::kernels::pillar_features(p);
  float rows[kMaxPillarPoints * kMaxPillarFeatures];
  for (std::int64_t v = pillars * part / parts; v < pillars * (part + 1) / parts; ++v) {
    const std::int32_t n = pillar_rows(p, o, v, rows);
    for (std::int64_t c = 0; c < p.channels; ++c) {
      float most = n < p.most && bias[c] > 0.0F ? bias[c] : 0.0F;
      for (std::int32_t i = 0; i < n; ++i) {
        float sum = bias[c];
        for (std::int64_t f = 0; f < features; ++f)
          sum = std::fma(rows[i * features + f], weights[f * p.channels + c], sum);
        most = std::max(most, sum);
      }
      out[v * p.channels + c] = most;
    }
  }
}

}  // namespace takt::kernels::reference
