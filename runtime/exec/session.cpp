#include "runtime/exec/session.h"

#include <algorithm>
#include <string>
#include <utility>

namespace takt::exec {
namespace {

using plan::kAlignment;
using plan::Storage;

bool aligned(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0; }

std::string describe(const char* kind, std::size_t slot, const plan::Plan& plan, std::uint32_t tensor) {
  return std::string(kind) + " " + std::to_string(slot) + " ('" + plan.description().tensors[tensor].name + "')";
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan, std::span<std::byte> arena) {
  Placement placement;
  placement.arena = arena;
  return create(std::move(plan), placement);
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan, const Placement& placement) {
  const plan::Description& d = plan->description();
  device::Device& device = *placement.device;
  if (const char* reason = device.unsupported(d.target)) {
    return fail(Code::kEnvironment, "the plan is for " + std::string(kernels::name_of(d.target)) +
                                        ", which this machine cannot run: " + reason +
                                        "; compile the model for this machine");
  }
  if (!placement.arena.empty() && (placement.arena.size() < d.arena_bytes || !aligned(placement.arena.data()))) {
    return fail(Code::kEnvironment, "the plan needs an arena of " + std::to_string(d.arena_bytes) +
                                        " bytes at a multiple of 64, it was given " +
                                        std::to_string(placement.arena.size()));
  }
  std::unique_ptr<Session> session(new Session);
  session->plan_ = std::move(plan);
  const plan::Plan& ours = *session->plan_;
  session->device_ = &device;
  if (placement.arena.empty()) {
    TAKT_ASSIGN(session->owned_, device.allocate(d.arena_bytes));
    session->arena_ = session->owned_->data();
  } else {
    // On the host's own device every page is touched; on another one the addresses are that device's already.
    if (device.properties().callers_run) {
      TAKT_ASSIGN(session->owned_, device.import_host(placement.arena.first(d.arena_bytes)));
    }
    session->arena_ = placement.arena.data();
  }
  if (placement.state) {
    TAKT_RETURN_IF_ERROR(placement.state->accepts(ours, device));
    session->state_ = placement.state;
  } else {
    TAKT_ASSIGN(session->state_, StateStore::create(session->plan_, device));
  }
  for (std::size_t i = 0; i < d.sections.size(); ++i) {
    TAKT_ASSIGN(session->weights_.emplace_back(), device.constants(ours.section(i)));
  }

  session->inputs_.resize(d.inputs.size());
  session->outputs_.resize(d.outputs.size());
  for (std::size_t i = 0; i < d.inputs.size(); ++i) session->inputs_[i].bytes = d.tensors[d.inputs[i]].bytes;
  for (std::size_t i = 0; i < d.outputs.size(); ++i) session->outputs_[i].bytes = d.tensors[d.outputs[i]].bytes;
  const std::size_t outputs = d.inputs.size(), previous = outputs + d.outputs.size(), next = previous + d.states.size();
  const auto place = [&](std::uint32_t index) {
    device::Operand operand;
    if (index == plan::kNone) return operand;
    const plan::Tensor& t = d.tensors[index];
    operand.bytes = t.bytes;
    operand.offset = t.offset;
    const auto bound = [&](std::size_t first) { operand.binding = static_cast<std::uint32_t>(first + t.slot); };
    switch (t.storage) {
      case Storage::kArena: operand.data = session->arena_ + t.offset; break;
      // Verified: no step writes a tensor that lies in the weights.
      case Storage::kWeights: operand.data = session->weights_[t.slot]->data() + t.offset; break;
      case Storage::kInput: bound(0); break;
      case Storage::kOutput: bound(outputs); break;
      case Storage::kStatePrevious: bound(previous); break;
      case Storage::kStateNext: bound(next); break;
    }
    return operand;
  };
  std::vector<std::vector<device::Operand>> operands(d.steps.size());
  std::vector<std::vector<device::Condition>> conditions(d.steps.size());
  std::vector<device::Call> calls;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    for (const std::uint32_t index : d.steps[i].operands) operands[i].push_back(place(index));
    for (std::uint32_t g = d.steps[i].guard; g != plan::kNone; g = d.guards[g].parent) {
      conditions[i].push_back({place(d.guards[g].condition), d.guards[g].when});
    }
    // A condition is known only where the one around it holds.
    std::reverse(conditions[i].begin(), conditions[i].end());
    calls.push_back({&ours.kernel(i), d.steps[i].params.data(), operands[i], conditions[i]});
  }
  TAKT_ASSIGN(session->recording_, device.record(calls, next + d.states.size(), placement.segments));
  TAKT_ASSIGN(session->end_, device.event());
  if (!device.properties().callers_run) {
    TAKT_ASSIGN(session->stream_, device.stream(0, 0));
  }
  session->most_parts_ = d.parts.back();
  session->profile_.resize(d.steps.size() * static_cast<std::size_t>(session->most_parts_));
  session->refresh_state();
  return session;
}

Session::~Session() {
  if (in_flight_) end_->wait();
}

Status Session::bind(Slot& slot, const char* kind, std::size_t index, std::uint32_t tensor, std::size_t binding,
                     std::byte* data, std::uint64_t bytes) {
  if (bytes < slot.bytes) {
    return fail(Code::kInput, describe(kind, index, *plan_, tensor) + " needs " + std::to_string(slot.bytes) +
                                  " bytes, it was given " + std::to_string(bytes));
  }
  if (!aligned(data)) {
    return fail(Code::kInput, describe(kind, index, *plan_, tensor) + " does not start at a multiple of 64 bytes");
  }
  if (in_flight_) {
    return fail(Code::kUsage, describe(kind, index, *plan_, tensor) + " is in use by a job in flight; poll its end");
  }
  recording_->bind(binding, data);
  slot.data = data;
  return {};
}

Status Session::bind_input(std::size_t slot, std::span<const std::byte> bytes) {
  if (slot >= inputs_.size()) {
    return fail(Code::kInput,
                "there is no input " + std::to_string(slot) + "; the plan has " + std::to_string(inputs_.size()));
  }
  // Verified: no step writes a tensor that lies in an input.
  return bind(inputs_[slot], "input", slot, plan_->description().inputs[slot], slot,
              const_cast<std::byte*>(bytes.data()), bytes.size());  // NOLINT
}

Status Session::bind_output(std::size_t slot, std::span<std::byte> bytes) {
  if (slot >= outputs_.size()) {
    return fail(Code::kInput,
                "there is no output " + std::to_string(slot) + "; the plan has " + std::to_string(outputs_.size()));
  }
  return bind(outputs_[slot], "output", slot, plan_->description().outputs[slot], inputs_.size() + slot, bytes.data(),
              bytes.size());
}

void Session::bind_like(const Session& other) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].data = other.inputs_[i].data;
    recording_->bind(i, inputs_[i].data);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].data = other.outputs_[i].data;
    recording_->bind(inputs_.size() + i, outputs_[i].data);
  }
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
    if (inputs_[i].data == nullptr)
      return fail(Code::kUsage, describe("input", i, *plan_, d.inputs[i]) + " is not bound");
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].data == nullptr)
      return fail(Code::kUsage, describe("output", i, *plan_, d.outputs[i]) + " is not bound");
  }
  return {};
}

void Session::run_observed(std::size_t step, int part, int parts) {
  if (profiling_) {
    const HostTime begin = host_now();
    recording_->run_call(step, part, parts);
    record_time(step, part, (host_now() - begin).ns);
  } else {
    recording_->run_call(step, part, parts);
  }
  if (watch_ != nullptr) look(step, parts);
}

void Session::look(std::size_t step, int parts) {
  // The part that ends last sees what all have written; the others wait before the next step.
  if (watch_->ended[step].fetch_add(1, std::memory_order_acq_rel) + 1 < parts) return;
  watch_->ended[step].store(0, std::memory_order_relaxed);
  if (step == 0) ++watch_->runs;
  std::optional<NonFinite>& first = watch_->first;
  for (std::size_t i = 0; step == 0 && i < inputs_.size() && !first; ++i) first = find_in_input(*this, i);
  if (!first) first = find_in_result(*this, step);
  if (first && first->run == 0) first->run = watch_->runs;
}

Status Session::watch(bool on) {
  if (!device_->properties().callers_run) {
    return fail(Code::kConfiguration,
                "device " + device_->properties().name + " runs steps by itself; watch the plan's values on the CPU");
  }
  watch_.reset(on ? new Watch(steps()) : nullptr);
  observed_ = profiling_ || on;
  return {};
}

std::optional<NonFinite> Session::first_non_finite() const { return watch_ != nullptr ? watch_->first : std::nullopt; }

Status Session::set_budget(std::span<const Duration> worst_case, Duration job) {
  if (!worst_case.empty() && worst_case.size() != steps()) {
    return fail(Code::kConfiguration, "the budget has " + std::to_string(worst_case.size()) + " steps, the plan has " +
                                          std::to_string(steps()) + "; profile the plan again");
  }
  worst_case_.assign(worst_case.begin(), worst_case.end());
  budget_ = job;
  return {};
}

bool Session::may_start(std::size_t step, Duration elapsed) const {
  return worst_case_.empty() || elapsed + worst_case_[step] <= budget_;
}

std::size_t Session::run() {
  if (stream_ != nullptr) {
    bool submitted = true;
    for (std::size_t i = 0; i < segments() && submitted; ++i) submitted = submit(*stream_, i).has_value();
    const bool done = end_->wait() == device::Progress::kDone;
    in_flight_ = in_flight_ && !done;
    return done && submitted ? steps() : 0;
  }
  const HostTime begin = worst_case_.empty() ? HostTime{} : host_now();
  const std::size_t count = steps();
  for (std::size_t i = 0; i < count; ++i) {
    if (!worst_case_.empty() && !may_start(i, host_now() - begin)) return i;
    run_step(i, 0, 1);
  }
  return count;
}

Status Session::submit(device::Stream& stream, std::size_t segment) {
  if (segment == 0 ? in_flight_ : segment != submitted_ || segment >= segments()) {
    return fail(Code::kUsage, segment == 0 ? "a job is in flight; poll its end before the next one begins"
                                           : "segment " + std::to_string(segment) + " of " +
                                                 std::to_string(segments()) + " is not the next one");
  }
  refused_ = !stream.replay(*recording_, segment);
  stream.mark(*end_);
  // Of a job that was given up no further segment is due.
  submitted_ = refused_ ? segments() : segment + 1;
  in_flight_ = true;
  if (!refused_) return {};
  return fail(Code::kEnvironment, "device refused");  // so short that it allocates nothing: timed threads come here
}

device::Progress Session::poll() {
  if (!in_flight_) return device::Progress::kDone;
  const device::Progress progress = end_->poll();
  // In quarantine for good when lost.
  if (progress == device::Progress::kDone) in_flight_ = false;
  return progress;
}

void Session::publish() {
  if (in_flight_ || refused_) return;
  state_->publish();
  refresh_state();
}

void Session::refresh_state() {
  const std::size_t previous = inputs_.size() + outputs_.size(), next = previous + state_->size();
  for (std::size_t i = 0; i < state_->size(); ++i) {
    recording_->bind(previous + i, state_->previous(i, *device_));
    recording_->bind(next + i, state_->next(i, *device_));
  }
}

std::span<const std::byte> Session::state(std::size_t index) const { return state_->published(index); }

std::span<const std::byte> Session::tensor(std::uint32_t index) const {
  const plan::Tensor& t = plan_->description().tensors[index];
  if (owned_ != nullptr && owned_->bytes() > 0 && owned_->host() == nullptr) return {};
  const std::byte* base = nullptr;
  switch (t.storage) {
    case Storage::kArena: base = arena_; break;
    case Storage::kWeights: base = weights_[t.slot]->host(); break;
    case Storage::kInput: base = inputs_[t.slot].data; break;
    case Storage::kOutput: base = outputs_[t.slot].data; break;
    case Storage::kStatePrevious: base = state_->previous(t.slot, *device_); break;
    case Storage::kStateNext: base = state_->next(t.slot, *device_); break;
  }
  if (base == nullptr) return {};
  return {base + t.offset, t.bytes};
}

void Session::record_time(std::size_t step, int part, std::int64_t ns) {
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

}  // namespace takt::exec
