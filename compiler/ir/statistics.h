// What a graph asks of a machine, counted: the figures printed before and after passes.
#pragma once

#include <map>
#include <string>

#include "compiler/ir/graph.h"

namespace takt::ir {

struct Statistics {
  std::map<std::string, std::uint64_t> operators;  // nodes by operator
  std::uint64_t nodes = 0;
  std::uint64_t flops = 0;             // a multiply-add counts as 2
  std::uint64_t constant_bytes = 0;    // of constants that nodes read
  std::uint64_t activation_bytes = 0;  // read and written by nodes, constants apart, each use counted
  std::uint64_t peak_bytes = 0;        // most that is alive at one node, constants apart
};
Statistics statistics(const Graph& graph);          // of a verified graph
std::string to_json(const Statistics& statistics);  // one key a line, keys in a fixed order

}  // namespace takt::ir
