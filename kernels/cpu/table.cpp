// The kernels of every target: host halves always, device halves where they were built.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/device.h"
#include "kernels/cpu/host.h"
#include "kernels/cpu/operators.h"
#include "kernels/reference/counted.h"
#include "kernels/reference/generic.h"

namespace takt::kernels {
namespace {

using cpu::f16_form;
using cpu::KernelId;

struct Entry {
  KernelId id;
  const char* name;
  std::uint16_t version;
  std::uint32_t params_bytes;
  std::uint8_t operands, outputs;
  std::int8_t in_place;
};

template <class Params>
constexpr Entry entry(KernelId id, const char* name, std::uint8_t operands, std::int8_t in_place = -1,
                      std::uint16_t version = 1, std::uint8_t outputs = 1) {
  return {id, name, version, sizeof(Params), operands, outputs, in_place};
}

constexpr std::uint8_t kCountedOperands = reference::kGenericInputs + reference::kMostCounts + 1;

constexpr Entry kEntries[] = {
    entry<cpu::ReorderParams>(KernelId::kReorderToBlocked, "reorder_to_blocked_f32", 2),
    entry<cpu::ReorderParams>(KernelId::kReorderToLinear, "reorder_to_linear_f32", 2),
    entry<cpu::ConvParams>(KernelId::kConvDirect, "conv_direct_f32", 4, 2),
    entry<cpu::ConvParams>(KernelId::kConvPointwise, "conv_pointwise_f32", 4, 2),
    entry<cpu::ConvParams>(KernelId::kConvDepthwise, "conv_depthwise_f32", 4, 2),
    entry<cpu::ConvParams>(KernelId::kConvFirst, "conv_first_f32", 4, 2),
    entry<cpu::ConvParams>(KernelId::kConvGrouped, "conv_grouped_f32", 4, 2),
    entry<cpu::PoolParams>(KernelId::kMaxPool, "max_pool_f32", 2),
    entry<cpu::PoolParams>(KernelId::kAveragePool, "average_pool_f32", 2),
    entry<cpu::ReorderParams>(KernelId::kGlobalAveragePool, "global_average_pool_f32", 2),
    entry<cpu::ResizeParams>(KernelId::kResizeNearest, "resize_nearest_f32", 3),
    entry<cpu::ResizeParams>(KernelId::kResizeLinear, "resize_linear_f32", 3),
    entry<cpu::PadParams>(KernelId::kPad, "pad_f32", 2),
    entry<cpu::UnaryParams>(KernelId::kUnary, "unary_f32", 2, 0),
    entry<cpu::BinaryParams>(KernelId::kBinary, "binary_f32", 3, 0),
    entry<cpu::BroadcastParams>(KernelId::kBinaryBroadcast, "binary_broadcast_f32", 3),
    entry<cpu::ChannelGatherParams>(KernelId::kChannelGather, "channel_gather_f32", 4),
    entry<cpu::ChannelCopyParams>(KernelId::kChannelCopy, "channel_copy_f32", 2),
    entry<cpu::StridedCopyParams>(KernelId::kStridedCopy, "strided_copy", 2),
    entry<cpu::FillParams>(KernelId::kFill, "fill", 1),
    entry<cpu::GatherParams>(KernelId::kGather, "gather", 3),
    entry<cpu::CastParams>(KernelId::kCast, "cast", 2),
    entry<cpu::SoftmaxParams>(KernelId::kSoftmax, "softmax_f32", 2, 0),
    entry<cpu::ReorderParams>(KernelId::kSoftmaxChannels, "softmax_channels_f32", 2, 0),
    entry<cpu::SoftmaxParams>(KernelId::kReduceMean, "reduce_mean_f32", 2),
    entry<cpu::GemmParams>(KernelId::kGemm, "gemm_f32", 4),
    entry<Preprocess>(KernelId::kPreprocess, "preprocess_u8_f32", 2),
    entry<cpu::ConvParams>(KernelId::kConvTranspose, "conv_transpose_f32", 3),
    entry<cpu::MappedConvParams>(KernelId::kConvMapped, "conv_pointwise_mapped_f32", 4, 2),
    entry<cpu::LayerNormParams>(KernelId::kLayerNorm, "layer_norm_f32", 4, 0),
    entry<cpu::ReorderParams>(KernelId::kReorderToLast, "reorder_to_last_f32", 2),
    entry<cpu::SelectParams>(KernelId::kSelect, "select", 4, 1),
    entry<reference::GenericParams>(KernelId::kReference, "reference", reference::kGenericInputs + 1, -1, 2),
    entry<reference::GenericParams>(KernelId::kCounted, "reference_counted", kCountedOperands),
    entry<reference::GenericParams>(KernelId::kCounting, "reference_counting", kCountedOperands + 1, -1, 1, 2),
    // For GPUs alone.
    entry<cpu::ReorderParams>(f16_form(KernelId::kReorderToBlocked), "reorder_to_blocked_f16", 2),
    entry<cpu::ReorderParams>(f16_form(KernelId::kReorderToLinear), "reorder_to_linear_f16", 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvDirect), "conv_direct_f16", 4, 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvPointwise), "conv_pointwise_f16", 4, 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvDepthwise), "conv_depthwise_f16", 4, 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvFirst), "conv_first_f16", 4, 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvGrouped), "conv_grouped_f16", 4, 2),
    entry<cpu::PoolParams>(f16_form(KernelId::kMaxPool), "max_pool_f16", 2),
    entry<cpu::PoolParams>(f16_form(KernelId::kAveragePool), "average_pool_f16", 2),
    entry<cpu::ReorderParams>(f16_form(KernelId::kGlobalAveragePool), "global_average_pool_f16", 2),
    entry<cpu::ResizeParams>(f16_form(KernelId::kResizeNearest), "resize_nearest_f16", 3),
    entry<cpu::ResizeParams>(f16_form(KernelId::kResizeLinear), "resize_linear_f16", 3),
    entry<cpu::PadParams>(f16_form(KernelId::kPad), "pad_f16", 2),
    entry<cpu::UnaryParams>(f16_form(KernelId::kUnary), "unary_f16", 2, 0),
    entry<cpu::BinaryParams>(f16_form(KernelId::kBinary), "binary_f16", 3, 0),
    entry<cpu::ChannelGatherParams>(f16_form(KernelId::kChannelGather), "channel_gather_f16", 4),
    entry<cpu::ChannelCopyParams>(f16_form(KernelId::kChannelCopy), "channel_copy_f16", 2),
    entry<cpu::CastParams>(f16_form(KernelId::kCast), "cast_f16", 2),
    entry<cpu::ReorderParams>(f16_form(KernelId::kSoftmaxChannels), "softmax_channels_f16", 2, 0),
    entry<Preprocess>(f16_form(KernelId::kPreprocess), "preprocess_u8_f16", 2),
    entry<cpu::ConvParams>(f16_form(KernelId::kConvTranspose), "conv_transpose_f16", 3),
    entry<cpu::MappedConvParams>(f16_form(KernelId::kConvMapped), "conv_pointwise_mapped_f16", 4, 2),
    entry<cpu::ReorderParams>(f16_form(KernelId::kReorderToLast), "reorder_to_last_f16", 2),
};
constexpr std::size_t kCount = std::size(kEntries);
constexpr int kCounts = reference::kGenericInputs;         // the first count operand of kCounted
constexpr int kResult = kCounts + reference::kMostCounts;  // and its result
using Table = std::vector<Kernel>;

// What operand_bytes() says against the operands that there are.
const char* compare(const cpu::OperandBytes& needed, std::span<const Operand> operands, std::size_t outputs,
                    bool partial) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].bytes < needed.bytes[i]) return "an operand is smaller than the parameters say";
    // What is written counts as written to its end; a strided copy alone places parts of a tensor.
    const bool whole = i >= operands.size() - outputs && !partial;
    if (whole && operands[i].bytes > needed.bytes[i]) return "an output is larger than the parameters say";
    if (reinterpret_cast<std::uintptr_t>(operands[i].data) % needed.element[i] != 0) {
      return "an operand does not start at a multiple of its kernel's elements";
    }
  }
  return nullptr;
}

const char* const kOperandCount = "the number of operands is wrong";

template <std::size_t index>
const char* check(const void* params, std::span<const Operand> operands, Target target) {
  constexpr const Entry& entry = kEntries[index];
  if (operands.size() != entry.operands) return kOperandCount;
  cpu::OperandBytes needed;
  if (const char* const error = cpu::operand_bytes(entry.id, params, target, &needed)) return error;
  return compare(needed, operands, entry.outputs, entry.id == KernelId::kStridedCopy);
}

template <std::size_t... index>
Table host_halves(std::index_sequence<index...>) {
  return {Kernel{static_cast<std::uint32_t>(kEntries[index].id), kEntries[index].name, kEntries[index].version,
                 kEntries[index].params_bytes, kEntries[index].operands, kEntries[index].outputs,
                 kEntries[index].in_place, kEntries[index].id == KernelId::kSelect, nullptr, check<index>, nullptr}...};
}

// takt's own operators: rows that the families bring along. Functions of a kernel know their row by its place in the
// list of all.
constexpr std::size_t kMostOperators = 64;

const std::vector<const cpu::OperatorKernel*>& operator_rows() {
  static const std::vector<const cpu::OperatorKernel*> rows = [] {
    std::vector<const cpu::OperatorKernel*> all;
    for (const auto family : {cpu::voxel_operators(), cpu::point_operators(), cpu::tracking_operators()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rows;
}

template <std::size_t index>
const char* check_operator(const void* params, std::span<const Operand> operands, Target target) {
  const cpu::OperatorKernel& row = *operator_rows()[index];
  if (operands.size() != static_cast<std::size_t>(row.operands(target))) return kOperandCount;
  cpu::OperandBytes needed;
  if (const char* const error = cpu::operand_bytes(row.id, params, target, &needed)) return error;
  for (int i = row.inputs; i < row.first_output(); ++i) {
    if (operands[static_cast<std::size_t>(i)].bytes == 0) needed.bytes[i] = 0;
  }
  return compare(needed, operands, row.outputs + static_cast<std::size_t>(row.scratch_on(target)), false);
}

template <std::size_t index>
Kernel::Counted counted_by_row(const void* /*params*/, int operand) {
  return {operator_rows()[index]->count_of[operand], 0};
}

template <std::size_t... index>
void add_operators(Table& table, Target target, std::index_sequence<index...>) {
  constexpr decltype(Kernel::check) kChecks[] = {check_operator<index>...};
  constexpr decltype(Kernel::counted) kCounted[] = {counted_by_row<index>...};
  for (std::size_t i = 0; i < operator_rows().size(); ++i) {
    const cpu::OperatorKernel& row = *operator_rows()[i];
    table.push_back({static_cast<std::uint32_t>(row.id), row.name, row.version, row.params_bytes,
                     static_cast<std::uint8_t>(row.operands(target)),
                     static_cast<std::uint8_t>(row.outputs + row.scratch_on(target)), -1, false, kCounted[i],
                     kChecks[i], nullptr});
  }
  std::sort(table.begin(), table.end(), [](const Kernel& a, const Kernel& b) { return a.id < b.id; });
}

// The same on every machine.
void run_select(const void* params, const Operand* operands, int part, int parts) {
  cpu::SelectParams p;
  std::memcpy(&p, params, sizeof(p));
  const std::byte* const from = operands[0].data[0] != std::byte{0} ? operands[1].data : operands[2].data;
  std::byte* const to = operands[3].data;
  if (from == to) return;
  const std::int64_t bytes = p.elements * p.element_bytes;
  for (std::int64_t i = bytes * part / parts; i < bytes * (part + 1) / parts; ++i) to[i] = from[i];
}

void run_reference(const void* params, const Operand* operands, int part, int) {
  if (part != 0) return;
  reference::GenericParams p;
  std::memcpy(&p, params, sizeof(p));
  constexpr int kInputs = reference::kGenericInputs;
  std::byte* data[reference::kGenericOperands] = {};
  for (int i = 0; i < kInputs; ++i) data[i] = operands[i].data;
  data[p.operands[kInputs].dtype != 0 ? kInputs : kInputs + 1] = operands[kInputs].data;
  reference::generic_run(p, data);
}

const reference::GenericType& result_of(const reference::GenericParams& p) {
  const reference::GenericType& first = p.operands[reference::kGenericInputs];
  return first.dtype != 0 ? first : p.operands[reference::kGenericInputs + 1];
}

void run_counted(const void* params, const Operand* operands, int part, int) {
  if (part != 0) return;
  reference::GenericParams p;
  std::memcpy(&p, params, sizeof(p));
  std::byte* data[reference::kGenericOperands] = {};
  for (int i = 0; i < reference::kGenericInputs; ++i) data[i] = operands[i].data;
  data[p.operands[kCounts].dtype != 0 ? kCounts : kCounts + 1] = operands[kResult].data;
  const std::int32_t* counts[reference::kMostCounts] = {};
  for (int c = 0; c < reference::kMostCounts; ++c) {
    counts[c] = reinterpret_cast<const std::int32_t*>(operands[kCounts + c].data);
  }
  const bool makes = result_of(p).count == reference::kMade;
  reference::counted_run(p, data, counts,
                         makes ? reinterpret_cast<std::int32_t*>(operands[kResult + 1].data) : nullptr);
}

Kernel::Counted counted_operand(const void* params, int operand) {
  reference::GenericParams p;
  std::memcpy(&p, params, sizeof(p));
  if (operand >= kCounts && operand != kResult) return {};
  const reference::GenericType& type = operand == kResult ? result_of(p) : p.operands[operand];
  if (type.count == 0) return {};
  return {type.count == reference::kMade ? kResult + 1 : kCounts + type.count - 1, type.axis};
}

Table table_of(Target target) {
  Table table = host_halves(std::make_index_sequence<kCount>());
  std::erase_if(table, [](const Kernel& k) { return cpu::is_f16_form(static_cast<KernelId>(k.id)); });
  add_operators(table, target, std::make_index_sequence<kMostOperators>());
  const auto find = [&](KernelId id) {
    return std::find_if(table.begin(), table.end(),
                        [id](const Kernel& k) { return k.id == static_cast<std::uint32_t>(id); });
  };
  const auto add = [&](KernelId id, decltype(Kernel::run) run) { find(id)->run = run; };
  for (const auto family : {cpu::conv_kernels, cpu::depthwise_kernels, cpu::spatial_kernels, cpu::elementwise_kernels,
                            cpu::channel_kernels, cpu::movement_kernels, cpu::linear_kernels, cpu::preprocess_kernels,
                            cpu::voxel_kernels, cpu::sparse_kernels, cpu::point_kernels, cpu::tracking_kernels}) {
    for (const cpu::DeviceHalf& half : family(target)) add(half.id, half.run);
  }
  add(KernelId::kSelect, run_select);
  add(KernelId::kReference, run_reference);
  for (const KernelId id : {KernelId::kCounted, KernelId::kCounting}) {
    add(id, run_counted);
    find(id)->counted = counted_operand;
  }
  return table;
}

// What kernels/cuda has, beside all of takt's own operators.
constexpr bool has_cuda_kernel(std::uint32_t id) {
  return id <= static_cast<std::uint32_t>(KernelId::kReorderToLast) ||
         id == static_cast<std::uint32_t>(KernelId::kSelect) || cpu::is_f16_form(static_cast<KernelId>(id));
}

// Host halves alone: a device launches by id.
Table cuda_table() {
  Table kernels;
  for (const Kernel& kernel : host_halves(std::make_index_sequence<kCount>())) {
    if (kernel.id != 0 && has_cuda_kernel(kernel.id)) kernels.push_back(kernel);
  }
  add_operators(kernels, Target::kCudaSm87, std::make_index_sequence<kMostOperators>());
  return kernels;
}

}  // namespace

std::span<const Kernel> kernels_of(Target target) {
  static const Table avx2 = table_of(Target::kAvx2);
  static const Table avx512 = table_of(Target::kAvx512);
  static const Table neon = table_of(Target::kNeon);
  static const Table cuda = cuda_table();
  switch (target) {
    case Target::kAvx2: return avx2;
    case Target::kAvx512: return avx512;
    case Target::kNeon: return neon;
    case Target::kCudaSm87:
    case Target::kCudaSm90: return cuda;
  }
  return {};
}

const Kernel* find_kernel(Target target, std::uint32_t id) {
  const std::span<const Kernel> all = kernels_of(target);
  const auto at =
      std::lower_bound(all.begin(), all.end(), id, [](const Kernel& k, std::uint32_t v) { return k.id < v; });
  return at != all.end() && at->id == id ? &*at : nullptr;
}

}  // namespace takt::kernels
