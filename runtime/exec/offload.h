// Jobs of a plan on a device that works beside the caller, from host memory to host memory: what a stage needs of a
// GPU.
//
//   in place  chunk ---------------------> segments ---------------------> results      one memory (Orin)
//   copies    chunk --copy--> inputs --> segments --> results --copy--> results         a GPU with memory of its own
//
// In place, a kernel reads the chunk where its producer wrote it, through host memory that the device was shown once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
// find() is for any thread.
class Accelerator {
 public:
  Accelerator(std::shared_ptr<device::Device> device, Exchange exchange)
      : device_(std::move(device)), exchange_(exchange) {}

  [[nodiscard]] device::Device& device() const { return *device_; }
  [[nodiscard]] Exchange exchange() const { return exchange_; }

  // Memory that inputs will lie in (the segments of chunks). It outlives the accelerator. Errors of import_host().
  Status lend(std::span<std::byte> block);
  // Where the device sees these bytes; nullptr when they lie in no block that was lent.
  [[nodiscard]] const std::byte* find(std::span<const std::byte> bytes) const;

 private:
  std::shared_ptr<device::Device> device_;
  Exchange exchange_;
  std::vector<std::unique_ptr<device::Memory>> lent_;
};

// One thread at a time. After creation nothing is allocated.
class Offload {
 public:
  // `chunks`: slots of the inputs that come as bytes of the caller, job by job; for the others there is input().
  // `state`: shared with other sessions of the stage, on the same device; nullptr: one of its own. `segments`: steps
  // with which further segments begin, ascending. Errors of Session::create and of the device.
  static Result<std::unique_ptr<Offload>> create(const std::shared_ptr<const plan::Plan>& plan,
                                                 std::shared_ptr<Accelerator> accelerator,
                                                 std::span<const std::size_t> chunks,
                                                 std::shared_ptr<StateStore> state = nullptr,
                                                 std::span<const std::size_t> segments = {});
  ~Offload();  // waits for a job in flight

  [[nodiscard]] Session& session() const { return *session_; }
  // Host memory: of an input that is no chunk, to be filled before run(); of an output, valid after a job that is done.
  [[nodiscard]] std::span<std::byte> input(std::size_t slot) const { return inputs_[slot].host; }
  [[nodiscard]] std::span<const std::byte> output(std::size_t slot) const { return outputs_[slot].host; }

  enum class Outcome : std::uint8_t {
    kDone,
    kRefused,  // by the device, or a chunk that is too small or not at a multiple of 64: this job has no output
    kLost,     // the device is
  };
  // A whole job: copies where they are needed, submits, polls until the end. `chunks`: in the order of create(), in use
  // until it returns. It returns when nothing of the job is in flight any more, or the device is lost: whoever waits
  // for it keeps chunk, arena and state in quarantine.
  Outcome run(std::span<const std::span<const std::byte>> chunks);

  // The longest of all jobs: until everything was handed over, by the host's clock; between its first and last piece of
  // work, by the device's.
  [[nodiscard]] Duration longest_launch() const { return longest_launch_; }
  [[nodiscard]] Duration longest_on_device() const { return longest_on_device_; }
  // Between chunks or results and buffers of the device, in all jobs.
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  // Bytes at the boundary: what the host sees, and what the session is bound to.
  struct Buffer {
    std::unique_ptr<device::Memory> shared, own;
    std::span<std::byte> host;
    std::byte* device = nullptr;
  };
  struct ChunkInput {
    std::size_t slot = 0;
    std::uint64_t bytes = 0;
    std::unique_ptr<device::Memory> buffer;  // where chunks are copied
  };

  explicit Offload(std::shared_ptr<Accelerator> accelerator) : accelerator_(std::move(accelerator)) {}
  Result<Buffer> make_buffer(std::uint64_t bytes) const;
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  bool hand_over(std::span<const std::span<const std::byte>> chunks);

  std::shared_ptr<Accelerator> accelerator_;
  std::unique_ptr<Session> session_;
  std::vector<ChunkInput> chunks_;
  std::vector<Buffer> inputs_, outputs_;  // by slot
  std::unique_ptr<device::Event> begin_, end_;
  std::unique_ptr<device::Stream> stream_;  // last: its destruction waits for work on what stands above
  std::uint64_t copied_bytes_ = 0;
  Duration longest_launch_, longest_on_device_;
};

}  // namespace takt::exec
