// Operators on points and pillars (kernels/points.h, pillars.h): the reference functions, a thread for each row, and a
// compaction where rows are left out.
#include "kernels/cuda/calls.h"
#include "kernels/cuda/order.h"
#include "kernels/pillars.h"
#include "kernels/points.h"
#include "kernels/reference/pillars.h"
#include "kernels/reference/points.h"
// Their bodies, once more for this side.
#include "kernels/reference/pillars.cpp"  // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/points.cpp"   // NOLINT(bugprone-suspicious-include)

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::KernelId;

template <class T>
TAKT_DEVICE T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}

// i32 numbers that kernels count in.
struct Zero {
  Address numbers;
  TAKT_DEVICE void operator()(std::int64_t i) const { at<std::int32_t>(numbers)[i] = 0; }
};

// --- Cloud, Deskew, Crop, Sweeps -----------------------------------------------------------------------------------
struct CloudWork {
  TAKT_DEVICE void operator()(const CloudParams* p, const Operand* o, int part, int parts) const {
    reference::cloud(*p, o[0].data, data<float>(o[1]), data<std::int32_t>(o[2]), part, parts);
  }
};
int cloud(const Call& call) {
  const auto p = load_params<CloudParams>(call.params);
  return by_parts<CloudWork, 3>("cloud", p, p.capacity, call);
}

struct DeskewPoint {
  DeskewParams p;
  Address points, poses, sensor, count, pose_count, out, held;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    if (i >= rows_of(count, p.capacity)) return;
    reference::Deskew deskew(p, at<const double>(poses), at<const std::int32_t>(pose_count), at<const double>(sensor));
    const float* const point = at<const float>(points) + i * kPointColumns;
    if (!deskew.reaches(point[4])) atomic_add(at<std::int32_t>(held), 1);
    deskew.move(point, at<float>(out) + i * kPointColumns);
  }
};
int deskew(const Call& call) {
  const auto p = load_params<DeskewParams>(call.params);
  const Address* const o = call.operands;
  if (const int error = each("deskew_held", Zero{o[6]}, 1, call)) return error;
  return each("deskew", DeskewPoint{p, o[0], o[1], o[2], o[3], o[4], o[5], o[6]}, p.capacity, call);
}

struct CropPoints {
  CropParams p;
  Address points, count, out, rejected, dropped, kept, tile_sums;
  [[nodiscard]] TAKT_DEVICE const float* row(std::int64_t i) const {
    return at<const float>(points) + i * kPointColumns;
  }
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const {
    return i < rows_of(count, p.capacity) && reference::crop_reason(p, row(i)) < 0 ? 1 : 0;
  }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (i >= rows_of(count, p.capacity)) return;
    if (weight == 0) {
      atomic_add(at<std::int32_t>(rejected) + reference::crop_reason(p, row(i)), 1);
    } else if (static_cast<std::int64_t>(to) < p.capacity_out) {
      for (std::int64_t c = 0; c < kPointColumns; ++c) {
        at<float>(out)[static_cast<std::int64_t>(to) * kPointColumns + c] = row(i)[c];
      }
    }
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    const auto wanted = static_cast<std::int64_t>(total);
    const std::int64_t rows = wanted < p.capacity_out ? wanted : p.capacity_out;
    *at<std::int32_t>(kept) = static_cast<std::int32_t>(rows);
    *at<std::int32_t>(dropped) = static_cast<std::int32_t>(wanted - rows);
  }
};
int crop(const Call& call) {
  const auto p = load_params<CropParams>(call.params);
  const Address* const o = call.operands;
  if (const int error = each("crop_rejected", Zero{o[3]}, kCropReasons, call)) return error;
  const Address tile_sums = within(o[6], cpu::CropScratch(p).tile_sums);
  return compact("crop", CropPoints{p, o[0], o[1], o[2], o[3], o[4], o[5], tile_sums}, p.capacity, call);
}

struct SweepsWork {
  TAKT_DEVICE void operator()(const SweepsParams* p, const Operand* o, int part, int parts) const {
    reference::sweeps(
        *p,
        {data<const float>(o[0]), data<const std::int32_t>(o[6]), data<const std::int64_t>(o[1]),
         data<const double>(o[2]), data<const float>(o[3]), data<const std::int64_t>(o[4]), data<const double>(o[5]),
         data<float>(o[7]), data<float>(o[8]), data<std::int64_t>(o[9]), data<double>(o[10]), data<std::int32_t>(o[11]),
         data<std::int32_t>(o[12]), data<std::int32_t>(o[13])},
        part, parts);
  }
};
int sweeps(const Call& call) {
  const auto p = load_params<SweepsParams>(call.params);
  return by_parts<SweepsWork, 14>("sweeps", p, p.capacity, call);
}

// --- pillars -------------------------------------------------------------------------------------------------------
TAKT_DEVICE reference::PillarOperands grouped(const Operand* o, int counts) {
  return {data<const float>(o[0]),
          data<const std::int64_t>(o[1]),
          data<const std::int32_t>(o[2]),
          data<const std::int32_t>(o[3]),
          data<const std::int32_t>(o[counts]),
          data<const std::int32_t>(o[counts + 1]),
          data<const std::int32_t>(o[counts + 2])};
}

struct PillarFeaturesWork {
  TAKT_DEVICE void operator()(const PillarParams* p, const Operand* o, int part, int parts) const {
    reference::pillar_features(*p, grouped(o, 4), data<float>(o[7]), part, parts);
  }
};
int pillar_features(const Call& call) {
  const auto p = load_params<PillarParams>(call.params);
  return by_parts<PillarFeaturesWork, 8>("pillar_features", p, p.pillars, call);
}

// A channel of a pillar for each part.
struct PillarEncodeWork {
  TAKT_DEVICE void operator()(const PillarParams* p, const Operand* o, int part, int /*parts*/) const {
    const reference::PillarOperands in = grouped(o, 6);
    const std::int64_t pillar = part / p->channels, channel = part % p->channels;
    if (pillar >= reference::count_of(in.pillar_count, p->pillars)) return;
    data<float>(o[9])[part] = reference::pillar_channel({*p, in, pillar}, data<const float>(o[4]) + channel,
                                                        data<const float>(o[5])[channel]);
  }
};
int pillar_encode(const Call& call) {
  const auto p = load_params<PillarParams>(call.params);
  return by_parts<PillarEncodeWork, 10>("pillar_encode", p, p.pillars * p.channels, call);
}

}  // namespace

std::span<const DeviceHalf> point_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kCloud, cloud},
                                           {KernelId::kDeskew, deskew},
                                           {KernelId::kCrop, crop},
                                           {KernelId::kSweeps, sweeps},
                                           {KernelId::kPillarFeatures, pillar_features},
                                           {KernelId::kPillarEncode, pillar_encode}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
