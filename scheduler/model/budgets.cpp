#include "scheduler/model/budgets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/file.h"
#include "runtime/base/suggest.h"

namespace takt::sched {
namespace {

constexpr std::uint64_t kEnoughSamples = 1000;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// Milliseconds with all nanoseconds.
std::string exact_ms(Duration d) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld.%06lld", static_cast<long long>(d.ns / 1'000'000),
                static_cast<long long>(d.ns % 1'000'000));
  return text;
}

std::string exact_us(Duration d) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(d.ns / 1'000),
                static_cast<long long>(d.ns % 1'000));
  return text;
}

template <class T>
std::vector<std::string> names(const std::vector<T>& list) {
  std::vector<std::string> out;
  for (const T& item : list) out.push_back(item.name);
  return out;
}

}  // namespace

Budget budget_from(int cores, Duration high_water, double margin, std::uint64_t samples) {
  Budget budget;
  budget.cores = cores;
  budget.time = {static_cast<std::int64_t>(std::ceil(static_cast<double>(high_water.ns) * margin))};
  budget.provenance = samples >= kEnoughSamples ? Provenance::kProfiled : Provenance::kExploratory;
  budget.samples = samples;
  budget.margin = margin;
  budget.high_water = high_water;
  return budget;
}

Status apply_budgets(Problem& problem, const BudgetTable& table) {
  if (!table.board.empty() && table.board != problem.board.name) {
    return fail(Code::kConfiguration, "the budgets were taken on board '" + table.board + "', the pipeline is for '" +
                                          problem.board.name + "'; profile on this board or choose the other one");
  }
  Problem changed = problem;  // all or nothing
  for (const StageBudget& entry : table.budgets) {
    const auto refuse = [&entry](const std::string& what) {
      const std::string& place = entry.budget.place;
      return fail(Code::kConfiguration, (place.empty() ? "" : place + ": ") + what);
    };
    const auto stage = std::find_if(changed.stages.begin(), changed.stages.end(),
                                    [&](const Stage& s) { return s.name == entry.stage; });
    if (stage == changed.stages.end()) {
      return refuse("budgets name an unknown stage '" + entry.stage + "'" +
                    did_you_mean(entry.stage, names(changed.stages)));
    }
    const auto variant = std::find_if(stage->variants.begin(), stage->variants.end(),
                                      [&](const Variant& v) { return v.name == entry.variant; });
    if (variant == stage->variants.end()) {
      return refuse("budgets name an unknown variant '" + entry.variant + "' of stage '" + entry.stage + "'" +
                    did_you_mean(entry.variant, names(stage->variants)));
    }
    const auto same = std::find_if(variant->budgets.begin(), variant->budgets.end(),
                                   [&](const Budget& b) { return b.cores == entry.budget.cores; });
    const std::size_t planned = same != variant->budgets.end() ? same->segments.size() : 0;
    if (planned != entry.budget.segments.size()) {
      const auto count = [](std::size_t segments) {
        return segments == 0 ? std::string("one time") : std::to_string(segments) + " segments";
      };
      return refuse("budgets give " + count(entry.budget.segments.size()) + " for variant '" + entry.variant +
                    "' of stage '" + entry.stage + "', whose jobs have " + count(planned) +
                    "; profile the pipeline as it is now, on its device");
    }
    if (same != variant->budgets.end()) {
      const std::vector<Segment> segments = same->segments;
      *same = entry.budget;
      for (std::size_t i = 0; i < segments.size(); ++i) {
        const Duration time = same->segments[i].time;
        same->segments[i] = segments[i];
        same->segments[i].time = time;
      }
    } else {
      variant->budgets.push_back(entry.budget);
    }
  }
  for (Core& core : changed.board.cores) {
    core.wakeup_window = table.wakeup_window.value_or(core.wakeup_window);
    core.publish_window = table.publish_window.value_or(core.publish_window);
  }
  problem = std::move(changed);
  return {};
}

namespace {

std::string times_text(const char* key, const std::vector<Duration>& times) {
  std::string out;
  for (const Duration time : times) {
    out += (out.empty() ? std::string("\n    ") + key + ": [" : std::string(", ")) + exact_ms(time);
  }
  return out.empty() ? out : out + "]";
}

}  // namespace

std::string to_yaml(const BudgetTable& table) {
  std::string out = "board: " + quoted(table.board) + "\nmachine: " + quoted(table.machine) + "\n";
  if (table.wakeup_window) out += "wakeup_window_us: " + exact_us(*table.wakeup_window) + "\n";
  if (table.publish_window) out += "publish_window_us: " + exact_us(*table.publish_window) + "\n";
  out += "budgets:\n";
  if (table.budgets.empty()) out.replace(out.size() - 1, 1, " []\n");
  for (const StageBudget& entry : table.budgets) {
    std::vector<Duration> segments;
    for (const Segment& segment : entry.budget.segments) segments.push_back(segment.time);
    char margin[64];
    std::snprintf(margin, sizeof margin, "%.17g", entry.budget.margin);
    out += "  - stage: " + quoted(entry.stage) + "\n    variant: " + quoted(entry.variant) +
           "\n    cores: " + std::to_string(entry.budget.cores) + "\n    budget_ms: " + exact_ms(entry.budget.time) +
           "\n    high_water_ms: " + exact_ms(entry.budget.high_water) + times_text("segments_ms", segments) +
           times_text("steps_ms", entry.budget.steps) + "\n    margin: " + margin +
           "\n    samples: " + std::to_string(entry.budget.samples) +
           "\n    provenance: " + name_of(entry.budget.provenance) +
           "\n    interference: " + name_of(entry.budget.interference) + "\n";
    if (entry.beside.empty()) continue;
    out += "    beside: [";
    for (std::size_t i = 0; i < entry.beside.size(); ++i) out += (i == 0 ? "" : ", ") + quoted(entry.beside[i]);
    out += "]\n";
  }
  return out;
}

Status save_budgets(const std::string& path, const BudgetTable& table) {
  return write_file_atomically(path, to_yaml(table));
}

}  // namespace takt::sched
