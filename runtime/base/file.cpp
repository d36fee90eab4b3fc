#include "runtime/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace takt {
namespace {

std::string reason(const std::string& path, const char* what) {
  return path + ": " + what + ": " + std::strerror(errno);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::uint64_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(Code::kInput, reason(path, "cannot be opened"));
  std::string content;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && (S_ISDIR(info.st_mode) || S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
    ::close(fd);
    return fail(Code::kInput, path + ": is a " + (S_ISDIR(info.st_mode) ? "folder" : "device") + ", expected a file");
  }
  if (info.st_size > 0) content.reserve(static_cast<std::size_t>(info.st_size));
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Error error{Code::kInput, reason(path, "reading failed")};
      ::close(fd);
      return fail(error);
    }
    content.append(block, static_cast<std::size_t>(n));
    if (content.size() > most) {
      ::close(fd);
      return fail(Code::kInput, path + ": is larger than the " + std::to_string(most) + " bytes expected at most");
    }
  }
  ::close(fd);
  return content;
}

Status write_file_atomically(const std::string& path, std::string_view content) {
  TAKT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TAKT_RETURN_IF_ERROR(file.write(content));
  return file.commit();
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return fail(Code::kEnvironment,
                path + ": is a " + (S_ISDIR(info.st_mode) ? "folder" : "device or pipe") + "; name a file to write");
  }
  AtomicFile file;
  file.path_ = path;
  if (exists) {  // renaming over a link would leave its target as it was
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(path, error);
    if (!error) file.path_ = target.string();
  }
  file.temporary_ = file.path_ + ".part-" + std::to_string(::getpid());
  file.fd_ = ::open(file.temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file.fd_ < 0) {
    const Error error{Code::kEnvironment, reason(file.temporary_, "cannot be created")};
    file.temporary_.clear();
    return fail(error);
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    temporary_ = std::move(other.temporary_);
    fd_ = other.fd_;
    position_ = other.position_;
    other.fd_ = -1;
    other.temporary_.clear();
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(Code::kEnvironment, reason(path_, "writing failed"));
    position_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status AtomicFile::flush() {
  if (::fsync(fd_) != 0 && errno != EINVAL) return fail(Code::kEnvironment, reason(path_, "writing to disk failed"));
  ::close(fd_);
  fd_ = -1;
  return {};
}

Status AtomicFile::commit() {
  if (fd_ >= 0) TAKT_RETURN_IF_ERROR(flush());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail(Code::kEnvironment, reason(path_, "cannot be renamed from its temporary name"));
  }
  temporary_.clear();
  return {};
}

}  // namespace takt
