#include "sensors/logs/dataset_log.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "sensors/logs/encode.h"

namespace takt::sensors {

namespace fs = std::filesystem;

std::uint32_t DatasetLog::channel(const std::string& topic, std::string_view schema) {
  LogChannel& channel = channels_.emplace_back();
  channel.id = static_cast<std::uint32_t>(channels_.size());
  channel.topic = topic;
  channel.encoding = "protobuf";
  channel.schema = schema;
  if (auto known = log_schema(schema)) {
    channel.schema_encoding = known->encoding;
    channel.schema_data = std::move(known->data);
  }
  return channel.id - 1;
}

void DatasetLog::message(std::uint32_t channel, SensorTime capture, SensorTime arrival, Make make) {
  if (capture.ns < 0 || arrival.ns < 0) {
    return problem("bad stamp", 0, channels_[channel].topic + ": a stamp before the epoch; the message is left out");
  }
  Entry entry;
  entry.arrival = arrival.ns;
  entry.capture = capture.ns;
  entry.where = makers_.size();
  entry.channel = channel;
  makers_.push_back(std::move(make));
  add(entry);
}

Status DatasetLog::finish(const std::vector<ReleaseRule>& rules) {
  if (entries_.empty()) {
    std::string why = path_ + ": looks like " + format_ + ", but holds no message that can be read";
    if (!problems().empty()) why += ": " + problems().front().kind + " (" + problems().front().detail + ")";
    return fail(Code::kInput, why);
  }
  arrange(rules);
  return {};
}

Result<std::optional<LogMessage>> DatasetLog::next() {
  for (;;) {
    auto message = IndexedLog::next();
    if (message || message.error().code != Code::kInput) return message;
    if (failed_.insert(current_).second) problem("damaged file", 0, message.error().message + "; it is left out");
  }
}

std::vector<std::string> DatasetLog::notes() const {
  std::vector<std::string> all = notes_;
  for (const auto& text : running_) {
    if (std::string now = text(); !now.empty()) all.push_back(std::move(now));
  }
  return all;
}

Result<std::span<const std::byte>> DatasetLog::fetch(const Entry& entry) {
  current_ = entry.where;
  TAKT_ASSIGN(buffer_, makers_[static_cast<std::size_t>(entry.where)]());
  return std::as_bytes(std::span(buffer_));
}

DatasetPath split_dataset_path(const std::string& path) {
  std::error_code error;
  const std::size_t hash = path.rfind('#');
  if (hash == std::string::npos || fs::exists(path, error)) return {path, ""};
  return {path.substr(0, hash), path.substr(hash + 1)};
}

Error choose_sequence(const DatasetPath& path, const std::vector<std::string>& sequences) {
  std::string names;
  for (std::size_t i = 0; i < sequences.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + sequences[i];
  if (sequences.size() > 8) names += ", ... (" + std::to_string(sequences.size()) + ")";
  const std::string what = path.sequence.empty()
                               ? ": holds " + std::to_string(sequences.size()) + " sequences; name one"
                               : ": has no sequence '" + path.sequence + "'; name one of those it has";
  const std::string example = sequences.empty() ? "SEQUENCE" : sequences.front();
  return {Code::kInput, path.folder + what + " as " + path.folder + "#" + example + ". There are: " + names};
}

std::vector<std::string> list_files(const std::string& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(ending) || !at->is_regular_file(error)) continue;
    names.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_folders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->is_directory(error)) names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t whole_rows(const std::string& path, std::uint64_t row, const ReportProblem& report) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error) {
    report("missing file", 0, path + ": " + error.message());
    return 0;
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  if (size > kMost) {
    report("file too large", 0, path + ": " + std::to_string(size) + " bytes; the limit is 1 GiB; it is left out");
    return 0;
  }
  if (size % row != 0) {
    report("truncated cloud", size - size % row,
           path + ": " + std::to_string(size) + " bytes are no multiple of the " + std::to_string(row) +
               " bytes of a point; the whole points are kept");
  }
  return size / row;
}

namespace {

std::uint32_t big_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

std::array<std::uint32_t, 2> picture_size(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n") && bytes.size() >= 24) {  // IHDR comes first
    return {big_endian(bytes, 16, 4), big_endian(bytes, 20, 4)};
  }
  if (!bytes.starts_with("\xff\xd8")) return {0, 0};
  for (std::size_t at = 2; at + 9 <= bytes.size();) {  // JPEG: marker segments until the frame header
    if (bytes[at] != '\xff') return {0, 0};
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xff || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += marker == 0xff ? 1 : 2;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      return {big_endian(bytes, at + 7, 2), big_endian(bytes, at + 5, 2)};
    }
    at += 2 + big_endian(bytes, at + 2, 2);
  }
  return {0, 0};
}

Result<std::string> picture_message(const std::string& path, SensorTime stamp, std::string_view frame_id) {
  const Result<std::string> file = read_file(path);
  if (!file) return fail(file.error());
  const std::string_view bytes = *file;
  const std::string_view format = bytes.starts_with("\x89PNG") ? "png" : bytes.starts_with("\xff\xd8") ? "jpeg" : "";
  if (format.empty()) return fail(Code::kInput, path + ": is neither PNG nor JPEG");
  return encode(log::CompressedImage{stamp, frame_id, format, std::as_bytes(std::span(bytes))});
}

}  // namespace takt::sensors
