// The velocity of a radar over ground from the Doppler of static returns.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "sensors/messages/messages.h"

namespace takt::pipeline {

// Sensor frame, x y, m/s. A static return in direction n recedes at -n . v; v by least squares, reweighted so that
// moving objects lose their say (D. Kellner et al., "Instantaneous ego-motion estimation using Doppler radar", ITSC
// 2013, there by RANSAC). nullopt: fewer than 6 returns, too narrow a sector, or no majority that agrees within 0.5
// m/s.
std::optional<std::array<double, 2>> sensor_velocity(std::span<const sensors::RadarReturn> returns);

}  // namespace takt::pipeline
