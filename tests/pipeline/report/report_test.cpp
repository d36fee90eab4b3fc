#include "pipeline/report/report.h"
#include "pipeline/report/baselines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/report_html.h"
#include "pipeline/report/report_json.h"
#include "pipeline/report/text.h"
#include "runtime/base/file.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using namespace test;
using nlohmann::json;
namespace fs = std::filesystem;

// A folder of its own for every test.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("takt-report-test-" + std::string(info->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string folder() const { return folder_.string(); }
  fs::path folder_;
};
using RunFolder = ReportTest;

TEST(ReportJson, ChainsAreFlatObjects) {
  const json report = json::parse(report_json(synthetic_run(10, false)));
  EXPECT_EQ(report["verdict"]["outcome"], "PASS");
  ASSERT_EQ(report["chains"].size(), 2U);
  const json& camera = report["chains"][0];
  EXPECT_EQ(camera["name"], "camera to tracks");
  EXPECT_EQ(camera["bound_ns"], 24'000'000);
  EXPECT_EQ(camera["published_max_ns"], 22'800'000);
  EXPECT_EQ(camera["completed_max_ns"], 22'000'000);
  EXPECT_EQ(camera["held"], 20);
  EXPECT_EQ(camera["void"], 0);
  EXPECT_EQ(camera["violated"], 0);
  EXPECT_EQ(camera["worst_frame"]["path_jobs"], json({0, 0}));
  EXPECT_EQ(report["stages"][1]["provenance"], "profiled");
  EXPECT_EQ(report["stages"][0]["job_classes"]["ok"], 30);
}

TEST(ReportJson, PartsOfTheWorstFrameAddUp) {
  const json report = json::parse(report_json(synthetic_run(10, true)));
  for (const json& chain : report["chains"]) {
    std::int64_t sum = 0;
    for (const json& part : chain["worst_frame"]["parts"]) sum += part["ns"].get<std::int64_t>();
    EXPECT_EQ(sum, chain["published_max_ns"].get<std::int64_t>());
  }
}

// No figure stands for a chain of which nothing reached an output.
TEST(ReportJson, WhatReachedNoOutputHasNoFigures) {
  RunData run = synthetic_run(5, true);
  for (std::uint64_t job = 0; job < 5; ++job) {
    sched::JobRecord& lost = record_of(run, kLidarStage, job);
    const sched::JobRecord whole = lost;
    skip_job(run, kLidarStage, job);
    lost = whole;  // it ran, and its output was discarded
    lost.flags |= sched::kFlagOverrun | sched::kFlagDiscarded;
    lost.job_class = sched::JobClass::kOverrun;
    lost.publication = sched::kNever;
    lost.published = 0;
  }
  const json report = json::parse(report_json(run));
  const json& lidar = report["chains"][1];
  EXPECT_GT(lidar["void"], 2);
  for (const char* const figure : {"completed_max_ns", "published_max_ns", "held_max_ns"}) {
    EXPECT_TRUE(lidar[figure].is_null()) << figure << lidar[figure];
    EXPECT_TRUE(lidar["quantities"]["latency"][figure].is_null()) << figure;
    EXPECT_GT(report["chains"][0][figure], 0) << figure;
  }
  const auto latency =
      std::find_if(report["verdict"]["requirements"].begin(), report["verdict"]["requirements"].end(),
                   [](const json& one) { return one["group"] == "chain LiDAR to tracks" && one["name"] == "latency"; });
  ASSERT_NE(latency, report["verdict"]["requirements"].end());
  EXPECT_NE((*latency)["detail"].get<std::string>().find("none reached an output: 0 held"), std::string::npos);
  const std::string page = report_html(run, judge(run), stage_statistics(run), "");
  for (const char* const column : {"completed", "published"}) {
    EXPECT_EQ(page.find("data-label=\"" + std::string(column) + "\"><span>0 ms"), std::string::npos) << column;
  }
}

TEST(ReportJson, EqualRunsGiveEqualBytes) {
  EXPECT_EQ(report_json(synthetic_run(5, true)), report_json(synthetic_run(5, true)));
}

TEST(ReportHtml, SaysWhatIsSimulatedAndWhatIsCompiled) {
  RunData run = synthetic_run(5, true);
  const auto html = [&] { return report_html(run, judge(run), stage_statistics(run), ""); };
  EXPECT_NE(html().find("simulated drive"), std::string::npos);
  EXPECT_NE(html().find("9 \u2192 3</b><span>operators before and after passes"), std::string::npos);
  EXPECT_NE(html().find("Conv_0 &lt;Relu_1&gt;"), std::string::npos) << "names come from the model: escaped";
  EXPECT_NE(html().find("Graphs that takt compiled: "), std::string::npos);
  EXPECT_NE(html().find("top: assumed in the rig file, neither measured nor declared: extrinsics"), std::string::npos);
  run.rig.drive = "recorded";
  EXPECT_NE(html().find("recorded drive"), std::string::npos);
  run.plans.clear();
  EXPECT_NE(html().find("No stage of this run is a compiled graph."), std::string::npos);
}

TEST(ReportHtml, ASensorThatDeliveredNothingIsSaidOnceAndByName) {
  RunData run = synthetic_run(6, true);
  run.health[1].messages = 0;
  for (std::uint64_t job = 0; job < 6; ++job) skip_job(run, kLidarStage, job);
  run.problem.chains.push_back(run.problem.chains[1]);
  run.problem.chains.back().name = "LiDAR once more";
  run.schedule.bounds.push_back(run.schedule.bounds[1]);
  const Judgement j = judge(run);
  EXPECT_EQ(j.outcome, Outcome::kNotJudged);
  EXPECT_EQ(std::count(j.reasons.begin(), j.reasons.end(), "top delivered no message"), 1);
  for (const std::string& reason : j.reasons) {
    EXPECT_EQ(reason.find("reached an output"), std::string::npos) << reason;
  }
  const std::string page = report_html(run, j, stage_statistics(run), "");
  EXPECT_NE(page.find("data-label=\"messages\"><span><span class=\"tag bad\">none</span>"), std::string::npos);
  EXPECT_NE(ten_lines(run).find("; inputs: top: no message"), std::string::npos);
}

TEST(ReportJson, PlansHaveTheirTotals) {
  const json parsed = json::parse(report_json(synthetic_run(5, true)));
  EXPECT_EQ(parsed["run"]["compiled_graphs"], json({"detection"}));
  ASSERT_EQ(parsed["plans"].size(), 1U);
  EXPECT_EQ(parsed["plans"][0]["flops"], 2'000'000);
  EXPECT_EQ(parsed["plans"][0]["runs"], 40);
  EXPECT_EQ(parsed["plans"][0]["steps_minimum_ns"], 160'000);
  EXPECT_EQ(parsed["plans"][0]["steps"][1]["kernel"], "conv_1x1");
  EXPECT_EQ(parsed["plans"][0]["counters"][0]["capacity"], 20000);
  EXPECT_EQ(parsed["plans"][0]["counters"][1]["latest"], (std::vector<int>{0, 2, 0}));
}

// Jobs of a variant to which the stage degraded are measured against its budget, and no other.
TEST(ReportJson, EveryBudgetHasTheTimesOfItsOwnJobs) {
  RunData run = synthetic_run(5, true);
  sched::Stage& camera = run.problem.stages[kCameraStage];
  camera.overrun = sched::OverrunPolicy::kDegrade;
  camera.degraded_variant = "lite";
  camera.variants.push_back({"lite", {camera.variants[0].budgets[0]}});
  camera.variants[1].budgets[0].time = milliseconds(3);
  for (const std::uint64_t job : {4, 5}) {
    sched::JobRecord& record = record_of(run, kCameraStage, job);
    record.variant = 1;
    record.completion = record.actual_start + milliseconds(2).ns;
  }
  sched::JobRecord& slow = record_of(run, kCameraStage, 6);
  slow.completion = slow.actual_start + milliseconds(7).ns;
  const json budgets = json::parse(report_json(run))["stages"][kCameraStage]["budgets"];
  ASSERT_EQ(budgets.size(), 2U);
  EXPECT_EQ(budgets[0]["variant"], "full");
  EXPECT_EQ(budgets[0]["budget_ns"], 8'000'000);
  EXPECT_EQ(budgets[0]["admitted"][0]["jobs_per_hyperperiod"], 3);
  EXPECT_EQ(budgets[0]["run"]["samples"], 13);
  EXPECT_EQ(budgets[0]["run"]["max_ns"], 7'000'000);
  EXPECT_EQ(budgets[1]["variant"], "lite");
  EXPECT_EQ(budgets[1]["budget_ns"], 3'000'000);
  EXPECT_TRUE(budgets[1]["admitted"].empty());
  EXPECT_EQ(budgets[1]["run"]["samples"], 2);
  EXPECT_EQ(budgets[1]["run"]["max_ns"], 2'000'000);
  EXPECT_NE(report_html(run, judge(run), stage_statistics(run), "").find("degraded to"), std::string::npos);
}

// Of stages that ran on a device, and of no others.
TEST(ReportJson, JobsOnADeviceHaveItsTimeBesideTheirHandOver) {
  RunData run = synthetic_run(6, true);
  const auto page = [&] { return report_html(run, judge(run), stage_statistics(run), ""); };
  EXPECT_EQ(page().find("Jobs on the device"), std::string::npos);
  EXPECT_FALSE(json::parse(report_json(run))["stages"][kCameraStage].contains("device"));
  for (const std::uint64_t job : {4, 5}) {
    record_of(run, kCameraStage, job).launch_ns = 30'000 + static_cast<std::int64_t>(job);
    record_of(run, kCameraStage, job).device_ns = 2'000'000 + static_cast<std::int64_t>(job);
  }
  const json stages = json::parse(report_json(run))["stages"];
  EXPECT_EQ(stages[kCameraStage]["launch"]["samples"], 2);
  EXPECT_EQ(stages[kCameraStage]["launch"]["max_ns"], 30'005);
  EXPECT_EQ(stages[kCameraStage]["device"]["min_ns"], 2'000'004);
  for (std::size_t s = 0; s < stages.size(); ++s) EXPECT_EQ(stages[s].contains("device"), s == kCameraStage);
  EXPECT_NE(page().find("Jobs on the device"), std::string::npos);
}

// A change of mode across which no sample was under way has nothing to show.
TEST(ReportHtml, ChangesOfModeStandWhereInstancesLayAcrossThem) {
  RunData run = synthetic_run(6, true);
  for (const char* name : {"day", "night"}) {
    run.modes.push_back(sched::only_table(run.problem, run.schedule));
    run.modes.back().name = name;
  }
  run.modes[1].seams = {{0, run.schedule.bounds}};
  run.dispatch.changes = {{3, {milliseconds(300).ns}, 0, 1, sched::ModeCause::kRequest, 0, 0}};
  Judgement judgement = judge(run);
  const auto page = [&] { return report_html(run, judgement, stage_statistics(run), ""); };
  const std::string row = "(day -&gt; night)</span>, reaction", slack = "(day -&gt; night)</th>";
  EXPECT_NE(page().find(row), std::string::npos);
  EXPECT_NE(page().find(slack), std::string::npos);
  EXPECT_NE(page().find("day: 3<br>night: 3"), std::string::npos) << "jobs per hyperperiod of each mode";
  for (ChainJudgement& chain : judgement.chains) {
    if (chain.from == chain.to) continue;
    for (QuantityJudgement& figures : chain.quantities) {
      figures.held = figures.void_count = figures.violated = 0;
      figures.instances.clear();
    }
  }
  EXPECT_EQ(page().find(row), std::string::npos);
  EXPECT_EQ(page().find(slack), std::string::npos);
  EXPECT_NE(page().find("(night)"), std::string::npos);
}

// A stage that stands still for long fills no page: its jobs share a row, and the first screen says how it began.
TEST(ReportHtml, JobsThatWentWrongAlikeShareARow) {
  RunData run = synthetic_run(12, true);
  for (std::uint64_t job = 4; job < 12; ++job) skip_job(run, kLidarStage, job);
  const std::string html = report_html(run, judge(run), stage_statistics(run), "");
  EXPECT_NE(html.find("lidar_detect: 8 skipped; first lidar_detect#4: not started"), std::string::npos);
  EXPECT_NE(html.find("lidar_detect#4 to #11</th>"), std::string::npos);
  EXPECT_EQ(html.find("lidar_detect#5"), std::string::npos);
  EXPECT_NE(html.find("lidar_detect jobs 4 to 1"), std::string::npos) << "of broken assumptions as well";
  const Judgement judgement = judge(run);
  ASSERT_FALSE(judgement.reasons.empty());
  EXPECT_NE(judgement.reasons.front().find("LiDAR to tracks latency 4 of 12 held (worker busy"), std::string::npos)
      << judgement.reasons.front();
  ASSERT_GT(judgement.reasons.size(), 1U);
  EXPECT_NE(judgement.reasons[1].find("on the way: LiDAR to tracks 8 of 12 (worker busy)"), std::string::npos)
      << judgement.reasons[1];
}

TEST(ReportHtml, EveryMissStandsWithItsCause) {
  RunData run = synthetic_run(8, true);
  skip_job(run, kCameraStage, 9);
  sched::JobRecord& r = record_of(run, kLidarStage, 4);
  r.job_class = sched::JobClass::kMissing;
  r.reason = sched::Reason::kFeederLate;
  r.published = 0;
  r.inputs[0] = {};
  r.inputs[0].reason = sched::Reason::kFeederLate;
  r.flags |= sched::kFlagMissingInput;
  const std::string html = report_html(run, judge(run), stage_statistics(run), "");
  EXPECT_NE(html.find("an earlier job of this stage was still running"), std::string::npos);
  EXPECT_NE(html.find("input cloud had arrived by its stamp, but was not physically there"), std::string::npos);
}

// Every command can be pasted: words with blanks are quoted, and what decided the bytes is given again.
TEST(Commands, RepeatTheRunAsItWas) {
  RunData run = synthetic_run(6, true);
  run.command = "takt replay 'my pipelines/three.yaml' drive.mcap -o 'a run' --exclude '/radar*'";
  run.inputs.push_back({"pipeline", "my pipelines/three.yaml", {}});
  run.log_path = "drive.mcap";
  run.run_folder = "a run";
  run.options = {"--exclude", "/radar*"};
  const std::string again =
      "takt replay 'my pipelines/three.yaml' drive.mcap --exclude '/radar*' -o REPEATED --reproduce 'a run'";
  const auto lines = [&run] {
    std::vector<std::string> out;
    for (const Command& command : commands_to_try(run)) out.push_back(command.line);
    return out;
  };
  EXPECT_EQ(lines(),
            (std::vector<std::string>{run.command, again, "takt report 'a run'", "takt diff 'a run' OTHER_RUN"}));
  // By the program that made it, wherever that lies.
  const std::string lies = "'/my builds/takt'";
  run.command.replace(0, 4, lies);
  EXPECT_EQ(lines(), (std::vector<std::string>{run.command, lies + again.substr(4), lies + " report 'a run'",
                                               lies + " diff 'a run' OTHER_RUN"}));
  run.command.replace(0, lies.size(), "takt");
  run.mode = "lockstep";
  EXPECT_EQ(lines()[1], "takt report 'a run'") << "the command itself gives the same bytes";
  run.sought = true;
  EXPECT_EQ(lines().front(), again) << "the command gives another pass";
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Text, FiguresReadTheSameEverywhere) {
  EXPECT_EQ(ms_text(nanoseconds(12'345'678)), "12.35 ms");
  EXPECT_EQ(ms_text(nanoseconds(87'654)), "0.0877 ms");
  EXPECT_EQ(ms_text(nanoseconds(-500'000)), "-0.500 ms");
  EXPECT_EQ(percent_text(1.0), "100 %");
  EXPECT_EQ(percent_text(0.99999), "99.9 %") << "less than all must not read as all";
  EXPECT_EQ(percent_text(0.801), "80.1 %");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(plural(1, "job", "jobs"), "1 job");
}

TEST(Summary, IsTenLines) {
  for (const bool real_time : {false, true}) {
    const std::string text = ten_lines(synthetic_run(10, real_time));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
    EXPECT_EQ(text.rfind("verdict  PASS", 0), 0U);
    EXPECT_NE(text.find("(100 % held)"), std::string::npos);
  }
}

// ---- the run folder ---------------------------------------------------------------------------------------------

void expect_equal_records(const RunData& a, const RunData& b) {
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const sched::JobRecord &x = a.records[i], &y = b.records[i];
    EXPECT_EQ(std::tie(x.stage, x.slot, x.job, x.hyperperiod, x.variant, x.cores, x.flags, x.job_class, x.reason),
              std::tie(y.stage, y.slot, y.job, y.hyperperiod, y.variant, y.cores, y.flags, y.job_class, y.reason));
    EXPECT_EQ(std::tie(x.nominal_start, x.actual_start, x.completion, x.publication, x.slot_end, x.cpu_ns),
              std::tie(y.nominal_start, y.actual_start, y.completion, y.publication, y.slot_end, y.cpu_ns));
    EXPECT_EQ(std::tie(x.page_faults, x.copied_bytes, x.allocations, x.input_count, x.published, x.output_bytes),
              std::tie(y.page_faults, y.copied_bytes, y.allocations, y.input_count, y.published, y.output_bytes));
    EXPECT_EQ(std::tie(x.major_faults, x.voluntary_switches, x.involuntary_switches, x.launch_ns, x.device_ns),
              std::tie(y.major_faults, y.voluntary_switches, y.involuntary_switches, y.launch_ns, y.device_ns));
    EXPECT_EQ(x.published != 0 ? x.output : Digest{}, y.output);
    for (std::size_t k = 0; k < x.input_count; ++k) {
      const sched::InputRecord &p = x.inputs[k], &q = y.inputs[k];
      EXPECT_EQ(std::tie(p.job, p.capture_ns, p.arrival_ns, p.kind, p.reason, p.moved),
                std::tie(q.job, q.capture_ns, q.arrival_ns, q.kind, q.reason, q.moved));
    }
  }
}

TEST_F(RunFolder, ComesBackAsItWas) {
  RunData run = synthetic_run(6, true);
  skip_job(run, kCameraStage, 3);
  ObjectFrame objects;
  objects.stage = kLidarStage;
  objects.job = 2;
  ObjectList list;
  list.count = 2;
  list.sensor = 1;
  list.stamp_ns = run.sensor_from_table.to_origin.ns + 5;
  list.objects[1].x = 1.25F;
  list.objects[1].flags = kHasPosition | kHasBox;
  objects.list = list;
  run.objects.push_back(objects);
  run.sources[1].stamp = {{7}, {9}, -250, microseconds(40), {1}, {1000}};
  run.health[0].left_out = {{4, {11}, {12}}};
  run.host_stalls = {{5, 50'000'005, 1, milliseconds(10)}, {7, 8, -1, milliseconds(2)}};
  run.watch_cost = microseconds(700);
  run.dispatch.accounting = nanoseconds(1500);
  run.records[2].involuntary_switches = 3;
  run.records[2].major_faults = 1;
  run.records[2].launch_ns = 31;
  run.records[2].device_ns = 2'000'001;
  run.interrupted = true;
  run.measured = baselines(run);
  run.faults = {"late", "radar comes late", "name: late\n", {"radar: late"}, {7}, {{"exit code", "0", "1", false}}};
  run.log_problems = {{"bad CRC", 77, "chunk 3"}};
  const auto outcome = write_run(run, folder());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(*outcome, outcome_of(run));
  auto loaded = load_run(folder());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->run_folder, folder());
  loaded->run_folder = run.run_folder;
  EXPECT_EQ(manifest_json(*loaded), manifest_json(run));
  expect_equal_records(run, *loaded);
  EXPECT_EQ(report_json(*loaded), report_json(run));
  ASSERT_EQ(loaded->objects.size(), 1U);
  EXPECT_EQ(loaded->objects[0].job, 2U);
  EXPECT_EQ(loaded->objects[0].list.count(), 2U);
  EXPECT_EQ(loaded->objects[0].list.get().objects[1].x, 1.25F);
  ASSERT_EQ(loaded->tracks.size(), run.tracks.size());
  for (std::size_t i = 0; i < run.tracks.size(); ++i) {
    EXPECT_EQ(loaded->tracks[i].job, run.tracks[i].job);
    EXPECT_EQ(loaded->tracks[i].list.count(), run.tracks[i].list.count());
    EXPECT_EQ(loaded->tracks[i].list.get().tracks[0].x, run.tracks[i].list.get().tracks[0].x);
  }
  ASSERT_EQ(loaded->truth.size(), run.truth.size());
  EXPECT_EQ(loaded->truth[3].boxes[1].lidar_points, 40U);
}

TEST_F(RunFolder, LeavesExactlyTheNamedFiles) {
  ASSERT_TRUE(write_run(synthetic_run(3, false), folder()));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"junit.xml", "records.mcap", "report.html", "report.json", "results.mcap",
                                             "run.json", "trace.pftrace"}));
}

TEST_F(RunFolder, SaysWhichFileIsMissing) {
  ASSERT_TRUE(write_run(synthetic_run(3, false), folder()));
  fs::remove(folder_ / "records.mcap");
  const auto loaded = load_run(folder());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kInput);
  EXPECT_NE(loaded.error().message.find("records.mcap"), std::string::npos);
}

TEST_F(RunFolder, RefusesDamagedManifests) {
  ASSERT_TRUE(write_run(synthetic_run(3, false), folder()));
  const std::string path = folder() + "/run.json";
  const std::string good = *read_file(path);
  const auto message = [&](const std::function<void(json&)>& damage) {
    json manifest = json::parse(good);
    damage(manifest);
    EXPECT_TRUE(write_file_atomically(path, manifest.dump()));
    const auto loaded = load_run(folder());
    EXPECT_FALSE(loaded);
    return loaded ? std::string() : loaded.error().message;
  };
  EXPECT_NE(message([](json& m) { m["version"] = 99; }).find("another version"), std::string::npos);
  EXPECT_NE(message([](json& m) { m["run"].erase("rig"); }).find("run/rig: missing"), std::string::npos);
  EXPECT_NE(message([](json& m) { m["run"]["rate"] = "fast"; }).find("run/rate: expected a number"), std::string::npos);
  EXPECT_NE(message([](json& m) { m["run"]["schedule"]["slots"][2]["stage"] = 7; }).find("unknown stage"),
            std::string::npos);
  EXPECT_NE(message([](json& m) { m["run"]["schedule"]["slots"][2]["stage"] = -7; }).find("slots/2/stage"),
            std::string::npos);
  EXPECT_NE(message([](json& m) { m["run"]["digests"][0]["digest"] = "xyz"; }).find("32 hexadecimal digits"),
            std::string::npos);
  EXPECT_NE(message([](json& m) { m = json::array(); }).find("no manifest"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(path, good.substr(0, good.size() / 2)));
  EXPECT_FALSE(load_run(folder()));
}

TEST_F(RunFolder, RefusesARecordingCutShort) {
  ASSERT_TRUE(write_run(synthetic_run(20, false), folder()));
  const std::string path = folder() + "/records.mcap";
  fs::resize_file(path, fs::file_size(path) / 2);
  const auto loaded = load_run(folder());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kInput);
  EXPECT_NE(loaded.error().message.find("records.mcap"), std::string::npos);
}

TEST(RunFolderErrors, AFolderThatCannotBeMade) {
  const Status written = write_report(synthetic_run(2, false), "/proc/takt/run");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kEnvironment);
  const auto whole = write_run(synthetic_run(2, false), "/proc/takt/run");
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Code::kEnvironment);
}

TEST(Breakdown, PartsAddUpToThePublishedLatency) {
  RunData run = synthetic_run(4, true);
  run.sources[0].stamp.error = microseconds(400);
  run.sensor_from_table.error = microseconds(30);
  const Judgement judgement = judge(run);
  const RecordIndex index(run);
  std::size_t added = 0;
  for (std::size_t c = 0; c < judgement.chains.size(); ++c) {
    for (const Instance& instance : judgement.chains[c].latency().instances) {
      if (!instance.reached) continue;
      Duration sum;
      for (const Part& part : breakdown(run, index, c, instance)) sum += part.time;
      EXPECT_EQ(sum, instance.published);
      ++added;
    }
  }
  EXPECT_GT(added, 8U);
}

// ---- diff -------------------------------------------------------------------------------------------------------

TEST(Diff, EqualRuns) {
  const DiffResult diff = diff_runs(synthetic_run(5, false), synthetic_run(5, false));
  EXPECT_TRUE(diff.outputs_equal);
  EXPECT_TRUE(diff.inputs.empty());
  EXPECT_EQ(diff.compared, 30U);
  EXPECT_FALSE(diff.first);
}

TEST(Diff, FindsTheFirstJobInTableOrder) {
  const RunData a = synthetic_run(5, false);
  RunData b = synthetic_run(5, false);
  record_of(b, kCameraStage, 9).output.low ^= 1;  // 308 ms
  record_of(b, kFusionStage, 4).output.low ^= 1;  // 220 ms
  record_of(b, kFusionStage, 6).output.low ^= 1;
  const DiffResult diff = diff_runs(a, b);
  EXPECT_FALSE(diff.outputs_equal);
  EXPECT_EQ(diff.differing, 3U);
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->stage, "fusion");
  EXPECT_EQ(diff.first->job, 4U);
  EXPECT_EQ(diff.first->what, "equal inputs, other bytes");
  EXPECT_NE(diff.text().find("first    fusion job 4"), std::string::npos);
}

TEST(Diff, SaysWhichInputOfTheJobDiffered) {
  const RunData a = synthetic_run(5, false);
  RunData b = synthetic_run(5, false);
  sched::JobRecord& r = record_of(b, kFusionStage, 4);
  r.output.low ^= 1;
  r.inputs[1].job = 0;
  EXPECT_EQ(diff_runs(a, b).first->what, "input 1 came from 1 in A and 0 in B");
}

TEST(Diff, SaysModeAndVariantOfTheJobBeforeItsBytes) {
  RunData a = synthetic_run(5, false);
  a.problem.stages[kFusionStage].variants.push_back({"lite", a.problem.stages[kFusionStage].variants[0].budgets});
  a.modes = {sched::only_table(a.problem, a.schedule), sched::only_table(a.problem, a.schedule)};
  a.modes[0].name = "day";
  a.modes[1].name = "lean";
  RunData b = a;
  sched::JobRecord& r = record_of(b, kFusionStage, 4);
  r.output.low ^= 1;
  r.mode = 1;
  EXPECT_EQ(diff_runs(a, b).first->what, "mode day in A and lean in B; equal inputs, other bytes");
  r.variant = 1;
  EXPECT_EQ(diff_runs(b, a).first->what, "mode lean in A and day in B; variant lite in A and " +
                                             a.problem.stages[kFusionStage].variants[0].name +
                                             " in B; equal inputs, other bytes");
}

TEST(Diff, UnpublishedAndShorterRunsDiffer) {
  const RunData a = synthetic_run(5, false);
  RunData b = synthetic_run(5, false);
  skip_job(b, kLidarStage, 2);
  EXPECT_EQ(diff_runs(a, b).first->what, "published only in A");
  EXPECT_EQ(diff_runs(b, a).first->what, "published only in B");
  const DiffResult shorter = diff_runs(a, synthetic_run(4, false));
  EXPECT_FALSE(shorter.outputs_equal);
  EXPECT_EQ(shorter.differing, 6U);
  EXPECT_EQ(shorter.first->job, 12U);
}

TEST(Diff, NamesInputsThatDiffer) {
  const RunData a = synthetic_run(3, false);
  RunData b = synthetic_run(3, false);
  b.inputs[1].digest.low ^= 1;
  b.inputs.push_back({"budgets", "budgets.yaml", {}});
  b.schedule.slots[0].start += 1;
  const DiffResult diff = diff_runs(a, b);
  ASSERT_EQ(diff.inputs.size(), 3U);
  EXPECT_EQ(diff.inputs[0].role, "pipeline");
  EXPECT_EQ(diff.inputs[1].role, "budgets");
  EXPECT_EQ(diff.inputs[1].a, "absent");
  EXPECT_EQ(diff.inputs[2].role, "schedule");
  EXPECT_TRUE(diff.outputs_equal);
  EXPECT_EQ(json::parse(diff.json())["inputs"].size(), 3U);
}

}  // namespace
}  // namespace takt::pipeline
