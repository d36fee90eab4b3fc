#include "runtime/exec/trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "runtime/exec/buffers.h"

namespace takt::exec {
namespace {

// Where a row-major element lies, counted in elements.
std::int64_t place_of(const plan::Tensor& t, std::int64_t element) {
  if (t.layout.block == 0) return element;
  const std::int64_t c = t.shape.dims[1], pixels = t.shape.dims[2] * t.shape.dims[3], b = t.layout.block;
  const std::int64_t p = element % pixels, channel = element / pixels % c, n = element / pixels / c;
  return ((n * ((c + b - 1) / b) + channel / b) * pixels + p) * b + channel % b;
}

std::vector<std::byte> row_major(const plan::Tensor& t, const std::byte* data) {
  if (t.layout.block == 0) return {data, data + t.bytes};
  std::vector<std::byte> out(static_cast<std::size_t>(t.shape.elements()) * sizeof(float));
  for (std::int64_t i = 0; i < t.shape.elements(); ++i) {
    std::memcpy(out.data() + i * 4, data + place_of(t, i) * 4, 4);
  }
  return out;
}

std::vector<std::int64_t> index_of(const kernels::Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape.rank));
  for (int d = shape.rank - 1; d >= 0; --d) {
    out[static_cast<std::size_t>(d)] = element % shape.dims[d];
    element /= shape.dims[d];
  }
  return out;
}

// Infinite where one is NaN and the other is not, and where other types than f32 differ at all.
TensorDifference difference(const TracedTensor& a, const TracedTensor& b) {
  TensorDifference out;
  out.name = a.name;
  out.step = a.step;
  std::int64_t at = 0;
  if (a.dtype != kernels::DType::kF32) {
    const auto [x, y] = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin());
    if (x == a.bytes.end()) return out;
    out.difference = HUGE_VAL;
    out.a = std::to_integer<int>(*x);
    out.b = std::to_integer<int>(*y);
    at = (x - a.bytes.begin()) / static_cast<std::int64_t>(kernels::size_of(a.dtype));
    out.index = index_of(a.shape, at);
    return out;
  }
  double range = 0, worst = 0;
  for (std::size_t i = 0; i + 4 <= a.bytes.size(); i += 4) {
    float x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i, 4);
    std::memcpy(&y, b.bytes.data() + i, 4);
    if (std::isfinite(x)) range = std::max(range, std::abs(static_cast<double>(x)));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double d = std::abs(static_cast<double>(x) - static_cast<double>(y));
    if (std::isnan(d)) d = HUGE_VAL;
    if (d <= worst) continue;
    worst = d;
    at = static_cast<std::int64_t>(i / 4);
    out.a = static_cast<double>(x);
    out.b = static_cast<double>(y);
  }
  if (worst > 0) {
    out.difference = worst / std::max(range, 1e-30);
    out.index = index_of(a.shape, at);
  }
  return out;
}

// Whether the guards of a step that has just been run held: otherwise its result was not written.
bool ran(const Session& session, std::size_t step) {
  const plan::Description& d = session.plan().description();
  std::vector<std::uint32_t> guards;
  for (std::uint32_t g = d.steps[step].guard; g != plan::kNone; g = d.guards[g].parent) guards.push_back(g);
  // A condition is known only where the one around it holds.
  return std::all_of(guards.rbegin(), guards.rend(), [&](std::uint32_t g) {
    const std::span<const std::byte> condition = session.tensor(d.guards[g].condition);
    return !condition.empty() && (condition[0] != std::byte{0}) == d.guards[g].when;
  });
}

std::optional<NonFinite> find_in(const Session& session, std::uint32_t tensor, std::size_t step) {
  const plan::Tensor& t = session.plan().description().tensors[tensor];
  const std::span<const std::byte> bytes = session.tensor(tensor);
  if (t.dtype != kernels::DType::kF32 || bytes.empty()) return std::nullopt;
  std::optional<NonFinite> found;
  const std::int64_t elements = t.shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(place_of(t, i)) * sizeof value, sizeof value);
    if (std::isfinite(value)) continue;
    if (found) {
      ++found->count;
      continue;
    }
    found.emplace();
    found->tensor = tensor;
    found->step = step;
    found->value = value;
    found->count = 1;
    std::int64_t rest = i;
    for (int d = t.shape.rank - 1; d >= 0; --d) {
      found->index[d] = rest % t.shape.dims[d];
      rest /= t.shape.dims[d];
    }
  }
  return found;
}

}  // namespace

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

std::optional<NonFinite> find_non_finite(const Session& session, std::size_t step) {
  if (!ran(session, step)) return std::nullopt;
  return find_in(session, session.plan().description().steps[step].operands.back(), step);
}

std::optional<NonFinite> run_watched(Session& session) {
  for (const std::uint32_t input : session.plan().description().inputs) {
    if (auto found = find_in(session, input, plan::kNone)) return found;
  }
  for (std::size_t i = 0; i < session.steps(); ++i) {
    session.run_step(i, 0, 1);
    if (auto found = find_non_finite(session, i)) return found;
  }
  return std::nullopt;
}

std::vector<std::byte> made_up_input(const plan::Tensor& tensor) {
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  const auto next = [&] {  // xorshift64 (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  std::vector<std::byte> out(tensor.bytes);
  const std::uint64_t size = kernels::size_of(tensor.dtype);
  for (std::uint64_t i = 0; i < tensor.bytes; i += size) {
    if (tensor.dtype == kernels::DType::kF32) {
      const float value = static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F;
      std::memcpy(out.data() + i, &value, sizeof value);
    } else {
      const bool whole_byte = tensor.dtype == kernels::DType::kU8 || tensor.dtype == kernels::DType::kI8;
      out[i] = static_cast<std::byte>(whole_byte ? next() & 0xffU : next() & 1U);
    }
  }
  return out;
}

Result<std::vector<TracedTensor>> trace(const std::shared_ptr<const plan::Plan>& plan,
                                        std::span<const std::vector<std::byte>> inputs) {
  const plan::Description& d = plan->description();
  if (inputs.size() != d.inputs.size()) {
    return fail(Code::kUsage, "the plan has " + std::to_string(d.inputs.size()) + " inputs, given are " +
                                  std::to_string(inputs.size()));
  }
  TAKT_ASSIGN(const std::unique_ptr<Session> session, Session::create(plan));
  TAKT_ASSIGN(const Buffers buffers, Buffers::create(*session));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::span<std::byte> input = buffers.input(i);
    if (inputs[i].size() != input.size()) {
      return fail(Code::kUsage, "input " + std::to_string(i) + " has " + std::to_string(input.size()) +
                                    " bytes, given are " + std::to_string(inputs[i].size()));
    }
    std::memcpy(input.data(), inputs[i].data(), input.size());
  }
  TAKT_RETURN_IF_ERROR(session->ready(1));

  std::map<std::uint32_t, std::size_t> last_writer;
  for (std::size_t i = 0; i < d.steps.size(); ++i) last_writer[d.steps[i].operands.back()] = i;
  std::vector<TracedTensor> out;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    session->run_step(i, 0, 1);
    const std::uint32_t id = d.steps[i].operands.back();
    if (last_writer[id] != i || !ran(*session, i)) continue;
    const plan::Tensor& t = d.tensors[id];
    if (t.storage == plan::Storage::kStateNext) continue;  // session->state() shows it after publication
    const std::byte* const data = session->tensor(id).data();
    out.push_back({t.name, i, t.dtype, t.shape, row_major(t, data)});
  }
  // Outputs that were written in parts only.
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    if (last_writer.count(d.outputs[i]) != 0) continue;
    const plan::Tensor& t = d.tensors[d.outputs[i]];
    out.push_back({t.name, t.last_step, t.dtype, t.shape, row_major(t, buffers.output(i).data())});
  }
  return out;
}

Divergence compare(std::span<const TracedTensor> a, std::span<const TracedTensor> b, double tolerance) {
  std::map<std::string, const TracedTensor*> by_name;
  for (const TracedTensor& t : b) by_name[t.name] = &t;
  Divergence out;
  for (const TracedTensor& t : a) {
    const auto partner = by_name.find(t.name);
    if (partner == by_name.end() || partner->second->dtype != t.dtype ||
        partner->second->bytes.size() != t.bytes.size()) {
      ++out.unmatched;
      continue;
    }
    ++out.compared;
    TensorDifference d = difference(t, *partner->second);
    if (d.difference > out.worst.difference) out.worst = d;
    if (d.difference > tolerance && out.first.name.empty()) out.first = std::move(d);
  }
  return out;
}

}  // namespace takt::exec
