#include "scheduler/shop/paths.h"

#include <algorithm>

namespace takt::sched::shop {
namespace {

std::vector<std::size_t> topological(const Shop& shop) {
  std::vector<std::size_t> missing(shop.jobs.size(), 0);
  std::vector<std::vector<std::uint32_t>> after(shop.jobs.size());
  for (const Order& order : shop.orders) {
    ++missing[order.after];
    after[order.before].push_back(order.after);
  }
  std::vector<std::size_t> out;
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    if (missing[j] == 0) out.push_back(j);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const std::uint32_t next : after[out[i]]) {
      if (--missing[next] == 0) out.push_back(next);
    }
  }
  return out;
}

}  // namespace

bool Paths::acyclic(const Shop& shop) { return topological(shop).size() == shop.jobs.size(); }

Paths::Paths(const Shop& shop)
    : order(topological(shop)),
      head(shop.jobs.size(), 0),
      tail(shop.jobs.size(), kNoTail),
      latest(shop.jobs.size(), kNever),
      before(shop.jobs.size()),
      after(shop.jobs.size()) {
  for (const Job& job : shop.jobs) {
    Time least = kNever;
    for (const Mode& mode : job.modes) least = std::min(least, mode.duration);
    shortest.push_back(least);
  }
  for (std::uint32_t i = 0; i < shop.orders.size(); ++i) {
    before[shop.orders[i].after].push_back(i);
    after[shop.orders[i].before].push_back(i);
  }
  for (const std::size_t j : order) {
    head[j] = std::max(head[j], shop.jobs[j].release);
    for (const std::uint32_t i : after[j]) {
      const Order& next = shop.orders[i];
      head[next.after] = std::max(head[next.after], head[j] + shortest[j] + next.delay);
    }
  }
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::size_t j = order[k];
    tail[j] = shop.jobs[j].tail;
    latest[j] = shop.jobs[j].deadline;
    for (const std::uint32_t i : after[j]) {
      const Order& next = shop.orders[i];
      if (tail[next.after] > kNoTail) {
        tail[j] = std::max(tail[j], tail[next.after] + shortest[next.after] + next.delay);
      }
      latest[j] = std::min(latest[j], latest[next.after] - shortest[next.after] - next.delay);
    }
  }
}

}  // namespace takt::sched::shop
