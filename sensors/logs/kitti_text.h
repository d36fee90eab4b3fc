// The text files of KITTI and of sets in its layout: calibration, labels, timestamps, OXTS packets.
// Geiger, Lenz, Stiller, Urtasun: "Vision meets Robotics: The KITTI Dataset", IJRR 2013, and the readme files of the
// development kits. A damaged line is reported with its byte offset and left out; reading goes on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/time.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/log_messages.h"
#include "sensors/rig/rig.h"

namespace takt::sensors::kitti {

// "NAME: numbers" (the colon is optional) for every line whose values are all numbers.
using Values = std::map<std::string, std::vector<double>, std::less<>>;
Values parse_values(std::string_view text);

// What a frame's calibration says. Camera frame: x right, y down, z into the picture.
struct Calibration {
  std::array<double, 12> projection{};                    // P2, row-major 3x4, rectified camera 0 -> pixels of camera 2
  Transform camera_from_velodyne;                         // R0 * Tr: rectified camera 0
  std::optional<Transform> velodyne_from_imu;             // absent where the file does not say
  [[nodiscard]] Transform picture_from_velodyne() const;  // the colour camera's own frame
  [[nodiscard]] CameraModel camera(std::array<std::uint32_t, 2> size) const;
};
// nullopt when projection or velodyne transform are not there.
std::optional<Calibration> calibration_of(const Values& values);
// 12 numbers, row-major 3x4.
std::optional<Transform> transform_of(const Values& values, std::string_view name);

// One row of label_2 (object) or label_02 (tracking: with frame and track in front).
struct Label {
  std::uint32_t frame = 0;
  std::int32_t track = -1;
  std::string type;
  double truncation = 0, occlusion = 0, alpha = 0;
  std::array<double, 4> box{};               // u0 v0 u1 v1, pixels
  double height = 0, width = 0, length = 0;  // m
  std::array<double, 3> location{};          // bottom centre, rectified camera frame
  double rotation_y = 0;
  [[nodiscard]] bool has_box() const { return type != "DontCare" && length > 0 && width > 0 && height > 0; }
};
std::vector<Label> parse_labels(std::string_view text, const std::string& name, bool tracking,
                                const ReportProblem& report);

// takt's class of a label: 1 vehicle, 2 pedestrian, 3 cyclist, 4 other. KITTI and View-of-Delft names.
std::uint32_t object_class_of(std::string_view type);

// Pose of the box centre in the LiDAR frame, length along x. KITTI: the box is upright in the camera frame.
log::Pose box_pose(const Label& label, const Transform& camera_from_lidar);
// View-of-Delft: the box is upright in the LiDAR frame, yaw = -(rotation_y + pi/2).
log::Pose upright_box_pose(const Label& label, const Transform& camera_from_lidar);

// timestamps.txt: one "2011-09-26 13:02:25.964389445" per frame, taken as UTC. Line n belongs to frame n; an empty line
// is a frame without a stamp.
std::vector<std::optional<SensorTime>> parse_timestamps(std::string_view text, const std::string& name,
                                                        const ReportProblem& report);

// One OXTS packet: 30 numbers, or 25 without the status fields; the first 23 are used.
struct Oxts {
  double latitude = 0, longitude = 0, altitude = 0;  // degrees, m
  double roll = 0, pitch = 0, yaw = 0;               // rad; yaw 0 = east, counter-clockwise
  std::array<double, 3> velocity{};                  // forward, left, up, m/s
  std::array<double, 3> angular_velocity{};          // about the unit's x, y, z, rad/s
};
std::optional<Oxts> parse_oxts(std::string_view line);

// Pose of the unit in a plane tangent to the earth (Mercator at the latitude of the first packet; x east, y north),
// origin at the first packet.
class OxtsPoses {
 public:
  explicit OxtsPoses(const Oxts& first);
  [[nodiscard]] Transform world_from_imu(const Oxts& packet) const;

 private:
  [[nodiscard]] std::array<double, 3> position(const Oxts& packet) const;
  double scale_ = 1;
  std::array<double, 3> origin_{};
};

}  // namespace takt::sensors::kitti
