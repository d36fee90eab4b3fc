// Tabu search over plans of flexible shops: a job of a longest path moves to another place, on any machine that runs
// it. Private to scheduler/shop. After Mastrolilli, Gambardella: Effective neighbourhood functions for the flexible job
// shop problem, Journal of Scheduling 3 (2000).
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "scheduler/shop/paths.h"
#include "scheduler/shop/shop.h"

namespace takt::sched::shop {

class Tabu {
 public:
  // Every mode holds one resource for one job, takes time, and nothing has a deadline.
  static bool applies(const Shop& shop);

  Tabu(const Shop& shop, const Paths& paths) : shop_(&shop), paths_(&paths) {}

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
    std::uint32_t after = kNone;  // on that machine; kNone: first
    Time objective = 0;
    Time through = 0;  // the longest path through the job
  };

  void load(const Plan& plan);
  [[nodiscard]] Plan plan() const;
  void take_out(std::uint32_t job);
  void put_in(std::uint32_t job, std::uint32_t mode, std::uint32_t after);
  void sort();
  Time measure();
  void longest_path(Time objective, std::mt19937_64& random, std::vector<std::uint32_t>* path) const;
  [[nodiscard]] std::uint32_t machine(std::uint32_t job, std::uint32_t mode) const {
    return shop_->jobs[job].modes[mode].uses[0].resource;
  }
  [[nodiscard]] Time duration(std::uint32_t job) const { return shop_->jobs[job].modes[mode_[job]].duration; }
  template <class Visit>
  void each_move(std::uint32_t job, const Visit& visit);

  const Shop* shop_;
  const Paths* paths_;
  std::vector<std::uint32_t> mode_;            // by job
  std::vector<std::uint32_t> before_, after_;  // by job: its neighbours on its machine
  std::vector<std::uint32_t> first_;           // by machine
  std::vector<std::uint32_t> order_;           // topological
  std::vector<Time> head_, tail_;              // by job: earliest start; from its end to the objective
  std::vector<std::uint32_t> missing_;         // of sort()
};

}  // namespace takt::sched::shop
