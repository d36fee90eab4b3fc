// The range of every figure that a person may set, in a file or with a what-if: one set for both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/time.h"

namespace takt::sched {

inline constexpr Duration kLeastTime = microseconds(1);  // of a budget, a segment, a limit
inline constexpr Duration kMostTime = seconds(100);      // of any time; also of a hyperperiod
inline constexpr double kLeastHz = 0.001;
inline constexpr double kMostHz = 100'000;
inline constexpr std::int64_t kMostJobs = 20'000;  // of all stages per hyperperiod: what a search still gets through
inline constexpr std::size_t kMostSegments = 16;   // of one job
inline constexpr double kMostReserve = 0.9;        // of a core

}  // namespace takt::sched
