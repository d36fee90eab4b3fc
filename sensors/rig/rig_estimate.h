// A rig from nothing but a log: channels, calibrations, static transforms and stamps say most of it. What they do not
// say gets a stated default and is listed in RigSensor::assumed, so that nobody mistakes a guess for a measurement.
//
// Kinds: pictures are cameras; clouds with a Doppler field (`range_rate`, `doppler`, `velocity`, ...) and
// radar_msgs/RadarScan are radars, others LiDARs; takt.EgoMotion and nav_msgs/Odometry are ego motion. Rates: least
// squares of the stamps over their frame numbers, gaps left out. Arrival model: smallest and largest (arrival - stamp).
// Extrinsics: product of the transforms between vehicle and sensor frame.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_reader.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

struct EstimateOptions {
  std::string name;           // of the rig; "" = file name of the log
  std::string vehicle_frame;  // "" = that of the ego motion, else base_link, vehicle, ..., else assumed
};

struct EstimatedRig {
  Rig rig;                         // `file` is empty
  std::vector<std::string> notes;  // in words: what was left out, what looks wrong, what to do about it
};

// Reads the whole log once. kInput: unreadable, or no topic that takt can use (the message lists them with types).
Result<EstimatedRig> estimate_rig(const std::string& log_path, const EstimateOptions& options = {});

// The stamps of one topic as a clock: period, regularity, phase. Stamps need not be sorted; equal ones count once.
struct StampFit {
  Duration period;            // 0: fewer than two stamps
  double drift_ppm = 0;       // largest deviation of a step from its whole number of periods
  bool on_grid = false;       // every stamp lies within 1 ns of a grid of `rate_hz`
  double rate_hz = 0;         // a whole number where that is within 500 ppm
  std::uint64_t missing = 0;  // frames
};
StampFit fit_stamps(std::vector<std::int64_t> stamps_ns);

// The rig as a file that load_rig() reads back to the same values; comments say where they come from.
std::string rig_yaml(const Rig& rig, const std::string& heading);

}  // namespace takt::sensors
