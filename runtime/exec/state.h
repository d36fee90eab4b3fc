// The tensors of a graph that outlive a job, in two halves: jobs read the half published last and write the other one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

// Shared by the sessions of one stage: variants and swapped plans go on with the same state. One job at a time uses it.
class StateStore {
 public:
  // At its initial values. Allocates all it will ever need. Errors of the device.
  static Result<std::shared_ptr<StateStore>> create(std::shared_ptr<const plan::Plan> plan, device::Device& device);

  // kConfiguration, naming the first difference, unless the plan keeps the state's schema: names, types and shapes,
  // in order.
  [[nodiscard]] Status accepts(const plan::Plan& plan) const;

  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] std::byte* previous(std::size_t state) const { return states_[state].halves[published_]; }
  [[nodiscard]] std::byte* next(std::size_t state) const { return states_[state].halves[1 - published_]; }
  [[nodiscard]] std::uint64_t bytes(std::size_t state) const { return states_[state].bytes; }

  // What was next becomes previous. Sessions that share the store look again: Session::refresh_state.
  void publish() { published_ = 1 - published_; }
  // Back to the initial values of the plan that it was made for, both halves. Not for timed threads, not while a job
  // runs.
  Status reset();

 private:
  struct Tensor {
    std::byte* halves[2] = {nullptr, nullptr};
    std::uint64_t bytes = 0;
    std::shared_ptr<const device::Memory> initial;  // nothing: zeros
  };
  StateStore() = default;

  std::shared_ptr<const plan::Plan> plan_;  // whose schema it has, and which holds the initial values
  std::unique_ptr<device::Memory> memory_;
  std::vector<Tensor> states_;
  std::unique_ptr<device::Event> event_;
  std::unique_ptr<device::Stream> stream_;
  int published_ = 0;  // which half
};

}  // namespace takt::exec
