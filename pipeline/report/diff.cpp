#include "pipeline/report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "pipeline/report/record_index.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

std::string described(const HashedInput* input) {
  return input == nullptr ? "absent" : input->path + " (" + input->digest.hex() + ")";
}

const HashedInput* input_of(const RunData& run, const std::string& role) {
  for (const HashedInput& input : run.inputs) {
    if (input.role == role) return &input;
  }
  return nullptr;
}

std::vector<InputDifference> input_differences(const RunData& a, const RunData& b) {
  std::vector<InputDifference> out;
  std::vector<std::string> roles;
  for (const RunData* run : {&a, &b}) {
    for (const HashedInput& input : run->inputs) {
      if (std::find(roles.begin(), roles.end(), input.role) == roles.end()) roles.push_back(input.role);
    }
  }
  for (const std::string& role : roles) {
    const HashedInput *in_a = input_of(a, role), *in_b = input_of(b, role);
    if (in_a != nullptr && in_b != nullptr && in_a->digest == in_b->digest) continue;
    out.push_back({role, described(in_a), described(in_b)});
  }
  if (a.schedule.hash() != b.schedule.hash()) {
    out.push_back({"schedule", a.schedule.hash().hex(), b.schedule.hash().hex()});
  }
  if (a.mode != b.mode) out.push_back({"mode", a.mode, b.mode});
  if (a.environment.isa_class != b.environment.isa_class) {
    out.push_back({"digest class", a.environment.isa_class, b.environment.isa_class});
  }
  return out;
}

std::string mode_of(const RunData& run, const sched::JobRecord& record) {
  return record.mode < run.modes.size() ? run.modes[record.mode].name : "none";
}

std::string variant_of(const RunData& run, const sched::JobRecord& record) {
  const std::vector<sched::Variant>& variants = run.problem.stages[record.stage].variants;
  return record.variant < variants.size() ? variants[record.variant].name : "unknown";
}

// Another mode or variant, "; " behind each: what comes behind them may come of them.
std::string other_code(const RunData& run_a, const sched::JobRecord& a, const RunData& run_b,
                       const sched::JobRecord& b) {
  std::string out;
  const auto beside = [&out](const char* what, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b) out += fmt::format("{} {} in A and {} in B; ", what, in_a, in_b);
  };
  beside("mode", mode_of(run_a, a), mode_of(run_b, b));
  beside("variant", variant_of(run_a, a), variant_of(run_b, b));
  return out;
}

// Why the outputs of one job differ, seen from the records.
std::string what_differs(const sched::JobRecord& a, const sched::JobRecord& b) {
  if (a.published != b.published) return a.published != 0 ? "published only in A" : "published only in B";
  const std::size_t inputs = std::min<std::size_t>({a.input_count, b.input_count, sched::kMaxInputs});
  if (a.input_count == b.input_count) {
    for (std::size_t i = 0; i < inputs; ++i) {
      const sched::InputRecord &in_a = a.inputs[i], &in_b = b.inputs[i];
      if (std::tie(in_a.job, in_a.kind, in_a.capture_ns) != std::tie(in_b.job, in_b.kind, in_b.capture_ns)) {
        return fmt::format("input {} came from {} in A and {} in B", i,
                           in_a.kind == 3 ? "nothing" : std::to_string(in_a.job),
                           in_b.kind == 3 ? "nothing" : std::to_string(in_b.job));
      }
    }
  }
  return "equal inputs, other bytes";
}

}  // namespace

DiffResult diff_runs(const RunData& a, const RunData& b) {
  DiffResult out;
  out.inputs = input_differences(a, b);
  const RecordIndex index_a(a), index_b(b);
  std::map<std::string, std::uint32_t> stages_b;
  for (std::uint32_t s = 0; s < b.problem.stages.size(); ++s) stages_b.emplace(b.problem.stages[s].name, s);

  const auto note = [&](const RunData& run, std::uint32_t stage, const sched::JobRecord& record, std::string what) {
    ++out.differing;
    const std::string& name = run.problem.stages[stage].name;
    if (out.first && std::tie(out.first->nominal_start_ns, out.first->stage) <= std::tie(record.nominal_start, name))
      return;
    out.first = FirstDifference{name, stage < run.stages.size() ? run.stages[stage].topic : "", record.job,
                                record.nominal_start, std::move(what)};
  };
  for (std::uint32_t s = 0; s < a.problem.stages.size(); ++s) {
    const auto match = stages_b.find(a.problem.stages[s].name);
    for (const sched::JobRecord* in_a : index_a.stage(s)) {
      const sched::JobRecord* in_b = match == stages_b.end() ? nullptr : index_b.find(match->second, in_a->job);
      if (in_b == nullptr) {
        if (in_a->published != 0) note(a, s, *in_a, "published only in A");
        continue;
      }
      if (in_a->published == 0 && in_b->published == 0) continue;
      out.compared += in_a->published != 0 && in_b->published != 0 ? 1 : 0;
      if (in_a->published == in_b->published && in_a->output == in_b->output) continue;
      note(a, s, *in_a, other_code(a, *in_a, b, *in_b) + what_differs(*in_a, *in_b));
    }
    if (match == stages_b.end()) continue;
    for (const sched::JobRecord* in_b : index_b.stage(match->second)) {
      if (in_b->published != 0 && index_a.find(s, in_b->job) == nullptr)
        note(b, match->second, *in_b, "published only in B");
    }
    stages_b.erase(match);
  }
  for (const auto& [name, s] : stages_b) {
    for (const sched::JobRecord* in_b : index_b.stage(s)) {
      if (in_b->published != 0) note(b, s, *in_b, "published only in B");
    }
  }
  out.outputs_equal = out.differing == 0;
  return out;
}

std::string DiffResult::text() const {
  std::string out;
  if (inputs.empty()) {
    out += "inputs   equal\n";
  } else {
    for (const InputDifference& input : inputs) {
      out += fmt::format("input    {} differs\n  A: {}\n  B: {}\n", input.role, input.a, input.b);
    }
  }
  if (outputs_equal) return out + fmt::format("outputs  equal: {}\n", plural(compared, "output", "outputs"));
  out +=
      fmt::format("outputs  DIFFER: {} of {} in both runs\n", plural(differing, "job", "jobs"), count_text(compared));
  if (first) {
    out += fmt::format("first    {} job {} at {} ({}): {}\n", first->stage, first->job,
                       fixed_text(static_cast<double>(first->nominal_start_ns) * 1e-9, 4) + " s", first->topic,
                       first->what);
  }
  return out;
}

std::string DiffResult::json() const {
  nlohmann::ordered_json out;
  out["outputs_equal"] = outputs_equal;
  out["compared"] = compared;
  out["differing"] = differing;
  out["first"] = nullptr;
  if (first) {
    out["first"] = {{"stage", first->stage},
                    {"topic", first->topic},
                    {"job", first->job},
                    {"nominal_start_ns", first->nominal_start_ns},
                    {"what", first->what}};
  }
  out["inputs"] = nlohmann::ordered_json::array();
  for (const InputDifference& input : inputs) {
    out["inputs"].push_back({{"role", input.role}, {"a", input.a}, {"b", input.b}});
  }
  return out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace takt::pipeline
