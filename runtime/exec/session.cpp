#include "runtime/exec/session.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/sizes.h"

namespace takt::exec {
namespace {

using plan::kAlignment;
using plan::Storage;

bool aligned(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0; }

// Writes every page with what it holds, so that no run is the first to.
void touch_pages(std::span<std::byte> bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    volatile std::byte& b = bytes[at];
    b = b;
  }
  if (!bytes.empty()) {
    volatile std::byte& last = bytes.back();
    last = last;
  }
}

std::string describe(const char* kind, std::size_t slot, const plan::Plan& plan, std::uint32_t tensor) {
  return std::string(kind) + " " + std::to_string(slot) + " ('" + plan.description().tensors[tensor].name + "')";
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan, std::span<std::byte> arena) {
  const plan::Description& d = plan->description();
  if (const char* reason = kernels::unsupported(d.target)) {
    return fail(Code::kEnvironment, "the plan is for " + std::string(kernels::name_of(d.target)) +
                                        ", which this machine cannot run: " + reason +
                                        "; compile the model for this machine");
  }
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    if (plan->kernel(i).run == nullptr) {
      return fail(Code::kEnvironment, "this program was built without kernel " + std::string(plan->kernel(i).name) +
                                          " for " + kernels::name_of(d.target));
    }
  }
  if (!arena.empty() && (arena.size() < d.arena_bytes || !aligned(arena.data()))) {
    return fail(Code::kEnvironment, "the plan needs an arena of " + std::to_string(d.arena_bytes) +
                                        " bytes at a multiple of 64, it was given " + std::to_string(arena.size()));
  }

  std::unique_ptr<Session> session(new Session);
  std::uint64_t own = arena.empty() ? d.arena_bytes : 0;
  for (const plan::State& state : d.states) own += 2 * round_up(state.bytes, kAlignment);
  TAKT_ASSIGN(session->owned_, memory::AlignedBuffer::create(own));
  touch_pages(arena.first(arena.empty() ? 0 : d.arena_bytes));
  std::byte* next = session->owned_.data();
  std::byte* base = arena.data();
  if (arena.empty()) {
    base = next;
    next += d.arena_bytes;
  }
  for (const plan::State& state : d.states) {
    StateBuffer& buffer = session->states_.emplace_back();
    buffer.bytes = state.bytes;
    for (std::byte*& half : buffer.halves) {
      half = next;
      next += round_up(state.bytes, kAlignment);
    }
  }

  session->inputs_.resize(d.inputs.size());
  session->outputs_.resize(d.outputs.size());
  for (std::size_t i = 0; i < d.inputs.size(); ++i) session->inputs_[i].bytes = d.tensors[d.inputs[i]].bytes;
  for (std::size_t i = 0; i < d.outputs.size(); ++i) session->outputs_[i].bytes = d.tensors[d.outputs[i]].bytes;
  std::size_t count = 0;
  for (const plan::Step& step : d.steps) count += step.operands.size();
  session->operands_.resize(count);
  session->steps_.reserve(d.steps.size());
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    session->steps_.push_back({&plan->kernel(i), d.steps[i].params.data(), session->operands_.data() + at});
    for (const std::uint32_t index : d.steps[i].operands) {
      kernels::Operand& operand = session->operands_[at];
      const Patch patch{at++, index == plan::kNone ? 0 : d.tensors[index].offset};
      if (index == plan::kNone) continue;
      const plan::Tensor& t = d.tensors[index];
      operand.bytes = t.bytes;
      switch (t.storage) {
        case Storage::kArena: operand.data = base + t.offset; break;
        case Storage::kWeights:
          // Verified: no step writes a tensor that lies in the weights.
          operand.data = const_cast<std::byte*>(plan->section(t.slot).data()) + t.offset;  // NOLINT
          break;
        case Storage::kInput: session->inputs_[t.slot].patches.push_back(patch); break;
        case Storage::kOutput: session->outputs_[t.slot].patches.push_back(patch); break;
        case Storage::kStatePrevious: session->states_[t.slot].previous.patches.push_back(patch); break;
        case Storage::kStateNext: session->states_[t.slot].next.patches.push_back(patch); break;
      }
    }
  }
  session->most_parts_ = d.parts.back();
  session->profile_.resize(d.steps.size() * static_cast<std::size_t>(session->most_parts_));
  session->plan_ = std::move(plan);
  session->reset_state();
  return session;
}

void Session::point(const Slot& slot, std::byte* data) {
  for (const Patch& patch : slot.patches) operands_[patch.operand].data = data + patch.offset;
}

Status Session::bind(Slot& slot, const char* kind, std::size_t index, std::uint32_t tensor, std::byte* data,
                     std::uint64_t bytes) {
  if (bytes < slot.bytes) {
    return fail(Code::kInput, describe(kind, index, *plan_, tensor) + " needs " + std::to_string(slot.bytes) +
                                  " bytes, it was given " + std::to_string(bytes));
  }
  if (!aligned(data)) {
    return fail(Code::kInput, describe(kind, index, *plan_, tensor) + " does not start at a multiple of 64 bytes");
  }
  point(slot, data);
  slot.bound = true;
  return {};
}

Status Session::bind_input(std::size_t slot, std::span<const std::byte> bytes) {
  if (slot >= inputs_.size()) {
    return fail(Code::kInput,
                "there is no input " + std::to_string(slot) + "; the plan has " + std::to_string(inputs_.size()));
  }
  // Verified: no step writes a tensor that lies in an input.
  return bind(inputs_[slot], "input", slot, plan_->description().inputs[slot], const_cast<std::byte*>(bytes.data()),
              bytes.size());  // NOLINT
}

Status Session::bind_output(std::size_t slot, std::span<std::byte> bytes) {
  if (slot >= outputs_.size()) {
    return fail(Code::kInput,
                "there is no output " + std::to_string(slot) + "; the plan has " + std::to_string(outputs_.size()));
  }
  return bind(outputs_[slot], "output", slot, plan_->description().outputs[slot], bytes.data(), bytes.size());
}

Status Session::ready(int parts) const {
  if (!plan_->admits(parts)) {
    std::string admitted;
    for (const std::uint16_t k : plan_->description().parts)
      admitted += (admitted.empty() ? "" : ", ") + std::to_string(k);
    return fail(Code::kUsage, "the plan does not admit " + std::to_string(parts) + " workers, only " + admitted +
                                  "; compile the model with --parts");
  }
  const plan::Description& d = plan_->description();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].bound) return fail(Code::kUsage, describe("input", i, *plan_, d.inputs[i]) + " is not bound");
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].bound) return fail(Code::kUsage, describe("output", i, *plan_, d.outputs[i]) + " is not bound");
  }
  return {};
}

void Session::run_step(std::size_t step, int part, int parts) {
  const BoundStep& s = steps_[step];
  if (!profiling_) {
    s.kernel->run(s.params, s.operands, part, parts);
    return;
  }
  const HostTime begin = host_now();
  s.kernel->run(s.params, s.operands, part, parts);
  record(step, part, (host_now() - begin).ns);
}

Status Session::set_budget(std::span<const Duration> worst_case, Duration job) {
  if (!worst_case.empty() && worst_case.size() != steps_.size()) {
    return fail(Code::kConfiguration, "the budget has " + std::to_string(worst_case.size()) + " steps, the plan has " +
                                          std::to_string(steps_.size()) + "; profile the plan again");
  }
  worst_case_.assign(worst_case.begin(), worst_case.end());
  budget_ = job;
  return {};
}

bool Session::may_start(std::size_t step, Duration elapsed) const {
  return worst_case_.empty() || elapsed + worst_case_[step] <= budget_;
}

std::size_t Session::run() {
  const HostTime begin = worst_case_.empty() ? HostTime{} : host_now();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!worst_case_.empty() && !may_start(i, host_now() - begin)) return i;
    run_step(i, 0, 1);
  }
  return steps_.size();
}

void Session::publish() {
  published_ = 1 - published_;
  point_at_halves();
}

void Session::point_at_halves() {
  for (const StateBuffer& state : states_) {
    point(state.previous, state.halves[published_]);
    point(state.next, state.halves[1 - published_]);
  }
}

void Session::reset_state() {
  const plan::Description& d = plan_->description();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    for (std::byte* half : states_[i].halves) {
      if (d.states[i].initial == plan::kNone) {
        std::memset(half, 0, states_[i].bytes);
      } else {
        std::memcpy(half, plan_->section(d.states[i].initial).data(), states_[i].bytes);
      }
    }
  }
  published_ = 0;
  point_at_halves();
}

std::span<const std::byte> Session::state(std::size_t index) const {
  return {states_[index].halves[published_], states_[index].bytes};
}

void Session::record(std::size_t step, int part, std::int64_t ns) {
  StepProfile& p = profile_[step * static_cast<std::size_t>(most_parts_) + static_cast<std::size_t>(part)];
  const std::size_t block = p.count / StepProfile::kRunsPerBlock % StepProfile::kBlocks;
  if (p.count % StepProfile::kRunsPerBlock == 0) p.recent_maximum_ns[block] = 0;
  p.minimum_ns = p.count == 0 ? ns : std::min(p.minimum_ns, ns);
  p.maximum_ns = std::max(p.maximum_ns, ns);
  p.recent_maximum_ns[block] = std::max(p.recent_maximum_ns[block], ns);
  ++p.count;
}

StepProfile Session::profile(std::size_t step) const {
  StepProfile out;
  for (int part = 0; part < most_parts_; ++part) {
    const StepProfile& p = profile_[step * static_cast<std::size_t>(most_parts_) + static_cast<std::size_t>(part)];
    if (p.count == 0) continue;
    // A step is as slow as its slowest part.
    out.minimum_ns = std::max(out.minimum_ns, p.minimum_ns);
    out.maximum_ns = std::max(out.maximum_ns, p.maximum_ns);
    for (std::size_t b = 0; b < StepProfile::kBlocks; ++b) {
      out.recent_maximum_ns[b] = std::max(out.recent_maximum_ns[b], p.recent_maximum_ns[b]);
    }
    out.count = std::max(out.count, p.count);
  }
  return out;
}

void Session::clear_profile() { std::fill(profile_.begin(), profile_.end(), StepProfile{}); }

}  // namespace takt::exec
