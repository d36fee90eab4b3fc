#include "pipeline/assembly/runner.h"

#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "pipeline/assembly/device_faults.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/assembly/event_executor.h"
#include "pipeline/assembly/faulty_log.h"
#include "pipeline/assembly/feeder.h"
#include "pipeline/assembly/host_watch.h"
#include "pipeline/assembly/plan_info.h"
#include "pipeline/assembly/process_faults.h"
#include "pipeline/assembly/recorder.h"
#include "pipeline/assembly/relay.h"
#include "pipeline/assembly/stage_faults.h"
#include "pipeline/assembly/stage_host.h"
#include "pipeline/messages/status.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/results.h"
#include "pipeline/report/text.h"
#include "pipeline/report/verdict.h"
#include "runtime/device/device.h"
#include "runtime/exec/offload.h"
#include "runtime/exec/session.h"
#include "runtime/exec/state.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/alloc_guard.h"
#include "runtime/memory/process.h"
#include "sensors/logs/log_tools.h"

namespace takt::pipeline {
namespace {

using transport::SubscriberSpec;
using transport::TopicSpec;

constexpr const char* kRelay = "relay";
constexpr const char* kStatusTopic = "/status";
// For all observers of an export topic together. Who keeps more than these misses what comes next.
constexpr std::uint32_t kObserverChunks = 8;

std::string export_topic(const std::string& topic) { return "/export" + topic; }

std::string sensor_topic(const sensors::RigSensor& sensor) { return "/sensor/" + sensor.name; }

// The longest time between two consecutive starts of a stage in the cyclic table; none where it does not run.
Duration longest_gap(const sched::Schedule& schedule, std::size_t stage) {
  std::vector<sched::Tick> starts;
  for (const sched::Slot& slot : schedule.slots) {
    if (slot.stage == stage && slot.segment == 0) starts.push_back(slot.start);
  }
  if (starts.empty()) return {};
  std::sort(starts.begin(), starts.end());
  sched::Tick gap = starts.front() + schedule.clock.ticks - starts.back();
  for (std::size_t i = 1; i < starts.size(); ++i) gap = std::max(gap, starts[i] - starts[i - 1]);
  return schedule.clock.start_at(0, gap) - TableTime{0};
}

// The longest time from a boundary to the end of a hyperperiod that begins there or behind a drain.
Duration longest_turn(const std::vector<sched::ModeTable>& modes) {
  Duration longest;
  for (const sched::ModeTable& mode : modes) {
    longest = std::max(longest, mode.entry_drain + mode.schedule.clock.hyperperiod);
  }
  return longest;
}

// The longest time between two consecutive starts, over a change of mode as well, from one that runs the stage to
// another.
Duration longest_gap(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  Duration gap;
  for (const sched::ModeTable& mode : modes) gap = std::max(gap, longest_gap(mode.schedule, stage));
  return modes.size() == 1 ? gap : gap + longest_turn(modes);
}

// The most jobs of a stage between two of its consumer's.
std::uint32_t most_jobs(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::int64_t most = 0;
  for (const sched::ModeTable& mode : modes) most = std::max(most, mode.schedule.choices[stage].rate);
  if (modes.size() == 1) return static_cast<std::uint32_t>(most);
  // Those of the hyperperiod before the change, and those of the longest one behind it.
  Duration shortest = longest_turn(modes);
  for (const sched::ModeTable& mode : modes) shortest = std::min(shortest, mode.schedule.clock.hyperperiod);
  return static_cast<std::uint32_t>(most * (1 + (longest_turn(modes).ns + shortest.ns - 1) / shortest.ns));
}

std::uint32_t jobs_per_second(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::int64_t most = 0;
  for (const sched::ModeTable& mode : modes) {
    most = std::max(most, 1'000'000'000 / mode.schedule.clock.hyperperiod.ns * mode.schedule.choices[stage].rate);
  }
  return static_cast<std::uint32_t>(most);
}

// A: how many samples of a sensor may wait beyond the last latch of its slowest consumer. Everything that can arrive
// until that consumer's next latch, one partial period at each end, one more so that the feeder decodes meanwhile. One
// figure per topic, since a fast consumer's queue, too, fills up to what the slowest lets the feeder publish.
std::uint32_t samples_ahead(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                            std::size_t sensor) {
  Duration gap;
  const auto& stages = config.problem.stages;
  for (std::size_t c = 0; c < stages.size(); ++c) {
    for (const sched::Input& input : stages[c].inputs) {
      if (input.from_sensor && input.source == sensor) gap = std::max(gap, longest_gap(modes, c));
    }
  }
  const sensors::RigSensor& s = config.rig->sensors[sensor];
  return static_cast<std::uint32_t>((gap + s.delay_max() - s.delay_min()).ns / s.period.ns) + 3;
}

std::string input_name(const PipelineConfig& config, std::size_t stage, std::size_t input) {
  return config.stages[stage].name + "/" + config.problem.stages[stage].inputs[input].name;
}

// While it lives, threads that this one creates (RouDi's, feeder, recorder) stay on the cores with a housekeeping
// reserve, whose share of time the admission has kept free for them. Refused affinity changes nothing.
class HousekeepingAffinity {
 public:
  explicit HousekeepingAffinity(const sched::Board& board) {
    cpu_set_t reserved;
    CPU_ZERO(&reserved);
    for (const sched::Core& core : board.cores) {
      if (core.reserve > 0) CPU_SET(static_cast<unsigned>(core.cpu), &reserved);
    }
    if (CPU_COUNT(&reserved) == 0 || pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
    set_ = pthread_setaffinity_np(pthread_self(), sizeof reserved, &reserved) == 0;
  }
  ~HousekeepingAffinity() {
    if (set_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }
  HousekeepingAffinity(const HousekeepingAffinity&) = delete;
  HousekeepingAffinity& operator=(const HousekeepingAffinity&) = delete;

 private:
  cpu_set_t before_{};
  bool set_ = false;
};

// The watchdog's own topic. Its next chunk is always there already.
class StatusTopic {
 public:
  explicit StatusTopic(std::unique_ptr<transport::Publisher> publisher)
      : publisher_(std::move(publisher)), next_(publisher_->loan()) {}
  ~StatusTopic() {
    if (next_) publisher_->discard(next_);
  }
  StatusTopic(const StatusTopic&) = delete;
  StatusTopic& operator=(const StatusTopic&) = delete;

  // Watchdog's thread.
  void tell(const sched::WatchdogReport& report, const std::vector<std::unique_ptr<PipelineStageHost>>& hosts) {
    if (!next_) next_ = publisher_->loan();
    if (!next_) return;
    auto& status = *reinterpret_cast<RunStatus*>(next_.payload);
    status = {};
    status.now_ns = report.now.ns;
    status.hyperperiod = report.hyperperiod;
    status.trips = report.trips;
    status.reached_ns = report.reached.ns;
    status.late_core = report.core.value_or(kNoCore);
    status.stage_count = static_cast<std::uint32_t>(std::min<std::size_t>(hosts.size(), kMaxStatusStages));
    for (std::uint32_t s = 0; s < status.stage_count; ++s) {
      StageStatus& stage = status.stages[s];
      stage.jobs = hosts[s]->published_jobs();
      stage.valid_until_ns = hosts[s]->valid_until().ns;
      stage.stale = stage.jobs > 0 && report.now > hosts[s]->valid_until() ? 1 : 0;
    }
    next_.header->job = told_++;
    next_.header->hyperperiod = report.hyperperiod;
    next_.header->payload_bytes = sizeof(RunStatus);
    publisher_->publish(next_);
    next_ = publisher_->loan();
  }

 private:
  std::unique_ptr<transport::Publisher> publisher_;
  transport::Publisher::Loan next_;
  std::uint64_t told_ = 0;
};

// Everything a run consists of, destroyed in the right order: ports before the transport, stages before the memory that
// their device was shown.
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

// Table time 0 in sensor time. A phase-locked sensor decides it: its stamps then fall where the table expects them.
Result<SensorTime> table_origin(sensors::LogReader& log, const PipelineConfig& config) {
  const auto span = log.span();
  if (!span) return fail(Code::kInput, "the log has no messages on the topics of rig '" + config.rig->name + "'");
  SensorTime origin = span->first;
  for (const sensors::RigSensor& sensor : config.rig->sensors) {
    if (!sensor.phase) continue;
    log.rewind();
    for (;;) {
      TAKT_ASSIGN(std::optional<sensors::LogMessage> message, log.next());
      if (!message) break;
      if (message->channel->topic != sensor.topic) continue;
      // A wrong stamp (zero, another clock) decides nothing.
      if (message->capture > message->arrival || message->arrival - message->capture > seconds(3600)) continue;
      const std::int64_t h = config.problem.hyperperiod.ns;
      std::int64_t origin_ns = message->capture.ns - sensor.phase->ns;
      while (origin_ns > span->first.ns) origin_ns -= h;
      log.rewind();
      return SensorTime{origin_ns};
    }
  }
  log.rewind();
  return origin;
}

// What the rig file marks as assumed, a line per sensor that has such values.
std::vector<std::string> assumptions(const sensors::Rig& rig) {
  std::vector<std::string> out;
  for (const sensors::RigSensor& sensor : rig.sensors) {
    if (sensor.assumed.empty()) continue;
    std::string keys;
    for (const std::string& key : sensor.assumed) keys += (keys.empty() ? "" : ", ") + key;
    out.push_back("sensor '" + sensor.name + "': assumed, not measured: " + keys);
  }
  return out;
}

// Those of one stage.
template <class Fault>
std::vector<Fault> faults_of(const std::vector<Fault>& all, std::uint32_t stage) {
  std::vector<Fault> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [stage](const Fault& fault) { return fault.stage == stage; });
  return out;
}

// What a job of the stage may take, by mode and variant. 0 of one that the mode cannot run.
std::vector<std::vector<Duration>> budgets_of(const sched::Stage& stage, const std::vector<sched::ModeTable>& modes,
                                              std::size_t s) {
  std::vector<std::vector<Duration>> out;
  for (const sched::ModeTable& mode : modes) {
    const sched::Choice& choice = mode.schedule.choices[s];
    std::vector<Duration>& budgets = out.emplace_back();
    for (std::uint32_t v = 0; v < stage.variants.size(); ++v) {
      Duration budget;
      for (const sched::Budget& one : stage.variants[v].budgets) {
        if (one.cores == choice.budget.cores) budget = one.time;
      }
      budgets.push_back(v == choice.variant ? choice.budget.time : budget);
    }
  }
  return out;
}

// Arrivals of every sensor's messages in table time, ascending.
Result<std::vector<std::vector<std::int64_t>>> read_arrivals(sensors::LogReader& log, const sensors::Rig& rig,
                                                             SensorTime origin) {
  std::vector<std::vector<std::int64_t>> out(rig.sensors.size());
  for (;;) {
    TAKT_ASSIGN(const std::optional<sensors::LogMessage> message, log.next());
    if (!message) break;
    for (std::size_t s = 0; s < out.size(); ++s) {
      if (rig.sensors[s].topic == message->channel->topic) out[s].push_back((message->arrival - origin).ns);
    }
  }
  log.rewind();
  return out;
}

Result<std::vector<TruthFrame>> read_truth(const std::string& log_path) {
  std::vector<TruthFrame> out;
  TAKT_RETURN_IF_ERROR(
      sensors::for_each_truth(log_path, [&](const sensors::log::Truth& truth) { out.push_back(truth_frame(truth)); }));
  std::sort(out.begin(), out.end(), [](const TruthFrame& a, const TruthFrame& b) { return a.stamp < b.stamp; });
  return out;
}

// One block of memory per mutex of arenas, as large as the largest arena under it.
Result<std::vector<memory::AlignedBuffer>> shared_arenas(const PipelineConfig& config) {
  std::vector<std::uint64_t> bytes(config.problem.mutexes.size(), 0);
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (const sched::Variant& variant : config.problem.stages[s].variants) {
      const auto& plan = config.stages[s].variant(variant.name).plan;
      if (variant.arena_mutex && plan) {
        bytes[*variant.arena_mutex] = std::max(bytes[*variant.arena_mutex], plan->description().arena_bytes);
      }
    }
  }
  std::vector<memory::AlignedBuffer> out(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    TAKT_ASSIGN(out[i], memory::AlignedBuffer::create(bytes[i]));
  }
  return out;
}

// The variants of a stage that some mode runs or degrades to, the first mode's first, and on how many cores each.
std::vector<std::pair<std::uint32_t, int>> variants_in(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::vector<std::pair<std::uint32_t, int>> out;
  const auto add = [&out](std::uint32_t variant, int cores) {
    if (std::none_of(out.begin(), out.end(), [variant](const auto& known) { return known.first == variant; })) {
      out.emplace_back(variant, cores);
    }
  };
  for (const sched::ModeTable& mode : modes) {
    if (mode.runs(stage)) add(mode.schedule.choices[stage].variant, mode.schedule.choices[stage].budget.cores);
  }
  for (const sched::ModeTable& mode : modes) {
    if (mode.runs(stage) && mode.degraded[stage]) add(*mode.degraded[stage], mode.schedule.choices[stage].budget.cores);
  }
  return out;
}

Result<std::vector<PipelineStageHost::VariantStage>> create_variants(const PipelineConfig& config,
                                                                     const std::vector<sched::ModeTable>& modes,
                                                                     std::size_t s,
                                                                     const std::vector<memory::AlignedBuffer>& arenas,
                                                                     const std::shared_ptr<exec::Accelerator>& device) {
  const sched::Stage& stage = config.problem.stages[s];
  const std::vector<std::pair<std::uint32_t, int>> indices = variants_in(modes, s);
  if (indices.empty()) return fail(Code::kConfiguration, config.file + ": no mode runs stage '" + stage.name + "'");
  std::vector<PipelineStageHost::VariantStage> out;
  // Variants go on with each other's state. It lies where all of them see it.
  std::shared_ptr<exec::StateStore> state;
  device::Device* home = &device::cpu();
  for (const auto& [v, cores] : indices) {
    if (config.stages[s].variant(stage.variants[v].name).on_device) home = &device->device();
  }
  for (const auto& [v, cores] : indices) {
    const sched::Variant& variant = stage.variants[v];
    const std::span<std::byte> arena =
        variant.arena_mutex ? arenas[*variant.arena_mutex].span() : std::span<std::byte>{};
    const VariantConfig& code = config.stages[s].variant(variant.name);
    const bool keeps = code.plan && !code.plan->description().states.empty();
    if (indices.size() > 1 && !state && keeps) {
      TAKT_ASSIGN(state, exec::StateStore::create(code.plan, *home));
    }
    TAKT_ASSIGN(auto created, config.create(s, v, arena, device, state).map_error([&](Error error) {
      return std::move(error).with_context(config.file + ": stage '" + stage.name + "', variant '" + variant.name +
                                           "', which goes on with the state of another");
    }));
    std::vector<Duration> worst_case;
    for (const sched::Budget& budget : variant.budgets) {
      // A job on a device is one phase: between its steps nobody can give it up.
      if (budget.cores == cores && created->offload() == nullptr) worst_case = budget.steps;
    }
    out.push_back({v, std::move(created), std::move(worst_case)});
  }
  return out;
}

// What the networks of this run ran on, and what that took.
std::string device_note(const exec::Accelerator& accelerator, kernels::Target target, std::uint64_t free_before,
                        std::uint64_t free_loaded, const std::vector<const exec::Offload*>& offloads) {
  std::uint64_t copied = 0;
  Duration launch, on_device;
  for (const exec::Offload* offload : offloads) {
    copied += offload->copied_bytes();
    launch = std::max(launch, offload->longest_launch());
    on_device = std::max(on_device, offload->longest_on_device());
  }
  const bool in_place = accelerator.exchange() == exec::Exchange::kInPlace;
  std::string text = "graphs ran on device " + accelerator.device().properties().name + " (plans for " +
                     kernels::name_of(target) + "), which " +
                     (in_place ? "reads chunks in place" : "works on copies of chunks") + ": " +
                     std::to_string(copied) + " bytes copied, a job handed over within " + ms_text(launch) +
                     " and done within " + ms_text(on_device) + " of its time";
  if (free_before > 0) {
    text += "; " + std::to_string(free_before >> 20) + " MiB of its memory were free before, " +
            std::to_string(free_loaded >> 20) + " MiB with all plans loaded";
  }
  return text;
}

// By mode: whether some job of it looks at the reference of the phase lock.
std::vector<bool> modes_that_read(const sched::Problem& problem, const std::vector<sched::ModeTable>& modes) {
  std::vector<bool> out;
  for (const sched::ModeTable& mode : modes) {
    bool reads = false;
    for (std::size_t s = 0; s < problem.stages.size(); ++s) {
      const std::vector<sched::Input>& inputs = problem.stages[s].inputs;
      for (std::size_t i = 0; i < inputs.size() && mode.runs(s); ++i) {
        const bool reference = inputs[i].from_sensor && inputs[i].source == problem.phase_lock->sensor;
        reads = reads || (reference && mode.reads[s][i] != 0);
      }
    }
    out.push_back(reads);
  }
  return out;
}

// In a mode in which no job does: what has arrived by the boundary is told to the follower, so that it sees the
// reference come back. Virtual time waits for the feeder, real time takes what is there.
void look_at_reference(const sched::Turn& next, const RunContext& context, const SensorFeed& reference, bool lockstep) {
  const SensorTime now = context.sensor_from_table.map_unchecked(next.begin);
  context.feeder->want(now);
  while (lockstep && context.feeder->watermark() < now && (context.stop == nullptr || !context.stop->load())) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (const auto stamp = reference.trail.newest(now)) context.phase->latched(*stamp);
}

constexpr Duration kCalibration = milliseconds(300);

void tell_calibration(const sched::Board& board, const sched::WakeupErrors& errors, RunData& data) {
  std::string text = "calibration before the run, threads that only sleep for a millisecond " +
                     std::to_string(kCalibration.ns / 1'000'000) +
                     " times at the dispatchers' priority: late by at most";
  for (std::size_t core = 0; core < board.cores.size(); ++core) {
    const Duration window = board.cores[core].wakeup_window;
    text += (core == 0 ? " " : ", ") + ms_text(errors.max[core]) + " on " + board.cores[core].name;
    if (errors.max[core] > window) {
      data.environment.warnings.push_back("a thread that only sleeps was woken " + ms_text(errors.max[core]) +
                                          " late on " + board.cores[core].name + " before the run, jobs may be by " +
                                          ms_text(window));
    }
  }
  data.schedule_notes.push_back(std::move(text));
}

// Delivered samples that no job ever used, from the records.
void count_unused(RunData& data) {
  for (SensorHealth& health : data.health) {
    const auto sensor = data.rig.find(health.sensor);
    if (!sensor) continue;
    std::set<std::uint64_t> used;
    for (const sched::JobRecord& record : data.records) {
      const std::vector<sched::Input>& inputs = data.problem.stages[record.stage].inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].from_sensor && inputs[i].source == *sensor && record.inputs[i].kind <= 1) {
          used.insert(record.inputs[i].job);
        }
      }
    }
    health.unused = health.delivered - std::min<std::uint64_t>(health.delivered, used.size());
  }
}

}  // namespace

transport::TransportSpec plan_transport(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                                        const std::vector<std::uint64_t>& stage_output_bytes,
                                        transport::Backend backend, bool lossless, std::uint64_t run, bool exported) {
  transport::TransportSpec spec;
  spec.backend = backend;
  spec.run = run;
  const auto& stages = config.problem.stages;
  for (std::size_t s = 0; s < config.rig->sensors.size(); ++s) {
    const sensors::RigSensor& sensor = config.rig->sensors[s];
    TopicSpec topic{
        sensor_topic(sensor), sensors::payload_schema(sensor.kind), sensors::payload_capacity(sensor), 1, {}};
    const std::uint32_t ahead = samples_ahead(config, modes, s);
    for (std::size_t c = 0; c < stages.size(); ++c) {
      for (std::size_t i = 0; i < stages[c].inputs.size(); ++i) {
        if (!stages[c].inputs[i].from_sensor || stages[c].inputs[i].source != s) continue;
        // Held: everything that waits, plus the sample in use.
        topic.subscribers.push_back({input_name(config, c, i), ahead, ahead + 1});
      }
    }
    if (!topic.subscribers.empty()) spec.topics.push_back(std::move(topic));
  }
  for (std::size_t p = 0; p < stages.size(); ++p) {
    const std::uint32_t jobs = most_jobs(modes, p);
    // A lost device keeps the chunk that it was to write.
    const auto& variants = config.stages[p].variants;
    const bool on_device = std::any_of(variants.begin(), variants.end(), [](const auto& v) { return v.on_device; });
    TopicSpec topic{config.stages[p].topic(), 0, stage_output_bytes[p], on_device ? 2U : 1U, {}};
    for (std::size_t c = 0; c < stages.size(); ++c) {
      for (std::size_t i = 0; i < stages[c].inputs.size(); ++i) {
        if (stages[c].inputs[i].from_sensor || stages[c].inputs[i].source != p) continue;
        // A consumer runs at least once a hyperperiod; bindings reach back one hyperperiod at most.
        topic.subscribers.push_back({input_name(config, c, i), jobs + 1, 2 * jobs + 2});
      }
    }
    // The recorder lives on the housekeeping reserve: one second of outputs may wait for it. In lockstep it paces.
    const std::uint32_t second = jobs_per_second(modes, p);
    topic.subscribers.push_back({"recorder", lossless ? 16 : std::min<std::uint32_t>(second + 4, 200), 2});
    if (exported) topic.subscribers.push_back({kRelay, std::min<std::uint32_t>(second + 4, 200), 1});
    spec.topics.push_back(std::move(topic));
  }
  // The watchdog keeps a chunk loaned, so that it never has to ask for one when something is wrong.
  TopicSpec status{kStatusTopic, kStatusSchema, sizeof(RunStatus), 2, {}};
  if (exported) status.subscribers.push_back({kRelay, 16, 1});
  spec.topics.push_back(std::move(status));
  if (exported) {
    spec.external_clients = true;
    const std::size_t timed = spec.topics.size();
    for (std::size_t t = timed - stages.size() - 1; t < timed; ++t) {
      const TopicSpec of = spec.topics[t];
      spec.topics.push_back({export_topic(of.name), of.schema, of.payload_capacity, 1, {}, kObserverChunks});
    }
    transport::give_export_classes(spec);
  }
  return spec;
}

Result<sched::Schedule> with_cores(const sched::Problem& problem, sched::Schedule schedule, const std::string& stage,
                                   int cores) {
  const auto& stages = problem.stages;
  std::size_t index = 0;
  while (index < stages.size() && stages[index].name != stage) ++index;
  if (index == stages.size()) return fail(Code::kUsage, "no stage is called '" + stage + "'");
  sched::Choice& choice = schedule.choices[index];
  const sched::Budget* found = nullptr;
  for (const sched::Budget& budget : stages[index].variants[choice.variant].budgets) {
    if (budget.cores == cores) found = &budget;
  }
  if (found == nullptr || cores > choice.budget.cores) {
    return fail(Code::kConfiguration, "stage '" + stage + "' has no budget for " + std::to_string(cores) +
                                          " core(s) within its slots of " + std::to_string(choice.budget.cores));
  }
  if (found->time > choice.budget.time) {
    return fail(Code::kConfiguration, "stage '" + stage + "' on " + std::to_string(cores) + " core(s) needs " +
                                          std::to_string(found->time.ms()) + " ms, its slots give " +
                                          std::to_string(choice.budget.time.ms()));
  }
  for (sched::Slot& slot : schedule.slots) {
    if (slot.stage == index && !slot.unit) slot.cores.erase(slot.cores.begin(), slot.cores.end() - cores);
  }
  choice.budget = *found;  // the slots stay as they are
  return schedule;
}

namespace {

// A stage's plan is one piece of work for one unit, between what comes before and behind it on the cores. In virtual
// time the cores may do that work too: a table is tried, and gives its bytes, where its device is not.
Status check_segments(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes, bool lockstep) {
  for (const sched::ModeTable& mode : modes) {
    for (std::size_t s = 0; s < config.problem.stages.size(); ++s) {
      const sched::Stage& stage = config.problem.stages[s];
      const sched::Choice& choice = mode.schedule.choices[s];
      const std::vector<sched::Segment>& segments = choice.budget.segments;
      if (!mode.runs(s) || segments.empty()) continue;
      const auto on_cores = [&](std::uint32_t v) {
        return !config.stages[s].variant(stage.variants[v].name).on_device;
      };
      const auto& degraded = mode.degraded[s];
      const std::uint32_t wrong = degraded && !on_cores(choice.variant) ? *degraded : choice.variant;
      const sched::Variant& variant = stage.variants[wrong];
      const auto refuse = [&](const std::string& what) {
        return fail(Code::kConfiguration,
                    config.file + ": stage '" + stage.name + "', variant '" + variant.name + "': " + what);
      };
      if (segments.size() != 3 || segments[0].unit || !segments[1].unit || segments[2].unit) {
        return refuse(
            "a job of a pipeline is submission on the cores, one unit, completion on the cores; its budget has " +
            std::to_string(segments.size()) + " segments in another order");
      }
      if (!lockstep && on_cores(wrong)) {
        return refuse("its budget has a segment on unit '" + config.problem.board.units[*segments[1].unit].name +
                      "', but it runs on the cores. Name the device with --device, replay with --lockstep, or give it "
                      "one budget on the cores");
      }
    }
  }
  return {};
}

}  // namespace

Result<RunData> run_pipeline(const PipelineConfig& config, const sched::Schedule& schedule, const RunOptions& options) {
  return run_pipeline(config, std::vector<sched::ModeTable>{sched::only_table(config.problem, schedule)}, options);
}

Result<RunData> run_pipeline(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                             const RunOptions& options) {
  const auto& stages = config.problem.stages;
  const sensors::Rig& rig = *config.rig;
  const sched::Schedule& schedule = modes.front().schedule;  // the run begins with it
  TAKT_RETURN_IF_ERROR(check_segments(config, modes, options.lockstep));

  // The log first: most mistakes are there.
  std::set<std::string> topic_set;
  for (const sched::Stage& stage : stages) {
    for (const sched::Input& input : stage.inputs) {
      if (input.from_sensor) topic_set.insert(rig.sensors[input.source].topic);
    }
  }
  const std::vector<std::string> topics(topic_set.begin(), topic_set.end());
  TAKT_ASSIGN(OpenedReplay opened, open_replay(options.log_path, rig, topics, options.view));
  std::unique_ptr<sensors::LogReader> log = std::move(opened.log);
  if (options.through) log = options.through(std::move(log));
  std::vector<std::uint64_t> touched;  // by sensor fault
  if (options.faults != nullptr) log = with_sensor_faults(std::move(log), rig, options.faults->sensors, &touched);
  TAKT_ASSIGN(const SensorTime origin, table_origin(*log, config));
  if (options.reproduce != nullptr && options.reproduce->sensor_from_table.to_origin != origin) {
    return fail(Code::kInput,
                "this is another part of the log than the run to reproduce had; give the same --start, "
                "--end, --topics, --exclude and --remap");
  }
  const std::int64_t h = schedule.clock.hyperperiod.ns;
  const std::int64_t log_ns = (log->span()->second - origin).ns;
  std::uint64_t hyperperiods = static_cast<std::uint64_t>(log_ns / h) + 2;  // the last samples still come through
  if (options.max_hyperperiods > 0) hyperperiods = std::min(hyperperiods, options.max_hyperperiods);
  if (options.reproduce != nullptr) hyperperiods = options.reproduce->dispatch.hyperperiods_run;
  if (options.faults != nullptr) {
    const auto span = log->span();
    TAKT_RETURN_IF_ERROR(check_reach(*options.faults, config.problem, modes, hyperperiods, span->second - span->first));
  }

  std::vector<std::vector<std::int64_t>> arrivals;
  if (options.way != Way::kTable) {
    TAKT_ASSIGN(arrivals, read_arrivals(*log, rig, origin));
  }

  RunData data;
  data.environment = read_environment();

  // Stages allocate everything now.
  TAKT_ASSIGN(const std::vector<memory::AlignedBuffer> arenas, shared_arenas(config));
  auto assembled = std::make_unique<Assembly>();
  Assembly& assembly = *assembled;
  const std::uint64_t free_before = config.device.device ? config.device.device->free_bytes() : 0;
  std::vector<const exec::Offload*> offloads;   // of all variants. The hosts own them
  std::shared_ptr<device::FaultDevice> faulty;  // stands before the device of a run whose device shall fail
  const bool device_fails = options.faults != nullptr && !options.faults->devices.empty();
  if (config.device.device) {
    std::shared_ptr<device::Device> device = config.device.device;
    if (device_fails) device = faulty = device::FaultDevice::create(*device, {});
    assembly.accelerator = std::make_shared<exec::Accelerator>(std::move(device), config.device.exchange);
  }
  std::vector<std::vector<PipelineStageHost::VariantStage>> created;  // until the hosts take them
  std::vector<std::uint64_t> output_bytes;
  std::vector<std::uint32_t> shown;           // by stage: the variant that the report speaks of, the first mode's
  std::vector<exec::Session*> sessions;       // of it; null for plain code. The hosts own the stages
  std::vector<const exec::CountLog*> counts;  // the same
  for (std::size_t s = 0; s < stages.size(); ++s) {
    TAKT_ASSIGN(auto variants, create_variants(config, modes, s, arenas, assembly.accelerator));
    const Stage& stage = *variants.front().stage;
    shown.push_back(variants.front().index);
    sessions.push_back(variants.front().stage->session());
    counts.push_back(variants.front().stage->counts());
    if (sessions.back() != nullptr) sessions.back()->enable_profile(true);
    if (sessions.back() != nullptr && options.non_finite) TAKT_RETURN_IF_ERROR(sessions.back()->watch(true));
    output_bytes.push_back(stage.output_bytes());
    for (const auto& variant : variants) {
      if (variant.stage->offload() != nullptr) offloads.push_back(variant.stage->offload());
      output_bytes.back() = std::max(output_bytes.back(), variant.stage->output_bytes());
    }
    created.push_back(std::move(variants));
  }

  const std::uint64_t free_loaded = assembly.accelerator ? assembly.accelerator->device().free_bytes() : 0;

  // What this machine does to threads that only sleep, while nothing else of the run is there yet.
  if (!options.lockstep) {
    TAKT_ASSIGN(const sched::WakeupErrors calibration, sched::measure_sleep(config.problem.board, kCalibration));
    tell_calibration(config.problem.board, calibration, data);
  }

  // Transport and all ports. The random token keeps runs apart; it reaches no digest.
  const std::uint64_t run_token = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  std::optional<HousekeepingAffinity> on_reserve;
  if (!options.lockstep) on_reserve.emplace(config.problem.board);
  transport::TransportSpec transport_spec =
      plan_transport(config, modes, output_bytes, options.backend, options.lockstep, run_token, options.exported);
  std::vector<std::string> stage_topics;
  for (const StageConfig& stage : config.stages) stage_topics.push_back(stage.topic());
  ProcessFaults process_faults;
  if (options.faults != nullptr) {
    ProcessFaults::declare(*options.faults, stage_topics, transport_spec);
    TAKT_RETURN_IF_ERROR(process_faults.prepare(*options.faults, stage_topics, transport_spec));
  }
  if (options.planned) {
    TAKT_ASSIGN(const transport::PoolPlan pools, transport::plan_pools(transport_spec));
    options.planned(pools);
  }
  TAKT_ASSIGN(assembly.transport, transport::make_transport(transport_spec));
  process_faults.transport_stands();
  if (assembly.accelerator) {
    TAKT_ASSIGN(const auto blocks, assembly.transport->memory());
    for (const std::span<std::byte> block : blocks) TAKT_RETURN_IF_ERROR(assembly.accelerator->lend(block));
  }
  RunContext context;
  context.run = run_token;
  for (const sched::ModeTable& mode : modes) context.schedules.push_back(mode.schedule.hash().low);
  context.sensor_from_table.to_origin = origin;  // table time 0
  context.stop = options.stop;
  std::optional<PhaseFollower> phase;
  if (config.problem.phase_lock) {
    std::vector<Duration> lengths;
    for (const sched::ModeTable& mode : modes) lengths.push_back(mode.schedule.clock.hyperperiod);
    context.phase = &phase.emplace(config.problem, context.sensor_from_table, std::move(lengths));
  }
  std::optional<sched::ModeControl> control;
  if (modes.size() > 1) {
    context.modes = &control.emplace(modes);
    for (std::size_t i = 0; options.faults != nullptr && i < options.faults->processes.size(); ++i) {
      const ProcessFault& fault = options.faults->processes[i];
      if (fault.kind == ProcessFault::Kind::kMode) control->ask_at(fault.mode, TableTime{fault.at.ns});
    }
  }

  std::vector<SensorFeed*> feed_of(rig.sensors.size(), nullptr);
  for (std::size_t s = 0; s < rig.sensors.size(); ++s) {
    if (topic_set.count(rig.sensors[s].topic) == 0) continue;
    auto feed = std::make_unique<SensorFeed>();
    feed->sensor = s;
    feed->stamp = opened.sources[s].stamp;
    feed->ahead = samples_ahead(config, modes, s);
    TAKT_ASSIGN(feed->publisher, assembly.transport->publisher(sensor_topic(rig.sensors[s])));
    feed_of[s] = feed.get();
    assembly.feeds.push_back(std::move(feed));
  }
  for (std::size_t c = 0; c < stages.size(); ++c) {
    std::vector<PipelineStageHost::InputPort> ports(stages[c].inputs.size());
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const sched::Input& input = stages[c].inputs[i];
      PipelineStageHost::InputPort& port = ports[i];
      port.required = config.stages[c].required[i];
      if (input.from_sensor) {
        SensorFeed& feed = *feed_of[input.source];
        const sensors::RigSensor& sensor = rig.sensors[input.source];
        feed.latched.push_back(std::make_unique<std::atomic<std::int64_t>>(transport::kNoStamp));
        TAKT_ASSIGN(auto subscriber, assembly.transport->subscriber(sensor_topic(sensor), input_name(config, c, i)));
        port.samples = std::make_unique<transport::SampleBinder>(std::move(subscriber), feed.ahead + 1);
        port.feed = &feed;
        port.reference = config.problem.phase_lock && config.problem.phase_lock->sensor == input.source;
        port.latched = feed.latched.back().get();
      } else {
        TAKT_ASSIGN(auto subscriber,
                    assembly.transport->subscriber(config.stages[input.source].topic(), input_name(config, c, i)));
        port.jobs = std::make_unique<transport::JobBinder>(std::move(subscriber), input.absence.hold,
                                                           2 * most_jobs(modes, input.source) + 2);
      }
    }
    TAKT_ASSIGN(auto publisher, assembly.transport->publisher(config.stages[c].topic()));
    std::vector<Duration> validity;
    for (const sched::ModeTable& mode : modes) {
      const std::int64_t rate = std::max<std::int64_t>(1, mode.schedule.choices[c].rate);
      validity.push_back({2 * mode.schedule.clock.hyperperiod.ns / rate});
    }
    assembly.hosts.push_back(std::make_unique<PipelineStageHost>(context, std::move(created[c]), std::move(validity),
                                                                 std::move(publisher), std::move(ports)));
  }
  for (const auto& host : assembly.hosts) host->set_load(options.load);
  // A consumer checks the place of what it takes against its producer's ledger. Producers may come later in the list
  // (feedback), so this waits until every host stands.
  for (std::size_t c = 0; c < stages.size(); ++c) {
    for (std::size_t i = 0; i < stages[c].inputs.size(); ++i) {
      if (!stages[c].inputs[i].from_sensor) {
        const PipelineStageHost& producer = *assembly.hosts[stages[c].inputs[i].source];
        assembly.hosts[c]->set_producer(i, producer.ledger());
        if (options.way != Way::kTable) assembly.hosts[c]->take_newest(i, producer);
      }
    }
  }
  std::vector<std::unique_ptr<transport::Subscriber>> outputs;
  for (const StageConfig& stage : config.stages) {
    TAKT_ASSIGN(auto subscriber, assembly.transport->subscriber(stage.topic(), "recorder"));
    outputs.push_back(std::move(subscriber));
  }
  TAKT_ASSIGN(auto status_publisher, assembly.transport->publisher(kStatusTopic));
  assembly.status = std::make_unique<StatusTopic>(std::move(status_publisher));
  if (options.exported) {
    std::vector<Relay::Topic> relayed;
    std::vector<std::string> names = stage_topics;
    names.emplace_back(kStatusTopic);
    for (const std::string& name : names) {
      Relay::Topic topic;
      TAKT_ASSIGN(topic.from, assembly.transport->subscriber(name, kRelay));
      TAKT_ASSIGN(topic.to, assembly.transport->publisher(export_topic(name)));
      relayed.push_back(std::move(topic));
    }
    assembly.relay = std::make_unique<Relay>(std::move(relayed));
  }
  TAKT_RETURN_IF_ERROR(assembly.transport->wait_connected());

  ReplayGate* const gate = options.lockstep ? options.gate : nullptr;
  if (gate != nullptr) gate->begin(origin, schedule.clock.hyperperiod);
  assembly.feeder = std::make_unique<Feeder>(*log, rig, assembly.feeds, run_token, longest_turn(modes), gate);
  context.feeder = assembly.feeder.get();
  if (phase && control) {
    const SensorFeed* const reference = feed_of[config.problem.phase_lock->sensor];
    control->reference_lost = [&, reference,
                               seen_in = modes_that_read(config.problem, modes)](const sched::Turn& next) {
      if (reference != nullptr && !seen_in[next.mode]) look_at_reference(next, context, *reference, options.lockstep);
      return phase->silent(next);
    };
  }
  assembly.recorder =
      std::make_unique<Recorder>(config.problem.board.cores.size(), std::move(outputs), options.lockstep);
  const double total = static_cast<double>(hyperperiods) * schedule.clock.hyperperiod.seconds();
  std::atomic<bool> stop{false};  // stands for options.stop where a lost device ends the run as well
  std::optional<std::uint64_t> lost_in;
  assembly.recorder->on_record = [&](const sched::JobRecord& record) {
    if (options.device_lost && assembly.accelerator) {
      if (!lost_in && assembly.accelerator->lost() != nullptr) lost_in = record.hyperperiod;
      const bool asked = options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
      if (asked || (lost_in && record.hyperperiod > *lost_in + 1)) stop = true;
    }
    if (gate != nullptr) gate->done(record.slot_end);
    if (options.progress) options.progress(static_cast<double>(record.slot_end) * 1e-9, total);
  };
  // Undeclared subscribers may come and go during the run: the recorder looks for them now and then.
  std::set<std::string> undeclared;
  assembly.recorder->on_idle = [&assembly, &undeclared] {
    for (const std::string& topic : assembly.transport->undeclared_subscribers()) undeclared.insert(topic);
  };
  TAKT_RETURN_IF_ERROR(assembly.feeder->status());

  // Helpers run before any priority or affinity is set.
  assembly.recorder->start();
  if (assembly.relay) assembly.relay->start();
  assembly.feeder->start();
  std::vector<std::unique_ptr<StageFaults>> stage_faults;
  const TableTime table_end{static_cast<std::int64_t>(hyperperiods) * h};
  for (std::uint32_t s = 0; options.faults != nullptr && s < stages.size(); ++s) {
    std::vector<StageFault> of_stage = faults_of(options.faults->stages, s);
    if (of_stage.empty()) continue;
    stage_faults.push_back(std::make_unique<StageFaults>(std::move(of_stage), budgets_of(stages[s], modes, s),
                                                         table_end, options.rate, options.stop));
    assembly.hosts[s]->inject(stage_faults.back().get());
  }
  std::vector<std::unique_ptr<DeviceFaults>> device_faults;
  for (std::uint32_t s = 0; faulty && s < stages.size(); ++s) {
    std::vector<DeviceFault> of_stage = faults_of(options.faults->devices, s);
    if (of_stage.empty()) continue;
    device_faults.push_back(std::make_unique<DeviceFaults>(std::move(of_stage), *faulty));
    assembly.hosts[s]->inject(device_faults.back().get());
  }
  std::vector<sched::StageHost*> hosts;
  for (const auto& host : assembly.hosts) hosts.push_back(host.get());
  sched::DispatchOptions dispatch_options;
  dispatch_options.lockstep = options.lockstep;
  dispatch_options.hyperperiods = hyperperiods;
  dispatch_options.rate = options.rate;
  dispatch_options.wait_for_job = options.wait_for_job;
  dispatch_options.stop = options.device_lost ? &stop : options.stop;
  if (phase) dispatch_options.correction = [&phase](const sched::Turn& next) { return phase->correction(next); };
  if (phase && options.reproduce != nullptr) {
    dispatch_options.correction = [&corrections = options.reproduce->dispatch.corrections](const sched::Turn& next) {
      return next.number < corrections.size() ? corrections[next.number] : Duration{};
    };
  }
  dispatch_options.watchdog = [&assembly](const sched::WatchdogReport& report) {
    assembly.status->tell(report, assembly.hosts);
  };
  dispatch_options.modes = context.modes;
  if (options.reproduce != nullptr) {
    dispatch_options.repeat_changes = options.reproduce->dispatch.changes;
    const RunData& before = *options.reproduce;
    dispatch_options.reproduce = [index = RecordIndex(before)](std::uint32_t stage, std::uint64_t job) {
      return index.find(stage, job);
    };
  }
  std::vector<int> cpus;
  for (const sched::Core& core : config.problem.board.cores) cpus.push_back(core.cpu);
  HostWatch watch(std::move(cpus));
  if (!options.lockstep) watch.start();
  process_faults.begin();
  const CpuTimes cpu_before = read_cpu_times();
  const auto sink = [&](std::size_t core, const sched::JobRecord& record) { assembly.recorder->push(core, record); };
  Result<sched::DispatchResult> dispatched =
      options.way == Way::kTable
          ? sched::dispatch(config.problem, modes, hosts, dispatch_options, sink)
          : run_without_table(config.problem, schedule, arrivals, hosts,
                              {.way = options.way, .hyperperiods = hyperperiods, .stop = options.stop}, sink);
  const CpuTimes cpu_after = read_cpu_times();
  watch.stop();
  assembly.feeder->stop();
  assembly.recorder->stop();
  // A relay that was left behind keeps using its ports, a job that hangs on a device its chunks: then all that stands
  // stays, until the process ends.
  bool left_behind = assembly.relay && !assembly.relay->stop();
  for (const exec::Offload* const offload : offloads) left_behind = !offload->settle({}) || left_behind;
  if (left_behind) leave_behind(std::move(assembled));
  std::uint64_t lost_inputs = 0;
  for (const auto& host : assembly.hosts) {
    lost_inputs += host->lost_inputs();
    if (!left_behind) host->release_all();
  }
  if (!dispatched) return fail(std::move(dispatched).error());
  TAKT_RETURN_IF_ERROR(assembly.feeder->status());

  data.pipeline_name = config.name;
  data.log_path = options.log_path;
  data.mode = options.lockstep ? "lockstep" : "real time";
  switch (options.backend) {
    case transport::Backend::kLocal: data.transport = "local (in process)"; break;
    case transport::Backend::kIceoryxEmbedded: data.transport = "iceoryx (embedded RouDi)"; break;
    case transport::Backend::kIceoryxExternal: data.transport = "iceoryx (external RouDi)"; break;
  }
  data.rate = options.rate;
  for (const auto& [role, path] : {std::pair<std::string, std::string>{"log", options.log_path},
                                   {"pipeline", config.file},
                                   {"rig", config.rig_file},
                                   {"board", config.board_file},
                                   {"binary", executable_path()}}) {
    if (path.empty()) continue;  // a bundle's
    TAKT_ASSIGN(const Digest hash, digest_file(path));
    data.inputs.push_back({role, path, hash});
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (sessions[s] == nullptr) continue;
    const std::string& variant = stages[s].variants[shown[s]].name;
    const ModelContract* const model = config.stages[s].variant(variant).model.get();
    if (model != nullptr) {
      for (const auto& [role, path] :
           {std::pair<std::string, std::string>{"contract ", model->contract_file}, {"model ", model->file}}) {
        if (path.empty()) continue;  // a network that takt builds
        TAKT_ASSIGN(const Digest hash, digest_file(path));
        data.inputs.push_back({role + stages[s].name, path, hash});
      }
    }
    data.plans.push_back(plan_info(static_cast<std::uint32_t>(s), model, *sessions[s], counts[s]));
    if (const auto& found = sessions[s]->first_non_finite()) {
      options.non_finite(stages[s].name, *found, sessions[s]->plan());
    }
  }
  // First of all warnings: whatever the run computed stands on these values.
  std::vector<std::string>& warnings = data.environment.warnings;
  const std::vector<std::string> assumed = assumptions(rig);
  warnings.insert(warnings.begin(), assumed.begin(), assumed.end());
  data.environment.steal_share = steal_share(cpu_before, cpu_after);
  if (!options.lockstep) {
    if (!dispatched->rights.refused.empty()) {
      data.environment.warnings.push_back("real-time rights refused: " + dispatched->rights.refused);
    }
    if (phase && phase->lost() > 0) {
      data.environment.warnings.push_back(
          "the reference of the phase lock was silent for longer than its hold-over at " +
          std::to_string(phase->lost()) + " boundaries");
    }
    const sched::RealtimeRights& rights = dispatched->rights;
    data.schedule_notes.push_back(rights.isolation == "demotion"
                                      ? "isolation: a worker that is not done in time is demoted to idle priority"
                                      : "isolation: a worker that is not done in time is parked by a signal");
    if (!rights.deep_sleep.empty()) data.environment.warnings.push_back(rights.deep_sleep);
    if (dispatched->watchdog_trips > 0) {
      data.environment.warnings.push_back("the watchdog saw a dispatcher behind the table " +
                                          std::to_string(dispatched->watchdog_trips) + " time(s)");
    }
    if (assembly.relay && assembly.relay->dropped() > 0) {
      data.schedule_notes.push_back(std::to_string(assembly.relay->dropped()) +
                                    " output(s) were not exported: observers kept all chunks of their topics");
    }
    if (data.environment.steal_share > 0.001) {
      data.environment.warnings.push_back("the hypervisor took " +
                                          std::to_string(data.environment.steal_share * 100).substr(0, 4) +
                                          " % of the CPU time during the run (steal)");
    }
  }
  data.undeclared_subscribers.assign(undeclared.begin(), undeclared.end());
  data.lost_records = assembly.recorder->lost_records();
  data.lost_outputs = assembly.recorder->lost_outputs();
  data.lost_inputs = lost_inputs;
  for (const sensors::ClockFinding& finding : opened.findings) {
    data.environment.warnings.push_back(std::string("clock check, ") + sensors::name_of(finding.fault) + ": " +
                                        finding.text);
  }
  if (assembly.accelerator) {
    data.schedule_notes.push_back(
        device_note(*assembly.accelerator, config.device.target, free_before, free_loaded, offloads));
    if (const char* reason = assembly.accelerator->lost()) {
      warnings.push_back("device " + assembly.accelerator->device().properties().name + ": " + reason);
      if (options.device_lost) options.device_lost(reason);
    }
  }
  for (const std::string& note : opened.notes) data.schedule_notes.push_back(note);
  for (const std::string& note : log->notes()) data.schedule_notes.push_back(note);
  data.rig = rig;
  data.sources = std::move(opened.sources);
  data.problem = config.problem;
  data.schedule = schedule;
  if (modes.size() > 1) data.modes = modes;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::string& variant = stages[s].variants[shown[s]].name;
    data.stages.push_back({config.stages[s].variant(variant).type, variant, stage_topics[s]});
  }
  data.sensor_from_table = context.sensor_from_table;
  data.dispatch = *dispatched;
  if (options.reproduce != nullptr) {
    // A worker that never came back does so here: what it was made to do is not repeated, what it came to is.
    const auto& stuck = options.reproduce->dispatch.stuck;
    std::copy_if(stuck.begin(), stuck.end(), std::back_inserter(data.dispatch.stuck), [&](std::uint32_t stage) {
      return std::find(dispatched->stuck.begin(), dispatched->stuck.end(), stage) == dispatched->stuck.end();
    });
    data.repeats = came_to(*options.reproduce);
  }
  if (!options.lockstep) {
    data.host_stalls = watch.stalls(dispatched->started, options.rate);
    data.watch_cost = watch.cost();
  }
  data.interrupted = dispatched->stopped;
  if (options.faults != nullptr) data.faults = describe_faults(*options.faults, config.problem, touched);
  data.log_problems = log->problems();
  data.digests = assembly.recorder->digests(stage_topics);
  data.records = std::move(assembly.recorder->records());
  data.objects = std::move(assembly.recorder->objects());
  data.tracks = std::move(assembly.recorder->tracks());
  data.health = assembly.feeder->health();
  count_unused(data);
  data.pools = assembly.transport->pools();
  data.pool_use = assembly.transport->pool_use();
  data.resident_bytes = memory::resident_bytes();
  data.allocation_guard = memory::guard_available();
  TAKT_ASSIGN(data.truth, read_truth(options.log_path));
  return data;
}

}  // namespace takt::pipeline
