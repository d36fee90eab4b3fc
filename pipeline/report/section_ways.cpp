#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include "pipeline/report/baselines.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

std::string misses_text(const BaselineChain& figures) {
  if (figures.misses == 0) return "<span class=\"small muted\">0 misses</span>";
  return tag(plural(figures.misses, "miss", "misses") + fmt::format(" of {}", figures.planned), "bad");
}

std::string worst_text(const BaselineChain& figures) {
  return figures.outputs == 0 ? "\u2013" : ms_text(figures.worst_latency);
}

std::string way_cell(const BaselineChain& figures) {
  return fmt::format("<b>{}</b><br><span class=\"small muted\">jitter {}, </span>{}", worst_text(figures),
                     ms_text(figures.jitter), misses_text(figures));
}

std::string way_cell(const BaselineChain& real, const BaselineChain& simulated) {
  return way_cell(real) + fmt::format("<div class=\"small muted\">simulated {}, jitter {}<br>{}</div>",
                                      worst_text(simulated), ms_text(simulated.jitter), misses_text(simulated));
}

}  // namespace

// The same stages under other ways of scheduling: simulated, and for real where that was asked for.
std::string ways_html(const ReportView& v) {
  if (!in_one_piece(v.run.schedule)) return "";  // they know whole jobs
  std::vector<HtmlTable::Column> columns{{"chain", false}, {"load", true}};
  for (const Way way : kWays) columns.push_back({name_of(way), true});
  HtmlTable table(columns);
  const std::vector<Baseline> simulated = baselines(v.run);
  const bool measured = v.run.measured.size() == simulated.size();
  const std::size_t ways = std::size(kWays);
  for (std::size_t c = 0; c < v.run.problem.chains.size(); ++c) {
    for (std::size_t l = 0; l < std::size(kLoads); ++l) {
      std::vector<std::string> cells{escaped(v.run.problem.chains[c].name), fmt::format("{:g}x", kLoads[l])};
      for (std::size_t w = l * ways; w < (l + 1) * ways; ++w) {
        const BaselineChain& by_model = simulated[w].chains[c];
        cells.push_back(measured ? way_cell(v.run.measured[w].chains[c], by_model) : way_cell(by_model));
      }
      table.row(cells);
    }
  }
  const std::string what =
      "worst latency, jitter (largest minus smallest distance of two outputs) and misses (planned outputs with a new "
      "sample that did not come, and samples above the limit). Event-driven: released by samples, run to completion, "
      "published at once. Epochs: all jobs of the fastest stage's period begin together and a barrier ends them.";
  const std::string simulation =
      "The stages of this run <em>simulated</em> with the times that it recorded, multiplied by the load: ";
  const std::string reality =
      "The same stages on the same drive and cores, run <em>for real</em> one way after another, each job with "
      "its CPU time multiplied by the load: ";
  const std::string of_modes = v.run.modes.empty() ? ""
                                                   : " Of mode <b>" + escaped(v.run.modes.front().name) +
                                                         "</b> alone: changes of mode are the table's own.";
  return lead((measured ? reality : simulation) + what + of_modes +
              (measured ? " In grey: the same simulated with the times that this run recorded."
                        : " <code>takt replay --baselines</code> runs them for real.")) +
         table.html();
}

}  // namespace takt::pipeline
