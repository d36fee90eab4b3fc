// takt log export: pictures as JPEG or PNG, clouds as PCD.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "pipeline/app/verb_log.h"
#include "sensors/logs/log_export.h"

namespace takt::app {
namespace {

struct Options {
  std::string log, out, start, end;
  std::vector<std::string> topics, exclude;
  bool ascii = false, json = false, quiet = false;
};

Result<sensors::ExportReport> work(const Options& options, const sensors::LogProgress& progress) {
  sensors::ExportOptions what;
  what.topics = options.topics;
  what.exclude = options.exclude;
  what.ascii = options.ascii;
  what.progress = progress;
  if (!options.start.empty() || !options.end.empty()) {
    TAKT_ASSIGN(const auto log, sensors::open_log_for_tools(options.log, false));
    std::optional<SensorTime> begin;
    if (log->span()) begin = log->span()->first;
    TAKT_ASSIGN(what.start, log_time(options.start, begin));
    TAKT_ASSIGN(what.end, log_time(options.end, begin));
  }
  return sensors::export_log(options.log, options.out, what);
}

int run(const Options& options) {
  Result<sensors::ExportReport> report;
  {
    LogLine line("exporting", options.quiet || options.json);
    report = work(options, std::ref(line));
  }
  if (!report) return report_error(report.error());
  if (options.json) {
    using Json = nlohmann::ordered_json;
    Json out;
    out["log"] = options.log;
    out["folder"] = options.out;
    out["files"] = report->files;
    out["bytes"] = report->bytes;
    out["refused"] = report->refused;
    out["other_topics"] = report->other_topics;
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (!options.quiet) {
    for (const auto& [topic, files] : report->files) {
      std::printf("  %9llu  %s\n", static_cast<unsigned long long>(files), topic.c_str());
    }
    std::printf("%s: %.1f MB\n", options.out.c_str(), static_cast<double>(report->bytes) * 1e-6);
  }
  for (const auto& [reason, count] : report->refused) {
    std::fprintf(stderr, "takt: %llu messages not exported: %s\n", static_cast<unsigned long long>(count),
                 reason.c_str());
  }
  if (!report->problems.empty()) {
    std::fprintf(stderr, "takt: the log is damaged: %s at byte %llu; the rest was exported\n",
                 report->problems.front().kind.c_str(),
                 static_cast<unsigned long long>(report->problems.front().offset));
  }
  return report->problems.empty() && report->refused.empty() ? 0 : exit_code(Code::kInput);
}

}  // namespace

void add_log_export(CLI::App& log, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = log.add_subcommand("export", "Pictures as JPEG or PNG, clouds as PCD, one file per message");
  verb->add_option("log", options->log, "a recording in any format that takt reads")->required();
  verb->add_option("-o,--out", options->out, "folder for the files")->required();
  verb->add_option("--topics", options->topics, "only topics that match (* and ?)");
  verb->add_option("--exclude", options->exclude, "no topics that match");
  verb->add_option("--start", options->start, "seconds from the start of the log, or @seconds of its clock");
  verb->add_option("--end", options->end, "likewise");
  verb->add_flag("--ascii", options->ascii, "PCD as text instead of binary");
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line, no summary");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
