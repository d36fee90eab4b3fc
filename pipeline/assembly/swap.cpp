#include "pipeline/assembly/swap.h"

#include <algorithm>

#include "scheduler/analysis/validate.h"

namespace takt::pipeline {

Status admits_plan(const sched::Problem& problem, const sched::Schedule& schedule, std::size_t stage,
                   const plan::Plan& plan, const exec::PlanBudget& budget) {
  const plan::Description& d = plan.description();
  sched::Problem changed = problem;
  sched::Schedule table = schedule;
  sched::Choice& choice = table.choices[stage];
  sched::Variant& variant = changed.stages[stage].variants[choice.variant];
  // During the exchange both plans keep their weights, and each has its region: held all the time, not job by job.
  const std::int64_t region = std::max(variant.arena, static_cast<std::int64_t>(d.arena_bytes));
  variant.resident += static_cast<std::int64_t>(plan::weight_bytes(d)) + 2 * region;
  variant.arena = 0;
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
