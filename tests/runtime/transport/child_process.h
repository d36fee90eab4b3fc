// Another process that runs this executable in a role, with a pipe in each direction.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <string>
#include <vector>

namespace takt {

class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments) {
    int to_child[2];
    int from_child[2];
    if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) return;
    std::vector<char*> argv = {const_cast<char*>("child")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to_child[0], STDIN_FILENO);
      ::dup2(from_child[1], STDOUT_FILENO);
      ::execv("/proc/self/exe", argv.data());
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    input_ = to_child[1];
    output_ = ::fdopen(from_child[0], "r");
  }
  ~ChildProcess() {
    if (output_ != nullptr) std::fclose(output_);
    if (pid_ > 0) (void)finish();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line it prints, without the end; "" when it has ended.
  std::string line() {
    char text[256];
    if (std::fgets(text, sizeof text, output_) == nullptr) return "";
    std::string line = text;
    if (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
  }
  void kill() { ::kill(pid_, SIGKILL); }
  // Closes its input, which is its sign to end; its exit status, or -1 after a signal.
  int finish() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

// In the child: prints a line at once; waits until the parent lets go.
inline void tell(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}
inline void wait_for_parent() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace takt
