// Runs an operator of takt's on every target of this machine, in one, two and three parts, between guard bytes and over
// two poisons, and by its reference; every output is the same in every byte, rows behind counts included: they keep
// what they held before.
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
  const auto once = [&](const std::string& what, std::byte poison, auto run) {
    std::vector<Guarded> guarded;
    std::vector<Operand> operands;
    for (int i = 0; i < row.operands(); ++i) {
      Bytes holds;
      if (i < row.inputs) {
        holds = inputs[static_cast<std::size_t>(i)];
        EXPECT_GE(holds.size(), needed.bytes[i]) << row.name << ": input " << i;
      } else if (row.is_count(i)) {
        if (const auto count = counts[static_cast<std::size_t>(i - row.inputs)]) {
          holds.resize(sizeof(std::int32_t));
          std::memcpy(holds.data(), &*count, sizeof *count);
        }
      } else {
        holds.assign(needed.bytes[i], i < row.first_scratch() ? fill : poison);
      }
      guarded.emplace_back(holds.size(), needed.element[i], poison);
      if (!holds.empty()) std::memcpy(guarded.back().data(), holds.data(), holds.size());
    }
    for (Guarded& g : guarded) {
      const std::size_t bytes = g.bytes().size();
      operands.push_back({bytes > 0 ? g.data() : nullptr, bytes});
    }
    run(operands);
    for (int i = 0; i < row.operands(); ++i) {
      const Guarded& g = guarded[static_cast<std::size_t>(i)];
      EXPECT_TRUE(g.intact()) << what << " wrote beside operand " << i;
    }
    for (int i = 0; i < row.inputs; ++i) {
      EXPECT_EQ(guarded[static_cast<std::size_t>(i)].bytes(), inputs[static_cast<std::size_t>(i)])
          << what << " wrote into input " << i;
    }
    std::vector<Bytes> outputs;
    for (int i = row.first_output(); i < row.first_scratch(); ++i) {
      outputs.push_back(guarded[static_cast<std::size_t>(i)].bytes());
    }
    if (expected.empty()) expected = outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      std::size_t differ = 0, first = 0;
      for (std::size_t b = 0; b < outputs[o].size(); ++b) {
        if (outputs[o][b] != expected[o][b] && differ++ == 0) first = b;
      }
      EXPECT_EQ(differ, 0U) << what << ": output " << o << " differs from the reference from byte " << first << " on";
    }
  };
  once(std::string(row.name) + " (reference)", std::byte{0},
       [&](const std::vector<Operand>& operands) { operator_of(id)->evaluate(params.data(), operands.data()); });
  for (const Target target : targets()) {
    const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(id));
    for (const int parts : {1, 2, 3}) {
      for (const std::byte poison : {std::byte{0}, std::byte{0xFF}}) {
        once(std::string(row.name) + " on " + name_of(target) + " in " + std::to_string(parts) + " part(s)", poison,
             [&](const std::vector<Operand>& operands) {
               EXPECT_EQ(kernel->check(params.data(), operands, target), nullptr) << row.name;
               for (int part = parts - 1; part >= 0; --part) {
                 kernel->run(params.data(), operands.data(), part, parts);
               }
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
