// Scores fused tracks against ground truth: one-to-one matches on the ground, as the nuScenes detection task matches
// (centre distance, nearest first).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// Which truth counts, and what a match is.
struct ScoreRule {
  ObjectClass object_class = ObjectClass::kVehicle;
  double match_distance_m = 2.0;          // between centres on the ground
  double range_m = 40.0;                  // of the truth from the vehicle, on the ground
  std::uint32_t min_lidar_points = 5;     // truth with fewer points is ignored: neither missed nor false
  Duration truth_gap = milliseconds(60);  // a track list further than this from any truth is not scored
};

struct ClassScore {
  ObjectClass object_class = ObjectClass::kUnknown;
  std::uint64_t truth = 0;            // truth boxes that count, over all scored lists
  std::uint64_t tracks = 0;           // tracks that count: matched or false
  std::uint64_t matched = 0;          // pairs
  std::uint64_t missed = 0;           // truth without a track
  std::uint64_t false_positives = 0;  // tracks without truth, ignored truth included
  std::uint64_t ignored_tracks = 0;   // on ignored truth, or beyond the range
  std::uint64_t id_switches = 0;      // a truth box followed by another track id than the last one that followed it
  double position_error_sum_m = 0;    // over pairs

  [[nodiscard]] double recall() const;                 // matched / truth, 0 without truth
  [[nodiscard]] double precision() const;              // matched / tracks, 0 without tracks
  [[nodiscard]] double mean_position_error_m() const;  // 0 without pairs
};

struct Score {
  std::uint64_t lists = 0;          // track lists that were scored
  std::uint64_t unjudged = 0;       // lists without truth near enough in time
  std::uint64_t fill_lists = 0;     // scored lists before the first pair of the rule's class: the tracker fills up
  ClassScore total;                 // of the rule's class, fill included
  ClassScore after_fill;            // the same without the fill lists
  std::vector<ClassScore> classes;  // vehicle, pedestrian, cyclist, other, each against truth of its class
};

// Truth at the stamp of each list: boxes present in both neighbouring truth frames are interpolated; else the nearest
// frame within truth_gap is carried over by its relative motion to its other neighbour, where that box is there, or by
// its own velocity. (Truth lies in the vehicle frame of its own stamp, so neighbours tell the vehicle's motion, too.)
// A box outside the rule (range, points) is ignored truth: an unmatched track on it is left out. Pairs are formed
// nearest first, ties by track id, then truth id: deterministic. Truth frames ascend by stamp.
Score score_tracks(const std::vector<TrackFrame>& tracks, const std::vector<TruthFrame>& truth,
                   const ScoreRule& rule = {});

// Truth boxes at one instant as above, or empty with `found` = false. Exported for pictures against truth.
struct TruthAt {
  bool found = false;
  std::vector<TruthBox> boxes;
};
TruthAt truth_at(const std::vector<TruthFrame>& truth, SensorTime stamp, Duration gap);

}  // namespace takt::pipeline
