#include "runtime/device/null.h"

#include "runtime/device/host.h"

namespace takt::device {
namespace {

class NullRecording final : public Recording {
 public:
  explicit NullRecording(std::size_t segments) : Recording(segments) {}
  void bind(std::size_t, std::byte*) override {}
  void run_call(std::size_t, int, int) override {}
};

class NullStream final : public Stream {
 public:
  bool copy(std::byte*, const std::byte*, std::uint64_t) override { return true; }
  bool zero(std::byte*, std::uint64_t) override { return true; }
  bool replay(Recording&, std::size_t) override { return true; }
  void mark(Event& event) override { static_cast<HostEvent&>(event).mark(); }
};

class Null final : public HostDevice {
 public:
  Null() {
    properties_.name = "null";
    properties_.callers_run = true;
    properties_.computes = false;
  }
  [[nodiscard]] const char* unsupported(kernels::Target) const override { return nullptr; }
  Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                            std::span<const std::size_t> cuts) override {
    TAKT_RETURN_IF_ERROR(check_calls(calls, bindings, cuts));
    return std::make_unique<NullRecording>(cuts.size() + 1);
  }
  Result<std::unique_ptr<Stream>> stream(int priority, int partition) override {
    TAKT_RETURN_IF_ERROR(check_stream(properties_, priority, partition));
    return std::make_unique<NullStream>();
  }
};

}  // namespace

Device& null() {
  static Null device;
  return device;
}

}  // namespace takt::device
