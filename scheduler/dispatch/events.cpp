#include "scheduler/dispatch/events.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace takt::sched {
namespace {

template <class Wanted>
std::vector<Start> starts(const Schedule& schedule, Wanted wanted) {
  std::vector<Start> out;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    if (schedule.slots[i].segment == 0 && wanted(schedule.slots[i]))
      out.push_back({schedule.slots[i].start, static_cast<std::uint32_t>(i)});
  }
  std::sort(out.begin(), out.end(),
            [](const Start& a, const Start& b) { return std::tie(a.tick, a.slot) < std::tie(b.tick, b.slot); });
  return out;
}

}  // namespace

std::vector<Start> starts_on(const Schedule& schedule, std::uint32_t core) {
  return starts(schedule, [core](const Slot& slot) {
    return std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end();
  });
}

std::vector<Start> starts_of(const Schedule& schedule) {
  return starts(schedule, [](const Slot&) { return true; });
}

std::vector<std::vector<std::uint32_t>> segments_by_slot(const Schedule& schedule) {
  const auto job = [&schedule](std::size_t i) { return std::pair(schedule.slots[i].stage, schedule.slots[i].job); };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> first;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    if (schedule.slots[i].segment == 0) first[job(i)] = i;
  }
  std::vector<std::vector<std::uint32_t>> out(schedule.slots.size());
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    if (const auto found = first.find(job(i)); found != first.end()) {
      out[found->second].push_back(static_cast<std::uint32_t>(i));
    }
  }
  for (std::vector<std::uint32_t>& slots : out) {
    std::sort(slots.begin(), slots.end(), [&schedule](std::uint32_t a, std::uint32_t b) {
      return schedule.slots[a].segment < schedule.slots[b].segment;
    });
  }
  return out;
}

Tick publish_tick(const Problem& problem, const Schedule& schedule, const Slot& last) {
  const Tick window = schedule.clock.ticks_up(problem.board.cores[last.cores.back()].publish_window);
  return std::max(last.end - window, last.start + 1);
}

void Agenda::add(const Entry& entry) {
  const auto behind = [](TableTime instant, const Entry& other) { return instant < other.instant; };
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry.instant, behind), entry);
}

void Agenda::pass(TableTime now) {
  std::erase_if(entries_, [now](const Entry& entry) { return entry.instant <= now; });
}

void Agenda::drop(const StageRun* stage, std::uint32_t tag) {
  std::erase_if(entries_, [=](const Entry& entry) { return entry.stage == stage && entry.tag == tag; });
}

}  // namespace takt::sched
