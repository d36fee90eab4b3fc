// A network of the kind of PointPillars (Lang et al. 2019) with a centre head (Yin et al. 2021), from the payload of a
// sweep to boxes, as one graph. With random weights: what it says means nothing, what it costs does.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

// Where the graph looks, what it keeps, how large its layers are.
struct PillarNetwork {
  std::uint64_t seed = 1;          // of the weights
  std::int64_t payload_bytes = 0;  // of a chunk; takt.Cloud needs at least its arrays
  std::int64_t points = 1;         // capacity of a sweep
  std::int64_t poses = 16;         // capacity of the list that deskews it
  std::int64_t sweeps = 1;         // remembered ones; 0: none, and no state
  std::array<double, 12> vehicle_from_sensor{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};  // rows of [R|t]
  std::array<float, 6> range{-51.2F, -51.2F, -3, 51.2F, 51.2F, 5};                 // m, vehicle frame: least, most
  std::array<float, 6> ego{-1.5F, -1.1F, -1, 4.2F, 1.1F, 3};                       // the vehicle itself
  std::array<float, 2> pillar{0.32F, 0.32F};                                       // m
  std::int64_t pillars = 20000, points_per_pillar = 20;
  std::vector<std::int64_t> channels{32, 32, 64};  // of the blocks: each halves the map
  std::vector<std::int64_t> convs{1, 2, 2};        // of each block behind the one that halves
  std::int64_t neck = 16;                          // channels of each block where they meet, and of the head
  std::int64_t classes = 3, boxes = 200;
  float score = 0.1F;
  std::vector<float> nms_m{2, 0.5F, 1};  // by class: nearer centres are one object
};

// Inputs, by name: cloud u8[payload_bytes]; poses f64[poses][8] counted by poses_count; with sweeps stamp i64[1] and
// pose f64[7] (kernels/points.h). State, with sweeps: past, past_poses, past_sweeps. Outputs: boxes, scores, classes
// and their count; then what the operators count: raw_count, held, seen_count, rejected; with sweeps all_count,
// forgotten and points_dropped, without crop_dropped; pillars, members_count, pillar_points_dropped, best_count,
// boxes_dropped. kInput, in words, for sizes that do not fit each other.
Result<ir::Graph> pillar_network(const PillarNetwork& net);

}  // namespace takt::compiler
