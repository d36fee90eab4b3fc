// The walk on traces against published analyses (recorded data, scheduling/e2e_chains and pycpa).
#include <gtest/gtest.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "scheduler/analysis/trace.h"
#include "tests/scheduler/analysis/preemptive.h"
#include "tests/support/test_data.h"

namespace takt::sched {
namespace {

nlohmann::json load(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::int64_t whole(const nlohmann::json& value) {
  const double number = value.get<double>();
  EXPECT_EQ(number, static_cast<double>(static_cast<std::int64_t>(number)));
  return static_cast<std::int64_t>(number);
}

TEST(Trace, RateMonotonicChainsEqualTheExactAnalysis) {
  TAKT_TEST_DATA_OR_SKIP(path, "scheduling/e2e_chains/waters2015_rm_implicit_expected.json");
  int chains = 0;
  double davare_over = 0;
  const nlohmann::json data = load(path);
  for (const auto& set : data["sets"]) {
    const std::int64_t hyperperiod = set["hyperperiod"];
    std::vector<test::Task> tasks;
    for (const auto& task : set["tasks"]) {
      tasks.push_back({task["period"], task["wcet"], task["prio"], 0});
      ASSERT_EQ(task["phase"], 0);
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_EQ(test::response_time(tasks, i), set["tasks"][i]["wcrt"].get<std::int64_t>()) << set["id"] << " " << i;
    }
    const std::vector<TraceTask> traces = test::simulate(tasks, 12 * hyperperiod);
    for (const auto& expected : set["chains"]) {
      std::vector<TraceTask> chain;
      std::vector<BaselineTask> baseline;
      std::vector<std::size_t> members = expected["tasks"];
      for (std::size_t i = 0; i < members.size(); ++i) {
        chain.push_back(traces[members[i]]);
        const bool below = i + 1 < members.size() && tasks[members[i]].priority > tasks[members[i + 1]].priority;
        baseline.push_back({tasks[members[i]].period, set["tasks"][members[i]]["wcrt"], below});
      }
      const std::string where = set["id"].get<std::string>() + " " + expected["tasks"].dump();
      const Result<TraceBounds> bounds = walk_trace(chain, hyperperiod, 2 * hyperperiod);
      ASSERT_TRUE(bounds) << where << ": " << bounds.error().message;
      EXPECT_EQ(bounds->reaction, whole(expected["guenzel21_mrt"])) << where;
      EXPECT_EQ(bounds->age, whole(expected["guenzel21_mda"])) << where;
      EXPECT_EQ(bounds->age_at_output, whole(expected["guenzel21_mrda"])) << where;
      EXPECT_EQ(davare(baseline), expected["davare"].get<std::int64_t>()) << where;
      EXPECT_EQ(duerr_reaction(baseline), expected["duerr_mrt"].get<std::int64_t>()) << where;
      EXPECT_EQ(duerr_age(baseline), expected["duerr_mda"].get<std::int64_t>()) << where;
      EXPECT_EQ(kloda_reaction(baseline).value_or(-1), expected["kloda_mrt"].get<std::int64_t>()) << where;
      EXPECT_GE(davare(baseline), bounds->reaction);
      EXPECT_GE(duerr_reaction(baseline), bounds->reaction);
      EXPECT_GE(kloda_reaction(baseline).value_or(0), bounds->reaction);
      davare_over += static_cast<double>(davare(baseline)) / static_cast<double>(bounds->reaction);
      ++chains;
    }
  }
  std::cout << chains << " chains; Davare is " << davare_over / chains << " times the exact reaction on average\n";
  EXPECT_EQ(chains, 120);
}

TEST(Trace, LogicalExecutionTimeChainsEqualTheExactAnalysis) {
  TAKT_TEST_DATA_OR_SKIP(path, "scheduling/e2e_chains/let_expected.json");
  int chains = 0;
  const nlohmann::json data = load(path);
  for (const auto& expected : data["cases"]) {
    std::int64_t hyperperiod = 1;
    std::int64_t latest = 0;
    std::int64_t sum = 0;
    for (const auto& task : expected["chain"]) {
      hyperperiod = std::lcm(hyperperiod, task["period"].get<std::int64_t>());
      latest = std::max(latest, task["phase"].get<std::int64_t>());
      sum += 2 * task["period"].get<std::int64_t>() + task["let"].get<std::int64_t>();
    }
    const std::int64_t from = latest + sum;
    const std::int64_t until = from + hyperperiod + 2 * sum;
    std::vector<TraceTask> chain;
    for (const auto& task : expected["chain"]) {
      TraceTask trace;
      for (std::int64_t at = task["phase"]; at < until + latest; at += task["period"].get<std::int64_t>()) {
        trace.reads.push_back(at);
        trace.writes.push_back(at + task["let"].get<std::int64_t>());
      }
      chain.push_back(std::move(trace));
    }
    const Result<TraceBounds> bounds = walk_trace(chain, from, from + hyperperiod);
    ASSERT_TRUE(bounds) << expected.dump() << bounds.error().message;
    EXPECT_EQ(bounds->reaction, whole(expected["mrt"])) << expected.dump();
    EXPECT_EQ(bounds->age, whole(expected["mda"])) << expected.dump();
    EXPECT_EQ(bounds->latency, whole(expected["mrrt"])) << expected.dump();
    EXPECT_EQ(bounds->age_at_output, whole(expected["mrda"])) << expected.dump();
    ++chains;
  }
  std::cout << chains << " chains\n";
  EXPECT_EQ(chains, 240);
}

// The tutorial of pyCPA prints what its analyses give; costs, periods and jitters are those of the same tutorial.
class Tutorial : public testing::Test {
 protected:
  void SetUp() override {
    TAKT_TEST_DATA_OR_SKIP(path, "scheduling/pycpa/tutorial.out");
    std::ifstream file(path);
    text_ = {std::istreambuf_iterator<char>(file), {}};
    ASSERT_NE(text_.find("'step5'"), std::string::npos);
  }
  // The number behind `before` in the output of a step.
  [[nodiscard]] std::int64_t printed(int number, const std::string& before) const {
    const std::size_t begin = text_.find("'step" + std::to_string(number) + "'");
    const std::string step = text_.substr(begin, text_.find("'step" + std::to_string(number + 1) + "'") - begin);
    const std::size_t at = step.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    return at == std::string::npos ? 0 : std::stoll(step.substr(at + before.size()));
  }

 private:
  std::string text_;
};

// Two preemptive processors and a bus between them: T11 -> T21 -> T31 and T12 -> T22 -> T32.
TEST_F(Tutorial, ResponseTimesAndPaths) {
  const std::vector<test::Task> first = {{30, 10, 1, 3, 0, 5}, {15, 3, 2, 1, 0, 1}};
  const std::int64_t t11 = test::response_time(first, 0);
  const std::int64_t t12 = test::response_time(first, 1);
  const std::vector<test::Task> bus = {{30, 2, 1, test::jitter_behind(first[0], t11), 0, 2},
                                       {15, 9, 2, test::jitter_behind(first[1], t12), 0, 5}};
  const std::int64_t t21 = test::response_time(bus, 0, false);
  const std::int64_t t22 = test::response_time(bus, 1, false);
  const std::vector<test::Task> second = {{30, 5, 2, test::jitter_behind(bus[0], t21), 0, 3},
                                          {15, 3, 1, test::jitter_behind(bus[1], t22), 0, 2}};
  const std::int64_t t31 = test::response_time(second, 0);
  const std::int64_t t32 = test::response_time(second, 1);
  EXPECT_EQ(t11, printed(1, "T11: wcrt="));
  EXPECT_EQ(t12, printed(1, "T12: wcrt="));
  EXPECT_EQ(t21, printed(1, "T21: wcrt="));
  EXPECT_EQ(t22, printed(1, "T22: wcrt="));
  EXPECT_EQ(t31, printed(1, "T31: wcrt="));
  EXPECT_EQ(t32, printed(1, "T32: wcrt="));
  EXPECT_EQ(t11 + t21 + t31, printed(1, "path P1 e2e latency. best case: 10, worst case: "));
  EXPECT_EQ(t12 + t22 + t32, printed(1, "path P2 e2e latency. best case: 8, worst case: "));
  EXPECT_EQ(first[0].least_cost + bus[0].least_cost + second[0].least_cost,
            printed(1, "path P1 e2e latency. best case: "));
  EXPECT_EQ(first[1].least_cost + bus[1].least_cost + second[1].least_cost,
            printed(1, "path P2 e2e latency. best case: "));
}

// T01 alone on a processor, read by T02, which T11 reads, both on the first processor of above.
TEST_F(Tutorial, AgeOfDataThroughACauseEffectChain) {
  const test::Task t01{10, 5, 1, 0, 0, 2};
  const std::vector<test::Task> shared = {{30, 10, 2, 3, 0, 5}, {15, 3, 3, 1, 0, 1}, {60, 5, 4, 0, 6, 2}};
  const test::ChainTask writer{t01, test::response_time({t01}, 0)};
  const test::ChainTask middle{shared[2], test::response_time(shared, 2)};
  const test::ChainTask reader{shared[0], test::response_time(shared, 0)};
  EXPECT_EQ(writer.response, printed(4, "T01: wcrt="));
  EXPECT_EQ(middle.response, printed(4, "T02: wcrt="));
  EXPECT_EQ(reader.response, printed(4, "T11: wcrt="));
  EXPECT_EQ(test::write_to_read(writer, middle), printed(4, "'T01-T02-delay': "));
  EXPECT_EQ(test::write_to_read(middle, reader), printed(4, "'T02-T11-delay': "));
  EXPECT_EQ(test::data_age({writer, middle, reader}), printed(4, "chain Chain1 data age: "));
  EXPECT_EQ(test::data_age({writer, middle, reader}), 116);
}

TEST(Trace, RefusesWhatIsNoTrace) {
  EXPECT_FALSE(walk_trace({}, 0, 10));
  EXPECT_FALSE(walk_trace({{{0, 10}, {5}}}, 0, 10));
  EXPECT_FALSE(walk_trace({{{10, 0}, {15, 20}}}, 0, 10));
  EXPECT_FALSE(walk_trace({{{0, 10}, {5, 8}}}, 0, 10));
  const Result<TraceBounds> cut = walk_trace({{{0, 10}, {5, 15}}, {{0, 10}, {1, 11}}}, 0, 10);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("ends before its last chain"), std::string::npos);
}

}  // namespace
}  // namespace takt::sched
