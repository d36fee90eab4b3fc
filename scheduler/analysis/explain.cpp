#include "scheduler/analysis/explain.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "scheduler/analysis/certificate.h"
#include "scheduler/analysis/instants.h"
#include "scheduler/analysis/trace.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/text.h"

namespace takt::sched {

char letter_of(std::size_t stage) {
  constexpr const char* kAll = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return stage < kLetters ? kAll[stage] : '#';
}

namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string aligned(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

// Columns of equal width; those in [from, to) hold figures and are right aligned.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t from, std::size_t to) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += " " + (i < from || i >= to ? padded(row[i], widths[i]) : aligned(row[i], widths[i]));
      if (i + 1 < row.size()) line += " ";
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// The cores of a slot, or its unit.
std::string place_text(const Problem& problem, const Slot& slot) {
  if (slot.unit) return problem.board.units[*slot.unit].name;
  std::string out;
  for (const std::uint32_t core : slot.cores) out += (out.empty() ? "" : "+") + problem.board.cores[core].name;
  return out;
}

// "#2", with the part of the job where it has several: "#2 (1 of 4)".
std::string job_text(const Schedule& schedule, const Slot& slot) {
  const std::size_t segments = segments_of(schedule.choices[slot.stage].budget).size();
  std::string out = "#" + std::to_string(slot.job);
  if (segments > 1) out += " (" + std::to_string(slot.segment + 1) + " of " + std::to_string(segments) + ")";
  return out;
}

std::string hz_text(const Problem& problem, std::int64_t rate) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g Hz", static_cast<double>(rate) / problem.hyperperiod.seconds());
  return text;
}

// One row per core and unit over one hyperperiod. A column shows the stage that holds most of it; '.' is idle time. The
// first column of a slot is a '|' where there is room, so that neighbours of one stage can be told apart.
std::string gantt(const Problem& problem, const Schedule& schedule, std::size_t width) {
  std::size_t label = 0;
  for (const Core& core : problem.board.cores) label = std::max(label, core.name.size());
  for (const Unit& unit : problem.board.units) label = std::max(label, unit.name.size());
  const std::size_t room = std::max<std::size_t>(width, 40) - label - 4;
  const auto tick_at = [&](std::size_t column) {
    return static_cast<Tick>(static_cast<double>(schedule.clock.ticks) * static_cast<double>(column) /
                             static_cast<double>(room));
  };
  const auto lane = [&](const std::string& name, const auto& holds) {
    std::string row;
    std::vector<const Slot*> here;
    for (const Slot& slot : schedule.slots) {
      if (holds(slot)) here.push_back(&slot);
    }
    for (std::size_t column = 0; column < room; ++column) {
      const Tick from = tick_at(column);
      const Tick to = tick_at(column + 1);
      Tick most = (to - from) / 2;  // idle unless a slot holds more than half
      char letter = '.';
      for (const Slot* at : here) {
        const Slot& slot = *at;
        for (const Tick shift : {Tick{0}, schedule.clock.ticks}) {
          const Tick covered = std::min(slot.end - shift, to) - std::max(slot.start - shift, from);
          if (covered > most) {
            most = covered;
            const bool first = slot.start - shift >= from && slot.end - slot.start > 3 * (to - from);
            letter = first ? '|' : letter_of(slot.stage);
          }
        }
      }
      row += letter;
    }
    return "  " + padded(name, label) + "  " + row + "\n";
  };
  std::string out;
  for (std::uint32_t core = 0; core < problem.board.cores.size(); ++core) {
    out += lane(problem.board.cores[core].name, [&](const Slot& slot) {
      return std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end();
    });
  }
  for (std::uint32_t unit = 0; unit < problem.board.units.size(); ++unit) {
    out += lane(problem.board.units[unit].name, [&](const Slot& slot) { return slot.unit == unit; });
  }
  // Scale: 0, a half, the whole.
  const std::string end = ms_text(problem.hyperperiod);
  const std::string half = ms_text({problem.hyperperiod.ns / 2});
  std::string scale = padded("0", room / 2) + half;
  scale = padded(scale, room > end.size() ? room - end.size() : 0) + end;
  out += "  " + std::string(label, ' ') + "  " + scale + "\n";
  std::string legend = "  ";
  std::size_t used = 2;
  for (std::size_t stage = 0; stage < std::min(problem.stages.size(), kLetters + 1); ++stage) {
    const std::string name =
        stage < kLetters ? problem.stages[stage].name : std::to_string(problem.stages.size() - kLetters) + " more";
    const std::string entry = std::string(1, letter_of(stage)) + " " + name + "  ";
    if (used + entry.size() > std::max<std::size_t>(width, 40) && used > 2) {
      legend += "\n  ";
      used = 2;
    }
    legend += entry;
    used += entry.size();
  }
  legend.erase(legend.find_last_not_of(' ') + 1);
  return out + legend + "\n";
}

std::string provenance_text(const Budget& budget) {
  std::string out = name_of(budget.provenance);
  if (budget.samples > 0) {
    char text[96];
    std::snprintf(text, sizeof text, ", %.3f ms x %.2f, %llu samples", budget.high_water.ms(), budget.margin,
                  static_cast<unsigned long long>(budget.samples));
    out += text;
  }
  return out;
}

void count_leaves(const Certificate& part, std::size_t& leaves, std::size_t& branches) {
  if (!part.parts.empty()) {
    ++branches;
    for (const Certificate& child : part.parts) count_leaves(child, leaves, branches);
  } else if (part.rule != Certificate::Rule::kSame) {
    ++leaves;
  }
}

std::string proof_text(const Certificate& certificate) {
  std::size_t leaves = 0;
  std::size_t branches = 0;
  count_leaves(certificate, leaves, branches);
  std::string out = "a certificate of one rule ('" + std::string(name_of(certificate.rule)) + "')";
  if (branches > 0) {
    out = "a certificate of " + std::to_string(branches) + (branches == 1 ? " branch" : " branches") + " and " +
          std::to_string(leaves) + (leaves == 1 ? " leaf" : " leaves");
  }
  return out + "; takt schedule --certificate FILE writes it, --check FILE replays it without any search";
}

std::string header(const Problem& problem, const Answer& answer, bool interrupted) {
  std::string out;
  const std::string what = "'" + problem.name + "' on board '" + problem.board.name + "'";
  switch (answer.verdict) {
    case Verdict::kFeasible: out = "FEASIBLE: " + what + " meets every limit\n"; break;
    case Verdict::kInfeasible:
      out = "INFEASIBLE: " + what + " cannot meet its limits\n  why: " + answer.reason + "\n";
      break;
    case Verdict::kUndecided: out = "UNDECIDED: " + what + "\n  " + answer.reason + "\n"; break;
  }
  if (answer.certificate) out += "  proof: " + proof_text(*answer.certificate) + "\n";
  if (answer.cut_by_time && interrupted) {
    out += "  INTERRUPTED: this is what the search had by then; another run may answer differently\n";
  } else if (answer.cut_by_time) {
    out += "  NOT REPRODUCIBLE: a limit in seconds ended the search; use --nodes\n";
  }
  for (const std::string& note : answer.notes) out += "  note: " + note + "\n";
  return out;
}

std::string remedies_text(const std::vector<Remedy>& remedies) {
  if (remedies.empty()) return "";
  std::string out = "\nWhat would fit (each by itself, tried)\n";
  for (const Remedy& remedy : remedies) {
    out += "  - " + remedy.words + "\n";
    if (!remedy.change.empty()) out += "      --what-if " + remedy.change + "\n";
  }
  return out;
}

std::string bounds_text(const Problem& problem, const Schedule& schedule) {
  if (schedule.bounds.empty()) return "";
  std::vector<std::vector<std::string>> rows{{"chain", "quantity", "bound", "limit", "left"}};
  std::string terms;
  for (const ChainBound& bound : schedule.bounds) {
    const Chain& chain = problem.chains[bound.chain];
    for (std::size_t q = 0; q < kQuantities; ++q) {
      std::vector<std::string> row{q == 0 ? chain.name : "", name_of(static_cast<Quantity>(q)),
                                   ms_text(bound.bounds[q])};
      if (chain.limits[q]) {
        row.push_back(ms_text(*chain.limits[q]));
        row.push_back(ms_text(*chain.limits[q] - bound.bounds[q]));
        if (bound.bounds[q] > *chain.limits[q]) row.push_back("EXCEEDED");
      } else {
        row.insert(row.end(), {"-", "-"});
      }
      rows.push_back(std::move(row));
    }
    terms += "  " + chain.name + ": " + bound.terms + "\n";
  }
  return "\nBounds\n" + columns(rows, 2, 5) + "\nHow the worst latency adds up\n" + terms;
}

// What holds while the reference of the phase lock is lost: chains of that sensor alone see a difference.
std::string hold_over_text(const Problem& problem, const Schedule& schedule) {
  if (!problem.phase_lock || problem.phase_lock->hold_over.ns == 0) return "";
  const Problem held = holding_over(problem);
  std::vector<std::vector<std::string>> rows{{"chain", "latency", "reaction", "age at output", "until replaced"}};
  for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
    if (problem.chains[c].sensor != problem.phase_lock->sensor) continue;
    const ChainBound bound = walk(held, schedule, c);
    rows.push_back({problem.chains[c].name});
    for (std::size_t q = 0; q < kQuantities; ++q) {
      const bool exceeded = problem.chains[c].limits[q] && bound.bounds[q] > *problem.chains[c].limits[q];
      rows.back().push_back(ms_text(bound.bounds[q]) + (exceeded ? " ABOVE ITS LIMIT" : ""));
    }
  }
  if (rows.size() == 1) return "";
  return "\nFor up to " + ms_text(problem.phase_lock->hold_over) + " without the stamps of '" +
         problem.sensors[problem.phase_lock->sensor].name + "' (bounds of the hold-over)\n" + columns(rows, 1, 5);
}

// How far apart the samples lie that a fusion stage brings together.
std::string disparities_text(const Problem& problem, const Schedule& schedule) {
  if (schedule.disparities.empty()) return "";
  std::vector<std::vector<std::string>> rows{{"disparity", "stage", "bound", "limit", "left"}};
  std::string terms;
  for (std::size_t i = 0; i < schedule.disparities.size(); ++i) {
    const Disparity& limit = problem.disparities[i];
    const DisparityBound& bound = schedule.disparities[i];
    rows.push_back({limit.name, problem.stages[limit.stage].name, ms_text(bound.bound), ms_text(limit.limit),
                    ms_text(limit.limit - bound.bound)});
    if (bound.bound > limit.limit) rows.back().push_back("EXCEEDED");
    terms += "  " + limit.name + ": " + bound.terms + "\n";
  }
  return "\nDisparity of the stamps that one job brings together\n" + columns(rows, 2, 5) + terms;
}

std::string table_text(const Problem& problem, const Schedule& schedule) {
  std::vector<std::vector<std::string>> rows{{"stage", "job", "on", "start", "end", "inputs"}};
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, const Binding*> bound;  // by stage, job, input
  for (const Binding& binding : schedule.bindings) bound[{binding.stage, binding.job, binding.input}] = &binding;
  for (const Slot& slot : schedule.slots) {
    std::string inputs;
    // Inputs are latched where the job begins.
    for (std::uint32_t i = 0; slot.segment == 0 && i < problem.stages[slot.stage].inputs.size(); ++i) {
      const Input& input = problem.stages[slot.stage].inputs[i];
      std::string entry;
      if (input.from_sensor) {
        entry = problem.sensors[input.source].name;
      } else if (const auto found = bound.find({slot.stage, slot.job, i}); found != bound.end()) {
        const Binding& binding = *found->second;
        entry = problem.stages[input.source].name + "#" + std::to_string(binding.producer_job);
        if (binding.producer_shift != 0) entry += "(" + std::to_string(binding.producer_shift) + ")";
      }
      inputs += (inputs.empty() ? "" : " ") + entry;
    }
    rows.push_back({problem.stages[slot.stage].name, job_text(schedule, slot), place_text(problem, slot),
                    ms_text({schedule.clock.start_at(0, slot.start).ns}),
                    ms_text({schedule.clock.end_at(0, slot.end).ns}), inputs});
  }
  return "\nTable (start and end in the hyperperiod; an input #j(-1) is a job of the hyperperiod before)\n" +
         columns(rows, 3, 5);
}

std::string stages_text(const Problem& problem, const Schedule& schedule, const BudgetScale& scale) {
  std::vector<std::vector<std::string>> rows{{"stage", "variant", "rate", "cores", "budget", "largest factor", "from"}};
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    const Choice& choice = schedule.choices[stage];
    char factor[32];
    std::snprintf(factor, sizeof factor, scale.stages[stage] > 0 ? "x %.3f" : "-", scale.stages[stage]);
    rows.push_back({problem.stages[stage].name, problem.stages[stage].variants[choice.variant].name,
                    hz_text(problem, choice.rate), std::to_string(choice.budget.cores), ms_text(choice.budget.time),
                    factor, provenance_text(choice.budget)});
  }
  return "\nStages (largest factor: on this budget alone, with the table kept and every limit met; -: none)\n" +
         columns(rows, 2, 6);
}

// What one skipped job costs, stage by stage of every chain; left out for tables of hundreds of rows.
std::string skips_text(const Problem& problem, const Schedule& schedule) {
  std::size_t count = 0;
  for (const Chain& chain : problem.chains) count += chain.stages.size();
  if (count == 0 || count >= 40) return "";
  std::vector<std::vector<std::string>> rows{
      {"chain", "one job skipped of", "reaction", "age at output", "until replaced"}};
  for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
    for (const std::uint32_t stage : problem.chains[c].stages) {
      std::vector<std::int64_t> skips(problem.stages.size(), 0);
      skips[stage] = 1;
      const ChainBound bound = walk_with_skips(problem, schedule, c, skips);
      rows.push_back({stage == problem.chains[c].stages.front() ? problem.chains[c].name : "",
                      problem.stages[stage].name, ms_text(bound.bounds[1]), ms_text(bound.bounds[2]),
                      ms_text(bound.bounds[3])});
    }
  }
  return "\nIf a job is skipped (its consumers use the output before)\n" + columns(rows, 2, 5);
}

std::string levels_text(const Answer& answer) {
  if (answer.levels.empty()) return "";
  std::vector<std::vector<std::string>> rows{{"level", "table", "no table below", "gap"}};
  for (const Level& level : answer.levels) {
    char value[32];
    char bound[32];
    std::snprintf(value, sizeof value, "%.4f", level.value);
    std::snprintf(bound, sizeof bound, "%.4f", level.bound);
    // Beside nothing every gap is whole: it says nothing.
    rows.push_back({level.name, value, bound, level.bound > 0 || level.value <= 0 ? percent_text(level.gap()) : "-"});
  }
  return "\nObjective, most important first\n" + columns(rows, 1, 4) +
         "  no table below: no valid one with the same rates, variants and numbers of cores\n";
}

std::string loads_text(const Problem& problem, const Schedule& schedule, double kept,
                       std::optional<double> with_new_table) {
  std::vector<std::vector<std::string>> rows{
      {"core", "planned", "reserve", "free", "longest busy stretch", "fullest second"}};
  for (const CoreLoad& load : core_loads(problem, schedule)) {
    rows.push_back({load.core, percent_text(load.share), percent_text(load.reserve),
                    percent_text(1.0 - load.share - load.reserve), ms_text(load.longest_busy),
                    percent_text(load.fullest_second)});
  }
  std::string scale = "  no factor on all budgets makes this table meet its limits\n";
  char factor[160];
  if (kept > 0) {
    std::snprintf(factor, sizeof factor,
                  kept < 1 ? "  with all budgets at %.3f of what they are this table would meet its limits\n"
                           : "  all budgets may grow by a factor of %.3f with this table kept\n",
                  kept);
    scale = factor;
  }
  std::string out = "\nUtilisation\n" + columns(rows, 1, 6);
  if (!problem.board.units.empty()) {
    std::vector<std::vector<std::string>> units{{"unit", "planned", "guards", "free"}};
    for (const UnitLoad& load : unit_loads(problem, schedule)) {
      const double guards = static_cast<double>(load.guards.ns) / static_cast<double>(problem.hyperperiod.ns);
      units.push_back(
          {load.unit, percent_text(load.share - guards), percent_text(guards), percent_text(1.0 - load.share)});
    }
    out += columns(units, 1, 4);
  }
  out += scale;
  if (with_new_table) {
    std::snprintf(factor, sizeof factor, "  with a new table by at least %.2f\n", *with_new_table);
    out += factor;
  }
  return out;
}

std::string comparisons_text(const Problem& problem, const std::vector<Comparison>& comparisons) {
  if (comparisons.empty()) return "";
  std::vector<std::vector<std::string>> rows{
      {"chain", "this table", "first found", "epoch barriers", "Davare 2007", "Duerr 2019", "Kloda 2018"}};
  const auto text = [](const std::optional<Duration>& d) { return d ? ms_text(*d) : std::string("-"); };
  for (const Comparison& c : comparisons) {
    rows.push_back({problem.chains[c.chain].name, ms_text(c.table), text(c.first_found), text(c.epoch_barriers),
                    ms_text(c.davare), ms_text(c.duerr), text(c.kloda)});
  }
  return "\nReaction beside what others would run or promise\n" + columns(rows, 1, 7);
}

}  // namespace

std::string explain(const Problem& problem, const Answer& answer, std::size_t width, const Beside& beside) {
  std::string out = header(problem, answer, beside.interrupted) + remedies_text(beside.remedies);
  if (!answer.schedule) return out;
  const Schedule& schedule = *answer.schedule;
  char clock[160];
  std::snprintf(clock, sizeof clock, "\nHyperperiod %s, %lld ticks of %.1f ns, %zu slots, schedule %s\n",
                ms_text(problem.hyperperiod).c_str(), static_cast<long long>(schedule.clock.ticks),
                static_cast<double>(problem.hyperperiod.ns) / static_cast<double>(schedule.clock.ticks),
                schedule.slots.size(), schedule.hash().hex().c_str());
  const BudgetScale scale = budget_scale(problem, schedule);
  return out + clock + gantt(problem, schedule, width) + bounds_text(problem, schedule) +
         disparities_text(problem, schedule) + hold_over_text(problem, schedule) + skips_text(problem, schedule) +
         levels_text(answer) + stages_text(problem, schedule, scale) + table_text(problem, schedule) +
         loads_text(problem, schedule, scale.all, beside.scale_with_new_table) +
         comparisons_text(problem, beside.comparisons);
}

std::vector<Comparison> comparisons(const Problem& problem, const Schedule& schedule, const Schedule* first_found) {
  std::vector<Comparison> out;
  const analysis::Instants instants(problem, schedule);
  for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
    const Chain& chain = problem.chains[c];
    const Sensor& sensor = problem.sensors[chain.sensor];
    // What the sensor adds in front of any of them: with any phase.
    const Duration sensor_terms =
        longest_period(sensor) + sensor.delay_max + (sensor.phase ? sensor.phase->jitter : Duration{});
    std::vector<BaselineTask> spaced;    // by the longest distance of two starts
    std::vector<BaselineTask> released;  // at whole periods
    std::vector<TraceTask> barriers;
    bool released_in_time = true;
    Duration sum;
    for (const std::uint32_t stage : chain.stages)
      sum += Duration{problem.hyperperiod.ns / schedule.choices[stage].rate};
    const std::int64_t hyperperiods = 4 + 4 * (sum.ns / problem.hyperperiod.ns + 1);
    for (const std::uint32_t stage : chain.stages) {
      const std::int64_t rate = schedule.choices[stage].rate;
      const std::int64_t period = problem.hyperperiod.ns / rate;
      BaselineTask own{0, 0, true};
      BaselineTask periodic{period, 0, true};
      std::vector<std::int64_t> starts;
      for (std::int64_t job = 0; job < rate; ++job) {
        const std::int64_t start = instants.start(stage, job);
        const std::int64_t end = instants.end(stage, job);
        own.response = std::max(own.response, end - start);
        released_in_time &= start >= job * period;
        periodic.response = std::max(periodic.response, end - job * period);
        starts.push_back(start);
      }
      for (std::size_t k = 0; k < starts.size(); ++k) {
        const std::int64_t next = k + 1 < starts.size() ? starts[k + 1] : starts.front() + problem.hyperperiod.ns;
        own.period = std::max(own.period, next - starts[k]);
      }
      TraceTask barrier;
      for (std::int64_t k = 0; k < hyperperiods * rate; ++k) {
        barrier.reads.push_back(k * problem.hyperperiod.ns / rate);
        barrier.writes.push_back((k + 1) * problem.hyperperiod.ns / rate);
      }
      barriers.push_back(std::move(barrier));
      spaced.push_back(own);
      released.push_back(periodic);
    }
    const std::int64_t from = hyperperiods / 2 * problem.hyperperiod.ns;
    const Result<TraceBounds> barrier = walk_trace(barriers, from, from + problem.hyperperiod.ns);
    const auto with_sensor = [&](std::int64_t ns) { return Duration{ns} + sensor_terms; };
    Comparison& row = out.emplace_back();
    row.chain = c;
    row.table = walk(problem, schedule, c).bounds[1];
    if (first_found != nullptr) row.first_found = walk(problem, *first_found, c).bounds[1];
    if (barrier) row.epoch_barriers = with_sensor(barrier->reaction);
    row.davare = with_sensor(davare(spaced));
    row.duerr = with_sensor(duerr_reaction(spaced));
    if (released_in_time) {
      if (const std::optional<std::int64_t> kloda = kloda_reaction(released)) row.kloda = with_sensor(*kloda);
    }
  }
  return out;
}

std::string to_json(const Problem& problem, const Answer& answer, const Beside& beside) {
  using Json = nlohmann::ordered_json;
  Json root;
  root["verdict"] = name_of(answer.verdict);
  root["problem"] = problem.name;
  root["board"] = problem.board.name;
  root["reason"] = answer.reason;
  root["notes"] = answer.notes;
  if (answer.verdict != Verdict::kFeasible) {
    root["remedies"] = Json::array();
    for (const Remedy& remedy : beside.remedies)
      root["remedies"].push_back({{"what_if", remedy.change}, {"words", remedy.words}});
  }
  root["reproducible"] = !answer.cut_by_time;
  if (answer.certificate) root["certificate"] = Json::parse(certificate_json(problem, *answer.certificate));
  if (answer.schedule) {
    const Schedule& schedule = *answer.schedule;
    root["hash"] = schedule.hash().hex();
    root["hyperperiod_ns"] = problem.hyperperiod.ns;
    root["ticks"] = schedule.clock.ticks;
    const BudgetScale scale = budget_scale(problem, schedule);
    root["budget_scale"] = scale.all;
    if (beside.scale_with_new_table) root["budget_scale_new_table"] = *beside.scale_with_new_table;
    root["levels"] = Json::array();
    for (const Level& level : answer.levels) {
      root["levels"].push_back({{"name", level.name},
                                {"value", level.value},
                                {"bound", level.bound},
                                {"gap", level.bound > 0 || level.value <= 0 ? Json(level.gap()) : Json(nullptr)}});
    }
    root["stages"] = Json::array();
    for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
      const Choice& choice = schedule.choices[stage];
      root["stages"].push_back({{"name", problem.stages[stage].name},
                                {"variant", problem.stages[stage].variants[choice.variant].name},
                                {"rate_hz", static_cast<double>(choice.rate) / problem.hyperperiod.seconds()},
                                {"jobs_per_hyperperiod", choice.rate},
                                {"cores", choice.budget.cores},
                                {"budget_ns", choice.budget.time.ns},
                                {"provenance", name_of(choice.budget.provenance)},
                                {"samples", choice.budget.samples},
                                {"margin", choice.budget.margin},
                                {"high_water_ns", choice.budget.high_water.ns},
                                {"budget_scale", scale.stages[stage]}});
    }
    root["slots"] = Json::array();
    for (const Slot& slot : schedule.slots) {
      Json cores = Json::array();
      for (const std::uint32_t core : slot.cores) cores.push_back(problem.board.cores[core].name);
      root["slots"].push_back({{"stage", problem.stages[slot.stage].name},
                               {"job", slot.job},
                               {"segment", slot.segment},
                               {"cores", cores},
                               {"unit", slot.unit ? Json(problem.board.units[*slot.unit].name) : Json(nullptr)},
                               {"start_ticks", slot.start},
                               {"end_ticks", slot.end},
                               {"start_ns", schedule.clock.start_at(0, slot.start).ns},
                               {"end_ns", schedule.clock.end_at(0, slot.end).ns}});
    }
    root["bindings"] = Json::array();
    for (const Binding& binding : schedule.bindings) {
      root["bindings"].push_back({{"stage", problem.stages[binding.stage].name},
                                  {"job", binding.job},
                                  {"input", problem.stages[binding.stage].inputs[binding.input].name},
                                  {"producer", problem.stages[binding.producer_stage].name},
                                  {"producer_job", binding.producer_job},
                                  {"producer_shift", binding.producer_shift}});
    }
    root["chains"] = Json::array();
    for (const ChainBound& bound : schedule.bounds) {
      const Chain& chain = problem.chains[bound.chain];
      Json entry{{"name", chain.name}, {"terms", bound.terms}};
      for (std::size_t q = 0; q < kQuantities; ++q) {
        entry[std::string(kQuantityKeys[q]) + "_ns"] = bound.bounds[q].ns;
        entry[std::string(kQuantityKeys[q]) + "_limit_ns"] =
            chain.limits[q] ? Json(chain.limits[q]->ns) : Json(nullptr);
      }
      root["chains"].push_back(std::move(entry));
    }
    root["disparities"] = Json::array();
    for (std::size_t i = 0; i < schedule.disparities.size(); ++i) {
      const Disparity& limit = problem.disparities[i];
      root["disparities"].push_back({{"name", limit.name},
                                     {"stage", problem.stages[limit.stage].name},
                                     {"bound_ns", schedule.disparities[i].bound.ns},
                                     {"limit_ns", limit.limit.ns},
                                     {"terms", schedule.disparities[i].terms}});
    }
    root["hold_over"] = Json::array();
    for (std::uint32_t c = 0; problem.phase_lock && c < problem.chains.size(); ++c) {
      if (problem.chains[c].sensor != problem.phase_lock->sensor) continue;
      const ChainBound bound = walk(holding_over(problem), schedule, c);
      Json entry{{"name", problem.chains[c].name}};
      for (std::size_t q = 0; q < kQuantities; ++q) entry[std::string(kQuantityKeys[q]) + "_ns"] = bound.bounds[q].ns;
      root["hold_over"].push_back(std::move(entry));
    }
    root["cores"] = Json::array();
    for (const CoreLoad& load : core_loads(problem, schedule)) {
      root["cores"].push_back({{"name", load.core},
                               {"busy_ns", load.busy.ns},
                               {"reserve", load.reserve},
                               {"longest_busy_ns", load.longest_busy.ns},
                               {"fullest_second", load.fullest_second}});
    }
    root["units"] = Json::array();
    for (const UnitLoad& load : unit_loads(problem, schedule)) {
      root["units"].push_back({{"name", load.unit}, {"busy_ns", load.busy.ns}, {"guards_ns", load.guards.ns}});
    }
  }
  if (!beside.comparisons.empty()) {
    const auto ns = [](const std::optional<Duration>& d) { return d ? Json(d->ns) : Json(nullptr); };
    root["comparisons"] = Json::array();
    for (const Comparison& c : beside.comparisons) {
      root["comparisons"].push_back({{"chain", problem.chains[c.chain].name},
                                     {"reaction_ns", c.table.ns},
                                     {"first_found_ns", ns(c.first_found)},
                                     {"epoch_barriers_ns", ns(c.epoch_barriers)},
                                     {"davare_ns", c.davare.ns},
                                     {"duerr_ns", c.duerr.ns},
                                     {"kloda_ns", ns(c.kloda)}});
    }
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace takt::sched
