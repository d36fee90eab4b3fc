#include "runtime/exec/offload.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace takt::exec {
namespace {

// Between two looks at an event. Far below a budget, and the core is free meanwhile.
void nap() {
  timespec pause{0, 20'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

}  // namespace

Status Accelerator::lend(std::span<std::byte> block) {
  TAKT_ASSIGN(std::unique_ptr<device::Memory> memory, device_->import_host(block));
  lent_.push_back(std::move(memory));
  return {};
}

const std::byte* Accelerator::find(std::span<const std::byte> bytes) const {
  for (const auto& block : lent_) {
    const std::byte* const begin = block->host();
    if (bytes.data() < begin || bytes.data() + bytes.size() > begin + block->bytes()) continue;
    return block->data() + (bytes.data() - begin);
  }
  return nullptr;
}

Result<Offload::Buffer> Offload::make_buffer(std::uint64_t bytes) const {
  Buffer out;
  TAKT_ASSIGN(out.shared, accelerator_->device().allocate_shared(bytes));
  out.host = {out.shared->host(), bytes};
  out.device = out.shared->data();
  if (accelerator_->exchange() == Exchange::kCopies) {
    TAKT_ASSIGN(out.own, accelerator_->device().allocate(bytes));
    out.device = out.own->data();
  }
  return out;
}

Result<std::unique_ptr<Offload>> Offload::create(const std::shared_ptr<const plan::Plan>& plan,
                                                 std::shared_ptr<Accelerator> accelerator,
                                                 std::span<const std::size_t> chunks, std::shared_ptr<StateStore> state,
                                                 std::span<const std::size_t> segments) {
  device::Device& device = accelerator->device();
  std::unique_ptr<Offload> out(new Offload(std::move(accelerator)));
  Placement placement;
  placement.device = &device;
  placement.state = std::move(state);
  placement.segments = segments;
  TAKT_ASSIGN(out->session_, Session::create(plan, placement));
  const plan::Description& d = plan->description();
  for (const std::size_t slot : chunks) {
    ChunkInput& chunk = out->chunks_.emplace_back();
    chunk.slot = slot;
    chunk.bytes = d.tensors[d.inputs[slot]].bytes;
    // In place it is for bytes that were not lent: profiling feeds stages from memory of its own.
    TAKT_ASSIGN(chunk.buffer, device.allocate(chunk.bytes));
  }
  out->inputs_.resize(d.inputs.size());
  for (std::size_t slot = 0; slot < d.inputs.size(); ++slot) {
    bool is_chunk = false;
    for (const std::size_t own : chunks) is_chunk = is_chunk || own == slot;
    if (is_chunk) continue;
    Buffer& input = out->inputs_[slot];
    TAKT_ASSIGN(input, out->make_buffer(d.tensors[d.inputs[slot]].bytes));
    TAKT_RETURN_IF_ERROR(out->session_->bind_input(slot, {input.device, input.host.size()}));
  }
  for (std::size_t slot = 0; slot < d.outputs.size(); ++slot) {
    TAKT_ASSIGN(Buffer output, out->make_buffer(d.tensors[d.outputs[slot]].bytes));
    TAKT_RETURN_IF_ERROR(out->session_->bind_output(slot, {output.device, output.host.size()}));
    out->outputs_.push_back(std::move(output));
  }
  TAKT_ASSIGN(out->begin_, device.event());
  TAKT_ASSIGN(out->end_, device.event());
  TAKT_ASSIGN(out->stream_, device.stream(0, 0));
  return out;
}

Offload::~Offload() {
  if (end_ != nullptr) end_->wait();
}

bool Offload::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  copied_bytes_ += bytes;
  return stream_->copy(to, from, bytes);
}

bool Offload::hand_over(std::span<const std::span<const std::byte>> chunks) {
  const bool copies = accelerator_->exchange() == Exchange::kCopies;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkInput& input = chunks_[i];
    if (chunks[i].size() < input.bytes) return false;
    const std::span<const std::byte> bytes = chunks[i].first(input.bytes);
    const std::byte* there = copies ? nullptr : accelerator_->find(bytes);
    if (there == nullptr) {
      std::byte* const buffer = input.buffer->data();
      if (!copy(buffer, bytes.data(), bytes.size())) return false;
      there = buffer;
    }
    if (!session_->bind_input(input.slot, {there, bytes.size()})) return false;
  }
  for (const Buffer& input : inputs_) {
    if (input.own != nullptr && !copy(input.device, input.shared->data(), input.host.size())) return false;
  }
  for (std::size_t segment = 0; segment < session_->segments(); ++segment) {
    if (!session_->submit(*stream_, segment)) return false;
  }
  for (const Buffer& output : outputs_) {
    if (output.own != nullptr && !copy(output.shared->data(), output.device, output.host.size())) return false;
  }
  return true;
}

Offload::Outcome Offload::run(std::span<const std::span<const std::byte>> chunks) {
  const HostTime start = host_now();
  stream_->mark(*begin_);
  const bool taken = hand_over(chunks);
  stream_->mark(*end_);
  longest_launch_ = std::max(longest_launch_, host_now() - start);
  device::Progress progress = end_->poll();
  while (progress == device::Progress::kPending) {
    nap();
    progress = end_->poll();
  }
  session_->poll();
  if (progress == device::Progress::kLost || accelerator_->device().lost() != nullptr) return Outcome::kLost;
  if (!taken) return Outcome::kRefused;
  longest_on_device_ = std::max(longest_on_device_, end_->since(*begin_));
  return Outcome::kDone;
}

}  // namespace takt::exec
