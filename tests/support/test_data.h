// Recorded data for tests: the folder named by TAKT_TEST_DATA. Unset: the test is skipped with a reason. Set but
// missing: the test fails.
#pragma once

#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <string>

// Declares `const std::string variable`, the path of `relative` inside the recorded data, or skips the test.
#define TAKT_TEST_DATA_OR_SKIP(variable, relative)                                                    \
  const char* takt_data_root_ = std::getenv("TAKT_TEST_DATA");                                        \
  if (takt_data_root_ == nullptr || *takt_data_root_ == '\0')                                         \
    GTEST_SKIP() << "recorded data not given: set TAKT_TEST_DATA to its folder (needs " relative ")"; \
  const std::string variable = std::string(takt_data_root_) + "/" + (relative);                       \
  ASSERT_TRUE(std::filesystem::exists(variable)) << variable << " is missing from TAKT_TEST_DATA"
