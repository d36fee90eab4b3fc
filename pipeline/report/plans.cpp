#include "pipeline/report/plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/html.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

constexpr std::size_t kMostSteps = 200;  // of a table; the rest is in report.json

std::string us_text(Duration d) { return fmt::format("{:.1f}", static_cast<double>(d.ns) * 1e-3); }
double kilobytes(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-3; }

// x: steps, y: bytes of the arena from the bottom. A rectangle is a tensor, from the step that writes it to the last
// one that reads it; the line is the most that any order of the same steps and tensors needs at once.
std::string arena_map(const PlanInfo& plan, std::string_view stage) {
  constexpr double kWidth = 1000, kHeight = 260, kLeft = 70, kTop = 8, kBottom = 30;
  const auto steps = static_cast<double>(std::max<std::size_t>(plan.steps.size(), 1));
  const auto most = static_cast<double>(std::max<std::uint64_t>({plan.arena_bytes, plan.lower_bound, 1}));
  const double plot_width = kWidth - kLeft - 10, plot_height = kHeight - kTop - kBottom;
  const auto x = [&](double step) { return kLeft + plot_width * step / steps; };
  const auto y = [&](double bytes) { return kTop + plot_height * (1 - bytes / most); };
  Svg svg(kWidth, kHeight,
          fmt::format("Arena of {}: {} tensors over {} steps, {} of {} needed at once", stage, plan.arena.size(),
                      plan.steps.size(), bytes_text(plan.lower_bound), bytes_text(plan.arena_bytes)),
          "chart");
  svg.rect(kLeft, kTop, plot_width, plot_height, "track");
  for (std::size_t i = 0; i < plan.arena.size(); ++i) {
    const PlanTensor& t = plan.arena[i];
    const auto low = static_cast<double>(t.offset), bytes = static_cast<double>(t.bytes);
    svg.rect(x(t.first_step), y(low + bytes), x(t.last_step + 1.0) - x(t.first_step), y(low) - y(low + bytes),
             fmt::format("slot s{}", i % 8),
             fmt::format("{}: {} at {}, steps {} to {}", t.name, bytes_text(t.bytes), bytes_text(t.offset),
                         t.first_step, t.last_step));
  }
  std::string live;  // a staircase
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const double level = y(static_cast<double>(plan.steps[s].live_bytes));
    live += fmt::format("{}{} {}L{} {}", s == 0 ? "M" : "L", coordinate(x(static_cast<double>(s))), coordinate(level),
                        coordinate(x(static_cast<double>(s + 1))), coordinate(level));
  }
  svg.path(live, "live");
  svg.line(kLeft, y(static_cast<double>(plan.lower_bound)), kLeft + plot_width,
           y(static_cast<double>(plan.lower_bound)), "bound");
  svg.text(kLeft - 6, kTop + 9, bytes_text(static_cast<std::uint64_t>(most)), "axis", Svg::Anchor::kEnd);
  svg.text(kLeft - 6, kTop + plot_height, "0", "axis", Svg::Anchor::kEnd);
  svg.text(kLeft, kHeight - 10, "step 0", "axis");
  svg.text(kLeft + plot_width, kHeight - 10, fmt::format("step {}", plan.steps.size()), "axis", Svg::Anchor::kEnd);
  return "<div class=\"wide-drawing\">" + svg.str() + "</div>\n";
}

std::string steps_table(const PlanInfo& plan, const PlanTotals& sum) {
  HtmlTable table({{"step", true},
                   {"kernel", false},
                   {"nodes of the model", false},
                   {"MFLOP", true},
                   {"kB moved", true},
                   {"live kB", true},
                   {"min \u00b5s", true},
                   {"max \u00b5s", true},
                   {"share", true},
                   {"GFLOP/s", true}});
  for (std::size_t s = 0; s < std::min(plan.steps.size(), kMostSteps); ++s) {
    const PlanStep& step = plan.steps[s];
    const bool timed = step.runs > 0 && step.minimum.ns > 0;
    const auto minimum = static_cast<double>(step.minimum.ns);
    table.row({std::to_string(s), escaped(step.kernel),
               step.nodes.empty() ? "<span class=\"muted\">added by the compiler</span>" : escaped(step.nodes),
               fixed_text(static_cast<double>(step.flops) * 1e-6, 2), fixed_text(kilobytes(step.bytes_moved), 1),
               fixed_text(kilobytes(step.live_bytes), 1), timed ? us_text(step.minimum) : "\u2013",
               timed ? us_text(step.maximum) : "\u2013",
               timed && sum.minimum.ns > 0 ? percent_text(minimum / static_cast<double>(sum.minimum.ns)) : "\u2013",
               timed && step.flops > 0 ? fixed_text(static_cast<double>(step.flops) / minimum, 1) : "\u2013"});
  }
  std::string out = table.html();
  if (plan.steps.size() > kMostSteps) {
    out +=
        fmt::format("<p class=\"small muted\">{} more steps are in report.json.</p>\n", plan.steps.size() - kMostSteps);
  }
  return "<details><summary>" + plural(plan.steps.size(), "step", "steps") + "</summary>\n" + out + "</details>\n";
}

// What the graph counts, against what there is room for.
std::string counters_table(const PlanInfo& plan) {
  if (plan.counters.empty() || plan.counted_jobs == 0) return {};
  HtmlTable table({{"counted in each job", false},
                   {"room for", true},
                   {"mean", true},
                   {"most", true},
                   {"full", true},
                   {"latest jobs", false}});
  for (const PlanCounter& c : plan.counters) {
    const double mean = static_cast<double>(c.total) / static_cast<double>(plan.counted_jobs);
    std::string latest;
    constexpr std::size_t kShown = 8;
    for (std::size_t i = c.latest.size() - std::min(c.latest.size(), kShown); i < c.latest.size(); ++i) {
      latest += (latest.empty() ? "" : " ") + std::to_string(c.latest[i]);
    }
    table.row(
        {escaped(c.name), c.capacity > 0 ? std::to_string(c.capacity) : "\u2013", fixed_text(mean, 1),
         std::to_string(c.maximum),
         c.capacity > 0 ? percent_text(static_cast<double>(c.maximum) / static_cast<double>(c.capacity)) : "\u2013",
         latest});
  }
  return "<p class=\"small\">Counts of " + plural(plan.counted_jobs, "job", "jobs") +
         "; rows without room are what was left out or repaired. Every job is in report.json.</p>\n" + table.html();
}

std::string plan_html(const RunData& run, const PlanInfo& plan) {
  const std::string& stage = run.problem.stages[plan.stage].name;
  const std::string variant = plan.stage < run.stages.size() ? run.stages[plan.stage].variant : "";
  const PlanTotals sum = totals(plan);
  std::string out = "<h3>" + escaped(stage) + ", variant " + escaped(variant) + ": " + escaped(plan.model) +
                    (plan.licence.empty() ? "" : " (" + escaped(plan.licence) + ")") + ", " + escaped(plan.target) +
                    "</h3>\n<ul class=\"figures\">";
  const auto figure = [&](const std::string& value, const std::string& name) {
    out += "<li><b>" + value + "</b><span>" + name + "</span></li>";
  };
  figure(fmt::format("{} \u2192 {}", plan.operators_before, plan.operators_after), "operators before and after passes");
  figure(std::to_string(plan.steps.size()), "steps");
  figure(fixed_text(static_cast<double>(sum.flops) * 1e-6, 1) + " MFLOP", "per run");
  figure(bytes_text(sum.bytes_moved), "moved per run, operands once");
  figure(bytes_text(plan.weight_bytes), "weights of " + bytes_text(plan.file_bytes) + " plan");
  const double above =
      plan.lower_bound == 0 ? 0 : static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound) - 1;
  figure(bytes_text(plan.arena_bytes),
         fmt::format("arena, {:.2f} % above its lower bound ({})", 100 * above, escaped(plan.proof)));
  if (sum.runs > 0) figure(ms_text(sum.minimum), fmt::format("sum of the steps' minima, {} runs", sum.runs));
  if (sum.maps.ns > 0) {
    figure(percent_text(static_cast<double>(sum.maps.ns) / static_cast<double>(sum.minimum.ns)),
           "of it builds the maps of sparse convolutions");
  }
  out += "</ul>\n";
  out += fmt::format(
      "<p class=\"small muted\">{} without a step (views), {} written in place of a concat, {} over an input that "
      "dies; "
      "{} only change a layout, {} only move elements. Plan <code class=\"hash\">{}</code>.</p>\n",
      plural(plan.views, "tensor", "tensors"), plural(plan.placements, "part", "parts"),
      plural(plan.in_place, "step", "steps"), plural(plan.reorders, "step", "steps"),
      plural(plan.copies, "step", "steps"), plan.plan.hex());
  return out + arena_map(plan, stage) + counters_table(plan) + steps_table(plan, sum);
}

// The kernels that only say which rows meet (kernels/voxels.h): a share that is worth watching.
bool builds_map(const PlanStep& step) {
  return step.kernel == "sparse_cells" || step.kernel == "sparse_map" || step.kernel == "inverse_map";
}

}  // namespace

PlanTotals totals(const PlanInfo& plan) {
  PlanTotals out;
  for (const PlanStep& step : plan.steps) {
    out.runs = &step == plan.steps.data() ? step.runs : std::min(out.runs, step.runs);
    out.flops += step.flops;
    out.bytes_moved += step.bytes_moved;
    out.minimum = out.minimum + step.minimum;
    if (builds_map(step)) out.maps = out.maps + step.minimum;
    out.maximum = out.maximum + step.maximum;
  }
  return out;
}

std::string plans_html(const RunData& run) {
  std::string text =
      "<p class=\"lead small\">Networks as they ran. Map: every rectangle is a tensor of the arena, left to right the "
      "steps in which it lives, up and down where it lies; strong line: bytes alive, dashed: the lower bound, the most "
      "that is alive in one step. Times are those of the slowest part of a step in this run.</p>\n";
  if (run.plans.empty()) return text + "<p>No stage of this run is a compiled graph.</p>";
  for (const PlanInfo& plan : run.plans) text += plan_html(run, plan);
  return text;
}

}  // namespace takt::pipeline
