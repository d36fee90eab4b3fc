// Synthetic captures and packets in the exact layouts of the formats.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace takt::test {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string big(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = size; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}
inline std::string big_float(float value) { return big(std::bit_cast<std::uint32_t>(value), 4); }

// One Velodyne packet. Every measurement has distance `units` (+ the laser's number) and intensity 10.
struct VelodyneBytes {
  std::uint32_t azimuth = 0;  // of the first block, 0.01 degrees
  std::uint32_t step = 40;    // per firing block (per pair in dual mode)
  std::uint32_t hour_us = 0;
  std::uint8_t mode = 0x37, product = 0x22;
  std::uint16_t units = 1000;
  bool second_differs = false;  // dual: odd blocks see another distance
};
inline std::string velodyne_packet(const VelodyneBytes& b) {
  std::string out;
  for (std::uint32_t block = 0; block < 12; ++block) {
    const bool dual = b.mode == 0x39;
    const std::uint32_t turn = (b.azimuth + b.step * (dual ? block / 2 : block)) % 36000;
    out += little<std::uint16_t>(0xeeff) + little(static_cast<std::uint16_t>(turn));
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t other = dual && block % 2 == 1 && b.second_differs ? 500 : 0;
      out += little(static_cast<std::uint16_t>(b.units + i % 16 + other)) + '\x0a';
    }
  }
  return out + little(b.hour_us) + static_cast<char>(b.mode) + static_cast<char>(b.product);
}

// IPv4 + UDP around a payload; `fragment` cuts the IP payload into pieces of that many bytes (a multiple of 8; 0 =
// whole).
inline std::vector<std::string> ip_packets(const std::string& payload, std::uint16_t port, std::size_t fragment = 0,
                                           std::uint16_t id = 1) {
  const std::string udp = big(port, 2) + big(port, 2) + big(payload.size() + 8, 2) + big(0, 2) + payload;
  std::vector<std::string> all;
  for (std::size_t at = 0; at < udp.size();) {
    const std::size_t size = fragment == 0 ? udp.size() : std::min(fragment, udp.size() - at);
    const bool more = at + size < udp.size();
    all.push_back(big(0x4500, 2) + big(20 + size, 2) + big(id, 2) + big((more ? 0x2000U : 0U) | at / 8, 2) +
                  big(64, 1) + big(17, 1) + big(0, 2) + big(0xc0a801c9, 4) + big(0xffffffff, 4) + udp.substr(at, size));
    at += size;
  }
  return all;
}

// A capture on Ethernet.
class PcapBytes {
 public:
  explicit PcapBytes(bool nano = false, bool swapped = false) : nano_(nano), swapped_(swapped) {
    bytes = u32(nano ? 0xa1b23c4d : 0xa1b2c3d4) +
            (swapped ? big(2, 2) + big(4, 2) : little<std::uint16_t>(2) + little<std::uint16_t>(4)) + u32(0) + u32(0) +
            u32(65535) + u32(1);
  }
  void ip(std::uint64_t us, const std::string& packet, bool vlan = false) {
    const std::string frame = std::string(12, '\x11') + (vlan ? big(0x81000005, 4) : "") + big(0x0800, 2) + packet;
    offsets.push_back(bytes.size());
    bytes += u32(static_cast<std::uint32_t>(us / 1'000'000)) +
             u32(static_cast<std::uint32_t>(us % 1'000'000) * (nano_ ? 1000 : 1)) +
             u32(static_cast<std::uint32_t>(frame.size())) + u32(static_cast<std::uint32_t>(frame.size())) + frame;
  }
  void udp(std::uint64_t us, const std::string& payload, std::uint16_t port, std::size_t fragment = 0) {
    for (const std::string& packet : ip_packets(payload, port, fragment, ++id_)) ip(us, packet);
  }
  std::string bytes;
  std::vector<std::size_t> offsets;  // of the records

 private:
  [[nodiscard]] std::string u32(std::uint32_t value) const { return swapped_ ? big(value, 4) : little(value); }
  bool nano_, swapped_;
  std::uint16_t id_ = 0;
};

// Continental ARS548: two detections (the second one with an invalid range), two objects.
inline std::string ars548_detections(std::uint32_t count = 2) {
  std::string out = big(0, 2) + big(336, 2) + big(35328, 4) + std::string(8, '\0') + std::string(20, '\0') +
                    big(250'000'000, 4) + big(1'700'000'000, 4) + '\x01' + std::string(5, '\0') + std::string(2, '\0');
  for (const float v : {3.8F, 0.F, 0.F, 0.F, 0.6F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F}) out += big_float(v);
  out += '\0';
  for (std::uint32_t i = 0; i < 800; ++i) {
    const bool used = i < 2;
    out += big_float(used ? 0.5F : 0) + big_float(0) + static_cast<char>(i == 1 ? 1 : 0) + big_float(used ? 0.1F : 0) +
           big_float(0) + big_float(used ? 20 : 0) + big_float(0) + big_float(used ? -3 : 0) + big_float(0) +
           static_cast<char>(used ? -10 : 0) + big(i, 2) + std::string(8, '\0');
  }
  return out + big_float(-22) + big_float(22) + big(count, 4) + big_float(0) + big_float(0) + std::string(15, '\0');
}
inline std::string ars548_objects(std::uint8_t count = 2) {
  std::string out = big(0, 2) + big(329, 2) + big(9393, 4) + std::string(8, '\0') + std::string(20, '\0') +
                    big(250'000'000, 4) + big(1'700'000'000, 4) + '\x01' + std::string(5, '\0') +
                    static_cast<char>(count);
  for (std::uint32_t i = 0; i < 50; ++i) {
    std::string o(187, '\0');
    const auto put = [&](std::size_t at, const std::string& v) { o.replace(at, v.size(), v); };
    put(2, big(100 + i, 4));
    o[12] = 5;  // middle of the rear edge
    put(13, big_float(10));
    put(21, big_float(2));
    put(166, big_float(4));
    put(179, big_float(2));
    out += o;
  }
  return out;
}

}  // namespace takt::test
