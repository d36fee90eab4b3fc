#include "sensors/logs/log_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "sensors/logs/mcap_format.h"
#include "sensors/logs/mcap_reader.h"

namespace takt::sensors {

Result<std::unique_ptr<LogReader>> open_log(const std::string& path, const std::vector<ReleaseRule>& rules) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::kInput, path + ": cannot be opened: " + std::strerror(errno));
  std::array<char, 16> head{};
  file.read(head.data(), head.size());
  const std::string_view begin(head.data(), static_cast<std::size_t>(file.gcount()));
  if (begin.empty()) {
    return fail(Code::kInput, path + (file.bad() ? ": cannot be read (is it a folder?)" : ": is empty"));
  }
  if (begin.starts_with(mcap::kMagic)) return open_mcap(path, rules);

  const auto known = [&](std::string_view magic, const char* what) -> std::string {
    return begin.starts_with(magic) ? std::string("; it looks like ") + what + ", which takt does not read yet" : "";
  };
  std::string hint = known("#ROSBAG", "a ROS 1 bag") + known("SQLite format 3", "a rosbag2 database") +
                     known("\xd4\xc3\xb2\xa1", "a pcap capture") + known("\x28\xb5\x2f\xfd", "a zstd-packed file") +
                     known("version https://", "a Git LFS pointer instead of the file itself");
  return fail(Code::kInput,
              path + ": is no log that takt can read" + hint + ". Known: MCAP (first bytes 89 4D 43 41 50 30 0D 0A)");
}

}  // namespace takt::sensors
