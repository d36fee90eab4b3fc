// `takt replay --device` as a person meets it.
#include <gmock/gmock.h>

#include "tests/integration/program.h"

namespace takt::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;

class DeviceCommand : public Program {
 protected:
  [[nodiscard]] Answer replay(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"replay",
                                   kRoot + "/configs/pipelines/sim.yaml",
                                   kRoot + "/replay_data/city.mcap",
                                   "-o",
                                   path("run"),
                                   "--lockstep",
                                   "--duration",
                                   "0.2",
                                   "--transport",
                                   "local"};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  }
};

TEST_F(DeviceCommand, TheHarnessGivesTheDigestsOfTheCores) {
  ASSERT_EQ(replay({"-q", "--save-digests", path("cores")}).code, 0);
  const Answer device = replay({"--device", "cuda-host", "--save-digests", path("device")});
  ASSERT_EQ(device.code, 0) << device.err;
  EXPECT_EQ(slurp(path("cores")), slurp(path("device")));
  EXPECT_THAT(slurp(path("run/report.html")), HasSubstr("graphs ran on device cuda-host (plans for cuda:sm_87)"));
  // Copies by the device's engine are no copies by timed threads: the gate of zero copy holds.
  EXPECT_EQ(replay({"-q", "--device", "cuda-host", "--device-memory", "copied", "--save-digests", path("copied")}).code,
            0);
  EXPECT_EQ(slurp(path("cores")), slurp(path("copied")));
}

TEST_F(DeviceCommand, ATableWithSegmentsIsShownAndReproduced) {
  const auto segments = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"replay",
                                   kRoot + "/configs/pipelines/sim_segments.yaml",
                                   kRoot + "/replay_data/city.mcap",
                                   "-q",
                                   "--lockstep",
                                   "--transport",
                                   "local"};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  };
  const Answer device =
      segments({"-o", path("run"), "--duration", "0.2", "--device", "cuda-host", "--save-digests", path("device")});
  ASSERT_EQ(device.code, 0) << device.err;
  ASSERT_EQ(segments({"-o", path("cores"), "--duration", "0.2", "--save-digests", path("of-cores")}).code, 0);
  EXPECT_EQ(slurp(path("device")), slurp(path("of-cores")));
  EXPECT_THAT(slurp(path("run/report.html")), HasSubstr("segment 2 of 3 ran 6.00 ms"));
  // From its folder: the same picture, and the same bytes once more.
  std::filesystem::remove(path("run/report.html"));
  EXPECT_EQ(takt({"report", path("run")}).code, 0);
  EXPECT_THAT(slurp(path("run/report.html")), HasSubstr("segment 2 of 3 ran 6.00 ms"));
  const Answer repeated = segments({"-o", path("repeated"), "--device", "cuda-host", "--reproduce", path("run")});
  EXPECT_EQ(repeated.code, 0) << repeated.err;
}

// What a refusal of other segments points to.
TEST_F(DeviceCommand, WhereAStagesPlanIsCutCanBeSeen) {
  const std::string segments = kRoot + "/configs/pipelines/sim_segments.yaml";
  const Answer compiled =
      takt({"compile", segments, "--stage", "camera_detect/full", "--target", "cuda:sm_87", "-o", path("camera.plan")});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  const Answer shown = takt(
      {"plan", "show", path("camera.plan"), "--board", kRoot + "/configs/boards/orin_nano.yaml", "--guard-ms", "0.3"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("a guard of 0.300 ms: 3 segments, the longest"));
  EXPECT_THAT(shown.out, HasSubstr("segment 1: from step 0, "));
  EXPECT_THAT(shown.out, HasSubstr("segment 3: from step "));
  EXPECT_EQ(takt({"compile", segments, "--stage", "fusion", "--target", "cpu:neon", "-o", path("none.plan")}).code, 2);
  // Nor is it measured on the cores what has slots on a device.
  const Answer profiled = takt({"profile", segments, "-o", path("budgets.yaml")});
  EXPECT_EQ(profiled.code, 4);
  EXPECT_THAT(profiled.err, HasSubstr("name the device with --device"));
}

// A budget is judged where it is used: each segment by itself.
TEST_F(DeviceCommand, ProfilesAreJudgedSegmentBySegment) {
  std::string text = slurp(kRoot + "/configs/pipelines/sim_copies.yaml");
  const auto put = [&text](const std::string& what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
      text.replace(at, what.size(), by);
    }
  };
  put("../", kRoot + "/configs/");
  // The camera's would take a minute.
  put("model: " + kRoot + "/configs/models/sim_camera_full.yaml", "type: camera_classical");
  const std::size_t begin = text.find("          - cores: 1\n            segments:");
  text.replace(begin, text.find("    overrun:", begin) - begin, "          - { cores: 1, ms: 6 }\n");
  std::ofstream(path("copies.yaml")) << text;
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"profile", path("copies.yaml"), "--device", "cuda-host", "--device-memory",
                                   "copied",  "--samples",         "10",       "--beside",  "alone"};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  };
  const Answer measured = profile({"-o", path("budgets.yaml")});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("of the device's time"));
  const std::string budgets = slurp(path("budgets.yaml"));
  EXPECT_THAT(budgets, HasSubstr("segments_ms: ["));
  const Answer judged = profile({"--against", path("budgets.yaml")});
  EXPECT_THAT(judged.code, AnyOf(0, 1)) << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("segment 2 (h2d)  budget "));
  EXPECT_THAT(judged.out, HasSubstr("segment 3 (gpu)  budget "));
  // Of whole jobs they say nothing.
  const std::size_t line = budgets.find("    segments_ms:");
  std::ofstream(path("whole.yaml")) << budgets.substr(0, line) << budgets.substr(budgets.find('\n', line) + 1);
  const Answer whole = profile({"--against", path("whole.yaml")});
  EXPECT_EQ(whole.code, 4);
  EXPECT_THAT(whole.err,
              HasSubstr("budgets give one time for variant 'full' of stage 'fusion', whose jobs have 5 segments"));
}

// Whether budgets fit what a GPU is given to do, where there is none.
TEST_F(DeviceCommand, ATableForAGpuIsPlannedWithoutOne) {
  const auto schedule = [this](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words{"schedule", kRoot + "/configs/" + file};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  };
  EXPECT_EQ(schedule("pipelines/sim_segments.yaml", {"--target", "cuda:sm_87"}).code, 0);
  EXPECT_EQ(schedule("pipelines/sim_copies.yaml", {"--target", "cuda:sm_90"}).code, 0);
  const Answer in_place =
      schedule("pipelines/sim_copies.yaml", {"--target", "cuda:sm_90", "--device-memory", "in-place"});
  EXPECT_EQ(in_place.code, 4);
  EXPECT_THAT(in_place.err, HasSubstr("nothing is copied on 'h2d'"));
  EXPECT_EQ(schedule("pipelines/sim_segments.yaml", {"--target", "cuda:sm_78"}).code, 2);
  EXPECT_EQ(schedule("pipelines/sim_segments.yaml", {"--device-memory", "copied"}).code, 2);
  EXPECT_EQ(schedule("schedules/gpu_segments.yaml", {"--target", "cuda:sm_87"}).code, 2);
}

// A name that means nothing is a mistake; a GPU that is not there is what this machine lacks.
TEST_F(DeviceCommand, ADeviceThatIsNotThereIsToldInWords) {
  const Answer typo = replay({"--device", "cuda-hots"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.err, HasSubstr("no device is called 'cuda-hots'; did you mean 'cuda-host'?"));
  const Answer alone = replay({"--device-memory", "copied"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("name it with --device"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  const Answer many = replay({"--device", "cuda:4711"});
  EXPECT_EQ(many.code, 5);
  EXPECT_THAT(many.err, HasSubstr("leave --device out to run on the CPU"));
  EXPECT_THAT(many.err, AnyOf(HasSubstr("no GPU can be used"), HasSubstr("there is no GPU 4711"),
                              HasSubstr("built without a CUDA toolkit")));
}

TEST_F(DeviceCommand, FaultsOfDevicesNeedADevice) {
  const Answer none = replay({"--faults", kRoot + "/configs/faults/device_refuses.yaml"});
  EXPECT_EQ(none.code, 2) << none.err;
  EXPECT_THAT(none.err, HasSubstr("this run has no device that could fail"));
  // Nor does one fail a stage that has no graph on it.
  std::ofstream(path("radar.yaml"))
      << "{name: n, what: w, expect: {exit: 0}, faults: [{device: lose, stage: radar_detect, job: 1}]}";
  const Answer other = replay({"--device", "cuda-host", "--faults", path("radar.yaml")});
  EXPECT_EQ(other.code, 4) << other.err;
  EXPECT_THAT(other.err, HasSubstr("radar.yaml:1:"));
  EXPECT_THAT(other.err, HasSubstr("no variant of stage 'radar_detect' runs on the device"));
}

TEST_F(DeviceCommand, ALostDeviceEndsASupervisedProcessAndAnotherOneGoesOn) {
  std::ofstream(path("lost.yaml"))
      << "{name: lost, what: w, expect: {exit: 0}, faults: [{device: lose, stage: camera_detect, job: 1}]}";
  const Answer answer = replay({"--supervise", "--device", "cuda-host", "--faults", path("lost.yaml")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("because its device was lost; it is started again"));
  const std::string log = slurp(path("run/supervision.json"));
  EXPECT_THAT(log, HasSubstr("its device was lost"));
  EXPECT_THAT(log, HasSubstr("\"restarts\": 1"));
  EXPECT_THAT(log, HasSubstr("\"exit_code\": 0"));
  // What the first process did not bear as expected, the second one does not make good.
  std::ofstream(path("lost.yaml")) << "{name: lost, what: w, expect: {exit: 0, messages: {camera_front: {gaps: 77}}}, "
                                      "faults: [{device: lose, stage: camera_detect, job: 1}]}";
  const Answer unmet = replay({"--supervise", "--device", "cuda-host", "--faults", path("lost.yaml")});
  EXPECT_EQ(unmet.code, 1) << unmet.err;
  EXPECT_THAT(slurp(path("run/supervision.json")), HasSubstr("\"exit_code\": 1"));
}

}  // namespace
}  // namespace takt::test
