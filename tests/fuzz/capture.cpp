// Any bytes as a network capture: opening gives a log or an error of kind kInput; the log gives every message it
// announced, in order.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/logs/packet_log.h"

using namespace takt::sensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz.pcap", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto log = open_capture(path);
  if (!log) {
    if (log.error().code != takt::Code::kInput) std::abort();
    return 0;
  }
  std::uint64_t announced = 0, read = 0;
  for (const LogChannel& channel : (*log)->channels()) announced += channel.messages;
  takt::SensorTime last{INT64_MIN};
  for (;;) {
    const auto message = (*log)->next();
    if (!message) std::abort();
    if (!*message) break;
    if ((*message)->arrival < last) std::abort();
    last = (*message)->arrival;
    ++read;
  }
  if (read != announced) std::abort();
  return 0;
}
