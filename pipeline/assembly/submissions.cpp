#include "pipeline/assembly/submissions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "pipeline/report/commands.h"
#include "runtime/exec/segments.h"
#include "runtime/plan/plan.h"
#include "scheduler/model/text.h"

namespace takt::pipeline {
namespace {

using sched::ms_text;

template <class Figures>
const Figures* of_unit(const std::vector<Figures>& all, const std::string& unit) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Figures& one) { return one.unit == unit; });
  return found == all.end() ? nullptr : &*found;
}

// What the program does to show where a stage's plan is cut.
std::string how_to_look(const PipelineConfig& config, const std::string& stage, const std::string& variant,
                        const std::string& unit, const ModelFiles& models) {
  std::string replaced;
  for (const auto& [name, file] : models) replaced += " --model " + shell_quoted(name + "=" + file);
  const std::string plan = shell_quoted(stage + ".plan");
  return program() + " compile " + shell_quoted(config.file) + " --stage " + shell_quoted(stage + "/" + variant) +
         replaced + " --target " + kernels::name_of(config.device.target) + " -o " + plan + " && " + program() +
         " plan show " + plan + " --board " + shell_quoted(config.board_file) + " --unit " + shell_quoted(unit);
}

// Collects the errors of one variant.
class Judge {
 public:
  Judge(const PipelineConfig& config, std::size_t stage, std::size_t index, const sched::UnitFigures& figures,
        const ModelFiles& models)
      : config_(config),
        stage_(config.problem.stages[stage]),
        variant_(stage_.variants[index]),
        plan_(*config.stages[stage].variant(variant_.name).plan),
        figures_(figures),
        models_(models) {}

  // As the guard of the GPU cuts the plan; nullptr: of the first GPU that declares one.
  std::vector<std::size_t> cut(const sched::Unit* unit, const YamlNode& at) const {
    const sched::GpuFigures* gpu = unit != nullptr ? of_unit(figures_.gpus, unit->name) : nullptr;
    if (unit == nullptr && !figures_.gpus.empty()) gpu = &figures_.gpus.front();
    if (gpu == nullptr) return {};
    const auto steps = exec::predicted_times(plan_.description(), {gpu->gflops, gpu->gb_s, gpu->step});
    auto segments = exec::cut_into_segments(plan_, steps, gpu->guard);
    if (segments) return std::move(segments->cuts);
    at.error(where() + "the guard of unit '" + gpu->unit + "' (" + config_.board_file +
             ") cannot be kept: " + segments.error().message);
    return {};
  }

  void judge(const DeviceSlots& slots, const sched::Budget& budget, const exec::Submissions& submissions,
             const YamlNode& at) const {
    const std::string& unit = config_.problem.board.units[slots.unit].name;
    const std::size_t cuts = submissions.cuts.size() + 1;
    if (const sched::GpuFigures* const gpu = of_unit(figures_.gpus, unit)) {
      if (slots.segments != cuts) {
        at.error(where() + "the budget has " + count(slots.segments) + " on '" + unit + "', and the guard of " +
                 ms_text(gpu->guard) + " cuts the plan into " + std::to_string(cuts) +
                 ". Where: " + how_to_look(config_, stage_.name, variant_.name, unit, models_));
      }
    } else if (slots.segments != 1) {
      at.error(where() + "the budget has " + count(slots.segments) + " on '" + unit + "', but the board (" +
               config_.board_file + ") says nothing of that GPU by which a plan could be cut. Give it the figures " +
               "{gflops, gb_s, step_us, guard_ms}, or the stage one segment");
    }
    if (submissions.copies_in != slots.copy_in.has_value() || submissions.copies_out != slots.copy_out.has_value()) {
      at.error(where() + "of its budgets some have segments for copies and others have none");
    }
    for (const auto& [engine, in] : {std::pair(slots.copy_in, true), std::pair(slots.copy_out, false)}) {
      if (engine) judge_copy(*engine, in, budget, at);
    }
  }

 private:
  static std::string count(std::size_t segments) {
    return std::to_string(segments) + (segments == 1 ? " segment" : " segments");
  }
  [[nodiscard]] std::string where() const { return "stage '" + stage_.name + "', variant '" + variant_.name + "': "; }
  void judge_copy(std::uint32_t engine, bool in, const sched::Budget& budget, const YamlNode& at) const {
    const std::string& unit = config_.problem.board.units[engine].name;
    if (config_.device.exchange == exec::Exchange::kInPlace) {
      at.error(where() + "nothing is copied on '" + unit +
               "': this device reads chunks in place. Leave that segment out, or copy with --device-memory copied");
      return;
    }
    const sched::CopyFigures* const figures = of_unit(figures_.copies, unit);
    if (figures == nullptr) return;
    const std::uint64_t bytes = bytes_of(plan_, in ? plan_.description().inputs : plan_.description().outputs);
    const Duration least{static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / figures->gb_s))};
    const sched::Segment& segment = in ? budget.segments[1] : budget.segments[budget.segments.size() - 2];
    if (segment.time >= least) return;
    at.error(where() + "copying " + std::to_string(bytes) + " bytes takes at least " + ms_text(least) + " on '" + unit +
             "' (" + config_.board_file + "), its segment has " + ms_text(segment.time));
  }

  const PipelineConfig& config_;
  const sched::Stage& stage_;
  const sched::Variant& variant_;
  const plan::Plan& plan_;
  const sched::UnitFigures& figures_;
  const ModelFiles& models_;
};

}  // namespace

std::uint64_t bytes_of(const plan::Plan& plan, const std::vector<std::uint32_t>& tensors) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t tensor : tensors) bytes += plan.description().tensors[tensor].bytes;
  return bytes;
}

std::optional<DeviceSlots> device_slots(const sched::Budget& budget, const sched::Board& board) {
  const std::vector<sched::Segment>& segments = budget.segments;
  if (segments.size() < 3 || segments.front().unit || segments.back().unit) return std::nullopt;
  DeviceSlots out;
  std::size_t first = 1, end = segments.size() - 1;
  for (std::size_t i = first; i < end; ++i) {
    if (!segments[i].unit) return std::nullopt;
  }
  const auto copies = [&](std::size_t i) {
    return board.units[*segments[i].unit].kind == sched::UnitKind::kCopyEngine;
  };
  if (copies(first)) out.copy_in = segments[first++].unit;
  if (end > first && copies(end - 1)) out.copy_out = segments[--end].unit;
  if (first == end) return std::nullopt;
  out.unit = *segments[first].unit;
  out.segments = end - first;
  for (std::size_t i = first; i < end; ++i) {
    if (copies(i) || *segments[i].unit != out.unit) return std::nullopt;
  }
  return out;
}

exec::Submissions submissions_of(const PipelineConfig& config, std::size_t stage, std::size_t index,
                                 const sched::UnitFigures& figures, const ModelFiles& models, const YamlNode& variant) {
  const Judge judge(config, stage, index, figures, models);
  const std::vector<sched::Budget>& budgets = config.problem.stages[stage].variants[index].budgets;
  const std::vector<YamlNode> nodes = variant.at("budgets").items();
  exec::Submissions out;
  bool cut = false;
  for (std::size_t b = 0; b < budgets.size(); ++b) {
    if (budgets[b].segments.empty()) continue;
    const YamlNode at = nodes[b].at("segments");
    const auto slots = device_slots(budgets[b], config.problem.board);
    if (!slots) {
      at.error("a job on a device is " + std::string(kDeviceOrder));
      continue;
    }
    if (!cut) {
      out.cuts = judge.cut(&config.problem.board.units[slots->unit], at);
      out.copies_in = slots->copy_in.has_value();
      out.copies_out = slots->copy_out.has_value();
      cut = true;
    }
    judge.judge(*slots, budgets[b], out, at);
  }
  if (!cut) out.cuts = judge.cut(nullptr, variant);
  return out;
}

}  // namespace takt::pipeline
