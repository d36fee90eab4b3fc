#include "scheduler/synthesis/orders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>

namespace takt::sched {
namespace {

using Step = Certificate::Step;
using Kind = Certificate::Step::Kind;
using Rule = Certificate::Rule;

// Differences are counted in steps of 1 / kFine ns, one of which stands for "more than": a circle has fewer of those.
constexpr std::int64_t kFine = 4096;
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min() / 4;
constexpr std::size_t kMostJobs = 60;
constexpr std::size_t kMostDecisions = 900;  // on one path: certificates are read that deep

class Orders {
 public:
  Orders(const Problem& problem, const Options& options, const Homes& homes, std::uint64_t& nodes)
      : problem_(problem), homes_(homes), nodes_(nodes) {
    for (const std::vector<Choice>& choices : options) choices_.push_back(choices.front());
  }

  std::optional<Certificate> close() {
    std::size_t jobs = 0;
    for (std::size_t stage = 0; stage < choices_.size(); ++stage) {
      if (segments_of(choices_[stage].budget).size() != 1) return std::nullopt;
      first_job_.push_back(jobs);
      jobs += static_cast<std::size_t>(choices_[stage].rate);
      if (jobs > kMostJobs) return std::nullopt;
    }
    instants_ = 2 * jobs;
    State state;
    state.distance.assign(instants_ * instants_, kNone);
    state.last.assign(instants_ * instants_, 0);
    for (std::size_t i = 0; i < instants_; ++i) state.distance[i * instants_ + i] = 0;
    lengths();
    if (!always(state)) return finish(0);
    pairs();
    std::optional<Proof> proof = solve(state);
    if (!proof) return std::nullopt;
    return std::move(proof->certificate);
  }

 private:
  using Deps = std::set<std::size_t>;  // decisions on the present path
  struct Job {
    std::uint32_t stage = 0;
    std::int64_t number = 0;
  };
  // value(to) >= value(from) + weight
  struct Edge {
    std::size_t from = 0, to = 0;
    std::int64_t weight = 0;
    Step step;
    Deps deps;
  };
  // The longest paths, and the last edge of each.
  struct State {
    std::vector<std::int64_t> distance;
    std::vector<std::size_t> last;
  };
  struct Proof {
    Certificate certificate;
    Deps deps;
  };
  // Yes: `job` before `other` on a core (order), or `other` is there for `job` (reads).
  struct Question {
    Rule rule = Rule::kOrder;
    Job job, other;
  };
  struct Decision {
    Question question;
    bool yes = false;
    std::optional<Proof> opposite;  // where only one answer is possible
  };
  struct Thread {
    std::uint32_t chain = 0;
    Quantity quantity = Quantity::kReaction;
    bool forward = true;
    std::int64_t root = 0;    // first (forward) or last job
    std::int64_t weight = 0;  // from its end to its beginning
  };

  // ---- instants -------------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t rate(std::uint32_t stage) const { return choices_[stage].rate; }
  [[nodiscard]] std::int64_t turn(const Job& job) const { return floor_div(job.number, rate(job.stage)); }
  [[nodiscard]] std::size_t start(const Job& job) const {
    return 2 * (first_job_[job.stage] + static_cast<std::size_t>(floor_mod(job.number, rate(job.stage))));
  }
  [[nodiscard]] std::size_t end(const Job& job) const { return start(job) + 1; }
  // An edge between instants of these jobs, wherever on the circle they are.
  [[nodiscard]] Edge edge(const Job& from_job, bool from_end, const Job& to_job, bool to_end, std::int64_t ns,
                          bool strict, Step step, Deps deps = {}) const {
    const std::int64_t turns = turn(from_job) - turn(to_job);
    return {start(from_job) + (from_end ? 1 : 0), start(to_job) + (to_end ? 1 : 0),
            (ns + turns * problem_.hyperperiod.ns) * kFine + (strict ? 1 : 0), std::move(step), std::move(deps)};
  }
  static Step step(Kind kind, const Job& job) { return step(kind, job, {0, 0}); }
  static Step step(Kind kind, const Job& job, const Job& other) {
    Step out;
    out.kind = kind;
    out.stage = job.stage;
    out.job = job.number;
    out.other = other.stage;
    out.other_job = other.number;
    return out;
  }

  [[nodiscard]] std::int64_t& distance(State& state, std::size_t from, std::size_t to) const {
    return state.distance[from * instants_ + to];
  }
  [[nodiscard]] std::int64_t distance(const State& state, std::size_t from, std::size_t to) const {
    return state.distance[from * instants_ + to];
  }
  // What is left between `edge` and a circle: below 0, it closes one.
  [[nodiscard]] std::int64_t room(const State& state, const Edge& edge) const {
    const std::int64_t back = distance(state, edge.to, edge.from);
    return back == kNone ? std::numeric_limits<std::int64_t>::max() : -(back + edge.weight);
  }
  [[nodiscard]] bool closes(const State& state, const Edge& edge) const { return room(state, edge) < 0; }

  // False: it closes a circle, which is in conflict_ then.
  bool add(State& state, Edge edge) {
    const std::size_t u = edge.from;
    const std::size_t v = edge.to;
    const std::int64_t weight = edge.weight;
    if (closes(state, edge)) {
      conflict_ = circle(state, edge);
      return false;
    }
    if (distance(state, u, v) >= weight) return true;
    const std::size_t index = edges_.size();
    edges_.push_back(std::move(edge));
    for (std::size_t i = 0; i < instants_; ++i) {
      const std::int64_t before = distance(state, i, u);
      if (before == kNone) continue;
      for (std::size_t j = 0; j < instants_; ++j) {
        const std::int64_t behind = distance(state, v, j);
        if (behind == kNone || before + weight + behind <= distance(state, i, j)) continue;
        distance(state, i, j) = before + weight + behind;
        state.last[i * instants_ + j] = j == v ? index : state.last[v * instants_ + j];
      }
    }
    return true;
  }

  // The leaf of an edge that closes a circle.
  [[nodiscard]] Proof circle(const State& state, const Edge& closing) const {
    Proof proof;
    proof.certificate.rule = Rule::kCircle;
    std::vector<const Edge*> edges{&closing};
    for (std::size_t at = closing.from; at != closing.to;) {
      const Edge& edge = edges_[state.last[closing.to * instants_ + at]];
      edges.push_back(&edge);
      at = edge.from;
    }
    std::reverse(edges.begin(), edges.end());
    std::int64_t sum = 0;
    for (const Edge* edge : edges) {
      sum += edge->weight;
      proof.certificate.steps.push_back(edge->step);
      proof.deps.insert(edge->deps.begin(), edge->deps.end());
    }
    // Whole nanoseconds, and one more where any step was strict.
    proof.certificate.excess = floor_div(sum, kFine) + (floor_mod(sum, kFine) > 0 ? 1 : 0);
    return proof;
  }

  // ---- the problem ----------------------------------------------------------------------------------------------

  void lengths() {
    for (std::uint32_t stage = 0; stage < choices_.size(); ++stage) {
      Duration wakeup;
      Duration publish;
      for (const std::uint32_t core : homes_[stage]) {
        wakeup = std::max(wakeup, problem_.board.cores[core].wakeup_window);
        publish = std::max(publish, problem_.board.cores[core].publish_window);
      }
      lengths_.push_back((wakeup + choices_[stage].budget.time + publish).ns);
    }
  }
  // What a job takes of a core, with what stays free behind it; less than what rounding may take away.
  [[nodiscard]] std::int64_t taken(std::uint32_t stage, std::uint32_t core) const {
    const auto length = static_cast<double>(lengths_[stage]);
    return std::max({lengths_[stage], lengths_[stage] + free_behind(problem_, stage).ns - 2,
                     static_cast<std::int64_t>(std::floor(length / (1.0 - problem_.board.cores[core].reserve) - 0.2))});
  }
  [[nodiscard]] std::vector<std::uint32_t> in_common(std::uint32_t a, std::uint32_t b) const {
    std::vector<std::uint32_t> both;
    std::set_intersection(homes_[a].begin(), homes_[a].end(), homes_[b].begin(), homes_[b].end(),
                          std::back_inserter(both));
    return both;
  }
  [[nodiscard]] std::int64_t taken_for(std::uint32_t stage, std::uint32_t other) const {
    std::int64_t most = 0;
    for (const std::uint32_t core : in_common(stage, other)) most = std::max(most, taken(stage, core));
    return most;
  }
  // The clock error between an output and who reads it, at least or at most: any core of a gang may publish.
  [[nodiscard]] std::int64_t crossing(std::uint32_t producer, std::uint32_t consumer, bool at_least) const {
    const bool meet = homes_[consumer].size() == 1 && !in_common(producer, consumer).empty();
    const bool zero = meet && (at_least || homes_[producer].size() == 1);
    return zero ? 0 : problem_.board.clock_error.ns;
  }

  // What holds without any decision.
  bool always(State& state) {
    for (std::uint32_t stage = 0; stage < choices_.size(); ++stage) {
      for (std::int64_t k = 0; k < rate(stage); ++k) {
        const Job job{stage, k};
        if (!add(state, edge(job, false, job, true, lengths_[stage], false, step(Kind::kSlot, job)))) return false;
        const Job next{stage, k + 1};
        const std::int64_t own = taken_for(stage, stage);
        if (!add(state, edge(job, false, next, false, own, false, step(Kind::kNext, job)))) return false;
      }
      if (stage == 0) continue;
      const Job first{stage, 0};
      const Job last{stage, -1};
      if (!add(state, edge({0, 0}, false, first, false, 0, false, step(Kind::kFirst, first)))) return false;
      if (!add(state, edge(last, false, {0, 0}, false, 0, true, step(Kind::kLast, last)))) return false;
    }
    return true;
  }

  void pairs() {
    for (std::uint32_t a = 0; a < choices_.size(); ++a) {
      for (std::uint32_t b = a + 1; b < choices_.size(); ++b) {
        if (in_common(a, b).empty()) continue;
        for (std::int64_t u = 0; u < rate(a); ++u) {
          for (std::int64_t v = -rate(b); v < 2 * rate(b); ++v) orders_.push_back({Rule::kOrder, {a, u}, {b, v}});
        }
      }
    }
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      const Chain& chain = problem_.chains[c];
      const Sensor& sensor = problem_.sensors[chain.sensor];
      if (sensor.phase) continue;
      const bool once =
          std::all_of(chain.stages.begin(), chain.stages.end(), [&](std::uint32_t stage) { return rate(stage) == 1; });
      for (std::size_t q = 0; q < kQuantities; ++q) {
        const auto quantity = static_cast<Quantity>(q);
        if (!chain.limits[q] || (quantity == Quantity::kLatency && !once)) continue;
        std::int64_t period = longest_period(sensor).ns;
        if (quantity == Quantity::kLatency) period = std::min(period, problem_.hyperperiod.ns);
        const bool forward = quantity == Quantity::kReaction || quantity == Quantity::kAgeUntilReplaced;
        const std::int64_t roots = rate(forward ? chain.stages.front() : chain.stages.back());
        for (std::int64_t root = 0; root < roots; ++root) {
          threads_.push_back({c, quantity, forward, root, sensor.delay_max.ns + period - chain.limits[q]->ns - 2});
        }
      }
    }
  }

  // ---- decisions ------------------------------------------------------------------------------------------------

  [[nodiscard]] Edge answer(const Question& question, bool yes, Deps deps = {}) const {
    const Job& job = question.job;
    const Job& other = question.other;
    if (question.rule == Rule::kOrder) {
      const Job& first = yes ? job : other;
      const Job& second = yes ? other : job;
      return edge(first, false, second, false, taken_for(first.stage, second.stage), false,
                  step(Kind::kBefore, first, second), std::move(deps));
    }
    const std::int64_t error = crossing(other.stage, job.stage, yes);
    if (yes) return edge(other, true, job, false, error, false, step(Kind::kThere, job, other), std::move(deps));
    return edge(job, false, other, true, -error, true, step(Kind::kMissed, job, other), std::move(deps));
  }

  // Where a question was answered on the present path; npos: nowhere. The same question of another turn is the same.
  [[nodiscard]] std::size_t answered(const Question& question) const {
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const Question& known = path_[i].question;
      if (known.rule != question.rule || known.job.stage != question.job.stage ||
          known.other.stage != question.other.stage) {
        continue;
      }
      const std::int64_t jobs = question.job.number - known.job.number;
      const std::int64_t others = question.other.number - known.other.number;
      if (floor_mod(jobs, rate(question.job.stage)) == 0 && floor_mod(others, rate(question.other.stage)) == 0 &&
          floor_div(jobs, rate(question.job.stage)) == floor_div(others, rate(question.other.stage))) {
        return i;
      }
    }
    return std::string::npos;
  }

  // Takes the one answer that is left. False: not even that one is.
  bool force(State& state, const Question& question, bool yes) {
    Proof opposite = circle(state, answer(question, !yes));
    path_.push_back({question, yes, std::move(opposite)});
    return add(state, answer(question, yes, {path_.size() - 1}));
  }

  // The output cannot be there for the job, as it is.
  [[nodiscard]] bool misses(const State& state, const Question& question) const {
    const std::size_t known = answered(question);
    if (known != std::string::npos) return !path_[known].yes;
    return closes(state, answer(question, true));
  }

  // The jobs that a thread reaches at best (forward), or goes back to at best.
  [[nodiscard]] std::vector<std::int64_t> follow(const State& state, const Thread& thread) const {
    const std::vector<std::uint32_t>& stages = problem_.chains[thread.chain].stages;
    std::vector<std::int64_t> jobs(stages.size(), thread.root);
    if (thread.forward) {
      for (std::size_t i = 1; i < stages.size(); ++i) {
        const Job from{stages[i - 1], jobs[i - 1]};
        std::int64_t reader = (turn(from) - 2) * rate(stages[i]);
        while (misses(state, {Rule::kReads, {stages[i], reader}, from})) ++reader;
        jobs[i] = reader;
      }
    } else {
      for (std::size_t i = stages.size() - 1; i > 0; --i) {
        const Job to{stages[i], jobs[i]};
        std::int64_t read = (turn(to) + 3) * rate(stages[i - 1]);
        while (misses(state, {Rule::kReads, to, {stages[i - 1], read}})) --read;
        jobs[i - 1] = read;
      }
    }
    return jobs;
  }
  // What is known to be missed between two steps of a thread.
  [[nodiscard]] Question missed(const Thread& thread, const std::vector<std::int64_t>& jobs, std::size_t i) const {
    const std::vector<std::uint32_t>& stages = problem_.chains[thread.chain].stages;
    return {Rule::kReads,
            {stages[i], jobs[i] - (thread.forward ? 1 : 0)},
            {stages[i - 1], jobs[i - 1] + (thread.forward ? 0 : 1)}};
  }
  [[nodiscard]] Edge limit(const Thread& thread, const std::vector<std::int64_t>& jobs, Deps deps = {}) const {
    const std::vector<std::uint32_t>& stages = problem_.chains[thread.chain].stages;
    Step by;
    by.kind = Kind::kLimit;
    by.chain = thread.chain;
    by.quantity = thread.quantity;
    by.jobs = jobs;
    return edge({stages.back(), jobs.back()}, true, {stages.front(), jobs.front() - (thread.forward ? 1 : 0)}, false,
                thread.weight, true, std::move(by), std::move(deps));
  }

  // Everything that follows; false: a conflict.
  bool propagate(State& state) {
    for (bool more = true; more;) {
      more = false;
      for (const Question& question : orders_) {
        if (answered(question) != std::string::npos) continue;
        const Edge yes = answer(question, true);
        const Edge no = answer(question, false);
        const bool never = closes(state, yes);
        if (!never && !closes(state, no)) continue;
        // Nothing new: a circle with the other answer is known without it.
        const Edge& left = never ? no : yes;
        if (!closes(state, left) && distance(state, left.from, left.to) >= left.weight) continue;
        if (path_.size() >= kMostDecisions) return true;
        more = true;
        if (!force(state, question, !never)) return false;
      }
      for (const Thread& thread : threads_) {
        const std::vector<std::int64_t> jobs = follow(state, thread);
        const Edge bare = limit(thread, jobs);
        if (distance(state, bare.from, bare.to) >= bare.weight) continue;
        Deps deps;
        for (std::size_t i = 1; i < jobs.size(); ++i) {
          const Question question = missed(thread, jobs, i);
          if (answered(question) == std::string::npos) {
            if (path_.size() >= kMostDecisions) return true;
            if (!force(state, question, false)) return false;
          }
          deps.insert(answered(question));
        }
        more = true;
        if (!add(state, limit(thread, jobs, std::move(deps)))) return false;
      }
    }
    return true;
  }

  // A question that matters in the table in which everything begins as early as it may; nullopt: that table keeps all
  // that is known here.
  [[nodiscard]] std::optional<Question> choose(const State& state) const {
    const auto at = [&](const Job& job) { return distance(state, 0, start(job)) + turn(job) * turn_length(); };
    const auto end_at = [&](const Job& job) { return distance(state, 0, end(job)) + turn(job) * turn_length(); };
    std::optional<Question> best;
    std::int64_t least = 0;
    const auto offer = [&](const Question& question) {
      if (answered(question) != std::string::npos) return;
      const auto left = [&](bool yes) { return std::min(room(state, answer(question, yes)), 2 * turn_length()); };
      const std::int64_t both = left(true) + left(false);
      if (best && both >= least) return;
      best = question;
      least = both;
    };
    for (const Question& question : orders_) {
      const Job& a = question.job;
      const Job& b = question.other;
      const bool clear =
          at(b) >= at(a) + taken_for(a.stage, b.stage) * kFine || at(a) >= at(b) + taken_for(b.stage, a.stage) * kFine;
      if (!clear) offer(question);
    }
    if (best) return best;
    for (const Thread& thread : threads_) {
      const std::vector<std::uint32_t>& stages = problem_.chains[thread.chain].stages;
      const auto is_there = [&](const Question& reads) {
        return at(reads.job) >= end_at(reads.other) + crossing(reads.other.stage, reads.job.stage, true) * kFine;
      };
      const std::vector<std::int64_t> known = follow(state, thread);
      std::vector<std::int64_t> jobs = known;  // in that table
      std::optional<Question> first;           // where it is worse than what is known
      const std::size_t steps = jobs.size() - 1;
      for (std::size_t k = 0; k < steps; ++k) {
        const std::size_t i = thread.forward ? k + 1 : steps - k;
        std::int64_t& job = thread.forward ? jobs[i] : jobs[i - 1];
        const auto question = [&] {
          return Question{Rule::kReads, {stages[i], jobs[i]}, {stages[i - 1], jobs[i - 1]}};
        };
        if (!first && !is_there(question())) first = question();
        while (!is_there(question())) job += thread.forward ? 1 : -1;
      }
      const Edge worse = limit(thread, jobs);
      if (first && distance(state, 0, worse.from) + worse.weight > distance(state, 0, worse.to)) offer(*first);
    }
    return best;
  }
  [[nodiscard]] std::int64_t turn_length() const { return problem_.hyperperiod.ns * kFine; }

  // ---- the tree -------------------------------------------------------------------------------------------------

  std::optional<Proof> solve(State& state) {
    if (nodes_ == 0) return std::nullopt;
    --nodes_;
    const std::size_t base = path_.size();
    const std::size_t edges = edges_.size();
    std::optional<Proof> proof;
    if (!propagate(state)) {
      proof = std::move(conflict_);
    } else if (const std::optional<Question> question = choose(state); question && path_.size() < kMostDecisions) {
      proof = branch(state, *question);
    }
    if (proof) proof = unwound(*std::move(proof), base);
    path_.resize(base);
    edges_.resize(edges);
    return proof;
  }

  std::optional<Proof> branch(const State& state, const Question& question) {
    std::array<std::optional<Proof>, 2> parts;
    const std::size_t mine = path_.size();
    for (const bool yes : {true, false}) {
      path_.push_back({question, yes, std::nullopt});
      State next = state;
      std::optional<Proof> part;
      const std::size_t edges = edges_.size();
      if (!add(next, answer(question, yes, {mine}))) {
        part = std::move(conflict_);
      } else {
        part = solve(next);
      }
      edges_.resize(edges);
      path_.resize(mine);
      if (!part || part->deps.count(mine) == 0) return part;
      parts[yes ? 0 : 1] = std::move(part);
    }
    return joined(question, *std::move(parts[0]), *std::move(parts[1]), mine);
  }

  static Proof joined(const Question& question, Proof yes, Proof no, std::size_t decision) {
    Proof out;
    out.certificate.rule = question.rule;
    out.certificate.stage = question.job.stage;
    out.certificate.job = question.job.number;
    out.certificate.other = question.other.stage;
    out.certificate.other_job = question.other.number;
    out.deps = std::move(yes.deps);
    out.deps.insert(no.deps.begin(), no.deps.end());
    out.deps.erase(decision);
    out.certificate.parts.push_back(std::move(yes.certificate));
    out.certificate.parts.push_back(std::move(no.certificate));
    return out;
  }

  // With a branch for every forced decision since `base` that the proof rests on.
  Proof unwound(Proof proof, std::size_t base) {
    for (std::size_t i = path_.size(); i-- > base;) {
      if (proof.deps.count(i) == 0) continue;
      Decision& forced = path_[i];
      Proof& opposite = *forced.opposite;
      proof = forced.yes ? joined(forced.question, std::move(proof), std::move(opposite), i)
                         : joined(forced.question, std::move(opposite), std::move(proof), i);
    }
    return proof;
  }

  std::optional<Certificate> finish(std::size_t base) { return unwound(std::move(conflict_), base).certificate; }

  const Problem& problem_;
  const Homes& homes_;
  std::uint64_t& nodes_;
  std::vector<Choice> choices_;
  std::vector<std::size_t> first_job_;  // by stage
  std::vector<std::int64_t> lengths_;   // by stage: of a slot, at least
  std::size_t instants_ = 0;
  std::vector<Question> orders_;
  std::vector<Thread> threads_;
  std::vector<Edge> edges_;
  std::vector<Decision> path_;
  Proof conflict_;
};

}  // namespace

std::optional<Certificate> refute_by_orders(const Problem& problem, const Options& options, const Homes& homes,
                                            std::uint64_t& nodes) {
  return Orders(problem, options, homes, nodes).close();
}

}  // namespace takt::sched
