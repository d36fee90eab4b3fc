// Networks of no fixed size: plans of one model for several sizes, one of which takes an input when it is bound.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/tensor.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace takt::plan {

// Of plans made by `takt compile --fix batch=1,2,4`: the index of the one whose inputs hold tensors of these shapes
// (extent by extent, by slot) with the fewest elements; of equal ones the first. What is left over is the caller's to
// fill. kInput, with what each plan takes, where none holds them.
Result<std::size_t> bucket_for(std::span<const std::shared_ptr<const Plan>> plans,
                               std::span<const kernels::Shape> shapes);

}  // namespace takt::plan
