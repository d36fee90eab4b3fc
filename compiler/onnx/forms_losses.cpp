// Losses, as models carry them that were exported with their training head.
#include "compiler/onnx/call.h"

namespace takt::compiler {
namespace {

// The loss of each element and its weight: -scores[target] * weight[target], 0 where the target is to be ignored.
Status negative_log_likelihood(Call& call, Steps& steps, ValueId scores) {
  const ValueId target = call.node.inputs[1];
  const ir::Shape shape = steps.shape(target);
  const bool weighted = call.has(2);
  const bool ignores = call.node.attributes.count("ignore_index") != 0;
  const DType whole = call.type(1).dtype;
  if (whole != DType::kI64 && whole != DType::kI32) return fail(Code::kInput, "expects whole numbers as target");
  ValueId valid = kNoValue;
  ValueId index = target;
  if (ignores) {
    Constant number = Constant::allocate(whole, ir::Shape{});
    const std::int64_t ignored = call.node.integer("ignore_index", 0);
    kernels::reference::cast(Constant::of(std::span(&ignored, 1)).tensor(), number.tensor());
    valid = steps("Not", {steps("Equal", {target, call.constant("ignored", std::move(number))})});
    index = steps("Where", {valid, target, steps.number(0, whole)});
  }
  Integers with_class = {shape.rank > 0 ? shape.dims[0] : 1, 1};
  for (int d = 1; d < shape.rank; ++d) with_class.push_back(shape.dims[d]);
  const ValueId picked =
      steps("GatherElements", {scores, steps.reshape(index, with_class)}, {{"axis", std::int64_t{1}}});
  ValueId loss = steps("Neg", {steps.reshape(picked, Integers(shape.dims, shape.dims + shape.rank))});
  ValueId weight = weighted ? steps("Gather", {call.node.inputs[2], index}, {{"axis", std::int64_t{0}}}) : kNoValue;
  if (ignores) {
    const ValueId one = weighted ? weight : steps.number_like(1, scores);
    weight = steps("Where", {valid, one, steps.number_like(0, scores)});
  }
  if (weight != kNoValue) loss = steps("Mul", {loss, weight});
  const std::string reduction = call.node.text("reduction", "mean");
  const std::map<std::string, ir::Attribute> all = {{"keepdims", std::int64_t{0}}};
  if (reduction == "none") return steps.last("Identity", {loss});
  if (reduction == "sum") return steps.last("ReduceSum", {loss}, all);
  if (reduction != "mean") return fail(Code::kInput, "attribute reduction is \"" + ir::printable(reduction) + "\"");
  if (weight == kNoValue) return steps.last("ReduceMean", {loss}, all);
  return steps.last("Div", {steps("ReduceSum", {loss}, all), steps("ReduceSum", {weight}, all)});
}

Status expect_scores(const Call& call) {
  if (call.has(1) && call.type(0).shape.rank >= 2 && call.type(1).shape.rank == call.type(0).shape.rank - 1) return {};
  return fail(Code::kInput, "expects scores [N,C,...] and a target [N,...]");
}

Status nll_loss(Call& call) {
  TAKT_RETURN_IF_ERROR(expect_scores(call));
  Steps steps(call);
  return negative_log_likelihood(call, steps, call.node.inputs[0]);
}

Status softmax_cross_entropy_loss(Call& call) {
  TAKT_RETURN_IF_ERROR(expect_scores(call));
  Steps steps(call);
  const ValueId logarithms = steps("LogSoftmax", {call.node.inputs[0]}, {{"axis", std::int64_t{1}}});
  TAKT_RETURN_IF_ERROR(negative_log_likelihood(call, steps, logarithms));
  return steps.output(1, "Identity", {logarithms});
}

constexpr Form kForms[] = {
    {"NegativeLogLikelihoodLoss", "ignore_index:i reduction:s", nll_loss},
    {"SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s", softmax_cross_entropy_loss, 2},
};

}  // namespace

std::span<const Form> loss_forms() { return kForms; }

}  // namespace takt::compiler
