// Fixed-layout payloads between stages: detections of one sensor and fused tracks. Vehicle frame at `stamp`, metres,
// radians counter-clockwise, box centre, length / width / height.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace takt::pipeline {

enum Schema : std::uint32_t { kObjectListSchema = 0x1001, kTrackListSchema = 0x1002 };

// takt's class taxonomy (docs/model_format.md says what belongs where).
enum class ObjectClass : std::uint32_t { kUnknown = 0, kVehicle = 1, kPedestrian = 2, kCyclist = 3, kOther = 4 };

constexpr const char* name_of(ObjectClass object_class) {
  switch (object_class) {
    case ObjectClass::kVehicle: return "vehicle";
    case ObjectClass::kPedestrian: return "pedestrian";
    case ObjectClass::kCyclist: return "cyclist";
    case ObjectClass::kOther: return "other";
    case ObjectClass::kUnknown: break;
  }
  return "unknown";
}
// Nothing for any other word.
constexpr std::optional<ObjectClass> object_class_of(std::string_view name) {
  for (const ObjectClass c : {ObjectClass::kUnknown, ObjectClass::kVehicle, ObjectClass::kPedestrian,
                              ObjectClass::kCyclist, ObjectClass::kOther}) {
    if (name == name_of(c)) return c;
  }
  return std::nullopt;
}

enum ObjectFlags : std::uint32_t {
  kHasPosition = 1,   // x, y on the ground are meant
  kHasBox = 2,        // extent and yaw are meant
  kHasRangeRate = 4,  // range_rate is meant (ego-compensated, along the ray from the sensor)
  kHasImageBox = 8,   // u0 v0 u1 v1 are meant
};

// One detection of one sensor.
struct Object {
  float x = 0, y = 0, z = 0;  // box centre
  float length = 0, width = 0, height = 0;
  float yaw = 0;
  float score = 0;                       // 0..1, not a probability unless the stage says so
  float range_rate = 0;                  // m/s, compensated for ego motion, positive = receding
  float ray_x = 0, ray_y = 0;            // unit ray of the range rate on the ground
  float u0 = 0, v0 = 0, u1 = 0, v1 = 0;  // image box in pixels
  float position_variance = 0;           // m^2, per axis
  ObjectClass object_class = ObjectClass::kUnknown;
  std::uint32_t flags = 0;
  std::uint32_t points = 0;  // LiDAR points or radar returns behind it
  std::uint32_t reserved = 0;
};

inline constexpr std::uint32_t kMaxObjects = 256;

struct ObjectList {
  std::uint32_t count = 0;
  std::uint32_t dropped = 0;         // left out because of the capacity
  std::uint32_t sensor = 0;          // index of the sensor in the rig
  std::uint32_t input_points = 0;    // points or pixels that went in (after repair)
  std::uint32_t invalid_points = 0;  // NaN or infinite, left out
  std::uint32_t reserved = 0;
  std::int64_t stamp_ns = 0;  // capture stamp of the sample (SensorTime)
  Object objects[kMaxObjects];
};
// Bytes up to the last object that counts.
inline std::size_t used_bytes(const ObjectList& list) {
  return offsetof(ObjectList, objects) + std::min(list.count, kMaxObjects) * sizeof(Object);
}

struct Track {
  std::uint32_t id = 0;  // unique within a run, never reused
  ObjectClass object_class = ObjectClass::kUnknown;
  float x = 0, y = 0, z = 0;  // box centre, vehicle frame at `stamp`
  float length = 0, width = 0, height = 0;
  float yaw = 0;
  float vx = 0, vy = 0;         // over ground, in the axes of the vehicle frame, m/s
  float position_variance = 0;  // m^2, mean of both axes
  float score = 0;              // existence, 0..1
  std::uint32_t hits = 0;       // updates so far
  std::uint32_t misses = 0;     // consecutive cycles without an update
  std::uint32_t sensors = 0;    // bit i: sensor i of the rig updated it in this cycle
};

inline constexpr std::uint32_t kMaxTracks = 128;

struct TrackList {
  std::uint32_t count = 0;
  std::uint32_t dropped = 0;
  std::uint32_t missing_inputs = 0;  // bit i: input i was missing in this cycle
  std::uint32_t repeat_inputs = 0;   // bit i: input i had been used before
  std::int64_t stamp_ns = 0;         // the instant that positions refer to (SensorTime)
  Track tracks[kMaxTracks];
};
inline std::size_t used_bytes(const TrackList& list) {
  return offsetof(TrackList, tracks) + std::min(list.count, kMaxTracks) * sizeof(Track);
}

}  // namespace takt::pipeline
