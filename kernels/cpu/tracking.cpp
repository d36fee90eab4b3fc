// Device halves of the operators on tracking: the reference functions, which are small or go row by row. Vectors would
// not pay: a Kalman filter of four states and branches are most of the work.
#include "kernels/cpu/device.h"
#include "kernels/reference/tracking_calls.h"

namespace takt::kernels::cpu {
namespace {

constexpr DeviceHalf kTable[] = {
    {KernelId::kEgoMotion, reference::ego_motion_call},
    {KernelId::kDetections, reference::detections_call},
    {KernelId::kKalmanPredict, reference::kalman_predict_call},
    {KernelId::kGate, reference::gate_call},
    {KernelId::kAssign, reference::assign_call},
    {KernelId::kAlign, reference::align_call},
    {KernelId::kKalmanUpdate, reference::kalman_update_call},
    {KernelId::kTrackUpdate, reference::track_update_call},
    {KernelId::kBirth, reference::birth_call},
    {KernelId::kDeath, reference::death_call},
    {KernelId::kTrackOutput, reference::track_output_call},
};

}  // namespace

std::span<const DeviceHalf> tracking_kernels(Target /*target*/) { return kTable; }

}  // namespace takt::kernels::cpu
