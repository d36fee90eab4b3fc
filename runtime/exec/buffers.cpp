#include "runtime/exec/buffers.h"

#include "runtime/base/sizes.h"

namespace takt::exec {

Result<Buffers> Buffers::create(Session& session) {
  const plan::Description& d = session.plan().description();
  std::uint64_t bytes = 0;
  for (const auto* slots : {&d.inputs, &d.outputs}) {
    for (const std::uint32_t tensor : *slots) bytes += round_up(d.tensors[tensor].bytes, plan::kAlignment);
  }
  Buffers out;
  TAKT_ASSIGN(out.memory_, session.device().allocate(bytes));
  std::byte* next = out.memory_->data();
  const auto take = [&](std::uint32_t tensor) {
    const std::span<std::byte> buffer(next, d.tensors[tensor].bytes);
    next += round_up(buffer.size(), plan::kAlignment);
    return buffer;
  };
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    TAKT_RETURN_IF_ERROR(session.bind_input(i, out.inputs_.emplace_back(take(d.inputs[i]))));
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    TAKT_RETURN_IF_ERROR(session.bind_output(i, out.outputs_.emplace_back(take(d.outputs[i]))));
  }
  return out;
}

}  // namespace takt::exec
