#include "runtime/exec/offload.h"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <utility>

namespace takt::exec {
namespace {

// Between two looks at an event. Far below a budget, and the core is free meanwhile.
void nap() {
  timespec pause{0, 20'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

bool aligned(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % plan::kAlignment == 0; }

// What hangs, until the process ends. Never destroyed, but not lost either.
template <class Work>
void leave_behind(std::unique_ptr<Work> work) {
  static std::mutex mutex;
  static auto* const left = new std::vector<std::unique_ptr<Work>>;
  const std::lock_guard lock(mutex);
  left->push_back(std::move(work));
}

}  // namespace

Status Accelerator::lend(std::span<std::byte> block) {
  TAKT_ASSIGN(std::unique_ptr<device::Memory> memory, device_->import_host(block));
  lent_.push_back(std::move(memory));
  return {};
}

std::byte* Accelerator::find(std::span<const std::byte> bytes) const {
  for (const auto& block : lent_) {
    const std::byte* const begin = block->host();
    if (bytes.data() < begin || bytes.data() + bytes.size() > begin + block->bytes()) continue;
    return block->data() + (bytes.data() - begin);
  }
  return nullptr;
}

Result<Offload::Buffer> Offload::make_buffer(Accelerator& accelerator, std::uint64_t bytes) {
  Buffer out;
  TAKT_ASSIGN(out.shared, accelerator.device().allocate_shared(bytes));
  out.host = {out.shared->host(), bytes};
  out.device = out.shared->data();
  if (accelerator.exchange() == Exchange::kCopies) {
    TAKT_ASSIGN(out.own, accelerator.device().allocate(bytes));
    out.device = out.own->data();
  }
  return out;
}

Result<std::unique_ptr<Offload>> Offload::create(const std::shared_ptr<const plan::Plan>& plan,
                                                 std::shared_ptr<Accelerator> accelerator, const Chunks& chunks,
                                                 std::shared_ptr<StateStore> state, const Submissions& submissions) {
  device::Device& device = accelerator->device();
  std::unique_ptr<Offload> out(new Offload);
  Work& work = *out->work_;
  work.accelerator = std::move(accelerator);
  Placement placement;
  placement.device = &device;
  placement.state = std::move(state);
  placement.segments = submissions.cuts;
  out->copies_in_ = submissions.copies_in;
  out->copies_out_ = submissions.copies_out;
  TAKT_ASSIGN(work.session, Session::create(plan, placement));
  const plan::Description& d = plan->description();
  // In place the buffer is for bytes that were not lent (profiling works in memory of its own), and for inputs that are
  // not there.
  const auto add = [&device, &d](std::span<const std::size_t> slots, const std::vector<std::uint32_t>& tensors,
                                 std::vector<Chunk>& to) -> Status {
    for (const std::size_t slot : slots) {
      Chunk& chunk = to.emplace_back();
      chunk.slot = slot;
      chunk.bytes = d.tensors[tensors[slot]].bytes;
      TAKT_ASSIGN(chunk.buffer, device.allocate(chunk.bytes));
    }
    return {};
  };
  TAKT_RETURN_IF_ERROR(add(chunks.inputs, d.inputs, work.in));
  TAKT_RETURN_IF_ERROR(add(chunks.outputs, d.outputs, work.out));
  const auto is_one_of = [](std::span<const std::size_t> slots, std::size_t slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  work.inputs.resize(d.inputs.size());
  for (std::size_t slot = 0; slot < d.inputs.size(); ++slot) {
    if (is_one_of(chunks.inputs, slot)) continue;
    Buffer& input = work.inputs[slot];
    TAKT_ASSIGN(input, make_buffer(*work.accelerator, d.tensors[d.inputs[slot]].bytes));
    TAKT_RETURN_IF_ERROR(work.session->bind_input(slot, {input.device, input.host.size()}));
  }
  work.outputs.resize(d.outputs.size());
  for (std::size_t slot = 0; slot < d.outputs.size(); ++slot) {
    if (is_one_of(chunks.outputs, slot)) continue;
    Buffer& output = work.outputs[slot];
    TAKT_ASSIGN(output, make_buffer(*work.accelerator, d.tensors[d.outputs[slot]].bytes));
    TAKT_RETURN_IF_ERROR(work.session->bind_output(slot, {output.device, output.host.size()}));
  }
  TAKT_ASSIGN(work.begin, device.event());
  TAKT_ASSIGN(work.end, device.event());
  TAKT_ASSIGN(work.stream, device.stream(0, 0));
  return out;
}

Offload::~Offload() {
  const Duration patience = lost() != nullptr ? Duration{} : work_->accelerator->patience();
  if (!settle(patience)) leave_behind(std::move(work_));
}

bool Offload::settle(Duration limit) const {
  if (work_->end == nullptr) return true;
  const HostTime until = host_now() + limit;
  while (work_->end->poll() == device::Progress::kPending) {
    if (host_now() >= until) return false;
    nap();
  }
  return true;
}

bool Offload::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  copied_bytes_ += bytes;
  return work_->stream->copy(to, from, bytes);
}

bool Offload::bind_inputs(std::span<const std::span<const std::byte>> chunks) {
  const bool copies = work_->accelerator->exchange() == Exchange::kCopies;
  for (std::size_t i = 0; i < work_->in.size(); ++i) {
    const Chunk& input = work_->in[i];
    const std::byte* there = input.buffer->data();
    if (!chunks[i].empty()) {
      if (chunks[i].size() < input.bytes) return false;
      const std::span<const std::byte> bytes = chunks[i].first(input.bytes);
      const std::byte* const lent = copies ? nullptr : work_->accelerator->find(bytes);
      if (lent != nullptr) {
        there = lent;
      } else if (!copy(input.buffer->data(), bytes.data(), bytes.size())) {
        return false;
      }
    }
    if (!work_->session->bind_input(input.slot, {there, input.bytes})) return false;
  }
  return true;
}

bool Offload::bind_outputs(std::span<const std::span<std::byte>> chunks) {
  const bool copies = work_->accelerator->exchange() == Exchange::kCopies;
  for (std::size_t i = 0; i < work_->out.size(); ++i) {
    const Chunk& output = work_->out[i];
    if (chunks[i].size() < output.bytes || !aligned(chunks[i].data())) return false;
    std::byte* const lent = copies ? nullptr : work_->accelerator->find(chunks[i].first(output.bytes));
    if (!work_->session->bind_output(output.slot, {lent != nullptr ? lent : output.buffer->data(), output.bytes})) {
      return false;
    }
  }
  return true;
}

bool Offload::copy_back(std::span<const std::span<std::byte>> chunks) {
  const bool copies = work_->accelerator->exchange() == Exchange::kCopies;
  for (std::size_t i = 0; i < work_->out.size(); ++i) {
    const Chunk& output = work_->out[i];
    if (!copies && work_->accelerator->find(chunks[i].first(output.bytes)) != nullptr) continue;
    if (!copy(chunks[i].data(), output.buffer->data(), output.bytes)) return false;
  }
  for (const Buffer& output : work_->outputs) {
    if (output.own != nullptr && !copy(output.shared->data(), output.device, output.host.size())) return false;
  }
  return true;
}

// What the segments are about, and the bytes that they read.
bool Offload::bring() {
  if (inputs_.size() != work_->in.size() || outputs_.size() != work_->out.size()) return false;
  if (!bind_inputs(inputs_) || !bind_outputs(outputs_)) return false;
  for (const Buffer& input : work_->inputs) {
    if (input.own != nullptr && !copy(input.device, input.shared->data(), input.host.size())) return false;
  }
  return true;
}

bool Offload::hand_over(std::size_t submission) {
  const bool first = submission == 0, last = submission + 1 == submissions();
  if (first && !bring()) return false;
  if (first && copies_in_) return true;
  const bool computes = !last || !copies_out_;
  if (computes && !session().submit(*work_->stream, submission - (copies_in_ ? 1 : 0))) return false;
  return !last || copy_back(outputs_);
}

void Offload::prepare(std::span<const std::span<const std::byte>> inputs,
                      std::span<const std::span<std::byte>> outputs) {
  launch_ = on_device_ = worked_ = {};
  next_ = 0;
  inputs_ = inputs;
  outputs_ = outputs;
  stage_ = Stage::kReady;
}

void Offload::forget() {
  if (stage_ != Stage::kBegun) stage_ = Stage::kNone;
}

// The submissions before `end` that are left, as one.
void Offload::start(std::size_t end) {
  if (stage_ == Stage::kOver) worked_ = {};  // nothing of it is left to do
  if (stage_ != Stage::kReady) return;
  if (lost() != nullptr) {
    worked_ = {};
    outcome_ = Outcome::kLost;
    stage_ = Stage::kOver;
    return;
  }
  const HostTime start = host_now();
  work_->stream->mark(*work_->begin);
  taken_ = true;
  while (next_ < end && taken_) taken_ = hand_over(next_++);
  work_->stream->mark(*work_->end);
  in_flight_ = true;
  handed_over_ = host_now();
  launch_ += handed_over_ - start;
  longest_launch_ = std::max(longest_launch_, launch_);
  stage_ = Stage::kBegun;
}

void Offload::begin() { start(next_ + 1); }

std::optional<Duration> Offload::ended() {
  if (stage_ == Stage::kNone) return Duration{};  // not that of the job before
  if (stage_ != Stage::kBegun) return worked_;
  const device::Progress progress = work_->end->poll();
  if (progress == device::Progress::kPending && lost() == nullptr) {
    if (host_now() - handed_over_ <= work_->accelerator->patience()) return std::nullopt;
    work_->accelerator->give_up();
  }
  session().poll();
  in_flight_ = progress != device::Progress::kDone;
  stage_ = Stage::kOver;
  worked_ = {};
  if (in_flight_ || lost() != nullptr) {
    if (session().in_flight()) session().leave_state();
    outcome_ = Outcome::kLost;
    return worked_;
  }
  worked_ = work_->end->since(*work_->begin);
  on_device_ += worked_;
  longest_on_device_ = std::max(longest_on_device_, on_device_);
  outcome_ = taken_ ? Outcome::kDone : Outcome::kRefused;
  if (!taken_) {
    ++refused_jobs_;
    refused_at_ = next_ - 1;
  }
  if (taken_ && next_ < submissions()) stage_ = Stage::kReady;
  return worked_;
}

Offload::Outcome Offload::take() {
  do {
    start(submissions());
    while (!ended()) nap();
  } while (stage_ == Stage::kReady);
  stage_ = Stage::kNone;
  return outcome_;
}

Offload::Outcome Offload::run(std::span<const std::span<const std::byte>> inputs,
                              std::span<const std::span<std::byte>> outputs) {
  prepare(inputs, outputs);
  return take();
}

}  // namespace takt::exec
