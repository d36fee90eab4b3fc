// The tracking operators as kernels see them: tracking.h on operands. Small serial work, or independent rows: the CPU
// kernels are these functions, since a fast form would not differ. Operands in the order of the rows in
// kernels/cpu/host_tracking.cpp; a count that is absent stands for the capacity. Allocate nothing.
#pragma once

#include "kernels/device_code.h"
#include "kernels/kernel.h"
#include "kernels/tracking.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

using TrackingCall = void(const void* params, const Operand* operands, int part, int parts);

TAKT_BOTH TrackingCall ego_motion_call, detections_call, kalman_predict_call, gate_call, assign_call, align_call,
    kalman_update_call, track_update_call, birth_call, death_call, track_output_call;

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
