#include "scheduler/synthesis/lower_bounds.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

// The shortest slot and the smallest demand a stage can have.
struct Least {
  Duration length;         // w + budget + p
  std::size_t option = 0;  // where the shortest slot is from
  std::int64_t rate = 0;   // smallest
  std::int64_t top_rate = 0;
  Duration demand;  // core time per hyperperiod
  std::size_t demand_option = 0;
};

Duration windows(const Problem& problem) {
  Duration least = problem.board.cores.front().wakeup_window + problem.board.cores.front().publish_window;
  for (const Core& core : problem.board.cores) least = std::min(least, core.wakeup_window + core.publish_window);
  return least;
}

std::vector<Least> least_of(const Problem& problem, const Options& options) {
  const Duration around = windows(problem);
  std::vector<Least> out;
  for (const std::vector<Choice>& stage : options) {
    Least least;
    for (std::size_t o = 0; o < stage.size(); ++o) {
      const Duration length = around + stage[o].budget.time;
      const Duration demand = length * (stage[o].rate * stage[o].budget.cores);
      if (o == 0 || length < least.length) {
        least.length = length;
        least.option = o;
      }
      if (o == 0 || demand < least.demand) {
        least.demand = demand;
        least.demand_option = o;
      }
      least.rate = o == 0 ? stage[o].rate : std::min(least.rate, stage[o].rate);
      least.top_rate = std::max(least.top_rate, stage[o].rate);
    }
    out.push_back(least);
  }
  return out;
}

std::string describe(const Problem& problem, std::size_t stage, const Choice& choice) {
  const Stage& s = problem.stages[stage];
  std::string out = s.name;
  std::vector<std::string> parts;
  if (s.variants.size() > 1) parts.push_back(s.variants[choice.variant].name);
  if (choice.budget.cores > 1) parts.push_back(std::to_string(choice.budget.cores) + " cores");
  if (!parts.empty()) out += " (" + list_text(parts) + ")";
  return out;
}

// Least possible bounds of a chain: its slots end to end, no wait between them, sensor terms and the distance of two
// uses of the slowest stage (scheduler/analysis/README.md).
std::string refute_chain(const Problem& problem, const Options& options, const std::vector<Least>& least,
                         const Chain& chain) {
  const Sensor& sensor = problem.sensors[chain.sensor];
  Duration path;
  std::string slots;
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  std::size_t dearest = chain.stages.front();
  for (const std::uint32_t stage : chain.stages) {
    path += least[stage].length;
    slots += " + " + describe(problem, stage, options[stage][least[stage].option]) + " " + ms_text(least[stage].length);
    rate = std::min(rate, least[stage].top_rate);
    if (least[stage].length > least[dearest].length) dearest = stage;
  }
  const Duration gap{problem.hyperperiod.ns / rate};
  const Duration period = sensor.phase ? sensor.period : longest_period(sensor);
  const Duration delay = sensor.delay_max + (sensor.phase ? sensor.phase->jitter : Duration{});
  const std::string delay_text = sensor.name + " delay " + ms_text(delay);
  const std::string gap_text = " + distance of two runs " + ms_text(gap);
  const std::string period_text = " + sensor period " + ms_text(period);
  std::array<Duration, kQuantities> bounds;
  std::array<std::string, kQuantities> terms;
  if (sensor.phase) {
    bounds = {path + sensor.delay_max, path + delay + std::max(period, gap), path + delay,
              path + delay + std::max(period, gap)};
    const std::string longer = gap > period ? gap_text : period_text;
    terms = {sensor.name + " delay " + ms_text(sensor.delay_max), delay_text + longer, delay_text, delay_text + longer};
  } else {
    bounds = {path + delay + std::min(period, gap), path + delay + period + gap, path + delay + period,
              path + delay + period + gap};
    terms = {delay_text + (gap < period ? gap_text : period_text), delay_text + period_text + gap_text,
             delay_text + period_text, delay_text + period_text + gap_text};
  }
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!chain.limits[q]) continue;
    // Rounding of starts and ends may shorten each slot by less than two nanoseconds.
    const Duration excess =
        bounds[q] - nanoseconds(2 * static_cast<std::int64_t>(chain.stages.size() + 1)) - *chain.limits[q];
    if (excess.ns <= 0) continue;
    const std::string name = name_of(static_cast<Quantity>(q));
    return "chain '" + chain.name + "': " + name + " cannot be below " + ms_text(bounds[q]) + " (" + terms[q] + slots +
           "), the limit is " + ms_text(*chain.limits[q]) + ": " + ms_text(excess) +
           " too much. Shorten its stages by that much in total (the longest is '" + problem.stages[dearest].name +
           "'), or raise the " + name + " limit to at least " + ms_text(bounds[q]);
  }
  return "";
}

// Jobs of one stage never overlap and all run on the same cores.
std::string refute_stage(const Problem& problem, const Options& options, std::size_t stage) {
  double idle = 1;
  for (const Core& core : problem.board.cores) idle = std::min(idle, idle_share(core));
  const Duration around = windows(problem);
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : options[stage]) {
    if (static_cast<std::size_t>(choice.budget.cores) > problem.board.cores.size()) continue;
    const Duration length = around + choice.budget.time;
    const Duration period{problem.hyperperiod.ns / choice.rate};
    const double ratio =
        static_cast<double>((length * choice.rate).ns) / (static_cast<double>(problem.hyperperiod.ns) * (1.0 - idle));
    if (ratio <= 1.0) return "";
    if (ratio < least) {
      least = ratio;
      const Duration room{static_cast<std::int64_t>(static_cast<double>(period.ns) * (1.0 - idle))};
      best = "stage '" + problem.stages[stage].name + "': one slot of " + describe(problem, stage, choice) + " takes " +
             ms_text(length) + ", but its period of " + ms_text(period) + " leaves " + ms_text(room) + " (" +
             percent_text(idle) + " of a core stays idle): " + ms_text(length - room) +
             " too much. Shorten the budget by that much";
      const auto fitting = static_cast<std::int64_t>(static_cast<double>(problem.hyperperiod.ns) * (1.0 - idle) /
                                                     static_cast<double>(length.ns));
      best += fitting > 0 ? " or declare a rate of at most " + std::to_string(fitting) + " per hyperperiod"
                          : " or choose a longer hyperperiod";
    }
  }
  if (best.empty()) {
    best = "stage '" + problem.stages[stage].name + "' needs more cores than the board has (" +
           std::to_string(problem.board.cores.size()) + ")";
  }
  return best;
}

// Slots against the idle share, and slots with the slack behind them against the whole hyperperiod.
std::string refute_load(const Problem& problem, const Options& options, const std::vector<Least>& least) {
  Duration demand;
  Duration slack;
  std::vector<std::size_t> order;
  for (std::size_t stage = 0; stage < least.size(); ++stage) {
    demand += least[stage].demand;
    slack += problem.stages[stage].slack * least[stage].rate;
    order.push_back(stage);
  }
  double capacity = 0;
  for (const Core& core : problem.board.cores) {
    capacity += static_cast<double>(problem.hyperperiod.ns) * (1.0 - idle_share(core));
  }
  const auto cores = static_cast<std::int64_t>(problem.board.cores.size());
  const bool overloaded = static_cast<double>(demand.ns) > capacity;
  if (!overloaded && demand + slack <= problem.hyperperiod * cores) return "";
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return least[a].demand > least[b].demand; });
  std::vector<std::string> parts;
  for (const std::size_t stage : order) {
    const Choice& choice = options[stage][least[stage].demand_option];
    parts.push_back(describe(problem, stage, choice) + " " + std::to_string(choice.rate) + " x " +
                    ms_text({least[stage].demand.ns / choice.rate}));
  }
  const Duration need = overloaded ? demand : demand + slack;
  const Duration room = overloaded ? Duration{static_cast<std::int64_t>(capacity)} : problem.hyperperiod * cores;
  return "the cores are overloaded: in a hyperperiod of " + ms_text(problem.hyperperiod) +
         " the stages need at least " + ms_text(need) + " of core time (" + list_text(parts) +
         (overloaded ? "" : ", and " + ms_text(slack) + " of slack behind them") + "), the " + std::to_string(cores) +
         (cores == 1 ? " core has " : " cores have ") + ms_text(room) + (overloaded ? " beside their reserve" : "") +
         ": " + ms_text(need - room) + " too much. Cheapest remedy: a lower rate or a cheaper variant of '" +
         problem.stages[order.front()].name + "'" + (overloaded ? "" : ", less slack") + ", or another core";
}

// All jobs of a stage run on its home cores, so the stages must be divided among the cores. Exact while the search
// stays small; says nothing otherwise. Only for one remaining option per stage.
std::string refute_partition(const Problem& problem, const Options& options, const std::vector<Least>& least) {
  for (const std::vector<Choice>& stage : options) {
    if (stage.size() != 1 || stage.front().budget.cores != 1) return "";
  }
  std::vector<std::size_t> order(options.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return least[a].demand > least[b].demand; });
  std::vector<double> room;
  for (const Core& core : problem.board.cores) {
    room.push_back(static_cast<double>(problem.hyperperiod.ns) * (1.0 - idle_share(core)));
  }
  std::size_t nodes = 0;
  bool exhausted = true;
  std::function<bool(std::size_t)> divide = [&](std::size_t depth) {
    if (depth == order.size()) return true;
    if (++nodes > 20'000) {
      exhausted = false;
      return false;
    }
    const auto need = static_cast<double>(least[order[depth]].demand.ns);
    for (std::size_t core = 0; core < room.size(); ++core) {
      bool tried = false;  // a core with the same room left gives the same outcome
      for (std::size_t other = 0; other < core; ++other) tried |= room[other] == room[core];
      if (tried || room[core] < need) continue;
      room[core] -= need;
      if (divide(depth + 1)) return true;
      room[core] += need;
    }
    return false;
  };
  if (divide(0) || !exhausted) return "";
  std::vector<std::string> parts;
  for (const std::size_t stage : order) {
    parts.push_back(
        problem.stages[stage].name + " " +
        percent_text(static_cast<double>(least[stage].demand.ns) / static_cast<double>(problem.hyperperiod.ns)));
  }
  std::vector<std::string> rooms;
  for (const Core& core : problem.board.cores) rooms.push_back(core.name + " " + percent_text(1.0 - idle_share(core)));
  return "no division of the stages among the cores fits: every stage keeps one home core, they need " +
         list_text(parts) + " of a core, and there is room for " + list_text(rooms) + ". Shorten '" +
         problem.stages[order.front()].name + "', lower its rate, or let it use two cores";
}

// In the worst arrival of a locked sensor's sample, a reaction limit forces one job of each stage of the chain into
// [latest arrival, sample before + limit]. Such windows of several chains may hold more work than the cores.
std::string refute_windows(const Problem& problem, const Options& options, const std::vector<Least>& least) {
  struct Window {
    std::size_t stage;
    std::size_t chain;
    std::int64_t from, to;
  };
  std::vector<Window> windows_of_jobs;
  for (std::size_t c = 0; c < problem.chains.size(); ++c) {
    const Chain& chain = problem.chains[c];
    const Sensor& sensor = problem.sensors[chain.sensor];
    const std::optional<SamplePattern> pattern = sample_pattern(sensor, problem.hyperperiod);
    std::optional<Duration> limit = chain.limits[static_cast<std::size_t>(Quantity::kReaction)];
    const std::optional<Duration>& replaced = chain.limits[static_cast<std::size_t>(Quantity::kAgeUntilReplaced)];
    if (replaced && (!limit || *replaced < *limit)) limit = replaced;
    if (!pattern || !limit || pattern->hyperperiods != 1) continue;
    for (std::int64_t k = 1; k <= pattern->samples; ++k) {
      const auto at = [&](std::int64_t sample) {
        return sensor.phase->offset.ns + sample * problem.hyperperiod.ns / pattern->samples;
      };
      std::int64_t from = at(k) + sensor.phase->jitter.ns + sensor.delay_max.ns;
      std::int64_t to = at(k - 1) + limit->ns;
      for (const std::uint32_t stage : chain.stages) to -= least[stage].length.ns;
      for (const std::uint32_t stage : chain.stages) {
        to += least[stage].length.ns;
        windows_of_jobs.push_back({stage, c, from, to + 2});
        from += least[stage].length.ns;
      }
    }
  }
  if (windows_of_jobs.empty() || windows_of_jobs.size() > 400) return "";
  const auto cores = static_cast<std::int64_t>(problem.board.cores.size());
  std::stable_sort(windows_of_jobs.begin(), windows_of_jobs.end(),
                   [](const Window& a, const Window& b) { return a.to < b.to; });
  for (const Window& first : windows_of_jobs) {
    for (const Window& last : windows_of_jobs) {
      const std::int64_t from = first.from;
      const std::int64_t to = last.to;
      // Longer than a hyperperiod: the load rule is stronger, and windows of the next turn would be missing here.
      if (to <= from || to - from > problem.hyperperiod.ns) continue;
      std::int64_t work = 0;
      std::vector<std::string> parts;
      for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
        // One job may serve several windows; disjoint windows need a job each (greedy by their ends).
        std::int64_t jobs = 0;
        std::int64_t free_from = std::numeric_limits<std::int64_t>::min();
        for (const Window& window : windows_of_jobs) {
          if (window.stage != stage || window.from < from || window.to > to || window.from < free_from) continue;
          ++jobs;
          free_from = window.to;
        }
        if (jobs == 0) continue;
        std::int64_t cost = std::numeric_limits<std::int64_t>::max();
        for (const Choice& choice : options[stage]) {
          cost = std::min(cost, (windows(problem) + choice.budget.time).ns * choice.budget.cores);
        }
        work += jobs * cost;
        parts.push_back(problem.stages[stage].name + " " + std::to_string(jobs) + " x " + ms_text({cost}));
      }
      if (work <= cores * (to - from)) continue;
      return "too much work in a window: between " + ms_text({from}) + " and " + ms_text({to}) +
             " of the hyperperiod the limits of chains with locked sensors force " + ms_text({work}) +
             " of core time (" + list_text(parts) + ") into " + ms_text({cores * (to - from)}) + ": " +
             ms_text({work - cores * (to - from)}) +
             " too much. Shift the phase of a sensor, raise a limit by that much, or shorten a stage";
    }
  }
  return "";
}

}  // namespace

std::string refute(const Problem& problem, const Options& options) {
  const std::vector<Least> least = least_of(problem, options);
  for (const Chain& chain : problem.chains) {
    if (std::string why = refute_chain(problem, options, least, chain); !why.empty()) return why;
  }
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    if (std::string why = refute_stage(problem, options, stage); !why.empty()) return why;
  }
  if (std::string why = refute_load(problem, options, least); !why.empty()) return why;
  if (std::string why = refute_partition(problem, options, least); !why.empty()) return why;
  return refute_windows(problem, options, least);
}

}  // namespace takt::sched
