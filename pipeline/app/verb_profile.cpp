// takt profile: measured budgets.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "pipeline/app/app.h"
#include "pipeline/app/devices.h"
#include "pipeline/app/numbers.h"
#include "pipeline/assembly/profile.h"
#include "runtime/base/outputs.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/yaml.h"

namespace takt::app {
namespace {

using pipeline::Beside;

struct Options {
  std::string pipeline, out = "budgets.yaml";
  std::vector<std::string> models, beside;
  pipeline::ProfileOptions profile;
  std::string against, device = "cpu", device_memory;
  bool quiet = false;
};

// Jobs in segments: each by itself.
void print_segments(const pipeline::PipelineConfig& config, const pipeline::Profile& profile) {
  for (const pipeline::ProfileRow& row : profile.rows) {
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
      const sched::Segment& segment = row.budget.segments[i];
      const pipeline::SegmentTimes& times = row.segments[i];
      std::printf("%-16s %-9s %5d %-7s max %7.3f ms, budget %7.3f ms", row.stage.c_str(), row.variant.c_str(),
                  row.budget.cores, segment.unit ? config.problem.board.units[*segment.unit].name.c_str() : "cores",
                  times.time.ms(), segment.time.ms());
      if (segment.unit) {
        std::printf("; handed over within %.3f ms, %.3f ms of the device's time", times.launch.ms(),
                    times.on_device.ms());
      }
      std::printf("\n");
    }
  }
}

// Jobs that were measured again.
void print_interrupted(const pipeline::Profile& profile) {
  std::uint64_t jobs = 0;
  Duration most;
  for (const pipeline::ProfileRow& row : profile.rows) {
    for (const pipeline::ProfileClass& one : row.classes) {
      jobs += one.interrupted;
      most = std::max(most, one.most_taken);
    }
  }
  if (jobs == 0) return;
  std::printf(
      "the hypervisor took the core of %llu job(s), for up to %.3f ms: measured again, no budget covers it (steal)\n",
      static_cast<unsigned long long>(jobs), most.ms());
}

// A line per class, its budget beside the first, and what an extreme-value estimate says where the data bear one.
void print(const pipeline::Profile& profile) {
  std::printf("%-16s %-9s %5s %-7s %10s %10s %10s %10s %10s\n", "stage", "variant", "cores", "beside", "median", "p99",
              "max", "warm-up", "budget");
  for (const pipeline::ProfileRow& row : profile.rows) {
    for (const pipeline::ProfileClass& one : row.classes) {
      const bool first = &one == &row.classes.front();
      std::printf("%-16s %-9s %5s %-7s %7.3f ms %7.3f ms %7.3f ms %7.3f ms", first ? row.stage.c_str() : "",
                  first ? row.variant.c_str() : "", first ? std::to_string(row.budget.cores).c_str() : "",
                  pipeline::name_of(one.beside), one.median.ms(), one.p99.ms(), one.max.ms(), one.warm_up_max.ms());
      if (first) std::printf(" %7.3f ms", row.budget.time.ms());
      std::printf("\n");
    }
  }
  print_interrupted(profile);
  std::printf("\nextreme values (peaks over threshold; estimates for people, no budget and no proof uses them)\n");
  for (const pipeline::ProfileRow& row : profile.rows) {
    for (const pipeline::ProfileClass& one : row.classes) {
      std::printf("%-16s %-9s %5d %-7s ", row.stage.c_str(), row.variant.c_str(), row.budget.cores,
                  pipeline::name_of(one.beside));
      if (!one.tail.refused.empty()) {
        std::printf("none: %s\n", one.tail.refused.c_str());
      } else {
        std::printf("exceeded once in 10^6 jobs: %.3f ms, in 10^9: %.3f ms (shape %.2f)\n",
                    one.tail.once_in_million.ms(), one.tail.once_in_billion.ms(), one.tail.shape);
      }
    }
  }
  std::printf("\n");
}

// How far the machine's own wake-ups explain the start errors of jobs.
void print_calibration(const pipeline::PipelineConfig& config, const pipeline::Profile& profile) {
  std::printf("start error, p99.9, median of 5 alternating blocks on the same core:");
  for (std::size_t core = 0; core < profile.dispatch_error.size(); ++core) {
    std::printf("%s %s jobs %.3f ms, a sleeping thread %.3f ms", core == 0 ? "" : ";",
                config.problem.board.cores[core].name.c_str(), profile.dispatch_error[core].ms(),
                profile.sleep_error[core].ms());
  }
  std::printf("\n");
}

// Every budget of an earlier profile is of this pipeline: one that none of its jobs has could not be judged.
Status check_earlier(const pipeline::PipelineConfig& config, const sched::BudgetTable& earlier) {
  sched::Problem changed = config.problem;
  TAKT_RETURN_IF_ERROR(sched::apply_budgets(changed, earlier));
  for (const sched::StageBudget& entry : earlier.budgets) {
    for (const sched::Stage& stage : config.problem.stages) {
      for (const sched::Variant& variant : stage.variants) {
        if (entry.stage != stage.name || entry.variant != variant.name) continue;
        std::string declared;
        bool known = false;
        for (const sched::Budget& budget : variant.budgets) {
          known = known || budget.cores == entry.budget.cores;
          declared += (declared.empty() ? "" : ", ") + std::to_string(budget.cores);
        }
        if (known) continue;
        return fail(Code::kConfiguration, entry.budget.place + ": a budget of " + std::to_string(entry.budget.cores) +
                                              " core(s) for variant '" + entry.variant + "' of stage '" + entry.stage +
                                              "', which the pipeline runs on " + declared);
      }
    }
  }
  return {};
}

// Below 1 the budget did not hold, far above it is wider than its margin explains; either changes the exit code.
void judge_one(const std::string& what, Duration budget, Duration largest, bool quiet, int& worst) {
  constexpr double kWidest = 1.5;
  const double tightness = budget.ms() / largest.ms();
  const char* const word = tightness < 1 ? "NOT HELD" : tightness > kWidest ? "loose" : "ok";
  if (tightness < 1 || tightness > kWidest) worst = exit_code(Code::kGate);
  if (quiet) return;
  std::printf("%s  budget %7.3f ms / largest now %7.3f ms = %.2f  %s\n", what.c_str(), budget.ms(), largest.ms(),
              tightness, word);
}

// Budgets of an earlier profile against the maxima of this one: held, and not wider than they need to be.
int judge_tightness(const pipeline::PipelineConfig& config, const sched::BudgetTable& earlier,
                    const pipeline::Profile& profile, bool quiet) {
  int worst = 0;
  std::size_t judged = 0;
  for (const pipeline::ProfileRow& row : profile.rows) {
    for (const sched::StageBudget& entry : earlier.budgets) {
      const sched::Budget& budget = entry.budget;
      if (entry.stage != row.stage || entry.variant != row.variant || budget.cores != row.budget.cores) continue;
      char name[128];
      std::snprintf(name, sizeof name, "%-16s %-9s %5d", row.stage.c_str(), row.variant.c_str(), row.budget.cores);
      ++judged;
      if (row.segments.empty()) judge_one(name, budget.time, row.budget.high_water, quiet, worst);
      for (std::size_t i = 0; i < row.segments.size(); ++i) {
        const auto& unit = row.budget.segments[i].unit;
        const std::string on = unit ? config.problem.board.units[*unit].name : "cores";
        judge_one(std::string(name) + " segment " + std::to_string(i + 1) + " (" + on + ")", budget.segments[i].time,
                  row.segments[i].time, quiet, worst);
      }
    }
  }
  if (judged == 0) {
    return report_error({Code::kConfiguration, "the earlier budgets name none of this pipeline's stages"});
  }
  return worst;
}

int run(const Options& options) {
  if (options.against.empty()) {
    if (const Status possible = can_write_file(options.out); !possible) return report_error(possible.error());
  }
  const Result<pipeline::ModelFiles> models = model_files(options.models);
  if (!models) return report_error(models.error());
  const Result<pipeline::DevicePlace> place = open_device(options.device, options.device_memory);
  if (!place) return report_error(place.error());
  const Result<pipeline::PipelineConfig> config = pipeline::load_pipeline(options.pipeline, *models, *place);
  if (!config) return report_error(config.error());
  std::optional<sched::BudgetTable> earlier;
  if (!options.against.empty()) {
    Result<sched::BudgetTable> loaded = sched::load_budgets(options.against);
    if (!loaded) return report_error(loaded.error());
    if (const Status fits = check_earlier(*config, *loaded); !fits) return report_error(fits.error());
    earlier = *std::move(loaded);
  }
  if (const std::string lacking = pipeline::cores_not_here(config->problem.board); !lacking.empty()) {
    std::fprintf(
        stderr,
        "takt: board '%s' (%s) has cores that this machine does not give: %s; what belongs there is measured on "
        "others\n  -> profile on that board, or name a board file of this machine in the pipeline\n",
        config->problem.board.name.c_str(), config->board_file.c_str(), lacking.c_str());
  }
  pipeline::ProfileOptions profile_options = options.profile;
  profile_options.stop = &interrupted();
  if (!options.beside.empty()) {
    profile_options.beside.clear();
    for (const Beside beside : {Beside::kAlone, Beside::kStages, Beside::kMemory}) {
      const auto asked = std::find(options.beside.begin(), options.beside.end(), pipeline::name_of(beside));
      if (asked != options.beside.end()) profile_options.beside.push_back(beside);
    }
  }
  Result<pipeline::Profile> profile = [&] {
    Progress progress("profiling", options.quiet);
    profile_options.progress = [&](double done, double total) { progress.update(done, total); };
    return pipeline::profile_stages(*config, profile_options);
  }();
  if (!profile) return report_error(profile.error());
  if (earlier) {
    if (!options.quiet) {
      print(*profile);
      print_segments(*config, *profile);
    }
    return judge_tightness(*config, *earlier, *profile, options.quiet);
  }
  const Status written = sched::save_budgets(options.out, pipeline::budget_table(*config, *profile));
  if (!written) return report_error(written.error());
  if (!options.quiet) {
    print(*profile);
    print_segments(*config, *profile);
    print_calibration(*config, *profile);
    std::printf(
        "wake-up window w %.3f ms, publish window p %.3f ms: p99.9 within 2 s on the worst core, %.3f and %.3f ms, "
        "kept "
        "within 0.2 and 5 ms\n",
        profile->wakeup_window.ms(), profile->publish_window.ms(), profile->start_error.ms(),
        profile->publish_error.ms());
    std::string classes;
    for (const Beside beside : profile_options.beside) {
      classes += (classes.empty() ? "" : ", ") + std::string(pipeline::name_of(beside));
    }
    std::printf(
        "interference: %s; inputs at declared capacity; %llu samples per class (%s), margin %.2f over the largest\n",
        classes.c_str(), static_cast<unsigned long long>(options.profile.samples),
        options.profile.samples >= 1000 ? "profiled" : "exploratory: fewer than 1000", options.profile.margin);
    if (!profile->refused.empty()) std::printf("refused by the system: %s\n", profile->refused.c_str());
    std::printf("%s\n", options.out.c_str());
  }
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("profile", "Measure execution-time budgets of every stage, variant and core count");
  verb->add_option("pipeline", options->pipeline, "pipeline file")->required();
  add_model_option(*verb, options->models);
  add_device_options(*verb, options->device, options->device_memory);
  verb->add_option(
          "--beside", options->beside,
          "what runs beside the measured stage (repeatable; by default each in turn, and the budget covers all): "
          "alone, stages (the other ones), memory (threads that saturate it and the last-level cache). Measured "
          "alone only, a budget bears no other job beside it in the table")
      ->check(CLI::IsMember({"alone", "stages", "memory"}));
  verb->add_option("-o,--out", options->out, "budgets file to write")->capture_default_str();
  verb->add_option(
      "--against", options->against,
      "write nothing; judge the budgets of this file by what is measured now: budget / largest time, 1.0 to "
      "1.5, else exit code 1");
  verb->add_option("--samples", options->profile.samples, "runs per class and budget; fewer than 1000 is exploratory")
      ->check(count_in(10, 10'000'000))
      ->capture_default_str();
  verb->add_option("--margin", options->profile.margin, "budget = high-water mark x margin")
      ->check(number_in(1, 10))
      ->capture_default_str();
  verb->add_flag("-q,--quiet", options->quiet, "print nothing");
  verb->callback([options, verb, &chosen] {
    refuse_together(*verb, {{"--against", "--out", "budgets are judged, none are written"},
                            {"--against", "--margin", "budgets of the file are judged, which have their own"}});
    chosen = [options] { return run(*options); };
  });
}

}  // namespace takt::app
