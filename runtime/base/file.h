// Whole-file reading and writing that leaves nothing half-written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace takt {

// kInput with the reason of the system, for a folder or device, and for a file above `most` bytes.
Result<std::string> read_file(const std::string& path, std::uint64_t most = std::uint64_t{1} << 31);

// Writes to a temporary name in the same folder, flushes to disk, renames. A link is followed. On failure
// (kEnvironment: disk full, rights, `path` is a folder, device or pipe) the temporary file is removed and an existing
// `path` is untouched.
Status write_file_atomically(const std::string& path, std::string_view content);

// A file written piece by piece under a temporary name; it appears as `path` only after commit().
// Every write is checked (short writes, disk full). The destructor removes an uncommitted file.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();
  Status write(std::string_view bytes);
  [[nodiscard]] std::uint64_t position() const { return position_; }
  // Everything is on the disk, nothing more is written: of several files that belong together, each before the first
  // commit().
  Status flush();
  Status commit();

 private:
  AtomicFile() = default;
  void discard();
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::uint64_t position_ = 0;
};

}  // namespace takt
