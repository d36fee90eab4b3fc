// What of a problem or of a set of modes is wrong, for readers that know where it was declared.
#pragma once

#include <cstddef>

#include "scheduler/model/modes.h"

namespace takt::sched {

struct Subject {
  enum class Kind { kWhole, kBoard, kSensor, kStage, kChain, kDisparity, kPhaseLock };
  Kind kind = Kind::kWhole;
  std::size_t index = 0;  // into its list
};
// check(), and the part of the problem that its first fault is about.
Status check(const Problem& problem, Subject& subject);

struct ModeSubject {
  std::size_t mode = 0;  // the number of modes: no single one
};
Status check(const ModeSet& set, ModeSubject& subject);

}  // namespace takt::sched
