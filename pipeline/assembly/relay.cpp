#include "pipeline/assembly/relay.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "runtime/base/time.h"

namespace takt::pipeline {
namespace {

constexpr Duration kPatience = seconds(1);

void nap() {
  const timespec pause{0, 1'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

}  // namespace

Relay::Relay(std::vector<Topic> topics) : state_(std::make_shared<State>()) { state_->topics = std::move(topics); }

Relay::~Relay() { stop(); }

void Relay::start() {
  thread_ = std::thread([state = state_] {
    state->loop();
    state->ended = true;
  });
}

bool Relay::State::copy(Topic& topic) {
  const transport::ChunkView chunk = topic.from->take();
  if (!chunk) return false;
  if (transport::Publisher::Loan loan = topic.to->loan()) {
    *loan.header = *chunk.header;
    const auto bytes = std::min<std::uint64_t>(chunk.header->payload_bytes, topic.to->payload_capacity());
    std::memcpy(loan.payload, chunk.payload, bytes);
    topic.to->publish(loan);
    copied.fetch_add(1, std::memory_order_relaxed);
  } else {
    dropped.fetch_add(1, std::memory_order_relaxed);
  }
  topic.from->release(chunk);
  return true;
}

void Relay::State::loop() {
  while (!stop.load(std::memory_order_acquire)) {
    bool any = false;
    for (Topic& topic : topics) any = copy(topic) || any;
    if (!any) nap();
  }
}

bool Relay::stop() {
  if (!thread_.joinable()) return true;
  state_->stop = true;
  const HostTime limit = host_now() + kPatience;
  while (!state_->ended && host_now() < limit) nap();
  if (!state_->ended) {
    thread_.detach();  // the state stays with it
    return false;
  }
  thread_.join();
  state_->topics.clear();
  return true;
}

}  // namespace takt::pipeline
