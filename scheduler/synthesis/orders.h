// Closes what only branching closes: orders of jobs that share a core, and which job can read which, around the circle,
// until differences of instants add up to more than a hyperperiod. A tree search with a record of what each conflict
// rests on, so that the certificate holds only the branches it needs. For small problems: exact.h decides large ones.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/synthesis/lower_bounds.h"

namespace takt::sched {

// A certificate (rules order, reads, circle) that no table exists with one option and one home for every stage; takes
// what it needs from `nodes`. nullopt: there may be a table, a stage has several segments, or `nodes` ran out.
std::optional<Certificate> refute_by_orders(const Problem& problem, const Options& options, const Homes& homes,
                                            std::uint64_t& nodes);

}  // namespace takt::sched
