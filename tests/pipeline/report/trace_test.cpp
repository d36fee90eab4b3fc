#include "pipeline/report/trace.h"

#include <gtest/gtest.h>
#include <bit>
#include <map>
#include <set>

#include "sensors/logs/wire.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using namespace test;
using sensors::wire::Reader;

struct TrackEvent {
  std::uint64_t at = 0, type = 0, track = 0;
  std::string name;
  std::map<std::string, std::string> notes;
  std::vector<std::uint64_t> flows, last;
};
struct Decoded {
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::uint64_t> parents;
  std::vector<TrackEvent> events;

  [[nodiscard]] std::vector<const TrackEvent*> on(const std::string& track) const {
    std::vector<const TrackEvent*> out;
    for (const TrackEvent& e : events) {
      if (names.at(e.track) == track) out.push_back(&e);
    }
    return out;
  }
};

TrackEvent read_event(Reader& r) {
  TrackEvent event;
  r.message([&](Reader& e) {
    switch (e.field()) {
      case 4: {
        std::string name, value;
        e.message([&](Reader& note) {
          if (note.field() == 10) name = note.text();
          if (note.field() == 6) value = note.text();
        });
        event.notes[name] = value;
        break;
      }
      case 9: event.type = e.unsigned_(); break;
      case 11: event.track = e.unsigned_(); break;
      case 23: event.name = e.text(); break;
      case 47: event.flows.push_back(std::bit_cast<std::uint64_t>(e.double_())); break;
      case 48: event.last.push_back(std::bit_cast<std::uint64_t>(e.double_())); break;
      default: ADD_FAILURE() << "unknown field " << e.field();
    }
  });
  return event;
}

Decoded decode(const std::string& bytes) {
  Decoded out;
  Reader trace(std::as_bytes(std::span(bytes)));
  while (trace.next()) {
    EXPECT_EQ(trace.field(), 1U);
    trace.message([&](Reader& packet) {
      // Fields come in ascending order: the instant is known when the event is read.
      static std::uint64_t at = 0;
      switch (packet.field()) {
        case 8: at = packet.unsigned_(); break;
        case 10: EXPECT_EQ(packet.unsigned_(), 1U); break;
        case 11: {
          TrackEvent event = read_event(packet);
          event.at = at;
          out.events.push_back(event);
          break;
        }
        case 13: break;
        case 60: {
          std::uint64_t id = 0, parent = 0;
          std::string name;
          packet.message([&](Reader& t) {
            if (t.field() == 1) id = t.unsigned_();
            if (t.field() == 2) name = t.text();
            if (t.field() == 5) parent = t.unsigned_();
          });
          EXPECT_TRUE(out.names.emplace(id, name).second) << name;
          out.parents[id] = parent;
          break;
        }
        default: ADD_FAILURE() << "unknown field " << packet.field();
      }
    });
  }
  EXPECT_TRUE(trace.status());
  return out;
}

TEST(Trace, EverySliceIsClosedOnItsTrackInTheOrderOfTime) {
  const RunData run = synthetic_run(6, true);
  const Decoded trace = decode(perfetto_trace(run, judge(run)));
  std::map<std::uint64_t, int> open;
  std::uint64_t last = 0;
  for (const TrackEvent& e : trace.events) {
    EXPECT_GE(e.at, last);
    last = e.at;
    ASSERT_TRUE(trace.names.contains(e.track));
    // One deep on every track.
    const int depth = open[e.track] += e.type == 1 ? 1 : e.type == 2 ? -1 : 0;
    EXPECT_TRUE(depth == 0 || depth == 1) << trace.names.at(e.track);
  }
  for (const auto& [track, depth] : open) EXPECT_EQ(depth, 0) << trace.names.at(track);
  for (const auto& [id, parent] : trace.parents) EXPECT_TRUE(parent == 0 || trace.names.contains(parent)) << id;
}

TEST(Trace, PlannedSlotsAndActualRunsOfEveryCore) {
  const RunData run = synthetic_run(4, true);
  const Decoded trace = decode(perfetto_trace(run, judge(run)));
  // Two fusion slots and one of the LiDAR gang per hyperperiod on core 0; begin and end.
  EXPECT_EQ(trace.on("core0 planned").size(), 4U * 3 * 2);
  EXPECT_EQ(trace.on("core1 planned").size(), 4U * 4 * 2);
  // The gang stands on both cores; publications on the first.
  EXPECT_EQ(trace.on("core0 lidar_detect").size(), 4U * 3);
  EXPECT_EQ(trace.on("core1 lidar_detect").size(), 4U * 2);
  const auto fusion = trace.on("core0 fusion");
  const sched::JobRecord& record = run.records.back();
  ASSERT_EQ(record.stage, kFusionStage);
  bool found = false;
  const auto shift = static_cast<std::uint64_t>(2 * run.problem.hyperperiod.ns);
  for (const TrackEvent* e : fusion) {
    if (e->name != "fusion#" + std::to_string(record.job)) continue;
    found = true;
    EXPECT_EQ(e->at, static_cast<std::uint64_t>(record.actual_start) + shift);
    EXPECT_EQ(e->notes.at("class"), "ok");
  }
  EXPECT_TRUE(found);
}

TEST(Trace, AFlowFollowsEachSampleFromItsArrivalToTheOutput) {
  const RunData run = synthetic_run(6, true);
  const Judgement judgement = judge(run);
  const Decoded trace = decode(perfetto_trace(run, judgement));
  std::map<std::uint64_t, std::vector<std::string>> path;
  std::map<std::uint64_t, int> ends;
  for (const TrackEvent& e : trace.events) {
    for (const std::uint64_t flow : e.flows) path[flow].push_back(trace.names.at(e.track));
    for (const std::uint64_t flow : e.last) {
      path[flow].push_back(trace.names.at(e.track));
      ++ends[flow];
    }
  }
  std::size_t reached = 0;
  for (const ChainJudgement& chain : judgement.chains) {
    for (const Instance& i : chain.latency().instances) reached += i.reached ? 1 : 0;
  }
  ASSERT_GT(reached, 10U);
  EXPECT_EQ(path.size(), reached);
  for (const auto& [flow, tracks] : path) {
    EXPECT_EQ(ends[flow], 1);
    ASSERT_EQ(tracks.size(), 3U);
    const bool camera = tracks[0] == "front";
    EXPECT_EQ(tracks[1], camera ? "core1 camera_detect" : "core0 lidar_detect");
    EXPECT_EQ(tracks[2], "core0 fusion");
  }
}

TEST(Trace, MissesCarryTheirCauseAndStallsTheirCore) {
  RunData run = synthetic_run(6, true);
  skip_job(run, kCameraStage, 6);
  run.host_stalls = {{10, 50'000'010, 1, milliseconds(10)}, {10, 90, -1, nanoseconds(80)}};
  const Decoded trace = decode(perfetto_trace(run, judge(run)));
  bool found = false;
  for (const TrackEvent* e : trace.on("core1 camera_detect")) {
    if (e->name != "camera_detect#6") continue;
    found = true;
    EXPECT_EQ(e->type, 3U);
    EXPECT_EQ(e->notes.at("class"), "skipped");
    EXPECT_NE(e->notes.at("cause").find("still running"), std::string::npos);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(trace.on("core1 taken by the hypervisor").size(), 2U);
  EXPECT_EQ(trace.on("core0 taken by the hypervisor").size(), 0U);
  EXPECT_EQ(trace.on("process stopped").size(), 2U);
}

}  // namespace
}  // namespace takt::pipeline
