// `takt schedule` as an integrator meets it: what would fit, pages, certificates, bundles.
#include <gmock/gmock.h>
#include <chrono>
#include <csignal>
#include <thread>

#include "pipeline/bundle/bundle.h"
#include "pipeline/report/run_folder.h"
#include "tests/integration/program.h"

namespace {

using takt::test::Answer;
using takt::test::slurp;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kPipeline = kRoot + "/configs/pipelines/sim.yaml";

class Schedule : public takt::test::Program {};

TEST_F(Schedule, WritesABundleThatABoardReads) {
  const std::string file = path("sim.bundle");
  const Answer yes = takt({"schedule", kPipeline, "--bundle", file});
  ASSERT_EQ(yes.code, 0) << yes.err;
  const takt::Result<takt::pipeline::Bundle> bundle = takt::pipeline::load_bundle(file);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->name, "sim");
  ASSERT_EQ(bundle->modes.size(), 1u);
  EXPECT_THAT(yes.out, HasSubstr(bundle->modes[0].schedule.hash().hex()));
  EXPECT_EQ(bundle->stages.size(), 4u);
  EXPECT_FALSE(bundle->rig.sensors.empty());
  EXPECT_FALSE(bundle->topics.empty());
  ASSERT_FALSE(bundle->plans.empty());
  EXPECT_GT(bundle->arenas.block_bytes, 0u);
  for (const takt::pipeline::BundleStage& stage : bundle->stages) EXPECT_FALSE(stage.type.empty()) << stage.name;
  // The same inputs give the same bytes, and nothing of the host's folders is in them.
  const std::string bytes = slurp(file);
  ASSERT_EQ(takt({"schedule", kPipeline, "--bundle", file}).code, 0);
  EXPECT_EQ(slurp(file), bytes);
  EXPECT_EQ(bytes.find(kRoot), std::string::npos);
}

TEST_F(Schedule, ABundleOfModesHasEveryTableAndEveryChange) {
  const std::string file = path("modes.bundle");
  const std::string problem = kRoot + "/configs/schedules/day_and_night.yaml";
  const Answer yes = takt({"schedule", problem, "--bundle", file, "--html", path("modes.html")});
  ASSERT_EQ(yes.code, 0) << yes.out << yes.err;
  const takt::Result<takt::pipeline::Bundle> bundle = takt::pipeline::load_bundle(file);
  ASSERT_TRUE(bundle) << bundle.error().message;
  ASSERT_EQ(bundle->modes.size(), 3u);
  EXPECT_EQ(bundle->modes[0].name, "day");
  EXPECT_EQ(bundle->modes[1].problem.hyperperiod, takt::milliseconds(200));
  EXPECT_EQ(bundle->modes[1].dwell, takt::milliseconds(1'000));
  EXPECT_EQ(bundle->modes[0].lost, 2u);
  EXPECT_EQ(bundle->changes.size(), 5u);
  EXPECT_THAT(slurp(path("modes.html")), HasSubstr("Mode night"));
}

// What a run could not do is refused when the file is read, with its place.
TEST_F(Schedule, PoliciesAndModesThatCouldDoNothingAreRefusedWithTheirPlace) {
  const auto answer = [this](const std::string& pipeline, const std::string& from, const std::string& to) {
    std::string text = slurp(kRoot + "/configs/pipelines/" + pipeline + ".yaml");
    for (std::size_t at = text.find("../"); at != std::string::npos; at = text.find("../")) {
      text.replace(at, 3, kRoot + "/configs/");
    }
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path("changed.yaml")) << text;
    return takt({"schedule", path("changed.yaml")});
  };
  const Answer one_step =
      answer("sim", "{ cores: 1, ms: 2 }] }\n    overrun: continue_late", "{ cores: 1, ms: 2 }] }\n    overrun: abort");
  EXPECT_EQ(one_step.code, 4);
  EXPECT_THAT(one_step.err, ::testing::ContainsRegex("changed.yaml:[0-9]+:[0-9]+: .*radar_cluster.* one step"));
  const Answer no_fit = answer("sim", "overrun: continue_late", "overrun: degrade\n    degrade_to: { variant: lite }");
  EXPECT_EQ(no_fit.code, 4);
  EXPECT_THAT(no_fit.err, ::testing::ContainsRegex("changed.yaml:[0-9]+:[0-9]+: .*no budget of at most 6.000 ms on 2"));
  const Answer left_out = answer("sim_modes", "stage: camera_detect, hold: 1, required: false", "stage: camera_detect");
  EXPECT_EQ(left_out.code, 4);
  EXPECT_THAT(left_out.err, ::testing::ContainsRegex("changed.yaml:[0-9]+:[0-9]+: .*leaves out input 'camera'"));
  // Two cores are no worse than one: the plan of such a variant has a part for each.
  EXPECT_EQ(
      answer("sim", "sim_camera_lite.yaml, budgets: [{ cores: 1,", "sim_camera_lite.yaml, budgets: [{ cores: 2,").code,
      0);
}

// Over a change jobs of both tables are in flight: a bundle has the pools that a run over all modes has.
TEST_F(Schedule, PoolsOfABundleAreThoseOfARunOverAllModes) {
  const std::string modes = kRoot + "/configs/pipelines/sim_modes.yaml";
  ASSERT_EQ(takt({"schedule", modes, "--bundle", path("modes.bundle")}).code, 0);
  const takt::Result<takt::pipeline::Bundle> bundle = takt::pipeline::load_bundle(path("modes.bundle"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  const Answer ran = takt({"replay", modes, kRoot + "/replay_data/city.mcap", "-o", path("run"), "--transport", "local",
                           "--duration", "0.2", "-q"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const takt::Result<takt::pipeline::RunData> run = takt::pipeline::load_run(path("run"));
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(bundle->pools.pools.size(), run->pools.pools.size());
  for (std::size_t i = 0; i < run->pools.pools.size(); ++i) {
    EXPECT_EQ(bundle->pools.pools[i].topics, run->pools.pools[i].topics);
    EXPECT_EQ(bundle->pools.pools[i].chunk_bytes, run->pools.pools[i].chunk_bytes);
    EXPECT_EQ(bundle->pools.pools[i].chunks, run->pools.pools[i].chunks);
  }
}

// A drain after which the stamps of a sensor are not where the table expects them.
TEST_F(Schedule, WarnsOfADrainThatMovesASensorOffItsPhase) {
  const std::string text = slurp(kRoot + "/configs/schedules/day_and_night.yaml");
  const auto with_drain = [&](const std::string& ms) {
    std::string changed = text;
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"../boards", kRoot + "/configs/boards"},
                                   {"drain_ms: 0", "drain_ms: " + ms}}) {
      EXPECT_NE(changed.find(from), std::string::npos) << from;
      changed.replace(changed.find(from), from.size(), to);
    }
    std::ofstream(path("drained.yaml")) << changed;
    return takt({"schedule", path("drained.yaml")});
  };
  const Answer warned = with_drain("40");
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_THAT(warned.out, HasSubstr("entry_drain_ms of 40.000 is no whole number of periods of sensor 'camera' "
                                    "(33.333 ms): its stamps come 6.667 ms off"));
  EXPECT_THAT(warned.out, HasSubstr("declare 33.333 or 66.667"));
  EXPECT_THAT(with_drain("100").out, ::testing::Not(HasSubstr("entry_drain_ms of")));
}

// Every mode that has what a change names takes it, and a figure that one of them cannot have is refused by its name.
TEST_F(Schedule, WhatIfChangesEveryModeThatHasTheFigure) {
  const std::string problem = kRoot + "/configs/schedules/day_and_night.yaml";
  const std::string file = path("changed.bundle");
  const Answer yes = takt({"schedule", problem, "--what-if", "camera_detect.budget=+10%", "--bundle", file});
  ASSERT_EQ(yes.code, 0) << yes.out << yes.err;
  const takt::Result<takt::pipeline::Bundle> bundle = takt::pipeline::load_bundle(file);
  ASSERT_TRUE(bundle) << bundle.error().message;
  for (const takt::pipeline::BundleMode& mode : bundle->modes) {
    for (std::size_t s = 0; s < mode.problem.stages.size(); ++s) {
      const std::string& stage = mode.problem.stages[s].name;
      const takt::sched::Choice& choice = mode.schedule.choices[s];
      if (stage == "camera_detect" && mode.name == "night") {
        EXPECT_EQ(choice.budget.time, takt::microseconds(9'900));
      }
    }
  }
  std::vector<std::string> roles;
  for (const takt::pipeline::BundleSource& source : bundle->sources) roles.push_back(source.role);
  EXPECT_THAT(roles, ::testing::Contains("what-if camera_detect.budget=+10%"));
  // 70 Hz have no place on the ticks that the rates of the file allow: all modes get others.
  EXPECT_THAT(takt({"schedule", problem, "--what-if", "radar_detect.rate=70"}).out, HasSubstr("210000 ticks"));
  const Answer no = takt({"schedule", problem, "--what-if", "camera_detect.variant=lite"});
  EXPECT_EQ(no.code, 2);
  EXPECT_THAT(no.err, HasSubstr("mode 'night'"));
  EXPECT_THAT(no.err, HasSubstr("no variant 'lite'"));
}

TEST_F(Schedule, RefusesWhatIsAboutOneTableForModes) {
  const std::string problem = kRoot + "/configs/schedules/day_and_night.yaml";
  const Answer scale = takt({"schedule", problem, "--scale"});
  EXPECT_EQ(scale.code, 2);
  EXPECT_THAT(scale.err, HasSubstr("--scale is about one table"));
  const Answer baseline = takt({"schedule", problem, "--baseline", "first-found"});
  EXPECT_EQ(baseline.code, 2);
  EXPECT_THAT(baseline.err, HasSubstr("--baseline is about one table"));
}

TEST_F(Schedule, WritesNoBundleOfWhatDoesNotFit) {
  const Answer no = takt({"schedule", kPipeline, "--what-if", "camera.latency=20ms", "--bundle", path("no.bundle")});
  EXPECT_EQ(no.code, 1);
  EXPECT_THAT(no.err, HasSubstr("only an admitted table goes to a board"));
  EXPECT_FALSE(std::filesystem::exists(path("no.bundle")));
}

TEST_F(Schedule, SaysWhatWouldFitAndWritesPageAndProof) {
  const std::string problem = kRoot + "/configs/schedules/textbook.yaml";
  const Answer no = takt({"schedule", problem, "--html", path("t.html"), "--certificate", path("t.json")});
  EXPECT_EQ(no.code, 1);
  EXPECT_THAT(no.out, HasSubstr("What would fit (each by itself, tried)"));
  EXPECT_THAT(no.out, HasSubstr("--what-if detection.budget=8.8ms"));
  EXPECT_THAT(slurp(path("t.html")), HasSubstr("--what-if detection.budget=8.8ms"));
  EXPECT_EQ(takt({"schedule", problem, "--check", path("t.json")}).code, 0);
  const Answer other = takt({"schedule", problem, "--what-if", "drive.latency=70ms", "--check", path("t.json")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("another problem"));
}

TEST_F(Schedule, NeverWritesOverItsInputs) {
  const std::string problem = path("p.yaml");
  std::filesystem::copy_file(kRoot + "/configs/schedules/textbook.yaml", problem);
  const Answer over = takt({"schedule", problem, "--html", problem});
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, HasSubstr("named twice"));
  EXPECT_EQ(slurp(problem), slurp(kRoot + "/configs/schedules/textbook.yaml"));
}

// What was asked for is refused as a whole where a part of it would be passed over.
TEST_F(Schedule, RefusesOptionsThatItWouldNotFollow) {
  const std::string problem = kRoot + "/configs/schedules/textbook.yaml";
  for (const char* option : {"--check", "--html", "--bundle", "--certificate", "--budgets"}) {
    for (const char* name : {"", "-"}) {
      const Answer no = takt({"schedule", problem, option, name});
      EXPECT_EQ(no.code, 2) << option << " '" << name << "'";
      EXPECT_THAT(no.err, HasSubstr("expected the name of a file"));
      EXPECT_EQ(no.out, "");
    }
  }
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--html", "x.html"},
                                                {"--bundle", "x"},
                                                {"--certificate", "x"},
                                                {"--scale"},
                                                {"--time", "1"},
                                                {"--nodes", "5"},
                                                {"--seed", "2"},
                                                {"--baseline", "first-found"}}) {
    std::vector<std::string> arguments{"schedule", problem, "--check", path("none.json")};
    arguments.insert(arguments.end(), other.begin(), other.end());
    const Answer no = takt(arguments);
    EXPECT_EQ(no.code, 2) << other.front();
    EXPECT_THAT(no.err, HasSubstr(other.front()));
  }
  EXPECT_EQ(takt({"schedule", problem, "--nodes", "0"}).code, 2);
  EXPECT_EQ(takt({"schedule"}).code, 2);
}

TEST_F(Schedule, AnswersForAnotherBoardThanTheFileNames) {
  const std::string file = kRoot + "/configs/schedules/orin.yaml";
  const Answer agx = takt({"schedule", file});
  EXPECT_EQ(agx.code, 0) << agx.err;
  EXPECT_THAT(agx.out, HasSubstr("orin_agx"));
  const Answer nano = takt({"schedule", file, "--board", kRoot + "/configs/boards/orin_nano.yaml"});
  EXPECT_EQ(nano.code, 0) << nano.err;
  EXPECT_THAT(nano.out, HasSubstr("orin_nano"));
  EXPECT_THAT(nano.out, HasSubstr("gpu"));
  const Answer pipeline = takt({"schedule", kPipeline, "--board", kRoot + "/configs/boards/orin_nx.yaml"});
  EXPECT_EQ(pipeline.code, 0) << pipeline.err;
  EXPECT_THAT(pipeline.out, HasSubstr("orin_nx"));
  const Answer wrong = takt({"schedule", file, "--board", path("none.yaml")});
  EXPECT_EQ(wrong.code, 4) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("none.yaml"));
  const Answer without = takt({"schedule", file, "--board", kRoot + "/configs/boards/generic2.yaml"});
  EXPECT_EQ(without.code, 4) << without.err;
  EXPECT_THAT(without.err, HasSubstr("orin.yaml:"));
}

TEST_F(Schedule, ChecksABundleAndSaysWhatIsInIt) {
  const std::string file = path("modes.bundle");
  ASSERT_EQ(takt({"schedule", kRoot + "/configs/schedules/day_and_night.yaml", "--bundle", file}).code, 0);
  const Answer yes = takt({"schedule", "--check", file});
  EXPECT_EQ(yes.code, 0) << yes.err;
  const takt::Result<takt::pipeline::Bundle> bundle = takt::pipeline::load_bundle(file);
  ASSERT_TRUE(bundle);
  for (const char* text : {"ACCEPTED", "mode 'day' (a run begins here): hyperperiod 100.000 ms", "mode 'night'",
                           "change 'day' -> 'night', drain", "tightest limit:", "decided by"}) {
    EXPECT_THAT(yes.out, HasSubstr(text));
  }
  EXPECT_THAT(yes.out, HasSubstr(bundle->modes[1].schedule.hash().hex()));
  EXPECT_THAT(takt({"schedule", "--check", file, "--json"}).out, HasSubstr("\"accepted\": \"bundle\""));
  // What is of a pipeline would do nothing to it.
  for (const auto& [option, value] :
       {std::pair{"--what-if", std::string("fusion.rate=10")}, std::pair{"--budgets", path("b.yaml")},
        std::pair{"--model", std::string("camera=m.onnx")},
        std::pair{"--board", kRoot + "/configs/boards/orin_nx.yaml"},
        std::pair{"--target", std::string("cuda:sm_87")}}) {
    const Answer refused = takt({"schedule", "--check", file, option, value});
    EXPECT_EQ(refused.code, 2) << option;
    EXPECT_THAT(refused.err, HasSubstr(std::string("is a bundle, which holds its own problem: leave out ") + option));
  }
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  const Answer no = takt({"schedule", "--check", file});
  EXPECT_EQ(no.code, 3);
  EXPECT_EQ(no.out, "");
  EXPECT_EQ(takt({"schedule", kPipeline, "--check", file}).code, 2);
  EXPECT_EQ(takt({"schedule", "--check", path("none")}).code, 3);
}

TEST_F(Schedule, AFileThatCannotBeWrittenIsNoSuccess) {
  const std::string problem = kRoot + "/configs/schedules/day_and_night.yaml";
  for (const char* option : {"--html", "--bundle"}) {
    const Answer no = takt({"schedule", problem, option, path("no/such/folder")});
    EXPECT_EQ(no.code, 5) << option;
    EXPECT_THAT(no.out, HasSubstr("every mode and every permitted change is feasible"));  // the answer is not lost
    EXPECT_THAT(no.err, HasSubstr("no/such/folder"));
  }
  const Answer one =
      takt({"schedule", kRoot + "/configs/schedules/rates_30_20_10.yaml", "--bundle", path("no/such/folder")});
  EXPECT_EQ(one.code, 5);
  EXPECT_THAT(one.out, HasSubstr("FEASIBLE"));
}

// A proof or a bundle from before is never taken for one of this answer.
TEST_F(Schedule, SaysThatAFileIsFromBefore) {
  const std::string problem = kRoot + "/configs/schedules/textbook.yaml";
  ASSERT_EQ(takt({"schedule", problem, "--certificate", path("t.json")}).code, 1);
  const std::string before = slurp(path("t.json"));
  const Answer yes =
      takt({"schedule", kRoot + "/configs/schedules/textbook_variants.yaml", "--certificate", path("t.json")});
  EXPECT_EQ(yes.code, 0);
  EXPECT_THAT(yes.err, HasSubstr("no certificate"));
  EXPECT_THAT(yes.err, HasSubstr("t.json is from before and was left as it is"));
  EXPECT_EQ(slurp(path("t.json")), before);
  EXPECT_THAT(takt({"schedule", problem, "--bundle", path("t.json")}).err, HasSubstr("is from before"));
}

TEST_F(Schedule, TheFirstInterruptGivesWhatThereIs) {
  // Thousands of jobs: a table is found in a moment, and made better for minutes.
  std::ofstream problem(path("long.yaml"));
  problem << "name: long\nboard: " << kRoot << "/configs/boards/orin8.yaml\nhyperperiod_ms: 1000\n"
          << "sensors: [{name: s, rate_hz: 30, delay_ms: [1, 2]}]\nstages:\n";
  for (int i = 0; i < 400; ++i) {
    problem << "  - {name: s" << i << ", rate_hz: 10, inputs: [{name: i, sensor: s}],"
            << " variants: [{name: a, budgets: [{ms: 0.01}]}]}\n";
  }
  problem << "chains: [{name: c, path: [s, s0], limit_ms: {latency: 500}}]\n";
  problem.close();
  const pid_t pid = start({"schedule", path("long.yaml"), "--nodes", "4000000000", "--bundle", path("partial.bundle")});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(pid, SIGINT);
  const Answer partial = finish(pid);
  EXPECT_EQ(partial.code, 130) << partial.err;
  EXPECT_THAT(partial.out, HasSubstr("INTERRUPTED"));
  EXPECT_FALSE(std::filesystem::exists(path("partial.bundle")));
}

}  // namespace
