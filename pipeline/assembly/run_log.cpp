#include "pipeline/assembly/run_log.h"

#include <algorithm>
#include <optional>

#include "pipeline/report/results.h"
#include "sensors/logs/log_tools.h"

namespace takt::pipeline {

Result<SensorTime> table_origin(sensors::LogReader& log, const PipelineConfig& config, Duration hyperperiod) {
  const auto span = log.span();
  if (!span) return fail(Code::kInput, "the log has no messages on the topics of rig '" + config.rig->name + "'");
  SensorTime origin = span->first;
  for (const sensors::RigSensor& sensor : config.rig->sensors) {
    if (!sensor.phase) continue;
    log.rewind();
    for (;;) {
      TAKT_ASSIGN(std::optional<sensors::LogMessage> message, log.next());
      if (!message) break;
      if (message->channel->topic != sensor.topic) continue;
      // A wrong stamp (zero, another clock) decides nothing.
      if (message->capture > message->arrival || message->arrival - message->capture > seconds(3600)) continue;
      // The sensor's stamps lie alike in the table after so many hyperperiods.
      const auto index = static_cast<std::size_t>(&sensor - config.rig->sensors.data());
      const auto pattern = sched::sample_pattern(config.problem.sensors[index], hyperperiod);
      const std::int64_t step = hyperperiod.ns * (pattern ? pattern->hyperperiods : 1);
      std::int64_t origin_ns = message->capture.ns - sensor.phase->ns;
      while (origin_ns > span->first.ns) origin_ns -= step;
      log.rewind();
      return SensorTime{origin_ns};
    }
  }
  log.rewind();
  return origin;
}

Result<std::vector<std::vector<std::int64_t>>> read_arrivals(sensors::LogReader& log, const sensors::Rig& rig,
                                                             SensorTime origin) {
  std::vector<std::vector<std::int64_t>> out(rig.sensors.size());
  for (;;) {
    TAKT_ASSIGN(const std::optional<sensors::LogMessage> message, log.next());
    if (!message) break;
    for (std::size_t s = 0; s < out.size(); ++s) {
      if (rig.sensors[s].topic == message->channel->topic) out[s].push_back((message->arrival - origin).ns);
    }
  }
  log.rewind();
  return out;
}

Result<std::vector<TruthFrame>> read_truth(const std::string& log_path) {
  std::vector<TruthFrame> out;
  TAKT_RETURN_IF_ERROR(
      sensors::for_each_truth(log_path, [&](const sensors::log::Truth& truth) { out.push_back(truth_frame(truth)); }));
  std::sort(out.begin(), out.end(), [](const TruthFrame& a, const TruthFrame& b) { return a.stamp < b.stamp; });
  return out;
}

}  // namespace takt::pipeline
