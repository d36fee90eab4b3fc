#include "pipeline/assembly/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "pipeline/assembly/faulty_log.h"
#include "tests/pipeline/report/synthetic_run.h"

namespace takt::pipeline {
namespace {

using sensors::LogMessage;
using ::testing::HasSubstr;

// Names as in the synthetic run: sensors front and top; stages camera_detect, lidar_detect, fusion.
sensors::Rig rig() {
  sensors::Rig out;
  for (const char* name : {"front", "top"}) {
    sensors::RigSensor sensor;
    sensor.name = name;
    sensor.topic = std::string("/") + name;
    out.sensors.push_back(sensor);
  }
  return out;
}

Result<FaultPlan> parse(const std::string& text) {
  return parse_faults(text, "f.yaml", test::synthetic_run(1, false).problem, rig());
}

TEST(FaultFile, AModeIsOneOfThePipelines) {
  const auto read = [](const std::vector<std::string>& modes) {
    return parse_faults(
        "{name: n, what: w, faults: [{process: mode, mode: lean, at_s: 1.5}], expect: {exit: 0, modes: [day, lean]}}",
        "f.yaml", test::synthetic_run(1, false).problem, rig(), modes);
  };
  const auto plan = read({"day", "lean"});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->processes.size(), 1U);
  EXPECT_EQ(plan->processes[0].kind, ProcessFault::Kind::kMode);
  EXPECT_EQ(plan->processes[0].mode, 1U);
  EXPECT_EQ(plan->processes[0].at.ns, 1'500'000'000);
  EXPECT_EQ(plan->modes, (std::vector<std::string>{"day", "lean"}));
  EXPECT_FALSE(plan->needs_real_time());
  const auto none = read({});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("this pipeline has no modes"));
  const auto other = read({"day", "learn"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("lean"));
}

std::vector<sched::ModeTable> tables_of(const RunData& run) { return {sched::only_table(run.problem, run.schedule)}; }

const FaultExpectation* find(const FaultReport& report, const std::string& what) {
  for (const FaultExpectation& e : report.expectations) {
    if (e.what.find(what) != std::string::npos) return &e;
  }
  return nullptr;
}

// Who asks for the mode that runs, or behind the last boundary, has asked for nothing.
TEST(FaultCheck, ARequestedModeStrikesWhenItIsEntered) {
  RunData run = test::synthetic_run(8, true);
  for (const char* name : {"day", "lean"}) {
    run.modes.push_back(sched::only_table(run.problem, run.schedule));
    run.modes.back().name = name;
  }
  const auto plan = [&](const char* at) {
    const auto parsed = parse_faults(
        std::string("{name: n, what: w, faults: [{process: mode, mode: lean, at_s: ") + at + "}], expect: {exit: 0}}",
        "f.yaml", run.problem, rig(), {"day", "lean"});
    EXPECT_TRUE(parsed) << parsed.error().message;
    return *parsed;
  };
  EXPECT_TRUE(check_reach(plan("0.7"), run.problem, tables_of(run), 8, seconds(1), {}));
  const Status late = check_reach(plan("0.75"), run.problem, tables_of(run), 8, seconds(1), {});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("its last hyperperiod begins at 0.700 s"));

  const auto met = [&] { return check_faults(plan("0.25"), run.problem, &run, 0).met(); };
  EXPECT_FALSE(met());
  sched::ModeChange change;
  change.hyperperiod = 3;
  change.begin = TableTime{milliseconds(300).ns};
  change.to = 1;
  change.cause = sched::ModeCause::kOverrun;
  run.dispatch.changes = {change};
  EXPECT_FALSE(met()) << "somebody else led there";
  run.dispatch.changes.front().cause = sched::ModeCause::kRequest;
  EXPECT_TRUE(met());
}

// The way back waits for the end of the job that led away. Where that was kept waiting, its absence is the machine's,
// but not where there was no time for it in any case.
TEST(FaultCheck, AWayBackThatDidNotComeIsTheMachinesWhereItCouldHaveCome) {
  for (const std::uint64_t hyperperiods : {20, 8}) {
    RunData run = test::synthetic_run(hyperperiods, true);
    for (const char* name : {"day", "lean"}) {
      run.modes.push_back(sched::only_table(run.problem, run.schedule));
      run.modes.back().name = name;
    }
    const auto plan = parse_faults(
        "{name: n, what: w, faults: [{stage: fusion, job: 1, budgets: 2}], expect: {exit: 0, modes: [day, lean, day]}}",
        "f.yaml", run.problem, rig(), {"day", "lean"});
    ASSERT_TRUE(plan) << plan.error().message;
    sched::JobRecord& fusion = test::record_of(run, test::kFusionStage, 1);
    fusion.flags |= sched::kFlagOverrun | sched::kFlagIsolated | sched::kFlagDiscarded;
    fusion.job_class = sched::JobClass::kOverrun;
    fusion.completion = fusion.nominal_start + 500'000'000;
    fusion.cpu_ns = fusion.slot_end - fusion.actual_start;
    sched::ModeChange change;
    change.hyperperiod = 1;
    change.begin = TableTime{milliseconds(100).ns};
    change.to = 1;
    change.cause = sched::ModeCause::kOverrun;
    change.stage = test::kFusionStage;
    change.job = 1;
    run.dispatch.changes = {change};
    const FaultReport report = check_faults(*plan, run.problem, &run, 0);
    const auto modes =
        std::find_if(report.expectations.begin(), report.expectations.end(),
                     [](const FaultExpectation& one) { return one.what == "modes one after the other"; });
    ASSERT_NE(modes, report.expectations.end());
    EXPECT_EQ(modes->met, hyperperiods == 20) << modes->seen;
  }
}

TEST(FaultCheck, SaysWhyAFaultDidNotStrike) {
  RunData run = test::synthetic_run(8, true);
  for (const char* name : {"day", "lean"}) {
    run.modes.push_back(sched::only_table(run.problem, run.schedule));
    run.modes.back().name = name;
  }
  const auto seen = [&](const std::string& fault) {
    const auto plan = parse_faults("{name: n, what: w, faults: [" + fault + "], expect: {exit: 0}}", "f.yaml",
                                   run.problem, rig(), {"day", "lean"});
    EXPECT_TRUE(plan) << plan.error().message;
    const FaultReport report = check_faults(*plan, run.problem, &run, 0);
    const FaultExpectation* const strikes = find(report, "the fault strikes");
    return strikes == nullptr ? "it does" : strikes->what + " -> " + strikes->seen;
  };
  const std::string lean = "{process: mode, mode: lean, at_s: 0.25}", job = "{stage: lidar_detect, job: 3, budgets: 2}";
  EXPECT_EQ(seen(lean),
            "the fault strikes: mode 'lean' is asked for at 0.25 s -> never: it is no exit of 'day', which "
            "ran from then on");
  EXPECT_EQ(seen("{process: mode, mode: day, at_s: 0.25}"),
            "the fault strikes: mode 'day' is asked for at 0.25 s -> never: mode 'day' ran already");
  run.modes.front().exits = {1};
  EXPECT_THAT(seen(lean), ::testing::EndsWith("-> never"));
  EXPECT_EQ(seen(job), "it does");
  test::skip_job(run, test::kLidarStage, 3);
  EXPECT_THAT(seen(job), HasSubstr("-> never: the job was skipped"));
  EXPECT_THAT(seen("{stage: lidar_detect, job: 4000, budgets: 2}"), HasSubstr("the run came to no such job"));
}

TEST(FaultPlan, OfAStageThatNoModeRunsNeverStrikes) {
  RunData run = test::synthetic_run(8, true);
  std::vector<sched::ModeTable> modes{sched::only_table(run.problem, run.schedule)};
  const auto plan = parse_faults(
      "{name: n, what: w, faults: [{stage: lidar_detect, job: 3, budgets: 2}, {process: kill_client, stage: "
      "lidar_detect, at_s: 0.1}], expect: {exit: 0}}",
      "f.yaml", run.problem, rig(), {"day"});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(check_reach(*plan, run.problem, modes, 8, seconds(1), {}));
  modes.front().schedule.choices[test::kLidarStage].rate = 0;
  const Status never = check_reach(*plan, run.problem, modes, 8, seconds(1), {});
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message,
              ::testing::ContainsRegex("f.yaml:1:[0-9]+: this fault never strikes: no mode runs stage "
                                       "'lidar_detect'\nf.yaml:1:[0-9]+: this fault never strikes: no mode runs"));
}

const std::string kHead = "{name: n, what: w, faults: [";

TEST(FaultFile, ReadsEveryKind) {
  const auto plan = parse(
      "name: n\nwhat: words\nfaults:\n"
      "  - {stage: lidar_detect, job: 3, budgets: 2}\n"
      "  - {stage: fusion, job: 3, count: 2, stall_ms: 1.5}\n"
      "  - {stage: camera_detect, job: 0, endless: true}\n"
      "  - {sensor: top, kind: late, by_ms: 60, from_s: 1, for_s: 0.5, every: 2}\n"
      "  - {sensor: front, kind: clock_drift, ppm: -100, from_s: 0, for_s: 1}\n"
      "  - {process: stop, at_s: 1, for_ms: 200}\n"
      "  - {process: kill_client, stage: fusion, at_s: 1}\n"
      "  - {process: disk_full}\n"
      "expect:\n  exit: 5\n  verdict: [PASS, NOT JUDGED]\n"
      "  jobs: {lidar_detect: {overrun: 1, late_start: [0, 2]}}\n"
      "  chains: {camera to tracks: {void: [1, 3]}}\n"
      "  messages: {top: {gaps: 2}}\n"
      "  recovery_hyperperiods: 1\n");
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->stages.size(), 3U);
  EXPECT_EQ(plan->stages[0].stage, 1U);
  EXPECT_EQ(plan->stages[0].budgets, 2);
  EXPECT_EQ(plan->stages[1].count, 2U);
  EXPECT_EQ(plan->stages[1].stall.ns, 1'500'000);
  EXPECT_TRUE(plan->stages[2].endless);
  ASSERT_EQ(plan->sensors.size(), 2U);
  EXPECT_EQ(plan->sensors[0].kind, SensorFault::Kind::kLate);
  EXPECT_EQ(plan->sensors[0].by, milliseconds(60));
  EXPECT_EQ(plan->sensors[0].every, 2U);
  EXPECT_EQ(plan->sensors[1].ppm, -100);
  ASSERT_EQ(plan->processes.size(), 3U);
  EXPECT_EQ(plan->processes[0].length, milliseconds(200));
  EXPECT_EQ(plan->exit, 5);
  EXPECT_EQ(plan->verdicts, (std::vector<std::string>{"PASS", "NOT JUDGED"}));
  ASSERT_EQ(plan->counts.size(), 4U);
  EXPECT_EQ(plan->counts[1].range.most, 2U);
  EXPECT_EQ(plan->recovery, 1U);
  EXPECT_TRUE(plan->needs_real_time());
  EXPECT_TRUE(plan->fills_disk());
}

TEST(FaultFile, SensorFaultsAndAFullDiskNeedNoRealTime) {
  const auto plan =
      parse(kHead + "{sensor: top, kind: drop, from_s: 0, for_s: 1}, {process: disk_full}], expect: {exit: 0}}");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->needs_real_time());
}

TEST(FaultFile, NamesEveryMistakeWithItsPlace) {
  const std::map<std::string, std::string> wrong{
      {"{stage: radar, job: 1, budgets: 2}], expect: {exit: 0}}", "f.yaml:1:"},
      {"{stage: fusion, job: 1}], expect: {exit: 0}}",
       "expected one of 'budgets', 'stall_ms', 'endless: true' and 'hang: true'"},
      {"{stage: fusion, job: 1, budgets: 2, endless: true}], expect: {exit: 0}}", "expected one of"},
      {"{sensor: top, kind: vanish, from_s: 0, for_s: 1}], expect: {exit: 0}}", "vanish"},
      {"{sensor: top, kind: late, from_s: 0, for_s: 1}], expect: {exit: 0}}", "by_ms"},
      {"{sensor: top, kind: drop, by_ms: 1, from_s: 0, for_s: 1}], expect: {exit: 0}}", "by_ms"},
      {"{process: explode}], expect: {exit: 0}}", "explode"},
      {"], expect: {exit: 0, jobs: {radar: {ok: 1}}}}", "'radar' is not known here; known: camera_detect"},
      {"], expect: {exit: 0, jobs: {fussion: {ok: 1}}}}", "'fussion' is not known here; did you mean 'fusion'?"},
      {"], expect: {exit: 0, messages: {top: {gap: 1}}}}", "did you mean 'gaps'?"},
      {"{sensor: tpo, kind: drop, from_s: 0, for_s: 1}], expect: {exit: 0}}", "did you mean 'top'?"},
      {"{sensor: top, kind: drop, from_s: 0, for_s: 0}], expect: {exit: 0}}", "never strikes"},
      {"], expect: {exit: 0, jobs: {fusion: {fine: 1}}}}", "'fine' is no figure"},
      {"], expect: {exit: 0, jobs: {fusion: {ok: [3, 1]}}}}", "the least is above the most"},
      {"], expect: {exit: 0, jobs: {fusion: {ok: [3]}}}}", "[least, most]"},
      {"], expect: {exit: 0, verdict: GOOD}}", "GOOD"},
      {"]}", "expect"},
  };
  for (const auto& [text, message] : wrong) {
    const auto plan = parse(kHead + text);
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code, Code::kConfiguration) << text;
    EXPECT_THAT(plan.error().message, HasSubstr(message)) << text;
    EXPECT_THAT(plan.error().message, HasSubstr("f.yaml:1:")) << text;
  }
}

TEST(FaultFile, WhatCannotStrikeIsNamed) {
  const auto plan = parse(
      "name: n\nwhat: words\nfaults:\n"
      "  - {stage: fusion, job: 7, budgets: 2}\n"
      "  - {stage: fusion, job: 8, budgets: 2}\n"
      "  - {sensor: top, kind: drop, from_s: 0.4, for_s: 0.5}\n"
      "  - {sensor: top, kind: drop, from_s: 0.41, for_s: 0.5}\n"
      "  - {process: stop, at_s: 0.39, for_ms: 200}\n"
      "  - {process: kill_roudi, at_s: 0.4}\n"
      "  - {process: disk_full}\n"
      "expect: {exit: 5}\n");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->needs_iceoryx());
  const RunData run = test::synthetic_run(4, false);
  EXPECT_TRUE(check_reach(*plan, run.problem, tables_of(run), 5, milliseconds(450), {}));
  const Status reach = check_reach(*plan, run.problem, tables_of(run), 4, milliseconds(400), milliseconds(1));
  ASSERT_FALSE(reach);
  EXPECT_EQ(reach.error().code, Code::kConfiguration);
  EXPECT_EQ(reach.error().message,
            "f.yaml:5:5: this fault never strikes: the run ends with job 7 of fusion\n"
            "f.yaml:7:5: this fault never strikes: the log lasts 0.400 s\n"
            "f.yaml:9:5: this fault never strikes: the run lasts 0.400 s");
  // Of a longer log a sensor fault needs the part that the run comes to.
  EXPECT_TRUE(check_reach(*plan, run.problem, tables_of(run), 5, seconds(1), milliseconds(-89)));
  const Status ended = check_reach(*plan, run.problem, tables_of(run), 5, seconds(1), milliseconds(-90));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message,
            "f.yaml:7:5: this fault never strikes: the run ends 0.410 s after the log's first message");
  // In another mode fusion runs three times as often: there job 23 may still come, and job 24 does not.
  std::vector<sched::ModeTable> modes = tables_of(run);
  modes.push_back(modes.front());
  for (sched::Choice& choice : modes.back().schedule.choices) choice.rate *= 3;
  modes.front().schedule.choices.back().rate = 0;
  FaultPlan often;
  often.stages.emplace_back();
  often.stages.front().stage = 2;
  often.stages.front().job = 23;
  EXPECT_TRUE(check_reach(often, run.problem, modes, 4, milliseconds(400), {}));
  often.stages.front().job = 24;
  EXPECT_FALSE(check_reach(often, run.problem, modes, 4, milliseconds(400), {}));
}

// ---- the faulty log ---------------------------------------------------------------------------------------------

// Messages of /front every 10 ms, of /top every 20 ms, stamped 2 ms before they arrive.
class PlainLog final : public sensors::LogReader {
 public:
  PlainLog() {
    channels_.resize(2);
    channels_[0].topic = "/front";
    channels_[1].topic = "/top";
  }
  [[nodiscard]] const std::vector<sensors::LogChannel>& channels() const override { return channels_; }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override {
    return std::pair{SensorTime{kBegin}, SensorTime{kBegin + 29 * kStep}};
  }
  void select(const std::vector<std::string>&) override {}
  void rewind() override { at_ = 0; }
  [[nodiscard]] const std::vector<sensors::LogProblem>& problems() const override { return problems_; }
  Result<std::optional<LogMessage>> next() override {
    if (at_ == 30) return std::optional<LogMessage>{};
    const std::int64_t i = at_++;
    const bool top = i % 3 == 2;
    bytes_ = "message " + std::to_string(i);
    LogMessage message;
    message.channel = &channels_[top ? 1 : 0];
    message.index = static_cast<std::uint64_t>(top ? i / 3 : i - i / 3);
    message.arrival = {kBegin + i * kStep};
    message.capture = message.arrival - milliseconds(2);
    message.bytes = std::as_bytes(std::span(bytes_));
    return std::optional<LogMessage>(message);
  }
  static constexpr std::int64_t kBegin = 5'000'000'000, kStep = 10'000'000;

 private:
  std::vector<sensors::LogChannel> channels_;
  std::vector<sensors::LogProblem> problems_;
  std::int64_t at_ = 0;
  std::string bytes_;
};

struct Seen {
  std::string topic;
  std::uint64_t index;
  std::int64_t arrival_ms, delay_us;
  std::string bytes;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> read_all(sensors::LogReader& log) {
  std::vector<Seen> out;
  for (;;) {
    const auto next = log.next();
    if (!next || !*next) return out;
    const LogMessage& m = **next;
    out.push_back({m.channel->topic,
                   m.index,
                   (m.arrival.ns - PlainLog::kBegin) / 1'000'000,
                   (m.arrival - m.capture).ns / 1000,
                   {reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size()}});
  }
}

SensorFault fault(SensorFault::Kind kind, std::uint32_t every = 1) {
  SensorFault out;
  out.sensor = 0;
  out.kind = kind;
  out.from = milliseconds(100);
  out.length = milliseconds(100);
  out.every = every;
  return out;
}

std::vector<Seen> read_with(const SensorFault& one) {
  static const sensors::Rig kRig = rig();
  std::vector<std::uint64_t> touched;
  const auto log = with_sensor_faults(std::make_unique<PlainLog>(), kRig, {one}, &touched);
  const std::vector<Seen> first = read_all(*log);
  EXPECT_EQ(touched.size(), 1U);
  EXPECT_GT(touched.front(), 0U);
  // Order of arrival whatever was done, and the same again after a rewind.
  for (std::size_t i = 1; i < first.size(); ++i) EXPECT_LE(first[i - 1].arrival_ms, first[i].arrival_ms);
  log->rewind();
  EXPECT_EQ(read_all(*log), first);
  return first;
}

std::vector<Seen> plain() {
  PlainLog log;
  return read_all(log);
}

bool in_window(const Seen& s) { return s.topic == "/front" && s.arrival_ms >= 100 && s.arrival_ms < 200; }

TEST(FaultyLog, DropsTheNthOfTheWindowAndNothingElse) {
  std::vector<Seen> expected;
  int seen = 0;
  for (const Seen& s : plain()) {
    if (!in_window(s) || ++seen % 3 != 0) expected.push_back(s);
  }
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(read_with(fault(SensorFault::Kind::kDrop, 3)), expected);
}

TEST(FaultyLog, DuplicatesComeAMillisecondLater) {
  const std::vector<Seen> seen = read_with(fault(SensorFault::Kind::kDuplicate));
  ASSERT_EQ(seen.size(), 37U);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (seen[i].topic != seen[i - 1].topic || seen[i].index != seen[i - 1].index) continue;
    EXPECT_EQ(seen[i].arrival_ms, seen[i - 1].arrival_ms + 1);
    EXPECT_EQ(seen[i].delay_us, 3000);  // its stamp stayed
    EXPECT_EQ(seen[i].bytes, seen[i - 1].bytes);
  }
}

TEST(FaultyLog, LateMessagesKeepTheirStampsAndTheOrderOfArrivals) {
  SensorFault late = fault(SensorFault::Kind::kLate);
  late.by = milliseconds(35);
  const std::vector<Seen> seen = read_with(late);
  ASSERT_EQ(seen.size(), 30U);
  int moved = 0;
  for (const Seen& s : seen) moved += s.delay_us == 37'000 ? 1 : 0;
  EXPECT_EQ(moved, 7);
}

TEST(FaultyLog, ReorderedPairsSwapTheirArrivals) {
  const std::vector<Seen> seen = read_with(fault(SensorFault::Kind::kReorder, 4));
  ASSERT_EQ(seen.size(), 30U);  // nothing is lost
  int back = 0;
  std::uint64_t last = 0;
  for (const Seen& s : seen) {
    if (s.topic != "/front") continue;
    back += s.index < last ? 1 : 0;
    last = std::max(last, s.index);
  }
  EXPECT_EQ(back, 1);
}

TEST(FaultyLog, AHeldMessageComesAtTheEndOfTheLogAtTheLatest) {
  SensorFault reorder = fault(SensorFault::Kind::kReorder);
  reorder.from = milliseconds(280);
  EXPECT_EQ(read_with(reorder).size(), 30U);
}

TEST(FaultyLog, DamagedMessagesAreCutOrTurnedOver) {
  const std::vector<Seen> before = plain(), after = read_with(fault(SensorFault::Kind::kCorrupt));
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].bytes == before[i].bytes, !in_window(before[i])) << i;
    EXPECT_EQ(after[i].arrival_ms, before[i].arrival_ms);
  }
}

TEST(FaultyLog, ClocksStepAndDrift) {
  SensorFault step = fault(SensorFault::Kind::kClockStep);
  step.by = milliseconds(-30);
  for (const Seen& s : read_with(step)) EXPECT_EQ(s.delay_us, in_window(s) ? 32'000 : 2000);
  SensorFault drift = fault(SensorFault::Kind::kClockDrift);
  drift.ppm = -10'000;
  for (const Seen& s : read_with(drift)) {
    EXPECT_EQ(s.delay_us, in_window(s) ? 2000 + (s.arrival_ms - 100) * 10 : 2000);
  }
}

// ---- the check --------------------------------------------------------------------------------------------------

TEST(FaultCheck, CountsWhatTheRunShows) {
  RunData run = test::synthetic_run(8, true);
  test::skip_job(run, test::kLidarStage, 3);
  const auto plan = parse(kHead +
                          "{stage: lidar_detect, job: 3, budgets: 2}], expect: {exit: 0, verdict: PASS, jobs: "
                          "{lidar_detect: {skipped: 1, overrun: [1, 2]}}, chains: {LiDAR to tracks: {void: [1, 8]}}, "
                          "recovery_hyperperiods: 0}}");
  ASSERT_TRUE(plan) << plan.error().message;
  const FaultReport report = check_faults(*plan, run.problem, &run, 0);
  EXPECT_THAT(report.injected.at(0), HasSubstr("lidar_detect#3 computes for 2 budgets"));
  ASSERT_NE(find(report, "lidar_detect skipped"), nullptr);
  EXPECT_TRUE(find(report, "lidar_detect skipped")->met);
  EXPECT_FALSE(find(report, "lidar_detect overrun")->met);
  EXPECT_EQ(find(report, "lidar_detect overrun")->expected, "1 to 2");
  EXPECT_EQ(find(report, "lidar_detect overrun")->seen, "0");
  EXPECT_TRUE(find(report, "violated")->met);
  EXPECT_TRUE(find(report, "hyperperiods until")->met);
  EXPECT_FALSE(report.met());
}

TEST(FaultCheck, RecoveryCountsFromTheLastFaultyHyperperiod) {
  RunData run = test::synthetic_run(8, true);
  test::skip_job(run, test::kLidarStage, 3);
  test::skip_job(run, test::kCameraStage, 15);  // two behind it
  test::skip_job(run, test::kLidarStage, 6);    // the failed stage's own worker is not done: not takt's to say
  const auto plan =
      parse(kHead + "{stage: lidar_detect, job: 3, budgets: 2}], expect: {exit: 0, recovery_hyperperiods: 1}}");
  ASSERT_TRUE(plan);
  const FaultReport report = check_faults(*plan, run.problem, &run, 0);
  EXPECT_FALSE(find(report, "hyperperiods until")->met);
  EXPECT_EQ(find(report, "hyperperiods until")->seen, "2, camera_detect#15 was skipped");
}

// An expected count is of the fault: what a noisy machine adds on its own does not fail a scenario, what the failing
// stage brought upon others does.
TEST(FaultCheck, TheMachinesOwnNoiseDoesNotCount) {
  const auto plan =
      parse(kHead +
            "{stage: lidar_detect, job: 3, budgets: 2}], expect: {exit: 0, jobs: {lidar_detect: {overrun: "
            "1}, fusion: {late_start: 0, ok: 16}}, chains: {LiDAR to tracks: {void: 1}, camera to "
            "tracks: {held: 16, void: 0}}, recovery_hyperperiods: 0}}");
  ASSERT_TRUE(plan) << plan.error().message;
  const auto late = [](RunData& run, std::uint32_t stage, std::uint64_t job) {
    sched::JobRecord& record = test::record_of(run, stage, job);
    record.actual_start += milliseconds(3).ns;
    record.flags |= sched::kFlagLateStart;
    record.job_class = sched::JobClass::kLateStart;
  };
  RunData run = test::synthetic_run(8, true);
  sched::JobRecord& overrun = test::record_of(run, test::kLidarStage, 3);
  overrun.flags |= sched::kFlagOverrun;
  overrun.job_class = sched::JobClass::kOverrun;
  late(run, test::kFusionStage, 10);  // a late wake-up of the machine
  const FaultReport noisy = check_faults(*plan, run.problem, &run, 0);
  for (const FaultExpectation& e : noisy.expectations)
    EXPECT_TRUE(e.met) << e.what << ": " << e.expected << ", seen " << e.seen;
  EXPECT_EQ(find(noisy, "fusion late start")->seen, "1, 1 by the machine");

  // So is one so late that the job was not started any more, and what that did to others.
  RunData woken_late = run;
  test::skip_job(woken_late, test::kFusionStage, 10, sched::Reason::kSlotOver);
  const FaultReport skipped = check_faults(*plan, woken_late.problem, &woken_late, 0);
  for (const FaultExpectation& e : skipped.expectations)
    EXPECT_TRUE(e.met) << e.what << ": " << e.expected << ", seen " << e.seen;
  EXPECT_EQ(find(skipped, "fusion ok")->seen, "15, the machine took 1");

  // The same late start, but the stage that was made to fail still held the core.
  const sched::JobRecord& held = test::record_of(run, test::kFusionStage, 7);
  overrun.completion = held.nominal_start + milliseconds(2).ns;
  late(run, test::kFusionStage, 7);
  const FaultReport hurt = check_faults(*plan, run.problem, &run, 0);
  EXPECT_FALSE(find(hurt, "fusion late start")->met);
  EXPECT_EQ(find(hurt, "fusion late start")->seen, "2, 1 by the machine");
}

// A verdict falls short of PASS by what the fault made void, not by what the machine did beside it.
TEST(FaultCheck, WhatTheMachineMadeVoidDecidesNoVerdict) {
  const auto plan = parse(kHead + "{stage: lidar_detect, job: 1, budgets: 2}], expect: {exit: 0, verdict: PASS}}");
  ASSERT_TRUE(plan) << plan.error().message;
  const auto run_with = [&](std::uint64_t skipped, std::uint64_t late) {
    RunData run = test::synthetic_run(12, true);
    sched::JobRecord& overrun = test::record_of(run, test::kLidarStage, 1);
    overrun.flags |= sched::kFlagOverrun;
    overrun.job_class = sched::JobClass::kOverrun;
    for (std::uint64_t job = 2; job < 2 + skipped; ++job) test::skip_job(run, test::kLidarStage, job);
    for (std::uint64_t job = 12 - late; job < 12; ++job) {  // wake-ups of the machine
      sched::JobRecord& record = test::record_of(run, test::kLidarStage, job);
      record.actual_start += milliseconds(3).ns;
      record.flags |= sched::kFlagLateStart;
      record.job_class = sched::JobClass::kLateStart;
    }
    return run;
  };
  const RunData noisy = run_with(2, 5);
  const FaultReport borne = check_faults(*plan, noisy.problem, &noisy, 0);
  ASSERT_NE(find(borne, "verdict"), nullptr);
  EXPECT_EQ(find(borne, "verdict")->seen, "NOT JUDGED, but for what the machine made void");
  EXPECT_TRUE(find(borne, "verdict")->met);
  const RunData hurt = run_with(7, 1);
  const FaultReport unmet = check_faults(*plan, hurt.problem, &hurt, 0);
  EXPECT_FALSE(find(unmet, "verdict")->met) << find(unmet, "verdict")->seen;
}

TEST(FaultCheck, ARunThatEndedWithAnErrorHasItsExitCodeOnly) {
  const auto plan = parse(kHead + "{process: disk_full}], expect: {exit: 5, verdict: PASS}}");
  ASSERT_TRUE(plan);
  const sched::Problem problem = test::synthetic_run(1, false).problem;
  EXPECT_TRUE(check_faults(*plan, problem, nullptr, 5).met());
  EXPECT_FALSE(check_faults(*plan, problem, nullptr, 0).met());
}

}  // namespace
}  // namespace takt::pipeline
