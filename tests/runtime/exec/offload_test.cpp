// Whole jobs on a device beside the caller, from chunk to result: in place and with copies, refused, lost and late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>
#include <thread>

#include "kernels/reference/elementary_f32.h"
#include "runtime/device/fault.h"
#include "runtime/exec/offload.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/runtime/plan/small_plan.h"

namespace takt::exec {
namespace {

using device::FaultDevice;
using test::counting_plan;
using test::Floats;
using test::kElements;
using test::small_plan;
using Outcome = Offload::Outcome;

std::shared_ptr<const plan::Plan> parsed(const test::SmallPlan& small) { return *plan::Plan::parse(small.bytes()); }

constexpr std::size_t kFirst[] = {0};

// Chunks as a transport would have them, in one block, and a plan on a device that was shown it.
struct Place {
  std::shared_ptr<FaultDevice> device;
  std::vector<Floats> chunks{4};
  std::shared_ptr<Accelerator> accelerator;
  std::unique_ptr<Offload> offload;

  Place(Exchange exchange, const device::Faults& faults, const test::SmallPlan& plan,
        std::span<const std::size_t> segments = {})
      : device(FaultDevice::create(device::cpu(), faults)),
        accelerator(std::make_shared<Accelerator>(device, exchange)) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      for (float& v : chunks[i].values) v = static_cast<float>(i);
    }
    EXPECT_TRUE(accelerator->lend(std::as_writable_bytes(std::span(chunks))));
    auto created = Offload::create(parsed(plan), accelerator, kFirst, nullptr, segments);
    EXPECT_TRUE(created) << created.error().message;
    if (created) offload = *std::move(created);
  }
  Outcome run(Floats& chunk) const {
    const std::span<const std::byte> bytes[] = {chunk.bytes()};
    return offload->run(bytes);
  }
  [[nodiscard]] float result() const { return reinterpret_cast<const float*>(offload->output(0).data())[3]; }
};

class OffloadTest : public testing::TestWithParam<Exchange> {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
  [[nodiscard]] static bool in_place() { return GetParam() == Exchange::kInPlace; }
};
INSTANTIATE_TEST_SUITE_P(Exchanges, OffloadTest, testing::Values(Exchange::kInPlace, Exchange::kCopies),
                         [](const auto& test) { return test.param == Exchange::kInPlace ? "in_place" : "copies"; });

TEST_P(OffloadTest, AJobReadsItsChunkAndGivesItsResults) {
  const std::size_t cuts[] = {1, 3};
  Place place(GetParam(), {.polls = 2}, small_plan(), cuts);
  ASSERT_EQ(place.offload->session().segments(), 3U);
  for (int round = 0; round < 25; ++round) {  // a hundred jobs, each with its chunk elsewhere
    for (std::size_t i = 0; i < place.chunks.size(); ++i) {
      ASSERT_EQ(place.run(place.chunks[i]), Outcome::kDone);
      const auto x = static_cast<float>(i);
      EXPECT_FLOAT_EQ(place.result(), (x + kernels::exp_f32(x)) * 0.75F);
    }
  }
  const std::uint64_t bytes = kElements * sizeof(float);
  EXPECT_EQ(place.offload->copied_bytes(), in_place() ? 0 : 100 * 2 * bytes);
  EXPECT_GT(place.offload->longest_launch().ns, 0);
}

TEST_P(OffloadTest, BytesThatWereNotLentAreCopied) {
  Place place(GetParam(), {}, small_plan());
  Floats elsewhere;
  for (float& v : elsewhere.values) v = 1;
  ASSERT_EQ(place.run(elsewhere), Outcome::kDone);
  EXPECT_FLOAT_EQ(place.result(), (1 + kernels::exp_f32(1)) * 0.75F);
  EXPECT_GT(place.offload->copied_bytes(), 0U);
}

TEST_P(OffloadTest, ARefusedSegmentCostsOneJob) {
  const std::size_t cuts[] = {2};
  // Of jobs of two segments the second one's second is refused: its first may have run.
  Place place(GetParam(), {.reject = 4, .polls = 1}, counting_plan());
  ASSERT_EQ(place.offload->session().segments(), 1U);
  Place cut(GetParam(), {.reject = 4, .polls = 1}, small_plan(), cuts);
  for (const Outcome expected : {Outcome::kDone, Outcome::kRefused, Outcome::kDone}) {
    EXPECT_EQ(cut.run(cut.chunks[1]), expected);
    EXPECT_EQ(cut.offload->session().poll(), device::Progress::kDone);  // out of quarantine again
  }
  EXPECT_FLOAT_EQ(cut.result(), (1 + kernels::exp_f32(1)) * 0.75F);
  // State: the refused job publishes nothing.
  for (const float expected : {6.0F, 7.0F, 8.0F, 8.0F, 9.0F}) {
    const Outcome outcome = place.run(place.chunks[1]);
    if (outcome == Outcome::kDone) {
      EXPECT_EQ(reinterpret_cast<const float*>(place.offload->output(0).data())[0], expected);
    }
    place.offload->session().publish();
  }
}

TEST_P(OffloadTest, ALostDeviceEndsTheJobAndRefusesTheNext) {
  Place place(GetParam(), {.polls = 2}, small_plan());
  ASSERT_EQ(place.run(place.chunks[1]), Outcome::kDone);
  place.device->lose("its context is poisoned");
  EXPECT_EQ(place.run(place.chunks[1]), Outcome::kLost);
  EXPECT_EQ(place.run(place.chunks[1]), Outcome::kLost);
  const auto another = Offload::create(parsed(small_plan()), place.accelerator, kFirst);
  ASSERT_FALSE(another);
  EXPECT_THAT(another.error().message, testing::HasSubstr("its context is poisoned"));
}

TEST_P(OffloadTest, ALateJobKeepsItsCallerUntilItsEventCompletes) {
  Place place(GetParam(), {}, small_plan());
  place.device->hold(true);
  std::atomic<bool> returned{false};
  Outcome outcome = Outcome::kLost;
  std::thread worker([&] {
    outcome = place.run(place.chunks[2]);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(returned);  // so whoever owns chunk, arena and state cannot give them away
  place.device->hold(false);
  worker.join();
  EXPECT_EQ(outcome, Outcome::kDone);
  EXPECT_FLOAT_EQ(place.result(), (2 + kernels::exp_f32(2)) * 0.75F);
}

TEST_P(OffloadTest, AChunkThatIsTooSmallIsRefused) {
  Place place(GetParam(), {}, small_plan());
  const std::span<const std::byte> bytes[] = {place.chunks[0].bytes().first(8)};
  EXPECT_EQ(place.offload->run(bytes), Outcome::kRefused);
  EXPECT_EQ(place.run(place.chunks[0]), Outcome::kDone);
}

TEST_P(OffloadTest, JobsAllocateNothing) {
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted here";
  Place place(GetParam(), {.polls = 1}, small_plan());
  const memory::ThreadCounters before = memory::thread_counters();
  for (Floats& chunk : place.chunks) ASSERT_EQ(place.run(chunk), Outcome::kDone);
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
}

}  // namespace
}  // namespace takt::exec
