// Device halves of the operators on points, pillars and boxes. All but the first layer of pillars are the reference
// itself: rows that wait for memory, or serial work over few boxes.
#include "kernels/points.h"
#include "kernels/boxes.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"
#include "kernels/pillars.h"
#include "kernels/reference/boxes.h"
#include "kernels/reference/pillars.h"
#include "kernels/reference/points.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/points.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}
const std::int32_t* count(const Operand& operand) { return data<const std::int32_t>(operand); }

void run_cloud(const void* params, const Operand* o, int part, int parts) {
  reference::cloud(load_params<CloudParams>(params), o[0].data, data<float>(o[1]), data<std::int32_t>(o[2]), part,
                   parts);
}

void run_deskew(const void* params, const Operand* o, int part, int parts) {
  reference::deskew(load_params<DeskewParams>(params), data<const float>(o[0]), count(o[3]), data<const double>(o[1]),
                    count(o[4]), data<const double>(o[2]), data<float>(o[5]), data<std::int32_t>(o[6]), part, parts);
}

// Where a point goes depends on all before it.
void run_crop(const void* params, const Operand* o, int part, int /*parts*/) {
  if (part != 0) return;
  reference::crop(load_params<CropParams>(params), data<const float>(o[0]), count(o[1]), data<float>(o[2]),
                  data<std::int32_t>(o[3]), data<std::int32_t>(o[4]), data<std::int32_t>(o[5]));
}

void run_sweeps(const void* params, const Operand* o, int part, int parts) {
  reference::sweeps(load_params<SweepsParams>(params),
                    {data<const float>(o[0]), count(o[6]), data<const std::int64_t>(o[1]), data<const double>(o[2]),
                     data<const float>(o[3]), data<const std::int64_t>(o[4]), data<const double>(o[5]),
                     data<float>(o[7]), data<float>(o[8]), data<std::int64_t>(o[9]), data<double>(o[10]),
                     data<std::int32_t>(o[11]), data<std::int32_t>(o[12]), data<std::int32_t>(o[13])},
                    part, parts);
}

reference::PillarOperands grouped(const Operand* o, int counts) {
  return {data<const float>(o[0]),
          data<const std::int64_t>(o[1]),
          data<const std::int32_t>(o[2]),
          data<const std::int32_t>(o[3]),
          count(o[counts]),
          count(o[counts + 1]),
          count(o[counts + 2])};
}

void run_pillar_features(const void* params, const Operand* o, int part, int parts) {
  reference::pillar_features(load_params<PillarParams>(params), grouped(o, 4), data<float>(o[7]), part, parts);
}

// kTile vectors of channels, the last of them of `last` lanes, over all points of a pillar.
template <int kTile>
HWY_INLINE void encode_channels(const float* HWY_RESTRICT rows, std::int32_t n, std::ptrdiff_t features,
                                const float* HWY_RESTRICT weights, const float* HWY_RESTRICT bias,
                                std::ptrdiff_t channels, bool padded, std::size_t last, float* HWY_RESTRICT out) {
  const D d;
  const auto in_last = hn::FirstN(d, last);
  const auto load = [&](const float* from, int i) HWY_ATTR {
    return i + 1 < kTile ? hn::LoadU(d, from + i * kLanes) : hn::MaskedLoad(in_last, d, from + i * kLanes);
  };
  V first[kTile], most[kTile];
  TAKT_UNROLL for (int i = 0; i < kTile; ++i) {
    first[i] = load(bias, i);
    most[i] = hn::Zero(d);
    if (padded) most[i] = hn::IfThenElse(hn::Gt(first[i], most[i]), first[i], most[i]);
  }
  for (std::int32_t r = 0; r < n; ++r) {
    const float* const row = rows + r * features;
    V sum[kTile];
    TAKT_UNROLL for (int i = 0; i < kTile; ++i) sum[i] = first[i];
    for (std::ptrdiff_t f = 0; f < features; ++f) {
      const V x = hn::Set(d, row[f]);
      TAKT_UNROLL for (int i = 0; i < kTile; ++i) { sum[i] = hn::MulAdd(x, load(weights + f * channels, i), sum[i]); }
    }
    // A NaN is no maximum, as in the reference.
    TAKT_UNROLL for (int i = 0; i < kTile; ++i) most[i] = hn::IfThenElse(hn::Gt(sum[i], most[i]), sum[i], most[i]);
  }
  TAKT_UNROLL for (int i = 0; i + 1 < kTile; ++i) hn::StoreU(most[i], d, out + i * kLanes);
  hn::BlendedStore(most[kTile - 1], in_last, d, out + (kTile - 1) * kLanes);
}

void run_pillar_encode(const void* params, const Operand* o, int part, int parts) {
  const auto p = load_params<PillarParams>(params);
  const reference::PillarOperands in = grouped(o, 6);
  const float* const weights = data<const float>(o[4]);
  const float* const bias = data<const float>(o[5]);
  const std::ptrdiff_t pillars =
      in.pillar_count == nullptr ? p.pillars : std::clamp<std::ptrdiff_t>(*in.pillar_count, 0, p.pillars);
  const std::ptrdiff_t features = pillar_features(p), channels = p.channels;
  constexpr std::ptrdiff_t kTile = 4, kStep = kTile * kLanes;
  alignas(64) float rows[kMaxPillarPoints * kMaxPillarFeatures];
  const Range share = share_of(pillars, part, parts);
  for (std::ptrdiff_t v = share.first; v < share.last; ++v) {
    const std::int32_t n = reference::pillar_rows(p, in, v, rows);
    const bool padded = n < p.most;
    float* const out = data<float>(o[9]) + v * channels;
    std::ptrdiff_t c = 0;
    for (; c + kStep <= channels; c += kStep) {
      encode_channels<kTile>(rows, n, features, weights + c, bias + c, channels, padded, kLanes, out + c);
    }
    for (; c < channels; c += kLanes) {
      const auto last = static_cast<std::size_t>(std::min<std::ptrdiff_t>(kLanes, channels - c));
      encode_channels<1>(rows, n, features, weights + c, bias + c, channels, padded, last, out + c);
    }
  }
}

void run_top_k_decode(const void* params, const Operand* o, int part, int /*parts*/) {
  if (part != 0) return;
  const auto p = load_params<TopKDecodeParams>(params);
  reference::top_k_decode(
      p, {data<const float>(o[0]), data<const float>(o[1]), data<const float>(o[2]), data<const float>(o[3]),
          data<const float>(o[4]), p.velocity == 1 ? data<const float>(o[5]) : nullptr, data<float>(o[6]),
          data<float>(o[7]), data<std::int32_t>(o[8]), data<std::int32_t>(o[9]), data<std::int32_t>(o[10]),
          data<std::int32_t>(o[11])});
}

template <reference::Nearness nearness>
void run_nms(const void* params, const Operand* o, int part, int /*parts*/) {
  if (part != 0) return;
  reference::nms(
      nearness, load_params<NmsParams>(params),
      {data<const float>(o[0]), data<const float>(o[1]), data<const std::int32_t>(o[2]), count(o[3]), data<float>(o[4]),
       data<float>(o[5]), data<std::int32_t>(o[6]), data<std::int32_t>(o[7]), data<std::int32_t>(o[8])});
}

}  // namespace

std::span<const DeviceHalf> point_table() {
  static constexpr DeviceHalf kHalves[] = {
      {KernelId::kCloud, run_cloud},
      {KernelId::kDeskew, run_deskew},
      {KernelId::kCrop, run_crop},
      {KernelId::kSweeps, run_sweeps},
      {KernelId::kPillarFeatures, run_pillar_features},
      {KernelId::kPillarEncode, run_pillar_encode},
      {KernelId::kTopKDecode, run_top_k_decode},
      {KernelId::kCircleNms, run_nms<reference::Nearness::kCircle>},
      {KernelId::kAxisAlignedNms, run_nms<reference::Nearness::kAxisAligned>},
      {KernelId::kRotatedNms, run_nms<reference::Nearness::kRotated>},
  };
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(point_kernels, point_table)
}  // namespace takt::kernels::cpu
#endif
