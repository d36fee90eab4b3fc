// What a stage takes of the board's memory in a table: synthesis, proofs and analysis agree on it.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

// The chosen variant, then the one that its jobs degrade to where that is another: a run has both from its start.
std::vector<std::uint32_t> variants_with(const Stage& stage, std::uint32_t chosen);

struct Footprint {
  std::int64_t resident = 0;  // bytes for the whole run, of all these variants
  std::int64_t arena = 0;     // bytes while a job runs, which is of one of them: the largest
};
Footprint footprint(const Stage& stage, std::uint32_t chosen);

}  // namespace takt::sched
