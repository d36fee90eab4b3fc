// The order of the nodes decides what is alive at the same time. A beam search over sets of nodes that have run (the
// states of the exact dynamic programme of Ahn et al., "Ordering Chaos", MLSys 2020, of which the best are kept at
// every length) looks for an order whose peak is lower; without one, nodes stay where they are.
#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "compiler/passes/passes.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

constexpr std::size_t kBeam = 48;
constexpr std::size_t kMostNodes = 4096;

struct State {
  std::vector<bool> done;               // by node
  std::vector<std::uint16_t> waiting;   // by node: values that it reads and that are not there yet
  std::vector<std::uint32_t> unread;    // by value: nodes that are still to read it
  std::uint64_t live = 0, peak = 0;     // bytes
  std::vector<std::uint32_t> sequence;  // nodes that have run
};

class Orders {
 public:
  explicit Orders(const Graph& graph) : count_(graph.nodes.size()), bytes_(graph.values.size(), 0) {
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const ir::Value& value = graph.values[v];
      if (value.constant || !value.type) continue;
      bytes_[v] = static_cast<std::uint64_t>(value.type->shape.elements()) * kernels::size_of(value.type->dtype);
    }
    // What the caller owns takes no place in the arena.
    for (const ValueId id : graph.inputs) bytes_[index(id)] = 0;
    for (const ValueId id : graph.outputs) bytes_[index(id)] = 0;
    for (const ir::State& state : graph.states) bytes_[index(state.previous)] = bytes_[index(state.next)] = 0;

    start_.done.assign(count_, false);
    start_.waiting.assign(count_, 0);
    start_.unread.assign(graph.values.size(), 0);
    inputs_.resize(count_);
    outputs_.resize(count_);
    readers_.resize(count_);
    std::vector<std::size_t> root(graph.values.size());  // of views
    std::iota(root.begin(), root.end(), std::size_t{0});
    const std::vector<int> producers = graph.producers();
    for (std::size_t n = 0; n < count_; ++n) {
      const Node& node = graph.nodes[n];
      std::set<std::size_t> read, from;
      std::vector<ValueId> inputs = node.inputs;
      for (int g = node.guard; g >= 0; g = graph.guards[static_cast<std::size_t>(g)].parent) {
        inputs.push_back(graph.guards[static_cast<std::size_t>(g)].condition);
      }
      for (const ValueId id : inputs) {
        if (id == ir::kNoValue || graph[id].constant) continue;
        read.insert(root[index(id)]);
        if (const int producer = producers[index(id)]; producer >= 0) from.insert(static_cast<std::size_t>(producer));
      }
      inputs_[n].assign(read.begin(), read.end());
      for (const std::size_t v : inputs_[n]) ++start_.unread[v];
      for (const std::size_t producer : from) readers_[producer].push_back(static_cast<std::uint32_t>(n));
      start_.waiting[n] = static_cast<std::uint16_t>(from.size());
      const bool view = node.op == "Reshape" || node.op == "Identity";
      for (const ValueId id : node.outputs) {
        if (view && bytes_[index(id)] > 0 && !inputs_[n].empty())
          root[index(id)] = inputs_[n].front();
        else
          outputs_[n].push_back(index(id));
      }
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const State& start() const { return start_; }
  [[nodiscard]] static bool ready(const State& state, std::uint32_t n) {
    return !state.done[n] && state.waiting[n] == 0;
  }

  // Peak and live bytes after one more node.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> after(const State& state, std::uint32_t n) const {
    std::uint64_t live = state.live;
    for (const std::size_t v : outputs_[n]) live += bytes_[v];
    const std::uint64_t peak = std::max(state.peak, live);
    for (const std::size_t v : inputs_[n]) live -= state.unread[v] == 1 ? bytes_[v] : 0;
    for (const std::size_t v : outputs_[n]) live -= state.unread[v] == 0 ? bytes_[v] : 0;
    return {peak, live};
  }
  void run(State& state, std::uint32_t n) const {
    std::tie(state.peak, state.live) = after(state, n);
    for (const std::size_t v : inputs_[n]) --state.unread[v];
    for (const std::uint32_t reader : readers_[n]) --state.waiting[reader];
    state.done[n] = true;
    state.sequence.push_back(n);
  }

  // What no order can be below: the need of the node that needs most.
  [[nodiscard]] std::uint64_t least_peak() const {
    std::uint64_t most = 0;
    for (std::size_t n = 0; n < count_; ++n) {
      std::uint64_t need = 0;
      for (const std::size_t v : inputs_[n]) need += bytes_[v];
      for (const std::size_t v : outputs_[n]) need += bytes_[v];
      most = std::max(most, need);
    }
    return most;
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  std::size_t count_ = 0;
  std::vector<std::uint64_t> bytes_;                        // by value
  std::vector<std::vector<std::size_t>> inputs_, outputs_;  // by node: values that are no views, each once
  std::vector<std::vector<std::uint32_t>> readers_;         // by node
  State start_;
};

}  // namespace

Status order_for_peak(ir::Graph& graph) {
  if (graph.nodes.size() > kMostNodes) return {};
  const Orders orders(graph);
  State as_is = orders.start();
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) orders.run(as_is, n);
  if (as_is.peak == orders.least_peak()) return {};

  struct Child {
    std::size_t parent = 0;
    std::uint32_t node = 0;
    std::uint64_t peak = 0, live = 0;
  };
  std::vector<State> beam = {orders.start()};
  for (std::size_t length = 0; length < orders.count(); ++length) {
    std::vector<Child> children;
    for (std::size_t p = 0; p < beam.size(); ++p) {
      for (std::uint32_t n = 0; n < orders.count(); ++n) {
        if (!Orders::ready(beam[p], n)) continue;
        const auto [peak, live] = orders.after(beam[p], n);
        if (peak < as_is.peak) children.push_back({p, n, peak, live});
      }
    }
    std::stable_sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
      return std::pair(a.peak, a.live) < std::pair(b.peak, b.live);
    });
    // Of orders of the same nodes the first, which is the best, stands for all.
    std::vector<State> next;
    std::set<std::vector<bool>> seen;
    for (const Child& child : children) {
      if (next.size() == kBeam) break;
      std::vector<bool> done = beam[child.parent].done;
      done[child.node] = true;
      if (!seen.insert(std::move(done)).second) continue;
      State state = beam[child.parent];
      orders.run(state, child.node);
      next.push_back(std::move(state));
    }
    beam = std::move(next);
    if (beam.empty()) return {};  // every way reaches the peak that there is
  }
  const std::vector<std::uint32_t> sequence = beam.front().sequence;
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (const std::uint32_t n : sequence) nodes.push_back(std::move(graph.nodes[n]));
  graph.nodes = std::move(nodes);
  return {};
}

}  // namespace takt::compiler
