// Several networks and operators as one graph, hence one plan, one arena, one job (docs/composition.md is the file).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace takt::compiler {

struct Composition {
  // What a part reads or the composition gives out; with neither name nor constant: an operator's optional input that
  // is left out.
  struct Source {
    std::string of;                                // an input of the composition, or a part
    std::string output;                            // of that part; empty: its only one
    std::shared_ptr<const ir::Constant> constant;  // in place of both
    std::string where;                             // "file:line:column", in front of messages
  };
  struct Input {
    std::string name;
    ir::Type type;
    std::string where;
    std::string counted = {};  // an i32 scalar input: how many rows are valid; empty: all are
  };
  struct Feed {
    std::string input;  // of a network, by name; operators take theirs in order
    Source from;
  };
  // A network (its ONNX bytes), or an operator: one of ONNX's in the newest form, or takt's own ("takt.Preprocess").
  struct Part {
    std::string name;
    std::string where;
    std::string onnx;    // bytes
    std::string source;  // their file's name, for messages
    std::string op;      // empty: a network
    std::map<std::string, ir::Attribute> attributes;
    std::vector<std::string> outputs;  // names of an operator's outputs; empty: one without a name
    // Of a network, as in Options: the most trips of its loops, its inputs that are state and what continues them.
    std::map<std::string, std::int64_t> loops;
    std::map<std::string, std::string> states;
    std::vector<Feed> feeds;
  };
  struct Output {
    std::string name;
    Source from;
  };
  std::string name;
  std::vector<Input> inputs;
  std::vector<Part> parts;  // in any order
  std::vector<Output> outputs;
};

// Symbolic dimensions of a network are fixed by what feeds its inputs, and what feeds them counted rows counts them.
// Values of part P are called "P/...". What no output needs is left out. kConfiguration, with the place, when something
// reads what is not there or of another type, parts feed each other in a circle, an input of a network is not fed, an
// input of the composition feeds nothing; kInput, with the place, for a network that cannot be imported.
Result<ir::Graph> compose(const Composition& composition);

// The bytes of the plan. Options.source, dims, input_shapes and preprocess belong to single models and are not looked
// at; loops and states are those of the parts.
Result<std::vector<std::byte>> compile_composition(const Composition& composition, const Options& options);

}  // namespace takt::compiler
