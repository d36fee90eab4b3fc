// A plan: a compiled graph in a file, with packed weights, relative memory offsets and the work of every step, and
// without any time. docs/plan_format.md is the specification of the bytes.
//
// The description below is plain data; `write` makes the file's bytes from it, `Plan` is what a loader has verified.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/tensor.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"

namespace takt::plan {

inline constexpr std::uint32_t kFormatVersion = 2;
// Roots of the arena, sections and bound buffers start at multiples of this.
inline constexpr std::uint64_t kAlignment = 64;
inline constexpr std::uint32_t kNone = 0xffffffff;

// Where a tensor lies. Numbered as stored: never renumber.
enum class Storage : std::uint8_t {
  kArena = 1,
  kInput = 2,          // slot = index of the input, bound by the caller
  kOutput = 3,         // slot = index of the output, bound by the caller
  kWeights = 4,        // slot = section of the file
  kStatePrevious = 5,  // slot = state; the half published last
  kStateNext = 6,      // slot = state; the half that this job writes
};
const char* name_of(Storage storage);

struct Tensor {
  std::string name;  // of the model's value
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
  kernels::Layout layout;
  Storage storage = Storage::kArena;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;  // in the arena, buffer or section
  std::uint64_t bytes = 0;
  // The tensor whose bytes contain these: a reshape of it, or a part that was placed where a concat needs it.
  std::uint32_t view_of = kNone;
  // First and last step that touch the tensor or a tensor that shares its bytes by views; kNone: none does.
  std::uint32_t first_step = kNone;
  std::uint32_t last_step = kNone;
  // A tensor of one i32: so many of the extent `count_axis` are valid, and lie together at the start, row-major as if
  // the extent were that number. What follows is never read and belongs to no digest. kNone: all are valid.
  std::uint32_t count = kNone;
  std::uint8_t count_axis = 0;
};

struct Step {
  std::uint32_t kernel = 0;
  std::uint16_t version = 0;  // of the kernel's parameters and packing
  std::vector<std::byte> params;
  std::vector<std::uint32_t> operands;  // tensors: inputs first, outputs last
  std::uint64_t flops = 0;              // at capacity
  std::uint64_t bytes_moved = 0;        // operands read and written once
  std::vector<std::string> nodes;       // of the model; empty for a reorder or copy that the compiler added
  std::uint32_t guard = kNone;          // kNone: runs always
};

// Steps of a branch or an iteration run only where the condition has this value, and the parent's too.
struct Guard {
  std::uint32_t condition = kNone;  // a tensor of one bool
  std::uint32_t parent = kNone;     // a guard with a smaller index
  bool when = true;
};

// A tensor that outlives a job, in two halves of these bytes.
struct State {
  std::string name;
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
  std::uint64_t bytes = 0;
  std::uint32_t initial = kNone;  // section with the first value; kNone: zeros
};

// Raw bytes behind the metadata, at a multiple of kAlignment.
struct Section {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  // CRC-32C
};

// What is known of the arena's size. Numbered as stored.
enum class Proof : std::uint8_t {
  kOpen = 0,      // above the lower bound, and nobody knows whether less is possible
  kOptimal = 1,   // equal to the lower bound
  kSearched = 2,  // above the lower bound, and an exhaustive search found that less is impossible
};
const char* name_of(Proof proof);

struct Statistics {
  std::uint32_t operators_before = 0;  // as imported
  std::uint32_t operators_after = 0;   // after the passes
  std::uint32_t views = 0;             // tensors that needed no step: reshapes
  std::uint32_t placements = 0;        // parts of concats that are written in place
  std::uint32_t in_place = 0;          // steps that write over an input that dies
  std::uint32_t reorders = 0;          // steps that only change a layout
  std::uint32_t copies = 0;            // steps that only move elements
};

struct Description {
  std::string name;
  kernels::Target target = kernels::Target::kAvx2;
  Digest source;    // of the ONNX bytes, or zero
  Digest contract;  // of the model's contract (its YAML), or zero
  Statistics statistics;
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  std::vector<Guard> guards;
  std::vector<State> states;
  std::vector<Section> sections;       // offsets and checksums are set by write
  std::vector<std::uint32_t> inputs;   // tensors, by slot
  std::vector<std::uint32_t> outputs;  // tensors, by slot
  std::uint64_t arena_bytes = 0;
  std::uint64_t lower_bound = 0;  // most bytes of arena tensors alive in one step
  Proof proof = Proof::kOpen;
  Digest state_schema;               // of this plan; set by write
  std::vector<std::uint16_t> parts;  // numbers of workers that the plan admits, ascending
};

// The file's bytes: the same description and sections give the same bytes. Fails with kInternal when something does
// not fit the format (a section count that differs, sizes beyond 64 bits).
Result<std::vector<std::byte>> write(const Description& description, std::span<const std::vector<std::byte>> sections);

// A plan that may be run: every checksum, size, offset, lifetime and kernel parameter has been verified, also that each
// step reads exactly the tensors that earlier steps wrote (docs/plan_format.md, "What a loader verifies").
// Immutable, shared by all sessions; weights are mapped privately from the file and read ahead.
class Plan {
 public:
  // kInput, naming the byte offset or step and what to do: truncated, damaged, of another format, kernel or packing
  // version, or inconsistent. A plan for another target loads (it can be shown); a session refuses it.
  static Result<std::shared_ptr<const Plan>> load(const std::string& path);
  // The same from memory; the bytes are copied.
  static Result<std::shared_ptr<const Plan>> parse(std::span<const std::byte> bytes);

  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  [[nodiscard]] const Description& description() const { return description_; }
  [[nodiscard]] const kernels::Kernel& kernel(std::size_t step) const { return *kernels_[step]; }
  [[nodiscard]] std::span<const std::byte> section(std::size_t index) const;
  [[nodiscard]] std::uint64_t file_bytes() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }  // the whole file
  [[nodiscard]] Digest digest() const { return digest_; }                    // of the file's bytes; the key of budgets
  [[nodiscard]] bool admits(int parts) const;
  // Slot of an input or output by name.
  [[nodiscard]] std::optional<std::size_t> find_input(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_output(std::string_view name) const;

 private:
  Plan() = default;
  static Result<std::shared_ptr<const Plan>> verified(std::shared_ptr<Plan> plan);

  std::span<const std::byte> bytes_;
  void* mapping_ = nullptr;               // of a loaded file
  std::unique_ptr<std::byte[]> storage_;  // of a parsed one, with room to align
  Description description_;
  std::vector<const kernels::Kernel*> kernels_;
  Digest digest_;
};

// Names, types and shapes of the state tensors, in order; not their first values. Plans with equal schemas may go on
// with each other's state: variants of a stage, a swapped plan.
Digest state_schema(const Description& description);

// Of all sections: what stays in memory as long as anybody uses the plan.
std::uint64_t weight_bytes(const Description& description);

// What a run costs at most, from what each step costs: of branches that exclude each other the dearer one counts.
// `cost` has one entry for each step.
std::uint64_t dearest(const Description& description, std::span<const std::uint64_t> cost);

// The semantic part of the verification, over a description whose sections are known to lie in the file. Shares no code
// with the compiler. `kernels` receives the kernel of every step.
Status verify(const Description& description, std::vector<const kernels::Kernel*>* kernels = nullptr);

}  // namespace takt::plan
