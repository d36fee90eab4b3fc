#include "scheduler/analysis/modes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/instants.h"
#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

using Json = nlohmann::ordered_json;

// A dwell ends with a hyperperiod.
Duration whole_dwell(const ModeSpec& mode) {
  const std::int64_t h = mode.problem.hyperperiod.ns;
  return {(mode.dwell.ns + h - 1) / h * h};
}

void judge_bounds(const ModeSpec& from, const ModeSpec& to, const Mode& old_mode, const Mode& new_mode,
                  ChangeAnswer& out) {
  Duration longest;
  std::string longest_chain;
  for (const Chain& chain : to.problem.chains) {
    const auto old_chain = std::find_if(from.problem.chains.begin(), from.problem.chains.end(),
                                        [&](const Chain& other) { return other.name == chain.name; });
    if (old_chain == from.problem.chains.end()) continue;
    const Result<ChainBound> bound = walk_change(old_mode, new_mode, chain.name, to.entry_drain);
    if (!bound) {
      out.refusal = bound.error().message;
      return;
    }
    SeamBound seam;
    seam.bound = *bound;
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (chain.limits[q] && old_chain->limits[q]) seam.limits[q] = std::max(*chain.limits[q], *old_chain->limits[q]);
      if (bound->bounds[q] > longest) {
        longest = bound->bounds[q];
        longest_chain = chain.name;
      }
      if (!seam.limits[q] || bound->bounds[q] <= *seam.limits[q] || !out.refusal.empty()) continue;
      out.refusal = "chain '" + chain.name + "' has a " + name_of(static_cast<Quantity>(q)) + " of up to " +
                    ms_text(bound->bounds[q]) + " across the change, " + ms_text(bound->bounds[q] - *seam.limits[q]) +
                    " above the larger limit of both modes (" + ms_text(*seam.limits[q]) +
                    "); raise that limit in one of them, or let slots of one mode begin where they do in the other";
    }
    out.bounds.push_back(std::move(seam));
  }
  if (!out.refusal.empty() || to.exits.empty() || whole_dwell(to) >= longest) return;
  out.refusal = "chain '" + longest_chain + "' may carry data from before the change for " + ms_text(longest) +
                ", but mode '" + to.name + "' may be left after " + ms_text(whole_dwell(to)) +
                "; declare a dwell_ms of at least " + ms_text(longest);
}

// The arenas of jobs over time.
class Arenas {
 public:
  // Jobs of the hyperperiods `from` <= turn < `to`.
  void add(const ModeSpec& mode, const Schedule& schedule, std::int64_t from, std::int64_t to, Duration offset = {}) {
    const analysis::Instants instants(mode.problem, schedule);
    for (std::uint32_t s = 0; s < mode.problem.stages.size(); ++s) {
      const std::int64_t arena = footprint(mode.problem.stages[s], schedule.choices[s].variant).arena;
      for (std::int64_t job = from * instants.jobs(s); job < to * instants.jobs(s); ++job) {
        changes_.emplace_back(instants.start(s, job) + offset.ns, arena);
        changes_.emplace_back(instants.end(s, job) + offset.ns, -arena);
        last_ = std::max(last_, instants.end(s, job) + offset.ns);
      }
    }
  }
  // When the last of the jobs ends, at 0 or later.
  [[nodiscard]] Duration end() const { return {last_}; }
  // Bytes in use at once.
  [[nodiscard]] std::int64_t most() {
    std::sort(changes_.begin(), changes_.end());  // what is given back comes first
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const auto& [when, by] : changes_) most = std::max(most, now += by);
    return most;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> changes_;  // ns, bytes
  std::int64_t last_ = 0;
};

// Resident bytes of everything that some mode runs, and the largest sum of arenas in use at once: in one mode, or
// around a change, when the last jobs of the old table run beside the first of the next one.
std::string judge_memory(const ModeSet& set, const std::vector<Answer>& answers) {
  const std::int64_t board = set.modes.front().problem.board.memory;
  if (board == 0) return "";
  std::map<std::pair<std::string, std::string>, std::int64_t> resident;  // by stage, variant
  std::int64_t arenas = 0;
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    if (!answers[m].schedule) continue;
    const ModeSpec& mode = set.modes[m];
    const Schedule& schedule = *answers[m].schedule;
    for (std::uint32_t s = 0; s < mode.problem.stages.size(); ++s) {
      const Stage& stage = mode.problem.stages[s];
      for (const std::uint32_t v : variants_with(stage, schedule.choices[s].variant)) {
        std::int64_t& bytes = resident[{stage.name, stage.variants[v].name}];
        bytes = std::max(bytes, stage.variants[v].resident);
      }
    }
    Arenas alone;
    alone.add(mode, schedule, -1, 1);
    arenas = std::max(arenas, alone.most());
    for (const std::uint32_t exit : mode.exits) {
      if (!answers[exit].schedule) continue;
      const ModeSpec& next = set.modes[exit];
      Arenas seam;
      seam.add(mode, schedule, -1, 0);
      const std::int64_t beside = std::max<std::int64_t>(0, (seam.end() - next.entry_drain).ns);
      seam.add(next, *answers[exit].schedule, 0, beside / next.problem.hyperperiod.ns + 1, next.entry_drain);
      arenas = std::max(arenas, seam.most());
    }
  }
  std::int64_t all = 0;
  for (const auto& [what, bytes] : resident) all += bytes;
  if (all + arenas <= board) return "";
  return "memory: the variants of all modes together keep " + bytes_text(all) +
         " resident, jobs of one mode or around a change use up to " + bytes_text(arenas) + " at once; the board has " +
         bytes_text(board) + ": " + bytes_text(all + arenas - board) +
         " too much. Use the same variants in more modes, smaller ones, or longer drains";
}

std::string name_of_change(const ModeSet& set, const ChangeAnswer& change) {
  return set.modes[change.from].name + " -> " + set.modes[change.to].name;
}

}  // namespace

ModesAnswer judge_modes(const ModeSet& set, const std::vector<Answer>& answers) {
  ModesAnswer out;
  bool permitted = true;
  for (std::uint32_t m = 0; m < set.modes.size(); ++m) {
    for (const std::uint32_t exit : set.modes[m].exits) {
      ChangeAnswer change;
      change.from = m;
      change.to = exit;
      const ModeSpec& from = set.modes[m];
      const ModeSpec& to = set.modes[exit];
      if (answers[m].schedule && answers[exit].schedule) {
        change.judged = true;
        const Mode old_mode{&from.problem, &*answers[m].schedule};
        const Mode new_mode{&to.problem, &*answers[exit].schedule};
        if (const Status valid = validate_change(old_mode, new_mode, to.entry_drain); !valid) {
          change.refusal = valid.error().message + " (entry_drain_ms of '" + to.name + "')";
        } else {
          judge_bounds(from, to, old_mode, new_mode, change);
        }
      }
      permitted &= change.judged && change.refusal.empty();
      out.changes.push_back(std::move(change));
    }
  }
  out.refusal = judge_memory(set, answers);
  const auto all = [&](Verdict verdict) {
    return std::all_of(answers.begin(), answers.end(), [&](const Answer& a) { return a.verdict == verdict; });
  };
  const bool one_infeasible =
      std::any_of(answers.begin(), answers.end(), [](const Answer& a) { return a.verdict == Verdict::kInfeasible; });
  out.verdict = one_infeasible                                                ? Verdict::kInfeasible
                : all(Verdict::kFeasible) && permitted && out.refusal.empty() ? Verdict::kFeasible
                                                                              : Verdict::kUndecided;
  return out;
}

Result<std::vector<ModeTable>> admitted_tables(const Problem& whole, const ModeSet& set,
                                               const std::vector<Answer>& answers, const ModesAnswer& judged) {
  std::vector<Schedule> schedules;
  for (const Answer& answer : answers) {
    if (!answer.schedule) return fail(Code::kInternal, "a mode of '" + set.name + "' has no table");
    schedules.push_back(*answer.schedule);
  }
  TAKT_ASSIGN(std::vector<ModeTable> tables, tables_of(whole, set, schedules));
  for (const ChangeAnswer& change : judged.changes) {
    ModeTable::Seam seam;
    seam.from = change.from;
    for (const SeamBound& across : change.bounds) {
      const std::string& name = set.modes[change.to].problem.chains[across.bound.chain].name;
      const auto chain = std::find_if(whole.chains.begin(), whole.chains.end(),
                                      [&name](const Chain& own) { return own.name == name; });
      seam.bounds.push_back(across.bound);
      seam.bounds.back().chain = static_cast<std::uint32_t>(chain - whole.chains.begin());
    }
    tables[change.to].seams.push_back(std::move(seam));
  }
  return tables;
}

std::string explain_modes(const ModeSet& set, const std::vector<Answer>& answers, const ModesAnswer& judged) {
  std::string out = "MODES of '" + set.name + "': ";
  out += judged.verdict == Verdict::kFeasible     ? "every mode and every permitted change is feasible\n"
         : judged.verdict == Verdict::kInfeasible ? "a mode is infeasible\n"
                                                  : "not all modes and changes are admitted\n";
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    const ModeSpec& mode = set.modes[m];
    out += "  mode '" + mode.name + "': " + name_of(answers[m].verdict) + ", hyperperiod " +
           ms_text(mode.problem.hyperperiod) + ", " + std::to_string(mode.problem.ticks) + " ticks, entry drain " +
           ms_text(mode.entry_drain) + ", dwell " + ms_text(whole_dwell(mode));
    if (mode.lost) out += ", when the reference is lost: '" + set.modes[*mode.lost].name + "'";
    out += m == 0 ? " (a run begins here)\n" : "\n";
  }
  if (!judged.refusal.empty()) out += "  " + judged.refusal + "\n";
  for (const ChangeAnswer& change : judged.changes) {
    out += "  change " + name_of_change(set, change) + ": ";
    if (!change.judged) {
      out += "not judged, a mode has no table\n";
      continue;
    }
    out += change.refusal.empty() ? "permitted\n" : "REFUSED: " + change.refusal + "\n";
    for (const SeamBound& seam : change.bounds) {
      out += "    " + set.modes[change.to].problem.chains[seam.bound.chain].name + ":";
      for (std::size_t q = 0; q < kQuantities; ++q) {
        out +=
            std::string(q == 0 ? " " : ", ") + name_of(static_cast<Quantity>(q)) + " " + ms_text(seam.bound.bounds[q]);
        if (seam.limits[q]) out += " (limit " + ms_text(*seam.limits[q]) + ")";
      }
      out += "\n";
    }
  }
  return out;
}

std::string modes_json(const ModeSet& set, const std::vector<Answer>& answers, const ModesAnswer& judged) {
  Json root;
  root["verdict"] = name_of(judged.verdict);
  root["set"] = set.name;
  root["refusal"] = judged.refusal;
  root["modes"] = Json::array();
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    const ModeSpec& mode = set.modes[m];
    Json entry{{"name", mode.name}, {"entry_drain_ns", mode.entry_drain.ns}, {"dwell_ns", whole_dwell(mode).ns}};
    entry["exits"] = Json::array();
    for (const std::uint32_t exit : mode.exits) entry["exits"].push_back(set.modes[exit].name);
    entry["lost"] = mode.lost ? Json(set.modes[*mode.lost].name) : Json(nullptr);
    entry["answer"] = Json::parse(to_json(mode.problem, answers[m]));
    root["modes"].push_back(std::move(entry));
  }
  root["changes"] = Json::array();
  for (const ChangeAnswer& change : judged.changes) {
    Json entry{{"from", set.modes[change.from].name},
               {"to", set.modes[change.to].name},
               {"judged", change.judged},
               {"permitted", change.judged && change.refusal.empty()},
               {"refusal", change.refusal}};
    entry["chains"] = Json::array();
    for (const SeamBound& seam : change.bounds) {
      Json chain{{"name", set.modes[change.to].problem.chains[seam.bound.chain].name}};
      for (std::size_t q = 0; q < kQuantities; ++q) {
        chain[std::string(kQuantityKeys[q]) + "_ns"] = seam.bound.bounds[q].ns;
        chain[std::string(kQuantityKeys[q]) + "_limit_ns"] = seam.limits[q] ? Json(seam.limits[q]->ns) : Json(nullptr);
      }
      entry["chains"].push_back(std::move(chain));
    }
    root["changes"].push_back(std::move(entry));
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace takt::sched
