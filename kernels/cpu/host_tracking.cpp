// Host halves of the operators on tracking: kernels/tracking.h has their parameters and rows.
#include "kernels/cpu/operators.h"
#include "kernels/reference/assignment.h"
#include "kernels/tracking.h"

namespace takt::kernels::cpu {
namespace {

// What an operand may be. Tables of tracks and of objects are counted.
enum class Table {
  kMotion,
  kBody,
  kLife,
  kColumn,  // the object of each track
  kAligned,
  kCost,
  kObjects,
  kSources,
  kUsual,
  kModel,
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
  kList,    // a payload
  kTracks,  // a payload
  kNumber,  // i32: a count or a tally
  kAssignScratch,
  kBirthScratch,
  kDeathScratch,
};

std::uint64_t bytes_of(Table table, const TrackingParams& p) {
  const auto tracks = static_cast<std::uint64_t>(p.tracks), objects = static_cast<std::uint64_t>(p.objects);
  switch (table) {
    case Table::kMotion: return tracks * static_cast<std::uint64_t>(motion_columns(p.model)) * sizeof(double);
    case Table::kBody: return tracks * sizeof(TrackBody);
    case Table::kLife: return tracks * sizeof(TrackLife);
    case Table::kColumn: return tracks * sizeof(std::int32_t);
    case Table::kAligned: return tracks * sizeof(Aligned);
    case Table::kCost: return tracks * objects * sizeof(double);
    case Table::kObjects: return objects * sizeof(Detection);
    case Table::kSources: return static_cast<std::uint64_t>(p.sources) * sizeof(ListSource);
    case Table::kUsual: return kObjectClasses * sizeof(Extent);
    case Table::kModel: return sizeof(TrackerModel);
    case Table::kMoment: return sizeof(Moment);
    case Table::kInfo: return sizeof(ListInfo);
    case Table::kClock: return sizeof(TrackClock);
    case Table::kStamps: return static_cast<std::uint64_t>(p.stamps) * sizeof(std::int64_t);
    case Table::kPoses: return static_cast<std::uint64_t>(p.stamps) * sizeof(GroundPose);
    case Table::kStamp: return sizeof(std::int64_t);
    case Table::kReading: return sizeof(EgoReading);
    case Table::kEgoStamps: return kEgoSamples * sizeof(std::int64_t);
    case Table::kEgoSamples: return kEgoRows * sizeof(EgoSample);
    case Table::kRowsAndSource: return 2 * sizeof(std::int64_t);
    case Table::kList: return kObjectRowsOffset + objects * sizeof(ObjectRow);
    case Table::kTracks: return sizeof(TrackListHeader) + tracks * sizeof(TrackRow);
    case Table::kNumber: return sizeof(std::int32_t);
    case Table::kAssignScratch: return reference::assign_scratch_bytes(tracks, objects);
    case Table::kBirthScratch: return objects * (sizeof(std::int32_t) + 1);
    case Table::kDeathScratch: return tracks * (sizeof(TrackLife) + 1);
  }
  return 0;
}

const char* check_params(const TrackingParams& p) {
  if (p.model != MotionModel::kConstantVelocity && p.model != MotionModel::kTurnRate) return "an unknown motion model";
  const auto within = [](std::int32_t n, std::int32_t most) { return n >= 1 && n <= most; };
  if (!within(p.tracks, kMostTracks) || !within(p.objects, kMostDetections) || !within(p.sources, kMostLists) ||
      !within(p.stamps, kMostLists + 1)) {
    return "extents are not positive or too large";
  }
  if (p.slot < 0 || p.slot >= p.stamps) return "its slot is none of the stamps";
  if (p.first != 0 && p.first != 1) return "an option has an unknown value";
  return nullptr;
}

template <Table... tables>
const char* bytes(const void* params, OperandBytes* out) {
  TrackingParams p;
  std::memcpy(&p, params, sizeof(p));
  if (const char* const error = check_params(p)) return error;
  int i = 0;
  for (const Table table : {tables...}) {
    out->bytes[i] = bytes_of(table, p);
    const bool narrow = table == Table::kColumn || table == Table::kNumber || table == Table::kBirthScratch;
    out->element[i++] = narrow ? 4 : 8;
  }
  return nullptr;
}

// A multiply-add counts 2: S = HPH' + R and the distance for every pair; F P F' for every track; the Joseph form.
std::uint64_t states_of(const TrackingParams& p) { return static_cast<std::uint64_t>(motion_states(p.model)); }
std::uint64_t gate_flops(const void* params) {
  TrackingParams p;
  std::memcpy(&p, params, sizeof(p));
  const std::uint64_t n = states_of(p), each = 2 * (3 * n * n + 9 * n + 20);
  return static_cast<std::uint64_t>(p.tracks) * static_cast<std::uint64_t>(p.objects) * each;
}
std::uint64_t predict_flops(const void* params) {
  TrackingParams p;
  std::memcpy(&p, params, sizeof(p));
  const std::uint64_t n = states_of(p);
  return static_cast<std::uint64_t>(p.tracks) * (p.model == MotionModel::kTurnRate ? 4 * n * n * n : 4 * n * n);
}
std::uint64_t update_flops(const void* params) {
  TrackingParams p;
  std::memcpy(&p, params, sizeof(p));
  const std::uint64_t n = states_of(p);
  return static_cast<std::uint64_t>(p.tracks) * (4 * n * n * n + 20 * n * n + 40 * n);
}

using T = Table;
constexpr std::uint32_t kBytes = sizeof(TrackingParams);

constexpr OperatorKernel kEgoMotion = {KernelId::kEgoMotion,
                                       "ego_motion_f64",
                                       1,
                                       kBytes,
                                       6,
                                       0,
                                       3,
                                       0,
                                       {-1, -1, -1, -1, -1, -1, -1, -1, -1},
                                       bytes<T::kStamps, T::kStamp, T::kReading, T::kEgoStamps, T::kEgoSamples,
                                             T::kModel, T::kEgoStamps, T::kEgoSamples, T::kPoses>};
constexpr OperatorKernel kDetections = {
    KernelId::kDetections,
    "detections_f64",
    1,
    kBytes,
    7,
    0,
    5,
    0,
    {-1, -1, -1, -1, -1, -1, -1, 10, -1, -1, -1, -1},
    bytes<T::kList, T::kRowsAndSource, T::kStamps, T::kPoses, T::kClock, T::kSources, T::kModel, T::kObjects,
          T::kMoment, T::kInfo, T::kNumber, T::kNumber>};
constexpr OperatorKernel kKalmanPredict = {KernelId::kKalmanPredict,
                                           "kalman_predict_f64",
                                           1,
                                           kBytes,
                                           3,
                                           1,
                                           1,
                                           0,
                                           {3, -1, -1, -1, 3},
                                           bytes<T::kMotion, T::kMoment, T::kModel, T::kNumber, T::kMotion>,
                                           predict_flops};
constexpr OperatorKernel kGate = {
    KernelId::kGate,
    "gate_f64",
    1,
    kBytes,
    6,
    2,
    1,
    0,
    {6, 7, -1, -1, -1, -1, -1, -1, 6},
    bytes<T::kMotion, T::kObjects, T::kMoment, T::kInfo, T::kSources, T::kModel, T::kNumber, T::kNumber, T::kCost>,
    gate_flops};
constexpr OperatorKernel kAssign = {KernelId::kAssign,
                                    "assign_f64",
                                    1,
                                    kBytes,
                                    2,
                                    1,
                                    1,
                                    1,
                                    {2, -1, -1, 2, -1},
                                    bytes<T::kCost, T::kModel, T::kNumber, T::kColumn, T::kAssignScratch>};
constexpr OperatorKernel kAlign = {
    KernelId::kAlign,
    "align_f64",
    1,
    kBytes,
    4,
    2,
    1,
    0,
    {4, 5, 4, -1, -1, -1, 4},
    bytes<T::kBody, T::kObjects, T::kColumn, T::kMoment, T::kNumber, T::kNumber, T::kAligned>};
constexpr OperatorKernel kKalmanUpdate = {
    KernelId::kKalmanUpdate,
    "kalman_update_f64",
    1,
    kBytes,
    6,
    1,
    1,
    0,
    {6, 6, -1, -1, -1, -1, -1, 6},
    bytes<T::kMotion, T::kAligned, T::kMoment, T::kInfo, T::kSources, T::kModel, T::kNumber, T::kMotion>,
    update_flops};
constexpr OperatorKernel kTrackUpdate = {KernelId::kTrackUpdate,
                                         "track_update_f64",
                                         1,
                                         kBytes,
                                         7,
                                         1,
                                         2,
                                         0,
                                         {7, 7, 7, 7, -1, -1, -1, -1, 7, 7},
                                         bytes<T::kBody, T::kLife, T::kAligned, T::kMotion, T::kInfo, T::kSources,
                                               T::kUsual, T::kNumber, T::kBody, T::kLife>};
constexpr OperatorKernel kBirth = {
    KernelId::kBirth,
    "birth_f64",
    1,
    kBytes,
    11,
    2,
    6,
    1,
    {11, 11, 11, 12, 11, -1, -1, -1, -1, -1, -1, -1, -1, 17, 17, 17, -1, -1, -1, -1},
    bytes<T::kMotion, T::kBody, T::kLife, T::kObjects, T::kColumn, T::kClock, T::kMoment, T::kInfo, T::kSources,
          T::kModel, T::kUsual, T::kNumber, T::kNumber, T::kMotion, T::kBody, T::kLife, T::kClock, T::kNumber,
          T::kNumber, T::kBirthScratch>};
constexpr OperatorKernel kDeath = {KernelId::kDeath,
                                   "death_f64",
                                   1,
                                   kBytes,
                                   5,
                                   1,
                                   4,
                                   1,
                                   {5, 5, 5, -1, -1, -1, 9, 9, 9, -1, -1},
                                   bytes<T::kMotion, T::kBody, T::kLife, T::kStamps, T::kModel, T::kNumber, T::kMotion,
                                         T::kBody, T::kLife, T::kNumber, T::kDeathScratch>};
constexpr OperatorKernel kTrackOutput = {
    KernelId::kTrackOutput,
    "track_output_f64",
    1,
    kBytes,
    7,
    1,
    1,
    0,
    {7, 7, 7, -1, -1, -1, -1, -1, -1},
    bytes<T::kMotion, T::kBody, T::kLife, T::kClock, T::kStamps, T::kPoses, T::kModel, T::kNumber, T::kTracks>};

constexpr const OperatorKernel* kOperators[] = {&kEgoMotion, &kDetections, &kKalmanPredict, &kGate,
                                                &kAssign,    &kAlign,      &kKalmanUpdate,  &kTrackUpdate,
                                                &kBirth,     &kDeath,      &kTrackOutput};

}  // namespace

std::span<const OperatorKernel* const> tracking_operators() { return kOperators; }

}  // namespace takt::kernels::cpu
