// Private: a plan in the making. Tensors carry offsets relative to the tensor they are a view of until storage is
// planned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/lower/lower.h"
#include "kernels/cpu/host.h"

namespace takt::lower {

using kernels::Shape;
using TensorId = std::uint32_t;
inline constexpr TensorId kAbsent = plan::kNone;

class Builder {
 public:
  Builder(const ir::Graph& graph, const Options& options, std::int64_t most_spread);

  const ir::Graph& graph() const { return graph_; }
  kernels::Target target() const { return options_.target; }
  std::uint8_t block() const { return kernels::block_of(options_.target); }
  // What blocked tensors hold: f32 or f16.
  kernels::DType blocked_type() const { return options_.precision; }
  const ir::Type& type(ir::ValueId value) const { return *graph_[value].type; }
  const Shape& shape(ir::ValueId value) const { return type(value).shape; }
  const ir::Constant* constant_of(ir::ValueId value) const { return graph_[value].constant.get(); }
  const plan::Tensor& tensor(TensorId id) const { return tensors_[id]; }
  plan::Statistics& statistics() { return statistics_; }

  // Whether a value exists in that form already, so that asking for it costs no step. Constants exist in both.
  [[nodiscard]] bool has_blocked(ir::ValueId value) const;
  [[nodiscard]] bool has_linear(ir::ValueId value) const;
  // Whether a consumer, over any number of operators that take both forms, runs on blocked tensors.
  [[nodiscard]] bool wants_blocked(ir::ValueId value) const { return wants_blocked_[static_cast<std::size_t>(value)]; }
  [[nodiscard]] static bool can_be_blocked(const ir::Type& type) {
    return type.dtype == kernels::DType::kF32 && type.shape.rank == 4;
  }

  // Whether a step since the last call needs a kernel that the target does not have.
  [[nodiscard]] bool take_missing() { return std::exchange(missing_, false); }

  // Numbers as blocked tensors and weights hold them. What these cannot hold is kept for take_beyond().
  std::vector<std::byte> stored(std::span<const float> values);
  void expect_stored(std::span<const float> values);
  [[nodiscard]] std::optional<float> take_beyond() { return std::exchange(beyond_, std::nullopt); }

  // Whether a node reads the value, or it is a result of the graph.
  [[nodiscard]] bool is_read(ir::ValueId value) const;

  // The tensor that holds a value; adds a reorder where it only exists in the other form.
  TensorId linear(ir::ValueId value);
  TensorId blocked(ir::ValueId value);

  // The input of a convolution that reads an image of few channels as it is: row-major, of the type that blocked
  // tensors hold.
  TensorId image(ir::ValueId value);
  TensorId define_image(ir::ValueId value);
  // Whether such convolutions alone read the value.
  [[nodiscard]] bool only_read_as_image(ir::ValueId value) const;

  // linear() for a value whose linear tensor has been defined as a part of another and not written yet.
  void reorder_to_linear(ir::ValueId value);

  // A value that exists in no form of its own: its channel c is channel `channels[c]` of a blocked tensor that holds
  // more, and may have holes between them. What reads it through the list needs no step; blocked() gathers it.
  struct Mapped {
    TensorId whole = kAbsent;
    std::vector<std::int32_t> channels;
  };
  // So many times the blocks that its channels would fill may a value be spread over.
  [[nodiscard]] std::int64_t most_spread() const { return most_spread_; }
  void define_mapped(ir::ValueId value, Mapped mapped) { mapped_[value] = std::move(mapped); }
  [[nodiscard]] bool any_mapped() const { return !mapped_.empty(); }
  // nullptr where the value exists as a blocked tensor, or not at all yet.
  [[nodiscard]] const Mapped* mapped(ir::ValueId value) const;
  // The tensor that holds the channels of a value that exists blocked or mapped, and which they are.
  [[nodiscard]] Mapped channels_of(ir::ValueId value);
  // The same, blocked in any case: what is mapped is gathered first.
  [[nodiscard]] Mapped channels_of_blocked(ir::ValueId value);
  // Whether everybody who reads the value had better read it in a tensor of so many blocks than gathered; of 0 blocks,
  // whether everybody can read it by a list.
  [[nodiscard]] bool only_read_by_list(ir::ValueId value, std::int64_t blocks) const;
  // Blocks that hold `channels`, in a tensor or on their own.
  [[nodiscard]] std::int64_t blocks_of(std::int64_t channels) const { return (channels + block() - 1) / block(); }
  // Blocks of the whole, for operators that treat channels alike and so run on all of it; 0 where a channel is there
  // twice, which only a list can say.
  [[nodiscard]] std::int64_t blocks_alike(const Mapped& mapped) const;
  // Whether an operator of so many taps that treats channels alike takes no longer on a whole of `blocks` than behind a
  // gather. To gather a vector takes about as long as nine taps (measured on AVX-512).
  [[nodiscard]] bool better_whole(std::int64_t blocks, ir::ValueId x, ir::ValueId y, std::int64_t taps) const;
  // A blocked tensor of so many channels, holes included, for a value that is mapped into it.
  TensorId whole(ir::ValueId value, std::int64_t channels);

  // A new tensor for a result, in the arena until storage is planned.
  TensorId define(ir::ValueId value, bool as_blocked);
  // A tensor between two steps of one node; `type` row-major.
  TensorId temporary(const std::string& name, const ir::Type& type) { return add(name, type, false); }
  // The result is these bytes of another tensor.
  void define_view(ir::ValueId value, bool as_blocked, TensorId of, std::uint64_t offset);
  // The same value under another name.
  void define_same(ir::ValueId value, ir::ValueId as);
  // Bytes of `of` that no value names yet: a part of a concat.
  TensorId part(const std::string& name, const ir::Type& type, bool as_blocked, TensorId of, std::uint64_t offset);
  // Makes an existing tensor a part of `of`, when nothing has fixed its place yet.
  bool place(TensorId tensor, TensorId of, std::uint64_t offset);
  [[nodiscard]] bool can_place(TensorId tensor) const;
  // A constant of packed form.
  TensorId weights(const std::string& name, std::vector<std::byte> bytes);

  // Adds a step. `operands` in the kernel's order, kAbsent for absent ones and for the call's own constant.
  void step(kernels::cpu::Call call, std::vector<TensorId> operands, const ir::Node* node);

  // Steps that follow run under this guard of the graph. Conversions of a value run where the value is made, so that
  // they serve all its readers.
  void set_guard(int guard) { guard_ = guard; }

  // Outputs and state, storage, memory plan. kInput, naming them all, when some of them cannot be delivered.
  Result<Lowered> finish();

 private:
  struct Forms {
    TensorId linear = kAbsent, blocked = kAbsent;
    TensorId image = kAbsent;  // in f16 alone; otherwise it is the linear one
  };
  Forms& forms(ir::ValueId value) { return forms_[static_cast<std::size_t>(value)]; }
  TensorId add(const std::string& name, const ir::Type& type, bool as_blocked);
  std::uint32_t section(std::vector<std::byte> bytes);
  TensorId constant(ir::ValueId value, bool as_blocked);
  void find_wishes();
  [[nodiscard]] bool reads_image(const ir::Node& node) const;
  void cast(ir::ValueId value, kernels::DType from_type, TensorId from, kernels::DType to_type, TensorId to);
  // The tensor at the end of views, when the whole of it are the bytes of `tensor`; kAbsent otherwise.
  [[nodiscard]] TensorId whole_root(TensorId tensor) const;
  [[nodiscard]] TensorId root(TensorId tensor) const;
  void mark_written(TensorId tensor);
  std::uint32_t plan_guard(int guard);
  // A step between two forms of a value.
  void convert(kernels::cpu::Call call, ir::ValueId value, std::vector<TensorId> operands);
  // Makes `value` appear in a buffer of the caller or of the state.
  TensorId deliver(ir::ValueId value, const std::string& name, plan::Storage storage, std::uint32_t slot);

  const ir::Graph& graph_;
  Options options_;
  std::int64_t most_spread_;
  std::vector<Forms> forms_;                 // by value
  std::vector<bool> wants_blocked_;          // by value
  std::vector<std::vector<int>> consumers_;  // by value
  std::map<ir::ValueId, Mapped> mapped_;
  std::vector<plan::Tensor> tensors_;
  std::vector<ir::ValueId> counts_;  // by tensor; ir::kNoValue: all of it is valid
  std::vector<bool> written_;        // by tensor: a step writes it (or a part of it)
  std::vector<plan::Step> steps_;
  std::vector<std::vector<std::byte>> sections_;
  std::map<Digest, std::uint32_t> known_sections_;
  std::vector<plan::State> states_;
  std::vector<plan::Guard> guards_;
  std::vector<std::uint32_t> plan_guard_;  // by guard of the graph; kNone: not needed yet
  std::vector<int> guard_of_;              // of the node that makes a value
  int guard_ = -1;
  bool missing_ = false;
  std::optional<float> beyond_;
  std::vector<TensorId> inputs_, outputs_;
  plan::Statistics statistics_;
};

// Whether a node had better read that input in a tensor of so many blocks than gathered, as in only_read_by_list.
bool reads_by_list(const Builder& out, const ir::Node& node, ir::ValueId value, std::int64_t blocks);

// Lowers one node; a failure says why there is no kernel.
Status lower_node(Builder& out, const ir::Node& node);

// Convolutions, pools, resizes, pads over [N,C,H,W] and channel operators.
Status lower_image_node(Builder& out, const ir::Node& node, bool* known);
// Elementwise, softmax, reductions and matrices.
Status lower_math_node(Builder& out, const ir::Node& node, bool* known);
// What only moves elements.
Status lower_movement_node(Builder& out, const ir::Node& node, bool* known);
// Whatever the generic reference kernel knows; wants_generic: the fast kernels do not take these element types.
Status lower_generic_node(Builder& out, const ir::Node& node, bool* known);
// Whatever reads or makes a counted tensor.
Status lower_counted_node(Builder& out, const ir::Node& node);
// takt's own operators, counted or not.
Status lower_takt_node(Builder& out, const ir::Node& node);
bool wants_generic(const Builder& out, const ir::Node& node);

}  // namespace takt::lower
