// The counted kernel never touches what lies behind a count: there, memory ends.
#include "kernels/reference/counted.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace takt::kernels::reference {
namespace {

// Bytes up to the end of a page; the next pages cannot be read or written.
class Fenced {
 public:
  Fenced(std::size_t valid, std::size_t capacity) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto pages = [&](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    size_ = pages(valid) + pages(capacity) + page;
    memory_ = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    if (valid > 0) {
      EXPECT_EQ(::mprotect(memory_, pages(valid), PROT_READ | PROT_WRITE), 0);
    }
    data_ = static_cast<std::byte*>(memory_) + pages(valid) - valid;
  }
  ~Fenced() { ::munmap(memory_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

constexpr std::int64_t kCapacity = 37;

GenericType type(DType dtype, std::vector<std::int64_t> dims, int counted = -1) {
  GenericType out;
  out.dtype = static_cast<std::uint8_t>(dtype);
  out.rank = static_cast<std::uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims);
  if (counted >= 0) {
    out.count = 1;
    out.axis = static_cast<std::uint8_t>(counted);
  }
  return out;
}

std::size_t bytes_of(const GenericType& t, std::int64_t count) {
  std::size_t n = size_of(static_cast<DType>(t.dtype));
  for (int d = 0; d < t.rank; ++d) {
    n *= static_cast<std::size_t>(t.count != 0 && d == t.axis ? std::min(count, t.dims[d]) : t.dims[d]);
  }
  return n;
}

struct Case {
  const char* name;
  Generic op;
  std::vector<GenericType> inputs;
  std::vector<std::int64_t> integers;
  // How many a step that makes a count may make of `count` inputs; nullptr: it makes none.
  std::int64_t (*made)(std::int64_t count) = nullptr;
};

const std::int64_t kC = kCapacity;
const Case kCases[] = {
    {"function", Generic::kFunction, {type(DType::kF32, {kC, 3}, 0)}, {static_cast<std::int64_t>(Function::kErf)}},
    {"function_of_columns",
     Generic::kFunction,
     {type(DType::kF32, {3, kC}, 1)},
     {static_cast<std::int64_t>(Function::kAbs)}},
    {"binary", Generic::kBinary, {type(DType::kF32, {kC, 3}, 0), type(DType::kF32, {kC, 1}, 0)}, {0}},
    {"binary_with_a_row", Generic::kBinary, {type(DType::kI64, {kC, 3}, 0), type(DType::kI64, {3})}, {2}},
    {"where", Generic::kWhere, {type(DType::kBool, {kC}, 0), type(DType::kF32, {kC}, 0), type(DType::kF32, {1})}, {}},
    {"cast", Generic::kCast, {type(DType::kF32, {kC, 2}, 0)}, {static_cast<std::int64_t>(DType::kI64)}},
    {"sum_over_rows", Generic::kReduce, {type(DType::kF32, {kC, 3}, 0)}, {1, 1, 0}},
    {"mean_over_rows", Generic::kReduce, {type(DType::kI32, {kC, 3}, 0)}, {2, 1, 1}},
    {"maximum_of_rows", Generic::kReduce, {type(DType::kF32, {kC, 3}, 0)}, {3, 2, 0}},
    {"argument", Generic::kArg, {type(DType::kF32, {kC, 3}, 0)}, {0, 0, 0, 0}},
    {"cumulated", Generic::kCumSum, {type(DType::kF32, {kC, 3}, 0)}, {0, 1, 1}},
    {"gather_by_counted", Generic::kGather, {type(DType::kF32, {5, 2}), type(DType::kI64, {kC}, 0)}, {0}},
    {"gather_from_counted", Generic::kGather, {type(DType::kF32, {kC, 2}, 0), type(DType::kI64, {4})}, {0}},
    {"gather_columns", Generic::kGather, {type(DType::kI64, {2, kC}, 1), type(DType::kI64, {})}, {0}},
    {"gather_nd", Generic::kGatherNd, {type(DType::kF32, {5, 2}), type(DType::kI64, {kC, 1}, 0)}, {0}},
    {"scatter_nd",
     Generic::kScatterNd,
     {type(DType::kF32, {5}), type(DType::kI64, {kC, 1}, 0), type(DType::kF32, {kC}, 0)},
     {0}},
    {"one_hot", Generic::kOneHot, {type(DType::kI64, {kC}, 0), type(DType::kF32, {2})}, {1, 4}},
    {"matmul", Generic::kMatMul, {type(DType::kF32, {kC, 3}, 0), type(DType::kF32, {3, 2})}, {}},
    {"matmul_over_counted", Generic::kMatMul, {type(DType::kF32, {2, kC}, 1), type(DType::kF32, {kC, 2}, 0)}, {}},
    {"gemm",
     Generic::kGemm,
     {type(DType::kF32, {kC, 3}, 0), type(DType::kF32, {2, 3}), type(DType::kF32, {2})},
     {0, 1}},
    {"transpose", Generic::kTranspose, {type(DType::kF32, {kC, 3}, 0)}, {1, 0}},
    {"softmax_of_rows", Generic::kSoftmax, {type(DType::kF32, {kC, 3}, 0)}, {1}},
    {"softmax_over_rows", Generic::kSoftmax, {type(DType::kF32, {kC, 3}, 0)}, {0}},
    {"clip", Generic::kClip, {type(DType::kF32, {kC, 3}, 0), type(DType::kF32, {})}, {}},
    {"slice_of_columns", Generic::kSlice, {type(DType::kF32, {kC, 6}, 0)}, {1, 1, 1, 5, 2}},
    {"copy", Generic::kSlice, {type(DType::kF32, {kC, 6}, 0)}, {0}},
    {"slice",
     Generic::kSlice,
     {type(DType::kF32, {kC, 2}, 0)},
     {1, 0, 2, -1, 2},
     [](std::int64_t n) { return std::max<std::int64_t>(0, (n - 1 - std::min<std::int64_t>(2, n) + 1) / 2); }},
    {"slice_backwards",
     Generic::kSlice,
     {type(DType::kF32, {kC, 2}, 0)},
     {1, 0, -1, -0x7fffffff, -1},
     [](std::int64_t n) { return n; }},
    {"concat",
     Generic::kConcat,
     {type(DType::kF32, {kC, 2}, 0), type(DType::kF32, {3, 2}), type(DType::kF32, {kC, 2}, 0)},
     {0},
     [](std::int64_t n) { return 2 * n + 3; }},
    {"concat_of_columns", Generic::kConcat, {type(DType::kF32, {kC, 2}, 0), type(DType::kF32, {kC, 1}, 0)}, {1}},
    {"top_k",
     Generic::kTopK,
     {type(DType::kF32, {kC}, 0)},
     {0, 5, 1},
     [](std::int64_t n) { return std::min<std::int64_t>(n, 5); }},
    {"top_k_of_rows", Generic::kTopK, {type(DType::kF32, {kC, 4}, 0)}, {1, 2, 1}},
    {"non_zero",
     Generic::kNonZero,
     {type(DType::kF32, {kC, 2}, 0)},
     {0, 0, 0, 2 * kC},
     [](std::int64_t n) { return 2 * n; }},
    {"non_zero_within_its_capacity",
     Generic::kNonZero,
     {type(DType::kF32, {kC, 2}, 0)},
     {0, 0, 0, 9},
     [](std::int64_t n) { return std::min<std::int64_t>(2 * n, 9); }},
    {"compress",
     Generic::kCompress,
     {type(DType::kF32, {kC, 2}, 0), type(DType::kBool, {kC}, 0)},
     {0, 0, 0, kC},
     [](std::int64_t n) { return n; }},
    {"unique",
     Generic::kUnique,
     {type(DType::kF32, {kC, 2}, 0)},
     {0, 1, 0, kC},
     [](std::int64_t n) { return std::min<std::int64_t>(n, 1); }},
    {"unique_inverse", Generic::kUnique, {type(DType::kF32, {kC, 2}, 0)}, {0, 1, 2, kC}},
};

class CountedKernel : public testing::TestWithParam<Case> {};

TEST_P(CountedKernel, NeverTouchesWhatLiesBehindTheCount) {
  const Case& c = GetParam();
  GenericParams p;
  p.op = c.op;
  std::copy(c.inputs.begin(), c.inputs.end(), p.operands);
  std::copy(c.integers.begin(), c.integers.end(), p.integers);
  p.numbers[0] = p.numbers[1] = 1;
  ASSERT_EQ(counted_infer(&p), nullptr);
  EXPECT_EQ(makes_count(p), c.made != nullptr);
  p.operands[kGenericInputs + 1] = {};
  const GenericType& y = p.operands[kGenericInputs];
  std::vector<std::uint64_t> bytes;
  for (const GenericType& t : p.operands) bytes.push_back(t.dtype == 0 ? 0 : bytes_of(t, kCapacity * 2 + 3));
  ASSERT_EQ(counted_check(p, bytes, c.made != nullptr), nullptr);

  for (const std::int32_t given : {0, 1, 5, 36, 37, 1000, -3}) {
    const std::int64_t count = std::clamp<std::int64_t>(given, 0, kCapacity);
    std::vector<std::unique_ptr<Fenced>> memory;
    std::byte* operands[kGenericOperands] = {};
    for (int i = 0; i < kGenericInputs; ++i) {
      const GenericType& t = p.operands[i];
      if (t.dtype == 0) continue;
      const std::size_t valid = bytes_of(t, count);
      memory.push_back(std::make_unique<Fenced>(valid, bytes_of(t, kCapacity)));
      operands[i] = memory.back()->data();
      // Ones of any type but f32, which has 1.0: every index and condition holds.
      for (std::size_t at = 0; at < valid; at += size_of(static_cast<DType>(t.dtype))) {
        const float one = 1;
        if (t.dtype == static_cast<std::uint8_t>(DType::kF32)) {
          std::memcpy(operands[i] + at, &one, sizeof one);
        } else {
          operands[i][at] = std::byte{1};
        }
      }
    }
    const std::int64_t made = c.made != nullptr ? c.made(count) : count;
    memory.push_back(std::make_unique<Fenced>(bytes_of(y, made), bytes_of(y, 2 * kCapacity + 3)));
    operands[kGenericInputs] = memory.back()->data();
    const std::int32_t* const counts[kMostCounts] = {&given};
    std::int32_t found = -1;
    counted_run(p, operands, counts, c.made != nullptr ? &found : nullptr);
    if (c.made != nullptr) {
      EXPECT_EQ(found, made) << given;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CountedKernel, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(CountedCheck, CountsAreWhatTheOperatorGives) {
  GenericParams p;
  p.op = Generic::kFunction;
  p.integers[0] = static_cast<std::int64_t>(Function::kAbs);
  p.operands[0] = type(DType::kF32, {kC, 3}, 0);
  ASSERT_EQ(counted_infer(&p), nullptr);
  std::uint64_t bytes[kGenericOperands] = {};
  bytes[0] = bytes[kGenericInputs] = kC * 12;
  EXPECT_EQ(counted_check(p, bytes, false), nullptr);
  EXPECT_NE(counted_check(p, bytes, true), nullptr);
  for (const auto change : {0, 1, 2, 3, 4}) {
    GenericParams other = p;
    if (change == 0) other.operands[kGenericInputs].count = 0;
    if (change == 1) other.operands[kGenericInputs].count = 2;
    if (change == 2) other.operands[kGenericInputs].axis = 1;
    if (change == 3) other.operands[0].axis = 7;
    if (change == 4) other.operands[0].count = kMade;
    EXPECT_NE(counted_check(other, bytes, false), nullptr) << change;
    EXPECT_NE(generic_check(other, bytes), nullptr) << change;
  }
  GenericParams pool;
  pool.op = Generic::kDet;
  pool.operands[0] = type(DType::kF32, {kC, 2, 2}, 0);
  EXPECT_STREQ(counted_infer(&pool), "the operator takes no counted tensors");
}

}  // namespace
}  // namespace takt::kernels::reference
