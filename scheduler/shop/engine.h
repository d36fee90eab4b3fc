// The search below solve(): yes/no decisions with learning from conflicts, over start times that are only known by
// their bounds (difference constraints), and resources that hold one job at a time. Private to scheduler/shop.
//
// A conflict is explained by the bounds and decisions that cause it; bounds are explained by the decisions that raised
// them, as weakly as the conflict allows; what is left is a clause over decisions that no later table can break
// (Siala, Artigues, Hebrard: Two clause learning approaches for disjunctive scheduling, CP 2015).
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/shop/shop.h"

namespace takt::sched::shop {

using Lit = std::int32_t;  // 2 * variable + (1 if negated)
inline constexpr Lit kTrueLit = 0;
constexpr Lit negated(Lit lit) { return lit ^ 1; }

// Bounds: index 2n holds the least value of node n, 2n + 1 the negated greatest; both only grow on a branch.
using Bound = std::int32_t;
using Node = std::int32_t;
constexpr Bound least_of(Node node) { return 2 * node; }
constexpr Bound greatest_of(Node node) { return 2 * node + 1; }

// A literal that is true (id < 0) or a bound that has reached a value.
struct Need {
  std::int32_t id = 0;
  Time value = 0;
  static Need lit(Lit lit) { return {-1 - lit, 0}; }
  static Need bound(Bound bound, Time value) { return {bound, value}; }
  [[nodiscard]] bool is_lit() const { return id < 0; }
  [[nodiscard]] Lit as_lit() const { return -1 - id; }
};

// A job on a resource, as far as propagation looks at it.
struct Member {
  Node start = 0;
  Node end = 0;
  Time end_offset = 0;  // the job ends at value(end) + end_offset
  Time duration = 0;    // least
  std::int64_t demand = 1;
  Lit present = kTrueLit;
};

class Engine {
 public:
  explicit Engine(std::uint64_t seed);

  // ---- the model --------------------------------------------------------------------------------------------
  Node new_node(Time least, Time greatest);
  Lit new_literal(bool phase);
  // to >= from + weight while lit is true; lit becomes false when that is impossible.
  void add_edge(Node from, Node to, Time weight, Lit lit);
  // At any level. False: a conflict at level 0.
  bool add_clause(std::vector<Lit> lits);
  // before[i * members + j]: literal "i ends before j starts", or -1 where it does not exist (yet).
  void add_resource(std::int64_t capacity, std::vector<Member> members, std::vector<Lit> before);
  // At level 0.
  bool raise(Bound bound, Time value);

  // ---- the search -------------------------------------------------------------------------------------------
  enum class Stop { kComplete, kInfeasible, kBudget };
  // Decides until every literal has a value, no value is possible, or `conflicts` more were met.
  Stop run(std::uint64_t conflicts);
  void back_to_root() { backtrack(0); }
  [[nodiscard]] Time least(Node node) const { return values_[static_cast<std::size_t>(least_of(node))]; }
  [[nodiscard]] Time greatest(Node node) const { return -values_[static_cast<std::size_t>(greatest_of(node))]; }
  [[nodiscard]] bool is_true(Lit lit) const { return assigned_[static_cast<std::size_t>(lit)] > 0; }
  [[nodiscard]] bool is_open(Lit lit) const { return assigned_[static_cast<std::size_t>(lit)] == 0; }
  // Keeps the present decisions; tries them first again.
  void remember_phases();
  void recall_phases();
  // Forgets what activity has been gathered by a little noise: another descent.
  void shake();
  [[nodiscard]] std::uint64_t conflicts() const { return conflicts_; }
  [[nodiscard]] bool is_broken() const { return broken_; }

 private:
  enum class Kind : std::uint8_t { kNone, kClause, kEdge, kRefuted, kNeeds, kShiftedNeeds };
  struct Reason {
    Kind kind = Kind::kNone;
    std::int32_t index = 0;  // clause, half edge, or first need
    std::int32_t count = 0;  // of needs
  };
  struct Event {
    std::int32_t id = 0;  // as in Need
    Time value = 0;       // of a bound
    std::int32_t level = 0;
    Reason reason;
  };
  struct Half {
    Bound from = 0, to = 0;
    Time weight = 0;
    Lit lit = kTrueLit;
  };
  struct Clause {
    std::vector<Lit> lits;
    double activity = 0;
    std::int32_t glue = 0;  // distinct levels when it was learned; 0: given, never forgotten
  };
  struct Watch {
    std::int32_t clause = 0;
    Lit other = 0;
  };
  struct Past {
    std::int32_t event = -1;
    Time value = 0;
  };
  struct Resource {
    std::int64_t capacity = 1;
    std::vector<Member> members;
    std::vector<Lit> before;
    bool dirty = true;
  };

  [[nodiscard]] std::int32_t level() const { return static_cast<std::int32_t>(level_starts_.size()); }
  void new_level();
  void backtrack(std::int32_t to);
  bool assign(Lit lit, const Reason& reason);
  bool raise(Bound bound, Time value, const Reason& reason);
  void wake(Bound bound);
  bool propagate();
  bool propagate_clauses(Lit lit);
  bool propagate_edges(Bound bound);
  bool follow(std::int32_t half);
  bool propagate_resource(Resource& resource);
  bool overload_and_order(Resource& resource, bool mirrored);
  bool energy(Resource& resource);
  bool push_by_predecessors(Resource& resource, bool mirrored);
  Reason keep(const std::vector<Need>& needs, Kind kind);
  bool refuse(std::vector<Need> needs);  // records a conflict

  bool resolve();  // false: infeasible at level 0
  void require(const Need& need);
  void explain(std::int32_t event);
  bool attach(std::int32_t clause);
  void forget();
  void bump(std::size_t variable);

  std::size_t decide();
  void heap_up(std::size_t at);
  void heap_down(std::size_t at);
  void heap_insert(std::size_t variable);

  std::vector<Time> values_;                                   // by bound
  std::vector<std::vector<Past>> past_;                        // by bound
  std::vector<std::vector<std::int32_t>> halves_from_;         // by bound
  std::vector<std::vector<std::int32_t>> resources_of_bound_;  // by bound
  std::vector<Half> halves_;
  std::vector<std::vector<std::int32_t>> halves_of_lit_;     // by literal
  std::vector<std::vector<std::int32_t>> resources_of_lit_;  // by variable
  std::vector<Resource> resources_;
  std::vector<std::int8_t> assigned_;   // by literal: 1 true, -1 false
  std::vector<std::int32_t> position_;  // by variable: its event
  std::vector<bool> phase_;             // by variable: what to try first
  std::vector<bool> best_phase_;        // of the best plan
  std::vector<double> activity_;        // by variable
  double bump_ = 1;
  double clause_bump_ = 1;
  std::vector<std::size_t> heap_;
  std::vector<std::int32_t> heap_at_;  // by variable, -1: not in it
  std::vector<Clause> clauses_;
  std::vector<std::vector<Watch>> watches_;  // by literal that became true
  std::vector<Event> trail_;
  std::vector<std::size_t> level_starts_;
  std::vector<std::size_t> level_needs_;
  std::vector<Need> needs_;
  std::size_t lits_done_ = 0;  // trail position up to which literals were propagated
  std::vector<Bound> woken_;
  std::vector<bool> is_woken_;
  std::vector<Need> conflict_;
  bool broken_ = false;  // infeasible at level 0

  // Of resolve().
  std::vector<std::int8_t> marked_;
  std::vector<Time> required_;
  std::vector<std::int32_t> pending_;  // heap of events
  std::vector<std::int32_t> touched_;
  std::vector<Need> reason_needs_;

  std::uint64_t conflicts_ = 0;
  std::size_t learned_ = 0;
  std::size_t learned_limit_ = 4000;
  std::mt19937_64 random_;
};

}  // namespace takt::sched::shop
