// Linked with the interposed malloc and memcpy: what the dispatcher itself allocates and copies in timed threads.
#include <gtest/gtest.h>
#include <cstring>
#include <set>

#include "fake_host.h"
#include "runtime/memory/alloc_guard.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::TableBuilder;

// Copies and allocates so many times per job.
class WastefulHost final : public FakeHost {
 public:
  void run(const Job& job, int part, Gang& gang) override {
    FakeHost::run(job, part, gang);
    void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
    copy(target_, source_, sizeof source_);
    void* (*volatile allocate)(std::size_t) = std::malloc;
    for (int i = 0; i < 3; ++i) std::free(allocate(64));
  }

 private:
  char source_[4096] = {};
  char target_[4096] = {};
};

class Allocations : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted in this build (sanitizers)";
    single = table.stage("single", 2, milliseconds(1));
    gang = table.stage("gang", 1, milliseconds(1));
    table.slot(single, 0, {0}, 0, 4);
    table.slot(gang, 0, {0, 1}, 5, 9);
    table.slot(single, 1, {0}, 10, 14);
    options.hyperperiods = 10;
    options.lockstep = GetParam();
  }
  std::vector<JobRecord> run(const std::vector<StageHost*>& hosts) {
    // One preallocated list per core, as the rings of a real run.
    std::vector<std::vector<JobRecord>> rings(2);
    for (auto& ring : rings) ring.reserve(100);
    const auto result =
        dispatch(table.problem, table.schedule, hosts, options,
                 [&rings](std::size_t core, const JobRecord& record) { rings[core].push_back(record); });
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    rings[0].insert(rings[0].end(), rings[1].begin(), rings[1].end());
    return rings[0];
  }
  TableBuilder table{milliseconds(20), 2};
  std::uint32_t single = 0, gang = 0;
  DispatchOptions options;
};

TEST_P(Allocations, TheDispatcherAllocatesNothing) {
  const std::size_t before = memory::timed_threads().size();
  FakeHost single_host;
  FakeHost gang_host;
  const auto records = run({&single_host, &gang_host});
  EXPECT_EQ(records.size(), 30U);
  for (const JobRecord& record : records) EXPECT_EQ(record.allocations, 0U);
  const auto threads = memory::timed_threads();
  std::set<std::string> names;
  for (std::size_t i = before; i < threads.size(); ++i) {
    names.insert(threads[i].name);
    EXPECT_EQ(threads[i].since_mark.allocations, 0U) << threads[i].name;
  }
  const std::set<std::string> expected =
      GetParam() ? std::set<std::string>{"single.0", "gang.0", "gang.1", "sequencer"}
                 : std::set<std::string>{"single.0", "gang.0", "gang.1", "dispatch.core0", "dispatch.core1"};
  EXPECT_EQ(names, expected);
}

TEST_P(Allocations, ARecordChargesItsOwnJob) {
  WastefulHost single_host;
  WastefulHost gang_host;
  for (const JobRecord& record : run({&single_host, &gang_host})) {
    if (record.job_class == JobClass::kSkipped) continue;
    EXPECT_EQ(record.allocations, 3 * record.cores);
    EXPECT_GE(record.copied_bytes, 4096U * record.cores);
    EXPECT_LT(record.copied_bytes, 4096U * record.cores + 4096U);
  }
}

INSTANTIATE_TEST_SUITE_P(Clocks, Allocations, testing::Bool(),
                         [](const auto& clock) { return clock.param ? "Lockstep" : "RealTime"; });

}  // namespace
}  // namespace takt::sched
