// The recorded drive (PandaSet 002) through the whole pipeline in lockstep: the same digests however it is run.

#include <unistd.h>
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

TEST(RecordedDrive, DigestsAreEqualAcrossRepeatsCoresLoadAndTransports) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto loaded = pipeline::load_pipeline(project("configs/pipelines/pandaset.yaml"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  pipeline::PipelineConfig config = *loaded;
  const std::string drive =
      (std::filesystem::temp_directory_path() / ("takt-pandaset-" + std::to_string(getpid()) + ".mcap")).string();
  const auto set = tools::open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  const Status converted = tools::convert_pandaset(*set, *config.rig, drive);
  ASSERT_TRUE(converted) << converted.error().message;

  restrict_cores(config.problem, "lidar_detect", 2);
  const sched::Schedule two_cores = admitted(config.problem);
  config.problem = loaded->problem;
  const auto one_core = pipeline::with_cores(config.problem, two_cores, "lidar_detect", 1);
  ASSERT_TRUE(one_core) << one_core.error().message;

  const auto run = [&](const sched::Schedule& schedule, transport::Backend backend) {
    auto data = pipeline::run_pipeline(config, schedule, lockstep(drive, backend));
    EXPECT_TRUE(data) << data.error().message;
    return data ? *std::move(data) : pipeline::RunData{};
  };
  const pipeline::RunData reference = run(two_cores, transport::Backend::kIceoryxEmbedded);
  const auto wanted = digests_of(reference);
  ASSERT_EQ(wanted.size(), 3U);
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
  std::filesystem::remove(drive);

  const pipeline::Judgement judgement = pipeline::judge(reference);
  EXPECT_EQ(judgement.void_count + judgement.violated, 0U);
  EXPECT_GT(judgement.held, 60U);
  const pipeline::Score score = pipeline::score_tracks(reference.tracks, reference.truth, {});
  std::printf("PandaSet: recall %.3f precision %.3f mean position error %.2f m (printed, not judged)\n",
              score.total.recall(), score.total.precision(), score.total.mean_position_error_m());
}

}  // namespace
}  // namespace takt::test
