#include "compiler/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "compiler/ir/graph.h"

namespace takt::compiler {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

struct Place {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool has_length = false;
};

Result<std::uint64_t> number(const std::string& key, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  return fail(Code::kInput, "external data: " + key + " is \"" + ir::printable(text) + "\"");
}

Result<Place> place_of(const ::onnx::TensorProto& tensor) {
  Place place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") {
      TAKT_ASSIGN(place.offset, number("offset", entry.value()));
    }
    if (entry.key() == "length") {
      TAKT_ASSIGN(place.length, number("length", entry.value()));
      place.has_length = true;
    }
  }
  if (place.location.empty() || place.location.find('\0') != std::string::npos) {
    return fail(Code::kInput, "external data without a location");
  }
  return place;
}

// Opens one part of a path after the other, none of them a link.
Result<Descriptor> open_below(const std::string& folder, const std::string& location) {
  const auto refuse = [&](const std::string& why) {
    return fail(Code::kInput, "external data " + ir::printable(location) + ": " + why);
  };
  if (location[0] == '/') return refuse("an absolute path; expected one below the model's folder");
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return refuse("the model's folder " + folder + " cannot be read: " + std::strerror(errno));
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = location.find('/', begin);
    const std::string part = location.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return refuse("a path that does not stay in the model's folder");
    const int kind = end == std::string::npos ? O_NONBLOCK : O_DIRECTORY;  // a pipe must not be waited for
    Descriptor next(::openat(at.get(), part.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
    if (next.get() < 0) {
      return refuse(errno == ELOOP || errno == EMLINK ? "a symbolic link, which could leave the model's folder"
                                                      : std::string(std::strerror(errno)));
    }
    at = std::move(next);
    if (end == std::string::npos) return at;
    begin = end + 1;
  }
}

}  // namespace

Result<std::vector<std::byte>> read_external(const ::onnx::TensorProto& tensor, const std::string& folder,
                                             std::uint64_t bytes) {
  TAKT_ASSIGN(const Place place, place_of(tensor));
  TAKT_ASSIGN(const Descriptor file, open_below(folder, place.location));
  const auto refuse = [&](const std::string& why) {
    return fail(Code::kInput, "external data " + ir::printable(place.location) + ": " + why);
  };
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return refuse("no plain file");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (place.has_length && place.length != bytes) {
    return refuse("its type needs " + std::to_string(bytes) + " bytes, the model says " + std::to_string(place.length));
  }
  if (place.offset > size || bytes > size - place.offset) {
    return refuse("bytes " + std::to_string(place.offset) + " to " + std::to_string(place.offset) + " + " +
                  std::to_string(bytes) + " lie beyond its end at " + std::to_string(size));
  }
  std::vector<std::byte> data(bytes);
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(file.get(), data.data() + done, bytes - done, static_cast<off_t>(place.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refuse("cannot be read at byte " + std::to_string(place.offset + done));
    done += static_cast<std::uint64_t>(n);
  }
  return data;
}

}  // namespace takt::compiler
