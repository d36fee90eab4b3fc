// The dispatcher's view of a stage: latch, run, publish (implements sched::StageHost over transport and stages).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/assembly/device_faults.h"
#include "pipeline/assembly/feeder.h"
#include "pipeline/assembly/phase_follower.h"
#include "pipeline/assembly/process_faults.h"
#include "pipeline/assembly/stage_faults.h"
#include "pipeline/stages/stage.h"
#include "runtime/transport/binder.h"
#include "scheduler/dispatch/dispatch.h"

namespace takt::pipeline {

// What all stages of a run share.
struct RunContext {
  std::uint64_t run = 0;
  std::vector<std::uint64_t> schedules;  // by mode: ChunkHeader::schedule
  ClockMap<TableDomain, SensorDomain> sensor_from_table;
  Feeder* feeder = nullptr;
  const std::atomic<bool>* stop = nullptr;
  PhaseFollower* phase = nullptr;       // of tables that are locked to a sensor
  sched::ModeControl* modes = nullptr;  // of a pipeline with modes
};

class PipelineStageHost final : public sched::StageHost {
 public:
  // One input, connected either to a sensor feed or to a producing stage.
  struct InputPort {
    bool required = true;
    std::unique_ptr<transport::SampleBinder> samples;  // sensor inputs
    SensorFeed* feed = nullptr;
    bool reference = false;  // the table is locked to this sensor
    std::atomic<std::int64_t>* latched = nullptr;
    std::unique_ptr<transport::JobBinder> jobs;  // stage inputs
    const LocationLedger* producer_ledger = nullptr;
    const std::atomic<std::uint64_t>* newest = nullptr;  // take_newest(): the producer's newest job + 1
  };

  // A variant of the stage that jobs may run; the first is the admitted one.
  struct VariantStage {
    std::uint32_t index = 0;  // in the problem
    std::unique_ptr<Stage> stage;
    std::vector<std::vector<Duration>> worst_case;  // of each phase, by cores - 1; empty: not known
  };

  // `validity` by mode: how long behind the slot's end an output is valid.
  PipelineStageHost(const RunContext& context, std::vector<VariantStage> variants, std::vector<Duration> validity,
                    std::unique_ptr<transport::Publisher> publisher, std::vector<InputPort> inputs);

  bool latch(const sched::Job& job, Duration patience, sched::JobRecord& record) override;
  // Of a job in segments the phases before the device's work, or those behind it. Where the stage has no device all its
  // phases are behind: then only virtual time keeps the table.
  void run(const sched::Job& job, int part, sched::Gang& gang) override;
  void begin(const sched::Job& job) override;
  std::optional<Duration> ended() override;
  void publish(const sched::Job& job, sched::JobRecord& record) override;
  void discard(const sched::Job& job) override;
  void finish(const sched::Job& job, sched::JobRecord& record) override;

  // Where the producer of stage input `input` notes its publications. Before the run.
  void set_producer(std::size_t input, const LocationLedger& ledger) { ports_[input].producer_ledger = &ledger; }
  [[nodiscard]] const LocationLedger& ledger() const { return ledger_; }
  // For the watchdog: the newest published job + 1 (0: none yet), and until when its output is valid. Any thread.
  [[nodiscard]] std::uint64_t published_jobs() const { return published_jobs_.load(std::memory_order_acquire); }
  [[nodiscard]] TableTime valid_until() const { return {valid_until_.load(std::memory_order_relaxed)}; }
  // Stage input `input` takes the newest output of its producer, not that of the job that the table binds. Before the
  // run.
  void take_newest(std::size_t input, const PipelineStageHost& producer) {
    ports_[input].newest = &producer.published_jobs_;
  }
  // Every job takes `load` times its CPU time: behind its work it computes on. At least 1; before the run.
  void set_load(double load) { load_ = load; }
  // What its workers are made to do wrong; null: nothing. Before the run; must outlive it.
  void inject(const StageFaults* faults) { faults_ = faults; }
  void inject(const DeviceFaults* faults) { device_faults_ = faults; }
  // Told where the table is: nothing before the first job knows when it began.
  void inject(ProcessFaults* faults) { process_faults_ = faults; }
  // Chunks of stage inputs that a full queue lost. Sensor queues may lose superseded samples (Feeder::want).
  [[nodiscard]] std::uint64_t lost_inputs() const;
  // Lets every chunk go; before the ports are destroyed.
  void release_all();

 private:
  void latch_sample(InputPort& port, const sched::Job& job, std::optional<HostTime> give_up,
                    const sched::InputRecord* seen, StageInput& input, sched::InputRecord& record);
  static void latch_job(InputPort& port, std::int64_t bound, const sched::InputRecord* seen, StageInput& input,
                        sched::InputRecord& record);
  // The chunk of job `next` - 1; 0: there is none yet.
  static void take(InputPort& port, std::uint64_t next, StageInput& input, sched::InputRecord& record);
  static void repeat_job(InputPort& port, std::uint64_t bound, const sched::InputRecord& seen, StageInput& input,
                         sched::InputRecord& record);

  const RunContext& context_;
  std::vector<VariantStage> variants_;
  VariantStage* current_;                 // of the job in flight
  const std::vector<Duration> validity_;  // by mode
  std::unique_ptr<transport::Publisher> publisher_;
  std::vector<InputPort> ports_;
  std::vector<StageInput> inputs_;
  transport::Publisher::Loan loan_;
  transport::Publisher::Loan left_;  // to a lost device, which may still write there
  StageJob stage_job_;
  LocationLedger ledger_;
  std::atomic<std::uint64_t> published_jobs_{0};
  std::atomic<std::int64_t> valid_until_{0};
  const StageFaults* faults_ = nullptr;
  const DeviceFaults* device_faults_ = nullptr;
  ProcessFaults* process_faults_ = nullptr;
  double load_ = 1;
};

}  // namespace takt::pipeline
