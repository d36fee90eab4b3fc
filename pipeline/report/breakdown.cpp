#include "pipeline/report/breakdown.h"

#include <algorithm>

#include "pipeline/report/text.h"

namespace takt::pipeline {

std::vector<Part> breakdown(const RunData& run, const RecordIndex& index, std::size_t chain, const Instance& instance) {
  std::vector<Part> parts;
  const std::vector<std::uint32_t>& stages = run.problem.chains[chain].stages;
  if (!instance.reached || instance.path.size() != stages.size()) return parts;
  const std::uint32_t sensor = run.problem.chains[chain].sensor;
  const Duration error =
      run.sensor_from_table.error + (sensor < run.sources.size() ? run.sources[sensor].stamp.error : Duration{});
  if (error.ns > 0) parts.push_back({PartKind::kSensor, stages.front(), "error of the clock maps", error});
  TableTime now = table_time(run.sensor_from_table, instance.capture);
  const auto add = [&](PartKind kind, std::uint32_t stage, std::string label, std::int64_t until) {
    if (until <= now.ns) return;
    parts.push_back({kind, stage, std::move(label), Duration{until - now.ns}});
    now.ns = until;
  };
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const sched::JobRecord* job = index.find(stages[i], instance.path[i]);
    if (job == nullptr || job->actual_start == sched::kNever) return {};
    const std::string& name = run.problem.stages[stages[i]].name;
    if (i == 0) {
      const auto input = index.input_from(stages[0], true, sensor);
      if (input && *input < job->input_count) {
        const TableTime arrival = table_time(run.sensor_from_table, SensorTime{job->inputs[*input].arrival_ns});
        add(PartKind::kSensor, stages[0], "capture to arrival", arrival.ns);
      }
    }
    add(PartKind::kWait, stages[i], "waits for " + name, job->nominal_start);
    add(PartKind::kWait, stages[i], name + " starts late", job->actual_start);
    add(PartKind::kRun, stages[i], name + " runs", job->completion);
    add(PartKind::kPublish, stages[i], name + " publishes at slot end", job->publication);
  }
  return parts;
}

WorstFrame worst_frame(const Judgement& judgement) {
  WorstFrame out;
  for (std::size_t c = 0; c < judgement.chains.size(); ++c) {
    const QuantityJudgement& latency = judgement.chains[c].latency();
    if (!latency.worst) continue;
    const Instance& instance = latency.instances[*latency.worst];
    const double share = latency.bound && latency.bound->ns > 0
                             ? static_cast<double>(instance.published.ns) / static_cast<double>(latency.bound->ns)
                             : 0;
    if (out.instance == nullptr || share > out.share) out = {c, judgement.chains[c].chain, &instance, share};
  }
  return out;
}

std::string cause_in_words(const RunData& run, const RecordIndex& index, const WorstFrame& worst) {
  if (worst.instance == nullptr) return "";
  if (!worst.instance->broken.empty()) {
    std::string text;
    for (const Broken& broken : worst.instance->broken) {
      if (!text.empty()) text += "; ";
      text += broken.by_sensor ? run.problem.sensors[broken.subject].name + " sample "
                               : run.problem.stages[broken.subject].name + " job ";
      text += std::to_string(broken.number) + ": " + name_of(broken.assumption) + ", " + broken.detail;
    }
    return text;
  }
  const std::vector<Part> parts = breakdown(run, index, worst.of_problem, *worst.instance);
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.time < b.time; });
  if (largest == parts.end()) return "";
  return "as planned; the largest part is \"" + largest->label + "\" with " + ms_text(largest->time);
}

}  // namespace takt::pipeline
