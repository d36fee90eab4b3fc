// takt profile: measured budgets.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "pipeline/assembly/profile.h"
#include "scheduler/model/budgets.h"

namespace takt::app {
namespace {

struct Options {
  std::string pipeline, out = "budgets.yaml";
  std::vector<std::string> models;
  pipeline::ProfileOptions profile;
  bool quiet = false;
};

int run(const Options& options) {
  const Result<pipeline::ModelFiles> models = model_files(options.models);
  if (!models) return report_error(models.error());
  const Result<pipeline::PipelineConfig> config = pipeline::load_pipeline(options.pipeline, *models);
  if (!config) return report_error(config.error());
  pipeline::ProfileOptions profile_options = options.profile;
  profile_options.stop = &interrupted();
  Result<pipeline::Profile> profile = [&] {
    Progress progress("profiling", options.quiet);
    profile_options.progress = [&](double done, double total) { progress.update(done, total); };
    return pipeline::profile_stages(*config, profile_options);
  }();
  if (!profile) return report_error(profile.error());
  const Status written = sched::save_budgets(options.out, pipeline::budget_table(*config, *profile));
  if (!written) return report_error(written.error());
  if (!options.quiet) {
    std::printf("%-16s %-8s %5s %10s %10s %10s %10s %10s\n", "stage", "variant", "cores", "median", "p99", "max",
                "budget", "warm-up");
    for (const pipeline::ProfileRow& row : profile->rows) {
      std::printf("%-16s %-8s %5d %7.3f ms %7.3f ms %7.3f ms %7.3f ms %7.3f ms\n", row.stage.c_str(),
                  row.variant.c_str(), row.budget.cores, row.median.ms(), row.p99.ms(), row.budget.high_water.ms(),
                  row.budget.time.ms(), row.warm_up_max.ms());
    }
    std::printf("wake-up window w %.3f ms, publish window p %.3f ms\n", profile->wakeup_window.ms(),
                profile->publish_window.ms());
    std::printf(
        "interference: alone on the machine, inputs at declared capacity; %llu samples each (%s), margin %.2f\n",
        static_cast<unsigned long long>(options.profile.samples),
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
  verb->add_option("-o,--out", options->out, "budgets file to write")->capture_default_str();
  verb->add_option("--samples", options->profile.samples, "runs per budget; fewer than 1000 is exploratory")
      ->check(count_in(10, 10'000'000))
      ->capture_default_str();
  verb->add_option("--margin", options->profile.margin, "budget = high-water mark x margin")
      ->check(number_in(1, 10))
      ->capture_default_str();
  verb->add_flag("-q,--quiet", options->quiet, "print nothing");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
