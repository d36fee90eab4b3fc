// Linear tensors: strided copies, fills, gathers, casts. Nothing here computes, so one plain source serves all targets.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/cpu/device.h"
#include "kernels/tensor.h"

namespace takt::kernels::cpu {
namespace {

template <class Params>
Params load_params(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

struct Range {
  std::ptrdiff_t first = 0, last = 0;
};
Range share_of(std::ptrdiff_t count, int part, int parts) { return {count * part / parts, count * (part + 1) / parts}; }

// Calls run.template operator()<Word>() with the unsigned type of that many bytes.
template <class Run>
void with_word(std::int32_t bytes, Run&& run) {
  switch (bytes) {
    case 1: return run(std::uint8_t{});
    case 2: return run(std::uint16_t{});
    case 4: return run(std::uint32_t{});
    default: return run(std::uint64_t{});
  }
}

// The two innermost extents in tiles: where one tensor runs along one of them and the other tensor along the other (a
// transpose), both are walked in whole cache lines.
constexpr std::ptrdiff_t kTile = 16;

template <class Word>
void copy_plane(const Word* x, Word* y, std::ptrdiff_t rows, std::ptrdiff_t columns, const std::int64_t (&in)[2],
                const std::int64_t (&out)[2]) {
  if (in[1] == 1 && out[1] == 1) {
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
      const Word* const from = x + r * in[0];
      Word* const to = y + r * out[0];
      for (std::ptrdiff_t c = 0; c < columns; ++c) to[c] = from[c];
    }
    return;
  }
  for (std::ptrdiff_t r0 = 0; r0 < rows; r0 += kTile) {
    for (std::ptrdiff_t c0 = 0; c0 < columns; c0 += kTile) {
      for (std::ptrdiff_t r = r0; r < std::min(r0 + kTile, rows); ++r) {
        for (std::ptrdiff_t c = c0; c < std::min(c0 + kTile, columns); ++c) {
          y[r * out[0] + c * out[1]] = x[r * in[0] + c * in[1]];
        }
      }
    }
  }
}

void strided_copy(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<StridedCopyParams>(params);
  with_word(p.element_bytes, [&](auto word) {
    using Word = decltype(word);
    const auto* const x = reinterpret_cast<const Word*>(operands[0].data) + p.in_offset;
    auto* const y = reinterpret_cast<Word*>(operands[1].data) + p.out_offset;
    // Parts share the extent before the last two, or the rows of the only plane.
    const int outer = std::max(p.rank - 2, 0);
    const bool has_rows = p.rank >= 2, has_columns = p.rank >= 1;
    std::ptrdiff_t planes = 1;
    for (int d = 0; d < outer; ++d) planes *= p.dims[d];
    const std::ptrdiff_t rows = has_rows ? p.dims[p.rank - 2] : 1, columns = has_columns ? p.dims[p.rank - 1] : 1;
    const std::int64_t in[2] = {has_rows ? p.stride_in[p.rank - 2] : 0, has_columns ? p.stride_in[p.rank - 1] : 0};
    const std::int64_t out[2] = {has_rows ? p.stride_out[p.rank - 2] : 0, has_columns ? p.stride_out[p.rank - 1] : 0};
    const bool by_plane = planes >= parts;
    const Range own_planes = by_plane ? share_of(planes, part, parts) : Range{0, planes};
    const bool by_column = !by_plane && rows < parts;
    const Range own_rows = by_plane || by_column ? Range{0, rows} : share_of(rows, part, parts);
    const Range own_columns = by_column ? share_of(columns, part, parts) : Range{0, columns};
    for (std::ptrdiff_t plane = own_planes.first; plane < own_planes.last; ++plane) {
      std::ptrdiff_t rest = plane, from = 0, to = 0;
      for (int d = outer - 1; d >= 0; --d) {
        const std::ptrdiff_t i = rest % p.dims[d];
        rest /= p.dims[d];
        from += i * p.stride_in[d];
        to += i * p.stride_out[d];
      }
      from += own_rows.first * in[0] + own_columns.first * in[1];
      to += own_rows.first * out[0] + own_columns.first * out[1];
      copy_plane(x + from, y + to, own_rows.last - own_rows.first, own_columns.last - own_columns.first, in, out);
    }
  });
}

void fill(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<FillParams>(params);
  with_word(p.element_bytes, [&](auto word) {
    using Word = decltype(word);
    const Range own = share_of(p.elements, part, parts);
    auto* const y = reinterpret_cast<Word*>(operands[0].data);
    for (std::ptrdiff_t i = own.first; i < own.last; ++i) y[i] = static_cast<Word>(p.value);
  });
}

void gather(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<GatherParams>(params);
  with_word(p.element_bytes, [&](auto word) {
    using Word = decltype(word);
    const auto* const x = reinterpret_cast<const Word*>(operands[0].data);
    auto* const y = reinterpret_cast<Word*>(operands[2].data);
    const Range own = share_of(p.outer * p.count, part, parts);
    for (std::ptrdiff_t u = own.first; u < own.last; ++u) {
      const std::ptrdiff_t outer = u / p.count, i = u % p.count;
      std::int64_t index = 0;
      if (p.index_bytes == 4) {
        std::int32_t small = 0;
        std::memcpy(&small, operands[1].data + i * 4, sizeof(small));
        index = small;
      } else {
        std::memcpy(&index, operands[1].data + i * 8, sizeof(index));
      }
      if (index < 0 && index >= -p.axis) index += p.axis;
      const bool found = index >= 0 && index < p.axis;
      const Word* const from = x + (outer * p.axis + (found ? index : 0)) * p.inner;
      Word* const to = y + u * p.inner;
      for (std::ptrdiff_t j = 0; j < p.inner; ++j) to[j] = found ? from[j] : Word{0};
    }
  });
}

// Conversions as params.h states them.
template <class To, class From>
To cast_one(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    if (!(value == value)) return To{0};
    // The limits as floats: the upper one rounds up to a power of two for the wide types, so "not below" clamps.
    constexpr auto kLow = static_cast<float>(std::numeric_limits<To>::min());
    constexpr auto kHigh = static_cast<float>(std::numeric_limits<To>::max());
    if (value <= kLow) return std::numeric_limits<To>::min();
    if (value >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class Run>
void with_type(std::int32_t type, Run&& run) {
  switch (static_cast<DType>(type)) {
    case DType::kF32: return run(float{});
    case DType::kI64: return run(std::int64_t{});
    case DType::kI32: return run(std::int32_t{});
    case DType::kU8: return run(std::uint8_t{});
    default: return run(bool{});
  }
}

void cast(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<CastParams>(params);
  const Range own = share_of(p.elements, part, parts);
  with_type(p.from, [&](auto from) {
    with_type(p.to, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      auto* const y = reinterpret_cast<To*>(operands[1].data);
      for (std::ptrdiff_t i = own.first; i < own.last; ++i) {
        if constexpr (std::is_same_v<From, bool>) {
          // Any byte but zero is true; a bool object may not hold it.
          y[i] = cast_one<To>(static_cast<std::uint8_t>(operands[0].data[i] != std::byte{0}));
        } else {
          y[i] = cast_one<To>(reinterpret_cast<const From*>(operands[0].data)[i]);
        }
      }
    });
  });
}

}  // namespace

std::span<const DeviceHalf> movement_kernels(Target target) {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kStridedCopy, strided_copy},
                                           {KernelId::kFill, fill},
                                           {KernelId::kGather, gather},
                                           {KernelId::kCast, cast}};
#if defined(__x86_64__)
  return target == Target::kNeon ? std::span<const DeviceHalf>() : kHalves;
#elif defined(__aarch64__)
  return target == Target::kNeon ? kHalves : std::span<const DeviceHalf>();
#else
  return {};
#endif
}

}  // namespace takt::kernels::cpu
