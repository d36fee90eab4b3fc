#include "scheduler/synthesis/differences.h"

#include <algorithm>
#include <utility>

namespace takt::sched {
namespace {

std::size_t index(Lit lit) { return static_cast<std::size_t>(lit); }
std::size_t variable(Lit lit) { return static_cast<std::size_t>(lit >> 1); }

std::uint64_t luby(std::uint64_t i) {
  std::uint64_t size = 1;
  while (size < i + 1) size = 2 * size + 1;
  while (size - 1 != i) {
    size = (size - 1) / 2;
    i %= size;
  }
  return (size + 1) / 2;
}

constexpr Tick kFar = Tick{1} << 28;         // ticks; all values lie within half of that of each other
constexpr std::uint64_t kRestartUnit = 250;  // conflicts

}  // namespace

Differences::Differences(Host& host) : host_(&host) {
  new_literal();
  assigned_[index(kTrue)] = 1;
  assigned_[index(negated(kTrue))] = -1;
}

Differences::Node Differences::new_node(Tick value) {
  values_.push_back(value);
  active_.emplace_back();
  gain_.push_back(0);
  raised_.push_back(0);
  parent_.push_back(0);
  state_.push_back(0);
  return static_cast<Node>(values_.size() - 1);
}

Lit Differences::new_literal() {
  const auto lit = static_cast<Lit>(assigned_.size());
  for (int sign = 0; sign < 2; ++sign) {
    assigned_.push_back(0);
    edges_of_.emplace_back();
    watches_.emplace_back();
  }
  level_of_.push_back(0);
  reason_of_.push_back(kNoReason);
  edge_of_.push_back(0);
  position_.push_back(0);
  activity_.push_back(0);
  group_of_.push_back(-1);
  heap_at_.push_back(-1);
  seen_.push_back(0);
  return lit;
}

void Differences::add_edge(Lit lit, Node from, Node to, Tick weight, double slope) {
  const auto edge = static_cast<std::uint32_t>(edges_.size());
  // Beyond that nothing can hold (or be broken): distances stay within their type.
  edges_.push_back({from, to, std::clamp(weight, -kFar, kFar), slope, lit});
  if (lit == kTrue) {
    // Active for good: given before the search begins.
    active_[from].push_back(edge);
    if (values_[to] < values_[from] + edges_[edge].weight && !raise(edge)) broken_ = true;
    return;
  }
  edges_of_[index(lit)].push_back(edge);
  if (!distance_.empty()) oppose(edge);
}

void Differences::oppose(std::uint32_t edge) {
  const std::size_t pair = edges_[edge].to * values_.size() + edges_[edge].from;
  opposed_next_.resize(edges_.size(), -1);
  opposed_next_[edge] = opposed_[pair];
  opposed_[pair] = static_cast<std::int32_t>(edge);
}

void Differences::close_distances() {
  const std::size_t n = values_.size();
  constexpr Distance kNone = -(Distance{1} << 29);
  distance_.assign(n * n, kNone);
  opposed_.assign(n * n, -1);
  for (std::size_t i = 0; i < n; ++i) distance_[i * n + i] = 0;
  for (std::uint32_t edge = 0; edge < edges_.size(); ++edge) {
    const Edge& e = edges_[edge];
    if (e.lit != kTrue) {
      oppose(edge);
    } else {
      distance_[e.from * n + e.to] = std::max(distance_[e.from * n + e.to], static_cast<Distance>(e.weight));
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const Distance first = distance_[i * n + k];
      if (first == kNone) continue;
      for (std::size_t j = 0; j < n; ++j) {
        distance_[i * n + j] = std::max(distance_[i * n + j], first + distance_[k * n + j]);
      }
    }
  }
}

void Differences::extend_distances(std::uint32_t edge) {
  const std::size_t n = values_.size();
  const Edge& e = edges_[edge];
  rows_.clear();
  columns_.clear();
  const auto weight = static_cast<Distance>(e.weight);
  const Distance* const behind = &distance_[e.to * n];
  const Distance* const beside = &distance_[e.from * n];
  for (Node i = 0; i < n; ++i) {
    if (distance_[i * n + e.from] + weight > distance_[i * n + e.to]) rows_.push_back(i);
    if (behind[i] + weight > beside[i]) columns_.emplace_back(i, behind[i]);
  }
  const bool undo = level() > 0;
  for (const Node i : rows_) {
    Distance* const row = &distance_[i * n];
    const std::int32_t* const opposed = &opposed_[i * n];
    const Distance first = row[e.from] + weight;
    for (const auto& [j, rest] : columns_) {
      const Distance sum = first + rest;
      if (sum <= row[j]) continue;
      if (undo) replaced_.emplace_back(static_cast<std::uint32_t>(i * n + j), row[j]);
      row[j] = sum;
      for (std::int32_t o = opposed[j]; o >= 0; o = opposed_next_[static_cast<std::size_t>(o)]) {
        const Edge& other = edges_[static_cast<std::size_t>(o)];
        if (sum + other.weight <= 0 || !is_open(other.lit)) continue;
        assign(negated(other.lit), kDistance);
        edge_of_[variable(other.lit)] = static_cast<std::uint32_t>(o);
        if (!undo) explain(negated(other.lit));  // what it costs counts even if nobody asks again
      }
    }
  }
}

// The longest path from where the refuted edge ends to where it begins, over what was active before.
std::vector<Lit> Differences::explain(Lit lit) {
  const std::uint32_t refuted = edge_of_[variable(lit)];
  const std::size_t before = position_[variable(lit)];
  const Node source = edges_[refuted].to;
  const Node target = edges_[refuted].from;
  // The present values satisfy those edges: what an edge leaves free is never negative (Dijkstra).
  queue_.clear();
  touched_.clear();
  state_[source] = 1;
  gain_[source] = 0;
  touched_.push_back(source);
  queue_.emplace_back(0, source);
  while (!queue_.empty()) {
    const auto [gain, node] = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    if (state_[node] == 2) continue;
    state_[node] = 2;
    if (node == target) break;
    for (const std::uint32_t e : active_[node]) {
      const Edge& edge = edges_[e];
      if (edge.lit != kTrue && position_[variable(edge.lit)] >= before) continue;
      const Tick next = gain - (values_[edge.to] - values_[node] - edge.weight);
      if (state_[edge.to] == 2 || (state_[edge.to] == 1 && next <= gain_[edge.to])) continue;
      if (state_[edge.to] == 0) touched_.push_back(edge.to);
      state_[edge.to] = 1;
      gain_[edge.to] = next;
      parent_[edge.to] = e;
      queue_.emplace_back(next, edge.to);
      std::push_heap(queue_.begin(), queue_.end());
    }
  }
  for (const Node node : touched_) state_[node] = 0;
  std::vector<Lit> clause{lit};
  Tick sum = edges_[refuted].weight;
  double slope = edges_[refuted].slope;
  std::size_t sloped = slope > 0 ? 1 : 0;
  for (Node node = target; node != source; node = edges_[parent_[node]].from) {
    const Edge& edge = edges_[parent_[node]];
    sum += edge.weight;
    slope += edge.slope;
    sloped += edge.slope > 0 ? 1 : 0;
    if (edge.lit != kTrue) clause.push_back(negated(edge.lit));
  }
  note_circle(sum, slope, sloped);
  return clause;
}

void Differences::note_circle(Tick sum, double slope, std::size_t sloped) {
  if (sloped == 0) return;
  // Weights with a slope are rounded to whole ticks.
  const double growth = (static_cast<double>(sum) - 1.01 * static_cast<double>(sloped)) / slope;
  least_parameter_ = std::min(least_parameter_, std::max(growth, 0.0));
}

std::uint32_t Differences::add_group(std::vector<Lit> lits) {
  const auto group = static_cast<std::uint32_t>(groups_.size());
  for (const Lit lit : lits) {
    if (variable(lit) == variable(kTrue) || group_of_[variable(lit)] >= 0) continue;
    group_of_[variable(lit)] = static_cast<std::int32_t>(group);
    heap_insert(variable(lit));
  }
  groups_.push_back(std::move(lits));
  return group;
}

void Differences::reopen(std::uint32_t group) {
  for (const Lit lit : groups_[group]) heap_insert(variable(lit));
}

void Differences::add_clause(std::vector<Lit> lits) {
  std::sort(lits.begin(), lits.end());
  lits.erase(std::unique(lits.begin(), lits.end()), lits.end());
  for (std::size_t i = 0; i + 1 < lits.size(); ++i) {
    if (lits[i + 1] == negated(lits[i])) return;
  }
  // What is decided at the start for good.
  for (const Lit lit : lits) {
    if (is_true(lit) && level_of_[variable(lit)] == 0) return;
  }
  std::erase_if(lits, [&](Lit lit) { return assigned_[index(lit)] < 0 && level_of_[variable(lit)] == 0; });
  if (lits.empty()) {
    broken_ = true;
    return;
  }
  // Watched: a literal that is open or true, else the one that was refuted last.
  const auto rank = [&](Lit lit) {
    return assigned_[index(lit)] >= 0 ? std::numeric_limits<std::size_t>::max() : level_of_[variable(lit)];
  };
  std::stable_sort(lits.begin(), lits.end(), [&](Lit a, Lit b) { return rank(a) > rank(b); });
  if (lits.size() == 1) {
    backtrack(0);
    if (is_open(lits[0])) assign(lits[0], kNoReason);
    return;
  }
  if (assigned_[index(lits[0])] < 0) {
    // Refuted: go back to where one literal is open again.
    const std::size_t first = level_of_[variable(lits[0])];
    backtrack(first - 1);
    std::stable_sort(lits.begin(), lits.end(), [&](Lit a, Lit b) { return rank(a) > rank(b); });
  }
  const auto clause = static_cast<std::uint32_t>(clauses_.size());
  clauses_.push_back({std::move(lits), 0, false});
  attach(clause);
  const std::vector<Lit>& kept = clauses_.back().lits;
  if (assigned_[index(kept[1])] < 0 && is_open(kept[0])) {
    backtrack(level_of_[variable(kept[1])]);
    assign(kept[0], clause);
  }
}

void Differences::attach(std::uint32_t clause) {
  const std::vector<Lit>& lits = clauses_[clause].lits;
  watches_[index(negated(lits[0]))].push_back({clause, lits[1]});
  watches_[index(negated(lits[1]))].push_back({clause, lits[0]});
}

void Differences::new_level() {
  level_starts_.push_back(trail_.size());
  activated_starts_.push_back(activated_.size());
  replaced_starts_.push_back(replaced_.size());
}

void Differences::assign(Lit lit, std::uint32_t reason) {
  assigned_[index(lit)] = 1;
  assigned_[index(negated(lit))] = -1;
  level_of_[variable(lit)] = level();
  reason_of_[variable(lit)] = reason;
  position_[variable(lit)] = trail_.size();
  trail_.push_back(lit);
}

void Differences::backtrack(std::size_t to) {
  if (level() <= to) return;
  const std::size_t start = level_starts_[to];
  while (trail_.size() > start) {
    const Lit lit = trail_.back();
    trail_.pop_back();
    assigned_[index(lit)] = 0;
    assigned_[index(negated(lit))] = 0;
    if (group_of_[variable(lit)] >= 0) heap_insert(variable(lit));
  }
  clauses_done_ = std::min(clauses_done_, start);
  edges_done_ = std::min(edges_done_, start);
  level_starts_.resize(to);
  while (activated_.size() > activated_starts_[to]) {
    active_[edges_[activated_.back()].from].pop_back();
    activated_.pop_back();
  }
  activated_starts_.resize(to);
  while (replaced_.size() > replaced_starts_[to]) {
    distance_[replaced_.back().first] = replaced_.back().second;
    replaced_.pop_back();
  }
  replaced_starts_.resize(to);
}

bool Differences::propagate() {
  for (;;) {
    if (!propagate_clauses()) return false;
    if (edges_done_ == trail_.size()) return true;
    // What follows from others is often the stronger constraint: the newest literals first.
    pending_.assign(trail_.begin() + static_cast<std::ptrdiff_t>(edges_done_), trail_.end());
    edges_done_ = trail_.size();
    while (!pending_.empty()) {
      for (const std::uint32_t edge : edges_of_[index(pending_.back())]) {
        const Edge& e = edges_[edge];
        if (distance_[e.from * values_.size() + e.to] >= e.weight) continue;  // says nothing new
        active_[e.from].push_back(edge);
        if (level() > 0) activated_.push_back(edge);
        if (values_[e.to] < values_[e.from] + e.weight && !raise(edge)) return false;
        extend_distances(edge);
      }
      pending_.pop_back();
    }
  }
}

bool Differences::propagate_clauses() {
  while (clauses_done_ < trail_.size()) {
    const Lit lit = trail_[clauses_done_++];
    std::vector<Watch>& watches = watches_[index(lit)];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < watches.size(); ++i) {
      const Watch watch = watches[i];
      if (is_true(watch.other)) {
        watches[kept++] = watch;
        continue;
      }
      std::vector<Lit>& lits = clauses_[watch.clause].lits;
      if (lits[0] == negated(lit)) std::swap(lits[0], lits[1]);
      if (is_true(lits[0])) {
        watches[kept++] = {watch.clause, lits[0]};
        continue;
      }
      bool moved = false;
      for (std::size_t k = 2; k < lits.size(); ++k) {
        if (assigned_[index(lits[k])] < 0) continue;
        std::swap(lits[1], lits[k]);
        watches_[index(negated(lits[1]))].push_back({watch.clause, lits[0]});
        moved = true;
        break;
      }
      if (moved) continue;
      watches[kept++] = {watch.clause, lits[0]};
      if (assigned_[index(lits[0])] < 0) {
        conflict_ = lits;
        Clause& clause = clauses_[watch.clause];
        if (clause.learned) clause.activity += clause_bump_;
        for (++i; i < watches.size(); ++i) watches[kept++] = watches[i];
        watches.resize(kept);
        return false;
      }
      assign(lits[0], watch.clause);
    }
    watches.resize(kept);
  }
  return true;
}

// Every node is raised at most once: with the present values no edge but the new one asks for more, so the largest gain
// is final, as in Dijkstra's algorithm.
bool Differences::raise(std::uint32_t edge) {
  const Node source = edges_[edge].from;
  const auto offer = [&](std::uint32_t e, Tick base) {
    const Node to = edges_[e].to;
    const Tick gain = base + edges_[e].weight - values_[to];
    if (gain <= 0 || state_[to] == 2 || (state_[to] == 1 && gain <= gain_[to])) return;
    if (state_[to] == 0) touched_.push_back(to);
    state_[to] = 1;
    gain_[to] = gain;
    parent_[to] = e;
    queue_.emplace_back(gain, to);
    std::push_heap(queue_.begin(), queue_.end());
  };
  queue_.clear();
  touched_.clear();
  offer(edge, values_[source]);
  bool circle = false;
  while (!queue_.empty() && !circle) {
    const auto [gain, node] = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    if (state_[node] == 2 || gain != gain_[node]) continue;
    if (node == source) {
      circle = true;
      break;
    }
    state_[node] = 2;
    raised_[node] = values_[node] + gain;
    for (const std::uint32_t e : active_[node]) offer(e, raised_[node]);
  }
  if (circle) {
    explain_circle(edge);
  } else {
    for (const Node node : touched_) {
      if (state_[node] == 2) values_[node] = raised_[node];
    }
  }
  for (const Node node : touched_) state_[node] = 0;
  return !circle;
}

void Differences::explain_circle(std::uint32_t edge) {
  conflict_.clear();
  Tick sum = 0;
  double slope = 0;
  std::size_t sloped = 0;
  Node node = edges_[edge].from;
  for (;;) {
    const std::uint32_t e = parent_[node];
    sum += edges_[e].weight;
    slope += edges_[e].slope;
    sloped += edges_[e].slope > 0 ? 1 : 0;
    if (edges_[e].lit != kTrue) conflict_.push_back(negated(edges_[e].lit));
    node = edges_[e].from;
    if (e == edge) break;
  }
  note_circle(sum, slope, sloped);
  std::sort(conflict_.begin(), conflict_.end());
  conflict_.erase(std::unique(conflict_.begin(), conflict_.end()), conflict_.end());
}

bool Differences::resolve() {
  ++conflicts_;
  std::size_t deepest = 0;
  for (const Lit lit : conflict_) deepest = std::max(deepest, level_of_[variable(lit)]);
  backtrack(deepest);
  if (deepest == 0) return false;
  std::vector<Lit> learned{0};
  std::vector<std::size_t> marked;
  std::size_t open = 0;
  const auto mark = [&](Lit lit) {
    const std::size_t v = variable(lit);
    if (seen_[v] != 0 || level_of_[v] == 0) return;
    seen_[v] = 1;
    marked.push_back(v);
    bump(v);
    if (level_of_[v] == deepest) {
      ++open;
    } else {
      learned.push_back(lit);
    }
  };
  for (const Lit lit : conflict_) mark(lit);
  std::size_t at = trail_.size();
  Lit turning = 0;
  for (;;) {
    while (seen_[variable(trail_[--at])] == 0) {
    }
    turning = trail_[at];
    if (--open == 0) break;
    if (reason_of_[variable(turning)] == kDistance) {
      for (const Lit lit : explain(turning)) {
        if (lit != turning) mark(lit);
      }
      continue;
    }
    Clause& reason = clauses_[reason_of_[variable(turning)]];
    if (reason.learned) reason.activity += clause_bump_;
    for (const Lit lit : reason.lits) {
      if (lit != turning) mark(lit);
    }
  }
  learned[0] = negated(turning);
  // A literal whose reason lies in the clause says nothing new.
  std::size_t kept = 1;
  for (std::size_t i = 1; i < learned.size(); ++i) {
    const std::uint32_t reason = reason_of_[variable(learned[i])];
    const bool implied =
        reason < kDistance && std::all_of(clauses_[reason].lits.begin(), clauses_[reason].lits.end(), [&](Lit lit) {
          return variable(lit) == variable(learned[i]) || seen_[variable(lit)] != 0 || level_of_[variable(lit)] == 0;
        });
    if (!implied) learned[kept++] = learned[i];
  }
  learned.resize(kept);
  for (const std::size_t v : marked) seen_[v] = 0;
  std::size_t back = 0;
  for (std::size_t i = 1; i < learned.size(); ++i) {
    if (level_of_[variable(learned[i])] <= back) continue;
    back = level_of_[variable(learned[i])];
    std::swap(learned[1], learned[i]);
  }
  backtrack(back);
  bump_ /= 0.985;
  clause_bump_ /= 0.999;
  if (learned.size() == 1) {
    assign(learned[0], kNoReason);
    return true;
  }
  const auto clause = static_cast<std::uint32_t>(clauses_.size());
  clauses_.push_back({std::move(learned), clause_bump_, true});
  attach(clause);
  ++learned_;
  assign(clauses_.back().lits[0], clause);
  return true;
}

// Half of what was learned goes: what took part in the fewest conflicts. At level 0, where no clause is a reason that
// anybody asks for.
void Differences::forget() {
  std::vector<double> activities;
  for (const Clause& clause : clauses_) {
    if (clause.learned && clause.lits.size() > 2) activities.push_back(clause.activity);
  }
  if (activities.empty()) return;
  const auto middle = activities.begin() + static_cast<std::ptrdiff_t>(activities.size() / 2);
  std::nth_element(activities.begin(), middle, activities.end());
  const double limit = *middle;
  std::erase_if(clauses_, [&](const Clause& clause) {
    return clause.learned && clause.lits.size() > 2 && clause.activity < limit;
  });
  for (std::vector<Watch>& watches : watches_) watches.clear();
  learned_ = 0;
  for (std::uint32_t c = 0; c < clauses_.size(); ++c) {
    attach(c);
    learned_ += clauses_[c].learned ? 1 : 0;
  }
  for (const Lit lit : trail_) reason_of_[variable(lit)] = kNoReason;
  learned_limit_ += learned_limit_ / 10;
}

void Differences::bump(std::size_t v) {
  activity_[v] += bump_;
  if (activity_[v] > 1e100) {
    for (double& activity : activity_) activity *= 1e-100;
    bump_ *= 1e-100;
  }
  if (heap_at_[v] >= 0) heap_up(static_cast<std::size_t>(heap_at_[v]));
}

bool Differences::decide() {
  while (!heap_.empty()) {
    const std::size_t v = heap_.front();
    heap_.front() = heap_.back();
    heap_at_[heap_.front()] = 0;
    heap_.pop_back();
    heap_at_[v] = -1;
    if (!heap_.empty()) heap_down(0);
    // Also where `v` itself is false: it may stand for others that left the heap while it was true.
    const auto group = static_cast<std::uint32_t>(group_of_[v]);
    const std::vector<Lit>& lits = groups_[group];
    if (std::any_of(lits.begin(), lits.end(), [&](Lit lit) { return is_true(lit); })) continue;
    const Lit lit = host_->choose(group);
    if (lit == negated(kTrue)) continue;
    heap_insert(v);
    new_level();
    assign(lit, kNoReason);
    return true;
  }
  return false;
}

void Differences::probe() {
  close_distances();
  for (std::uint32_t edge = 0; edge < edges_.size(); ++edge) {
    const Edge& e = edges_[edge];
    if (e.lit == kTrue || !is_open(e.lit) || distance_[e.to * values_.size() + e.from] + e.weight <= 0) continue;
    assign(negated(e.lit), kDistance);
    edge_of_[variable(e.lit)] = edge;
    explain(negated(e.lit));
  }
  if (broken_ || !propagate()) {
    broken_ = true;
    return;
  }
  for (std::size_t v = 1; v < level_of_.size(); ++v) {
    const auto lit = static_cast<Lit>(2 * v);
    if (!is_open(lit) || edges_of_[index(lit)].empty()) continue;
    new_level();
    assign(lit, kNoReason);
    if (propagate()) {
      backtrack(0);
      continue;
    }
    // Learned like any conflict, so that every circle that it rests on is noted.
    if (!resolve() || !propagate()) {
      broken_ = true;
      return;
    }
  }
}

Differences::Stop Differences::run(std::uint64_t conflicts) {
  const std::uint64_t end = conflicts_ + conflicts;
  while (!broken_) {
    if (conflicts_ >= restart_) {
      backtrack(0);
      if (learned_ > learned_limit_) forget();
      restart_ = conflicts_ + kRestartUnit * luby(round_++);
    }
    if (!propagate()) {
      broken_ = !resolve();
      if (!broken_ && conflicts_ >= end) return Stop::kBudget;
    } else if (!decide() && host_->accept()) {
      return Stop::kSolution;
    }
  }
  return Stop::kNone;
}

void Differences::heap_up(std::size_t at) {
  const std::size_t v = heap_[at];
  while (at > 0 && activity_[heap_[(at - 1) / 2]] < activity_[v]) {
    heap_[at] = heap_[(at - 1) / 2];
    heap_at_[heap_[at]] = static_cast<std::int32_t>(at);
    at = (at - 1) / 2;
  }
  heap_[at] = v;
  heap_at_[v] = static_cast<std::int32_t>(at);
}

void Differences::heap_down(std::size_t at) {
  const std::size_t v = heap_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && activity_[heap_[child + 1]] > activity_[heap_[child]]) ++child;
    if (activity_[heap_[child]] <= activity_[v]) break;
    heap_[at] = heap_[child];
    heap_at_[heap_[at]] = static_cast<std::int32_t>(at);
    at = child;
  }
  heap_[at] = v;
  heap_at_[v] = static_cast<std::int32_t>(at);
}

void Differences::heap_insert(std::size_t v) {
  if (heap_at_[v] >= 0) return;
  heap_.push_back(v);
  heap_up(heap_.size() - 1);
}

}  // namespace takt::sched
