// A plan end to end on a GPU beside the CPU: equal bytes, times, memory. One JSON on standard output.
//   device_compare cuda|cuda-host MODEL.onnx[:NAME=NUMBER...][:precision=f16]...     symbolic dimensions after colons
// No CPU plan is in f16: such a plan is compared with itself on the harness.
// In place of a model: `pillars` or `voxels`, takt's own networks in small, on a made-up cloud.
// Exit codes: 0 equal everywhere, 1 something differs, 2 usage, 5 no such device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "runtime/base/file.h"
#include "runtime/base/time.h"
#include "runtime/device/cuda_host.h"
#include "runtime/exec/session.h"
#include "tests/compiler/nets/pillar_jobs.h"
#include "tests/compiler/nets/voxel_jobs.h"
#include "tests/support/run_plan.h"
#if defined(TAKT_CUDA)
#include "runtime/device/cuda.h"
#endif

namespace takt {
namespace {

using nlohmann::json;

Result<std::shared_ptr<device::Device>> device_of(const std::string& name) {
  if (name == "cuda-host") {
    return std::shared_ptr<device::Device>(device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 1}));
  }
#if defined(TAKT_CUDA)
  TAKT_ASSIGN(std::unique_ptr<device::Device> gpu, device::cuda());
  return std::shared_ptr<device::Device>(std::move(gpu));
#else
  return fail(Code::kEnvironment, "this program was built without a CUDA toolkit");
#endif
}

// Values between -1 and 1, the same everywhere.
std::vector<std::vector<std::byte>> made_up_inputs(const plan::Description& d) {
  std::vector<std::vector<std::byte>> inputs;
  std::uint32_t state = 1;
  for (const std::uint32_t index : d.inputs) {
    std::vector<float> values(d.tensors[index].bytes / sizeof(float));
    for (float& v : values) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<float>(state >> 8) / static_cast<float>(1U << 23) - 1;
    }
    inputs.emplace_back(values.size() * sizeof(float));
    std::memcpy(inputs.back().data(), values.data(), inputs.back().size());
  }
  return inputs;
}

struct Run {
  std::vector<std::vector<std::byte>> outputs;
  std::vector<double> launch_ms, device_ms;  // by the host's clock until submission returned, by the device's
};

// Copies to the device, `repeats` jobs, copies back.
Result<Run> run_on(device::Device& device, const std::shared_ptr<const plan::Plan>& plan,
                   const std::vector<std::vector<std::byte>>& inputs, int repeats) {
  const plan::Description& d = plan->description();
  exec::Placement placement;
  placement.device = &device;
  TAKT_ASSIGN(const auto session, exec::Session::create(plan, placement));
  TAKT_ASSIGN(const auto stream, device.stream(0, 0));
  TAKT_ASSIGN(const auto begin, device.event());
  TAKT_ASSIGN(const auto end, device.event());
  std::vector<std::unique_ptr<device::Memory>> memory;
  std::vector<test::AlignedBytes> host;
  std::vector<std::unique_ptr<device::Memory>> lent;
  const auto bytes_on_device = [&](std::uint64_t bytes) -> Result<std::byte*> {
    TAKT_ASSIGN(memory.emplace_back(), device.allocate(bytes));
    host.emplace_back((bytes + 63) / 64 * 64);
    TAKT_ASSIGN(lent.emplace_back(), device.import_host(host.back().span()));
    return memory.back()->data();
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TAKT_ASSIGN(std::byte* const data, bytes_on_device(inputs[i].size()));
    std::memcpy(host.back().span().data(), inputs[i].data(), inputs[i].size());
    stream->copy(data, lent.back()->data(), inputs[i].size());
    TAKT_RETURN_IF_ERROR(session->bind_input(i, {data, inputs[i].size()}));
  }
  const std::size_t first_output = memory.size();
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    const std::uint64_t bytes = d.tensors[d.outputs[i]].bytes;
    TAKT_ASSIGN(std::byte* const data, bytes_on_device(bytes));
    TAKT_RETURN_IF_ERROR(session->bind_output(i, {data, bytes}));
  }
  Run run;
  for (int r = 0; r < repeats; ++r) {
    stream->mark(*begin);
    const HostTime start = host_now();
    for (std::size_t s = 0; s < session->segments(); ++s) TAKT_RETURN_IF_ERROR(session->submit(*stream, s));
    run.launch_ms.push_back(static_cast<double>((host_now() - start).ns) * 1e-6);
    stream->mark(*end);
    if (end->wait() != device::Progress::kDone) {
      return fail(Code::kEnvironment, device.lost() != nullptr ? device.lost() : "the device was lost");
    }
    while (session->poll() == device::Progress::kPending) continue;
    run.device_ms.push_back(static_cast<double>(end->since(*begin).ns) * 1e-6);
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    const std::uint64_t bytes = d.tensors[d.outputs[i]].bytes;
    stream->copy(lent[first_output + i]->data(), memory[first_output + i]->data(), bytes);
    stream->mark(*end);
    end->wait();
    const auto from = host[first_output + i].span();
    run.outputs.emplace_back(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  return run;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// What is compared: a graph for any target, and inputs for its plans.
struct Subject {
  std::string name;
  std::function<Result<std::vector<std::byte>>(kernels::Target)> compile;
  std::vector<std::vector<std::byte>> inputs;  // empty: made up
  kernels::DType precision = kernels::DType::kF32;
};

Result<Subject> network(const std::string& name) {
  const bool pillars = name == "pillars";
  TAKT_ASSIGN(ir::Graph graph, pillars ? compiler::pillar_network(compiler::pillars::small(0))
                                       : compiler::voxel_network(compiler::voxels::small()));
  const auto compile = [graph = std::move(graph)](kernels::Target target) {
    compiler::Options options;
    options.target = target;
    return compiler::compile(graph, {}, options);
  };
  return Subject{name, compile,
                 pillars ? compiler::pillars::all_jobs().front().inputs(false) : compiler::voxels::all_jobs().front(),
                 kernels::DType::kF32};
}

Result<Subject> model(const std::string& argument) {
  compiler::Options options;
  std::string file = argument;
  for (std::size_t colon = file.rfind(':'); colon != std::string::npos; colon = file.rfind(':')) {
    const std::size_t equals = file.find('=', colon);
    if (equals == std::string::npos) return fail(Code::kUsage, "a dimension is NAME=NUMBER");
    if (file.substr(colon + 1) == "precision=f16") {
      options.precision = kernels::DType::kF16;
    } else {
      options.dims[file.substr(colon + 1, equals - colon - 1)] = std::strtoll(file.c_str() + equals + 1, nullptr, 10);
    }
    file.resize(colon);
  }
  TAKT_ASSIGN(std::string onnx, read_file(file));
  const auto compile = [onnx = std::move(onnx), options](kernels::Target target) mutable {
    options.target = target;
    return compiler::compile_onnx(std::as_bytes(std::span(onnx.data(), onnx.size())), options);
  };
  return Subject{file.substr(file.rfind('/') + 1), compile, {}, options.precision};
}

Result<json> compare(device::Device& device, const std::string& argument, bool* equal) {
  TAKT_ASSIGN(const Subject subject,
              argument == "pillars" || argument == "voxels" ? network(argument) : model(argument));
  TAKT_ASSIGN(const std::vector<std::byte> for_gpu,
              subject.compile(device.unsupported(kernels::Target::kCudaSm90) == nullptr ? kernels::Target::kCudaSm90
                                                                                        : kernels::Target::kCudaSm87));
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::parse(for_gpu));
  const auto inputs = subject.inputs.empty() ? made_up_inputs(plan->description()) : subject.inputs;
  const int repeats = device.properties().name == "cuda-host" ? 2 : 200;
  TAKT_ASSIGN(Run run, run_on(device, plan, inputs, repeats));
  test::cut_to_counts(*plan, run.outputs);
  const bool f16 = subject.precision == kernels::DType::kF16;
  std::vector<std::vector<std::byte>> wanted;
  if (f16) {
    const auto harness = device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 2});
    TAKT_ASSIGN(Run other, run_on(*harness, plan, inputs, 1));
    wanted = std::move(other.outputs);
  } else {
    TAKT_ASSIGN(const std::vector<std::byte> for_cpu, subject.compile(kernels::best_target()));
    TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> cpu, plan::Plan::parse(for_cpu));
    wanted = test::run_plan(cpu, inputs);
    test::cut_to_counts(*cpu, wanted);
  }
  const bool same = run.outputs == wanted;
  *equal = *equal && same;
  return json{{"model", subject.name},
              {"target", kernels::name_of(plan->description().target)},
              {"steps", plan->description().steps.size()},
              {"arena_bytes", plan->description().arena_bytes},
              {"precision", kernels::name_of(subject.precision)},
              {"compared_with", f16 ? "cuda-host" : "cpu"},
              {"equal", same},
              {"runs", repeats},
              {"launch_ms_median", median(run.launch_ms)},
              {"device_ms_median", median(run.device_ms)},
              {"device_ms_max", *std::max_element(run.device_ms.begin(), run.device_ms.end())}};
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || (arguments[0] != "cuda" && arguments[0] != "cuda-host")) {
    std::fprintf(stderr, "device_compare cuda|cuda-host MODEL.onnx[:NAME=NUMBER...][:precision=f16]...\n");
    return 2;
  }
  auto device = device_of(arguments[0]);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 5;
  }
  json report = {{"device", (*device)->properties().name},
                 {"memory_bytes", (*device)->properties().memory_bytes},
                 {"plans", json::array()}};
  bool equal = true;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    auto row = compare(**device, arguments[i], &equal);
    if (!row) {
      std::fprintf(stderr, "%s: %s\n", arguments[i].c_str(), row.error().message.c_str());
      return 1;
    }
    report["plans"].push_back(*row);
  }
  std::printf("%s\n", report.dump(2).c_str());
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace takt

int main(int argc, char** argv) { return takt::main_of({argv + 1, argv + argc}); }
