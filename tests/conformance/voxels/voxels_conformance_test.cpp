// Voxels of recorded clouds: published counts, and sparse convolutions against dense ones in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "kernels/voxels.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::Shape;
using ir::ValueId;

// f32 [n][4] as KITTI and View-of-Delft have it.
std::vector<float> read_cloud(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> points(bytes.size() / 16 * 4);
  std::memcpy(points.data(), bytes.data(), points.size() * 4);
  return points;
}
std::vector<float> read_pandaset(const std::string& folder, std::size_t frame) {
  const auto set = tools::open_pandaset(folder);
  EXPECT_TRUE(set) << set.error().message;
  const auto sweep = tools::read_sweep(*set, frame);
  EXPECT_TRUE(sweep) << sweep.error().message;
  std::vector<float> points;
  for (std::size_t i = 0; i < sweep->size(); ++i) {
    for (const std::int16_t cm : {sweep->x_cm[i], sweep->y_cm[i], sweep->z_cm[i]}) {
      points.push_back(static_cast<float>(cm) * 0.01F);
    }
    points.push_back(static_cast<float>(sweep->intensity[i]) / 255);
  }
  return points;
}

struct Building {
  ir::Graph graph;

  ValueId input(const std::string& name, DType dtype, const Shape& shape, ValueId count = ir::kNoValue) {
    graph.inputs.push_back(graph.add_value(name, ir::Type{dtype, shape, count}));
    return graph.inputs.back();
  }
  std::vector<ValueId> node(const std::string& op, std::vector<ValueId> inputs, const std::vector<std::string>& outputs,
                            std::map<std::string, ir::Attribute> attributes) {
    ir::Node node;
    node.op = op;
    node.name = outputs[0];
    node.inputs = std::move(inputs);
    for (const std::string& name : outputs) node.outputs.push_back(graph.add_value(name));
    node.attributes = std::move(attributes);
    const std::vector<ValueId> results = node.outputs;
    const Status done = ir::append(graph, std::move(node));
    EXPECT_TRUE(done) << done.error().message;
    return results;
  }
};
using Integers = std::vector<std::int64_t>;

// Runs a graph as a plan, in one part and in two, on every target; the bytes are the same. Outputs cut to `rows` each.
std::vector<std::vector<std::byte>> run(const ir::Graph& graph, const std::vector<std::vector<std::byte>>& inputs) {
  std::vector<std::vector<std::byte>> first;
  for (const auto target : test::targets_of_this_machine()) {
    Options options;
    options.target = target;
    ir::Graph copy = graph;
    const auto bytes = compile(std::move(copy), {}, options);
    EXPECT_TRUE(bytes) << bytes.error().message;
    const auto plan = plan::Plan::parse(*bytes);
    EXPECT_TRUE(plan) << plan.error().message;
    for (const auto& [parts, fill] : {std::pair{1, 0x7f}, {2, 0x7f}}) {
      const auto outputs = test::run_plan(*plan, inputs, parts, fill);
      if (first.empty()) first = outputs;
      EXPECT_EQ(outputs, first) << kernels::name_of(target) << " in " << parts;
    }
  }
  return first;
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct Counts {
  std::int32_t voxels = 0, kept = 0;
};
// `geometry`: lowest corner, highest corner, size of a voxel; x y z each.
Counts count(const std::vector<float>& points, const std::vector<double>& geometry) {
  Constant exact = Constant::allocate(DType::kF64, Shape{1, {9}});
  std::memcpy(exact.bytes.data(), geometry.data(), exact.bytes.size());
  Building b;
  const auto rows = static_cast<std::int64_t>(points.size() / 4);
  const ValueId cloud = b.input("cloud", DType::kF32, {2, {rows, 4}});
  const auto voxels =
      b.node("takt.Voxelise", {cloud}, {"cells", "ends", "members", "count", "kept", "dropped"},
             {{"geometry", std::make_shared<const Constant>(exact)}, {"capacity", std::int64_t{150000}}});
  b.graph.outputs = {voxels[3], voxels[4]};
  const auto out = run(b.graph, {bytes_of(points)});
  return {values_of<std::int32_t>(out[0])[0], values_of<std::int32_t>(out[1])[0]};
}

// Points in range, pillars and voxels of the README. Another program counted them in double, the pillars with the f32
// number for 0.16.
TEST(Voxels, CountsOfKittiFramesAreTheOnesPublished) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/cuda_pointpillars_kitti");
  struct Frame {
    const char* name;
    std::size_t points;
    int in_range, pillars, voxels;
  };
  for (const Frame& frame : {Frame{"000000", 20285, 20237, 3385, 16775}, Frame{"000001", 18630, 18279, 6816, 15449},
                             Frame{"000002", 20210, 19831, 3105, 14809}, Frame{"000004", 19063, 18048, 7516, 15283},
                             Frame{"000006", 19473, 18629, 5626, 15052}, Frame{"000008", 17238, 16897, 3947, 13048}}) {
    const std::vector<float> points = read_cloud(folder + "/" + frame.name + ".bin");
    ASSERT_EQ(points.size(), frame.points * 4);
    const Counts pillars = count(points, {0, -39.68, -3, 69.12, 39.68, 1, double{0.16F}, double{0.16F}, 4});
    EXPECT_EQ(pillars.kept, frame.in_range) << frame.name;
    EXPECT_EQ(pillars.voxels, frame.pillars) << frame.name;
    EXPECT_EQ(count(points, {0, -39.68, -3, 69.12, 39.68, 1, 0.05, 0.05, 0.1}).voxels, frame.voxels) << frame.name;
  }
}

// 64 x 64 x 16 voxels with features, as a dense tensor [z][y][x][c] for the comparison.
struct Dense {
  std::int64_t z = 0, y = 0, x = 0, c = 0;
  std::vector<double> values;
  std::vector<bool> active;
  Dense(std::int64_t z_, std::int64_t y_, std::int64_t x_, std::int64_t c_)
      : z(z_),
        y(y_),
        x(x_),
        c(c_),
        values(static_cast<std::size_t>(z * y * x * c)),
        active(static_cast<std::size_t>(z * y * x)) {}
  [[nodiscard]] std::size_t cell(std::int64_t k, std::int64_t j, std::int64_t i) const {
    return static_cast<std::size_t>((k * y + j) * x + i);
  }
  [[nodiscard]] bool inside(std::int64_t k, std::int64_t j, std::int64_t i) const {
    return k >= 0 && k < z && j >= 0 && j < y && i >= 0 && i < x;
  }
};

// Every row against `sum` and the bound 1e-5 * sum |a||w| of a dense convolution; returns the largest share of it.
class Comparison {
 public:
  Comparison(const std::vector<float>& weights, std::int64_t c_in, std::int64_t c_out)
      : weights_(weights), c_in_(c_in), c_out_(c_out) {}
  void add(const Dense& in, std::int64_t k, std::int64_t j, std::int64_t i, std::int64_t tap) {
    const double* const a = &in.values[in.cell(k, j, i) * static_cast<std::size_t>(c_in_)];
    for (std::int64_t c = 0; c < c_in_; ++c) {
      for (std::int64_t o = 0; o < c_out_; ++o) {
        const double product =
            a[c] * static_cast<double>(weights_[static_cast<std::size_t>((tap * c_in_ + c) * c_out_ + o)]);
        sum_[static_cast<std::size_t>(o)] += product;
        size_[static_cast<std::size_t>(o)] += std::abs(product);
      }
    }
  }
  void compare(const float* row) {
    for (std::int64_t o = 0; o < c_out_; ++o) {
      const auto at = static_cast<std::size_t>(o);
      EXPECT_LE(std::abs(static_cast<double>(row[o]) - sum_[at]), 1e-5 * size_[at] + 1e-30);
      sum_[at] = size_[at] = 0;
    }
  }

 private:
  const std::vector<float>& weights_;
  std::int64_t c_in_, c_out_;
  std::vector<double> sum_ = std::vector<double>(64), size_ = std::vector<double>(64);
};

std::vector<float> random_weights(std::size_t count) {
  std::vector<float> out(count);
  std::uint32_t state = 1;
  for (float& w : out) {
    state = state * 1664525U + 1013904223U;
    w = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  return out;
}

// Submanifold, strided and inverse layers over a cloud, `origin` the lowest corner of 64 x 64 x 16 voxels of 0.2 m.
void compare_with_dense(std::vector<float> points, float x0, float y0, float z0) {
  constexpr std::int64_t kIn = 4, kOut = 19;
  Building b;
  const auto rows = static_cast<std::int64_t>(points.size() / 4) + 10;
  points.resize(static_cast<std::size_t>(rows * 4), 1.0F);  // behind the count
  const ValueId number = b.input("points", DType::kI32, {});
  const ValueId cloud = b.input("cloud", DType::kF32, {2, {rows, 4}}, number);
  const auto voxels = b.node("takt.Voxelise", {cloud}, {"cells", "ends", "members", "count", "kept", "dropped"},
                             {{"range", std::vector<float>{x0, y0, z0, x0 + 12.8F, y0 + 12.8F, z0 + 3.2F}},
                              {"size", std::vector<float>{0.2F, 0.2F, 0.2F}},
                              {"capacity", std::int64_t{30000}}});
  const ValueId cells = voxels[0];
  const ValueId mean = b.node("takt.VoxelMean", {cloud, voxels[1], voxels[2]}, {"mean"}, {})[0];
  const auto weights_of = [&](std::int64_t in, std::int64_t out, std::vector<float>* kept) {
    *kept = random_weights(static_cast<std::size_t>(27 * in * out));
    return b.graph.add_constant("w", Constant::of(*kept, Shape{3, {27, in, out}}));
  };
  std::vector<float> w1, w2, w3;
  const Integers three = {3, 3, 3}, two = {2, 2, 2}, one = {1, 1, 1};
  const ValueId map = b.node("takt.SparseMap", {cells, cells}, {"map"}, {{"kernel", three}, {"padding", one}})[0];
  const ValueId same = b.node("takt.SparseConv", {mean, weights_of(kIn, kOut, &w1), map}, {"same"}, {})[0];
  const auto coarse = b.node("takt.SparseCells", {cells}, {"coarse", "coarse:count", "coarse:dropped"},
                             {{"kernel", three},
                              {"stride", two},
                              {"padding", one},
                              {"grid", Integers{16, 64, 64}},
                              {"capacity", std::int64_t{30000}}});
  const ValueId down =
      b.node("takt.SparseMap", {cells, coarse[0]}, {"down"}, {{"kernel", three}, {"stride", two}, {"padding", one}})[0];
  const ValueId half = b.node("takt.SparseConv", {mean, weights_of(kIn, kOut, &w2), down}, {"half"}, {})[0];
  const ValueId up = b.node("takt.InverseMap", {down, cells}, {"up"}, {})[0];
  const ValueId back = b.node("takt.SparseConv", {half, weights_of(kOut, 5, &w3), up}, {"back"}, {})[0];
  b.graph.outputs = {voxels[3], cells, mean, same, coarse[1], coarse[0], half, back};

  const auto count_in = static_cast<std::int32_t>(rows - 10);
  const auto out = run(b.graph, {bytes_of(std::vector<std::int32_t>{count_in}), bytes_of(points)});
  const std::int32_t fine = values_of<std::int32_t>(out[0])[0], few = values_of<std::int32_t>(out[4])[0];
  ASSERT_GT(fine, 700) << "too few voxels to say anything";
  const auto fine_cells = values_of<std::int64_t>(out[1]), coarse_cells = values_of<std::int64_t>(out[5]);
  const auto features = values_of<float>(out[2]);

  Dense in(16, 64, 64, kIn);
  for (std::int32_t i = 0; i < fine; ++i) {
    const std::int64_t cell = fine_cells[static_cast<std::size_t>(i)];
    const std::size_t at = in.cell(kernels::z_of(cell), kernels::y_of(cell), kernels::x_of(cell));
    in.active[at] = true;
    for (std::size_t c = 0; c < kIn; ++c) {
      in.values[at * kIn + c] = static_cast<double>(features[static_cast<std::size_t>(i) * kIn + c]);
    }
  }
  const auto taps = [](auto f) {
    for (std::int64_t k = 0; k < 27; ++k) f(k, k / 9, k / 3 % 3, k % 3);
  };
  Comparison submanifold(w1, kIn, kOut);
  const auto same_rows = values_of<float>(out[3]);
  for (std::int32_t i = 0; i < fine; ++i) {
    const std::int64_t cell = fine_cells[static_cast<std::size_t>(i)];
    taps([&](std::int64_t tap, std::int64_t kz, std::int64_t ky, std::int64_t kx) {
      const std::int64_t z = kernels::z_of(cell) + kz - 1, y = kernels::y_of(cell) + ky - 1,
                         x = kernels::x_of(cell) + kx - 1;
      if (in.inside(z, y, x)) submanifold.add(in, z, y, x, tap);
    });
    submanifold.compare(&same_rows[static_cast<std::size_t>(i * kOut)]);
  }

  // A dense strided convolution is non-zero where some tap meets an active cell: those are the cells, in order.
  Dense middle(8, 32, 32, kOut);
  Comparison strided(w2, kIn, kOut);
  const auto half_rows = values_of<float>(out[6]);
  std::int32_t row = 0;
  for (std::int64_t z = 0; z < middle.z; ++z) {
    for (std::int64_t y = 0; y < middle.y; ++y) {
      for (std::int64_t x = 0; x < middle.x; ++x) {
        bool any = false;
        taps([&](std::int64_t tap, std::int64_t kz, std::int64_t ky, std::int64_t kx) {
          const std::int64_t iz = 2 * z - 1 + kz, iy = 2 * y - 1 + ky, ix = 2 * x - 1 + kx;
          if (!in.inside(iz, iy, ix)) return;
          any = any || in.active[in.cell(iz, iy, ix)];
          strided.add(in, iz, iy, ix, tap);
        });
        if (!any) continue;
        ASSERT_LT(row, few);
        ASSERT_EQ(coarse_cells[static_cast<std::size_t>(row)], kernels::cell_of(z, y, x));
        const float* const found = &half_rows[static_cast<std::size_t>(row * kOut)];
        strided.compare(found);
        for (std::size_t c = 0; c < kOut; ++c) {
          middle.values[middle.cell(z, y, x) * kOut + c] = static_cast<double>(found[c]);
        }
        ++row;
      }
    }
  }
  EXPECT_EQ(row, few);

  // The inverse is the transposed convolution, read at the cells that were there.
  Comparison inverse(w3, kOut, 5);
  const auto back_rows = values_of<float>(out[7]);
  for (std::int32_t i = 0; i < fine; ++i) {
    const std::int64_t cell = fine_cells[static_cast<std::size_t>(i)];
    taps([&](std::int64_t tap, std::int64_t kz, std::int64_t ky, std::int64_t kx) {
      const std::int64_t z = kernels::z_of(cell) + 1 - kz, y = kernels::y_of(cell) + 1 - ky,
                         x = kernels::x_of(cell) + 1 - kx;
      if (z % 2 == 0 && y % 2 == 0 && x % 2 == 0 && middle.inside(z / 2, y / 2, x / 2)) {
        inverse.add(middle, z / 2, y / 2, x / 2, tap);
      }
    });
    inverse.compare(&back_rows[static_cast<std::size_t>(i) * 5]);
  }
}

TEST(SparseConvolution, EqualsADenseOneOnKitti) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/cuda_pointpillars_kitti");
  compare_with_dense(read_cloud(folder + "/000008.bin"), 4, -6.4F, -2);
}
TEST(SparseConvolution, EqualsADenseOneOnPandaset) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  compare_with_dense(read_pandaset(folder, 20), -6.4F, 2, -2);
}
TEST(SparseConvolution, EqualsADenseOneOnViewOfDelft) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft/lidar");
  std::vector<std::string> clouds;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".bin") clouds.push_back(entry.path().string());
  }
  std::sort(clouds.begin(), clouds.end());
  ASSERT_FALSE(clouds.empty());
  compare_with_dense(read_cloud(clouds.front()), 4, -6.4F, -2);
}

// The density that the figures of tools/bench are for.
TEST(Voxels, PandasetIsAsDenseAsItWasMeasured) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const std::vector<float> points = read_pandaset(folder, 20);
  const Counts fine = count(points, {-54, -54, -5, 54, 54, 3, 0.075, 0.075, 0.2});
  EXPECT_EQ(fine.kept, 93877);
  // Whole centimetres lie on the borders of bins: which side is a matter of the last bit.
  EXPECT_NEAR(fine.voxels, 57350, 25);
  EXPECT_NEAR(count(points, {-54, -54, -5, 54, 54, 3, 0.1, 0.1, 0.2}).voxels, 48423, 25);
  EXPECT_NEAR(count(points, {-76.8, -76.8, -4, 76.8, 76.8, 6, 0.32, 0.32, 10}).voxels, 9296, 25);
}

}  // namespace
}  // namespace takt::compiler
