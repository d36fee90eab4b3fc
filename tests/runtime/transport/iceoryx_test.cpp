// What only the iceoryx back end has: RouDi, shared memory, other processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "tests/runtime/transport/child_process.h"
#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kCapacity = 4096;

TransportSpec shared_spec(Backend backend) {
  TransportSpec spec = spec_of(backend, {topic("/t", kCapacity, 1, {{"here", 4, 1}, {"viewer/in", 12, 3}})});
  spec.external_clients = true;
  return spec;
}
TransportSpec plain_spec(Backend backend) { return spec_of(backend, {topic("/t", kCapacity, 1, {{"here", 4, 1}})}); }

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// --- roles of child processes ----------------------------------------------------------------------------------------

// Owns a RouDi with `chunks` times the pools of the plan.
int roudi_role(const std::string& chunks) {
  TransportSpec spec = shared_spec(Backend::kIceoryxEmbedded);
  spec.run = kTestRun + 1;
  spec.topics[0].subscribers.push_back({"reserve", static_cast<std::uint32_t>(std::stoul(chunks)), 1});
  auto transport = make_transport(spec);
  if (!transport) {
    tell(transport.error().message);
    return 1;
  }
  tell("ready");
  wait_for_parent();
  return 0;
}

// Owns a RouDi that starts at this instant of the steady clock; says "ready", or the exit code that its error means.
int starter_role(const std::string& instant_ns) {
  const std::chrono::steady_clock::time_point instant{std::chrono::nanoseconds(std::stoll(instant_ns))};
  std::this_thread::sleep_until(instant);
  const auto transport = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  tell(transport ? "ready" : std::to_string(exit_code(transport.error().code)) + " " + transport.error().message);
  wait_for_parent();
  return 0;
}

// A declared client: takes `count` chunks and says where they lie and whether their content is right.
int client_role(const std::string& count) {
  auto transport = attach_transport(shared_spec(Backend::kIceoryxEmbedded), "viewer");
  if (!transport) {
    tell(transport.error().message);
    return 1;
  }
  auto in = (*transport)->subscriber("/t", "viewer/in");
  if (!in || !(*transport)->wait_connected()) {
    tell("not connected");
    return 1;
  }
  tell("ready");
  for (int taken = 0; taken < std::stoi(count);) {
    const ChunkView chunk = (*in)->take();
    if (!chunk) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const ChunkLocation where = (*in)->location(chunk);
    const bool right = filled_with(chunk, chunk.header->job) && chunk.header->run == kTestRun;
    tell(std::to_string(where.segment) + " " + std::to_string(where.offset) + " " + std::to_string(chunk.header->job) +
         (right ? " right" : " wrong"));
    (*in)->release(chunk);
    ++taken;
  }
  wait_for_parent();
  return 0;
}

// Takes what it may hold and never gives it back.
int holder_role(const std::string&) {
  auto transport = attach_transport(shared_spec(Backend::kIceoryxEmbedded), "viewer");
  if (!transport) return 1;
  auto in = (*transport)->subscriber("/t", "viewer/in");
  if (!in || !(*transport)->wait_connected()) return 1;
  tell("ready");
  for (int held = 0; held < 3;) {
    if ((*in)->take()) ++held;
  }
  tell("holding");
  wait_for_parent();
  return 0;
}

// Names a timed topic without being declared, and keeps everything.
int greedy_role(const std::string&) {
  iox::runtime::PoshRuntime::initRuntime("greedy");
  iox::popo::UntypedSubscriber in({"takt", "1234567890abcdef", "/t"});
  while (in.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  tell("ready");
  wait_for_parent();
  return 0;
}

// Subscribes to an export topic: keeps everything ("greedy"), takes a chunk now and then ("slow"), or waits for each
// with a WaitSet ("waitset").
int observer_role(const std::string& kind) {
  iox::runtime::PoshRuntime::initRuntime(
      iox::RuntimeName_t(iox::cxx::TruncateToCapacity, ("observer-" + kind).c_str()));
  iox::popo::SubscriberOptions options;
  options.queueCapacity = kind == "greedy" ? 4 : 2;
  iox::popo::UntypedSubscriber in({"takt", "export", "/export/t"}, options);
  iox::popo::WaitSet<> waitset;
  if (kind == "waitset") waitset.attachState(in, iox::popo::SubscriberState::HAS_DATA).or_else([](auto) {});
  while (in.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  tell("ready");
  for (;;) {  // until it is killed
    if (kind == "waitset") waitset.timedWait(iox::units::Duration::fromMilliseconds(100));
    if (kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    in.take().and_then([&](const void* payload) {
      if (kind != "greedy") in.release(payload);
    });
  }
}

// --- tests -----------------------------------------------------------------------------------------------------------

TEST(Iceoryx, ASecondRouDiOfThisProcessIsRefused) {
  auto first = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  ASSERT_TRUE(first) << first.error().message;
  const auto second = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kEnvironment);
  EXPECT_EQ(exit_code(second.error().code), 5);
  EXPECT_THAT(second.error().message, HasSubstr("another iceoryx RouDi is running"));
  EXPECT_THAT(second.error().message, HasSubstr("--roudi external"));
}

TEST(Iceoryx, ASecondRouDiOfAnotherProcessIsRefused) {
  ChildProcess roudi({"--roudi", "1"});
  ASSERT_EQ(roudi.line(), "ready");
  const auto second = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kEnvironment);
  EXPECT_EQ(roudi.finish(), 0);
  const auto after = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  EXPECT_TRUE(after) << after.error().message;
}

// The library ends the process that finds RouDi's lock taken, also by one that only looks.
TEST(Iceoryx, OfTwoThatStartAtOnceOneRunsAndTheOtherSaysWhy) {
  for (int pair = 0; pair < 8; ++pair) {
    const auto instant = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    const std::string at = std::to_string(instant.time_since_epoch().count());
    ChildProcess one({"--start-at", at}), other({"--start-at", at});
    std::vector<std::string> said{one.line(), other.line()};
    EXPECT_EQ(one.finish(), 0) << "ended by a signal, pair " << pair;
    EXPECT_EQ(other.finish(), 0) << "ended by a signal, pair " << pair;
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said[1], "ready");
    EXPECT_THAT(said[0], testing::StartsWith("5 another iceoryx RouDi is running on this machine"));
  }
}

TEST(Iceoryx, AfterADeadRouDiTheNextOneStarts) {
  ChildProcess roudi({"--roudi", "1"});
  ASSERT_EQ(roudi.line(), "ready");
  roudi.kill();
  EXPECT_EQ(roudi.finish(), -1);
  // Its lock file and its shared memory are still there.
  EXPECT_TRUE(std::filesystem::exists("/dev/shm/iceoryx_mgmt"));
  const auto next = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  EXPECT_TRUE(next) << next.error().message;
}

TEST(Iceoryx, TooLittleSharedMemoryIsRefusedWithFiguresAndRemedy) {
  if (std::getenv("TAKT_ISOLATED") == nullptr)
    GTEST_SKIP() << "needs its own /dev/shm: mount namespaces are refused here";
  const auto mount_with = [](const std::string& size) {
    return ::mount("tmpfs", "/dev/shm", "tmpfs", 0, ("size=" + size).c_str()) == 0;
  };
  ASSERT_TRUE(mount_with("64m"));
  TransportSpec spec = plain_spec(Backend::kIceoryxEmbedded);
  spec.topics[0].payload_capacity = 6'000'000;
  const auto transport = make_transport(spec);
  ::umount("/dev/shm");
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, Code::kEnvironment);
  std::smatch needed;
  const std::string message = transport.error().message;
  ASSERT_TRUE(std::regex_search(message, needed, std::regex("the plan needs ([0-9]+) bytes"))) << message;
  EXPECT_THAT(message, HasSubstr("/dev/shm has 67108864 bytes free"));
  EXPECT_THAT(message, HasSubstr("mount -o remount,size="));
  EXPECT_THAT(message, HasSubstr("--shm-size="));
  // The figure is not only large enough for the check: RouDi really starts in exactly that much.
  ASSERT_TRUE(mount_with(needed[1].str()));
  {
    const auto fits = make_transport(spec);
    EXPECT_TRUE(fits) << fits.error().message;
  }
  ::umount("/dev/shm");
}

TEST(Iceoryx, TheReservedMemoryIsThePlannedMemory) {
  auto transport = make_transport(plain_spec(Backend::kIceoryxEmbedded));
  ASSERT_TRUE(transport) << transport.error().message;
  std::uint64_t reserved = 0;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) reserved += file.file_size();
  const PoolPlan& plan = (*transport)->pools();
  EXPECT_GE(reserved, plan.user_bytes + plan.management_bytes);
  EXPECT_LE(reserved, plan.user_bytes + plan.management_bytes + 16 * 4096);
}

TEST(Iceoryx, ExternalWithoutARouDiIsRefused) {
  const auto transport = make_transport(plain_spec(Backend::kIceoryxExternal));
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, Code::kEnvironment);
  EXPECT_THAT(transport.error().message, HasSubstr("no RouDi is running"));
}

TEST(Iceoryx, ExternalUsesARunningRouDi) {
  ChildProcess roudi({"--roudi", "20"});
  ASSERT_EQ(roudi.line(), "ready");
  auto transport = make_transport(plain_spec(Backend::kIceoryxExternal));
  ASSERT_TRUE(transport) << transport.error().message;
  auto out = *(*transport)->publisher("/t");
  auto in = *(*transport)->subscriber("/t", "here");
  const Status connected = (*transport)->wait_connected();
  ASSERT_TRUE(connected) << connected.error().message;
  const ChunkLocation published = publish(*out, 9);
  const ChunkView chunk = in->take();
  ASSERT_TRUE(chunk);
  EXPECT_EQ(in->location(chunk), published);
  EXPECT_TRUE(filled_with(chunk, 9));
  in->release(chunk);
}

// The library writes raw lines as often as it misses RouDi: one line of takt's tells of them all.
TEST(Iceoryx, WhatTheLibraryWritesIsToldInOneLine) {
  ChildProcess roudi({"--roudi", "1"});
  ASSERT_EQ(roudi.line(), "ready");
  auto transport = make_transport(shared_spec(Backend::kIceoryxExternal));
  ASSERT_TRUE(transport) << transport.error().message;
  testing::internal::CaptureStderr();
  roudi.kill();
  EXPECT_EQ(roudi.finish(), -1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the library looks for RouDi three times a second
  transport->reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(said, testing::ContainsRegex("^takt: iceoryx reported [0-9]+ error\\(s\\), as it does when RouDi ends"));
}

TEST(Iceoryx, ExternalPoolsThatAreTooSmallAreRefusedWithAConfiguration) {
  ChildProcess roudi({"--roudi", "1"});
  ASSERT_EQ(roudi.line(), "ready");
  TransportSpec large = plain_spec(Backend::kIceoryxExternal);
  large.topics[0].payload_capacity = 100'000;
  const auto no_pool = make_transport(large);
  ASSERT_FALSE(no_pool);
  EXPECT_EQ(no_pool.error().code, Code::kEnvironment);
  EXPECT_THAT(no_pool.error().message, HasSubstr("the running RouDi has no pool for chunks of 100"));
  EXPECT_THAT(no_pool.error().message, HasSubstr("topic '/t'"));
  EXPECT_THAT(no_pool.error().message, HasSubstr("[[segment.mempool]]"));

  TransportSpec many = plain_spec(Backend::kIceoryxExternal);
  many.topics[0].subscribers[0].queue_depth = 200;
  const auto too_few = make_transport(many);
  ASSERT_FALSE(too_few);
  EXPECT_THAT(too_few.error().message, HasSubstr("the plan needs 203 there"));
}

TEST(Iceoryx, ADeclaredClientInAnotherProcessSeesTheSameMemory) {
  constexpr std::uint64_t kJobs = 10;
  auto transport = make_transport(shared_spec(Backend::kIceoryxEmbedded));
  ASSERT_TRUE(transport) << transport.error().message;
  auto out = *(*transport)->publisher("/t");
  auto in = *(*transport)->subscriber("/t", "here");
  ChildProcess client({"--client", std::to_string(kJobs)});
  // Nothing is lost: the publisher waits until the declared client of the other process is there.
  const Status connected = (*transport)->wait_connected();
  ASSERT_TRUE(connected) << connected.error().message;
  ASSERT_EQ(client.line(), "ready");
  for (std::uint64_t job = 0; job < kJobs; ++job) {
    const ChunkLocation where = publish(*out, job);
    EXPECT_EQ(client.line(), std::to_string(where.segment) + " " + std::to_string(where.offset) + " " +
                                 std::to_string(job) + " right");
  }
  EXPECT_TRUE((*transport)->undeclared_subscribers().empty());
  EXPECT_EQ(client.finish(), 0);
}

TEST(Iceoryx, AttachingWithoutATransportIsRefusedInBoundedTime) {
  const auto attached = attach_transport(shared_spec(Backend::kIceoryxEmbedded), "viewer");
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Code::kEnvironment);
  EXPECT_FALSE(attach_transport(shared_spec(Backend::kIceoryxEmbedded), "no/slash"));
}

TEST(Iceoryx, AKilledClientsChunksComeBack) {
  auto transport = make_transport(shared_spec(Backend::kIceoryxEmbedded));
  ASSERT_TRUE(transport) << transport.error().message;
  auto out = *(*transport)->publisher("/t");
  auto in = *(*transport)->subscriber("/t", "here");
  ChildProcess client({"--holder", ""});
  ASSERT_EQ(client.line(), "ready");
  ASSERT_TRUE((*transport)->wait_connected());
  for (std::uint64_t job = 0; job < 10; ++job) publish(*out, job);
  ASSERT_EQ(client.line(), "holding");
  while (const ChunkView chunk = in->take()) in->release(chunk);
  ASSERT_GE((*transport)->pool_use()[0].used, 10u);  // 3 held, 7 queued
  client.kill();
  EXPECT_EQ(client.finish(), -1);
  EXPECT_TRUE(eventually([&] { return (*transport)->pool_use()[0].used <= 1; }));
  // And the run goes on.
  for (std::uint64_t job = 10; job < 40; ++job) publish(*out, job);
  EXPECT_EQ(out->refused_loans(), 0u);
}

TEST(Iceoryx, AnUndeclaredSubscriberIsFoundAndNeverAborts) {
  TransportSpec spec = plain_spec(Backend::kIceoryxEmbedded);
  spec.external_clients = true;
  auto transport = make_transport(spec);
  ASSERT_TRUE(transport) << transport.error().message;
  auto out = *(*transport)->publisher("/t");
  auto in = *(*transport)->subscriber("/t", "here");
  ASSERT_TRUE((*transport)->wait_connected());
  EXPECT_TRUE((*transport)->undeclared_subscribers().empty());
  ChildProcess greedy({"--greedy", ""});
  ASSERT_EQ(greedy.line(), "ready");
  EXPECT_TRUE(eventually([&] { return !(*transport)->undeclared_subscribers().empty(); }));
  EXPECT_THAT((*transport)->undeclared_subscribers(), testing::ElementsAre("/t"));
  // It keeps what it gets: loans fail, are counted, and nothing ends.
  for (int i = 0; i < 100; ++i) {
    if (const Publisher::Loan loan = out->loan()) {
      loan.header->payload_bytes = 8;
      out->publish(loan);
    }
    if (const ChunkView chunk = in->take()) in->release(chunk);
  }
  EXPECT_GT(out->refused_loans(), 80u);
}

TEST(Iceoryx, ObserversOfExportTopicsTouchNoTimedOne) {
  TransportSpec spec = plain_spec(Backend::kIceoryxEmbedded);
  spec.external_clients = true;
  TopicSpec exported = topic("/export/t", kCapacity, 1, {});
  exported.exported = 8;
  spec.topics.push_back(exported);
  give_export_classes(spec);
  auto transport = make_transport(spec);
  ASSERT_TRUE(transport) << transport.error().message;
  auto out = *(*transport)->publisher("/t");
  auto in = *(*transport)->subscriber("/t", "here");
  auto to_all = *(*transport)->publisher("/export/t");
  ASSERT_TRUE((*transport)->wait_connected());

  std::uint64_t job = 0;
  const auto publish_and_take = [&](int count) {
    for (int i = 0; i < count; ++i) {
      publish(*out, job);
      const ChunkView chunk = in->take();
      ASSERT_TRUE(chunk);
      EXPECT_EQ(chunk.header->job, job);
      EXPECT_TRUE(filled_with(chunk, job));
      in->release(chunk);
      ++job;
      if (const Publisher::Loan loan = to_all->loan()) {
        loan.header->payload_bytes = 8;
        to_all->publish(loan);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  };
  publish_and_take(50);
  EXPECT_EQ(to_all->refused_loans(), 0u);
  for (const std::string kind : {"slow", "waitset", "greedy"}) {
    ChildProcess observer({"--observer", kind});
    ASSERT_EQ(observer.line(), "ready");
    publish_and_take(300);
    // Valid only if the greedy one really has every chunk.
    if (kind == "greedy") {
      EXPECT_GT(to_all->refused_loans(), 200u);
    } else {
      EXPECT_EQ(to_all->refused_loans(), 0u) << kind;
    }
    observer.kill();
    EXPECT_EQ(observer.finish(), -1);
    publish_and_take(50);
  }
  EXPECT_EQ(out->refused_loans(), 0u);
  EXPECT_EQ(in->lost(), 0u);
  EXPECT_TRUE((*transport)->undeclared_subscribers().empty());
  // What the dead one kept comes back.
  EXPECT_TRUE(eventually([&] {
    const Publisher::Loan loan = to_all->loan();
    if (loan) to_all->discard(loan);
    return static_cast<bool>(loan);
  }));
}

TEST(IceoryxDeathTest, TheLibrarysReasonIsPrintedBeforeItEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        auto transport = make_transport(plain_spec(Backend::kIceoryxEmbedded));
        auto out = *(*transport)->publisher("/t");
        const Publisher::Loan loan = out->loan();
        out->discard(loan);
        out->discard(loan);  // a programming error
      },
      "takt: iceoryx reports POPO__CHUNK_SENDER_INVALID_CHUNK_TO_FREE_FROM_USER");
}

}  // namespace

int run_role(const std::string& role, const std::string& argument) {
  if (role == "--roudi") return roudi_role(argument);
  if (role == "--start-at") return starter_role(argument);
  if (role == "--client") return client_role(argument);
  if (role == "--holder") return holder_role(argument);
  if (role == "--greedy") return greedy_role(argument);
  if (role == "--observer") return observer_role(argument);
  return -1;
}

}  // namespace takt::transport

int main(int argc, char** argv) {
  if (argc == 3) {
    const int status = takt::transport::run_role(argv[1], argv[2]);
    if (status >= 0) return status;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
