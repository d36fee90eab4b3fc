// Random graphs over all operators that have a kernel: odd channel counts, residuals, concats of concats, splits, moves
// between layouts. The same graph for the same seed on every machine.
#pragma once

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/operators.h"

namespace takt::test {

class RandomNet {
 public:
  explicit RandomNet(std::uint32_t seed) : engine_(seed) {
    graph_.name = "random" + std::to_string(seed);
    const int inputs = range(1, 2);
    for (int i = 0; i < inputs; ++i) {
      ir::Type type;
      type.shape = {4, {range(0, 4) == 0 ? 2 : 1, range(0, 3) == 0 ? 3 : range(1, 40), range(1, 9), range(1, 9)}};
      const ir::ValueId id = graph_.add_value("x" + std::to_string(i), type);
      graph_.inputs.push_back(id);
      values_.push_back(id);
    }
  }

  // One more node; may do nothing where the dice name an operator that does not fit.
  void grow() {
    const ir::ValueId x = values_[static_cast<std::size_t>(range(0, static_cast<int>(values_.size()) - 1))];
    const kernels::Shape s = graph_[x].type->shape;
    if (s.rank != 4) {
      grow_flat(x, s);
      return;
    }
    const std::int64_t c = s.dims[1], h = s.dims[2], w = s.dims[3];
    switch (range(0, 21)) {
      case 0:
      case 1:
      case 2: conv(x, s, 1, range(1, 36)); break;
      case 3: conv(x, s, c, c); break;
      case 4: conv(x, s, c % 2 == 0 ? 2 : c % 3 == 0 ? 3 : 1, 6 * range(1, 4)); break;
      case 5: unary(x); break;
      case 6:
      case 7: binary(x, s); break;
      case 8: concat(x, s, 1); break;
      case 9: concat(x, s, range(0, 3)); break;
      case 10: split(x, s); break;
      case 11: slice(x, s); break;
      case 12: {
        const std::int64_t kernel = range(1, 3);
        if (h < kernel || w < kernel) break;
        add(range(0, 1) == 0 ? "MaxPool" : "AveragePool", {x},
            {{"kernel_shape", ints({kernel, kernel})},
             {"strides", ints({range(1, 2), range(1, 2)})},
             {"pads", ints({range(0, static_cast<int>(kernel) - 1), 0, 0, range(0, static_cast<int>(kernel) - 1)})},
             {"ceil_mode", std::int64_t{range(0, 1)}}});
        break;
      }
      case 13: add("GlobalAveragePool", {x}, {}); break;
      case 14: {
        if (h > 16 || w > 16) break;
        const std::vector<float> scales = {1, 1, range(0, 1) == 0 ? 2.0F : 1.5F, 2.0F};
        add("Resize", {x, ir::kNoValue, graph_.add_constant(name(), ir::Constant::of(scales, kernels::Shape{1, {4}}))},
            {{"mode", std::string(range(0, 1) == 0 ? "nearest" : "linear")},
             {"coordinate_transformation_mode", std::string(range(0, 1) == 0 ? "half_pixel" : "asymmetric")},
             {"nearest_mode", std::string("floor")}});
        break;
      }
      case 15: {
        const std::vector<std::int64_t> pads = {0,           0, range(0, 1), range(0, 2), 0, range(0, 4) == 0 ? 1 : 0,
                                                range(0, 1), 0};
        add("Pad", {x, constant(ir::Constant::of(pads)), constant(ir::Constant::scalar(0.5F))},
            {{"mode", std::string("constant")}});
        break;
      }
      case 16: {
        std::vector<std::int64_t> channels(static_cast<std::size_t>(range(1, 20)));
        for (std::int64_t& channel : channels) channel = range(0, static_cast<int>(c) - 1);
        add("takt.ChannelGather", {x}, {{"channels", channels}});
        break;
      }
      case 17: add("Softmax", {x}, {{"axis", std::int64_t{range(0, 3)}}}); break;
      case 18: {
        std::vector<std::int64_t> perm = {0, 1, 2, 3};
        std::shuffle(perm.begin(), perm.end(), engine_);
        add("Transpose", {x}, {{"perm", perm}});
        break;
      }
      case 19: {
        const std::int64_t total = s.elements() / s.dims[0];
        add("Reshape",
            {x, constant(ir::Constant::of(range(0, 1) == 0 ? std::vector<std::int64_t>{s.dims[0], total}
                                                           : std::vector<std::int64_t>{s.dims[0], h, c, w}))},
            {});
        break;
      }
      case 20:
        add("ReduceMean", {x},
            {{"axes", range(0, 1) == 0 ? ints({2, 3}) : ints({range(1, 3)})}, {"keepdims", std::int64_t{range(0, 1)}}});
        break;
      default: batch_normalization(x, c); break;
    }
  }

  // Two branches of `nodes` nodes each, maybe with a branch inside, under a condition that is an input of its own; what
  // they make meets in a takt.Select.
  void branch(int nodes, int depth = 2) {
    const ir::ValueId x = values_[static_cast<std::size_t>(range(0, static_cast<int>(values_.size()) - 1))];
    const ir::ValueId condition = graph_.add_value(name(), ir::Type{ir::DType::kBool, kernels::Shape{}});
    graph_.inputs.push_back(condition);
    const std::vector<ir::ValueId> outside = values_;
    const int around = guard_;
    std::vector<ir::ValueId> select = {condition};
    for (const bool when : {true, false}) {
      graph_.guards.push_back({condition, when, around});
      guard_ = static_cast<int>(graph_.guards.size()) - 1;
      for (int i = 0; i < nodes; ++i) grow();
      if (depth > 0 && range(0, 2) == 0) branch(nodes / 2, depth - 1);
      const ir::ValueId last = values_.back();
      const ir::ValueId all = add("Reshape", {last, constant(ir::Constant::of(ints({-1})))}, {})[0];
      const ir::ValueId mean = add("ReduceMean", {all}, {{"axes", ints({0})}, {"keepdims", std::int64_t{1}}})[0];
      select.push_back(range(0, 5) == 0 ? x : add("Add", {x, mean}, {})[0]);
      values_ = outside;
    }
    guard_ = around;
    add("takt.Select", select, {});
  }

  ir::Graph finish() {
    const auto consumers = graph_.consumers();
    for (const ir::ValueId value : values_) {
      const bool unused = consumers[static_cast<std::size_t>(value)].empty();
      if (graph_[value].constant == nullptr && (unused || range(0, 9) == 0)) graph_.outputs.push_back(value);
    }
    const Status valid = ir::verify(graph_);
    EXPECT_TRUE(valid) << valid.error().message;
    return graph_;
  }

  // Values for the inputs.
  std::vector<ir::Constant> inputs() {
    std::vector<ir::Constant> out;
    for (const ir::ValueId id : graph_.inputs) {
      if (graph_[id].type->dtype == ir::DType::kBool) {
        out.push_back(ir::Constant::allocate(ir::DType::kBool, graph_[id].type->shape));
        out.back().bytes[0] = std::byte{range(0, 1) == 1};
      } else {
        out.push_back(random(graph_[id].type->shape, 1));
      }
    }
    return out;
  }

 private:
  using Attributes = std::map<std::string, ir::Attribute>;

  int range(int low, int high) { return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1)); }
  static std::vector<std::int64_t> ints(std::initializer_list<std::int64_t> list) { return list; }
  std::string name() { return "v" + std::to_string(count_++); }
  ir::ValueId constant(ir::Constant value) { return graph_.add_constant(name(), std::move(value)); }
  ir::Constant random(const kernels::Shape& shape, float scale) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& v : values) v = scale * (static_cast<float>(engine_() % 2001) - 1000.0F) / 1000.0F;
    return ir::Constant::of(values, shape);
  }

  std::vector<ir::ValueId> add(const std::string& op, std::vector<ir::ValueId> inputs, Attributes attributes,
                               int outputs = 1) {
    ir::Node node;
    node.op = op;
    node.name = op + std::to_string(count_);
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    node.guard = guard_;
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(graph_.add_value(name()));
    const std::vector<ir::ValueId> results = node.outputs;
    const Status added = ir::append(graph_, std::move(node));
    EXPECT_TRUE(added) << op << ": " << added.error().message;
    if (added) values_.insert(values_.end(), results.begin(), results.end());
    return results;
  }

  void conv(ir::ValueId x, const kernels::Shape& s, std::int64_t group, std::int64_t out) {
    if (out % group != 0 || s.dims[1] % group != 0) return;
    const std::int64_t kh = range(1, 3), kw = range(0, 2) == 0 ? range(1, 3) : kh, stride = range(1, 2);
    const std::int64_t dilation = range(0, 5) == 0 ? 2 : 1;
    const std::int64_t ph = range(0, static_cast<int>(kh) - 1), pw = range(0, static_cast<int>(kw) - 1);
    if (s.dims[2] + 2 * ph < (kh - 1) * dilation + 1 || s.dims[3] + 2 * pw < (kw - 1) * dilation + 1) return;
    static const char* const kActivations[] = {"none", "relu", "clip", "leaky", "sigmoid", "hardswish", "silu"};
    const auto fan_in = static_cast<float>(s.dims[1] / group * kh * kw);
    std::vector<ir::ValueId> inputs = {x,
                                       constant(random({4, {out, s.dims[1] / group, kh, kw}}, 2 / std::sqrt(fan_in))),
                                       range(0, 3) == 0 ? ir::kNoValue : constant(random({1, {out}}, 1))};
    Attributes attributes = {{"group", group},
                             {"strides", ints({stride, stride})},
                             {"dilations", ints({dilation, dilation})},
                             {"pads", ints({ph, pw, ph, pw})},
                             {"activation", std::string(kActivations[range(0, 6)])},
                             {"alpha", range(0, 1) == 0 ? 0.0F : -0.25F},
                             {"beta", 1.5F}};
    const std::int64_t oh = (s.dims[2] + 2 * ph - (kh - 1) * dilation - 1) / stride + 1;
    const std::int64_t ow = (s.dims[3] + 2 * pw - (kw - 1) * dilation - 1) / stride + 1;
    for (const ir::ValueId other : values_) {
      if (range(0, 2) == 0 && graph_[other].type->shape == kernels::Shape{4, {s.dims[0], out, oh, ow}}) {
        inputs.push_back(other);
        break;
      }
    }
    add("Conv", inputs, attributes);
  }

  void unary(ir::ValueId x) {
    switch (range(0, 10)) {
      case 0: add("Relu", {x}, {}); break;
      case 1: add("LeakyRelu", {x}, {{"alpha", 0.1F}}); break;
      case 2: add("Clip", {x, constant(ir::Constant::scalar(-0.5F)), constant(ir::Constant::scalar(0.75F))}, {}); break;
      case 3: add("Sigmoid", {x}, {}); break;
      case 4: add("HardSigmoid", {x}, {}); break;
      case 5: add("HardSwish", {x}, {}); break;
      case 6: add("Tanh", {x}, {}); break;
      case 7: add("Exp", add("Clip", {x, ir::kNoValue, constant(ir::Constant::scalar(2))}, {}), {}); break;
      case 8: add("Abs", {x}, {}); break;
      case 9: add("Sqrt", add("Abs", {x}, {}), {}); break;
      default: add("Neg", {x}, {}); break;
    }
  }

  void binary(ir::ValueId x, const kernels::Shape& s) {
    static const char* const kOps[] = {"Add", "Sub", "Mul", "Min", "Max"};
    const char* op = kOps[range(0, 4)];
    ir::ValueId other = ir::kNoValue;
    switch (range(0, 4)) {
      case 0: other = constant(random({4, {1, s.dims[1], 1, 1}}, 1)); break;
      case 1: other = constant(ir::Constant::scalar(0.3F)); break;
      case 2: other = add("GlobalAveragePool", {x}, {})[0]; break;
      case 3: other = constant(random({3, {s.dims[1], s.dims[2], 1}}, 1)); break;
      default:
        for (const ir::ValueId v : values_) {
          if (graph_[v].type->shape == s) other = v;
        }
    }
    if (range(0, 3) == 0) std::swap(x, other);
    add(op, {x, other}, {});
  }

  void concat(ir::ValueId x, const kernels::Shape& s, int axis) {
    std::vector<ir::ValueId> parts = {x};
    for (const ir::ValueId v : values_) {
      kernels::Shape t = graph_[v].type->shape;
      if (t.rank != 4) continue;
      t.dims[axis] = s.dims[axis];
      if (t == s && parts.size() < 4 && range(0, 2) != 0) parts.push_back(v);
    }
    std::int64_t extent = 0;
    for (const ir::ValueId v : parts) extent += graph_[v].type->shape.dims[axis];
    if (extent < 100) add("Concat", parts, {{"axis", std::int64_t{axis}}});
  }

  void split(ir::ValueId x, const kernels::Shape& s) {
    const int axis = range(0, 2) == 0 ? range(0, 3) : 1;
    if (s.dims[axis] < 2) return;
    const std::int64_t first =
        range(0, 1) == 0 && s.dims[axis] > 16 ? 16 : range(1, static_cast<int>(s.dims[axis]) - 1);
    add("Split", {x, constant(ir::Constant::of(ints({first, s.dims[axis] - first})))}, {{"axis", std::int64_t{axis}}},
        2);
  }

  void slice(ir::ValueId x, const kernels::Shape& s) {
    const int axis = range(0, 3);
    const int step = range(0, 1) == 0 ? 1 : range(0, 1) == 0 ? 2 : -1;
    const std::int64_t start = step < 0 ? s.dims[axis] - 1 : range(0, static_cast<int>(s.dims[axis]) - 1);
    const std::int64_t end = step < 0 ? -100 : s.dims[axis];
    add("Slice",
        {x, constant(ir::Constant::of(ints({start}))), constant(ir::Constant::of(ints({end}))),
         constant(ir::Constant::of(ints({axis}))), constant(ir::Constant::of(ints({step})))},
        {});
  }

  void batch_normalization(ir::ValueId x, std::int64_t c) {
    std::vector<float> variance(static_cast<std::size_t>(c));
    for (float& v : variance) v = 0.5F + static_cast<float>(range(0, 100)) / 50.0F;
    add("BatchNormalization",
        {x, constant(random({1, {c}}, 1)), constant(random({1, {c}}, 1)), constant(random({1, {c}}, 1)),
         constant(ir::Constant::of(variance, {1, {c}}))},
        {{"epsilon", 1e-4F}});
  }

  // Tensors of other ranks: matrices, gathers, broadcasts.
  void grow_flat(ir::ValueId x, const kernels::Shape& s) {
    const std::int64_t last = s.rank > 0 ? s.dims[s.rank - 1] : 1;
    switch (range(0, 6)) {
      case 0: unary(x); break;
      case 1:
        if (s.rank == 2) {
          add("Gemm", {x, constant(random({2, {7, last}}, 0.3F)), constant(random({1, {7}}, 1))},
              {{"transB", std::int64_t{1}}, {"alpha", 0.5F}});
        }
        break;
      case 2:
        if (s.rank >= 2) add("MatMul", {x, constant(random({2, {last, 5}}, 0.3F))}, {});
        break;
      case 3:
        if (s.rank >= 1) {
          add("Gather", {x, constant(ir::Constant::of(ints({0, last - 1, 0})))}, {{"axis", std::int64_t{s.rank - 1}}});
        }
        break;
      case 4:
        if (s.rank >= 1) add("Softmax", {x}, {{"axis", std::int64_t{range(0, s.rank - 1)}}});
        break;
      case 5: add("Add", {x, constant(random({1, {last}}, 1))}, {}); break;
      default:
        if (s.rank == 2 && s.elements() < 2000) {
          add("Expand",
              {add("Reshape", {x, constant(ir::Constant::of(ints({s.dims[0], 1, last})))}, {})[0],
               constant(ir::Constant::of(ints({s.dims[0], 3, last})))},
              {});
        }
    }
  }

  ir::Graph graph_;
  std::vector<ir::ValueId> values_;
  std::mt19937 engine_;
  int guard_ = -1;
  int count_ = 0;
};

}  // namespace takt::test
