// Chains when jobs are skipped. There is no closed form on top of the bounds without skips: one skip can cost a whole
// period of any stage before or behind it.
#include <algorithm>
#include <array>
#include <optional>

#include "scheduler/analysis/instants.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/table_time.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

class SkippingWalk {
 public:
  SkippingWalk(const Problem& problem, const Schedule& schedule, const Chain& chain,
               const std::vector<std::int64_t>& skips)
      : problem_(problem),
        instants_(problem, schedule),
        chain_(chain),
        sensor_(in_table_time(problem, problem.sensors[chain.sensor])) {
    for (const std::uint32_t stage : chain.stages) skips_.push_back(stage < skips.size() ? skips[stage] : 0);
    if (sensor_.phase) pattern_ = sample_pattern(sensor_, problem.hyperperiod);
  }

  std::array<std::int64_t, kQuantities> run() const {
    std::array<std::int64_t, kQuantities> worst{};
    const auto take = [&](Quantity quantity, std::int64_t value) {
      std::int64_t& now = worst[static_cast<std::size_t>(quantity)];
      now = std::max(now, value);
    };
    const std::uint32_t last = chain_.stages.back();
    const std::int64_t turns = pattern_ ? pattern_->hyperperiods : 1;
    for (std::int64_t output = 0; output < instants_.jobs(last) * turns; ++output) {
      const std::int64_t source = oldest_source(output);
      const std::int64_t stamp = oldest_stamp(latch(source));
      const std::int64_t end = instants_.end(last, output);
      take(Quantity::kAgeAtOutput, end - stamp);
      take(Quantity::kAgeUntilReplaced, instants_.end(last, output + 1 + skips_.back()) - stamp);
      // A sample that comes first in this output arrived behind the latch that the output before goes back to.
      const std::int64_t before = latch(oldest_source(output - 1 - skips_.back()));
      take(Quantity::kLatency, end - std::max(stamp, before - sensor_.delay_max.ns));
    }
    if (pattern_) {
      for (std::int64_t sample = 0; sample < pattern_->samples; ++sample) {
        take(Quantity::kReaction, last_reaction(first_latch_from(settled(sample))) - stamp_of(sample - 1));
      }
    } else {
      for (std::int64_t job = 0; job < instants_.jobs(chain_.stages.front()); ++job) {
        take(Quantity::kReaction, last_reaction(job + 1) - oldest_stamp(latch(job)));
      }
    }
    return worst;
  }

 private:
  [[nodiscard]] std::int64_t latch(std::int64_t job) const { return instants_.start(chain_.stages.front(), job); }

  // Back from an output, each producer having skipped the job that was bound and those before it.
  [[nodiscard]] std::int64_t oldest_source(std::int64_t output) const {
    std::int64_t job = output;
    for (std::size_t i = chain_.stages.size() - 1; i > 0; --i) {
      job = instants_.bound(chain_.stages[i], chain_.stages[i - 1], job) - skips_[i - 1];
    }
    return job;
  }

  // End of the first output that knows of job `source` of the first stage or a later one, each stage having skipped
  // the jobs that would have been first.
  [[nodiscard]] std::int64_t last_reaction(std::int64_t source) const {
    std::int64_t job = source + skips_.front();
    for (std::size_t i = 1; i < chain_.stages.size(); ++i) {
      const std::uint32_t stage = chain_.stages[i];
      std::int64_t consumer = (job / instants_.jobs(chain_.stages[i - 1])) * instants_.jobs(stage);
      while (instants_.bound(stage, chain_.stages[i - 1], consumer) >= job) --consumer;
      while (instants_.bound(stage, chain_.stages[i - 1], consumer) < job) ++consumer;
      job = consumer + skips_[i];
    }
    return instants_.end(chain_.stages.back(), job);
  }

  // Stamp of the oldest sample that may be the newest one at a latch.
  [[nodiscard]] std::int64_t oldest_stamp(std::int64_t latch) const {
    if (!pattern_) return latch - longest_period(sensor_).ns - sensor_.delay_max.ns;
    std::int64_t sample = (latch - settled(0)) / sensor_.period.ns;
    while (settled(sample) > latch) --sample;
    while (settled(sample + 1) <= latch) ++sample;
    return stamp_of(sample);
  }
  [[nodiscard]] std::int64_t first_latch_from(std::int64_t when) const {
    std::int64_t job = (when / problem_.hyperperiod.ns) * instants_.jobs(chain_.stages.front());
    while (latch(job) >= when) --job;
    while (latch(job) < when) ++job;
    return job;
  }
  [[nodiscard]] std::int64_t stamp_of(std::int64_t sample) const {
    const std::int64_t rest = ((sample % pattern_->samples) + pattern_->samples) % pattern_->samples;
    const std::int64_t span = pattern_->hyperperiods * problem_.hyperperiod.ns;
    __extension__ using Wide = __int128;
    return sensor_.phase->offset.ns + (sample - rest) / pattern_->samples * span +
           static_cast<std::int64_t>(static_cast<Wide>(rest) * span / pattern_->samples);
  }
  [[nodiscard]] std::int64_t settled(std::int64_t sample) const {
    return stamp_of(sample) + sensor_.phase->jitter.ns + sensor_.delay_max.ns;
  }

  const Problem& problem_;
  analysis::Instants instants_;
  const Chain& chain_;
  const Sensor sensor_;
  std::vector<std::int64_t> skips_;  // by position in the chain
  std::optional<SamplePattern> pattern_;
};

}  // namespace

ChainBound walk_with_skips(const Problem& problem, const Schedule& schedule, std::uint32_t chain,
                           const std::vector<std::int64_t>& skips) {
  const auto worst = SkippingWalk(problem, schedule, problem.chains[chain], skips).run();
  ChainBound bound;
  bound.chain = chain;
  for (std::size_t q = 0; q < kQuantities; ++q) bound.bounds[q] = with_corrections(problem, {worst[q]});
  bound.terms = "with skipped jobs";
  return bound;
}

}  // namespace takt::sched
