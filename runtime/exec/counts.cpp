#include "runtime/exec/counts.h"

#include <algorithm>

namespace takt::exec {

CountLog::CountLog(const plan::Plan& plan) {
  const plan::Description& d = plan.description();
  for (std::size_t slot = 0; slot < d.outputs.size(); ++slot) {
    const std::uint32_t id = d.outputs[slot];
    const plan::Tensor& t = d.tensors[id];
    const std::int64_t elements = t.shape.elements();
    if (t.dtype != kernels::DType::kI32 || t.count != plan::kNone || elements > kMostElements) continue;
    std::int64_t capacity = 0;
    for (const plan::Tensor& other : d.tensors) {
      // What counts may be a view of the output.
      std::uint32_t count = other.count;
      while (count != id && count != plan::kNone) count = d.tensors[count].view_of;
      if (count == id) capacity = std::max(capacity, other.shape.dims[other.count_axis]);
    }
    for (std::int64_t e = 0; e < elements; ++e) {
      const std::string name = elements == 1 ? t.name : t.name + "[" + std::to_string(e) + "]";
      counters_.push_back({name, capacity, slot, static_cast<std::size_t>(e), 0, 0});
    }
  }
  values_.resize(kFrames * counters_.size());
}

void CountLog::add(std::span<const std::byte* const> outputs) {
  std::int32_t* const row = values_.data() + (jobs_ % kFrames) * counters_.size();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    Counter& c = counters_[i];
    const std::int32_t value = reinterpret_cast<const std::int32_t*>(outputs[c.slot])[c.element];
    row[i] = value;
    c.maximum = std::max(c.maximum, value);
    c.total += value;
  }
  ++jobs_;
}

std::span<const std::int32_t> CountLog::job(std::size_t i) const {
  const std::uint64_t first = jobs_ - kept();
  return {values_.data() + ((first + i) % kFrames) * counters_.size(), counters_.size()};
}

}  // namespace takt::exec
