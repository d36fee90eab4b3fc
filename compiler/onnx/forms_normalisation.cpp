// Normalisations: a mean, a variance and what is done with them.
#include "compiler/onnx/call.h"

namespace takt::compiler {
namespace {

Status batch_normalization(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
  if (call.node.integer("training_mode", 0) != 0) {
    return fail(Code::kInput, "training_mode is set; export the model for inference");
  }
  if (call.node.integer("spatial", 1) == 0) return fail(Code::kInput, "spatial = 0 is not supported");
  for (const char* key : {"momentum", "training_mode", "spatial"}) call.take(key);
  bool direct = call.type(0).shape.rank == 4 && call.type(0).dtype == DType::kF32;
  for (std::size_t i = 1; i < 5; ++i) direct = direct && call.has(i) && call.graph[call.node.inputs[i]].constant;
  if (direct || call.type(0).shape.rank < 2 || !call.has(4)) return call.emit();
  // Parameters of run time, other ranks and types: (x - mean) / sqrt(variance + epsilon) * scale + bias.
  const ir::Shape x = call.type(0).shape;
  Integers along(static_cast<std::size_t>(x.rank), 1);
  along[1] = x.dims[1];
  Steps steps(call);
  const auto laid = [&](std::size_t i) { return steps.reshape(call.node.inputs[i], along); };
  const ValueId variance = laid(4);
  const ValueId epsilon = steps.number_like(call.node.number("epsilon", 1e-5F), variance);
  const ValueId factor = steps("Div", {laid(1), steps("Sqrt", {steps("Add", {variance, epsilon})})});
  const ValueId centred = steps("Sub", {call.node.inputs[0], laid(3)});
  return steps.last("Add", {steps("Mul", {centred, factor}), laid(2)});
}

// (x - mean) * (1 / sqrt(variance + epsilon)) over some axes; the mean and the factor are results of
// LayerNormalization.
struct Normalised {
  ValueId value, mean, factor;
};
Normalised normalise(Steps& steps, ValueId x, const Integers& axes, float epsilon) {
  const std::map<std::string, ir::Attribute> over = {{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const ValueId average = steps("ReduceMean", {x}, over);
  const ValueId centred = steps("Sub", {x, average});
  const ValueId variance = steps("ReduceMean", {steps("Mul", {centred, centred})}, over);
  const ValueId deviation = steps("Sqrt", {steps("Add", {variance, steps.number_like(epsilon, variance)})});
  const ValueId factor = steps("Div", {steps.number_like(1, deviation), deviation});
  return {steps("Mul", {centred, factor}), average, factor};
}

Status layer_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  TAKT_ASSIGN(const int axis, ir::axis_of(call.node, "axis", -1, rank));
  if (call.node.integer("stash_type", 1) != 1) return fail(Code::kInput, "stash_type is not f32");
  if (!call.has(1)) return fail(Code::kInput, "expects X, scale, and bias or none");
  Steps steps(call);
  const Normalised n =
      normalise(steps, call.node.inputs[0], axes_between(axis, rank), call.node.number("epsilon", 1e-5F));
  if (call.has(2)) {
    TAKT_RETURN_IF_ERROR(steps.last("Add", {steps("Mul", {n.value, call.node.inputs[1]}), call.node.inputs[2]}));
  } else {
    TAKT_RETURN_IF_ERROR(steps.last("Mul", {n.value, call.node.inputs[1]}));
  }
  TAKT_RETURN_IF_ERROR(steps.output(1, "Identity", {n.mean}));
  return steps.output(2, "Identity", {n.factor});
}

// scale and bias, one for each channel, laid along dimension 1.
Status scaled_by_channel(Call& call, Steps& steps, ValueId value) {
  const ir::Shape x = call.type(0).shape;
  Integers along(static_cast<std::size_t>(x.rank), 1);
  along[1] = x.dims[1];
  const ValueId scale = steps.reshape(call.node.inputs[1], along);
  const ValueId bias = steps.reshape(call.node.inputs[2], along);
  return steps.last("Add", {steps("Mul", {value, scale}), bias});
}

Status instance_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  if (rank < 3 || !call.has(1) || !call.has(2)) return fail(Code::kInput, "expects [N,C,...], scale and bias");
  Steps steps(call);
  const Normalised n = normalise(steps, call.node.inputs[0], axes_between(2, rank), call.node.number("epsilon", 1e-5F));
  return scaled_by_channel(call, steps, n.value);
}

// Before operator set 21 scale and bias belonged to groups, since then to channels.
Status group_normalization(Call& call) {
  const ir::Shape x = call.type(0).shape;
  const std::int64_t groups = call.node.integer("num_groups", 0);
  if (x.rank < 3 || !call.has(1) || !call.has(2) || groups < 1 || x.dims[1] % groups != 0) {
    return fail(Code::kInput, "num_groups " + std::to_string(groups) + " does not fit " + to_string(x));
  }
  if (call.node.integer("stash_type", 1) != 1) return fail(Code::kInput, "stash_type is not f32");
  Steps steps(call);
  const Integers extents(x.dims, x.dims + x.rank);
  const ValueId split = steps.reshape(call.node.inputs[0], Integers{x.dims[0], groups, -1});
  const Normalised n = normalise(steps, split, {2}, call.node.number("epsilon", 1e-5F));
  if (call.opset >= 21) return scaled_by_channel(call, steps, steps.reshape(n.value, extents));
  const ValueId scale = steps.reshape(call.node.inputs[1], Integers{groups, 1});
  const ValueId bias = steps.reshape(call.node.inputs[2], Integers{groups, 1});
  return steps.last_reshape(steps("Add", {steps("Mul", {n.value, scale}), bias}), extents);
}

Status mean_variance_normalization(Call& call) {
  Integers axes = call.node.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  const std::map<std::string, ir::Attribute> over = {{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const ValueId average = steps("ReduceMean", {x}, over);
  const ValueId squares = steps("ReduceMean", {steps("Mul", {x, x})}, over);
  const ValueId deviation = steps("Sqrt", {steps("Sub", {squares, steps("Mul", {average, average})})});
  // The specification's guard against a deviation of 0.
  return steps.last("Div",
                    {steps("Sub", {x, average}), steps("Add", {deviation, steps.number_like(1e-9F, deviation)})});
}

// x / sqrt(mean of squares + epsilon) * scale.
Status rms_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  TAKT_ASSIGN(const int axis, ir::axis_of(call.node, "axis", -1, rank));
  if (call.node.integer("stash_type", 1) != 1) return fail(Code::kInput, "stash_type is not f32");
  if (!call.has(1)) return fail(Code::kInput, "expects X and scale");
  const ValueId x = call.node.inputs[0];
  Steps steps(call);
  const ValueId squares =
      steps("ReduceMean", {steps("Mul", {x, x})}, {{"axes", axes_between(axis, rank)}, {"keepdims", std::int64_t{1}}});
  const ValueId epsilon = steps.number_like(call.node.number("epsilon", 1e-5F), squares);
  const ValueId root = steps("Sqrt", {steps("Add", {squares, epsilon})});
  return steps.last("Mul", {steps("Div", {x, root}), call.node.inputs[1]});
}

// x / its norm along an axis.
Status lp_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  TAKT_ASSIGN(const int axis, ir::axis_of(call.node, "axis", -1, rank));
  const std::int64_t p = call.node.integer("p", 2);
  if (p != 1 && p != 2) return fail(Code::kInput, "attribute p is " + std::to_string(p) + ", expected 1 or 2");
  const ValueId x = call.node.inputs[0];
  const std::map<std::string, ir::Attribute> over = {{"axes", Integers{axis}}, {"keepdims", std::int64_t{1}}};
  Steps steps(call);
  if (p == 1) return steps.last("Div", {x, steps("ReduceSum", {steps("Abs", {x})}, over)});
  return steps.last("Div", {x, steps("Sqrt", {steps("ReduceSum", {steps("Mul", {x, x})}, over)})});
}

constexpr Form kForms[] = {
    {"BatchNormalization", "epsilon:f is_test:i momentum:f spatial:i training_mode:i", batch_normalization},
    {"GroupNormalization", "epsilon:f num_groups:i stash_type:i", group_normalization},
    {"InstanceNormalization", "epsilon:f", instance_normalization},
    {"LayerNormalization", "axis:i epsilon:f stash_type:i", layer_normalization, 3},
    {"LpNormalization", "axis:i p:i", lp_normalization},
    {"MeanVarianceNormalization", "axes:I", mean_variance_normalization},
    {"RMSNormalization", "axis:i epsilon:f stash_type:i", rms_normalization},
};

}  // namespace

std::span<const Form> normalisation_forms() { return kForms; }

}  // namespace takt::compiler
