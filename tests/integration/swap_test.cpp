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
    return pipeline::admits_plan(config_->problem, schedule_, kStage, schedule_.choices[kStage].variant, plan,
                                 budget_of(plan, job));
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
    return pipeline::admits_plan(config_->problem, schedule_, kStage, schedule_.choices[kStage].variant, plan, budget);
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

// The shipped pipeline with modes: day runs the camera's full network, lean and coasting its lite one.
class SwapInModes : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = kernels::unsupported(kernels::best_target())) GTEST_SKIP() << reason;
    auto config = pipeline::load_pipeline(project("configs/pipelines/sim_modes.yaml"));
    ASSERT_TRUE(config) << config.error().message;
    config_.emplace(*std::move(config));
    for (const sched::ModeSpec& mode : set().modes) answers_.push_back(sched::synthesize(mode.problem, {}));
    ASSERT_EQ(sched::judge_modes(set(), answers_).verdict, sched::Verdict::kFeasible);
    for (std::size_t m = 0; m < set().modes.size(); ++m) {
      const sched::Stage& stage = set().modes[m].problem.stages[kStage];
      ASSERT_EQ(stage.name, "camera_detect");
      EXPECT_EQ(stage.variants[choice(m).variant].name, m == 0 ? "full" : "lite");
    }
  }
  sched::ModeSet& set() { return *config_->modes; }
  sched::Choice& choice(std::size_t mode) { return answers_[mode].schedule->choices[kStage]; }
  std::string refusal(const std::string& variant, Duration job) {
    const plan::Plan& plan = *config_->stages[kStage].variant(variant).plan;
    const PlanBudget budget{std::vector<Duration>(plan.description().steps.size(), microseconds(100)), job};
    const Status admits = pipeline::admits_plan(set(), answers_, "camera_detect", variant, plan, budget);
    return admits ? "" : (admits.error().code == Code::kGate ? "gate: " : "other: ") + admits.error().message;
  }
  static constexpr std::size_t kStage = 0;
  std::optional<pipeline::PipelineConfig> config_;
  std::vector<sched::Answer> answers_;
};

// The budget holds in every mode that runs the variant, and those that do not are not asked.
TEST_F(SwapInModes, EveryModeThatRunsTheVariantJudges) {
  EXPECT_EQ(refusal("full", choice(0).budget.time), "");
  EXPECT_EQ(refusal("lite", choice(1).budget.time), "");
  EXPECT_EQ(refusal("lite", choice(1).budget.time - milliseconds(1)), "");
  const std::string day = refusal("full", choice(0).budget.time + milliseconds(1));
  EXPECT_THAT(day, testing::StartsWith("gate: mode 'day' does not hold with plan"));
  EXPECT_THAT(day, testing::AllOf(HasSubstr("in stage 'camera_detect'"), HasSubstr("(rule 'windows')"),
                                  HasSubstr("slot of stage 'camera_detect', job 0 at")));
  const std::string lean = refusal("lite", choice(1).budget.time + milliseconds(1));
  EXPECT_THAT(lean, testing::StartsWith("gate: mode 'lean' does not hold with plan"));
  // The last mode's table alone has shorter slots.
  sched::Schedule& table = *answers_[2].schedule;
  sched::Problem& problem = set().modes[2].problem;
  const Duration shorter = choice(2).budget.time - milliseconds(1);
  const sched::Tick less = table.clock.ticks_up(milliseconds(1));
  choice(2).budget.time = shorter;
  for (sched::Variant& variant : problem.stages[kStage].variants) {
    for (sched::Budget& budget : variant.budgets) budget.time = shorter;
  }
  for (sched::Slot& slot : table.slots) slot.end -= slot.stage == kStage ? less : 0;
  table.bounds.clear();
  for (std::uint32_t c = 0; c < problem.chains.size(); ++c) table.bounds.push_back(sched::walk(problem, table, c));
  ASSERT_TRUE(sched::validate(problem, table)) << sched::validate(problem, table).error().message;
  EXPECT_EQ(refusal("lite", shorter), "");
  EXPECT_THAT(refusal("lite", shorter + milliseconds(1)), testing::StartsWith("gate: mode 'coasting'"));
}

// A variant that jobs only degrade to has the slots of the one that they degrade from.
TEST_F(SwapInModes, ADegradedVariantHasTheSlotsOfTheChosenOne) {
  sched::Stage& day = set().modes[0].problem.stages[kStage];
  day.overrun = sched::OverrunPolicy::kDegrade;
  day.degraded_variant = "lite";
  set().modes[1].exits.clear();
  set().modes.resize(1);  // day alone
  answers_.resize(1);
  set().modes[0].exits.clear();
  set().modes[0].lost.reset();
  EXPECT_EQ(refusal("lite", choice(0).budget.time), "");
  EXPECT_THAT(refusal("lite", choice(0).budget.time + nanoseconds(1)),
              testing::AllOf(testing::StartsWith("gate: mode 'day'"),
                             HasSubstr("longer than the 6.000 ms of variant 'full', in whose slots jobs degrade")));
}

// What the exchange needs stays for the whole run, whichever mode it is in: the modes' memory together is asked, once.
TEST_F(SwapInModes, TheExchangeFitsTheMemoryOfAllModesTogether) {
  const auto least = [&](const auto& holds) {
    std::int64_t no = 0, yes = std::int64_t{1} << 40;
    while (yes - no > 1) {
      const std::int64_t middle = no + (yes - no) / 2;
      for (sched::ModeSpec& mode : set().modes) mode.problem.board.memory = middle;
      (holds() ? yes : no) = middle;
    }
    return yes;
  };
  for (sched::ModeSpec& mode : set().modes) {
    for (sched::Variant& variant : mode.problem.stages[kStage].variants) variant.resident = 50'000'000;
  }
  const plan::Description& d = config_->stages[kStage].variant("lite").plan->description();
  const auto weights = static_cast<std::int64_t>(plan::weight_bytes(d));
  const auto arena = static_cast<std::int64_t>(d.arena_bytes);
  ASSERT_EQ(set().modes[1].problem.stages[kStage].variants[choice(1).variant].arena, 0);
  const std::int64_t tables =
      least([&] { return sched::judge_modes(set(), answers_).verdict == sched::Verdict::kFeasible; });
  const std::int64_t exchange = least([&] { return refusal("lite", choice(1).budget.time).empty(); });
  EXPECT_EQ(exchange - tables, weights + 2 * arena);  // though two modes run it
  for (sched::ModeSpec& mode : set().modes) mode.problem.board.memory = exchange - 1;
  EXPECT_THAT(
      refusal("lite", choice(1).budget.time),
      testing::AllOf(testing::StartsWith("gate: the modes do not hold together with plan"), HasSubstr("too much")));
}

}  // namespace
}  // namespace takt::test
