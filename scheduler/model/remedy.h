// One change that by itself makes a problem feasible. Found by scheduler/synthesis, shown by scheduler/analysis.
#pragma once

#include <string>

namespace takt::sched {

struct Remedy {
  std::string change;  // "detection.budget=8.7ms", as apply_what_if() reads it; "" where it has no form for that
  std::string words;   // what to do, with the figure that just suffices
};

}  // namespace takt::sched
