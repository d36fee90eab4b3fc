// What a plan counts, job by job, against the capacities that it was compiled for: how full things are, and what was
// dropped. Memory comes at creation only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace takt::exec {

class CountLog {
 public:
  static constexpr std::size_t kFrames = 4096;  // the latest jobs are kept one by one: seven minutes at 10 Hz
  static constexpr std::int64_t kMostElements = 8;

  struct Counter {
    std::string name;           // of the plan's output; NAME[i] where it has several elements
    std::int64_t capacity = 0;  // of what it counts; 0: it counts no tensor, but drops and the like
    std::size_t slot = 0;       // output of the plan
    std::size_t element = 0;
    std::int32_t maximum = 0;
    std::int64_t total = 0;
  };

  // Watches the outputs that are i32, not counted themselves, and of at most kMostElements elements.
  explicit CountLog(const plan::Plan& plan);

  // A job is complete: `outputs` are the bound buffers, by slot.
  void add(std::span<const std::byte* const> outputs);

  [[nodiscard]] std::span<const Counter> counters() const { return counters_; }
  [[nodiscard]] std::uint64_t jobs() const { return jobs_; }
  // How many are kept, and one of them, oldest first: a value for each counter.
  [[nodiscard]] std::size_t kept() const { return jobs_ < kFrames ? static_cast<std::size_t>(jobs_) : kFrames; }
  [[nodiscard]] std::span<const std::int32_t> job(std::size_t i) const;

 private:
  std::vector<Counter> counters_;
  std::vector<std::int32_t> values_;  // [job % kFrames][counter]
  std::uint64_t jobs_ = 0;
};

}  // namespace takt::exec
