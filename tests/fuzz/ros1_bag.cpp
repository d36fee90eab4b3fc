// Any bytes as a ROS 1 bag: opening gives a reader or an error of kind kInput; reading gives every message once, in
// order, and never fails afterwards.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/logs/ros1_bag.h"

using namespace takt::sensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz.bag", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto reader = open_ros1_bag(path, {{"/image", takt::milliseconds(1), {}}, {"/odom", {}, takt::seconds(1)}},
                                    {.cache_bytes = 1 << 12, .max_chunk_bytes = 1 << 20});
  if (!reader) {
    if (reader.error().code != takt::Code::kInput) std::abort();
    return 0;
  }
  std::uint64_t announced = 0, read = 0;
  for (const LogChannel& channel : (*reader)->channels()) announced += channel.messages;
  takt::SensorTime last{INT64_MIN};
  for (;;) {
    const auto message = (*reader)->next();
    if (!message) std::abort();
    if (!*message) break;
    if ((*message)->arrival < last) std::abort();
    last = (*message)->arrival;
    ++read;
  }
  if (read != announced) std::abort();
  return 0;
}
