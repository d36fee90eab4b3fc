// Every operator that takt reads, in every form from operator set 7 to 23, in f32 and f16, against ONNX Runtime:
// make_cases.py writes the cases, TAKT_OPERATOR_CASES names their folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "compiler/onnx/operators.h"
#include "tests/conformance/onnx/suite.h"

namespace takt::test {
namespace {

TEST(OnnxOperators, EveryFormAgreesWithOnnxRuntime) {
  const char* const cases = std::getenv("TAKT_OPERATOR_CASES");
  if (cases == nullptr) GTEST_SKIP() << "TAKT_OPERATOR_CASES is not set";
  std::size_t passed = 0, failed = 0;
  std::set<std::string> covered;
  for (const fs::path& folder : folders(cases)) {
    const std::string name = folder.filename().string();
    Case c;
    Status done = load(folder, &c);
    if (done) {
      for (const auto& node : c.model.graph().node()) covered.insert(node.op_type());
      const Outcome outcome = run(c);
      done = outcome.plain ? outcome.optimised : outcome.plain;
    }
    if (done) {
      ++passed;
    } else {
      ++failed;
      ADD_FAILURE() << name << ": " << done.error().message;
    }
  }
  std::cout << "operators: " << passed << " cases of " << covered.size() << " operators pass, " << failed << " fail\n";
  for (const std::string_view op : compiler::imported_operators()) {
    EXPECT_EQ(covered.count(std::string(op)), 1U) << op << " has no case in make_cases.py";
  }
  EXPECT_GT(passed, 0U);
}

}  // namespace
}  // namespace takt::test
