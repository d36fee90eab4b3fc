#include "scheduler/synthesis/remedies.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>

#include "scheduler/model/footprint.h"
#include "scheduler/model/limits.h"
#include "scheduler/model/text.h"
#include "scheduler/model/what_if.h"

namespace takt::sched {
namespace {

constexpr std::int64_t kStep = 100'000;  // figures are found to a tenth of a millisecond
constexpr std::uint64_t kNodes = 3'000;  // of one try: what needs a long search to fit is no remedy to rely on
constexpr std::int64_t kMostTries = 160;
constexpr std::int64_t kLeastTries = 24;  // of large problems, where one try takes long
constexpr std::size_t kMostStages = 24;

std::string tenths(std::int64_t steps) { return std::to_string(steps / 10) + "." + std::to_string(steps % 10) + "ms"; }

struct Found {
  Remedy remedy;
  double cost = 0;  // share by which the figure changes
};

class Remedies {
  using Clock = std::chrono::steady_clock;

 public:
  Remedies(const Problem& problem, const SynthesisOptions& options) : problem_(problem), options_(options) {
    options_.node_limit = std::min(options.node_limit, kNodes);
    options_.first_found = true;
    if (options.seconds > 0) {
      until_ = Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(options.seconds, 1e6) * 1e9));
    }
    std::int64_t jobs = 0;
    for (const Stage& stage : problem.stages) jobs += *std::max_element(stage.rates.begin(), stage.rates.end());
    tries_left_ = std::clamp(100 * kMostTries / std::max<std::int64_t>(jobs, 1), kLeastTries, kMostTries);
  }

  std::vector<Remedy> find(std::size_t most) {
    memory();
    if (!fits(problem_)) {
      limits();
      stages();
      cores();
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.cost < b.cost; });
    std::vector<Remedy> out;
    for (Found& found : found_) {
      if (out.size() < most) out.push_back(std::move(found.remedy));
    }
    return out;
  }

 private:
  bool fits(const Problem& problem) {
    if (tries_left_-- <= 0 || !check(problem)) return false;
    if (until_) options_.seconds = std::chrono::duration<double>(*until_ - Clock::now()).count();
    if (options_.seconds < 0 || (options_.stop != nullptr && *options_.stop)) return false;
    return synthesize(problem, options_).verdict == Verdict::kFeasible;
  }
  bool fits_with(const std::string& change) {
    Problem changed = problem_;
    return apply_what_if(changed, change) && fits(changed);
  }

  // The step next to `bad` for which `good` holds, `good` being one for which it does.
  template <class Holds>
  static std::int64_t nearest(std::int64_t good, std::int64_t bad, const Holds& holds) {
    while (std::abs(good - bad) > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (holds(middle) ? good : bad) = middle;
    }
    return good;
  }

  // What stays resident is arithmetic. The rest is looked for as if there were enough memory.
  void memory() {
    if (problem_.board.memory == 0) return;
    std::int64_t least = 0;
    std::int64_t arena = 0;
    std::vector<std::int64_t> smallest;
    for (const Stage& stage : problem_.stages) {
      std::int64_t own = std::numeric_limits<std::int64_t>::max();
      std::int64_t own_arena = own;
      for (std::uint32_t variant = 0; variant < stage.variants.size(); ++variant) {
        const Footprint memory = footprint(stage, variant);
        own = std::min(own, memory.resident);
        own_arena = std::min(own_arena, memory.arena);
      }
      smallest.push_back(own);
      least += own;
      arena = std::max(arena, own_arena);
    }
    const std::int64_t excess = least + arena - problem_.board.memory;
    if (excess <= 0) return;
    for (std::size_t stage = 0; stage < smallest.size(); ++stage) {
      if (smallest[stage] <= excess) continue;
      found_.push_back({{"", "a variant of '" + problem_.stages[stage].name + "' with at most " +
                                 bytes_text(smallest[stage] - excess) + " resident (memory alone)"},
                        static_cast<double>(excess) / static_cast<double>(smallest[stage])});
    }
    found_.push_back({{"", "a board with " + bytes_text(problem_.board.memory + excess) + " of memory (memory alone)"},
                      static_cast<double>(excess) / static_cast<double>(problem_.board.memory)});
    problem_.board.memory = 0;
    apart_ = " (beside the memory)";
  }

  void limits() {
    for (const Chain& chain : problem_.chains) {
      for (std::size_t q = 0; q < kQuantities; ++q) {
        if (!chain.limits[q]) continue;
        const auto change = [&](std::int64_t steps) {
          return chain.name + "." + kQuantityKeys[q] + "=" + tenths(steps);
        };
        const std::int64_t now = chain.limits[q]->ns / kStep;
        const std::int64_t far = std::min(4 * now + 10 * problem_.hyperperiod.ns / kStep, kMostTime.ns / kStep);
        if (!fits_with(change(far))) continue;
        const std::int64_t least = nearest(far, now, [&](std::int64_t steps) { return fits_with(change(steps)); });
        found_.push_back({{change(least), "raise the limit on the " + std::string(name_of(static_cast<Quantity>(q))) +
                                              " of chain '" + chain.name + "' from " + ms_text(*chain.limits[q]) +
                                              " to " + ms_text({least * kStep}) + apart_},
                          static_cast<double>(least - now) / static_cast<double>(std::max<std::int64_t>(now, 1))});
      }
    }
  }

  void stages() {
    for (std::size_t s = 0; s < std::min(problem_.stages.size(), kMostStages); ++s) {
      budget(problem_.stages[s]);
      rate(problem_.stages[s]);
    }
  }

  void budget(const Stage& stage) {
    std::int64_t now = std::numeric_limits<std::int64_t>::max();
    bool two_declared = false;
    for (const Variant& variant : stage.variants) {
      for (const Budget& budget : variant.budgets) {
        now = std::min(now, budget.time.ns / kStep);
        two_declared |= budget.cores == 2;
      }
    }
    const auto change = [&](std::int64_t steps) { return stage.name + ".budget=" + tenths(steps); };
    if (now < 2 || !fits_with(change(1))) return;
    const std::int64_t most = nearest(1, now, [&](std::int64_t steps) { return fits_with(change(steps)); });
    std::string words = "a variant of '" + stage.name + "' with a budget of at most " + ms_text({most * kStep}) +
                        " instead of " + ms_text({now * kStep});
    if (!two_declared && problem_.board.cores.size() > 1 && fits(on_two_cores(stage.name, {most * kStep}))) {
      words += ", on one core or on two";
    }
    found_.push_back({{change(most), words + apart_}, 1.0 - static_cast<double>(most) / static_cast<double>(now)});
  }
  [[nodiscard]] Problem on_two_cores(const std::string& name, Duration time) const {
    Problem changed = problem_;
    for (Stage& stage : changed.stages) {
      if (stage.name != name) continue;
      Budget budget;
      budget.cores = 2;
      budget.time = time;
      for (Variant& variant : stage.variants) variant.budgets = {budget};
    }
    return changed;
  }

  void rate(const Stage& stage) {
    const std::int64_t now = *std::min_element(stage.rates.begin(), stage.rates.end());
    for (std::int64_t rate = now - 1; rate >= 1 && rate >= now - 4; --rate) {
      Problem changed = problem_;
      for (Stage& other : changed.stages) {
        if (other.name == stage.name) other.rates = {rate};
      }
      if (!fits(changed)) continue;
      char hz[32];
      std::snprintf(hz, sizeof hz, "%.9gHz", static_cast<double>(rate) / problem_.hyperperiod.seconds());
      const std::string change = stage.name + ".rate=" + hz;
      // A rate whose text is no whole number of jobs has no what-if.
      found_.push_back(
          {{fits_with(change) ? change : "", "'" + stage.name + "' " + std::to_string(rate) +
                                                 " times per hyperperiod instead of " + std::to_string(now) + apart_},
           1.0 - static_cast<double>(rate) / static_cast<double>(now)});
      return;
    }
  }

  void cores() {
    Problem changed = problem_;
    Core core = changed.board.cores.back();
    core.name += "+";
    core.reserve = 0;
    for (const Core& other : problem_.board.cores) core.cpu = std::max(core.cpu, other.cpu + 1);
    changed.board.cores.push_back(core);
    if (fits(changed)) {
      found_.push_back({{"", "a board with one more core like '" + problem_.board.cores.back().name + "'" + apart_},
                        1.0 / static_cast<double>(problem_.board.cores.size())});
    }
  }

  Problem problem_;
  SynthesisOptions options_;
  std::optional<Clock::time_point> until_;  // of all tries together
  std::int64_t tries_left_ = 0;
  std::string apart_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<Remedy> remedies(const Problem& problem, const SynthesisOptions& options, std::size_t most) {
  if (!check(problem)) return {};
  return Remedies(problem, options).find(most);
}

}  // namespace takt::sched
