// Data packets of rotating Velodyne LiDARs: 1206 bytes of payload, 12 blocks of 32 measurements (VLP-16 and VLP-32C
// user manuals, 63-9243 and 63-9325, "Data packet format"). Read: VLP-16, Puck Hi-Res, VLP-32C; single and dual return.
//
// Points: x forward (the sensor's +y), y left, z up; azimuth turns clockwise seen from above. Azimuths between blocks
// are interpolated by the firing times and rounded to 0.01 degrees, the resolution in which the sensor reports.
// In dual mode a measurement whose two returns are equal counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/log_messages.h"

namespace takt::sensors {

inline constexpr std::size_t kVelodyneBytes = 1206;
inline constexpr std::size_t kVelodyneBlocks = 12;
inline constexpr std::int64_t kVelodyneHour = 3'600'000'000;  // us

enum class VelodyneModel { kVlp16, kVlp16HiRes, kVlp32c };

class VelodynePacket {
 public:
  // nullopt: not 1206 bytes, a block without its flag, or an unknown product (the reason says which).
  static std::optional<VelodynePacket> parse(std::span<const std::byte> bytes, std::string& reason);

  [[nodiscard]] VelodyneModel model() const { return model_; }
  [[nodiscard]] bool dual() const { return dual_; }
  [[nodiscard]] std::uint32_t hour_us() const { return hour_us_; }  // of the first firing, since the top of the hour
  [[nodiscard]] std::uint32_t azimuth(std::size_t block) const;     // 0.01 degrees, 0 .. 35999
  // Times of firings from the first one of the packet.
  [[nodiscard]] Duration block_time(std::size_t block) const;
  // Points of the blocks [first, end), times from `start` (of the packet's first firing). In dual mode first and end
  // are even.
  void points(std::size_t first, std::size_t end, Duration start, std::vector<log::LidarPoint>& out) const;

 private:
  [[nodiscard]] std::uint32_t turn(std::size_t block) const;  // azimuth steps from this block to the next
  std::span<const std::byte> bytes_;
  VelodyneModel model_ = VelodyneModel::kVlp16;
  bool dual_ = false;
  std::uint32_t hour_us_ = 0;
};

// Microseconds from one packet to a later one by their clocks, which start again every hour; `host` is the time that
// passed by another clock and chooses the hour.
std::int64_t velodyne_elapsed(std::uint32_t from_us, std::uint32_t to_us, Duration host);

}  // namespace takt::sensors
