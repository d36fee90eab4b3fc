// The shipped fault scenarios on the shipped drive, as a person runs them: each must be borne as its file says, on
// whatever machine and under whatever load. No times are asserted here; the files assert classes, verdicts and
// recovery.

#include <gmock/gmock.h>
#include <algorithm>

#include "tests/integration/program.h"

namespace takt::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRoot = TAKT_SOURCE_DIR;

std::vector<std::string> scenarios() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kRoot + "/configs/faults")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().stem());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Faults : public Program, public ::testing::WithParamInterface<std::string> {
 protected:
  Answer replay(const std::string& file, const std::vector<std::string>& more,
                const std::string& pipeline = "sim") const {
    std::vector<std::string> words{"replay",
                                   kRoot + "/configs/pipelines/" + pipeline + ".yaml",
                                   kRoot + "/replay_data/city.mcap",
                                   "-o",
                                   path("run"),
                                   "--faults",
                                   file};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  }
  // The same until the fault struck and no output was lost: a loaded machine may take the very job that was to fail, or
  // the recorder's time.
  Answer replay_undisturbed(const std::string& file, const std::vector<std::string>& more,
                            const std::string& pipeline) const {
    for (int left = 4;; --left) {
      Answer answer = replay(file, more, pipeline);
      const bool taken = answer.err.find("the fault strikes: ") != std::string::npos;
      const bool lost = fs::exists(path("run/run.json")) &&
                        slurp(path("run/run.json")).find("\"lost_outputs\": 0") == std::string::npos;
      if (left == 0 || (!taken && !lost)) return answer;
      fs::remove_all(path("run"));
    }
  }
};

TEST_P(Faults, AreBorneAsTheFileSays) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const std::string file = kRoot + "/configs/faults/" + GetParam() + ".yaml";
  const bool needs_processes = slurp(file).find("process: kill_") != std::string::npos;
  const bool modes = GetParam().rfind("mode_", 0) == 0, device = GetParam().rfind("device_", 0) == 0;
  std::vector<std::string> more{"--transport", needs_processes ? "iceoryx" : "local"};
  if (device) {
    for (const char* word : {"--device", "cuda-host", "--lockstep", "--duration", "1"}) more.emplace_back(word);
  }
  const Answer answer = replay_undisturbed(file, more, modes ? "sim_modes" : device ? "sim_device" : "sim");
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("expectations met"));
}

INSTANTIATE_TEST_SUITE_P(Shipped, Faults, ::testing::ValuesIn(scenarios()),
                         [](const auto& test) { return test.param; });

TEST_F(Faults, WhatIsNotMetIsSaidAndIsAFailedGate) {
  const std::string file = path("wrong.yaml");
  std::ofstream(file) << "{name: wrong, what: nothing is dropped, faults: [], expect: {exit: 0, messages: "
                         "{camera_front: {gaps: 3}}}}";
  const Answer answer = replay(file, {"--transport", "local", "--lockstep", "-q"});
  EXPECT_EQ(answer.code, 1) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("fault 'wrong': messages of camera_front, gaps: expected 3, seen 0"));
  EXPECT_THAT(slurp(path("run/report.json")), HasSubstr("\"met\": false"));
  const std::string page = slurp(path("run/report.html"));
  EXPECT_THAT(page, HasSubstr("NOT as expected"));
  // The first screen, the terminal, and what a build server reads.
  EXPECT_THAT(page, HasSubstr("<span class=\"badge\">FAIL</span>"));
  EXPECT_THAT(page, HasSubstr("Injected faults</a> wrong: 2 of 3 expectations met."));
  const std::string cases = slurp(path("run/junit.xml"));
  EXPECT_THAT(cases, HasSubstr("<testcase classname=\"fault 'wrong'\" name=\"messages of camera_front, gaps\">"
                               "<failure message=\"expected 3, seen 0\"/>"));
  EXPECT_THAT(cases, HasSubstr("name=\"exit code of the run\"><system-out>expected 0, seen 0</system-out>"));
  const Answer report = takt({"report", path("run")});
  EXPECT_EQ(report.code, 1);
  EXPECT_THAT(report.out,
              HasSubstr("verdict  FAIL: fault 'wrong', messages of camera_front, gaps: expected 3, seen 0"));
  EXPECT_THAT(report.out, HasSubstr("faults   wrong: 2 of 3 expectations met"));
}

TEST_F(Faults, StagesCannotBeMadeToFailInLockstep) {
  const Answer answer = replay(kRoot + "/configs/faults/overrun_2x.yaml", {"--transport", "local", "--lockstep"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("leave it out"));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(Faults, SensorFaultsInLockstepGiveTheSameBytesTwice) {
  const std::string file = kRoot + "/configs/faults/corrupt.yaml";
  const std::vector<std::string> options{"--transport", "local", "--lockstep", "-q", "--save-digests"};
  for (const char* name : {"a", "b"}) {
    std::vector<std::string> more = options;
    more.push_back(path(name));
    EXPECT_EQ(replay(file, more).code, 0);
  }
  EXPECT_EQ(slurp(path("a")), slurp(path("b")));
  EXPECT_NE(slurp(path("a")), slurp(kRoot + "/replay_data/digests.json"));
}

// No later frame shows the gap, and no sample stands for the frames: said nevertheless.
TEST_F(Faults, ASensorThatStaysDeadIsNotHidden) {
  const std::string file = path("dead.yaml");
  std::ofstream(file)
      << "{name: dead, what: the camera dies, expect: {exit: 0, messages: {camera_front: {gaps: [85, "
         "87]}, lidar_top: {gaps: 0}}}, faults: [{sensor: camera_front, kind: drop, from_s: 0.1, for_s: 10}]}";
  const Answer answer = replay(file, {"--transport", "local", "--lockstep"});
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("camera age at output "), HasSubstr(" held (sample gap; up to 3128")));
  EXPECT_THAT(answer.out, HasSubstr("; of reactions and ages "));
  EXPECT_THAT(answer.out, HasSubstr("frames missing"));
}

// Every kind of damaged samples at once, and a stage that overruns: the folder is enough to have its bytes again.
TEST_F(Faults, ARunWithDamagedSamplesIsReproduced) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const std::string file = path("all.yaml");
  std::ofstream(file) << R"(name: all
what: everything at once
faults:
  - { sensor: camera_front, kind: drop, every: 3, from_s: 0.5, for_s: 0.5 }
  - { sensor: camera_front, kind: corrupt, every: 4, from_s: 1, for_s: 0.5 }
  - { sensor: camera_front, kind: reorder, every: 5, from_s: 1.5, for_s: 0.5 }
  - { sensor: radar_front, kind: late, by_ms: 60, from_s: 0.5, for_s: 0.5 }
  - { sensor: radar_front, kind: duplicate, every: 2, from_s: 1.2, for_s: 0.5 }
  - { sensor: radar_front, kind: clock_drift, ppm: -20000, from_s: 2, for_s: 0.5 }
  - { sensor: lidar_top, kind: clock_step, by_ms: -30, from_s: 1, for_s: 1 }
  - { stage: lidar_detect, job: 7, budgets: 2 }
expect: { exit: 0 }
)";
  ASSERT_EQ(replay(file, {"--transport", "local"}).code, 0) << slurp(path("err"));
  fs::remove(file);  // the folder alone is needed
  const std::vector<std::string> base{"replay", kRoot + "/configs/pipelines/sim.yaml", kRoot + "/replay_data/city.mcap",
                                      "--transport", "local"};
  const auto again = [&](const std::string& run, const std::string& out) {
    std::vector<std::string> words = base;
    words.insert(words.end(), {"--reproduce", path(run), "-o", path(out)});
    return takt(words);
  };
  for (const auto& [run, out] : {std::pair("run", "again"), std::pair("again", "third")}) {
    const Answer answer = again(run, out);
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("4 topics: 4 equal, 0 differ"));
  }
  // Without the faults the same records give other bytes: the samples differ.
  std::string manifest = slurp(path("run/run.json"));
  const std::size_t at = manifest.find("kind: corrupt");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, 13, "kind: drop");
  std::ofstream(path("run/run.json")) << manifest;
  EXPECT_THAT(again("run", "other").out, HasSubstr("differ"));
}

TEST_F(Faults, ThatNeverStrikeAreRefusedOrNotMet) {
  const std::string file = path("never.yaml");
  std::ofstream(file) << R"(name: never
what: nothing of this can happen
faults:
  - { stage: radar_detect, job: 4000, budgets: 2 }
  - { sensor: radar_front, kind: drop, from_s: 9, for_s: 1 }
  - { process: stop, at_s: 70, for_ms: 3 }
expect: { exit: 0 }
)";
  const Answer answer = replay(file, {"--transport", "local"});
  EXPECT_EQ(answer.code, 4);
  EXPECT_THAT(answer.err, HasSubstr("never.yaml:4:5: this fault never strikes: the run ends with job 63 of radar"));
  EXPECT_THAT(answer.err, HasSubstr("never.yaml:5:5: this fault never strikes: the log lasts 3.0"));
  EXPECT_THAT(answer.err, HasSubstr("never.yaml:6:5: this fault never strikes: the run lasts 3.2"));
  EXPECT_FALSE(fs::exists(path("run")));
  // What the log alone shows: there are not so many messages in the window.
  std::ofstream(file) << "{name: never, what: w, expect: {exit: 0}, faults: [{sensor: radar_front, kind: drop, every: "
                         "900, from_s: 1, for_s: 1}]}";
  const Answer few = replay(file, {"--transport", "local", "--lockstep", "-q"});
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.err, HasSubstr("the fault strikes: radar_front: drop"));
}

TEST_F(Faults, OfOtherProcessesNeedIceoryx) {
  for (const char* name : {"kill_client", "kill_roudi"}) {
    const Answer answer = replay(kRoot + "/configs/faults/" + name + ".yaml", {"--transport", "local"});
    EXPECT_EQ(answer.code, 2) << name;
    EXPECT_THAT(answer.err, HasSubstr("--transport iceoryx"));
    EXPECT_FALSE(fs::exists(path("run")));
  }
}

TEST_F(Faults, ARunWithChangesOfModeIsReportedAndReproduced) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  // It ends within its slot: no other program can keep it from its core, and the way back comes in time.
  const std::string file = path("mode.yaml");
  std::ofstream(file) << "{name: mode, what: an overrun leads into the lean mode, expect: {exit: 0, modes: [day, lean, "
                         "day]}, faults: [{stage: lidar_detect, job: 7, budgets: 1.1}]}";
  const Answer answer = replay_undisturbed(file, {"--transport", "local", "-q"}, "sim_modes");
  EXPECT_EQ(answer.code, 0) << answer.err;
  const std::string json = slurp(path("run/report.json"));
  EXPECT_THAT(json, HasSubstr("\"cause\": \"overrun\""));
  EXPECT_THAT(json, HasSubstr("\"mode\": \"lean\""));
  EXPECT_THAT(json, HasSubstr("\"cause\": \"recovered\""));
  EXPECT_THAT(slurp(path("run/report.html")), HasSubstr("<section id=\"modes\">"));
  EXPECT_THAT(slurp(path("run/trace.pftrace")), HasSubstr("what led into 'lean' is over"));
  const Answer again = takt({"replay", kRoot + "/configs/pipelines/sim_modes.yaml", kRoot + "/replay_data/city.mcap",
                             "-o", path("again"), "--reproduce", path("run"), "--transport", "local"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("4 topics: 4 equal, 0 differ"));
}

// Equal bytes make no run better than it was.
TEST_F(Faults, AReproductionEndsWithTheVerdictOfItsRun) {
  const auto again = [&] {
    return takt({"replay", kRoot + "/configs/pipelines/sim.yaml", kRoot + "/replay_data/city.mcap", "-o", path("again"),
                 "--reproduce", path("run"), "--transport", "local"});
  };
  // It did not bear its fault as the file says.
  const std::string file = path("unmet.yaml");
  std::ofstream(file) << "{name: unmet, what: w, expect: {exit: 0, messages: {camera_front: {gaps: 77}}}, faults: "
                         "[{sensor: camera_front, kind: drop, every: 3, from_s: 1, for_s: 1}]}";
  EXPECT_EQ(replay(file, {"--transport", "local", "--lockstep", "-q"}).code, 1);
  Answer answer = again();
  EXPECT_EQ(answer.code, 1) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("4 topics: 4 equal, 0 differ"));
  EXPECT_THAT(slurp(path("again/report.json")),
              HasSubstr("FAIL: fault 'unmet', messages of camera_front, gaps: expected 77, seen"));
  const std::string page = slurp(path("again/report.html"));
  EXPECT_THAT(page, HasSubstr("The decisions of the run in <b>" + path("run") + "</b> once more"));
  EXPECT_THAT(page, HasSubstr("that run was FAIL. It had the <a href=\"#faults\">injected faults</a> <b>unmet</b>"));
#ifndef TAKT_SANITIZED
  // A stage never came back, as the file expected it: the run was borne, and its verdict is FAIL.
  fs::remove_all(path("run"));
  answer = replay_undisturbed(kRoot + "/configs/faults/hang.yaml", {"--transport", "local", "-q"}, "sim");
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(takt({"report", path("run")}).code, 0) << "as the run ended: it bore its fault";
  answer = again();
  EXPECT_EQ(answer.code, 1) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("4 topics: 4 equal, 0 differ"));
  const std::string json = slurp(path("again/report.json"));
  EXPECT_THAT(json, HasSubstr("comes back"));
  EXPECT_THAT(json, HasSubstr("verdict of the run that is repeated"));
#endif
}

// A mode that is entered because the camera is lost does not need to look at it: that it is back is seen all the same.
TEST_F(Faults, TheReferenceIsSeenToComeBackByAModeThatDoesNotRunItsStage) {
  std::string text = slurp(kRoot + "/configs/pipelines/sim_modes.yaml");
  for (std::size_t at = 0; (at = text.find(" ../", at)) != std::string::npos;) {
    text.replace(at, 4, " " + kRoot + "/configs/");
  }
  const std::string coasting = text.substr(text.find("- name: coasting"));
  const std::string stage = "      - { name: camera_detect, rates_hz: [10], variants: [lite] }\n";
  ASSERT_NE(coasting.find(stage), std::string::npos);
  text.erase(text.find("- name: coasting") + coasting.find(stage), stage.size());
  std::ofstream(path("modes.yaml")) << text;
  for (const char* const out : {"first", "second"}) {
    const Answer answer = takt({"replay", path("modes.yaml"), kRoot + "/replay_data/city.mcap", "-o", path(out),
                                "--transport", "local", "--lockstep", "--faults",
                                kRoot + "/configs/faults/mode_reference.yaml", "--save-digests", path(out) + ".json"});
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("expectations met"));
  }
  EXPECT_EQ(slurp(path("first.json")), slurp(path("second.json")));
}

// Samples count although the only stage that reads them is stuck: the sensor is there.
TEST_F(Faults, AStageThatNeverEndsDoesNotHideTheReference) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const std::string file = path("stuck.yaml");
  std::ofstream(file) << "{name: stuck, what: the camera's stage never ends, expect: {exit: 0}, faults: [{stage: "
                         "camera_detect, job: 10, endless: true}]}";
  const Answer modes = replay_undisturbed(file, {"--transport", "local"}, "sim_modes");
  EXPECT_THAT(slurp(path("run/report.json")), Not(HasSubstr("\"cause\": \"reference lost"))) << modes.err;
  // The same without modes: corrections go on, no boundary is told to be without the reference.
  std::string text = slurp(kRoot + "/configs/pipelines/sim_modes.yaml");
  for (std::size_t at = 0; (at = text.find(" ../", at)) != std::string::npos;) {
    text.replace(at, 4, " " + kRoot + "/configs/");
  }
  text.erase(text.find("\nmodes:\n") + 1);
  const std::string degrades = "overrun: degrade\n    degrade_to: { mode: lean }\n";
  ASSERT_NE(text.find(degrades), std::string::npos);
  text.replace(text.find(degrades), degrades.size(), "overrun: continue_late\n");
  std::ofstream(path("locked.yaml")) << text;
  const Answer locked = takt({"replay", path("locked.yaml"), kRoot + "/replay_data/city.mcap", "-o", path("locked"),
                              "--transport", "local", "--faults", file});
  EXPECT_THAT(locked.out, HasSubstr("expectations met")) << locked.err;
  EXPECT_THAT(slurp(path("locked/report.json")), Not(HasSubstr("silent for longer")));
}

// Not of when the run began: threads and memory are made ready before its table is.
TEST_F(Faults, AProcessIsStoppedAtItsInstantOfTheTable) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const std::string file = path("stop.yaml");
  std::ofstream(file) << "{name: stop, what: w, expect: {exit: 0}, faults: [{process: stop, at_s: 0.6, for_ms: 100}]}";
  for (const double rate : {1.0, 0.5}) {
    (void)replay(file, {"--transport", "local", "--duration", "1", "--rate", rate == 1 ? "1" : "0.5"});
    const std::string json = slurp(path("run/report.json"));
    const std::size_t stopped = json.find("\"kind\": \"process stopped\"");
    ASSERT_NE(stopped, std::string::npos);
    const std::string key = "\"to_ns\": ";
    // A loaded machine may let SIGCONT come later, nothing before its time.
    const double continued = std::stod(json.substr(json.find(key, stopped) + key.size())) * 1e-9;
    EXPECT_GE(continued, 0.6 + 0.1 * rate) << "rate " << rate;
    fs::remove_all(path("run"));
  }
}

// What a mode promises must be possible in it: refused by all who read the file, with its place.
TEST_F(Faults, ModesThatCannotWorkAreRefusedAlike) {
  const std::string shipped = slurp(kRoot + "/configs/pipelines/sim_modes.yaml");
  const auto expect_refused = [&](const std::string& from, const std::string& to, const std::string& why) {
    std::string text = shipped;
    const std::size_t at = text.rfind(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    for (std::size_t i = 0; (i = text.find(" ../", i)) != std::string::npos;) {
      text.replace(i, 4, " " + kRoot + "/configs/");
    }
    std::ofstream(path("modes.yaml")) << text;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"schedule", path("modes.yaml")},
          {"schedule", path("modes.yaml"), "--bundle", path("run.bundle")},
          {"replay", path("modes.yaml"), kRoot + "/replay_data/city.mcap", "-o", path("run"), "--lockstep"}}) {
      const Answer answer = takt(words);
      EXPECT_EQ(answer.code, 4) << words[0] << ' ' << to;
      EXPECT_THAT(answer.err, ::testing::ContainsRegex("modes.yaml:[0-9]+:[0-9]+: "));
      EXPECT_THAT(answer.err, HasSubstr(why));
      EXPECT_FALSE(fs::exists(path("run.bundle")) || fs::exists(path("run")));
    }
  };
  expect_refused("    locked: false\n", "",
                 "mode 'coasting': it is where 'day' goes when sensor 'camera_front' is lost, "
                 "and its own table is locked to a sensor; say 'locked: false'");
  expect_refused(", without: [camera]", "", "and its chain 'camera' begins there");
  expect_refused("without: [camera]", "without: [camera, lidar, radar]",
                 "has no object list to fuse; connect at least one detection stage, or leave the stage out");
  expect_refused("without: [camera]", "without: [camera, lidar, radar, ego]",
                 "'fusion' has no input left in this mode");
  expect_refused("name: coasting\n", "name: lean\n", "there is already a mode named 'lean'");
}

TEST_F(Faults, UnknownNamesInTheFileAreAConfigurationError) {
  const std::string file = path("unknown.yaml");
  std::ofstream(file)
      << "name: u\nwhat: w\nfaults:\n  - {stage: radar_detectt, job: 1, budgets: 2}\nexpect: {exit: 0}\n";
  const Answer answer = replay(file, {"--transport", "local"});
  EXPECT_EQ(answer.code, 4);
  EXPECT_THAT(answer.err, HasSubstr("unknown.yaml:4:"));
  EXPECT_THAT(answer.err, HasSubstr("did you mean 'radar_detect'?"));
}

}  // namespace
}  // namespace takt::test
