// Longest paths through the orders of a shop. Private to scheduler/shop.
#pragma once

#include <vector>

#include "scheduler/shop/shop.h"

namespace takt::sched::shop {

struct Paths {
  // Expects orders without a circle.
  explicit Paths(const Shop& shop);
  static bool acyclic(const Shop& shop);

  std::vector<std::size_t> order;                         // topological
  std::vector<Time> shortest;                             // by job: least duration
  std::vector<Time> head;                                 // earliest start
  std::vector<Time> tail;                                 // from its end to the objective; kNoTail: leads nowhere
  std::vector<Time> latest;                               // end, by deadlines alone
  std::vector<std::vector<std::uint32_t>> before, after;  // by job: indices of orders
};

}  // namespace takt::sched::shop
