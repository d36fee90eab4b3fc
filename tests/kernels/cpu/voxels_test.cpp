// Voxels and sparse convolutions against their references, on clouds that a sensor would not give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

// In f32 the last number below the limit may lie at the extent of the grid, and so may its quotient.
TEST(Voxelise, AnIndexAtTheExtentIsLeftOut) {
  const float last = std::nextafter(4.0F, 0.0F);
  ASSERT_EQ(last + 4.0F, 8.0F);
  EXPECT_EQ(voxelise(small(2, 4), {last, 0, 0, 0, 0, 0, 0, 0}).count, 1);
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
    for (int d = 0; d < 3; ++d) p.size[d] = static_cast<float>(random.integer(1, 9)) / 8;
    for (int d = 0; d < 3; ++d) p.grid[d] = static_cast<std::int32_t>(8 / p.size[d]);
    Floats points = random.values(std::int64_t{p.points} * p.columns, true);
    const int count = random.integer(-3, p.points + 3);
    voxelise(p, points, count);
  }
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

}  // namespace
}  // namespace takt::kernels::cpu
