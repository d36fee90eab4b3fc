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
        const Submissions& submissions = {}, std::span<const std::size_t> outputs = {}, Duration patience = seconds(2))
      : device(FaultDevice::create(device::cpu(), faults)),
        accelerator(std::make_shared<Accelerator>(device, exchange, patience)) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      for (float& v : chunks[i].values) v = static_cast<float>(i);
    }
    EXPECT_TRUE(accelerator->lend(std::as_writable_bytes(std::span(chunks))));
    auto created = Offload::create(parsed(plan), accelerator, {kFirst, outputs}, nullptr, submissions);
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
  Place place(GetParam(), {.polls = 2}, small_plan(), {.cuts = {1, 3}});
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

// Whoever gives the device's work a slot of its own.
TEST_P(OffloadTest, AJobInPartsIsTheSameJob) {
  Place place(GetParam(), {.polls = 2}, small_plan());
  Offload& offload = *place.offload;
  EXPECT_TRUE(offload.ended());  // nothing was begun
  for (std::size_t i = 0; i < place.chunks.size(); ++i) {
    const std::span<const std::byte> bytes[] = {place.chunks[i].bytes()};
    offload.prepare(bytes);
    EXPECT_EQ(offload.launch(), Duration{});
    offload.begin();
    EXPECT_GT(offload.launch().ns, 0);
    EXPECT_FALSE(offload.ended());
    EXPECT_FALSE(offload.ended());
    EXPECT_TRUE(offload.ended());
    EXPECT_FALSE(offload.in_flight());
    EXPECT_EQ(offload.take(), Outcome::kDone);
    const auto x = static_cast<float>(i);
    EXPECT_FLOAT_EQ(place.result(), (x + kernels::exp_f32(x)) * 0.75F);
  }
  const std::span<const std::byte> bytes[] = {place.chunks[0].bytes()};
  offload.prepare(bytes);
  offload.forget();
  offload.begin();
  EXPECT_EQ(offload.launch(), Duration{}) << "nobody wants it any more";
  EXPECT_TRUE(offload.ended());
  // Nobody takes it, and the job behind it has nothing for the device.
  offload.prepare(bytes);
  offload.begin();
  while (!offload.ended()) {
  }
  offload.forget();
  offload.begin();
  EXPECT_EQ(offload.ended(), Duration{});
  place.device->lose("for the test");
  offload.prepare(bytes);
  offload.begin();
  EXPECT_TRUE(offload.ended());
  EXPECT_EQ(offload.take(), Outcome::kLost);
}

// Two stages of one device: between two submissions of a job there is room for a whole one of the other.
TEST_P(OffloadTest, EachSubmissionIsBegunByItself) {
  const Submissions submissions{.cuts = {1, 3}, .copies_in = true, .copies_out = true};
  Place place(GetParam(), {.polls = 2}, small_plan(), submissions);
  Offload& offload = *place.offload;
  ASSERT_EQ(offload.submissions(), 5U);
  auto other = Offload::create(parsed(small_plan()), place.accelerator, {kFirst, {}});
  ASSERT_TRUE(other) << other.error().message;
  const auto expected = [](std::size_t i) {
    const auto x = static_cast<float>(i);
    return (x + kernels::exp_f32(x)) * 0.75F;
  };
  for (std::size_t i = 0; i < place.chunks.size(); ++i) {
    const std::span<const std::byte> bytes[] = {place.chunks[i].bytes()};
    const std::size_t j = place.chunks.size() - 1 - i;
    const std::span<const std::byte> others[] = {place.chunks[j].bytes()};
    offload.prepare(bytes);
    Duration launch;
    for (std::size_t part = 0; part < 5; ++part) {
      offload.begin();
      EXPECT_TRUE(offload.in_flight());
      EXPECT_GT(offload.launch(), launch);
      launch = offload.launch();
      offload.begin();  // not before this one has ended
      EXPECT_EQ(offload.launch(), launch);
      EXPECT_FALSE(offload.ended());
      EXPECT_FALSE(offload.ended());
      EXPECT_TRUE(offload.ended());
      EXPECT_FALSE(offload.in_flight());
      EXPECT_EQ((*other)->run(others), Outcome::kDone);
      EXPECT_FLOAT_EQ(reinterpret_cast<const float*>((*other)->output(0).data())[3], expected(j));
    }
    EXPECT_EQ(offload.take(), Outcome::kDone);
    EXPECT_FLOAT_EQ(place.result(), expected(i));
  }
  const std::uint64_t bytes = kElements * sizeof(float);
  EXPECT_EQ(offload.copied_bytes(), in_place() ? 0 : place.chunks.size() * 2 * bytes);
  // Given up between two, and the next job as if nothing had been; or taken whole by whoever has no slots for it.
  const std::span<const std::byte> bytes_of[] = {place.chunks[2].bytes()};
  offload.prepare(bytes_of);
  offload.begin();
  while (!offload.ended()) {
  }
  offload.begin();
  while (!offload.ended()) {
  }
  offload.forget();
  EXPECT_EQ(place.run(place.chunks[3]), Outcome::kDone);
  EXPECT_FLOAT_EQ(place.result(), expected(3));
  EXPECT_EQ(offload.refused_jobs(), 0U);
}

// What follows a refused submission is not begun, and ends at once.
TEST_P(OffloadTest, NothingFollowsARefusedSubmission) {
  Place place(GetParam(), {.reject = 2, .polls = 1}, small_plan(),
              {.cuts = {1, 3}, .copies_in = true, .copies_out = true});
  Offload& offload = *place.offload;
  const std::span<const std::byte> bytes[] = {place.chunks[1].bytes()};
  offload.prepare(bytes);
  for (int part = 0; part < 3; ++part) {
    offload.begin();
    while (!offload.ended()) {
    }
  }
  const Duration launch = offload.launch();
  for (int part = 3; part < 5; ++part) {
    offload.begin();
    EXPECT_EQ(offload.ended(), Duration{});
  }
  EXPECT_EQ(offload.launch(), launch);
  EXPECT_EQ(offload.take(), Outcome::kRefused);
  EXPECT_EQ(offload.refused_jobs(), 1U);
  EXPECT_EQ(offload.refused_at(), 2U);
  EXPECT_EQ(place.run(place.chunks[1]), Outcome::kDone);
  // A copy can be refused as well.
  place.device->reject_next();
  EXPECT_EQ(place.run(place.chunks[1]), Outcome::kRefused);
  EXPECT_EQ(offload.refused_at(), in_place() ? 1U : 0U);
  EXPECT_EQ(place.run(place.chunks[1]), Outcome::kDone);
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
  // Of jobs of two segments the second one's second is refused: its first may have run.
  Place place(GetParam(), {.reject = 4, .polls = 1}, counting_plan());
  ASSERT_EQ(place.offload->session().segments(), 1U);
  Place cut(GetParam(), {.reject = 4, .polls = 1}, small_plan(), {.cuts = {2}});
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
  const auto another = Offload::create(parsed(small_plan()), place.accelerator, {kFirst, {}});
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

TEST_P(OffloadTest, ResultsGoIntoTheChunkOfTheJob) {
  Place place(GetParam(), {.polls = 1}, small_plan(), {}, kFirst);
  Floats elsewhere;
  const std::uint64_t bytes = kElements * sizeof(float);
  for (Floats* const to : {&place.chunks[2], &place.chunks[3], &elsewhere}) {
    const std::span<const std::byte> in[] = {place.chunks[1].bytes()};
    const std::span<std::byte> out[] = {to->bytes()};
    ASSERT_EQ(place.offload->run(in, out), Outcome::kDone);
    EXPECT_FLOAT_EQ(to->values[3], (1 + kernels::exp_f32(1)) * 0.75F);
    EXPECT_EQ(place.offload->run(in, {}), Outcome::kRefused) << "where to?";
  }
  // In place only what was not lent is copied.
  EXPECT_EQ(place.offload->copied_bytes(), in_place() ? bytes : 3 * 2 * bytes);
  const std::span<const std::byte> in[] = {place.chunks[1].bytes()};
  const std::span<std::byte> odd[] = {std::as_writable_bytes(std::span(place.chunks)).subspan(4, 2 * bytes)};
  EXPECT_EQ(place.offload->run(in, odd), Outcome::kRefused);
}

TEST_P(OffloadTest, AnInputThatIsNotThereIsNotCopied) {
  Place place(GetParam(), {}, small_plan());
  const std::span<const std::byte> nothing[] = {{}};
  ASSERT_EQ(place.offload->run(nothing), Outcome::kDone);
  EXPECT_FLOAT_EQ(place.result(), 0.75F) << "zeros at first";
  EXPECT_EQ(place.offload->copied_bytes(), in_place() ? 0 : kElements * sizeof(float));
}

TEST_P(OffloadTest, TimesOfAJobAreItsOwn) {
  Place place(GetParam(), {}, small_plan());
  ASSERT_EQ(place.run(place.chunks[1]), Outcome::kDone);
  EXPECT_GT(place.offload->launch().ns, 0);
  EXPECT_GE(place.offload->longest_launch(), place.offload->launch());
  EXPECT_GE(place.offload->longest_on_device(), place.offload->on_device());
  place.device->lose("now");
  ASSERT_EQ(place.run(place.chunks[1]), Outcome::kLost);
  EXPECT_EQ(place.offload->on_device().ns, 0);
}

// Nobody waits for it for ever: neither its job, nor the jobs of others on the same device, nor the end.
TEST_P(OffloadTest, AKernelThatHangsLosesTheDevice) {
  auto place = std::make_unique<Place>(GetParam(), device::Faults{}, small_plan(), Submissions{},
                                       std::span<const std::size_t>{}, milliseconds(50));
  const std::shared_ptr<FaultDevice> device = place->device;
  device->hold(true);
  const HostTime begin = host_now();
  EXPECT_EQ(place->run(place->chunks[1]), Outcome::kLost);
  EXPECT_GE(host_now() - begin, milliseconds(50));
  EXPECT_LT(host_now() - begin, seconds(5));
  EXPECT_TRUE(place->offload->in_flight());
  EXPECT_FALSE(place->offload->settle(milliseconds(1)));
  EXPECT_EQ(device->lost(), nullptr) << "it does not know";
  EXPECT_THAT(place->accelerator->lost(), testing::HasSubstr("hangs"));
  EXPECT_EQ(place->run(place->chunks[1]), Outcome::kLost);
  EXPECT_LT(host_now() - begin, seconds(5));
  place.reset();
  // Waiting for the work, and with it destroying what it touches, would have lost this device.
  EXPECT_EQ(device->lost(), nullptr);
  EXPECT_GT(device.use_count(), 1) << "what hangs keeps its device";
  device->hold(false);
}

// The state outlives the device: sessions on the cores go on with what was published last, whatever the device still
// does to the half that its job was to write.
TEST_P(OffloadTest, StateGoesOnWithoutTheDevice) {
  const auto device = FaultDevice::create(device::cpu(), {});
  const auto accelerator = std::make_shared<Accelerator>(std::shared_ptr<device::Device>(device.get(), [](auto*) {}),
                                                         GetParam(), milliseconds(20));
  const auto plan = parsed(counting_plan());
  const std::shared_ptr<StateStore> state = *StateStore::create(plan, *device);
  auto offload = *Offload::create(plan, accelerator, {kFirst, {}}, state);
  Placement placement;
  placement.state = state;
  const auto cores = *Session::create(plan, placement);
  Floats x, y;
  for (float& v : x.values) v = 1;
  ASSERT_TRUE(cores->bind_input(0, x.bytes()));
  ASSERT_TRUE(cores->bind_output(0, y.bytes()));
  const std::span<const std::byte> in[] = {x.bytes()};
  const auto total = [&] { return reinterpret_cast<const float*>(offload->output(0).data())[3]; };
  // In turns.
  ASSERT_EQ(offload->run(in), Outcome::kDone);
  EXPECT_EQ(total(), 6);
  offload->session().publish();
  cores->refresh_state();
  ASSERT_EQ(cores->run(), 2U);
  EXPECT_EQ(y.values[3], 7);
  cores->publish();
  EXPECT_EQ(reinterpret_cast<const float*>(offload->session().state(0).data())[3], 7);
  offload->session().refresh_state();
  device->hold(true);
  ASSERT_EQ(offload->run(in), Outcome::kLost);
  offload->session().publish();  // does nothing
  cores->refresh_state();
  ASSERT_EQ(cores->run(), 2U);
  EXPECT_EQ(y.values[3], 8);
  device->hold(false);
  EXPECT_TRUE(offload->settle(seconds(1)));  // it writes now
  EXPECT_EQ(total(), 8);
  cores->publish();
  for (float expected : {9.0F, 10.0F}) {
    cores->refresh_state();
    ASSERT_EQ(cores->run(), 2U);
    EXPECT_EQ(y.values[3], expected);
    cores->publish();
  }
  // A device that does not see it.
  const auto other = FaultDevice::create(device::cpu(), {});
  placement.device = other.get();
  const auto refused = Session::create(plan, placement);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("does not see the state"));
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
