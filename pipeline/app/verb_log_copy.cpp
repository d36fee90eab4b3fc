// takt log recover, convert, cut, merge, filter: a new MCAP file from one or more recordings.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "pipeline/app/verb_log.h"

namespace takt::app {
namespace {

struct Options {
  std::vector<std::string> inputs, topics, exclude;
  std::string out, compression = "auto", start, end;
  bool scan = false, json = false, quiet = false;
};

void print_json(const Options& options, const sensors::CopyReport& report) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["inputs"] = options.inputs;
  out["output"] = options.out;
  out["messages"] = report.messages;
  out["bytes"] = report.bytes;
  out["verified"] = report.verified;
  out["static_kept"] = report.static_kept;
  out["attachments"] = report.attachments;
  out["metadata"] = report.metadata;
  out["channels"] = Json::array();
  for (const auto& c : report.channels) {
    out["channels"].push_back({{"topic", c.topic}, {"schema", c.schema}, {"read", c.read}, {"written", c.written}});
  }
  out["problems"] = Json::array();
  for (const auto& p : report.problems) {
    out["problems"].push_back(
        {{"input", p.input}, {"kind", p.problem.kind}, {"offset", p.problem.offset}, {"detail", p.problem.detail}});
  }
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_text(const Options& options, const sensors::CopyReport& report) {
  for (const auto& c : report.channels) {
    std::printf("  %9llu  %s\n", static_cast<unsigned long long>(c.written), c.topic.c_str());
  }
  if (report.static_kept != 0) {
    std::printf("  of these %llu static messages from before the start\n",
                static_cast<unsigned long long>(report.static_kept));
  }
  std::printf("%s: %llu messages written and read back, %llu attachments, %llu metadata records\n", options.out.c_str(),
              static_cast<unsigned long long>(report.messages), static_cast<unsigned long long>(report.attachments),
              static_cast<unsigned long long>(report.metadata));
}

Result<sensors::CopyReport> copy(const Options& options, const sensors::LogProgress& progress) {
  sensors::CopyOptions copy;
  copy.topics = options.topics;
  copy.exclude = options.exclude;
  copy.scan = options.scan;
  copy.progress = progress;
  if (options.compression == "none") copy.compression = sensors::Compression::kNone;
  if (options.compression == "lz4") copy.compression = sensors::Compression::kLz4;
  if (options.compression == "zstd") copy.compression = sensors::Compression::kZstd;
  if (!options.start.empty() || !options.end.empty()) {
    TAKT_ASSIGN(const auto log, sensors::open_log_for_tools(options.inputs.front(), options.scan));
    std::optional<SensorTime> begin;
    if (log->span()) begin = log->span()->first;
    TAKT_ASSIGN(copy.start, log_time(options.start, begin));
    TAKT_ASSIGN(copy.end, log_time(options.end, begin));
  }
  return sensors::copy_log(options.inputs, options.out, copy);
}

int run(const char* name, const Options& options) {
  Result<sensors::CopyReport> report;
  {
    LogLine line(name, options.quiet || options.json);
    report = copy(options, std::ref(line));
  }
  if (!report) return report_error(report.error());
  if (options.json) {
    print_json(options, *report);
  } else if (!options.quiet) {
    print_text(options, *report);
  }
  if (report->problems.empty()) return 0;
  const auto& first = report->problems.front();
  std::fprintf(stderr,
               "takt: %zu place(s) of the input are damaged, first: %s at byte %llu of %s; the rest was copied\n",
               report->problems.size(), first.problem.kind.c_str(),
               static_cast<unsigned long long>(first.problem.offset), first.input.c_str());
  return exit_code(Code::kInput);
}

enum Parts : unsigned { kTopics = 1, kTimes = 2, kSeveral = 4, kScan = 8 };

void add(CLI::App& log, Command& chosen, const char* name, const char* what, unsigned parts) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = log.add_subcommand(name, what);
  options->scan = (parts & kScan) != 0;
  auto* inputs = verb->add_option("log", options->inputs, "recording(s) in any format that takt reads")->required();
  if ((parts & kSeveral) == 0) inputs->expected(1);
  verb->add_option("-o,--out", options->out, "the MCAP file to write")->required();
  verb->add_option("--compression", options->compression, "auto: zstd, packed pictures plain")
      ->check(CLI::IsMember({"auto", "none", "lz4", "zstd"}))
      ->capture_default_str();
  if ((parts & kTopics) != 0) {
    verb->add_option("--topics", options->topics, "only topics that match (* and ?)");
    verb->add_option("--exclude", options->exclude, "no topics that match");
  }
  if ((parts & kTimes) != 0) {
    verb->add_option("--start", options->start, "seconds from the start of the log, or @seconds of its clock");
    verb->add_option("--end", options->end, "likewise; what arrives then is still in");
  }
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line, no summary");
  verb->callback([options, &chosen, name] { chosen = [options, name] { return run(name, *options); }; });
}

}  // namespace

void add_log_copies(CLI::App& log, Command& chosen) {
  add(log, chosen, "recover",
      "Save what can be read of a damaged log; read back before it counts as saved; exit code 3", kScan);
  add(log, chosen, "convert", "Any readable format to MCAP", kTopics);
  add(log, chosen, "cut", "A part in time; static transforms from before the start are kept", kTopics | kTimes);
  add(log, chosen, "merge", "Several logs into one, in the order of arrival", kTopics | kSeveral);
  add(log, chosen, "filter", "Some topics", kTopics);
}

}  // namespace takt::app
