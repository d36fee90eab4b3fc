// Host halves of the operators on points, pillars and boxes: kernels/points.h, pillars.h, boxes.h have their
// parameters.
#include <array>

#include "kernels/boxes.h"
#include "kernels/cpu/cuda_scratch.h"
#include "kernels/cpu/operators.h"
#include "kernels/pillars.h"
#include "kernels/points.h"
#include "kernels/reference/boxes.h"
#include "kernels/reference/pillars.h"
#include "kernels/reference/points.h"

namespace takt::kernels::cpu {
namespace {

template <class Params>
Params load(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

// Extents that invalid() has bounded.
std::uint64_t bytes(std::initializer_list<std::int64_t> extents, std::uint64_t element = 4) {
  std::uint64_t n = element;
  for (const std::int64_t extent : extents) n *= static_cast<std::uint64_t>(extent);
  return n;
}

class Operands {
 public:
  explicit Operands(OperandBytes* out) : out_(out) {}
  Operands& add(std::uint64_t size, std::uint64_t element = 4) {
    out_->bytes[next_] = size;
    out_->element[next_++] = element;
    return *this;
  }
  Operands& count() { return add(4); }

 private:
  OperandBytes* out_;
  int next_ = 0;
};

const char* cloud_operands(const void* params, OperandBytes* out) {
  const auto p = load<CloudParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  Operands(out)
      .add(static_cast<std::uint64_t>(cloud_bytes(p.capacity)))
      .add(bytes({p.capacity, kPointColumns}))
      .count();
  return nullptr;
}
constexpr OperatorKernel kCloud = {KernelId::kCloud, "cloud",        1,      sizeof(CloudParams), 1, 0, 2, 0,
                                   {-1, 2, -1},      cloud_operands, nullptr};

const char* deskew_operands(const void* params, OperandBytes* out) {
  const auto p = load<DeskewParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  const std::uint64_t points = bytes({p.capacity, kPointColumns});
  Operands(out).add(points).add(bytes({p.poses, 8}, 8), 8).add(12 * 8, 8).count().count().add(points).count();
  return nullptr;
}
// Two rotations, and an interpolation between poses.
std::uint64_t deskew_flops(const void* params) {
  return 120 * static_cast<std::uint64_t>(load<DeskewParams>(params).capacity);
}
constexpr OperatorKernel kDeskew = {
    KernelId::kDeskew,         "deskew",        1,           sizeof(DeskewParams), 3, 2, 2, 0,
    {3, 4, -1, -1, -1, 3, -1}, deskew_operands, deskew_flops};

const char* crop_operands(const void* params, OperandBytes* out) {
  const auto p = load<CropParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  Operands(out)
      .add(bytes({p.capacity, kPointColumns}))
      .count()
      .add(bytes({p.capacity_out, kPointColumns}))
      .add(bytes({kCropReasons}))
      .count()
      .count();
  return nullptr;
}
std::uint64_t crop_on_cuda(const void* params) { return CropScratch(load<CropParams>(params)).bytes; }
constexpr OperatorKernel kCrop = {KernelId::kCrop,        "crop",        1,       sizeof(CropParams), 1, 1, 4, 0,
                                  {1, -1, 5, -1, -1, -1, -1}, crop_operands, nullptr, crop_on_cuda};

const char* sweeps_operands(const void* params, OperandBytes* out) {
  const auto p = load<SweepsParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  const std::uint64_t past = bytes({p.history, p.capacity, kPastColumns});
  const std::uint64_t sweeps = bytes({p.history, 2}, 8), poses = bytes({p.history, 7}, 8);
  Operands(out)
      .add(bytes({p.capacity, kPointColumns}))
      .add(8, 8)
      .add(7 * 8, 8)
      .add(past)
      .add(sweeps, 8)
      .add(poses, 8)
      .count()
      .add(bytes({p.capacity_out, kPointColumns}))
      .add(past)
      .add(sweeps, 8)
      .add(poses, 8)
      .count()
      .count()
      .count();
  return nullptr;
}
std::uint64_t sweeps_flops(const void* params) {
  const auto p = load<SweepsParams>(params);
  return 18 * static_cast<std::uint64_t>(p.capacity) * static_cast<std::uint64_t>(p.history);
}
constexpr OperatorKernel kSweeps = {KernelId::kSweeps,
                                    "sweeps",
                                    1,
                                    sizeof(SweepsParams),
                                    6,
                                    1,
                                    7,
                                    0,
                                    {6, -1, -1, -1, -1, -1, -1, 13, -1, -1, -1, -1, -1, -1},
                                    sweeps_operands,
                                    sweeps_flops};

Operands pillar_inputs(const PillarParams& p, OperandBytes* out) {
  Operands operands(out);
  operands.add(bytes({p.points, kPointColumns}))
      .add(bytes({p.pillars}, 8), 8)
      .add(bytes({p.pillars}))
      .add(bytes({p.members}));
  return operands;
}
const char* pillar_features_operands(const void* params, OperandBytes* out) {
  const auto p = load<PillarParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  if (p.channels != 0) return "features have no channels of a layer";
  pillar_inputs(p, out).count().count().count().add(bytes({p.pillars, p.most, pillar_features(p)}));
  return nullptr;
}
constexpr OperatorKernel kPillarFeatures = {
    KernelId::kPillarFeatures,   "pillar_features_f32",    1,      sizeof(PillarParams), 4, 3, 1, 0,
    {4, 5, 5, 6, -1, -1, -1, 5}, pillar_features_operands, nullptr};

const char* pillar_encode_operands(const void* params, OperandBytes* out) {
  const auto p = load<PillarParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  if (p.channels == 0) return "a layer has channels";
  pillar_inputs(p, out)
      .add(bytes({pillar_features(p), p.channels}))
      .add(bytes({p.channels}))
      .count()
      .count()
      .count()
      .add(bytes({p.pillars, p.channels}));
  return nullptr;
}
// No point is in two pillars.
std::uint64_t pillar_encode_flops(const void* params) {
  const auto p = load<PillarParams>(params);
  return 2 * bytes({p.members, pillar_features(p), p.channels}, 1);
}
constexpr OperatorKernel kPillarEncode = {KernelId::kPillarEncode,
                                          "pillar_encode_f32",
                                          1,
                                          sizeof(PillarParams),
                                          6,
                                          3,
                                          1,
                                          0,
                                          {6, 7, 7, 8, -1, -1, -1, -1, -1, 7},
                                          pillar_encode_operands,
                                          pillar_encode_flops};

const char* decode_operands(const void* params, OperandBytes* out) {
  const auto p = load<TopKDecodeParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  const std::uint64_t map = bytes({p.h, p.w});
  Operands operands(out);
  for (const int channels : {p.classes, 2, 1, 3, 2, 2 * p.velocity}) operands.add(map * channels);
  operands.add(bytes({p.k, kBoxColumns})).add(bytes({p.k})).add(bytes({p.k})).add(bytes({p.k})).count().count();
  return nullptr;
}
std::uint64_t decode_on_cuda(const void* params) { return TopKScratch(load<TopKDecodeParams>(params)).bytes; }
constexpr OperatorKernel kTopKDecode = {KernelId::kTopKDecode,
                                        "top_k_decode_f32",
                                        1,
                                        sizeof(TopKDecodeParams),
                                        6,
                                        0,
                                        6,
                                        0,
                                        {-1, -1, -1, -1, -1, -1, 11, 11, 11, 11, -1, -1, -1},
                                        decode_operands,
                                        nullptr,
                                        decode_on_cuda};

const char* nms_operands(const void* params, OperandBytes* out) {
  const auto p = load<NmsParams>(params);
  if (const char* const problem = reference::invalid(p)) return problem;
  const std::uint64_t boxes = bytes({p.capacity, kBoxColumns}), rows = bytes({p.capacity});
  Operands(out).add(boxes).add(rows).add(rows).count().add(boxes).add(rows).add(rows).add(rows).count();
  return nullptr;
}
constexpr OperatorKernel nms_kernel(KernelId id, const char* name) {
  return {id, name, 1, sizeof(NmsParams), 3, 1, 5, 0, {3, 3, 3, -1, 8, 8, 8, 8, -1}, nms_operands, nullptr};
}
constexpr OperatorKernel kCircleNms = nms_kernel(KernelId::kCircleNms, "circle_nms");
constexpr OperatorKernel kAxisAlignedNms = nms_kernel(KernelId::kAxisAlignedNms, "axis_aligned_nms");
constexpr OperatorKernel kRotatedNms = nms_kernel(KernelId::kRotatedNms, "rotated_nms");

constexpr const OperatorKernel* kOperators[] = {&kCloud,          &kDeskew,       &kCrop,       &kSweeps,
                                                &kPillarFeatures, &kPillarEncode, &kTopKDecode, &kCircleNms,
                                                &kAxisAlignedNms, &kRotatedNms};

}  // namespace

std::span<const OperatorKernel* const> point_operators() { return kOperators; }

}  // namespace takt::kernels::cpu
