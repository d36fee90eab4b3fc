// Plans small enough to write by hand, over 64 floats: small_plan computes (relu(x) + exp(relu(x))) * w; counting_plan
// adds x to a state.
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

struct alignas(64) Floats {
  float values[kElements] = {};
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values)); }
};

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

// total' = total + x, published or given up.
inline SmallPlan counting_plan() {
  SmallPlan small;
  plan::Description& d = small.description;
  d.name = "counting";
  d.target = kernels::best_target();
  d.parts = {1};
  d.tensors = {small_tensor("x", plan::Storage::kInput, 0), small_tensor("total", plan::Storage::kStatePrevious, 0),
               small_tensor("total", plan::Storage::kStateNext, 0), small_tensor("y", plan::Storage::kOutput, 0)};
  for (plan::Tensor& t : d.tensors) t.first_step = t.last_step = 0;
  d.tensors[2].last_step = d.tensors[3].first_step = d.tensors[3].last_step = 1;
  kernels::cpu::BinaryParams add;
  add.pixels = kElements;
  kernels::cpu::UnaryParams copy;
  copy.pixels = kElements;
  d.steps = {small_step(d.target, kernels::cpu::KernelId::kBinary, add, {1, 0, 2}),
             small_step(d.target, kernels::cpu::KernelId::kUnary, copy, {2, 3})};
  d.inputs = {0};
  d.outputs = {3};
  d.proof = plan::Proof::kOptimal;
  d.states = {{"total", kernels::DType::kF32, {1, {kElements}}, kElements * sizeof(float), 0}};
  d.sections.resize(1);
  std::vector<float> initial(kElements, 5.0F);
  small.sections.emplace_back(initial.size() * sizeof(float));
  std::memcpy(small.sections[0].data(), initial.data(), small.sections[0].size());
  return small;
}

}  // namespace takt::test
