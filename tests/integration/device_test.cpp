// The shipped pipeline with its network on a device beside the cores: CUDA plans through the harness, byte for byte
// what the cores compute, whichever way chunks get there.
#include <gmock/gmock.h>
#include <cmath>

#include "kernels/cuda/table.h"
#include "pipeline/report/verdict.h"
#include "runtime/device/cuda_host.h"
#include "runtime/device/fault.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kHyperperiods = 4;  // twelve pictures

std::shared_ptr<device::Device> harness() {
  return device::CudaHost::create(kernels::cuda::simt::launch_of, {.seed = 1});
}

pipeline::PipelineConfig loaded(std::shared_ptr<device::Device> device, exec::Exchange exchange) {
  auto config = pipeline::load_pipeline(kPipeline, {}, {std::move(device), kernels::Target::kCudaSm87, exchange});
  EXPECT_TRUE(config) << config.error().message;
  return config ? *std::move(config) : pipeline::PipelineConfig{};
}

pipeline::RunData run(const pipeline::PipelineConfig& config, transport::Backend backend = transport::Backend::kLocal) {
  pipeline::RunOptions options = lockstep(kDrive, backend);
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
  EXPECT_THAT(notes_of(data),
              HasSubstr("networks ran on device cuda-host (plans for cuda:sm_87), which reads chunks in "
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
