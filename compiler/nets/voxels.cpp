#include "compiler/nets/voxels.h"

#include <algorithm>
#include <string>

#include "compiler/nets/net.h"

namespace takt::compiler {
namespace {

using ir::DType;
using Value = Net::Value;
using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

// The cells of one resolution, their features, and the map that all its submanifold layers share.
struct Level {
  Value cells = ir::kNoValue, rows = ir::kNoValue, map = ir::kNoValue;
  Integers grid;  // z y x
  std::vector<Value> counters;
};

Value submanifold_map(Net& net, const Level& level, const std::string& name) {
  return net.call("takt.SparseMap", {level.cells, level.cells}, name + ".map",
                  {{"kernel", Integers{3, 3, 3}}, {"padding", Integers{1, 1, 1}}});
}

// About a third of a kernel meets a cell on a surface.
Value sparse_conv(Net& net, Value x, Value map, std::int64_t channels, const std::string& name) {
  const std::int64_t in = net.shape(x).dims[1], taps = net.shape(map).dims[1];
  const Value w = net.weights(name + ".weight", {taps, in, channels}, std::max<std::int64_t>(in * taps / 6, 1));
  const Value b = net.weights(name + ".bias", {channels}, 300);
  return net.call("takt.SparseConv", {x, w, map, b}, name + ".sum");
}

Value residual_block(Net& net, Value x, Value map, const std::string& name) {
  const std::int64_t channels = net.shape(x).dims[1];
  const Value first = net.call("Relu", {sparse_conv(net, x, map, channels, name + ".0")}, name + ".0");
  const Value second = sparse_conv(net, first, map, channels, name + ".1");
  return net.call("Relu", {net.call("Add", {second, x}, name + ".1")}, name);
}

Level strided(Net& net, const Level& from, const Integers& kernel, const Integers& stride, const Integers& padding,
              std::int64_t capacity, std::int64_t channels, const std::string& name) {
  const Net::Attributes window = {{"kernel", kernel}, {"stride", stride}, {"padding", padding}};
  Net::Attributes all = window;
  all["grid"] = from.grid;
  all["capacity"] = capacity;
  Level to;
  const auto cells =
      net.node("takt.SparseCells", {from.cells}, {name + ".cells", name + "_count", name + "_dropped"}, all);
  to.cells = cells[0];
  to.counters = {cells[1], cells[2]};
  for (std::size_t d = 0; d < 3; ++d) to.grid.push_back((from.grid[d] + 2 * padding[d] - kernel[d]) / stride[d] + 1);
  const Value down = net.call("takt.SparseMap", {from.cells, to.cells}, name + ".down", window);
  to.rows = net.call("Relu", {sparse_conv(net, from.rows, down, channels, name + ".in")}, name + ".in");
  return to;
}

}  // namespace

Result<ir::Graph> voxel_network(const VoxelNetwork& n) {
  if (n.channels.empty() || n.channels.size() != n.capacities.size() || n.map_channels.empty() ||
      n.map_channels.size() != n.map_convs.size()) {
    return fail(Code::kInput, "a voxel network names the channels of " + std::to_string(n.channels.size()) + " and " +
                                  std::to_string(n.map_channels.size()) + " levels, and sizes of " +
                                  std::to_string(n.capacities.size()) + " and " + std::to_string(n.map_convs.size()));
  }
  Net net("voxels", n.seed);
  const Value points = net.counted_input("points", DType::kF32, {n.points, n.columns});

  // Voxels and their means.
  const Floats range(n.range.begin(), n.range.end()), size(n.voxel.begin(), n.voxel.end());
  const auto voxels =
      net.node("takt.Voxelise", {points}, {"cells", "ends", "members", "voxels", "kept", "points_dropped"},
               {{"range", range},
                {"size", size},
                {"capacity", n.capacities[0]},
                {"points", n.points_per_voxel},
                {"keep", std::string("near")}});
  Level level;
  level.cells = voxels[0];
  level.rows = net.call("takt.VoxelMean", {points, voxels[1], voxels[2]}, "mean");
  for (const std::size_t d : {2U, 1U, 0U}) {
    level.grid.push_back(Net::cells(n.range[d], n.range[d + 3], n.voxel[d]));
  }
  std::vector<Value> counters = {voxels[3], voxels[4], voxels[5]};

  // Resolutions of residual blocks, each half as fine as the one before.
  for (std::size_t l = 0; l < n.channels.size(); ++l) {
    const std::string name = "level" + std::to_string(l);
    if (l > 0) {
      level = strided(net, level, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, n.capacities[l], n.channels[l], name);
      counters.insert(counters.end(), level.counters.begin(), level.counters.end());
    }
    level.map = submanifold_map(net, level, name);
    if (l == 0) {
      const Value x = sparse_conv(net, level.rows, level.map, n.channels[0], "in");
      level.rows = net.call("Relu", {x}, "in");
    }
    for (std::int64_t b = 0; b < n.blocks; ++b) {
      level.rows = residual_block(net, level.rows, level.map, name + "." + std::to_string(b));
    }
  }
  level = strided(net, level, {3, 1, 1}, {2, 1, 1}, {0, 0, 0}, n.flat_cells, n.channels.back(), "flat");
  counters.insert(counters.end(), level.counters.begin(), level.counters.end());

  // Seen from above: the heights of a column are channels.
  Value x = net.call("takt.ScatterBev", {level.rows, level.cells}, "map", {{"grid", level.grid}});
  std::vector<Value> levels;
  for (std::size_t b = 0; b < n.map_channels.size(); ++b) {
    const std::string name = "block" + std::to_string(b);
    x = net.conv(x, n.map_channels[b], 3, b == 0 ? 1 : 2, true, name + ".0");
    for (std::int64_t i = 0; i < n.map_convs[b]; ++i) {
      x = net.conv(x, n.map_channels[b], 3, 1, true, name + "." + std::to_string(i + 1));
    }
    levels.push_back(net.upsampled(x, n.neck, std::int64_t{1} << b, "up" + std::to_string(b)));
  }
  const Value joined = net.call("Concat", levels, "joined", {{"axis", std::int64_t{1}}});
  const Value head = net.conv(joined, n.neck, 3, 1, true, "head");

  const auto scale = static_cast<float>(std::int64_t{1} << (n.channels.size() - 1));
  const auto best = net.node("takt.TopKDecode", net.centre_head(head, n.classes),
                             {"best_boxes", "best_scores", "best_classes", "best_cells", "boxes_dropped", "best_count"},
                             {{"capacity", n.boxes},
                              {"score", n.score},
                              {"origin", Floats{n.range[0], n.range[1]}},
                              {"cell", Floats{scale * n.voxel[0], scale * n.voxel[1]}}});
  const auto kept = net.node("takt.CircleNms", {best[0], best[1], best[2]},
                             {"boxes", "scores", "classes", "index", "count"}, {{"limit", Floats(n.nms_m)}});

  for (const Value v : {kept[0], kept[1], kept[2], kept[4]}) net.output(v);
  for (const Value v : counters) net.output(v);
  for (const Value v : {best[5], best[4]}) net.output(v);
  return net.finish();
}

}  // namespace takt::compiler
