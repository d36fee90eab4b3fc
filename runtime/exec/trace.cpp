#include "runtime/exec/trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"

namespace takt::exec {
namespace {

std::vector<std::byte> row_major(const plan::Tensor& t, const std::byte* data) {
  if (t.layout.block == 0) return {data, data + t.bytes};
  const std::int64_t n = t.shape.dims[0], c = t.shape.dims[1], pixels = t.shape.dims[2] * t.shape.dims[3];
  const std::int64_t b = t.layout.block, blocks = (c + b - 1) / b;
  std::vector<std::byte> out(static_cast<std::size_t>(n * c * pixels) * sizeof(float));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t channel = 0; channel < c; ++channel) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::int64_t from = ((i * blocks + channel / b) * pixels + p) * b + channel % b;
        std::memcpy(out.data() + ((i * c + channel) * pixels + p) * 4, data + from * 4, 4);
      }
    }
  }
  return out;
}

// Largest difference over the range of `a`; infinite where one is NaN and the other is not.
double difference(const TracedTensor& a, const TracedTensor& b) {
  if (a.dtype != kernels::DType::kF32) return a.bytes == b.bytes ? 0 : HUGE_VAL;
  double range = 0, worst = 0;
  for (std::size_t i = 0; i + 4 <= a.bytes.size(); i += 4) {
    float x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i, 4);
    std::memcpy(&y, b.bytes.data() + i, 4);
    if (std::isfinite(x)) range = std::max(range, std::abs(static_cast<double>(x)));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double d = std::abs(static_cast<double>(x) - static_cast<double>(y));
    worst = std::isnan(d) ? HUGE_VAL : std::max(worst, d);
  }
  return worst == 0 ? 0 : worst / std::max(range, 1e-30);
}

}  // namespace

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
  TAKT_ASSIGN(const memory::AlignedBuffer arena, memory::AlignedBuffer::create(d.arena_bytes));
  TAKT_ASSIGN(const std::unique_ptr<Session> session, Session::create(plan, arena.span()));
  std::vector<memory::AlignedBuffer> bound_inputs, bound_outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TAKT_ASSIGN(bound_inputs.emplace_back(), memory::AlignedBuffer::create(inputs[i].size()));
    if (!inputs[i].empty()) std::memcpy(bound_inputs.back().data(), inputs[i].data(), inputs[i].size());
    TAKT_RETURN_IF_ERROR(session->bind_input(i, bound_inputs.back().span()));
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    TAKT_ASSIGN(bound_outputs.emplace_back(), memory::AlignedBuffer::create(d.tensors[d.outputs[i]].bytes));
    TAKT_RETURN_IF_ERROR(session->bind_output(i, bound_outputs.back().span()));
  }
  TAKT_RETURN_IF_ERROR(session->ready(1));

  std::map<std::uint32_t, std::size_t> last_writer;
  for (std::size_t i = 0; i < d.steps.size(); ++i) last_writer[d.steps[i].operands.back()] = i;
  std::vector<TracedTensor> out;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    session->run_step(i, 0, 1);
    const std::uint32_t id = d.steps[i].operands.back();
    if (last_writer[id] != i) continue;
    const plan::Tensor& t = d.tensors[id];
    const std::byte* data = nullptr;
    if (t.storage == plan::Storage::kArena) data = arena.data() + t.offset;
    if (t.storage == plan::Storage::kOutput) data = bound_outputs[t.slot].data() + t.offset;
    if (data == nullptr) continue;  // a state: session->state() shows it after publication
    out.push_back({t.name, i, t.dtype, t.shape, row_major(t, data)});
  }
  // Outputs that were written in parts only.
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    if (last_writer.count(d.outputs[i]) != 0) continue;
    const plan::Tensor& t = d.tensors[d.outputs[i]];
    out.push_back({t.name, t.last_step, t.dtype, t.shape, row_major(t, bound_outputs[i].data())});
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
    const double d = difference(t, *partner->second);
    if (d > out.worst_difference) {
      out.worst_difference = d;
      out.worst = t.name;
    }
    if (d > tolerance && out.first.empty()) {
      out.first = t.name;
      out.first_step = t.step;
      out.first_difference = d;
    }
  }
  return out;
}

}  // namespace takt::exec
