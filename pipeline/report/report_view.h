// One run as its page looks at it, and the words that all sections of the page share. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/run_data.h"
#include "pipeline/report/statistics.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

struct ReportView {
  // Refers to all of them.
  ReportView(const RunData& of, const Judgement& judged, const std::vector<StageStatistics>& statistics)
      : run(of),
        judgement(judged),
        stages(statistics),
        index(of),
        worst(worst_frame(judged)),
        lockstep(of.mode == "lockstep") {}

  const RunData& run;
  const Judgement& judgement;
  const std::vector<StageStatistics>& stages;
  RecordIndex index;
  WorstFrame worst;
  bool lockstep;

  // Modes may have hyperperiods of other lengths.
  [[nodiscard]] bool one_hyperperiod() const;
};

constexpr std::size_t kMostRows = 200;  // of a table; the rest is in report.json

// Pieces of HTML. `kind`: "ok", "bad", "open", or "" for none of these.
std::string tag(std::string_view text, std::string_view kind);
std::string tag(Outcome outcome);
std::string lead(const std::string& html);  // what a section shows
std::string more_rows(std::size_t all);     // of a table that ends after kMostRows
std::string count_cell(std::uint64_t n);    // "0" quiet, anything else loud
std::string or_dash(const std::optional<Duration>& d);

// Was any instance of it judged?
bool judged(const QuantityJudgement& figures);
std::string measured(const QuantityJudgement& figures, Duration d);  // a dash where none was
// Of the changes of mode that a run came to, most chains had no sample under way.
bool says_nothing(const ChainJudgement& chain);

}  // namespace takt::pipeline
