// Checks of numbers on the command line. CLI11's own let through nan where a range is asked for, and -1 as a count of
// 2^64 - 1.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace takt::app {

// A finite decimal number in [least, most].
CLI::Validator number_in(double least, double most);
// Digits alone, in [least, most].
CLI::Validator count_in(std::uint64_t least, std::uint64_t most);

}  // namespace takt::app
