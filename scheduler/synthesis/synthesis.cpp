#include "scheduler/synthesis/synthesis.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "scheduler/model/text.h"
#include "scheduler/synthesis/exact.h"
#include "scheduler/synthesis/lower_bounds.h"
#include "scheduler/synthesis/options.h"
#include "scheduler/synthesis/search.h"

namespace takt::sched {
namespace {

constexpr std::size_t kMostCombinations = 4096;

// What of a stage a user can see in the output: rate and variant. The core count is only a means.
struct Quality {
  std::size_t rate = 0;     // index into Stage::rates
  std::size_t variant = 0;  // index into Stage::variants
  [[nodiscard]] std::size_t given_up() const { return rate + variant; }
};
using Qualities = std::vector<Quality>;  // by stage

std::vector<Choice> choices_of(const Stage& stage, const Quality& quality) {
  std::vector<Choice> out;
  for (const Budget& budget : stage.variants[quality.variant].budgets) {
    out.push_back({stage.rates[quality.rate], static_cast<std::uint32_t>(quality.variant), budget});
  }
  return out;
}

// Calls `visit` with every vector whose entry i lies below sizes[i] and whose sum of costs is `total`, in lexicographic
// order, until it returns false. Returns false when stopped.
bool visit_with_sum(const std::vector<std::vector<std::size_t>>& costs, std::size_t total,
                    const std::function<bool(const std::vector<std::size_t>&)>& visit) {
  std::vector<std::size_t> pick(costs.size(), 0);
  std::function<bool(std::size_t, std::size_t)> descend = [&](std::size_t at, std::size_t left) {
    if (at == costs.size()) return left != 0 || visit(pick);
    for (std::size_t i = 0; i < costs[at].size(); ++i) {
      if (costs[at][i] > left) continue;
      pick[at] = i;
      if (!descend(at + 1, left - costs[at][i])) return false;
    }
    return true;
  };
  return descend(0, total);
}

// Every combination of rate and variant, those that give up least first, at most kMostCombinations.
std::vector<Qualities> qualities_in_order(const Problem& problem, bool& complete) {
  std::vector<std::vector<Quality>> per_stage;
  std::vector<std::vector<std::size_t>> costs;
  std::size_t most = 0;
  for (const Stage& stage : problem.stages) {
    std::vector<Quality> list;
    for (std::size_t rate = 0; rate < stage.rates.size(); ++rate) {
      for (std::size_t variant = 0; variant < stage.variants.size(); ++variant) list.push_back({rate, variant});
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Quality& a, const Quality& b) { return a.given_up() < b.given_up(); });
    costs.emplace_back();
    for (const Quality& quality : list) costs.back().push_back(quality.given_up());
    most += costs.back().back();
    per_stage.push_back(std::move(list));
  }
  std::vector<Qualities> out;
  complete = true;
  for (std::size_t total = 0; total <= most && complete; ++total) {
    complete = visit_with_sum(costs, total, [&](const std::vector<std::size_t>& pick) {
      if (out.size() == kMostCombinations) return false;
      Qualities qualities;
      for (std::size_t stage = 0; stage < pick.size(); ++stage) qualities.push_back(per_stage[stage][pick[stage]]);
      out.push_back(std::move(qualities));
      return true;
    });
  }
  return out;
}

// Core counts for one combination of qualities: as listed first, then with ever more stages off their first choice.
std::vector<Choices> gangs_in_order(const Problem& problem, const Qualities& qualities, bool& complete) {
  std::vector<std::vector<Choice>> per_stage;
  std::vector<std::vector<std::size_t>> costs;
  std::size_t most = 0;
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    per_stage.push_back(choices_of(problem.stages[stage], qualities[stage]));
    std::erase_if(per_stage.back(), [&](const Choice& choice) {
      return static_cast<std::size_t>(choice.budget.cores) > problem.board.cores.size();
    });
    costs.emplace_back();
    for (std::size_t i = 0; i < per_stage.back().size(); ++i) costs.back().push_back(i);
    if (costs.back().empty()) return {};
    most += costs.back().back();
  }
  std::vector<Choices> out;
  complete = true;
  for (std::size_t total = 0; total <= most && complete; ++total) {
    complete = visit_with_sum(costs, total, [&](const std::vector<std::size_t>& pick) {
      if (out.size() == 64) return false;
      Choices choices;
      for (std::size_t stage = 0; stage < pick.size(); ++stage) choices.push_back(per_stage[stage][pick[stage]]);
      out.push_back(std::move(choices));
      return true;
    });
  }
  return out;
}

Schedule to_schedule(const Problem& problem, const Table& table) {
  Schedule schedule;
  schedule.clock = table.clock();
  schedule.choices = table.choices();
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    const Placement& placement = table.at(stage);
    for (std::uint32_t job = 0; job < placement.starts.size(); ++job) {
      const Tick start = placement.starts[job];
      const std::vector<Segment> segments = segments_of(table.choices()[stage].budget);
      const std::vector<Step> steps = table.steps(stage, placement.cores);
      for (std::uint32_t segment = 0; segment < segments.size(); ++segment) {
        const Tick begin = placement.segment_start(job, segment);
        const Segment& of = segments[segment];
        schedule.slots.push_back({stage, job, of.unit ? std::vector<std::uint32_t>{} : placement.cores, begin,
                                  begin + steps[segment].length, segment, of.unit});
      }
      for (std::uint32_t input = 0; input < problem.stages[stage].inputs.size(); ++input) {
        const Input& from = problem.stages[stage].inputs[input];
        if (from.from_sensor) continue;
        const Placement& producer = table.at(from.source);
        const auto jobs = static_cast<std::int64_t>(producer.starts.size());
        const std::int64_t bound = table.newest(producer, placement.cores, start);
        const std::int64_t shift = floor_div(bound, jobs);
        schedule.bindings.push_back({stage, job, input, from.source, static_cast<std::uint32_t>(bound - shift * jobs),
                                     static_cast<std::int32_t>(shift)});
      }
    }
  }
  std::sort(schedule.slots.begin(), schedule.slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.start, a.stage, a.job, a.segment) < std::tie(b.start, b.stage, b.job, b.segment);
  });
  const Evaluator evaluator(problem);
  for (std::uint32_t chain = 0; chain < problem.chains.size(); ++chain) {
    schedule.bounds.push_back(evaluator.describe(table, chain));
  }
  for (const Disparity& limit : problem.disparities) schedule.disparities.push_back(evaluator.disparity(table, limit));
  return schedule;
}

// The levels of the objective, each with what no valid table can be better than (Level); `worst` as proved.
std::vector<Level> levels_of(const Problem& problem, const Table& table, double worst) {
  const Score score = Evaluator(problem).score(table);
  Options options;
  for (const Choice& choice : table.choices()) options.push_back({choice});
  double sum = 0;
  for (std::uint32_t chain = 0; chain < problem.chains.size(); ++chain) {
    const auto least = least_bounds(problem, options, chain);
    bool limited = false;
    for (std::size_t q = 0; q < kQuantities; ++q) {
      const std::optional<Duration>& limit = problem.chains[chain].limits[q];
      if (!limit) continue;
      limited = true;
      sum += static_cast<double>(least[q].ns) / static_cast<double>(limit->ns);
    }
    if (!limited) sum += static_cast<double>(least[0].ns) / static_cast<double>(problem.hyperperiod.ns);
  }
  std::vector<Level> levels = {{"worst bound / limit", score.worst, worst},
                               {"sum of bound / limit", score.sum, sum},
                               {"unevenness of starts / period", score.jitter, 0}};
  if (!problem.disparities.empty()) {
    levels.push_back({"worst disparity / limit", score.disparity, least_worst_disparity(problem)});
  }
  return levels;
}

// What the maximum of bound / limit cannot be below for these choices, by arithmetic alone.
double least_worst(const Problem& problem, const Choices& choices) {
  Options options;
  for (const Choice& choice : choices) options.push_back({choice});
  double worst = least_worst_ratio(problem, options);
  for (std::uint32_t chain = 0; chain < problem.chains.size(); ++chain) {
    const auto least = least_bounds(problem, options, chain);
    for (std::size_t q = 0; q < kQuantities; ++q) {
      const std::optional<Duration>& limit = problem.chains[chain].limits[q];
      if (limit) worst = std::max(worst, static_cast<double>(least[q].ns) / static_cast<double>(limit->ns));
    }
  }
  return worst;
}

// Which limits a table breaks, and by how much.
std::string broken_limits(const Problem& problem, const Schedule& schedule) {
  std::vector<std::string> parts;
  Options chosen;
  for (const Choice& choice : schedule.choices) chosen.push_back({choice});
  for (const ChainBound& bound : schedule.bounds) {
    const Chain& chain = problem.chains[bound.chain];
    const auto least = least_bounds(problem, chosen, bound.chain);
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (!chain.limits[q] || bound.bounds[q] <= *chain.limits[q]) continue;
      parts.push_back("chain '" + chain.name + "' has a " + name_of(static_cast<Quantity>(q)) + " of " +
                      ms_text(bound.bounds[q]) + ", " + ms_text(bound.bounds[q] - *chain.limits[q]) +
                      " above its limit (" + bound.terms + "); no table with these choices has less than " +
                      ms_text(least[q]));
    }
  }
  for (std::size_t d = 0; d < problem.disparities.size(); ++d) {
    const Disparity& limit = problem.disparities[d];
    const DisparityBound& found = schedule.disparities[d];
    if (found.bound <= limit.limit) continue;
    parts.push_back("the samples that '" + problem.stages[limit.stage].name + "' brings together lie up to " +
                    ms_text(found.bound) + " apart, " + ms_text(found.bound - limit.limit) + " above the limit of '" +
                    limit.name + "' (" + found.terms + ")");
  }
  return list_text(parts);
}

std::string rate_text(const Problem& problem, std::int64_t rate) {
  const double hz = static_cast<double>(rate) * 1e9 / static_cast<double>(problem.hyperperiod.ns);
  std::string text = std::to_string(hz);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " Hz";
}

// `why`: what kept the preferred combination from being taken.
void note_what_was_given_up(const Problem& problem, const Schedule& schedule, const std::string& why,
                            std::vector<std::string>& notes) {
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    const Stage& s = problem.stages[stage];
    const Choice& choice = schedule.choices[stage];
    std::vector<std::string> parts;
    if (choice.variant != 0) {
      parts.push_back("variant '" + s.variants[choice.variant].name + "' instead of '" + s.variants.front().name + "'");
    }
    if (choice.rate != s.rates.front()) {
      parts.push_back(rate_text(problem, choice.rate) + " instead of " + rate_text(problem, s.rates.front()));
    }
    const int preferred = s.variants[choice.variant].budgets.front().cores;
    if (choice.budget.cores != preferred) {
      parts.push_back(std::to_string(choice.budget.cores) + (choice.budget.cores == 1 ? " core" : " cores") +
                      " instead of " + std::to_string(preferred));
    }
    if (!parts.empty()) notes.push_back("stage '" + s.name + "' runs with " + list_text(parts));
  }
  if (!notes.empty()) notes.push_back("the preferred choices were not possible: " + why);
}

}  // namespace

namespace {

// A conflict of the exact search costs about as much as so many candidate positions.
constexpr std::uint64_t kNodesOfAConflict = 40;

// Closes in on the best worst ratio from below, where proofs are short and tables just above them are most wanted,
// until what is proved and what was found differ by less than a tick, or the nodes are used. Returns what is proved.
double close_gap(const Problem& problem, SearchResult& result, double proved, std::uint64_t& nodes,
                 const Deadline& deadline) {
  const ExactSearch exact(problem, result.table->choices());
  double longest = 0;
  for (const Chain& chain : problem.chains) {
    for (const std::optional<Duration>& limit : chain.limits) {
      if (limit) longest = std::max(longest, static_cast<double>(limit->ns));
    }
  }
  if (longest == 0 || !exact.fits(result.score.worst)) return proved;
  const TickClock& clock = result.table->clock();
  const double tick = static_cast<double>(clock.hyperperiod.ns) / static_cast<double>(clock.ticks) / longest;
  double step = std::max(tick, 0.0004 * proved);
  double open = 0;  // the largest ratio that the search could not decide
  while (result.score.worst - proved > tick && nodes > kNodesOfAConflict) {
    const double middle = (std::max(proved, open) + result.score.worst) / 2;
    const double target = std::min(std::max(proved, open) + step, middle);
    const ExactSearch::Outcome outcome =
        exact.find(target, &*result.table, nodes / kNodesOfAConflict / 2 + 1, deadline);
    nodes -= std::min(nodes, (outcome.conflicts + 1) * kNodesOfAConflict);
    bool better = false;
    if (outcome.table) {
      const Score score = Evaluator(problem).score(*outcome.table);
      better = score.better_than(result.score);
      if (better) result = {outcome.table, score};
    }
    if (outcome.stop == ExactSearch::Outcome::Stop::kNone) {
      proved = std::min(std::max(proved, outcome.refuted), result.score.worst);
      step *= 2;
    } else if (outcome.stop == ExactSearch::Outcome::Stop::kTable) {
      if (!better) break;
    } else {
      if (deadline.passed()) break;
      if (outcome.table || result.score.worst - target < 2 * tick) break;  // more than this search knows about
      open = target;
      step *= 4;
    }
  }
  return proved;
}

// Why no table exists for these options, "" when no rule says so.
std::string refusal(const Problem& problem, const Options& options) {
  if (const std::optional<Refutation> refutation = refute(problem, options)) return refutation->why;
  return refute_partition(problem, options);
}

}  // namespace

Answer synthesize(const Problem& problem, const SynthesisOptions& options) {
  Answer answer;
  if (Status status = check(problem); !status) {
    answer.reason = "the problem is not well-formed: " + status.error().message;
    return answer;
  }
  Options everything;
  for (const Stage& stage : problem.stages) everything.push_back(options_of(problem.board, stage));
  if (std::vector<Refutation> refutations = refute_in_every_way(problem, everything); !refutations.empty()) {
    answer.verdict = Verdict::kInfeasible;
    answer.reason = std::move(refutations.front().why);
    answer.certificate = std::make_shared<const Certificate>(std::move(refutations.front().certificate));
    for (std::size_t i = 1; i < refutations.size(); ++i) answer.notes.push_back("also " + refutations[i].why);
    return answer;
  }
  Deadline deadline{std::nullopt, options.stop};
  if (options.seconds > 0) {
    deadline.until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(options.seconds * 1e9));
  }
  const auto out_of_time = [&] { return deadline.passed(); };
  bool all_listed = true;
  std::string first_refusal;  // why the preferred combination was not taken
  std::size_t tried = 0;
  std::size_t refuted = 0;
  std::size_t exactly_refuted = 0;  // by search, for which there is no certificate
  std::uint64_t nodes = 0;
  SearchResult best;
  // One combination may not use up what the others need.
  const std::uint64_t share = std::max<std::uint64_t>(options.node_limit / 6, 1);
  for (const Qualities& qualities : qualities_in_order(problem, all_listed)) {
    if (out_of_time()) {
      all_listed = false;
      break;
    }
    Options left;
    for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
      left.push_back(choices_of(problem.stages[stage], qualities[stage]));
    }
    if (const std::string why = refusal(problem, left); !why.empty()) {
      if (first_refusal.empty()) first_refusal = why;
      ++refuted;
      continue;
    }
    bool gangs_listed = true;
    for (const Choices& choices : gangs_in_order(problem, qualities, gangs_listed)) {
      if (nodes >= options.node_limit || out_of_time()) break;
      Options single;
      for (const Choice& choice : choices) single.push_back({choice});
      if (const std::string why = refusal(problem, single); !why.empty()) {
        if (first_refusal.empty()) first_refusal = why;
        ++refuted;
        continue;
      }
      ++tried;
      Search search(problem, choices, options.seed, deadline);
      const std::uint64_t allowance = std::min(share, options.node_limit - nodes);
      SearchResult result = search.construct(allowance / 2);
      search.improve(result, allowance - allowance / 2, true);
      std::uint64_t exact_nodes = 0;
      bool none_exists = false;
      if (const ExactSearch exact(problem, choices); !(result.table && result.score.feasible()) && exact.fits(1)) {
        const ExactSearch::Outcome outcome =
            exact.find(1, result.table ? &*result.table : nullptr, allowance / kNodesOfAConflict + 1, deadline);
        exact_nodes = (outcome.conflicts + 1) * kNodesOfAConflict;
        none_exists = outcome.stop == ExactSearch::Outcome::Stop::kNone;
        if (outcome.table) {
          const Score score = Evaluator(problem).score(*outcome.table);
          if (!result.table || score.better_than(result.score)) result = {outcome.table, score};
        }
      }
      if (result.table && result.score.feasible()) {
        double proved = least_worst(problem, choices);
        if (!options.first_found) {
          std::uint64_t rest =
              options.node_limit - std::min(nodes + search.nodes_used() + exact_nodes, options.node_limit);
          // A quarter each to better tables in general and to what no table beats, the rest to the later criteria.
          const std::uint64_t first = std::min<std::uint64_t>(rest / 4, 100'000);
          search.improve(result, first, false);
          std::uint64_t closing = rest / 2;
          rest -= first + closing;
          proved = close_gap(problem, result, proved, closing, deadline);
          search.improve(result, rest + closing, false);
        }
        answer.verdict = Verdict::kFeasible;
        answer.cut_by_time = search.out_of_time();
        answer.schedule = to_schedule(problem, *result.table);
        answer.levels = levels_of(problem, *result.table, proved);
        note_what_was_given_up(problem, *answer.schedule, first_refusal, answer.notes);
        return answer;
      }
      nodes += search.nodes_used() + exact_nodes;
      exactly_refuted += none_exists ? 1 : 0;
      if (first_refusal.empty()) {
        first_refusal = result.table
                            ? "in the best table found, " + broken_limits(problem, to_schedule(problem, *result.table))
                            : "no table was found in which all its jobs fit on the cores";
      }
      if (result.table && (!best.table || result.score.better_than(best.score))) best = std::move(result);
    }
    all_listed &= gangs_listed;
    if (nodes >= options.node_limit || out_of_time()) {
      all_listed = false;
      break;
    }
  }
  std::optional<Certificate> certificate;
  const bool none = exactly_refuted == tried && all_listed;
  if (none) certificate = prove_infeasible(problem, options.node_limit, deadline);
  if (certificate) {
    answer.verdict = Verdict::kInfeasible;
    answer.certificate = std::make_shared<const Certificate>(std::move(*certificate));
    answer.reason = first_refusal;
    if (tried > 0) {
      answer.reason = "no order of the jobs around the hyperperiod, on any cores, keeps all limits; " + first_refusal;
    } else if (refuted > 1) {
      answer.reason += " (the other " + std::to_string(refuted - 1) +
                       " combinations of variant, rate and cores fall to the same rules)";
    }
    return answer;
  }
  answer.verdict = Verdict::kUndecided;
  answer.cut_by_time = out_of_time();
  const std::string within = deadline.stopped()   ? "before the search was stopped"
                             : answer.cut_by_time ? "in the time given"
                                                  : "within " + std::to_string(options.node_limit) + " nodes";
  if (tried == 0 && all_listed) {
    answer.reason = first_refusal + ". No proof that covers every choice was completed " + within + "; search longer";
    return answer;
  }
  answer.reason = "no table that meets every limit was found " + within + " (" + std::to_string(tried) +
                  (tried == 1 ? " combination" : " combinations") + " of variant, rate and cores tried), and " +
                  (tried > 0 && none ? "an exact search finds that none exists, but not in a way that can be replayed. "
                                     : "no rule proves that none exists. ");
  if (best.table) {
    answer.schedule = to_schedule(problem, *best.table);
    answer.levels = levels_of(problem, *best.table, least_worst(problem, best.table->choices()));
    answer.reason += "In the best table found, " + broken_limits(problem, *answer.schedule) +
                     ". Raise that limit, shorten a stage on the way, or search longer (--nodes)";
  } else {
    answer.reason +=
        "No table was found in which every job has its place, limits aside: search longer (--nodes), shorten the "
        "longest stages or their slack, or lower a rate";
  }
  return answer;
}

double resynthesised_scale(const Problem& problem, const Schedule& schedule, const SynthesisOptions& options) {
  const auto found = [&](std::int64_t hundredths) {
    Problem scaled = problem;
    for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
      const Choice& choice = schedule.choices[stage];
      Variant variant = problem.stages[stage].variants[choice.variant];
      variant.budgets = {choice.budget};
      Budget& budget = variant.budgets.front();
      const auto scale = [&](Duration& time) { time.ns = (time.ns * hundredths + 99) / 100; };
      if (budget.segments.empty()) scale(budget.time);
      if (!budget.segments.empty()) budget.time = {};
      for (Segment& segment : budget.segments) {
        scale(segment.time);
        budget.time += segment.time;
      }
      scaled.stages[stage].rates = {choice.rate};
      scaled.stages[stage].variants = {std::move(variant)};
    }
    return synthesize(scaled, options).verdict == Verdict::kFeasible;
  };
  constexpr std::int64_t kMost = 1600;
  if (!found(100)) return 0;
  std::int64_t holds = 100;
  std::int64_t fails = 200;
  while (fails <= kMost && found(fails)) {
    holds = fails;
    fails *= 2;
  }
  while (fails - holds > 1) {
    const std::int64_t middle = holds + (fails - holds) / 2;
    (found(middle) ? holds : fails) = middle;
  }
  return static_cast<double>(std::min(holds, kMost)) / 100.0;
}

}  // namespace takt::sched
