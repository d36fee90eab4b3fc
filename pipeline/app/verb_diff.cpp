// takt diff: which inputs of two runs differ, and the first job whose output differs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/report/diff.h"
#include "pipeline/report/report.h"
#include "pipeline/report/run_folder.h"

namespace takt::app {
namespace {

struct Options {
  std::string a, b;
  bool json = false;
};

int run(const Options& options) {
  const Result<pipeline::RunData> a = pipeline::load_run(options.a);
  if (!a) return report_error(a.error());
  const Result<pipeline::RunData> b = pipeline::load_run(options.b);
  if (!b) return report_error(b.error());
  const pipeline::DiffResult diff = pipeline::diff_runs(*a, *b);
  std::fputs((options.json ? diff.json() : diff.text()).c_str(), stdout);
  return diff.outputs_equal ? 0 : 1;
}

}  // namespace

void add_diff(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("diff", "Compare two run folders: inputs that differ, first job whose output differs");
  verb->add_option("a", options->a, "run folder")->required();
  verb->add_option("b", options->b, "run folder")->required();
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
