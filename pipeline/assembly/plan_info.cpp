#include "pipeline/assembly/plan_info.h"

#include <algorithm>

#include "kernels/kernel.h"
#include "runtime/plan/plan.h"

namespace takt::pipeline {

PlanInfo plan_info(std::uint32_t stage, const ModelContract* model, const exec::Session& session,
                   const exec::CountLog* counts) {
  const plan::Plan& plan = session.plan();
  const plan::Description& d = plan.description();
  PlanInfo out;
  out.stage = stage;
  out.model = model != nullptr ? model->name : d.name;
  if (model != nullptr) {
    out.model_file = model->file;
    out.licence = model->licence;
  }
  out.target = kernels::name_of(d.target);
  out.plan = plan.digest();
  out.operators_before = d.statistics.operators_before;
  out.operators_after = d.statistics.operators_after;
  out.views = d.statistics.views;
  out.placements = d.statistics.placements;
  out.in_place = d.statistics.in_place;
  out.reorders = d.statistics.reorders;
  out.copies = d.statistics.copies;
  out.file_bytes = plan.file_bytes();
  for (const plan::Section& section : d.sections) out.weight_bytes += section.bytes;
  out.arena_bytes = d.arena_bytes;
  out.lower_bound = d.lower_bound;
  out.proof = plan::name_of(d.proof);
  for (std::size_t s = 0; s < d.steps.size(); ++s) {
    const plan::Step& step = d.steps[s];
    PlanStep& row = out.steps.emplace_back();
    row.kernel = plan.kernel(s).name;
    for (const std::string& node : step.nodes) row.nodes += (row.nodes.empty() ? "" : " ") + node;
    row.flops = step.flops;
    row.bytes_moved = step.bytes_moved;
    const exec::StepProfile times = session.profile(s);
    row.runs = times.count;
    row.minimum = {times.minimum_ns};
    row.maximum = {times.maximum_ns};
  }
  for (const plan::Tensor& t : d.tensors) {
    // Views lie in the bytes of another tensor, which lives at least as long.
    if (t.storage != plan::Storage::kArena || t.view_of != plan::kNone || t.first_step == plan::kNone) continue;
    out.arena.push_back({t.name, t.offset, t.bytes, t.first_step, t.last_step});
    for (std::uint32_t s = t.first_step; s <= t.last_step && s < out.steps.size(); ++s) {
      out.steps[s].live_bytes += t.bytes;
    }
  }
  if (counts == nullptr) return out;
  out.counted_jobs = counts->jobs();
  for (const exec::CountLog::Counter& c : counts->counters()) {
    PlanCounter& row = out.counters.emplace_back();
    row = {c.name, c.capacity, c.maximum, c.total, {}};
    for (std::size_t i = 0; i < counts->kept(); ++i) row.latest.push_back(counts->job(i)[out.counters.size() - 1]);
  }
  return out;
}

}  // namespace takt::pipeline
