#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {

Launch launch_of(cpu::KernelId id) {
  for (const auto family : {conv_kernels, spatial_kernels, elementwise_kernels, channel_kernels, movement_kernels,
                            linear_kernels, preprocess_kernels, voxel_kernels, point_kernels, box_kernels,
                            tracking_kernels}) {
    for (const DeviceHalf& half : family()) {
      if (half.id == id) return half.launch;
    }
  }
  return nullptr;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
