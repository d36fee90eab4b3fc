#include "pipeline/report/score.h"

#include <gtest/gtest.h>

namespace takt::pipeline {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TruthBox box(std::uint32_t id, double x, double y, std::uint32_t points = 20,
             ObjectClass object_class = ObjectClass::kVehicle) {
  TruthBox b;
  b.id = id;
  b.object_class = object_class;
  b.x = x;
  b.y = y;
  b.lidar_points = points;
  return b;
}
TruthFrame truth(std::int64_t ms, std::vector<TruthBox> boxes) { return {{ms * kMs}, std::move(boxes)}; }

struct T {
  std::uint32_t id;
  float x, y;
  ObjectClass object_class = ObjectClass::kVehicle;
};
TrackFrame list(std::int64_t ms, const std::vector<T>& tracks) {
  TrackList list;
  list.stamp_ns = ms * kMs;
  for (const T& t : tracks) {
    Track& out = list.tracks[list.count++];
    out.id = t.id;
    out.x = t.x;
    out.y = t.y;
    out.object_class = t.object_class;
  }
  TrackFrame frame;
  frame.list = list;
  return frame;
}

TEST(Score, CountsPairsMissesAndFalsePositives) {
  const Score s = score_tracks({list(0, {{1, 10, 0}, {2, 20, 1}, {3, 30, 10}})},
                               {truth(0, {box(7, 10.5, 0), box(8, 20, 0), box(9, 5, 5)})});
  EXPECT_EQ(s.lists, 1U);
  EXPECT_EQ(s.total.truth, 3U);
  EXPECT_EQ(s.total.matched, 2U);
  EXPECT_EQ(s.total.missed, 1U);
  EXPECT_EQ(s.total.false_positives, 1U);
  EXPECT_DOUBLE_EQ(s.total.recall(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.total.precision(), 2.0 / 3);
  EXPECT_NEAR(s.total.mean_position_error_m(), 0.75, 1e-6);
}

TEST(Score, MatchesOneToOneNearestFirst) {
  // Both tracks lie near one box: one of them is false.
  const Score s = score_tracks({list(0, {{1, 10, 0.5F}, {2, 10, 0.2F}})}, {truth(0, {box(7, 10, 0)})});
  EXPECT_EQ(s.total.matched, 1U);
  EXPECT_EQ(s.total.false_positives, 1U);
  EXPECT_NEAR(s.total.mean_position_error_m(), 0.2, 1e-6);
}

TEST(Score, DistanceOfAMatchIsInclusiveAndBounded) {
  const auto at = [](float x) {
    return score_tracks({list(0, {{1, x, 0}})}, {truth(0, {box(7, 10, 0)})}).total.matched;
  };
  EXPECT_EQ(at(12.0F), 1U);
  EXPECT_EQ(at(12.01F), 0U);
}

TEST(Score, TracksOnIgnoredTruthAreNeitherRightNorWrong) {
  const Score s = score_tracks({list(0, {{1, 10, 0}, {2, 39.5F, 0}, {3, 60, 0}})},
                               {truth(0, {box(7, 10, 0, 4), box(8, 40.5, 0), box(9, 20, 0)})});
  EXPECT_EQ(s.total.truth, 1U);  // 7 has too few points, 8 is too far
  EXPECT_EQ(s.total.ignored_tracks, 3U);
  EXPECT_EQ(s.total.false_positives, 0U);
  EXPECT_EQ(s.total.tracks, 0U);
  EXPECT_EQ(s.total.precision(), 0);
}

TEST(Score, SecondTrackOnIgnoredTruthIsFalse) {
  const Score s = score_tracks({list(0, {{1, 10, 0}, {2, 10, 0.5F}})}, {truth(0, {box(7, 10, 0, 4)})});
  EXPECT_EQ(s.total.ignored_tracks, 1U);
  EXPECT_EQ(s.total.false_positives, 1U);
}

TEST(Score, CountsEachClassAgainstItsOwnTruth) {
  const Score s =
      score_tracks({list(0, {{1, 10, 0, ObjectClass::kPedestrian}, {2, 20, 0}})},
                   {truth(0, {box(7, 10, 0, 20, ObjectClass::kPedestrian), box(8, 20, 0, 20, ObjectClass::kCyclist)})});
  EXPECT_EQ(s.total.false_positives, 1U);  // a vehicle track on a cyclist
  EXPECT_EQ(s.classes[1].object_class, ObjectClass::kPedestrian);
  EXPECT_EQ(s.classes[1].matched, 1U);
  EXPECT_EQ(s.classes[2].missed, 1U);
}

TEST(Score, CountsIdSwitches) {
  const std::vector<TruthFrame> frames{truth(0, {box(7, 10, 0)}), truth(100, {box(7, 10, 0)}),
                                       truth(200, {box(7, 10, 0)})};
  EXPECT_EQ(score_tracks({list(0, {{1, 10, 0}}), list(100, {}), list(200, {{1, 10, 0}})}, frames).total.id_switches,
            0U);
  EXPECT_EQ(
      score_tracks({list(0, {{1, 10, 0}}), list(100, {{2, 10, 0}}), list(200, {{1, 10, 0}})}, frames).total.id_switches,
      2U);
}

TEST(Score, InterpolatesTruthBetweenFrames) {
  // The box comes nearer by 4 m in 100 ms, vehicle frame.
  const std::vector<TruthFrame> frames{truth(0, {box(7, 20, 0)}), truth(100, {box(7, 16, 2)})};
  const TruthAt at = truth_at(frames, {30 * kMs}, milliseconds(60));
  ASSERT_TRUE(at.found);
  EXPECT_NEAR(at.boxes[0].x, 18.8, 1e-9);
  EXPECT_NEAR(at.boxes[0].y, 0.6, 1e-9);
  const TruthAt beyond = truth_at(frames, {150 * kMs}, milliseconds(60));
  ASSERT_TRUE(beyond.found);
  EXPECT_NEAR(beyond.boxes[0].x, 14, 1e-9);
  const TruthAt first = truth_at(frames, {-50 * kMs}, milliseconds(60));
  ASSERT_TRUE(first.found);
  EXPECT_NEAR(first.boxes[0].x, 22, 1e-9);
}

TEST(Score, CarriesALoneBoxByItsVelocity) {
  TruthBox moving = box(7, 20, 0);
  moving.vx = 10;
  const TruthAt at = truth_at({truth(0, {moving})}, {50 * kMs}, milliseconds(60));
  ASSERT_TRUE(at.found);
  EXPECT_NEAR(at.boxes[0].x, 20.5, 1e-9);
}

TEST(Score, ListsFarFromTruthAreNotJudged) {
  const std::vector<TruthFrame> frames{truth(0, {box(7, 10, 0)})};
  const Score s = score_tracks({list(61, {{1, 90, 0}}), list(-61, {}), list(60, {{1, 10, 0}})}, frames);
  EXPECT_EQ(s.unjudged, 2U);
  EXPECT_EQ(s.lists, 1U);
  EXPECT_EQ(score_tracks({list(0, {{1, 10, 0}})}, {}).unjudged, 1U);
}

TEST(Score, FillIsReportedApart) {
  const std::vector<TruthFrame> frames{truth(0, {box(7, 10, 0)}), truth(100, {box(7, 10, 0)})};
  const Score s = score_tracks({list(0, {}), list(50, {}), list(100, {{1, 10, 0}})}, frames);
  EXPECT_EQ(s.fill_lists, 2U);
  EXPECT_DOUBLE_EQ(s.total.recall(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(s.after_fill.recall(), 1.0);
}

}  // namespace
}  // namespace takt::pipeline
