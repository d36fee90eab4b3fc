// Any bytes as a ROS 1 bag (read_log.h).
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/logs/ros1_bag.h"
#include "tests/fuzz/read_log.h"

using namespace takt::sensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz.bag", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  read_log(open_ros1_bag(path, {{"/image", takt::milliseconds(1), {}}, {"/odom", {}, takt::seconds(1)}},
                         {.cache_bytes = 1 << 12, .max_chunk_bytes = 1 << 20}));
  return 0;
}
