#include "pipeline/stages/box_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"

namespace takt::pipeline {
namespace {

struct Cloud2 {
  std::vector<float> x, y;
};

// Two visible sides of a rectangle at (px, py), every 0.2 m, seen from the origin.
Cloud2 visible_sides(double px, double py, double length, double width, double yaw, float noise_m, std::uint32_t seed) {
  SplitMix noise(seed);
  Cloud2 cloud;
  const double c = kernels::cos(yaw), s = kernels::sin(yaw);
  const auto add = [&](double along, double across) {
    cloud.x.push_back(static_cast<float>(px + c * along - s * across) + noise.uniform(-noise_m, noise_m));
    cloud.y.push_back(static_cast<float>(py + s * along + c * across) + noise.uniform(-noise_m, noise_m));
  };
  const double eye_along = -(c * px + s * py), eye_across = -(c * py - s * px);
  const double end = eye_along > 0 ? length / 2 : -length / 2;
  const double side = eye_across > 0 ? width / 2 : -width / 2;
  if (std::fabs(eye_along) > length / 2) {
    for (double t = -width / 2; t <= width / 2; t += 0.2) add(end, t);
  }
  if (std::fabs(eye_across) > width / 2) {
    for (double t = -length / 2; t <= length / 2; t += 0.2) add(t, side);
  }
  return cloud;
}

// Smallest angle between two directions that look alike after a quarter turn.
double quarter_difference(double a, double b) {
  const double quarter = kernels::kPi / 2;
  const double d = (a - b) / quarter;
  return std::fabs(d - std::floor(d + 0.5)) * quarter;
}

TEST(BoxFit, FindsHeadingAndExtentsOfEveryYaw) {
  const BoxFit fit(0.05F, 160);
  double worst_angle = 0, worst_extent = 0;
  for (int degree = 0; degree < 360; ++degree) {
    const double yaw = kernels::kPi * degree / 180;
    const Cloud2 cloud = visible_sides(12, 7, 4.5, 1.8, yaw, 0.03F, static_cast<std::uint32_t>(degree));
    const FittedBox box = fit.fit(cloud.x, cloud.y, 0, 0);
    worst_angle = std::max(worst_angle, quarter_difference(box.heading, yaw));
    const double longer = std::max(box.extent(0), box.extent(1));
    const double shorter = std::min(box.extent(0), box.extent(1));
    // When the eye looks along one side only the other one is seen.
    const double c = kernels::cos(yaw), s = kernels::sin(yaw);
    const bool sees_end = std::fabs(c * 12 + s * 7) > 2.25;
    const bool sees_side = std::fabs(c * 7 - s * 12) > 0.9;
    if (sees_end && sees_side) {
      worst_extent = std::max({worst_extent, std::fabs(longer - 4.5), std::fabs(shorter - 1.8)});
    }
  }
  EXPECT_LT(worst_angle, 0.05) << "rad";  // 3 degrees
  EXPECT_LT(worst_extent, 0.3) << "m";
}

TEST(BoxFit, OnePointGivesAnEmptyRectangle) {
  const BoxFit fit(0.05F, 160);
  const float x[] = {3}, y[] = {4};
  const FittedBox box = fit.fit(x, y, 0, 0);
  EXPECT_EQ(box.extent(0), 0);
  EXPECT_EQ(box.extent(1), 0);
}

TEST(BoxFit, ThinnedSearchKeepsTheExtentsOfAllPoints) {
  const Cloud2 sides = visible_sides(10, 6, 4.5, 1.8, 0.4, 0.02F, 1);
  const FittedBox all = BoxFit(0.05F, 1000).fit(sides.x, sides.y, 0, 0);
  const FittedBox thin = BoxFit(0.05F, 12).fit(sides.x, sides.y, 0, 0);
  EXPECT_LT(quarter_difference(all.heading, thin.heading), 0.12);
  EXPECT_NEAR(std::max(thin.extent(0), thin.extent(1)), 4.5, 0.4);
}

}  // namespace
}  // namespace takt::pipeline
