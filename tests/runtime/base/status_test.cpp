#include "runtime/base/status.h"

#include <gtest/gtest.h>
#include <memory>

namespace takt {
namespace {

TEST(Status, ExitCodesAreTheDocumentedOnes) {
  EXPECT_EQ(exit_code(Code::kGate), 1);
  EXPECT_EQ(exit_code(Code::kUsage), 2);
  EXPECT_EQ(exit_code(Code::kInput), 3);
  EXPECT_EQ(exit_code(Code::kConfiguration), 4);
  EXPECT_EQ(exit_code(Code::kEnvironment), 5);
  EXPECT_EQ(exit_code(Code::kInterrupted), 130);
  EXPECT_EQ(exit_code(Code::kInternal), 70);
}

TEST(Status, ContextGoesInFront) {
  const Error error = Error{Code::kInput, "bad byte"}.with_context("a.mcap").with_context("reading");
  EXPECT_EQ(error.message, "reading: a.mcap: bad byte");
  EXPECT_EQ(error.code, Code::kInput);
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::kInput, "odd");
  return value / 2;
}
Result<int> quarter(int value) {
  TAKT_ASSIGN(const int once, half(value));
  TAKT_ASSIGN(const int twice, half(once));
  return twice;
}
Status check(int value, int& reached) {
  TAKT_RETURN_IF_ERROR(half(value));
  ++reached;
  return {};
}

TEST(Status, ErrorsReturnEarly) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  int reached = 0;
  EXPECT_FALSE(check(3, reached));
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(check(4, reached));
  EXPECT_EQ(reached, 1);
}

Result<std::unique_ptr<int>> make() { return std::make_unique<int>(7); }

TEST(Status, AssignMovesTheValueOut) {
  const auto use = []() -> Result<int> {
    TAKT_ASSIGN(std::unique_ptr<int> value, make());
    return *value;
  };
  EXPECT_EQ(*use(), 7);
}

}  // namespace
}  // namespace takt
