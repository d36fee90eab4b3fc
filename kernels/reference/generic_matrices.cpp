// Products and determinants of matrices of any number type, and recurrent cells.
#include "kernels/reference/elementary.h"
#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

const char* infer_matmul(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  GenericType a = p.operands[0];
  GenericType b = p.operands[1];
  if (!is_number(a) || a.dtype != b.dtype) return kTypes;
  if (a.rank < 2 || b.rank < 2) return kShapes;
  const std::int64_t rows = a.dims[a.rank - 2], columns = b.dims[b.rank - 1];
  if (a.dims[a.rank - 1] != b.dims[b.rank - 2]) return kShapes;
  a.rank = static_cast<std::uint8_t>(a.rank - 2);
  b.rank = static_cast<std::uint8_t>(b.rank - 2);
  *y = a;
  if (!broadcast(b, y)) return kShapes;
  y->dims[y->rank++] = rows;
  y->dims[y->rank++] = columns;
  return nullptr;
}

// Which matrix of a stack belongs to matrix `i` of the result; extents of 1 repeat.
std::int64_t matrix_of(const Shape& stack, const Shape& y, std::int64_t i) {
  std::int64_t at = 0, step = 1;
  for (int d = y.rank - 3; d >= 0; --d) {
    const int in = d - (y.rank - stack.rank);
    const std::int64_t index = i % y.dims[d];
    i /= y.dims[d];
    if (in < 0) continue;
    if (stack.dims[in] != 1) at += index * step;
    step *= stack.dims[in];
  }
  return at;
}

template <class T>
void matmul(const Tensor& a, const Tensor& b, const Tensor& y) {
  const std::int64_t m = y.shape.dims[y.shape.rank - 2], n = y.shape.dims[y.shape.rank - 1];
  const std::int64_t k = a.shape.dims[a.shape.rank - 1];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const T* row = a.as<T>() + (matrix_of(a.shape, y.shape, i / (m * n)) * m + i / n % m) * k;
    const T* column = b.as<T>() + matrix_of(b.shape, y.shape, i / (m * n)) * k * n + i % n;
    T sum{};
    for (std::int64_t s = 0; s < k; ++s) {
      if constexpr (std::is_floating_point_v<T>) {
        sum = std::fma(row[s], column[s * n], sum);
      } else {
        sum = combine<T>(Reduce::kSum, sum, combine<T>(Reduce::kProduct, row[s], column[s * n]));
      }
    }
    y.as<T>()[i] = sum;
  }
}

void run_matmul(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) { matmul<decltype(zero)>(in[0], in[1], out[0]); });
}

constexpr std::int64_t kMostDet = 16;  // the matrix is worked on in place of a copy on the stack

const char* infer_det(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!is_float(x)) return kTypes;
  if (x.rank < 2 || x.dims[x.rank - 1] != x.dims[x.rank - 2] || !inside(x.dims[x.rank - 1], 1, kMostDet))
    return kShapes;
  *y = x;
  y->rank = static_cast<std::uint8_t>(x.rank - 2);
  y->dims[y->rank] = y->dims[y->rank + 1] = 0;
  return nullptr;
}

// By elimination with the largest element of the column as pivot, in double.
template <class T>
void det(const Tensor& x, const Tensor& y) {
  const std::int64_t n = x.shape.dims[x.shape.rank - 1];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    double a[kMostDet * kMostDet];
    for (std::int64_t k = 0; k < n * n; ++k) a[k] = static_cast<double>(x.as<T>()[i * n * n + k]);
    double product = 1;
    for (std::int64_t c = 0; c < n; ++c) {
      std::int64_t pivot = c;
      for (std::int64_t r = c + 1; r < n; ++r) {
        if (std::fabs(a[r * n + c]) > std::fabs(a[pivot * n + c])) pivot = r;
      }
      if (pivot != c) {
        for (std::int64_t k = 0; k < n; ++k) std::swap(a[c * n + k], a[pivot * n + k]);
        product = -product;
      }
      product *= a[c * n + c];
      if (a[c * n + c] == 0) break;
      for (std::int64_t r = c + 1; r < n; ++r) {
        const double factor = a[r * n + c] / a[c * n + c];
        for (std::int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
      }
    }
    y.as<T>()[i] = static_cast<T>(product);
  }
}

void run_det(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) {
  with_float(in[0].dtype, [&](auto zero) { det<decltype(zero)>(in[0], out[0]); });
}

// --- recurrent cells, f32

std::int64_t gates_of(Cell cell) { return cell == Cell::kRnn ? 1 : cell == Cell::kLstm ? 4 : 3; }

bool shaped(const GenericType& type, DType dtype, std::initializer_list<std::int64_t> dims) {
  if (!present(type)) return true;
  return is(type, dtype) && type.rank == dims.size() && std::equal(dims.begin(), dims.end(), type.dims);
}

const char* infer_recurrent(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& r = p.operands[2];
  if (!inside(p.integers[0], 0, 2) || !inside(p.integers[1], 0, 2) || !inside(p.integers[8], 0, 1) ||
      !inside(p.integers[9], 0, 1)) {
    return kOptions;
  }
  for (int i = 2; i < 8; ++i) {
    if (!inside(p.integers[i], 0, 10)) return kOptions;
  }
  const auto cell = static_cast<Cell>(p.integers[0]);
  const std::int64_t directions = static_cast<Direction>(p.integers[1]) == Direction::kBoth ? 2 : 1;
  if (x.rank != 3 || r.rank != 3) return kShapes;
  if (!is(x, DType::kF32)) return kTypes;
  const std::int64_t hidden = r.dims[2], batch = x.dims[1];
  if (!inside(hidden, 1, 1 << 24)) return kShapes;
  const std::int64_t rows = gates_of(cell) * hidden;
  const bool fits = shaped(p.operands[1], DType::kF32, {directions, rows, x.dims[2]}) &&
                    shaped(r, DType::kF32, {directions, rows, hidden}) &&
                    shaped(p.operands[3], DType::kF32, {directions, 2 * rows}) &&
                    shaped(p.operands[4], DType::kI32, {batch}) &&
                    shaped(p.operands[5], DType::kF32, {directions, batch, hidden}) &&
                    shaped(p.operands[6], DType::kF32, {directions, batch, hidden}) &&
                    shaped(p.operands[7], DType::kF32, {directions, 3 * hidden});
  if (!fits || (cell != Cell::kLstm && (present(p.operands[6]) || present(p.operands[7])))) return kShapes;
  *y = x;
  y->rank = 4;
  y->dims[0] = x.dims[0] + (cell == Cell::kLstm ? 2 : 1);
  y->dims[1] = directions;
  y->dims[2] = batch;
  y->dims[3] = hidden;
  return nullptr;
}

double bounded_exp(double x) { return exp(std::clamp(x, -700.0, 700.0)); }

struct Activations {
  const GenericParams& p;
  std::int64_t direction;

  [[nodiscard]] double operator()(int which, double x) const {
    const std::int64_t at = direction * 3 + which;
    const auto clip = static_cast<double>(p.numbers[0]);
    const auto alpha = static_cast<double>(p.numbers[1 + 2 * at]), beta = static_cast<double>(p.numbers[2 + 2 * at]);
    if (clip > 0) x = std::clamp(x, -clip, clip);
    switch (static_cast<Gate>(p.integers[2 + at])) {
      case Gate::kSigmoid: return 1 / (1 + bounded_exp(-x));
      case Gate::kTanh: return tangent(x);
      case Gate::kRelu: return x > 0 ? x : 0;
      case Gate::kAffine: return alpha * x + beta;
      case Gate::kLeakyRelu: return x < 0 ? alpha * x : x;
      case Gate::kThresholdedRelu: return x > alpha ? x : 0;
      case Gate::kScaledTanh: return alpha * tangent(beta * x);
      case Gate::kHardSigmoid: return std::clamp(alpha * x + beta, 0.0, 1.0);
      case Gate::kElu: return x < 0 ? alpha * (bounded_exp(x) - 1) : x;
      case Gate::kSoftsign: return x / (1 + std::fabs(x));
      default: return x > 30 ? x : log(1 + bounded_exp(x));
    }
  }
  static double tangent(double x) { return 1 - 2 / (bounded_exp(2 * x) + 1); }
};

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// One cell at one time for one element of the batch. Rows of w, r and bias lie gate by gate, in ONNX's order.
struct Step {
  Cell cell;
  std::int64_t inputs, hidden;
  const float *x, *w, *r, *bias, *peepholes;
  const float* before;  // hidden state
  bool reset_behind, coupled;
  Activations activation;

  // The part of a gate that does not depend on the hidden state, and the part that does.
  [[nodiscard]] double given(std::int64_t gate, std::int64_t unit) const {
    const std::int64_t row = gate * hidden + unit;
    return dot(x, w + row * inputs, inputs) + (bias != nullptr ? static_cast<double>(bias[row]) : 0);
  }
  [[nodiscard]] double back(std::int64_t gate, std::int64_t unit, const float* state) const {
    const std::int64_t row = gate * hidden + unit;
    const std::int64_t rows = (cell == Cell::kRnn ? 1 : cell == Cell::kLstm ? 4 : 3) * hidden;
    return dot(state, r + row * hidden, hidden) + (bias != nullptr ? static_cast<double>(bias[rows + row]) : 0);
  }

  void rnn(float* after) const {
    for (std::int64_t u = 0; u < hidden; ++u)
      after[u] = static_cast<float>(activation(0, given(0, u) + back(0, u, before)));
  }
  // Gates in the order input, output, forget, cell. `state` is the cell state, before and after.
  void lstm(float* after, float* state) const {
    for (std::int64_t u = 0; u < hidden; ++u) {
      const auto peep = [&](std::int64_t which, double c) {
        return peepholes != nullptr ? static_cast<double>(peepholes[which * hidden + u]) * c : 0;
      };
      const auto c = static_cast<double>(state[u]);
      const double in = activation(0, given(0, u) + back(0, u, before) + peep(0, c));
      const double forget = coupled ? 1 - in : activation(0, given(2, u) + back(2, u, before) + peep(2, c));
      const double next = forget * c + in * activation(1, given(3, u) + back(3, u, before));
      const double out = activation(0, given(1, u) + back(1, u, before) + peep(1, next));
      state[u] = static_cast<float>(next);
      after[u] = static_cast<float>(out * activation(2, next));
    }
  }
  // Gates in the order update, reset, hidden. `reset` takes the reset state of all units; it may be `before` where that
  // is zeros.
  void gru(float* after, float* reset) const {
    const auto reset_gate = [&](std::int64_t u) { return activation(0, given(1, u) + back(1, u, before)); };
    for (std::int64_t u = 0; u < hidden && !reset_behind; ++u) {
      reset[u] = static_cast<float>(reset_gate(u) * static_cast<double>(before[u]));
    }
    for (std::int64_t u = 0; u < hidden; ++u) {
      const double update = activation(0, given(0, u) + back(0, u, before));
      const double recurrent = reset_behind ? reset_gate(u) * back(2, u, before) : back(2, u, reset);
      const double fresh = activation(1, given(2, u) + recurrent);
      after[u] = static_cast<float>((1 - update) * fresh + update * static_cast<double>(before[u]));
    }
  }
};

// Row T of Y holds the hidden state while time goes on and the last one at the end; row T + 1 the cell state. Results
// at times beyond the length of a sequence are 0.
void run_recurrent(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const Tensor& y = out[0];
  const std::int64_t times = in[0].shape.dims[0], batch = in[0].shape.dims[1], inputs = in[0].shape.dims[2];
  const std::int64_t directions = y.shape.dims[1], hidden = y.shape.dims[3];
  const auto cell = static_cast<Cell>(p.integers[0]);
  const std::int64_t rows = gates_of(cell) * hidden;
  const auto at = [&](std::int64_t t, std::int64_t d, std::int64_t b) {
    return y.as<float>() + ((t * directions + d) * batch + b) * hidden;
  };
  const auto part = [](const Tensor& t, std::int64_t offset) {
    return t.data != nullptr ? t.as<const float>() + offset : nullptr;
  };
  for (std::int64_t d = 0; d < directions; ++d) {
    const bool backward = static_cast<Direction>(p.integers[1]) == Direction::kReverse || d == 1;
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int64_t length = times;
      if (in[4].data != nullptr) length = std::clamp<std::int64_t>(in[4].as<std::int32_t>()[b], 0, times);
      const auto start = [&](const Tensor& initial, float* state) {
        const float* from = part(initial, (d * batch + b) * hidden);
        for (std::int64_t u = 0; u < hidden; ++u) state[u] = from != nullptr ? from[u] : 0.0F;
      };
      float* last = at(times, d, b);
      float* state = cell == Cell::kLstm ? at(times + 1, d, b) : last;
      if (cell == Cell::kLstm) start(in[6], state);
      // The state in front of the first step lies in the input; an absent one is zeros in the last row.
      start(in[5], last);
      const float* first = part(in[5], (d * batch + b) * hidden);
      const float* before = first != nullptr ? first : last;
      for (std::int64_t n = 0; n < length; ++n) {
        const std::int64_t t = backward ? length - 1 - n : n;
        float* after = at(t, d, b);
        const Step step{cell,
                        inputs,
                        hidden,
                        in[0].as<const float>() + (t * batch + b) * inputs,
                        in[1].as<const float>() + d * rows * inputs,
                        in[2].as<const float>() + d * rows * hidden,
                        part(in[3], d * 2 * rows),
                        part(in[7], d * 3 * hidden),
                        before,
                        p.integers[8] != 0,
                        p.integers[9] != 0,
                        {p, d}};
        if (cell == Cell::kRnn) step.rnn(after);
        if (cell == Cell::kLstm) step.lstm(after, state);
        if (cell == Cell::kGru) step.gru(after, last);
        before = after;
      }
      for (std::int64_t t = length; t < times; ++t) {
        for (std::int64_t u = 0; u < hidden; ++u) at(t, d, b)[u] = 0;
      }
      if (length > 0) {
        for (std::int64_t u = 0; u < hidden; ++u) last[u] = before[u];
      }
    }
  }
}

constexpr GenericEntry kEntries[] = {
    {Generic::kMatMul, 2, 2, infer_matmul, run_matmul},
    {Generic::kDet, 1, 1, infer_det, run_det},
    {Generic::kRecurrent, 3, 8, infer_recurrent, run_recurrent},
};

}  // namespace

std::span<const GenericEntry> generic_matrices() { return kEntries; }

}  // namespace takt::kernels::reference
