// Operators of domain takt on points, pillars and boxes: rows as in takt_operators.h, parameters in kernels/points.h,
// pillars.h, boxes.h.
#include <algorithm>

#include "compiler/ir/operator_tables.h"
#include "compiler/ir/takt_operators.h"
#include "kernels/boxes.h"
#include "kernels/pillars.h"
#include "kernels/points.h"
#include "kernels/reference/boxes.h"
#include "kernels/reference/elementary.h"
#include "kernels/reference/pillars.h"
#include "kernels/reference/points.h"

namespace takt::ir {
namespace {

using kernels::Operand;
using kernels::cpu::KernelId;
namespace reference = kernels::reference;

template <class Params>
Params load(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}
template <class T>
T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}
const std::int32_t* count(const Operand& operand) { return data<const std::int32_t>(operand); }

Type tensor(DType dtype, std::initializer_list<std::int64_t> extents) {
  Type type{dtype, {}};
  for (const std::int64_t extent : extents) type.shape.dims[type.shape.rank++] = extent;
  return type;
}
const Type kScalar{DType::kI32, {}};

// kInput unless input i has this element type and shape; -1 is any extent.
Status expect(const OperatorInputs& in, std::size_t i, DType dtype, std::initializer_list<std::int64_t> extents) {
  const Type& type = in.type(i);
  bool fits = type.dtype == dtype && type.shape.rank == static_cast<int>(extents.size());
  int d = 0;
  std::string wanted;
  for (const std::int64_t extent : extents) {
    fits = fits && (extent < 0 || type.shape.dims[d] == extent);
    wanted += (d++ == 0 ? "" : ",") + (extent < 0 ? std::string("n") : std::to_string(extent));
  }
  if (fits) return {};
  return fail(Code::kInput, "input " + std::to_string(i) + " is " + to_string(type) + "; expected " +
                                kernels::name_of(dtype) + "[" + wanted + "]");
}
Status expect_points(const OperatorInputs& in) { return expect(in, 0, DType::kF32, {-1, kernels::kPointColumns}); }

// A list of so many floats.
template <std::size_t n>
Status read(const Node& node, std::string_view key, float (&out)[n]) {
  const std::vector<float> values = node.numbers(key);
  if (values.size() != n) {
    return fail(Code::kInput, "attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                                  " numbers, expected " + std::to_string(n));
  }
  std::copy(values.begin(), values.end(), out);
  return {};
}
// One for all classes, or one for each; what is left out is `otherwise`.
Status read_by_class(const Node& node, std::string_view key, float otherwise, float (&out)[kernels::kMaxBoxClasses]) {
  const std::vector<float> values = node.numbers(key);
  if (values.size() > kernels::kMaxBoxClasses) {
    return fail(Code::kInput, "attribute " + std::string(key) + " has more numbers than there may be classes");
  }
  std::fill(std::begin(out), std::end(out), values.size() == 1 ? values[0] : otherwise);
  std::copy(values.begin(), values.end(), out);
  return {};
}

// What the kernel itself would refuse. Values out of an extent's range become 0 there, which it refuses too.
template <class Params>
Result<OperatorCall> call_of(const Params& p, std::vector<Type> outputs) {
  if (const char* const problem = reference::invalid(p)) return fail(Code::kInput, problem);
  return OperatorCall{block_of(p), std::move(outputs), {}};
}
std::int32_t narrow(std::int64_t value) {
  return value >= 0 && value <= kMaxElements ? static_cast<std::int32_t>(value) : 0;
}

Result<OperatorCall> describe_cloud(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect(in, 0, DType::kU8, {-1}));
  const kernels::CloudParams p{in.node.integer("capacity", 0)};
  TAKT_ASSIGN(OperatorCall call, call_of(p, {tensor(DType::kF32, {p.capacity, kernels::kPointColumns}), kScalar}));
  if (in.shape(0).dims[0] < kernels::cloud_bytes(p.capacity)) {
    return fail(Code::kInput, "a payload of " + to_string(in.type(0)) + " does not hold " + std::to_string(p.capacity) +
                                  " points; expected at least " + std::to_string(kernels::cloud_bytes(p.capacity)) +
                                  " bytes");
  }
  return call;
}
void run_cloud(const void* params, const Operand* o) {
  reference::cloud(load<kernels::CloudParams>(params), o[0].data, data<float>(o[1]), data<std::int32_t>(o[2]), 0, 1);
}

Result<OperatorCall> describe_deskew(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_points(in));
  TAKT_RETURN_IF_ERROR(expect(in, 1, DType::kF64, {-1, 8}));
  TAKT_RETURN_IF_ERROR(expect(in, 2, DType::kF64, {3, 4}));
  const kernels::DeskewParams p{in.shape(0).dims[0], in.shape(1).dims[0],
                                static_cast<double>(in.node.number("extrapolate", 0.1F))};
  return call_of(p, {tensor(DType::kF32, {p.capacity, kernels::kPointColumns}), kScalar});
}
void run_deskew(const void* params, const Operand* o) {
  reference::deskew(load<kernels::DeskewParams>(params), data<const float>(o[0]), count(o[3]), data<const double>(o[1]),
                    count(o[4]), data<const double>(o[2]), data<float>(o[5]), data<std::int32_t>(o[6]), 0, 1);
}

Result<OperatorCall> describe_crop(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_points(in));
  kernels::CropParams p;
  p.capacity = in.shape(0).dims[0];
  p.capacity_out = in.node.integer("capacity", p.capacity);
  float region[6], ego[6] = {}, distance[2] = {0, 1e9F};
  TAKT_RETURN_IF_ERROR(read(in.node, "range", region));
  if (in.node.attributes.count("ego") != 0) TAKT_RETURN_IF_ERROR(read(in.node, "ego", ego));
  if (in.node.attributes.count("distance") != 0) TAKT_RETURN_IF_ERROR(read(in.node, "distance", distance));
  if (in.node.attributes.count("origin") != 0) TAKT_RETURN_IF_ERROR(read(in.node, "origin", p.origin));
  for (int d = 0; d < 3; ++d) {
    p.min[d] = region[d];
    p.max[d] = region[3 + d];
    p.ego_min[d] = ego[d];
    p.ego_max[d] = ego[3 + d];
  }
  p.range_min = distance[0];
  p.range_max = distance[1];
  return call_of(p, {tensor(DType::kF32, {p.capacity_out, kernels::kPointColumns}),
                     tensor(DType::kI32, {kernels::kCropReasons}), kScalar, kScalar});
}
void run_crop(const void* params, const Operand* o) {
  reference::crop(load<kernels::CropParams>(params), data<const float>(o[0]), count(o[1]), data<float>(o[2]),
                  data<std::int32_t>(o[3]), data<std::int32_t>(o[4]), data<std::int32_t>(o[5]));
}

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kMostMs = std::int64_t{1} << 40;

Result<OperatorCall> describe_sweeps(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_points(in));
  TAKT_RETURN_IF_ERROR(expect(in, 1, DType::kI64, {1}));
  TAKT_RETURN_IF_ERROR(expect(in, 2, DType::kF64, {7}));
  kernels::SweepsParams p;
  p.capacity = in.shape(0).dims[0];
  TAKT_RETURN_IF_ERROR(expect(in, 3, DType::kF32, {-1, p.capacity, kernels::kPastColumns}));
  p.history = in.shape(3).dims[0];
  TAKT_RETURN_IF_ERROR(expect(in, 4, DType::kI64, {p.history, 2}));
  TAKT_RETURN_IF_ERROR(expect(in, 5, DType::kF64, {p.history, 7}));
  p.capacity_out = in.node.integer("capacity", p.capacity * (p.history + 1));
  p.age_ns = std::clamp<std::int64_t>(in.node.integer("age_ms", 500), -1, kMostMs) * kNsPerMs;
  p.gap_ns = std::clamp<std::int64_t>(in.node.integer("gap_ms", 150), -1, kMostMs) * kNsPerMs;
  return call_of(p, {tensor(DType::kF32, {p.capacity_out, kernels::kPointColumns}), in.type(3), in.type(4), in.type(5),
                     kScalar, kScalar, kScalar});
}
void run_sweeps(const void* params, const Operand* o) {
  reference::sweeps(load<kernels::SweepsParams>(params),
                    {data<const float>(o[0]), count(o[6]), data<const std::int64_t>(o[1]), data<const double>(o[2]),
                     data<const float>(o[3]), data<const std::int64_t>(o[4]), data<const double>(o[5]),
                     data<float>(o[7]), data<float>(o[8]), data<std::int64_t>(o[9]), data<double>(o[10]),
                     data<std::int32_t>(o[11]), data<std::int32_t>(o[12]), data<std::int32_t>(o[13])},
                    0, 1);
}

// What both operators on pillars read.
Result<kernels::PillarParams> pillar_params(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_points(in));
  TAKT_RETURN_IF_ERROR(expect(in, 1, DType::kI64, {-1}));
  kernels::PillarParams p;
  p.points = in.shape(0).dims[0];
  p.pillars = in.shape(1).dims[0];
  TAKT_RETURN_IF_ERROR(expect(in, 2, DType::kI32, {p.pillars}));
  TAKT_RETURN_IF_ERROR(expect(in, 3, DType::kI32, {-1}));
  p.members = in.shape(3).dims[0];
  p.most = narrow(in.node.integer("points", 0));
  p.columns = narrow(in.node.integer("columns", 4));
  p.centre = narrow(in.node.integer("centre", 3));
  float range[6], size[3];
  TAKT_RETURN_IF_ERROR(read(in.node, "range", range));
  TAKT_RETURN_IF_ERROR(read(in.node, "size", size));
  for (int d = 0; d < 3; ++d) {
    p.min[d] = static_cast<double>(range[d]);
    p.size[d] = static_cast<double>(size[d]);
  }
  return p;
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

Result<OperatorCall> describe_pillar_features(const OperatorInputs& in) {
  TAKT_ASSIGN(const kernels::PillarParams p, pillar_params(in));
  return call_of(p, {tensor(DType::kF32, {p.pillars, p.most, kernels::pillar_features(p)})});
}
void run_pillar_features(const void* params, const Operand* o) {
  reference::pillar_features(load<kernels::PillarParams>(params), grouped(o, 4), data<float>(o[7]), 0, 1);
}

Result<OperatorCall> describe_pillar_encode(const OperatorInputs& in) {
  TAKT_ASSIGN(kernels::PillarParams p, pillar_params(in));
  TAKT_RETURN_IF_ERROR(expect(in, 4, DType::kF32, {kernels::pillar_features(p), -1}));
  p.channels = narrow(in.shape(4).dims[1]);
  TAKT_RETURN_IF_ERROR(expect(in, 5, DType::kF32, {p.channels}));
  return call_of(p, {tensor(DType::kF32, {p.pillars, p.channels})});
}
void run_pillar_encode(const void* params, const Operand* o) {
  reference::pillar_encode(load<kernels::PillarParams>(params), grouped(o, 6), data<const float>(o[4]),
                           data<const float>(o[5]), data<float>(o[9]), 0, 1);
}

Result<OperatorCall> describe_top_k_decode(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect(in, 0, DType::kF32, {1, -1, -1, -1}));
  const std::int64_t* const heat = in.shape(0).dims;
  kernels::TopKDecodeParams p;
  p.classes = narrow(heat[1]);
  p.h = narrow(heat[2]);
  p.w = narrow(heat[3]);
  constexpr std::int64_t kChannels[] = {0, 2, 1, 3, 2, 2};
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.has(i)) TAKT_RETURN_IF_ERROR(expect(in, i, DType::kF32, {1, kChannels[i], heat[2], heat[3]}));
  }
  p.velocity = in.has(5) ? 1 : 0;
  p.k = narrow(in.node.integer("capacity", 0));
  const auto score = static_cast<double>(in.node.number("score", 0.1F));
  if (!(score > 0 && score < 1)) return fail(Code::kInput, "attribute score is not between 0 and 1");
  p.logit_min = static_cast<float>(kernels::log(score / (1 - score)));
  TAKT_RETURN_IF_ERROR(read(in.node, "origin", p.origin));
  TAKT_RETURN_IF_ERROR(read(in.node, "cell", p.cell_m));
  TAKT_RETURN_IF_ERROR(read_by_class(in.node, "yaw_norm", 0, p.yaw_norm_min));
  const Type vector_f32 = tensor(DType::kF32, {p.k}), vector_i32 = tensor(DType::kI32, {p.k});
  return call_of(
      p, {tensor(DType::kF32, {p.k, kernels::kBoxColumns}), vector_f32, vector_i32, vector_i32, kScalar, kScalar});
}
void run_top_k_decode(const void* params, const Operand* o) {
  const auto p = load<kernels::TopKDecodeParams>(params);
  reference::top_k_decode(
      p, {data<const float>(o[0]), data<const float>(o[1]), data<const float>(o[2]), data<const float>(o[3]),
          data<const float>(o[4]), p.velocity == 1 ? data<const float>(o[5]) : nullptr, data<float>(o[6]),
          data<float>(o[7]), data<std::int32_t>(o[8]), data<std::int32_t>(o[9]), data<std::int32_t>(o[10]),
          data<std::int32_t>(o[11])});
}

Result<OperatorCall> describe_nms(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect(in, 0, DType::kF32, {-1, kernels::kBoxColumns}));
  kernels::NmsParams p;
  p.capacity = in.shape(0).dims[0];
  TAKT_RETURN_IF_ERROR(expect(in, 1, DType::kF32, {p.capacity}));
  TAKT_RETURN_IF_ERROR(expect(in, 2, DType::kI32, {p.capacity}));
  p.most = narrow(in.node.integer("most", p.capacity));
  if (p.most < 1) return fail(Code::kInput, "attribute most is not above zero: nothing would stay");
  const std::int64_t agnostic = in.node.integer("agnostic", 0);
  if (agnostic != 0 && agnostic != 1) return fail(Code::kInput, "attribute agnostic is neither 0 nor 1");
  p.agnostic = static_cast<std::int32_t>(agnostic);
  if (in.node.numbers("limit").empty())
    return fail(Code::kInput, "attribute limit is missing: one number, or one for each class");
  TAKT_RETURN_IF_ERROR(read_by_class(in.node, "limit", 0, p.limit));
  const bool ratios = in.node.op != "takt.CircleNms";
  if (ratios && std::any_of(std::begin(p.limit), std::end(p.limit), [](float limit) { return limit > 1; })) {
    return fail(Code::kInput, "attribute limit, an intersection over union, is above 1");
  }
  const Type index = tensor(DType::kI32, {p.capacity});
  return call_of(p, {tensor(DType::kF32, {p.capacity, kernels::kBoxColumns}), tensor(DType::kF32, {p.capacity}), index,
                     index, kScalar});
}
template <reference::Nearness nearness>
void run_nms(const void* params, const Operand* o) {
  reference::nms(
      nearness, load<kernels::NmsParams>(params),
      {data<const float>(o[0]), data<const float>(o[1]), data<const std::int32_t>(o[2]), count(o[3]), data<float>(o[4]),
       data<float>(o[5]), data<std::int32_t>(o[6]), data<std::int32_t>(o[7]), data<std::int32_t>(o[8])});
}

constexpr std::string_view kPillarAttributes = "range:F size:F points:i columns:i centre:i";
constexpr std::string_view kNmsAttributes = "limit:F most:i agnostic:i";

constexpr TaktOperator kOperators[] = {
    {"takt.Cloud", "capacity:i", KernelId::kCloud, 1, describe_cloud, run_cloud},
    {"takt.Deskew", "extrapolate:f", KernelId::kDeskew, 3, describe_deskew, run_deskew},
    {"takt.Crop", "range:F ego:F distance:F origin:F capacity:i", KernelId::kCrop, 1, describe_crop, run_crop},
    {"takt.Sweeps", "age_ms:i gap_ms:i capacity:i", KernelId::kSweeps, 6, describe_sweeps, run_sweeps},
    {"takt.PillarFeatures", kPillarAttributes, KernelId::kPillarFeatures, 4, describe_pillar_features,
     run_pillar_features},
    {"takt.PillarEncode", kPillarAttributes, KernelId::kPillarEncode, 6, describe_pillar_encode, run_pillar_encode},
    {"takt.TopKDecode", "capacity:i score:f origin:F cell:F yaw_norm:F", KernelId::kTopKDecode, 5,
     describe_top_k_decode, run_top_k_decode},
    {"takt.CircleNms", kNmsAttributes, KernelId::kCircleNms, 3, describe_nms, run_nms<reference::Nearness::kCircle>},
    {"takt.AxisAlignedNms", kNmsAttributes, KernelId::kAxisAlignedNms, 3, describe_nms,
     run_nms<reference::Nearness::kAxisAligned>},
    {"takt.RotatedNms", kNmsAttributes, KernelId::kRotatedNms, 3, describe_nms, run_nms<reference::Nearness::kRotated>},
};

}  // namespace

std::span<const TaktOperator> point_operators() { return kOperators; }

}  // namespace takt::ir
