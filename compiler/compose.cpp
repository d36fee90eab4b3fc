#include "compiler/compose.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/ir/takt_operators.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/single_operator.h"
#include "compiler/passes/passes.h"
#include "runtime/base/suggest.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::printable;
using ir::ValueId;
using Part = Composition::Part;
using Source = Composition::Source;

tl::unexpected<Error> refuse(const std::string& where, const std::string& what, Code code = Code::kConfiguration) {
  return fail(code, where + ": " + what);
}

// What takt's own operators may be told: i, f, s, I, F as in ONNX.
struct OwnOperator {
  std::string name;
  std::map<std::string, char> attributes;
};
std::vector<OwnOperator> own_table() {
  std::vector<OwnOperator> table = {
      {"takt.Preprocess",
       {{"format", 's'},
        {"width", 'i'},
        {"height", 'i'},
        {"pitch", 'i'},
        {"offset", 'i'},
        {"chroma_offset", 'i'},
        {"chroma_pitch", 'i'},
        {"out_width", 'i'},
        {"out_height", 'i'},
        {"mode", 's'},
        {"pad", 'f'},
        {"colour", 's'},
        {"scale", 'f'},
        {"mean", 'F'},
        {"std", 'F'}}},
      {"takt.ChannelGather", {{"channels", 'I'}}},
      {"takt.Silu", {}},
      {"takt.LayerNorm", {{"epsilon", 'f'}}},
  };
  for (const auto family : {ir::voxel_operators(), ir::point_operators(), ir::tracking_operators()}) {
    for (const ir::TaktOperator& row : family) {
      OwnOperator& op = table.emplace_back(OwnOperator{std::string(row.name), {}});
      std::istringstream words{std::string(row.attributes)};
      for (std::string word; words >> word;) op.attributes[word.substr(0, word.size() - 2)] = word.back();
    }
  }
  return table;
}
const std::vector<OwnOperator>& own_operators() {
  static const std::vector<OwnOperator> table = own_table();
  return table;
}

// As the operator wants it: whole numbers may stand for others.
bool convert(ir::Attribute& value, char kind) {
  if (kind == 'f' && std::holds_alternative<std::int64_t>(value)) {
    value = static_cast<float>(std::get<std::int64_t>(value));
  } else if (kind == 'F' && std::holds_alternative<std::vector<std::int64_t>>(value)) {
    const auto& whole = std::get<std::vector<std::int64_t>>(value);
    std::vector<float> numbers;
    numbers.reserve(whole.size());
    for (const std::int64_t v : whole) numbers.push_back(static_cast<float>(v));
    value = std::move(numbers);
  }
  switch (kind) {
    case 'i': return std::holds_alternative<std::int64_t>(value);
    case 'f': return std::holds_alternative<float>(value);
    case 's': return std::holds_alternative<std::string>(value);
    case 'I': return std::holds_alternative<std::vector<std::int64_t>>(value);
    case 'F': return std::holds_alternative<std::vector<float>>(value);
    default: return false;
  }
}

class Composer {
 public:
  explicit Composer(const Composition& composition) : composition_(composition) {}

  Result<Graph> run() {
    graph_.name = composition_.name;
    for (const Composition::Input& input : composition_.inputs) {
      const ValueId id = graph_.add_value(input.name, input.type);
      graph_.inputs.push_back(id);
      given_[input.name] = {{"", id}};
    }
    TAKT_RETURN_IF_ERROR(counted_inputs());
    TAKT_ASSIGN(const std::vector<std::size_t> order, order_of_parts());
    for (const std::size_t part : order) TAKT_RETURN_IF_ERROR(add(composition_.parts[part]));
    TAKT_RETURN_IF_ERROR(outputs());
    const std::vector<bool> needed = keep_needed(graph_);
    for (std::size_t i = 0; i < composition_.inputs.size(); ++i) {
      const Composition::Input& input = composition_.inputs[i];
      // A count is needed with what it counts.
      const auto is_needed = [&](std::size_t j) { return needed[static_cast<std::size_t>(graph_.inputs[j])]; };
      bool used = is_needed(i);
      for (std::size_t j = 0; j < composition_.inputs.size(); ++j) {
        used = used || (composition_.inputs[j].counted == input.name && is_needed(j));
      }
      if (used) continue;
      return refuse(input.where, "no output needs input '" + input.name + "'");
    }
    graph_.compact();
    TAKT_RETURN_IF_ERROR(ir::verify(graph_));
    return std::move(graph_);
  }

 private:
  // Outputs by name, of inputs and parts that are there already.
  using Outputs = std::map<std::string, ValueId>;

  Status counted_inputs() {
    for (std::size_t i = 0; i < composition_.inputs.size(); ++i) {
      const Composition::Input& input = composition_.inputs[i];
      if (input.counted.empty()) continue;
      const auto count = std::ranges::find(composition_.inputs, input.counted, &Composition::Input::name);
      if (count == composition_.inputs.end() || !(count->type == ir::Type{ir::DType::kI32, {}}) ||
          input.type.shape.rank == 0) {
        return refuse(input.where, "rows of input '" + input.name + "' are counted by '" + printable(input.counted) +
                                       "', which is no input of type i32 and shape []");
      }
      graph_[graph_.inputs[i]].type->count =
          graph_.inputs[static_cast<std::size_t>(count - composition_.inputs.begin())];
    }
    return {};
  }

  // Each part behind those that it reads; of those that are ready the first in the file is next.
  Result<std::vector<std::size_t>> order_of_parts() const {
    const auto& parts = composition_.parts;
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < parts.size(); ++i) index[parts[i].name] = i;
    std::vector<std::size_t> order;
    std::vector<bool> done(parts.size(), false);
    while (order.size() < parts.size()) {
      const std::size_t before = order.size();
      for (std::size_t i = 0; i < parts.size() && order.size() == before; ++i) {
        const bool ready = !done[i] && std::ranges::all_of(parts[i].feeds, [&](const Composition::Feed& feed) {
          const auto from = index.find(feed.from.of);
          return from == index.end() || done[from->second];
        });
        if (!ready) continue;
        done[i] = true;
        order.push_back(i);
      }
      if (order.size() > before) continue;
      std::string names;
      std::size_t first = parts.size();
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (done[i]) continue;
        first = std::min(first, i);
        names += (names.empty() ? "" : ", ") + parts[i].name;
      }
      return refuse(parts[first].where, "parts feed each other in a circle, or wait for one: " + names);
    }
    return order;
  }

  Result<ValueId> value_of(const Source& source, const std::string& name) {
    if (source.constant) return graph_.add_constant(name, *source.constant);
    if (source.of.empty()) return refuse(source.where, "names no input or part");
    const auto found = given_.find(source.of);
    if (found == given_.end()) {
      std::vector<std::string> known;
      for (const auto& [known_name, outputs] : given_) known.push_back(known_name);
      return refuse(source.where, "there is no input or part '" + source.of + "'" + did_you_mean(source.of, known));
    }
    const Outputs& outputs = found->second;
    std::vector<std::string> known;
    for (const auto& [output, id] : outputs) known.push_back(output);
    if (source.output.empty() && outputs.size() == 1) return outputs.begin()->second;
    const auto output = outputs.find(source.output);
    if (output != outputs.end()) return output->second;
    if (source.output.empty()) {
      return refuse(source.where, "'" + source.of + "' has several outputs, name one: " + source.of + "." + known[0]);
    }
    return refuse(source.where, "'" + source.of + "' has no output '" + printable(source.output) + "'" +
                                    did_you_mean(source.output, known));
  }

  Status add(const Part& part) { return part.op.empty() ? add_network(part) : add_operator(part); }

  Status add_operator(const Part& part) {
    std::vector<ValueId> inputs, outputs;
    for (std::size_t i = 0; i < part.feeds.size(); ++i) {
      const Source& from = part.feeds[i].from;
      if (from.of.empty() && !from.constant) {
        inputs.push_back(kNoValue);
        continue;
      }
      TAKT_ASSIGN(inputs.emplace_back(), value_of(from, part.name + "/" + std::to_string(i)));
    }
    Outputs& given = given_[part.name];
    if (part.outputs.empty()) {
      outputs.push_back(graph_.add_value(part.name));
      given[""] = outputs.back();
    }
    for (const std::string& output : part.outputs) {
      outputs.push_back(graph_.add_value(part.name + "/" + output));
      given[output] = outputs.back();
    }
    const Status added =
        part.op.starts_with("takt.")
            ? own_operator(part, std::move(inputs), std::move(outputs))
            : append_onnx_operator(graph_, part.op, part.name, part.attributes, std::move(inputs), std::move(outputs));
    if (!added) return refuse(part.where, added.error().message);
    return {};
  }

  Status own_operator(const Part& part, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
    std::vector<std::string> known;
    for (const OwnOperator& op : own_operators()) known.emplace_back(op.name);
    const auto op = std::ranges::find_if(own_operators(), [&](const OwnOperator& o) { return part.op == o.name; });
    if (op == own_operators().end()) {
      return fail(Code::kConfiguration, "takt has no operator " + printable(part.op) + did_you_mean(part.op, known));
    }
    ir::Node node;
    node.op = part.op;
    node.name = part.name;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    known.clear();
    for (const auto& [key, kind] : op->attributes) known.push_back(key);
    for (const auto& [key, value] : part.attributes) {
      const auto kind = op->attributes.find(key);
      if (kind == op->attributes.end()) {
        return fail(Code::kConfiguration,
                    part.op + " has no attribute '" + printable(key) + "'" + did_you_mean(key, known));
      }
      ir::Attribute wanted = value;
      if (!convert(wanted, kind->second)) {
        return fail(Code::kConfiguration, "attribute '" + key + "' of " + part.op + " has another type");
      }
      node.attributes[key] = std::move(wanted);
    }
    return ir::append(graph_, std::move(node));
  }

  Status add_network(const Part& part) {
    ImportOptions options;
    options.source = part.source;
    options.loops = part.loops;
    options.states = part.states;
    std::map<std::string, ValueId> feeds;
    for (const Composition::Feed& feed : part.feeds) {
      TAKT_ASSIGN(const ValueId value, value_of(feed.from, part.name + "/" + feed.input));
      feeds[feed.input] = value;
      const ir::Type& given = *graph_[value].type;
      options.input_shapes[feed.input] = given.shape;
      if (given.count != kNoValue && given.axis == 0) options.counted.push_back(feed.input);
    }
    auto imported = import_onnx(std::as_bytes(std::span(part.onnx.data(), part.onnx.size())), options);
    if (!imported) return refuse(part.where, imported.error().message, imported.error().code);
    Graph& network = *imported;
    std::vector<ValueId> fed;  // by input of the network
    for (const ValueId input : network.inputs) {
      const std::string& name = network[input].name;
      if (const auto counted =
              std::ranges::find_if(network.inputs, [&](ValueId id) { return network[id].type->count == input; });
          counted != network.inputs.end() && feeds.count(network[*counted].name) != 0 && feeds.count(name) == 0) {
        fed.push_back(graph_[feeds.at(network[*counted].name)].type->count);
        continue;
      }
      const auto feed = feeds.find(name);
      if (feed == feeds.end()) {
        return refuse(part.where, "input '" + printable(name) + "' of the network is not fed; it is " +
                                      ir::to_string(*network[input].type));
      }
      const ir::Type& given = *graph_[feed->second].type;
      const auto place = std::ranges::find_if(part.feeds, [&](const auto& f) { return f.input == name; });
      if (given.count != kNoValue && given.axis != 0) {
        return refuse(place->from.where, "input '" + printable(name) +
                                             "' of the network takes counted rows; it is fed " + ir::to_string(given));
      }
      if (given.dtype != network[input].type->dtype || !(given.shape == network[input].type->shape)) {
        return refuse(place->from.where, "input '" + printable(name) + "' of the network is " +
                                             ir::to_string(*network[input].type) + ", it is fed " +
                                             ir::to_string(given));
      }
      fed.push_back(feed->second);
    }
    graft(part, std::move(network), fed);
    return {};
  }

  // The network's values behind ours, its inputs replaced by what feeds them.
  void graft(const Part& part, Graph network, const std::vector<ValueId>& fed) {
    const auto offset = static_cast<ValueId>(graph_.values.size());
    const std::string prefix = part.name + "/";
    std::map<ValueId, ValueId> replaced;
    for (std::size_t i = 0; i < fed.size(); ++i) replaced[network.inputs[i]] = fed[i];
    const auto moved = [&](ValueId id) {
      if (id == kNoValue) return id;
      const auto found = replaced.find(id);
      return found == replaced.end() ? id + offset : found->second;
    };
    for (ir::Value& value : network.values) {
      value.name = prefix + value.name;
      if (value.type) value.type->count = moved(value.type->count);
      graph_.values.push_back(std::move(value));
    }
    const auto guards = static_cast<int>(graph_.guards.size());
    for (ir::Guard guard : network.guards) {
      guard.condition = moved(guard.condition);
      if (guard.parent >= 0) guard.parent += guards;
      graph_.guards.push_back(guard);
    }
    for (ir::Node& node : network.nodes) {
      node.name = prefix + node.name;
      if (node.guard >= 0) node.guard += guards;
      for (ValueId& id : node.inputs) id = moved(id);
      for (ValueId& id : node.outputs) id = moved(id);
      graph_.nodes.push_back(std::move(node));
    }
    for (ir::State& state : network.states) {
      state.name = prefix + state.name;
      state.previous = moved(state.previous);
      state.next = moved(state.next);
      graph_.states.push_back(std::move(state));
    }
    Outputs& outputs = given_[part.name];
    for (const ValueId output : network.outputs) {
      const ValueId id = moved(output);
      outputs[graph_[id].name.substr(prefix.size())] = id;
    }
  }

  Status outputs() {
    std::set<ValueId> taken(graph_.inputs.begin(), graph_.inputs.end());
    for (const Composition::Output& output : composition_.outputs) {
      TAKT_ASSIGN(const ValueId id, value_of(output.from, output.name));
      if (graph_[id].constant) return refuse(output.from.where, "output '" + output.name + "' is a constant");
      if (!taken.insert(id).second) {
        return refuse(output.from.where,
                      "output '" + output.name + "' is an input or another output already; leave it out");
      }
      graph_[id].name = output.name;
      graph_.outputs.push_back(id);
    }
    ir::add_counts_of_outputs(graph_);
    return {};
  }

  const Composition& composition_;
  Graph graph_;
  std::map<std::string, Outputs> given_;
};

}  // namespace

Result<ir::Graph> compose(const Composition& composition) { return Composer(composition).run(); }

Result<std::vector<std::byte>> compile_composition(const Composition& composition, const Options& options) {
  Options own = options;
  own.preprocess.reset();
  if (own.name.empty()) own.name = composition.name;
  TAKT_ASSIGN(ir::Graph graph, compose(composition));
  std::string networks;
  for (const Composition::Part& part : composition.parts) networks += part.onnx;
  return compile(std::move(graph), digest(networks), own);
}

}  // namespace takt::compiler
