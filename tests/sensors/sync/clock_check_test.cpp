#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <vector>

#include "sensors/sync/clock_check.h"

namespace takt::sensors {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;

SensorStamps healthy(const std::string& name, std::int64_t period_ms, std::size_t messages = 200) {
  SensorStamps out{name, milliseconds(period_ms), milliseconds(20), true, false, {}};
  for (std::size_t i = 0; i < messages; ++i) {
    const std::int64_t capture = kEpoch + static_cast<std::int64_t>(i) * period_ms * kMs;
    out.stamps.push_back({capture, capture + 10 * kMs + static_cast<std::int64_t>(i % 7) * kMs});
  }
  return out;
}
std::vector<SensorStamps> rig() {
  return {healthy("camera", 33, 600), healthy("lidar", 100), healthy("radar", 50, 400)};
}

// The only finding of a log whose second sensor was changed.
ClockFinding only_finding(const std::vector<SensorStamps>& sensors) {
  const ClockCheck check = check_clocks(sensors);
  for (const ClockFinding& f : check.findings) SCOPED_TRACE(f.text);
  EXPECT_EQ(check.findings.size(), 1U);
  return check.findings.empty() ? ClockFinding{} : check.findings.front();
}

TEST(CheckClocks, HealthyLogsGiveNothing) {
  const ClockCheck check = check_clocks(rig());
  EXPECT_TRUE(check.findings.empty()) << check.findings.front().text;
  EXPECT_FALSE(check.window);
  EXPECT_TRUE(check_clocks({}).findings.empty());
  EXPECT_TRUE(check_clocks({SensorStamps{"none", milliseconds(100), {}, true, false, {}}}).findings.empty());
}

TEST(CheckClocks, LogsThatBeginAtZeroAreHealthy) {
  auto sensors = rig();
  for (auto& sensor : sensors) {
    for (auto& p : sensor.stamps) p = {p.capture_ns - kEpoch, p.arrival_ns - kEpoch};
  }
  EXPECT_TRUE(check_clocks(sensors).findings.empty());
}

TEST(CheckClocks, LateMessagesAndGapsAreNoFaultsOfClocks) {
  auto sensors = rig();
  for (std::size_t i = 50; i < 60; ++i) {  // the recorder stood still for a second and caught up
    sensors[1].stamps[i].arrival_ns = sensors[1].stamps[60].arrival_ns + static_cast<std::int64_t>(i) * 1000;
  }
  sensors[1].stamps.erase(sensors[1].stamps.begin() + 80, sensors[1].stamps.begin() + 100);  // two seconds lost
  const ClockCheck check = check_clocks(sensors);
  EXPECT_TRUE(check.findings.empty()) << check.findings.front().text;
}

TEST(CheckClocks, ZeroStamps) {
  auto sensors = rig();
  sensors[1].stamps[0].capture_ns = sensors[1].stamps[7].capture_ns = 0;
  const ClockFinding finding = only_finding(sensors);
  EXPECT_EQ(finding.fault, ClockFault::kZeroStamp);
  EXPECT_EQ(finding.sensor, "lidar");
  EXPECT_EQ(finding.messages, 2U);
  EXPECT_THAT(finding.text, HasSubstr("lidar: 2 of 200 messages have the time 0"));

  for (auto& p : sensors[1].stamps) p.capture_ns = 0;
  EXPECT_THAT(only_finding(sensors).text, HasSubstr("every stamp is 0"));
}

TEST(CheckClocks, OneMessageAtTimeZeroDoesNotMakeALogOfYears) {
  auto sensors = rig();
  sensors[1].stamps[0] = {0, 0};
  const ClockCheck check = check_clocks(sensors);
  ASSERT_EQ(check.findings.size(), 1U);
  EXPECT_EQ(check.findings[0].fault, ClockFault::kZeroStamp);
  ASSERT_TRUE(check.window);
  EXPECT_GE(check.window->first.ns, kEpoch);
  EXPECT_LT((check.window->second - check.window->first), seconds(30));
}

TEST(CheckClocks, StampsDaysAway) {
  auto sensors = rig();
  sensors[1].stamps[9].capture_ns += std::int64_t{3 * 86'400} * 1000 * kMs;
  const ClockFinding finding = only_finding(sensors);
  EXPECT_EQ(finding.fault, ClockFault::kFarStamp);
  EXPECT_THAT(finding.text, HasSubstr("3.0 days after"));
  EXPECT_TRUE(check_clocks(sensors).window) << "a rule would move its arrival there";
}

TEST(CheckClocks, WrongUnits) {
  const std::pair<std::int64_t, const char*> units[] = {
      {1'000, "count us"}, {kMs, "count ms"}, {1000 * kMs, "count s"}};
  for (const auto& [divisor, words] : units) {
    auto sensors = rig();
    for (auto& p : sensors[1].stamps) p.capture_ns /= divisor;
    const ClockFinding finding = only_finding(sensors);
    EXPECT_EQ(finding.fault, ClockFault::kWrongUnit);
    EXPECT_THAT(finding.text, HasSubstr(std::string("lidar: stamps ") + words));
  }
  auto sensors = rig();
  for (auto& p : sensors[1].stamps) p.capture_ns = (p.capture_ns - kEpoch) * 1000 + kEpoch;
  EXPECT_EQ(only_finding(sensors).fault, ClockFault::kWrongUnit) << "us passed as ns";
}

TEST(CheckClocks, WrappedCounters) {
  auto sensors = rig();
  for (auto& p : sensors[1].stamps) p.capture_ns = kEpoch + (p.capture_ns - kEpoch) % (std::int64_t{1} << 32);
  const ClockFinding finding = only_finding(sensors);
  EXPECT_EQ(finding.fault, ClockFault::kWrapped);
  EXPECT_EQ(finding.messages, 4U);
  EXPECT_EQ(finding.by.ns, -(std::int64_t{1} << 32));
  EXPECT_THAT(finding.text, HasSubstr("2^32 ns"));
}

TEST(CheckClocks, Jumps) {
  for (const std::int64_t by : {5'000 * kMs, -700 * kMs}) {
    auto sensors = rig();
    for (std::size_t i = 120; i < 200; ++i) sensors[1].stamps[i].capture_ns += by;
    const ClockFinding finding = only_finding(sensors);
    EXPECT_EQ(finding.fault, ClockFault::kJump);
    EXPECT_EQ(finding.messages, 1U);
    EXPECT_NEAR(finding.by.ms(), static_cast<double>(by) * 1e-6, 10);
  }
  auto sensors = rig();
  for (std::size_t i = 120; i < 200; ++i) sensors[1].stamps[i].capture_ns -= 700 * kMs;
  sensors[1].has_arrivals = false;
  EXPECT_EQ(only_finding(sensors).fault, ClockFault::kJump) << "backwards is a jump without arrivals, too";
}

TEST(CheckClocks, CaptureAfterArrival) {
  auto sensors = rig();
  for (auto& p : sensors[1].stamps) p.capture_ns += 37'000 * kMs;
  const ClockFinding ahead = only_finding(sensors);
  EXPECT_EQ(ahead.fault, ClockFault::kCaptureAfterArrival);
  EXPECT_EQ(ahead.by, milliseconds(36'990));
  EXPECT_THAT(ahead.text, HasSubstr("ahead of the recorder's by at least 36.990 s"));
  sensors[1].device_clock = true;
  EXPECT_TRUE(check_clocks(sensors).findings.empty()) << "the rig says so";

  sensors = rig();
  sensors[1].stamps[5].capture_ns += 30 * kMs;
  const ClockFinding once = only_finding(sensors);
  EXPECT_EQ(once.messages, 1U);
  EXPECT_THAT(once.text, HasSubstr("1 of 200 messages were captured after they arrived"));
}

TEST(CheckClocks, AnotherClock) {
  auto sensors = rig();
  for (auto& p : sensors[1].stamps) p.capture_ns -= kEpoch - 1000 * kMs;  // counts from boot
  const ClockFinding finding = only_finding(sensors);
  EXPECT_EQ(finding.fault, ClockFault::kOtherClock);
  EXPECT_NEAR(finding.by.seconds(), -1.7e9, 10);
}

TEST(CheckClocks, SensorsThatDoNotOverlap) {
  auto sensors = rig();
  for (auto& sensor : sensors) sensor.has_arrivals = false;
  for (auto& p : sensors[1].stamps) p.capture_ns += 597'000 * kMs;
  const ClockFinding finding = only_finding(sensors);
  EXPECT_EQ(finding.fault, ClockFault::kNoOverlap);
  EXPECT_EQ(finding.sensor, "lidar");
  EXPECT_EQ(finding.by, seconds(597));
  EXPECT_THAT(finding.text, HasSubstr("begins 597.000 s after"));

  sensors = rig();
  sensors[2].stamps.resize(100);  // five of twenty seconds
  EXPECT_THAT(only_finding(sensors).text, HasSubstr("less than half"));
}

}  // namespace
}  // namespace takt::sensors
