// What is replayed and how: windows, excluded and renamed sensors, stalls, clocks. Lockstep, in process.

#include <gmock/gmock.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "pipeline/assembly/fault_plan.h"
#include "pipeline/report/report.h"
#include "pipeline/report/run_folder.h"
#include "pipeline/report/verdict.h"
#include "scheduler/analysis/modes.h"
#include "tests/integration/rewritten_log.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

using ::testing::HasSubstr;
using Digests = std::map<std::string, std::string>;

Digests digests_of(const pipeline::RunData& data) {
  Digests out;
  for (const pipeline::TopicDigest& topic : data.digests) out[topic.topic] = topic.digest.hex();
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// Hands every message on, but sleeps before some.
class StallingLog final : public sensors::LogReader {
 public:
  StallingLog(std::unique_ptr<sensors::LogReader> log, std::uint64_t every, std::chrono::milliseconds how_long)
      : log_(std::move(log)), every_(every), how_long_(how_long) {}
  [[nodiscard]] const std::vector<sensors::LogChannel>& channels() const override { return log_->channels(); }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override { return log_->span(); }
  Result<std::optional<sensors::LogMessage>> next() override {
    if (++calls_ % every_ == 0) std::this_thread::sleep_for(how_long_);
    return log_->next();
  }
  void select(const std::vector<std::string>& topics) override { log_->select(topics); }
  void rewind() override { log_->rewind(); }
  [[nodiscard]] const std::vector<sensors::LogProblem>& problems() const override { return log_->problems(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return log_->notes(); }

 private:
  std::unique_ptr<sensors::LogReader> log_;
  std::uint64_t every_, calls_ = 0;
  std::chrono::milliseconds how_long_;
};
auto stall(std::uint64_t every, std::chrono::milliseconds how_long) {
  return [=](std::unique_ptr<sensors::LogReader> log) -> std::unique_ptr<sensors::LogReader> {
    return std::make_unique<StallingLog>(std::move(log), every, how_long);
  };
}

class Replay : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = pipeline::load_pipeline(kPipeline);
    ASSERT_TRUE(loaded) << loaded.error().message;
    config = new pipeline::PipelineConfig(*std::move(loaded));
    schedule = new sched::Schedule(admitted(config->problem));
  }
  static void TearDownTestSuite() {
    delete config;
    delete schedule;
  }
  void SetUp() override { options = lockstep(kDrive, transport::Backend::kLocal); }
  [[nodiscard]] pipeline::RunData run(const pipeline::PipelineConfig& with) const {
    auto data = pipeline::run_pipeline(with, *schedule, options);
    EXPECT_TRUE(data) << data.error().message;
    return data ? *std::move(data) : pipeline::RunData{};
  }
  [[nodiscard]] pipeline::RunData run() const { return run(*config); }
  [[nodiscard]] Error error() const {
    const auto data = pipeline::run_pipeline(*config, *schedule, options);
    EXPECT_FALSE(data);
    return data ? Error{} : data.error();
  }
  [[nodiscard]] static std::size_t stage(const std::string& name) {
    std::size_t s = 0;
    while (config->stages[s].name != name) ++s;
    return s;
  }
  // A changed copy of the drive, gone with the test.
  [[nodiscard]] std::string changed(
      const std::function<void(const RewrittenMessage&, std::vector<RewrittenMessage>&)>& edit) const {
    const std::string path = std::string(TAKT_BINARY_DIR) + "/replay-test-" + std::to_string(::getpid()) + ".mcap";
    const Status written = rewrite_log(kDrive, path, edit);
    EXPECT_TRUE(written) << written.error().message;
    return path;
  }
  void TearDown() override {
    std::filesystem::remove(std::string(TAKT_BINARY_DIR) + "/replay-test-" + std::to_string(::getpid()) + ".mcap");
  }

  static pipeline::PipelineConfig* config;
  static sched::Schedule* schedule;
  pipeline::RunOptions options;
};
pipeline::PipelineConfig* Replay::config = nullptr;
sched::Schedule* Replay::schedule = nullptr;

TEST_F(Replay, AStallOfTheFeederChangesNothingInLockstep) {
  const pipeline::RunData reference = run();
  EXPECT_THAT(joined(reference.environment.warnings), ::testing::Not(HasSubstr("clock check")));
  options.through = stall(40, std::chrono::milliseconds(60));
  EXPECT_EQ(digests_of(run()), digests_of(reference));
}

// A real run in which a stage overruns each of its jobs and is given up, another one skips after each, a third one is
// discarded now and then, and the feeder stalls: its run folder alone gives the same bytes again.
TEST_F(Replay, ARunFullOfMissesIsReproducedFromItsFolder) {
  pipeline::PipelineConfig with = *config;
  sched::Schedule table = *schedule;
  const std::size_t camera = stage("camera_detect"), lidar = stage("lidar_detect");
  with.problem.stages[camera].overrun = sched::OverrunPolicy::kAbort;
  with.problem.stages[lidar].overrun = sched::OverrunPolicy::kSkipNext;
  // Budgets that no job can keep; the slots stay.
  for (const std::size_t s : {camera, lidar}) table.choices[s].budget.time = nanoseconds(1);
  options.lockstep = false;
  options.max_hyperperiods = 15;
  options.through = stall(150, std::chrono::milliseconds(250));
  auto wild = pipeline::run_pipeline(with, table, options);
  ASSERT_TRUE(wild) << wild.error().message;
  std::map<sched::Reason, int> reasons;
  int aborted = 0, published = 0;
  for (const sched::JobRecord& record : wild->records) {
    ++reasons[record.reason];
    aborted += (record.flags & sched::kFlagAborted) != 0 ? 1 : 0;
    published += record.published;
  }
  EXPECT_GT(aborted, 0);
  EXPECT_GT(reasons[sched::Reason::kSkipNext], 0);
  EXPECT_GT(published, 0);

  const std::string folder = std::string(TAKT_BINARY_DIR) + "/reproduce-test-" + std::to_string(::getpid());
  wild->run_folder = folder;
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(pipeline::write_run(*wild, folder));
  const auto before = pipeline::load_run(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(before) << before.error().message;

  pipeline::RunOptions again = lockstep(kDrive, transport::Backend::kLocal);
  again.reproduce = &*before;
  auto repeated = pipeline::run_pipeline(with, before->schedule, again);
  ASSERT_TRUE(repeated) << repeated.error().message;
  EXPECT_EQ(digests_of(*repeated), digests_of(*wild));
  ASSERT_EQ(repeated->records.size(), wild->records.size());
  for (std::size_t i = 0; i < wild->records.size(); ++i) {
    const sched::JobRecord &a = wild->records[i], &b = repeated->records[i];
    EXPECT_EQ(a.job_class, b.job_class) << config->stages[a.stage].name << ' ' << a.job;
    EXPECT_EQ(a.reason, b.reason) << config->stages[a.stage].name << ' ' << a.job;
    EXPECT_EQ(a.output, b.output) << config->stages[a.stage].name << ' ' << a.job;
  }
  again.view.start = "1.0";
  EXPECT_FALSE(pipeline::run_pipeline(with, before->schedule, again));
}

// Real time: while the feeder stands still samples are missing; whatever is used later is the same sample as ever.
TEST_F(Replay, AStallLeavesNoLastingDelayInRealTime) {
  const pipeline::RunData reference = run();
  std::map<std::pair<std::uint32_t, std::uint64_t>, const sched::JobRecord*> wanted;
  for (const sched::JobRecord& record : reference.records) wanted[{record.stage, record.job}] = &record;

  options.lockstep = false;
  options.through = stall(120, std::chrono::milliseconds(400));  // the queues hold less than that
  const pipeline::RunData stalled = run();
  std::size_t compared = 0, missing = 0;
  for (const sched::JobRecord& record : stalled.records) {
    const auto other = wanted.find({record.stage, record.job});
    if (other == wanted.end()) continue;
    for (std::size_t i = 0; i < record.input_count; ++i) {
      if (!config->problem.stages[record.stage].inputs[i].from_sensor) continue;
      const sched::InputRecord &got = record.inputs[i], &want = other->second->inputs[i];
      if (got.kind == 3) {
        missing += got.reason == sched::Reason::kFeederLate ? 1 : 0;
        continue;
      }
      ++compared;
      EXPECT_EQ(got.job, want.job) << config->stages[record.stage].name << " job " << record.job;
      EXPECT_EQ(got.capture_ns, want.capture_ns);
    }
  }
  EXPECT_GT(missing, 0U) << "the stall was meant to show";
  EXPECT_GT(compared, 20U);
}

TEST_F(Replay, AWindowPlaysOnlyWhatArrivesInIt) {
  const pipeline::RunData whole = run();
  options.view.start = "1";
  options.view.end = "2.0";
  const pipeline::RunData part = run();
  const std::int64_t first = whole.sensor_from_table.to_origin.ns;
  std::size_t used = 0;
  for (const sched::JobRecord& record : part.records) {
    for (std::size_t i = 0; i < record.input_count; ++i) {
      if (!config->problem.stages[record.stage].inputs[i].from_sensor || record.inputs[i].kind == 3) continue;
      ++used;
      EXPECT_GE(record.inputs[i].arrival_ns, first + 900'000'000);
      EXPECT_LE(record.inputs[i].arrival_ns, first + 2'200'000'000);
    }
  }
  EXPECT_GT(used, 50U);
  EXPECT_LT(part.dispatch.hyperperiods_run, whole.dispatch.hyperperiods_run);

  options.view.start = "99";
  options.view.end = "";
  EXPECT_EQ(error().code, Code::kUsage);
  EXPECT_THAT(error().message, HasSubstr("the log lasts"));
  options.view.start = "soon";
  EXPECT_EQ(error().code, Code::kUsage);
}

TEST_F(Replay, PassesOverTheSameWindowAreEqual) {
  options.view.start = "0.5";
  options.view.end = "1.5";
  EXPECT_EQ(digests_of(run()), digests_of(run())) << "state does not survive a pass";
}

TEST_F(Replay, AnExcludedSensorIsMissingAndTheOthersAreUntouched) {
  const Digests reference = digests_of(run());
  options.view.exclude = {"/radar/*"};
  const pipeline::RunData data = run();
  const Digests digests = digests_of(data);
  EXPECT_EQ(digests.at("/stage/camera_detect"), reference.at("/stage/camera_detect"));
  EXPECT_EQ(digests.at("/stage/lidar_detect"), reference.at("/stage/lidar_detect"));
  EXPECT_NE(digests.at("/stage/fusion"), reference.at("/stage/fusion"));
  const std::size_t radar = stage("radar_detect"), fusion = stage("fusion");
  std::size_t fused = 0;
  for (const sched::JobRecord& record : data.records) {
    if (record.stage == radar) {
      EXPECT_EQ(record.job_class, sched::JobClass::kMissing);
      EXPECT_EQ(record.reason, sched::Reason::kNoSample);
    }
    fused += record.stage == fusion && record.published != 0 ? 1 : 0;
  }
  EXPECT_GT(fused, 20U);
  // The mask of each list says which input was not there.
  std::size_t radar_input = 0;
  while (config->problem.stages[fusion].inputs[radar_input].name != "radar") ++radar_input;
  for (const pipeline::TrackFrame& frame : data.tracks) {
    EXPECT_NE(frame.list.get().missing_inputs & (1U << radar_input), 0U) << "job " << frame.job;
  }
  EXPECT_THAT(joined(data.schedule_notes), HasSubstr("/radar/front/returns: left out"));

  options.view = {};
  options.view.topics = {"/nothing"};
  EXPECT_EQ(error().code, Code::kUsage);
  EXPECT_THAT(error().message, HasSubstr("--topics /nothing: no sensor of rig "));
  options.view.topics = {"/camera/front/image", "/radar/frnt/returns"};  // each must match, not one of them
  EXPECT_THAT(error().message, HasSubstr("has such a topic; did you mean '/radar/front/returns'?"));
  options.view.topics.clear();
  options.view.exclude = {"/radar/frnt/returns"};
  EXPECT_EQ(error().code, Code::kUsage);
  EXPECT_THAT(error().message, HasSubstr("--exclude /radar/frnt/returns: no sensor of rig "));
}

TEST_F(Replay, ARenamedTopicGivesTheSameBytes) {
  const Digests reference = digests_of(run());
  options.log_path = changed([](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
    out.push_back(m);
    if (m.topic == "/lidar/top/points") out.back().topic = "/velodyne";
  });
  EXPECT_THAT(error().message, HasSubstr("/lidar/top/points"));
  options.view.remap = {{"/velodyne", "/lidar/top/points"}};
  EXPECT_EQ(digests_of(run()), reference);
  options.view.remap = {{"/velo", "/lidar/top/points"}};
  EXPECT_EQ(error().code, Code::kUsage);
}

TEST_F(Replay, ADeviceClockIsMappedAndRecorded) {
  constexpr std::int64_t kBoot = 1'000'000'000'000;  // the radar counts from its own start
  options.log_path = changed([](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
    out.push_back(m);
    if (m.topic == "/radar/front/returns") out.back().capture_ns += kBoot;
  });
  const pipeline::RunData wrong = run();
  EXPECT_THAT(joined(wrong.environment.warnings), HasSubstr("clock check, capture after arrival: radar_front"));
  EXPECT_THAT(joined(wrong.environment.warnings), HasSubstr("ahead of the recorder's by at least 99"));

  pipeline::PipelineConfig mapped = *config;
  auto rig = std::make_shared<sensors::Rig>(*config->rig);
  const std::size_t radar = *rig->find("radar_front");
  rig->sensors[radar].device_clock = true;
  mapped.rig = rig;
  const pipeline::RunData data = run(mapped);
  EXPECT_THAT(joined(data.environment.warnings), ::testing::Not(HasSubstr("clock check")));
  EXPECT_THAT(joined(data.schedule_notes), HasSubstr("radar_front: stamps mapped from the device's clock"));
  const Duration error = data.sources[radar].stamp.error;
  EXPECT_GT(error.ns, 0);
  for (const pipeline::ChainJudgement& chain : pipeline::judge(data).chains) {
    for (const pipeline::QuantityJudgement& quantity : chain.quantities) {
      const bool of_radar = chain.name.find("radar") != std::string::npos;
      EXPECT_EQ(quantity.stamp_error, of_radar ? error : Duration{}) << chain.name;
      EXPECT_EQ(quantity.violated, 0U) << chain.name;
    }
  }
  const std::size_t radar_stage = stage("radar_detect");
  options.log_path = kDrive;
  const pipeline::RunData reference = run();
  std::size_t compared = 0;
  for (std::size_t i = 0; i < std::min(data.records.size(), reference.records.size()); ++i) {
    const sched::InputRecord &got = data.records[i].inputs[0], &want = reference.records[i].inputs[0];
    if (data.records[i].stage != radar_stage || got.kind == 3) continue;
    ++compared;
    EXPECT_EQ(got.job, want.job);
    EXPECT_NEAR(static_cast<double>(got.capture_ns - want.capture_ns) * 1e-6, 0, 2) << "within the jitter, ms";
  }
  EXPECT_GT(compared, 20U);
}

TEST_F(Replay, AKnownOffsetMovesStampsAndArrivalsFollow) {
  options.log_path = changed([](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
    out.push_back(m);
    if (m.topic == "/radar/front/returns") out.back().capture_ns -= 12'000'000;
  });
  pipeline::PipelineConfig corrected = *config;
  auto rig = std::make_shared<sensors::Rig>(*config->rig);
  rig->sensors[*rig->find("radar_front")].offset = milliseconds(12);
  corrected.rig = rig;
  const Digests digests = digests_of(run(corrected));
  options.log_path = kDrive;
  EXPECT_EQ(digests, digests_of(run()));
}

TEST_F(Replay, OneMessageAtTimeZeroDoesNotStretchTheRun) {
  options.log_path = changed([](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
    out.push_back(m);
    if (m.topic == "/camera/front/image" && m.index == 20) {
      out.back().capture_ns += std::int64_t{54} * 365 * 86'400 * 1'000'000'000;
    }
  });
  const pipeline::RunData data = run();
  EXPECT_LT(data.dispatch.hyperperiods_run, 60U);
  EXPECT_THAT(joined(data.environment.warnings), HasSubstr("clock check, far stamp: camera_front"));
}

TEST(ReplayTime, SecondsAndIso) {
  const SensorTime origin{1'000};
  EXPECT_EQ(pipeline::parse_replay_time("1.5", origin)->ns, 1'500'001'000);
  EXPECT_EQ(pipeline::parse_replay_time("2024-05-01T12:00:00Z", origin)->ns, 1'714'564'800'000'000'000);
  EXPECT_EQ(pipeline::parse_replay_time("2024-05-01T12:00:00.25", origin)->ns, 1'714'564'800'250'000'000);
  for (const char* text : {"", "now", "1s", "2024-05-01T12:00", "2024-05-01T12:00:00+02", "nan", "1e300"}) {
    EXPECT_FALSE(pipeline::parse_replay_time(text, origin)) << text;
  }
}

// Pause and step hold the feeder; nothing else knows of it.
TEST_F(Replay, PausedAndSteppedLockstepGivesTheSameBytes) {
  const pipeline::RunData reference = run();
  pipeline::ReplayGate gate;
  gate.pause();
  options.gate = &gate;
  std::thread person([&gate] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gate.step();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.resume();
  });
  const pipeline::RunData stepped = run();
  person.join();
  EXPECT_EQ(digests_of(stepped), digests_of(reference));
}

// A stage that has two cores in one mode and one in the other: whether its next step fits is asked of the steps as they
// are on so many. On one core none of them would, so that each job is given up there.
TEST(ReplayModes, AJobIsGivenUpByTheStepsOfItsGang) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  auto loaded = pipeline::load_pipeline(project("configs/pipelines/sim_modes.yaml"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  pipeline::PipelineConfig config = *std::move(loaded);
  sched::ModeSet& set = *config.modes;
  std::size_t lidar = 0;
  while (config.problem.stages[lidar].name != "lidar_detect") ++lidar;
  const auto change = [](sched::Problem& problem) {
    for (sched::Stage& stage : problem.stages) {
      if (stage.name != "lidar_detect") continue;
      stage.overrun = sched::OverrunPolicy::kAbort;
      stage.degraded_mode.clear();
      for (sched::Budget& budget : stage.variants[0].budgets) {
        budget.steps.assign(6, budget.cores == 1 ? seconds(1) : nanoseconds(1));
      }
    }
  };
  change(config.problem);
  std::vector<sched::Answer> answers;
  for (sched::ModeSpec& mode : set.modes) {
    change(mode.problem);
    sched::Problem problem = mode.problem;
    sched::prefer_cores(problem, mode.name == "day" ? 2 : 1);
    answers.push_back(sched::synthesize(problem, {}));
    ASSERT_EQ(answers.back().verdict, sched::Verdict::kFeasible) << answers.back().reason;
  }
  const sched::ModesAnswer judged = sched::judge_modes(set, answers);
  ASSERT_EQ(judged.verdict, sched::Verdict::kFeasible) << sched::explain_modes(set, answers, judged);
  const auto modes = sched::admitted_tables(config.problem, set, answers, judged);
  ASSERT_TRUE(modes) << modes.error().message;
  ASSERT_EQ((*modes)[0].schedule.choices[lidar].budget.cores, 2);
  ASSERT_EQ((*modes)[1].schedule.choices[lidar].budget.cores, 1);
  const auto faults =
      pipeline::parse_faults("{name: f, what: w, faults: [{process: mode, mode: lean, at_s: 0.95}], expect: {exit: 0}}",
                             "f.yaml", config.problem, *config.rig, {"day", "lean", "coasting"});
  ASSERT_TRUE(faults) << faults.error().message;
  pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
  options.lockstep = false;
  options.max_hyperperiods = 20;
  options.faults = &*faults;
  const auto data = pipeline::run_pipeline(config, *modes, options);
  ASSERT_TRUE(data) << data.error().message;
  int published = 0, given_up = 0;
  for (const sched::JobRecord& record : data->records) {
    if (record.stage != lidar || record.actual_start == sched::kNever) continue;
    const bool aborted = (record.flags & sched::kFlagAborted) != 0;
    if (record.mode == 0) published += record.published;
    if (record.mode != 1) continue;
    EXPECT_TRUE(aborted) << record.job;
    given_up += aborted ? 1 : 0;
  }
  EXPECT_GT(published, 0);
  EXPECT_GT(given_up, 0);
}

}  // namespace
}  // namespace takt::test
