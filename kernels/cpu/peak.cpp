#include "kernels/cpu/peak.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace takt::kernels::cpu {
namespace {

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr int kSteps = 20000;
volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float chains_avx2() {
  __m256 acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999F), b = _mm256_set1_ps(1e-3F);
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) acc[i] = _mm256_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < 12; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  return _mm256_cvtss_f32(acc[0]);
}
__attribute__((target("avx512f"))) float chains_avx512() {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(1e-3F);
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < 16; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}
#elif defined(__aarch64__)
float chains_neon() {
  float32x4_t acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = vdupq_n_f32(static_cast<float>(i));
  const float32x4_t a = vdupq_n_f32(0.999F), b = vdupq_n_f32(1e-3F);
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = vfmaq_f32(b, acc[i], a);
  }
  for (int i = 1; i < 16; ++i) acc[0] = vaddq_f32(acc[0], acc[i]);
  return vgetq_lane_f32(acc[0], 0);
}
#endif

}  // namespace

double multiply_add_burst([[maybe_unused]] Target target) {
  int flops = 0;  // a step
  const double begin = now_ns();
#if defined(__x86_64__)
  if (target == Target::kAvx512) {
    sink = chains_avx512();
    flops = 16 * 16 * 2;
  } else {
    sink = chains_avx2();
    flops = 12 * 8 * 2;
  }
#elif defined(__aarch64__)
  sink = chains_neon();
  flops = 16 * 4 * 2;
#endif
  return static_cast<double>(flops) * kSteps / std::max(now_ns() - begin, 1.0);
}

Peaks measure_peaks(Target target) {
  Peaks peaks;
  for (int i = 0; i < 12; ++i) peaks.gflops = std::max(peaks.gflops, multiply_add_burst(target));
  constexpr std::uint64_t kSizes[] = {16U << 10, 128U << 10, 512U << 10, 2U << 20, 8U << 20, 32U << 20};
  static_assert(std::size(kSizes) == std::tuple_size_v<decltype(peaks.levels)>);
  std::vector<std::byte> from(kSizes[std::size(kSizes) - 1] / 2, std::byte{1}), to(from.size(), std::byte{2});
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const std::uint64_t half = kSizes[i] / 2;
    const int passes = static_cast<int>(std::max<std::uint64_t>(1, (1U << 20) / half));
    double& best = peaks.levels[i].gbs;
    peaks.levels[i].bytes = kSizes[i];
    for (int round = 0; round < 6; ++round) {  // the first one fills the cache
      const double begin = now_ns();
      for (int pass = 0; pass < passes; ++pass) {
        std::memcpy(to.data(), from.data(), half);
        // The compiler is to believe that every pass matters.
        asm volatile("" : : "r"(to.data()), "r"(from.data()) : "memory");
      }
      const double ns = std::max(now_ns() - begin, 1.0);
      best = std::max(best, 2.0 * static_cast<double>(half) * passes / ns);
    }
  }
  return peaks;
}

}  // namespace takt::kernels::cpu
