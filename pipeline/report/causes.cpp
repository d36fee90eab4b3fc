#include "pipeline/report/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;
using sched::kMaxInputs;
using sched::kNever;
using sched::Reason;

constexpr std::uint8_t kInputHeld = 2, kInputMissing = 3;

std::string job_name(const RunData& run, std::uint32_t stage, std::uint64_t job) {
  return run.problem.stages[stage].name + "#" + std::to_string(job);
}

const std::vector<std::uint32_t>* cores_of(const RunData& run, const JobRecord& record) {
  const std::vector<sched::Slot>& slots = run.table_of(record).slots;
  return record.slot < slots.size() ? &slots[record.slot].cores : nullptr;
}

// Calls `take` for each segment of the job that began: its slot, and when that begins. Nothing for a job in one piece.
template <class Take>
void for_segments(const RunData& run, const JobRecord& record, const Take& take) {
  const sched::Schedule& table = run.table_of(record);
  if (record.slot >= table.slots.size()) return;
  const sched::Slot& first = table.slots[record.slot];
  for (const sched::Slot& slot : table.slots) {
    if (slot.stage != first.stage || slot.job != first.job || slot.segment >= record.segment_count) continue;
    if (record.segments[slot.segment].start == kNever) continue;
    const Duration into = table.clock.start_at(0, slot.start) - table.clock.start_at(0, first.start);
    take(slot, record.nominal_start + into.ns);
  }
}

// What of a job began latest after the start of its slot: all of it, or one of its segments. Of one that did not begin,
// where it was to.
struct LatestPart {
  std::int64_t nominal = kNever;
  std::uint32_t segment = 0;
  bool on_unit = false;
  Duration late;
};
LatestPart latest_part(const RunData& run, const JobRecord& record) {
  const std::int64_t start = std::max(record.actual_start, record.nominal_start);  // kNever is the least
  LatestPart out{record.nominal_start, 0, false, {start - record.nominal_start}};
  for_segments(run, record, [&](const sched::Slot& slot, std::int64_t nominal) {
    const Duration late{record.segments[slot.segment].start - nominal};
    if (late > out.late) out = {nominal, slot.segment, slot.unit.has_value(), late};
  });
  return out;
}

// What of the job was to begin before `at` and computed on its cores beyond that; kNever: nothing did.
struct OnCores {
  std::int64_t until = kNever;
  std::int64_t slot_end = kNever;  // of that part
  std::int64_t nominal = kNever;   // its start
  std::int64_t start = kNever;
};
OnCores on_cores_beyond(const RunData& run, const JobRecord& record, std::int64_t at) {
  if (record.segment_count == 0) {
    const bool beyond = record.nominal_start < at && record.completion > at;
    return beyond ? OnCores{record.completion, record.slot_end, record.nominal_start, record.actual_start} : OnCores{};
  }
  OnCores out;
  for_segments(run, record, [&](const sched::Slot& slot, std::int64_t nominal) {
    const std::int64_t end = record.segments[slot.segment].end;
    if (slot.unit || nominal >= at || end <= at || end <= out.until) return;
    const sched::TickClock& clock = run.table_of(record).clock;
    out = {end, nominal + (clock.end_at(0, slot.end) - clock.start_at(0, slot.start)).ns, nominal,
           record.segments[slot.segment].start};
  });
  return out;
}

// Jobs that had one of the cores within [from, to), until they ended or lost it, in the order of their starts. Those of
// whoever lost it before, which run in the same gaps, are not among them.
struct CoreUse {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
std::vector<CoreUse> uses_between(const RunData& run, const RecordIndex& index, const std::vector<std::uint32_t>& cores,
                                  std::int64_t from, std::int64_t to) {
  std::vector<CoreUse> out;
  for (std::uint32_t stage = 0; stage < run.problem.stages.size(); ++stage) {
    for (const JobRecord* const other : index.stage(stage)) {
      const auto* others = cores_of(run, *other);
      if (other->actual_start == kNever || other->completion == kNever || others == nullptr) continue;
      const std::int64_t over = std::min(other->completion, other->slot_end + run.problem.stages[stage].slack.ns);
      if (other->actual_start < from || other->actual_start >= to) continue;
      if (std::none_of(cores.begin(), cores.end(), [&](std::uint32_t core) {
            return std::find(others->begin(), others->end(), core) != others->end();
          })) {
        continue;
      }
      out.push_back({other->actual_start, over});
    }
  }
  std::sort(out.begin(), out.end(), [](const CoreUse& a, const CoreUse& b) { return a.from < b.from; });
  return out;
}

// Whether anything but `holder` began on the core in [from, before).
bool began_on(const RunData& run, const JobRecord& holder, std::uint32_t core, std::int64_t from, std::int64_t before) {
  return std::any_of(run.records.begin(), run.records.end(), [&](const JobRecord& record) {
    const auto* cores = cores_of(run, record);
    if (&record == &holder || record.actual_start == kNever || cores == nullptr) return false;
    if (std::find(cores->begin(), cores->end(), core) == cores->end()) return false;
    const auto within = [&](std::int64_t start) { return start >= from && start < before; };
    bool any = within(record.actual_start);
    for_segments(run, record, [&](const sched::Slot& slot, std::int64_t) {
      any = any || (!slot.unit && within(record.segments[slot.segment].start));
    });
    return any;
  });
}

// The job of another stage that still held a core on which `record` was to begin, or go on, at an instant. One that
// lost its core at the end of its slot did not, unless it was inside a call then; and it had come back from that when
// the core was given to another job.
struct Holder {
  const JobRecord* job = nullptr;
  Duration held;  // behind that instant
  OnCores part;   // of the job, that did
};
Holder holder_at(const RunData& run, const RecordIndex& index, const JobRecord& record, std::int64_t instant) {
  Holder found;
  const auto* cores = cores_of(run, record);
  if (cores == nullptr) return found;
  for (std::uint32_t stage = 0; stage < run.problem.stages.size(); ++stage) {
    if (stage == record.stage) continue;
    const auto jobs = index.stage(stage);
    auto at = std::lower_bound(jobs.begin(), jobs.end(), instant,
                               [](const JobRecord* job, std::int64_t start) { return job->nominal_start < start; });
    while (at != jobs.begin()) {
      const JobRecord* const other = *--at;
      if (other->actual_start == kNever || other->completion == kNever) continue;
      const bool in_call = (other->flags & sched::kFlagInCall) != 0;
      if ((other->flags & sched::kFlagIsolated) != 0 && !in_call) continue;
      if (other->completion <= instant) break;  // jobs of a stage do not overlap: so did those before
      const OnCores beyond = on_cores_beyond(run, *other, instant);
      const auto* others = cores_of(run, *other);
      if (beyond.until == kNever || others == nullptr) continue;
      const std::int64_t over = beyond.slot_end + run.problem.stages[stage].slack.ns;
      const bool held = std::any_of(cores->begin(), cores->end(), [&](std::uint32_t core) {
        if (std::find(others->begin(), others->end(), core) == others->end()) return false;
        return !in_call || !began_on(run, *other, core, over, instant);
      });
      if (!held) continue;
      const Duration longer{beyond.until - instant};
      if (found.job == nullptr || longer > found.held) found = {other, longer, beyond};
    }
  }
  return found;
}

// Of the core on which the latest part of `record` was to begin.
Holder holder_of_core(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const LatestPart part = latest_part(run, record);
  return part.on_unit ? Holder{} : holder_at(run, index, record, part.nominal);
}

// ": lidar_detect#3 held its core for another 1.2 ms"
std::string holder_text(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const Holder holder = holder_of_core(run, index, record);
  if (holder.job == nullptr) return "";
  const std::string name = ": " + job_name(run, holder.job->stage, holder.job->job);
  if ((holder.job->flags & sched::kFlagInCall) != 0) {
    return name + " kept its core until it came back from a call of its device's driver";
  }
  return name + " held its core for another " + ms_text(holder.held);
}

// The newest earlier job of the stage that had not completed at the nominal start of `record`.
const JobRecord* running_before(const RecordIndex& index, const JobRecord& record) {
  const JobRecord* found = nullptr;
  for (const JobRecord* other : index.stage(record.stage)) {
    if (other->job >= record.job) break;
    if (other->actual_start != kNever && other->completion > record.nominal_start) found = other;
  }
  return found;
}

std::string missing_inputs(const sched::Stage& stage, const JobRecord& record, Reason reason) {
  std::string names;
  for (std::size_t i = 0; i < record.input_count && i < stage.inputs.size(); ++i) {
    if (record.inputs[i].kind != kInputMissing) continue;
    if (reason != Reason::kNone && record.inputs[i].reason != reason) continue;
    names += (names.empty() ? "" : ", ") + stage.inputs[i].name;
  }
  return names.empty() ? std::string("a required input") : "input " + names;
}

// "segment 2 of 3, on gpu, "
std::string segment_name(const RunData& run, const std::vector<sched::Segment>& planned, std::size_t i) {
  const auto unit = i < planned.size() ? planned[i].unit : std::nullopt;
  const bool known = unit && *unit < run.problem.board.units.size();
  return fmt::format("segment {} of {}{}, ", i + 1, planned.size(),
                     known ? ", on " + run.problem.board.units[*unit].name : std::string());
}

std::string isolation_text(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  if ((record.flags & sched::kFlagInCall) != 0) return "; lost its core when it came back from its device's driver";
  if ((record.flags & sched::kFlagIsolated) == 0) return "";
  const Duration waited = starved(run, index, record);
  return waited < milliseconds(1) ? "; lost its core"
                                  : "; lost its core, and other programs then kept it waiting for " + ms_text(waited);
}

std::string overrun_text(const RunData& run, const JobRecord& record) {
  Duration budget = budget_of(run, record);
  Duration took = sched::time_used(record);
  const std::string which = worst_segment(run, record, took, budget);
  if ((record.flags & sched::kFlagStuck) != 0) {
    return "never came back: still ran " + ms_text(took) + " after its start, its budget is " + ms_text(budget);
  }
  std::string text = which + "overran by " + ms_text(took - budget) + ": ran for " + ms_text(took) +
                     ", its budget is " + ms_text(budget);
  // Less CPU time than half of the wall time of all workers: it was not the stage's own work.
  if (which.empty() && !run.repeats && record.cpu_ns * 2 < took.ns * static_cast<std::int64_t>(record.cores)) {
    text += fmt::format(", with {} of CPU time and {}", ms_text({record.cpu_ns}),
                        plural(record.involuntary_switches, "involuntary switch", "involuntary switches"));
  }
  return text;
}

}  // namespace

Duration starved(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const auto* cores = cores_of(run, record);
  const bool lost_it = (record.flags & (sched::kFlagIsolated | sched::kFlagInCall | sched::kFlagStuck)) ==
                       static_cast<std::uint32_t>(sched::kFlagIsolated);
  if (!lost_it || record.voluntary_switches > 0 || record.segment_count != 0 || cores == nullptr) return {};
  if (run.repeats) return {};  // the times are those of the first run, the CPU time is that of the repetition
  std::int64_t free_from = record.slot_end + run.problem.stages[record.stage].slack.ns;
  // What it had yet to compute then, on each of its cores.
  std::int64_t left = record.cpu_ns / record.cores - (free_from - record.actual_start);
  for (const CoreUse& use : uses_between(run, index, *cores, free_from, record.completion)) {
    const std::int64_t gap = std::max<std::int64_t>(use.from - free_from, 0);
    if (left <= gap) break;
    left -= gap;
    free_from = std::max(free_from, use.to);
  }
  return {std::max<std::int64_t>(record.completion - free_from - std::max<std::int64_t>(left, 0), 0)};
}

std::string worst_segment(const RunData& run, const JobRecord& record, Duration& took, Duration& budget) {
  const std::vector<sched::Segment>& planned = run.table_of(record).choices[record.stage].budget.segments;
  std::optional<std::size_t> worst;
  for (std::size_t i = 0; i < std::min<std::size_t>(record.segment_count, planned.size()); ++i) {
    const sched::SegmentRecord& segment = record.segments[i];
    if (segment.start == kNever || segment.end == kNever) continue;
    const Duration time{segment.end - segment.start};
    if (worst && time - planned[i].time <= took - budget) continue;
    worst = i;
    took = time;
    budget = planned[i].time;
  }
  return worst ? segment_name(run, planned, *worst) : "";
}

std::string latest_segment(const RunData& run, const JobRecord& record, Duration& late) {
  const LatestPart part = latest_part(run, record);
  late = part.late;
  if (part.nominal == record.nominal_start) return "";
  return segment_name(run, run.table_of(record).choices[record.stage].budget.segments, part.segment);
}

std::string host_evidence(const RunData& run, const JobRecord& record) {
  const std::int64_t until = std::max({record.slot_end, record.completion, record.publication});
  const auto* cores = cores_of(run, record);
  std::string text;
  for (const HostStall& stall : run.host_stalls) {
    if (stall.to_ns < record.nominal_start || stall.from_ns > until) continue;
    if (stall.core < 0) {
      text += "; meanwhile the process was stopped for up to " + ms_text(stall.lost);
      continue;
    }
    const auto core = static_cast<std::uint32_t>(stall.core);
    if (cores == nullptr || std::find(cores->begin(), cores->end(), core) == cores->end()) continue;
    const std::string name = core < run.problem.board.cores.size() ? run.problem.board.cores[core].name : "a core";
    text += fmt::format("; meanwhile the hypervisor took {} of {} (steal, within {})", ms_text(stall.lost), name,
                        ms_text({stall.to_ns - stall.from_ns}));
  }
  return text;
}

namespace {

// A job, and the instant since which it, or the part of it that is meant, was in trouble: where that was to begin.
struct Trouble {
  const JobRecord* job = nullptr;
  std::int64_t since = kNever;
  bool began_there = false;  // no other job brought it
};
Trouble trouble_of(const RunData& run, const JobRecord& record) {
  if (record.job_class != JobClass::kLateStart) return {&record, record.nominal_start, false};
  const LatestPart part = latest_part(run, record);
  return {&record, part.nominal, part.on_unit};  // on a unit nobody's job holds it up
}

// The part that held the core: it began late itself, and so somebody brought that, or it ran over.
Trouble trouble_of(const RunData& run, const Holder& holder) {
  if (holder.job == nullptr) return {};
  Duration window;
  if (const auto* cores = cores_of(run, *holder.job)) {
    for (const std::uint32_t core : *cores) {
      if (core < run.problem.board.cores.size()) {
        window = std::max(window, run.problem.board.cores[core].wakeup_window);
      }
    }
  }
  const bool late =
      holder.job->job_class == JobClass::kLateStart && holder.part.start - holder.part.nominal > window.ns;
  return {holder.job, holder.part.nominal, !late};
}

// The job that is bound to an input of `record` and published nothing.
const JobRecord* silent_producer(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const JobRecord* found = nullptr;
  for (std::uint32_t i = 0; i < record.input_count && i < kMaxInputs && found == nullptr; ++i) {
    const sched::InputRecord& input = record.inputs[i];
    if (input.kind != kInputHeld && input.reason != Reason::kProducerNothing) continue;
    const auto producer = index.bound_job(record.stage, record.job, i);
    if (producer) found = index.find(run.problem.stages[record.stage].inputs[i].source, *producer);
  }
  return found;
}

// What brought it; no job: it began there. Always of an earlier instant.
Trouble origin_of(const RunData& run, const RecordIndex& index, const Trouble& trouble) {
  const JobRecord& record = *trouble.job;
  if (trouble.began_there) return {};
  const JobRecord* origin = nullptr;
  Trouble found;
  switch (record.job_class) {
    case JobClass::kLateStart: found = trouble_of(run, holder_at(run, index, record, trouble.since)); break;
    case JobClass::kSkipped:
      if (record.reason == Reason::kSlotOver) found = trouble_of(run, holder_at(run, index, record, trouble.since));
      if (record.reason == Reason::kPreviousRunning) origin = running_before(index, record);
      if (record.reason == Reason::kSkipNext && record.job > 0) origin = index.find(record.stage, record.job - 1);
      break;
    case JobClass::kMissing:
    case JobClass::kOk: origin = silent_producer(run, index, record); break;
    case JobClass::kOverrun:
    case JobClass::kLate: break;
  }
  if (origin != nullptr) found = trouble_of(run, *origin);
  return found.job != nullptr && found.since < trouble.since ? found : Trouble{};
}

}  // namespace

std::vector<const JobRecord*> origins_of(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  std::vector<const JobRecord*> out;
  for (Trouble t = origin_of(run, index, trouble_of(run, record)); t.job != nullptr; t = origin_of(run, index, t)) {
    out.push_back(t.job);
  }
  return out;
}

Duration budget_of(const RunData& run, const JobRecord& record) {
  const sched::Choice& choice = run.table_of(record).choices[record.stage];
  const auto& variants = run.problem.stages[record.stage].variants;
  if (record.variant == choice.variant || record.variant >= variants.size()) return choice.budget.time;
  for (const sched::Budget& budget : variants[record.variant].budgets) {
    if (budget.cores == choice.budget.cores) return budget.time;
  }
  return choice.budget.time;
}

std::string in_words(const RunData& run, const sched::ModeChange& change) {
  switch (change.cause) {
    case sched::ModeCause::kOverrun: return job_name(run, change.stage, change.job) + " overran";
    case sched::ModeCause::kReference: return "the reference of the phase lock was lost";
    case sched::ModeCause::kDevice: return "the device of " + job_name(run, change.stage, change.job) + " was lost";
    case sched::ModeCause::kRequest: return "it was asked for";
    case sched::ModeCause::kRecovered: return "what led into '" + run.modes[change.from].name + "' is over";
  }
  return "";
}

std::string cause_of(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const sched::Stage& stage = run.problem.stages[record.stage];
  switch (record.job_class) {
    case JobClass::kSkipped:
      if (record.reason == Reason::kPreviousRunning) {
        std::string text = "not started: an earlier job of this stage was still running";
        if (const JobRecord* earlier = running_before(index, record)) {
          text = "not started: " + job_name(run, record.stage, earlier->job);
          text +=
              earlier->actual_start < record.nominal_start
                  ? " was still running, it took " + ms_text(sched::time_used(*earlier))
                  : " had not begun yet, it was " + ms_text({earlier->actual_start - earlier->nominal_start}) + " late";
        }
        return text;
      }
      if (record.reason == Reason::kNoCredit) return "not started: no output chunk was free within the plan";
      if (record.reason == Reason::kArena) return "not started: the arena that it shares was still in use";
      if (record.reason == Reason::kDevice) return "not started: its device is lost";
      if (record.reason == Reason::kSkipNext) return "not started: the job before overran, and the policy is skip_next";
      if (record.reason == Reason::kSlotOver) {
        return "not started: its dispatcher woke behind the end of its slot" + holder_text(run, index, record) +
               host_evidence(run, record);
      }
      return "not started";
    case JobClass::kMissing:
      switch (record.reason) {
        case Reason::kFeederLate:
          return missing_inputs(stage, record, record.reason) +
                 " had arrived by its stamp, but was not physically there within the window";
        case Reason::kNoSample: return missing_inputs(stage, record, record.reason) + ": no sample had arrived yet";
        case Reason::kProducerNothing:
          if (const JobRecord* bound = silent_producer(run, index, record)) {
            return missing_inputs(stage, record, record.reason) + ": " + job_name(run, bound->stage, bound->job) +
                   " had published nothing";
          }
          return missing_inputs(stage, record, record.reason) + ": the bound job had published nothing";
        case Reason::kBadFrame:
          return missing_inputs(stage, record, record.reason) + ": the sample could not be decoded";
        default: return missing_inputs(stage, record, Reason::kNone) + " was missing";
      }
    case JobClass::kLateStart: {
      if (record.reason == Reason::kSlotOver) {
        return "given up: a dispatcher woke when it was too late to go on" + host_evidence(run, record);
      }
      Duration late;
      std::string text = latest_segment(run, record, late);
      text += "began " + ms_text(late) + " after its nominal start" + holder_text(run, index, record);
      const bool waited =
          std::any_of(record.inputs, record.inputs + std::min<std::size_t>(record.input_count, sched::kMaxInputs),
                      [](const sched::InputRecord& in) { return in.reason == Reason::kFeederLate; });
      if (waited)
        text += ": it waited for " + missing_inputs(stage, record, Reason::kFeederLate) + ", which was not there";
      return text + host_evidence(run, record);
    }
    case JobClass::kOverrun:
      if ((record.flags & sched::kFlagAborted) != 0) {
        return "given up after step " + std::to_string(record.aborted_at) + ", " +
               ms_text({record.completion - record.actual_start}) + " after its start: the next step did not fit" +
               host_evidence(run, record);
      }
      return overrun_text(run, record) + isolation_text(run, index, record) +
             ((record.flags & sched::kFlagDiscarded) != 0 ? "; output discarded" : "") + host_evidence(run, record);
    case JobClass::kLate:
      if (record.reason == Reason::kDevice) return "nothing to publish: its device refused the work or was lost";
      if (record.reason == Reason::kUnit) {
        return "given up: the unit of its next segment was still at work for another job" + host_evidence(run, record);
      }
      if (record.reason == Reason::kArena) return "given up: a mutex that its next segment shares was still in use";
      if ((record.flags & sched::kFlagDiscarded) != 0) {
        return "its output was too late for its slack and was discarded" + host_evidence(run, record);
      }
      return "published " + ms_text({record.publication - record.slot_end}) + " after the end of its slot" +
             host_evidence(run, record);
    case JobClass::kOk: break;
  }
  return "";
}

std::string cause_chain(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  constexpr std::size_t kMostLinks = 3;
  std::string text = cause_of(run, index, record);
  const std::vector<const JobRecord*> origins = origins_of(run, index, record);
  for (std::size_t i = 0; i < std::min(origins.size(), kMostLinks); ++i) {
    const std::string cause = cause_of(run, index, *origins[i]);
    if (cause.empty() || origins[i] == &record) break;
    text += "; " + job_name(run, origins[i]->stage, origins[i]->job) + ": " + cause;
  }
  return text;
}

std::string effect_of(const RunData& run, const RecordIndex& index, const JobRecord& record) {
  const Stay& stay = index.stays()[index.stay_of(record.stage, record.job)];
  const sched::Schedule& schedule = index.table(stay);
  const std::int64_t rate = schedule.choices[record.stage].rate;
  if (rate <= 0) return "";
  const auto in_stay = static_cast<std::int64_t>(record.job - stay.jobs_before[record.stage]);
  const std::int64_t cycle = in_stay / rate;
  const auto in_table = static_cast<std::uint32_t>(in_stay % rate);
  std::vector<std::pair<std::int64_t, std::string>> effects;  // nominal start, in words
  for (const sched::Binding& binding : schedule.bindings) {
    if (binding.producer_stage != record.stage || binding.producer_job != in_table) continue;
    const std::int64_t consumer_job = static_cast<std::int64_t>(stay.jobs_before[binding.stage]) +
                                      (cycle - binding.producer_shift) * schedule.choices[binding.stage].rate +
                                      binding.job;
    if (consumer_job < 0) continue;
    const JobRecord* consumer = index.find(binding.stage, static_cast<std::uint64_t>(consumer_job));
    if (consumer == nullptr || binding.input >= consumer->input_count || binding.input >= sched::kMaxInputs) continue;
    const sched::InputRecord& input = consumer->inputs[binding.input];
    const std::string name = job_name(run, binding.stage, consumer->job);
    std::string one;
    if (input.kind == kInputHeld && input.job < record.job) {
      one = fmt::format("{} used hold({}) of {}", name, record.job - input.job, run.problem.stages[record.stage].name);
      if (consumer->publication != kNever) {
        const SensorTime published = run.sensor_from_table.map_unchecked(TableTime{consumer->publication});
        one += ", age " + ms_text(published - SensorTime{input.capture_ns});
      }
    } else if (input.kind == kInputMissing && input.reason == Reason::kProducerNothing) {
      one = name + (consumer->job_class == JobClass::kMissing ? " did not run" : " ran without it");
    }
    if (!one.empty()) effects.emplace_back(consumer->nominal_start, std::move(one));
  }
  std::sort(effects.begin(), effects.end());
  std::string text;
  for (const auto& effect : effects) text += (text.empty() ? "so " : ", ") + effect.second;
  return text;
}

}  // namespace takt::pipeline
