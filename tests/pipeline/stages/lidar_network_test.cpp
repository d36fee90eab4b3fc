// The pillar network as a stage: small layers, the shipped ranges and rules.
#include "pipeline/stages/lidar_network.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "pipeline/models/lidar_model.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/exec/counts.h"
#include "runtime/exec/session.h"
#include "runtime/memory/alloc_guard.h"
#include "stage_fixture.h"
#include "tests/support/python.h"

namespace takt::pipeline::testing {
namespace {

constexpr std::uint32_t kCapacity = 3000;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

LidarModel small_model() {
  auto model = load_lidar_model(TAKT_SOURCE_DIR "/configs/models/lidar_pillars.yaml");
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  model->network.channels = {8, 8};
  model->network.convs = {0, 0};
  model->network.neck = 8;
  model->network.pillar = {0.8F, 0.8F};
  model->network.pillars = 1500;
  return *model;
}
std::function<void(StageSpec&)> with(const LidarModel& model, const sensors::RigSensor& lidar) {
  auto plan = compile_lidar_model(model, lidar, {1, 2});
  EXPECT_TRUE(plan) << plan.error().message;
  return [model, plan = plan ? *plan : nullptr](StageSpec& spec) {
    spec.plan = plan;
    spec.model = std::make_shared<const ModelContract>(model.contract);
  };
}

// The LiDAR stage of a vehicle with ego motion, job by job.
class Vehicle {
 public:
  explicit Vehicle(const std::string& params = "{score_min: 0}")
      : stage_("lidar_network", {lidar_sensor(kCapacity), ego_sensor()}, params, "full",
               with(small_model(), lidar_sensor(kCapacity))) {
    EXPECT_EQ(stage_.error(), "");
  }
  // Sweep number `frame`, 100 ms apart; the vehicle drives 1 m between two of them.
  Output run(const std::vector<CloudPoint>& points, int frame, int parts = 1, bool with_ego = true) {
    Chunk cloud = make_cloud(points, kCapacity);
    return run(cloud, frame, parts, with_ego);
  }
  Output run(Chunk& cloud, int frame, int parts = 1, bool with_ego = true) {
    cloud.header.capture_ns = 1'000'000'000 + frame * 100'000'000LL;
    Chunk ego = make_ego(10, 0);
    ego.header.capture_ns = cloud.header.capture_ns - 20'000'000;
    ego.as<sensors::EgoMotion>().position[0] = 1.0 * frame - 0.2;
    return stage_.run({cloud.input(), with_ego ? ego.input() : StageInput{}}, parts);
  }
  // Of the last job.
  [[nodiscard]] std::map<std::string, std::int32_t> counts() {
    std::map<std::string, std::int32_t> out;
    const exec::CountLog& log = *stage_->counts();
    if (log.jobs() == 0) return out;
    const auto values = log.job(log.kept() - 1);
    for (std::size_t i = 0; i < values.size(); ++i) out[log.counters()[i].name] = values[i];
    return out;
  }
  StageUnderTest& stage() { return stage_; }

 private:
  StageUnderTest stage_;
};

std::vector<CloudPoint> street(int frame, std::uint32_t count = kCapacity) {
  std::vector<CloudPoint> points;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float a = static_cast<float>(i) * 0.618F + static_cast<float>(frame),
                r = 5 + static_cast<float>(i % 397) * 0.1F;
    points.push_back({r * std::cos(a), r * std::sin(a), -1.5F + static_cast<float>(i % 13) * 0.2F, 0});
  }
  return points;
}

TEST(LidarNetwork, BytesDependOnSweepsAloneForAnyNumberOfWorkers) {
  Vehicle one, two;
  std::vector<Digest> seen;
  for (int frame = 0; frame < 5; ++frame) {
    const Output a = one.run(street(frame), frame, 1), b = two.run(street(frame), frame, 2);
    EXPECT_EQ(a.digest(), b.digest());
    EXPECT_FALSE(a.repaired);
    EXPECT_GT(a.objects().size(), 10U) << "random weights see something everywhere";
    EXPECT_EQ(std::find(seen.begin(), seen.end(), a.digest()), seen.end());
    seen.push_back(a.digest());
    const auto counts = one.counts();
    EXPECT_EQ(counts.at("raw_count"), static_cast<std::int32_t>(kCapacity));
    EXPECT_EQ(counts.at("all_count"), counts.at("seen_count") * (frame == 0 ? 1 : 2)) << "one sweep is remembered";
    EXPECT_EQ(counts.at("forgotten"), 0);
  }
  for (const exec::CountLog::Counter& c : one.stage()->counts()->counters()) {
    if (c.name == "pillars") {
      EXPECT_EQ(c.capacity, 1500);
    }
    if (c.name == "raw_count") {
      EXPECT_EQ(c.capacity, kCapacity);
    }
    if (c.name == "all_count") {
      EXPECT_EQ(c.capacity, 2 * kCapacity);
    }
    EXPECT_LE(c.maximum, c.capacity == 0 ? c.maximum : c.capacity) << c.name;
  }
}

// A thing that stands still is seen in one place however the vehicle moves: one pillar, twice as many points.
TEST(LidarNetwork, RememberedSweepsComeToThePresentPose) {
  Vehicle v;
  const auto wall = [](int frame) {
    std::vector<CloudPoint> points;
    // 20.2 m ahead at frame 0, in the sensor's frame (1.2 m before the vehicle's origin); 1 m nearer each frame.
    for (int i = 0; i < 10; ++i) points.push_back({20.2F - static_cast<float>(frame) - 1.2F, 0.2F, 0, 0});
    return points;
  };
  for (int frame = 0; frame < 3; ++frame) {
    v.run(wall(frame), frame);
    EXPECT_EQ(v.counts().at("pillars"), 1) << frame;
    EXPECT_EQ(v.counts().at("members_count"), frame == 0 ? 10 : 20);
  }
  // Without ego motion nobody knows where the past lies.
  v.run(wall(3), 3, 1, false);
  EXPECT_EQ(v.counts().at("members_count"), 10);
  EXPECT_EQ(v.counts().at("forgotten"), 1);
}

TEST(LidarNetwork, BadSweepsGiveDefinedOutputs) {
  Vehicle v;
  const auto nothing = [&](const Output& output) {
    EXPECT_FALSE(output.repaired);
    return v.counts();
  };
  auto counts = nothing(v.run(std::vector<CloudPoint>{}, 0));
  EXPECT_EQ(counts.at("raw_count"), 0);
  EXPECT_EQ(counts.at("pillars"), 0);

  std::vector<CloudPoint> points = street(1, 500);
  for (CloudPoint& p : points) p.y = kNaN;
  Output output = v.run(points, 1);
  EXPECT_EQ(output.list().invalid_points, 500U);
  EXPECT_EQ(nothing(output).at("seen_count"), 0);

  for (CloudPoint& p : points) p = {206494.75F, 5, 3, 0};
  counts = nothing(v.run(points, 2));
  EXPECT_EQ(counts.at("rejected[2]"), 500) << "out of range";
  EXPECT_EQ(counts.at("rejected[0]"), 0);

  // Every point twice: the same cells, twice as full, until a pillar holds no more.
  points = street(3, 1000);
  counts = nothing(v.run(points, 4));
  std::vector<CloudPoint> twice = points;
  twice.insert(twice.end(), points.begin(), points.end());
  const auto doubled = nothing(v.run(twice, 8));
  EXPECT_EQ(doubled.at("pillars"), counts.at("pillars"));
  EXPECT_EQ(doubled.at("seen_count"), 2 * counts.at("seen_count"));

  // More points than fit, as a header may claim.
  Chunk crowded = make_cloud(street(9), kCapacity);
  crowded.as<sensors::PointCloud>().count = 0xffffffff;
  EXPECT_EQ(nothing(v.run(crowded, 12)).at("raw_count"), static_cast<std::int32_t>(kCapacity));

  // Out of order: the past lies in the future.
  v.run(street(20), 20);
  v.run(street(19), 19);
  EXPECT_EQ(v.counts().at("forgotten"), 1);
  // Seconds without a sweep: no past.
  v.run(street(60), 60);
  EXPECT_EQ(v.counts().at("forgotten"), 1);
  EXPECT_EQ(v.counts().at("all_count"), v.counts().at("seen_count"));
}

TEST(LidarNetwork, CloudsOfAnotherLayoutAreLeftOutAndStateStays) {
  Vehicle v, undisturbed;
  v.run(street(0), 0);
  undisturbed.run(street(0), 0);
  Chunk other = make_cloud(street(1, 100), 100);
  const Output output = v.run(other, 1);
  EXPECT_TRUE(output.repaired);
  EXPECT_EQ(output.list().count, 0U);
  Chunk cut_short = make_cloud(street(1), kCapacity);
  cut_short.header.payload_bytes -= 1;
  EXPECT_TRUE(v.run(cut_short, 1).repaired);
  const Output missing = v.stage().run({StageInput{}, StageInput{}});
  EXPECT_FALSE(missing.repaired) << "nothing came: nothing to repair";
  EXPECT_EQ(v.run(street(1), 1).digest(), undisturbed.run(street(1), 1).digest());
  EXPECT_EQ(v.stage()->counts()->jobs(), 2U);
}

TEST(LidarNetwork, AJobThatIsNotPublishedLeavesNoPast) {
  Vehicle v, undisturbed;
  v.run(street(0), 0);
  undisturbed.run(street(0), 0);
  // Half of a job, then its end without publication.
  Chunk cloud = make_cloud(street(7), kCapacity);
  cloud.header.capture_ns = 1'050'000'000;
  StageJob job;
  Output output;
  const std::vector<StageInput> inputs{cloud.input(), StageInput{}};
  job.inputs = inputs;
  job.output_header = &output.chunk.header;
  job.output = output.chunk.payload();
  for (int phase = 0; phase < v.stage()->phases(); ++phase) v.stage()->run(phase, 0, 1, job);
  EXPECT_EQ(v.run(street(1), 1).digest(), undisturbed.run(street(1), 1).digest());
}

// Two variants of one stage, another network each, see the same past.
TEST(LidarNetwork, AnotherVariantGoesOnWithThePast) {
  const sensors::RigSensor lidar = lidar_sensor(kCapacity);
  LidarModel lite = small_model();
  lite.network.pillars = 500;
  const auto full_spec = with(small_model(), lidar), lite_spec = with(lite, lidar);
  std::shared_ptr<exec::StateStore> state;
  const auto sharing = [&](const std::function<void(StageSpec&)>& adjust) {
    return [&state, adjust](StageSpec& spec) {
      adjust(spec);
      if (!state) state = *exec::StateStore::create(spec.plan, device::cpu());
      spec.state = state;
    };
  };
  StageUnderTest full("lidar_network", {lidar, ego_sensor()}, "{}", "full", sharing(full_spec));
  StageUnderTest other("lidar_network", {lidar, ego_sensor()}, "{}", "lite", sharing(lite_spec));
  ASSERT_EQ(full.error() + other.error(), "");
  for (int frame = 0; frame < 4; ++frame) {
    Chunk cloud = make_cloud(street(frame), kCapacity), ego = make_ego(10, 0);
    cloud.header.capture_ns = ego.header.capture_ns = 1'000'000'000 + frame * 100'000'000LL;
    ego.as<sensors::EgoMotion>().position[0] = frame;
    StageUnderTest& stage = frame % 2 == 0 ? full : other;
    stage.run({cloud.input(), ego.input()});
    const exec::CountLog& log = *stage->counts();
    std::map<std::string, std::int32_t> counts;
    for (std::size_t i = 0; i < log.counters().size(); ++i) counts[log.counters()[i].name] = log.job(log.kept() - 1)[i];
    EXPECT_EQ(counts.at("all_count"), counts.at("seen_count") * (frame == 0 ? 1 : 2)) << frame;
  }
}

TEST(LidarNetwork, WorstInputFillsEverythingAndNothingIsAllocated) {
  Vehicle v;
  Chunk cloud(sensors::PointCloud::bytes_for(kCapacity)), ego(sensors::EgoMotion::bytes_for());
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    v.stage()->adversarial_input(0, seed, cloud.header, cloud.bytes());
    v.stage()->adversarial_input(1, seed, ego.header, ego.bytes());
    EXPECT_FALSE(v.stage().run({cloud.input(), ego.input()}).repaired);
  }
  const auto counts = v.counts();
  EXPECT_EQ(counts.at("raw_count"), static_cast<std::int32_t>(kCapacity));
  EXPECT_EQ(counts.at("pillars"), 1500) << "all pillars are full";
  EXPECT_GT(counts.at("pillar_points_dropped"), 0);
  EXPECT_GT(counts.at("all_count"), static_cast<std::int32_t>(1.9 * kCapacity));
  EXPECT_EQ(counts.at("best_count"), 200);
  EXPECT_GT(counts.at("boxes_dropped"), 0);
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted in this build";
  StageJob job;
  Output output;
  const std::vector<StageInput> inputs{cloud.input(), ego.input()};
  job.inputs = inputs;
  job.output_header = &output.chunk.header;
  job.output = output.chunk.payload();
  const memory::ThreadCounters before = memory::thread_counters();
  for (int phase = 0; phase < v.stage()->phases(); ++phase) v.stage()->run(phase, 0, 1, job);
  const memory::ThreadCounters spent = memory::thread_counters() - before;
  EXPECT_EQ(spent.allocations, 0U);
  EXPECT_LT(spent.copied_bytes, 64U << 10);
}

TEST(LidarNetwork, ObjectsBelowTheScoreAreDiscarded) {
  Vehicle v("{score_min: 1}");
  EXPECT_EQ(v.run(street(0), 0).objects().size(), 0U);
  EXPECT_GT(v.counts().at("count"), 10);
}

// A model file that names an ONNX file: the network that the script writes does as a stage what the built one does.
TEST(LidarNetwork, AFileOfTheSameNetworkGivesTheSameObjects) {
  const std::string python = test::python_with_onnx();
  if (python.empty()) GTEST_SKIP() << "no Python here has numpy and onnx";
  const sensors::RigSensor lidar = lidar_sensor(kCapacity);
  const LidarModel built = small_model();
  const compiler::PillarNetwork& n = built.network;
  std::string place;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) place += fmt::format("{:.17g},", lidar.vehicle_from_sensor.rotation[3 * i + j]);
    place += fmt::format("{:.17g}{}", lidar.vehicle_from_sensor.translation[i], i < 2 ? "," : "");
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("takt-lidar-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "net.onnx").string();
  const std::string command = fmt::format(
      "{} {}/tools/nets/pillars.py {} payload_bytes={} points={} poses={} sweeps={} vehicle_from_sensor=[{}]"
      " pillar=[0.8,0.8] pillars=1500 channels=[8,8] convs=[0,0] neck=8",
      python, TAKT_SOURCE_DIR, file, sensors::PointCloud::bytes_for(kCapacity), kCapacity, n.poses, n.sweeps, place);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto digest = digest_file(file);
  ASSERT_TRUE(digest);
  ASSERT_TRUE(write_file_atomically((folder / "net.yaml").string(),
                                    "name: from_a_file\nlicence: part of takt\nfile: net.onnx\nhash: " + digest->hex() +
                                        "\nclasses: {car: vehicle, person: pedestrian, bicycle: cyclist}\n"));
  const auto read = load_lidar_model((folder / "net.yaml").string());
  ASSERT_TRUE(read) << read.error().message;
  StageUnderTest from_file("lidar_network", {lidar}, "{score_min: 0}", "full", with(*read, lidar));
  StageUnderTest from_builder("lidar_network", {lidar}, "{score_min: 0}", "full", with(built, lidar));
  ASSERT_EQ(from_file.error() + from_builder.error(), "");
  for (int frame = 0; frame < 3; ++frame) {
    Chunk cloud = make_cloud(street(frame), kCapacity);
    cloud.header.capture_ns = 1'000'000'000 + frame * 100'000'000LL;
    const Output a = from_file.run({cloud.input()}, 1), b = from_builder.run({cloud.input()}, 1);
    EXPECT_GT(a.objects().size(), 10U);
    EXPECT_EQ(a.digest(), b.digest());
  }
  // Another file under the name is refused before it is compiled.
  std::ofstream(file, std::ios::app) << "x";
  const auto changed = compile_lidar_model(*read, lidar, {1});
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().message.find("net.onnx"), std::string::npos) << changed.error().message;
  std::filesystem::remove_all(folder);
}

TEST(LidarNetwork, WhatIsWrongIsNamed) {
  const sensors::RigSensor lidar = lidar_sensor(kCapacity);
  StageUnderTest none("lidar_network", {lidar});
  EXPECT_NE(none.error().find("no model is given"), std::string::npos) << none.error();
  StageUnderTest other("lidar_network", {lidar_sensor(100)}, "{}", "full", with(small_model(), lidar));
  EXPECT_NE(other.error().find("was compiled for clouds of"), std::string::npos) << other.error();
  StageUnderTest camera("lidar_network", {camera_sensor(64, 64)}, "{}", "full", with(small_model(), lidar));
  EXPECT_NE(camera.error().find("must come from a lidar"), std::string::npos) << camera.error();
  auto text = read_file(TAKT_SOURCE_DIR "/configs/models/lidar_pillars.yaml");
  ASSERT_TRUE(text);
  text->replace(text->find("[0.32, 0.32]"), 12, "[0.32, 0.3]");
  const auto odd = parse_lidar_model(*text, "odd.yaml");
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::kConfiguration);
  EXPECT_NE(odd.error().message.find(
                "odd.yaml:10:13: pillars.pillar_m: 102.4 m of range_m along y are 341.333 pillars of 0.3 m; expected "
                "a multiple of 8"),
            std::string::npos)
      << odd.error().message;
  LidarModel model = small_model();
  model.network.pillars = 0;
  const auto plan = compile_lidar_model(model, lidar, {1});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("lidar_pillars.yaml"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace takt::pipeline::testing
