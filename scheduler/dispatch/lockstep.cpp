#include "scheduler/dispatch/lockstep.h"

namespace takt::sched {
namespace {

void start(const RunPlan& plan, const Job& job) {
  StageRun& stage = *plan.stages[job.stage];
  if (const JobRecord* final_record = stage.start(job, job.slot_end, Duration{})) {
    plan.sink(stage.publisher(), *final_record);
    return;
  }
  for (std::size_t part = 0; part < stage.cores().size(); ++part) stage.release(static_cast<int>(part));
}

void conclude(const RunPlan& plan, const Job& job) {
  StageRun& stage = *plan.stages[job.stage];
  if (stage.running() != tag_of(job)) return;  // skipped or refused
  stage.await_complete();
  JobRecord& record = stage.record();
  record.actual_start = job.nominal_start.ns;
  record.completion = (job.nominal_start + stage.budget()).ns;
  stage.publish();
  if (record.published != 0) record.publication = job.slot_end.ns;
  stage.close();
  plan.sink(stage.publisher(), record);
  stage.free();
}

}  // namespace

void run_lockstep(const RunPlan& plan, Boundary& boundary, std::uint64_t hyperperiods) {
  const std::vector<Event> events = events_of_table(plan.schedule);
  const std::uint64_t tail = largest_shift(events);
  std::uint64_t limit = hyperperiods;
  std::uint64_t entered = 0;
  for (std::uint64_t h = 0; h < limit || h - limit < tail; ++h) {
    for (const Event& event : events) {
      if (event.shift > h || h - event.shift >= limit) continue;
      if (event.kind == EventKind::kSlotEnd) {
        conclude(plan, plan.job_of(event.slot, h - event.shift));
        continue;
      }
      if (entered == h) {
        if (!boundary.enter(h)) {
          limit = h;
          continue;
        }
        ++entered;
      }
      start(plan, plan.job_of(event.slot, h));
    }
  }
}

}  // namespace takt::sched
