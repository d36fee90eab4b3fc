// The tensors of a graph that outlive a job, in two halves: jobs read the half published last and write the other one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

// Shared by the sessions of one stage: variants and swapped plans go on with the same state. One job at a time uses it.
// Made for a device beside the cores it lies in memory that both see: sessions on the cores go on with it as well, and
// what was published last outlives the device.
class StateStore {
 public:
  // At its initial values. Allocates all it will ever need. Errors of the device.
  static Result<std::shared_ptr<StateStore>> create(std::shared_ptr<const plan::Plan> plan, device::Device& device);

  // kConfiguration, naming the first difference, unless the plan keeps the state's schema: names, types and shapes,
  // in order. kConfiguration as well when sessions on `device` cannot see it.
  [[nodiscard]] Status accepts(const plan::Plan& plan, const device::Device& device) const;

  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] std::uint64_t bytes(std::size_t state) const { return states_[state].bytes; }
  // As sessions on `device` see it.
  [[nodiscard]] std::byte* previous(std::size_t state, const device::Device& device) const {
    return seen(states_[state].blocks[previous_.load(std::memory_order_relaxed)], device);
  }
  [[nodiscard]] std::byte* next(std::size_t state, const device::Device& device) const {
    return seen(states_[state].blocks[next_.load(std::memory_order_relaxed)], device);
  }
  // The half published last, as the host sees it.
  [[nodiscard]] std::span<const std::byte> published(std::size_t state) const {
    return {states_[state].blocks[previous_.load(std::memory_order_relaxed)].host, states_[state].bytes};
  }

  // What was next becomes previous. Sessions that share the store look again: Session::refresh_state.
  void publish() {
    const std::size_t previous = previous_.load(std::memory_order_relaxed);
    previous_.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    next_.store(previous, std::memory_order_relaxed);
  }
  // Leaves the next half to a device that was lost with a job in flight, which may still write there: the half is
  // another block from here on. The same again changes nothing, since a lost device gets no further job.
  void leave_next();
  // Back to the initial values of the plan that it was made for, all halves. Not for timed threads, not while a job
  // runs.
  Status reset();

 private:
  struct Block {
    std::byte* device = nullptr;
    std::byte* host = nullptr;
  };
  struct Tensor {
    std::array<Block, 3> blocks;  // two halves, and a spare one where the device can be lost
    std::uint64_t bytes = 0;
    std::shared_ptr<const device::Memory> initial;  // nothing: zeros
  };
  StateStore() = default;
  [[nodiscard]] std::byte* seen(const Block& block, const device::Device& device) const {
    return &device == device_ ? block.device : block.host;
  }

  std::shared_ptr<const plan::Plan> plan_;  // whose schema it has, and which holds the initial values
  const device::Device* device_ = nullptr;
  std::unique_ptr<device::Memory> memory_;
  std::vector<Tensor> states_;
  std::unique_ptr<device::Event> event_;
  std::unique_ptr<device::Stream> stream_;
  // Which block. A session that is prepared beside running jobs looks at them, and looks again before its turn.
  std::atomic<std::size_t> previous_{0}, next_{1};
  std::size_t blocks_ = 2;
  bool left_ = false;
};

}  // namespace takt::exec
