#include "pipeline/models/fusion_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/compile.h"
#include "compiler/ir/operators.h"
#include "pipeline/messages/messages.h"
#include "pipeline/models/usual_extent.h"

namespace takt::pipeline {

namespace {

using ir::Type;
using ir::ValueId;
using kernels::DType;
using kernels::kColumns;

Type table(DType dtype, std::int64_t rows, std::int64_t columns) { return {dtype, {2, {rows, columns}}}; }
Type vector(DType dtype, std::int64_t rows) { return {dtype, {1, {rows}}}; }
const Type kNumber{DType::kI32, {}};

template <class Rows>
ir::Constant constant_of(const Type& type, const Rows& rows) {
  ir::Constant c = ir::Constant::allocate(type.dtype, type.shape);
  const auto bytes = std::as_bytes(std::span(rows));
  std::copy(bytes.begin(), bytes.end(), c.bytes.begin());
  return c;
}

// A table of tracks at one place of the graph.
struct Tracks {
  ValueId motion, body, life, clock;
};

class Builder {
 public:
  Builder(const FusionModel& model, std::span<const kernels::ListSource> sources, std::size_t inputs)
      : lists_(sources.size()) {
    graph_.name = "fusion";
    namespace name = fusion_tensors;
    const auto k = static_cast<std::int64_t>(lists_);
    for (std::size_t i = 0; i < lists_; ++i) {
      lists_in_.push_back(input(name::kList + std::to_string(i), vector(DType::kU8, sizeof(ObjectList))));
      rows_in_.push_back(input(name::kListRows + std::to_string(i), vector(DType::kI64, 2)));
    }
    stamps_ = input(name::kStamps, vector(DType::kI64, k + 1));
    ego_stamp_ = input(name::kEgoStamp, vector(DType::kI64, 1));
    ego_sample_ = input(name::kEgoSample, vector(DType::kF64, kColumns<kernels::EgoReading>));
    used_now_ = input(name::kUsedNow, vector(DType::kI64, static_cast<std::int64_t>(inputs)));

    const Type source_rows = table(DType::kF64, k, kColumns<kernels::ListSource>);
    sources_ = graph_.add_constant("sources", constant_of(source_rows, sources));
    const Type model_row = vector(DType::kF64, kColumns<kernels::TrackerModel>);
    model_ = graph_.add_constant("tracker", constant_of(model_row, std::span(&model.tracker, 1)));
    std::array<kernels::Extent, kernels::kObjectClasses> usual{};
    for (std::size_t c = 0; c < usual.size(); ++c) {
      const Extent e = usual_extent(static_cast<ObjectClass>(c));
      usual[c] = {e.length, e.width, e.height};
    }
    const Type usual_rows = table(DType::kF64, kernels::kObjectClasses, kColumns<kernels::Extent>);
    usual_ = graph_.add_constant("usual_extents", constant_of(usual_rows, usual));

    count_ = state("count", kNumber);
    const auto counted = [&](Type type) {
      type.count = count_;
      return type;
    };
    tracks_.motion = state("motion", counted(table(DType::kF64, kMaxTracks, motion_columns(model.motion))));
    tracks_.body = state("body", counted(table(DType::kF64, kMaxTracks, kColumns<kernels::TrackBody>)));
    tracks_.life = state("life", counted(table(DType::kI64, kMaxTracks, kColumns<kernels::TrackLife>)));
    const kernels::TrackClock clock;
    tracks_.clock = state("clock", vector(DType::kI64, kColumns<kernels::TrackClock>), std::span(&clock, 1));
    const std::vector<std::int64_t> never(std::max<std::size_t>(inputs, kernels::kEgoSamples), kernels::kNever);
    ego_stamps_ =
        state("ego_stamps", vector(DType::kI64, kernels::kEgoSamples), std::span(never).first(kernels::kEgoSamples));
    ego_samples_ = state("ego_samples", table(DType::kF64, kernels::kEgoRows, kColumns<kernels::EgoSample>));
    state(name::kUsed, vector(DType::kI64, static_cast<std::int64_t>(inputs)), std::span(never).first(inputs));
  }

  Result<ir::Graph> build() {
    namespace name = fusion_tensors;
    const auto now = static_cast<std::int64_t>(lists_);
    const auto ego = node("EgoMotion", "ego", {stamps_, ego_stamp_, ego_sample_, ego_stamps_, ego_samples_, model_}, 3);
    poses_ = ego[2];
    for (std::size_t i = 0; i < lists_; ++i) list(i);
    const auto survivors =
        node("Death", "death", {tracks_.motion, tracks_.body, tracks_.life, stamps_, model_}, 4, {{"slot", now}});
    const auto output =
        node("TrackOutput", name::kTracks,
             {survivors[0], survivors[1], survivors[2], tracks_.clock, stamps_, poses_, model_}, 1, {{"slot", now}});
    TAKT_RETURN_IF_ERROR(status_);
    outputs_.insert(outputs_.begin(), {name::kTracks, output[0]});
    outputs_.push_back({"open_tracks", open_});
    for (const auto& [output_name, id] : outputs_) {
      graph_[id].name = output_name;
      graph_.outputs.push_back(id);
    }
    // In the order in which they were declared.
    const ValueId next[] = {survivors[3],  survivors[0], survivors[1], survivors[2],
                            tracks_.clock, ego[0],       ego[1],       used_now_};
    for (std::size_t s = 0; s < graph_.states.size(); ++s) graph_.states[s].next = next[s];
    return std::move(graph_);
  }

 private:
  ValueId input(const std::string& name, const Type& type) {
    const ValueId id = graph_.add_value(name, type);
    graph_.inputs.push_back(id);
    return id;
  }

  template <class Rows = std::span<const std::int64_t>>
  ValueId state(const std::string& name, const Type& type, const Rows& initial = {}) {
    ir::State& s = graph_.states.emplace_back();
    s.name = name;
    s.previous = graph_.add_value(name, type);
    if (!initial.empty()) s.initial = std::make_shared<const ir::Constant>(constant_of(type, initial));
    return s.previous;
  }

  std::vector<ValueId> node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                            std::size_t outputs, std::map<std::string, ir::Attribute> attributes = {}) {
    ir::Node n;
    n.op = "takt." + op;
    n.name = name;
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    for (std::size_t o = 0; o < outputs; ++o) {
      n.outputs.push_back(graph_.add_value(name + ":" + std::to_string(o)));
    }
    std::vector<ValueId> out = n.outputs;
    if (status_) status_ = ir::append(graph_, std::move(n));
    return out;
  }

  // One list against the tracks.
  void list(std::size_t i) {
    namespace name = fusion_tensors;
    const std::string at = "_" + std::to_string(i);
    Tracks& t = tracks_;
    const auto found =
        node("Detections", "detections" + at, {lists_in_[i], rows_in_[i], stamps_, poses_, t.clock, sources_, model_},
             5, {{"slot", static_cast<std::int64_t>(i)}});
    const ValueId objects = found[0], moment = found[1], info = found[2];
    const ValueId predicted = node("KalmanPredict", "predict" + at, {t.motion, moment, model_}, 1)[0];
    const ValueId cost = node("Gate", "gate" + at, {predicted, objects, moment, info, sources_, model_}, 1)[0];
    const ValueId column = node("Assign", "assign" + at, {cost, model_}, 1)[0];
    const ValueId aligned = node("Align", "align" + at, {t.body, objects, column, moment}, 1)[0];
    const ValueId motion =
        node("KalmanUpdate", "update" + at, {predicted, aligned, moment, info, sources_, model_}, 1)[0];
    const auto updated = node("TrackUpdate", "tracks" + at, {t.body, t.life, aligned, motion, info, sources_, usual_},
                              2, {{"first", std::int64_t{i == 0}}});
    const auto born =
        node("Birth", "birth" + at,
             {motion, updated[0], updated[1], objects, column, t.clock, moment, info, sources_, model_, usual_}, 6);
    t = {born[0], born[1], born[2], born[3]};
    open_ = born[4];
    const std::string k = std::to_string(i);
    outputs_.insert(outputs_.end(),
                    {{name::kRepaired + k, found[4]}, {name::kDropped + k, born[5]}, {"objects_" + k, found[3]}});
  }

  ir::Graph graph_;
  Status status_;
  std::size_t lists_;
  std::vector<ValueId> lists_in_, rows_in_;
  ValueId stamps_ = ir::kNoValue, ego_stamp_ = ir::kNoValue, ego_sample_ = ir::kNoValue, used_now_ = ir::kNoValue;
  ValueId sources_ = ir::kNoValue, model_ = ir::kNoValue, usual_ = ir::kNoValue;
  ValueId count_ = ir::kNoValue, ego_stamps_ = ir::kNoValue, ego_samples_ = ir::kNoValue, poses_ = ir::kNoValue;
  ValueId open_ = ir::kNoValue;  // tracks behind the last list, before any ends
  Tracks tracks_{};
  std::vector<std::pair<std::string, ValueId>> outputs_;
};

}  // namespace

Result<ir::Graph> fusion_graph(const FusionModel& model, std::span<const kernels::ListSource> sources,
                               std::size_t inputs) {
  return Builder(model, sources, inputs).build();
}

Result<std::shared_ptr<const plan::Plan>> compile_fusion(const FusionModel& model,
                                                         std::span<const kernels::ListSource> sources,
                                                         std::size_t inputs, const std::vector<std::uint16_t>& parts,
                                                         kernels::Target target) {
  TAKT_ASSIGN(ir::Graph graph, fusion_graph(model, sources, inputs));
  compiler::Options options;
  options.parts = parts;
  options.target = target;
  TAKT_ASSIGN(const std::vector<std::byte> bytes, compiler::compile(std::move(graph), {}, options));
  return plan::Plan::parse(bytes);
}

}  // namespace takt::pipeline
