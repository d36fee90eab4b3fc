// Linear tensors: strided copies, fills, gathers, casts, and the choice between branches.
#include <limits>
#include <type_traits>

#include "kernels/cuda/each.h"
#include "kernels/tensor.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::CastParams;
using cpu::f16_form;
using cpu::FillParams;
using cpu::GatherParams;
using cpu::KernelId;
using cpu::SelectParams;
using cpu::StridedCopyParams;

// Calls run(Word{}) with the unsigned type of that many bytes.
template <class Run>
int with_word(std::int64_t bytes, Run&& run) {
  switch (bytes) {
    case 1: return run(std::uint8_t{});
    case 2: return run(std::uint16_t{});
    case 4: return run(std::uint32_t{});
    default: return run(std::uint64_t{});
  }
}

template <class Word>
struct StridedCopy {
  StridedCopyParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    std::int64_t from = p.in_offset, to = p.out_offset;
    for (int d = p.rank - 1; d >= 0; --d) {
      const std::int64_t index = i % p.dims[d];
      i /= p.dims[d];
      from += index * p.stride_in[d];
      to += index * p.stride_out[d];
    }
    at<Word>(y)[to] = at<const Word>(x)[from];
  }
};
int strided_copy(const Call& call) {
  const auto p = load_params<StridedCopyParams>(call.params);
  std::int64_t count = 1;
  for (int d = 0; d < p.rank; ++d) count *= p.dims[d];
  return with_word(p.element_bytes, [&](auto word) {
    return each("strided_copy", StridedCopy<decltype(word)>{p, call.operands[0], call.operands[1]}, count, call);
  });
}

template <class Word>
struct Fill {
  Word value;
  Address y;
  TAKT_DEVICE void operator()(std::int64_t i) const { at<Word>(y)[i] = value; }
};
int fill(const Call& call) {
  const auto p = load_params<FillParams>(call.params);
  return with_word(p.element_bytes, [&](auto word) {
    using Word = decltype(word);
    return each("fill", Fill<Word>{static_cast<Word>(p.value), call.operands[0]}, p.elements, call);
  });
}

template <class Word>
struct Gather {
  GatherParams p;
  Address x, indices, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % p.inner, k = i / p.inner % p.count, outer = i / p.inner / p.count;
    std::int64_t index = p.index_bytes == 4 ? at<const std::int32_t>(indices)[k] : at<const std::int64_t>(indices)[k];
    if (index < 0 && index >= -p.axis) index += p.axis;
    const bool found = index >= 0 && index < p.axis;
    at<Word>(y)[i] = found ? at<const Word>(x)[(outer * p.axis + index) * p.inner + j] : Word{0};
  }
};
int gather(const Call& call) {
  const auto p = load_params<GatherParams>(call.params);
  return with_word(p.element_bytes, [&](auto word) {
    return each("gather", Gather<decltype(word)>{p, call.operands[0], call.operands[1], call.operands[2]},
                p.outer * p.count * p.inner, call);
  });
}

// Calls run with a value of the type; bools are bytes of which any but zero is true.
struct Truth {};
template <class Run>
int with_type(std::int32_t type, Run&& run) {
  switch (static_cast<DType>(type)) {
    case DType::kF32: return run(float{});
    case DType::kI64: return run(std::int64_t{});
    case DType::kI32: return run(std::int32_t{});
    case DType::kU8: return run(std::uint8_t{});
    default: return run(Truth{});
  }
}

template <class From, class To>
struct Cast {
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    using Stored = std::conditional_t<std::is_same_v<From, Truth>, std::uint8_t, From>;
    Stored value = at<const Stored>(x)[i];
    if constexpr (std::is_same_v<From, Truth>) value = value != 0 ? 1 : 0;
    if constexpr (std::is_same_v<To, Truth>) {
      at<std::uint8_t>(y)[i] = value != Stored{0} ? 1 : 0;
    } else if constexpr (std::is_same_v<Stored, float> && std::is_integral_v<To>) {
      // The limits as floats: the upper one of the wide types rounds up to a power of two, so "not below" clamps.
      constexpr auto kLow = static_cast<float>(std::numeric_limits<To>::min());
      constexpr auto kHigh = static_cast<float>(std::numeric_limits<To>::max());
      To result = 0;
      if (value <= kLow) {
        result = std::numeric_limits<To>::min();
      } else if (value >= kHigh) {
        result = std::numeric_limits<To>::max();
      } else if (value == value) {
        result = static_cast<To>(value);
      }
      at<To>(y)[i] = result;
    } else {
      at<To>(y)[i] = static_cast<To>(value);
    }
  }
};
int cast(const Call& call) {
  const auto p = load_params<CastParams>(call.params);
  return with_type(p.from, [&](auto from) {
    return with_type(p.to, [&](auto to) {
      return each("cast", Cast<decltype(from), decltype(to)>{call.operands[0], call.operands[1]}, p.elements, call);
    });
  });
}

template <class From, class To>
struct Convert {
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const { write<To>(y, i, read<From>(x, i)); }
};
int cast_f16(const Call& call) {
  const auto p = load_params<CastParams>(call.params);
  if (static_cast<DType>(p.from) == DType::kF16) {
    return each("cast_f16", Convert<Half, float>{call.operands[0], call.operands[1]}, p.elements, call);
  }
  return each("cast_f16", Convert<float, Half>{call.operands[0], call.operands[1]}, p.elements, call);
}

template <class Word>
struct Select {
  Address condition, a, b, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const auto* const from = at<const Word>(*at<const std::uint8_t>(condition) != 0 ? a : b);
    at<Word>(y)[i] = from[i];
  }
};
int select(const Call& call) {
  const auto p = load_params<SelectParams>(call.params);
  return with_word(p.element_bytes, [&](auto word) {
    return each("select",
                Select<decltype(word)>{call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
                p.elements, call);
  });
}

}  // namespace

std::span<const DeviceHalf> movement_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kStridedCopy, strided_copy},
                                           {KernelId::kFill, fill},
                                           {KernelId::kGather, gather},
                                           {KernelId::kCast, cast},
                                           {f16_form(KernelId::kCast), cast_f16},
                                           {KernelId::kSelect, select}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
