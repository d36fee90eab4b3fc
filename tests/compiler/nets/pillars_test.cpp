// The pillar network as takt builds it: the plan gives what the reference gives, sweep after sweep, whatever the clouds
// hold; and the ONNX file that tools/nets/pillars.py writes is the same network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <random>

#include "compiler/compile.h"
#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/nets/pillars.h"
#include "compiler/onnx/import.h"
#include "runtime/base/file.h"
#include "runtime/exec/counts.h"
#include "sensors/messages/messages.h"
#include "tests/compiler/nets/pillar_jobs.h"
#include "tests/support/python.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace {

using namespace pillars;
using test::Running;

// What each job gives by the reference, one after the other; state goes on.
std::vector<std::vector<Bytes>> by_reference(ir::Graph graph, const std::vector<Job>& jobs) {
  std::vector<std::vector<Bytes>> out;
  for (const Job& job : jobs) {
    std::vector<ir::Constant> inputs;
    const std::vector<Bytes> bytes = job.inputs(!graph.states.empty());
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const ir::Type& type = *graph[graph.inputs[i]].type;
      inputs.push_back({type.dtype, type.shape, bytes[i]});
    }
    auto values = ir::interpret(graph, inputs);
    EXPECT_TRUE(values) << values.error().message;
    if (!values) return out;
    auto& results = out.emplace_back();
    for (const ir::ValueId id : graph.outputs) results.push_back((*values)[static_cast<std::size_t>(id)].bytes);
    for (ir::State& s : graph.states) {
      s.initial = std::make_shared<const ir::Constant>((*values)[static_cast<std::size_t>(s.next)]);
    }
  }
  return out;
}

std::int32_t number_of(const plan::Plan& plan, const std::vector<Bytes>& outputs, std::string_view name) {
  const auto slot = plan.find_output(name);
  EXPECT_TRUE(slot) << name;
  std::int32_t value = -1;
  if (slot) std::memcpy(&value, outputs[*slot].data(), sizeof value);
  return value;
}

std::shared_ptr<const plan::Plan> plan_of(const ir::Graph& graph, kernels::Target target) {
  Options options;
  options.target = target;
  auto bytes = compile(graph, {}, options);
  EXPECT_TRUE(bytes) << bytes.error().message;
  if (!bytes) return nullptr;
  auto plan = plan::Plan::parse(*bytes);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : nullptr;
}

// Valid rows of two boxes or scores lists, within a tolerance: passes may fold, references do not.
void expect_equal_outputs(const plan::Plan& plan, const ir::Graph& graph, const std::vector<Bytes>& found,
                          const std::vector<Bytes>& wanted, const std::string& what) {
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Type& type = *graph[graph.outputs[i]].type;
    const std::string name = graph[graph.outputs[i]].name;
    std::size_t rows = static_cast<std::size_t>(type.shape.elements());
    if (type.count != ir::kNoValue) {
      const auto count = number_of(plan, wanted, "count");
      ASSERT_EQ(number_of(plan, found, "count"), count) << what;
      rows = rows / static_cast<std::size_t>(type.shape.dims[0]) * static_cast<std::size_t>(count);
    }
    for (std::size_t e = 0; e < rows; ++e) {
      if (type.dtype == ir::DType::kF32) {
        float a = 0, b = 0;
        std::memcpy(&a, found[i].data() + 4 * e, 4);
        std::memcpy(&b, wanted[i].data() + 4 * e, 4);
        ASSERT_NEAR(a, b, 1e-4 * std::max(1.0F, std::fabs(b))) << what << ": " << name << " " << e;
      } else {
        std::int32_t a = 0, b = 0;
        std::memcpy(&a, found[i].data() + 4 * e, 4);
        std::memcpy(&b, wanted[i].data() + 4 * e, 4);
        ASSERT_EQ(a, b) << what << ": " << name << " " << e;
      }
    }
  }
}

TEST(PillarNetwork, PlansGiveWhatReferencesGiveWhateverTheSweepsHold) {
  for (const std::int64_t sweeps : {0, 2}) {
    const auto graph = pillar_network(small(sweeps));
    ASSERT_TRUE(graph) << graph.error().message;
    const std::vector<Job> jobs = all_jobs();
    const auto wanted = by_reference(*graph, jobs);
    ASSERT_EQ(wanted.size(), jobs.size());
    for (const kernels::Target target : test::targets_of_this_machine()) {
      const auto plan = plan_of(*graph, target);
      ASSERT_NE(plan, nullptr);
      EXPECT_EQ(plan->description().arena_bytes, plan->description().lower_bound);
      std::vector<std::vector<Bytes>> first;
      for (const int parts : {1, 2}) {
        Running running(plan);
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          const auto found = running.run(jobs[i].inputs(sweeps > 0), parts);
          expect_equal_outputs(*plan, *graph, found, wanted[i], "job " + std::to_string(i));
          if (parts == 1) {
            first.push_back(found);
          } else {
            EXPECT_EQ(found, first[i]) << "parts change bytes";
          }
        }
      }
      EXPECT_GT(number_of(*plan, first[0], "count"), 0);
      EXPECT_GT(number_of(*plan, first[0], "boxes_dropped"), 0);
      EXPECT_GT(number_of(*plan, first[0], "pillars"), 100);
      EXPECT_EQ(number_of(*plan, first[2], "rejected"), 0) << "an empty cloud";
      EXPECT_EQ(number_of(*plan, first[4], "rejected"), static_cast<std::int32_t>(kPoints)) << "nothing but NaN";
      EXPECT_EQ(number_of(*plan, first[7], "rejected"), 0) << "far away is out of range, not invalid";
      if (sweeps > 0) {
        EXPECT_EQ(number_of(*plan, first[10], "forgotten"), 2);
        EXPECT_EQ(number_of(*plan, first[11], "forgotten"), 1);
      }
    }
  }
}

// Ten times what a sensor gives, all of it in range: everything is full, what does not fit is counted.
TEST(PillarNetwork, AMillionPoints) {
  constexpr std::uint32_t kMany = 1'000'000;
  PillarNetwork n = small(0);
  n.points = kMany;
  n.payload_bytes = static_cast<std::int64_t>(sensors::PointCloud::bytes_for(kMany));
  const auto graph = pillar_network(n);
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = plan_of(*graph, test::targets_of_this_machine().back());
  ASSERT_NE(plan, nullptr);
  Job crowd = job(0, Kind::kStreet);
  crowd.cloud.assign(sensors::PointCloud::bytes_for(kMany), std::byte{0});
  auto& cloud = *new (crowd.cloud.data()) sensors::PointCloud;
  cloud.count = cloud.capacity = kMany;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    cloud.x()[i] = -6 + static_cast<float>(i % 1201) * 0.01F;
    cloud.y()[i] = -6 + static_cast<float>(i / 1201) * 0.01F;
  }
  Running running(plan);
  const auto out = running.run(crowd.inputs(false), 1);
  EXPECT_EQ(number_of(*plan, out, "raw_count"), static_cast<std::int32_t>(kMany));
  EXPECT_EQ(number_of(*plan, out, "pillars"), 200);
  EXPECT_EQ(number_of(*plan, out, "members_count"), 600);
  EXPECT_EQ(number_of(*plan, out, "pillar_points_dropped"), number_of(*plan, out, "seen_count") - 600);
  EXPECT_EQ(running.run(crowd.inputs(false), 2), out);
}

TEST(PillarNetwork, TheScriptWritesTheSameNetwork) {
  const std::string python = test::python_with_onnx();
  if (python.empty()) GTEST_SKIP() << "no Python here has numpy and onnx";
  const std::string file =
      (std::filesystem::temp_directory_path() / ("takt-pillars-" + std::to_string(::getpid()) + ".onnx")).string();
  for (const std::int64_t sweeps : {0, 2}) {
    const PillarNetwork n = small(sweeps);
    const std::string command =
        python + " " TAKT_SOURCE_DIR "/tools/nets/pillars.py " + file +
        " payload_bytes=" + std::to_string(n.payload_bytes) + " points=" + std::to_string(kPoints) +
        " poses=4 sweeps=" + std::to_string(sweeps) +
        " vehicle_from_sensor=[0,-1,0,0.5,1,0,0,0.25,0,0,1,1] range=[-6.4,-6.4,-2.0,6.4,6.4,3.0]"
        " ego=[-1.0,-0.5,-1.0,1.0,0.5,2.0] pillar=[0.4,0.4] pillars=200 points_per_pillar=3 channels=[8,16]"
        " convs=[1,1] neck=8 boxes=20";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const auto bytes = read_file(file);
    ASSERT_TRUE(bytes);
    std::filesystem::remove(file);
    const auto imported = import_onnx(std::as_bytes(std::span(bytes->data(), bytes->size())), {});
    ASSERT_TRUE(imported) << imported.error().message;
    const auto built = pillar_network(n);
    ASSERT_TRUE(built) << built.error().message;
    const kernels::Target target = test::targets_of_this_machine().back();
    const auto a = plan_of(*imported, target), b = plan_of(*built, target);
    ASSERT_TRUE(a != nullptr && b != nullptr);
    Running from_file(a), from_builder(b);
    for (int i = 0; i < 3; ++i) {
      const std::vector<Bytes> inputs = job(i, Kind::kStreet).inputs(sweeps > 0);
      EXPECT_EQ(from_file.run(inputs, 1), from_builder.run(inputs, 1)) << "job " << i;
    }
  }
}

TEST(CountLog, KeepsTheLatestJobsAndWhatAllOfThemSay) {
  const auto graph = pillar_network(small(0));
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = plan_of(*graph, test::targets_of_this_machine().back());
  ASSERT_NE(plan, nullptr);
  exec::CountLog log(*plan);
  std::map<std::string, std::int64_t> capacities;
  for (const exec::CountLog::Counter& c : log.counters()) capacities[c.name] = c.capacity;
  EXPECT_EQ(capacities.at("pillars"), 200);
  EXPECT_EQ(capacities.at("best_count"), 20);
  EXPECT_EQ(capacities.at("rejected[3]"), 0);
  EXPECT_EQ(capacities.count("classes"), 0U) << "rows that are counted count nothing";
  std::vector<Bytes> memory;
  std::vector<std::byte*> outputs;
  for (const std::uint32_t id : plan->description().outputs) memory.emplace_back(plan->description().tensors[id].bytes);
  for (Bytes& m : memory) outputs.push_back(m.data());
  constexpr std::int32_t kJobs = exec::CountLog::kFrames + 10;
  for (std::int32_t job = 0; job < kJobs; ++job) {
    for (Bytes& m : memory) std::memcpy(m.data(), &job, sizeof job);
    log.add(outputs);
  }
  EXPECT_EQ(log.jobs(), static_cast<std::uint64_t>(kJobs));
  ASSERT_EQ(log.kept(), exec::CountLog::kFrames);
  EXPECT_EQ(log.job(0)[0], 10);
  EXPECT_EQ(log.job(log.kept() - 1)[0], kJobs - 1);
  EXPECT_EQ(log.counters()[0].maximum, kJobs - 1);
  EXPECT_EQ(log.counters()[0].total, std::int64_t{kJobs} * (kJobs - 1) / 2);
}

TEST(PillarNetwork, SizesThatDoNotFitAreRefusedInWords) {
  PillarNetwork n = small(0);
  n.payload_bytes = 100;
  auto graph = pillar_network(n);
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, ::testing::HasSubstr("does not hold 300 points"));
  n = small(0);
  n.convs = {1};
  EXPECT_FALSE(pillar_network(n));
  n = small(0);
  n.pillar = {0, 0.4F};
  EXPECT_FALSE(pillar_network(n));
}

}  // namespace
}  // namespace takt::compiler
