#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "pipeline/report/charts.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

std::string provenance_text(const sched::Budget& budget) {
  switch (budget.provenance) {
    case sched::Provenance::kDeclared: return "declared in the pipeline file";
    case sched::Provenance::kExploratory:
      return fmt::format("exploratory: {}, high water {} \u00d7 {:.2f}", plural(budget.samples, "sample", "samples"),
                         ms_text(budget.high_water), budget.margin);
    case sched::Provenance::kProfiled:
      return fmt::format("profiled: {}, high water {} \u00d7 {:.2f}", plural(budget.samples, "sample", "samples"),
                         ms_text(budget.high_water), budget.margin);
  }
  return "";
}

// In a hyperperiod of each mode that admits the budget.
std::string jobs_of(const ReportView& v, const BudgetUse& use) {
  if (use.admitted.empty()) return "degraded to";
  std::string text;
  for (const BudgetUse::Admitted& in : use.admitted) {
    if (v.run.modes.empty()) return std::to_string(in.jobs);
    text += (text.empty() ? "" : "<br>") + fmt::format("{}: {}", escaped(v.run.modes[in.mode].name), in.jobs);
  }
  return text;
}

const Distribution& shown_times(const ReportView& v, const BudgetUse& use) { return v.lockstep ? use.cpu : use.run; }

// Of the stages that ran on a device beside the cores; nothing where none did.
std::string device_times(const ReportView& v) {
  HtmlTable table({{"stage", false},
                   {"jobs", true},
                   {"handed over p50", true},
                   {"handed over max", true},
                   {"on the device p50", true},
                   {"on the device max", true}});
  bool any = false;
  for (std::size_t s = 0; s < v.stages.size(); ++s) {
    const StageStatistics& f = v.stages[s];
    if (f.launch.empty()) continue;
    any = true;
    table.row({escaped(v.run.problem.stages[s].name), count_text(f.device.sorted.size()),
               ms_text(f.launch.quantile(0.5)), ms_text(f.launch.max()), ms_text(f.device.quantile(0.5)),
               ms_text(f.device.max())});
  }
  if (!any) return "";
  return "<h3>Jobs on the device</h3>" +
         lead(
             "How long a worker handed a job over, by the host's clock, and how long the device took from its first "
             "piece of work to its last, by its own.") +
         table.html();
}

// What the jobs of each stage used.
std::string accounts(const ReportView& v) {
  HtmlTable table({{"stage", false},
                   {"CPU time p50", true},
                   {"CPU time max", true},
                   {"page faults", true},
                   {"major", true},
                   {"waited", true},
                   {"preempted", true}});
  for (std::size_t s = 0; s < v.stages.size(); ++s) {
    const StageStatistics& f = v.stages[s];
    table.row({escaped(v.run.problem.stages[s].name), ms_text(f.cpu.quantile(0.5)), ms_text(f.cpu.max()),
               count_text(f.page_faults), count_cell(f.major_faults_after_warmup), count_text(f.voluntary_switches),
               count_cell(f.involuntary_switches)});
  }
  return "<h3>What the jobs used</h3>" +
         lead(
             "CPU time of all workers of a job; over all jobs their page faults (major: after warm-up), how often they "
             "waited, and how often another thread was given their core.") +
         table.html() + device_times(v);
}

// Consecutive jobs of a stage that were not ok in the same way, for the same cause.
struct MissRow {
  const Miss* first = nullptr;
  const Miss* last = nullptr;
};

std::vector<MissRow> folded(const std::vector<Miss>& misses) {
  std::vector<MissRow> out;
  std::map<std::uint32_t, std::size_t> open;  // by stage: its newest row
  for (const Miss& miss : misses) {
    const auto [at, fresh] = open.try_emplace(miss.record->stage, out.size());
    if (!fresh) {
      MissRow& row = out[at->second];
      if (row.last->record->job + 1 == miss.record->job && row.last->cause == miss.cause &&
          row.last->record->job_class == miss.record->job_class &&
          (row.last->record->published != 0) == (miss.record->published != 0)) {
        row.last = &miss;
        continue;
      }
      at->second = out.size();
    }
    out.push_back({&miss, &miss});
  }
  return out;
}

std::string misses_table(const ReportView& v) {
  HtmlTable table(
      {{"job", false}, {"at", true}, {"class", false}, {"cause", false}, {"effect", false}, {"output", false}});
  const auto at = [](const Miss& miss) {
    return fixed_text(static_cast<double>(miss.record->nominal_start) * 1e-9, 4);
  };
  const std::vector<MissRow> rows = folded(v.judgement.misses);
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const auto& [first, last] = rows[i];
    const sched::JobRecord& record = *first->record;
    std::string name = escaped(v.run.problem.stages[record.stage].name) + "#" + std::to_string(record.job);
    std::string when = at(*first), effect = escaped(first->effect);
    if (first != last) {
      const std::uint64_t others = last->record->job - record.job;
      name += fmt::format(" to #{}", last->record->job);
      when += " to " + at(*last);
      if (!effect.empty()) effect += fmt::format("; {} more likewise", others);
    }
    table.row({name, when + " s", escaped(sched::name_of(record.job_class)), escaped(first->cause), effect,
               record.published != 0 ? "published" : "none"});
  }
  return table.html() + more_rows(rows.size());
}

}  // namespace

std::string budgets_html(const ReportView& v) {
  HtmlTable table({{"stage", false},
                   {"variant", false},
                   {"jobs per hyperperiod", true},
                   {"budget", true},
                   {"from", false},
                   {"p50", true},
                   {"p99", true},
                   {"max", true},
                   {"budget / max", true},
                   {"unused", true}});
  std::string histograms;
  for (const BudgetUse& use : budget_uses(v.run)) {
    const sched::Stage& stage = v.run.problem.stages[use.stage];
    const std::string variant = stage.variants.size() > 1 ? ", " + stage.variants[use.variant].name : "";
    const Distribution& times = shown_times(v, use);
    std::string tightness = "\u2013", unused = "\u2013";
    if (!v.lockstep && !times.empty() && times.max().ns > 0 && use.budget.time.ns > 0) {
      tightness = fixed_text(use.budget.time.ms() / times.max().ms(), 2);
      const double used = times.quantile(0.5).ms() / use.budget.time.ms();
      unused = percent_text(std::max(0.0, 1 - used)) + (used < 0.5 ? " " + tag("loose", "open") : "");
      if (times.max() > use.budget.time) tightness += " " + tag("exceeded", "bad");
    }
    const auto figure = [&](Duration d) { return times.empty() ? "\u2013" : ms_text(d); };
    const std::string type = use.stage < v.run.stages.size() ? v.run.stages[use.stage].type : "";
    table.row({escaped(stage.name) + "<br><span class=\"muted small\">" + escaped(type) + "</span>",
               escaped(stage.variants[use.variant].name) + "<br><span class=\"muted small\">" +
                   plural(static_cast<std::uint64_t>(use.budget.cores), "core", "cores") + "</span>",
               jobs_of(v, use), ms_text(use.budget.time), escaped(provenance_text(use.budget)),
               figure(times.quantile(0.5)), figure(times.quantile(0.99)), figure(times.max()), tightness, unused});
    if (times.empty()) continue;
    histograms += "<figure><figcaption><b>" + escaped(stage.name) + "</b>" + escaped(variant) + ", " +
                  plural(times.sorted.size(), "job", "jobs") + "</figcaption>" +
                  histogram_svg(times, use.budget.time, use.stage, stage.name + variant + " times") + "</figure>\n";
  }
  std::string text = lead(
      v.lockstep
          ? "Lockstep gives no wall times: shown is the CPU time of all workers of a job, which is not judged."
          : "Wall time of a job from its actual start to its completion (in segments: the sum of their times), beside "
            "its budget. Tightness on a drive is printed, not judged; a budget of which the median job leaves more "
            "than "
            "half unused is flagged as loose, one that a job exceeded as exceeded. The bins of the histograms are "
            "logarithmic.");
  text += table.html() + "<div class=\"grid\">" + histograms + "</div>";
  return text;
}

std::string jobs_html(const ReportView& v) {
  std::vector<HtmlTable::Column> columns{{"stage", false}, {"jobs", true}};
  // Best first for reading: ok, then the others in their order of precedence.
  const std::size_t ok = static_cast<std::size_t>(sched::JobClass::kOk);
  columns.push_back({sched::name_of(sched::JobClass::kOk), true});
  for (std::size_t c = 0; c < ok; ++c) columns.push_back({sched::name_of(static_cast<sched::JobClass>(c)), true});
  for (const char* name : {"fill", "repeated input", "held input", "input missing", "repaired frame"}) {
    columns.push_back({name, true});
  }
  HtmlTable table(columns);
  for (std::size_t s = 0; s < v.stages.size(); ++s) {
    const StageStatistics& f = v.stages[s];
    std::vector<std::string> cells{escaped(v.run.problem.stages[s].name), count_text(f.jobs),
                                   count_text(f.classes[ok])};
    for (std::size_t c = 0; c < ok; ++c) cells.push_back(count_cell(f.classes[c]));
    for (const std::uint64_t n : {f.fill, f.repeats, f.held_inputs, f.missing_inputs, f.repaired}) {
      cells.push_back(count_text(n));
    }
    table.row(cells);
  }
  std::string text = lead(
      "One class per job, in this precedence: skipped, missing, late start, overrun, late, ok. Jobs "
      "before the pipeline was full are counted apart as fill.");
  text += table.html() + accounts(v);
  if (v.judgement.misses.empty()) {
    text += "<p>Every job was ok.</p>";
  } else {
    text += "<h3>Every miss and its cause</h3>" + misses_table(v);
  }
  return text;
}

}  // namespace takt::pipeline
