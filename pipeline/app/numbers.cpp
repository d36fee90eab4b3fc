#include "pipeline/app/numbers.h"

#include <charconv>
#include <sstream>
#include <string>

namespace takt::app {
namespace {

template <class T>
CLI::Validator in_range(T least, T most, const char* kind) {
  std::ostringstream range;
  range << least << " to " << most;
  return {[=, wanted = "expected " + (kind + (" from " + range.str()))](std::string& text) -> std::string {
            T value{};
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            // Written so that nan fails.
            const bool fits = error == std::errc() && rest == end && value >= least && value <= most;
            return fits ? "" : wanted + "; found '" + text + "'";
          },
          range.str()};
}

}  // namespace

CLI::Validator number_in(double least, double most) { return in_range(least, most, "a number"); }
CLI::Validator count_in(std::uint64_t least, std::uint64_t most) { return in_range(least, most, "a whole number"); }

}  // namespace takt::app
