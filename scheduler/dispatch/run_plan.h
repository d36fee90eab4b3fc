// What both clocks share: the tables being run, their stages in flight, and where records go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/events.h"
#include "scheduler/dispatch/stage_run.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

using RecordSink = std::function<void(std::size_t core, const JobRecord&)>;

// One mode of a run.
struct ModePlan {
  const Schedule& schedule;
  std::vector<StageRun*> stages;                         // by stage; null for one that the mode does not run
  std::vector<std::vector<SegmentSlot>> segments;        // by slot: of the job that begins there
  std::vector<Duration> publish_at;                      // by slot: of that job, from its nominal start
  std::vector<std::vector<Binding>> reads;               // by slot: stage inputs of its job
  const std::vector<std::vector<std::uint8_t>>& inputs;  // ModeTable::reads
};

struct RunPlan {
  const Problem& problem;
  const Boundary& boundary;
  const RecordSink& sink;
  std::vector<std::unique_ptr<Token>> mutexes;  // arenas among them
  std::vector<std::unique_ptr<Token>> units;
  std::vector<std::unique_ptr<StageState>> states;  // by stage
  std::vector<std::unique_ptr<StageRun>> runs;      // of every stage one for each home that it has in some mode
  std::vector<ModePlan> modes;

  // Of all modes.
  [[nodiscard]] std::size_t slots() const {
    std::size_t out = 0;
    for (const ModePlan& mode : modes) out += mode.schedule.slots.size();
    return out;
  }
  [[nodiscard]] StageRun& run_of(const Job& job) const { return *modes[job.mode].stages[job.stage]; }

  [[nodiscard]] TableTime start_at(const Turn& turn, Tick tick) const {
    return turn.begin + (modes[turn.mode].schedule.clock.start_at(0, tick) - TableTime{0});
  }
  // The slot's job in an entered hyperperiod.
  [[nodiscard]] Job job_of(std::uint32_t slot, const Turn& turn) const;
  [[nodiscard]] TableTime publish_at(const Job& job) const {
    return job.nominal_start + modes[job.mode].publish_at[job.slot];
  }
};

}  // namespace takt::sched
