// What both clocks share: the schedule being run, its stages in flight, and where records go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "scheduler/dispatch/events.h"
#include "scheduler/dispatch/stage_run.h"
#include "scheduler/model/model.h"

namespace takt::sched {

using RecordSink = std::function<void(std::size_t core, const JobRecord&)>;

struct RunPlan {
  const Problem& problem;
  const Schedule& schedule;
  const RecordSink& sink;
  std::vector<std::unique_ptr<ArenaToken>> arenas;  // by mutex
  std::vector<std::unique_ptr<StageRun>> stages;    // by stage; null for a stage without slots
  std::vector<Tick> publish_ticks;                  // by slot

  [[nodiscard]] StageRun& stage_of(const Event& event) const { return *stages[schedule.slots[event.slot].stage]; }

  // The slot's job of hyperperiod `hyperperiod`, which begins `offset` later than without corrections of the phase.
  [[nodiscard]] Job job_of(std::uint32_t slot, std::uint64_t hyperperiod, Duration offset = {}) const {
    const Slot& s = schedule.slots[slot];
    const auto rate = static_cast<std::uint64_t>(schedule.choices[s.stage].rate);
    return {.slot = slot,
            .stage = s.stage,
            .number = hyperperiod * rate + s.job,
            .hyperperiod = hyperperiod,
            .nominal_start = schedule.clock.start_at(hyperperiod, s.start) + offset,
            .slot_end = schedule.clock.end_at(hyperperiod, s.end) + offset};
  }
  [[nodiscard]] TableTime publish_at(const Job& job) const {
    const Duration into_slot = schedule.clock.start_at(job.hyperperiod, publish_ticks[job.slot]) -
                               schedule.clock.start_at(job.hyperperiod, schedule.slots[job.slot].start);
    return job.nominal_start + into_slot;
  }
  // When the boundary before hyperperiod h is decided, on a locked clock: where the gap before it begins.
  [[nodiscard]] TableTime decision_at(std::uint64_t h) const {
    return schedule.clock.start_at(h, 0) - problem.phase_lock->gap;
  }
};

}  // namespace takt::sched
