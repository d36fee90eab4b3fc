#include "runtime/exec/buffers.h"

#include "runtime/base/sizes.h"

namespace takt::exec {

Result<Buffers> Buffers::allocate(const plan::Description& d, device::Device& device) {
  std::uint64_t bytes = 0;
  for (const auto* slots : {&d.inputs, &d.outputs}) {
    for (const std::uint32_t tensor : *slots) bytes += round_up(d.tensors[tensor].bytes, plan::kAlignment);
  }
  Buffers out;
  TAKT_ASSIGN(out.memory_, device.allocate(bytes));
  std::byte* next = out.memory_->data();
  const auto take = [&](std::uint32_t tensor) {
    const std::span<std::byte> buffer(next, d.tensors[tensor].bytes);
    next += round_up(buffer.size(), plan::kAlignment);
    return buffer;
  };
  for (const std::uint32_t tensor : d.inputs) out.inputs_.push_back(take(tensor));
  for (const std::uint32_t tensor : d.outputs) out.outputs_.push_back(take(tensor));
  return out;
}

Status Buffers::bind(Session& session) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) TAKT_RETURN_IF_ERROR(session.bind_input(i, inputs_[i]));
  for (std::size_t i = 0; i < outputs_.size(); ++i) TAKT_RETURN_IF_ERROR(session.bind_output(i, outputs_[i]));
  return {};
}

Result<Buffers> Buffers::create(Session& session) {
  TAKT_ASSIGN(Buffers out, allocate(session.plan().description(), session.device()));
  TAKT_RETURN_IF_ERROR(out.bind(session));
  return out;
}

}  // namespace takt::exec
