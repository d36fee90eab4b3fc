#include "runtime/exec/state.h"

#include <utility>

#include "runtime/base/sizes.h"

namespace takt::exec {

Result<std::shared_ptr<StateStore>> StateStore::create(std::shared_ptr<const plan::Plan> plan, device::Device& device) {
  std::shared_ptr<StateStore> store(new StateStore);
  const plan::Description& d = plan->description();
  store->plan_ = plan;
  if (d.states.empty()) return store;
  std::uint64_t bytes = 0;
  for (const plan::State& state : d.states) bytes += 2 * round_up(state.bytes, plan::kAlignment);
  TAKT_ASSIGN(store->memory_, device.allocate(bytes));
  std::byte* next = store->memory_->data();
  for (const plan::State& state : d.states) {
    Tensor& tensor = store->states_.emplace_back();
    tensor.bytes = state.bytes;
    for (std::byte*& half : tensor.halves) {
      half = next;
      next += round_up(state.bytes, plan::kAlignment);
    }
    if (state.initial != plan::kNone) {
      TAKT_ASSIGN(tensor.initial, device.constants(plan->section(state.initial)));
    }
  }
  TAKT_ASSIGN(store->event_, device.event());
  TAKT_ASSIGN(store->stream_, device.stream(0, 0));
  TAKT_RETURN_IF_ERROR(store->reset());
  return store;
}

Status StateStore::accepts(const plan::Plan& plan) const {
  const plan::Description& ours = plan_->description();
  const plan::Description& its = plan.description();
  const auto refuse = [&](const std::string& what) {
    return fail(Code::kConfiguration, "plan '" + its.name + "' does not keep the state of plan '" + ours.name + "': " +
                                          what + "; state can be handed on only to a plan with the same state tensors");
  };
  if (its.state_schema == ours.state_schema) return {};
  if (its.states.size() != ours.states.size()) {
    return refuse("it has " + std::to_string(its.states.size()) + " state tensors instead of " +
                  std::to_string(ours.states.size()));
  }
  for (std::size_t i = 0; i < ours.states.size(); ++i) {
    const plan::State& a = ours.states[i];
    const plan::State& b = its.states[i];
    const std::string who = "state " + std::to_string(i) + " ('" + a.name + "')";
    if (a.name != b.name) return refuse(who + " is called '" + b.name + "'");
    if (a.dtype != b.dtype || !(a.shape == b.shape)) return refuse(who + " has another type or shape");
  }
  return {};
}

Status StateStore::reset() {
  published_ = 0;
  if (states_.empty()) return {};
  for (const Tensor& tensor : states_) {
    for (std::byte* half : tensor.halves) {
      if (tensor.initial) {
        stream_->copy(half, tensor.initial->data(), tensor.bytes);
      } else {
        stream_->zero(half, tensor.bytes);
      }
    }
  }
  stream_->mark(*event_);
  if (event_->wait() == device::Progress::kDone) return {};
  return fail(Code::kEnvironment, "the device was lost while the state was set to its first values");
}

}  // namespace takt::exec
