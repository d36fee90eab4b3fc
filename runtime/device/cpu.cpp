#include <unistd.h>
#include <cstring>

#include "runtime/device/host.h"

namespace takt::device {
namespace {

class CpuStream final : public Stream {
 public:
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return true;
  }
  bool zero(std::byte* to, std::uint64_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
    return true;
  }
  bool replay(Recording& recording, std::size_t segment) override {
    static_cast<HostRecording&>(recording).run_segment(segment);
    return true;
  }
  void mark(Event& event) override { static_cast<HostEvent&>(event).mark(); }
};

class Cpu final : public HostDevice {
 public:
  Cpu() {
    properties_.name = "cpu";
    const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) properties_.memory_bytes = static_cast<std::uint64_t>(pages) * page;
    properties_.callers_run = true;
  }
  [[nodiscard]] const char* unsupported(kernels::Target target) const override { return kernels::unsupported(target); }
  Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                            std::span<const std::size_t> cuts) override {
    TAKT_RETURN_IF_ERROR(check_calls(calls, bindings, cuts));
    for (const Call& call : calls) {
      if (call.kernel->run == nullptr) {
        return fail(Code::kEnvironment, "this program was built without kernel " + std::string(call.kernel->name));
      }
    }
    return std::make_unique<HostRecording>(calls, bindings, cuts);
  }
  Result<std::unique_ptr<Stream>> stream(int priority, int partition) override {
    TAKT_RETURN_IF_ERROR(check_stream(properties_, priority, partition));
    return std::make_unique<CpuStream>();
  }
};

}  // namespace

Device& cpu() {
  static Cpu device;
  return device;
}

}  // namespace takt::device
