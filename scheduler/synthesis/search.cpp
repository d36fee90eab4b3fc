#include "scheduler/synthesis/search.h"

#include <algorithm>
#include <array>

#include "scheduler/model/table_time.h"

namespace takt::sched {
namespace {

constexpr std::size_t kMostAnchors = 96;
constexpr std::size_t kLeastAnchors = 12;
constexpr std::size_t kPositionsOfAPass = 10'000;  // of one list schedule: large problems try fewer places per stage

bool comes_before(const Problem& problem, std::size_t producer, std::size_t consumer) {
  for (const Input& input : problem.stages[consumer].inputs) {
    if (!input.from_sensor && !input.feedback && input.source == producer) return true;
  }
  return false;
}

}  // namespace

Search::Search(const Problem& problem, const Choices& choices, std::uint64_t seed, const Deadline& deadline)
    : problem_(&problem), choices_(choices), evaluator_(problem), random_(seed), deadline_(deadline) {
  const std::size_t stages = problem.stages.size();
  const std::size_t cores = problem.board.cores.size();
  core_sets_.resize(kMaxGang + 1);
  for (std::uint32_t a = 0; a < cores; ++a) {
    core_sets_[1].push_back({a});
    for (std::uint32_t b = a + 1; b < cores; ++b) core_sets_[2].push_back({a, b});
  }
  const auto budget = [&](std::size_t stage) { return static_cast<double>(choices_[stage].budget.time.ns); };
  std::size_t core_sets = 0;
  for (const Choice& choice : choices_) core_sets += core_sets_[static_cast<std::size_t>(choice.budget.cores)].size();
  most_anchors_ = std::clamp(kPositionsOfAPass / std::max<std::size_t>(core_sets, 1), kLeastAnchors, kMostAnchors);
  tail_.assign(stages, 0);
  for (std::size_t stage = stages; stage-- > 0;) {
    for (std::size_t consumer = stage + 1; consumer < stages; ++consumer) {
      if (comes_before(problem, stage, consumer)) tail_[stage] = std::max(tail_[stage], tail_[consumer]);
    }
    tail_[stage] += budget(stage);
  }
  slack_.assign(stages, 1e18);
  for (const Chain& chain : problem.chains) {
    double path = 0;
    for (const std::uint32_t stage : chain.stages) path += budget(stage);
    for (const std::optional<Duration>& limit : chain.limits) {
      if (!limit) continue;
      for (const std::uint32_t stage : chain.stages) {
        slack_[stage] = std::min(slack_[stage], static_cast<double>(limit->ns) - path);
      }
    }
  }
}

std::vector<std::size_t> Search::order(Rule rule) {
  const std::size_t stages = problem_->stages.size();
  // Smaller key first; ties keep the order of the file.
  std::vector<double> key(stages, 0);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const Choice& choice = choices_[stage];
    const auto budget = static_cast<double>(choice.budget.time.ns);
    switch (rule) {
      case Rule::kCriticalPath: key[stage] = -tail_[stage]; break;
      case Rule::kChainSlack: key[stage] = slack_[stage]; break;
      case Rule::kLoad: key[stage] = -budget * static_cast<double>(choice.rate * choice.budget.cores); break;
      case Rule::kDeadline: key[stage] = slack_[stage] + budget - tail_[stage]; break;
      case Rule::kRate: key[stage] = -static_cast<double>(choice.rate); break;
      case Rule::kFileOrder: break;
      case Rule::kPacking: key[stage] = -budget; break;
      case Rule::kRandom: key[stage] = static_cast<double>(below(1'000'000)); break;
    }
  }
  // Producers first, except where the only question is what fits: long slots then come before short ones.
  const bool any_order = rule == Rule::kPacking || (rule == Rule::kRandom && below(2) == 0);
  std::vector<std::size_t> out;
  std::vector<bool> done(stages, false);
  while (out.size() < stages) {
    std::optional<std::size_t> best;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      if (done[stage]) continue;
      bool ready = true;
      for (std::size_t other = 0; other < stage && !any_order; ++other) {
        ready &= done[other] || !comes_before(*problem_, other, stage);
      }
      if (ready && (!best || key[stage] < key[*best])) best = stage;
    }
    done[*best] = true;
    out.push_back(*best);
  }
  return out;
}

// Where a stage may usefully begin, modulo its period: when an input is there, when a consumer would just get the
// output, beside slots on the same cores, right after a locked sensor's sample, and a few random places.
std::vector<Tick> Search::anchors(const Table& table, std::size_t stage, const std::vector<std::uint32_t>& cores) {
  const Tick period = table.period(stage);
  const Tick length = table.length(stage, cores);
  std::vector<Tick> out;
  const auto add = [&](Tick tick) { out.push_back(floor_mod(tick, period)); };
  for (const Input& input : problem_->stages[stage].inputs) {
    if (input.from_sensor) {
      const Sensor sensor = in_table_time(*problem_, problem_->sensors[input.source]);
      const std::optional<SamplePattern> pattern = sample_pattern(sensor, problem_->hyperperiod);
      if (!pattern) continue;
      for (std::int64_t k = 0; k < std::min<std::int64_t>(pattern->samples, 64); ++k) {
        add(table.clock().ticks_up(
            sensor.phase->offset + sensor.phase->jitter + sensor.delay_max +
            Duration{k * pattern->hyperperiods * problem_->hyperperiod.ns / pattern->samples + 1}));
      }
    } else if (table.at(input.source).placed()) {
      const Placement& producer = table.at(input.source);
      for (const Tick end : producer.ends) add(end + table.crossing(producer, cores));
    }
  }
  for (std::size_t consumer = 0; consumer < problem_->stages.size(); ++consumer) {
    if (!comes_before(*problem_, stage, consumer) || !table.at(consumer).placed()) continue;
    for (const Tick start : table.at(consumer).starts) {
      add(start - length);
      add(start - length - table.clock().ticks_up(problem_->board.clock_error));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  // The neighbours of slots are many on a full core: a deterministic sample of them fills what is left.
  std::vector<Tick> beside{0};
  for (const Step& step : table.steps(stage, cores)) {
    for (const Step::Take& take : step.takes) {
      for (const Timeline::Interval& interval : table.line(take.line).intervals()) {
        beside.push_back(floor_mod(interval.end - step.offset, period));
        beside.push_back(floor_mod(interval.start - take.occupied - step.offset, period));
      }
    }
  }
  std::sort(beside.begin(), beside.end());
  beside.erase(std::unique(beside.begin(), beside.end()), beside.end());
  for (int i = 0; i < 2; ++i) beside.push_back(static_cast<Tick>(below(static_cast<std::uint64_t>(period))));
  while (out.size() > most_anchors_ / 2) out.erase(out.begin() + static_cast<std::ptrdiff_t>(below(out.size())));
  while (out.size() + beside.size() > most_anchors_) {
    beside.erase(beside.begin() + static_cast<std::ptrdiff_t>(below(beside.size())));
  }
  out.insert(out.end(), beside.begin(), beside.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Search::insert(Table& table, std::size_t stage, std::size_t pick) {
  struct Candidate {
    Score score;
    Placement placement;
  };
  std::vector<Candidate> best;  // the pick + 1 best
  for (const std::vector<std::uint32_t>& cores : core_sets_[static_cast<std::size_t>(choices_[stage].budget.cores)]) {
    for (const Tick anchor : anchors(table, stage, cores)) {
      ++nodes_;
      std::optional<Placement> placement = table.fit(stage, cores, anchor);
      if (!placement) continue;
      table.place(stage, *placement);
      const Score score = evaluator_.score(table, stage);
      table.remove(stage);
      const auto at = std::find_if(best.begin(), best.end(),
                                   [&](const Candidate& other) { return score.better_than(other.score); });
      if (at == best.end() && best.size() > pick) continue;
      best.insert(at, {score, std::move(*placement)});
      if (best.size() > pick + 1) best.pop_back();
    }
  }
  if (best.empty()) return false;
  table.place(stage, std::move(best.back().placement));
  return true;
}

SearchResult Search::construct(std::uint64_t nodes) {
  constexpr std::array kRules = {Rule::kCriticalPath, Rule::kChainSlack, Rule::kLoad,     Rule::kDeadline,
                                 Rule::kRate,         Rule::kPacking,    Rule::kFileOrder};
  const std::uint64_t end = nodes_ + nodes;
  SearchResult result;
  for (std::size_t round = 0; nodes_ < end && !out_of_time(); ++round) {
    const std::uint64_t before = nodes_;
    const bool greedy = round < kRules.size();
    Table table(*problem_, choices_);
    bool complete = true;
    for (const std::size_t stage : order(greedy ? kRules[round] : Rule::kRandom)) {
      complete = !out_of_time() && insert(table, stage, greedy ? 0 : below(3));
      if (!complete) break;
    }
    if (complete && table.idle_enough() && table.memory_enough()) {
      const Score score = evaluator_.score(table);
      if (!result.table || score.better_than(result.score)) {
        result.table = std::move(table);
        result.score = score;
      }
      if (result.score.feasible()) return result;
    }
    if (nodes_ == before) break;  // nothing can be tried at all, more rounds would not end
  }
  return result;
}

void Search::improve(SearchResult& result, std::uint64_t nodes, bool stop_when_feasible) {
  if (!result.table) return;
  const std::uint64_t end = nodes_ + nodes;
  const std::size_t stages = problem_->stages.size();
  const std::size_t patience = 20 + 12 * stages;
  for (std::size_t idle = 0; idle < patience && nodes_ < end && !out_of_time();) {
    if (stop_when_feasible && result.score.feasible()) return;
    Table table = *result.table;
    // Either random stages or the stages of one chain, which only together can move along the circle.
    std::vector<std::size_t> out;
    if (!problem_->chains.empty() && below(3) == 0) {
      const Chain& chain = problem_->chains[below(problem_->chains.size())];
      out.assign(chain.stages.begin(), chain.stages.end());
    } else {
      for (std::uint64_t n = 1 + below(std::min<std::size_t>(stages, 3)); n > 0; --n) out.push_back(below(stages));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    for (const std::size_t stage : out) table.remove(stage);
    if (below(2) == 0) std::reverse(out.begin(), out.end());
    bool complete = true;
    for (const std::size_t stage : out) {
      complete = complete && insert(table, stage, below(4) == 0 ? 1 : 0);
    }
    ++idle;
    if (!complete || !table.idle_enough() || !table.memory_enough()) continue;
    const Score score = evaluator_.score(table);
    if (!score.better_than(result.score)) {
      // Equally good tables are taken too, so that the search walks along plateaus.
      if (!result.score.better_than(score)) result.table = std::move(table);
      continue;
    }
    result.table = std::move(table);
    result.score = score;
    idle = 0;
  }
}

}  // namespace takt::sched
