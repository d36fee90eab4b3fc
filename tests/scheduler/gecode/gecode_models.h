// Shops and small cyclic tables as models of Gecode: written from the definitions (scheduler/shop/shop.h, DESIGN
// section 5), without code of the searches they judge.
#pragma once

#include <gecode/int.hh>
#include <gecode/minimodel.hh>
#include <gecode/search.hh>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/shop/shop.h"

namespace takt::sched::test {

// Jobs with modes on unary and cumulative resources; minimises the latest end + tail.
class ShopModel : public Gecode::IntMinimizeSpace {
 public:
  explicit ShopModel(const shop::Shop& shop) {
    int horizon = 0;
    for (const shop::Job& job : shop.jobs) {
      shop::Time longest = 0;
      for (const shop::Mode& mode : job.modes) longest = std::max(longest, mode.duration);
      horizon = std::max(horizon, static_cast<int>(job.release));
      horizon += static_cast<int>(longest);
    }
    for (const shop::Order& order : shop.orders) horizon += static_cast<int>(order.delay);
    const int n = static_cast<int>(shop.jobs.size());
    starts_ = Gecode::IntVarArray(*this, n, 0, horizon);
    std::vector<Gecode::IntVar> ends(static_cast<std::size_t>(n));
    // A propagator takes no variable twice: the ways to run a job have starts of their own, equal where they are used.
    std::vector<std::vector<Gecode::IntVar>> own(static_cast<std::size_t>(n));
    std::vector<std::vector<Gecode::BoolVar>> used(static_cast<std::size_t>(n));
    Gecode::BoolVarArgs choices;
    Gecode::IntVarArgs counted;
    for (int j = 0; j < n; ++j) {
      const shop::Job& job = shop.jobs[static_cast<std::size_t>(j)];
      Gecode::IntVar& end = ends[static_cast<std::size_t>(j)];
      end = Gecode::IntVar(*this, 0, 2 * horizon + 1);
      Gecode::rel(*this, starts_[j] >= static_cast<int>(job.release));
      if (job.deadline < shop::kNever)
        Gecode::rel(*this, end <= static_cast<int>(std::min<shop::Time>(job.deadline, horizon)));
      Gecode::BoolVarArgs modes(*this, static_cast<int>(job.modes.size()), 0, 1);
      Gecode::linear(*this, modes, Gecode::IRT_EQ, 1);
      for (std::size_t m = 0; m < job.modes.size(); ++m) {
        const Gecode::BoolVar& is = modes[static_cast<int>(m)];
        Gecode::rel(*this, is >> (end == starts_[j] + static_cast<int>(job.modes[m].duration)));
        used[static_cast<std::size_t>(j)].push_back(is);
        own[static_cast<std::size_t>(j)].push_back(job.modes.size() == 1 ? starts_[j]
                                                                         : Gecode::IntVar(*this, 0, horizon));
        if (job.modes.size() > 1) {
          Gecode::rel(*this, is >> (own[static_cast<std::size_t>(j)].back() == starts_[j]));
          Gecode::rel(*this, !is >> (own[static_cast<std::size_t>(j)].back() == 0));
        }
      }
      if (job.modes.size() > 1) choices << modes;
      if (job.tail != shop::kNoTail) counted << Gecode::expr(*this, end + static_cast<int>(job.tail));
    }
    for (const shop::Order& order : shop.orders) {
      Gecode::rel(*this, starts_[static_cast<int>(order.after)] >= ends[order.before] + static_cast<int>(order.delay));
    }
    for (std::uint32_t r = 0; r < shop.capacities.size(); ++r) {
      Gecode::IntVarArgs starts;
      Gecode::IntArgs durations;
      Gecode::IntArgs demands;
      Gecode::BoolVarArgs present;
      for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
        for (std::size_t m = 0; m < shop.jobs[j].modes.size(); ++m) {
          int demand = 0;
          for (const shop::Use& use : shop.jobs[j].modes[m].uses)
            demand += use.resource == r ? static_cast<int>(use.demand) : 0;
          if (demand == 0 || shop.jobs[j].modes[m].duration == 0) continue;
          starts << own[j][m];
          durations << static_cast<int>(shop.jobs[j].modes[m].duration);
          demands << demand;
          present << used[j][m];
        }
      }
      if (starts.size() == 0) continue;
      if (shop.capacities[r] == 1) {
        Gecode::unary(*this, starts, durations, present);
      } else {
        Gecode::cumulative(*this, static_cast<int>(shop.capacities[r]), starts, durations, demands, present);
      }
    }
    objective_ = Gecode::IntVar(*this, -2 * horizon - 1, 4 * horizon + 1);
    Gecode::max(*this, counted, objective_);
    Gecode::branch(*this, choices, Gecode::BOOL_VAR_AFC_MAX(), Gecode::BOOL_VAL_MAX());
    Gecode::branch(*this, starts_, Gecode::INT_VAR_AFC_SIZE_MAX(), Gecode::INT_VAL_SPLIT_MIN());
    Gecode::branch(*this, objective_, Gecode::INT_VAL_MIN());
  }
  ShopModel(ShopModel& other) : IntMinimizeSpace(other) {
    starts_.update(*this, other.starts_);
    objective_.update(*this, other.objective_);
  }
  Gecode::Space* copy() override { return new ShopModel(*this); }
  [[nodiscard]] Gecode::IntVar cost() const override { return objective_; }

 private:
  Gecode::IntVarArray starts_;
  Gecode::IntVar objective_;
};

// A pipeline whose stages all run once per hyperperiod on one core each, with home cores to choose: jobs on circles of
// `turn` ticks, on each core no more than `room` of them; behind a job its core stays free to the end of `taken`.
// Minimises the longest chain from the start of its first slot to the end of its last, every consumer being bound to
// the newest output of its producers that is complete at its start.
struct Ring {
  int turn = 0;
  int room = 0;
  int cores = 0;
  std::vector<int> lengths;              // by stage
  std::vector<int> taken;                // by stage: from the start on, not below its length
  std::vector<std::vector<int>> chains;  // stages in order
  std::vector<int> extras;               // by chain: added to its length before chains are compared
};

class RingModel : public Gecode::IntMinimizeSpace {
 public:
  explicit RingModel(const Ring& ring) {
    const int n = static_cast<int>(ring.lengths.size());
    starts_ = Gecode::IntVarArray(*this, n, 0, ring.turn - 1);
    homes_ = Gecode::IntVarArray(*this, n, 0, ring.cores - 1);
    for (int a = 0; a < n; ++a) {
      // Cores are alike: a stage takes one that is in use, or the next.
      if (a < ring.cores) Gecode::rel(*this, homes_[a] <= a);
      for (int b = a + 1; b < n; ++b) {
        const Gecode::BoolVar together = Gecode::expr(*this, homes_[a] == homes_[b]);
        const Gecode::BoolVar first(*this, 0, 1);
        const int la = ring.taken[static_cast<std::size_t>(a)];
        const int lb = ring.taken[static_cast<std::size_t>(b)];
        Gecode::rel(*this, (together && first) >> (starts_[b] >= starts_[a] + la));
        Gecode::rel(*this, (together && first) >> (starts_[a] + ring.turn >= starts_[b] + lb));
        Gecode::rel(*this, (together && !first) >> (starts_[a] >= starts_[b] + lb));
        Gecode::rel(*this, (together && !first) >> (starts_[b] + ring.turn >= starts_[a] + la));
      }
    }
    for (int core = 0; core < ring.cores; ++core) {
      Gecode::BoolVarArgs here;
      for (int a = 0; a < n; ++a) here << Gecode::expr(*this, homes_[a] == core);
      Gecode::linear(*this, Gecode::IntArgs(ring.lengths), here, Gecode::IRT_LQ, ring.room);
    }
    Gecode::IntVarArgs lengths;
    Gecode::IntVarArgs turns;
    for (std::size_t c = 0; c < ring.chains.size(); ++c) {
      const std::vector<int>& chain = ring.chains[c];
      // Absolute start of the job that first uses what job 0 of the first stage began.
      Gecode::IntVar at = starts_[chain.front()];
      for (std::size_t i = 1; i < chain.size(); ++i) {
        const Gecode::IntVar turn(*this, 0, static_cast<int>(chain.size()));
        turns << turn;
        const Gecode::IntVar next = Gecode::expr(*this, starts_[chain[i]] + ring.turn * turn);
        Gecode::rel(*this, next >= at + ring.lengths[static_cast<std::size_t>(chain[i - 1])]);
        Gecode::rel(*this, next < at + ring.lengths[static_cast<std::size_t>(chain[i - 1])] + ring.turn);
        at = next;
      }
      lengths << Gecode::expr(
          *this, at + ring.lengths[static_cast<std::size_t>(chain.back())] - starts_[chain.front()] + ring.extras[c]);
    }
    objective_ = Gecode::IntVar(*this, 0, 1'000'000'000);
    Gecode::max(*this, lengths, objective_);
    Gecode::branch(*this, homes_, Gecode::INT_VAR_NONE(), Gecode::INT_VAL_MIN());
    Gecode::branch(*this, turns, Gecode::INT_VAR_NONE(), Gecode::INT_VAL_MIN());
    Gecode::branch(*this, starts_, Gecode::INT_VAR_AFC_SIZE_MAX(), Gecode::INT_VAL_SPLIT_MIN());
    Gecode::branch(*this, objective_, Gecode::INT_VAL_MIN());
  }
  RingModel(RingModel& other) : IntMinimizeSpace(other) {
    starts_.update(*this, other.starts_);
    homes_.update(*this, other.homes_);
    objective_.update(*this, other.objective_);
  }
  Gecode::Space* copy() override { return new RingModel(*this); }
  [[nodiscard]] Gecode::IntVar cost() const override { return objective_; }
  [[nodiscard]] int start(int stage) const { return starts_[stage].val(); }
  [[nodiscard]] int home(int stage) const { return homes_[stage].val(); }

 private:
  Gecode::IntVarArray starts_;
  Gecode::IntVarArray homes_;
  Gecode::IntVar objective_;
};

template <class Model>
struct Opinion {
  bool complete = false;            // the search went through
  std::optional<int> best;          // of a solution that was found
  std::unique_ptr<Model> solution;  // the one of `best`
};

template <class Model, class Instance>
Opinion<Model> ask_gecode(const Instance& instance, unsigned int milliseconds) {
  Model model(instance);
  Gecode::Search::Options options;
  auto* stop = Gecode::Search::Stop::time(milliseconds);
  options.stop = stop;
  Opinion<Model> opinion;
  {
    Gecode::BAB<Model> search(&model, options);
    while (Model* solution = search.next()) {
      opinion.best = solution->cost().val();
      opinion.solution.reset(solution);
    }
    opinion.complete = !search.stopped();
  }
  delete stop;
  return opinion;
}

}  // namespace takt::sched::test
