#include "scheduler/synthesis/exact.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "scheduler/synthesis/differences.h"
#include "scheduler/synthesis/evaluate.h"
#include "scheduler/synthesis/options.h"

namespace takt::sched {
namespace {

__extension__ using Wide = __int128;
constexpr Lit kFalse = negated(kTrue);
constexpr std::int64_t kMostJobs = 400;
constexpr std::int64_t kMostTurnsOfSamples = 4;  // a locked sensor's pattern must repeat within that many

// A proof for one ratio says something about ratios up to so many times as large.
constexpr double kFarthestRatio = 1.5;
constexpr std::int64_t kMostPairs = 1'000'000;  // of neighbouring jobs on threads, over all limits
constexpr std::int64_t kMostTicks = std::int64_t{1} << 26;

// Turns that a thread within its limit can run over, the one it begins in not counted; one that is never used ends with
// the next one that is.
std::int64_t reach(const Problem& problem, double ratio) {
  double longest = 0;
  for (const Chain& chain : problem.chains) {
    for (const std::optional<Duration>& limit : chain.limits) {
      if (limit) longest = std::max(longest, static_cast<double>(limit->ns));
    }
  }
  const double turns = kFarthestRatio * ratio * longest / static_cast<double>(problem.hyperperiod.ns);
  return static_cast<std::int64_t>(std::min(turns, 1e6)) + 3;
}

class Model final : public Differences::Host {
 public:
  Model(const Problem& problem, const Choices& choices, double ratio, const Table* like)
      : like_(like),
        problem_(problem),
        choices_(choices),
        table_(problem, choices),
        clock_(table_.clock()),
        solver_(*this) {
    turn_ = clock_.ticks;
    crossing_ = clock_.ticks_up(problem.board.clock_error);
    origin_ = solver_.new_node(0);
    rotate();
    tasks();
    if (fixed_) solver_.add_edge(kTrue, tasks_[*fixed_].start[0], origin_, 0);
    reach_ = reach(problem, ratio);
    for (const Chain& chain : problem_.chains) limits(chain, ratio);
    implied();
    homes();
    solver_.probe();
  }

  Differences& solver() { return solver_; }
  [[nodiscard]] const std::optional<Table>& result() const { return result_; }
  [[nodiscard]] bool was_refused() const { return refused_; }

  Lit choose(std::uint32_t group) override { return deciders_[group](); }
  bool accept() override;

 private:
  struct Way {
    std::vector<std::uint32_t> cores;
    Tick length = 0;
    std::vector<Tick> occupied;  // by core of `cores`
  };
  struct Task {
    std::int64_t jobs = 0;
    std::vector<Way> ways;
    std::vector<Lit> home;                      // by way
    std::vector<Differences::Node> start, end;  // the same where the length is known:
    Tick lag = 0;                               // a job ends at value(end) + lag
    Tick shortest = 0, longest = 0;
  };
  // Jobs that a step of a thread may be at: absolute numbers, with the literal that says so.
  struct Step {
    std::vector<std::pair<std::int64_t, Lit>> at;
  };
  // Threads along the same stages from the same start, shared by all chains that begin (or end) alike.
  struct Path {
    std::vector<std::vector<Step>> steps;  // by thread, stage
    std::vector<Tick> within;              // by stage: the tightest limit on end - start(b - 1)
    std::vector<double> slope;
  };

  void tasks();
  void rotate();
  void homes();
  void limits(const Chain& chain, double ratio);
  void free_limit(const Chain& chain, Quantity quantity, double limit, double slope);
  void locked_limit(const Chain& chain, const SamplePattern& pattern, double limit, double slope);
  void age_limit(const Chain& chain, double limit, double slope, const SamplePattern* pattern);
  void implied();

  std::vector<Lit> exactly_one_of(std::size_t count);
  std::uint32_t group(std::vector<Lit> lits, std::function<Lit()> decider) {
    deciders_.push_back(std::move(decider));
    return solver_.add_group(std::move(lits));
  }
  Lit both(Lit a, Lit b) {
    if (a == kTrue) return b;
    if (a == kFalse || b == kFalse) return kFalse;
    if (b == kTrue) return a;
    const Lit out = solver_.new_literal();
    solver_.add_clause({negated(a), negated(b), out});
    return out;
  }
  // Forward or backward threads; `first` gives the candidates of the first step of every thread.
  Path& path(bool forward, const std::vector<std::uint32_t>& stages, std::int32_t sensor,
             const std::vector<Step>& first);
  void extend(bool forward, std::uint32_t from, std::uint32_t to, const Step& last, std::int64_t root, Step& next);
  Lit precedes(std::uint32_t a, std::int64_t u, std::uint32_t b, std::int64_t v);
  Lit misses(std::uint32_t a, std::int64_t u, std::uint32_t b, std::int64_t v);
  Lit apart(std::uint32_t a, std::uint32_t b);
  void separate(std::uint32_t a, std::size_t u, std::uint32_t b, std::size_t v);

  [[nodiscard]] std::int64_t turn_of(std::uint32_t stage, std::int64_t job) const {
    return floor_div(job, tasks_[stage].jobs);
  }
  [[nodiscard]] Differences::Node start(std::uint32_t stage, std::int64_t job) const {
    return tasks_[stage].start[static_cast<std::size_t>(floor_mod(job, tasks_[stage].jobs))];
  }
  [[nodiscard]] Differences::Node end(std::uint32_t stage, std::int64_t job) const {
    return tasks_[stage].end[static_cast<std::size_t>(floor_mod(job, tasks_[stage].jobs))];
  }
  // Ticks that a span of at most `ns` can have, whatever rounding takes away.
  [[nodiscard]] Tick span(double ns) const { return static_cast<Tick>(std::ceil((std::floor(ns) + 2) * per_ns())) - 1; }
  // The first tick whose start, rounded up to nanoseconds, is not before `ns`; the last whose end, rounded down, is not
  // after it.
  [[nodiscard]] Tick not_before(std::int64_t ns) const {
    const Wide product = static_cast<Wide>(ns - 1) * turn_;
    const Wide whole = product / problem_.hyperperiod.ns;
    return static_cast<Tick>(product % problem_.hyperperiod.ns < 0 ? whole - 1 : whole) + 1;
  }
  [[nodiscard]] Tick not_after(double ns) const { return static_cast<Tick>(std::ceil((ns + 1) * per_ns())) - 1; }
  // Stamp of sample k of a locked sensor.
  [[nodiscard]] std::int64_t stamp_of(const Sensor& sensor, const SamplePattern& pattern, std::int64_t k) const {
    const std::int64_t whole = pattern.hyperperiods * problem_.hyperperiod.ns;
    const std::int64_t turn = floor_div(k, pattern.samples);
    return sensor.phase->offset.ns + turn * whole +
           static_cast<std::int64_t>(static_cast<Wide>(k - turn * pattern.samples) * whole / pattern.samples);
  }
  [[nodiscard]] double per_ns() const {
    return static_cast<double>(turn_) / static_cast<double>(problem_.hyperperiod.ns);
  }
  [[nodiscard]] Tick value(Differences::Node node) const { return solver_.value(node) - solver_.value(origin_); }
  // end(stage, job) - start(of_stage, of_job) <= within, while lit.
  void at_most(Lit lit, std::uint32_t stage, std::int64_t job, std::uint32_t of_stage, std::int64_t of_job, Tick within,
               double slope) {
    solver_.add_edge(lit, end(stage, job), start(of_stage, of_job),
                     (turn_of(stage, job) - turn_of(of_stage, of_job)) * turn_ + tasks_[stage].lag - within, slope);
  }
  [[nodiscard]] std::size_t home_of(std::uint32_t stage) const {
    const std::vector<Lit>& home = tasks_[stage].home;
    std::size_t way = 0;
    while (way < home.size() && !solver_.is_true(home[way])) ++way;
    return way;
  }
  // Whether both have homes, with a core in common.
  [[nodiscard]] bool share(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] Tick overlap(std::uint32_t a, std::size_t way, std::uint32_t b, std::size_t other) const;

  const Table* like_;  // where the search begins, if anywhere
  const Problem& problem_;
  const Choices& choices_;
  Table table_;  // empty: lengths and clock
  TickClock clock_;
  Differences solver_;
  Tick turn_ = 1;
  Tick crossing_ = 0;
  Differences::Node origin_ = 0;
  std::optional<std::uint32_t> fixed_;  // the stage whose first job starts at 0
  std::vector<Task> tasks_;             // by stage
  std::int64_t reach_ = 0;              // turns that a thread may run over
  std::vector<std::function<Lit()>> deciders_;
  std::map<std::tuple<bool, std::int32_t, std::vector<std::uint32_t>>, Path> paths_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::uint32_t, std::int64_t>, Lit> precedes_, misses_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lit> apart_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::uint32_t, std::size_t>, std::uint32_t> orders_;  // groups
  std::optional<Table> result_;
  bool refused_ = false;
};

void Model::tasks() {
  const Tick turned = like_ != nullptr && fixed_ ? like_->at(*fixed_).starts[0] : 0;
  for (std::uint32_t stage = 0; stage < choices_.size(); ++stage) {
    Task task;
    task.jobs = choices_[stage].rate;
    for (const std::vector<std::uint32_t>& cores : core_sets(problem_.board, choices_[stage].budget.cores)) {
      Way way{cores, table_.length(stage, cores), {}};
      for (const std::uint32_t core : cores) way.occupied.push_back(table_.occupied(stage, way.length, core));
      task.ways.push_back(std::move(way));
    }
    task.shortest = std::numeric_limits<Tick>::max();
    for (const Way& way : task.ways) {
      task.shortest = std::min(task.shortest, way.length);
      task.longest = std::max(task.longest, way.length);
    }
    for (std::size_t way = 0; way < task.ways.size(); ++way) {
      task.home.push_back(task.ways.size() == 1 ? kTrue : solver_.new_literal());
    }
    std::vector<Tick> starts(static_cast<std::size_t>(task.jobs), 0);
    if (like_ != nullptr) {
      for (std::size_t j = 0; j < starts.size(); ++j) starts[j] = floor_mod(like_->at(stage).starts[j] - turned, turn_);
      std::sort(starts.begin(), starts.end());
    }
    for (std::int64_t j = 0; j < task.jobs; ++j) {
      const Tick guess = starts[static_cast<std::size_t>(j)];
      const Differences::Node start = solver_.new_node(guess);
      task.start.push_back(start);
      solver_.add_edge(kTrue, origin_, start, 0);
      solver_.add_edge(kTrue, start, origin_, 1 - turn_);
      if (task.shortest == task.longest) {
        task.end.push_back(start);
        task.lag = task.shortest;
        continue;
      }
      const Differences::Node end = solver_.new_node(guess + (like_ != nullptr ? like_->at(stage).length : 0));
      task.end.push_back(end);
      solver_.add_edge(kTrue, start, end, task.shortest);
      solver_.add_edge(kTrue, end, start, -task.longest);
      for (std::size_t way = 0; way < task.ways.size(); ++way) {
        solver_.add_edge(task.home[way], start, end, task.ways[way].length);
        solver_.add_edge(task.home[way], end, start, -task.ways[way].length);
      }
    }
    // The jobs of one stage in turn, on its home.
    std::vector<Tick> longest;
    for (const Way& way : task.ways) longest.push_back(*std::max_element(way.occupied.begin(), way.occupied.end()));
    const Tick least = *std::min_element(longest.begin(), longest.end());
    for (std::size_t j = 0; j < task.start.size(); ++j) {
      const bool last = j + 1 == task.start.size();
      const Differences::Node next = task.start[last ? 0 : j + 1];
      if (next == task.start[j]) {
        // One job per turn: it must fit into the turn.
        for (std::size_t way = 0; way < longest.size(); ++way) {
          if (longest[way] > turn_) solver_.add_clause({negated(task.home[way])});
        }
        continue;
      }
      const Tick wrap = last ? turn_ : 0;
      solver_.add_edge(kTrue, task.start[j], next, least - wrap);
      for (std::size_t way = 0; way < longest.size(); ++way) {
        if (longest[way] > least) solver_.add_edge(task.home[way], task.start[j], next, longest[way] - wrap);
      }
    }
    tasks_.push_back(std::move(task));
  }
}

// Without locked sensors any table may be turned around the circle: the first job of one stage stands at 0.
void Model::rotate() {
  for (const Chain& chain : problem_.chains) {
    if (problem_.sensors[chain.sensor].phase) return;
  }
  fixed_ = 0;
  const auto rank = [&](std::uint32_t stage) {
    return std::pair(choices_[stage].rate, -choices_[stage].budget.time.ns);
  };
  for (std::uint32_t stage = 1; stage < choices_.size(); ++stage) {
    if (rank(stage) < rank(*fixed_)) fixed_ = stage;
  }
}

void Model::homes() {
  const std::vector<Core>& cores = problem_.board.cores;
  const bool alike = std::all_of(cores.begin(), cores.end(), [&](const Core& core) {
    return core.reserve == cores[0].reserve && core.wakeup_window == cores[0].wakeup_window &&
           core.publish_window == cores[0].publish_window;
  });
  // Cores that nothing tells apart: the stage that comes first takes the first one.
  std::vector<std::uint32_t> order;
  for (std::uint32_t stage = 0; stage < tasks_.size(); ++stage) order.push_back(stage);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tasks_[a].shortest * tasks_[a].jobs > tasks_[b].shortest * tasks_[b].jobs;
  });
  std::vector<std::uint32_t> names(cores.size());  // of the cores of `like_`, in the order of their first use
  for (std::uint32_t core = 0; core < cores.size(); ++core) names[core] = core;
  if (like_ != nullptr && alike) {
    std::fill(names.begin(), names.end(), static_cast<std::uint32_t>(cores.size()));
    std::uint32_t next = 0;
    for (const std::uint32_t stage : order) {
      for (const std::uint32_t core : like_->at(stage).cores) {
        if (names[core] == cores.size()) names[core] = next++;
      }
    }
  }
  std::uint32_t known = 0;
  for (const std::uint32_t stage : order) {
    Task& task = tasks_[stage];
    std::uint32_t width = known;
    for (std::size_t way = 0; alike && way < task.ways.size(); ++way) {
      std::uint32_t fresh = known;  // cores not used before must come in their order
      bool in_order = true;
      for (const std::uint32_t core : task.ways[way].cores) {
        if (core >= known) in_order = in_order && core == fresh++;
      }
      if (!in_order) solver_.add_clause({negated(task.home[way])});
      width = std::max(width, std::min(fresh, static_cast<std::uint32_t>(cores.size())));
    }
    known = std::max(known, width);
    if (task.ways.size() == 1) continue;
    solver_.add_clause(task.home);
    for (std::size_t i = 0; i < task.home.size(); ++i) {
      for (std::size_t k = i + 1; k < task.home.size(); ++k) {
        solver_.add_clause({negated(task.home[i]), negated(task.home[k])});
      }
    }
    std::vector<std::uint32_t> wanted;
    if (like_ != nullptr) {
      for (const std::uint32_t core : like_->at(stage).cores) wanted.push_back(names[core]);
      std::sort(wanted.begin(), wanted.end());
    }
    group(task.home, [this, stage, wanted] {
      // Where it overlaps least with what has a home, then where least is to be done.
      const Task& mine = tasks_[stage];
      Lit best = kTrue;
      std::pair<Tick, Tick> least{};
      for (std::size_t way = 0; way < mine.ways.size(); ++way) {
        if (!solver_.is_open(mine.home[way])) continue;
        std::pair<Tick, Tick> cost{};
        for (std::uint32_t other = 0; other < tasks_.size(); ++other) {
          const std::size_t at = other == stage ? tasks_[other].ways.size() : home_of(other);
          if (at == tasks_[other].ways.size()) continue;
          cost.first += overlap(stage, way, other, at);
          for (const std::uint32_t core : tasks_[other].ways[at].cores) {
            const auto& here = mine.ways[way].cores;
            if (std::find(here.begin(), here.end(), core) == here.end()) continue;
            cost.second += tasks_[other].ways[at].length * tasks_[other].jobs;
          }
        }
        if (mine.ways[way].cores == wanted) cost.second = -1;
        if (best != kTrue && cost >= least) continue;
        best = mine.home[way];
        least = cost;
      }
      return best;
    });
  }
}

// How many ticks two stages are in each other's way on common cores, as they stand.
Tick Model::overlap(std::uint32_t a, std::size_t way, std::uint32_t b, std::size_t other) const {
  Tick sum = 0;
  const Way& mine = tasks_[a].ways[way];
  const Way& theirs = tasks_[b].ways[other];
  for (std::size_t i = 0; i < mine.cores.size(); ++i) {
    for (std::size_t k = 0; k < theirs.cores.size(); ++k) {
      if (mine.cores[i] != theirs.cores[k]) continue;
      for (const Differences::Node u : tasks_[a].start) {
        for (const Differences::Node v : tasks_[b].start) {
          const Tick behind = floor_mod(value(v) - value(u), turn_);  // v begins so long after u
          sum += std::max<Tick>(0, mine.occupied[i] - behind);
          sum += behind == 0 ? 0 : std::max<Tick>(0, theirs.occupied[k] - (turn_ - behind));
        }
      }
    }
  }
  return sum;
}

bool Model::share(std::uint32_t a, std::uint32_t b) const {
  const std::size_t i = home_of(a);
  const std::size_t k = home_of(b);
  if (i == tasks_[a].ways.size() || k == tasks_[b].ways.size()) return false;
  const std::vector<std::uint32_t>& theirs = tasks_[b].ways[k].cores;
  return std::any_of(tasks_[a].ways[i].cores.begin(), tasks_[a].ways[i].cores.end(),
                     [&](std::uint32_t core) { return std::find(theirs.begin(), theirs.end(), core) != theirs.end(); });
}

// Whether what `a` publishes crosses to another timeline before `b` reads it.
Lit Model::apart(std::uint32_t a, std::uint32_t b) {
  const auto [known, is_new] = apart_.try_emplace({a, b}, kFalse);
  if (!is_new) return known->second;
  const auto together = [&](const Way& from, const Way& to) {
    return to.cores.size() == 1 && from.cores.back() == to.cores.front();
  };
  const Lit lit = solver_.new_literal();
  known->second = lit;
  for (std::size_t i = 0; i < tasks_[a].ways.size(); ++i) {
    for (std::size_t k = 0; k < tasks_[b].ways.size(); ++k) {
      if (a == b && i != k) continue;
      const bool one = together(tasks_[a].ways[i], tasks_[b].ways[k]);
      std::vector<Lit> clause{negated(tasks_[a].home[i]), negated(tasks_[b].home[k]), one ? negated(lit) : lit};
      solver_.add_clause(std::move(clause));
    }
  }
  return lit;
}

// Job v of b starts when job u of a is published. Absolute numbers.
Lit Model::precedes(std::uint32_t a, std::int64_t u, std::uint32_t b, std::int64_t v) {
  const std::int64_t turns = turn_of(b, v) - turn_of(a, u);
  if ((turns - 1) * turn_ >= tasks_[a].longest + crossing_ - 1) return kTrue;
  if ((turns + 1) * turn_ - 1 < tasks_[a].shortest) return kFalse;
  const std::int64_t base = turn_of(a, u);
  const auto [known, is_new] =
      precedes_.try_emplace({a, u - base * tasks_[a].jobs, b, v - base * tasks_[b].jobs}, kFalse);
  if (!is_new) return known->second;
  const Lit lit = solver_.new_literal();
  known->second = lit;
  const Tick least = tasks_[a].lag - turns * turn_;
  solver_.add_edge(lit, end(a, u), start(b, v), least);
  if (crossing_ > 0) solver_.add_edge(both(lit, apart(a, b)), end(a, u), start(b, v), least + crossing_);
  return lit;
}

// Job v of b starts before job u of a is published.
Lit Model::misses(std::uint32_t a, std::int64_t u, std::uint32_t b, std::int64_t v) {
  const std::int64_t turns = turn_of(b, v) - turn_of(a, u);
  if ((turns - 1) * turn_ >= tasks_[a].longest + crossing_ - 1) return kFalse;
  if ((turns + 1) * turn_ - 1 < tasks_[a].shortest) return kTrue;
  const std::int64_t base = turn_of(a, u);
  const auto [known, is_new] =
      misses_.try_emplace({a, u - base * tasks_[a].jobs, b, v - base * tasks_[b].jobs}, kFalse);
  if (!is_new) return known->second;
  const Lit lit = solver_.new_literal();
  known->second = lit;
  const Tick most = turns * turn_ + 1 - tasks_[a].lag;
  solver_.add_edge(lit, start(b, v), end(a, u), most - crossing_);
  if (crossing_ > 0) solver_.add_edge(both(lit, negated(apart(a, b))), start(b, v), end(a, u), most);
  return lit;
}

// One more step of a thread: to the job of `to` that comes first after any of `last`, or backwards to the newest.
void Model::extend(bool forward, std::uint32_t from, std::uint32_t to, const Step& last, std::int64_t root,
                   Step& next) {
  const std::int64_t jobs = tasks_[to].jobs;
  // Two turns further everything is published, so the farthest is the first (last) job of that turn.
  const auto range = [&](std::int64_t job) {
    const std::int64_t turn = turn_of(from, job);
    return forward ? std::pair(turn * jobs, (turn + 2) * jobs)
                   : std::pair((turn - 1) * jobs - 1, (turn + 1) * jobs - 1);
  };
  // No thread of a table within the limits goes farther from its root than the longest limit.
  std::int64_t low = range(last.at.front().first).first;
  std::int64_t high = range(last.at.back().first).second;
  if (forward) high = std::max(low, std::min(high, (root + reach_ + 1) * jobs - 1));
  if (!forward) low = std::min(high, std::max(low, (root - reach_) * jobs));
  const std::vector<Lit> lits = exactly_one_of(static_cast<std::size_t>(high - low + 1));
  for (std::int64_t job = low; job <= high; ++job) next.at.emplace_back(job, lits[static_cast<std::size_t>(job - low)]);
  for (const auto& [u, is_u] : last.at) {
    const auto [first, end] = range(u);
    for (const auto& [v, is_v] : next.at) {
      Lit order = kFalse;
      if (v >= first && v <= end) order = forward ? precedes(from, u, to, v) : precedes(to, v, from, u);
      if (order != kTrue) solver_.add_clause({negated(is_u), negated(is_v), order});
    }
  }
  // As things stand: the first that starts late enough, or the newest that is there.
  group(lits, [this, forward, from, to, last_at = last.at, next_at = next.at] {
    std::int64_t at = last_at.front().first;
    for (const auto& [job, lit] : last_at) {
      if (!solver_.is_true(lit)) continue;
      at = job;
      break;
    }
    Lit open = kTrue;
    const auto look = [&](const std::pair<std::int64_t, Lit>& candidate) {
      if (!solver_.is_open(candidate.second)) return false;
      open = candidate.second;
      const std::uint32_t a = forward ? from : to;
      const std::uint32_t b = forward ? to : from;
      const std::int64_t u = forward ? at : candidate.first;
      const std::int64_t v = forward ? candidate.first : at;
      return value(start(b, v)) + turn_of(b, v) * turn_ >= value(end(a, u)) + tasks_[a].lag + turn_of(a, u) * turn_;
    };
    if (forward) {
      for (const auto& candidate : next_at) {
        if (look(candidate)) return open;
      }
    } else {
      for (std::size_t i = next_at.size(); i-- > 0;) {
        if (look(next_at[i])) return open;
      }
    }
    return open;
  });
}

std::vector<Lit> Model::exactly_one_of(std::size_t count) {
  std::vector<Lit> lits;
  for (std::size_t i = 0; i < count; ++i) lits.push_back(count == 1 ? kTrue : solver_.new_literal());
  if (count > 1) solver_.add_clause(lits);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = i + 1; k < count; ++k) solver_.add_clause({negated(lits[i]), negated(lits[k])});
  }
  return lits;
}

Model::Path& Model::path(bool forward, const std::vector<std::uint32_t>& stages, std::int32_t sensor,
                         const std::vector<Step>& first) {
  const auto key = [&](std::size_t count) {
    return std::tuple(forward, sensor,
                      std::vector<std::uint32_t>(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(count)));
  };
  std::size_t known = stages.size();
  while (known > 1 && !paths_.contains(key(known))) --known;
  for (std::size_t count = known; count <= stages.size(); ++count) {
    const auto [at, is_new] = paths_.try_emplace(key(count));
    if (!is_new) continue;
    Path& next = at->second;
    next.within.push_back(std::numeric_limits<Tick>::max());
    next.slope.push_back(0);
    if (count == 1) {
      for (const Step& step : first) next.steps.push_back({step});
      continue;
    }
    const Path& before = paths_.at(key(count - 1));
    const Path& root = paths_.at(key(1));
    for (std::size_t thread = 0; thread < before.steps.size(); ++thread) {
      const std::int64_t turn = turn_of(stages.front(), root.steps[thread].back().at.front().first);
      Step step;
      extend(forward, stages[count - 2], stages[count - 1], before.steps[thread].back(), turn, step);
      next.steps.push_back({std::move(step)});
    }
  }
  return paths_.at(key(stages.size()));
}

void Model::limits(const Chain& chain, double ratio) {
  const Sensor& sensor = problem_.sensors[chain.sensor];
  const std::optional<SamplePattern> pattern = sample_pattern(sensor, problem_.hyperperiod);
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!chain.limits[q]) continue;
    const double limit = ratio * static_cast<double>(chain.limits[q]->ns);
    const double slope = static_cast<double>(chain.limits[q]->ns) * per_ns();
    const auto quantity = static_cast<Quantity>(q);
    if (!sensor.phase) {
      if (quantity == Quantity::kAgeAtOutput) {
        age_limit(chain, limit, slope, nullptr);
      } else {
        free_limit(chain, quantity, limit, slope);
      }
    } else if (pattern && pattern->hyperperiods <= kMostTurnsOfSamples) {
      // The latency of a locked sensor's samples is left to the evaluation of what is found.
      if (quantity == Quantity::kAgeAtOutput) age_limit(chain, limit, slope, &*pattern);
      if (quantity == Quantity::kReaction || quantity == Quantity::kAgeUntilReplaced) {
        locked_limit(chain, *pattern, limit, slope);
      }
    }
  }
}

void Model::free_limit(const Chain& chain, Quantity quantity, double limit, double slope) {
  const Sensor& sensor = problem_.sensors[chain.sensor];
  const std::uint32_t source = chain.stages.front();
  const std::uint32_t last = chain.stages.back();
  const std::int64_t jobs = tasks_[source].jobs;
  const auto delay = static_cast<double>(sensor.delay_max.ns);
  const auto period = static_cast<double>(longest_period(sensor).ns);
  std::vector<Step> first;
  for (std::int64_t b = 0; b < jobs; ++b) first.push_back({{{b, kTrue}}});
  const auto prefix = [&](std::size_t count) -> Path& {
    return path(true, {chain.stages.begin(), chain.stages.begin() + static_cast<std::ptrdiff_t>(count)}, -1, first);
  };
  // end - start(b - 1) <= within, whatever the sensor does.
  const auto reaches = [&](Tick within) {
    for (std::size_t count = chain.stages.size(); count > 0; --count) {
      Path& path = prefix(count);
      if (within < path.within.front()) {
        path.within.front() = within;
        path.slope.front() = slope;
      }
      within -= tasks_[chain.stages[count - 1]].shortest;
    }
  };
  if (quantity != Quantity::kLatency) return reaches(span(limit - delay - period));
  if (longest_period(sensor) >= problem_.hyperperiod) return reaches(span(limit - delay));
  // The longest gap that a source can have behind it; with one job per turn it is the turn.
  std::vector<Lit> by_gap, by_period, skipped;
  for (std::int64_t b = 0; b < jobs; ++b) {
    by_period.push_back(jobs == 1 ? kTrue : solver_.new_literal());
    by_gap.push_back(jobs == 1 ? kFalse : solver_.new_literal());
    skipped.push_back(jobs == 1 ? kFalse : solver_.new_literal());
  }
  const Tick gap_within = span(limit - delay);
  const Tick period_within = span(limit - delay - period);
  for (std::int64_t b = 0; b < jobs; ++b) {
    const auto i = static_cast<std::size_t>(b);
    if (jobs > 1) {
      solver_.add_clause({by_gap[i], by_period[i], skipped[i]});
      const std::size_t next = static_cast<std::size_t>((b + 1) % jobs);
      solver_.add_clause({negated(skipped[i]), negated(by_gap[next])});
      group({by_gap[i], by_period[i], skipped[i]}, [this, lits = std::vector{by_gap[i], by_period[i], skipped[i]}] {
        for (const Lit lit : lits) {
          if (solver_.is_open(lit)) return lit;
        }
        return kTrue;
      });
    }
    Tick rest = 0;
    for (std::size_t count = chain.stages.size(); count > 0; --count) {
      const std::uint32_t stage = chain.stages[count - 1];
      for (const auto& [v, is_v] : prefix(count).steps[i].back().at) {
        at_most(both(is_v, by_period[i]), stage, v, source, b, period_within - rest, slope);
        if (jobs > 1) at_most(both(is_v, by_gap[i]), stage, v, source, b - 1, gap_within - rest, slope);
      }
      rest += tasks_[stage].shortest;
    }
    if (jobs == 1) continue;
    // Never used: the earliest thread from b ends where that of b + 1 does.
    const std::vector<std::pair<std::int64_t, Lit>> mine = prefix(chain.stages.size()).steps[i].back().at;
    const std::int64_t turns = b + 1 == jobs ? 1 : 0;
    const std::vector<std::pair<std::int64_t, Lit>> next =
        prefix(chain.stages.size()).steps[static_cast<std::size_t>((b + 1) % jobs)].back().at;
    for (const auto& [v, is_v] : mine) {
      Lit same = kFalse;
      for (const auto& [w, is_w] : next) {
        if (w + turns * tasks_[last].jobs == v) same = is_w;
      }
      solver_.add_clause({negated(skipped[i]), negated(is_v), same});
    }
    for (std::size_t count = 2; count <= chain.stages.size(); ++count) {
      const std::vector<std::pair<std::int64_t, Lit>> from = prefix(count - 1).steps[i].back().at;
      const std::vector<std::pair<std::int64_t, Lit>> to = prefix(count).steps[i].back().at;
      for (const auto& [u, is_u] : from) {
        for (const auto& [v, is_v] : to) {
          const Lit missed = misses(chain.stages[count - 2], u, chain.stages[count - 1], v - 1);
          if (missed != kTrue) solver_.add_clause({negated(skipped[i]), negated(is_u), negated(is_v), missed});
        }
      }
    }
  }
}

void Model::locked_limit(const Chain& chain, const SamplePattern& pattern, double limit, double slope) {
  const Sensor& sensor = problem_.sensors[chain.sensor];
  const std::uint32_t source = chain.stages.front();
  const auto stamp = [&](std::int64_t k) { return stamp_of(sensor, pattern, k); };
  std::vector<Step> first;
  const bool known = paths_.contains({true, static_cast<std::int32_t>(chain.sensor), {source}});
  for (std::int64_t k = 0; k < pattern.samples; ++k) {
    if (known) break;
    const Tick arrival = not_before(stamp(k) + sensor.phase->jitter.ns + sensor.delay_max.ns);
    const std::int64_t turn = floor_div(arrival, turn_);
    const std::int64_t low = turn * tasks_[source].jobs;
    const std::vector<Lit> lits = exactly_one_of(static_cast<std::size_t>(tasks_[source].jobs + 1));
    Step step;
    for (std::int64_t b = low; b <= low + tasks_[source].jobs; ++b) {
      const Lit lit = lits[static_cast<std::size_t>(b - low)];
      step.at.emplace_back(b, lit);
      solver_.add_edge(lit, origin_, start(source, b), arrival - turn_of(source, b) * turn_);
    }
    group(lits, [this, source, arrival, at = step.at] {
      Lit open = kTrue;
      for (const auto& [b, lit] : at) {
        if (!solver_.is_open(lit)) continue;
        open = lit;
        if (value(start(source, b)) + turn_of(source, b) * turn_ >= arrival) break;
      }
      return open;
    });
    first.push_back(std::move(step));
  }
  for (std::size_t count = 1; count <= chain.stages.size(); ++count) {
    Tick rest = 0;
    for (std::size_t i = count; i < chain.stages.size(); ++i) rest += tasks_[chain.stages[i]].shortest;
    const std::uint32_t stage = chain.stages[count - 1];
    const Path& prefix = path(true, {chain.stages.begin(), chain.stages.begin() + static_cast<std::ptrdiff_t>(count)},
                              static_cast<std::int32_t>(chain.sensor), first);
    for (std::int64_t k = 0; k < pattern.samples; ++k) {
      const Tick latest = not_after(static_cast<double>(stamp(k - 1)) + std::floor(limit));
      for (const auto& [v, is_v] : prefix.steps[static_cast<std::size_t>(k)].back().at) {
        solver_.add_edge(is_v, end(stage, v), origin_, turn_of(stage, v) * turn_ + tasks_[stage].lag + rest - latest,
                         slope);
      }
    }
  }
}

void Model::age_limit(const Chain& chain, double limit, double slope, const SamplePattern* pattern) {
  const Sensor& sensor = problem_.sensors[chain.sensor];
  const std::vector<std::uint32_t> stages(chain.stages.rbegin(), chain.stages.rend());
  const std::uint32_t last = stages.front();
  const std::uint32_t source = stages.back();
  std::vector<Step> first;
  for (std::int64_t o = 0; o < tasks_[last].jobs; ++o) first.push_back({{{o, kTrue}}});
  Tick rest = 0;
  for (const std::uint32_t stage : stages) rest += tasks_[stage].shortest;
  const auto delay = static_cast<double>(sensor.delay_max.ns);
  for (std::size_t count = 1; count <= stages.size(); ++count) {
    const std::uint32_t stage = stages[count - 1];
    rest -= tasks_[stage].shortest;
    const Path& suffix = path(false, {stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(count)}, -1, first);
    if (pattern != nullptr && count < stages.size()) continue;
    for (std::int64_t o = 0; o < tasks_[last].jobs; ++o) {
      const std::vector<std::pair<std::int64_t, Lit>> at = suffix.steps[static_cast<std::size_t>(o)].back().at;
      if (pattern == nullptr) {
        const Tick within = span(limit - delay - static_cast<double>(longest_period(sensor).ns)) - rest;
        for (const auto& [u, is_u] : at) at_most(is_u, last, o, stage, u, within, slope);
        continue;
      }
      // The newest sample that is there for certain at the start of the source, in every turn of the pattern.
      const std::int64_t whole = pattern->hyperperiods * problem_.hyperperiod.ns;
      const auto stamp = [&](std::int64_t k) { return stamp_of(sensor, *pattern, k); };
      for (std::int64_t turn = 0; turn < pattern->hyperperiods; ++turn) {
        for (const auto& [u, is_u] : at) {
          const std::int64_t from = (turn_of(source, u) + turn) * problem_.hyperperiod.ns;
          const std::int64_t settled = sensor.phase->jitter.ns + sensor.delay_max.ns;
          std::int64_t low = floor_div((from - settled - sensor.phase->offset.ns) * pattern->samples, whole) - 1;
          while (stamp(low + 1) + settled <= from) ++low;
          std::int64_t high = low;
          while (stamp(high + 1) + settled < from + problem_.hyperperiod.ns) ++high;
          std::vector<Lit> any{negated(is_u)};
          std::vector<std::pair<Tick, Lit>> choices;
          for (std::int64_t k = low; k <= high; ++k) {
            const Lit lit = solver_.new_literal();
            any.push_back(lit);
            const Tick arrival = not_before(stamp(k) + settled) - (turn_of(source, u) + turn) * turn_;
            solver_.add_edge(lit, origin_, start(source, u), arrival);
            const Tick latest = not_after(static_cast<double>(stamp(k)) + std::floor(limit)) - turn * turn_;
            solver_.add_edge(lit, end(last, o), origin_, tasks_[last].lag - latest, slope);
            choices.emplace_back(arrival, lit);
          }
          solver_.add_clause(any);
          std::vector<Lit> lits(any.begin() + 1, any.end());
          lits.push_back(negated(is_u));
          group(lits, [this, source, u = u, choices, not_here = negated(is_u)] {
            Lit open = kTrue;
            for (const auto& [arrival, lit] : choices) {
              if (!solver_.is_open(lit)) continue;
              if (open == kTrue || value(start(source, u)) >= arrival) open = lit;
            }
            return open == kTrue ? not_here : open;
          });
        }
      }
    }
  }
}

// The tightest limit of each step of the threads.
void Model::implied() {
  for (auto& [key, path] : paths_) {
    const auto& [forward, sensor, stages] = key;
    if (!forward || sensor >= 0 || path.within.front() == std::numeric_limits<Tick>::max()) continue;
    for (std::size_t b = 0; b < path.steps.size(); ++b) {
      for (const auto& [v, is_v] : path.steps[b].back().at) {
        at_most(is_v, stages.back(), v, stages.front(), static_cast<std::int64_t>(b) - 1, path.within.front(),
                path.slope.front());
      }
    }
  }
}

// Two jobs that would share a core: one of them first, with room for the other behind it until the next turn.
void Model::separate(std::uint32_t a, std::size_t u, std::uint32_t b, std::size_t v) {
  const auto [known, is_new] = orders_.try_emplace({a, u, b, v}, 0);
  if (!is_new) return solver_.reopen(known->second);
  const Lit a_first = solver_.new_literal();
  const Lit b_first = solver_.new_literal();
  Tick least_a = std::numeric_limits<Tick>::max();
  Tick least_b = least_a;
  std::vector<std::tuple<std::size_t, std::size_t, Tick, Tick>> common;
  for (std::size_t i = 0; i < tasks_[a].ways.size(); ++i) {
    for (std::size_t k = 0; k < tasks_[b].ways.size(); ++k) {
      const Way& mine = tasks_[a].ways[i];
      const Way& theirs = tasks_[b].ways[k];
      Tick of_a = 0;
      Tick of_b = 0;
      for (std::size_t x = 0; x < mine.cores.size(); ++x) {
        for (std::size_t y = 0; y < theirs.cores.size(); ++y) {
          if (mine.cores[x] != theirs.cores[y]) continue;
          of_a = std::max(of_a, mine.occupied[x]);
          of_b = std::max(of_b, theirs.occupied[y]);
        }
      }
      if (of_a == 0) continue;
      common.emplace_back(i, k, of_a, of_b);
      least_a = std::min(least_a, of_a);
      least_b = std::min(least_b, of_b);
    }
  }
  const Differences::Node start_a = tasks_[a].start[u];
  const Differences::Node start_b = tasks_[b].start[v];
  const auto order = [&](Lit lit, Tick of_a, Tick of_b) {
    if (lit == a_first) {
      solver_.add_edge(lit, start_a, start_b, of_a);
      solver_.add_edge(lit, start_b, start_a, of_b - turn_);
    } else {
      solver_.add_edge(lit, start_b, start_a, of_b);
      solver_.add_edge(lit, start_a, start_b, of_a - turn_);
    }
  };
  order(a_first, least_a, least_b);
  order(b_first, least_a, least_b);
  known->second = group({a_first, b_first}, [this, a, b, a_first, b_first, start_a, start_b, least_a, least_b] {
    if (!share(a, b)) return kFalse;
    if (!solver_.is_open(a_first)) return b_first;
    if (!solver_.is_open(b_first)) return a_first;
    const Tick behind = value(start_b) - value(start_a);
    const Tick if_a = std::max<Tick>(0, least_a - behind) + std::max<Tick>(0, least_b + behind - turn_);
    const Tick if_b = std::max<Tick>(0, least_b + behind) + std::max<Tick>(0, least_a - behind - turn_);
    return if_a <= if_b ? a_first : b_first;
  });
  solver_.add_clause({negated(a_first), negated(b_first)});
  for (const auto& [i, k, of_a, of_b] : common) {
    const Lit here = negated(tasks_[a].home[i]);
    const Lit there = negated(tasks_[b].home[k]);
    if (of_a > least_a || of_b > least_b) {
      for (const bool first : {true, false}) {
        const Lit strict = solver_.new_literal();
        if (first) {
          solver_.add_edge(strict, start_a, start_b, of_a);
          solver_.add_edge(strict, start_b, start_a, of_b - turn_);
        } else {
          solver_.add_edge(strict, start_b, start_a, of_b);
          solver_.add_edge(strict, start_a, start_b, of_a - turn_);
        }
        solver_.add_clause({here, there, negated(first ? a_first : b_first), strict});
      }
    }
    solver_.add_clause({here, there, a_first, b_first});
  }
}

bool Model::accept() {
  const std::size_t cores = problem_.board.cores.size();
  std::vector<std::vector<std::uint32_t>> on(cores);
  for (std::uint32_t stage = 0; stage < tasks_.size(); ++stage) {
    for (const std::uint32_t core : tasks_[stage].ways[home_of(stage)].cores) on[core].push_back(stage);
  }
  // More than a core may hold: one of them must go.
  for (std::uint32_t core = 0; core < cores; ++core) {
    const auto allowed =
        static_cast<Tick>(std::floor(static_cast<double>(turn_) * (1.0 - idle_share(problem_.board.cores[core]))));
    std::vector<std::uint32_t> by_load = on[core];
    const auto load = [&](std::uint32_t stage) {
      return tasks_[stage].ways[home_of(stage)].length * tasks_[stage].jobs;
    };
    std::stable_sort(by_load.begin(), by_load.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return load(a) > load(b); });
    Tick sum = 0;
    std::int64_t lost = 0;  // ns, that rounding may take from slots
    std::vector<Lit> clause;
    const auto too_much = [&] { return sum > allowed + clock_.ticks_up({lost}); };
    for (const std::uint32_t stage : by_load) {
      sum += load(stage);
      lost += 2 * tasks_[stage].jobs;
      clause.push_back(negated(tasks_[stage].home[home_of(stage)]));
      if (too_much()) break;
    }
    if (!too_much()) continue;
    solver_.add_clause(std::move(clause));
    return false;
  }
  // Jobs in each other's way.
  struct Pair {
    std::uint32_t a, b;
    std::size_t u, v;
  };
  std::vector<Pair> pairs;
  for (std::uint32_t core = 0; core < cores; ++core) {
    for (std::size_t x = 0; x < on[core].size(); ++x) {
      for (std::size_t y = x + 1; y < on[core].size(); ++y) {
        const std::uint32_t a = on[core][x];
        const std::uint32_t b = on[core][y];
        const auto occupied = [&](std::uint32_t stage) {
          const Way& way = tasks_[stage].ways[home_of(stage)];
          return way.occupied[static_cast<std::size_t>(std::find(way.cores.begin(), way.cores.end(), core) -
                                                       way.cores.begin())];
        };
        for (std::size_t u = 0; u < tasks_[a].start.size(); ++u) {
          for (std::size_t v = 0; v < tasks_[b].start.size(); ++v) {
            const Tick behind = floor_mod(value(tasks_[b].start[v]) - value(tasks_[a].start[u]), turn_);
            if (behind >= occupied(a) && turn_ - behind >= occupied(b)) continue;
            pairs.push_back({a, b, u, v});
          }
        }
      }
    }
  }
  for (const Pair& pair : pairs) separate(pair.a, pair.u, pair.b, pair.v);
  if (!pairs.empty()) return false;
  Table table = table_;
  for (std::uint32_t stage = 0; stage < tasks_.size(); ++stage) {
    Placement placement;
    const Way& way = tasks_[stage].ways[home_of(stage)];
    placement.cores = way.cores;
    placement.length = way.length;
    for (const Differences::Node node : tasks_[stage].start) {
      placement.starts.push_back(value(node));
      placement.ends.push_back(placement.starts.back() + way.length);
      placement.start_ns.push_back(clock_.start_at(0, placement.starts.back()).ns);
      placement.end_ns.push_back(clock_.end_at(0, placement.starts.back() + way.length).ns);
    }
    table.place(stage, std::move(placement));
  }
  // What the decisions say nothing about: a window of a second that is too full, memory over time.
  refused_ = !table.idle_enough() || !table.memory_enough();
  result_ = std::move(table);
  return true;
}

}  // namespace

bool ExactSearch::fits(double ratio) const {
  if (!problem_->disparities.empty() || problem_->phase_lock || problem_->ticks != 0) return false;
  std::int64_t jobs = 0;
  std::vector<std::int64_t> rates;
  for (std::size_t stage = 0; stage < choices_.size(); ++stage) {
    const Choice& choice = choices_[stage];
    if (!choice.budget.segments.empty() || choice.budget.interference != Interference::kAny ||
        problem_->stages[stage].variants[choice.variant].arena_mutex) {
      return false;
    }
    jobs += choice.rate;
    rates.push_back(choice.rate);
  }
  if (jobs > kMostJobs || ticks_per_hyperperiod(problem_->hyperperiod, rates) > kMostTicks) return false;
  const std::int64_t turns = reach(*problem_, ratio) + 1;
  std::int64_t pairs = 0;
  for (const Chain& chain : problem_->chains) {
    if (std::none_of(std::begin(chain.limits), std::end(chain.limits), [](const auto& limit) { return !!limit; })) {
      continue;
    }
    std::int64_t before = 1;
    for (std::size_t i = 0; i < chain.stages.size() && pairs <= kMostPairs; ++i) {
      const std::int64_t here = choices_[chain.stages[i]].rate * std::min(turns, 2 * static_cast<std::int64_t>(i) + 1);
      pairs += choices_[chain.stages.front()].rate * here * (before + here);
      before = here;
    }
  }
  return pairs <= kMostPairs;
}

ExactSearch::Outcome ExactSearch::find(double ratio, const Table* like, std::uint64_t conflicts,
                                       const Deadline& deadline) const {
  Outcome outcome;
  if (!fits(ratio)) return outcome;
  Model model(*problem_, choices_, ratio, like);
  Differences& solver = model.solver();
  constexpr std::uint64_t kBetweenLooks = 200;  // at the clock
  for (;;) {
    const std::uint64_t used = solver.conflicts();
    const Differences::Stop stop = solver.run(std::min(kBetweenLooks, conflicts - std::min(conflicts, used)));
    if (stop == Differences::Stop::kNone) {
      outcome.stop = Outcome::Stop::kNone;
      outcome.refuted = std::min(ratio + solver.least_parameter(), kFarthestRatio * ratio);
      break;
    }
    if (stop == Differences::Stop::kSolution) {
      if (!model.was_refused()) {
        outcome.table = model.result();
        const double worst = Evaluator(*problem_).score(*outcome.table).worst;
        if (worst <= ratio + 1e-7) outcome.stop = Outcome::Stop::kTable;
      }
      break;
    }
    if (solver.conflicts() >= conflicts || deadline.passed()) break;
  }
  outcome.conflicts = solver.conflicts();
  return outcome;
}

}  // namespace takt::sched
