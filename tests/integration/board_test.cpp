// takt-board: what it loads, and that a bundle run there gives the bytes of its pipeline run here.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/integration/program.h"

namespace takt::test {
namespace {

using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kPipeline = kRoot + "/configs/pipelines/sim.yaml";
const std::string kDrive = kRoot + "/replay_data/city.mcap";

class Board : public Program {
 protected:
  [[nodiscard]] Answer board(const std::vector<std::string>& arguments) const {
    return finish(start(arguments, TAKT_BOARD));
  }
  [[nodiscard]] std::string bundle() const {
    const std::string file = path("sim.bundle");
    const Answer answer = takt({"schedule", kPipeline, "--bundle", file});
    EXPECT_EQ(answer.code, 0) << answer.err;
    return file;
  }
};

// Without the version behind ".so".
std::string library(const std::string& word) { return word.substr(0, word.find(".so")); }

TEST_F(Board, LoadsOnlyWhatABoardHas) {
  // C and C++; transport; digests and text; codecs of logs and pictures.
  const std::set<std::string> allowed{"linux-vdso",
                                      "libc",
                                      "libm",
                                      "libstdc++",
                                      "libgcc_s",
                                      "libiceoryx_hoofs",
                                      "libiceoryx_platform",
                                      "libiceoryx_posh",
                                      "libiceoryx_posh_roudi",
                                      "libacl",
                                      "libxxhash",
                                      "libfmt",
                                      "liblz4",
                                      "libzstd",
                                      "libz",
                                      "libbz2",
                                      "libsqlite3",
                                      "libjpeg",
                                      "libpng16"};
  const Answer answer = finish(start({TAKT_BOARD}, "/usr/bin/ldd"));
  ASSERT_EQ(answer.code, 0) << answer.err;
  std::istringstream lines(answer.out);
  std::size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    std::string word;
    std::istringstream(line) >> word;
    if (word.find("ld-linux") != std::string::npos) continue;
    ++seen;
    EXPECT_TRUE(allowed.contains(library(word))) << word << " is nothing that takt-board may load";
  }
  EXPECT_GE(seen, 8U) << answer.out;
}

TEST_F(Board, GivesTheBytesOfThePipelineThatWasBundled) {
  const std::vector<std::string> common{"--lockstep", "--transport", "local", "--duration", "1"};
  std::vector<std::string> here{"replay", kPipeline, kDrive, "-o", path("here"), "-q"};
  here.insert(here.end(), common.begin(), common.end());
  ASSERT_EQ(takt(here).code, 0);
  std::vector<std::string> there{bundle(), kDrive, "-o", path("there")};
  there.insert(there.end(), common.begin(), common.end());
  const Answer answer = board(there);
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("camera_detect    30 of 30 jobs ok"));
  // The host reads the folder: equal outputs, job by job, and a page of it.
  const Answer diff = takt({"diff", path("here"), path("there")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  const Answer report = takt({"report", path("there")});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(slurp(path("there/report.html")), HasSubstr("takt-board"));
  // And repeats it, from the files that the bundle was made of and from no others.
  const Answer again = takt({"replay", kPipeline, kDrive, "-o", path("again"), "--reproduce", path("there")});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_THAT(slurp(path("again/report.json")), HasSubstr("\"compared\": \"equal\""));
  const Answer other = takt({"replay", kRoot + "/configs/pipelines/sim_modes.yaml", kDrive, "-o", path("other"),
                             "--reproduce", path("there")});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("sim_modes.yaml: this is not the pipeline of the run"));
  // A new run in that folder has no report yet, and no other one's.
  std::ofstream(path("there/notes.txt")) << "mine";
  ASSERT_EQ(board(there).code, 0);
  for (const char* file : {"report.html", "report.json", "junit.xml", "trace.pftrace"}) {
    EXPECT_FALSE(std::filesystem::exists(path("there/") + file)) << file;
  }
  for (const char* file : {"records.mcap", "run.json", "notes.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(path("there/") + file)) << file;
  }
}

TEST_F(Board, SaysWhatItCannotRunAndHowItIsCalled) {
  ASSERT_EQ(takt({"schedule", kRoot + "/configs/pipelines/sim_segments.yaml", "--bundle", path("gpu.bundle")}).code, 0);
  const Answer refused = board({path("gpu.bundle"), kDrive, "-o", path("run")});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("takt-board: " + path("gpu.bundle") +
                                     ": stage 'camera_detect' has a segment on "
                                     "unit 'gpu', and takt-board runs plans on the cores alone so far"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  // As that message says.
  EXPECT_EQ(board({path("gpu.bundle"), kDrive, "-o", path("run"), "--lockstep", "--duration", "0.5"}).code, 0);
  const Answer usage = board({});
  EXPECT_EQ(usage.code, 2);
  EXPECT_EQ(usage.err.rfind("takt-board: ", 0), 0U) << usage.err;
  EXPECT_THAT(usage.err, HasSubstr("takt-board --help"));
  const Answer help = board({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Exit codes: 0 ok, 1 gate failed"));
}

TEST_F(Board, RunsOverIceoryxInRealTime) {
  const Answer answer = board({bundle(), kDrive, "-o", path("run"), "--duration", "1"});
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_TRUE(std::filesystem::exists(path("run/records.mcap")));
  EXPECT_TRUE(std::filesystem::exists(path("run/run.json")));
}

TEST_F(Board, TooLittleMemoryIsAnEnvironmentError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than any limit";
#endif
  std::ofstream(path("large.bundle")) << "TAKT";
  std::filesystem::resize_file(path("large.bundle"), 600 << 20);
  const Answer answer = finish(start({"-c", "ulimit -v 300000; exec \"$0\" \"$1\" \"$2\" -o \"$3\"", TAKT_BOARD,
                                      path("large.bundle"), kDrive, path("run")},
                                     "/bin/sh"));
  EXPECT_EQ(answer.code, 5) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("takt-board: out of memory\n  -> "));
}

TEST_F(Board, RefusesWhatIsNoWholeBundle) {
  const std::string file = bundle();
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(path("damaged"), std::ios::binary) << bytes;
  const Answer damaged = board({path("damaged"), kDrive, "-o", path("run")});
  EXPECT_EQ(damaged.code, 3);
  EXPECT_THAT(damaged.err, HasSubstr("is damaged"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  EXPECT_EQ(board({file, path("none.mcap"), "-o", path("run")}).code, 3);
  EXPECT_EQ(board({file}).code, 2);
  // A problem by itself has tables and nothing that could run.
  ASSERT_EQ(takt({"schedule", kRoot + "/configs/schedules/orin.yaml", "--bundle", path("orin")}).code, 0);
  const Answer alone = board({path("orin"), kDrive, "-o", path("run")});
  EXPECT_EQ(alone.code, 4);
  EXPECT_THAT(alone.err, HasSubstr("no stages that could run"));
  // Where nothing can be written nothing is run.
  const Answer nowhere = board({file, kDrive, "-o", file + "/run"});
  EXPECT_EQ(nowhere.code, 5);
  EXPECT_THAT(nowhere.err, HasSubstr("the folder cannot be made"));
}

// All modes: where the camera, to which the tables are locked, falls silent, the board coasts as the pipeline does
// here.
TEST_F(Board, ChangesBetweenTheModesOfTheBundle) {
  const std::string pipeline = kRoot + "/configs/pipelines/sim_modes.yaml";
  ASSERT_EQ(takt({"log", "cut", kDrive, "-o", path("seeing.mcap"), "--end", "0.9", "-q"}).code, 0);
  ASSERT_EQ(
      takt({"log", "cut", kDrive, "-o", path("blind.mcap"), "--start", "0.9", "--exclude", "*camera*", "-q"}).code, 0);
  const std::string drive = path("drive.mcap");
  ASSERT_EQ(takt({"log", "merge", path("seeing.mcap"), path("blind.mcap"), "-o", drive, "-q"}).code, 0);
  ASSERT_EQ(takt({"schedule", pipeline, "--bundle", path("modes")}).code, 0);
  const std::vector<std::string> common{"--lockstep", "--transport", "local", "--duration", "2.5"};
  std::vector<std::string> here{"replay", pipeline, drive, "-o", path("here"), "-q"}, there{path("modes"), drive};
  there.insert(there.end(), {"-o", path("there")});
  here.insert(here.end(), common.begin(), common.end());
  there.insert(there.end(), common.begin(), common.end());
  ASSERT_EQ(takt(here).code, 0);
  const Answer answer = board(there);
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("hyperperiods of 'sim_modes', lockstep"));
  EXPECT_THAT(answer.out, HasSubstr("modes one after the other: 'day', 'coasting'"));
  const Answer diff = takt({"diff", path("here"), path("there")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
}

// Where table time 0 lies in a log that begins before its first picture is a matter of the hyperperiod in which a run
// begins, the first mode's, here as there.
TEST_F(Board, BeginsWhereThePipelineDoesWhateverTheModesLengths) {
  std::string text = slurp(kRoot + "/configs/pipelines/sim_modes.yaml");
  const auto replace = [&text](const std::string& a, const std::string& b) {
    for (std::size_t at = 0; (at = text.find(a, at)) != std::string::npos; at += b.size())
      text.replace(at, a.size(), b);
  };
  replace(" ../", " " + kRoot + "/configs/");
  replace("  - name: day\n", "  - name: day\n    hyperperiod_ms: 200\n");
  const std::string pipeline = path("modes.yaml"), drive = path("drive.mcap");
  std::ofstream(pipeline) << text;
  ASSERT_EQ(takt({"log", "cut", kDrive, "-o", path("blind.mcap"), "--end", "0.05", "--exclude", "*camera*", "-q"}).code,
            0);
  ASSERT_EQ(takt({"log", "cut", kDrive, "-o", path("seeing.mcap"), "--start", "0.05", "--end", "1.5", "-q"}).code, 0);
  ASSERT_EQ(takt({"log", "merge", path("blind.mcap"), path("seeing.mcap"), "-o", drive, "-q"}).code, 0);
  const Answer bundled = takt({"schedule", pipeline, "--bundle", path("modes")});
  ASSERT_EQ(bundled.code, 0) << bundled.out << bundled.err;
  const std::vector<std::string> common{"--lockstep", "--transport", "local"};
  std::vector<std::string> here{"replay", pipeline, drive, "-o", path("here"), "-q"},
      there{path("modes"), drive, "-o", path("there")};
  here.insert(here.end(), common.begin(), common.end());
  there.insert(there.end(), common.begin(), common.end());
  ASSERT_EQ(takt(here).code, 0);
  ASSERT_EQ(board(there).code, 0);
  const Answer diff = takt({"diff", path("here"), path("there")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
}

}  // namespace
}  // namespace takt::test
