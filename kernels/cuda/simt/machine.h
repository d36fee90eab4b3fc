// Private: the state behind simt.h. `Machine::Impl` runs launches; `Shadow` remembers who touched what.
#pragma once

#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/simt/simt.h"

namespace takt::simt {

// Who touched a byte last, and after which barriers.
struct Stamp {
  std::uint32_t block = 0;  // serial of a block, unique in the machine; 0: nobody
  std::uint32_t block_barriers = 0;
  std::uint16_t warp_barriers = 0;
  std::uint16_t thread = 0;  // or one of those below
  bool atomic = false;
};
// Threads that a stamp of readers stands for when they are several; one warp's are kSeveralOfWarp + warp.
inline constexpr std::uint16_t kSeveralOfWarp = 1024;
inline constexpr std::uint16_t kSeveral = 2046;
inline constexpr std::uint16_t kSeveralBlocks = 2047;

struct Shadow {
  Stamp write, read;
};

struct Allocation {
  std::byte* start = nullptr;
  std::size_t bytes = 0;
  std::string name;
  std::byte* raw = nullptr;  // with the room around it; nullptr: lent
  std::size_t raw_bytes = 0;
  std::vector<Shadow> shadow;  // by byte, in checking mode
};

struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  std::uint32_t bytes, valid;
  Site site;
};

// kStrayed: ended by the harness; barriers do not wait for it, since its finding says enough.
enum class State { kRunnable, kAtBarrier, kAtWarp, kDone, kStrayed };

// What a warp operation is, so that lanes at different ones are noticed.
enum class WarpOperation { kSync, kLane, kUp, kDown, kXor, kBallot };

struct Fibre {
  void* context = nullptr;
  std::byte* stack = nullptr;
  State state = State::kRunnable;
  ThreadView view;
  std::uint16_t index = 0;
  Site site;          // of the barrier or warp operation that it waits at
  bool vote = false;  // given to the barrier
  WarpOperation operation = WarpOperation::kSync;
  std::uint64_t bits = 0;  // given to an exchange, and what came out of it or of a barrier
  std::uint32_t argument = 0;
  std::vector<AsyncCopy> copies;    // in flight, oldest first
  std::vector<std::size_t> groups;  // copies in each committed group
};

class Machine::Impl {
 public:
  explicit Impl(const Options& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run(const char* kernel, const Launch& launch, void (*body)(const void*), const void* closure);

  // By the running fibre.
  bool sync_block(bool value, Site site);
  std::uint64_t warp(WarpOperation what, std::uint64_t bits, std::uint32_t argument, Site site);
  std::int32_t atomic(std::int32_t* at, Atomic what, std::int32_t value, std::int32_t expected, Site site);
  void copy_async(const AsyncCopy& copy);
  void copy_async_commit();
  void copy_async_wait(std::size_t groups);

  // Before the running fibre touches memory. Does not return when it must not.
  void access(const void* address, std::size_t bytes, bool write, bool atomic, Site site, const void* pc);
  // Whether the access is a fibre's and to be judged at all.
  [[nodiscard]] bool judges() const { return options_.check && current_ != nullptr; }

  Fibre* current_ = nullptr;
  std::map<const std::byte*, Allocation> allocations_;  // by start
  Options options_;
  std::vector<Finding> findings_;

 private:
  friend class Machine;
  friend struct Entry;

  void start_block(std::uint64_t number);
  void run_block();
  void resume(Fibre& fibre);
  void yield();
  [[noreturn]] void leave(State state);
  bool release_barrier();
  bool release_warp(std::uint32_t warp);
  void stray();
  void land(Fibre& fibre, std::size_t count);
  void judge(std::span<Shadow> shadow, bool shared, bool write, bool atomic, const char* where, const void* address,
             Site site, const void* pc);
  [[nodiscard]] bool conflicts(const Stamp& earlier, const Stamp& now) const;
  [[nodiscard]] Stamp stamp(bool atomic) const;
  void find(Finding::Kind kind, const void* address, const std::string& text, Site site, const void* pc);
  std::uint64_t random();

  std::uint64_t random_state_;
  void* scheduler_ = nullptr;  // where fibres return to
  const char* kernel_ = "";
  Launch launch_;
  void (*body_)(const void*) = nullptr;
  const void* closure_ = nullptr;
  std::vector<Fibre> fibres_;
  std::vector<std::byte*> stacks_;
  std::vector<std::uint16_t> order_;
  std::vector<std::uint16_t> warp_barriers_;
  std::vector<std::byte> shared_;
  std::byte* shared_start_ = nullptr;
  std::vector<Shadow> shared_shadow_;
  std::vector<std::uint8_t> in_flight_;  // by byte of shared memory
  std::uint32_t block_serial_ = 0, first_serial_ = 1, block_barriers_ = 0;
  std::set<std::tuple<Finding::Kind, std::string, const void*, int>> known_;  // kernel, instruction, line
};

// The machine in use on this host thread; nullptr: none.
Machine::Impl*& machine_in_use();

}  // namespace takt::simt
