#include "pipeline/report/conclusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::Quantity;

// What was broken first on the way, of most void instances; "" where none is void.
std::string usually_broken(const std::vector<const QuantityJudgement*>& parts) {
  std::map<Assumption, std::uint64_t> first;
  for (const QuantityJudgement* part : parts) {
    for (const Instance& instance : part->instances) {
      if (instance.state == InstanceState::kVoid && !instance.broken.empty()) ++first[instance.broken[0].assumption];
    }
  }
  const auto most =
      std::max_element(first.begin(), first.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == first.end() ? "" : name_of(most->first);
}

// "lidar 18 of 29 (worker busy), radar 1 of 60 (late start)": where the way broke first, of most of them.
std::string void_by_chain(const Judgement& judgement) {
  std::string text;
  for (const ChainJudgement& chain : judgement.chains) {
    const QuantityJudgement& latency = chain.latency();
    if (latency.void_count == 0) continue;
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", chain.name, latency.void_count, latency.judged());
    if (const std::string broken = usually_broken({&latency}); !broken.empty()) text += " (" + broken + ")";
  }
  return text;
}

// "camera reaction up to 1078.00 ms (bound 150.00 ms), ...": void reactions and ages that went beyond their bounds. A
// sensor that falls silent has no samples whose latency could be void; what it does shows here alone.
std::string beyond_bounds(const Judgement& judgement) {
  std::string text;
  for (const ChainJudgement& chain : judgement.chains) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const QuantityJudgement& quantity = chain.quantities[q];
      const bool beyond = quantity.bound && quantity.void_count > 0 && quantity.violated == 0 &&
                          quantity.published_max > *quantity.bound;
      if (static_cast<Quantity>(q) == Quantity::kLatency || !beyond) continue;
      text += fmt::format("{}{} {} up to {} (bound {})", text.empty() ? "" : ", ", chain.name,
                          sched::name_of(static_cast<Quantity>(q)), ms_text(quantity.published_max),
                          ms_text(*quantity.bound));
    }
  }
  return text;
}

// "radar_front delivered no message"; "" where it did.
std::string silent(const RunData& run, const std::string& sensor) {
  const auto health = std::find_if(run.health.begin(), run.health.end(),
                                   [&sensor](const SensorHealth& of) { return of.sensor == sensor; });
  return health == run.health.end() || health->messages > 0 ? "" : sensor + " delivered no message";
}

// A change of mode has too few instances for a share of its own; they count in the whole run.
std::vector<MostlyVoid> mostly_void(const RunData& run, const Judgement& judgement) {
  std::vector<MostlyVoid> out;
  for (std::uint32_t c = 0; c < run.problem.chains.size(); ++c) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      QuantityJudgement sum;
      MostlyVoid whole{c, static_cast<Quantity>(q), {}};
      std::vector<MostlyVoid> modes;
      for (std::size_t i = 0; i < judgement.chains.size(); ++i) {
        const ChainJudgement& part = judgement.chains[i];
        if (part.chain != c) continue;
        sum.held += part.quantities[q].held;
        sum.void_count += part.quantities[q].void_count;
        sum.violated += part.quantities[q].violated;
        whole.parts.push_back(i);
        if (part.from == part.to && part.quantities[q].mostly_void()) modes.push_back({c, whole.quantity, {i}});
      }
      if (sum.mostly_void()) {
        out.push_back(std::move(whole));
      } else {
        out.insert(out.end(), modes.begin(), modes.end());
      }
    }
  }
  return out;
}

// "lidar latency 11 of 29 held (worker busy)", "camera age at output 2 of 62 held (sample gap; up to 3128.50 ms, bound
// 45.17 ms)".
std::string in_words(const RunData& run, const Judgement& judgement, const MostlyVoid& most) {
  std::vector<const QuantityJudgement*> parts;
  std::uint64_t held = 0, judged = 0;
  const QuantityJudgement* beyond = nullptr;
  for (const std::size_t part : most.parts) {
    const auto* quantity = &judgement.chains[part].quantities[static_cast<std::size_t>(most.quantity)];
    parts.push_back(quantity);
    held += quantity->held;
    judged += quantity->judged();
    if (!quantity->bound || quantity->published_max <= *quantity->bound) continue;
    if (beyond == nullptr || quantity->published_max > beyond->published_max) beyond = quantity;
  }
  std::string why = usually_broken(parts);
  if (beyond != nullptr) {
    why += fmt::format("{}up to {}, bound {}", why.empty() ? "" : "; ", ms_text(beyond->published_max),
                       ms_text(*beyond->bound));
  }
  return fmt::format(
      "{} {} {} of {} held{}",
      most.parts.size() == 1 ? judgement.chains[most.parts.front()].name : run.problem.chains[most.chain].name,
      sched::name_of(most.quantity), held, judged, why.empty() ? "" : " (" + why + ")");
}

}  // namespace

void conclude(const RunData& run, Judgement& out) {
  std::uint64_t failed = 0, violated = 0;
  for (const ChainJudgement& chain : out.chains) {
    const QuantityJudgement& latency = chain.latency();
    out.held += latency.held;
    out.void_count += latency.void_count;
    out.violated += latency.violated;
    out.fill += latency.fill;
    for (const QuantityJudgement& quantity : chain.quantities) {
      violated += quantity.violated;
      if (&quantity != &latency) out.void_others += quantity.void_count;
    }
  }
  if (violated > 0) {
    out.reasons.push_back(plural(violated, "chain instance", "chain instances") +
                          " violated: the bound was exceeded though no monitored assumption was broken");
  }
  for (const Requirement& requirement : out.requirements) {
    if (requirement.outcome != Outcome::kFail) continue;
    ++failed;
    if (requirement.group.rfind("chain ", 0) == 0 && violated > 0) continue;  // said above
    out.reasons.push_back(requirement.group + ", " + requirement.name + ": " + requirement.detail);
  }
  const auto why_failed = static_cast<std::ptrdiff_t>(out.reasons.size());  // comes before what it says little about
  std::string voids;
  if (out.void_count > 0) {
    voids = plural(out.void_count, "chain instance is", "chain instances are") +
            " void, a monitored assumption was broken on the way: " + void_by_chain(out);
  }
  if (const std::string beyond = beyond_bounds(out); !beyond.empty()) {
    voids += (voids.empty() ? "" : "; ") + ("void and beyond their bounds: " + beyond);
  }
  if (!voids.empty()) out.reasons.push_back(voids);
  std::vector<std::string> nothing;  // groups of the chains of which nothing that counts reached an output
  for (const ChainJudgement& chain : out.chains) {
    const auto reached = [&chain](const ChainJudgement& other) {
      return other.chain == chain.chain && (other.latency().held > 0 || other.latency().violated > 0);
    };
    if (std::any_of(out.chains.begin(), out.chains.end(), reached)) continue;
    nothing.push_back("chain " + chain.name);
    std::string why = silent(run, run.problem.sensors[run.problem.chains[chain.chain].sensor].name);
    if (why.empty()) why = "chain " + chain.name + ": no sample that kept the assumptions reached an output";
    // Once, of however many chains and modes.
    if (std::find(out.reasons.begin(), out.reasons.end(), why) != out.reasons.end()) continue;
    out.reasons.insert(out.reasons.begin() + why_failed, std::move(why));
  }
  bool unknown = false;  // a chain that the stamps are too coarse for
  for (const Requirement& requirement : out.requirements) {
    if (requirement.outcome != Outcome::kNotJudged || !out.deadlines_not_judged.empty()) continue;
    if (requirement.mostly_void) continue;  // said below, of all chains together
    if (requirement.group.rfind("chain ", 0) != 0) continue;
    if (std::find(nothing.begin(), nothing.end(), requirement.group) != nothing.end()) continue;  // said above
    unknown = true;
    out.reasons.push_back(requirement.group + ", " + requirement.name + ": NOT JUDGED: " + requirement.detail);
  }
  if (run.repeats && run.repeats->outcome == name_of(Outcome::kNotJudged)) {
    unknown = true;
    out.reasons.push_back("the run that is repeated was NOT JUDGED: " + run.repeats->reason);
  }
  out.mostly_void = mostly_void(run, out);
  if (!out.mostly_void.empty()) {
    std::string text = "most are void, so the run says little about their bounds: ";
    for (const MostlyVoid& most : out.mostly_void) {
      text += (&most == out.mostly_void.data() ? "" : ", ") + in_words(run, out, most);
    }
    out.reasons.insert(out.reasons.begin() + why_failed, std::move(text));
  }
  if (run.interrupted) out.reasons.push_back("interrupted: this report covers the part that ran");
  const bool lockstep = run.mode == "lockstep";
  const bool open = !nothing.empty() || unknown || run.interrupted || (!out.deadlines_not_judged.empty() && !lockstep);
  if (run.lost_records > 0) {
    // What looks like a violation may be a record that is not there.
    out.outcome = Outcome::kNotJudged;
  } else if (failed > 0) {
    out.outcome = Outcome::kFail;
  } else if (open || !out.mostly_void.empty()) {
    out.outcome = Outcome::kNotJudged;
    out.void_decides = !open;
  } else {
    out.outcome = Outcome::kPass;
  }
  if (!out.deadlines_not_judged.empty()) {
    // First where it decides: whatever else such a run shows may come of it.
    const bool decides = out.outcome == Outcome::kNotJudged && !lockstep;
    out.reasons.insert(decides ? out.reasons.begin() : out.reasons.end(),
                       "real-time deadlines: " + out.deadlines_not_judged);
  }
  // A log that another rig recorded, or in a coding that nobody reads, before all else, which follows from it.
  for (const SensorHealth& sensor : run.health) {
    if (sensor.messages == 0 || sensor.bad_frames < sensor.messages) continue;
    out.reasons.insert(
        out.reasons.begin(),
        fmt::format("{}: none of its {} could be used{}", sensor.sensor, plural(sensor.messages, "message", "messages"),
                    sensor.examples.empty() ? "" : ", first " + sensor.examples.front()));
  }
}

}  // namespace takt::pipeline
