#include "pipeline/report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "pipeline/report/html.h"
#include "pipeline/report/text.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {
namespace {

constexpr double kWidth = 1120, kLeft = 92, kRight = 10;
constexpr double kSensorRow = 17, kPlannedRow = 18, kActualRow = 22, kLaneGap = 14, kAxis = 24;
constexpr double kGlyph = 5.9;  // mean advance of the label font, drawing units

class GanttPicture {
 public:
  GanttPicture(const RunData& run, const RecordIndex& index, std::uint64_t hyperperiod)
      : run_(run), index_(index), hyperperiod_(hyperperiod) {
    const PlannedHyperperiod shown = index.planned(hyperperiod);
    begin_ = shown.begin.ns;
    end_ = begin_ + shown.table->clock.hyperperiod.ns;
    sensors_bottom_ = 6 + kSensorRow * static_cast<double>(run.problem.sensors.size());
    // A lane in which no table plans anything is left out: boards have more cores than most pipelines use.
    rows_.assign(run.problem.board.cores.size() + run.problem.board.units.size(), std::nullopt);
    std::set<std::size_t> used;
    const auto note = [&](const sched::Schedule& table) {
      for (const sched::Slot& slot : table.slots) {
        for (const std::size_t lane : lanes_of(slot)) used.insert(lane);
      }
    };
    note(run.schedule);
    for (const sched::ModeTable& mode : run.modes) note(mode.schedule);
    std::size_t row = 0;
    for (const std::size_t lane : used) rows_[lane] = row++;
  }

  std::string draw() {
    const std::size_t cores = run_.problem.board.cores.size();
    const auto drawn = static_cast<std::size_t>(
        std::count_if(rows_.begin(), rows_.end(), [](const auto& row) { return row.has_value(); }));
    const double bottom = row_top(drawn);
    Svg svg(kWidth, bottom + kAxis,
            fmt::format("Planned slots and actual runs of hyperperiod {} on {} cores", hyperperiod_, cores), "gantt");
    axis(svg, bottom);
    sensors(svg);
    for (std::size_t lane = 0; lane < rows_.size(); ++lane) {
      if (rows_[lane]) lane_labels(svg, lane);
    }
    planned(svg);
    actual(svg);
    return svg.str();
  }

 private:
  [[nodiscard]] double x(std::int64_t t) const {
    const double share = static_cast<double>(t - begin_) / static_cast<double>(end_ - begin_);
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double row_top(std::size_t row) const {
    return sensors_bottom_ + 8 + static_cast<double>(row) * (kPlannedRow + kActualRow + kLaneGap);
  }
  [[nodiscard]] double lane_top(std::size_t lane) const { return row_top(rows_[lane].value_or(0)); }
  [[nodiscard]] bool visible(std::int64_t from, std::int64_t to) const { return to > begin_ && from < end_; }
  [[nodiscard]] std::int64_t clip(std::int64_t t) const { return std::clamp(t, begin_, end_); }

  void axis(Svg& svg, double bottom) const {
    const double length_ms = Duration{end_ - begin_}.ms();
    double step = 1;
    for (const double candidate : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0}) {
      step = candidate;
      if (length_ms / candidate <= 12) break;
    }
    for (int mark = 0; mark * step <= length_ms + 1e-9; ++mark) {
      const double ms = mark * step;
      const double at = x(begin_ + static_cast<std::int64_t>(ms * 1e6));
      svg.line(at, 4, at, bottom - 4, "grid");
      const auto anchor = ms + step > length_ms + 1e-9 ? Svg::Anchor::kEnd : Svg::Anchor::kMiddle;
      svg.text(anchor == Svg::Anchor::kEnd ? at + 4 : at, bottom + 12, fixed_text(ms, 0) + (ms == 0 ? " ms" : ""),
               "axis", anchor);
    }
  }

  void sensors(Svg& svg) const {
    for (std::uint32_t s = 0; s < run_.problem.sensors.size(); ++s) {
      const double y = 6 + kSensorRow * s;
      svg.text(0, y + 11, run_.problem.sensors[s].name, "lane");
      std::set<std::uint64_t> drawn;
      for (std::uint32_t stage = 0; stage < run_.problem.stages.size(); ++stage) {
        const auto input = index_.input_from(stage, true, s);
        if (!input) continue;
        for (const sched::JobRecord* record : index_.stage(stage)) {
          if (*input >= record->input_count || record->inputs[*input].kind == 3) continue;
          const sched::InputRecord& sample = record->inputs[*input];
          const std::int64_t from = table_time(run_.sensor_from_table, SensorTime{sample.capture_ns}).ns;
          const std::int64_t to = table_time(run_.sensor_from_table, SensorTime{sample.arrival_ns}).ns;
          if (!visible(from, to) || !drawn.insert(sample.job).second) continue;
          const std::string title = fmt::format("{} sample {}: stamp to arrival {}", run_.problem.sensors[s].name,
                                                sample.job, ms_text({to - from}));
          svg.rect(x(clip(from)), y + 6, x(clip(to)) - x(clip(from)), 3, "flight", title);
          if (to < end_) svg.circle(x(to), y + 7.5, 3.2, "arrived", title);
        }
      }
    }
  }

  // Cores, then units.
  void lane_labels(Svg& svg, std::size_t lane) const {
    const double y = lane_top(lane);
    const sched::Board& board = run_.problem.board;
    const std::size_t cores = board.cores.size();
    svg.text(0, y + 13, lane < cores ? board.cores[lane].name : board.units[lane - cores].name, "lane strong");
    svg.text(kLeft - 6, y + 13, "planned", "axis", Svg::Anchor::kEnd);
    svg.text(kLeft - 6, y + kPlannedRow + 15, "actual", "axis", Svg::Anchor::kEnd);
    svg.rect(kLeft, y, kWidth - kLeft - kRight, kPlannedRow + kActualRow, "track");
  }

  [[nodiscard]] std::vector<std::size_t> lanes_of(const sched::Slot& slot) const {
    const sched::Board& board = run_.problem.board;
    std::vector<std::size_t> out;
    if (slot.unit && *slot.unit < board.units.size()) out.push_back(board.cores.size() + *slot.unit);
    for (const std::uint32_t core : slot.cores) {
      if (core < board.cores.size()) out.push_back(core);
    }
    return out;
  }

  // `text` if it fits into `width`, else its beginning, else nothing.
  static std::string fitted(const std::string& text, double width) {
    const auto glyphs = static_cast<std::size_t>(std::max(0.0, (width - 6) / kGlyph));
    if (text.size() <= glyphs) return text;
    return glyphs < 4 ? "" : text.substr(0, glyphs - 1) + "\u2026";
  }

  void planned(Svg& svg) const {
    for (const std::uint64_t shift : {1, 0}) {
      if (shift > hyperperiod_) continue;
      const PlannedHyperperiod h = index_.planned(hyperperiod_ - shift);
      for (const sched::Slot& slot : h.table->slots) {
        const std::int64_t from = h.start(slot).ns;
        const std::int64_t to = h.end(slot).ns;
        if (!visible(from, to)) continue;
        const sched::Choice& choice = h.table->choices[slot.stage];
        const std::string& name = run_.problem.stages[slot.stage].name;
        const std::uint64_t job = h.job(slot);
        const std::string title = fmt::format("{} job {}: slot of {}, budget {}", name, job, ms_text({to - from}),
                                              ms_text(choice.budget.time));
        for (const std::size_t lane : lanes_of(slot)) {
          const double y = lane_top(lane) + 2;
          const double left = x(clip(from)), width = x(clip(to)) - left;
          svg.rect(left, y, width, kPlannedRow - 4, "slot " + stage_class(slot.stage), title);
          const std::string label = fitted(name, width);
          if (!label.empty()) svg.text(left + 4, y + 10.5, label, "planned-label");
        }
      }
    }
  }

  void actual(Svg& svg) const {
    for (std::uint32_t stage = 0; stage < run_.problem.stages.size(); ++stage) {
      for (const sched::JobRecord* record : index_.stage(stage)) {
        const std::vector<sched::Slot>& slots = run_.table_of(*record).slots;
        if (record->slot >= slots.size()) continue;
        const bool ran = record->actual_start != sched::kNever && record->completion != sched::kNever;
        const std::int64_t from = ran ? record->actual_start : record->nominal_start;
        const std::int64_t to = ran ? std::max(record->completion, record->publication) : record->slot_end;
        if (!visible(from, to)) continue;
        if (ran && record->segment_count != 0) {
          segments(svg, *record, slots);
          continue;
        }
        for (const std::size_t lane : lanes_of(slots[record->slot])) job(svg, *record, lane, ran);
      }
    }
  }

  // Each segment where it ran.
  void segments(Svg& svg, const sched::JobRecord& record, const std::vector<sched::Slot>& slots) const {
    const std::string& name = run_.problem.stages[record.stage].name;
    const bool ok = record.job_class == sched::JobClass::kOk;
    for (const sched::Slot& slot : slots) {
      if (slot.stage != record.stage || slot.job != slots[record.slot].job) continue;
      if (slot.segment >= record.segment_count) continue;
      const sched::SegmentRecord& segment = record.segments[slot.segment];
      if (segment.start == sched::kNever || !visible(segment.start, segment.end)) continue;
      const std::string title =
          fmt::format("{} job {}: {}, segment {} of {} ran {}", name, record.job, sched::name_of(record.job_class),
                      slot.segment + 1, record.segment_count, ms_text({segment.end - segment.start}));
      for (const std::size_t lane : lanes_of(slot)) {
        const double y = lane_top(lane) + kPlannedRow + 2;
        const double left = x(clip(segment.start)), width = std::max(1.0, x(clip(segment.end)) - left);
        svg.rect(left, y, width, kActualRow - 4, "run " + stage_class(record.stage) + (ok ? "" : " bad"), title);
        const std::string label = fitted(fmt::format("{} {}", name, record.job), width);
        if (!label.empty()) svg.text(left + 4, y + 12.5, label, "run-label");
        const bool publishes = slot.segment + 1 == record.segment_count && record.published != 0;
        if (!publishes || record.publication <= begin_ || record.publication > end_) continue;
        const double at = x(record.publication);
        svg.line(left + width, y + kActualRow / 2 - 2, at, y + kActualRow / 2 - 2, "hold");
        svg.line(at, y, at, y + kActualRow - 4, "publish");
      }
    }
  }

  void job(Svg& svg, const sched::JobRecord& record, std::size_t lane, bool ran) const {
    const std::string& name = run_.problem.stages[record.stage].name;
    const double y = lane_top(lane) + kPlannedRow + 2;
    const double height = kActualRow - 4;
    const bool ok = record.job_class == sched::JobClass::kOk;
    std::string title = fmt::format("{} job {}: {}", name, record.job, sched::name_of(record.job_class));
    if (!ran) {
      const double left = x(clip(record.nominal_start)), width = x(clip(record.slot_end)) - left;
      svg.rect(left, y, width, height, "absent", title);
      const std::string label = fitted(sched::name_of(record.job_class), width);
      if (!label.empty()) svg.text(left + 4, y + 12.5, label, "bad-label");
      return;
    }
    title += fmt::format(", ran {}", ms_text({record.completion - record.actual_start}));
    if (record.published != 0) {
      title += fmt::format(", published {} after its start", ms_text({record.publication - record.actual_start}));
    }
    const std::string style = "run " + stage_class(record.stage) + (ok ? "" : " bad");
    // A worker that lost its core runs on in the gaps of others: a thin bar, so that they are seen.
    const std::int64_t lost_core = record.slot_end + run_.problem.stages[record.stage].slack.ns;
    const bool lost = (record.flags & sched::kFlagIsolated) != 0 && lost_core < record.completion;
    const std::int64_t until = lost ? lost_core : record.completion;
    if (lost) {
      title += "; lost its core and went on in the gaps of others";
      constexpr double kThin = 3;
      const double from = x(clip(until));
      svg.rect(from, y + height - kThin, std::max(1.0, x(clip(record.completion)) - from), kThin, style, title);
      if (until <= begin_) return;
    }
    const double left = x(clip(record.actual_start)), width = std::max(1.0, x(clip(until)) - left);
    svg.rect(left, y, width, height, style, title);
    if (record.published != 0 && record.publication > begin_ && record.publication <= end_) {
      const double at = x(record.publication);
      svg.line(left + width, y + height / 2, at, y + height / 2, "hold");
      svg.line(at, y, at, y + height, "publish");
    }
    const std::string label = fitted(fmt::format("{} {}", name, record.job), width);
    if (!label.empty()) svg.text(left + 4, y + 12.5, label, "run-label");
  }

  const RunData& run_;
  const RecordIndex& index_;
  std::uint64_t hyperperiod_;
  std::int64_t begin_ = 0, end_ = 1;  // table time, ns
  double sensors_bottom_ = 0;
  std::vector<std::optional<std::size_t>> rows_;  // by lane, cores then units: where it is drawn
};

}  // namespace

std::string stage_class(std::uint32_t stage) { return "s" + std::to_string(stage % 8); }

std::string gantt_svg(const RunData& run, const RecordIndex& index, std::uint64_t hyperperiod) {
  if (run.schedule.clock.hyperperiod.ns <= 0) return "";
  return GanttPicture(run, index, hyperperiod).draw();
}

}  // namespace takt::pipeline
