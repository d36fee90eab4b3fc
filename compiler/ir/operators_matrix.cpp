#include <algorithm>

#include "compiler/ir/generic.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/gemm.h"
#include "kernels/reference/reduce.h"
#include "kernels/reference/softmax.h"

namespace takt::ir {
namespace {

using kernels::Tensor;

Status f32(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.has(i)) TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kF32}));
  }
  return {};
}

kernels::reference::Gemm gemm_attributes(const Node& node) {
  return {node.integer("transA", 0) != 0, node.integer("transB", 0) != 0, node.number("alpha", 1),
          node.number("beta", 1)};
}

Result<Types> infer_gemm(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(f32(in));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 0, 2));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 1, 2));
  const auto g = gemm_attributes(in.node);
  const std::int64_t* a = in.shape(0).dims;
  const std::int64_t* b = in.shape(1).dims;
  if (a[g.transpose_a ? 0 : 1] != b[g.transpose_b ? 1 : 0]) {
    return fail(Code::kInput, "matrices " + to_string(in.shape(0)) + " and " + to_string(in.shape(1)) + " do not fit" +
                                  (g.transpose_a || g.transpose_b ? " when transposed" : ""));
  }
  const Type out{DType::kF32, Shape{2, {a[g.transpose_a ? 1 : 0], b[g.transpose_b ? 0 : 1]}}};
  if (in.has(2)) {
    const auto both = broadcast(in.shape(2), out.shape);
    if (!both || !(*both == out.shape)) {
      return fail(Code::kInput, "C is " + to_string(in.type(2)) + ", the result " + to_string(out));
    }
  }
  return Types{out};
}

Status evaluate_gemm(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::gemm(in[0], in[1], in.size() > 2 ? in[2] : Tensor{}, gemm_attributes(node), out[0]);
  return {};
}

std::uint64_t gemm_flops(const OperatorInputs& in, std::span<const Type> out) {
  const bool transposed = in.node.integer("transA", 0) != 0;
  return 2 * elements_of(out[0]) * static_cast<std::uint64_t>(in.shape(0).dims[transposed ? 0 : 1]);
}

void settle_gemm(Graph& /*graph*/, Node& node) {
  const auto g = gemm_attributes(node);
  node.attributes = {{"alpha", g.alpha},
                     {"beta", g.beta},
                     {"transA", std::int64_t{g.transpose_a}},
                     {"transB", std::int64_t{g.transpose_b}}};
}

// A vector is a matrix of one row on the left and of one column on the right (numpy.matmul).
Shape as_matrix(const Shape& shape, bool left) {
  if (shape.rank != 1) return shape;
  return left ? Shape{2, {1, shape.dims[0]}} : Shape{2, {shape.dims[0], 1}};
}

Shape stack_of(const Shape& matrices) {
  Shape stack = matrices;
  stack.rank -= 2;
  return stack;
}

Result<Types> infer_matmul(const OperatorInputs& in) {
  if (in.type(0).dtype != DType::kF32) return infer_generic(in);
  TAKT_RETURN_IF_ERROR(f32(in));
  if (in.shape(0).rank == 0 || in.shape(1).rank == 0) return fail(Code::kInput, "a scalar is no matrix");
  const Shape a = as_matrix(in.shape(0), true);
  const Shape b = as_matrix(in.shape(1), false);
  if (a.dims[a.rank - 1] != b.dims[b.rank - 2]) {
    return fail(Code::kInput, "matrices " + to_string(in.shape(0)) + " and " + to_string(in.shape(1)) + " do not fit");
  }
  TAKT_ASSIGN(Shape out, broadcast(stack_of(a), stack_of(b)));
  if (in.shape(0).rank > 1) out.dims[out.rank++] = a.dims[a.rank - 2];
  if (in.shape(1).rank > 1) out.dims[out.rank++] = b.dims[b.rank - 1];
  return Types{{DType::kF32, out}};
}

Status evaluate_matmul(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype != DType::kF32) return evaluate_generic(node, in, out);
  Tensor a = in[0];
  Tensor b = in[1];
  Tensor y = out[0];
  a.shape = as_matrix(a.shape, true);
  b.shape = as_matrix(b.shape, false);
  TAKT_ASSIGN(y.shape, broadcast(stack_of(a.shape), stack_of(b.shape)));
  y.shape.dims[y.shape.rank++] = a.shape.dims[a.shape.rank - 2];
  y.shape.dims[y.shape.rank++] = b.shape.dims[b.shape.rank - 1];
  kernels::reference::gemm(a, b, Tensor{}, {}, y);
  return {};
}

std::uint64_t matmul_flops(const OperatorInputs& in, std::span<const Type> out) {
  const Shape& a = in.shape(0);
  return 2 * elements_of(out[0]) * static_cast<std::uint64_t>(a.dims[a.rank - 1]);
}

// Axes of a reduction; none named: all.
Result<std::vector<bool>> reduced_axes(const Node& node, int rank) {
  std::vector<bool> reduced(kernels::kMaxRank, false);
  const std::vector<std::int64_t> axes = node.integers("axes");
  for (int d = 0; axes.empty() && d < rank; ++d) reduced[static_cast<std::size_t>(d)] = true;
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return fail(Code::kInput, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
    }
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

Result<Types> infer_reduce_mean(const OperatorInputs& in) {
  if (in.type(0).dtype != DType::kF32) return infer_generic(in);
  TAKT_RETURN_IF_ERROR(f32(in));
  const Shape& x = in.shape(0);
  TAKT_ASSIGN(const std::vector<bool> reduced, reduced_axes(in.node, x.rank));
  const bool keep = in.node.integer("keepdims", 1) != 0;
  Shape out;
  for (int d = 0; d < x.rank; ++d) {
    if (!reduced[static_cast<std::size_t>(d)]) {
      out.dims[out.rank++] = x.dims[d];
    } else if (keep) {
      out.dims[out.rank++] = 1;
    }
  }
  return Types{{DType::kF32, out}};
}

Status evaluate_reduce_mean(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype != DType::kF32) return evaluate_generic(node, in, out);
  TAKT_ASSIGN(const std::vector<bool> axes, reduced_axes(node, in[0].shape.rank));
  bool reduced[kernels::kMaxRank] = {};
  std::copy(axes.begin(), axes.end(), reduced);
  kernels::reference::reduce_mean(in[0], reduced, out[0]);
  return {};
}

std::uint64_t input_flops(const OperatorInputs& in, std::span<const Type> /*out*/) { return elements_of(in.type(0)); }

void settle_reduce_mean(Graph& graph, Node& node) {
  const auto reduced = reduced_axes(node, graph[node.inputs[0]].type->shape.rank);
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < reduced->size(); ++d) {
    if ((*reduced)[d]) axes.push_back(static_cast<std::int64_t>(d));
  }
  node.attributes = {{"axes", axes}, {"keepdims", node.integer("keepdims", 1)}};
}

Result<Types> infer_softmax(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(f32(in));
  TAKT_RETURN_IF_ERROR(axis_of(in.node, "axis", -1, in.shape(0).rank));
  return Types{in.type(0)};
}

Status evaluate_softmax(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const int axis, axis_of(node, "axis", -1, in[0].shape.rank));
  kernels::reference::softmax(in[0], axis, out[0]);
  return {};
}

Result<Types> infer_layer_norm(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(f32(in));
  const Shape& x = in.shape(0);
  if (x.rank == 0) return fail(Code::kInput, "a scalar has no last dimension");
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.has(i) && !(in.shape(i) == Shape{1, {x.dims[x.rank - 1]}})) {
      return fail(Code::kInput, "scale and bias have one element for each of the last dimension of " + to_string(x) +
                                    ", not " + to_string(in.shape(i)));
    }
  }
  return Types{in.type(0)};
}

Status evaluate_layer_norm(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::layer_norm(in[0], in.size() > 1 ? in[1] : Tensor{}, in.size() > 2 ? in[2] : Tensor{},
                                 node.number("epsilon", 0), out[0]);
  return {};
}

std::uint64_t layer_norm_flops(const OperatorInputs& /*in*/, std::span<const Type> out) {
  return 8 * elements_of(out[0]);
}

// Maximum, difference, exponential (about 20 operations), sum, division.
std::uint64_t softmax_flops(const OperatorInputs& /*in*/, std::span<const Type> out) {
  return 24 * elements_of(out[0]);
}

void settle_softmax(Graph& graph, Node& node) { settle_axis(graph, node, -1); }

constexpr Operator kOperators[] = {
    {"Gemm", 2, 3, infer_gemm, evaluate_gemm, gemm_flops, settle_gemm},
    {"MatMul", 2, 2, infer_matmul, evaluate_matmul, matmul_flops, nullptr},
    {"ReduceMean", 1, 1, infer_reduce_mean, evaluate_reduce_mean, input_flops, settle_reduce_mean},
    {"takt.LayerNorm", 1, 3, infer_layer_norm, evaluate_layer_norm, layer_norm_flops, nullptr},
    {"Softmax", 1, 1, infer_softmax, evaluate_softmax, softmax_flops, settle_softmax},
};

}  // namespace

std::span<const Operator> matrix_operators() { return kOperators; }

}  // namespace takt::ir
