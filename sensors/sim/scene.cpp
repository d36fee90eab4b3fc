#include "sensors/sim/scene.h"

#include <filesystem>

#include "kernels/reference/elementary.h"
#include "runtime/base/yaml.h"
#include "sensors/sim/random.h"

namespace takt::sensors::sim {
namespace {

constexpr double kDegree = kernels::kPi / 180.0;
// Purposes of random streams while a scene is laid out.
enum Purpose : std::uint64_t { kBuildingRow = 101, kTreeRow = 102 };

Vec3 read_colour(const YamlNode& node) {
  const std::vector<double> rgb = node.numbers(3, 0, 1);
  return rgb.size() == 3 ? Vec3{rgb[0], rgb[1], rgb[2]} : Vec3{0.5, 0.5, 0.5};
}

Road read_road(const YamlNode& node) {
  std::vector<RoadSegment> segments;
  for (const YamlNode& item : node.at("segments").items()) {
    RoadSegment segment;
    segment.length = item.at("length_m").number(1, 10000);
    if (auto radius = item.find("radius_m")) {
      const double r = radius->number(-1e5, 1e5);
      if (r > -20 && r < 20) {
        radius->error("a road does not turn with a radius below 20 m (positive = left, negative = right)");
      } else {
        segment.curvature = 1.0 / r;
      }
    }
    segments.push_back(segment);
  }
  if (segments.empty()) node.error("a road needs at least one segment");
  Road road(segments);
  road.lane_width = node.at("lane_width_m").number(2, 6);
  road.parking_width = node.at("parking_width_m").number(0, 6);
  road.pavement_width = node.at("pavement_width_m").number(0.5, 20);
  if (auto crossings = node.find("crossings_m")) {
    for (const YamlNode& item : crossings->items()) road.crossings.push_back(item.number(-500, 10000));
  }
  return road;
}

Actor read_vehicle(const YamlNode& node) {
  Actor actor;
  const std::string type = node.at("type").one_of({"car", "van", "truck"});
  actor.kind = type == "truck" ? ActorKind::kTruck : (type == "van" ? ActorKind::kVan : ActorKind::kCar);
  const Vec3 usual =
      type == "truck" ? Vec3{8.0, 2.5, 3.4} : (type == "van" ? Vec3{5.3, 2.0, 2.2} : Vec3{4.5, 1.82, 1.48});
  auto dimension = [&](const char* key, double fallback, double min, double max) {
    const auto found = node.find(key);
    return found ? found->number(min, max) : fallback;
  };
  actor.length = dimension("length_m", usual.x, 2.5, 20);
  actor.width = dimension("width_m", usual.y, 1.2, 3);
  actor.height = dimension("height_m", usual.z, 1.2, 4.5);
  actor.colour = read_colour(node.at("colour"));
  actor.station = node.at("station_m").number(-500, 10000);
  actor.offset = node.at("offset_m").number(-100, 100);
  if (auto heading = node.find("heading_deg")) actor.heading = heading->number(-180, 180) * kDegree;
  if (auto speed = node.find("speed_mps")) actor.speed = speed->number(0, 60);
  if (auto acceleration = node.find("acceleration_mps2")) actor.acceleration = acceleration->number(-9, 5);
  if (auto across = node.find("across_speed_mps")) actor.across_speed = across->number(-5, 5);
  return actor;
}

Actor read_pedestrian(const YamlNode& node) {
  Actor actor;
  actor.kind = ActorKind::kPedestrian;
  actor.length = 0.6;
  actor.width = 0.6;
  actor.height = 1.75;
  if (auto height = node.find("height_m")) actor.height = height->number(0.8, 2.2);
  actor.colour = read_colour(node.at("colour"));
  actor.station = node.at("station_m").number(-500, 10000);
  actor.offset = node.at("offset_m").number(-100, 100);
  double along = 0;
  double across = 0;
  if (auto speed = node.find("along_speed_mps")) along = speed->number(-5, 5);
  if (auto speed = node.find("across_speed_mps")) across = speed->number(-5, 5);
  // People look where they walk; along keeps its sign through the heading.
  actor.heading = along < 0 ? kernels::kPi : 0;
  actor.speed = along < 0 ? -along : along;
  actor.across_speed = across;
  return actor;
}

// "left", "right" or "both" as the signs of offsets.
std::vector<double> read_sides(const YamlNode& node) {
  const std::string side = node.at("side").one_of({"left", "right", "both"});
  if (side == "left") return {1.0};
  if (side == "right") return {-1.0};
  return {1.0, -1.0};
}

void read_building_row(const YamlNode& node, std::uint64_t row, Scene* scene) {
  const double from = node.at("from_m").number(-500, 10000);
  const double to = node.at("to_m").number(-500, 10000);
  const double gap = node.at("gap_m").number(0, 50);
  const std::vector<double> length = node.at("length_m").numbers(2, 3, 200);
  const std::vector<double> height = node.at("height_m").numbers(2, 3, 200);
  const double depth = node.at("depth_m").number(2, 100);
  const double setback = node.at("setback_m").number(0, 100);
  if (length.size() != 2 || height.size() != 2) return;
  for (const double side : read_sides(node)) {
    Random random(scene->seed, kBuildingRow, row * 2 + (side > 0 ? 1 : 0));
    for (double s = from; s < to;) {
      Building building;
      building.length = random.uniform(length[0], length[1]);
      building.height = random.uniform(height[0], height[1]);
      building.depth = depth;
      building.look = random.next();
      building.station = s + building.length / 2;
      building.offset = side * (scene->road.pavement_edge() + setback + random.uniform(0, 0.8) + depth / 2);
      scene->buildings.push_back(building);
      s += building.length + gap;
    }
  }
}

void read_tree_row(const YamlNode& node, std::uint64_t row, Scene* scene) {
  const double from = node.at("from_m").number(-500, 10000);
  const double to = node.at("to_m").number(-500, 10000);
  const double spacing = node.at("spacing_m").number(2, 500);
  const double offset = node.at("behind_kerb_m").number(0, 50);
  const std::vector<double> height = node.at("height_m").numbers(2, 2, 30);
  if (height.size() != 2) return;
  for (const double side : read_sides(node)) {
    Random random(scene->seed, kTreeRow, row * 2 + (side > 0 ? 1 : 0));
    for (double s = from; s < to; s += spacing) {
      Plant plant;
      plant.station = s + random.uniform(-0.15, 0.15) * spacing;
      plant.offset = side * (scene->road.edge() + offset);
      plant.height = random.uniform(height[0], height[1]);
      plant.crown_radius = plant.height * random.uniform(0.24, 0.32);
      plant.look = random.next();
      scene->plants.push_back(plant);
    }
  }
}

void read_lamp_row(const YamlNode& node, Scene* scene) {
  const double from = node.at("from_m").number(-500, 10000);
  const double to = node.at("to_m").number(-500, 10000);
  const double spacing = node.at("spacing_m").number(2, 500);
  const double offset = node.at("behind_kerb_m").number(0, 50);
  const double height = node.at("height_m").number(2, 15);
  for (const double side : read_sides(node)) {
    for (double s = from; s < to; s += spacing) {
      scene->lamps.push_back({s, side * (scene->road.edge() + offset), height});
    }
  }
}

void read_sensors(const YamlNode& node, Scene* scene) {
  const YamlNode lidar = node.at("lidar");
  for (const YamlNode& item : lidar.at("elevations_deg").items()) {
    scene->lidar.elevations.push_back(item.number(-60, 60) * kDegree);
  }
  if (scene->lidar.elevations.empty() || scene->lidar.elevations.size() > 256) {
    lidar.error("elevations_deg needs 1 to 256 rings");
  }
  scene->lidar.columns = static_cast<std::uint32_t>(lidar.at("columns").integer(8, 10000));
  scene->lidar.maximum_range = lidar.at("maximum_range_m").number(5, 500);
  scene->lidar.range_noise = lidar.at("range_noise_m").number(0, 1);
  scene->lidar.dropout = lidar.at("dropout").number(0, 1);
  const YamlNode radar = node.at("radar");
  scene->radar.field_of_view = radar.at("half_field_of_view_deg").number(5, 90) * kDegree;
  scene->radar.maximum_range = radar.at("maximum_range_m").number(5, 500);
  scene->radar.range_noise = radar.at("range_noise_m").number(0, 5);
  scene->radar.azimuth_noise = radar.at("azimuth_noise_deg").number(0, 10) * kDegree;
  scene->radar.speed_noise = radar.at("speed_noise_mps").number(0, 5);
  scene->radar.clutter = radar.at("clutter_per_scan").number(0, 100);
  const YamlNode camera = node.at("camera");
  scene->camera.jpeg_quality = static_cast<int>(camera.at("jpeg_quality").integer(10, 100));
  scene->camera.noise = camera.at("noise_levels").number(0, 30);
  scene->camera.exposure = camera.at("exposure").number(0.01, 100);
  scene->truth_period = node.at("truth").at("period_ms").milliseconds(1, 1000);
}

Result<Scene> read_scene(YamlDocument document, const std::string& file) {
  const YamlNode root = document.root();
  Scene scene;
  scene.file = file;
  scene.name = root.at("name").text();
  const std::filesystem::path rig = root.at("rig").text();
  scene.rig_file =
      (rig.is_absolute() ? rig : std::filesystem::path(file).parent_path() / rig).lexically_normal().string();
  scene.seed = static_cast<std::uint64_t>(root.at("seed").integer(0, 1'000'000'000));
  scene.start = SensorTime{seconds(root.at("start_s").integer(1, 4'000'000'000)).ns};
  scene.duration = root.at("duration_ms").milliseconds(100, 3'600'000);
  const YamlNode sun = root.at("sun");
  scene.sun_elevation = sun.at("elevation_deg").number(5, 90) * kDegree;
  scene.sun_azimuth = sun.at("azimuth_deg").number(-360, 360) * kDegree;
  scene.road = read_road(root.at("road"));
  const YamlNode ego = root.at("ego");
  scene.ego_station = ego.at("station_m").number(-500, 10000);
  scene.ego_offset = ego.at("offset_m").number(-50, 50);
  scene.ego_speed = ego.at("speed_mps").number(0, 60);
  if (auto acceleration = ego.find("acceleration_mps2")) scene.ego_acceleration = acceleration->number(-9, 5);
  if (auto list = root.find("vehicles")) {
    for (const YamlNode& item : list->items()) scene.actors.push_back(read_vehicle(item));
  }
  if (auto list = root.find("pedestrians")) {
    for (const YamlNode& item : list->items()) scene.actors.push_back(read_pedestrian(item));
  }
  for (std::size_t i = 0; i < scene.actors.size(); ++i) scene.actors[i].id = static_cast<std::uint32_t>(i + 1);
  std::uint64_t row = 0;
  if (auto list = root.find("building_rows")) {
    for (const YamlNode& item : list->items()) read_building_row(item, row++, &scene);
  }
  if (auto list = root.find("tree_rows")) {
    for (const YamlNode& item : list->items()) read_tree_row(item, row++, &scene);
  }
  if (auto list = root.find("lamp_rows")) {
    for (const YamlNode& item : list->items()) read_lamp_row(item, &scene);
  }
  read_sensors(root.at("sensors"), &scene);
  TAKT_RETURN_IF_ERROR(document.finish());
  return scene;
}

}  // namespace

Result<Scene> load_scene(const std::string& path) {
  TAKT_ASSIGN(YamlDocument document, YamlDocument::load(path));
  return read_scene(std::move(document), path);
}

Result<Scene> parse_scene(const std::string& text, const std::string& name) {
  TAKT_ASSIGN(YamlDocument document, YamlDocument::parse(text, name));
  return read_scene(std::move(document), name);
}

}  // namespace takt::sensors::sim
