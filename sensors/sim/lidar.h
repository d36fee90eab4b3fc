// The simulated spinning LiDAR: one ray per ring and column, each at its own instant, from where the sensor is then.
// Points are in the sensor frame at their own instant: not motion-compensated.
#pragma once

#include <cstdint>
#include <vector>

#include "sensors/logs/log_messages.h"
#include "sensors/rig/rig.h"
#include "sensors/sim/world.h"

namespace takt::sensors::sim {

struct Sweep {
  std::vector<log::LidarPoint> points;      // column by column, within a column by ring
  std::vector<std::uint32_t> actor_points;  // returns from each actor of the scene
  std::uint32_t dropped = 0;                // left out because of the sensor's capacity
};

// Sweep number `index`, turning clockwise from the rear during [start, start + sensor.duration] (s from the scene's
// start). Times of points count from the stamp at `stamp_offset` after the sweep's start. Intensity 0..255.
// Coordinates are rounded to 1/512 m, below the noise, so that the cloud compresses.
void simulate_sweep(const World& world, const RigSensor& sensor, std::uint64_t index, double start,
                    Duration stamp_offset, Sweep* out);

}  // namespace takt::sensors::sim
