#include "pipeline/report/record_index.h"

#include <algorithm>
#include <tuple>

namespace takt::pipeline {

RecordIndex::RecordIndex(const RunData& run) : run_(run), problem_(run.problem), by_stage_(run.problem.stages.size()) {
  for (const sched::JobRecord& record : run.records) {
    if (record.stage < by_stage_.size()) by_stage_[record.stage].push_back(&record);
  }
  for (auto& jobs : by_stage_) {
    std::stable_sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->job < b->job; });
  }
  stays_.push_back({0, 0, {}, std::vector<std::uint64_t>(by_stage_.size(), 0)});
  for (const sched::ModeChange& change : run.dispatch.changes) {
    Stay next = stays_.back();
    const std::vector<sched::Choice>& choices = table(next).choices;
    for (std::size_t s = 0; s < by_stage_.size(); ++s) {
      next.jobs_before[s] +=
          (change.hyperperiod - next.first_hyperperiod) * static_cast<std::uint64_t>(choices[s].rate);
    }
    next.first_hyperperiod = change.hyperperiod;
    next.mode = change.to;
    next.begin = change.begin;
    stays_.push_back(std::move(next));
  }
}

const sched::Schedule& RecordIndex::table(const Stay& stay) const {
  return run_.modes.empty() ? run_.schedule : run_.modes[stay.mode].schedule;
}

PlannedHyperperiod RecordIndex::planned(std::uint64_t hyperperiod) const {
  std::size_t stay = stays_.size() - 1;
  while (stay > 0 && stays_[stay].first_hyperperiod > hyperperiod) --stay;
  PlannedHyperperiod out;
  out.stay = &stays_[stay];
  out.table = &table(stays_[stay]);
  out.in_stay = hyperperiod - stays_[stay].first_hyperperiod;
  out.begin = stays_[stay].begin + (out.table->clock.start_at(out.in_stay, 0) - TableTime{0});
  return out;
}

std::size_t RecordIndex::stay_of(std::uint32_t stage, std::uint64_t job) const {
  std::size_t stay = stays_.size() - 1;
  while (stay > 0 && stays_[stay].jobs_before[stage] > job) --stay;
  return stay;
}

TableTime RecordIndex::origin(const sched::JobRecord& record) const {
  const Stay& stay = stays_[stay_of(record.stage, record.job)];
  const sched::Schedule& schedule = table(stay);
  if (record.slot >= schedule.slots.size() || record.hyperperiod < stay.first_hyperperiod) return {};
  const TableTime in_stay =
      schedule.clock.start_at(record.hyperperiod - stay.first_hyperperiod, schedule.slots[record.slot].start);
  return {record.nominal_start - in_stay.ns};
}

const sched::JobRecord* RecordIndex::find(std::uint32_t stage, std::uint64_t job) const {
  const auto& jobs = by_stage_[stage];
  const auto at = std::lower_bound(jobs.begin(), jobs.end(), job,
                                   [](const sched::JobRecord* record, std::uint64_t n) { return record->job < n; });
  return at != jobs.end() && (*at)->job == job ? *at : nullptr;
}

std::optional<std::uint32_t> RecordIndex::input_from(std::uint32_t stage, bool sensor, std::uint32_t source) const {
  const auto& inputs = problem_.stages[stage].inputs;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].from_sensor == sensor && inputs[i].source == source) return i;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> RecordIndex::bound_job(std::uint32_t stage, std::uint64_t job, std::uint32_t input) const {
  const std::size_t number = stay_of(stage, job);
  const Stay& stay = stays_[number];
  const sched::Schedule& schedule = table(stay);
  const std::int64_t rate = schedule.choices[stage].rate;
  if (rate <= 0) return std::nullopt;
  const auto in_stay = static_cast<std::int64_t>(job - stay.jobs_before[stage]);
  const auto in_table = static_cast<std::uint32_t>(in_stay % rate);
  for (const sched::Binding& binding : schedule.bindings) {
    if (std::tie(binding.stage, binding.job, binding.input) != std::tie(stage, in_table, input)) continue;
    const std::uint32_t producer = binding.producer_stage;
    const std::int64_t bound =
        (in_stay / rate + binding.producer_shift) * schedule.choices[producer].rate + binding.producer_job;
    if (bound >= 0) return stay.jobs_before[producer] + static_cast<std::uint64_t>(bound);
    const sched::JobRecord* const consumer = find(stage, job);
    if (number == 0 || consumer == nullptr) return std::nullopt;
    return newest_before(number - 1, producer, stage, *consumer);
  }
  return std::nullopt;
}

// As the dispatcher does it, over the records.
std::optional<std::uint64_t> RecordIndex::newest_before(std::size_t number, std::uint32_t producer, std::uint32_t stage,
                                                        const sched::JobRecord& consumer) const {
  const auto home = [this](std::uint32_t of, std::uint32_t mode) -> const std::vector<std::uint32_t>* {
    for (const sched::Slot& slot : run_.modes[mode].schedule.slots) {
      if (slot.stage == of && !slot.cores.empty()) return &slot.cores;
    }
    return nullptr;
  };
  const auto* const at = home(stage, consumer.mode);
  const auto* const from = home(producer, consumer.mode);
  const bool one_timeline = at != nullptr && from != nullptr && at->size() == 1 && from->back() == at->front();
  const Duration error = one_timeline ? Duration{} : problem_.board.clock_error;
  std::optional<std::uint64_t> newest;
  for (const sched::JobRecord* record : by_stage_[producer]) {
    if (stay_of(producer, record->job) != number) continue;
    if (record->slot_end + error.ns <= consumer.nominal_start) newest = record->job;
  }
  return newest;
}

bool RecordIndex::filling(const sched::JobRecord& record) const {
  if (record.job_class != sched::JobClass::kMissing) return false;
  bool any = false;
  for (std::uint32_t i = 0; i < record.input_count && i < sched::kMaxInputs; ++i) {
    if (record.inputs[i].reason == sched::Reason::kNone) continue;
    if (!filling_input(record, i)) return false;
    any = true;
  }
  // The record's own reason speaks when the inputs carry none.
  return any || record.reason == sched::Reason::kFill;
}

// A sensor's first sample has arrived by then, if the sensor works at all.
bool RecordIndex::first_sample_pending(const sched::JobRecord& record, std::uint32_t input) const {
  if (record.stage >= problem_.stages.size() || input >= problem_.stages[record.stage].inputs.size()) return true;
  const sched::Input& from = problem_.stages[record.stage].inputs[input];
  if (!from.from_sensor || from.source >= problem_.sensors.size()) return true;
  const sched::Sensor& sensor = problem_.sensors[from.source];
  const Duration phase = sensor.phase ? sensor.phase->offset + sensor.phase->jitter : Duration{};
  return record.nominal_start <= (phase + sched::longest_period(sensor) + sensor.delay_max).ns;
}

bool RecordIndex::filling_input(const sched::JobRecord& record, std::uint32_t input) const {
  switch (record.inputs[input].reason) {
    case sched::Reason::kFill: return true;
    case sched::Reason::kNoSample: return first_sample_pending(record, input);
    case sched::Reason::kProducerNothing: break;
    default: return false;
  }
  if (record.stage >= problem_.stages.size() || input >= problem_.stages[record.stage].inputs.size()) return false;
  const sched::Input& from = problem_.stages[record.stage].inputs[input];
  const auto producer = bound_job(record.stage, record.job, input);
  if (from.from_sensor || !producer) return false;
  if (from.source == record.stage && *producer >= record.job) return false;  // damaged table: no endless walk
  const sched::JobRecord* bound = find(from.source, *producer);
  return bound != nullptr && filling(*bound);
}

}  // namespace takt::pipeline
