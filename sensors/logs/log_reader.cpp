#include "sensors/logs/log_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sensors/logs/mcap_format.h"
#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/ros1_bag.h"
#include "sensors/logs/rosbag2.h"
#include "sensors/logs/split_log.h"

namespace takt::sensors {
namespace {

using Rules = std::vector<ReleaseRule>;
using Opened = Result<std::unique_ptr<LogReader>>;

// Formats of one file, by its first bytes.
struct FileFormat {
  std::string_view magic;
  const char* name;
  Opened (*open)(const std::string& path, const Rules& rules);
};
constexpr FileFormat kFileFormats[] = {
    {mcap::kMagic, "MCAP", [](const std::string& path, const Rules& rules) { return open_mcap(path, rules); }},
    {kSqliteMagic, "rosbag2 (.db3)", open_rosbag2},
    {"#ROSBAG V", "ROS 1 bag", [](const std::string& path, const Rules& rules) { return open_ros1_bag(path, rules); }},
    {"\x28\xb5\x2f\xfd", "any of them packed with zstd", open_zstd_log},
};

// Formats of a folder; the first whose look says so.
struct FolderFormat {
  bool (*is)(const std::string& folder);
  const char* name;
  Opened (*open)(const std::string& folder, const Rules& rules);
};
constexpr FolderFormat kFolderFormats[] = {
    {is_rosbag2_folder, "rosbag2", open_rosbag2_folder},
};

std::string known_formats() {
  std::string names;
  for (const FileFormat& format : kFileFormats) names += std::string(names.empty() ? "" : ", ") + format.name;
  names += "; folders: ";
  for (const FolderFormat& format : kFolderFormats) {
    names += std::string(&format == kFolderFormats ? "" : ", ") + format.name;
  }
  return names;
}

Opened open_folder(const std::string& path, const Rules& rules) {
  for (const FolderFormat& format : kFolderFormats) {
    if (format.is(path)) return format.open(path, rules);
  }
  return fail(Code::kInput, path + ": is a folder without a log that takt can read. Known: " + known_formats());
}

}  // namespace

Opened open_log(const std::string& path, const Rules& rules) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return open_folder(path, rules);
  // Of a rosbag2 recording people also name the file that describes it.
  if (const std::filesystem::path file(path); file.filename() == "metadata.yaml") {
    return open_folder(file.has_parent_path() ? file.parent_path().string() : ".", rules);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::kInput, path + ": cannot be opened: " + std::strerror(errno));
  std::array<char, 16> head{};
  file.read(head.data(), head.size());
  const std::string_view begin(head.data(), static_cast<std::size_t>(file.gcount()));
  if (begin.empty()) return fail(Code::kInput, path + (file.bad() ? ": cannot be read" : ": is empty"));
  for (const FileFormat& format : kFileFormats) {
    if (begin.starts_with(format.magic)) return format.open(path, rules);
  }
  if (mcap::looks_like(begin)) return open_mcap(path, rules);  // one byte of its magic is damaged
  const auto known = [&](std::string_view magic, const char* what) -> std::string {
    return begin.starts_with(magic) ? std::string("; it looks like ") + what : "";
  };
  return fail(Code::kInput, path + ": is no log that takt can read" +
                                known("\xd4\xc3\xb2\xa1", "a pcap capture, which takt does not read yet") +
                                known("version https://", "a Git LFS pointer instead of the file itself") +
                                ". Known: " + known_formats());
}

}  // namespace takt::sensors
