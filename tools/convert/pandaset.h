// Reader of the compact form of a PandaSet sequence: a folder with gzipped clouds ("PSL1"), CSV tables and JPEG files.
// PandaSet: Xiao et al., ITSC 2021, doi 10.1109/ITSC48978.2021.9565009. Frame of a sweep: x right, y forward, z up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/rig/rig.h"

namespace takt::tools {

// One sweep of the Pandar64, structure of arrays, in the order of the file.
struct PandasetSweep {
  SensorTime stamp;
  std::vector<std::int16_t> x_cm, y_cm, z_cm;
  std::vector<std::int32_t> time_ns;  // from the stamp
  std::vector<std::uint8_t> intensity;
  [[nodiscard]] std::size_t size() const { return x_cm.size(); }
};

struct PandasetPose {
  SensorTime stamp;
  sensors::Transform world_from_lidar;
};

// One labelled box at one frame. Position is the centre.
struct PandasetCuboid {
  std::uint32_t frame = 0;
  std::uint32_t track = 0;
  std::string label;
  bool moving = false;
  int sensor = 0;                    // -1 normal; in the overlap of the LiDARs 0 = by the Pandar64, 1 = the PandarGT
  std::array<double, 3> world{};     // m
  std::array<double, 3> position{};  // m, frame of the sweep
  double yaw = 0;                    // rad, counter-clockwise about z of the sweep's frame; 0 = length along +y
  double width = 0, length = 0, height = 0;
  std::uint32_t points = 0;  // Pandar64 points inside, counted before the coordinates were rounded
  // The same object is listed once more under sensor 0.
  [[nodiscard]] bool duplicate() const { return sensor > 0; }
};

struct PandasetCamera {
  double fx = 0, fy = 0, cx = 0, cy = 0;              // pixels
  std::vector<SensorTime> stamps;                     // by frame
  std::vector<sensors::Transform> world_from_camera;  // by frame; x right, y down, z into the picture
};

struct Pandaset {
  std::string folder;
  std::size_t sweeps = 0;               // frames with a cloud and a picture: lidar/NN.psl.gz, NN = 0 .. sweeps - 1
  std::vector<PandasetPose> poses;      // by frame; may go on after the last sweep
  std::vector<PandasetCuboid> cuboids;  // all rows, duplicates included
  PandasetCamera camera;
};

// Everything but clouds and pictures. kInput with file and line.
Result<Pandaset> open_pandaset(const std::string& folder);
// kInput: missing, not gzip, wrong magic, or a size that does not fit the number of points.
Result<PandasetSweep> read_sweep(const Pandaset& set, std::size_t frame);
// The JPEG file as it is.
Result<std::string> read_picture(const Pandaset& set, std::size_t frame);

// Decoding of one uncompressed "PSL1" file, apart from files.
Result<PandasetSweep> decode_sweep(const std::string& bytes, const std::string& name);

}  // namespace takt::tools
