// `takt replay` as a person drives it: passes, folders, and keys on a terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;

class ReplayCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    out_ = fs::path(TAKT_BINARY_DIR) / ("replay command-" + std::to_string(::getpid()));
    fs::remove_all(out_);
  }
  void TearDown() override {
    if (terminal_ >= 0) close(terminal_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(out_);
  }
  // On a terminal of its own.
  void start(const std::vector<std::string>& options) {
    std::vector<std::string> words{TAKT_PROGRAM,
                                   "replay",
                                   kRoot + "/configs/pipelines/sim.yaml",
                                   kRoot + "/replay_data/city.mcap",
                                   "-o",
                                   out_.string(),
                                   "--lockstep",
                                   "--transport",
                                   "local"};
    words.insert(words.end(), options.begin(), options.end());
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  // Reads the screen until `text` is on it (or the program is gone).
  bool await(const std::string& text) {
    while (screen_.find(text) == std::string::npos) {
      pollfd wanted{terminal_, POLLIN, 0};
      if (poll(&wanted, 1, 100'000) <= 0) return false;
      char bytes[4096];
      const ssize_t got = read(terminal_, bytes, sizeof bytes);
      if (got <= 0) return false;
      screen_.append(bytes, static_cast<std::size_t>(got));
    }
    return true;
  }
  void press(const std::string& key) { EXPECT_EQ(write(terminal_, key.data(), key.size()), ssize_t(key.size())); }
  int finish() {
    await("\x01 never");  // until the end of the output
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(out_ / name); }

  fs::path out_;
  pid_t pid_ = 0;
  int terminal_ = -1;
  std::string screen_;
};

TEST_F(ReplayCommand, LoopsGiveEqualPassesInFoldersOfTheirOwn) {
  start({"--loop", "3", "--start", "0.5", "--end", "1.5"});
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_THAT(screen_, HasSubstr("pass 2, looping"));
  EXPECT_THAT(screen_, HasSubstr("pass 3 (loop): every stage began without state; outputs equal those of the first"));
  EXPECT_TRUE(has("report.html"));
  EXPECT_TRUE(has("pass-2/report.html"));
  EXPECT_TRUE(has("pass-3/run.json"));
  EXPECT_FALSE(has("pass-4"));

  // Another run in that folder takes their place, but not that of what is not takt's.
  std::ofstream(out_ / "pass-2/notes.txt") << "mine";
  fs::create_directory(out_ / "pass-9");
  std::ofstream(out_ / "pass-9/report.html") << "mine";
  start({"--reproduce", (out_ / "pass-3").string()});
  EXPECT_EQ(finish(), 2) << "it would take away what it repeats";
  EXPECT_TRUE(has("pass-3/run.json"));
  start({"--end", "0.5"});
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_TRUE(has("report.html"));
  EXPECT_FALSE(has("pass-3"));
  EXPECT_FALSE(has("pass-2/run.json"));
  EXPECT_FALSE(has("pass-2/report.html"));
  EXPECT_TRUE(has("pass-2/notes.txt"));
  EXPECT_TRUE(has("pass-9/report.html"));
}

// The part that ran has other bytes than the whole, which says nothing of either.
TEST_F(ReplayCommand, AReproductionThatIsCutOffIsNotJudged) {
  start({"--end", "1"});
  ASSERT_EQ(finish(), 0) << screen_;
  const std::string whole = out_.string() + "/whole";
  fs::create_directory(whole);
  for (const char* file : {"records.mcap", "results.mcap", "run.json"}) fs::rename(out_ / file, fs::path(whole) / file);
  start({"--paused", "--end", "1", "--reproduce", whole});
  ASSERT_TRUE(await("paused at 0: ")) << screen_;
  press("q");
  EXPECT_EQ(finish(), 130) << screen_;
  EXPECT_THAT(screen_, HasSubstr("verdict  NOT JUDGED"));
  EXPECT_THAT(screen_, HasSubstr("0 equal, 0 differ, 4 NOT COMPARED"));
  std::ifstream file(out_ / "report.json");
  for (const auto& digest : nlohmann::json::parse(file)["digests"]) {
    EXPECT_EQ(digest["compared"], "NOT COMPARED: the run was interrupted");
  }
}

TEST_F(ReplayCommand, AKilledProcessIsStartedAgainAndWrittenDown) {
  start({"--supervise"});
  const std::string children = "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
  pid_t child = 0;
  for (int i = 0; i < 2000 && child == 0; ++i) {
    std::ifstream(children) >> child;
    if (child == 0) usleep(5000);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_THAT(screen_, HasSubstr("by signal 9"));
  std::ifstream page(out_ / "report.html");
  const std::string html{std::istreambuf_iterator<char>(page), {}};
  EXPECT_THAT(html, HasSubstr("this process is number 2 of the run"));
  EXPECT_THAT(html, HasSubstr("<span>local</span> <span>--supervise</span></pre>")) << "This run once more";
  std::ifstream file(out_ / "supervision.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("\"signal\": 9"));
  EXPECT_THAT(text, HasSubstr("\"exit_code\": 0"));
  EXPECT_THAT(text, HasSubstr("\"restarts\": 1"));

  start({});
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_FALSE(has("supervision.json")) << "of the run before";
}

TEST_F(ReplayCommand, PausedReplaysAreSteppedAndGoOnByKeys) {
  start({"--paused"});
  ASSERT_TRUE(await("paused at 0: ")) << screen_;
  press("\x1b[C");
  press("\x1b[C");
  press(" ");
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_TRUE(has("report.html"));
  EXPECT_FALSE(has("pass-2"));
}

TEST_F(ReplayCommand, ASeekBeginsANewPassWithoutState) {
  start({"--paused"});
  ASSERT_TRUE(await("paused at 0: ")) << screen_;
  press("\x1b[D");
  ASSERT_TRUE(await("pass 2, after a seek")) << screen_;
  EXPECT_EQ(finish(), 0) << screen_;
  EXPECT_TRUE(has("pass-2/report.html"));
}

// Typed as the report of that pass says: its part of the log, from a folder whose name has a blank.
TEST_F(ReplayCommand, APassThatAKeyBeganIsReproducedAsItsReportSays) {
  start({"--paused"});
  ASSERT_TRUE(await("paused at 0: ")) << screen_;
  press(" \x1b[C");
  ASSERT_TRUE(await("pass 2, after a seek")) << screen_;
  EXPECT_EQ(finish(), 0) << screen_;
  std::ifstream file(out_ / "pass-2/report.json");
  const auto report = nlohmann::json::parse(file);
  const std::string command = report["commands"].at(0);
  EXPECT_THAT(command, HasSubstr(" --start "));
  EXPECT_THAT(command, HasSubstr(" --reproduce '" + out_.string() + "/pass-2'"));
  const std::string line = "cd '" + out_.string() + "' && PATH='" + fs::path(TAKT_PROGRAM).parent_path().string() +
                           "':$PATH && " + command + " --transport local -q";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
  std::ifstream again(out_ / "REPEATED/report.json");
  const auto digests = nlohmann::json::parse(again)["digests"];
  ASSERT_FALSE(digests.empty());
  for (const auto& digest : digests) EXPECT_EQ(digest["compared"], "equal") << digest;
}

TEST_F(ReplayCommand, QuitLeavesAReportOfThePartThatRan) {
  start({"--paused"});
  ASSERT_TRUE(await("paused at 0: ")) << screen_;
  press("q");
  EXPECT_EQ(finish(), 130) << screen_;
  EXPECT_TRUE(has("report.html"));
}

}  // namespace
