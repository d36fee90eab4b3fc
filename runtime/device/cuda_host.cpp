#include "runtime/device/cuda_host.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "runtime/device/host.h"
#include "runtime/memory/alloc_guard.h"

namespace takt::device {
namespace {

namespace cuda = kernels::cuda;

using LaunchOf = cuda::Launch (*)(kernels::cpu::KernelId);

// Of the harness, where it watches, or of the host; given back with the last who holds it.
class WatchedMemory final : public Memory {
 public:
  WatchedMemory(simt::Machine& machine, std::byte* start, std::uint64_t bytes)
      : Memory(start, start, bytes), machine_(machine) {}
  ~WatchedMemory() override { machine_.free(data()); }

 private:
  simt::Machine& machine_;
};

class CudaHostRecording final : public Recording {
 public:
  CudaHostRecording(std::span<const Call> calls, std::span<const std::size_t> cuts, LaunchOf launch_of,
                    std::unique_ptr<Memory> table)
      : Recording(cuts.size() + 1), table_(std::move(table)) {
    auto** const bound = reinterpret_cast<std::byte**>(table_->host());
    const auto address = [&](const Operand& operand) {
      return operand.binding == kFixed ? cuda::Address{operand.data, nullptr, 0}
                                       : cuda::Address{nullptr, bound + operand.binding, operand.offset};
    };
    std::size_t count = 0;
    for (const Call& call : calls) count += call.operands.size();
    addresses_.reserve(count);  // calls point into it
    for (const Call& call : calls) {
      cuda::Call& recorded = calls_.emplace_back();
      recorded.params = call.params;
      recorded.operands = addresses_.data() + addresses_.size();
      for (const Operand& operand : call.operands) addresses_.push_back(address(operand));
      for (const Condition& condition : call.conditions) {
        recorded.conditions.flags[recorded.conditions.count] = address(condition.operand);
        recorded.conditions.when[recorded.conditions.count++] = condition.when;
      }
      launches_.push_back(launch_of(static_cast<kernels::cpu::KernelId>(call.kernel->id)));
    }
    begins_.push_back(0);
    begins_.insert(begins_.end(), cuts.begin(), cuts.end());
    begins_.push_back(calls.size());
  }
  void bind(std::size_t binding, std::byte* address) override {
    reinterpret_cast<std::byte**>(table_->host())[binding] = address;
  }
  void run_call(std::size_t, int, int) override {}
  void run_segment(std::size_t segment) {
    for (std::size_t i = begins_[segment]; i < begins_[segment + 1]; ++i) (void)launches_[i](calls_[i]);
  }

 private:
  std::unique_ptr<Memory> table_;  // where kernels can read it
  std::vector<cuda::Address> addresses_;
  std::vector<cuda::Call> calls_;
  std::vector<cuda::Launch> launches_;
  std::vector<std::size_t> begins_;
};

class CudaHostStream final : public Stream {
 public:
  // A machine of its own, or the one that watches all memory.
  explicit CudaHostStream(const simt::Options& options, simt::Machine* shared)
      : own_(shared == nullptr ? std::make_unique<simt::Machine>(options) : nullptr),
        machine_(shared == nullptr ? *own_ : *shared) {}
  // What a GPU does is no work of the thread that stands for it.
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override {
    const memory::CopiesOfAnother engine;
    if (bytes > 0) std::memcpy(to, from, bytes);
    return true;
  }
  bool zero(std::byte* to, std::uint64_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
    return true;
  }
  bool replay(Recording& recording, std::size_t segment) override {
    const memory::CopiesOfAnother kernels;
    const simt::Use use(machine_);
    static_cast<CudaHostRecording&>(recording).run_segment(segment);
    return true;
  }
  void mark(Event& event) override { static_cast<HostEvent&>(event).mark(); }

 private:
  std::unique_ptr<simt::Machine> own_;
  simt::Machine& machine_;
};

class Implementation final : public CudaHost {
 public:
  Implementation(LaunchOf launch_of, const simt::Options& options)
      : launch_of_(launch_of), options_(options), machine_(options) {
    properties_.name = "cuda-host";
  }
  [[nodiscard]] const Properties& properties() const override { return properties_; }
  [[nodiscard]] const char* unsupported(kernels::Target target) const override {
    return kernels::is_cuda(target) ? nullptr : "the device cuda-host runs plans for cuda:sm_87 and cuda:sm_90";
  }
  [[nodiscard]] const char* lost() const override { return nullptr; }

  Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) override {
    // Asked of the host first, which knows what is too much.
    TAKT_ASSIGN(std::unique_ptr<Memory> memory, allocate_host(bytes));
    if (!options_.check || bytes == 0) return memory;
    memory.reset();
    return std::make_unique<WatchedMemory>(machine_, machine_.allocate(bytes, "device memory"), bytes);
  }
  Result<std::unique_ptr<Memory>> allocate_shared(std::uint64_t bytes) override { return allocate(bytes); }
  Result<std::unique_ptr<Memory>> import_host(std::span<std::byte> bytes) override {
    TAKT_ASSIGN(std::unique_ptr<Memory> memory, lend_host(bytes));
    if (!options_.check || bytes.empty()) return memory;
    machine_.lend(bytes.data(), bytes.size(), "imported memory");
    return std::make_unique<WatchedMemory>(machine_, bytes.data(), bytes.size());
  }
  Result<std::shared_ptr<const Memory>> constants(std::span<const std::byte> bytes) override {
    if (!options_.check || bytes.empty()) return share_host(bytes);
    std::weak_ptr<const Memory>& known = constants_[bytes.data()];
    if (std::shared_ptr<const Memory> held = known.lock(); held && held->bytes() == bytes.size()) return held;
    auto* const start = const_cast<std::byte*>(bytes.data());  // NOLINT: kernels only read them
    machine_.lend(start, bytes.size(), "constants");
    std::shared_ptr<const Memory> held = std::make_shared<WatchedMemory>(machine_, start, bytes.size());
    known = held;
    return held;
  }
  Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                            std::span<const std::size_t> cuts) override {
    TAKT_RETURN_IF_ERROR(check_calls(calls, bindings, cuts));
    for (const Call& call : calls) {
      if (launch_of_(static_cast<kernels::cpu::KernelId>(call.kernel->id)) == nullptr) {
        return fail(Code::kEnvironment, "there is no CUDA kernel " + std::string(call.kernel->name));
      }
      if (call.conditions.size() > cuda::kMostConditions) {
        return fail(Code::kEnvironment, "a step stands under " + std::to_string(call.conditions.size()) +
                                            " conditions; CUDA plans have at most " +
                                            std::to_string(cuda::kMostConditions));
      }
    }
    TAKT_ASSIGN(std::unique_ptr<Memory> table, allocate(std::max<std::size_t>(bindings, 1) * sizeof(std::byte*)));
    return std::make_unique<CudaHostRecording>(calls, cuts, launch_of_, std::move(table));
  }
  Result<std::unique_ptr<Stream>> stream(int priority, int partition) override {
    TAKT_RETURN_IF_ERROR(check_stream(properties_, priority, partition));
    return std::make_unique<CudaHostStream>(options_, options_.check ? &machine_ : nullptr);
  }
  Result<std::unique_ptr<Event>> event() override { return std::make_unique<HostEvent>(); }
  std::vector<simt::Finding> take_findings() override { return machine_.take_findings(); }

 private:
  LaunchOf launch_of_;
  simt::Options options_;
  simt::Machine machine_;
  std::map<const std::byte*, std::weak_ptr<const Memory>> constants_;
  Properties properties_;
};

}  // namespace

std::unique_ptr<CudaHost> CudaHost::create(LaunchOf launch_of, const simt::Options& options) {
  return std::make_unique<Implementation>(launch_of, options);
}

}  // namespace takt::device
