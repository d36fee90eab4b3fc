// Keys of a running replay on a terminal. Without one (pipes, background jobs) no key is read and nothing is changed.
#pragma once

#include <termios.h>
#include <atomic>
#include <functional>
#include <thread>

namespace takt::app {

// kNone: 50 ms without a key.
enum class Key { kNone, kSpace, kRight, kLeft, kQuit };

class ReplayKeys {
 public:
  // `on_key` is called on a thread of this object until it is destroyed; the terminal's mode is restored then.
  explicit ReplayKeys(std::function<void(Key)> on_key);
  ~ReplayKeys();
  ReplayKeys(const ReplayKeys&) = delete;
  ReplayKeys& operator=(const ReplayKeys&) = delete;

  // Standard input is a terminal, and this process is its foreground job.
  static bool available();

 private:
  void loop();

  std::function<void(Key)> on_key_;
  termios before_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace takt::app
