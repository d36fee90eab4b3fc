#include "kernels/cuda/simt/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "kernels/cuda/simt/source_line.h"

namespace takt::simt {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::size_t kPageBytes = 4096;
// Further than a kernel's index goes wrong by one row of anything that is tested.
constexpr std::size_t kRoom = 4096;
constexpr std::size_t kMostFindings = 64;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kMostShared = 163 * 1024;  // sm_87: CUDA C++ Programming Guide, compute capabilities
// What an asynchronous copy's destination holds until it lands: NaN as a float, far out of range as an index.
constexpr int kPoison = 0xff;

thread_local Machine::Impl* in_use = nullptr;

std::byte* new_stack() {
  void* const memory =
      mmap(nullptr, kStackBytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPageBytes, PROT_NONE);
  return static_cast<std::byte*>(memory) + kPageBytes;
}

std::string text_of(const Dim& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

}  // namespace

Machine::Impl*& machine_in_use() { return in_use; }

const char* name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kOutOfBounds: return "out of bounds";
    case Finding::Kind::kUninitialised: return "uninitialised";
    case Finding::Kind::kInFlight: return "in flight";
    case Finding::Kind::kRace: return "race";
    case Finding::Kind::kBlockRace: return "race between blocks";
    case Finding::Kind::kDivergence: return "divergence";
    case Finding::Kind::kLaunch: return "launch";
  }
  return "?";
}

// The first frame of every fibre.
struct Entry {
  static void run(context::transfer_t from) {
    auto* const machine = static_cast<Machine::Impl*>(from.data);
    machine->scheduler_ = from.fctx;
    machine->body_(machine->closure_);
    machine->land(*machine->current_, machine->current_->copies.size());
    machine->leave(State::kDone);
  }
};

Machine::Impl::Impl(const Options& options) : options_(options), random_state_(options.seed) {
  // For any block, so that launches without checks allocate nothing.
  fibres_.reserve(kMostThreads);
  stacks_.reserve(kMostThreads);
  order_.reserve(kMostThreads);
  warp_barriers_.reserve(kMostThreads / 32);
  shared_.reserve(kMostShared + 2 * kRoom);
}

Machine::Impl::~Impl() {
  for (std::byte* const stack : stacks_) munmap(stack - kPageBytes, kStackBytes + kPageBytes);
  for (auto& [start, allocation] : allocations_) std::free(allocation.raw);
}

// splitmix64.
std::uint64_t Machine::Impl::random() {
  std::uint64_t z = random_state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

void Machine::Impl::run(const char* kernel, const Launch& launch, void (*body)(const void*), const void* closure) {
  kernel_ = kernel;
  launch_ = launch;
  body_ = body;
  closure_ = closure;
  const std::uint64_t threads = std::uint64_t{launch.threads.x} * launch.threads.y * launch.threads.z;
  const std::uint64_t blocks = std::uint64_t{launch.blocks.x} * launch.blocks.y * launch.blocks.z;
  if (threads == 0 || threads > kMostThreads || threads % 32 != 0 || blocks == 0 || launch.shared_bytes > kMostShared ||
      launch.blocks.x > 0x7fffffffU || launch.blocks.y > 65535 || launch.blocks.z > 65535) {
    find(Finding::Kind::kLaunch, nullptr,
         "is launched with blocks " + text_of(launch.blocks) + " of threads " + text_of(launch.threads) + " and " +
             std::to_string(launch.shared_bytes) + " bytes of shared memory",
         {}, nullptr);
    return;
  }
  while (stacks_.size() < threads) stacks_.push_back(new_stack());
  fibres_.resize(threads);
  warp_barriers_.assign(threads / 32, 0);
  shared_.resize(launch.shared_bytes + 2 * kRoom);
  shared_start_ = shared_.data() + kRoom;
  shared_start_ += (256 - reinterpret_cast<std::uintptr_t>(shared_start_) % 256) % 256 - 256;
  if (options_.check) {
    shared_shadow_.assign(launch.shared_bytes, {});
    in_flight_.assign(launch.shared_bytes, 0);
  }
  first_serial_ = block_serial_ + 1;
  // Blocks in an order that visits all: steps of a number without a common divisor, from a random start.
  std::uint64_t step = blocks > 2 ? random() % blocks : 1;
  while (std::gcd(step, blocks) != 1) step = step % blocks + 1;
  std::uint64_t block = random() % blocks;
  for (std::uint64_t i = 0; i < blocks; ++i, block = (block + step) % blocks) {
    start_block(block);
    run_block();
  }
}

void Machine::Impl::start_block(std::uint64_t number) {
  ++block_serial_;
  block_barriers_ = 0;
  std::fill(warp_barriers_.begin(), warp_barriers_.end(), std::uint16_t{0});
  // Shared memory holds what another kernel left there.
  std::memset(shared_start_, kPoison, launch_.shared_bytes);
  const Dim block{static_cast<std::uint32_t>(number % launch_.blocks.x),
                  static_cast<std::uint32_t>(number / launch_.blocks.x % launch_.blocks.y),
                  static_cast<std::uint32_t>(number / launch_.blocks.x / launch_.blocks.y)};
  for (std::size_t i = 0; i < fibres_.size(); ++i) {
    Fibre& fibre = fibres_[i];
    fibre.state = State::kRunnable;
    fibre.stack = stacks_[i];
    fibre.context = context::make_fcontext(fibre.stack + kStackBytes, kStackBytes, Entry::run);
    fibre.index = static_cast<std::uint16_t>(i);
    fibre.copies.clear();
    fibre.groups.clear();
    const auto t = static_cast<std::uint32_t>(i);
    fibre.view = {
        {t % launch_.threads.x, t / launch_.threads.x % launch_.threads.y, t / launch_.threads.x / launch_.threads.y},
        block,
        launch_.threads,
        launch_.blocks,
        shared_start_};
  }
}

void Machine::Impl::run_block() {
  for (;;) {
    order_.clear();
    for (const Fibre& fibre : fibres_) {
      if (fibre.state == State::kRunnable) order_.push_back(fibre.index);
    }
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
    for (const std::uint16_t index : order_) resume(fibres_[index]);
    bool goes_on = release_barrier();
    for (std::uint32_t warp = 0; warp < warp_barriers_.size(); ++warp) goes_on = release_warp(warp) || goes_on;
    if (!goes_on) break;
  }
  stray();
}

void Machine::Impl::resume(Fibre& fibre) {
  current_ = &fibre;
  const context::transfer_t back = context::jump_fcontext(fibre.context, this);
  fibre.context = back.fctx;
  current_ = nullptr;
}

void Machine::Impl::yield() {
  const context::transfer_t back = context::jump_fcontext(scheduler_, nullptr);
  scheduler_ = back.fctx;
}

// A fibre that ends, by returning or because it may not go on, is never resumed: kernels own nothing that would have to
// be given back.
void Machine::Impl::leave(State state) {
  current_->state = state;
  context::jump_fcontext(scheduler_, nullptr);
  std::abort();
}

bool Machine::Impl::sync_block(bool value, Site site) {
  Fibre& me = *current_;
  me.vote = value;
  me.site = site;
  me.state = State::kAtBarrier;
  yield();
  return me.bits != 0;
}

bool Machine::Impl::release_barrier() {
  bool any = false;
  Fibre* first = nullptr;
  for (Fibre& fibre : fibres_) {
    if (fibre.state == State::kStrayed) continue;
    if (fibre.state != State::kAtBarrier) return false;
    any = any || fibre.vote;
    if (first == nullptr) first = &fibre;
  }
  if (first == nullptr) return false;
  for (Fibre& fibre : fibres_) {
    if (fibre.state == State::kStrayed) continue;
    if (fibre.site.line != first->site.line) {
      current_ = &fibre;
      find(Finding::Kind::kDivergence, nullptr,
           "waits at a barrier, thread " + text_of(first->view.thread) + " at another in line " +
               std::to_string(first->site.line),
           fibre.site, nullptr);
      current_ = nullptr;
    }
    fibre.state = State::kRunnable;
    fibre.bits = any ? 1 : 0;
  }
  ++block_barriers_;
  return true;
}

std::uint64_t Machine::Impl::warp(WarpOperation what, std::uint64_t bits, std::uint32_t argument, Site site) {
  Fibre& me = *current_;
  me.operation = what;
  me.bits = bits;
  me.argument = argument;
  me.site = site;
  me.state = State::kAtWarp;
  yield();
  return me.bits;
}

bool Machine::Impl::release_warp(std::uint32_t warp) {
  const std::span<Fibre> lanes(fibres_.data() + 32 * warp, 32);
  const Fibre* first = nullptr;
  std::uint64_t given[32];
  std::uint32_t votes = 0;
  for (std::uint32_t l = 0; l < 32; ++l) {
    if (lanes[l].state == State::kStrayed) continue;
    if (lanes[l].state != State::kAtWarp) return false;
    if (first == nullptr) first = &lanes[l];
    // Left to stray(), which names both.
    if (lanes[l].operation != first->operation || lanes[l].site.line != first->site.line) return false;
    given[l] = lanes[l].bits;
    votes |= (given[l] != 0 ? 1U : 0U) << l;
  }
  if (first == nullptr) return false;
  const WarpOperation operation = first->operation;
  for (std::uint32_t l = 0; l < 32; ++l) {
    if (lanes[l].state == State::kStrayed) continue;
    const std::uint32_t argument = lanes[l].argument;
    std::uint32_t from = l;
    switch (operation) {
      case WarpOperation::kLane: from = argument % 32; break;
      case WarpOperation::kUp: from = l >= argument ? l - argument : l; break;
      case WarpOperation::kDown: from = argument < 32 - l ? l + argument : l; break;
      case WarpOperation::kXor: from = (l ^ argument) < 32 ? l ^ argument : l; break;
      case WarpOperation::kSync:
      case WarpOperation::kBallot: break;
    }
    // What a lane gets of one that has strayed is its own, since there is nothing better.
    if (lanes[from].state == State::kStrayed) from = l;
    lanes[l].bits = operation == WarpOperation::kBallot ? votes : given[from];
  }
  for (Fibre& lane : lanes) {
    if (lane.state == State::kAtWarp) lane.state = State::kRunnable;
  }
  if (operation == WarpOperation::kSync) ++warp_barriers_[warp];
  return true;
}

// Nobody can go on: some wait for others that wait elsewhere or have ended.
void Machine::Impl::stray() {
  for (Fibre& fibre : fibres_) {
    if (fibre.state != State::kAtBarrier && fibre.state != State::kAtWarp) continue;
    const bool barrier = fibre.state == State::kAtBarrier;
    const auto other = std::find_if(fibres_.begin(), fibres_.end(), [&](const Fibre& f) {
      const bool same = f.state == fibre.state && f.operation == fibre.operation && f.site.line == fibre.site.line;
      return f.state != State::kStrayed && !same && (barrier || f.index / 32 == fibre.index / 32);
    });
    std::string what = barrier ? "waits at a barrier" : "waits at a warp operation";
    if (other != fibres_.end()) {
      what += " for thread " + text_of(other->view.thread);
      what += other->state == State::kDone ? ", which has ended"
                                           : ", which waits in line " + std::to_string(other->site.line);
    }
    current_ = &fibre;
    find(Finding::Kind::kDivergence, nullptr, what, fibre.site, nullptr);
    current_ = nullptr;
  }
}

std::int32_t Machine::Impl::atomic(std::int32_t* at, Atomic what, std::int32_t value, std::int32_t expected,
                                   Site site) {
  if (judges()) access(at, sizeof(*at), true, true, site, nullptr);
  const std::int32_t before = *at;
  switch (what) {
    case Atomic::kAdd:
      *at = static_cast<std::int32_t>(static_cast<std::uint32_t>(before) + static_cast<std::uint32_t>(value));
      break;
    case Atomic::kMin: *at = std::min(before, value); break;
    case Atomic::kMax: *at = std::max(before, value); break;
    case Atomic::kCompareAndSwap: *at = before == expected ? value : before; break;
  }
  return before;
}

void Machine::Impl::copy_async(const AsyncCopy& copy) {
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from)) % copy.bytes == 0;
  const bool to_shared = copy.to >= shared_start_ && copy.to + copy.bytes <= shared_start_ + launch_.shared_bytes;
  if (!aligned || !to_shared || copy.valid > copy.bytes) {
    find(Finding::Kind::kOutOfBounds, copy.to,
         std::string("starts an asynchronous copy ") + (!aligned ? "between addresses that are no multiple of its size"
                                                        : to_shared ? "of more bytes than its size"
                                                                    : "to what is no shared memory of its block"),
         copy.site, nullptr);
    leave(State::kStrayed);
  }
  if (judges()) {
    if (copy.valid > 0) access(copy.from, copy.valid, false, false, copy.site, nullptr);
    access(copy.to, copy.bytes, true, false, copy.site, nullptr);
    std::memset(in_flight_.data() + (copy.to - shared_start_), 1, copy.bytes);
  }
  std::memset(copy.to, kPoison, copy.bytes);
  current_->copies.push_back(copy);
}

void Machine::Impl::copy_async_commit() {
  std::size_t before = 0;
  for (const std::size_t n : current_->groups) before += n;
  current_->groups.push_back(current_->copies.size() - before);
}

void Machine::Impl::copy_async_wait(std::size_t groups) {
  std::size_t landed = 0;
  std::size_t ended = 0;
  std::vector<std::size_t>& all = current_->groups;
  while (all.size() - ended > groups) landed += all[ended++];
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(ended));
  land(*current_, landed);
}

void Machine::Impl::land(Fibre& fibre, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const AsyncCopy& copy = fibre.copies[i];
    std::memcpy(copy.to, copy.from, copy.valid);
    std::memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
    if (!options_.check) continue;
    const auto at = static_cast<std::size_t>(copy.to - shared_start_);
    std::memset(in_flight_.data() + at, 0, copy.bytes);
    for (std::size_t b = at; b < at + copy.bytes; ++b) shared_shadow_[b].write = stamp(false);
  }
  fibre.copies.erase(fibre.copies.begin(), fibre.copies.begin() + static_cast<std::ptrdiff_t>(count));
}

Stamp Machine::Impl::stamp(bool atomic) const {
  return {block_serial_, block_barriers_, warp_barriers_[current_->index / 32U], current_->index, atomic};
}

// Whether nothing orders what was done then and what is done now.
bool Machine::Impl::conflicts(const Stamp& earlier, const Stamp& now) const {
  if (earlier.block < first_serial_) return false;  // nobody, or an earlier launch
  if (earlier.thread == kSeveralBlocks || earlier.block != now.block) return !(earlier.atomic && now.atomic);
  if (earlier.thread == now.thread || (earlier.atomic && now.atomic)) return false;
  if (earlier.block_barriers != now.block_barriers) return false;
  if (earlier.thread >= kSeveral) return true;
  const int warp = earlier.thread >= kSeveralOfWarp ? earlier.thread - kSeveralOfWarp : earlier.thread / 32;
  return warp != now.thread / 32 || earlier.warp_barriers == now.warp_barriers;
}

void Machine::Impl::judge(std::span<Shadow> shadow, bool shared, bool write, bool atomic, const char* where,
                          const void* address, Site site, const void* pc) {
  const Stamp now = stamp(atomic);
  for (Shadow& byte : shadow) {
    if (shared && byte.write.block != now.block) byte.write = {};
    if (shared && byte.read.block != now.block) byte.read = {};
    const bool on_write = conflicts(byte.write, now);
    const bool on_read = write && conflicts(byte.read, now);
    if (on_write || on_read) {
      const Stamp& other = on_write ? byte.write : byte.read;
      const bool blocks = other.thread == kSeveralBlocks || other.block != now.block;
      std::string text = std::string(write ? "writes " : "reads ") + where + ", which ";
      text += blocks                          ? "another block"
              : other.thread < kSeveralOfWarp ? "thread number " + std::to_string(other.thread)
                                              : "other threads";
      text += on_write ? " wrote" : " read";
      text += blocks ? " in the same launch" : " with no barrier between";
      find(blocks ? Finding::Kind::kBlockRace : Finding::Kind::kRace, address, text, site, pc);
    }
    if (write) {
      byte.write = now;
      continue;
    }
    Stamp& read = byte.read;
    const int warp = now.thread / 32;
    const bool same_warp =
        read.thread < kSeveralOfWarp ? read.thread / 32 == warp : read.thread == kSeveralOfWarp + warp;
    // Readers before a barrier that this one has passed with them are ordered before all that it is ordered before.
    const bool passed = read.block == now.block && (read.block_barriers != now.block_barriers ||
                                                    (same_warp && read.warp_barriers != now.warp_barriers));
    if (read.block < first_serial_ || passed) {
      read = now;
    } else if (read.thread == kSeveralBlocks || read.block != now.block) {
      read.thread = kSeveralBlocks;
      read.block = now.block;
    } else if (read.thread != now.thread) {
      read = now;
      read.thread = same_warp ? static_cast<std::uint16_t>(kSeveralOfWarp + warp) : kSeveral;
    }
  }
}

void Machine::Impl::access(const void* address, std::size_t bytes, bool write, bool atomic, Site site, const void* pc) {
  const auto* const at = static_cast<const std::byte*>(address);
  // Its own variables.
  if (at >= current_->stack && at < current_->stack + kStackBytes) return;
  const std::string verb = write ? "writes " : "reads ";
  if (at >= shared_start_ && at + bytes <= shared_start_ + launch_.shared_bytes) {
    const auto offset = static_cast<std::size_t>(at - shared_start_);
    const std::span<Shadow> shadow(shared_shadow_.data() + offset, bytes);
    for (std::size_t b = 0; b < bytes; ++b) {
      if (in_flight_[offset + b] != 0) {
        find(Finding::Kind::kInFlight, at, verb + "shared memory that an asynchronous copy has not reached", site, pc);
        break;
      }
      if ((!write || atomic) && shadow[b].write.block != block_serial_) {
        find(Finding::Kind::kUninitialised, at, "reads shared memory that nobody has written", site, pc);
        break;
      }
    }
    judge(shadow, true, write, atomic, "shared memory", at, site, pc);
    return;
  }
  auto next = allocations_.upper_bound(at);
  if (next != allocations_.begin()) {
    Allocation& allocation = std::prev(next)->second;
    const auto offset = static_cast<std::size_t>(at - allocation.start);
    if (offset + bytes <= allocation.bytes) {
      judge(std::span(allocation.shadow).subspan(offset, bytes), false, write, atomic, allocation.name.c_str(), at,
            site, pc);
      return;
    }
  }
  if (!write && in_program(address)) return;  // constant tables
  std::string text = verb + std::to_string(bytes) + " bytes ";
  const auto near = [&](const std::byte* start, std::size_t size, const std::string& name) {
    if (at + bytes > start + size && at < start + size + kRoom) {
      text += std::to_string(at + bytes - (start + size)) + " bytes behind the end of ";
    } else if (at < start && at + kRoom > start) {
      text += std::to_string(start - at) + " bytes before the start of ";
    } else {
      return false;
    }
    text += name + " (" + std::to_string(size) + " bytes)";
    return true;
  };
  bool told = near(shared_start_, launch_.shared_bytes, "shared memory");
  if (!told && next != allocations_.begin()) {
    const Allocation& before = std::prev(next)->second;
    told = near(before.start, before.bytes, before.name);
  }
  if (!told && next != allocations_.end()) told = near(next->second.start, next->second.bytes, next->second.name);
  if (!told) text += "in memory that is not the device's";
  find(Finding::Kind::kOutOfBounds, at, text, site, pc);
  leave(State::kStrayed);
}

void Machine::Impl::find(Finding::Kind kind, const void* address, const std::string& text, Site site, const void* pc) {
  if (findings_.size() >= kMostFindings || !known_.emplace(kind, kernel_, pc, site.line).second) return;
  std::string where;
  if (site.file != nullptr) {
    where = std::string(site.file);
    where = where.substr(where.rfind('/') + 1) + ":" + std::to_string(site.line);
  } else if (pc != nullptr) {
    where = source_line(pc);
  }
  Finding& finding = findings_.emplace_back();
  finding.kind = kind;
  finding.kernel = kernel_;
  finding.address = reinterpret_cast<std::uintptr_t>(address);
  finding.text = finding.kernel;
  if (current_ != nullptr) {
    finding.block = current_->view.block;
    finding.thread = current_->view.thread;
    finding.text += ": block " + text_of(finding.block) + " thread " + text_of(finding.thread);
  }
  finding.text += " " + text;
  if (!where.empty()) finding.text += ", " + where;
}

Machine::Machine(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Machine::~Machine() = default;

std::byte* Machine::allocate(std::size_t bytes, const std::string& name, std::byte fill) {
  constexpr std::size_t kAlign = 256;
  static_assert(kRoom % kAlign == 0);
  Allocation allocation;
  allocation.raw_bytes = (bytes + 2 * kRoom + kAlign - 1) / kAlign * kAlign;
  allocation.raw = static_cast<std::byte*>(std::aligned_alloc(kAlign, allocation.raw_bytes));
  if (allocation.raw == nullptr) throw std::bad_alloc();
  std::memset(allocation.raw, kPoison, allocation.raw_bytes);
  allocation.start = allocation.raw + kRoom;
  allocation.bytes = bytes;
  allocation.name = name;
  std::memset(allocation.start, static_cast<int>(fill), bytes);
  if (impl_->options_.check) allocation.shadow.resize(bytes);
  std::byte* const start = allocation.start;
  impl_->allocations_.emplace(start, std::move(allocation));
  return start;
}

void Machine::lend(std::byte* start, std::size_t bytes, const std::string& name) {
  Allocation allocation;
  allocation.start = start;
  allocation.bytes = bytes;
  allocation.name = name;
  if (impl_->options_.check) allocation.shadow.resize(bytes);
  impl_->allocations_.insert_or_assign(start, std::move(allocation));
}

void Machine::free(std::byte* start) {
  const auto found = impl_->allocations_.find(start);
  if (found == impl_->allocations_.end()) return;
  std::free(found->second.raw);
  impl_->allocations_.erase(found);
}

std::vector<Finding> Machine::take_findings() {
  impl_->known_.clear();
  return std::exchange(impl_->findings_, {});
}

Use::Use(Machine& machine) : before_(std::exchange(in_use, machine.impl_.get())) {}
Use::~Use() { in_use = before_; }

const ThreadView& self() { return in_use->current_->view; }
bool sync_block(bool value, Site site) { return in_use->sync_block(value, site); }
void sync_warp(Site site) { in_use->warp(WarpOperation::kSync, 0, 0, site); }
std::uint64_t exchange(std::uint64_t bits, Exchange how, std::uint32_t argument, Site site) {
  constexpr WarpOperation kOperations[] = {WarpOperation::kLane, WarpOperation::kUp, WarpOperation::kDown,
                                           WarpOperation::kXor};
  return in_use->warp(kOperations[static_cast<int>(how)], bits, argument, site);
}
std::uint32_t ballot(bool value, Site site) {
  return static_cast<std::uint32_t>(in_use->warp(WarpOperation::kBallot, value ? 1 : 0, 0, site));
}
std::int32_t atomic(std::int32_t* at, Atomic what, std::int32_t value, std::int32_t expected, Site site) {
  return in_use->atomic(at, what, value, expected, site);
}
void copy_async(void* to, const void* from, std::uint32_t bytes, std::uint32_t valid, Site site) {
  in_use->copy_async({static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, valid, site});
}
void copy_async_commit() { in_use->copy_async_commit(); }
void copy_async_wait(int groups) { in_use->copy_async_wait(static_cast<std::size_t>(groups)); }

void run(const char* kernel, const Launch& launch, void (*body)(const void*), const void* closure) {
  if (in_use != nullptr) {
    in_use->run(kernel, launch, body, closure);
    return;
  }
  Machine plain;
  const Use use(plain);
  in_use->run(kernel, launch, body, closure);
}

}  // namespace takt::simt
