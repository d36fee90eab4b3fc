#include "scheduler/analysis/certificate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

using Rule = Certificate::Rule;
using Cores = std::vector<std::uint32_t>;
using Json = nlohmann::ordered_json;

// The ways a stage may run, in the order in which a certificate must close them: by rate, then variant, then budget, as
// declared; a budget for more cores than the board has is no way.
std::vector<Choice> ways_to_run(const Board& board, const Stage& stage) {
  std::vector<Choice> ways;
  for (std::size_t way = 0; way < stage.rates.size() * stage.variants.size(); ++way) {
    const std::size_t variant = way % stage.variants.size();
    for (const Budget& budget : stage.variants[variant].budgets) {
      if (budget.cores > static_cast<int>(board.cores.size())) continue;
      ways.push_back({stage.rates[way / stage.variants.size()], static_cast<std::uint32_t>(variant), budget});
    }
  }
  return ways;
}

// Every set of k cores in lexicographic order: the last core that can still move up moves, those behind it follow.
std::vector<Cores> homes_of(const Board& board, int k) {
  std::vector<Cores> homes;
  const auto n = static_cast<std::uint32_t>(board.cores.size());
  const auto size = static_cast<std::uint32_t>(k);
  if (k < 1 || size > n) return homes;
  Cores set(size);
  for (std::uint32_t i = 0; i < size; ++i) set[i] = i;
  for (;;) {
    homes.push_back(set);
    std::uint32_t moving = size;
    while (moving > 0 && set[moving - 1] == n - size + moving - 1) --moving;
    if (moving == 0) return homes;
    ++set[moving - 1];
    for (std::uint32_t i = moving; i < size; ++i) set[i] = set[i - 1] + 1;
  }
}

class Checker {
 public:
  explicit Checker(const Problem& problem) : problem_(problem) {
    for (const Stage& stage : problem.stages) {
      options_.push_back(ways_to_run(problem.board, stage));
      fixed_option_.emplace_back();
      fixed_home_.emplace_back();
    }
  }

  Status check_part(const Certificate& part, const std::string& where) {
    switch (part.rule) {
      case Rule::kChain: return leaf(part, where, part.chain < problem_.chains.size() ? chain(part) : kUnknown);
      case Rule::kStage: return leaf(part, where, part.stage < problem_.stages.size() ? stage(part) : kUnknown);
      case Rule::kMemory: return leaf(part, where, memory());
      case Rule::kLoad: return leaf(part, where, known(part.cores) ? load(part.cores) : kUnknown);
      case Rule::kWindow: return leaf(part, where, known(part.cores) ? window(part) : kUnknown);
      case Rule::kUnit: return leaf(part, where, part.unit < problem_.board.units.size() ? unit(part) : kUnknown);
      case Rule::kMutex: return leaf(part, where, part.mutex < problem_.mutexes.size() ? mutex(part) : kUnknown);
      case Rule::kDisparity:
        return leaf(part, where, part.disparity < problem_.disparities.size() ? disparity(part) : kUnknown);
      case Rule::kSame: return refuse(where, "'same' stands for a whole problem");
      case Rule::kOptions: return options(part, where);
      case Rule::kHomes: return homes(part, where);
      case Rule::kOrder:
      case Rule::kReads: return branch(part, where);
      case Rule::kCircle: return circle(part, where);
    }
    return refuse(where, "unknown rule");
  }

 private:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

  static tl::unexpected<Error> refuse(const std::string& where, const std::string& why) {
    return fail(Code::kGate, "the certificate does not hold: " + where + ": " + why);
  }

  static Status leaf(const Certificate& part, const std::string& where, std::int64_t excess) {
    const std::string rule = name_of(part.rule);
    if (excess == kUnknown) return refuse(where, "rule '" + rule + "' speaks of something the problem does not have");
    if (excess < 1)
      return refuse(where, "rule '" + rule + "' does not close it: " + std::to_string(1 - excess) + " short");
    if (excess != part.excess) {
      return refuse(where, "rule '" + rule + "' gives an excess of " + std::to_string(excess) + ", stated is " +
                               std::to_string(part.excess));
    }
    return {};
  }

  Status options(const Certificate& part, const std::string& where) {
    if (part.stage >= problem_.stages.size()) return refuse(where, "unknown stage");
    if (fixed_option_[part.stage]) return refuse(where, "the stage's option was chosen before");
    const std::vector<Choice>& all = options_[part.stage];
    if (part.parts.size() != all.size()) {
      return refuse(where, std::to_string(part.parts.size()) + " parts for " + std::to_string(all.size()) +
                               " options of '" + problem_.stages[part.stage].name + "'");
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      fixed_option_[part.stage] = i;
      TAKT_RETURN_IF_ERROR(
          check_part(part.parts[i], where + " > " + problem_.stages[part.stage].name + " option " + std::to_string(i)));
    }
    fixed_option_[part.stage].reset();
    return {};
  }

  Status homes(const Certificate& part, const std::string& where) {
    if (part.stage >= problem_.stages.size()) return refuse(where, "unknown stage");
    if (!fixed_home_[part.stage].empty()) return refuse(where, "the stage's home was chosen before");
    const std::vector<Choice> left = choices(part.stage);
    if (left.empty() || std::any_of(left.begin(), left.end(), [&](const Choice& choice) {
          return choice.budget.cores != left.front().budget.cores;
        })) {
      return refuse(where, "the stage's number of cores is not known");
    }
    const std::vector<Cores> sets = homes_of(problem_.board, left.front().budget.cores);
    if (part.parts.size() != sets.size()) {
      return refuse(where, std::to_string(part.parts.size()) + " parts for " + std::to_string(sets.size()) +
                               " core sets of '" + problem_.stages[part.stage].name + "'");
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::string here = where + " > " + problem_.stages[part.stage].name + " on set " + std::to_string(i);
      if (part.parts[i].rule == Rule::kSame) {
        const auto like = std::find(sets.begin(), sets.end(), part.parts[i].cores);
        const auto at = static_cast<std::size_t>(like - sets.begin());
        if (like == sets.end() || at == i || part.parts[at].rule == Rule::kSame || !exchangeable(sets[i], *like)) {
          return refuse(here, "it is not the same as the set it names");
        }
        continue;
      }
      fixed_home_[part.stage] = sets[i];
      TAKT_RETURN_IF_ERROR(check_part(part.parts[i], here));
      fixed_home_[part.stage].clear();
    }
    return {};
  }

  // ---- orders of jobs and what they read ------------------------------------------------------------------------

  Status branch(const Certificate& part, const std::string& where) {
    if (part.stage >= problem_.stages.size() || part.other >= problem_.stages.size()) {
      return refuse(where, "unknown stage");
    }
    if (rate(part.stage) == 0 || rate(part.other) == 0) return refuse(where, "a stage's number of jobs is not known");
    if (!near({part.job, part.other_job})) return refuse(where, "a job too far away");
    if (part.rule == Rule::kOrder && (!one_slot(part.stage) || !one_slot(part.other))) {
      return refuse(where, "jobs of several segments may take turns on a core");
    }
    if (part.rule == Rule::kOrder && (part.stage == part.other || in_common(part.stage, part.other).empty())) {
      return refuse(where, "the two need not share a core");
    }
    if (part.parts.size() != 2) return refuse(where, std::to_string(part.parts.size()) + " parts of a branch into 2");
    for (const bool second : {false, true}) {
      decided_.push_back({&part, second});
      TAKT_RETURN_IF_ERROR(check_part(part.parts[second ? 1 : 0], where + (second ? " > no" : " > yes")));
      decided_.pop_back();
    }
    return {};
  }

  // Instants of tables lie on ticks, whose length is not known: their time is a fraction of a nanosecond. A start is
  // rounded up from it and an end down, so what holds for rounded instants holds within less than two nanoseconds.
  struct Instant {
    std::uint32_t stage = 0;
    std::int64_t job = 0;
    bool end = false;
  };
  struct Inequality {
    Instant from, to;
    std::int64_t least = 0;  // `to` comes at least that long behind `from`
    bool strict = false;     // longer
  };

  Status circle(const Certificate& part, const std::string& where) const {
    __extension__ using Wide = __int128;
    Wide time = 0;
    bool strict = false;
    std::optional<Instant> first;
    Instant at;
    for (std::size_t i = 0; i < part.steps.size(); ++i) {
      const std::string step = where + " > step " + std::to_string(i) + " (" + name_of(part.steps[i].kind) + ")";
      const std::optional<Inequality> next = inequality(part.steps[i]);
      if (!next) return refuse(step, "nothing that has been decided says so");
      if (!first) first = at = next->from;
      const std::int64_t jobs = at.job - next->from.job;
      if (at.stage != next->from.stage || at.end != next->from.end || jobs % rate(at.stage) != 0) {
        return refuse(step, "it does not begin where the step before it ends");
      }
      at = next->to;
      at.job += jobs / rate(next->from.stage) * rate(at.stage);
      time += next->least;
      strict |= next->strict;
    }
    if (!first || at.stage != first->stage || at.end != first->end || (at.job - first->job) % rate(at.stage) != 0) {
      return refuse(where, "the steps do not lead back to where they begin");
    }
    const std::int64_t turns = (at.job - first->job) / rate(at.stage);
    const Wide excess = time - static_cast<Wide>(turns) * problem_.hyperperiod.ns + (strict ? 1 : 0);
    constexpr Wide kMost = std::numeric_limits<std::int64_t>::max() / 2;
    return leaf(part, where, static_cast<std::int64_t>(std::clamp<Wide>(excess, -kMost, kMost)));
  }

  [[nodiscard]] std::optional<Inequality> inequality(const Certificate::Step& step) const {
    using Kind = Certificate::Step::Kind;
    if (step.kind == Kind::kLimit) return by_limit(step);
    if (step.stage >= problem_.stages.size() || step.other >= problem_.stages.size()) return std::nullopt;
    if (rate(step.stage) == 0 || rate(step.other) == 0 || !near({step.job, step.other_job})) return std::nullopt;
    const Instant start{step.stage, step.job, false};
    const Instant end{step.stage, step.job, true};
    const Instant other_start{step.other, step.other_job, false};
    const Instant other_end{step.other, step.other_job, true};
    switch (step.kind) {
      case Kind::kSlot: return Inequality{start, end, shortest(step.stage), false};
      case Kind::kNext: return Inequality{start, {step.stage, step.job + 1, false}, taken(step.stage, {}), false};
      case Kind::kFirst:
        if (rate(0) == 0) return std::nullopt;
        return Inequality{{0, 0, false}, {step.stage, 0, false}, 0, false};
      case Kind::kLast:
        if (rate(0) == 0) return std::nullopt;
        return Inequality{{step.stage, -1, false}, {0, 0, false}, 0, true};
      case Kind::kBefore: {
        if (!decided(Rule::kOrder, step.stage, step.job, step.other, step.other_job, false) &&
            !decided(Rule::kOrder, step.other, step.other_job, step.stage, step.job, true)) {
          return std::nullopt;
        }
        return Inequality{start, other_start, taken(step.stage, in_common(step.stage, step.other)), false};
      }
      case Kind::kThere:
        if (!decided(Rule::kReads, step.stage, step.job, step.other, step.other_job, false)) return std::nullopt;
        return Inequality{other_end, start, crossing(step.other, step.stage, 0), false};
      case Kind::kMissed:
        if (!decided(Rule::kReads, step.stage, step.job, step.other, step.other_job, true)) return std::nullopt;
        return Inequality{start, other_end, -crossing(step.other, step.stage, problem_.board.clock_error.ns), true};
      case Kind::kLimit: break;
    }
    return std::nullopt;
  }

  // Of a free-running sensor: how long after the start of a job of the chain's first stage an output may come at most.
  [[nodiscard]] std::optional<Inequality> by_limit(const Certificate::Step& step) const {
    if (step.chain >= problem_.chains.size()) return std::nullopt;
    const Chain& chain = problem_.chains[step.chain];
    const Sensor& sensor = problem_.sensors[chain.sensor];
    const std::optional<Duration>& limit = chain.limits[static_cast<std::size_t>(step.quantity)];
    if (!limit || sensor.phase || step.jobs.size() != chain.stages.size() || !near(step.jobs)) return std::nullopt;
    const bool forward = step.quantity == Quantity::kReaction || step.quantity == Quantity::kAgeUntilReplaced;
    bool once = true;  // each stage per hyperperiod: every output is the first of its sample
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      if (rate(chain.stages[i]) == 0) return std::nullopt;
      once &= rate(chain.stages[i]) == 1;
      if (i == 0) continue;
      const std::int64_t consumer = step.jobs[i] - (forward ? 1 : 0);
      const std::int64_t producer = step.jobs[i - 1] + (forward ? 0 : 1);
      if (!decided(Rule::kReads, chain.stages[i], consumer, chain.stages[i - 1], producer, true)) return std::nullopt;
    }
    std::int64_t period = longest_period(sensor).ns;
    if (step.quantity == Quantity::kLatency) {
      if (!once) return std::nullopt;
      period = std::min(period, problem_.hyperperiod.ns);
    }
    return Inequality{{chain.stages.back(), step.jobs.back(), true},
                      {chain.stages.front(), step.jobs.front() - (forward ? 1 : 0), false},
                      sensor.delay_max.ns + period - limit->ns - 2,
                      true};
  }

  [[nodiscard]] bool decided(Rule rule, std::uint32_t stage, std::int64_t job, std::uint32_t other,
                             std::int64_t other_job, bool second) const {
    return std::any_of(decided_.begin(), decided_.end(), [&](const Decision& decision) {
      const Certificate& branch = *decision.branch;
      if (branch.rule != rule || decision.second != second || branch.stage != stage || branch.other != other) {
        return false;
      }
      // The same in another hyperperiod.
      const std::int64_t jobs = job - branch.job;
      const std::int64_t other_jobs = other_job - branch.other_job;
      return jobs % rate(stage) == 0 && other_jobs % rate(other) == 0 && jobs / rate(stage) == other_jobs / rate(other);
    });
  }

  static bool near(const std::vector<std::int64_t>& jobs) {
    constexpr std::int64_t kFarthestJob = 1'000'000;
    return std::all_of(jobs.begin(), jobs.end(),
                       [](std::int64_t job) { return -kFarthestJob <= job && job <= kFarthestJob; });
  }
  // Jobs per hyperperiod; 0 where that is still open.
  [[nodiscard]] std::int64_t rate(std::uint32_t stage) const {
    const std::vector<Choice> left = choices(stage);
    if (left.empty()) return 0;
    const bool known =
        std::all_of(left.begin(), left.end(), [&](const Choice& choice) { return choice.rate == left.front().rate; });
    return known ? left.front().rate : 0;
  }
  [[nodiscard]] bool one_slot(std::uint32_t stage) const {
    const std::vector<Choice> left = choices(stage);
    return std::all_of(left.begin(), left.end(),
                       [](const Choice& choice) { return segments_of(choice.budget).size() == 1; });
  }
  // Cores that both have as home; none while a home is open.
  [[nodiscard]] Cores in_common(std::uint32_t a, std::uint32_t b) const {
    Cores both;
    for (const std::uint32_t core : fixed_home_[a]) {
      if (contains(fixed_home_[b], core)) both.push_back(core);
    }
    return both;
  }
  // From the start of a job until the next one may start on these cores (none: on any of its own), slack and share of
  // the reserve included.
  [[nodiscard]] std::int64_t taken(std::uint32_t stage, const Cores& cores) const {
    std::optional<std::int64_t> least;
    each_way(stage, [&](const Choice& choice, const Cores& home, std::int64_t length) {
      std::int64_t most = length;
      for (const std::uint32_t core : home) {
        if (segments_of(choice.budget).size() > 1 || (!cores.empty() && !contains(cores, core))) continue;
        // The pause is a matter of ticks and of a division, which together lose less than a nanosecond.
        const double with_reserve = static_cast<double>(length) / (1.0 - problem_.board.cores[core].reserve);
        most = std::max(most, static_cast<std::int64_t>(std::floor(with_reserve - 0.2)));
        most = std::max(most, length + free_behind(problem_, stage).ns - 2);
      }
      least = std::min(least.value_or(most), most);
    });
    return least.value_or(0);
  }
  // The clock error between an output and who reads it; `open` while the homes are not known, or which core of a gang
  // publishes.
  [[nodiscard]] std::int64_t crossing(std::uint32_t producer, std::uint32_t consumer, std::int64_t open) const {
    const Cores& from = fixed_home_[producer];
    const Cores& to = fixed_home_[consumer];
    if (from.empty() || to.empty()) return open;
    if (to.size() > 1 || !contains(from, to[0])) return problem_.board.clock_error.ns;
    return from.size() == 1 ? 0 : open;
  }

  // The sets differ by one core each, and nothing that has been decided tells these two cores apart.
  [[nodiscard]] bool exchangeable(const Cores& a, const Cores& b) const {
    Cores only_a;
    Cores only_b;
    for (const std::uint32_t core : a) {
      if (!contains(b, core)) only_a.push_back(core);
    }
    for (const std::uint32_t core : b) {
      if (!contains(a, core)) only_b.push_back(core);
    }
    if (only_a.size() != 1 || only_b.size() != 1) return false;
    const Core& x = problem_.board.cores[only_a[0]];
    const Core& y = problem_.board.cores[only_b[0]];
    if (x.reserve != y.reserve || x.wakeup_window != y.wakeup_window || x.publish_window != y.publish_window)
      return false;
    return std::none_of(fixed_home_.begin(), fixed_home_.end(),
                        [&](const Cores& home) { return contains(home, only_a[0]) != contains(home, only_b[0]); });
  }

  static bool contains(const Cores& cores, std::uint32_t core) {
    return std::find(cores.begin(), cores.end(), core) != cores.end();
  }
  [[nodiscard]] bool known(const Cores& cores) const {
    const std::set<std::uint32_t> distinct(cores.begin(), cores.end());
    return !cores.empty() && distinct.size() == cores.size() && *distinct.rbegin() < problem_.board.cores.size();
  }

  // ---- what is left to choose ---------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Choice> choices(std::uint32_t stage) const {
    if (!fixed_option_[stage]) return options_[stage];
    return {options_[stage][*fixed_option_[stage]]};
  }
  // The time of a job's slots, end to end, of those that `counts` names: w and budget of each, p of the last.
  template <class Counts>
  [[nodiscard]] std::int64_t time_of(const Choice& choice, const Cores& cores, const Counts& counts) const {
    std::int64_t wakeup = 0;
    std::int64_t publish = 0;
    for (const std::uint32_t core : cores) {
      wakeup = std::max(wakeup, problem_.board.cores[core].wakeup_window.ns);
      publish = std::max(publish, problem_.board.cores[core].publish_window.ns);
    }
    const std::vector<Segment> segments = segments_of(choice.budget);
    std::int64_t time = 0;
    for (const Segment& segment : segments) {
      if (!counts(segment)) continue;
      time += wakeup + segment.time.ns;
      if (&segment == &segments.back()) time += publish;
    }
    return time;
  }
  [[nodiscard]] std::int64_t on_cores(const Choice& choice, const Cores& cores) const {
    return time_of(choice, cores, [](const Segment& segment) { return !segment.unit; });
  }
  // What a line is taken for per hyperperiod, at least, beyond its length.
  template <class Counts>
  [[nodiscard]] std::int64_t line(const Counts& counts, bool with_guards) const {
    std::int64_t work = 0;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      std::optional<std::int64_t> least;
      each_way(stage, [&](const Choice& choice, const Cores& cores, std::int64_t) {
        const Variant& variant = problem_.stages[stage].variants[choice.variant];
        std::int64_t time = time_of(choice, cores, [&](const Segment& segment) { return counts(variant, segment); });
        for (const Segment& segment : choice.budget.segments) {
          if (with_guards && counts(variant, segment)) time += segment.guard.ns;
        }
        time *= choice.rate;
        least = std::min(least.value_or(time), time);
      });
      work += least.value_or(0);
    }
    return work - problem_.hyperperiod.ns;
  }
  // Calls `visit(choice, cores, length of a job)` for every way the stage may still run.
  template <class Visit>
  void each_way(std::uint32_t stage, const Visit& visit) const {
    for (const Choice& choice : choices(stage)) {
      std::vector<Cores> sets = homes_of(problem_.board, choice.budget.cores);
      if (!fixed_home_[stage].empty()) sets = {fixed_home_[stage]};
      for (const Cores& cores : sets) {
        if (cores.size() != static_cast<std::size_t>(choice.budget.cores)) continue;
        visit(choice, cores, time_of(choice, cores, [](const Segment&) { return true; }));
      }
    }
  }
  [[nodiscard]] std::int64_t shortest(std::uint32_t stage) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each_way(stage, [&](const Choice&, const Cores&, std::int64_t length) { least = std::min(least, length); });
    return least == std::numeric_limits<std::int64_t>::max() ? 0 : least;
  }
  [[nodiscard]] std::int64_t room(std::uint32_t core) const {
    return static_cast<std::int64_t>(
        std::floor(static_cast<double>(problem_.hyperperiod.ns) * (1.0 - idle_share(problem_.board.cores[core]))));
  }

  // ---- rules: by how much, in ns or bytes ---------------------------------------------------------------------

  [[nodiscard]] std::int64_t chain(const Certificate& part) const {
    const Chain& chain = problem_.chains[part.chain];
    const std::optional<Duration>& limit = chain.limits[static_cast<std::size_t>(part.quantity)];
    if (!limit) return kUnknown;
    const Sensor& sensor = problem_.sensors[chain.sensor];
    std::int64_t path = 0;
    std::int64_t uses = std::numeric_limits<std::int64_t>::max();  // of new samples per hyperperiod, at most
    for (const std::uint32_t stage : chain.stages) {
      path += shortest(stage);
      std::int64_t rate = 0;
      for (const Choice& choice : choices(stage)) rate = std::max(rate, choice.rate);
      uses = std::min(uses, rate);
    }
    if (uses < 1) return kUnknown;
    const std::int64_t apart = problem_.hyperperiod.ns / uses;  // two uses, somewhere in the hyperperiod
    std::int64_t sensor_terms = sensor.delay_max.ns;
    if (sensor.phase) {
      if (part.quantity != Quantity::kLatency) sensor_terms += sensor.phase->jitter.ns;
      if (part.quantity == Quantity::kReaction || part.quantity == Quantity::kAgeUntilReplaced) {
        sensor_terms += std::max(sensor.period.ns, apart);
      }
    } else {
      const std::int64_t period = longest_period(sensor).ns;
      switch (part.quantity) {
        case Quantity::kLatency: sensor_terms += std::min(period, apart); break;
        case Quantity::kAgeAtOutput: sensor_terms += period; break;
        case Quantity::kReaction:
        case Quantity::kAgeUntilReplaced: sensor_terms += period + apart; break;
      }
    }
    // Rounding to nanoseconds: less than two per slot and for the sensor.
    return path + sensor_terms - 2 * static_cast<std::int64_t>(chain.stages.size() + 1) - limit->ns;
  }

  [[nodiscard]] std::int64_t stage(const Certificate& part) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each_way(part.stage, [&](const Choice& choice, const Cores& cores, std::int64_t length) {
      std::int64_t most = length * choice.rate - problem_.hyperperiod.ns;
      for (const std::uint32_t core : cores) {
        most = std::max(most, on_cores(choice, cores) * choice.rate - room(core));
      }
      least = std::min(least, most);
    });
    return least == std::numeric_limits<std::int64_t>::max() ? 1 : least;  // no way at all: too few cores
  }

  [[nodiscard]] std::int64_t memory() const {
    if (problem_.board.memory == 0) return kUnknown;
    std::int64_t resident = 0;
    std::int64_t largest_arena = 0;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      std::optional<std::int64_t> least;
      std::optional<std::int64_t> least_arena;
      for (const Choice& choice : choices(stage)) {
        std::int64_t kept = 0;
        std::int64_t arena = 0;
        for (std::uint32_t v = 0; v < problem_.stages[stage].variants.size(); ++v) {
          const Variant& variant = problem_.stages[stage].variants[v];
          // The jobs of a choice run its variant, and the one that they degrade to.
          if (v != choice.variant && variant.name != problem_.stages[stage].degraded_variant) continue;
          kept += variant.resident;
          arena = std::max(arena, variant.arena);
        }
        least = std::min(least.value_or(kept), kept);
        least_arena = std::min(least_arena.value_or(arena), arena);
      }
      resident += least.value_or(0);
      largest_arena = std::max(largest_arena, least_arena.value_or(0));
    }
    return resident + largest_arena - problem_.board.memory;
  }

  [[nodiscard]] std::int64_t load(const Cores& cores) const {
    std::int64_t slots = 0;
    std::int64_t slots_and_slack = 0;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      std::optional<std::int64_t> least;
      std::optional<std::int64_t> least_with;
      each_way(stage, [&](const Choice& choice, const Cores& home, std::int64_t) {
        const std::int64_t length = on_cores(choice, home);
        std::int64_t here = 0;
        for (const std::uint32_t core : home) here += contains(cores, core) ? choice.rate : 0;
        least = std::min(least.value_or(here * length), here * length);
        const std::int64_t with = here * (length + free_behind(problem_, stage).ns);
        least_with = std::min(least_with.value_or(with), with);
      });
      slots += least.value_or(0);
      slots_and_slack += least_with.value_or(0);
    }
    std::int64_t rooms = 0;
    for (const std::uint32_t core : cores) rooms += room(core);
    return std::max(slots - rooms, slots_and_slack - problem_.hyperperiod.ns * static_cast<std::int64_t>(cores.size()));
  }

  [[nodiscard]] std::int64_t unit(const Certificate& part) const {
    return line([&](const Variant&, const Segment& segment) { return segment.unit == part.unit; }, true);
  }

  [[nodiscard]] std::int64_t mutex(const Certificate& part) const {
    const auto held = [&](const Variant& variant, const Segment& segment) {
      return variant.arena_mutex == part.mutex || contains(segment.mutexes, part.mutex);
    };
    return line(held, false);
  }

  // Half of what two free-running sensors leave open about the stamps at one latch each: the disparity is at least that
  // large in one direction or the other.
  [[nodiscard]] std::int64_t disparity(const Certificate& part) const {
    const Disparity& limit = problem_.disparities[part.disparity];
    const auto open = [](const Sensor& sensor) {
      return sensor.phase ? 0 : longest_period(sensor).ns + sensor.delay_max.ns - sensor.delay_min.ns;
    };
    std::int64_t most = kUnknown;
    for (const std::uint32_t one : limit.chains) {
      for (const std::uint32_t other : limit.chains) {
        const std::uint32_t a = problem_.chains[one].sensor;
        const std::uint32_t b = problem_.chains[other].sensor;
        if (a == b) continue;
        most = std::max(most, (open(problem_.sensors[a]) + open(problem_.sensors[b])) / 2 - limit.limit.ns);
      }
    }
    return most;
  }

  // Jobs that limits of chains with locked sensors force into [from, to].
  [[nodiscard]] std::int64_t window(const Certificate& part) const {
    const std::int64_t from = part.from.ns;
    const std::int64_t to = part.to.ns;
    if (to <= from || to - from > problem_.hyperperiod.ns) return kUnknown;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> forced(problem_.stages.size());  // end, start
    for (const Chain& chain : problem_.chains) {
      const Sensor& sensor = problem_.sensors[chain.sensor];
      const std::optional<SamplePattern> pattern = sample_pattern(sensor, problem_.hyperperiod);
      std::int64_t limit = std::numeric_limits<std::int64_t>::max();
      for (const Quantity quantity : {Quantity::kReaction, Quantity::kAgeUntilReplaced}) {
        if (const auto& own = chain.limits[static_cast<std::size_t>(quantity)]) limit = std::min(limit, own->ns);
      }
      if (!pattern || pattern->hyperperiods != 1 || limit == std::numeric_limits<std::int64_t>::max()) continue;
      for (std::int64_t sample = 1; sample <= pattern->samples; ++sample) {
        const std::int64_t stamp = sensor.phase->offset.ns + sample * problem_.hyperperiod.ns / pattern->samples;
        const std::int64_t before = sensor.phase->offset.ns + (sample - 1) * problem_.hyperperiod.ns / pattern->samples;
        std::int64_t first = stamp + sensor.phase->jitter.ns + sensor.delay_max.ns;
        std::int64_t last = before + limit;
        for (const std::uint32_t stage : chain.stages) last -= shortest(stage);
        for (const std::uint32_t stage : chain.stages) {
          last += shortest(stage);
          if (first >= from && last + 2 <= to) forced[stage].emplace_back(last + 2, first);
          first += shortest(stage);
        }
      }
    }
    std::int64_t work = 0;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      // One job may serve several windows; disjoint ones need one each.
      std::sort(forced[stage].begin(), forced[stage].end());
      std::int64_t jobs = 0;
      std::int64_t reached = std::numeric_limits<std::int64_t>::min();
      for (const auto& [end, start] : forced[stage]) {
        if (start < reached) continue;
        ++jobs;
        reached = end;
      }
      if (jobs == 0) continue;
      std::optional<std::int64_t> least;
      each_way(stage, [&](const Choice& choice, const Cores& home, std::int64_t) {
        const std::int64_t length = on_cores(choice, home);
        const auto here =
            std::count_if(home.begin(), home.end(), [&](std::uint32_t c) { return contains(part.cores, c); });
        least = std::min(least.value_or(here * length), here * length);
      });
      work += jobs * least.value_or(0);
    }
    return work - static_cast<std::int64_t>(part.cores.size()) * (to - from);
  }

  const Problem& problem_;
  std::vector<std::vector<Choice>> options_;
  std::vector<std::optional<std::size_t>> fixed_option_;
  std::vector<Cores> fixed_home_;
  struct Decision {
    const Certificate* branch = nullptr;
    bool second = false;  // of its parts
  };
  std::vector<Decision> decided_;
};

Json step_json(const Problem& problem, const Certificate::Step& step) {
  using Kind = Certificate::Step::Kind;
  Json out{{"step", name_of(step.kind)}};
  if (step.kind == Kind::kLimit) {
    out["chain"] = problem.chains[step.chain].name;
    out["quantity"] = kQuantityKeys[static_cast<std::size_t>(step.quantity)];
    out["jobs"] = step.jobs;
    return out;
  }
  out["stage"] = problem.stages[step.stage].name;
  if (step.kind != Kind::kFirst && step.kind != Kind::kLast) out["job"] = step.job;
  if (step.kind == Kind::kBefore || step.kind == Kind::kThere || step.kind == Kind::kMissed) {
    out["other"] = problem.stages[step.other].name;
    out["other_job"] = step.other_job;
  }
  return out;
}

bool is_branch(Rule rule) {
  return rule == Rule::kOptions || rule == Rule::kHomes || rule == Rule::kOrder || rule == Rule::kReads;
}

Json part_json(const Problem& problem, const Certificate& part) {
  Json out{{"rule", name_of(part.rule)}};
  switch (part.rule) {
    case Rule::kChain:
      out["chain"] = problem.chains[part.chain].name;
      out["quantity"] = kQuantityKeys[static_cast<std::size_t>(part.quantity)];
      break;
    case Rule::kStage:
    case Rule::kOptions:
    case Rule::kHomes: out["stage"] = problem.stages[part.stage].name; break;
    case Rule::kLoad:
    case Rule::kWindow:
    case Rule::kSame:
      out["cores"] = Json::array();
      for (const std::uint32_t core : part.cores) out["cores"].push_back(problem.board.cores[core].name);
      break;
    case Rule::kUnit: out["unit"] = problem.board.units[part.unit].name; break;
    case Rule::kMutex: out["mutex"] = problem.mutexes[part.mutex].name; break;
    case Rule::kDisparity: out["disparity"] = problem.disparities[part.disparity].name; break;
    case Rule::kOrder:
    case Rule::kReads:
      out["stage"] = problem.stages[part.stage].name;
      out["job"] = part.job;
      out["other"] = problem.stages[part.other].name;
      out["other_job"] = part.other_job;
      break;
    case Rule::kCircle:
      out["steps"] = Json::array();
      for (const Certificate::Step& step : part.steps) out["steps"].push_back(step_json(problem, step));
      break;
    case Rule::kMemory: break;
  }
  if (part.rule == Rule::kWindow) {
    out["from_ns"] = part.from.ns;
    out["to_ns"] = part.to.ns;
  }
  if (is_branch(part.rule)) {
    out["parts"] = Json::array();
    for (const Certificate& child : part.parts) out["parts"].push_back(part_json(problem, child));
  } else if (part.rule != Rule::kSame) {
    out[part.rule == Rule::kMemory ? "excess_bytes" : "excess_ns"] = part.excess;
  }
  return out;
}

class Reader {
 public:
  explicit Reader(const Problem& problem) : problem_(problem) {}

  Result<Certificate> part(const nlohmann::json& json, std::size_t depth) const {
    const std::string where = "part at depth " + std::to_string(depth) + ": ";
    if (depth > 2 * problem_.stages.size() + kMostBranches) {
      return fail(Code::kInput, where + "deeper than any certificate is made");
    }
    if (!json.is_object()) return fail(Code::kInput, where + "expected an object");
    TAKT_ASSIGN(const std::string rule, text(json, "rule", where));
    Certificate out;
    bool found = false;
    for (const Rule candidate :
         {Rule::kChain, Rule::kStage, Rule::kMemory, Rule::kLoad, Rule::kWindow, Rule::kUnit, Rule::kMutex,
          Rule::kDisparity, Rule::kSame, Rule::kOptions, Rule::kHomes, Rule::kOrder, Rule::kReads, Rule::kCircle}) {
      if (rule != name_of(candidate)) continue;
      out.rule = candidate;
      found = true;
    }
    if (!found) return fail(Code::kInput, where + "unknown rule '" + rule + "'");
    if (out.rule == Rule::kChain) {
      TAKT_ASSIGN(out.chain, index(json, "chain", problem_.chains, where));
      TAKT_ASSIGN(out.quantity, quantity(json, where));
    }
    if (out.rule == Rule::kStage || is_branch(out.rule)) {
      TAKT_ASSIGN(out.stage, index(json, "stage", problem_.stages, where));
    }
    if (out.rule == Rule::kUnit) {
      TAKT_ASSIGN(out.unit, index(json, "unit", problem_.board.units, where));
    }
    if (out.rule == Rule::kMutex) {
      TAKT_ASSIGN(out.mutex, index(json, "mutex", problem_.mutexes, where));
    }
    if (out.rule == Rule::kDisparity) {
      TAKT_ASSIGN(out.disparity, index(json, "disparity", problem_.disparities, where));
    }
    if (out.rule == Rule::kLoad || out.rule == Rule::kWindow || out.rule == Rule::kSame) {
      const auto list = json.find("cores");
      if (list == json.end() || !list->is_array()) return fail(Code::kInput, where + "'cores' must be a list");
      for (const nlohmann::json& item : *list) {
        TAKT_ASSIGN(const std::uint32_t core, index(item, problem_.board.cores, "cores", where));
        out.cores.push_back(core);
      }
    }
    if (out.rule == Rule::kWindow) {
      TAKT_ASSIGN(out.from.ns, figure(json, "from_ns", where));
      TAKT_ASSIGN(out.to.ns, figure(json, "to_ns", where));
    }
    if (out.rule == Rule::kOrder || out.rule == Rule::kReads) {
      TAKT_ASSIGN(out.job, figure(json, "job", where));
      TAKT_ASSIGN(out.other, index(json, "other", problem_.stages, where));
      TAKT_ASSIGN(out.other_job, figure(json, "other_job", where));
    }
    if (out.rule == Rule::kCircle) {
      const auto list = json.find("steps");
      if (list == json.end() || !list->is_array()) return fail(Code::kInput, where + "'steps' must be a list");
      for (const nlohmann::json& item : *list) {
        TAKT_ASSIGN(Certificate::Step next, step(item, where));
        out.steps.push_back(std::move(next));
      }
    }
    if (is_branch(out.rule)) {
      const auto list = json.find("parts");
      if (list == json.end() || !list->is_array()) return fail(Code::kInput, where + "'parts' must be a list");
      for (const nlohmann::json& item : *list) {
        TAKT_ASSIGN(Certificate child, part(item, depth + 1));
        out.parts.push_back(std::move(child));
      }
    } else if (out.rule != Rule::kSame) {
      TAKT_ASSIGN(out.excess, figure(json, out.rule == Rule::kMemory ? "excess_bytes" : "excess_ns", where));
    }
    return out;
  }

  static Result<std::string> text(const nlohmann::json& json, const char* key, const std::string& where) {
    const auto item = json.find(key);
    if (item == json.end() || !item->is_string()) return fail(Code::kInput, where + "'" + key + "' must be a text");
    return item->get<std::string>();
  }

 private:
  // Branches over orders and reads on one path, at most: the reader calls itself for each.
  static constexpr std::size_t kMostBranches = 1000;

  Result<Certificate::Step> step(const nlohmann::json& json, const std::string& where) const {
    using Kind = Certificate::Step::Kind;
    if (!json.is_object()) return fail(Code::kInput, where + "a step must be an object");
    TAKT_ASSIGN(const std::string kind, text(json, "step", where));
    Certificate::Step out;
    bool found = false;
    for (const Kind candidate : {Kind::kSlot, Kind::kNext, Kind::kFirst, Kind::kLast, Kind::kBefore, Kind::kThere,
                                 Kind::kMissed, Kind::kLimit}) {
      if (kind != name_of(candidate)) continue;
      out.kind = candidate;
      found = true;
    }
    if (!found) return fail(Code::kInput, where + "unknown step '" + kind + "'");
    if (out.kind == Kind::kLimit) {
      TAKT_ASSIGN(out.chain, index(json, "chain", problem_.chains, where));
      TAKT_ASSIGN(out.quantity, quantity(json, where));
      const auto list = json.find("jobs");
      if (list == json.end() || !list->is_array()) return fail(Code::kInput, where + "'jobs' must be a list");
      for (const nlohmann::json& item : *list) {
        TAKT_ASSIGN(const std::int64_t job, figure(item, std::string("jobs"), where));
        out.jobs.push_back(job);
      }
      return out;
    }
    TAKT_ASSIGN(out.stage, index(json, "stage", problem_.stages, where));
    if (out.kind != Kind::kFirst && out.kind != Kind::kLast) {
      TAKT_ASSIGN(out.job, figure(json, "job", where));
    }
    if (out.kind == Kind::kBefore || out.kind == Kind::kThere || out.kind == Kind::kMissed) {
      TAKT_ASSIGN(out.other, index(json, "other", problem_.stages, where));
      TAKT_ASSIGN(out.other_job, figure(json, "other_job", where));
    }
    return out;
  }

  static Result<Quantity> quantity(const nlohmann::json& json, const std::string& where) {
    TAKT_ASSIGN(const std::string name, text(json, "quantity", where));
    const auto* key = std::find(std::begin(kQuantityKeys), std::end(kQuantityKeys), name);
    if (key == std::end(kQuantityKeys)) return fail(Code::kInput, where + "unknown quantity '" + name + "'");
    return static_cast<Quantity>(key - std::begin(kQuantityKeys));
  }

  static Result<std::int64_t> figure(const nlohmann::json& item, const std::string& key, const std::string& where) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    if (!item.is_number_integer() ||
        (item.is_number_unsigned() && item.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost)) ||
        std::abs(item.get<std::int64_t>() / 2) > kMost / 2) {
      return fail(Code::kInput, where + "'" + key + "' must hold whole numbers");
    }
    return item.get<std::int64_t>();
  }
  static Result<std::int64_t> figure(const nlohmann::json& json, const char* key, const std::string& where) {
    const auto item = json.find(key);
    if (item == json.end()) return fail(Code::kInput, where + "'" + key + "' is missing");
    return figure(*item, std::string(key), where);
  }
  template <class T>
  static Result<std::uint32_t> index(const nlohmann::json& item, const std::vector<T>& list, const char* key,
                                     const std::string& where) {
    if (!item.is_string()) return fail(Code::kInput, where + "'" + key + "' must hold names");
    const auto& name = item.get_ref<const std::string&>();
    for (std::uint32_t i = 0; i < list.size(); ++i) {
      if (list[i].name == name) return i;
    }
    return fail(Code::kInput, where + "'" + key + "': nothing is named '" + name + "'");
  }
  template <class T>
  static Result<std::uint32_t> index(const nlohmann::json& json, const char* key, const std::vector<T>& list,
                                     const std::string& where) {
    const auto item = json.find(key);
    if (item == json.end()) return fail(Code::kInput, where + "'" + key + "' is missing");
    return index(*item, list, key, where);
  }

  const Problem& problem_;
};

}  // namespace

Status check_certificate(const Problem& problem, const Certificate& certificate) {
  TAKT_RETURN_IF_ERROR(check(problem));
  return Checker(problem).check_part(certificate, "root");
}

std::string certificate_json(const Problem& problem, const Certificate& certificate) {
  Json root{{"takt_certificate", 1}, {"problem", digest_of(problem).hex()}, {"name", problem.name}};
  root["proof"] = part_json(problem, certificate);
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// Where the parser is, as "/proof/parts/2"; of two equal keys it would keep one silently.
class DoubledKeys {
 public:
  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        if (!open_.empty()) open_.back().next();
        open_.push_back({event == Event::array_start, {}, {}, 0});
        deepest_ = std::max(deepest_, open_.size());
        break;
      case Event::object_end:
      case Event::array_end: open_.pop_back(); break;
      case Event::key:
        open_.back().key = parsed.get<std::string>();
        if (!open_.back().keys.insert(open_.back().key).second && first_.empty()) first_ = place();
        break;
      case Event::value:
        if (!open_.empty()) open_.back().next();
        break;
    }
    return true;
  }
  [[nodiscard]] const std::string& first() const { return first_; }
  [[nodiscard]] std::size_t deepest() const { return deepest_; }

 private:
  struct Open {
    bool list;
    std::set<std::string> keys;
    std::string key;
    std::size_t count;  // of items so far
    void next() {
      if (list) key = std::to_string(count++);
    }
  };
  [[nodiscard]] std::string place() const {
    std::string out;
    for (const Open& open : open_) out += "/" + open.key;
    return out;
  }
  std::vector<Open> open_;
  std::string first_;
  std::size_t deepest_ = 0;
};

}  // namespace

Result<Certificate> read_certificate(const Problem& problem, std::string_view text) {
  nlohmann::json root;
  DoubledKeys doubled;
  try {
    root = nlohmann::json::parse(text, std::ref(doubled));
  } catch (const nlohmann::json::parse_error& error) {
    return fail(Code::kInput,
                "certificate: no JSON at byte " + std::to_string(error.byte) + "; write one with --certificate");
  } catch (const nlohmann::json::exception& error) {  // a number beyond the range of double
    return fail(Code::kInput, std::string("certificate: ") + error.what() + "; write one with --certificate");
  }
  // What walks the whole of it later does so by recursion.
  constexpr std::size_t kDeepest = 1000;
  if (doubled.deepest() > kDeepest) {
    return fail(Code::kInput, "certificate: nested deeper than " + std::to_string(kDeepest) + " levels");
  }
  if (!doubled.first().empty()) return fail(Code::kInput, "certificate: " + doubled.first() + " stands there twice");
  const auto version = root.find("takt_certificate");
  if (!root.is_object() || version == root.end() || *version != 1) {
    return fail(Code::kInput, "certificate: 'takt_certificate' must be 1");
  }
  TAKT_ASSIGN(const std::string made_for, Reader::text(root, "problem", "certificate: "));
  if (made_for != digest_of(problem).hex()) {
    return fail(Code::kGate, "the certificate was made for another problem (" + made_for + "), this one is " +
                                 digest_of(problem).hex() + ": same pipeline, board, budgets and what-ifs?");
  }
  const auto proof = root.find("proof");
  if (proof == root.end()) return fail(Code::kInput, "certificate: 'proof' is missing");
  TAKT_ASSIGN(Certificate certificate, Reader(problem).part(*proof, 0));
  // Nothing was passed over: written again it is the same. Two that differ in text alone would be taken for two proofs.
  const auto again = nlohmann::json::parse(certificate_json(problem, certificate));
  if (const nlohmann::json differences = nlohmann::json::diff(again, root); !differences.empty()) {
    const std::string place = differences.front()["path"].get<std::string>();
    if (place == "/name") {
      return fail(Code::kGate, "certificate: /name: this problem is called '" + problem.name + "'");
    }
    return fail(Code::kInput, "certificate: " + place + ": the rule has no such field");
  }
  return certificate;
}

}  // namespace takt::sched
