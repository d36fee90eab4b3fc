// takt plan swap: whether a plan may take another one's place while it runs, and what the exchange costs on this
// machine.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "pipeline/app/verb_plan.h"
#include "pipeline/assembly/swap.h"
#include "pipeline/report/commands.h"
#include "runtime/base/suggest.h"
#include "runtime/base/time.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/swap.h"
#include "runtime/exec/trace.h"
#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"

namespace takt::app {
namespace {

using exec::PlanBudget;
using exec::SwappableSession;
using PlanPointer = std::shared_ptr<const plan::Plan>;

struct SwapOptions {
  std::string old_plan, new_plan;
  std::string stage;         // of the pipeline; STAGE/VARIANT where its tables run several
  ScheduleOptions schedule;  // no pipeline: the slot decides alone
  double slot_ms = 0;
  double maintenance_ms = 1;
};

constexpr int kRuns = 200;
constexpr std::int64_t kMarginPercent = 130;  // of a budget over what was measured: DESIGN section 5

Duration with_margin(Duration d) { return {d.ns * kMarginPercent / 100 + 1}; }
Duration duration_of(double ms) { return {static_cast<std::int64_t>(ms * 1e6)}; }

void fill(const plan::Plan& plan, const exec::Buffers& buffers) {
  const plan::Description& d = plan.description();
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const std::vector<std::byte> input = exec::made_up_input(d.tensors[d.inputs[i]]);
    std::memcpy(buffers.input(i).data(), input.data(), input.size());
  }
}

Duration timed(exec::Session& session) {
  const HostTime begin = host_now();
  for (std::size_t step = 0; step < session.steps(); ++step) session.run_step(step, 0, 1);
  return host_now() - begin;
}

// How often another thread was given this one's core.
long interruptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// A quick profile: enough to see whether an exchange is possible, no budget to drive with. Runs that others interrupted
// say nothing of the plan and are left out, unless there are no others.
Result<PlanBudget> quick_budget(const PlanPointer& plan) {
  TAKT_ASSIGN(const std::unique_ptr<exec::Session> session, exec::Session::create(plan));
  TAKT_ASSIGN(const exec::Buffers buffers, exec::Buffers::create(*session));
  fill(*plan, buffers);
  timed(*session);
  PlanBudget out;
  out.steps.resize(session->steps());
  std::vector<Duration> steps(session->steps());
  int quiet = 0;
  for (int i = 0; i < 4 * kRuns && quiet < kRuns; ++i) {
    const long before = interruptions();
    Duration job;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const HostTime begin = host_now();
      session->run_step(step, 0, 1);
      steps[step] = host_now() - begin;
      job = job + steps[step];
    }
    const bool counts = interruptions() == before;
    if (!counts && (quiet > 0 || i + 1 < 4 * kRuns)) continue;
    ++quiet;
    out.job = std::max(out.job, job);
    for (std::size_t step = 0; step < steps.size(); ++step) out.steps[step] = std::max(out.steps[step], steps[step]);
  }
  out.job = with_margin(out.job);
  for (Duration& step : out.steps) step = with_margin(step);
  return out;
}

// What the command can be told beside what the session says.
Error with_advice(Error error) {
  if (error.code == Code::kConfiguration) {
    error.message +=
        "\n  -> --slot-ms and --maintenance-ms say what the table has for a job and for a piece of a warm-up";
  }
  return error;
}

using Admits = std::function<Status(const plan::Plan&, const PlanBudget&)>;

// Where in the tables of a pipeline the plan runs, and what they say to another one.
struct Place {
  std::string what;  // in words
  int cores = 1;     // the most that its jobs run on
  Admits admits;
};

// A table that has the stage: of a mode, or the only one.
struct Table {
  std::string mode;
  const sched::Problem* problem = nullptr;
  const sched::Schedule* schedule = nullptr;
  std::size_t stage = 0;
  [[nodiscard]] const sched::Choice& choice() const { return schedule->choices[stage]; }
  // Its jobs run the chosen variant, the first one here, or the one that they degrade to.
  [[nodiscard]] std::vector<std::string> variants() const {
    std::vector<std::string> out;
    for (const std::uint32_t v : sched::variants_with(problem->stages[stage], choice().variant)) {
      out.push_back(problem->stages[stage].variants[v].name);
    }
    return out;
  }
};

std::vector<Table> tables_of(const Admitted& admitted, const std::string& stage) {
  std::vector<Table> out;
  const auto add = [&](const std::string& mode, const sched::Problem& problem, const sched::Schedule& schedule) {
    for (std::size_t s = 0; s < problem.stages.size(); ++s) {
      if (problem.stages[s].name == stage) out.push_back({mode, &problem, &schedule, s});
    }
  };
  if (!admitted.config.modes) add("", admitted.config.problem, *admitted.answer.schedule);
  for (std::size_t m = 0; m < admitted.mode_answers.size(); ++m) {
    const sched::ModeSpec& mode = admitted.config.modes->modes[m];
    add(mode.name, mode.problem, *admitted.mode_answers[m].schedule);
  }
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// "variant 'lite' (modes 'lean' and 'coasting')"; without modes the variant alone.
std::string words_of(const std::vector<Table>& tables, const std::string& variant) {
  std::vector<std::string> modes;
  for (const Table& table : tables) {
    if (!table.mode.empty() && contains(table.variants(), variant)) modes.push_back("'" + table.mode + "'");
  }
  return "variant '" + variant + "'" +
         (modes.empty() ? "" : std::string(modes.size() == 1 ? " (mode " : " (modes ") + sched::list_text(modes) + ")");
}

// The variant that `text`, "STAGE" or "STAGE/VARIANT", means in these tables. Where all of them chose the same one, it
// needs no name.
Result<std::string> variant_of(const std::string& text, const std::vector<Table>& tables) {
  std::vector<std::string> chosen, run;
  for (const Table& table : tables) {
    const std::vector<std::string> variants = table.variants();
    if (!contains(chosen, variants.front())) chosen.push_back(variants.front());
    for (const std::string& variant : variants) {
      if (!contains(run, variant)) run.push_back(variant);
    }
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos && chosen.size() == 1) return chosen.front();
  const std::string asked = slash == std::string::npos ? "" : text.substr(slash + 1);
  if (contains(run, asked)) return asked;
  std::vector<std::string> all;
  for (const std::string& variant : run) all.push_back(words_of(tables, variant));
  const std::string stage = text.substr(0, slash);
  return fail(Code::kUsage,
              (slash == std::string::npos
                   ? "stage '" + stage + "' runs more than one plan: "
                   : "stage '" + stage + "' runs no variant '" + asked + "' in an admitted table; it runs ") +
                  sched::list_text(all) + "\n  -> say which, for example --stage " + stage + "/" + run.front());
}

// Whether the plan can be the one that this variant runs.
Status runs_there(const pipeline::PipelineConfig& config, const std::string& stage, const std::string& variant,
                  const plan::Plan& old_plan) {
  const auto found = std::find_if(config.stages.begin(), config.stages.end(),
                                  [&](const pipeline::StageConfig& one) { return one.name == stage; });
  const PlanPointer& its = found->variant(variant).plan;
  const std::string where = config.file + ": stage '" + stage + "', variant '" + variant + "'";
  if (its == nullptr) return fail(Code::kUsage, where + " runs no plan that could be exchanged");
  Status same = exec::keeps_interface(*its, old_plan);
  if (same && its->description().name != old_plan.description().name) {
    same = fail(Code::kUsage, "it runs '" + its->description().name + "'");
  }
  if (!same) {
    return fail(Code::kUsage,
                where + " does not run the old plan '" + old_plan.description().name + "': " + same.error().message +
                    "\n  -> " + pipeline::program() + " compile " + pipeline::shell_quoted(config.file) + " --stage " +
                    pipeline::shell_quoted(stage + "/" + variant) + " -o OLD.plan writes the one that it runs");
  }
  return {};
}

// Asks the admitted tables of a pipeline.
Result<Place> place_of(const SwapOptions& options, const plan::Plan& old_plan) {
  TAKT_ASSIGN(Admitted found, admit(options.schedule));
  const auto admitted = std::make_shared<const Admitted>(std::move(found));
  const std::string stage = options.stage.substr(0, options.stage.find('/'));
  std::vector<std::string> names;
  for (const sched::Stage& known : admitted->config.problem.stages) names.push_back(known.name);
  if (!contains(names, stage)) {
    return fail(Code::kUsage, options.schedule.pipeline + " has no stage '" + stage + "'" + did_you_mean(stage, names));
  }
  if (admitted->answer.verdict != sched::Verdict::kFeasible) {
    return fail(Code::kGate, options.schedule.pipeline + " has no admitted table; ask takt schedule");
  }
  const std::vector<Table> tables = tables_of(*admitted, stage);
  if (tables.empty()) {
    return fail(Code::kUsage, options.schedule.pipeline + ": no mode runs stage '" + stage + "'");
  }
  TAKT_ASSIGN(const std::string variant, variant_of(options.stage, tables));
  TAKT_RETURN_IF_ERROR(runs_there(admitted->config, stage, variant, old_plan));
  Place out;
  out.what = "stage '" + stage + "', " + words_of(tables, variant);
  for (const Table& table : tables) {
    if (contains(table.variants(), variant)) out.cores = std::max(out.cores, table.choice().budget.cores);
  }
  if (admitted->config.modes) {
    out.admits = [admitted, stage, variant](const plan::Plan& plan, const PlanBudget& budget) {
      return pipeline::admits_plan(*admitted->config.modes, admitted->mode_answers, stage, variant, plan, budget);
    };
    return out;
  }
  const Table& only = tables.front();
  const auto& variants = only.problem->stages[only.stage].variants;
  const auto index = static_cast<std::uint32_t>(
      std::find_if(variants.begin(), variants.end(), [&](const auto& v) { return v.name == variant; }) -
      variants.begin());
  out.admits = [admitted, at = only.stage, index](const plan::Plan& plan, const PlanBudget& budget) {
    return pipeline::admits_plan(admitted->config.problem, *admitted->answer.schedule, at, index, plan, budget);
  };
  return out;
}

Status swap(const SwapOptions& options) {
  if (options.schedule.pipeline.empty() != options.stage.empty()) {
    return fail(Code::kUsage,
                "--pipeline and --stage belong together: whose table has to hold, and where the plan runs");
  }
  TAKT_ASSIGN(const PlanPointer old_plan, plan::Plan::load(options.old_plan));
  TAKT_ASSIGN(const PlanPointer new_plan, plan::Plan::load(options.new_plan));
  TAKT_RETURN_IF_ERROR(exec::keeps_interface(*old_plan, *new_plan));
  SwappableSession::Reserve reserve;
  Place place;
  if (!options.stage.empty()) {
    TAKT_ASSIGN(place, place_of(options, *old_plan));
    reserve.admits = place.admits;
    reserve.parts = place.cores;
  }
  TAKT_ASSIGN(const PlanBudget old_budget, quick_budget(old_plan));
  TAKT_ASSIGN(const PlanBudget new_budget, quick_budget(new_plan));
  reserve.arena_bytes = std::max(old_plan->description().arena_bytes, new_plan->description().arena_bytes);
  reserve.weight_bytes =
      std::max(plan::weight_bytes(old_plan->description()), plan::weight_bytes(new_plan->description()));
  reserve.slot = options.slot_ms > 0 ? duration_of(options.slot_ms) : std::max(old_budget.job, new_budget.job);
  reserve.maintenance = duration_of(options.maintenance_ms);
  auto created = SwappableSession::create(old_plan, old_budget, reserve);
  if (!created) return fail(with_advice(std::move(created).error()));
  const std::unique_ptr<SwappableSession> stage = *std::move(created);
  TAKT_ASSIGN(const exec::Buffers buffers, exec::Buffers::create(stage->current()));
  fill(*old_plan, buffers);
  for (int i = 0; i < kRuns; ++i) timed(stage->current());

  const HostTime begin = host_now();
  const Status prepared = stage->prepare(new_plan, new_budget);
  if (!prepared) return fail(with_advice(prepared.error()));
  const Duration prepare = host_now() - begin;
  Duration longest;
  int slots = 0;
  for (SwappableSession::Warmth warmth = SwappableSession::Warmth::kCold; warmth != SwappableSession::Warmth::kWarm;) {
    const HostTime piece = host_now();
    warmth = stage->warm_up();
    longest = std::max(longest, host_now() - piece);
    ++slots;
    timed(stage->current());  // jobs go on between the pieces
  }
  const HostTime boundary = host_now();
  const bool committed = stage->commit();
  const Duration commit = host_now() - boundary;
  if (!committed) return fail(Code::kInternal, "a warm plan could not be committed");
  const Duration first = timed(stage->current());
  std::vector<Duration> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(timed(stage->current()));
  std::sort(runs.begin(), runs.end());
  const Duration median = runs[runs.size() / 2];

  const auto row = [](const char* what, const plan::Plan& plan, const PlanBudget& budget) {
    std::printf("%-4s %s: arena %.1f kB, weights %.1f kB, quick budget %.3f ms\n", what,
                plan.description().name.c_str(), static_cast<double>(plan.description().arena_bytes) * 1e-3,
                static_cast<double>(plan::weight_bytes(plan.description())) * 1e-3, budget.job.ms());
  };
  row("old", *old_plan, old_budget);
  row("new", *new_plan, new_budget);
  if (!options.stage.empty()) {
    std::printf("%s holds with each of them in %s\n", options.schedule.pipeline.c_str(), place.what.c_str());
  }
  std::printf("reserved at start: two regions of %.1f kB\n", static_cast<double>(reserve.arena_bytes) * 1e-3);
  std::printf(
      "prepared in %.3f ms beside the jobs, warmed up in %d maintenance slot%s (longest %.3f ms of %.3f), "
      "committed in %.1f us\n",
      prepare.ms(), slots, slots == 1 ? "" : "s", longest.ms(), reserve.maintenance.ms(), commit.us());
  std::printf("first job of the new plan %.3f ms, median of %d later ones %.3f ms: %.2fx\n", first.ms(), kRuns,
              median.ms(), static_cast<double>(first.ns) / static_cast<double>(std::max<std::int64_t>(median.ns, 1)));
  return {};
}

}  // namespace

void add_plan_swap(CLI::App& plan, Command& chosen) {
  auto options = std::make_shared<SwapOptions>();
  CLI::App* verb = plan.add_subcommand("swap", "Exchange a running plan: is it possible, and what does it cost here");
  verb->add_option("old", options->old_plan, "the plan that runs")->required();
  verb->add_option("new", options->new_plan, "the one that is to take its place")->required();
  verb->add_option(
      "--pipeline", options->schedule.pipeline,
      "a pipeline whose table has to hold with the new plan; of one with modes, every table that runs it and every "
      "change between them");
  verb->add_option("--stage", options->stage,
                   "the pipeline's stage in which the plan runs; STAGE/VARIANT where its tables run several variants");
  verb->add_option("--slot-ms", options->slot_ms, "what a job may take (default: the longer of both quick budgets)")
      ->check(number_in(0.001, 1e6));
  verb->add_option("--maintenance-ms", options->maintenance_ms, "what a piece of the warm-up may take (default: 1)")
      ->check(number_in(0.001, 1e6));
  verb->callback([options, &chosen] {
    chosen = [options] {
      const Status status = swap(*options);
      return status ? 0 : report_error(status.error());
    };
  });
}

}  // namespace takt::app
