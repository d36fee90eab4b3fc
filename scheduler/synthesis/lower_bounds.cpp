#include "scheduler/synthesis/lower_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"
#include "scheduler/synthesis/options.h"
#include "scheduler/synthesis/orders.h"

namespace takt::sched {
namespace {

// Slots of a job on these cores, w + budget each and p in the last, windows of the slowest core: all of them end to
// end, and those on the cores.
struct Lengths {
  Duration job;
  Duration on_cores;
};
Lengths lengths_on(const Problem& problem, const Choice& choice, const std::vector<std::uint32_t>& cores) {
  Duration wakeup;
  Duration publish;
  for (const std::uint32_t core : cores) {
    wakeup = std::max(wakeup, problem.board.cores[core].wakeup_window);
    publish = std::max(publish, problem.board.cores[core].publish_window);
  }
  Lengths out{publish, publish};  // the last segment is on the cores
  if (choice.budget.segments.empty())
    return {out.job + wakeup + choice.budget.time, out.job + wakeup + choice.budget.time};
  for (const Segment& segment : choice.budget.segments) {
    out.job += wakeup + segment.time;
    if (!segment.unit) out.on_cores += wakeup + segment.time;
  }
  return out;
}

// What is left to choose, with every placement of a stage spelled out.
struct Open {
  struct Place {
    std::size_t option = 0;
    const std::vector<std::uint32_t>* cores = nullptr;
    Duration length;    // of a job
    Duration on_cores;  // of that on each core
  };
  const Problem& problem;
  const Options& options;
  std::vector<std::vector<std::vector<std::uint32_t>>> sets;  // by k
  std::vector<std::vector<Place>> places;                     // by stage

  Open(const Problem& p, const Options& o, const Homes& homes) : problem(p), options(o) {
    for (int k = 0; k <= static_cast<int>(kMaxGang); ++k) sets.push_back(core_sets(p.board, k));
    for (std::size_t stage = 0; stage < o.size(); ++stage) {
      places.emplace_back();
      const bool home = !homes.empty() && !homes[stage].empty();
      for (std::size_t option = 0; option < o[stage].size(); ++option) {
        const auto k = static_cast<std::size_t>(o[stage][option].budget.cores);
        const auto add = [&](const std::vector<std::uint32_t>& set) {
          const Lengths lengths = lengths_on(p, o[stage][option], set);
          places.back().push_back({option, &set, lengths.job, lengths.on_cores});
        };
        if (home && homes[stage].size() == k) add(homes[stage]);
        if (home) continue;
        for (const std::vector<std::uint32_t>& set : sets[k]) add(set);
      }
    }
  }
  [[nodiscard]] const Choice& choice(std::size_t stage, const Place& place) const {
    return options[stage][place.option];
  }
};

// The shortest slot and the smallest demand a stage can have.
struct Least {
  Duration length;         // w + budget + p
  std::size_t option = 0;  // where the shortest slot is from
  std::int64_t top_rate = 0;
  Duration demand;  // core time per hyperperiod
  std::size_t demand_option = 0;
};

std::vector<Least> least_of(const Open& open) {
  std::vector<Least> out;
  for (std::size_t stage = 0; stage < open.places.size(); ++stage) {
    Least least;
    bool first = true;
    for (const Open::Place& place : open.places[stage]) {
      const Choice& choice = open.choice(stage, place);
      const Duration demand = place.on_cores * (choice.rate * choice.budget.cores);
      if (first || place.length < least.length) {
        least.length = place.length;
        least.option = place.option;
      }
      if (first || demand < least.demand) {
        least.demand = demand;
        least.demand_option = place.option;
      }
      least.top_rate = std::max(least.top_rate, choice.rate);
      first = false;
    }
    out.push_back(least);
  }
  return out;
}

// Core time per hyperperiod that may hold slots.
std::int64_t capacity_of(const Problem& problem, std::uint32_t core) {
  return static_cast<std::int64_t>(
      std::floor(static_cast<double>(problem.hyperperiod.ns) * (1.0 - idle_share(problem.board.cores[core]))));
}

std::int64_t shared(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return std::count_if(a.begin(), a.end(),
                       [&](std::uint32_t core) { return std::find(b.begin(), b.end(), core) != b.end(); });
}

std::string cores_text(const Problem& problem, const std::vector<std::uint32_t>& cores) {
  std::vector<std::string> names;
  for (const std::uint32_t core : cores) names.push_back(problem.board.cores[core].name);
  return list_text(names);
}

std::vector<std::uint32_t> all_cores(const Problem& problem) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t core = 0; core < problem.board.cores.size(); ++core) out.push_back(core);
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
struct ChainLeast {
  std::array<Duration, kQuantities> bounds;
  std::array<std::string, kQuantities> terms;  // of the sensor
  std::string slots;
  std::size_t dearest = 0;
};

ChainLeast least_of_chain(const Problem& problem, const Options& options, const std::vector<Least>& least,
                          const Chain& chain) {
  const Sensor& sensor = problem.sensors[chain.sensor];
  ChainLeast out;
  Duration path;
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  out.dearest = chain.stages.front();
  for (const std::uint32_t stage : chain.stages) {
    path += least[stage].length;
    out.slots +=
        " + " + describe(problem, stage, options[stage][least[stage].option]) + " " + ms_text(least[stage].length);
    rate = std::min(rate, least[stage].top_rate);
    if (least[stage].length > least[out.dearest].length) out.dearest = stage;
  }
  const Duration gap{problem.hyperperiod.ns / rate};
  const Duration period = sensor.phase ? sensor.period : longest_period(sensor);
  const Duration delay = sensor.delay_max + (sensor.phase ? sensor.phase->jitter : Duration{});
  const std::string delay_text = sensor.name + " delay " + ms_text(delay);
  const std::string gap_text = " + distance of two runs " + ms_text(gap);
  const std::string period_text = " + sensor period " + ms_text(period);
  if (sensor.phase) {
    out.bounds = {path + sensor.delay_max, path + delay + std::max(period, gap), path + delay,
                  path + delay + std::max(period, gap)};
    const std::string longer = gap > period ? gap_text : period_text;
    out.terms = {sensor.name + " delay " + ms_text(sensor.delay_max), delay_text + longer, delay_text,
                 delay_text + longer};
  } else {
    out.bounds = {path + delay + std::min(period, gap), path + delay + period + gap, path + delay + period,
                  path + delay + period + gap};
    out.terms = {delay_text + (gap < period ? gap_text : period_text), delay_text + period_text + gap_text,
                 delay_text + period_text, delay_text + period_text + gap_text};
  }
  // Rounding of starts and ends may shorten each slot by less than two nanoseconds.
  for (Duration& bound : out.bounds)
    bound = bound - nanoseconds(2 * static_cast<std::int64_t>(chain.stages.size() + 1));
  return out;
}

std::optional<Refutation> refute_chain(const Problem& problem, const Options& options, const std::vector<Least>& least,
                                       std::uint32_t chain_index) {
  const Chain& chain = problem.chains[chain_index];
  const ChainLeast chain_least = least_of_chain(problem, options, least, chain);
  const auto& [bounds, terms, slots, dearest] = chain_least;
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!chain.limits[q]) continue;
    const Duration excess = bounds[q] - *chain.limits[q];
    if (excess.ns <= 0) continue;
    Refutation out;
    out.certificate.rule = Certificate::Rule::kChain;
    out.certificate.chain = chain_index;
    out.certificate.quantity = static_cast<Quantity>(q);
    out.certificate.excess = excess.ns;
    const std::string name = name_of(static_cast<Quantity>(q));
    out.why = "chain '" + chain.name + "': " + name + " cannot be below " + ms_text(bounds[q]) + " (" + terms[q] +
              slots + "), the limit is " + ms_text(*chain.limits[q]) + ": " + ms_text(excess) +
              " too much, on any number of cores: running ahead in a pipeline raises the rate, it does not shorten a "
              "chain. Shorten its stages by more than that in total (the longest is '" +
              problem.stages[dearest].name + "'), by variants or versions for more cores, or raise the limit";
    return out;
  }
  return std::nullopt;
}

// Jobs of one stage never overlap and all run on the same cores.
std::optional<Refutation> refute_stage(const Open& open, std::uint32_t stage) {
  const Problem& problem = open.problem;
  const std::string& name = problem.stages[stage].name;
  Refutation out;
  out.certificate.rule = Certificate::Rule::kStage;
  out.certificate.stage = stage;
  if (open.places[stage].empty()) {
    out.certificate.excess = 1;
    out.why =
        "stage '" + name + "' needs more cores than the board has (" + std::to_string(problem.board.cores.size()) + ")";
    return out;
  }
  for (const Open::Place& place : open.places[stage]) {
    const Choice& choice = open.choice(stage, place);
    std::int64_t excess = 0;
    double idle = 0;
    for (const std::uint32_t core : *place.cores) {
      excess = std::max(excess, place.on_cores.ns * choice.rate - capacity_of(problem, core));
      idle = std::max(idle, idle_share(problem.board.cores[core]));
    }
    // The whole job: jobs of one stage follow each other.
    const std::int64_t beyond = place.length.ns * choice.rate - problem.hyperperiod.ns;
    const bool too_long = beyond > excess;
    excess = std::max(excess, beyond);
    if (excess <= 0) return std::nullopt;
    if (out.certificate.excess > 0 && excess >= out.certificate.excess) continue;
    out.certificate.excess = excess;
    const Duration period{problem.hyperperiod.ns / choice.rate};
    if (too_long) {
      out.why = "stage '" + name + "': the segments of one job of " + describe(problem, stage, choice) + " take " +
                ms_text(place.length) + " end to end, its period is " + ms_text(period) + ": " +
                ms_text(place.length - period) +
                " too much, since jobs of one stage do not overlap. Shorten a segment by that much, or declare a lower "
                "rate";
      continue;
    }
    const Duration room{static_cast<std::int64_t>(static_cast<double>(period.ns) * (1.0 - idle))};
    out.why = "stage '" + name + "': one slot of " + describe(problem, stage, choice) + " takes " +
              ms_text(place.length) + ", but its period of " + ms_text(period) + " leaves " + ms_text(room) + " (" +
              percent_text(idle) + " of a core stays idle): " + ms_text(place.length - room) +
              " too much. Shorten the budget by more than that, or declare a lower rate";
  }
  return out;
}

// What must be resident, and the largest arena, against the board.
std::optional<Refutation> refute_memory(const Problem& problem, const Options& options) {
  if (problem.board.memory == 0) return std::nullopt;
  std::int64_t resident = 0;
  std::int64_t arena = 0;
  std::vector<std::string> parts;
  for (std::size_t stage = 0; stage < options.size(); ++stage) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t least_arena = least;
    for (const Choice& choice : options[stage]) {
      const Footprint memory = footprint(problem.stages[stage], choice.variant);
      least = std::min(least, memory.resident);
      least_arena = std::min(least_arena, memory.arena);
    }
    if (options[stage].empty()) continue;
    resident += least;
    arena = std::max(arena, least_arena);
    if (least > 0) parts.push_back(problem.stages[stage].name + " " + bytes_text(least));
  }
  Refutation out;
  out.certificate.rule = Certificate::Rule::kMemory;
  out.certificate.excess = resident + arena - problem.board.memory;
  if (out.certificate.excess <= 0) return std::nullopt;
  out.why = "memory: at least " + bytes_text(resident) + " stay resident (" + list_text(parts) + ")" +
            (arena > 0 ? ", the largest arena takes " + bytes_text(arena) : "") + "; the board has " +
            bytes_text(problem.board.memory) + ": " + bytes_text(out.certificate.excess) +
            " too much. Smaller variants are needed: no schedule changes what is resident";
  return out;
}

// Slots against the idle share, and slots with what stays free behind them against the whole hyperperiod, on some
// cores.
std::optional<Refutation> refute_load(const Open& open, const std::vector<std::uint32_t>& cores) {
  const Problem& problem = open.problem;
  std::int64_t demand = 0;
  std::int64_t with_slack = 0;
  struct Part {
    std::size_t stage, option;
    std::int64_t demand;
  };
  std::vector<Part> parts;
  for (std::size_t stage = 0; stage < open.places.size(); ++stage) {
    Part least{stage, 0, std::numeric_limits<std::int64_t>::max()};
    std::int64_t least_with = least.demand;
    for (const Open::Place& place : open.places[stage]) {
      const std::int64_t times = open.choice(stage, place).rate * shared(*place.cores, cores);
      if (place.on_cores.ns * times < least.demand) least = {stage, place.option, place.on_cores.ns * times};
      least_with = std::min(least_with, (place.on_cores + free_behind(problem, stage)).ns * times);
    }
    if (open.places[stage].empty()) continue;
    demand += least.demand;
    with_slack += least_with;
    if (least.demand > 0) parts.push_back(least);
  }
  std::int64_t capacity = 0;
  for (const std::uint32_t core : cores) capacity += capacity_of(problem, core);
  const std::int64_t whole = problem.hyperperiod.ns * static_cast<std::int64_t>(cores.size());
  const bool overloaded = demand - capacity >= with_slack - whole;
  Refutation out;
  out.certificate.rule = Certificate::Rule::kLoad;
  out.certificate.cores = cores;
  out.certificate.excess = std::max(demand - capacity, with_slack - whole);
  if (out.certificate.excess <= 0) return std::nullopt;
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.demand > b.demand; });
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    const Choice& choice = open.options[part.stage][part.option];
    texts.push_back(describe(problem, part.stage, choice) + " " + std::to_string(choice.rate) + " x " +
                    ms_text({part.demand / choice.rate}));
  }
  const Duration need{overloaded ? demand : with_slack};
  const Duration room{overloaded ? capacity : whole};
  const bool all = cores.size() == problem.board.cores.size();
  out.why = (all ? "the cores are overloaded" : cores_text(problem, cores) + " is overloaded") +
            ": in a hyperperiod of " + ms_text(problem.hyperperiod) + " the stages need at least " + ms_text(need) +
            " of core time (" + list_text(texts) +
            (overloaded ? "" : ", and " + ms_text({with_slack - demand}) + " of slack and switch cost behind them") +
            "), " +
            (all ? "the " + std::to_string(cores.size()) + (cores.size() == 1 ? " core has " : " cores have ")
                 : "there are ") +
            ms_text(room) + (overloaded ? " beside their reserve" : "") + ": " + ms_text(need - room) +
            " too much. Cheapest remedy: a lower rate or a cheaper variant of '" +
            problem.stages[parts.front().stage].name + "'" + (overloaded ? "" : ", less slack") + ", or another core";
  return out;
}

// What one job keeps a unit or a mutex taken for, with the shortest windows of any core set.
template <class Taken>
std::optional<Refutation> refute_line(const Open& open, const std::string& what, const std::string& remedy,
                                      const Taken& taken) {
  const Problem& problem = open.problem;
  std::int64_t work = 0;
  std::vector<std::string> parts;
  for (std::size_t stage = 0; stage < open.places.size(); ++stage) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t jobs = 0;
    for (const Open::Place& place : open.places[stage]) {
      const Choice& choice = open.choice(stage, place);
      Duration wakeup;
      Duration publish;
      for (const std::uint32_t core : *place.cores) {
        wakeup = std::max(wakeup, problem.board.cores[core].wakeup_window);
        publish = std::max(publish, problem.board.cores[core].publish_window);
      }
      const std::int64_t ns = taken(problem.stages[stage].variants[choice.variant], choice, wakeup, publish).ns;
      if (ns * choice.rate >= least) continue;
      least = ns * choice.rate;
      jobs = choice.rate;
    }
    if (open.places[stage].empty() || least == 0) continue;
    work += least;
    parts.push_back(problem.stages[stage].name + " " + std::to_string(jobs) + " x " + ms_text({least / jobs}));
  }
  Refutation out;
  out.certificate.excess = work - problem.hyperperiod.ns;
  if (out.certificate.excess <= 0) return std::nullopt;
  out.why = what + " in a hyperperiod of " + ms_text(problem.hyperperiod) + " for at least " + ms_text({work}) + " (" +
            list_text(parts) + "): " + ms_text({out.certificate.excess}) + " too much. " + remedy;
  return out;
}

std::optional<Refutation> refute_unit(const Open& open, std::uint32_t unit) {
  const std::string& name = open.problem.board.units[unit].name;
  std::optional<Refutation> out = refute_line(
      open, "the " + std::string(name_of(open.problem.board.units[unit].kind)) + " '" + name + "' is needed",
      "A lower rate or a cheaper variant, a shorter guard, or another unit for one of them",
      [&](const Variant&, const Choice& choice, Duration wakeup, Duration) {
        Duration sum;
        for (const Segment& segment : choice.budget.segments) {
          if (segment.unit == unit) sum += wakeup + segment.time + segment.guard;
        }
        return sum;
      });
  if (!out) return std::nullopt;
  out->certificate.rule = Certificate::Rule::kUnit;
  out->certificate.unit = unit;
  return out;
}

std::optional<Refutation> refute_mutex(const Open& open, std::uint32_t mutex) {
  std::optional<Refutation> out = refute_line(
      open, "the mutex '" + open.problem.mutexes[mutex].name + "' is held",
      "A lower rate or a cheaper variant, a shorter segment under the mutex, or an arena of its own for one of them",
      [&](const Variant& variant, const Choice& choice, Duration wakeup, Duration publish) {
        Duration sum;
        const std::vector<Segment> segments = segments_of(choice.budget);
        for (std::size_t i = 0; i < segments.size(); ++i) {
          const std::vector<std::uint32_t>& held = segments[i].mutexes;
          if (variant.arena_mutex != mutex && std::find(held.begin(), held.end(), mutex) == held.end()) continue;
          sum += wakeup + segments[i].time + (i + 1 == segments.size() ? publish : Duration{});
        }
        return sum;
      });
  if (!out) return std::nullopt;
  out->certificate.rule = Certificate::Rule::kMutex;
  out->certificate.mutex = mutex;
  return out;
}

// How far apart the stamps can lie that the newest sample of a sensor may have at one latch. Two sensors that know
// nothing of each other are at some time as far apart as half the sum, wherever the latches lie.
Duration spread_of(const Sensor& sensor) {
  if (sensor.phase) return {};
  return longest_period(sensor) + sensor.delay_max - sensor.delay_min;
}

Duration least_disparity(const Problem& problem, std::uint32_t one, std::uint32_t other) {
  if (one == other) return {};
  return {(spread_of(problem.sensors[one]) + spread_of(problem.sensors[other])).ns / 2};
}

std::optional<Refutation> refute_disparity(const Problem& problem, std::uint32_t index) {
  const Disparity& limit = problem.disparities[index];
  std::optional<Refutation> out;
  for (std::size_t a = 0; a < limit.chains.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const std::uint32_t one = problem.chains[limit.chains[a]].sensor;
      const std::uint32_t other = problem.chains[limit.chains[b]].sensor;
      const Duration least = least_disparity(problem, one, other);
      const Duration excess = least - limit.limit;
      if (excess.ns <= 0 || (out && excess.ns <= out->certificate.excess)) continue;
      out.emplace();
      out->certificate.rule = Certificate::Rule::kDisparity;
      out->certificate.disparity = index;
      out->certificate.excess = excess.ns;
      out->why = "disparity '" + limit.name + "': samples of '" + problem.sensors[one].name + "' and '" +
                 problem.sensors[other].name + "' that meet in '" + problem.stages[limit.stage].name +
                 "' are at times " + ms_text(least) +
                 " apart (half of their periods and arrival jitters), wherever the slots lie; the limit is " +
                 ms_text(limit.limit) + ": " + ms_text(excess) +
                 " too much. Trigger one of the sensors by the table (phase_ms), raise its rate, or raise the limit";
    }
  }
  return out;
}

// All jobs of a stage run on its home cores, so the stages must be divided among the cores. Exact while the search
// stays small; says nothing otherwise. Only for one remaining option per stage.
}  // namespace

std::array<Duration, kQuantities> least_bounds(const Problem& problem, const Options& options, std::uint32_t chain) {
  return least_of_chain(problem, options, least_of(Open(problem, options, {})), problem.chains[chain]).bounds;
}

double least_worst_disparity(const Problem& problem) {
  double worst = 0;
  for (const Disparity& limit : problem.disparities) {
    for (const std::uint32_t a : limit.chains) {
      for (const std::uint32_t b : limit.chains) {
        const Duration least = least_disparity(problem, problem.chains[a].sensor, problem.chains[b].sensor);
        worst = std::max(worst, static_cast<double>(least.ns) / static_cast<double>(limit.limit.ns));
      }
    }
  }
  return worst;
}

double least_worst_ratio(const Problem& problem, const Options& options) {
  std::int64_t refuted = 0;
  std::int64_t open = 4000;  // thousandths
  while (open - refuted > 1) {
    const std::int64_t factor = refuted + (open - refuted) / 2;
    Problem scaled = problem;
    bool any = false;
    for (Chain& chain : scaled.chains) {
      for (std::optional<Duration>& limit : chain.limits) {
        if (!limit) continue;
        any = true;
        limit = Duration{std::max<std::int64_t>(1, limit->ns / 1000 * factor)};
      }
    }
    if (!any) return 0;
    (refute(scaled, options) ? refuted : open) = factor;
  }
  return static_cast<double>(refuted) / 1000.0;
}

std::string refute_partition(const Problem& problem, const Options& options) {
  for (const std::vector<Choice>& stage : options) {
    if (stage.size() != 1 || stage.front().budget.cores != 1) return "";
  }
  const std::vector<Least> least = least_of(Open(problem, options, {}));
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

namespace {

// In the worst arrival of a locked sensor's sample, a reaction limit forces one job of each stage of the chain into
// [latest arrival, sample before + limit]. Such windows of several chains may hold more work than the cores.
std::optional<Refutation> refute_windows(const Open& open, const std::vector<Least>& least,
                                         const std::vector<std::uint32_t>& cores) {
  const Problem& problem = open.problem;
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
  if (windows_of_jobs.empty() || windows_of_jobs.size() > 400) return std::nullopt;
  std::vector<std::int64_t> costs;  // of one job, by stage, on these cores
  for (std::size_t stage = 0; stage < open.places.size(); ++stage) {
    std::int64_t cost = std::numeric_limits<std::int64_t>::max();
    for (const Open::Place& place : open.places[stage]) {
      cost = std::min(cost, place.on_cores.ns * shared(*place.cores, cores));
    }
    costs.push_back(open.places[stage].empty() ? 0 : cost);
  }
  const auto width = static_cast<std::int64_t>(cores.size());
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
        const std::int64_t cost = costs[stage];
        if (cost == 0) continue;
        work += jobs * cost;
        parts.push_back(problem.stages[stage].name + " " + std::to_string(jobs) + " x " + ms_text({cost}));
      }
      const std::int64_t excess = work - width * (to - from);
      if (excess <= 0) continue;
      Refutation out;
      out.certificate.rule = Certificate::Rule::kWindow;
      out.certificate.cores = cores;
      out.certificate.from = {from};
      out.certificate.to = {to};
      out.certificate.excess = excess;
      out.why = "too much work in a window: between " + ms_text({from}) + " and " + ms_text({to}) +
                " of the hyperperiod the limits of chains with locked sensors force " + ms_text({work}) +
                " of core time (" + list_text(parts) + ") into " + ms_text({width * (to - from)}) +
                (cores.size() == problem.board.cores.size() ? "" : " of " + cores_text(problem, cores)) + ": " +
                ms_text({excess}) +
                " too much. Shift the phase of a sensor, raise a limit by that much, or shorten a stage";
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

// Hands every refutation to `found`, cheapest rule first, until it returns false.
template <class Found>
void each_refutation(const Problem& problem, const Options& options, const Homes& homes, const Found& found) {
  const Open open(problem, options, homes);
  const auto offer = [&](std::optional<Refutation> refutation) { return !refutation || found(*std::move(refutation)); };
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    // Without a way to run there is nothing to add up.
    if (open.places[stage].empty()) return (void)offer(refute_stage(open, stage));
  }
  const std::vector<Least> least = least_of(open);
  for (std::uint32_t chain = 0; chain < problem.chains.size(); ++chain) {
    if (!offer(refute_chain(problem, options, least, chain))) return;
  }
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    if (!offer(refute_stage(open, stage))) return;
  }
  if (!offer(refute_memory(problem, options))) return;
  for (std::uint32_t unit = 0; unit < problem.board.units.size(); ++unit) {
    if (!offer(refute_unit(open, unit))) return;
  }
  for (std::uint32_t mutex = 0; mutex < problem.mutexes.size(); ++mutex) {
    if (!offer(refute_mutex(open, mutex))) return;
  }
  for (std::uint32_t disparity = 0; disparity < problem.disparities.size(); ++disparity) {
    if (!offer(refute_disparity(problem, disparity))) return;
  }
  std::vector<std::vector<std::uint32_t>> sets{all_cores(problem)};
  if (!homes.empty()) {
    for (const std::uint32_t core : all_cores(problem)) sets.push_back({core});
  }
  for (const auto& cores : sets) {
    if (!offer(refute_load(open, cores))) return;
  }
  for (const auto& cores : sets) {
    if (!offer(refute_windows(open, least, cores))) return;
  }
}

}  // namespace

std::optional<Refutation> refute(const Problem& problem, const Options& options, const Homes& homes) {
  std::optional<Refutation> first;
  each_refutation(problem, options, homes, [&](Refutation refutation) {
    first = std::move(refutation);
    return false;
  });
  return first;
}

std::vector<Refutation> refute_in_every_way(const Problem& problem, const Options& options) {
  std::vector<Refutation> out;
  each_refutation(problem, options, {}, [&](Refutation refutation) {
    out.push_back(std::move(refutation));
    return true;
  });
  return out;
}

namespace {

class Prover {
 public:
  Prover(const Problem& problem, std::uint64_t nodes, const Deadline& deadline)
      : problem_(problem), nodes_(nodes), deadline_(deadline) {
    for (const Stage& stage : problem.stages) options_.push_back(options_of(problem.board, stage));
    homes_.resize(problem.stages.size());
  }

  std::optional<Certificate> close() {
    if (nodes_ == 0 || deadline_.passed()) return std::nullopt;
    --nodes_;
    if (std::optional<Refutation> found = refute(problem_, options_, homes_)) return std::move(found->certificate);
    Certificate out;
    if (const std::optional<std::uint32_t> stage = dearest([&](std::size_t s) { return options_[s].size() > 1; })) {
      out.rule = Certificate::Rule::kOptions;
      out.stage = *stage;
      const std::vector<Choice> all = options_[*stage];
      for (const Choice& choice : all) {
        options_[*stage] = {choice};
        std::optional<Certificate> part = close();
        if (!part) return std::nullopt;
        out.parts.push_back(std::move(*part));
      }
      options_[*stage] = all;
      return out;
    }
    if (const std::optional<std::uint32_t> stage = dearest([&](std::size_t s) { return homes_[s].empty(); })) {
      out.rule = Certificate::Rule::kHomes;
      out.stage = *stage;
      const auto sets = core_sets(problem_.board, options_[*stage].front().budget.cores);
      for (std::size_t i = 0; i < sets.size(); ++i) {
        if (const std::optional<std::size_t> like = twin(sets, i)) {
          Certificate same;
          same.rule = Certificate::Rule::kSame;
          same.cores = sets[*like];
          out.parts.push_back(std::move(same));
          continue;
        }
        homes_[*stage] = sets[i];
        std::optional<Certificate> part = close();
        homes_[*stage].clear();
        if (!part) return std::nullopt;
        out.parts.push_back(std::move(*part));
      }
      return out;
    }
    return refute_by_orders(problem_, options_, homes_, branches_);
  }

 private:
  // The stage that takes most core time, among those that are asked for.
  template <class Asked>
  std::optional<std::uint32_t> dearest(const Asked& asked) const {
    std::optional<std::uint32_t> best;
    std::int64_t most = -1;
    for (std::uint32_t stage = 0; stage < options_.size(); ++stage) {
      if (!asked(stage)) continue;
      std::int64_t demand = 0;
      for (const Choice& choice : options_[stage]) {
        demand = std::max(demand, choice.budget.time.ns * choice.rate * choice.budget.cores);
      }
      if (demand > most) {
        most = demand;
        best = stage;
      }
    }
    return best;
  }

  [[nodiscard]] bool equal(std::uint32_t a, std::uint32_t b) const {
    const Core& x = problem_.board.cores[a];
    const Core& y = problem_.board.cores[b];
    if (x.reserve != y.reserve || x.wakeup_window != y.wakeup_window || x.publish_window != y.publish_window)
      return false;
    return std::all_of(homes_.begin(), homes_.end(),
                       [&](const std::vector<std::uint32_t>& home) { return shared(home, {a}) == shared(home, {b}); });
  }

  // An earlier set that differs from set i only by equal cores.
  [[nodiscard]] std::optional<std::size_t> twin(const std::vector<std::vector<std::uint32_t>>& sets,
                                                std::size_t i) const {
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      std::vector<std::uint32_t> gone;
      std::vector<std::uint32_t> come;
      std::set_difference(sets[earlier].begin(), sets[earlier].end(), sets[i].begin(), sets[i].end(),
                          std::back_inserter(gone));
      std::set_difference(sets[i].begin(), sets[i].end(), sets[earlier].begin(), sets[earlier].end(),
                          std::back_inserter(come));
      if (gone.size() == 1 && equal(gone[0], come[0])) return earlier;
    }
    return std::nullopt;
  }

  const Problem& problem_;
  std::uint64_t nodes_;
  std::uint64_t branches_ = std::min<std::uint64_t>(nodes_, 10'000);  // over orders, which cost far more than a rule
  Deadline deadline_;
  Options options_;
  Homes homes_;
};

}  // namespace

std::optional<Certificate> prove_infeasible(const Problem& problem, std::uint64_t nodes, const Deadline& deadline) {
  return Prover(problem, nodes, deadline).close();
}

}  // namespace takt::sched
