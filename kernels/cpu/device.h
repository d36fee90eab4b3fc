// Inside kernels/cpu: where the device halves of one family meet the table of kernels.
#pragma once

#include <span>

#include "kernels/cpu/params.h"
#include "kernels/kernel.h"

namespace takt::kernels::cpu {

struct DeviceHalf {
  KernelId id;
  void (*run)(const void* params, const Operand* operands, int part, int parts);
};

// Device halves of a file for a target; empty where they are not built for this architecture.
std::span<const DeviceHalf> conv_kernels(Target target);
std::span<const DeviceHalf> depthwise_kernels(Target target);
std::span<const DeviceHalf> spatial_kernels(Target target);
std::span<const DeviceHalf> elementwise_kernels(Target target);
std::span<const DeviceHalf> channel_kernels(Target target);
std::span<const DeviceHalf> movement_kernels(Target target);
std::span<const DeviceHalf> linear_kernels(Target target);
std::span<const DeviceHalf> preprocess_kernels(Target target);
std::span<const DeviceHalf> voxel_kernels(Target target);
std::span<const DeviceHalf> sparse_kernels(Target target);
std::span<const DeviceHalf> point_kernels(Target target);
std::span<const DeviceHalf> tracking_kernels(Target target);

// Defines `family`, which takes the table `table` of the target's namespace.
#if defined(__x86_64__)
#define TAKT_TABLE(family, table)                     \
  std::span<const DeviceHalf> family(Target target) { \
    switch (target) {                                 \
      case Target::kAvx2: return N_AVX2::table();     \
      case Target::kAvx512: return N_AVX3::table();   \
      default: return {};                             \
    }                                                 \
  }
#elif defined(__aarch64__)
#define TAKT_TABLE(family, table)                                                     \
  std::span<const DeviceHalf> family(Target target) {                                 \
    return target == Target::kNeon ? N_NEON::table() : std::span<const DeviceHalf>(); \
  }
#else
#define TAKT_TABLE(family, table) \
  std::span<const DeviceHalf> family(Target) { return {}; }
#endif

}  // namespace takt::kernels::cpu
