// Memory for everything that a session reads from its caller and writes for it: for callers that have no buffers of
// their own. Chunks of topics need none of this; they are bound where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/session.h"

namespace takt::exec {

// Outlives the session's use of it. Zeros at first.
class Buffers {
 public:
  // Allocates memory of the session's device for every input and output and binds it. Errors of the device.
  static Result<Buffers> create(Session& session);
  // In two steps, for sessions that take turns: memory for what plans with these inputs and outputs read and write, and
  // the binding of a session of one of them.
  static Result<Buffers> allocate(const plan::Description& description, device::Device& device);
  Status bind(Session& session) const;

  // By slot, in the plan's order (Plan::find_input, find_output). Where the host sees the device's memory.
  [[nodiscard]] std::span<std::byte> input(std::size_t slot) const { return inputs_[slot]; }
  [[nodiscard]] std::span<std::byte> output(std::size_t slot) const { return outputs_[slot]; }
  // The same as elements of the tensor's type, row-major.
  template <class T>
  [[nodiscard]] std::span<T> input_as(std::size_t slot) const {
    return {reinterpret_cast<T*>(inputs_[slot].data()), inputs_[slot].size() / sizeof(T)};
  }
  template <class T>
  [[nodiscard]] std::span<const T> output_as(std::size_t slot) const {
    return {reinterpret_cast<const T*>(outputs_[slot].data()), outputs_[slot].size() / sizeof(T)};
  }

 private:
  std::unique_ptr<device::Memory> memory_;
  std::vector<std::span<std::byte>> inputs_, outputs_;
};

}  // namespace takt::exec
