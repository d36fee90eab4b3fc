#include "runtime/device/cuda.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/table.h"
#include "runtime/base/foreign_call.h"
#include "runtime/device/host.h"

namespace takt::device {
namespace {

namespace kernels_cuda = kernels::cuda;

constexpr std::uintptr_t kAlignment = 64;

std::string words(cudaError_t error) { return std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error); }

tl::unexpected<Error> failed(const std::string& what, cudaError_t error) {
  return fail(Code::kEnvironment, what + ": " + words(error));
}

// What the API answers when it refuses a call and nothing else is wrong. Everything that is not listed is taken for a
// loss: an error that poisons the context is given back by every later call, whatever it is about.
bool refusal(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorNotSupported:
    case cudaErrorStreamCaptureUnsupported: return true;
    default: return false;
  }
}

// The device of a GPU as all that was made by it shares it: which one, and why it is lost. Any thread.
class Health {
 public:
  explicit Health(int ordinal) : ordinal_(ordinal) {}

  // Each thread chooses for itself which device its calls are about.
  cudaError_t choose() const {
    thread_local int chosen = -1;
    if (chosen == ordinal_) return cudaSuccess;
    const cudaError_t error = cudaSetDevice(ordinal_);
    if (error == cudaSuccess) chosen = ordinal_;
    return error;
  }
  // Whether work was taken. A refusal is forgotten, so that the next call is not blamed for it; what remains then is a
  // poisoned context.
  bool taken(cudaError_t error) {
    if (error == cudaSuccess) return lost() == nullptr;
    (void)cudaGetLastError();
    const cudaError_t remains = cudaPeekAtLastError();
    if (!refusal(error) || remains != cudaSuccess) lose(refusal(error) ? remains : error);
    return false;
  }
  // The same for a call that has nothing to refuse.
  bool went_well(cudaError_t error) {
    if (error != cudaSuccess) lose(error);
    return lost() == nullptr;
  }
  [[nodiscard]] const char* lost() const { return lost_.load(std::memory_order_acquire) ? text_ : nullptr; }

 private:
  void lose(cudaError_t error) {
    if (claimed_.exchange(true)) return;
    std::snprintf(text_, sizeof text_, "the GPU was lost: %s, %s", cudaGetErrorName(error), cudaGetErrorString(error));
    lost_.store(true, std::memory_order_release);
  }

  const int ordinal_;
  std::atomic<bool> claimed_{false}, lost_{false};
  char text_[256] = {};
};

class GpuMemory final : public Memory {
 public:
  GpuMemory(std::byte* data, std::uint64_t bytes) : Memory(data, nullptr, bytes) {}
  ~GpuMemory() override { cudaFree(data()); }
};

class RegisteredMemory final : public Memory {
 public:
  RegisteredMemory(std::byte* data, std::byte* host, std::uint64_t bytes) : Memory(data, host, bytes) {}
  ~RegisteredMemory() override { cudaHostUnregister(host()); }
};

// Of the host, page-locked, seen by both.
class PinnedMemory final : public Memory {
 public:
  PinnedMemory(std::byte* data, std::byte* host, std::uint64_t bytes) : Memory(data, host, bytes) {}
  ~PinnedMemory() override { cudaFreeHost(host()); }
};

class EmptyMemory final : public Memory {
 public:
  EmptyMemory() : Memory(nullptr, nullptr, 0) {}
};

class CudaEvent final : public Event {
 public:
  CudaEvent(cudaEvent_t event, std::shared_ptr<Health> health) : event_(event), health_(std::move(health)) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // Of an event that was never marked the API says that it is done.
  Progress poll() override {
    const ForeignCall call;
    (void)health_->choose();
    return progress(cudaEventQuery(event_));
  }
  Progress wait() override {  // as long as it takes, and so on no timed thread
    (void)health_->choose();
    return progress(cudaEventSynchronize(event_));
  }
  [[nodiscard]] Duration since(const Event& begin) const override {
    const ForeignCall call;
    float ms = 0;
    if (cudaEventElapsedTime(&ms, static_cast<const CudaEvent&>(begin).event_, event_) != cudaSuccess) return {};
    return Duration{static_cast<std::int64_t>(static_cast<double>(ms) * 1e6)};
  }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  Progress progress(cudaError_t now) {
    if (now == cudaErrorNotReady) return Progress::kPending;
    return health_->went_well(now) ? Progress::kDone : Progress::kLost;
  }
  cudaEvent_t event_;
  std::shared_ptr<Health> health_;
};

class CudaRecording final : public Recording {
 public:
  // `table`: mapped host memory of `bindings` addresses.
  CudaRecording(std::vector<cudaGraphExec_t> graphs, std::byte** table)
      : Recording(graphs.size()), graphs_(std::move(graphs)), table_(table) {}
  ~CudaRecording() override {
    for (const cudaGraphExec_t graph : graphs_) {
      if (graph != nullptr) cudaGraphExecDestroy(graph);
    }
    cudaFreeHost(table_);
  }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  void bind(std::size_t binding, std::byte* address) override { table_[binding] = address; }
  void run_call(std::size_t, int, int) override {}
  [[nodiscard]] cudaGraphExec_t graph(std::size_t segment) const { return graphs_[segment]; }

 private:
  std::vector<cudaGraphExec_t> graphs_;
  std::byte** table_;
};

class CudaStream final : public Stream {
 public:
  CudaStream(cudaStream_t stream, std::shared_ptr<Health> health) : stream_(stream), health_(std::move(health)) {}
  ~CudaStream() override {
    (void)health_->choose();
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override {
    const ForeignCall call;
    (void)health_->choose();
    return health_->taken(bytes > 0 ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_) : cudaSuccess);
  }
  bool zero(std::byte* to, std::uint64_t bytes) override {
    const ForeignCall call;
    (void)health_->choose();
    return health_->taken(bytes > 0 ? cudaMemsetAsync(to, 0, bytes, stream_) : cudaSuccess);
  }
  bool replay(Recording& recording, std::size_t segment) override {
    const ForeignCall call;
    (void)health_->choose();
    const cudaGraphExec_t graph = static_cast<CudaRecording&>(recording).graph(segment);
    return health_->taken(graph != nullptr ? cudaGraphLaunch(graph, stream_) : cudaSuccess);
  }
  void mark(Event& event) override {
    const ForeignCall call;
    (void)health_->choose();
    health_->went_well(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_));
  }

 private:
  cudaStream_t stream_;
  std::shared_ptr<Health> health_;
};

class Cuda final : public Device {
 public:
  Cuda(int ordinal, int capability, Properties properties, int most_urgent)
      : capability_(capability),
        properties_(std::move(properties)),
        most_urgent_(most_urgent),
        health_(std::make_shared<Health>(ordinal)) {}

  [[nodiscard]] const Properties& properties() const override { return properties_; }
  [[nodiscard]] const char* unsupported(kernels::Target target) const override {
    // Code of sm_87 runs on 8.7 to 8.9, code of sm_90 on 9.x.
    if (target == kernels::Target::kCudaSm87) {
      return capability_ >= 87 && capability_ < 90 ? nullptr : "the GPU is no sm_87 (compute capability 8.7 to 8.9)";
    }
    if (target == kernels::Target::kCudaSm90) {
      return capability_ >= 90 && capability_ < 100 ? nullptr : "the GPU is no sm_90 (compute capability 9)";
    }
    return "a GPU runs plans for cuda:sm_87 or cuda:sm_90";
  }
  [[nodiscard]] const char* lost() const override { return health_->lost(); }
  [[nodiscard]] std::uint64_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    (void)health_->choose();
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
  }

  Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) override {
    TAKT_RETURN_IF_ERROR(working());
    if (bytes == 0) return std::make_unique<EmptyMemory>();
    void* data = nullptr;
    cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaSuccess) error = cudaMemset(data, 0, bytes);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
      cudaFree(data);
      (void)cudaGetLastError();
      return failed(std::to_string(bytes) + " bytes of GPU memory cannot be had", error);
    }
    return std::make_unique<GpuMemory>(static_cast<std::byte*>(data), bytes);
  }
  Result<std::unique_ptr<Memory>> allocate_shared(std::uint64_t bytes) override {
    TAKT_RETURN_IF_ERROR(working());
    if (bytes == 0) return std::make_unique<EmptyMemory>();
    void* host = nullptr;
    void* data = nullptr;
    cudaError_t error = cudaHostAlloc(&host, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error == cudaSuccess) error = cudaHostGetDevicePointer(&data, host, 0);
    if (error != cudaSuccess) {
      cudaFreeHost(host);
      (void)cudaGetLastError();
      return failed(std::to_string(bytes) + " bytes that host and GPU share cannot be had", error);
    }
    std::memset(host, 0, bytes);
    return std::make_unique<PinnedMemory>(static_cast<std::byte*>(data), static_cast<std::byte*>(host), bytes);
  }
  Result<std::unique_ptr<Memory>> import_host(std::span<std::byte> bytes) override {
    TAKT_RETURN_IF_ERROR(working());
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) {
      return fail(Code::kInput, "memory of " + std::to_string(bytes.size()) +
                                    " bytes that is lent to a device does not start at a multiple of 64");
    }
    if (bytes.empty()) return std::make_unique<EmptyMemory>();
    const cudaError_t error = cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterMapped);
    void* data = nullptr;
    const cudaError_t mapped = error == cudaSuccess ? cudaHostGetDevicePointer(&data, bytes.data(), 0) : error;
    if (mapped != cudaSuccess) {
      if (error == cudaSuccess) cudaHostUnregister(bytes.data());
      (void)cudaGetLastError();
      return failed(std::to_string(bytes.size()) + " bytes of host memory cannot be mapped for the GPU", mapped);
    }
    return std::make_unique<RegisteredMemory>(static_cast<std::byte*>(data), bytes.data(), bytes.size());
  }
  Result<std::shared_ptr<const Memory>> constants(std::span<const std::byte> bytes) override {
    std::weak_ptr<const Memory>& known = constants_[bytes.data()];
    if (std::shared_ptr<const Memory> held = known.lock(); held && held->bytes() == bytes.size()) return held;
    TAKT_ASSIGN(std::unique_ptr<Memory> memory, allocate(bytes.size()));
    if (!bytes.empty()) {
      const cudaError_t error = cudaMemcpy(memory->data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
      if (error != cudaSuccess) return failed("constants cannot be copied to the GPU", error);
    }
    std::shared_ptr<const Memory> held = std::move(memory);
    known = held;
    return held;
  }

  Result<std::unique_ptr<Recording>> record(std::span<const Call> calls, std::size_t bindings,
                                            std::span<const std::size_t> cuts) override {
    TAKT_RETURN_IF_ERROR(working());
    TAKT_RETURN_IF_ERROR(check_calls(calls, bindings, cuts));
    void* table = nullptr;
    void* seen = nullptr;
    cudaError_t error =
        cudaHostAlloc(&table, std::max<std::size_t>(bindings, 1) * sizeof(std::byte*), cudaHostAllocMapped);
    if (error == cudaSuccess) error = cudaHostGetDevicePointer(&seen, table, 0);
    if (error != cudaSuccess) return failed("a binding table cannot be had", error);
    std::memset(table, 0, std::max<std::size_t>(bindings, 1) * sizeof(std::byte*));
    // Owns the table and what is captured from here on.
    std::vector<cudaGraphExec_t> graphs(cuts.size() + 1, nullptr);
    for (std::size_t segment = 0; segment < graphs.size(); ++segment) {
      const std::size_t begin = segment == 0 ? 0 : cuts[segment - 1];
      const std::size_t end = segment < cuts.size() ? cuts[segment] : calls.size();
      auto graph = capture(calls.subspan(begin, end - begin), static_cast<std::byte**>(seen));
      if (!graph) {
        CudaRecording(std::move(graphs), static_cast<std::byte**>(table));
        return fail(std::move(graph).error());
      }
      graphs[segment] = *graph;
    }
    return std::make_unique<CudaRecording>(std::move(graphs), static_cast<std::byte**>(table));
  }
  Result<std::unique_ptr<Stream>> stream(int priority, int partition) override {
    TAKT_RETURN_IF_ERROR(working());
    TAKT_RETURN_IF_ERROR(check_stream(properties_, priority, partition));
    cudaStream_t stream = nullptr;
    // CUDA's priorities fall with urgency; the most urgent is the lowest number.
    const int urgency = most_urgent_ + (properties_.priorities - 1 - priority);
    const cudaError_t error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgency);
    if (error != cudaSuccess) return failed("a stream cannot be had", error);
    return std::make_unique<CudaStream>(stream, health_);
  }
  Result<std::unique_ptr<Event>> event() override {
    TAKT_RETURN_IF_ERROR(working());
    cudaEvent_t event = nullptr;
    const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDefault);
    if (error != cudaSuccess) return failed("an event cannot be had", error);
    return std::make_unique<CudaEvent>(event, health_);
  }

 private:
  [[nodiscard]] Status working() const {
    if (const char* reason = lost()) return fail(Code::kEnvironment, reason);
    const cudaError_t error = health_->choose();
    if (error != cudaSuccess) return failed("device " + properties_.name + " does not answer", error);
    return {};
  }

  // nullptr for no calls. Modules are loaded by the launches here, not in a run.
  Result<cudaGraphExec_t> capture(std::span<const Call> calls, std::byte* const* table) {
    if (calls.empty()) return nullptr;
    cudaStream_t stream = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return failed("a stream cannot be had", error);
    const auto address = [&](const Operand& operand) {
      return operand.binding == kFixed ? kernels_cuda::Address{operand.data, nullptr, 0}
                                       : kernels_cuda::Address{nullptr, table + operand.binding, operand.offset};
    };
    error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    Status launched;
    for (const Call& call : calls) {
      if (error != cudaSuccess || !launched) break;
      std::vector<kernels_cuda::Address> operands;
      for (const Operand& operand : call.operands) operands.push_back(address(operand));
      kernels_cuda::Call now{call.params, operands.data(), {}, stream};
      const auto launch = kernels_cuda::device::launch_of(static_cast<kernels::cpu::KernelId>(call.kernel->id));
      if (launch == nullptr || call.conditions.size() > kernels_cuda::kMostConditions) {
        launched = fail(Code::kEnvironment, launch == nullptr
                                                ? "there is no CUDA kernel " + std::string(call.kernel->name)
                                                : "a step stands under more than " +
                                                      std::to_string(kernels_cuda::kMostConditions) + " conditions");
        break;
      }
      for (const Condition& condition : call.conditions) {
        now.conditions.flags[now.conditions.count] = address(condition.operand);
        now.conditions.when[now.conditions.count++] = condition.when;
      }
      error = static_cast<cudaError_t>(launch(now));
      if (error != cudaSuccess)
        launched = failed("kernel " + std::string(call.kernel->name) + " cannot be launched", error);
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (launched && error == cudaSuccess) error = ended;
    if (launched && error == cudaSuccess) error = cudaGraphInstantiate(&ready, graph, 0);
    if (launched && error == cudaSuccess) error = cudaGraphUpload(ready, stream);
    if (launched && error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    if (!launched) return fail(std::move(launched).error());
    if (error != cudaSuccess) {
      if (ready != nullptr) cudaGraphExecDestroy(ready);
      return failed("a segment of " + std::to_string(calls.size()) + " steps cannot be captured", error);
    }
    return ready;
  }

  int capability_;
  Properties properties_;
  int most_urgent_;
  std::shared_ptr<Health> health_;
  std::map<const std::byte*, std::weak_ptr<const Memory>> constants_;
};

}  // namespace

Result<std::unique_ptr<Device>> cuda(int ordinal) {
  // All kernels are loaded with their modules, none when a frame first needs it. Read by the driver when it starts.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return failed("no GPU can be used", error);
  if (ordinal < 0 || ordinal >= count) {
    return fail(Code::kEnvironment,
                "there is no GPU " + std::to_string(ordinal) + "; this machine has " + std::to_string(count));
  }
  int major = 0, minor = 0, integrated = 0, least = 0, most = 0;
  std::size_t free = 0, total = 0;
  error = Health(ordinal).choose();
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetStreamPriorityRange(&least, &most);
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
  if (error != cudaSuccess) return failed("GPU " + std::to_string(ordinal) + " does not answer", error);
  if (major < 8) {
    return fail(Code::kEnvironment, "GPU " + std::to_string(ordinal) + " has compute capability " +
                                        std::to_string(major) + "." + std::to_string(minor) + "; takt needs 8.0");
  }
  Properties properties;
  properties.name = "cuda:" + std::to_string(ordinal);
  properties.memory_bytes = total;
  properties.priorities = least - most + 1;
  properties.shares_memory = integrated != 0;
  return std::make_unique<Cuda>(ordinal, 10 * major + minor, std::move(properties), most);
}

}  // namespace takt::device
