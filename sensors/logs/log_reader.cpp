#include "sensors/logs/log_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sensors/logs/dataset_log.h"
#include "sensors/logs/kitti.h"
#include "sensors/logs/mcap_format.h"
#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/nuscenes.h"
#include "sensors/logs/packet_log.h"
#include "sensors/logs/ros1_bag.h"
#include "sensors/logs/rosbag2.h"
#include "sensors/logs/split_log.h"
#include "sensors/logs/view_of_delft.h"

namespace takt::sensors {
namespace {

using Rules = std::vector<ReleaseRule>;
using Opened = Result<std::unique_ptr<LogReader>>;

// Formats of one file, by its first bytes.
struct FileFormat {
  std::string_view magic;
  const char* name;  // nullptr: another form of the one before
  Opened (*open)(const std::string& path, const Rules& rules);
};
constexpr FileFormat kFileFormats[] = {
    {mcap::kMagic, "MCAP", [](const std::string& path, const Rules& rules) { return open_mcap(path, rules); }},
    {kSqliteMagic, "rosbag2 (.db3)", open_rosbag2},
    {"#ROSBAG V", "ROS 1 bag", [](const std::string& path, const Rules& rules) { return open_ros1_bag(path, rules); }},
    {"\x28\xb5\x2f\xfd", "any of them packed with zstd", open_zstd_log},
    {"\xd4\xc3\xb2\xa1", "network capture (.pcap)", open_capture},
    {"\xa1\xb2\xc3\xd4", nullptr, open_capture},  // the same in the other byte order, with nanoseconds, pcapng
    {"\x4d\x3c\xb2\xa1", nullptr, open_capture},
    {"\xa1\xb2\x3c\x4d", nullptr, open_capture},
    {"\x0a\x0d\x0d\x0a", nullptr, open_capture},
};

// Formats of a folder; the first whose look says so.
struct FolderFormat {
  bool (*is)(const std::string& folder);
  const char* name;
  Opened (*open)(const std::string& folder, const Rules& rules);
};
constexpr FolderFormat kFolderFormats[] = {
    {is_rosbag2_folder, "rosbag2", open_rosbag2_folder},
    {is_view_of_delft, "View-of-Delft", open_view_of_delft},
    {is_nuscenes, "nuScenes", open_nuscenes},
    {is_kitti, "KITTI", open_kitti},
};

std::string known_formats() {
  std::string names;
  for (const FileFormat& format : kFileFormats) {
    if (format.name != nullptr) names += std::string(names.empty() ? "" : ", ") + format.name;
  }
  names += "; folders: ";
  for (const FolderFormat& format : kFolderFormats) {
    names += std::string(&format == kFolderFormats ? "" : ", ") + format.name;
  }
  return names;
}

// path: FOLDER, or FOLDER#SEQUENCE of a data set.
Opened open_folder(const std::string& path, const Rules& rules) {
  const std::string folder = split_dataset_path(path).folder;
  for (const FolderFormat& format : kFolderFormats) {
    if (format.is(folder)) return format.open(path, rules);
  }
  return fail(Code::kInput, path + ": is a folder without a log that takt can read. Known: " + known_formats());
}

Opened open_any(const std::string& path, const Rules& rules) {
  std::error_code ignored;
  if (std::filesystem::is_directory(split_dataset_path(path).folder, ignored)) return open_folder(path, rules);
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
                                known("version https://", "a Git LFS pointer instead of the file itself") +
                                ". Known: " + known_formats());
}

}  // namespace

Opened open_log(const std::string& path, const Rules& rules) {
  TAKT_ASSIGN(auto log, open_any(path, with_packet_topics(rules)));
  return decode_packet_topics(std::move(log));
}

}  // namespace takt::sensors
