// takt log info, takt log doctor.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "pipeline/app/verb_log.h"
#include "pipeline/report/commands.h"

namespace takt::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string log;
  bool full = false, json = false, quiet = false;
};

constexpr std::uint64_t kReadWithoutAsking = std::uint64_t{64} << 20;  // bytes; about a tenth of a second

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// The log's bytes are not always text: JSON must not fail on them.
std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json problems_json(const std::vector<sensors::LogProblem>& problems) {
  Json out = Json::array();
  for (const auto& p : problems) out.push_back({{"kind", p.kind}, {"offset", p.offset}, {"detail", p.detail}});
  return out;
}

Json info_json(const std::string& path, const sensors::LogFacts& facts) {
  Json out;
  out["log"] = path;
  for (const auto& [key, value] : facts.properties) out["properties"][key] = value;
  out["messages"] = facts.messages;
  if (facts.span) {
    out["start_ns"] = facts.span->first.ns;
    out["end_ns"] = facts.span->second.ns;
  }
  out["every_message_read"] = facts.full;
  out["channels"] = Json::array();
  for (const auto& c : facts.channels) {
    Json channel{{"id", c.channel.id},         {"topic", c.channel.topic}, {"encoding", c.channel.encoding},
                 {"schema", c.channel.schema}, {"messages", c.messages},   {"rate_hz", c.rate_hz}};
    if (facts.full && c.messages > 0) {
      channel["first_ns"] = c.first->ns;
      channel["last_ns"] = c.last->ns;
      channel["bytes"] = c.bytes;
      channel["smallest_bytes"] = c.smallest;
      channel["largest_bytes"] = c.largest;
      channel["usual_gap_ns"] = c.usual_gap.ns;
      channel["gaps"] = c.gaps;
      channel["longest_gap_ns"] = c.longest_gap.ns;
      channel["longest_gap_at_ns"] = c.longest_gap_at.ns;
      channel["arrival_minus_stamp_ns"] = {
          {"least", c.least_delay.ns}, {"mean", c.mean_delay.ns}, {"most", c.most_delay.ns}};
      channel["stamped_after_arrival"] = c.negative_delays;
    }
    out["channels"].push_back(std::move(channel));
  }
  out["attachments"] = Json::array();
  for (const auto& a : facts.attachments) {
    out["attachments"].push_back({{"name", a.name}, {"media_type", a.media_type}, {"bytes", a.bytes}});
  }
  out["metadata"] = Json::array();
  for (const auto& m : facts.metadata) out["metadata"].push_back({{"name", m.name}, {"entries", m.entries}});
  out["problems"] = problems_json(facts.problems);
  return out;
}

std::string size_text(std::uint64_t bytes) {
  char text[32];
  const auto b = static_cast<double>(bytes);
  if (bytes < 10'000) {
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
  } else if (bytes < 10'000'000) {
    std::snprintf(text, sizeof text, "%.0f kB", b * 1e-3);
  } else {
    std::snprintf(text, sizeof text, "%.0f MB", b * 1e-6);
  }
  return text;
}

void print_info(const std::string& path, const sensors::LogFacts& facts) {
  std::printf("%s\n", path.c_str());
  for (const auto& [key, value] : facts.properties) {
    if (!value.empty()) std::printf("  %-10s %s\n", key.c_str(), value.c_str());
  }
  if (facts.span) {
    std::printf("  %-10s %.3f s, from %.3f s to %.3f s of its clock\n", "duration",
                (facts.span->second - facts.span->first).seconds(), static_cast<double>(facts.span->first.ns) * 1e-9,
                static_cast<double>(facts.span->second.ns) * 1e-9);
  }
  std::printf("  %-10s %llu on %zu channels\n\n", "messages", static_cast<unsigned long long>(facts.messages),
              facts.channels.size());
  std::size_t width = 5;
  for (const auto& c : facts.channels) width = std::max(width, c.channel.topic.size());
  std::printf("  %-*s %9s %9s", static_cast<int>(width), "topic", "messages", "Hz");
  if (facts.full) std::printf(" %9s %6s %11s  %-24s", "size", "gaps", "longest", "arrival - stamp, ms");
  std::printf(" schema\n");
  for (const auto& c : facts.channels) {
    std::printf("  %-*s %9llu %9.2f", static_cast<int>(width), c.channel.topic.c_str(),
                static_cast<unsigned long long>(c.messages), c.rate_hz);
    if (facts.full) {
      char delay[64] = "";
      if (c.messages > 0) {
        std::snprintf(delay, sizeof delay, "%.1f (%.1f to %.1f)", c.mean_delay.ms(), c.least_delay.ms(),
                      c.most_delay.ms());
      }
      std::printf(" %9s %6llu %8.1f ms  %-24s", size_text(c.bytes).c_str(), static_cast<unsigned long long>(c.gaps),
                  c.longest_gap.ms(), delay);
    }
    std::printf(" %s\n", c.channel.schema.empty() ? c.channel.encoding.c_str() : c.channel.schema.c_str());
  }
  for (const auto& a : facts.attachments) {
    std::printf("  attachment %s (%s, %s)\n", a.name.c_str(), a.media_type.c_str(), size_text(a.bytes).c_str());
  }
  for (const auto& m : facts.metadata) {
    std::printf("  metadata %s:", m.name.c_str());
    for (const auto& [key, value] : m.entries) std::printf(" %s=%s", key.c_str(), value.substr(0, 60).c_str());
    std::printf("\n");
  }
  if (!facts.full) {
    std::printf("\n  sizes, gaps and delays (reads every message): %s log info --full %s\n",
                pipeline::program().c_str(), pipeline::shell_quoted(path).c_str());
  }
}

int damaged(const std::string& path, const std::vector<sensors::LogProblem>& problems) {
  if (problems.empty()) return 0;
  std::fprintf(stderr, "takt: %s is damaged in %zu place(s), first: %s at byte %llu\n  -> %s log doctor %s\n",
               path.c_str(), problems.size(), problems.front().kind.c_str(),
               static_cast<unsigned long long>(problems.front().offset), pipeline::program().c_str(),
               pipeline::shell_quoted(path).c_str());
  return exit_code(Code::kInput);
}

int info(const Options& options) {
  const auto log = sensors::open_log_for_tools(options.log, false);
  if (!log) return report_error(log.error());
  const bool full = options.full || size_of(options.log) <= kReadWithoutAsking;
  Result<sensors::LogFacts> facts;
  {
    LogLine line("reading", options.quiet || options.json);
    facts = sensors::inspect_log(**log, full, std::ref(line));
  }
  if (!facts) return report_error(facts.error());
  if (options.json) {
    std::printf("%s\n", dump(info_json(options.log, *facts)).c_str());
  } else {
    print_info(options.log, *facts);
  }
  return damaged(options.log, facts->problems);
}

int doctor(const Options& options) {
  const auto log = sensors::open_log_for_tools(options.log, true);
  if (!log) return report_error(log.error());
  Result<sensors::LogFacts> facts;
  {
    LogLine line("reading", options.quiet || options.json);
    facts = sensors::inspect_log(**log, true, std::ref(line));
  }
  if (!facts) return report_error(facts.error());
  std::map<std::string, std::uint64_t> kinds;
  for (const auto& p : facts->problems) ++kinds[p.kind];
  if (options.json) {
    Json out;
    out["log"] = options.log;
    out["damaged"] = !facts->problems.empty();
    out["messages"] = facts->messages;
    out["kinds"] = kinds;
    out["problems"] = problems_json(facts->problems);
    std::printf("%s\n", dump(out).c_str());
  } else {
    for (const auto& p : facts->problems) {
      std::printf("byte %-12llu %-20s %s\n", static_cast<unsigned long long>(p.offset), p.kind.c_str(),
                  p.detail.c_str());
    }
    for (const auto& [kind, count] : kinds)
      std::printf("%6llu x %s\n", static_cast<unsigned long long>(count), kind.c_str());
    std::printf("%s: %s, %llu messages can be read\n", options.log.c_str(),
                facts->problems.empty() ? "sound" : "damaged", static_cast<unsigned long long>(facts->messages));
    if (!facts->problems.empty())
      std::printf("  -> %s log recover %s -o mended.mcap\n", pipeline::program().c_str(),
                  pipeline::shell_quoted(options.log).c_str());
  }
  return facts->problems.empty() ? 0 : exit_code(Code::kInput);
}

void add(CLI::App& log, Command& chosen, const char* name, const char* what, int (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = log.add_subcommand(name, what);
  verb->add_option("log", options->log, "a recording in any format that takt reads")->required();
  if (run == info) verb->add_flag("--full", options->full, "read every message: sizes, gaps, delays");
  verb->add_flag("--json", options->json, "machine-readable answer on stdout");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line");
  verb->callback([options, &chosen, run] { chosen = [options, run] { return run(*options); }; });
}

}  // namespace

void add_log_info(CLI::App& log, Command& chosen) {
  add(log, chosen, "info", "What a log holds: channels, rates, gaps, sizes, delays; at once where it has an index",
      info);
}

void add_log_doctor(CLI::App& log, Command& chosen) {
  add(log, chosen, "doctor", "Read everything; list damage by kind and byte offset; exit code 3 when there is any",
      doctor);
}

}  // namespace takt::app
