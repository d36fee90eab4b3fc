#include "sensors/logs/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace takt::sensors {

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status InputFile::open(const std::string& path) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return fail(Code::kInput, path + ": cannot be opened: " + std::strerror(errno));
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return fail(Code::kInput, path + ": cannot be read: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return fail(Code::kInput, path + ": is not a regular file");
  size_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

Status InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return fail(Code::kInput, path_ + ": cannot be read at byte " + std::to_string(offset) + ": " +
                                    (n == 0 ? "the file became shorter" : std::strerror(errno)));
    }
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace takt::sensors
