#include "scheduler/dispatch/lockstep.h"

namespace takt::sched {

void Sequencer::start(Job job) {
  StageRun& stage = *plan_.stages[job.stage];
  Gang::Limits limits;
  if (reproduce_) {
    job.seen = reproduce_(job.stage, job.number);
    if (job.seen == nullptr) return;
    if (job.seen->job_class == JobClass::kSkipped) {
      // One for want of an output chunk had latched its inputs; what it let go is let go again by later latches.
      plan_.sink(stage.publisher(), *job.seen);
      return;
    }
    limits.abort_at = job.seen->aborted_at;
  }
  if (const JobRecord* final_record = stage.start(job, job.slot_end, Duration{}, limits)) {
    plan_.sink(stage.publisher(), *final_record);
    return;
  }
  for (std::size_t part = 0; part < stage.cores().size(); ++part) stage.release(static_cast<int>(part));
}

void Sequencer::conclude(const Job& job) {
  StageRun& stage = *plan_.stages[job.stage];
  if (stage.running() != tag_of(job)) return;  // skipped or refused
  stage.await_complete();
  JobRecord& record = stage.record();
  const JobRecord* const seen = stage.job().seen;
  record.actual_start = seen != nullptr ? seen->actual_start : job.nominal_start.ns;
  record.completion = seen != nullptr ? seen->completion : (job.nominal_start + stage.budget()).ns;
  if (seen != nullptr ? seen->published != 0 : !stage.aborted()) {
    stage.publish();
    if (record.published != 0) record.publication = seen != nullptr ? seen->publication : job.slot_end.ns;
  } else {
    stage.discard();
  }
  stage.close();
  if (seen != nullptr) record.flags |= seen->flags & kFlagIsolated;
  plan_.sink(stage.publisher(), record);
  stage.free();
}

void Sequencer::run() {
  const std::uint64_t tail = largest_shift(events_);
  std::uint64_t limit = hyperperiods_;
  std::uint64_t entered = 0;
  for (std::uint64_t h = 0; h < limit || h - limit < tail; ++h) {
    Duration offset;
    if (boundary_.corrects() && h < limit) {
      if (!boundary_.enter(h)) break;
      offset = boundary_.offset(h);
      ++entered;
    }
    for (const Event& event : events_) {
      if (event.shift > h || h - event.shift >= limit) continue;
      if (event.kind == EventKind::kSlotEnd) {
        conclude(plan_.job_of(event.slot, h - event.shift, offset));
        continue;
      }
      if (entered == h) {
        if (!boundary_.enter(h)) {
          limit = h;
          continue;
        }
        ++entered;
      }
      start(plan_.job_of(event.slot, h, offset));
    }
  }
}

}  // namespace takt::sched
