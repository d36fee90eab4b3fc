// Modes: complete problems of their own that one run may change between (DESIGN sections 2 and 5). Each mode has its
// table: its stages, rates, variants and hyperperiod. They share sensors, board and tick, so that an instant of one
// table is an instant of the next; a change comes at the end of a hyperperiod.
#pragma once

#include <array>
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
// from the mode, no mode for a lost reference is locked or has chains that begin at it, every mode can be reached from
// the first, no hyperperiod is longer than 1000 times the shortest and no
// drain than 10000 times. kConfiguration with the first fault.
Status check(const ModeSet& set);

// The admitted table of a mode over the stages, variants, inputs and chains of the whole problem, so that one run can
// change between several: indices mean the same in all of them.
struct ModeTable {
  std::string name;
  Schedule schedule;                                   // a stage that the mode does not run has rate 0 and no slots
  std::vector<std::vector<std::uint8_t>> reads;        // by stage and input; a mode may leave inputs out
  std::vector<std::optional<std::uint32_t>> degraded;  // by stage: the variant to which its jobs degrade
  std::optional<PhaseLock> phase_lock;                 // as in the whole, unless the mode is free
  Duration entry_drain, dwell;                         // as in ModeSpec
  std::vector<std::uint32_t> exits;
  std::optional<std::uint32_t> lost;
  std::vector<std::array<std::optional<Duration>, kQuantities>> limits;  // by chain
  // Bounds of the chains that both modes have across a change into this one, by the mode before.
  struct Seam {
    std::uint32_t from = 0;
    std::vector<ChainBound> bounds;
  };
  std::vector<Seam> seams;
  [[nodiscard]] bool runs(std::size_t stage) const { return schedule.choices[stage].rate > 0; }
};

// Of a problem without modes: its only one.
ModeTable only_table(const Problem& problem, const Schedule& schedule);
// `schedules` by mode. kConfiguration when a mode has a stage, variant, input or chain that the whole lacks.
Result<std::vector<ModeTable>> tables_of(const Problem& whole, const ModeSet& set,
                                         const std::vector<Schedule>& schedules);

}  // namespace takt::sched
