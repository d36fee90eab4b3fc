#include "scheduler/analysis/validate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "scheduler/analysis/instants.h"
#include "scheduler/analysis/load.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// What rounding a start up and an end down may take from a slot beyond the fraction of its own length.
std::int64_t rounding(const TickClock& clock) { return clock.hyperperiod.ns % clock.ticks == 0 ? 0 : 1; }

constexpr Duration kMostTime = seconds(1000);  // of a budget or guard, as in a problem that passes check()

class Validator {
 public:
  Validator(const Problem& problem, const Schedule& schedule, const ValidateOptions& scope)
      : problem_(problem), schedule_(schedule), scope_(scope) {}

  Status run() {
    TAKT_RETURN_IF_ERROR(check(problem_));
    const auto rule = [&](const char* name) { rule_ = name; };
    rule("choices");
    TAKT_RETURN_IF_ERROR(choices());
    rule("clock");
    TAKT_RETURN_IF_ERROR(clock());
    rule("jobs");
    TAKT_RETURN_IF_ERROR(slots());
    rule("windows");
    TAKT_RETURN_IF_ERROR(windows());
    rule("resources");
    TAKT_RETURN_IF_ERROR(resources());
    rule("segments");
    TAKT_RETURN_IF_ERROR(segments());
    TAKT_RETURN_IF_ERROR(units());
    rule("mutexes");
    TAKT_RETURN_IF_ERROR(mutexes());
    rule("interference");
    TAKT_RETURN_IF_ERROR(interference());
    rule("gap");
    TAKT_RETURN_IF_ERROR(gap());
    rule("slack");
    TAKT_RETURN_IF_ERROR(slack());
    rule("reserve");
    TAKT_RETURN_IF_ERROR(reserve());
    rule("memory");
    TAKT_RETURN_IF_ERROR(memory());
    rule("idle");
    TAKT_RETURN_IF_ERROR(idle());
    rule("bindings");
    TAKT_RETURN_IF_ERROR(bindings());
    return bounds();
  }

 private:
  [[nodiscard]] std::string name(const Slot& slot) const {
    return "slot of stage '" + problem_.stages[slot.stage].name + "', job " + std::to_string(slot.job) +
           (segments_[slot.stage].size() > 1 ? ", segment " + std::to_string(slot.segment + 1) : "") + " at " +
           ms_text({start_ns(slot)});
  }
  [[nodiscard]] std::int64_t start_ns(const Slot& slot) const { return schedule_.clock.start_at(0, slot.start).ns; }
  [[nodiscard]] std::int64_t end_ns(const Slot& slot) const { return schedule_.clock.end_at(0, slot.end).ns; }
  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& message) const {
    return fail(Code::kGate, std::string("the table is not valid (rule '") + rule_ + "'): " + message);
  }
  // The slots with which a job begins and ends.
  [[nodiscard]] const Slot& first_of(std::uint32_t stage, std::uint32_t job) const {
    return *by_job_[stage][job].front();
  }
  [[nodiscard]] const Slot& last_of(std::uint32_t stage, std::uint32_t job) const {
    return *by_job_[stage][job].back();
  }
  [[nodiscard]] std::uint32_t publisher(const Slot& slot) const { return first_of(slot.stage, slot.job).cores.back(); }

  // A stretch of a resource that repeats every hyperperiod.
  struct Stretch {
    Tick start = 0;
    Tick end = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    const Slot* slot = nullptr;  // the one it begins with
  };
  [[nodiscard]] Stretch stretch(const Slot& from, const Slot& to) const {
    const Tick turn = from.start / schedule_.clock.ticks;
    const Tick ticks = turn * schedule_.clock.ticks;
    const std::int64_t ns = turn * problem_.hyperperiod.ns;
    return {from.start - ticks, to.end - ticks, start_ns(from) - ns, end_ns(to) - ns, &from};
  }
  // Neighbours around the circle: visit(one, next), with next behind it, be it one hyperperiod later.
  template <class Visit>
  Status each_pair(std::vector<Stretch> stretches, const Visit& visit) const {
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& a, const Stretch& b) { return std::tie(a.start, a.end) < std::tie(b.start, b.end); });
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      Stretch next = stretches[i + 1 == stretches.size() ? 0 : i + 1];
      if (i + 1 == stretches.size()) {
        next.start += schedule_.clock.ticks;
        next.end += schedule_.clock.ticks;
        next.start_ns += problem_.hyperperiod.ns;
        next.end_ns += problem_.hyperperiod.ns;
      }
      TAKT_RETURN_IF_ERROR(visit(stretches[i], next));
    }
    return {};
  }

  Status choices() const {
    if (schedule_.choices.size() != problem_.stages.size()) {
      return refuse("it has choices for " + std::to_string(schedule_.choices.size()) + " stages instead of " +
                    std::to_string(problem_.stages.size()));
    }
    for (std::size_t i = 0; i < problem_.stages.size(); ++i) {
      const Stage& stage = problem_.stages[i];
      const Choice& choice = schedule_.choices[i];
      if (std::find(stage.rates.begin(), stage.rates.end(), choice.rate) == stage.rates.end()) {
        return refuse("stage '" + stage.name + "' runs " + std::to_string(choice.rate) +
                      " times per hyperperiod, a rate it does not declare");
      }
      if (choice.variant >= stage.variants.size()) return refuse("stage '" + stage.name + "' uses an unknown variant");
      const Variant& variant = stage.variants[choice.variant];
      // More time than declared does no harm: a table made for two cores may be run on one where its slots suffice.
      const auto too_long = [](const Segment& s) { return s.time > kMostTime || s.guard > kMostTime; };
      const std::vector<Segment>& chosen = choice.budget.segments;
      if (choice.budget.time > kMostTime || std::any_of(chosen.begin(), chosen.end(), too_long)) {
        return refuse("stage '" + stage.name + "' uses a budget or a guard of more than 1000 s");
      }
      const bool declared = std::any_of(variant.budgets.begin(), variant.budgets.end(), [&](const Budget& budget) {
        return budget.cores == choice.budget.cores && budget.time <= choice.budget.time &&
               budget.interference == choice.budget.interference && covers(choice.budget.segments, budget.segments);
      });
      if (!declared) {
        return refuse("stage '" + stage.name + "' uses a budget of " + ms_text(choice.budget.time) + " on " +
                      std::to_string(choice.budget.cores) + " cores that variant '" + variant.name +
                      "' does not declare");
      }
    }
    return {};
  }

  // The same segments with at least the same times.
  static bool covers(const std::vector<Segment>& chosen, const std::vector<Segment>& declared) {
    return std::equal(chosen.begin(), chosen.end(), declared.begin(), declared.end(),
                      [](const Segment& a, const Segment& b) {
                        return a.unit == b.unit && a.time >= b.time && a.guard >= b.guard && a.mutexes == b.mutexes;
                      });
  }

  Status clock() const {
    const TickClock& clock = schedule_.clock;
    if (clock.hyperperiod != problem_.hyperperiod) {
      return refuse("its hyperperiod is " + ms_text(clock.hyperperiod) + " instead of " +
                    ms_text(problem_.hyperperiod));
    }
    if (clock.ticks <= 0 || clock.ticks < (clock.hyperperiod.ns + 999) / 1000)
      return refuse("its tick is longer than 1 us");
    if (clock.ticks > clock.hyperperiod.ns) return refuse("its tick is shorter than 1 ns");
    if (problem_.ticks != 0 && clock.ticks != problem_.ticks) {
      return refuse("it has " + std::to_string(clock.ticks) + " ticks; modes share a tick of H / " +
                    std::to_string(problem_.ticks));
    }
    for (const Choice& choice : schedule_.choices) {
      if (clock.ticks % (1000 * choice.rate) != 0) {
        return refuse(std::to_string(clock.ticks) + " ticks are no multiple of 1000 x " + std::to_string(choice.rate) +
                      " jobs");
      }
    }
    return {};
  }

  // Each stage has its jobs with all their segments, in order, on its home cores.
  Status slots() {
    // As many slots as the rates of the table ask for, before anything is laid out by job: then none is missing unless
    // one appears twice.
    std::int64_t wanted = 0;
    for (const Choice& choice : schedule_.choices) {
      segments_.push_back(segments_of(choice.budget));
      wanted += choice.rate * static_cast<std::int64_t>(segments_.back().size());
    }
    if (wanted > static_cast<std::int64_t>(schedule_.slots.size())) {
      return refuse("it has " + std::to_string(schedule_.slots.size()) + " slots, its jobs have " +
                    std::to_string(wanted) + " segments");
    }
    by_job_.resize(problem_.stages.size());
    for (std::size_t i = 0; i < problem_.stages.size(); ++i) {
      by_job_[i].assign(static_cast<std::size_t>(schedule_.choices[i].rate),
                        std::vector<const Slot*>(segments_[i].size(), nullptr));
    }
    const Slot* before = nullptr;
    for (const Slot& slot : schedule_.slots) {
      if (slot.stage >= problem_.stages.size()) return refuse("a slot names an unknown stage");
      if (slot.job >= by_job_[slot.stage].size()) {
        return refuse("a slot of stage '" + problem_.stages[slot.stage].name + "' has job number " +
                      std::to_string(slot.job) + " of " + std::to_string(by_job_[slot.stage].size()));
      }
      if (slot.segment >= segments_[slot.stage].size()) {
        return refuse("a slot of stage '" + problem_.stages[slot.stage].name + "' is for segment " +
                      std::to_string(slot.segment + 1) + " of " + std::to_string(segments_[slot.stage].size()));
      }
      const Slot*& entry = by_job_[slot.stage][slot.job][slot.segment];
      if (entry != nullptr) return refuse(name(slot) + " appears twice");
      entry = &slot;
      const Tick latest = slot.segment == 0 ? schedule_.clock.ticks : 2 * schedule_.clock.ticks;
      if (slot.start < 0 || slot.start >= latest) return refuse(name(slot) + " begins outside the hyperperiod");
      if (slot.end <= slot.start) return refuse(name(slot) + " ends before it begins");
      if (slot.end > 3 * schedule_.clock.ticks) return refuse(name(slot) + " is longer than the hyperperiod");
      const auto order = [](const Slot& s) { return std::tie(s.start, s.stage, s.job, s.segment); };
      if (before != nullptr && order(*before) >= order(slot)) return refuse(name(slot) + " is out of order");
      before = &slot;
      if (segments_[slot.stage][slot.segment].unit) continue;
      const auto gang = static_cast<std::size_t>(schedule_.choices[slot.stage].budget.cores);
      const std::set<std::uint32_t> distinct(slot.cores.begin(), slot.cores.end());
      if (slot.cores.size() != gang || distinct.size() != gang) {
        return refuse(name(slot) + " names " + std::to_string(distinct.size()) + " cores, its budget is for " +
                      std::to_string(gang));
      }
      if (*distinct.rbegin() >= problem_.board.cores.size()) return refuse(name(slot) + " names an unknown core");
    }
    for (std::uint32_t stage = 0; stage < by_job_.size(); ++stage) {
      for (std::uint32_t job = 0; job < by_job_[stage].size(); ++job) {
        for (const Slot* slot : by_job_[stage][job]) {
          if (!segments_[stage][slot->segment].unit && slot->cores != first_of(stage, 0).cores) {
            return refuse(name(*slot) + " is not on the stage's home cores");
          }
        }
        if (job > 0 && first_of(stage, job).start <= first_of(stage, job - 1).start) {
          return refuse(name(first_of(stage, job)) + " does not follow its predecessor");
        }
      }
    }
    return {};
  }

  // Each segment is on its resource and behind the one before; jobs of one stage do not overlap.
  Status segments() const {
    for (std::uint32_t stage = 0; stage < by_job_.size(); ++stage) {
      for (std::uint32_t job = 0; job < by_job_[stage].size(); ++job) {
        const std::vector<const Slot*>& slots = by_job_[stage][job];
        for (std::size_t i = 0; i < slots.size(); ++i) {
          const Slot& slot = *slots[i];
          const std::optional<std::uint32_t>& unit = segments_[stage][i].unit;
          if (slot.unit != unit || (unit && !slot.cores.empty())) {
            return refuse(name(slot) + " is not on " +
                          (unit ? "'" + problem_.board.units[*unit].name + "' alone" : std::string("the cores")));
          }
          if (i == 0) continue;
          const Slot& before = *slots[i - 1];
          // The dispatcher of the last core releases every segment; those of a gang end on other cores as well.
          const Duration error = slots.front()->cores.size() > 1 ? problem_.board.clock_error : Duration{};
          if (slot.start < before.end + schedule_.clock.ticks_up(error) || start_ns(slot) < end_ns(before) + error.ns) {
            return refuse(name(slot) + " begins " + ms_text({end_ns(before) + error.ns - start_ns(slot)}) +
                          " before the segment in front of it has ended");
          }
        }
        const bool wraps = job + 1 == by_job_[stage].size();
        const Slot& next = first_of(stage, wraps ? 0 : job + 1);
        const Slot& last = *slots.back();
        if (next.start + (wraps ? schedule_.clock.ticks : 0) < last.end ||
            start_ns(next) + (wraps ? problem_.hyperperiod.ns : 0) < end_ns(last)) {
          return refuse(name(last) + " runs into the stage's next job");
        }
      }
    }
    return {};
  }

  Status windows() const {
    for (const Slot& slot : schedule_.slots) {
      std::int64_t wakeup = 0;
      std::int64_t publish = 0;
      for (const std::uint32_t core : first_of(slot.stage, slot.job).cores) {
        wakeup = std::max(wakeup, problem_.board.cores[core].wakeup_window.ns);
        publish = std::max(publish, problem_.board.cores[core].publish_window.ns);
      }
      const bool last = slot.segment + 1 == segments_[slot.stage].size();
      const std::int64_t budget = segments_[slot.stage][slot.segment].time.ns;
      const std::int64_t need = wakeup + budget + (last ? publish : 0);
      // As it stands, and wherever it may begin: a slot's length says by itself whether it is long enough.
      const std::int64_t anywhere = schedule_.clock.end_at(0, slot.end - slot.start).ns - rounding(schedule_.clock);
      const std::int64_t have = std::min(end_ns(slot) - start_ns(slot), anywhere);
      if (have < need) {
        return refuse(name(slot) + " is " + ms_text({have}) + " long; w + budget" + (last ? " + p" : "") + " is " +
                      ms_text({need}));
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<Stretch> on_core(std::uint32_t core) const {
    std::vector<Stretch> here;
    for (const Slot& slot : schedule_.slots) {
      if (std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end()) {
        here.push_back(stretch(slot, slot));
      }
    }
    return here;
  }

  Status resources() const {
    for (std::uint32_t core = 0; core < problem_.board.cores.size(); ++core) {
      TAKT_RETURN_IF_ERROR(each_pair(on_core(core), [&](const Stretch& one, const Stretch& next) -> Status {
        if (next.start >= one.end && next.start_ns >= one.end_ns) return {};
        return refuse(name(*one.slot) + " overlaps the " + name(*next.slot) + " on " + problem_.board.cores[core].name +
                      " by " + ms_text({one.end_ns - next.start_ns}));
      }));
    }
    return {};
  }

  // The distance that two neighbours on one resource keep beside what the rule asks for: cores that release them have
  // their own timelines.
  [[nodiscard]] Duration apart(const Stretch& one, const Stretch& next) const {
    return publisher(*one.slot) == publisher(*next.slot) ? Duration{} : problem_.board.clock_error;
  }
  [[nodiscard]] bool closer_than(const Stretch& one, const Stretch& next, Duration distance) const {
    return next.start < one.end + schedule_.clock.ticks_up(distance) || next.start_ns < one.end_ns + distance.ns;
  }

  Status units() {
    for (std::uint32_t unit = 0; unit < problem_.board.units.size(); ++unit) {
      std::vector<Stretch> here;
      for (const Slot& slot : schedule_.slots) {
        if (slot.unit == unit) here.push_back(stretch(slot, slot));
      }
      TAKT_RETURN_IF_ERROR(each_pair(here, [&](const Stretch& one, const Stretch& next) -> Status {
        rule_ = "units";
        if (closer_than(one, next, apart(one, next))) {
          return refuse(name(*one.slot) + " overlaps the " + name(*next.slot) + " on " +
                        problem_.board.units[unit].name + ", or is closer than the clock error");
        }
        rule_ = "guard";
        const Duration guard = segments_[one.slot->stage][one.slot->segment].guard;
        if (closer_than(one, next, guard + apart(one, next))) {
          return refuse(name(*one.slot) + " is followed by the " + name(*next.slot) + " after " +
                        ms_text({next.start_ns - one.end_ns}) + "; its guard is " + ms_text(guard));
        }
        return {};
      }));
    }
    return {};
  }

  Status mutexes() const {
    for (std::uint32_t mutex = 0; mutex < problem_.mutexes.size(); ++mutex) {
      std::vector<Stretch> held;
      for (const Slot& slot : schedule_.slots) {
        const std::vector<std::uint32_t>& own = segments_[slot.stage][slot.segment].mutexes;
        if (std::find(own.begin(), own.end(), mutex) != own.end()) held.push_back(stretch(slot, slot));
        const Variant& variant = problem_.stages[slot.stage].variants[schedule_.choices[slot.stage].variant];
        if (variant.arena_mutex == mutex && slot.segment == 0) {
          held.push_back(stretch(slot, last_of(slot.stage, slot.job)));
        }
      }
      TAKT_RETURN_IF_ERROR(each_pair(held, [&](const Stretch& one, const Stretch& next) -> Status {
        if (!closer_than(one, next, apart(one, next))) return {};
        return refuse("mutex '" + problem_.mutexes[mutex].name + "' is held from the " + name(*one.slot) + " until " +
                      ms_text({one.end_ns}) + " and wanted by the " + name(*next.slot));
      }));
    }
    return {};
  }

  // What a budget does not bear beside it does not run beside it.
  Status interference() const {
    const auto bears_all = [](const Choice& choice) { return choice.budget.interference == Interference::kAny; };
    if (std::all_of(schedule_.choices.begin(), schedule_.choices.end(), bears_all)) return {};
    std::vector<Stretch> by_start;
    std::int64_t longest = 0;
    for (const Slot& slot : schedule_.slots) {
      by_start.push_back(stretch(slot, slot));
      longest = std::max(longest, by_start.back().end_ns - by_start.back().start_ns);
    }
    const auto starts_before = [](const Stretch& s, std::int64_t when) { return s.start_ns < when; };
    std::sort(by_start.begin(), by_start.end(), [](const Stretch& a, const Stretch& b) {
      return std::tie(a.start_ns, a.slot) < std::tie(b.start_ns, b.slot);
    });
    const std::int64_t most_error = problem_.board.clock_error.ns;
    for (const Stretch& own : by_start) {
      const Slot& slot = *own.slot;
      const Interference bears = schedule_.choices[slot.stage].budget.interference;
      if (bears == Interference::kAny) continue;
      for (const std::int64_t turn : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}}) {
        const std::int64_t shift = turn * problem_.hyperperiod.ns;
        // Whatever begins earlier is over.
        auto beside = std::lower_bound(by_start.begin(), by_start.end(), own.start_ns - longest - most_error - shift,
                                       starts_before);
        for (; beside != by_start.end() && beside->start_ns + shift < own.end_ns + most_error; ++beside) {
          const Slot& other = *beside->slot;
          if (other.stage == slot.stage && other.job == slot.job) continue;
          if (bears == Interference::kCores && !other.unit) continue;
          const std::int64_t error = apart(own, *beside).ns;  // each core has its own timeline
          if (beside->start_ns + shift >= own.end_ns + error || beside->end_ns + shift + error <= own.start_ns) {
            continue;
          }
          return refuse(name(slot) + " has a budget for interference '" + name_of(bears) + "', and the " + name(other) +
                        " runs beside it, or is closer than the clock error");
        }
      }
    }
    return {};
  }

  // The end of the hyperperiod belongs to corrections of the phase.
  Status gap() const {
    if (!problem_.phase_lock) return {};
    const std::int64_t from = problem_.hyperperiod.ns - problem_.phase_lock->gap.ns;
    for (const Slot& slot : schedule_.slots) {
      const Stretch own = stretch(slot, slot);
      const Duration behind = slot.unit ? segments_[slot.stage][slot.segment].guard : free_behind(problem_, slot.stage);
      const std::int64_t end = own.end_ns + std::max(behind, problem_.board.clock_error).ns;
      if (end <= from) continue;
      return refuse(name(slot) + " with what stays free behind it ends at " + ms_text({end}) +
                    ", inside the gap that begins at " + ms_text({from}));
    }
    return {};
  }

  Status slack() const {
    for (std::uint32_t core = 0; core < problem_.board.cores.size(); ++core) {
      TAKT_RETURN_IF_ERROR(each_pair(on_core(core), [&](const Stretch& one, const Stretch& next) -> Status {
        const std::int64_t free = next.start_ns - one.end_ns;
        const Duration wanted = free_behind(problem_, one.slot->stage);
        if (free >= wanted.ns) return {};
        return refuse(name(*one.slot) + " is followed by the " + name(*next.slot) + " after " + ms_text({free}) +
                      "; its slack and the board's switch cost are " + ms_text(wanted));
      }));
    }
    return {};
  }

  // The housekeeping reserve comes in small change: behind every slot the core stays free for the reserve's share of
  // slot and pause, so that what runs there waits for one slot at most, not for all of them.
  Status reserve() const {
    for (std::uint32_t c = 0; c < problem_.board.cores.size(); ++c) {
      const Core& core = problem_.board.cores[c];
      TAKT_RETURN_IF_ERROR(each_pair(on_core(c), [&](const Stretch& one, const Stretch& next) -> Status {
        const auto keeps = [&](std::int64_t slot, std::int64_t to_next) {
          return static_cast<double>(to_next) * (1.0 - core.reserve) + 1e-6 >= static_cast<double>(slot);
        };
        if (keeps(one.end - one.start, next.start - one.start) &&
            keeps(one.end_ns - one.start_ns, next.start_ns - one.start_ns)) {
          return {};
        }
        return refuse(name(*one.slot) + " is followed by the " + name(*next.slot) + " after " +
                      ms_text({next.start_ns - one.end_ns}) + "; of slot and pause " + percent_text(core.reserve) +
                      " stay free on '" + core.name + "' for its housekeeping reserve");
      }));
    }
    return {};
  }

  // Of the chosen variant and of the one that its jobs degrade to.
  struct Needs {
    std::int64_t resident = 0, arena = 0;
  };
  [[nodiscard]] Needs needs(std::uint32_t s) const {
    const Stage& stage = problem_.stages[s];
    const Variant& chosen = stage.variants[schedule_.choices[s].variant];
    Needs out{chosen.resident, chosen.arena};
    for (const Variant& other : stage.variants) {
      if (&other == &chosen || other.name != stage.degraded_variant) continue;
      out.resident += other.resident;
      out.arena = std::max(out.arena, other.arena);
    }
    return out;
  }

  // Resident bytes of the variants that jobs run, and the arenas of jobs that run at the same time.
  Status memory() const {
    if (problem_.board.memory == 0) return {};
    std::int64_t resident = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // instant, bytes; what is given back comes first
    for (std::uint32_t s = 0; s < problem_.stages.size(); ++s) resident += needs(s).resident;
    for (const Slot& slot : schedule_.slots) {
      if (slot.segment != 0) continue;
      const std::int64_t arena = needs(slot.stage).arena;
      for (const std::int64_t turn : {std::int64_t{0}, problem_.hyperperiod.ns}) {
        changes.emplace_back(start_ns(slot) + turn, arena);
        changes.emplace_back(end_ns(last_of(slot.stage, slot.job)) + turn, -arena);
      }
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const auto& [when, by] : changes) most = std::max(most, now += by);
    if (resident + most > problem_.board.memory) {
      return refuse(bytes_text(resident) + " stay resident and jobs that run together use " + bytes_text(most) +
                    "; the board has " + bytes_text(problem_.board.memory));
    }
    return {};
  }

  Status idle() const {
    for (std::uint32_t c = 0; c < problem_.board.cores.size(); ++c) {
      const Core& core = problem_.board.cores[c];
      const analysis::Load load(schedule_, c);
      const double fullest = static_cast<double>(load.fullest(kSecond)) / static_cast<double>(kSecond);
      if (fullest > 1.0 - kLeastIdleShare) {
        return refuse("core '" + core.name + "' is busy for " + percent_text(fullest) + " of a second; at least " +
                      percent_text(kLeastIdleShare) + " must stay idle");
      }
    }
    return {};
  }

  Status bindings() const {
    std::size_t at = 0;
    const Tick ticks = schedule_.clock.ticks;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      for (std::uint32_t job = 0; job < by_job_[stage].size(); ++job) {
        for (std::uint32_t input = 0; input < problem_.stages[stage].inputs.size(); ++input) {
          const Input& from = problem_.stages[stage].inputs[input];
          if (from.from_sensor) continue;
          const Slot& consumer = first_of(stage, job);
          const auto refuse_input = [&](const std::string& why) {
            return refuse(name(consumer) + ", input '" + from.name + "': " + why);
          };
          if (at == schedule_.bindings.size()) return refuse_input("no binding");
          const Binding& binding = schedule_.bindings[at++];
          if (binding.stage != stage || binding.job != job || binding.input != input)
            return refuse_input("no binding at its place");
          if (binding.producer_stage != from.source || binding.producer_job >= by_job_[from.source].size() ||
              binding.producer_shift > 0) {
            return refuse_input("bound to something that is no earlier job of '" + problem_.stages[from.source].name +
                                "'");
          }
          const Slot& producer = last_of(binding.producer_stage, binding.producer_job);
          // On one timeline program order suffices; across timelines the clocks may differ.
          const bool same = consumer.cores.size() == 1 && producer.cores.back() == consumer.cores[0];
          const Duration error = same ? Duration{} : problem_.board.clock_error;
          // The newest output that is there is at most so many hyperperiods old: a job lasts no longer than one.
          if (binding.producer_shift < -5 - error.ns / problem_.hyperperiod.ns) {
            return refuse_input("bound to a job " + std::to_string(-static_cast<std::int64_t>(binding.producer_shift)) +
                                " hyperperiods ago");
          }
          const std::int64_t there = end_ns(producer) + binding.producer_shift * problem_.hyperperiod.ns + error.ns;
          const Tick there_ticks = producer.end + binding.producer_shift * ticks + schedule_.clock.ticks_up(error);
          if (there > start_ns(consumer) || there_ticks > consumer.start) {
            return refuse_input("the bound job's output is there at " + ms_text({there}) + ", " +
                                ms_text({there - start_ns(consumer)}) + " after the start");
          }
          if (!scope_.exact_bindings) continue;
          const bool last = binding.producer_job + 1 == by_job_[from.source].size();
          const Slot& next = last_of(from.source, last ? 0 : binding.producer_job + 1);
          const Tick next_there =
              next.end + (binding.producer_shift + (last ? 1 : 0)) * ticks + schedule_.clock.ticks_up(error);
          if (next_there <= consumer.start) {
            return refuse_input("bound to job " + std::to_string(binding.producer_job) + " of '" +
                                problem_.stages[from.source].name + "' although the next one is there as well");
          }
        }
      }
    }
    if (at != schedule_.bindings.size()) return refuse("there are more bindings than inputs");
    return {};
  }

  Status bounds() {
    rule_ = "bounds";
    if (scope_.recorded_bounds && schedule_.bounds.size() != problem_.chains.size()) {
      return refuse("it has bounds for " + std::to_string(schedule_.bounds.size()) + " chains instead of " +
                    std::to_string(problem_.chains.size()));
    }
    if (!scope_.recorded_bounds && !scope_.limits) return {};
    const analysis::Instants instants(problem_, schedule_);
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      const Chain& chain = problem_.chains[c];
      const auto bounds = analysis::bounds_of(problem_, instants, c);
      for (std::size_t q = 0; q < kQuantities; ++q) {
        const auto what = [&] { return "chain '" + chain.name + "': " + name_of(static_cast<Quantity>(q)) + " "; };
        if (scope_.recorded_bounds && (schedule_.bounds[c].chain != c || schedule_.bounds[c].bounds[q] != bounds[q])) {
          return refuse(what() + "is recorded as " + ms_text(schedule_.bounds[c].bounds[q]) + ", the walk gives " +
                        ms_text(bounds[q]));
        }
        if (scope_.limits && chain.limits[q] && bounds[q] > *chain.limits[q]) {
          rule_ = "limits";
          return refuse(what() + "of " + ms_text(bounds[q]) + " is " + ms_text(bounds[q] - *chain.limits[q]) +
                        " above its limit of " + ms_text(*chain.limits[q]));
        }
      }
    }
    return disparities();
  }

  Status disparities() {
    rule_ = "bounds";
    if (scope_.recorded_bounds && schedule_.disparities.size() != problem_.disparities.size()) {
      return refuse("it has disparities for " + std::to_string(schedule_.disparities.size()) + " limits instead of " +
                    std::to_string(problem_.disparities.size()));
    }
    for (std::size_t d = 0; d < problem_.disparities.size(); ++d) {
      const Disparity& limit = problem_.disparities[d];
      const Duration found = walk_disparity(problem_, schedule_, d).bound;
      if (scope_.recorded_bounds && schedule_.disparities[d].bound != found) {
        return refuse("disparity '" + limit.name + "' is recorded as " + ms_text(schedule_.disparities[d].bound) +
                      ", the walk gives " + ms_text(found));
      }
      if (scope_.limits && found > limit.limit) {
        rule_ = "limits";
        return refuse("disparity '" + limit.name + "' of " + ms_text(found) + " is " + ms_text(found - limit.limit) +
                      " above its limit of " + ms_text(limit.limit));
      }
    }
    return {};
  }

  const Problem& problem_;
  const Schedule& schedule_;
  ValidateOptions scope_;
  const char* rule_ = "";                                      // being checked
  std::vector<std::vector<Segment>> segments_;                 // by stage
  std::vector<std::vector<std::vector<const Slot*>>> by_job_;  // by stage, job, segment
};

}  // namespace

Status validate(const Problem& problem, const Schedule& schedule, const ValidateOptions& options) {
  return Validator(problem, schedule, options).run();
}

std::vector<CoreLoad> core_loads(const Problem& problem, const Schedule& schedule) {
  std::vector<CoreLoad> out;
  for (std::uint32_t c = 0; c < problem.board.cores.size(); ++c) {
    const analysis::Load load(schedule, c);
    CoreLoad core;
    core.core = problem.board.cores[c].name;
    core.reserve = problem.board.cores[c].reserve;
    core.busy = {load.busy()};
    core.share = static_cast<double>(load.busy()) / static_cast<double>(problem.hyperperiod.ns);
    core.longest_busy = {load.longest_stretch()};
    core.fullest_second = static_cast<double>(load.fullest(kSecond)) / static_cast<double>(kSecond);
    out.push_back(core);
  }
  return out;
}

std::vector<UnitLoad> unit_loads(const Problem& problem, const Schedule& schedule) {
  std::vector<UnitLoad> out;
  for (std::uint32_t u = 0; u < problem.board.units.size(); ++u) {
    UnitLoad unit;
    unit.unit = problem.board.units[u].name;
    for (const Slot& slot : schedule.slots) {
      if (slot.unit != u) continue;
      unit.busy += Duration{schedule.clock.end_at(0, slot.end).ns - schedule.clock.start_at(0, slot.start).ns};
      unit.guards += segments_of(schedule.choices[slot.stage].budget)[slot.segment].guard;
    }
    unit.share = static_cast<double>((unit.busy + unit.guards).ns) / static_cast<double>(problem.hyperperiod.ns);
    out.push_back(std::move(unit));
  }
  return out;
}

}  // namespace takt::sched
