#include "pipeline/stages/stage_plan.h"

#include <algorithm>

#include "runtime/plan/plan.h"

namespace takt::pipeline {
namespace {

bool fits(const std::byte* data, std::size_t size, std::uint64_t bytes) {
  return size >= bytes && reinterpret_cast<std::uintptr_t>(data) % plan::kAlignment == 0;
}

}  // namespace

Result<StagePlan> StagePlan::create(const StageSpec& spec, const Chunks& chunks) {
  StagePlan out;
  const plan::Description& d = spec.plan->description();
  std::vector<std::size_t> from_chunks;
  for (const Chunks::Input& input : chunks.inputs) {
    from_chunks.push_back(input.slot);
    Slot& slot = out.chunk_inputs_.emplace_back();
    slot.slot = input.slot;
    slot.bytes = d.tensors[d.inputs[input.slot]].bytes;
    if (spec.accelerator || !input.optional) continue;
    TAKT_ASSIGN(slot.nothing, memory::AlignedBuffer::create(slot.bytes));
  }
  for (const std::size_t slot : chunks.outputs) {
    out.chunk_outputs_.emplace_back();
    out.chunk_outputs_.back().slot = slot;
    out.chunk_outputs_.back().bytes = d.tensors[d.outputs[slot]].bytes;
  }
  if (spec.accelerator) {
    out.bound_inputs_.resize(chunks.inputs.size());
    out.bound_outputs_.resize(chunks.outputs.size());
    TAKT_ASSIGN(out.offload_, exec::Offload::create(spec.plan, spec.accelerator, {from_chunks, chunks.outputs},
                                                    spec.state, spec.submissions));
    return out;
  }
  exec::Placement placement;
  placement.arena = spec.arena;
  placement.state = spec.state;
  TAKT_ASSIGN(out.session_, exec::Session::create(spec.plan, placement));
  const auto is_chunk = [](const std::vector<std::size_t>& slots, std::size_t slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  for (std::size_t slot = 0; slot < d.inputs.size(); ++slot) {
    const bool chunk = is_chunk(from_chunks, slot);
    TAKT_ASSIGN(out.inputs_.emplace_back(), memory::AlignedBuffer::create(chunk ? 0 : d.tensors[d.inputs[slot]].bytes));
    if (!chunk) TAKT_RETURN_IF_ERROR(out.session_->bind_input(slot, out.inputs_.back().span()));
  }
  for (std::size_t slot = 0; slot < d.outputs.size(); ++slot) {
    const bool chunk = is_chunk(chunks.outputs, slot);
    TAKT_ASSIGN(out.outputs_.emplace_back(),
                memory::AlignedBuffer::create(chunk ? 0 : d.tensors[d.outputs[slot]].bytes));
    if (!chunk) TAKT_RETURN_IF_ERROR(out.session_->bind_output(slot, out.outputs_.back().span()));
  }
  return out;
}

bool StagePlan::bind_input(std::size_t i, std::span<const std::byte> bytes) {
  const Slot& slot = chunk_inputs_[i];
  if (!bytes.empty() && !fits(bytes.data(), bytes.size(), slot.bytes)) return false;
  if (offload_) {
    bound_inputs_[i] = bytes;
    return true;
  }
  return session_->bind_input(slot.slot, bytes.empty() ? slot.nothing.span() : bytes).has_value();
}

bool StagePlan::bind_output(std::size_t i, std::span<std::byte> bytes) {
  const Slot& slot = chunk_outputs_[i];
  if (!fits(bytes.data(), bytes.size(), slot.bytes)) return false;
  if (offload_) {
    bound_outputs_[i] = bytes;
    return true;
  }
  return session_->bind_output(slot.slot, bytes).has_value();
}

void StagePlan::run(int phase, int part, int parts, StageJob& job) {
  if (!offload_) {
    session_->run_step(static_cast<std::size_t>(phase), part, parts);
    return;
  }
  if (phase < behind_device()) return offload_->prepare(bound_inputs_, bound_outputs_);
  job.failed = offload_->take() != exec::Offload::Outcome::kDone;
  job.launch = offload_->launch();
  job.on_device = offload_->on_device();
}

bool StagePlan::run() {
  if (offload_) return offload_->run(bound_inputs_, bound_outputs_) == exec::Offload::Outcome::kDone;
  return session_->ready(1) && session_->run() == session_->steps();
}

}  // namespace takt::pipeline
