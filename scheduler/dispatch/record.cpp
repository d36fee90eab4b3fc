#include "scheduler/dispatch/record.h"

namespace takt::sched {

const char* name_of(JobClass job_class) {
  switch (job_class) {
    case JobClass::kSkipped: return "skipped";
    case JobClass::kMissing: return "missing";
    case JobClass::kLateStart: return "late start";
    case JobClass::kOverrun: return "overrun";
    case JobClass::kLate: return "late";
    case JobClass::kOk: return "ok";
  }
  return "unknown";
}

const char* name_of(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "none";
    case Reason::kPreviousRunning: return "previous_running";
    case Reason::kNoCredit: return "no_credit";
    case Reason::kFeederLate: return "feeder_late";
    case Reason::kNoSample: return "no_sample";
    case Reason::kProducerNothing: return "producer_nothing";
    case Reason::kBadFrame: return "bad_frame";
    case Reason::kFill: return "fill";
    case Reason::kArena: return "arena";
    case Reason::kSkipNext: return "skip_next";
    case Reason::kDevice: return "device";
    case Reason::kUnit: return "unit";
    case Reason::kSlotOver: return "slot_over";
  }
  return "unknown";
}

Duration time_used(const JobRecord& record) {
  if (record.segment_count == 0) return {record.completion - record.actual_start};
  Duration out;
  for (std::uint32_t i = 0; i < record.segment_count; ++i) {
    const SegmentRecord& segment = record.segments[i];
    if (segment.start != kNever && segment.end != kNever) out += Duration{segment.end - segment.start};
  }
  return out;
}

void classify(JobRecord& record, const JobLimits& limits) {
  if (record.reason == Reason::kSlotOver) record.flags |= kFlagLateStart;
  if (record.actual_start == kNever) {
    const bool skipped = record.reason == Reason::kNone || record.reason == Reason::kPreviousRunning ||
                         record.reason == Reason::kNoCredit || record.reason == Reason::kArena ||
                         record.reason == Reason::kSkipNext || record.reason == Reason::kDevice ||
                         record.reason == Reason::kSlotOver;
    record.job_class = skipped ? JobClass::kSkipped : JobClass::kMissing;
    return;
  }
  if (record.actual_start - record.nominal_start > limits.wakeup_window.ns) record.flags |= kFlagLateStart;
  // One that was given up for a late wake-up may have waited, at a barrier, for the part that was not begun.
  const bool aborted = (record.flags & kFlagAborted) != 0;
  const bool longer = record.segment_count == 0 && record.completion - record.actual_start > limits.budget.ns;
  if ((aborted || longer) && record.reason != Reason::kSlotOver) record.flags |= kFlagOverrun;
  const bool published_late = record.publication != kNever && record.publication > record.slot_end;
  if (published_late || (record.flags & kFlagDiscarded) != 0) record.flags |= kFlagLate;

  if ((record.flags & kFlagLateStart) != 0) {
    record.job_class = JobClass::kLateStart;
  } else if ((record.flags & kFlagOverrun) != 0) {
    record.job_class = JobClass::kOverrun;
  } else if ((record.flags & kFlagLate) != 0) {
    record.job_class = JobClass::kLate;
  } else {
    record.job_class = JobClass::kOk;
  }
}

}  // namespace takt::sched
