#include "pipeline/report/requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;
using sched::Quantity;
using Requirements = std::vector<Requirement>;

constexpr std::uint64_t kCopyLimit = 64ULL * 1024;  // bytes per job, DESIGN section 4.4
constexpr std::uint8_t kInputMissing = 3;

void require_chains(const std::vector<ChainJudgement>& chains, const std::string& deadlines_not_judged,
                    Requirements& out) {
  for (const ChainJudgement& chain : chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const QuantityJudgement& quantity = chain.quantities[q];
      if (!quantity.bound || (!chain.context.empty() && quantity.judged() == 0)) continue;
      Requirement requirement{"chain " + chain.name, sched::name_of(static_cast<Quantity>(q)), Outcome::kPass, ""};
      requirement.detail =
          fmt::format("bound {}{}, {}: {} held, {} void, {} violated", ms_text(*quantity.bound),
                      quantity.limit ? " of a limit of " + ms_text(*quantity.limit) : "",
                      quantity.worst ? "measured at most " + ms_text(quantity.published_max) : "none reached an output",
                      quantity.held, quantity.void_count, quantity.violated);
      const Duration error = quantity.stamp_error;
      if (error.ns > 0) requirement.detail += ", twice the clock map's error of " + ms_text(error) + " included";
      if (quantity.violated > 0 || (quantity.limit && *quantity.bound - error - error > *quantity.limit)) {
        requirement.outcome = Outcome::kFail;
      } else if (quantity.limit && *quantity.bound > *quantity.limit) {
        requirement.outcome = Outcome::kNotJudged;
        requirement.detail += "; the limit leaves no room for it";
      } else if (quantity.judged() == 0) {
        requirement.outcome = Outcome::kNotJudged;
        requirement.detail = "no instance reached an output";
      } else if (chain.from == chain.to && quantity.mostly_void()) {  // a change has too few for a share
        requirement.outcome = Outcome::kNotJudged;
        requirement.mostly_void = true;
        requirement.detail += "; most are void";
      } else if (!deadlines_not_judged.empty()) {
        requirement.outcome = Outcome::kNotJudged;
        requirement.detail += "; " + deadlines_not_judged;
      }
      out.push_back(std::move(requirement));
    }
  }
}

void require_transport(const RunData& run, Requirements& out) {
  std::uint64_t moved = 0, hops = 0, most_copied = 0, over_copy = 0, allocations = 0, allocating_jobs = 0;
  std::uint64_t skipped = 0;
  for (const JobRecord& record : run.records) {
    for (std::size_t i = 0; i < record.input_count && i < sched::kMaxInputs; ++i) {
      if (record.inputs[i].kind == kInputMissing) continue;
      ++hops;
      moved += record.inputs[i].moved;
    }
    skipped += record.job_class == JobClass::kSkipped ? 1 : 0;
    most_copied = std::max(most_copied, record.copied_bytes);
    over_copy += record.copied_bytes > kCopyLimit ? 1 : 0;
    if (record.hyperperiod >= 1) {
      allocations += record.allocations;
      allocating_jobs += record.allocations > 0 ? 1 : 0;
    }
  }
  const auto require = [&](std::string name, bool met, std::string detail) {
    out.push_back(
        {"zero copy and steady state", std::move(name), met ? Outcome::kPass : Outcome::kFail, std::move(detail)});
  };
  require("hops keep segment and offset", moved == 0,
          fmt::format("{} of {} taken chunks lay elsewhere than where they were published", count_text(moved),
                      count_text(hops)));
  // A skipped job does not drain its queues, so only a run without skips tells whether the plan is right.
  // Nor does a mode drain the queues of stages that it does not run.
  require("queues hold what the plan says", run.lost_inputs == 0 || skipped > 0 || !run.dispatch.changes.empty(),
          plural(run.lost_inputs, "chunk was", "chunks were") + " lost in the queues of stages, " +
              plural(skipped, "job was", "jobs were") + " skipped");
  if (!run.allocation_guard) {
    for (const char* name : {"bytes copied per job", "allocations after warm-up"}) {
      out.push_back(
          {"zero copy and steady state", name, Outcome::kNotJudged, "calls are not counted in this build (sanitizer)"});
    }
    return;
  }
  require("bytes copied per job", over_copy == 0,
          fmt::format("at most {} of {} in one job; {} above", bytes_text(most_copied), bytes_text(kCopyLimit),
                      plural(over_copy, "job", "jobs")));
  require("allocations after warm-up", allocations == 0,
          fmt::format("{} in {} after the first hyperperiod", count_text(allocations),
                      plural(allocating_jobs, "job", "jobs")));
}

void require_digests(const RunData& run, Requirements& out) {
  for (const TopicDigest& topic : run.digests) {
    if (topic.compared.empty()) continue;
    const bool equal = topic.compared == "equal";
    const bool differs = topic.compared == "differs";
    out.push_back({"replay", "digest of " + topic.topic,
                   equal     ? Outcome::kPass
                   : differs ? Outcome::kFail
                             : Outcome::kNotJudged,
                   topic.digest.hex() + " over " + plural(topic.chunks, "chunk", "chunks") + ": " + topic.compared});
  }
}

// A stage that never ends has failed, whatever its chains lost by it.
void require_ends(const RunData& run, Requirements& out) {
  for (const std::uint32_t stage : run.dispatch.stuck) {
    std::string job = "a job";
    for (const JobRecord& record : run.records) {
      if (record.stage == stage && (record.flags & sched::kFlagStuck) != 0) job = "job " + std::to_string(record.job);
    }
    out.push_back({"stage " + run.problem.stages[stage].name, "comes back", Outcome::kFail,
                   job + " had not come back when the run ended, which left its worker behind"});
  }
}

// A run that did not bear its faults as their file says has failed, whatever it came to.
void require_faults(const RunData& run, Requirements& out) {
  if (!run.faults) return;
  for (const FaultExpectation& e : run.faults->expectations) {
    out.push_back({"fault '" + run.faults->name + "'", e.what, e.met ? Outcome::kPass : Outcome::kFail,
                   "expected " + e.expected + ", seen " + e.seen});
  }
}

// The same bytes again are no better than the run that they are of.
void require_repeated(const RunData& run, Requirements& out) {
  if (!run.repeats || run.interrupted) return;  // a part of it is not that run
  const std::string& was = run.repeats->outcome;
  const Outcome outcome = was == name_of(Outcome::kPass)   ? Outcome::kPass
                          : was == name_of(Outcome::kFail) ? Outcome::kFail
                                                           : Outcome::kNotJudged;
  out.push_back({"replay", "verdict of the run that is repeated", outcome,
                 was + (run.repeats->reason.empty() ? "" : ": " + run.repeats->reason)});
}

}  // namespace

std::vector<Requirement> requirements_of(const RunData& run, const std::vector<ChainJudgement>& chains,
                                         const std::string& deadlines_not_judged) {
  Requirements out;
  require_chains(chains, deadlines_not_judged, out);
  require_transport(run, out);
  require_ends(run, out);
  require_digests(run, out);
  require_faults(run, out);
  require_repeated(run, out);
  return out;
}

}  // namespace takt::pipeline
