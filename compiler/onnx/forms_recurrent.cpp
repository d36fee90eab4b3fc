// Recurrent cells.
#include "compiler/onnx/call.h"

namespace takt::compiler {
namespace {

// The states of all times and the last ones lie in one result of takt.Recurrent; the outputs are parts of it.
Status recurrent(Call& call) {
  const std::string cell = call.node.op;
  const std::size_t most = cell == "LSTM" ? 8 : 6;
  if (!call.has(1) || !call.has(2) || call.type(0).shape.rank != 3)
    return fail(Code::kInput, "expects X [T,B,I], W and R");
  if (call.node.inputs.size() > most) return fail(Code::kInput, "has too many inputs");
  const bool batch_first = call.node.integer("layout", 0) != 0;
  std::vector<ValueId> in = call.node.inputs;
  in.resize(8, kNoValue);
  Steps steps(call);
  if (batch_first) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{5}, std::size_t{6}}) {
      if (in[i] == kNoValue) continue;
      if (steps.shape(in[i]).rank != 3) return fail(Code::kInput, "an initial state has another rank than 3");
      in[i] = steps.transpose(in[i], {1, 0, 2});
    }
  }
  std::map<std::string, ir::Attribute> attributes = call.node.attributes;
  for (const char* key : {"layout", "hidden_size", "output_sequence"}) attributes.erase(key);
  attributes["cell"] = cell;
  const ValueId all = steps("takt.Recurrent", in, std::move(attributes));
  TAKT_RETURN_IF_ERROR(steps.status());
  const ir::Shape shape = steps.shape(all);
  const std::int64_t times = call.graph[in[0]].type->shape.dims[0];
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    return steps("Slice", {all, steps.list(Integers{first}), steps.list(Integers{last}), steps.list(Integers{0})});
  };
  const auto last = [&](std::int64_t row) {
    const ValueId state = steps.reshape(rows(row, row + 1), Integers{shape.dims[1], shape.dims[2], shape.dims[3]});
    return batch_first ? steps.transpose(state, {1, 0, 2}) : state;
  };
  const auto wants = [&](std::size_t i) { return i < call.node.outputs.size(); };
  const ValueId sequence = batch_first ? steps.transpose(rows(0, times), {2, 0, 1, 3}) : rows(0, times);
  TAKT_RETURN_IF_ERROR(steps.last("Identity", {sequence}));
  if (wants(1)) TAKT_RETURN_IF_ERROR(steps.output(1, "Identity", {last(times)}));
  if (wants(2)) TAKT_RETURN_IF_ERROR(steps.output(2, "Identity", {last(times + 1)}));
  return {};
}

constexpr std::string_view kCell =
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i output_sequence:i";

constexpr Form kForms[] = {
    {"GRU",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i "
     "linear_before_reset:i output_sequence:i",
     recurrent, 2},
    {"LSTM",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i layout:i "
     "output_sequence:i",
     recurrent, 3},
    {"RNN", kCell, recurrent, 2},
};

}  // namespace

std::span<const Form> recurrent_forms() { return kForms; }

}  // namespace takt::compiler
