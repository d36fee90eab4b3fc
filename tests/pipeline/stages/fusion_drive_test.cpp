// The shipped drive through the stages themselves, without transport or dispatcher: every sample through its detection
// stage, every 50 ms the newest lists that could have been there through the tracker, scored against truth.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/report/score.h"
#include "pipeline/stages/stage.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/radar/radar_decoder.h"
#include "sensors/rig/rig.h"
#include "tests/pipeline/stages/fusion_fixture.h"
#include "tests/pipeline/stages/stage_fixture.h"

namespace takt::pipeline {
namespace {

using testing::Chunk;

constexpr Duration kDetectionTime = milliseconds(15);  // from a sample's arrival to its list
constexpr Duration kFusionPeriod = milliseconds(50);

struct Timed {
  SensorTime there;  // when a consumer could have it
  Chunk chunk;
};

struct Drive {
  sensors::Rig rig;
  std::vector<std::vector<Timed>> samples;  // by sensor of the rig, as decoded
  std::vector<TruthFrame> truth;
  SensorTime first, last;
};

Result<std::unique_ptr<sensors::Decoder>> decoder_of(const sensors::RigSensor& sensor) {
  switch (sensor.kind) {
    case sensors::SensorKind::kCamera: return sensors::make_camera_decoder(sensor);
    case sensors::SensorKind::kLidar: return sensors::make_lidar_decoder(sensor);
    case sensors::SensorKind::kRadar: return sensors::make_radar_decoder(sensor);
    default: return sensors::make_ego_decoder(sensor);
  }
}

TruthFrame truth_of(const sensors::log::Truth& truth) {
  TruthFrame frame;
  frame.stamp = truth.stamp;
  for (const sensors::log::TruthBox& box : truth.boxes) {
    TruthBox& out = frame.boxes.emplace_back();
    out.id = box.id;
    out.object_class = static_cast<ObjectClass>(box.object_class);
    out.x = box.pose.position[0];
    out.y = box.pose.position[1];
    out.vx = box.velocity[0];
    out.vy = box.velocity[1];
    out.length = box.size[0];
    out.width = box.size[1];
    out.lidar_points = box.lidar_points;
  }
  return frame;
}

Result<Drive> read_drive(const std::string& log, const std::string& rig) {
  Drive drive;
  TAKT_ASSIGN(drive.rig, sensors::load_rig(rig));
  TAKT_ASSIGN(auto reader, sensors::open_log(log, sensors::release_rules(drive.rig)));
  std::vector<std::unique_ptr<sensors::Decoder>> decoders;
  for (const sensors::RigSensor& sensor : drive.rig.sensors) {
    TAKT_ASSIGN(auto decoder, decoder_of(sensor));
    decoders.push_back(std::move(decoder));
  }
  drive.samples.resize(drive.rig.sensors.size());
  drive.first = reader->span()->first;
  drive.last = reader->span()->second;
  for (;;) {
    TAKT_ASSIGN(const auto message, reader->next());
    if (!message) return drive;
    if (message->channel->schema == "takt.Truth") {
      TAKT_ASSIGN(const sensors::log::Truth truth, sensors::decode_truth(message->bytes));
      drive.truth.push_back(truth_of(truth));
    }
    for (std::size_t s = 0; s < drive.rig.sensors.size(); ++s) {
      if (drive.rig.sensors[s].topic != message->channel->topic) continue;
      Timed sample{message->arrival, Chunk(decoders[s]->payload_capacity())};
      const auto report = decoders[s]->decode(message->bytes, sample.chunk.bytes());
      if (!report.ok) continue;
      sample.chunk.header.schema = decoders[s]->schema();
      sample.chunk.header.capture_ns = report.stamp.ns;
      sample.chunk.header.payload_bytes = report.payload_bytes;
      drive.samples[s].push_back(std::move(sample));
    }
  }
}

// The newest of an ascending sequence that was there at `t`; empty when none.
StageInput newest(const std::vector<Timed>& sequence, SensorTime t) {
  StageInput input;
  for (const Timed& sample : sequence) {
    if (sample.there <= t) input = sample.chunk.input();
  }
  return input;
}

std::unique_ptr<Stage> make_stage(StageSpec spec) {
  auto document = YamlDocument::parse("{}", "test");
  auto stage = create_stage(spec, document->root());
  EXPECT_TRUE(stage) << stage.error().message;
  return stage ? *std::move(stage) : nullptr;
}

void run_job(Stage& stage, StageJob& job) {
  for (int phase = 0; phase < stage.phases(); ++phase) stage.run(phase, 0, 1, job);
  stage.published();
}

std::vector<TrackFrame> track(const Drive& drive) {
  const std::size_t ego = drive.rig.find("ego").value_or(drive.rig.sensors.size());
  const bool has_ego = ego < drive.rig.sensors.size();
  StageSpec fusion;
  fusion.type = "fusion_tracker";
  fusion.variant = "full";
  fusion.name = "fusion";
  fusion.rig = &drive.rig;
  std::vector<std::vector<Timed>> lists;
  for (std::size_t s = 0; s < drive.rig.sensors.size(); ++s) {
    const sensors::RigSensor& sensor = drive.rig.sensors[s];
    if (s == ego) continue;
    const bool camera = sensor.kind == sensors::SensorKind::kCamera;
    const bool lidar = sensor.kind == sensors::SensorKind::kLidar;
    StageSpec spec;
    spec.type = camera ? "camera_classical" : lidar ? "lidar_classical" : "radar_cluster";
    spec.variant = "full";
    spec.name = sensor.name;
    spec.rig = &drive.rig;
    spec.inputs.push_back({sensor.name, &sensor, s, drive.samples[s].front().chunk.header.schema});
    if (!camera && has_ego) {
      spec.inputs.push_back({"ego", &drive.rig.sensors[ego], ego, sensors::kEgoMotionSchema});
    }
    const auto stage = make_stage(spec);
    auto& out = lists.emplace_back();
    for (const Timed& sample : drive.samples[s]) {
      Timed list{sample.there + kDetectionTime, Chunk(sizeof(ObjectList))};
      std::vector<StageInput> inputs{sample.chunk.input()};
      if (spec.inputs.size() == 2) inputs.push_back(newest(drive.samples[ego], sample.there));
      StageJob job;
      job.now = sample.there;
      job.inputs = inputs;
      job.output_header = &list.chunk.header;
      job.output = list.chunk.payload();
      run_job(*stage, job);
      out.push_back(std::move(list));
    }
    fusion.inputs.push_back({sensor.name, nullptr, s, kObjectListSchema});
  }
  if (has_ego) fusion.inputs.push_back({"ego", &drive.rig.sensors[ego], ego, sensors::kEgoMotionSchema});

  const auto made = testing::make_fusion(fusion, read_fusion_model(YamlDocument::parse("{}", "test").value().root()));
  EXPECT_TRUE(made) << made.error().message;
  if (!made) return {};
  const std::unique_ptr<Stage>& stage = *made;
  std::vector<TrackFrame> frames;
  for (SensorTime now = drive.first; now <= drive.last; now = now + kFusionPeriod) {
    std::vector<StageInput> inputs;
    for (const auto& list : lists) inputs.push_back(newest(list, now));
    if (has_ego) inputs.push_back(newest(drive.samples[ego], now));
    Chunk output(sizeof(TrackList));
    StageJob job;
    job.number = frames.size();
    job.now = now;
    job.inputs = inputs;
    job.output_header = &output.header;
    job.output = output.payload();
    run_job(*stage, job);
    TrackFrame& frame = frames.emplace_back();
    frame.job = job.number;
    frame.list = output.as<TrackList>();
  }
  return frames;
}

void print(const char* name, const ClassScore& s) {
  std::printf(
      "%-12s recall %.3f precision %.3f (truth %llu matched %llu missed %llu false %llu ignored %llu) error %.2f m, id "
      "switches %llu\n",
      name, s.recall(), s.precision(), static_cast<unsigned long long>(s.truth),
      static_cast<unsigned long long>(s.matched), static_cast<unsigned long long>(s.missed),
      static_cast<unsigned long long>(s.false_positives), static_cast<unsigned long long>(s.ignored_tracks),
      s.mean_position_error_m(), static_cast<unsigned long long>(s.id_switches));
}

TEST(FusionDrive, FindsTheVehiclesOfTheShippedDrive) {
  const std::string root = TAKT_SOURCE_DIR;
  auto drive = read_drive(root + "/replay_data/city.mcap", root + "/configs/rigs/sim.yaml");
  ASSERT_TRUE(drive) << drive.error().message;
  ASSERT_FALSE(drive->truth.empty());
  const std::vector<TrackFrame> frames = track(*drive);
  const Score score = score_tracks(frames, drive->truth);
  std::printf("%llu lists, %llu unjudged, %llu while filling\n", static_cast<unsigned long long>(score.lists),
              static_cast<unsigned long long>(score.unjudged), static_cast<unsigned long long>(score.fill_lists));
  print("vehicles", score.total);
  print("after fill", score.after_fill);
  print("pedestrians", score.classes[1]);
  EXPECT_GE(score.total.recall(), 0.7);
  EXPECT_GE(score.total.precision(), 0.7);
}

}  // namespace
}  // namespace takt::pipeline
