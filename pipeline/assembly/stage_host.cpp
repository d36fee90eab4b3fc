#include "pipeline/assembly/stage_host.h"

#include <ctime>
#include <span>
#include <utility>

#include "runtime/exec/offload.h"

namespace takt::pipeline {
namespace {

using sched::Reason;
using transport::Selection;

constexpr Duration kPatienceAfterStop = seconds(2);

// Short sleep while a sample of the replay feeder is not there yet. Only lockstep waits without limit; in real time the
// wait ends after w and the sample counts as missing.
void nap() {
  timespec pause{0, 20'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

std::int64_t thread_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

PipelineStageHost::PipelineStageHost(const RunContext& context, std::vector<VariantStage> variants,
                                     std::vector<Duration> validity, std::unique_ptr<transport::Publisher> publisher,
                                     std::vector<InputPort> inputs)
    : context_(context),
      variants_(std::move(variants)),
      current_(&variants_.front()),
      validity_(std::move(validity)),
      publisher_(std::move(publisher)),
      ports_(std::move(inputs)),
      inputs_(ports_.size()) {}

void PipelineStageHost::latch_sample(InputPort& port, const sched::Job& job, std::optional<HostTime> give_up,
                                     const sched::InputRecord* seen, StageInput& input, sched::InputRecord& record) {
  const SensorTime latch = context_.sensor_from_table.map_unchecked(job.nominal_start);
  context_.feeder->want(latch);
  while (context_.feeder->watermark() < latch) {
    // Lockstep waits without limit, but not for a feeder that hangs after the user has stopped the run.
    if (!give_up && context_.stop != nullptr && context_.stop->load()) give_up = host_now() + kPatienceAfterStop;
    if (give_up && host_now() >= *give_up) {
      record.reason = Reason::kFeederLate;
      port.samples->skip(latch);
      port.latched->store(latch.ns, std::memory_order_release);
      return;
    }
    nap();
  }
  if (seen != nullptr && seen->reason == Reason::kFeederLate) {
    record = *seen;
    port.samples->skip(latch);
    port.latched->store(latch.ns, std::memory_order_release);
    return;
  }
  const transport::Selected selected = port.samples->select(latch);
  // Told after the port was drained, so that the queue never holds more than A samples.
  port.latched->store(latch.ns, std::memory_order_release);
  if (!selected.chunk) {
    const bool bad = port.feed->first_bad.load(std::memory_order_acquire) <= latch.ns;
    record.reason = bad ? Reason::kBadFrame : Reason::kNoSample;
    return;
  }
  record.kind = static_cast<std::uint8_t>(selected.selection);
  record.job = selected.chunk.header->job;
  record.capture_ns = selected.chunk.header->capture_ns;
  record.arrival_ns = selected.chunk.header->arrival_ns;
  if (port.reference) context_.phase->latched({record.capture_ns});
  record.moved = port.feed->ledger.matches(record.job, selected.location) ? 0 : 1;
  input = {selected.chunk, selected.selection == Selection::kRepeat, false};
}

void PipelineStageHost::latch_job(InputPort& port, std::int64_t bound, const sched::InputRecord* seen,
                                  StageInput& input, sched::InputRecord& record) {
  if (port.newest != nullptr) return take(port, port.newest->load(std::memory_order_acquire), input, record);
  if (bound < 0) {
    record.reason = Reason::kFill;
    return;
  }
  if (seen != nullptr) return repeat_job(port, static_cast<std::uint64_t>(bound), *seen, input, record);
  take(port, static_cast<std::uint64_t>(bound) + 1, input, record);
}

void PipelineStageHost::take(InputPort& port, std::uint64_t next, StageInput& input, sched::InputRecord& record) {
  if (next == 0) {
    record.reason = Reason::kFill;
    return;
  }
  const transport::Selected selected = port.jobs->select(next - 1);
  record.job = next - 1;
  if (!selected.chunk) {
    record.reason = Reason::kProducerNothing;
    return;
  }
  record.kind = static_cast<std::uint8_t>(selected.selection);
  record.job = selected.chunk.header->job;
  record.capture_ns = selected.chunk.header->capture_ns;
  record.moved = port.producer_ledger->matches(record.job, selected.location) ? 0 : 1;
  input = {selected.chunk, false, selected.selection == Selection::kHeld};
}

// What the producer published too late then is there now: the record decides.
void PipelineStageHost::repeat_job(InputPort& port, std::uint64_t bound, const sched::InputRecord& seen,
                                   StageInput& input, sched::InputRecord& record) {
  const bool missing = static_cast<Selection>(seen.kind) == Selection::kMissing;
  const transport::Selected selected = port.jobs->select(missing ? bound : seen.job);
  record.job = bound;
  record.reason = Reason::kProducerNothing;
  if (missing || !selected.chunk || selected.chunk.header->job != seen.job) return;
  record = seen;
  record.capture_ns = selected.chunk.header->capture_ns;
  record.moved = port.producer_ledger->matches(record.job, selected.location) ? 0 : 1;
  input = {selected.chunk, false, static_cast<Selection>(seen.kind) == Selection::kHeld};
}

bool PipelineStageHost::latch(const sched::Job& job, Duration patience, sched::JobRecord& record) {
  if (process_faults_ != nullptr) process_faults_->reached(job.nominal_start);
  record.input_count = static_cast<std::uint8_t>(ports_.size());
  stage_job_ = {};
  bool complete = true;
  // All inputs together may wait for what is left of w; in lockstep, where times are virtual, without limit.
  std::optional<HostTime> give_up;
  if (patience.ns > 0) give_up = host_now() + patience;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    InputPort& port = ports_[i];
    sched::InputRecord& in = record.inputs[i];
    in = {};
    inputs_[i] = {};
    if (job.bound[i] == sched::Job::kNotRead) {
      // Nobody waits for what this mode leaves out.
      const SensorTime now = context_.sensor_from_table.map_unchecked(job.nominal_start);
      if (port.samples) port.samples->skip(now);
      if (port.samples) port.latched->store(now.ns, std::memory_order_release);
      continue;
    }
    const sched::InputRecord* const seen = job.seen != nullptr ? &job.seen->inputs[i] : nullptr;
    if (port.samples) {
      latch_sample(port, job, give_up, seen, inputs_[i], in);
    } else {
      latch_job(port, job.bound[i], seen, inputs_[i], in);
    }
    switch (static_cast<Selection>(in.kind)) {
      case Selection::kNew: break;
      case Selection::kRepeat: record.flags |= sched::kFlagRepeatInput; break;
      case Selection::kHeld: record.flags |= sched::kFlagHeldInput; break;
      case Selection::kMissing:
        record.flags |= sched::kFlagMissingInput;
        // Before anything can have come through, an empty input is the pipeline filling up, not a fault.
        if (in.reason == Reason::kFill || job.hyperperiod == 0) record.flags |= sched::kFlagFill;
        if (port.required) {
          complete = false;
          if (record.reason == Reason::kNone) record.reason = in.reason;
        }
        break;
    }
  }
  current_ = &variants_.front();
  for (VariantStage& variant : variants_) {
    if (variant.index == job.variant) current_ = &variant;
  }
  const exec::Offload* const offload = current_->stage->offload();
  if (offload != nullptr && offload->lost() != nullptr) {
    complete = false;
    record.reason = Reason::kDevice;
    if (context_.modes != nullptr) context_.modes->cannot_run(job.stage, job.variant, job.number);
  }
  if (complete) {
    loan_ = publisher_->loan();
    if (!loan_) record.reason = Reason::kNoCredit;
  }
  if (!complete || !loan_) {
    for (InputPort& port : ports_) {
      if (port.samples) port.samples->undo_use();
    }
    return false;
  }
  *loan_.header = {};
  stage_job_.number = job.number;
  stage_job_.now = context_.sensor_from_table.map_unchecked(job.slot_end);
  stage_job_.inputs = inputs_;
  stage_job_.output_header = loan_.header;
  stage_job_.output = loan_.payload;
  return true;
}

void PipelineStageHost::run(const sched::Job& job, int part, sched::Gang& gang) {
  const HostTime began = faults_ == nullptr ? HostTime{} : host_now();
  const std::int64_t cpu_before = load_ > 1 ? thread_cpu_ns() : 0;
  if (device_faults_ != nullptr && part == 0 && job.segments.size() <= 1) device_faults_->before_work(job);
  Stage& stage = *current_->stage;
  const auto& known = current_->worst_case;
  const auto cores = static_cast<std::size_t>(gang.parts());
  const std::span<const Duration> worst_case =
      cores <= known.size() ? std::span<const Duration>(known[cores - 1]) : std::span<const Duration>();
  const int phases = job.last_segment() ? stage.phases() : stage.behind_device();
  for (int phase = job.segment == 0 ? 0 : stage.behind_device(); phase < phases; ++phase) {
    if (stage.parallel(phase)) {
      stage.run(phase, part, gang.parts(), stage_job_);
    } else if (part == 0) {
      stage.run(phase, 0, 1, stage_job_);
    }
    const auto next = static_cast<std::size_t>(phase) + 1;
    if (phase + 1 < phases && !gang.arrive_and_wait(part, next < worst_case.size() ? worst_case[next] : Duration{})) {
      return;
    }
  }
  if (load_ > 1) {
    const std::int64_t own = thread_cpu_ns() - cpu_before;
    while (thread_cpu_ns() - cpu_before < static_cast<std::int64_t>(static_cast<double>(own) * load_)) {
    }
  }
  if (faults_ != nullptr && part == 0 && job.last_segment()) faults_->behind_work(job, began);
}

void PipelineStageHost::begin(const sched::Job& job) {
  if (device_faults_ != nullptr && job.segment == 1) device_faults_->before_work(job);  // its first for the device
  if (exec::Offload* const offload = current_->stage->offload()) offload->begin();
}

std::optional<Duration> PipelineStageHost::ended() {
  exec::Offload* const offload = current_->stage->offload();
  return offload != nullptr ? offload->ended() : Duration{};
}

void PipelineStageHost::publish(const sched::Job& job, sched::JobRecord& record) {
  if (stage_job_.failed) {
    discard(job);
    record.reason = Reason::kDevice;
    record.flags |= sched::kFlagDiscarded;
    return;
  }
  transport::ChunkHeader& header = *loan_.header;
  header.run = context_.run;
  header.schedule = context_.schedules[job.mode];
  header.mode = job.mode;
  header.schema = current_->stage->output_schema();
  header.hyperperiod = job.hyperperiod;
  header.job = job.number;
  const TableTime valid_until = job.slot_end + validity_[job.mode];
  header.valid_until_ns = valid_until.ns;
  if (stage_job_.repaired) record.flags |= sched::kFlagRepaired;
  record.output_bytes = header.payload_bytes;
  record.published = 1;
  // Noted first: a consumer may take the chunk the moment it is published.
  ledger_.note(job.number, publisher_->location(loan_));
  publisher_->publish(loan_);
  loan_ = {};
  current_->stage->published();
  valid_until_.store(valid_until.ns, std::memory_order_relaxed);
  published_jobs_.store(job.number + 1, std::memory_order_release);
}

void PipelineStageHost::discard(const sched::Job&) {
  exec::Offload* const offload = current_->stage->offload();
  if (offload != nullptr) offload->forget();
  if (loan_ && offload != nullptr && offload->in_flight()) {
    left_ = loan_;
  } else if (loan_) {
    publisher_->discard(loan_);
  }
  loan_ = {};
}

void PipelineStageHost::finish(const sched::Job&, sched::JobRecord& record) {
  record.launch_ns = stage_job_.launch.ns;
  record.device_ns = stage_job_.on_device.ns;
}

std::uint64_t PipelineStageHost::lost_inputs() const {
  std::uint64_t lost = 0;
  for (const InputPort& port : ports_) lost += port.jobs ? port.jobs->lost() : 0;
  return lost;
}

void PipelineStageHost::release_all() {
  for (transport::Publisher::Loan* const loan : {&loan_, &left_}) {
    if (*loan) publisher_->discard(std::exchange(*loan, {}));
  }
  for (InputPort& port : ports_) {
    if (port.samples) port.samples->release_all();
    if (port.jobs) port.jobs->release_all();
  }
}

}  // namespace takt::pipeline
