// Writes the seed files of the targets cdr and ros1_bag: make_ros_corpus tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/sensors/logs/ros_bytes.h"

using namespace takt::sensors::test;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_ros_corpus FOLDER\n");
    return 2;
  }
  const std::string root = argv[1];
  std::filesystem::create_directories(root + "/cdr");
  std::filesystem::create_directories(root + "/ros1_bag");
  constexpr std::int64_t kStamp = 1'700'000'000'000'000'000;
  std::vector<RosMessage> messages;
  for (const auto& [wire, mark, name] : {std::tuple{Wire::kCdr, 0, "little"},
                                         {Wire::kCdrBigEndian, 0, "big"},
                                         {Wire::kRos1, 130, "ros1"}}) {  // 130: top bit set, type 0
    const auto save_message = [&, m = mark, n = name](int type, const char* kind, const RosWriter& w) {
      save(root + "/cdr/" + kind + "_" + n, std::string(1, static_cast<char>(m + type)) + w.str());
    };
    RosWriter image(wire);
    image.header(kStamp, "camera").number(std::uint32_t{2}).number(std::uint32_t{2}).text("rgb8");
    image.number(std::uint8_t{0}).number(std::uint32_t{6}).bytes("abcdefghijkl");
    save_message(0, "image", image);
    save_message(1, "packed", RosWriter(wire).header(kStamp, "camera").text("jpeg").bytes("\xff\xd8\xff"));
    RosWriter cloud(wire);
    cloud.header(kStamp, "lidar").number(std::uint32_t{2}).number(std::uint32_t{2}).number(std::uint32_t{1});
    cloud.text("x").number(std::uint32_t{0}).number(std::uint8_t{7}).number(std::uint32_t{1});
    cloud.number(std::uint8_t{0}).number(std::uint32_t{4}).number(std::uint32_t{9}).bytes(std::string(17, 'x'));
    save_message(2, "cloud", cloud.number(std::uint8_t{1}));
    RosWriter info(wire);
    info.header(kStamp, "camera").number(std::uint32_t{2}).number(std::uint32_t{2}).text("plumb_bob");
    save_message(3, "info", info.number(std::uint32_t{5}).zeros(35).zeros(3));
    RosWriter odometry(wire);
    odometry.header(kStamp, "map").text("base").numbers<double>({1, 2, 3, 0, 0, 0, 1}).zeros(36).zeros(42);
    save_message(5, "odometry", odometry);
    RosWriter transforms(wire);
    transforms.number(std::uint32_t{1}).header(kStamp, "map").text("base").numbers<double>({1, 2, 3, 0, 0, 0, 1});
    save_message(7, "transforms", transforms);
    RosWriter scan(wire);
    save_message(8, "scan", scan.header(kStamp, "radar").number(std::uint32_t{1}).numbers<float>({1, 2, 3, 4, 5}));
    if (wire != Wire::kRos1) continue;
    for (int i = 0; i < 6; ++i) {
      messages.push_back({"/image", "sensor_msgs/Image", kStamp + i, image.str()});
      messages.push_back({"/odom", "nav_msgs/Odometry", kStamp + i, scan.str()});
    }
  }
  for (const char* compression : {"none", "bz2", "lz4"}) {
    Bag bag = make_bag(messages, compression, 4);
    // Without the padding of the bag header, which mutations would mostly hit.
    const std::size_t padding = bag.bytes.find("        ");
    const std::size_t end = bag.bytes.find_first_not_of(' ', padding);
    bag.bytes.erase(padding, end - padding);
    bag.bytes.replace(padding - 4, 4, u32(0));
    save(root + "/ros1_bag/" + compression, bag.bytes);
  }
  return 0;
}
