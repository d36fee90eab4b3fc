#include "pipeline/assembly/transport_plan.h"

#include <algorithm>

#include "pipeline/assembly/run_tables.h"
#include "pipeline/messages/status.h"

namespace takt::pipeline {
namespace {

using transport::TopicSpec;

// For all observers of an export topic together. Who keeps more than these misses what comes next.
constexpr std::uint32_t kObserverChunks = 8;

// The longest time between two consecutive starts of a stage in the cyclic table; none where it does not run.
Duration longest_gap(const sched::Schedule& schedule, std::size_t stage) {
  std::vector<sched::Tick> starts;
  for (const sched::Slot& slot : schedule.slots) {
    if (slot.stage == stage && slot.segment == 0) starts.push_back(slot.start);
  }
  if (starts.empty()) return {};
  std::sort(starts.begin(), starts.end());
  sched::Tick gap = starts.front() + schedule.clock.ticks - starts.back();
  for (std::size_t i = 1; i < starts.size(); ++i) gap = std::max(gap, starts[i] - starts[i - 1]);
  return schedule.clock.start_at(0, gap) - TableTime{0};
}

// The longest time between two consecutive starts, over a change of mode as well, from one that runs the stage to
// another.
Duration longest_gap(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  Duration gap;
  for (const sched::ModeTable& mode : modes) gap = std::max(gap, longest_gap(mode.schedule, stage));
  return modes.size() == 1 ? gap : gap + longest_turn(modes);
}

std::uint32_t jobs_per_second(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::int64_t most = 0;
  for (const sched::ModeTable& mode : modes) {
    most = std::max(most, 1'000'000'000 / mode.schedule.clock.hyperperiod.ns * mode.schedule.choices[stage].rate);
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace

std::string sensor_topic(const sensors::RigSensor& sensor) { return "/sensor/" + sensor.name; }

std::string export_topic(const std::string& topic) { return "/export" + topic; }

std::string input_name(const PipelineConfig& config, std::size_t stage, std::size_t input) {
  return config.stages[stage].name + "/" + config.problem.stages[stage].inputs[input].name;
}

std::uint32_t samples_ahead(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                            std::size_t sensor) {
  Duration gap;
  const auto& stages = config.problem.stages;
  for (std::size_t c = 0; c < stages.size(); ++c) {
    for (const sched::Input& input : stages[c].inputs) {
      if (input.from_sensor && input.source == sensor) gap = std::max(gap, longest_gap(modes, c));
    }
  }
  const sensors::RigSensor& s = config.rig->sensors[sensor];
  return static_cast<std::uint32_t>((gap + s.delay_max() - s.delay_min()).ns / s.period.ns) + 3;
}

std::uint32_t most_jobs(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::int64_t most = 0;
  for (const sched::ModeTable& mode : modes) most = std::max(most, mode.schedule.choices[stage].rate);
  if (modes.size() == 1) return static_cast<std::uint32_t>(most);
  // Those of the hyperperiod before the change, and those of the longest one behind it.
  Duration shortest = longest_turn(modes);
  for (const sched::ModeTable& mode : modes) shortest = std::min(shortest, mode.schedule.clock.hyperperiod);
  return static_cast<std::uint32_t>(most * (1 + (longest_turn(modes).ns + shortest.ns - 1) / shortest.ns));
}

transport::TransportSpec plan_transport(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                                        const std::vector<std::uint64_t>& stage_output_bytes,
                                        transport::Backend backend, bool lossless, std::uint64_t run, bool exported) {
  transport::TransportSpec spec;
  spec.backend = backend;
  spec.run = run;
  const auto& stages = config.problem.stages;
  for (std::size_t s = 0; s < config.rig->sensors.size(); ++s) {
    const sensors::RigSensor& sensor = config.rig->sensors[s];
    TopicSpec topic{
        sensor_topic(sensor), sensors::payload_schema(sensor.kind), sensors::payload_capacity(sensor), 1, {}};
    const std::uint32_t ahead = samples_ahead(config, modes, s);
    for (std::size_t c = 0; c < stages.size(); ++c) {
      for (std::size_t i = 0; i < stages[c].inputs.size(); ++i) {
        if (!stages[c].inputs[i].from_sensor || stages[c].inputs[i].source != s) continue;
        // Held: everything that waits, plus the sample in use.
        topic.subscribers.push_back({input_name(config, c, i), ahead, ahead + 1});
      }
    }
    if (!topic.subscribers.empty()) spec.topics.push_back(std::move(topic));
  }
  for (std::size_t p = 0; p < stages.size(); ++p) {
    const std::uint32_t jobs = most_jobs(modes, p);
    // A lost device keeps the chunk that it was to write.
    const auto& variants = config.stages[p].variants;
    const bool on_device = std::any_of(variants.begin(), variants.end(), [](const auto& v) { return v.on_device; });
    TopicSpec topic{config.stages[p].topic(), 0, stage_output_bytes[p], on_device ? 2U : 1U, {}};
    for (std::size_t c = 0; c < stages.size(); ++c) {
      for (std::size_t i = 0; i < stages[c].inputs.size(); ++i) {
        if (stages[c].inputs[i].from_sensor || stages[c].inputs[i].source != p) continue;
        // A consumer runs at least once a hyperperiod; bindings reach back one hyperperiod at most.
        topic.subscribers.push_back({input_name(config, c, i), jobs + 1, 2 * jobs + 2});
      }
    }
    // The recorder lives on the housekeeping reserve: one second of outputs may wait for it. In lockstep it paces.
    const std::uint32_t second = jobs_per_second(modes, p);
    topic.subscribers.push_back({kRecorder, lossless ? 16 : std::min<std::uint32_t>(second + 4, 200), 2});
    if (exported) topic.subscribers.push_back({kRelay, std::min<std::uint32_t>(second + 4, 200), 1});
    spec.topics.push_back(std::move(topic));
  }
  // The watchdog keeps a chunk loaned, so that it never has to ask for one when something is wrong.
  TopicSpec status{kStatusTopic, kStatusSchema, sizeof(RunStatus), 2, {}};
  if (exported) status.subscribers.push_back({kRelay, 16, 1});
  spec.topics.push_back(std::move(status));
  if (exported) {
    spec.external_clients = true;
    const std::size_t timed = spec.topics.size();
    for (std::size_t t = timed - stages.size() - 1; t < timed; ++t) {
      const TopicSpec of = spec.topics[t];
      spec.topics.push_back({export_topic(of.name), of.schema, of.payload_capacity, 1, {}, kObserverChunks});
    }
    transport::give_export_classes(spec);
  }
  return spec;
}

}  // namespace takt::pipeline
