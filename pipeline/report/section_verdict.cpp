#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/causes.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::Quantity;

std::string card(const std::string& title, const std::string& content) {
  return "<div class=\"card\"><h2>" + title + "</h2>" + content + "</div>\n";
}

// Does it fit, in one sentence.
std::string answer(const ReportView& v) {
  const ChainJudgement* tightest = nullptr;
  double tightest_share = 0;
  bool admitted = true;
  for (const ChainJudgement& chain : v.judgement.chains) {
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
  if (v.judgement.violated > 0) {
    text = "A bound was exceeded without a broken assumption: an error of takt.";
  } else if (v.judgement.outcome == Outcome::kFail) {
    text = "A requirement failed.";
  } else if (!admitted) {
    text = "It does not fit: a bound is above its limit.";
  } else {
    text = "It fits.";
  }
  if (tightest != nullptr) {
    const QuantityJudgement& latency = tightest->latency();
    text +=
        fmt::format(" Tightest chain: <b>{}</b>, bound {} of a limit of {}, slack <b>{}</b>.", escaped(tightest->name),
                    ms_text(*latency.bound), ms_text(*latency.limit), ms_text(*latency.limit - *latency.bound));
  }
  return text;
}

std::string figures(const ReportView& v) {
  const auto figure = [](const std::string& value, const std::string& name) {
    return "<li><b>" + value + "</b><span>" + name + "</span></li>";
  };
  const auto share = v.judgement.share_held();
  return "<ul class=\"figures\">" + figure(share ? percent_text(*share) : "\u2013", "of chain instances held") +
         figure(count_text(v.judgement.held), "held") + figure(count_text(v.judgement.void_count), "void") +
         figure(count_text(v.judgement.violated), "violated") +
         figure(count_text(v.judgement.misses.size()), "jobs not ok") +
         figure(count_text(v.judgement.fill + v.judgement.fill_jobs), "pipeline fill") + "</ul>";
}

std::string slack_card(const ReportView& v) {
  HtmlTable table({{"chain", false}, {"bound", true}, {"limit", true}, {"slack", true}});
  for (const ChainJudgement& chain : v.judgement.chains) {
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

const QuantityJudgement& quantity(const ChainJudgement& chain, Quantity q) {
  return chain.quantities[static_cast<std::size_t>(q)];
}

double table_seconds(const ReportView& v, SensorTime t) {
  return static_cast<double>(table_time(v.run.sensor_from_table, t).ns) * 1e-9;
}

std::string worst_card(const ReportView& v) {
  if (v.worst.instance == nullptr) return card("Worst frame", "<p>No sample reached an output.</p>");
  const ChainJudgement& chain = v.judgement.chains[v.worst.chain];
  const Instance& instance = *v.worst.instance;
  std::string text = "<p class=\"big\">" + ms_text(instance.published) + "</p><p>";
  text += escaped(chain.name) + ", sample " + std::to_string(instance.sample) + " captured at " +
          fixed_text(table_seconds(v, instance.capture), 3) + " s of the run";
  if (chain.latency().bound) {
    text += ": " + percent_text(v.worst.share) + " of its bound of " + ms_text(*chain.latency().bound);
  }
  const char* kind = instance.state == InstanceState::kHeld   ? "ok"
                     : instance.state == InstanceState::kVoid ? "open"
                                                              : "bad";
  text += ". " + tag(name_of(instance.state), kind) + "</p>";
  text += "<p class=\"small\"><b>Cause:</b> " + escaped(cause_in_words(v.run, v.index, v.worst)) + ".</p>";
  return card("Worst frame and its cause", text);
}

std::string age_card(const ReportView& v) {
  HtmlTable table({{"sensor", false}, {"median", true}, {"most", true}, {"until replaced", true}, {"bound", true}});
  for (std::size_t c = 0; c < v.judgement.chains.size(); ++c) {
    if (says_nothing(v.judgement.chains[c])) continue;
    const auto& age = quantity(v.judgement.chains[c], Quantity::kAgeAtOutput);
    const auto& replaced = quantity(v.judgement.chains[c], Quantity::kAgeUntilReplaced);
    std::vector<Duration> values;
    for (const Instance& i : age.instances) values.push_back(i.published);
    const Distribution ages = distribution(std::move(values));
    const ChainJudgement& chain = v.judgement.chains[c];
    std::string sensor = v.run.problem.sensors[v.run.problem.chains[chain.chain].sensor].name;
    if (!chain.context.empty()) sensor += " (" + chain.context + ")";
    table.row({escaped(sensor), measured(age, ages.quantile(0.5)), "<b>" + measured(age, age.published_max) + "</b>",
               measured(replaced, replaced.published_max), or_dash(replaced.bound)});
  }
  return card("Data age at the output",
              "<p class=\"small muted\">How old each sensor's data is when an output appears, and until the next "
              "output replaces it.</p>" +
                  table.html());
}

bool mentions(const std::vector<std::string>& texts, const std::string& what) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(what) != std::string::npos; });
}

// How the slot behind an unfinished job was kept free, and how often that was needed.
std::string isolation_text(const ReportView& v) {
  const std::string& by = v.run.dispatch.rights.isolation;
  if (by.empty()) return "";
  const auto isolated = static_cast<std::uint64_t>(
      std::count_if(v.run.records.begin(), v.run.records.end(),
                    [](const sched::JobRecord& r) { return (r.flags & sched::kFlagIsolated) != 0; }));
  return " Unfinished workers lose their core by <b>" + escaped(by) +
         "</b>: " + (isolated == 0 ? "none did" : plural(isolated, "job did", "jobs did")) + ".";
}

// What the host took from the run, and what it costs to know.
std::string host_line(const ReportView& v) {
  if (v.lockstep) return "";
  Duration stolen, stopped;
  for (const HostStall& stall : v.run.host_stalls) (stall.core < 0 ? stopped : stolen) += stall.lost;
  std::string text = "<p class=\"small\">Taken by the host: ";
  text += stolen.ns == 0 && stopped.ns == 0 ? "nothing was seen" : "";
  if (stolen.ns > 0) text += "<b>" + ms_text(stolen) + "</b> of CPU time by the hypervisor (steal)";
  if (stopped.ns > 0) text += (stolen.ns > 0 ? ", " : "") + ("<b>up to " + ms_text(stopped)) + "</b> process stopped";
  text += ". Keeping account costs " + fixed_text(static_cast<double>(v.run.dispatch.accounting.ns) * 1e-3, 1) +
          " \u00b5s a job";
  std::int64_t last = 0;
  for (const sched::JobRecord& record : v.run.records) last = std::max(last, record.slot_end);
  const double span = static_cast<double>(last) * 1e-9;
  if (v.run.watch_cost.ns > 0 && span > 0) {
    text += " and " + fixed_text(100 * v.run.watch_cost.seconds() / span, 2) + " % of a reserve core";
  }
  return text + ".</p>";
}

std::string machine_card(const ReportView& v) {
  const Environment& e = v.run.environment;
  std::string text;
  const sched::RealtimeRights& rights = v.run.dispatch.rights;
  if (v.lockstep) {
    text += "<p>" + tag("lockstep", "open") +
            " Times are virtual: they check the table, not this machine. Bytes are judged.</p>";
  } else if (rights.refused.empty() && e.warnings.empty() && v.run.rate == 1) {
    text += "<p>" + tag("yes", "ok") + " Real-time rights were granted and nothing suspicious was found.</p>";
  } else {
    text += "<p>" + tag(rights.refused.empty() && v.run.rate == 1 ? "with care" : "deadlines NOT JUDGED", "open") +
            " " + escaped(e.cpu_model) + ", " + plural(static_cast<std::uint64_t>(e.cores), "core", "cores") + ".</p>";
  }
  if (!v.lockstep) {
    std::string granted;
    if (rights.fifo) granted += "real-time priority, ";
    if (rights.affinity) granted += "pinned threads, ";
    if (rights.memory_locked) granted += "locked memory, ";
    text += "<p class=\"small\">Granted: " +
            (granted.empty() ? "nothing, all was refused" : granted.substr(0, granted.size() - 2)) + "." +
            isolation_text(v) + "</p>";
  }
  if (!v.lockstep && !rights.refused.empty() && !mentions(e.warnings, rights.refused)) {
    text += "<p class=\"warning\">Refused: " + escaped(rights.refused) + "</p>";
  }
  text += host_line(v);
  for (const std::string& warning : e.warnings) text += "<p class=\"warning\">" + escaped(warning) + "</p>";
  return card("Can this machine be trusted", text);
}

std::string command_card(const ReportView& v) {
  std::string text;
  const std::vector<std::string> commands = commands_to_try(v.run);
  for (const std::string& command : commands) text += "<pre>" + escaped(command) + "</pre>";
  if (commands.empty()) text = "<p class=\"muted\">The command line was not recorded.</p>";
  return "<div class=\"card\"><h2>Reproduce</h2>" + text + "</div>\n";
}

}  // namespace

std::string verdict_html(const ReportView& v) {
  const char* kind = v.judgement.outcome == Outcome::kPass   ? "pass"
                     : v.judgement.outcome == Outcome::kFail ? "fail"
                                                             : "open";
  std::string out =
      fmt::format("<section class=\"verdict {}\" id=\"verdict\"><div><span class=\"badge\">{}</span></div><div>", kind,
                  name_of(v.judgement.outcome));
  out += "<p class=\"answer\">" + answer(v) + "</p>\n";
  out += figures(v);
  if (!v.judgement.reasons.empty()) {
    out += "<ul class=\"small\">";
    for (const std::string& reason : v.judgement.reasons) out += "<li>" + escaped(reason) + "</li>";
    out += "</ul>";
  }
  out += "</div></section>\n<div class=\"cards\">" + slack_card(v) + worst_card(v) + age_card(v) + machine_card(v) +
         "</div>\n" + command_card(v);
  return out;
}

}  // namespace takt::pipeline
