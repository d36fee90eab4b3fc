#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <filesystem>

#include "scheduler/model/gpu.h"
#include "scheduler/model/subject.h"
#include "scheduler/model/what_if.h"
#include "scheduler/model/yaml.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::HasSubstr;

constexpr const char* kPipeline = R"(hyperperiod_ms: 100
stages:
  - name: camera_detect
    type: some_type
    params: {threshold: 3}
    rates_hz: [30, 10]
    inputs:
      - {name: image, sensor: camera}
    variants:
      - name: full
        budgets:
          - {ms: 8.0}
          - {cores: 2, ms: 4.8, provenance: profiled, samples: 1000, margin: 1.3, high_water_ms: 3.7}
      - {name: lite, budgets: [{cores: 1, ms: 3}]}
    overrun: continue_late
    slack_ms: 1.5
  - name: fusion
    type: other
    rate_hz: 10
    inputs:
      - {name: camera, stage: camera_detect, hold: 1}
      - {name: tracks, stage: fusion, feedback: true}
    variants: [{name: full, budgets: [{cores: 1, ms: 2.0}]}]
chains:
  - name: c
    path: [camera, camera_detect, fusion]
    limit_ms: {latency: 150, age_at_output: 160.5}
)";

std::vector<Sensor> sensors() { return {test::free_sensor("camera", 30, milliseconds(10), milliseconds(12))}; }

// The problem of a text, or all errors in one string.
struct Read {
  Problem problem;
  std::string errors;
};
Read read(const std::string& text) {
  Read out;
  const Result<YamlDocument> document = YamlDocument::parse(text, "p.yaml");
  if (!document) return {{}, document.error().message};
  const YamlNode root = document->root();
  out.problem = read_problem(root, "p", test::two_cores(), sensors());
  // What assembly reads from the same nodes.
  if (const auto stages = root.find("stages")) {
    for (const YamlNode& stage : stages->items()) {
      (void)stage.find("type");
      if (const auto params = stage.find("params")) (void)params->entries();
    }
  }
  if (const Status status = document->finish(); !status) out.errors = status.error().message;
  return out;
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kPipeline;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PipelineYaml, ReadsOverrunPolicies) {
  const auto policy_of = [](const std::string& text) {
    // Two cores for the lesser variant too, so that it fits whatever slots the table has.
    std::string file = with("overrun: continue_late", text);
    const std::string one = "{name: lite, budgets: [{cores: 1, ms: 3}]}";
    file.replace(file.find(one), one.size(), "{name: lite, budgets: [{cores: 1, ms: 3}, {cores: 2, ms: 2}]}");
    const Read got = read(file);
    EXPECT_EQ(got.errors, "") << text;
    const Status sound = check(got.problem);
    EXPECT_TRUE(sound) << sound.error().message;
    return got.problem.stages.at(0);
  };
  EXPECT_EQ(policy_of("overrun: abort").overrun, OverrunPolicy::kAbort);
  EXPECT_EQ(policy_of("overrun: skip_next").overrun, OverrunPolicy::kSkipNext);
  const std::string second = read(kPipeline).problem.stages[0].variants[1].name;
  const Stage lite = policy_of("overrun: degrade\n    degrade_to: {variant: " + second + "}");
  EXPECT_EQ(lite.overrun, OverrunPolicy::kDegrade);
  EXPECT_EQ(lite.degraded_variant, second);
  const Stage slow = policy_of("overrun: degrade\n    degrade_to: {mode: slow}");
  EXPECT_EQ(slow.degraded_mode, "slow");
  EXPECT_EQ(slow.degraded_variant, "");
}

TEST(PipelineYaml, AVariantToDegradeToFitsWhateverTheTableChooses) {
  const std::string degrade = "overrun: degrade\n    degrade_to: {variant: lite}";
  const auto refusal = [&degrade](const std::string& from, const std::string& to) {
    std::string text = with("overrun: continue_late", degrade);
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    const Read got = read(text);
    EXPECT_EQ(got.errors, "");
    Subject subject;
    const Status sound = check(got.problem, subject);
    if (!sound) {
      EXPECT_EQ(subject.kind, Subject::Kind::kStage);
      EXPECT_EQ(subject.index, 0U);
    }
    return sound ? std::string() : sound.error().message;
  };
  EXPECT_THAT(refusal("", ""),
              HasSubstr("jobs of 'full' degrade to 'lite', which has no budget of at most 4.800 ms on 2"));
  EXPECT_EQ(refusal("{cores: 1, ms: 3}", "{cores: 1, ms: 8}, {cores: 2, ms: 4.8}"), "");
  EXPECT_THAT(refusal("{cores: 1, ms: 3}", "{cores: 1, ms: 8.1}, {cores: 2, ms: 4.8}"),
              HasSubstr("8.000 ms on 1 core"));
}

TEST(PipelineYaml, ReadsEverything) {
  const Read got = read(kPipeline);
  ASSERT_EQ(got.errors, "");
  ASSERT_TRUE(check(got.problem)) << check(got.problem).error().message;
  ASSERT_EQ(got.problem.stages.size(), 2u);
  const Stage& camera = got.problem.stages[0];
  EXPECT_EQ(camera.rates, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(camera.slack, microseconds(1500));
  ASSERT_EQ(camera.variants.size(), 2u);
  ASSERT_EQ(camera.variants[0].budgets.size(), 2u);
  EXPECT_EQ(camera.variants[0].budgets[0].cores, 1);
  EXPECT_EQ(camera.variants[0].budgets[0].provenance, Provenance::kDeclared);
  const Budget& two = camera.variants[0].budgets[1];
  EXPECT_EQ(two.cores, 2);
  EXPECT_EQ(two.time, microseconds(4800));
  EXPECT_EQ(two.provenance, Provenance::kProfiled);
  EXPECT_EQ(two.samples, 1000u);
  EXPECT_EQ(two.high_water, microseconds(3700));
  EXPECT_DOUBLE_EQ(two.margin, 1.3);
  EXPECT_TRUE(camera.inputs[0].from_sensor);
  const Stage& fusion = got.problem.stages[1];
  EXPECT_EQ(fusion.inputs[0].source, 0u);
  EXPECT_EQ(fusion.inputs[0].absence.hold, 1u);
  EXPECT_TRUE(fusion.inputs[1].feedback);
  EXPECT_EQ(fusion.inputs[1].source, 1u);
  ASSERT_EQ(got.problem.chains.size(), 1u);
  EXPECT_EQ(got.problem.chains[0].stages, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(got.problem.chains[0].limits[0], milliseconds(150));
  EXPECT_EQ(got.problem.chains[0].limits[1], std::nullopt);
  EXPECT_EQ(got.problem.chains[0].limits[2], microseconds(160'500));
}

TEST(PipelineYaml, ErrorsHaveLineColumnAndAdvice) {
  EXPECT_THAT(read(with("rate_hz: 10", "rate_hz: 15")).errors, HasSubstr("p.yaml:19:14: "));
  EXPECT_THAT(read(with("rate_hz: 10", "rate_hz: 15")).errors, HasSubstr("with hyperperiod_ms: 200 it would be 3"));
  EXPECT_THAT(read(with("sensor: camera", "sensor: camra")).errors, HasSubstr("did you mean 'camera'?"));
  EXPECT_THAT(read(with("stage: camera_detect", "stage: camera_detct")).errors,
              HasSubstr("did you mean 'camera_detect'?"));
  EXPECT_THAT(read(with("slack_ms", "slak_ms")).errors, HasSubstr("p.yaml:16:5: unknown key 'slak_ms'"));
  EXPECT_THAT(read(with("ms: 8.0", "ms: -8.0")).errors, HasSubstr("p.yaml:12:18: "));
  EXPECT_THAT(read(with("cores: 2", "cores: 3")).errors, HasSubstr("allowed: 1 to 2"));
  EXPECT_THAT(read(with("{cores: 2", "{cores: 1")).errors, HasSubstr("already a budget for 1 core"));
  EXPECT_THAT(read(with("overrun: continue_late", "overrun: abandon")).errors, HasSubstr("unknown value 'abandon'"));
  EXPECT_THAT(read(with("overrun: continue_late", "overrun: degrade")).errors, HasSubstr("to what?"));
  EXPECT_THAT(read(with("overrun: continue_late", "overrun: abort\n    degrade_to: {mode: slow}")).errors,
              HasSubstr("only 'overrun: degrade' leads to"));
  EXPECT_THAT(read(with("overrun: continue_late", "overrun: degrade\n    degrade_to: {variant: none}")).errors,
              HasSubstr("none"));
  EXPECT_THAT(read(with("overrun: continue_late", "overrun: degrade\n    degrade_to: {}")).errors,
              HasSubstr("either 'variant' or 'mode'"));
  EXPECT_THAT(read(with("name: fusion", "name: camera_detect")).errors, HasSubstr("already a stage named"));
  EXPECT_THAT(read(with("name: lite", "name: full")).errors, HasSubstr("already a variant named"));
  EXPECT_THAT(read(with("feedback: true", "feedback: false")).errors, HasSubstr("does not come before this one"));
  EXPECT_THAT(read(with("sensor: camera}", "sensor: camera, stage: fusion}")).errors,
              HasSubstr("either 'sensor' or 'stage'"));
  EXPECT_THAT(read(with("    rate_hz: 10\n", "")).errors, HasSubstr("give either 'rate_hz' or 'rates_hz'"));
  EXPECT_THAT(read(with("[camera, camera_detect, fusion]", "[camera, fusion]")).errors,
              HasSubstr("stage 'fusion' has no input from 'camera'"));
  EXPECT_THAT(read(with("[camera, camera_detect, fusion]", "[camera]")).errors, HasSubstr("at least one stage"));
  EXPECT_THAT(read(with("latency: 150", "latncy: 150")).errors, HasSubstr("unknown key 'latncy'"));
  EXPECT_THAT(read(with("rates_hz: [30, 10]", "rates_hz: []")).errors, HasSubstr("at least one rate"));
  EXPECT_THAT(read(with("ms: 2.0", "ms: .nan")).errors, HasSubstr("expected a number"));
  EXPECT_THAT(read(with("hyperperiod_ms: 100", "hyperperiod_ms: 0")).errors, HasSubstr("out of range"));
}

// One mistake, one line: what cannot be judged beside it is not judged.
TEST(PipelineYaml, NoErrorFollowsFromAnother) {
  const std::string no_length = read(with("hyperperiod_ms: 100", "hyperperiod_ms: -1")).errors;
  EXPECT_THAT(no_length, HasSubstr("p.yaml:1:17: hyperperiod_ms: -1 is out of range"));
  EXPECT_EQ(no_length.find('\n'), std::string::npos) << no_length;
  const std::string none = read(with("hyperperiod_ms: 100\n", "")).errors;
  EXPECT_EQ(none.find('\n'), std::string::npos) << none;
  const std::string no_rate = read(with("rate_hz: 10", "rate_hz: -10")).errors;
  EXPECT_THAT(no_rate, HasSubstr("rate_hz: -10 is out of range"));
  EXPECT_EQ(no_rate.find('\n'), std::string::npos) << no_rate;
}

TEST(PipelineYaml, AllErrorsAtOnce) {
  std::string text = with("sensor: camera", "sensor: camra");
  text.replace(text.find("slack_ms"), 8, "slak_ms");
  const std::string errors = read(text).errors;
  EXPECT_THAT(errors, HasSubstr("camra"));
  EXPECT_THAT(errors, HasSubstr("slak_ms"));
}

// A problem by itself, with everything that a file may hold: a change of its text, and all errors.
constexpr const char* kWhole = R"(name: whole
hyperperiod_ms: 100
sensors:
  - {name: camera, rate_hz: 30, delay_ms: [10, 12], phase_ms: 5, phase_jitter_ms: 0.3, drift_ppm: 50}
  - {name: lidar, rate_hz: 10, delay_ms: [3, 5], drift_ppm: 100}
mutexes: [scratch, tracks]
stages:
  - name: camera_detect
    rate_hz: 30
    inputs: [{name: image, sensor: camera}]
    variants:
      - name: gpu
        arena_mb: 10
        arena_mutex: scratch
        budgets:
          - interference: cores
            segments:
              - {on: cores, ms: 0.4}
              - {on: h2d, ms: 1}
              - {on: gpu, ms: 5, guard_ms: 0.5}
              - {on: cores, ms: 0.3, mutexes: [tracks]}
      - {name: cpu, budgets: [{ms: 20}]}
  - name: lidar_detect
    rate_hz: 10
    inputs: [{name: cloud, sensor: lidar}]
    variants: [{name: full, budgets: [{ms: 12}]}]
  - name: fusion
    rate_hz: 10
    inputs: [{name: camera, stage: camera_detect}, {name: lidar, stage: lidar_detect}]
    variants: [{name: full, budgets: [{ms: 2}]}]
chains:
  - {name: camera, path: [camera, camera_detect, fusion], limit_ms: {latency: 150}}
  - {name: lidar, path: [lidar, lidar_detect, fusion]}
disparities:
  - {name: fused, stage: fusion, chains: [camera, lidar], limit_ms: 100}
phase_lock: {sensor: camera, gap_ms: 0.2, filter_ms: 0.05, hold_over_ms: 500}
modes:
  - {name: day, exits: [night, dark], dwell_ms: 1000, lost: dark}
  - name: night
    hyperperiod_ms: 200
    entry_drain_ms: 2
    locked: false
    exits: [day]
    stages:
      - {name: fusion, without: [lidar]}
      - {name: camera_detect, rates_hz: [15], variants: [cpu]}
    chains:
      - {name: camera, limit_ms: {latency: 250}}
  - name: dark
    locked: false
    exits: [day]
    stages:
      - {name: lidar_detect}
      - {name: fusion, without: [camera]}
)";

struct Whole {
  Problem problem;
  std::optional<ModeSet> modes;
  std::string errors;
};
Whole whole(const std::string& from = "", const std::string& to = "") {
  std::string text = kWhole;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const Result<YamlDocument> document = YamlDocument::parse(text, "w.yaml");
  if (!document) return {{}, {}, document.error().message};
  const YamlNode root = document->root();
  Board board = test::two_cores();
  board.units = {{"h2d", UnitKind::kCopyEngine}, {"gpu", UnitKind::kGpuPartition}};
  Whole out;
  out.problem = read_problem(root, root.at("name").text(), board, read_sensors(root.at("sensors")));
  out.modes = read_modes(root, out.problem);
  if (document->finish() && out.modes) check_in_place(root, *out.modes);
  if (const Status status = document->finish(); !status) out.errors = status.error().message;
  return out;
}

TEST(WholeYaml, ReadsUnitsMutexesDisparitiesAndThePhaseLock) {
  const Whole got = whole();
  ASSERT_EQ(got.errors, "");
  ASSERT_TRUE(check(got.problem)) << check(got.problem).error().message;
  const Variant& gpu = got.problem.stages[0].variants[0];
  EXPECT_EQ(gpu.arena_mutex, 0u);
  const Budget& budget = gpu.budgets[0];
  EXPECT_EQ(budget.interference, Interference::kCores);
  ASSERT_EQ(budget.segments.size(), 4u);
  EXPECT_EQ(budget.time, microseconds(6700));
  EXPECT_EQ(budget.segments[0].unit, std::nullopt);
  EXPECT_EQ(budget.segments[1].unit, 0u);
  EXPECT_EQ(budget.segments[2].unit, 1u);
  EXPECT_EQ(budget.segments[2].guard, microseconds(500));
  EXPECT_EQ(budget.segments[3].mutexes, std::vector<std::uint32_t>{1});
  ASSERT_EQ(got.problem.disparities.size(), 1u);
  EXPECT_EQ(got.problem.disparities[0].stage, 2u);
  EXPECT_EQ(got.problem.disparities[0].chains, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(got.problem.disparities[0].limit, milliseconds(100));
  ASSERT_TRUE(got.problem.phase_lock);
  EXPECT_EQ(got.problem.phase_lock->sensor, 0u);
  EXPECT_EQ(got.problem.phase_lock->gap, microseconds(200));
  EXPECT_EQ(got.problem.phase_lock->hold_over, milliseconds(500));
}

TEST(WholeYaml, ReadsModesAsProblemsOfTheirOwn) {
  const Whole got = whole();
  ASSERT_EQ(got.errors, "");
  ASSERT_TRUE(got.modes);
  ASSERT_TRUE(check(*got.modes)) << check(*got.modes).error().message;
  ASSERT_EQ(got.modes->modes.size(), 3u);
  const ModeSpec& day = got.modes->modes[0];
  EXPECT_EQ(day.problem.name, "whole/day");
  EXPECT_EQ(day.problem.stages.size(), 3u);
  EXPECT_EQ(day.exits, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(day.lost, 2u);
  EXPECT_EQ(day.dwell, seconds(1));
  const ModeSpec& night = got.modes->modes[1];
  EXPECT_EQ(night.entry_drain, milliseconds(2));
  EXPECT_EQ(night.problem.hyperperiod, milliseconds(200));
  // In the order of the file, whatever the order of the mode's list.
  ASSERT_EQ(night.problem.stages.size(), 2u);
  EXPECT_EQ(night.problem.stages[0].name, "camera_detect");
  EXPECT_EQ(night.problem.stages[0].rates, std::vector<std::int64_t>{3});
  ASSERT_EQ(night.problem.stages[0].variants.size(), 1u);
  EXPECT_EQ(night.problem.stages[0].variants[0].name, "cpu");
  EXPECT_EQ(night.problem.stages[1].rates, std::vector<std::int64_t>{2});  // still 10 Hz
  ASSERT_EQ(night.problem.stages[1].inputs.size(), 1u);
  EXPECT_EQ(night.problem.stages[1].inputs[0].source, 0u);
  ASSERT_EQ(night.problem.chains.size(), 1u);
  EXPECT_EQ(night.problem.chains[0].limits[0], milliseconds(250));
  EXPECT_TRUE(night.problem.disparities.empty());
  EXPECT_FALSE(night.problem.phase_lock);
  EXPECT_FALSE(night.problem.sensors[0].phase);
  EXPECT_EQ(night.problem.ticks, 2 * day.problem.ticks);
}

TEST(WholeYaml, TablesOfModesSpeakOfTheWhole) {
  const Whole got = whole();
  ASSERT_TRUE(got.modes);
  // By day all three stages as they are; at night camera_detect (0 there) on the CPU, and fusion (1 there).
  Schedule day, night;
  day.clock = {milliseconds(100), 100'000};
  day.choices = {{3, 0, {}}, {1, 0, {}}, {1, 0, {}}};
  day.slots = {{.stage = 1, .cores = {0}, .start = 5, .end = 9}};
  night.clock = {milliseconds(200), 200'000};
  night.choices = {{3, 0, {}}, {2, 0, {}}};
  night.slots = {{.stage = 0, .cores = {1}, .start = 0, .end = 4}, {.stage = 1, .cores = {0}, .start = 6, .end = 9}};
  night.bindings = {{.stage = 1, .job = 1, .input = 0, .producer_stage = 0, .producer_job = 2, .producer_shift = -1}};
  ChainBound bound;
  bound.bounds[0] = milliseconds(77);
  night.bounds = {bound};
  Schedule dark;
  dark.clock = day.clock;
  dark.choices = {{1, 0, {}}, {1, 0, {}}};
  const auto tables = tables_of(got.problem, *got.modes, {day, night, dark});
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->size(), 3u);
  const ModeTable& first = (*tables)[0];
  EXPECT_EQ(first.name, "day");
  EXPECT_EQ(first.dwell, milliseconds(1000));
  EXPECT_EQ(first.lost, 2u);
  EXPECT_TRUE(first.phase_lock);
  EXPECT_EQ(first.reads, (std::vector<std::vector<std::uint8_t>>{{1}, {1}, {1, 1}}));
  const ModeTable& second = (*tables)[1];
  EXPECT_FALSE(second.phase_lock);
  EXPECT_EQ(second.entry_drain, milliseconds(2));
  EXPECT_TRUE(second.runs(0));
  EXPECT_FALSE(second.runs(1));
  EXPECT_EQ(second.schedule.choices[0].variant, 1u);  // "cpu" is the first there, the second here
  EXPECT_EQ(second.schedule.slots[1].stage, 2u);
  EXPECT_EQ(second.schedule.bindings[0].stage, 2u);
  EXPECT_EQ(second.schedule.bindings[0].producer_stage, 0u);
  EXPECT_EQ(second.reads, (std::vector<std::vector<std::uint8_t>>{{1}, {0}, {1, 0}}));
  EXPECT_EQ(second.schedule.bounds[0].chain, 0u);
  EXPECT_EQ(second.limits[0][0], milliseconds(250));
  EXPECT_EQ(second.limits[1][0], std::nullopt);
}

TEST(WholeYaml, AModeToDegradeToIsAnExitOfOneThatRunsTheStage) {
  const auto refusal = [](const std::string& stage, const std::string& mode) {
    const std::string name = "- name: " + stage + "\n";
    const Whole got = whole(name, name + "    overrun: degrade\n    degrade_to: {mode: " + mode + "}\n");
    return got.errors;
  };
  EXPECT_EQ(refusal("lidar_detect", "night"), "");
  EXPECT_EQ(refusal("fusion", "day"), "");
  EXPECT_EQ(refusal("lidar_detect", "day"), "");  // where nothing degrades, since the night does not run it
  EXPECT_THAT(refusal("fusion", "dusk"), testing::ContainsRegex("w.yaml:[0-9]+:[0-9]+: .*'dusk', which is no exit"));
}

TEST(WholeYaml, EveryMistakeHasItsPlace) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const Case cases[] = {
      // Rates, cycles, times, numbers of jobs.
      {"rate_hz: 10\n    inputs: [{name: camera", "rate_hz: 11\n    inputs: [{name: camera",
       "w.yaml:28:14: stages[2].rate_hz: this rate gives 1.100000 jobs"},
      {"stage: lidar_detect}]", "stage: fusion}]",
       "stage 'fusion' does not come before this one; list it first or mark"},
      {"path: [lidar, lidar_detect, fusion]", "path: [lidar, lidr_detect, fusion]",
       "w.yaml:33:33: chains[1].path[1]: unknown stage 'lidr_detect'; did you mean 'lidar_detect'?"},
      {"limit_ms: {latency: 150}", "limit_ms: {jitter: 150}", "w.yaml:32:70: unknown key 'jitter'"},
      {"limit_ms: {latency: 150}", "limit_ms: {latency: -1}",
       "w.yaml:32:79: chains[0].limit_ms.latency: -1 is out of range"},
      {"hyperperiod_ms: 100", "hyperperiod_ms: 1e300", "w.yaml:2:17: "},
      {"{on: h2d, ms: 1}", "{on: h2d, ms: 1e30}", "w.yaml:19:31: "},
      {"rates_hz: [15]", "rates_hz: [100000]",
       "the stages of this mode have 20002 jobs in a hyperperiod of 200.000 ms"},
      // Segments.
      {"on: h2d", "on: d2h", "segments[1].on: unknown unit of the board (or 'cores') 'd2h'"},
      {"              - {on: cores, ms: 0.4}\n", "",
       "w.yaml:18:17: stages[0].variants[0].budgets[0].segments[0]: a job begins on the cores"},
      {"              - {on: cores, ms: 0.3, mutexes: [tracks]}\n", "",
       "w.yaml:20:17: stages[0].variants[0].budgets[0].segments[2]: a job ends on the cores"},
      {"{on: h2d, ms: 1}", "{on: h2d, ms: 1, guard_ms: 1}", "segments[1].guard_ms: only a segment on a GPU partition"},
      {"mutexes: [tracks]", "mutexes: [track]",
       "segments[3].mutexes[0]: unknown mutex 'track'; did you mean 'tracks'?"},
      {"mutexes: [tracks]", "mutexes: [tracks, tracks]", "this mutex is named twice"},
      {"mutexes: [tracks]", "mutexes: [scratch]", "the whole job holds it with the arena"},
      {"        arena_mb: 10\n", "", "there is no arena to share"},
      {"arena_mutex: scratch", "arena_mutex: scrtch",
       "w.yaml:14:22: stages[0].variants[0].arena_mutex: unknown mutex 'scrtch'"},
      {"interference: cores", "interference: gpu",
       "w.yaml:16:27: stages[0].variants[0].budgets[0].interference: unknown value 'gpu'"},
      {"{ms: 20}", "{ms: 20, segments: []}", "give either 'ms', one time on the cores, or 'segments'"},
      {"{ms: 20}", "{cores: 1}", "give either 'ms', one time on the cores, or 'segments'"},
      {"{ms: 20}", "{segments: []}", "at least one segment is needed"},
      {"mutexes: [scratch, tracks]", "mutexes: [scratch, tracks, tracks]", "already a mutex named 'tracks'"},
      {"mutexes: [scratch, tracks]", "mutexes: [scratch, tracks, gpu]", "already a unit named 'gpu'"},
      {"mutexes: [scratch, tracks]", "mutexes: [scratch, tracks, core0]", "already a core named 'core0'"},
      // Disparities.
      {"stage: fusion, chains", "stage: fusin, chains", "unknown stage 'fusin'"},
      {"chains: [camera, lidar]", "chains: [camera]",
       "w.yaml:35:42: disparities[0].chains: samples of at least two chains"},
      {"chains: [camera, lidar]", "chains: [camera, camera]", "named twice"},
      {"chains: [camera, lidar]", "chains: [camera, radar]", "unknown chain 'radar'"},
      {"stage: fusion, chains", "stage: lidar_detect, chains", "chain 'camera' does not lead through 'lidar_detect'"},
      {"limit_ms: 100}", "limit_ms: 0}", "w.yaml:35:69: disparities[0].limit_ms: 0 is out of range"},
      // Phase lock.
      {"phase_lock: {sensor: camera", "phase_lock: {sensor: lidar", "sensor 'lidar' has no phase"},
      {"phase_lock: {sensor: camera", "phase_lock: {sensor: radar",
       "w.yaml:36:22: phase_lock.sensor: unknown sensor 'radar'"},
      {"gap_ms: 0.2", "gap_ms: 0.05",
       "w.yaml:36:38: phase_lock.gap_ms: the largest correction at a boundary is 0.055 ms"},
      {"hold_over_ms: 500", "hold_over_ms: -5", "w.yaml:36:74: phase_lock.hold_over_ms: -5 is out of range"},
      // Modes.
      {"exits: [night, dark]", "exits: [nigt, dark]",
       "w.yaml:38:25: modes[0].exits[0]: unknown mode 'nigt'; did you mean 'night'?"},
      {"exits: [night, dark]", "exits: [day, dark]", "a mode does not lead to itself"},
      {"exits: [night, dark]", "exits: [night, night]", "this exit is listed twice"},
      {"lost: dark", "lost: dusk", "unknown mode 'dusk'"},
      {"exits: [day]\n", "exits: [day]\n    lost: day\n", "modes[1].lost: this mode has no phase lock"},
      {"name: night\n", "name: day\n", "already a mode named 'day'"},
      // A mode for a lost reference does without it; a stage keeps an input.
      {"lost: dark", "lost: night",
       "w.yaml:39:5: modes[1]: mode 'night': it is where 'day' goes when sensor 'camera' is "
       "lost, and its chain 'camera' begins there"},
      {"    locked: false\n    exits: [day]\n    stages:\n      - {name: lidar_detect}",
       "    exits: [day]\n    stages:\n      - {name: lidar_detect}",
       "mode 'dark': phase lock: no stage reads sensor 'camera', so that nobody sees the stamps"},
      {"- {name: lidar_detect}\n      - {name: fusion, without: [camera]}",
       "- {name: camera_detect}\n      - {name: lidar_detect}\n      - {name: fusion, without: [camera, lidar]}",
       "stages[2].without: stage 'fusion' has no input left in this mode; leave out the stage as well"},
      {"hyperperiod_ms: 200", "hyperperiod_ms: 150", "runs 1 times in 100.000 ms, which is no whole number of times"},
      {"rates_hz: [15]", "rates_hz: [17]", "this rate gives 3.400000 jobs in a hyperperiod of 200.000 ms"},
      {"rates_hz: [15]", "rates_hz: []", "at least one rate is needed"},
      {"variants: [cpu]", "variants: [npu]", "unknown variant 'npu'"},
      {"variants: [cpu]", "variants: []", "at least one variant is needed"},
      {"without: [lidar]", "without: [lidr]", "unknown input 'lidr'; did you mean 'lidar'?"},
      {", without: [lidar]", "",
       "w.yaml:39:11: modes[1].name: stage 'fusion' reads 'lidar_detect', which this mode does not have; list that "
       "stage, or take the "
       "input away with 'without: [lidar]'"},
      {"- {name: camera, limit_ms: {latency: 250}}", "- {name: lidar}",
       "chain 'lidar' leads through a stage or input that this mode lacks"},
      {"entry_drain_ms: 2", "entry_drain_ms: -2", "w.yaml:41:21: modes[1].entry_drain_ms: -2 is out of range"},
      {"dwell_ms: 1000", "dwell_ms: long", "expected a number"},
      {"- {name: fusion, without: [lidar]}", "- {name: camera_detect, rates_hz: [15]}", "is listed twice"},
      {"hyperperiod_ms: 200", "hyperperiod_ms: 1000.0007", "w.yaml"},
  };
  for (const Case& each : cases) {
    const std::string errors = whole(each.from, each.to).errors;
    EXPECT_THAT(errors, HasSubstr(each.message)) << each.from << " -> " << each.to;
    EXPECT_THAT(errors, testing::ContainsRegex("w.yaml:[0-9]+:[0-9]+: ")) << each.from << " -> " << each.to;
  }
}

TEST(BoardYaml, UnitsHaveNamesOfTheirOwnAndAKind) {
  const auto errors = [](const std::string& units) {
    const auto document = YamlDocument::parse(
        "name: b\ncores:\n  - {name: c, cpu: 0, wakeup_window_us: 200, publish_window_us: 200}\nunits:\n" + units,
        "b.yaml");
    EXPECT_TRUE(document);
    const Board board = read_board(document->root());
    const Status status = document->finish();
    return status ? std::to_string(board.units.size()) + " units" : status.error().message;
  };
  EXPECT_EQ(errors("  - {name: h2d, kind: copy}\n  - {name: gpu, kind: gpu}\n"), "2 units");
  EXPECT_THAT(errors("  - {name: c, kind: gpu}\n"),
              HasSubstr("b.yaml:5:12: units[0].name: there is already a core named 'c'"));
  EXPECT_THAT(errors("  - {name: g, kind: gpu}\n  - {name: g, kind: copy}\n"), HasSubstr("already a unit named 'g'"));
  EXPECT_THAT(errors("  - {name: cores, kind: gpu}\n"), HasSubstr("'cores' stands for a stage's home cores"));
  EXPECT_THAT(errors("  - {name: g, kind: dla}\n"), HasSubstr("unknown value 'dla'"));
}

TEST(WhatIf, ScalesEverySegment) {
  Problem problem = whole().problem;
  ASSERT_TRUE(apply_what_if(problem, "camera_detect.budget=+10%"));
  const Budget& budget = problem.stages[0].variants[0].budgets[0];
  EXPECT_EQ(budget.segments[2].time, microseconds(5500));
  EXPECT_EQ(budget.time, microseconds(7370) + nanoseconds(1));  // rounded up, each for itself
  EXPECT_EQ(problem.stages[0].variants[1].budgets[0].time, milliseconds(22));
  const Status status = apply_what_if(problem, "camera_detect.budget=5ms");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("consist of segments"));
  BudgetTable table;
  table.budgets = {{"camera_detect", "gpu", budget_from(1, milliseconds(5), 1.3, 1000)}};
  EXPECT_THAT(apply_budgets(problem, table).error().message, HasSubstr("budgets give one time for variant 'gpu'"));
}

TEST(Budgets, OfSegmentsAreRoundTrippedAndKeepTheirPlaces) {
  Problem problem = whole().problem;
  const std::vector<Segment> planned = problem.stages[0].variants[0].budgets[0].segments;
  BudgetTable table;
  table.board = problem.board.name;
  table.machine = "a test";
  table.budgets = {{"camera_detect", "gpu", budget_from(1, milliseconds(4), 1.3, 1000)}};
  Budget& budget = table.budgets[0].budget;
  budget.time = {};
  for (std::size_t i = 0; i < planned.size(); ++i) {
    budget.segments.emplace_back().time = microseconds(100 + static_cast<std::int64_t>(i)) + nanoseconds(1);
    budget.time += budget.segments.back().time;
  }
  budget.high_water = budget.time;
  const auto document = YamlDocument::parse(to_yaml(table), "budgets.yaml");
  ASSERT_TRUE(document);
  const BudgetTable back = read_budgets(document->root());
  ASSERT_TRUE(document->finish()) << document->finish().error().message;
  ASSERT_TRUE(apply_budgets(problem, back));
  const Budget& applied = problem.stages[0].variants[0].budgets[0];
  EXPECT_EQ(applied.time, budget.time);
  ASSERT_EQ(applied.segments.size(), planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    EXPECT_EQ(applied.segments[i].time, budget.segments[i].time);
    EXPECT_EQ(applied.segments[i].unit, planned[i].unit);
    EXPECT_EQ(applied.segments[i].guard, planned[i].guard);
    EXPECT_EQ(applied.segments[i].mutexes, planned[i].mutexes);
  }
  EXPECT_TRUE(check(problem));
  budget.time += nanoseconds(1);
  const auto other = YamlDocument::parse(to_yaml(table), "budgets.yaml");
  ASSERT_TRUE(other);
  (void)read_budgets(other->root());
  EXPECT_THAT(other->finish().error().message, HasSubstr("their sum is"));
}

TEST(BoardYaml, ShippedBoardsLoad) {
  const Result<Board> generic = load_board(TAKT_SOURCE_DIR "/configs/boards/generic2.yaml");
  ASSERT_TRUE(generic) << generic.error().message;
  EXPECT_EQ(generic->name, "generic2");
  ASSERT_EQ(generic->cores.size(), 2u);
  EXPECT_DOUBLE_EQ(generic->cores[0].reserve, 0.25);
  EXPECT_DOUBLE_EQ(generic->cores[1].reserve, 0.0);
  const Result<Board> orin = load_board(TAKT_SOURCE_DIR "/configs/boards/orin8.yaml");
  ASSERT_TRUE(orin) << orin.error().message;
  EXPECT_EQ(orin->cores.size(), 8u);
  for (const auto& file : std::filesystem::directory_iterator(TAKT_SOURCE_DIR "/configs/boards")) {
    const Result<Board> board = load_board(file.path().string());
    ASSERT_TRUE(board) << board.error().message;
    EXPECT_LE(board->switch_cost, milliseconds(1)) << file.path();
  }
  EXPECT_EQ(generic->switch_cost, microseconds(200));
}

TEST(BoardYaml, AGpuDeclaresItsFigures) {
  for (const char* const name : {"orin_agx", "orin_nx", "orin_nano"}) {
    const auto gpu = load_gpu_figures(std::string(TAKT_SOURCE_DIR "/configs/boards/") + name + ".yaml");
    ASSERT_TRUE(gpu) << gpu.error().message;
    EXPECT_EQ(gpu->board, name);
    EXPECT_EQ(gpu->unit, "gpu");
    EXPECT_GT(gpu->gflops, 1000);
    EXPECT_GT(gpu->gb_s, 60);
    EXPECT_EQ(gpu->guard, milliseconds(1));
  }
  const auto none = load_gpu_figures(TAKT_SOURCE_DIR "/configs/boards/generic2.yaml");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kConfiguration);
  EXPECT_THAT(none.error().message, HasSubstr("declares the figures of a GPU"));

  const auto document = YamlDocument::parse(
      "name: b\ncores:\n  - {name: c, cpu: 0, wakeup_window_us: 200, publish_window_us: 200}\nunits:\n  - {name: d, "
      "kind: "
      "copy, figures: {gflops: 1, gb_s: 1}}\n",
      "b.yaml");
  ASSERT_TRUE(document);
  (void)read_board(document->root());
  const std::string errors = document->finish().error().message;
  EXPECT_THAT(errors, HasSubstr("b.yaml:5:37: unknown key 'gflops'"));
}

TEST(BoardYaml, RefusesWindowsOutsideTheRange) {
  const auto document = YamlDocument::parse(
      "name: b\nswitch_cost_us: 1001\ncores:\n  - {name: c, cpu: 0, wakeup_window_us: 100, publish_window_us: 6000}\n  "
      "- {name: c, cpu: 0, "
      "wakeup_window_us: 200, publish_window_us: 200}\n",
      "b.yaml");
  ASSERT_TRUE(document);
  (void)read_board(document->root());
  const std::string errors = document->finish().error().message;
  EXPECT_THAT(errors, HasSubstr("100 is out of range; allowed: 200 to 5000"));
  EXPECT_THAT(errors, HasSubstr("6000 is out of range"));
  EXPECT_THAT(errors, HasSubstr("b.yaml:2:17: switch_cost_us: 1001 is out of range; allowed: 0 to 1000"));
  EXPECT_THAT(errors, HasSubstr("already a core named 'c'"));
  EXPECT_THAT(errors, HasSubstr("cpu 0 is listed twice"));
}

TEST(Budgets, SurviveTheFileAndReplaceDeclaredOnes) {
  BudgetTable table;
  table.board = "generic2";
  table.machine = "two \"cores\", kernel 6.1";
  table.budgets.push_back({"camera_detect", "full", budget_from(1, nanoseconds(3'700'001), 1.3, 1000)});
  table.budgets.push_back({"fusion", "full", budget_from(2, microseconds(900), 1.5, 200), {"alone", "memory"}});
  table.budgets[0].budget.interference = Interference::kNone;
  EXPECT_EQ(table.budgets[0].budget.time.ns, 4'810'002);  // rounded up
  EXPECT_EQ(table.budgets[0].budget.provenance, Provenance::kProfiled);
  EXPECT_EQ(table.budgets[1].budget.provenance, Provenance::kExploratory);

  const Result<YamlDocument> document = YamlDocument::parse(to_yaml(table), "budgets.yaml");
  ASSERT_TRUE(document) << document.error().message;
  const BudgetTable back = read_budgets(document->root());
  ASSERT_TRUE(document->finish()) << document->finish().error().message;
  EXPECT_EQ(back.board, table.board);
  EXPECT_EQ(back.machine, table.machine);
  ASSERT_EQ(back.budgets.size(), 2u);
  EXPECT_EQ(back.budgets[0].budget.time, table.budgets[0].budget.time);
  EXPECT_EQ(back.budgets[0].budget.high_water, table.budgets[0].budget.high_water);
  EXPECT_EQ(back.budgets[0].budget.margin, 1.3);
  EXPECT_EQ(back.budgets[1].budget.samples, 200u);
  EXPECT_EQ(back.budgets[0].budget.interference, Interference::kNone);
  EXPECT_EQ(back.budgets[1].budget.interference, Interference::kAny);
  EXPECT_EQ(back.budgets[1].beside, (std::vector<std::string>{"alone", "memory"}));

  Problem problem = test::perception();
  ASSERT_TRUE(apply_budgets(problem, back));
  EXPECT_EQ(problem.stages[0].variants[0].budgets[0].time.ns, 4'810'002);
  EXPECT_EQ(problem.stages[0].variants[0].budgets[1].time, milliseconds(5));  // not named: stays
  ASSERT_EQ(problem.stages[3].variants[0].budgets.size(), 2u);                // a core count that was not declared
  EXPECT_EQ(problem.stages[3].variants[0].budgets[1].time, microseconds(1350));
}

TEST(Budgets, OfAnotherBoardStageOrVariantAreRefusedWhole) {
  Problem problem = test::perception();
  BudgetTable table;
  table.board = "generic2";
  table.budgets.push_back({"fusion", "full", budget_from(1, milliseconds(1), 1.3, 1000)});
  table.budgets.push_back({"fusin", "full", budget_from(1, milliseconds(1), 1.3, 1000)});
  EXPECT_THAT(apply_budgets(problem, table).error().message, HasSubstr("did you mean 'fusion'?"));
  EXPECT_EQ(problem.stages[3].variants[0].budgets[0].time, milliseconds(3));
  table.budgets[1].stage = "fusion";
  table.budgets[1].variant = "lite";
  EXPECT_THAT(apply_budgets(problem, table).error().message, HasSubstr("unknown variant 'lite'"));
  // Read from a file, with the place there.
  const auto document = YamlDocument::parse(to_yaml(table), "budgets.yaml");
  ASSERT_TRUE(document);
  const std::string placed = apply_budgets(problem, read_budgets(document->root())).error().message;
  EXPECT_EQ(placed.rfind("budgets.yaml:13:5: budgets name an unknown variant 'lite' of stage 'fusion'", 0), 0u)
      << placed;
  table.board = "orin8";
  EXPECT_THAT(apply_budgets(problem, table).error().message, HasSubstr("orin8"));
}

TEST(Budgets, ThatContradictThemselvesAreRefusedWithTheirPlaces) {
  BudgetTable table;
  table.board = "generic2";
  table.machine = "a test";
  table.budgets.push_back({"fusion", "full", budget_from(1, milliseconds(2), 1.3, 1000)});
  table.budgets.push_back({"fusion", "full", budget_from(2, milliseconds(1), 1.3, 1000)});
  const auto errors = [&table] {
    const auto document = YamlDocument::parse(to_yaml(table), "budgets.yaml");
    if (document) (void)read_budgets(document->root());
    const Status finished = document ? document->finish() : fail(document.error());
    return finished ? std::string() : finished.error().message;
  };
  EXPECT_EQ(errors(), "");
  table.budgets[1].budget.cores = 1;
  EXPECT_THAT(errors(), HasSubstr("budgets.yaml:13:5: "));
  EXPECT_THAT(errors(), HasSubstr("there is already a budget for variant 'full' of stage 'fusion' on 1 core(s), at "
                                  "budgets.yaml:4:5"));
  table.budgets[1].budget.cores = 2;
  table.budgets[0].budget.high_water = milliseconds(4);
  EXPECT_THAT(errors(), HasSubstr("budgets.yaml:8:"));
  EXPECT_THAT(errors(), HasSubstr("a job has taken 4.000 ms, and its budget is 2.600 ms"));
}

TEST(WhatIf, ChangesOneFigure) {
  Problem problem = test::perception();
  ASSERT_TRUE(apply_what_if(problem, "lidar_detect.budget=+20%"));
  EXPECT_EQ(problem.stages[1].variants[0].budgets[0].time, milliseconds(24));
  ASSERT_TRUE(apply_what_if(problem, "lidar_detect.budget=-50%"));
  EXPECT_EQ(problem.stages[1].variants[0].budgets[0].time, milliseconds(12));
  ASSERT_TRUE(apply_what_if(problem, "fusion.budget=800us"));
  EXPECT_EQ(problem.stages[3].variants[0].budgets[0].time, microseconds(800));
  ASSERT_TRUE(apply_what_if(problem, "camera_detect.rate=10Hz"));
  EXPECT_EQ(problem.stages[0].rates, std::vector<std::int64_t>{1});
  ASSERT_TRUE(apply_what_if(problem, "camera_detect.cores=2"));
  ASSERT_EQ(problem.stages[0].variants[0].budgets.size(), 1u);
  EXPECT_EQ(problem.stages[0].variants[0].budgets[0].cores, 2);
  ASSERT_TRUE(apply_what_if(problem, "camera_fusion.latency=80ms"));
  EXPECT_EQ(problem.chains[0].limits[0], milliseconds(80));
  ASSERT_TRUE(apply_what_if(problem, "camera_fusion.latency=+10%"));
  EXPECT_EQ(problem.chains[0].limits[0], milliseconds(88));
  ASSERT_TRUE(apply_what_if(problem, "camera_fusion.age_until_replaced=300ms"));
  EXPECT_EQ(problem.chains[0].limits[3], milliseconds(300));
  ASSERT_TRUE(apply_what_if(problem, "lidar.delay=60ms"));
  EXPECT_EQ(problem.sensors[1].delay_max, milliseconds(60));
  ASSERT_TRUE(apply_what_if(problem, "core0.reserve=40%"));
  EXPECT_DOUBLE_EQ(problem.board.cores[0].reserve, 0.4);
}

TEST(WhatIf, SaysWhatWasNotUnderstoodAndChangesNothing) {
  const auto message = [](const std::string& change) {
    Problem problem = test::perception();
    const Status status = apply_what_if(problem, change);
    EXPECT_EQ(problem.stages[1].variants[0].budgets[0].time, milliseconds(20));
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(message("lidar_detect"), HasSubstr("NAME.FIGURE=VALUE"));
  EXPECT_THAT(message("lidar_detct.budget=+20%"), HasSubstr("did you mean 'lidar_detect'?"));
  EXPECT_THAT(message("lidar_detect.budgt=+20%"), HasSubstr("did you mean 'budget'?"));
  EXPECT_THAT(message("lidar_detect.budget=20%"), HasSubstr("+20%"));
  // The ranges are those of a file.
  EXPECT_THAT(message("lidar_detect.budget=-100%"), HasSubstr("gives 0.000 ms; allowed: 0.001 ms to 100000.000 ms"));
  EXPECT_THAT(message("lidar_detect.budget=100001ms"), HasSubstr("allowed: 0.001 ms to 100000.000 ms"));
  EXPECT_THAT(message("lidar_detect.slack=101s"), HasSubstr("allowed: 0.000 ms to 100000.000 ms"));
  EXPECT_THAT(message("camera_fusion.latency=0.5us"), HasSubstr("allowed: 0.001 ms to 100000.000 ms"));
  EXPECT_THAT(message("camera_fusion.latency=-200%"), HasSubstr("allowed: 0.001 ms to 100000.000 ms"));
  EXPECT_THAT(message("camera_detect.rate=200kHz"), HasSubstr("such as 15Hz"));
  EXPECT_THAT(message("camera_detect.rate=200000Hz"), HasSubstr("0.001 to 100000 Hz"));
  EXPECT_THAT(message("core0.reserve=91%"), HasSubstr("30%"));
  EXPECT_THAT(message("lidar_detect.budget=much"), HasSubstr("+20%"));
  EXPECT_THAT(message("camera_detect.rate=15Hz"), HasSubstr("whole number of jobs"));
  EXPECT_THAT(message("lidar_detect.variant=lite"), HasSubstr("no variant 'lite'"));
  EXPECT_THAT(message("fusion.cores=2"), HasSubstr("no variant has a budget"));
  EXPECT_THAT(message("camera_fusion.reaction=+10%"), HasSubstr("no such limit"));
  EXPECT_THAT(message("lidar.delay=500ms"), HasSubstr("overtake"));
}

TEST(WhatIf, PreferCoresKeepsStagesWithoutThatBudget) {
  Problem problem = test::perception();
  prefer_cores(problem, 2);
  ASSERT_EQ(problem.stages[0].variants[0].budgets.size(), 1u);
  EXPECT_EQ(problem.stages[0].variants[0].budgets[0].cores, 2);
  ASSERT_EQ(problem.stages[2].variants[0].budgets.size(), 1u);
  EXPECT_EQ(problem.stages[2].variants[0].budgets[0].cores, 1);
}

}  // namespace
}  // namespace takt::sched
