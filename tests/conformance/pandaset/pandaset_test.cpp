// PandaSet sequence 002 through the converter and back: the figures that catch a wrong convention at once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"
#include "tools/convert/pandaset_to_mcap.h"

namespace takt::tools {
namespace {

namespace log = sensors::log;

struct Points {
  SensorTime stamp;
  std::vector<std::array<double, 3>> xyz;
};

Points points_of(const log::PointCloud& cloud) {
  std::map<std::string, std::uint32_t> offset;
  for (std::size_t i = 0; i < cloud.field_count; ++i)
    offset[std::string(cloud.fields[i].name)] = cloud.fields[i].offset;
  Points out{cloud.stamp, {}};
  const std::size_t n = cloud.data.size() / cloud.point_stride;
  for (std::size_t i = 0; i < n; ++i) {
    float v[3];
    const std::byte* point = cloud.data.data() + i * cloud.point_stride;
    std::memcpy(&v[0], point + offset.at("x"), 4);
    std::memcpy(&v[1], point + offset.at("y"), 4);
    std::memcpy(&v[2], point + offset.at("z"), 4);
    out.xyz.push_back({v[0], v[1], v[2]});
  }
  return out;
}

// The whole sequence, converted once for all tests.
struct Drive {
  Pandaset set;
  sensors::Rig rig;
  std::vector<std::size_t> counts;  // points per cloud
  Points first, middle;             // clouds of frames 0 and 20
  std::vector<log::Truth> truth;
  std::vector<log::EgoMotion> ego;
  std::size_t pictures_equal = 0;
  std::string bytes;
};

const Drive* load(const std::string& folder, std::string* error) {
  static std::unique_ptr<Drive> drive;
  if (drive) return drive.get();
  auto made = std::make_unique<Drive>();
  auto fill = [&]() -> Status {
    TAKT_ASSIGN(made->rig, sensors::load_rig(TAKT_SOURCE_DIR "/configs/rigs/pandaset.yaml"));
    TAKT_ASSIGN(made->set, open_pandaset(folder));
    const std::string path = testing::TempDir() + "pandaset_test.mcap";
    TAKT_RETURN_IF_ERROR(convert_pandaset(made->set, made->rig, path));
    TAKT_ASSIGN(const auto reader, sensors::open_log(path, release_rules(made->rig)));
    for (;;) {
      TAKT_ASSIGN(const auto message, reader->next());
      if (!message) break;
      const std::string& topic = message->channel->topic;
      if (topic == "/lidar/top/points") {
        TAKT_ASSIGN(const auto cloud, sensors::decode_point_cloud(message->bytes));
        Points points = points_of(cloud);
        made->counts.push_back(points.xyz.size());
        if (message->index == 0) made->first = points;
        if (message->index == 20) made->middle = points;
      } else if (topic == "/truth/takt") {
        TAKT_ASSIGN(auto truth, sensors::decode_truth(message->bytes));
        made->truth.push_back(std::move(truth));
      } else if (topic == "/ego/takt") {
        TAKT_ASSIGN(auto ego, sensors::decode_ego_motion(message->bytes));
        made->ego.push_back(ego);
      } else if (topic == "/camera/front/image") {
        TAKT_ASSIGN(const auto image, sensors::decode_compressed_image(message->bytes));
        TAKT_ASSIGN(const std::string file, read_picture(made->set, message->index));
        made->pictures_equal +=
            image.data.size() == file.size() && std::memcmp(image.data.data(), file.data(), file.size()) == 0 ? 1 : 0;
      }
    }
    TAKT_ASSIGN(made->bytes, read_file(path));
    std::remove(path.c_str());
    return {};
  };
  const Status status = fill();
  if (!status) {
    *error = status.error().message;
    return nullptr;
  }
  drive = std::move(made);
  return drive.get();
}

#define PANDASET_OR_SKIP(drive)                           \
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002"); \
  std::string load_error;                                 \
  const Drive* drive = load(folder, &load_error);         \
  ASSERT_NE(drive, nullptr) << load_error

// Points of frame 0 (frame of the sweep) inside a box given as T_sweep_box and length, width, height.
std::size_t points_inside(const Drive& drive, const sensors::Transform& box, double length, double width,
                          double height) {
  const sensors::Transform box_from_points = box.inverse();
  std::size_t inside = 0;
  for (const auto& p : drive.first.xyz) {
    const auto v = box_from_points.apply(p);
    inside += std::fabs(v[0]) <= length / 2 && std::fabs(v[1]) <= width / 2 && std::fabs(v[2]) <= height / 2 ? 1 : 0;
  }
  return inside;
}

// Over the cars of the log's first truth.
std::size_t points_in_cars(const Drive& drive, bool swap_sides) {
  std::map<std::uint32_t, std::string> labels;
  for (const PandasetCuboid& c : drive.set.cuboids) labels[c.track] = c.label;
  const auto points_from_vehicle = drive.rig.sensors[*drive.rig.find("lidar_top")].vehicle_from_sensor.inverse();
  std::size_t inside = 0;
  for (const log::TruthBox& box : drive.truth.front().boxes) {
    if (labels.at(box.id) != "Car") continue;
    const auto pose = sensors::Transform::from_quaternion(box.pose.orientation, box.pose.position);
    inside += points_inside(drive, points_from_vehicle * pose, box.size[swap_sides ? 1 : 0],
                            box.size[swap_sides ? 0 : 1], box.size[2]);
  }
  return inside;
}

// Over the cars that the set lists a second time and the log does not: length along y of the box's own frame.
std::size_t points_in_duplicates(const Drive& drive, bool swap_sides) {
  std::size_t inside = 0;
  for (const PandasetCuboid& c : drive.set.cuboids) {
    if (c.frame != 0 || c.label != "Car" || !c.duplicate()) continue;
    const auto pose = sensors::Transform::from_quaternion({std::cos(c.yaw / 2), 0, 0, std::sin(c.yaw / 2)}, c.position);
    inside += points_inside(drive, pose, swap_sides ? c.length : c.width, swap_sides ? c.width : c.length, c.height);
  }
  return inside;
}

std::size_t projected(const Drive& drive, const sensors::Transform& camera_from_points) {
  const PandasetCamera& camera = drive.set.camera;
  std::size_t inside = 0;
  for (const auto& point : drive.middle.xyz) {
    const auto p = camera_from_points.apply(point);
    if (p[2] <= 0.5) continue;
    const double u = camera.fx * p[0] / p[2] + camera.cx;
    const double v = camera.fy * p[1] / p[2] + camera.cy;
    inside += u >= 0 && u < 1920 && v >= 0 && v < 1080 ? 1 : 0;
  }
  return inside;
}

TEST(Pandaset, EveryPointComesThrough) {
  PANDASET_OR_SKIP(drive);
  ASSERT_EQ(drive->counts.size(), 40u);
  EXPECT_EQ(drive->counts[0], 106169u);
  EXPECT_EQ(*std::min_element(drive->counts.begin(), drive->counts.end()), 105793u);
  EXPECT_EQ(*std::max_element(drive->counts.begin(), drive->counts.end()), 106202u);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < drive->counts.size(); ++i) {
    const auto sweep = read_sweep(drive->set, i);
    ASSERT_TRUE(sweep);
    EXPECT_EQ(drive->counts[i], sweep->size()) << i;
    sum += drive->counts[i];
  }
  EXPECT_EQ(sum, 4239915u);
}

TEST(Pandaset, PointsLieInTheBoxesOfCars) {
  PANDASET_OR_SKIP(drive);
  // 18579 counts all rows of the file; 16979 of them lie in boxes that are listed once.
  const std::size_t right = points_in_cars(*drive, false);
  const std::size_t all = right + points_in_duplicates(*drive, false);
  const std::size_t swapped = points_in_cars(*drive, true) + points_in_duplicates(*drive, true);
  std::printf("points in cars: %zu, duplicates included %zu, length and width swapped %zu\n", right, all, swapped);
  EXPECT_NEAR(static_cast<double>(right), 16979, 0.005 * 16979);
  EXPECT_NEAR(static_cast<double>(all), 18579, 0.005 * 18579);
  EXPECT_NEAR(static_cast<double>(swapped), 8215, 0.02 * 8215);
}

TEST(Pandaset, PointsProjectIntoThePicture) {
  PANDASET_OR_SKIP(drive);
  const sensors::Transform published =
      drive->set.camera.world_from_camera[20].inverse() * drive->set.poses[20].world_from_lidar;
  EXPECT_EQ(projected(*drive, published), 13994u);
  const auto& sensors = drive->rig.sensors;
  const std::size_t by_rig = projected(*drive, sensors[*drive->rig.find("camera_front")].vehicle_from_sensor.inverse() *
                                                   sensors[*drive->rig.find("lidar_top")].vehicle_from_sensor);
  EXPECT_NEAR(static_cast<double>(by_rig), 13994, 140);
}

TEST(Pandaset, TracksAndPath) {
  PANDASET_OR_SKIP(drive);
  EXPECT_EQ(drive->set.cuboids.size(), 9365u);
  std::size_t kept = 0;
  std::set<std::uint32_t> tracks, moving;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const PandasetCuboid& c : drive->set.cuboids) {
    if (c.duplicate()) continue;
    ++kept;
    tracks.insert(c.track);
    if (c.moving) moving.insert(c.track);
    EXPECT_TRUE(seen.insert({c.frame, c.track}).second) << "listed twice: track " << c.track << " frame " << c.frame;
  }
  EXPECT_EQ(kept, 7530u);
  EXPECT_EQ(tracks.size(), 98u);
  EXPECT_EQ(moving.size(), 27u);
  double path = 0;
  for (std::size_t i = 1; i < drive->set.poses.size(); ++i) {
    const auto& a = drive->set.poses[i - 1].world_from_lidar.translation;
    const auto& b = drive->set.poses[i].world_from_lidar.translation;
    path += std::hypot(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
  }
  EXPECT_NEAR(path, 21.7, 0.05);
  ASSERT_EQ(drive->truth.size(), 40u);
  EXPECT_EQ(drive->truth[20].boxes.size(), 93u);
}

TEST(Pandaset, TheVehicleDrivesForwardOnTheGround) {
  PANDASET_OR_SKIP(drive);
  ASSERT_EQ(drive->ego.size(), 40u);
  const auto& late = drive->ego.back();
  EXPECT_NEAR(late.velocity[0], 3.0, 0.3);  // starts from standstill after a red light
  EXPECT_LT(std::fabs(late.velocity[1]), 0.15);
  EXPECT_LT(std::fabs(late.angular_velocity[2]), 0.05);
  EXPECT_LT(std::fabs(drive->ego.front().velocity[0]), 0.1);
  // The road beside and ahead of the vehicle lies at height 0.
  const sensors::Transform& mount = drive->rig.sensors[*drive->rig.find("lidar_top")].vehicle_from_sensor;
  std::vector<double> heights;
  for (const auto& p : drive->first.xyz) {
    const auto v = mount.apply(p);
    if (std::fabs(v[1]) < 6 && v[0] > -8 && v[0] < 12 && std::fabs(v[2]) < 0.4 && std::hypot(v[0], v[1]) > 3) {
      heights.push_back(v[2]);
    }
  }
  ASSERT_GT(heights.size(), 1000u);
  std::nth_element(heights.begin(), heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 2), heights.end());
  EXPECT_NEAR(heights[heights.size() / 2], 0, 0.05);
}

TEST(Pandaset, ParkedCarsStandAndMovingOnesMoveAlongTheirLength) {
  PANDASET_OR_SKIP(drive);
  std::set<std::uint32_t> moving;
  for (const PandasetCuboid& c : drive->set.cuboids) {
    if (c.moving) moving.insert(c.track);
  }
  std::size_t standing = 0, still = 0, driving = 0, along = 0;
  for (const log::TruthBox& box : drive->truth[20].boxes) {
    if (box.object_class != 1) continue;
    const double speed = std::hypot(box.velocity[0], box.velocity[1]);
    if (moving.count(box.id) == 0) {
      ++standing;
      still += speed < 0.5 ? 1 : 0;
    } else if (speed > 2) {
      ++driving;
      const auto length = sensors::Transform::from_quaternion(box.pose.orientation, {0, 0, 0}).apply({1, 0, 0});
      along += std::fabs(length[0] * box.velocity[0] + length[1] * box.velocity[1]) > 0.9 * speed ? 1 : 0;
    }
  }
  std::printf("standing %zu of %zu still, driving %zu of %zu along their length\n", still, standing, along, driving);
  EXPECT_GT(standing, 20u);
  EXPECT_EQ(still, standing);
  EXPECT_GT(driving, 0u);
  EXPECT_EQ(along, driving);
}

TEST(Pandaset, PicturesAreKeptAndConversionRepeats) {
  PANDASET_OR_SKIP(drive);
  EXPECT_EQ(drive->pictures_equal, 40u);
  const std::string path = testing::TempDir() + "pandaset_again.mcap";
  const Status status = convert_pandaset(drive->set, drive->rig, path);
  ASSERT_TRUE(status) << status.error().message;
  const auto bytes = read_file(path);
  std::remove(path.c_str());
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(*bytes == drive->bytes);
}

}  // namespace
}  // namespace takt::tools
