// Writes the corpus of fuzz_plan: make_plan_corpus FOLDER. Small plans for every target of x86-64 and one for a GPU in
// f16, with views, parts of concats, in-place steps, branches, counted tensors and states, and most kernels.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "compiler/nets/pillars.h"
#include "kernels/points.h"
#include "pipeline/models/fusion_graph.h"
#include "tests/compiler/lower/random_net.h"

namespace {

void save(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

using takt::ir::Graph;
using takt::ir::ValueId;

ValueId add(Graph& graph, const char* op, std::vector<ValueId> inputs,
            std::map<std::string, takt::ir::Attribute> attributes) {
  takt::ir::Node node;
  node.op = op;
  node.name = op + std::to_string(graph.nodes.size());
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  const ValueId out = graph.add_value(node.name + ".y");
  node.outputs = {out};
  const takt::Status added = takt::ir::append(graph, std::move(node));
  if (!added) std::fprintf(stderr, "%s\n", added.error().message.c_str());
  return out;
}

ValueId pointwise(Graph& graph, ValueId x, std::int64_t out) {
  const std::int64_t in = graph[x].type->shape.dims[1];
  std::vector<float> weights;
  for (std::int64_t i = 0; i < out * in; ++i) weights.push_back(static_cast<float>(i % 7) * 0.25F - 0.5F);
  return add(graph, "Conv", {x, graph.add_constant("w", takt::ir::Constant::of(weights, {4, {out, in, 1, 1}}))}, {});
}

// Concats with holes and a shuffle, read through lists of channels.
Graph shuffle() {
  Graph graph;
  graph.name = "shuffle";
  takt::ir::Type type;
  type.shape = {4, {1, 5, 3, 4}};
  const ValueId x = graph.add_value("x", type);
  graph.inputs = {x};
  const auto axis = std::map<std::string, takt::ir::Attribute>{{"axis", std::int64_t{1}}};
  const ValueId first = add(graph, "Concat", {pointwise(graph, x, 20), pointwise(graph, x, 19)}, axis);
  std::vector<std::int64_t> even, odd;
  for (std::int64_t c = 0; c < 39; ++c) (c % 2 == 0 ? even : odd).push_back(c);
  const ValueId kept = add(graph, "takt.ChannelGather", {first}, {{"channels", even}});
  const ValueId worked = pointwise(graph, add(graph, "takt.ChannelGather", {first}, {{"channels", odd}}), 9);
  graph.outputs = {pointwise(graph, add(graph, "Concat", {kept, worked}, axis), 3)};
  return graph;
}

bool save_plans(const Graph& graph, const std::string& path, bool optimise) {
  for (const auto target : {takt::kernels::Target::kAvx2, takt::kernels::Target::kAvx512}) {
    takt::compiler::Options options;
    options.target = target;
    options.optimise = optimise;
    const auto bytes = takt::compiler::compile(graph, {}, options);
    if (!bytes) {
      std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
      return false;
    }
    if (bytes->size() <= 24'000) save(path + "_" + (takt::kernels::name_of(target) + 4), *bytes);
  }
  return true;
}

// Blocked tensors and weights of half the size.
bool save_f16(const Graph& graph, const std::string& path) {
  takt::compiler::Options options;
  options.target = takt::kernels::Target::kCudaSm87;
  options.precision = takt::kernels::DType::kF16;
  const auto bytes = takt::compiler::compile(graph, {}, options);
  if (!bytes) std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
  if (bytes) save(path + "_sm_87_f16", *bytes);
  return bytes.has_value();
}

// Rows of x where mask holds, their positive part, the sum of it, and the two best.
takt::ir::Graph counted() {
  using namespace takt::ir;
  Graph graph;
  graph.name = "counted";
  graph.inputs = {graph.add_value("x", Type{DType::kF32, {2, {6, 2}}}),
                  graph.add_value("mask", Type{DType::kBool, {1, {6}}})};
  const auto add = [&](const char* op, std::vector<ValueId> inputs, std::map<std::string, Attribute> attributes = {}) {
    Node node;
    node.op = node.name = op;
    node.inputs = std::move(inputs);
    node.outputs = {graph.add_value(op)};
    node.attributes = std::move(attributes);
    const ValueId out = node.outputs[0];
    if (!append(graph, std::move(node))) std::abort();
    return out;
  };
  const ValueId at = add("Transpose", {add("NonZero", {graph.inputs[1]})}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  const ValueId rows = add("Relu", {add("GatherND", {graph.inputs[0], at})});
  const ValueId sums =
      add("ReduceSum", {rows}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{0}}});
  const ValueId best = add("TopK", {sums}, {{"axis", std::int64_t{0}}, {"k", std::int64_t{2}}});
  graph.outputs = {rows, best, graph[rows].type->count, graph[best].type->count};
  return graph;
}

// A cloud through every operator on voxels.
takt::ir::Graph voxels() {
  using namespace takt::ir;
  Graph graph;
  graph.name = "voxels";
  const ValueId points = graph.add_value("points", Type{DType::kI32, {}});
  const ValueId cloud = graph.add_value("cloud", Type{DType::kF32, {2, {12, 3}}, points});
  graph.inputs = {points, cloud};
  const auto add = [&](const char* op, std::vector<ValueId> inputs, std::map<std::string, Attribute> attributes = {}) {
    Node node;
    node.op = op;
    node.name = op + std::to_string(graph.nodes.size());
    node.inputs = std::move(inputs);
    node.outputs = {graph.add_value(node.name)};
    node.attributes = std::move(attributes);
    if (!append(graph, std::move(node))) std::abort();
    return graph.nodes.back().outputs;
  };
  const auto weights = [&](std::int64_t taps, std::int64_t in, std::int64_t out) {
    const Shape shape{3, {taps, in, out}};
    return graph.add_constant("w",
                              Constant::of(std::vector<float>(static_cast<std::size_t>(taps * in * out), 0.5F), shape));
  };
  using Integers = std::vector<std::int64_t>;
  const std::map<std::string, Attribute> window = {
      {"kernel", Integers{1, 2, 3}}, {"stride", Integers{1, 2, 2}}, {"padding", Integers{0, 0, 1}}};
  std::map<std::string, Attribute> strided = window;
  strided["grid"] = Integers{2, 4, 4};
  strided["capacity"] = std::int64_t{5};
  const auto cells = add("takt.Voxelise", {cloud},
                         {{"range", std::vector<float>{0, 0, 0, 2, 2, 1}},
                          {"size", std::vector<float>{0.5F, 0.5F, 0.5F}},
                          {"capacity", std::int64_t{7}},
                          {"points", std::int64_t{2}},
                          {"keep", std::string("near")}});
  const ValueId mean = add("takt.VoxelMean", {cloud, cells[1], cells[2]})[0];
  const auto coarse = add("takt.SparseCells", {cells[0]}, strided);
  const ValueId down = add("takt.SparseMap", {cells[0], coarse[0]}, window)[0];
  const ValueId half = add("takt.SparseConv", {mean, weights(6, 3, 5), down}, {{"activation", std::string("relu")}})[0];
  const ValueId up = add("takt.InverseMap", {down, cells[0]})[0];
  const ValueId back = add("takt.SparseConv", {half, weights(6, 5, 3), up, kNoValue, mean})[0];
  const ValueId map = add("takt.ScatterBev", {back, cells[0]}, {{"grid", Integers{2, 4, 4}}})[0];
  graph.outputs = {map, cells[5], coarse[2]};
  return graph;
}

// Pillars of a cloud, and what a payload, its poses and two remembered sweeps become on the way to boxes.
takt::compiler::PillarNetwork sweep() {
  takt::compiler::PillarNetwork n;
  n.points = 8;
  n.payload_bytes = takt::kernels::cloud_bytes(n.points);
  n.poses = 2;
  n.sweeps = 2;
  n.range = {-1, -1, -1, 1, 1, 1};
  n.ego = {-0.1F, -0.1F, -1, 0.1F, 0.1F, 1};
  n.pillar = {0.5F, 0.5F};
  n.pillars = 5;
  n.points_per_pillar = 2;
  n.channels = {2};
  n.convs = {0};
  n.neck = 2;
  n.classes = 2;
  n.boxes = 3;
  n.nms_m = {0.5F, 1};
  return n;
}

// Features of pillars, and boxes through both suppressions by overlap.
takt::ir::Graph boxes() {
  using namespace takt::ir;
  Graph graph;
  graph.name = "boxes";
  const auto input = [&](const char* name, DType dtype, Shape shape, ValueId count = kNoValue) {
    graph.inputs.push_back(graph.add_value(name, Type{dtype, shape, count}));
    return graph.inputs.back();
  };
  const auto add = [&](const char* op, std::vector<ValueId> inputs, std::map<std::string, Attribute> attributes) {
    Node node;
    node.op = node.name = op;
    node.inputs = std::move(inputs);
    node.outputs = {graph.add_value(op)};
    node.attributes = std::move(attributes);
    if (!append(graph, std::move(node))) std::abort();
    return graph.nodes.back().outputs;
  };
  const ValueId many = input("many", DType::kI32, {}), pillars = input("pillars", DType::kI32, {});
  const ValueId points = input("points", DType::kF32, {2, {9, 5}}, many);
  const ValueId cells = input("cells", DType::kI64, {1, {4}}, pillars),
                ends = input("ends", DType::kI32, {1, {4}}, pillars);
  const ValueId members = input("members", DType::kI32, {1, {9}});
  const ValueId rows = input("rows", DType::kI32, {});
  const ValueId list = input("list", DType::kF32, {2, {6, 9}}, rows),
                scores = input("scores", DType::kF32, {1, {6}}, rows);
  const ValueId classes = input("classes", DType::kI32, {1, {6}}, rows);
  const auto features = add("takt.PillarFeatures", {points, cells, ends, members},
                            {{"range", std::vector<float>{-1, -1, -1, 1, 1, 1}},
                             {"size", std::vector<float>{0.5F, 0.5F, 2}},
                             {"points", std::int64_t{2}}});
  const std::map<std::string, Attribute> limit{{"limit", std::vector<float>{0.2F}}};
  const auto first = add("takt.RotatedNms", {list, scores, classes}, limit);
  const auto second = add("takt.AxisAlignedNms", {first[0], first[1], first[2]}, limit);
  graph.outputs = {features[0], second[0], second[3], second[4]};
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_plan_corpus FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/plan";
  std::filesystem::create_directories(folder);
  for (const std::uint32_t seed : {2, 5, 7, 12, 19, 31}) {
    takt::test::RandomNet net(seed);
    for (int i = 0; i < 5; ++i) net.grow();
    if (!save_plans(net.finish(), folder + "/" + std::to_string(seed), seed % 2 == 0)) return 1;
  }
  if (!save_plans(shuffle(), folder + "/shuffle", false)) return 1;
  if (!save_f16(shuffle(), folder + "/shuffle")) return 1;
  takt::test::RandomNet branches(1004);
  for (int i = 0; i < 2; ++i) branches.branch(2, 1);
  if (!save_plans(branches.finish(), folder + "/branches", false)) return 1;
  if (!save_plans(counted(), folder + "/counted", false)) return 1;
  if (!save_plans(voxels(), folder + "/voxels", false)) return 1;
  const auto pillars = takt::compiler::pillar_network(sweep());
  if (!pillars || !save_plans(*pillars, folder + "/pillars", true)) return 1;
  if (!save_plans(boxes(), folder + "/boxes", false)) return 1;
  const takt::kernels::ListSource lidar;
  const auto fusion = takt::pipeline::fusion_graph({}, {&lidar, 1}, 2);
  if (!fusion || !save_plans(*fusion, folder + "/fusion", false)) return 1;
  return 0;
}
