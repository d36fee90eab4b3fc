// What the watchdog of a run tells: a fixed-layout payload, like those between stages.
#pragma once

#include <cstdint>

namespace takt::pipeline {

inline constexpr std::uint32_t kStatusSchema = 0x1101;
inline constexpr std::uint32_t kMaxStatusStages = 64;
inline constexpr std::uint32_t kNoCore = 0xFFFF'FFFF;

struct StageStatus {
  std::uint64_t jobs = 0;           // number of the newest published job + 1; 0: none yet
  std::int64_t valid_until_ns = 0;  // of its output, table time
  std::uint32_t stale = 0;          // 1: that instant has passed
  std::uint32_t reserved = 0;
};

// Sent once in a hyperperiod, and at once when the dispatcher of a core is behind the table.
struct RunStatus {
  std::int64_t now_ns = 0;  // table time
  std::uint64_t hyperperiod = 0;
  std::uint64_t trips = 0;            // how often a dispatcher was behind, so far
  std::int64_t reached_ns = 0;        // where the dispatcher of `late_core` is
  std::uint32_t late_core = kNoCore;  // index in the board file
  std::uint32_t stage_count = 0;
  StageStatus stages[kMaxStatusStages];  // in the order of the pipeline file
};

}  // namespace takt::pipeline
