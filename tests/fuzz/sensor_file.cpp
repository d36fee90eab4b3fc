// Any bytes as a file of a data set or a packet of a sensor: the first byte chooses the parser.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/ars548.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/kitti_text.h"
#include "sensors/logs/nuscenes.h"
#include "sensors/logs/pcd.h"
#include "sensors/logs/velodyne.h"

using namespace takt::sensors;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void velodyne(std::span<const std::byte> bytes) {
  std::string reason;
  const auto packet = VelodynePacket::parse(bytes, reason);
  if (!packet) return require(!reason.empty());
  std::vector<takt::sensors::log::LidarPoint> points;
  packet->points(0, kVelodyneBlocks, {}, points);
  require(points.size() <= 384);
  for (const auto& p : points) require(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z) && p.ring < 32);
}

void pcd(std::string_view text) {
  const auto cloud = parse_pcd(text, "fuzz.pcd");
  if (!cloud) return;
  require(cloud->points <= cloud->announced && cloud->data.size() == cloud->points * cloud->stride);
  for (const PcdField& field : cloud->fields) {
    if (cloud->points > 0) (void)cloud->value(cloud->points - 1, field);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ReportProblem report = [&](std::string kind, std::uint64_t offset, std::string) {
    require(!kind.empty() && offset <= text.size());
  };
  switch (data[0] % 8) {
    case 0: velodyne(bytes); break;
    case 1:
      if (const auto list = parse_ars548_detections(bytes)) (void)ars548_radar_message(*list, {0}, "radar");
      break;
    case 2:
      if (const auto list = parse_ars548_objects(bytes)) (void)ars548_scene_message(*list, {0}, "vehicle");
      break;
    case 3: pcd(text); break;
    case 4: {
      std::uint64_t filtered = 0;
      (void)nuscenes_radar_message(text, "fuzz.pcd", {0}, "radar", filtered);
      break;
    }
    case 5:
      for (const auto& label : kitti::parse_labels(text, "labels", text.size() % 2 == 0, report)) {
        if (label.has_box()) (void)kitti::box_pose(label, Transform{});
      }
      break;
    case 6:
      (void)kitti::parse_timestamps(text, "stamps", report);
      (void)kitti::calibration_of(kitti::parse_values(text));
      if (const auto packet = kitti::parse_oxts(text)) (void)kitti::OxtsPoses(*packet).world_from_imu(*packet);
      break;
    case 7: (void)picture_size(text); break;
  }
  return 0;
}
