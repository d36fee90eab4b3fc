#include "pipeline/stages/camera_classical.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/camera_view.h"
#include "stage_fixture.h"

namespace takt::pipeline::testing {
namespace {

struct PaintedCar {
  float x = 0, y = 0;  // middle of its rear on the ground
  float width = 1.8F, height = 1.5F;
  std::array<int, 3> colour{150, 40, 40};
};

void fill(sensors::Image& image, float u0, float v0, float u1, float v1, std::array<int, 3> colour, SplitMix& noise) {
  for (int v = std::max(0, static_cast<int>(v0)); v < std::min<int>(static_cast<int>(v1), image.height); ++v) {
    for (int u = std::max(0, static_cast<int>(u0)); u < std::min<int>(static_cast<int>(u1), image.width); ++u) {
      for (int c = 0; c < 3; ++c) {
        const int level = colour[static_cast<std::size_t>(c)] + static_cast<int>(noise.next() % 9) - 4;
        image.row(static_cast<std::uint32_t>(v))[3 * u + c] = static_cast<std::uint8_t>(std::clamp(level, 0, 255));
      }
    }
  }
}

// Sky, grey road, markings, and cars seen from behind.
Chunk paint(const sensors::RigSensor& sensor, std::vector<PaintedCar> cars, std::uint32_t seed) {
  Chunk chunk = make_image(sensor.camera->width, sensor.camera->height);
  auto& image = chunk.as<sensors::Image>();
  const CameraView view(*sensor.camera, sensor.vehicle_from_sensor, 1);
  SplitMix noise(seed);
  const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
  fill(image, 0, 0, w, h / 2, {170, 190, 220}, noise);
  fill(image, 0, h / 2, w, h, {112, 112, 112}, noise);
  for (float x = 6; x < 40; x += 6) {  // dashes of a lane line
    const auto near = view.pixel({x, 1.9F, 0}), far = view.pixel({x + 2, 1.9F, 0});
    fill(image, far->u - 2, far->v, near->u + 2, near->v, {240, 240, 240}, noise);
  }
  std::sort(cars.begin(), cars.end(), [](const PaintedCar& a, const PaintedCar& b) { return a.x > b.x; });
  for (const PaintedCar& car : cars) {
    const auto left = view.pixel({car.x, car.y + car.width / 2, 0});
    const auto right = view.pixel({car.x, car.y - car.width / 2, car.height});
    const float metre = view.focal() / left->depth;
    fill(image, left->u, right->v, right->u, left->v, car.colour, noise);
    fill(image, left->u, left->v - 0.3F * metre, right->u, left->v, {25, 25, 25}, noise);
  }
  return chunk;
}

const Object* nearest(const Output& output, float x, float y, float within) {
  const Object* best = nullptr;
  for (const Object& o : output.objects()) {
    const float d = std::hypot(o.x - x, o.y - y);
    if (d < within) {
      within = d;
      best = &o;
    }
  }
  return best;
}

class CameraClassicalAtSize : public ::testing::TestWithParam<std::tuple<int, int, const char*>> {};

TEST_P(CameraClassicalAtSize, FindsCarsAndPutsThemOnTheGround) {
  const auto [width, height, variant] = GetParam();
  const sensors::RigSensor sensor =
      camera_sensor(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height));
  StageUnderTest stage("camera_classical", {sensor}, "{}", variant);
  ASSERT_EQ(stage.error(), "");
  const std::vector<PaintedCar> cars{{12, 0.2F}, {20, -3.5F, 1.8F, 1.5F, {60, 60, 160}}, {16, 4.5F, 2.0F}};
  const Output output = stage.run({paint(sensor, cars, 1).input()});
  EXPECT_EQ(output.list().count, cars.size()) << "markings and sky are no vehicles";
  for (const PaintedCar& car : cars) {
    // The centre lies half a car length behind the rear, along the ray.
    const Object* o = nearest(output, car.x + 2.2F, car.y, 2);
    ASSERT_NE(o, nullptr) << car.x;
    EXPECT_EQ(o->object_class, ObjectClass::kVehicle);
    EXPECT_EQ(o->flags, std::uint32_t{kHasImageBox | kHasPosition});
    EXPECT_NEAR(o->width, car.width, 0.4);
    EXPECT_LT(o->u0, o->u1);
    EXPECT_LE(o->u1, static_cast<float>(width));
    EXPECT_LE(o->v1, static_cast<float>(height));
  }
  const Object* near = nearest(output, 14.2F, 0.2F, 2);
  const Object* far = nearest(output, 22.2F, -3.5F, 2);
  EXPECT_LT(near->position_variance, far->position_variance);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CameraClassicalAtSize,
                         ::testing::Values(std::tuple(640, 384, "full"), std::tuple(640, 384, "lite"),
                                           std::tuple(1920, 1080, "full"), std::tuple(1920, 1080, "lite"),
                                           std::tuple(1283, 721, "full")));

TEST(CameraClassical, EmptyRoadHasNoVehicles) {
  const sensors::RigSensor sensor = camera_sensor(640, 384);
  StageUnderTest stage("camera_classical", {sensor});
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(stage.run({paint(sensor, {}, seed).input()}).list().count, 0U);
  }
}

TEST(CameraClassical, BytesDoNotDependOnTheNumberOfParts) {
  const sensors::RigSensor sensor = camera_sensor(640, 384);
  StageUnderTest stage("camera_classical", {sensor});
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    const Chunk image = paint(sensor, {{10, 0}, {18, 3}}, seed);
    const Output one = stage.run({image.input()}, 1);
    EXPECT_GE(one.list().count, 1U);
    for (const int parts : {2, 3, 5}) EXPECT_EQ(stage.run({image.input()}, parts).digest(), one.digest());
  }
  Chunk hostile = make_image(640, 384);
  stage->adversarial_input(0, 3, hostile.header, hostile.bytes());
  const Output one = stage.run({hostile.input()}, 1);
  EXPECT_GE(one.list().count, 3U);
  EXPECT_EQ(stage.run({hostile.input()}, 2).digest(), one.digest());
}

TEST(CameraClassical, NoiseAndBadInputsGiveNoCrash) {
  const sensors::RigSensor sensor = camera_sensor(640, 384);
  StageUnderTest stage("camera_classical", {sensor});
  EXPECT_EQ(stage.run({StageInput{}}).list().count, 0U);
  Chunk noise = make_image(640, 384);
  SplitMix random(1);
  for (std::uint32_t v = 0; v < 384; ++v) {
    for (std::uint32_t i = 0; i < 3 * 640; ++i) {
      noise.as<sensors::Image>().row(v)[i] = static_cast<std::uint8_t>(random.next());
    }
  }
  EXPECT_LE(stage.run({noise.input()}).list().count, kMaxObjects);
  const Output other_size = stage.run({make_image(320, 200).input()});
  EXPECT_EQ(other_size.list().count, 0U);
  EXPECT_TRUE(other_size.repaired);
  Chunk torn = paint(sensor, {{10, 0}}, 1);
  torn.header.payload_bytes /= 2;
  EXPECT_EQ(stage.run({torn.input()}).list().count, 0U);
  Chunk lying = paint(sensor, {{10, 0}}, 1);
  lying.as<sensors::Image>().data_offset = 1ULL << 62;
  EXPECT_EQ(stage.run({lying.input()}).list().count, 0U);
}

TEST(CameraClassical, MonoAndBgrSeeTheSameCars) {
  const sensors::RigSensor sensor = camera_sensor(640, 384);
  StageUnderTest stage("camera_classical", {sensor});
  Chunk rgb = paint(sensor, {{12, 0.2F}}, 1);
  const Output expected = stage.run({rgb.input()});
  ASSERT_EQ(expected.list().count, 1U);
  Chunk bgr = paint(sensor, {{12, 0.2F}}, 1);
  auto& image = bgr.as<sensors::Image>();
  image.format = sensors::PixelFormat::kBgr8;
  for (std::uint32_t v = 0; v < image.height; ++v) {
    for (std::uint32_t u = 0; u < image.width; ++u) std::swap(image.row(v)[3 * u], image.row(v)[3 * u + 2]);
  }
  EXPECT_EQ(stage.run({bgr.input()}).digest(), expected.digest());
}

TEST(CameraView, GroundAndPixelAreInverse) {
  sensors::RigSensor sensor = camera_sensor(1000, 600);
  sensor.camera->distortion = {-0.2, 0.05, 0.001, -0.0005, 0};
  const CameraView view(*sensor.camera, sensor.vehicle_from_sensor, 2);
  for (float x = 6; x < 40; x += 3) {
    for (float y = -4; y <= 4; y += 2) {
      const auto pixel = view.pixel({x, y, 0});
      ASSERT_TRUE(pixel);
      const auto ground = view.ground(pixel->u, pixel->v, 100);
      ASSERT_TRUE(ground);
      EXPECT_NEAR(ground->x, x, 0.02 * x);
      EXPECT_NEAR(ground->y, y, 0.1);
    }
  }
  EXPECT_FALSE(view.ground(250, 10, 100)) << "above the horizon";
  EXPECT_FALSE(view.pixel({-5, 0, 0})) << "behind the camera";
}

TEST(CameraClassical, RefusesWrongWiring) {
  sensors::RigSensor blind = camera_sensor(640, 384);
  blind.camera.reset();
  EXPECT_NE(StageUnderTest("camera_classical", {blind}).error().find("no model"), std::string::npos);
  EXPECT_NE(StageUnderTest("camera_classical", {camera_sensor(20, 20)}).error().find("smaller"), std::string::npos);
  EXPECT_NE(StageUnderTest("camera_classical", {camera_sensor(640, 384)}, "{}", "fast").error().find("variant"),
            std::string::npos);
}

}  // namespace
}  // namespace takt::pipeline::testing
