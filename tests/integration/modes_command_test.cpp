// What is asked of every mode's table at once: fewer cores for a stage.

#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/program.h"

namespace takt::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kModes = kRoot + "/configs/pipelines/sim_modes.yaml";
const std::string kDrive = kRoot + "/replay_data/city.mcap";

class Modes : public Program {
 protected:
  // A copy of a shipped pipeline with texts replaced, each once.
  [[nodiscard]] std::string edited(const std::string& name,
                                   const std::vector<std::pair<std::string, std::string>>& changes) const {
    std::string text = slurp(kRoot + "/configs/pipelines/" + name);
    for (const auto& [from, to] : changes) {
      const std::size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      if (at != std::string::npos) text.replace(at, from.size(), to);
    }
    const std::string configs = " " + kRoot + "/configs/";
    for (std::size_t at = 0; (at = text.find(" ../", at)) != std::string::npos;) text.replace(at, 4, configs);
    const std::string file = path(name);
    std::ofstream(file) << text;
    return file;
  }
  Answer replay(const std::string& pipeline, const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"replay", pipeline, kDrive, "-o", path(out), "--transport", "local", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  }
};

// On how many cores the tables of a run have a stage, mode by mode.
std::vector<std::size_t> cores_of(const std::string& folder, const std::string& stage) {
  const auto run = nlohmann::json::parse(slurp(folder + "/run.json")).at("run");
  std::size_t index = 0;
  while (run.at("problem").at("stages").at(index).at("name") != stage) ++index;
  std::vector<std::size_t> out;
  for (const auto& mode : run.at("modes")) {
    std::set<std::size_t> cores;
    for (const auto& slot : mode.at("schedule").at("slots")) {
      if (slot.at("stage") == index) cores.insert(slot.at("cores").size());
    }
    out.insert(out.end(), cores.begin(), cores.end());
  }
  return out;
}

const std::vector<std::string> kTwo{"--what-if", "lidar_detect.cores=2"};
const std::vector<std::string> kOneOfTwo{"--what-if", "lidar_detect.cores=2", "--gang", "lidar_detect=1"};

// The camera dies and comes back: one mode after the other, each with the gang that was asked for, and the same bytes.
TEST_F(Modes, TheSizeOfAGangChangesNoBytesInAnyMode) {
  for (const auto& [out, gang] : {std::pair{"two", kTwo}, {"one", kOneOfTwo}}) {
    std::vector<std::string> words = gang;
    words.insert(words.end(), {"--lockstep", "--faults", kRoot + "/configs/faults/mode_reference.yaml"});
    const Answer answer = replay(kModes, out, words);
    ASSERT_EQ(answer.code, 0) << answer.err;
  }
  EXPECT_EQ(cores_of(path("two"), "lidar_detect"), (std::vector<std::size_t>{2, 2, 2}));
  EXPECT_EQ(cores_of(path("one"), "lidar_detect"), (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_THAT(slurp(path("one/report.json")), HasSubstr("\"mode\": \"coasting\""));
  const Answer diff = takt({"diff", path("two"), path("one")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("outputs  equal"));
}

// In real time, through an overrun and two changes of mode, and then again from its records.
TEST_F(Modes, ARunWithASmallerGangIsReproduced) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  std::vector<std::string> words = kOneOfTwo;
  words.insert(words.end(), {"--faults", kRoot + "/configs/faults/mode_overrun.yaml"});
  const Answer answer = replay(kModes, "run", words);
  ASSERT_TRUE(answer.code == 0 || answer.code == 1) << answer.err;  // what else the machine did to it is not asked here
  EXPECT_THAT(slurp(path("run/report.json")), HasSubstr("\"mode\": \"lean\""));
  EXPECT_EQ(cores_of(path("run"), "lidar_detect"), (std::vector<std::size_t>{1, 1, 1}));
  const Answer again =
      takt({"replay", kModes, kDrive, "-o", path("again"), "--reproduce", path("run"), "--transport", "local"});
  EXPECT_EQ(again.code, answer.code) << again.err;
  EXPECT_THAT(again.out, HasSubstr("4 topics: 4 equal, 0 differ"));
}

// The mode is named, and the budget with its place and figures; nothing runs.
TEST_F(Modes, AGangThatDoesNotFitAModeIsRefused) {
  const auto refused = [&](const std::string& pipeline, const std::vector<std::string>& words) {
    Answer answer = replay(pipeline, "run", words);
    EXPECT_FALSE(std::filesystem::exists(path("run")));
    return answer;
  };
  const std::string budgets = "budgets: [{ cores: 1, ms: 10 }, { cores: 2, ms: 10 }]";
  const Answer longer = refused(
      edited("sim_modes.yaml", {{budgets, "budgets: [{ cores: 1, ms: 14 }, { cores: 2, ms: 10 }]"}}), kOneOfTwo);
  EXPECT_EQ(longer.code, 4);
  EXPECT_THAT(longer.err, ContainsRegex("mode 'day': .*sim_modes.yaml:37:[0-9]+: stage 'lidar_detect', variant 'full' "
                                        "on 1 core\\(s\\) needs 14.000 ms, its slots give 10.000 ms"));
  // One mode alone: it keeps a variant that has no such budget.
  const Answer alone =
      refused(edited("sim_modes.yaml",
                     {{"budgets: [{ cores: 1, ms: 6 }]", "budgets: [{ cores: 1, ms: 6 }, { cores: 2, ms: 6 }]"},
                      {"budgets: [{ cores: 1, ms: 4 }]", "budgets: [{ cores: 2, ms: 4 }]"}}),
              {"--what-if", "camera_detect.cores=2", "--gang", "camera_detect=1"});
  EXPECT_EQ(alone.code, 4);
  EXPECT_THAT(alone.err, ContainsRegex("mode 'lean': .*sim_modes.yaml:25:[0-9]+: stage 'camera_detect', variant 'lite' "
                                       "has no budget for 1 core"));
  // No table has more cores than it was made for.
  const Answer more = refused(kModes, {"--gang", "lidar_detect=2"});
  EXPECT_EQ(more.code, 4);
  EXPECT_THAT(more.err, HasSubstr("mode 'day'"));
  EXPECT_THAT(more.err, HasSubstr("has slots on 1 core(s), fewer than the 2 asked for"));
  const Answer typo = refused(kModes, {"--gang", "lidr_detect=1"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.err, HasSubstr("did you mean 'lidar_detect'?"));
  const Answer twice = refused(kModes, {"--gang", "lidar_detect=1", "--gang", "lidar_detect=1"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("stage 'lidar_detect' is given twice"));
  // The pipeline has it, and no mode runs it: said by whoever is asked about it.
  const std::string spare =
      "  - name: camera_spare\n    type: camera_network\n    rates_hz: [10]\n    inputs:\n      - { name: image, "
      "sensor: camera_front }\n    variants:\n      - { name: full, model: ../models/sim_camera_full.yaml, budgets: [{ "
      "cores: 1, ms: 6 }] }\n    overrun: continue_late\n    slack_ms: 2\n    params: {}\n\n";
  const std::string pipeline = edited(
      "sim_modes.yaml",
      {{"  - name: radar_detect\n", spare + "  - name: radar_detect\n"},
       {"    lost: coasting\n    dwell_ms: 500\n  - name: lean",
        "    lost: coasting\n    dwell_ms: 500\n    stages: [{ name: camera_detect }, { name: lidar_detect }, { name: "
        "radar_detect }, { name: fusion }]\n  - name: lean"}});
  const Answer idle = refused(pipeline, {"--gang", "camera_spare=1"});
  EXPECT_EQ(idle.code, 2);
  EXPECT_THAT(idle.err, HasSubstr("no mode runs stage 'camera_spare'"));
  const Answer schedule = takt({"schedule", pipeline});
  EXPECT_EQ(schedule.code, 0) << schedule.err;
  EXPECT_THAT(schedule.out, HasSubstr("no mode runs stage 'camera_spare'"));
}

// A what-if on cores leaves out variants that are not for so many; the table means the same ones afterwards.
TEST_F(Modes, ASmallerGangRunsTheVariantOfTheTable) {
  const std::string full = "      - { name: full, model: ../models/sim_camera_full.yaml";
  const std::string lite =
      "      - { name: lite, model: ../models/sim_camera_lite.yaml, budgets: [{ cores: 1, ms: 4 }] }\n";
  const std::string pipeline = edited("sim.yaml", {{lite, ""}, {full, lite + full}});
  ASSERT_EQ(replay(pipeline, "two", {"--lockstep", "--what-if", "camera_detect.cores=2"}).code, 0);
  ASSERT_EQ(
      replay(pipeline, "one", {"--lockstep", "--what-if", "camera_detect.cores=2", "--gang", "camera_detect=1"}).code,
      0);
  const Answer diff = takt({"diff", path("two"), path("one")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("outputs  equal"));
}

}  // namespace
}  // namespace takt::test
