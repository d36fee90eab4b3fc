// takt report: writes the report of a run folder anew.

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
  std::string folder;
  bool json = false;
};

int run(const Options& options) {
  const Result<pipeline::RunData> data = pipeline::load_run(options.folder);
  if (!data) return report_error(data.error());
  if (const Status written = pipeline::write_report(*data, options.folder); !written) {
    return report_error(written.error());
  }
  if (options.json) {
    std::printf("%s\n", pipeline::report_json(*data).c_str());
  } else {
    std::fputs(pipeline::ten_lines(*data).c_str(), stdout);
  }
  // As the run ended: faults that it bore as expected may have made it fail.
  const bool failed = pipeline::faults_are_judged(*data) ? !data->faults->met()
                                                         : pipeline::outcome_of(*data) == pipeline::Outcome::kFail;
  return failed ? exit_code(Code::kGate) : 0;
}

}  // namespace

void add_report(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("report", "Write report.html, report.json and junit.xml of a run folder anew");
  verb->add_option("run", options->folder, "run folder")->required();
  verb->add_flag("--json", options->json, "print report.json on stdout");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
