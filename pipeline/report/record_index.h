// Finds the record of a job, and the jobs that the table binds to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/dispatch/record.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// Views into `records` (any order of stages, ascending jobs within a stage) and `schedule`: both must outlive it.
class RecordIndex {
 public:
  RecordIndex(const sched::Problem& problem, const sched::Schedule& schedule,
              std::span<const sched::JobRecord> records);

  // Records of one stage by job, ascending.
  [[nodiscard]] std::span<const sched::JobRecord* const> stage(std::uint32_t stage) const { return by_stage_[stage]; }
  // nullptr when the run ended before the job.
  [[nodiscard]] const sched::JobRecord* find(std::uint32_t stage, std::uint64_t job) const;
  // Index of the input of `stage` that comes from `source` (a sensor or a stage).
  [[nodiscard]] std::optional<std::uint32_t> input_from(std::uint32_t stage, bool sensor, std::uint32_t source) const;
  // The producer job that the table binds to this input; nullopt when it lies before job 0 (pipeline fill) or when the
  // table has no such binding.
  [[nodiscard]] std::optional<std::uint64_t> bound_job(std::uint32_t stage, std::uint64_t job,
                                                       std::uint32_t input) const;
  // The job found nothing because the pipeline was still filling: a bound producer job lies before job 0, no sample
  // had arrived yet, or the bound job was itself such a job.
  [[nodiscard]] bool filling(const sched::JobRecord& record) const;

 private:
  [[nodiscard]] bool first_sample_pending(const sched::JobRecord& record, std::uint32_t input) const;
  [[nodiscard]] bool filling_input(const sched::JobRecord& record, std::uint32_t input) const;

  const sched::Problem& problem_;
  const sched::Schedule& schedule_;
  std::vector<std::vector<const sched::JobRecord*>> by_stage_;
};

}  // namespace takt::pipeline
