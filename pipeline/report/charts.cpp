#include "pipeline/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "pipeline/report/gantt.h"
#include "pipeline/report/html.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

// A round scale end not below `value`.
double round_up_nicely(double value) {
  if (value <= 0) return 1;
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
    if (value <= step * decade) return step * decade;
  }
  return 10 * decade;
}

constexpr double kBinsPerOctave = 8;

int bin_of(Duration d) { return static_cast<int>(std::floor(std::log2(std::max(d.us(), 0.1)) * kBinsPerOctave)); }
double bin_start_ms(int bin) { return std::exp2(bin / kBinsPerOctave) * 1e-3; }

}  // namespace

std::string histogram_svg(const Distribution& times, Duration budget, std::uint32_t stage, std::string_view title) {
  constexpr double kWidth = 340, kHeight = 132, kLeft = 6, kRight = 6, kTop = 26, kBottom = 20;
  Svg svg(kWidth, kHeight, fmt::format("Histogram of {}", title), "chart");
  std::map<int, std::uint64_t> bins;
  for (const Duration d : times.sorted) ++bins[bin_of(d)];
  if (bins.empty()) {
    svg.text(kWidth / 2, kHeight / 2, "no job ran", "axis", Svg::Anchor::kMiddle);
    return svg.str();
  }
  const int budget_bin = bin_of(budget);
  const int first = std::min(bins.begin()->first, budget_bin - 8) - 1;
  const int last = std::max(bins.rbegin()->first, budget_bin) + 2;
  const double step = (kWidth - kLeft - kRight) / (last - first);
  const auto x_of = [&](Duration d) {
    return kLeft + (std::log2(std::max(d.us(), 0.1)) * kBinsPerOctave - first) * step;
  };
  std::uint64_t most = 0;
  for (const auto& [bin, count] : bins) most = std::max(most, count);
  const double base = kHeight - kBottom, room = base - kTop;
  svg.line(kLeft, base, kWidth - kRight, base, "axis-line");
  for (const auto& [bin, count] : bins) {
    // At least two units tall: a single slow job must stay visible.
    const double height = std::max(2.0, room * static_cast<double>(count) / static_cast<double>(most));
    svg.rect(
        kLeft + (bin - first) * step, base - height, std::max(1.0, step - 0.8), height, "fill " + stage_class(stage),
        fmt::format("{:.3g} to {:.3g} ms: {}", bin_start_ms(bin), bin_start_ms(bin + 1), plural(count, "job", "jobs")));
  }
  const double at = x_of(budget);
  svg.line(at, kTop - 12, at, base, "bound");
  const bool left_side = at > kWidth / 2;
  svg.text(at + (left_side ? -4 : 4), kTop - 9, "budget " + ms_text(budget), "bound-label",
           left_side ? Svg::Anchor::kEnd : Svg::Anchor::kStart);
  // Ticks at 1, 2, 5 per decade, as far as there is room.
  double previous = -100;
  for (const double decade : {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4}) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const Duration d{static_cast<std::int64_t>(decade * digit * 1e6)};
      const double tick = x_of(d);
      if (tick < kLeft + 8 || tick > kWidth - kRight - 16 || tick - previous < 44) continue;
      previous = tick;
      svg.line(tick, base, tick, base + 3, "axis-line");
      svg.text(tick, base + 14, fmt::format("{:g} ms", decade * digit), "axis", Svg::Anchor::kMiddle);
    }
  }
  return svg.str();
}

std::string bound_bar_svg(const QuantityJudgement& quantity) {
  constexpr double kWidth = 240, kHeight = 30;
  Svg svg(kWidth, kHeight, "Measured maxima against the bound", "bar");
  double scale = quantity.published_max.ms();
  if (quantity.bound) scale = std::max(scale, quantity.bound->ms());
  if (quantity.limit) scale = std::max(scale, quantity.limit->ms());
  if (scale <= 0) return svg.str();
  const auto x = [&](Duration d) { return 2 + d.ms() / scale * (kWidth - 4); };
  svg.rect(2, 9, kWidth - 4, 12, "track");
  // Beyond the bound: red when violated, a warning when every such instance is void.
  const bool exceeded = quantity.bound && quantity.published_max > *quantity.bound;
  const std::string loud = quantity.violated > 0 ? " over" : exceeded ? " beyond" : "";
  svg.rect(2, 9, x(quantity.published_max) - 2, 12, "published" + loud,
           "published at most " + ms_text(quantity.published_max));
  svg.rect(2, 9, x(quantity.completed_max) - 2, 12, "completed" + loud,
           "completed at most " + ms_text(quantity.completed_max));
  if (quantity.bound) svg.rect(x(*quantity.bound) - 1, 4, 2, 22, "bound-mark", "bound " + ms_text(*quantity.bound));
  if (quantity.limit) svg.rect(x(*quantity.limit) - 2, 4, 2, 22, "limit-mark", "limit " + ms_text(*quantity.limit));
  return svg.str();
}

std::string timeline_svg(const RunData& run, const ChainJudgement& chain, SensorTime last) {
  constexpr double kWidth = 540, kHeight = 150, kLeft = 56, kRight = 8, kTop = 12, kBottom = 22;
  const QuantityJudgement& latency = chain.latency();
  Svg svg(kWidth, kHeight, "Published latency of every sample of " + chain.name + " over the drive", "chart");
  double top_ms = latency.published_max.ms();
  if (latency.bound) top_ms = std::max(top_ms, latency.bound->ms());
  top_ms = round_up_nicely(top_ms * 1.02);
  const auto seconds_of = [&](SensorTime t) {
    return static_cast<double>(table_time(run.sensor_from_table, t).ns) * 1e-9;
  };
  const double end_s = std::max(seconds_of(last), 1e-3);
  const auto x = [&](double s) { return kLeft + std::max(0.0, s) / end_s * (kWidth - kLeft - kRight); };
  const auto y = [&](double ms) { return kHeight - kBottom - ms / top_ms * (kHeight - kTop - kBottom); };
  for (const double share : {0.0, 0.5, 1.0}) {
    svg.line(kLeft, y(top_ms * share), kWidth - kRight, y(top_ms * share), "grid");
    svg.text(kLeft - 6, y(top_ms * share) + 4, fmt::format("{:g} ms", top_ms * share), "axis", Svg::Anchor::kEnd);
  }
  svg.text(kLeft, kHeight - 6, "0 s", "axis");
  svg.text(kWidth - kRight, kHeight - 6, fmt::format("{:.1f} s", end_s), "axis", Svg::Anchor::kEnd);
  if (latency.bound) {
    svg.line(kLeft, y(latency.bound->ms()), kWidth - kRight, y(latency.bound->ms()), "bound");
    svg.text(kWidth - kRight - 2, y(latency.bound->ms()) - 4, "bound", "bound-label", Svg::Anchor::kEnd);
  }
  // A long drive keeps every void and violated instance and thins out the held ones.
  const std::size_t stride = std::max<std::size_t>(1, latency.instances.size() / 1500);
  for (std::size_t n = 0; n < latency.instances.size(); ++n) {
    const Instance& i = latency.instances[n];
    if (i.state == InstanceState::kHeld && n % stride != 0) continue;
    const double at = seconds_of(i.capture);
    if (!i.reached) {
      if (i.state != InstanceState::kFill)
        svg.line(x(at), y(0) - 5, x(at), y(0) + 3, std::string("lost ") + name_of(i.state));
      continue;
    }
    const std::string title = fmt::format("sample {}: {}, {}", i.sample, ms_text(i.published), name_of(i.state));
    svg.circle(x(at), y(i.published.ms()), i.state == InstanceState::kHeld ? 2.2 : 3.2,
               std::string("dot ") + name_of(i.state), title);
  }
  return svg.str();
}

std::string breakdown_svg(const std::vector<Part>& parts, std::optional<Duration> bound) {
  constexpr double kWidth = 1120, kHeight = 34;
  Svg svg(kWidth, kHeight, "Where the time of this frame went", "chart");
  Duration total;
  for (const Part& part : parts) total += part.time;
  const double scale = std::max(total.ms(), bound ? bound->ms() : 0.0);
  if (scale <= 0) return "";
  double at = 0;
  for (const Part& part : parts) {
    const double width = part.time.ms() / scale * kWidth;
    std::string css = "fill ";
    switch (part.kind) {
      case PartKind::kSensor: css += "sensor"; break;
      case PartKind::kWait: css += "wait"; break;
      case PartKind::kRun: css += stage_class(part.stage); break;
      case PartKind::kPublish: css += stage_class(part.stage) + " soft"; break;
    }
    svg.rect(at, 4, width, 22, css, part.label + ": " + ms_text(part.time));
    at += width;
  }
  if (bound)
    svg.rect(std::min(kWidth - 2, bound->ms() / scale * kWidth), 0, 2, 32, "bound-mark", "bound " + ms_text(*bound));
  return svg.str();
}

}  // namespace takt::pipeline
