#include "kernels/kernel.h"

namespace takt::kernels {

const char* name_of(Target target) {
  switch (target) {
    case Target::kAvx2: return "cpu:avx2";
    case Target::kAvx512: return "cpu:avx512";
    case Target::kNeon: return "cpu:neon";
    case Target::kCudaSm87: return "cuda:sm_87";
    case Target::kCudaSm90: return "cuda:sm_90";
  }
  return "unknown";
}

const char* unsupported(Target target) {
  if (is_cuda(target)) return "this is a plan for a GPU";
  switch (target) {
#if defined(__x86_64__)
    case Target::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                 ? nullptr
                 : "this CPU, or its operating system, has no AVX2 with FMA";
    case Target::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
                 ? nullptr
                 : "this CPU, or its operating system, has no AVX-512 (F, VL, DQ, BW)";
    case Target::kNeon: return "this CPU is an x86-64; NEON is of arm64";
    default: break;
#elif defined(__aarch64__)
    case Target::kAvx2:
    case Target::kAvx512: return "this CPU is an arm64; AVX is of x86-64";
    case Target::kNeon: return nullptr;
    default: break;
#else
    default: return "takt has kernels for x86-64 with AVX2 and for arm64";
#endif
  }
  return "an unknown target";
}

Target best_target() {
#if defined(__aarch64__)
  return Target::kNeon;
#else
  return unsupported(Target::kAvx512) == nullptr ? Target::kAvx512 : Target::kAvx2;
#endif
}

}  // namespace takt::kernels
