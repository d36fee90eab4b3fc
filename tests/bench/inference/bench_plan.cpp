// What a plan costs beside its arithmetic; one JSON object a call: tools/bench inference compares it with its goals.
//   bench_plan load PLAN    reading the file from the page cache, loading it, the first run, allocations of later runs
//   bench_plan write PLAN   a plan of 40 MB for it
//   bench_plan overhead     a step that does next to nothing, with one worker and with two
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "compiler/compile.h"
#include "runtime/base/file.h"
#include "runtime/exec/session.h"
#include "runtime/exec/trace.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/alloc_guard.h"
#include "scheduler/dispatch/dispatch.h"

namespace {

using namespace takt;

// Of the calling thread alone: other load on the machine falls out.
double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}
double wall_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int failed(const Error& error) {
  std::fprintf(stderr, "bench_plan: %s\n", error.message.c_str());
  return exit_code(error.code);
}

// A session with buffers as a stage has them: resident before the first run.
struct Bound {
  std::unique_ptr<exec::Session> session;
  std::vector<memory::AlignedBuffer> buffers;
};
Result<Bound> with_buffers(const std::shared_ptr<const plan::Plan>& plan) {
  Bound out;
  TAKT_ASSIGN(out.session, exec::Session::create(plan));
  const plan::Description& d = plan->description();
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const std::vector<std::byte> input = exec::made_up_input(d.tensors[d.inputs[i]]);
    TAKT_ASSIGN(memory::AlignedBuffer buffer, memory::AlignedBuffer::create(input.size()));
    std::memcpy(buffer.data(), input.data(), input.size());
    TAKT_RETURN_IF_ERROR(out.session->bind_input(i, {buffer.data(), input.size()}));
    out.buffers.push_back(std::move(buffer));
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    const std::uint64_t bytes = d.tensors[d.outputs[i]].bytes;
    TAKT_ASSIGN(memory::AlignedBuffer buffer, memory::AlignedBuffer::create(bytes));
    std::memset(buffer.data(), 0, bytes);
    TAKT_RETURN_IF_ERROR(out.session->bind_output(i, {buffer.data(), bytes}));
    out.buffers.push_back(std::move(buffer));
  }
  TAKT_RETURN_IF_ERROR(out.session->ready(1));
  return out;
}

int load(const std::string& path) {
  // Best of a few: whatever else the machine does falls out.
  constexpr int kRounds = 9;
  double read_us = 1e18, load_us = 1e18, first_us = 1e18, median_us = 1e18;
  std::uint64_t allocations = 0, file_bytes = 0;
  std::vector<std::byte> file;
  for (int round = 0; round < kRounds; ++round) {
    {
      std::FILE* in = std::fopen(path.c_str(), "rb");
      if (in == nullptr) {
        std::fprintf(stderr, "bench_plan: %s cannot be read\n", path.c_str());
        return 3;
      }
      std::setvbuf(in, nullptr, _IONBF, 0);
      if (file.empty()) {
        std::fseek(in, 0, SEEK_END);
        file.resize(static_cast<std::size_t>(std::ftell(in)));
        std::rewind(in);
      }
      const double begin = cpu_us();
      const std::size_t got = std::fread(file.data(), 1, file.size(), in);
      if (round > 0 && got == file.size()) read_us = std::min(read_us, cpu_us() - begin);  // the first fills pages
      std::fclose(in);
    }
    double begin = cpu_us();
    auto plan = plan::Plan::load(path);
    load_us = std::min(load_us, cpu_us() - begin);
    if (!plan) return failed(plan.error());
    file_bytes = (*plan)->file_bytes();
    auto bound = with_buffers(*plan);
    if (!bound) return failed(bound.error());
    begin = cpu_us();
    bound->session->run();
    const double first = cpu_us() - begin;
    std::vector<double> times;
    times.reserve(64);
    const memory::ThreadCounters before = memory::thread_counters();
    for (int i = 0; i < 15; ++i) {
      begin = cpu_us();
      bound->session->run();
      times.push_back(cpu_us() - begin);
    }
    allocations += (memory::thread_counters() - before).allocations;
    std::sort(times.begin(), times.end());
    first_us = std::min(first_us, first);
    median_us = std::min(median_us, times[times.size() / 2]);
  }
  std::printf(
      "{\"file_mb\": %.1f, \"read_ms\": %.2f, \"load_ms\": %.2f, \"beyond_reading_ms\": %.2f, \"first_us\": %.1f, "
      "\"median_us\": %.1f, \"first_over_median\": %.3f, \"counted\": %d, \"allocations\": %llu}\n",
      static_cast<double>(file_bytes) * 1e-6, read_us * 1e-3, load_us * 1e-3, (load_us - read_us) * 1e-3, first_us,
      median_us, first_us / median_us, memory::guard_available() ? 1 : 0, static_cast<unsigned long long>(allocations));
  return 0;
}

// A chain of operators over 16 elements each: time a step is nothing but what the executor and the call cost.
Result<std::shared_ptr<const plan::Plan>> chain(int steps) {
  ir::Graph graph;
  graph.name = "chain";
  ir::Type type;
  type.shape = {1, {16}};
  ir::ValueId at = graph.add_value("x", type);
  graph.inputs = {at};
  for (int i = 0; i < steps; ++i) {
    ir::Node node;
    node.op = "Neg";
    node.name = "step" + std::to_string(i);
    node.inputs = {at};
    at = graph.add_value("y" + std::to_string(i), type);
    node.outputs = {at};
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {at};
  compiler::Options options;
  options.optimise = false;
  TAKT_ASSIGN(const std::vector<std::byte> bytes, compiler::compile(std::move(graph), {}, options));
  return plan::Plan::parse(bytes);
}

// One product with a matrix of 40 MB.
int write(const std::string& path) {
  constexpr std::int64_t kSize = 3200;
  ir::Graph graph;
  graph.name = "matrix";
  ir::Type type;
  type.shape = {2, {1, kSize}};
  const ir::ValueId x = graph.add_value("x", type);
  std::vector<float> weights(kSize * kSize);
  std::uint32_t state = 1;
  for (float& w : weights) {
    state = state * 1664525U + 1013904223U;
    w = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  ir::Node node;
  node.op = "MatMul";
  node.name = "product";
  node.inputs = {x, graph.add_constant("w", ir::Constant::of(weights, {2, {kSize, kSize}}))};
  node.outputs = {graph.add_value("y", type)};
  graph.inputs = {x};
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  const auto bytes = compiler::compile(std::move(graph), {}, {});
  if (!bytes) return failed(bytes.error());
  const Status written = write_file_atomically(path, {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  return written ? 0 : failed(written.error());
}

int overhead() {
  constexpr int kSteps = 1000, kRounds = 50;
  auto plan = chain(kSteps);
  if (!plan) return failed(plan.error());
  auto bound = with_buffers(*plan);
  if (!bound) return failed(bound.error());
  exec::Session& session = *bound->session;
  double one = 1e18, two = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = cpu_us();
    session.run();
    one = std::min(one, cpu_us() - begin);
  }
  // The gang of a stage: a barrier behind every step. The best short stretch: on a loaded machine the two rarely run
  // side by side for long.
  constexpr std::size_t kStretch = 50;
  sched::Gang gang(2);
  const auto work = [&](int part) {
    for (int round = 0; round < kRounds; ++round) {
      static_cast<void>(gang.arrive_and_wait(part));
      for (std::size_t step = 0; step < session.steps();) {
        const double begin = wall_us();
        for (std::size_t i = 0; i < kStretch; ++i, ++step) {
          session.run_step(step, part, 2);
          static_cast<void>(gang.arrive_and_wait(part));
        }
        if (part == 0) two = std::min(two, wall_us() - begin);
      }
    }
  };
  std::thread second(work, 1);
  work(0);
  second.join();
  std::printf("{\"one_worker_ns\": %.1f, \"two_workers_ns\": %.1f}\n", one * 1e3 / kSteps, two * 1e3 / kStretch);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "load" && argc == 3) return load(argv[2]);
  if (what == "write" && argc == 3) return write(argv[2]);
  if (what == "overhead" && argc == 2) return overhead();
  std::fprintf(stderr, "usage: bench_plan load PLAN | write PLAN | overhead\n");
  return 2;
}
