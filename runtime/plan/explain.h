// A plan in words, for people and as JSON. Host only: the board needs neither.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace takt::plan {

// Header, inputs and outputs, steps, arena map, at most `width` columns where text can be cut.
std::string explain(const Plan& plan, int width);
// The same figures: keys are documented in docs/plan_format.md.
std::string to_json(const Plan& plan);

// Bytes of the arena that are alive in every step.
std::vector<std::uint64_t> live_bytes(const Description& description);
// What lies where over time: `rows` lines of at most `columns` characters, addresses upward, steps to the right. '#':
// more than half of the cell is alive, '+': some of it.
std::vector<std::string> arena_map(const Description& description, int rows, int columns);

}  // namespace takt::plan
