#include "pipeline/app/replay_keys.h"

#include <poll.h>
#include <unistd.h>
#include <string_view>
#include <utility>

namespace takt::app {

bool ReplayKeys::available() { return isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

ReplayKeys::ReplayKeys(std::function<void(Key)> on_key) : on_key_(std::move(on_key)) {
  tcgetattr(STDIN_FILENO, &before_);
  termios mode = before_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // signals of the keyboard stay
  tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  thread_ = std::thread([this] { loop(); });
}

ReplayKeys::~ReplayKeys() {
  stop_ = true;
  thread_.join();
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void ReplayKeys::loop() {
  while (!stop_) {
    pollfd wanted{STDIN_FILENO, POLLIN, 0};
    if (poll(&wanted, 1, 50) <= 0) {
      on_key_(Key::kNone);
      continue;
    }
    char bytes[16];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return;  // the terminal is gone: nobody presses keys any more
    std::string_view keys(bytes, static_cast<std::size_t>(got));
    while (!keys.empty()) {
      std::size_t used = 1;
      if (keys.starts_with("\x1b[C")) {
        on_key_(Key::kRight);
        used = 3;
      } else if (keys.starts_with("\x1b[D")) {
        on_key_(Key::kLeft);
        used = 3;
      } else if (keys.front() == ' ') {
        on_key_(Key::kSpace);
      } else if (keys.front() == 'q') {
        on_key_(Key::kQuit);
      }
      keys.remove_prefix(used);
    }
  }
}

}  // namespace takt::app
