#include "sensors/logs/split_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <tuple>

#include "sensors/logs/input_file.h"

namespace takt::sensors {
namespace {

class SplitLog final : public LogReader {
 public:
  SplitLog(std::vector<LogPart> parts, std::vector<std::string> notes, std::vector<LogProblem> problems)
      : parts_(std::move(parts)), notes_(std::move(notes)), problems_(std::move(problems)) {
    for (LogPart& part : parts_) {
      places_.emplace_back();
      for (const LogChannel& channel : part.reader->channels()) places_.back().push_back(place_of(channel));
      for (const LogProblem& problem : part.reader->problems()) {
        problems_.push_back({problem.kind, problem.offset, part.name + ": " + problem.detail});
      }
      for (const std::string& note : part.reader->notes()) notes_.push_back(part.name + ": " + note);
    }
    rewind();
  }

  [[nodiscard]] const std::vector<LogChannel>& channels() const override { return channels_; }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override {
    std::optional<std::pair<SensorTime, SensorTime>> all;
    for (const LogPart& part : parts_) {
      const auto one = part.reader->span();
      if (one && !all) all = one;
      if (one) all = std::pair(std::min(all->first, one->first), std::max(all->second, one->second));
    }
    return all;
  }
  void select(const std::vector<std::string>& topics) override {
    for (LogPart& part : parts_) part.reader->select(topics);
    rewind();
  }
  void rewind() override {
    for (LogPart& part : parts_) part.reader->rewind();
    heads_.assign(parts_.size(), std::nullopt);
    stale_.assign(parts_.size(), true);
    indices_.assign(channels_.size(), 0);
  }
  [[nodiscard]] const std::vector<LogProblem>& problems() const override { return problems_; }
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> properties() const override {
    auto properties = parts_.front().reader->properties();
    if (parts_.size() > 1) properties.emplace_back("files", std::to_string(parts_.size()));
    return properties;
  }

  // A part keeps the bytes of its head alive until it is asked again, which happens when its head was handed out.
  Result<std::optional<LogMessage>> next() override {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (stale_[i]) {
        TAKT_ASSIGN(heads_[i], parts_[i].reader->next());
        stale_[i] = false;
      }
      if (heads_[i] && (!best || key(i) < key(*best))) best = i;
    }
    if (!best) return std::optional<LogMessage>();
    stale_[*best] = true;
    LogMessage message = *heads_[*best];
    const std::size_t channel = place(*best);
    message.channel = &channels_[channel];
    message.index = indices_[channel]++;
    return std::optional(message);
  }

 private:
  std::size_t place_of(const LogChannel& channel) {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i].topic == channel.topic && channels_[i].schema == channel.schema &&
          channels_[i].encoding == channel.encoding) {
        channels_[i].messages += channel.messages;
        return i;
      }
    }
    channels_.push_back(channel);
    channels_.back().id = static_cast<std::uint32_t>(channels_.size() - 1);
    return channels_.size() - 1;
  }
  [[nodiscard]] std::size_t place(std::size_t part) const {
    const LogChannel* first = parts_[part].reader->channels().data();
    return places_[part][static_cast<std::size_t>(heads_[part]->channel - first)];
  }
  using Key = std::tuple<SensorTime, const std::string&, SensorTime, std::size_t>;
  [[nodiscard]] Key key(std::size_t part) const {
    const LogMessage& head = *heads_[part];
    return {head.arrival, head.channel->topic, head.capture, place(part)};
  }

  std::vector<LogPart> parts_;
  std::vector<std::string> notes_;
  std::vector<LogProblem> problems_;
  std::vector<LogChannel> channels_;
  std::vector<std::vector<std::size_t>> places_;  // by part: channel of the part -> channel here
  std::vector<std::optional<LogMessage>> heads_;  // by part
  std::vector<bool> stale_;                       // by part: its head was handed out
  std::vector<std::uint64_t> indices_;            // next index, by channel
};

// A file that disappears with its owner.
struct TemporaryFile {
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd >= 0) ::close(fd);
    if (!path.empty()) ::unlink(path.c_str());
  }
  Status create() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    std::string name = ((error ? std::filesystem::path("/tmp") : folder) / "takt-log-XXXXXX").string();
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return failed(name);
    path = name;
    return {};
  }
  Status append(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed(path);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }
  static Status failed(const std::string& name) {
    return fail(Code::kEnvironment, name + ": a packed log is unpacked here, which failed: " + std::strerror(errno) +
                                        "; set TMPDIR to a folder with room for it, or unpack it with zstd -d");
  }
  std::string path;
  int fd = -1;
};

// Everything that can be unpacked; what stopped it, "" when the file ended as it should.
Result<std::string> unpack(const std::string& path, const TemporaryFile& to) {
  InputFile file;
  TAKT_RETURN_IF_ERROR(file.open(path));
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::vector<std::byte> in(ZSTD_DStreamInSize()), out(ZSTD_DStreamOutSize());
  std::size_t code = 0;
  for (std::uint64_t at = 0; at < file.size();) {
    in.resize(static_cast<std::size_t>(std::min<std::uint64_t>(ZSTD_DStreamInSize(), file.size() - at)));
    TAKT_RETURN_IF_ERROR(file.read(at, in));
    at += in.size();
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    bool full = true;
    while (input.pos < input.size || full) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      code = ZSTD_decompressStream(context.get(), &output, &input);
      TAKT_RETURN_IF_ERROR(to.append(std::span(out).first(output.pos)));
      if (ZSTD_isError(code) != 0) {
        return "zstd: " + std::string(ZSTD_getErrorName(code)) + " before byte " + std::to_string(at);
      }
      full = output.pos == output.size;
    }
  }
  return code == 0 ? "" : std::string("the packed data are cut");
}

// Sorted, so that the parts have the same order everywhere. Of a file and its packed twin the file is taken.
std::set<std::string> files_of(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* ending : {".db3", ".mcap", ".db3.zstd", ".mcap.zstd"}) {
      if (name.ends_with(ending) && entry.is_regular_file(error)) names.insert(name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return name.ends_with(".zstd") && names.contains(name.substr(0, name.size() - 5));
  });
  return names;
}

}  // namespace

std::unique_ptr<LogReader> merge_parts(std::vector<LogPart> parts, std::vector<std::string> notes,
                                       std::vector<LogProblem> problems) {
  return std::make_unique<SplitLog>(std::move(parts), std::move(notes), std::move(problems));
}

bool is_rosbag2_folder(const std::string& folder) { return !files_of(folder).empty(); }

Result<std::unique_ptr<LogReader>> open_rosbag2_folder(const std::string& folder,
                                                       const std::vector<ReleaseRule>& rules) {
  const std::set<std::string> names = files_of(folder);
  std::vector<LogPart> parts;
  std::vector<LogProblem> problems;
  std::string first_failure;
  for (const std::string& name : names) {
    auto part = open_log((std::filesystem::path(folder) / name).string(), rules);
    if (part) {
      parts.push_back({name, *std::move(part)});
      continue;
    }
    if (part.error().code != Code::kInput) return fail(std::move(part).error());
    if (first_failure.empty()) first_failure = part.error().message;
    problems.push_back({"unreadable file", 0, part.error().message});
  }
  if (parts.empty()) return fail(Code::kInput, first_failure);
  return merge_parts(std::move(parts), {}, std::move(problems));
}

Result<std::unique_ptr<LogReader>> open_zstd_log(const std::string& path, const std::vector<ReleaseRule>& rules) {
  TemporaryFile unpacked;
  TAKT_RETURN_IF_ERROR(unpacked.create());
  TAKT_ASSIGN(const std::string damage, unpack(path, unpacked));
  auto reader = open_log(unpacked.path, rules);
  if (!reader) {
    return fail(reader.error().code,
                path + ": unpacked, but " + reader.error().message + (damage.empty() ? "" : " (" + damage + ")"));
  }
  std::vector<LogProblem> problems;
  if (!damage.empty()) problems.push_back({"damaged zstd data", 0, damage + "; what lies before it is read"});
  std::vector<LogPart> parts;
  const std::string name = std::filesystem::path(path).filename().string();
  parts.push_back({name, *std::move(reader)});
  // The reader holds the file open; its name is gone when this function returns.
  return merge_parts(std::move(parts), {name + ": packed as a whole with zstd; unpacked into a temporary file"},
                     std::move(problems));
}

}  // namespace takt::sensors
