#include "scheduler/dispatch/lockstep.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace takt::sched {

Sequencer::Sequencer(const RunPlan& plan, Boundary& boundary, const Reproduce& reproduce, Duration patience)
    : plan_(plan), boundary_(boundary), reproduce_(reproduce), patience_(patience) {
  for (const ModePlan& mode : plan.modes) starts_.push_back(starts_of(mode.schedule));
  due_.reserve(4 * plan.slots());
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
  for (; job.segment < job.segments.size(); ++job.segment) {
    const SegmentSlot& slot = job.segments[job.segment];
    if (job.segment > 0) add(job.nominal_start + slot.start, true, job);
    add(job.nominal_start + slot.end, false, job);
  }
}

void Sequencer::add(TableTime at, bool begins, const Job& job) {
  const auto later = [](const Due& a, const Due& b) {
    return std::tie(a.at, a.begins, a.job.slot) < std::tie(b.at, b.begins, b.job.slot);
  };
  const Due due{at, begins, job};
  due_.insert(std::upper_bound(due_.begin(), due_.end(), due, later), due);
}

// In short waits, each of which counts in full however long it took: a process that was stopped has not waited.
bool Sequencer::comes_back(StageRun& stage) const {
  constexpr Duration kWait = milliseconds(100);
  for (Duration waited; waited < patience_; waited += kWait) {
    if (stage.await_end(host_now() + kWait)) return true;
  }
  return false;
}

void Sequencer::begin_segment(const Job& job) {
  StageRun& stage = plan_.run_of(job);
  if (stage.running() != tag_of(job) || stage.given_up()) return;
  Gang::Limits limits;
  if (job.seen != nullptr) limits.abort_at = job.seen->aborted_at;
  stage.begin_next({.latest = {std::numeric_limits<std::int64_t>::max()}, .patience = {}, .limits = limits});
}

void Sequencer::end_segment(const Job& job) {
  StageRun& stage = plan_.run_of(job);
  if (stage.running() != tag_of(job)) return;
  if (stage.segment() == job.segment && !stage.noted()) {
    if (stage.given_up()) return;  // it did not come back
    if (!comes_back(stage)) {
      stage.overdue(job.slot_end, patience_);
      for (int part = 0; part < static_cast<int>(stage.cores().size()); ++part) {
        if (stage.busy(part)) stage.isolate(part);
      }
      return stage.give_up();
    }
    const TableTime start =
        job.segments.empty() ? job.nominal_start : job.nominal_start + job.segments[job.segment].start;
    stage.note(start, start + stage.segment_budget());
  }
  if (job.last_segment()) conclude(stage);
}

void Sequencer::conclude(StageRun& stage) {
  if (!stage.over()) return;
  const Job& job = stage.job();
  JobRecord& record = stage.record();
  const JobRecord* const seen = job.seen;
  if (seen != nullptr) {
    record.actual_start = seen->actual_start;
    record.completion = seen->completion;
    std::copy_n(seen->segments, record.segment_count, record.segments);
  }
  if (seen != nullptr ? seen->published != 0 : !stage.given_up() && !stage.aborted()) {
    stage.publish();
    if (record.published != 0) record.publication = seen != nullptr ? seen->publication : job.slot_end.ns;
  } else {
    stage.discard();
  }
  // What this run's devices, units and dispatchers do not do.
  if (seen != nullptr && (seen->reason == Reason::kDevice || seen->reason == Reason::kUnit ||
                          seen->reason == Reason::kArena || seen->reason == Reason::kSlotOver)) {
    record.reason = seen->reason;
  }
  stage.close();
  if (seen != nullptr) record.flags |= seen->flags & (kFlagIsolated | kFlagStuck);
  plan_.sink(stage.publisher(), record);
  stage.free();
}

void Sequencer::come_to(TableTime now) {
  std::size_t over = 0;
  for (; over < due_.size() && due_[over].at <= now; ++over) {
    due_[over].begins ? begin_segment(due_[over].job) : end_segment(due_[over].job);
  }
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(over));
}

void Sequencer::run() {
  for (std::uint64_t h = 0; boundary_.may_come(h); ++h) {
    if (h > 0) come_to(boundary_.decision_at(h));
    if (!boundary_.enter(h)) break;
    const Turn turn = boundary_.turn(h);
    for (const Start& at : starts_[turn.mode]) {
      const Job job = plan_.job_of(at.slot, turn);
      come_to(job.nominal_start);
      end_ = std::max(end_, job.slot_end);
      start(job);
    }
  }
  come_to({std::numeric_limits<std::int64_t>::max()});
}

}  // namespace takt::sched
