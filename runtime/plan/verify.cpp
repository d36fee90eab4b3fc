// The semantic verification of a plan. It rebuilds from the steps alone what the compiler claims: sizes, who reads
// what, lifetimes, the lower bound. Nothing here is shared with the compiler.

#include <algorithm>
#include <map>

#include "runtime/base/sizes.h"
#include "runtime/plan/plan.h"

namespace takt::plan {

const char* name_of(Storage storage) {
  switch (storage) {
    case Storage::kArena: return "arena";
    case Storage::kInput: return "input";
    case Storage::kOutput: return "output";
    case Storage::kWeights: return "weights";
    case Storage::kStatePrevious: return "state";
    case Storage::kStateNext: return "next state";
  }
  return "?";
}

const char* name_of(Proof proof) {
  switch (proof) {
    case Proof::kOpen: return "open";
    case Proof::kOptimal: return "optimal";
    case Proof::kSearched: return "optimal (searched)";
  }
  return "?";
}

namespace {

constexpr std::uint64_t kMaxElements = 0x7fffffff;
constexpr std::uint64_t kMaxArena = std::uint64_t{1} << 40;
constexpr std::size_t kMaxChain = 16;  // views of views
constexpr std::size_t kMaxDepth = 32;  // guards in guards

class Verifier {
 public:
  explicit Verifier(const Description& plan) : plan_(plan) {}

  Status run(std::vector<const kernels::Kernel*>* kernels) {
    TAKT_RETURN_IF_ERROR(header());
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) TAKT_RETURN_IF_ERROR(tensor(i));
    TAKT_RETURN_IF_ERROR(roots());
    TAKT_RETURN_IF_ERROR(interface());
    TAKT_RETURN_IF_ERROR(guards());
    groups_.resize(plan_.tensors.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i] = root_[i];
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) TAKT_RETURN_IF_ERROR(step(i));
    TAKT_RETURN_IF_ERROR(complete());
    TAKT_RETURN_IF_ERROR(lifetimes());
    if (kernels != nullptr) *kernels = std::move(kernels_);
    return {};
  }

 private:
  // Which tensor wrote the bytes [key, end) last, and under which guard.
  struct Piece {
    std::uint64_t end = 0;
    std::uint32_t owner = 0;
    std::uint32_t guard = kNone;
  };
  using Space = std::map<std::uint64_t, Piece>;

  static tl::unexpected<Error> wrong(const std::string& what) {
    return fail(Code::kInput, "the plan is inconsistent: " + what + "; compile the model again");
  }
  [[nodiscard]] std::string name(std::uint32_t tensor) const {
    return "tensor " + std::to_string(tensor) + " ('" + plan_.tensors[tensor].name + "')";
  }
  [[nodiscard]] std::string step_name(std::size_t step, const kernels::Kernel* kernel) const {
    return "step " + std::to_string(step) + (kernel != nullptr ? std::string(" (") + kernel->name + ")" : "");
  }

  Status header() const {
    if (!known(plan_.target)) return wrong("target " + std::to_string(static_cast<int>(plan_.target)) + " is unknown");
    if (plan_.parts.empty() || plan_.parts.front() != 1 || plan_.parts.size() > 64 || plan_.parts.back() > 64 ||
        std::adjacent_find(plan_.parts.begin(), plan_.parts.end(), std::greater_equal<>()) != plan_.parts.end()) {
      return wrong("the numbers of workers it admits are no ascending list that begins with 1");
    }
    if (plan_.arena_bytes > kMaxArena) return wrong("its arena has " + std::to_string(plan_.arena_bytes) + " bytes");
    if (plan_.arena_bytes % kAlignment != 0) {
      return wrong("its arena of " + std::to_string(plan_.arena_bytes) + " bytes does not end at a multiple of 64");
    }
    if (plan_.proof > Proof::kSearched) return wrong("its proof status is unknown");
    if (plan_.steps.size() >= kNone || plan_.tensors.size() >= kNone) return wrong("it has too many parts");
    if (plan_.state_schema != state_schema(plan_)) return wrong("its state has another schema than it says");
    for (const State& state : plan_.states) {
      const auto bytes = bytes_of(state.dtype, state.shape, {});
      if (!bytes || *bytes != state.bytes) return wrong("state '" + state.name + "' has not the size of its type");
      if (state.initial == kNone) continue;
      if (state.initial >= plan_.sections.size() || plan_.sections[state.initial].bytes != state.bytes) {
        return wrong("state '" + state.name + "' begins with a section that has not its size");
      }
    }
    return {};
  }

  static bool known(kernels::Target target) { return !kernels::kernels_of(target).empty(); }

  // Checked counterpart of kernels::bytes_of.
  static std::optional<std::uint64_t> bytes_of(kernels::DType dtype, const kernels::Shape& shape,
                                               kernels::Layout layout) {
    const std::uint64_t size = kernels::size_of(dtype);
    if (size == 0) return std::nullopt;
    std::uint64_t elements = 1;
    for (int d = 0; d < shape.rank; ++d) {
      if (shape.dims[d] < 1 || shape.dims[d] > static_cast<std::int64_t>(kMaxElements)) return std::nullopt;
      auto extent = static_cast<std::uint64_t>(shape.dims[d]);
      if (layout.block != 0 && d == 1) extent = round_up(extent, layout.block);
      elements *= extent;  // both factors stay below 2^32
      if (elements > kMaxElements) return std::nullopt;
    }
    return elements * size;
  }

  Status tensor(std::size_t index) const {
    const Tensor& t = plan_.tensors[index];
    const std::string who = name(static_cast<std::uint32_t>(index));
    const bool blocked = t.layout.block != 0;
    const bool held =
        t.dtype == kernels::DType::kF32 || (t.dtype == kernels::DType::kF16 && kernels::is_cuda(plan_.target));
    if (blocked && (t.layout.block != kernels::block_of(plan_.target) || t.shape.rank != 4 || !held)) {
      return wrong(who + " has a blocked layout that its target, type or rank does not have");
    }
    const auto bytes = bytes_of(t.dtype, t.shape, t.layout);
    if (!bytes || *bytes != t.bytes) {
      return wrong(who + " has " + std::to_string(t.bytes) +
                   " bytes, which is not what its type, shape and layout say");
    }
    std::uint64_t room = 0;
    switch (t.storage) {
      case Storage::kArena: room = t.slot == 0 ? plan_.arena_bytes : 0; break;
      case Storage::kInput: room = slot_bytes(plan_.inputs, t.slot); break;
      case Storage::kOutput: room = slot_bytes(plan_.outputs, t.slot); break;
      case Storage::kWeights: room = t.slot < plan_.sections.size() ? plan_.sections[t.slot].bytes : 0; break;
      case Storage::kStatePrevious:
      case Storage::kStateNext: room = t.slot < plan_.states.size() ? plan_.states[t.slot].bytes : 0; break;
      default: return wrong(who + " has an unknown storage");
    }
    if (t.offset > room || t.bytes > room - t.offset) {
      return wrong(who + " leaves its " + name_of(t.storage) + " " + std::to_string(t.slot) + " of " +
                   std::to_string(room) + " bytes");
    }
    if (t.count != kNone) {
      const Tensor* const count = t.count < plan_.tensors.size() ? &plan_.tensors[t.count] : nullptr;
      if (count == nullptr || count->dtype != kernels::DType::kI32 || count->bytes != 4 || count->count != kNone ||
          count->layout.block != 0 || t.count_axis >= t.shape.rank || blocked) {
        return wrong(who + " has a count that is no tensor of one i32, or a dimension that it has not");
      }
    } else if (t.count_axis != 0) {
      return wrong(who + " has a counted dimension and no count");
    }
    const std::uint64_t unit = t.view_of == kNone ? kAlignment
                               : blocked          ? kernels::size_of(t.dtype) * t.layout.block
                                                  : kernels::size_of(t.dtype);
    if (t.offset % unit != 0) return wrong(who + " does not start at a multiple of " + std::to_string(unit) + " bytes");
    return {};
  }

  [[nodiscard]] std::uint64_t slot_bytes(const std::vector<std::uint32_t>& slots, std::uint32_t slot) const {
    return slot < slots.size() && slots[slot] < plan_.tensors.size() ? plan_.tensors[slots[slot]].bytes : 0;
  }

  // Every view lies inside its parent; chains end.
  Status roots() {
    root_.resize(plan_.tensors.size());
    read_.resize(plan_.tensors.size(), false);
    life_.resize(plan_.tensors.size());
    for (std::uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      std::uint32_t at = i;
      for (std::size_t depth = 0; plan_.tensors[at].view_of != kNone; ++depth) {
        const Tensor& child = plan_.tensors[at];
        if (child.view_of >= plan_.tensors.size() || depth == kMaxChain) {
          return wrong(name(i) + " is a view without an end");
        }
        const Tensor& parent = plan_.tensors[child.view_of];
        if (parent.storage != child.storage || parent.slot != child.slot || child.offset < parent.offset ||
            child.offset + child.bytes > parent.offset + parent.bytes) {
          return wrong(name(at) + " is no part of " + name(child.view_of) + ", of which it is a view");
        }
        if (parent.count != child.count) {
          return wrong(name(at) + " is a view of " + name(child.view_of) + " and has another count");
        }
        at = child.view_of;
      }
      root_[i] = at;
    }
    return {};
  }

  Status interface() const {
    for (const auto& [slots, storage] :
         {std::pair{&plan_.inputs, Storage::kInput}, {&plan_.outputs, Storage::kOutput}}) {
      for (std::uint32_t slot = 0; slot < slots->size(); ++slot) {
        const std::uint32_t index = (*slots)[slot];
        const std::string who = std::string(name_of(storage)) + " " + std::to_string(slot);
        if (index >= plan_.tensors.size()) return wrong(who + " is no tensor");
        const Tensor& t = plan_.tensors[index];
        if (t.storage != storage || t.slot != slot || t.offset != 0 || t.view_of != kNone || t.layout.block != 0) {
          return wrong(who + " is " + name(index) + ", which is not row-major at the start of its own buffer");
        }
        const std::uint32_t count = t.count != kNone ? root_[t.count] : kNone;
        if (count != kNone && plan_.tensors[count].storage != Storage::kInput &&
            std::find(slots->begin(), slots->end(), count) == slots->end()) {
          return wrong(who + " has a count that is not handed over with it");
        }
      }
    }
    return {};
  }

  Status guards() {
    std::vector<std::size_t> depth(plan_.guards.size(), 0);
    for (std::uint32_t g = 0; g < plan_.guards.size(); ++g) {
      const Guard& guard = plan_.guards[g];
      const bool sound = guard.condition < plan_.tensors.size() && (guard.parent == kNone || guard.parent < g);
      if (!sound || plan_.tensors[guard.condition].dtype != kernels::DType::kBool ||
          plan_.tensors[guard.condition].bytes != 1) {
        return wrong("guard " + std::to_string(g) + " has no condition of one bool or no parent before it");
      }
      depth[g] = guard.parent == kNone ? 1 : depth[guard.parent] + 1;
      if (depth[g] > kMaxDepth) return wrong("its guards are nested more than " + std::to_string(kMaxDepth) + " deep");
      guards_of_[guard.condition].push_back(g);
    }
    return {};
  }

  // Whether a step under `inner` runs only where one under `outer` does.
  [[nodiscard]] bool implies(std::uint32_t inner, std::uint32_t outer) const {
    while (inner != outer && inner != kNone) inner = plan_.guards[inner].parent;
    return inner == outer;
  }

  Status step(std::size_t index) {
    const Step& s = plan_.steps[index];
    const kernels::Kernel* kernel = kernels::find_kernel(plan_.target, s.kernel);
    const std::string who = step_name(index, kernel);
    if (kernel == nullptr) {
      return fail(Code::kInput, who + " needs kernel " + std::to_string(s.kernel) +
                                    ", which this program does not have; compile the model again");
    }
    if (s.version != kernel->version) {
      return fail(Code::kInput, who + " was packed for version " + std::to_string(s.version) +
                                    " of its kernel, this program has version " + std::to_string(kernel->version) +
                                    "; compile the model again");
    }
    if (s.params.size() != kernel->params_bytes || s.operands.size() != kernel->operands) {
      return wrong(who + " has not the parameters or operands of its kernel");
    }
    std::vector<kernels::Operand> operands(s.operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (s.operands[i] == kNone) continue;
      if (s.operands[i] >= plan_.tensors.size()) return wrong(who + " has an operand that is no tensor");
      const Tensor& t = plan_.tensors[s.operands[i]];
      // Every storage begins at a multiple of kAlignment: the offset alone says how an operand is aligned.
      operands[i] = {reinterpret_cast<std::byte*>(t.offset), t.bytes};  // NOLINT(performance-no-int-to-ptr)
    }
    if (const char* problem = kernel->check(s.params.data(), operands, plan_.target)) {
      return wrong(who + ": " + problem);
    }
    TAKT_RETURN_IF_ERROR(counts(s, *kernel, who));
    if (s.guard != kNone && s.guard >= plan_.guards.size()) return wrong(who + " has a guard that is none of the plan");
    for (std::uint32_t g = s.guard; g != kNone; g = plan_.guards[g].parent) {
      TAKT_RETURN_IF_ERROR(read(who, plan_.guards[g].condition, plan_.guards[g].parent));
    }
    const std::size_t inputs = operands.size() - kernel->outputs;
    for (std::size_t i = 0; i < inputs; ++i) {
      if (s.operands[i] == kNone) continue;
      const bool chosen = kernel->selects && (i == 1 || i == 2);
      TAKT_RETURN_IF_ERROR(chosen ? read_chosen(who, s, i) : read(who, s.operands[i], s.guard));
    }
    for (std::size_t o = inputs; o < operands.size(); ++o) {
      if (s.operands[o] == kNone) return wrong(who + " has no output");
      TAKT_RETURN_IF_ERROR(disjoint(s, *kernel, who, o));
      TAKT_RETURN_IF_ERROR(written(who, s.operands[o], s.guard));
    }
    for (const std::uint32_t operand : s.operands) {
      if (operand != kNone) touch(operand, static_cast<std::uint32_t>(index));
    }
    for (std::uint32_t g = s.guard; g != kNone; g = plan_.guards[g].parent) {
      touch(plan_.guards[g].condition, static_cast<std::uint32_t>(index));
    }
    kernels_.push_back(kernel);
    return {};
  }

  // What a kernel takes for the count of an operand is the count of the tensor, and none is overlooked.
  Status counts(const Step& s, const kernels::Kernel& kernel, const std::string& who) const {
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      if (s.operands[i] == kNone) continue;
      const Tensor& t = plan_.tensors[s.operands[i]];
      kernels::Kernel::Counted counted;
      if (kernel.counted != nullptr) counted = kernel.counted(s.params.data(), static_cast<int>(i));
      const std::uint32_t count = counted.operand < 0 ? kNone : s.operands[static_cast<std::size_t>(counted.operand)];
      if (count != t.count || (count != kNone && counted.axis != t.count_axis)) {
        return wrong(who + " does not take " + name(s.operands[i]) + " by its count");
      }
    }
    return {};
  }

  [[nodiscard]] bool overlap(const Tensor& a, const Tensor& b) const {
    return a.storage == b.storage && a.slot == b.slot && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  // An output shares no byte with another operand, except where the kernel may write over one input.
  Status disjoint(const Step& s, const kernels::Kernel& kernel, const std::string& who, std::size_t output) {
    const Tensor& out = plan_.tensors[s.operands[output]];
    // Every part of a step asks the conditions.
    for (std::uint32_t g = s.guard; g != kNone; g = plan_.guards[g].parent) {
      if (overlap(out, plan_.tensors[plan_.guards[g].condition])) {
        return wrong(who + " writes " + name(s.operands[output]) + " over its own condition");
      }
    }
    for (std::size_t i = 0; i < output; ++i) {
      if (s.operands[i] == kNone) continue;
      const Tensor& other = plan_.tensors[s.operands[i]];
      if (!overlap(out, other)) continue;
      const bool allowed = kernel.outputs == 1 && static_cast<int>(i) == kernel.in_place &&
                           out.offset == other.offset && out.bytes == other.bytes &&
                           s.operands[i] != s.operands[output];
      if (!allowed) {
        return wrong(who + " writes " + name(s.operands[output]) + " over its operand " + name(s.operands[i]));
      }
      unite(root_[s.operands[i]], root_[s.operands[output]]);
    }
    return {};
  }

  // Where branches meet: operand 1 may be written only where the condition holds, operand 2 only where it does not.
  Status read_chosen(const std::string& who, const Step& s, std::size_t operand) {
    std::uint32_t chosen = s.guard;
    if (const auto found = guards_of_.find(s.operands[0]); found != guards_of_.end()) {
      for (const std::uint32_t g : found->second) {
        if (plan_.guards[g].parent == s.guard && plan_.guards[g].when == (operand == 1)) chosen = g;
      }
    }
    return read(who, s.operands[operand], chosen);
  }

  // Every byte of what is read was written last as a part of this value, by steps that have run where a step under
  // `guard` runs.
  Status read(const std::string& who, std::uint32_t operand, std::uint32_t guard) {
    const Tensor& t = plan_.tensors[operand];
    if (t.storage == Storage::kInput || t.storage == Storage::kWeights || t.storage == Storage::kStatePrevious) {
      return {};
    }
    Space& space = space_of(t);
    std::uint64_t at = t.offset;
    const std::uint64_t end = t.offset + t.bytes;
    auto piece = space.upper_bound(at);
    if (piece != space.begin()) --piece;
    while (at < end) {
      while (piece != space.end() && piece->second.end <= at) ++piece;
      if (piece == space.end() || piece->first > at) {
        return wrong(who + " reads " + name(operand) + " before it is written");
      }
      if (root_[piece->second.owner] != root_[operand]) {
        return wrong(who + " reads " + name(operand) + ", but " + name(piece->second.owner) +
                     " lies there at that time");
      }
      if (!implies(guard, piece->second.guard)) {
        return wrong(who + " reads " + name(operand) + ", which steps under a guard wrote that may not have run");
      }
      at = piece->second.end;
    }
    read_[root_[operand]] = true;
    return {};
  }

  // A value is written once. A tensor that several steps assemble (parts of a concat) is complete before it is read.
  Status written(const std::string& who, std::uint32_t operand, std::uint32_t guard) {
    const Tensor& t = plan_.tensors[operand];
    if (t.storage != Storage::kArena && t.storage != Storage::kOutput && t.storage != Storage::kStateNext) {
      return wrong(who + " writes " + name(operand) + ", which lies in " + name_of(t.storage));
    }
    Space& space = space_of(t);
    const std::uint64_t begin = t.offset, end = t.offset + t.bytes;
    auto piece = space.upper_bound(begin);
    if (piece != space.begin()) --piece;
    while (piece != space.end() && piece->first < end) {
      if (piece->second.end <= begin) {
        ++piece;
        continue;
      }
      const std::uint32_t owner = piece->second.owner;
      if (root_[owner] == root_[operand] && (owner != operand || read_[root_[operand]])) {
        return wrong(who + " writes " + name(operand) + " a second time");
      }
      // Cut away what is overwritten.
      const Piece old = piece->second;
      const std::uint64_t start = piece->first;
      piece = space.erase(piece);
      if (start < begin) space[start] = {begin, owner, old.guard};
      if (old.end > end) space[end] = {old.end, owner, old.guard};
    }
    space[begin] = {end, operand, guard};
    return {};
  }

  Space& space_of(const Tensor& t) { return spaces_[{t.storage, t.slot}]; }

  // Outputs and new states are whole at the end.
  Status complete() {
    for (const std::uint32_t output : plan_.outputs) {
      TAKT_RETURN_IF_ERROR(read("the caller", output, kNone));
    }
    for (std::uint32_t i = 0; i < plan_.states.size(); ++i) {
      std::uint64_t at = 0;
      for (const auto& [begin, piece] : spaces_[{Storage::kStateNext, i}]) {
        if (begin != at || piece.guard != kNone) break;
        at = piece.end;
      }
      if (at != plan_.states[i].bytes) return wrong("state '" + plan_.states[i].name + "' is not written as a whole");
    }
    return {};
  }

  void touch(std::uint32_t operand, std::uint32_t step) {
    Life& life = life_[root_[operand]];
    if (life.first == kNone) life.first = step;
    life.last = step;
  }

  // Roots that share memory by in-place steps are one thing to place.
  std::uint32_t group(std::uint32_t root) {
    while (groups_[root] != root) root = groups_[root] = groups_[groups_[root]];
    return root;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = group(a);
    b = group(b);
    groups_[std::max(a, b)] = std::min(a, b);
  }

  Status lifetimes() {
    struct Block {
      std::uint64_t begin = UINT64_MAX, end = 0;
      std::uint32_t first = kNone, last = 0;
    };
    std::map<std::uint32_t, Block> blocks;
    for (std::uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      const Tensor& t = plan_.tensors[i];
      const Life& life = life_[root_[i]];
      if (t.first_step != life.first || t.last_step != life.last) {
        return wrong(name(i) + " claims to live from step " + std::to_string(t.first_step) + " to " +
                     std::to_string(t.last_step) + ", its uses say otherwise");
      }
      if (t.storage != Storage::kArena || life.first == kNone) continue;
      Block& block = blocks[group(root_[i])];
      block.begin = std::min(block.begin, t.offset);
      block.end = std::max(block.end, t.offset + t.bytes);
      block.first = std::min(block.first, life.first);
      block.last = std::max(block.last, life.last);
    }
    std::map<std::uint64_t, std::int64_t> change;  // of live bytes, by step
    for (const auto& [root, block] : blocks) {
      const auto bytes = static_cast<std::int64_t>(round_up(block.end - block.begin, kAlignment));
      change[block.first] += bytes;
      change[std::uint64_t{block.last} + 1] -= bytes;
    }
    std::int64_t live = 0, most = 0;
    for (const auto& [step, bytes] : change) most = std::max(most, live += bytes);
    if (static_cast<std::uint64_t>(most) != plan_.lower_bound) {
      return wrong("its lower bound is " + std::to_string(plan_.lower_bound) + " bytes, its steps say " +
                   std::to_string(most));
    }
    if (plan_.lower_bound > plan_.arena_bytes ||
        (plan_.proof == Proof::kOptimal) != (plan_.lower_bound == plan_.arena_bytes)) {
      return wrong("its proof status does not fit its arena and lower bound");
    }
    return {};
  }

  struct Life {
    std::uint32_t first = kNone, last = kNone;
  };

  const Description& plan_;
  std::vector<const kernels::Kernel*> kernels_;
  std::vector<std::uint32_t> root_;    // of every tensor: the end of its views
  std::vector<std::uint32_t> groups_;  // union-find over roots
  std::vector<bool> read_;             // by root
  std::vector<Life> life_;             // by root
  std::map<std::pair<Storage, std::uint32_t>, Space> spaces_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> guards_of_;  // by condition
};

}  // namespace

Status verify(const Description& description, std::vector<const kernels::Kernel*>* kernels) {
  return Verifier(description).run(kernels);
}

}  // namespace takt::plan
