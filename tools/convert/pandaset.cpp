#include "tools/convert/pandaset.h"

#include <zlib.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/base/file.h"
#include "tools/convert/csv_table.h"

namespace takt::tools {
namespace {

namespace fs = std::filesystem;

SensorTime from_seconds(double seconds) { return {std::llround(seconds * 1e9)}; }

std::string two_digits(std::size_t frame) {
  char text[24];
  std::snprintf(text, sizeof text, "%02zu", frame);
  return text;
}

Result<nlohmann::json> load_json(const std::string& path) {
  TAKT_ASSIGN(const std::string text, read_file(path));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(Code::kInput, path + ": no valid JSON");
  return json;
}

// A number at a path of keys, NaN when it is not there.
double number_at(const nlohmann::json& json, std::initializer_list<const char*> keys) {
  const nlohmann::json* node = &json;
  for (const char* key : keys) {
    if (!node->is_object() || !node->contains(key)) return std::nan("");
    node = &(*node)[key];
  }
  return node->is_number() ? node->get<double>() : std::nan("");
}

Result<PandasetCamera> read_camera(const std::string& folder) {
  PandasetCamera camera;
  TAKT_ASSIGN(const nlohmann::json intrinsics, load_json(folder + "/intrinsics.json"));
  camera.fx = number_at(intrinsics, {"fx"});
  camera.fy = number_at(intrinsics, {"fy"});
  camera.cx = number_at(intrinsics, {"cx"});
  camera.cy = number_at(intrinsics, {"cy"});
  if (!(camera.fx > 0 && camera.fy > 0 && std::isfinite(camera.cx) && std::isfinite(camera.cy))) {
    return fail(Code::kInput, folder + "/intrinsics.json: needs fx, fy, cx, cy");
  }
  TAKT_ASSIGN(const nlohmann::json stamps, load_json(folder + "/timestamps.json"));
  for (const auto& stamp : stamps) {
    if (!stamp.is_number()) return fail(Code::kInput, folder + "/timestamps.json: needs a list of seconds");
    camera.stamps.push_back(from_seconds(stamp.get<double>()));
  }
  TAKT_ASSIGN(const nlohmann::json poses, load_json(folder + "/poses.json"));
  for (const auto& pose : poses) {
    std::array<double, 7> n{};
    std::size_t i = 0;
    for (const char* key : {"x", "y", "z"}) n[i++] = number_at(pose, {"position", key});
    for (const char* key : {"w", "x", "y", "z"}) n[i++] = number_at(pose, {"heading", key});
    for (const double value : n) {
      if (!std::isfinite(value))
        return fail(Code::kInput, folder + "/poses.json: needs position x y z, heading w x y z");
    }
    camera.world_from_camera.push_back(
        sensors::Transform::from_quaternion({n[3], n[4], n[5], n[6]}, {n[0], n[1], n[2]}));
  }
  return camera;
}

Result<std::vector<PandasetPose>> read_poses(const std::string& path) {
  TAKT_ASSIGN(CsvTable table, CsvTable::load(path));
  std::vector<PandasetPose> poses;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    poses.push_back({from_seconds(table.number(i, "t")),
                     sensors::Transform::from_quaternion(
                         {table.number(i, "qw"), table.number(i, "qx"), table.number(i, "qy"), table.number(i, "qz")},
                         {table.number(i, "x"), table.number(i, "y"), table.number(i, "z")})});
  }
  TAKT_RETURN_IF_ERROR(table.status());
  return poses;
}

Result<std::vector<PandasetCuboid>> read_cuboids(const std::string& path, std::size_t frames) {
  TAKT_ASSIGN(CsvTable table, CsvTable::load(path));
  std::vector<PandasetCuboid> cuboids;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    PandasetCuboid& c = cuboids.emplace_back();
    c.sensor = static_cast<int>(table.number(i, "sensor_id"));
    c.frame = static_cast<std::uint32_t>(table.number(i, "frame"));
    c.track = static_cast<std::uint32_t>(table.number(i, "track"));
    c.label = table.text(i, "label");
    c.moving = table.text(i, "motion") == "Moving";
    c.world = {table.number(i, "xw"), table.number(i, "yw"), table.number(i, "zw")};
    c.position = {table.number(i, "x"), table.number(i, "y"), table.number(i, "z")};
    c.yaw = table.number(i, "yaw");
    c.width = table.number(i, "width");
    c.length = table.number(i, "length");
    c.height = table.number(i, "height");
    const std::string points = table.text(i, "npts_pandar64");  // empty where there is no sweep
    if (!points.empty()) c.points = static_cast<std::uint32_t>(table.number(i, "npts_pandar64"));
    if (c.frame >= frames) {
      return fail(Code::kInput, path + ":" + std::to_string(i + 2) + ": frame " + std::to_string(c.frame) +
                                    " has no pose; there are " + std::to_string(frames));
    }
  }
  TAKT_RETURN_IF_ERROR(table.status());
  return cuboids;
}

Result<std::string> read_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return fail(Code::kInput, path + ": cannot be opened");
  std::string out;
  char block[1 << 16];
  constexpr std::size_t kMost = std::size_t{256} << 20;
  for (;;) {
    const int n = gzread(file.get(), block, sizeof block);
    if (n < 0) return fail(Code::kInput, path + ": damaged gzip data");
    if (n == 0) return out;
    out.append(block, static_cast<std::size_t>(n));
    if (out.size() > kMost) return fail(Code::kInput, path + ": more than 256 MiB of points");
  }
}

// The next n little-endian values (every platform of takt is little-endian).
template <class T>
std::vector<T> take(const char*& at, std::size_t n) {
  std::vector<T> values(n);
  if (n > 0) std::memcpy(values.data(), at, n * sizeof(T));
  at += n * sizeof(T);
  return values;
}

}  // namespace

Result<PandasetSweep> decode_sweep(const std::string& bytes, const std::string& name) {
  constexpr std::size_t kHeader = 28;
  constexpr std::size_t kPerPoint = 10;
  if (bytes.size() < kHeader || bytes.compare(0, 4, "PSL1") != 0) {
    return fail(Code::kInput, name + ": not a PSL1 cloud");
  }
  const char* at = bytes.data() + 4;
  const std::size_t n = take<std::uint32_t>(at, 1)[0];
  const double first = take<double>(at, 1)[0];
  const double stamp = take<double>(at, 1)[0];
  at += 4;
  if ((bytes.size() - kHeader) / kPerPoint != n || (bytes.size() - kHeader) % kPerPoint != 0) {
    return fail(Code::kInput, name + ": the header says " + std::to_string(n) + " points, " +
                                  std::to_string(bytes.size()) + " bytes hold another number");
  }
  if (!(std::fabs(first) < 4e9) || !(std::fabs(stamp - first) < 1)) {
    return fail(Code::kInput, name + ": stamp and time of the first point are more than a second apart");
  }
  PandasetSweep sweep;
  sweep.stamp = from_seconds(stamp);
  const std::int64_t first_ns = from_seconds(first).ns - sweep.stamp.ns;
  sweep.x_cm = take<std::int16_t>(at, n);
  sweep.y_cm = take<std::int16_t>(at, n);
  sweep.z_cm = take<std::int16_t>(at, n);
  for (const std::uint16_t dt : take<std::uint16_t>(at, n)) {
    sweep.time_ns.push_back(static_cast<std::int32_t>(first_ns + std::int64_t{dt} * 10'000));
  }
  sweep.intensity = take<std::uint8_t>(at, n);
  return sweep;
}

Result<Pandaset> open_pandaset(const std::string& folder) {
  Pandaset set;
  set.folder = folder;
  std::error_code error;
  while (fs::exists(folder + "/lidar/" + two_digits(set.sweeps) + ".psl.gz", error)) ++set.sweeps;
  if (set.sweeps == 0) {
    return fail(Code::kInput, folder + ": no lidar/00.psl.gz; give the folder of one sequence in compact form");
  }
  TAKT_ASSIGN(set.poses, read_poses(folder + "/lidar_poses.csv"));
  TAKT_ASSIGN(set.cuboids, read_cuboids(folder + "/cuboids.csv", set.poses.size()));
  TAKT_ASSIGN(set.camera, read_camera(folder + "/camera/front_camera"));
  if (set.poses.size() < set.sweeps || set.camera.stamps.size() < set.sweeps ||
      set.camera.world_from_camera.size() < set.sweeps) {
    return fail(Code::kInput, folder + ": " + std::to_string(set.sweeps) + " sweeps, but fewer poses or pictures");
  }
  return set;
}

Result<PandasetSweep> read_sweep(const Pandaset& set, std::size_t frame) {
  const std::string path = set.folder + "/lidar/" + two_digits(frame) + ".psl.gz";
  TAKT_ASSIGN(const std::string bytes, read_gzip(path));
  return decode_sweep(bytes, path);
}

Result<std::string> read_picture(const Pandaset& set, std::size_t frame) {
  return read_file(set.folder + "/camera/front_camera/" + two_digits(frame) + ".jpg");
}

}  // namespace takt::tools
