// Jobs of a plan on a device that works beside the caller, from host memory to host memory: what a stage needs of a
// GPU.
//
//   in place  chunk ---------------------> segments ---------------------> chunk, results    one memory (Orin)
//   copies    chunk --copy--> inputs --> segments --> outputs --copy--> chunk, results       a GPU with its own memory
//
// In place, kernels read and write chunks where they lie, through host memory that the device was shown once.
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
#include "runtime/exec/session.h"
#include "runtime/exec/state.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

enum class Exchange : std::uint8_t { kInPlace, kCopies };

// A device as the stages of a run share it, and the host memory that it was shown. Made and filled before the run;
// find(), lost() and give_up() are for any thread.
class Accelerator {
 public:
  // A job that has not ended `patience` after it was handed over hangs, and the device is given up: a kernel that never
  // ends is a loss that no call reports.
  Accelerator(std::shared_ptr<device::Device> device, Exchange exchange, Duration patience = seconds(2))
      : device_(std::move(device)), exchange_(exchange), patience_(patience) {}

  [[nodiscard]] device::Device& device() const { return *device_; }
  [[nodiscard]] Exchange exchange() const { return exchange_; }
  [[nodiscard]] Duration patience() const { return patience_; }
  // nullptr while the device works, otherwise why it does no more. For good.
  [[nodiscard]] const char* lost() const {
    if (const char* reason = device_->lost()) return reason;
    return given_up_.load(std::memory_order_acquire)
               ? "a job hangs: it had not ended when nobody waited for it any more"
               : nullptr;
  }
  void give_up() { given_up_.store(true, std::memory_order_release); }

  // Memory that chunks will lie in. It outlives the accelerator. Errors of import_host().
  Status lend(std::span<std::byte> block);
  // Where the device sees these bytes; nullptr when they lie in no block that was lent.
  [[nodiscard]] std::byte* find(std::span<const std::byte> bytes) const;

 private:
  std::shared_ptr<device::Device> device_;
  Exchange exchange_;
  Duration patience_;
  std::atomic<bool> given_up_{false};
  std::vector<std::unique_ptr<device::Memory>> lent_;
};

// How a job is handed over: in one submission for each segment of its plan, and for its copies where those stand alone.
struct Submissions {
  std::vector<std::size_t> cuts;  // steps with which further segments of the plan begin, ascending
  bool copies_in = false;         // before the first segment; otherwise they belong to that
  bool copies_out = false;        // behind the last one
};

// One thread at a time. After creation nothing is allocated.
class Offload {
 public:
  // What comes and goes with the bytes of the caller, job by job: slots of inputs, and of outputs. For the others there
  // is input() and output().
  struct Chunks {
    std::span<const std::size_t> inputs, outputs;
  };
  // `state`: shared with other sessions of the stage, seen by the same device; nullptr: one of its own. Errors of
  // Session::create and of the device.
  static Result<std::unique_ptr<Offload>> create(const std::shared_ptr<const plan::Plan>& plan,
                                                 std::shared_ptr<Accelerator> accelerator, const Chunks& chunks,
                                                 std::shared_ptr<StateStore> state = nullptr,
                                                 const Submissions& submissions = {});
  // Waits for a job in flight, but no longer than the accelerator's patience: what a job that hangs may still touch,
  // the device included, is then left behind for as long as the process lives.
  ~Offload();

  [[nodiscard]] Session& session() const { return *work_->session; }
  // Host memory: of an input that is no chunk, to be filled before run(); of an output, valid after a job that is done.
  [[nodiscard]] std::span<std::byte> input(std::size_t slot) const { return work_->inputs[slot].host; }
  [[nodiscard]] std::span<const std::byte> output(std::size_t slot) const { return work_->outputs[slot].host; }

  enum class Outcome : std::uint8_t {
    kDone,
    kRefused,  // by the device, or a chunk that is too small or not at a multiple of 64: this job has no output
    kLost,     // the device is, or this job hangs
  };
  // A whole job: copies where they are needed, submits, polls until the end. Chunks in the order of create(), in use
  // until it returns; an input without bytes is one that the plan does not read in this job. It returns when nothing of
  // the job is in flight any more, or the device is lost: whoever waits for it keeps chunks, arena and state in
  // quarantine. What in_flight() says then is for good: output chunks stay out of use, and the half of the state that
  // the job was to write is left to it.
  Outcome run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs = {});
  // The same in parts, for whoever gives the device's work slots of its own; each by any thread, one behind the other.
  // prepare(): says what the job is about. The spans, and what they refer to, stay until the job has ended.
  void prepare(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs = {});
  [[nodiscard]] std::size_t submissions() const {
    return session().segments() + (copies_in_ ? 1 : 0) + (copies_out_ ? 1 : 0);
  }
  // Hands over the next submission; nothing where none is due: the one before has not ended, or was refused.
  void begin();
  // Nothing of the job is in flight any more, or the device is lost: how long it worked on the submission begun last,
  // by its own clock. nullopt: it still does.
  std::optional<Duration> ended();
  // Begins all that has not begun, waits until it has ended, and says what came of the job.
  Outcome take();
  // What was prepared and has not begun will not; what has ended nobody takes.
  void forget();
  [[nodiscard]] bool in_flight() const { return in_flight_; }
  // Why its device does no more; nullptr: it does.
  [[nodiscard]] const char* lost() const { return work_->accelerator->lost(); }
  // Waits until nothing of its jobs is in flight, at most so long. False: a job hangs. Not for timed threads.
  [[nodiscard]] bool settle(Duration limit) const;

  // Of the last job, all submissions together: until they were handed over, by the host's clock; from the first to the
  // last piece of work of each, by the device's (without those that did not end).
  [[nodiscard]] Duration launch() const { return launch_; }
  [[nodiscard]] Duration on_device() const { return on_device_; }
  // The longest of all jobs.
  [[nodiscard]] Duration longest_launch() const { return longest_launch_; }
  [[nodiscard]] Duration longest_on_device() const { return longest_on_device_; }
  // Between chunks or results and buffers of the device, in all jobs.
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }
  // Jobs that were refused, and the submission, from 0, at which the last of them was.
  [[nodiscard]] std::uint64_t refused_jobs() const { return refused_jobs_; }
  [[nodiscard]] std::size_t refused_at() const { return refused_at_; }

 private:
  // Bytes at the boundary: what the host sees, and what the session is bound to.
  struct Buffer {
    std::unique_ptr<device::Memory> shared, own;
    std::span<std::byte> host;
    std::byte* device = nullptr;
  };
  struct Chunk {
    std::size_t slot = 0;
    std::uint64_t bytes = 0;
    std::unique_ptr<device::Memory> buffer;  // of the device, where chunks are copied to or from
  };
  // All that a job in flight touches.
  struct Work {
    std::shared_ptr<Accelerator> accelerator;
    std::unique_ptr<Session> session;
    std::vector<Chunk> in, out;
    std::vector<Buffer> inputs, outputs;  // by slot
    std::unique_ptr<device::Event> begin, end;
    std::unique_ptr<device::Stream> stream;  // last: its destruction waits for work on what stands above
  };

  Offload() = default;
  static Result<Buffer> make_buffer(Accelerator& accelerator, std::uint64_t bytes);
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  void start(std::size_t end);
  bool hand_over(std::size_t submission);
  bool bring();
  bool bind_inputs(std::span<const std::span<const std::byte>> chunks);
  bool bind_outputs(std::span<const std::span<std::byte>> chunks);
  bool copy_back(std::span<const std::span<std::byte>> chunks);

  enum class Stage : std::uint8_t {
    kNone,
    kReady,  // the next submission may begin
    kBegun,
    kOver,  // none is left, or none follows what was refused or lost
  };

  std::unique_ptr<Work> work_ = std::make_unique<Work>();
  bool copies_in_ = false, copies_out_ = false;
  // Of the job:
  Stage stage_ = Stage::kNone;
  std::size_t next_ = 0;  // submission
  std::span<const std::span<const std::byte>> inputs_;
  std::span<const std::span<std::byte>> outputs_;
  bool taken_ = false;  // by the device, all that was handed over last
  bool in_flight_ = false;
  HostTime handed_over_;
  Duration worked_;  // on what was handed over last
  Outcome outcome_ = Outcome::kDone;
  std::uint64_t copied_bytes_ = 0;
  std::uint64_t refused_jobs_ = 0;
  std::size_t refused_at_ = 0;
  Duration launch_, on_device_, longest_launch_, longest_on_device_;
};

}  // namespace takt::exec
