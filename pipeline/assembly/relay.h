// Copies outputs from timed topics to export topics, on the housekeeping reserve: observers of any kind hang on to
// these and never to a timed one (DESIGN section 4, "Transport").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/transport/transport.h"

namespace takt::pipeline {

class Relay {
 public:
  struct Topic {
    std::unique_ptr<transport::Subscriber> from;  // a declared client of the timed topic
    std::unique_ptr<transport::Publisher> to;
  };
  explicit Relay(std::vector<Topic> topics);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void start();
  // Ends the thread. One that hangs in the library, because an observer was killed where it held a lock, is left behind
  // after a second, with its ports: false, and their transport must outlive the process's other work.
  bool stop();

  [[nodiscard]] std::uint64_t copied() const { return state_->copied.load(); }
  // Not exported, because observers kept every chunk of an export topic.
  [[nodiscard]] std::uint64_t dropped() const { return state_->dropped.load(); }

 private:
  struct State {
    std::vector<Topic> topics;
    std::atomic<std::uint64_t> copied{0}, dropped{0};
    std::atomic<bool> stop{false}, ended{false};
    void loop();
    bool copy(Topic& topic);
  };
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace takt::pipeline
