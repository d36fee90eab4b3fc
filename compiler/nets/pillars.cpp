#include "compiler/nets/pillars.h"

#include <cstring>
#include <string>

#include "compiler/nets/net.h"

namespace takt::compiler {
namespace {

using ir::DType;
using Value = Net::Value;
using Floats = std::vector<float>;

ir::Constant f64_constant(const std::array<double, 12>& values) {
  ir::Constant constant = ir::Constant::allocate(DType::kF64, {2, {3, 4}});
  std::memcpy(constant.bytes.data(), values.data(), constant.bytes.size());
  return constant;
}

struct Points {
  Value rows = ir::kNoValue;
  std::vector<Value> counters;
};

// The sweep in the vehicle frame, what is looked at, and what was seen before.
Points points_of(Net& net, const PillarNetwork& n) {
  const Value cloud = net.input("cloud", DType::kU8, {n.payload_bytes});
  const Value poses = net.counted_input("poses", DType::kF64, {n.poses, 8});
  const Value sensor = net.constant("vehicle_from_sensor", f64_constant(n.vehicle_from_sensor));
  const auto raw = net.node("takt.Cloud", {cloud}, {"raw", "raw_count"}, {{"capacity", n.points}});
  const auto straight = net.node("takt.Deskew", {raw[0], poses, sensor}, {"straight", "held"}, {{"extrapolate", 0.1F}});
  const auto cropped =
      net.node("takt.Crop", {straight[0]}, {"seen", "rejected", "crop_dropped", "seen_count"},
               {{"range", Floats(n.range.begin(), n.range.end())}, {"ego", Floats(n.ego.begin(), n.ego.end())}});
  if (n.sweeps == 0) return {cropped[0], {raw[1], straight[1], cropped[3], cropped[1], cropped[2]}};
  const Value stamp = net.input("stamp", DType::kI64, {1});
  const Value pose = net.input("pose", DType::kF64, {7});
  const Value past = net.state("past", DType::kF32, {n.sweeps, n.points, 4});
  const Value past_poses = net.state("past_poses", DType::kF64, {n.sweeps, 7});
  const Value past_sweeps = net.state("past_sweeps", DType::kI64, {n.sweeps, 2});
  const auto all =
      net.node("takt.Sweeps", {cropped[0], stamp, pose, past, past_sweeps, past_poses},
               {"all", "next_past", "next_past_sweeps", "next_past_poses", "forgotten", "points_dropped", "all_count"},
               {{"age_ms", std::int64_t{1000}}, {"gap_ms", std::int64_t{150}}});
  net.next("past", all[1]);
  net.next("past_sweeps", all[2]);
  net.next("past_poses", all[3]);
  return {all[0], {raw[1], straight[1], cropped[3], cropped[1], all[6], all[4], all[5]}};
}

}  // namespace

Result<ir::Graph> pillar_network(const PillarNetwork& n) {
  if (n.channels.empty() || n.channels.size() != n.convs.size()) {
    return fail(Code::kInput, "a pillar network of " + std::to_string(n.channels.size()) +
                                  " blocks names the layers of " + std::to_string(n.convs.size()));
  }
  Net net("pillars", n.seed);
  const Points points = points_of(net, n);

  // Pillars, their features, the map seen from above.
  const Floats range(n.range.begin(), n.range.end());
  const Floats size{n.pillar[0], n.pillar[1], n.range[5] - n.range[2]};
  const auto voxels = net.node("takt.Voxelise", {points.rows},
                               {"cells", "ends", "members", "pillars", "members_count", "pillar_points_dropped"},
                               {{"range", range},
                                {"size", size},
                                {"capacity", n.pillars},
                                {"points", n.points_per_pillar},
                                {"keep", std::string("near")}});
  const std::int64_t features = 5 + 3 + 3;
  constexpr std::int64_t kSpread = 400;  // of coordinates, m^2: activations begin with a variance near 1
  const Value weight = net.weights("encode.weight", {features, n.channels[0]}, features * kSpread);
  const Value bias = net.weights("encode.bias", {n.channels[0]}, 300);
  const Value encoded =
      net.call("takt.PillarEncode", {points.rows, voxels[0], voxels[1], voxels[2], weight, bias}, "encoded",
               {{"range", range},
                {"size", size},
                {"points", n.points_per_pillar},
                {"columns", std::int64_t{5}},
                {"centre", std::int64_t{3}}});
  const auto cells = [&](std::size_t d) { return Net::cells(n.range[d], n.range[d + 3], n.pillar[d]); };
  Value x = net.call("takt.ScatterBev", {encoded, voxels[0]}, "map",
                     {{"grid", std::vector<std::int64_t>{1, cells(1), cells(0)}}});

  // Blocks that halve the map, each brought back to the first one's size.
  std::vector<Value> levels;
  for (std::size_t b = 0; b < n.channels.size(); ++b) {
    const std::string block = "block" + std::to_string(b);
    x = net.conv(x, n.channels[b], 3, 2, true, block + ".0");
    for (std::int64_t i = 0; i < n.convs[b]; ++i) {
      x = net.conv(x, n.channels[b], 3, 1, true, block + "." + std::to_string(i + 1));
    }
    levels.push_back(net.upsampled(x, n.neck, std::int64_t{1} << b, "up" + std::to_string(b)));
  }
  const Value joined = net.call("Concat", levels, "joined", {{"axis", std::int64_t{1}}});
  const Value head = net.conv(joined, n.neck, 3, 1, true, "head");

  const auto best = net.node("takt.TopKDecode", net.centre_head(head, n.classes),
                             {"best_boxes", "best_scores", "best_classes", "best_cells", "boxes_dropped", "best_count"},
                             {{"capacity", n.boxes},
                              {"score", n.score},
                              {"origin", Floats{n.range[0], n.range[1]}},
                              {"cell", Floats{2 * n.pillar[0], 2 * n.pillar[1]}}});
  const auto kept = net.node("takt.CircleNms", {best[0], best[1], best[2]},
                             {"boxes", "scores", "classes", "index", "count"}, {{"limit", Floats(n.nms_m)}});

  for (const Value v : {kept[0], kept[1], kept[2], kept[4]}) net.output(v);
  for (const Value v : points.counters) net.output(v);
  for (const Value v : {voxels[3], voxels[4], voxels[5], best[5], best[4]}) net.output(v);
  return net.finish();
}

}  // namespace takt::compiler
