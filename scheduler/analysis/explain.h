// The answer for people and for programs: `takt schedule`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/model/model.h"
#include "scheduler/model/remedy.h"

namespace takt::sched {

// Verdict, why not and what would help, or what had to be given up, chain bounds with limits and terms, text Gantt,
// table, utilisation, slack. Plain text, no line of the Gantt wider than `width` (at least 40).
std::string explain(const Problem& problem, const Answer& answer, std::size_t width = 100,
                    const std::vector<Remedy>& remedies = {});

// The reaction of every chain beside what others would run or promise: the first table found (nullptr: not asked),
// epochs with barriers (every job reads when its period begins and publishes when it ends), and the bounds of Davare,
// Duerr and Kloda for these starts and slots; "-" where a method does not apply.
std::string compare(const Problem& problem, const Schedule& schedule, const Schedule* first_found);

// The same as one JSON object (docs: keys end in _ns, or _ticks for table positions). Deterministic text.
std::string to_json(const Problem& problem, const Answer& answer, const std::vector<Remedy>& remedies = {});

}  // namespace takt::sched
