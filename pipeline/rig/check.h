// Does the rig fit the log? Answers that need no labels: the ground as each LiDAR sees it, which way the world moves
// past the sensors, stamps side by side, intensity, hits on the own vehicle, and pictures for the eye. Where the log
// has labels: whether their boxes hold the points.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/rig/pictures.h"
#include "runtime/base/status.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

enum class CheckState { kOk, kWrong, kNotChecked };
const char* word_of(CheckState state);  // "ok", "WRONG", "NOT CHECKED"

struct CheckLine {
  std::string sensor;  // or "a / b" for a pair
  std::string
      check;  // "ground", "forward axis", "stamp skew", "intensity", "own vehicle", "points in boxes", "in image"
  CheckState state = CheckState::kNotChecked;
  std::string text;                                     // for people: figures, and what to do when it is wrong
  std::vector<std::pair<std::string, double>> figures;  // for programs: tilt_deg, height_m, ...
};

struct RigCheck {
  std::vector<CheckLine> lines;
  std::vector<std::string> pictures;  // file names in the folder
  [[nodiscard]] bool wrong() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] const CheckLine* find(const std::string& sensor, const std::string& check) const;
};

// What is still right. Wider than what good rigs reach, narrower than what spoils detection.
struct CheckLimits {
  double ground_tilt_deg = 2;
  double ground_height_m = 0.3;
  double forward_deg = 4;
  double own_vehicle_share = 0.02;
  double label_ratio = 1.3;        // points in boxes, read in another way over as they are
  std::size_t label_points = 200;  // fewer say nothing
};

struct CheckOptions {
  std::string log_path;
  std::string folder;  // for pictures; "" = none are drawn
  VehicleBox box;
  CheckLimits limits;
  std::size_t sweeps = 8;  // of each LiDAR, spread over the log; motion takes two after each as well
};

// Reads the log twice. kInput: unreadable, or none of the rig's topics in it. kEnvironment: pictures cannot be written.
Result<RigCheck> check_rig(const sensors::Rig& rig, const CheckOptions& options);

}  // namespace takt::pipeline
