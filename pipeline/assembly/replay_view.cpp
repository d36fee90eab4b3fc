#include "pipeline/assembly/replay_view.h"

#include <fnmatch.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <utility>

#include "runtime/base/suggest.h"

namespace takt::pipeline {
namespace {

using sensors::LogChannel;
using sensors::LogMessage;
using sensors::LogReader;

bool matches_any(const std::vector<std::string>& patterns, const std::string& topic) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), topic.c_str(), 0) == 0; });
}

// The name that a topic of the log has in the replay; nullopt when another topic was given its name.
std::optional<std::string> replay_name(const ReplayView& view, const std::string& topic) {
  for (const auto& [from, to] : view.remap) {
    if (from == topic) return to;
  }
  for (const auto& [from, to] : view.remap) {
    if (to == topic) return std::nullopt;
  }
  return topic;
}
std::string log_name(const ReplayView& view, const std::string& topic) {
  for (const auto& [from, to] : view.remap) {
    if (to == topic) return from;
  }
  return topic;
}

class ViewedLog final : public LogReader {
 public:
  ViewedLog(std::unique_ptr<LogReader> log, const ReplayView& view,
            std::map<std::string, sensors::DeviceClockMap> stamps, SensorTime first, SensorTime end)
      : log_(std::move(log)), view_(view), first_(first), end_(end) {
    for (const LogChannel& channel : log_->channels()) {
      const auto name = replay_name(view_, channel.topic);
      shown_.push_back(name.has_value());
      channels_.push_back(channel);
      channels_.back().topic = name.value_or("");
      stamps_.push_back(stamps[channels_.back().topic]);
    }
  }

  [[nodiscard]] const std::vector<LogChannel>& channels() const override { return channels_; }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override {
    auto span = log_->span();
    if (!span) return span;
    span->first = std::max(span->first, first_);
    span->second = std::min(span->second, SensorTime{end_.ns - 1});
    if (span->first > span->second) return std::nullopt;
    return span;
  }
  Result<std::optional<LogMessage>> next() override {
    for (;;) {
      TAKT_ASSIGN(std::optional<LogMessage> message, log_->next());
      if (!message || message->arrival >= end_) return std::optional<LogMessage>{};
      const auto channel = static_cast<std::size_t>(message->channel - log_->channels().data());
      if (message->arrival < first_ || !shown_[channel]) continue;
      message->capture = stamps_[channel].map_unchecked({message->capture.ns});
      message->channel = &channels_[channel];
      return message;
    }
  }
  void select(const std::vector<std::string>& topics) override {
    std::vector<std::string> names;
    names.reserve(topics.size());
    for (const std::string& topic : topics) names.push_back(log_name(view_, topic));
    log_->select(names);
  }
  void rewind() override { log_->rewind(); }
  [[nodiscard]] const std::vector<sensors::LogProblem>& problems() const override { return log_->problems(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return log_->notes(); }

 private:
  std::unique_ptr<LogReader> log_;
  ReplayView view_;
  SensorTime first_, end_;
  std::vector<LogChannel> channels_;  // by channel of the log, under the replay's names
  std::vector<bool> shown_;
  std::vector<sensors::DeviceClockMap> stamps_;  // by channel
};

// What matches nothing was mistyped, and would leave out nothing, or all.
Status check_patterns(const sensors::Rig& rig, const ReplayView& view) {
  std::vector<std::string> known;
  for (const sensors::RigSensor& sensor : rig.sensors) known.push_back(sensor.topic);
  for (const auto& [option, patterns] :
       {std::pair{"--topics ", &view.topics}, std::pair{"--exclude ", &view.exclude}}) {
    for (const std::string& pattern : *patterns) {
      const bool matches = std::any_of(known.begin(), known.end(), [&pattern = pattern](const std::string& topic) {
        return matches_any({pattern}, topic);
      });
      if (matches) continue;
      return fail(Code::kUsage, option + pattern + ": no sensor of rig " + rig.file + " has such a topic" +
                                    did_you_mean(pattern, known));
    }
  }
  return {};
}

Status check_topics(const LogReader& log, const sensors::Rig& rig, const ReplayView& view,
                    const std::vector<std::string>& topics) {
  const auto recorded = [&](const std::string& topic) {
    return std::any_of(log.channels().begin(), log.channels().end(),
                       [&](const LogChannel& c) { return c.topic == topic && c.messages > 0; });
  };
  std::string have, missing;
  for (const LogChannel& channel : log.channels()) have += (have.empty() ? "" : ", ") + channel.topic;
  if (have.empty()) have = "none";
  for (const auto& [from, to] : view.remap) {
    if (!recorded(from)) {
      return fail(Code::kUsage, "--remap " + from + ":=" + to + ": the log has no messages on " + from +
                                    "; topics of the log: " + have);
    }
  }
  for (const std::string& topic : topics) {
    if (!recorded(log_name(view, topic))) missing += (missing.empty() ? "" : ", ") + topic;
  }
  if (missing.empty()) return {};
  if (!log.problems().empty()) {
    const sensors::LogProblem& first = log.problems().front();
    return fail(Code::kInput, "the log is damaged in " + std::to_string(log.problems().size()) +
                                  " place(s), first: " + first.kind + " at byte " + std::to_string(first.offset) +
                                  "; no message could be read on " + missing +
                                  "; `takt log recover` saves what is left");
  }
  return fail(Code::kInput, "the log has no messages on " + missing + ", which rig " + rig.file +
                                " names; topics of the log: " + have);
}

// Stamps and recorded arrivals of every wanted sensor, in one pass over the log.
Result<std::vector<sensors::SensorStamps>> read_stamps(LogReader& log, const sensors::Rig& rig, const ReplayView& view,
                                                       const std::vector<std::string>& topics) {
  std::vector<sensors::SensorStamps> out;
  std::map<std::string, std::size_t> by_topic;
  std::vector<std::string> names;
  for (const sensors::RigSensor& sensor : rig.sensors) {
    if (std::find(topics.begin(), topics.end(), sensor.topic) == topics.end()) continue;
    names.push_back(log_name(view, sensor.topic));
    by_topic[names.back()] = out.size();
    out.push_back({sensor.name, sensor.period, sensor.delay_max(), !sensor.declared_delay, sensor.device_clock, {}});
  }
  log.select(names);
  for (;;) {
    TAKT_ASSIGN(const std::optional<LogMessage> message, log.next());
    if (!message) return out;
    const auto found = by_topic.find(message->channel->topic);
    if (found == by_topic.end()) continue;
    // A known error of the stamps is no finding.
    const Duration offset = rig.sensors[*rig.find(out[found->second].sensor)].offset;
    out[found->second].stamps.push_back({(message->capture + offset).ns, message->arrival.ns});
  }
}

std::string seconds_text(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", s);
  return text;
}

// As parse_replay_time() reads it, to the nanosecond.
std::string iso_text(SensorTime t) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = ((t.ns % kSecond) + kSecond) % kSecond;
  const std::time_t seconds = (t.ns - ns) / kSecond;
  std::tm calendar{};
  gmtime_r(&seconds, &calendar);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &calendar);
  std::snprintf(text + length, sizeof text - length, ".%09lldZ", static_cast<long long>(ns));
  return text;
}

std::vector<std::string> options_of(const ReplayView& view, SensorTime from) {
  std::vector<std::string> out;
  const std::string start = view.seek ? iso_text(from) : view.start;
  if (!start.empty()) out.insert(out.end(), {"--start", start});
  if (!view.end.empty()) out.insert(out.end(), {"--end", view.end});
  for (const std::string& pattern : view.topics) out.insert(out.end(), {"--topics", pattern});
  for (const std::string& pattern : view.exclude) out.insert(out.end(), {"--exclude", pattern});
  for (const auto& [in_log, in_rig] : view.remap) out.insert(out.end(), {"--remap", in_log + ":=" + in_rig});
  return out;
}

std::string note_of(const std::string& sensor, const sensors::DeviceClockMap& map) {
  return sensor + ": stamps mapped from the device's clock to the recorder's: at " +
         seconds_text(static_cast<double>(map.from_origin.ns) * 1e-9) + " s add " +
         seconds_text((Duration{map.to_origin.ns - map.from_origin.ns}).seconds()) + " s, rate " +
         std::to_string(map.rate_ppb) + " ppb, error at most " + seconds_text(map.error.ms()) + " ms, valid for " +
         seconds_text((map.valid_to - map.valid_from).seconds()) + " s";
}

}  // namespace

Result<SensorTime> parse_replay_time(const std::string& text, SensorTime origin) {
  const auto wrong = [&] {
    return fail(Code::kUsage, "'" + text + "' is no time: give seconds from the start of the log (12.5) or ISO 8601 " +
                                  "(2024-05-01T12:00:00.5Z)");
  };
  std::tm calendar{};
  const char* rest =
      text.find('T') == std::string::npos ? nullptr : strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &calendar);
  const bool iso = rest != nullptr;
  const char* fraction = iso ? rest : text.c_str();
  double seconds = 0;
  if (!iso || *fraction == '.') {
    char* end = nullptr;
    seconds = std::strtod(fraction, &end);
    if (end == fraction || !std::isfinite(seconds) || std::fabs(seconds) > 9e9) return wrong();
    fraction = end;
  }
  if (iso && *fraction == 'Z') ++fraction;
  if (*fraction != '\0') return wrong();
  const Duration past{std::llround(seconds * 1e9)};
  if (!iso) return origin + past;
  return SensorTime{static_cast<std::int64_t>(timegm(&calendar)) * 1'000'000'000} + past;
}

Result<OpenedReplay> open_replay(const std::string& path, const sensors::Rig& rig,
                                 const std::vector<std::string>& topics, const ReplayView& view) {
  TAKT_RETURN_IF_ERROR(check_patterns(rig, view));
  OpenedReplay out;
  out.sources.resize(rig.sensors.size());
  std::vector<std::string> wanted;
  for (const std::string& topic : topics) {
    const bool in = (view.topics.empty() || matches_any(view.topics, topic)) && !matches_any(view.exclude, topic);
    (in ? wanted : out.excluded).push_back(topic);
  }
  if (wanted.empty()) {
    std::string names;
    for (const std::string& topic : topics) names += (names.empty() ? "" : ", ") + topic;
    return fail(Code::kUsage, "--topics and --exclude leave no sensor; the pipeline reads " + names);
  }

  // As recorded, before any rule: rules hide what is wrong with stamps.
  std::map<std::string, sensors::DeviceClockMap> maps;
  sensors::ClockCheck clocks;
  SensorTime first, last;
  {
    TAKT_ASSIGN(const auto raw, sensors::open_log(path));
    TAKT_RETURN_IF_ERROR(check_topics(*raw, rig, view, wanted));
    TAKT_ASSIGN(const auto stamps, read_stamps(*raw, rig, view, wanted));
    clocks = sensors::check_clocks(stamps);
    for (const sensors::SensorStamps& sensor : stamps) {
      const std::size_t index = *rig.find(sensor.sensor);
      const sensors::RigSensor& of_rig = rig.sensors[index];
      sensors::DeviceClockMap map;
      map.to_origin = SensorTime{of_rig.offset.ns};
      if (of_rig.offset.ns != 0) {
        out.notes.push_back(of_rig.name + ": stamps corrected by the rig's offset of " +
                            std::to_string(of_rig.offset.ns) + " ns");
      }
      if (of_rig.device_clock) {
        auto estimated =
            sensors::estimate_clock(sensor.stamps, of_rig.delay_min(), of_rig.delay_max() - of_rig.delay_min());
        if (!estimated) return fail(std::move(estimated).error().with_context(path + ": clock of " + of_rig.name));
        map = *estimated;
        // The pairs carry the offset already, the log's stamps do not.
        map.from_origin = map.from_origin - of_rig.offset;
        map.valid_from = map.valid_from - of_rig.offset;
        map.valid_to = map.valid_to - of_rig.offset;
        out.notes.push_back(note_of(of_rig.name, map));
      }
      maps[of_rig.topic] = map;
      out.sources[index] = {log_name(view, of_rig.topic), map};
    }
  }
  out.findings = std::move(clocks.findings);

  std::vector<sensors::ReleaseRule> release = sensors::release_rules(rig);
  for (sensors::ReleaseRule& rule : release) rule.topic = log_name(view, rule.topic);
  TAKT_ASSIGN(auto log, sensors::open_log(path, release));
  const auto span = log->span();
  if (!span) return fail(Code::kInput, path + ": the log has no messages");
  first = clocks.window ? std::max(clocks.window->first, span->first) : span->first;
  last = clocks.window ? std::min(clocks.window->second, span->second) : span->second;
  out.first = first;
  SensorTime from = first, to = last + nanoseconds(1);
  if (!view.start.empty()) {
    TAKT_ASSIGN(from, parse_replay_time(view.start, first));
  }
  if (!view.end.empty()) {
    TAKT_ASSIGN(to, parse_replay_time(view.end, first));
  }
  if (from > last || to <= first || from >= to) {
    return fail(Code::kUsage, "the window from " + seconds_text((from - first).seconds()) + " s to " +
                                  seconds_text((to - first).seconds()) + " s holds nothing: the log lasts " +
                                  seconds_text((last - first).seconds()) + " s");
  }
  if (view.seek) from = std::clamp(*view.seek, from, std::max(from, std::min(to, last) - seconds(1)));
  out.options = options_of(view, from);
  for (const std::string& topic : out.excluded) {
    out.notes.push_back(topic + ": left out by --topics or --exclude; stages run without it");
  }
  for (const auto& [a, b] : view.remap) out.notes.push_back(a + " of the log is replayed as " + b);
  // Whole logs keep their own span, so that nothing changes for them.
  const bool windowed = clocks.window || !view.start.empty() || !view.end.empty() || view.seek;
  out.log = std::make_unique<ViewedLog>(
      std::move(log), view, std::move(maps), windowed ? std::max(from, first) : SensorTime{0},
      windowed ? std::min(to, last + nanoseconds(1)) : SensorTime{std::numeric_limits<std::int64_t>::max()});
  out.log->select(wanted);
  return out;
}

}  // namespace takt::pipeline
