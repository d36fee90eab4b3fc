#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/charts.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::Quantity;

std::string worst_parts(const ReportView& v, const std::vector<Part>& parts) {
  const ChainJudgement& chain = v.judgement.chains[v.worst.chain];
  std::string text = "<h3>Where the time of the worst frame went: " + escaped(chain.name) + ", sample " +
                     std::to_string(v.worst.instance->sample) + "</h3>\n<figure>" +
                     breakdown_svg(parts, chain.latency().bound) + "<p class=\"legend\">";
  for (const Part& part : parts) text += "<span>" + escaped(part.label) + " " + ms_text(part.time) + "</span> ";
  return text + "</p></figure>\n";
}

// How the latency bounds of a table add up.
std::string bound_terms(const ReportView& v, const sched::Schedule& table, const std::string& mode) {
  std::string text;
  for (const sched::ChainBound& bound : table.bounds) {
    if (bound.terms.empty() || bound.chain >= v.run.problem.chains.size()) continue;
    text += "<p class=\"small muted\"><b>" + escaped(v.run.problem.chains[bound.chain].name + mode) +
            "</b>, how the latency bound adds up: " + escaped(bound.terms) + "</p>";
  }
  return text;
}

}  // namespace

std::string chains_html(const ReportView& v) {
  HtmlTable table({{"chain, quantity", false},
                   {"bound", true},
                   {"limit", true},
                   {"completed", true},
                   {"published", true},
                   {"bound / held max", true},
                   {"held", true},
                   {"void", true},
                   {"violated", true},
                   {"against bound", false}});
  for (const ChainJudgement& chain : v.judgement.chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const QuantityJudgement& figures = chain.quantities[q];
      if (chain.from != chain.to && !judged(figures)) continue;
      const std::string tightness = figures.bound && figures.held_max.ns > 0
                                        ? fixed_text(figures.bound->ms() / figures.held_max.ms(), 3)
                                        : "\u2013";
      const std::string violated =
          figures.violated == 0 ? "<span class=\"muted\">0</span>" : tag(count_text(figures.violated), "bad");
      const std::string name = escaped(chain.name);
      table.row({(q == 0 ? name : "<span class=\"muted\">" + name + "</span>") + ", " +
                     escaped(sched::name_of(static_cast<Quantity>(q))),
                 or_dash(figures.bound), or_dash(figures.limit), measured(figures, figures.completed_max),
                 measured(figures, figures.published_max), tightness, count_text(figures.held),
                 count_cell(figures.void_count), violated, bound_bar_svg(figures)});
    }
  }
  std::string text = lead(
      "Largest measured figure of each quantity beside its bound. <em>Completed</em> ends when the last stage has "
      "computed, <em>published</em> when its output is out at the end of its slot; the bound speaks of the latter. "
      "Bar: strong to completed, faint to published, red mark: bound, plain mark: limit; brown: a void instance went "
      "beyond the bound, red: a violated one." +
      std::string(v.run.modes.empty() ? "" : " Changes of mode stand here where an instance lay across them."));
  text += table.html();
  if (v.worst.instance != nullptr) {
    const std::vector<Part> parts = breakdown(v.run, v.index, v.worst.of_problem, *v.worst.instance);
    if (!parts.empty()) text += worst_parts(v, parts);
  }
  if (v.run.modes.empty()) text += bound_terms(v, v.run.schedule, "");
  for (const sched::ModeTable& mode : v.run.modes) text += bound_terms(v, mode.schedule, " (" + mode.name + ")");
  return text;
}

std::string latency_html(const ReportView& v) {
  std::string text = lead(
      "Published latency of every sample that reached an output, over the run. Hollow: void, a monitored assumption "
      "was "
      "broken on its path. A tick on the axis: it should have reached an output, and did not.");
  text += "<div class=\"grid wide\">";
  SensorTime last{v.run.sensor_from_table.to_origin.ns};
  for (const ChainJudgement& chain : v.judgement.chains) {
    for (const Instance& i : chain.latency().instances) last = std::max(last, i.capture);
  }
  for (const ChainJudgement& chain : v.judgement.chains) {
    if (chain.from != chain.to && !judged(chain.latency())) continue;
    text += "<figure><figcaption><b>" + escaped(chain.name) + "</b></figcaption>" + timeline_svg(v.run, chain, last) +
            "</figure>\n";
  }
  return text + "</div>";
}

// Broken assumptions, each once, with what it made void.
std::string assumptions_html(const ReportView& v) {
  struct Entry {
    std::map<Assumption, std::string> broken;        // with details
    std::map<std::string, std::uint64_t> instances;  // "chain, quantity" -> count
  };
  std::map<std::tuple<bool, std::uint32_t, std::uint64_t>, Entry> entries;  // by subject
  HtmlTable violated({{"chain", false}, {"quantity", false}, {"sample", true}, {"measured", true}, {"bound", true}});
  for (const ChainJudgement& chain : v.judgement.chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const std::string quantity_name = sched::name_of(static_cast<Quantity>(q));
      for (const Instance& i : chain.quantities[q].instances) {
        if (i.state == InstanceState::kViolated) {
          violated.row({escaped(chain.name), escaped(quantity_name), std::to_string(i.sample),
                        i.reached ? ms_text(i.published) : "reached no output", or_dash(chain.quantities[q].bound)},
                       "bad");
        }
        if (i.state != InstanceState::kVoid) continue;
        std::set<Entry*> seen;
        for (const Broken& b : i.broken) {
          Entry& entry = entries[{b.by_sensor, b.subject, b.number}];
          entry.broken.emplace(b.assumption, b.detail);
          if (seen.insert(&entry).second) ++entry.instances[chain.name + ", " + quantity_name];
        }
      }
    }
  }
  std::string text = lead(
      "A chain instance is <em>void</em> when a monitored assumption of its bound was broken on its own path, and "
      "<em>violated</em> when it exceeded its bound although none was: an error of takt that fails the run.");
  if (!violated.empty()) text += "<h3>Violated</h3>" + violated.html();
  // Entries of one stage or sensor that broke in the same words for the same chains share a row.
  struct Row {
    std::string name, what;
    std::uint64_t subjects = 0, first = 0, last = 0;
    std::map<std::string, std::uint64_t> instances;
  };
  std::vector<Row> rows;
  const std::tuple<bool, std::uint32_t, std::uint64_t>* previous = nullptr;
  for (const auto& [subject, entry] : entries) {
    const auto& [by_sensor, index, number] = subject;
    std::string what;
    for (const auto& [assumption, detail] : entry.broken) {
      what += fmt::format("{}<b>{}</b>: {}", what.empty() ? "" : "<br>", name_of(assumption), escaped(detail));
    }
    const bool same_subject =
        previous != nullptr && std::get<0>(*previous) == by_sensor && std::get<1>(*previous) == index;
    const auto same_chains = [&instances = entry.instances](const Row& row) {
      return std::equal(row.instances.begin(), row.instances.end(), instances.begin(), instances.end(),
                        [](const auto& a, const auto& b) { return a.first == b.first; });
    };
    previous = &subject;
    if (!same_subject || rows.back().what != what || !same_chains(rows.back())) {
      const std::string name =
          by_sensor ? v.run.problem.sensors[index].name + " sample" : v.run.problem.stages[index].name + " job";
      rows.push_back({name, what, 0, number, number, {}});
    }
    Row& row = rows.back();
    ++row.subjects;
    row.last = number;
    for (const auto& [name, count] : entry.instances) row.instances[name] += count;
  }
  HtmlTable table({{"subject", false}, {"broken assumption", false}, {"instances made void", false}});
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const Row& row = rows[i];
    std::string affected;
    for (const auto& [name, count] : row.instances) {
      affected +=
          (affected.empty() ? "" : "<br>") + escaped(name) + (count > 1 ? " \u00d7 " + std::to_string(count) : "");
    }
    std::string numbers =
        row.subjects == 1 ? fmt::format(" {}", row.first) : fmt::format("s {} to {}", row.first, row.last);
    if (row.last - row.first + 1 > row.subjects) numbers += fmt::format(", {} of them", count_text(row.subjects));
    table.row({escaped(row.name) + numbers, row.what, affected});
  }
  text += rows.empty() ? "<p>No assumption was broken on any path.</p>" : table.html() + more_rows(rows.size());
  return text;
}

}  // namespace takt::pipeline
