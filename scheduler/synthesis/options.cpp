#include "scheduler/synthesis/options.h"

#include <functional>

namespace takt::sched {

std::vector<Choice> options_of(const Board& board, const Stage& stage) {
  std::vector<Choice> out;
  for (const std::int64_t rate : stage.rates) {
    for (std::uint32_t variant = 0; variant < stage.variants.size(); ++variant) {
      for (const Budget& budget : stage.variants[variant].budgets) {
        if (static_cast<std::size_t>(budget.cores) <= board.cores.size()) out.push_back({rate, variant, budget});
      }
    }
  }
  return out;
}

std::vector<std::vector<std::uint32_t>> core_sets(const Board& board, int k) {
  std::vector<std::vector<std::uint32_t>> out;
  std::vector<std::uint32_t> set;
  const std::function<void(std::uint32_t)> extend = [&](std::uint32_t from) {
    if (set.size() == static_cast<std::size_t>(k)) {
      out.push_back(set);
      return;
    }
    for (std::uint32_t core = from; core < board.cores.size(); ++core) {
      set.push_back(core);
      extend(core + 1);
      set.pop_back();
    }
  };
  extend(0);
  return out;
}

}  // namespace takt::sched
