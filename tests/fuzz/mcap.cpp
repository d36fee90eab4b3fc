// Any bytes as an MCAP file: opening gives a reader or an error of kind kInput; reading gives every message once, in
// order, and never fails afterwards.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/logs/mcap_reader.h"

using namespace takt::sensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz.mcap", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto reader = open_mcap(path, {{"/a", takt::milliseconds(1), {}}, {"/b", {}, takt::seconds(1)}},
                                {.cache_bytes = 1 << 12, .max_record_bytes = 1 << 20});
  if (!reader) {
    if (reader.error().code != takt::Code::kInput) std::abort();
    return 0;
  }
  std::uint64_t announced = 0, read = 0;
  for (const LogChannel& channel : (*reader)->channels()) announced += channel.messages;
  takt::SensorTime last{INT64_MIN};
  std::uint64_t sum = 0;
  for (;;) {
    const auto message = (*reader)->next();
    if (!message) std::abort();
    if (!*message) break;
    if ((*message)->arrival < last) std::abort();
    last = (*message)->arrival;
    for (const std::byte byte : (*message)->bytes) sum += static_cast<std::uint64_t>(byte);
    ++read;
  }
  if (read != announced) std::abort();
  static volatile std::uint64_t sink;
  sink = sum;  // the bytes are really looked at
  (void)sink;
  return 0;
}
