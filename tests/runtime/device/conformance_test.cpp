// What every device must do: one suite over all of them. A further device (CUDA) joins by one entry of kDevices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/cpu/host.h"
#if defined(TAKT_CUDA)
#include "runtime/device/cuda.h"
#endif
#if defined(TAKT_CUDA_HOST)
#include "runtime/device/cuda_host.h"
#endif
#include "runtime/device/device.h"
#include "runtime/device/fault.h"
#include "runtime/device/null.h"
#include "runtime/memory/alloc_guard.h"

namespace takt::device {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kElements = 1000;
constexpr std::uint64_t kBytes = kElements * sizeof(float);

struct DeviceUnderTest {
  const char* name;
  std::function<std::shared_ptr<Device>()> make;
};

std::shared_ptr<Device> borrowed(Device& device) {
  return {&device, [](Device*) {}};
}

const DeviceUnderTest kDevices[] = {
    {"cpu", [] { return borrowed(cpu()); }},
    {"null", [] { return borrowed(null()); }},
    {"fault_free", [] { return std::shared_ptr<Device>(FaultDevice::create(cpu(), {})); }},
    {"late", [] { return std::shared_ptr<Device>(FaultDevice::create(cpu(), {.polls = 3})); }},
#if defined(TAKT_CUDA_HOST)
    {"cuda_host",
     [] { return std::shared_ptr<Device>(CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 1})); }},
    {"cuda_host_checked",
     [] {
       return std::shared_ptr<Device>(
           CudaHost::create(kernels::cuda::simt_checked::launch_of, {.seed = 2, .check = true}));
     }},
    {"late_cuda_host",
     [] {
       static const std::unique_ptr<CudaHost> host = CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 3});
       return std::shared_ptr<Device>(FaultDevice::create(*host, {.polls = 3}));
     }},
#endif
#if defined(TAKT_CUDA)
    {"cuda",
     [] {
       auto gpu = cuda();
       if (!gpu) std::printf("  no GPU is used: %s\n", gpu.error().message.c_str());
       return gpu ? std::shared_ptr<Device>(*std::move(gpu)) : nullptr;
     }},
#endif
    {"late_null", [] { return std::shared_ptr<Device>(FaultDevice::create(null(), {.polls = 3})); }},
};

struct alignas(64) Floats {
  float values[kElements] = {};
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values)); }
};

// A call of a real kernel with its parameters.
struct Add {
  kernels::cpu::BinaryParams params;
  std::vector<Operand> operands;
  std::vector<Condition> conditions = {};
  static inline kernels::Target target = kernels::best_target();  // of the device under test
  Add(Operand a, Operand b, Operand sum) : operands{a, b, sum} { params.pixels = kElements; }
  [[nodiscard]] Call call() const {
    return {kernels::find_kernel(target, static_cast<std::uint32_t>(kernels::cpu::KernelId::kBinary)), &params,
            operands, conditions};
  }
};

Operand at(const std::byte* data) { return {kBytes, const_cast<std::byte*>(data)}; }
Operand bound(std::uint32_t binding, std::uint64_t offset = 0) { return {kBytes, nullptr, binding, offset}; }

class DeviceTest : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  void SetUp() override {
    device_ = GetParam().make();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no GPU that it could use";
    Add::target = kernels::best_target();
    for (const kernels::Target target : {kernels::Target::kCudaSm87, kernels::Target::kCudaSm90}) {
      if (device_->unsupported(Add::target) != nullptr) Add::target = target;
    }
    if (const char* reason = device_->unsupported(Add::target)) GTEST_SKIP() << reason;
    auto stream = device_->stream(0, 0);
    auto event = device_->event();
    ASSERT_TRUE(stream && event);
    stream_ = *std::move(stream);
    event_ = *std::move(event);
  }
  [[nodiscard]] bool computes() const { return device_->properties().computes; }
  void finish() {
    stream_->mark(*event_);
    ASSERT_EQ(event_->wait(), Progress::kDone);
  }
  // Host memory as the device sees it.
  std::byte* lent(Floats& floats) {
    auto memory = device_->import_host(floats.bytes());
    EXPECT_TRUE(memory);
    lent_.push_back(*std::move(memory));
    return lent_.back()->data();
  }

  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> lent_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<Stream> stream_;
};

TEST_P(DeviceTest, SaysWhatItIs) {
  EXPECT_FALSE(device_->properties().name.empty());
  EXPECT_GE(device_->properties().partitions, 1);
  EXPECT_GE(device_->properties().priorities, 1);
  EXPECT_EQ(device_->lost(), nullptr);
}

TEST_P(DeviceTest, MemoryIsAlignedAndZero) {
  const auto memory = device_->allocate(kBytes);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*memory)->data()) % 64, 0U);
  EXPECT_EQ((*memory)->bytes(), kBytes);
  Floats back;
  back.values[7] = 3;
  stream_->copy(lent(back), (*memory)->data(), kBytes);
  finish();
  if (computes()) {
    EXPECT_EQ(std::accumulate(std::begin(back.values), std::end(back.values), 0.0F), 0);
  }
  const auto nothing = device_->allocate(0);
  ASSERT_TRUE(nothing);
  EXPECT_EQ((*nothing)->bytes(), 0U);
#ifndef TAKT_SANITIZED  // whose allocator ends the program
  const auto much = device_->allocate(std::uint64_t{1} << 60);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code, Code::kEnvironment);
  EXPECT_THAT(much.error().message, HasSubstr("1152921504606846976 bytes"));
#endif
}

TEST_P(DeviceTest, SharedMemoryIsSeenByBoth) {
  const auto x = device_->allocate_shared(kBytes), y = device_->allocate_shared(kBytes);
  ASSERT_TRUE(x && y);
  ASSERT_NE((*x)->host(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*x)->data()) % 64, 0U);
  EXPECT_EQ((*y)->host()[kBytes - 1], std::byte{0});
  std::memset((*x)->host(), 7, kBytes);
  EXPECT_TRUE(stream_->copy((*y)->data(), (*x)->data(), kBytes));
  finish();
  if (computes()) {
    EXPECT_EQ((*y)->host()[kBytes - 1], std::byte{7});
  }
}

TEST_P(DeviceTest, LentMemoryIsNotCopiedAndKeepsItsBytes) {
  Floats x;
  for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = static_cast<float>(i);
  const auto memory = device_->import_host(x.bytes());
  ASSERT_TRUE(memory);
  EXPECT_EQ((*memory)->host(), x.bytes().data());
  EXPECT_EQ(x.values[999], 999);
  EXPECT_EQ(device_->import_host(x.bytes().subspan(4)).error().code, Code::kInput);
}

TEST_P(DeviceTest, ConstantsAreMadeOnce) {
  Floats w;
  const auto a = device_->constants(w.bytes()), b = device_->constants(w.bytes());
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->data(), (*b)->data());
}

TEST_P(DeviceTest, StreamsKeepTheirOrder) {
  Floats x, y;
  for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = static_cast<float>(i);
  const auto memory = device_->allocate(kBytes);
  ASSERT_TRUE(memory);
  std::byte* const from = lent(x);
  std::byte* const to = lent(y);
  stream_->copy((*memory)->data(), from, kBytes);
  stream_->copy(to, (*memory)->data(), kBytes);
  stream_->zero((*memory)->data(), kBytes);
  finish();
  if (computes()) {
    EXPECT_EQ(std::memcmp(x.values, y.values, kBytes), 0);
  }
  stream_->copy(to, (*memory)->data(), kBytes);
  finish();
  EXPECT_EQ(y.values[5], 0);
}

TEST_P(DeviceTest, ASegmentIsReplayedWithWhatIsBound) {
  // sum = (x + x) + w, in two segments; x and the sum are bound, the sum 64 bytes into its buffer.
  Floats x, z, w;
  for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = static_cast<float>(i);
  for (float& v : z.values) v = -1;
  for (float& v : w.values) v = 0.5F;
  const auto arena = device_->allocate(kBytes);
  const auto constants = device_->constants(w.bytes());
  const auto result = device_->allocate(kBytes + 64);
  ASSERT_TRUE(arena && constants && result);
  const Add twice(bound(0), bound(0), at((*arena)->data()));
  const Add more(at((*arena)->data()), at((*constants)->data()), bound(1, 64));
  const Call calls[] = {twice.call(), more.call()};
  const std::size_t cuts[] = {1};
  const auto recording = device_->record(calls, 2, cuts);
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ((*recording)->segments(), 2U);
  (*recording)->bind(1, (*result)->data());
  Floats y;
  std::byte* const to = lent(y);
  for (Floats* const chunk : {&x, &z}) {  // chunks move
    (*recording)->bind(0, lent(*chunk));
    stream_->replay(**recording, 0);
    stream_->replay(**recording, 1);
    stream_->copy(to, (*result)->data() + 64, kBytes);
    finish();
    if (!computes()) continue;
    for (std::int64_t i = 0; i < kElements; ++i) ASSERT_EQ(y.values[i], 2 * chunk->values[i] + 0.5F) << i;
  }
}

TEST_P(DeviceTest, ACallRunsOnlyWhereItsConditionsHold) {
  Floats x;
  for (float& v : x.values) v = 3;
  const auto sum = device_->allocate(kBytes);
  const auto flags = device_->allocate(64);
  ASSERT_TRUE(sum && flags);
  Add twice(bound(0), bound(0), at((*sum)->data()));
  twice.conditions = {{{1, (*flags)->data()}, true}, {{1, nullptr, 1, 5}, false}};
  const Call calls[] = {twice.call()};
  const auto recording = device_->record(calls, 2, {});
  ASSERT_TRUE(recording) << recording.error().message;
  (*recording)->bind(0, lent(x));
  (*recording)->bind(1, (*flags)->data());
  Floats set, y;
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      set.bytes()[0] = std::byte{first};
      set.bytes()[5] = std::byte{second};
      stream_->copy((*flags)->data(), lent(set), 64);
      stream_->zero((*sum)->data(), kBytes);
      stream_->replay(**recording, 0);
      stream_->copy(lent(y), (*sum)->data(), kBytes);
      finish();
      if (computes()) {
        EXPECT_EQ(y.values[100], first && !second ? 6 : 0) << first << second;
      }
    }
  }
  twice.conditions[1].operand.binding = 2;
  const Call wrong[] = {twice.call()};
  EXPECT_FALSE(device_->record(wrong, 2, {}));
}

TEST_P(DeviceTest, CallersMayRunCallsPartByPart) {
  if (!device_->properties().callers_run) GTEST_SKIP() << "its calls are run by the device";
  Floats x, y;
  for (std::int64_t i = 0; i < kElements; ++i) x.values[i] = static_cast<float>(i);
  const Add twice(bound(0), bound(0), bound(1));
  const Call calls[] = {twice.call()};
  const auto recording = device_->record(calls, 2, {});
  ASSERT_TRUE(recording);
  (*recording)->bind(0, lent(x));
  (*recording)->bind(1, lent(y));
  for (int part = 2; part >= 0; --part) (*recording)->run_call(0, part, 3);
  if (computes()) {
    EXPECT_EQ(y.values[999], 1998);
  }
}

TEST_P(DeviceTest, RefusesRecordingsThatAreNone) {
  Floats x;
  const Add add(bound(0), bound(2), at(x.bytes().data()));
  const Call calls[] = {add.call(), add.call()};
  EXPECT_THAT(device_->record(calls, 2, {}).error().message, HasSubstr("entry 2 of a binding table of 2"));
  for (const std::vector<std::size_t>& cuts : {std::vector<std::size_t>{0}, {2}, {1, 1}}) {
    const auto recording = device_->record(calls, 3, cuts);
    ASSERT_FALSE(recording);
    EXPECT_EQ(recording.error().code, Code::kInternal);
  }
  const auto empty = device_->record({}, 0, {});
  ASSERT_TRUE(empty);
  stream_->replay(**empty, 0);
  finish();
}

TEST_P(DeviceTest, RefusesPrioritiesAndPartitionsThatItHasNot) {
  const Properties& p = device_->properties();
  for (int priority = 0; priority < p.priorities; ++priority) EXPECT_TRUE(device_->stream(priority, 0));
  EXPECT_EQ(device_->stream(p.priorities, 0).error().code, Code::kConfiguration);
  EXPECT_EQ(device_->stream(0, p.partitions).error().code, Code::kConfiguration);
  EXPECT_EQ(device_->stream(-1, 0).error().code, Code::kConfiguration);
}

TEST_P(DeviceTest, EventsTellTimeAndMayBeMarkedAgain) {
  const auto begin = device_->event();
  ASSERT_TRUE(begin);
  EXPECT_EQ((*begin)->poll(), Progress::kDone);  // never marked
  const auto memory = device_->allocate(1 << 20);
  ASSERT_TRUE(memory);
  for (int round = 0; round < 3; ++round) {
    stream_->mark(**begin);
    for (int i = 0; i < 8; ++i) stream_->zero((*memory)->data(), 1 << 20);
    stream_->mark(*event_);
    int polls = 0;
    while (event_->poll() == Progress::kPending) ++polls;
    EXPECT_LE(polls, 1000000);
    EXPECT_EQ(event_->poll(), Progress::kDone);
    EXPECT_EQ((*begin)->poll(), Progress::kDone);  // it lies before
    EXPECT_GE(event_->since(**begin).ns, computes() ? 1 : 0);
  }
}

TEST_P(DeviceTest, UsingItAllocatesNothing) {
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted here";
  if (GetParam().name == std::string("cuda_host_checked")) GTEST_SKIP() << "what watches memory allocates";
  Floats x, y;
  std::byte* const from = lent(x);
  std::byte* const to = lent(y);
  const Add twice(bound(0), bound(0), bound(1));
  const Call calls[] = {twice.call()};
  const auto recording = device_->record(calls, 2, {});
  ASSERT_TRUE(recording);
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 10; ++i) {
    (*recording)->bind(0, from);
    (*recording)->bind(1, to);
    stream_->copy(to, from, kBytes);
    stream_->replay(**recording, 0);
    stream_->mark(*event_);
    while (event_->poll() == Progress::kPending) continue;
  }
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(kDevices),
                         [](const auto& device) { return std::string(device.param.name); });

// What the fault-injecting device does on top, and the rules of quarantine and loss that any device follows.
class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
  }
};

TEST_F(FaultTest, RefusesWhatItWasToldTo) {
  const auto device = FaultDevice::create(cpu(), {.refuse = 3});
  EXPECT_TRUE(device->allocate(64));
  EXPECT_TRUE(device->event());
  const auto third = device->stream(0, 0);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::kEnvironment);
  EXPECT_TRUE(device->stream(0, 0));
  EXPECT_EQ(device->lost(), nullptr);
}

TEST_F(FaultTest, WhatIsHeldStaysPendingAndIsDoneLater) {
  const auto device = FaultDevice::create(cpu(), {});
  const auto stream = *device->stream(0, 0);
  const auto event = *device->event();
  Floats x, y;
  x.values[0] = 1;
  device->hold(true);
  stream->copy(y.bytes().data(), x.bytes().data(), kBytes);
  stream->mark(*event);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(event->poll(), Progress::kPending);
  EXPECT_EQ(y.values[0], 0);  // not before an event tells
  x.values[0] = 2;            // and the source is read when the work is done: why it is in quarantine
  device->hold(false);
  EXPECT_EQ(event->poll(), Progress::kDone);
  EXPECT_EQ(y.values[0], 2);
}

TEST_F(FaultTest, FailedWorkLosesTheDeviceForGood) {
  const auto device = FaultDevice::create(cpu(), {.lose = 2});
  const auto stream = *device->stream(0, 0);
  const auto early = *device->event(), late = *device->event();
  Floats x, y, z;
  x.values[0] = 1;
  stream->copy(y.bytes().data(), x.bytes().data(), kBytes);
  stream->mark(*early);
  stream->copy(z.bytes().data(), x.bytes().data(), kBytes);
  stream->mark(*late);
  EXPECT_EQ(early->poll(), Progress::kDone);
  EXPECT_EQ(late->poll(), Progress::kLost);
  EXPECT_EQ(early->poll(), Progress::kDone);  // what was done stays done
  EXPECT_EQ(y.values[0], 1);
  EXPECT_EQ(z.values[0], 0);
  EXPECT_NE(device->lost(), nullptr);
  stream->copy(z.bytes().data(), x.bytes().data(), kBytes);  // accepted, never done
  stream->mark(*early);
  EXPECT_EQ(early->wait(), Progress::kLost);
  EXPECT_EQ(z.values[0], 0);
  for (const Status& status :
       {Status(device->allocate(64).map([](auto&&) {})), Status(device->event().map([](auto&&) {})),
        Status(device->stream(0, 0).map([](auto&&) {}))}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kEnvironment);
    EXPECT_THAT(status.error().message, HasSubstr("lost"));
  }
}

TEST_F(FaultTest, ARefusedSegmentCostsItselfAlone) {
  const auto device = FaultDevice::create(cpu(), {.reject = 2, .polls = 1});
  const auto stream = *device->stream(0, 0);
  const auto event = *device->event();
  Floats x, y;
  x.values[3] = 1;
  const Add twice(bound(0), bound(0), bound(1));
  const Call calls[] = {twice.call()};
  const auto recording = *device->record(calls, 2, {});
  recording->bind(0, x.bytes().data());
  recording->bind(1, y.bytes().data());
  for (const bool taken : {true, false, true}) {
    y = {};
    EXPECT_EQ(stream->replay(*recording, 0), taken);
    stream->mark(*event);
    EXPECT_EQ(event->poll(), Progress::kPending);
    EXPECT_EQ(event->poll(), Progress::kDone);  // there is nothing to wait for, and nothing is lost
    EXPECT_EQ(y.values[3], taken ? 2 : 0);
  }
  EXPECT_EQ(device->lost(), nullptr);
  // The refusal is for the thread that asked, and for this device.
  device->reject_next();
  std::thread([&] {
    const auto other = *device->stream(0, 0);
    EXPECT_TRUE(other->replay(*recording, 0));
  }).join();
  EXPECT_FALSE(stream->replay(*recording, 0));
  EXPECT_TRUE(stream->replay(*recording, 0));
  stream->mark(*event);
  EXPECT_EQ(event->wait(), Progress::kDone);
}

TEST_F(FaultTest, LossOutsideOfWorkReachesEveryPendingEvent) {
  const auto device = FaultDevice::create(cpu(), {.polls = 5});
  const auto stream = *device->stream(0, 0);
  const auto event = *device->event();
  stream->mark(*event);
  EXPECT_EQ(event->poll(), Progress::kPending);
  device->lose("somebody pulled it out");
  EXPECT_EQ(event->poll(), Progress::kLost);
  EXPECT_STREQ(device->lost(), "somebody pulled it out");
}

TEST_F(FaultTest, TooMuchWaitingWorkIsALossNotAnOverflow) {
  const auto device = FaultDevice::create(cpu(), {});
  const auto stream = *device->stream(0, 0);
  const auto event = *device->event();
  Floats x;
  device->hold(true);
  for (int i = 0; i < 5000; ++i) stream->zero(x.bytes().data(), kBytes);
  stream->mark(*event);
  EXPECT_EQ(event->poll(), Progress::kLost);
  EXPECT_STREQ(device->lost(), "too much work waits in a stream");
}

TEST_F(FaultTest, EventsAndStreamsMayEndInAnyOrder) {
  const auto device = FaultDevice::create(cpu(), {.polls = 2});
  Floats x;
  {
    auto event = *device->event();
    auto stream = *device->stream(0, 0);
    stream->mark(*event);
    event.reset();  // pending
    stream->zero(x.bytes().data(), kBytes);
  }
  auto event = *device->event();
  x.values[1] = 1;
  {
    auto stream = *device->stream(0, 0);
    stream->zero(x.bytes().data(), kBytes);
    stream->mark(*event);
  }
  EXPECT_EQ(x.values[1], 0);  // the stream has waited
  EXPECT_EQ(event->poll(), Progress::kDone);
  {
    auto stream = *device->stream(0, 0);
    device->hold(true);
    stream->zero(x.bytes().data(), kBytes);
    stream->mark(*event);
  }
  EXPECT_EQ(event->poll(), Progress::kLost);  // what hung can never be waited for
}

TEST_F(FaultTest, AnEventMarkedInAnotherStreamIsNoLongerTheFirstOnes) {
  const auto device = FaultDevice::create(cpu(), {.polls = 2});
  auto first = *device->stream(0, 0), second = *device->stream(0, 0);
  auto event = *device->event();
  Floats x;
  first->mark(*event);
  second->zero(x.bytes().data(), kBytes);
  second->mark(*event);
  EXPECT_EQ(event->poll(), Progress::kPending);
  second.reset();  // does its work
  EXPECT_EQ(event->poll(), Progress::kDone);
  event.reset();
  first.reset();  // knows nothing of the event any more
}

TEST_F(FaultTest, AnEventMarkedOnALostDeviceOutlivesItsStream) {
  const auto device = FaultDevice::create(cpu(), {});
  auto stream = *device->stream(0, 0);
  auto early = *device->event(), late = *device->event();
  stream->mark(*early);
  device->lose("somebody pulled it out");
  stream->mark(*early);
  stream->mark(*late);
  early.reset();  // the stream knows neither any more
  stream.reset();
  EXPECT_EQ(late->poll(), Progress::kLost);
  late.reset();
}

}  // namespace
}  // namespace takt::device
