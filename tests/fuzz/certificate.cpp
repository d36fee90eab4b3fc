// Any bytes as a certificate: reading ends in a value or in a message, checking a value ends in a verdict.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scheduler/analysis/certificate.h"
#include "tests/scheduler/synthesis/infeasible.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const takt::sched::Problem problem = takt::sched::test::infeasible_problem(3);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const takt::Result<takt::sched::Certificate> certificate = takt::sched::read_certificate(problem, text);
  if (!certificate) {
    if (certificate.error().message.empty()) std::abort();
    return 0;
  }
  (void)takt::sched::check_certificate(problem, *certificate);
  return 0;
}
