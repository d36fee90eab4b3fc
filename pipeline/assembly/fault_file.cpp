// Reading of fault files, apart from the rest: a board, whose runs nobody makes fail, links no YAML.
#include "pipeline/assembly/fault_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "runtime/base/file.h"
#include "runtime/base/suggest.h"
#include "runtime/base/yaml.h"

namespace takt::pipeline {
namespace {

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& list) {
  std::vector<std::string> out;
  out.reserve(list.size());
  for (const Named& one : list) out.push_back(one.name);
  return out;
}

// Index of a name in a list whose order is that of the run.
std::uint32_t index_of(const YamlNode& node, const std::vector<std::string>& names) {
  const std::string word = node.one_of(names);
  const auto at = std::find(names.begin(), names.end(), word);
  return at == names.end() ? 0 : static_cast<std::uint32_t>(at - names.begin());
}

template <class Kind, std::size_t n>
Kind kind_of(const YamlNode& node, const std::array<const char*, n>& names) {
  return static_cast<Kind>(index_of(node, {names.begin(), names.end()}));
}

Duration seconds_of(const YamlNode& node) { return {static_cast<std::int64_t>(node.number(0, 1e6) * 1e9)}; }

StageFault stage_fault(const YamlNode& node, const std::vector<std::string>& stages) {
  StageFault out;
  out.where = node.where();
  out.stage = index_of(node.at("stage"), stages);
  out.job = static_cast<std::uint64_t>(node.at("job").integer(0, 1'000'000'000));
  if (const auto count = node.find("count")) out.count = static_cast<std::uint64_t>(count->integer(1, 1'000'000));
  int given = 0;
  if (const auto budgets = node.find("budgets")) {
    out.budgets = budgets->number(0.1, 100);
    ++given;
  }
  if (const auto stall = node.find("stall_ms")) {
    out.stall = stall->milliseconds(0.001, 60'000);
    ++given;
  }
  if (const auto endless = node.find("endless")) {
    out.endless = endless->boolean();
    given += out.endless ? 1 : 0;
  }
  if (const auto hang = node.find("hang")) {
    out.hang = hang->boolean();
    given += out.hang ? 1 : 0;
  }
  if (given != 1) node.error("expected one of 'budgets', 'stall_ms', 'endless: true' and 'hang: true'");
  return out;
}

SensorFault sensor_fault(const YamlNode& node, const std::vector<std::string>& sensors) {
  SensorFault out;
  out.where = node.where();
  out.sensor = index_of(node.at("sensor"), sensors);
  out.kind = kind_of<SensorFault::Kind>(node.at("kind"), kSensorKinds);
  out.from = seconds_of(node.at("from_s"));
  out.length = seconds_of(node.at("for_s"));
  if (out.length.ns == 0) node.at("for_s").error("a fault of no length never strikes");
  if (const auto every = node.find("every")) out.every = static_cast<std::uint32_t>(every->integer(1, 1'000'000));
  if (out.kind == SensorFault::Kind::kLate) out.by = node.at("by_ms").milliseconds(0.001, 60'000);
  if (out.kind == SensorFault::Kind::kClockStep) out.by = node.at("by_ms").milliseconds(-60'000, 60'000);
  if (out.kind == SensorFault::Kind::kClockDrift) out.ppm = node.at("ppm").number(-200'000, 200'000);
  return out;
}

ProcessFault process_fault(const YamlNode& node, const std::vector<std::string>& stages,
                           const std::vector<std::string>& modes) {
  ProcessFault out;
  out.where = node.where();
  out.kind = kind_of<ProcessFault::Kind>(node.at("process"), kProcessKinds);
  if (out.kind != ProcessFault::Kind::kDiskFull) out.at = seconds_of(node.at("at_s"));
  if (out.kind == ProcessFault::Kind::kStop) out.length = node.at("for_ms").milliseconds(1, 60'000);
  if (out.kind == ProcessFault::Kind::kMode) {
    const YamlNode mode = node.at("mode");
    if (modes.empty()) mode.error("this pipeline has no modes");
    if (!modes.empty()) out.mode = index_of(mode, modes);
    out.mode_name = mode.text();
  }
  if (out.kind == ProcessFault::Kind::kKillClient) out.stage = index_of(node.at("stage"), stages);
  return out;
}

DeviceFault device_fault(const YamlNode& node, const std::vector<std::string>& stages) {
  DeviceFault out;
  out.where = node.where();
  out.kind = kind_of<DeviceFault::Kind>(node.at("device"), kDeviceKinds);
  out.stage = index_of(node.at("stage"), stages);
  out.job = static_cast<std::uint64_t>(node.at("job").integer(0, 1'000'000'000));
  if (out.kind != DeviceFault::Kind::kRefuse) return out;
  if (const auto count = node.find("count")) out.count = static_cast<std::uint64_t>(count->integer(1, 1'000'000));
  return out;
}

CountRange range_of(const YamlNode& node) {
  constexpr std::int64_t kMost = 1'000'000'000;
  if (node.is_scalar()) {
    const auto exact = static_cast<std::uint64_t>(node.integer(0, kMost));
    return {exact, exact};
  }
  const std::vector<YamlNode> ends = node.items();
  if (ends.size() != 2) {
    node.error("expected a number, or [least, most]");
    return {};
  }
  const CountRange range{static_cast<std::uint64_t>(ends[0].integer(0, kMost)),
                         static_cast<std::uint64_t>(ends[1].integer(0, kMost))};
  if (range.least > range.most) node.error("the least is above the most");
  return range;
}

// "NAME: { FIGURE: RANGE, ... }, ...".
void counts(const YamlNode& node, CountExpectation::Kind kind, const std::vector<std::string>& subjects,
            const std::vector<std::string>& figures, std::vector<CountExpectation>& out) {
  for (const auto& [subject, of_subject] : node.entries()) {
    const auto at = std::find(subjects.begin(), subjects.end(), subject);
    if (at == subjects.end()) of_subject.error("'" + subject + "' is not known here" + did_you_mean(subject, subjects));
    for (const auto& [figure, range] : of_subject.entries()) {
      if (std::find(figures.begin(), figures.end(), figure) == figures.end()) {
        range.error("'" + figure + "' is no figure that can be counted here" + did_you_mean(figure, figures));
      }
      const auto index = static_cast<std::uint32_t>(at == subjects.end() ? 0 : at - subjects.begin());
      out.push_back({kind, index, figure, range_of(range)});
    }
  }
}

FaultPlan read(const YamlNode& root, const sched::Problem& problem, const sensors::Rig& rig,
               const std::vector<std::string>& modes) {
  FaultPlan plan;
  plan.name = root.at("name").text();
  plan.what = root.at("what").text();
  const std::vector<std::string> stages = names_of(problem.stages), sensors = names_of(rig.sensors);
  for (const YamlNode& node : root.at("faults").items()) {
    if (node.find("device")) {
      plan.devices.push_back(device_fault(node, stages));
    } else if (node.find("stage") && !node.find("process")) {
      plan.stages.push_back(stage_fault(node, stages));
    } else if (node.find("sensor")) {
      plan.sensors.push_back(sensor_fault(node, sensors));
    } else {
      plan.processes.push_back(process_fault(node, stages, modes));
    }
  }
  const YamlNode expect = root.at("expect");
  plan.exit = static_cast<int>(expect.at("exit").integer(0, 255));
  if (const auto verdicts = expect.find("verdict")) {
    const std::vector<std::string> words{"PASS", "FAIL", "NOT JUDGED"};
    if (verdicts->is_scalar()) {
      plan.verdicts.push_back(verdicts->one_of(words));
    } else {
      for (const YamlNode& node : verdicts->items()) plan.verdicts.push_back(node.one_of(words));
    }
  }
  using Kind = CountExpectation::Kind;
  if (const auto jobs = expect.find("jobs")) {
    counts(*jobs, Kind::kJobs, stages, {"skipped", "missing", "late_start", "overrun", "late", "ok", "held_inputs"},
           plan.counts);
  }
  if (const auto chains = expect.find("chains")) {
    counts(*chains, Kind::kInstances, names_of(problem.chains), {"held", "void"}, plan.counts);
  }
  if (const auto messages = expect.find("messages")) {
    counts(*messages, Kind::kMessages, sensors,
           {"delivered", "bad_frames", "gaps", "repeats", "order_faults", "unused"}, plan.counts);
  }
  if (const auto recovery = expect.find("recovery_hyperperiods")) {
    plan.recovery = static_cast<std::uint64_t>(recovery->integer(0, 1'000'000));
  }
  if (const auto sequence = expect.find("modes")) {
    if (modes.empty()) sequence->error("this pipeline has no modes");
    for (const YamlNode& node : sequence->items()) {
      if (!modes.empty()) plan.modes.push_back(node.one_of(modes));
    }
  }
  return plan;
}

Result<FaultPlan> read_document(const Result<YamlDocument>& document, const sched::Problem& problem,
                                const sensors::Rig& rig, const std::vector<std::string>& modes) {
  if (!document) return fail(document.error());
  FaultPlan plan = read(document->root(), problem, rig, modes);
  TAKT_RETURN_IF_ERROR(document->finish());
  return plan;
}

}  // namespace

Result<FaultPlan> load_faults(const std::string& path, const sched::Problem& problem, const sensors::Rig& rig,
                              const std::vector<std::string>& modes) {
  const Result<std::string> text = read_file(path);
  if (!text) return fail(Code::kConfiguration, text.error().message);
  return parse_faults(*text, path, problem, rig, modes);
}

Result<FaultPlan> parse_faults(const std::string& text, const std::string& name, const sched::Problem& problem,
                               const sensors::Rig& rig, const std::vector<std::string>& modes) {
  TAKT_ASSIGN(FaultPlan plan, read_document(YamlDocument::parse(text, name), problem, rig, modes));
  plan.text = text;
  return plan;
}

}  // namespace takt::pipeline
