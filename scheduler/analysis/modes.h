// A set of modes judged as one: every mode's table, every permitted change between two of them, and what all of them
// need at once.
#pragma once

#include <string>
#include <vector>

#include "scheduler/analysis/change.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

// What holds across one permitted change. Judged only where both modes have tables.
struct SeamBound {
  ChainBound bound;                             // chain: index in the mode that follows
  std::optional<Duration> limits[kQuantities];  // the larger of the two modes' limits, where both have one
};
struct ChangeAnswer {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool judged = false;
  std::string refusal;            // "" when the change is permitted
  std::vector<SeamBound> bounds;  // of every chain that both modes have
};

struct ModesAnswer {
  Verdict verdict = Verdict::kUndecided;
  std::vector<ChangeAnswer> changes;  // by mode, then exit
  std::string refusal;                // of the set as a whole: memory; "" when there is none
};

// `answers` by mode. Feasible: every mode is, and every permitted change keeps these rules:
// - what still runs when the next table begins, entry drain later, meets none of its slots (validate_change);
// - the bounds across the seam (walk_change) keep the larger of both modes' limits;
// - the mode that follows lasts, by its dwell, at least as long as the longest of these bounds, so that no chain
//   crosses two changes;
// and the variants of all modes together are resident at once, beside the largest need for arenas of any mode or
// change.
// Infeasible as soon as a mode is; else undecided, since other tables might do.
ModesAnswer judge_modes(const ModeSet& set, const std::vector<Answer>& answers);

// What a run needs of a feasible set: every mode's table over the whole problem, with the bounds across the changes
// into it. kConfiguration when a mode has what the whole lacks.
Result<std::vector<ModeTable>> admitted_tables(const Problem& whole, const ModeSet& set,
                                               const std::vector<Answer>& answers, const ModesAnswer& judged);

// For people; each mode's own answer is explain()'s.
std::string explain_modes(const ModeSet& set, const std::vector<Answer>& answers, const ModesAnswer& judged);
// {"verdict", "modes": [to_json() of each], "changes": [...]}.
std::string modes_json(const ModeSet& set, const std::vector<Answer>& answers, const ModesAnswer& judged);

}  // namespace takt::sched
