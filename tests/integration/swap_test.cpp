// Another plan in the place of the shipped pipeline's camera network: judged by the admitted table, warmed up,
// committed.
#include "pipeline/assembly/swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "pipeline/stages/camera_network.h"
#include "runtime/exec/trace.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/integration/shipped.h"

namespace takt::test {
namespace {

using exec::PlanBudget;
using exec::SwappableSession;
using ::testing::HasSubstr;

class Swap : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
    auto config = pipeline::load_pipeline(kPipeline);
    ASSERT_TRUE(config) << config.error().message;
    config_.emplace(*std::move(config));
    schedule_ = admitted(config_->problem);
    ASSERT_EQ(config_->problem.stages[kStage].name, "camera_detect");
    plan_ = config_->stages[kStage].variant("full").plan;
    const sensors::RigSensor& camera = *config_->stages[kStage].connections[0].sensor;
    picture_ = pipeline::picture_of(*camera.camera, config_->stages[kStage].pixel_format);
  }
  // The same network for pictures that come in a little brighter.
  std::shared_ptr<const plan::Plan> retrained() {
    auto contract = pipeline::load_model(project("configs/models/sim_camera_full.yaml"));
    contract->input.mean = {-0.05, -0.05, -0.05};
    return *pipeline::compile_model(*contract, picture_, {1, 2});
  }
  static PlanBudget budget_of(const plan::Plan& plan, Duration job) {
    return {std::vector<Duration>(plan.description().steps.size(), microseconds(100)), job};
  }
  Status admits(const plan::Plan& plan, Duration job) {
    return pipeline::admits_plan(config_->problem, schedule_, kStage, plan, budget_of(plan, job));
  }
  static constexpr std::size_t kStage = 0;
  std::optional<pipeline::PipelineConfig> config_;
  sched::Schedule schedule_;
  std::shared_ptr<const plan::Plan> plan_;
  pipeline::CameraPicture picture_;
};

TEST_F(Swap, TheAdmittedTableJudgesBudgetAndMemory) {
  const Duration slot = schedule_.choices[kStage].budget.time;
  EXPECT_TRUE(admits(*plan_, slot));
  EXPECT_TRUE(admits(*plan_, slot - milliseconds(1)));
  const Status longer = admits(*plan_, slot + milliseconds(1));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kGate);
  EXPECT_THAT(longer.error().message, HasSubstr("in stage 'camera_detect'"));
  config_->problem.board.memory = static_cast<std::int64_t>(plan_->description().arena_bytes);
  const Status larger = admits(*plan_, slot);
  ASSERT_FALSE(larger);
  EXPECT_THAT(larger.error().message, HasSubstr("memory"));
}

TEST_F(Swap, TheExchangeNeedsBothPlansInMemory) {
  const Duration slot = schedule_.choices[kStage].budget.time;
  // The least memory with which a question is answered by yes.
  const auto least = [&](const auto& holds) {
    std::int64_t no = 0, yes = std::int64_t{1} << 40;
    while (yes - no > 1) {
      const std::int64_t middle = no + (yes - no) / 2;
      config_->problem.board.memory = middle;
      (holds() ? yes : no) = middle;
    }
    return yes;
  };
  const std::int64_t table = least([&] { return sched::validate(config_->problem, schedule_).has_value(); });
  const std::int64_t exchange = least([&] { return admits(*plan_, slot).has_value(); });
  const auto& variant = config_->problem.stages[kStage].variants[schedule_.choices[kStage].variant];
  const plan::Description& d = plan_->description();
  const auto weights = static_cast<std::int64_t>(plan::weight_bytes(d));
  const std::int64_t arena = std::max(variant.arena, static_cast<std::int64_t>(d.arena_bytes));
  // A region and the weights of the new plan, and the old one's region, which the table counts only while a job runs.
  EXPECT_GE(exchange - table, weights + arena);
  EXPECT_LE(exchange - table, weights + 2 * arena);
}

TEST_F(Swap, TheStageGoesOnWithTheNewPlan) {
  const auto next = retrained();
  ASSERT_NE(next->digest(), plan_->digest());
  SwappableSession::Reserve reserve;
  reserve.arena_bytes = std::max(plan_->description().arena_bytes, next->description().arena_bytes);
  reserve.weight_bytes = plan_->file_bytes() + next->file_bytes();
  reserve.slot = milliseconds(100);  // the table is the narrower one
  reserve.maintenance = milliseconds(1);
  reserve.admits = [&](const plan::Plan& plan, const PlanBudget& budget) {
    return pipeline::admits_plan(config_->problem, schedule_, kStage, plan, budget);
  };
  const Duration slot = schedule_.choices[kStage].budget.time;
  const auto stage = SwappableSession::create(plan_, budget_of(*plan_, slot), reserve);
  ASSERT_TRUE(stage) << stage.error().message;
  exec::Session& first = (*stage)->current();
  const auto buffers = exec::Buffers::create(first);
  ASSERT_TRUE(buffers);
  const std::vector<std::byte> picture =
      exec::made_up_input(plan_->description().tensors[plan_->description().inputs[0]]);
  std::memcpy(buffers->input(0).data(), picture.data(), picture.size());
  // What each plan computes by itself.
  const auto alone = [&](const std::shared_ptr<const plan::Plan>& plan) {
    const auto session = *exec::Session::create(plan);
    const auto own = *exec::Buffers::create(*session);
    std::memcpy(own.input(0).data(), picture.data(), picture.size());
    session->run();
    return std::vector<std::byte>(own.output(0).begin(), own.output(0).end());
  };
  const auto old_output = alone(plan_), new_output = alone(next);
  ASSERT_NE(old_output, new_output);
  const auto job = [&] {
    exec::Session& session = (*stage)->current();
    for (std::size_t step = 0; step < session.steps(); ++step) session.run_step(step, 0, 1);
    session.publish();
    return std::vector<std::byte>(buffers->output(0).begin(), buffers->output(0).end());
  };
  EXPECT_EQ(job(), old_output);

  EXPECT_EQ((*stage)->prepare(next, budget_of(*next, slot + milliseconds(1))).error().code, Code::kGate);
  ASSERT_TRUE((*stage)->prepare(next, budget_of(*next, slot)));
  int pieces = 0;
  for (;; ++pieces) {
    ASSERT_LT(pieces, 1000);
    const memory::ThreadCounters before = memory::thread_counters();
    const auto warmth = (*stage)->warm_up();
    EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
    if (warmth == SwappableSession::Warmth::kWarm) break;
    ASSERT_EQ(warmth, SwappableSession::Warmth::kCold);
    EXPECT_EQ(job(), old_output);  // jobs go on between the pieces
  }
  RecordProperty("maintenance_slots", pieces + 1);
  const memory::ThreadCounters before = memory::thread_counters();
  ASSERT_TRUE((*stage)->commit());
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
  EXPECT_EQ(job(), new_output);
}

}  // namespace
}  // namespace takt::test
