// Yes/no decisions over differences of instants: clauses, conditional constraints value(to) >= value(from) + weight,
// and learning from every conflict. No instant has a range of its own, so time may run around a circle: what the
// cyclic tables need (exact.h). A circle of constraints that adds up to more than nothing is a conflict and its own
// explanation (Cotton, Maler: Fast and flexible difference constraint propagation for DPLL(T), SAT 2006).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

using Lit = std::int32_t;  // 2 * variable + (1 if negated)
inline constexpr Lit kTrue = 0;
constexpr Lit negated(Lit lit) { return lit ^ 1; }

class Differences {
 public:
  using Node = std::uint32_t;

  // What the problem decides: which alternative of a group comes first, and whether the instants are good as they are.
  class Host {
   public:
    virtual ~Host() = default;
    // An open literal of this group; negated(kTrue): it need not be decided now (see reopen()).
    virtual Lit choose(std::uint32_t group) = 0;
    // Every group has a true literal. Adds what is broken, or returns true: a solution.
    virtual bool accept() = 0;
  };

  explicit Differences(Host& host);

  // ---- the model, at any time ---------------------------------------------------------------------------------
  Node new_node(Tick value);
  Lit new_literal();
  // value(to) >= value(from) + weight while `lit` is true; no two values are 2^27 ticks apart. `slope` > 0: the weight
  // shrinks by that much per unit of the parameter; see least_parameter().
  void add_edge(Lit lit, Node from, Node to, Tick weight, double slope = 0);
  void add_clause(std::vector<Lit> lits);
  // One of them is to become true (clauses say so by themselves); decided by Host::choose.
  std::uint32_t add_group(std::vector<Lit> lits);

  // A group that Host::choose passed over is looked at again.
  void reopen(std::uint32_t group);

  // ---- the search -----------------------------------------------------------------------------------------------
  enum class Stop { kSolution, kNone, kBudget };
  // Until a solution is accepted, none is possible, or `conflicts` more were met.
  Stop run(std::uint64_t conflicts);
  // At the start: literals whose constraints can never hold become false.
  void probe();

  [[nodiscard]] Tick value(Node node) const { return values_[node]; }
  [[nodiscard]] bool is_true(Lit lit) const { return assigned_[static_cast<std::size_t>(lit)] > 0; }
  [[nodiscard]] bool is_open(Lit lit) const { return assigned_[static_cast<std::size_t>(lit)] == 0; }
  [[nodiscard]] const std::vector<Lit>& group(std::uint32_t index) const { return groups_[index]; }
  [[nodiscard]] std::uint64_t conflicts() const { return conflicts_; }
  // By how much the parameter must grow before any conflict so far ceases to be one: what kNone proves for the present
  // weights it proves for all smaller growths. Infinite when no conflict depends on the parameter.
  [[nodiscard]] double least_parameter() const { return least_parameter_; }

 private:
  using Distance = std::int32_t;

  struct Edge {
    Node from = 0, to = 0;
    Tick weight = 0;
    double slope = 0;
    Lit lit = kTrue;
  };
  struct Clause {
    std::vector<Lit> lits;
    double activity = 0;
    bool learned = false;
  };
  struct Watch {
    std::uint32_t clause = 0;
    Lit other = 0;
  };
  static constexpr std::uint32_t kNoReason = std::numeric_limits<std::uint32_t>::max();
  // The other constraints of this instant add up to more than the literal's own allows: see explain().
  static constexpr std::uint32_t kDistance = kNoReason - 1;

  [[nodiscard]] std::size_t level() const { return level_starts_.size(); }
  void new_level();
  void assign(Lit lit, std::uint32_t reason);
  void oppose(std::uint32_t edge);
  void backtrack(std::size_t to);
  bool propagate();  // false: conflict_ holds the literals of a false clause
  bool propagate_clauses();
  void close_distances();                     // of what holds always
  void extend_distances(std::uint32_t edge);  // refutes literals that `edge` leaves no room for
  bool raise(std::uint32_t edge);             // repairs values after `edge` became active
  void explain_circle(std::uint32_t edge);
  std::vector<Lit> explain(Lit lit);  // of kDistance: a clause that implies it
  void note_circle(Tick sum, double slope, std::size_t sloped);
  bool resolve();  // learns from conflict_; false: nothing is possible any more
  void attach(std::uint32_t clause);
  void forget();
  void bump(std::size_t variable);
  bool decide();  // false: every group has a true literal
  void heap_up(std::size_t at);
  void heap_down(std::size_t at);
  void heap_insert(std::size_t variable);

  Host* host_;
  std::vector<Tick> values_;  // by node
  std::vector<Edge> edges_;
  std::vector<std::vector<std::uint32_t>> active_;    // by node: active edges that leave it
  std::vector<std::vector<std::uint32_t>> edges_of_;  // by literal
  std::vector<std::int8_t> assigned_;                 // by literal
  std::vector<std::size_t> level_of_;                 // by variable
  std::vector<std::uint32_t> reason_of_;              // by variable
  std::vector<std::uint32_t> edge_of_;                // by variable: what kDistance refuted
  std::vector<std::size_t> position_;                 // by variable: in trail_
  std::vector<double> activity_;                      // by variable
  std::vector<std::int32_t> group_of_;                // by variable, -1: follows from others
  std::vector<std::vector<Lit>> groups_;
  std::vector<Clause> clauses_;
  std::vector<std::vector<Watch>> watches_;  // by literal that became true
  std::vector<Lit> trail_;
  std::vector<std::size_t> level_starts_;
  std::vector<std::uint32_t> activated_;       // edges, in order
  std::vector<std::size_t> activated_starts_;  // by level
  std::vector<Lit> pending_;
  std::size_t clauses_done_ = 0;
  std::size_t edges_done_ = 0;
  std::vector<std::size_t> heap_;
  std::vector<std::int32_t> heap_at_;
  std::vector<Lit> conflict_;
  bool broken_ = false;

  // The longest path between any two nodes over active edges, row by row; grows along a branch. Empty before run().
  std::vector<Distance> distance_;
  std::vector<std::int32_t> opposed_;       // by pair (a, b): the last edge from b to a; edges_ are chained
  std::vector<std::int32_t> opposed_next_;  // by edge
  std::vector<std::pair<std::uint32_t, Distance>> replaced_;
  std::vector<std::size_t> replaced_starts_;  // by level
  std::vector<Node> rows_;
  std::vector<std::pair<Node, Distance>> columns_;

  // Of raise() and explain().
  std::vector<Tick> gain_;
  std::vector<Tick> raised_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::uint8_t> state_;
  std::vector<Node> touched_;
  std::vector<std::pair<Tick, Node>> queue_;

  std::vector<std::uint8_t> seen_;  // of resolve(), by variable
  double bump_ = 1;
  double clause_bump_ = 1;
  std::uint64_t conflicts_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t restart_ = 0;  // at so many conflicts
  std::size_t learned_ = 0;
  std::size_t learned_limit_ = 6000;
  double least_parameter_ = std::numeric_limits<double>::infinity();
};

}  // namespace takt::sched
