// The shipped drive through the whole pipeline in lockstep: digests, judgement, hand-over, accounting, quality.

#include <atomic>
#include <map>
#include <thread>

#include "pipeline/assembly/digests.h"
#include "pipeline/report/score.h"
#include "pipeline/report/verdict.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

using Digests = std::map<std::string, std::string>;

Digests digests_of(const pipeline::RunData& data) {
  Digests out;
  for (const pipeline::TopicDigest& topic : data.digests) out[topic.topic] = topic.digest.hex();
  return out;
}

class ShippedDrive : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = pipeline::load_pipeline(kPipeline);
    ASSERT_TRUE(loaded) << loaded.error().message;
    config = new pipeline::PipelineConfig(*std::move(loaded));
    restrict_cores(config->problem, "lidar_detect", 2);
    two_cores = new sched::Schedule(admitted(config->problem));
    // The one-core budget comes back for with_cores: the same table, one worker.
    auto whole = pipeline::load_pipeline(kPipeline);
    ASSERT_TRUE(whole);
    full = new pipeline::PipelineConfig(*std::move(whole));
  }
  static void TearDownTestSuite() {
    delete config;
    delete full;
    delete two_cores;
  }
  static pipeline::RunData run(const sched::Schedule& schedule, transport::Backend backend) {
    auto data = pipeline::run_pipeline(*full, schedule, lockstep(kDrive, backend));
    EXPECT_TRUE(data) << data.error().message;
    return data ? *std::move(data) : pipeline::RunData{};
  }
  static pipeline::PipelineConfig* config;
  static pipeline::PipelineConfig* full;
  static sched::Schedule* two_cores;
};
pipeline::PipelineConfig* ShippedDrive::config = nullptr;
pipeline::PipelineConfig* ShippedDrive::full = nullptr;
sched::Schedule* ShippedDrive::two_cores = nullptr;

TEST_F(ShippedDrive, DigestsAreEqualAcrossRepeatsCoresLoadAndTransports) {
  const pipeline::RunData reference = run(*two_cores, transport::Backend::kLocal);
  const Digests wanted = digests_of(reference);
  ASSERT_EQ(wanted.size(), config->problem.stages.size());
  for (const pipeline::TopicDigest& topic : reference.digests) EXPECT_GT(topic.chunks, 20U) << topic.topic;

  EXPECT_EQ(digests_of(run(*two_cores, transport::Backend::kLocal)), wanted) << "repeat";
  EXPECT_EQ(digests_of(run(*two_cores, transport::Backend::kIceoryxEmbedded)), wanted) << "iceoryx";

  const auto one_core = pipeline::with_cores(full->problem, *two_cores, "lidar_detect", 1);
  ASSERT_TRUE(one_core) << one_core.error().message;
  std::atomic<bool> stop{false};
  std::thread hog([&stop] {
    while (!stop) {
    }
  });
  const Digests loaded = digests_of(run(*one_core, transport::Backend::kLocal));
  stop = true;
  hog.join();
  EXPECT_EQ(loaded, wanted) << "one core under load";
}

TEST_F(ShippedDrive, EqualsTheCheckedInDigestsOfThisClass) {
  pipeline::RunData data = run(*two_cores, transport::Backend::kLocal);
  ASSERT_TRUE(pipeline::compare_digests(data, kDigests));
  for (const pipeline::TopicDigest& topic : data.digests) {
    if (topic.compared.rfind("NOT COMPARED", 0) == 0) GTEST_SKIP() << topic.compared;
    EXPECT_EQ(topic.compared, "equal") << topic.topic;
  }
}

TEST_F(ShippedDrive, EveryChainInstanceIsHeldInLockstep) {
  const pipeline::RunData data = run(*two_cores, transport::Backend::kLocal);
  const pipeline::Judgement judgement = pipeline::judge(data);
  ASSERT_EQ(judgement.chains.size(), config->problem.chains.size());
  for (const pipeline::ChainJudgement& chain : judgement.chains) {
    EXPECT_GT(chain.latency().held, 10U) << chain.name;
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const pipeline::QuantityJudgement& quantity = chain.quantities[q];
      const std::string what = chain.name + " " + sched::name_of(static_cast<sched::Quantity>(q));
      EXPECT_EQ(quantity.void_count, 0U) << what;
      for (const pipeline::Instance& instance : quantity.instances) {
        EXPECT_NE(instance.state, pipeline::InstanceState::kViolated)
            << what << " of sample " << instance.sample << " at output " << instance.output << ": "
            << instance.published.ns << " ns, bound " << (quantity.bound ? quantity.bound->ns : -1);
      }
    }
  }
}

TEST_F(ShippedDrive, NothingMovesNothingIsCopiedNothingIsAllocated) {
  const pipeline::RunData data = run(*two_cores, transport::Backend::kIceoryxEmbedded);
  std::size_t inputs = 0;
  for (const sched::JobRecord& record : data.records) {
    for (std::size_t i = 0; i < record.input_count; ++i) {
      inputs += record.inputs[i].kind != 3 ? 1 : 0;
      EXPECT_EQ(record.inputs[i].moved, 0);
    }
    EXPECT_LT(record.copied_bytes, 64U << 10) << data.problem.stages[record.stage].name << " job " << record.job;
    if (record.hyperperiod >= 1) {
      EXPECT_EQ(record.allocations, 0U) << data.problem.stages[record.stage].name << " job " << record.job;
    }
  }
  EXPECT_GT(inputs, 200U);
#ifndef TAKT_SANITIZED
  EXPECT_TRUE(memory::guard_available()) << "the counters are not linked in: zero would mean nothing";
#endif
}

TEST_F(ShippedDrive, RealTimeViolatesNothing) {
  pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kIceoryxEmbedded);
  options.lockstep = false;
  const auto data = pipeline::run_pipeline(*full, admitted(full->problem), options);
  ASSERT_TRUE(data) << data.error().message;
  const pipeline::Judgement judgement = pipeline::judge(*data);
  EXPECT_EQ(judgement.violated, 0U);
  EXPECT_GT(judgement.held + judgement.void_count, 100U);
  std::printf("held %llu void %llu violated %llu\n", static_cast<unsigned long long>(judgement.held),
              static_cast<unsigned long long>(judgement.void_count),
              static_cast<unsigned long long>(judgement.violated));
  for (const sched::JobRecord& record : data->records) {
    for (std::size_t i = 0; i < record.input_count; ++i) EXPECT_EQ(record.inputs[i].moved, 0);
    EXPECT_LT(record.copied_bytes, 64U << 10);
    if (record.hyperperiod >= 1) {
      EXPECT_EQ(record.allocations, 0U) << data->problem.stages[record.stage].name << " job " << record.job;
    }
  }
}

TEST_F(ShippedDrive, FusedVehiclesMatchTheTruth) {
  const pipeline::RunData data = run(*two_cores, transport::Backend::kLocal);
  const pipeline::Score score = pipeline::score_tracks(data.tracks, data.truth, {});
  std::printf("recall %.3f precision %.3f mean position error %.2f m\n", score.total.recall(), score.total.precision(),
              score.total.mean_position_error_m());
  EXPECT_GT(score.total.truth, 200U);
  EXPECT_GE(score.total.recall(), 0.5);
  EXPECT_GE(score.total.precision(), 0.5);
}

}  // namespace
}  // namespace takt::test
