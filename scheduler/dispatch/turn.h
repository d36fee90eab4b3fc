// One hyperperiod of a run, and the changes between modes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/time.h"

namespace takt::sched {

struct Turn {
  std::uint64_t number = 0;   // hyperperiods of the run before it
  std::uint32_t mode = 0;     // index into the tables of the run
  TableTime begin;            // with the drain and all corrections before it
  std::uint64_t in_mode = 0;  // hyperperiods since the mode was entered
  std::uint64_t stay = 0;     // changes of mode before it
  Duration correction;        // of the phase, at the boundary before it
  Duration corrected;         // the sum of all so far
};

enum class ModeCause : std::uint8_t {
  kOverrun,    // of a stage whose policy is to degrade to the mode
  kReference,  // of the phase lock: lost for longer than the hold-over
  kDevice,     // a stage cannot run as the mode wants it, because its device is gone
  kRequest,    // somebody asked for the mode
  kRecovered,  // what led into the mode before is over
};
const char* name_of(ModeCause cause);
inline constexpr std::size_t kModeCauses = 5;

struct ModeChange {
  std::uint64_t hyperperiod = 0;  // of the run: the first in the new mode
  TableTime begin;                // of that hyperperiod, behind the drain
  std::uint32_t from = 0, to = 0;
  ModeCause cause = ModeCause::kRequest;
  std::uint32_t stage = 0;  // overrun, device: of which job
  std::uint64_t job = 0;
};

}  // namespace takt::sched
