// The `takt` command run as a child, with a folder of its own that is gone with the test. Needs TAKT_PROGRAM.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace takt::test {

struct Answer {
  int code = -1;  // 128 + number of the signal that ended it
  std::string out, err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(TAKT_BINARY_DIR) / ("program-test-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] pid_t start(const std::vector<std::string>& arguments,
                            const std::string& program = TAKT_PROGRAM) const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setenv("TAKT_HOME", TAKT_SOURCE_DIR, 0);  // wherever the build folder lies
    dup2(open(path("out").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), 1);
    dup2(open(path("err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), 2);
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  [[nodiscard]] Answer finish(pid_t pid) const {
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(path("out")), slurp(path("err"))};
  }
  Answer takt(const std::vector<std::string>& arguments) const { return finish(start(arguments)); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

}  // namespace takt::test
