// A real nuScenes sample (cloud, six pictures, calibration, 69 boxes) whose tables were lost in republication: the test
// writes them anew from what the owner of the sample kept, and reads the result as a nuScenes folder. And real tables
// of the same layout without data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/file.h"
#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using namespace test;
using nlohmann::json;
namespace fs = std::filesystem;

Transform matrix(const json& m) {
  Transform t;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) t.rotation[row * 3 + k] = m[row][k];
    t.translation[row] = m[row][3];
  }
  return t;
}
json pose_row(const std::string& token, const Transform& t) {
  return {{"token", token}, {"rotation", t.quaternion()}, {"translation", t.translation}};
}
std::int64_t stamp_of(const std::string& file) {  // ..__CHANNEL__MICROSECONDS.ending
  const std::size_t at = file.rfind("__") + 2;
  return std::stoll(file.substr(at, file.find('.', at) - at));
}

// Tables beside links to the data; removed at the end.
class Tables {
 public:
  Tables() : root_(fs::path(testing::TempDir()) / "nuscenes_tables") {
    fs::remove_all(root_);
    fs::create_directories(root_ / "v1.0-test");
    fs::create_directories(root_ / "samples");
    for (const char* name : {"sensor", "calibrated_sensor", "ego_pose", "sample_data", "sample", "scene",
                             "sample_annotation", "instance", "category"}) {
      tables_[name] = json::array();
    }
    tables_["scene"].push_back({{"token", "scene"}, {"name", "scene-0061"}});
  }
  ~Tables() { fs::remove_all(root_); }
  json& operator[](const std::string& name) { return tables_[name]; }
  void data(const std::string& channel, const std::string& modality, const std::string& file, std::int64_t stamp,
            const Transform& mount, const Transform& ego, const json& intrinsic) {
    tables_["sensor"].push_back({{"token", "s" + channel}, {"channel", channel}, {"modality", modality}});
    json calibrated = pose_row("c" + channel, mount);
    calibrated["sensor_token"] = "s" + channel;
    calibrated["camera_intrinsic"] = intrinsic;
    tables_["calibrated_sensor"].push_back(calibrated);
    json pose = pose_row("e" + channel, ego);
    pose["timestamp"] = stamp;
    tables_["ego_pose"].push_back(pose);
    tables_["sample_data"].push_back({{"token", "d" + channel},
                                      {"sample_token", "sample"},
                                      {"calibrated_sensor_token", "c" + channel},
                                      {"ego_pose_token", "e" + channel},
                                      {"timestamp", stamp},
                                      {"width", modality == "camera" ? 1600 : 0},
                                      {"height", modality == "camera" ? 900 : 0},
                                      {"filename", "samples/" + fs::path(file).filename().string()}});
    fs::create_symlink(file, root_ / "samples" / fs::path(file).filename());
  }
  std::string write() {
    for (const auto& [name, rows] : tables_) std::ofstream(root_ / "v1.0-test" / (name + ".json")) << rows.dump();
    return root_.string();
  }

 private:
  fs::path root_;
  std::map<std::string, json> tables_;
};

TEST(NuScenes, ARealSampleThroughItsTables) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/mmdet3d_nuscenes_sample");
  std::string text = *read_file(folder + "/n015-2018-07-24-11-22-45+0800.json");
  for (std::size_t at = 0; (at = text.find("NaN", at)) != std::string::npos;) text.replace(at, 3, "null");  // no JSON
  const json info = json::parse(text);
  const json& sample = info["data_list"][0];
  const Transform ego = matrix(sample["ego2global"]), mount = matrix(sample["lidar_points"]["lidar2ego"]);
  Tables tables;
  const std::string cloud = sample["lidar_points"]["lidar_path"];
  tables["sample"].push_back({{"token", "sample"}, {"scene_token", "scene"}, {"timestamp", stamp_of(cloud)}});
  tables.data("LIDAR_TOP", "lidar", folder + "/" + cloud, stamp_of(cloud), mount, ego, json::array());
  for (const auto& [channel, camera] : sample["images"].items()) {
    const std::string file = camera["img_path"];
    tables.data(channel, "camera", folder + "/" + file, stamp_of(file), matrix(camera["cam2ego"]), ego,
                camera["cam2img"]);
  }
  std::map<int, std::string> categories;
  for (const auto& [name, number] : info["metainfo"]["categories"].items()) {
    categories[number.get<int>()] = name;
    tables["category"].push_back({{"token", name}, {"name", name}});
  }
  categories[-1] = "animal";  // one box is of none of the detection classes
  tables["category"].push_back({{"token", "animal"}, {"name", "animal"}});
  std::vector<std::size_t> lidar_points;
  std::size_t pedestrians = 0, cars = 0;
  for (const json& instance : sample["instances"]) {
    const auto box = instance["bbox_3d"].get<std::vector<double>>();
    const std::string number = std::to_string(lidar_points.size());
    const Transform in_lidar =
        Transform::from_quaternion({std::cos(box[6] / 2), 0, 0, std::sin(box[6] / 2)}, {box[0], box[1], box[2]});
    const std::string& category = categories.at(instance["bbox_label_3d"].get<int>());
    pedestrians += category == "pedestrian" ? 1 : 0;
    cars += category == "car" ? 1 : 0;
    json row = pose_row("a" + number, ego * mount * in_lidar);
    row.update({{"sample_token", "sample"},
                {"instance_token", "i" + number},
                {"size", {box[4], box[3], box[5]}},
                {"num_lidar_pts", instance["num_lidar_pts"]},
                {"prev", ""},
                {"next", ""}});
    tables["sample_annotation"].push_back(row);
    tables["instance"].push_back({{"token", "i" + number}, {"category_token", category}});
    lidar_points.push_back(instance["num_lidar_pts"]);
  }
  EXPECT_EQ(pedestrians, 30u);
  EXPECT_EQ(cars, 8u);

  const ReadLog log = read_log(tables.write());
  EXPECT_TRUE(log.problems.empty()) << log.problems.front().detail;
  ASSERT_EQ(log.topics.at("/LIDAR_TOP/points").size(), 1u);
  const auto& message = log.topics.at("/LIDAR_TOP/points")[0];
  EXPECT_EQ(message.capture.ns, 1532402927647951000);
  std::map<int, std::size_t> rings;
  for (auto& p : points_of(message, {"ring"})) ++rings[static_cast<int>(p["ring"])];
  ASSERT_EQ(rings.size(), 32u);
  for (const auto& [ring, count] : rings) EXPECT_EQ(count, 1084u) << ring;
  const auto own = positions_of(message);
  ASSERT_EQ(own.size(), 34688u);
  EXPECT_EQ(std::count_if(own.begin(), own.end(),
                          [](const auto& p) { return std::hypot(p[0], p[1]) < 1 || std::hypot(p[0], p[1], p[2]) < 1; }),
            8220);

  std::set<std::int64_t> stamps;
  for (const char* channel :
       {"CAM_FRONT", "CAM_FRONT_LEFT", "CAM_FRONT_RIGHT", "CAM_BACK", "CAM_BACK_LEFT", "CAM_BACK_RIGHT"}) {
    ASSERT_EQ(log.topics.at(std::string("/") + channel + "/image").size(), 1u);
    stamps.insert(log.topics.at(std::string("/") + channel + "/image")[0].capture.ns);
    const auto camera = decode_camera_calibration(log.topics.at(std::string("/") + channel + "/calibration")[0].view());
    ASSERT_TRUE(camera);
    EXPECT_EQ(camera->width, 1600u);
    EXPECT_GT(camera->fx, 700);
  }
  EXPECT_EQ(*stamps.begin(), 1532402927604844000);
  EXPECT_NEAR(static_cast<double>(*stamps.rbegin() - *stamps.begin()) * 1e-6, 42.6, 1);

  const auto truth = decode_truth(log.topics.at("/truth/takt")[0].view());
  ASSERT_TRUE(truth);
  ASSERT_EQ(truth->boxes.size(), 69u);
  const auto points = moved(own, frame_of(log, "LIDAR_TOP"));
  std::size_t agree = 0, if_bottom = 0;
  for (std::size_t i = 0; i < 69; ++i) {
    EXPECT_EQ(truth->boxes[i].lidar_points, lidar_points[i]);
    const auto near_count = [&](const log::TruthBox& box) {
      const auto inside = static_cast<std::int64_t>(points_inside(box, points));
      return std::abs(inside - static_cast<std::int64_t>(lidar_points[i])) <= 1;
    };
    agree += near_count(truth->boxes[i]) ? 1 : 0;
    log::TruthBox raised = truth->boxes[i];
    raised.pose.position =
        Transform::from_quaternion(raised.pose.orientation, raised.pose.position).apply({0, 0, raised.size[2] / 2});
    if_bottom += near_count(raised) ? 1 : 0;
  }
  EXPECT_EQ(agree, 65u);
  EXPECT_EQ(if_bottom, 31u);
}

TEST(NuScenes, SmallSweepsAreRead) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/mmdet3d_testdata/nuscenes");
  Tables tables;
  tables["sample"].push_back({{"token", "sample"}, {"scene_token", "scene"}, {"timestamp", 1533201470948018}});
  const std::string file = "/samples/LIDAR_TOP/n015-2018-08-02-17-16-37+0800__LIDAR_TOP__1533201470948018.pcd.bin";
  const std::string sweep = "/sweeps/LIDAR_TOP/n015-2018-08-02-17-16-37+0800__LIDAR_TOP__1533201470898274.pcd.bin";
  tables.data("LIDAR_TOP", "lidar", folder + file, stamp_of(file), {}, {}, json::array());
  tables.data("LIDAR_OTHER", "lidar", folder + sweep, stamp_of(sweep), {}, {}, json::array());
  const ReadLog log = read_log(tables.write());
  EXPECT_TRUE(log.problems.empty());
  EXPECT_EQ(positions_of(log.topics.at("/LIDAR_TOP/points").at(0)).size(), 100u);
  EXPECT_EQ(positions_of(log.topics.at("/LIDAR_OTHER/points").at(0)).size(), 100u);
}

// Lyft's tables: every row finds its partners; the data files they name are not in this sample.
TEST(NuScenes, RealTablesJoin) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/mmdet3d_testdata/lyft/v1.01-train");
  const ReadLog log = read_log(folder);
  EXPECT_EQ(log.problems.size(), 10u);
  for (const auto& problem : log.problems) EXPECT_EQ(problem.kind, "missing file") << problem.detail;
  const auto truth = decode_truth(log.topics.at("/truth/takt").at(0).view());
  ASSERT_TRUE(truth);
  EXPECT_EQ(truth->boxes.size(), 4u);
  EXPECT_EQ(log.topics.at("/ego").size(), 1u);  // seven poses, all of the same instant
  for (const auto& box : truth->boxes) EXPECT_LT(std::hypot(box.pose.position[0], box.pose.position[1]), 150);
}

}  // namespace
}  // namespace takt::sensors
