#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/simt/simt.h"
#include "kernels/reference/narrow_float.h"
#include "tests/kernels/cuda/harness_kernels.h"

namespace takt::test {
namespace {

using simt::Finding;
using simt::Machine;

std::string texts(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) all += std::string(simt::name_of(f.kind)) + ": " + f.text + "\n";
  return all;
}

template <class T>
T* upload(Machine& machine, const std::vector<T>& values, const std::string& name) {
  auto* const start = reinterpret_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
  std::copy(values.begin(), values.end(), start);
  return start;
}

// Both bodies, several orders of blocks and threads: the results of the plain loop, and nothing found.
class HarnessRuns : public testing::TestWithParam<int> {
 protected:
  bool checked() const { return GetParam() % 2 == 1; }
  Machine machine_{{.seed = static_cast<std::uint64_t>(GetParam()), .check = GetParam() % 2 == 1}};
  simt::Use use_{machine_};
  const HarnessKernels& kernels_ = checked() ? checked_harness_kernels() : harness_kernels();
  std::mt19937 random_{7};
  void TearDown() override {
    const std::vector<Finding> findings = machine_.take_findings();
    EXPECT_TRUE(findings.empty()) << texts(findings);
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, HarnessRuns, testing::Range(0, 8));

TEST_P(HarnessRuns, RowSums) {
  constexpr std::uint32_t kRows = 17;
  for (const std::uint32_t width : {1U, 31U, 32U, 33U, 200U, 1024U}) {
    std::vector<std::int32_t> x(kRows * width);
    for (auto& v : x) v = static_cast<std::int32_t>(random_() % 2000) - 1000;
    const auto* const in = upload(machine_, x, "x");
    auto* const sums = upload(machine_, std::vector<std::int32_t>(kRows, -1), "sums");
    ASSERT_EQ(kernels_.row_sums(in, sums, kRows, width), 0);
    for (std::uint32_t r = 0; r < kRows; ++r) {
      std::int32_t sum = 0;
      for (std::uint32_t i = 0; i < width; ++i) sum += x[r * width + i];
      EXPECT_EQ(sums[r], sum) << width;
    }
  }
}

TEST_P(HarnessRuns, Transpose) {
  for (const std::uint32_t n : {1U, 32U, 45U}) {
    std::vector<float> x(n * n);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const auto* const in = upload(machine_, x, "x");
    auto* const y = upload(machine_, std::vector<float>(n * n, -1), "y");
    ASSERT_EQ(kernels_.transpose(in, y, n), 0);
    for (std::uint32_t r = 0; r < n; ++r) {
      for (std::uint32_t c = 0; c < n; ++c) ASSERT_EQ(y[c * n + r], x[r * n + c]);
    }
  }
}

TEST_P(HarnessRuns, Histogram) {
  constexpr std::uint32_t kBins = 37;
  std::vector<std::int32_t> x(1000), expected(kBins, 0);
  for (auto& v : x) {
    v = static_cast<std::int32_t>(random_() % 10000);
    ++expected[static_cast<std::uint32_t>(v) % kBins];
  }
  const auto* const in = upload(machine_, x, "x");
  auto* const bins = upload(machine_, std::vector<std::int32_t>(kBins, 0), "bins");
  ASSERT_EQ(kernels_.histogram(in, bins, 1000, kBins), 0);
  EXPECT_EQ(std::vector<std::int32_t>(bins, bins + kBins), expected);
}

TEST_P(HarnessRuns, AsynchronousCopies) {
  for (const std::uint32_t tiles : {1U, 2U, 5U}) {
    std::vector<float> x(128 * tiles);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.5F;
    const auto* const in = upload(machine_, x, "x");
    auto* const y = upload(machine_, std::vector<float>(x.size(), -1), "y");
    ASSERT_EQ(kernels_.twice_async(in, y, tiles), 0);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  }
}

TEST_P(HarnessRuns, WarpOperationsAsTheGuideSays) {
  auto* const y = upload(machine_, std::vector<std::uint32_t>(12 * 32, 0xdead), "y");
  ASSERT_EQ(kernels_.warp_operations(y), 0);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::vector<std::uint32_t> expected = {15,
                                                 (lane + 31) % 32 * 3,
                                                 lane >= 3 ? lane - 3 : lane,
                                                 lane + 3 < 32 ? lane + 3 : lane,
                                                 lane ^ 17U,
                                                 0x49249249U,
                                                 1,
                                                 0,
                                                 1,
                                                 0,
                                                 1,
                                                 2 << 1};
    EXPECT_EQ(std::vector<std::uint32_t>(y + 12 * lane, y + 12 * lane + 12), expected) << lane;
  }
}

TEST_P(HarnessRuns, HalfIsRoundedToNearestEven) {
  const std::vector<float> x = {0,    -0.0F, 1,     1.00048828125F, 1.0014648F,    65504,    65519, 65520,
                                1e9F, -1e9F, 6e-8F, 1e-8F,          5.9604645e-8F, INFINITY, 2049,  2051};
  const auto* const in = upload(machine_, x, "x");
  auto* const y = upload(machine_, std::vector<float>(x.size(), -1), "y");
  ASSERT_EQ(kernels_.through_half(in, y, static_cast<std::uint32_t>(x.size())), 0);
  const std::vector<float> expected = {
      0, -0.0F,         1,        1,    1.0019531F, 65504, 65504, INFINITY, INFINITY, -INFINITY, 5.9604645e-8F,
      0, 5.9604645e-8F, INFINITY, 2048, 2052};
  EXPECT_EQ(std::vector<float>(y, y + x.size()), expected);
}

TEST(Half, IsWhatTheReferenceSaysForEveryNumberAndAroundEveryTie) {
  const auto same = [](float a, float b) {
    return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = kernels::from_narrow(half, kernels::kHalf);
    ASSERT_TRUE(same(simt::half_to_float(half), value)) << bits;
    // Itself, half way to the next number, and the floats beside both.
    const float next = kernels::from_narrow(static_cast<std::uint16_t>(half + 1), kernels::kHalf);
    for (const float around : {value, value + (next - value) / 2}) {
      for (const float x : {around, std::nextafter(around, -INFINITY), std::nextafter(around, INFINITY)}) {
        ASSERT_EQ(simt::float_to_half(x), kernels::to_narrow(static_cast<double>(x), kernels::kHalf)) << x;
      }
    }
  }
  for (const float x : {65519.0F, 65520.0F, 3e38F, 1e-45F, 0x1p-25F, 0x1.000002p-25F, -0x1p-25F}) {
    EXPECT_EQ(simt::float_to_half(x), kernels::to_narrow(static_cast<double>(x), kernels::kHalf)) << x;
  }
}

// A fault's kernel, run in several orders: the kind, and a line of the source that names the fault.
class HarnessFinds : public testing::TestWithParam<int> {
 protected:
  Machine machine_{{.seed = static_cast<std::uint64_t>(GetParam()), .check = true}};
  simt::Use use_{machine_};
  float* const x_ = reinterpret_cast<float*>(machine_.allocate(64 * sizeof(float), "x"));
  float* const y_ = reinterpret_cast<float*>(machine_.allocate(64 * sizeof(float), "y"));

  // All findings are of that kind and in lines that name the fault; there is one at least.
  std::vector<Finding> expect(Finding::Kind kind, const std::string& fault, int launched) {
    EXPECT_EQ(launched, 0);
    std::vector<Finding> findings = machine_.take_findings();
    EXPECT_FALSE(findings.empty()) << fault;
    for (const Finding& f : findings) {
      EXPECT_EQ(f.kind, kind) << f.text;
      EXPECT_EQ(f.kernel, fault);
      EXPECT_TRUE(line_of(f).find(fault) != std::string::npos) << f.text << "\n" << line_of(f);
    }
    return findings;
  }
  void expect_none(int launched) {
    EXPECT_EQ(launched, 0);
    const std::vector<Finding> findings = machine_.take_findings();
    EXPECT_TRUE(findings.empty()) << texts(findings);
  }
  static std::string line_of(const Finding& finding) {
    const std::size_t colon = finding.text.rfind("harness_faults.cu:");
    if (colon == std::string::npos) return "no source line";
    std::ifstream source(TAKT_SOURCE_DIR "/tests/kernels/cuda/harness_faults.cu");
    std::string line;
    for (int n = std::stoi(finding.text.substr(colon + 18)); n > 0 && std::getline(source, line); --n) {
    }
    return line;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, HarnessFinds, testing::Range(1, 6));

TEST_P(HarnessFinds, OutOfBounds) {
  const HarnessFaults& f = harness_faults();
  auto found = expect(Finding::Kind::kOutOfBounds, "read_behind_end", f.read_behind_end(x_, y_));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].thread.x, 31U);
  EXPECT_EQ(found[0].address, reinterpret_cast<std::uintptr_t>(x_ + 64));
  EXPECT_THAT(found[0].text, testing::HasSubstr("reads 4 bytes 4 bytes behind the end of x (256 bytes)"));
  found = expect(Finding::Kind::kOutOfBounds, "write_before_start", f.write_before_start(y_));
  EXPECT_THAT(found.at(0).text, testing::HasSubstr("before the start of y"));
  float host[32] = {};
  found = expect(Finding::Kind::kOutOfBounds, "write_host_memory", f.write_host_memory(y_, host));
  EXPECT_EQ(host[3], 0) << "it does not happen";
  EXPECT_EQ(y_[3], 1);
  found = expect(Finding::Kind::kOutOfBounds, "shared_behind_end", f.shared_behind_end(y_));
  EXPECT_THAT(found.at(0).text, testing::HasSubstr("behind the end of shared memory"));
}

TEST_P(HarnessFinds, UninitialisedSharedMemory) {
  const auto found =
      expect(Finding::Kind::kUninitialised, "uninitialised_shared", harness_faults().uninitialised_shared(y_));
  EXPECT_EQ(found.at(0).thread.x, 5U);
}

TEST_P(HarnessFinds, RacesInABlock) {
  const HarnessFaults& f = harness_faults();
  for (const Finding& finding : [&] {
         EXPECT_EQ(f.missing_barrier(y_), 0);
         return machine_.take_findings();
       }()) {
    // The reader may come first: then it reads what nobody has written, and the writer is late.
    EXPECT_TRUE(finding.kind == Finding::Kind::kRace || finding.kind == Finding::Kind::kUninitialised) << finding.text;
    EXPECT_TRUE(line_of(finding).find("missing_barrier") != std::string::npos) << finding.text;
  }
  expect(Finding::Kind::kRace, "write_after_read", f.write_after_read(y_));
  expect_none(f.neighbouring_bytes(reinterpret_cast<std::uint8_t*>(y_)));
  expect_none(f.warp_barrier_is_one(y_));
  expect_none(f.atomics_only(reinterpret_cast<std::int32_t*>(y_)));
  expect(Finding::Kind::kRace, "shuffle_is_no_barrier", f.shuffle_is_no_barrier(y_));
  expect(Finding::Kind::kRace, "warp_barrier_across_warps", f.warp_barrier_across_warps(y_));
  expect(Finding::Kind::kRace, "atomic_and_plain", f.atomic_and_plain(reinterpret_cast<std::int32_t*>(y_)));
}

TEST_P(HarnessFinds, RacesBetweenBlocks) {
  const HarnessFaults& f = harness_faults();
  expect(Finding::Kind::kBlockRace, "blocks_write_same", f.blocks_write_same(y_));
  expect(Finding::Kind::kBlockRace, "block_reads_other", f.block_reads_other(y_));
}

TEST_P(HarnessFinds, Divergence) {
  const HarnessFaults& f = harness_faults();
  expect(Finding::Kind::kDivergence, "barrier_in_branch", f.barrier_in_branch(y_));
  expect(Finding::Kind::kDivergence, "barriers_in_both_branches", f.barriers_in_both_branches(y_));
  const auto found = expect(Finding::Kind::kDivergence, "early_return", f.early_return(y_));
  EXPECT_THAT(found.at(0).text, testing::HasSubstr("for thread (63,0,0), which has ended"));
  expect(Finding::Kind::kDivergence, "shuffle_in_branch", f.shuffle_in_branch(y_));
}

TEST_P(HarnessFinds, AsynchronousCopiesThatHaveNotLanded) {
  const HarnessFaults& f = harness_faults();
  std::fill(x_, x_ + 64, 3.0F);
  expect(Finding::Kind::kInFlight, "read_before_wait", f.read_before_wait(x_, y_));
  EXPECT_TRUE(std::isnan(y_[0])) << "poison until then";
  for (const Finding& finding : [&] {
         EXPECT_EQ(f.read_before_barrier(x_, y_), 0);
         auto findings = machine_.take_findings();
         EXPECT_FALSE(findings.empty());
         return findings;
       }()) {
    EXPECT_NE(finding.kind, Finding::Kind::kOutOfBounds) << finding.text;
    EXPECT_TRUE(line_of(finding).find("read_before_barrier") != std::string::npos ||
                line_of(finding).find("copy_async") != std::string::npos)
        << finding.text;
  }
  expect(Finding::Kind::kOutOfBounds, "misaligned_copy", f.misaligned_copy(x_, y_));
}

TEST_P(HarnessFinds, LaunchesThatNoDeviceTakes) {
  EXPECT_EQ(harness_faults().too_many_threads(y_), 0);
  const auto found = machine_.take_findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Finding::Kind::kLaunch);
}

TEST(Harness, OneFindingForEachPlace) {
  Machine machine({.seed = 3, .check = true});
  const simt::Use use(machine);
  auto* const y = reinterpret_cast<float*>(machine.allocate(64 * sizeof(float), "y"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(harness_faults().blocks_write_same(y), 0);
  EXPECT_EQ(machine.take_findings().size(), 1U);
  EXPECT_EQ(harness_faults().blocks_write_same(y), 0);
  EXPECT_EQ(machine.take_findings().size(), 1U);
}

}  // namespace
}  // namespace takt::test
