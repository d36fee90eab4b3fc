// One execution context of a plan: its arena, its state, its bindings. Creates no thread and takes no lock: the caller
// (a stage's gang, a test, a command) runs the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

// Times of one step as seen by its slowest part, kept without allocation.
struct StepProfile {
  static constexpr std::uint32_t kRunsPerBlock = 64;
  static constexpr std::size_t kBlocks = 8;
  std::uint64_t count = 0;
  std::int64_t minimum_ns = 0;
  std::int64_t maximum_ns = 0;  // the high-water mark
  // Maxima of the latest blocks of kRunsPerBlock runs, block b at b % kBlocks: whether the mark is old or still rising.
  std::int64_t recent_maximum_ns[kBlocks] = {};
};

// Memory comes at creation only; afterwards nothing is allocated, freed or locked. Sessions of one plan share its
// weights and nothing else. Not thread-safe but for run_step, whose parts run side by side.
class Session {
 public:
  // `arena`: at least plan.arena_bytes at a multiple of 64 (DESIGN: its base is assigned after scheduling); empty: the
  // session owns one. Pages of either are touched here, bytes of a given one are kept. kEnvironment when this machine
  // cannot run the plan's target, or an arena is too small or not aligned.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const plan::Plan> plan,
                                                 std::span<std::byte> arena = {});

  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }

  // Buffers of the next run; they stay bound until they are bound anew. kInput, naming both sizes, when a buffer is
  // smaller than the tensor or does not start at a multiple of 64. No allocation on success.
  Status bind_input(std::size_t slot, std::span<const std::byte> bytes);
  Status bind_output(std::size_t slot, std::span<std::byte> bytes);

  // Part `part` of `parts` of a step. All parts of a step must have ended before one of the next begins (the phases of
  // a stage). `parts` is one that the plan admits, every slot is bound: contracts of the caller, checked by ready().
  void run_step(std::size_t step, int part, int parts);
  [[nodiscard]] std::size_t steps() const { return steps_.size(); }
  // kUsage, in words: a slot that is not bound, or a number of parts that the plan does not admit.
  [[nodiscard]] Status ready(int parts) const;

  // Worst case of every step and what the whole job may take; from a budget file, never from the plan. Empty: no limit.
  // kConfiguration when the count differs from the number of steps. Allocates.
  Status set_budget(std::span<const Duration> worst_case, Duration job);
  // Whether a step may begin: `elapsed` since the job's start plus its worst case fits the job's budget. One worker
  // asks and tells the others; after a "no" the job is given up and publish() is not called.
  [[nodiscard]] bool may_start(std::size_t step, Duration elapsed) const;

  // All steps on the calling thread, checking the budget before each. Returns the number of steps run: steps() when
  // the job is complete. The caller has asked ready(1) once.
  std::size_t run();

  // Makes the half of the state that this job wrote the one that the next job reads. A job that was given up does not
  // publish: the state stays at its last published half.
  void publish();
  // Back to the initial values, both halves. Not for timed threads.
  void reset_state();
  // The half published last.
  [[nodiscard]] std::span<const std::byte> state(std::size_t index) const;

  // Off at creation. Each step then costs two clock readings a part.
  void enable_profile(bool on) { profiling_ = on; }
  // Over all parts since enable_profile or the last call of clear_profile.
  [[nodiscard]] StepProfile profile(std::size_t step) const;
  void clear_profile();

 private:
  struct BoundStep {
    const kernels::Kernel* kernel = nullptr;
    const void* params = nullptr;
    kernels::Operand* operands = nullptr;
  };
  // Where a slot's address has to go: operand `operand` lies `offset` bytes into the slot.
  struct Patch {
    std::uint32_t operand = 0;
    std::uint64_t offset = 0;
  };
  struct Slot {
    std::vector<Patch> patches;
    std::uint64_t bytes = 0;
    bool bound = false;
  };
  struct StateBuffer {
    std::byte* halves[2] = {nullptr, nullptr};
    std::uint64_t bytes = 0;
    Slot previous, next;
  };

  Session() = default;
  Status bind(Slot& slot, const char* kind, std::size_t index, std::uint32_t tensor, std::byte* data,
              std::uint64_t bytes);
  void point(const Slot& slot, std::byte* data);
  void point_at_halves();
  void record(std::size_t step, int part, std::int64_t ns);

  std::shared_ptr<const plan::Plan> plan_;
  memory::AlignedBuffer owned_;             // arena when not given, and state
  std::vector<kernels::Operand> operands_;  // of all steps, one after the other
  std::vector<BoundStep> steps_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<StateBuffer> states_;
  int published_ = 0;                 // which half
  std::vector<Duration> worst_case_;  // by step; empty: no limit
  Duration budget_;
  bool profiling_ = false;
  int most_parts_ = 1;
  std::vector<StepProfile> profile_;  // [step][part]
};

}  // namespace takt::exec
