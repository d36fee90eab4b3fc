// One execution of a pipeline on a log: transport, feeder, stages, dispatcher, recorder, in that order, and back.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "pipeline/assembly/fault_plan.h"
#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/assembly/replay_gate.h"
#include "pipeline/assembly/replay_view.h"
#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"
#include "runtime/exec/watch.h"
#include "runtime/transport/transport.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

struct RunOptions {
  std::string log_path;
  ReplayView view;
  transport::Backend backend = transport::Backend::kIceoryxEmbedded;
  // Every output also goes to an export topic, to which any process may subscribe; so does the watchdog's status.
  bool exported = false;
  bool lockstep = false;
  double rate = 1;                     // real time only; any other rate is NOT JUDGED
  std::uint64_t max_hyperperiods = 0;  // 0: the whole log
  const std::atomic<bool>* stop = nullptr;
  // Lockstep: an earlier run over the same log with the same table, whose decisions are repeated: every job starts, is
  // skipped, given up and published as its record says, with the inputs of its record.
  const RunData* reproduce = nullptr;
  // Lockstep: how long a job may take on this machine before it counts as one that never ends.
  Duration wait_for_job = sched::DispatchOptions{}.wait_for_job;
  ReplayGate* gate = nullptr;  // lockstep only: pause and step
  // Stands between the log and the feeder; tests inject what disks and decoders do.
  std::function<std::unique_ptr<sensors::LogReader>(std::unique_ptr<sensors::LogReader>)> through;
  const FaultPlan* faults = nullptr;  // what is done to the run; lockstep: sensors and disk only
  // Real time: without the table, and with so many times the CPU time of every job (pipeline/report/baselines.h).
  Way way = Way::kTable;
  double load = 1;
  // When set, the values that compiled networks compute are watched (slow), and this is told, after the run, of each
  // stage in which one was no finite number.
  std::function<void(const std::string& stage, const exec::NonFinite& found, const plan::Plan& plan)> non_finite;
  // When set, a run whose device is lost ends two hyperperiods later, by when it is in a mode without the device where
  // there is one, and this is told why: of a process that shall be restarted.
  std::function<void(const std::string& reason)> device_lost;
  // The pools of the run, before anything is started.
  std::function<void(const transport::PoolPlan&)> planned;
  // Table seconds done, table seconds in all. On the recorder's thread.
  std::function<void(double, double)> progress;
};

// Runs the admitted schedule over the log. Fills everything of RunData but run_folder, command and budget inputs.
// A damaged log, bad frames and late jobs are no errors: they are in the data. Errors: kInput (log unreadable),
// kEnvironment (shared memory, RouDi), kConfiguration (rig does not fit the log, transport limits).
Result<RunData> run_pipeline(const PipelineConfig& config, const sched::Schedule& schedule, const RunOptions& options);
// The same with the tables of several modes, over the whole problem; begins in the first.
Result<RunData> run_pipeline(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                             const RunOptions& options);

}  // namespace takt::pipeline
