// Figures of the memory planner on published problems, one line each and one JSON object: tools/bench memory compares
// them with their goals.
//   bench_memory FOLDER    (the recorded data's memory/)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "tests/compiler/lower/memory_instances.h"

namespace {

using namespace takt::lower;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kCapacity = 1048576;
// Above what a plan is given: these problems were made to be hard.
constexpr std::uint64_t kNodes = 30'000'000;

struct Outcome {
  bool valid = false;
  MemoryPlan plan;
  double seconds = 0;
};

Outcome solve(const std::string& name, const std::string& path, std::uint64_t nodes) {
  const std::vector<Block> blocks = read_instance(path);
  if (blocks.empty()) {
    std::fprintf(stderr, "bench_memory: %s cannot be read\n", path.c_str());
    return {};
  }
  Outcome out;
  const Clock::time_point begin = Clock::now();
  out.plan = plan_memory(blocks, {.alignment = 1, .node_limit = nodes});
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.valid = validate(blocks, out.plan, 1).has_value() && out.plan.peak <= out.plan.greedy_by_size_peak;
  std::fprintf(
      stderr,
      "  %-10s %5zu blocks  peak %10llu  lower bound %10llu  greedy by size %10llu  %-18s %9llu nodes  %6.2f s\n",
      name.c_str(), blocks.size(), static_cast<unsigned long long>(out.plan.peak),
      static_cast<unsigned long long>(out.plan.lower_bound),
      static_cast<unsigned long long>(out.plan.greedy_by_size_peak), takt::plan::name_of(out.plan.proof),
      static_cast<unsigned long long>(out.plan.nodes), out.seconds);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_memory FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  int at_capacity = 0;
  double slowest = 0;
  for (const std::string name : {"A", "C", "E", "G", "I", "K"}) {
    const Outcome out = solve(name, folder + "/minimalloc/challenging/" + name + ".1048576.csv", kNodes);
    at_capacity += out.valid && out.plan.peak <= kCapacity ? 1 : 0;
    slowest = std::max(slowest, out.seconds);
  }
  const Outcome somas = solve("resnet50", folder + "/idealloc_somas/resnet50.csv", MemoryOptions{}.node_limit);
  const double over =
      somas.valid ? static_cast<double>(somas.plan.peak) / static_cast<double>(somas.plan.lower_bound) : 0;
  std::printf("{\"at_capacity\": %d, \"slowest_s\": %.2f, \"resnet50_over_bound\": %.4f, \"resnet50_s\": %.2f}\n",
              at_capacity, slowest, over, somas.seconds);
  return 0;
}
