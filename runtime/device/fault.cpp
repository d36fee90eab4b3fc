#include "runtime/device/fault.h"

#include <atomic>
#include <utility>
#include <vector>

#include "runtime/device/host.h"

namespace takt::device {
namespace {

constexpr std::size_t kMostWork = 4096;

class FaultStream;

std::atomic<std::uint64_t> numbers{0};
thread_local std::uint64_t rejecting = 0;  // number of the device that refuses the next work of this thread

// Shared by the device and its streams.
struct Shared {
  Faults faults;
  std::atomic<bool> held{false};
  std::atomic<const char*> lost_because{nullptr};
  std::atomic<std::uint64_t> made{0}, worked{0}, segments{0};
  const std::uint64_t number = numbers.fetch_add(1) + 1;  // of the device, in this process

  [[nodiscard]] const char* lost() const { return lost_because.load(std::memory_order_acquire); }
  // The first reason counts.
  void lose(const char* reason) {
    const char* none = nullptr;
    lost_because.compare_exchange_strong(none, reason);
  }
  Status make() {
    if (const char* reason = lost()) return fail(Code::kEnvironment, std::string("the device is lost: ") + reason);
    if (++made == faults.refuse) return fail(Code::kEnvironment, "the device refuses, as it was told to");
    return {};
  }
};

class FaultEvent final : public Event {
 public:
  FaultEvent(Shared& shared, std::unique_ptr<Event> inner) : shared_(shared), inner_(std::move(inner)) {}
  ~FaultEvent() override;
  Progress poll() override;
  Progress wait() override;
  [[nodiscard]] Duration since(const Event& begin) const override {
    return inner_->since(*static_cast<const FaultEvent&>(begin).inner_);
  }

 private:
  friend class FaultStream;
  Shared& shared_;
  std::unique_ptr<Event> inner_;
  FaultStream* stream_ = nullptr;  // in which it is pending
  std::uint64_t mark_ = 0;         // its place there
  int polls_ = 0;                  // that still find it pending
  bool lost_ = false;              // its stream is gone, the work in front of it was never done
};

class FaultStream final : public Stream {
 public:
  FaultStream(Shared& shared, std::unique_ptr<Stream> inner) : shared_(shared), inner_(std::move(inner)) {
    ring_.resize(kMostWork);
  }
  ~FaultStream() override {
    if (shared_.held && done_ < end_) shared_.lose("its work hangs");
    work(end_);
    for (; done_ < end_; ++done_) {
      FaultEvent* const event = ring_[done_ % kMostWork].event;
      if (event == nullptr || event->stream_ != this) continue;
      event->stream_ = nullptr;
      event->lost_ = true;
    }
  }

  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override {
    return !told() && push({Work::kCopy, to, from, bytes, nullptr, 0, nullptr});
  }
  bool zero(std::byte* to, std::uint64_t bytes) override {
    return !told() && push({Work::kZero, to, nullptr, bytes, nullptr, 0, nullptr});
  }
  bool replay(Recording& recording, std::size_t segment) override {
    if (++shared_.segments == shared_.faults.reject || told()) return false;
    return push({Work::kReplay, nullptr, nullptr, 0, &recording, segment, nullptr});
  }
  void mark(Event& event) override {
    auto& e = static_cast<FaultEvent&>(event);
    // An event that goes away tells one stream: the one that it was marked in last.
    if (e.stream_ != nullptr) e.stream_->forget(&e);
    e.mark_ = end_ + 1;
    e.polls_ = shared_.faults.polls;
    const bool taken = push({Work::kMark, nullptr, nullptr, 0, nullptr, 0, &e});
    e.stream_ = taken ? this : nullptr;
    e.lost_ = !taken;
  }

  // Of an event that goes away before its time.
  void forget(const FaultEvent* event) {
    for (std::uint64_t at = done_; at < end_; ++at) {
      if (ring_[at % kMostWork].event == event) ring_[at % kMostWork].event = nullptr;
    }
  }

  // Does what waits, up to place `until`; nothing while held or lost.
  void work(std::uint64_t until) {
    while (done_ < until && !shared_.held && shared_.lost() == nullptr) {
      const Work& w = ring_[done_ % kMostWork];
      if (w.kind != Work::kMark && ++shared_.worked == shared_.faults.lose) {
        shared_.lose("a piece of work failed, as it was told to");
        return;
      }
      ++done_;
      switch (w.kind) {
        case Work::kCopy: inner_->copy(w.to, w.from, w.bytes); break;
        case Work::kZero: inner_->zero(w.to, w.bytes); break;
        case Work::kReplay: inner_->replay(*w.recording, w.segment); break;
        case Work::kMark:
          if (w.event == nullptr) break;
          inner_->mark(*w.event->inner_);
          if (w.event->stream_ == this && w.event->mark_ == done_) w.event->stream_ = nullptr;
          break;
      }
    }
  }

 private:
  struct Work {
    enum Kind { kCopy, kZero, kReplay, kMark } kind = kCopy;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::uint64_t bytes = 0;
    Recording* recording = nullptr;
    std::size_t segment = 0;
    FaultEvent* event = nullptr;
  };
  // Once: that this piece of work is to be refused.
  [[nodiscard]] bool told() const {
    const bool is = rejecting == shared_.number;
    if (is) rejecting = 0;
    return is;
  }
  bool push(const Work& w) {
    if (shared_.lost() != nullptr) return false;
    if (end_ - done_ == kMostWork) {
      shared_.lose("too much work waits in a stream");
      return false;
    }
    ring_[end_++ % kMostWork] = w;
    return true;
  }

  Shared& shared_;
  std::unique_ptr<Stream> inner_;
  std::vector<Work> ring_;
  std::uint64_t done_ = 0, end_ = 0;
};

FaultEvent::~FaultEvent() {
  if (stream_ != nullptr) stream_->forget(this);
}

Progress FaultEvent::poll() {
  if (stream_ == nullptr) return lost_ ? Progress::kLost : Progress::kDone;
  if (shared_.lost() != nullptr) return Progress::kLost;
  if (shared_.held || polls_-- > 0) return Progress::kPending;
  stream_->work(mark_);
  return stream_ == nullptr ? Progress::kDone : Progress::kLost;
}

Progress FaultEvent::wait() {
  if (stream_ != nullptr && shared_.lost() == nullptr) {
    if (shared_.held) shared_.lose("its work hangs");
    stream_->work(mark_);
  }
  return stream_ == nullptr && !lost_ ? Progress::kDone : Progress::kLost;
}

class Fault final : public FaultDevice {
 public:
  Fault(Device& inner, const Faults& faults) : inner_(inner), properties_(inner.properties()) {
    shared_.faults = faults;
    properties_.name = "fault(" + properties_.name + ")";
    properties_.callers_run = false;
  }
  [[nodiscard]] const Properties& properties() const override { return properties_; }
  [[nodiscard]] const char* unsupported(kernels::Target target) const override { return inner_.unsupported(target); }
  [[nodiscard]] const char* lost() const override { return shared_.lost(); }
  [[nodiscard]] std::uint64_t free_bytes() const override { return inner_.free_bytes(); }
  Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    return inner_.allocate(bytes);
  }
  Result<std::unique_ptr<Memory>> allocate_shared(std::uint64_t bytes) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    return inner_.allocate_shared(bytes);
  }
  Result<std::unique_ptr<Memory>> import_host(std::span<std::byte> bytes) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    return inner_.import_host(bytes);
  }
  Result<std::shared_ptr<const Memory>> constants(std::span<const std::byte> bytes) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    return inner_.constants(bytes);
  }
  Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                            std::span<const std::size_t> cuts) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    return inner_.record(calls, bindings, cuts);
  }
  Result<std::unique_ptr<Stream>> stream(int priority, int partition) override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    TAKT_ASSIGN(auto inner, inner_.stream(priority, partition));
    return std::make_unique<FaultStream>(shared_, std::move(inner));
  }
  Result<std::unique_ptr<Event>> event() override {
    TAKT_RETURN_IF_ERROR(shared_.make());
    TAKT_ASSIGN(auto inner, inner_.event());
    return std::make_unique<FaultEvent>(shared_, std::move(inner));
  }
  void hold(bool on) override { shared_.held = on; }
  void reject_next() override { rejecting = shared_.number; }
  void lose(const char* reason) override { shared_.lose(reason); }

 private:
  Device& inner_;
  Properties properties_;
  Shared shared_;
};

}  // namespace

std::unique_ptr<FaultDevice> FaultDevice::create(Device& inner, const Faults& faults) {
  return std::make_unique<Fault>(inner, faults);
}

}  // namespace takt::device
