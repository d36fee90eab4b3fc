#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/report/causes.h"
#include "pipeline/report/charts.h"
#include "pipeline/report/gantt.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

// The hyperperiods of the median and of the worst output, by latency against the bound.
struct Chosen {
  std::uint64_t typical = 0, worst = 0;
  bool found = false;
};

Chosen choose_hyperperiods(const ReportView& v) {
  std::map<std::uint64_t, double> load;  // hyperperiod -> largest share of the bound
  for (std::size_t c = 0; c < v.judgement.chains.size(); ++c) {
    const QuantityJudgement& latency = v.judgement.chains[c].latency();
    const std::vector<std::uint32_t>& path = v.run.problem.chains[v.judgement.chains[c].chain].stages;
    const std::uint32_t last = path.empty() ? 0 : path.back();
    for (const Instance& i : latency.instances) {
      if (!i.reached || i.state == InstanceState::kFill) continue;
      const sched::JobRecord* output = v.index.find(last, i.output);
      if (output == nullptr) continue;
      const double share =
          latency.bound && latency.bound->ns > 0 ? i.published.ms() / latency.bound->ms() : i.published.ms();
      load[output->hyperperiod] = std::max(load[output->hyperperiod], share);
    }
  }
  Chosen out;
  if (load.empty()) return out;
  std::vector<std::pair<double, std::uint64_t>> order;
  order.reserve(load.size());
  for (const auto& [hyperperiod, share] : load) order.emplace_back(share, hyperperiod);
  std::sort(order.begin(), order.end());
  out.typical = order[order.size() / 2].second;
  out.worst = order.back().second;
  out.found = true;
  if (v.worst.instance != nullptr) {
    const sched::JobRecord* output =
        v.index.find(v.run.problem.chains[v.worst.of_problem].stages.back(), v.worst.instance->output);
    if (output != nullptr) out.worst = output->hyperperiod;
  }
  return out;
}

std::string stage_legend(const ReportView& v) {
  std::string text = "<p class=\"legend\">";
  for (std::uint32_t s = 0; s < v.run.problem.stages.size(); ++s) {
    text += fmt::format("<span><i class=\"key\" style=\"background:var(--s{})\"></i>{}</span> ", s % 8,
                        escaped(v.run.problem.stages[s].name));
  }
  return text + "</p>";
}

std::string cores_table(const ReportView& v) {
  HtmlTable table({{"core", false},
                   {"CPU", true},
                   {"planned", true},
                   {"measured busy", true},
                   {"housekeeping reserve", true},
                   {"wake-up window", true},
                   {"publish window", true}});
  const std::vector<CoreShare> shares = core_shares(v.run);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const sched::Core& core = v.run.problem.board.cores[i];
    table.row({escaped(core.name), std::to_string(core.cpu), percent_text(shares[i].planned),
               v.lockstep ? "\u2013" : percent_text(shares[i].busy), percent_text(core.reserve),
               ms_text(core.wakeup_window), ms_text(core.publish_window)});
  }
  return table.html();
}

}  // namespace

std::string gantt_html(const ReportView& v) {
  const Chosen chosen = choose_hyperperiods(v);
  if (!chosen.found) {
    return "<p>No output appeared: there is nothing to draw.</p>";
  }
  std::string text = lead(
      "One hyperperiod of table time, on the cores and units that a table uses. Thin bars at the top: a sensor's "
      "sample from its stamp to its arrival. Per core, "
      "above: planned slots (wake-up window, budget, publish window); below: actual runs, dashed until the tick where "
      "the output is out. A two-core job stands in both lanes. Red outline: not ok; thin: it lost its core and goes on "
      "in the gaps." +
      std::string(v.lockstep ? " In lockstep a job takes exactly its budget." : ""));
  const auto drawing = [&](std::uint64_t hyperperiod, const std::string& what) {
    const std::string mode =
        v.run.modes.empty() ? "" : ", mode " + escaped(v.run.modes[v.index.planned(hyperperiod).stay->mode].name);
    return "<figure><figcaption><b>" + what + "</b>: hyperperiod " + std::to_string(hyperperiod) + mode +
           "</figcaption><div class=\"wide-drawing\">" + gantt_svg(v.run, v.index, hyperperiod) + "</div></figure>\n";
  };
  if (chosen.typical == chosen.worst) {
    text += drawing(chosen.typical, "Typical and worst");
  } else {
    text += drawing(chosen.typical, "Typical") + drawing(chosen.worst, "With the worst frame");
  }
  if (!v.judgement.misses.empty()) {
    const sched::JobRecord& first = *v.judgement.misses.front().record;
    if (first.hyperperiod != chosen.typical && first.hyperperiod != chosen.worst) {
      text += drawing(first.hyperperiod, fmt::format("Where the first job was not ok, {}#{}",
                                                     escaped(v.run.problem.stages[first.stage].name), first.job));
    }
  }
  text += stage_legend(v) + cores_table(v);
  return text;
}

// Which mode the run was in, and why it changed.
std::string modes_html(const ReportView& v) {
  std::int64_t end = 1;
  for (const sched::JobRecord& record : v.run.records) end = std::max(end, record.slot_end);
  constexpr double kWidth = 1120, kLeft = 92, kRow = 22;
  Svg svg(kWidth, static_cast<double>(v.run.modes.size()) * kRow + 24, "The mode of the run over time", "gantt");
  const auto x = [&](std::int64_t at) {
    return kLeft + static_cast<double>(at) / static_cast<double>(end) * (kWidth - kLeft - 10);
  };
  for (std::size_t m = 0; m < v.run.modes.size(); ++m) {
    svg.text(0, static_cast<double>(m) * kRow + 15, v.run.modes[m].name, "lane");
  }
  const std::vector<Stay>& stays = v.index.stays();
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const std::int64_t to = i + 1 < stays.size() ? stays[i + 1].begin.ns : end;
    const double y = static_cast<double>(stays[i].mode) * kRow + 3;
    const std::string title =
        fmt::format("{} from {} s for {}", v.run.modes[stays[i].mode].name,
                    fixed_text(static_cast<double>(stays[i].begin.ns) * 1e-9, 3), ms_text({to - stays[i].begin.ns}));
    svg.rect(x(stays[i].begin.ns), y, std::max(1.0, x(to) - x(stays[i].begin.ns)), kRow - 6,
             "run " + stage_class(stays[i].mode), title);
  }
  const double bottom = static_cast<double>(v.run.modes.size()) * kRow + 14;
  svg.text(kLeft, bottom, "0 s", "axis");
  svg.text(kWidth - 10, bottom, fixed_text(static_cast<double>(end) * 1e-9, 2) + " s", "axis", Svg::Anchor::kEnd);
  std::string text = lead(
      "Each mode is an admitted table. A change comes at the end of a hyperperiod, when the dwell of the mode is "
      "over; instances that lie across it are judged by the bound of the change.");
  text += "<figure>" + svg.str() + "</figure>\n";
  HtmlTable table({{"at", false}, {"hyperperiod", false}, {"from", false}, {"to", false}, {"why", false}});
  for (const sched::ModeChange& change : v.run.dispatch.changes) {
    table.row({fixed_text(static_cast<double>(change.begin.ns) * 1e-9, 3) + " s", std::to_string(change.hyperperiod),
               escaped(v.run.modes[change.from].name), escaped(v.run.modes[change.to].name),
               escaped(in_words(v.run, change))});
  }
  text += table.empty() ? "<p>The run stayed in '" + escaped(v.run.modes.front().name) + "'.</p>" : table.html();
  return text;
}

}  // namespace takt::pipeline
