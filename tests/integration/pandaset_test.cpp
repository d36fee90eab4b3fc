// The recorded drive (PandaSet 002) through the whole pipeline in lockstep: the same digests however it is run.

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "pipeline/report/score.h"
#include "pipeline/report/verdict.h"
#include "tests/integration/shipped.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset_to_mcap.h"

namespace takt::test {
namespace {

std::map<std::string, std::string> digests_of(const pipeline::RunData& data) {
  std::map<std::string, std::string> out;
  for (const pipeline::TopicDigest& topic : data.digests) out[topic.topic] = topic.digest.hex();
  return out;
}

// The drive as a log, made once for all tests.
class RecordedDrive : public ::testing::Test {
 protected:
  static void TearDownTestSuite() {
    if (!drive_.empty()) std::filesystem::remove(drive_);
    drive_.clear();
  }
  static void convert(const std::string& folder, const sensors::Rig& rig) {
    if (!drive_.empty()) return;
    const auto set = tools::open_pandaset(folder);
    ASSERT_TRUE(set) << set.error().message;
    drive_ =
        (std::filesystem::temp_directory_path() / ("takt-pandaset-" + std::to_string(getpid()) + ".mcap")).string();
    const Status converted = tools::convert_pandaset(*set, rig, drive_);
    ASSERT_TRUE(converted) << converted.error().message;
  }

  // In lockstep with `stage` on two cores and on one, under load, through both transports. The first of the runs.
  static pipeline::RunData equal_runs(const pipeline::PipelineConfig& loaded, const std::string& stage) {
    pipeline::PipelineConfig config = loaded;
    restrict_cores(config.problem, stage, 2);
    const sched::Schedule two_cores = admitted(config.problem);
    config.problem = loaded.problem;
    const auto one_core = pipeline::with_cores(config.problem, two_cores, stage, 1);
    EXPECT_TRUE(one_core) << one_core.error().message;
    if (!one_core) return {};

    const auto run = [&](const sched::Schedule& schedule, transport::Backend backend) {
      auto data = pipeline::run_pipeline(config, schedule, lockstep(drive_, backend));
      EXPECT_TRUE(data) << data.error().message;
      return data ? *std::move(data) : pipeline::RunData{};
    };
    pipeline::RunData reference = run(two_cores, transport::Backend::kIceoryxEmbedded);
    const auto wanted = digests_of(reference);
    EXPECT_EQ(wanted.size(), 3U);
    for (const pipeline::TopicDigest& topic : reference.digests) EXPECT_GE(topic.chunks, 39U) << topic.topic;
    EXPECT_EQ(digests_of(run(two_cores, transport::Backend::kLocal)), wanted) << "local transport";
    std::atomic<bool> stop{false};
    std::thread hog([&stop] {
      while (!stop) {
      }
    });
    EXPECT_EQ(digests_of(run(*one_core, transport::Backend::kLocal)), wanted) << "one core under load";
    stop = true;
    hog.join();
    return reference;
  }

  static void print_score(const char* what, const pipeline::RunData& data) {
    const pipeline::Score score = pipeline::score_tracks(data.tracks, data.truth, {});
    std::printf("%s: recall %.3f precision %.3f mean position error %.2f m (printed, not judged)\n", what,
                score.total.recall(), score.total.precision(), score.total.mean_position_error_m());
  }

  static inline std::string drive_;
};

TEST_F(RecordedDrive, DigestsAreEqualAcrossRepeatsCoresLoadAndTransports) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto loaded = pipeline::load_pipeline(project("configs/pipelines/pandaset.yaml"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  convert(folder, *loaded->rig);
  const pipeline::RunData reference = equal_runs(*loaded, "lidar_detect");
  const pipeline::Judgement judgement = pipeline::judge(reference);
  EXPECT_EQ(judgement.void_count + judgement.violated, 0U);
  EXPECT_GT(judgement.held, 60U);
  print_score("PandaSet", reference);
}

TEST_F(RecordedDrive, ANetworkGivenByItsPathDetectsWithEqualDigests) {
  TAKT_TEST_DATA_OR_SKIP(data, "sensors/pandaset_002");
  const std::string folder = data, model = data + "/../../models/fastestdet/FastestDet.onnx";
  ASSERT_TRUE(std::filesystem::exists(model)) << model;
  const std::string pipeline_file = project("configs/pipelines/pandaset_fastestdet.yaml");
  const auto without = pipeline::load_pipeline(pipeline_file);
  ASSERT_FALSE(without) << "its weights are not part of takt";
  EXPECT_EQ(without.error().code, Code::kConfiguration);
  const auto typo = pipeline::load_pipeline(pipeline_file, {{"camera_detct", model}});
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message.find("did you mean 'camera_detect'?"), std::string::npos) << typo.error().message;

  const auto loaded = pipeline::load_pipeline(pipeline_file, {{"camera_detect", model}});
  ASSERT_TRUE(loaded) << loaded.error().message;
  convert(folder, *loaded->rig);
  const pipeline::RunData reference = equal_runs(*loaded, "camera_detect");
  const pipeline::Judgement judgement = pipeline::judge(reference);
  EXPECT_EQ(judgement.void_count + judgement.violated, 0U);
  ASSERT_EQ(reference.plans.size(), 2U);
  EXPECT_EQ(reference.plans[1].model, "fusion");
  for (const pipeline::PlanInfo& plan : reference.plans) {
    EXPECT_GE(plan.steps.front().runs, 40U) << plan.model;
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.01 * static_cast<double>(plan.lower_bound)) << plan.model;
  }
  // Cars on a dense street: every picture shows some.
  std::size_t frames = 0, cars = 0;
  for (const pipeline::ObjectFrame& frame : reference.objects) {
    if (reference.problem.stages[frame.stage].name != "camera_detect") continue;
    ++frames;
    const pipeline::ObjectList list = frame.list.get();
    for (std::uint32_t i = 0; i < list.count; ++i) {
      cars += list.objects[i].object_class == pipeline::ObjectClass::kVehicle ? 1 : 0;
    }
  }
  EXPECT_GE(frames, 39U);
  EXPECT_GE(cars, 3 * frames);
  std::printf("PandaSet with FastestDet: %.1f cars a picture\n",
              static_cast<double>(cars) / static_cast<double>(frames));
  print_score("PandaSet with FastestDet", reference);
}

// The counters of a plan by name.
const pipeline::PlanCounter& counter(const pipeline::PlanInfo& plan, const std::string& name) {
  static const pipeline::PlanCounter kNone;
  const auto found = std::find_if(plan.counters.begin(), plan.counters.end(),
                                  [&](const pipeline::PlanCounter& c) { return c.name == name; });
  EXPECT_NE(found, plan.counters.end()) << name;
  return found == plan.counters.end() ? kNone : *found;
}

// Its weights are random: what it finds is discarded, what it counts and keeps is looked at.
TEST_F(RecordedDrive, ALidarNetworkRunsAtRealDensitiesWithEqualDigests) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto loaded = pipeline::load_pipeline(project("configs/pipelines/pandaset_lidar_network.yaml"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  convert(folder, *loaded->rig);
  const pipeline::RunData reference = equal_runs(*loaded, "lidar_detect");
  const pipeline::Judgement judgement = pipeline::judge(reference);
  EXPECT_EQ(judgement.void_count + judgement.violated, 0U);
  const auto at = std::find_if(reference.plans.begin(), reference.plans.end(), [&](const pipeline::PlanInfo& plan) {
    return reference.problem.stages[plan.stage].name == "lidar_detect";
  });
  ASSERT_NE(at, reference.plans.end());
  const pipeline::PlanInfo& plan = *at;
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.01 * static_cast<double>(plan.lower_bound));
  EXPECT_GE(plan.counted_jobs, 39U);
  for (const pipeline::PlanCounter& c : plan.counters) {
    std::printf("%-22s most %7d of %7lld, mean %.1f\n", c.name.c_str(), c.maximum, static_cast<long long>(c.capacity),
                static_cast<double>(c.total) / static_cast<double>(plan.counted_jobs));
    EXPECT_EQ(c.latest.size(), plan.counted_jobs) << c.name;
    if (c.capacity > 0) {
      EXPECT_LE(c.maximum, c.capacity) << c.name;
    }
  }
  EXPECT_GT(counter(plan, "raw_count").total, static_cast<std::int64_t>(plan.counted_jobs) * 60'000);
  // Everything that was seen a sweep ago is there again, the vehicle's own motion taken out.
  EXPECT_GT(counter(plan, "all_count").maximum, counter(plan, "seen_count").maximum * 19 / 10);
  EXPECT_EQ(counter(plan, "forgotten").total, 0);
  EXPECT_GT(counter(plan, "pillars").maximum, 3000);
  EXPECT_EQ(counter(plan, "best_count").maximum, 200);
  EXPECT_GT(counter(plan, "boxes_dropped").total, 0);
  for (const pipeline::ObjectFrame& frame : reference.objects) {
    if (reference.problem.stages[frame.stage].name == "lidar_detect") {
      EXPECT_EQ(frame.list.get().count, 0U);
    }
  }
}

}  // namespace
}  // namespace takt::test
