#include "runtime/exec/watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/reference/narrow_float.h"
#include "runtime/exec/session.h"

namespace takt::exec {

std::int64_t place_of(const plan::Tensor& t, std::int64_t element) {
  if (t.layout.block == 0) return element;
  const std::int64_t c = t.shape.dims[1], pixels = t.shape.dims[2] * t.shape.dims[3], b = t.layout.block;
  const std::int64_t p = element % pixels, channel = element / pixels % c, n = element / pixels / c;
  return ((n * ((c + b - 1) / b) + channel / b) * pixels + p) * b + channel % b;
}

bool ran(const Session& session, std::size_t step) {
  const plan::Description& d = session.plan().description();
  // A condition is known only where the one around it holds, so outermost first.
  const auto holds = [&](const auto& self, std::uint32_t guard) -> bool {
    if (guard == plan::kNone) return true;
    const plan::Guard& g = d.guards[guard];
    if (!self(self, g.parent)) return false;
    const std::span<const std::byte> condition = session.tensor(g.condition);
    return !condition.empty() && (condition[0] != std::byte{0}) == g.when;
  };
  return holds(holds, d.steps[step].guard);
}

kernels::Shape valid_shape(const Session& session, std::uint32_t tensor) {
  const plan::Tensor& t = session.plan().description().tensors[tensor];
  kernels::Shape shape = t.shape;
  if (t.count == plan::kNone) return shape;
  std::int32_t count = 0;
  const std::span<const std::byte> known = session.tensor(t.count);
  if (known.size() == sizeof count) std::memcpy(&count, known.data(), sizeof count);
  std::int64_t& extent = shape.dims[t.count_axis];
  extent = std::clamp<std::int64_t>(count, 0, extent);
  return shape;
}

std::span<const std::uint32_t> results_of(const plan::Plan& plan, std::size_t step) {
  return std::span(plan.description().steps[step].operands).last(plan.kernel(step).outputs);
}

namespace {

// `widen` gives the value of a stored T as a double or float.
template <class T, class Widen>
std::optional<NonFinite> find_values(const plan::Tensor& t, const kernels::Shape& shape,
                                     std::span<const std::byte> bytes, Widen widen) {
  std::optional<NonFinite> found;
  const std::int64_t elements = shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    T stored = 0;
    std::memcpy(&stored, bytes.data() + static_cast<std::size_t>(place_of(t, i)) * sizeof stored, sizeof stored);
    const auto value = widen(stored);
    if (std::isfinite(value)) continue;
    if (found) {
      ++found->count;
      continue;
    }
    found.emplace();
    found->value = static_cast<double>(value);
    found->count = 1;
    std::int64_t rest = i;
    for (int d = shape.rank - 1; d >= 0; --d) {
      found->index[d] = rest % shape.dims[d];
      rest /= shape.dims[d];
    }
  }
  return found;
}

std::optional<NonFinite> find_in(const Session& session, std::uint32_t tensor, std::size_t step) {
  const plan::Tensor& t = session.plan().description().tensors[tensor];
  const std::span<const std::byte> bytes = session.tensor(tensor);
  if (bytes.empty()) return std::nullopt;
  const kernels::Shape shape = valid_shape(session, tensor);
  const auto narrow = [&](kernels::NarrowFormat format) {
    return find_values<std::uint16_t>(t, shape, bytes,
                                      [&](std::uint16_t stored) { return kernels::from_narrow(stored, format); });
  };
  std::optional<NonFinite> found;
  switch (t.dtype) {
    case kernels::DType::kF32: found = find_values<float>(t, shape, bytes, std::identity()); break;
    case kernels::DType::kF64: found = find_values<double>(t, shape, bytes, std::identity()); break;
    case kernels::DType::kF16: found = narrow(kernels::kHalf); break;
    case kernels::DType::kBF16: found = narrow(kernels::kBfloat); break;
    default: break;  // whole numbers
  }
  if (found) {
    found->tensor = tensor;
    found->step = step;
  }
  return found;
}

}  // namespace

std::optional<NonFinite> find_in_input(const Session& session, std::size_t slot) {
  return find_in(session, session.plan().description().inputs[slot], plan::kNone);
}

std::optional<NonFinite> find_in_result(const Session& session, std::size_t step) {
  if (!ran(session, step)) return std::nullopt;
  // A count is a whole number: the output alone may be none.
  return find_in(session, results_of(session.plan(), step).front(), step);
}

std::string to_string(const NonFinite& found, const plan::Plan& plan) {
  const plan::Tensor& t = plan.description().tensors[found.tensor];
  std::string out = t.name + "[";
  for (int d = 0; d < t.shape.rank; ++d) out += (d == 0 ? "" : ",") + std::to_string(found.index[d]);
  out += "] is " + std::string(std::isnan(found.value) ? "NaN" : found.value < 0 ? "-infinity" : "infinity");
  out += ", one of " + std::to_string(found.count) + " such values of " + std::to_string(t.shape.elements()) + "; ";
  if (found.step == plan::kNone) return out + "it came in as an input";
  const plan::Step& step = plan.description().steps[found.step];
  out += "step " + std::to_string(found.step) + " (" + plan.kernel(found.step).name + ") wrote it";
  if (step.nodes.empty()) return out;
  out += ", for node";
  for (const std::string& node : step.nodes) out += " " + node;
  return out;
}

}  // namespace takt::exec
