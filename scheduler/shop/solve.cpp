// solve(): the shop as decisions and bounds, plans read off, limits tightened until none is left.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "scheduler/shop/engine.h"
#include "scheduler/shop/paths.h"
#include "scheduler/shop/shop.h"
#include "scheduler/shop/tabu.h"

namespace takt::sched::shop {
namespace {

class Model {
 public:
  Model(const Shop& shop, const Paths& paths, std::uint64_t seed, const std::optional<Plan>& hint, Time horizon)
      : shop_(shop), engine_(seed), hint_(hint) {
    jobs(paths, horizon);
    closure(paths);
    resources();
  }

  Engine& engine() { return engine_; }

  // Only plans better than this from now on. At level 0.
  bool demand_better_than(Time objective) {
    for (std::size_t j = 0; j < shop_.jobs.size(); ++j) {
      if (shop_.jobs[j].tail == kNoTail) continue;
      const Time latest = objective - 1 - shop_.jobs[j].tail;
      if (!engine_.raise(greatest_of(end_[j]), offset_[j] - latest)) return false;
    }
    return true;
  }

  // The plan of the present decisions. Where it overfills a resource, clauses that forbid it are added instead.
  std::optional<Plan> plan() {
    Plan plan;
    std::vector<Time> ends;
    plan.objective = -kNever;
    for (std::size_t j = 0; j < shop_.jobs.size(); ++j) {
      const Job& job = shop_.jobs[j];
      std::uint32_t mode = 0;
      while (!engine_.is_true(mode_[j][mode])) ++mode;
      plan.modes.push_back(mode);
      plan.starts.push_back(engine_.least(start_[j]));
      ends.push_back(plan.starts.back() + job.modes[mode].duration);
      if (job.tail != kNoTail) plan.objective = std::max(plan.objective, ends.back() + job.tail);
    }
    bool fits = true;
    for (std::uint32_t r = 0; r < shop_.capacities.size(); ++r) {
      if (shop_.capacities[r] > 1) fits = forbid_overfull(plan, ends, r) && fits;
    }
    if (!fits) return std::nullopt;
    return plan;
  }

 private:
  void jobs(const Paths& paths, Time horizon) {
    for (std::size_t j = 0; j < shop_.jobs.size(); ++j) {
      const Job& job = shop_.jobs[j];
      Time longest = 0;
      for (const Mode& mode : job.modes) longest = std::max(longest, mode.duration);
      const Time shortest = paths.shortest[j];
      const Time latest = std::min(horizon, paths.latest[j]);
      start_.push_back(engine_.new_node(paths.head[j], latest - shortest));
      end_.push_back(start_.back());
      offset_.push_back(shortest);
      std::vector<Lit> lits;
      if (job.modes.size() == 1) {
        lits.push_back(kTrueLit);
      } else {
        const auto first_choice = [&](std::uint32_t m) { return hint_ ? hint_->modes[j] == m : m == 0; };
        for (std::uint32_t m = 0; m < job.modes.size(); ++m) lits.push_back(engine_.new_literal(first_choice(m)));
        engine_.add_clause(lits);
        for (std::size_t a = 0; a < lits.size(); ++a) {
          for (std::size_t b = a + 1; b < lits.size(); ++b) engine_.add_clause({negated(lits[a]), negated(lits[b])});
        }
      }
      if (longest > shortest) {
        end_[j] = engine_.new_node(paths.head[j] + shortest, latest);
        offset_[j] = 0;
        engine_.add_edge(start_[j], end_[j], shortest, kTrueLit);
        for (std::uint32_t m = 0; m < job.modes.size(); ++m) {
          engine_.add_edge(start_[j], end_[j], job.modes[m].duration, lits[m]);
        }
      }
      mode_.push_back(std::move(lits));
    }
    for (const Order& order : shop_.orders) {
      engine_.add_edge(end_[order.before], start_[order.after], offset_[order.before] + order.delay, kTrueLit);
    }
  }

  void closure(const Paths& paths) {
    const std::size_t n = shop_.jobs.size();
    reaches_.assign(n, std::vector<bool>(n, false));
    for (std::size_t k = n; k-- > 0;) {
      const std::size_t j = paths.order[k];
      for (const std::uint32_t i : paths.after[j]) {
        const std::uint32_t next = shop_.orders[i].after;
        reaches_[j][next] = true;
        for (std::size_t x = 0; x < n; ++x) {
          if (reaches_[next][x]) reaches_[j][x] = true;
        }
      }
    }
  }

  [[nodiscard]] bool earlier_in_hint(std::uint32_t a, std::uint32_t b) const {
    if (hint_) return hint_->starts[a] != hint_->starts[b] ? hint_->starts[a] < hint_->starts[b] : a < b;
    return engine_.least(start_[a]) + engine_.greatest(start_[a]) <=
           engine_.least(start_[b]) + engine_.greatest(start_[b]);
  }

  // "a ends before b starts".
  Lit first(std::uint32_t a, std::uint32_t b, bool phase) {
    if (reaches_[a][b]) return kTrueLit;
    if (reaches_[b][a]) return negated(kTrueLit);
    const auto [known, is_new] = first_.try_emplace({a, b}, 0);
    if (is_new) {
      known->second = engine_.new_literal(phase);
      engine_.add_edge(end_[a], start_[b], offset_[a], known->second);
    }
    return known->second;
  }

  // Both orders as one decision.
  void either(std::uint32_t a, std::uint32_t b) {
    if (reaches_[a][b] || reaches_[b][a] || first_.contains({a, b})) return;
    const Lit lit = first(a, b, earlier_in_hint(a, b));
    first_[{b, a}] = negated(lit);
    engine_.add_edge(end_[b], start_[a], offset_[b], negated(lit));
  }

  void resources() {
    for (std::uint32_t r = 0; r < shop_.capacities.size(); ++r) {
      std::vector<Member> members;
      std::vector<std::pair<std::uint32_t, std::uint32_t>> who;  // job, mode
      for (std::uint32_t j = 0; j < shop_.jobs.size(); ++j) {
        for (std::uint32_t m = 0; m < shop_.jobs[j].modes.size(); ++m) {
          const Mode& mode = shop_.jobs[j].modes[m];
          std::int64_t demand = 0;
          for (const Use& use : mode.uses) demand += use.resource == r ? use.demand : 0;
          if (demand == 0 || mode.duration == 0) continue;
          members.push_back({start_[j], end_[j], offset_[j], mode.duration, demand, mode_[j][m]});
          who.emplace_back(j, m);
        }
      }
      std::vector<Lit> before(members.size() * members.size(), -1);
      for (std::size_t i = 0; i < members.size(); ++i) {
        for (std::size_t k = i + 1; k < members.size(); ++k) {
          const auto [a, mode_a] = who[i];
          const auto [b, mode_b] = who[k];
          if (a == b || members[i].demand + members[k].demand <= shop_.capacities[r]) continue;
          if (shop_.jobs[a].modes.size() == 1 && shop_.jobs[b].modes.size() == 1) {
            either(a, b);
          } else if (!reaches_[a][b] && !reaches_[b][a]) {
            const bool earlier = earlier_in_hint(a, b);
            const Lit ab = first(a, b, earlier);
            const Lit ba = first(b, a, !earlier);
            engine_.add_clause({negated(mode_[a][mode_a]), negated(mode_[b][mode_b]), ab, ba});
            engine_.add_clause({negated(ab), negated(ba)});
          }
          before[i * members.size() + k] = first(a, b, false);
          before[k * members.size() + i] = first(b, a, false);
        }
      }
      engine_.add_resource(shop_.capacities[r], std::move(members), std::move(before));
    }
  }

  // Looks for instants at which the plan holds more than there is; each gives a clause: one of these jobs comes before
  // another. True when there is none.
  bool forbid_overfull(const Plan& plan, const std::vector<Time>& ends, std::uint32_t r) {
    struct Holder {
      std::uint32_t job;
      std::int64_t demand;
    };
    std::vector<Holder> holders;
    for (std::uint32_t j = 0; j < shop_.jobs.size(); ++j) {
      std::int64_t demand = 0;
      for (const Use& use : shop_.jobs[j].modes[plan.modes[j]].uses) demand += use.resource == r ? use.demand : 0;
      if (demand > 0 && ends[j] > plan.starts[j]) holders.push_back({j, demand});
    }
    std::sort(holders.begin(), holders.end(), [&](const Holder& a, const Holder& b) {
      return plan.starts[a.job] != plan.starts[b.job] ? plan.starts[a.job] < plan.starts[b.job] : a.job < b.job;
    });
    std::vector<Holder> now;
    for (const Holder& next : holders) {
      std::erase_if(now, [&](const Holder& holder) { return ends[holder.job] <= plan.starts[next.job]; });
      now.push_back(next);
      std::int64_t level = 0;
      for (const Holder& holder : now) level += holder.demand;
      if (level <= shop_.capacities[r]) continue;
      // A small set: the largest demands first, then whoever can be spared goes.
      std::stable_sort(now.begin(), now.end(), [](const Holder& a, const Holder& b) { return a.demand > b.demand; });
      std::vector<Holder> set;
      level = 0;
      for (const Holder& holder : now) {
        set.push_back(holder);
        level += holder.demand;
        if (level > shop_.capacities[r]) break;
      }
      for (std::size_t i = set.size(); i-- > 0;) {
        if (level - set[i].demand <= shop_.capacities[r]) continue;
        level -= set[i].demand;
        set.erase(set.begin() + static_cast<std::ptrdiff_t>(i));
      }
      // First to be tried: the job with most room after the one that ends first.
      std::pair<std::uint32_t, std::uint32_t> favourite{set[0].job, set[0].job};
      Time least = kNever * 2;
      for (const Holder& a : set) {
        for (const Holder& b : set) {
          if (a.job == b.job) continue;
          const Time lost = ends[a.job] - engine_.greatest(start_[b.job]);
          if (lost >= least) continue;
          least = lost;
          favourite = {a.job, b.job};
        }
      }
      std::vector<Lit> clause;
      for (const Holder& a : set) {
        if (shop_.jobs[a.job].modes.size() > 1) clause.push_back(negated(mode_[a.job][plan.modes[a.job]]));
        for (const Holder& b : set) {
          if (a.job == b.job || reaches_[b.job][a.job]) continue;
          clause.push_back(first(a.job, b.job, favourite == std::pair(a.job, b.job)));
        }
      }
      engine_.add_clause(std::move(clause));
      return false;
    }
    return true;
  }

  const Shop& shop_;
  Engine engine_;
  const std::optional<Plan>& hint_;
  std::vector<Node> start_, end_;
  std::vector<Time> offset_;            // the job ends at value(end) + offset
  std::vector<std::vector<Lit>> mode_;  // by job, mode
  std::vector<std::vector<bool>> reaches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lit> first_;
};

std::uint64_t luby(std::uint64_t i) {
  std::uint64_t size = 1;
  while (size < i + 1) size = 2 * size + 1;
  while (size - 1 != i) {
    size = (size - 1) / 2;
    i %= size;
  }
  return (size + 1) / 2;
}

// Everything but some jobs keeps its way to run and its place among the others on every resource for one job; these
// jobs lie in a stretch of time, or share two resources.
struct Neighbourhood {
  Shop shop;
  std::vector<bool> free;
  Plan plan;  // the present one, in terms of `shop`
};

Neighbourhood neighbourhood(const Shop& shop, const Paths& paths, const Plan& plan, std::mt19937_64& random) {
  const std::size_t n = shop.jobs.size();
  Neighbourhood out{shop, std::vector<bool>(n, false), plan};
  const auto below = [&](std::size_t size) { return random() % std::max<std::size_t>(size, 1); };
  std::vector<Time> ends;
  for (std::size_t j = 0; j < n; ++j) ends.push_back(plan.starts[j] + shop.jobs[j].modes[plan.modes[j]].duration);
  constexpr std::size_t kMost = 45;
  std::size_t count = 0;
  const auto set_free = [&](std::size_t j) {
    count += out.free[j] || count >= kMost ? 0 : 1;
    out.free[j] = out.free[j] || count < kMost;
  };
  if (below(3) == 0) {
    const std::uint64_t first = below(shop.capacities.size());
    const std::uint64_t second = below(shop.capacities.size());
    for (std::size_t j = 0; j < n; ++j) {
      for (const Use& use : shop.jobs[j].modes[plan.modes[j]].uses) {
        if (use.resource == first || use.resource == second) set_free(j);
      }
    }
  } else {
    // The jobs nearest in time to one of them.
    const std::size_t centre = below(n);
    std::vector<std::size_t> near(n);
    for (std::size_t j = 0; j < n; ++j) near[j] = j;
    std::stable_sort(near.begin(), near.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(plan.starts[a] - plan.starts[centre]) < std::abs(plan.starts[b] - plan.starts[centre]);
    });
    const std::size_t wanted = 15 + below(kMost - 15);
    for (std::size_t k = 0; k < std::min(n, wanted); ++k) set_free(near[k]);
  }
  for (std::size_t j = 0; j < n; ++j) {
    if (out.free[j]) continue;
    out.shop.jobs[j].modes = {shop.jobs[j].modes[plan.modes[j]]};
    out.plan.modes[j] = 0;
  }
  std::vector<std::size_t> position(n);
  for (std::size_t k = 0; k < n; ++k) position[paths.order[k]] = k;
  for (std::uint32_t r = 0; r < shop.capacities.size(); ++r) {
    if (shop.capacities[r] > 1) continue;
    std::vector<std::uint32_t> fixed;
    for (std::uint32_t j = 0; j < n; ++j) {
      const std::vector<Use>& uses = shop.jobs[j].modes[plan.modes[j]].uses;
      const bool here = std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.resource == r; });
      if (here && !out.free[j] && ends[j] > plan.starts[j]) fixed.push_back(j);
    }
    std::sort(fixed.begin(), fixed.end(), [&](std::uint32_t a, std::uint32_t b) {
      return plan.starts[a] != plan.starts[b] ? plan.starts[a] < plan.starts[b] : position[a] < position[b];
    });
    for (std::size_t k = 1; k < fixed.size(); ++k) out.shop.orders.push_back({fixed[k - 1], fixed[k], 0});
  }
  return out;
}

// From a plan, if there is one. With `around`, plans near the best one are looked for in turn with the search over all:
// flexible shops have too many ways to run for the latter to find good ones by itself.
Outcome search(const Shop& shop, const Limits& limits, std::optional<Plan> start, bool around) {
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    return limits.seconds > 0 &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limits.seconds;
  };
  const Paths paths(shop);
  outcome.lower_bound = lower_bound(shop);
  outcome.plan = std::move(start);
  const auto done = [&] {
    return outcome.plan && (outcome.plan->objective <= outcome.lower_bound ||
                            (limits.good_enough && outcome.plan->objective <= *limits.good_enough));
  };
  const auto proof = [&] {
    if (!outcome.plan) return Proof::kUnknown;
    return outcome.plan->objective <= outcome.lower_bound ? Proof::kOptimal : Proof::kFeasible;
  };
  if (done()) {
    outcome.proof = proof();
    return outcome;
  }
  std::mt19937_64 random(limits.seed);
  std::uint64_t nearby = 0;  // conflicts of neighbourhoods, and what walks cost
  constexpr std::uint64_t kMovesOfAConflict = 100;
  constexpr std::uint64_t kMovesOfAWalk = 5000;
  constexpr int kWalksOfARound = 80;
  const bool walks = around && outcome.plan && Tabu::applies(shop);
  // Walks start between two of the best plans so far: one plan alone is a place that they do not get away from. Of
  // plans that run almost all jobs the same way only the best is kept: soon all would be one plan's kin.
  constexpr std::size_t kKept = 40;
  const auto kin = [&](const Plan& a, const Plan& b) {
    std::size_t differ = 0;
    for (std::size_t j = 0; j < a.modes.size(); ++j) differ += a.modes[j] != b.modes[j] ? 1 : 0;
    return differ <= a.modes.size() / 24;
  };
  std::vector<Plan> kept;
  std::optional<Tabu> tabu;
  if (walks) tabu.emplace(shop, paths);
  const auto walk = [&](std::uint64_t moves) {
    const Time enough = std::max(outcome.lower_bound, limits.good_enough.value_or(outcome.lower_bound));
    Plan from = *outcome.plan;
    if (kept.size() == kKept) {
      const std::size_t a = random() % kKept, b = random() % (kKept - 1);
      from = tabu->mix(kept[a], kept[b < a ? b : b + 1], random);
    } else if (!kept.empty()) {
      from = tabu->scatter(random);
    }
    Plan found = tabu->improve(from, moves, enough, random, out_of_time);
    nearby += moves / kMovesOfAConflict;
    const bool known = std::any_of(kept.begin(), kept.end(),
                                   [&](const Plan& k) { return k.objective <= found.objective && kin(k, found); });
    if (!known) {
      std::erase_if(kept, [&](const Plan& k) { return kin(k, found); });
      const auto at = std::upper_bound(kept.begin(), kept.end(), found.objective,
                                       [](Time o, const Plan& k) { return o < k.objective; });
      kept.insert(at, found);
      if (kept.size() > kKept) kept.pop_back();
    }
    if (found.objective >= outcome.plan->objective) return false;
    outcome.plan = std::move(found);
    return true;
  };
  if (walks) walk(3000);
  if (done()) {
    outcome.conflicts = nearby;
    outcome.proof = proof();
    return outcome;
  }
  Time horizon = 0;
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    Time longest = 0;
    for (const Mode& mode : shop.jobs[j].modes) longest = std::max(longest, mode.duration);
    horizon += longest;
  }
  for (const Order& order : shop.orders) horizon += order.delay;
  Time last_release = 0;
  for (const Job& job : shop.jobs) last_release = std::max(last_release, job.release);
  horizon += last_release;
  const std::optional<Plan> hint = outcome.plan;
  Model model(shop, paths, limits.seed, hint, horizon);
  Engine& engine = model.engine();
  bool possible = !outcome.plan || model.demand_better_than(outcome.plan->objective);
  for (std::uint64_t round = 0; possible && engine.conflicts() + nearby < limits.conflicts; ++round) {
    const std::uint64_t share = std::min(100 * luby(round), limits.conflicts - engine.conflicts() - nearby);
    const std::uint64_t round_end = engine.conflicts() + share;
    bool restart = false;
    while (!restart) {
      const Engine::Stop stop = engine.run(round_end - std::min(engine.conflicts(), round_end - 1));
      if (stop == Engine::Stop::kInfeasible) {
        possible = false;
        break;
      }
      if (stop == Engine::Stop::kComplete) {
        std::optional<Plan> plan = model.plan();
        if (!plan) {
          if (engine.is_broken()) {
            possible = false;
            break;
          }
          continue;
        }
        outcome.plan = std::move(plan);
        engine.remember_phases();
        engine.back_to_root();
        if (done()) break;
        if (!model.demand_better_than(outcome.plan->objective)) {
          possible = false;
          break;
        }
      }
      restart = engine.conflicts() >= round_end;
    }
    if (!possible || done()) break;
    engine.back_to_root();
    engine.recall_phases();
    bool better = false;
    for (int k = 0; walks && k < kWalksOfARound && !done() && !out_of_time(); ++k) better |= walk(kMovesOfAWalk);
    if (better) possible = model.demand_better_than(outcome.plan->objective);
    if (!possible || done()) break;
    for (int trial = 0; around && outcome.plan && trial < 40 && !out_of_time() && !done(); ++trial) {
      const Neighbourhood near = neighbourhood(shop, paths, *outcome.plan, random);
      Limits small;
      small.conflicts =
          std::min<std::uint64_t>(200, limits.conflicts - std::min(limits.conflicts, engine.conflicts() + nearby));
      small.seed = random();
      const Outcome found = search(near.shop, small, near.plan, false);
      nearby += found.conflicts + 1;
      if (!found.plan || found.plan->objective >= outcome.plan->objective) continue;
      const std::vector<std::uint32_t> modes = outcome.plan->modes;
      outcome.plan = found.plan;
      for (std::size_t j = 0; j < modes.size(); ++j) {
        if (!near.free[j]) outcome.plan->modes[j] = modes[j];
      }
      possible = model.demand_better_than(outcome.plan->objective);
      if (!possible) break;
    }
    if (!possible || done()) break;
    if (out_of_time()) {
      outcome.cut_by_time = true;
      break;
    }
  }
  outcome.conflicts = engine.conflicts() + nearby;
  if (!possible) {
    if (outcome.plan) outcome.lower_bound = outcome.plan->objective;
    outcome.proof = outcome.plan ? Proof::kOptimal : Proof::kInfeasible;
  } else {
    outcome.proof = proof();
  }
  return outcome;
}

}  // namespace

Outcome solve(const Shop& shop, const Limits& limits) {
  if (!check(shop)) return {};
  const bool flexible =
      std::any_of(shop.jobs.begin(), shop.jobs.end(), [](const Job& job) { return job.modes.size() > 1; });
  return search(shop, limits, list_schedule(shop), flexible);
}

}  // namespace takt::sched::shop
