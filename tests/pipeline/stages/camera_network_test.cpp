// takt's own network as a stage, on the shipped drive.
#include "pipeline/stages/camera_network.h"

#include <cmath>
#include <cstdio>

#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "runtime/exec/session.h"
#include "runtime/memory/alloc_guard.h"
#include "simulated_drive.h"

namespace takt::pipeline::testing {
namespace {

using sensors::SensorKind;

// Contract and plan for the pictures of a camera, as the assembly hands them to a stage.
struct Model {
  std::shared_ptr<const ModelContract> contract;
  std::shared_ptr<const plan::Plan> plan;
};
Model model_for(const sensors::RigSensor& camera, const std::string& size,
                sensors::PixelFormat format = sensors::PixelFormat::kRgb8) {
  auto contract = load_model(TAKT_SOURCE_DIR "/configs/models/sim_camera_" + size + ".yaml");
  EXPECT_TRUE(contract) << contract.error().message;
  auto plan = compile_model(*contract, picture_of(*camera.camera, format), {1, 2});
  EXPECT_TRUE(plan) << plan.error().message;
  return {std::make_shared<const ModelContract>(*contract), plan ? *plan : nullptr};
}
std::function<void(StageSpec&)> with(const Model& model, sensors::PixelFormat format = sensors::PixelFormat::kRgb8) {
  return [=](StageSpec& spec) {
    spec.plan = model.plan;
    spec.model = model.contract;
    spec.pixel_format = format;
  };
}

TEST(CameraNetwork, FindsVehiclesOfTheShippedDriveInBothSizes) {
  for (const char* size : {"full", "lite"}) {
    SimulatedDrive drive;
    ASSERT_EQ(drive.error(), "");
    const sensors::RigSensor camera = drive.sensor(SensorKind::kCamera);
    StageUnderTest stage("camera_network", {camera}, "{}", size, with(model_for(camera, size)));
    ASSERT_EQ(stage.error(), "");
    DetectionScore score;
    int frame = 0;
    drive.each(SensorKind::kCamera, [&](const Chunk& image, const Chunk&) {
      if (frame++ % 3 != 0) return;
      const Output output = stage.run({image.input()});
      EXPECT_FALSE(output.repaired);
      std::vector<Object> standing;
      for (const Object& o : output.objects()) {
        EXPECT_TRUE(o.flags & kHasImageBox);
        EXPECT_LT(o.u0, o.u1);
        EXPECT_LE(o.u1, static_cast<float>(camera.camera->width));
        EXPECT_LE(o.v1, static_cast<float>(camera.camera->height));
        if (o.flags & kHasPosition) standing.push_back(o);
      }
      std::vector<TruthBox> in_view;  // 70 degrees
      for (const TruthBox& box : drive.truth_at(image.header.capture_ns).vehicles) {
        if (box.x > 4 && std::fabs(box.y) < 0.65F * box.x) in_view.push_back(box);
      }
      add_frame(score, standing, in_view, 30, 5);
    });
    std::printf("camera network %s: recall %.3f precision %.3f, mean distance %.2f m\n", size, score.recall(),
                score.precision(), score.mean_distance());
    EXPECT_GT(score.expected, 50U);
    EXPECT_GE(score.recall(), 0.4);
    EXPECT_GE(score.precision(), 0.5);
  }
}

// One, two parts; the same picture twice; after another picture.
TEST(CameraNetwork, BytesDependOnThePictureAlone) {
  SimulatedDrive drive;
  ASSERT_EQ(drive.error(), "");
  const sensors::RigSensor camera = drive.sensor(SensorKind::kCamera);
  StageUnderTest stage("camera_network", {camera}, "{}", "full", with(model_for(camera, "full")));
  ASSERT_EQ(stage.error(), "");
  std::vector<Digest> seen;
  std::size_t boxes = 0;
  int frame = 0;
  drive.each(SensorKind::kCamera, [&](const Chunk& image, const Chunk&) {
    if (frame++ % 20 != 0) return;
    const Output once = stage.run({image.input()});
    boxes += once.objects().size();
    EXPECT_EQ(stage.run({image.input()}, 2).digest(), once.digest());
    EXPECT_EQ(stage.run({image.input()}).digest(), once.digest());
    EXPECT_EQ(std::find(seen.begin(), seen.end(), once.digest()), seen.end()) << "another picture, other boxes";
    seen.push_back(once.digest());
  });
  EXPECT_GE(seen.size(), 4U);
  EXPECT_GT(boxes, 4U);
}

TEST(CameraNetwork, PicturesOfAnotherFormAreLeftOutAndCounted) {
  const sensors::RigSensor camera = camera_sensor(640, 384);
  StageUnderTest stage("camera_network", {camera}, "{}", "full", with(model_for(camera, "full")));
  ASSERT_EQ(stage.error(), "");
  const auto left_out = [&](const Chunk& chunk) {
    const Output output = stage.run({chunk.input()});
    EXPECT_EQ(output.list().count, 0U);
    EXPECT_EQ(output.list().input_points, 0U);
    return output.repaired;
  };
  EXPECT_TRUE(left_out(make_image(320, 192)));
  EXPECT_TRUE(left_out(make_image(1280, 768)));
  Chunk chunk = make_image(640, 384);
  chunk.as<sensors::Image>().format = sensors::PixelFormat::kBgr8;
  EXPECT_TRUE(left_out(chunk));
  chunk = make_image(640, 384);
  chunk.as<sensors::Image>().row_pitch += 64;
  EXPECT_TRUE(left_out(chunk));
  chunk = make_image(640, 384);
  chunk.as<sensors::Image>().data_offset = 128;
  EXPECT_TRUE(left_out(chunk));
  chunk = make_image(640, 384);
  chunk.header.payload_bytes -= 1;
  EXPECT_TRUE(left_out(chunk));
  const Output missing = stage.run({StageInput{}});
  EXPECT_EQ(missing.list().count, 0U);
  EXPECT_FALSE(missing.repaired) << "nothing came: nothing to repair";
  const Output whole = stage.run({make_image(640, 384).input()});
  EXPECT_FALSE(whole.repaired);
  EXPECT_EQ(whole.list().input_points, 640U * 384U);
}

TEST(CameraNetwork, WorstInputHasManyCandidatesAndNothingIsAllocated) {
  const sensors::RigSensor camera = camera_sensor(640, 384);
  StageUnderTest stage("camera_network", {camera}, "{}", "full", with(model_for(camera, "full")));
  ASSERT_EQ(stage.error(), "");
  Chunk chunk(sensors::Image::bytes_for(640, 384, 3));
  stage->adversarial_input(0, 7, chunk.header, chunk.bytes());
  const Output warm = stage.run({chunk.input()});
  EXPECT_FALSE(warm.repaired) << "a picture that the stage takes";
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted in this build";
  Output output;
  StageJob job;
  const StageInput input = chunk.input();
  job.inputs = {&input, 1};
  job.output_header = &output.chunk.header;
  job.output = output.chunk.payload();
  const memory::ThreadCounters before = memory::thread_counters();
  for (int phase = 0; phase < stage->phases(); ++phase) stage->run(phase, 0, 1, job);
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
  EXPECT_EQ(output.digest(), warm.digest());
}

TEST(CameraNetwork, MonoPicturesHaveTheirOwnPlan) {
  const sensors::RigSensor camera = camera_sensor(640, 384);
  const auto mono = sensors::PixelFormat::kMono8;
  StageUnderTest stage("camera_network", {camera}, "{}", "full", with(model_for(camera, "full", mono), mono));
  ASSERT_EQ(stage.error(), "");
  Chunk chunk(sensors::Image::bytes_for(640, 384, 1));
  stage->adversarial_input(0, 1, chunk.header, chunk.bytes());
  EXPECT_FALSE(stage.run({chunk.input()}).repaired);
  StageUnderTest mixed("camera_network", {camera}, "{}", "full", with(model_for(camera, "full", mono)));
  EXPECT_NE(mixed.error().find("not compiled for pictures"), std::string::npos) << mixed.error();
}

TEST(CameraNetwork, WhatIsMissingIsNamed) {
  const sensors::RigSensor camera = camera_sensor(640, 384);
  StageUnderTest none("camera_network", {camera});
  EXPECT_NE(none.error().find("no model is given"), std::string::npos) << none.error();
  StageUnderTest lidar("camera_network", {lidar_sensor(100)}, "{}", "full", with(model_for(camera, "full")));
  EXPECT_NE(lidar.error().find("must come from a camera"), std::string::npos) << lidar.error();
  StageUnderTest unknown("camera_network", {camera}, "{colour: 1}", "full", with(model_for(camera, "full")));
  EXPECT_NE(unknown.error().find("colour"), std::string::npos) << unknown.error();
}

}  // namespace
}  // namespace takt::pipeline::testing
