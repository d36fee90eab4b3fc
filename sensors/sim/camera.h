// The simulated camera: a global-shutter picture at one instant by casting one ray per pixel, four more where edges
// meet, with sun, sky, shadows and reflections. Deterministic; meant for tests and demonstrations, not to pass for a
// photograph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sensors/rig/rig.h"
#include "sensors/sim/world.h"

namespace takt::sensors::sim {

class Camera {
 public:
  // `world` outlives the camera. The sensor has a camera model; its distortion is applied.
  Camera(const World& world, const RigSensor& sensor);
  ~Camera();
  Camera(const Camera&) = delete;
  Camera& operator=(const Camera&) = delete;

  // Picture number `index` at time t (s from the scene's start): RGB8, rows of 3 * width bytes without padding. Valid
  // until the next call.
  const std::vector<std::uint8_t>& render(std::uint64_t index, double t);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace takt::sensors::sim
