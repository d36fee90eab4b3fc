// The board bundle: read back it is the same; whatever is changed in it is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "pipeline/bundle/bundle.h"
#include "pipeline/bundle/format.h"
#include "runtime/plan/crc32c.h"
#include "scheduler/model/modes.h"
#include "tests/pipeline/bundle/sample_bundles.h"

namespace takt::pipeline {
namespace {

using testing::HasSubstr;

std::vector<std::byte> written(const Bundle& bundle) {
  const auto bytes = write_bundle(bundle);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes.value_or(std::vector<std::byte>{});
}

TEST(Bundle, IsReadBackAsItWasWritten) {
  const Bundle bundle = test::sample_bundle();
  const std::vector<std::byte> bytes = written(bundle);
  const Result<Bundle> again = read_bundle(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(written(*again), bytes);
  ASSERT_EQ(again->modes.size(), 3u);
  for (std::size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(again->modes[m].schedule.hash(), bundle.modes[m].schedule.hash());
    EXPECT_EQ(sched::digest_of(again->modes[m].problem), sched::digest_of(bundle.modes[m].problem));
    EXPECT_EQ(again->modes[m].schedule.bounds[0].terms, bundle.modes[m].schedule.bounds[0].terms);
  }
  EXPECT_EQ(again->stages[1].variants.size(), 2u);
  EXPECT_EQ(again->stages[0].params.items[0].text, "0.25");
  EXPECT_EQ(again->changes[1].drain, milliseconds(100));
  EXPECT_EQ(again->arenas.block_bytes, bundle.arenas.block_bytes);
}

// Whatever drain a set of modes may declare.
TEST(Bundle, TakesTheLongestDrain) {
  Bundle bundle = test::sample_bundle();
  bundle.changes[0].drain = sched::kLongestDrain;
  EXPECT_TRUE(check_bundle(bundle)) << check_bundle(bundle).error().message;
}

TEST(Bundle, EveryDamagedByteIsFound) {
  const std::vector<std::byte> good = written(test::sample_bundle());
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::byte> bad = good;
    bad[random() % bad.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    const Result<Bundle> read = read_bundle(bad);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kInput);
    EXPECT_THAT(read.error().message, HasSubstr("bundle: "));
  }
  for (std::size_t size = 0; size < good.size(); size += 37) {
    EXPECT_FALSE(read_bundle(std::span(good).first(size))) << size;
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_THAT(read_bundle(longer).error().message, HasSubstr("are stated (byte 16)"));
}

// A bundle whose checksums are right and whose content is not.
TEST(Bundle, WhatIsWrongIsNamed) {
  const Bundle good = test::sample_bundle();
  ASSERT_TRUE(check_bundle(good)) << check_bundle(good).error().message;
  const auto message = [&](const std::function<void(Bundle&)>& change) {
    Bundle bad = good;
    change(bad);
    const Status status = check_bundle(bad);
    EXPECT_FALSE(write_bundle(bad));
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(message([](Bundle& b) { b.modes.clear(); }), HasSubstr("no mode"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].name = "full"; }), HasSubstr("two modes are called 'full'"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[0].schedule.slots[0].start += 5'000; }), HasSubstr("mode 'full': "));
  EXPECT_THAT(message([](Bundle& b) { b.modes[2].problem.hyperperiod += nanoseconds(1); }), HasSubstr("mode 'dark': "));
  EXPECT_THAT(message([](Bundle& b) { b.modes[0].schedule.choices[0].budget.time += milliseconds(1); }),
              HasSubstr("mode 'full': "));
  EXPECT_THAT(message([](Bundle& b) { b.modes[0].schedule.bindings[0].producer_job += 1; }),
              HasSubstr("mode 'full': "));
  EXPECT_THAT(message([](Bundle& b) { b.modes[0].problem.stages[0].name = "other"; }),
              HasSubstr("stage 'other' is missing"));
  EXPECT_THAT(message([](Bundle& b) { b.stages[1].variants.pop_back(); }),
              HasSubstr("variant 'lite' of stage 'lidar_detect' is missing"));
  EXPECT_THAT(message([](Bundle& b) { b.stages[3].inputs.pop_back(); }),
              HasSubstr("input 'tracks' of stage 'fusion' is missing"));
  EXPECT_THAT(message([](Bundle& b) { b.stages[0].type = "camera_classical"; }),
              HasSubstr("a sensor that the rig does not have"));
  EXPECT_THAT(message([](Bundle& b) { b.stages[0].variants[0].plan = 0; }), HasSubstr("it names a plan that is not there"));
  EXPECT_THAT(message([](Bundle& b) { b.stages[0].params.keys.pop_back(); }), HasSubstr("parameters of stage"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].dwell.ns = -1; }), HasSubstr("dwell is negative"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].lost = 3; }),
              HasSubstr("no change leads to its mode of a lost reference"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].lost = 1; }), HasSubstr("no change leads to its mode of a lost"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].lost = 2; }), HasSubstr("no change leads to its mode of a lost"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].problem.board.cores[1].cpu = 7; }), HasSubstr("different boards"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].problem.board.cores[1].name = "x"; }), HasSubstr("different boards"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].problem.board.units.push_back({"gpu"}); }),
              HasSubstr("different boards"));
  EXPECT_THAT(message([](Bundle& b) {
                const auto finer = [](sched::Tick& tick) { tick *= 2; };
                finer(b.modes[2].schedule.clock.ticks);
                finer(b.modes[2].problem.ticks);
                for (sched::Slot& slot : b.modes[2].schedule.slots) {
                  finer(slot.start);
                  finer(slot.end);
                }
              }),
              HasSubstr("modes 'full' and 'dark' have different ticks"));
  EXPECT_THAT(message([](Bundle& b) { b.modes[1].dwell = sched::kLongestDwell + nanoseconds(1); }),
              HasSubstr("longer than a mode may declare"));
  EXPECT_THAT(message([](Bundle& b) { b.changes[0].drain = sched::kLongestDrain + nanoseconds(1); }),
              HasSubstr("longer than a mode may declare"));
  EXPECT_THAT(message([](Bundle& b) { b.changes[1].to = 9; }), HasSubstr("not there"));
  EXPECT_THAT(message([](Bundle& b) { b.changes[1] = b.changes[0]; }), HasSubstr("declared twice"));
  EXPECT_THAT(message([](Bundle& b) { b.changes[0].drain.ns = -1; }), HasSubstr("drain"));
  EXPECT_THAT(message([](Bundle& b) { --b.pools.pools[0].chunks; }), HasSubstr("its topics take 33"));
  EXPECT_THAT(message([](Bundle& b) { b.pools.pools[0].topics.pop_back(); }), HasSubstr("in no pool"));
  EXPECT_THAT(message([](Bundle& b) { b.topics[0].payload_capacity = 5'000; }), HasSubstr("do not fit its pool"));
  EXPECT_THAT(message([](Bundle& b) { b.pools.user_bytes += 1; }), HasSubstr("do not add up"));
  EXPECT_THAT(message([](Bundle& b) { b.arenas.places[2].bytes -= 64; }), HasSubstr("too small or missing"));
  EXPECT_THAT(message([](Bundle& b) { b.arenas.places.pop_back(); }), HasSubstr("too small or missing"));
  EXPECT_THAT(message([](Bundle& b) { b.arenas.places[1].base += 1; }), HasSubstr("multiple of 64"));
  EXPECT_THAT(message([](Bundle& b) { b.arenas.block_bytes -= 64; }), HasSubstr("leaves the block"));
}

bool serialised(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes,
                const std::string& stage, const std::string& other) {
  return Serialisation(modes, changes).apart(stage, other);
}

// Arenas: what one core serialises in every mode shares bytes, nothing else does, and the reader sees for itself.
TEST(Bundle, ArenasShareOnlyWhereACoreSerialisesThem) {
  const Bundle bundle = test::sample_bundle();
  std::uint64_t sum = 0;
  int shared = 0;
  int apart = 0;
  for (const ArenaPlace& a : bundle.arenas.places) {
    sum += a.bytes;
    for (const ArenaPlace& b : bundle.arenas.places) {
      if (a.stage >= b.stage) continue;
      // Own look at the tables: a common core in every mode.
      bool common_everywhere = true;
      for (const BundleMode& mode : bundle.modes) {
        bool common = false;
        for (const sched::Slot& x : mode.schedule.slots) {
          for (const sched::Slot& y : mode.schedule.slots) {
            if (x.stage != a.stage || y.stage != b.stage) continue;
            for (const std::uint32_t core : x.cores) common |= std::count(y.cores.begin(), y.cores.end(), core) > 0;
          }
        }
        common_everywhere &= common;
      }
      const bool overlap = a.base < b.base + b.bytes && b.base < a.base + a.bytes;
      if (overlap) {
        EXPECT_TRUE(common_everywhere);
      }
      EXPECT_EQ(serialised(bundle.modes, bundle.changes, bundle.stages[a.stage].name, bundle.stages[b.stage].name),
                common_everywhere);
      (overlap ? shared : apart) += 1;
    }
  }
  EXPECT_GT(shared, 0);
  EXPECT_GT(apart, 0);
  EXPECT_LT(bundle.arenas.block_bytes, sum);
  Bundle all_shared = bundle;
  for (ArenaPlace& place : all_shared.arenas.places) place.base = 0;
  EXPECT_THAT(check_bundle(all_shared).error().message, HasSubstr("nothing keeps them apart in every mode"));
}

// One job on one core of two, [start, end) in ms of a hyperperiod of 100 ms.
BundleMode one_job(const std::string& mode, const std::string& stage, std::uint32_t core, std::int64_t start,
                   std::int64_t end) {
  BundleMode out;
  out.name = mode;
  out.problem.board = sched::test::two_cores();
  out.problem.hyperperiod = milliseconds(100);
  out.problem.mutexes = {{"other_" + mode}, {"shared"}};
  out.problem.stages = {sched::test::stage(stage, {1}, {sched::test::variant("a", milliseconds(end - start))})};
  out.schedule.clock = {milliseconds(100), 100'000};
  out.schedule.choices = {{1, 0, out.problem.stages[0].variants[0].budgets[0]}};
  out.schedule.slots = {{0, 0, {core}, start * 1'000, end * 1'000}};
  return out;
}

// A job that still runs when the next table begins may meet jobs of the next mode: neither has both stages.
TEST(Bundle, ArenasAreApartAcrossChanges) {
  const BundleMode a = one_job("one", "a", 0, 90, 130);
  const BundleMode beside = one_job("two", "b", 1, 10, 20);
  const std::vector<BundleChange> there{{0, 1, Duration{}}};
  const std::vector<BundleChange> back{{1, 0, Duration{}}};
  EXPECT_TRUE(serialised({a, beside}, {}, "a", "b"));
  EXPECT_FALSE(serialised({a, beside}, there, "a", "b"));
  EXPECT_FALSE(serialised({a, beside}, there, "b", "a"));
  EXPECT_TRUE(serialised({a, beside}, back, "a", "b"));  // b ends before a's first job
  EXPECT_TRUE(serialised({a, one_job("two", "b", 0, 40, 50)}, there, "a", "b"));
  // 30 ms run on; b begins at 10 ms, and the cores' clocks differ by 1 us.
  EXPECT_FALSE(serialised({a, beside}, {{0, 1, milliseconds(20)}}, "a", "b"));
  EXPECT_TRUE(serialised({a, beside}, {{0, 1, milliseconds(20) + microseconds(1)}}, "a", "b"));
  // A mutex of the same name, whatever its index; one of the same index and another name does not help.
  BundleMode with = a;
  BundleMode other = beside;
  with.problem.stages[0].variants[0].arena_mutex = other.problem.stages[0].variants[0].arena_mutex = 0;
  EXPECT_FALSE(serialised({with, other}, there, "a", "b"));
  with.problem.stages[0].variants[0].arena_mutex = 1;
  std::swap(other.problem.mutexes[0], other.problem.mutexes[1]);
  EXPECT_TRUE(serialised({with, other}, there, "a", "b"));

  std::vector<BundleStage> stages(2);
  stages[0].name = "a";
  stages[1].name = "b";
  EXPECT_EQ(place_arenas({a, beside}, back, stages, {640, 640}).block_bytes, 640u);
  EXPECT_EQ(place_arenas({a, beside}, there, stages, {640, 640}).block_bytes, 1280u);
}

// A tail of more than the next mode's hyperperiod could reach a third mode.
TEST(Bundle, ATailThatOutlivesAModeSharesWithNobody) {
  const BundleMode a = one_job("one", "a", 0, 90, 150);
  BundleMode next = one_job("two", "c", 1, 10, 20);
  const BundleMode third = one_job("three", "b", 1, 10, 20);
  const std::vector<BundleChange> changes{{0, 1, Duration{}}, {1, 2, Duration{}}};
  EXPECT_TRUE(serialised({a, next, third}, changes, "a", "b"));
  next.problem.hyperperiod = next.schedule.clock.hyperperiod = milliseconds(25);
  next.schedule.clock.ticks = 25'000;
  EXPECT_FALSE(serialised({a, next, third}, changes, "a", "b"));
}

TEST(Bundle, ResidentBytesAndTheBlockFitTheBoard) {
  Bundle bundle = test::sample_bundle();
  bundle.modes[1].problem.stages[1].variants[0].resident = 5'000'000;  // a variant that only this mode has
  const std::int64_t most = 25'000'000 + static_cast<std::int64_t>(bundle.arenas.block_bytes);
  const auto with = [&](std::int64_t memory) {
    for (BundleMode& mode : bundle.modes) mode.problem.board.memory = memory;
    return check_bundle(bundle);
  };
  EXPECT_TRUE(with(most)) << with(most).error().message;
  const Status refused = with(most - 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the arenas as placed take"));
  EXPECT_EQ(check_memory(bundle.modes, bundle.arenas).error().code, Code::kGate);
  // The same variant in two modes is kept once, at its largest.
  bundle.modes[2].problem.stages[0].variants[0].resident = 4'000'000;
  EXPECT_TRUE(with(most)) << with(most).error().message;
  bundle.modes[2].problem.stages[0].variants[0].resident = 6'000'000;
  EXPECT_FALSE(with(most));
}

// Of the variant that jobs degrade to as well: any job may run it.
TEST(Bundle, CountsTheVariantThatJobsDegradeTo) {
  Bundle bundle = test::sample_bundle();
  sched::Stage& stage = bundle.modes[0].problem.stages[0];
  std::size_t index = 0;
  while (bundle.stages[index].name != stage.name) ++index;
  const std::uint64_t before = arena_bytes(bundle, index);
  sched::Variant lesser = stage.variants[bundle.modes[0].schedule.choices[0].variant];
  lesser.name = "lesser";
  lesser.resident = 7'000'000;
  lesser.arena = static_cast<std::int64_t>(before) + 1;
  stage.variants.push_back(lesser);
  EXPECT_EQ(arena_bytes(bundle, index), before);
  // The board has room for what the chosen variants keep, and for nothing beside it.
  bundle.arenas.block_bytes = (std::uint64_t{1} << 40) - 20'000'000;
  for (BundleMode& mode : bundle.modes) mode.problem.board.memory = std::int64_t{1} << 40;
  EXPECT_TRUE(check_memory(bundle.modes, bundle.arenas));
  stage.overrun = sched::OverrunPolicy::kDegrade;
  stage.degraded_variant = "lesser";
  EXPECT_EQ(arena_bytes(bundle, index), before + 1);
  const Status refused = check_memory(bundle.modes, bundle.arenas);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("7.00 MB too much"));
}

// A job that waits for a unit leaves its cores to others: its arena is not serialised by them.
TEST(Bundle, AStageOnAUnitSharesWithNobody) {
  Bundle bundle = test::sample_bundle();
  const std::string name = bundle.stages[0].name;
  bool any = false;
  for (const BundleStage& other : bundle.stages)
    any |= other.name != name && serialised(bundle.modes, bundle.changes, name, other.name);
  ASSERT_TRUE(any);
  for (sched::Slot& slot : bundle.modes[1].schedule.slots) {
    if (slot.stage == 0) slot.segment = 1;
  }
  for (const BundleStage& other : bundle.stages) {
    if (other.name != name) {
      EXPECT_FALSE(serialised(bundle.modes, bundle.changes, name, other.name));
    }
  }
}

TEST(Bundle, FilesOfAnotherFormatSayWhatToDo) {
  const auto sign = [](std::vector<std::byte> bytes) {
    bundle::Head head{};
    std::memcpy(&head, bytes.data(), sizeof head);
    head.head_crc = plan::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(bundle::Head, head_crc)));
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
  };
  std::vector<std::byte> bytes = written(test::sample_bundle());
  bytes[8] = std::byte{9};
  EXPECT_THAT(read_bundle(sign(bytes)).error().message, HasSubstr("format 9"));
  EXPECT_THAT(read_bundle(sign(bytes)).error().message, HasSubstr("write it again with takt schedule --bundle"));
  bytes[0] = std::byte{'X'};
  EXPECT_THAT(read_bundle(bytes).error().message, HasSubstr("the file is none"));
  EXPECT_THAT(load_bundle("/nonexistent/x.bundle").error().message, HasSubstr("/nonexistent/x.bundle"));
}

}  // namespace
}  // namespace takt::pipeline
