// What a stage may still choose on a board, in the order of preference. The checker of certificates lists the same by
// its own code (scheduler/analysis/certificate.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

// Every choice a stage has on this board, best first: by rate, then variant, then core count. What needs more cores
// than there are is left out.
std::vector<Choice> options_of(const Board& board, const Stage& stage);

// Every set of k cores, ascending, in lexicographic order.
std::vector<std::vector<std::uint32_t>> core_sets(const Board& board, int k);

}  // namespace takt::sched
