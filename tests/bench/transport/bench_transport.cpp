// Hand-over of a 6 MB frame between two processes: written in full by one, read in full by the other. Measures publish
// to take through takt's transport and through iceoryx alone, in alternating blocks of the same run, over the same
// RouDi and the same pool.
//   bench_transport          40 blocks of 50 frames; exit 1 when the ratio of the medians is above 1.3
//   bench_transport --quick  4 blocks of 10 frames; exit 1 only when order or content is wrong
#include <unistd.h>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "iceoryx_posh/popo/untyped_publisher.hpp"
#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "runtime/base/time.h"
#include "tests/runtime/transport/child_process.h"
#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

constexpr std::uint64_t kFrameBytes = 6'000'000;
constexpr std::uint64_t kWords = kFrameBytes / 8;
constexpr double kGoal = 1.3;

struct Plan {
  int blocks = 40;
  int frames = 50;  // per block; even blocks go through takt, odd ones through iceoryx alone
};

TransportSpec bench_spec() {
  // The second topic reserves the chunks of the same class for the bare ports.
  TransportSpec spec = spec_of(Backend::kIceoryxEmbedded, {topic("/frame", kFrameBytes, 1, {{"reader", 2, 1}}),
                                                           topic("/reserved", kFrameBytes, 1, {{"reader", 2, 1}})});
  spec.external_clients = true;
  return spec;
}
iox::capro::ServiceDescription bare_service() { return {"bench", "bare", "frame"}; }

// Word i of frame n; every word differs from its neighbours and from the same word of other frames.
std::uint64_t word(std::uint64_t frame, std::uint64_t i) { return (frame + 1) * 0x9E3779B97F4A7C15ULL + i; }

void write_frame(std::byte* payload, std::uint64_t frame) {
  auto* words = reinterpret_cast<std::uint64_t*>(payload);
  for (std::uint64_t i = 0; i < kWords; ++i) words[i] = word(frame, i);
}
bool frame_is(const std::byte* payload, std::uint64_t frame) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(payload);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kWords; ++i) wrong |= words[i] ^ word(frame, i);
  return wrong == 0;
}

// The stamp of the publication travels in a header field that the transport does not touch.
struct Reading {
  std::int64_t latency_ns = 0;
  bool right = false;
};
Reading read_frame(const ChunkHeader* header, const std::byte* payload, std::uint64_t frame) {
  const std::int64_t latency = host_now().ns - header->capture_ns;  // before the reading
  return {latency, header->job == frame && frame_is(payload, frame)};
}

// The reader: polls, reads, reports one line per frame. The line is also the sign that the next one may come.
int reader(const Plan& plan) {
  auto transport = attach_transport(bench_spec(), "reader");
  if (!transport) {
    tell(transport.error().message);
    return 1;
  }
  auto in = (*transport)->subscriber("/frame", "reader");
  auto reserved = (*transport)->subscriber("/reserved", "reader");
  iox::popo::SubscriberOptions options;
  options.queueCapacity = 2;
  iox::popo::UntypedSubscriber bare(bare_service(), options);
  if (!in || !reserved || !(*transport)->wait_connected()) {
    tell("not connected");
    return 1;
  }
  while (bare.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) ::usleep(1000);
  tell("ready");
  std::uint64_t frame = 0;
  for (int block = 0; block < plan.blocks; ++block) {
    for (int i = 0; i < plan.frames; ++i, ++frame) {
      Reading reading;
      if (block % 2 == 0) {
        ChunkView chunk;
        while (!(chunk = (*in)->take())) {
        }
        reading = read_frame(chunk.header, chunk.payload, frame);
        (*in)->release(chunk);
      } else {
        for (bool taken = false; !taken;) {
          bare.take().and_then([&](const void* payload) {
            const auto* header =
                static_cast<const ChunkHeader*>(iox::mepoo::ChunkHeader::fromUserPayload(payload)->userHeader());
            reading = read_frame(header, static_cast<const std::byte*>(payload), frame);
            bare.release(payload);
            taken = true;
          });
        }
      }
      tell(std::to_string(reading.latency_ns) + (reading.right ? " right" : " wrong"));
    }
  }
  wait_for_parent();
  return 0;
}

struct Figures {
  std::int64_t p50 = 0;
  std::int64_t p99 = 0;
  std::int64_t max = 0;
};
Figures figures(std::vector<std::int64_t> latencies) {
  std::sort(latencies.begin(), latencies.end());
  const std::size_t n = latencies.size();
  return {latencies[n / 2], latencies[n * 99 / 100], latencies.back()};
}

int writer(const Plan& plan, bool quick) {
  auto transport = make_transport(bench_spec());
  if (!transport) {
    std::fprintf(stderr, "%s\n", transport.error().message.c_str());
    return exit_code(transport.error().code);
  }
  auto out = *(*transport)->publisher("/frame");
  auto reserved = *(*transport)->publisher("/reserved");
  iox::popo::UntypedPublisher bare(bare_service());
  ChildProcess child({"--reader", std::to_string(plan.blocks), std::to_string(plan.frames)});
  if (const Status connected = (*transport)->wait_connected(); !connected) {
    std::fprintf(stderr, "%s\n", connected.error().message.c_str());
    return exit_code(connected.error().code);
  }
  if (const std::string said = child.line(); said != "ready") {
    std::fprintf(stderr, "reader: %s\n", said.c_str());
    return 1;
  }

  std::vector<std::int64_t> through_takt;
  std::vector<std::int64_t> through_iceoryx;
  std::uint64_t frame = 0;
  for (int block = 0; block < plan.blocks; ++block) {
    for (int i = 0; i < plan.frames; ++i, ++frame) {
      if (block % 2 == 0) {
        const Publisher::Loan loan = out->loan();
        if (!loan) return 1;
        write_frame(loan.payload, frame);
        loan.header->job = frame;
        loan.header->payload_bytes = kFrameBytes;
        loan.header->capture_ns = host_now().ns;
        out->publish(loan);
      } else {
        bool sent = false;
        bare.loan(kFrameBytes + kTailPadding, kPayloadAlignment, sizeof(ChunkHeader), alignof(ChunkHeader))
            .and_then([&](void* payload) {
              auto* header = new (iox::mepoo::ChunkHeader::fromUserPayload(payload)->userHeader()) ChunkHeader{};
              write_frame(static_cast<std::byte*>(payload), frame);
              header->job = frame;
              header->capture_ns = host_now().ns;
              bare.publish(payload);
              sent = true;
            });
        if (!sent) return 1;
      }
      const std::string said = child.line();
      if (said.find(" right") == std::string::npos) {
        std::fprintf(stderr, "frame %" PRIu64 ": the reader says '%s'\n", frame, said.c_str());
        return 1;
      }
      // The first frame of a block finds cold caches of the other way.
      if (i > 0) (block % 2 == 0 ? through_takt : through_iceoryx).push_back(std::stoll(said));
    }
  }
  if (child.finish() != 0) return 1;

  const Figures takt = figures(through_takt);
  const Figures iceoryx = figures(through_iceoryx);
  const double ratio = static_cast<double>(takt.p50) / static_cast<double>(iceoryx.p50);
  std::printf("publish to take, %.0f MB frame, two processes, %zu frames each\n", kFrameBytes * 1e-6,
              through_takt.size());
  std::printf("%-8s p50 %8.2f us  p99 %8.2f us  max %8.2f us\n", "takt", static_cast<double>(takt.p50) * 1e-3,
              static_cast<double>(takt.p99) * 1e-3, static_cast<double>(takt.max) * 1e-3);
  std::printf("%-8s p50 %8.2f us  p99 %8.2f us  max %8.2f us\n", "iceoryx", static_cast<double>(iceoryx.p50) * 1e-3,
              static_cast<double>(iceoryx.p99) * 1e-3, static_cast<double>(iceoryx.max) * 1e-3);
  std::printf("ratio of the medians %.3f (goal at most %.1f%s)\n", ratio, kGoal, quick ? ", not judged" : "");
  return quick || ratio <= kGoal ? 0 : 1;
}

}  // namespace

int bench(int argc, char** argv) {
  Plan plan;
  if (argc == 4 && std::strcmp(argv[1], "--reader") == 0) {
    plan.blocks = std::stoi(argv[2]);
    plan.frames = std::stoi(argv[3]);
    return reader(plan);
  }
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (quick) plan = {4, 10};
  return writer(plan, quick);
}

}  // namespace takt::transport

int main(int argc, char** argv) { return takt::transport::bench(argc, argv); }
