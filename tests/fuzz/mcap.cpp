// Any bytes as an MCAP file: opening gives a reader or an error of kind kInput; reading gives messages in order and
// never fails afterwards. By scanning (rules force it) every message counted comes once; by the index that holds as
// long as nothing is found damaged.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/logs/mcap_reader.h"

using namespace takt::sensors;

namespace {

void read_all(const std::string& path, const std::vector<ReleaseRule>& rules) {
  const auto reader = open_mcap(path, rules, {.cache_bytes = 1 << 12, .max_record_bytes = 1 << 20});
  if (!reader) {
    if (reader.error().code != takt::Code::kInput) std::abort();
    return;
  }
  for (int pass = 0; pass < 2; ++pass) {
    takt::SensorTime last{INT64_MIN};
    std::uint64_t sum = 0, read = 0;
    for (;;) {
      const auto message = (*reader)->next();
      if (!message) std::abort();
      if (!*message) break;
      if ((*message)->arrival < last) std::abort();
      last = (*message)->arrival;
      for (const std::byte byte : (*message)->bytes) sum += static_cast<std::uint64_t>(byte);
      ++read;
    }
    std::uint64_t announced = 0;
    for (const LogChannel& channel : (*reader)->channels()) announced += channel.messages;
    if (read != announced && (!rules.empty() || (*reader)->problems().empty())) std::abort();
    static volatile std::uint64_t sink;
    sink = sum;  // the bytes are really looked at
    (void)sink;
    (*reader)->rewind();
  }
  for (std::size_t i = 0; i < (*reader)->attachments().size(); ++i) {
    const auto data = (*reader)->read_attachment(i);
    if (!data && data.error().code != takt::Code::kInput) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("fuzz.mcap", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  read_all(path, {{"/a", takt::milliseconds(1), {}}, {"/b", {}, takt::seconds(1)}});
  read_all(path, {});
  return 0;
}
