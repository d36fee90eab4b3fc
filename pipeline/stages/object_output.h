// How a detection stage reads its sample and writes its ObjectList: one place for checks, stamps and payload size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "pipeline/stages/stage.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {

// Which inputs of a detection stage carry the sample it detects in, and (optionally) the motion of the vehicle.
struct DetectionInputs {
  std::size_t sample = 0;
  std::optional<std::size_t> ego;
};

// Finds the one input from a sensor of `kind` and the optional ego input. kConfiguration: none, two, or one from
// something else, with the names of the stage and the input.
Result<DetectionInputs> find_inputs(const StageSpec& spec, sensors::SensorKind kind);

// The payload of a latched input; nullptr when it is missing or its header promises less than its layout needs.
// The counts inside are the sender's: callers clamp them to the capacity.
const sensors::PointCloud* cloud_of(const StageInput& input);
const sensors::RadarScan* scan_of(const StageInput& input);
const sensors::Image* image_of(const StageInput& input);
const sensors::EgoMotion* ego_of(const StageInput& input);  // also nullptr when its velocities are not finite

// What the list says about its sample.
struct ListFacts {
  std::uint32_t input_points = 0;
  std::uint32_t invalid_points = 0;
  std::uint32_t dropped = 0;  // before the capacity of the list itself
};

// Total order of detections: higher score first, then nearer, then by position and extent. No two different
// detections are equal, so the order of the input cannot show.
bool better(const Object& a, const Object& b);

// Writes the best kMaxObjects of `objects` (sorted here) and the header of the output: schema, capture stamp and
// sources from the sample and, when `ego` is given, from that input. payload_bytes covers the used objects only.
// A missing sample gives an empty list without stamps.
void write_objects(StageJob& job, std::span<Object> objects, const ListFacts& facts,
                   std::span<const StageConnection> connections, std::size_t sample, std::optional<std::size_t> ego);

}  // namespace takt::pipeline
