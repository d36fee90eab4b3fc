// Table time on this machine's monotonic clock. Every instant is computed from the origin, so nothing accumulates.
#pragma once

#include "runtime/base/time.h"

namespace takt::sched {

struct TableClock {
  HostTime origin;    // host time of table time 0
  double rate = 1.0;  // table seconds per host second

  [[nodiscard]] HostTime host(TableTime t) const { return origin + to_host(Duration{t.ns}); }
  [[nodiscard]] TableTime table(HostTime t) const {
    const Duration since = t - origin;
    return {rate == 1.0 ? since.ns : static_cast<std::int64_t>(static_cast<double>(since.ns) * rate)};
  }
  [[nodiscard]] Duration to_host(Duration d) const {
    return {rate == 1.0 ? d.ns : static_cast<std::int64_t>(static_cast<double>(d.ns) / rate)};
  }
};

}  // namespace takt::sched
