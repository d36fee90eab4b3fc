// The fusion stage on KITTI's tracking sequences with PointRCNN's detections (AB3DMOT): the CLEAR MOT figures of cars
// at one threshold for all sequences, beside a plain tracker.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "tests/conformance/kitti/tracking_score.h"
#include "tests/pipeline/stages/fusion_fixture.h"
#include "tests/support/test_data.h"

namespace takt::pipeline {
namespace {

using takt::testing::KittiBox;
using takt::testing::KittiFrames;
using takt::testing::MotFigures;

constexpr double kPi = std::numbers::pi;
constexpr const char* kSequences[] = {"0001", "0006", "0012", "0013", "0016", "0018"};
constexpr std::int64_t kPeriod_ns = 100'000'000;
constexpr double kThreshold = 1;        // on the detector's score, for all sequences
constexpr double kLeastOverlap = 0.25;  // of boxes in space, as AB3DMOT has it

Object object_of(const KittiBox& b) {
  Object o;
  o.x = static_cast<float>(b.z);
  o.y = static_cast<float>(-b.x);
  o.z = static_cast<float>(-b.y + b.h / 2);
  o.length = static_cast<float>(b.l);
  o.width = static_cast<float>(b.w);
  o.height = static_cast<float>(b.h);
  o.yaw = static_cast<float>(std::remainder(-b.ry - kPi / 2, 2 * kPi));
  o.score = static_cast<float>(b.score);
  o.object_class = ObjectClass::kVehicle;
  o.flags = kHasPosition | kHasBox;
  return o;
}

KittiBox box_of(const Track& t) {
  KittiBox b;
  b.id = static_cast<int>(t.id);
  b.type = "Car";
  b.x = -t.y;
  b.z = t.x;
  b.y = -t.z + t.height / 2;
  b.l = t.length;
  b.w = t.width;
  b.h = t.height;
  b.ry = std::remainder(-t.yaw - kPi / 2, 2 * kPi);
  return b;
}

// Detections below the threshold are left out, tracks that no detection of the frame supports are not shown.
KittiFrames track(const KittiFrames& detections, double threshold, const std::string& params,
                  const std::array<double, 12>& projection) {
  sensors::Rig rig;
  rig.sensors.emplace_back().kind = sensors::SensorKind::kLidar;
  StageSpec spec;
  spec.type = "fusion_tracker";
  spec.variant = "full";
  spec.name = "fusion";
  spec.rig = &rig;
  spec.inputs.push_back({"lidar", nullptr, 0, kObjectListSchema});
  const auto document = YamlDocument::parse(params, "test.yaml");
  EXPECT_TRUE(document) << document.error().message;
  auto stage = pipeline::testing::make_fusion(spec, read_fusion_model(document->root()));
  EXPECT_TRUE(stage && document->finish());
  const auto list_memory = std::make_unique<pipeline::testing::Aligned<ObjectList>>();
  const auto output_memory = std::make_unique<pipeline::testing::Aligned<TrackList>>();
  ObjectList* const list = &list_memory->payload;
  TrackList* const output = &output_memory->payload;
  KittiFrames tracks(detections.size());
  for (std::size_t frame = 0; frame < detections.size(); ++frame) {
    *list = {};
    for (const KittiBox& b : detections[frame]) {
      if (b.score >= threshold && list->count < kMaxObjects) list->objects[list->count++] = object_of(b);
    }
    const std::int64_t stamp = static_cast<std::int64_t>(frame + 1) * kPeriod_ns;
    transport::ChunkHeader header, output_header;
    header.capture_ns = stamp;
    header.payload_bytes = sizeof(ObjectList);
    header.sources[0] = {stamp, stamp};
    const StageInput input{{&header, reinterpret_cast<const std::byte*>(list)}, false, false};
    StageJob job;
    job.number = frame;
    job.now = {stamp};
    job.inputs = {&input, 1};
    job.output_header = &output_header;
    job.output = reinterpret_cast<std::byte*>(output);
    for (int phase = 0; phase < (*stage)->phases(); ++phase) (*stage)->run(phase, 0, 1, job);
    (*stage)->published();
    for (std::uint32_t i = 0; i < output->count; ++i) {
      KittiBox b = box_of(output->tracks[i]);
      if (output->tracks[i].misses == 0 && project(projection, b)) tracks[frame].push_back(b);
    }
  }
  return tracks;
}

// The plain tracker that ours must beat: a constant-velocity filter for each axis, the Hungarian method on the distance
// of centres within 4 m, birth on the third hit in a row, death on the second miss; boxes are the last detection's.
KittiFrames track_plainly(const KittiFrames& detections, double threshold, const std::array<double, 12>& projection) {
  struct Axis {
    double x = 0, v = 0, pxx = 1, pxv = 0, pvv = 100;
    void predict(double dt) {
      x += dt * v;
      pxx += dt * (2 * pxv + dt * pvv) + 0.01;
      pxv += dt * pvv;
      pvv += 1;
    }
    void update(double z) {
      const double s = pxx + 0.1, kx = pxx / s, kv = pxv / s, r = z - x;
      x += kx * r;
      v += kv * r;
      pvv -= kv * pxv;
      pxv -= kx * pxv;
      pxx -= kx * pxx;
    }
  };
  struct Plain {
    KittiBox box;
    Axis x, z;
    int hits = 1, misses = 0;
  };
  std::vector<Plain> tracks;
  int next_id = 1;
  KittiFrames out(detections.size());
  for (std::size_t frame = 0; frame < detections.size(); ++frame) {
    std::vector<KittiBox> found;
    for (const KittiBox& b : detections[frame]) {
      if (b.score >= threshold) found.push_back(b);
    }
    std::vector<std::vector<double>> cost(tracks.size(), std::vector<double>(found.size()));
    for (std::size_t t = 0; t < tracks.size(); ++t) {
      tracks[t].x.predict(0.1);
      tracks[t].z.predict(0.1);
      for (std::size_t d = 0; d < found.size(); ++d) {
        const double distance = std::hypot(found[d].x - tracks[t].x.x, found[d].z - tracks[t].z.x);
        cost[t][d] = distance < 4 ? distance : std::numeric_limits<double>::infinity();
      }
    }
    const std::vector<int> column = takt::testing::hungarian(cost, 10);
    std::vector<bool> used(found.size(), false);
    for (std::size_t t = 0; t < tracks.size(); ++t) {
      Plain& track = tracks[t];
      if (column[t] < 0) {
        ++track.misses;
        continue;
      }
      const auto d = static_cast<std::size_t>(column[t]);
      used[d] = true;
      track.x.update(found[d].x);
      track.z.update(found[d].z);
      const int id = track.box.id;
      track.box = found[d];
      track.box.id = id;
      ++track.hits;
      track.misses = 0;
    }
    std::erase_if(tracks, [](const Plain& t) { return t.misses >= 2; });
    for (std::size_t d = 0; d < found.size(); ++d) {
      if (used[d]) continue;
      Plain& track = tracks.emplace_back();
      track.box = found[d];
      track.box.id = next_id++;
      track.x.x = found[d].x;
      track.z.x = found[d].z;
    }
    for (const Plain& track : tracks) {
      if (track.hits < 3 || track.misses > 0) continue;
      KittiBox b = track.box;
      b.x = track.x.x;
      b.z = track.z.x;
      if (project(projection, b)) out[frame].push_back(b);
    }
  }
  return out;
}

template <class Track>
MotFigures over_all_sequences(const std::string& root, const char* name, const Track& track) {
  MotFigures all;
  for (const std::string sequence : kSequences) {
    const KittiFrames truth = takt::testing::read_kitti_labels(root + "/label_02/" + sequence + ".txt");
    KittiFrames detections = takt::testing::read_kitti_detections(root + "/det_pointrcnn/Car/" + sequence + ".txt");
    EXPECT_FALSE(truth.empty() || detections.empty()) << sequence;
    detections.resize(truth.size());
    const auto projection = takt::testing::read_kitti_projection(root + "/calib/" + sequence + ".txt");
    EXPECT_GT(projection[0], 0) << sequence;
    all.add(takt::testing::score_cars(truth, track(detections, projection), kLeastOverlap));
  }
  std::printf("%s: MOTA %.4f, MOTP %.4f, %d objects, %d missed, %d false, %d switches\n", name, all.mota(), all.motp(),
              all.objects, all.misses, all.false_positives, all.switches);
  return all;
}

TEST(KittiTracking, CarsAreFollowed) {
  TAKT_TEST_DATA_OR_SKIP(root, "sensors/kitti_tracking_ab3dmot");
  const MotFigures ours =
      over_all_sequences(root, "fusion", [](const KittiFrames& detections, const std::array<double, 12>& projection) {
        return track(detections, kThreshold, "{ confirm_log_odds: 2 }", projection);
      });
  double best_plain = 0;
  for (const double threshold : {0.0, 1.0, 2.0, 3.0}) {
    const std::string name = "plain tracker, threshold " + std::to_string(threshold);
    const MotFigures plain = over_all_sequences(
        root, name.c_str(), [threshold](const KittiFrames& detections, const std::array<double, 12>& projection) {
          return track_plainly(detections, threshold, projection);
        });
    best_plain = std::max(best_plain, plain.mota());
  }
  EXPECT_GE(ours.objects, 4000) << "of all six sequences";
  EXPECT_GE(ours.mota(), 0.80);
  EXPECT_LE(ours.switches, 10);
  EXPECT_GT(ours.mota(), best_plain) << "at whichever threshold suits the plain tracker best";
}

}  // namespace
}  // namespace takt::pipeline
