// Operators of domain takt on voxels: rows as in takt_operators.h, parameters in kernels/voxels.h.
#include <cmath>

#include "compiler/ir/operator_tables.h"
#include "compiler/ir/takt_operators.h"
#include "kernels/reference/voxels.h"

namespace takt::ir {
namespace {

using kernels::Operand;
using kernels::cpu::KernelId;
using kernels::cpu::rows_of;

template <class Params>
Params load(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}
template <class T>
std::span<T> rows(const Operand& operand, std::int64_t count) {
  return {reinterpret_cast<T*>(operand.data), static_cast<std::size_t>(count)};
}
template <class T>
T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}

Type vector_of(DType dtype, std::int64_t rows) { return {dtype, {1, {rows}}}; }
Type matrix_of(DType dtype, std::int64_t rows, std::int64_t columns) { return {dtype, {2, {rows, columns}}}; }
const Type kCount{DType::kI32, {}};

// An attribute of so many numbers.
Result<std::vector<float>> floats_of(const Node& node, std::string_view key, std::size_t count) {
  std::vector<float> values = node.numbers(key);
  if (values.size() == count) return values;
  return fail(Code::kInput, "attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                                " numbers, expected " + std::to_string(count));
}

// The kernel's own check decides what parameters are possible.
Status possible(KernelId id, const std::vector<std::byte>& params) {
  kernels::cpu::OperandBytes bytes;
  const char* const problem = kernels::cpu::find_operator_kernel(id)->operand_bytes(params.data(), &bytes);
  return problem != nullptr ? Status(fail(Code::kInput, problem)) : Status();
}

Result<std::int32_t> extent(const Node& node, std::string_view key, std::int64_t least, std::int64_t otherwise) {
  const std::int64_t value = node.integer(key, otherwise);
  if (value >= least && value <= kMaxElements) return static_cast<std::int32_t>(value);
  return fail(Code::kInput, "attribute " + std::string(key) + " is " + std::to_string(value) + ", expected " +
                                std::to_string(least) + " to " + std::to_string(kMaxElements));
}

Result<OperatorCall> describe_voxelise(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kF32}));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 0, 2));
  kernels::VoxeliseParams p;
  p.points = static_cast<std::int32_t>(in.shape(0).dims[0]);
  p.columns = static_cast<std::int32_t>(in.shape(0).dims[1]);
  TAKT_ASSIGN(p.voxels, extent(in.node, "capacity", 1, 0));
  TAKT_ASSIGN(p.most, extent(in.node, "points", 0, 0));
  TAKT_ASSIGN(const std::vector<float> range, floats_of(in.node, "range", 6));
  TAKT_ASSIGN(const std::vector<float> size, floats_of(in.node, "size", 3));
  const std::string_view keep = in.node.text("keep", "first");
  if (keep != "first" && keep != "near") return fail(Code::kInput, "attribute keep is neither first nor near");
  p.keep = keep == "near" ? kernels::Keep::kNear : kernels::Keep::kFirst;
  for (std::size_t d = 0; d < 3; ++d) {
    p.minimum[d] = range[d];
    p.maximum[d] = range[d + 3];
    p.size[d] = size[d];
    const double cells =
        std::round((static_cast<double>(range[d + 3]) - static_cast<double>(range[d])) / static_cast<double>(size[d]));
    if (!(cells >= 1 && cells <= kernels::kMostCells)) {
      return fail(Code::kInput, "dimension " + std::to_string(d) + " of its range holds no voxel, or more than 2^20");
    }
    p.grid[d] = static_cast<std::int32_t>(cells);
    // The sensor is at the origin of the cloud.
    const double at = std::floor(-static_cast<double>(range[d]) / static_cast<double>(size[d]));
    if (d < 2)
      p.centre[d] = static_cast<std::int32_t>(std::clamp<double>(at, -kernels::kMostCells, kernels::kMostCells));
  }
  OperatorCall call{block_of(p), {}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kVoxelise, call.params));
  call.outputs = {vector_of(DType::kI64, p.voxels),
                  vector_of(DType::kI32, p.voxels),
                  vector_of(DType::kI32, p.points),
                  kCount,
                  kCount,
                  kCount};
  call.scratch = {static_cast<std::uint64_t>(p.points) * 28};
  return call;
}

void run_voxelise(const void* params, const Operand* o) {
  const auto p = load<kernels::VoxeliseParams>(params);
  const std::int64_t points = rows_of(o[1], p.points);
  kernels::reference::Voxels out{data<std::int64_t>(o[2]), data<std::int32_t>(o[3]), data<std::int32_t>(o[4])};
  kernels::reference::voxelise(p, rows<const float>(o[0], points * p.columns), &out);
  *data<std::int32_t>(o[5]) = out.count;
  *data<std::int32_t>(o[6]) = out.kept;
  *data<std::int32_t>(o[7]) = out.dropped;
}

Result<OperatorCall> describe_voxel_mean(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kF32}));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 0, 2));
  for (const std::size_t i : {1U, 2U}) {
    TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kI32}));
    TAKT_RETURN_IF_ERROR(expect_rank(in, i, 1));
  }
  if (in.shape(2).dims[0] != in.shape(0).dims[0]) {
    return fail(Code::kInput, "has members " + to_string(in.type(2)) + " of a cloud " + to_string(in.type(0)));
  }
  kernels::VoxelMeanParams p;
  p.points = static_cast<std::int32_t>(in.shape(0).dims[0]);
  p.columns = static_cast<std::int32_t>(in.shape(0).dims[1]);
  p.voxels = static_cast<std::int32_t>(in.shape(1).dims[0]);
  OperatorCall call{block_of(p), {matrix_of(DType::kF32, p.voxels, p.columns)}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kVoxelMean, call.params));
  return call;
}

void run_voxel_mean(const void* params, const Operand* o) {
  const auto p = load<kernels::VoxelMeanParams>(params);
  const std::int64_t points = rows_of(o[3], p.points);
  kernels::reference::voxel_mean(p, rows<const float>(o[0], points * p.columns),
                                 rows<const std::int32_t>(o[1], rows_of(o[4], p.voxels)),
                                 rows<const std::int32_t>(o[2], rows_of(o[5], p.points)), data<float>(o[6]));
}

constexpr TaktOperator kOperators[] = {
    {"takt.Voxelise", "range:F size:F capacity:i points:i keep:s", KernelId::kVoxelise, 1, describe_voxelise,
     run_voxelise},
    {"takt.VoxelMean", "", KernelId::kVoxelMean, 3, describe_voxel_mean, run_voxel_mean},
};

}  // namespace

std::span<const TaktOperator> voxel_operators() { return kOperators; }

}  // namespace takt::ir
