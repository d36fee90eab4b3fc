// A stage's plan where it runs: on the cores, where every step is a phase of the gang, or on a device beside them,
// where a job is handed over in one phase and taken back in another. A stage sees no other difference.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/stages/stage.h"
#include "runtime/exec/offload.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"

namespace takt::pipeline {

class StagePlan {
 public:
  // Slots of the plan that are bound to the bytes of chunks, job by job; the others have host memory of their own.
  struct Chunks {
    struct Input {
      std::size_t slot = 0;
      bool optional = false;  // there are jobs without it, in which the plan does not read it
    };
    std::vector<Input> inputs;
    std::vector<std::size_t> outputs;
  };
  // Of plan, arena, state and accelerator of the specification. Errors of sessions and of the device.
  static Result<StagePlan> create(const StageSpec& spec, const Chunks& chunks);

  [[nodiscard]] exec::Session& session() const { return offload_ ? offload_->session() : *session_; }
  // nullptr on the cores.
  [[nodiscard]] exec::Offload* offload() const { return offload_.get(); }
  [[nodiscard]] int phases() const { return offload_ ? 2 : static_cast<int>(session_->steps()); }
  // The first phase that comes behind the device's work; 0 on the cores.
  [[nodiscard]] int behind_device() const { return offload_ ? 1 : 0; }
  [[nodiscard]] bool parallel() const { return offload_ == nullptr; }

  // Host memory, zeros at first. What is no chunk is filled before the first phase and valid behind the last one.
  template <class T>
  [[nodiscard]] T* input(std::size_t slot) const {
    return reinterpret_cast<T*>(offload_ ? offload_->input(slot).data() : inputs_[slot].data());
  }
  template <class T>
  [[nodiscard]] const T* output(std::size_t slot) const {
    return reinterpret_cast<const T*>(offload_ ? offload_->output(slot).data() : outputs_[slot].data());
  }

  // Before the first phase: where chunk `i` (in the order of create()) of this job lies, none for an optional one.
  // False: it is too small or does not start at a multiple of 64.
  [[nodiscard]] bool bind_input(std::size_t i, std::span<const std::byte> bytes);
  [[nodiscard]] bool bind_output(std::size_t i, std::span<std::byte> bytes);
  // A phase of the job. On the device: the first one prepares it, the second one begins it, unless that has been done,
  // waits for its end, and notes its times in the job, or that it failed.
  void run(int phase, int part, int parts, StageJob& job);
  // All phases on the calling thread. False: the device does not do it.
  bool run();
  // What the stage's published() says of state.
  void publish() { session().publish(); }

 private:
  struct Slot {
    std::size_t slot = 0;
    std::uint64_t bytes = 0;
    memory::AlignedBuffer nothing;  // on the cores, of an optional input
  };

  std::unique_ptr<exec::Session> session_;
  std::unique_ptr<exec::Offload> offload_;
  std::vector<Slot> chunk_inputs_, chunk_outputs_;
  std::vector<memory::AlignedBuffer> inputs_, outputs_;   // on the cores, by slot
  std::vector<std::span<const std::byte>> bound_inputs_;  // on the device, of this job
  std::vector<std::span<std::byte>> bound_outputs_;
};

}  // namespace takt::pipeline
