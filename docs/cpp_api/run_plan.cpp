// Runs a plan on made-up numbers and prints what comes out and what each step costs: run_plan NET.plan [RUNS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/takt.h"

namespace {

takt::Status run(const char* file, int runs) {
  // A plan is verified when it is loaded, and never changes.
  TAKT_ASSIGN(const std::shared_ptr<const takt::plan::Plan> plan, takt::plan::Plan::load(file));

  // A session is one place where it runs: all memory is taken here.
  TAKT_ASSIGN(const std::unique_ptr<takt::exec::Session> session, takt::exec::Session::create(plan));
  TAKT_ASSIGN(const takt::exec::Buffers buffers, takt::exec::Buffers::create(*session));
  TAKT_RETURN_IF_ERROR(session->ready(1));

  // Tensors are row-major; slots are in the order of the plan.
  const takt::plan::Description& description = plan->description();
  for (std::size_t slot = 0; slot < description.inputs.size(); ++slot) {
    if (description.tensors[description.inputs[slot]].dtype != takt::kernels::DType::kF32) continue;
    float value = 0;
    for (float& element : buffers.input_as<float>(slot)) element = value = value > 1 ? 0 : value + 0.01F;
  }

  session->enable_profile(true);
  for (int i = 0; i < runs; ++i) {
    session->run();      // on this thread; allocates nothing
    session->publish();  // of a network with state: the next run goes on from here
  }

  for (std::size_t slot = 0; slot < description.outputs.size(); ++slot) {
    const takt::plan::Tensor& tensor = description.tensors[description.outputs[slot]];
    if (tensor.dtype != takt::kernels::DType::kF32) continue;
    const auto values = buffers.output_as<float>(slot);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::printf("%s: %zu values, %g to %g\n", tensor.name.c_str(), values.size(), static_cast<double>(*low),
                static_cast<double>(*high));
  }
  for (std::size_t step = 0; step < session->steps(); ++step) {
    const takt::exec::StepProfile profile = session->profile(step);
    std::printf("%3zu %-24s %8.1f us at least, %8.1f us at most\n", step, plan->kernel(step).name,
                static_cast<double>(profile.minimum_ns) * 1e-3, static_cast<double>(profile.maximum_ns) * 1e-3);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "run_plan NET.plan [RUNS]\n");
    return 2;
  }
  const takt::Status status = run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 10);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return takt::exit_code(status.error().code);
}
