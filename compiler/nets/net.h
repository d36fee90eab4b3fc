// A graph in the making, for networks that takt builds itself: values by name, weights that are random but the same
// everywhere, and one place for what goes wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

// The first error stays and ends all work; finish() says it. Values are named as they are in an ONNX file of the same
// network (tools/nets), so that graph and file can be compared.
class Net {
 public:
  using Value = ir::ValueId;
  using Attributes = std::map<std::string, ir::Attribute>;

  Net(std::string name, std::uint64_t seed) : state_(seed) { graph_.name = std::move(name); }

  Value input(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents);
  // Its rows are counted by one more input, NAME_count.
  Value counted_input(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents);
  // Zeros at first. `next` says what it becomes.
  Value state(const std::string& name, ir::DType dtype, std::initializer_list<std::int64_t> extents);
  void next(const std::string& state, Value value);
  void output(Value value) { graph_.outputs.push_back(value); }

  Value constant(const std::string& name, ir::Constant constant);
  // Uniform with variance 1 / `fan_in`: rows of activations keep their size. splitmix64, drawn in the order of calls.
  Value weights(const std::string& name, std::initializer_list<std::int64_t> extents, std::int64_t fan_in);

  // Results are called as given; takt's operators may have more of them than are named.
  std::vector<Value> node(const std::string& op, std::vector<Value> inputs, const std::vector<std::string>& outputs,
                          Attributes attributes = {});
  Value call(const std::string& op, std::vector<Value> inputs, const std::string& output, Attributes attributes = {}) {
    return node(op, std::move(inputs), {output}, std::move(attributes))[0];
  }

  // x [1][c][h][w] convolved to `channels`, square kernel, "same" padding, bias; with its activation: NAME, else
  // NAME too.
  Value conv(Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride, bool relu,
             const std::string& name);
  // x brought `factor` times as high and wide by a transposed convolution without overlap, and ReLU.
  Value upsampled(Value x, std::int64_t channels, std::int64_t factor, const std::string& name);

  // Cells of one extent of a grid; 0 of what is none, which takt.Voxelise refuses by its own words.
  static std::int64_t cells(float minimum, float maximum, float size);

  // What a centre head says of each cell of x: heat of `classes`, offset, height, size, rotation, velocity, in the
  // order of takt.TopKDecode.
  std::vector<Value> centre_head(Value x, std::int64_t classes);

  // Extents of a value; zeros behind an error.
  [[nodiscard]] ir::Shape shape(Value value) const;

  Result<ir::Graph> finish();

 private:
  ir::Type type_of(ir::DType dtype, std::initializer_list<std::int64_t> extents) const;

  ir::Graph graph_;
  std::uint64_t state_;
  Status status_;
};

}  // namespace takt::compiler
