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
  Answer replay(const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"replay",
                                   kRoot + "/configs/pipelines/sim.yaml",
                                   kRoot + "/replay_data/city.mcap",
                                   "-o",
                                   path("run"),
                                   "--faults",
                                   file};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  }
};

TEST_P(Faults, AreBorneAsTheFileSays) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const std::string file = kRoot + "/configs/faults/" + GetParam() + ".yaml";
  const bool needs_processes = slurp(file).find("process: kill_") != std::string::npos;
  const Answer answer = replay(file, {"--transport", needs_processes ? "iceoryx" : "local"});
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
  EXPECT_THAT(slurp(path("run/report.html")), HasSubstr("NOT as expected"));
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

TEST_F(Faults, UnknownNamesInTheFileAreAConfigurationError) {
  const std::string file = path("unknown.yaml");
  std::ofstream(file)
      << "name: u\nwhat: w\nfaults:\n  - {stage: radar_detectt, job: 1, budgets: 2}\nexpect: {exit: 0}\n";
  const Answer answer = replay(file, {"--transport", "local"});
  EXPECT_EQ(answer.code, 4);
  EXPECT_THAT(answer.err, HasSubstr("unknown.yaml:4:"));
}

}  // namespace
}  // namespace takt::test
