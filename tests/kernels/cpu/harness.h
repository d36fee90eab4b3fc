// Runs a kernel of every target that this machine has, with one, two and three parts, between guard bytes, into poison,
// and compares with the reference bit by bit. With TAKT_TEST_F16 (CUDA kernels alone) in the f16 form where there is
// one: of operands that f16 holds, the reference's result rounded once.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/host.h"
#include "kernels/kernel.h"
#include "kernels/reference/narrow_float.h"
#include "kernels/tensor.h"
#if defined(TAKT_TEST_SIMT) || defined(TAKT_TEST_GPU)
#define TAKT_TEST_CUDA 1
#include "tests/kernels/cpu/cuda_machine.h"
#endif

namespace takt::kernels::cpu {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

inline std::vector<Target> targets() {
#if defined(TAKT_TEST_CUDA)
  return {Target::kCudaSm87};
#endif
  std::vector<Target> all;
  for (const Target target : {Target::kAvx2, Target::kAvx512, Target::kNeon}) {
    if (unsupported(target) == nullptr) all.push_back(target);
  }
  return all;
}

inline Bytes bytes_of(const Floats& values) {
  Bytes bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
Bytes bytes_of_all(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
inline Floats floats_of(const Bytes& bytes) {
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

#if defined(TAKT_TEST_F16)
inline constexpr DType kStored = DType::kF16;
#else
inline constexpr DType kStored = DType::kF32;
#endif
inline Floats rounded(Floats values) {
  if constexpr (kStored == DType::kF16) {
    for (float& v : values) v = from_narrow(to_narrow(static_cast<double>(v), kHalf), kHalf);
  }
  return values;
}
// What a tensor holds that has the element type of the form.
inline Bytes stored(const Floats& values) { return stored_as(kStored, values); }
inline Call in_form(Call call) {
  if (kStored == DType::kF16 && has_f16_form(call.id)) call.id = f16_form(call.id);
  return call;
}

// Values of a network, mostly; with `hostile` also zeros of both signs, infinities, NaN, denormals and extremes.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  float value(bool hostile = false) {
    if (hostile && integer(0, 7) == 0) {
      const float special[] = {0.0F,
                               -0.0F,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN(),
                               1e-41F,
                               -3e38F,
                               88.5F,
                               -100.0F};
      return special[integer(0, 8)];
    }
    return std::normal_distribution<float>(0.0F, 1.5F)(engine_);
  }
  Floats values(std::int64_t count, bool hostile = false) {
    Floats all(static_cast<std::size_t>(count));
    for (float& v : all) v = value(hostile);
    return rounded(std::move(all));
  }

 private:
  std::mt19937 engine_;
};

struct Shape4 {
  std::int64_t n = 1, c = 1, h = 1, w = 1;
  [[nodiscard]] std::int64_t elements() const { return n * c * h * w; }
  [[nodiscard]] Shape shape() const { return {4, {n, c, h, w}}; }
};

// Holes hold `hole`: NaN in inputs, to show that nothing reads them; zero in expected outputs.
inline Floats to_blocked(const Floats& linear, const Shape4& s, Target target, float hole) {
  const std::int64_t block = block_of(target), blocks = (s.c + block - 1) / block, plane = s.h * s.w;
  Floats out(static_cast<std::size_t>(s.n * blocks * plane * block), hole);
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t c = 0; c < s.c; ++c) {
      for (std::int64_t i = 0; i < plane; ++i) {
        out[static_cast<std::size_t>(((n * blocks + c / block) * plane + i) * block + c % block)] =
            linear[static_cast<std::size_t>((n * s.c + c) * plane + i)];
      }
    }
  }
  return out;
}
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline Tensor tensor_of(Floats& values, const Shape& shape) { return {DType::kF32, shape, values.data()}; }
inline Tensor tensor_of(Floats& values, const Shape4& s) { return tensor_of(values, s.shape()); }

// Bytes of an operand between guards. Starts at a multiple of the element size only.
class Guarded {
 public:
  static constexpr std::size_t kGuard = 128;
  Guarded(std::size_t bytes, std::size_t shift, std::byte fill) : storage_(bytes + 2 * kGuard + 64, std::byte{0xA5}) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuard;
    start_ = kGuard + (64 - address % 64) % 64 - (64 - shift) % 64 % 64;
    size_ = bytes;
    std::memset(data(), static_cast<int>(fill), bytes);
  }
  [[nodiscard]] std::byte* data() { return storage_.data() + start_; }
  [[nodiscard]] Bytes bytes() { return {data(), data() + size_}; }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      const bool inside = i >= start_ && i < start_ + size_;
      if (!inside && storage_[i] != std::byte{0xA5}) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t start_ = 0, size_ = 0;
};

// Operands of a call between guards; empty: absent.
struct CallOperands {
  CallOperands(const std::vector<Bytes>& holds, const OperandBytes& needed, std::byte poison) {
    for (std::size_t i = 0; i < holds.size(); ++i) {
      guarded.emplace_back(holds[i].size(), needed.element[i], poison);
      if (!holds[i].empty()) std::memcpy(guarded.back().data(), holds[i].data(), holds[i].size());
    }
    for (std::size_t i = 0; i < holds.size(); ++i) {
      operands.push_back({holds[i].empty() ? nullptr : guarded[i].data(), holds[i].size()});
    }
  }
  std::vector<Guarded> guarded;
  std::vector<Operand> operands;
};

#if defined(TAKT_TEST_SIMT)
inline constexpr bool kOnSimt = true;  // a thread is a fibre, and an access is judged: tests are smaller
#else
inline constexpr bool kOnSimt = false;
#endif
#if defined(TAKT_TEST_CUDA)
inline constexpr bool kOnCuda = true;
inline constexpr int kMostParts = 2;
// `parts` stands for an order of blocks and threads. Operands lie behind the binding table for every other one.
// `alias`: the operand whose memory the last one is, or -1.
inline void run_kernel(const Kernel& kernel, const void* params, CallOperands& call, int parts, int alias = -1) {
  CudaMachine machine(parts);
  std::vector<std::byte*> places;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& operand = call.operands[i];
    const bool shared = alias >= 0 && i + 1 == call.operands.size();
    places.push_back(shared ? places[static_cast<std::size_t>(alias)]
                     : operand.data == nullptr
                         ? nullptr
                         : machine.allocate({operand.data, operand.bytes}, "operand " + std::to_string(i)));
  }
  std::vector<std::byte*> bound = places;
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] -= places[i] == nullptr ? 0 : 64 * i;
  auto** const table =
      reinterpret_cast<std::byte**>(machine.allocate(std::as_bytes(std::span(bound)), "binding table"));
  std::vector<cuda::Address> addresses;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool behind = places[i] != nullptr && (i + static_cast<std::size_t>(parts)) % 2 == 0;
    addresses.push_back(behind ? cuda::Address{nullptr, table + i, 64 * i} : cuda::Address{places[i], nullptr, 0});
  }
  machine.run(static_cast<KernelId>(kernel.id), {params, addresses.data(), {}, nullptr});
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != nullptr) machine.read(places[i], {call.operands[i].data, call.operands[i].bytes});
  }
}
#else
inline constexpr bool kOnCuda = false;
inline constexpr int kMostParts = 3;
inline void run_kernel(const Kernel& kernel, const void* params, CallOperands& call, int parts) {
  for (int part = parts - 1; part >= 0; --part) kernel.run(params, call.operands.data(), part, parts);
}
#endif

#if defined(TAKT_TEST_CUDA)
// Output bytes of a CUDA kernel.
inline Bytes run(Target target, const Call& any_form, const std::vector<Bytes>& inputs, int parts,
                 const Bytes& before = {}, int alias = -1) {
  const Call call = in_form(any_form);
  const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(call.id));
  OperandBytes needed;
  const char* const error = operand_bytes(call.id, call.params.data(), target, &needed);
  EXPECT_NE(kernel, nullptr);
  EXPECT_EQ(error, nullptr) << error;
  if (kernel == nullptr || error != nullptr) return {};
  std::vector<Bytes> holds = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inputs[i].size(), needed.bytes[i]) << kernel->name << ", operand " << i;
  }
  holds.push_back(before.empty() ? Bytes(needed.bytes[inputs.size()], std::byte{0xFF}) : before);
  CallOperands operands(holds, needed, std::byte{0xFF});
  std::vector<Operand> checked = operands.operands;
  if (alias >= 0) checked.back().data = checked[static_cast<std::size_t>(alias)].data;
  EXPECT_EQ(kernel->check(call.params.data(), checked, target), nullptr);
  run_kernel(*kernel, call.params.data(), operands, parts, alias);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (static_cast<int>(i) == alias) continue;
    EXPECT_EQ(operands.guarded[i].bytes(), inputs[i]) << "wrote into input " << i;
  }
  return operands.guarded.back().bytes();
}
#else
// Output bytes of a call with `parts` parts. `before`: what the output holds before (kernels that complete it); empty:
// poison. `alias`: the input whose memory the output is, or -1.
inline Bytes run(Target target, const Call& call, const std::vector<Bytes>& inputs, int parts, const Bytes& before = {},
                 int alias = -1) {
  const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(call.id));
  EXPECT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->params_bytes, call.params.size());
  EXPECT_EQ(kernel->operands, inputs.size() + 1);
  OperandBytes needed;
  const char* const error = operand_bytes(call.id, call.params.data(), target, &needed);
  EXPECT_EQ(error, nullptr) << error;
  if (error != nullptr) return {};
  std::vector<Guarded> guarded;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inputs[i].size(), needed.bytes[i]) << kernel->name << ", operand " << i;
    guarded.emplace_back(inputs[i].size(), 8 * i, std::byte{0});
    if (!inputs[i].empty()) std::memcpy(guarded.back().data(), inputs[i].data(), inputs[i].size());
  }
  guarded.emplace_back(needed.bytes[inputs.size()], 8, std::byte{0xFF});
  if (!before.empty()) std::memcpy(guarded.back().data(), before.data(), before.size());
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < guarded.size(); ++i) operands.push_back({guarded[i].data(), needed.bytes[i]});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (operands[i].bytes == 0) operands[i].data = nullptr;
  }
  if (alias >= 0) operands.back().data = operands[static_cast<std::size_t>(alias)].data;
  EXPECT_EQ(kernel->check(call.params.data(), operands, target), nullptr);
  // Parts run side by side: no byte has two writers, whose order would then matter. What a part writes is what it
  // leaves the same over two poisons.
  if (alias < 0 && parts > 1) {
    std::vector<int> writer(needed.bytes[inputs.size()], -1);
    for (int part = 0; part < parts; ++part) {
      Bytes left[2];
      for (const int poison : {0x00, 0xFF}) {
        std::memset(operands.back().data, poison, operands.back().bytes);
        kernel->run(call.params.data(), operands.data(), part, parts);
        left[poison == 0 ? 0 : 1] = guarded.back().bytes();
      }
      for (std::size_t i = 0; i < writer.size(); ++i) {
        if (left[0][i] != left[1][i]) continue;
        if (writer[i] >= 0) {
          ADD_FAILURE() << kernel->name << ": parts " << writer[i] << " and " << part << " of " << parts
                        << " both write byte " << i << " of the output";
          break;
        }
        writer[i] = part;
      }
    }
    std::memset(operands.back().data, 0xFF, operands.back().bytes);
    if (!before.empty()) std::memcpy(operands.back().data, before.data(), before.size());
  }
  for (int part = parts - 1; part >= 0; --part) kernel->run(call.params.data(), operands.data(), part, parts);
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    EXPECT_TRUE(guarded[i].intact()) << kernel->name << " wrote beside operand " << i;
    if (i < inputs.size() && static_cast<int>(i) != alias) {
      EXPECT_EQ(guarded[i].bytes(), inputs[i]) << kernel->name << " wrote into input " << i;
    }
  }
  return alias >= 0 ? guarded[static_cast<std::size_t>(alias)].bytes() : guarded.back().bytes();
}
#endif

// Equal bits; any NaN equals any other (its payload is not part of the contract).
inline bool same_bits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
inline void expect_same(const Floats& got, const Floats& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  std::size_t differ = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same_bits(got[i], expected[i])) continue;
    if (differ++ == 0) first = i;
  }
  EXPECT_EQ(differ, 0U) << what << ": element " << first << " of " << got.size() << " is " << got[first]
                        << ", expected " << expected[first] << "; " << differ << " differ";
}

// The result in `got`, f32 or as the form stores it, against the expected floats.
inline void expect_result(const Bytes& got, const Floats& expected, const std::string& what) {
  if (got.size() == expected.size() * sizeof(float)) return expect_same(floats_of(got), expected, what);
  Floats values;
  for (std::size_t i = 0; i + 2 <= got.size(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, got.data() + i, sizeof bits);
    values.push_back(from_narrow(bits, kHalf));
  }
  expect_same(values, rounded(expected), what);
}

// Every number of parts against the expected floats.
inline void expect_run(Target target, const Call& call, const std::vector<Bytes>& inputs, const Floats& expected,
                       const std::string& what, const Bytes& before = {}) {
#if defined(TAKT_TEST_CUDA)
  constexpr int kParts[] = {1, 2};
#else
  constexpr int kParts[] = {1, 2, 3};
#endif
  for (const int parts : kParts) {
    expect_result(run(target, call, inputs, parts, before), expected,
                  what + " on " + name_of(target) + " in " + std::to_string(parts) + " part(s)");
  }
}

}  // namespace takt::kernels::cpu
