#include "pipeline/report/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/report/baselines.h"
#include "pipeline/report/breakdown.h"
#include "pipeline/report/causes.h"
#include "pipeline/report/charts.h"
#include "pipeline/report/gantt.h"
#include "pipeline/report/html.h"
#include "pipeline/report/plans.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/report_json.h"
#include "pipeline/report/score.h"
#include "pipeline/report/style.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::Quantity;

constexpr std::size_t kMostRows = 200;  // of a table; the rest is in report.json

std::string tag(std::string_view text, std::string_view kind) {
  return fmt::format("<span class=\"tag {}\">{}</span>", kind, escaped(text));
}
std::string tag(Outcome outcome) {
  const char* kind = outcome == Outcome::kPass ? "ok" : outcome == Outcome::kFail ? "bad" : "open";
  return tag(name_of(outcome), kind);
}
std::string or_dash(const std::optional<Duration>& d) { return d ? ms_text(*d) : "\u2013"; }

// "0" quiet, anything else as a warning.
std::string count_cell(std::uint64_t n) {
  return n == 0 ? "<span class=\"muted\">0</span>" : "<b>" + count_text(n) + "</b>";
}

class Report {
 public:
  Report(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages,
         const std::string& pictures)
      : run_(run),
        judgement_(judgement),
        stages_(stages),
        pictures_(pictures),
        index_(run),
        worst_(worst_frame(judgement)),
        lockstep_(run.mode == "lockstep") {}

  std::string html() {
    body();
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
    out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n";
    out += "<title>takt: " + escaped(run_.pipeline_name) + ", " + name_of(judgement_.outcome) + "</title>\n";
    out += "<style>" + std::string(report_style()) + "</style></head><body>\n";
    out += head() + "<main>\n" + out_ + "</main>\n" + foot() + "</body></html>\n";
    return out;
  }

 private:
  void body() {
    first_screen();
    if (run_.faults) faults();
    if (!run_.modes.empty()) modes();
    chains();
    gantt();
    timelines();
    other_ways();
    budgets();
    jobs();
    broken();
    section("pictures", "Pictures", pictures_);
    section("plans", "Compiled graphs", plans_html(run_));
    score();
    health();
    memory();
    digests();
    environment();
    requirements();
    glossary();
  }

  // Which mode the run was in, and why it changed.
  void modes() {
    std::int64_t end = 1;
    for (const sched::JobRecord& record : run_.records) end = std::max(end, record.slot_end);
    constexpr double kWidth = 1120, kLeft = 92, kRow = 22;
    Svg svg(kWidth, static_cast<double>(run_.modes.size()) * kRow + 24, "The mode of the run over time", "gantt");
    const auto x = [&](std::int64_t at) {
      return kLeft + static_cast<double>(at) / static_cast<double>(end) * (kWidth - kLeft - 10);
    };
    for (std::size_t m = 0; m < run_.modes.size(); ++m) {
      svg.text(0, static_cast<double>(m) * kRow + 15, run_.modes[m].name, "lane");
    }
    const std::vector<Stay>& stays = index_.stays();
    for (std::size_t i = 0; i < stays.size(); ++i) {
      const std::int64_t to = i + 1 < stays.size() ? stays[i + 1].begin.ns : end;
      const double y = static_cast<double>(stays[i].mode) * kRow + 3;
      const std::string title =
          fmt::format("{} from {} s for {}", run_.modes[stays[i].mode].name,
                      fixed_text(static_cast<double>(stays[i].begin.ns) * 1e-9, 3), ms_text({to - stays[i].begin.ns}));
      svg.rect(x(stays[i].begin.ns), y, std::max(1.0, x(to) - x(stays[i].begin.ns)), kRow - 6,
               "run " + stage_class(stays[i].mode), title);
    }
    const double bottom = static_cast<double>(run_.modes.size()) * kRow + 14;
    svg.text(kLeft, bottom, "0 s", "axis");
    svg.text(kWidth - 10, bottom, fixed_text(static_cast<double>(end) * 1e-9, 2) + " s", "axis", Svg::Anchor::kEnd);
    std::string text = lead(
        "Each mode is an admitted table. A change comes at the end of a hyperperiod, when the dwell of the mode is "
        "over; instances that lie across it are judged by the bound of the change.");
    text += "<figure>" + svg.str() + "</figure>\n";
    HtmlTable table({{"at", false}, {"hyperperiod", false}, {"from", false}, {"to", false}, {"why", false}});
    for (const sched::ModeChange& change : run_.dispatch.changes) {
      table.row({fixed_text(static_cast<double>(change.begin.ns) * 1e-9, 3) + " s", std::to_string(change.hyperperiod),
                 escaped(run_.modes[change.from].name), escaped(run_.modes[change.to].name),
                 escaped(in_words(run_, change))});
    }
    text += table.empty() ? "<p>The run stayed in '" + escaped(run_.modes.front().name) + "'.</p>" : table.html();
    section("modes", "Modes", text);
  }

  void section(const std::string& id, const std::string& title, const std::string& content) {
    sections_.emplace_back(id, title);
    out_ += "<section id=\"" + id + "\"><h2>" + escaped(title) + "</h2>\n" + content + "</section>\n";
  }
  static std::string lead(const std::string& html) { return "<p class=\"lead small\">" + html + "</p>\n"; }

  std::string head() const {
    std::string out = "<header><h1>" + escaped(run_.pipeline_name) + "</h1>\n<p class=\"sub\">takt report of a ";
    out += "<b>" + escaped(run_.rig.drive.empty() ? "drive of unknown origin" : run_.rig.drive + " drive") + "</b>";
    if (!run_.log_path.empty()) out += ", " + escaped(file_name(run_.log_path));
    out += fmt::format(
        ", {}{}, {}", plural(run_.dispatch.hyperperiods_run, "hyperperiod", "hyperperiods"),
        one_hyperperiod() ? " of " + hyperperiod_text() : "",
        lockstep_ ? "lockstep (virtual time)" : fmt::format("{} at rate {:g}", escaped(run_.mode), run_.rate));
    out += ", " + escaped(run_.transport) + "</p>\n<nav>";
    for (const auto& [id, title] : sections_) out += "<a href=\"#" + id + "\">" + escaped(title) + "</a> ";
    return out + "</nav></header>\n";
  }

  // Modes may have hyperperiods of other lengths.
  [[nodiscard]] bool one_hyperperiod() const {
    return std::all_of(run_.modes.begin(), run_.modes.end(), [this](const sched::ModeTable& mode) {
      return mode.schedule.clock.hyperperiod == run_.schedule.clock.hyperperiod;
    });
  }
  [[nodiscard]] std::string hyperperiod_text() const {
    return fmt::format("{:g} ms", run_.schedule.clock.hyperperiod.ms());
  }

  // What kind of code the results came from.
  [[nodiscard]] std::string foot() const {
    std::string compiled, plain;
    for (std::uint32_t s = 0; s < run_.stages.size(); ++s) {
      const bool is_plan =
          std::any_of(run_.plans.begin(), run_.plans.end(), [s](const PlanInfo& plan) { return plan.stage == s; });
      std::string& list = is_plan ? compiled : plain;
      list +=
          (list.empty() ? "" : ", ") + escaped(run_.problem.stages[s].name) + " (" + escaped(run_.stages[s].type) + ")";
    }
    std::string text;
    if (!compiled.empty()) text += "Graphs that takt compiled: " + compiled + ". ";
    if (!plain.empty()) text += "Plain code: " + plain + ". ";
    return "<footer><p>" + text +
           "The same facts for machines: report.json and junit.xml beside this file.</p></footer>\n";
  }

  static std::string file_name(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
  }

  // ---- first screen -------------------------------------------------------------------------------------------

  void first_screen() {
    const char* kind = judgement_.outcome == Outcome::kPass   ? "pass"
                       : judgement_.outcome == Outcome::kFail ? "fail"
                                                              : "open";
    out_ += fmt::format("<section class=\"verdict {}\" id=\"verdict\"><div><span class=\"badge\">{}</span></div><div>",
                        kind, name_of(judgement_.outcome));
    out_ += "<p class=\"answer\">" + answer() + "</p>\n";
    out_ += figures();
    if (!judgement_.reasons.empty()) {
      out_ += "<ul class=\"small\">";
      for (const std::string& reason : judgement_.reasons) out_ += "<li>" + escaped(reason) + "</li>";
      out_ += "</ul>";
    }
    out_ += "</div></section>\n<div class=\"cards\">" + slack_card() + worst_card() + age_card() + machine_card() +
            "</div>\n" + command_card();
    sections_.emplace_back("verdict", "Verdict");
  }

  // Does it fit, in one sentence.
  std::string answer() const {
    const ChainJudgement* tightest = nullptr;
    double tightest_share = 0;
    bool admitted = true;
    for (const ChainJudgement& chain : judgement_.chains) {
      const QuantityJudgement& latency = chain.latency();
      if (!latency.bound || !latency.limit || latency.limit->ns <= 0) continue;
      admitted = admitted && *latency.bound <= *latency.limit;
      const double share = latency.bound->ms() / latency.limit->ms();
      if (tightest == nullptr || share > tightest_share) {
        tightest = &chain;
        tightest_share = share;
      }
    }
    std::string text;
    if (judgement_.violated > 0) {
      text = "A bound was exceeded without a broken assumption: an error of takt.";
    } else if (judgement_.outcome == Outcome::kFail) {
      text = "A requirement failed.";
    } else if (!admitted) {
      text = "It does not fit: a bound is above its limit.";
    } else {
      text = "It fits.";
    }
    if (tightest != nullptr) {
      const QuantityJudgement& latency = tightest->latency();
      text += fmt::format(" Tightest chain: <b>{}</b>, bound {} of a limit of {}, slack <b>{}</b>.",
                          escaped(tightest->name), ms_text(*latency.bound), ms_text(*latency.limit),
                          ms_text(*latency.limit - *latency.bound));
    }
    return text;
  }

  std::string figures() const {
    const auto figure = [](const std::string& value, const std::string& name) {
      return "<li><b>" + value + "</b><span>" + name + "</span></li>";
    };
    const auto share = judgement_.share_held();
    return "<ul class=\"figures\">" + figure(share ? percent_text(*share) : "\u2013", "of chain instances held") +
           figure(count_text(judgement_.held), "held") + figure(count_text(judgement_.void_count), "void") +
           figure(count_text(judgement_.violated), "violated") +
           figure(count_text(judgement_.misses.size()), "jobs not ok") +
           figure(count_text(judgement_.fill + judgement_.fill_jobs), "pipeline fill") + "</ul>";
  }

  static std::string card(const std::string& title, const std::string& content) {
    return "<div class=\"card\"><h2>" + title + "</h2>" + content + "</div>\n";
  }

  std::string slack_card() const {
    HtmlTable table({{"chain", false}, {"bound", true}, {"limit", true}, {"slack", true}});
    for (const ChainJudgement& chain : judgement_.chains) {
      if (says_nothing(chain)) continue;
      const QuantityJudgement& latency = chain.latency();
      std::string slack = "\u2013";
      if (latency.bound && latency.limit) slack = "<b>" + ms_text(*latency.limit - *latency.bound) + "</b>";
      table.row({escaped(chain.name), or_dash(latency.bound), or_dash(latency.limit), slack});
    }
    return card("Does it fit, with what slack",
                "<p class=\"small muted\">Worst-case latency from stamp to publication, proved before the run.</p>" +
                    table.html());
  }

  std::string worst_card() const {
    if (worst_.instance == nullptr) return card("Worst frame", "<p>No sample reached an output.</p>");
    const ChainJudgement& chain = judgement_.chains[worst_.chain];
    const Instance& instance = *worst_.instance;
    std::string text = "<p class=\"big\">" + ms_text(instance.published) + "</p><p>";
    text += escaped(chain.name) + ", sample " + std::to_string(instance.sample) + " captured at " +
            fixed_text(table_seconds(instance.capture), 3) + " s of the run";
    if (chain.latency().bound) {
      text += ": " + percent_text(worst_.share) + " of its bound of " + ms_text(*chain.latency().bound);
    }
    const char* kind = instance.state == InstanceState::kHeld   ? "ok"
                       : instance.state == InstanceState::kVoid ? "open"
                                                                : "bad";
    text += ". " + tag(name_of(instance.state), kind) + "</p>";
    text += "<p class=\"small\"><b>Cause:</b> " + escaped(cause_in_words(run_, index_, worst_)) + ".</p>";
    return card("Worst frame and its cause", text);
  }

  [[nodiscard]] double table_seconds(SensorTime t) const {
    return static_cast<double>(table_time(run_.sensor_from_table, t).ns) * 1e-9;
  }

  std::string age_card() const {
    HtmlTable table({{"sensor", false}, {"median", true}, {"most", true}, {"until replaced", true}, {"bound", true}});
    for (std::size_t c = 0; c < judgement_.chains.size(); ++c) {
      if (says_nothing(judgement_.chains[c])) continue;
      const auto& age = quantity(judgement_.chains[c], Quantity::kAgeAtOutput);
      const auto& replaced = quantity(judgement_.chains[c], Quantity::kAgeUntilReplaced);
      std::vector<Duration> values;
      for (const Instance& i : age.instances) values.push_back(i.published);
      const Distribution ages = distribution(std::move(values));
      const ChainJudgement& chain = judgement_.chains[c];
      std::string sensor = run_.problem.sensors[run_.problem.chains[chain.chain].sensor].name;
      if (!chain.context.empty()) sensor += " (" + chain.context + ")";
      table.row({escaped(sensor), measured(age, ages.quantile(0.5)), "<b>" + measured(age, age.published_max) + "</b>",
                 measured(replaced, replaced.published_max), or_dash(replaced.bound)});
    }
    return card("Data age at the output",
                "<p class=\"small muted\">How old each sensor's data is when an output appears, and until the next "
                "output replaces it.</p>" +
                    table.html());
  }

  std::string machine_card() const {
    const Environment& e = run_.environment;
    std::string text;
    const sched::RealtimeRights& rights = run_.dispatch.rights;
    if (lockstep_) {
      text += "<p>" + tag("lockstep", "open") +
              " Times are virtual: they check the table, not this machine. Bytes are judged.</p>";
    } else if (rights.refused.empty() && e.warnings.empty() && run_.rate == 1) {
      text += "<p>" + tag("yes", "ok") + " Real-time rights were granted and nothing suspicious was found.</p>";
    } else {
      text += "<p>" + tag(rights.refused.empty() && run_.rate == 1 ? "with care" : "deadlines NOT JUDGED", "open") +
              " " + escaped(e.cpu_model) + ", " + plural(static_cast<std::uint64_t>(e.cores), "core", "cores") +
              ".</p>";
    }
    if (!lockstep_) {
      std::string granted;
      if (rights.fifo) granted += "real-time priority, ";
      if (rights.affinity) granted += "pinned threads, ";
      if (rights.memory_locked) granted += "locked memory, ";
      text += "<p class=\"small\">Granted: " +
              (granted.empty() ? "nothing, all was refused" : granted.substr(0, granted.size() - 2)) + "." +
              isolation_text() + "</p>";
    }
    if (!lockstep_ && !rights.refused.empty() && !mentions(e.warnings, rights.refused)) {
      text += "<p class=\"warning\">Refused: " + escaped(rights.refused) + "</p>";
    }
    text += host_line();
    for (const std::string& warning : e.warnings) text += "<p class=\"warning\">" + escaped(warning) + "</p>";
    return card("Can this machine be trusted", text);
  }

  // How the slot behind an unfinished job was kept free, and how often that was needed.
  [[nodiscard]] std::string isolation_text() const {
    const std::string& by = run_.dispatch.rights.isolation;
    if (by.empty()) return "";
    const auto isolated = static_cast<std::uint64_t>(
        std::count_if(run_.records.begin(), run_.records.end(),
                      [](const sched::JobRecord& r) { return (r.flags & sched::kFlagIsolated) != 0; }));
    return " Unfinished workers lose their core by <b>" + escaped(by) +
           "</b>: " + (isolated == 0 ? "none did" : plural(isolated, "job did", "jobs did")) + ".";
  }

  // What the host took from the run, and what it costs to know.
  [[nodiscard]] std::string host_line() const {
    if (lockstep_) return "";
    Duration stolen, stopped;
    for (const HostStall& stall : run_.host_stalls) (stall.core < 0 ? stopped : stolen) += stall.lost;
    std::string text = "<p class=\"small\">Taken by the host: ";
    text += stolen.ns == 0 && stopped.ns == 0 ? "nothing was seen" : "";
    if (stolen.ns > 0) text += "<b>" + ms_text(stolen) + "</b> of CPU time by the hypervisor (steal)";
    if (stopped.ns > 0) text += (stolen.ns > 0 ? ", " : "") + ("<b>up to " + ms_text(stopped)) + "</b> process stopped";
    text += ". Keeping account costs " + fixed_text(static_cast<double>(run_.dispatch.accounting.ns) * 1e-3, 1) +
            " \u00b5s a job";
    std::int64_t last = 0;
    for (const sched::JobRecord& record : run_.records) last = std::max(last, record.slot_end);
    const double span = static_cast<double>(last) * 1e-9;
    if (run_.watch_cost.ns > 0 && span > 0) {
      text += " and " + fixed_text(100 * run_.watch_cost.seconds() / span, 2) + " % of a reserve core";
    }
    return text + ".</p>";
  }

  static bool mentions(const std::vector<std::string>& texts, const std::string& what) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return text.find(what) != std::string::npos; });
  }

  std::string command_card() const {
    std::string text;
    const std::vector<std::string> commands = commands_to_try(run_);
    for (const std::string& command : commands) text += "<pre>" + escaped(command) + "</pre>";
    if (commands.empty()) text = "<p class=\"muted\">The command line was not recorded.</p>";
    return "<div class=\"card\"><h2>Reproduce</h2>" + text + "</div>\n";
  }

  static bool judged(const QuantityJudgement& figures) {
    return figures.held + figures.void_count + figures.violated > 0;
  }
  // Of the changes of mode that a run came to, most chains had no sample under way.
  static bool says_nothing(const ChainJudgement& chain) {
    return chain.from != chain.to && std::none_of(std::begin(chain.quantities), std::end(chain.quantities), judged);
  }
  static std::string measured(const QuantityJudgement& figures, Duration d) {
    return judged(figures) ? ms_text(d) : "\u2013";
  }

  static const QuantityJudgement& quantity(const ChainJudgement& chain, Quantity q) {
    return chain.quantities[static_cast<std::size_t>(q)];
  }

  // What was done to the run on purpose, and whether it bore that as declared.
  void faults() {
    const FaultReport& report = *run_.faults;
    std::string text = "<p>" + tag(report.met() ? "as expected" : "NOT as expected", report.met() ? "ok" : "bad") +
                       " <b>" + escaped(report.name) + "</b>: " + escaped(report.what) + ".</p><ul class=\"small\">";
    for (std::size_t i = 0; i < report.injected.size(); ++i) {
      const std::uint64_t struck = i < report.struck.size() ? report.struck[i] : 0;
      text += "<li>" + escaped(report.injected[i]) + (struck > 1 ? fmt::format(": {} times", struck) : "") + "</li>";
    }
    HtmlTable table({{"what", false}, {"expected", false}, {"seen", false}, {"", false}});
    for (const FaultExpectation& e : report.expectations) {
      table.row({escaped(e.what), escaped(e.expected), escaped(e.seen),
                 tag(e.met ? "met" : "not met", e.met ? "ok" : "bad")});
    }
    // A run that was reproduced with its faults is not judged again.
    section("faults", "Injected faults", text + "</ul>" + (report.expectations.empty() ? "" : table.html()));
  }

  // ---- chains -------------------------------------------------------------------------------------------------

  void chains() {
    HtmlTable table({{"chain, quantity", false},
                     {"bound", true},
                     {"limit", true},
                     {"completed", true},
                     {"published", true},
                     {"bound / held max", true},
                     {"held", true},
                     {"void", true},
                     {"violated", true},
                     {"measured against bound", false}});
    for (const ChainJudgement& chain : judgement_.chains) {
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
        std::string(run_.modes.empty() ? "" : " Changes of mode stand here where an instance lay across them."));
    text += table.html();
    if (worst_.instance != nullptr) {
      const std::vector<Part> parts = breakdown(run_, index_, worst_.of_problem, *worst_.instance);
      if (!parts.empty()) text += worst_parts(parts);
    }
    if (run_.modes.empty()) text += bound_terms(run_.schedule, "");
    for (const sched::ModeTable& mode : run_.modes) text += bound_terms(mode.schedule, " (" + mode.name + ")");
    section("chains", "Chains", text);
  }

  // How the latency bounds of a table add up.
  std::string bound_terms(const sched::Schedule& table, const std::string& mode) const {
    std::string text;
    for (const sched::ChainBound& bound : table.bounds) {
      if (bound.terms.empty() || bound.chain >= run_.problem.chains.size()) continue;
      text += "<p class=\"small muted\"><b>" + escaped(run_.problem.chains[bound.chain].name + mode) +
              "</b>, how the latency bound adds up: " + escaped(bound.terms) + "</p>";
    }
    return text;
  }

  std::string worst_parts(const std::vector<Part>& parts) const {
    const ChainJudgement& chain = judgement_.chains[worst_.chain];
    std::string text = "<h3>Where the time of the worst frame went: " + escaped(chain.name) + ", sample " +
                       std::to_string(worst_.instance->sample) + "</h3>\n<figure>" +
                       breakdown_svg(parts, chain.latency().bound) + "<p class=\"legend\">";
    for (const Part& part : parts) text += "<span>" + escaped(part.label) + " " + ms_text(part.time) + "</span> ";
    return text + "</p></figure>\n";
  }

  // ---- Gantt --------------------------------------------------------------------------------------------------

  // The hyperperiods of the median and of the worst output, by latency against the bound.
  struct Chosen {
    std::uint64_t typical = 0, worst = 0;
    bool found = false;
  };
  [[nodiscard]] Chosen choose_hyperperiods() const {
    std::map<std::uint64_t, double> load;  // hyperperiod -> largest share of the bound
    for (std::size_t c = 0; c < judgement_.chains.size(); ++c) {
      const QuantityJudgement& latency = judgement_.chains[c].latency();
      const std::vector<std::uint32_t>& path = run_.problem.chains[judgement_.chains[c].chain].stages;
      const std::uint32_t last = path.empty() ? 0 : path.back();
      for (const Instance& i : latency.instances) {
        if (!i.reached || i.state == InstanceState::kFill) continue;
        const sched::JobRecord* output = index_.find(last, i.output);
        if (output == nullptr) continue;
        const double share =
            latency.bound && latency.bound->ns > 0 ? i.published.ms() / latency.bound->ms() : i.published.ms();
        load[output->hyperperiod] = std::max(load[output->hyperperiod], share);
      }
    }
    Chosen out;
    if (load.empty()) return out;
    std::vector<std::pair<double, std::uint64_t>> order;
    for (const auto& [hyperperiod, share] : load) order.emplace_back(share, hyperperiod);
    std::sort(order.begin(), order.end());
    out.typical = order[order.size() / 2].second;
    out.worst = order.back().second;
    out.found = true;
    if (worst_.instance != nullptr) {
      const sched::JobRecord* output =
          index_.find(run_.problem.chains[worst_.of_problem].stages.back(), worst_.instance->output);
      if (output != nullptr) out.worst = output->hyperperiod;
    }
    return out;
  }

  void gantt() {
    const Chosen chosen = choose_hyperperiods();
    if (!chosen.found) {
      section("gantt", "Planned against actual", "<p>No output appeared: there is nothing to draw.</p>");
      return;
    }
    std::string text = lead(
        "One hyperperiod of table time. Thin bars at the top: a sensor's sample from its stamp to its arrival. Per "
        "core, "
        "above: planned slots (wake-up window, budget, publish window); below: actual runs, dashed until the tick "
        "where "
        "the output is out. A two-core job stands in both lanes. Red outline: not ok; thin: it lost its core and goes "
        "on "
        "in the gaps." +
        std::string(lockstep_ ? " In lockstep a job takes exactly its budget." : ""));
    const auto drawing = [&](std::uint64_t hyperperiod, const std::string& what) {
      const std::string mode =
          run_.modes.empty() ? "" : ", mode " + escaped(run_.modes[index_.planned(hyperperiod).stay->mode].name);
      return "<figure><figcaption><b>" + what + "</b>: hyperperiod " + std::to_string(hyperperiod) + mode +
             "</figcaption><div class=\"wide-drawing\">" + gantt_svg(run_, index_, hyperperiod) + "</div></figure>\n";
    };
    if (chosen.typical == chosen.worst) {
      text += drawing(chosen.typical, "Typical and worst");
    } else {
      text += drawing(chosen.typical, "Typical") + drawing(chosen.worst, "With the worst frame");
    }
    if (!judgement_.misses.empty()) {
      const sched::JobRecord& first = *judgement_.misses.front().record;
      if (first.hyperperiod != chosen.typical && first.hyperperiod != chosen.worst) {
        text += drawing(first.hyperperiod, fmt::format("Where the first job was not ok, {}#{}",
                                                       escaped(run_.problem.stages[first.stage].name), first.job));
      }
    }
    text += stage_legend() + cores_table();
    section("gantt", "Planned against actual", text);
  }

  std::string stage_legend() const {
    std::string text = "<p class=\"legend\">";
    for (std::uint32_t s = 0; s < run_.problem.stages.size(); ++s) {
      text += fmt::format("<span><i class=\"key\" style=\"background:var(--s{})\"></i>{}</span> ", s % 8,
                          escaped(run_.problem.stages[s].name));
    }
    return text + "</p>";
  }

  std::string cores_table() const {
    HtmlTable table({{"core", false},
                     {"CPU", true},
                     {"planned", true},
                     {"measured busy", true},
                     {"housekeeping reserve", true},
                     {"w", true},
                     {"p", true}});
    const std::vector<CoreShare> shares = core_shares(run_);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const sched::Core& core = run_.problem.board.cores[i];
      table.row({escaped(core.name), std::to_string(core.cpu), percent_text(shares[i].planned),
                 lockstep_ ? "\u2013" : percent_text(shares[i].busy), percent_text(core.reserve),
                 ms_text(core.wakeup_window), ms_text(core.publish_window)});
    }
    return table.html();
  }

  void timelines() {
    std::string text = lead(
        "Published latency of every sample that reached an output, over the run. Hollow: void, a monitored assumption "
        "was "
        "broken on its path. A tick on the axis: it should have reached an output, and did not.");
    text += "<div class=\"grid wide\">";
    SensorTime last{run_.sensor_from_table.to_origin.ns};
    for (const ChainJudgement& chain : judgement_.chains) {
      for (const Instance& i : chain.latency().instances) last = std::max(last, i.capture);
    }
    for (const ChainJudgement& chain : judgement_.chains) {
      if (chain.from != chain.to && !judged(chain.latency())) continue;
      text += "<figure><figcaption><b>" + escaped(chain.name) + "</b></figcaption>" + timeline_svg(run_, chain, last) +
              "</figure>\n";
    }
    section("latency", "Latency over the drive", text + "</div>");
  }

  // The same stages under other ways of scheduling: simulated, and for real where that was asked for.
  void other_ways() {
    if (!run_.modes.empty() || !in_one_piece(run_.schedule)) return;  // they know one table, of whole jobs
    std::vector<HtmlTable::Column> columns{{"chain", false}, {"load", true}};
    for (const Way way : kWays) columns.push_back({name_of(way), true});
    HtmlTable table(columns);
    const std::vector<Baseline> simulated = baselines(run_);
    const bool measured = run_.measured.size() == simulated.size();
    const std::size_t ways = std::size(kWays);
    for (std::size_t c = 0; c < run_.problem.chains.size(); ++c) {
      for (std::size_t l = 0; l < std::size(kLoads); ++l) {
        std::vector<std::string> cells{escaped(run_.problem.chains[c].name), fmt::format("{:g}x", kLoads[l])};
        for (std::size_t w = l * ways; w < (l + 1) * ways; ++w) {
          const BaselineChain& by_model = simulated[w].chains[c];
          cells.push_back(measured ? way_cell(run_.measured[w].chains[c], by_model) : way_cell(by_model));
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
    section("ways", "Beside other ways to schedule",
            lead((measured ? reality : simulation) + what +
                 (measured ? " In grey: the same simulated with the times that this run recorded."
                           : " <code>takt replay --baselines</code> runs them for real.")) +
                table.html());
  }

  static std::string misses_text(const BaselineChain& figures) {
    if (figures.misses == 0) return "<span class=\"small muted\">0 misses</span>";
    return tag(plural(figures.misses, "miss", "misses") + fmt::format(" of {}", figures.planned), "bad");
  }
  static std::string worst_text(const BaselineChain& figures) {
    return figures.outputs == 0 ? "\u2013" : ms_text(figures.worst_latency);
  }
  static std::string way_cell(const BaselineChain& figures) {
    return fmt::format("<b>{}</b><br><span class=\"small muted\">jitter {}, </span>{}", worst_text(figures),
                       ms_text(figures.jitter), misses_text(figures));
  }
  static std::string way_cell(const BaselineChain& real, const BaselineChain& simulated) {
    return way_cell(real) + fmt::format("<div class=\"small muted\">simulated {}, jitter {}<br>{}</div>",
                                        worst_text(simulated), ms_text(simulated.jitter), misses_text(simulated));
  }

  // ---- stages -------------------------------------------------------------------------------------------------

  static std::string provenance_text(const sched::Budget& budget) {
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

  void budgets() {
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
    for (const BudgetUse& use : budget_uses(run_)) {
      const sched::Stage& stage = run_.problem.stages[use.stage];
      const std::string variant = stage.variants.size() > 1 ? ", " + stage.variants[use.variant].name : "";
      const Distribution& times = shown_times(use);
      std::string tightness = "\u2013", unused = "\u2013";
      if (!lockstep_ && !times.empty() && times.max().ns > 0 && use.budget.time.ns > 0) {
        tightness = fixed_text(use.budget.time.ms() / times.max().ms(), 2);
        const double used = times.quantile(0.5).ms() / use.budget.time.ms();
        unused = percent_text(std::max(0.0, 1 - used)) + (used < 0.5 ? " " + tag("loose", "open") : "");
      }
      const auto figure = [&](Duration d) { return times.empty() ? "\u2013" : ms_text(d); };
      const std::string type = use.stage < run_.stages.size() ? run_.stages[use.stage].type : "";
      table.row({escaped(stage.name) + "<br><span class=\"muted small\">" + escaped(type) + "</span>",
                 escaped(stage.variants[use.variant].name) + "<br><span class=\"muted small\">" +
                     plural(static_cast<std::uint64_t>(use.budget.cores), "core", "cores") + "</span>",
                 jobs_of(use), ms_text(use.budget.time), escaped(provenance_text(use.budget)),
                 figure(times.quantile(0.5)), figure(times.quantile(0.99)), figure(times.max()), tightness, unused});
      if (times.empty()) continue;
      histograms += "<figure><figcaption><b>" + escaped(stage.name) + "</b>" + escaped(variant) + ", " +
                    plural(times.sorted.size(), "job", "jobs") + ", logarithmic bins</figcaption>" +
                    histogram_svg(times, use.budget.time, use.stage, stage.name + variant + " times") + "</figure>\n";
    }
    std::string text = lead(
        lockstep_ ? "Lockstep gives no wall times: shown is the CPU time of all workers of a job, which is not judged."
                  : "Wall time of a job from its actual start to its completion (in segments: the sum of their times), "
                    "beside "
                    "its budget. Tightness on a drive is printed, not judged; a budget of which the median job leaves "
                    "more than half unused is flagged as "
                    "loose.");
    text += table.html() + "<div class=\"grid\">" + histograms + "</div>";
    for (const std::string& note : run_.schedule_notes)
      text += "<p class=\"small muted\">Note: " + escaped(note) + "</p>";
    section("budgets", "Budgets and measured times", text);
  }

  // In a hyperperiod of each mode that admits the budget.
  [[nodiscard]] std::string jobs_of(const BudgetUse& use) const {
    if (use.admitted.empty()) return "degraded to";
    std::string text;
    for (const BudgetUse::Admitted& in : use.admitted) {
      if (run_.modes.empty()) return std::to_string(in.jobs);
      text += (text.empty() ? "" : "<br>") + fmt::format("{}: {}", escaped(run_.modes[in.mode].name), in.jobs);
    }
    return text;
  }

  [[nodiscard]] const Distribution& shown_times(const BudgetUse& use) const { return lockstep_ ? use.cpu : use.run; }

  void jobs() {
    std::vector<HtmlTable::Column> columns{{"stage", false}, {"jobs", true}};
    // Best first for reading: ok, then the others in their order of precedence.
    const std::size_t ok = static_cast<std::size_t>(sched::JobClass::kOk);
    columns.push_back({sched::name_of(sched::JobClass::kOk), true});
    for (std::size_t c = 0; c < ok; ++c) columns.push_back({sched::name_of(static_cast<sched::JobClass>(c)), true});
    for (const char* name : {"fill", "repeated input", "held input", "input missing", "repaired frame"}) {
      columns.push_back({name, true});
    }
    HtmlTable table(columns);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageStatistics& f = stages_[s];
      std::vector<std::string> cells{escaped(run_.problem.stages[s].name), count_text(f.jobs),
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
    text += table.html() + accounts();
    if (judgement_.misses.empty()) {
      text += "<p>Every job was ok.</p>";
    } else {
      HtmlTable misses(
          {{"job", false}, {"at", true}, {"class", false}, {"cause", false}, {"effect", false}, {"output", false}});
      for (std::size_t i = 0; i < std::min(judgement_.misses.size(), kMostRows); ++i) {
        const sched::JobRecord& record = *judgement_.misses[i].record;
        misses.row({escaped(run_.problem.stages[record.stage].name) + "#" + std::to_string(record.job),
                    fixed_text(static_cast<double>(record.nominal_start) * 1e-9, 4) + " s",
                    escaped(sched::name_of(record.job_class)), escaped(judgement_.misses[i].cause),
                    escaped(judgement_.misses[i].effect), record.published != 0 ? "published" : "none"});
      }
      text += "<h3>Every miss and its cause</h3>" + misses.html() + more_rows(judgement_.misses.size());
    }
    section("jobs", "Job classes", text);
  }

  // What the jobs of each stage used.
  [[nodiscard]] std::string accounts() const {
    HtmlTable table({{"stage", false},
                     {"CPU time p50", true},
                     {"CPU time max", true},
                     {"page faults", true},
                     {"major", true},
                     {"waited", true},
                     {"preempted", true}});
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageStatistics& f = stages_[s];
      table.row({escaped(run_.problem.stages[s].name), ms_text(f.cpu.quantile(0.5)), ms_text(f.cpu.max()),
                 count_text(f.page_faults), count_cell(f.major_faults_after_warmup), count_text(f.voluntary_switches),
                 count_cell(f.involuntary_switches)});
    }
    return "<h3>What the jobs used</h3>" +
           lead(
               "CPU time of all workers of a job; over all jobs their page faults (major: after warm-up), how often "
               "they "
               "waited, and how often another thread was given their core.") +
           table.html() + device_times();
  }

  // Of the stages that ran on a device beside the cores; nothing where none did.
  [[nodiscard]] std::string device_times() const {
    HtmlTable table({{"stage", false},
                     {"jobs", true},
                     {"handed over p50", true},
                     {"handed over max", true},
                     {"on the device p50", true},
                     {"on the device max", true}});
    bool any = false;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageStatistics& f = stages_[s];
      if (f.launch.empty()) continue;
      any = true;
      table.row({escaped(run_.problem.stages[s].name), count_text(f.device.sorted.size()),
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

  static std::string more_rows(std::size_t all) {
    if (all <= kMostRows) return "";
    return "<p class=\"small muted\">\u2026 and " + count_text(all - kMostRows) + " more, all in report.json.</p>";
  }

  // Broken assumptions, each once, with what it made void.
  void broken() {
    struct Entry {
      std::map<Assumption, std::string> broken;        // with details
      std::map<std::string, std::uint64_t> instances;  // "chain, quantity" -> count
    };
    std::map<std::tuple<bool, std::uint32_t, std::uint64_t>, Entry> entries;  // by subject
    HtmlTable violated({{"chain", false}, {"quantity", false}, {"sample", true}, {"measured", true}, {"bound", true}});
    for (const ChainJudgement& chain : judgement_.chains) {
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
    HtmlTable table({{"subject", false}, {"broken assumption", false}, {"instances made void", false}});
    std::size_t shown = 0;
    for (const auto& [subject, entry] : entries) {
      if (++shown > kMostRows) break;
      const auto& [by_sensor, index, number] = subject;
      std::string what, affected;
      for (const auto& [assumption, detail] : entry.broken) {
        what += fmt::format("{}<b>{}</b>: {}", what.empty() ? "" : "<br>", name_of(assumption), escaped(detail));
      }
      for (const auto& [name, count] : entry.instances) {
        affected +=
            (affected.empty() ? "" : "<br>") + escaped(name) + (count > 1 ? " \u00d7 " + std::to_string(count) : "");
      }
      const std::string name =
          by_sensor ? run_.problem.sensors[index].name + " sample " : run_.problem.stages[index].name + " job ";
      table.row({escaped(name) + std::to_string(number), what, affected});
    }
    text += entries.empty() ? "<p>No assumption was broken on any path.</p>" : table.html() + more_rows(entries.size());
    section("assumptions", "Broken assumptions", text);
  }

  // ---- results ------------------------------------------------------------------------------------------------

  void score() {
    std::string text;
    if (run_.truth.empty()) {
      text = "<p>The log holds no ground truth: detections and tracks cannot be scored.</p>";
    } else {
      const ScoreRule rule;
      const Score s = score_tracks(run_.tracks, run_.truth, rule);
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
    section("score", "Tracks against truth", text);
  }

  void health() {
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
    for (const SensorHealth& h : run_.health) {
      table.row({escaped(h.sensor), count_text(h.messages), count_cell(h.bad_frames), count_cell(h.gaps),
                 count_cell(h.repeats), count_cell(h.order_faults), count_cell(h.invalid_points),
                 count_cell(h.dropped_points), count_text(h.unused)});
      for (const std::string& example : h.examples) {
        examples += "<li>" + escaped(h.sensor) + ": " + escaped(example) + "</li>";
      }
    }
    std::string text = lead(
        "What the log delivered. A bad frame is left out or repaired by a stated rule and the run goes "
        "on; \u201cnever used\u201d samples arrived between two latches (a faster sensor than its stage).");
    text += table.html();
    for (const sensors::RigSensor& sensor : run_.rig.sensors) {
      if (sensor.assumed.empty()) continue;
      std::string list;
      for (const std::string& value : sensor.assumed) list += (list.empty() ? "" : ", ") + value;
      text += "<p class=\"warning\">" + escaped(sensor.name) +
              ": assumed in the rig file, neither measured nor declared: " + escaped(list) + "</p>";
    }
    if (!examples.empty()) text += "<h3>Examples</h3><ul class=\"small\">" + examples + "</ul>";
    if (!run_.log_problems.empty()) {
      HtmlTable problems({{"damage", false}, {"at byte", true}, {"detail", false}});
      for (std::size_t i = 0; i < std::min(run_.log_problems.size(), kMostRows); ++i) {
        const sensors::LogProblem& p = run_.log_problems[i];
        problems.row({escaped(p.kind), count_text(p.offset), escaped(p.detail)});
      }
      text += "<h3>Damage in the log</h3>" + problems.html() + more_rows(run_.log_problems.size());
    }
    section("inputs", "Input health", text);
  }

  // ---- memory, digests, environment ---------------------------------------------------------------------------

  void memory() {
    std::uint64_t largest = 1;
    for (const transport::Pool& pool : run_.pools.pools) largest = std::max(largest, pool.chunk_bytes * pool.chunks);
    HtmlTable table({{"chunk size", true},
                     {"chunks", true},
                     {"most used", true},
                     {"pool", true},
                     {"map", false},
                     {"topics", false}});
    for (const transport::Pool& pool : run_.pools.pools) {
      std::optional<std::uint32_t> most;
      for (const transport::PoolUse& use : run_.pool_use) {
        if (use.chunk_bytes == pool.chunk_bytes) most = use.most_used;
      }
      const std::uint64_t bytes = pool.chunk_bytes * pool.chunks;
      const double width = 100.0 * static_cast<double>(bytes) / static_cast<double>(largest);
      const double used = most && pool.chunks > 0 ? 100.0 * *most / pool.chunks : 0;
      std::string topics;
      for (const std::string& topic : pool.topics) topics += (topics.empty() ? "" : ", ") + topic;
      table.row(
          {bytes_text(pool.chunk_bytes), std::to_string(pool.chunks), most ? std::to_string(*most) : "\u2013",
           bytes_text(bytes),
           fmt::format(
               "<span class=\"pool\" style=\"display:block;width:{:.1f}%\"><i style=\"width:{:.1f}%\"></i></span>",
               width, used),
           escaped(topics)});
    }
    std::uint64_t copied = 0, faults = 0, major = 0, allocations = 0;
    for (const StageStatistics& s : stages_) {
      copied = std::max(copied, s.most_copied);
      faults += s.page_faults_after_warmup;
      major += s.major_faults_after_warmup;
      allocations += s.allocations_after_warmup;
    }
    std::string text = lead(
        "Every chunk is planned before the run. Bar: its length is the pool's size, the strong part the high-water "
        "mark.");
    text += table.html();
    text += "<ul class=\"figures\">";
    const auto figure = [&](const std::string& value, const std::string& name) {
      text += "<li><b>" + value + "</b><span>" + name + "</span></li>";
    };
    figure(bytes_text(run_.pools.user_bytes), "in pools");
    figure(bytes_text(run_.pools.management_bytes), "management of the transport");
    figure(bytes_text(run_.resident_bytes), "resident");
    figure(run_.allocation_guard ? count_text(allocations) : "not counted",
           "allocations in timed threads after warm-up");
    figure(run_.allocation_guard ? bytes_text(copied) : "not counted", "most copied in one job");
    figure(count_text(faults), "page faults after warm-up");
    figure(count_text(major), "of them major");
    section("memory", "Shared memory", text + "</ul>");
  }

  void digests() {
    HtmlTable topics({{"topic", false}, {"chunks", true}, {"digest", false}, {"compared", false}});
    for (const TopicDigest& d : run_.digests) {
      std::string compared = tag("not asked", "");
      if (d.compared == "equal") compared = tag("equal", "ok");
      if (d.compared == "differs") compared = tag("differs", "bad");
      if (d.compared.rfind("NOT COMPARED", 0) == 0)
        compared = tag("NOT COMPARED", "open") + escaped(d.compared.substr(12));
      topics.row(
          {escaped(d.topic), count_text(d.chunks), "<code class=\"hash\">" + d.digest.hex() + "</code>", compared});
    }
    HtmlTable inputs({{"input", false}, {"file", false}, {"XXH3-128", false}});
    for (const HashedInput& i : run_.inputs) {
      inputs.row({escaped(i.role), "<span class=\"hash\">" + escaped(i.path) + "</span>",
                  "<code class=\"hash\">" + i.digest.hex() + "</code>"});
    }
    inputs.row({"schedule", "", "<code class=\"hash\">" + run_.schedule.hash().hex() + "</code>"});
    section("digests", "Digests",
            lead("One digest per topic over every published chunk in job order (payload and identity fields), and the "
                 "inputs that decide them: equal inputs give equal bytes, whatever the load or the machine's speed. "
                 "<em>Compared</em> with those of a file (<code>--digests</code>) or of the run that was repeated "
                 "(<code>--reproduce</code>).") +
                topics.html() + "<h3>Inputs</h3>" + inputs.html());
  }

  void environment() {
    const Environment& e = run_.environment;
    const sched::RealtimeRights& rights = run_.dispatch.rights;
    std::string text = "<dl>";
    const auto entry = [&](const std::string& name, const std::string& value) {
      text += "<dt>" + name + "</dt><dd>" + (value.empty() ? "unknown" : escaped(value)) + "</dd>\n";
    };
    entry("host", e.host);
    entry("CPU", e.cpu_model + ", " + plural(static_cast<std::uint64_t>(e.cores), "core", "cores"));
    entry("kernel", e.kernel + (e.preempt_rt ? " (PREEMPT_RT)" : " (not PREEMPT_RT)"));
    entry("clock source", e.clock_source);
    entry("frequency governor", e.governor);
    entry("CPU quota of the control group",
          e.cgroup_quota_cores > 0 ? fixed_text(e.cgroup_quota_cores, 2) + " cores" : "none");
    entry("steal", percent_text(e.steal_share));
    entry("shared memory free", bytes_text(e.shared_memory_free));
    entry("digest class", e.isa_class);
    entry("compiler", e.compiler);
    entry("JPEG library", e.jpeg_library);
    if (lockstep_) {
      entry("isolation", "lockstep: none needed");
    } else {
      std::string granted;
      if (rights.fifo) granted += "SCHED_FIFO, ";
      if (rights.affinity) granted += "pinned threads, ";
      if (rights.memory_locked) granted += "locked memory, ";
      entry("granted", granted.empty() ? "nothing" : granted.substr(0, granted.size() - 2));
      entry("isolation by", rights.isolation);
      entry("refused", rights.refused.empty() ? "nothing" : rights.refused);
    }
    section("environment", "Environment", text + "</dl>");
  }

  void requirements() {
    HtmlTable table({{"requirement", false}, {"outcome", false}, {"figures", false}});
    for (const Requirement& r : judgement_.requirements) {
      table.row({escaped(r.group) + ": " + escaped(r.name), tag(r.outcome), escaped(r.detail)});
    }
    section("requirements", "Requirements", lead("Each is a test case of junit.xml.") + table.html());
  }

  void glossary() {
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
    entry("hyperperiod", "length of the table" + (one_hyperperiod() ? ", " + hyperperiod_text() : " of a mode"));
    entry("late start / overrun / late",
          "began later than w / took longer than the budget / published after the slot's end");
    entry("missing / skipped", "a required input was absent at the latch / the job was not started");
    entry("housekeeping reserve", "share of a core kept free for feeder and recorder");
    section("glossary", "Glossary", text + "</dl>");
  }

  const RunData& run_;
  const Judgement& judgement_;
  const std::vector<StageStatistics>& stages_;
  const std::string& pictures_;
  RecordIndex index_;
  WorstFrame worst_;
  bool lockstep_;
  std::string out_;
  std::vector<std::pair<std::string, std::string>> sections_;
};

}  // namespace

std::string report_html(const RunData& run, const Judgement& judgement, const std::vector<StageStatistics>& stages,
                        const std::string& pictures) {
  return Report(run, judgement, stages, pictures).html();
}

}  // namespace takt::pipeline
