// A picture file as the payload of an image chunk, for commands that show what a stage would see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {

// RGB8 of the file's size. Rotation marks of photographs (EXIF) are not looked at: cameras on vehicles write none.
class PictureFile {
 public:
  // JPEG or PNG of at most 8192 x 8192 pixels. kInput: no such file, neither format, cut or damaged.
  static Result<PictureFile> read(const std::string& path);
  // The same from the bytes of a file, called `name` in messages.
  static Result<PictureFile> parse(std::span<const std::byte> file, const std::string& name);

  [[nodiscard]] const Image& image() const { return *reinterpret_cast<const Image*>(payload_.get()); }
  [[nodiscard]] std::span<const std::byte> payload() const { return {payload_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> payload_;  // 64-byte aligned
  std::uint64_t bytes_ = 0;
};

}  // namespace takt::sensors
