// A thousand cuts and a thousand damaged bytes in a folder of each data set, over all of its files: a damaged file
// never costs more than a missing one, and a cut cloud keeps its whole points.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/base/file.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/point_fields.h"
#include "tests/sensors/logs/set_files.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using namespace test;

// A picture as far as readers look at it: the size.
std::string png() { return {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xda\0\0\x01\x77", 24}; }
std::string jpeg() { return {"\xff\xd8\xff\xe0\0\x04xx\xff\xc0\0\x11\x08\x04\xc0\x07\x90", 17}; }
std::string cloud(float first) {
  return rows({{first, 0, 0, 0.5F}, {-first, 1, 0, 1}, {0, -first, 0, 0}, {first, first, 1, 0.25F}});
}

void kitti_raw(const Folder& folder) {
  folder.write("2011_09_26/calib_velo_to_cam.txt",
               "calib_time: 15-Mar-2012 11:37:16\nR: 0 -1 0 0 0 -1 1 0 0\nT: 0 -0.08 -0.27\n");
  folder.write("2011_09_26/calib_imu_to_velo.txt", "R: 1 0 0 0 1 0 0 0 1\nT: -0.7 0.2 -0.6\n");
  folder.write("2011_09_26/calib_cam_to_cam.txt",
               "S_rect_02: 1242 375\nR_rect_00: 1 0 0 0 1 0 0 0 1\nP_rect_02: 700 0 600 45 0 700 180 0 0 0 1 0\n");
  const std::string drive = "2011_09_26/2011_09_26_drive_0009_sync/";
  for (const std::string name :
       {"velodyne_points/timestamps.txt", "velodyne_points/timestamps_start.txt", "velodyne_points/timestamps_end.txt",
        "image_02/timestamps.txt", "oxts/timestamps.txt"}) {
    const char* fraction = name.find("end") != std::string::npos     ? ".553"
                           : name.find("start") != std::string::npos ? ".450"
                                                                     : ".500";
    std::string text;
    for (int i = 0; i < 4; ++i) text += "2011-09-26 13:00:0" + std::to_string(i) + fraction + "000001\n";
    folder.write(drive + name, text);
  }
  for (int i = 0; i < 4; ++i) {
    const std::string number = "data/000000000" + std::to_string(i);
    folder.write(drive + "velodyne_points/" + number + ".bin", cloud(static_cast<float>(10 + i)));
    folder.write(drive + "image_02/" + number + ".png", png() + std::to_string(i));
    folder.write(drive + "oxts/" + number + ".txt",
                 "49.000" + std::to_string(i + 1) +
                     " 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1 0.05 0.1 4 11 5 5 5\n");
  }
}

constexpr const char* kKittiCalibration =
    "P2: 700 0 600 45 0 700 180 -0.5 0 0 1 0.005\nR0_rect: 1 0 0 0 1 0 0 0 1\n"
    "Tr_velo_to_cam: 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n";
constexpr const char* kCar = "0.00 1 2.04 334.85 178.94 624.50 372.04 1.57 1.50 3.68 -1.17 1.65 7.86 1.90\n";

void kitti_object(const Folder& folder) {
  for (int i = 0; i < 4; ++i) {
    const std::string number = "00000" + std::to_string(i);
    folder.write("training/velodyne/" + number + ".bin", cloud(static_cast<float>(10 + i)));
    folder.write("training/image_2/" + number + ".png", png() + std::to_string(i));
    folder.write("training/calib/" + number + ".txt", kKittiCalibration);
    folder.write("training/label_2/" + number + ".txt", "Car " + std::string(kCar) + "Cyclist " + kCar);
  }
}

void kitti_tracking(const Folder& folder) {
  folder.write("training/calib/0003.txt", kKittiCalibration);
  std::string labels, oxts;
  for (int i = 0; i < 4; ++i) {
    const std::string number = "0003/00000" + std::to_string(i);
    folder.write("training/velodyne/" + number + ".bin", cloud(static_cast<float>(10 + i)));
    folder.write("training/image_02/" + number + ".png", png() + std::to_string(i));
    labels += std::to_string(i) + " 7 Car " + kCar;
    oxts += "49.000" + std::to_string(i + 1) + " 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1\n";
  }
  folder.write("training/label_02/0003.txt", labels);
  folder.write("training/oxts/0003.txt", oxts);
}

void view_of_delft(const Folder& folder) {
  for (int i = 1; i < 4; ++i) {
    const std::string number = "0000" + std::to_string(i);
    const auto first = static_cast<float>(i);
    folder.write("lidar/training/velodyne/" + number + ".bin", cloud(10 + first));
    folder.write("radar/training/velodyne/" + number + ".bin",
                 rows({{first, 2, 3, -10, -5, 0.1F, 0}, {first, 3, 3, -10, -4, 0.1F, 0}}));
    folder.write("lidar/training/image_2/" + number + ".jpg", jpeg() + std::to_string(i));
    folder.write("lidar/training/calib/" + number + ".txt", kKittiCalibration);
    folder.write("radar/training/calib/" + number + ".txt", kKittiCalibration);
    folder.write("lidar/training/label_2/" + number + ".txt", "Car " + std::string(kCar));
    folder.write("lidar/training/pose/" + number + ".json",
                 "{\"odomToCamera\": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, " + std::to_string(i * i) + ", 0, 0, 0, 1]}");
  }
}

void nuscenes(const Folder& folder) {
  std::string samples, poses, data, annotations;
  const auto add = [](std::string& table, const std::string& row) { table += (table.empty() ? "[" : ",\n") + row; };
  const std::string pose = R"("rotation": [1, 0, 0, 0], "translation": [0, 0, 0])";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i), stamp = std::to_string(1'532'402'927'000'000 + i * 500'000);
    add(samples, R"({"token": "s)" + n + R"(", "scene_token": "scene", "timestamp": )" + stamp + "}");
    add(poses, R"({"token": "e)" + n + R"(", "timestamp": )" + stamp + ", " + pose + "}");
    for (const auto& [channel, file] : {std::pair<std::string, std::string>{"LIDAR_TOP", ".pcd.bin"},
                                        {"RADAR_FRONT", ".pcd"},
                                        {"CAM_FRONT", ".jpg"}}) {
      add(data, R"({"token": "d)" + channel + n + R"(", "sample_token": "s)" + n +
                    R"(", "calibrated_sensor_token": "c)" + channel + R"(", "ego_pose_token": "e)" + n +
                    R"(", "timestamp": )" + stamp + R"(, "width": 1936, "height": 1216, "filename": "samples/)" +
                    channel + n + file + "\"}");
    }
    add(annotations, R"({"token": "a)" + n + R"(", "sample_token": "s)" + n +
                         R"(", "instance_token": "i", "prev": "", "next": "", "size": [2, 4, 1.5], )" + pose +
                         R"(, "num_lidar_pts": 5})");
    const auto first = static_cast<float>(i + 1);
    folder.write("samples/LIDAR_TOP" + n + ".pcd.bin", rows({{first, 2, 3, 4, 0}, {first, 3, 3, 4, 1}}));
    folder.write("samples/RADAR_FRONT" + n + ".pcd", radar_pcd(2, {{0, 3, 0}, {1, 3, 0}}));
    folder.write("samples/CAM_FRONT" + n + ".jpg", jpeg() + n);
  }
  std::string sensor, calibrated;
  for (const auto& [channel, modality] :
       {std::pair<std::string, std::string>{"LIDAR_TOP", "lidar"}, {"RADAR_FRONT", "radar"}, {"CAM_FRONT", "camera"}}) {
    add(sensor,
        R"({"token": "s)" + channel + R"(", "channel": ")" + channel + R"(", "modality": ")" + modality + "\"}");
    add(calibrated, R"({"token": "c)" + channel + R"(", "sensor_token": "s)" + channel + "\", " + pose +
                        R"(, "camera_intrinsic": )" +
                        (modality == "camera" ? "[[1266, 0, 816], [0, 1266, 491], [0, 0, 1]]" : "[]") + "}");
  }
  for (const auto& [name, table] : {std::pair<std::string, std::string>{"sample", samples},
                                    {"ego_pose", poses},
                                    {"sample_data", data},
                                    {"sample_annotation", annotations},
                                    {"sensor", sensor},
                                    {"calibrated_sensor", calibrated},
                                    {"scene", R"([{"token": "scene", "name": "scene-0061"})"},
                                    {"instance", R"([{"token": "i", "category_token": "car"})"},
                                    {"category", R"([{"token": "car", "name": "vehicle.car"})"}}) {
    folder.write("v1.0-mini/" + name + ".json", table + "]");
  }
}

struct DataSet {
  const char* name;
  void (*write)(const Folder&);
  const char* open;  // what is opened, in the folder
};
std::ostream& operator<<(std::ostream& out, const DataSet& set) { return out << set.name; }

// (topic, stamp, bytes) of every message.
using Messages = std::multimap<std::pair<std::string, std::int64_t>, std::string>;

struct Read {
  bool opened = false;
  Messages messages;
  std::size_t problems = 0;
};

class SetDamage : public ::testing::TestWithParam<DataSet> {
 protected:
  void SetUp() override {
    GetParam().write(folder_);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) files_.push_back(entry.path().string());
    }
    std::sort(files_.begin(), files_.end());
    for (const std::string& file : files_) {
      contents_.push_back(read_file(file).value());
      total_ += contents_.back().size();
    }
    whole_ = read();
    ASSERT_TRUE(whole_.opened);
    ASSERT_EQ(whole_.problems, 0U);
    ASSERT_GE(whole_.messages.size(), 15U);
    for (std::size_t f = 0; f < files_.size(); ++f) {
      fs::remove(files_[f]);
      without_.push_back(read());
      write(f, contents_[f]);
    }
  }
  void write(std::size_t file, const std::string& bytes) const {
    std::ofstream(files_[file], std::ios::binary | std::ios::trunc) << bytes;
  }
  [[nodiscard]] Read read() const {
    Read out;
    const auto log = open_log(folder_.path(GetParam().open));
    if (!log) {
      EXPECT_EQ(log.error().code, Code::kInput) << log.error().message;
      return out;
    }
    out.opened = true;
    for (;;) {
      const auto message = (*log)->next();
      EXPECT_TRUE(message) << message.error().message;
      if (!message || !*message) break;
      const auto bytes = (*message)->bytes;
      out.messages.emplace(std::pair((*message)->channel->topic, (*message)->capture.ns),
                           std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    out.problems = (*log)->problems().size();
    return out;
  }
  // What is whole and would be read without the file must be read with the damaged one.
  void expect_no_worse_than_missing(std::size_t file, const Read& damaged, const std::string& how) const {
    const Read& missing = without_[file];
    ASSERT_TRUE(damaged.opened || !missing.opened) << how;
    for (const auto& message : missing.messages) {
      const auto [first, last] = damaged.messages.equal_range(message.first);
      const auto same = [](const auto& a) { return [&a](const auto& b) { return a.second == b.second; }; };
      const auto [whole_first, whole_last] = whole_.messages.equal_range(message.first);
      if (std::none_of(whole_first, whole_last, same(message))) continue;  // depends on the file
      ASSERT_TRUE(std::any_of(first, last, same(message)))
          << how << ": " << message.first.first << " of " << message.first.second << " is lost";
    }
  }
  // The file and the place in it for step i of 1000.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place(std::size_t i) const {
    std::size_t at = total_ * i / 1000, file = 0;
    while (at >= contents_[file].size()) at -= contents_[file++].size();
    return {file, at};
  }

  const Folder folder_;
  std::vector<std::string> files_, contents_;
  std::vector<Read> without_;  // read with the file missing
  std::size_t total_ = 0;
  Read whole_;
};

std::uint64_t points(const Messages& messages) {
  std::uint64_t out = 0;
  for (const auto& [key, bytes] : messages) {
    if (key.first.find("lidar") == std::string::npos && key.first.find("LIDAR") == std::string::npos) continue;
    const auto cloud = decode_point_cloud(std::as_bytes(std::span(bytes)));
    if (cloud) out += PointLayout(*cloud).points();
  }
  return out;
}

TEST_P(SetDamage, CutsAtAThousandPlaces) {
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto [file, at] = place(i);
    const std::string how = files_[file].substr(folder_.path().size()) + " cut at byte " + std::to_string(at);
    write(file, contents_[file].substr(0, at));
    const Read damaged = read();
    write(file, contents_[file]);
    expect_no_worse_than_missing(file, damaged, how);
    if (HasFatalFailure()) return;
    const bool is_lidar = files_[file].ends_with(".bin") && files_[file].find("radar") == std::string::npos;
    if (!is_lidar) continue;
    const std::size_t row = files_[file].ends_with(".pcd.bin") ? 20 : 16;
    EXPECT_EQ(points(damaged.messages), points(without_[file].messages) + at / row) << how;
    EXPECT_EQ(damaged.problems > 0, at % row != 0) << how;
  }
}

TEST_P(SetDamage, AByteChangedAtAThousandPlaces) {
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto [file, at] = place(i);
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string bytes = contents_[file];
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      write(file, bytes);
      const Read damaged = read();
      write(file, contents_[file]);
      expect_no_worse_than_missing(
          file, damaged, files_[file].substr(folder_.path().size()) + " changed at byte " + std::to_string(at));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, SetDamage,
                         ::testing::Values(DataSet{"KittiRaw", kitti_raw, "2011_09_26/2011_09_26_drive_0009_sync"},
                                           DataSet{"KittiObject", kitti_object, ""},
                                           DataSet{"KittiTracking", kitti_tracking, ""},
                                           DataSet{"ViewOfDelft", view_of_delft, ""},
                                           DataSet{"NuScenes", nuscenes, ""}),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace takt::sensors
