// Where plans run: what the executor needs of a CPU, a GPU or a test's device, and no more (DESIGN section 6,
// "Devices").
//
//   Device --- allocate, import_host, constants ---> Memory
//     |------- record(calls, bindings, cuts) ------> Recording: segments over one binding table
//     |------- stream(priority, partition) --------> Stream: copy, zero, replay a segment, mark an event; in this order
//     '------- event() ----------------------------> Event: poll, time
//
// Making any of these may fail, in words, and allocates. Using them does neither. Work can fail in two ways. It is
// *refused* when it is handed over: nothing of it will run, and the device goes on (a launch for want of a resource).
// Or it goes wrong later, which *loses* the device, for good, as a CUDA error that poisons the context does; events
// behind that work say so.
//
// Quarantine: whatever work may still touch (bound buffers, arena, next state, the recording) stays as it is until an
// event behind that work is no longer pending. Memory that a lost device was to write is safe again only when the
// device is gone.
//
// Threads: making things is for one thread at a time. A stream, the recordings that it replays and its events belong to
// one thread at a time; streams of one device to different ones. lost() may be asked by any. A device outlives
// everything made by it. One whose calls take locks that threads share marks them (ForeignCall): timed threads may lose
// their core at any instant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/kernel.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::device {

// Memory of a device or lent to it. Starts at a multiple of 64.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }  // as work of this device sees it
  [[nodiscard]] std::byte* host() const { return host_; }  // as the host sees it; nullptr where it cannot
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 protected:
  Memory(std::byte* data, std::byte* host, std::uint64_t bytes) : data_(data), host_(host), bytes_(bytes) {}

 private:
  std::byte* data_;
  std::byte* host_;
  std::uint64_t bytes_;
};

inline constexpr std::uint32_t kFixed = 0xffffffff;

// Where one operand of a call lies: at an address, or `offset` bytes into what is bound when the segment is replayed.
struct Operand {
  std::uint64_t bytes = 0;
  std::byte* data = nullptr;       // kFixed only; nullptr: the operand is absent
  std::uint32_t binding = kFixed;  // index in the binding table
  std::uint64_t offset = 0;
};

// A bool that is asked whenever a call is about to run, by every part of it.
struct Condition {
  Operand operand;
  bool when = true;
};

// One kernel call; it does nothing where one of its conditions does not hold. Parameters are read while recording and,
// by devices whose callers run the calls, at every replay: they stay where they are as long as the recording.
struct Call {
  const kernels::Kernel* kernel = nullptr;
  const void* params = nullptr;
  std::span<const Operand> operands;
  std::span<const Condition> conditions;
};

// Calls as a device keeps them for replay, cut into segments, with one table of bound addresses.
class Recording {
 public:
  virtual ~Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Takes effect with the next replay; not while a segment is in flight. The address is one of this device.
  virtual void bind(std::size_t binding, std::byte* address) = 0;
  // Part `part` of `parts` of a call, on the calling thread. Only where Properties::callers_run.
  virtual void run_call(std::size_t call, int part, int parts) = 0;
  [[nodiscard]] std::size_t segments() const { return segments_; }

 protected:
  explicit Recording(std::size_t segments) : segments_(segments) {}

 private:
  std::size_t segments_;
};

enum class Progress {
  kPending,
  kDone,
  kLost,  // the device was lost before it came here
};

// A point in a stream. Before it is first marked it is done.
class Event {
 public:
  virtual ~Event() = default;
  virtual Progress poll() = 0;
  // Until it is no longer pending; not for timed threads.
  virtual Progress wait() = 0;
  // Time of the device between two events that are done.
  [[nodiscard]] virtual Duration since(const Event& begin) const = 0;
};

// An order of work inside a partition. Each call may return before or after the work is done; only an event tells.
// False: the work was refused, or the device is lost. Destruction waits for what is in flight.
class Stream {
 public:
  virtual ~Stream() = default;
  // Both are memory of this device, or any of the host's, and do not overlap.
  virtual bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes) = 0;
  virtual bool zero(std::byte* to, std::uint64_t bytes) = 0;
  virtual bool replay(Recording& recording, std::size_t segment) = 0;
  // Everything before it is done when the event is. An event that is marked again belongs to the later mark.
  virtual void mark(Event& event) = 0;
};

struct Properties {
  std::string name;                // "cpu", "null", "cuda:0"
  std::uint64_t memory_bytes = 0;  // in all; 0: not known
  int partitions = 1;              // timelines that do not share compute units
  int priorities = 1;              // of streams; 0 is the least urgent
  bool callers_run = false;        // calls may be run by the threads of the caller, part by part: they are its cores
  bool computes = true;            // false: work is accepted and left undone
  bool shares_memory = true;       // with the host: imported memory is read as fast as the device's own (Orin)
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const Properties& properties() const = 0;
  // Why it cannot run plans of this target; nullptr: it can.
  [[nodiscard]] virtual const char* unsupported(kernels::Target target) const = 0;
  // nullptr while it works, otherwise why it is lost. A lost device refuses everything with kEnvironment.
  [[nodiscard]] virtual const char* lost() const = 0;

  // Zeros; every page is touched. kEnvironment, naming the size, when there is no memory. Zero bytes take none.
  virtual Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) = 0;
  // The same, but memory that the host sees as well.
  virtual Result<std::unique_ptr<Memory>> allocate_shared(std::uint64_t bytes) = 0;
  // Bytes that can still be had; 0: not known.
  [[nodiscard]] virtual std::uint64_t free_bytes() const { return 0; }
  // Host memory as this device sees it, without a copy: chunks, arenas. What it holds is kept, every page is touched;
  // it outlives the result. kInput when it does not start at a multiple of 64, kEnvironment when it cannot be mapped.
  virtual Result<std::unique_ptr<Memory>> import_host(std::span<std::byte> bytes) = 0;
  // Read-only bytes that outlive the result (weights of a plan). One copy at most, whoever asks: it is made once and
  // kept as long as anybody holds it.
  virtual Result<std::shared_ptr<const Memory>> constants(std::span<const std::byte> bytes) = 0;

  // `cuts`: the calls with which further segments begin, ascending, none at 0. `bindings`: entries of the table.
  // kEnvironment: a kernel was not built for this device; kInternal: an operand or a cut that is none.
  virtual Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                                    std::span<const std::size_t> cuts) = 0;
  // kConfiguration for a priority or partition that it has not.
  virtual Result<std::unique_ptr<Stream>> stream(int priority, int partition) = 0;
  virtual Result<std::unique_ptr<Event>> event() = 0;
};

// The CPU of this machine: memory is the host's, a stream works on the thread that fills it, and calls may be run part
// by part by threads of the caller. Never lost.
Device& cpu();

}  // namespace takt::device
