// Makes faulty logs: copies a log message by message and lets a test change, drop or repeat each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_reader.h"

namespace takt::test {

struct RewrittenMessage {
  std::string topic;
  std::uint64_t index = 0;
  std::int64_t arrival_ns = 0;
  std::int64_t capture_ns = 0;
  std::string bytes;
};

// `edit` gets each message of `from` in order and pushes what shall be written instead.
Status rewrite_log(const std::string& from, const std::string& to,
                   const std::function<void(const RewrittenMessage&, std::vector<RewrittenMessage>&)>& edit);

}  // namespace takt::test
