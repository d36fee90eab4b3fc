#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/score.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {

// What was done to the run on purpose, and whether it bore that as declared.
std::string faults_html(const ReportView& v) {
  const FaultReport& report = *v.run.faults;
  // A run that was reproduced with its faults is not judged again.
  const std::string judged = report.expectations.empty() ? tag("of the run that is repeated", "")
                             : report.met()              ? tag("as expected", "ok")
                                                         : tag("NOT as expected", "bad");
  std::string text =
      "<p>" + judged + " <b>" + escaped(report.name) + "</b>: " + escaped(report.what) + ".</p><ul class=\"small\">";
  for (std::size_t i = 0; i < report.injected.size(); ++i) {
    const std::uint64_t struck = i < report.struck.size() ? report.struck[i] : 0;
    text += "<li>" + escaped(report.injected[i]) + (struck > 1 ? fmt::format(": {} times", struck) : "") + "</li>";
  }
  HtmlTable table({{"what", false}, {"expected", false}, {"seen", false}, {"", false}});
  for (const FaultExpectation& e : report.expectations) {
    table.row(
        {escaped(e.what), escaped(e.expected), escaped(e.seen), tag(e.met ? "met" : "not met", e.met ? "ok" : "bad")});
  }
  return text + "</ul>" + (report.expectations.empty() ? "" : table.html());
}

std::string inputs_html(const ReportView& v) {
  HtmlTable table({{"sensor", false},
                   {"messages", true},
                   {"bad frames", true},
                   {"missing frames", true},
                   {"repeats", true},
                   {"swapped stamps", true},
                   {"invalid points", true},
                   {"points over capacity", true},
                   {"never used", true}});
  std::string examples;
  for (const SensorHealth& h : v.run.health) {
    table.row({escaped(h.sensor), h.messages > 0 ? count_text(h.messages) : tag("none", "bad"),
               count_cell(h.bad_frames), count_cell(h.gaps), count_cell(h.repeats), count_cell(h.order_faults),
               count_cell(h.invalid_points), count_cell(h.dropped_points), count_text(h.unused)});
    for (const std::string& example : h.examples) {
      examples += "<li>" + escaped(h.sensor) + ": " + escaped(example) + "</li>";
    }
  }
  std::string text = lead(
      "What the log delivered. A bad frame is left out or repaired by a stated rule and the run goes "
      "on; \u201cnever used\u201d samples arrived between two latches (a faster sensor than its stage).");
  text += table.html();
  for (const sensors::RigSensor& sensor : v.run.rig.sensors) {
    if (sensor.assumed.empty()) continue;
    std::string list;
    for (const std::string& value : sensor.assumed) list += (list.empty() ? "" : ", ") + value;
    text += "<p class=\"warning\">" + escaped(sensor.name) +
            ": assumed in the rig file, neither measured nor declared: " + escaped(list) + "</p>";
  }
  if (!examples.empty()) text += "<h3>Examples</h3><ul class=\"small\">" + examples + "</ul>";
  if (!v.run.log_problems.empty()) {
    HtmlTable problems({{"damage", false}, {"at byte", true}, {"detail", false}});
    for (std::size_t i = 0; i < std::min(v.run.log_problems.size(), kMostRows); ++i) {
      const sensors::LogProblem& p = v.run.log_problems[i];
      problems.row({escaped(p.kind), count_text(p.offset), escaped(p.detail)});
    }
    text += "<h3>Damage in the log</h3>" + problems.html() + more_rows(v.run.log_problems.size());
  }
  return text;
}

std::string score_html(const ReportView& v) {
  std::string text;
  if (v.run.truth.empty()) {
    text = "<p>The log holds no ground truth: detections and tracks cannot be scored.</p>";
  } else {
    const ScoreRule rule;
    const Score s = score_tracks(v.run.tracks, v.run.truth, rule);
    HtmlTable table({{"class", false},
                     {"truth", true},
                     {"tracks", true},
                     {"matched", true},
                     {"recall", true},
                     {"precision", true},
                     {"mean error", true},
                     {"identity switches", true}});
    const auto add = [&](const std::string& name, const ClassScore& c) {
      if (c.truth + c.tracks == 0) return;
      table.row({escaped(name), count_text(c.truth), count_text(c.tracks), count_text(c.matched),
                 "<b>" + fixed_text(c.recall(), 3) + "</b>", "<b>" + fixed_text(c.precision(), 3) + "</b>",
                 fixed_text(c.mean_position_error_m(), 2) + " m", count_text(c.id_switches)});
    };
    add("vehicles", s.total);
    add("vehicles, after fill", s.after_fill);
    for (const ClassScore& c : s.classes) {
      if (c.object_class == ObjectClass::kPedestrian) add("pedestrians", c);
      if (c.object_class == ObjectClass::kCyclist) add("cyclists", c);
    }
    text = lead(fmt::format(
               "Fused tracks matched one to one with truth within {:g} m on the ground; truth counts within {:g} m "
               "and with at least {} LiDAR points. {}.",
               rule.match_distance_m, rule.range_m, rule.min_lidar_points,
               plural(s.lists, "track list scored", "track lists scored"))) +
           table.html();
  }
  return text;
}

}  // namespace takt::pipeline
