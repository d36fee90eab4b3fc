// The published perception tables (perception_synth) folded around their hyperperiod: what begins late runs on into the
// next turn, every stage keeps one home core. A second user of the differences below the exact search, with jobs whose
// releases are fixed, and engines beside the cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/shop/shop.h"
#include "scheduler/synthesis/differences.h"

namespace takt::sched::test {

struct Ring {
  Tick turn = 0;
  std::uint32_t cores = 0;
  struct Job {
    Tick duration = 0;
    Tick release = 0;
    Tick deadline = 0;
    std::optional<std::uint32_t> engine;  // else the home core of its stage
    std::uint32_t stage = 0;
    bool limited = false;  // its end counts against its release
  };
  std::vector<Job> jobs;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> orders;
};

// `shop` is a table as recorded: resource 0 holds as many jobs as there are cores, the others are engines. Jobs that
// hang together are one instance of a stage; instances that follow each other by a third or half a turn, alike in their
// resources, are one stage.
inline Ring fold(const shop::Shop& shop, Tick turn) {
  Ring ring;
  ring.turn = turn;
  ring.cores = static_cast<std::uint32_t>(shop.capacities[0]);
  std::vector<bool> follows(shop.jobs.size(), false);
  for (const shop::Order& order : shop.orders) {
    ring.orders.emplace_back(order.before, order.after);
    follows[order.after] = true;
  }
  std::vector<std::vector<std::uint32_t>> instances;  // of resources
  std::vector<Tick> releases;
  std::vector<std::uint32_t> stage_of;
  for (std::uint32_t j = 0; j < shop.jobs.size(); ++j) {
    if (!follows[j]) {
      instances.push_back({});
      releases.push_back(shop.jobs[j].release);
    }
    instances.back().push_back(shop.jobs[j].modes[0].uses[0].resource);
  }
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const Tick distance = i == 0 ? 0 : releases[i] - releases[i - 1];
    const bool same = i > 0 && instances[i] == instances[i - 1] && (distance == turn / 3 || distance == turn / 2);
    stage_of.push_back(i == 0 ? 0 : stage_of.back() + (same ? 0 : 1));
  }
  std::size_t instance = 0;
  for (std::uint32_t j = 0; j < shop.jobs.size(); ++j) {
    if (!follows[j] && j > 0) ++instance;
    const shop::Job& job = shop.jobs[j];
    const std::uint32_t resource = job.modes[0].uses[0].resource;
    ring.jobs.push_back({job.modes[0].duration, job.release, job.deadline,
                         resource == 0 ? std::nullopt : std::optional(resource - 1), stage_of[instance],
                         job.tail != shop::kNoTail});
  }
  return ring;
}

struct RingTable {
  std::vector<Tick> starts;          // by job, not folded
  std::vector<std::uint32_t> homes;  // by stage
};

// Own check: releases, deadlines, orders, nobody on a resource twice at any instant of the turn. The largest end -
// release of what is limited; nullopt when a rule is broken.
inline std::optional<Tick> largest_latency(const Ring& ring, const RingTable& table) {
  std::map<std::uint32_t, std::vector<bool>> busy;
  Tick largest = 0;
  for (std::size_t j = 0; j < ring.jobs.size(); ++j) {
    const Ring::Job& job = ring.jobs[j];
    const Tick start = table.starts[j];
    if (start < job.release || start + job.duration > job.deadline) return std::nullopt;
    if (job.limited) largest = std::max(largest, start + job.duration - job.release);
    std::vector<bool>& line = busy[job.engine ? ring.cores + *job.engine : table.homes[job.stage]];
    line.resize(static_cast<std::size_t>(ring.turn), false);
    for (Tick t = start; t < start + job.duration; ++t) {
      const auto at = static_cast<std::size_t>(t % ring.turn);
      if (line[at]) return std::nullopt;
      line[at] = true;
    }
  }
  for (const auto& [before, after] : ring.orders) {
    if (table.starts[after] < table.starts[before] + ring.jobs[before].duration) return std::nullopt;
  }
  return largest;
}

class RingSearch final : public Differences::Host {
 public:
  // Tables with no latency above `limit`.
  RingSearch(const Ring& ring, Tick limit) : ring_(ring), solver_(*this), origin_(solver_.new_node(0)) {
    for (const Ring::Job& job : ring.jobs) {
      starts_.push_back(solver_.new_node(job.release));
      solver_.add_edge(kTrue, origin_, starts_.back(), job.release);
      solver_.add_edge(kTrue, starts_.back(), origin_, job.duration - job.deadline);
    }
    for (const auto& [before, after] : ring.orders) {
      solver_.add_edge(kTrue, starts_[before], starts_[after], ring.jobs[before].duration);
    }
    for (std::size_t j = 0; j < ring.jobs.size(); ++j) {
      const Ring::Job& job = ring.jobs[j];
      if (job.limited) solver_.add_edge(kTrue, starts_[j], origin_, job.duration - job.release - limit, 1);
    }
    homes();
    solver_.probe();
  }

  Differences& solver() { return solver_; }
  [[nodiscard]] const RingTable& table() const { return table_; }

  Lit choose(std::uint32_t group) override { return deciders_[group](); }

  bool accept() override {
    bool clean = true;
    for (std::uint32_t a = 0; a < ring_.jobs.size(); ++a) {
      for (std::uint32_t b = a + 1; b < ring_.jobs.size(); ++b) {
        if (share(a, b) && overlap(a, b) > 0) {
          separate(a, b);
          clean = false;
        }
      }
    }
    if (!clean) return false;
    table_ = {};
    for (const Differences::Node node : starts_) table_.starts.push_back(at(node));
    for (std::uint32_t stage = 0; stage < homes_.size(); ++stage) table_.homes.push_back(home_of(stage));
    return true;
  }

 private:
  void homes() {
    std::uint32_t stages = 0;
    for (const Ring::Job& job : ring_.jobs) stages = std::max(stages, job.stage + 1);
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      homes_.emplace_back();
      // The cores are alike: stage k lies on one of the first k + 1.
      for (std::uint32_t core = 0; core < std::min(stage + 1, ring_.cores); ++core) {
        homes_.back().push_back(stage == 0 ? kTrue : solver_.new_literal());
      }
      if (stage == 0) continue;
      solver_.add_clause(homes_.back());
      for (std::size_t i = 0; i < homes_.back().size(); ++i) {
        for (std::size_t k = i + 1; k < homes_.back().size(); ++k) {
          solver_.add_clause({negated(homes_.back()[i]), negated(homes_.back()[k])});
        }
      }
      solver_.add_group(homes_.back());
      deciders_.push_back([this, stage] {
        Lit best = kTrue;
        Tick least = 0;
        for (std::uint32_t core = 0; core < homes_[stage].size(); ++core) {
          if (!solver_.is_open(homes_[stage][core])) continue;
          Tick cost = 0;
          for (std::uint32_t a = 0; a < ring_.jobs.size(); ++a) {
            if (ring_.jobs[a].stage != stage || ring_.jobs[a].engine) continue;
            for (std::uint32_t b = 0; b < ring_.jobs.size(); ++b) {
              if (ring_.jobs[b].engine || ring_.jobs[b].stage == stage || home_of(ring_.jobs[b].stage) != core)
                continue;
              cost += 1000 * overlap(a, b) + ring_.jobs[b].duration;
            }
          }
          if (best != kTrue && cost >= least) continue;
          best = homes_[stage][core];
          least = cost;
        }
        return best;
      });
    }
  }

  [[nodiscard]] Tick at(Differences::Node node) const { return solver_.value(node) - solver_.value(origin_); }
  [[nodiscard]] std::uint32_t home_of(std::uint32_t stage) const {
    for (std::uint32_t core = 0; core < homes_[stage].size(); ++core) {
      if (solver_.is_true(homes_[stage][core])) return core;
    }
    return ring_.cores;
  }
  [[nodiscard]] bool share(std::uint32_t a, std::uint32_t b) const {
    const Ring::Job& first = ring_.jobs[a];
    const Ring::Job& second = ring_.jobs[b];
    if (first.engine || second.engine) return first.engine == second.engine;
    const std::uint32_t home = home_of(first.stage);
    return home < ring_.cores && home == home_of(second.stage);
  }
  [[nodiscard]] Tick overlap(std::uint32_t a, std::uint32_t b) const {
    Tick behind = (at(starts_[b]) - at(starts_[a])) % ring_.turn;
    if (behind < 0) behind += ring_.turn;
    return std::max<Tick>(0, ring_.jobs[a].duration - behind) +
           (behind == 0 ? 0 : std::max<Tick>(0, ring_.jobs[b].duration - (ring_.turn - behind)));
  }

  // After how many turns b comes behind a.
  void separate(std::uint32_t a, std::uint32_t b) {
    const auto [known, is_new] = orders_.try_emplace({a, b}, 0);
    if (!is_new) return solver_.reopen(known->second);
    const Ring::Job& first = ring_.jobs[a];
    const Ring::Job& second = ring_.jobs[b];
    std::vector<Lit> lits;
    std::vector<Tick> turns;
    for (Tick turn = -3; turn <= 3; ++turn) {
      if (second.deadline - second.duration + turn * ring_.turn < first.release + first.duration) continue;
      if (first.deadline - first.duration + (1 - turn) * ring_.turn < second.release + second.duration) continue;
      const Lit lit = solver_.new_literal();
      solver_.add_edge(lit, starts_[a], starts_[b], first.duration - turn * ring_.turn);
      solver_.add_edge(lit, starts_[b], starts_[a], second.duration - (1 - turn) * ring_.turn);
      for (const Lit other : lits) solver_.add_clause({negated(other), negated(lit)});
      lits.push_back(lit);
      turns.push_back(turn);
    }
    deciders_.push_back([this, a, b, lits, turns] {
      if (!share(a, b)) return negated(kTrue);
      Lit best = kTrue;
      Tick least = std::numeric_limits<Tick>::max();
      for (std::size_t i = 0; i < lits.size(); ++i) {
        if (!solver_.is_open(lits[i])) continue;
        const Tick behind = at(starts_[b]) + turns[i] * ring_.turn - at(starts_[a]);
        const Tick cost = std::max<Tick>(0, ring_.jobs[a].duration - behind) +
                          std::max<Tick>(0, ring_.jobs[b].duration + behind - ring_.turn);
        if (best != kTrue && cost >= least) continue;
        best = lits[i];
        least = cost;
      }
      return best;
    });
    known->second = solver_.add_group(lits);
    if (first.engine || first.stage == second.stage) return solver_.add_clause(lits);
    for (std::uint32_t core = 0; core < std::min(homes_[first.stage].size(), homes_[second.stage].size()); ++core) {
      std::vector<Lit> clause = lits;
      clause.push_back(negated(homes_[first.stage][core]));
      clause.push_back(negated(homes_[second.stage][core]));
      solver_.add_clause(std::move(clause));
    }
  }

  const Ring& ring_;
  Differences solver_;
  Differences::Node origin_;
  std::vector<Differences::Node> starts_;
  std::vector<std::vector<Lit>> homes_;  // by stage, core
  std::vector<std::function<Lit()>> deciders_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> orders_;
  RingTable table_;
};

}  // namespace takt::sched::test
