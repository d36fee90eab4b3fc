#include "compiler/lower/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/reference/counted.h"
#include "kernels/reference/narrow_float.h"
#include "runtime/base/sizes.h"

namespace takt::lower {
namespace {

using kernels::DType;
using kernels::cpu::Call;
using kernels::cpu::KernelId;
using kernels::cpu::ReorderParams;
using plan::Storage;

ReorderParams reorder_params(const Shape& shape) {
  return {static_cast<std::int32_t>(shape.dims[0]), static_cast<std::int32_t>(shape.dims[1]),
          shape.dims[2] * shape.dims[3]};
}

}  // namespace

Builder::Builder(const ir::Graph& graph, const Options& options, std::int64_t most_spread)
    : graph_(graph),
      options_(options),
      most_spread_(most_spread),
      forms_(graph.values.size()),
      wants_blocked_(graph.values.size(), false),
      consumers_(graph.consumers()) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::ValueId value = graph.inputs[i];
    const TensorId id = add(graph[value].name, type(value), false);
    tensors_[id].storage = Storage::kInput;
    tensors_[id].slot = static_cast<std::uint32_t>(i);
    forms(value).linear = id;
    inputs_.push_back(id);
  }
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    const ir::State& state = graph.states[i];
    const TensorId id = add(state.name, type(state.previous), false);
    tensors_[id].storage = Storage::kStatePrevious;
    tensors_[id].slot = static_cast<std::uint32_t>(i);
    forms(state.previous).linear = id;
    states_.push_back({state.name, tensors_[id].dtype, tensors_[id].shape, tensors_[id].bytes,
                       state.initial != nullptr ? section(state.initial->bytes) : plan::kNone});
  }
  plan_guard_.resize(graph.guards.size(), plan::kNone);
  guard_of_.resize(graph.values.size(), -1);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId value : node.outputs) guard_of_[static_cast<std::size_t>(value)] = node.guard;
  }
  find_wishes();
}

std::uint32_t Builder::plan_guard(int guard) {
  if (guard < 0) return plan::kNone;
  const ir::Guard& from = graph_.guards[static_cast<std::size_t>(guard)];
  std::uint32_t& index = plan_guard_[static_cast<std::size_t>(guard)];
  if (index != plan::kNone) return index;
  plan::Guard to;
  to.parent = plan_guard(from.parent);
  to.condition = linear(from.condition);
  to.when = from.when;
  index = static_cast<std::uint32_t>(guards_.size());
  guards_.push_back(to);
  return index;
}

void Builder::convert(Call call, ir::ValueId value, std::vector<TensorId> operands) {
  const int inside = guard_;
  guard_ = guard_of_[static_cast<std::size_t>(value)];
  step(std::move(call), std::move(operands), nullptr);
  guard_ = inside;
  ++statistics_.reorders;
}

void Builder::find_wishes() {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    const auto wish = [&](std::size_t input) {
      if (input >= node->inputs.size() || node->inputs[input] == ir::kNoValue) return;
      const ir::ValueId value = node->inputs[input];
      if (can_be_blocked(type(value))) wants_blocked_[static_cast<std::size_t>(value)] = true;
    };
    const std::string& op = node->op;
    if (op == "Conv") {
      if (!reads_image(*node)) wish(0);
      wish(3);
    } else if (op == "MaxPool" || op == "AveragePool" || op == "GlobalAveragePool" || op == "takt.ChannelGather" ||
               op == "BatchNormalization" || op == "ConvTranspose" || op == "Resize" || op == "Pad") {
      wish(0);
    } else if (op == "Concat" && node->integer("axis", 0) == 1) {
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        if (wants_blocked(node->outputs[0])) wish(i);
      }
    } else if (node->outputs.size() == 1 && can_be_blocked(type(node->outputs[0])) && wants_blocked(node->outputs[0])) {
      // Elementwise operators run on either form.
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        if (node->inputs[i] != ir::kNoValue && shape(node->inputs[i]) == shape(node->outputs[0])) wish(i);
      }
    }
  }
}

bool Builder::has_blocked(ir::ValueId value) const {
  if (!can_be_blocked(type(value))) return false;
  return constant_of(value) != nullptr || forms_[static_cast<std::size_t>(value)].blocked != kAbsent ||
         mapped_.count(value) != 0;
}
bool Builder::is_read(ir::ValueId value) const {
  const auto is = [&](ir::ValueId other) { return other == value; };
  return !consumers_[static_cast<std::size_t>(value)].empty() ||
         std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is) ||
         std::any_of(graph_.states.begin(), graph_.states.end(), [&](const ir::State& s) { return is(s.next); });
}

bool Builder::has_linear(ir::ValueId value) const {
  const Forms& forms = forms_[static_cast<std::size_t>(value)];
  return constant_of(value) != nullptr || forms.linear != kAbsent || forms.image != kAbsent;
}

const Builder::Mapped* Builder::mapped(ir::ValueId value) const {
  const auto found = mapped_.find(value);
  return found == mapped_.end() || forms_[static_cast<std::size_t>(value)].blocked != kAbsent ? nullptr
                                                                                              : &found->second;
}

Builder::Mapped Builder::channels_of(ir::ValueId value) {
  if (const Mapped* found = mapped(value)) return *found;
  return channels_of_blocked(value);
}

Builder::Mapped Builder::channels_of_blocked(ir::ValueId value) {
  Mapped all;
  all.whole = blocked(value);
  all.channels.resize(static_cast<std::size_t>(shape(value).dims[1]));
  std::iota(all.channels.begin(), all.channels.end(), 0);
  return all;
}

std::int64_t Builder::blocks_alike(const Mapped& mapped) const {
  std::vector<std::int32_t> sorted = mapped.channels;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return 0;
  return blocks_of(tensors_[mapped.whole].shape.dims[1]);
}

bool Builder::better_whole(std::int64_t blocks, ir::ValueId x, ir::ValueId y, std::int64_t taps) const {
  const Shape &from = shape(x), &to = shape(y);
  const std::int64_t filled = blocks_of(from.dims[1]);
  return blocks > 0 && (blocks - filled) * to.dims[2] * to.dims[3] * taps <= filled * from.dims[2] * from.dims[3] * 9;
}

bool Builder::only_read_by_list(ir::ValueId value, std::int64_t blocks) const {
  const auto is = [&](ir::ValueId other) { return other == value; };
  if (std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is)) return false;
  if (std::any_of(graph_.states.begin(), graph_.states.end(), [&](const ir::State& s) { return is(s.next); })) {
    return false;
  }
  const std::vector<int>& readers = consumers_[static_cast<std::size_t>(value)];
  return std::all_of(readers.begin(), readers.end(), [&](int n) {
    return reads_by_list(*this, graph_.nodes[static_cast<std::size_t>(n)], value, blocks);
  });
}

TensorId Builder::whole(ir::ValueId value, std::int64_t channels) {
  ir::Type with_holes = type(value);
  with_holes.shape.dims[1] = channels;
  return add(graph_[value].name + ":whole", with_holes, true);
}

TensorId Builder::add(const std::string& name, const ir::Type& type, bool as_blocked) {
  plan::Tensor t;
  t.name = name;
  t.dtype = as_blocked ? blocked_type() : type.dtype;
  t.shape = type.shape;
  t.layout.block = as_blocked ? block() : 0;
  t.bytes = kernels::bytes_of(t.dtype, t.shape, t.layout);
  t.count_axis = static_cast<std::uint8_t>(type.count != ir::kNoValue ? type.axis : 0);
  tensors_.push_back(std::move(t));
  counts_.push_back(type.count);
  written_.push_back(false);
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Builder::define(ir::ValueId value, bool as_blocked) {
  const TensorId id = add(graph_[value].name, type(value), as_blocked);
  (as_blocked ? forms(value).blocked : forms(value).linear) = id;
  return id;
}

TensorId Builder::part(const std::string& name, const ir::Type& type, bool as_blocked, TensorId of,
                       std::uint64_t offset) {
  const TensorId id = add(name, type, as_blocked);
  tensors_[id].view_of = of;
  tensors_[id].offset = offset;
  return id;
}

void Builder::define_view(ir::ValueId value, bool as_blocked, TensorId of, std::uint64_t offset) {
  (as_blocked ? forms(value).blocked : forms(value).linear) =
      part(graph_[value].name, type(value), as_blocked, of, offset);
}

void Builder::define_same(ir::ValueId value, ir::ValueId as) {
  if (constant_of(as) != nullptr) {
    forms(value).linear = linear(as);
  } else {
    forms(value) = forms(as);
    if (const auto found = mapped_.find(as); found != mapped_.end()) mapped_[value] = Mapped(found->second);
  }
}

std::uint32_t Builder::section(std::vector<std::byte> bytes) {
  const auto [at, added] = known_sections_.try_emplace(digest(bytes), static_cast<std::uint32_t>(sections_.size()));
  if (added) sections_.push_back(std::move(bytes));
  return at->second;
}

TensorId Builder::weights(const std::string& name, std::vector<std::byte> bytes) {
  ir::Type type;
  type.dtype = kernels::DType::kU8;
  type.shape = {1, {static_cast<std::int64_t>(bytes.size())}};
  const TensorId id = add(name, type, false);
  tensors_[id].storage = Storage::kWeights;
  tensors_[id].slot = section(std::move(bytes));
  return id;
}

TensorId Builder::constant(ir::ValueId value, bool as_blocked) {
  const TensorId id = add(graph_[value].name, type(value), as_blocked);
  const ir::Constant& from = *constant_of(value);
  std::vector<std::byte> bytes = from.bytes;
  if (as_blocked) {
    const Shape& s = from.shape;
    const std::int64_t b = block(), pixels = s.dims[2] * s.dims[3], blocks = (s.dims[1] + b - 1) / b;
    std::vector<float> packed(static_cast<std::size_t>(s.dims[0] * blocks * pixels * b), 0.0F);
    std::vector<float> plain(from.bytes.size() / sizeof(float));
    std::memcpy(plain.data(), from.bytes.data(), from.bytes.size());
    for (std::int64_t n = 0; n < s.dims[0]; ++n) {
      for (std::int64_t c = 0; c < s.dims[1]; ++c) {
        for (std::int64_t p = 0; p < pixels; ++p) {
          packed[static_cast<std::size_t>(((n * blocks + c / b) * pixels + p) * b + c % b)] =
              plain[static_cast<std::size_t>((n * s.dims[1] + c) * pixels + p)];
        }
      }
    }
    bytes = stored(packed);
  }
  tensors_[id].storage = Storage::kWeights;
  tensors_[id].slot = section(std::move(bytes));
  (as_blocked ? forms(value).blocked : forms(value).linear) = id;
  return id;
}

TensorId Builder::linear(ir::ValueId value) {
  if (forms(value).linear != kAbsent) return forms(value).linear;
  if (constant_of(value) != nullptr) return constant(value, false);
  const TensorId image = forms(value).image, to = define(value, false);
  if (image != kAbsent) {
    cast(value, DType::kF16, image, DType::kF32, to);
  } else {
    reorder_to_linear(value);
  }
  return to;
}

TensorId Builder::image(ir::ValueId value) {
  if (blocked_type() == DType::kF32) return linear(value);
  if (forms(value).image != kAbsent) return forms(value).image;
  const TensorId from = linear(value), to = define_image(value);
  cast(value, DType::kF32, from, DType::kF16, to);
  return to;
}

TensorId Builder::define_image(ir::ValueId value) {
  if (blocked_type() == DType::kF32) return define(value, false);
  ir::Type narrow = type(value);
  narrow.dtype = blocked_type();
  return forms(value).image = add(graph_[value].name, narrow, false);
}

bool Builder::only_read_as_image(ir::ValueId value) const {
  const auto is = [&](ir::ValueId other) { return other == value; };
  const std::vector<int>& readers = consumers_[static_cast<std::size_t>(value)];
  return !std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is) &&
         std::none_of(graph_.states.begin(), graph_.states.end(), [&](const ir::State& s) { return is(s.next); }) &&
         std::all_of(readers.begin(), readers.end(), [&](int n) {
           const ir::Node& node = graph_.nodes[static_cast<std::size_t>(n)];
           return reads_image(node) && node.inputs[0] == value &&
                  std::count(node.inputs.begin(), node.inputs.end(), value) == 1;
         });
}

bool Builder::reads_image(const ir::Node& node) const {
  return node.op == "Conv" && shape(node.inputs[0]).dims[1] <= 4 && node.integer("group", 1) == 1;
}

void Builder::cast(ir::ValueId value, DType from_type, TensorId from, DType to_type, TensorId to) {
  const kernels::cpu::CastParams p{static_cast<std::int32_t>(from_type), static_cast<std::int32_t>(to_type),
                                   shape(value).elements()};
  convert(kernels::cpu::make_call(KernelId::kCast, p), value, {from, to});
}

std::vector<std::byte> Builder::stored(std::span<const float> values) {
  expect_stored(values);
  return kernels::cpu::stored_as(blocked_type(), values);
}

void Builder::expect_stored(std::span<const float> values) {
  if (blocked_type() != DType::kF16) return;
  const std::uint16_t infinity = kernels::to_narrow(INFINITY, kernels::kHalf);
  for (const float value : values) {
    const bool held = (kernels::to_narrow(static_cast<double>(value), kernels::kHalf) & 0x7fff) != infinity;
    if (!held && std::isfinite(value)) beyond_ = value;
  }
}

void Builder::reorder_to_linear(ir::ValueId value) {
  const TensorId from = blocked(value);
  convert(kernels::cpu::make_call(KernelId::kReorderToLinear, reorder_params(shape(value))), value,
          {from, forms(value).linear});
}

TensorId Builder::blocked(ir::ValueId value) {
  if (forms(value).blocked != kAbsent) return forms(value).blocked;
  if (constant_of(value) != nullptr) return constant(value, true);
  if (const auto found = mapped_.find(value); found != mapped_.end()) {
    const Mapped from = found->second;
    const Shape& s = shape(value);
    kernels::cpu::ChannelGatherParams p;
    p.n = static_cast<std::int32_t>(s.dims[0]);
    p.c_a = static_cast<std::int32_t>(tensors_[from.whole].shape.dims[1]);
    p.c_out = static_cast<std::int32_t>(s.dims[1]);
    p.pixels = s.dims[2] * s.dims[3];
    const TensorId to = define(value, true);
    convert(kernels::cpu::make_channel_gather(p, from.channels), value, {from.whole, kAbsent, kAbsent, to});
    return to;
  }
  const TensorId from = linear(value);
  const TensorId to = define(value, true);
  convert(kernels::cpu::make_call(KernelId::kReorderToBlocked, reorder_params(shape(value))), value, {from, to});
  return to;
}

TensorId Builder::root(TensorId tensor) const {
  while (tensors_[tensor].view_of != kAbsent) tensor = tensors_[tensor].view_of;
  return tensor;
}

TensorId Builder::whole_root(TensorId tensor) const {
  const TensorId top = root(tensor);
  return tensors_[top].bytes == tensors_[tensor].bytes ? top : kAbsent;
}

void Builder::mark_written(TensorId tensor) {
  for (; tensor != kAbsent; tensor = tensors_[tensor].view_of) written_[tensor] = true;
}

bool Builder::can_place(TensorId tensor) const {
  const TensorId top = whole_root(tensor);
  return top != kAbsent && tensors_[top].storage == Storage::kArena && written_[top];
}

bool Builder::place(TensorId tensor, TensorId of, std::uint64_t offset) {
  const TensorId top = whole_root(tensor);
  if (!can_place(tensor) || top == of) return false;
  tensors_[top].view_of = of;
  tensors_[top].offset = offset;
  mark_written(of);
  return true;
}

void Builder::step(Call call, std::vector<TensorId> operands, const ir::Node* node) {
  if (call.constant_operand >= 0) {
    operands[static_cast<std::size_t>(call.constant_operand)] =
        weights((node != nullptr ? node->name : std::string()) + ":packed", std::move(call.constant));
  }
  const bool over_f16 =
      std::ranges::any_of(operands, [&](TensorId id) { return id != kAbsent && tensors_[id].dtype == DType::kF16; });
  if (over_f16 && kernels::cpu::has_f16_form(call.id)) call.id = kernels::cpu::f16_form(call.id);
  const kernels::Kernel* kernel = kernels::find_kernel(target(), static_cast<std::uint32_t>(call.id));
  if (kernel == nullptr) {
    // Lowering goes on, so that everything that is missing is named at once.
    kernel = kernels::find_kernel(kernels::Target::kAvx2, static_cast<std::uint32_t>(call.id));
    missing_ = true;
  }
  plan::Step s;
  s.kernel = kernel->id;
  s.version = kernel->version;
  s.flops = kernels::cpu::flops_of(call.id, call.params.data());
  s.params = std::move(call.params);
  for (const TensorId id : operands) {
    if (id != kAbsent) s.bytes_moved += tensors_[id].bytes;
  }
  for (std::size_t i = operands.size() - kernel->outputs; i < operands.size(); ++i) mark_written(operands[i]);
  s.operands = std::move(operands);
  if (node != nullptr) s.nodes.push_back(node->name);
  s.guard = plan_guard(guard_);
  steps_.push_back(std::move(s));
}

// Results and states are made without a guard (ir::verify), and so are these steps.
TensorId Builder::deliver(ir::ValueId value, const std::string& name, Storage storage, std::uint32_t slot) {
  const bool only_blocked = !has_linear(value);
  const TensorId to = add(name, type(value), false);
  tensors_[to].storage = storage;
  tensors_[to].slot = slot;
  if (only_blocked) {
    const TensorId from = blocked(value);
    step(kernels::cpu::make_call(KernelId::kReorderToLinear, reorder_params(shape(value))), {from, to}, nullptr);
    ++statistics_.reorders;
    return to;
  }
  const TensorId from = linear(value);
  if (place(from, to, 0)) return to;
  if (type(value).count != ir::kNoValue) {
    // Rows beyond the count stay where they are.
    kernels::reference::GenericParams p;
    p.op = kernels::reference::Generic::kSlice;
    p.operands[0] = kernels::reference::generic_type(type(value).dtype, shape(value));
    p.operands[0].count = 1;
    p.operands[0].axis = static_cast<std::uint8_t>(type(value).axis);
    p.operands[kernels::reference::kGenericInputs] = p.operands[0];
    std::vector<TensorId> operands(kernels::reference::kGenericInputs + kernels::reference::kMostCounts + 1, kAbsent);
    operands.front() = from;
    operands[kernels::reference::kGenericInputs] = linear(type(value).count);
    operands.back() = to;
    step(kernels::cpu::make_call(KernelId::kCounted, p), std::move(operands), nullptr);
    ++statistics_.copies;
    return to;
  }
  const std::vector<std::int64_t> zeros(kernels::kMaxRank, 0), ones(kernels::kMaxRank, 1);
  const Shape& s = shape(value);
  const auto rank = static_cast<std::size_t>(s.rank);
  step(kernels::cpu::make_copy(s, s, type(value).dtype, {s.dims, rank}, std::span(zeros).first(rank),
                               std::span(ones).first(rank), std::span(zeros).first(rank)),
       {from, to}, nullptr);
  ++statistics_.copies;
  return to;
}

Result<Lowered> Builder::finish() {
  guard_ = -1;
  std::string refused;
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const std::string& name = graph_[graph_.outputs[i]].name;
    outputs_.push_back(deliver(graph_.outputs[i], name, Storage::kOutput, static_cast<std::uint32_t>(i)));
    if (take_missing()) refused += (refused.empty() ? "" : ", ") + ir::printable(name);
  }
  for (std::size_t i = 0; i < graph_.states.size(); ++i) {
    deliver(graph_.states[i].next, graph_.states[i].name, Storage::kStateNext, static_cast<std::uint32_t>(i));
    if (take_missing()) refused += (refused.empty() ? "" : ", ") + ir::printable(graph_.states[i].name);
  }
  if (!refused.empty()) {
    return fail(Code::kInput, "takt has no kernel for\n  copying counted rows into an output or a state on " +
                                  std::string(name_of(target())) + " (" + refused + ")");
  }

  for (TensorId id = 0; id < tensors_.size(); ++id) {
    if (counts_[id] != ir::kNoValue) tensors_[id].count = forms(counts_[id]).linear;
  }

  // A condition is read by every step under it.
  const auto conditions = [&](const plan::Step& step) {
    std::vector<TensorId> out;
    for (std::uint32_t g = step.guard; g != plan::kNone; g = guards_[g].parent) out.push_back(guards_[g].condition);
    return out;
  };

  // Lifetimes of roots.
  struct Life {
    std::uint32_t first = plan::kNone, last = 0;
  };
  std::vector<Life> life(tensors_.size());
  for (std::uint32_t s = 0; s < steps_.size(); ++s) {
    std::vector<TensorId> touched = conditions(steps_[s]);
    touched.insert(touched.end(), steps_[s].operands.begin(), steps_[s].operands.end());
    for (const TensorId operand : touched) {
      if (operand == kAbsent) continue;
      Life& l = life[root(operand)];
      if (l.first == plan::kNone) l.first = s;
      l.last = s;
    }
  }

  // A step writes over an input that nobody reads later. Both have to be whole roots: inside a larger one the larger
  // would have to live for both.
  std::vector<TensorId> group(tensors_.size());
  std::iota(group.begin(), group.end(), 0U);
  const auto find = [&](TensorId id) {
    while (group[id] != id) id = group[id] = group[group[id]];
    return id;
  };
  for (std::uint32_t s = 0; s < steps_.size(); ++s) {
    const plan::Step& step = steps_[s];
    const kernels::Kernel* found = kernels::find_kernel(target(), step.kernel);
    const kernels::Kernel& kernel = *found;
    if (kernel.in_place < 0) continue;
    const TensorId input = step.operands[static_cast<std::size_t>(kernel.in_place)];
    const TensorId output = step.operands.back();
    if (input == kAbsent) continue;
    const TensorId from = whole_root(input), to = whole_root(output);
    if (from == kAbsent || to == kAbsent || tensors_[from].storage != Storage::kArena ||
        tensors_[to].storage != Storage::kArena || tensors_[from].bytes != tensors_[to].bytes || life[from].last != s ||
        life[to].first != s) {
      continue;
    }
    const auto uses = std::count_if(step.operands.begin(), step.operands.end(),
                                    [&](TensorId id) { return id != kAbsent && root(id) == from; });
    const std::vector<TensorId> asked = conditions(step);
    const bool is_condition = std::any_of(asked.begin(), asked.end(), [&](TensorId id) { return root(id) == from; });
    if (uses != 1 || is_condition) continue;
    group[find(to)] = find(from);
    ++statistics_.in_place;
  }

  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_of_group(tensors_.size(), plan::kNone);
  for (TensorId id = 0; id < tensors_.size(); ++id) {
    if (tensors_[id].view_of != kAbsent || tensors_[id].storage != Storage::kArena || life[id].first == plan::kNone) {
      continue;
    }
    std::uint32_t& index = block_of_group[find(id)];
    if (index == plan::kNone) {
      index = static_cast<std::uint32_t>(blocks.size());
      blocks.push_back({tensors_[id].bytes, life[id].first, life[id].last});
    }
    Block& b = blocks[index];
    b.first = std::min(b.first, life[id].first);
    b.last = std::max(b.last, life[id].last);
  }
  const MemoryPlan memory = plan_memory(blocks, options_.memory);
  TAKT_RETURN_IF_ERROR(validate(blocks, memory, options_.memory.alignment));

  // Absolute places: roots first, views through their chains.
  std::vector<std::uint64_t> offsets(tensors_.size(), 0);
  for (TensorId id = 0; id < tensors_.size(); ++id) {
    std::uint64_t offset = 0;
    TensorId at = id;
    for (; tensors_[at].view_of != kAbsent; at = tensors_[at].view_of) offset += tensors_[at].offset;
    if (const std::uint32_t index = block_of_group[find(at)]; index != plan::kNone) offset += memory.offsets[index];
    offsets[id] = offset;
    tensors_[id].storage = tensors_[at].storage;
    tensors_[id].slot = tensors_[at].slot;
    if (life[at].first != plan::kNone) {
      tensors_[id].first_step = life[at].first;
      tensors_[id].last_step = life[at].last;
    }
  }
  for (TensorId id = 0; id < tensors_.size(); ++id) tensors_[id].offset = offsets[id];

  Lowered out;
  plan::Description& d = out.description;
  d.target = options_.target;
  d.statistics = statistics_;
  d.tensors = std::move(tensors_);
  d.steps = std::move(steps_);
  d.guards = std::move(guards_);
  d.states = std::move(states_);
  for (const auto& bytes : sections_) d.sections.push_back({0, bytes.size(), 0});
  d.inputs = std::move(inputs_);
  d.outputs = std::move(outputs_);
  d.arena_bytes = memory.peak;
  d.lower_bound = memory.lower_bound;
  d.proof = memory.proof;
  d.parts = options_.parts;
  out.sections = std::move(sections_);
  return out;
}

}  // namespace takt::lower
