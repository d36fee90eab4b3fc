// What one message says about the sensor that sent it, whatever the format of the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/log_messages.h"
#include "sensors/logs/log_reader.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// Everything the messages of one channel told so far.
struct Evidence {
  std::optional<SensorKind> kind;                     // nullopt: no sensor
  int preference = 0;                                 // among several topics of one kind, where only one is wanted
  std::string frame_id;                               // of the data; of the vehicle for ego motion
  std::string world_frame;                            // ego motion
  std::uint32_t width = 0, height = 0;                // camera, pixels
  std::uint64_t largest = 0;                          // points or returns of the largest message
  float intensity_max = 0;                            // LiDAR, as stored
  std::int64_t time_min_ns = 0, time_max_ns = 0;      // LiDAR: point times from the stamp
  std::optional<log::CameraCalibration> calibration;  // views are empty; the frame is frame_id
  std::vector<log::FrameTransform> transforms;        // the first of every child frame
  std::string problem;                                // the first message that could not be decoded, in words
  int probed = 0;                                     // messages whose points were looked at
};

// Adds what `bytes` says. Points of at most `limit` messages are looked at, and counted in all of them.
void probe(const LogChannel& channel, std::span<const std::byte> bytes, int limit, Evidence& evidence);

// Width and height of a JPEG or PNG from its headers; nullopt when it is neither.
std::optional<std::pair<std::uint32_t, std::uint32_t>> picture_size(std::span<const std::byte> picture);

}  // namespace takt::sensors
