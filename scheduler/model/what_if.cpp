#include "scheduler/model/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "runtime/base/suggest.h"
#include "scheduler/model/limits.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

// NAME.KEY=VALUE; nullopt when it has another form.
struct Parts {
  std::string name, key, value;
};
std::optional<Parts> split(const std::string& change) {
  const std::size_t equals = change.find('=');
  const std::size_t dot = change.rfind('.', equals);
  if (equals == std::string::npos || dot == std::string::npos || dot == 0) return std::nullopt;
  return Parts{change.substr(0, dot), change.substr(dot + 1, equals - dot - 1), change.substr(equals + 1)};
}

struct Figure {
  double number = 0;
  std::string unit;  // "", "%", "ms", "us", "s", "Hz"
  bool relative = false;
};

std::optional<Figure> parse_figure(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Figure figure;
  figure.relative = text[0] == '+' || text[0] == '-';
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, figure.number);
  if (error != std::errc() || !std::isfinite(figure.number)) return std::nullopt;
  figure.unit.assign(rest, end);
  for (const char* known : {"", "%", "ms", "us", "s", "Hz"}) {
    if (figure.unit == known) return figure;
  }
  return std::nullopt;
}

// "+20%" or "12ms" applied to `base`; nullopt when it is neither.
std::optional<Duration> change_duration(Duration base, const std::string& text) {
  const std::optional<Figure> figure = parse_figure(text);
  if (!figure) return std::nullopt;
  double ns = 0;
  if (figure->unit == "%" && figure->relative) {
    ns = static_cast<double>(base.ns) * (1.0 + figure->number / 100.0);
  } else if (figure->unit == "ms" || figure->unit == "us" || figure->unit == "s") {
    const double unit = figure->unit == "ms" ? 1e6 : figure->unit == "us" ? 1e3 : 1e9;
    ns = figure->number * unit + (figure->relative ? static_cast<double>(base.ns) : 0.0);
  } else {
    return std::nullopt;
  }
  if (!(std::fabs(ns) <= 1e18)) return std::nullopt;
  return Duration{static_cast<std::int64_t>(std::ceil(ns))};
}

template <class T>
auto find_named(std::vector<T>& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const T& item) { return item.name == name; });
}

tl::unexpected<Error> not_understood(const std::string& change, const std::string& why) {
  return fail(Code::kUsage, "'" + change + "': " + why);
}

constexpr const char* kDurationForms = "expected a change such as +20%, -10% or 12ms";

// As a file may say it.
Status in_range(Duration time, Duration least, const std::string& change) {
  if (time >= least && time <= kMostTime) return {};
  return not_understood(change,
                        "gives " + ms_text(time) + "; allowed: " + ms_text(least) + " to " + ms_text(kMostTime));
}

Status change_stage(Problem& problem, Stage& stage, const std::string& key, const std::string& value,
                    const std::string& change) {
  if (key == "budget" || key == "slack") {
    std::vector<Duration*> targets;
    if (key == "slack") targets.push_back(&stage.slack);
    if (key == "budget") {
      for (Variant& variant : stage.variants) {
        for (Budget& budget : variant.budgets) {
          if (budget.segments.empty()) targets.push_back(&budget.time);
          // A share of every segment; which of them would take a new length is not said.
          if (!budget.segments.empty() && (value.empty() || value.back() != '%')) {
            return not_understood(change, "its jobs consist of segments; change all of them by a share such as +20%");
          }
          for (Segment& segment : budget.segments) targets.push_back(&segment.time);
        }
      }
    }
    for (Duration* target : targets) {
      const std::optional<Duration> changed = change_duration(*target, value);
      if (!changed) return not_understood(change, kDurationForms);
      TAKT_RETURN_IF_ERROR(in_range(*changed, key == "budget" ? kLeastTime : Duration{}, change));
      *target = *changed;
    }
    if (key == "budget") {
      for (Variant& variant : stage.variants) {
        for (Budget& budget : variant.budgets) {
          budget.provenance = Provenance::kDeclared;
          if (!budget.segments.empty()) budget.time = {};
          for (const Segment& segment : budget.segments) budget.time += segment.time;
        }
      }
    }
    return {};
  }
  if (key == "rate") {
    const std::optional<Figure> figure = parse_figure(value);
    if (!figure || figure->relative || (figure->unit != "Hz" && !figure->unit.empty()) || figure->number <= 0) {
      return not_understood(change, "expected a rate such as 15Hz");
    }
    if (figure->number < kLeastHz || figure->number > kMostHz) {
      return not_understood(change, "a rate lies in 0.001 to 100000 Hz");
    }
    const double jobs = figure->number * problem.hyperperiod.seconds();
    const double whole = std::round(jobs);
    if (whole < 1 || std::fabs(jobs - whole) > 1e-9 * whole) {
      return not_understood(
          change, "a rate must be a whole number of jobs in the hyperperiod of " + ms_text(problem.hyperperiod));
    }
    stage.rates = {static_cast<std::int64_t>(whole)};
    return {};
  }
  if (key == "variant") {
    const auto variant = find_named(stage.variants, value);
    if (variant == stage.variants.end()) {
      std::vector<std::string> known;
      for (const Variant& v : stage.variants) known.push_back(v.name);
      return not_understood(change, "no variant '" + value + "'" + did_you_mean(value, known));
    }
    stage.variants = {Variant(*variant)};
    return {};
  }
  if (key == "cores") {
    const std::optional<Figure> figure = parse_figure(value);
    if (!figure || !figure->unit.empty()) return not_understood(change, "expected a number of cores");
    std::vector<Variant> kept;
    for (const Variant& variant : stage.variants) {
      for (const Budget& budget : variant.budgets) {
        if (budget.cores != figure->number) continue;
        kept.push_back(variant);  // with its memory
        kept.back().budgets = {budget};
      }
    }
    if (kept.empty()) return not_understood(change, "no variant has a budget for that many cores");
    stage.variants = std::move(kept);
    return {};
  }
  return not_understood(change,
                        "stages have no '" + key + "'" +
                            did_you_mean(key, std::vector<std::string>{"budget", "rate", "variant", "cores", "slack"}));
}

}  // namespace

bool has_target(const Problem& problem, const std::string& change) {
  const std::optional<Parts> parts = split(change);
  const auto named = [&](const auto& list) {
    return parts && std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.name == parts->name; });
  };
  if (parts && std::find(std::begin(kQuantityKeys), std::end(kQuantityKeys), parts->key) != std::end(kQuantityKeys)) {
    return named(problem.chains);
  }
  return named(problem.stages) || named(problem.sensors) || named(problem.board.cores);
}

Status apply_what_if(Problem& problem, const std::string& change) {
  const std::optional<Parts> parts = split(change);
  if (!parts) return not_understood(change, "expected NAME.FIGURE=VALUE, for example fusion.budget=+20%");
  const auto& [name, key, value] = *parts;
  Problem changed = problem;
  std::vector<std::string> known;
  for (const Stage& stage : changed.stages) known.push_back(stage.name);
  for (const Chain& chain : changed.chains) known.push_back(chain.name);
  for (const Sensor& sensor : changed.sensors) known.push_back(sensor.name);
  for (const Core& core : changed.board.cores) known.push_back(core.name);
  const auto chain = find_named(changed.chains, name);
  const auto quantity = std::find(std::begin(kQuantityKeys), std::end(kQuantityKeys), key);
  // A chain may share its name with a stage or a sensor: the figure decides.
  if (chain != changed.chains.end() && quantity != std::end(kQuantityKeys)) {
    std::optional<Duration>& limit = chain->limits[quantity - std::begin(kQuantityKeys)];
    if (!limit && (value.empty() || value.back() == '%')) {
      return not_understood(change, "the chain has no such limit that could be scaled; give it in ms");
    }
    limit = change_duration(limit.value_or(Duration{}), value);
    if (!limit) return not_understood(change, kDurationForms);
    TAKT_RETURN_IF_ERROR(in_range(*limit, kLeastTime, change));
  } else if (const auto stage = find_named(changed.stages, name); stage != changed.stages.end()) {
    TAKT_RETURN_IF_ERROR(change_stage(changed, *stage, key, value, change));
  } else if (const auto sensor = find_named(changed.sensors, name); sensor != changed.sensors.end() && key == "delay") {
    const std::optional<Duration> delay = change_duration(sensor->delay_max, value);
    if (!delay) return not_understood(change, kDurationForms);
    TAKT_RETURN_IF_ERROR(in_range(*delay, Duration{}, change));
    sensor->delay_max = *delay;
    sensor->delay_min = std::min(sensor->delay_min, *delay);
  } else if (const auto core = find_named(changed.board.cores, name);
             core != changed.board.cores.end() && key == "reserve") {
    const std::optional<Figure> figure = parse_figure(value);
    if (!figure || figure->relative || figure->unit != "%" || figure->number > 100 * kMostReserve) {
      return not_understood(change, "expected a share such as 30%");
    }
    core->reserve = figure->number / 100.0;
  } else if (std::find(known.begin(), known.end(), name) != known.end()) {
    return not_understood(change, "'" + name + "' has no figure '" + key + "'");
  } else {
    return not_understood(change, "nothing is named '" + name + "'" + did_you_mean(name, known));
  }
  if (Status status = check(changed); !status) return not_understood(change, status.error().message);
  problem = std::move(changed);
  return {};
}

void prefer_cores(Problem& problem, int cores) {
  for (Stage& stage : problem.stages) {
    for (Variant& variant : stage.variants) {
      const auto other = [&](const Budget& budget) { return budget.cores != cores; };
      if (!std::all_of(variant.budgets.begin(), variant.budgets.end(), other)) std::erase_if(variant.budgets, other);
    }
  }
}

}  // namespace takt::sched
