// Which sensor's stamps cannot be what the rig says, and by how much: looked at before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/time.h"
#include "sensors/sync/clock_estimate.h"

namespace takt::sensors {

enum class ClockFault {
  kZeroStamp,            // 0 among stamps that are not near 0
  kFarStamp,             // stamp or arrival more than a day from the median
  kWrongUnit,            // counts s, ms or us instead of ns (or the other way round)
  kWrapped,              // falls back by the range of a counter
  kJump,                 // steps while the arrivals do not
  kCaptureAfterArrival,  // captured after the recorder had it
  kOtherClock,           // lies far before its arrivals throughout
  kNoOverlap,            // recorded at another time than the other sensors
};
const char* name_of(ClockFault fault);

// The stamps of one sensor in the order of the log, arrivals as recorded (before any release rule).
struct SensorStamps {
  std::string sensor;
  Duration period;
  Duration delay_max;         // stamp -> arrival at most, by the rig
  bool has_arrivals = true;   // false: the log has none, the rig declares a delay
  bool device_clock = false;  // the rig says that the stamps are of another clock than the arrivals
  std::vector<StampPair> stamps;
};

struct ClockFinding {
  ClockFault fault = ClockFault::kZeroStamp;
  std::string sensor;
  std::uint64_t messages = 0;  // how many show it
  Duration by;                 // how far off; 0 where that has no meaning
  std::string text;            // the whole finding in words, sensor included
};

struct ClockCheck {
  std::vector<ClockFinding> findings;  // by sensor, then in the order of ClockFault
  // First and last believable arrival; only set when others exist, which would stretch the log to years.
  std::optional<std::pair<SensorTime, SensorTime>> window;
};

// Pure. Sensors without messages are not looked at.
ClockCheck check_clocks(const std::vector<SensorStamps>& sensors);

}  // namespace takt::sensors
