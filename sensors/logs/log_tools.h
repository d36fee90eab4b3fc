// Work on whole logs: look at them, and copy them into MCAP as a whole, in part, or several into one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sensors/logs/log_messages.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/mcap_writer.h"

namespace takt::sensors {

// Called now and then with messages done, messages expected and payload bytes so far; false stops the work, which then
// fails with kInterrupted and leaves nothing behind.
using LogProgress = std::function<bool(std::uint64_t done, std::uint64_t total, std::uint64_t bytes)>;

// open_log without rules; `scan`: an MCAP file is read from front to back even where its index would do, so that all
// damage is known and nothing rests on the index.
Result<std::unique_ptr<LogReader>> open_log_for_tools(const std::string& path, bool scan);

struct CopyOptions {
  std::vector<std::string> topics, exclude;  // patterns with * and ?; no topics = all
  std::optional<SensorTime> start, end;      // arrivals start <= t <= end
  // Static transforms (and other latched topics) from before `start` are needed after it: the last of each distinct
  // message is written with log time `start`.
  bool keep_static = true;
  std::optional<Compression> compression;  // nullopt: zstd, but pictures that are packed already plain
  std::uint64_t chunk_bytes = 1 << 20;
  bool scan = false;  // see open_log_for_tools
  LogProgress progress;
};

struct InputProblem {
  std::string input;
  LogProblem problem;
};

struct CopyReport {
  struct Channel {
    std::string topic, schema;
    std::uint64_t read = 0, written = 0;  // messages
  };
  std::vector<Channel> channels;
  std::uint64_t messages = 0, bytes = 0;  // written: messages, payload bytes
  std::uint64_t static_kept = 0;          // of them: latched messages from before `start`
  std::uint64_t attachments = 0, metadata = 0;
  std::uint64_t verified = 0;          // messages found again when the output was read back
  std::vector<InputProblem> problems;  // damage of the inputs
};

// Copies messages in the order of log_reader.h (several inputs are merged by it), with channels, schemas, attachments
// and metadata; equal channels of several inputs become one. The output is read back and compared with what was
// written, message by message, before it gets its name: on failure nothing is left behind.
// kInput: an input cannot be read, or no message is chosen. kUsage: a pattern that matches no topic, output = input.
Result<CopyReport> copy_log(const std::vector<std::string>& inputs, const std::string& output,
                            const CopyOptions& options);

struct ChannelFacts {
  LogChannel channel;
  std::uint64_t messages = 0;
  double rate_hz = 0;  // messages - 1 over first to last arrival (of the channel; of the log when not read in full)
  // Only when every message was looked at:
  std::optional<SensorTime> first, last;  // arrivals
  std::uint64_t bytes = 0, smallest = 0, largest = 0;
  Duration usual_gap;      // median between arrivals, within 6 %
  std::uint64_t gaps = 0;  // longer than 1.5 times that
  Duration longest_gap;
  SensorTime longest_gap_at;                     // arrival of the message after it
  Duration least_delay, mean_delay, most_delay;  // arrival - capture stamp
  std::uint64_t negative_delays = 0;             // captured after they arrived
};

struct LogFacts {
  std::vector<std::pair<std::string, std::string>> properties;
  std::optional<std::pair<SensorTime, SensorTime>> span;
  std::uint64_t messages = 0;
  bool full = false;  // every message was looked at
  std::vector<ChannelFacts> channels;
  std::vector<LogAttachment> attachments;
  std::vector<LogMetadata> metadata;
  std::vector<LogProblem> problems;
};

// full: every message is read. Otherwise what the log says of itself, at once where it has an index.
Result<LogFacts> inspect_log(LogReader& log, bool full, const LogProgress& progress = {});

// Calls `use` for every takt.Truth message of the log, in its order; damaged ones are left out. What it is given lives
// for the call. kInput: the log cannot be read.
Status for_each_truth(const std::string& path, const std::function<void(const log::Truth&)>& use);

}  // namespace takt::sensors
