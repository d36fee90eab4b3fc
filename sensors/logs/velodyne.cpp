#include "sensors/logs/velodyne.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/reference/elementary.h"

namespace takt::sensors {
namespace {

constexpr std::size_t kBlockBytes = 100, kTail = 1200;
constexpr std::uint32_t kTurn = 36000;
constexpr double kDegree = kernels::kPi / 180;

// The next `T` at an offset, little-endian.
template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Laser {
  double cos_elevation = 1, sin_elevation = 0;
  std::uint32_t azimuth = 0;  // 0.01 degrees, added to the block's
  std::uint16_t ring = 0;     // from below
  double time_us = 0;         // from the start of its block
};
struct ModelTable {
  double metres = 0.002;  // per unit of distance
  double block_us = 0;    // one block of firings
  std::array<Laser, 32> lasers;
};

void set_rings(ModelTable& table, const double* elevations, std::size_t lasers) {
  for (std::size_t i = 0; i < 32; ++i) {
    const double own = elevations[i % lasers];
    Laser& laser = table.lasers[i];
    laser.cos_elevation = kernels::cos(own * kDegree);
    laser.sin_elevation = kernels::sin(own * kDegree);
    laser.ring =
        static_cast<std::uint16_t>(std::count_if(elevations, elevations + lasers, [&](double e) { return e < own; }));
  }
}

// VLP-16: a block holds two firings of all 16 lasers, 2.304 us apart, a firing every 55.296 us.
ModelTable vlp16(double scale) {
  double elevations[16];
  for (int i = 0; i < 16; ++i) elevations[i] = (i % 2 == 0 ? i - 15 : i) * scale;
  ModelTable table;
  table.block_us = 2 * 55.296;
  set_rings(table, elevations, 16);
  for (std::size_t i = 0; i < 32; ++i) {
    table.lasers[i].time_us = static_cast<double>(i / 16) * 55.296 + static_cast<double>(i % 16) * 2.304;
  }
  return table;
}

// VLP-32C: a block holds one firing of 32 lasers, two at a time.
ModelTable vlp32c() {
  static constexpr double kElevations[32] = {-25,    -1,    -1.667, -15.639, -11.31, 0,     -0.667, -8.843,
                                             -7.254, 0.333, -0.333, -6.148,  -5.333, 1.333, 0.667,  -4,
                                             -4.667, 1.667, 1,      -3.667,  -3.333, 3.333, 2.333,  -2.667,
                                             -3,     7,     4.667,  -2.333,  -2,     15,    10.333, -1.333};
  static constexpr int kOffsets[32] = {14, -42, 14, -14, 14, -14, 42, -14, 14, -42, 14, -14, 42, -14, 42, -14,
                                       14, -42, 14, -42, 42, -14, 14, -14, 14, -14, 14, -42, 42, -14, 14, -14};
  ModelTable table;
  table.metres = 0.004;
  table.block_us = 55.296;
  set_rings(table, kElevations, 32);
  for (std::size_t i = 0; i < 32; ++i) {
    table.lasers[i].azimuth = static_cast<std::uint32_t>(static_cast<int>(kTurn) + kOffsets[i] * 10) % kTurn;
    table.lasers[i].time_us = static_cast<double>(i / 2) * 2.304;
  }
  return table;
}

const ModelTable& table_of(VelodyneModel model) {
  static const ModelTable kTables[3] = {vlp16(1), vlp16(2.0 / 3), vlp32c()};
  return kTables[static_cast<std::size_t>(model)];
}

struct Heading {
  double cosine = 1, sine = 0;
};
const std::vector<Heading>& headings() {
  static const std::vector<Heading> kAll = [] {
    std::vector<Heading> all(kTurn);
    for (std::uint32_t i = 0; i < kTurn; ++i)
      all[i] = {kernels::cos(i * 0.01 * kDegree), kernels::sin(i * 0.01 * kDegree)};
    return all;
  }();
  return kAll;
}

}  // namespace

std::optional<VelodynePacket> VelodynePacket::parse(std::span<const std::byte> bytes, std::string& reason) {
  if (bytes.size() != kVelodyneBytes) {
    reason = std::to_string(bytes.size()) + " bytes instead of 1206";
    return std::nullopt;
  }
  for (std::size_t block = 0; block < kVelodyneBlocks; ++block) {
    if (load<std::uint16_t>(bytes, block * kBlockBytes) != 0xeeff) {
      reason = "block " + std::to_string(block) + " does not begin with FF EE";
      return std::nullopt;
    }
  }
  VelodynePacket packet;
  packet.bytes_ = bytes;
  packet.hour_us_ = load<std::uint32_t>(bytes, kTail);
  const auto mode = load<std::uint8_t>(bytes, kTail + 4), product = load<std::uint8_t>(bytes, kTail + 5);
  switch (product) {
    case 0x22: packet.model_ = VelodyneModel::kVlp16; break;
    case 0x24: packet.model_ = VelodyneModel::kVlp16HiRes; break;
    case 0x28: packet.model_ = VelodyneModel::kVlp32c; break;
    default:
      reason = "product " + std::to_string(product) +
               " is not supported; known: 34 (VLP-16), 36 (Puck Hi-Res), 40 (VLP-32C)";
      return std::nullopt;
  }
  if (mode != 0x37 && mode != 0x38 && mode != 0x39) {
    reason = "return mode " + std::to_string(mode) + " is not supported; known: 55 strongest, 56 last, 57 dual";
    return std::nullopt;
  }
  packet.dual_ = mode == 0x39;
  return packet;
}

std::uint32_t VelodynePacket::azimuth(std::size_t block) const {
  return load<std::uint16_t>(bytes_, block * kBlockBytes + 2) % kTurn;
}

Duration VelodynePacket::block_time(std::size_t block) const {
  const double firings = static_cast<double>(dual_ ? block / 2 : block);
  return {static_cast<std::int64_t>(firings * table_of(model_).block_us * 1000 + 0.5)};
}

std::uint32_t VelodynePacket::turn(std::size_t block) const {
  const std::size_t step = dual_ ? 2 : 1;
  // The last block has no next one in its packet: the head turns evenly. A jump (a limited field of view) is no turn.
  constexpr std::uint32_t kMost = 150;
  for (std::size_t from = std::min(block, kVelodyneBlocks - 2 * step + (dual_ ? block % 2 : 0));; from -= step) {
    const std::uint32_t gap = (azimuth(from + step) + kTurn - azimuth(from)) % kTurn;
    if (gap <= kMost) return gap;
    if (from < step) return 0;
  }
}

void VelodynePacket::points(std::size_t first, std::size_t end, Duration start,
                            std::vector<log::LidarPoint>& out) const {
  const ModelTable& table = table_of(model_);
  const std::vector<Heading>& turns = headings();
  for (std::size_t block = first; block < std::min(end, kVelodyneBlocks); ++block) {
    const bool second = dual_ && block % 2 == 1;
    const double gap = turn(block);
    const double block_ns = static_cast<double>(start.ns + block_time(block).ns);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t at = block * kBlockBytes + 4 + i * 3;
      const auto distance = load<std::uint16_t>(bytes_, at);
      if (distance == 0) continue;  // no return
      if (second && distance == load<std::uint16_t>(bytes_, at - kBlockBytes)) continue;
      const Laser& laser = table.lasers[i];
      const double azimuth_steps = azimuth(block) + gap * laser.time_us / table.block_us + laser.azimuth;
      const Heading& heading = turns[static_cast<std::uint32_t>(azimuth_steps + 0.5) % kTurn];
      const double metres = distance * table.metres, flat = metres * laser.cos_elevation;
      log::LidarPoint& p = out.emplace_back();
      p.x = static_cast<float>(flat * heading.cosine);
      p.y = static_cast<float>(-flat * heading.sine);
      p.z = static_cast<float>(metres * laser.sin_elevation);
      p.intensity = load<std::uint8_t>(bytes_, at + 2);
      const double ns = block_ns + laser.time_us * 1000;
      p.time_ns = static_cast<std::int32_t>(std::clamp(std::floor(ns + 0.5), -2147483648.0, 2147483647.0));
      p.ring = laser.ring;
    }
  }
}

std::int64_t velodyne_elapsed(std::uint32_t from_us, std::uint32_t to_us, Duration host) {
  const std::int64_t by_clock = std::int64_t{to_us} - std::int64_t{from_us};
  const double hours = static_cast<double>(host.ns / 1000 - by_clock) / static_cast<double>(kVelodyneHour);
  return by_clock + static_cast<std::int64_t>(std::floor(hours + 0.5)) * kVelodyneHour;
}

}  // namespace takt::sensors
