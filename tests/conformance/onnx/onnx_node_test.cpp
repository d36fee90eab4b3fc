// ONNX's own tests (Debian's libonnx-testdata) as plans, unoptimised and optimised, and beside them by reference
// kernels. Every test passes, or is listed in unsupported.txt: either its operator, which takt then refuses by name, or
// the test. A listed test that passes is an error too, so the list stays true. A pass executes at least one step of a
// plan; operators whose results are known when a plan is compiled are the only exception, and are named here.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "tests/conformance/onnx/suite.h"

namespace takt::test {
namespace {

constexpr const char* kData = "/usr/share/libonnx-testdata/data";

// name -> reason; operators are written as "operator Name: reason".
std::map<std::string, std::string> unsupported_list() {
  std::ifstream file(TAKT_SOURCE_DIR "/tests/conformance/onnx/unsupported.txt");
  std::map<std::string, std::string> list;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#') continue;
    EXPECT_NE(colon, std::string::npos) << line;
    list[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return list;
}

struct Counts {
  std::size_t pass = 0, unsupported = 0, fail = 0;
};

// Whether a test or one of its operators is listed.
bool is_listed(const std::map<std::string, std::string>& list, const std::string& name, const Case& c) {
  if (list.count(name) != 0) return true;
  const auto& nodes = c.model.graph().node();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    return list.count("operator " + (node.domain().empty() ? "" : node.domain() + ".") + node.op_type()) != 0;
  });
}

// Listed tests whose own data are wrong: nothing can pass them.
bool contradicts(const std::map<std::string, std::string>& list, const std::string& name) {
  const auto found = list.find(name);
  return found != list.end() && found->second.rfind("the suite ", 0) == 0;
}

void run_suite(const std::string& suite, std::size_t floor) {
  const fs::path data = fs::path(kData) / suite;
  if (!fs::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto listed = unsupported_list();
  Counts plain, optimised;
  std::size_t frozen = 0;
  for (const fs::path& folder : folders(data)) {
    const std::string name = folder.filename().string();
    Case c;
    const Status loaded = load(folder, &c);
    const Outcome outcome = loaded ? run(c) : Outcome{loaded, loaded};
    frozen += c.frozen;
    const bool known = is_listed(listed, name, c);
    const auto count = [&](const Status& status, Counts* counts) {
      if (status) {
        ++counts->pass;
      } else if (known && (status.error().code == Code::kInput || contradicts(listed, name))) {
        ++counts->unsupported;
      } else {
        ++counts->fail;
        ADD_FAILURE() << name << ": " << status.error().message;
      }
    };
    count(outcome.plain, &plain);
    count(outcome.optimised, &optimised);
    if (outcome.plain && outcome.optimised) {
      EXPECT_EQ(listed.count(name), 0U) << name << " passes, but is listed as unsupported";
    }
  }
  for (const auto& [form, counts] : {std::pair{"unoptimised", plain}, {"optimised", optimised}}) {
    std::cout << suite << ", plans " << form << ": " << counts.pass << " pass, " << counts.unsupported
              << " unsupported, " << counts.fail << " fail\n";
    EXPECT_GE(counts.pass, floor) << "the floor only rises";
  }
  std::cout << suite << ": " << frozen << " inputs reach shapes and are frozen\n";
}

TEST(OnnxConformance, Node) { run_suite("node", 840); }
TEST(OnnxConformance, Simple) { run_suite("simple", 7); }
TEST(OnnxConformance, PytorchOperator) { run_suite("pytorch-operator", 35); }
TEST(OnnxConformance, PytorchConverted) { run_suite("pytorch-converted", 82); }

}  // namespace
}  // namespace takt::test
