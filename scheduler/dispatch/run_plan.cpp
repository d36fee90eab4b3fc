#include "scheduler/dispatch/run_plan.h"

namespace takt::sched {

Job RunPlan::job_of(std::uint32_t slot, const Turn& turn) const {
  const ModePlan& mode = modes[turn.mode];
  const Slot& s = mode.schedule.slots[slot];
  const auto rate = [&](std::uint32_t stage) { return mode.schedule.choices[stage].rate; };
  const auto in_mode = static_cast<std::int64_t>(turn.in_mode);
  const auto before = [&](std::uint32_t stage) { return static_cast<std::int64_t>(boundary.jobs_before(turn, stage)); };
  Job job;
  job.slot = slot;
  job.stage = s.stage;
  job.number = static_cast<std::uint64_t>(before(s.stage) + in_mode * rate(s.stage)) + s.job;
  job.hyperperiod = turn.number;
  job.nominal_start = start_at(turn, s.start);
  job.segments = mode.segments[slot];
  job.slot_end = job.nominal_start + job.segments.back().end;
  job.mode = turn.mode;
  const std::vector<std::uint8_t>& inputs = mode.inputs[s.stage];
  for (std::size_t i = 0; i < inputs.size() && i < kMaxInputs; ++i) {
    if (inputs[i] == 0) job.bound[i] = Job::kNotRead;
  }
  for (const Binding& read : mode.reads[slot]) {
    if (read.input >= kMaxInputs) continue;
    const std::uint32_t producer = read.producer_stage;
    const std::int64_t in_stay =
        (in_mode + read.producer_shift) * rate(producer) + static_cast<std::int64_t>(read.producer_job);
    if (in_stay >= 0) {
      job.bound[read.input] = before(producer) + in_stay;
      continue;
    }
    // Of the mode before: the newest that is there, seen from another timeline by its clock error.
    const bool one_timeline = s.cores.size() == 1 && mode.stages[producer]->publisher() == s.cores.front();
    const Duration error = one_timeline ? Duration{} : problem.board.clock_error;
    job.bound[read.input] = boundary.newest_before(turn, producer, job.nominal_start - error);
  }
  return job;
}

}  // namespace takt::sched
