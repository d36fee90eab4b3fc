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

Tabu::Tabu(const Shop& shop, const Paths& paths) : shop_(&shop), paths_(&paths) {
  for (std::uint32_t j = 0; j < shop.jobs.size(); ++j) {
    for (const std::uint32_t o : paths.before[j]) {
      links_before_.all.push_back({shop.orders[o].before, shop.orders[o].delay});
    }
    for (const std::uint32_t o : paths.after[j]) {
      links_after_.all.push_back({shop.orders[o].after, shop.orders[o].delay});
    }
    for (const Mode& mode : shop.jobs[j].modes) ways_.all.push_back({mode.uses[0].resource, mode.duration});
    links_before_.close();
    links_after_.close();
    ways_.close();
  }
}

void Tabu::load(const Plan& plan) {
  const std::size_t n = shop_->jobs.size();
  mode_ = plan.modes;
  duration_.resize(n);
  before_.assign(n, kNone);
  after_.assign(n, kNone);
  first_.assign(shop_->capacities.size(), kNone);
  std::vector<std::uint32_t> jobs(paths_->order.begin(), paths_->order.end());
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return plan.starts[a] < plan.starts[b]; });
  std::vector<std::uint32_t> last(first_.size(), kNone);
  for (const std::uint32_t job : jobs) {
    const Way& way = ways_.of(job)[mode_[job]];
    duration_[job] = way.duration;
    before_[job] = last[way.machine];
    (last[way.machine] == kNone ? first_[way.machine] : after_[last[way.machine]]) = job;
    last[way.machine] = job;
  }
  sort();
  end_.resize(n);
  from_.resize(n);
  longest_.resize(n);
  marked_.assign(n, false);
  measure(0, static_cast<std::uint32_t>(n - 1));
}

Plan Tabu::plan() const {
  Plan out;
  for (std::uint32_t j = 0; j < mode_.size(); ++j) out.starts.push_back(end_[j] - duration_[j]);
  out.modes = mode_;
  out.objective = objective_;
  return out;
}

Time Tabu::head(std::uint32_t job) const {
  Time head = shop_->jobs[job].release;
  for (const Link& link : links_before_.of(job)) head = std::max(head, end_[link.job] + link.delay);
  return head;
}

Time Tabu::tail(std::uint32_t job) const {
  Time tail = shop_->jobs[job].tail;
  for (const Link& link : links_after_.of(job)) tail = std::max(tail, from_[link.job] + link.delay);
  return tail;
}

void Tabu::sort() {
  const auto n = static_cast<std::uint32_t>(shop_->jobs.size());
  std::vector<std::uint32_t>& missing = scratch_;
  missing.resize(n);
  place_.resize(n);
  order_.clear();
  for (std::uint32_t j = 0; j < n; ++j) {
    missing[j] = static_cast<std::uint32_t>(links_before_.of(j).size()) + (before_[j] == kNone ? 0 : 1);
    if (missing[j] == 0) order_.push_back(j);
  }
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t j = order_[i];
    place_[j] = i;
    for (const Link& link : links_after_.of(j)) {
      if (--missing[link.job] == 0) order_.push_back(link.job);
    }
    if (after_[j] != kNone && --missing[after_[j]] == 0) order_.push_back(after_[j]);
  }
}

// Longest paths, where nothing has changed before place `from` and behind place `to`.
void Tabu::measure(std::uint32_t from, std::uint32_t to) {
  const auto n = static_cast<std::uint32_t>(order_.size());
  objective_ = from == 0 ? -kNever : longest_[from - 1];
  for (std::uint32_t i = from; i < n; ++i) {
    const std::uint32_t j = order_[i];
    Time start = head(j);
    if (before_[j] != kNone) start = std::max(start, end_[before_[j]]);
    end_[j] = start + duration_[j];
    objective_ = std::max(objective_, end_[j] + shop_->jobs[j].tail);
    longest_[i] = objective_;
  }
  for (std::uint32_t i = to + 1; i-- > 0;) {
    const std::uint32_t j = order_[i];
    Time rest = tail(j);
    if (after_[j] != kNone) rest = std::max(rest, from_[after_[j]]);
    from_[j] = rest + duration_[j];
  }
}

void Tabu::go(const Move& move) {
  const std::uint32_t job = move.job;
  const std::uint32_t a = before_[job];
  const std::uint32_t b = after_[job];
  (a == kNone ? first_[ways_.of(job)[mode_[job]].machine] : after_[a]) = b;
  if (b != kNone) before_[b] = a;
  const Way& way = ways_.of(job)[move.mode];
  mode_[job] = move.mode;
  duration_[job] = way.duration;
  std::uint32_t& next = move.after == kNone ? first_[way.machine] : after_[move.after];
  before_[job] = move.after;
  after_[job] = next;
  if (next != kNone) before_[next] = job;
  next = job;

  // The order, where it has to change: between the old place of the job and that of its new neighbour, which is on the
  // other side of it now. What must follow the job (or come before it) goes along.
  const std::uint32_t place = place_[job];
  std::uint32_t from = place;
  std::uint32_t to = place;
  scratch_.clear();
  marked_[job] = true;
  const auto is_marked = [&](const Link& link) { return static_cast<bool>(marked_[link.job]); };
  const auto renumber = [&] {
    for (std::uint32_t i = from; i <= to; ++i) {
      place_[order_[i]] = i;
      marked_[order_[i]] = false;
    }
  };
  if (before_[job] != kNone && place_[before_[job]] > place) {
    to = place_[before_[job]];
    std::uint32_t free = from;
    scratch_.push_back(job);
    for (std::uint32_t i = from + 1; i <= to; ++i) {
      const std::uint32_t j = order_[i];
      const std::span<const Link> links = links_before_.of(j);
      marked_[j] = (before_[j] != kNone && marked_[before_[j]]) || std::any_of(links.begin(), links.end(), is_marked);
      if (marked_[j]) {
        scratch_.push_back(j);
      } else {
        order_[free++] = j;
      }
    }
    std::copy(scratch_.begin(), scratch_.end(), order_.begin() + free);
  } else if (after_[job] != kNone && place_[after_[job]] < place) {
    from = place_[after_[job]];
    std::uint32_t free = to;
    scratch_.push_back(job);
    for (std::uint32_t i = to; i-- > from;) {
      const std::uint32_t j = order_[i];
      const std::span<const Link> links = links_after_.of(j);
      marked_[j] = (after_[j] != kNone && marked_[after_[j]]) || std::any_of(links.begin(), links.end(), is_marked);
      if (marked_[j]) {
        scratch_.push_back(j);
      } else {
        order_[free--] = j;
      }
    }
    std::reverse_copy(scratch_.begin(), scratch_.end(), order_.begin() + from);
  }
  renumber();
  measure(from, to);
}

// Hands every place to `visit` that the job can go to: on each of its machines between the jobs before and behind it in
// the order, and from there as far as no job on the way is sure to be held back by it. What lies before the job ends as
// early without it, and what lies behind it leads as far; the rest is followed along the machine alone, so `through` is
// an estimate, which is rarely too small and far cheaper than the truth. What is sure to be above `worse`, which may
// fall meanwhile, is left out. Jobs are asked for in their order; passed_ is empty before the first.
template <class Visit>
void Tabu::each_move(std::uint32_t job, const Time& worse, const Visit& visit) {
  const Time own_head = head(job);
  const Time own_tail = tail(job);
  const std::span<const Way> ways = ways_.of(job);
  for (std::uint32_t mode = 0; mode < ways.size(); ++mode) {
    const Way& way = ways[mode];
    if (own_head + way.duration + own_tail > worse) continue;
    const bool stays = way.machine == ways[mode_[job]].machine;
    const auto offer = [&](std::uint32_t after, Time end, Time from) {
      visit(Move{job, mode, way.machine, after, std::max(own_head, end) + way.duration + std::max(own_tail, from)});
    };
    std::uint32_t a = kNone;
    std::uint32_t b = kNone;
    if (stays) {
      a = before_[job];
      b = after_[job];
    } else {
      a = passed_[way.machine];
      b = a == kNone ? first_[way.machine] : after_[a];
      while (b != kNone && place_[b] < place_[job]) {
        a = b;
        b = after_[b];
      }
      passed_[way.machine] = a;
    }
    if (mode != mode_[job]) offer(a, a == kNone ? 0 : end_[a], b == kNone ? kNoTail : from_[b]);
    Time from = b == kNone ? kNoTail : from_[b];
    for (std::uint32_t x = a; x != kNone && end_[x] > own_head; x = before_[x]) {
      from = stays ? std::max(tail(x), from) + duration_[x] : from_[x];
      if (own_head + way.duration + from > worse) break;
      offer(before_[x], before_[x] == kNone ? 0 : end_[before_[x]], from);
    }
    Time end = a == kNone ? 0 : end_[a];
    for (std::uint32_t x = b; x != kNone && from_[x] > own_tail; x = after_[x]) {
      end = stays ? std::max(head(x), end) + duration_[x] : end_[x];
      if (end + way.duration + own_tail > worse) break;
      offer(x, end, after_[x] == kNone ? kNoTail : from_[after_[x]]);
    }
  }
}

// One of the longest paths: from a job that nothing holds back to one that ends it.
void Tabu::longest_path(std::mt19937_64& random, std::vector<std::uint32_t>* path) const {
  const auto is_critical = [&](std::uint32_t j) { return end_[j] - duration_[j] + from_[j] == objective_; };
  std::uint32_t at = kNone;
  std::uint64_t seen = 0;
  const auto offer = [&](std::uint32_t j) {
    if (random() % ++seen == 0) at = j;
  };
  for (const std::uint32_t j : order_) {
    if (end_[j] - duration_[j] == std::max<Time>(shop_->jobs[j].release, 0) && is_critical(j)) offer(j);
  }
  path->clear();
  while (at != kNone) {
    path->push_back(at);
    const std::uint32_t from = at;
    const Time end = end_[from];
    at = kNone;
    seen = 0;
    for (const Link& link : links_after_.of(from)) {
      if (end_[link.job] - duration_[link.job] == end + link.delay && is_critical(link.job)) offer(link.job);
    }
    const std::uint32_t next = after_[from];
    if (next != kNone && end_[next] - duration_[next] == end && is_critical(next)) offer(next);
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
  return plan();
}

Plan Tabu::improve(const Plan& start, std::uint64_t moves, Time enough, std::mt19937_64& random,
                   const std::function<bool()>& stop) {
  const std::size_t n = shop_->jobs.size();
  const std::size_t machines = shop_->capacities.size();
  constexpr std::uint64_t kPatience = 1000;  // moves without a better plan before the walk goes back to the best one
  load(start);
  Plan best = plan();
  std::vector<std::uint64_t> tabu(n * machines, 0);  // by job, machine: until which move it must not return there
  std::uint64_t since_better = 0;
  std::vector<std::uint32_t> critical;
  for (std::uint64_t move = 1; move <= moves && best.objective > enough; ++move) {
    if (move % 64 == 0 && stop()) break;
    if (since_better > kPatience) {
      // Back to the best plan, then a few steps in any direction.
      since_better = 0;
      load(best);
      std::fill(tabu.begin(), tabu.end(), 0);
      for (std::uint64_t step = 3 + random() % 12; step > 0; --step) {
        const auto job = static_cast<std::uint32_t>(random() % n);
        std::vector<Move> all;
        passed_.assign(machines, kNone);
        each_move(job, kNever, [&](const Move& candidate) { all.push_back(candidate); });
        if (!all.empty()) go(all[random() % all.size()]);
      }
    }
    longest_path(random, &critical);
    Move chosen;
    Move fallback;
    std::uint64_t ties = 0;
    passed_.assign(machines, kNone);
    for (const std::uint32_t job : critical) {
      each_move(job, chosen.through, [&](const Move& candidate) {
        if (candidate.through > chosen.through) return;
        const bool is_tabu = tabu[job * machines + candidate.machine] > move;
        if (is_tabu && candidate.through >= best.objective) {
          if (fallback.job == kNone || random() % 8 == 0) fallback = candidate;
          return;
        }
        ties = candidate.through == chosen.through ? ties + 1 : 0;
        if (ties == 0 || random() % (ties + 1) == 0) chosen = candidate;
      });
    }
    if (chosen.job == kNone) chosen = fallback;
    if (chosen.job == kNone) break;  // no job of a longest path can go anywhere
    tabu[chosen.job * machines + ways_.of(chosen.job)[mode_[chosen.job]].machine] =
        move + critical.size() / 2 + shop_->jobs[chosen.job].modes.size() + random() % 8;
    go(chosen);
    ++since_better;
    if (objective_ >= best.objective) continue;
    best = plan();
    since_better = 0;
  }
  return best;
}

}  // namespace takt::sched::shop
