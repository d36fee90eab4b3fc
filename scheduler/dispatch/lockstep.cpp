#include "scheduler/dispatch/lockstep.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace takt::sched {

Sequencer::Sequencer(const RunPlan& plan, Boundary& boundary, const Reproduce& reproduce, Duration patience)
    : plan_(plan), boundary_(boundary), reproduce_(reproduce), patience_(patience) {
  for (const ModePlan& mode : plan.modes) starts_.push_back(starts_of(mode.schedule));
  started_.reserve(2 * plan.slots());
}

void Sequencer::start(Job job) {
  StageRun& stage = plan_.run_of(job);
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

// In short waits, each of which counts in full however long it took: a process that was stopped has not waited.
bool Sequencer::comes_back(StageRun& stage) const {
  constexpr Duration kWait = milliseconds(100);
  for (Duration waited; waited < patience_; waited += kWait) {
    if (stage.await_complete(host_now() + kWait)) return true;
  }
  return false;
}

void Sequencer::conclude(const Job& job) {
  StageRun& stage = plan_.run_of(job);
  end_ = std::max(end_, job.slot_end);
  if (stage.running() != tag_of(job)) return;  // skipped or refused
  if (!comes_back(stage)) {
    for (int part = 0; part < static_cast<int>(stage.cores().size()); ++part) {
      if (stage.busy(part)) stage.isolate(part);
    }
    return;
  }
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
  if (seen != nullptr) record.flags |= seen->flags & (kFlagIsolated | kFlagStuck);
  if (seen != nullptr && seen->reason == Reason::kDevice) record.reason = seen->reason;  // not this run's device
  plan_.sink(stage.publisher(), record);
  stage.free();
}

void Sequencer::conclude_until(TableTime now) {
  std::size_t over = 0;
  while (over < started_.size() && started_[over].slot_end <= now) conclude(started_[over++]);
  started_.erase(started_.begin(), started_.begin() + static_cast<std::ptrdiff_t>(over));
}

void Sequencer::run() {
  for (std::uint64_t h = 0; boundary_.may_come(h); ++h) {
    if (h > 0) conclude_until(boundary_.decision_at(h));
    if (!boundary_.enter(h)) break;
    const Turn turn = boundary_.turn(h);
    for (const Start& at : starts_[turn.mode]) {
      const Job job = plan_.job_of(at.slot, turn);
      conclude_until(job.nominal_start);
      start(job);
      const auto later = [](const Job& a, const Job& b) {
        return std::tie(a.slot_end, a.slot) < std::tie(b.slot_end, b.slot);
      };
      started_.insert(std::upper_bound(started_.begin(), started_.end(), job, later), job);
    }
  }
  conclude_until({std::numeric_limits<std::int64_t>::max()});
}

}  // namespace takt::sched
