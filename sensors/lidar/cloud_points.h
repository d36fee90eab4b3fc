// Moves whole points between places of structure-of-arrays clouds.
#pragma once

#include <cstdint>

#include "sensors/messages/messages.h"

namespace takt::sensors {

inline void copy_point(const PointCloud& from, std::uint32_t source, PointCloud& to, std::uint32_t target) {
  to.x()[target] = from.x()[source];
  to.y()[target] = from.y()[source];
  to.z()[target] = from.z()[source];
  to.intensity()[target] = from.intensity()[source];
  to.time_ns()[target] = from.time_ns()[source];
  to.ring()[target] = from.ring()[source];
}

}  // namespace takt::sensors
