#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <functional>
#include <iostream>
#include <map>
#include <random>

#include "scheduler/analysis/certificate.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/certificate.h"
#include "scheduler/synthesis/lower_bounds.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/infeasible.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::HasSubstr;
using Rule = Certificate::Rule;

void count(const Certificate& part, std::map<std::string, int>& leaves) {
  if (part.parts.empty()) ++leaves[name_of(part.rule)];
  for (const Certificate& child : part.parts) count(child, leaves);
}

// A random part of the tree.
Certificate& part_of(Certificate& root, std::mt19937_64& random) {
  Certificate* part = &root;
  while (!part->parts.empty() && random() % 4 != 0) part = &part->parts[random() % part->parts.size()];
  return *part;
}

TEST(Certificate, AHundredInfeasibleProblemsAreProvedAndChecked) {
  std::map<std::string, int> leaves;
  std::map<std::string, int> kinds;
  int proved = 0;
  for (std::uint64_t seed = 0; proved < 132; ++seed) {
    const Problem problem = test::infeasible_problem(seed);
    ASSERT_TRUE(check(problem)) << seed << ": " << check(problem).error().message;
    const Answer answer = synthesize(problem, {1, 20'000});
    ASSERT_EQ(answer.verdict, Verdict::kInfeasible) << problem.name << ": " << answer.reason;
    ASSERT_TRUE(answer.certificate) << problem.name;
    const Status holds = check_certificate(problem, *answer.certificate);
    EXPECT_TRUE(holds) << problem.name << ": " << holds.error().message;
    EXPECT_FALSE(answer.reason.empty());
    // Written and read back it is the same, and belongs to this problem only.
    const std::string text = certificate_json(problem, *answer.certificate);
    const Result<Certificate> again = read_certificate(problem, text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(certificate_json(problem, *again), text);
    Problem other = problem;
    other.stages[0].slack += nanoseconds(1);
    EXPECT_THAT(read_certificate(other, text).error().message, HasSubstr("another problem"));
    count(*answer.certificate, leaves);
    ++kinds[problem.name.substr(0, problem.name.find(' '))];
    ++proved;
  }
  for (const auto& [kind, n] : kinds) std::cout << kind << ": " << n << " problems\n";
  for (const auto& [rule, n] : leaves) std::cout << rule << ": " << n << " leaves\n";
  for (const char* rule : {"chain", "stage", "memory", "load", "window", "unit", "mutex", "disparity", "same"})
    EXPECT_GT(leaves[rule], 0) << rule;
}

// Whatever is changed in a certificate, it is refused: every figure must come out to the nanosecond.
TEST(Certificate, MutatedOnesAreRefused) {
  std::map<std::string, int> refused;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 220; ++seed) {
    const Problem problem = test::infeasible_problem(seed);
    const Answer answer = synthesize(problem, {1, 20'000});
    ASSERT_TRUE(answer.certificate);
    const std::string original = certificate_json(problem, *answer.certificate);
    std::mt19937_64 random(seed);
    const auto mutate = [&](const char* name, const std::function<bool(Certificate&)>& change) {
      Certificate certificate = *answer.certificate;
      Certificate& part = part_of(certificate, random);
      if (!change(part)) return;
      if (certificate_json(problem, certificate) == original) return;
      ++all;
      const Status status = check_certificate(problem, certificate);
      if (!status) {
        EXPECT_EQ(status.error().code, Code::kGate) << name;
        ++refused[name];
        return;
      }
      ADD_FAILURE() << problem.name << ": " << name << " is accepted\n" << certificate_json(problem, certificate);
    };
    const auto leaf = [](const Certificate& part) { return part.parts.empty() && part.rule != Rule::kSame; };
    mutate("excess", [&](Certificate& part) {
      return leaf(part) && (part.excess += 1 + static_cast<std::int64_t>(random() % 2) * -2, true);
    });
    mutate("other rule", [&](Certificate& part) {
      if (!leaf(part)) return false;
      part.rule = static_cast<Rule>((static_cast<int>(part.rule) + 1 + static_cast<int>(random() % 4)) % 5);
      if (part.cores.empty()) part.cores = {0};
      return part.rule != Rule::kChain || !problem.chains.empty();
    });
    mutate("lost part", [&](Certificate& part) { return !part.parts.empty() && (part.parts.pop_back(), true); });
    mutate("doubled part",
           [&](Certificate& part) { return !part.parts.empty() && (part.parts.push_back(part.parts.front()), true); });
    mutate("other stage", [&](Certificate& part) {
      if (part.rule != Rule::kStage && part.parts.empty()) return false;
      part.stage = (part.stage + 1) % static_cast<std::uint32_t>(problem.stages.size());
      return true;
    });
    mutate("other cores", [&](Certificate& part) {
      if (part.cores.empty()) return false;
      part.cores[0] = (part.cores[0] + 1) % static_cast<std::uint32_t>(problem.board.cores.size());
      return true;
    });
    mutate("later window",
           [&](Certificate& part) { return part.rule == Rule::kWindow && (part.from += microseconds(50), true); });
    mutate("cut branch", [&](Certificate& part) {
      if (part.parts.size() < 2) return false;
      part.parts[0] = Certificate{};
      part.parts[0].rule = Rule::kSame;
      part.parts[0].cores = {1};
      return true;
    });
  }
  for (const auto& [name, n] : refused) std::cout << name << ": " << n << " refused\n";
  std::cout << all << " mutations\n";
  EXPECT_GE(all, 200);
  EXPECT_EQ(refused.size(), 8u);
}

TEST(Certificate, NothingIsProvedAboutFeasibleProblems) {
  const Problem problem = test::perception();
  std::mt19937_64 random(3);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Answer answer = synthesize(test::infeasible_problem(seed), {1, 20'000});
    ASSERT_TRUE(answer.certificate);
    EXPECT_FALSE(check_certificate(problem, *answer.certificate)) << seed;
  }
}

// The best table's worst bound / limit is proved first; then every limit is set to what it needs, and to a little less.
struct Contended {
  Problem met;      // a table keeps its limits to the nanosecond
  Problem not_met;  // none does
};
std::optional<Contended> contended(std::uint64_t seed) {
  Contended out;
  out.met = test::contended_problem(seed);
  if (!check(out.met)) return std::nullopt;
  const Answer best = synthesize(out.met, {1, 20'000});
  if (best.verdict != Verdict::kFeasible || best.levels[0].gap() > 1e-4) return std::nullopt;
  out.not_met = out.met;
  for (std::size_t c = 0; c < out.met.chains.size(); ++c) {
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (!out.met.chains[c].limits[q]) continue;
      const auto part = static_cast<double>(out.met.chains[c].limits[q]->ns) * best.levels[0].value;
      out.not_met.chains[c].limits[q] = Duration{static_cast<std::int64_t>(part * 0.9995)};
      out.met.chains[c].limits[q] = best.schedule->bounds[c].bounds[q];
    }
  }
  EXPECT_TRUE(validate(out.met, *best.schedule)) << seed;
  return out;
}

bool has(const Certificate& part, Rule rule) {
  return part.rule == rule ||
         std::any_of(part.parts.begin(), part.parts.end(), [&](const Certificate& child) { return has(child, rule); });
}

// What no rule refutes by itself: orders of jobs and what they can read, branch by branch.
TEST(Certificate, OrdersAreProvedByBranchingAndChecked) {
  std::map<std::string, int> leaves;
  int proved = 0;
  int undecided = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const std::optional<Contended> problems = contended(seed);
    if (!problems) continue;
    // A problem that has a table is never refuted, however little is left.
    EXPECT_FALSE(prove_infeasible(problems->met, 2000)) << seed;
    const Problem& problem = problems->not_met;
    const Answer answer = synthesize(problem, {1, 20'000});
    ASSERT_NE(answer.verdict, Verdict::kFeasible) << problem.name;
    if (!answer.certificate) {
      ++undecided;
      continue;
    }
    const Status holds = check_certificate(problem, *answer.certificate);
    EXPECT_TRUE(holds) << problem.name << ": " << holds.error().message;
    if (!has(*answer.certificate, Rule::kCircle)) continue;
    ++proved;
    count(*answer.certificate, leaves);
    EXPECT_FALSE(check_certificate(problems->met, *answer.certificate)) << seed;
    const std::string text = certificate_json(problem, *answer.certificate);
    const Result<Certificate> again = read_certificate(problem, text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(certificate_json(problem, *again), text);
    EXPECT_TRUE(check_certificate(problem, *again));
  }
  std::cout << proved << " problems, " << undecided << " undecided\n";
  for (const auto& [rule, n] : leaves) std::cout << rule << ": " << n << " leaves\n";
  EXPECT_GE(proved, 40);
  EXPECT_LE(undecided * 20, proved);
}

TEST(Certificate, MutatedBranchesAreRefused) {
  std::map<std::string, int> refused;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::optional<Contended> problems = contended(seed);
    if (!problems) continue;
    const Problem& problem = problems->not_met;
    const Answer answer = synthesize(problem, {1, 20'000});
    if (!answer.certificate || !has(*answer.certificate, Rule::kCircle)) continue;
    const std::string original = certificate_json(problem, *answer.certificate);
    if (original.size() > 200'000) continue;
    std::mt19937_64 random(seed);
    const auto mutate = [&](const char* name, const std::function<bool(Certificate&)>& change) {
      for (int trial = 0; trial < 8; ++trial) {
        Certificate certificate = *answer.certificate;
        if (!change(part_of(certificate, random)) || certificate_json(problem, certificate) == original) continue;
        ++all;
        const Status status = check_certificate(problem, certificate);
        EXPECT_FALSE(status) << problem.name << ": " << name << " is accepted\n"
                             << original << "\nchanged:\n"
                             << certificate_json(problem, certificate);
        if (!status) ++refused[name];
      }
    };
    const auto is_branch = [](const Certificate& part) {
      return part.rule == Rule::kOrder || part.rule == Rule::kReads;
    };
    const auto step = [&](Certificate& part) { return &part.steps[random() % part.steps.size()]; };
    mutate("excess", [&](Certificate& part) { return part.rule == Rule::kCircle && (++part.excess, true); });
    mutate("lost part", [&](Certificate& part) { return is_branch(part) && (part.parts.pop_back(), true); });
    mutate("parts the other way round",
           [&](Certificate& part) { return is_branch(part) && (std::swap(part.parts[0], part.parts[1]), true); });
    mutate("branch over another job", [&](Certificate& part) { return is_branch(part) && (part.job += 1, true); });
    mutate("branch over another question", [&](Certificate& part) {
      if (!is_branch(part)) return false;
      part.rule = part.rule == Rule::kOrder ? Rule::kReads : Rule::kOrder;
      return true;
    });
    mutate("one part for both", [&](Certificate& part) {
      if (!is_branch(part)) return false;
      Certificate first = part.parts[0];
      part = std::move(first);
      return true;
    });
    mutate("lost step", [&](Certificate& part) {
      if (part.rule != Rule::kCircle) return false;
      part.steps.erase(part.steps.begin() + (step(part) - part.steps.data()));
      return true;
    });
    mutate("step of another job", [&](Certificate& part) {
      if (part.rule != Rule::kCircle) return false;
      Certificate::Step& other = *step(part);
      if (other.kind == Certificate::Step::Kind::kLimit) return other.jobs.front() -= 1, true;
      // These speak of no job; a slot or the next job are the same in every hyperperiod.
      return other.kind != Certificate::Step::Kind::kFirst && other.kind != Certificate::Step::Kind::kLast &&
             other.kind != Certificate::Step::Kind::kSlot && other.kind != Certificate::Step::Kind::kNext &&
             (other.job -= 1, true);
    });
    mutate("no steps", [&](Certificate& part) { return part.rule == Rule::kCircle && (part.steps.clear(), true); });
    mutate("jobs beyond any number", [&](Certificate& part) {
      if (part.rule != Rule::kCircle) return is_branch(part) && (part.other_job = std::int64_t{1} << 60, true);
      Certificate::Step& far = *step(part);
      far.job = std::int64_t{1} << 60;
      far.jobs.assign(far.jobs.size(), std::int64_t{-1} << 60);
      return far.kind != Certificate::Step::Kind::kFirst && far.kind != Certificate::Step::Kind::kLast;
    });
  }
  for (const auto& [name, n] : refused) std::cout << name << ": " << n << " refused\n";
  std::cout << all << " mutations\n";
  EXPECT_GE(all, 200);
  EXPECT_EQ(refused.size(), 10u);
}

TEST(Certificate, UnreadableFilesAreRefusedWithAPlace) {
  const Problem problem = test::infeasible_problem(0);
  const std::string good = certificate_json(problem, *synthesize(problem).certificate);
  const auto message = [&](const std::string& text) {
    const Result<Certificate> read = read_certificate(problem, text);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("no JSON at byte"));
  EXPECT_THAT(message(good.substr(0, good.size() / 2)), HasSubstr("no JSON at byte"));
  EXPECT_THAT(message("[]"), HasSubstr("takt_certificate"));
  EXPECT_THAT(message("{\"takt_certificate\": 2}"), HasSubstr("must be 1"));
  EXPECT_THAT(message("{\"takt_certificate\": 1e999}"), HasSubstr("number overflow"));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << good;
    return message(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(replaced("\"rule\": \"", "\"rule\": \"x"), HasSubstr("unknown rule 'x"));
  EXPECT_THAT(replaced("\"proof\"", "\"prove\""), HasSubstr("'proof' is missing"));
  EXPECT_THAT(replaced("_ns\": ", "_ns\": 1.5e3, \"x\": "), HasSubstr("whole number"));
  EXPECT_THAT(replaced("\"takt_certificate\": 1", "\"takt_certificate\": \"1\""), HasSubstr("must be 1"));
  EXPECT_THAT(replaced("\"takt_certificate\": 1",
                       "\"takt_certificate\": 1, \"more\": " + std::string(100'000, '[') + std::string(100'000, ']')),
              HasSubstr("nested deeper than 1000 levels"));
  // Nothing is passed over.
  EXPECT_THAT(replaced("\"takt_certificate\": 1", "\"takt_certificate\": 1, \"takt_certificate\": 1"),
              HasSubstr("/takt_certificate stands there twice"));
  EXPECT_THAT(replaced("\"rule\": ", "\"rule\": \"same\", \"rule\": "), HasSubstr("/proof/rule stands there twice"));
  EXPECT_THAT(
      replaced("\"takt_certificate\": 1", "\"takt_certificate\": 1, \"more\": [{\"a\": 1}, {\"b\": 1, \"b\": 2}]"),
      HasSubstr("/more/1/b stands there twice"));
  EXPECT_THAT(replaced("\"takt_certificate\": 1", "\"takt_certificate\": 1, \"more\": [1]"),
              HasSubstr("/more: the rule has no such field"));
  EXPECT_THAT(replaced("\"rule\": ", "\"excess\": 1, \"rule\": "),
              HasSubstr("/proof/excess: the rule has no such field"));
  EXPECT_THAT(replaced("\"name\": \"", "\"name\": \"x"), HasSubstr("this problem is called '" + problem.name));
}

}  // namespace
}  // namespace takt::sched
