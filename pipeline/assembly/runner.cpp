#include "pipeline/assembly/runner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "pipeline/assembly/device_faults.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/assembly/event_executor.h"
#include "pipeline/assembly/faulty_log.h"
#include "pipeline/assembly/feeder.h"
#include "pipeline/assembly/host_watch.h"
#include "pipeline/assembly/housekeeping_affinity.h"
#include "pipeline/assembly/plan_info.h"
#include "pipeline/assembly/process_faults.h"
#include "pipeline/assembly/recorder.h"
#include "pipeline/assembly/relay.h"
#include "pipeline/assembly/run_log.h"
#include "pipeline/assembly/run_notes.h"
#include "pipeline/assembly/run_stages.h"
#include "pipeline/assembly/run_tables.h"
#include "pipeline/assembly/stage_faults.h"
#include "pipeline/assembly/stage_host.h"
#include "pipeline/assembly/status_topic.h"
#include "pipeline/assembly/transport_plan.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/verdict.h"
#include "runtime/device/device.h"
#include "runtime/exec/offload.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/alloc_guard.h"
#include "runtime/memory/process.h"

namespace takt::pipeline {
namespace {

// What threads and chunks of a run belong to, destroyed in the right order: ports before the transport, stages before
// the memory that their device was shown.
struct Assembly {
  std::unique_ptr<transport::Transport> transport;
  std::shared_ptr<exec::Accelerator> accelerator;  // has been shown the transport's memory
  std::unique_ptr<StatusTopic> status;
  std::unique_ptr<Relay> relay;
  std::vector<std::unique_ptr<SensorFeed>> feeds;
  std::vector<std::unique_ptr<PipelineStageHost>> hosts;
  std::unique_ptr<Feeder> feeder;
  std::unique_ptr<Recorder> recorder;
};

// What is still in use when its run is over, until the process ends.
void leave_behind(std::unique_ptr<Assembly> assembly) {
  static auto* const left = new std::vector<std::unique_ptr<Assembly>>;
  left->push_back(std::move(assembly));
}

// Those of one stage.
template <class Fault>
std::vector<Fault> faults_of(const std::vector<Fault>& all, std::uint32_t stage) {
  std::vector<Fault> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [stage](const Fault& fault) { return fault.stage == stage; });
  return out;
}

// One execution, built up by the steps of run() in their order. Members go from the last to the first.
class Run {
 public:
  Run(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes, const RunOptions& options)
      : config_(config),
        modes_(modes),
        options_(options),
        schedule_(modes.front().schedule),
        stages_(config.problem.stages),
        rig_(*config.rig) {}

  Result<RunData> run() {
    TAKT_RETURN_IF_ERROR(check_segments(config_, modes_, options_.lockstep));
    TAKT_RETURN_IF_ERROR(open_log());
    data_.environment = read_environment();
    TAKT_RETURN_IF_ERROR(make_stages());
    TAKT_RETURN_IF_ERROR(calibrate());
    TAKT_RETURN_IF_ERROR(make_transport());
    make_context();
    TAKT_RETURN_IF_ERROR(make_feeds());
    TAKT_RETURN_IF_ERROR(make_hosts());
    TAKT_RETURN_IF_ERROR(make_outputs());
    TAKT_RETURN_IF_ERROR(assembly_.transport->wait_connected());
    make_feeder();
    TAKT_RETURN_IF_ERROR(assembly_.feeder->status());
    start_helpers();
    inject_faults();
    TAKT_RETURN_IF_ERROR(execute());
    TAKT_RETURN_IF_ERROR(collect());
    return std::move(data_);
  }

 private:
  // The log first: most mistakes are there.
  Status open_log() {
    for (const sched::Stage& stage : stages_) {
      for (const sched::Input& input : stage.inputs) {
        if (input.from_sensor) sensor_topics_.insert(rig_.sensors[input.source].topic);
      }
    }
    const std::vector<std::string> topics(sensor_topics_.begin(), sensor_topics_.end());
    TAKT_ASSIGN(opened_, open_replay(options_.log_path, rig_, topics, options_.view));
    log_ = std::move(opened_.log);
    if (options_.through) log_ = options_.through(std::move(log_));
    if (options_.faults != nullptr) {
      log_ = with_sensor_faults(std::move(log_), rig_, options_.faults->sensors, &touched_);
    }
    TAKT_ASSIGN(origin_, table_origin(*log_, config_, schedule_.clock.hyperperiod));
    if (options_.reproduce != nullptr && options_.reproduce->sensor_from_table.to_origin != origin_) {
      return fail(Code::kInput,
                  "this is another part of the log than the run to reproduce had; give the same --start, "
                  "--end, --topics, --exclude and --remap");
    }
    const std::int64_t log_ns = (log_->span()->second - origin_).ns;
    // The last samples still come through.
    hyperperiods_ = static_cast<std::uint64_t>(log_ns / schedule_.clock.hyperperiod.ns) + 2;
    if (options_.max_hyperperiods > 0) hyperperiods_ = std::min(hyperperiods_, options_.max_hyperperiods);
    if (options_.reproduce != nullptr) hyperperiods_ = options_.reproduce->dispatch.hyperperiods_run;
    // A run that was interrupted is reproduced although it did not come to all of them.
    if (options_.faults != nullptr && options_.reproduce == nullptr) {
      const auto span = log_->span();
      TAKT_RETURN_IF_ERROR(check_reach(*options_.faults, config_.problem, modes_, hyperperiods_,
                                       span->second - span->first, origin_ - span->first));
    }
    if (options_.way != Way::kTable) {
      TAKT_ASSIGN(arrivals_, read_arrivals(*log_, rig_, origin_));
    }
    return {};
  }

  // Stages allocate everything now.
  Status make_stages() {
    TAKT_ASSIGN(arenas_, shared_arenas(config_));
    if (config_.device.device) {
      free_before_ = config_.device.device->free_bytes();
      std::shared_ptr<device::Device> device = config_.device.device;
      if (options_.faults != nullptr && !options_.faults->devices.empty()) {
        device = faulty_ = device::FaultDevice::create(*device, {});
      }
      assembly_.accelerator = std::make_shared<exec::Accelerator>(std::move(device), config_.device.exchange);
    }
    TAKT_ASSIGN(created_,
                create_stages(config_, modes_, arenas_, assembly_.accelerator, static_cast<bool>(options_.non_finite)));
    if (assembly_.accelerator) free_loaded_ = assembly_.accelerator->device().free_bytes();
    for (const StageConfig& stage : config_.stages) stage_topics_.push_back(stage.topic());
    return {};
  }

  // What this machine does to threads that only sleep, while nothing else of the run is there yet.
  Status calibrate() {
    if (options_.lockstep) return {};
    TAKT_ASSIGN(const sched::WakeupErrors calibration, sched::measure_sleep(config_.problem.board, kCalibration));
    tell_calibration(config_.problem.board, calibration, data_);
    return {};
  }

  // The random token keeps runs apart; it reaches no digest.
  Status make_transport() {
    context_.run = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
    if (!options_.lockstep) on_reserve_.emplace(config_.problem.board);
    transport::TransportSpec spec = plan_transport(config_, modes_, created_.output_bytes, options_.backend,
                                                   options_.lockstep, context_.run, options_.exported);
    if (options_.faults != nullptr) {
      ProcessFaults::declare(*options_.faults, stage_topics_, spec);
      TAKT_RETURN_IF_ERROR(process_faults_.prepare(*options_.faults, stage_topics_, spec, options_.rate));
    }
    if (options_.planned) {
      TAKT_ASSIGN(const transport::PoolPlan pools, transport::plan_pools(spec));
      options_.planned(pools);
    }
    TAKT_ASSIGN(assembly_.transport, transport::make_transport(spec));
    process_faults_.transport_stands();
    if (assembly_.accelerator) {
      TAKT_ASSIGN(const auto blocks, assembly_.transport->memory());
      for (const std::span<std::byte> block : blocks) TAKT_RETURN_IF_ERROR(assembly_.accelerator->lend(block));
    }
    return {};
  }

  // What all stages share: clocks and modes.
  void make_context() {
    for (const sched::ModeTable& mode : modes_) context_.schedules.push_back(mode.schedule.hash().low);
    context_.sensor_from_table.to_origin = origin_;  // table time 0
    context_.stop = options_.stop;
    if (config_.problem.phase_lock) {
      std::vector<Duration> lengths;
      for (const sched::ModeTable& mode : modes_) lengths.push_back(mode.schedule.clock.hyperperiod);
      context_.phase = &phase_.emplace(config_.problem, context_.sensor_from_table, std::move(lengths));
    }
    if (modes_.size() > 1) {
      context_.modes = &control_.emplace(modes_);
      for (std::size_t i = 0; options_.faults != nullptr && i < options_.faults->processes.size(); ++i) {
        const ProcessFault& fault = options_.faults->processes[i];
        if (fault.kind == ProcessFault::Kind::kMode) control_->ask_at(fault.mode, TableTime{fault.at.ns});
      }
    }
  }

  Status make_feeds() {
    feed_of_.assign(rig_.sensors.size(), nullptr);
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      if (sensor_topics_.count(rig_.sensors[s].topic) == 0) continue;
      auto feed = std::make_unique<SensorFeed>();
      feed->sensor = s;
      feed->stamp = opened_.sources[s].stamp;
      feed->ahead = samples_ahead(config_, modes_, s);
      TAKT_ASSIGN(feed->publisher, assembly_.transport->publisher(sensor_topic(rig_.sensors[s])));
      feed_of_[s] = feed.get();
      assembly_.feeds.push_back(std::move(feed));
    }
    return {};
  }

  Status make_hosts() {
    for (std::size_t c = 0; c < stages_.size(); ++c) {
      std::vector<PipelineStageHost::InputPort> ports;
      for (std::size_t i = 0; i < stages_[c].inputs.size(); ++i) {
        TAKT_ASSIGN(auto port, input_port(c, i));
        ports.push_back(std::move(port));
      }
      TAKT_ASSIGN(auto publisher, assembly_.transport->publisher(stage_topics_[c]));
      std::vector<Duration> validity;
      for (const sched::ModeTable& mode : modes_) {
        const std::int64_t rate = std::max<std::int64_t>(1, mode.schedule.choices[c].rate);
        validity.push_back({2 * mode.schedule.clock.hyperperiod.ns / rate});
      }
      assembly_.hosts.push_back(std::make_unique<PipelineStageHost>(
          context_, std::move(created_.variants[c]), std::move(validity), std::move(publisher), std::move(ports)));
      assembly_.hosts.back()->set_load(options_.load);
    }
    // A consumer checks the place of what it takes against its producer's ledger. Producers may come later in the list
    // (feedback), so this waits until every host stands.
    for (std::size_t c = 0; c < stages_.size(); ++c) {
      for (std::size_t i = 0; i < stages_[c].inputs.size(); ++i) {
        if (stages_[c].inputs[i].from_sensor) continue;
        const PipelineStageHost& producer = *assembly_.hosts[stages_[c].inputs[i].source];
        assembly_.hosts[c]->set_producer(i, producer.ledger());
        if (options_.way != Way::kTable) assembly_.hosts[c]->take_newest(i, producer);
      }
    }
    return {};
  }

  Result<PipelineStageHost::InputPort> input_port(std::size_t stage, std::size_t index) {
    const sched::Input& input = stages_[stage].inputs[index];
    const std::string name = input_name(config_, stage, index);
    PipelineStageHost::InputPort port;
    port.required = config_.stages[stage].required[index];
    if (input.from_sensor) {
      SensorFeed& feed = *feed_of_[input.source];
      feed.latched.push_back(std::make_unique<std::atomic<std::int64_t>>(transport::kNoStamp));
      TAKT_ASSIGN(auto subscriber, assembly_.transport->subscriber(sensor_topic(rig_.sensors[input.source]), name));
      port.samples = std::make_unique<transport::SampleBinder>(std::move(subscriber), feed.ahead + 1);
      port.feed = &feed;
      port.reference = config_.problem.phase_lock && config_.problem.phase_lock->sensor == input.source;
      port.latched = feed.latched.back().get();
    } else {
      TAKT_ASSIGN(auto subscriber, assembly_.transport->subscriber(stage_topics_[input.source], name));
      port.jobs = std::make_unique<transport::JobBinder>(std::move(subscriber), input.absence.hold,
                                                         2 * most_jobs(modes_, input.source) + 2);
    }
    return port;
  }

  // Who takes outputs besides stages.
  Status make_outputs() {
    std::vector<std::unique_ptr<transport::Subscriber>> outputs;
    for (const std::string& topic : stage_topics_) {
      TAKT_ASSIGN(auto subscriber, assembly_.transport->subscriber(topic, kRecorder));
      outputs.push_back(std::move(subscriber));
    }
    TAKT_ASSIGN(auto status_publisher, assembly_.transport->publisher(kStatusTopic));
    assembly_.status = std::make_unique<StatusTopic>(std::move(status_publisher));
    if (options_.exported) {
      std::vector<Relay::Topic> relayed;
      std::vector<std::string> names = stage_topics_;
      names.emplace_back(kStatusTopic);
      for (const std::string& name : names) {
        Relay::Topic topic;
        TAKT_ASSIGN(topic.from, assembly_.transport->subscriber(name, kRelay));
        TAKT_ASSIGN(topic.to, assembly_.transport->publisher(export_topic(name)));
        relayed.push_back(std::move(topic));
      }
      assembly_.relay = std::make_unique<Relay>(std::move(relayed));
    }
    assembly_.recorder =
        std::make_unique<Recorder>(config_.problem.board.cores.size(), std::move(outputs), options_.lockstep);
    assembly_.recorder->on_record = [this](const sched::JobRecord& record) { recorded(record); };
    // Undeclared subscribers may come and go during the run: the recorder looks for them now and then.
    assembly_.recorder->on_idle = [this] {
      for (const std::string& topic : assembly_.transport->undeclared_subscribers()) undeclared_.insert(topic);
    };
    return {};
  }

  void make_feeder() {
    gate_ = options_.lockstep ? options_.gate : nullptr;
    if (gate_ != nullptr) gate_->begin(origin_, schedule_.clock.hyperperiod);
    assembly_.feeder =
        std::make_unique<Feeder>(*log_, rig_, assembly_.feeds, context_.run, longest_turn(modes_), gate_);
    context_.feeder = assembly_.feeder.get();
    if (phase_ && control_) {
      control_->reference_lost = [this, seen_in = modes_that_read(config_.problem, modes_)](const sched::Turn& next) {
        if (!seen_in[next.mode] || phase_->silent(next)) look_at_reference(next);
        return phase_->silent(next);
      };
    }
  }

  // Where no job of the mode does, or those that do latch nothing, as their worker has not come back: what has arrived
  // by the boundary is told to the follower. Virtual time waits for the feeder, real time takes what is there.
  void look_at_reference(const sched::Turn& next) {
    const SensorFeed* const reference = feed_of_[config_.problem.phase_lock->sensor];
    if (reference == nullptr) return;
    const SensorTime now = context_.sensor_from_table.map_unchecked(next.begin);
    context_.feeder->want(now);
    while (options_.lockstep && context_.feeder->watermark() < now &&
           (context_.stop == nullptr || !context_.stop->load())) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (const auto stamp = reference->trail.newest(now)) phase_->latched(*stamp);
  }

  // Recorder's thread.
  void recorded(const sched::JobRecord& record) {
    if (options_.device_lost && assembly_.accelerator) {
      if (!lost_in_ && assembly_.accelerator->lost() != nullptr) lost_in_ = record.hyperperiod;
      const bool asked = options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
      if (asked || (lost_in_ && record.hyperperiod > *lost_in_ + 1)) stop_ = true;
    }
    if (gate_ != nullptr) gate_->done(record.slot_end);
    if (options_.progress) {
      const double total = static_cast<double>(hyperperiods_) * schedule_.clock.hyperperiod.seconds();
      options_.progress(static_cast<double>(record.slot_end) * 1e-9, total);
    }
  }

  // They run before any priority or affinity is set.
  void start_helpers() {
    assembly_.recorder->start();
    if (assembly_.relay) assembly_.relay->start();
    assembly_.feeder->start();
  }

  void inject_faults() {
    if (options_.faults == nullptr) return;
    const TableTime table_end{static_cast<std::int64_t>(hyperperiods_) * schedule_.clock.hyperperiod.ns};
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      if (!process_faults_.empty()) assembly_.hosts[s]->inject(&process_faults_);
      if (auto of_stage = faults_of(options_.faults->stages, s); !of_stage.empty()) {
        stage_faults_.push_back(std::make_unique<StageFaults>(std::move(of_stage), budgets_of(stages_[s], modes_, s),
                                                              table_end, options_.rate, options_.stop));
        assembly_.hosts[s]->inject(stage_faults_.back().get());
      }
      if (!faulty_) continue;
      if (auto of_stage = faults_of(options_.faults->devices, s); !of_stage.empty()) {
        device_faults_.push_back(std::make_unique<DeviceFaults>(std::move(of_stage), *faulty_));
        assembly_.hosts[s]->inject(device_faults_.back().get());
      }
    }
  }

  [[nodiscard]] sched::DispatchOptions dispatch_options() {
    sched::DispatchOptions out;
    out.lockstep = options_.lockstep;
    out.hyperperiods = hyperperiods_;
    out.rate = options_.rate;
    out.wait_for_job = options_.wait_for_job;
    out.stop = options_.device_lost ? &stop_ : options_.stop;
    out.watchdog = [this](const sched::WatchdogReport& report) { assembly_.status->tell(report, assembly_.hosts); };
    out.modes = context_.modes;
    if (phase_) {
      out.correction = [this](const sched::Turn& next) {
        if (phase_->silent(next)) look_at_reference(next);
        return phase_->correction(next);
      };
    }
    if (options_.reproduce == nullptr) return out;
    const sched::DispatchResult& before = options_.reproduce->dispatch;
    if (phase_) {
      out.correction = [&before](const sched::Turn& next) {
        return next.number < before.corrections.size() ? before.corrections[next.number] : Duration{};
      };
    }
    out.repeat_changes = before.changes;
    out.reproduce = [index = RecordIndex(*options_.reproduce)](std::uint32_t stage, std::uint64_t job) {
      return index.find(stage, job);
    };
    return out;
  }

  // From the table's start until everything that could stop has stopped.
  Status execute() {
    std::vector<sched::StageHost*> hosts;
    for (const auto& host : assembly_.hosts) hosts.push_back(host.get());
    const sched::DispatchOptions how = dispatch_options();
    std::vector<int> cpus;
    for (const sched::Core& core : config_.problem.board.cores) cpus.push_back(core.cpu);
    HostWatch watch(std::move(cpus));
    if (!options_.lockstep) watch.start();
    const CpuTimes cpu_before = read_cpu_times();
    const auto sink = [this](std::size_t core, const sched::JobRecord& record) {
      assembly_.recorder->push(core, record);
    };
    Result<sched::DispatchResult> dispatched =
        options_.way == Way::kTable
            ? sched::dispatch(config_.problem, modes_, hosts, how, sink)
            : run_without_table(config_.problem, modes_.front(), arrivals_, hosts,
                                {.way = options_.way, .hyperperiods = hyperperiods_, .stop = options_.stop}, sink);
    data_.environment.steal_share = steal_share(cpu_before, read_cpu_times());
    watch.stop();
    assembly_.feeder->stop();
    assembly_.recorder->stop();
    // A relay that was left behind keeps using its ports, a job that hangs on a device its chunks, a worker that could
    // not be stopped all that its stage has: then everything stays, until the process ends.
    bool left_behind = assembly_.relay && !assembly_.relay->stop();
    if (dispatched && dispatched->still_inside) {
      left_behind = true;  // nobody asks the device: who does may not come back either
    } else {
      for (const exec::Offload* const offload : created_.offloads) left_behind = !offload->settle({}) || left_behind;
    }
    if (left_behind) leave_behind(std::move(assembled_));
    for (const auto& host : assembly_.hosts) {
      data_.lost_inputs += host->lost_inputs();
      if (!left_behind) host->release_all();
    }
    if (!dispatched) return fail(std::move(dispatched).error());
    TAKT_RETURN_IF_ERROR(assembly_.feeder->status());
    data_.dispatch = *std::move(dispatched);
    if (!options_.lockstep) {
      data_.host_stalls = watch.stalls(data_.dispatch.started, options_.rate);
      data_.watch_cost = watch.cost();
    }
    return {};
  }

  Status collect() {
    data_.pipeline_name = config_.name;
    data_.log_path = options_.log_path;
    data_.options = opened_.options;
    data_.sought = options_.view.seek.has_value();
    data_.mode = options_.lockstep ? "lockstep" : "real time";
    data_.transport = in_words(options_.backend);
    data_.rate = options_.rate;
    data_.rig = rig_;
    data_.problem = config_.problem;
    data_.schedule = schedule_;
    if (modes_.size() > 1) data_.modes = modes_;
    data_.sensor_from_table = context_.sensor_from_table;
    data_.interrupted = data_.dispatch.stopped;
    if (options_.faults != nullptr) data_.faults = describe_faults(*options_.faults, config_.problem, touched_);
    for (const auto& [role, path] : {std::pair<std::string, std::string>{"log", options_.log_path},
                                     {"pipeline", config_.file},
                                     {"rig", config_.rig_file},
                                     {"board", config_.board_file},
                                     {"binary", executable_path()}}) {
      TAKT_RETURN_IF_ERROR(add_input(role, path));
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) TAKT_RETURN_IF_ERROR(collect_stage(s));
    collect_notes();
    data_.sources = std::move(opened_.sources);
    if (options_.reproduce != nullptr) {
      // A worker that never came back does so here: what it was made to do is not repeated, what it came to is.
      std::vector<std::uint32_t>& stuck = data_.dispatch.stuck;
      const std::vector<std::uint32_t> here = stuck;
      const auto& there = options_.reproduce->dispatch.stuck;
      std::copy_if(there.begin(), there.end(), std::back_inserter(stuck), [&](std::uint32_t stage) {
        return !data_.interrupted && std::find(here.begin(), here.end(), stage) == here.end();
      });
      data_.repeats = came_to(*options_.reproduce);
    }
    collect_records();
    TAKT_ASSIGN(data_.truth, read_truth(options_.log_path));
    return {};
  }

  // "": a bundle's, or a network that takt builds.
  Status add_input(const std::string& role, const std::string& path) {
    if (path.empty()) return {};
    TAKT_ASSIGN(const Digest hash, digest_file(path));
    data_.inputs.push_back({role, path, hash});
    return {};
  }

  Status collect_stage(std::size_t s) {
    const std::string& variant = stages_[s].variants[created_.shown[s]].name;
    const VariantConfig& code = config_.stages[s].variant(variant);
    data_.stages.push_back({code.type, variant, stage_topics_[s]});
    const exec::Session* const session = created_.sessions[s];
    if (session == nullptr) return {};
    const ModelContract* model = code.model.get();
    if (model != nullptr) {
      TAKT_RETURN_IF_ERROR(add_input("contract " + stages_[s].name, model->contract_file));
      TAKT_RETURN_IF_ERROR(add_input("model " + stages_[s].name, model->file));
    }
    data_.plans.push_back(plan_info(static_cast<std::uint32_t>(s), model, *session, created_.counts[s]));
    if (const auto found = session->first_non_finite()) {
      options_.non_finite(stages_[s].name, *found, session->plan());
    }
    return {};
  }

  void collect_notes() {
    std::vector<std::string>& warnings = data_.environment.warnings;
    // First of all warnings: whatever the run computed stands on these values.
    const std::vector<std::string> assumed = assumptions(rig_);
    warnings.insert(warnings.begin(), assumed.begin(), assumed.end());
    if (!options_.lockstep) {
      tell_real_time(data_.dispatch, phase_ ? &*phase_ : nullptr, assembly_.relay.get(), data_);
    }
    for (const sensors::ClockFinding& finding : opened_.findings) {
      warnings.push_back(std::string("clock check, ") + sensors::name_of(finding.fault) + ": " + finding.text);
    }
    if (assembly_.accelerator) {
      data_.schedule_notes.push_back(
          device_note(*assembly_.accelerator, config_.device.target, free_before_, free_loaded_, created_.offloads));
      if (const char* reason = assembly_.accelerator->lost()) {
        warnings.push_back("device " + assembly_.accelerator->device().properties().name + ": " + reason);
        if (options_.device_lost) options_.device_lost(reason);
      }
    }
    for (const std::string& note : opened_.notes) data_.schedule_notes.push_back(note);
    for (const std::string& note : log_->notes()) data_.schedule_notes.push_back(note);
  }

  void collect_records() {
    Recorder& recorder = *assembly_.recorder;
    data_.undeclared_subscribers.assign(undeclared_.begin(), undeclared_.end());
    data_.lost_records = recorder.lost_records();
    data_.lost_outputs = recorder.lost_outputs();
    data_.log_problems = log_->problems();
    data_.digests = recorder.digests(stage_topics_);
    data_.records = std::move(recorder.records());
    data_.objects = std::move(recorder.objects());
    data_.tracks = std::move(recorder.tracks());
    data_.health = assembly_.feeder->health();
    count_unused(data_);
    data_.pools = assembly_.transport->pools();
    data_.pool_use = assembly_.transport->pool_use();
    data_.resident_bytes = memory::resident_bytes();
    data_.allocation_guard = memory::guard_available();
  }

  const PipelineConfig& config_;
  const std::vector<sched::ModeTable>& modes_;
  const RunOptions& options_;
  const sched::Schedule& schedule_;  // the run begins with it
  const std::vector<sched::Stage>& stages_;
  const sensors::Rig& rig_;
  RunData data_;

  std::set<std::string> sensor_topics_;  // of the log, that some stage reads
  OpenedReplay opened_;
  std::unique_ptr<sensors::LogReader> log_;
  std::vector<std::uint64_t> touched_;  // by sensor fault
  SensorTime origin_;
  std::uint64_t hyperperiods_ = 0;
  std::vector<std::vector<std::int64_t>> arrivals_;  // of a run without the table

  std::vector<memory::AlignedBuffer> arenas_;
  std::unique_ptr<Assembly> assembled_ = std::make_unique<Assembly>();
  Assembly& assembly_ = *assembled_;                 // stands when it is left behind, too
  std::shared_ptr<device::FaultDevice> faulty_;      // stands before the device of a run whose device shall fail
  std::uint64_t free_before_ = 0, free_loaded_ = 0;  // bytes of the device, with all plans loaded
  RunStages created_;
  std::vector<std::string> stage_topics_;

  std::optional<HousekeepingAffinity> on_reserve_;
  ProcessFaults process_faults_;
  RunContext context_;
  std::optional<PhaseFollower> phase_;
  std::optional<sched::ModeControl> control_;
  std::vector<SensorFeed*> feed_of_;  // by sensor of the rig; null: no stage reads it
  ReplayGate* gate_ = nullptr;
  std::atomic<bool> stop_{false};  // stands for options_.stop where a lost device ends the run as well
  std::optional<std::uint64_t> lost_in_;
  std::set<std::string> undeclared_;
  std::vector<std::unique_ptr<StageFaults>> stage_faults_;
  std::vector<std::unique_ptr<DeviceFaults>> device_faults_;
};

}  // namespace

Result<RunData> run_pipeline(const PipelineConfig& config, const sched::Schedule& schedule, const RunOptions& options) {
  return run_pipeline(config, std::vector<sched::ModeTable>{sched::only_table(config.problem, schedule)}, options);
}

Result<RunData> run_pipeline(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                             const RunOptions& options) {
  return Run(config, modes, options).run();
}

}  // namespace takt::pipeline
