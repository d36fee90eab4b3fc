// The `takt` command as a user meets it: exit codes, messages, and bad input of every kind.

#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "tests/integration/program.h"

namespace {

namespace fs = std::filesystem;
using takt::test::Answer;
using takt::test::slurp;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kPipeline = kRoot + "/configs/pipelines/sim.yaml";
const std::string kDrive = kRoot + "/replay_data/city.mcap";

class Command : public takt::test::Program {
 protected:
  // The shipped configs/ beside each other in a folder of their own, with one text replaced in one file.
  [[nodiscard]] std::string changed_pipeline(const std::string& file, const std::string& from,
                                             const std::string& to) const {
    fs::copy(kRoot + "/configs", folder_ / "configs",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const fs::path target = folder_ / "configs" / file;
    std::string text = slurp(target);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    std::ofstream(target) << text;
    return (folder_ / "configs/pipelines/sim.yaml").string();
  }
};

TEST_F(Command, HelpAndUsage) {
  const Answer help = takt({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* verb : {"demo", "simulate", "schedule", "profile", "replay", "report", "diff", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(verb));
    EXPECT_EQ(takt({verb, "--help"}).code, 0) << verb;
  }
  EXPECT_THAT(help.out, HasSubstr("70 an error of takt itself"));
  const Answer typo = takt({"shedule"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.err, HasSubstr("did you mean 'schedule'?"));
  EXPECT_EQ(takt({"replay"}).code, 2);
  EXPECT_EQ(takt({"replay", kPipeline, kDrive, "-o", path("r"), "--isa", "avx9"}).code, 2);
  // What would change or judge a run that is repeated.
  for (const char* const option : {"--faults", "--what-if", "--duration", "--rate"}) {
    EXPECT_EQ(takt({"replay", kPipeline, kDrive, "-o", path("r"), "--reproduce", path("x"), option, "1"}).code, 2)
        << option;
  }
  const Answer same = takt({"replay", kPipeline, kDrive, "-o", folder_.string(), "--reproduce", folder_.string()});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("name one folder"));
  EXPECT_EQ(takt({}).code, 2);
}

// What would do nothing, or could not be done, is refused before the run.
TEST_F(Command, OptionsWithoutEffectAreRefused) {
  for (const std::vector<std::string>& of_others : {std::vector<std::string>{"--export"}, {"--roudi", "external"}}) {
    std::vector<std::string> words{"replay", kPipeline, kDrive, "-o", path("r"), "--transport", "local"};
    words.insert(words.end(), of_others.begin(), of_others.end());
    const Answer answer = takt(words);
    EXPECT_EQ(answer.code, 2);
    EXPECT_THAT(answer.err, HasSubstr(of_others.front()));
    EXPECT_THAT(answer.err, HasSubstr("--transport local"));
  }
  const std::string segments = kRoot + "/configs/pipelines/sim_segments.yaml";
  const Answer in_pieces = takt({"replay", segments, kDrive, "-o", path("r"), "--transport", "local", "--baselines"});
  EXPECT_EQ(in_pieces.code, 4) << in_pieces.err;
  EXPECT_THAT(in_pieces.err, HasSubstr("--baselines runs every job in one piece on its home cores"));
  EXPECT_FALSE(fs::exists(path("r")));
}

// Each pair of options that cannot both be meant is refused before anything is read, with both names, why, and what to
// do.
TEST_F(Command, OptionsThatCannotBothBeMeantAreRefused) {
  const std::vector<std::string> replay{"replay", kPipeline, kDrive, "-o", path("r")};
  const std::vector<std::string> schedule{"schedule", kPipeline};
  const std::vector<std::string> profile{"profile", kPipeline};
  const std::string here = folder_.string();
  using Words = std::vector<std::string>;
  struct Case {
    const Words& verb;
    Words one, other;
  };
  const Words lockstep{"--lockstep"}, baselines{"--baselines"}, reproduce{"--reproduce", here}, rate{"--rate", "2"};
  const Words check{"--check", path("c.json")}, against{"--against", path("b.yaml")};
  const std::vector<Case> cases{
      {replay, rate, lockstep},
      {replay, {"--require-judged"}, lockstep},
      {replay, {"--require-judged"}, reproduce},
      {replay, baselines, lockstep},
      {replay, baselines, rate},
      {replay, baselines, {"--faults", "f.yaml"}},
      {replay, baselines, reproduce},
      {replay, reproduce, rate},
      {replay, reproduce, {"--duration", "1"}},
      {replay, reproduce, {"--faults", "f.yaml"}},
      {replay, reproduce, {"--digests", "d.json"}},
      {replay, reproduce, {"--gang", "lidar_detect=1"}},
      {replay, reproduce, {"--what-if", "fusion.rate=10"}},
      {replay, reproduce, {"--budgets", kPipeline}},
      {replay, reproduce, {"--seed", "2"}},
      {replay, reproduce, {"--nodes", "1000"}},
      {schedule, check, {"--html", path("h")}},
      {schedule, check, {"--bundle", path("h")}},
      {schedule, check, {"--certificate", path("h")}},
      {schedule, check, {"--scale"}},
      {schedule, check, {"--baseline", "first-found"}},
      {schedule, check, {"--time", "1"}},
      {schedule, check, {"--seed", "2"}},
      {schedule, check, {"--nodes", "1000"}},
      {schedule, {"--target", "cuda:sm_87"}, {"--bundle", path("h")}},
      {profile, against, {"--out", path("h")}},
      {profile, against, {"--margin", "2"}},
  };
  for (const Case& c : cases) {
    // In either order.
    for (const auto& [first, second] : {std::pair{c.one, c.other}, std::pair{c.other, c.one}}) {
      Words words = c.verb;
      words.insert(words.end(), first.begin(), first.end());
      words.insert(words.end(), second.begin(), second.end());
      const Answer answer = takt(words);
      EXPECT_EQ(answer.code, 2) << c.one[0] << " " << c.other[0];
      EXPECT_THAT(answer.err, HasSubstr(c.one[0] + " and " + c.other[0] + " cannot both be meant: "));
      EXPECT_THAT(answer.err, HasSubstr("; leave one of them out\n  -> "));
    }
  }
  EXPECT_FALSE(fs::exists(path("r")));
  EXPECT_FALSE(fs::exists(path("h")));
}

TEST_F(Command, UnknownOptionsNameTheNearest) {
  for (const auto& [words, message] :
       {std::pair{std::vector<std::string>{"replay", "--hlep"}, "unknown option '--hlep'; did you mean '--help'?"},
        std::pair{std::vector<std::string>{"replay", kPipeline, kDrive, "-o", path("r"), "--lokstep"},
                  "unknown option '--lokstep'; did you mean '--lockstep'?"},
        std::pair{std::vector<std::string>{"plan", "show", "p.plan", "--unti=gpu"},
                  "unknown option '--unti'; did you mean '--unit'?"},
        std::pair{std::vector<std::string>{"--verson"}, "unknown option '--verson'; did you mean '--version'?"},
        std::pair{std::vector<std::string>{"diff", "a", "b", "--xyzzy"}, "unknown option '--xyzzy'\n"}}) {
    const Answer answer = takt(words);
    EXPECT_EQ(answer.code, 2);
    EXPECT_THAT(answer.err, HasSubstr(message));
  }
}

// Commands that takt prints begin with itself as it was called, so that they can be pasted.
TEST_F(Command, PrintedCommandsNameTheProgramAsItWasCalled) {
  fs::create_directories(path("my programs"));
  const std::string program = path("my programs/takt");
  fs::create_symlink(TAKT_PROGRAM, program);
  const Answer usage = finish(start({"replay", "--hlep"}, program));
  EXPECT_THAT(usage.err, HasSubstr("  -> '" + program + "' replay --help\n"));
  const Answer run = finish(start(
      {"replay", kPipeline, kDrive, "-o", path("r"), "--lockstep", "--transport", "local", "--duration", "0.3", "-q"},
      program));
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string commands = slurp(path("r/report.json"));
  for (const char* const verb : {" replay ", " report ", " diff "}) {
    EXPECT_THAT(commands, HasSubstr("'" + program + "'" + verb));
  }
}

// Cores that a board file names and the machine lacks: what belongs there would be measured on others in silence.
TEST_F(Command, AProfileOnAMachineThatLacksCoresOfTheBoardSaysSo) {
  const std::string pipeline = changed_pipeline("boards/generic2.yaml", "cpu: 1", "cpu: 999");
  const Answer answer = takt({"profile", pipeline, "--samples", "10", "--beside", "alone", "-q", "-o", path("b.yaml")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("has cores that this machine does not give: core1 (CPU 999)"));
}

// What strtod and strtoull take, but no person means.
TEST_F(Command, NumbersThatAreNoneAreRefused) {
  const auto refused = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"replay", kPipeline, kDrive, "--lockstep", "-o", path("r")};
    words.insert(words.end(), options.begin(), options.end());
    const Answer answer = takt(words);
    EXPECT_EQ(answer.code, 2) << options[0] << " " << options[1];
    EXPECT_THAT(answer.err, HasSubstr("found '" + options[1] + "'"));
    EXPECT_FALSE(fs::exists(path("r")));
  };
  for (const char* text : {"nan", "inf", "-1", "0", "1s", "0x10", ""}) refused({"--duration", text});
  for (const char* text : {"nan", "1e400", "-0.5"}) refused({"--rate", text});
  for (const char* text : {"-1", "1.5", "18446744073709551616", "nan"}) refused({"--seed", text});
  for (const char* text : {"-1", "0", "2.5"}) refused({"--loop", text});
  EXPECT_EQ(takt({"profile", kPipeline, "-o", path("b"), "--margin", "nan"}).code, 2);
  EXPECT_EQ(takt({"schedule", kPipeline, "--time", "nan"}).code, 2);
  EXPECT_EQ(takt({"schedule", kPipeline, "--nodes", "-1"}).code, 2);
  EXPECT_EQ(takt({"plan", "bench", path("none.plan"), "--runs", "1e9"}).code, 2);
  EXPECT_EQ(takt({"profile", kPipeline, "-o", path("b"), "--samples", "-5"}).code, 2);
}

TEST_F(Command, ProfilesUnderEveryInterferenceClass) {
  const Answer all = takt({"profile", kPipeline, "--samples", "10", "-o", path("all.yaml")});
  ASSERT_EQ(all.code, 0) << all.err;
  for (const char* beside : {"alone", "stages", "memory"}) EXPECT_THAT(all.out, HasSubstr(beside));
  EXPECT_THAT(all.out, HasSubstr("exploratory: fewer than 1000"));
  EXPECT_THAT(all.out, HasSubstr("none: 10 times are too few"));
  EXPECT_THAT(all.out, HasSubstr("a sleeping thread"));
  EXPECT_THAT(slurp(path("all.yaml")), HasSubstr("beside: [\"alone\", \"stages\", \"memory\"]"));
  EXPECT_THAT(slurp(path("all.yaml")), HasSubstr("interference: any"));
  EXPECT_THAT(slurp(path("all.yaml")), HasSubstr("steps_ms: ["));
  // A table is made of them as of declared ones.
  EXPECT_THAT(takt({"schedule", kPipeline, "--budgets", path("all.yaml")}).out, HasSubstr("exploratory"));

  // Measured alone, a budget bears nothing beside it, and the table must keep it so.
  const Answer alone = takt({"profile", kPipeline, "--samples", "10", "--beside", "alone", "-o", path("alone.yaml")});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.err, ::testing::Not(HasSubstr("does not give")));
  EXPECT_THAT(slurp(path("alone.yaml")), HasSubstr("interference: none"));
  EXPECT_THAT(slurp(path("alone.yaml")), ::testing::Not(HasSubstr("interference: any")));

  // Budgets of 1 us are held by nobody, and nothing is written.
  std::ofstream(path("tiny.yaml")) << "board: generic2\nbudgets:\n  - {stage: fusion, variant: full, cores: 1, "
                                      "budget_ms: 0.001, high_water_ms: 0.001, margin: 1, samples: 10, provenance: "
                                      "exploratory}\n";
  const Answer against =
      takt({"profile", kPipeline, "--samples", "10", "--beside", "alone", "--against", path("tiny.yaml")});
  EXPECT_EQ(against.code, 1);
  EXPECT_THAT(against.out, HasSubstr("NOT HELD"));
  // One that no job of the pipeline has is not passed over.
  const std::string tiny = slurp(path("tiny.yaml"));
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string text = tiny + tiny.substr(tiny.find("  - {"));
    text.replace(text.rfind(what), what.size(), by);
    std::ofstream(path("other.yaml")) << text;
    return takt({"profile", kPipeline, "--samples", "10", "--against", path("other.yaml")});
  };
  for (const auto& [what, by, message] :
       {std::tuple{"stage: fusion", "stage: fusoin", "unknown stage 'fusoin'; did you mean 'fusion'?"},
        std::tuple{"variant: full", "variant: ful", "unknown variant 'ful' of stage 'fusion'"},
        std::tuple{"cores: 1", "cores: 2",
                   "a budget of 2 core(s) for variant 'full' of stage 'fusion', which the pipeline runs on 1"}}) {
    const Answer other = with(what, by);
    EXPECT_EQ(other.code, 4) << by;
    EXPECT_THAT(other.err, HasSubstr(path("other.yaml") + ":4:5: "));
    EXPECT_THAT(other.err, HasSubstr(message));
  }
  EXPECT_EQ(takt({"profile", kPipeline, "--beside", "wind", "-o", path("b")}).code, 2);
}

// What a profile writes as steps_ms are the check points of `abort`: a step that may not fit is not begun.
TEST_F(Command, StepsOfABudgetAreCheckPoints) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  // The first of its stages is camera_detect.
  const std::string pipeline = changed_pipeline("pipelines/sim.yaml", "overrun: continue_late", "overrun: abort");
  std::ofstream(path("b.yaml"))
      << "board: generic2\nmachine: by hand\nbudgets:\n  - {stage: camera_detect, variant: full, "
         "cores: 1, budget_ms: 6, high_water_ms: 5, margin: 1.2, samples: 1000, provenance: "
         "profiled, steps_ms: [0.1, 5.9999]}\n";
  const Answer answer = takt({"replay", pipeline, kDrive, "-o", path("r"), "--transport", "local", "--duration", "1",
                              "--budgets", path("b.yaml"), "-q"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const std::string report = slurp(path("r/report.json"));
  EXPECT_THAT(report, HasSubstr("the next step did not fit"));
  EXPECT_THAT(slurp(path("r/run.json")), HasSubstr("\"steps_ns\": [\n"));
  // Of a stage that has not so many, they were measured of another one.
  std::ofstream(path("more.yaml"))
      << "board: generic2\nmachine: by hand\nbudgets:\n  - {stage: radar_detect, variant: full, "
         "cores: 1, budget_ms: 2, high_water_ms: 1, margin: 1.2, samples: 1000, provenance: "
         "profiled, steps_ms: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}\n";
  const Answer more = takt({"replay", kPipeline, kDrive, "-o", path("m"), "--transport", "local", "--lockstep",
                            "--budgets", path("more.yaml"), "-q"});
  EXPECT_EQ(more.code, 4);
  EXPECT_THAT(more.err, HasSubstr("more.yaml:4:5: steps_ms gives 9 times, and a job of stage 'radar_detect'"));
}

TEST_F(Command, ScheduleAnswersAndExplains) {
  const Answer yes = takt({"schedule", kPipeline});
  EXPECT_EQ(yes.code, 0) << yes.err;
  EXPECT_EQ(yes.out.rfind("FEASIBLE", 0), 0U) << yes.out.substr(0, 80);
  const Answer json = takt({"schedule", kPipeline, "--json"});
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.out.front(), '{');
  // 30 Hz does not fit any more, 20 Hz does: taken, and said aloud.
  const Answer slower = takt({"schedule", kPipeline, "--what-if", "camera_detect.budget=40ms"});
  EXPECT_EQ(slower.code, 0);
  EXPECT_THAT(slower.out, HasSubstr("runs with 20 Hz instead of 30 Hz"));
  // No table can be faster than the chain's own length.
  const Answer no = takt({"schedule", kPipeline, "--what-if", "camera.latency=20ms"});
  EXPECT_EQ(no.code, 1);
  EXPECT_EQ(no.out.rfind("INFEASIBLE", 0), 0U) << no.out.substr(0, 80);
  EXPECT_THAT(no.out, HasSubstr("camera_detect"));
}

TEST_F(Command, ConfigurationMistakesNameFileLineAndColumn) {
  const std::string file = changed_pipeline("pipelines/sim.yaml", "hyperperiod_ms: 100", "hyperperoid_ms: 100");
  const Answer typo = takt({"schedule", file});
  EXPECT_EQ(typo.code, 4);
  EXPECT_THAT(typo.err, HasSubstr("sim.yaml:"));
  EXPECT_THAT(typo.err, HasSubstr("hyperperoid_ms"));
  EXPECT_EQ(takt({"schedule", path("none.yaml")}).code, 4);
  const Answer rig =
      takt({"schedule", changed_pipeline("pipelines/sim.yaml", "sensor: lidar_top", "sensor: lidar_tpo")});
  EXPECT_EQ(rig.code, 4);
  EXPECT_THAT(rig.err, HasSubstr("lidar_top"));
}

TEST_F(Command, MissingUnreadableAndTruncatedLogs) {
  EXPECT_EQ(takt({"replay", kPipeline, path("none.mcap"), "-o", path("r"), "--lockstep"}).code, 3);
  EXPECT_EQ(takt({"replay", kPipeline, folder_.string(), "-o", path("r"), "--lockstep"}).code, 3);
  std::ofstream(path("text.mcap")) << "this is no log";
  const Answer text = takt({"replay", kPipeline, path("text.mcap"), "-o", path("r"), "--lockstep"});
  EXPECT_EQ(text.code, 3);
  EXPECT_FALSE(fs::exists(path("r"))) << "nothing is left behind";

  fs::copy_file(kDrive, path("cut.mcap"));
  fs::resize_file(path("cut.mcap"), fs::file_size(kDrive) / 2);
  const Answer cut =
      takt({"replay", kPipeline, path("cut.mcap"), "-o", path("cut"), "--lockstep", "--transport", "local"});
  EXPECT_EQ(cut.code, 3) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("byte"));
  EXPECT_TRUE(fs::exists(path("cut/report.html"))) << "what could be read was run and reported";
}

TEST_F(Command, DigestFilesOfAnotherFormAreRefusedBeforeTheRun) {
  for (const char* text : {"no JSON", "{}", R"({"entries": [{"conditions": 3, "topics": {}}]})",
                           R"({"entries": [{"conditions": {"log": 3}, "topics": {}}]})", R"({"entries": [7]})"}) {
    std::ofstream(path("d.json")) << text;
    const Answer answer =
        takt({"replay", kPipeline, kDrive, "-o", path("r"), "--lockstep", "--digests", path("d.json")});
    EXPECT_EQ(answer.code, 3) << text << answer.err;
    EXPECT_THAT(answer.err, HasSubstr("d.json"));
    EXPECT_FALSE(fs::exists(path("r"))) << text;
  }
}

TEST_F(Command, FixingADimensionTwiceOrOneThatIsNotThereIsRefused) {
  const std::string model = std::string(TAKT_SOURCE_DIR) + "/configs/models/sim_camera.onnx";
  const Answer twice = takt({"compile", model, "--fix", "height=256", "height=128", "-o", path("p.plan")});
  EXPECT_EQ(twice.code, 2) << twice.err;
  EXPECT_THAT(twice.err, HasSubstr("height is given twice"));
  const Answer other = takt({"compile", model, "--fix", "height=256", "width=416", "nosuch=3", "-o", path("p.plan")});
  EXPECT_EQ(other.code, 3) << other.err;
  EXPECT_THAT(other.err, HasSubstr("no dimension nosuch"));
  EXPECT_FALSE(fs::exists(path("p.plan")));
}

TEST_F(Command, OutputThatCannotBeWrittenIsNoSuccess) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string schedule = std::string(TAKT_SOURCE_DIR) + "/configs/schedules/rates_30_20_10.yaml";
  const int status =
      std::system(("'" TAKT_PROGRAM "' schedule '" + schedule + "' >/dev/full 2>'" + path("err") + "'").c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_THAT(slurp(path("err")), HasSubstr("standard output"));
}

// Before the work, not behind it; and nothing is left of folders that were made for it.
TEST_F(Command, OutputsThatCannotBeWrittenAreFoundFirst) {
  std::ofstream(path("file")) << "x";
  const auto refused = [&](const std::vector<std::string>& options, const std::string& says) {
    std::vector<std::string> words{"replay", kPipeline, kDrive, "--transport", "local"};
    words.insert(words.end(), options.begin(), options.end());
    const Answer answer = takt(words);
    EXPECT_EQ(answer.code, 5) << answer.err;
    EXPECT_THAT(answer.err, HasSubstr(says));
    EXPECT_EQ(answer.out, "");
  };
  refused({"-o", path("file/r")}, "the folder cannot be made: Not a directory");
  refused({"-o", path("file")}, "the folder cannot be made");
  refused({"-o", path("new/r"), "--save-digests", path("none/d.json")}, "there is no folder");
  refused({"-o", path("new/r"), "--save-digests", folder_.string()}, "this is a folder");
  EXPECT_FALSE(fs::exists(path("new")));
  const Answer profile = takt({"profile", kPipeline, "-o", path("none/b.yaml")});
  EXPECT_EQ(profile.code, 5);
  EXPECT_THAT(profile.err, HasSubstr("there is no folder"));
  fs::create_directories(path("locked"));
  if (mount("tmpfs", path("locked").c_str(), "tmpfs", MS_RDONLY, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a file system that is read-only is refused here";
  }
  refused({"-o", path("locked")}, "no file can be written there");
  refused({"-o", path("locked/r")}, "the folder cannot be made");
  umount(path("locked").c_str());
}

TEST_F(Command, BaselinesRunForReal) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const Answer answer = takt(
      {"replay", kPipeline, kDrive, "-o", path("r"), "--transport", "local", "--duration", "0.9", "--baselines", "-q"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const std::string report = slurp(path("r/report.json"));
  const std::size_t at = report.find("\"baselines_measured\"");
  ASSERT_NE(at, std::string::npos);
  std::size_t outputs = 0, entries = 0;
  for (std::size_t i = at; (i = report.find("\"outputs\": ", i)) != std::string::npos; i += 11) {
    ++entries;
    outputs += std::stoul(report.substr(i + 11)) > 0 ? 1 : 0;
  }
  EXPECT_EQ(entries, 36U) << "four ways, three loads, three chains";
  EXPECT_GT(outputs, 18U) << "whatever else this machine does, most of them bring results";
  EXPECT_THAT(slurp(path("r/report.html")), HasSubstr("run <em>for real</em>"));
  // Written anew from the folder it says the same.
  ASSERT_EQ(takt({"report", path("r")}).code, 0);
  EXPECT_EQ(slurp(path("r/report.json")), report);

  const Answer shorter = takt(
      {"replay", kPipeline, kDrive, "-o", path("s"), "--transport", "local", "--duration", "0.3", "--baselines", "-q"});
  EXPECT_EQ(shorter.code, 3);
  EXPECT_THAT(shorter.err, HasSubstr("whole hyperperiods"));
  EXPECT_THAT(slurp(path("s/report.html")), HasSubstr("nothing was compared")) << "the run itself is kept";
  EXPECT_EQ(takt({"replay", kPipeline, kDrive, "-o", path("t"), "--lockstep", "--baselines"}).code, 2);
}

// Of a pipeline with modes its first one is compared, alone, and without the stages that it leaves out.
TEST_F(Command, BaselinesOfAPipelineWithModes) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers make every job an overrun";
#endif
  const fs::path beside = changed_pipeline("pipelines/sim_modes.yaml", "  - name: day\n",
                                           "  - name: day\n"
                                           "    stages:\n"
                                           "      - { name: camera_detect }\n"
                                           "      - { name: lidar_detect }\n"
                                           "      - { name: fusion, without: [radar] }\n");
  const std::string modes = beside.parent_path() / "sim_modes.yaml";
  const Answer answer = takt(
      {"replay", modes, kDrive, "-o", path("r"), "--transport", "local", "--duration", "0.7", "--baselines", "-q"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const std::string report = slurp(path("r/report.json"));
  for (const char* const key : {"\"baselines\": [", "\"baselines_measured\": ["}) {
    std::size_t at = report.find(key), outputs = 0;
    ASSERT_NE(at, std::string::npos) << key;
    for (const std::size_t end = report.find("\n  ]", at); (at = report.find("\"outputs\": ", at + 1)) < end;) {
      outputs += std::stoul(report.substr(at + 11)) > 0 ? 1 : 0;
    }
    EXPECT_GT(outputs, 12U) << key << " of 24, the radar's chain has none";
  }
  EXPECT_THAT(slurp(path("r/report.html")), HasSubstr("Of mode <b>day</b> alone"));
}

TEST_F(Command, InfeasiblePipelineIsNotRun) {
  const Answer answer =
      takt({"replay", kPipeline, kDrive, "-o", path("r"), "--lockstep", "--what-if", "lidar_detect.budget=120ms"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("not admitted"));
  EXPECT_THAT(answer.err, HasSubstr("lidar_detect"));
  EXPECT_THAT(answer.err, HasSubstr(std::string(TAKT_PROGRAM) + " schedule " + kPipeline +
                                    " --what-if lidar_detect.budget=120ms --certificate FILE"));
  EXPECT_FALSE(fs::exists(path("r/report.html")));
}

TEST_F(Command, RunFolderReportAndDiff) {
  const std::vector<std::string> base{"replay", kPipeline, kDrive, "--lockstep", "--transport", "local", "-o"};
  for (const char* name : {"a", "b"}) {
    std::vector<std::string> arguments = base;
    arguments.push_back(path(name));
    const Answer answer = takt(arguments);
    ASSERT_EQ(answer.code, 0) << answer.err;
    for (const char* file : {"report.html", "report.json", "junit.xml", "results.mcap", "records.mcap", "run.json"}) {
      EXPECT_TRUE(fs::exists(folder_ / name / file)) << file;
    }
  }
  EXPECT_EQ(takt({"diff", path("a"), path("b")}).code, 0);
  const std::string before = slurp(path("a/report.json"));
  EXPECT_EQ(takt({"report", path("a")}).code, 0);
  EXPECT_EQ(slurp(path("a/report.json")), before) << "a report written anew says the same";
  std::vector<std::string> other = base;
  other.insert(other.end(), {path("c"), "--what-if", "fusion.rate=10"});
  ASSERT_EQ(takt(other).code, 0);
  const Answer diff = takt({"diff", path("a"), path("c")});
  EXPECT_EQ(diff.code, 1);
  EXPECT_THAT(diff.out, HasSubstr("schedule differs"));
  EXPECT_THAT(diff.out, HasSubstr("DIFFER"));
  EXPECT_EQ(takt({"report", path("nothing")}).code, 3);
  // A cut file is named, once.
  fs::resize_file(folder_ / "c/records.mcap", 20);
  const Answer cut = takt({"report", path("c")});
  EXPECT_EQ(cut.code, 3);
  const std::string name = path("c/records.mcap");
  ASSERT_THAT(cut.err, HasSubstr(name));
  EXPECT_EQ(cut.err.find(name), cut.err.rfind(name)) << cut.err;
}

TEST_F(Command, InterruptLeavesAPartialReport) {
  const pid_t pid = start({"replay", kPipeline, kDrive, "-o", path("r"), "--transport", "local", "--rate", "0.2",
                           "--save-digests", path("digests.json")});
  // The run takes 15 s at this rate; it is interrupted once it is under way.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  kill(pid, SIGINT);
  const Answer answer = finish(pid);
  EXPECT_EQ(answer.code, 130) << answer.err;
  EXPECT_TRUE(fs::exists(path("r/report.html")));
  EXPECT_THAT(slurp(path("r/report.json")), HasSubstr("interrupted"));
  // Digests of a part would make the next whole run differ.
  EXPECT_FALSE(fs::exists(path("digests.json")));
  EXPECT_THAT(answer.err, HasSubstr(path("digests.json") + ": not written"));
}

TEST_F(Command, FullDiskIsAnEnvironmentErrorAndLeavesNothingHalfWritten) {
  fs::create_directories(path("small"));
  if (mount("tmpfs", path("small").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a small file system is refused here";
  }
  const Answer answer =
      takt({"replay", kPipeline, kDrive, "-o", path("small/r"), "--lockstep", "--transport", "local"});
  EXPECT_EQ(answer.code, 5) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("No space left"));
  for (const auto& entry : fs::recursive_directory_iterator(path("small"))) {
    EXPECT_EQ(entry.path().string().find(".part-"), std::string::npos) << entry.path();
  }
  umount(path("small").c_str());
}

TEST_F(Command, SecondRouDiIsRefused) {
  const int lock = open("/tmp/iox-unique-roudi.lock", O_CREAT | O_RDWR, 0666);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  const Answer answer = takt({"replay", kPipeline, kDrive, "-o", path("r"), "--lockstep"});
  EXPECT_EQ(answer.code, 5);
  EXPECT_THAT(answer.err, HasSubstr("RouDi"));
  EXPECT_THAT(answer.err, HasSubstr("--roudi external"));
  close(lock);
}

TEST_F(Command, TooLittleSharedMemoryIsSaidBeforeAnythingStarts) {
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=32m") != 0) {
    GTEST_SKIP() << "mounting a small shared memory is refused here";
  }
  const Answer answer = takt({"replay", kPipeline, kDrive, "-o", path("r"), "--lockstep"});
  umount("/dev/shm");
  EXPECT_EQ(answer.code, 5) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("shared memory"));
}

TEST_F(Command, DoctorAnswers) {
  const Answer answer = takt({"doctor"});
  EXPECT_THAT(answer.out, HasSubstr("shared memory"));
  EXPECT_THAT(takt({"doctor", "--json"}).out, HasSubstr("\"level\""));
}

}  // namespace
