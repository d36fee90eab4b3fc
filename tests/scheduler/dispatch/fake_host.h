// A small world without perception: stages whose output is a number computed from their inputs, and a table builder.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/dispatch/dispatch.h"

namespace takt::sched::test {

// Computes for so long.
inline void spin(Duration time) {
  const HostTime end = host_now() + time;
  while (host_now() < end) {
  }
}

// A board of `cores` cores, ticks of 1 us, w and p of 1 ms.
class TableBuilder {
 public:
  TableBuilder(Duration hyperperiod, std::size_t cores) {
    problem.hyperperiod = hyperperiod;
    schedule.clock = {hyperperiod, hyperperiod.ns / 1000};
    for (std::size_t i = 0; i < cores; ++i) {
      Core core;
      core.name = "core" + std::to_string(i);
      core.cpu = static_cast<int>(i);
      core.wakeup_window = milliseconds(1);
      core.publish_window = milliseconds(1);
      problem.board.cores.push_back(core);
    }
  }
  std::uint32_t stage(const std::string& name, std::int64_t rate, Duration budget, Duration slack = {}) {
    Stage stage;
    stage.name = name;
    stage.slack = slack;
    problem.stages.push_back(stage);
    Choice choice;
    choice.rate = rate;
    choice.budget.time = budget;
    schedule.choices.push_back(choice);
    return static_cast<std::uint32_t>(problem.stages.size() - 1);
  }
  // Start and end in milliseconds of the table.
  void slot(std::uint32_t stage, std::uint32_t job, std::vector<std::uint32_t> cores, double start, double end) {
    Slot slot;
    slot.stage = stage;
    slot.job = job;
    slot.cores = std::move(cores);
    slot.start = static_cast<Tick>(start * 1000);
    slot.end = static_cast<Tick>(end * 1000);
    schedule.slots.push_back(slot);
  }
  std::uint32_t unit(const std::string& name) {
    problem.board.units.push_back({name, UnitKind::kGpuPartition});
    return static_cast<std::uint32_t>(problem.board.units.size() - 1);
  }
  // Of jobs in several segments; the budget is on as many cores.
  std::uint32_t stage(const std::string& name, std::int64_t rate, std::vector<Segment> segments, int cores = 1,
                      Duration slack = {}) {
    Duration sum;
    for (const Segment& segment : segments) sum += segment.time;
    const std::uint32_t index = stage(name, rate, sum, slack);
    schedule.choices[index].budget.cores = cores;
    schedule.choices[index].budget.segments = std::move(segments);
    return index;
  }
  // Slot of segment `segment`: on the cores, or without any on the unit of that segment.
  void slot_of(std::uint32_t stage, std::uint32_t job, std::uint32_t segment, std::vector<std::uint32_t> cores,
               double start, double end) {
    slot(stage, job, std::move(cores), start, end);
    schedule.slots.back().segment = segment;
    schedule.slots.back().unit = schedule.choices[stage].budget.segments[segment].unit;
  }

  Problem problem;
  Schedule schedule;
};

// Published values of a stage, written by its dispatcher, read by others' latches.
struct Output {
  std::atomic<std::uint64_t> published_jobs{0};  // job number + 1 of the newest
  std::atomic<std::uint64_t> value{0};
  std::array<std::atomic<std::uint64_t>, 4096> history{};  // by job: what a run that is reproduced may ask for
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b + 0x632BE59BD9B4E019ULL;
  x ^= x >> 29;
  return x * 0xBF58476D1CE4E5B9ULL;
}

// value(job) = mix of the newest published values of the sources at the latch; half of it is computed by each part of a
// gang, so that a part that did not run or a barrier that did not hold changes the value.
class FakeHost : public StageHost {
 public:
  explicit FakeHost(std::vector<const Output*> sources = {}) : sources_(std::move(sources)) {}

  bool latch(const Job& job, Duration patience, JobRecord& record) override {
    ++latches;
    shortest_patience = std::min(shortest_patience, patience);
    longest_patience = std::max(longest_patience, patience);
    if (refuse && refuse(job)) {
      record.flags |= kFlagMissingInput;
      record.reason = Reason::kNoSample;
      return false;
    }
    std::uint64_t seed = mix(job.number, job.variant);
    record.input_count = static_cast<std::uint8_t>(sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      std::uint64_t jobs = sources_[i]->published_jobs.load();
      if (job.seen != nullptr) jobs = job.seen->inputs[i].job;
      record.inputs[i].job = jobs;
      seed = mix(seed, jobs == 0 ? 0 : sources_[i]->history[(jobs - 1) % 4096].load());
    }
    seed_ = seed;
    return true;
  }
  void run(const Job& job, int part, Gang& gang) override {
    ++runs;
    if (work) work(job, part);
    const auto parts = static_cast<std::uint64_t>(gang.parts());
    for (std::uint64_t i = static_cast<std::uint64_t>(part); i < kCells; i += parts) first_[i] = mix(seed_, i);
    if (!gang.arrive_and_wait(part)) return;
    // Reads what the other parts wrote before the barrier.
    for (std::uint64_t i = static_cast<std::uint64_t>(part); i < kCells; i += parts) {
      second_[i] = mix(first_[kCells - 1 - i], i);
    }
    if (!gang.arrive_and_wait(part)) return;
    if (part == 0) {
      value_ = 0;
      for (const std::uint64_t cell : second_) value_ = mix(value_, cell);
    }
  }
  void publish(const Job& job, JobRecord& record) override {
    ++publications;
    if (at_publication) at_publication();
    output.value = value_;
    output.history[job.number % 4096] = value_;
    output.published_jobs = job.number + 1;
    record.published = 1;
    record.output_bytes = 8;
    record.output.low = value_;
  }
  void discard(const Job&) override { ++discards; }
  void finish(const Job&, JobRecord&) override { ++finishes; }

  Output output;
  std::function<bool(const Job&)> refuse;
  std::function<void(const Job&, int part)> work;
  std::function<void()> at_publication;
  Duration shortest_patience = seconds(1);
  Duration longest_patience;
  std::atomic<int> latches{0}, runs{0}, publications{0}, discards{0}, finishes{0};

 private:
  static constexpr std::size_t kCells = 64;
  const std::vector<const Output*> sources_;
  std::uint64_t seed_ = 0;
  std::uint64_t value_ = 0;
  std::array<std::uint64_t, kCells> first_{};
  std::array<std::uint64_t, kCells> second_{};
};

// The first job behind job 0 of those it is asked about: a machine that stands still may skip any.
struct Victim {
  bool is(const Job& job) {
    std::uint64_t none = 0;
    number.compare_exchange_strong(none, job.number);
    return job.number > 0 && job.number == number;
  }
  [[nodiscard]] std::string name(const std::string& stage) const { return stage + "#" + std::to_string(number); }
  std::atomic<std::uint64_t> number{0};
};

// Collects records; a lock is fine here, the recorder of a real run has a ring per core.
class Records {
 public:
  void operator()(const JobRecord& record) {
    const std::lock_guard lock(mutex_);
    all_.push_back(record);
    ++count;
  }
  [[nodiscard]] std::vector<JobRecord> of_stage(std::uint32_t stage) const {
    const std::lock_guard lock(mutex_);
    std::vector<JobRecord> records;
    for (const JobRecord& record : all_) {
      if (record.stage == stage) records.push_back(record);
    }
    return records;
  }
  [[nodiscard]] std::vector<JobRecord> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  std::atomic<int> count{0};

 private:
  mutable std::mutex mutex_;
  std::vector<JobRecord> all_;
};

inline DispatchOptions real_time(std::uint64_t hyperperiods) {
  DispatchOptions options;
  options.hyperperiods = hyperperiods;
  return options;
}

inline DispatchOptions lockstep(std::uint64_t hyperperiods) {
  DispatchOptions options = real_time(hyperperiods);
  options.lockstep = true;
  return options;
}

inline Result<DispatchResult> run(const TableBuilder& table, const std::vector<StageHost*>& hosts,
                                  const DispatchOptions& options, Records& records) {
  return dispatch(table.problem, table.schedule, hosts, options,
                  [&records](std::size_t, const JobRecord& record) { records(record); });
}

// Jobs 0, 1, ... each exactly once, and identified as the table says.
inline void expect_each_job_once(const TableBuilder& table, std::uint32_t stage, std::uint64_t hyperperiods,
                                 std::vector<JobRecord> records) {
  const auto rate = static_cast<std::uint64_t>(table.schedule.choices[stage].rate);
  ASSERT_EQ(records.size(), hyperperiods * rate) << table.problem.stages[stage].name;
  std::sort(records.begin(), records.end(), [](const JobRecord& a, const JobRecord& b) { return a.job < b.job; });
  for (std::size_t i = 0; i < records.size(); ++i) {
    const JobRecord& record = records[i];
    const Slot& slot = table.schedule.slots[record.slot];
    EXPECT_EQ(record.job, i);
    EXPECT_EQ(record.hyperperiod, i / rate);
    EXPECT_EQ(slot.stage, stage);
    EXPECT_EQ(slot.job, i % rate);
    EXPECT_EQ(record.cores, slot.cores.size());
    EXPECT_EQ(record.nominal_start, table.schedule.clock.start_at(record.hyperperiod, slot.start).ns);
    Tick end = slot.end;
    for (const Slot& other : table.schedule.slots) {
      if (other.stage == stage && other.job == slot.job) end = std::max(end, other.end);
    }
    EXPECT_EQ(record.slot_end, table.schedule.clock.end_at(record.hyperperiod, end).ns);
  }
}

}  // namespace takt::sched::test
