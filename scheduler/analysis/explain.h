// The answer for people and for programs: `takt schedule`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/model.h"
#include "scheduler/model/remedy.h"

namespace takt::sched {

// The reaction of one chain beside what others would run or promise; nothing where a method does not apply or was not
// asked.
struct Comparison {
  std::uint32_t chain = 0;
  Duration table;
  std::optional<Duration> first_found;     // the first table found, as a scheduler without an objective would run it
  std::optional<Duration> epoch_barriers;  // every job reads when its period begins and publishes when it ends
  Duration davare, duerr;                  // bounds for these starts and slots
  std::optional<Duration> kloda;
};

// By chain. `first_found`: nullptr when not asked.
std::vector<Comparison> comparisons(const Problem& problem, const Schedule& schedule, const Schedule* first_found);

// What further searches found beside an answer.
struct Beside {
  bool interrupted = false;                    // the search was ended from outside: it is what it had by then
  std::vector<Remedy> remedies;                // unless feasible
  std::optional<double> scale_with_new_table;  // of all budgets, at least
  std::vector<Comparison> comparisons;
};

// The letter of a stage in every Gantt chart of the answer: A to Z, a to z, 0 to 9, then '#' for all further ones.
inline constexpr std::size_t kLetters = 62;
char letter_of(std::size_t stage);

// Verdict, why not and what would help, or what had to be given up, chain bounds with limits and terms, text Gantt,
// table, utilisation, slack. Plain text, no line of the Gantt wider than `width` (at least 40).
std::string explain(const Problem& problem, const Answer& answer, std::size_t width = 100, const Beside& beside = {});

// The same as one JSON object (docs/scheduling.md; keys end in _ns, or _ticks for table positions). Deterministic text.
std::string to_json(const Problem& problem, const Answer& answer, const Beside& beside = {});

}  // namespace takt::sched
