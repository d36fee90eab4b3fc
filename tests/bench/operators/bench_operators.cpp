// Figures of takt's own operators on one core, over a recorded sweep:
//   bench_operators [--target cpu:avx2|cpu:avx512|cpu:neon] [--pandaset FOLDER] [--coordinates FILE.npy] [--quick]
// Frame 20 of PandaSet sequence 002 within 54 m, voxels of 0.075 x 0.075 x 0.2 m (57,350); without a folder a made-up
// street of about as many. Layers are judged by what is multiplied: a multiply-add for every pair of cells that a tap
// joins, beside the rate of a dense product of the same widths by takt's own GEMM on the same core. Best of many runs
// in processor time of the thread. --coordinates writes the cells, i32 [n][3] z y x, for a peer. The last line is JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/peak.h"
#include "kernels/kernel.h"
#include "kernels/voxels.h"
#include "tools/convert/pandaset.h"

using namespace takt::kernels;
using namespace takt::kernels::cpu;

namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "bench_operators: %s\n", what.c_str());
  std::exit(3);
}

// Bytes at a multiple of 64.
class Buffer {
 public:
  explicit Buffer(std::uint64_t bytes = 0)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)), std::free), bytes_(bytes) {
    std::memset(data_.get(), 0, (bytes + 127) / 64 * 64);
  }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }
  [[nodiscard]] Operand operand() const { return {data_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> data_;
  std::uint64_t bytes_;
};

Buffer values(std::int64_t count) {
  Buffer out(static_cast<std::uint64_t>(count) * 4);
  for (std::int64_t i = 0; i < count; ++i)
    out.as<float>()[i] = static_cast<float>(i * 2654435761U % 1000) * 1e-3F - 0.5F;
  return out;
}

struct Bench {
  Target target;
  double budget_s;

  double best(const std::function<void()>& run) const {
    run();
    double shortest = 1e9;
    const double end = now() + budget_s;
    for (int i = 0; i < 3 || now() < end; ++i) {
      const double start = now();
      run();
      shortest = std::min(shortest, now() - start);
    }
    return shortest;
  }

  // A kernel with these parameters, inputs and counts; outputs and scratch are made here.
  template <class Params>
  std::vector<Buffer> call(KernelId id, const Params& params, const std::vector<Operand>& inputs,
                           const std::vector<Operand>& counts, double* seconds) const {
    const OperatorKernel& row = *find_operator_kernel(id);
    OperandBytes needed;
    if (const char* const error = row.operand_bytes(&params, &needed)) stop(std::string(row.name) + ": " + error);
    std::vector<Operand> operands = inputs;
    operands.insert(operands.end(), counts.begin(), counts.end());
    std::vector<Buffer> made;
    for (int i = row.first_output(); i < row.operands(); ++i) {
      made.emplace_back(needed.bytes[i]);
      operands.push_back(made.back().operand());
    }
    const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(id));
    if (const char* const error = kernel->check(&params, operands, target)) stop(std::string(row.name) + ": " + error);
    *seconds = best([&] { kernel->run(&params, operands.data(), 0, 1); });
    return made;
  }

  // GFLOP/s of dense products by the kernel that networks use: the better of one tap's and of all 27 taps' at once.
  double dense(std::int32_t depth, std::int32_t width) const {
    return std::max(product(8192, depth, width), product(1024, 27 * depth, width));
  }
  double product(std::int64_t rows, std::int64_t depth, std::int64_t width) const {
    GemmParams p;
    p.m = rows;
    p.k = depth;
    p.n = width;
    const Buffer a = values(p.m * p.k), b = values(p.k * p.n), y(static_cast<std::uint64_t>(p.m * p.n) * 4);
    const std::vector<Operand> operands = {a.operand(), b.operand(), {}, y.operand()};
    const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(KernelId::kGemm));
    const double seconds = best([&] { kernel->run(&p, operands.data(), 0, 1); });
    return static_cast<double>(2 * p.m * p.k * p.n) / seconds * 1e-9;
  }
};

// x y z i. Frame 20, in the sensor's own axes.
std::vector<float> recorded(const std::string& folder) {
  const auto set = takt::tools::open_pandaset(folder);
  if (!set) stop(set.error().message);
  const auto sweep = takt::tools::read_sweep(*set, 20);
  if (!sweep) stop(sweep.error().message);
  std::vector<float> points;
  for (std::size_t i = 0; i < sweep->size(); ++i) {
    for (const std::int16_t cm : {sweep->x_cm[i], sweep->y_cm[i], sweep->z_cm[i]}) {
      points.push_back(static_cast<float>(cm) * 0.01F);
    }
    points.push_back(static_cast<float>(sweep->intensity[i]));
  }
  return points;
}

// A road, walls along it and boxes: surfaces, as a LiDAR sees them.
std::vector<float> made_up() {
  std::vector<float> points;
  for (int i = 0; i < 100000; ++i) {
    const float u = static_cast<float>(i % 1000) * 0.1F - 50, v = static_cast<float>(i / 1000) * 0.11F - 5.5F;
    const bool wall = i % 3 == 0;
    for (const float value : {u, wall ? (i % 2 == 0 ? 8.0F : -8.0F) : v, wall ? v * 0.25F : -1.8F, 1.0F}) {
      points.push_back(value);
    }
  }
  return points;
}

struct Resolution {
  std::int32_t count = 0;
  Buffer cells;
  std::int32_t grid[3] = {};  // x y z
};

std::int64_t pairs_of(const Buffer& map, std::int64_t entries) {
  return std::count_if(map.as<std::int32_t>(), map.as<std::int32_t>() + entries, [](std::int32_t i) { return i >= 0; });
}

}  // namespace

int main(int argc, char** argv) {
  Target target = best_target();
  std::string folder, coordinates;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto next = [&] {
      return i + 1 < argc ? std::string(argv[++i]) : (stop(option + " needs a value"), std::string());
    };
    if (option == "--quick") {
      quick = true;
    } else if (option == "--pandaset") {
      folder = next();
    } else if (option == "--coordinates") {
      coordinates = next();
    } else if (option == "--target") {
      const std::string name = next();
      bool known = false;
      for (const Target t : {Target::kAvx2, Target::kAvx512, Target::kNeon}) {
        if (name != name_of(t)) continue;
        target = t;
        known = unsupported(t) == nullptr;
      }
      if (!known) stop(name + " does not run here");
    } else {
      stop("unknown option " + option);
    }
  }
  const Bench bench{target, quick ? 0.0 : 0.3};
  const std::vector<float> points = folder.empty() ? made_up() : recorded(folder);

  VoxeliseParams v;
  v.points = static_cast<std::int32_t>(points.size() / 4);
  v.voxels = 120000;
  v.minimum[0] = v.minimum[1] = -54;
  v.maximum[0] = v.maximum[1] = 54;
  v.minimum[2] = -5;
  v.maximum[2] = 3;
  v.size[0] = v.size[1] = 0.075;
  v.size[2] = 0.2;
  v.grid[0] = v.grid[1] = 1440;
  v.grid[2] = 40;
  Buffer cloud(points.size() * 4);
  std::memcpy(cloud.as<float>(), points.data(), points.size() * 4);
  double seconds = 0;
  std::vector<Buffer> voxels = bench.call(KernelId::kVoxelise, v, {cloud.operand()}, {{}}, &seconds);
  Resolution at{*voxels[3].as<std::int32_t>(), std::move(voxels[0]), {v.grid[0], v.grid[1], v.grid[2]}};
  std::printf("%s, one core of this machine, %s\n", name_of(target),
              folder.empty() ? "a made-up street" : "PandaSet 002/20");
  std::printf("%-44s %9.3f ms   %d points, %d voxels\n", "voxelise", seconds * 1e3, v.points, at.count);
  if (!coordinates.empty()) {
    std::vector<std::int32_t> zyx;
    for (std::int32_t i = 0; i < at.count; ++i) {
      const std::int64_t cell = at.cells.as<std::int64_t>()[i];
      for (const std::int64_t c : {z_of(cell), y_of(cell), x_of(cell)}) zyx.push_back(static_cast<std::int32_t>(c));
    }
    std::ofstream out(coordinates, std::ios::binary);
    out.write(reinterpret_cast<const char*>(zyx.data()), static_cast<std::streamsize>(zyx.size() * 4));
    if (!out.flush()) stop("cannot write " + coordinates);
  }

  // The backbone of CenterPoint's voxel form (Yin et al., CVPR 2021; spconv's SpMiddleResNetFHD): a first layer, four
  // resolutions of four submanifold layers with strided ones between them.
  double convolutions = 0, maps = 0, lowest = 1e9;
  std::map<std::pair<int, int>, double> dense;
  const auto layer = [&](const char* kind, std::int32_t inputs, std::int32_t results, const Buffer& map, int taps,
                         int c_in, int c_out, int times) {
    SparseConvParams p{inputs, results, taps, c_in, c_out, 1, 0, 1};
    const Buffer x = values(std::int64_t{inputs} * c_in), w = values(std::int64_t{taps} * c_in * c_out),
                 b = values(c_out);
    double s = 0;
    bench.call(KernelId::kSparseConv, p, {x.operand(), w.operand(), map.operand(), b.operand(), {}}, {{}, {}}, &s);
    const std::int64_t pairs = pairs_of(map, std::int64_t{results} * taps);
    const double rate = static_cast<double>(2 * pairs * c_in * c_out) / s * 1e-9;
    const auto [known, fresh] = dense.try_emplace({c_in, c_out}, 0.0);
    if (fresh) known->second = bench.dense(c_in, c_out);
    const double share = rate / known->second;
    if (c_in >= 32 && c_out >= 32) lowest = std::min(lowest, share);
    convolutions += s * times;
    std::printf("%-11s %3d -> %3d %8d -> %8d  %9.3f ms   %5.1f pairs a cell  %6.1f GFLOP/s, dense %6.1f: %5.1f %%\n",
                kind, c_in, c_out, inputs, results, s * 1e3, static_cast<double>(pairs) / results, rate, known->second,
                share * 100);
    std::fflush(stdout);
  };
  const auto submanifold = [&](const Resolution& r) {
    SparseMapParams p;
    p.inputs = p.results = r.count;
    for (int d = 0; d < 3; ++d) p.kernel[d] = 3;
    for (int d = 0; d < 3; ++d) p.padding[d] = 1;
    double s = 0;
    std::vector<Buffer> map = bench.call(KernelId::kSparseMap, p, {r.cells.operand(), r.cells.operand()}, {{}, {}}, &s);
    maps += s;
    std::printf("%-44s %9.3f ms\n", "map, submanifold", s * 1e3);
    return std::move(map[0]);
  };

  struct Level {
    std::array<int, 3> kernel, stride, padding;  // x y z
    int c_in, c_out, layers;
  };
  const Level levels[] = {{{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, 16, 32, 4},
                          {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, 32, 64, 4},
                          {{3, 3, 3}, {2, 2, 2}, {1, 1, 0}, 64, 128, 4},
                          {{1, 1, 3}, {1, 1, 2}, {0, 0, 0}, 128, 128, 0}};
  {
    const Buffer map = submanifold(at);
    layer("submanifold", at.count, at.count, map, 27, 5, 16, 1);
    layer("submanifold", at.count, at.count, map, 27, 16, 16, 4);
    const double before = convolutions;
    for (const int c : {32, 64}) layer("(aside)", at.count, at.count, map, 27, c, c, 1);
    convolutions = before;
  }
  for (const Level& level : levels) {
    SparseCellsParams p;
    p.cells = at.count;
    p.results = 120000;
    SparseMapParams m;
    for (std::size_t d = 0; d < 3; ++d) {
      p.kernel[d] = m.kernel[d] = level.kernel[d];
      p.stride[d] = m.stride[d] = level.stride[d];
      p.padding[d] = m.padding[d] = level.padding[d];
      p.grid[d] = (at.grid[d] + 2 * p.padding[d] - p.kernel[d]) / p.stride[d] + 1;
    }
    double s = 0;
    std::vector<Buffer> cells = bench.call(KernelId::kSparseCells, p, {at.cells.operand()}, {{}}, &s);
    maps += s;
    Resolution next{*cells[1].as<std::int32_t>(), std::move(cells[0]), {p.grid[0], p.grid[1], p.grid[2]}};
    std::printf("%-44s %9.3f ms   %d cells\n", "cells of a strided layer", s * 1e3, next.count);
    m.inputs = at.count;
    m.results = next.count;
    const Operand own{next.cells.operand().data, static_cast<std::uint64_t>(next.count) * 8};
    std::vector<Buffer> map = bench.call(KernelId::kSparseMap, m, {at.cells.operand(), own}, {{}, {}}, &s);
    maps += s;
    std::printf("%-44s %9.3f ms\n", "map, strided", s * 1e3);
    const int taps = m.kernel[0] * m.kernel[1] * m.kernel[2];
    layer("strided", at.count, next.count, map[0], taps, level.c_in, level.c_out, 1);
    at = std::move(next);
    if (level.layers > 0) {
      const Buffer same = submanifold(at);
      layer("submanifold", at.count, at.count, same, 27, level.c_out, level.c_out, level.layers);
    }
  }
  std::printf("backbone: convolutions %.1f ms, cells and maps %.1f ms (%.1f %% of both)\n", convolutions * 1e3,
              maps * 1e3, maps / (convolutions + maps) * 100);
  std::printf("{\"lowest_share\": %.3f, \"map_share\": %.3f, \"backbone_ms\": %.2f}\n", lowest,
              maps / (convolutions + maps), (convolutions + maps) * 1e3);
  return 0;
}
