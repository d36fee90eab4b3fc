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

// Lowest and highest corner of the range and the size of a voxel, each x y z: attributes range and size, or geometry
// in f64 where f32 has no number for them.
Result<std::vector<double>> geometry_of(const Node& node) {
  std::vector<double> all;
  if (const auto exact = node.attributes.find("geometry"); exact != node.attributes.end()) {
    const auto* const tensor = std::get_if<std::shared_ptr<const Constant>>(&exact->second);
    if (tensor == nullptr || (*tensor)->dtype != DType::kF64 || !((*tensor)->shape == Shape{1, {9}})) {
      return fail(Code::kInput, "attribute geometry is no f64[9]");
    }
    all.resize(9);
    std::memcpy(all.data(), (*tensor)->bytes.data(), 9 * sizeof(double));
    return all;
  }
  TAKT_ASSIGN(const std::vector<float> range, floats_of(node, "range", 6));
  TAKT_ASSIGN(const std::vector<float> size, floats_of(node, "size", 3));
  all.assign(range.begin(), range.end());
  all.insert(all.end(), size.begin(), size.end());
  return all;
}

// The kernel's own check decides what parameters are possible.
Status possible(KernelId id, const std::vector<std::byte>& params) {
  kernels::cpu::OperandBytes bytes;
  const char* const problem = kernels::cpu::find_operator_kernel(id)->operand_bytes(params.data(), &bytes);
  return problem != nullptr ? Status(fail(Code::kInput, problem)) : Status();
}

// The bytes of a scratch operand, by the kernel's own rule.
std::uint64_t scratch_of(KernelId id, const std::vector<std::byte>& params, int operand) {
  kernels::cpu::OperandBytes bytes;
  kernels::cpu::find_operator_kernel(id)->operand_bytes(params.data(), &bytes);
  return bytes.bytes[operand];
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
  TAKT_ASSIGN(const std::vector<double> geometry, geometry_of(in.node));
  const std::string keep = in.node.text("keep", "first");
  if (keep != "first" && keep != "near") return fail(Code::kInput, "attribute keep is neither first nor near");
  p.keep = keep == "near" ? kernels::Keep::kNear : kernels::Keep::kFirst;
  for (std::size_t d = 0; d < 3; ++d) {
    p.minimum[d] = geometry[d];
    p.maximum[d] = geometry[d + 3];
    p.size[d] = geometry[d + 6];
    const double cells = std::round((p.maximum[d] - p.minimum[d]) / p.size[d]);
    if (!(cells >= 1 && cells <= kernels::kMostCells)) {
      return fail(Code::kInput, "dimension " + std::to_string(d) + " of its range holds no voxel, or more than 2^20");
    }
    p.grid[d] = static_cast<std::int32_t>(cells);
    // The sensor is at the origin of the cloud.
    const double at = std::floor(-p.minimum[d] / p.size[d]);
    if (d == 2) continue;
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
  call.scratch = {scratch_of(KernelId::kVoxelise, call.params, 8)};
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

// Three extents of an attribute, in files z y x, in parameters x y z.
Status read_extents(const Node& node, std::string_view key, std::int64_t otherwise, std::int32_t (&out)[3]) {
  std::vector<std::int64_t> values = node.integers(key);
  if (values.empty()) values.assign(3, otherwise);
  if (values.size() != 3) {
    return fail(Code::kInput, "attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                                  " numbers, expected 3: z y x");
  }
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t value = values[2 - d];
    if (value < 0 || value > kernels::kMostCells) {
      return fail(Code::kInput, "attribute " + std::string(key) + " holds " + std::to_string(value));
    }
    out[d] = static_cast<std::int32_t>(value);
  }
  return {};
}
template <class Params>
Status read_window(const Node& node, Params* p) {
  TAKT_RETURN_IF_ERROR(read_extents(node, "kernel", 3, p->kernel));
  TAKT_RETURN_IF_ERROR(read_extents(node, "stride", 1, p->stride));
  return read_extents(node, "padding", 0, p->padding);
}

Status expect_cells(const OperatorInputs& in, std::size_t i) {
  TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kI64}));
  return expect_rank(in, i, 1);
}
Status expect_matrix(const OperatorInputs& in, std::size_t i, DType dtype) {
  TAKT_RETURN_IF_ERROR(expect_type(in, i, {dtype}));
  return expect_rank(in, i, 2);
}
std::int32_t rows_in(const OperatorInputs& in, std::size_t i) { return static_cast<std::int32_t>(in.shape(i).dims[0]); }
std::int32_t columns_in(const OperatorInputs& in, std::size_t i) {
  return static_cast<std::int32_t>(in.shape(i).dims[1]);
}
tl::unexpected<Error> misfit(const OperatorInputs& in, std::size_t i, std::size_t j) {
  return fail(Code::kInput, "input " + std::to_string(i) + ", " + to_string(in.type(i)) + ", does not fit input " +
                                std::to_string(j) + ", " + to_string(in.type(j)));
}

Result<OperatorCall> describe_sparse_cells(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_cells(in, 0));
  kernels::SparseCellsParams p;
  p.cells = rows_in(in, 0);
  TAKT_ASSIGN(p.results, extent(in.node, "capacity", 1, 0));
  TAKT_RETURN_IF_ERROR(read_window(in.node, &p));
  std::int32_t grid[3];
  TAKT_RETURN_IF_ERROR(read_extents(in.node, "grid", 0, grid));
  for (int d = 0; d < 3; ++d) {
    const std::int32_t room = grid[d] + 2 * p.padding[d] - p.kernel[d];
    if (room < 0 || p.stride[d] < 1) return fail(Code::kInput, "its kernel is larger than its grid, or a stride is 0");
    p.grid[d] = room / p.stride[d] + 1;
  }
  const std::vector<std::int64_t> centre = in.node.integers("centre");  // of the result; y x
  if (!centre.empty() && centre.size() != 2) return fail(Code::kInput, "attribute centre is not y and x");
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t at = centre.empty() ? p.grid[d] / 2 : centre[1 - d];
    p.centre[d] = static_cast<std::int32_t>(std::clamp<std::int64_t>(at, -1, kernels::kMostCells + 1));
  }
  OperatorCall call{block_of(p), {vector_of(DType::kI64, p.results), kCount, kCount}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kSparseCells, call.params));
  call.scratch = {scratch_of(KernelId::kSparseCells, call.params, 5)};
  return call;
}

void run_sparse_cells(const void* params, const Operand* o) {
  const auto p = load<kernels::SparseCellsParams>(params);
  const kernels::reference::Cells cells = kernels::reference::sparse_cells(
      p, rows<const std::int64_t>(o[0], rows_of(o[1], p.cells)), data<std::int64_t>(o[2]));
  *data<std::int32_t>(o[3]) = cells.count;
  *data<std::int32_t>(o[4]) = cells.dropped;
}

Result<OperatorCall> describe_sparse_map(const OperatorInputs& in) {
  for (const std::size_t i : {0U, 1U}) TAKT_RETURN_IF_ERROR(expect_cells(in, i));
  kernels::SparseMapParams p;
  p.inputs = rows_in(in, 0);
  p.results = rows_in(in, 1);
  TAKT_RETURN_IF_ERROR(read_window(in.node, &p));
  OperatorCall call{block_of(p), {}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kSparseMap, call.params));
  call.outputs = {matrix_of(DType::kI32, p.results, std::int64_t{p.kernel[0]} * p.kernel[1] * p.kernel[2])};
  return call;
}

void run_sparse_map(const void* params, const Operand* o) {
  const auto p = load<kernels::SparseMapParams>(params);
  kernels::reference::sparse_map(p, rows<const std::int64_t>(o[0], rows_of(o[2], p.inputs)),
                                 rows<const std::int64_t>(o[1], rows_of(o[3], p.results)), data<std::int32_t>(o[4]));
}

Result<OperatorCall> describe_inverse_map(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_matrix(in, 0, DType::kI32));
  TAKT_RETURN_IF_ERROR(expect_cells(in, 1));
  const kernels::InverseMapParams p{rows_in(in, 0), rows_in(in, 1), columns_in(in, 0), 0};
  OperatorCall call{block_of(p), {matrix_of(DType::kI32, p.cells, p.taps)}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kInverseMap, call.params));
  return call;
}

void run_inverse_map(const void* params, const Operand* o) {
  const auto p = load<kernels::InverseMapParams>(params);
  kernels::reference::inverse_map(p, rows<const std::int32_t>(o[0], std::int64_t{rows_of(o[2], p.results)} * p.taps),
                                  rows_of(o[3], p.cells), data<std::int32_t>(o[4]));
}

constexpr std::string_view kActivations[] = {
    "none",      "relu", "clip", "leaky",      "sigmoid",
    "hardswish", "silu", "tanh", "hardsigmoid"};  // as kernels::cpu::Activation

// x, weights, map, bias, residual.
Result<OperatorCall> describe_sparse_conv(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_matrix(in, 0, DType::kF32));
  TAKT_RETURN_IF_ERROR(expect_type(in, 1, {DType::kF32}));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 1, 3));
  TAKT_RETURN_IF_ERROR(expect_matrix(in, 2, DType::kI32));
  kernels::SparseConvParams p;
  p.inputs = rows_in(in, 0);
  p.c_in = columns_in(in, 0);
  p.results = rows_in(in, 2);
  p.taps = columns_in(in, 2);
  p.c_out = static_cast<std::int32_t>(in.shape(1).dims[2]);
  if (in.shape(1).dims[1] != p.c_in) return misfit(in, 1, 0);
  if (in.shape(1).dims[0] != p.taps) return misfit(in, 1, 2);
  if (in.has(3)) {
    TAKT_RETURN_IF_ERROR(expect_type(in, 3, {DType::kF32}));
    if (!(in.shape(3) == Shape{1, {p.c_out}})) return misfit(in, 3, 1);
    p.bias = 1;
  }
  if (in.has(4)) {
    TAKT_RETURN_IF_ERROR(expect_matrix(in, 4, DType::kF32));
    if (!(in.shape(4) == Shape{2, {p.results, p.c_out}})) return misfit(in, 4, 2);
    p.residual = 1;
  }
  const std::string activation = in.node.text("activation", "none");
  const auto* const known = std::find(std::begin(kActivations), std::end(kActivations), activation);
  if (known == std::end(kActivations)) {
    return fail(Code::kInput, "has no activation " + printable(activation));
  }
  p.activation = static_cast<std::int32_t>(known - kActivations);
  p.alpha = in.node.number("alpha", 0);
  p.beta = in.node.number("beta", 0);
  OperatorCall call{block_of(p), {matrix_of(DType::kF32, p.results, p.c_out)}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kSparseConv, call.params));
  return call;
}

void run_sparse_conv(const void* params, const Operand* o) {
  const auto p = load<kernels::SparseConvParams>(params);
  kernels::reference::sparse_conv(p, rows_of(o[5], p.inputs), rows_of(o[6], p.results), data<const float>(o[0]),
                                  data<const float>(o[1]), p.bias == 1 ? data<const float>(o[3]) : nullptr,
                                  data<const std::int32_t>(o[2]), p.residual == 1 ? data<const float>(o[4]) : nullptr,
                                  data<float>(o[7]));
}

Result<OperatorCall> describe_scatter_bev(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(expect_matrix(in, 0, DType::kF32));
  TAKT_RETURN_IF_ERROR(expect_cells(in, 1));
  if (rows_in(in, 0) != rows_in(in, 1)) return misfit(in, 1, 0);
  kernels::ScatterBevParams p;
  p.rows = rows_in(in, 0);
  p.channels = columns_in(in, 0);
  TAKT_RETURN_IF_ERROR(read_extents(in.node, "grid", 0, p.grid));
  OperatorCall call{block_of(p), {}, {}};
  TAKT_RETURN_IF_ERROR(possible(KernelId::kScatterBev, call.params));
  call.outputs = {{DType::kF32, {4, {1, std::int64_t{p.channels} * p.grid[2], p.grid[1], p.grid[0]}}}};
  return call;
}

void run_scatter_bev(const void* params, const Operand* o) {
  const auto p = load<kernels::ScatterBevParams>(params);
  const auto cells = rows<const std::int64_t>(o[1], rows_of(o[2], p.rows));
  if (p.block == 0) return kernels::reference::scatter_bev(p, cells, data<const float>(o[0]), data<float>(o[3]));
  const std::int64_t channels = std::int64_t{p.channels} * p.grid[2], plane = std::int64_t{p.grid[0]} * p.grid[1];
  std::vector<float> linear(static_cast<std::size_t>(channels * plane));
  kernels::reference::scatter_bev(p, cells, data<const float>(o[0]), linear.data());
  std::fill_n(data<float>(o[3]), (channels + p.block - 1) / p.block * p.block * plane, 0.0F);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < plane; ++i) {
      data<float>(o[3])[(c / p.block * plane + i) * p.block + c % p.block] =
          linear[static_cast<std::size_t>(c * plane + i)];
    }
  }
}

void block_scatter_bev(std::byte* params, std::uint8_t block) {
  auto p = load<kernels::ScatterBevParams>(params);
  p.block = block;
  std::memcpy(params, &p, sizeof p);
}

constexpr TaktOperator kOperators[] = {
    {"takt.SparseCells", "kernel:I stride:I padding:I grid:I centre:I capacity:i", KernelId::kSparseCells, 1,
     describe_sparse_cells, run_sparse_cells},
    {"takt.SparseMap", "kernel:I stride:I padding:I", KernelId::kSparseMap, 2, describe_sparse_map, run_sparse_map},
    {"takt.InverseMap", "", KernelId::kInverseMap, 2, describe_inverse_map, run_inverse_map},
    {"takt.SparseConv", "activation:s alpha:f beta:f", KernelId::kSparseConv, 3, describe_sparse_conv, run_sparse_conv},
    {"takt.ScatterBev", "grid:I", KernelId::kScatterBev, 2, describe_scatter_bev, run_scatter_bev, block_scatter_bev},
    {"takt.Voxelise", "range:F size:F geometry:t capacity:i points:i keep:s", KernelId::kVoxelise, 1, describe_voxelise,
     run_voxelise},
    {"takt.VoxelMean", "", KernelId::kVoxelMean, 3, describe_voxel_mean, run_voxel_mean},
};

}  // namespace

std::span<const TaktOperator> voxel_operators() { return kOperators; }

}  // namespace takt::ir
