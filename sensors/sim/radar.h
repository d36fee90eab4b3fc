// The simulated radar: reflection points of vehicles, people, poles, trees and walls, each with Doppler relative to
// the moving sensor, and false returns.
#pragma once

#include <cstdint>
#include <vector>

#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"
#include "sensors/sim/world.h"

namespace takt::sensors::sim {

// Scan number `index` at time t (s from the scene's start), in the sensor frame. A vehicle gives several returns: its
// corners, the middles of its sides and its wheels, as far as they face the sensor and nothing stands in between.
// At most sensor.capacity returns, nearest objects of the scene's order first.
void simulate_scan(const World& world, const RigSensor& sensor, std::uint64_t index, double t,
                   std::vector<RadarReturn>* out);

}  // namespace takt::sensors::sim
