// Operators that only move elements: views and placements where offsets allow, copies where not.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {
namespace {

using kernels::cpu::Call;
using kernels::cpu::ChannelCopyParams;
using kernels::cpu::KernelId;
using kernels::cpu::make_call;

std::int64_t product(const Shape& shape, int first, int last) {
  std::int64_t n = 1;
  for (int d = first; d < last; ++d) n *= shape.dims[d];
  return n;
}

std::uint64_t bytes_of(std::int64_t elements, kernels::DType type) {
  return static_cast<std::uint64_t>(elements) * kernels::size_of(type);
}

void reshape(Builder& out, ir::ValueId from, ir::ValueId to) {
  out.define_view(to, false, out.linear(from), 0);
  ++out.statistics().views;
}

Status lower_transpose(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0];
  const Shape& shape = out.shape(x);
  std::vector<int> permutation;
  for (const std::int64_t d : node.integers("perm")) permutation.push_back(static_cast<int>(d));
  // Only extents of 1 change places: the elements stay where they are.
  std::vector<int> larger;
  for (const int d : permutation) {
    if (shape.dims[d] != 1) larger.push_back(d);
  }
  if (std::is_sorted(larger.begin(), larger.end())) {
    reshape(out, x, node.outputs[0]);
    return {};
  }
  if (permutation == std::vector<int>{0, 2, 3, 1} && Builder::can_be_blocked(out.type(x)) && out.has_blocked(x) &&
      !out.has_linear(x)) {
    const kernels::cpu::ReorderParams p{static_cast<std::int32_t>(shape.dims[0]),
                                        static_cast<std::int32_t>(shape.dims[1]), shape.dims[2] * shape.dims[3]};
    const TensorId from = out.blocked(x);
    out.step(make_call(KernelId::kReorderToLast, p), {from, out.define(node.outputs[0], false)}, &node);
    return {};
  }
  const TensorId from = out.linear(x);
  out.step(kernels::cpu::make_transpose(shape, permutation, out.type(x).dtype),
           {from, out.define(node.outputs[0], false)}, &node);
  return {};
}

// A box of a row-major tensor, in any steps, to a place in another.
Call box(const Shape& in, const Shape& out, kernels::DType type, const Shape& extents,
         const std::vector<std::int64_t>& in_start, const std::vector<std::int64_t>& in_step,
         const std::vector<std::int64_t>& out_start) {
  return kernels::cpu::make_copy(in, out, type, {extents.dims, static_cast<std::size_t>(extents.rank)}, in_start,
                                 in_step, out_start);
}

ChannelCopyParams channel_copy(const Shape& in, const Shape& out, std::int64_t from, std::int64_t to,
                               std::int64_t count) {
  ChannelCopyParams p;
  p.n = static_cast<std::int32_t>(in.dims[0]);
  p.c_in = static_cast<std::int32_t>(in.dims[1]);
  p.c_out = static_cast<std::int32_t>(out.dims[1]);
  p.from = static_cast<std::int32_t>(from);
  p.to = static_cast<std::int32_t>(to);
  p.count = static_cast<std::int32_t>(count);
  p.pixels = in.dims[2] * in.dims[3];
  return p;
}

// Every part where its producer writes it, at a block of its own: holes stay behind parts that do not fill theirs.
// False, and nothing done, where that would be wasteful for those who read it.
bool concat_with_holes(Builder& out, const ir::Node& node) {
  const ir::ValueId y = node.outputs[0];
  const Shape& shape = out.shape(y);
  if (shape.dims[0] != 1) return false;
  const std::int64_t filled = out.blocks_of(shape.dims[1]);
  // What is mapped already goes in with all that it is mapped into, once, unless that is too much: then it is gathered.
  const auto blocks_with = [&](bool wholes) {
    std::int64_t blocks = 0;
    std::set<TensorId> counted;
    for (const ir::ValueId x : node.inputs) {
      const Builder::Mapped* mapped = wholes ? out.mapped(x) : nullptr;
      if (mapped == nullptr) {
        blocks += out.blocks_of(out.shape(x).dims[1]);
      } else if (counted.insert(mapped->whole).second) {
        blocks += out.blocks_of(out.tensor(mapped->whole).shape.dims[1]);
      }
    }
    return blocks;
  };
  const auto accepted = [&](std::int64_t blocks) {
    return blocks * 3 <= filled * 4 || (blocks <= out.most_spread() * filled && out.only_read_by_list(y, blocks));
  };
  const bool some_mapped = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId x) {
    return out.mapped(x) != nullptr && out.can_place(out.mapped(x)->whole);
  });
  const bool wholes = some_mapped && accepted(blocks_with(true));
  bool aligned = !wholes;
  for (const ir::ValueId x : node.inputs) {
    aligned = aligned && (x == node.inputs.back() || out.shape(x).dims[1] % out.block() == 0);
  }
  if (aligned || !accepted(blocks_with(wholes))) return false;
  std::vector<Builder::Mapped> parts;
  std::map<TensorId, std::int64_t> blocks_of_part;
  for (const ir::ValueId x : node.inputs) {
    parts.push_back(wholes ? out.channels_of(x) : out.channels_of_blocked(x));
    const TensorId whole = parts.back().whole;
    blocks_of_part[whole] = out.blocks_of(out.tensor(whole).shape.dims[1]);
  }
  std::int64_t blocks = 0;
  for (const auto& [part, count] : blocks_of_part) blocks += count;
  Builder::Mapped all;
  all.whole = out.whole(y, blocks * out.block());
  std::map<TensorId, std::int32_t> begins;  // channel of the whole, by part
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Builder::Mapped& part = parts[i];
    const auto [begin, added] = begins.try_emplace(part.whole, static_cast<std::int32_t>(at));
    for (const std::int32_t c : part.channels) all.channels.push_back(begin->second + c);
    if (!added) continue;
    const std::int64_t channels = out.tensor(part.whole).shape.dims[1];
    const std::uint64_t offset = bytes_of(at * shape.dims[2] * shape.dims[3], out.blocked_type());
    if (out.place(part.whole, all.whole, offset)) {
      ++out.statistics().placements;
    } else {
      ir::Type type = out.type(node.inputs[i]);
      type.shape.dims[1] = channels;
      const TensorId to = out.part(out.graph()[node.inputs[i]].name, type, true, all.whole, offset);
      out.step(make_call(KernelId::kChannelCopy, channel_copy(type.shape, type.shape, 0, 0, channels)),
               {part.whole, to}, &node);
      ++out.statistics().copies;
    }
    at += blocks_of_part[part.whole] * out.block();
  }
  out.define_mapped(y, std::move(all));
  return true;
}

Status concat_blocked(Builder& out, const ir::Node& node) {
  const ir::ValueId y = node.outputs[0];
  const Shape& shape = out.shape(y);
  bool aligned = shape.dims[0] == 1;
  std::int64_t at = 0;
  for (const ir::ValueId x : node.inputs) {
    aligned = aligned && at % out.block() == 0;
    at += out.shape(x).dims[1];
  }
  const TensorId whole = out.define(y, true);
  at = 0;
  for (const ir::ValueId x : node.inputs) {
    const std::int64_t channels = out.shape(x).dims[1];
    const TensorId from = out.blocked(x);
    if (!aligned) {
      out.step(make_call(KernelId::kChannelCopy, channel_copy(out.shape(x), shape, 0, at, channels)), {from, whole},
               &node);
      ++out.statistics().copies;
    } else {
      const std::uint64_t offset = bytes_of(at * shape.dims[2] * shape.dims[3], out.blocked_type());
      if (out.place(from, whole, offset)) {
        ++out.statistics().placements;
      } else {
        const TensorId part = out.part(out.graph()[x].name, out.type(x), true, whole, offset);
        out.step(make_call(KernelId::kChannelCopy, channel_copy(out.shape(x), out.shape(x), 0, 0, channels)),
                 {from, part}, &node);
        ++out.statistics().copies;
      }
    }
    at += channels;
  }
  return {};
}

Status concat_linear(Builder& out, const ir::Node& node, int axis) {
  const ir::ValueId y = node.outputs[0];
  const Shape& shape = out.shape(y);
  const kernels::DType type = out.type(y).dtype;
  const bool contiguous = product(shape, 0, axis) == 1;
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(shape.rank), 0), ones(zeros.size(), 1);
  // Reorders for this concat alone go straight to their place; so the whole is defined before its parts.
  const TensorId whole = out.define(y, false);
  std::int64_t at = 0;
  for (const ir::ValueId x : node.inputs) {
    const Shape& part_shape = out.shape(x);
    const std::uint64_t offset = bytes_of(at * product(shape, axis + 1, shape.rank), type);
    if (contiguous && !out.has_linear(x)) {
      out.define_view(x, false, whole, offset);
      out.reorder_to_linear(x);
      ++out.statistics().placements;
    } else if (const TensorId from = out.linear(x); contiguous && out.place(from, whole, offset)) {
      ++out.statistics().placements;
    } else if (contiguous) {
      const TensorId part = out.part(out.graph()[x].name, out.type(x), false, whole, offset);
      out.step(box(part_shape, part_shape, type, part_shape, zeros, ones, zeros), {from, part}, &node);
      ++out.statistics().copies;
    } else {
      std::vector<std::int64_t> start = zeros;
      start[static_cast<std::size_t>(axis)] = at;
      out.step(box(part_shape, shape, type, part_shape, zeros, ones, start), {from, whole}, &node);
      ++out.statistics().copies;
    }
    at += part_shape.dims[axis];
  }
  return {};
}

Status lower_concat(Builder& out, const ir::Node& node) {
  const ir::ValueId y = node.outputs[0];
  TAKT_ASSIGN(const int axis, ir::axis_of(node, "axis", 0, out.shape(y).rank));
  if (node.inputs.size() == 1) {
    out.define_same(y, node.inputs[0]);
    return {};
  }
  const bool all_blocked =
      std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId x) { return out.has_blocked(x); });
  const bool to_blocked = axis == 1 && Builder::can_be_blocked(out.type(y)) && out.wants_blocked(y) && all_blocked;
  if (to_blocked && concat_with_holes(out, node)) return {};
  return to_blocked ? concat_blocked(out, node) : concat_linear(out, node, axis);
}

// Elements [start, start + step, ...) of every dimension.
Status take(Builder& out, const ir::Node& node, ir::ValueId y, const std::vector<std::int64_t>& start,
            const std::vector<std::int64_t>& step) {
  const ir::ValueId x = node.inputs[0];
  const Shape& from = out.shape(x);
  const Shape& to = out.shape(y);
  int cut = -1;  // the only dimension that is cut, -1: none, -2: several
  for (int d = 0; d < from.rank; ++d) {
    if (to.dims[d] != from.dims[d] || step[static_cast<std::size_t>(d)] != 1) cut = cut == -1 ? d : -2;
  }
  if (cut == -1) {
    out.define_same(y, x);
    return {};
  }
  const bool in_order = cut >= 0 && (step[static_cast<std::size_t>(cut)] == 1 || to.dims[cut] == 1);
  const std::int64_t first = cut >= 0 ? start[static_cast<std::size_t>(cut)] : 0;
  if (in_order && cut == 1 && out.has_blocked(x) && out.constant_of(x) == nullptr && !out.has_linear(x)) {
    const TensorId whole = out.blocked(x);
    // The last block of a view may hold channels beyond it, where its readers expect zeros.
    const bool whole_blocks = to.dims[1] % out.block() == 0 || first + to.dims[1] == from.dims[1];
    if (from.dims[0] == 1 && first % out.block() == 0 && whole_blocks) {
      out.define_view(y, true, whole, bytes_of(first * from.dims[2] * from.dims[3], out.blocked_type()));
      ++out.statistics().views;
      return {};
    }
    out.step(make_call(KernelId::kChannelCopy, channel_copy(from, to, first, 0, to.dims[1])),
             {whole, out.define(y, true)}, &node);
    ++out.statistics().copies;
    return {};
  }
  const TensorId whole = out.linear(x);
  if (in_order && product(from, 0, cut) == 1) {
    out.define_view(y, false, whole, bytes_of(first * product(from, cut + 1, from.rank), out.type(x).dtype));
    ++out.statistics().views;
    return {};
  }
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(to.rank), 0);
  out.step(box(from, to, out.type(x).dtype, to, start, step, zeros), {whole, out.define(y, false)}, &node);
  ++out.statistics().copies;
  return {};
}

Status lower_slice(Builder& out, const ir::Node& node) {
  TAKT_ASSIGN(const ir::SliceGeometry g, ir::slice_geometry(node, ir::OperatorInputs{out.graph(), node}.tensors()));
  return take(out, node, node.outputs[0], g.start, g.step);
}

Status lower_split(Builder& out, const ir::Node& node) {
  const Shape& shape = out.shape(node.inputs[0]);
  TAKT_ASSIGN(const int axis, ir::axis_of(node, "axis", 0, shape.rank));
  std::vector<std::int64_t> start(static_cast<std::size_t>(shape.rank), 0);
  const std::vector<std::int64_t> step(start.size(), 1);
  for (const ir::ValueId y : node.outputs) {
    TAKT_RETURN_IF_ERROR(take(out, node, y, start, step));
    start[static_cast<std::size_t>(axis)] += out.shape(y).dims[axis];
  }
  return {};
}

Status lower_gather(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0], indices = node.inputs[1];
  const Shape& shape = out.shape(x);
  TAKT_ASSIGN(const int axis, ir::axis_of(node, "axis", 0, shape.rank));
  kernels::cpu::GatherParams p;
  p.element_bytes = static_cast<std::int32_t>(kernels::size_of(out.type(x).dtype));
  p.index_bytes = static_cast<std::int32_t>(kernels::size_of(out.type(indices).dtype));
  p.outer = product(shape, 0, axis);
  p.axis = shape.dims[axis];
  p.inner = product(shape, axis + 1, shape.rank);
  p.count = out.shape(indices).elements();
  const TensorId from = out.linear(x), at = out.linear(indices);
  out.step(make_call(KernelId::kGather, p), {from, at, out.define(node.outputs[0], false)}, &node);
  return {};
}

Status lower_expand(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0];
  const Shape& from = out.shape(x);
  const Shape& to = out.shape(node.outputs[0]);
  if (from.elements() == to.elements()) {
    reshape(out, x, node.outputs[0]);
    return {};
  }
  kernels::cpu::StridedCopyParams p;
  p.element_bytes = static_cast<std::int32_t>(kernels::size_of(out.type(x).dtype));
  p.rank = to.rank;
  for (int d = 0; d < to.rank; ++d) {
    const int in = d - (to.rank - from.rank);
    p.dims[d] = to.dims[d];
    p.stride_in[d] = in < 0 || from.dims[in] == 1 ? 0 : product(from, in + 1, from.rank);
    p.stride_out[d] = product(to, d + 1, to.rank);
  }
  const TensorId source = out.linear(x);
  out.step(make_call(KernelId::kStridedCopy, p), {source, out.define(node.outputs[0], false)}, &node);
  ++out.statistics().copies;
  return {};
}

Status lower_cast(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0];
  kernels::cpu::CastParams p;
  p.from = static_cast<std::int32_t>(out.type(x).dtype);
  p.to = static_cast<std::int32_t>(out.type(node.outputs[0]).dtype);
  p.elements = out.shape(x).elements();
  if (p.from == p.to) {
    out.define_same(node.outputs[0], x);
    return {};
  }
  kernels::cpu::OperandBytes bytes;
  if (kernels::cpu::operand_bytes(KernelId::kCast, &p, out.target(), &bytes) != nullptr) {
    bool known = false;
    return lower_generic_node(out, node, &known);
  }
  const TensorId from = out.linear(x);
  out.step(make_call(KernelId::kCast, p), {from, out.define(node.outputs[0], false)}, &node);
  return {};
}

// Any dimensions, any element type: the value everywhere, then the input over it.
Status lower_pad(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  const Result<ir::PadGeometry> geometry = ir::pad_geometry(node, in.tensors());
  if (!geometry) return fail(geometry.error());
  const ir::PadGeometry& g = *geometry;
  if (g.mode != "constant") return fail(Code::kInput, "mode " + g.mode + " outside rows and columns");
  if (in.has(2) && in.constant(2) == nullptr) return fail(Code::kInput, "a value that is not constant");
  const ir::ValueId x = node.inputs[0];
  const kernels::DType type = out.type(x).dtype;
  kernels::cpu::FillParams fill;
  fill.element_bytes = static_cast<std::int32_t>(kernels::size_of(type));
  if (in.has(2)) std::memcpy(&fill.value, in.constant(2)->bytes.data(), kernels::size_of(type));
  fill.elements = g.out.elements();
  Shape extents = out.shape(x);
  std::vector<std::int64_t> from_start, to_start, step;
  for (std::size_t d = 0; d < g.before.size(); ++d) {
    from_start.push_back(std::max<std::int64_t>(0, -g.before[d]));
    to_start.push_back(std::max<std::int64_t>(0, g.before[d]));
    step.push_back(1);
    extents.dims[d] += std::min<std::int64_t>(0, g.before[d]) + std::min<std::int64_t>(0, g.after[d]);
  }
  const TensorId from = out.linear(x);
  const TensorId to = out.define(node.outputs[0], false);
  out.step(make_call(KernelId::kFill, fill), {to}, &node);
  if (extents.elements() > 0) {
    out.step(box(out.shape(x), g.out, type, extents, from_start, step, to_start), {from, to}, &node);
  }
  ++out.statistics().copies;
  return {};
}

// Written over the first value where it dies here: then only the second is ever moved.
Status lower_select(Builder& out, const ir::Node& node) {
  kernels::cpu::SelectParams p;
  p.element_bytes = static_cast<std::int64_t>(kernels::size_of(out.type(node.outputs[0]).dtype));
  p.elements = out.shape(node.outputs[0]).elements();
  const TensorId condition = out.linear(node.inputs[0]), a = out.linear(node.inputs[1]), b = out.linear(node.inputs[2]);
  out.step(make_call(KernelId::kSelect, p), {condition, a, b, out.define(node.outputs[0], false)}, &node);
  return {};
}

}  // namespace

Status lower_movement_node(Builder& out, const ir::Node& node, bool* known) {
  *known = true;
  if (node.op == "Reshape") {
    reshape(out, node.inputs[0], node.outputs[0]);
    return {};
  }
  if (node.op == "Identity") {
    out.define_same(node.outputs[0], node.inputs[0]);
    return {};
  }
  if (node.op == "Transpose") return lower_transpose(out, node);
  if (node.op == "Concat") return lower_concat(out, node);
  if (node.op == "Slice") return lower_slice(out, node);
  if (node.op == "Split") return lower_split(out, node);
  if (node.op == "Gather") return lower_gather(out, node);
  if (node.op == "Expand") return lower_expand(out, node);
  if (node.op == "Cast") return lower_cast(out, node);
  if (node.op == "Pad") return lower_pad(out, node);
  if (node.op == "takt.Select") return lower_select(out, node);
  *known = false;
  return {};
}

}  // namespace takt::lower
