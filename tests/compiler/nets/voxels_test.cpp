// The voxel network as takt builds it: the plan gives what the reference gives, whatever the clouds hold; the ONNX file
// that tools/nets/voxels.py writes is the same network; and at its real size it runs on a recorded sweep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "compiler/compile.h"
#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/nets/voxels.h"
#include "compiler/onnx/import.h"
#include "runtime/base/file.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/compiler/nets/voxel_jobs.h"
#include "tests/support/python.h"
#include "tests/support/run_plan.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"

namespace takt::compiler {
namespace {

using namespace voxels;

std::shared_ptr<const plan::Plan> plan_of(const ir::Graph& graph, kernels::Target target) {
  Options options;
  options.target = target;
  const auto bytes = compile(graph, {}, options);
  EXPECT_TRUE(bytes) << bytes.error().message;
  if (!bytes) return nullptr;
  const auto plan = plan::Plan::parse(*bytes);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : nullptr;
}

std::int32_t number_of(const plan::Plan& plan, const std::vector<Bytes>& outputs, std::string_view name) {
  const auto slot = plan.find_output(name);
  EXPECT_TRUE(slot) << name;
  std::int32_t value = -1;
  if (slot) std::memcpy(&value, outputs[*slot].data(), sizeof value);
  return value;
}

// Outputs, rows behind the count cut away.
std::vector<Bytes> run(const std::shared_ptr<const plan::Plan>& plan, const std::vector<Bytes>& inputs, int parts,
                       int fill) {
  std::vector<Bytes> out = test::run_plan(plan, inputs, parts, fill);
  const auto count = static_cast<std::size_t>(number_of(*plan, out, "count"));
  const plan::Description& d = plan->description();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const plan::Tensor& t = d.tensors[d.outputs[i]];
    if (t.count != plan::kNone) out[i].resize(out[i].size() / static_cast<std::size_t>(t.shape.dims[0]) * count);
  }
  return out;
}

TEST(VoxelNetwork, PlansGiveWhatTheReferenceGivesWhateverTheSweepsHold) {
  const auto graph = voxel_network(small());
  ASSERT_TRUE(graph) << graph.error().message;
  const std::vector<std::vector<Bytes>> jobs = all_jobs();
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    std::vector<ir::Constant> constants;
    for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
      const ir::Type& type = *(*graph)[graph->inputs[i]].type;
      constants.push_back({type.dtype, type.shape, jobs[job][i]});
    }
    const auto values = ir::interpret(*graph, constants);
    ASSERT_TRUE(values) << values.error().message;
    for (const kernels::Target target : test::targets_of_this_machine()) {
      const auto plan = plan_of(*graph, target);
      ASSERT_NE(plan, nullptr);
      EXPECT_EQ(plan->description().arena_bytes, plan->description().lower_bound);
      const auto found = run(plan, jobs[job], 1, 0x7f);
      EXPECT_EQ(run(plan, jobs[job], 2, 0xff), found) << "parts or what lay there before change bytes";
      for (std::size_t i = 0; i < graph->outputs.size(); ++i) {
        const ir::Constant& wanted = (*values)[static_cast<std::size_t>(graph->outputs[i])];
        for (std::size_t e = 0; e < found[i].size() / 4; ++e) {
          float a = 0, b = 0;
          std::memcpy(&a, found[i].data() + 4 * e, 4);
          std::memcpy(&b, wanted.bytes.data() + 4 * e, 4);
          if (wanted.dtype == ir::DType::kF32) {
            ASSERT_NEAR(a, b, 1e-3 * std::max(1.0F, std::fabs(b))) << (*graph)[graph->outputs[i]].name;
          } else {
            ASSERT_EQ(std::memcmp(&a, &b, 4), 0) << job << ": " << (*graph)[graph->outputs[i]].name;
          }
        }
      }
      const auto number = [&](const char* name) { return number_of(*plan, found, name); };
      if (job == 0) {
        EXPECT_GT(number("voxels"), 300);
        EXPECT_GT(number("level1_dropped"), 0) << "the second resolution is meant to be too small";
        EXPECT_EQ(number("level1_count"), 300);
        EXPECT_GT(number("count"), 0);
      }
      if (job == 1 || job == 2 || job == 4) {
        EXPECT_EQ(number("voxels"), 0);
      }
      if (job == 3) {
        EXPECT_EQ(number("voxels"), 1);
        EXPECT_EQ(number("points_dropped"), 597);
      }
    }
  }
}

// The steps of a plan are few: what follows a sparse convolution is in it, and each resolution has one map.
TEST(VoxelNetwork, LayersAreFusedAndMapsAreShared) {
  const auto graph = voxel_network(small());
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = plan_of(*graph, test::targets_of_this_machine().front());
  ASSERT_NE(plan, nullptr);
  std::map<std::string, int> kernels;
  for (std::size_t s = 0; s < plan->description().steps.size(); ++s) ++kernels[plan->kernel(s).name];
  EXPECT_EQ(kernels["sparse_conv_f32"], 1 + 2 + 1 + 2 + 1);
  EXPECT_EQ(kernels["sparse_map"], 2 + 2);
  EXPECT_EQ(kernels["reference_counted"], 0) << "a sum or an activation of its own";
}

TEST(VoxelNetwork, RunsWithoutAllocation) {
  if (!memory::guard_available()) GTEST_SKIP() << "counting needs the interposed allocator (not under sanitizers)";
  const auto graph = voxel_network(small());
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = plan_of(*graph, test::targets_of_this_machine().back());
  ASSERT_NE(plan, nullptr);
  const auto session = exec::Session::create(plan);
  ASSERT_TRUE(session);
  const plan::Description& d = plan->description();
  std::vector<test::AlignedBytes> buffers;
  const std::vector<Bytes> inputs = inputs_of(1, 500);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    buffers.emplace_back(inputs[i].size());
    std::memcpy(buffers.back().span().data(), inputs[i].data(), inputs[i].size());
    ASSERT_TRUE((*session)->bind_input(i, buffers.back().span()));
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    buffers.emplace_back(d.tensors[d.outputs[i]].bytes);
    ASSERT_TRUE((*session)->bind_output(i, buffers.back().span()));
  }
  const memory::ThreadCounters before = memory::thread_counters();
  for (int i = 0; i < 20; ++i) (*session)->run();
  const memory::ThreadCounters used = memory::thread_counters() - before;
  EXPECT_EQ(used.allocations, 0U);
  EXPECT_EQ(used.copied_bytes, 0U);
}

TEST(VoxelNetwork, TheScriptWritesTheSameNetwork) {
  const std::string python = test::python_with_onnx();
  if (python.empty()) GTEST_SKIP() << "no Python here has numpy and onnx";
  const std::string file =
      (std::filesystem::temp_directory_path() / ("takt-voxels-" + std::to_string(::getpid()) + ".onnx")).string();
  const std::string command = python + " " TAKT_SOURCE_DIR "/tools/nets/voxels.py " + file +
                              " points=600 range=[-6.4,-6.4,-2.0,6.4,6.4,3.0] voxel=[0.4,0.4,0.5] points_per_voxel=3"
                              " capacities=[400,300] channels=[8,16] flat_cells=150 blocks=1 map_channels=[16,24]"
                              " map_convs=[1,1] neck=8 boxes=20";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto bytes = read_file(file);
  ASSERT_TRUE(bytes);
  std::filesystem::remove(file);
  const auto imported = import_onnx(std::as_bytes(std::span(bytes->data(), bytes->size())), {});
  ASSERT_TRUE(imported) << imported.error().message;
  const auto built = voxel_network(small());
  ASSERT_TRUE(built) << built.error().message;
  const kernels::Target target = test::targets_of_this_machine().back();
  const auto a = plan_of(*imported, target), b = plan_of(*built, target);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(a, inputs_of(i, 500), 1, 0), run(b, inputs_of(i, 500), 1, 0)) << i;
}

TEST(VoxelNetwork, SizesThatDoNotFitAreRefusedInWords) {
  VoxelNetwork n = small();
  n.capacities = {400};
  EXPECT_FALSE(voxel_network(n));
  n = small();
  n.voxel = {0, 0.4F, 0.5F};
  const auto graph = voxel_network(n);
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, ::testing::HasSubstr("holds no voxel"));
}

// At real density: PandaSet frame 20, voxels of 0.075 m. Equal bytes in one part and in two; what it costs is printed.
TEST(VoxelNetwork, RunsOnARecordedSweep) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto set = tools::open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  const auto sweep = tools::read_sweep(*set, 20);
  ASSERT_TRUE(sweep) << sweep.error().message;
  VoxelNetwork n;
  n.points = 120000;
  n.map_channels = {64, 64};
  n.map_convs = {1, 1};
  std::vector<float> rows(static_cast<std::size_t>(n.points) * 5, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < sweep->size(); ++i) {
    const std::int16_t cm[] = {sweep->x_cm[i], sweep->y_cm[i], sweep->z_cm[i]};
    for (std::size_t d = 0; d < 3; ++d) rows[5 * i + d] = static_cast<float>(cm[d]) * 0.01F;
    rows[5 * i + 3] = static_cast<float>(sweep->intensity[i]) / 255;
    rows[5 * i + 4] = 0;
  }
  const auto graph = voxel_network(n);
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = plan_of(*graph, test::targets_of_this_machine().back());
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->description().arena_bytes, plan->description().lower_bound);
  const std::vector<Bytes> inputs = {bytes_of(rows),
                                     bytes_of(std::vector<std::int32_t>{static_cast<std::int32_t>(sweep->size())})};
  const auto found = run(plan, inputs, 1, 0x7f);
  EXPECT_EQ(run(plan, inputs, 2, 0xff), found);
  // Whole centimetres lie on borders of bins; 57,350 with the decimal sizes.
  EXPECT_NEAR(number_of(*plan, found, "voxels"), 57350, 100);
  for (const char* name : {"level1_dropped", "level2_dropped", "level3_dropped", "flat_dropped"}) {
    EXPECT_EQ(number_of(*plan, found, name), 0) << name;
  }
  std::printf("cells: %d, %d, %d, %d, %d; arena %.1f MB\n", number_of(*plan, found, "voxels"),
              number_of(*plan, found, "level1_count"), number_of(*plan, found, "level2_count"),
              number_of(*plan, found, "level3_count"), number_of(*plan, found, "flat_count"),
              static_cast<double>(plan->description().arena_bytes) * 1e-6);
}

}  // namespace
}  // namespace takt::compiler
