// takt schedule: does it fit, with what bounds and slack, or why not.

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/assembly/environment.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/what_if.h"
#include "scheduler/model/yaml.h"
#include "scheduler/synthesis/synthesis.h"

namespace takt::app {
namespace {

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return std::min<int>(size.ws_col, 160);
  return 100;
}

struct Options {
  ScheduleOptions schedule;
  bool json = false;
};

int run(const Options& options) {
  Result<Admitted> admitted = admit(options.schedule);
  if (!admitted) return report_error(admitted.error());
  const sched::Answer& answer = admitted->answer;
  const std::string text = options.json ? sched::to_json(admitted->config.problem, answer)
                                        : sched::explain(admitted->config.problem, answer, terminal_width());
  std::fputs(text.c_str(), stdout);
  return answer.verdict == sched::Verdict::kFeasible ? 0 : 1;
}

}  // namespace

void add_model_option(CLI::App& verb, std::vector<std::string>& models) {
  verb.add_option("--model", models,
                  "STAGE=FILE: the ONNX file of a stage's network, instead of the one that its contract names; "
                  "STAGE/VARIANT=FILE for one variant (repeatable)");
}

Result<pipeline::ModelFiles> model_files(const std::vector<std::string>& models) {
  pipeline::ModelFiles out;
  for (const std::string& text : models) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return fail(Code::kUsage,
                  "--model expects STAGE=FILE, for example camera_detect=FastestDet.onnx; found '" + text + "'");
    }
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

void add_schedule_options(CLI::App& verb, ScheduleOptions& options, bool positional_pipeline) {
  if (positional_pipeline) {
    verb.add_option("pipeline", options.pipeline, "pipeline file, for example configs/pipelines/sim.yaml")->required();
  }
  verb.add_option("--budgets", options.budgets, "budgets file written by `takt profile` (default: declared budgets)");
  verb.add_option("--what-if", options.what_if,
                  "change the problem first: stage.budget=+20%, stage.budget=12ms, stage.rate=10, stage.cores=2");
  add_model_option(verb, options.models);
  verb.add_option("--seed", options.seed, "seed of the search (the answer is the same for the same seed)");
}

Result<Admitted> admit(const ScheduleOptions& options) {
  TAKT_ASSIGN(const pipeline::ModelFiles models, model_files(options.models));
  TAKT_ASSIGN(pipeline::PipelineConfig config, pipeline::load_pipeline(options.pipeline, models));
  std::string other_machine;
  if (!options.budgets.empty()) {
    TAKT_ASSIGN(const sched::BudgetTable budgets, sched::load_budgets(options.budgets));
    TAKT_RETURN_IF_ERROR(sched::apply_budgets(config.problem, budgets));
    if (const std::string here = pipeline::machine_name(); !budgets.machine.empty() && budgets.machine != here) {
      other_machine = "budgets were measured on another machine (" + budgets.machine + "); this one is " + here;
    }
  }
  sched::Problem any_cores = config.problem;
  for (const std::string& change : options.what_if) {
    TAKT_RETURN_IF_ERROR(sched::apply_what_if(config.problem, change));
    if (change.find(".cores=") == std::string::npos) TAKT_RETURN_IF_ERROR(sched::apply_what_if(any_cores, change));
  }
  sched::SynthesisOptions synthesis;
  synthesis.seed = options.seed;
  Admitted out{std::move(config), {}, std::move(any_cores)};
  out.answer = sched::synthesize(out.config.problem, synthesis);
  if (!other_machine.empty()) out.answer.notes.push_back(other_machine);
  if (out.answer.verdict == sched::Verdict::kFeasible) {
    // No table is used that the independent validator has not accepted.
    if (Status valid = sched::validate(out.config.problem, *out.answer.schedule); !valid) {
      return fail(Code::kInternal, "the synthesized table failed its validator: " + valid.error().message);
    }
  }
  return out;
}

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("schedule", "Does the pipeline fit? Table, bounds and slack, or the reason why not");
  add_schedule_options(*verb, options->schedule);
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
