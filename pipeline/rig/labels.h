// Do labelled boxes hold the LiDAR's points? The quickest way to see axes, yaw or size of another convention: read as
// they are meant, boxes hold two to three times the points of any other reading.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "pipeline/rig/pictures.h"
#include "sensors/logs/log_messages.h"

namespace takt::pipeline {

// Ways to read a box. The first is as takt does: x ahead, y to the left, yaw counter-clockwise from x, place = centre,
// size = length (along x of the box), width, height.
inline constexpr std::array<const char*, 11> kBoxReadings{
    "as they are",
    "x and y swapped",
    "y to the right",
    "x to the rear",
    "turned by 90 degrees to the left",
    "turned by 90 degrees to the right",
    "turned round",
    "x and y swapped and both turned round",
    "yaw clockwise",
    "length and width swapped",
    "place = bottom",
};

// How many of the points (vehicle frame) lie in some box, by reading.
std::array<std::size_t, kBoxReadings.size()> points_in_boxes(std::span<const VehiclePoint> points,
                                                             std::span<const sensors::log::TruthBox> boxes);

}  // namespace takt::pipeline
