// takt compile: a model becomes a plan.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "compiler/compile.h"
#include "compiler/ir/statistics.h"
#include "pipeline/app/app.h"
#include "pipeline/app/devices.h"
#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/models/composition_file.h"
#include "pipeline/models/contract_file.h"
#include "pipeline/report/commands.h"
#include "runtime/base/file.h"
#include "runtime/base/suggest.h"
#include "runtime/base/yaml.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/plan.h"

namespace takt::app {
namespace {

struct Options {
  std::string model;
  std::string out;
  std::string stage;
  std::string target;
  std::vector<std::string> models;  // of a pipeline's stages
  std::string precision;
  std::vector<std::string> files;
  std::vector<std::string> fixes;
  std::vector<std::string> loops;
  std::vector<std::string> states;
  std::vector<std::uint16_t> parts = {1, 2};
  std::string dump_after;
  std::string statistics_after;
  bool unoptimised = false;
  bool json = false;
};

Result<kernels::Target> target_of(const std::string& name) {
  if (name.empty()) {
    const kernels::Target best = kernels::best_target();
    if (const char* reason = kernels::unsupported(best)) {
      return fail(Code::kEnvironment, std::string(reason) + "; name a machine: --target cpu:avx2");
    }
    return best;
  }
  std::vector<std::string> known;
  for (const auto target : kernels::kTargets) {
    if (name == kernels::name_of(target)) return target;
    known.emplace_back(kernels::name_of(target));
  }
  return fail(Code::kUsage, "unknown target '" + name + "'" + did_you_mean(name, known));
}

// A symbolic dimension or the shape of an input, with as many values as there are buckets, or one for all of them.
struct Fix {
  std::string name;
  bool whole = false;                   // the shape of an input; otherwise a dimension, of rank 1
  std::vector<std::string> words = {};  // as they were given
  std::vector<kernels::Shape> values = {};
};

// "height=256" or "height=256,384": a symbolic dimension; "input.1=1x3x352x352": the shape of an input.
Result<Fix> fix(const std::string& text) {
  const auto bad = [&] {
    return fail(Code::kUsage, "'" + text +
                                  "' fixes nothing: height=256 (a dimension), images=1x3x256x416 (an input), " +
                                  "batch=1,2,4 (a plan for each)");
  };
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return bad();
  Fix out{text.substr(0, equals), text.find('x', equals) != std::string::npos};
  for (std::size_t at = equals + 1; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    at = comma + 1;
    kernels::Shape shape;
    const char* from = word.data();
    const char* const end = from + word.size();
    while (from < end && shape.rank < kernels::kMaxRank) {
      const auto [next, error] = std::from_chars(from, end, shape.dims[shape.rank]);
      if (error != std::errc() || shape.dims[shape.rank] < 1 || (next != end && *next != 'x')) return bad();
      ++shape.rank;
      from = next == end ? end : next + 1;
    }
    if (shape.rank == 0 || from != end || word.back() == 'x') return bad();
    if (out.whole != (word.find('x') != std::string::npos)) return bad();
    if (std::find(out.words.begin(), out.words.end(), word) != out.words.end()) {
      return fail(Code::kUsage, "--fix " + text + " has " + word + " twice");
    }
    out.words.push_back(word);
    out.values.push_back(shape);
  }
  return out;
}

// Sizes for which a plan is compiled: options of each, and what its file is called behind the name of the others.
struct Bucket {
  compiler::Options options;
  std::string suffix;
};
Result<std::vector<Bucket>> buckets_of(const std::vector<std::string>& texts, const compiler::Options& common) {
  std::vector<Fix> fixes;
  std::size_t count = 1;
  for (const std::string& text : texts) {
    TAKT_ASSIGN(fixes.emplace_back(), fix(text));
    count = std::max(count, fixes.back().values.size());
  }
  std::vector<Bucket> out(count, {common, ""});
  for (const Fix& f : fixes) {
    if (f.values.size() != 1 && f.values.size() != count) {
      return fail(Code::kUsage, "--fix " + f.name + " has " + std::to_string(f.values.size()) +
                                    " values, another has " + std::to_string(count) +
                                    ": the first belong together, then the second, and so on");
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t own = f.values.size() == 1 ? 0 : i;
      compiler::Options& options = out[i].options;
      const bool fresh = f.whole ? options.input_shapes.emplace(f.name, f.values[own]).second
                                 : options.dims.emplace(f.name, f.values[own].dims[0]).second;
      if (!fresh) {
        const bool by_model = f.whole ? common.input_shapes.count(f.name) != 0 : common.dims.count(f.name) != 0;
        return fail(Code::kUsage,
                    "--fix " + f.name +
                        (by_model ? ": the model's contract fixes it already; leave it out" : " is given twice"));
      }
      if (f.values.size() == 1) continue;
      out[i].suffix += '.';
      for (const char c : f.name) out[i].suffix += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      out[i].suffix += f.words[own];
    }
  }
  return out;
}

// "decode/Loop=20": how often a loop of the model runs at most.
Status limit(const std::string& text, compiler::Options& options) {
  const std::size_t equals = text.rfind('=');
  std::int64_t most = 0;
  const char* const end = text.data() + text.size();
  const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
  const auto [next, error] = std::from_chars(begin, end, most);
  if (equals == std::string::npos || equals == 0 || error != std::errc() || next != end || most < 1) {
    return fail(Code::kUsage, "'" + text + "' limits nothing: NODE=NUMBER, the name of a Loop and its most trips");
  }
  if (!options.loops.emplace(text.substr(0, equals), most).second) {
    return fail(Code::kUsage, "--loop " + text.substr(0, equals) + " is given twice");
  }
  return {};
}

// "hidden=hidden_next": an input that is state, and the output that is its value in the next job.
Status state(const std::string& text, compiler::Options& options) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(Code::kUsage, "'" + text + "' names no state: INPUT=OUTPUT");
  }
  if (!options.states.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
    return fail(Code::kUsage, "--state " + text.substr(0, equals) + " is given twice");
  }
  return {};
}

void print(const plan::Plan& plan, const std::string& out) {
  const plan::Description& d = plan.description();
  std::printf("%s: %s for %s, %u operators in %zu steps, %.1f kB, arena %.1f kB (lower bound %.1f kB)\n", out.c_str(),
              d.name.c_str(), kernels::name_of(d.target), d.statistics.operators_before, d.steps.size(),
              static_cast<double>(plan.file_bytes()) * 1e-3, static_cast<double>(d.arena_bytes) * 1e-3,
              static_cast<double>(d.lower_bound) * 1e-3);
}

// The plan of a pipeline's stage ("fusion", "camera_detect/lite"), as a run of the pipeline has it.
Status run_stage(const Options& options) {
  const bool others = !options.files.empty() || !options.fixes.empty() || !options.loops.empty() ||
                      !options.states.empty() || !options.precision.empty() || !options.dump_after.empty() ||
                      !options.statistics_after.empty() || options.unoptimised;
  if (others) {
    return fail(Code::kUsage,
                "--stage writes the plan as the pipeline has it; only --target, --model, -o and --json go with it");
  }
  TAKT_ASSIGN(const pipeline::ModelFiles models, model_files(options.models));
  pipeline::DevicePlace place;
  if (!options.target.empty()) {
    TAKT_ASSIGN(place, stand_in_for(options.target));
    place.judged = false;
  }
  TAKT_ASSIGN(const pipeline::PipelineConfig config, pipeline::load_pipeline(options.model, models, place));
  std::vector<std::string> known;
  for (const pipeline::StageConfig& stage : config.stages) {
    for (const pipeline::VariantConfig& variant : stage.variants) {
      if (!variant.plan) continue;
      const std::string full = stage.name + "/" + variant.name;
      known.push_back(full);
      if (options.stage != full && options.stage != stage.name) continue;
      const std::string out = options.out.empty() ? stage.name + ".plan" : options.out;
      std::error_code error;
      if (std::filesystem::equivalent(out, options.model, error)) {
        return fail(Code::kUsage, "-o " + out + " is the pipeline itself");
      }
      const auto bytes = variant.plan->bytes();
      TAKT_RETURN_IF_ERROR(write_file_atomically(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
      if (options.json) {
        std::fputs(plan::to_json(*variant.plan).c_str(), stdout);
      } else {
        print(*variant.plan, out);
        std::printf("  look at it: %s plan show %s\n", pipeline::program().c_str(),
                    pipeline::shell_quoted(out).c_str());
      }
      return {};
    }
  }
  return fail(Code::kUsage, options.model + ": no stage with a plan is called '" + options.stage + "'" +
                                did_you_mean(options.stage, known));
}

// What is compiled, and what the files say of it.
struct Model {
  std::string onnx;
  std::optional<compiler::Composition> composition;
  std::vector<std::string> sources;  // none may be written over
};

// --loop and --state of a composition: PART/NODE and PART/INPUT.
Status give_to_parts(compiler::Composition& composition, const compiler::Options& given) {
  const auto part_of = [&](const std::string& name) -> Result<compiler::Composition::Part*> {
    std::vector<std::string> networks;
    const std::string wanted = name.substr(0, name.find('/'));
    for (auto& part : composition.parts) {
      if (!part.op.empty()) continue;
      if (part.name == wanted && wanted.size() < name.size()) return &part;
      networks.push_back(part.name);
    }
    return fail(Code::kUsage,
                "'" + name + "': in a composition it is PART/NAME, of a network" + did_you_mean(wanted, networks));
  };
  for (const auto& [name, most] : given.loops) {
    TAKT_ASSIGN(compiler::Composition::Part * part, part_of(name));
    if (!part->loops.emplace(name.substr(part->name.size() + 1), most).second) {
      return fail(Code::kUsage, "--loop " + name + ": the composition or its model says that already");
    }
  }
  for (const auto& [input, output] : given.states) {
    TAKT_ASSIGN(compiler::Composition::Part * part, part_of(input));
    const std::string prefix = part->name + "/";
    if (output.rfind(prefix, 0) != 0) {
      return fail(Code::kUsage,
                  "--state " + input + "=" + output + ": the output is one of the same part, " + prefix + "OUTPUT");
    }
    if (!part->states.emplace(input.substr(prefix.size()), output.substr(prefix.size())).second) {
      return fail(Code::kUsage, "--state " + input + ": the composition or its model says that already");
    }
  }
  return {};
}

Result<Model> read_composition(const Options& options, const compiler::Options& given) {
  namespace fs = std::filesystem;
  if (!options.fixes.empty()) {
    return fail(Code::kUsage, "--fix belongs to single models; in a composition what feeds an input fixes its shape");
  }
  Model out;
  std::map<std::string, std::string> files;
  for (const std::string& text : options.files) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || !files.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return fail(Code::kUsage, "--file " + text + ": PART=FILE.onnx, once for a part of the composition");
    }
    out.sources.push_back(text.substr(equals + 1));
  }
  TAKT_ASSIGN(out.composition, pipeline::load_composition(options.model, files));
  TAKT_RETURN_IF_ERROR(give_to_parts(*out.composition, given));
  for (const auto& part : out.composition->parts) {
    if (part.op.empty()) out.sources.push_back((fs::path(options.model).parent_path() / part.source).string());
  }
  return out;
}

// A pipeline read as a contract would be said to lack keys that it never had.
Status no_pipeline(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  const YamlNode root = document.root();
  if (!root.is_map() || !root.find("stages")) return {};
  return fail(Code::kUsage, path + ": this is a pipeline: name the stage whose plan to write with --stage");
}

// Completes `compile` by what the model's files say.
Result<Model> read_model(const Options& options, compiler::Options& compile) {
  namespace fs = std::filesystem;
  Model out;
  const std::string extension = fs::path(options.model).extension().string();
  if (extension != ".yaml" && extension != ".yml") {
    if (!options.files.empty()) return fail(Code::kUsage, "--file belongs to a model's contract (MODEL.yaml)");
    TAKT_ASSIGN(out.onnx, read_file(options.model));
    compile.name = fs::path(options.model).stem().string();
    compile.source = options.model;
    const fs::path folder = fs::path(options.model).parent_path();
    compile.folder = folder.empty() ? "." : folder.string();
  } else {
    TAKT_ASSIGN(const bool several, pipeline::is_composition(options.model));
    if (!several) TAKT_RETURN_IF_ERROR(no_pipeline(options.model));
    TAKT_ASSIGN(compile.contract, digest_file(options.model));
    if (several) {
      TAKT_ASSIGN(out, read_composition(options, compile));
      compile.name = out.composition->name;
    } else {
      if (options.files.size() > 1) return fail(Code::kUsage, "--file is given more than once; a model has one file");
      TAKT_ASSIGN(const pipeline::ModelContract contract,
                  pipeline::load_model(options.model, options.files.empty() ? "" : options.files[0]));
      TAKT_ASSIGN(out.onnx, pipeline::read_model_file(contract));
      compile.name = contract.name;
      compile.source = contract.file;
      compile.input_shapes.emplace(contract.input.tensor,
                                   kernels::Shape{4, {1, 3, contract.input.height, contract.input.width}});
      for (const auto& [node, most] : contract.loops) {
        if (compile.loops.emplace(node, most).second) continue;
        return fail(Code::kUsage, "--loop " + node + ": " + options.model + " says that already");
      }
      for (const auto& [input, output] : contract.states) {
        if (compile.states.emplace(input, output).second) continue;
        return fail(Code::kUsage, "--state " + input + ": " + options.model + " says that already");
      }
    }
  }
  out.sources.push_back(options.model);
  out.sources.push_back(compile.source);
  return out;
}

struct Compiled {
  std::string out;  // file
  std::vector<std::byte> bytes;
  ir::Statistics before, after;  // the passes
};

Result<Compiled> compile_bucket(const Options& options, const Model& model, compiler::Options compile) {
  Compiled out;
  std::vector<std::string> passes;
  std::set<std::string> dumped;
  compile.after_pass = [&](std::string_view pass, const ir::Graph& graph) {
    passes.emplace_back(pass);
    const ir::Statistics counted = ir::statistics(graph);
    if (passes.size() == 1) out.before = counted;
    out.after = counted;
    for (const std::string& asked : {options.dump_after, options.statistics_after}) {
      if (pass == asked) dumped.insert(asked);
    }
    if (pass == options.dump_after) std::fputs(ir::dump(graph).c_str(), stdout);
    if (pass == options.statistics_after) std::fputs(ir::to_json(counted).c_str(), stdout);
  };
  TAKT_ASSIGN(out.bytes,
              model.composition
                  ? compiler::compile_composition(*model.composition, compile)
                  : compiler::compile_onnx(std::as_bytes(std::span(model.onnx.data(), model.onnx.size())), compile));
  for (const std::string& asked : {options.dump_after, options.statistics_after}) {
    if (asked.empty() || dumped.count(asked) != 0) continue;
    if (options.unoptimised) return fail(Code::kUsage, "--unoptimised leaves the passes out; there is only 'import'");
    return fail(Code::kUsage, "no pass is called '" + asked + "'" + did_you_mean(asked, passes));
  }
  return out;
}

void describe(const Compiled& compiled, const plan::Plan& plan) {
  const ir::Statistics &before = compiled.before, &after = compiled.after;
  print(plan, compiled.out);
  std::printf("  passes: %llu to %llu operators, %.1f to %.1f MB of activations read and written (%.0f %% less)\n",
              static_cast<unsigned long long>(before.nodes), static_cast<unsigned long long>(after.nodes),
              static_cast<double>(before.activation_bytes) * 1e-6, static_cast<double>(after.activation_bytes) * 1e-6,
              before.activation_bytes == 0 ? 0.0
                                           : 100 - 100 * static_cast<double>(after.activation_bytes) /
                                                       static_cast<double>(before.activation_bytes));
  std::printf("  look at it: %s plan show %s\n", pipeline::program().c_str(),
              pipeline::shell_quoted(compiled.out).c_str());
}

Status run(const Options& options) {
  namespace fs = std::filesystem;
  if (!options.stage.empty()) return run_stage(options);
  if (!options.models.empty()) return fail(Code::kUsage, "--model is of a pipeline's stages: name one with --stage");
  if (options.json && !(options.dump_after.empty() && options.statistics_after.empty())) {
    return fail(Code::kUsage,
                "--json describes the plan on stdout, where --dump-after and --statistics-after print too; "
                "ask for one of them");
  }
  compiler::Options common;
  TAKT_ASSIGN(common.target, target_of(options.target));
  if (options.precision == "f16") {
    common.precision = kernels::DType::kF16;
  } else if (!options.precision.empty() && options.precision != "f32") {
    return fail(Code::kUsage, "--precision " + options.precision + ": f32 or f16");
  }
  common.parts = options.parts;
  common.optimise = !options.unoptimised;
  common.stop = &interrupted();
  common.note = [](const std::string& text) { std::fprintf(stderr, "takt: note: %s\n", text.c_str()); };
  for (const std::string& text : options.loops) TAKT_RETURN_IF_ERROR(limit(text, common));
  for (const std::string& text : options.states) TAKT_RETURN_IF_ERROR(state(text, common));
  TAKT_ASSIGN(Model model, read_model(options, common));
  common.reads = [&](const std::string& file) { model.sources.push_back(common.folder + "/" + file); };
  TAKT_ASSIGN(const std::vector<Bucket> buckets, buckets_of(options.fixes, common));

  // All of them before any is written.
  const fs::path named = options.out.empty() ? common.name + ".plan" : options.out;
  std::vector<Compiled> compiled;
  for (const Bucket& bucket : buckets) {
    auto one = compile_bucket(options, model, bucket.options);
    if (!one) {
      if (bucket.suffix.empty()) return fail(std::move(one).error());
      return fail(std::move(one).error().with_context("bucket " + bucket.suffix.substr(1)));
    }
    compiled.push_back(*std::move(one));
    compiled.back().out =
        (named.parent_path() / (named.stem().string() + bucket.suffix + named.extension().string())).string();
    for (const std::string& source : model.sources) {
      std::error_code error;
      if (fs::equivalent(compiled.back().out, source, error)) {
        return fail(Code::kUsage, "-o " + compiled.back().out + " is of the model itself");
      }
    }
  }
  std::vector<AtomicFile> files;
  for (const Compiled& one : compiled) {
    TAKT_ASSIGN(AtomicFile file, AtomicFile::create(one.out));
    TAKT_RETURN_IF_ERROR(file.write({reinterpret_cast<const char*>(one.bytes.data()), one.bytes.size()}));
    TAKT_RETURN_IF_ERROR(file.flush());
    files.push_back(std::move(file));
  }
  for (AtomicFile& file : files) TAKT_RETURN_IF_ERROR(file.commit());
  std::string json;
  for (const Compiled& one : compiled) {
    TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(one.out));
    if (options.json) {
      json += (json.empty() ? "" : ",") + plan::to_json(*plan);
    } else {
      describe(one, *plan);
    }
  }
  if (options.json) std::fputs((compiled.size() > 1 ? "[" + json + "]\n" : json).c_str(), stdout);
  return {};
}

}  // namespace

void add_compile(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("compile", "Compile a model (ONNX, its contract, or a composition) into a plan");
  verb->add_option("model", options->model,
                   "MODEL.onnx, its contract MODEL.yaml, a composition, or with --stage a pipeline")
      ->required();
  verb->add_option("-o,--out", options->out, "the plan to write (default: the model's name and .plan)");
  verb->add_option("--stage", options->stage,
                   "of a pipeline file in place of a model: the stage whose plan to write (STAGE or STAGE/VARIANT)");
  add_model_option(*verb, options->models);
  verb->add_option("--target", options->target,
                   "cpu:avx2, cpu:avx512, cpu:neon, cuda:sm_87 or cuda:sm_90 (default: this machine; docs/cuda.md)");
  verb->add_option("--precision", options->precision,
                   "f32 (default), or f16 on cuda targets: what images inside the network and its weights are held in; "
                   "sums, inputs and outputs stay f32");
  verb->add_option("--fix", options->fixes,
                   "fix a symbolic dimension (height=256) or the shape of an input (images=1x3x256x416); batch=1,2,4: "
                   "a plan for each, OUT.batch1.plan and so on");
  verb->add_option("--state", options->states,
                   "an input that is state, and the output that is its value in the next job (INPUT=OUTPUT); of a "
                   "composition: PART/INPUT=PART/OUTPUT");
  verb->add_option("--loop", options->loops,
                   "how often a Loop runs at most (NODE=NUMBER), where that is known only when it runs; of a "
                   "composition: PART/NODE=NUMBER");
  verb->add_option("--parts", options->parts, "numbers of workers that the plan admits (default: 1,2)")->delimiter(',');
  verb->add_option("--file", options->files,
                   "the ONNX file, in place of the one that the contract names; of a composition: PART=FILE");
  verb->add_flag("--unoptimised", options->unoptimised,
                 "leave the passes out: the other side of `takt plan diff` when a pass is suspected");
  verb->add_option("--dump-after", options->dump_after, "print the graph after this pass (import, ...)");
  verb->add_option("--statistics-after", options->statistics_after,
                   "print operators, work and bytes of the graph after this pass, as JSON");
  verb->add_flag("--json", options->json, "describe the plan as JSON on stdout");
  verb->callback([options, &chosen] {
    chosen = [options] {
      const Status status = run(*options);
      return status ? 0 : report_error(status.error());
    };
  });
}

}  // namespace takt::app
