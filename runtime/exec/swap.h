// Exchanging the plan of a running stage (DESIGN section 6, "Executor").
//
//   prepare       host thread     the new plan is judged and its session made, in a region reserved at start
//   warm_up       maintenance     one run over scratch buffers, in pieces that fit the slot
//   commit        job boundary    the new session takes over bindings and state: no copy, no allocation
//
// The stage goes on with its state: both plans have the same state tensors, in the same memory. Of several variants
// each has a session that can be swapped, over the state of the stage: one may be committed at the boundary at which a
// mode that runs another one ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/session.h"

namespace takt::exec {

// Of one plan on this machine, from a budget file.
struct PlanBudget {
  std::vector<Duration> steps;  // worst case of each
  Duration job;
};

// Whether inputs and outputs are the same, by name, type and shape: what whoever binds them relies on. kConfiguration
// with the first difference.
Status keeps_interface(const plan::Plan& old_plan, const plan::Plan& new_plan);

class SwappableSession {
 public:
  // What is reserved for every plan that the stage will ever have.
  struct Reserve {
    std::uint64_t arena_bytes = 0;                // of each of the two regions
    std::uint64_t weight_bytes = 0;               // of each of the two plans
    int parts = 1;                                // workers of the stage
    Duration slot;                                // what a job may take
    Duration maintenance;                         // what a piece of a warm-up may take
    std::shared_ptr<StateStore> state = nullptr;  // that the stage's variants share; nullptr: of these plans alone
    // Asked at last, when all else fits: whether the schedule holds with this budget too (for a table of ours:
    // pipeline/assembly/swap.h). Set by whoever has the table; empty: the slot decides.
    std::function<Status(const plan::Plan&, const PlanBudget&)> admits;
  };

  // The first plan is judged as any later one. All memory is taken here: both regions, state, scratch buffers.
  // kConfiguration too when the state is of another form than the plan's.
  static Result<std::unique_ptr<SwappableSession>> create(std::shared_ptr<const plan::Plan> plan,
                                                          const PlanBudget& budget, Reserve reserve,
                                                          device::Device& device = device::cpu());

  // What jobs run. Another one after commit().
  [[nodiscard]] Session& current() { return *current_; }

  // While jobs run, on a thread that is not timed; one at a time. Refused with kConfiguration, in words, unless the
  // plan fits the reserve, has budgets that fit the slots, admits the stage's workers and keeps inputs, outputs and
  // state; kUsage while another plan waits for commit() or discard(); errors of the device.
  Status prepare(std::shared_ptr<const plan::Plan> plan, const PlanBudget& budget);

  enum class Warmth {
    kNothing,  // is prepared
    kCold,     // more maintenance slots are needed
    kWarm,     // commit() may come
    kLost,     // the device was lost: discard()
  };
  // In a maintenance slot, when no job of the stage runs, not even a late one: as many steps of the new plan as fit
  // into the slot by their budget. Neither allocates nor locks.
  Warmth warm_up();

  // Between two jobs. False, and nothing happens, unless a plan is warm and no job is in flight. Neither allocates nor
  // locks nor copies. The next job is the new plan's, with the bindings and the state of the old one.
  bool commit();
  // Drops what was prepared and not committed, or what was replaced. Not for timed threads, not during warm_up.
  void discard();

 private:
  SwappableSession() = default;
  [[nodiscard]] Status judge(const plan::Plan& plan, const PlanBudget& budget) const;
  Result<std::unique_ptr<Session>> make(std::shared_ptr<const plan::Plan> plan, const PlanBudget& budget);

  Reserve reserve_;
  device::Device* device_ = nullptr;
  std::unique_ptr<device::Memory> regions_[2];
  std::shared_ptr<StateStore> state_;
  Buffers scratch_;                         // inputs and outputs of warm-ups
  std::unique_ptr<device::Stream> stream_;  // of warm-ups, where callers do not run the calls
  std::unique_ptr<Session> current_;
  std::unique_ptr<Session> other_;  // the new one before commit, the old one after
  PlanBudget budget_;               // of the prepared plan
  int region_ = 0;                  // of current_
  std::size_t warm_steps_ = 0;      // or segments, of the prepared plan
  enum class Phase { kIdle, kPrepared, kWarm };
  std::atomic<Phase> phase_{Phase::kIdle};  // hands other_ from the preparing thread to the timed one and back
};

}  // namespace takt::exec
