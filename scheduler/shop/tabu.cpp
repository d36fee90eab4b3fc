#include "scheduler/shop/tabu.h"

#include <algorithm>
#include <limits>

namespace takt::sched::shop {

bool Tabu::applies(const Shop& shop) {
  if (shop.jobs.empty()) return false;
  for (const std::int64_t capacity : shop.capacities) {
    if (capacity != 1) return false;
  }
  for (const Job& job : shop.jobs) {
    if (job.deadline < kNever) return false;
    for (const Mode& mode : job.modes) {
      if (mode.uses.size() != 1 || mode.uses[0].demand != 1 || mode.duration <= 0) return false;
    }
  }
  return true;
}

void Tabu::load(const Plan& plan) {
  const std::size_t n = shop_->jobs.size();
  mode_ = plan.modes;
  before_.assign(n, kNone);
  after_.assign(n, kNone);
  first_.assign(shop_->capacities.size(), kNone);
  std::vector<std::uint32_t> jobs(paths_->order.begin(), paths_->order.end());
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return plan.starts[a] < plan.starts[b]; });
  std::vector<std::uint32_t> last(first_.size(), kNone);
  for (const std::uint32_t job : jobs) {
    const std::uint32_t at = machine(job, mode_[job]);
    before_[job] = last[at];
    (last[at] == kNone ? first_[at] : after_[last[at]]) = job;
    last[at] = job;
  }
}

Plan Tabu::plan() const {
  Plan out;
  out.starts = head_;
  out.modes = mode_;
  out.objective = -kNever;
  for (std::uint32_t j = 0; j < head_.size(); ++j) {
    const Time tail = shop_->jobs[j].tail;
    if (tail != kNoTail) out.objective = std::max(out.objective, head_[j] + duration(j) + tail);
  }
  return out;
}

void Tabu::take_out(std::uint32_t job) {
  const std::uint32_t a = before_[job];
  const std::uint32_t b = after_[job];
  (a == kNone ? first_[machine(job, mode_[job])] : after_[a]) = b;
  if (b != kNone) before_[b] = a;
  before_[job] = after_[job] = kNone;
}

void Tabu::put_in(std::uint32_t job, std::uint32_t mode, std::uint32_t after) {
  mode_[job] = mode;
  std::uint32_t& next = after == kNone ? first_[machine(job, mode)] : after_[after];
  before_[job] = after;
  after_[job] = next;
  if (next != kNone) before_[next] = job;
  next = job;
}

void Tabu::sort() {
  const std::size_t n = shop_->jobs.size();
  missing_.assign(n, 0);
  order_.clear();
  for (std::uint32_t j = 0; j < n; ++j) {
    missing_[j] = static_cast<std::uint32_t>(paths_->before[j].size()) + (before_[j] == kNone ? 0 : 1);
    if (missing_[j] == 0) order_.push_back(j);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t j = order_[i];
    for (const std::uint32_t o : paths_->after[j]) {
      if (--missing_[shop_->orders[o].after] == 0) order_.push_back(shop_->orders[o].after);
    }
    if (after_[j] != kNone && --missing_[after_[j]] == 0) order_.push_back(after_[j]);
  }
}

// Heads, tails and the objective along order_, which may be that of a plan from which a job has been taken out.
Time Tabu::measure() {
  head_.resize(shop_->jobs.size());
  tail_.resize(shop_->jobs.size());
  Time objective = -kNever;
  for (const std::uint32_t j : order_) {
    Time head = shop_->jobs[j].release;
    for (const std::uint32_t o : paths_->before[j]) {
      const Order& order = shop_->orders[o];
      head = std::max(head, head_[order.before] + duration(order.before) + order.delay);
    }
    if (before_[j] != kNone) head = std::max(head, head_[before_[j]] + duration(before_[j]));
    head_[j] = head;
  }
  for (std::size_t i = order_.size(); i-- > 0;) {
    const std::uint32_t j = order_[i];
    Time tail = shop_->jobs[j].tail;
    for (const std::uint32_t o : paths_->after[j]) {
      const Order& order = shop_->orders[o];
      tail = std::max(tail, tail_[order.after] + duration(order.after) + order.delay);
    }
    if (after_[j] != kNone) tail = std::max(tail, tail_[after_[j]] + duration(after_[j]));
    tail_[j] = tail;
    objective = std::max(objective, head_[j] + duration(j) + tail);
  }
  return objective;
}

// Takes `job` out and hands every place to `visit` that lies after all jobs that must come before it and before all
// that must come after it; one of the best is among them. The objective is exact: the longest path through the job, or
// what is left without it. Leaves the job out, in any mode.
template <class Visit>
void Tabu::each_move(std::uint32_t job, const Visit& visit) {
  take_out(job);
  // In its shortest mode: what it adds to a path between its neighbours of the shop in any case.
  const std::vector<Mode>& modes = shop_->jobs[job].modes;
  for (std::uint32_t mode = 0; mode < modes.size(); ++mode) {
    if (modes[mode].duration < modes[mode_[job]].duration) mode_[job] = mode;
  }
  const Time without = measure();
  for (std::uint32_t mode = 0; mode < modes.size(); ++mode) {
    const Time length = modes[mode].duration;
    std::uint32_t after = kNone;
    std::uint32_t next = first_[machine(job, mode)];
    const auto ends_late = [&](std::uint32_t x) { return head_[x] + duration(x) > head_[job]; };
    const auto leads_on = [&](std::uint32_t x) { return tail_[x] + duration(x) > tail_[job]; };
    for (std::uint32_t x = next; x != kNone; x = after_[x]) {
      if (!leads_on(x) || ends_late(x)) continue;
      after = x;
      next = after_[x];
    }
    for (;;) {
      const Time head = std::max(head_[job], after == kNone ? 0 : head_[after] + duration(after));
      const Time tail = std::max(tail_[job], next == kNone ? kNoTail : tail_[next] + duration(next));
      visit(Move{job, mode, after, std::max(without, head + length + tail), head + length + tail});
      if (next == kNone || (ends_late(next) && !leads_on(next))) break;
      after = next;
      next = after_[next];
    }
  }
}

// One of the longest paths: from a job that nothing holds back to one that ends it.
void Tabu::longest_path(Time objective, std::mt19937_64& random, std::vector<std::uint32_t>* path) const {
  const auto is_critical = [&](std::uint32_t j) { return head_[j] + duration(j) + tail_[j] == objective; };
  std::uint32_t at = kNone;
  std::uint64_t seen = 0;
  const auto offer = [&](std::uint32_t j) {
    if (random() % ++seen == 0) at = j;
  };
  for (const std::uint32_t j : order_) {
    if (head_[j] == std::max<Time>(shop_->jobs[j].release, 0) && is_critical(j)) offer(j);
  }
  while (at != kNone) {
    path->push_back(at);
    const std::uint32_t from = at;
    const Time end = head_[from] + duration(from);
    at = kNone;
    seen = 0;
    for (const std::uint32_t o : paths_->after[from]) {
      const Order& order = shop_->orders[o];
      if (head_[order.after] == end + order.delay && is_critical(order.after)) offer(order.after);
    }
    const std::uint32_t next = after_[from];
    if (next != kNone && head_[next] == end && is_critical(next)) offer(next);
  }
}

Plan Tabu::scatter(std::mt19937_64& random) {
  const std::size_t n = shop_->jobs.size();
  Plan out;
  out.starts.assign(n, 0);
  out.modes.assign(n, 0);
  for (const std::size_t j : paths_->order) {
    for (const std::uint32_t o : paths_->before[j]) {
      out.starts[j] = std::max(out.starts[j], out.starts[shop_->orders[o].before] + 1);
    }
    out.starts[j] += static_cast<Time>(random() % 100);
    out.modes[j] = static_cast<std::uint32_t>(random() % shop_->jobs[j].modes.size());
  }
  load(out);
  sort();
  measure();
  return plan();
}

Plan Tabu::mix(const Plan& a, const Plan& b, std::mt19937_64& random) {
  Plan out = a;
  const Time share = 1 + static_cast<Time>(random() % 3);
  for (std::uint32_t j = 0; j < out.starts.size(); ++j) {
    out.starts[j] = share * a.starts[j] + (4 - share) * b.starts[j];
    if (random() % 4 >= static_cast<std::uint64_t>(share)) out.modes[j] = b.modes[j];
  }
  load(out);
  sort();
  measure();
  return plan();
}

Plan Tabu::improve(const Plan& start, std::uint64_t moves, Time enough, std::mt19937_64& random,
                   const std::function<bool()>& stop) {
  const std::size_t n = shop_->jobs.size();
  const std::size_t machines = shop_->capacities.size();
  constexpr std::uint64_t kPatience = 1000;  // moves without a better plan before the walk goes back to the best one
  load(start);
  sort();
  Time now = measure();
  Plan best = plan();
  std::vector<std::uint64_t> tabu(n * machines, 0);  // by job, machine: until which move it must not return there
  std::uint64_t since_better = 0;
  std::vector<std::uint32_t> critical;
  for (std::uint64_t move = 1; move <= moves && best.objective > enough; ++move) {
    if (move % 64 == 0 && stop()) break;
    critical.clear();
    if (since_better > kPatience) {
      // Back to the best plan, then a few steps in any direction.
      since_better = 0;
      load(best);
      sort();
      now = measure();
      std::fill(tabu.begin(), tabu.end(), 0);
      for (std::uint64_t step = 3 + random() % 12; step > 0; --step) {
        const auto job = static_cast<std::uint32_t>(random() % n);
        std::vector<Move> all;
        each_move(job, [&](const Move& candidate) { all.push_back(candidate); });
        const Move& pick = all[random() % all.size()];
        put_in(job, pick.mode, pick.after);
        sort();
        now = measure();
      }
    }
    longest_path(now, random, &critical);
    Move chosen;
    Move fallback;
    std::uint64_t ties = 0;
    for (const std::uint32_t job : critical) {
      const std::uint32_t a = before_[job];
      const std::uint32_t old_mode = mode_[job];
      each_move(job, [&](const Move& candidate) {
        if (candidate.mode == old_mode && candidate.after == a) return;  // where it is
        const bool is_tabu = tabu[job * machines + machine(job, candidate.mode)] > move;
        if (is_tabu && candidate.objective >= best.objective) {
          if (fallback.job == kNone || random() % 8 == 0) fallback = candidate;
          return;
        }
        const auto rank = [](const Move& m) { return std::pair(m.objective, m.through); };
        if (chosen.job != kNone && rank(candidate) > rank(chosen)) return;
        ties = chosen.job != kNone && rank(candidate) == rank(chosen) ? ties + 1 : 0;
        if (ties == 0 || random() % (ties + 1) == 0) chosen = candidate;
      });
      put_in(job, old_mode, a);
    }
    if (chosen.job == kNone) chosen = fallback;
    if (chosen.job == kNone) break;  // no job of a longest path can go anywhere
    const std::uint32_t left = machine(chosen.job, mode_[chosen.job]);
    take_out(chosen.job);
    put_in(chosen.job, chosen.mode, chosen.after);
    tabu[chosen.job * machines + left] =
        move + critical.size() / 2 + shop_->jobs[chosen.job].modes.size() + random() % 8;
    sort();
    now = measure();
    ++since_better;
    if (now >= best.objective) continue;
    best = plan();
    since_better = 0;
  }
  return best;
}

}  // namespace takt::sched::shop
