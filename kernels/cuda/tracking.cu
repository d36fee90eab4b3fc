// Operators on tracking: the reference functions, compiled for the device. Filters, gates and alignment have a thread
// for each track; lists, assignment, births and deaths are serial and small.
#include "kernels/cuda/calls.h"
#include "kernels/reference/tracking_calls.h"
// Their bodies, once more for this side.
#include "kernels/reference/assignment.cpp"      // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/motion.cpp"          // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/tracking.cpp"        // NOLINT(bugprone-suspicious-include)
#include "kernels/reference/tracking_calls.cpp"  // NOLINT(bugprone-suspicious-include)

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::KernelId;

template <class Work, int count>
int serial(const char* name, const Call& call) {
  return by_parts<Work, count>(name, load_params<TrackingParams>(call.params), 1, call);
}
template <class Work, int count>
int by_track(const char* name, const Call& call) {
  const auto p = load_params<TrackingParams>(call.params);
  return by_parts<Work, count>(name, p, p.tracks, call);
}

#define TAKT_TRACKING_KERNEL(name, how, count)                                                            \
  struct name##_work {                                                                                    \
    TAKT_DEVICE void operator()(const void* params, const Operand* operands, int part, int parts) const { \
      reference::name##_call(params, operands, part, parts);                                              \
    }                                                                                                     \
  };                                                                                                      \
  int name(const Call& call) { return how<name##_work, count>(#name, call); }
TAKT_TRACKING_KERNEL(ego_motion, serial, 9)
TAKT_TRACKING_KERNEL(detections, serial, 12)
TAKT_TRACKING_KERNEL(kalman_predict, by_track, 5)
TAKT_TRACKING_KERNEL(gate, by_track, 9)
TAKT_TRACKING_KERNEL(assign, serial, 5)
TAKT_TRACKING_KERNEL(align, by_track, 7)
TAKT_TRACKING_KERNEL(kalman_update, by_track, 8)
TAKT_TRACKING_KERNEL(track_update, by_track, 10)
TAKT_TRACKING_KERNEL(birth, serial, 20)
TAKT_TRACKING_KERNEL(death, serial, 11)
TAKT_TRACKING_KERNEL(track_output, serial, 9)
#undef TAKT_TRACKING_KERNEL

}  // namespace

std::span<const DeviceHalf> tracking_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kEgoMotion, ego_motion},
                                           {KernelId::kDetections, detections},
                                           {KernelId::kKalmanPredict, kalman_predict},
                                           {KernelId::kGate, gate},
                                           {KernelId::kAssign, assign},
                                           {KernelId::kAlign, align},
                                           {KernelId::kKalmanUpdate, kalman_update},
                                           {KernelId::kTrackUpdate, track_update},
                                           {KernelId::kBirth, birth},
                                           {KernelId::kDeath, death},
                                           {KernelId::kTrackOutput, track_output}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
