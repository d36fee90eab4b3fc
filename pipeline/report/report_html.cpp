#include "pipeline/report/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "pipeline/report/html.h"
#include "pipeline/report/plans.h"
#include "pipeline/report/report_sections.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/style.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

std::string hyperperiod_text(const ReportView& v) {
  return fmt::format("{:g} ms", v.run.schedule.clock.hyperperiod.ms());
}

std::string requirements_html(const ReportView& v) {
  HtmlTable table({{"requirement", false}, {"outcome", false}, {"figures", false}});
  for (const Requirement& r : v.judgement.requirements) {
    table.row({escaped(r.group) + ": " + escaped(r.name), tag(r.outcome), escaped(r.detail)});
  }
  return lead("Each is a test case of junit.xml.") + table.html();
}

std::string glossary_html(const ReportView& v) {
  std::string text = lead(
      "Three clocks: <em>sensor time</em> (stamps of the log), <em>table time</em> (0 = start of the schedule; all "
      "times "
      "of this report), <em>host time</em> (CLOCK_MONOTONIC, behind all measured times). They meet only through "
      "recorded "
      "maps.");
  text += "<dl>";
  const auto entry = [&](const std::string& name, const std::string& meaning) {
    text += "<dt>" + name + "</dt><dd>" + meaning + "</dd>\n";
  };
  entry("latency", "from a sample's stamp reference to the first output that uses it (sensor time to publication)");
  entry("reaction", "latency plus the worst wait for the next sample: how late an event can show up");
  entry("age at output", "age of a sensor's data when an output appears");
  entry("age until replaced", "the same when the next output replaces it");
  entry("completed / published",
        "when the last stage has computed / when its output is out (measured on the host clock)");
  entry("bound", "worst case that the schedule guarantees under monitored assumptions, computed before the run");
  entry("limit", "what the pipeline file allows; slack = limit - bound");
  entry("held / void / violated", "within the bound / an assumption was broken on its path / exceeded without one");
  entry("fill", "before the pipeline was full, and after the log's last sample");
  entry("slot", "wake-up window w + budget + publish window p on a core");
  entry("budget", "wall time a job may take from its actual start (host clock)");
  entry("hyperperiod", "length of the table" + (v.one_hyperperiod() ? ", " + hyperperiod_text(v) : " of a mode"));
  entry("late start / overrun / late",
        "began later than w / took longer than the budget / published after the slot's end");
  entry("missing / skipped", "a required input was absent at the latch / the job was not started");
  entry("housekeeping reserve", "share of a core kept free for feeder and recorder");
  return text + "</dl>";
}

std::string file_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

struct Section {
  const char* id;
  const char* title;
  std::string html;  // "": the run has none
};

std::string head(const ReportView& v, const std::vector<Section>& sections) {
  std::string out = "<header><h1>" + escaped(v.run.pipeline_name) + "</h1>\n<p class=\"sub\">takt report of a ";
  out += "<b>" + escaped(v.run.rig.drive.empty() ? "drive of unknown origin" : v.run.rig.drive + " drive") + "</b>";
  if (!v.run.log_path.empty()) out += ", " + escaped(file_name(v.run.log_path));
  out += fmt::format(
      ", {}{}, {}", plural(v.run.dispatch.hyperperiods_run, "hyperperiod", "hyperperiods"),
      v.one_hyperperiod() ? " of " + hyperperiod_text(v) : "",
      v.lockstep ? "lockstep (virtual time)" : fmt::format("{} at rate {:g}", escaped(v.run.mode), v.run.rate));
  out += ", " + escaped(v.run.transport) + "</p>\n<nav><a href=\"#verdict\">Verdict</a> ";
  for (const Section& section : sections) {
    if (section.html.empty()) continue;
    out += fmt::format("<a href=\"#{}\">{}</a> ", section.id, escaped(section.title));
  }
  return out + "</nav></header>\n";
}

// What kind of code the results came from.
std::string foot(const ReportView& v) {
  std::string compiled, plain;
  for (std::uint32_t s = 0; s < v.run.stages.size(); ++s) {
    const bool is_plan =
        std::any_of(v.run.plans.begin(), v.run.plans.end(), [s](const PlanInfo& plan) { return plan.stage == s; });
    std::string& list = is_plan ? compiled : plain;
    list +=
        (list.empty() ? "" : ", ") + escaped(v.run.problem.stages[s].name) + " (" + escaped(v.run.stages[s].type) + ")";
  }
  std::string text;
  if (!compiled.empty()) text += "Graphs that takt compiled: " + compiled + ". ";
  if (!plain.empty()) text += "Plain code: " + plain + ". ";
  return "<footer><p>" + text +
         "The same facts for machines: report.json and junit.xml beside this file.</p></footer>\n";
}

}  // namespace

std::string report_html(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages,
                        const std::string& pictures) {
  const ReportView v(run, judgement, stages);
  const std::vector<Section> sections{
      {"faults", "Injected faults", run.faults ? faults_html(v) : ""},
      {"modes", "Modes", run.modes.empty() ? "" : modes_html(v)},
      {"chains", "Chains", chains_html(v)},
      {"gantt", "Planned against actual", gantt_html(v)},
      {"latency", "Latency over the drive", latency_html(v)},
      {"ways", "Beside other ways to schedule", ways_html(v)},
      {"budgets", "Budgets and measured times", budgets_html(v)},
      {"jobs", "Job classes", jobs_html(v)},
      {"assumptions", "Broken assumptions", assumptions_html(v)},
      {"pictures", "Pictures", pictures},
      {"plans", "Compiled graphs", plans_html(run)},
      {"score", "Tracks against truth", score_html(v)},
      {"inputs", "Input health", inputs_html(v)},
      {"memory", "Shared memory", memory_html(v)},
      {"digests", "Digests", digests_html(v)},
      {"environment", "Environment", environment_html(v)},
      {"requirements", "Requirements", requirements_html(v)},
      {"glossary", "Glossary", glossary_html(v)},
  };
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n";
  out += "<title>takt: " + escaped(run.pipeline_name) + ", " + name_of(judgement.outcome) + "</title>\n";
  out += "<style>" + std::string(report_style()) + "</style></head><body>\n";
  out += head(v, sections) + "<main>\n" + verdict_html(v);
  for (const Section& section : sections) {
    if (section.html.empty()) continue;
    out +=
        fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", section.id, escaped(section.title), section.html);
  }
  return out + "</main>\n" + foot(v) + "</body></html>\n";
}

}  // namespace takt::pipeline
