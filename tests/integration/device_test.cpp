// The shipped pipeline with its graphs on a device beside the cores: CUDA plans through the harness, byte for byte what
// the cores compute, whichever way chunks get there.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "kernels/cuda/table.h"
#include "pipeline/assembly/profile.h"
#include "pipeline/report/verdict.h"
#include "runtime/device/cuda_host.h"
#include "runtime/device/fault.h"
#include "runtime/device/null.h"
#include "runtime/exec/segments.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"
#include "scheduler/model/budgets.h"
#include "scheduler/model/gpu.h"
#include "scheduler/model/yaml.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr std::uint64_t kHyperperiods = 4;  // twelve pictures, eight track lists

std::shared_ptr<device::Device> harness() {
  return device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 1});
}

pipeline::PipelineConfig loaded(std::shared_ptr<device::Device> device, exec::Exchange exchange,
                                const std::string& file = kPipeline) {
  auto config = pipeline::load_pipeline(file, {}, {std::move(device), kernels::Target::kCudaSm87, exchange});
  EXPECT_TRUE(config) << config.error().message;
  return config ? *std::move(config) : pipeline::PipelineConfig{};
}

pipeline::RunData run(const pipeline::PipelineConfig& config, transport::Backend backend = transport::Backend::kLocal,
                      const pipeline::FaultPlan* faults = nullptr) {
  pipeline::RunOptions options = lockstep(kDrive, backend);
  options.faults = faults;
  options.max_hyperperiods = kHyperperiods;
  auto data = pipeline::run_pipeline(config, admitted(config.problem), options);
  EXPECT_TRUE(data) << data.error().message;
  return data ? *std::move(data) : pipeline::RunData{};
}

std::string notes_of(const pipeline::RunData& data) {
  std::string all;
  for (const std::string& note : data.schedule_notes) all += note + "\n";
  return all;
}

std::size_t camera(const pipeline::PipelineConfig& config) {
  std::size_t s = 0;
  while (config.stages[s].name != "camera_detect") ++s;
  return s;
}

float overlap(const pipeline::Object& a, const pipeline::Object& b) {
  const float w = std::min(a.u1, b.u1) - std::max(a.u0, b.u0), h = std::min(a.v1, b.v1) - std::max(a.v0, b.v0);
  if (w <= 0 || h <= 0) return 0;
  const float both = w * h;
  return both / ((a.u1 - a.u0) * (a.v1 - a.v0) + (b.u1 - b.u0) * (b.v1 - b.v0) - both);
}

// Every object of a picture whose score clears the threshold by 0.05 has its like.
std::size_t matched(const pipeline::RunData& one, const pipeline::RunData& other, std::uint32_t stage) {
  constexpr float kThreshold = 0.35F, kClear = 0.05F;  // score_min of the shipped networks
  std::size_t found = 0;
  for (const pipeline::ObjectFrame& frame : one.objects) {
    if (frame.stage != stage) continue;
    const auto same = std::find_if(other.objects.begin(), other.objects.end(), [&](const pipeline::ObjectFrame& f) {
      return f.stage == stage && f.job == frame.job;
    });
    EXPECT_NE(same, other.objects.end()) << frame.job;
    if (same == other.objects.end()) continue;
    const pipeline::ObjectList list = frame.list.get(), others = same->list.get();
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const pipeline::Object& object = list.objects[i];
      if (object.score < kThreshold + kClear) continue;
      const bool has = std::any_of(others.objects, others.objects + others.count, [&](const pipeline::Object& o) {
        return o.object_class == object.object_class && overlap(o, object) >= 0.9F;
      });
      EXPECT_TRUE(has) << "job " << frame.job << ", score " << object.score;
      ++found;
    }
  }
  return found;
}

class OnDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { on_cores = new pipeline::RunData(run(loaded(nullptr, exec::Exchange::kInPlace))); }
  static void TearDownTestSuite() { delete on_cores; }
  static void expect_equal(const pipeline::RunData& data) {
    ASSERT_EQ(data.digests.size(), on_cores->digests.size());
    for (std::size_t t = 0; t < data.digests.size(); ++t) {
      EXPECT_GT(data.digests[t].chunks, 2U) << data.digests[t].topic;
      EXPECT_EQ(data.digests[t].digest, on_cores->digests[t].digest) << data.digests[t].topic;
    }
  }
  static pipeline::RunData* on_cores;
};
pipeline::RunData* OnDevice::on_cores = nullptr;

TEST_F(OnDevice, ChunksReadInPlaceGiveTheBytesOfTheCores) {
  const pipeline::PipelineConfig config = loaded(harness(), exec::Exchange::kInPlace);
  const pipeline::RunData data = run(config);
  expect_equal(data);
  const auto stage = static_cast<std::uint32_t>(camera(config));
  EXPECT_GE(matched(*on_cores, data, stage), 5U);
  EXPECT_GE(matched(data, *on_cores, stage), 5U);
  EXPECT_THAT(notes_of(data), HasSubstr("graphs ran on device cuda-host (plans for cuda:sm_87), which reads chunks in "
                                        "place: 0 bytes copied"));
}

TEST_F(OnDevice, SoDoTheSegmentsOfIceoryx) {
  const pipeline::RunData data = run(loaded(harness(), exec::Exchange::kInPlace), transport::Backend::kIceoryxEmbedded);
  expect_equal(data);
  EXPECT_THAT(notes_of(data), HasSubstr("in place: 0 bytes copied"));
}

TEST_F(OnDevice, SoDoCopiesOfChunks) {
  const pipeline::PipelineConfig config = loaded(harness(), exec::Exchange::kCopies);
  const pipeline::RunData data = run(config);
  expect_equal(data);
  EXPECT_THAT(notes_of(data), HasSubstr("works on copies of chunks: "));
  EXPECT_THAT(notes_of(data), ::testing::Not(HasSubstr(": 0 bytes copied")));
}

// By stage: whether its jobs have times of a device.
std::map<std::string, bool> on_device(const pipeline::RunData& data) {
  std::map<std::string, bool> out;
  for (const sched::JobRecord& record : data.records) {
    if (record.published == 0) continue;
    EXPECT_EQ(record.launch_ns > 0, record.device_ns > 0);
    out[data.problem.stages[record.stage].name] |= record.device_ns > 0;
  }
  return out;
}

std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  for (; at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
}

// Files of one test.
class Folder {
 public:
  Folder() : path_(std::filesystem::path(::testing::TempDir()) / ("takt-device-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  // Writes a file and returns where.
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// The shipped pipeline with a small pillar network on its LiDAR, and fusion on the cores where `fusion` says so.
class LidarPipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string model = file_text(project("configs/models/lidar_pillars.yaml"));
    replace(model, "pillar_m: [0.32, 0.32]", "pillar_m: [3.2, 3.2]");
    replace(model, "pillars: 20000", "pillars: 400");
    replace(model, "boxes: 200", "boxes: 30");
    (void)folder_.write("model.yaml", model);
  }

  [[nodiscard]] std::string file(const std::string& fusion = "") const {
    std::string text = file_text(kPipeline);
    replace(text, "../", project("configs/"));
    replace(text, "type: lidar_classical", "type: lidar_network");
    replace(text, "- name: full\n        budgets: [{ cores: 1, ms: 10 }, { cores: 2, ms: 10 }]",
            "- { name: full, model: model.yaml, budgets: [{ cores: 1, ms: 20 }] }");
    replace(text, "{ name: full, budgets: [{ cores: 1, ms: 4 }] }",
            "{ name: full, " + fusion + "budgets: [{ cores: 1, ms: 4 }] }");
    return folder_.write("pipeline.yaml", text);
  }

 private:
  Folder folder_;
};

TEST_F(LidarPipeline, AllGraphsRunOnTheDeviceAndGiveTheBytesOfTheCores) {
  const pipeline::RunData cores = run(loaded(nullptr, exec::Exchange::kInPlace, file()));
  const pipeline::RunData device = run(loaded(harness(), exec::Exchange::kInPlace, file()));
  ASSERT_EQ(device.digests.size(), cores.digests.size());
  for (std::size_t t = 0; t < cores.digests.size(); ++t) {
    EXPECT_GT(cores.digests[t].chunks, 2U) << cores.digests[t].topic;
    EXPECT_EQ(device.digests[t].digest, cores.digests[t].digest) << cores.digests[t].topic;
  }
  EXPECT_THAT(notes_of(device), HasSubstr("in place: 0 bytes copied"));
  EXPECT_THAT(on_device(device), ElementsAre(Pair("camera_detect", true), Pair("fusion", true),
                                             Pair("lidar_detect", true), Pair("radar_detect", false)));
  EXPECT_THAT(on_device(cores), ElementsAre(Pair("camera_detect", false), Pair("fusion", false),
                                            Pair("lidar_detect", false), Pair("radar_detect", false)));
  const pipeline::RunData mixed = run(loaded(harness(), exec::Exchange::kInPlace, file("device: cpu, ")));
  EXPECT_FALSE(on_device(mixed)["fusion"]);
  EXPECT_TRUE(on_device(mixed)["lidar_detect"]);
  for (std::size_t t = 0; t < cores.digests.size(); ++t) {
    EXPECT_EQ(mixed.digests[t].digest, cores.digests[t].digest) << cores.digests[t].topic;
  }
}

// Whose job it is, that one is refused, and nobody else's; what a lost device or one that hangs was to do is not
// published.
TEST_F(LidarPipeline, ADeviceFailsTheJobsThatAreNamed) {
  using Kind = pipeline::DeviceFault::Kind;
  const pipeline::PipelineConfig config = loaded(harness(), exec::Exchange::kInPlace, file());
  const auto stage = [&](const std::string& name) {
    std::uint32_t s = 0;
    while (config.stages[s].name != name) ++s;
    return s;
  };
  const auto failed = [&](const pipeline::RunData& data) {
    std::vector<std::string> out;
    for (const sched::JobRecord& record : data.records) {
      if (record.reason != sched::Reason::kDevice) continue;
      EXPECT_EQ(record.published, 0U);
      out.push_back(data.problem.stages[record.stage].name + "#" + std::to_string(record.job) +
                    (record.actual_start == sched::kNever ? " skipped" : ""));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  pipeline::FaultPlan plan;
  plan.devices = {{"", Kind::kRefuse, stage("lidar_detect"), 1, 1}, {"", Kind::kRefuse, stage("fusion"), 4, 2}};
  EXPECT_THAT(failed(run(config, transport::Backend::kLocal, &plan)),
              ElementsAre("fusion#4", "fusion#5", "lidar_detect#1"));
  for (const Kind kind : {Kind::kLose, Kind::kHang}) {
    plan.devices = {{"", kind, stage("fusion"), 4, 1}};
    const pipeline::RunData data = run(config, transport::Backend::kIceoryxEmbedded, &plan);
    const std::vector<std::string> jobs = failed(data);
    EXPECT_THAT(jobs, Contains("fusion#4"));
    EXPECT_THAT(jobs, Contains("fusion#5 skipped"));
    EXPECT_THAT(jobs, Contains("lidar_detect#3 skipped"));
    EXPECT_THAT(jobs, Not(Contains(HasSubstr("radar_detect"))));
    EXPECT_THAT(data.environment.warnings,
                Contains(HasSubstr(kind == Kind::kLose ? "as the fault file says" : "a job hangs")));
  }
}

// The camera's network in three slots: submission, the unit's work, completion.
class InSegments : public ::testing::Test {
 protected:
  static constexpr const char* kFile = "configs/pipelines/sim_segments.yaml";
  static pipeline::PipelineConfig on(std::shared_ptr<device::Device> device,
                                     exec::Exchange exchange = exec::Exchange::kInPlace) {
    return loaded(std::move(device), exchange, project(kFile));
  }
  static void expect_equal(const pipeline::RunData& data, const pipeline::RunData& expected) {
    ASSERT_EQ(data.digests.size(), expected.digests.size());
    for (std::size_t t = 0; t < data.digests.size(); ++t) {
      EXPECT_GT(data.digests[t].chunks, 2U) << data.digests[t].topic;
      EXPECT_EQ(data.digests[t].digest, expected.digests[t].digest) << data.digests[t].topic;
    }
  }
  static std::uint32_t camera_of(const pipeline::PipelineConfig& config) {
    return static_cast<std::uint32_t>(camera(config));
  }
};

TEST_F(InSegments, TheBytesAreThoseOfTheCores) {
  const pipeline::RunData cores = run(on(nullptr));  // in virtual time they may do the unit's work
  const pipeline::PipelineConfig config = on(harness());
  const pipeline::RunData device = run(config);
  expect_equal(device, cores);
  expect_equal(run(on(harness(), exec::Exchange::kCopies)), cores);
  const std::vector<sched::Segment>& planned = device.schedule.choices[camera_of(config)].budget.segments;
  ASSERT_EQ(planned.size(), 3U);
  std::size_t pictures = 0;
  for (const sched::JobRecord& record : device.records) {
    if (record.stage != camera_of(config)) {
      EXPECT_EQ(record.segment_count, 0);
      continue;
    }
    ++pictures;
    EXPECT_EQ(record.job_class, sched::JobClass::kOk);
    EXPECT_GT(record.launch_ns, 0);
    ASSERT_EQ(record.segment_count, 3);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(record.segments[i].end - record.segments[i].start, planned[i].time.ns);
      if (i > 0) {
        EXPECT_GE(record.segments[i].start, record.segments[i - 1].end);
      }
    }
  }
  EXPECT_EQ(pictures, 3 * kHyperperiods);
}

TEST_F(InSegments, ARefusedJobIsGivenUpAndTheRunIsReproduced) {
  using Kind = pipeline::DeviceFault::Kind;
  const pipeline::PipelineConfig config = on(harness());
  pipeline::FaultPlan plan;
  plan.devices = {{"", Kind::kRefuse, camera_of(config), 4, 1}};
  const pipeline::RunData data = run(config, transport::Backend::kLocal, &plan);
  for (const sched::JobRecord& record : data.records) {
    if (record.stage != camera_of(config)) continue;
    EXPECT_EQ(record.reason == sched::Reason::kDevice, record.job == 4);
    EXPECT_EQ(record.published, record.job == 4 ? 0 : 1);
  }
  pipeline::RunOptions options = lockstep(kDrive, transport::Backend::kLocal);
  options.max_hyperperiods = kHyperperiods;
  options.reproduce = &data;
  const auto again = pipeline::run_pipeline(on(harness()), data.schedule, options);
  ASSERT_TRUE(again) << again.error().message;
  expect_equal(*again, data);
}

// On the real clock, with a device that takes work and does nothing: what comes when is the table's business.
TEST_F(InSegments, OnTheRealClockTheUnitWorksInItsSlot) {
  const pipeline::PipelineConfig config = on(std::shared_ptr<device::Device>(&device::null(), [](device::Device*) {}));
  pipeline::RunOptions options;
  options.log_path = kDrive;
  options.backend = transport::Backend::kLocal;
  options.max_hyperperiods = 8;
  const sched::Schedule table = admitted(config.problem);
  const auto data = pipeline::run_pipeline(config, table, options);
  ASSERT_TRUE(data) << data.error().message;
  std::size_t whole = 0;
  for (const sched::JobRecord& record : data->records) {
    if (record.stage != camera_of(config) || record.actual_start == sched::kNever) continue;
    ASSERT_EQ(record.segment_count, 3);
    if (record.published == 0) continue;
    ++whole;
    for (const sched::Slot& slot : table.slots) {
      if (slot.stage != record.stage || slot.job != table.slots[record.slot].job) continue;
      EXPECT_GE(record.segments[slot.segment].start, table.clock.start_at(record.hyperperiod, slot.start).ns);
    }
  }
  EXPECT_GT(whole, 0U);
  options.log_path = kDrive;
  const auto alone = pipeline::run_pipeline(on(nullptr), table, options);
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message, HasSubstr("segment on unit 'gpu', but it runs on the cores"));
}

TEST_F(InSegments, OtherSegmentsAreRefused) {
  pipeline::PipelineConfig config = on(nullptr);
  sched::Schedule table = admitted(config.problem);
  std::vector<sched::Segment>& segments = table.choices[camera_of(config)].budget.segments;
  segments.insert(segments.begin(), segments.front());
  const auto run = pipeline::run_pipeline(config, table, lockstep(kDrive, transport::Backend::kLocal));
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kConfiguration);
  EXPECT_THAT(run.error().message, HasSubstr("its budget has 4 segments in another order"));
}

// No segment of a published job began before its slot. How many jobs had segments.
std::size_t expect_in_slots(const pipeline::RunData& data, const sched::Schedule& table) {
  std::size_t jobs = 0;
  for (const sched::JobRecord& record : data.records) {
    if (record.published == 0 || record.segment_count == 0) continue;
    ++jobs;
    for (const sched::Slot& slot : table.slots) {
      if (slot.stage != record.stage || slot.job != table.slots[record.slot].job) continue;
      EXPECT_GE(record.segments[slot.segment].start, table.clock.start_at(record.hyperperiod, slot.start).ns);
    }
  }
  return jobs;
}

// A long plan, the camera's, cut by the guard of its board, and a short one, fusion's, that runs five times in that
// time: a table can only give both theirs where the short one's slots lie between two of the long one's.
class CutSegments : public InSegments {
 protected:
  // How many segments plans have by a guard of `ms` on the board.
  static std::size_t cut_by(const std::string& stage, double ms) {
    const pipeline::DevicePlace place{
        {&device::null(), [](device::Device*) {}}, kernels::Target::kCudaSm87, exec::Exchange::kInPlace, false};
    const auto config = pipeline::load_pipeline(kPipeline, {}, place);
    EXPECT_TRUE(config) << config.error().message;
    const auto gpu = sched::load_gpu_figures(project("configs/boards/orin_nano.yaml"));
    EXPECT_TRUE(gpu) << gpu.error().message;
    for (const pipeline::StageConfig& one : config->stages) {
      if (one.name != stage) continue;
      const plan::Plan& plan = *one.variants.front().plan;
      const auto steps = exec::predicted_times(plan.description(), {gpu->gflops, gpu->gb_s, gpu->step});
      const auto cut = exec::cut_into_segments(plan, steps, Duration{static_cast<std::int64_t>(ms * 1e6)});
      EXPECT_TRUE(cut) << cut.error().message;
      return cut ? cut->cuts.size() + 1 : 0;
    }
    return 0;
  }
  static constexpr double kGuard = 0.3;  // ms
  static std::string on_gpu(std::size_t segments, double ms) {
    std::string text;
    for (std::size_t i = 0; i < segments; ++i) {
      text += "              - { on: gpu, ms: " + std::to_string(ms / static_cast<double>(segments)) +
              ", guard_ms: 0.1 }\n";
    }
    return text;
  }
  // `camera`: segments of the camera's plan, of 60 ms together.
  [[nodiscard]] std::string file(std::size_t camera, std::size_t fusion) const {
    std::string board = file_text(project("configs/boards/orin_nano.yaml"));
    replace(board, "guard_ms: 1}", "guard_ms: 0.3}");
    std::string text = file_text(project(kFile));
    replace(text, "../boards/orin_nano.yaml", folder_.write("board.yaml", board));
    replace(text, "../", project("configs/"));
    replace(text, "rates_hz: [30]", "rates_hz: [10]");
    replace(text, "              - { on: gpu, ms: 6, guard_ms: 1 }\n", on_gpu(camera, 60));
    replace(text, "{ name: full, device: cpu, budgets: [{ cores: 1, ms: 6 }] }",
            "name: full\n        budgets:\n          - cores: 1\n            segments:\n"
            "              - { on: cores, ms: 4 }\n" +
                on_gpu(fusion, 4) + "              - { on: cores, ms: 4 }");
    replace(text, "type: fusion_tracker\n    rates_hz: [20]", "type: fusion_tracker\n    rates_hz: [40]");
    return folder_.write("pipeline.yaml", text);
  }
  // Jobs of fusion whose whole work on the unit lies between two segments of one job of the camera.
  static std::size_t between(const pipeline::RunData& data, std::uint32_t camera, std::uint32_t fusion) {
    std::size_t found = 0;
    for (const sched::JobRecord& job : data.records) {
      if (job.stage != fusion || job.published == 0) continue;
      for (const sched::JobRecord& other : data.records) {
        if (other.stage != camera || other.published == 0) continue;
        for (std::size_t i = 1; i + 2 < other.segment_count; ++i) {
          if (other.segments[i].end <= job.segments[1].start &&
              job.segments[job.segment_count - 2].end <= other.segments[i + 1].start) {
            ++found;
          }
        }
      }
    }
    return found;
  }

 private:
  Folder folder_;
};

TEST_F(CutSegments, AShortJobRunsBetweenTwoSegmentsOfALongOne) {
  const std::size_t long_one = cut_by("camera_detect", kGuard), short_one = cut_by("fusion", kGuard);
  ASSERT_GE(long_one, 3U);
  // As one block the long one keeps the unit from the others.
  const pipeline::PipelineConfig whole = loaded(nullptr, exec::Exchange::kInPlace, file(1, short_one));
  EXPECT_NE(sched::synthesize(whole.problem, {}).verdict, sched::Verdict::kFeasible);

  const std::string cut = file(long_one, short_one);
  const pipeline::PipelineConfig config = loaded(harness(), exec::Exchange::kInPlace, cut);
  const std::uint32_t long_stage = camera_of(config), short_stage = 3;
  ASSERT_EQ(config.stages[short_stage].name, "fusion");
  EXPECT_EQ(config.stages[long_stage].variants.front().submissions.cuts.size() + 1, long_one);
  const pipeline::RunData cores = run(loaded(nullptr, exec::Exchange::kInPlace, cut));
  const pipeline::RunData device = run(config);
  expect_equal(device, cores);
  EXPECT_GT(between(device, long_stage, short_stage), 0U);
  for (const sched::JobRecord& record : device.records) {
    EXPECT_EQ(record.flags & (sched::kFlagOverrun | sched::kFlagLateStart), 0U);
    if (record.stage != long_stage || record.published == 0) continue;
    EXPECT_EQ(record.segment_count, long_one + 2);
    EXPECT_GT(record.device_ns, 0);
  }

  // On the real clock, where the device takes work and does nothing: each segment in its slot.
  const pipeline::PipelineConfig null =
      loaded({&device::null(), [](device::Device*) {}}, exec::Exchange::kInPlace, cut);
  pipeline::RunOptions options;
  options.log_path = kDrive;
  options.backend = transport::Backend::kLocal;
  options.max_hyperperiods = 8;
  const sched::Schedule table = admitted(null.problem);
  std::size_t found = 0;
  for (int tries = 0; found == 0 && tries < 5; ++tries) {  // a machine that stands still may keep jobs from their slots
    const auto data = pipeline::run_pipeline(null, table, options);
    ASSERT_TRUE(data) << data.error().message;
    found = between(*data, long_stage, short_stage);
    expect_in_slots(*data, table);
  }
  EXPECT_GT(found, 0U);
}

TEST_F(CutSegments, OtherSegmentsThanThePlanIsCutIntoAreRefused) {
  const std::size_t long_one = cut_by("camera_detect", kGuard), short_one = cut_by("fusion", kGuard);
  const std::string path = file(long_one + 1, short_one);
  const auto refused =
      pipeline::load_pipeline(path, {}, {harness(), kernels::Target::kCudaSm87, exec::Exchange::kInPlace});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  EXPECT_THAT(refused.error().message, HasSubstr(path + ":24:15: stages[0].variants[0].budgets[0].segments: "));
  EXPECT_THAT(refused.error().message,
              HasSubstr("stage 'camera_detect', variant 'full': the budget has " + std::to_string(long_one + 1) +
                        " segments on 'gpu', and the guard of 0.300 ms cuts the plan into " + std::to_string(long_one) +
                        ". Where: takt compile " + path + " --stage camera_detect/full --target cuda:sm_87"));
  EXPECT_THAT(refused.error().message, HasSubstr("takt plan show camera_detect.plan --board "));
  EXPECT_THAT(refused.error().message, HasSubstr(" --unit gpu"));
}

// A GPU with memory of its own: copies have slots on the engines of their directions.
class Copies : public InSegments {
 protected:
  static constexpr const char* kFile = "configs/pipelines/sim_copies.yaml";
  static pipeline::PipelineConfig on(std::shared_ptr<device::Device> device, const std::string& file = project(kFile)) {
    return loaded(std::move(device), exec::Exchange::kCopies, file);
  }
  // Some copy of one stage goes on while the unit works for another one.
  static bool overlap(const pipeline::PipelineConfig& config, const sched::Schedule& table) {
    const auto kind = [&](const sched::Slot& slot) { return config.problem.board.units[*slot.unit].kind; };
    for (const sched::Slot& copy : table.slots) {
      if (!copy.unit || kind(copy) != sched::UnitKind::kCopyEngine) continue;
      for (const sched::Slot& work : table.slots) {
        if (!work.unit || kind(work) != sched::UnitKind::kGpuPartition || work.stage == copy.stage) continue;
        if (copy.start < work.end && work.start < copy.end) return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::string file(const std::string& text) const {
    std::string own = text;
    replace(own, "../", project("configs/"));
    return folder_.write("copies.yaml", own);
  }
  Folder folder_;
};

TEST_F(Copies, HaveSlotsOfTheirOwnAndTheBytesOfTheCores) {
  const pipeline::RunData cores = run(on(nullptr));
  const pipeline::PipelineConfig config = on(harness());
  const pipeline::RunData device = run(config);
  expect_equal(device, cores);
  for (const sched::JobRecord& record : device.records) {
    const bool beside = config.stages[record.stage].variants.front().on_device;
    if (record.published == 0) continue;
    EXPECT_EQ(record.segment_count, beside ? 5 : 0);
    EXPECT_EQ(record.copied_bytes, 0U) << "a timed thread copied";
  }
  EXPECT_THAT(notes_of(device), HasSubstr("; plan sim_camera_full: 737344 bytes in and "));
  // On the real clock all five are in their slots.
  const pipeline::PipelineConfig null = on({&device::null(), [](device::Device*) {}});
  pipeline::RunOptions options;
  options.log_path = kDrive;
  options.backend = transport::Backend::kLocal;
  options.max_hyperperiods = 4;
  const sched::Schedule table = admitted(null.problem);
  std::size_t whole = 0;
  for (int tries = 0; whole == 0 && tries < 5; ++tries) {  // a machine that stands still may keep jobs from their slots
    const auto data = pipeline::run_pipeline(null, table, options);
    ASSERT_TRUE(data) << data.error().message;
    whole = expect_in_slots(*data, table);
  }
  EXPECT_GT(whole, 0U);
}

// 76 ms of the camera's and 28 ms of fusion's in 100 ms: only where copies of one go on beside the other's kernels.
TEST_F(Copies, GoOnWhileTheUnitWorksForOthers) {
  std::string text = file_text(project(kFile));
  replace(text, "rates_hz: [30]", "rates_hz: [10]");
  replace(text, "{ on: gpu, ms: 3, guard_ms: 1 }", "{ on: gpu, ms: 60, guard_ms: 1 }");
  replace(text, "{ on: gpu, ms: 2, guard_ms: 1 }", "{ on: gpu, ms: 4, guard_ms: 1 }");
  const std::size_t fusion = text.find("type: fusion_tracker");
  std::string camera = text.substr(0, fusion);
  text = text.substr(fusion);
  for (const std::string engine : {"h2d", "d2h"}) {
    replace(camera, "{ on: " + engine + ", ms: 0.1 }", "{ on: " + engine + ", ms: 8 }");
    replace(text, "{ on: " + engine + ", ms: 0.1 }", "{ on: " + engine + ", ms: 5 }");
  }
  const std::string path = file(camera + text);
  const pipeline::PipelineConfig config = on(harness(), path);
  EXPECT_TRUE(overlap(config, admitted(config.problem)));
  expect_equal(run(config), run(on(nullptr, path)));
}

TEST_F(Copies, AreRefusedWhereNothingIsCopiedOrThereIsTooLittleTime) {
  const std::string path = project(kFile);
  const auto in_place =
      pipeline::load_pipeline(path, {}, {harness(), kernels::Target::kCudaSm87, exec::Exchange::kInPlace});
  ASSERT_FALSE(in_place);
  EXPECT_THAT(
      in_place.error().message,
      HasSubstr("nothing is copied on 'h2d': this device reads chunks in place. Leave that segment out, or copy "
                "with --device-memory copied"));
  std::string text = file_text(path);
  replace(text, "{ on: h2d, ms: 0.1 }", "{ on: h2d, ms: 0.01 }");
  const auto short_of =
      pipeline::load_pipeline(file(text), {}, {harness(), kernels::Target::kCudaSm87, exec::Exchange::kCopies});
  ASSERT_FALSE(short_of);
  EXPECT_THAT(short_of.error().message, HasSubstr("copying 737344 bytes takes at least 0.012 ms on 'h2d'"));
  EXPECT_THAT(short_of.error().message, HasSubstr("its segment has 0.010 ms"));
}

// Fusion's segments, copies among them, through a budgets file back into the problem.
TEST_F(Copies, AreProfiledWithTheirSegments) {
  std::string text = file_text(project(kFile));
  const std::size_t begin = text.find("          - cores: 1\n            segments:"),
                    end = text.find("    overrun:", begin);
  text.replace(begin, end - begin,
               "          - { cores: 1, ms: 6 }\n");  // the camera's, of whom there would be too much to do
  replace(text, "model: ../models/sim_camera_full.yaml", "model: ../models/sim_camera_full.yaml\n        device: cpu");
  const pipeline::PipelineConfig config = on(harness(), file(text));
  pipeline::ProfileOptions options;
  options.beside = {pipeline::Beside::kAlone};
  options.samples = 10;
  options.warm_up = 2;
  const auto profile = pipeline::profile_stages(config, options);
  ASSERT_TRUE(profile) << profile.error().message;
  const pipeline::ProfileRow& row = profile->rows.back();
  ASSERT_EQ(row.stage, "fusion");
  ASSERT_EQ(row.segments.size(), 5U);
  ASSERT_EQ(row.budget.segments.size(), 5U);
  Duration sum;
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_GE(row.budget.segments[i].time, row.segments[i].time);
    EXPECT_GE(row.segments[i].time, row.segments[i].on_device);
    EXPECT_EQ(row.segments[i].launch.ns > 0, row.budget.segments[i].unit.has_value());
    sum += row.budget.segments[i].time;
  }
  EXPECT_GT(row.segments[2].on_device.ns, 0);
  EXPECT_EQ(row.budget.time, sum);
  EXPECT_EQ(row.budget.provenance, sched::Provenance::kExploratory);
  EXPECT_TRUE(profile->rows.front().segments.empty());

  const Folder folder;
  const std::string path = folder.write("budgets.yaml", sched::to_yaml(pipeline::budget_table(config, *profile)));
  const auto table = sched::load_budgets(path);
  ASSERT_TRUE(table) << table.error().message;
  sched::Problem problem = config.problem;
  ASSERT_TRUE(sched::apply_budgets(problem, *table));
  const sched::Budget& applied = problem.stages[3].variants[0].budgets[0];
  const sched::Budget& declared = config.problem.stages[3].variants[0].budgets[0];
  ASSERT_EQ(applied.segments.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(applied.segments[i].unit, declared.segments[i].unit);
    EXPECT_EQ(applied.segments[i].guard, declared.segments[i].guard);
    EXPECT_EQ(applied.segments[i].time, row.budget.segments[i].time);
  }
  EXPECT_TRUE(sched::check(problem)) << "what was measured is a sound problem";
  // Of jobs in other segments they say nothing; nor do cores of segments on a device.
  problem.stages[3].variants[0].budgets[0].segments.clear();
  const Status other = sched::apply_budgets(problem, *table);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              HasSubstr("budgets give 5 segments for variant 'full' of stage 'fusion', whose jobs "
                        "have one time"));
  // Nothing is measured of jobs that the device refused, or when it is lost.
  const std::shared_ptr<device::Device> inner = harness();
  for (const bool lost : {false, true}) {
    const std::shared_ptr<device::FaultDevice> faulty =
        device::FaultDevice::create(*inner, {.reject = lost ? 0ULL : 5ULL});
    pipeline::ProfileOptions until = options;
    until.progress = [&](double done, double) {
      if (lost && done == 40) faulty->lose("pulled out");  // of 48 jobs, 12 of each stage
    };
    const auto failed = pipeline::profile_stages(on(faulty, file(text)), until);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kEnvironment);
    EXPECT_THAT(failed.error().message, HasSubstr("stage 'fusion', variant 'full', beside alone: its device "));
    EXPECT_THAT(failed.error().message,
                HasSubstr(lost ? "is lost: pulled out; nothing was written" : "refused submission 2 of 3 of a job"));
  }
  const auto cores = pipeline::profile_stages(on(nullptr), options);
  ASSERT_FALSE(cores);
  EXPECT_THAT(cores.error().message, HasSubstr("name the device with --device"));
}

// The networks in f16, an object for an object.
TEST_F(OnDevice, InF16TheObjectsAreThoseOfF32) {
  const Folder folder;
  std::string text = file_text(kPipeline);
  replace(text, "../", project("configs/"));
  replace(text, "sim_camera_full.yaml,", "sim_camera_full.yaml, precision: f16,");
  const std::string path = folder.write("f16.yaml", text);
  const pipeline::PipelineConfig config = loaded(harness(), exec::Exchange::kInPlace, path);
  const auto stage = static_cast<std::uint32_t>(camera(config));
  const pipeline::RunData data = run(config);
  EXPECT_GE(matched(*on_cores, data, stage), 5U);
  EXPECT_GE(matched(data, *on_cores, stage), 5U);
  // Other bytes: it did run in f16.
  bool other = false;
  for (std::size_t t = 0; t < data.digests.size(); ++t) other |= data.digests[t].digest != on_cores->digests[t].digest;
  EXPECT_TRUE(other);

  const auto refused = pipeline::load_pipeline(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  EXPECT_THAT(refused.error().message, HasSubstr("plans for the cores have no f16: name a GPU with --device"));
  EXPECT_THAT(refused.error().message, HasSubstr(path + ":"));
  replace(text, "precision: f16,", "precision: f16, device: cpu,");
  replace(text, "{ name: full, budgets: [{ cores: 1, ms: 4 }] }",
          "{ name: full, precision: f16, budgets: [{ cores: 1, ms: 4 }] }");
  const auto both = pipeline::load_pipeline(folder.write("both.yaml", text), {},
                                            {harness(), kernels::Target::kCudaSm87, exec::Exchange::kInPlace});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("leave out 'device: cpu' or 'precision'"));
  EXPECT_THAT(both.error().message,
              HasSubstr("only variants of type camera_network and lidar_network have a precision"));
}

// The same table with fewer workers, where the budget for them is for other segments than the table has slots for.
TEST_F(InSegments, AGangOfOtherSegmentsDoesNotFitTheSlots) {
  const pipeline::PipelineConfig config = on(nullptr);
  sched::Problem problem = config.problem;
  sched::Schedule table = admitted(problem);
  sched::Budget& planned = table.choices[camera_of(config)].budget;
  planned.cores = 2;
  std::vector<sched::Budget>& budgets = problem.stages[camera_of(config)].variants[0].budgets;
  EXPECT_TRUE(pipeline::with_cores(problem, table, "camera_detect", 1)) << "the same segments";
  budgets[0].segments.clear();
  const auto refused = pipeline::with_cores(problem, table, "camera_detect", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  EXPECT_THAT(refused.error().message, HasSubstr("has other segments than its slots are for"));
}

TEST_F(OnDevice, RawHeadTensorsAreThoseOfTheCores) {
  const pipeline::PipelineConfig cores = loaded(nullptr, exec::Exchange::kInPlace);
  const pipeline::PipelineConfig device = loaded(harness(), exec::Exchange::kInPlace);
  const std::size_t s = camera(cores);
  std::vector<std::vector<std::byte>> heads[2];
  for (const bool on_device : {false, true}) {
    auto stage = (on_device ? device : cores).create(s, 0);
    ASSERT_TRUE(stage) << stage.error().message;
    auto memory = memory::AlignedBuffer::create(sensors::payload_capacity(*cores.stages[s].connections[0].sensor));
    ASSERT_TRUE(memory);
    transport::ChunkHeader header, out_header;
    (*stage)->adversarial_input(0, 7, header, memory->span());
    pipeline::StageInput input;
    input.chunk = {&header, memory->data()};
    auto out = memory::AlignedBuffer::create((*stage)->output_bytes());
    ASSERT_TRUE(out);
    pipeline::StageJob job;
    job.inputs = {&input, 1};
    job.output_header = &out_header;
    job.output = out->data();
    for (int phase = 0; phase < (*stage)->phases(); ++phase) (*stage)->run(phase, 0, 1, job);
    EXPECT_FALSE(job.failed);
    const exec::Session& session = *(*stage)->session();
    EXPECT_EQ(session.device().properties().name, on_device ? "cuda-host" : "cpu");
    for (const std::uint32_t tensor : session.plan().description().outputs) {
      const auto bytes = session.tensor(tensor);
      ASSERT_FALSE(bytes.empty());
      heads[on_device].emplace_back(bytes.begin(), bytes.end());
    }
  }
  ASSERT_EQ(heads[0].size(), heads[1].size());
  // Far inside 1e-5 x sum |a||w|: the same chain of fused multiply-adds.
  EXPECT_EQ(heads[0], heads[1]);
}

}  // namespace
}  // namespace takt::test
