#include "pipeline/report/report_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "pipeline/report/baselines.h"
#include "pipeline/report/breakdown.h"
#include "pipeline/report/causes.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/html.h"
#include "pipeline/report/plans.h"
#include "pipeline/report/score.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using Json = nlohmann::ordered_json;

Json optional_ns(const std::optional<Duration>& d) { return d ? Json(d->ns) : Json(nullptr); }

Json broken_json(const RunData& run, const Broken& broken) {
  Json out;
  out["assumption"] = name_of(broken.assumption);
  out["subject"] =
      broken.by_sensor ? run.problem.sensors[broken.subject].name : run.problem.stages[broken.subject].name;
  out[broken.by_sensor ? "sample" : "job"] = broken.number;
  out["detail"] = broken.detail;
  return out;
}

// The worst latency instance of a chain, its cause and where its time went.
Json worst_json(const RunData& run, const RecordIndex& index, std::size_t chain, const QuantityJudgement& quantity) {
  if (!quantity.worst) return nullptr;
  const Instance& worst = quantity.instances[*quantity.worst];
  Json parts = Json::array();
  for (const Part& part : breakdown(run, index, chain, worst)) {
    parts.push_back({{"label", part.label}, {"ns", part.time.ns}});
  }
  return {{"sample", worst.sample},
          {"capture_ns", worst.capture.ns},
          {"output_job", worst.output},
          {"published_ns", worst.published.ns},
          {"completed_ns", worst.completed.ns},
          {"state", name_of(worst.state)},
          {"path_jobs", worst.path},
          {"cause", cause_in_words(run, index, {chain, static_cast<std::uint32_t>(chain), &worst, 0})},
          {"parts", std::move(parts)}};
}

// Of all instances that reached an output; null where none did.
Json largest(const QuantityJudgement& quantity, Duration d) { return quantity.worst ? Json(d.ns) : Json(nullptr); }
Json largest_held(const QuantityJudgement& quantity) {
  return quantity.held > 0 ? Json(quantity.held_max.ns) : Json(nullptr);
}

Json quantity_json(const QuantityJudgement& quantity) {
  return {{"bound_ns", optional_ns(quantity.bound)},
          {"limit_ns", optional_ns(quantity.limit)},
          {"completed_max_ns", largest(quantity, quantity.completed_max)},
          {"published_max_ns", largest(quantity, quantity.published_max)},
          {"held_max_ns", largest_held(quantity)},
          {"held", quantity.held},
          {"void", quantity.void_count},
          {"violated", quantity.violated},
          {"fill", quantity.fill}};
}

// The chain as a flat object (its latency), and the four quantities below it.
Json chain_json(const RunData& run, const RecordIndex& records, std::size_t index, const ChainJudgement& chain) {
  const QuantityJudgement& latency = chain.latency();
  const sched::Chain& declared = run.problem.chains[index];
  Json out;
  out["name"] = chain.name;
  out["mode"] = chain.context.empty() ? Json(nullptr) : Json(chain.context);
  out["bound_ns"] = optional_ns(latency.bound);
  out["limit_ns"] = optional_ns(latency.limit);
  out["slack_ns"] = latency.bound && latency.limit ? Json(latency.limit->ns - latency.bound->ns) : Json(nullptr);
  out["completed_max_ns"] = largest(latency, latency.completed_max);
  out["published_max_ns"] = largest(latency, latency.published_max);
  out["held_max_ns"] = largest_held(latency);
  out["model_tightness"] = latency.bound && latency.held_max.ns > 0
                               ? Json(static_cast<double>(latency.bound->ns) / static_cast<double>(latency.held_max.ns))
                               : Json(nullptr);
  out["held"] = latency.held;
  out["void"] = latency.void_count;
  out["violated"] = latency.violated;
  out["fill"] = latency.fill;
  out["worst_frame"] = worst_json(run, records, index, latency);
  out["sensor"] = run.problem.sensors[declared.sensor].name;
  out["stages"] = Json::array();
  for (const std::uint32_t stage : declared.stages) out["stages"].push_back(run.problem.stages[stage].name);
  const sched::Schedule& table = chain.context.empty() ? run.schedule : run.modes[chain.to].schedule;
  const auto bound = std::find_if(table.bounds.begin(), table.bounds.end(),
                                  [&](const sched::ChainBound& b) { return b.chain == index; });
  out["bound_terms"] = chain.from != chain.to || bound == table.bounds.end() ? "" : bound->terms;
  for (std::size_t q = 0; q < sched::kQuantities; ++q) {
    out["quantities"][sched::kQuantityKeys[q]] = quantity_json(chain.quantities[q]);
  }
  return out;
}

// Instances that are not held, with what broke on their path.
Json exceptions_json(const RunData& run, const Judgement& judgement) {
  Json out = Json::array();
  for (const ChainJudgement& chain : judgement.chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      for (const Instance& instance : chain.quantities[q].instances) {
        if (instance.state != InstanceState::kVoid && instance.state != InstanceState::kViolated) continue;
        Json entry;
        entry["chain"] = chain.name;
        entry["quantity"] = sched::kQuantityKeys[q];
        entry["state"] = name_of(instance.state);
        entry["sample"] = instance.sample;
        entry["capture_ns"] = instance.capture.ns;
        entry["output_job"] = instance.reached ? Json(instance.output) : Json(nullptr);
        entry["published_ns"] = instance.reached ? Json(instance.published.ns) : Json(nullptr);
        entry["broken"] = Json::array();
        for (const Broken& broken : instance.broken) entry["broken"].push_back(broken_json(run, broken));
        out.push_back(std::move(entry));
      }
    }
  }
  return out;
}

Json times_json(const Distribution& d) {
  return {{"samples", d.sorted.size()},
          {"min_ns", d.min().ns},
          {"p50_ns", d.quantile(0.5).ns},
          {"p99_ns", d.quantile(0.99).ns},
          {"max_ns", d.max().ns}};
}

// Every budget that jobs of the stage may run under, with their times.
Json budgets_json(const RunData& run, std::size_t stage, const std::vector<BudgetUse>& uses) {
  Json out = Json::array();
  for (const BudgetUse& use : uses) {
    if (use.stage != stage) continue;
    Json admitted = Json::array();
    for (const BudgetUse::Admitted& in : use.admitted) {
      admitted.push_back({{"mode", run.modes.empty() ? Json(nullptr) : Json(run.modes[in.mode].name)},
                          {"jobs_per_hyperperiod", in.jobs}});
    }
    out.push_back({{"variant", run.problem.stages[stage].variants[use.variant].name},
                   {"cores", use.budget.cores},
                   {"budget_ns", use.budget.time.ns},
                   {"provenance", sched::name_of(use.budget.provenance)},
                   {"admitted", std::move(admitted)},
                   {"run", times_json(use.run)},
                   {"cpu", times_json(use.cpu)}});
  }
  return out;
}

Json stage_json(const RunData& run, std::size_t index, const StageStatistics& figures,
                const std::vector<BudgetUse>& uses) {
  const sched::Choice& choice = run.schedule.choices[index];
  const sched::Budget& budget = choice.budget;
  Json out;
  out["name"] = run.problem.stages[index].name;
  out["type"] = index < run.stages.size() ? run.stages[index].type : "";
  out["variant"] = index < run.stages.size() ? run.stages[index].variant : "";
  out["topic"] = index < run.stages.size() ? run.stages[index].topic : "";
  out["rate_per_hyperperiod"] = choice.rate;
  out["cores"] = budget.cores;
  out["budget_ns"] = budget.time.ns;
  out["provenance"] = sched::name_of(budget.provenance);
  out["profile_samples"] = budget.samples;
  out["margin"] = budget.margin;
  out["profile_high_water_ns"] = budget.high_water.ns;
  out["measured_max_ns"] = figures.run.max().ns;
  out["measured_p50_ns"] = figures.run.quantile(0.5).ns;
  out["measured_p99_ns"] = figures.run.quantile(0.99).ns;
  out["measured_in"] = run.mode == "lockstep" ? "virtual time" : "wall time";
  out["tightness"] = run.mode != "lockstep" && figures.run.max().ns > 0
                         ? Json(static_cast<double>(budget.time.ns) / static_cast<double>(figures.run.max().ns))
                         : Json(nullptr);
  out["budgets"] = budgets_json(run, index, uses);
  out["run"] = times_json(figures.run);
  out["cpu"] = times_json(figures.cpu);
  if (!figures.launch.empty()) {
    out["launch"] = times_json(figures.launch);
    out["device"] = times_json(figures.device);
  }
  out["start_error"] = times_json(figures.start);
  out["publish"] = times_json(figures.publish);
  out["jobs"] = figures.jobs;
  out["published"] = figures.published;
  out["fill"] = figures.fill;
  Json classes;
  for (std::size_t c = 0; c < sched::kJobClasses; ++c) {
    classes[sched::name_of(static_cast<sched::JobClass>(c))] = figures.classes[c];
  }
  out["job_classes"] = classes;
  out["repeat_inputs"] = figures.repeats;
  out["held_inputs"] = figures.held_inputs;
  out["missing_inputs"] = figures.missing_inputs;
  out["repaired"] = figures.repaired;
  out["page_faults"] = figures.page_faults;
  out["page_faults_after_warmup"] = figures.page_faults_after_warmup;
  out["major_faults_after_warmup"] = figures.major_faults_after_warmup;
  out["voluntary_switches"] = figures.voluntary_switches;
  out["involuntary_switches"] = figures.involuntary_switches;
  out["allocations_after_warmup"] = figures.allocations_after_warmup;
  out["copied_bytes_max_per_job"] = figures.most_copied;
  return out;
}

Json misses_json(const RunData& run, const Judgement& judgement) {
  Json out = Json::array();
  for (const Miss& miss : judgement.misses) {
    const sched::JobRecord& record = *miss.record;
    out.push_back({{"stage", run.problem.stages[record.stage].name},
                   {"job", record.job},
                   {"hyperperiod", record.hyperperiod},
                   {"nominal_start_ns", record.nominal_start},
                   {"class", sched::name_of(record.job_class)},
                   {"published", record.published != 0},
                   {"cause", miss.cause},
                   {"effect", miss.effect}});
  }
  return out;
}

Json memory_json(const RunData& run) {
  Json pools = Json::array();
  for (std::size_t i = 0; i < run.pools.pools.size(); ++i) {
    const transport::Pool& pool = run.pools.pools[i];
    Json entry{{"payload_capacity", pool.payload_capacity},
               {"chunk_bytes", pool.chunk_bytes},
               {"chunks", pool.chunks},
               {"most_used", nullptr},
               {"topics", pool.topics}};
    for (const transport::PoolUse& use : run.pool_use) {
      if (use.chunk_bytes == pool.chunk_bytes) entry["most_used"] = use.most_used;
    }
    pools.push_back(std::move(entry));
  }
  std::uint64_t allocations = 0;
  for (const sched::JobRecord& record : run.records) {
    if (record.hyperperiod >= 1) allocations += record.allocations;
  }
  return {{"pools", std::move(pools)},
          {"pool_bytes", run.pools.user_bytes},
          {"management_bytes", run.pools.management_bytes},
          {"resident_bytes", run.resident_bytes},
          {"allocations_counted", run.allocation_guard},
          {"allocations_after_warmup", allocations}};
}

Json stalls_json(const RunData& run) {
  Json out = Json::array();
  for (const HostStall& stall : run.host_stalls) {
    const auto& cores = run.problem.board.cores;
    const auto core = static_cast<std::size_t>(stall.core);
    out.push_back({{"kind", stall.core < 0 ? "process stopped" : "steal"},
                   {"core", stall.core < 0 || core >= cores.size() ? Json(nullptr) : Json(cores[core].name)},
                   {"from_ns", stall.from_ns},
                   {"to_ns", stall.to_ns},
                   {"lost_ns", stall.lost.ns}});
  }
  return out;
}

Json baselines_json(const RunData& run, const std::vector<Baseline>& baselines) {
  Json out = Json::array();
  for (const Baseline& baseline : baselines) {
    Json chains = Json::array();
    for (std::size_t c = 0; c < baseline.chains.size(); ++c) {
      const BaselineChain& figures = baseline.chains[c];
      chains.push_back({{"name", run.problem.chains[c].name},
                        {"worst_latency_ns", figures.worst_latency.ns},
                        {"jitter_ns", figures.jitter.ns},
                        {"outputs", figures.outputs},
                        {"planned", figures.planned},
                        {"misses", figures.misses}});
    }
    out.push_back({{"way", name_of(baseline.way)}, {"load", baseline.load}, {"chains", std::move(chains)}});
  }
  return out;
}

Json faults_json(const RunData& run) {
  if (!run.faults) return nullptr;
  Json expectations = Json::array();
  for (const FaultExpectation& e : run.faults->expectations) {
    expectations.push_back({{"what", e.what}, {"expected", e.expected}, {"seen", e.seen}, {"met", e.met}});
  }
  return {{"name", run.faults->name},     {"what", run.faults->what}, {"injected", run.faults->injected},
          {"struck", run.faults->struck}, {"met", run.faults->met()}, {"expectations", std::move(expectations)}};
}

Json environment_json(const RunData& run) {
  const Environment& e = run.environment;
  return {{"host", e.host},
          {"kernel", e.kernel},
          {"cpu_model", e.cpu_model},
          {"cores", e.cores},
          {"isa_class", e.isa_class},
          {"clock_source", e.clock_source},
          {"governor", e.governor},
          {"preempt_rt", e.preempt_rt},
          {"cgroup_quota_cores", e.cgroup_quota_cores},
          {"steal_share", e.steal_share},
          {"host_stalls", stalls_json(run)},
          {"accounting", {{"per_job_ns", run.dispatch.accounting.ns}, {"watch_cpu_ns", run.watch_cost.ns}}},
          {"shared_memory_free", e.shared_memory_free},
          {"compiler", e.compiler},
          {"jpeg_library", e.jpeg_library},
          {"rights",
           {{"fifo", run.dispatch.rights.fifo},
            {"affinity", run.dispatch.rights.affinity},
            {"memory_locked", run.dispatch.rights.memory_locked},
            {"refused", run.dispatch.rights.refused},
            {"isolation", run.dispatch.rights.isolation}}},
          {"warnings", e.warnings}};
}

Json health_json(const RunData& run) {
  Json out = Json::array();
  for (const SensorHealth& h : run.health) {
    const auto sensor = run.rig.find(h.sensor);
    const bool known = sensor && *sensor < run.sources.size();
    out.push_back({{"sensor", h.sensor},
                   {"stamp_error_ns", known ? run.sources[*sensor].stamp.error.ns : 0},
                   {"messages", h.messages},
                   {"bad_frames", h.bad_frames},
                   {"invalid_points", h.invalid_points},
                   {"dropped_points", h.dropped_points},
                   {"gaps", h.gaps},
                   {"repeats", h.repeats},
                   {"order_faults", h.order_faults},
                   {"other_stamps", h.other_stamps},
                   {"unused", h.unused},
                   {"examples", h.examples}});
  }
  return out;
}

Json score_json(const RunData& run) {
  if (run.truth.empty()) return nullptr;
  const ScoreRule rule;
  const Score score = score_tracks(run.tracks, run.truth, rule);
  const auto class_json = [](const ClassScore& c) {
    return Json{{"truth", c.truth},
                {"tracks", c.tracks},
                {"matched", c.matched},
                {"recall", c.recall()},
                {"precision", c.precision()},
                {"mean_position_error_m", c.mean_position_error_m()},
                {"id_switches", c.id_switches}};
  };
  return {{"lists", score.lists},
          {"unjudged_lists", score.unjudged},
          {"match_distance_m", rule.match_distance_m},
          {"range_m", rule.range_m},
          {"min_lidar_points", rule.min_lidar_points},
          {"vehicles", class_json(score.total)},
          {"vehicles_after_fill", class_json(score.after_fill)}};
}

Json schedule_json(const RunData& run) {
  const sched::Schedule& schedule = run.schedule;
  Json slots = Json::array();
  for (const sched::Slot& slot : schedule.slots) {
    slots.push_back({{"stage", run.problem.stages[slot.stage].name},
                     {"job", slot.job},
                     {"segment", slot.segment},
                     {"cores", slot.cores},
                     {"unit", slot.unit ? Json(run.problem.board.units[*slot.unit].name) : Json(nullptr)},
                     {"start_ns", schedule.clock.start_at(0, slot.start).ns},
                     {"end_ns", schedule.clock.end_at(0, slot.end).ns}});
  }
  Json cores = Json::array();
  const std::vector<CoreShare> shares = core_shares(run);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const sched::Core& core = run.problem.board.cores[i];
    cores.push_back({{"name", core.name},
                     {"cpu", core.cpu},
                     {"housekeeping_reserve", core.reserve},
                     {"wakeup_window_ns", core.wakeup_window.ns},
                     {"publish_window_ns", core.publish_window.ns},
                     {"planned_share", shares[i].planned},
                     {"busy_share", shares[i].busy}});
  }
  return {{"hash", schedule.hash().hex()},
          {"board", run.problem.board.name},
          {"hyperperiod_ns", schedule.clock.hyperperiod.ns},
          {"ticks", schedule.clock.ticks},
          {"notes", run.schedule_notes},
          {"cores", std::move(cores)},
          {"slots", std::move(slots)}};
}

// The modes of the run and its changes between them; null without modes.
Json modes_json(const RunData& run) {
  if (run.modes.empty()) return nullptr;
  Json modes = Json::array();
  for (const sched::ModeTable& mode : run.modes) {
    Json exits = Json::array();
    for (const std::uint32_t exit : mode.exits) exits.push_back(run.modes[exit].name);
    modes.push_back({{"name", mode.name},
                     {"hash", mode.schedule.hash().hex()},
                     {"hyperperiod_ns", mode.schedule.clock.hyperperiod.ns},
                     {"dwell_ns", mode.dwell.ns},
                     {"entry_drain_ns", mode.entry_drain.ns},
                     {"exits", std::move(exits)},
                     {"lost", mode.lost ? Json(run.modes[*mode.lost].name) : Json(nullptr)}});
  }
  Json changes = Json::array();
  for (const sched::ModeChange& change : run.dispatch.changes) {
    changes.push_back({{"hyperperiod", change.hyperperiod},
                       {"begin_ns", change.begin.ns},
                       {"from", run.modes[change.from].name},
                       {"to", run.modes[change.to].name},
                       {"cause", sched::name_of(change.cause)},
                       {"words", in_words(run, change)}});
  }
  return {{"tables", std::move(modes)}, {"changes", std::move(changes)}};
}

Json verdict_json(const Judgement& judgement) {
  Json requirements = Json::array();
  for (const Requirement& r : judgement.requirements) {
    requirements.push_back(
        {{"group", r.group}, {"name", r.name}, {"outcome", name_of(r.outcome)}, {"detail", r.detail}});
  }
  const auto share = judgement.share_held();
  return {{"outcome", name_of(judgement.outcome)},
          {"reasons", judgement.reasons},
          {"real_time_deadlines", judgement.deadlines_not_judged.empty() ? "judged" : judgement.deadlines_not_judged},
          {"held", judgement.held},
          {"void", judgement.void_count},
          {"violated", judgement.violated},
          {"fill", judgement.fill},
          {"share_held", share ? Json(*share) : Json(nullptr)},
          {"requirements", std::move(requirements)}};
}

Json plans_json(const RunData& run) {
  Json out = Json::array();
  for (const PlanInfo& plan : run.plans) {
    const PlanTotals sum = totals(plan);
    Json& p = out.emplace_back();
    p["stage"] = run.problem.stages[plan.stage].name;
    p["model"] = plan.model;
    p["model_file"] = plan.model_file;
    p["licence"] = plan.licence;
    p["target"] = plan.target;
    p["plan"] = plan.plan.hex();
    p["operators_before"] = plan.operators_before;
    p["operators_after"] = plan.operators_after;
    p["views"] = plan.views;
    p["placements"] = plan.placements;
    p["in_place"] = plan.in_place;
    p["reorders"] = plan.reorders;
    p["copies"] = plan.copies;
    p["flops"] = sum.flops;
    p["bytes_moved"] = sum.bytes_moved;
    p["file_bytes"] = plan.file_bytes;
    p["weight_bytes"] = plan.weight_bytes;
    p["arena_bytes"] = plan.arena_bytes;
    p["arena_lower_bound"] = plan.lower_bound;
    p["arena_proof"] = plan.proof;
    p["runs"] = sum.runs;
    p["steps_minimum_ns"] = sum.minimum.ns;
    p["steps_maximum_ns"] = sum.maximum.ns;
    p["steps"] = Json::array();
    for (const PlanStep& step : plan.steps) {
      p["steps"].push_back({{"kernel", step.kernel},
                            {"nodes", step.nodes},
                            {"flops", step.flops},
                            {"bytes_moved", step.bytes_moved},
                            {"live_bytes", step.live_bytes},
                            {"runs", step.runs},
                            {"minimum_ns", step.minimum.ns},
                            {"maximum_ns", step.maximum.ns}});
    }
    p["counted_jobs"] = plan.counted_jobs;
    p["counters"] = Json::array();
    for (const PlanCounter& counter : plan.counters) {
      p["counters"].push_back({{"name", counter.name},
                               {"capacity", counter.capacity},
                               {"maximum", counter.maximum},
                               {"total", counter.total},
                               {"latest", counter.latest}});
    }
  }
  return out;
}

// The kinds of graphs that stages of this run are.
Json compiled_graphs(const RunData& run) {
  Json out = Json::array();
  for (const auto& [type, kind] : {std::pair{"camera_network", "detection"}, std::pair{"lidar_network", "sparse voxel"},
                                   std::pair{"fusion_tracker", "fusion"}}) {
    const auto of_type = [&run, type = type](const PlanInfo& plan) {
      return plan.stage < run.stages.size() && run.stages[plan.stage].type == type;
    };
    if (std::any_of(run.plans.begin(), run.plans.end(), of_type)) out.push_back(kind);
  }
  return out;
}

}  // namespace

std::string report_json(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages) {
  Json out;
  out["schema"] = "takt.report";
  out["version"] = kReportVersion;
  out["verdict"] = verdict_json(judgement);
  out["run"] = {{"pipeline", run.pipeline_name},
                {"mode", run.mode},
                {"rate", run.rate},
                {"transport", run.transport},
                {"drive", run.rig.drive},
                {"log", run.log_path},
                {"rig", run.rig.name},
                {"hyperperiods", run.dispatch.hyperperiods_run},
                {"interrupted", run.interrupted},
                {"compiled_graphs", compiled_graphs(run)}};
  const RecordIndex index(run);
  out["chains"] = Json::array();
  for (std::size_t i = 0; i < judgement.chains.size(); ++i) {
    out["chains"].push_back(chain_json(run, index, judgement.chains[i].chain, judgement.chains[i]));
  }
  out["exceptions"] = exceptions_json(run, judgement);
  out["stages"] = Json::array();
  const std::vector<BudgetUse> uses = budget_uses(run);
  for (std::size_t i = 0; i < stages.size(); ++i) out["stages"].push_back(stage_json(run, i, stages[i], uses));
  out["plans"] = plans_json(run);
  out["misses"] = misses_json(run, judgement);
  out["fill_jobs"] = judgement.fill_jobs;
  out["schedule"] = schedule_json(run);
  out["modes"] = modes_json(run);
  out["digests"] = Json::array();
  for (const TopicDigest& d : run.digests) {
    out["digests"].push_back(
        {{"topic", d.topic}, {"chunks", d.chunks}, {"digest", d.digest.hex()}, {"compared", d.compared}});
  }
  out["memory"] = memory_json(run);
  out["environment"] = environment_json(run);
  out["inputs"] = Json::array();
  for (const HashedInput& input : run.inputs) {
    out["inputs"].push_back({{"role", input.role}, {"path", input.path}, {"digest", input.digest.hex()}});
  }
  out["sensors"] = health_json(run);
  out["log_problems"] = Json::array();
  for (const sensors::LogProblem& p : run.log_problems) {
    out["log_problems"].push_back({{"kind", p.kind}, {"offset", p.offset}, {"detail", p.detail}});
  }
  out["score"] = score_json(run);
  out["commands"] = Json::array();
  for (const Command& command : commands_to_try(run)) out["commands"].push_back(command.line);
  out["faults"] = faults_json(run);
  out["baselines"] = baselines_json(run, baselines(run));
  out["baselines_measured"] = baselines_json(run, run.measured);
  // Names from files need not be valid UTF-8: replaced, never an exception.
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string junit_xml(const RunData& run, const Judgement& judgement) {
  std::uint64_t failures = 0, skipped = 0;
  for (const Requirement& r : judgement.requirements) {
    failures += r.outcome == Outcome::kFail ? 1 : 0;
    skipped += r.outcome == Outcome::kNotJudged ? 1 : 0;
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += "<testsuites name=\"takt\">\n <testsuite name=\"" + escaped(run.pipeline_name + " (" + run.mode + ")") +
         "\" tests=\"" + std::to_string(judgement.requirements.size()) + "\" failures=\"" + std::to_string(failures) +
         "\" errors=\"0\" skipped=\"" + std::to_string(skipped) + "\">\n";
  for (const Requirement& r : judgement.requirements) {
    out += "  <testcase classname=\"" + escaped(r.group) + "\" name=\"" + escaped(r.name) + "\">";
    if (r.outcome == Outcome::kFail) out += "<failure message=\"" + escaped(r.detail) + "\"/>";
    if (r.outcome == Outcome::kNotJudged) out += "<skipped message=\"NOT JUDGED: " + escaped(r.detail) + "\"/>";
    if (r.outcome == Outcome::kPass) out += "<system-out>" + escaped(r.detail) + "</system-out>";
    out += "</testcase>\n";
  }
  return out + " </testsuite>\n</testsuites>\n";
}

}  // namespace takt::pipeline
