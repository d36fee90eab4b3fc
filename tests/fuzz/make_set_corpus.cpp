// Writes the corpus of fuzz_capture and fuzz_sensor_file: make_set_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/sensors/logs/packet_bytes.h"

using namespace takt::test;

namespace {

void save(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_set_corpus FOLDER\n");
    return 2;
  }
  const std::string root = argv[1];
  std::filesystem::create_directories(root + "/capture");
  std::filesystem::create_directories(root + "/sensor_file");
  PcapBytes lidar;
  for (std::uint32_t i = 0; i < 3; ++i) {
    lidar.udp(1'000'000'000 + i * 1327,
              velodyne_packet({.azimuth = 35000 + i * 480, .hour_us = 2'800'000'000U + i * 1327}), 2368);
  }
  save(root + "/capture/velodyne.pcap", lidar.bytes);
  PcapBytes radar(true, true);
  radar.udp(1'700'000'000'000'000, ars548_objects(), 42102, 1480);
  radar.udp(1'700'000'000'100'000, "other", 7502);
  save(root + "/capture/ars548.pcap", radar.bytes);
  PcapBytes small;
  for (std::uint64_t i = 0; i < 6; ++i)
    small.udp(1'000'000 * i, std::string(24, static_cast<char>('a' + i)), 4000, i % 2 * 16);
  save(root + "/capture/small.pcap", small.bytes);

  const auto file = [&](int parser, const char* name, const std::string& bytes) {
    save(root + "/sensor_file/" + name, std::string(1, static_cast<char>(parser)) + bytes);
  };
  file(0, "velodyne", velodyne_packet({.azimuth = 35900}));
  file(0, "velodyne_dual", velodyne_packet({.mode = 0x39, .product = 0x28, .second_differs = true}));
  file(1, "detections", ars548_detections());
  file(2, "objects", ars548_objects());
  file(3, "ascii.pcd",
       "VERSION .7\nFIELDS x n\nSIZE 4 1\nTYPE F U\nCOUNT 1 2\nWIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ascii\n1.5 7 8\n2 9 "
       "1\n");
  const std::string radar_head =
      "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z dyn_prop id rcs vx vy vx_comp vy_comp is_quality_valid ambig_state x_rms "
      "y_rms invalid_state pdh0 vx_rms vy_rms\nSIZE 4 4 4 1 2 4 4 4 4 4 1 1 1 1 1 1 1 1\n"
      "TYPE F F F I I F F F F F I I I I I I I I\nCOUNT 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\nWIDTH 2\nHEIGHT 1\n"
      "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA binary\n";
  file(3, "binary.pcd", radar_head + std::string(86, '\0'));
  file(4, "radar.pcd", radar_head + std::string(86, '\3'));
  file(5, "labels", "Car 0.00 1 2.04 334.85 178.94 624.50 372.04 1.57 1.50 3.68 -1.17 1.65 7.86 1.90\n");
  file(5, "tracks", "0 1 Car 0 0 -1.79 296.7 161.7 455.2 292.3 2.0 1.8 4.4 -4.5 1.8 13.4 -2.1\n");
  file(6, "stamps", "2011-09-26 13:02:25.964389445\n\n2011-09-26 13:02:26.1\n");
  file(6, "calibration", "P2: 700 0 600 45 0 700 180 0 0 0 1 0\nTr_velo_to_cam: 0 -1 0 0 0 0 -1 0 1 0 0 0\n");
  file(6, "oxts", "49.0 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1 0.05 0.1 4 11 5 5 5");
  file(7, "png", std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xda\0\0\x01\x77", 24));
  file(7, "jpeg", std::string("\xff\xd8\xff\xe0\0\x04xx\xff\xc0\0\x11\x08\x04\xc0\x07\x90", 17));
  return 0;
}
