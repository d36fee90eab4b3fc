// Expected failures are values: Status and Result<T> (DESIGN section 10). Nothing here throws or aborts.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace takt {

// What kind of failure it is. The first group maps one to one to process exit codes (see exit_code).
enum class Code {
  kGate,           // the tool worked, the answer is no: infeasible, undecided, violated, differs
  kUsage,          // the command line
  kInput,          // a log, image, cloud or plan that cannot be read
  kConfiguration,  // a YAML file
  kEnvironment,    // shared memory, rights, a second RouDi, disk
  kInterrupted,    // the user stopped it
  kInternal,       // an error of takt itself
};

// 1 gate, 2 usage, 3 input, 4 configuration, 5 environment, 130 interrupted, 70 internal.
int exit_code(Code code);

// A failure: what happened, where, and what to do, in words a newcomer can act on.
struct Error {
  Code code = Code::kInternal;
  std::string message;

  // Prepends "context: " and returns the error, so that a caller can say what it was doing.
  Error with_context(std::string_view context) &&;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace takt

// Returns the error of a Status or Result expression from the enclosing function.
#define TAKT_RETURN_IF_ERROR(expression)                                     \
  do {                                                                       \
    auto takt_status_ = (expression);                                        \
    if (!takt_status_) return ::takt::fail(std::move(takt_status_).error()); \
  } while (false)

// TAKT_ASSIGN(auto value, expression): binds the value of a Result or returns its error.
#define TAKT_CONCAT_INNER_(a, b) a##b
#define TAKT_CONCAT_(a, b) TAKT_CONCAT_INNER_(a, b)
#define TAKT_ASSIGN(declaration, expression)                                      \
  auto TAKT_CONCAT_(takt_result_, __LINE__) = (expression);                       \
  if (!TAKT_CONCAT_(takt_result_, __LINE__))                                      \
    return ::takt::fail(std::move(TAKT_CONCAT_(takt_result_, __LINE__)).error()); \
  declaration = *std::move(TAKT_CONCAT_(takt_result_, __LINE__))
