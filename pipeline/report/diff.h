// takt diff: what two runs have in common, and where they part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

struct InputDifference {
  std::string role;  // "log", "pipeline", "binary", "schedule", ...
  std::string a, b;  // paths with digests, or "absent"
};

// The first job, in table order, whose outputs differ.
struct FirstDifference {
  std::string stage, topic;
  std::uint64_t job = 0;
  std::int64_t nominal_start_ns = 0;  // table time in run A, or in B where A has no such job
  std::string what;                   // "output bytes", "published only in A", "inputs", ...
};

struct DiffResult {
  std::vector<InputDifference> inputs;  // empty: equal inputs
  bool outputs_equal = false;           // every stage topic: same jobs published, same bytes
  std::uint64_t compared = 0;           // outputs present in both runs
  std::uint64_t differing = 0;          // jobs whose output differs, or that only one run has
  std::optional<FirstDifference> first;
  [[nodiscard]] std::string text() const;  // for people, ends with a newline
  [[nodiscard]] std::string json() const;
};

// Stages are matched by name. The digests of the records are compared, so both runs must have been recorded whole.
DiffResult diff_runs(const RunData& a, const RunData& b);

}  // namespace takt::pipeline
