#include "tests/pipeline/report/synthetic_run.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "runtime/base/digest.h"

namespace takt::pipeline::test {
namespace {

constexpr std::int64_t kEpoch = 1'600'000'000'000'000'000;  // sensor time of table time 0
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTicksPerMs = 6000;

sched::Tick ticks(double ms) { return static_cast<sched::Tick>(ms * kTicksPerMs + 0.5); }

sched::Stage stage(const std::string& name, std::int64_t rate, int cores, std::int64_t budget_us,
                   std::vector<sched::Input> inputs) {
  sched::Stage out;
  out.name = name;
  out.rates = {rate};
  sched::Budget budget;
  budget.cores = cores;
  budget.time = microseconds(budget_us);
  budget.provenance = sched::Provenance::kProfiled;
  budget.samples = 1200;
  budget.margin = 1.3;
  budget.high_water = Duration{budget.time.ns * 10 / 13};
  out.variants = {{"full", {budget}}};
  out.inputs = std::move(inputs);
  return out;
}

// Three steps over two tensors that are alive together in the second one.
PlanInfo plan() {
  PlanInfo out;
  out.stage = 0;
  out.model = "street";
  out.model_file = "street.onnx";
  out.licence = "of the test";
  out.target = "cpu:avx2";
  out.plan = digest("a plan");
  out.operators_before = 9;
  out.operators_after = 3;
  out.reorders = 1;
  out.file_bytes = 50000;
  out.weight_bytes = 40000;
  out.arena_bytes = out.lower_bound = 3072;
  out.proof = "optimal";
  out.steps = {{"preprocess", "", 0, 4096, 2048, 40, microseconds(50), microseconds(60)},
               {"conv_1x1", "Conv_0 <Relu_1>", 2'000'000, 9000, 3072, 40, microseconds(100), microseconds(150)},
               {"reorder", "", 0, 2048, 1024, 40, microseconds(10), microseconds(11)}};
  out.arena = {{"image", 0, 2048, 0, 1}, {"features", 2048, 1024, 1, 2}};
  out.counted_jobs = 3;
  out.counters = {{"pillars", 20000, 9000, 26000, {8000, 9000, 9000}}, {"boxes_dropped", 0, 2, 2, {0, 2, 0}}};
  return out;
}

sched::Problem problem() {
  sched::Problem out;
  out.name = "three stages";
  out.hyperperiod = milliseconds(100);
  out.board.name = "two cores";
  out.board.cores = {{"core0", 0, 0.25, microseconds(500), microseconds(300)},
                     {"core1", 1, 0.06, microseconds(500), microseconds(300)}};
  out.sensors = {{"front", nanoseconds(33'333'333), milliseconds(5), microseconds(5900), 0,
                  sched::Sensor::Phase{milliseconds(2), microseconds(1)}},
                 {"top", milliseconds(100), milliseconds(52), milliseconds(54), 0,
                  sched::Sensor::Phase{milliseconds(98), microseconds(1)}}};
  out.stages = {stage("camera_detect", 3, 1, 8000, {{"image", true, 0, false, {}}}),
                stage("lidar_detect", 1, 2, 20000, {{"cloud", true, 1, false, {}}}),
                stage("fusion", 2, 1, 4000, {{"camera", false, 0, false, {}}, {"lidar", false, 1, false, {1}}})};
  sched::Chain camera{"camera to tracks", 0, {kCameraStage, kFusionStage}, {}};
  camera.limits[0] = milliseconds(100);
  sched::Chain lidar{"LiDAR to tracks", 1, {kLidarStage, kFusionStage}, {}};
  lidar.limits[0] = milliseconds(160);
  out.chains = {camera, lidar};
  return out;
}

sched::Schedule schedule(const sched::Problem& of) {
  sched::Schedule out;
  out.clock = {of.hyperperiod, 100 * kTicksPerMs};
  for (const sched::Stage& s : of.stages) out.choices.push_back({s.rates[0], 0, s.variants[0].budgets[0]});
  const auto slot = [&](std::uint32_t s, std::uint32_t job, std::vector<std::uint32_t> cores, double start,
                        double length) {
    out.slots.push_back({s, job, std::move(cores), ticks(start), ticks(start) + ticks(length)});
  };
  slot(kCameraStage, 0, {1}, 8, 8.8);
  slot(kFusionStage, 0, {0}, 20, 4.8);
  slot(kCameraStage, 1, {1}, 41, 8.8);
  slot(kLidarStage, 0, {0, 1}, 52.8, 20.8);
  slot(kCameraStage, 2, {1}, 75, 8.8);
  slot(kFusionStage, 1, {0}, 84, 4.8);
  out.bindings = {{kFusionStage, 0, 0, kCameraStage, 0, 0},
                  {kFusionStage, 0, 1, kLidarStage, 0, -1},
                  {kFusionStage, 1, 0, kCameraStage, 2, 0},
                  {kFusionStage, 1, 1, kLidarStage, 0, 0}};
  // Latency, reaction, age at output, age until replaced: what this table gives, with a little room.
  out.bounds = {
      {0, {milliseconds(24), milliseconds(92), milliseconds(24), milliseconds(88)}, "arrival 6 + slots + waits"},
      {1, {milliseconds(92), milliseconds(192), milliseconds(128), milliseconds(192)}, "arrival 54 + slots + waits"}};
  return out;
}

// Deterministic scatter in 0..range-1.
std::int64_t scatter(std::uint64_t a, std::uint64_t b, std::int64_t range) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b * 0xBF58476D1CE4E5B9ULL + 0x94D049BB133111EBULL;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 32;
  return static_cast<std::int64_t>(x % static_cast<std::uint64_t>(range));
}

struct Stamped {
  std::uint64_t index;
  std::int64_t capture, arrival;  // sensor time
};
// The newest sample that has arrived at a table instant.
std::optional<Stamped> newest(std::uint32_t sensor, std::int64_t table_ns) {
  const std::int64_t offset = sensor == 0 ? 2 * kMs : -2 * kMs, delay = sensor == 0 ? 5'500'000 : 53 * kMs;
  std::optional<Stamped> out;
  for (std::uint64_t k = 0;; ++k) {
    const std::int64_t capture = offset + static_cast<std::int64_t>(k) * 100 * kMs / (sensor == 0 ? 3 : 1);
    if (capture + delay > table_ns) return out;
    out = Stamped{k, kEpoch + capture, kEpoch + capture + delay};
  }
}

void fill_records(RunData& run, std::uint64_t hyperperiods, bool real_time) {
  const sched::Schedule& table = run.schedule;
  for (std::uint64_t h = 0; h < hyperperiods; ++h) {
    for (std::uint32_t i = 0; i < table.slots.size(); ++i) {
      const sched::Slot& slot = table.slots[i];
      const auto rate = static_cast<std::uint64_t>(table.choices[slot.stage].rate);
      const Duration budget = table.choices[slot.stage].budget.time;
      sched::JobRecord r;
      r.stage = slot.stage;
      r.slot = i;
      r.job = h * rate + slot.job;
      r.hyperperiod = h;
      r.cores = static_cast<std::uint32_t>(slot.cores.size());
      r.nominal_start = table.clock.start_at(h, slot.start).ns;
      r.slot_end = table.clock.end_at(h, slot.end).ns;
      r.actual_start = r.nominal_start;
      r.completion = r.actual_start + budget.ns;
      r.publication = r.slot_end;
      r.cpu_ns = budget.ns * (45 + scatter(r.stage, r.job, 30)) / 100;
      if (real_time) {
        r.actual_start += 60'000 + scatter(r.job, 7 + r.stage, 200'000);
        r.completion = r.actual_start + budget.ns * (45 + scatter(r.stage, r.job, 45)) / 100;
        r.publication = r.slot_end - 200'000 + scatter(r.job, 90 + r.stage, 60'000);
      }
      r.published = 1;
      r.copied_bytes = 512;
      r.output_bytes = 4096;
      r.output = digest(std::string_view("job " + std::to_string(r.stage) + "/" + std::to_string(r.job)));
      const auto& inputs = run.problem.stages[slot.stage].inputs;
      r.input_count = static_cast<std::uint8_t>(inputs.size());
      run.records.push_back(r);
    }
  }
  std::stable_sort(run.records.begin(), run.records.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.stage, a.job) < std::pair(b.stage, b.job); });
  for (sched::JobRecord& r : run.records) {
    const auto& inputs = run.problem.stages[r.stage].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      sched::InputRecord& in = r.inputs[k];
      if (inputs[k].from_sensor) {
        const auto sample = newest(inputs[k].source, r.nominal_start);
        if (sample) in = {sample->index, sample->capture, sample->arrival, 0, sched::Reason::kNone, 0, {}};
        continue;
      }
      for (const sched::Binding& b : table.bindings) {
        if (b.stage != r.stage || b.input != k || b.job != r.job % 2) continue;
        const std::int64_t producer =
            (static_cast<std::int64_t>(r.hyperperiod) + b.producer_shift) * table.choices[b.producer_stage].rate +
            b.producer_job;
        if (producer < 0) {
          in.kind = 3;
          in.reason = sched::Reason::kFill;
          r.flags |= sched::kFlagFill | sched::kFlagMissingInput;
        } else {
          const auto& source = record_of(run, b.producer_stage, static_cast<std::uint64_t>(producer));
          in = {source.job, source.inputs[0].capture_ns, 0, 0, sched::Reason::kNone, 0, {}};
        }
      }
    }
  }
}

void fill_scene(RunData& run) {
  for (const sched::JobRecord& r : run.records) {
    if (r.stage != kFusionStage) continue;
    TrackFrame tracks;
    tracks.stage = r.stage;
    tracks.job = r.job;
    tracks.published_ns = r.publication;
    TrackList list;
    list.stamp_ns = run.sensor_from_table.map_unchecked(TableTime{r.nominal_start}).ns;
    TruthFrame truth;
    truth.stamp = {list.stamp_ns};
    const double t = static_cast<double>(r.nominal_start) * 1e-9;
    for (std::uint32_t n = 0; n < 4 + r.job % 3; ++n) {
      TruthBox box;
      box.id = n + 1;
      box.object_class = n == 3 ? ObjectClass::kPedestrian : ObjectClass::kVehicle;
      box.x = 8 + 9 * n - 1.5 * t * n;
      box.y = n % 2 == 0 ? 3.4 : -3.2;
      box.z = 0.8;
      box.length = n == 3 ? 0.6 : 4.4;
      box.width = n == 3 ? 0.6 : 1.9;
      box.height = 1.6;
      box.vx = -1.5 * n;
      box.lidar_points = 40;
      truth.boxes.push_back(box);
      if (list.count >= kMaxTracks) break;
      Track& track = list.tracks[list.count++];
      track.id = n + 1;
      track.object_class = box.object_class;
      track.x = static_cast<float>(box.x + 0.3);
      track.y = static_cast<float>(box.y - 0.2);
      track.z = 0.8F;
      track.length = static_cast<float>(box.length);
      track.width = static_cast<float>(box.width);
      track.height = 1.6F;
      track.vx = static_cast<float>(box.vx);
      track.score = 0.9F;
      track.hits = 5;
      track.sensors = 3;
    }
    tracks.list = list;
    run.tracks.push_back(tracks);
    run.truth.push_back(truth);
  }
}

}  // namespace

RunData synthetic_run(std::uint64_t hyperperiods, bool real_time) {
  RunData run;
  run.run_folder = "run";
  run.command = "takt replay drive.mcap --pipeline three_stages.yaml";
  run.pipeline_name = "three stages";
  run.log_path = "";
  run.mode = real_time ? "real time" : "lockstep";
  run.transport = "local";
  run.inputs = {{"log", "drive.mcap", digest(std::string_view("log"))},
                {"pipeline", "three_stages.yaml", digest(std::string_view("pipeline"))}};
  run.environment.host = "bench";
  run.environment.kernel = "6.1";
  run.environment.cpu_model = "a processor";
  run.environment.isa_class = "x86-64 scalar 1";
  run.environment.clock_source = "tsc";
  run.environment.compiler = "g++";
  run.environment.cores = 2;
  run.environment.shared_memory_free = 1ULL << 30;
  run.rig.name = "small rig";
  run.rig.drive = "simulated";
  run.rig.vehicle_frame = "vehicle";
  run.rig.world_frame = "world";
  sensors::RigSensor camera;
  camera.name = "front";
  camera.kind = sensors::SensorKind::kCamera;
  camera.topic = "/camera/front";
  camera.frame_id = "camera_front";
  camera.camera = sensors::CameraModel{640, 384, 420, 420, 320, 192, {}};
  camera.vehicle_from_sensor.rotation = {0, 0, 1, -1, 0, 0, 0, -1, 0};
  camera.vehicle_from_sensor.translation = {1.5, 0, 1.5};
  camera.period = nanoseconds(33'333'333);
  sensors::RigSensor lidar;
  lidar.name = "top";
  lidar.kind = sensors::SensorKind::kLidar;
  lidar.topic = "/lidar/top";
  lidar.frame_id = "lidar_top";
  lidar.capacity = 10000;
  lidar.period = milliseconds(100);
  lidar.assumed = {"extrinsics"};
  run.rig.sensors = {camera, lidar};
  run.sources = {{camera.topic, {}}, {lidar.topic, {}}};
  run.problem = problem();
  run.schedule = schedule(run.problem);
  run.stages = {{"camera_network", "full", "/camera/objects"},
                {"lidar_classical", "full", "/lidar/objects"},
                {"fusion_tracker", "full", "/tracks"}};
  run.plans = {plan()};
  run.sensor_from_table.to_origin = {kEpoch};
  run.dispatch.hyperperiods_run = hyperperiods;
  run.dispatch.rights = {real_time, real_time, real_time, "", "", real_time ? "demotion" : ""};
  run.dispatch.core_busy = {0.2, 0.4};
  run.allocation_guard = true;
  fill_records(run, hyperperiods, real_time);
  for (std::uint32_t s = 0; s < run.stages.size(); ++s) {
    TopicDigest topic;
    topic.topic = run.stages[s].topic;
    Digester sum;
    for (const sched::JobRecord& r : run.records) {
      if (r.stage != s) continue;
      ++topic.chunks;
      sum.add_value(r.output);
    }
    topic.digest = sum.finish();
    topic.compared = "equal";
    run.digests.push_back(topic);
  }
  run.health.resize(2);
  run.health[0].sensor = "front";
  run.health[0].messages = hyperperiods * 3;
  run.health[1].sensor = "top";
  run.health[1].messages = hyperperiods;
  run.health[1].invalid_points = 3;
  run.pools.pools = {{2048, 4096, 12, {"/camera/objects", "/lidar/objects"}},
                     {1 << 20, (1 << 20) + 4096, 6, {"/camera/front"}}};
  run.pools.user_bytes = 12 * 4096 + 6 * ((1 << 20) + 4096);
  run.pool_use = {{4096, 12, 1, 7}, {(1 << 20) + 4096, 6, 1, 4}};
  run.resident_bytes = 90 << 20;
  fill_scene(run);
  return run;
}

sched::JobRecord& record_of(RunData& run, std::uint32_t stage, std::uint64_t job) {
  for (sched::JobRecord& r : run.records) {
    if (r.stage == stage && r.job == job) return r;
  }
  std::abort();  // a mistake of the test
}

void skip_job(RunData& run, std::uint32_t stage, std::uint64_t job, sched::Reason reason) {
  sched::JobRecord& r = record_of(run, stage, job);
  r.reason = reason;
  r.actual_start = r.completion = r.publication = sched::kNever;
  sched::classify(r, {});
  r.published = 0;
  r.input_count = 0;
  for (sched::JobRecord& consumer : run.records) {
    const auto& inputs = run.problem.stages[consumer.stage].inputs;
    for (std::size_t k = 0; k < consumer.input_count && k < inputs.size(); ++k) {
      if (inputs[k].from_sensor || inputs[k].source != stage || consumer.inputs[k].job != job) continue;
      if (consumer.inputs[k].kind == 3) continue;
      consumer.inputs[k] = {};
      consumer.inputs[k].reason = sched::Reason::kProducerNothing;
      consumer.flags |= sched::kFlagMissingInput;
    }
  }
}

void cut_camera(RunData& run) {
  run.problem.board.units = {{"gpu"}};
  sched::Budget& budget = run.problem.stages[kCameraStage].variants[0].budgets[0];
  budget.segments = {
      {std::nullopt, milliseconds(3), {}, {}}, {0, milliseconds(3), {}, {}}, {std::nullopt, milliseconds(2), {}, {}}};
  run.schedule.choices[kCameraStage].budget = budget;
  const std::vector<sched::Slot> whole = run.schedule.slots;  // later segments go behind: records name slots by number
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].stage != kCameraStage) continue;
    const sched::Tick start = whole[i].start;
    run.schedule.slots[i].end = start + ticks(3);
    run.schedule.slots.push_back({kCameraStage, whole[i].job, {}, start + ticks(3), start + ticks(6), 1, 0});
    run.schedule.slots.push_back({kCameraStage, whole[i].job, whole[i].cores, start + ticks(6), whole[i].end, 2, {}});
  }
  for (sched::JobRecord& r : run.records) {
    if (r.stage != kCameraStage) continue;
    r.segment_count = 3;
    const std::int64_t at[] = {0, 3 * kMs, 6 * kMs, 8 * kMs};
    for (int i = 0; i < 3; ++i) r.segments[i] = {r.actual_start + at[i], r.actual_start + at[i + 1]};
    r.completion = r.segments[2].end;
  }
}

}  // namespace takt::pipeline::test
