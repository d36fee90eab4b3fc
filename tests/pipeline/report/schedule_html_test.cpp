// The page of `takt schedule`: balanced, complete, safe against names from files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "pipeline/report/schedule_html.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/segments.h"

namespace takt::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Every element that is opened is closed in order; void elements apart.
void expect_balanced(const std::string& html) {
  const std::set<std::string> single{"!DOCTYPE", "meta"};
  std::vector<std::string> open;
  const std::size_t styles = html.find("</style>");
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    if (at > html.find("<style>") && at < styles) continue;
    const std::size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" />", tag[0] == '/' ? 1 : 0));
    if (single.count(name) > 0 || tag.back() == '/') continue;
    if (tag[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), tag);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(ScheduleHtml, AFeasibleAnswerShowsTableBoundsAndSlack) {
  const sched::Problem problem = sched::test::perception();
  const sched::Answer answer = sched::synthesize(problem);
  const std::string html = schedule_html(problem, answer, "takt schedule x.yaml");
  expect_balanced(html);
  EXPECT_THAT(html, AllOf(HasSubstr("FEASIBLE"), HasSubstr("Every limit is met. The tightest: "),
                          HasSubstr("prefers-color-scheme:dark"), HasSubstr("takt schedule x.yaml"),
                          HasSubstr("with this table kept"), HasSubstr(answer.schedule->hash().hex())));
  EXPECT_THAT(html, Not(AllOf(HasSubstr("http://"), HasSubstr("<script"))));
  for (const sched::Stage& stage : problem.stages) EXPECT_THAT(html, HasSubstr(stage.name));
  EXPECT_EQ(html, schedule_html(problem, answer, "takt schedule x.yaml"));
  // Each job once per core that it runs on, and once more where it goes on at the beginning.
  std::size_t lanes = 0;
  for (const sched::Slot& slot : answer.schedule->slots) {
    lanes += slot.cores.size() * (slot.end > answer.schedule->clock.ticks ? 2 : 1);
  }
  EXPECT_EQ(count(table_svg(problem, *answer.schedule), "class=\"slot "), lanes);
}

TEST(ScheduleHtml, SaysWhyNot) {
  sched::Problem problem = sched::test::perception();
  problem.chains[1].limits[0] = milliseconds(150);
  const sched::Answer answer = sched::synthesize(problem);
  const std::string html = schedule_html(problem, answer, "takt");
  expect_balanced(html);
  EXPECT_THAT(html, AllOf(HasSubstr("INFEASIBLE"), HasSubstr("20.000 ms too much"), HasSubstr("--check FILE"),
                          Not(HasSubstr("id=\"gantt\""))));
}

TEST(ScheduleHtml, AnUndecidedAnswerShowsWhatTheBestTableBreaks) {
  sched::Problem problem = sched::test::perception();
  sched::Answer answer = sched::synthesize(problem);
  answer.verdict = sched::Verdict::kUndecided;
  answer.reason = "no table was found";
  problem.chains[0].limits[0] = milliseconds(20);
  const std::string html = schedule_html(problem, answer, "takt");
  expect_balanced(html);
  EXPECT_THAT(html, AllOf(HasSubstr("UNDECIDED"), HasSubstr("published over"), HasSubstr("tag bad")));
}

TEST(ScheduleHtml, NamesFromFilesAreOnlyText) {
  sched::Problem problem = sched::test::perception();
  problem.name = "</title><script>alert(1)</script>";
  problem.stages[0].name = "\"><img src=x onerror=alert(1)>";
  problem.board.cores[0].name = "<b>core & more</b>";
  const std::string html = schedule_html(problem, sched::synthesize(problem), "takt '<x>'");
  expect_balanced(html);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<b>core")));
}

TEST(ScheduleHtml, ASetOfModesShowsEveryModeAndEveryChange) {
  sched::ModeSet set;
  set.name = "day and night";
  for (const char* name : {"day", "night"}) {
    sched::ModeSpec& mode = set.modes.emplace_back();
    mode.name = name;
    mode.problem = sched::test::perception();
    mode.problem.name = std::string("set/") + name;
    mode.entry_drain = milliseconds(20);
    mode.dwell = milliseconds(1'000);
  }
  set.modes[1].problem.stages[0].rates = {1};
  set.modes[0].exits = {1};
  set.modes[1].exits = {0};
  const std::vector<sched::Tick> ticks = *sched::common_ticks({set.modes[0].problem, set.modes[1].problem});
  std::vector<sched::Answer> answers;
  for (std::size_t m = 0; m < 2; ++m) {
    set.modes[m].problem.ticks = ticks[m];
    answers.push_back(sched::synthesize(set.modes[m].problem));
    ASSERT_TRUE(answers.back().schedule);
  }
  const sched::ModesAnswer judged = sched::judge_modes(set, answers);
  const std::string html = modes_html(set, answers, judged, "takt schedule set.yaml");
  expect_balanced(html);
  EXPECT_THAT(html,
              AllOf(HasSubstr("Mode day"), HasSubstr("Mode night"), HasSubstr("day \u2192 night"),
                    HasSubstr("id=\"m0-gantt\""), HasSubstr("id=\"m1-gantt\""), HasSubstr("takt schedule set.yaml")));
  EXPECT_EQ(count(html, "<h2>Changes of mode</h2>"), 1u);
  EXPECT_EQ(html, modes_html(set, answers, judged, "takt schedule set.yaml"));
}

// Segments on units have lanes of their own.
TEST(ScheduleHtml, UnitsHaveLanes) {
  const sched::Problem problem = sched::test::gpu_perception();
  const sched::Answer answer = sched::synthesize(problem);
  ASSERT_TRUE(answer.schedule) << answer.reason;
  const std::string html = schedule_html(problem, answer, "takt");
  expect_balanced(html);
  EXPECT_THAT(html, AllOf(HasSubstr(">h2d</text>"), HasSubstr(">gpu</text>"), HasSubstr("part 3 of 5"),
                          HasSubstr("id=\"units\""), HasSubstr("guards")));
  EXPECT_THAT(schedule_html(sched::test::perception(), sched::synthesize(sched::test::perception()), "takt"),
              Not(HasSubstr("id=\"units\"")));
}

// Forty stages: each has a colour of its own, a letter where its name does not fit, and the whole hyperperiod also fits
// on a telephone.
TEST(ScheduleHtml, ManyStagesCanBeToldApart) {
  sched::Problem problem = sched::test::single();
  const sched::Stage one = problem.stages[0];
  problem.stages.clear();
  sched::Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  for (std::uint32_t s = 0; s < 40; ++s) {
    sched::Stage stage = one;
    stage.name = "a_stage_of_some_length_" + std::to_string(s);
    stage.variants[0].budgets[0].time = microseconds(500);
    problem.stages.push_back(stage);
    schedule.choices.push_back({1, 0, stage.variants[0].budgets[0]});
    schedule.slots.push_back({s, 0, {0}, s * 2'300, s * 2'300 + 2'001});
  }
  schedule.bounds = {sched::walk(problem, schedule, 0)};
  sched::Answer answer;
  answer.verdict = sched::Verdict::kFeasible;
  answer.schedule = schedule;
  const std::string html = schedule_html(problem, answer, "takt");
  expect_balanced(html);
  std::set<std::string> colours;
  const std::string key = "<i class=\"key letter\" style=\"background:";
  for (std::size_t at = html.find(key); at != std::string::npos; at = html.find(key, at + 1)) {
    const std::size_t from = at + key.size();
    colours.insert(html.substr(from, html.find('"', from) - from));
  }
  EXPECT_EQ(colours.size(), 40u);
  EXPECT_THAT(html, HasSubstr(">n</i>a_stage_of_some_length_39"));
  const std::string wide = html.substr(html.find("class=\"roomy\""));
  EXPECT_THAT(wide.substr(0, wide.find("class=\"narrow\"")), HasSubstr(">n</text>"));
  EXPECT_THAT(html, HasSubstr("viewBox=\"0 0 340 "));
}

}  // namespace
}  // namespace takt::pipeline
