#include "pipeline/models/lidar_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "compiler/compile.h"
#include "kernels/boxes.h"
#include "pipeline/models/contract_file.h"
#include "runtime/base/digest.h"
#include "runtime/base/yaml.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {
namespace {

template <std::size_t n>
void read_numbers(const YamlNode& node, double min, double max, std::array<float, n>& out) {
  const std::vector<double> values = node.numbers(n, min, max);
  for (std::size_t i = 0; i < std::min(n, values.size()); ++i) out[i] = static_cast<float>(values[i]);
}

// x y z of the least corner, then of the most.
void read_box(const YamlNode& node, std::array<float, 6>& out) {
  read_numbers(node, -1000, 1000, out);
  if (!(out[0] < out[3] && out[1] < out[4] && out[2] < out[5])) {
    node.error("expected the least x, y, z, then the most: each below its counterpart");
  }
}

void read_network(const YamlNode& node, compiler::PillarNetwork& out) {
  out.seed = static_cast<std::uint64_t>(node.at("seed").integer(0, 0x7fffffff));
  out.sweeps = node.at("sweeps_before").integer(0, 31);
  read_box(node.at("range_m"), out.range);
  read_box(node.at("vehicle_m"), out.ego);
  read_numbers(node.at("pillar_m"), 0.01, 10, out.pillar);
  // Each block halves the map.
  const double least = std::ldexp(1.0, static_cast<int>(out.channels.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    const double pillars = (double{out.range[i + 3]} - double{out.range[i]}) / (double{out.pillar[i]} * least);
    if (std::fabs(pillars - std::round(pillars)) > 1e-4 || pillars < 0.5) {
      node.at("pillar_m")
          .error(fmt::format("{} m of range_m along {} are {:.3f} pillars of {:g} m; expected a multiple of {:g}",
                             out.range[i + 3] - out.range[i], i == 0 ? "x" : "y", pillars * least, out.pillar[i],
                             least));
      break;
    }
  }
  out.pillars = node.at("pillars").integer(1, 1 << 20);
  out.points_per_pillar = node.at("points_per_pillar").integer(1, 1024);
  out.boxes = node.at("boxes").integer(1, kMaxObjects);
  out.score = static_cast<float>(node.at("score_min").number(1e-3, 0.999));
}

Result<LidarModel> read(const YamlDocument& document, const std::string& path, const std::string& model_file) {
  const YamlNode root = document.root();
  LidarModel model;
  ModelContract& contract = model.contract;
  contract.contract_file = path;
  contract.name = root.at("name").text();
  contract.licence = root.at("licence").text();
  if (const auto built = root.find("pillars")) {
    if (root.find("file")) root.at("file").error("a network is built (pillars) or read (file, hash), not both");
    if (!model_file.empty()) built->error("takt builds this network; there is no file that another could replace");
    read_network(*built, model.network);
  } else {
    read_named_file(root, path, model_file, &contract);
  }
  contract.classes = read_classes(root);
  if (contract.classes.size() > kernels::kMaxBoxClasses) {
    root.at("classes").error("at most " + std::to_string(kernels::kMaxBoxClasses) + " classes");
  }
  if (root.find("pillars")) {
    model.network.classes = static_cast<std::int64_t>(contract.classes.size());
    std::vector<float>& radii = model.network.nms_m;
    radii.clear();
    for (const double radius : root.at("nms_m").numbers(contract.classes.size(), 0, 100)) {
      radii.push_back(static_cast<float>(radius));
    }
  }
  TAKT_RETURN_IF_ERROR(document.finish());
  return model;
}

}  // namespace

Result<LidarModel> load_lidar_model(const std::string& path, const std::string& model_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  return read(document, path, model_file);
}

Result<LidarModel> parse_lidar_model(const std::string& text, const std::string& name) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::parse(text, name));
  return read(document, name, "");
}

Result<std::shared_ptr<const plan::Plan>> compile_lidar_model(const LidarModel& model, const sensors::RigSensor& lidar,
                                                              const std::vector<std::uint16_t>& parts,
                                                              kernels::Target target, kernels::DType precision) {
  const ModelContract& contract = model.contract;
  compiler::Options options;
  options.name = contract.name;
  TAKT_ASSIGN(options.contract, digest_file(contract.contract_file));
  options.parts = parts;
  options.target = target;
  options.precision = precision;
  if (!contract.file.empty()) {
    TAKT_ASSIGN(const std::string file, read_model_file(contract));
    auto compiled = compiler::compile_onnx(std::as_bytes(std::span(file.data(), file.size())), options);
    if (!compiled) return fail(std::move(compiled).error().with_context(contract.file));
    return plan::Plan::parse(*compiled);
  }
  compiler::PillarNetwork network = model.network;
  network.points = lidar.capacity;
  network.payload_bytes = static_cast<std::int64_t>(sensors::PointCloud::bytes_for(lidar.capacity));
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      network.vehicle_from_sensor[4 * i + j] = lidar.vehicle_from_sensor.rotation[3 * i + j];
    }
    network.vehicle_from_sensor[4 * i + 3] = lidar.vehicle_from_sensor.translation[i];
  }
  auto graph = compiler::pillar_network(network);
  if (!graph) return fail(std::move(graph).error().with_context(contract.contract_file));
  TAKT_ASSIGN(const std::vector<std::byte> compiled, compiler::compile(*std::move(graph), Digest{}, options));
  return plan::Plan::parse(compiled);
}

}  // namespace takt::pipeline
