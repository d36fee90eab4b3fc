// takt plan: look at a compiled plan, time its steps, run it, and find where two differ.

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/base/suggest.h"
#include "runtime/base/time.h"
#include "runtime/exec/session.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/explain.h"

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
};

Status show(const ShowOptions& options) {
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(options.plan));
  std::fputs((options.json ? plan::to_json(*plan) : plan::explain(*plan, terminal_width())).c_str(), stdout);
  return {};
}

struct BenchOptions {
  std::string plan;
  int threads = 1;
  int runs = 200;
  bool json = false;
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

  if (options.json) {
    nlohmann::ordered_json out{{"plan", d.name},
                               {"target", kernels::name_of(d.target)},
                               {"threads", options.threads},
                               {"runs", options.runs},
                               {"first_us", first},
                               {"minimum_us", times.front()},
                               {"median_us", median},
                               {"maximum_us", times.back()}};
    out["steps"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
      const exec::StepProfile p = session->profile(i);
      out["steps"].push_back({{"kernel", plan->kernel(i).name},
                              {"minimum_us", static_cast<double>(p.minimum_ns) * 1e-3},
                              {"maximum_us", static_cast<double>(p.maximum_ns) * 1e-3},
                              {"flops", d.steps[i].flops},
                              {"bytes_moved", d.steps[i].bytes_moved}});
    }
    std::printf("%s\n", out.dump(2).c_str());
    return {};
  }
  std::printf("     #  kernel                       min us     max us   share  GFLOP/s     GB/s  node\n");
  double sum = 0;
  for (std::size_t i = 0; i < d.steps.size(); ++i) sum += static_cast<double>(session->profile(i).minimum_ns);
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    const exec::StepProfile p = session->profile(i);
    const auto ns = static_cast<double>(std::max<std::int64_t>(p.minimum_ns, 1));
    std::printf("  %4zu  %-24s %10.1f %10.1f  %5.1f%% %8.1f %8.1f  %s\n", i, plan->kernel(i).name, ns * 1e-3,
                static_cast<double>(p.maximum_ns) * 1e-3, 100 * ns / sum, static_cast<double>(d.steps[i].flops) / ns,
                static_cast<double>(d.steps[i].bytes_moved) / ns,
                d.steps[i].nodes.empty() ? "" : d.steps[i].nodes.front().c_str());
  }
  std::printf("%s, %s, %d thread%s, %d runs: first %.1f us, min %.1f us, median %.1f us, max %.1f us\n", d.name.c_str(),
              kernels::name_of(d.target), options.threads, options.threads == 1 ? "" : "s", options.runs, first,
              times.front(), median, times.back());
  return {};
}

struct RunOptions {
  std::string plan;
  std::vector<std::string> inputs;
  std::string out;
  std::string dump;
};

Result<kernels::DType> dtype_of(const std::string& npy) {
  using kernels::DType;
  static const std::pair<const char*, DType> kTypes[] = {
      {"<f4", DType::kF32}, {"<f2", DType::kF16}, {"<i8", DType::kI64}, {"<i4", DType::kI32},
      {"|i1", DType::kI8},  {"|u1", DType::kU8},  {"|b1", DType::kBool}};
  for (const auto& [name, type] : kTypes) {
    if (npy == name) return type;
  }
  return fail(Code::kInput, "element type " + npy + " is none of takt's; convert the array, for example to float32");
}

NpyArray array_of(const exec::TracedTensor& t) {
  static const char* const kNames[] = {"", "<f4", "<f2", "<i8", "<i4", "|i1", "|u1", "|b1"};
  return {kNames[static_cast<int>(t.dtype)], {t.shape.dims, t.shape.dims + t.shape.rank}, t.bytes};
}

// A tensor's name as a file's: letters, digits, dot, dash; everything else an underscore.
std::string file_name(const std::string& tensor) {
  std::string out;
  for (const char c : tensor) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    out += plain ? c : '_';
  }
  return out.substr(0, 200) + ".npy";
}

std::string extents(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t extent : shape) out += (out.size() > 1 ? "," : "") + std::to_string(extent);
  return out + "]";
}

// FILE or NAME=FILE, by slot; made-up numbers where nothing is given.
Result<std::vector<std::vector<std::byte>>> inputs_of(const plan::Plan& plan, const std::vector<std::string>& given) {
  const plan::Description& d = plan.description();
  std::vector<std::vector<std::byte>> out(d.inputs.size());
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    const auto slot = name.empty() ? std::optional<std::size_t>(0) : plan.find_input(name);
    if (!slot || d.inputs.empty() || (name.empty() && d.inputs.size() != 1)) {
      std::vector<std::string> names;
      for (const std::uint32_t input : d.inputs) names.push_back(d.tensors[input].name);
      return fail(Code::kUsage, "'" + text + "' names no input (NAME=FILE.npy)" + did_you_mean(name, names));
    }
    const plan::Tensor& tensor = d.tensors[d.inputs[*slot]];
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    TAKT_ASSIGN(const NpyArray array, read_npy(path));
    TAKT_ASSIGN(const kernels::DType type,
                dtype_of(array.type).map_error([&](Error error) { return std::move(error).with_context(path); }));
    const std::vector<std::int64_t> shape(tensor.shape.dims, tensor.shape.dims + tensor.shape.rank);
    if (type != tensor.dtype || array.shape != shape) {
      return fail(Code::kInput, path + ": input '" + tensor.name + "' is " + kernels::name_of(tensor.dtype) +
                                    extents(shape) + ", the file has " + kernels::name_of(type) + extents(array.shape));
    }
    out[*slot] = array.bytes;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].empty()) out[i] = exec::made_up_input(d.tensors[d.inputs[i]]);
  }
  return out;
}

Status write_all(const std::string& folder, const std::vector<exec::TracedTensor>& tensors) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Code::kEnvironment, folder + ": cannot be created: " + error.message());
  for (const exec::TracedTensor& t : tensors) {
    TAKT_RETURN_IF_ERROR(write_file_atomically(folder + "/" + file_name(t.name), npy_bytes(array_of(t))));
  }
  return {};
}

Status run_once(const RunOptions& options) {
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(options.plan));
  TAKT_ASSIGN(const auto inputs, inputs_of(*plan, options.inputs));
  TAKT_ASSIGN(const std::vector<exec::TracedTensor> traced, exec::trace(plan, inputs));
  if (!options.dump.empty()) TAKT_RETURN_IF_ERROR(write_all(options.dump, traced));
  std::vector<exec::TracedTensor> outputs;
  for (const std::uint32_t output : plan->description().outputs) {
    const plan::Tensor& tensor = plan->description().tensors[output];
    const auto found = std::find_if(traced.rbegin(), traced.rend(),
                                    [&](const exec::TracedTensor& t) { return t.name == tensor.name; });
    if (found == traced.rend()) continue;
    outputs.push_back(*found);
    double low = 0, high = 0, sum = 0;
    const auto* values = reinterpret_cast<const float*>(found->bytes.data());
    for (std::size_t i = 0; found->dtype == kernels::DType::kF32 && i < found->bytes.size() / 4; ++i) {
      const auto v = static_cast<double>(values[i]);
      low = i == 0 ? v : std::min(low, v);
      high = i == 0 ? v : std::max(high, v);
      sum += v;
    }
    std::printf("%s: %zu bytes of %s, %.6g to %.6g, sum %.9g\n", tensor.name.c_str(), found->bytes.size(),
                kernels::name_of(found->dtype), low, high, sum);
  }
  return options.out.empty() ? Status() : write_all(options.out, outputs);
}

struct DiffOptions {
  std::string a, b;
  std::vector<std::string> inputs;
  double tolerance = 1e-4;
};

// A folder holds one .npy file per tensor, named as `takt plan run --dump-tensors` names them.
Result<std::vector<exec::TracedTensor>> traced_of(const std::string& path, const std::vector<std::string>& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(path));
    TAKT_ASSIGN(const auto inputs, inputs_of(*plan, given));
    TAKT_ASSIGN(std::vector<exec::TracedTensor> traced, exec::trace(plan, inputs));
    for (exec::TracedTensor& t : traced) t.name = file_name(t.name);
    return traced;
  }
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return fail(Code::kInput, path + ": holds no .npy file");
  std::vector<exec::TracedTensor> out;
  for (const std::string& file : files) {
    TAKT_ASSIGN(NpyArray array, read_npy(file));
    TAKT_ASSIGN(const kernels::DType type, dtype_of(array.type));
    kernels::Shape shape;
    for (const std::int64_t extent : array.shape) shape.dims[shape.rank++] = extent;
    out.push_back({fs::path(file).filename().string(), out.size(), type, shape, std::move(array.bytes)});
  }
  return out;
}

Status diff(const DiffOptions& options) {
  TAKT_ASSIGN(const auto a, traced_of(options.a, options.inputs));
  TAKT_ASSIGN(const auto b, traced_of(options.b, options.inputs));
  const exec::Divergence d = exec::compare(a, b, options.tolerance);
  std::printf("%zu tensors compared, %zu of the first without a partner\n", d.compared, d.unmatched);
  if (d.compared == 0) {
    return fail(Code::kInput, "no tensor has the same name and size in both; were they made from one model?");
  }
  std::printf("largest difference %.3g of the tensor's range%s%s\n", d.worst_difference, d.worst.empty() ? "" : ", in ",
              d.worst.c_str());
  if (d.first.empty()) return {};
  char text[512];
  std::snprintf(text, sizeof text, "the first tensor beyond %.3g of its range is %s (step %zu): %.3g",
                options.tolerance, d.first.c_str(), d.first_step, d.first_difference);
  return fail(Code::kGate, text);
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
  show_verb->add_flag("--json", show_options->json, "machine-readable description on stdout");
  run(show_verb, show_options, show);

  auto bench_options = std::make_shared<BenchOptions>();
  CLI::App* bench_verb = verb->add_subcommand("bench", "Time it on this machine, step by step, on made-up input");
  bench_verb->add_option("plan", bench_options->plan, "a plan written by `takt compile`")->required();
  bench_verb->add_option("--threads", bench_options->threads, "workers, as many as the plan admits (default: 1)")
      ->check(count_in(1, 1024));
  bench_verb->add_option("--runs", bench_options->runs, "runs after the first (default: 200)")
      ->check(count_in(1, 10'000'000));
  bench_verb->add_flag("--json", bench_options->json, "machine-readable figures on stdout");
  run(bench_verb, bench_options, bench);

  auto run_options = std::make_shared<RunOptions>();
  CLI::App* run_verb = verb->add_subcommand("run", "Run it once and keep what it computes as .npy files");
  run_verb->add_option("plan", run_options->plan, "a plan written by `takt compile`")->required();
  run_verb->add_option("--input", run_options->inputs, "FILE.npy or NAME=FILE.npy (default: made-up numbers)");
  run_verb->add_option("-o,--out", run_options->out, "folder for the outputs");
  run_verb->add_option("--dump-tensors", run_options->dump, "folder for the result of every step");
  run(run_verb, run_options, run_once);

  auto diff_options = std::make_shared<DiffOptions>();
  CLI::App* diff_verb = verb->add_subcommand(
      "diff", "Find the first tensor that differs: two plans, or a plan and a folder of .npy files");
  diff_verb->add_option("a", diff_options->a, "a plan, or a folder written by --dump-tensors")->required();
  diff_verb->add_option("b", diff_options->b, "the other one")->required();
  diff_verb->add_option("--input", diff_options->inputs, "FILE.npy or NAME=FILE.npy (default: made-up numbers)");
  diff_verb->add_option("--tolerance", diff_options->tolerance, "of a tensor's range (default: 1e-4)")
      ->check(number_in(0, 1));
  run(diff_verb, diff_options, diff);
}

}  // namespace takt::app
