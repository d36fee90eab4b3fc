#include "sensors/sync/clock_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace takt::sensors {
namespace {

constexpr std::size_t kPairsMin = 8;
constexpr std::int64_t kRateSpanNs = 10'000'000'000;  // shorter logs do not show a rate
constexpr double kRateMax = 1e-3;
constexpr Duration kErrorMax = milliseconds(50);

// A stamp, and arrival - stamp relative to the first pair's.
struct Point {
  std::int64_t capture = 0;
  std::int64_t excess = 0;
};

// Leaves out points far below the median of their neighbours: the envelope hangs on single points.
std::vector<Point> without_outliers(const std::vector<Point>& points) {
  constexpr std::size_t kReach = 7;
  constexpr std::int64_t kFloor = 500'000;
  std::vector<Point> kept;
  std::vector<std::int64_t> window;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t first = i < kReach ? 0 : i - kReach;
    const std::size_t last = std::min(points.size() - 1, i + kReach);
    window.clear();
    for (std::size_t k = first; k <= last; ++k) window.push_back(points[k].excess);
    const auto middle = window.begin() + static_cast<std::ptrdiff_t>(window.size() / 2);
    std::nth_element(window.begin(), middle, window.end());
    const std::int64_t median = *middle;
    for (std::int64_t& value : window) value = std::abs(value - median);
    std::nth_element(window.begin(), middle, window.end());
    if (points[i].excess >= median - 10 * std::max(*middle, kFloor)) kept.push_back(points[i]);
  }
  return kept;
}

// Slope of the lower hull's edge above the mean stamp.
double envelope_slope(const std::vector<Point>& points) {
  const auto x = [&](const Point& p) { return static_cast<double>(p.capture - points.front().capture); };
  const auto y = [](const Point& p) { return static_cast<double>(p.excess); };
  std::vector<Point> hull;
  double mean = 0;
  for (const Point& p : points) {
    mean += x(p) / static_cast<double>(points.size());
    while (hull.size() >= 2) {
      const Point &a = hull[hull.size() - 2], &b = hull.back();
      if ((x(b) - x(a)) * (y(p) - y(a)) > (y(b) - y(a)) * (x(p) - x(a))) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  for (std::size_t i = 1; i < hull.size(); ++i) {
    if (x(hull[i]) < mean && i + 1 < hull.size()) continue;
    const double run = x(hull[i]) - x(hull[i - 1]);
    return run > 0 ? (y(hull[i]) - y(hull[i - 1])) / run : 0;
  }
  return 0;
}

}  // namespace

Result<DeviceClockMap> estimate_clock(std::span<const StampPair> pairs, Duration delay_min, Duration delay_spread) {
  if (pairs.size() < kPairsMin) {
    return fail(Code::kInput, "a clock cannot be estimated from " + std::to_string(pairs.size()) +
                                  " messages; at least " + std::to_string(kPairsMin) + " are needed");
  }
  const std::int64_t reference = pairs.front().arrival_ns - pairs.front().capture_ns;
  std::vector<Point> points;
  points.reserve(pairs.size());
  for (const StampPair& p : pairs) points.push_back({p.capture_ns, p.arrival_ns - p.capture_ns - reference});
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.capture < b.capture; });
  points = without_outliers(points);

  const std::int64_t span = points.back().capture - points.front().capture;
  const double slope = span >= kRateSpanNs ? envelope_slope(points) : 0;
  if (std::fabs(slope) > kRateMax) {
    return fail(Code::kInput, "the clocks drift apart by " + std::to_string(slope * 1e6) +
                                  " ppm, which no clock does; the stamps jump or are no times");
  }
  DeviceClockMap map;
  map.from_origin = {points.front().capture};
  map.to_origin = {points.front().capture + reference - delay_min.ns};
  map.rate_ppb = std::llround(slope * 1e9);
  map.valid_from = map.from_origin;
  map.valid_to = {points.back().capture};
  // With the rounded rate the line is moved up until it touches the lowest point: nothing arrives before it can.
  const auto distance = [&](const Point& p) {
    return p.capture + reference + p.excess - delay_min.ns - map.map_unchecked({p.capture}).ns;
  };
  std::int64_t touch = distance(points.front());
  for (const Point& p : points) touch = std::min(touch, distance(p));
  map.to_origin.ns += touch;

  constexpr std::size_t kParts = 10;
  std::array<std::int64_t, kParts> best{};
  best.fill(-1);
  for (const Point& p : points) {
    const auto part = static_cast<std::size_t>(static_cast<double>(p.capture - points.front().capture) /
                                               static_cast<double>(std::max<std::int64_t>(span, 1)) * (kParts - 0.001));
    if (best[part] < 0 || distance(p) < best[part]) best[part] = distance(p);
  }
  map.error = Duration{*std::max_element(best.begin(), best.end())} + delay_spread;
  if (map.error > kErrorMax + delay_spread) {
    return fail(Code::kInput, "the stamps follow no single line: some part of the log lies " +
                                  std::to_string((map.error - delay_spread).ms()) + " ms above it");
  }
  return map;
}

}  // namespace takt::sensors
