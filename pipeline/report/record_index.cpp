#include "pipeline/report/record_index.h"

#include <algorithm>
#include <tuple>

namespace takt::pipeline {

RecordIndex::RecordIndex(const sched::Problem& problem, const sched::Schedule& schedule,
                         std::span<const sched::JobRecord> records)
    : problem_(problem), schedule_(schedule), by_stage_(problem.stages.size()) {
  for (const sched::JobRecord& record : records) {
    if (record.stage < by_stage_.size()) by_stage_[record.stage].push_back(&record);
  }
  for (auto& jobs : by_stage_) {
    std::stable_sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->job < b->job; });
  }
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
  const std::int64_t rate = schedule_.choices[stage].rate;
  if (rate <= 0) return std::nullopt;
  const std::int64_t hyperperiod = static_cast<std::int64_t>(job) / rate;
  const auto in_table = static_cast<std::uint32_t>(static_cast<std::int64_t>(job) % rate);
  for (const sched::Binding& binding : schedule_.bindings) {
    if (std::tie(binding.stage, binding.job, binding.input) != std::tie(stage, in_table, input)) continue;
    const std::int64_t producer =
        (hyperperiod + binding.producer_shift) * schedule_.choices[binding.producer_stage].rate + binding.producer_job;
    if (producer < 0) return std::nullopt;
    return static_cast<std::uint64_t>(producer);
  }
  return std::nullopt;
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
