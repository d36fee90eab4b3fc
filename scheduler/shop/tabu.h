// Tabu search over plans of flexible shops: a job of a longest path moves to another place, on any machine that runs
// it. Private to scheduler/shop. After Mastrolilli, Gambardella: Effective neighbourhood functions for the flexible job
// shop problem, Journal of Scheduling 3 (2000).
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "scheduler/shop/paths.h"
#include "scheduler/shop/shop.h"

namespace takt::sched::shop {

class Tabu {
 public:
  // Every mode holds one resource for one job, takes time, and nothing has a deadline.
  static bool applies(const Shop& shop);

  Tabu(const Shop& shop, const Paths& paths);

  // The best plan met on a walk of `moves` from `plan`; ends early at `enough` or when `stop` says so.
  Plan improve(const Plan& plan, std::uint64_t moves, Time enough, std::mt19937_64& random,
               const std::function<bool()>& stop);

  // Any plan: every way to run and every order that the shop allows may come out.
  Plan scatter(std::mt19937_64& random);

  // A plan between two: each job's mode is one's or the other's, and jobs of a machine follow each other by a weighted
  // sum of their starts in both. Orders hold in both, so they hold in the sum.
  Plan mix(const Plan& a, const Plan& b, std::mt19937_64& random);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Move {
    std::uint32_t job = kNone;
    std::uint32_t mode = 0;
    std::uint32_t machine = 0;
    std::uint32_t after = kNone;  // on that machine; kNone: first
    Time through = kNever;        // about the longest path through the job there
  };
  struct Link {  // an order, as seen from one of its jobs
    std::uint32_t job = 0;
    Time delay = 0;
  };
  struct Way {  // a mode
    std::uint32_t machine = 0;
    Time duration = 0;
  };
  // What one job has of a list over all jobs, which lies in one piece.
  template <class T>
  struct Lists {
    std::vector<T> all;
    std::vector<std::uint32_t> begins{0};
    [[nodiscard]] std::span<const T> of(std::uint32_t job) const {
      return {all.data() + begins[job], begins[job + 1] - begins[job]};
    }
    void close() { begins.push_back(static_cast<std::uint32_t>(all.size())); }
  };
  void load(const Plan& plan);
  [[nodiscard]] Plan plan() const;
  void go(const Move& move);
  void sort();
  void measure(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] Time head(std::uint32_t job) const;  // by orders alone
  [[nodiscard]] Time tail(std::uint32_t job) const;
  void longest_path(std::mt19937_64& random, std::vector<std::uint32_t>* path) const;
  template <class Visit>
  void each_move(std::uint32_t job, const Time& worse, const Visit& visit);

  const Shop* shop_;
  const Paths* paths_;
  Lists<Link> links_before_, links_after_;
  Lists<Way> ways_;
  std::vector<std::uint32_t> mode_;            // by job
  std::vector<Time> duration_;                 // by job, in its mode
  std::vector<std::uint32_t> before_, after_;  // by job: its neighbours on its machine
  std::vector<std::uint32_t> first_;           // by machine
  std::vector<std::uint32_t> order_;           // topological
  std::vector<std::uint32_t> place_;           // by job: in order_
  std::vector<Time> end_;                      // by job: earliest
  std::vector<Time> from_;                     // by job: the longest path from its start to the objective
  std::vector<Time> longest_;                  // by place: the objective of the jobs up to it
  Time objective_ = 0;
  std::vector<std::uint32_t> passed_;   // of each_move(), by machine: the last job before the one that moves
  std::vector<std::uint32_t> scratch_;  // of sort() and go()
  std::vector<bool> marked_;            // of go()
};

}  // namespace takt::sched::shop
