#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "pipeline/report/causes.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/html.h"
#include "pipeline/report/report.h"
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
  } else if (faults_are_judged(v.run) && !v.run.faults->met()) {
    text = "It did not bear its injected faults as expected.";
  } else if (v.judgement.outcome == Outcome::kFail) {
    text = "A requirement failed.";
  } else if (!admitted) {
    text = "It does not fit: a bound is above its limit.";
  } else if (v.judgement.outcome == Outcome::kNotJudged) {
    text = "By proof it fits; whether it held could not be judged in this run.";
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
  const auto link = [](const char* section, const std::string& name) {
    return fmt::format("<a href=\"#{}\">{}</a>", section, name);
  };
  const auto share = v.judgement.share_held();
  return "<ul class=\"figures\">" + figure(share ? percent_text(*share) : "\u2013", "of chain instances held") +
         figure(count_text(v.judgement.held), "held") +
         figure(count_text(v.judgement.void_count), link("assumptions", "void")) +
         figure(count_text(v.judgement.violated), link("assumptions", "violated")) +
         figure(count_text(v.judgement.misses.size()), link("jobs", "jobs not ok")) +
         figure(count_text(v.judgement.fill + v.judgement.fill_jobs), "pipeline fill") +
         "</ul>\n<p class=\"small muted\">A chain instance is one sample on its way to an output: <em>held</em> within "
         "its "
         "proved bound, <em>void</em> where something that the bound stands on was seen to break on its way, "
         "<em>violated</em> beyond the bound though nothing was.</p>";
}

// What this run is beside a plain one: a reproduction, one with injected faults.
std::string origin_html(const ReportView& v) {
  const RunData& run = v.run;
  std::string text;
  if (run.repeats) {
    std::string folder = "another run";
    for (const HashedInput& input : run.inputs) {
      if (input.role == "repeated run") folder = "the run in <b>" + escaped(input.path) + "</b>";
    }
    text += tag("reproduction", "") + " The decisions of " + folder + " once more, in virtual time; that run was " +
            escaped(run.repeats->outcome) + ".";
    if (run.faults)
      text += " It had the <a href=\"#faults\">injected faults</a> <b>" + escaped(run.faults->name) + "</b>.";
  } else if (faults_are_judged(run)) {
    const bool met = run.faults->met();
    text += tag(met ? "borne" : "NOT borne", met ? "ok" : "bad") + " <a href=\"#faults\">Injected faults</a> " +
            escaped(expectations_met(*run.faults)) + ".";
  }
  return text.empty() ? "" : "<p class=\"small\">" + text + "</p>\n";
}

// Of the stages with the most jobs that were not ok: how many, and how it began.
std::string misses_by_stage(const ReportView& v) {
  struct OfStage {
    const Miss* first = nullptr;
    std::size_t all = 0;
    std::map<sched::JobClass, std::size_t> classes;
  };
  std::map<std::uint32_t, OfStage> stages;
  for (const Miss& miss : v.judgement.misses) {
    OfStage& of = stages[miss.record->stage];
    if (of.first == nullptr) of.first = &miss;
    ++of.all;
    ++of.classes[miss.record->job_class];
  }
  std::vector<const OfStage*> order;
  order.reserve(stages.size());
  for (const auto& [stage, of] : stages) order.push_back(&of);
  std::stable_sort(order.begin(), order.end(), [](const OfStage* a, const OfStage* b) { return a->all > b->all; });
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    const sched::JobRecord& first = *order[i]->first->record;
    std::string classes;
    for (const auto& [job_class, count] : order[i]->classes) {
      classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", count_text(count), sched::name_of(job_class));
    }
    const std::string name = escaped(v.run.problem.stages[first.stage].name);
    text += fmt::format("<li>{}: {}; {}{}#{}: {}</li>", name, classes, order[i]->all > 1 ? "first " : "", name,
                        first.job, escaped(order[i]->first->cause));
  }
  return text;
}

// The chains with the least room first.
std::string slack_card(const ReportView& v) {
  constexpr std::size_t kMost = 8;
  std::vector<const ChainJudgement*> order;
  for (const ChainJudgement& chain : v.judgement.chains) {
    if (!says_nothing(chain)) order.push_back(&chain);
  }
  const auto used = [](const ChainJudgement* chain) {
    const QuantityJudgement& latency = chain->latency();
    return latency.bound && latency.limit && latency.limit->ns > 0 ? latency.bound->ms() / latency.limit->ms() : 0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const ChainJudgement* a, const ChainJudgement* b) { return used(a) > used(b); });
  HtmlTable table({{"chain", false}, {"bound", true}, {"limit", true}, {"slack", true}, {"held", true}});
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    const QuantityJudgement& latency = order[i]->latency();
    std::string slack = "\u2013";
    if (latency.bound && latency.limit) slack = "<b>" + ms_text(*latency.limit - *latency.bound) + "</b>";
    std::string held = "\u2013";
    if (latency.judged() > 0) held = fmt::format("{} of {}", latency.held, latency.judged());
    if (latency.held < latency.judged()) held = tag(held, latency.violated > 0 ? "bad" : "open");
    table.row({escaped(order[i]->name), or_dash(latency.bound), or_dash(latency.limit), slack, held});
  }
  std::string text =
      "<p class=\"small muted\">Worst-case latency from stamp to publication, proved before the run; least "
      "room first.</p>" +
      table.html();
  if (order.size() > kMost) {
    text += fmt::format("<p class=\"small muted\">\u2026 and {} more under <a href=\"#chains\">Chains</a>.</p>",
                        order.size() - kMost);
  }
  return card("Does it fit, with what slack", text);
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
    if (v.judgement.chains[c].from != v.judgement.chains[c].to) continue;  // changes of mode: under Chains
    const auto& age = quantity(v.judgement.chains[c], Quantity::kAgeAtOutput);
    const auto& replaced = quantity(v.judgement.chains[c], Quantity::kAgeUntilReplaced);
    std::vector<Duration> values;
    for (const Instance& i : age.instances) values.push_back(i.published);
    const Distribution ages = distribution(std::move(values));
    const ChainJudgement& chain = v.judgement.chains[c];
    std::string sensor = v.run.problem.sensors[v.run.problem.chains[chain.chain].sensor].name;
    if (!chain.context.empty()) sensor += " (" + chain.context + ")";
    std::string until = measured(replaced, replaced.published_max);
    if (replaced.bound && replaced.published_max > *replaced.bound) {
      until = tag(until, replaced.violated > 0 ? "bad" : "open");
    }
    table.row({escaped(sensor), measured(age, ages.quantile(0.5)), "<b>" + measured(age, age.published_max) + "</b>",
               until, or_dash(replaced.bound)});
  }
  return card("Data age at the output",
              "<p class=\"small muted\">How old each sensor's data is when an output appears, and at most until the "
              "next output replaces it, which is what the bound is of.</p>" +
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

// A command line that breaks between its words alone: a browser also breaks behind a hyphen.
std::string words(const std::string& line) {
  std::string out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    out += (at == 0 ? "<span>" : " <span>") + escaped(line.substr(at, end - at)) + "</span>";
    at = end + 1;
  }
  return out;
}

// What to do with the answer, then commands.
std::string next_card(const ReportView& v) {
  const RunData& run = v.run;
  std::string text;
  const auto step = [&text](const std::string& html) { text += "<li>" + html + "</li>"; };
  if (v.judgement.violated > 0) {
    step(
        "Keep the run folder: <a href=\"#assumptions\">which instances exceeded their bound</a> is what an error "
        "report "
        "of takt needs.");
  }
  if (v.judgement.outcome == Outcome::kFail) step("<a href=\"#requirements\">Which requirement failed</a>.");
  if (v.judgement.void_count > 0) {
    step("<a href=\"#assumptions\">Which assumptions were broken</a>, and <a href=\"#jobs\">why, job by job</a>.");
  }
  if (v.lockstep && !run.repeats)
    step("Deadlines are judged in real time: the same command without <code>--lockstep</code>.");
  if (!v.lockstep && !run.dispatch.rights.refused.empty()) {
    step("<code>takt doctor</code> says which rights this machine refuses and how to grant them.");
  }
  const std::vector<BudgetUse> uses = budget_uses(run);
  const bool declared = std::any_of(uses.begin(), uses.end(), [](const BudgetUse& use) {
    return !use.admitted.empty() && use.budget.provenance == sched::Provenance::kDeclared;
  });
  if (declared) {
    step(
        "Budgets of the pipeline file are declared: <code>takt profile</code> measures them on this machine, "
        "<code>--budgets</code> takes them.");
  }
  step("<code>trace.pftrace</code> in the run folder opens in Perfetto, <code>results.mcap</code> in Foxglove.");
  text = "<ul class=\"small\">" + text + "</ul>";
  for (const Command& command : commands_to_try(run)) {
    text += "<p class=\"small caption\">" + escaped(command.what) + "</p><pre>" + words(command.line) + "</pre>";
  }
  return "<div class=\"card\"><h2>Next</h2>" + text + "</div>\n";
}

}  // namespace

std::string verdict_html(const ReportView& v) {
  const char* kind = v.judgement.outcome == Outcome::kPass   ? "pass"
                     : v.judgement.outcome == Outcome::kFail ? "fail"
                                                             : "open";
  std::string out =
      fmt::format("<section class=\"verdict {}\" id=\"verdict\"><div><span class=\"badge\">{}</span></div><div>", kind,
                  name_of(v.judgement.outcome));
  out += "<p class=\"answer\">" + answer(v) + "</p>\n" + origin_html(v);
  out += figures(v);
  std::string why;
  for (const std::string& reason : v.judgement.reasons) why += "<li>" + escaped(reason) + "</li>";
  why += misses_by_stage(v);
  if (!why.empty()) out += "<ul class=\"small\">" + why + "</ul>";
  out += "</div></section>\n<div class=\"cards columns\"><div>" + slack_card(v) + age_card(v) + "</div><div>" +
         worst_card(v) + machine_card(v) + "</div></div>\n" + next_card(v);
  return out;
}

}  // namespace takt::pipeline
