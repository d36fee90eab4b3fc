#include "runtime/exec/state.h"

#include <utility>

#include "runtime/base/sizes.h"

namespace takt::exec {

Result<std::shared_ptr<StateStore>> StateStore::create(std::shared_ptr<const plan::Plan> plan, device::Device& device) {
  std::shared_ptr<StateStore> store(new StateStore);
  const plan::Description& d = plan->description();
  store->plan_ = std::move(plan);
  store->device_ = &device;
  if (d.states.empty()) return store;
  if (!device.properties().callers_run) store->blocks_ = 3;
  std::uint64_t bytes = 0;
  for (const plan::State& state : d.states) bytes += store->blocks_ * round_up(state.bytes, plan::kAlignment);
  TAKT_ASSIGN(store->memory_, device.allocate_shared(bytes));
  std::uint64_t at = 0;
  for (const plan::State& state : d.states) {
    Tensor& tensor = store->states_.emplace_back();
    tensor.bytes = state.bytes;
    for (std::size_t b = 0; b < store->blocks_; ++b) {
      tensor.blocks[b] = {store->memory_->data() + at, store->memory_->host() + at};
      at += round_up(state.bytes, plan::kAlignment);
    }
    if (state.initial != plan::kNone) {
      TAKT_ASSIGN(tensor.initial, device.constants(store->plan_->section(state.initial)));
    }
  }
  TAKT_ASSIGN(store->event_, device.event());
  TAKT_ASSIGN(store->stream_, device.stream(0, 0));
  TAKT_RETURN_IF_ERROR(store->reset());
  return store;
}

Status StateStore::accepts(const plan::Plan& plan, const device::Device& device) const {
  if (!states_.empty() && &device != device_ && !device.properties().callers_run) {
    return fail(Code::kConfiguration, "device " + device.properties().name +
                                          " does not see the state, which was made for " + device_->properties().name);
  }
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

void StateStore::leave_next() {
  if (left_ || blocks_ < 3) return;
  left_ = true;
  next_.store(3 - previous_.load(std::memory_order_relaxed) - next_.load(std::memory_order_relaxed),
              std::memory_order_relaxed);
}

Status StateStore::reset() {
  if (states_.empty()) return {};
  for (const Tensor& tensor : states_) {
    for (std::size_t b = 0; b < blocks_; ++b) {
      std::byte* const block = tensor.blocks[b].device;
      if (tensor.initial) {
        stream_->copy(block, tensor.initial->data(), tensor.bytes);
      } else {
        stream_->zero(block, tensor.bytes);
      }
    }
  }
  stream_->mark(*event_);
  if (event_->wait() == device::Progress::kDone) return {};
  return fail(Code::kEnvironment, "the device was lost while the state was set to its first values");
}

}  // namespace takt::exec
