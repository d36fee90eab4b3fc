#include "runtime/exec/swap.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/sizes.h"
#include "runtime/exec/ms_text.h"

namespace takt::exec {
namespace {

// The first difference in words; empty: none.
std::string different(const char* kind, const plan::Description& a, const std::vector<std::uint32_t>& as,
                      const plan::Description& b, const std::vector<std::uint32_t>& bs) {
  if (as.size() != bs.size()) {
    return "it has " + std::to_string(bs.size()) + " " + kind + "s instead of " + std::to_string(as.size());
  }
  for (std::size_t i = 0; i < as.size(); ++i) {
    const plan::Tensor& x = a.tensors[as[i]];
    const plan::Tensor& y = b.tensors[bs[i]];
    const std::string who = std::string(kind) + " " + std::to_string(i) + " ('" + x.name + "')";
    if (x.name != y.name) return who + " is called '" + y.name + "'";
    if (x.dtype != y.dtype || !(x.shape == y.shape) || x.bytes != y.bytes) return who + " has another type or shape";
  }
  return "";
}

}  // namespace

Status keeps_interface(const plan::Plan& old_plan, const plan::Plan& new_plan) {
  const plan::Description &ours = old_plan.description(), &d = new_plan.description();
  std::string what = different("input", ours, ours.inputs, d, d.inputs);
  if (what.empty()) what = different("output", ours, ours.outputs, d, d.outputs);
  if (what.empty()) return {};
  return fail(Code::kConfiguration, "plan '" + d.name + "' cannot run in this stage: " + what);
}

Result<std::unique_ptr<SwappableSession>> SwappableSession::create(std::shared_ptr<const plan::Plan> plan,
                                                                   const PlanBudget& budget, Reserve reserve,
                                                                   device::Device& device) {
  std::unique_ptr<SwappableSession> out(new SwappableSession);
  out->reserve_ = std::move(reserve);
  out->device_ = &device;
  TAKT_RETURN_IF_ERROR(out->judge(*plan, budget));
  for (auto& region : out->regions_) {
    TAKT_ASSIGN(region, device.allocate(round_up(out->reserve_.arena_bytes, plan::kAlignment)));
  }
  out->state_ = out->reserve_.state;
  if (out->state_ == nullptr) {
    TAKT_ASSIGN(out->state_, StateStore::create(plan, device));
  }
  TAKT_RETURN_IF_ERROR(out->state_->accepts(*plan, device));
  TAKT_ASSIGN(out->scratch_, Buffers::allocate(plan->description(), device));
  if (!device.properties().callers_run) {
    TAKT_ASSIGN(out->stream_, device.stream(0, 0));
  }
  out->region_ = 1;  // so that the first session takes region 0
  TAKT_ASSIGN(out->current_, out->make(std::move(plan), budget));
  out->region_ = 0;
  return out;
}

Status SwappableSession::judge(const plan::Plan& plan, const PlanBudget& budget) const {
  const plan::Description& d = plan.description();
  const auto refuse = [&](const std::string& what) {
    return fail(Code::kConfiguration, "plan '" + d.name + "' cannot run in this stage: " + what);
  };
  if (current_ != nullptr) {
    TAKT_RETURN_IF_ERROR(keeps_interface(current_->plan(), plan));
    TAKT_RETURN_IF_ERROR(state_->accepts(plan, *device_));
  }
  if (d.arena_bytes > reserve_.arena_bytes) {
    return refuse("its arena has " + std::to_string(d.arena_bytes) + " bytes, reserved are " +
                  std::to_string(reserve_.arena_bytes) + "; reserve more at start");
  }
  if (plan::weight_bytes(d) > reserve_.weight_bytes) {
    return refuse("its weights have " + std::to_string(plan::weight_bytes(d)) + " bytes, reserved are " +
                  std::to_string(reserve_.weight_bytes) + "; reserve more at start");
  }
  if (!plan.admits(reserve_.parts)) {
    return refuse("it does not admit the " + std::to_string(reserve_.parts) +
                  " workers of the stage; compile the model with --parts");
  }
  if (budget.steps.size() != d.steps.size() || budget.job.ns <= 0 ||
      std::any_of(budget.steps.begin(), budget.steps.end(), [](Duration step) { return step.ns <= 0; })) {
    return refuse("it has no budget for each of its " + std::to_string(d.steps.size()) + " steps; profile it first");
  }
  if (budget.job > reserve_.slot) {
    return refuse("its budget of " + ms_text(budget.job) + " is longer than the " + ms_text(reserve_.slot) +
                  " of the stage's slot");
  }
  // A device that works beside the caller warms up by whole jobs.
  Duration piece = budget.job;
  if (device_->properties().callers_run) {
    piece = {};
    for (const Duration step : budget.steps) piece = std::max(piece, step);
  }
  if (piece > reserve_.maintenance) {
    return refuse("its warm-up comes in pieces of " + ms_text(piece) + ", the maintenance slot has " +
                  ms_text(reserve_.maintenance));
  }
  return reserve_.admits ? reserve_.admits(plan, budget) : Status();
}

Result<std::unique_ptr<Session>> SwappableSession::make(std::shared_ptr<const plan::Plan> plan,
                                                        const PlanBudget& budget) {
  Placement placement;
  placement.device = device_;
  const device::Memory& region = *regions_[1 - region_];
  placement.arena = {region.data(), region.bytes()};
  placement.state = state_;
  TAKT_ASSIGN(auto session, Session::create(std::move(plan), placement));
  TAKT_RETURN_IF_ERROR(session->set_budget(budget.steps, budget.job));
  return session;
}

Status SwappableSession::prepare(std::shared_ptr<const plan::Plan> plan, const PlanBudget& budget) {
  if (phase_.load(std::memory_order_acquire) != Phase::kIdle) {
    return fail(Code::kUsage, "another plan waits for its turn; commit or discard it first");
  }
  TAKT_RETURN_IF_ERROR(judge(*plan, budget));
  other_.reset();  // the one that was replaced last; it had the region
  TAKT_ASSIGN(other_, make(std::move(plan), budget));
  TAKT_RETURN_IF_ERROR(scratch_.bind(*other_));
  budget_ = budget;
  warm_steps_ = 0;
  phase_.store(Phase::kPrepared, std::memory_order_release);
  return {};
}

SwappableSession::Warmth SwappableSession::warm_up() {
  const Phase phase = phase_.load(std::memory_order_acquire);
  if (phase == Phase::kIdle) return Warmth::kNothing;
  if (device_->lost() != nullptr) return Warmth::kLost;
  if (phase == Phase::kWarm) return Warmth::kWarm;
  const auto finished = [&] {
    phase_.store(Phase::kWarm, std::memory_order_release);
    return Warmth::kWarm;
  };
  if (stream_ != nullptr) {
    const device::Progress progress = other_->poll();
    if (progress == device::Progress::kLost) return Warmth::kLost;
    if (progress == device::Progress::kPending) return Warmth::kCold;
    if (warm_steps_ == other_->segments()) return finished();
    other_->refresh_state();
    if (!other_->submit(*stream_, warm_steps_)) return Warmth::kLost;
    ++warm_steps_;
    return Warmth::kCold;
  }
  // Jobs may have published since the last piece: what this run writes is never a published half.
  other_->refresh_state();
  const HostTime begin = host_now();
  bool first = true;  // it fits, as judged
  for (; warm_steps_ < other_->steps(); ++warm_steps_, first = false) {
    if (!first && host_now() - begin + budget_.steps[warm_steps_] > reserve_.maintenance) return Warmth::kCold;
    other_->run_step(warm_steps_, 0, 1);
  }
  return finished();
}

bool SwappableSession::commit() {
  if (phase_.load(std::memory_order_acquire) != Phase::kWarm) return false;
  if (current_->poll() != device::Progress::kDone || other_->poll() != device::Progress::kDone) return false;
  other_->bind_like(*current_);
  other_->refresh_state();
  std::swap(current_, other_);
  region_ = 1 - region_;
  phase_.store(Phase::kIdle, std::memory_order_release);
  return true;
}

void SwappableSession::discard() {
  other_.reset();
  phase_.store(Phase::kIdle, std::memory_order_release);
}

}  // namespace takt::exec
