#include "runtime/plan/buckets.h"

#include <string>

namespace takt::plan {
namespace {

std::string words(const kernels::Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank; ++d) text += (d > 0 ? "," : "") + std::to_string(shape.dims[d]);
  return text + "]";
}

bool holds(const kernels::Shape& room, const kernels::Shape& shape) {
  if (room.rank != shape.rank) return false;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape.dims[d] < 1 || shape.dims[d] > room.dims[d]) return false;
  }
  return true;
}

}  // namespace

Result<std::size_t> bucket_for(std::span<const std::shared_ptr<const Plan>> plans,
                               std::span<const kernels::Shape> shapes) {
  std::size_t best = plans.size();
  std::int64_t least = 0;
  std::string taken;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Description& d = plans[i]->description();
    bool fits = d.inputs.size() == shapes.size();
    std::int64_t elements = 0;
    taken += "\n  " + d.name + ":";
    for (std::size_t slot = 0; slot < d.inputs.size(); ++slot) {
      const kernels::Shape& room = d.tensors[d.inputs[slot]].shape;
      taken += " " + words(room);
      fits = fits && holds(room, shapes[slot]);
      elements += room.elements();
    }
    if (!fits || (best < plans.size() && elements >= least)) continue;
    best = i;
    least = elements;
  }
  if (best < plans.size()) return best;
  std::string wanted;
  for (const kernels::Shape& shape : shapes) wanted += " " + words(shape);
  return fail(Code::kInput, "no plan takes inputs of" + wanted + "; there are:" + taken +
                                "\n  -> takt compile MODEL --fix DIMENSION=SIZE,SIZE,... makes more");
}

}  // namespace takt::plan
