#include "pipeline/report/report_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/html.h"
#include "pipeline/report/report_view.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {

std::string memory_html(const ReportView& v) {
  std::uint64_t largest = 1;
  for (const transport::Pool& pool : v.run.pools.pools) largest = std::max(largest, pool.chunk_bytes * pool.chunks);
  HtmlTable table(
      {{"chunk size", true}, {"chunks", true}, {"most used", true}, {"pool", true}, {"map", false}, {"topics", false}});
  for (const transport::Pool& pool : v.run.pools.pools) {
    std::optional<std::uint32_t> most;
    for (const transport::PoolUse& use : v.run.pool_use) {
      if (use.chunk_bytes == pool.chunk_bytes) most = use.most_used;
    }
    const std::uint64_t bytes = pool.chunk_bytes * pool.chunks;
    const double width = 100.0 * static_cast<double>(bytes) / static_cast<double>(largest);
    const double used = most && pool.chunks > 0 ? 100.0 * *most / pool.chunks : 0;
    std::string topics;
    for (const std::string& topic : pool.topics) topics += (topics.empty() ? "" : ", ") + topic;
    table.row({bytes_text(pool.chunk_bytes), std::to_string(pool.chunks), most ? std::to_string(*most) : "\u2013",
               bytes_text(bytes),
               fmt::format(
                   "<span class=\"pool\" style=\"display:block;width:{:.1f}%\"><i style=\"width:{:.1f}%\"></i></span>",
                   width, used),
               escaped(topics)});
  }
  std::uint64_t copied = 0, faults = 0, major = 0, allocations = 0;
  for (const StageStatistics& s : v.stages) {
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
  figure(bytes_text(v.run.pools.user_bytes), "in pools");
  figure(bytes_text(v.run.pools.management_bytes), "management of the transport");
  figure(bytes_text(v.run.resident_bytes), "resident");
  figure(v.run.allocation_guard ? count_text(allocations) : "not counted",
         "allocations in timed threads after warm-up");
  figure(v.run.allocation_guard ? bytes_text(copied) : "not counted", "most copied in one job");
  figure(count_text(faults), "page faults after warm-up");
  figure(count_text(major), "of them major");
  return text + "</ul>";
}

std::string digests_html(const ReportView& v) {
  HtmlTable topics({{"topic", false}, {"chunks", true}, {"digest", false}, {"compared", false}});
  for (const TopicDigest& d : v.run.digests) {
    std::string compared = tag("not asked", "");
    if (d.compared == "equal") compared = tag("equal", "ok");
    if (d.compared == "differs") compared = tag("differs", "bad");
    if (d.compared.rfind("NOT COMPARED", 0) == 0)
      compared = tag("NOT COMPARED", "open") + escaped(d.compared.substr(12));
    topics.row(
        {escaped(d.topic), count_text(d.chunks), "<code class=\"hash\">" + d.digest.hex() + "</code>", compared});
  }
  HtmlTable inputs({{"input", false}, {"file", false}, {"XXH3-128", false}});
  for (const HashedInput& i : v.run.inputs) {
    inputs.row({escaped(i.role), "<span class=\"hash\">" + escaped(i.path) + "</span>",
                "<code class=\"hash\">" + i.digest.hex() + "</code>"});
  }
  inputs.row({"schedule", "", "<code class=\"hash\">" + v.run.schedule.hash().hex() + "</code>"});
  return lead(
             "One digest per topic over every published chunk in job order (payload and identity fields), and the "
             "inputs that decide them: equal inputs give equal bytes, whatever the load or the machine's speed. "
             "<em>Compared</em> with those of a file (<code>--digests</code>) or of the run that was repeated "
             "(<code>--reproduce</code>).") +
         topics.html() + "<h3>Inputs</h3>" + inputs.html();
}

std::string environment_html(const ReportView& v) {
  const Environment& e = v.run.environment;
  const sched::RealtimeRights& rights = v.run.dispatch.rights;
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
  if (v.lockstep) {
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
  text += "</dl>";
  if (!v.run.schedule_notes.empty()) text += "<h3>Notes of the run</h3><ul class=\"small\">";
  for (const std::string& note : v.run.schedule_notes) text += "<li>" + escaped(note) + "</li>";
  return text + (v.run.schedule_notes.empty() ? "" : "</ul>");
}

}  // namespace takt::pipeline
