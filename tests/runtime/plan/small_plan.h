// A plan small enough to write by hand: y = relu(x) + exp(relu(x)) with 64 floats, then y * w.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/cpu/host.h"
#include "runtime/plan/plan.h"

namespace takt::test {

struct SmallPlan {
  plan::Description description;
  std::vector<std::vector<std::byte>> sections;

  [[nodiscard]] std::vector<std::byte> bytes() const { return *plan::write(description, sections); }
};

inline constexpr std::int64_t kElements = 64;

template <class Params>
plan::Step small_step(kernels::Target target, kernels::cpu::KernelId id, const Params& params,
                      std::vector<std::uint32_t> operands) {
  plan::Step step;
  const kernels::Kernel* kernel = kernels::find_kernel(target, static_cast<std::uint32_t>(id));
  step.kernel = kernel->id;
  step.version = kernel->version;
  step.params.resize(sizeof params);
  std::memcpy(step.params.data(), &params, sizeof params);
  step.operands = std::move(operands);
  step.nodes = {"node"};
  return step;
}

inline plan::Tensor small_tensor(const char* name, plan::Storage storage, std::uint64_t offset) {
  plan::Tensor t;
  t.name = name;
  t.shape = {1, {kElements}};
  t.storage = storage;
  t.offset = offset;
  t.bytes = kElements * sizeof(float);
  return t;
}

// Tensors: 0 x (input), 1 a = relu(x), 2 b = exp(a), 3 sum (in place of a), 4 w (weights), 5 y (output).
inline SmallPlan small_plan(kernels::Target target = kernels::best_target()) {
  using kernels::cpu::KernelId;
  SmallPlan out;
  plan::Description& d = out.description;
  d.name = "small";
  d.target = target;
  d.parts = {1, 2};
  d.tensors = {small_tensor("x", plan::Storage::kInput, 0),   small_tensor("a", plan::Storage::kArena, 0),
               small_tensor("b", plan::Storage::kArena, 256), small_tensor("sum", plan::Storage::kArena, 0),
               small_tensor("w", plan::Storage::kWeights, 0), small_tensor("y", plan::Storage::kOutput, 0)};
  kernels::cpu::UnaryParams relu;
  relu.activation = kernels::cpu::Activation::kRelu;
  relu.pixels = kElements;
  kernels::cpu::UnaryParams exp = relu;
  exp.op = kernels::cpu::Unary::kExp;
  kernels::cpu::BinaryParams add;
  add.pixels = kElements;
  kernels::cpu::BinaryParams multiply = add;
  multiply.op = kernels::cpu::Binary::kMul;
  d.steps = {small_step(target, KernelId::kUnary, relu, {0, 1}), small_step(target, KernelId::kUnary, exp, {1, 2}),
             small_step(target, KernelId::kBinary, add, {1, 2, 3}),
             small_step(target, KernelId::kBinary, multiply, {3, 4, 5})};
  const std::pair<std::uint32_t, std::uint32_t> lives[] = {{0, 0}, {0, 2}, {1, 2}, {2, 3}, {3, 3}, {3, 3}};
  for (std::size_t i = 0; i < d.tensors.size(); ++i) {
    d.tensors[i].first_step = lives[i].first;
    d.tensors[i].last_step = lives[i].second;
  }
  d.inputs = {0};
  d.outputs = {5};
  d.sections.resize(1);
  d.arena_bytes = d.lower_bound = 512;
  d.proof = plan::Proof::kOptimal;
  std::vector<float> w(kElements);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i) * 0.25F;
  out.sections.emplace_back(w.size() * sizeof(float));
  std::memcpy(out.sections[0].data(), w.data(), out.sections[0].size());
  return out;
}

}  // namespace takt::test
