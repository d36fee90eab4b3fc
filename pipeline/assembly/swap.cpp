#include "pipeline/assembly/swap.h"

#include <algorithm>

#include "scheduler/analysis/validate.h"

namespace takt::pipeline {

Status admits_plan(const sched::Problem& problem, const sched::Schedule& schedule, std::size_t stage,
                   const plan::Plan& plan, const exec::PlanBudget& budget) {
  const plan::Description& d = plan.description();
  std::int64_t weights = 0;
  for (const plan::Section& section : d.sections) weights += static_cast<std::int64_t>(section.bytes);
  sched::Problem changed = problem;
  sched::Schedule table = schedule;
  sched::Choice& choice = table.choices[stage];
  sched::Variant& variant = changed.stages[stage].variants[choice.variant];
  // What is declared stays reserved; a plan that needs more is judged by what it needs.
  variant.arena = std::max(variant.arena, static_cast<std::int64_t>(d.arena_bytes));
  variant.resident = std::max(variant.resident, weights);
  choice.budget.time = budget.job;
  for (sched::Budget& own : variant.budgets) {
    if (own.cores == choice.budget.cores) own.time = budget.job;
  }
  Status valid = sched::validate(changed, table);
  if (valid) return {};
  return fail(std::move(valid).error().with_context("the schedule does not hold with plan '" + d.name + "' in stage '" +
                                                    problem.stages[stage].name + "'"));
}

}  // namespace takt::pipeline
