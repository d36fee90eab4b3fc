#include "runtime/exec/trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels/reference/narrow_float.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/watch.h"

namespace takt::exec {

using kernels::DType;

namespace {

// Significant bits of a number of this type; 0: of whole numbers.
int precision_of(DType type) {
  switch (type) {
    case DType::kF64: return 53;
    case DType::kF32: return 24;
    case DType::kF16: return 11;
    case DType::kBF16: return 8;
    default: return 0;
  }
}

void write_number(DType type, double value, std::byte* out) {
  const auto write = [&](auto number) { std::memcpy(out, &number, sizeof number); };
  switch (type) {
    case DType::kF64: return write(value);
    case DType::kF16: return write(kernels::to_narrow(value, kernels::kHalf));
    case DType::kBF16: return write(kernels::to_narrow(value, kernels::kBfloat));
    default: return write(static_cast<float>(value));
  }
}

double read_number(DType type, const std::byte* in) {
  const auto read = [&](auto number) {
    std::memcpy(&number, in, sizeof number);
    return number;
  };
  switch (type) {
    case DType::kF64: return read(0.0);
    case DType::kF16: return static_cast<double>(kernels::from_narrow(read(std::uint16_t{0}), kernels::kHalf));
    case DType::kBF16: return static_cast<double>(kernels::from_narrow(read(std::uint16_t{0}), kernels::kBfloat));
    default: return static_cast<double>(read(0.0F));
  }
}

std::vector<std::byte> row_major(const plan::Tensor& t, const std::byte* data) {
  if (t.layout.block == 0)
    return {data, data + t.shape.elements() * static_cast<std::int64_t>(kernels::size_of(t.dtype))};
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

// Infinite where one is NaN and the other is not, and where whole numbers differ at all.
TensorDifference difference(const TracedTensor& a, const TracedTensor& b) {
  TensorDifference out;
  out.name = a.name;
  out.step = a.step;
  std::int64_t at = 0;
  if (precision_of(a.dtype) == 0) {
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
  const std::size_t size = kernels::size_of(a.dtype);
  for (std::size_t i = 0; i + size <= a.bytes.size(); i += size) {
    const double x = read_number(a.dtype, a.bytes.data() + i), y = read_number(a.dtype, b.bytes.data() + i);
    if (std::isfinite(x)) range = std::max(range, std::abs(x));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double d = std::abs(x - y);
    if (std::isnan(d)) d = HUGE_VAL;
    if (d <= worst) continue;
    worst = d;
    at = static_cast<std::int64_t>(i / size);
    out.a = x;
    out.b = y;
  }
  if (worst > 0) {
    out.difference = worst / std::max(range, 1e-30);
    out.index = index_of(a.shape, at);
  }
  return out;
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
  const int precision = precision_of(tensor.dtype);
  for (std::uint64_t i = 0; i < tensor.bytes; i += size) {
    if (precision > 0) {
      // A multiple of 2^(1 - precision) in [-1, 1): exact in the type.
      const double value = std::ldexp(static_cast<double>(next() >> (64 - precision)), 1 - precision) - 1.0;
      write_number(tensor.dtype, value, out.data() + i);
    } else {
      const bool whole_byte = tensor.dtype == DType::kU8 || tensor.dtype == DType::kI8;
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
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    for (const std::uint32_t id : results_of(*plan, i)) last_writer[id] = i;
  }
  std::vector<TracedTensor> out;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    session->run_step(i, 0, 1);
    if (!ran(*session, i)) continue;
    for (const std::uint32_t id : results_of(*plan, i)) {
      if (last_writer[id] != i) continue;
      plan::Tensor t = d.tensors[id];
      t.shape = valid_shape(*session, id);
      if (t.storage == plan::Storage::kStateNext) continue;  // session->state() shows it after publication
      const std::byte* const data = session->tensor(id).data();
      out.push_back({t.name, i, t.dtype, t.shape, row_major(t, data)});
    }
  }
  // Outputs that were written in parts only.
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    if (last_writer.count(d.outputs[i]) != 0) continue;
    plan::Tensor t = d.tensors[d.outputs[i]];
    t.shape = valid_shape(*session, d.outputs[i]);
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
