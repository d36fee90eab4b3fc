#include "kernels/cpu/host.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/operators.h"
#include "kernels/reference/counted.h"
#include "kernels/reference/generic.h"
#include "kernels/reference/narrow_float.h"

namespace takt::kernels::cpu {
namespace {

// Elements of the largest operand, holes included: far from any overflow of 64-bit byte counts.
constexpr std::int64_t kMost = std::int64_t{1} << 35;
// Strides, dilations, kernel extents and padding, and how far the last window may begin behind the input: products with
// extents stay far below 2^63.
constexpr std::int32_t kMostStep = 1 << 24;

// The product of extents; 0 when one is not positive or the product is larger than any operand may be.
std::uint64_t product(std::initializer_list<std::int64_t> extents) {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > kMost || n > kMost / extent) return 0;
    n *= extent;
  }
  return static_cast<std::uint64_t>(n);
}

std::int64_t blocks(std::int64_t channels, Target target) {
  const std::int64_t block = block_of(target);
  return channels < 1 ? 0 : (channels + block - 1) / block;
}
// Of elements of `stored` bytes.
std::uint64_t blocked(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, Target target,
                      std::uint64_t stored) {
  return product({n, blocks(c, target), h, w, block_of(target)}) * stored;
}

// One number as a tensor of that type holds it.
void store(std::byte* at, float value, DType stored) {
  if (stored == DType::kF16) {
    const std::uint16_t bits = to_narrow(static_cast<double>(value), kHalf);
    std::memcpy(at, &bits, sizeof bits);
  } else {
    std::memcpy(at, &value, sizeof value);
  }
}

template <class Params>
Params load(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

bool between(std::int64_t value, std::int64_t lowest, std::int64_t highest) {
  return value >= lowest && value <= highest;
}
bool known(Activation a) { return between(static_cast<std::int32_t>(a), 0, 8); }
bool known(Binary op) { return between(static_cast<std::int32_t>(op), 0, 5); }
bool element_size(std::int32_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }
// 0: not cast by the f32 form of kCast, or by its f16 form.
std::size_t cast_size(std::int32_t type, bool f16) {
  switch (static_cast<DType>(type)) {
    case DType::kF32: return sizeof(float);
    case DType::kF16: return f16 ? size_of(DType::kF16) : 0;
    case DType::kI64:
    case DType::kI32:
    case DType::kU8:
    case DType::kBool: return f16 ? 0 : size_of(static_cast<DType>(type));
    default: return 0;
  }
}

const char* const kExtents = "extents are not positive or too large";
const char* const kOptions = "an option has an unknown value";
const char* const kWindow = "kernel, stride, dilation or padding out of range";

template <class Params>
bool steps_in_range(const Params& p) {
  return between(p.kernel_h, 1, kMostStep) && between(p.kernel_w, 1, kMostStep) && between(p.stride_h, 1, kMostStep) &&
         between(p.stride_w, 1, kMostStep) && between(p.dilation_h, 1, kMostStep) &&
         between(p.dilation_w, 1, kMostStep) && between(p.pad_top, 0, kMostStep) && between(p.pad_left, 0, kMostStep);
}
template <class Params>
bool window_in_range(const Params& p) {
  const auto begins_near = [](std::int64_t out, std::int64_t stride, std::int64_t in) {
    return (out - 1) * stride <= in + 2 * kMostStep;
  };
  return steps_in_range(p) && begins_near(p.h_out, p.stride_h, p.h_in) && begins_near(p.w_out, p.stride_w, p.w_in);
}

// Bytes of packed weights of so many channels: for each block rows of biases and of taps.
std::uint64_t packed_bytes(std::int64_t channels, std::uint64_t biases, std::uint64_t taps, Target target,
                           std::uint64_t stored) {
  const auto rows = [&](std::uint64_t count) {
    return product({blocks(channels, target), static_cast<std::int64_t>(count), block_of(target)});
  };
  return rows(biases + taps) == 0 ? 0 : rows(biases) * sizeof(float) + rows(taps) * stored;
}

const char* conv_bytes(KernelId id, const ConvParams& p, Target target, std::uint64_t stored, std::uint64_t* out) {
  if (!window_in_range(p)) return kWindow;
  if (!known(p.activation) || !between(p.residual, 0, 1)) return kOptions;
  if (p.c_in < 1 || p.c_out < 1 || p.group < 1 || p.c_in % p.group != 0 || p.c_out % p.group != 0) {
    return "channels are not a multiple of the groups";
  }
  switch (id) {
    case KernelId::kConvPointwise:
      if (p.kernel_h != 1 || p.kernel_w != 1 || p.stride_h != 1 || p.stride_w != 1 || p.pad_top != 0 ||
          p.pad_left != 0 || p.h_out != p.h_in || p.w_out != p.w_in) {
        return "not a pointwise convolution";
      }
      [[fallthrough]];
    case KernelId::kConvDirect:
      if (p.group != 1) return "groups are not supported by this kernel";
      break;
    case KernelId::kConvFirst:
      if (!takes_linear_input(p)) return "a linear input has 1 to 4 channels and one group";
      break;
    case KernelId::kConvDepthwise:
      if (p.group != p.c_in || p.group != p.c_out) return "not a depthwise convolution";
      break;
    default: break;
  }
  out[0] = id == KernelId::kConvFirst ? product({p.n, p.c_in, p.h_in, p.w_in}) * stored
                                      : blocked(p.n, p.c_in, p.h_in, p.w_in, target, stored);
  const std::uint64_t taps = product({p.kernel_h, p.kernel_w, p.c_in / p.group});
  if (taps == 0) return kExtents;
  out[1] = packed_bytes(p.c_out, 1, taps, target, stored);
  out[3] = blocked(p.n, p.c_out, p.h_out, p.w_out, target, stored);
  out[2] = p.residual == 1 ? out[3] : 0;
  return out[0] == 0 || out[1] == 0 || out[3] == 0 ? kExtents : nullptr;
}

const char* conv_transpose_bytes(const ConvParams& p, Target target, std::uint64_t stored, std::uint64_t* out) {
  if (!steps_in_range(p)) return kWindow;
  if (!known(p.activation) || p.residual != 0) return kOptions;
  if (p.c_in < 1 || p.c_out < 1 || p.group < 1 || p.c_in % p.group != 0 || p.c_out % p.group != 0) {
    return "channels are not a multiple of the groups";
  }
  const std::uint64_t phases = product({p.stride_h, p.stride_w}),
                      taps = product({p.kernel_h, p.kernel_w, p.c_in / p.group});
  if (phases == 0 || taps == 0) return kExtents;
  out[0] = blocked(p.n, p.c_in, p.h_in, p.w_in, target, stored);
  out[1] = packed_bytes(p.c_out, phases, taps, target, stored);
  out[2] = blocked(p.n, p.c_out, p.h_out, p.w_out, target, stored);
  return out[0] == 0 || out[1] == 0 || out[2] == 0 ? kExtents : nullptr;
}

// First and last element of a strided box; false beyond the limits.
bool reach(const StridedCopyParams& p, const std::int64_t* strides, std::int64_t offset, std::int64_t* lowest,
           std::int64_t* highest) {
  std::int64_t low = offset, high = offset;
  for (int d = 0; d < p.rank; ++d) {
    std::int64_t span = 0;
    if (__builtin_mul_overflow(p.dims[d] - 1, strides[d], &span)) return false;
    if (!between(span, -kMost, kMost)) return false;
    (span < 0 ? low : high) += span;
  }
  *lowest = low;
  *highest = high;
  return between(low, 0, kMost) && between(high, 0, kMost);
}

}  // namespace

const char* operand_bytes(KernelId id, const void* params, Target target, OperandBytes* result) {
  *result = {};
  const std::uint64_t stored = is_f16_form(id) ? sizeof(std::uint16_t) : sizeof(float);
  if (is_f16_form(id)) {
    id = f32_form(id);
    if (!is_cuda(target) || !has_f16_form(id)) return "an unknown kernel";
  }
  std::uint64_t* const out = result->bytes;
  std::uint64_t* const element = result->element;
  constexpr std::uint64_t kFloat = sizeof(float);
  // Operands that hold what the form stores.
  const auto hold_stored = [&](std::initializer_list<int> operands) {
    for (const int i : operands) element[i] = stored;
  };
  switch (id) {
    case KernelId::kReorderToBlocked:
    case KernelId::kReorderToLinear:
    case KernelId::kReorderToLast: {
      const auto p = load<ReorderParams>(params);
      const bool from_linear = id == KernelId::kReorderToBlocked;
      hold_stored({from_linear ? 1 : 0});
      out[from_linear ? 0 : 1] = product({p.n, p.c, p.pixels}) * kFloat;
      out[from_linear ? 1 : 0] = blocked(p.n, p.c, p.pixels, 1, target, stored);
      return out[0] == 0 || out[1] == 0 ? kExtents : nullptr;
    }
    case KernelId::kGlobalAveragePool:
    case KernelId::kSoftmaxChannels: {
      const auto p = load<ReorderParams>(params);
      hold_stored({0, 1});
      out[0] = blocked(p.n, p.c, p.pixels, 1, target, stored);
      out[1] = id == KernelId::kSoftmaxChannels ? out[0] : blocked(p.n, p.c, 1, 1, target, stored);
      return out[0] == 0 || out[1] == 0 ? kExtents : nullptr;
    }
    case KernelId::kConvDirect:
    case KernelId::kConvPointwise:
    case KernelId::kConvDepthwise:
    case KernelId::kConvFirst:
    case KernelId::kConvGrouped:
      hold_stored({0, 2, 3});
      return conv_bytes(id, load<ConvParams>(params), target, stored, out);
    case KernelId::kConvMapped: {
      const auto p = load<MappedConvParams>(params);
      if (p.c_x < 1 || p.conv.c_in > kMostMappedChannels) return kExtents;
      hold_stored({0, 2, 3});
      const char* const problem = conv_bytes(KernelId::kConvPointwise, p.conv, target, stored, out);
      if (problem != nullptr) return problem;
      out[0] = blocked(p.conv.n, p.c_x, p.conv.h_in, p.conv.w_in, target, stored);
      out[1] += static_cast<std::uint64_t>(p.conv.c_in) * sizeof(std::int32_t);
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kConvTranspose:
      hold_stored({0, 2});
      return conv_transpose_bytes(load<ConvParams>(params), target, stored, out);
    case KernelId::kMaxPool:
    case KernelId::kAveragePool: {
      const auto p = load<PoolParams>(params);
      if (!window_in_range(p) || !between(p.pad_bottom, 0, kMostStep) || !between(p.pad_right, 0, kMostStep)) {
        return kWindow;
      }
      if (!between(p.count_padding, 0, 1)) return kOptions;
      hold_stored({0, 1});
      out[0] = blocked(p.n, p.c, p.h_in, p.w_in, target, stored);
      out[1] = blocked(p.n, p.c, p.h_out, p.w_out, target, stored);
      return out[0] == 0 || out[1] == 0 ? kExtents : nullptr;
    }
    case KernelId::kResizeNearest:
    case KernelId::kResizeLinear: {
      const auto p = load<ResizeParams>(params);
      hold_stored({0, 2});
      out[0] = blocked(p.n, p.c, p.h_in, p.w_in, target, stored);
      out[2] = blocked(p.n, p.c, p.h_out, p.w_out, target, stored);
      if (out[0] == 0 || out[2] == 0) return kExtents;
      out[1] = (std::uint64_t(p.h_out) + std::uint64_t(p.w_out)) * sizeof(Tap);
      return nullptr;
    }
    case KernelId::kPad: {
      const auto p = load<PadParams>(params);
      if (!between(static_cast<std::int32_t>(p.mode), 0, 2)) return kOptions;
      hold_stored({0, 1});
      out[0] = blocked(p.n, p.c, p.h_in, p.w_in, target, stored);
      out[1] = blocked(p.n, p.c, p.h_out, p.w_out, target, stored);
      if (out[0] == 0 || out[1] == 0) return kExtents;
      const std::int64_t bottom = std::int64_t{p.h_out} - p.h_in - p.top,
                         right = std::int64_t{p.w_out} - p.w_in - p.left;
      if (p.top < 0 || p.left < 0 || bottom < 0 || right < 0) return "a margin is negative";
      if (p.mode == PadMode::kReflect && (p.top >= p.h_in || bottom >= p.h_in || p.left >= p.w_in || right >= p.w_in)) {
        return "a mirrored margin is not smaller than its extent";
      }
      return nullptr;
    }
    case KernelId::kUnary: {
      const auto p = load<UnaryParams>(params);
      if (!between(static_cast<std::int32_t>(p.op), 0, 5) || !known(p.activation) || !between(p.blocked, 0, 1)) {
        return kOptions;
      }
      hold_stored({0, 1});
      out[0] = p.blocked == 1 ? blocked(p.n, p.c, p.pixels, 1, target, stored) : product({p.n, p.c, p.pixels}) * stored;
      out[1] = out[0];
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kBinary: {
      const auto p = load<BinaryParams>(params);
      if (!known(p.op) || !between(static_cast<std::int32_t>(p.second), 0, 2) || !between(p.swapped, 0, 1) ||
          !between(p.blocked, 0, 1)) {
        return kOptions;
      }
      hold_stored({0, 2});
      if (p.second != Operand2::kScalar) hold_stored({1});
      out[0] = p.blocked == 1 ? blocked(p.n, p.c, p.pixels, 1, target, stored) : product({p.n, p.c, p.pixels}) * stored;
      if (out[0] == 0) return kExtents;
      out[1] = p.second == Operand2::kSame     ? out[0]
               : p.second == Operand2::kScalar ? kFloat
               : p.blocked == 1                ? blocked(1, p.c, 1, 1, target, stored)
                                               : product({p.c}) * stored;
      out[2] = out[0];
      return nullptr;
    }
    case KernelId::kBinaryBroadcast: {
      const auto p = load<BroadcastParams>(params);
      if (!known(p.op)) return kOptions;
      if (!between(p.rank, 0, kMaxRank)) return "rank out of range";
      std::int64_t n = 1, last_a = 0, last_b = 0;
      for (int d = 0; d < p.rank; ++d) {
        if (!between(p.stride_a[d], 0, kMost) || !between(p.stride_b[d], 0, kMost)) return "a stride is out of range";
        if (!between(p.dims[d], 1, kMost) || n > kMost / p.dims[d]) return kExtents;
        n *= p.dims[d];
        std::int64_t a = 0, b = 0;
        if (__builtin_mul_overflow(p.dims[d] - 1, p.stride_a[d], &a) || a > kMost ||
            __builtin_mul_overflow(p.dims[d] - 1, p.stride_b[d], &b) || b > kMost) {
          return "a stride is out of range";
        }
        last_a += a;
        last_b += b;
      }
      out[0] = (std::uint64_t(last_a) + 1) * kFloat;
      out[1] = (std::uint64_t(last_b) + 1) * kFloat;
      out[2] = std::uint64_t(n) * kFloat;
      return nullptr;
    }
    case KernelId::kChannelGather: {
      const auto p = load<ChannelGatherParams>(params);
      if (p.c_b < 0) return kExtents;
      hold_stored({0, 1, 3});
      if (std::int64_t{p.c_a} + p.c_b > std::numeric_limits<std::int32_t>::max()) return kExtents;
      out[0] = blocked(p.n, p.c_a, p.pixels, 1, target, stored);
      out[1] = p.c_b == 0 ? 0 : blocked(p.n, p.c_b, p.pixels, 1, target, stored);
      out[2] = product({p.c_out}) * sizeof(std::int32_t);
      out[3] = blocked(p.n, p.c_out, p.pixels, 1, target, stored);
      return out[0] == 0 || (p.c_b != 0 && out[1] == 0) || out[3] == 0 ? kExtents : nullptr;
    }
    case KernelId::kChannelCopy: {
      const auto p = load<ChannelCopyParams>(params);
      hold_stored({0, 1});
      out[0] = blocked(p.n, p.c_in, p.pixels, 1, target, stored);
      out[1] = blocked(p.n, p.c_out, p.pixels, 1, target, stored);
      if (out[0] == 0 || out[1] == 0) return kExtents;
      if (p.count < 1 || p.from < 0 || p.to < 0 || std::int64_t{p.from} + p.count > p.c_in ||
          std::int64_t{p.to} + p.count > p.c_out) {
        return "channels out of range";
      }
      return nullptr;
    }
    case KernelId::kStridedCopy: {
      const auto p = load<StridedCopyParams>(params);
      if (!element_size(p.element_bytes)) return kOptions;
      if (!between(p.rank, 0, kMaxRank)) return "rank out of range";
      std::int64_t n = 1;
      for (int d = 0; d < p.rank; ++d) {
        if (!between(p.dims[d], 1, kMost) || n > kMost / p.dims[d]) return kExtents;
        n *= p.dims[d];
      }
      std::int64_t first = 0, last_in = 0, last_out = 0;
      if (!between(p.in_offset, 0, kMost) || !between(p.out_offset, 0, kMost) ||
          !reach(p, p.stride_in, p.in_offset, &first, &last_in) ||
          !reach(p, p.stride_out, p.out_offset, &first, &last_out)) {
        return "an element lies out of range";
      }
      if (n > last_out - first + 1) return "an element is written twice";
      element[0] = element[1] = std::uint64_t(p.element_bytes);
      out[0] = (std::uint64_t(last_in) + 1) * std::uint64_t(p.element_bytes);
      out[1] = (std::uint64_t(last_out) + 1) * std::uint64_t(p.element_bytes);
      return nullptr;
    }
    case KernelId::kFill: {
      const auto p = load<FillParams>(params);
      if (!element_size(p.element_bytes)) return kOptions;
      element[0] = std::uint64_t(p.element_bytes);
      out[0] = product({p.elements}) * std::uint64_t(p.element_bytes);
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kGather: {
      const auto p = load<GatherParams>(params);
      if (!element_size(p.element_bytes) || (p.index_bytes != 4 && p.index_bytes != 8)) return kOptions;
      element[0] = element[2] = std::uint64_t(p.element_bytes);
      element[1] = std::uint64_t(p.index_bytes);
      out[0] = product({p.outer, p.axis, p.inner}) * std::uint64_t(p.element_bytes);
      out[1] = product({p.count}) * std::uint64_t(p.index_bytes);
      out[2] = product({p.outer, p.count, p.inner}) * std::uint64_t(p.element_bytes);
      return out[0] == 0 || out[1] == 0 || out[2] == 0 ? kExtents : nullptr;
    }
    case KernelId::kCast: {
      const auto p = load<CastParams>(params);
      const bool narrow = stored != kFloat;
      const std::size_t from = cast_size(p.from, narrow), to = cast_size(p.to, narrow);
      if (from == 0 || to == 0 || (narrow && from == to)) return "an element type that is not cast";
      element[0] = from;
      element[1] = to;
      out[0] = product({p.elements}) * from;
      out[1] = product({p.elements}) * to;
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kSoftmax:
    case KernelId::kReduceMean: {
      const auto p = load<SoftmaxParams>(params);
      out[0] = product({p.outer, p.axis, p.inner}) * kFloat;
      out[1] = id == KernelId::kSoftmax ? out[0] : product({p.outer, p.inner}) * kFloat;
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kLayerNorm: {
      const auto p = load<LayerNormParams>(params);
      if (!between(p.scale, 0, 1) || !between(p.bias, 0, 1)) return kOptions;
      out[0] = out[3] = product({p.outer, p.axis}) * kFloat;
      out[1] = p.scale == 1 ? product({p.axis}) * kFloat : 0;
      out[2] = p.bias == 1 ? product({p.axis}) * kFloat : 0;
      return out[0] == 0 ? kExtents : nullptr;
    }
    case KernelId::kGemm: {
      const auto p = load<GemmParams>(params);
      if (!between(p.batch_a, 0, 1) || !between(p.batch_b, 0, 1) || !between(static_cast<std::int32_t>(p.bias), 0, 4) ||
          !known(p.activation)) {
        return kOptions;
      }
      out[0] = product({p.batch_a == 1 ? p.batch : 1, p.m, p.k}) * kFloat;
      out[1] = product({p.batch_b == 1 ? p.batch : 1, p.k, p.n}) * kFloat;
      switch (p.bias) {
        case GemmBias::kNone: out[2] = 0; break;
        case GemmBias::kColumn: out[2] = product({p.n}) * kFloat; break;
        case GemmBias::kRow: out[2] = product({p.m}) * kFloat; break;
        case GemmBias::kFull: out[2] = product({p.m, p.n}) * kFloat; break;
        case GemmBias::kScalar: out[2] = kFloat; break;
      }
      out[3] = product({p.batch, p.m, p.n}) * kFloat;
      return out[0] == 0 || out[1] == 0 || out[3] == 0 ? kExtents : nullptr;
    }
    case KernelId::kPreprocess: {
      const auto p = load<Preprocess>(params);
      const auto extent = [](std::uint32_t v) { return v >= 1 && v <= kMaxPixels; };
      if (!extent(p.source_width) || !extent(p.source_height) || !extent(p.width) || !extent(p.height)) {
        return kExtents;
      }
      if (static_cast<std::uint32_t>(p.fit) > 1 || static_cast<std::uint32_t>(p.colour) > 1 || p.pad > 255) {
        return kOptions;
      }
      std::uint64_t row = p.source_width;
      std::uint64_t chroma_rows = 0;
      switch (p.source) {
        case PixelSource::kRgb8:
        case PixelSource::kBgr8: row *= 3; break;
        case PixelSource::kMono8: break;
        case PixelSource::kNv12:
          if (p.source_width % 2 != 0 || p.source_height % 2 != 0) return "an odd extent of nv12";
          if (p.chroma_pitch < row) return "a row is longer than its pitch";
          chroma_rows = p.source_height / 2;
          break;
        case PixelSource::kBayerRggb8:
          if (p.source_width < 2 || p.source_height < 2) return "a mosaic has at least two rows and columns";
          break;
        default: return kOptions;
      }
      if (p.pitch < row) return "a row is longer than its pitch";
      if (p.offset > std::uint64_t(kMost) || p.chroma_offset > std::uint64_t(kMost)) return "an offset out of range";
      out[0] = p.offset + (p.source_height - 1) * std::uint64_t{p.pitch} + row;
      if (chroma_rows > 0) {
        out[0] = std::max(out[0], p.chroma_offset + (chroma_rows - 1) * std::uint64_t{p.chroma_pitch} + row);
      }
      element[0] = 1;
      hold_stored({1});
      out[1] = product({3, p.height, p.width}) * stored;
      return nullptr;
    }
    case KernelId::kSelect: {
      const auto p = load<SelectParams>(params);
      const bool known = p.element_bytes == 1 || p.element_bytes == 2 || p.element_bytes == 4 || p.element_bytes == 8;
      if (!known) return kOptions;
      out[0] = element[0] = 1;
      out[1] = out[2] = out[3] = product({p.elements}) * static_cast<std::uint64_t>(p.element_bytes);
      element[1] = element[2] = element[3] = static_cast<std::uint64_t>(p.element_bytes);
      return out[1] == 0 ? kExtents : nullptr;
    }
    case KernelId::kReference:
    case KernelId::kCounted:
    case KernelId::kCounting: {
      const auto p = load<reference::GenericParams>(params);
      std::uint64_t bytes[reference::kGenericOperands] = {};
      // Behind the inputs stand counts, where the kernel has them; the result is last, or its count.
      const bool counted = id != KernelId::kReference;
      const int last = reference::kGenericInputs + (counted ? reference::kMostCounts : 0);
      bool uses[reference::kMostCounts] = {};
      for (int i = 0; i < reference::kGenericOperands; ++i) {
        const reference::GenericType& type = p.operands[i];
        if (type.dtype == 0) {
          // Nobody looks at what is absent, so it says nothing.
          if (type.rank != 0 || type.count != 0 || type.axis != 0) return kOptions;
          continue;
        }
        const std::size_t size = size_of(static_cast<DType>(type.dtype));
        if (size == 0 || type.rank > kMaxRank) return kOptions;
        element[i < reference::kGenericInputs ? i : last] = size;
        bytes[i] = size;
        for (int d = 0; d < type.rank; ++d) {
          if (type.dims[d] < 1 || bytes[i] > std::uint64_t(kMost) / std::uint64_t(type.dims[d])) return kExtents;
          bytes[i] *= std::uint64_t(type.dims[d]);
        }
        if (type.count >= 1 && type.count <= reference::kMostCounts) uses[type.count - 1] = true;
      }
      // One of the two results, the other absent.
      const std::uint64_t first = bytes[reference::kGenericInputs], second = bytes[reference::kGenericInputs + 1];
      if ((first == 0) == (second == 0)) return "a step has one result";
      for (int i = 0; i < reference::kGenericInputs; ++i) out[i] = bytes[i];
      out[last] = first + second;
      if (!counted) return reference::generic_check(p, bytes);
      for (int c = 0; c < reference::kMostCounts; ++c) {
        out[reference::kGenericInputs + c] = uses[c] ? sizeof(std::int32_t) : 0;
      }
      if (id == KernelId::kCounting) out[last + 1] = sizeof(std::int32_t);
      return reference::counted_check(p, bytes, id == KernelId::kCounting);
    }
    default: break;
  }
  const OperatorKernel* const own = find_operator_kernel(id);
  if (own == nullptr) return "an unknown kernel";
  if (const char* const error = own->operand_bytes(params, result)) return error;
  if (own->cuda_scratch != nullptr && is_cuda(target)) {
    result->bytes[own->first_scratch()] = own->cuda_scratch(params);
    result->element[own->first_scratch()] = 16;
    if (result->bytes[own->first_scratch()] == 0) return "extents are too large for a GPU";
  }
  return nullptr;
}

std::uint64_t flops_of(KernelId id, const void* params) {
  id = f32_form(id);
  const auto count = [](std::initializer_list<std::int64_t> extents) {
    std::uint64_t n = 1;
    for (const std::int64_t extent : extents) n *= static_cast<std::uint64_t>(extent);
    return n;
  };
  switch (id) {
    case KernelId::kConvDirect:
    case KernelId::kConvPointwise:
    case KernelId::kConvMapped:  // begins with the parameters of the convolution
    case KernelId::kConvDepthwise:
    case KernelId::kConvFirst:
    case KernelId::kConvGrouped: {
      const auto p = load<ConvParams>(params);
      return count({2, p.n, p.c_out, p.h_out, p.w_out, p.kernel_h, p.kernel_w, p.c_in / p.group});
    }
    case KernelId::kConvTranspose: {
      const auto p = load<ConvParams>(params);
      return count({2, p.n, p.c_in, p.h_in, p.w_in, p.kernel_h, p.kernel_w, p.c_out / p.group});
    }
    case KernelId::kMaxPool:
    case KernelId::kAveragePool: {
      const auto p = load<PoolParams>(params);
      return count({p.n, p.c, p.h_out, p.w_out, p.kernel_h, p.kernel_w});
    }
    case KernelId::kGlobalAveragePool: {
      const auto p = load<ReorderParams>(params);
      return count({p.n, p.c, p.pixels});
    }
    case KernelId::kSoftmaxChannels: {
      const auto p = load<ReorderParams>(params);
      return count({4, p.n, p.c, p.pixels});
    }
    case KernelId::kResizeLinear: {
      const auto p = load<ResizeParams>(params);
      return count({9, p.n, p.c, p.h_out, p.w_out});
    }
    case KernelId::kUnary: {
      const auto p = load<UnaryParams>(params);
      return count({p.n, p.c, p.pixels});
    }
    case KernelId::kBinary: {
      const auto p = load<BinaryParams>(params);
      return count({p.n, p.c, p.pixels});
    }
    case KernelId::kBinaryBroadcast: {
      const auto p = load<BroadcastParams>(params);
      std::uint64_t n = 1;
      for (int d = 0; d < p.rank; ++d) n *= static_cast<std::uint64_t>(p.dims[d]);
      return n;
    }
    case KernelId::kSoftmax: {
      const auto p = load<SoftmaxParams>(params);
      return count({4, p.outer, p.axis, p.inner});
    }
    case KernelId::kReduceMean: {
      const auto p = load<SoftmaxParams>(params);
      return count({p.outer, p.axis, p.inner});
    }
    case KernelId::kLayerNorm: {
      const auto p = load<LayerNormParams>(params);
      return count({8, p.outer, p.axis});
    }
    case KernelId::kGemm: {
      const auto p = load<GemmParams>(params);
      return count({2, p.batch, p.m, p.k, p.n});
    }
    case KernelId::kPreprocess: {
      const auto p = load<Preprocess>(params);
      return count({33, p.height, p.width});  // 3 channels: three subtractions, three multiply-adds, one more
    }
    case KernelId::kCounted:
    case KernelId::kCounting: {
      // Of what compares every pair, all pairs.
      const auto p = load<reference::GenericParams>(params);
      std::int64_t n = 1;
      for (int d = 0; d < p.operands[0].rank; ++d) n *= p.operands[0].dims[d];
      const bool pairs = p.op == reference::Generic::kUnique || p.op == reference::Generic::kNms;
      return count({n, pairs ? n : 1});
    }
    default: break;
  }
  const OperatorKernel* const own = find_operator_kernel(id);
  return own != nullptr && own->flops != nullptr ? own->flops(params) : 0;
}

const OperatorKernel* find_operator_kernel(KernelId id) {
  for (const auto family : {voxel_operators(), point_operators(), tracking_operators()}) {
    for (const OperatorKernel* const kernel : family) {
      if (kernel->id == id) return kernel;
    }
  }
  return nullptr;
}

bool has_f16_form(KernelId id) {
  switch (id) {
    case KernelId::kReorderToBlocked:
    case KernelId::kReorderToLinear:
    case KernelId::kReorderToLast:
    case KernelId::kConvDirect:
    case KernelId::kConvPointwise:
    case KernelId::kConvDepthwise:
    case KernelId::kConvFirst:
    case KernelId::kConvGrouped:
    case KernelId::kConvTranspose:
    case KernelId::kConvMapped:
    case KernelId::kMaxPool:
    case KernelId::kAveragePool:
    case KernelId::kGlobalAveragePool:
    case KernelId::kResizeNearest:
    case KernelId::kResizeLinear:
    case KernelId::kPad:
    case KernelId::kUnary:
    case KernelId::kBinary:
    case KernelId::kChannelGather:
    case KernelId::kChannelCopy:
    case KernelId::kCast:
    case KernelId::kSoftmaxChannels:
    case KernelId::kPreprocess: return true;
    default: return false;
  }
}

std::vector<std::byte> stored_as(DType stored, std::span<const float> values) {
  const std::size_t size = size_of(stored);
  std::vector<std::byte> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) store(bytes.data() + i * size, values[i], stored);
  return bytes;
}

std::vector<std::byte> pack_conv(const ConvParams& p, const float* weights, const float* bias, Target target,
                                 DType stored) {
  const std::int64_t block = block_of(target), count = blocks(p.c_out, target);
  const std::int64_t depth = p.c_in / p.group, taps = std::int64_t{p.kernel_h} * p.kernel_w;
  const auto size = static_cast<std::int64_t>(size_of(stored)), wide = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t bytes_of_block = (wide + taps * depth * size) * block;
  std::vector<std::byte> packed(static_cast<std::size_t>(count * bytes_of_block));
  for (std::int64_t c = 0; c < p.c_out; ++c) {
    std::byte* const biases = packed.data() + (c / block) * bytes_of_block;
    std::byte* const rows = biases + wide * block;
    if (bias != nullptr) store(biases + c % block * wide, bias[c], DType::kF32);
    for (std::int64_t d = 0; d < depth; ++d) {
      for (std::int64_t t = 0; t < taps; ++t) {
        store(rows + ((t * depth + d) * block + c % block) * size, weights[(c * depth + d) * taps + t], stored);
      }
    }
  }
  return packed;
}

namespace {

KernelId form_of(KernelId id, DType stored) { return stored == DType::kF16 ? f16_form(id) : id; }

}  // namespace

Call make_conv(const ConvParams& p, const float* weights, const float* bias, bool linear_input, Target target,
               DType stored) {
  const bool depthwise = p.group == p.c_in && p.group == p.c_out;
  const KernelId id = linear_input      ? KernelId::kConvFirst
                      : is_pointwise(p) ? KernelId::kConvPointwise
                      : p.group == 1    ? KernelId::kConvDirect
                      : depthwise       ? KernelId::kConvDepthwise
                                        : KernelId::kConvGrouped;
  Call call = make_call(form_of(id, stored), p);
  call.constant = pack_conv(p, weights, bias, target, stored);
  call.constant_operand = 1;
  return call;
}

Call make_mapped_conv(const ConvParams& p, std::int32_t c_x, std::span<const std::int32_t> channels,
                      const float* weights, const float* bias, Target target, DType stored) {
  Call call = make_call(form_of(KernelId::kConvMapped, stored), MappedConvParams{p, c_x, 0});
  call.constant = pack_conv(p, weights, bias, target, stored);
  const auto bytes = std::as_bytes(channels);
  call.constant.insert(call.constant.end(), bytes.begin(), bytes.end());
  call.constant_operand = 1;
  return call;
}
Call make_conv_transpose(const ConvParams& p, const float* weights, const float* bias, Target target, DType stored) {
  const std::int64_t depth = p.c_in / p.group, width = p.c_out / p.group;
  if (p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 && p.group == 1 && p.pad_top == 0 &&
      p.pad_left == 0 && p.h_out == p.h_in && p.w_out == p.w_in) {
    std::vector<float> rows(static_cast<std::size_t>(depth * width));
    for (std::int64_t c = 0; c < width; ++c) {
      for (std::int64_t d = 0; d < depth; ++d) rows[static_cast<std::size_t>(c * depth + d)] = weights[d * width + c];
    }
    return make_conv(p, rows.data(), bias, false, target, stored);
  }
  Call call = make_call(form_of(KernelId::kConvTranspose, stored), p);
  const std::int64_t block = block_of(target), count = blocks(p.c_out, target);
  std::vector<std::byte>& packed = call.constant;
  for (std::int32_t phase_h = 0; phase_h < p.stride_h; ++phase_h) {
    for (std::int32_t phase_w = 0; phase_w < p.stride_w; ++phase_w) {
      for (std::int64_t b = 0; b < count; ++b) {
        const std::int64_t first = b * block, last = std::min<std::int64_t>(first + block, p.c_out);
        const auto row = [&](DType type, auto value) {
          for (std::int64_t c = first; c < first + block; ++c) {
            packed.resize(packed.size() + size_of(type));
            store(&packed.back() + 1 - size_of(type), c < last ? value(c) : 0.0F, type);
          }
        };
        row(DType::kF32, [&](std::int64_t c) { return bias == nullptr ? 0.0F : bias[c]; });
        for (std::int64_t kh = 0; kh < p.kernel_h; ++kh) {
          if (kh * p.dilation_h % p.stride_h != phase_h) continue;
          for (std::int64_t kw = 0; kw < p.kernel_w; ++kw) {
            if (kw * p.dilation_w % p.stride_w != phase_w) continue;
            for (std::int64_t d = 0; d < depth; ++d) {
              row(stored, [&](std::int64_t c) {
                return weights[(((c / width * depth + d) * width + c % width) * p.kernel_h + kh) * p.kernel_w + kw];
              });
            }
          }
        }
      }
    }
  }
  call.constant_operand = 1;
  return call;
}

Call make_resize(const ResizeParams& p, std::span<const Tap> rows, std::span<const Tap> columns) {
  const auto whole = [](const Tap& tap) { return tap.weight == 0; };
  const bool nearest =
      std::all_of(rows.begin(), rows.end(), whole) && std::all_of(columns.begin(), columns.end(), whole);
  Call call = make_call(nearest ? KernelId::kResizeNearest : KernelId::kResizeLinear, p);
  call.constant.resize(rows.size_bytes() + columns.size_bytes());
  std::memcpy(call.constant.data(), rows.data(), rows.size_bytes());
  std::memcpy(call.constant.data() + rows.size_bytes(), columns.data(), columns.size_bytes());
  call.constant_operand = 1;
  return call;
}

Call make_channel_gather(const ChannelGatherParams& p, std::span<const std::int32_t> channels) {
  Call call = make_call(KernelId::kChannelGather, p);
  call.constant.resize(channels.size_bytes());
  std::memcpy(call.constant.data(), channels.data(), channels.size_bytes());
  call.constant_operand = 2;
  return call;
}

namespace {

std::array<std::int64_t, kMaxRank> strides_of(const Shape& shape) {
  std::array<std::int64_t, kMaxRank> strides{};
  std::int64_t n = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = n;
    n *= shape.dims[d];
  }
  return strides;
}

// Without extents of one, and neighbouring extents that lie one after the other in both tensors joined: the inner loop
// of the kernel gets as long as it can be.
StridedCopyParams simplified(const StridedCopyParams& p) {
  StridedCopyParams q = p;
  q.rank = 0;
  for (int d = 0; d < kMaxRank; ++d) {
    q.dims[d] = 1;
    q.stride_in[d] = q.stride_out[d] = 0;
  }
  for (int d = 0; d < p.rank; ++d) {
    if (p.dims[d] == 1) continue;
    const int last = q.rank - 1;
    if (last >= 0 && q.stride_in[last] == p.stride_in[d] * p.dims[d] &&
        q.stride_out[last] == p.stride_out[d] * p.dims[d]) {
      q.dims[last] *= p.dims[d];
      q.stride_in[last] = p.stride_in[d];
      q.stride_out[last] = p.stride_out[d];
      continue;
    }
    q.dims[q.rank] = p.dims[d];
    q.stride_in[q.rank] = p.stride_in[d];
    q.stride_out[q.rank] = p.stride_out[d];
    ++q.rank;
  }
  return q;
}

}  // namespace

Call make_transpose(const Shape& shape, std::span<const int> permutation, DType dtype) {
  StridedCopyParams p;
  p.element_bytes = static_cast<std::int32_t>(size_of(dtype));
  p.rank = shape.rank;
  const auto in = strides_of(shape);
  std::int64_t n = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    const auto from = static_cast<std::size_t>(permutation[static_cast<std::size_t>(d)]);
    p.dims[d] = shape.dims[from];
    p.stride_in[d] = in[from];
    p.stride_out[d] = n;
    n *= p.dims[d];
  }
  return make_call(KernelId::kStridedCopy, simplified(p));
}

Call make_copy(const Shape& in, const Shape& out, DType dtype, std::span<const std::int64_t> extents,
               std::span<const std::int64_t> in_start, std::span<const std::int64_t> in_step,
               std::span<const std::int64_t> out_start) {
  StridedCopyParams p;
  p.element_bytes = static_cast<std::int32_t>(size_of(dtype));
  p.rank = in.rank;
  const auto from = strides_of(in), to = strides_of(out);
  for (int d = 0; d < in.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    p.dims[d] = extents[i];
    p.stride_in[d] = from[i] * in_step[i];
    p.stride_out[d] = to[i];
    p.in_offset += from[i] * in_start[i];
    p.out_offset += to[i] * out_start[i];
  }
  return make_call(KernelId::kStridedCopy, simplified(p));
}

Call make_binary(Binary op, const Shape& a, const Shape& b, const Shape& out, bool* swapped) {
  *swapped = false;
  const auto simple = [&](const Shape& first, const Shape& second, bool swap) -> Call {
    BinaryParams p;
    p.op = op;
    p.swapped = swap ? 1 : 0;
    p.pixels = out.elements();
    // Leading extents of one do not change how the elements lie.
    const auto aligned = [&](const Shape& shape, int d) {
      const int own = d - (out.rank - shape.rank);
      return own < 0 ? 1 : shape.dims[own];
    };
    if (first.elements() != out.elements()) return {};
    if (second.elements() == out.elements()) {
      p.second = Operand2::kSame;
      return make_call(KernelId::kBinary, p);
    }
    if (second.elements() == 1) {
      p.second = Operand2::kScalar;
      return make_call(KernelId::kBinary, p);
    }
    // One extent that is B's only one: everything before it are images, everything behind it pixels.
    int axis = -1;
    for (int d = 0; d < out.rank; ++d) {
      if (aligned(second, d) != 1) axis = axis == -1 ? d : -2;
    }
    if (axis < 0) return {};
    std::int64_t before = 1, after = 1;
    for (int d = 0; d < axis; ++d) before *= out.dims[d];
    for (int d = axis + 1; d < out.rank; ++d) after *= out.dims[d];
    constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();
    if (before > kMostInt || out.dims[axis] > kMostInt) return {};
    p.second = Operand2::kChannel;
    p.n = static_cast<std::int32_t>(before);
    p.c = static_cast<std::int32_t>(out.dims[axis]);
    p.pixels = after;
    return make_call(KernelId::kBinary, p);
  };
  if (Call call = simple(a, b, false); !call.params.empty()) return call;
  if (Call call = simple(b, a, true); !call.params.empty()) {
    *swapped = true;
    return call;
  }
  BroadcastParams p;
  p.op = op;
  p.rank = out.rank;
  const auto strides_a = strides_of(a), strides_b = strides_of(b);
  for (int d = 0; d < out.rank; ++d) {
    p.dims[d] = out.dims[d];
    const int in_a = d - (out.rank - a.rank), in_b = d - (out.rank - b.rank);
    if (in_a >= 0 && a.dims[in_a] != 1) p.stride_a[d] = strides_a[static_cast<std::size_t>(in_a)];
    if (in_b >= 0 && b.dims[in_b] != 1) p.stride_b[d] = strides_b[static_cast<std::size_t>(in_b)];
  }
  return make_call(KernelId::kBinaryBroadcast, p);
}

}  // namespace takt::kernels::cpu
