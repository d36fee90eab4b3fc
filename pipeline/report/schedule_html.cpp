#include "pipeline/report/schedule_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "pipeline/report/gantt.h"
#include "pipeline/report/html.h"
#include "pipeline/report/style.h"
#include "pipeline/report/text.h"
#include "scheduler/analysis/validate.h"

namespace takt::pipeline {
namespace {

using sched::Answer;
using sched::Choice;
using sched::Problem;
using sched::Quantity;
using sched::Schedule;
using sched::Slot;
using sched::Verdict;

constexpr double kWide = 1120, kNarrow = 340;   // widths of the drawing, for a desk and for a telephone
constexpr std::size_t kMostNarrowSlots = 1000;  // nobody reads more on a telephone
constexpr std::size_t kMostRows = 200;          // of the table of slots; --json has all

std::string exact_ms(Duration d) { return fmt::format("{:.3f} ms", d.ms()); }

std::string hz_text(const Problem& problem, std::int64_t rate) {
  return fmt::format("{:.4g} Hz", static_cast<double>(rate) / problem.hyperperiod.seconds());
}

// The cores of a slot, or its unit.
std::string place_text(const Problem& problem, const Slot& slot) {
  if (slot.unit) return problem.board.units[*slot.unit].name;
  std::string out;
  for (const std::uint32_t core : slot.cores) out += (out.empty() ? "" : " + ") + problem.board.cores[core].name;
  return out;
}

std::string job_text(const Schedule& schedule, const Slot& slot) {
  const std::size_t segments = sched::segments_of(schedule.choices[slot.stage].budget).size();
  return segments > 1 ? fmt::format("{}, part {} of {}", slot.job, slot.segment + 1, segments)
                      : std::to_string(slot.job);
}

// Beyond the colours that all pictures share each stage gets one of its own: hues at golden angles, on three levels.
constexpr std::uint32_t kSharedColours = 8;
std::string own_colour(std::uint32_t stage) {
  constexpr int kSaturation[] = {48, 62, 38};
  constexpr int kLightness[] = {64, 57, 76};
  return fmt::format("hsl({:.0f} {}% {}%)", std::fmod(stage * 137.508, 360.0), kSaturation[stage % 3],
                     kLightness[stage % 3]);
}
std::string colour_class(std::uint32_t stage) {
  return stage < kSharedColours ? stage_class(stage) : fmt::format("c{}", stage);
}
std::string colour_of(std::uint32_t stage) {
  return stage < kSharedColours ? fmt::format("var(--s{})", stage) : own_colour(stage);
}
std::string own_colours(std::size_t stages) {
  std::string out;
  for (std::uint32_t stage = kSharedColours; stage < stages; ++stage) {
    out += fmt::format("svg .c{}{{--c:{}}}", stage, own_colour(stage));
  }
  return out.empty() ? "" : "<style>" + out + "</style>\n";
}

class TablePicture {
 public:
  // Drawn for a page of that many pixels: text keeps its size.
  TablePicture(const Problem& problem, const Schedule& schedule, double width)
      : problem_(problem), schedule_(schedule), width_(width), wakeups_(problem.stages.size(), 0) {
    for (const Slot& slot : schedule.slots) {
      for (const std::uint32_t core : slot.cores) {
        wakeups_[slot.stage] = std::max(wakeups_[slot.stage], problem.board.cores[core].wakeup_window.ns);
      }
    }
    for (const sched::Core& core : problem.board.cores) lanes_.push_back(core.name);
    for (const sched::Unit& unit : problem.board.units) lanes_.push_back(unit.name);
    for (const std::string& name : lanes_) {
      left_ = std::max(left_, 14 + kGlyph * 1.12 * static_cast<double>(name.size()));
    }
    left_ = std::min(left_, width_ / 6.5);
  }

  std::string draw() {
    const double bottom = lane_top(lanes_.size());
    Svg svg(width_, bottom + kAxis,
            fmt::format("Slots of one hyperperiod on {} cores and {} units", problem_.board.cores.size(),
                        problem_.board.units.size()),
            "gantt");
    axis(svg, bottom);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      svg.text(0, lane_top(lane) + 20, lanes_[lane], "lane strong");
      svg.rect(left_, lane_top(lane), width_ - left_ - kRight, kLane, "track");
    }
    for (const Slot& slot : schedule_.slots) {
      // What crosses the end goes on at the beginning.
      for (sched::Tick turn = slot.start / schedule_.clock.ticks; turn * schedule_.clock.ticks < slot.end; ++turn) {
        draw_slot(svg, slot, -turn * problem_.hyperperiod.ns);
      }
    }
    return svg.str();
  }

 private:
  static constexpr double kRight = 10, kLane = 30, kGap = 10, kAxis = 24, kGlyph = 5.9, kLetter = 8;

  [[nodiscard]] double x(std::int64_t t) const {
    const std::int64_t within = std::clamp<std::int64_t>(t, 0, problem_.hyperperiod.ns);
    return left_ +
           static_cast<double>(within) / static_cast<double>(problem_.hyperperiod.ns) * (width_ - left_ - kRight);
  }
  static double lane_top(std::size_t lane) { return 8 + static_cast<double>(lane) * (kLane + kGap); }

  void axis(Svg& svg, double bottom) const {
    const double length_ms = problem_.hyperperiod.ms();
    const double most = width_ / 90;  // marks
    double step = 0.01;
    for (double decade = 0.01; decade <= 1e6 && length_ms / step > most; decade *= 10) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        step = decade * digit;
        if (length_ms / step <= most) break;
      }
    }
    for (int mark = 0; mark * step <= length_ms * (1 + 1e-9); ++mark) {
      const double ms = mark * step;
      const double at = x(static_cast<std::int64_t>(ms * 1e6));
      svg.line(at, 4, at, bottom - 4, "grid");
      const bool last = ms + step > length_ms * (1 + 1e-9);
      svg.text(last ? at + 4 : at, bottom + 12, fmt::format("{:g}{}", ms, ms == 0 ? " ms" : ""), "axis",
               last ? Svg::Anchor::kEnd : Svg::Anchor::kMiddle);
    }
  }

  void draw_slot(Svg& svg, const Slot& slot, std::int64_t shift) const {
    const std::int64_t from = schedule_.clock.start_at(0, slot.start).ns + shift;
    const std::int64_t to = schedule_.clock.end_at(0, slot.end).ns + shift;
    const Choice& choice = schedule_.choices[slot.stage];
    const sched::Segment segment = sched::segments_of(choice.budget)[slot.segment];
    const std::int64_t wakeup = wakeups_[slot.stage];  // of the home cores, also where a unit works
    const std::string& name = problem_.stages[slot.stage].name;
    const std::string title =
        fmt::format("{} job {}: slot {} to {} ms, budget {}", name, slot.job, fixed_text(Duration{from}.ms(), 3),
                    fixed_text(Duration{to}.ms(), 3), exact_ms(segment.time));
    std::vector<std::size_t> lanes(slot.cores.begin(), slot.cores.end());
    if (slot.unit) lanes.push_back(problem_.board.cores.size() + *slot.unit);
    for (const std::size_t lane : lanes) {
      const double y = lane_top(lane) + 2;
      const double left = x(from), width = x(to) - left;
      svg.rect(left, y, width, kLane - 4, "slot " + colour_class(slot.stage), title);
      const double begin = x(from + wakeup), room = x(from + wakeup + segment.time.ns) - begin;
      if (room > 0.5) svg.rect(begin, y + 3, room, kLane - 10, "run " + colour_class(slot.stage), title);
      const std::string label = fitted(name, room);
      if (!label.empty()) {
        svg.text(begin + 4, y + 17, label, "run-label");
      } else if (width >= kLetter) {
        const std::string letter(1, sched::letter_of(slot.stage));
        svg.text(left + width / 2, y + 17, letter, room >= kLetter ? "run-label" : "axis", Svg::Anchor::kMiddle);
      }
    }
  }

  static std::string fitted(const std::string& text, double width) {
    const auto glyphs = static_cast<std::size_t>(std::max(0.0, (width - 6) / kGlyph));
    if (text.size() <= glyphs) return text;
    return glyphs < 4 ? "" : text.substr(0, glyphs - 1) + "\u2026";
  }

  const Problem& problem_;
  const Schedule& schedule_;
  double width_;
  std::vector<std::string> lanes_;     // cores, then units
  std::vector<std::int64_t> wakeups_;  // by stage
  double left_ = 0;
};

// How much of a limit a bound takes.
std::string share_bar(Duration bound, std::optional<Duration> limit) {
  if (!limit || limit->ns <= 0) return "";
  constexpr double kWidth = 240, kHeight = 30;
  const double share = static_cast<double>(bound.ns) / static_cast<double>(limit->ns);
  const double scale = (kWidth - 4) / std::max(1.0, share);
  Svg svg(kWidth, kHeight, fmt::format("{} of the limit", percent_text(share)), "bar");
  svg.rect(2, 9, scale, 12, "track");
  svg.rect(2, 9, scale * share, 12, share > 1 ? "published over" : "completed");
  svg.rect(2 + scale - 2, 5, 2, 20, "limit-mark");
  return svg.str();
}

struct Tightest {
  const sched::ChainBound* bound = nullptr;
  std::size_t quantity = 0;
  double share = 0;
};

using Sections = std::vector<std::pair<std::string, std::string>>;  // id, title

std::string document(const std::string& name, const std::string& verdict, const std::string& about,
                     const Sections& sections, const std::string& body) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n";
  out += "<title>takt schedule: " + escaped(name) + ", " + verdict + "</title>\n";
  out += "<style>" + std::string(report_style()) + "</style></head><body>\n";
  out += "<header><h1>" + escaped(name) + "</h1>\n<p class=\"sub\">takt schedule on " + about + "</p>\n<nav>";
  for (const auto& [id, title] : sections) out += "<a href=\"#" + id + "\">" + escaped(title) + "</a> ";
  return out + "</nav></header>\n<main>\n" + body +
         "</main>\n<footer><p>The same answer in the terminal: takt schedule. For machines: --json. A table is shown "
         "only after an independent validator has accepted it, a proof only after an independent checker has.</p>"
         "</footer>\n</body></html>\n";
}

std::string about(const Problem& problem) {
  return "board <b>" + escaped(problem.board.name) + "</b>, " + plural(problem.board.cores.size(), "core", "cores") +
         ", " + plural(problem.stages.size(), "stage", "stages") + ", " +
         plural(problem.chains.size(), "chain", "chains") +
         fmt::format(", hyperperiod {:g} ms", problem.hyperperiod.ms());
}

// "FEASIBLE" and the class of the box around it.
std::pair<std::string, const char*> badge(Verdict verdict) {
  std::string word = sched::name_of(verdict);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  return {word, verdict == Verdict::kFeasible ? "pass" : verdict == Verdict::kInfeasible ? "fail" : "open"};
}

class Page {
 public:
  Page(const Problem& problem, const Answer& answer, const std::string& command, const sched::Beside& beside)
      : problem_(problem), answer_(answer), command_(command), beside_(beside) {
    if (answer.schedule) scale_ = sched::budget_scale(problem, *answer.schedule);
  }

  // All sections. `prefix` and `mode` tell those of one mode from those of the next; "" without modes.
  void fill(const std::string& prefix, const std::string& mode) {
    prefix_ = prefix;
    mode_ = mode;
    verdict();
    remedies();
    if (answer_.schedule) {
      gantt();
      chains();
      disparities();
      skips();
      stages();
      objective();
      cores();
      others();
      slots();
    }
    if (mode.empty()) reproduce();
  }
  [[nodiscard]] const std::string& text() const { return out_; }
  [[nodiscard]] const Sections& sections() const { return sections_; }

 private:
  void section(const std::string& id, const std::string& title, const std::string& content) {
    if (mode_.empty()) sections_.emplace_back(id, title);
    out_ += "<section id=\"" + prefix_ + id + "\"><h2>" + escaped(mode_.empty() ? title : mode_ + ": " + title) +
            "</h2>\n" + content + "</section>\n";
  }
  static std::string lead(const std::string& text) { return "<p class=\"lead small\">" + escaped(text) + "</p>\n"; }
  static std::string list(const std::vector<std::string>& items) {
    if (items.empty()) return "";
    std::string out = "<ul class=\"small\">";
    for (const std::string& item : items) out += "<li>" + escaped(item) + "</li>";
    return out + "</ul>\n";
  }

  [[nodiscard]] Tightest tightest() const {
    Tightest out;
    for (const sched::ChainBound& bound : answer_.schedule->bounds) {
      for (std::size_t q = 0; q < sched::kQuantities; ++q) {
        const std::optional<Duration>& limit = problem_.chains[bound.chain].limits[q];
        if (!limit) continue;
        const double share = static_cast<double>(bound.bounds[q].ns) / static_cast<double>(limit->ns);
        if (share > out.share) out = {&bound, q, share};
      }
    }
    return out;
  }

  void verdict() {
    sections_.emplace_back(prefix_ + "verdict", mode_.empty() ? "Answer" : "Mode " + mode_);
    const auto [word, kind] = badge(answer_.verdict);
    out_ +=
        fmt::format("<section class=\"verdict {}\" id=\"{}verdict\"><div><span class=\"badge\">{}</span></div><div>",
                    kind, prefix_, word);
    if (!mode_.empty()) out_ += "<h2>Mode " + escaped(mode_) + ", " + about(problem_) + "</h2>\n";
    std::string sentence = answer_.reason;
    if (answer_.verdict == Verdict::kFeasible) {
      sentence = "Every limit is met.";
      if (const Tightest t = tightest(); t.bound != nullptr) {
        const sched::Chain& chain = problem_.chains[t.bound->chain];
        sentence += fmt::format(" The tightest: {} of chain {}, at most {} of {}, {} left.",
                                sched::name_of(static_cast<Quantity>(t.quantity)), chain.name,
                                exact_ms(t.bound->bounds[t.quantity]), exact_ms(*chain.limits[t.quantity]),
                                exact_ms(*chain.limits[t.quantity] - t.bound->bounds[t.quantity]));
      }
    }
    out_ += "<p class=\"answer\">" + escaped(sentence) + "</p>\n";
    if (answer_.schedule) {
      const Schedule& schedule = *answer_.schedule;
      out_ += "<ul class=\"figures\">";
      if (const Tightest t = tightest(); t.bound != nullptr) {
        out_ += figure(percent_text(t.share), "of the tightest limit");
      }
      if (scale_.all > 0) {
        out_ += figure(fmt::format("x {:.3f}", scale_.all), scale_.all < 1
                                                                ? "all budgets, for this table to meet its limits"
                                                                : "all budgets, with this table kept");
      }
      if (!answer_.levels.empty()) {
        out_ += figure(percent_text(answer_.levels.front().gap()), "gap to what no valid table can be better than");
      }
      out_ += figure(count_text(schedule.slots.size()), "slots per hyperperiod") + "</ul>";
    }
    if (answer_.certificate) {
      out_ +=
          "<p class=\"small\">Proved: a certificate that <code>--certificate FILE</code> writes and "
          "<code>--check FILE</code> replays without any search.</p>\n";
    }
    if (answer_.cut_by_time && beside_.interrupted) {
      out_ += "<p class=\"warning\">Interrupted: this is what the search had by then.</p>\n";
    } else if (answer_.cut_by_time) {
      out_ += "<p class=\"warning\">Not reproducible: a limit in seconds ended the search; use --nodes.</p>\n";
    }
    out_ += list(answer_.notes) + "</div></section>\n";
  }
  static std::string figure(const std::string& value, const std::string& what) {
    return "<li class=\"figure\"><b>" + escaped(value) + "</b><span>" + escaped(what) + "</span></li>";
  }

  void remedies() {
    if (beside_.remedies.empty()) return;
    HtmlTable table({{"what would fit"}, {"as a question"}});
    for (const sched::Remedy& remedy : beside_.remedies) {
      table.row({escaped(remedy.words),
                 remedy.change.empty() ? "\u2013" : "<code>--what-if " + escaped(remedy.change) + "</code>"});
    }
    section("remedies", "What would fit",
            lead("Each by itself, and each was tried: with it a table was found.") + table.html());
  }

  void gantt() {
    const std::size_t stages = problem_.stages.size();
    std::string legend = "<p class=\"legend\">";
    for (std::uint32_t s = 0; s < std::min(stages, sched::kLetters); ++s) {
      legend += fmt::format("<span><i class=\"key letter\" style=\"background:{}\">{}</i>{}</span> ", colour_of(s),
                            sched::letter_of(s), escaped(problem_.stages[s].name));
    }
    if (stages > sched::kLetters) legend += fmt::format("<span>#: {} more</span>", stages - sched::kLetters);
    const Schedule& schedule = *answer_.schedule;
    std::string drawings = "<div class=\"wide-drawing\">" + table_svg(problem_, schedule) + "</div>";
    if (schedule.slots.size() <= kMostNarrowSlots) {
      drawings = "<div class=\"roomy\">" + drawings + "</div><div class=\"narrow\">" +
                 TablePicture(problem_, schedule, kNarrow).draw() + "</div>";
    }
    section("gantt", "Table",
            lead("One hyperperiod, which repeats. Solid: the budget; around it the wake-up and the publish window of "
                 "the board. A job of several cores stands in each of their lanes; one that crosses the end goes on "
                 "at the beginning. A slot that is too short for its name has the letter of its stage.") +
                own_colours(stages) + "<figure>" + drawings + "</figure>\n" + legend + "</p>");
  }

  void chains() {
    if (problem_.chains.empty()) return;
    HtmlTable table({{"chain"}, {"quantity"}, {"bound", true}, {"limit", true}, {"left", true}, {"of the limit"}});
    std::string terms = "<dl>";
    for (const sched::ChainBound& bound : answer_.schedule->bounds) {
      const sched::Chain& chain = problem_.chains[bound.chain];
      for (std::size_t q = 0; q < sched::kQuantities; ++q) {
        const std::optional<Duration>& limit = chain.limits[q];
        const bool broken = limit && bound.bounds[q] > *limit;
        table.row({escaped(chain.name), sched::name_of(static_cast<Quantity>(q)), exact_ms(bound.bounds[q]),
                   limit ? exact_ms(*limit) : "\u2013",
                   limit ? (broken ? "<b class=\"tag bad\">" : "<b>") + exact_ms(*limit - bound.bounds[q]) + "</b>"
                         : "\u2013",
                   share_bar(bound.bounds[q], limit)});
      }
      terms += "<dt>" + escaped(chain.name) + "</dt><dd>" + escaped(bound.terms) + "</dd>";
    }
    section("chains", "Bounds",
            lead("Under the listed assumptions no instance can be above its bound: latency from the stamp to the first "
                 "output, reaction with the wait for the next sample, age at the output, and until it is replaced.") +
                table.html() + "<h3>How the worst latency adds up</h3>" + terms + "</dl>");
  }

  void disparities() {
    if (answer_.schedule->disparities.empty()) return;
    HtmlTable table({{"disparity"}, {"stage"}, {"bound", true}, {"limit", true}, {"left", true}, {"of the limit"}});
    std::string terms = "<dl>";
    for (std::size_t i = 0; i < answer_.schedule->disparities.size(); ++i) {
      const sched::Disparity& limit = problem_.disparities[i];
      const sched::DisparityBound& bound = answer_.schedule->disparities[i];
      table.row({escaped(limit.name), escaped(problem_.stages[limit.stage].name), exact_ms(bound.bound),
                 exact_ms(limit.limit), exact_ms(limit.limit - bound.bound), share_bar(bound.bound, limit.limit)});
      terms += "<dt>" + escaped(limit.name) + "</dt><dd>" + escaped(bound.terms) + "</dd>";
    }
    section("disparity", "Disparity of stamps",
            lead("How far apart the samples lie that one job brings together.") + table.html() + terms + "</dl>");
  }

  void skips() {
    HtmlTable table(
        {{"chain"}, {"one job skipped of"}, {"reaction", true}, {"age at output", true}, {"until replaced", true}});
    std::size_t rows = 0;
    for (const sched::Chain& chain : problem_.chains) rows += chain.stages.size();
    if (rows == 0 || rows > 40) return;
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      for (const std::uint32_t stage : problem_.chains[c].stages) {
        std::vector<std::int64_t> skipped(problem_.stages.size(), 0);
        skipped[stage] = 1;
        const sched::ChainBound bound = sched::walk_with_skips(problem_, *answer_.schedule, c, skipped);
        table.row({escaped(problem_.chains[c].name), escaped(problem_.stages[stage].name), exact_ms(bound.bounds[1]),
                   exact_ms(bound.bounds[2]), exact_ms(bound.bounds[3])});
      }
    }
    section("skips", "If a job is skipped", lead("Its consumers use the output before.") + table.html());
  }

  void stages() {
    HtmlTable table(
        {{"stage"}, {"variant"}, {"rate", true}, {"cores", true}, {"budget", true}, {"may grow to", true}, {"from"}});
    for (std::uint32_t s = 0; s < problem_.stages.size(); ++s) {
      const Choice& choice = answer_.schedule->choices[s];
      const sched::Budget& budget = choice.budget;
      std::string from = sched::name_of(budget.provenance);
      if (budget.samples > 0) {
        from += fmt::format(", {} x {:.2f}, {}", exact_ms(budget.high_water), budget.margin,
                            plural(budget.samples, "sample", "samples"));
      }
      table.row({escaped(problem_.stages[s].name), escaped(problem_.stages[s].variants[choice.variant].name),
                 hz_text(problem_, choice.rate), std::to_string(budget.cores), exact_ms(budget.time),
                 scale_.stages[s] > 0 ? fmt::format("x {:.3f}", scale_.stages[s]) : "\u2013", escaped(from)});
    }
    section("stages", "Stages",
            lead("May grow to: the largest factor on this budget alone under which every slot start and every limit "
                 "still holds.") +
                table.html());
  }

  void objective() {
    if (answer_.levels.empty()) return;
    HtmlTable table(
        {{"objective, most important first"}, {"this table", true}, {"no table below", true}, {"gap", true}});
    for (const sched::Level& level : answer_.levels) {
      table.row({escaped(level.name), fixed_text(level.value, 4), fixed_text(level.bound, 4),
                 level.bound > 0 || level.value <= 0 ? fmt::format("{:.1f} %", level.gap() * 100) : "\u2013"});
    }
    section("objective", "How good the table is", table.html());
  }

  void cores() {
    HtmlTable table({{"core"},
                     {"planned", true},
                     {"reserve", true},
                     {"free", true},
                     {"longest busy stretch", true},
                     {"fullest second", true}});
    for (const sched::CoreLoad& load : sched::core_loads(problem_, *answer_.schedule)) {
      table.row({escaped(load.core), percent_text(load.share), percent_text(load.reserve),
                 percent_text(1 - load.share - load.reserve), exact_ms(load.longest_busy),
                 percent_text(load.fullest_second)});
    }
    section("cores", "Cores", table.html());
    if (problem_.board.units.empty()) return;
    HtmlTable units({{"unit"}, {"planned", true}, {"guards", true}, {"free", true}});
    for (const sched::UnitLoad& load : sched::unit_loads(problem_, *answer_.schedule)) {
      const double guards = static_cast<double>(load.guards.ns) / static_cast<double>(problem_.hyperperiod.ns);
      units.row(
          {escaped(load.unit), percent_text(load.share - guards), percent_text(guards), percent_text(1 - load.share)});
    }
    section("units", "Units", units.html());
  }

  void others() {
    if (beside_.comparisons.empty()) return;
    HtmlTable table({{"reaction of chain"},
                     {"this table", true},
                     {"first found", true},
                     {"epoch barriers", true},
                     {"Davare 2007", true},
                     {"Duerr 2019", true},
                     {"Kloda 2018", true}});
    const auto text = [](const std::optional<Duration>& d) { return d ? exact_ms(*d) : std::string("\u2013"); };
    for (const sched::Comparison& c : beside_.comparisons) {
      table.row({escaped(problem_.chains[c.chain].name), exact_ms(c.table), text(c.first_found), text(c.epoch_barriers),
                 exact_ms(c.davare), exact_ms(c.duerr), text(c.kloda)});
    }
    section("others", "Beside what others would run or promise", table.html());
  }

  void slots() {
    const Schedule& schedule = *answer_.schedule;
    HtmlTable table({{"stage"}, {"job"}, {"on"}, {"start", true}, {"end", true}, {"inputs"}});
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, const sched::Binding*> bound;
    for (const sched::Binding& binding : schedule.bindings) {
      bound[{binding.stage, binding.job, binding.input}] = &binding;
    }
    for (std::size_t i = 0; i < schedule.slots.size() && i < kMostRows; ++i) {
      const Slot& slot = schedule.slots[i];
      std::string inputs;
      const std::vector<sched::Input>& declared = problem_.stages[slot.stage].inputs;
      for (std::uint32_t n = 0; slot.segment == 0 && n < declared.size(); ++n) {
        std::string from;
        if (declared[n].from_sensor) from = problem_.sensors[declared[n].source].name;
        if (const auto found = bound.find({slot.stage, slot.job, n}); found != bound.end()) {
          const sched::Binding& binding = *found->second;
          from = fmt::format("{}#{}", problem_.stages[declared[n].source].name, binding.producer_job);
          if (binding.producer_shift != 0) from += fmt::format(" ({})", binding.producer_shift);
        }
        inputs += (inputs.empty() ? "" : ", ") + from;
      }
      table.row({escaped(problem_.stages[slot.stage].name), job_text(schedule, slot),
                 escaped(place_text(problem_, slot)), exact_ms({schedule.clock.start_at(0, slot.start).ns}),
                 exact_ms({schedule.clock.end_at(0, slot.end).ns}), escaped(inputs)});
    }
    std::string text = "<details><summary>" + plural(schedule.slots.size(), "slot", "slots") +
                       ", by start</summary>\n" + table.html() + "</details>\n";
    if (schedule.slots.size() > kMostRows) {
      text += lead(fmt::format("The first {}; --json has all.", kMostRows));
    }
    section("slots", "Slots and bindings",
            lead("An input #j (-1) is job j of the hyperperiod before. From a stage exactly the bound job is taken, "
                 "from a sensor the newest sample that has arrived at the start.") +
                text);
  }

  void reproduce() {
    std::string text = "<pre>" + escaped(command_) + "</pre>\n<p class=\"small muted hash\">Problem " +
                       sched::digest_of(problem_).hex();
    if (answer_.schedule) text += ", schedule " + answer_.schedule->hash().hex();
    section("reproduce", "The command that gives this answer", text + "</p>");
  }

  const Problem& problem_;
  const Answer& answer_;
  const std::string& command_;
  const sched::Beside& beside_;
  sched::BudgetScale scale_;
  std::string prefix_, mode_;
  Sections sections_;
  std::string out_;
};

}  // namespace

std::string table_svg(const Problem& problem, const Schedule& schedule) {
  if (problem.hyperperiod.ns <= 0 || schedule.clock.ticks <= 0) return "";
  return TablePicture(problem, schedule, kWide).draw();
}

std::string schedule_html(const Problem& problem, const Answer& answer, const std::string& command,
                          const sched::Beside& beside) {
  Page page(problem, answer, command, beside);
  page.fill("", "");
  return document(problem.name, sched::name_of(answer.verdict), about(problem), page.sections(), page.text());
}

namespace {

// The set as a whole: every change between two modes, with the bound that comes closest to its limit.
std::string changes_html(const sched::ModeSet& set, const sched::ModesAnswer& judged) {
  if (judged.changes.empty()) return "<p>No change of mode is permitted.</p>";
  HtmlTable table({{"change"},
                   {"drain", true},
                   {"chain"},
                   {"quantity"},
                   {"bound across it", true},
                   {"limit", true},
                   {"left", true},
                   {"of the limit"}});
  for (const sched::ChangeAnswer& change : judged.changes) {
    const std::string name = escaped(set.modes[change.from].name) + " \u2192 " + escaped(set.modes[change.to].name);
    const std::string drain = exact_ms(set.modes[change.to].entry_drain);
    bool any = false;
    for (const sched::SeamBound& seam : change.bounds) {
      for (std::size_t q = 0; q < sched::kQuantities; ++q) {
        if (!seam.limits[q]) continue;
        any = true;
        const Duration bound = seam.bound.bounds[q];
        const bool broken = bound > *seam.limits[q];
        table.row({name, drain, escaped(set.modes[change.to].problem.chains[seam.bound.chain].name),
                   sched::name_of(static_cast<Quantity>(q)), exact_ms(bound), exact_ms(*seam.limits[q]),
                   (broken ? "<b class=\"tag bad\">" : "<b>") + exact_ms(*seam.limits[q] - bound) + "</b>",
                   share_bar(bound, seam.limits[q])});
      }
    }
    if (!any) {
      table.row({name, drain, change.judged ? "no limit" : "not judged", "", "\u2013", "\u2013", "\u2013", ""});
    }
  }
  std::string out = table.html() + "<ul class=\"small\">";
  for (const sched::ChangeAnswer& change : judged.changes) {
    if (!change.refusal.empty()) out += "<li>" + escaped(change.refusal) + "</li>";
  }
  return out + "</ul>\n";
}

}  // namespace

std::string modes_html(const sched::ModeSet& set, const std::vector<Answer>& answers, const sched::ModesAnswer& judged,
                       const std::string& command) {
  const auto [word, kind] = badge(judged.verdict);
  Sections sections{{"set", "Answer"}, {"changes", "Changes"}};
  std::string body = fmt::format(
      "<section class=\"verdict {}\" id=\"set\"><div><span class=\"badge\">{}</span></div><div><p class=\"answer\">",
      kind, word);
  body +=
      judged.verdict == Verdict::kFeasible
          ? "Every mode has a table that meets its limits, and every permitted change between two of them keeps them."
          : "Not every mode has a table, or not every change keeps the limits.";
  body += "</p>\n<ul class=\"small\">";
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    const sched::ModeSpec& mode = set.modes[m];
    body += fmt::format("<li>{}: {}, hyperperiod {:g} ms, stays at least {}</li>", escaped(mode.name),
                        sched::name_of(answers[m].verdict), mode.problem.hyperperiod.ms(), exact_ms(mode.dwell));
  }
  if (!judged.refusal.empty()) body += "<li>" + escaped(judged.refusal) + "</li>";
  body += "</ul></div></section>\n";
  body +=
      "<section id=\"changes\"><h2>Changes of mode</h2>\n<p class=\"lead small\">A change comes at the end of a "
      "hyperperiod; "
      "the next table begins behind the drain. Bounds hold for every event and output around it, against the larger of "
      "both modes' limits.</p>\n" +
      changes_html(set, judged) + "</section>\n";
  const sched::Beside nothing;
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    Page page(set.modes[m].problem, answers[m], command, nothing);
    page.fill("m" + std::to_string(m) + "-", set.modes[m].name);
    sections.insert(sections.end(), page.sections().begin(), page.sections().end());
    body += page.text();
  }
  sections.emplace_back("reproduce", "The command that gives this answer");
  body += "<section id=\"reproduce\"><h2>The command that gives this answer</h2>\n<pre>" + escaped(command) +
          "</pre></section>\n";
  return document(set.name, sched::name_of(judged.verdict),
                  "board <b>" + escaped(set.modes.front().problem.board.name) + "</b>, " +
                      plural(set.modes.size(), "mode", "modes"),
                  sections, body);
}

}  // namespace takt::pipeline
