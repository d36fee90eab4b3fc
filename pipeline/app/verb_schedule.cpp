// takt schedule: does it fit, with what bounds and slack, or why not.

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "pipeline/assembly/board_bundle.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/report/schedule_html.h"
#include "runtime/base/file.h"
#include "scheduler/analysis/certificate.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/modes.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/modes.h"
#include "scheduler/model/what_if.h"
#include "scheduler/model/yaml.h"
#include "scheduler/synthesis/remedies.h"
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
  double seconds = 0;
  bool json = false;
  std::string certificate;  // where to write the proof of an infeasible problem
  std::string check;        // a certificate to replay
  std::string html;         // where to write the page
  std::string bundle;       // where to write what a board needs
  std::vector<std::string> baselines;
  bool scale = false;  // how much budgets may grow with a new table
};

// The problem that is asked about.
struct Asked {
  pipeline::PipelineConfig config;
  sched::Problem any_cores;
  std::string other_machine;
};

// Those of stages and variants that a mode has.
sched::BudgetTable budgets_of(const sched::BudgetTable& budgets, const sched::Problem& mode) {
  sched::BudgetTable out = budgets;
  std::erase_if(out.budgets, [&](const sched::StageBudget& budget) {
    return std::none_of(mode.stages.begin(), mode.stages.end(), [&](const sched::Stage& stage) {
      return stage.name == budget.stage &&
             std::any_of(stage.variants.begin(), stage.variants.end(),
                         [&](const sched::Variant& variant) { return variant.name == budget.variant; });
    });
  });
  return out;
}

// In every mode that has what the changes name; the whole has it.
Status apply_to_modes(sched::ModeSet& set, const std::vector<std::string>& changes) {
  std::vector<sched::Problem> problems;
  for (const sched::ModeSpec& mode : set.modes) {
    problems.push_back(mode.problem);
    problems.back().ticks = 0;  // the ticks that all share depend on the rates
    for (const std::string& change : changes) {
      if (!sched::has_target(mode.problem, change)) continue;
      TAKT_RETURN_IF_ERROR(sched::apply_what_if(problems.back(), change).map_error([&](Error error) {
        return std::move(error).with_context("mode '" + mode.name + "'");
      }));
    }
  }
  TAKT_ASSIGN(const std::vector<sched::Tick> ticks, sched::common_ticks(problems));
  for (std::size_t m = 0; m < problems.size(); ++m) {
    problems[m].ticks = ticks[m];
    set.modes[m].problem = std::move(problems[m]);
  }
  return sched::check(set);
}

Result<Asked> ask(const ScheduleOptions& options) {
  pipeline::PipelineConfig config;
  if (sched::is_problem_file(options.pipeline)) {
    // A problem by itself: nothing but its schedule can be asked for.
    TAKT_ASSIGN(sched::LoadedProblem loaded, sched::load_problem_and_modes(options.pipeline));
    config.problem = std::move(loaded.problem);
    config.modes = std::move(loaded.modes);
    config.name = config.problem.name;
    config.file = options.pipeline;
  } else {
    TAKT_ASSIGN(const pipeline::ModelFiles models, model_files(options.models));
    TAKT_ASSIGN(config, pipeline::load_pipeline(options.pipeline, models));
  }
  std::string other_machine;
  if (!options.budgets.empty()) {
    TAKT_ASSIGN(const sched::BudgetTable budgets, sched::load_budgets(options.budgets));
    TAKT_RETURN_IF_ERROR(sched::apply_budgets(config.problem, budgets));
    if (config.modes) {
      for (sched::ModeSpec& mode : config.modes->modes) {
        TAKT_RETURN_IF_ERROR(sched::apply_budgets(mode.problem, budgets_of(budgets, mode.problem)));
      }
    }
    if (const std::string here = pipeline::machine_name(); !budgets.machine.empty() && budgets.machine != here) {
      other_machine = "budgets were measured on another machine (" + budgets.machine + "); this one is " + here;
    }
  }
  sched::Problem any_cores = config.problem;
  for (const std::string& change : options.what_if) {
    TAKT_RETURN_IF_ERROR(sched::apply_what_if(config.problem, change));
    if (change.find(".cores=") == std::string::npos) TAKT_RETURN_IF_ERROR(sched::apply_what_if(any_cores, change));
  }
  if (config.modes && !options.what_if.empty()) {
    TAKT_RETURN_IF_ERROR(apply_to_modes(*config.modes, options.what_if));
  }
  return Asked{std::move(config), std::move(any_cores), std::move(other_machine)};
}

// Nothing is said that the independent validator or checker has not accepted.
Result<sched::Answer> judged_answer(const sched::Problem& problem, const ScheduleOptions& options, double seconds) {
  sched::SynthesisOptions synthesis;
  synthesis.seed = options.seed;
  synthesis.node_limit = options.nodes;
  synthesis.seconds = seconds;
  sched::Answer answer = sched::synthesize(problem, synthesis);
  if (answer.verdict == sched::Verdict::kFeasible) {
    if (Status valid = sched::validate(problem, *answer.schedule); !valid) {
      return fail(Code::kInternal, "the synthesized table failed its validator: " + valid.error().message);
    }
  }
  if (answer.verdict == sched::Verdict::kInfeasible) {
    if (Status holds = sched::check_certificate(problem, *answer.certificate); !holds) {
      return fail(Code::kInternal, "the proof failed its checker: " + holds.error().message);
    }
  }
  return answer;
}

Result<Admitted> answer(Asked asked, const ScheduleOptions& options, double seconds) {
  Admitted out{std::move(asked.config), {}, std::move(asked.any_cores)};
  TAKT_ASSIGN(out.answer, judged_answer(out.config.problem, options, seconds));
  if (!asked.other_machine.empty()) out.answer.notes.push_back(asked.other_machine);
  return out;
}

// What was written is read back: no file is left that a board would refuse.
Status write_board_bundle(const pipeline::PipelineConfig& config, const std::vector<pipeline::AdmittedMode>& modes,
                          const std::vector<pipeline::BundleChange>& changes, const Options& options) {
  TAKT_ASSIGN(const pipeline::Bundle bundle,
              pipeline::make_bundle(config, modes, changes, options.schedule.budgets, options.schedule.what_if));
  TAKT_ASSIGN(const std::vector<std::byte> bytes, pipeline::write_bundle(bundle));
  if (const auto again = pipeline::read_bundle(bytes); !again) return fail(Code::kInternal, again.error().message);
  return write_file_atomically(options.bundle, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Every mode, every permitted change.
int run_modes(const Asked& asked, const Options& options) {
  const sched::ModeSet& set = *asked.config.modes;
  for (const std::string& one_table : {options.certificate, options.check}) {
    if (one_table.empty()) continue;
    return report_error(
        {Code::kUsage,
         "'" + asked.config.name + "' has modes; a certificate is of one table: ask for a file without 'modes'"});
  }
  if (options.scale || !options.baselines.empty()) {
    return report_error({Code::kUsage, "'" + asked.config.name + "' has modes; " +
                                           (options.scale ? "--scale" : "--baseline") +
                                           " is about one table: ask for a file without 'modes'"});
  }
  std::vector<sched::Answer> answers;
  for (const sched::ModeSpec& mode : set.modes) {
    Result<sched::Answer> answer = judged_answer(mode.problem, options.schedule, options.seconds);
    if (!answer) return report_error(answer.error());
    if (!asked.other_machine.empty()) answer->notes.push_back(asked.other_machine);
    answers.push_back(*std::move(answer));
  }
  const sched::ModesAnswer judged = sched::judge_modes(set, answers);
  if (!options.html.empty()) {
    const std::string page = pipeline::modes_html(set, answers, judged, command_line());
    if (Status written = write_file_atomically(options.html, page); !written) return report_error(written.error());
  }
  if (options.json) {
    std::fputs(sched::modes_json(set, answers, judged).c_str(), stdout);
  } else {
    std::fputs(sched::explain_modes(set, answers, judged).c_str(), stdout);
    for (std::size_t m = 0; m < set.modes.size(); ++m) {
      std::printf("\n%s", sched::explain(set.modes[m].problem, answers[m], terminal_width()).c_str());
    }
  }
  if (!options.bundle.empty()) {
    if (judged.verdict != sched::Verdict::kFeasible) {
      return report_error({Code::kGate, "no bundle: only admitted tables go to a board"});
    }
    std::vector<pipeline::AdmittedMode> modes;
    for (std::size_t m = 0; m < set.modes.size(); ++m) {
      const sched::ModeSpec& mode = set.modes[m];
      modes.push_back({mode.name, &mode.problem, &*answers[m].schedule, mode.dwell, mode.lost});
    }
    std::vector<pipeline::BundleChange> changes;
    for (const sched::ChangeAnswer& change : judged.changes) {
      changes.push_back({change.from, change.to, set.modes[change.to].entry_drain});
    }
    if (Status written = write_board_bundle(asked.config, modes, changes, options); !written) {
      return report_error(written.error());
    }
  }
  return judged.verdict == sched::Verdict::kFeasible ? 0 : 1;
}

// Replays a certificate against the problem as configured; nothing is searched.
Status replay_certificate(const sched::Problem& problem, const std::string& path) {
  TAKT_ASSIGN(const std::string text, read_file(path));
  TAKT_ASSIGN(const sched::Certificate certificate, sched::read_certificate(problem, text).map_error([&](Error error) {
    return std::move(error).with_context(path);
  }));
  TAKT_RETURN_IF_ERROR(sched::check_certificate(problem, certificate));
  std::printf("ACCEPTED: '%s' on board '%s' cannot meet its limits; every part of %s holds\n", problem.name.c_str(),
              problem.board.name.c_str(), path.c_str());
  return {};
}

// An output that is an input, or another output, would be lost.
Status check_outputs(const Options& options) {
  std::vector<std::string> taken{options.schedule.pipeline, options.schedule.budgets, options.check};
  for (const std::string& out : {options.certificate, options.html, options.bundle}) {
    for (const std::string& other : taken) {
      std::error_code error;
      if (!out.empty() && (out == other || std::filesystem::equivalent(out, other, error))) {
        return fail(Code::kUsage, out + " is named twice: it would be overwritten");
      }
    }
    taken.push_back(out);
  }
  return {};
}

// What was asked for beyond the answer, and what helps where it is no yes.
sched::Beside beside_the_answer(const Admitted& admitted, const Options& options) {
  const sched::Problem& problem = admitted.config.problem;
  const sched::SynthesisOptions search{options.schedule.seed, options.schedule.nodes, options.seconds};
  sched::Beside beside;
  if (admitted.answer.verdict != sched::Verdict::kFeasible) beside.remedies = sched::remedies(problem, search);
  if (!admitted.answer.schedule) return beside;
  const sched::Schedule& schedule = *admitted.answer.schedule;
  if (options.scale) beside.scale_with_new_table = sched::resynthesised_scale(problem, schedule, search);
  if (!options.baselines.empty()) {
    sched::Answer first;
    if (std::find(options.baselines.begin(), options.baselines.end(), "first-found") != options.baselines.end()) {
      sched::SynthesisOptions any = search;
      any.first_found = true;
      first = sched::synthesize(problem, any);
    }
    beside.comparisons = sched::comparisons(problem, schedule, first.schedule ? &*first.schedule : nullptr);
  }
  return beside;
}

int run(const Options& options) {
  if (const Status outputs = check_outputs(options); !outputs) return report_error(outputs.error());
  Result<Asked> asked = ask(options.schedule);
  if (!asked) return report_error(asked.error());
  if (asked->config.modes) return run_modes(*asked, options);
  if (!options.check.empty()) {
    const Status replayed = replay_certificate(asked->config.problem, options.check);
    return replayed ? 0 : report_error(replayed.error());
  }
  const Result<Admitted> admitted = answer(*std::move(asked), options.schedule, options.seconds);
  if (!admitted) return report_error(admitted.error());
  const sched::Problem& problem = admitted->config.problem;
  if (!options.certificate.empty() && admitted->answer.certificate) {
    const std::string text = sched::certificate_json(problem, *admitted->answer.certificate);
    if (Status written = write_file_atomically(options.certificate, text); !written) {
      return report_error(written.error());
    }
  }
  const sched::Beside beside = beside_the_answer(*admitted, options);
  if (!options.html.empty()) {
    const std::string page = pipeline::schedule_html(problem, admitted->answer, command_line(), beside);
    if (Status written = write_file_atomically(options.html, page); !written) return report_error(written.error());
  }
  const std::string text = options.json ? sched::to_json(problem, admitted->answer, beside)
                                        : sched::explain(problem, admitted->answer, terminal_width(), beside);
  std::fputs(text.c_str(), stdout);
  if (!options.bundle.empty()) {
    if (admitted->answer.verdict != sched::Verdict::kFeasible) {
      return report_error({Code::kGate, "no bundle: only an admitted table goes to a board"});
    }
    const std::vector<pipeline::AdmittedMode> modes{{problem.name, &problem, &*admitted->answer.schedule}};
    if (Status written = write_board_bundle(admitted->config, modes, {}, options); !written) {
      return report_error(written.error());
    }
  }
  return admitted->answer.verdict == sched::Verdict::kFeasible ? 0 : 1;
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
  verb.add_option("--seed", options.seed, "seed of the search (the answer is the same for the same seed)")
      ->check(count_in(0, std::numeric_limits<std::uint64_t>::max()));
  verb.add_option("--nodes", options.nodes, "limit of the search in positions tried: the answer is the same everywhere")
      ->check(count_in(0, std::numeric_limits<std::uint64_t>::max()));
}

Result<Admitted> admit(const ScheduleOptions& options) {
  TAKT_ASSIGN(Asked asked, ask(options));
  return answer(std::move(asked), options, 0);
}

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("schedule", "Does the pipeline fit? Table, bounds and slack, or the reason why not");
  add_schedule_options(*verb, options->schedule);
  verb->add_option("--time", options->seconds,
                   "limit of the search in seconds as well: not reproducible, and marked so")
      ->check(number_in(0.001, 1e9));
  verb->add_option("--baseline", options->baselines,
                   "set the reactions beside those of the first table found, of epochs with barriers, and of published "
                   "bounds (repeatable; one table, no modes)")
      ->check(CLI::IsMember({"first-found", "epoch-barrier"}));
  verb->add_flag(
      "--scale", options->scale,
      "search how much all budgets may grow with a new table as well (a lower bound; some more searches; one table, no "
      "modes)");
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->add_option("--html", options->html, "write the answer with its Gantt chart as a page: one file, no network");
  verb->add_option("--bundle", options->bundle, "write what a board needs to run it: tables, plans, pools, arenas");
  verb->add_option("--certificate", options->certificate,
                   "write the proof of an infeasible pipeline to this file (one table, no modes)");
  verb->add_option("--check", options->check,
                   "replay a certificate against this pipeline, without any search (no modes)");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
