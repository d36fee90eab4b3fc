// Stages with state on a device beside the cores (the SIMT harness): the bytes of the cores, nothing copied, and what
// survives when a job is given up, refused, lost or hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/table.h"
#include "pipeline/models/lidar_model.h"
#include "pipeline/stages/lidar_network.h"
#include "runtime/base/digest.h"
#include "runtime/device/cuda_host.h"
#include "runtime/device/fault.h"
#include "runtime/exec/offload.h"
#include "runtime/exec/state.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/pipeline/stages/fusion_fixture.h"
#include "tests/pipeline/stages/stage_fixture.h"

namespace takt::pipeline::testing {
namespace {

using kernels::Target;

constexpr std::uint32_t kPoints = 500;
constexpr std::uint32_t kObjects = 24;  // of a list: the harness is slow
constexpr std::int64_t kMs = 1'000'000;

sensors::Rig rig_of(const std::string& type) {
  sensors::Rig rig;
  rig.sensors = {lidar_sensor(kPoints), ego_sensor()};
  if (type == "fusion_tracker") rig.sensors.insert(rig.sensors.begin() + 1, radar_sensor(100));
  return rig;
}

// The stage over a rig of its own, for cores or for a device.
struct Recipe {
  std::string type;
  sensors::Rig rig = rig_of(type);
  StageSpec spec;

  explicit Recipe(const std::string& of) : type(of) {
    spec.type = spec.name = type;
    spec.variant = "full";
    spec.rig = &rig;
    for (std::size_t i = 0; i < rig.sensors.size(); ++i) {
      StageConnection& c = spec.inputs.emplace_back();
      c.name = rig.sensors[i].name;
      c.sensor_index = i;
      const bool direct = type == "lidar_network" || rig.sensors[i].kind == sensors::SensorKind::kEgo;
      if (direct) c.sensor = &rig.sensors[i];
      c.schema = direct ? std::uint32_t{sensors::kEgoMotionSchema} : std::uint32_t{kObjectListSchema};
    }
  }
  Recipe(const Recipe&) = delete;
  Recipe& operator=(const Recipe&) = delete;

  std::shared_ptr<const plan::Plan> plan(Target target) {
    if (type == "fusion_tracker") {
      const auto sources = fusion_sources(spec, model());
      auto compiled = compile_fusion(model(), *sources, spec.inputs.size(), {1}, target);
      EXPECT_TRUE(compiled) << compiled.error().message;
      return compiled ? *compiled : nullptr;
    }
    auto lidar = load_lidar_model(TAKT_SOURCE_DIR "/configs/models/lidar_pillars.yaml");
    EXPECT_TRUE(lidar) << lidar.error().message;
    lidar->network.channels = {8, 8};
    lidar->network.convs = {0, 0};
    lidar->network.neck = 8;
    lidar->network.pillar = {3.2F, 3.2F};
    lidar->network.pillars = 200;
    lidar->network.boxes = 40;
    spec.model = std::make_shared<const ModelContract>(lidar->contract);
    auto compiled = compile_lidar_model(*lidar, rig.sensors[0], {1}, target);
    EXPECT_TRUE(compiled) << compiled.error().message;
    return compiled ? *compiled : nullptr;
  }
  std::unique_ptr<Stage> make(Target target, std::shared_ptr<exec::Accelerator> accelerator = nullptr,
                              std::shared_ptr<exec::StateStore> state = nullptr) {
    spec.plan = plan(target);
    spec.accelerator = std::move(accelerator);
    spec.state = std::move(state);
    const auto parameters = YamlDocument::parse(type == "lidar_network" ? "{score_min: 0}" : "{}", "test.yaml");
    auto stage = create_stage(spec, parameters->root());
    EXPECT_TRUE(stage) << stage.error().message;
    return stage ? *std::move(stage) : nullptr;
  }
  static FusionModel model() { return read_fusion_model(YamlDocument::parse("{}", "test").value().root()); }
};

struct Did {
  bool failed = false;
  Digest digest;
  std::uint64_t bytes = 0;
  Duration launch, on_device;
  memory::ThreadCounters spent;
  friend bool operator==(const Did& a, const Did& b) { return a.failed == b.failed && a.digest == b.digest; }
};

// Jobs over inputs in one block, which devices are shown: each job finds its chunks elsewhere.
class OnDevice : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    memory_ = *memory::AlignedBuffer::create(std::uint64_t{4} << 20);
    harness_ = device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 3});
    device_ = device::FaultDevice::create(*harness_, {});
    place(exec::Exchange::kInPlace, seconds(2));
  }
  void place(exec::Exchange exchange, Duration patience) {
    accelerator_ = std::make_shared<exec::Accelerator>(std::shared_ptr<device::Device>(device_), exchange, patience);
    ASSERT_TRUE(accelerator_->lend(memory_.span()));
  }

  // Job `n`; hostile inputs in every third, nothing from one input in every fifth.
  Did run(Stage& stage, std::uint32_t n, bool publish = true) {
    const std::size_t inputs = recipe_.spec.inputs.size();
    std::byte* next = memory_.data() + (n % 7) * 64;
    const auto chunk = [&next](std::uint64_t bytes) {
      std::byte* const at = next;
      next += (bytes + 127) / 64 * 64;
      return std::span(at, bytes);
    };
    std::vector<transport::ChunkHeader> headers(inputs + 1);
    std::vector<StageInput> given(inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
      const bool ego = recipe_.rig.sensors[i].kind == sensors::SensorKind::kEgo;
      const std::uint64_t bytes = ego                               ? sensors::EgoMotion::bytes_for()
                                  : recipe_.type == "lidar_network" ? sensors::PointCloud::bytes_for(kPoints)
                                                                    : sizeof(ObjectList);
      const std::span<std::byte> payload = chunk(bytes);
      headers[i].capture_ns = (n + 1) * 100 * kMs;
      stage.adversarial_input(i, n + 1, headers[i], payload);
      if (recipe_.type == "fusion_tracker" && !ego) {
        reinterpret_cast<ObjectList*>(payload.data())->count = n % 3 == 2 ? kObjects : kObjects / 2 + n % 5;
      }
      if (n % 5 == 3 && i == 1) continue;
      given[i] = {{&headers[i], payload.data()}, false, false};
    }
    const std::span<std::byte> output = chunk(stage.output_bytes());
    std::fill(output.begin(), output.end(), std::byte{0xA5});
    StageJob job;
    job.number = n;
    job.now = {(n + 1) * 100 * kMs + 10 * kMs};
    job.inputs = given;
    job.output_header = &headers.back();
    job.output = output.data();
    Did did;
    const memory::ThreadCounters before = memory::thread_counters();
    for (int phase = 0; phase < stage.phases(); ++phase) stage.run(phase, 0, 1, job);
    did.spent = memory::thread_counters() - before;
    if (publish && !job.failed) stage.published();
    did.failed = job.failed;
    did.bytes = headers.back().payload_bytes;
    did.launch = job.launch;
    did.on_device = job.on_device;
    if (!job.failed) did.digest = digest(std::span<const std::byte>(output.first(headers.back().payload_bytes)));
    return did;
  }

  Recipe recipe_{GetParam()};
  memory::AlignedBuffer memory_;
  std::unique_ptr<device::CudaHost> harness_;
  std::shared_ptr<device::FaultDevice> device_;
  std::shared_ptr<exec::Accelerator> accelerator_;
};
INSTANTIATE_TEST_SUITE_P(Stages, OnDevice, ::testing::Values("lidar_network", "fusion_tracker"),
                         [](const auto& test) { return test.param; });

TEST_P(OnDevice, GivesTheBytesOfTheCoresWhereverChunksLie) {
  const auto cores = recipe_.make(kernels::best_target());
  const auto device = recipe_.make(Target::kCudaSm87, accelerator_);
  ASSERT_NE(device->offload(), nullptr);
  EXPECT_EQ(cores->offload(), nullptr);
  std::vector<Digest> seen;
  for (std::uint32_t n = 0; n < 9; ++n) {
    // Both give up the fifth job behind its work; the device refuses the seventh.
    const bool published = n != 4 && n != 6;
    const Did wanted = run(*cores, n, published);
    if (n == 6) device_->reject_next();
    const Did found = run(*device, n, published);
    EXPECT_EQ(found.failed, n == 6) << n;
    if (n != 6) {
      EXPECT_EQ(found.digest, wanted.digest) << n;
    }
    EXPECT_EQ(wanted.on_device.ns + wanted.launch.ns, 0) << "on the cores";
    EXPECT_GT(found.on_device.ns, 0);
    EXPECT_GT(found.launch.ns, 0);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), wanted.digest), 0);
    seen.push_back(wanted.digest);
    if (n == 8) {
      EXPECT_GT(wanted.bytes, 1000U) << "objects or tracks";
    }
    if (n > 0 && memory::guard_available()) {
      EXPECT_EQ(found.spent.allocations, 0U) << n;
      EXPECT_LT(found.spent.copied_bytes, 64U << 10) << n;
    }
  }
  EXPECT_EQ(device->offload()->copied_bytes(), 0U);
}

TEST_P(OnDevice, CopiesOfChunksGiveTheSame) {
  place(exec::Exchange::kCopies, seconds(2));
  const auto cores = recipe_.make(kernels::best_target());
  const auto device = recipe_.make(Target::kCudaSm87, accelerator_);
  for (std::uint32_t n = 0; n < 4; ++n) EXPECT_EQ(run(*device, n), run(*cores, n)) << n;
  EXPECT_GT(device->offload()->copied_bytes(), 0U);
}

// A variant on the cores goes on with what the device published last, as if the job that was lost had been given up.
TEST_P(OnDevice, CoresGoOnWhereALostDeviceHadPublished) {
  const auto alone = recipe_.make(kernels::best_target());
  const auto state = *exec::StateStore::create(recipe_.plan(Target::kCudaSm87), *device_);
  const auto device = recipe_.make(Target::kCudaSm87, accelerator_, state);
  const auto cores = recipe_.make(kernels::best_target(), nullptr, state);
  for (std::uint32_t n = 0; n < 7; ++n) {
    const Did wanted = run(*alone, n, n != 3);
    if (n == 3) device_->lose("the test says so");
    // Both run in turns before.
    const Did found = run(n < 2 || n == 3 ? *device : *cores, n);
    EXPECT_EQ(found.failed, n == 3);
    if (n != 3) {
      EXPECT_EQ(found.digest, wanted.digest) << n;
    }
  }
  EXPECT_NE(device->offload()->lost(), nullptr);
}

// So it does when a kernel hangs, and when it writes at last nobody reads that.
TEST_P(OnDevice, CoresGoOnWhereADeviceHangs) {
  place(exec::Exchange::kInPlace, milliseconds(20));
  const auto alone = recipe_.make(kernels::best_target());
  const auto state = *exec::StateStore::create(recipe_.plan(Target::kCudaSm87), *device_);
  const auto device = recipe_.make(Target::kCudaSm87, accelerator_, state);
  const auto cores = recipe_.make(kernels::best_target(), nullptr, state);
  for (std::uint32_t n = 0; n < 7; ++n) {
    const Did wanted = run(*alone, n, n != 2);
    if (n == 2) device_->hold(true);
    const Did found = run(n < 3 ? *device : *cores, n);
    EXPECT_EQ(found.failed, n == 2);
    if (n != 2) {
      EXPECT_EQ(found.digest, wanted.digest) << n;
    }
    if (n == 2) {
      EXPECT_TRUE(device->offload()->in_flight());
    }
    if (n == 4) {
      device_->hold(false);
      EXPECT_TRUE(device->offload()->settle(seconds(10)));
    }
  }
  EXPECT_THAT(device->offload()->lost(), ::testing::HasSubstr("hangs"));
}

}  // namespace
}  // namespace takt::pipeline::testing
