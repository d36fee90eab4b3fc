// What every log reader promises, whatever its bytes are: opening gives a reader or an error of kind kInput; reading
// gives each announced message once, in order of arrival, and never fails afterwards. Aborts where it does not hold.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

inline void read_log(const Result<std::unique_ptr<LogReader>>& log) {
  if (!log) {
    if (log.error().code != Code::kInput) std::abort();
    return;
  }
  std::uint64_t announced = 0, read = 0;
  for (const LogChannel& channel : (*log)->channels()) announced += channel.messages;
  SensorTime last{INT64_MIN};
  for (;;) {
    const auto message = (*log)->next();
    if (!message) std::abort();
    if (!*message) break;
    if ((*message)->arrival < last) std::abort();
    last = (*message)->arrival;
    ++read;
  }
  if (read != announced) std::abort();
}

}  // namespace takt::sensors
