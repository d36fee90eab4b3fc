// Figures of the CPU kernels on one core:
//   bench_kernels [--target cpu:avx2|cpu:avx512|cpu:neon] [--quick]
// One row for every layer: GFLOP/s beside the peak of fused multiply-adds that the same core reached in the same run,
// measured between the layers; for kernels that move data, GB/s beside a plain copy of the same bytes; for depthwise
// layers, which may be bound by either, the nearer of the two. Best of many
// runs: other load on the machine lengthens runs and never shortens one. The last line is one line of JSON: the lowest
// share of each family.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/host.h"
#include "kernels/cpu/peak.h"
#include "kernels/kernel.h"

using namespace takt::kernels;
using namespace takt::kernels::cpu;

namespace {

// CPU time of this thread, seconds: on a loaded machine a run that is longer than a time slice would otherwise never be
// measured without the others'.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;
Buffer buffer(std::uint64_t bytes) {
  const std::uint64_t whole = std::max<std::uint64_t>((bytes + 63) / 64 * 64, 64);
  Buffer out(static_cast<std::byte*>(std::aligned_alloc(64, whole)));
  auto* const values = reinterpret_cast<float*>(out.get());
  for (std::uint64_t i = 0; i < whole / 4; ++i) values[i] = static_cast<float>(i % 17) * 0.05F - 0.4F;
  return out;
}

volatile float sink;

struct Bench {
  Target target;
  double budget_s;
  double peak = 0;
  std::map<std::string, double> lowest;  // share, by family

  // Seconds of the best of the runs that fit the budget. Short ones are repeated until reading the clock does not
  // count.
  double best(const std::function<void()>& run) {
    const double first = now();
    run();
    const int repeats = std::clamp(static_cast<int>(1e-4 / std::max(now() - first, 1e-7)), 1, 100);
    double shortest = 1e9;
    const double end = now() + budget_s;
    for (int i = 0; i < 5 || now() < end; ++i) {
      const double start = now();
      for (int r = 0; r < repeats; ++r) run();
      shortest = std::min(shortest, (now() - start) / repeats);
      if (i % 16 == 0) peak = std::max(peak, multiply_add_burst(target));
    }
    return shortest;
  }

  void layer(const std::string& family, const std::string& name, const Call& call) {
    const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(call.id));
    OperandBytes needed;
    if (const char* const error = operand_bytes(call.id, call.params.data(), target, &needed)) {
      std::fprintf(stderr, "bench_kernels: %s: %s\n", name.c_str(), error);
      std::exit(1);
    }
    std::vector<Buffer> buffers;
    std::vector<Operand> operands;
    std::uint64_t moved = 0;
    for (int i = 0; i < kernel->operands; ++i) {
      buffers.push_back(buffer(needed.bytes[i]));
      operands.push_back({buffers.back().get(), needed.bytes[i]});
      moved += needed.bytes[i];
    }
    if (call.constant_operand >= 0) {
      std::memcpy(buffers[static_cast<std::size_t>(call.constant_operand)].get(), call.constant.data(),
                  call.constant.size());
    }
    const double seconds = best([&] { kernel->run(call.params.data(), operands.data(), 0, 1); });
    const double gflops = static_cast<double>(flops_of(call.id, call.params.data())) / seconds * 1e-9;
    double share = gflops / peak;
    const char* of = "of the peak";
    if (family == "move" || family == "depthwise") {
      // As much is read and written by the copy as by the kernel.
      const Buffer from = buffer(moved / 2), to = buffer(moved / 2);
      const double copy = best([&] {
        std::memcpy(to.get(), from.get(), moved / 2);
        sink = *reinterpret_cast<const float*>(to.get());
      });
      if (family == "move" || copy / seconds > share) {
        share = copy / seconds;
        of = "of a copy";
      }
    }
    std::printf("%-34s %9.1f us %8.1f GFLOP/s %8.1f GB/s   %5.1f %% %s\n", name.c_str(), seconds * 1e6, gflops,
                static_cast<double>(moved) / seconds * 1e-9, share * 100, of);
    const auto at = lowest.find(family);
    if (at == lowest.end()) {
      lowest[family] = share;
    } else {
      at->second = std::min(at->second, share);
    }
    std::fflush(stdout);
  }

  void conv(const std::string& family, int c_in, int c_out, int extent, int kernel, int stride, int group = 1,
            bool linear = false) {
    ConvParams p;
    p.c_in = c_in;
    p.c_out = c_out;
    p.h_in = p.w_in = extent;
    p.kernel_h = p.kernel_w = kernel;
    p.stride_h = p.stride_w = stride;
    p.pad_top = p.pad_left = kernel / 2;
    p.h_out = p.w_out = (extent + 2 * (kernel / 2) - kernel) / stride + 1;
    p.group = group;
    p.activation = Activation::kRelu;
    std::vector<float> weights(static_cast<std::size_t>(c_out) *
                               static_cast<std::size_t>(c_in / group * kernel * kernel));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 13) * 0.02F - 0.1F;
    const Call call = make_conv(p, weights.data(), nullptr, linear, target);
    layer(family,
          std::string(linear      ? "first "
                      : group > 1 ? "depthwise "
                                  : "") +
              std::to_string(kernel) + "x" + std::to_string(kernel) + " " + std::to_string(c_in) + "->" +
              std::to_string(c_out) + " at " + std::to_string(extent) +
              (stride > 1 ? " stride " + std::to_string(stride) : ""),
          call);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Target target = best_target();
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      quick = true;
    } else if (word == "--target" && i + 1 < argc) {
      bool found = false;
      for (const Target t : {Target::kAvx2, Target::kAvx512, Target::kNeon}) {
        if (std::string(name_of(t)) != argv[i + 1]) continue;
        target = t;
        found = true;
      }
      if (!found) {
        std::fprintf(stderr, "bench_kernels: no target %s\n", argv[i + 1]);
        return 2;
      }
      ++i;
    } else {
      std::fprintf(stderr, "usage: bench_kernels [--target cpu:avx2|cpu:avx512|cpu:neon] [--quick]\n");
      return 2;
    }
  }
  if (const char* const why = unsupported(target)) {
    std::fprintf(stderr, "bench_kernels: %s\n", why);
    return 5;
  }
  Bench b{target, quick ? 0.005 : 0.15, 0, {}};
  for (int i = 0; i < (quick ? 5 : 200); ++i) b.peak = std::max(b.peak, multiply_add_burst(target));
  std::printf("%s, multiply-add peak %.1f GFLOP/s\n\nFastestDet at 352\n", name_of(target), b.peak);
  b.conv("first", 3, 24, 352, 3, 2, 1, true);
  // 24 channels leave a quarter of two blocks of 16 empty.
  b.conv("narrow", 24, 24, 88, 1, 1);
  b.conv("narrow", 24, 24, 44, 1, 1);
  b.conv("pointwise", 48, 48, 22, 1, 1);
  b.conv("pointwise", 96, 96, 11, 1, 1);
  b.conv("pointwise", 336, 96, 22, 1, 1);
  b.conv("pointwise", 96, 96, 22, 1, 1);
  b.conv("depthwise", 24, 24, 88, 3, 2, 24);
  b.conv("depthwise", 24, 24, 44, 3, 1, 24);
  b.conv("depthwise", 48, 48, 22, 3, 1, 48);
  b.conv("depthwise", 96, 96, 22, 5, 1, 96);
  std::printf("\nResNet-50 at 224\n");
  b.conv("first", 3, 64, 224, 7, 2, 1, true);
  b.conv("dense", 64, 64, 56, 3, 1);
  b.conv("dense", 128, 128, 28, 3, 1);
  b.conv("dense", 256, 256, 14, 3, 1);
  b.conv("dense", 512, 512, 7, 3, 1);
  b.conv("dense", 128, 128, 56, 3, 2);
  b.conv("dense", 256, 512, 56, 1, 2);
  b.conv("pointwise", 64, 64, 56, 1, 1);
  b.conv("pointwise", 64, 256, 56, 1, 1);
  b.conv("pointwise", 256, 64, 56, 1, 1);
  b.conv("pointwise", 512, 128, 28, 1, 1);
  b.conv("pointwise", 256, 1024, 14, 1, 1);
  b.conv("pointwise", 2048, 512, 7, 1, 1);
  std::printf("\nDetectors at 640\n");
  b.conv("first", 3, 32, 640, 3, 2, 1, true);
  b.conv("dense", 32, 64, 320, 3, 2);
  b.conv("dense", 64, 64, 80, 3, 1);
  b.conv("dense", 128, 128, 40, 3, 1);
  b.conv("pointwise", 128, 128, 80, 1, 1);
  b.conv("depthwise", 32, 32, 112, 3, 1, 32);
  b.conv("depthwise", 144, 144, 56, 3, 1, 144);
  std::printf("\nOther kernels\n");
  GemmParams gemm;
  gemm.m = gemm.k = gemm.n = 256;
  b.layer("gemm", "matrix product 256", make_call(KernelId::kGemm, gemm));
  gemm.m = 197;
  gemm.k = 768;
  gemm.n = 768;
  b.layer("gemm", "matrix product 197x768x768", make_call(KernelId::kGemm, gemm));
  b.layer("move", "to blocked 85 x 22 x 22", make_call(KernelId::kReorderToBlocked, ReorderParams{1, 85, 484}));
  b.layer("move", "to linear 85 x 22 x 22", make_call(KernelId::kReorderToLinear, ReorderParams{1, 85, 484}));
  std::vector<std::int32_t> shuffle;
  for (int c = 0; c < 96; ++c) shuffle.push_back(c / 2 + c % 2 * 48);
  b.layer("move", "shuffle 96 x 22 x 22", make_channel_gather({1, 96, 0, 96, 484}, shuffle));
  PoolParams pool;
  pool.c = 24;
  pool.h_in = pool.w_in = 176;
  pool.h_out = pool.w_out = 88;
  pool.kernel_h = pool.kernel_w = 3;
  pool.stride_h = pool.stride_w = 2;
  pool.pad_top = pool.pad_left = 1;
  b.layer("move", "maximum 3x3 24 at 176 stride 2", make_call(KernelId::kMaxPool, pool));
  UnaryParams unary;
  unary.activation = Activation::kSilu;
  unary.pixels = 64 * 80 * 80;
  b.layer("silu", "silu 64 x 80 x 80", make_call(KernelId::kUnary, unary));
  b.layer("softmax", "softmax of 80 channels at 22", make_call(KernelId::kSoftmaxChannels, ReorderParams{1, 80, 484}));
  Preprocess image;
  image.source_width = 1920;
  image.source_height = 1080;
  image.pitch = 1920 * 3;
  image.width = image.height = 352;
  b.layer("preprocess", "1920x1080 rgb8 to 352x352", make_call(KernelId::kPreprocess, image));
  image.source = PixelSource::kNv12;
  image.pitch = image.chroma_pitch = 1920;
  image.chroma_offset = 1920 * 1080;
  b.layer("preprocess", "1920x1080 nv12 to 352x352", make_call(KernelId::kPreprocess, image));
  std::printf("\n{\"target\": \"%s\", \"peak_gflops\": %.1f", name_of(target), b.peak);
  for (const char* const family : {"dense", "pointwise", "first", "depthwise", "gemm"}) {
    std::printf(", \"%s\": %.3f", family, b.lowest[family]);
  }
  std::printf("}\n");
}
