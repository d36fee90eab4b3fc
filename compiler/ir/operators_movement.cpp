#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/movement.h"

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::View;

// Reshape, Squeeze, Unsqueeze, Flatten, Identity: the elements stay where they are.
Status evaluate_copy(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  const std::size_t bytes = static_cast<std::size_t>(out[0].shape.elements()) * kernels::size_of(out[0].dtype);
  if (bytes > 0) std::memcpy(out[0].data, in[0].data, bytes);
  return {};
}

// Settled, they are all a Reshape to numbers.
void settle_reshape(Graph& graph, Node& node) {
  const Shape shape = graph[node.outputs[0]].type->shape;
  const ValueId numbers = graph.add_constant(graph[node.outputs[0]].name + ".shape",
                                             Constant::of(std::span(shape.dims, static_cast<std::size_t>(shape.rank))));
  node.op = "Reshape";
  node.inputs = {node.inputs[0], numbers};
  node.attributes = {{"allowzero", std::int64_t{1}}};
}

Result<Types> infer_reshape(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const std::vector<std::int64_t> wanted, integers_of(in.tensors()[1], "shape"));
  const Shape& x = in.shape(0);
  const bool zero_is_zero = in.node.integer("allowzero", 0) != 0;
  const auto mismatch = [&] {
    std::string text;
    for (const std::int64_t extent : wanted) text += (text.empty() ? "" : ",") + std::to_string(extent);
    return fail(Code::kInput, to_string(x) + " cannot take the shape [" + text + "]");
  };
  if (wanted.size() > kernels::kMaxRank) return mismatch();
  Shape out;
  out.rank = static_cast<int>(wanted.size());
  int free = -1;
  std::int64_t known = 1;
  for (int d = 0; d < out.rank; ++d) {
    std::int64_t extent = wanted[static_cast<std::size_t>(d)];
    if (extent == 0 && !zero_is_zero) {
      if (d >= x.rank) return mismatch();
      extent = x.dims[d];
    }
    if (extent == -1) {
      if (free >= 0) return mismatch();
      free = d;
      continue;
    }
    if (extent < 0 || extent > kMaxElements || (extent > 0 && known > kMaxElements / extent)) return mismatch();
    out.dims[d] = extent;
    known *= extent;
  }
  const std::int64_t elements = x.elements();
  if (free >= 0) {
    if (known == 0 || elements % known != 0) return mismatch();
    out.dims[free] = elements / known;
    known = elements;
  }
  if (known != elements) return mismatch();
  return Types{{in.type(0).dtype, out}};
}

Result<Types> infer_identity(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  return Types{in.type(0)};
}

Result<Types> infer_flatten(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const Shape& x = in.shape(0);
  std::int64_t axis = in.node.integer("axis", 1);
  if (axis < -x.rank || axis > x.rank)
    return fail(Code::kInput, "axis " + std::to_string(axis) + " is outside the rank");
  if (axis < 0) axis += x.rank;
  Shape out{2, {1, 1}};
  for (int d = 0; d < x.rank; ++d) out.dims[d < axis ? 0 : 1] *= x.dims[d];
  return Types{{in.type(0).dtype, out}};
}

// Axes of Squeeze and Unsqueeze (input 1, constant) as marks over `rank` dimensions.
Result<std::vector<bool>> marked_axes(const OperatorInputs& in, int rank) {
  std::vector<bool> marked(static_cast<std::size_t>(rank), false);
  TAKT_ASSIGN(const std::vector<std::int64_t> axes, integers_of(in.tensors()[1], "axes"));
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return fail(Code::kInput, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
    }
    const auto d = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    if (marked[d]) return fail(Code::kInput, "axis " + std::to_string(axis) + " is named twice");
    marked[d] = true;
  }
  return marked;
}

Result<Types> infer_squeeze(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const Shape& x = in.shape(0);
  std::vector<bool> gone;
  if (in.has(1)) {
    TAKT_ASSIGN(gone, marked_axes(in, x.rank));
  } else {
    for (int d = 0; d < x.rank; ++d) gone.push_back(x.dims[d] == 1);
  }
  Shape out;
  for (int d = 0; d < x.rank; ++d) {
    if (!gone[static_cast<std::size_t>(d)]) {
      out.dims[out.rank++] = x.dims[d];
    } else if (x.dims[d] != 1) {
      return fail(Code::kInput, "dimension " + std::to_string(d) + " of " + to_string(x) + " is not 1");
    }
  }
  return Types{{in.type(0).dtype, out}};
}

Result<Types> infer_unsqueeze(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const Shape& x = in.shape(0);
  Shape out;
  const std::int64_t rank = x.rank + in.shape(1).elements();
  if (rank > kernels::kMaxRank) return fail(Code::kInput, "rank " + std::to_string(rank) + " is above 8");
  out.rank = static_cast<int>(rank);
  TAKT_ASSIGN(const std::vector<bool> fresh, marked_axes(in, out.rank));
  int from = 0;
  for (int d = 0; d < out.rank; ++d) out.dims[d] = fresh[static_cast<std::size_t>(d)] ? 1 : x.dims[from++];
  return Types{{in.type(0).dtype, out}};
}

// perm, or the reversed order where it is absent.
Result<std::vector<int>> permutation(const Node& node, int rank) {
  const std::vector<std::int64_t> given = node.integers("perm");
  std::vector<int> perm;
  perm.reserve(static_cast<std::size_t>(rank));
  for (int d = 0; d < rank; ++d) perm.push_back(rank - 1 - d);
  if (given.empty()) return perm;
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given.size() != perm.size() || given[i] < 0 || given[i] >= rank || seen[static_cast<std::size_t>(given[i])]) {
      return fail(Code::kInput, "attribute perm is no permutation of " + std::to_string(rank) + " dimensions");
    }
    seen[static_cast<std::size_t>(given[i])] = true;
    perm[i] = static_cast<int>(given[i]);
  }
  return perm;
}

Result<Types> infer_transpose(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const Shape& x = in.shape(0);
  TAKT_ASSIGN(const std::vector<int> perm, permutation(in.node, x.rank));
  Shape out = x;
  for (int d = 0; d < x.rank; ++d) out.dims[d] = x.dims[perm[static_cast<std::size_t>(d)]];
  return Types{{in.type(0).dtype, out}};
}

Status evaluate_transpose(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const std::vector<int> perm, permutation(node, in[0].shape.rank));
  const View dense = kernels::reference::row_major(in[0].shape);
  View view;
  for (std::size_t d = 0; d < perm.size(); ++d) view.strides[d] = dense.strides[perm[d]];
  kernels::reference::read_view(in[0], view, out[0]);
  return {};
}

void settle_transpose(Graph& graph, Node& node) {
  const auto perm = permutation(node, graph[node.inputs[0]].type->shape.rank);
  node.attributes["perm"] = std::vector<std::int64_t>(perm->begin(), perm->end());
}

Result<Types> infer_concat(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  Type out = in.type(0);
  TAKT_ASSIGN(const int axis, axis_of(in.node, "axis", 0, out.shape.rank));
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (!in.has(i)) return fail(Code::kInput, "input " + std::to_string(i) + " is missing");
    Type part = in.type(i);
    if (part.shape.rank == out.shape.rank) {
      const std::int64_t extent = part.shape.dims[axis];
      part.shape.dims[axis] = out.shape.dims[axis];
      if (part == out) {
        out.shape.dims[axis] += extent;
        continue;
      }
    }
    return fail(Code::kInput, "input " + std::to_string(i) + " is " + to_string(in.type(i)) + ", the ones before " +
                                  to_string(in.type(0)) + ", to be joined along dimension " + std::to_string(axis));
  }
  return Types{out};
}

Status evaluate_concat(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const int axis, axis_of(node, "axis", 0, out[0].shape.rank));
  View view = kernels::reference::row_major(out[0].shape);
  for (const Tensor& part : in) {
    kernels::reference::write_view(part, view, out[0]);
    view.offset += part.shape.dims[axis] * view.strides[axis];
  }
  return {};
}

void settle_concat(Graph& graph, Node& node) { settle_axis(graph, node, 0); }

Result<Types> infer_split(const OperatorInputs& in) {
  TAKT_ASSIGN(const std::vector<std::int64_t> sizes, split_sizes(in.node, in.tensors()));
  TAKT_ASSIGN(const int axis, axis_of(in.node, "axis", 0, in.shape(0).rank));
  Types out(sizes.size(), in.type(0));
  for (std::size_t i = 0; i < sizes.size(); ++i) out[i].shape.dims[axis] = sizes[i];
  return out;
}

Status evaluate_split(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const int axis, axis_of(node, "axis", 0, in[0].shape.rank));
  View view = kernels::reference::row_major(in[0].shape);
  for (const Tensor& part : out) {
    kernels::reference::read_view(in[0], view, part);
    view.offset += part.shape.dims[axis] * view.strides[axis];
  }
  return {};
}

void settle_split(Graph& graph, Node& node) {
  settle_axis(graph, node, 0);
  const auto sizes = split_sizes(node, OperatorInputs{graph, node}.tensors());
  const ValueId numbers = graph.add_constant(graph[node.outputs[0]].name + ".sizes", Constant::of(*sizes));
  node.inputs = {node.inputs[0], numbers};
  node.attributes.erase("num_outputs");
}

Result<Types> infer_slice(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const SliceGeometry g, slice_geometry(in.node, in.tensors()));
  return Types{{in.type(0).dtype, g.out}};
}

Status evaluate_slice(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const SliceGeometry g, slice_geometry(node, in));
  View view = kernels::reference::row_major(in[0].shape);
  for (std::size_t d = 0; d < g.start.size(); ++d) {
    view.offset += g.start[d] * view.strides[d];
    view.strides[d] *= g.step[d];
  }
  kernels::reference::read_view(in[0], view, out[0]);
  return {};
}

Result<Types> infer_gather(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 1, {DType::kI64, DType::kI32}));
  const Shape& x = in.shape(0);
  const Shape& indices = in.shape(1);
  TAKT_ASSIGN(const int axis, axis_of(in.node, "axis", 0, x.rank));
  if (x.rank - 1 + indices.rank > kernels::kMaxRank) return fail(Code::kInput, "the rank of the result is above 8");
  Shape out;
  for (int d = 0; d < axis; ++d) out.dims[out.rank++] = x.dims[d];
  for (int d = 0; d < indices.rank; ++d) out.dims[out.rank++] = indices.dims[d];
  for (int d = axis + 1; d < x.rank; ++d) out.dims[out.rank++] = x.dims[d];
  return Types{{in.type(0).dtype, out}};
}

// Indices counted from 0; an error names the first that is outside.
Result<std::vector<std::int64_t>> gather_indices(Tensor indices, std::int64_t extent) {
  indices.shape = Shape{1, {indices.shape.elements()}};
  TAKT_ASSIGN(std::vector<std::int64_t> list, integers_of(indices, "indices"));
  for (std::int64_t& i : list) {
    if (i < -extent || i >= extent) {
      return fail(Code::kInput, "index " + std::to_string(i) + " is outside an extent of " + std::to_string(extent));
    }
    if (i < 0) i += extent;
  }
  return list;
}

Status evaluate_gather(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const int axis, axis_of(node, "axis", 0, in[0].shape.rank));
  TAKT_ASSIGN(const std::vector<std::int64_t> indices, gather_indices(in[1], in[0].shape.dims[axis]));
  kernels::reference::gather(in[0], indices, axis, out[0]);
  return {};
}

// Constant indices become i64 from 0; wrong ones are left for the evaluation to refuse.
void settle_gather(Graph& graph, Node& node) {
  settle_axis(graph, node, 0);
  const Constant* given = OperatorInputs{graph, node}.constant(1);
  if (given == nullptr) return;
  const std::int64_t extent = graph[node.inputs[0]].type->shape.dims[node.integer("axis", 0)];
  const auto indices = gather_indices(given->tensor(), extent);
  if (!indices) return;
  Constant settled = Constant::of(*indices);
  settled.shape = given->shape;
  if (given->dtype == DType::kI64 && given->bytes == settled.bytes) return;
  node.inputs[1] = graph.add_constant(graph[node.inputs[1]].name + ".settled", std::move(settled));
}

Result<Types> infer_expand(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const std::vector<std::int64_t> wanted, integers_of(in.tensors()[1], "shape"));
  if (wanted.size() > kernels::kMaxRank) return fail(Code::kInput, "the rank of the result is above 8");
  Shape shape;
  for (const std::int64_t extent : wanted) {
    if (extent < 0) return fail(Code::kInput, "shape holds " + std::to_string(extent));
    shape.dims[shape.rank++] = extent;
  }
  TAKT_ASSIGN(const Shape out, broadcast(in.shape(0), shape));
  return Types{{in.type(0).dtype, out}};
}

Status evaluate_expand(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  const View dense = kernels::reference::row_major(in[0].shape);
  View view;
  const int more = out[0].shape.rank - in[0].shape.rank;
  for (int d = 0; d < in[0].shape.rank; ++d) view.strides[d + more] = in[0].shape.dims[d] == 1 ? 0 : dense.strides[d];
  kernels::reference::read_view(in[0], view, out[0]);
  return {};
}

void settle_expand(Graph& graph, Node& node) {
  const Shape shape = graph[node.outputs[0]].type->shape;
  node.inputs[1] = graph.add_constant(graph[node.outputs[0]].name + ".shape",
                                      Constant::of(std::span(shape.dims, static_cast<std::size_t>(shape.rank))));
}

Result<Types> infer_pad(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  if (in.has(2)) {
    TAKT_RETURN_IF_ERROR(expect_type(in, 2, {in.type(0).dtype}));
    if (in.shape(2).elements() != 1) return fail(Code::kInput, "the pad value is " + to_string(in.type(2)));
  }
  TAKT_ASSIGN(const PadGeometry g, pad_geometry(in.node, in.tensors()));
  return Types{{in.type(0).dtype, g.out}};
}

Status evaluate_pad(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const PadGeometry g, pad_geometry(node, in));
  std::vector<std::vector<std::int64_t>> indices;
  indices.reserve(static_cast<std::size_t>(in[0].shape.rank));
  for (int d = 0; d < in[0].shape.rank; ++d) indices.push_back(g.indices(d, in[0].shape.dims[d]));
  const std::byte zero[8] = {};
  const void* fill = in.size() > 2 && in[2].data != nullptr ? in[2].data : zero;
  kernels::reference::read_indexed(in[0], indices, fill, out[0]);
  return {};
}

void settle_pad(Graph& /*graph*/, Node& node) { node.attributes["mode"] = node.text("mode", "constant"); }

Result<Types> infer_shape(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const std::int64_t rank = in.shape(0).rank;
  const auto place = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const std::int64_t start = place(in.node.integer("start", 0));
  const std::int64_t end = place(in.node.integer("end", rank));
  return Types{{DType::kI64, Shape{1, {std::max<std::int64_t>(end - start, 0)}}}};
}

Status evaluate_shape(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  const std::int64_t rank = in[0].shape.rank;
  const std::int64_t given = node.integer("start", 0);
  const std::int64_t start = std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, rank);
  for (std::int64_t i = 0; i < out[0].shape.elements(); ++i) out[0].as<std::int64_t>()[i] = in[0].shape.dims[start + i];
  return {};
}

// The value is a constant of one element; f32 0 where absent.
Constant fill_value(const Node& node) {
  const auto found = node.attributes.find("value");
  if (found != node.attributes.end()) {
    const auto* value = std::get_if<std::shared_ptr<const Constant>>(&found->second);
    if (value != nullptr && *value != nullptr) return **value;
  }
  return Constant::scalar(0);
}

Result<Types> infer_constant_of_shape(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const std::vector<std::int64_t> wanted, integers_of(in.tensors()[0], "shape"));
  if (wanted.size() > kernels::kMaxRank) return fail(Code::kInput, "the rank of the result is above 8");
  Shape shape;
  for (const std::int64_t extent : wanted) shape.dims[shape.rank++] = extent;
  const Constant value = fill_value(in.node);
  if (value.shape.elements() != 1) {
    return fail(Code::kInput, "attribute value has shape " + to_string(value.shape) + ", expected one element");
  }
  return Types{{value.dtype, shape}};
}

Status evaluate_constant_of_shape(const Node& node, std::span<const Tensor> /*in*/, std::span<const Tensor> out) {
  const Constant value = fill_value(node);
  const Tensor one{value.dtype, Shape{}, value.tensor().data};
  kernels::reference::read_view(one, View{}, out[0]);
  return {};
}

// start, limit, delta as scalars of one type. The number of elements has to be known, so all three are constant.
template <class T>
Result<std::int64_t> length_of(std::span<const Tensor> in) {
  const auto start = static_cast<double>(*in[0].as<T>());
  const auto limit = static_cast<double>(*in[1].as<T>());
  const auto delta = static_cast<double>(*in[2].as<T>());
  const double length = std::ceil((limit - start) / delta);  // exact for whole numbers below 2^53
  if (!(length <= static_cast<double>(kMaxElements)) || !(std::fabs(start) < 0x1p53) || !(std::fabs(limit) < 0x1p53)) {
    return fail(Code::kInput, "the range is not usable");
  }
  return length > 0 ? static_cast<std::int64_t>(length) : 0;
}

Result<std::int64_t> range_length(std::span<const Tensor> in) {
  for (const Tensor& t : in) {
    if (t.dtype != in[0].dtype || t.shape.elements() != 1) {
      return fail(Code::kInput, "expects three scalars of one type, found " + to_string(Type{t.dtype, t.shape}));
    }
    if (t.data == nullptr) return fail(Code::kInput, "a limit is known only at run time; it has to be a constant");
  }
  switch (in[0].dtype) {
    case DType::kF32: return length_of<float>(in);
    case DType::kI64: return length_of<std::int64_t>(in);
    case DType::kI32: return length_of<std::int32_t>(in);
    default: return fail(Code::kInput, "expects f32, i64 or i32, found " + to_string(Type{in[0].dtype, in[0].shape}));
  }
}

Result<Types> infer_range(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const std::int64_t length, range_length(in.tensors()));
  return Types{{in.type(0).dtype, Shape{1, {length}}}};
}

template <class T>
void fill_range(std::span<const Tensor> in, const Tensor& out) {
  for (std::int64_t i = 0; i < out.shape.elements(); ++i) {
    // The result lies between start and limit: nothing overflows.
    out.as<T>()[i] = static_cast<T>(*in[0].as<T>() + static_cast<T>(i) * *in[2].as<T>());
  }
}

Status evaluate_range(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype == DType::kF32) fill_range<float>(in, out[0]);
  if (in[0].dtype == DType::kI64) fill_range<std::int64_t>(in, out[0]);
  if (in[0].dtype == DType::kI32) fill_range<std::int32_t>(in, out[0]);
  return {};
}

// Output channel i is channel channels[i] of the input. Made by compiler/passes/channel_gather.cpp.
Result<Types> infer_channel_gather(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 0, 4));
  Type out = in.type(0);
  const std::vector<std::int64_t> channels = in.node.integers("channels");
  for (const std::int64_t c : channels) {
    if (c < 0 || c >= out.shape.dims[1]) {
      return fail(Code::kInput, "channel " + std::to_string(c) + " is outside " + to_string(out));
    }
  }
  out.shape.dims[1] = static_cast<std::int64_t>(channels.size());
  return Types{out};
}

Status evaluate_channel_gather(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::gather(in[0], node.integers("channels"), 1, out[0]);
  return {};
}

constexpr std::size_t kMany = 4096;  // inputs of a concat

constexpr Operator kOperators[] = {
    {"Concat", 1, kMany, infer_concat, evaluate_concat, nullptr, settle_concat},
    {"ConstantOfShape", 1, 1, infer_constant_of_shape, evaluate_constant_of_shape, nullptr, nullptr},
    {"Expand", 2, 2, infer_expand, evaluate_expand, nullptr, settle_expand},
    {"Flatten", 1, 1, infer_flatten, evaluate_copy, nullptr, settle_reshape},
    {"Gather", 2, 2, infer_gather, evaluate_gather, nullptr, settle_gather},
    {"Identity", 1, 1, infer_identity, evaluate_copy, nullptr, nullptr},
    {"Pad", 2, 4, infer_pad, evaluate_pad, nullptr, settle_pad},
    {"Range", 3, 3, infer_range, evaluate_range, nullptr, nullptr},
    {"Reshape", 2, 2, infer_reshape, evaluate_copy, nullptr, settle_reshape},
    {"Shape", 1, 1, infer_shape, evaluate_shape, nullptr, nullptr},
    {"Slice", 3, 5, infer_slice, evaluate_slice, nullptr, nullptr},
    {"Split", 1, 2, infer_split, evaluate_split, nullptr, settle_split},
    {"Squeeze", 1, 2, infer_squeeze, evaluate_copy, nullptr, settle_reshape},
    {"Transpose", 1, 1, infer_transpose, evaluate_transpose, nullptr, settle_transpose},
    {"Unsqueeze", 2, 2, infer_unsqueeze, evaluate_copy, nullptr, settle_reshape},
    {"takt.ChannelGather", 1, 1, infer_channel_gather, evaluate_channel_gather, nullptr, nullptr},
};

}  // namespace

std::span<const Operator> movement_operators() { return kOperators; }

}  // namespace takt::ir
