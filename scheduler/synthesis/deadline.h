// When a search has to end before its nodes are used: at an instant, or when somebody says so. Private to the
// synthesis.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace takt::sched {

struct Deadline {
  std::optional<std::chrono::steady_clock::time_point> until;
  const std::atomic<bool>* stop = nullptr;
  [[nodiscard]] bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  [[nodiscard]] bool passed() const { return stopped() || (until && std::chrono::steady_clock::now() >= *until); }
};

}  // namespace takt::sched
