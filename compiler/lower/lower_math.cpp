// Elementwise operators on either form, softmax, means and matrices.

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {
namespace {

using kernels::cpu::Activation;
using kernels::cpu::Binary;
using kernels::cpu::BinaryParams;
using kernels::cpu::Call;
using kernels::cpu::GemmBias;
using kernels::cpu::GemmParams;
using kernels::cpu::KernelId;
using kernels::cpu::make_call;
using kernels::cpu::Operand2;
using kernels::cpu::Unary;
using kernels::cpu::UnaryParams;

Status only_f32(const Builder& out, const ir::Node& node) {
  for (const ir::ValueId value : node.inputs) {
    if (value != ir::kNoValue && out.type(value).dtype != kernels::DType::kF32) {
      return fail(Code::kInput, "element type " + std::string(kernels::name_of(out.type(value).dtype)));
    }
  }
  return {};
}

float scalar(const Builder& out, const ir::Node& node, std::size_t input, float otherwise) {
  if (input >= node.inputs.size() || node.inputs[input] == ir::kNoValue) return otherwise;
  const ir::Constant* constant = out.constant_of(node.inputs[input]);
  if (constant == nullptr) return otherwise;  // refused by lower_unary
  float value = 0;
  std::memcpy(&value, constant->bytes.data(), sizeof value);
  return value;
}

// Image extents of a tensor that lies blocked, or its elements in a row.
template <class Params>
void fill_elements(Params& p, const Shape& shape, bool blocked) {
  p.blocked = blocked ? 1 : 0;
  if (!blocked) {
    p.pixels = shape.elements();
    return;
  }
  p.n = static_cast<std::int32_t>(shape.dims[0]);
  p.c = static_cast<std::int32_t>(shape.dims[1]);
  p.pixels = shape.dims[2] * shape.dims[3];
}

std::optional<UnaryParams> unary_params(const Builder& out, const ir::Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string& op = node.op;
  UnaryParams p;
  const auto activation = [&](Activation a, float alpha = 0, float beta = 0) {
    p.activation = a;
    p.alpha = alpha;
    p.beta = beta;
    return p;
  };
  if (op == "Relu") return activation(Activation::kRelu);
  if (op == "LeakyRelu") return activation(Activation::kLeaky, node.number("alpha", 0.01F));
  if (op == "Clip")
    return activation(Activation::kClip, scalar(out, node, 1, -kInfinity), scalar(out, node, 2, kInfinity));
  if (op == "Sigmoid") return activation(Activation::kSigmoid);
  if (op == "HardSigmoid") {
    return activation(Activation::kHardSigmoid, node.number("alpha", 0.2F), node.number("beta", 0.5F));
  }
  if (op == "HardSwish") return activation(Activation::kHardSwish);
  if (op == "takt.Silu") return activation(Activation::kSilu);
  if (op == "Tanh") return activation(Activation::kTanh);
  if (op == "Exp")
    p.op = Unary::kExp;
  else if (op == "Sqrt")
    p.op = Unary::kSqrt;
  else if (op == "Abs")
    p.op = Unary::kAbs;
  else if (op == "Neg")
    p.op = Unary::kNeg;
  else if (op == "Erf")
    p.op = Unary::kErf;
  else
    return std::nullopt;
  return p;
}

Status lower_unary(Builder& out, const ir::Node& node, UnaryParams p) {
  TAKT_RETURN_IF_ERROR(only_f32(out, node));
  if (node.op == "Clip") {
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != ir::kNoValue && out.constant_of(node.inputs[i]) == nullptr) {
        return fail(Code::kInput, "limits that are not constant");
      }
    }
  }
  const bool blocked = out.has_blocked(node.inputs[0]);
  fill_elements(p, out.shape(node.inputs[0]), blocked);
  const TensorId x = blocked ? out.blocked(node.inputs[0]) : out.linear(node.inputs[0]);
  out.step(make_call(KernelId::kUnary, p), {x, out.define(node.outputs[0], blocked)}, &node);
  return {};
}

std::optional<Binary> binary_of(const std::string& op) {
  if (op == "Add") return Binary::kAdd;
  if (op == "Sub") return Binary::kSub;
  if (op == "Mul") return Binary::kMul;
  if (op == "Div") return Binary::kDiv;
  if (op == "Min") return Binary::kMin;
  if (op == "Max") return Binary::kMax;
  return std::nullopt;
}

// How the second operand of a blocked step repeats; nothing: not at all in a way that the kernel knows.
std::optional<Operand2> repeats(const Shape& b, const Shape& y) {
  if (b == y) return Operand2::kSame;
  if (b.elements() == 1) return Operand2::kScalar;
  const int missing = 4 - b.rank;  // leading extents of 1
  const auto dim = [&](int d) { return d < missing ? 1 : b.dims[d - missing]; };
  if (b.rank <= 4 && dim(0) == 1 && dim(1) == y.dims[1] && dim(2) == 1 && dim(3) == 1) return Operand2::kChannel;
  return std::nullopt;
}

Status lower_binary(Builder& out, const ir::Node& node, Binary op) {
  TAKT_RETURN_IF_ERROR(only_f32(out, node));
  ir::ValueId a = node.inputs[0], b = node.inputs[1];
  const Shape& y = out.shape(node.outputs[0]);
  const auto worth = [&](ir::ValueId v) {
    return out.shape(v) == y && out.constant_of(v) == nullptr && out.has_blocked(v);
  };
  if (worth(a) || worth(b)) {
    BinaryParams p;
    p.op = op;
    if (!(out.shape(a) == y)) {
      std::swap(a, b);
      p.swapped = 1;
    }
    if (const auto second = out.shape(a) == y ? repeats(out.shape(b), y) : std::nullopt) {
      p.second = *second;
      fill_elements(p, y, true);
      // One value per channel is a blocked image of one pixel. Anything that runs linear gives its floats in a row,
      // which is the same only without holes.
      TensorId other = kAbsent;
      if (p.second == Operand2::kSame) other = out.blocked(b);
      if (p.second == Operand2::kScalar) {
        // A scalar is f32; in a blocked tensor of f32 it is the first number.
        const bool as_blocked =
            out.constant_of(b) == nullptr && out.has_blocked(b) && out.blocked_type() == kernels::DType::kF32;
        other = as_blocked ? out.blocked(b) : out.linear(b);
      }
      if (p.second == Operand2::kChannel && out.shape(b).rank == 4) other = out.blocked(b);
      if (p.second == Operand2::kChannel && out.shape(b).rank < 4 && out.constant_of(b) != nullptr) {
        const std::vector<std::byte>& bytes = out.constant_of(b)->bytes;
        std::vector<float> values(static_cast<std::size_t>(out.blocks_of(y.dims[1]) * out.block()), 0.0F);
        std::memcpy(values.data(), bytes.data(), bytes.size());
        other = out.weights(out.graph()[b].name, out.stored(values));
      }
      if (other != kAbsent) {
        const TensorId first = out.blocked(a);
        out.step(make_call(KernelId::kBinary, p), {first, other, out.define(node.outputs[0], true)}, &node);
        return {};
      }
    }
    a = node.inputs[0];
    b = node.inputs[1];
  }
  bool swapped = false;
  Call call = kernels::cpu::make_binary(op, out.shape(a), out.shape(b), y, &swapped);
  if (swapped) std::swap(a, b);
  const TensorId first = out.linear(a), second = out.linear(b);
  out.step(std::move(call), {first, second, out.define(node.outputs[0], false)}, &node);
  return {};
}

// [outer][axis][inner] around dimensions [axis, axis + count).
kernels::cpu::SoftmaxParams around(const Shape& shape, int axis, int count) {
  kernels::cpu::SoftmaxParams p;
  for (int d = 0; d < shape.rank; ++d) (d < axis ? p.outer : d < axis + count ? p.axis : p.inner) *= shape.dims[d];
  return p;
}

Status lower_softmax(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0];
  const Shape& shape = out.shape(x);
  TAKT_ASSIGN(const int axis, ir::axis_of(node, "axis", -1, shape.rank));
  if (axis == 1 && out.has_blocked(x) && out.constant_of(x) == nullptr) {
    const kernels::cpu::ReorderParams p{static_cast<std::int32_t>(shape.dims[0]),
                                        static_cast<std::int32_t>(shape.dims[1]), shape.dims[2] * shape.dims[3]};
    const TensorId from = out.blocked(x);
    out.step(make_call(KernelId::kSoftmaxChannels, p), {from, out.define(node.outputs[0], true)}, &node);
    return {};
  }
  const TensorId from = out.linear(x);
  out.step(make_call(KernelId::kSoftmax, around(shape, axis, 1)), {from, out.define(node.outputs[0], false)}, &node);
  return {};
}

// The mean over all pixels of a blocked image, or over neighbouring dimensions of a row-major tensor.
Status lower_reduce_mean(Builder& out, const ir::Node& node) {
  const ir::ValueId x = node.inputs[0];
  const Shape& shape = out.shape(x);
  const std::vector<std::int64_t> axes = node.integers("axes");
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] != axes[i - 1] + 1) return fail(Code::kInput, "axes that are not neighbours");
  }
  if (axes.empty()) return fail(Code::kInput, "no axes");
  const ir::Type& type = out.type(node.outputs[0]);
  if (shape.rank == 4 && axes == std::vector<std::int64_t>{2, 3} && out.has_blocked(x) &&
      out.constant_of(x) == nullptr && type.shape.rank == 4) {
    const kernels::cpu::ReorderParams p{static_cast<std::int32_t>(shape.dims[0]),
                                        static_cast<std::int32_t>(shape.dims[1]), shape.dims[2] * shape.dims[3]};
    const TensorId from = out.blocked(x);
    out.step(make_call(KernelId::kGlobalAveragePool, p), {from, out.define(node.outputs[0], true)}, &node);
    return {};
  }
  const TensorId from = out.linear(x);
  out.step(
      make_call(KernelId::kReduceMean, around(shape, static_cast<int>(axes.front()), static_cast<int>(axes.size()))),
      {from, out.define(node.outputs[0], false)}, &node);
  return {};
}

Status lower_layer_norm(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  const Shape& shape = in.shape(0);
  kernels::cpu::LayerNormParams p;
  p.axis = shape.dims[shape.rank - 1];
  p.outer = shape.elements() / p.axis;
  p.epsilon = node.number("epsilon", 0);
  p.scale = in.has(1) ? 1 : 0;
  p.bias = in.has(2) ? 1 : 0;
  const TensorId x = out.linear(node.inputs[0]);
  const TensorId scale = in.has(1) ? out.linear(node.inputs[1]) : kAbsent;
  const TensorId bias = in.has(2) ? out.linear(node.inputs[2]) : kAbsent;
  out.step(make_call(KernelId::kLayerNorm, p), {x, scale, bias, out.define(node.outputs[0], false)}, &node);
  return {};
}

// Constants as the kernel wants them: every element times a factor; of a matrix, rows and columns exchanged. The
// product by 1 is left out, as the reference does.
ir::Constant prepared(const ir::Constant& from, bool transpose, float factor) {
  ir::Constant to = from;
  std::vector<float> plain(from.bytes.size() / sizeof(float)), result(plain.size());
  std::memcpy(plain.data(), from.bytes.data(), from.bytes.size());
  const auto rows = static_cast<std::size_t>(from.shape.dims[0]);
  const auto columns = static_cast<std::size_t>(from.shape.dims[1]);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const float value = factor == 1 ? plain[i] : factor * plain[i];
    result[transpose ? i % columns * rows + i / columns : i] = value;
  }
  if (transpose) std::swap(to.shape.dims[0], to.shape.dims[1]);
  std::memcpy(to.bytes.data(), result.data(), to.bytes.size());
  return to;
}

TensorId row_major(Builder& out, ir::ValueId value, bool transpose, const ir::Node& node) {
  const TensorId from = out.linear(value);
  if (!transpose) return from;
  ir::Type type = out.type(value);
  std::swap(type.shape.dims[0], type.shape.dims[1]);
  constexpr int kSwap[] = {1, 0};
  const TensorId to = out.temporary(out.graph()[value].name + ":transposed", type);
  out.step(kernels::cpu::make_transpose(out.shape(value), kSwap, type.dtype), {from, to}, &node);
  ++out.statistics().copies;
  return to;
}

Status lower_gemm(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  const float alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  const bool transpose_a = node.integer("transA", 0) != 0, transpose_b = node.integer("transB", 0) != 0;
  const Shape& y = out.shape(node.outputs[0]);
  GemmParams p;
  p.m = y.dims[0];
  p.n = y.dims[1];
  p.k = in.shape(0).dims[transpose_a ? 0 : 1];
  p.batch_a = p.batch_b = 0;
  if (p.k == 0) return fail(Code::kInput, "a sum over no elements (K = 0)");
  const ir::Constant* b = in.constant(1);
  const ir::Constant* c = in.constant(2);
  if (alpha != 1 && b == nullptr) return fail(Code::kInput, "alpha with a B that is not constant");
  if (beta != 1 && in.has(2) && c == nullptr) return fail(Code::kInput, "beta with a C that is not constant");
  const TensorId first = row_major(out, node.inputs[0], transpose_a, node);
  const TensorId second = b != nullptr
                              ? out.weights(out.graph()[node.inputs[1]].name, prepared(*b, transpose_b, alpha).bytes)
                              : row_major(out, node.inputs[1], transpose_b, node);
  TensorId third = kAbsent;
  if (in.has(2)) {
    const Shape& s = in.shape(2);
    const std::int64_t columns = s.rank > 0 ? s.dims[s.rank - 1] : 1, rows = s.rank > 1 ? s.dims[s.rank - 2] : 1;
    p.bias = s.elements() == 1 ? GemmBias::kScalar
             : rows == 1       ? GemmBias::kColumn
             : columns == 1    ? GemmBias::kRow
                               : GemmBias::kFull;
    third = c != nullptr && beta != 1 ? out.weights(out.graph()[node.inputs[2]].name, prepared(*c, false, beta).bytes)
                                      : out.linear(node.inputs[2]);
  }
  out.step(make_call(KernelId::kGemm, p), {first, second, third, out.define(node.outputs[0], false)}, &node);
  return {};
}

Status lower_matmul(Builder& out, const ir::Node& node) {
  const Shape& a = out.shape(node.inputs[0]);
  const Shape& b = out.shape(node.inputs[1]);
  GemmParams p;
  p.k = a.dims[a.rank - 1];
  p.m = a.rank > 1 ? a.dims[a.rank - 2] : 1;
  p.n = b.rank > 1 ? b.dims[b.rank - 1] : 1;
  if (p.k == 0) return fail(Code::kInput, "a sum over no elements (K = 0)");
  const auto matrices = [](const Shape& s) {
    std::int64_t n = 1;
    for (int d = 0; d + 2 < s.rank; ++d) n *= s.dims[d];
    return n;
  };
  const std::int64_t batch_a = matrices(a), batch_b = matrices(b);
  p.batch = std::max(batch_a, batch_b);
  p.batch_a = batch_a == p.batch ? 1 : 0;
  p.batch_b = batch_b == p.batch ? 1 : 0;
  const bool one_side = batch_a == 1 || batch_b == 1;
  bool same = a.rank == b.rank;
  for (int d = 0; same && d + 2 < a.rank; ++d) same = a.dims[d] == b.dims[d];
  if (!one_side && !same) return fail(Code::kInput, "batches that are broadcast against each other");
  const TensorId first = out.linear(node.inputs[0]), second = out.linear(node.inputs[1]);
  out.step(make_call(KernelId::kGemm, p), {first, second, kAbsent, out.define(node.outputs[0], false)}, &node);
  return {};
}

}  // namespace

Status lower_math_node(Builder& out, const ir::Node& node, bool* known) {
  *known = true;
  if (const auto unary = unary_params(out, node)) return lower_unary(out, node, *unary);
  if (const auto binary = binary_of(node.op)) return lower_binary(out, node, *binary);
  if (node.op == "Softmax") return lower_softmax(out, node);
  if (node.op == "ReduceMean") return lower_reduce_mean(out, node);
  if (node.op == "takt.LayerNorm") return lower_layer_norm(out, node);
  if (node.op == "Gemm") return lower_gemm(out, node);
  if (node.op == "MatMul") return lower_matmul(out, node);
  *known = false;
  return {};
}

}  // namespace takt::lower
