#include "pipeline/assembly/swap.h"

#include <algorithm>
#include <utility>

#include "scheduler/analysis/validate.h"
#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"

namespace takt::pipeline {
namespace {

// Problem and table with the plan in the variant's place.
Status put_plan(std::size_t stage, std::uint32_t v, const plan::Plan& plan, const exec::PlanBudget& budget,
                sched::Problem& problem, sched::Schedule& table) {
  const plan::Description& d = plan.description();
  sched::Choice& choice = table.choices[stage];
  std::vector<sched::Variant>& variants = problem.stages[stage].variants;
  sched::Variant& variant = variants[v];
  if (!choice.budget.segments.empty()) {
    return fail(
        Code::kConfiguration,
        "its jobs consist of segments on a device, each with its own slot; one budget on the cores says nothing "
        "of them");
  }
  // The slots are those of the chosen variant.
  if (v != choice.variant && budget.job > choice.budget.time) {
    return fail(Code::kGate, "its budget of " + sched::ms_text(budget.job) + " is longer than the " +
                                 sched::ms_text(choice.budget.time) + " of variant '" + variants[choice.variant].name +
                                 "', in whose slots jobs degrade to it");
  }
  // During the exchange both plans keep their weights, and each has its region: held all the time, not job by job. What
  // is shared under a mutex stays.
  const std::int64_t region = std::max(variant.arena, static_cast<std::int64_t>(d.arena_bytes));
  variant.resident += static_cast<std::int64_t>(plan::weight_bytes(d)) + 2 * region;
  if (!variant.arena_mutex) variant.arena = 0;
  const auto lengthen = [&](sched::Budget& own) {
    if (own.cores == choice.budget.cores) own.time = std::max(own.time, budget.job);
  };
  std::for_each(variant.budgets.begin(), variant.budgets.end(), lengthen);
  if (v == choice.variant) lengthen(choice.budget);
  return {};
}

// The same, and whether the table still holds.
Status hold_with(std::size_t stage, std::uint32_t variant, const plan::Plan& plan, const exec::PlanBudget& budget,
                 sched::Problem& problem, sched::Schedule& table) {
  TAKT_RETURN_IF_ERROR(put_plan(stage, variant, plan, budget, problem, table));
  return sched::validate(problem, table);
}

std::string with(const plan::Plan& plan, const std::string& stage) {
  return "with plan '" + plan.description().name + "' in stage '" + stage + "'";
}

template <class Named>
std::size_t place_of(const std::vector<Named>& list, const std::string& name) {
  return static_cast<std::size_t>(
      std::find_if(list.begin(), list.end(), [&](const Named& item) { return item.name == name; }) - list.begin());
}

}  // namespace

Status admits_plan(const sched::Problem& problem, const sched::Schedule& schedule, std::size_t stage,
                   std::uint32_t variant, const plan::Plan& plan, const exec::PlanBudget& budget) {
  sched::Problem changed = problem;
  sched::Schedule table = schedule;
  return hold_with(stage, variant, plan, budget, changed, table).map_error([&](Error error) {
    return std::move(error).with_context("the schedule does not hold " + with(plan, problem.stages[stage].name));
  });
}

Status admits_plan(const sched::ModeSet& set, const std::vector<sched::Answer>& answers, const std::string& stage,
                   const std::string& variant, const plan::Plan& plan, const exec::PlanBudget& budget) {
  sched::ModeSet changed = set;
  std::vector<sched::Answer> tables = answers;
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    const std::vector<sched::Stage>& stages = set.modes[m].problem.stages;
    const std::size_t s = place_of(stages, stage);
    if (s == stages.size()) continue;
    const std::size_t v = place_of(stages[s].variants, variant);
    const std::vector<std::uint32_t> run = sched::variants_with(stages[s], answers[m].schedule->choices[s].variant);
    if (std::find(run.begin(), run.end(), v) == run.end()) continue;
    TAKT_RETURN_IF_ERROR(
        hold_with(s, static_cast<std::uint32_t>(v), plan, budget, changed.modes[m].problem, *tables[m].schedule)
            .map_error([&](Error error) {
              return std::move(error).with_context("mode '" + set.modes[m].name + "' does not hold " +
                                                   with(plan, stage));
            }));
  }
  const sched::ModesAnswer judged = sched::judge_modes(changed, tables);
  if (!judged.refusal.empty()) {
    return fail(Code::kGate, "the modes do not hold together " + with(plan, stage) + ": " + judged.refusal);
  }
  for (const sched::ChangeAnswer& change : judged.changes) {
    if (change.refusal.empty()) continue;
    return fail(Code::kGate, "the change from mode '" + set.modes[change.from].name + "' to '" +
                                 set.modes[change.to].name + "' does not hold " + with(plan, stage) + ": " +
                                 change.refusal);
  }
  return {};
}

}  // namespace takt::pipeline
