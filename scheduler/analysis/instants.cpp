#include "scheduler/analysis/instants.h"

namespace takt::sched::analysis {

Instants::Instants(const Problem& problem, const Schedule& schedule)
    : hyperperiod_(problem.hyperperiod.ns),
      starts_(problem.stages.size()),
      ends_(problem.stages.size()),
      sources_(problem.stages.size()) {
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    rates_.push_back(schedule.choices[stage].rate);
    starts_[stage].resize(static_cast<std::size_t>(rates_.back()));
    ends_[stage].resize(static_cast<std::size_t>(rates_.back()));
  }
  for (const Slot& slot : schedule.slots) {
    // Inputs are latched at the start of the first segment, the output is published at the end of the last.
    const std::size_t segments = schedule.choices[slot.stage].budget.segments.size();
    if (slot.segment == 0) starts_[slot.stage][slot.job] = schedule.clock.start_at(0, slot.start).ns;
    if (segments <= 1 || slot.segment + 1 == segments) {
      ends_[slot.stage][slot.job] = schedule.clock.end_at(0, slot.end).ns;
    }
  }
  for (const Binding& binding : schedule.bindings) {
    std::vector<Source>& sources = sources_[binding.stage];
    Source* source = nullptr;
    for (Source& known : sources) {
      if (known.producer == binding.producer_stage) source = &known;
    }
    if (source == nullptr) {
      sources.push_back({binding.producer_stage, std::vector<std::int64_t>(starts_[binding.stage].size(), 0)});
      source = &sources.back();
    }
    source->jobs[binding.job] = binding.producer_shift * rates_[binding.producer_stage] + binding.producer_job;
  }
}

Instants::Turn Instants::split(std::uint32_t stage, std::int64_t job) const {
  std::int64_t turn = job / rates_[stage];
  std::int64_t rest = job % rates_[stage];
  if (rest < 0) {
    rest += rates_[stage];
    --turn;
  }
  return {turn, static_cast<std::size_t>(rest)};
}

std::int64_t Instants::start(std::uint32_t stage, std::int64_t job) const {
  const Turn at = split(stage, job);
  return starts_[stage][at.rest] + at.turn * hyperperiod_;
}

std::int64_t Instants::end(std::uint32_t stage, std::int64_t job) const {
  const Turn at = split(stage, job);
  return ends_[stage][at.rest] + at.turn * hyperperiod_;
}

std::int64_t Instants::bound(std::uint32_t stage, std::uint32_t producer, std::int64_t job) const {
  const Turn at = split(stage, job);
  for (const Source& source : sources_[stage]) {
    if (source.producer == producer) return source.jobs[at.rest] + at.turn * rates_[producer];
  }
  return 0;  // not connected: check() refuses such chains
}

}  // namespace takt::sched::analysis
