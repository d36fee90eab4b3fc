#include "compiler/onnx/control.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/ir/operators.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::kNoValue;
using ir::printable;
using ir::to_string;
using ir::ValueId;
using Integers = std::vector<std::int64_t>;
using Attributes = std::map<std::string, ir::Attribute>;

// More trips than nodes that an unrolled model may have (import.cpp).
constexpr std::int64_t kMostTrips = 1 << 16;

class Control {
 public:
  Control(Scopes& scopes, const ControlNode& node, const std::map<std::string, std::int64_t>& limits)
      : scopes_(scopes), graph_(scopes.graph()), node_(node), limits_(limits) {}

  Status run() {
    if (node_.proto.op_type() == "If") return branch();
    if (node_.proto.op_type() == "Loop") return loop();
    return scan();
  }

 private:
  static tl::unexpected<Error> refuse(std::string message) { return fail(Code::kInput, std::move(message)); }

  [[nodiscard]] const ::onnx::AttributeProto* attribute(std::string_view name) const {
    for (const auto& a : node_.proto.attribute()) {
      if (a.name() == name) return &a;
    }
    return nullptr;
  }
  Result<const ::onnx::GraphProto*> body(std::string_view name) const {
    const auto* a = attribute(name);
    if (a == nullptr || !a->has_g()) return refuse("has no subgraph " + std::string(name));
    return &a->g();
  }
  [[nodiscard]] Integers integers(std::string_view name) const {
    const auto* a = attribute(name);
    return a == nullptr ? Integers{} : Integers(a->ints().begin(), a->ints().end());
  }
  [[nodiscard]] bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  [[nodiscard]] const ir::Type& type(ValueId id) const { return *graph_[id].type; }

  // A node under the present guard that writes `output`.
  Status emit_to(ValueId output, std::string op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    ir::Node node;
    node.name = graph_[output].name;
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = std::move(attributes);
    node.guard = scopes_.guard();
    return ir::append(graph_, std::move(node));
  }
  Result<ValueId> emit(std::string op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId output = graph_.add_value(node_.name + "." + std::to_string(++count_));
    TAKT_RETURN_IF_ERROR(emit_to(output, std::move(op), std::move(inputs), std::move(attributes)));
    return output;
  }
  ValueId list(const Integers& values) {
    return graph_.add_constant(node_.name + "." + std::to_string(++count_), Constant::of(values));
  }
  ValueId truth(bool value) {
    Constant c = Constant::allocate(DType::kBool, {});
    c.bytes[0] = std::byte{value};
    return graph_.add_constant(node_.name + (value ? ".true" : ".false"), std::move(c));
  }
  Result<ValueId> reshape(ValueId x, const Integers& extents) {
    return emit("Reshape", {x, list(extents)}, {{"allowzero", std::int64_t{1}}});
  }

  // Conditions and trip counts, as scalars.
  Status one(ValueId id, DType dtype, const char* what) const {
    const ir::Type& t = type(id);
    if (t.dtype == dtype && t.shape.elements() == 1 && t.count == kNoValue) return {};
    return refuse(std::string("its ") + what + " is " + to_string(t) + "; expected one " + kernels::name_of(dtype));
  }
  Result<ValueId> scalar(ValueId id, DType dtype, const char* what) {
    TAKT_RETURN_IF_ERROR(one(id, dtype, what));
    if (type(id).shape.rank == 0) return id;
    return reshape(id, {});
  }
  // Of a value that is one bool.
  [[nodiscard]] std::optional<bool> known(ValueId condition) const {
    const auto& constant = graph_[condition].constant;
    if (!constant) return std::nullopt;
    return constant->bytes[0] != std::byte{0};
  }
  int guarded(ValueId condition, bool when) {
    const ir::Guard guard{condition, when, scopes_.guard()};
    const auto same = std::find(graph_.guards.begin(), graph_.guards.end(), guard);
    if (same != graph_.guards.end()) return static_cast<int>(same - graph_.guards.begin());
    graph_.guards.push_back(guard);
    return static_cast<int>(graph_.guards.size()) - 1;
  }

  Result<std::vector<ValueId>> inlined(const ::onnx::GraphProto& body, const std::vector<ValueId>& inputs,
                                       const std::string& prefix, int guard) {
    const int around = scopes_.guard();
    scopes_.set_guard(guard);
    auto results = scopes_.inline_body(body, inputs, prefix);
    scopes_.set_guard(around);
    return results;
  }

  Status branch() {
    TAKT_ASSIGN(const auto* const then_body, body("then_branch"));
    TAKT_ASSIGN(const auto* const else_body, body("else_branch"));
    if (!has(0)) return refuse("has no condition");
    TAKT_ASSIGN(const ValueId condition, scalar(node_.inputs[0], DType::kBool, "condition"));
    const std::size_t count = node_.outputs.size();
    if (const auto taken = known(condition)) {
      TAKT_ASSIGN(const auto results, inlined(*taken ? *then_body : *else_body, {},
                                              node_.name + (*taken ? ".then/" : ".else/"), scopes_.guard()));
      if (results.size() < count) return refuse("a branch has fewer outputs than the node");
      for (std::size_t i = 0; i < count; ++i) {
        TAKT_RETURN_IF_ERROR(emit_to(node_.outputs[i], "Identity", {results[i]}));
      }
      return {};
    }
    TAKT_ASSIGN(const auto a, inlined(*then_body, {}, node_.name + ".then/", guarded(condition, true)));
    TAKT_ASSIGN(const auto b, inlined(*else_body, {}, node_.name + ".else/", guarded(condition, false)));
    if (a.size() < count || b.size() < count) return refuse("a branch has fewer outputs than the node");
    for (std::size_t i = 0; i < count; ++i) {
      if (!(type(a[i]) == type(b[i]))) {
        return refuse("its branches give " + to_string(type(a[i])) + " and " + to_string(type(b[i])) + " as output " +
                      std::to_string(i) + "; takt needs one type");
      }
      TAKT_RETURN_IF_ERROR(emit_to(node_.outputs[i], "takt.Select", {condition, a[i], b[i]}));
    }
    return {};
  }

  // The most trips, and the number of trips: where it is known, or the value that holds it when it runs.
  struct Trips {
    std::int64_t most = 0;
    std::int64_t known = 0;
    ValueId number = kNoValue;
  };
  Result<Trips> trips() {
    Trips out;
    const auto given = limits_.find(node_.name);
    if (given != limits_.end()) out.most = given->second;
    if (has(0)) {
      TAKT_ASSIGN(const ValueId number, scalar(node_.inputs[0], DType::kI64, "trip count"));
      if (const auto& constant = graph_[number].constant) {
        std::int64_t trips = 0;
        std::memcpy(&trips, constant->bytes.data(), sizeof trips);
        trips = std::max<std::int64_t>(trips, 0);
        out.known = trips;
        out.most = given != limits_.end() ? std::min(out.most, trips) : trips;
        return out;
      }
      out.number = number;
    }
    if (given == limits_.end()) {
      return refuse("how often it runs is known only when it runs; give its maximum (--loop " + printable(node_.name) +
                    "=NUMBER)");
    }
    return out;
  }

  Status loop() {
    TAKT_ASSIGN(const auto* const body, this->body("body"));
    TAKT_ASSIGN(const Trips trips, this->trips());
    if (trips.most > kMostTrips) {
      return refuse("runs up to " + std::to_string(trips.most) + " times; takt unrolls at most " +
                    std::to_string(kMostTrips));
    }
    const std::size_t carried = node_.inputs.size() > 2 ? node_.inputs.size() - 2 : 0;
    const auto made = static_cast<std::size_t>(body->output_size());
    if (made < carried + 1 || node_.outputs.size() > made - 1) {
      return refuse("its body has " + std::to_string(body->output_size()) + " outputs for " + std::to_string(carried) +
                    " carried values and " + std::to_string(node_.outputs.size()) + " outputs of the node");
    }
    std::vector<ValueId> values(node_.inputs.begin() + static_cast<std::ptrdiff_t>(node_.inputs.size() - carried),
                                node_.inputs.end());
    if (std::find(values.begin(), values.end(), kNoValue) != values.end()) return refuse("a carried value is missing");
    std::vector<std::vector<ValueId>> rows(made - 1 - carried);

    std::vector<ValueId> ran;  // of every iteration
    ValueId running = truth(true);
    if (has(1)) {
      TAKT_ASSIGN(running, scalar(node_.inputs[1], DType::kBool, "condition"));
    }
    bool ended = false;  // by the condition, whatever the data
    for (std::int64_t i = 0; i < trips.most; ++i) {
      const ValueId iteration = counter(*body, i);
      if (trips.number != kNoValue) {
        TAKT_ASSIGN(const ValueId at, scalar(iteration, DType::kI64, "iteration"));
        TAKT_ASSIGN(const ValueId more, emit("Less", {at, trips.number}));
        TAKT_ASSIGN(running, known(running) == true ? Result<ValueId>(more) : emit("And", {running, more}));
      }
      if (known(running) == false) {
        ended = true;
        break;
      }
      const bool sure = known(running) == true;
      std::vector<ValueId> inputs = {iteration, truth(true)};
      inputs.insert(inputs.end(), values.begin(), values.end());
      TAKT_ASSIGN(const auto results, inlined(*body, inputs, node_.name + "[" + std::to_string(i) + "]/",
                                              sure ? scopes_.guard() : guarded(running, true)));
      for (std::size_t k = 0; k < carried; ++k) {
        TAKT_ASSIGN(values[k], sure ? Result<ValueId>(results[k + 1]) : chosen(running, results[k + 1], values[k]));
      }
      for (std::size_t k = 0; k < rows.size(); ++k) {
        ValueId row = results[carried + 1 + k];
        if (!sure) {
          const ir::Type t = type(row);
          const ValueId nothing = graph_.add_constant(node_.name + ".nothing", Constant::allocate(t.dtype, t.shape));
          TAKT_ASSIGN(row, emit("takt.Select", {running, row, nothing}));
        }
        rows[k].push_back(row);
      }
      ran.push_back(running);
      TAKT_RETURN_IF_ERROR(one(results[0], DType::kBool, "condition"));
      const auto next = known(results[0]);
      ended = next == false;
      if (ended) break;
      if (next == true) continue;
      if (sure) {
        TAKT_ASSIGN(running, scalar(results[0], DType::kBool, "condition"));
      } else {
        TAKT_ASSIGN(const ValueId goes_on, scalar_under(guarded(running, true), results[0]));
        TAKT_ASSIGN(running, chosen(running, goes_on, running));
      }
    }
    // Where the data decide, a maximum below what they want is the user's word; here it is a mistake for certain.
    if (!ended && trips.known > trips.most && known(running) == true) {
      return refuse("runs " + std::to_string(trips.known) + " times; its maximum (--loop " + printable(node_.name) +
                    "=" + std::to_string(trips.most) + ") would cut it short");
    }
    for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
      if (k < carried) {
        TAKT_RETURN_IF_ERROR(emit_to(node_.outputs[k], "Identity", {values[k]}));
      } else {
        TAKT_RETURN_IF_ERROR(collect(node_.outputs[k], rows[k - carried], ran));
      }
    }
    return {};
  }

  // Values of the iterations that ran: as many as the data decide where one may be left out.
  Status collect(ValueId output, const std::vector<ValueId>& rows, const std::vector<ValueId>& ran) {
    if (std::all_of(ran.begin(), ran.end(), [&](ValueId id) { return known(id) == true; })) {
      return stack(output, rows, 0);
    }
    const ValueId all = graph_.add_value(node_.name + ".all" + std::to_string(++count_));
    const ValueId which = graph_.add_value(node_.name + ".ran" + std::to_string(++count_));
    TAKT_RETURN_IF_ERROR(stack(all, rows, 0));
    TAKT_RETURN_IF_ERROR(stack(which, ran, 0));
    return emit_to(output, "Compress", {all, which}, {{"axis", std::int64_t{0}}});
  }

  Result<ValueId> scalar_under(int guard, ValueId condition) {
    const int around = scopes_.guard();
    scopes_.set_guard(guard);
    auto out = scalar(condition, DType::kBool, "condition");
    scopes_.set_guard(around);
    return out;
  }

  // What an iteration makes of a value, or the value where it does not run.
  Result<ValueId> chosen(ValueId running, ValueId after, ValueId before) {
    if (after == before) return before;
    if (!(type(after) == type(before))) {
      return refuse("a carried value goes from " + to_string(type(before)) + " to " + to_string(type(after)) +
                    " in an iteration that may be left out");
    }
    return emit("takt.Select", {running, after, before});
  }

  // The iteration's number, of the rank that the body says.
  ValueId counter(const ::onnx::GraphProto& body, std::int64_t i) {
    Constant c = Constant::of(std::span(&i, 1));
    const bool has_rank = body.input_size() > 0 && body.input(0).type().tensor_type().has_shape() &&
                          body.input(0).type().tensor_type().shape().dim_size() == 1;
    if (!has_rank) c.shape = {};
    return graph_.add_constant(node_.name + "[" + std::to_string(i) + "]", std::move(c));
  }

  // Values of all iterations along a new dimension.
  Status stack(ValueId output, const std::vector<ValueId>& rows, std::int64_t axis) {
    if (rows.empty()) return refuse("collects values and never runs");
    std::vector<ValueId> parts;
    for (const ValueId row : rows) {
      const ir::Shape& shape = type(row).shape;
      if (axis < 0 || axis > shape.rank || shape.rank == kernels::kMaxRank) {
        return refuse("collects " + to_string(type(row)) + " along dimension " + std::to_string(axis));
      }
      Integers extents(shape.dims, shape.dims + shape.rank);
      extents.insert(extents.begin() + axis, 1);
      TAKT_ASSIGN(parts.emplace_back(), reshape(row, extents));
    }
    if (parts.size() == 1) return emit_to(output, "Identity", parts);
    return emit_to(output, "Concat", parts, {{"axis", axis}});
  }

  // Element `i` of a value along a dimension, without it.
  Result<ValueId> element(ValueId x, std::int64_t i, std::int64_t axis) {
    const ir::Shape& shape = type(x).shape;
    Integers extents(shape.dims, shape.dims + shape.rank);
    extents.erase(extents.begin() + axis);
    TAKT_ASSIGN(const ValueId slice, emit("Slice", {x, list({i}), list({i + 1}), list({axis})}));
    return reshape(slice, extents);
  }

  // Before operator set 9 all values had a first dimension of sequences.
  Status scan() {
    TAKT_ASSIGN(const auto* const body, this->body("body"));
    const bool batched = node_.opset < 9;
    if (batched && has(0)) return refuse("sequence_lens is not supported");
    const std::vector<ValueId> inputs(node_.inputs.begin() + (batched && !node_.inputs.empty() ? 1 : 0),
                                      node_.inputs.end());
    const auto* number = attribute("num_scan_inputs");
    const std::int64_t scanned = number == nullptr ? 0 : number->i();
    if (scanned < 1 || scanned > static_cast<std::int64_t>(inputs.size()) ||
        std::find(inputs.begin(), inputs.end(), kNoValue) != inputs.end()) {
      return refuse("num_scan_inputs does not fit its inputs");
    }
    const std::size_t carried = inputs.size() - static_cast<std::size_t>(scanned);
    if (static_cast<std::size_t>(body->output_size()) < std::max(carried, node_.outputs.size())) {
      return refuse("its body has fewer outputs than the node");
    }
    if (!batched) {
      TAKT_ASSIGN(const auto results, scan_one(*body, inputs, carried, node_.name));
      for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
        TAKT_RETURN_IF_ERROR(emit_to(node_.outputs[k], "Identity", {results[k]}));
      }
      return {};
    }
    if (type(inputs[0]).shape.rank < 1) return refuse("has an input without a dimension of sequences");
    std::vector<std::vector<ValueId>> batches(node_.outputs.size());
    const std::int64_t sequences = type(inputs[0]).shape.dims[0];
    for (std::int64_t b = 0; b < sequences; ++b) {
      std::vector<ValueId> one;
      for (const ValueId x : inputs) {
        if (type(x).shape.rank < 1 || type(x).shape.dims[0] != sequences) {
          return refuse("its inputs have different numbers of sequences");
        }
        TAKT_ASSIGN(one.emplace_back(), element(x, b, 0));
      }
      TAKT_ASSIGN(const auto results, scan_one(*body, one, carried, node_.name + "(" + std::to_string(b) + ")"));
      for (std::size_t k = 0; k < batches.size(); ++k) batches[k].push_back(results[k]);
    }
    for (std::size_t k = 0; k < batches.size(); ++k) TAKT_RETURN_IF_ERROR(stack(node_.outputs[k], batches[k], 0));
    return {};
  }

  [[nodiscard]] static std::int64_t at(const Integers& list, std::size_t i) { return i < list.size() ? list[i] : 0; }

  // The results of one sequence: carried values, then what was collected.
  Result<std::vector<ValueId>> scan_one(const ::onnx::GraphProto& body, const std::vector<ValueId>& inputs,
                                        std::size_t carried, const std::string& name) {
    const Integers axes = integers("scan_input_axes"), output_axes = integers("scan_output_axes");
    const Integers backward = integers(node_.opset < 9 ? "directions" : "scan_input_directions");
    const Integers output_backward = integers("scan_output_directions");
    std::vector<ValueId> values(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(carried));
    std::int64_t length = -1;
    Integers along;
    for (std::size_t k = carried; k < inputs.size(); ++k) {
      const ir::Type& t = type(inputs[k]);
      const std::int64_t given = at(axes, k - carried);
      along.push_back(given < 0 ? given + t.shape.rank : given);
      if (along.back() < 0 || along.back() >= t.shape.rank || t.count != kNoValue) {
        return refuse("scans " + to_string(t) + " along dimension " + std::to_string(given));
      }
      const std::int64_t extent = t.shape.dims[along.back()];
      if (length >= 0 && extent != length) return refuse("scans inputs of different lengths");
      length = extent;
    }
    std::vector<std::vector<ValueId>> rows(static_cast<std::size_t>(body.output_size()) - carried);
    for (std::int64_t i = 0; i < length; ++i) {
      std::vector<ValueId> one = values;
      for (std::size_t k = carried; k < inputs.size(); ++k) {
        const bool reversed = at(backward, k - carried) != 0;
        TAKT_ASSIGN(one.emplace_back(), element(inputs[k], reversed ? length - 1 - i : i, along[k - carried]));
      }
      TAKT_ASSIGN(const auto results, inlined(body, one, name + "[" + std::to_string(i) + "]/", scopes_.guard()));
      std::copy_n(results.begin(), carried, values.begin());
      for (std::size_t k = 0; k < rows.size(); ++k) rows[k].push_back(results[carried + k]);
    }
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (at(output_backward, k) != 0) std::reverse(rows[k].begin(), rows[k].end());
      if (rows[k].empty()) return refuse("collects values and never runs");
      const std::int64_t given = at(output_axes, k);
      const ValueId stacked = graph_.add_value(name + ".collected" + std::to_string(k));
      TAKT_RETURN_IF_ERROR(stack(stacked, rows[k], given < 0 ? given + type(rows[k][0]).shape.rank + 1 : given));
      values.push_back(stacked);
    }
    return values;
  }

  Scopes& scopes_;
  ir::Graph& graph_;
  const ControlNode& node_;
  const std::map<std::string, std::int64_t>& limits_;
  int count_ = 0;
};

}  // namespace

bool is_control(std::string_view domain, std::string_view op) {
  return (domain.empty() || domain == "ai.onnx") && (op == "If" || op == "Loop" || op == "Scan");
}

Status import_control(Scopes& scopes, const ControlNode& node, const std::map<std::string, std::int64_t>& limits) {
  const std::string place = "node " + printable(node.name) + " (" + node.proto.op_type() + ")";
  if (node.outputs.empty()) return fail(Code::kInput, place + ": has no outputs");
  Status done = Control(scopes, node, limits).run();
  if (done || done.error().message.compare(0, 5, "node ") == 0) return done;
  return fail(std::move(done).error().with_context(place));
}

}  // namespace takt::compiler
