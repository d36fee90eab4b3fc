#include "scheduler/shop/engine.h"

#include <algorithm>
#include <utility>

namespace takt::sched::shop {
namespace {

constexpr std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
constexpr std::size_t variable_of(Lit lit) { return static_cast<std::size_t>(lit >> 1); }

}  // namespace

Engine::Engine(std::uint64_t seed) : random_(seed) {
  new_literal(true);  // kTrueLit
  assigned_[kTrueLit] = 1;
  assigned_[negated(kTrueLit)] = -1;
  position_[0] = -1;
}

Node Engine::new_node(Time least, Time greatest) {
  const auto node = static_cast<Node>(values_.size() / 2);
  for (const Time value : {least, -greatest}) {
    values_.push_back(value);
    past_.push_back({{-1, value}});
    halves_from_.emplace_back();
    resources_of_bound_.emplace_back();
    is_woken_.push_back(false);
  }
  if (least > greatest) broken_ = true;
  return node;
}

Lit Engine::new_literal(bool phase) {
  const auto variable = static_cast<Lit>(phase_.size());
  phase_.push_back(phase);
  activity_.push_back(0);
  position_.push_back(-1);
  heap_at_.push_back(-1);
  resources_of_lit_.emplace_back();
  for (int i = 0; i < 2; ++i) {
    assigned_.push_back(0);
    halves_of_lit_.emplace_back();
    watches_.emplace_back();
  }
  if (variable != 0) heap_insert(at(variable));
  return 2 * variable;
}

void Engine::add_edge(Node from, Node to, Time weight, Lit lit) {
  for (const Half& half :
       {Half{least_of(from), least_of(to), weight, lit}, Half{greatest_of(to), greatest_of(from), weight, lit}}) {
    const auto index = static_cast<std::int32_t>(halves_.size());
    halves_.push_back(half);
    halves_from_[at(half.from)].push_back(index);
    halves_of_lit_[at(lit)].push_back(index);
    if (!conflict_.empty() || broken_) continue;
    if (!follow(index) && level() == 0) broken_ = true;
  }
}

bool Engine::add_clause(std::vector<Lit> lits) {
  if (broken_) return false;
  // Watched: literals that are not false, else those that became false last.
  const auto rank = [&](Lit lit) {
    if (assigned_[at(lit)] >= 0) return std::int32_t{1} << 30;
    return position_[variable_of(lit)];
  };
  std::stable_sort(lits.begin(), lits.end(), [&](Lit a, Lit b) { return rank(a) > rank(b); });
  if (lits.empty()) {
    broken_ = true;
    return false;
  }
  const bool all_false = assigned_[at(lits[0])] < 0;
  const bool unit = !all_false && (lits.size() == 1 || assigned_[at(lits[1])] < 0);
  if (lits.size() == 1) {
    if (all_false && level() == 0) {
      broken_ = true;
      return false;
    }
    if (level() > 0) backtrack(0);
    if (assigned_[at(lits[0])] < 0) {
      broken_ = true;
      return false;
    }
    return assign(lits[0], {});
  }
  const auto index = static_cast<std::int32_t>(clauses_.size());
  clauses_.push_back({std::move(lits), 0, 0});
  attach(index);
  const std::vector<Lit>& kept = clauses_.back().lits;
  if (all_false) {
    std::vector<Need> needs;
    for (const Lit lit : kept) needs.push_back(Need::lit(negated(lit)));
    refuse(std::move(needs));
    if (level() == 0) broken_ = true;
    return level() != 0;
  }
  if (unit) assign(kept[0], {Kind::kClause, index, 0});
  return true;
}

bool Engine::attach(std::int32_t clause) {
  const std::vector<Lit>& lits = clauses_[at(clause)].lits;
  watches_[at(negated(lits[0]))].push_back({clause, lits[1]});
  watches_[at(negated(lits[1]))].push_back({clause, lits[0]});
  return true;
}

void Engine::add_resource(std::int64_t capacity, std::vector<Member> members, std::vector<Lit> before) {
  const auto index = static_cast<std::int32_t>(resources_.size());
  for (const Member& member : members) {
    for (const Bound bound : {least_of(member.start), greatest_of(member.end)}) {
      resources_of_bound_[at(bound)].push_back(index);
    }
    if (member.present != kTrueLit) resources_of_lit_[variable_of(member.present)].push_back(index);
  }
  if (capacity == 1) {
    for (const Lit lit : before) {
      if (lit > 1) resources_of_lit_[variable_of(lit)].push_back(index);
    }
  }
  resources_.push_back({capacity, std::move(members), std::move(before), true});
}

bool Engine::raise(Bound bound, Time value) {
  if (broken_) return false;
  if (!raise(bound, value, {})) broken_ = true;
  return !broken_;
}

void Engine::new_level() {
  level_starts_.push_back(trail_.size());
  level_needs_.push_back(needs_.size());
}

void Engine::backtrack(std::int32_t to) {
  conflict_.clear();
  if (level() <= to) return;
  for (const Bound bound : woken_) is_woken_[at(bound)] = false;
  woken_.clear();
  const std::size_t keep = level_starts_[at(to)];
  for (std::size_t i = trail_.size(); i-- > keep;) {
    const Event& event = trail_[i];
    if (event.id >= 0) {
      past_[at(event.id)].pop_back();
      values_[at(event.id)] = past_[at(event.id)].back().value;
    } else {
      const Lit lit = -1 - event.id;
      const std::size_t variable = variable_of(lit);
      phase_[variable] = (lit & 1) == 0;
      assigned_[at(lit)] = assigned_[at(negated(lit))] = 0;
      if (heap_at_[variable] < 0) heap_insert(variable);
    }
  }
  trail_.resize(keep);
  needs_.resize(level_needs_[at(to)]);
  level_starts_.resize(at(to));
  level_needs_.resize(at(to));
  lits_done_ = trail_.size();
}

bool Engine::assign(Lit lit, const Reason& reason) {
  if (assigned_[at(lit)] > 0) return true;
  if (assigned_[at(lit)] < 0) {
    if (level() == 0) {
      broken_ = true;
      return false;
    }
    // What the reason says against what is.
    trail_.push_back({-1 - lit, 0, level(), reason});
    reason_needs_.clear();
    explain(static_cast<std::int32_t>(trail_.size()) - 1);
    trail_.pop_back();
    std::vector<Need> needs = reason_needs_;
    needs.push_back(Need::lit(negated(lit)));
    return refuse(std::move(needs));
  }
  assigned_[at(lit)] = 1;
  assigned_[at(negated(lit))] = -1;
  position_[variable_of(lit)] = static_cast<std::int32_t>(trail_.size());
  trail_.push_back({-1 - lit, 0, level(), reason});
  return true;
}

void Engine::wake(Bound bound) {
  if (is_woken_[at(bound)]) return;
  is_woken_[at(bound)] = true;
  woken_.push_back(bound);
}

bool Engine::raise(Bound bound, Time value, const Reason& reason) {
  Time& now = values_[at(bound)];
  if (value <= now) return true;
  now = value;
  if (level() == 0) {
    past_[at(bound)].back().value = value;
  } else {
    past_[at(bound)].push_back({static_cast<std::int32_t>(trail_.size()), value});
    trail_.push_back({bound, value, level(), reason});
  }
  wake(bound);
  const Time other = values_[at(bound ^ 1)];
  if (value + other <= 0) return true;
  // The weakest pair that still crosses: all of the excess is given to the bound that was there before.
  return refuse({Need::bound(bound, value), Need::bound(bound ^ 1, 1 - value)});
}

bool Engine::refuse(std::vector<Need> needs) {
  if (conflict_.empty()) conflict_ = std::move(needs);
  if (level() == 0) broken_ = true;
  return false;
}

Engine::Reason Engine::keep(const std::vector<Need>& needs, Kind kind) {
  const Reason reason{kind, static_cast<std::int32_t>(needs_.size()), static_cast<std::int32_t>(needs.size())};
  if (level() > 0) needs_.insert(needs_.end(), needs.begin(), needs.end());
  return reason;
}

// One half edge: raises its target, or refutes its literal.
bool Engine::follow(std::int32_t index) {
  const Half& half = halves_[at(index)];
  const std::int8_t state = assigned_[at(half.lit)];
  if (state < 0) return true;
  const Time reached = values_[at(half.from)] + half.weight;
  if (state > 0) return raise(half.to, reached, {Kind::kEdge, index, 0});
  if (reached + values_[at(half.to ^ 1)] <= 0) return true;
  return assign(negated(half.lit), {Kind::kRefuted, index, 0});
}

bool Engine::propagate_edges(Bound bound) {
  for (const std::int32_t half : halves_from_[at(bound)]) {
    if (!follow(half)) return false;
  }
  for (const std::int32_t resource : resources_of_bound_[at(bound)]) resources_[at(resource)].dirty = true;
  return true;
}

bool Engine::propagate_clauses(Lit lit) {
  std::vector<Watch>& watches = watches_[at(lit)];
  const Lit gone = negated(lit);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const Watch watch = watches[i];
    if (assigned_[at(watch.other)] > 0) {
      watches[kept++] = watch;
      continue;
    }
    std::vector<Lit>& lits = clauses_[at(watch.clause)].lits;
    if (lits[0] == gone) std::swap(lits[0], lits[1]);
    if (assigned_[at(lits[0])] > 0) {
      watches[kept++] = {watch.clause, lits[0]};
      continue;
    }
    bool moved = false;
    for (std::size_t k = 2; k < lits.size(); ++k) {
      if (assigned_[at(lits[k])] < 0) continue;
      std::swap(lits[1], lits[k]);
      watches_[at(negated(lits[1]))].push_back({watch.clause, lits[0]});
      moved = true;
      break;
    }
    if (moved) continue;
    watches[kept++] = watch;
    if (assigned_[at(lits[0])] == 0) {
      assign(lits[0], {Kind::kClause, watch.clause, 0});
      continue;
    }
    std::vector<Need> needs;
    for (const Lit l : lits) needs.push_back(Need::lit(negated(l)));
    for (++i; i < watches.size(); ++i) watches[kept++] = watches[i];
    watches.resize(kept);
    return refuse(std::move(needs));
  }
  watches.resize(kept);
  return true;
}

bool Engine::propagate() {
  if (broken_) return false;
  if (!conflict_.empty()) return false;
  for (;;) {
    if (lits_done_ < trail_.size()) {
      const Event& event = trail_[lits_done_++];
      if (event.id >= 0) continue;
      const Lit lit = -1 - event.id;
      for (const std::int32_t resource : resources_of_lit_[variable_of(lit)]) resources_[at(resource)].dirty = true;
      if (!propagate_clauses(lit)) return false;
      for (const std::int32_t half : halves_of_lit_[at(lit)]) {
        if (!follow(half)) return false;
      }
      continue;
    }
    if (!woken_.empty()) {
      const Bound bound = woken_.back();
      woken_.pop_back();
      is_woken_[at(bound)] = false;
      if (!propagate_edges(bound)) return false;
      continue;
    }
    Resource* next = nullptr;
    for (Resource& resource : resources_) {
      if (resource.dirty) {
        next = &resource;
        break;
      }
    }
    if (next == nullptr) return true;
    next->dirty = false;
    if (!propagate_resource(*next)) {
      next->dirty = true;
      return false;
    }
  }
}

// ---- conflicts ----------------------------------------------------------------------------------------------------

void Engine::require(const Need& need) {
  std::int32_t event = 0;
  if (need.is_lit()) {
    const Lit lit = need.as_lit();
    event = position_[variable_of(lit)];
    if (event < 0 || trail_[at(event)].level == 0) return;
    if (marked_[at(event)] != 0) return;
  } else {
    const std::vector<Past>& past = past_[at(need.id)];
    const auto first = std::lower_bound(past.begin(), past.end(), need.value,
                                        [](const Past& entry, Time value) { return entry.value < value; });
    event = first->event;
    if (event < 0) return;
    if (marked_[at(event)] != 0) {
      required_[at(event)] = std::max(required_[at(event)], need.value);
      return;
    }
    required_[at(event)] = need.value;
  }
  marked_[at(event)] = 1;
  touched_.push_back(event);
  pending_.push_back(event);
  std::push_heap(pending_.begin(), pending_.end());
}

// What made this event happen, into reason_needs_.
void Engine::explain(std::int32_t index) {
  const Event& event = trail_[at(index)];
  const Reason& reason = event.reason;
  switch (reason.kind) {
    case Kind::kNone: break;
    case Kind::kClause: {
      Clause& clause = clauses_[at(reason.index)];
      clause.activity += clause_bump_;
      const Lit lit = -1 - event.id;
      for (const Lit other : clause.lits) {
        if (other != lit) reason_needs_.push_back(Need::lit(negated(other)));
      }
      break;
    }
    case Kind::kEdge: {
      const Half& half = halves_[at(reason.index)];
      if (half.lit != kTrueLit) reason_needs_.push_back(Need::lit(half.lit));
      reason_needs_.push_back(Need::bound(half.from, required_[at(index)] - half.weight));
      break;
    }
    case Kind::kRefuted: {
      // from + weight + (negated greatest of the target) > 0 at the time of the event.
      const Half& half = halves_[at(reason.index)];
      const std::vector<Past>& past = past_[at(half.to ^ 1)];
      auto then = std::lower_bound(past.begin(), past.end(), index,
                                   [](const Past& entry, std::int32_t event_then) { return entry.event < event_then; });
      const Time other = std::prev(then)->value;
      reason_needs_.push_back(Need::bound(half.to ^ 1, other));
      reason_needs_.push_back(Need::bound(half.from, 1 - half.weight - other));
      break;
    }
    case Kind::kNeeds:
    case Kind::kShiftedNeeds: {
      const Time less = reason.kind == Kind::kShiftedNeeds ? event.value - required_[at(index)] : 0;
      for (std::int32_t i = 0; i < reason.count; ++i) {
        Need need = needs_[at(reason.index + i)];
        if (!need.is_lit()) need.value -= less;
        reason_needs_.push_back(need);
      }
      break;
    }
  }
}

void Engine::bump(std::size_t variable) {
  activity_[variable] += bump_;
  if (activity_[variable] > 1e100) {
    for (double& activity : activity_) activity *= 1e-100;
    bump_ *= 1e-100;
  }
  if (heap_at_[variable] >= 0) heap_up(at(heap_at_[variable]));
}

bool Engine::resolve() {
  ++conflicts_;
  if (level() == 0) {
    broken_ = true;
    return false;
  }
  marked_.resize(trail_.size() + 1, 0);
  required_.resize(trail_.size() + 1, 0);
  pending_.clear();
  touched_.clear();
  for (const Need& need : conflict_) require(need);
  std::vector<Lit> learned;
  Lit decisive = -1;
  std::int32_t top = -1;  // level of the conflict
  std::int32_t open = 0;  // pending events of that level
  const auto next_level = [&] {
    top = trail_[at(pending_.front())].level;
    open = 0;
    for (const std::int32_t event : pending_) open += trail_[at(event)].level == top ? 1 : 0;
  };
  if (!pending_.empty()) next_level();
  while (!pending_.empty()) {
    const std::int32_t index = pending_.front();
    const Event& event = trail_[at(index)];
    if (decisive < 0 && open == 0) next_level();
    const bool lit = event.id < 0;
    if (lit && event.level != top) {
      std::pop_heap(pending_.begin(), pending_.end());
      pending_.pop_back();
      learned.push_back(negated(-1 - event.id));
      bump(variable_of(-1 - event.id));
      continue;
    }
    if (lit && event.level == top && open == 1 && decisive < 0) {
      std::pop_heap(pending_.begin(), pending_.end());
      pending_.pop_back();
      decisive = negated(-1 - event.id);
      bump(variable_of(-1 - event.id));
      open = 0;
      continue;
    }
    std::pop_heap(pending_.begin(), pending_.end());
    pending_.pop_back();
    if (event.level == top) --open;
    if (lit) bump(variable_of(-1 - event.id));
    reason_needs_.clear();
    explain(index);
    const std::size_t before = touched_.size();
    for (const Need& need : reason_needs_) require(need);
    for (std::size_t i = before; i < touched_.size(); ++i) open += trail_[at(touched_[i])].level == top ? 1 : 0;
  }
  for (const std::int32_t event : touched_) marked_[at(event)] = 0;
  bump_ /= 0.95;
  clause_bump_ /= 0.999;
  if (clause_bump_ > 1e100) {
    for (Clause& clause : clauses_) clause.activity *= 1e-100;
    clause_bump_ *= 1e-100;
  }
  if (decisive < 0) {
    broken_ = true;
    return false;
  }
  std::int32_t back = 0;
  std::vector<std::int32_t> levels{top};
  for (std::size_t i = 0; i < learned.size(); ++i) {
    const std::int32_t l = trail_[at(position_[variable_of(learned[i])])].level;
    levels.push_back(l);
    if (l > back) {
      back = l;
      std::swap(learned[i], learned[0]);
    }
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  backtrack(back);
  if (learned.empty()) return assign(decisive, {}) || !broken_;
  learned.insert(learned.begin(), decisive);
  const auto index = static_cast<std::int32_t>(clauses_.size());
  clauses_.push_back({std::move(learned), clause_bump_, static_cast<std::int32_t>(levels.size())});
  ++learned_;
  attach(index);
  assign(decisive, {Kind::kClause, index, 0});
  return true;
}

// At level 0: drops the half of the learned clauses that were of least use.
void Engine::forget() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < clauses_.size(); ++i) {
    if (clauses_[i].glue > 2) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return clauses_[a].activity < clauses_[b].activity; });
  std::vector<bool> drop(clauses_.size(), false);
  for (std::size_t i = 0; i < order.size() / 2; ++i) drop[order[i]] = true;
  std::vector<Clause> kept;
  for (std::size_t i = 0; i < clauses_.size(); ++i) {
    if (drop[i]) continue;
    // Satisfied for good: not needed any more.
    bool satisfied = false;
    for (const Lit lit : clauses_[i].lits) satisfied |= assigned_[at(lit)] > 0;
    if (!satisfied) kept.push_back(std::move(clauses_[i]));
  }
  clauses_ = std::move(kept);
  learned_ = 0;
  for (const Clause& clause : clauses_) learned_ += clause.glue > 0 ? 1 : 0;
  for (std::vector<Watch>& watches : watches_) watches.clear();
  for (std::size_t i = 0; i < clauses_.size(); ++i) {
    // Literals that are false at level 0 must not be watched.
    std::vector<Lit>& lits = clauses_[i].lits;
    std::stable_partition(lits.begin(), lits.end(), [&](Lit lit) { return assigned_[at(lit)] >= 0; });
    attach(static_cast<std::int32_t>(i));
  }
}

// ---- decisions ----------------------------------------------------------------------------------------------------

void Engine::heap_up(std::size_t i) {
  const std::size_t variable = heap_[i];
  while (i > 0) {
    const std::size_t parent = (i - 1) / 2;
    if (activity_[heap_[parent]] >= activity_[variable]) break;
    heap_[i] = heap_[parent];
    heap_at_[heap_[i]] = static_cast<std::int32_t>(i);
    i = parent;
  }
  heap_[i] = variable;
  heap_at_[variable] = static_cast<std::int32_t>(i);
}

void Engine::heap_down(std::size_t i) {
  const std::size_t variable = heap_[i];
  for (;;) {
    std::size_t child = 2 * i + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && activity_[heap_[child + 1]] > activity_[heap_[child]]) ++child;
    if (activity_[heap_[child]] <= activity_[variable]) break;
    heap_[i] = heap_[child];
    heap_at_[heap_[i]] = static_cast<std::int32_t>(i);
    i = child;
  }
  heap_[i] = variable;
  heap_at_[variable] = static_cast<std::int32_t>(i);
}

void Engine::heap_insert(std::size_t variable) {
  heap_.push_back(variable);
  heap_at_[variable] = static_cast<std::int32_t>(heap_.size()) - 1;
  heap_up(heap_.size() - 1);
}

// The open variable with the highest activity; 0 when there is none.
std::size_t Engine::decide() {
  while (!heap_.empty()) {
    const std::size_t variable = heap_.front();
    heap_at_[variable] = -1;
    const std::size_t last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      heap_.front() = last;
      heap_at_[last] = 0;
      heap_down(0);
    }
    if (assigned_[2 * variable] == 0) return variable;
  }
  return 0;
}

void Engine::remember_phases() {
  best_phase_ = phase_;
  for (std::size_t variable = 1; variable < phase_.size(); ++variable) {
    if (assigned_[2 * variable] != 0) best_phase_[variable] = assigned_[2 * variable] > 0;
  }
}

void Engine::recall_phases() { std::copy(best_phase_.begin(), best_phase_.end(), phase_.begin()); }

void Engine::shake() {
  double most = 1;
  for (const double activity : activity_) most = std::max(most, activity);
  for (std::size_t variable = 1; variable < phase_.size(); ++variable) {
    activity_[variable] += most * 1e-3 * static_cast<double>(random_() % 1000) / 1000.0;
  }
  for (std::size_t i = heap_.size(); i-- > 0;) heap_down(i);
}

Engine::Stop Engine::run(std::uint64_t conflicts) {
  const std::uint64_t end = conflicts_ + conflicts;
  if (level() == 0 && learned_ > learned_limit_) {
    if (!propagate()) return Stop::kInfeasible;
    forget();
    learned_limit_ += learned_limit_ / 20;
  }
  for (;;) {
    if (!propagate()) {
      if (broken_ || !resolve()) return Stop::kInfeasible;
      if (conflicts_ >= end) return Stop::kBudget;
      continue;
    }
    const std::size_t variable = decide();
    if (variable == 0) return Stop::kComplete;
    new_level();
    assign(static_cast<Lit>(2 * variable + (phase_[variable] ? 0 : 1)), {});
  }
}

}  // namespace takt::sched::shop
