// The form in which a plan calls a kernel: an id, a parameter block of fixed layout, and operands.
//
// Every kernel has two halves. The *host half* (kernels/cpu/host.h: geometry, packing, cost) is portable
// and decides everything when a plan is compiled, for any target. The *device half* is `run`: it allocates nothing,
// takes no lock, calls no library, and gives the same bytes for any number of parts.
#pragma once

#include <cstdint>
#include <span>

namespace takt::kernels {

// What a plan is compiled for. Numbered as stored in plan files: never renumber.
enum class Target : std::uint8_t { kAvx2 = 1, kAvx512 = 2, kNeon = 3, kCudaSm87 = 16, kCudaSm90 = 17 };
inline constexpr Target kTargets[] = {Target::kAvx2, Target::kAvx512, Target::kNeon, Target::kCudaSm87,
                                      Target::kCudaSm90};
const char* name_of(Target target);  // "cpu:avx2", "cuda:sm_87", ...
constexpr bool is_cuda(Target target) { return target == Target::kCudaSm87 || target == Target::kCudaSm90; }
// Channels of a block in the blocked layout: 8 on AVX2 and NEON, 16 on AVX-512, a warp's lanes on a GPU.
constexpr std::uint8_t block_of(Target target) { return is_cuda(target) ? 32 : target == Target::kAvx512 ? 16 : 8; }
// Whether this machine's CPU can run it. A reason in words when not: "this CPU has no AVX-512 (avx512f)".
const char* unsupported(Target target);
Target best_target();  // of this machine

// Start and length of one tensor of a step. For check(), which reads no data, the start may be an offset from a base at
// a multiple of 64, as the verifier of a plan knows it.
struct Operand {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

struct Kernel {
  std::uint32_t id = 0;        // stored in plans; never reused for something else
  const char* name = nullptr;  // "conv_direct_f32"
  std::uint16_t version = 0;   // of parameter block and packing: another version is another plan
  std::uint32_t params_bytes = 0;
  std::uint8_t operands = 0;  // inputs first, outputs last
  std::uint8_t outputs = 0;
  // The input that the (single) output may share memory with, start for start: run() reads each element before it
  // writes the same one. -1: none.
  std::int8_t in_place = -1;
  // Operand 0 is a condition: of operands 1 and 2 the first is read where it is true, else the second.
  bool selects = false;
  // The operand that says how many of operand i are valid, and of which dimension (reference/counted.h). operand < 0:
  // all are. Only for parameters that check() has accepted.
  struct Counted {
    int operand = -1;
    int axis = 0;
  };
  Counted (*counted)(const void* params, int operand) = nullptr;  // nullptr: the kernel knows no counts
  // The loader's semantic check: nullptr when run() with these parameters reads and writes inside operands of these
  // sizes and starts whatever the data are; otherwise what is wrong. Plans may be damaged or hostile: check() trusts
  // nothing in params and cannot overflow.
  const char* (*check)(const void* params, std::span<const Operand> operands, Target target) = nullptr;
  // Part `part` of `parts` (0 <= part < parts) of the step; all parts together do the whole, and no part reads what
  // another part of the same step writes. Operands start at multiples of their element size (a part of a concat lies
  // where it lies). nullptr where the device half was not built (another architecture), or is a
  // GPU's (kernels/cuda/table.h).
  void (*run)(const void* params, const Operand* operands, int part, int parts) = nullptr;
};

// All kernels of a target, ordered by id; on every machine, since host halves are always built.
std::span<const Kernel> kernels_of(Target target);
const Kernel* find_kernel(Target target, std::uint32_t id);

}  // namespace takt::kernels
