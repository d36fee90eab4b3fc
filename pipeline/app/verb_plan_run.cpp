// takt plan run and diff: what a plan computes, and the first tensor that another plan or another runtime has otherwise
// (docs/wrong_layer.md).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "kernels/reference/narrow_float.h"
#include "pipeline/app/app.h"
#include "pipeline/app/numbers.h"
#include "pipeline/app/verb_plan.h"
#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/base/suggest.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/session.h"
#include "runtime/exec/trace.h"

namespace takt::app {
namespace {

struct RunOptions {
  std::string plan;
  std::vector<std::string> inputs;
  std::string out;
  std::string dump;
  bool watch = false;
};

// The type of takt's name for it; every name of npy_types() is one.
kernels::DType dtype_named(std::string_view name) {
  for (int i = 1; i < kernels::kDTypes; ++i) {
    if (name == kernels::name_of(static_cast<kernels::DType>(i))) return static_cast<kernels::DType>(i);
  }
  return kernels::DType::kBF16;
}

kernels::DType dtype_of(const NpyArray& array) {
  for (const NpyType& type : npy_types()) {
    if (array.type == type.npy) return dtype_named(type.takt);
  }
  return kernels::DType::kF32;  // not from read_npy(), which knows only those
}

// Of any type but bf16, which widen() has made f32.
NpyArray array_of(const exec::TracedTensor& t) {
  NpyArray out{"", {t.shape.dims, t.shape.dims + t.shape.rank}, t.bytes};
  for (const NpyType& type : npy_types()) {
    if (type.takt == kernels::name_of(t.dtype)) out.type = type.npy;
  }
  return out;
}

// Elements of one type as those of another, by `convert`.
template <class To, class From, class Convert>
std::vector<std::byte> converted(const std::vector<std::byte>& bytes, Convert convert) {
  std::vector<std::byte> out(bytes.size() / sizeof(From) * sizeof(To));
  for (std::size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From from{};
    std::memcpy(&from, bytes.data() + i * sizeof from, sizeof from);
    const To to = convert(from);
    std::memcpy(out.data() + i * sizeof to, &to, sizeof to);
  }
  return out;
}

// bf16 is the upper half of an f32.
void widen(std::vector<exec::TracedTensor>& tensors) {
  for (exec::TracedTensor& t : tensors) {
    if (t.dtype != kernels::DType::kBF16) continue;
    t.bytes = converted<std::uint32_t, std::uint16_t>(
        t.bytes, [](std::uint16_t upper) { return static_cast<std::uint32_t>(upper) << 16; });
    t.dtype = kernels::DType::kF32;
  }
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

// Of all tensors; a second one of the same name becomes NAME~2.npy.
std::vector<std::string> file_names(const std::vector<exec::TracedTensor>& tensors) {
  std::map<std::string, int> seen;
  std::vector<std::string> out;
  for (const exec::TracedTensor& t : tensors) {
    std::string name = file_name(t.name);
    const int count = ++seen[name];
    if (count > 1) name.insert(name.size() - 4, "~" + std::to_string(count));
    out.push_back(std::move(name));
  }
  return out;
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
      return fail(Code::kUsage, "'" + text + "' names no input (NAME=FILE.npy)" + did_you_mean(name, names) +
                                    "\n  -> an input with a value in the model's file became a constant");
    }
    const plan::Tensor& tensor = d.tensors[d.inputs[*slot]];
    if (!out[*slot].empty()) return fail(Code::kUsage, "--input " + tensor.name + " is given twice");
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    if (path.empty()) return fail(Code::kUsage, "--input " + text + " names no file (NAME=FILE.npy)");
    TAKT_ASSIGN(NpyArray array, read_npy(path));
    kernels::DType type = dtype_of(array);
    if (tensor.dtype == kernels::DType::kBF16 && type == kernels::DType::kF32) {
      array.bytes = converted<std::uint16_t, float>(
          array.bytes, [](float value) { return kernels::to_narrow(static_cast<double>(value), kernels::kBfloat); });
      type = tensor.dtype;
    }
    const std::vector<std::int64_t> shape(tensor.shape.dims, tensor.shape.dims + tensor.shape.rank);
    if (type != tensor.dtype || array.shape != shape) {
      return fail(Code::kInput, path + ": input '" + tensor.name + "' is " + kernels::name_of(tensor.dtype) +
                                    extents(shape) + ", the file has " + kernels::name_of(type) + extents(array.shape));
    }
    out[*slot] = std::move(array.bytes);
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
  const std::vector<std::string> names = file_names(tensors);
  for (std::size_t i = 0; i < names.size(); ++i) {
    TAKT_RETURN_IF_ERROR(write_file_atomically(folder + "/" + names[i], npy_bytes(array_of(tensors[i]))));
  }
  return {};
}

Status watch(const std::shared_ptr<const plan::Plan>& plan, const std::vector<std::vector<std::byte>>& inputs) {
  TAKT_ASSIGN(const std::unique_ptr<exec::Session> session, exec::Session::create(plan));
  TAKT_ASSIGN(const exec::Buffers buffers, exec::Buffers::create(*session));
  for (std::size_t i = 0; i < inputs.size(); ++i) std::ranges::copy(inputs[i], buffers.input(i).begin());
  TAKT_RETURN_IF_ERROR(session->watch(true));
  session->run();
  if (const auto found = session->first_non_finite()) return fail(Code::kGate, exec::to_string(*found, *plan));
  std::printf("every value of every step is finite\n");
  return {};
}

Status run_once(const RunOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!options.out.empty() && !options.dump.empty() &&
      fs::weakly_canonical(fs::path(options.out) / "", error) ==
          fs::weakly_canonical(fs::path(options.dump) / "", error)) {
    return fail(Code::kUsage,
                "-o and --dump-tensors name one folder, " + options.out + "; the dump holds the outputs too");
  }
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(options.plan));
  TAKT_ASSIGN(const auto inputs, inputs_of(*plan, options.inputs));
  if (options.watch) TAKT_RETURN_IF_ERROR(watch(plan, inputs));
  TAKT_ASSIGN(std::vector<exec::TracedTensor> traced, exec::trace(plan, inputs));
  widen(traced);
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
    std::printf("%s: %zu bytes of %s", tensor.name.c_str(), found->bytes.size(), kernels::name_of(found->dtype));
    if (found->dtype == kernels::DType::kF32) std::printf(", %.6g to %.6g, sum %.9g", low, high, sum);
    std::printf("\n");
  }
  return options.out.empty() ? Status() : write_all(options.out, outputs);
}

struct DiffOptions {
  std::string a, b;
  std::vector<std::string> inputs;
  double tolerance = 1e-4;
};

// The tensors of one side, under the names of their files.
struct Side {
  bool folder = false;
  std::vector<exec::TracedTensor> tensors;  // in the order of the plan's steps, of a folder by name
};

Result<exec::TracedTensor> tensor_of(const std::string& path) {
  TAKT_ASSIGN(NpyArray array, read_npy(path));
  exec::TracedTensor out;
  out.name = std::filesystem::path(path).filename().string();
  out.dtype = dtype_of(array);
  for (const std::int64_t extent : array.shape) out.shape.dims[out.shape.rank++] = extent;  // at most 8
  out.bytes = std::move(array.bytes);
  return out;
}

// Another runtime may have calculated in double what takt has in f32.
void narrow_like(std::vector<exec::TracedTensor>& tensors, const std::vector<exec::TracedTensor>& others) {
  std::map<std::string, kernels::DType> types;
  for (const exec::TracedTensor& t : others) types[t.name] = t.dtype;
  for (exec::TracedTensor& t : tensors) {
    const auto other = types.find(t.name);
    if (t.dtype != kernels::DType::kF64 || other == types.end() || other->second != kernels::DType::kF32) continue;
    t.bytes = converted<float, double>(t.bytes, [](double wide) { return static_cast<float>(wide); });
    t.dtype = kernels::DType::kF32;
  }
}

Result<Side> side_of(const std::string& path, const std::vector<std::string>& given) {
  namespace fs = std::filesystem;
  Side side;
  std::error_code error;
  side.folder = fs::is_directory(path, error);
  if (!side.folder) {
    TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(path));
    TAKT_ASSIGN(const auto inputs, inputs_of(*plan, given));
    TAKT_ASSIGN(side.tensors, exec::trace(plan, inputs));
    widen(side.tensors);
    const std::vector<std::string> names = file_names(side.tensors);
    for (std::size_t i = 0; i < names.size(); ++i) side.tensors[i].name = names[i];
    return side;
  }
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return fail(Code::kInput, path + ": holds no .npy file");
  for (const std::string& file : files) {
    TAKT_ASSIGN(side.tensors.emplace_back(), tensor_of(file));
  }
  return side;
}

// A folder has no order of its own: it takes that of the plan.
void order_like(std::vector<exec::TracedTensor>& tensors, const std::vector<exec::TracedTensor>& plan) {
  std::map<std::string, std::size_t> place, step;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    place.emplace(plan[i].name, i);
    step.emplace(plan[i].name, plan[i].step);
  }
  const auto at = [&](const exec::TracedTensor& t) {
    const auto found = place.find(t.name);
    return found == place.end() ? plan.size() : found->second;
  };
  std::stable_sort(tensors.begin(), tensors.end(), [&](const auto& a, const auto& b) { return at(a) < at(b); });
  for (exec::TracedTensor& t : tensors) {
    if (step.count(t.name) != 0) t.step = step[t.name];
  }
}

Status diff(const DiffOptions& options) {
  TAKT_ASSIGN(Side a, side_of(options.a, options.inputs));
  TAKT_ASSIGN(Side b, side_of(options.b, options.inputs));
  if (a.folder && b.folder && !options.inputs.empty()) {
    return fail(Code::kUsage, "--input feeds a plan, and both sides are folders of tensors: leave it out");
  }
  narrow_like(a.tensors, b.tensors);
  narrow_like(b.tensors, a.tensors);
  if (a.folder && !b.folder) order_like(a.tensors, b.tensors);
  const exec::Divergence d = exec::compare(a.tensors, b.tensors, options.tolerance);
  std::printf("%zu tensors compared, %zu of the first without a partner\n", d.compared, d.unmatched);
  if (d.compared == 0) {
    return fail(Code::kInput, "no tensor has the same name and size in both; were they made from one model?");
  }
  std::printf("largest difference %.3g of the tensor's range%s%s\n", d.worst.difference,
              d.worst.name.empty() ? "" : ", in ", d.worst.name.c_str());
  if (d.first.name.empty()) return {};
  const bool steps = !a.folder || !b.folder;
  char text[640];
  std::snprintf(
      text, sizeof text, "the first tensor beyond %.3g of its range is %s%s: %.3g, at element %s: %.9g and %.9g",
      options.tolerance, d.first.name.c_str(), steps ? (" (step " + std::to_string(d.first.step) + ")").c_str() : "",
      d.first.difference, extents(d.first.index).c_str(), d.first.a, d.first.b);
  return fail(Code::kGate, text);
}

}  // namespace

void add_plan_run(CLI::App& plan, Command& chosen) {
  const auto run = [&chosen](CLI::App* sub, auto options, auto action) {
    sub->callback([options, action, &chosen] {
      chosen = [options, action] {
        const Status status = action(*options);
        return status ? 0 : report_error(status.error());
      };
    });
  };
  auto run_options = std::make_shared<RunOptions>();
  CLI::App* run_verb = plan.add_subcommand("run", "Run it once and keep what it computes as .npy files");
  run_verb->add_option("plan", run_options->plan, "a plan written by `takt compile`")->required();
  run_verb->add_option("--input", run_options->inputs, "FILE.npy or NAME=FILE.npy (default: made-up numbers)");
  run_verb->add_option("-o,--out", run_options->out, "folder for the outputs");
  run_verb->add_option("--dump-tensors", run_options->dump, "folder for the result of every step");
  run_verb->add_flag("--watch-nan", run_options->watch, "stop at the first NaN or infinity: which tensor, step, index");
  run(run_verb, run_options, run_once);

  auto diff_options = std::make_shared<DiffOptions>();
  CLI::App* diff_verb = plan.add_subcommand(
      "diff", "Find the first tensor that differs: between two plans, or a plan and what another runtime has computed");
  diff_verb->add_option("a", diff_options->a, "a plan, or a folder with one .npy file per tensor")->required();
  diff_verb->add_option("b", diff_options->b, "the other one")->required();
  diff_verb->add_option("--input", diff_options->inputs, "FILE.npy or NAME=FILE.npy (default: made-up numbers)");
  diff_verb->add_option("--tolerance", diff_options->tolerance, "of a tensor's range (default: 1e-4)")
      ->check(number_in(0, 1));
  run(diff_verb, diff_options, diff);
}

}  // namespace takt::app
