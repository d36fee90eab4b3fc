#include "sensors/logs/indexed_log.h"

#include <algorithm>
#include <tuple>

namespace takt::sensors {
namespace {

// Stamps come from the file: no overflow.
std::int64_t later(std::int64_t ns, Duration delay) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(ns, delay.ns, &sum) ? INT64_MAX : sum;
}

}  // namespace

std::optional<std::pair<SensorTime, SensorTime>> IndexedLog::span() const {
  if (entries_.empty()) return std::nullopt;
  return std::pair(SensorTime{entries_.front().arrival}, SensorTime{entries_.back().arrival});
}

void IndexedLog::select(const std::vector<std::string>& topics) {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    selected_[i] = topics.empty() || std::find(topics.begin(), topics.end(), channels_[i].topic) != topics.end();
  }
  rewind();
}

void IndexedLog::rewind() {
  next_ = 0;
  indices_.assign(channels_.size(), 0);
}

Result<std::optional<LogMessage>> IndexedLog::next() {
  while (next_ < entries_.size() && !selected_[entries_[next_].channel]) ++next_;
  if (next_ == entries_.size()) return std::optional<LogMessage>();
  const Entry& entry = entries_[next_++];
  TAKT_ASSIGN(const std::span<const std::byte> bytes, fetch(entry));
  LogMessage message;
  message.channel = &channels_[entry.channel];
  message.index = indices_[entry.channel]++;
  message.arrival = {entry.arrival};
  message.capture = {entry.capture};
  message.bytes = bytes;
  return std::optional(message);
}

void IndexedLog::add(Entry entry) {
  entry.index = static_cast<std::uint32_t>(channels_[entry.channel].messages++);
  entries_.push_back(entry);
}

void IndexedLog::problem(std::string kind, std::uint64_t offset, std::string detail) {
  // A hostile file may hold a problem per byte; a person reads the first ones.
  if (problems_.size() < kMaxProblems) {
    problems_.push_back({std::move(kind), offset, std::move(detail)});
  } else if (problems_.size() == kMaxProblems) {
    problems_.push_back({"more problems", offset, "not listed: the first " + std::to_string(kMaxProblems) + " are"});
  }
}

void IndexedLog::arrange(const std::vector<ReleaseRule>& rules) {
  for (const ReleaseRule& rule : rules) {
    std::uint64_t moved = 0;
    bool present = false;
    for (Entry& entry : entries_) {
      if (channels_[entry.channel].topic != rule.topic) continue;
      present = true;
      if (rule.declared_delay) {
        entry.arrival = later(entry.capture, *rule.declared_delay);
      } else if (entry.arrival < later(entry.capture, rule.captured)) {
        entry.arrival = later(entry.capture, rule.captured);
        ++moved;
      }
    }
    if (present && rule.declared_delay) {
      notes_.push_back(rule.topic + ": the log has no arrival times; arrival = stamp + declared " +
                       std::to_string(rule.declared_delay->ns) + " ns");
    }
    if (moved != 0) {
      notes_.push_back(rule.topic + ": " + std::to_string(moved) +
                       " messages arrived before their last captured byte; released then, " +
                       std::to_string(rule.captured.ns) + " ns after their stamp");
    }
  }

  std::vector<std::string> topics;
  for (const auto& channel : channels_) topics.push_back(channel.topic);
  std::sort(topics.begin(), topics.end());
  std::vector<std::size_t> rank;
  for (const auto& channel : channels_) {
    rank.push_back(
        static_cast<std::size_t>(std::lower_bound(topics.begin(), topics.end(), channel.topic) - topics.begin()));
  }
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return std::tuple(a.arrival, rank[a.channel], a.capture, a.channel, a.index) <
           std::tuple(b.arrival, rank[b.channel], b.capture, b.channel, b.index);
  });
  selected_.assign(channels_.size(), true);
  rewind();
}

}  // namespace takt::sensors
