#include "kernels/tracking.h"
#include "tests/kernels/cpu/operator_calls.h"

namespace takt::kernels::cpu {

std::vector<Call> tracking_calls() {
  TrackingParams p;
  p.tracks = 5;
  p.objects = 7;
  p.sources = 3;
  p.stamps = 4;
  p.slot = 2;
  std::vector<Call> calls;
  for (const KernelId id : {KernelId::kEgoMotion, KernelId::kDetections, KernelId::kKalmanPredict, KernelId::kGate,
                            KernelId::kAssign, KernelId::kAlign, KernelId::kKalmanUpdate, KernelId::kTrackUpdate,
                            KernelId::kBirth, KernelId::kDeath, KernelId::kTrackOutput}) {
    calls.push_back(make_call(id, p));
  }
  p.model = MotionModel::kTurnRate;
  calls.push_back(make_call(KernelId::kKalmanUpdate, p));
  return calls;
}

}  // namespace takt::kernels::cpu
