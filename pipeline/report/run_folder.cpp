#include "pipeline/report/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "pipeline/report/manifest_archive.h"
#include "pipeline/report/results.h"
#include "runtime/base/file.h"

namespace takt::sensors {

template <class A, pipeline::Like<Transform> T>
void describe(A& a, T& v) {
  a("rotation", v.rotation);
  a("translation", v.translation);
}
template <class A, pipeline::Like<CameraModel> T>
void describe(A& a, T& v) {
  a("width", v.width);
  a("height", v.height);
  a("fx", v.fx);
  a("fy", v.fy);
  a("cx", v.cx);
  a("cy", v.cy);
  a("distortion", v.distortion);
}
template <class A, pipeline::Like<RigSensor> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("kind", v.kind);
  a("topic", v.topic);
  a("frame_id", v.frame_id);
  a("vehicle_from_sensor", v.vehicle_from_sensor);
  a("camera", v.camera);
  a("capacity", v.capacity);
  a("intensity_scale", v.intensity_scale);
  a("motion_compensated", v.motion_compensated);
  a("ray_origin", v.ray_origin);
  a("stamp", v.stamp);
  a("period_ns", v.period);
  a("duration_ns", v.duration);
  a("readout_ns", v.readout);
  a("driver_delay_ns", v.driver_delay);
  a("jitter_ns", v.jitter);
  a("drift_ppm", v.drift_ppm);
  a("phase_ns", v.phase);
  a("declared_delay_ns", v.declared_delay);
  a("offset_ns", v.offset);
  a("device_clock", v.device_clock);
  a("assumed", v.assumed);
}
template <class A, pipeline::Like<Rig> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("file", v.file);
  a("drive", v.drive);
  a("world_frame", v.world_frame);
  a("vehicle_frame", v.vehicle_frame);
  a("sensors", v.sensors);
}
template <class A, pipeline::Like<LogProblem> T>
void describe(A& a, T& v) {
  a("kind", v.kind);
  a("offset", v.offset);
  a("detail", v.detail);
}

}  // namespace takt::sensors

namespace takt::sched {

template <class A, pipeline::Like<Core> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("cpu", v.cpu);
  a("reserve", v.reserve);
  a("wakeup_window_ns", v.wakeup_window);
  a("publish_window_ns", v.publish_window);
}
template <class A, pipeline::Like<Unit> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("kind", v.kind);
}
template <class A, pipeline::Like<Board> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("cores", v.cores);
  a("units", v.units);
  a("clock_error_ns", v.clock_error);
  a("switch_cost_ns", v.switch_cost);
}
template <class A, pipeline::Like<Sensor::Phase> T>
void describe(A& a, T& v) {
  a("offset_ns", v.offset);
  a("jitter_ns", v.jitter);
}
template <class A, pipeline::Like<Sensor> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("period_ns", v.period);
  a("delay_min_ns", v.delay_min);
  a("delay_max_ns", v.delay_max);
  a("drift_ppm", v.drift_ppm);
  a("phase", v.phase);
}
template <class A, pipeline::Like<Segment> T>
void describe(A& a, T& v) {
  a("unit", v.unit);
  a("time_ns", v.time);
  a("guard_ns", v.guard);
}
template <class A, pipeline::Like<Budget> T>
void describe(A& a, T& v) {
  a("cores", v.cores);
  a("time_ns", v.time);
  a("segments", v.segments);
  a("provenance", v.provenance);
  a("samples", v.samples);
  a("margin", v.margin);
  a("high_water_ns", v.high_water);
  a("steps_ns", v.steps);
}
template <class A, pipeline::Like<Variant> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("budgets", v.budgets);
}
template <class A, pipeline::Like<Absence> T>
void describe(A& a, T& v) {
  a("hold", v.hold);
}
template <class A, pipeline::Like<Input> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("from_sensor", v.from_sensor);
  a("source", v.source);
  a("feedback", v.feedback);
  a("absence", v.absence);
}
template <class A, pipeline::Like<Stage> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("rates", v.rates);
  a("variants", v.variants);
  a("inputs", v.inputs);
  a("overrun", v.overrun);
  a("degraded_variant", v.degraded_variant);
  a("degraded_mode", v.degraded_mode);
  a("slack_ns", v.slack);
}
template <class A, pipeline::Like<Chain> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("sensor", v.sensor);
  a("stages", v.stages);
  for (std::size_t q = 0; q < kQuantities; ++q) a(name_of(static_cast<Quantity>(q)), v.limits[q]);
}
template <class A, pipeline::Like<PhaseLock> T>
void describe(A& a, T& v) {
  a("sensor", v.sensor);
  a("gap_ns", v.gap);
  a("filter_ns", v.filter);
  a("hold_over_ns", v.hold_over);
}
template <class A, pipeline::Like<Problem> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("board", v.board);
  a("hyperperiod_ns", v.hyperperiod);
  a("sensors", v.sensors);
  a("stages", v.stages);
  a("chains", v.chains);
  a("phase_lock", v.phase_lock);
}
template <class A, pipeline::Like<TickClock> T>
void describe(A& a, T& v) {
  a("hyperperiod_ns", v.hyperperiod);
  a("ticks", v.ticks);
}
template <class A, pipeline::Like<Slot> T>
void describe(A& a, T& v) {
  a("stage", v.stage);
  a("job", v.job);
  a("segment", v.segment);
  a("cores", v.cores);
  a("unit", v.unit);
  a("start", v.start);
  a("end", v.end);
}
template <class A, pipeline::Like<Binding> T>
void describe(A& a, T& v) {
  a("stage", v.stage);
  a("job", v.job);
  a("input", v.input);
  a("producer_stage", v.producer_stage);
  a("producer_job", v.producer_job);
  a("producer_shift", v.producer_shift);
}
template <class A, pipeline::Like<Choice> T>
void describe(A& a, T& v) {
  a("rate", v.rate);
  a("variant", v.variant);
  a("budget", v.budget);
}
template <class A, pipeline::Like<ChainBound> T>
void describe(A& a, T& v) {
  a("chain", v.chain);
  for (std::size_t q = 0; q < kQuantities; ++q) a(name_of(static_cast<Quantity>(q)), v.bounds[q]);
  a("terms", v.terms);
}
template <class A, pipeline::Like<Schedule> T>
void describe(A& a, T& v) {
  a("clock", v.clock);
  a("choices", v.choices);
  a("slots", v.slots);
  a("bindings", v.bindings);
  a("bounds", v.bounds);
}
template <class A, pipeline::Like<ModeTable::Seam> T>
void describe(A& a, T& v) {
  a("from", v.from);
  a("bounds", v.bounds);
}
template <class A, pipeline::Like<ModeTable> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("schedule", v.schedule);
  a("reads", v.reads);
  a("degraded", v.degraded);
  a("phase_lock", v.phase_lock);
  a("entry_drain_ns", v.entry_drain);
  a("dwell_ns", v.dwell);
  a("exits", v.exits);
  a("lost", v.lost);
  a("limits_ns", v.limits);
  a("seams", v.seams);
}
template <class A, pipeline::Like<ModeChange> T>
void describe(A& a, T& v) {
  a("hyperperiod", v.hyperperiod);
  a("begin_ns", v.begin);
  a("from", v.from);
  a("to", v.to);
  a("cause", v.cause);
  a("stage", v.stage);
  a("job", v.job);
}
template <class A, pipeline::Like<RealtimeRights> T>
void describe(A& a, T& v) {
  a("fifo", v.fifo);
  a("affinity", v.affinity);
  a("memory_locked", v.memory_locked);
  a("refused", v.refused);
  a("isolation", v.isolation);
  a("deep_sleep", v.deep_sleep);
}
template <class A, pipeline::Like<DispatchResult> T>
void describe(A& a, T& v) {
  a("hyperperiods_run", v.hyperperiods_run);
  a("stopped", v.stopped);
  a("rights", v.rights);
  a("watchdog_trips", v.watchdog_trips);
  a("corrections_ns", v.corrections);
  a("changes", v.changes);
  a("started_ns", v.started);
  a("core_busy", v.core_busy);
  a("stuck", v.stuck);
  a("accounting_ns", v.accounting);
}

}  // namespace takt::sched

namespace takt::transport {

template <class A, pipeline::Like<Pool> T>
void describe(A& a, T& v) {
  a("payload_capacity", v.payload_capacity);
  a("chunk_bytes", v.chunk_bytes);
  a("chunks", v.chunks);
  a("topics", v.topics);
}
template <class A, pipeline::Like<PoolPlan> T>
void describe(A& a, T& v) {
  a("pools", v.pools);
  a("user_bytes", v.user_bytes);
  a("management_bytes", v.management_bytes);
}
template <class A, pipeline::Like<PoolUse> T>
void describe(A& a, T& v) {
  a("chunk_bytes", v.chunk_bytes);
  a("chunks", v.chunks);
  a("used", v.used);
  a("most_used", v.most_used);
}

}  // namespace takt::transport

namespace takt {

template <class A, class T>
void describe_map(A& a, T& v, const char* from, const char* to) {
  a(from, v.from_origin);
  a(to, v.to_origin);
  a("rate_ppb", v.rate_ppb);
  a("error_ns", v.error);
  a("valid_from_ns", v.valid_from);
  a("valid_to_ns", v.valid_to);
}
template <class A, pipeline::Like<ClockMap<TableDomain, SensorDomain>> T>
void describe(A& a, T& v) {
  describe_map(a, v, "table_origin_ns", "sensor_origin_ns");
}
template <class A, pipeline::Like<sensors::DeviceClockMap> T>
void describe(A& a, T& v) {
  describe_map(a, v, "log_origin_ns", "sensor_origin_ns");
}

}  // namespace takt

namespace takt::pipeline {

template <class A, Like<HashedInput> T>
void describe(A& a, T& v) {
  a("role", v.role);
  a("path", v.path);
  a("digest", v.digest);
}
template <class A, Like<Environment> T>
void describe(A& a, T& v) {
  a("host", v.host);
  a("kernel", v.kernel);
  a("cpu_model", v.cpu_model);
  a("isa_class", v.isa_class);
  a("clock_source", v.clock_source);
  a("governor", v.governor);
  a("compiler", v.compiler);
  a("jpeg_library", v.jpeg_library);
  a("cores", v.cores);
  a("preempt_rt", v.preempt_rt);
  a("cgroup_quota_cores", v.cgroup_quota_cores);
  a("steal_share", v.steal_share);
  a("shared_memory_free", v.shared_memory_free);
  a("warnings", v.warnings);
}
template <class A, Like<HostStall> T>
void describe(A& a, T& v) {
  a("from_ns", v.from_ns);
  a("to_ns", v.to_ns);
  a("core", v.core);
  a("lost_ns", v.lost);
}
template <class A, Like<FaultExpectation> T>
void describe(A& a, T& v) {
  a("what", v.what);
  a("expected", v.expected);
  a("seen", v.seen);
  a("met", v.met);
}
template <class A, Like<FaultReport> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("what", v.what);
  a("text", v.text);
  a("injected", v.injected);
  a("struck", v.struck);
  a("expectations", v.expectations);
}
template <class A, Like<RepeatedRun> T>
void describe(A& a, T& v) {
  a("outcome", v.outcome);
  a("reason", v.reason);
}
template <class A, Like<BaselineChain> T>
void describe(A& a, T& v) {
  a("worst_latency_ns", v.worst_latency);
  a("jitter_ns", v.jitter);
  a("outputs", v.outputs);
  a("planned", v.planned);
  a("misses", v.misses);
}
template <class A, Like<Baseline> T>
void describe(A& a, T& v) {
  a("way", v.way);
  a("load", v.load);
  a("chains", v.chains);
}
template <class A, Like<TopicDigest> T>
void describe(A& a, T& v) {
  a("topic", v.topic);
  a("chunks", v.chunks);
  a("digest", v.digest);
  a("compared", v.compared);
}
template <class A, Like<SensorSource> T>
void describe(A& a, T& v) {
  a("topic", v.topic);
  a("stamp", v.stamp);
}
template <class A, Like<BadFrame> T>
void describe(A& a, T& v) {
  a("index", v.index);
  a("capture_ns", v.capture);
  a("arrival_ns", v.arrival);
}
template <class A, Like<SensorHealth> T>
void describe(A& a, T& v) {
  a("sensor", v.sensor);
  a("messages", v.messages);
  a("delivered", v.delivered);
  a("bad_frames", v.bad_frames);
  a("invalid_points", v.invalid_points);
  a("dropped_points", v.dropped_points);
  a("gaps", v.gaps);
  a("repeats", v.repeats);
  a("order_faults", v.order_faults);
  a("other_stamps", v.other_stamps);
  a("unused", v.unused);
  a("left_out", v.left_out);
  a("examples", v.examples);
}
template <class A, Like<StageInfo> T>
void describe(A& a, T& v) {
  a("type", v.type);
  a("variant", v.variant);
  a("topic", v.topic);
}
template <class A, Like<PlanTensor> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("first_step", v.first_step);
  a("last_step", v.last_step);
}
template <class A, Like<PlanStep> T>
void describe(A& a, T& v) {
  a("kernel", v.kernel);
  a("nodes", v.nodes);
  a("flops", v.flops);
  a("bytes_moved", v.bytes_moved);
  a("live_bytes", v.live_bytes);
  a("runs", v.runs);
  a("minimum_ns", v.minimum);
  a("maximum_ns", v.maximum);
}
template <class A, Like<PlanCounter> T>
void describe(A& a, T& v) {
  a("name", v.name);
  a("capacity", v.capacity);
  a("maximum", v.maximum);
  a("total", v.total);
  a("latest", v.latest);
}
template <class A, Like<PlanInfo> T>
void describe(A& a, T& v) {
  a("stage", v.stage);
  a("model", v.model);
  a("model_file", v.model_file);
  a("licence", v.licence);
  a("target", v.target);
  a("plan", v.plan);
  a("operators_before", v.operators_before);
  a("operators_after", v.operators_after);
  a("views", v.views);
  a("placements", v.placements);
  a("in_place", v.in_place);
  a("reorders", v.reorders);
  a("copies", v.copies);
  a("file_bytes", v.file_bytes);
  a("weight_bytes", v.weight_bytes);
  a("arena_bytes", v.arena_bytes);
  a("lower_bound", v.lower_bound);
  a("proof", v.proof);
  a("steps", v.steps);
  a("arena", v.arena);
  a("counted_jobs", v.counted_jobs);
  a("counters", v.counters);
}
template <class A, Like<RunData> T>
void describe(A& a, T& v) {
  a("command", v.command);
  a("options", v.options);
  a("sought", v.sought);
  a("pipeline_name", v.pipeline_name);
  a("log_path", v.log_path);
  a("mode", v.mode);
  a("transport", v.transport);
  a("rate", v.rate);
  a("host_stalls", v.host_stalls);
  a("watch_cost_ns", v.watch_cost);
  a("interrupted", v.interrupted);
  a("undeclared_subscribers", v.undeclared_subscribers);
  a("lost_records", v.lost_records);
  a("lost_outputs", v.lost_outputs);
  a("lost_inputs", v.lost_inputs);
  a("inputs", v.inputs);
  a("environment", v.environment);
  a("rig", v.rig);
  a("sources", v.sources);
  a("problem", v.problem);
  a("schedule", v.schedule);
  a("modes", v.modes);
  a("schedule_notes", v.schedule_notes);
  a("stages", v.stages);
  a("plans", v.plans);
  a("sensor_from_table", v.sensor_from_table);
  a("dispatch", v.dispatch);
  a("log_problems", v.log_problems);
  a("digests", v.digests);
  a("health", v.health);
  a("pools", v.pools);
  a("pool_use", v.pool_use);
  a("resident_bytes", v.resident_bytes);
  a("allocation_guard", v.allocation_guard);
  a("faults", v.faults);
  a("repeats", v.repeats);
  a("measured", v.measured);
}

namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<Error> wrong(const std::string& what) { return fail(Code::kInput, "run.json: " + what); }

// `all`: every stage runs in it.
Status check_table(const RunData& run, const sched::Schedule& schedule, bool all) {
  const std::size_t stages = run.problem.stages.size();
  if (schedule.clock.hyperperiod.ns <= 0 || schedule.clock.ticks <= 0) return wrong("the table has no length");
  if (schedule.choices.size() != stages) return wrong("schedule.choices does not fit problem.stages");
  for (std::size_t s = 0; s < stages; ++s) {
    const sched::Choice& choice = schedule.choices[s];
    if (choice.rate < (all ? 1 : 0) || choice.rate > 1'000'000 ||
        choice.variant >= run.problem.stages[s].variants.size()) {
      return wrong("schedule.choices/" + std::to_string(s) + " has no such rate or variant");
    }
  }
  for (const sched::Slot& slot : schedule.slots) {
    if (slot.stage >= stages || schedule.choices[slot.stage].rate == 0) return wrong("a slot names an unknown stage");
    if (slot.unit ? *slot.unit >= run.problem.board.units.size() || !slot.cores.empty() : slot.cores.empty()) {
      return wrong("a slot without cores");
    }
    const std::size_t segments = std::max<std::size_t>(schedule.choices[slot.stage].budget.segments.size(), 1);
    if (slot.segment >= segments) return wrong("a slot names an unknown segment");
    for (const std::uint32_t core : slot.cores) {
      if (core >= run.problem.board.cores.size()) return wrong("a slot names an unknown core");
    }
  }
  for (const sched::Binding& b : schedule.bindings) {
    if (b.stage >= stages || b.producer_stage >= stages) return wrong("a binding names an unknown stage");
  }
  for (const sched::ChainBound& b : schedule.bounds) {
    if (b.chain >= run.problem.chains.size()) return wrong("a bound names an unknown chain");
  }
  return {};
}

Status check_modes(const RunData& run) {
  const std::size_t stages = run.problem.stages.size();
  if (run.modes.size() > sched::kMostModes) return wrong("more modes than there can be");
  for (const sched::ModeTable& mode : run.modes) {
    TAKT_RETURN_IF_ERROR(check_table(run, mode.schedule, false));
    bool fits = mode.reads.size() == stages && mode.degraded.size() == stages &&
                mode.limits.size() == run.problem.chains.size() && (!mode.lost || *mode.lost < run.modes.size());
    for (std::size_t s = 0; fits && s < stages; ++s) {
      const sched::Stage& stage = run.problem.stages[s];
      fits = mode.reads[s].size() == stage.inputs.size() &&
             (!mode.degraded[s] || *mode.degraded[s] < stage.variants.size());
    }
    for (const std::uint32_t exit : mode.exits) fits = fits && exit < run.modes.size();
    for (const sched::ModeTable::Seam& seam : mode.seams) {
      fits = fits && seam.from < run.modes.size();
      for (const sched::ChainBound& bound : seam.bounds) fits = fits && bound.chain < run.problem.chains.size();
    }
    if (!fits) return wrong("mode '" + mode.name + "' does not fit the problem");
  }
  std::uint64_t last = 0;
  for (const sched::ModeChange& change : run.dispatch.changes) {
    const bool known = change.from < run.modes.size() && change.to < run.modes.size() && change.stage < stages &&
                       static_cast<std::size_t>(change.cause) < sched::kModeCauses;
    if (!known || change.hyperperiod <= last) return wrong("a change of mode that cannot be");
    last = change.hyperperiod;
  }
  return {};
}

// Every index that the report follows without looking must be in range: files may have been edited.
Status check_indices(const RunData& run) {
  const std::size_t stages = run.problem.stages.size();
  TAKT_RETURN_IF_ERROR(sched::check(run.problem));
  TAKT_RETURN_IF_ERROR(check_table(run, run.schedule, run.modes.empty()));
  TAKT_RETURN_IF_ERROR(check_modes(run));
  if (run.sensor_from_table.rate_ppb <= -1'000'000'000) return wrong("the clock map stands still");
  for (const PlanInfo& plan : run.plans) {
    if (plan.stage >= stages) return wrong("a plan names an unknown stage");
    for (const PlanTensor& t : plan.arena) {
      if (t.first_step > t.last_step || t.last_step >= plan.steps.size() || t.offset > plan.arena_bytes ||
          t.bytes > plan.arena_bytes - t.offset) {
        return wrong("a tensor lies outside of its plan's steps or arena");
      }
    }
  }
  for (const std::uint32_t stage : run.dispatch.stuck) {
    if (stage >= stages) return wrong("an unknown stage is stuck");
  }
  for (const Baseline& baseline : run.measured) {
    if (baseline.way > Way::kEpoch || baseline.chains.size() != run.problem.chains.size()) {
      return wrong("measured does not fit problem.chains");
    }
  }
  if (run.sources.size() != run.rig.sensors.size()) return wrong("sources does not fit rig.sensors");
  for (const SensorSource& source : run.sources) {
    if (source.stamp.rate_ppb <= -1'000'000'000) return wrong("the clock of a sensor stands still");
  }
  for (const sensors::RigSensor& sensor : run.rig.sensors) {
    if (sensor.kind > sensors::SensorKind::kEgo) return wrong("a sensor of the rig has an unknown kind");
    if (sensor.kind == sensors::SensorKind::kCamera && !sensor.camera) return wrong("a camera has no camera model");
  }
  return {};
}

}  // namespace

std::optional<Digest> digest_from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    std::uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint64_t>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | digit;
  }
  return Digest{halves[0], halves[1]};
}

std::string manifest_json(const RunData& run) {
  Json out;
  out["schema"] = "takt.run";
  out["version"] = kManifestVersion;
  out["run"] = JsonWriter::encode(run);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_manifest(const RunData& run, const std::string& path) {
  return write_file_atomically(path, manifest_json(run));
}

namespace {

// Every file that takt writes into a run folder: a run, its report, and what a supervisor of it writes.
constexpr const char* kFiles[] = {"records.mcap", "results.mcap", "run.json",      "report.html",
                                  "report.json",  "junit.xml",    "trace.pftrace", "supervision.json"};
constexpr std::string_view kPass = "pass-";

bool is_pass(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  return name.size() > kPass.size() && name.starts_with(kPass) &&
         name.find_first_not_of("0123456789", kPass.size()) == std::string::npos;
}

// What a run that wrote `written` did not replace of one before it.
void remove_earlier(const std::filesystem::path& folder, const std::set<std::string>& written) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* const name : kFiles) {
    if (!written.contains(name) && fs::symlink_status(folder / name, ignored).type() == fs::file_type::regular) {
      fs::remove(folder / name, ignored);
    }
  }
  std::vector<fs::path> passes;
  for (fs::directory_iterator entry(folder, ignored); entry != fs::directory_iterator(); entry.increment(ignored)) {
    const bool ours = entry->symlink_status(ignored).type() == fs::file_type::directory && is_pass(entry->path()) &&
                      fs::exists(entry->path() / "run.json", ignored);
    if (ours) passes.push_back(entry->path());
  }
  for (const fs::path& pass : passes) {
    remove_earlier(pass, {});
    fs::remove(pass, ignored);  // unless it holds something else
  }
}

}  // namespace

std::string pass_folder(const std::string& folder, std::uint64_t pass) {
  return folder + "/" + std::string(kPass) + std::to_string(pass);
}

bool is_pass_of(const std::string& run, const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::canonical(run, ignored);
  return is_pass(path) && std::filesystem::equivalent(path.parent_path(), folder, ignored);
}

Status write_run_folder(const RunData& run, const std::string& folder,
                        const std::function<Status(const std::string& unfinished)>& more) {
  namespace fs = std::filesystem;
  const std::string unfinished = folder + "/.unfinished-" + std::to_string(::getpid());
  std::error_code error;
  fs::create_directories(unfinished, error);
  if (error) return fail(Code::kEnvironment, folder + ": the run folder cannot be made: " + error.message());
  const auto write_all = [&]() -> Status {
    TAKT_RETURN_IF_ERROR(write_records_mcap(run, unfinished + "/records.mcap"));
    TAKT_RETURN_IF_ERROR(write_results_mcap(run, unfinished + "/results.mcap"));
    TAKT_RETURN_IF_ERROR(write_manifest(run, unfinished + "/run.json"));
    if (more) TAKT_RETURN_IF_ERROR(more(unfinished));
    fs::directory_iterator entry(unfinished, error);
    std::set<std::string> written;
    while (!error && entry != fs::directory_iterator()) {
      written.insert(entry->path().filename().string());
      fs::rename(entry->path(), fs::path(folder) / entry->path().filename(), error);
      if (!error) entry.increment(error);
    }
    if (error) return fail(Code::kEnvironment, folder + ": cannot be written: " + error.message());
    remove_earlier(folder, written);
    return {};
  };
  Status written = write_all();
  std::error_code ignored;
  fs::remove_all(unfinished, ignored);
  return written;
}

Result<RunData> load_run(const std::string& folder) {
  const std::string path = folder + "/run.json";
  TAKT_ASSIGN(const std::string text, read_file(path));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != "takt.run" || !json.contains("run")) {
    return fail(Code::kInput, path + ": this is no manifest of a takt run");
  }
  if (json.value("version", Json()) != kManifestVersion) {
    return fail(Code::kInput, path + ": written by another version of takt (this one reads version " +
                                  std::to_string(kManifestVersion) + "); run the replay again");
  }
  RunData run;
  std::string error;
  JsonReader reader(json["run"], "run", error);
  if (error.empty()) describe(reader, run);
  if (!error.empty()) return fail(Code::kInput, path + ": " + error);
  if (const Status fits = check_indices(run); !fits) return fail(Code::kInput, folder + ": " + fits.error().message);
  run.run_folder = folder;
  TAKT_RETURN_IF_ERROR(read_records_mcap(run, folder + "/records.mcap"));
  TAKT_RETURN_IF_ERROR(read_results_mcap(run, folder + "/results.mcap"));
  return run;
}

}  // namespace takt::pipeline
