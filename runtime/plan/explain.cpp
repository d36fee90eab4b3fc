#include "runtime/plan/explain.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace takt::plan {
namespace {

using Json = nlohmann::ordered_json;

template <class... Args>
std::string text(const char* format, Args... args) {
  char line[256];
  std::snprintf(line, sizeof line, format, args...);
  return line;
}

double kilo(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-3; }

std::string type_of(const Tensor& t) {
  std::string out = std::string(kernels::name_of(t.dtype)) + "[";
  for (int d = 0; d < t.shape.rank; ++d) out += (d > 0 ? "," : "") + std::to_string(t.shape.dims[d]);
  out += "]";
  if (t.count != kNone) out += "#";  // counted
  if (t.layout.block != 0) out += "c" + std::to_string(t.layout.block);
  return out;
}

std::string plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Names come from a model: nothing that a terminal would obey, not longer than a column.
std::string cut(const std::string& name, std::size_t width) {
  std::string out;
  for (const char c : name) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (out.size() > width && width > 2) out = out.substr(0, width - 2) + "..";
  return out;
}

std::string nodes_of(const Step& step) {
  std::string out;
  for (const std::string& node : step.nodes) out += (out.empty() ? "" : "+") + node;
  return out;
}

// Pieces of the arena, each with its life: roots only, since views lie inside them.
template <class Each>
void each_root(const Description& d, Each each) {
  for (const Tensor& t : d.tensors) {
    if (t.storage == Storage::kArena && t.view_of == kNone && t.first_step != kNone) each(t);
  }
}

}  // namespace

std::vector<std::uint64_t> live_bytes(const Description& d) {
  std::vector<std::uint64_t> live(d.steps.size(), 0);
  // Two tensors that share a place in one step, by an in-place step, count once.
  for (std::size_t step = 0; step < live.size(); ++step) {
    std::map<std::uint64_t, std::uint64_t> spans;  // begin to end
    each_root(d, [&](const Tensor& t) {
      if (t.first_step > step || t.last_step < step) return;
      std::uint64_t& end = spans[t.offset];
      end = std::max(end, t.offset + t.bytes);
    });
    std::uint64_t at = 0;
    for (const auto& [begin, end] : spans) {
      if (end <= at) continue;
      live[step] += end - std::max(begin, at);
      at = end;
    }
  }
  return live;
}

std::vector<std::string> arena_map(const Description& d, int rows, int columns) {
  const std::size_t width = std::min(d.steps.size(), static_cast<std::size_t>(std::max(columns, 1)));
  std::vector<std::string> lines(static_cast<std::size_t>(rows), std::string(width, ' '));
  if (d.arena_bytes == 0) return lines;
  std::vector<std::vector<double>> filled(lines.size(), std::vector<double>(width, 0));
  const double cell_bytes = static_cast<double>(d.arena_bytes) / rows;
  const double cell_steps = static_cast<double>(d.steps.size()) / static_cast<double>(width);
  // How much of [a, b) lies in cell i of a size.
  const auto part = [](double a, double b, double size, std::size_t i) {
    const double begin = static_cast<double>(i) * size;
    return std::max(0.0, std::min(b, begin + size) - std::max(a, begin)) / size;
  };
  each_root(d, [&](const Tensor& t) {
    const auto begin = static_cast<double>(t.offset), end = static_cast<double>(t.offset + t.bytes);
    for (std::size_t row = 0; row < lines.size(); ++row) {
      const double space = part(begin, end, cell_bytes, row);
      if (space == 0) continue;
      for (std::size_t column = 0; column < width; ++column) {
        filled[row][column] += space * part(t.first_step, t.last_step + 1.0, cell_steps, column);
      }
    }
  });
  for (std::size_t row = 0; row < lines.size(); ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      const double share = filled[row][column];
      lines[lines.size() - 1 - row][column] = share > 0.5 ? '#' : share > 0.02 ? '+' : '.';
    }
  }
  return lines;
}

std::string explain(const Plan& plan, int width) {
  const Description& d = plan.description();
  const Statistics& s = d.statistics;
  std::vector<std::uint64_t> step_flops, step_moved;
  for (const Step& step : d.steps) {
    step_flops.push_back(step.flops);
    step_moved.push_back(step.bytes_moved);
  }
  const std::uint64_t flops = dearest(d, step_flops), moved = dearest(d, step_moved);
  std::string out = "plan " + cut(d.name, 60) + " for " + kernels::name_of(d.target) + ", " +
                    text("%.1f kB, digest %s\n", kilo(plan.file_bytes()), plan.digest().hex().c_str());
  if (d.source != Digest{}) out += "  made from an ONNX file with digest " + d.source.hex() + "\n";
  if (d.contract != Digest{}) out += "  by a contract with digest " + d.contract.hex() + "\n";
  out += text("  %u operators imported, %u after the passes, %zu steps: %s, %s\n", s.operators_before,
              s.operators_after, d.steps.size(), plural(s.reorders, "reorder").c_str(),
              s.copies == 1 ? "1 copy" : (std::to_string(s.copies) + " copies").c_str());
  out += text("  without a step: %s, %s of concats in place; %s over a dying input\n", plural(s.views, "view").c_str(),
              plural(s.placements, "part").c_str(), plural(s.in_place, "step").c_str());
  out += text("  %.1f MFLOP, %.1f MB moved by the steps\n", static_cast<double>(flops) * 1e-6,
              static_cast<double>(moved) * 1e-6);
  std::string parts;
  for (const std::uint16_t k : d.parts) parts += (parts.empty() ? "" : ", ") + std::to_string(k);
  out += "  workers " + parts + "\n";

  const auto list = [&](const char* title, const std::vector<std::uint32_t>& slots) {
    out += std::string(title) + "\n";
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Tensor& t = d.tensors[slots[i]];
      out += text("  %zu  %-24s %-24s %10.1f kB\n", i, cut(t.name, 24).c_str(), type_of(t).c_str(), kilo(t.bytes));
    }
  };
  list("inputs", d.inputs);
  list("outputs", d.outputs);
  if (!d.states.empty()) out += "state (two halves each), schema " + d.state_schema.hex() + "\n";
  for (std::size_t i = 0; i < d.states.size(); ++i) {
    out += text("  %zu  %-24s %10.1f kB\n", i, cut(d.states[i].name, 24).c_str(), kilo(d.states[i].bytes));
  }

  if (!d.guards.empty()) {
    out += "guards: their steps run only where the condition holds; figures above are those of the dearest way\n";
  }
  for (std::size_t g = 0; g < d.guards.size(); ++g) {
    out += text("  %4zu  ", g) + (d.guards[g].when ? "" : "not ") + cut(d.tensors[d.guards[g].condition].name, 60);
    out += (d.guards[g].parent != kNone ? " in " + std::to_string(d.guards[g].parent) : "") + "\n";
  }
  out += "steps\n     #  kernel                       MFLOP         kB  result                            nodes\n";
  const std::size_t node_width = width > 92 ? static_cast<std::size_t>(width) - 82 : 10;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    const Step& step = d.steps[i];
    const Tensor& result = d.tensors[step.operands[step.operands.size() - plan.kernel(i).outputs]];
    out += text("  %4zu  %-24s %9.3f %10.1f  %-24s ", i, plan.kernel(i).name, static_cast<double>(step.flops) * 1e-6,
                kilo(step.bytes_moved), type_of(result).c_str());
    if (step.guard != kNone) out += "[guard " + std::to_string(step.guard) + "] ";
    out += text("%-8s %s\n", result.storage == Storage::kArena ? "" : name_of(result.storage),
                cut(nodes_of(step), node_width).c_str());
  }

  out +=
      text("memory\n  arena %.1f kB, lower bound %.1f kB (%s); weights %.1f kB in %s\n", kilo(d.arena_bytes),
           kilo(d.lower_bound), name_of(d.proof), kilo(weight_bytes(d)), plural(d.sections.size(), "section").c_str());
  if (d.arena_bytes > 0 && !d.steps.empty()) {
    const std::vector<std::uint64_t> live = live_bytes(d);
    const auto peak = std::max_element(live.begin(), live.end());
    out += text("  most alive: %.1f kB in step %zu; addresses upward, steps to the right:\n", kilo(*peak),
                static_cast<std::size_t>(peak - live.begin()));
    const std::vector<std::string> map = arena_map(d, 16, std::max(20, width - 16));
    for (std::size_t row = 0; row < map.size(); ++row) {
      const double top = kilo(d.arena_bytes) * static_cast<double>(map.size() - row) / static_cast<double>(map.size());
      out += text("  %9.1f |", top) + map[row] + "\n";
    }
  }
  return out;
}

std::string to_json(const Plan& plan) {
  const Description& d = plan.description();
  const Statistics& s = d.statistics;
  Json out;
  out["name"] = d.name;
  out["target"] = kernels::name_of(d.target);
  out["format"] = kFormatVersion;
  out["file_bytes"] = plan.file_bytes();
  out["digest"] = plan.digest().hex();
  out["source"] = d.source.hex();
  out["contract"] = d.contract.hex();
  out["parts"] = d.parts;
  out["statistics"] = {{"operators_before", s.operators_before},
                       {"operators_after", s.operators_after},
                       {"views", s.views},
                       {"placements", s.placements},
                       {"in_place", s.in_place},
                       {"reorders", s.reorders},
                       {"copies", s.copies}};
  const auto tensor = [](const Tensor& t) {
    Json shape = Json::array();
    for (int dim = 0; dim < t.shape.rank; ++dim) shape.push_back(t.shape.dims[dim]);
    return Json{{"name", t.name},
                {"type", kernels::name_of(t.dtype)},
                {"shape", shape},
                {"block", t.layout.block},
                {"storage", name_of(t.storage)},
                {"slot", t.slot},
                {"offset", t.offset},
                {"bytes", t.bytes}};
  };
  for (const auto& [key, slots] : {std::pair{"inputs", &d.inputs}, {"outputs", &d.outputs}}) {
    out[key] = Json::array();
    for (const std::uint32_t slot : *slots) out[key].push_back(tensor(d.tensors[slot]));
  }
  out["states"] = Json::array();
  for (const State& state : d.states) {
    Json shape = Json::array();
    for (int dim = 0; dim < state.shape.rank; ++dim) shape.push_back(state.shape.dims[dim]);
    out["states"].push_back({{"name", state.name},
                             {"type", kernels::name_of(state.dtype)},
                             {"shape", shape},
                             {"bytes", state.bytes},
                             {"first_value", state.initial == kNone ? Json() : Json(state.initial)}});
  }
  out["state_schema"] = d.state_schema.hex();
  out["tensors"] = Json::array();
  for (const Tensor& t : d.tensors) {
    Json entry = tensor(t);
    if (t.view_of != kNone) entry["view_of"] = t.view_of;
    if (t.count != kNone) entry["count"] = {{"tensor", t.count}, {"axis", t.count_axis}};
    if (t.first_step != kNone) entry["steps"] = {t.first_step, t.last_step};
    out["tensors"].push_back(std::move(entry));
  }
  const std::vector<std::uint64_t> live = live_bytes(d);
  out["steps"] = Json::array();
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    const Step& step = d.steps[i];
    Json operands = Json::array();
    for (const std::uint32_t operand : step.operands) operands.push_back(operand == kNone ? Json() : Json(operand));
    out["steps"].push_back({{"kernel", plan.kernel(i).name},
                            {"version", step.version},
                            {"operands", operands},
                            {"flops", step.flops},
                            {"bytes_moved", step.bytes_moved},
                            {"live_bytes", live[i]},
                            {"nodes", step.nodes}});
    if (step.guard != kNone) out["steps"].back()["guard"] = step.guard;
  }
  out["guards"] = Json::array();
  for (const Guard& guard : d.guards) {
    out["guards"].push_back({{"condition", guard.condition},
                             {"when", guard.when},
                             {"parent", guard.parent == kNone ? Json() : Json(guard.parent)}});
  }
  out["sections"] = Json::array();
  for (const Section& section : d.sections) {
    out["sections"].push_back({{"offset", section.offset}, {"bytes", section.bytes}});
  }
  out["arena_bytes"] = d.arena_bytes;
  out["lower_bound"] = d.lower_bound;
  out["proof"] = name_of(d.proof);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace takt::plan
