// A GPU's execution model on one host thread: blocks in a seeded order, their threads as fibres in a seeded order that
// changes at every barrier. For tests and for the cuda-host device; kernels reach it through kernels/cuda/device.h.
//
// Checking mode: kernels compiled with -fsanitize=thread report each access to hooks.cpp (libtsan is not linked). Found
// are accesses outside of allocations and of shared memory, reads of shared memory that nobody wrote or that an
// asynchronous copy has not reached, unordered accesses of two threads of which one writes (between barriers of a
// block, and between blocks of a launch), and barriers or warp operations that not all threads reach. Each finding
// names kernel, block, thread, address and source line; the thread that strays ends, the others go on.
//
// Order of memory as in the CUDA C++ Programming Guide: a block barrier orders the threads of a block, sync_warp those
// of a warp, shuffles and votes order nothing, the end of a launch orders everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace takt::simt {

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
};
struct Launch {
  Dim blocks, threads;
  std::uint32_t shared_bytes = 0;
};
// A place in a kernel's source.
struct Site {
  const char* file = nullptr;
  int line = 0;
};

// The running thread, as a kernel sees itself.
struct ThreadView {
  Dim thread, block, threads, blocks;
  std::byte* shared = nullptr;
};

enum class Exchange { kLane, kUp, kDown, kXor };
enum class Atomic { kAdd, kMin, kMax, kCompareAndSwap };

// What kernels call. Only while run() is on this thread.
const ThreadView& self();
bool sync_block(bool value, Site site);  // whether any thread of the block said true
void sync_warp(Site site);
std::uint64_t exchange(std::uint64_t bits, Exchange how, std::uint32_t argument, Site site);
std::uint32_t ballot(bool value, Site site);
std::int32_t atomic(std::int32_t* at, Atomic what, std::int32_t value, std::int32_t expected, Site site);
void copy_async(void* to, const void* from, std::uint32_t bytes, std::uint32_t valid, Site site);
void copy_async_commit();
void copy_async_wait(int groups);
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);  // to nearest even

// Runs body(closure) once for each thread of the launch, by the machine in use on this host thread, or by a plain one.
void run(const char* kernel, const Launch& launch, void (*body)(const void* closure), const void* closure);

struct Finding {
  enum class Kind {
    kOutOfBounds,
    kUninitialised,  // shared memory read before it was written
    kInFlight,       // shared memory that an asynchronous copy is on its way to
    kRace,           // between threads of a block
    kBlockRace,      // between blocks of a launch
    kDivergence,     // a barrier or warp operation that not all threads reach
    kLaunch,         // a grid that no device takes
  };
  Kind kind{};
  std::string kernel;
  Dim block, thread;
  std::uint64_t address = 0;
  std::string text;  // all of it in a sentence, with the source line
};
const char* name_of(Finding::Kind kind);

struct Options {
  std::uint64_t seed = 1;  // of the order of blocks and threads
  bool check = false;      // for kernels compiled for it (TAKT_SIMT_CHECKED)
};

// Device memory and what was found. One launch at a time.
class Machine {
 public:
  explicit Machine(const Options& options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // At a multiple of 256, bytes of `fill`, with room around it that belongs to nobody. In checking mode kernels may
  // touch this memory and no other. Lives as long as the machine or until free().
  std::byte* allocate(std::size_t bytes, const std::string& name, std::byte fill = std::byte{0});
  void free(std::byte* start);
  // Memory of somebody else that kernels may touch until free().
  void lend(std::byte* start, std::size_t bytes, const std::string& name);

  // What kernels did wrong since the last call, at most 64, one for each place in the source and kind.
  std::vector<Finding> take_findings();

  class Impl;

 private:
  friend class Use;
  std::unique_ptr<Impl> impl_;
};

// While it lives, launches of this host thread go to that machine.
class Use {
 public:
  explicit Use(Machine& machine);
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Machine::Impl* before_;
};

}  // namespace takt::simt
