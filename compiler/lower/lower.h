// From the canonical graph to the steps of a plan: layouts, kernels, packed weights, views and placements, memory.
//
// Layouts: convolutions, pools, resizes and what lies between them run on blocked tensors, everything else on row-major
// ones; a reorder is inserted where the two meet, and counted. A value may also be mapped: a list of channels of a
// larger blocked tensor with holes, which pointwise convolutions read as it is; so concats of any width, and what a
// split or a shuffle picks of them, need no step. Of the two, blocked tensors alone are held in f16 where that is asked
// for: what a plan takes and gives stays f32, and what is cheap stays exact. Parts of a concat are written where the
// concat needs them; reshapes and contiguous slices are views.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/lower/memory_plan.h"
#include "kernels/kernel.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace takt::lower {

struct Options {
  kernels::Target target = kernels::Target::kAvx2;
  kernels::DType precision = kernels::DType::kF32;  // of blocked tensors and weights; kF16: CUDA targets alone
  std::vector<std::uint16_t> parts = {1, 2};        // numbers of workers that the plan admits
  MemoryOptions memory = {};
  const std::atomic<bool>* stop = nullptr;  // no further node is lowered when it is true
};

struct Lowered {
  plan::Description description;                 // name, source, contract, operator counts are the caller's
  std::vector<std::vector<std::byte>> sections;  // in the order of description.sections
};

// kInput, naming all of them at once: nodes for which there is no kernel (operator, element type or form); kInterrupted
// when stopped.
Result<Lowered> lower(const ir::Graph& graph, const Options& options);

}  // namespace takt::lower
