// Modes: complete problems of their own that one run may change between (DESIGN sections 2 and 5). Each mode has its
// table: its stages, rates, variants and hyperperiod. They share sensors, board and tick, so that an instant of one
// table is an instant of the next; a change comes at the end of a hyperperiod.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

inline constexpr std::size_t kMostModes = 64;
inline constexpr Duration kLongestDrain = seconds(100);
inline constexpr Duration kLongestDwell = seconds(100'000);

struct ModeSpec {
  std::string name;
  Problem problem;       // named "SET/MODE"; ticks given
  Duration entry_drain;  // idle between the mode before and the first hyperperiod of this one
  // How long a run stays at least, rounded up to whole hyperperiods: a chain may then carry data across one change
  // only.
  Duration dwell;
  std::vector<std::uint32_t> exits;   // modes that may follow
  std::optional<std::uint32_t> lost;  // the mode to enter when the reference of the phase lock stays lost
};

struct ModeSet {
  std::string name;
  std::vector<ModeSpec> modes;  // a run begins in the first
};

// N of each hyperperiod so that all have one tick H / N of at most 1 us, and each N is a multiple of 1000 times every
// rate that its mode admits. kConfiguration when there is no such tick of at least 1 ns.
Result<std::vector<Tick>> common_ticks(const std::vector<Problem>& modes);

// At most kMostModes; every problem passes its own check(), names are unique, exits and lost modes exist and differ
// from the mode, every mode can be reached from the first, no hyperperiod is longer than 1000 times the shortest and no
// drain than 10000 times. kConfiguration with the first fault.
Status check(const ModeSet& set);

}  // namespace takt::sched
