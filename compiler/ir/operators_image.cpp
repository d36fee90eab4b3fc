#include <cstring>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/movement.h"
#include "kernels/reference/preprocess.h"
#include "kernels/reference/resize.h"

namespace takt::ir {
namespace {

using kernels::Tensor;

Result<Types> infer_resize(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const ResizeGeometry g, resize_geometry(in.node, in.tensors()));
  if (g.cubic || in.node.integer("antialias", 0) != 0) {
    return fail(Code::kInput, "cubic and antialiased resizing is takt.Resample, one axis at a time");
  }
  if (g.linear) TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kF32}));
  if (g.linear && g.axes.size() < 2) return fail(Code::kInput, "linear mode expects rank 2 or more");
  for (std::size_t d = 0; g.linear && d + 2 < g.axes.size(); ++d) {
    if (g.axes[d].in != g.axes[d].out || g.axes[d].roi_begin != 0 || g.axes[d].roi_end != 1) {
      return fail(Code::kInput, "linear mode over other dimensions than the last two");
    }
  }
  return Types{{in.type(0).dtype, g.out}};
}

Status evaluate_resize(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const ResizeGeometry g, resize_geometry(node, in));
  if (g.out.elements() == 0) return {};
  if (g.linear) {
    const std::size_t rank = g.axes.size();
    kernels::reference::resize_linear(in[0], kernels::reference::linear_table(g.axes[rank - 2]),
                                      kernels::reference::linear_table(g.axes[rank - 1]), g.extrapolation, out[0]);
    return {};
  }
  std::vector<std::vector<std::int64_t>> tables;
  for (const auto& axis : g.axes) tables.push_back(kernels::reference::nearest_table(axis, g.nearest));
  std::byte fill[8] = {};  // any element type; the extrapolation value is defined for f32 alone
  if (in[0].dtype == DType::kF32) std::memcpy(fill, &g.extrapolation, sizeof g.extrapolation);
  kernels::reference::read_indexed(in[0], tables, fill, out[0]);
  return {};
}

std::uint64_t resize_flops(const OperatorInputs& in, std::span<const Type> out) {
  return in.node.text("mode", "nearest") == "linear" ? 9 * elements_of(out[0]) : 0;
}

Result<Types> infer_preprocess(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const kernels::Preprocess p, preprocess_geometry(in.node, in.tensors()));
  return Types{{DType::kF32, Shape{4, {1, 3, p.height, p.width}}}};
}

Status evaluate_preprocess(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const kernels::Preprocess p, preprocess_geometry(node, in));
  kernels::reference::preprocess(in[0], p, out[0]);
  return {};
}

// Three interpolations (a difference and a multiply-add each) and the normalisation.
std::uint64_t preprocess_flops(const OperatorInputs& /*in*/, std::span<const Type> out) {
  return 11 * elements_of(out[0]);
}

constexpr Operator kOperators[] = {
    {"Resize", 1, 4, infer_resize, evaluate_resize, resize_flops, nullptr},
    {"takt.Preprocess", 1, 1, infer_preprocess, evaluate_preprocess, preprocess_flops, nullptr},
};

}  // namespace

std::span<const Operator> image_operators() { return kOperators; }

}  // namespace takt::ir
