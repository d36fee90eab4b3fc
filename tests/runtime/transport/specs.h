// Transport specs for the tests, and one fixture per back end.
#pragma once

#include <gtest/gtest.h>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "runtime/transport/transport.h"

namespace takt::transport {

inline constexpr std::uint64_t kTestRun = 0x1234567890abcdefULL;

inline TopicSpec topic(std::string name, std::uint64_t capacity, std::uint32_t loans,
                       std::vector<SubscriberSpec> subscribers) {
  TopicSpec spec;
  spec.name = std::move(name);
  spec.schema = 7;
  spec.payload_capacity = capacity;
  spec.loans = loans;
  spec.subscribers = std::move(subscribers);
  return spec;
}

inline TransportSpec spec_of(Backend backend, std::vector<TopicSpec> topics) {
  TransportSpec spec;
  spec.backend = backend;
  spec.run = kTestRun;
  spec.topics = std::move(topics);
  return spec;
}

// Runs a test on both back ends.
class OnBothBackends : public testing::TestWithParam<Backend> {
 protected:
  void start(std::vector<TopicSpec> topics) {
    auto started = make_transport(spec_of(GetParam(), std::move(topics)));
    ASSERT_TRUE(started) << started.error().message;
    transport = *std::move(started);
  }
  std::unique_ptr<Publisher> publisher(const std::string& name) {
    auto port = transport->publisher(name);
    EXPECT_TRUE(port) << port.error().message;
    return port ? *std::move(port) : nullptr;
  }
  std::unique_ptr<Subscriber> subscriber(const std::string& name, const std::string& who) {
    auto port = transport->subscriber(name, who);
    EXPECT_TRUE(port) << port.error().message;
    return port ? *std::move(port) : nullptr;
  }
  void connect() {
    const Status connected = transport->wait_connected();
    ASSERT_TRUE(connected) << connected.error().message;
  }

  std::unique_ptr<Transport> transport;
};

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::kLocal ? "local" : "iceoryx";
}
#ifdef __SANITIZE_THREAD__
// The thread sanitizer does not see the synchronisation inside the (uninstrumented) library.
inline const auto kBothBackends = testing::Values(Backend::kLocal);
#else
inline const auto kBothBackends = testing::Values(Backend::kLocal, Backend::kIceoryxEmbedded);
#endif

// Publishes one chunk with this job number and arrival stamp, its payload filled with the low byte of the job.
inline ChunkLocation publish(Publisher& port, std::uint64_t job, std::int64_t arrival_ns = 0) {
  const Publisher::Loan loan = port.loan();
  EXPECT_TRUE(loan) << "no chunk for job " << job;
  if (!loan) return {};
  loan.header->job = job;
  loan.header->arrival_ns = arrival_ns;
  loan.header->payload_bytes = port.payload_capacity();
  std::memset(loan.payload, static_cast<int>(job & 0xff), port.payload_capacity());
  return port.publish(loan);
}

inline bool filled_with(const ChunkView& chunk, std::uint64_t job) {
  for (const std::byte byte : chunk.bytes()) {
    if (byte != static_cast<std::byte>(job & 0xff)) return false;
  }
  return true;
}

}  // namespace takt::transport
