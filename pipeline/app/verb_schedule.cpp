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
#include <nlohmann/json.hpp>
#include <optional>

#include "pipeline/app/app.h"
#include "pipeline/app/bundle_summary.h"
#include "pipeline/app/devices.h"
#include "pipeline/app/numbers.h"
#include "pipeline/assembly/board_bundle.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/assembly/run_tables.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/schedule_html.h"
#include "runtime/base/file.h"
#include "runtime/base/suggest.h"
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
  std::string target, device_memory;  // a GPU that graphs are planned for, and how chunks get there
  double seconds = 0;
  bool json = false;
  std::string certificate;  // where to write the proof of an infeasible problem
  std::string check;        // a certificate to replay, or a bundle
  std::string html;         // where to write the page
  std::string bundle;       // where to write what a board needs
  std::vector<std::string> baselines;
  bool scale = false;  // how much budgets may grow with a new table
};

// "stage=k" of --gang.
struct Gang {
  std::string stage;
  int cores = 1;
};

// The problem that is asked about.
struct Asked {
  pipeline::PipelineConfig config;
  std::string other_machine;
  // Where gangs are asked for: they, and the problem without the what-ifs on core counts, which they choose from.
  std::vector<Gang> gangs;
  sched::Problem any_cores;
  std::optional<sched::ModeSet> any_cores_modes;
};

// Stages that the pipeline has and no mode runs.
std::vector<std::string> standing_by(const pipeline::PipelineConfig& config) {
  std::vector<std::string> out;
  for (const sched::Stage& stage : config.problem.stages) {
    if (!config.modes) break;
    const auto runs = [&stage](const sched::ModeSpec& mode) {
      return std::any_of(mode.problem.stages.begin(), mode.problem.stages.end(),
                         [&stage](const sched::Stage& own) { return own.name == stage.name; });
    };
    if (std::none_of(config.modes->modes.begin(), config.modes->modes.end(), runs)) out.push_back(stage.name);
  }
  return out;
}

std::string no_mode_runs(const std::string& stage) { return "no mode runs stage '" + stage + "'"; }

Result<std::vector<Gang>> read_gangs(const std::vector<std::string>& texts, const pipeline::PipelineConfig& config) {
  const sched::Problem& problem = config.problem;
  const std::vector<std::string> idle = standing_by(config);
  std::vector<std::string> names;
  for (const sched::Stage& stage : problem.stages) names.push_back(stage.name);
  std::vector<Gang> out;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string digits = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (digits.size() != 1 || digits[0] < '1' || digits[0] > '9') {
      return fail(Code::kUsage, "--gang expects stage=cores, for example lidar_detect=1; found '" + text + "'");
    }
    out.push_back({text.substr(0, equals), digits[0] - '0'});
    if (std::find(names.begin(), names.end(), out.back().stage) == names.end()) {
      return fail(Code::kUsage, "--gang " + text + ": no stage is called '" + out.back().stage + "'" +
                                    did_you_mean(out.back().stage, names));
    }
    if (std::find(idle.begin(), idle.end(), out.back().stage) != idle.end()) {
      return fail(Code::kUsage, "--gang " + text + ": " + no_mode_runs(out.back().stage));
    }
    const auto first = std::find_if(out.begin(), out.end(), [&](const Gang& g) { return g.stage == out.back().stage; });
    if (first != out.end() - 1) {
      return fail(Code::kUsage, "--gang " + text + ": stage '" + out.back().stage + "' is given twice");
    }
  }
  return out;
}

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

Status apply_what_ifs(sched::Problem& whole, std::optional<sched::ModeSet>& modes,
                      const std::vector<std::string>& changes) {
  for (const std::string& change : changes) TAKT_RETURN_IF_ERROR(sched::apply_what_if(whole, change));
  return modes && !changes.empty() ? apply_to_modes(*modes, changes) : Status();
}

Result<Asked> ask(const ScheduleOptions& options) {
  pipeline::PipelineConfig config;
  if (sched::is_problem_file(options.pipeline)) {
    // A problem by itself: nothing but its schedule can be asked for.
    if (options.device.device) {
      return fail(Code::kUsage, "--target is about the graphs of a pipeline; " + options.pipeline + " has none");
    }
    TAKT_ASSIGN(sched::LoadedProblem loaded, sched::load_problem_and_modes(options.pipeline, options.board));
    config.problem = std::move(loaded.problem);
    config.modes = std::move(loaded.modes);
    config.name = config.problem.name;
    config.file = options.pipeline;
  } else {
    TAKT_ASSIGN(const pipeline::ModelFiles models, model_files(options.models));
    TAKT_ASSIGN(config, pipeline::load_pipeline(options.pipeline, models, options.device, options.board));
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
  Asked out{std::move(config), std::move(other_machine), {}, {}, {}};
  TAKT_ASSIGN(out.gangs, read_gangs(options.gang, out.config));
  if (!out.gangs.empty()) {
    std::vector<std::string> others;
    std::copy_if(options.what_if.begin(), options.what_if.end(), std::back_inserter(others),
                 [](const std::string& change) { return change.find(".cores=") == std::string::npos; });
    out.any_cores = out.config.problem;
    out.any_cores_modes = out.config.modes;
    TAKT_RETURN_IF_ERROR(apply_what_ifs(out.any_cores, out.any_cores_modes, others));
  }
  TAKT_RETURN_IF_ERROR(apply_what_ifs(out.config.problem, out.config.modes, options.what_if));
  return out;
}

// Nothing is said that the independent validator or checker has not accepted.
Result<sched::Answer> judged_answer(const sched::Problem& problem, const sched::SynthesisOptions& search) {
  sched::Answer answer = sched::synthesize(problem, search);
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

// A table that expects the stamps of a sensor at their place begins a drain behind the mode before, and in that time
// they should come round to it.
void warn_of_drain(const sched::ModeSpec& mode, std::vector<std::string>& notes) {
  constexpr Duration kRounding = microseconds(1);  // of periods like a thirtieth of a second
  for (const sched::Sensor& sensor : mode.problem.sensors) {
    if (!sensor.phase) continue;
    const Duration over{mode.entry_drain.ns % sensor.period.ns};
    const Duration off = std::min(over, sensor.period - over);
    if (off <= kRounding) continue;
    const Duration up = mode.entry_drain - over + sensor.period;
    char text[512];
    std::snprintf(text, sizeof text,
                  "entry_drain_ms of %.3f is no whole number of periods of sensor '%s' (%.3f ms): its stamps come "
                  "%.3f ms off their place in this table, and what uses them is void until they are back; declare %.3f "
                  "or %.3f",
                  mode.entry_drain.ms(), sensor.name.c_str(), sensor.period.ms(), off.ms(),
                  (mode.entry_drain - over).ms(), up.ms());
    notes.emplace_back(text);
  }
}

Result<std::vector<sched::Answer>> answers_of(const sched::ModeSet& set, const std::string& other_machine,
                                              const sched::SynthesisOptions& search) {
  std::vector<sched::Answer> out;
  for (const sched::ModeSpec& mode : set.modes) {
    TAKT_ASSIGN(sched::Answer answer, judged_answer(mode.problem, search));
    if (!other_machine.empty()) answer.notes.push_back(other_machine);
    warn_of_drain(mode, answer.notes);
    out.push_back(std::move(answer));
  }
  return out;
}

// The table of `problem` as one of `any_cores`, with stages on fewer of their cores: starts and bindings stay, so that
// jobs have the same inputs.
Status on_fewer_cores(const sched::Problem& problem, const sched::Problem& any_cores, const std::vector<Gang>& gangs,
                      sched::Answer& answer) {
  sched::Schedule table = *answer.schedule;
  for (std::size_t s = 0; s < table.choices.size(); ++s) {
    std::uint32_t& variant = table.choices[s].variant;  // what-ifs on cores leave out variants
    const std::string& name = problem.stages[s].variants[variant].name;
    variant = 0;
    while (any_cores.stages[s].variants[variant].name != name) ++variant;
  }
  for (const Gang& gang : gangs) {
    const bool here = std::any_of(any_cores.stages.begin(), any_cores.stages.end(),
                                  [&gang](const sched::Stage& stage) { return stage.name == gang.stage; });
    if (!here) continue;
    TAKT_ASSIGN(table, pipeline::with_cores(any_cores, std::move(table), gang.stage, gang.cores));
  }
  TAKT_RETURN_IF_ERROR(sched::validate(any_cores, table));
  answer.schedule = std::move(table);
  return {};
}

// The same of every mode.
Status on_fewer_cores(const Asked& asked, std::vector<sched::Answer>& answers) {
  for (std::size_t m = 0; m < answers.size(); ++m) {
    const sched::ModeSpec& mode = asked.config.modes->modes[m];
    TAKT_RETURN_IF_ERROR(
        on_fewer_cores(mode.problem, asked.any_cores_modes->modes[m].problem, asked.gangs, answers[m])
            .map_error([&](Error error) { return std::move(error).with_context("--gang, mode '" + mode.name + "'"); }));
  }
  return {};
}

// One answer for all modes of the pipeline.
Status answer_modes(const Asked& asked, const sched::SynthesisOptions& search, Admitted& out) {
  TAKT_ASSIGN(out.mode_answers, answers_of(*out.config.modes, "", search));
  const bool all_feasible =
      std::all_of(out.mode_answers.begin(), out.mode_answers.end(),
                  [](const sched::Answer& answer) { return answer.verdict == sched::Verdict::kFeasible; });
  if (!asked.gangs.empty() && all_feasible) {
    TAKT_RETURN_IF_ERROR(on_fewer_cores(asked, out.mode_answers));
    out.config.problem = asked.any_cores;
    out.config.modes = asked.any_cores_modes;
  }
  const sched::ModeSet& set = *out.config.modes;
  const std::vector<sched::Answer>& answers = out.mode_answers;
  const sched::ModesAnswer judged = sched::judge_modes(set, answers);
  out.answer.verdict = judged.verdict;
  if (judged.verdict != sched::Verdict::kFeasible) {
    out.answer.reason = sched::explain_modes(set, answers, judged);
    return {};
  }
  for (std::size_t m = 0; m < answers.size(); ++m) {
    for (const std::string& note : answers[m].notes) {
      out.answer.notes.push_back("mode '" + set.modes[m].name + "': " + note);
    }
  }
  for (const std::string& stage : standing_by(out.config)) out.answer.notes.push_back(no_mode_runs(stage));
  TAKT_ASSIGN(out.modes, sched::admitted_tables(out.config.problem, set, answers, judged));
  out.answer.schedule = out.modes.front().schedule;
  return {};
}

Result<Admitted> answer(const Asked& asked, const sched::SynthesisOptions& search) {
  Admitted out{asked.config, {}, {}, {}};
  if (out.config.modes) {
    TAKT_RETURN_IF_ERROR(answer_modes(asked, search, out));
  } else {
    TAKT_ASSIGN(out.answer, judged_answer(out.config.problem, search));
    if (!asked.gangs.empty() && out.answer.verdict == sched::Verdict::kFeasible) {
      TAKT_RETURN_IF_ERROR(
          on_fewer_cores(asked.config.problem, asked.any_cores, asked.gangs, out.answer).map_error([](Error error) {
            return std::move(error).with_context("--gang");
          }));
      out.config.problem = asked.any_cores;
    }
  }
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

// The first signal ends the search; the answer is then what it had.
sched::SynthesisOptions search_of(const Options& options) {
  sched::SynthesisOptions search{options.schedule.seed, options.schedule.nodes, options.seconds};
  search.stop = &interrupted();
  return search;
}

// Why there is no such file, and that one from before is none of this answer.
Error no_file(Code code, const std::string& why, const std::string& path) {
  std::error_code error;
  const bool older = std::filesystem::exists(path, error);
  return {code, why + (older ? "; " + path + " is from before and was left as it is" : "")};
}

// The files of an answer are written before it is printed, and what went wrong with them is said last.
class Outputs {
 public:
  void write(const std::string& path, const std::string& content) { keep(write_file_atomically(path, content)); }
  void keep(Status status) {
    if (!status && !error_) error_ = std::move(status).error();
  }
  // The exit code of the command.
  int print(const std::string& answer, sched::Verdict verdict) {
    std::fputs(answer.c_str(), stdout);
    std::fflush(stdout);
    const int code = interrupted() ? 130 : verdict == sched::Verdict::kFeasible ? 0 : 1;
    if (!error_) return code;
    const int failed = report_error(*error_);
    return code == 130 ? code : failed;
  }

 private:
  std::optional<Error> error_;
};

void write_bundle_of(Outputs& outputs, const pipeline::PipelineConfig& config,
                     const std::vector<pipeline::AdmittedMode>& modes,
                     const std::vector<pipeline::BundleChange>& changes, sched::Verdict verdict,
                     const Options& options) {
  if (interrupted()) {
    outputs.keep(tl::unexpected(no_file(Code::kGate, "no bundle: the search was interrupted", options.bundle)));
  } else if (verdict != sched::Verdict::kFeasible) {
    outputs.keep(
        tl::unexpected(no_file(Code::kGate,
                               std::string("no bundle: only ") +
                                   (config.modes ? "admitted tables go" : "an admitted table goes") + " to a board",
                               options.bundle)));
  } else {
    outputs.keep(write_board_bundle(config, modes, changes, options));
  }
}

// What `option` asks of a pipeline has no meaning for one with modes.
Error about_one_table(const pipeline::PipelineConfig& config, const std::string& option) {
  return {Code::kUsage, "'" + config.name + "' has modes, and " + option + " is about one table\n  -> ask a copy of " +
                            config.file + " without 'modes' (and without stages that degrade to a mode)"};
}

// Every mode, every permitted change.
int run_modes(const Asked& asked, const Options& options) {
  const sched::ModeSet& set = *asked.config.modes;
  for (const auto& [given, option] :
       {std::pair{!options.certificate.empty(), "--certificate"}, std::pair{!options.check.empty(), "--check"},
        std::pair{options.scale, "--scale"}, std::pair{!options.baselines.empty(), "--baseline"}}) {
    if (given) return report_error(about_one_table(asked.config, option));
  }
  Result<std::vector<sched::Answer>> answered = answers_of(set, asked.other_machine, search_of(options));
  if (!answered) return report_error(answered.error());
  for (const std::string& stage : standing_by(asked.config)) answered->front().notes.push_back(no_mode_runs(stage));
  const std::vector<sched::Answer>& answers = *answered;
  const sched::ModesAnswer judged = sched::judge_modes(set, answers);
  Outputs outputs;
  if (!options.html.empty()) {
    outputs.write(options.html, pipeline::modes_html(set, answers, judged, command_line()));
  }
  if (!options.bundle.empty()) {
    std::vector<pipeline::AdmittedMode> modes;
    for (std::size_t m = 0; m < set.modes.size() && judged.verdict == sched::Verdict::kFeasible; ++m) {
      const sched::ModeSpec& mode = set.modes[m];
      modes.push_back({mode.name, &mode.problem, &*answers[m].schedule, mode.dwell, mode.lost});
    }
    std::vector<pipeline::BundleChange> changes;
    for (const sched::ChangeAnswer& change : judged.changes) {
      changes.push_back({change.from, change.to, set.modes[change.to].entry_drain});
    }
    write_bundle_of(outputs, asked.config, modes, changes, judged.verdict, options);
  }
  if (options.json) return outputs.print(sched::modes_json(set, answers, judged), judged.verdict);
  sched::Beside beside;
  beside.interrupted = interrupted();
  std::string text = sched::explain_modes(set, answers, judged);
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    text += "\n" + sched::explain(set.modes[m].problem, answers[m], terminal_width(), beside);
  }
  return outputs.print(text, judged.verdict);
}

// Replays a certificate against the problem as configured; nothing is searched.
Status replay_certificate(const sched::Problem& problem, const Options& options) {
  TAKT_ASSIGN(const std::string text, read_file(options.check));
  TAKT_ASSIGN(const sched::Certificate certificate, sched::read_certificate(problem, text).map_error([&](Error error) {
    return std::move(error).with_context(options.check);
  }));
  TAKT_RETURN_IF_ERROR(sched::check_certificate(problem, certificate));
  if (options.json) {
    const nlohmann::ordered_json accepted{{"accepted", "certificate"},
                                          {"problem", problem.name},
                                          {"board", problem.board.name},
                                          {"digest", sched::digest_of(problem).hex()}};
    std::puts(accepted.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return {};
  }
  std::printf("ACCEPTED: '%s' on board '%s' cannot meet its limits; every part of %s holds\n", problem.name.c_str(),
              problem.board.name.c_str(), options.check.c_str());
  return {};
}

// A bundle holds its own problems: nothing else is read.
int check_board_bundle(const Options& options) {
  const ScheduleOptions& of_pipeline = options.schedule;
  for (const auto& [given, option] :
       {std::pair{!of_pipeline.budgets.empty(), "--budgets"}, std::pair{!of_pipeline.what_if.empty(), "--what-if"},
        std::pair{!of_pipeline.models.empty(), "--model"}, std::pair{!of_pipeline.board.empty(), "--board"},
        std::pair{!options.target.empty(), "--target"}}) {
    if (!given) continue;
    return report_error(
        {Code::kUsage, options.check + " is a bundle, which holds its own problem: leave out " + option});
  }
  if (!options.schedule.pipeline.empty()) {
    return report_error({Code::kUsage, options.check + " is a bundle, which holds its own problem: leave out " +
                                           options.schedule.pipeline});
  }
  const Result<pipeline::Bundle> bundle = pipeline::load_bundle(options.check);
  if (!bundle) return report_error(bundle.error());
  std::fputs((options.json ? bundle_json(*bundle) : bundle_text(*bundle, options.check)).c_str(), stdout);
  return 0;
}

// An output that is an input, or another output, would be lost.
Status check_outputs(const Options& options) {
  std::vector<std::string> taken{options.schedule.pipeline, options.schedule.budgets, options.schedule.board,
                                 options.check};
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
  const sched::SynthesisOptions search = search_of(options);
  sched::Beside beside;
  beside.interrupted = interrupted();
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
  if (!options.check.empty() && pipeline::is_bundle(options.check)) return check_board_bundle(options);
  if (options.schedule.pipeline.empty()) {
    if (!options.check.empty()) {
      if (const auto there = read_file(options.check); !there) return report_error(there.error());
    }
    return report_error({Code::kUsage, options.check.empty()
                                           ? "a pipeline or problem file is needed, for example "
                                             "configs/pipelines/sim.yaml\n  -> " +
                                                 pipeline::program() + " schedule --help"
                                           : options.check + " is no bundle; a certificate is replayed against the "
                                                             "pipeline that it is about: name that as well"});
  }
  ScheduleOptions schedule = options.schedule;
  if (!options.target.empty()) {
    const Result<pipeline::DevicePlace> place = stand_in_for(options.target, options.device_memory);
    if (!place) return report_error(place.error());
    schedule.device = *place;
  }
  const Result<Asked> asked = ask(schedule);
  if (!asked) return report_error(asked.error());
  if (asked->config.modes) return run_modes(*asked, options);
  if (!options.check.empty()) {
    const Status replayed = replay_certificate(asked->config.problem, options);
    return replayed ? 0 : report_error(replayed.error());
  }
  const Result<Admitted> admitted = answer(*asked, search_of(options));
  if (!admitted) return report_error(admitted.error());
  const sched::Problem& problem = admitted->config.problem;
  const sched::Answer& answer = admitted->answer;
  const sched::Beside beside = beside_the_answer(*admitted, options);
  Outputs outputs;
  if (!options.certificate.empty() && answer.certificate) {
    outputs.write(options.certificate, sched::certificate_json(problem, *answer.certificate));
  } else if (!options.certificate.empty()) {
    const Error none = no_file(Code::kGate, "no certificate: nothing was found to be infeasible", options.certificate);
    std::fprintf(stderr, "takt: %s\n", none.message.c_str());
  }
  if (!options.html.empty()) {
    outputs.write(options.html, pipeline::schedule_html(problem, answer, command_line(), beside));
  }
  if (!options.bundle.empty()) {
    std::vector<pipeline::AdmittedMode> modes;
    if (answer.schedule) modes.push_back({problem.name, &problem, &*answer.schedule});
    write_bundle_of(outputs, admitted->config, modes, {}, answer.verdict, options);
  }
  return outputs.print(options.json ? sched::to_json(problem, answer, beside)
                                    : sched::explain(problem, answer, terminal_width(), beside),
                       answer.verdict);
}

// A name that a file can have; "-" would be one called so.
CLI::Validator file_name() {
  return {[](std::string& text) -> std::string {
            return text.empty() || text == "-" ? "expected the name of a file; found '" + text + "'" : "";
          },
          ""};
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
  verb.add_option("--budgets", options.budgets, "budgets file written by `takt profile` (default: declared budgets)")
      ->check(file_name());
  verb.add_option("--what-if", options.what_if,
                  "change the problem first: stage.budget=+20%, stage.budget=12ms, stage.rate=10, stage.cores=2");
  add_model_option(verb, options.models);
  verb.add_option("--seed", options.seed, "seed of the search (the answer is the same for the same seed)")
      ->check(count_in(0, std::numeric_limits<std::uint64_t>::max()));
  verb.add_option("--nodes", options.nodes, "limit of the search in positions tried: the answer is the same everywhere")
      ->check(count_in(1, std::numeric_limits<std::uint64_t>::max()));
}

Result<Admitted> admit(const ScheduleOptions& options) {
  TAKT_ASSIGN(const Asked asked, ask(options));
  return answer(asked, {options.seed, options.nodes});
}

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("schedule", "Does the pipeline fit? Table, bounds and slack, or the reason why not");
  add_schedule_options(*verb, options->schedule);
  verb->add_option("--board", options->schedule.board,
                   "another board than the file names, for example configs/boards/orin_nx.yaml")
      ->check(file_name());
  CLI::Option* const target = verb->add_option(
      "--target", options->target,
      "cuda:sm_87 or cuda:sm_90: graphs are planned for this GPU, and budgets held against what the board says of it; "
      "the GPU is not needed");
  verb->add_option("--device-memory", options->device_memory,
                   "of that GPU: in-place (it reads chunks where they lie) or copied; default: what it is made for")
      ->check(CLI::IsMember({"in-place", "copied"}))
      ->needs(target);
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
  verb->add_option("--html", options->html, "write the answer with its Gantt chart as a page: one file, no network")
      ->check(file_name());
  verb->add_option("--bundle", options->bundle, "write what a board needs to run it: tables, plans, pools, arenas")
      ->check(file_name());
  verb->add_option("--certificate", options->certificate,
                   "write the proof of an infeasible pipeline to this file (one table, no modes)")
      ->check(file_name());
  verb->add_option("--check", options->check,
                   "no search: replay a certificate against this pipeline (one table, no modes); "
                   "or, without a pipeline, check a bundle and say what is in it")
      ->check(file_name());
  verb->get_option("pipeline")->required(false);  // a bundle is checked by itself
  verb->callback([options, verb, &chosen] {
    constexpr const char* kNoSearch = "what is checked is in the file, nothing is searched";
    refuse_together(*verb, {{"--check", "--html", kNoSearch},
                            {"--check", "--bundle", kNoSearch},
                            {"--check", "--certificate", kNoSearch},
                            {"--check", "--scale", kNoSearch},
                            {"--check", "--baseline", kNoSearch},
                            {"--check", "--time", kNoSearch},
                            {"--check", "--seed", kNoSearch},
                            {"--check", "--nodes", kNoSearch},
                            {"--target", "--bundle", "boards run the graphs of a bundle on their cores"}});
    chosen = [options] { return run(*options); };
  });
}

}  // namespace takt::app
