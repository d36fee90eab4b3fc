// Voxels and sparse convolutions against their references, on clouds that a sensor would not give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "kernels/voxels.h"
#include "tests/kernels/cpu/operator_harness.h"

namespace takt::kernels::cpu {
namespace {

using ::testing::ElementsAre;

VoxeliseParams small(std::int32_t points, std::int32_t voxels) {
  VoxeliseParams p;
  p.points = points;
  p.columns = 4;
  p.voxels = voxels;
  for (int d = 0; d < 3; ++d) {
    p.grid[d] = 8;
    p.minimum[d] = -4;
    p.maximum[d] = 4;
  }
  p.centre[0] = p.centre[1] = 4;
  return p;
}

struct Cloud {
  std::vector<std::int64_t> cells;
  std::vector<std::int32_t> ends, members;
  std::int32_t count = 0, kept = 0, dropped = 0;
};
Cloud voxelise(const VoxeliseParams& p, const Floats& points, std::optional<std::int32_t> count = {}) {
  const auto out = run_operator(KernelId::kVoxelise, p, {bytes_of(points)}, {count});
  Cloud cloud{values_of<std::int64_t>(out[0]),    values_of<std::int32_t>(out[1]),
              values_of<std::int32_t>(out[2]),    values_of<std::int32_t>(out[3])[0],
              values_of<std::int32_t>(out[4])[0], values_of<std::int32_t>(out[5])[0]};
  cloud.cells.resize(static_cast<std::size_t>(cloud.count));
  cloud.ends.resize(static_cast<std::size_t>(cloud.count));
  cloud.members.resize(static_cast<std::size_t>(cloud.kept));
  return cloud;
}

TEST(Voxelise, CellsAscendAndMembersKeepTheCloudsOrder) {
  const Cloud c =
      voxelise(small(5, 9), {3, 0, 0, 1, /**/ -4, -4, -4, 2, /**/ 3.5F, 0.5F, 0.9F, 3, 0, 0, -1, 4, /**/ 3, 0, 0, 5});
  EXPECT_THAT(c.cells, ElementsAre(cell_of(0, 0, 0), cell_of(3, 4, 4), cell_of(4, 4, 7)));
  EXPECT_THAT(c.ends, ElementsAre(1, 2, 5));
  EXPECT_THAT(c.members, ElementsAre(1, 3, 0, 2, 4));
  EXPECT_EQ(c.dropped, 0);
}

TEST(Voxelise, TheRangeIsHalfOpenAndWhatIsNoNumberIsLeftOut) {
  const float below = 3.9999F, inf = std::numeric_limits<float>::infinity();
  const Cloud c = voxelise(small(7, 9), {4, 0, 0,      0, /**/ below, below, below,     0, /**/ -4, 0, 0, 0, 0, kNaN,
                                         0, 0, /**/ 0, 0, inf,        0,     /**/ -inf, 0, 0,       0, 0, 0, 0, kNaN});
  EXPECT_THAT(c.cells, ElementsAre(cell_of(4, 4, 0), cell_of(4, 4, 4), cell_of(7, 7, 7)));
  EXPECT_THAT(c.members, ElementsAre(2, 6, 1));
  EXPECT_EQ(c.dropped, 0) << "out of range is not dropped";
}

// A range that is no multiple of the size: what lies behind the last cell is in no cell. And the last f32 below a limit
// is in the last cell, which it is not in f32 arithmetic.
TEST(Voxelise, AnIndexAtTheExtentIsLeftOut) {
  VoxeliseParams p = small(2, 4);
  p.maximum[0] = 4.25;
  EXPECT_EQ(voxelise(p, {4.1F, 0, 0, 0, 0, 0, 0, 0}).count, 1);
  const float last = std::nextafter(4.0F, 0.0F);
  ASSERT_EQ(last + 4.0F, 8.0F);
  EXPECT_THAT(voxelise(small(1, 4), {last, 0, 0, 0}).cells, ElementsAre(cell_of(4, 4, 7)));
}

TEST(Voxelise, CapsDropInTheirOrderAndAreCounted) {
  const Floats points = {3, 0, 0, 0, /**/ 0, 0, 0,      0, /**/ 0, 0, 0,      0, /**/ -4, 0,
                         0, 0, 0, 0, 0,      0, /**/ 1, 1, 0,      0, /**/ 3, 0, 0,       0};
  VoxeliseParams p = small(7, 2);
  p.most = 2;
  Cloud c = voxelise(p, points);
  EXPECT_THAT(c.cells, ElementsAre(cell_of(4, 4, 4), cell_of(4, 4, 7))) << "whose first points come first";
  EXPECT_THAT(c.members, ElementsAre(1, 2, 0, 6));
  EXPECT_EQ(c.dropped, 3);
  p.keep = Keep::kNear;
  c = voxelise(p, points);
  EXPECT_THAT(c.cells, ElementsAre(cell_of(4, 4, 4), cell_of(4, 5, 5))) << "nearest to the centre";
  EXPECT_EQ(c.dropped, 4);
}

TEST(Voxelise, RandomCloudsOfAnyCountAndCapacity) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    VoxeliseParams p = small(random.integer(1, 300), random.integer(1, 200));
    p.columns = random.integer(3, 6);
    p.most = random.integer(0, 3);
    p.keep = static_cast<Keep>(random.integer(0, 1));
    for (int d = 0; d < 3; ++d) p.size[d] = random.integer(1, 9) / 8.0;
    for (int d = 0; d < 3; ++d) p.grid[d] = static_cast<std::int32_t>(8 / p.size[d]);
    Floats points = random.values(std::int64_t{p.points} * p.columns, true);
    const int count = random.integer(-3, p.points + 3);
    voxelise(p, points, count);
  }
}

// Which voxels there are, and how many points each has, does not depend on the order of the points; nor does which are
// dropped where the nearest stay. Which points are kept does.
TEST(Voxelise, TheOrderOfThePointsDoesNotDecideTheVoxels) {
  Random random(8);
  VoxeliseParams p = small(300, 60);
  p.keep = Keep::kNear;
  p.most = 3;
  std::vector<std::array<float, 4>> points(300);
  for (auto& point : points) {
    for (float& v : point) v = random.value();
  }
  const auto flat = [&] {
    Floats all;
    for (const auto& point : points) all.insert(all.end(), point.begin(), point.end());
    return all;
  };
  const Cloud first = voxelise(p, flat());
  EXPECT_EQ(first.count, 60);
  EXPECT_GT(first.dropped, 0);
  for (int i = 0; i < 5; ++i) {
    for (std::size_t k = points.size() - 1; k > 0; --k) {
      std::swap(points[k], points[static_cast<std::size_t>(random.integer(0, static_cast<int>(k)))]);
    }
    const Cloud again = voxelise(p, flat());
    EXPECT_EQ(again.cells, first.cells);
    EXPECT_EQ(again.ends, first.ends);
    EXPECT_EQ(again.dropped, first.dropped);
  }
}

// Ten times what a sensor gives, every voxel of the grid full.
TEST(Voxelise, AMillionPoints) {
  constexpr int kMany = kOnSimt ? 10'000 : 1'000'000;
  VoxeliseParams p = small(kMany, 400);
  p.columns = 3;
  p.most = 5;
  Floats points;
  for (int i = 0; i < kMany; ++i) {
    for (const int v : {i % 801, 31 * i % 797, 57 * i % 793}) points.push_back(static_cast<float>(v) * 0.01F - 4.005F);
  }
  const Cloud c = voxelise(p, points);
  EXPECT_EQ(c.count, 400);
  EXPECT_EQ(c.kept, 2000);
  EXPECT_GT(c.dropped, kMany * 3 / 4);
}

TEST(VoxelMean, MeansOfMembersWhateverTheListsHold) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const VoxelMeanParams p{random.integer(1, 60), random.integer(3, 6), random.integer(1, 40), 0};
    std::vector<std::int32_t> ends, members;
    int end = 0;
    for (int v = 0; v < p.voxels; ++v)
      ends.push_back(i % 4 == 0 ? random.integer(-9, 99) : end += random.integer(0, 2));
    for (int m = 0; m < p.points; ++m) members.push_back(random.integer(i % 4 == 0 ? -5 : 0, p.points - 1 + i % 4));
    run_operator(KernelId::kVoxelMean, p,
                 {bytes_of(random.values(std::int64_t{p.points} * p.columns, i % 2 == 0)), bytes_of_all(ends),
                  bytes_of_all(members)},
                 {random.integer(0, p.points), random.integer(0, p.voxels), random.integer(0, p.points)});
  }
  const auto mean = run_operator(KernelId::kVoxelMean, VoxelMeanParams{3, 3, 2, 0},
                                 {bytes_of({1, 2, 3, 5, 6, 7, 0, 0, 1}), bytes_of_all<std::int32_t>({2, 3}),
                                  bytes_of_all<std::int32_t>({0, 1, 2})},
                                 {{}, {}, {}});
  EXPECT_THAT(floats_of(mean[0]), ElementsAre(3, 4, 5, 0, 0, 1));
}

// Ascending cells of a grid (x y z), at most `most`.
std::vector<std::int64_t> random_cells(Random& random, const std::int32_t (&grid)[3], int most) {
  std::set<std::int64_t> cells;
  for (int i = 0; i < most; ++i) {
    cells.insert(
        cell_of(random.integer(0, grid[2] - 1), random.integer(0, grid[1] - 1), random.integer(0, grid[0] - 1)));
  }
  return {cells.begin(), cells.end()};
}
// With rows behind the count that are cells too.
template <class T>
Bytes padded(const std::vector<T>& values, std::int64_t capacity, T poison) {
  std::vector<T> all = values;
  all.resize(static_cast<std::size_t>(capacity), poison);
  return bytes_of_all(all);
}

struct Strided {
  std::vector<std::int64_t> input, output;
  std::int32_t grid[3];  // of the input
  SparseMapParams window;
};

// Cells in and out of a random strided convolution, checked against the reference on the way.
Strided random_strided(Random& random) {
  Strided s;
  SparseCellsParams p;
  for (int d = 0; d < 3; ++d) {
    s.grid[d] = random.integer(1, 12);
    p.kernel[d] = s.window.kernel[d] = random.integer(1, std::min(4, s.grid[d]));
    p.stride[d] = s.window.stride[d] = random.integer(1, 3);
    p.padding[d] = s.window.padding[d] = random.integer(0, p.kernel[d] - 1);
    p.grid[d] = (s.grid[d] + 2 * p.padding[d] - p.kernel[d]) / p.stride[d] + 1;
  }
  s.input = random_cells(random, s.grid, random.integer(0, 60));
  p.cells = static_cast<std::int32_t>(s.input.size()) + random.integer(1, 5);
  p.results = random.integer(0, 2) == 0 ? random.integer(1, 40) : 2000;
  p.centre[0] = p.grid[0] / 2;
  p.centre[1] = p.grid[1] / 2;
  const auto out = run_operator(KernelId::kSparseCells, p, {padded<std::int64_t>(s.input, p.cells, 0)},
                                {static_cast<std::int32_t>(s.input.size())});
  s.output = values_of<std::int64_t>(out[0]);
  s.output.resize(static_cast<std::size_t>(values_of<std::int32_t>(out[1])[0]));
  EXPECT_TRUE(std::is_sorted(s.output.begin(), s.output.end()));
  return s;
}

TEST(Sparse, CellsMapsInverseMapsAndConvolutionsOfAnyWindow) {
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    const Strided s = random_strided(random);
    const auto in = static_cast<std::int32_t>(s.input.size()), out = static_cast<std::int32_t>(s.output.size());
    SparseMapParams p = s.window;
    p.inputs = in + random.integer(1, 4);
    p.results = out + random.integer(1, 4);
    const std::int32_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
    const auto map = run_operator(
        KernelId::kSparseMap, p,
        {padded<std::int64_t>(s.input, p.inputs, 0), padded<std::int64_t>(s.output, p.results, 0)}, {in, out});
    const auto inverse = run_operator(KernelId::kInverseMap, InverseMapParams{p.results, p.inputs, taps, 0},
                                      {map[0], padded<std::int64_t>(s.input, p.inputs, 0)}, {out, in});

    SparseConvParams conv{p.inputs, p.results, taps, random.integer(1, 40), random.integer(1, 70)};
    conv.bias = random.integer(0, 1);
    conv.residual = random.integer(0, 1);
    conv.activation = random.integer(0, 8);
    conv.alpha = -0.5F;
    conv.beta = 2;
    // The map behind its count is what nobody wrote; features there are no numbers.
    Floats x = random.values(std::int64_t{in} * conv.c_in);
    x.resize(static_cast<std::size_t>(p.inputs * conv.c_in), kNaN);
    Floats residual = random.values(std::int64_t{out} * conv.c_out);
    residual.resize(static_cast<std::size_t>(p.results * conv.c_out), kNaN);
    const Floats weights = random.values(std::int64_t{taps} * conv.c_in * conv.c_out);
    run_operator(
        KernelId::kSparseConv, conv,
        {bytes_of(x), bytes_of(weights), map[0], conv.bias == 1 ? bytes_of(random.values(conv.c_out)) : Bytes{},
         conv.residual == 1 ? bytes_of(residual) : Bytes{}},
        {in, out});
    SparseConvParams back{p.results, p.inputs, taps, conv.c_out, 5};
    run_operator(KernelId::kSparseConv, back,
                 {bytes_of(residual), bytes_of(random.values(std::int64_t{taps} * conv.c_out * 5)), inverse[0], {}, {}},
                 {out, in});
    const ScatterBevParams bev{p.inputs,
                               conv.c_in,
                               {s.grid[0], s.grid[1], random.integer(1, s.grid[2])},
                               std::array{0, 8, 16, 32}[static_cast<std::size_t>(random.integer(0, 3))]};
    run_operator(KernelId::kScatterBev, bev, {bytes_of(x), padded<std::int64_t>(s.input, p.inputs, 0)}, {in});
  }
}

// Widths and depths of real layers, with more rows than a tile.
TEST(Sparse, LayersOfRealWidths) {
  Random random(6);
  const std::int32_t grid[3] = {30, 30, 4};
  const auto cells = random_cells(random, grid, kOnSimt ? 150 : 700);
  const auto count = static_cast<std::int32_t>(cells.size());
  SparseMapParams p;
  p.inputs = p.results = count;
  for (int d = 0; d < 3; ++d) p.kernel[d] = 3;
  for (int d = 0; d < 3; ++d) p.padding[d] = 1;
  const auto map = run_operator(KernelId::kSparseMap, p, {bytes_of_all(cells), bytes_of_all(cells)}, {{}, {}});
  // Submanifold: every cell reads itself with the tap in the middle.
  const auto taps = values_of<std::int32_t>(map[0]);
  for (std::int32_t i = 0; i < count; ++i) ASSERT_EQ(taps[static_cast<std::size_t>(i * 27 + 13)], i);
  for (const auto& [in, out] : {std::pair{5, 16}, {16, 32}, {32, 32}, {64, 64}, {300, 24}, {20, 136}}) {
    SparseConvParams conv{count, count, 27, in, out, 1, 0, 1};
    run_operator(KernelId::kSparseConv, conv,
                 {bytes_of(random.values(std::int64_t{count} * in)),
                  bytes_of(random.values(std::int64_t{27} * in * out)),
                  map[0],
                  bytes_of(random.values(out)),
                  {}},
                 {{}, {}});
  }
}

// Lists that are none: whatever they hold, everything stays inside (the table's test runs it between guards too).
TEST(Sparse, ListsThatDoNotAscendStayInside) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> cells(40);
    for (std::int64_t& cell : cells) {
      cell = random.integer(0, 3) == 0 ? std::int64_t{random.integer(-3, 3)} * 0x1fffffffffffffffLL
                                       : cell_of(random.integer(-1, 5), random.integer(-1, 5), random.integer(-1, 5));
    }
    SparseCellsParams p{40, 30, {4, 4, 4}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {2, 2}};
    SparseMapParams m{40, 40, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, 0};
    for (const auto& [id, params] :
         {std::pair{KernelId::kSparseCells, ir::block_of(p)}, {KernelId::kSparseMap, ir::block_of(m)}}) {
      OperandBytes needed;
      const Target target = targets().front();
      ASSERT_EQ(operand_bytes(id, params.data(), target, &needed), nullptr);
      const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(id));
      std::vector<Bytes> holds;
      for (int o = 0; o < kernel->operands; ++o) {
        holds.emplace_back(needed.bytes[o], std::byte{0x7F});
        if (o < find_operator_kernel(id)->inputs) std::memcpy(holds.back().data(), cells.data(), needed.bytes[o]);
      }
      CallOperands call(holds, needed, std::byte{0x7F});
      run_kernel(*kernel, params.data(), call, 2);
      for (const Guarded& g : call.guarded) ASSERT_TRUE(g.intact()) << kernel->name;
    }
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
