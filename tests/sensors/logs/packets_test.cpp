// Captures and sensor packets: exact layouts, hour wraps, fragments, cuts at every byte and damage of every byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sensors/logs/ars548.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/packet_log.h"
#include "sensors/logs/pcap.h"
#include "sensors/logs/point_fields.h"
#include "sensors/logs/velodyne.h"
#include "tests/sensors/logs/packet_bytes.h"

namespace takt::sensors {
namespace {

using namespace takt::test;

std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

class File {
 public:
  explicit File(const std::string& bytes) : path_(testing::TempDir() + "packets_test.pcap") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::remove(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Opened {
  std::shared_ptr<const PcapFile> file;
  std::vector<LogProblem> problems;
};
Opened open_bytes(const std::string& bytes) {
  const File file(bytes);
  Opened out;
  auto opened = PcapFile::open(file.path(), [&](std::string kind, std::uint64_t offset, std::string detail) {
    out.problems.push_back({std::move(kind), offset, std::move(detail)});
  });
  if (opened) out.file = *opened;
  return out;
}

TEST(Pcap, EveryFormOfTheHeaderIsRead) {
  for (const bool nano : {false, true}) {
    for (const bool swapped : {false, true}) {
      PcapBytes capture(nano, swapped);
      capture.udp(5'000'007, "hello", 4000);
      capture.ip(6'000'000, ip_packets("vlan", 4001)[0], true);
      const Opened opened = open_bytes(capture.bytes);
      ASSERT_TRUE(opened.file);
      EXPECT_TRUE(opened.problems.empty());
      ASSERT_EQ(opened.file->datagrams().size(), 2u);
      const Datagram& first = opened.file->datagrams()[0];
      EXPECT_EQ(first.time.ns, 5'000'007'000);
      EXPECT_EQ(first.port, 4000);
      EXPECT_EQ(first.size, 5u);
      std::vector<std::byte> bytes;
      const File file(capture.bytes);
      ASSERT_TRUE(opened.file->read(opened.file->datagrams()[1], bytes));
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "vlan");
    }
  }
}

TEST(Pcap, FragmentsArePutTogether) {
  const std::string payload = ars548_detections();
  PcapBytes capture;
  auto pieces = ip_packets(payload, 42102, 1480);
  ASSERT_GT(pieces.size(), 20u);
  std::swap(pieces[3], pieces[7]);               // out of order
  pieces.insert(pieces.begin() + 5, pieces[2]);  // twice
  for (std::size_t i = 0; i < pieces.size(); ++i) capture.ip(1'000'000 + i, pieces[i]);
  auto lost = ip_packets(payload, 42102, 1480, 9);
  lost.erase(lost.begin() + 4);
  for (const auto& piece : lost) capture.ip(1'100'000, piece);
  const Opened opened = open_bytes(capture.bytes);
  ASSERT_TRUE(opened.file);
  ASSERT_EQ(opened.file->datagrams().size(), 1u);
  EXPECT_EQ(opened.file->datagrams()[0].size, payload.size());
  ASSERT_EQ(opened.problems.size(), 1u);
  EXPECT_EQ(opened.problems[0].kind, "incomplete datagram");
  std::vector<std::byte> bytes;
  ASSERT_TRUE(opened.file->read(opened.file->datagrams()[0], bytes));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), payload);
}

PcapBytes twenty() {
  PcapBytes capture;
  for (std::uint64_t i = 0; i < 20; ++i)
    capture.udp(1'000'000'000 + i * 1000, std::string(40, static_cast<char>(i)), 4000);
  return capture;
}

TEST(Pcap, ACutKeepsEveryWholeRecord) {
  const PcapBytes capture = twenty();
  for (std::size_t n = 24; n < capture.bytes.size(); ++n) {
    const Opened opened = open_bytes(capture.bytes.substr(0, n));
    ASSERT_TRUE(opened.file) << n;
    std::size_t whole = 0;
    while (whole + 1 < capture.offsets.size() && capture.offsets[whole + 1] <= n) ++whole;
    ASSERT_EQ(opened.file->datagrams().size(), whole) << n;
    const bool at_end =
        n == 24 || std::find(capture.offsets.begin(), capture.offsets.end(), n) != capture.offsets.end();
    ASSERT_EQ(opened.problems.size(), at_end ? 0u : 1u) << n;
    if (!at_end) {
      ASSERT_EQ(opened.problems[0].kind, "truncated record");
      ASSERT_EQ(opened.problems[0].offset, capture.offsets[whole]);
    }
  }
}

TEST(Pcap, ADamagedByteCostsItsRecordOnly) {
  const PcapBytes capture = twenty();
  for (std::size_t n = 24; n < capture.bytes.size(); ++n) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = capture.bytes;
      damaged[n] = static_cast<char>(damaged[n] ^ flip);
      const Opened opened = open_bytes(damaged);
      ASSERT_TRUE(opened.file) << n;
      // The record with the damage, and with a damaged length the one it swallowed.
      ASSERT_GE(opened.file->datagrams().size(), 18u) << n << " " << flip;
    }
  }
}

TEST(Pcap, OtherFilesAreRefused) {
  EXPECT_FALSE(open_bytes("").file);
  EXPECT_FALSE(open_bytes("\xd4\xc3\xb2\xa1").file);
  EXPECT_FALSE(open_bytes(std::string(24, 'x')).file);
  const File pcapng(std::string("\x0a\x0d\x0d\x0a", 4) + std::string(40, '\0'));
  const auto log = open_log(pcapng.path());
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("pcapng"), std::string::npos);
}

TEST(Velodyne, PointsLieWhereTheManualPutsThem) {
  const std::string bytes = velodyne_packet({.azimuth = 9000, .step = 0, .units = 5000});
  std::string reason;
  const auto packet = VelodynePacket::parse(view(bytes), reason);
  ASSERT_TRUE(packet) << reason;
  std::vector<log::LidarPoint> points;
  packet->points(0, kVelodyneBlocks, {}, points);
  ASSERT_EQ(points.size(), 12u * 32);
  // Laser 0 looks 15 degrees down; azimuth 90 is the sensor's +x, takt's right.
  EXPECT_NEAR(points[0].x, 0, 1e-6);
  EXPECT_NEAR(points[0].y, -10 * std::cos(15 * std::acos(-1.0) / 180), 1e-5);
  EXPECT_NEAR(points[0].z, -10 * std::sin(15 * std::acos(-1.0) / 180), 1e-5);
  EXPECT_EQ(points[0].ring, 0);
  EXPECT_EQ(points[1].ring, 8);    // +1 degree
  EXPECT_EQ(points[15].ring, 15);  // +15 degrees
  EXPECT_EQ(points[0].time_ns, 0);
  EXPECT_EQ(points[1].time_ns, 2304);
  EXPECT_EQ(points[16].time_ns, 55296);
  EXPECT_EQ(points[32].time_ns, 110592);
  EXPECT_EQ(points[0].intensity, 10);
}

TEST(Velodyne, AzimuthsBetweenBlocksFollowTheFirings) {
  const std::string bytes = velodyne_packet({.azimuth = 35990, .step = 40});
  std::string reason;
  const auto packet = VelodynePacket::parse(view(bytes), reason);
  ASSERT_TRUE(packet);
  std::vector<log::LidarPoint> points;
  packet->points(0, 1, {}, points);
  const auto degrees = [&](std::size_t i) {
    const double a = std::atan2(-points[i].y, points[i].x) * 180 / std::acos(-1.0);
    return a < 0 ? a + 360 : a;
  };
  EXPECT_NEAR(degrees(0), 359.90, 1e-3);
  EXPECT_NEAR(degrees(16), 0.10, 1e-3);  // half a block later, across north
  points.clear();
  packet->points(11, 12, {}, points);  // the last block has no next one: the turn of the one before
  EXPECT_NEAR(degrees(16), 4.30 + 0.20, 1e-3);
}

TEST(Velodyne, EqualReturnsCountOnce) {
  std::string reason;
  std::vector<log::LidarPoint> points;
  const std::string same = velodyne_packet({.mode = 0x39});
  VelodynePacket::parse(view(same), reason)->points(0, kVelodyneBlocks, {}, points);
  EXPECT_EQ(points.size(), 6u * 32);
  points.clear();
  const std::string differs = velodyne_packet({.mode = 0x39, .second_differs = true});
  const auto packet = VelodynePacket::parse(view(differs), reason);
  packet->points(0, kVelodyneBlocks, {}, points);
  EXPECT_EQ(points.size(), 12u * 32);
  EXPECT_EQ(packet->block_time(0), packet->block_time(1));
  EXPECT_EQ(packet->block_time(2).ns, 110592);
}

TEST(Velodyne, Vlp32HasItsOwnTables) {
  const std::string bytes = velodyne_packet({.azimuth = 0, .step = 0, .product = 0x28, .units = 2500});
  std::string reason;
  const auto packet = VelodynePacket::parse(view(bytes), reason);
  ASSERT_TRUE(packet) << reason;
  std::vector<log::LidarPoint> points;
  packet->points(0, 2, {}, points);
  ASSERT_EQ(points.size(), 64u);
  EXPECT_NEAR(points[0].z, -10 * std::sin(25 * std::acos(-1.0) / 180), 1e-4);  // 4 mm units
  EXPECT_NEAR(std::atan2(-points[0].y, points[0].x) * 180 / std::acos(-1.0), 1.4, 1e-3);
  EXPECT_NEAR(std::atan2(-points[1].y, points[1].x) * 180 / std::acos(-1.0), -4.2, 1e-3);
  EXPECT_EQ(points[0].ring, 0);
  EXPECT_EQ(points[29].ring, 31);   // +15 degrees
  EXPECT_EQ(points[1].time_ns, 0);  // fires together with laser 0
  EXPECT_EQ(points[2].time_ns, 2304);
  EXPECT_EQ(points[32].time_ns, 55296);
}

TEST(Velodyne, TheClockWrapsEveryHour) {
  EXPECT_EQ(velodyne_elapsed(3'599'999'900, 100, microseconds(210)), 200);
  EXPECT_EQ(velodyne_elapsed(100, 400, microseconds(280)), 300);
  EXPECT_EQ(velodyne_elapsed(100, 400, seconds(7200)), 2 * kVelodyneHour + 300);
  EXPECT_EQ(velodyne_elapsed(400, 100, microseconds(-280)), -300);  // out of order
}

TEST(Velodyne, DamagedPacketsAreRefusedWithAReason) {
  const std::string whole = velodyne_packet({});
  std::string reason;
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(VelodynePacket::parse(view(whole.substr(0, n)), reason));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string damaged = whole;
    damaged[n] = static_cast<char>(~damaged[n]);
    std::vector<log::LidarPoint> points;
    if (const auto packet = VelodynePacket::parse(view(damaged), reason))
      packet->points(0, kVelodyneBlocks, {}, points);
    EXPECT_LE(points.size(), 384u);
  }
  EXPECT_FALSE(VelodynePacket::parse(view(velodyne_packet({.product = 0x21})), reason));
  EXPECT_NE(reason.find("VLP-16"), std::string::npos);
}

// Three turns and a bit; the sensor's clock crosses the hour.
PcapBytes turns(std::int64_t clock_offset_us) {
  PcapBytes capture;
  for (std::uint32_t i = 0; i < 250; ++i) {
    const std::int64_t us = 1'699'999'199'900'000 + std::int64_t{i} * 1327;
    const std::uint32_t hour =
        static_cast<std::uint32_t>(((us - 300 + clock_offset_us) % kVelodyneHour + kVelodyneHour) % kVelodyneHour);
    capture.udp(static_cast<std::uint64_t>(us), velodyne_packet({.azimuth = (i * 480) % 36000, .hour_us = hour}), 2368);
  }
  return capture;
}

TEST(Capture, TurnsBecomeClouds) {
  const File file(turns(0).bytes);
  auto log = open_log(file.path());
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_TRUE((*log)->problems().empty());
  ASSERT_EQ((*log)->channels().size(), 1u);
  EXPECT_EQ((*log)->channels()[0].topic, "/velodyne/points");
  EXPECT_EQ((*log)->channels()[0].messages, 4u);
  std::size_t points = 0;
  SensorTime last{0};
  for (;;) {
    const auto message = (*log)->next();
    ASSERT_TRUE(message);
    if (!*message) break;
    EXPECT_GE((*message)->arrival, (*message)->capture);
    EXPECT_LT(((*message)->arrival - (*message)->capture).ms(), 101);
    if (last.ns != 0) {
      EXPECT_NEAR(((*message)->capture - last).ms(), 75 * 1.327, 0.01);
    }
    last = (*message)->capture;
    const auto cloud = decode_point_cloud((*message)->bytes);
    ASSERT_TRUE(cloud);
    PointLayout layout(*cloud);
    const auto time = layout.find({"time_offset_ns"}, true);
    for (std::size_t i = 0; i < layout.points(); ++i) {
      ASSERT_GE(time.at(layout.point(i)), 0);
      ASSERT_LT(time.at(layout.point(i)), 100.9e6);
    }
    points += layout.points();
  }
  EXPECT_EQ(points, 250u * 384);
}

TEST(Capture, AClockThatIsNotSetIsToldAndTheHostsTaken) {
  const File file(turns(1'234'000'000).bytes);
  const auto log = open_log(file.path());
  ASSERT_TRUE(log);
  std::string notes;
  for (const auto& note : (*log)->notes()) notes += note + "\n";
  EXPECT_NE(notes.find("clock is not set"), std::string::npos) << notes;
  const auto first = (*log)->next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((**first).capture.ns, 1'699'999'199'900'000'000);
}

TEST(Capture, RadarPacketsBecomeReturnsAndBoxes) {
  PcapBytes capture;
  capture.udp(1'700'000'000'260'000, ars548_detections(), 42102, 1480);
  capture.udp(1'700'000'000'270'000, ars548_objects(), 42102, 1480);
  capture.udp(1'700'000'000'280'000, "something else", 9999);
  const File file(capture.bytes);
  auto log = open_log(file.path());
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_TRUE((*log)->problems().empty());
  const auto first = (*log)->next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->channel->topic, "/ars548/detections");
  EXPECT_EQ((*first)->capture.ns, 1'700'000'000'250'000'000);  // by the radar's clock
  const auto cloud = decode_point_cloud((*first)->bytes);
  ASSERT_TRUE(cloud);
  EXPECT_EQ(PointLayout(*cloud).points(), 1u);  // the second one has no valid range
  const auto second = (*log)->next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->channel->topic, "/ars548/objects");
}

// A capture of both sensors and where the records of each message lie in it.
struct Unit {
  std::string topic;
  std::size_t begin = 0, end = 0;  // bytes
};
struct BothSensors {
  PcapBytes capture;
  std::vector<Unit> units;
  BothSensors() {
    const std::uint64_t start = 1'700'000'000'000'000;
    for (std::uint32_t i = 0; i < 24; ++i) {
      const std::uint64_t us = start + i * 100'000;
      add("/velodyne/points", [&] {
        for (std::uint32_t p = 0; p < 5; ++p) {
          const auto hour = static_cast<std::uint32_t>((us + p * 20'000) % static_cast<std::uint64_t>(kVelodyneHour));
          capture.udp(
              us + p * 20'000,
              velodyne_packet(
                  {.azimuth = p * 7200, .step = 600, .hour_us = hour, .units = static_cast<std::uint16_t>(1000 + i)}),
              2368);
        }
      });
      if (i % 4 == 1) {
        std::string packet = ars548_detections();
        packet[101 + 35] = static_cast<char>(-10 - static_cast<int>(i));  // the first one's RCS
        add("/ars548/detections", [&] { capture.udp(us + 90'000, packet, 42102, 1480); });
      }
    }
  }
  template <class Write>
  void add(const std::string& topic, Write&& write) {
    Unit unit{topic, capture.bytes.size(), 0};
    write();
    unit.end = capture.bytes.size();
    units.push_back(unit);
  }
};

// The messages of each topic, in order.
std::map<std::string, std::vector<std::string>> messages_of(const std::string& capture) {
  const File file(capture);
  std::map<std::string, std::vector<std::string>> out;
  const auto log = open_log(file.path());
  if (!log) {
    EXPECT_EQ(log.error().code, Code::kInput);
    return out;
  }
  for (;;) {
    const auto message = (*log)->next();
    EXPECT_TRUE(message);
    if (!message || !*message) return out;
    const auto bytes = (*message)->bytes;
    out[(*message)->channel->topic].emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

class DamagedCapture : public ::testing::Test {
 protected:
  // Every unit outside [first, last] gives its message, byte for byte.
  void expect_others(const std::string& bytes, std::size_t first, std::size_t last, std::size_t at) {
    auto found = messages_of(bytes);
    std::map<std::string, std::size_t> count;
    for (std::size_t u = 0; u < both_.units.size(); ++u) {
      const std::string& topic = both_.units[u].topic;
      const std::string& message = whole_.at(topic).at(count[topic]++);
      if (u >= first && u <= last) continue;
      const auto& list = found[topic];
      ASSERT_NE(std::find(list.begin(), list.end(), message), list.end())
          << topic << ", unit " << u << " is lost by damage at byte " << at << " in unit " << first << " to " << last;
    }
  }
  [[nodiscard]] std::size_t unit_at(std::size_t byte) const {
    std::size_t u = 0;
    while (u + 1 < both_.units.size() && both_.units[u].end <= byte) ++u;
    return u;
  }
  const BothSensors both_;
  const std::map<std::string, std::vector<std::string>> whole_ = messages_of(both_.capture.bytes);
};

TEST_F(DamagedCapture, CutAtAThousandPlaces) {
  ASSERT_EQ(whole_.at("/velodyne/points").size(), 24U);
  ASSERT_EQ(whole_.at("/ars548/detections").size(), 6U);
  const std::string& bytes = both_.capture.bytes;
  for (std::size_t i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    const std::size_t at = bytes.size() * i / 1000;
    expect_others(bytes.substr(0, at), unit_at(at), both_.units.size(), at);
  }
}

// A wrong length may swallow the record behind it, a wrong azimuth may move packets into the sweep before or after.
TEST_F(DamagedCapture, AByteChangedAtAThousandPlaces) {
  const std::string& bytes = both_.capture.bytes;
  for (std::size_t i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    const std::size_t at = 24 + (bytes.size() - 24) * i / 1000, unit = unit_at(at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (i % 3 == 0 ? 0xff : i % 3 == 1 ? 0x01 : 0x80));
    // The neighbours of a sweep may have a radar message between them.
    expect_others(damaged, unit - std::min<std::size_t>(unit, 2), unit + 2, at);
  }
}

TEST(Capture, WhatIsNotReadIsNamed) {
  PcapBytes ouster;
  ouster.udp(1'000'000, std::string(3000, 'x'), 7502);
  const File file(ouster.bytes);
  const auto log = open_log(file.path());
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("7502 (1)"), std::string::npos) << log.error().message;
  const File empty(PcapBytes().bytes);
  const auto none = open_log(empty.path());
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE((*none)->channels().empty());
  EXPECT_TRUE((*none)->problems().empty());
}

TEST(Ars548, ObjectsAreBoxesAroundTheirCentres) {
  const auto list = parse_ars548_objects(view(ars548_objects()));
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->objects.size(), 2u);
  EXPECT_EQ(list->objects[1].id, 101u);
  EXPECT_EQ(list->objects[0].length, 4);
  EXPECT_FALSE(ars548_scene_message(*list, {0}, "vehicle").empty());
}

TEST(Ars548, DamageIsRefusedOrHarmless) {
  EXPECT_FALSE(parse_ars548_detections(view(ars548_detections(801))));
  EXPECT_FALSE(parse_ars548_objects(view(ars548_objects(51))));
  const std::string whole = ars548_detections();
  EXPECT_FALSE(parse_ars548_detections(view(whole.substr(0, whole.size() - 1))));
  std::string no_number = whole;
  no_number.replace(101 + 17, 4, big(0x7fc00000, 4));
  const auto refused = parse_ars548_detections(view(no_number));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("byte 118"), std::string::npos) << refused.error().message;
  for (std::size_t n = 0; n < 400; ++n) {
    std::string damaged = whole;
    damaged[n] = static_cast<char>(~damaged[n]);
    if (const auto list = parse_ars548_detections(view(damaged))) (void)ars548_radar_message(*list, {0}, "radar");
  }
}

}  // namespace
}  // namespace takt::sensors
