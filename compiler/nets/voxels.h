// A network of the kind of SECOND (Yan et al. 2018) with a centre head (CenterPoint's voxel form, Yin et al. 2021),
// from the points of a sweep to boxes, as one graph. With random weights: what it says means nothing, what it costs
// does.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

// Where the graph looks, what it keeps, how large its layers are.
struct VoxelNetwork {
  std::uint64_t seed = 1;                               // of the weights
  std::int64_t points = 1, columns = 5;                 // capacity of a sweep; x y z and what follows
  std::array<float, 6> range{-54, -54, -5, 54, 54, 3};  // m, least and most
  std::array<float, 3> voxel{0.075F, 0.075F, 0.2F};     // m
  std::int64_t points_per_voxel = 10;
  std::vector<std::int64_t> capacities{90000, 90000, 60000, 30000};  // cells of each resolution
  std::vector<std::int64_t> channels{16, 32, 64, 128};               // of each resolution; each halves the one before
  std::int64_t blocks = 2;                                           // residual ones of each resolution
  std::int64_t flat_cells = 20000;                                   // where the height is halved once more
  std::vector<std::int64_t> map_channels{128, 256};                  // 2-D blocks behind; each but the first halves
  std::vector<std::int64_t> map_convs{3, 3};                         // of each block
  std::int64_t neck = 64;  // channels of each block where they meet, and of the head
  std::int64_t classes = 3, boxes = 200;
  float score = 0.1F;
  std::vector<float> nms_m{2, 0.5F, 1};  // by class: nearer centres are one object
};

// Input, by name: points f32[points][columns] counted by points_count. Outputs: boxes, scores, classes and their count;
// then what the operators count: voxels, kept, points_dropped, for each further resolution levelN_count and
// levelN_dropped, flat_count, flat_dropped, best_count, boxes_dropped. kInput, in words, for sizes that do not fit each
// other.
Result<ir::Graph> voxel_network(const VoxelNetwork& net);

}  // namespace takt::compiler
