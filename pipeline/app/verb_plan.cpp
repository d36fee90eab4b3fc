// takt plan: look at a compiled plan, time its steps. Running it and finding where two differ: verb_plan_run.cpp.

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "kernels/cpu/peak.h"
#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "pipeline/app/verb_plan.h"
#include "runtime/base/time.h"
#include "runtime/exec/segments.h"
#include "runtime/exec/session.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/explain.h"
#include "scheduler/model/gpu.h"

namespace takt::app {
namespace {

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return std::min<int>(size.ws_col, 200);
  return 120;
}

struct ShowOptions {
  std::string plan;
  bool json = false;
  std::string board, unit;
  std::optional<double> guard_ms;
};

// What a board's figures say of a plan for a GPU, and the segments that its guard cuts it into.
struct Cut {
  sched::GpuFigures gpu;
  Duration sum;
  exec::Segments segments;
  std::vector<Duration> times;  // of each segment
};
Result<Cut> cut_for(const plan::Plan& plan, const ShowOptions& options) {
  const kernels::Target target = plan.description().target;
  if (!kernels::is_cuda(target)) {
    return fail(Code::kUsage, "--board is about plans on a GPU; this one is for " + std::string(name_of(target)));
  }
  Cut out;
  TAKT_ASSIGN(out.gpu, sched::load_gpu_figures(options.board, options.unit));
  if (options.guard_ms) out.gpu.guard = {static_cast<std::int64_t>(*options.guard_ms * 1e6)};
  const std::vector<Duration> steps =
      exec::predicted_times(plan.description(), {out.gpu.gflops, out.gpu.gb_s, out.gpu.step});
  for (const Duration step : steps) out.sum += step;
  TAKT_ASSIGN(out.segments, exec::cut_into_segments(plan, steps, out.gpu.guard));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const bool begins =
        out.times.size() <= out.segments.cuts.size() && (step == 0 || out.segments.cuts[out.times.size() - 1] == step);
    if (begins) out.times.emplace_back();
    out.times.back() += steps[step];
  }
  return out;
}

Status show(const ShowOptions& options) {
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(options.plan));
  if (options.board.empty()) {
    if (options.guard_ms) return fail(Code::kUsage, "--guard-ms is by the figures of a board: name it with --board");
    if (!options.unit.empty()) return fail(Code::kUsage, "--unit is one of a board: name it with --board");
    std::fputs((options.json ? plan::to_json(*plan) : plan::explain(*plan, terminal_width())).c_str(), stdout);
    return {};
  }
  TAKT_ASSIGN(const Cut cut, cut_for(*plan, options));
  const exec::Segments& segments = cut.segments;
  if (options.json) {
    auto out = nlohmann::ordered_json::parse(plan::to_json(*plan));
    out["predicted"] = {{"board", cut.gpu.board},   {"unit", cut.gpu.unit},
                        {"steps_us", cut.sum.us()}, {"guard_us", cut.gpu.guard.us()},
                        {"cuts", segments.cuts},    {"longest_us", segments.longest.us()}};
    std::printf("%s\n", out.dump(2).c_str());
    return {};
  }
  std::fputs(plan::explain(*plan, terminal_width()).c_str(), stdout);
  std::printf(
      "on %s (%s: %.0f GFLOP/s, %.1f GB/s, %.0f us a step): %.3f ms at least\n"
      "  a guard of %.3f ms: %zu segment%s, the longest %.3f ms at least (steps %zu to %zu)\n",
      cut.gpu.board.c_str(), cut.gpu.unit.c_str(), cut.gpu.gflops, cut.gpu.gb_s, cut.gpu.step.us(), cut.sum.ms(),
      cut.gpu.guard.ms(), segments.cuts.size() + 1, segments.cuts.empty() ? "" : "s", segments.longest.ms(),
      segments.first, segments.last);
  for (std::size_t i = 0; i < cut.times.size() && cut.times.size() > 1; ++i) {
    std::printf("    segment %zu: from step %zu, %.3f ms\n", i + 1, i == 0 ? 0 : segments.cuts[i - 1],
                cut.times[i].ms());
  }
  return {};
}

struct BenchOptions {
  std::string plan;
  int threads = 1;
  int runs = 200;
  bool json = false;
  std::string device;
  std::optional<double> guard_ms;
};

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{plan::kAlignment}); }
};
using Buffer = std::unique_ptr<std::byte, AlignedDelete>;

Buffer buffer(std::uint64_t bytes) {
  return Buffer(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{plan::kAlignment})));
}

// Runs the steps on the calling thread and `threads` - 1 others that meet after every step.
class Gang {
 public:
  Gang(exec::Session& session, int threads) : session_(session), threads_(threads), barrier_(threads) {
    for (int part = 1; part < threads; ++part) {
      helpers_.emplace_back([this, part] {
        for (;;) {
          barrier_.arrive_and_wait();  // begin of a run
          if (ended_.load()) return;
          steps(part);
        }
      });
    }
  }
  ~Gang() {
    ended_ = true;
    if (threads_ > 1) barrier_.arrive_and_wait();
    for (std::thread& helper : helpers_) helper.join();
  }
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;
  void run() {
    if (threads_ == 1) {
      session_.run();
      return;
    }
    barrier_.arrive_and_wait();
    steps(0);
  }

 private:
  void steps(int part) {
    for (std::size_t step = 0; step < session_.steps(); ++step) {
      session_.run_step(step, part, threads_);
      barrier_.arrive_and_wait();
    }
  }
  exec::Session& session_;
  int threads_;
  std::barrier<> barrier_;
  std::atomic<bool> ended_{false};
  std::vector<std::thread> helpers_;
};

Status bench(const BenchOptions& options) {
  if (!options.device.empty()) {
    if (options.threads != 1) return fail(Code::kUsage, "--threads is about cores; --device has none");
    return bench_on_device(options.plan, options.device, options.runs, options.guard_ms, options.json);
  }
  if (options.guard_ms) return fail(Code::kUsage, "--guard-ms cuts a plan on a device: name it with --device");
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(options.plan));
  TAKT_ASSIGN(const std::unique_ptr<exec::Session> session, exec::Session::create(plan));
  const plan::Description& d = plan->description();
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const std::vector<std::byte> input = exec::made_up_input(d.tensors[d.inputs[i]]);
    buffers.push_back(buffer(input.size()));
    std::memcpy(buffers.back().get(), input.data(), input.size());
    TAKT_RETURN_IF_ERROR(session->bind_input(i, {buffers.back().get(), input.size()}));
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    const std::uint64_t bytes = d.tensors[d.outputs[i]].bytes;
    buffers.push_back(buffer(bytes));
    TAKT_RETURN_IF_ERROR(session->bind_output(i, {buffers.back().get(), bytes}));
  }
  TAKT_RETURN_IF_ERROR(session->ready(options.threads));

  Gang gang(*session, options.threads);
  const auto timed = [&] {
    const HostTime begin = host_now();
    gang.run();
    return (host_now() - begin).us();
  };
  const double first = timed();
  std::vector<double> times;
  for (int i = 0; i < options.runs; ++i) times.push_back(timed());
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  // Per step apart, since reading the clock costs something too.
  session->enable_profile(true);
  for (int i = 0; i < options.runs; ++i) gang.run();
  // What the steps should take by the peaks of this machine, beside what they took.
  const kernels::cpu::Peaks peaks = kernels::cpu::measure_peaks(d.target);
  const auto predicted_ns = [&](std::size_t step) {
    return peaks.nanoseconds(d.steps[step].flops, d.steps[step].bytes_moved, options.threads);
  };
  double measured = 0, predicted = 0;
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    measured += static_cast<double>(session->profile(i).minimum_ns);
    predicted += predicted_ns(i);
  }

  if (options.json) {
    nlohmann::ordered_json out{{"plan", d.name},
                               {"target", kernels::name_of(d.target)},
                               {"threads", options.threads},
                               {"runs", options.runs},
                               {"first_us", first},
                               {"minimum_us", times.front()},
                               {"median_us", median},
                               {"maximum_us", times.back()},
                               {"predicted_us", predicted * 1e-3},
                               {"gflops", peaks.gflops}};
    out["bandwidth"] = nlohmann::ordered_json::array();
    for (const auto& level : peaks.levels) out["bandwidth"].push_back({{"bytes", level.bytes}, {"gbs", level.gbs}});
    out["steps"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
      const exec::StepProfile p = session->profile(i);
      out["steps"].push_back({{"kernel", plan->kernel(i).name},
                              {"minimum_us", static_cast<double>(p.minimum_ns) * 1e-3},
                              {"maximum_us", static_cast<double>(p.maximum_ns) * 1e-3},
                              {"predicted_us", predicted_ns(i) * 1e-3},
                              {"flops", d.steps[i].flops},
                              {"bytes_moved", d.steps[i].bytes_moved}});
    }
    std::printf("%s\n", out.dump(2).c_str());
    return {};
  }
  std::printf(
      "     #  kernel                       min us     max us   share  roofline us    of it  GFLOP/s     GB/s  node\n");
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    const exec::StepProfile p = session->profile(i);
    const auto ns = static_cast<double>(std::max<std::int64_t>(p.minimum_ns, 1));
    std::printf("  %4zu  %-24s %10.1f %10.1f  %5.1f%%   %10.1f  %5.0f%% %8.1f %8.1f  %s\n", i, plan->kernel(i).name,
                ns * 1e-3, static_cast<double>(p.maximum_ns) * 1e-3, 100 * ns / measured, predicted_ns(i) * 1e-3,
                100 * predicted_ns(i) / ns, static_cast<double>(d.steps[i].flops) / ns,
                static_cast<double>(d.steps[i].bytes_moved) / ns,
                d.steps[i].nodes.empty() ? "" : d.steps[i].nodes.front().c_str());
  }
  std::printf("this core: %.0f GFLOP/s;", peaks.gflops);
  for (const auto& level : peaks.levels) {
    std::printf(" %.0f GB/s in %llu kB%s", level.gbs, static_cast<unsigned long long>(level.bytes >> 10),
                &level == &peaks.levels.back() ? "\n" : ",");
  }
  std::printf("steps: %.1f us together, %.1f us by the roofline (%.0f %% of it reached)\n", measured * 1e-3,
              predicted * 1e-3, 100 * predicted / measured);
  std::printf("%s, %s, %d thread%s, %d runs: first %.1f us, min %.1f us, median %.1f us, max %.1f us\n", d.name.c_str(),
              kernels::name_of(d.target), options.threads, options.threads == 1 ? "" : "s", options.runs, first,
              times.front(), median, times.back());
  return {};
}

}  // namespace

void add_plan(CLI::App& app, Command& chosen) {
  CLI::App* verb = app.add_subcommand("plan", "Look at a compiled plan, time it, run it, compare two");
  verb->require_subcommand(1);
  const auto run = [&chosen](CLI::App* sub, auto options, auto action) {
    sub->callback([options, action, &chosen] {
      chosen = [options, action] {
        const Status status = action(*options);
        return status ? 0 : report_error(status.error());
      };
    });
  };
  auto show_options = std::make_shared<ShowOptions>();
  CLI::App* show_verb = verb->add_subcommand("show", "Inputs, outputs, steps and the map of its memory");
  show_verb->add_option("plan", show_options->plan, "a plan written by `takt compile`")->required();
  show_verb->add_option("--board", show_options->board,
                        "of a cuda plan: what its steps take at least by the figures of this board's GPU, and the "
                        "segments that the board's guard cuts it into");
  show_verb->add_option("--unit", show_options->unit,
                        "the GPU among the board's units (default: the first with figures)");
  show_verb->add_option("--guard-ms", show_options->guard_ms, "another guard than the board's")
      ->check(CLI::Range(0.001, 1e6));
  show_verb->add_flag("--json", show_options->json, "machine-readable description on stdout");
  run(show_verb, show_options, show);

  auto bench_options = std::make_shared<BenchOptions>();
  CLI::App* bench_verb = verb->add_subcommand("bench", "Time it on this machine, step by step, on made-up input");
  bench_verb->add_option("plan", bench_options->plan, "a plan written by `takt compile`")->required();
  bench_verb->add_option("--threads", bench_options->threads, "workers, as many as the plan admits (default: 1)")
      ->check(count_in(1, 1024));
  bench_verb->add_option("--runs", bench_options->runs, "runs after the first (default: 200)")
      ->check(count_in(1, 10'000'000));
  bench_verb->add_option("--device", bench_options->device, "of a cuda plan: cuda, cuda:N or cuda-host (docs/cuda.md)");
  bench_verb
      ->add_option("--guard-ms", bench_options->guard_ms,
                   "on a device: cut it into segments that take no longer, and time these")
      ->check(CLI::Range(0.001, 1e6));
  bench_verb->add_flag("--json", bench_options->json, "machine-readable figures on stdout");
  run(bench_verb, bench_options, bench);

  add_plan_run(*verb, chosen);
  add_plan_swap(*verb, chosen);
}

}  // namespace takt::app
