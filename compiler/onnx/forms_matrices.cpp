// Products of matrices and of tensors.
#include <algorithm>
#include <cmath>

#include "compiler/onnx/call.h"

namespace takt::compiler {
namespace {

// A B that is not constant takes no factor in a kernel: it is applied to the product, and beta to C.
Status gemm(Call& call) {
  call.take("broadcast");  // C always may be smaller; before operator set 7 this had to be said
  const float alpha = call.node.number("alpha", 1), beta = call.node.number("beta", 1);
  const auto constant = [&](std::size_t i) { return !call.has(i) || call.graph[call.node.inputs[i]].constant; };
  const bool direct = (alpha == 1 || constant(1)) && (beta == 1 || constant(2));
  if (call.type(0).dtype == DType::kF32 && direct) return call.emit();
  if (!call.has(1)) return fail(Code::kInput, "expects two matrices");
  Steps steps(call);
  const auto factor = [&](ValueId x, float by) { return by == 1 ? x : steps("Mul", {x, steps.number_like(by, x)}); };
  ValueId product;
  if (call.type(0).dtype == DType::kF32) {
    product = steps("Gemm", {call.node.inputs[0], call.node.inputs[1]},
                    {{"transA", call.node.integer("transA", 0)}, {"transB", call.node.integer("transB", 0)}});
  } else {
    const auto matrix = [&](std::size_t i, std::string_view key) {
      return call.node.integer(key, 0) != 0 ? steps.transpose(call.node.inputs[i], {1, 0}) : call.node.inputs[i];
    };
    const ValueId a = matrix(0, "transA"), b = matrix(1, "transB");
    product = steps("MatMul", {a, b});
  }
  product = factor(product, alpha);
  if (!call.has(2)) return steps.last("Identity", {product});
  return steps.last("Add", {product, factor(call.node.inputs[2], beta)});
}

// Vectors are matrices of one row on the left and of one column on the right.
Status matmul_of(Steps& steps, const Call& call, ValueId a, ValueId b) {
  const ir::Shape left = steps.shape(a), right = steps.shape(b);
  if (left.rank == 0 || right.rank == 0) return fail(Code::kInput, "a scalar is no matrix");
  if (left.rank == 1) a = steps.reshape(a, Integers{1, left.dims[0]});
  if (right.rank == 1) b = steps.reshape(b, Integers{right.dims[0], 1});
  if (left.rank > 1 && right.rank > 1) return steps.last("MatMul", {a, b});
  const ValueId product = steps("MatMul", {a, b});
  TAKT_RETURN_IF_ERROR(steps.status());
  const ir::Shape y = steps.shape(product);
  Integers extents(y.dims, y.dims + y.rank - 2);
  if (left.rank > 1) extents.push_back(y.dims[y.rank - 2]);
  if (right.rank > 1) extents.push_back(y.dims[y.rank - 1]);
  (void)call;
  return steps.last_reshape(product, extents);
}

Status matmul(Call& call) {
  if (!call.has(1) || call.type(0).dtype == DType::kF32) return call.emit();
  Steps steps(call);
  return matmul_of(steps, call, call.node.inputs[0], call.node.inputs[1]);
}

// --- Einsum: two operands at a time, each product a MatMul over [batch, left, summed] and [batch, summed, right]

struct Term {
  ValueId value = kNoValue;
  std::string labels;  // one letter for each dimension
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

// Dimensions under an ellipsis take capital letters from the end of the alphabet, counted from the right.
std::string spelled(const std::string& labels, int rank, std::string* error) {
  const std::size_t dots = labels.find("...");
  if (dots == std::string::npos) return labels;
  const int hidden = rank - static_cast<int>(labels.size()) + 3;
  if (hidden < 0 || hidden > 8) {
    *error = "does not fit its operands";
    return labels;
  }
  std::string middle;
  for (int d = 0; d < hidden; ++d) middle += static_cast<char>('\x01' + hidden - 1 - d);
  return labels.substr(0, dots) + middle + labels.substr(dots + 3);
}

Result<Equation> parse(const Call& call) {
  std::string text;
  for (const char c : call.node.text("equation", "")) {
    if (c != ' ') text += c;
  }
  const auto wrong = [&](const std::string& why) {
    return fail(Code::kInput, "equation \"" + ir::printable(text) + "\" " + why);
  };
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation out;
  std::string error;
  for (std::size_t i = 0; i < call.node.inputs.size(); ++i) {
    if (!call.has(i)) return wrong("has a missing operand");
    const std::size_t comma = left.find(',');
    const int rank = call.type(i).shape.rank;
    out.inputs.push_back(spelled(left.substr(0, comma), rank, &error));
    if (static_cast<int>(out.inputs.back().size()) != rank) return wrong("does not fit its operands");
    const bool last = i + 1 == call.node.inputs.size();
    if (last != (comma == std::string::npos)) return wrong("has another number of operands than the node");
    left = last ? "" : left.substr(comma + 1);
  }
  std::map<char, int> uses;
  std::string ellipsis;
  for (const std::string& labels : out.inputs) {
    std::string here;
    for (const char c : labels) {
      ++uses[c];
      if (c < ' ') here += c;
    }
    if (here.size() > ellipsis.size()) ellipsis = here;
  }
  if (arrow == std::string::npos) {
    out.output = ellipsis;
    for (const auto& [label, count] : uses) {
      if (label > ' ' && count == 1) out.output += label;
    }
  } else {
    out.output = text.substr(arrow + 2);
    const std::size_t dots = out.output.find("...");
    if (dots != std::string::npos) out.output.replace(dots, 3, ellipsis);
  }
  for (const char c : out.output) {
    if (uses.count(c) == 0 || std::count(out.output.begin(), out.output.end(), c) != 1) return wrong("is not usable");
  }
  for (const auto& [label, count] : uses) {
    const bool letter = (label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z') || label < ' ';
    if (!letter) return wrong("holds a character that is no letter");
  }
  if (!error.empty()) return wrong(error);
  return out;
}

bool holds(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

class Einsum {
 public:
  explicit Einsum(Call& call) : call_(call), steps_(call) {}

  Status run() {
    TAKT_ASSIGN(const Equation equation, parse(call_));
    std::vector<Term> terms;
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      Term term{call_.node.inputs[i], equation.inputs[i]};
      TAKT_RETURN_IF_ERROR(diagonals(&term));
      terms.push_back(term);
    }
    Term result = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) {
      std::string later = equation.output;
      for (std::size_t k = i + 1; k < terms.size(); ++k) later += terms[k].labels;
      TAKT_RETURN_IF_ERROR(multiply(&result, terms[i], later));
    }
    sum(&result, equation.output);
    arrange(&result, equation.output);
    return steps_.last("Identity", {result.value});
  }

 private:
  // A letter twice in one operand: both dimensions side by side at the end, of which every (n + 1)-th element is taken.
  Status diagonals(Term* term) {
    for (std::size_t i = 0; i < term->labels.size(); ++i) {
      const std::size_t j = term->labels.find(term->labels[i], i + 1);
      if (j == std::string::npos) continue;
      const ir::Shape x = steps_.shape(term->value);
      const std::int64_t n = x.dims[i];
      if (x.dims[j] != n || n < 1) return fail(Code::kInput, "a diagonal of " + to_string(x) + " is not square");
      Integers perm, extents;
      std::string labels;
      for (std::size_t d = 0; d < term->labels.size(); ++d) {
        if (d == i || d == j) continue;
        perm.push_back(static_cast<std::int64_t>(d));
        extents.push_back(x.dims[d]);
        labels += term->labels[d];
      }
      perm.insert(perm.end(), {static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)});
      extents.push_back(n * n);
      const ValueId flat = steps_.reshape(steps_.transpose(term->value, perm), extents);
      const Integers axis = {static_cast<std::int64_t>(extents.size()) - 1};
      term->value = steps_("Slice", {flat, steps_.list(Integers{0}), steps_.list(Integers{n * n}), steps_.list(axis),
                                     steps_.list(Integers{n + 1})});
      term->labels = labels + term->labels[i];
      TAKT_RETURN_IF_ERROR(steps_.status());
      i = static_cast<std::size_t>(-1);  // again from the start
    }
    return {};
  }

  // Letters that nobody reads behind here are summed.
  void sum(Term* term, const std::string& kept) {
    Integers axes;
    std::string labels;
    for (std::size_t d = 0; d < term->labels.size(); ++d) {
      if (holds(kept, term->labels[d])) {
        labels += term->labels[d];
      } else {
        axes.push_back(static_cast<std::int64_t>(d));
      }
    }
    if (axes.empty()) return;
    term->value = steps_("ReduceSum", {term->value}, {{"axes", axes}, {"keepdims", std::int64_t{0}}});
    term->labels = labels;
  }

  // Dimensions in the order of the letters; letters that the term lacks become extents of 1.
  void arrange(Term* term, const std::string& order) {
    Integers perm, extents;
    const ir::Shape x = steps_.shape(term->value);
    bool missing = false;
    for (const char c : order) {
      const std::size_t at = term->labels.find(c);
      missing = missing || at == std::string::npos;
      extents.push_back(at == std::string::npos ? 1 : x.dims[at]);
      if (at != std::string::npos) perm.push_back(static_cast<std::int64_t>(at));
    }
    if (!std::is_sorted(perm.begin(), perm.end())) term->value = steps_.transpose(term->value, perm);
    if (missing) term->value = steps_.reshape(term->value, extents);
    term->labels = order;
  }

  Status multiply(Term* a, Term b, const std::string& later) {
    sum(a, b.labels + later);
    sum(&b, a->labels + later);
    TAKT_RETURN_IF_ERROR(steps_.status());
    std::string batch, left, right, summed;
    for (const char c : a->labels) (holds(b.labels, c) ? holds(later, c) ? batch : summed : left) += c;
    for (const char c : b.labels) {
      if (!holds(a->labels, c)) right += c;
    }
    if (summed.empty()) {
      const std::string all = batch + left + right;
      arrange(a, all);
      arrange(&b, all);
      a->value = steps_("Mul", {a->value, b.value});
      return steps_.status();
    }
    std::map<char, std::int64_t> extent;
    for (const Term* term : {static_cast<const Term*>(a), static_cast<const Term*>(&b)}) {
      const ir::Shape x = steps_.shape(term->value);
      for (std::size_t d = 0; d < term->labels.size(); ++d) {
        std::int64_t& known = extent.emplace(term->labels[d], x.dims[d]).first->second;
        if (known == x.dims[d]) continue;
        return fail(Code::kInput,
                    "extents " + std::to_string(known) + " and " + std::to_string(x.dims[d]) + " of one letter differ");
      }
    }
    const auto product = [&](const std::string& labels) {
      std::int64_t n = 1;
      for (const char c : labels) n *= extent[c];
      return n;
    };
    arrange(a, batch + left + summed);
    arrange(&b, batch + summed + right);
    TAKT_RETURN_IF_ERROR(steps_.status());
    const ValueId first = steps_.reshape(a->value, Integers{product(batch), product(left), product(summed)});
    const ValueId second = steps_.reshape(b.value, Integers{product(batch), product(summed), product(right)});
    a->labels = batch + left + right;
    Integers extents;
    for (const char c : a->labels) extents.push_back(extent[c]);
    a->value = steps_.reshape(steps_("MatMul", {first, second}), extents);
    return steps_.status();
  }

  Call& call_;
  Steps steps_;
};

Status einsum(Call& call) { return Einsum(call).run(); }

// --- Attention of operator set 23

struct Heads {
  std::int64_t batch = 0, query = 0, cached = 0;  // heads of Q, and of K and V
};

// [B,S,H*D] as [B,H,S,D]; what has four dimensions stays.
ValueId in_heads(Steps& steps, ValueId x, std::int64_t heads) {
  const ir::Shape s = steps.shape(x);
  if (s.rank == 4) return x;
  return steps.transpose(steps.reshape(x, Integers{s.dims[0], s.dims[1], heads, s.dims[2] / heads}), {0, 2, 1, 3});
}

Result<Heads> heads_of(const Call& call) {
  const ir::Shape q = call.type(0).shape, k = call.type(1).shape, v = call.type(2).shape;
  Heads heads{q.dims[0], q.dims[1], k.dims[1]};
  if (q.rank == 3) {
    heads.query = call.node.integer("q_num_heads", 0);
    heads.cached = call.node.integer("kv_num_heads", 0);
  }
  const auto divides = [](const ir::Shape& x, std::int64_t n) { return x.rank == 4 || (n > 0 && x.dims[2] % n == 0); };
  const bool ranks = (q.rank == 3 || q.rank == 4) && k.rank == q.rank && v.rank == q.rank;
  if (ranks && heads.query > 0 && heads.cached > 0 && heads.query % heads.cached == 0 && divides(q, heads.query) &&
      divides(k, heads.cached) && divides(v, heads.cached)) {
    return heads;
  }
  return fail(Code::kInput,
              "numbers of heads that do not fit " + to_string(q) + ", " + to_string(k) + ", " + to_string(v));
}

// What is added to scores [.., S, T]: 0 where query i + `past` may look at key j <= i + past, far below 0 elsewhere.
constexpr float kNever = -1e30F;
Constant causal_bias(std::int64_t queries, std::int64_t keys, std::int64_t past) {
  std::vector<float> bias;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) bias.push_back(j <= i + past ? 0.0F : kNever);
  }
  return Constant::of(bias, ir::Shape{2, {queries, keys}});
}

// softmax(Q K^T scale + bias) V; several heads of Q may share one of K and V.
Status attention(Call& call) {
  if (!call.has(1) || !call.has(2)) return fail(Code::kInput, "expects Q, K and V");
  for (std::size_t i = 0; i < 3; ++i) {
    if (call.type(i).dtype != DType::kF32) return fail(Code::kInput, "expects f32, found " + to_string(call.type(i)));
  }
  TAKT_ASSIGN(const Heads heads, heads_of(call));
  Steps steps(call);
  const ValueId q = in_heads(steps, call.node.inputs[0], heads.query);
  ValueId k = in_heads(steps, call.node.inputs[1], heads.cached);
  ValueId v = in_heads(steps, call.node.inputs[2], heads.cached);
  std::int64_t past = 0;
  if (call.has(4) && call.has(5)) {
    if (call.type(4).shape.rank != 4) return fail(Code::kInput, "past_key is " + to_string(call.type(4)));
    past = call.type(4).shape.dims[2];
    k = steps("Concat", {call.node.inputs[4], k}, {{"axis", std::int64_t{2}}});
    v = steps("Concat", {call.node.inputs[5], v}, {{"axis", std::int64_t{2}}});
  }
  TAKT_RETURN_IF_ERROR(steps.status());
  const ir::Shape query = steps.shape(q), key = steps.shape(k), value = steps.shape(v);
  const std::int64_t group = heads.query / heads.cached, s = query.dims[2], t = key.dims[2], d = query.dims[3];
  if (s * t > (1 << 26))
    return fail(Code::kInput, "too many scores: " + std::to_string(s) + " by " + std::to_string(t));
  const float scale = call.node.number("scale", 1 / std::sqrt(static_cast<float>(d)));
  const ValueId scaled = steps("Mul", {q, steps.number(scale)});
  const ValueId grouped =
      group == 1 ? scaled : steps.reshape(scaled, Integers{heads.batch, heads.cached, group * s, d});
  ValueId scores = steps("MatMul", {grouped, steps.transpose(k, {0, 1, 3, 2})});
  if (group != 1) scores = steps.reshape(scores, Integers{heads.batch, heads.query, s, t});
  if (const float cap = call.node.number("softcap", 0); cap > 0) {
    scores = steps("Mul", {steps("Tanh", {steps("Div", {scores, steps.number(cap)})}), steps.number(cap)});
  }
  if (call.has(3)) {
    ValueId mask = call.node.inputs[3];
    if (call.type(3).dtype == DType::kBool) mask = steps("Where", {mask, steps.number(0), steps.number(kNever)});
    scores = steps("Add", {scores, mask});
  }
  if (call.node.integer("is_causal", 0) != 0) {
    scores = steps("Add", {scores, call.constant("causal", causal_bias(s, t, past))});
  }
  ValueId shares = steps("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  if (group != 1) shares = steps.reshape(shares, Integers{heads.batch, heads.cached, group * s, t});
  ValueId y = steps("MatMul", {shares, v});
  if (group != 1) y = steps.reshape(y, Integers{heads.batch, heads.query, s, value.dims[3]});
  if (call.type(0).shape.rank == 3) {
    y = steps.reshape(steps.transpose(y, {0, 2, 1, 3}), Integers{heads.batch, s, heads.query * value.dims[3]});
  }
  TAKT_RETURN_IF_ERROR(steps.last("Identity", {y}));
  TAKT_RETURN_IF_ERROR(steps.output(1, "Identity", {k}));
  return steps.output(2, "Identity", {v});
}

constexpr Form kForms[] = {
    {"Attention",
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f softmax_precision:i",
     attention, 3},
    {"Einsum", "equation:s", einsum},
    {"Gemm", "alpha:f beta:f broadcast:i transA:i transB:i", gemm},
    {"MatMul", "", matmul},
};

}  // namespace

std::span<const Form> matrix_forms() { return kForms; }

}  // namespace takt::compiler
