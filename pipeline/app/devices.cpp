#include "pipeline/app/devices.h"

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/suggest.h"
#include "runtime/device/null.h"
#if defined(TAKT_CUDA)
#include "runtime/device/cuda.h"
#endif
#if defined(TAKT_CUDA_HOST)
#include "runtime/device/cuda_host.h"
#endif

namespace takt::app {
namespace {

const std::vector<std::string> kNames{"cpu", "cuda", "cuda-host"};

// Which GPU "cuda" or "cuda:N" means; nullopt: it is no such name.
std::optional<int> gpu_of(const std::string& name) {
  if (name == "cuda") return 0;
  if (name.rfind("cuda:", 0) != 0) return std::nullopt;
  int ordinal = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 5, end, ordinal);
  return error == std::errc() && rest == end && ordinal >= 0 ? std::optional(ordinal) : std::nullopt;
}

Result<std::shared_ptr<device::Device>> gpu(int ordinal) {
#if defined(TAKT_CUDA)
  auto opened = device::cuda(ordinal);
  if (opened) return std::shared_ptr<device::Device>(*std::move(opened));
  return fail(Code::kEnvironment,
              "--device cuda: " + opened.error().message + "; leave --device out to run on the CPU");
#else
  (void)ordinal;
  return fail(Code::kEnvironment,
              "--device cuda: this program was built without a CUDA toolkit (docs/cuda.md); leave --device out to run "
              "on the CPU");
#endif
}

Result<std::shared_ptr<device::Device>> harness() {
#if defined(TAKT_CUDA_HOST)
  return std::shared_ptr<device::Device>(device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 1}));
#else
  return fail(Code::kEnvironment,
              "--device cuda-host: this program was built without the harness that runs CUDA kernels on the CPU; "
              "build with -DTAKT_BUILD_TESTS=ON");
#endif
}

}  // namespace

Result<pipeline::DevicePlace> stand_in_for(const std::string& target, const std::string& memory) {
  using kernels::Target;
  std::vector<std::string> known;
  for (const Target gpu : {Target::kCudaSm87, Target::kCudaSm90}) {
    known.emplace_back(kernels::name_of(gpu));
    if (target != known.back()) continue;
    const bool in_place = memory.empty() ? gpu == Target::kCudaSm87 : memory == "in-place";
    return pipeline::DevicePlace{
        {&device::null(), [](device::Device*) {}}, gpu, in_place ? exec::Exchange::kInPlace : exec::Exchange::kCopies};
  }
  return fail(Code::kUsage, "no GPU is called '" + target + "'" + did_you_mean(target, known));
}

void add_device_options(CLI::App& verb, std::string& device, std::string& memory) {
  verb.add_option("--device", device,
                  "where compiled graphs run, fusion too: cpu, cuda (or cuda:N: that GPU of NVIDIA), cuda-host (CUDA "
                  "kernels on the CPU: slow, in builds with tests only)")
      ->capture_default_str();
  verb.add_option("--device-memory", memory,
                  "in-place (the device reads chunks where they lie) or copied; default: what the device is made for")
      ->check(CLI::IsMember({"in-place", "copied"}));
}

Result<pipeline::DevicePlace> open_device(const std::string& name, const std::string& memory) {
  pipeline::DevicePlace place;
  if (name == "cpu" || name.empty()) {
    if (memory.empty()) return place;
    return fail(Code::kUsage, "--device-memory is about a device beside the cores: name it with --device");
  }
  if (const std::optional<int> ordinal = gpu_of(name)) {
    TAKT_ASSIGN(place.device, gpu(*ordinal));
  } else if (name == "cuda-host") {
    TAKT_ASSIGN(place.device, harness());
  } else {
    return fail(Code::kUsage, "--device: no device is called '" + name + "'" + did_you_mean(name, kNames));
  }
  using kernels::Target;
  for (const Target target : {Target::kCudaSm87, Target::kCudaSm90}) {
    place.target = target;
    if (place.device->unsupported(target) == nullptr) break;
  }
  if (const char* reason = place.device->unsupported(place.target)) {
    return fail(Code::kEnvironment, "--device " + name + ": takt has no kernels for it: " + reason);
  }
  const bool in_place = memory.empty() ? place.device->properties().shares_memory : memory == "in-place";
  place.exchange = in_place ? exec::Exchange::kInPlace : exec::Exchange::kCopies;
  return place;
}

}  // namespace takt::app
