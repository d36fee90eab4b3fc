#include "pipeline/report/report_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/html.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {

bool ReportView::one_hyperperiod() const {
  return std::all_of(run.modes.begin(), run.modes.end(), [this](const sched::ModeTable& mode) {
    return mode.schedule.clock.hyperperiod == run.schedule.clock.hyperperiod;
  });
}

std::string tag(std::string_view text, std::string_view kind) {
  return fmt::format("<span class=\"tag {}\">{}</span>", kind, escaped(text));
}
std::string tag(Outcome outcome) {
  const char* kind = outcome == Outcome::kPass ? "ok" : outcome == Outcome::kFail ? "bad" : "open";
  return tag(name_of(outcome), kind);
}

std::string lead(const std::string& html) { return "<p class=\"lead small\">" + html + "</p>\n"; }

std::string more_rows(std::size_t all) {
  if (all <= kMostRows) return "";
  return "<p class=\"small muted\">\u2026 and " + count_text(all - kMostRows) + " more, all in report.json.</p>";
}

std::string count_cell(std::uint64_t n) {
  return n == 0 ? "<span class=\"muted\">0</span>" : "<b>" + count_text(n) + "</b>";
}

std::string or_dash(const std::optional<Duration>& d) { return d ? ms_text(*d) : "\u2013"; }

bool judged(const QuantityJudgement& figures) { return figures.held + figures.void_count + figures.violated > 0; }

std::string measured(const QuantityJudgement& figures, Duration d) { return figures.worst ? ms_text(d) : "\u2013"; }

bool says_nothing(const ChainJudgement& chain) {
  return chain.from != chain.to && std::none_of(std::begin(chain.quantities), std::end(chain.quantities), judged);
}

}  // namespace takt::pipeline
