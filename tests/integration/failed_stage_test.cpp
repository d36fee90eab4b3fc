// Every CPU stage of the shipped pipeline in turn as the one that fails, in real runs on the shipped drive: who shares
// nothing with it does not notice, and its state is the one of its last published job.

#include <gmock/gmock.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "pipeline/assembly/fault_plan.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/report.h"
#include "pipeline/report/run_folder.h"
#include "pipeline/report/verdict.h"
#include "tests/integration/shipped.h"
#include "tests/support/without_rights.h"

namespace takt::test {
namespace {

using pipeline::RunData;
using sched::JobRecord;
using ::testing::HasSubstr;

constexpr std::uint64_t kHyperperiods = 10;
constexpr std::int64_t kFaulty = 4;  // the hyperperiod in which the stage fails
constexpr int kAttempts = 8;         // a loaded machine may take the very jobs that are looked at

std::map<std::string, std::string> digests_of(const RunData& data) {
  std::map<std::string, std::string> out;
  for (const pipeline::TopicDigest& topic : data.digests) out[topic.topic] = topic.digest.hex();
  return out;
}

const JobRecord* find(const RunData& run, std::uint32_t stage, std::uint64_t job) {
  if (run.problem.stages.empty()) return nullptr;  // it failed, as was said
  return pipeline::RecordIndex(run).find(stage, job);
}

// The same records, but for a job that is said not to have been started.
RunData skipping(RunData run, std::uint32_t stage, std::uint64_t job) {
  for (JobRecord& record : run.records) {
    if (record.stage != stage || record.job != job) continue;
    const JobRecord was = record;
    record = {};
    record.stage = was.stage;
    record.slot = was.slot;
    record.job = was.job;
    record.hyperperiod = was.hyperperiod;
    record.variant = was.variant;
    record.cores = was.cores;
    record.nominal_start = was.nominal_start;
    record.slot_end = was.slot_end;
    record.reason = sched::Reason::kPreviousRunning;
    record.job_class = sched::JobClass::kSkipped;
  }
  return run;
}

// The pipeline and its table. Made hard: no slack, and all on one core, so that a worker that is not done loses it at
// the end of its slot, its output is discarded, and somebody else is next.
struct World {
  pipeline::PipelineConfig config;
  sched::Schedule table;

  explicit World(const std::string& file = kPipeline, bool hard = true) {
    auto loaded = pipeline::load_pipeline(file);
    EXPECT_TRUE(loaded) << loaded.error().message;
    config = *std::move(loaded);
    if (hard) {
      for (sched::Stage& stage : config.problem.stages) stage.slack = {};
      config.problem.board.cores.resize(1);
    }
    table = admitted(config.problem);
  }
  [[nodiscard]] std::uint32_t stage(const std::string& name) const {
    std::uint32_t s = 0;
    while (config.problem.stages[s].name != name) ++s;
    return s;
  }
  [[nodiscard]] std::uint64_t faulty_job(std::uint32_t stage) const {
    return static_cast<std::uint64_t>(kFaulty * table.choices[stage].rate);
  }
  // `how`: a key of a fault file.
  [[nodiscard]] pipeline::FaultPlan plan(std::uint32_t failed, const std::string& how) const {
    const auto& stages = config.problem.stages;
    std::string text = "name: f\nwhat: w\nfaults: [{stage: " + stages[failed].name +
                       ", job: " + std::to_string(faulty_job(failed)) + ", " + how +
                       "}]\nexpect:\n  exit: 0\n  jobs:\n";
    for (std::uint32_t s = 0; s < stages.size(); ++s) {
      if (s != failed) text += "    " + stages[s].name + ": {skipped: 0, overrun: 0, late_start: 0, late: 0}\n";
    }
    std::string chains;
    for (const sched::Chain& chain : config.problem.chains) {
      if (std::count(chain.stages.begin(), chain.stages.end(), failed) != 0) continue;
      chains += "    " + chain.name + ": {void: 0}\n";
    }
    if (!chains.empty()) text += "  chains:\n" + chains;
    text += "  recovery_hyperperiods: 1\n";
    auto parsed = pipeline::parse_faults(text, "f.yaml", config.problem, *config.rig);
    EXPECT_TRUE(parsed) << parsed.error().message << '\n' << text;
    return *std::move(parsed);
  }
  [[nodiscard]] RunData run(const pipeline::RunOptions& options) const {
    auto data = pipeline::run_pipeline(config, table, options);
    EXPECT_TRUE(data) << data.error().message;
    return data ? *std::move(data) : RunData{};
  }
  [[nodiscard]] RunData fail(const pipeline::FaultPlan& faults) const {
    pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
    options.lockstep = false;
    options.max_hyperperiods = kHyperperiods;
    options.faults = &faults;
    return run(options);
  }
  [[nodiscard]] RunData again(const RunData& before) const {
    pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
    options.reproduce = &before;
    return run(options);
  }
  // The first job of another stage on a core of `failed` behind its slot.
  [[nodiscard]] const JobRecord* behind(const RunData& run, const JobRecord& failed) const {
    const JobRecord* first = nullptr;
    for (const JobRecord& record : run.records) {
      if (record.stage == failed.stage || record.nominal_start < failed.slot_end) continue;
      const auto& cores = table.slots[record.slot].cores;
      const auto& lost = table.slots[failed.slot].cores;
      if (std::find_first_of(cores.begin(), cores.end(), lost.begin(), lost.end()) == cores.end()) continue;
      if (first == nullptr || record.nominal_start < first->nominal_start) first = &record;
    }
    return first;
  }
  // Nobody but the failed stage noticed, as far as this machine is to be judged; "" or what did not hold.
  [[nodiscard]] std::string unnoticed(const RunData& run, const pipeline::FaultPlan& faults,
                                      const JobRecord& failed) const {
    for (const pipeline::FaultExpectation& e : check_faults(faults, config.problem, &run, 0).expectations) {
      if (!e.met) return e.what + ": expected " + e.expected + ", seen " + e.seen;
    }
    if (failed.published != 0) return "it came through, on a machine that stopped the clock";
    const JobRecord* const next = behind(run, failed);
    if (next == nullptr || next->actual_start == sched::kNever) return "nothing ran behind it";
    if (next->published == 0 || next->publication > next->slot_end) {
      return config.problem.stages[next->stage].name + " behind it missed its slot";
    }
    const Duration late{next->actual_start - next->nominal_start};
    const std::uint32_t core = table.slots[next->slot].cores.front();
    if (late <= config.problem.board.cores[core].wakeup_window) {
      latest = std::max(latest, late);
      return "";
    }
    return config.problem.stages[next->stage].name + " behind it began " + std::to_string(late.ms()) + " ms late";
  }
  mutable Duration latest;  // start behind a worker that lost its core
};

class FailedStage : public ::testing::TestWithParam<std::string> {
 protected:
  // Each stage fails in this way, once, and loses its core in that way.
  void each_stage(const std::string& how, const std::string& isolation) {
    const World world;
    std::optional<WithoutRights> without;
    if (isolation == "parking") without.emplace();
    ASSERT_GT(world.config.problem.board.switch_cost.ns, 0);
    for (std::uint32_t s = 0; s < world.config.problem.stages.size(); ++s) {
      SCOPED_TRACE(world.config.problem.stages[s].name + ", " + how);
      const pipeline::FaultPlan faults = world.plan(s, how);
      std::string why = "never run";
      RunData run;
      const JobRecord* failed = nullptr;
      for (int left = kAttempts; left > 0 && !why.empty(); --left) {
        run = world.fail(faults);
        failed = find(run, s, world.faulty_job(s));
        ASSERT_NE(failed, nullptr);
        if (run.dispatch.rights.isolation != isolation) GTEST_SKIP() << run.dispatch.rights.refused;
        why = world.unnoticed(run, faults, *failed);
        // Its dispatcher woke so late at the end of the slot that the machine had stood still with both.
        if ((failed->flags & sched::kFlagIsolated) == 0) why = "the failed job kept its core";
      }
      ASSERT_EQ(why, "");
      EXPECT_NE(failed->flags & sched::kFlagOverrun, 0U);
      EXPECT_NE(failed->flags & sched::kFlagIsolated, 0U);
      // The table has kept the switch cost free behind it.
      EXPECT_GE(world.behind(run, *failed)->nominal_start - failed->slot_end,
                world.config.problem.board.switch_cost.ns);
      if (isolation == "parking") {
        expect_said_to_be_parked(run);
      } else {
        expect_last_published_state(world, run, *failed);
      }
    }
    std::printf("behind a worker that lost its core: began at most %.3f ms late, switch cost %.3f ms\n",
                world.latest.ms(), world.config.problem.board.switch_cost.ms());
  }
  static void expect_said_to_be_parked(const RunData& run) {
    const pipeline::Judgement judged = pipeline::judge(run);
    EXPECT_EQ(judged.outcome, pipeline::Outcome::kNotJudged);
    EXPECT_EQ(judged.violated, 0U);
    EXPECT_THAT(judged.reasons, ::testing::Contains(HasSubstr("loses its core by parking")));
    const std::string folder = std::string(TAKT_BINARY_DIR) + "/parked-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    const auto outcome = pipeline::write_run(run, folder);
    ASSERT_TRUE(outcome) << outcome.error().message;
    const auto slurp = [&folder](const std::string& file) {
      std::ifstream in(folder + "/" + file);
      return std::string{std::istreambuf_iterator<char>(in), {}};
    };
    EXPECT_THAT(slurp("report.json"), HasSubstr("\"isolation\": \"parking\""));
    EXPECT_THAT(slurp("report.html"), ::testing::AllOf(HasSubstr("lose their core by <b>parking</b>: "),
                                                       ::testing::Not(HasSubstr("</b>: none did"))));
    std::filesystem::remove_all(folder);
  }
  // What the job did to its stage is gone: the run has the bytes of one in which it was never started.
  static void expect_last_published_state(const World& world, const RunData& run, const JobRecord& failed) {
    const RunData repeated = world.again(run);
    EXPECT_EQ(digests_of(repeated), digests_of(run));
    EXPECT_EQ(digests_of(world.again(skipping(run, failed.stage, failed.job))), digests_of(run));
  }
};

TEST_P(FailedStage, IsNoticedByNobodyWhoSharesNothingWithIt) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  each_stage(GetParam(), "demotion");
}

// The same where nobody may raise a priority: dispatchers are ordinary threads, beside whatever else this machine runs.
TEST_P(FailedStage, IsParkedWithoutRights) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  each_stage(GetParam(), "parking");
}

INSTANTIATE_TEST_SUITE_P(OfTheShippedPipeline, FailedStage, ::testing::Values("budgets: 2", "endless: true"),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

// What the test above compares would show a state that had moved on.
TEST(FailedStages, AJobMoreOrLessShowsInTheBytes) {
  const World world;
  pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
  options.max_hyperperiods = kHyperperiods;
  const RunData run = world.run(options);
  const std::uint32_t fusion = world.stage("fusion");
  EXPECT_NE(digests_of(world.again(skipping(run, fusion, world.faulty_job(fusion)))), digests_of(run));
}

std::set<std::uint32_t> ids(const RunData& run, std::uint64_t job) {
  std::set<std::uint32_t> out;
  for (const pipeline::TrackFrame& frame : run.tracks) {
    if (frame.job != job) continue;
    const pipeline::TrackList list = frame.list.get();
    for (std::uint32_t t = 0; t < list.count; ++t) out.insert(list.tracks[t].id);
  }
  return out;
}

// Tracks are state of the stage, whichever of its variants runs: fusion that overruns goes on with another one, and
// with the tracks that it had.
TEST(FailedStages, TracksSurviveADegradation) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  std::ifstream shipped(kPipeline);
  std::string text{std::istreambuf_iterator<char>(shipped), {}};
  const auto replace = [&text](std::size_t from, const std::string& a, const std::string& b) {
    const std::size_t at = text.find(a, from);
    ASSERT_NE(at, std::string::npos) << a;
    text.replace(at, a.size(), b);
  };
  while (text.find(" ../") != std::string::npos) replace(0, " ../", " " + project("configs/"));
  const std::size_t fusion_at = text.find("- name: fusion");
  replace(fusion_at, "- { name: full, budgets: [{ cores: 1, ms: 4 }] }",
          "- { name: full, budgets: [{ cores: 1, ms: 4 }] }\n      - { name: lite, budgets: [{ cores: 1, ms: 3 }], "
          "params: { acceleration_density_m2ps3: 5 } }");
  replace(fusion_at, "overrun: continue_late", "overrun: degrade\n    degrade_to: { variant: lite }");
  const std::string file = std::string(TAKT_BINARY_DIR) + "/degrade-" + std::to_string(::getpid()) + ".yaml";
  std::ofstream(file) << text;
  const World world(file, false);
  const std::uint32_t fusion = world.stage("fusion");
  const std::uint64_t job = world.faulty_job(fusion);
  const pipeline::FaultPlan faults = world.plan(fusion, "budgets: 2");
  RunData run;
  // Within its slack: a worker that lost its core would go on below everything else on the machine, so long that the
  // stage skips. Until the machine lets exactly that job overrun.
  const auto as_meant = [&] {
    for (std::uint64_t j = 0; j < job + 12; ++j) {
      const JobRecord* const record = find(run, fusion, j);
      if (record == nullptr || record->published == 0) return false;
      const bool lite = j > job && j <= job + sched::kDegradedJobs;
      if (record->variant != (lite ? 1U : 0U)) return false;
    }
    return true;
  };
  bool meant = false;
  for (int left = kAttempts; left > 0 && !meant; --left) {
    run = world.fail(faults);
    meant = as_meant();
  }
  ASSERT_TRUE(meant) << "no run in which fusion overran once and went on with its other variant";
  const std::set<std::uint32_t> before = ids(run, job - 1);
  // The other variant has other numbers: with the first one all along the same jobs give other tracks, of the same
  // objects.
  RunData full = run;
  for (JobRecord& record : full.records) record.variant = record.stage == fusion ? 0 : record.variant;
  full = world.again(full);
  EXPECT_EQ(digests_of(world.again(run)), digests_of(run));
  EXPECT_NE(digests_of(full), digests_of(run));
  for (const std::uint64_t after : {job + 1, job + sched::kDegradedJobs, job + sched::kDegradedJobs + 1}) {
    const std::set<std::uint32_t> then = ids(run, after), without = ids(full, after);
    std::size_t kept = 0;
    for (const std::uint32_t id : before) {
      if (without.count(id) == 0) continue;  // it was about to end
      ++kept;
      EXPECT_EQ(then.count(id), 1U) << "track " << id << " at job " << after;
    }
    EXPECT_GE(kept, 2U) << after;
  }
  std::filesystem::remove(file);
}

// Virtual time waits for slow machines, not for ever: what never ends is left behind as in real time, and the run
// folder is whole. Its reproduction ends as it did.
TEST(FailedStages, WhatNeverEndsInLockstepEndsTheRunAsFailed) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "some sanitizers deliver no signal to a loop";
#endif
  const World world;
  const std::uint32_t radar = world.stage("radar_detect");
  const pipeline::FaultPlan faults = world.plan(radar, "hang: true");
  pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
  options.max_hyperperiods = kHyperperiods;
  options.faults = &faults;
  options.wait_for_job = seconds(3);
  RunData run = world.run(options);
  EXPECT_EQ(run.dispatch.stuck, std::vector<std::uint32_t>{radar});
  const pipeline::RecordIndex index(run);
  for (const JobRecord* record : index.stage(radar)) {
    const bool hung = record->job == world.faulty_job(radar);
    EXPECT_EQ((record->flags & sched::kFlagStuck) != 0, hung) << record->job;
    EXPECT_EQ(record->published != 0, record->job < world.faulty_job(radar)) << record->job;
    EXPECT_EQ(record->reason == sched::Reason::kPreviousRunning, record->job > world.faulty_job(radar)) << record->job;
  }
  const std::string folder = std::string(TAKT_BINARY_DIR) + "/hung-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const auto outcome = pipeline::write_run(run, folder);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(*outcome, pipeline::Outcome::kFail);
  for (const char* const file : {"run.json", "records.mcap", "results.mcap", "report.html", "report.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder + "/" + file)) << file;
  }
  const auto loaded = pipeline::load_run(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const RunData repeated = world.again(*loaded);
  EXPECT_EQ(digests_of(repeated), digests_of(run));
  const pipeline::Judgement judged = pipeline::judge(repeated);
  EXPECT_EQ(judged.outcome, pipeline::Outcome::kFail);
  ASSERT_FALSE(judged.reasons.empty());
  EXPECT_THAT(judged.reasons.front(), HasSubstr("stage radar_detect, comes back"));
}

}  // namespace
}  // namespace takt::test
