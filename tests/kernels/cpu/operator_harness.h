// Runs an operator of takt's on every target of this machine, in one, two and three parts, between guard bytes and over
// two poisons, and by its reference; every output is the same in every byte, rows behind counts included: they keep
// what they held before. With TAKT_TEST_SIMT or TAKT_TEST_GPU its CUDA kernels instead (cuda_machine.h), twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/takt_operators.h"
#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {

inline const ir::TaktOperator* operator_of(KernelId id) {
  for (const auto family : {ir::voxel_operators(), ir::point_operators(), ir::tracking_operators()}) {
    for (const ir::TaktOperator& op : family) {
      if (op.kernel == id) return &op;
    }
  }
  return nullptr;
}

// Whether the f64 or the f32 that holds a byte is a NaN in both: which one is not part of the contract between a CPU
// and a GPU.
inline bool both_are_no_number(const Bytes& a, const Bytes& b, std::size_t at) {
  const auto both = [&]<class T>(T /*type*/) {
    const std::size_t start = at / sizeof(T) * sizeof(T);
    T x{}, y{};
    if (start + sizeof(T) > a.size()) return false;
    std::memcpy(&x, a.data() + start, sizeof(T));
    std::memcpy(&y, b.data() + start, sizeof(T));
    return std::isnan(x) && std::isnan(y);
  };
  return both(double{}) || both(float{});
}

// `inputs`: whole operands, empty where absent; rows behind a count hold what the caller poisoned them with. `counts`
// in the kernel's order; absent: the tensor is not counted. Returns the outputs, bytes that nobody wrote are `fill`.
inline std::vector<Bytes> run_operator(KernelId id, const std::vector<std::byte>& params,
                                       const std::vector<Bytes>& inputs,
                                       const std::vector<std::optional<std::int32_t>>& counts,
                                       std::byte fill = std::byte{0xA5}) {
  const OperatorKernel& row = *find_operator_kernel(id);
  OperandBytes needed;
  const char* const error = row.operand_bytes(params.data(), &needed);
  EXPECT_EQ(error, nullptr) << row.name << ": " << error;
  EXPECT_EQ(inputs.size(), row.inputs) << row.name;
  EXPECT_EQ(counts.size(), row.counts) << row.name;
  if (error != nullptr || inputs.size() != row.inputs || counts.size() != row.counts) return {};

  std::vector<Bytes> expected;
  const auto once = [&](const std::string& what, Target target, std::byte poison, auto run) {
    EXPECT_EQ(operand_bytes(id, params.data(), target, &needed), nullptr) << what;
    std::vector<Bytes> holds;
    for (int i = 0; i < row.operands(target); ++i) {
      Bytes& bytes = holds.emplace_back();
      if (i < row.inputs) {
        bytes = inputs[static_cast<std::size_t>(i)];
        EXPECT_GE(bytes.size(), needed.bytes[i]) << row.name << ": input " << i;
      } else if (row.is_count(i)) {
        if (const auto count = counts[static_cast<std::size_t>(i - row.inputs)]) {
          bytes.resize(sizeof(std::int32_t));
          std::memcpy(bytes.data(), &*count, sizeof *count);
        }
      } else {
        bytes.assign(needed.bytes[i], i < row.first_scratch() ? fill : poison);
      }
    }
    CallOperands call(holds, needed, poison);
    run(call);
    for (std::size_t i = 0; i < holds.size(); ++i) {
      EXPECT_TRUE(call.guarded[i].intact()) << what << " wrote beside operand " << i;
    }
    for (std::size_t i = 0; i < row.inputs; ++i) {
      EXPECT_EQ(call.guarded[i].bytes(), inputs[i]) << what << " wrote into input " << i;
    }
    std::vector<Bytes> outputs;
    for (int i = row.first_output(); i < row.first_scratch(); ++i) {
      outputs.push_back(call.guarded[static_cast<std::size_t>(i)].bytes());
    }
    if (expected.empty()) expected = outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      std::size_t differ = 0, first = 0;
      for (std::size_t b = 0; b < outputs[o].size(); ++b) {
        if (outputs[o][b] == expected[o][b]) continue;
        if (kOnCuda && both_are_no_number(outputs[o], expected[o], b)) continue;
        if (differ++ == 0) first = b;
      }
      EXPECT_EQ(differ, 0U) << what << ": output " << o << " differs from the reference from byte " << first << " on";
    }
  };
  once(std::string(row.name) + " (reference)", Target::kAvx2, std::byte{0},
       [&](const CallOperands& call) { operator_of(id)->evaluate(params.data(), call.operands.data()); });
  for (const Target target : targets()) {
    const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(id));
    for (int parts = 1; parts <= kMostParts; ++parts) {
      for (const std::byte poison : {std::byte{0}, std::byte{0xFF}}) {
        if (kOnCuda && (poison == std::byte{0}) != (parts == 1)) continue;
        once(std::string(row.name) + " on " + name_of(target) + " in " + std::to_string(parts) + " part(s)", target,
             poison, [&](CallOperands& call) {
               EXPECT_EQ(kernel->check(params.data(), call.operands, target), nullptr) << row.name;
               run_kernel(*kernel, params.data(), call, parts);
             });
      }
    }
  }
  return expected;
}
template <class Params>
std::vector<Bytes> run_operator(KernelId id, const Params& params, const std::vector<Bytes>& inputs,
                                const std::vector<std::optional<std::int32_t>>& counts) {
  return run_operator(id, ir::block_of(params), inputs, counts);
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace takt::kernels::cpu
