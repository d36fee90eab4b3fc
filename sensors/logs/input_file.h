// A regular file read by position; every read is checked. kInput with path and reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace takt::sensors {

class InputFile {
 public:
  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  Status open(const std::string& path);
  // All of `out`, from `offset` on.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace takt::sensors
