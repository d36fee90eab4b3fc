#include "compiler/onnx/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/control.h"
#include "compiler/onnx/operators.h"
#include "compiler/onnx/tensor_proto.h"
#include "runtime/base/suggest.h"

namespace takt::compiler {
namespace {

using ir::kNoValue;
using ir::printable;
using ir::to_string;
using ir::ValueId;
using ir::within_limits;

constexpr int kMaxDepth = 32;         // nested messages of a model: graph, node, attribute, tensor
constexpr int kNameableDepth = 1000;  // up to which a model that is nested too deep is told from a damaged one
constexpr std::size_t kListed = 5;    // names in a list of a message
// Nodes of subgraphs, each time they are inlined: beyond it a plan is no list that anybody reads, and a small file
// would keep the compiler busy for hours.
constexpr std::size_t kMostInlined = 1 << 16;

tl::unexpected<Error> refuse(std::string message) { return fail(Code::kInput, std::move(message)); }

// On failure *at is the byte where it was noticed.
bool parses(std::span<const std::byte> bytes, int depth, ::onnx::ModelProto* model, int* at) {
  const auto size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream array(bytes.data(), size);
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(size);
  stream.SetRecursionLimit(depth);
  const bool whole = model->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  *at = stream.CurrentPosition();
  return whole;
}

Result<::onnx::ModelProto> parse(std::span<const std::byte> bytes) {
  if (bytes.empty()) return refuse("the file is empty");
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return refuse("the file is larger than 2 GiB, which ONNX files cannot be");
  }
  ::onnx::ModelProto model;
  int at = 0;
  if (!parses(bytes, kMaxDepth, &model, &at)) {
    int unused = 0;
    if (parses(bytes, kNameableDepth, &model, &unused)) {
      return refuse("is nested deeper than " + std::to_string(kMaxDepth) + " messages at byte " + std::to_string(at) +
                    ": an If, Loop or Scan inside another takes three, so that nine may lie in one another");
    }
    return refuse("is no ONNX model, or is cut or damaged at or before byte " + std::to_string(at) + " of " +
                  std::to_string(bytes.size()));
  }
  if (!model.has_graph()) return refuse("holds no graph; is it an ONNX model?");
  return model;
}

// ONNX's own domain has two names.
bool is_own(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

Result<std::int64_t> default_opset(const ::onnx::ModelProto& model) {
  std::int64_t opset = 0;
  for (const auto& entry : model.opset_import()) {
    if (!is_own(entry.domain())) continue;
    if (opset != 0 && opset != entry.version()) return refuse("names two versions of the default operator set");
    opset = entry.version();
  }
  if (opset < kOldestOpset || opset > kNewestOpset) {
    return refuse("has operator set " + std::to_string(opset) + "; takt reads " + std::to_string(kOldestOpset) +
                  " to " + std::to_string(kNewestOpset) + " (export it again, or use onnx.version_converter)");
  }
  return opset;
}

Status takt_opset(const ::onnx::ModelProto& model) {
  for (const auto& entry : model.opset_import()) {
    if (entry.domain() == kTaktDomain && entry.version() != kTaktOpset) {
      return refuse("has version " + std::to_string(entry.version()) +
                    " of takt's operators; this takt reads version " + std::to_string(kTaktOpset));
    }
  }
  return {};
}

// 0: the model does not say.
std::int64_t opset_of(const ::onnx::ModelProto& model, const std::string& domain) {
  for (const auto& entry : model.opset_import()) {
    if (entry.domain() == domain || (is_own(domain) && is_own(entry.domain()))) return entry.version();
  }
  return 0;
}

std::string node_name(const ::onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.output_size() > 0 ? node.output(0) : "without a name";
}

struct Missing {
  std::string had;  // operator sets of its domain that takt reads
  std::int64_t opset = 0;
  std::size_t count = 0;
  std::vector<std::string> nodes;
};

void find_missing(const ::onnx::ModelProto& model, const ::onnx::GraphProto& graph,
                  std::map<std::string, Missing>& missing) {
  for (const ::onnx::NodeProto& node : graph.node()) {
    if (is_control(node.domain(), node.op_type())) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) find_missing(model, attribute.g(), missing);
      }
      continue;
    }
    if (imports_operator(node.domain(), node.op_type())) continue;
    const bool own = is_own(node.domain());
    Missing& entry = missing[(own ? "ai.onnx" : node.domain()) + "." + node.op_type()];
    entry.had = own                            ? std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset)
                : node.domain() == kTaktDomain ? std::to_string(kTaktOpset)
                                               : "this domain";
    entry.opset = opset_of(model, node.domain());
    ++entry.count;
    if (entry.nodes.size() < kListed) entry.nodes.push_back(node_name(node));
  }
}

// All at once, so that a user sees the whole distance.
Status supported(const ::onnx::ModelProto& model) {
  std::map<std::string, Missing> missing;
  find_missing(model, model.graph(), missing);
  if (missing.empty()) return {};
  std::string message =
      std::to_string(missing.size()) + (missing.size() == 1 ? " operator is" : " operators are") + " not supported:";
  for (const auto& [name, entry] : missing) {
    message += "\n  " + printable(name) +
               " (operator set wanted: " + (entry.opset == 0 ? std::string("not said") : std::to_string(entry.opset)) +
               ", had: none of " + entry.had + "), " + std::to_string(entry.count) +
               (entry.count == 1 ? " node: " : " nodes: ");
    for (std::size_t i = 0; i < entry.nodes.size(); ++i) message += (i > 0 ? ", " : "") + printable(entry.nodes[i]);
    if (entry.count > entry.nodes.size()) message += ", ...";
  }
  return refuse(message);
}

// Inputs with symbolic dimensions replaced by numbers.
class InputTypes {
 public:
  InputTypes(const ImportOptions& options) : options_(options), dims_(options.dims) {}

  // Learns what the given shapes say about symbolic dimensions.
  Status unify(const ::onnx::ValueInfoProto& input) {
    const auto given = options_.input_shapes.find(input.name());
    if (given == options_.input_shapes.end()) return {};
    const auto& tensor = input.type().tensor_type();
    const auto mismatch = [&] {
      return refuse("input " + printable(input.name()) + ": the model declares " + declared(tensor) + ", wanted is " +
                    to_string(given->second));
    };
    if (!tensor.has_shape()) return {};
    if (tensor.shape().dim_size() != given->second.rank) return mismatch();
    for (int d = 0; d < given->second.rank; ++d) {
      const auto& dim = tensor.shape().dim(d);
      const std::int64_t wanted = given->second.dims[d];
      if (dim.has_dim_value()) {
        if (dim.dim_value() != wanted) return mismatch();
      } else if (dim.has_dim_param() && !dim.dim_param().empty()) {
        const auto [entry, fresh] = dims_.emplace(dim.dim_param(), wanted);
        if (!fresh && entry->second != wanted) {
          return refuse("dimension \"" + printable(dim.dim_param()) + "\" is " + std::to_string(entry->second) +
                        " elsewhere, but input " + printable(input.name()) + " wants " + to_string(given->second));
        }
      }
    }
    return {};
  }

  // The type of an input; extents that nothing fixes are collected in unfixed().
  Result<ir::Type> type(const ::onnx::ValueInfoProto& input) {
    if (!input.type().has_tensor_type()) return refuse("input " + printable(input.name()) + " is no tensor");
    const auto& tensor = input.type().tensor_type();
    auto dtype = element_type(tensor.elem_type());
    if (!dtype) return fail(std::move(dtype).error().with_context("input " + printable(input.name())));
    const auto given = options_.input_shapes.find(input.name());
    ir::Type type{*dtype, {}};
    if (given != options_.input_shapes.end()) {
      type.shape = given->second;
    } else if (!tensor.has_shape()) {
      unfixed_ += "\n  input " + printable(input.name()) + ": no shape at all";
    } else if (tensor.shape().dim_size() > kernels::kMaxRank) {
      return refuse("input " + printable(input.name()) + " has rank " + std::to_string(tensor.shape().dim_size()) +
                    ", above 8");
    } else {
      for (const auto& dim : tensor.shape().dim()) type.shape.dims[type.shape.rank++] = extent(dim, input.name());
    }
    if (!within_limits(type.shape)) {
      return refuse("input " + printable(input.name()) + " of " + to_string(type) +
                    " is not possible: a tensor has no negative extents and at most " +
                    std::to_string(ir::kMaxElements) + " elements");
    }
    return type;
  }

  [[nodiscard]] const std::string& unfixed() const { return unfixed_; }

 private:
  using Dimension = ::onnx::TensorShapeProto::Dimension;

  std::int64_t extent(const Dimension& dim, const std::string& input) {
    if (dim.has_dim_value()) return dim.dim_value();
    const auto known = dims_.find(dim.dim_param());
    if (!dim.dim_param().empty() && known != dims_.end()) return known->second;
    unfixed_ += "\n  input " + printable(input) + ": " +
                (dim.dim_param().empty() ? std::string("a dimension without a name") : printable(dim.dim_param()));
    return 1;
  }

  static std::string declared(const ::onnx::TypeProto::Tensor& tensor) {
    std::string text = "[";
    for (int d = 0; d < tensor.shape().dim_size(); ++d) {
      const Dimension& dim = tensor.shape().dim(d);
      text += (d > 0 ? "," : "");
      text += dim.has_dim_value() ? std::to_string(dim.dim_value()) : printable(dim.dim_param());
    }
    return text + "]";
  }

  const ImportOptions& options_;
  std::map<std::string, std::int64_t> dims_;
  std::string unfixed_;
};

class Importer : private Scopes {
 public:
  Importer(const ::onnx::ModelProto& model, std::int64_t opset) : model_(model), proto_(model.graph()), opset_(opset) {}

  Result<ir::Graph> run(const ImportOptions& options) {
    graph_.name = proto_.name();
    if (proto_.sparse_initializer_size() > 0) return refuse("sparse initializers are not supported");
    loops_ = options.loops;
    folder_ = options.folder;
    reads_ = options.reads;
    states_ = options.states;
    TAKT_RETURN_IF_ERROR(declared_states());
    TAKT_RETURN_IF_ERROR(initializers(proto_));
    TAKT_RETURN_IF_ERROR(inputs(options));
    TAKT_RETURN_IF_ERROR(counted_inputs(options.counted));
    TAKT_RETURN_IF_ERROR(nodes(proto_));
    for (const auto& [name, most] : loops_) {
      if (std::ranges::find(loop_names_, name) != loop_names_.end()) continue;
      return refuse("runs no Loop " + printable(name) + ", for which a maximum of " + std::to_string(most) +
                    " was given" + did_you_mean(name, loop_names_));
    }
    TAKT_RETURN_IF_ERROR(outputs());
    TAKT_RETURN_IF_ERROR(states());
    ir::add_counts_of_outputs(graph_);
    graph_.compact();
    // A graph that import has made and the verifier refuses is an error of takt, not of the model.
    TAKT_RETURN_IF_ERROR(ir::verify(graph_));
    return std::move(graph_);
  }

 private:
  // Names a new value; false when the name is taken.
  bool define(const std::string& name, ValueId id) { return !name.empty() && values_.emplace(name, id).second; }

  // A name as a node sees it: of its own graph or of one around it. kNoValue: nobody has written it.
  [[nodiscard]] ValueId find(const std::string& name) const {
    if (const auto own = values_.find(name); own != values_.end()) return own->second;
    for (auto scope = outer_.rbegin(); scope != outer_.rend(); ++scope) {
      if (const auto known = scope->find(name); known != scope->end()) return known->second;
    }
    return kNoValue;
  }

  // What the model says of its state.
  Status declared_states() {
    static constexpr std::string_view kKey = "takt.state:";
    for (const auto& entry : model_.metadata_props()) {
      if (entry.key().compare(0, kKey.size(), kKey) != 0) continue;
      const std::string input = entry.key().substr(kKey.size());
      const auto [at, fresh] = states_.emplace(input, entry.value());
      if (!fresh && at->second != entry.value()) {
        return refuse("state " + printable(input) + " continues as output " + printable(entry.value()) +
                      " by the model's metadata, as " + printable(at->second) + " elsewhere");
      }
    }
    return {};
  }

  // Inputs of which the model says that another input is their count, and those that the caller counts.
  Status counted_inputs(const std::vector<std::string>& counted) {
    static constexpr std::string_view kKey = "takt.count:";
    const auto input = [&](const std::string& name) {
      const auto found = std::ranges::find_if(graph_.inputs, [&](ValueId id) { return graph_[id].name == name; });
      return found != graph_.inputs.end() ? *found : kNoValue;
    };
    for (const auto& entry : model_.metadata_props()) {
      if (entry.key().compare(0, kKey.size(), kKey) != 0) continue;
      const std::string name = entry.key().substr(kKey.size());
      const ValueId rows = input(name), count = input(entry.value());
      if (rows == kNoValue || count == kNoValue) {
        return refuse("says that input " + printable(name) + " is counted by input " + printable(entry.value()) +
                      "; there is no input " + printable(rows == kNoValue ? name : entry.value()));
      }
      ir::Type& type = *graph_[rows].type;
      if (!(*graph_[count].type == ir::Type{ir::DType::kI32, {}}) || type.shape.rank == 0 || rows == count ||
          type.count != kNoValue) {
        return refuse("input " + printable(name) + ", " + to_string(type) + ", cannot be counted by input " +
                      printable(entry.value()) + ", " + to_string(*graph_[count].type) +
                      "; expected rows and one i32 scalar");
      }
      type.count = count;
    }
    for (const std::string& name : counted) {
      const ValueId rows = input(name);
      if (rows == kNoValue || graph_[rows].type->shape.rank == 0 || graph_[rows].type->count != kNoValue) {
        return refuse("has no input " + printable(name) + " whose rows can be counted");
      }
      graph_.inputs.push_back(graph_.add_value(name + ":count", ir::Type{ir::DType::kI32, {}}));
      graph_[rows].type->count = graph_.inputs.back();
    }
    return {};
  }

  // Inputs and outputs that belong together become state.
  Status states() {
    for (const auto& [input, output] : states_) {
      const auto named = [&](const std::string& name) {
        return [this, &name](ValueId id) { return graph_[id].name == name; };
      };
      const auto in = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), named(input));
      const auto out = std::find_if(graph_.outputs.begin(), graph_.outputs.end(), named(output));
      if (in == graph_.inputs.end() || out == graph_.outputs.end()) {
        return refuse("has no " + std::string(in == graph_.inputs.end() ? "input " : "output ") +
                      printable(in == graph_.inputs.end() ? input : output) + ", which state " + printable(input) +
                      " needs (each output continues one input)");
      }
      const ir::Type& before = *graph_[*in].type;
      const ir::Type& after = *graph_[*out].type;
      if (!(before == after)) {
        return refuse("state " + printable(input) + " is " + to_string(before) + " and becomes " + to_string(after) +
                      "; expected one type");
      }
      const auto first = first_values_.find(input);
      if (first != first_values_.end() &&
          (first->second->dtype != before.dtype || !(first->second->shape == before.shape))) {
        return refuse("state " + printable(input) + " is " + to_string(before) + ", its first value is " +
                      to_string(ir::Type{first->second->dtype, first->second->shape}));
      }
      graph_.states.push_back({input, *in, *out, first != first_values_.end() ? first->second : nullptr});
      graph_.inputs.erase(in);
      graph_.outputs.erase(out);
    }
    return {};
  }

  ir::Graph& graph() override { return graph_; }
  int guard() const override { return guard_; }
  void set_guard(int guard) override { guard_ = guard; }

  Result<std::vector<ValueId>> inline_body(const ::onnx::GraphProto& body, std::span<const ValueId> inputs,
                                           const std::string& prefix) override {
    inlined_ += static_cast<std::size_t>(body.node_size()) + 1;
    if (inlined_ > kMostInlined) {
      return refuse("with its loops unrolled the model has more than " + std::to_string(kMostInlined) + " nodes");
    }
    if (body.sparse_initializer_size() > 0) return refuse("sparse initializers are not supported");
    if (static_cast<std::size_t>(body.input_size()) != inputs.size()) {
      return refuse("its subgraph " + printable(body.name()) + " has " + std::to_string(body.input_size()) +
                    " inputs, expected " + std::to_string(inputs.size()));
    }
    outer_.push_back(std::move(values_));
    values_.clear();
    const std::string around = std::exchange(prefix_, prefix_ + prefix);
    auto results = body_results(body, inputs);
    prefix_ = around;
    values_ = std::move(outer_.back());
    outer_.pop_back();
    return results;
  }

  Result<std::vector<ValueId>> body_results(const ::onnx::GraphProto& body, std::span<const ValueId> inputs) {
    TAKT_RETURN_IF_ERROR(initializers(body));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = body.input(static_cast<int>(i)).name();
      if (!define(name, inputs[i])) return refuse("input " + printable(name) + " has no name or is there twice");
    }
    TAKT_RETURN_IF_ERROR(nodes(body));
    std::vector<ValueId> results;
    for (const auto& output : body.output()) {
      results.push_back(find(output.name()));
      if (results.back() == kNoValue) return refuse("output " + printable(output.name()) + " is never written");
    }
    return results;
  }

  Status initializers(const ::onnx::GraphProto& proto) {
    for (const ::onnx::TensorProto& tensor : proto.initializer()) {
      // A body that is inlined many times reads its constants once.
      if (const auto known = constants_.find(&tensor); known != constants_.end()) {
        if (!define(tensor.name(), known->second)) {
          return refuse("initializer " + printable(tensor.name()) + " has no name or the name of another");
        }
        continue;
      }
      auto constant = read_tensor(tensor, folder_);
      if (!constant) return fail(std::move(constant).error().with_context("initializer " + printable(tensor.name())));
      if (reads_) {
        for (const auto& entry : tensor.external_data()) {
          if (entry.key() == "location") reads_(entry.value());
        }
      }
      if (&proto == &proto_ && states_.count(tensor.name()) != 0) {
        first_values_[tensor.name()] = std::make_shared<const ir::Constant>(*std::move(constant));
        continue;
      }
      constants_[&tensor] = graph_.add_constant(prefix_ + tensor.name(), *std::move(constant));
      if (!define(tensor.name(), constants_[&tensor])) {
        return refuse("initializer " + printable(tensor.name()) + " has no name or the name of another");
      }
    }
    return {};
  }

  // An input that has an initializer is a constant. Files before IR version 4 list all initializers among the inputs;
  // in newer ones it is a default that a caller could replace, which is worth a word.
  Status inputs(const ImportOptions& options) {
    InputTypes types(options);
    const auto is_constant = [&](const std::string& name) {
      const auto known = values_.find(name);
      return known != values_.end() && graph_[known->second].constant;
    };
    for (const auto& input : proto_.input()) {
      if (options.input_shapes.count(input.name()) != 0 && is_constant(input.name())) {
        return refuse("input " + printable(input.name()) +
                      " has a value in the file (an initializer) and is a constant; it takes no shape");
      }
      TAKT_RETURN_IF_ERROR(types.unify(input));
    }
    std::string defaults;
    for (const auto& input : proto_.input()) {
      if (is_constant(input.name())) {
        defaults += (defaults.empty() ? "" : ", ") + printable(input.name());
        continue;
      }
      TAKT_ASSIGN(const ir::Type type, types.type(input));
      const ValueId id = graph_.add_value(input.name(), type);
      if (!define(input.name(), id))
        return refuse("input " + printable(input.name()) + " has no name or is there twice");
      graph_.inputs.push_back(id);
    }
    if (!defaults.empty() && options.note && model_.ir_version() >= 4) {
      options.note(options.source + ": constant, since the file has their values (initializers), are the inputs " +
                   defaults);
    }
    for (const auto& [name, shape] : options.input_shapes) {
      if (values_.count(name) == 0) return refuse("has no input " + printable(name) + ", for which a shape was given");
    }
    for (const auto& [name, value] : options.dims) {
      if (!has_dimension(name)) {
        return refuse("has no dimension " + printable(name) + " at its inputs, for which a number was given");
      }
    }
    if (!types.unfixed().empty()) {
      return refuse("has dimensions that are not fixed; give each a number (--fix NAME=NUMBER):" + types.unfixed());
    }
    return {};
  }

  [[nodiscard]] bool has_dimension(const std::string& name) const {
    for (const auto& input : proto_.input()) {
      for (const auto& dim : input.type().tensor_type().shape().dim()) {
        if (dim.has_dim_param() && dim.dim_param() == name) return true;
      }
    }
    return false;
  }

  // Nodes in topological order; of those that are ready the first in the file is next.
  Status nodes(const ::onnx::GraphProto& proto) {
    const auto count = static_cast<std::size_t>(proto.node_size());
    std::unordered_map<std::string, std::size_t> writer;
    for (std::size_t n = 0; n < count; ++n) {
      const auto& node = proto.node(static_cast<int>(n));
      for (const std::string& name : node.output()) {
        if (name.empty()) continue;
        if (values_.count(name) != 0 || !writer.emplace(name, n).second) {
          return refuse("node " + printable(node_name(node)) + " writes " + printable(name) +
                        ", which something else writes too");
        }
      }
    }
    std::vector<std::vector<std::size_t>> readers(count);
    std::vector<std::size_t> waits(count, 0);
    for (std::size_t n = 0; n < count; ++n) {
      const auto& node = proto.node(static_cast<int>(n));
      std::set<std::string> names;
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) collect_reads(attribute.g(), names);
      }
      for (const std::string& name : names) {
        // What its subgraphs name and nobody writes is theirs to refuse.
        const auto from = writer.find(name);
        if (from == writer.end() || from->second == n) continue;
        readers[from->second].push_back(n);
        ++waits[n];
      }
      for (const std::string& name : node.input()) {
        if (name.empty() || values_.count(name) != 0) continue;
        const auto from = writer.find(name);
        if (from == writer.end()) {
          if (find(name) != kNoValue) continue;
          return refuse("node " + printable(node_name(node)) + " (" + printable(node.op_type()) + ") reads " +
                        printable(name) + ", which nothing writes");
        }
        readers[from->second].push_back(n);
        ++waits[n];
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t n = 0; n < count; ++n) {
      if (waits[n] == 0) ready.push(n);
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::size_t n = ready.top();
      ready.pop();
      TAKT_RETURN_IF_ERROR(node(proto.node(static_cast<int>(n))));
      ++done;
      for (const std::size_t reader : readers[n]) {
        if (--waits[reader] == 0) ready.push(reader);
      }
    }
    if (done == count) return {};
    std::string names;
    std::size_t listed = 0;
    for (std::size_t n = 0; n < count && listed < kListed; ++n) {
      if (waits[n] == 0) continue;
      names += (listed++ > 0 ? ", " : "") + printable(node_name(proto.node(static_cast<int>(n))));
    }
    return refuse("is cyclic; in a cycle or behind one: " + names + (count - done > listed ? ", ..." : ""));
  }

  // Names that a subgraph reads, those of its own values apart.
  static void collect_reads(const ::onnx::GraphProto& graph, std::set<std::string>& names) {
    std::set<std::string> own, read;
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
    for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
    for (const auto& node : graph.node()) {
      read.insert(node.input().begin(), node.input().end());
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) collect_reads(attribute.g(), read);
      }
    }
    for (const auto& output : graph.output()) read.insert(output.name());
    std::set_difference(read.begin(), read.end(), own.begin(), own.end(), std::inserter(names, names.end()));
  }

  Status node(const ::onnx::NodeProto& node) {
    std::vector<ValueId> in;
    for (const std::string& name : node.input()) in.push_back(name.empty() ? kNoValue : find(name));
    while (!in.empty() && in.back() == kNoValue) in.pop_back();
    int used = node.output_size();
    while (used > 0 && node.output(used - 1).empty()) --used;
    std::vector<ValueId> out;
    for (int i = 0; i < used; ++i) {
      out.push_back(graph_.add_value(prefix_ + node.output(i)));
      define(node.output(i), out.back());
    }
    const std::size_t first = graph_.nodes.size();
    const std::string name = prefix_ + node_name(node);
    if (is_control(node.domain(), node.op_type())) {
      if (node.op_type() == "Loop") loop_names_.push_back(name);
      TAKT_RETURN_IF_ERROR(import_control(*this, {node, opset_, name, std::move(in), std::move(out)}, loops_));
    } else {
      TAKT_RETURN_IF_ERROR(import_node(graph_, node, opset_, name, std::move(in), std::move(out)));
    }
    // What subgraphs added has its guard already.
    for (std::size_t n = first; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].guard < 0) graph_.nodes[n].guard = guard_;
    }
    return {};
  }

  Status outputs() {
    if (proto_.output_size() == 0) return refuse("has no outputs");
    for (const auto& output : proto_.output()) {
      const auto found = values_.find(output.name());
      if (found == values_.end()) return refuse("output " + printable(output.name()) + " is never written");
      const ir::Type& type = *graph_[found->second].type;
      TAKT_RETURN_IF_ERROR(consistent(output, type));
      if (std::ranges::find(graph_.outputs, found->second) != graph_.outputs.end()) {
        return refuse("output " + printable(output.name()) + " is there twice");
      }
      graph_.outputs.push_back(found->second);
    }
    return {};
  }

  // What the model says of an output against what its operators give.
  static Status consistent(const ::onnx::ValueInfoProto& output, const ir::Type& type) {
    if (!output.type().has_tensor_type()) return {};
    const auto& tensor = output.type().tensor_type();
    const auto dtype = element_type(tensor.elem_type());
    bool same = tensor.elem_type() == 0 || (dtype && *dtype == type.dtype);
    std::string text;
    if (tensor.has_shape()) {
      same = same && tensor.shape().dim_size() == type.shape.rank;
      for (int d = 0; d < tensor.shape().dim_size(); ++d) {
        const auto& dim = tensor.shape().dim(d);
        const bool number = dim.has_dim_value();
        // Of a counted dimension a model may name any number up to the capacity.
        const bool counted = type.count != kNoValue && d == type.axis && dim.dim_value() <= type.shape.dims[d];
        same = same && (!number || counted || dim.dim_value() == type.shape.dims[d]);
        text += (d > 0 ? "," : "") + (number ? std::to_string(dim.dim_value()) : "?");
      }
    }
    if (same) return {};
    return refuse("output " + printable(output.name()) + " is declared as " +
                  (dtype ? kernels::name_of(*dtype) : "another type") + "[" + text + "], by its operators it is " +
                  to_string(type));
  }

  const ::onnx::ModelProto& model_;
  const ::onnx::GraphProto& proto_;
  std::int64_t opset_;
  std::string folder_;
  std::function<void(const std::string&)> reads_;
  ir::Graph graph_;
  std::unordered_map<std::string, ValueId> values_;              // of the graph whose nodes are being read
  std::vector<std::unordered_map<std::string, ValueId>> outer_;  // of those around it
  std::unordered_map<const ::onnx::TensorProto*, ValueId> constants_;
  std::map<std::string, std::int64_t> loops_;
  std::vector<std::string> loop_names_;        // of all that were imported
  std::map<std::string, std::string> states_;  // output by input
  std::map<std::string, std::shared_ptr<const ir::Constant>> first_values_;
  std::string prefix_;  // of names of what is inlined
  std::size_t inlined_ = 0;
  int guard_ = -1;
};

Result<ir::Graph> import_model(std::span<const std::byte> bytes, const ImportOptions& options) {
  TAKT_ASSIGN(const ::onnx::ModelProto model, parse(bytes));
  TAKT_RETURN_IF_ERROR(supported(model));
  TAKT_RETURN_IF_ERROR(takt_opset(model));
  TAKT_ASSIGN(const std::int64_t opset, default_opset(model));
  return Importer(model, opset).run(options);
}

}  // namespace

Result<ir::Graph> import_onnx(std::span<const std::byte> bytes, const ImportOptions& options) {
  auto graph = import_model(bytes, options);
  if (!graph) return fail(std::move(graph).error().with_context(options.source));
  return graph;
}

}  // namespace takt::compiler
