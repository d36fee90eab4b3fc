// A whole log in memory, and points and boxes out of it, for tests on recorded data.
#pragma once

#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/point_fields.h"
#include "sensors/rig/rig.h"

namespace takt::sensors::test {

struct ReadMessage {
  SensorTime arrival, capture;
  std::string bytes;
  [[nodiscard]] std::span<const std::byte> view() const { return std::as_bytes(std::span(bytes)); }
};
struct ReadLog {
  std::map<std::string, std::vector<ReadMessage>> topics;
  std::vector<LogProblem> problems;
  std::vector<std::string> notes;
};

// Every message, with the checks that hold for any log: counts as announced, order, problems listed.
inline ReadLog read_log(const std::string& path) {
  ReadLog all;
  auto log = open_log(path);
  EXPECT_TRUE(log) << (log ? "" : log.error().message);
  if (!log) return all;
  SensorTime last{INT64_MIN};
  for (;;) {
    const auto message = (*log)->next();
    EXPECT_TRUE(message) << (message ? "" : message.error().message);
    if (!message || !*message) break;
    const LogMessage& m = **message;
    EXPECT_GE(m.arrival, last);
    last = m.arrival;
    const auto* text = reinterpret_cast<const char*>(m.bytes.data());
    all.topics[m.channel->topic].push_back({m.arrival, m.capture, std::string(text, m.bytes.size())});
  }
  for (const LogChannel& channel : (*log)->channels()) {
    EXPECT_EQ(channel.messages, all.topics[channel.topic].size()) << channel.topic;
  }
  all.problems = (*log)->problems();
  all.notes = (*log)->notes();
  return all;
}

using Points = std::vector<std::map<std::string, double>>;

// The named fields of every point.
inline Points points_of(const ReadMessage& message, std::initializer_list<const char*> names) {
  Points out;
  const auto cloud = decode_point_cloud(message.view());
  EXPECT_TRUE(cloud) << (cloud ? "" : cloud.error().message);
  if (!cloud) return out;
  PointLayout layout(*cloud);
  std::vector<std::pair<std::string, PointField>> fields;
  for (const char* name : names) fields.emplace_back(name, layout.find({name}, true));
  EXPECT_EQ(layout.reason(), "");
  out.resize(layout.points());
  for (std::size_t i = 0; i < layout.points(); ++i) {
    for (const auto& [name, field] : fields) out[i][name] = field.at(layout.point(i));
  }
  return out;
}

inline std::vector<std::array<double, 3>> positions_of(const ReadMessage& message) {
  std::vector<std::array<double, 3>> out;
  for (auto& p : points_of(message, {"x", "y", "z"})) out.push_back({p["x"], p["y"], p["z"]});
  return out;
}

inline std::size_t points_inside(const log::TruthBox& box, const std::vector<std::array<double, 3>>& points) {
  const Transform inverse = Transform::from_quaternion(box.pose.orientation, box.pose.position).inverse();
  std::size_t inside = 0;
  for (const auto& p : points) {
    const auto q = inverse.apply(p);
    bool in = true;
    for (std::size_t k = 0; k < 3; ++k) in = in && std::fabs(q[k]) <= box.size[k] / 2;
    inside += in ? 1 : 0;
  }
  return inside;
}

inline std::vector<std::array<double, 3>> moved(std::vector<std::array<double, 3>> points, const Transform& by) {
  for (auto& p : points) p = by.apply(p);
  return points;
}

// T_parent_child of the named frame in the first message of /tf that has it.
inline Transform frame_of(const ReadLog& log, const std::string& child) {
  const auto found = log.topics.find("/tf");
  if (found != log.topics.end()) {
    for (const ReadMessage& message : found->second) {
      const auto all = decode_frame_transforms(message.view());
      if (!all) continue;
      for (const auto& t : *all) {
        if (t.child == child) return Transform::from_quaternion(t.pose.orientation, t.pose.position);
      }
    }
  }
  ADD_FAILURE() << "no transform of " << child;
  return {};
}

}  // namespace takt::sensors::test
