// Figures of the scheduler, one JSON object per line: tools/bench schedule compares them with their goals.
//   bench_schedule shops FOLDER perception|jobshop|taillard|flexible|projects SECONDS
//   bench_schedule rings FOLDER SECONDS
//   bench_schedule graph STAGES CHAINS CORES TENTHS LOAD SECONDS SEEDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/bench/schedule/graphs.h"
#include "tests/scheduler/shop/readers.h"
#include "tests/scheduler/synthesis/ring.h"

namespace {

using namespace takt::sched;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Instance {
  std::string name;
  shop::Shop shop;
  shop::Time known = 0;  // best known, 0: none
};

// Counts what is proved, equal to the best known, and the worst gap to it. Returns false when a plan is not valid.
// With `until_known` a search ends at the best known, proved or not.
bool run_shops(const std::vector<Instance>& instances, double seconds, bool until_known) {
  int proved = 0;
  int equal = 0;
  double worst_gap = 0;
  double slowest = 0;
  for (const Instance& instance : instances) {
    shop::Limits limits;
    limits.conflicts = std::uint64_t{1} << 40;
    limits.seconds = seconds;
    if (until_known) limits.good_enough = instance.known;
    const Clock::time_point begin = Clock::now();
    const shop::Outcome outcome = shop::solve(instance.shop, limits);
    const double took = since(begin);
    if (!outcome.plan || !shop::verify(instance.shop, *outcome.plan)) {
      std::fprintf(stderr, "%s: no valid plan\n", instance.name.c_str());
      return false;
    }
    const bool is_proved = outcome.proof == shop::Proof::kOptimal;
    proved += is_proved ? 1 : 0;
    slowest = std::max(slowest, took);
    if (instance.known > 0) {
      const double gap = static_cast<double>(outcome.plan->objective) / static_cast<double>(instance.known) - 1;
      worst_gap = std::max(worst_gap, gap);
      equal += outcome.plan->objective == instance.known ? 1 : 0;
    }
    std::fprintf(stderr, "  %-28s %5zu jobs  %7lld of %7lld  %s  %8.3f s  %llu conflicts\n", instance.name.c_str(),
                 instance.shop.jobs.size(), static_cast<long long>(outcome.plan->objective),
                 static_cast<long long>(instance.known), is_proved ? "proved  " : "no proof", took,
                 static_cast<unsigned long long>(outcome.conflicts));
  }
  std::printf(
      "{\"instances\": %zu, \"proved\": %d, \"equal\": %d, \"worst_gap_percent\": %.3f, \"slowest_s\": %.3f, "
      "\"proved_percent\": %.2f}\n",
      instances.size(), proved, equal, 100 * worst_gap, slowest,
      100.0 * proved / static_cast<double>(instances.size()));
  return true;
}

int shops(const std::filesystem::path& folder, const std::string& kind, double seconds) {
  std::vector<Instance> instances;
  if (kind == "perception") {
    for (const auto& entry : nlohmann::json::parse(shop::test::text_of(folder / "perception_synth" / "optima.json"))) {
      const std::string name = entry["file"];
      instances.push_back(
          {name, shop::test::read_perception(folder / "perception_synth" / name), entry["opt_max_chain_latency"]});
    }
  } else if (kind == "projects") {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "rcpsp" / "j30"))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) instances.push_back({file.filename(), shop::test::read_rcp(file), 0});
  } else {
    const bool flexible = kind == "flexible";
    const auto known =
        shop::test::read_best_known(folder / (flexible ? "fjsp" : "jsplib") / "bks_scheduleopt_2026.json");
    std::vector<std::string> names;
    if (kind == "jobshop_easy") names = {"ft06", "la01", "la02", "la03", "la04", "la05"};
    if (kind == "jobshop") names = {"ft10", "la16", "la17", "la18", "la19", "la20"};
    for (int i = 1; i <= 10; ++i) {
      const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
      if (kind == "taillard") names.push_back("ta" + number);
      if (flexible) names.push_back("mk" + number);
    }
    for (const std::string& name : names) {
      instances.push_back({name,
                           flexible ? shop::test::read_fjsp(folder / "fjsp" / "Brandimarte1993" / (name + ".txt"))
                                    : shop::test::read_jsplib(folder / "jsplib" / "instances" / name),
                           known.at(name).upper});
    }
  }
  if (instances.empty()) {
    std::fprintf(stderr, "unknown kind %s\n", kind.c_str());
    return 2;
  }
  return run_shops(instances, seconds, kind == "flexible") ? 0 : 1;
}

// The perception tables around their hyperperiod with explicit home cores: how many are as good as the optimum without
// either, which no such table can beat, and how far the others are from it.
int rings(const std::filesystem::path& folder, double seconds) {
  int equal = 0;
  int tables = 0;
  double worst_gap = 0;
  double slowest = 0;
  for (const auto& entry : nlohmann::json::parse(shop::test::text_of(folder / "perception_synth" / "optima.json"))) {
    const std::string name = entry["file"];
    const Tick optimum = entry["opt_max_chain_latency"];
    const test::Ring ring = test::fold(shop::test::read_perception(folder / "perception_synth" / name), 30'000);
    const Clock::time_point begin = Clock::now();
    std::optional<Tick> found;
    double growth = 0;
    double until = seconds / 2;  // half of the time for the optimum itself
    while (!found && since(begin) < seconds) {
      test::RingSearch search(ring, static_cast<Tick>(static_cast<double>(optimum) * (1 + growth)));
      Differences::Stop stop = Differences::Stop::kBudget;
      while (stop == Differences::Stop::kBudget && since(begin) < until) stop = search.solver().run(200);
      if (stop == Differences::Stop::kSolution) {
        found = test::largest_latency(ring, search.table());
        if (!found) {
          std::fprintf(stderr, "%s: the table is not valid\n", name.c_str());
          return 1;
        }
      }
      growth = growth == 0 ? 0.02 : 2 * growth;
      until = std::min(seconds, since(begin) + seconds / 8);
    }
    ++tables;
    slowest = std::max(slowest, since(begin));
    const double gap = found ? static_cast<double>(*found) / static_cast<double>(optimum) - 1 : 1;
    worst_gap = std::max(worst_gap, gap);
    equal += gap == 0 ? 1 : 0;
    std::fprintf(stderr, "  %-28s %5zu jobs  %7lld of %7lld  %8.3f s\n", name.c_str(), ring.jobs.size(),
                 static_cast<long long>(found.value_or(-1)), static_cast<long long>(optimum), since(begin));
  }
  std::printf("{\"tables\": %d, \"equal\": %d, \"worst_gap_percent\": %.3f, \"slowest_s\": %.3f}\n", tables, equal,
              100 * worst_gap, slowest);
  return 0;
}

// Multi-rate graphs: whether a table was found, how long validation and walks take, and how far the first level is from
// what no table can be better than.
int graphs(const bench::Size& size, double seconds, std::uint64_t seeds) {
  int feasible = 0;
  int proved = 0;
  double worst_gap = 0;
  double slowest = 0;
  double analysis = 0;
  std::size_t jobs = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Problem problem = bench::graph(size, seed);
    SynthesisOptions options;
    options.node_limit = std::uint64_t{1} << 40;
    options.seconds = seconds;
    Clock::time_point begin = Clock::now();
    const Answer answer = synthesize(problem, options);
    slowest = std::max(slowest, since(begin));
    if (answer.verdict != Verdict::kFeasible) {
      std::fprintf(stderr, "  seed %llu: %s: %s\n", static_cast<unsigned long long>(seed), name_of(answer.verdict),
                   answer.reason.c_str());
      continue;
    }
    ++feasible;
    jobs = std::max(jobs, answer.schedule->slots.size());
    begin = Clock::now();
    if (const takt::Status valid = validate(problem, *answer.schedule); !valid) {
      std::fprintf(stderr, "%s\n", valid.error().message.c_str());
      return 1;
    }
    analysis = std::max(analysis, since(begin));
    const Level& level = answer.levels.front();
    worst_gap = std::max(worst_gap, level.gap());
    proved += level.gap() < 0.001 ? 1 : 0;
    std::fprintf(stderr, "  seed %llu: %zu jobs, worst bound / limit %.4f, no table below %.4f\n",
                 static_cast<unsigned long long>(seed), answer.schedule->slots.size(), level.value, level.bound);
  }
  std::printf(
      "{\"graphs\": %llu, \"feasible\": %d, \"proved\": %d, \"jobs\": %zu, \"worst_gap_percent\": %.3f, "
      "\"slowest_s\": %.3f, \"analysis_ms\": %.3f}\n",
      static_cast<unsigned long long>(seeds), feasible, proved, jobs, 100 * worst_gap, slowest, 1e3 * analysis);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "shops" && argc == 5) return shops(argv[2], argv[3], std::atof(argv[4]));
  if (verb == "rings" && argc == 4) return rings(argv[2], std::atof(argv[3]));
  if (verb == "graph" && argc == 9) {
    bench::Size size;
    size.stages = static_cast<std::uint32_t>(std::atoi(argv[2]));
    size.chains = static_cast<std::uint32_t>(std::atoi(argv[3]));
    size.cores = static_cast<std::uint32_t>(std::atoi(argv[4]));
    size.hyperperiods_of_100ms = std::atoi(argv[5]);
    size.load = std::atof(argv[6]);
    return graphs(size, std::atof(argv[7]), static_cast<std::uint64_t>(std::atoi(argv[8])));
  }
  std::fprintf(stderr, "usage: see the head of bench_schedule.cpp\n");
  return 2;
}
