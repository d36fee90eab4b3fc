// Private: what devices in host memory share.
#pragma once

#include <vector>

#include "runtime/device/device.h"

namespace takt::device {

// Of host memory: data() and host() are one.
Result<std::unique_ptr<Memory>> allocate_host(std::uint64_t bytes);
Result<std::unique_ptr<Memory>> lend_host(std::span<std::byte> bytes);
Result<std::shared_ptr<const Memory>> share_host(std::span<const std::byte> bytes);

Status check_calls(std::span<const Call> calls, std::size_t bindings, std::span<const std::size_t> cuts);
Status check_stream(const Properties& properties, int priority, int partition);

// Calls as the host can run them.
class HostRecording final : public Recording {
 public:
  HostRecording(std::span<const Call> calls, std::size_t bindings, std::span<const std::size_t> cuts);
  void bind(std::size_t binding, std::byte* address) override;
  void run_call(std::size_t call, int part, int parts) override {
    const Bound& bound = calls_[call];
    for (std::size_t i = 0; i < bound.conditions; ++i) {
      if ((bound.operands[bound.count + i].data[0] != std::byte{0}) != when_[bound.first + i]) return;
    }
    bound.run(bound.params, bound.operands, part, parts);
  }
  void run_segment(std::size_t segment);

 private:
  struct Bound {
    void (*run)(const void*, const kernels::Operand*, int, int) = nullptr;
    const void* params = nullptr;
    kernels::Operand* operands = nullptr;  // `count` of the kernel, then its conditions
    std::size_t count = 0;
    std::size_t conditions = 0;
    std::size_t first = 0;  // in when_
  };
  // Operand `operand` lies `offset` bytes into what is bound.
  struct Patch {
    std::size_t operand = 0;
    std::uint64_t offset = 0;
  };
  std::vector<kernels::Operand> operands_;  // of all calls, one after the other
  std::vector<bool> when_;                  // of the conditions of all calls
  std::vector<Bound> calls_;
  std::vector<std::vector<Patch>> table_;
  std::vector<std::size_t> begins_;  // of segments; the end last
};

// Done when it is marked, since the work before it is.
class HostEvent final : public Event {
 public:
  Progress poll() override { return Progress::kDone; }
  Progress wait() override { return Progress::kDone; }
  [[nodiscard]] Duration since(const Event& begin) const override {
    return time_ - static_cast<const HostEvent&>(begin).time_;
  }
  void mark() { time_ = host_now(); }

 private:
  HostTime time_;
};

// What devices in host memory have in common: memory, events, and that they are not lost.
class HostDevice : public Device {
 public:
  [[nodiscard]] const Properties& properties() const override { return properties_; }
  [[nodiscard]] const char* lost() const override { return nullptr; }
  Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) override { return allocate_host(bytes); }
  Result<std::unique_ptr<Memory>> allocate_shared(std::uint64_t bytes) override { return allocate_host(bytes); }
  Result<std::unique_ptr<Memory>> import_host(std::span<std::byte> bytes) override { return lend_host(bytes); }
  Result<std::shared_ptr<const Memory>> constants(std::span<const std::byte> bytes) override {
    return share_host(bytes);
  }
  Result<std::unique_ptr<Event>> event() override { return std::make_unique<HostEvent>(); }

 protected:
  Properties properties_;
};

}  // namespace takt::device
