// Pause and step of a lockstep replay: the feeder waits at the gate, and what is not published holds the jobs that
// would use it. Virtual time knows nothing of it, so results do not change. (Real time cannot be paused: the table's
// phase is bound to the host clock; a seek ends the pass instead.)
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "runtime/base/time.h"

namespace takt::pipeline {

// Keys come from any one thread; the run calls the rest.
class ReplayGate {
 public:
  void pause() {
    paused_ = true;
    limit_ = boundary_after(position_);
  }
  void resume() {
    paused_ = false;
    limit_ = kOpen;
  }
  // One hyperperiod further, when paused.
  void step() {
    if (paused_) limit_ = std::max(limit_.load(), boundary_after(position_)) + hyperperiod_;
  }
  [[nodiscard]] bool paused() const { return paused_; }
  // Sensor time up to which jobs are done.
  [[nodiscard]] SensorTime position() const { return {origin_ + position_}; }
  [[nodiscard]] double table_s() const { return static_cast<double>(position_) * 1e-9; }

  // Run: table time 0 in sensor time, and H. A gate that was paused before starts paused at 0.
  void begin(SensorTime origin, Duration hyperperiod) {
    origin_ = origin.ns;
    hyperperiod_ = hyperperiod.ns;
    position_ = 0;
    if (paused_) limit_ = 0;
  }
  void done(std::int64_t table_ns) { position_ = table_ns; }
  // Feeder: samples up to here may come through.
  [[nodiscard]] std::int64_t limit_ns() const {
    const std::int64_t limit = limit_;
    return limit == kOpen ? kOpen : origin_ + limit;
  }

 private:
  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] std::int64_t boundary_after(std::int64_t table_ns) const {
    const std::int64_t h = hyperperiod_;
    return h == 0 ? 0 : (table_ns + h - 1) / h * h;
  }
  std::atomic<bool> paused_{false};
  std::atomic<std::int64_t> origin_{0}, hyperperiod_{0}, position_{0};
  std::atomic<std::int64_t> limit_{kOpen};  // table time
};

}  // namespace takt::pipeline
