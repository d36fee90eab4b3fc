// What the readers of pipeline files share. Private to scheduler_yaml.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/suggest.h"
#include "scheduler/model/limits.h"
#include "scheduler/model/yaml.h"

namespace takt::sched::yaml_read {

inline constexpr double kLeastMs = 0.001;
inline constexpr double kMostMs = 100'000;
static_assert(kLeastTime == microseconds(1) && kMostTime == seconds(100));

template <class T>
std::vector<std::string> names(const std::vector<T>& list) {
  std::vector<std::string> out;
  for (const T& item : list) out.push_back(item.name);
  return out;
}

// Index of the item called `node` in `list`; records an error and returns nullopt when there is none.
template <class T>
std::optional<std::uint32_t> reference(const YamlNode& node, const std::vector<T>& list, const char* kind) {
  const std::string name = node.text();
  if (name.empty()) return std::nullopt;  // an error was recorded already
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<std::uint32_t>(i);
  }
  node.error(std::string("unknown ") + kind + " '" + name + "'" + did_you_mean(name, names(list)));
  return std::nullopt;
}

template <class T>
void refuse_twice(const YamlNode& node, const std::string& name, const std::vector<T>& known, const char* kind) {
  const auto same = [&](const T& item) { return item.name == name; };
  if (!name.empty() && std::any_of(known.begin(), known.end(), same)) {
    node.error(std::string("there is already a ") + kind + " named '" + name + "'");
  }
}

// Hz to jobs per hyperperiod, which must be a whole number: an error says which hyperperiod would do. 1 after an error,
// and for a hyperperiod of 0, which was not read: nothing is said about rates then.
std::int64_t read_rate(const YamlNode& node, Duration hyperperiod);
// Whether number() would give what stands there: after an error the next question may make no sense.
bool holds_number(const YamlNode& node, double min, double max);
// limit_ms: {latency: 100, ...}: changes what it names.
void read_limits(const YamlNode& limits, Chain& chain);

}  // namespace takt::sched::yaml_read
