#include "scheduler/analysis/trace.h"

#include <algorithm>
#include <numeric>

namespace takt::sched {
namespace {

tl::unexpected<Error> too_short() {
  return fail(Code::kConfiguration, "the trace ends before its last chain does; record a longer one");
}

}  // namespace

Result<TraceBounds> walk_trace(const std::vector<TraceTask>& chain, std::int64_t from, std::int64_t to) {
  if (chain.empty()) return fail(Code::kConfiguration, "a chain needs a task");
  for (const TraceTask& task : chain) {
    bool ordered = task.reads.size() == task.writes.size() && std::is_sorted(task.reads.begin(), task.reads.end()) &&
                   std::is_sorted(task.writes.begin(), task.writes.end());
    for (std::size_t j = 0; ordered && j < task.reads.size(); ++j) ordered = task.reads[j] <= task.writes[j];
    if (!ordered) return fail(Code::kConfiguration, "the reads and writes of a task are not in order");
  }
  TraceBounds bounds;
  const TraceTask& first = chain.front();
  // Forward: the event falls behind read m, job m + 1 takes it in; then each first job that reads behind the write.
  for (std::size_t m = 0; m < first.reads.size() && first.reads[m] < to; ++m) {
    if (first.reads[m] < from) continue;
    if (m + 1 == first.reads.size()) return too_short();
    std::int64_t written = first.writes[m + 1];
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const auto next = std::lower_bound(chain[i].reads.begin(), chain[i].reads.end(), written);
      if (next == chain[i].reads.end()) return too_short();
      written = chain[i].writes[static_cast<std::size_t>(next - chain[i].reads.begin())];
    }
    bounds.reaction = std::max(bounds.reaction, written - first.reads[m]);
    bounds.latency = std::max(bounds.latency, written - first.reads[m + 1]);
  }
  // Backward: from every output to the last write that it could read.
  const TraceTask& last = chain.back();
  for (std::size_t output = 0; output < last.reads.size(); ++output) {
    std::size_t job = output;
    bool known = true;
    for (std::size_t i = chain.size() - 1; known && i > 0; --i) {
      const std::vector<std::int64_t>& writes = chain[i - 1].writes;
      const auto behind = std::upper_bound(writes.begin(), writes.end(), chain[i].reads[job]);
      known = behind != writes.begin();
      if (known) job = static_cast<std::size_t>(behind - writes.begin()) - 1;
    }
    if (!known) continue;
    const std::int64_t source = first.reads[job];
    if (source < from) continue;
    if (source >= to) break;
    if (output + 1 == last.writes.size()) return too_short();
    bounds.age = std::max(bounds.age, last.writes[output + 1] - source);
    bounds.age_at_output = std::max(bounds.age_at_output, last.writes[output] - source);
  }
  return bounds;
}

std::int64_t davare(const std::vector<BaselineTask>& chain) {
  std::int64_t sum = 0;
  for (const BaselineTask& task : chain) sum += task.period + task.response;
  return sum;
}

std::int64_t duerr_reaction(const std::vector<BaselineTask>& chain) {
  std::int64_t sum = chain.front().period + chain.back().response;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    sum += std::max(chain[i].response, chain[i + 1].period + (chain[i].below_next ? chain[i].response : 0));
  }
  return sum;
}

std::int64_t duerr_age(const std::vector<BaselineTask>& chain) {
  std::int64_t sum = chain.back().response;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    sum += chain[i].period + (chain[i].below_next ? chain[i].response : 0);
  }
  return sum;
}

std::optional<std::int64_t> kloda_reaction(const std::vector<BaselineTask>& chain) {
  std::int64_t hyperperiod = 1;
  for (const BaselineTask& task : chain) {
    const std::int64_t factor = task.period / std::gcd(hyperperiod, task.period);
    if (factor > (std::int64_t{1} << 40) / hyperperiod) return std::nullopt;
    hyperperiod *= factor;
  }
  if (hyperperiod / chain.front().period > 10'000'000) return std::nullopt;
  std::int64_t worst = 0;
  for (std::int64_t release = 0; release < hyperperiod; release += chain.front().period) {
    std::int64_t at = release;
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      const std::int64_t next = chain[i + 1].period;
      at = (at + (chain[i].below_next ? chain[i].response : 0) + next - 1) / next * next;
    }
    worst = std::max(worst, at - release);
  }
  return worst + chain.front().period + chain.back().response;
}

}  // namespace takt::sched
