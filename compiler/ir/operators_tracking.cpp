// Operators of domain takt on tracking: rows as in takt_operators.h, parameters and tables in kernels/tracking.h. One
// rule serves all: extents follow from the tables, and every table has the type of its kind.
#include <optional>

#include "compiler/ir/takt_operators.h"
#include "kernels/reference/tracking_calls.h"
#include "kernels/tracking.h"

namespace takt::ir {
namespace {

using kernels::kColumns;
using kernels::MotionModel;
using kernels::Operand;
using kernels::TrackingParams;
using kernels::cpu::KernelId;

enum class Kind {
  kMotion,
  kBody,
  kLife,
  kColumn,
  kAligned,
  kCost,
  kObjects,  // a row for each track, or for each object
  kSources,
  kUsual,
  kModel,  // constants of the graph
  kMoment,
  kInfo,
  kClock,
  kStamps,
  kPoses,
  kStamp,
  kReading,
  kEgoStamps,
  kEgoSamples,
  kRowsAndSource,
  kList,
  kTracks,  // payloads
  kNumber
};

Type type_of(Kind kind, const TrackingParams& p) {
  const auto vector = [](DType dtype, std::int64_t rows) { return Type{dtype, {1, {rows}}}; };
  const auto matrix = [](std::int64_t rows, std::int64_t columns) { return Type{DType::kF64, {2, {rows, columns}}}; };
  switch (kind) {
    case Kind::kMotion: return matrix(p.tracks, motion_columns(p.model));
    case Kind::kBody: return matrix(p.tracks, kColumns<kernels::TrackBody>);
    case Kind::kLife: return {DType::kI64, {2, {p.tracks, kColumns<kernels::TrackLife>}}};
    case Kind::kColumn: return vector(DType::kI32, p.tracks);
    case Kind::kAligned: return matrix(p.tracks, kColumns<kernels::Aligned>);
    case Kind::kCost: return matrix(p.tracks, p.objects);
    case Kind::kObjects: return matrix(p.objects, kColumns<kernels::Detection>);
    case Kind::kSources: return matrix(p.sources, kColumns<kernels::ListSource>);
    case Kind::kUsual: return matrix(kernels::kObjectClasses, kColumns<kernels::Extent>);
    case Kind::kModel: return vector(DType::kF64, kColumns<kernels::TrackerModel>);
    case Kind::kMoment: return vector(DType::kF64, kColumns<kernels::Moment>);
    case Kind::kInfo: return vector(DType::kI64, kColumns<kernels::ListInfo>);
    case Kind::kClock: return vector(DType::kI64, kColumns<kernels::TrackClock>);
    case Kind::kStamps: return vector(DType::kI64, p.stamps);
    case Kind::kPoses: return matrix(p.stamps, kColumns<kernels::GroundPose>);
    case Kind::kStamp: return vector(DType::kI64, 1);
    case Kind::kReading: return vector(DType::kF64, kColumns<kernels::EgoReading>);
    case Kind::kEgoStamps: return vector(DType::kI64, kernels::kEgoSamples);
    case Kind::kEgoSamples: return matrix(kernels::kEgoRows, kColumns<kernels::EgoSample>);
    case Kind::kRowsAndSource: return vector(DType::kI64, 2);
    case Kind::kList:
      return vector(DType::kU8,
                    kernels::kObjectRowsOffset + std::int64_t{p.objects} * std::int64_t{sizeof(kernels::ObjectRow)});
    case Kind::kTracks:
      return vector(DType::kU8, std::int64_t{sizeof(kernels::TrackListHeader)} +
                                    std::int64_t{p.tracks} * std::int64_t{sizeof(kernels::TrackRow)});
    case Kind::kNumber: return {DType::kI32, {}};
  }
  return {};
}

struct Row {
  std::string_view name;
  std::vector<Kind> inputs, outputs;
};

const Row* find_row(std::string_view name) {
  using K = Kind;
  static const std::vector<Row> rows = {
      {"takt.EgoMotion",
       {K::kStamps, K::kStamp, K::kReading, K::kEgoStamps, K::kEgoSamples, K::kModel},
       {K::kEgoStamps, K::kEgoSamples, K::kPoses}},
      {"takt.Detections",
       {K::kList, K::kRowsAndSource, K::kStamps, K::kPoses, K::kClock, K::kSources, K::kModel},
       {K::kObjects, K::kMoment, K::kInfo, K::kNumber, K::kNumber}},
      {"takt.KalmanPredict", {K::kMotion, K::kMoment, K::kModel}, {K::kMotion}},
      {"takt.Gate", {K::kMotion, K::kObjects, K::kMoment, K::kInfo, K::kSources, K::kModel}, {K::kCost}},
      {"takt.Assign", {K::kCost, K::kModel}, {K::kColumn}},
      {"takt.Align", {K::kBody, K::kObjects, K::kColumn, K::kMoment}, {K::kAligned}},
      {"takt.KalmanUpdate", {K::kMotion, K::kAligned, K::kMoment, K::kInfo, K::kSources, K::kModel}, {K::kMotion}},
      {"takt.TrackUpdate",
       {K::kBody, K::kLife, K::kAligned, K::kMotion, K::kInfo, K::kSources, K::kUsual},
       {K::kBody, K::kLife}},
      {"takt.Birth",
       {K::kMotion, K::kBody, K::kLife, K::kObjects, K::kColumn, K::kClock, K::kMoment, K::kInfo, K::kSources,
        K::kModel, K::kUsual},
       {K::kMotion, K::kBody, K::kLife, K::kClock, K::kNumber, K::kNumber}},
      {"takt.Death",
       {K::kMotion, K::kBody, K::kLife, K::kStamps, K::kModel},
       {K::kMotion, K::kBody, K::kLife, K::kNumber}},
      {"takt.TrackOutput", {K::kMotion, K::kBody, K::kLife, K::kClock, K::kStamps, K::kPoses, K::kModel}, {K::kTracks}},
  };
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// What the extents of an input say. Whether it fits the others is seen afterwards.
void read_extents(Kind kind, const Shape& shape, TrackingParams* p) {
  const auto extent = [&](int d) {
    return d < shape.rank ? static_cast<std::int32_t>(std::clamp<std::int64_t>(shape.dims[d], 0, kMaxElements)) : 0;
  };
  switch (kind) {
    case Kind::kMotion:
      p->model =
          extent(1) == motion_columns(MotionModel::kTurnRate) ? MotionModel::kTurnRate : MotionModel::kConstantVelocity;
      p->tracks = extent(0);
      break;
    case Kind::kBody: p->tracks = extent(0); break;
    case Kind::kCost: p->tracks = extent(0), p->objects = extent(1); break;
    case Kind::kObjects: p->objects = extent(0); break;
    case Kind::kSources: p->sources = extent(0); break;
    case Kind::kStamps: p->stamps = extent(0); break;
    case Kind::kList:
      p->objects = (extent(0) - kernels::kObjectRowsOffset) / static_cast<std::int32_t>(sizeof(kernels::ObjectRow));
      break;
    default: break;
  }
}

Result<OperatorCall> describe(const OperatorInputs& in) {
  const Row& row = *find_row(in.node.op);
  TrackingParams p;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) read_extents(row.inputs[i], in.shape(i), &p);
  const std::int64_t slot = in.node.integer("slot", 0);
  p.slot = slot >= 0 && slot < p.stamps ? static_cast<std::int32_t>(slot) : -1;
  p.first = in.node.integer("first", 0) != 0 ? 1 : 0;
  const kernels::cpu::OperatorKernel& kernel =
      *kernels::cpu::find_operator_kernel(find_takt_operator(in.node.op)->kernel);
  OperatorCall call{block_of(p), {}, {}};
  kernels::cpu::OperandBytes bytes;
  if (const char* const problem = kernel.operand_bytes(call.params.data(), &bytes)) return fail(Code::kInput, problem);
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    const Type expected = type_of(row.inputs[i], p);
    if (in.type(i).dtype == expected.dtype && in.shape(i) == expected.shape) continue;
    return fail(Code::kInput,
                "input " + std::to_string(i) + " is " + to_string(in.type(i)) + ", expected " + to_string(expected));
  }
  for (const Kind kind : row.outputs) call.outputs.push_back(type_of(kind, p));
  for (int i = kernel.first_scratch(); i < kernel.operands(); ++i) call.scratch.push_back(bytes.bytes[i]);
  return call;
}

template <kernels::reference::TrackingCall* call>
void whole(const void* params, const Operand* operands) {
  call(params, operands, 0, 1);
}

namespace reference = kernels::reference;
constexpr TaktOperator kOperators[] = {
    {"takt.EgoMotion", "", KernelId::kEgoMotion, 6, describe, whole<reference::ego_motion_call>},
    {"takt.Detections", "slot:i", KernelId::kDetections, 7, describe, whole<reference::detections_call>},
    {"takt.KalmanPredict", "", KernelId::kKalmanPredict, 3, describe, whole<reference::kalman_predict_call>},
    {"takt.Gate", "", KernelId::kGate, 6, describe, whole<reference::gate_call>},
    {"takt.Assign", "", KernelId::kAssign, 2, describe, whole<reference::assign_call>},
    {"takt.Align", "", KernelId::kAlign, 4, describe, whole<reference::align_call>},
    {"takt.KalmanUpdate", "", KernelId::kKalmanUpdate, 6, describe, whole<reference::kalman_update_call>},
    {"takt.TrackUpdate", "first:i", KernelId::kTrackUpdate, 7, describe, whole<reference::track_update_call>},
    {"takt.Birth", "", KernelId::kBirth, 11, describe, whole<reference::birth_call>},
    {"takt.Death", "slot:i", KernelId::kDeath, 5, describe, whole<reference::death_call>},
    {"takt.TrackOutput", "slot:i", KernelId::kTrackOutput, 7, describe, whole<reference::track_output_call>},
};

}  // namespace

std::span<const TaktOperator> tracking_operators() { return kOperators; }

}  // namespace takt::ir
