// Windows, sampling, matrices, recurrent cells and quantisation: attributes to the parameters of the generic kernel.
#include <algorithm>

#include "compiler/ir/generic.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"

namespace takt::ir {
namespace {

using kernels::reference::Cell;
using kernels::reference::Direction;
using kernels::reference::Gate;
using kernels::reference::Generic;
using kernels::reference::GenericParams;
using kernels::reference::Interpolation;
using kernels::reference::kBehindWindow;
using kernels::reference::kDilation;
using kernels::reference::kKernel;
using kernels::reference::kMostSpatial;
using kernels::reference::kPadAfter;
using kernels::reference::kPadBefore;
using kernels::reference::kStride;
using kernels::reference::Outside;
using kernels::reference::Pool;

// One of a few names; an error that names the attribute.
template <class Value, std::size_t n>
Result<std::int64_t> one_of(const Node& node, std::string_view key, std::string_view otherwise,
                            const std::pair<std::string_view, Value> (&names)[n]) {
  const std::string wanted = node.text(key, otherwise);
  for (const auto& [name, value] : names) {
    if (name == wanted) return static_cast<std::int64_t>(value);
  }
  return fail(Code::kInput, "attribute " + std::string(key) + " is \"" + printable(wanted) + "\"");
}

// A list of exactly `count` numbers at integers[at].
Status put(const Node& node, std::string_view key, int count, int at, GenericParams* p) {
  const std::vector<std::int64_t> values = node.integers(key);
  if (static_cast<int>(values.size()) != count) {
    return fail(Code::kInput, "attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                                  " values, expected " + std::to_string(count));
  }
  std::copy(values.begin(), values.end(), p->integers + at);
  return {};
}

// Settled windows: strides, dilations and pads for every dimension, nothing implied.
Status put_window(const Node& node, int rank, GenericParams* p) {
  const int spatial = rank - 2;
  if (spatial < 1 || spatial > kMostSpatial) {
    return fail(Code::kInput, "expects images of one to three dimensions, found rank " + std::to_string(rank));
  }
  TAKT_RETURN_IF_ERROR(put(node, "strides", spatial, kStride, p));
  TAKT_RETURN_IF_ERROR(put(node, "dilations", spatial, kDilation, p));
  const std::vector<std::int64_t> pads = node.integers("pads");
  if (static_cast<int>(pads.size()) != 2 * spatial) return fail(Code::kInput, "attribute pads has another length");
  std::copy_n(pads.begin(), spatial, p->integers + kPadBefore);
  std::copy_n(pads.begin() + spatial, spatial, p->integers + kPadAfter);
  return {};
}

Status encode_conv(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kConv;
  if (node.text("activation", "none") != "none" || node.inputs.size() > 3) {
    return fail(Code::kInput, "a fused convolution whose weights are not constant");
  }
  p->integers[kBehindWindow] = node.integer("group", 1);
  return put_window(node, rank, p);
}

Status encode_conv_transpose(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kConvTranspose;
  p->integers[kBehindWindow] = node.integer("group", 1);
  TAKT_RETURN_IF_ERROR(put_window(node, rank, p));
  return put(node, "output_padding", rank - 2, kBehindWindow + 1, p);
}

Status encode_pool(const Node& node, int rank, GenericParams* p) {
  static constexpr std::pair<std::string_view, Pool> kKinds[] = {{"max", Pool::kMax},
                                                                 {"max_indices", Pool::kMaxIndices},
                                                                 {"average", Pool::kAverage},
                                                                 {"average_with_padding", Pool::kAverageWithPadding},
                                                                 {"lp", Pool::kLp}};
  p->op = Generic::kPool;
  TAKT_RETURN_IF_ERROR(put_window(node, rank, p));
  TAKT_RETURN_IF_ERROR(put(node, "kernel_shape", rank - 2, kKernel, p));
  TAKT_ASSIGN(p->integers[kBehindWindow], one_of(node, "kind", "", kKinds));
  p->integers[kBehindWindow + 1] = node.integer("ceil_mode", 0) != 0 ? 1 : 0;
  p->integers[kBehindWindow + 2] = node.integer("storage_order", 0) != 0 ? 1 : 0;
  p->integers[kBehindWindow + 3] = node.integer("p", 2);
  return {};
}

Status encode_lrn(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kLrn;
  p->integers[0] = node.integer("size", 0);
  p->numbers[0] = node.number("alpha", 0.0001F);
  p->numbers[1] = node.number("beta", 0.75F);
  p->numbers[2] = node.number("bias", 1);
  return {};
}

Status encode_resample(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kResample;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  p->numbers[0] = node.number("outside", 0);
  return {};
}

// Before operator set 20 linear and cubic were called bilinear and bicubic.
Status encode_grid_sample(const Node& node, int /*rank*/, GenericParams* p) {
  static constexpr std::pair<std::string_view, Interpolation> kModes[] = {{"nearest", Interpolation::kNearest},
                                                                          {"linear", Interpolation::kLinear},
                                                                          {"bilinear", Interpolation::kLinear},
                                                                          {"cubic", Interpolation::kCubic},
                                                                          {"bicubic", Interpolation::kCubic}};
  static constexpr std::pair<std::string_view, Outside> kOutside[] = {
      {"zeros", Outside::kZeros}, {"border", Outside::kBorder}, {"reflection", Outside::kReflection}};
  p->op = Generic::kGridSample;
  TAKT_ASSIGN(p->integers[0], one_of(node, "mode", "bilinear", kModes));
  TAKT_ASSIGN(p->integers[1], one_of(node, "padding_mode", "zeros", kOutside));
  p->integers[2] = node.integer("align_corners", 0) != 0 ? 1 : 0;
  return {};
}

Status encode_roi_align(const Node& node, int /*rank*/, GenericParams* p) {
  static constexpr std::pair<std::string_view, int> kModes[] = {{"avg", 0}, {"max", 1}};
  static constexpr std::pair<std::string_view, int> kShifts[] = {{"output_half_pixel", 0}, {"half_pixel", 1}};
  p->op = Generic::kRoiAlign;
  p->integers[0] = node.integer("output_height", 1);
  p->integers[1] = node.integer("output_width", 1);
  p->integers[2] = node.integer("sampling_ratio", 0);
  TAKT_ASSIGN(p->integers[3], one_of(node, "mode", "avg", kModes));
  TAKT_ASSIGN(p->integers[4], one_of(node, "coordinate_transformation_mode", "half_pixel", kShifts));
  p->numbers[0] = node.number("spatial_scale", 1);
  return {};
}

Status encode_det(const Node& /*node*/, int /*rank*/, GenericParams* p) {
  p->op = Generic::kDet;
  return {};
}

Status encode_max_unpool(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kMaxUnpool;
  p->integers[0] = rank;
  return put(node, "shape", rank, 1, p);
}

Status encode_quantize(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kQuantize;
  TAKT_ASSIGN(const DType to, element_type_of(node, "to"));
  if (rank > 0) {
    TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  }
  p->integers[1] = static_cast<std::int64_t>(to);
  return {};
}

Status encode_dequantize(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kDequantize;
  if (rank > 0) {
    TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  }
  return {};
}

// ONNX's activation names with their default constants.
struct Activation {
  std::string_view name;
  Gate gate;
  float alpha, beta;
};
constexpr Activation kActivations[] = {
    {"Sigmoid", Gate::kSigmoid, 0, 0},
    {"Tanh", Gate::kTanh, 0, 0},
    {"Relu", Gate::kRelu, 0, 0},
    {"Affine", Gate::kAffine, 1, 0},
    {"LeakyRelu", Gate::kLeakyRelu, 0.01F, 0},
    {"ThresholdedRelu", Gate::kThresholdedRelu, 1, 0},
    {"ScaledTanh", Gate::kScaledTanh, 1, 1},
    {"HardSigmoid", Gate::kHardSigmoid, 0.2F, 0.5F},
    {"Elu", Gate::kElu, 1, 0},
    {"Softsign", Gate::kSoftsign, 0, 0},
    {"Softplus", Gate::kSoftplus, 0, 0},
};

// "activations" has one name for each gate function of each direction, "activation_alpha" and "activation_beta" a
// number for each of those that take one, in the same order.
Status put_activations(const Node& node, int functions, int directions, GenericParams* p) {
  std::vector<std::string> names;
  if (const auto found = node.attributes.find("activations"); found != node.attributes.end()) {
    if (const auto* given = std::get_if<std::vector<std::string>>(&found->second)) names = *given;
  }
  const std::vector<float> alphas = node.numbers("activation_alpha"), betas = node.numbers("activation_beta");
  std::size_t alpha = 0, beta = 0;
  if (!names.empty() && static_cast<int>(names.size()) != functions * directions) {
    return fail(Code::kInput, "attribute activations has " + std::to_string(names.size()) + " values");
  }
  for (int d = 0; d < directions; ++d) {
    for (int f = 0; f < functions; ++f) {
      const std::string_view fallback = functions > 1 && f == 0 ? "Sigmoid" : "Tanh";
      const std::string name =
          names.empty()
              ? std::string(fallback)
              : names[static_cast<std::size_t>(d) * static_cast<std::size_t>(functions) + static_cast<std::size_t>(f)];
      const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                       [&](const Activation& a) { return a.name == name; });
      if (found == std::end(kActivations))
        return fail(Code::kInput, "activation \"" + printable(name) + "\" is unknown");
      const int at = d * 3 + f;
      const bool takes_beta =
          found->gate == Gate::kAffine || found->gate == Gate::kScaledTanh || found->gate == Gate::kHardSigmoid;
      const bool takes_alpha = takes_beta || found->gate == Gate::kLeakyRelu || found->gate == Gate::kThresholdedRelu ||
                               found->gate == Gate::kElu;
      p->integers[2 + at] = static_cast<std::int64_t>(found->gate);
      p->numbers[1 + 2 * at] = takes_alpha && alpha < alphas.size() ? alphas[alpha++] : found->alpha;
      p->numbers[2 + 2 * at] = takes_beta && beta < betas.size() ? betas[beta++] : found->beta;
    }
  }
  return {};
}

Status encode_recurrent(const Node& node, int /*rank*/, GenericParams* p) {
  static constexpr std::pair<std::string_view, Cell> kCells[] = {
      {"RNN", Cell::kRnn}, {"LSTM", Cell::kLstm}, {"GRU", Cell::kGru}};
  static constexpr std::pair<std::string_view, Direction> kDirections[] = {
      {"forward", Direction::kForward}, {"reverse", Direction::kReverse}, {"bidirectional", Direction::kBoth}};
  p->op = Generic::kRecurrent;
  TAKT_ASSIGN(p->integers[0], one_of(node, "cell", "", kCells));
  TAKT_ASSIGN(p->integers[1], one_of(node, "direction", "forward", kDirections));
  const auto cell = static_cast<Cell>(p->integers[0]);
  const bool both = static_cast<Direction>(p->integers[1]) == Direction::kBoth;
  const int functions = cell == Cell::kRnn ? 1 : cell == Cell::kLstm ? 3 : 2;
  TAKT_RETURN_IF_ERROR(put_activations(node, functions, both ? 2 : 1, p));
  p->integers[8] = node.integer("linear_before_reset", 0) != 0 ? 1 : 0;
  p->integers[9] = node.integer("input_forget", 0) != 0 ? 1 : 0;
  p->numbers[0] = node.number("clip", 0);
  return {};
}

std::uint64_t no_flops(const OperatorInputs& /*in*/, std::span<const Type> /*out*/) { return 0; }
std::uint64_t conv_flops(const OperatorInputs& in, std::span<const Type> out) {
  const Shape& w = in.shape(1);
  return w.dims[0] == 0 ? 0 : 2 * elements_of(out[0]) * static_cast<std::uint64_t>(w.elements() / w.dims[0]);
}
std::uint64_t conv_transpose_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  const Shape& w = in.shape(1);
  return w.dims[0] == 0 ? 0 : 2 * elements_of(in.type(0)) * static_cast<std::uint64_t>(w.elements() / w.dims[0]);
}
std::uint64_t pool_flops(const OperatorInputs& in, std::span<const Type> out) {
  std::uint64_t taps = 1;
  for (const std::int64_t extent : in.node.integers("kernel_shape")) taps *= static_cast<std::uint64_t>(extent);
  return elements_of(out[0]) * std::min(taps, std::uint64_t{1} << 32);  // beyond, the product would not fit
}
std::uint64_t lrn_flops(const OperatorInputs& in, std::span<const Type> out) {
  return elements_of(out[0]) * (40 + 2 * static_cast<std::uint64_t>(in.node.integer("size", 1)));
}
std::uint64_t resample_flops(const OperatorInputs& in, std::span<const Type> out) {
  return 2 * elements_of(out[0]) * static_cast<std::uint64_t>(in.shape(1).dims[1]);
}
std::uint64_t grid_flops(const OperatorInputs& in, std::span<const Type> out) {
  return elements_of(out[0]) * (in.node.text("mode", "").find("cubic") != std::string::npos ? 80 : 20);
}
std::uint64_t roi_flops(const OperatorInputs& in, std::span<const Type> out) {
  const std::int64_t samples = std::clamp<std::int64_t>(in.node.integer("sampling_ratio", 0), 2, 1024);
  return 20 * elements_of(out[0]) * static_cast<std::uint64_t>(samples * samples);
}
std::uint64_t det_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  return elements_of(in.type(0)) * static_cast<std::uint64_t>(in.shape(0).dims[in.shape(0).rank - 1]);
}
std::uint64_t two_each(const OperatorInputs& /*in*/, std::span<const Type> out) { return 2 * elements_of(out[0]); }
std::uint64_t recurrent_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  const auto steps = static_cast<std::uint64_t>(in.shape(0).dims[0] * in.shape(0).dims[1]);
  return 2 * steps * (elements_of(in.type(1)) + elements_of(in.type(2)));
}

constexpr GenericForm kForms[] = {
    {"Conv", kNotImported, 2, 3, encode_conv, nullptr},
    {"ConvTranspose", kNotImported, 2, 3, encode_conv_transpose, nullptr},
    {"DequantizeLinear", kNotImported, 2, 3, encode_dequantize, two_each},
    {"Det", "", 1, 1, encode_det, det_flops},
    {"GridSample", "align_corners:i mode:s padding_mode:s", 2, 2, encode_grid_sample, grid_flops},
    {"LRN", "alpha:f beta:f bias:f size:i", 1, 1, encode_lrn, lrn_flops},
    {"QuantizeLinear", kNotImported, 2, 3, encode_quantize, two_each},
    {"RoiAlign", kNotImported, 3, 3, encode_roi_align, roi_flops},
    {"takt.ConvNd", kNotImported, 2, 3, encode_conv, conv_flops},
    {"takt.ConvTransposeNd", kNotImported, 2, 3, encode_conv_transpose, conv_transpose_flops},
    {"takt.MaxUnpool", kNotImported, 2, 2, encode_max_unpool, no_flops},
    {"takt.PoolNd", kNotImported, 1, 1, encode_pool, pool_flops},
    {"takt.Recurrent", kNotImported, 3, 8, encode_recurrent, recurrent_flops},
    {"takt.Resample", kNotImported, 3, 3, encode_resample, resample_flops},
};

}  // namespace

std::span<const GenericForm> image_forms() { return kForms; }

}  // namespace takt::ir
