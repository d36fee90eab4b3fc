// Finds the record of a job, and the jobs that the table binds to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/report/run_data.h"
#include "scheduler/dispatch/record.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// A run between two changes of its mode; without modes there is one, mode 0.
struct Stay {
  std::uint64_t first_hyperperiod = 0;
  std::uint32_t mode = 0;
  TableTime begin;
  std::vector<std::uint64_t> jobs_before;  // by stage: jobs of the run before it
};

// One hyperperiod of a run as it was planned, corrections of the phase left out.
struct PlannedHyperperiod {
  const sched::Schedule* table = nullptr;
  TableTime begin;
  std::uint64_t in_stay = 0;  // hyperperiods of the stay before it
  const Stay* stay = nullptr;

  [[nodiscard]] TableTime start(const sched::Slot& slot) const {
    return begin + (table->clock.start_at(0, slot.start) - TableTime{0});
  }
  [[nodiscard]] TableTime end(const sched::Slot& slot) const {
    return begin + (table->clock.end_at(0, slot.end) - TableTime{0});
  }
  [[nodiscard]] std::uint64_t job(const sched::Slot& slot) const {
    return stay->jobs_before[slot.stage] + in_stay * static_cast<std::uint64_t>(table->choices[slot.stage].rate) +
           slot.job;
  }
};

// Views into the run's problem, tables and records (any order of stages, ascending jobs within a stage): it must
// outlive the index.
class RecordIndex {
 public:
  explicit RecordIndex(const RunData& run);

  // Records of one stage by job, ascending.
  [[nodiscard]] std::span<const sched::JobRecord* const> stage(std::uint32_t stage) const { return by_stage_[stage]; }
  // nullptr when the run ended before the job.
  [[nodiscard]] const sched::JobRecord* find(std::uint32_t stage, std::uint64_t job) const;
  // Index of the input of `stage` that comes from `source` (a sensor or a stage).
  [[nodiscard]] std::optional<std::uint32_t> input_from(std::uint32_t stage, bool sensor, std::uint32_t source) const;
  // Number of the stay in which a job lies.
  [[nodiscard]] std::size_t stay_of(std::uint32_t stage, std::uint64_t job) const;
  [[nodiscard]] const std::vector<Stay>& stays() const { return stays_; }
  [[nodiscard]] const sched::Schedule& table(const Stay& stay) const;
  [[nodiscard]] PlannedHyperperiod planned(std::uint64_t hyperperiod) const;
  // When the stay of a recorded job began, corrections of the phase since then included: what its table counts from.
  [[nodiscard]] TableTime origin(const sched::JobRecord& record) const;
  // The producer job that the table binds to this input, for the first jobs of a mode the newest of the mode before
  // that was there; nullopt when it lies before job 0 (pipeline fill) or when the table has no such binding.
  [[nodiscard]] std::optional<std::uint64_t> bound_job(std::uint32_t stage, std::uint64_t job,
                                                       std::uint32_t input) const;
  // The job found nothing because the pipeline was still filling: a bound producer job lies before job 0, no sample
  // had arrived yet, or the bound job was itself such a job.
  [[nodiscard]] bool filling(const sched::JobRecord& record) const;

 private:
  [[nodiscard]] bool first_sample_pending(const sched::JobRecord& record, std::uint32_t input) const;
  [[nodiscard]] bool filling_input(const sched::JobRecord& record, std::uint32_t input) const;

  [[nodiscard]] std::optional<std::uint64_t> newest_before(std::size_t stay, std::uint32_t producer,
                                                           std::uint32_t stage, const sched::JobRecord& consumer) const;

  const RunData& run_;
  const sched::Problem& problem_;
  std::vector<Stay> stays_;
  std::vector<std::vector<const sched::JobRecord*>> by_stage_;
};

}  // namespace takt::pipeline
