// List scheduling with a portfolio of priority rules, then ruin and recreate, for one combination of choices.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "scheduler/synthesis/deadline.h"
#include "scheduler/synthesis/evaluate.h"
#include "scheduler/synthesis/table.h"

namespace takt::sched {

struct SearchResult {
  std::optional<Table> table;  // complete
  Score score;
};

class Search {
 public:
  Search(const Problem& problem, const Choices& choices, std::uint64_t seed, const Deadline& deadline = {});

  // Builds tables until one meets all limits or `nodes` candidate positions were tried.
  SearchResult construct(std::uint64_t nodes);
  // Takes some stages out and puts them back better, until `nodes` are used or nothing improves any more.
  void improve(SearchResult& result, std::uint64_t nodes, bool stop_when_feasible);
  [[nodiscard]] std::uint64_t nodes_used() const { return nodes_; }
  [[nodiscard]] bool out_of_time() const { return deadline_.passed(); }

 private:
  enum class Rule { kCriticalPath, kChainSlack, kLoad, kDeadline, kRate, kFileOrder, kPacking, kRandom };
  [[nodiscard]] std::vector<std::size_t> order(Rule rule);
  // Puts one stage where the chains through it fare best. `pick` > 0: the pick-th best instead (diversity).
  bool insert(Table& table, std::size_t stage, std::size_t pick);
  [[nodiscard]] std::vector<Tick> anchors(const Table& table, std::size_t stage,
                                          const std::vector<std::uint32_t>& cores);
  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

  const Problem* problem_;
  Choices choices_;
  Evaluator evaluator_;
  std::mt19937_64 random_;
  Deadline deadline_;
  std::uint64_t nodes_ = 0;
  std::size_t most_anchors_ = 0;                                    // places tried per stage and core set
  std::vector<std::vector<std::vector<std::uint32_t>>> core_sets_;  // by k
  std::vector<double> tail_;   // by stage: longest remaining path in budgets, own included
  std::vector<double> slack_;  // by stage: least (limit - budgets) of a chain through it
};

}  // namespace takt::sched
