// Jobs of several segments: submission on the cores, work of a unit beside them, completion on the cores. The unit is
// simulated; what is checked are order and rules between records, no measured time.
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <thread>

#include "fake_host.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::lockstep;
using test::mix;
using test::real_time;
using test::Records;
using test::spin;
using test::TableBuilder;
using test::Victim;

Segment on_cores(Duration time) { return {.unit = {}, .time = time, .guard = {}, .mutexes = {}}; }
Segment on(std::uint32_t unit, Duration time, Duration guard = {}) {
  return {.unit = unit, .time = time, .guard = guard, .mutexes = {}};
}

// What happened, in order, over all stages: "camera#2 begin 1".
class Story {
 public:
  void say(const std::string& what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(what);
  }
  // Where it stands, or -1.
  [[nodiscard]] std::ptrdiff_t at(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(told_.begin(), told_.end(), what);
    return found == told_.end() ? -1 : found - told_.begin();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

// A stage with a unit behind it. value(job) goes through every segment: each part of a gang computes its share, the
// unit what all of them left, so that whatever is left out, doubled or out of order changes it.
class UnitHost : public StageHost {
 public:
  UnitHost(std::string name, Story& story) : name_(std::move(name)), story_(story) {}

  bool latch(const Job& job, Duration, JobRecord&) override {
    ++latches;
    seed_ = mix(job.number, 7);
    for (std::uint64_t& cell : cells_) cell = seed_;
    return true;
  }
  void run(const Job& job, int part, Gang& gang) override {
    if (part == 0) say(job, "run");
    if (work) work(job, part);
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = static_cast<std::size_t>(part); i < kCells; i += static_cast<std::size_t>(gang.parts())) {
        cells_[i] = mix(cells_[i], i + job.segment);
      }
      if (!gang.arrive_and_wait(part)) return;
    }
  }
  void begin(const Job& job) override {
    EXPECT_FALSE(in_flight_.exchange(true)) << "the unit's work of the job before has not ended";
    ++begins;
    say(job, "begin");
    job_ = job;
    begun_ = host_now();
    works_ = unit_time ? unit_time(job) : Duration{};
    EXPECT_EQ(at_work, nullptr) << "two stages on one unit";
    at_work = this;
  }
  std::optional<Duration> ended() override {
    if (!in_flight_) return works_;
    if (host_now() - begun_ < works_ || (holds && holds(job_))) return std::nullopt;
    for (std::uint64_t& cell : cells_) cell = mix(cell, 99);
    in_flight_ = false;
    at_work = nullptr;
    say(job_, "ended");
    return works_;
  }
  void publish(const Job& job, JobRecord& record) override {
    EXPECT_FALSE(in_flight_);
    say(job, "publish");
    ++publications;
    record.published = 1;
    record.output.low = seed_;
    for (const std::uint64_t cell : cells_) record.output.low = mix(record.output.low, cell);
  }
  void discard(const Job& job) override {
    EXPECT_TRUE(!in_flight_ || ends_by_being_stuck) << "its chunk is still the unit's";
    say(job, "discard");
    ++discards;
  }
  void finish(const Job&, JobRecord&) override { ++finishes; }

  std::function<void(const Job&, int part)> work;
  std::function<Duration(const Job&)> unit_time;
  std::function<bool(const Job&)> holds;  // the unit works on whatever its time
  bool ends_by_being_stuck = false;
  std::atomic<int> latches{0}, begins{0}, publications{0}, discards{0}, finishes{0};
  static inline std::atomic<UnitHost*> at_work{nullptr};  // of the one unit that these tests have

 private:
  void say(const Job& job, const char* what) {
    story_.say(name_ + "#" + std::to_string(job.number) + " " + what + " " + std::to_string(job.segment));
  }
  static constexpr std::size_t kCells = 64;
  const std::string name_;
  Story& story_;
  std::uint64_t seed_ = 0;
  std::array<std::uint64_t, kCells> cells_{};
  std::atomic<bool> in_flight_{false};
  Job job_;
  HostTime begun_;
  Duration works_;
};

// camera and lidar use one unit, from a core each (or lidar from both); beside works on core 0 while the camera's job
// is on the unit.
struct World {
  explicit World(int lidar_cores = 1, Duration guard = milliseconds(1)) : table(milliseconds(40), 2) {
    UnitHost::at_work = nullptr;
    const std::uint32_t gpu = table.unit("gpu");
    const std::vector<Segment> segments{on_cores(milliseconds(1)), on(gpu, milliseconds(4), guard),
                                        on_cores(milliseconds(1))};
    camera = table.stage("camera", 1, segments);
    lidar = table.stage("lidar", 1, segments, lidar_cores);
    beside = table.stage("beside", 1, milliseconds(2));
    table.slot_of(camera, 0, 0, {0}, 0, 2);
    table.slot_of(camera, 0, 1, {}, 2, 7);
    table.slot(beside, 0, {0}, 3, 7);
    table.slot_of(camera, 0, 2, {0}, 8, 11);
    const std::vector<std::uint32_t> cores =
        lidar_cores == 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{1};
    table.slot_of(lidar, 0, 0, cores, 12, 14);
    table.slot_of(lidar, 0, 1, {}, 15, 20);
    table.slot_of(lidar, 0, 2, cores, 22, 25);
    camera_host.unit_time = lidar_host.unit_time = [](const Job&) { return milliseconds(1); };
  }
  std::vector<StageHost*> hosts() { return {&camera_host, &lidar_host, &beside_host}; }

  Story story;
  TableBuilder table;
  std::uint32_t camera = 0, lidar = 0, beside = 0;
  UnitHost camera_host{"camera", story}, lidar_host{"lidar", story};
  FakeHost beside_host;
};

// Whatever happened: the segments of a job come in order, one behind the other, and a published job has run them all.
void expect_consistent(const TableBuilder& table, const JobRecord& record) {
  const std::vector<Segment>& segments = table.schedule.choices[record.stage].budget.segments;
  if (record.actual_start == kNever) return;
  ASSERT_EQ(record.segment_count, segments.size());
  EXPECT_EQ(record.segments[0].start, record.actual_start);
  std::int64_t last = record.nominal_start;
  bool over = false;
  bool overran = false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const SegmentRecord& segment = record.segments[i];
    if (segment.start == kNever) {
      EXPECT_EQ(segment.end, kNever);
      over = true;
      continue;
    }
    EXPECT_FALSE(over) << "a segment behind one that did not begin";
    EXPECT_GE(segment.start, last);
    EXPECT_GE(segment.end, segment.start);
    last = segment.end;
    overran = overran || segment.end - segment.start > segments[i].time.ns;
    for (const Slot& slot : table.schedule.slots) {
      if (slot.stage != record.stage || slot.segment != i || slot.job != table.schedule.slots[record.slot].job)
        continue;
      EXPECT_GE(segment.start, table.schedule.clock.start_at(record.hyperperiod, slot.start).ns);
    }
  }
  EXPECT_EQ(record.completion, last);
  EXPECT_EQ(overran || (record.flags & kFlagAborted) != 0, (record.flags & kFlagOverrun) != 0);
  EXPECT_TRUE(!over || record.published == 0);
  EXPECT_EQ(record.published == 0, (record.flags & kFlagDiscarded) != 0);
}

// What a run is to bring about may be kept from it by a machine that stands still: then another one.
template <class Run>
void until(Run run) {
  for (int tries = 0; tries < 20; ++tries) {
    bool happened = false;
    run(happened);
    if (happened || testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "it did not happen in 20 runs";
}

std::vector<std::uint64_t> values(const Records& records, std::uint32_t stage) {
  std::map<std::uint64_t, std::uint64_t> by_job;
  for (const JobRecord& record : records.of_stage(stage)) by_job[record.job] = record.output.low;
  std::vector<std::uint64_t> out;
  for (const auto& [job, value] : by_job) out.push_back(value);
  return out;
}

TEST(Segments, InVirtualTimeEachHasItsSlotAndItsBudget) {
  World world;
  Records records;
  const auto result = test::run(world.table, world.hosts(), lockstep(5), records);
  ASSERT_TRUE(result) << result.error().message;
  for (const std::uint32_t stage : {world.camera, world.lidar}) {
    test::expect_each_job_once(world.table, stage, 5, records.of_stage(stage));
    for (const JobRecord& record : records.of_stage(stage)) {
      expect_consistent(world.table, record);
      EXPECT_EQ(record.job_class, JobClass::kOk);
      EXPECT_EQ(record.publication, record.slot_end);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(record.segments[i].end - record.segments[i].start,
                  world.table.schedule.choices[stage].budget.segments[i].time.ns);
      }
    }
  }
  const std::int64_t begin = 3 * world.table.problem.hyperperiod.ns;
  const JobRecord third = records.of_stage(world.camera)[3];
  EXPECT_EQ(third.segments[1].start, begin + milliseconds(2).ns);
  EXPECT_EQ(third.segments[2].start, begin + milliseconds(8).ns);
  EXPECT_EQ(third.completion, begin + milliseconds(9).ns);
  for (const char* step : {"run 0", "begin 1", "ended 1", "run 2", "publish 2"}) {
    EXPECT_GE(world.story.at(std::string("camera#3 ") + step), 0) << step;
  }
  EXPECT_LT(world.story.at("camera#3 run 0"), world.story.at("camera#3 begin 1"));
  EXPECT_LT(world.story.at("camera#3 ended 1"), world.story.at("camera#3 run 2"));
  EXPECT_LT(world.story.at("camera#3 publish 2"), world.story.at("lidar#3 begin 1"));
  EXPECT_EQ(world.beside_host.publications, 5);
}

TEST(Segments, NeitherTheMachineNorTheSizeOfAGangDecidesTheBytes) {
  std::vector<std::uint64_t> expected;
  for (const int cores : {1, 2}) {
    World world(cores);
    Records records;
    ASSERT_TRUE(test::run(world.table, world.hosts(), lockstep(6), records));
    if (cores == 1) expected = values(records, world.lidar);
    EXPECT_EQ(values(records, world.lidar), expected);
    World real(cores);
    Records real_records;
    ASSERT_TRUE(test::run(real.table, real.hosts(), real_time(6), real_records));
    for (const JobRecord& record : real_records.of_stage(real.lidar)) {
      if (record.published != 0) {
        EXPECT_EQ(record.output.low, expected[record.job]) << cores;
      }
    }
  }
}

TEST(Segments, OnTheRealClockJobsAreConsistentAndTheCoreIsOthersMeanwhile) {
  for (const int cores : {1, 2}) {
    until([cores](bool& happened) {
      World world(cores);
      Records records;
      std::atomic<bool> beside{false};
      world.beside_host.work = [&](const Job&, int) { beside = UnitHost::at_work.load() != nullptr || beside; };
      world.camera_host.unit_time = [](const Job&) { return milliseconds(4); };
      const auto result = test::run(world.table, world.hosts(), real_time(12), records);
      ASSERT_TRUE(result) << result.error().message;
      for (const std::uint32_t stage : {world.camera, world.lidar}) {
        test::expect_each_job_once(world.table, stage, 12, records.of_stage(stage));
        for (const JobRecord& record : records.of_stage(stage)) {
          expect_consistent(world.table, record);
          if (record.published != 0) {
            EXPECT_GE(record.publication, record.slot_end - milliseconds(1).ns);
          }
          if (record.actual_start != kNever) {
            EXPECT_GT(record.cpu_ns, 0);
          }
        }
      }
      for (UnitHost* const host : {&world.camera_host, &world.lidar_host}) {
        EXPECT_EQ(host->latches, host->finishes);
        EXPECT_EQ(host->publications + host->discards, host->finishes);
      }
      // Something ran on the core while the unit worked.
      happened = beside && world.camera_host.publications > 0 && world.lidar_host.publications > 0;
    });
  }
}

// Who was released late keeps its core for as much longer, but not beyond the start of a gang's later segment, on
// either of its cores: only the last one's dispatcher begins that.
TEST(Segments, WhoWasReleasedLateYieldsToALaterSegmentOfAGang) {
  until([](bool& happened) {
    UnitHost::at_work = nullptr;
    Story story;
    TableBuilder table(milliseconds(200), 2);
    const std::uint32_t gpu = table.unit("gpu");
    const std::uint32_t gang =
        table.stage("gang", 1, {on_cores(milliseconds(2)), on(gpu, milliseconds(10)), on_cores(milliseconds(20))}, 2);
    const std::uint32_t late = table.stage("late", 1, milliseconds(50));
    table.slot_of(gang, 0, 0, {0, 1}, 0, 4);
    table.slot_of(gang, 0, 1, {}, 6, 20);
    table.slot_of(gang, 0, 2, {0, 1}, 80, 105);
    table.slot(late, 0, {0}, 10, 70);
    UnitHost gang_host{"gang", story};
    FakeHost late_host;
    std::atomic<bool> computes{false}, meanwhile{false};
    late_host.refuse = [](const Job&) {
      spin(milliseconds(65));  // in the dispatcher's thread: its core stands still
      return false;
    };
    late_host.work = [&](const Job&, int) {
      computes = true;
      spin(milliseconds(40));
      computes = false;
    };
    gang_host.work = [&](const Job& job, int part) {
      if (job.segment == 2 && part == 0) meanwhile = meanwhile || computes;
    };
    Records records;
    const auto result = test::run(table, {&gang_host, &late_host}, real_time(2), records);
    ASSERT_TRUE(result) << result.error().message;
    happened = meanwhile;
  });
}

// A job of the camera stays on the unit until others have been refused.
TEST(Segments, AUnitThatOverrunsKeepsWhatItHasAndTheNextSubmissionIsDropped) {
  World world;
  world.table.problem.mutexes = {{"scratch"}};
  const auto sharer = world.table.stage("sharer", 1, milliseconds(1));
  world.table.slot(sharer, 0, {1}, 30, 33);
  for (const std::uint32_t stage : {world.camera, sharer}) {
    world.table.problem.stages[stage].variants = {
        {.name = "full", .budgets = {}, .resident = 0, .arena = 4096, .arena_mutex = 0}};
  }
  Records records;
  const auto refused = [&](std::uint32_t stage, Reason reason) {
    int out = 0;
    for (const JobRecord& record : records.of_stage(stage)) out += record.reason == reason ? 1 : 0;
    return out;
  };
  Victim victim;
  world.camera_host.holds = [&](const Job& job) {
    return victim.is(job) && (refused(world.lidar, Reason::kUnit) < 2 || refused(sharer, Reason::kArena) < 2);
  };
  std::atomic<bool> stop{false};
  world.camera_host.work = [&](const Job& job, int) {
    if (victim.number != 0 && job.number > victim.number && job.segment == 2) stop = true;
  };
  FakeHost sharer_host;
  DispatchOptions options = real_time(2000);
  options.stop = &stop;
  const auto result = test::run(world.table, {&world.camera_host, &world.lidar_host, &world.beside_host, &sharer_host},
                                options, records);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_TRUE(stop) << "the stage did not recover";
  int skipped = 0;
  for (const JobRecord& record : records.of_stage(world.camera)) {
    expect_consistent(world.table, record);
    skipped += record.reason == Reason::kPreviousRunning ? 1 : 0;
    if (record.job != victim.number) continue;
    EXPECT_NE(record.flags & kFlagOverrun, 0U);
    EXPECT_NE(record.flags & kFlagDiscarded, 0U);
    EXPECT_EQ(record.segments[2].start, kNever);
    EXPECT_EQ(record.segments[1].end, record.completion);
    EXPECT_GT(record.completion, record.slot_end);
  }
  EXPECT_GE(skipped, 1);
  // Its chunk was let go only when the unit had ended, and its later segment never ran.
  EXPECT_LT(world.story.at(victim.name("camera") + " ended 1"), world.story.at(victim.name("camera") + " discard 1"));
  EXPECT_EQ(world.story.at(victim.name("camera") + " run 2"), -1);
  EXPECT_GE(refused(world.lidar, Reason::kUnit), 2);
  for (const JobRecord& record : records.of_stage(world.lidar)) {
    expect_consistent(world.table, record);
    if (record.reason != Reason::kUnit) continue;
    EXPECT_NE(record.actual_start, kNever);
    EXPECT_NE(record.segments[0].end, kNever);
    EXPECT_EQ(record.segments[1].start, kNever);
    EXPECT_EQ(record.published, 0);
    EXPECT_TRUE(record.job_class == JobClass::kLate || record.job_class == JobClass::kLateStart ||
                record.job_class == JobClass::kOverrun);
    EXPECT_EQ(world.story.at("lidar#" + std::to_string(record.job) + " begin 1"), -1);
  }
  EXPECT_GE(refused(sharer, Reason::kArena), 2);
  EXPECT_EQ(world.camera_host.latches, world.camera_host.finishes);
}

// Work that ends within the guard behind its slot is late for its own job, and for nobody else.
TEST(Segments, TheGuardCoversWhatWasSubmitted) {
  until([](bool& happened) {
    World world(1, milliseconds(7));  // the camera's slot ends at 7 ms, lidar's begins at 15 ms
    world.camera_host.unit_time = [](const Job& job) {
      return job.number % 3 == 1 ? milliseconds(8) : milliseconds(1);
    };
    Records records;
    ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(15), records));
    std::map<std::uint64_t, JobRecord> camera;
    int within = 0;
    for (const JobRecord& record : records.of_stage(world.camera)) {
      expect_consistent(world.table, record);
      camera[record.job] = record;
    }
    for (const JobRecord& record : records.of_stage(world.lidar)) {
      const JobRecord& before = camera.at(record.job);
      if (before.segments[1].start == kNever || before.segments[0].start == kNever) continue;
      const std::int64_t begins = world.table.schedule.clock.start_at(record.hyperperiod, 15'000).ns;
      if (before.segments[1].end < begins - milliseconds(2).ns && (before.flags & kFlagOverrun) != 0) {
        ++within;
        EXPECT_EQ(before.published, 0);
        // Unless the machine kept the dispatcher from looking in time.
        if (record.job_class == JobClass::kOk) {
          EXPECT_EQ(record.published, 1);
        }
      }
      if (record.reason == Reason::kUnit) {
        EXPECT_GT(before.segments[1].end, begins - milliseconds(8).ns) << record.job;
      }
    }
    happened = within > 0 && world.lidar_host.publications > 5;
  });
}

// Where the slot of one job on a unit ends, that of another begins, released by another core.
TEST(Segments, AUnitIsHandedOverAtAnInstant) {
  until([](bool& happened) {
    UnitHost::at_work = nullptr;
    TableBuilder table(milliseconds(20), 2);
    const std::uint32_t gpu = table.unit("gpu");
    const std::vector<Segment> segments{on_cores(milliseconds(1)), on(gpu, milliseconds(3)), on_cores(milliseconds(1))};
    const auto first = table.stage("first", 1, segments), second = table.stage("second", 1, segments);
    table.slot_of(second, 0, 0, {0}, 0, 2);
    table.slot_of(first, 0, 0, {1}, 0, 2);
    table.slot_of(first, 0, 1, {}, 2, 6);
    table.slot_of(second, 0, 1, {}, 6, 10);
    table.slot_of(first, 0, 2, {1}, 6, 9);
    table.slot_of(second, 0, 2, {0}, 10, 13);
    Story story;
    UnitHost first_host("first", story), second_host("second", story);
    first_host.unit_time = second_host.unit_time = [](const Job&) { return microseconds(500); };
    Records records;
    ASSERT_TRUE(test::run(table, {&first_host, &second_host}, real_time(60), records));
    std::set<std::uint64_t> in_time;
    for (const JobRecord& record : records.of_stage(first)) {
      expect_consistent(table, record);
      if (record.job_class == JobClass::kOk) in_time.insert(record.job);
    }
    int handed_over = 0, dropped = 0;
    for (const JobRecord& record : records.of_stage(second)) {
      expect_consistent(table, record);
      if (!in_time.contains(record.job)) continue;
      (record.reason == Reason::kUnit ? dropped : handed_over) += 1;
    }
    // A dispatcher that the machine kept away for longer than w has not looked in time.
    happened = handed_over > 0 && dropped <= handed_over / 4;
  });
}

// A submission that is not over when the unit's slot begins: nothing is begun.
TEST(Segments, ASubmissionThatOverrunsNeverReachesTheUnit) {
  for (const int cores : {1, 2}) {
    until([cores](bool& happened) {
      World world(cores);
      world.lidar_host.work = [&](const Job& job, int part) {
        if (job.number % 4 == 1 && job.segment == 0 && part == 0) spin(milliseconds(6));
      };
      Records records;
      ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(12), records));
      int given_up = 0;
      for (const JobRecord& record : records.of_stage(world.lidar)) {
        expect_consistent(world.table, record);
        if (record.job % 4 != 1 || record.actual_start == kNever) continue;
        ++given_up;
        EXPECT_NE(record.flags & kFlagOverrun, 0U);
        EXPECT_EQ(record.published, 0);
        EXPECT_EQ(world.story.at("lidar#" + std::to_string(record.job) + " begin 1"), -1);
      }
      EXPECT_EQ(world.lidar_host.latches, world.lidar_host.finishes);
      happened = given_up > 0 && world.lidar_host.publications > 0;
    });
  }
}

TEST(Segments, AbortGivesUpASegmentAndWithItTheJob) {
  until([](bool& happened) {
    World world;
    world.table.problem.stages[world.lidar].overrun = OverrunPolicy::kAbort;
    world.lidar_host.work = [&](const Job& job, int) {
      if (job.number % 4 == 1 && job.segment == 0) spin(milliseconds(2));
      if (job.number % 4 == 3 && job.segment == 2) spin(milliseconds(2));
    };
    Records records;
    ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(8), records));
    int aborted = 0;
    for (const JobRecord& record : records.of_stage(world.lidar)) {
      expect_consistent(world.table, record);
      if ((record.flags & kFlagAborted) == 0) continue;
      ++aborted;
      EXPECT_EQ(record.published, 0);
      // Boundaries are counted through the whole job: two in each segment.
      EXPECT_EQ(record.segments[1].start != kNever, record.aborted_at >= 2) << record.aborted_at;
      if (record.aborted_at < 2) {
        EXPECT_EQ(world.story.at("lidar#" + std::to_string(record.job) + " begin 1"), -1);
      }
    }
    happened = aborted > 0;
  });
}

TEST(Segments, AMutexOfASegmentKeepsOthersOutForAsLong) {
  World world;
  world.table.problem.mutexes = {{"bus"}};
  world.table.schedule.choices[world.camera].budget.segments[1].mutexes = {0};
  std::vector<Segment> alone{on_cores(milliseconds(1))};
  alone[0].mutexes = {0};
  const auto rider = world.table.stage("rider", 1, alone);
  world.table.slot(rider, 0, {1}, 30, 33);
  FakeHost rider_host;
  Records records;
  const auto refused = [&] {
    int out = 0;
    for (const JobRecord& record : records.of_stage(rider)) out += record.reason == Reason::kArena ? 1 : 0;
    return out;
  };
  Victim victim;
  world.camera_host.holds = [&](const Job& job) { return victim.is(job) && refused() < 2; };
  std::atomic<bool> stop{false};
  rider_host.work = [&](const Job&, int) { stop = refused() >= 2; };
  DispatchOptions options = real_time(2000);
  options.stop = &stop;
  ASSERT_TRUE(test::run(world.table, {&world.camera_host, &world.lidar_host, &world.beside_host, &rider_host}, options,
                        records));
  EXPECT_TRUE(stop) << "the mutex was not given back";
  for (const JobRecord& record : records.of_stage(rider)) {
    if (record.reason == Reason::kArena) {
      EXPECT_EQ(record.job_class, JobClass::kSkipped);
    }
  }
}

// The last segment lies behind the end of the hyperperiod in which its job began.
TEST(Segments, AJobGoesOnInTheNextHyperperiod) {
  for (const bool virtual_time : {true, false}) {
    until([virtual_time](bool& happened) {
      UnitHost::at_work = nullptr;
      TableBuilder table(milliseconds(20), 1);
      const std::uint32_t gpu = table.unit("gpu");
      const auto stage =
          table.stage("stage", 1, {on_cores(milliseconds(1)), on(gpu, milliseconds(3)), on_cores(milliseconds(1))});
      table.slot_of(stage, 0, 0, {0}, 10, 12);
      table.slot_of(stage, 0, 1, {}, 17, 21);
      table.slot_of(stage, 0, 2, {0}, 23, 26);
      Story story;
      UnitHost host("stage", story);
      host.unit_time = [](const Job&) { return milliseconds(1); };
      Records records;
      ASSERT_TRUE(test::run(table, {&host}, virtual_time ? lockstep(6) : real_time(6), records));
      test::expect_each_job_once(table, stage, 6, records.of_stage(stage));
      for (const JobRecord& record : records.of_stage(stage)) expect_consistent(table, record);
      happened = host.publications > 0;
      EXPECT_TRUE(!virtual_time || host.publications == 6);
    });
  }
}

// From a mode with the unit into one without it and back: what was begun before a change ends in its slots.
TEST(Segments, ModesMayHaveOtherSegments) {
  for (const bool virtual_time : {true, false}) {
    UnitHost::at_work = nullptr;
    TableBuilder table(milliseconds(20), 1);
    const std::uint32_t gpu = table.unit("gpu");
    const auto stage =
        table.stage("stage", 1, {on_cores(milliseconds(1)), on(gpu, milliseconds(3)), on_cores(milliseconds(1))});
    table.slot_of(stage, 0, 0, {0}, 10, 12);
    table.slot_of(stage, 0, 1, {}, 13, 17);
    table.slot_of(stage, 0, 2, {0}, 18, 21);
    std::vector<ModeTable> modes(2, only_table(table.problem, table.schedule));
    modes[0].name = "with";
    modes[1].name = "without";
    modes[0].exits = {1};
    modes[1].exits = {0};
    Choice& choice = modes[1].schedule.choices[stage];
    choice.budget.segments.clear();
    modes[1].schedule.slots = {{.stage = stage, .job = 0, .cores = {0}, .start = 8'000, .end = 16'000}};
    ModeControl control(modes);
    control.ask_at(1, {milliseconds(50).ns});
    control.ask_at(0, {milliseconds(110).ns});
    Story story;
    UnitHost host("stage", story);
    host.unit_time = [](const Job&) { return milliseconds(1); };
    Records records;
    DispatchOptions options = virtual_time ? lockstep(10) : real_time(10);
    options.modes = &control;
    const auto result =
        dispatch(table.problem, modes, {&host}, options, [&](std::size_t, const JobRecord& r) { records(r); });
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->changes.size(), 2U);
    ASSERT_EQ(records.of_stage(stage).size(), 10U);
    std::set<std::uint64_t> jobs;
    for (const JobRecord& record : records.of_stage(stage)) {
      EXPECT_TRUE(jobs.insert(record.job).second);
      if (record.actual_start == kNever) continue;
      EXPECT_EQ(record.segment_count, record.mode == 0 ? 3 : 0);
      if (virtual_time) {
        EXPECT_EQ(record.published, 1) << record.job;
      }
    }
    EXPECT_EQ(host.latches, host.finishes);
  }
}

TEST(Segments, AUnitThatNeverEndsLeavesItsStageStuckAndTheRunEnds) {
  for (const bool virtual_time : {true, false}) {
    World world;
    Victim victim;
    world.camera_host.holds = [&](const Job& job) { return victim.is(job); };
    world.camera_host.ends_by_being_stuck = true;
    DispatchOptions options = virtual_time ? lockstep(6) : real_time(6);
    options.wait_for_late = options.wait_for_job = seconds(1);
    Records records;
    const auto result = test::run(world.table, world.hosts(), options, records);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->stuck, std::vector<std::uint32_t>{world.camera});
    const auto camera = records.of_stage(world.camera);
    test::expect_each_job_once(world.table, world.camera, 6, camera);
    for (const JobRecord& record : camera) {
      EXPECT_EQ((record.flags & kFlagStuck) != 0, record.job == victim.number);
      if (record.job > victim.number) {
        EXPECT_EQ(record.reason, Reason::kPreviousRunning);
      }
    }
    for (const JobRecord& record : records.of_stage(world.lidar)) {
      if (record.job >= victim.number) {
        EXPECT_EQ(record.published, 0) << record.job;
      }
    }
    EXPECT_EQ(world.camera_host.latches, world.camera_host.finishes);
  }
}

TEST(Segments, ARunWithOverrunsOfUnitsGivesItsBytesAgain) {
  until([](bool& happened) {
    const auto wild = [](std::uint64_t every, Duration time) {
      return [every, time](const Job& job) { return job.number % every == 1 ? time : microseconds(500); };
    };
    World world(2);
    world.camera_host.unit_time = wild(3, milliseconds(20));  // into the lidar's slot
    world.lidar_host.unit_time = wild(4, milliseconds(6));    // into its own completion
    world.table.problem.stages[world.lidar].overrun = OverrunPolicy::kSkipNext;
    Records records;
    ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(24), records));
    std::map<std::pair<std::uint32_t, std::uint64_t>, JobRecord> seen;
    std::set<Reason> reasons;
    for (const JobRecord& record : records.all()) {
      seen[{record.stage, record.job}] = record;
      reasons.insert(record.reason);
    }
    happened = reasons.contains(Reason::kUnit);
    World again(2);
    again.table.problem.stages[again.lidar].overrun = OverrunPolicy::kSkipNext;
    Records repeated;
    DispatchOptions options = lockstep(24);
    options.reproduce = [&seen](std::uint32_t stage, std::uint64_t job) -> const JobRecord* {
      const auto found = seen.find({stage, job});
      return found == seen.end() ? nullptr : &found->second;
    };
    ASSERT_TRUE(test::run(again.table, again.hosts(), options, repeated));
    ASSERT_EQ(repeated.all().size(), records.all().size());
    for (const JobRecord& record : repeated.all()) {
      const JobRecord& before = seen.at({record.stage, record.job});
      const auto which = testing::Message() << record.stage << ' ' << record.job;
      EXPECT_EQ(record.output.low, before.output.low) << which;
      EXPECT_EQ(record.published, before.published) << which;
      EXPECT_EQ(record.job_class, before.job_class) << which;
      EXPECT_EQ(record.reason, before.reason) << which;
      EXPECT_EQ(record.flags, before.flags) << which;
      EXPECT_EQ(record.completion, before.completion) << which;
      for (std::size_t i = 0; i < record.segment_count; ++i) {
        EXPECT_EQ(record.segments[i].start, before.segments[i].start) << which;
        EXPECT_EQ(record.segments[i].end, before.segments[i].end) << which;
      }
    }
  });
}

TEST(Segments, AVariantToDegradeToRunsInTheSameSegmentsOrNotAtAll) {
  for (const bool same : {true, false}) {
    until([same](bool& happened) {
      World world;
      Stage& stage = world.table.problem.stages[world.lidar];
      stage.overrun = OverrunPolicy::kDegrade;
      const Budget full = world.table.schedule.choices[world.lidar].budget;
      Budget lite = full;
      if (!same) lite.segments.clear();
      stage.variants = {{.name = "full", .budgets = {full}}, {.name = "lite", .budgets = {lite}}};
      stage.degraded_variant = "lite";
      world.lidar_host.unit_time = [](const Job& job) {
        return job.number % 3 == 1 ? milliseconds(6) : microseconds(500);
      };
      Records records;
      ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(8), records));
      bool overran = false, degraded = false;
      for (const JobRecord& record : records.of_stage(world.lidar)) {
        expect_consistent(world.table, record);
        if (record.actual_start == kNever) continue;
        EXPECT_EQ(record.variant, same && overran ? 1U : 0U) << record.job;
        overran = overran || (record.flags & kFlagOverrun) != 0;
        degraded = degraded || record.variant == 1;
      }
      EXPECT_TRUE(same || !degraded);
      happened = same ? degraded : overran;
    });
  }
}

TEST(Segments, TablesThatTheValidatorWouldRefuseAreRefused) {
  const auto refused = [](const std::function<void(TableBuilder&)>& spoil) {
    World world;
    spoil(world.table);
    Records records;
    const auto result = test::run(world.table, world.hosts(), lockstep(1), records);
    return !result && result.error().code == Code::kInternal && records.count == 0;
  };
  EXPECT_FALSE(refused([](TableBuilder&) {}));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots.erase(t.schedule.slots.begin() + 1); }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots.erase(t.schedule.slots.begin()); }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[1].unit = 7; }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[1].cores = {0}; }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[1].unit.reset(); }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[1].segment = 2; }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[1].start = 1'000; }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.slots[3].cores = {1}; }));
  EXPECT_TRUE(refused([](TableBuilder& t) { t.schedule.choices[0].budget.segments.pop_back(); }));
  // More than a record has room for.
  EXPECT_TRUE(refused([](TableBuilder& t) {
    std::vector<Segment>& segments = t.schedule.choices[0].budget.segments;
    const Slot last = t.schedule.slots[2];
    while (segments.size() <= kMostSegments) {
      Slot& more = t.schedule.slots.emplace_back(last);
      more.segment = static_cast<std::uint32_t>(segments.size());
      more.start = last.end + 10 * static_cast<Tick>(segments.size());
      more.end = more.start + 5;
      segments.push_back(segments.back());
    }
  }));
}

}  // namespace
}  // namespace takt::sched
