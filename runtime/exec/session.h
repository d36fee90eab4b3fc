// One execution context of a plan on a device: its arena, its bindings, its place in the state. Creates no thread and
// takes no lock: the caller (a stage's gang, a test, a command) runs the steps, or submits them to a stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/device/device.h"
#include "runtime/exec/state.h"
#include "runtime/exec/watch.h"
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

// What a session is given instead of making it.
struct Placement {
  device::Device* device = &device::cpu();
  // At least plan.arena_bytes at a multiple of 64, addresses of the device (DESIGN: its base is assigned after
  // scheduling); empty: the session allocates one.
  std::span<std::byte> arena;
  std::shared_ptr<StateStore> state;      // shared with other sessions of the stage; nullptr: one of its own
  std::span<const std::size_t> segments;  // steps with which further segments begin, ascending; empty: one segment
};

// Memory comes at creation only; afterwards nothing is allocated, freed or locked. Sessions of one plan share its
// weights and nothing else. Not thread-safe but for run_step, whose parts run side by side.
class Session {
 public:
  // On the CPU. `arena`: at least plan.arena_bytes at a multiple of 64; empty: the session owns one. Pages of either
  // are touched here, bytes of a given one are kept.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const plan::Plan> plan,
                                                 std::span<std::byte> arena = {});
  // kEnvironment when the device cannot run the plan's target, or an arena is too small or not aligned;
  // kConfiguration when a given state has another schema; errors of the device.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const plan::Plan> plan, const Placement& placement);
  ~Session();  // waits for a job in flight

  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }
  [[nodiscard]] device::Device& device() const { return *device_; }

  // Buffers of the next run, addresses of the device; they stay bound until they are bound anew. kInput, naming both
  // sizes, when a buffer is smaller than the tensor or does not start at a multiple of 64; kUsage while a job is in
  // flight. No allocation on success.
  Status bind_input(std::size_t slot, std::span<const std::byte> bytes);
  Status bind_output(std::size_t slot, std::span<std::byte> bytes);
  // Binds what another session of the same inputs and outputs is bound to. Contract: neither has a job in flight.
  void bind_like(const Session& other);

  // Part `part` of `parts` of a step, on a device whose callers run the calls; nothing where the conditions of its
  // guard do not hold. All parts of a step must have ended before one of the next begins (the phases of a stage).
  // `parts` is one that the plan admits, every slot is bound: contracts of the caller, checked by ready().
  void run_step(std::size_t step, int part, int parts) {
    if (observed_) {
      run_observed(step, part, parts);
    } else {
      recording_->run_call(step, part, parts);
    }
  }
  [[nodiscard]] std::size_t steps() const { return plan_->description().steps.size(); }
  // kUsage, in words: a slot that is not bound, or a number of parts that the plan does not admit.
  [[nodiscard]] Status ready(int parts) const;

  // Worst case of every step and what the whole job may take; from a budget file, never from the plan. Empty: no limit.
  // kConfiguration when the count differs from the number of steps. Allocates.
  Status set_budget(std::span<const Duration> worst_case, Duration job);
  // Whether a step may begin: `elapsed` since the job's start plus its worst case fits the job's budget. One worker
  // asks and tells the others; after a "no" the job is given up and publish() is not called.
  [[nodiscard]] bool may_start(std::size_t step, Duration elapsed) const;

  // The whole job on the calling thread: step by step, checking the budget before each; where callers do not run the
  // calls, by a stream of its own, waiting for its end. Returns the number of steps run: steps() when the job is
  // complete; 0 when the device refused it or was lost. The caller has asked ready(1) once.
  std::size_t run();

  // The same for devices that work beside the caller. A job is its segments in order, submitted to one stream; segment
  // 0 begins it. kUsage: another segment is due, or segment 0 while a job is in flight; kEnvironment: the device
  // refused the segment, and the job is given up, though what was submitted of it may still run. No allocation on
  // success.
  Status submit(device::Stream& stream, std::size_t segment);
  [[nodiscard]] std::size_t segments() const { return recording_->segments(); }
  // Of all that was submitted; kDone when nothing was. While it says kPending, bound buffers, arena and next state are
  // in quarantine: the device may still read and write them. kLost is for good, and so is the quarantine then.
  device::Progress poll();
  // As poll() last saw it.
  [[nodiscard]] bool in_flight() const { return in_flight_; }
  // Of a device that was lost: leaves it the half of the state that the job in flight was to write.
  void leave_state() { state_->leave_next(); }

  // Makes the half of the state that this job wrote the one that the next job reads. A job that was given up does not
  // publish: the state stays at its last published half. Does nothing while a job is in flight, refused or lost.
  void publish();
  // After another session of the same state has published: this one reads what that one wrote. Cheap.
  void refresh_state();
  // The half published last, as the host sees it.
  [[nodiscard]] std::span<const std::byte> state(std::size_t index) const;

  // What lies in the bytes of a tensor of the plan now, as stored (blocked layouts too); empty where the host does not
  // see the device's memory or the slot is not bound. For people who look for a wrong layer.
  [[nodiscard]] std::span<const std::byte> tensor(std::uint32_t index) const;

  // Off at creation. Each step then costs two clock readings a part.
  void enable_profile(bool on) {
    profiling_ = on;
    observed_ = profiling_ || watch_ != nullptr;
  }
  // Over all parts and all runs that were profiled.
  [[nodiscard]] StepProfile profile(std::size_t step) const;

  // A debug mode: inputs, and the result of every step before the next one may write over it, are searched for values
  // that are no finite numbers, until one is found. By whichever part of a step ends last, so any number of workers may
  // run. kConfiguration on a device whose callers do not run the calls. Allocates when it is switched on, and takes its
  // time.
  Status watch(bool on);
  // The first one since then.
  [[nodiscard]] std::optional<NonFinite> first_non_finite() const;

 private:
  // The binding table: inputs, outputs, states as published, states as written by this job.
  struct Slot {
    std::uint64_t bytes = 0;
    std::byte* data = nullptr;  // nullptr: not bound
  };

  Session() = default;
  Status bind(Slot& slot, const char* kind, std::size_t index, std::uint32_t tensor, std::size_t binding,
              std::byte* data, std::uint64_t bytes);
  struct Watch {
    explicit Watch(std::size_t steps) : ended(steps) {}
    std::vector<std::atomic<int>> ended;  // parts, by step
    std::uint64_t runs = 0;
    std::optional<NonFinite> first;
  };
  void run_observed(std::size_t step, int part, int parts);
  void look(std::size_t step, int parts);
  void record_time(std::size_t step, int part, std::int64_t ns);

  std::shared_ptr<const plan::Plan> plan_;
  device::Device* device_ = nullptr;
  std::shared_ptr<StateStore> state_;
  std::vector<std::shared_ptr<const device::Memory>> weights_;  // by section
  std::unique_ptr<device::Memory> owned_;                       // arena when not given; a given one as lent
  std::byte* arena_ = nullptr;
  std::unique_ptr<device::Recording> recording_;
  std::unique_ptr<device::Event> end_;
  std::unique_ptr<device::Stream> stream_;  // of run(), where callers do not run the calls
  std::vector<Slot> inputs_, outputs_;
  std::size_t submitted_ = 0;  // segments of this job
  bool in_flight_ = false;
  bool refused_ = false;              // a segment of this job was
  std::vector<Duration> worst_case_;  // by step; empty: no limit
  Duration budget_;
  bool profiling_ = false;
  std::unique_ptr<Watch> watch_;
  bool observed_ = false;  // profiling or watching
  int most_parts_ = 1;
  std::vector<StepProfile> profile_;  // [step][part]
};

}  // namespace takt::exec
