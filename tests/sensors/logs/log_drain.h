// A log as a list of comparable values.
#pragma once

#include <gtest/gtest.h>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::test {

struct Seen {
  std::string topic;
  std::uint64_t index = 0;
  std::int64_t arrival = 0, capture = 0;
  std::string bytes;
  friend bool operator==(const Seen&, const Seen&) = default;
};
inline void PrintTo(const Seen& s, std::ostream* out) {
  *out << s.topic << "#" << s.index << " at " << s.arrival << "/" << s.capture << " '" << s.bytes.substr(0, 20) << "'";
}

inline std::vector<Seen> drain(sensors::LogReader& reader) {
  std::vector<Seen> all;
  for (;;) {
    auto message = reader.next();
    if (!message) {
      ADD_FAILURE() << message.error().message;
      return all;
    }
    if (!*message) return all;
    const sensors::LogMessage& m = **message;
    all.push_back({m.channel->topic, m.index, m.arrival.ns, m.capture.ns,
                   std::string(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size())});
  }
}

}  // namespace takt::test
