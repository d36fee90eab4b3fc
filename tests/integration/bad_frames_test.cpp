// Bad frames are counted and reported, and the run goes on (lockstep, in-process transport).

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "pipeline/report/verdict.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/encode.h"
#include "tests/integration/rewritten_log.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

namespace log = sensors::log;
using Edit = std::function<void(const RewrittenMessage&, std::vector<RewrittenMessage>&)>;

constexpr std::uint64_t kAt = 7;  // which message of the topic gets the fault

class BadFrames : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = pipeline::load_pipeline(kPipeline);
    ASSERT_TRUE(loaded) << loaded.error().message;
    config = new pipeline::PipelineConfig(*std::move(loaded));
    schedule = new sched::Schedule(admitted(config->problem));
  }
  static void TearDownTestSuite() {
    delete config;
    delete schedule;
  }

  static const sensors::RigSensor& sensor(sensors::SensorKind kind) {
    for (const sensors::RigSensor& s : config->rig->sensors) {
      if (s.kind == kind) return s;
    }
    throw std::logic_error("the shipped rig lacks a sensor kind");
  }

  // Runs the first second of the drive with `edit` applied to messages of the sensor; every job must be accounted for.
  static pipeline::RunData run_of(sensors::SensorKind kind, const Edit& edit) {
    const std::string topic = sensor(kind).topic;
    const std::string path =
        (std::filesystem::temp_directory_path() / ("takt-bad-frames-" + std::to_string(::getpid()) + ".mcap")).string();
    const Status written =
        rewrite_log(kDrive, path, [&](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
          if (m.topic == topic) {
            edit(m, out);
          } else {
            out.push_back(m);
          }
        });
    EXPECT_TRUE(written) << written.error().message;
    pipeline::RunOptions options = lockstep(path, transport::Backend::kLocal);
    options.max_hyperperiods = 12;
    const auto data = pipeline::run_pipeline(*config, *schedule, options);
    std::filesystem::remove(path);
    EXPECT_TRUE(data) << data.error().message;
    if (!data) return {};
    std::size_t jobs = 0;
    for (const sched::Choice& choice : schedule->choices) jobs += static_cast<std::size_t>(choice.rate) * 12;
    EXPECT_EQ(data->records.size(), jobs) << "every job has exactly one record";
    EXPECT_GT(data->tracks.size(), 10U);
    return *data;
  }
  static pipeline::SensorHealth run_with(sensors::SensorKind kind, const Edit& edit) {
    const pipeline::RunData data = run_of(kind, edit);
    for (const pipeline::SensorHealth& health : data.health) {
      if (health.sensor == sensor(kind).name) return health;
    }
    ADD_FAILURE() << "no health of " << sensor(kind).name;
    return {};
  }

  // A LiDAR message of `points` points made by `fill`.
  static std::string cloud(const RewrittenMessage& m, std::size_t points,
                           const std::function<void(std::size_t, log::LidarPoint&)>& fill) {
    std::vector<log::LidarPoint> list(points);
    for (std::size_t i = 0; i < points; ++i) fill(i, list[i]);
    return sensors::encode_lidar({m.capture_ns}, sensor(sensors::SensorKind::kLidar).frame_id, list);
  }

  static pipeline::PipelineConfig* config;
  static sched::Schedule* schedule;
};
pipeline::PipelineConfig* BadFrames::config = nullptr;
sched::Schedule* BadFrames::schedule = nullptr;

TEST_F(BadFrames, UntouchedDriveIsHealthy) {
  const auto health = run_with(sensors::SensorKind::kCamera, [](const auto& m, auto& out) { out.push_back(m); });
  EXPECT_GT(health.messages, 20U);
  EXPECT_EQ(health.bad_frames + health.gaps + health.repeats + health.order_faults, 0U);
}

TEST_F(BadFrames, NanPointsAreRemovedAndCounted) {
  const auto health = run_with(sensors::SensorKind::kLidar, [](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index != kAt) return;
    out.back().bytes = cloud(m, 1000, [](std::size_t i, log::LidarPoint& p) {
      p.x = i % 10 == 0 ? std::numeric_limits<float>::quiet_NaN() : 10.0F;
      p.y = i % 10 == 1 ? std::numeric_limits<float>::infinity() : static_cast<float>(i % 7);
    });
  });
  EXPECT_EQ(health.invalid_points, 200U);
  EXPECT_EQ(health.bad_frames, 0U);
}

TEST_F(BadFrames, EmptyCloudIsAFrame) {
  const auto health = run_with(sensors::SensorKind::kLidar, [](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index == kAt) out.back().bytes = cloud(m, 0, [](std::size_t, log::LidarPoint&) {});
  });
  EXPECT_EQ(health.bad_frames, 0U);
}

TEST_F(BadFrames, CloudOverCapacityIsCutByRuleAndCounted) {
  const std::size_t capacity = sensor(sensors::SensorKind::kLidar).capacity;
  const auto health = run_with(sensors::SensorKind::kLidar, [&](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index != kAt) return;
    out.back().bytes = cloud(m, capacity + 123, [](std::size_t i, log::LidarPoint& p) {
      p.x = 5.0F + static_cast<float>(i % 97);
      p.y = static_cast<float>(i % 31) - 15.0F;
    });
  });
  EXPECT_EQ(health.dropped_points, 123U);
  EXPECT_EQ(health.bad_frames, 0U);
}

TEST_F(BadFrames, CorruptJpegIsLeftOut) {
  const auto health = run_with(sensors::SensorKind::kCamera, [](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index == kAt) std::memset(out.back().bytes.data() + out.back().bytes.size() / 3, 0x5a, 2000);
    if (m.index == kAt + 2) out.back().bytes.resize(out.back().bytes.size() / 2);
  });
  EXPECT_EQ(health.bad_frames, 2U);
  EXPECT_FALSE(health.examples.empty());
}

// The verdict names the frame, and does not call it a gap of the sensor.
TEST_F(BadFrames, ACorruptFrameIsTheReasonOfWhatItVoids) {
  const pipeline::RunData data = run_of(sensors::SensorKind::kLidar, [](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index == kAt || m.index == 0) out.back().bytes.resize(out.back().bytes.size() / 2);
  });
  const pipeline::Judgement judgement = pipeline::judge(data);
  EXPECT_EQ(judgement.violated, 0U);
  std::size_t named = 0;
  for (const pipeline::ChainJudgement& chain : judgement.chains) {
    for (const pipeline::QuantityJudgement& quantity : chain.quantities) {
      for (const pipeline::Instance& instance : quantity.instances) {
        for (const pipeline::Broken& broken : instance.broken) {
          EXPECT_NE(broken.assumption, pipeline::Assumption::kPeriod) << broken.detail;
          named += broken.assumption == pipeline::Assumption::kFrame && broken.number == kAt ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(named, 2U) << "an age, a reaction and what follows from them";
  // The very first sweep cannot be decoded: whoever waits for it is told so.
  std::size_t waiting = 0;
  for (const sched::JobRecord& record : data.records) {
    waiting += record.reason == sched::Reason::kBadFrame ? 1 : 0;
  }
  EXPECT_GT(waiting, 0U);
}

TEST_F(BadFrames, StampsThatContradictTheLogAreCounted) {
  const auto health = run_with(sensors::SensorKind::kCamera, [](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index == kAt) out.back().capture_ns -= 1000;  // the message keeps its own stamp
  });
  EXPECT_EQ(health.other_stamps, 1U);
}

TEST_F(BadFrames, MissingFrameIsAGap) {
  const auto health = run_with(sensors::SensorKind::kCamera, [](const auto& m, auto& out) {
    if (m.index != kAt && m.index != kAt + 1) out.push_back(m);
  });
  EXPECT_EQ(health.gaps, 2U);
}

TEST_F(BadFrames, RepeatedFrameIsCounted) {
  std::string before;
  const auto health = run_with(sensors::SensorKind::kCamera, [&](const auto& m, auto& out) {
    out.push_back(m);
    if (m.index == kAt) out.push_back(m);               // the same message twice: same stamp, left out
    if (m.index == kAt + 3) out.back().bytes = before;  // stuck sensor: new stamp, old bytes, used
    before = out.back().bytes;
  });
  EXPECT_EQ(health.repeats, 2U);
}

TEST_F(BadFrames, SwappedStampsAreLeftOut) {
  RewrittenMessage kept;
  const auto health = run_with(sensors::SensorKind::kCamera, [&](const auto& m, auto& out) {
    if (m.index == kAt) {
      kept = m;
    } else if (m.index == kAt + 1) {
      RewrittenMessage first = m, second = kept;  // the later stamp arrives first
      first.arrival_ns = m.arrival_ns;
      second.arrival_ns = m.arrival_ns + 1000;
      out.push_back(first);
      out.push_back(second);
    } else {
      out.push_back(m);
    }
  });
  EXPECT_EQ(health.order_faults, 1U);
}

// Far more samples between two latches than the rig's period tells: the feeder must not wait for room for ever.
TEST_F(BadFrames, BurstOfSamplesIsFedThrough) {
  const auto health = run_with(sensors::SensorKind::kRadar, [](const auto& m, auto& out) {
    for (std::int64_t copy = 0; copy < (m.index >= 4 && m.index < 8 ? 30 : 1); ++copy) {
      out.push_back(m);
      out.back().capture_ns += copy;
      out.back().arrival_ns += copy;
    }
  });
  EXPECT_GT(health.messages, 120U);
}

TEST_F(BadFrames, UnusableSensorIsNoPass) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("takt-dead-camera-" + std::to_string(::getpid()) + ".mcap")).string();
  const std::string topic = sensor(sensors::SensorKind::kCamera).topic;
  ASSERT_TRUE(rewrite_log(kDrive, path, [&](const RewrittenMessage& m, std::vector<RewrittenMessage>& out) {
    out.push_back(m);
    if (m.topic == topic) out.back().bytes.resize(out.back().bytes.size() / 2);
  }));
  const auto data = pipeline::run_pipeline(*config, *schedule, lockstep(path, transport::Backend::kLocal));
  std::filesystem::remove(path);
  ASSERT_TRUE(data) << data.error().message;
  const pipeline::Judgement judgement = pipeline::judge(*data);
  EXPECT_EQ(judgement.outcome, pipeline::Outcome::kNotJudged);
  ASSERT_FALSE(judgement.reasons.empty());
  EXPECT_NE(judgement.reasons.front().find("camera"), std::string::npos) << judgement.reasons.front();
  EXPECT_LT(judgement.fill_jobs, 10U) << "a dead sensor is no pipeline fill";
}

TEST_F(BadFrames, WholeSensorMissingForAWhileStillGivesTracks) {
  const auto health = run_with(sensors::SensorKind::kLidar, [](const auto& m, auto& out) {
    if (m.index < 3 || m.index > 8) out.push_back(m);
  });
  EXPECT_EQ(health.gaps, 6U);
}

}  // namespace
}  // namespace takt::test
