#include "sensors/logs/log_tools.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <tuple>

#include "runtime/base/digest.h"
#include "runtime/base/suggest.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/mcap_format.h"
#include "sensors/logs/mcap_reader.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kProgressEvery = 256;  // messages
constexpr std::size_t kMostLatched = 1000;     // distinct latched messages kept per channel

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool matches(const std::vector<std::string>& patterns, const std::string& topic) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return ::fnmatch(p.c_str(), topic.c_str(), 0) == 0; });
}

// Subscribers that come late still get these: in ROS by their durability, transforms by their topic.
bool is_latched(const LogChannel& channel) {
  if (channel.topic.ends_with("tf_static")) return true;
  const auto qos = channel.metadata.find("offered_qos_profiles");
  return qos != channel.metadata.end() && (qos->second.find("durability: 1") != std::string::npos ||
                                           qos->second.find("durability: transient_local") != std::string::npos);
}

bool is_packed_picture(const LogChannel& channel) {
  return channel.schema.find("CompressedImage") != std::string::npos ||
         channel.schema.find("CompressedVideo") != std::string::npos;
}

// A sum over messages: the same whatever their order, since equal stamps on merged channels may change places.
struct Content {
  std::uint64_t messages = 0, high = 0, low = 0;
  Digester digester;
  void add(const std::string& topic, SensorTime arrival, SensorTime capture, std::uint32_t sequence,
           std::string_view bytes) {
    digester.reset();
    digester.add(std::as_bytes(std::span(topic)));
    digester.add_value(arrival.ns);
    digester.add_value(capture.ns);
    digester.add_value(sequence);
    digester.add(std::as_bytes(std::span(bytes)));
    const Digest d = digester.finish();
    high += d.high;
    low += d.low;
    ++messages;
  }
  [[nodiscard]] bool same(const Content& other) const {
    return messages == other.messages && high == other.high && low == other.low;
  }
};

struct Latched {
  Digest digest;
  SensorTime capture;
  std::uint32_t sequence = 0;
  std::string bytes;
};

struct Input {
  std::string path;
  std::unique_ptr<LogReader> log;
  std::optional<LogMessage> current;
  std::vector<std::uint16_t> out;            // by place in channels(): channel of the output, 0 = not chosen
  std::vector<std::size_t> report;           // by place: row of the report
  std::vector<std::deque<Latched>> latched;  // by place, from before the start
};

class Copy {
 public:
  Copy(const std::string& output, const CopyOptions& options) : output_(output), options_(options) {}

  Result<CopyReport> run(const std::vector<std::string>& paths) {
    TAKT_RETURN_IF_ERROR(open(paths));
    TAKT_ASSIGN(McapWriter writer, McapWriter::create(unverified(), writer_options()));
    writer_ = &writer;
    Status status = copy();
    if (status) status = writer.finish();
    if (status) status = verify();
    if (status) status = give_name();
    std::error_code ignored;
    if (!status) {
      fs::remove(unverified(), ignored);
      return fail(std::move(status).error());
    }
    for (const Input& input : inputs_) {
      for (const LogProblem& p : input.log->problems()) report_.problems.push_back({input.path, p});
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::string unverified() const { return output_ + ".unverified"; }

  McapWriterOptions writer_options() const {
    McapWriterOptions out;
    out.chunk_bytes = options_.chunk_bytes;
    out.profile = "";
    for (const auto& [key, value] : inputs_.front().log->properties()) {
      if (key == "profile") out.profile = value;
    }
    return out;
  }

  Status open(const std::vector<std::string>& paths) {
    std::vector<std::string> topics;
    for (const std::string& path : paths) {
      std::error_code ignored;
      if (fs::equivalent(path, output_, ignored)) {
        return fail(Code::kUsage, output_ + ": is an input; give the output another name");
      }
      Input& input = inputs_.emplace_back();
      input.path = path;
      TAKT_ASSIGN(input.log, open_log_for_tools(path, options_.scan));
      for (const LogChannel& channel : input.log->channels()) topics.push_back(channel.topic);
    }
    if (inputs_.empty()) return fail(Code::kUsage, "no input is given");
    for (const auto* patterns : {&options_.topics, &options_.exclude}) {
      for (const std::string& pattern : *patterns) {
        if (std::none_of(topics.begin(), topics.end(),
                         [&](const std::string& topic) { return matches({pattern}, topic); })) {
          return fail(Code::kUsage, "no topic matches '" + pattern + "'" + did_you_mean(pattern, topics));
        }
      }
    }
    return {};
  }

  [[nodiscard]] bool chosen(const LogChannel& channel) const {
    return (options_.topics.empty() || matches(options_.topics, channel.topic)) &&
           !matches(options_.exclude, channel.topic);
  }

  // Channels of the output: one per channel of an input, equal ones of several inputs shared.
  Status add_channels() {
    using Same =
        std::tuple<std::string, std::string, std::string, std::string, std::string, std::map<std::string, std::string>>;
    std::map<Same, std::pair<std::uint16_t, std::size_t>> shared;
    for (Input& input : inputs_) {
      std::vector<std::string> topics;
      std::map<Same, std::pair<std::uint16_t, std::size_t>> here;  // of one input, channels stay apart
      for (const LogChannel& channel : input.log->channels()) {
        input.out.push_back(0);
        input.report.push_back(0);
        if (!chosen(channel)) continue;
        topics.push_back(channel.topic);
        expected_ += channel.messages;
        const Same same{channel.topic,           channel.encoding,    channel.schema,
                        channel.schema_encoding, channel.schema_data, channel.metadata};
        auto place = shared.find(same);
        if (place == shared.end() || here.contains(same)) {
          TAKT_ASSIGN(const auto added, add_channel(channel));
          place = here.insert_or_assign(same, added).first;
        }
        input.out.back() = place->second.first;
        input.report.back() = place->second.second;
        here.insert_or_assign(same, place->second);
      }
      shared.insert(here.begin(), here.end());
      input.latched.resize(input.out.size());
      if (!options_.topics.empty() || !options_.exclude.empty()) {
        if (topics.empty()) topics.push_back("");  // select({}) would mean all
        input.log->select(topics);
      }
    }
    if (report_.channels.empty()) return fail(Code::kInput, inputs_.front().path + ": no topic is chosen");
    return {};
  }

  Result<std::pair<std::uint16_t, std::size_t>> add_channel(const LogChannel& channel) {
    std::uint16_t schema = 0;
    if (!channel.schema.empty()) {
      TAKT_ASSIGN(schema, writer_->add_schema({channel.schema, channel.schema_encoding, channel.schema_data}));
    }
    const Compression compression =
        options_.compression.value_or(is_packed_picture(channel) ? Compression::kNone : Compression::kZstd);
    TAKT_ASSIGN(const std::uint16_t id,
                writer_->add_channel(channel.topic, channel.encoding, schema, channel.metadata, compression));
    report_.channels.push_back({channel.topic, channel.schema, 0, 0});
    return std::pair(id, report_.channels.size() - 1);
  }

  Status copy() {
    TAKT_RETURN_IF_ERROR(add_channels());
    for (Input& input : inputs_) TAKT_RETURN_IF_ERROR(advance(input));
    std::uint64_t done = 0;
    bool started = !options_.start;
    for (;;) {
      Input* first = nullptr;
      for (Input& input : inputs_) {
        if (input.current && (first == nullptr || before(*input.current, *first->current))) first = &input;
      }
      if (first == nullptr) break;
      const LogMessage& message = *first->current;
      if (options_.end && message.arrival > *options_.end) break;
      const auto place = static_cast<std::size_t>(message.channel - first->log->channels().data());
      ++report_.channels[first->report[place]].read;
      if (options_.start && message.arrival < *options_.start) {
        if (options_.keep_static && is_latched(*message.channel)) latch(first->latched[place], message);
      } else {
        if (!started) TAKT_RETURN_IF_ERROR(write_latched());
        started = true;
        TAKT_RETURN_IF_ERROR(
            write(*first, place, message.arrival, message.capture, message.sequence, text_of(message.bytes)));
      }
      if (++done % kProgressEvery == 0 && options_.progress &&
          !options_.progress(done, std::max(expected_, done), report_.bytes)) {
        return fail(Code::kInterrupted, output_ + ": interrupted; nothing was written");
      }
      TAKT_RETURN_IF_ERROR(advance(*first));
    }
    if (!started) TAKT_RETURN_IF_ERROR(write_latched());
    if (report_.messages == 0 && expected_ != 0) {
      return fail(Code::kInput, inputs_.front().path + ": holds no message in the chosen time");
    }
    return copy_extras();
  }

  static bool before(const LogMessage& a, const LogMessage& b) {
    return std::tie(a.arrival, a.channel->topic, a.capture) < std::tie(b.arrival, b.channel->topic, b.capture);
  }

  Status advance(Input& input) {
    TAKT_ASSIGN(input.current, input.log->next());
    return {};
  }

  static void latch(std::deque<Latched>& kept, const LogMessage& message) {
    const Digest digest = takt::digest(message.bytes);
    std::erase_if(kept, [&](const Latched& l) { return l.digest == digest; });
    kept.push_back({digest, message.capture, message.sequence, std::string(text_of(message.bytes))});
    if (kept.size() > kMostLatched) kept.pop_front();
  }

  Status write_latched() {
    for (Input& input : inputs_) {
      for (std::size_t place = 0; place < input.latched.size(); ++place) {
        for (const Latched& l : input.latched[place]) {
          TAKT_RETURN_IF_ERROR(write(input, place, *options_.start, l.capture, l.sequence, l.bytes));
          ++report_.static_kept;
        }
      }
    }
    return {};
  }

  Status write(const Input& input, std::size_t place, SensorTime arrival, SensorTime capture, std::uint32_t sequence,
               std::string_view bytes) {
    const std::string& topic = input.log->channels()[place].topic;
    if (arrival.ns < 0 || capture.ns < 0) {
      return fail(Code::kInput, input.path + ": a message on " + topic + " has the time " +
                                    std::to_string(std::min(arrival.ns, capture.ns)) +
                                    " ns; MCAP holds none before zero; leave the topic out (--exclude)");
    }
    TAKT_RETURN_IF_ERROR(writer_->write(input.out[place], arrival, capture, sequence, bytes));
    content_.add(topic, arrival, capture, sequence, bytes);
    ++report_.channels[input.report[place]].written;
    ++report_.messages;
    report_.bytes += bytes.size();
    return {};
  }

  Status copy_extras() {
    for (Input& input : inputs_) {
      const auto attachments = input.log->attachments();
      for (std::size_t i = 0; i < attachments.size(); ++i) {
        const auto data = input.log->read_attachment(i);
        if (!data) {
          report_.problems.push_back({input.path, {"bad Attachment", 0, data.error().message}});
          continue;
        }
        TAKT_RETURN_IF_ERROR(writer_->add_attachment(attachments[i].name, attachments[i].media_type,
                                                     {std::max<std::int64_t>(attachments[i].log_time.ns, 0)}, *data));
        ++report_.attachments;
      }
      for (const LogMetadata& m : input.log->metadata()) {
        TAKT_RETURN_IF_ERROR(writer_->add_metadata(m.name, m.entries));
        ++report_.metadata;
      }
    }
    return {};
  }

  // What was written, read back from front to back.
  Status verify() {
    TAKT_ASSIGN(const auto log, open_mcap(unverified(), {}, {.scan = true}));
    if (!log->problems().empty()) {
      const LogProblem& p = log->problems().front();
      return fail(Code::kInternal, output_ + ": the output was damaged: " + p.kind + " at byte " +
                                       std::to_string(p.offset) + " (" + p.detail + ")");
    }
    Content found;
    for (;;) {
      TAKT_ASSIGN(const auto message, log->next());
      if (!message) break;
      found.add(message->channel->topic, message->arrival, message->capture, message->sequence,
                text_of(message->bytes));
      if (found.messages % kProgressEvery == 0 && options_.progress &&
          !options_.progress(found.messages, report_.messages, report_.bytes)) {
        return fail(Code::kInterrupted, output_ + ": interrupted; nothing was written");
      }
    }
    if (!found.same(content_)) {
      return fail(Code::kInternal, output_ + ": the output does not give back what was written (" +
                                       std::to_string(found.messages) + " of " + std::to_string(content_.messages) +
                                       " messages)");
    }
    report_.verified = found.messages;
    return {};
  }

  Status give_name() {
    std::error_code error;
    fs::rename(unverified(), output_, error);
    if (error) return fail(Code::kEnvironment, output_ + ": cannot be named: " + error.message());
    return {};
  }

  const std::string& output_;
  const CopyOptions& options_;
  std::deque<Input> inputs_;
  McapWriter* writer_ = nullptr;
  CopyReport report_;
  Content content_;
  std::uint64_t expected_ = 0;
};

// Counts of durations by size, 16 steps per power of two.
class Histogram {
 public:
  void add(std::int64_t ns) {
    ++counts_[bucket(ns)];
    ++total_;
  }
  [[nodiscard]] std::int64_t median() const {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen * 2 > total_) return lower(i);
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t above(std::int64_t ns) const {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (lower(i) > ns) count += counts_[i];
    }
    return count;
  }

 private:
  static std::size_t bucket(std::int64_t ns) {
    if (ns < 16) return static_cast<std::size_t>(std::max<std::int64_t>(ns, 0));
    const auto value = static_cast<std::uint64_t>(ns);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 5;
    return 16 + std::size_t{shift} * 16 + static_cast<std::size_t>((value >> shift) & 15);
  }
  static std::int64_t lower(std::size_t bucket) {
    if (bucket < 16) return static_cast<std::int64_t>(bucket);
    return static_cast<std::int64_t>((16 + (bucket & 15)) << ((bucket - 16) / 16));
  }
  std::array<std::uint64_t, 16 + 60 * 16> counts_{};
  std::uint64_t total_ = 0;
};

void finish_facts(ChannelFacts& facts, const Histogram& gaps, double delay_sum) {
  if (facts.messages == 0) return;
  const auto n = static_cast<double>(facts.messages);
  const double seconds = static_cast<double>((*facts.last - *facts.first).ns) * 1e-9;
  if (facts.messages > 1 && seconds > 0) facts.rate_hz = (n - 1) / seconds;
  facts.usual_gap = {gaps.median()};
  facts.gaps = gaps.above(facts.usual_gap.ns + facts.usual_gap.ns / 2);
  facts.mean_delay = {static_cast<std::int64_t>(delay_sum / n)};
}

}  // namespace

Result<std::unique_ptr<LogReader>> open_log_for_tools(const std::string& path, bool scan) {
  if (scan) {
    std::array<char, 8> head{};
    std::ifstream file(path, std::ios::binary);
    if (file.read(head.data(), head.size()) && mcap::looks_like({head.data(), head.size()})) {
      return open_mcap(path, {}, {.scan = true});
    }
  }
  return open_log(path);
}

Result<CopyReport> copy_log(const std::vector<std::string>& inputs, const std::string& output,
                            const CopyOptions& options) {
  return Copy(output, options).run(inputs);
}

Result<LogFacts> inspect_log(LogReader& log, bool full, const LogProgress& progress) {
  LogFacts facts;
  facts.span = log.span();
  facts.full = full;
  std::uint64_t expected = 0;
  for (const LogChannel& channel : log.channels()) {
    facts.channels.emplace_back().channel = channel;
    expected += channel.messages;
  }
  if (full) {
    std::vector<Histogram> gaps(facts.channels.size());
    std::vector<double> delays(facts.channels.size());
    std::uint64_t bytes = 0;
    log.rewind();
    for (;;) {
      TAKT_ASSIGN(const auto message, log.next());
      if (!message) break;
      const auto place = static_cast<std::size_t>(message->channel - log.channels().data());
      ChannelFacts& channel = facts.channels[place];
      const Duration delay = message->arrival - message->capture;
      if (channel.messages == 0) {
        channel.first = message->arrival;
        channel.smallest = message->bytes.size();
        channel.least_delay = channel.most_delay = delay;
      } else {
        const Duration gap = message->arrival - *channel.last;
        gaps[place].add(gap.ns);
        if (gap > channel.longest_gap) {
          channel.longest_gap = gap;
          channel.longest_gap_at = message->arrival;
        }
      }
      channel.last = message->arrival;
      channel.bytes += message->bytes.size();
      channel.smallest = std::min<std::uint64_t>(channel.smallest, message->bytes.size());
      channel.largest = std::max<std::uint64_t>(channel.largest, message->bytes.size());
      channel.least_delay = std::min(channel.least_delay, delay);
      channel.most_delay = std::max(channel.most_delay, delay);
      if (delay.ns < 0) ++channel.negative_delays;
      delays[place] += static_cast<double>(delay.ns);
      ++channel.messages;
      ++facts.messages;
      bytes += message->bytes.size();
      if (facts.messages % kProgressEvery == 0 && progress &&
          !progress(facts.messages, std::max(expected, facts.messages), bytes)) {
        return fail(Code::kInterrupted, "interrupted");
      }
    }
    for (std::size_t i = 0; i < facts.channels.size(); ++i) finish_facts(facts.channels[i], gaps[i], delays[i]);
  } else {
    const double seconds = facts.span ? static_cast<double>((facts.span->second - facts.span->first).ns) * 1e-9 : 0.0;
    for (ChannelFacts& channel : facts.channels) {
      channel.messages = channel.channel.messages;
      facts.messages += channel.messages;
      if (channel.messages > 1 && seconds > 0) channel.rate_hz = static_cast<double>(channel.messages - 1) / seconds;
    }
  }
  facts.properties = log.properties();
  facts.attachments = log.attachments();
  facts.metadata = log.metadata();
  facts.problems = log.problems();
  return facts;
}

Status for_each_truth(const std::string& path, const std::function<void(const log::Truth&)>& use) {
  TAKT_ASSIGN(const std::unique_ptr<LogReader> log, open_log(path));
  std::vector<std::string> topics;
  for (const LogChannel& channel : log->channels()) {
    if (channel.schema == "takt.Truth") topics.push_back(channel.topic);
  }
  if (topics.empty()) return {};
  log->select(topics);
  for (;;) {
    TAKT_ASSIGN(const std::optional<LogMessage> message, log->next());
    if (!message) return {};
    if (const auto truth = decode_truth(message->bytes)) use(*truth);
  }
}

}  // namespace takt::sensors
