#include "scheduler/synthesis/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/model/footprint.h"

namespace takt::sched {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();  // owns the gap of a phase lock

// The first start in [from, latest] at which all that is taken is free.
std::optional<Tick> free_for(const std::vector<Timeline>& lines, const std::vector<Step::Take>& takes, Tick from,
                             Tick latest) {
  Tick start = from;
  for (std::size_t agreed = 0, i = 0; agreed < takes.size(); i = (i + 1) % takes.size()) {
    const std::optional<Tick> free = lines[takes[i].line].first_fit(start, takes[i].occupied);
    if (!free || *free > latest) return std::nullopt;
    agreed = *free == start ? agreed + 1 : 1;
    start = *free;
  }
  return start;
}

Tick core_ticks(const std::vector<Step>& steps) {
  Tick sum = 0;
  for (const Step& step : steps) sum += step.on_cores ? step.length : 0;
  return sum;
}

// How long the lines that both take stay taken by the first.
Tick in_common(const Step& first, const Step& second) {
  Tick most = 0;
  for (const Step::Take& take : first.takes) {
    const bool shared = std::any_of(second.takes.begin(), second.takes.end(),
                                    [&](const Step::Take& other) { return other.line == take.line; });
    if (shared) most = std::max(most, take.occupied);
  }
  return most;
}

std::vector<std::int64_t> rates_of(const Choices& choices) {
  std::vector<std::int64_t> rates;
  for (const Choice& choice : choices) rates.push_back(choice.rate);
  return rates;
}

}  // namespace

Table::Table(const Problem& problem, const Choices& choices)
    : problem_(&problem),
      choices_(choices),
      clock_{problem.hyperperiod,
             problem.ticks != 0 ? problem.ticks : ticks_per_hyperperiod(problem.hyperperiod, rates_of(choices))},
      clock_error_(clock_.ticks_up(problem.board.clock_error)),
      lines_(problem.board.cores.size() + problem.board.units.size() + problem.mutexes.size(), Timeline(clock_.ticks)),
      load_(problem.board.cores.size(), 0),
      placements_(problem.stages.size()) {
  // What bears nothing beside it asks for the clock error on both sides, so everybody leaves it behind.
  const bool alone = std::any_of(choices.begin(), choices.end(), [](const Choice& choice) {
    return choice.budget.interference == Interference::kNone;
  });
  if (alone) behind_ = clock_error_;
  for (const Core& core : problem.board.cores) {
    allowed_.push_back(static_cast<Tick>(std::floor(static_cast<double>(clock_.ticks) * (1.0 - idle_share(core)))));
  }
  if (problem.phase_lock) {
    // A boundary that comes early by the whole gap still leaves the clock error between two timelines.
    const Tick gap = clock_.ticks_up(problem.phase_lock->gap + problem.board.clock_error);
    if (gap > 0) {
      for (Timeline& line : lines_) line.insert(clock_.ticks - gap, gap, kNobody);
    }
  }
}

std::vector<Step> Table::steps(std::size_t stage, const std::vector<std::uint32_t>& cores) const {
  Duration wakeup;
  Duration publish;
  for (const std::uint32_t core : cores) {
    wakeup = std::max(wakeup, problem_->board.cores[core].wakeup_window);
    publish = std::max(publish, problem_->board.cores[core].publish_window);
  }
  const Budget& budget = choices_[stage].budget;
  const std::size_t all_cores = problem_->board.cores.size();
  const std::size_t all_units = problem_->board.units.size();
  const std::vector<Segment> segments = segments_of(budget);
  // Wherever a slot begins: where ticks are no whole nanoseconds, rounding its start up may cost it one.
  const Duration rounding{problem_->hyperperiod.ns % clock_.ticks == 0 ? 0 : 1};
  std::vector<Step> out;
  Tick offset = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    Step step;
    step.offset = offset;
    step.on_cores = !segment.unit;
    step.length = clock_.ticks_up(wakeup + segment.time + (i + 1 == segments.size() ? publish : Duration{}) + rounding);
    if (segment.unit) {
      step.takes.push_back(
          {all_cores + *segment.unit, step.length + clock_.ticks_up(segment.guard + problem_->board.clock_error)});
    } else {
      for (const std::uint32_t core : cores) step.takes.push_back({core, occupied(stage, step.length, core)});
    }
    for (const std::uint32_t mutex : segment.mutexes) {
      step.takes.push_back({all_cores + all_units + mutex, step.length + clock_error_});
    }
    // What may not run beside the job stays empty while it runs.
    if (budget.interference == Interference::kNone) {
      for (std::size_t core = 0; core < all_cores; ++core) {
        const bool own = std::any_of(step.takes.begin(), step.takes.end(),
                                     [&](const Step::Take& take) { return take.line == core; });
        if (!own) step.takes.push_back({core, step.length + clock_error_});
      }
    }
    if (budget.interference != Interference::kAny) {
      for (std::size_t unit = 0; unit < all_units; ++unit) {
        if (segment.unit != unit) step.takes.push_back({all_cores + unit, step.length + clock_error_});
      }
    }
    out.push_back(std::move(step));
    offset += out.back().length + (cores.size() > 1 ? clock_error_ : 0);
  }
  return out;
}

Tick Table::length(std::size_t stage, const std::vector<std::uint32_t>& cores) const {
  const std::vector<Step> all = steps(stage, cores);
  return all.back().offset + all.back().length;
}

bool Table::one_segment(std::size_t stage) const { return choices_[stage].budget.segments.size() <= 1; }

std::optional<std::size_t> Table::arena_line(std::size_t stage) const {
  const std::optional<std::uint32_t>& mutex = problem_->stages[stage].variants[choices_[stage].variant].arena_mutex;
  if (!mutex) return std::nullopt;
  return problem_->board.cores.size() + problem_->board.units.size() + *mutex;
}

Tick Table::occupied(std::size_t stage, Tick length, std::size_t core) const {
  const double share = problem_->board.cores[core].reserve;
  constexpr double kNothing = 5e-7;  // of a tick: an error of the division
  const auto with_reserve = static_cast<Tick>(std::ceil(static_cast<double>(length) / (1.0 - share) - kNothing));
  return std::max(with_reserve, length + std::max(behind_, clock_.ticks_up(free_behind(*problem_, stage))));
}

std::optional<Placement> Table::fit(std::size_t stage, const std::vector<std::uint32_t>& cores, Tick anchor) const {
  for (std::int64_t quarters = 4; quarters >= 0; --quarters) {
    std::optional<Placement> placement = fit_spaced(stage, cores, anchor, period(stage) * quarters / 4);
    if (placement || choices_[stage].rate == 1) return placement;
  }
  return std::nullopt;
}

std::optional<Placement> Table::fit_spaced(std::size_t stage, const std::vector<std::uint32_t>& cores, Tick anchor,
                                           Tick distance) const {
  std::vector<Step> all = steps(stage, cores);
  const std::int64_t rate = choices_[stage].rate;
  const Tick busy = core_ticks(all);
  for (const std::uint32_t core : cores) {
    if (load_[core] + busy * rate > allowed_[core]) return std::nullopt;
  }
  if (!one_segment(stage)) return fit_segments(stage, cores, all, anchor, distance);
  Placement placement;
  placement.length = all.front().length;
  std::vector<Step::Take>& takes = all.front().takes;
  if (const std::optional<std::size_t> arena = arena_line(stage)) {
    takes.push_back({*arena, placement.length + clock_error_});
  }
  Tick longest = 0;
  for (const Step::Take& take : takes) longest = std::max(longest, take.occupied);
  Tick earliest = anchor;
  placement.starts.reserve(static_cast<std::size_t>(rate));
  for (std::int64_t k = 0; k < rate; ++k) {
    const Tick wanted = std::max(earliest, anchor + k * distance);
    Tick start = wanted;
    const std::optional<Tick> free = free_for(lines_, takes, start, wanted + clock_.ticks);
    if (!free) return std::nullopt;
    start = *free;
    placement.starts.push_back(start);
    earliest = start + longest;
  }
  if (earliest > placement.starts.front() + clock_.ticks) return std::nullopt;
  for (Tick& start : placement.starts) start = floor_mod(start, clock_.ticks);
  std::sort(placement.starts.begin(), placement.starts.end());
  placement.cores = cores;
  for (const Tick start : placement.starts) {
    placement.ends.push_back(start + placement.length);
    placement.start_ns.push_back(clock_.start_at(0, start).ns);
    placement.end_ns.push_back(clock_.end_at(0, start + placement.length).ns);
  }
  return placement;
}

// One job after another, segment by segment, on a copy of the lines: a job's own slots, and those of the stage's other
// jobs, may be in the way as well.
std::optional<Placement> Table::fit_segments(std::size_t stage, const std::vector<std::uint32_t>& cores,
                                             const std::vector<Step>& all, Tick anchor, Tick distance) const {
  std::vector<Timeline> lines = lines_;
  const auto owner = static_cast<std::uint32_t>(stage);
  const Tick crossing = cores.size() > 1 ? clock_error_ : 0;
  const std::optional<std::size_t> arena = arena_line(stage);
  struct Job {
    std::vector<Tick> starts;
    Tick end = 0;
  };
  std::vector<Job> jobs;
  Tick earliest = anchor;
  for (std::int64_t k = 0; k < choices_[stage].rate; ++k) {
    const Tick wanted = std::max(earliest, anchor + k * distance);
    const Tick latest = wanted + clock_.ticks;
    Job job;
    for (Tick from = wanted; job.starts.empty();) {
      job.starts.resize(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        Tick at = i == 0 ? from : job.starts[i - 1] + all[i - 1].length + crossing;
        for (std::size_t j = 0; j < i; ++j) at = std::max(at, job.starts[j] + in_common(all[j], all[i]));
        const std::optional<Tick> free = free_for(lines, all[i].takes, at, latest);
        if (!free) return std::nullopt;
        job.starts[i] = *free;
      }
      job.end = job.starts.back() + all.back().length;
      // Earlier segments need not run long before the one that waits: the later they latch, the younger the data.
      for (std::size_t i = all.size() - 1; i-- > 0;) {
        Tick late = job.starts[i + 1] - all[i].length - crossing;
        for (std::size_t j = i + 1; j < all.size(); ++j) {
          late = std::min(late, job.starts[j] - in_common(all[i], all[j]));
        }
        if (free_for(lines, all[i].takes, late, late)) job.starts[i] = late;
      }
      if (!arena) break;
      const std::optional<Tick> free =
          lines[*arena].first_fit(job.starts.front(), job.end - job.starts.front() + clock_error_);
      if (!free || *free > latest) return std::nullopt;
      if (*free == job.starts.front()) break;
      from = *free;
      job.starts.clear();
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const Step::Take& take : all[i].takes) {
        // A job that goes nearly round the circle may meet its own beginning.
        const std::optional<Tick> free = lines[take.line].first_fit(job.starts[i], take.occupied);
        if (!free || *free != job.starts[i]) return std::nullopt;
        lines[take.line].insert(job.starts[i], take.occupied, owner);
      }
    }
    if (arena) lines[*arena].insert(job.starts.front(), job.end - job.starts.front() + clock_error_, owner);
    earliest = job.end;
    jobs.push_back(std::move(job));
  }
  if (earliest > jobs.front().starts.front() + clock_.ticks) return std::nullopt;
  std::sort(jobs.begin(), jobs.end(), [&](const Job& a, const Job& b) {
    return floor_mod(a.starts.front(), clock_.ticks) < floor_mod(b.starts.front(), clock_.ticks);
  });
  Placement placement;
  placement.cores = cores;
  placement.length = all.back().offset + all.back().length;
  for (const Job& job : jobs) {
    const Tick start = floor_mod(job.starts.front(), clock_.ticks);
    const Tick end = start + job.end - job.starts.front();
    placement.starts.push_back(start);
    placement.ends.push_back(end);
    placement.start_ns.push_back(clock_.start_at(0, start).ns);
    placement.end_ns.push_back(clock_.end_at(0, end).ns);
    placement.offsets.emplace_back();
    for (const Tick segment : job.starts) placement.offsets.back().push_back(segment - job.starts.front());
  }
  return placement;
}

void Table::place(std::size_t stage, Placement placement) {
  const std::vector<Step> all = steps(stage, placement.cores);
  const std::optional<std::size_t> arena = arena_line(stage);
  const auto owner = static_cast<std::uint32_t>(stage);
  for (std::size_t job = 0; job < placement.starts.size(); ++job) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const Step::Take& take : all[i].takes) {
        lines_[take.line].insert(placement.segment_start(job, i), take.occupied, owner);
      }
    }
    if (arena) {
      lines_[*arena].insert(placement.starts[job], placement.ends[job] - placement.starts[job] + clock_error_, owner);
    }
  }
  for (const std::uint32_t core : placement.cores) load_[core] += core_ticks(all) * choices_[stage].rate;
  placements_[stage] = std::move(placement);
}

void Table::remove(std::size_t stage) {
  Placement& placement = placements_[stage];
  if (!placement.placed()) return;
  const std::vector<Step> all = steps(stage, placement.cores);
  const Tick busy = core_ticks(all);
  const auto owner = static_cast<std::uint32_t>(stage);
  for (const Step& step : all) {
    for (const Step::Take& take : step.takes) lines_[take.line].erase(owner);
  }
  if (const std::optional<std::size_t> arena = arena_line(stage)) lines_[*arena].erase(owner);
  for (const std::uint32_t core : placement.cores) load_[core] -= busy * choices_[stage].rate;
  placement = {};
}

Tick Table::crossing(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores) const {
  const bool one_timeline = consumer_cores.size() == 1 && producer.cores.back() == consumer_cores.front();
  return one_timeline ? 0 : clock_error_;
}

std::int64_t Table::newest(const Placement& producer, const std::vector<std::uint32_t>& consumer_cores,
                           Tick start) const {
  const auto jobs = static_cast<std::int64_t>(producer.ends.size());
  // A job is there when its end + crossing <= the consumer's start.
  const Tick latest_end = start - crossing(producer, consumer_cores);
  const std::int64_t turn = floor_div(latest_end - producer.ends.front(), clock_.ticks);
  const Tick rest = latest_end - turn * clock_.ticks;
  const auto after = std::upper_bound(producer.ends.begin(), producer.ends.end(), rest);
  return turn * jobs + (after - producer.ends.begin()) - 1;
}

bool Table::memory_enough() const {
  if (problem_->board.memory == 0) return true;
  std::int64_t resident = 0;
  std::vector<std::pair<Tick, std::int64_t>> changes;  // what is given back comes first
  for (std::size_t stage = 0; stage < placements_.size(); ++stage) {
    const Footprint memory = footprint(problem_->stages[stage], choices_[stage].variant);
    resident += memory.resident;
    for (std::size_t job = 0; job < placements_[stage].starts.size(); ++job) {
      for (const Tick turn : {Tick{0}, clock_.ticks}) {
        changes.emplace_back(placements_[stage].starts[job] + turn, memory.arena);
        changes.emplace_back(placements_[stage].ends[job] + turn, -memory.arena);
      }
    }
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [when, by] : changes) most = std::max(most, now += by);
  return resident + most <= problem_->board.memory;
}

bool Table::idle_enough() const {
  const double window = 1e9 * static_cast<double>(clock_.ticks) / static_cast<double>(clock_.hyperperiod.ns);
  const auto second = static_cast<Tick>(std::floor(window));
  const std::int64_t turns = second / clock_.ticks;
  const Tick rest = second - turns * clock_.ticks;
  for (std::size_t core = 0; core < load_.size(); ++core) {
    std::vector<std::pair<Tick, Tick>> busy;  // several turns, so that a window may wrap
    for (std::size_t stage = 0; stage < placements_.size(); ++stage) {
      const Placement& placement = placements_[stage];
      if (std::find(placement.cores.begin(), placement.cores.end(), core) == placement.cores.end()) continue;
      const std::vector<Step> all = steps(stage, placement.cores);
      for (std::size_t job = 0; job < placement.starts.size(); ++job) {
        for (std::size_t i = 0; i < all.size(); ++i) {
          if (!all[i].on_cores) continue;
          // A later segment may lie a whole turn behind its job's start.
          const Tick start = floor_mod(placement.segment_start(job, i), clock_.ticks);
          for (Tick turn = -1; turn <= 1; ++turn) {
            busy.emplace_back(start + turn * clock_.ticks, start + turn * clock_.ticks + all[i].length);
          }
        }
      }
    }
    Tick worst = 0;  // the fullest window of `rest` ticks begins at the start of a slot or ends at an end
    for (const auto& [start, end] : busy) {
      for (const Tick from : {start, end - rest}) {
        if (from < 0 || from >= clock_.ticks) continue;
        Tick sum = 0;
        for (const auto& [other_start, other_end] : busy) {
          sum += std::max<Tick>(0, std::min(other_end, from + rest) - std::max(other_start, from));
        }
        worst = std::max(worst, sum);
      }
    }
    const auto full = static_cast<double>(turns * load_[core] + worst);
    if (full > window * (1.0 - kLeastIdleShare)) return false;
  }
  return true;
}

}  // namespace takt::sched
