// Any bytes as a ROS message: the first byte chooses serialisation and type. A message is decoded or refused with a
// reason; views lie inside the bytes.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "sensors/logs/point_fields.h"
#include "sensors/logs/ros_messages.h"

using namespace takt::sensors;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto encoding = data[0] & 0x80 ? ros::Encoding::kRos1 : ros::Encoding::kCdr;
  static log::RadarScan scan;
  static log::RadarTracks tracks;
  (void)ros::header_stamp(encoding, bytes);
  switch (data[0] % 10) {
    case 0: {
      const auto m = ros::decode_image(encoding, bytes);
      require(!m || inside(m->data, bytes));
      break;
    }
    case 1: {
      const auto m = ros::decode_compressed_image(encoding, bytes);
      require(!m || inside(m->data, bytes));
      break;
    }
    case 2: {
      const auto m = ros::decode_point_cloud(encoding, bytes);
      if (!m) break;
      require(inside(m->data, bytes));
      PointLayout layout(*m);
      const PointField x = layout.find({"x"}, true);
      double sum = 0;
      if (layout.reason().empty()) {
        for (std::size_t i = 0; i < layout.points(); ++i) sum += x.at(layout.point(i));
      }
      static volatile double sink;
      sink = sum;  // the points are really looked at
      (void)sink;
      break;
    }
    case 3: (void)ros::decode_camera_info(encoding, bytes); break;
    case 4: (void)ros::decode_imu(encoding, bytes); break;
    case 5: (void)ros::decode_odometry(encoding, bytes); break;
    case 6: (void)ros::decode_nav_sat_fix(encoding, bytes); break;
    case 7: (void)ros::decode_transforms(encoding, bytes); break;
    case 8:
      if (ros::decode_radar_scan(encoding, bytes, scan)) require(scan.returns.size() * 20 <= bytes.size());
      break;
    case 9:
      if (ros::decode_radar_tracks(encoding, bytes, tracks)) require(tracks.tracks.size() * 210 <= bytes.size());
      break;
  }
  return 0;
}
