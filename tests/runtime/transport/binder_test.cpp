#include "runtime/transport/binder.h"

#include <gtest/gtest.h>

#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

class JobBinding : public OnBothBackends {
 protected:
  void open(std::uint32_t queue, std::uint32_t hold, std::uint32_t held) {
    start({topic("/objects", 32, 1, {{"fusion/objects", queue, held}})});
    out = publisher("/objects");
    binder = std::make_unique<JobBinder>(subscriber("/objects", "fusion/objects"), hold, held);
    connect();
  }
  void expect(std::uint64_t asked, Selection selection, std::uint64_t job = 0) {
    const Selected selected = binder->select(asked);
    EXPECT_EQ(selected.selection, selection) << "asked for job " << asked;
    if (selection == Selection::kMissing) {
      EXPECT_FALSE(selected.chunk);
      return;
    }
    ASSERT_TRUE(selected.chunk);
    EXPECT_EQ(selected.chunk.header->job, job);
    EXPECT_TRUE(filled_with(selected.chunk, job));
  }

  std::unique_ptr<Publisher> out;
  std::unique_ptr<JobBinder> binder;
};
INSTANTIATE_TEST_SUITE_P(Backends, JobBinding, kBothBackends, backend_name);

TEST_P(JobBinding, TakesExactlyTheBoundJob) {
  open(6, 0, 4);
  for (std::uint64_t job = 0; job < 6; ++job) publish(*out, job);
  expect(1, Selection::kNew, 1);  // job 0 is released unread
  expect(4, Selection::kNew, 4);
  expect(5, Selection::kNew, 5);
  expect(6, Selection::kMissing);
}

TEST_P(JobBinding, TheLocationIsTheOneOfThePublication) {
  open(2, 0, 1);
  const ChunkLocation published = publish(*out, 3);
  EXPECT_EQ(binder->select(3).location, published);
}

TEST_P(JobBinding, OneProducerJobServesSeveralConsumerJobs) {
  open(4, 0, 2);
  publish(*out, 2);
  publish(*out, 3);
  expect(2, Selection::kNew, 2);
  expect(2, Selection::kNew, 2);
  expect(3, Selection::kNew, 3);
}

TEST_P(JobBinding, LaterJobsStayForLaterConsumers) {
  open(4, 0, 1);
  publish(*out, 0);
  publish(*out, 1);
  publish(*out, 2);
  expect(0, Selection::kNew, 0);
  expect(1, Selection::kNew, 1);
  expect(2, Selection::kNew, 2);
}

TEST_P(JobBinding, AMissingJobIsMissingAndTheNextOneIsNot) {
  open(4, 0, 2);
  publish(*out, 0);
  publish(*out, 2);  // job 1 was skipped by its stage
  expect(0, Selection::kNew, 0);
  expect(1, Selection::kMissing);
  expect(2, Selection::kNew, 2);
}

TEST_P(JobBinding, HoldBridgesSoManyBoundJobs) {
  open(4, 2, 3);
  publish(*out, 0);
  expect(0, Selection::kNew, 0);
  expect(1, Selection::kHeld, 0);
  expect(2, Selection::kHeld, 0);
  expect(3, Selection::kMissing);
  publish(*out, 4);
  expect(4, Selection::kNew, 4);
  expect(5, Selection::kHeld, 4);  // a hit starts the count anew
}

TEST_P(JobBinding, HoldCountsAProducerJobOnce) {
  open(4, 1, 2);
  publish(*out, 0);
  expect(0, Selection::kNew, 0);
  expect(1, Selection::kHeld, 0);
  expect(1, Selection::kHeld, 0);  // two consumer jobs bound to the same absent job
  expect(2, Selection::kMissing);
  expect(2, Selection::kMissing);
}

TEST_P(JobBinding, HoldUsesTheNewestOlderChunk) {
  open(4, 1, 2);
  for (const std::uint64_t job : {0u, 1u, 2u}) publish(*out, job);
  expect(3, Selection::kHeld, 2);
}

TEST_P(JobBinding, HoldNeedsSomethingToHold) {
  open(4, 3, 2);
  expect(0, Selection::kMissing);
  publish(*out, 1);
  expect(1, Selection::kNew, 1);
}

TEST_P(JobBinding, AHeldChunkDoesNotBlockTheNext) {
  open(2, 1, 2);
  publish(*out, 0);
  expect(0, Selection::kNew, 0);
  for (std::uint64_t job = 1; job < 50; ++job) {
    publish(*out, job);
    expect(job, Selection::kNew, job);
  }
  EXPECT_EQ(out->refused_loans(), 0u);
}

TEST_P(JobBinding, AChunkThatComesLateIsUsedByTheSecondAsker) {
  open(4, 0, 2);
  expect(7, Selection::kMissing);
  publish(*out, 7);
  expect(7, Selection::kNew, 7);
}

TEST_P(JobBinding, ReleaseAllGivesEverythingBack) {
  open(4, 0, 4);
  for (std::uint64_t job = 0; job < 4; ++job) publish(*out, job);
  expect(0, Selection::kNew, 0);
  binder->release_all();
  expect(3, Selection::kMissing);
  EXPECT_LE(transport->pool_use()[0].used, 1u);  // iceoryx keeps the last chunk
}

class SampleBinding : public OnBothBackends {
 protected:
  void open(std::uint32_t queue, std::uint32_t held) {
    start({topic("/camera", 32, 1, {{"detect/image", queue, held}})});
    out = publisher("/camera");
    binder = std::make_unique<SampleBinder>(subscriber("/camera", "detect/image"), held);
    connect();
  }
  void expect(std::int64_t latch_ns, Selection selection, std::uint64_t sample = 0) {
    const Selected selected = binder->select(SensorTime{latch_ns});
    EXPECT_EQ(selected.selection, selection) << "latched at " << latch_ns;
    if (selection == Selection::kMissing) {
      EXPECT_FALSE(selected.chunk);
      return;
    }
    ASSERT_TRUE(selected.chunk);
    EXPECT_EQ(selected.chunk.header->job, sample);
    EXPECT_TRUE(filled_with(selected.chunk, sample));
  }

  std::unique_ptr<Publisher> out;
  std::unique_ptr<SampleBinder> binder;
};
INSTANTIATE_TEST_SUITE_P(Backends, SampleBinding, kBothBackends, backend_name);

TEST_P(SampleBinding, TakesTheNewestThatHasArrived) {
  open(4, 2);
  publish(*out, 0, 100);
  publish(*out, 1, 200);
  publish(*out, 2, 300);
  expect(250, Selection::kNew, 1);
  EXPECT_EQ(binder->unused(), 1u);
  expect(300, Selection::kNew, 2);  // a tie counts as arrived
  EXPECT_EQ(binder->unused(), 1u);
}

TEST_P(SampleBinding, APhysicallyPresentLaterSampleStaysQueued) {
  open(4, 2);
  publish(*out, 0, 100);
  publish(*out, 1, 200);
  expect(99, Selection::kMissing);
  expect(199, Selection::kNew, 0);
  expect(200, Selection::kNew, 1);
}

TEST_P(SampleBinding, AUsedSampleIsARepeat) {
  open(4, 2);
  publish(*out, 0, 100);
  expect(100, Selection::kNew, 0);
  expect(150, Selection::kRepeat, 0);
  publish(*out, 1, 160);
  expect(159, Selection::kRepeat, 0);
  expect(160, Selection::kNew, 1);
  EXPECT_EQ(binder->unused(), 0u);
}

TEST_P(SampleBinding, OfEqualArrivalsTheLaterOneIsNewer) {
  open(4, 3);
  publish(*out, 0, 100);
  publish(*out, 1, 100);
  expect(100, Selection::kNew, 1);
  EXPECT_EQ(binder->unused(), 1u);
}

TEST_P(SampleBinding, NothingArrivedIsMissing) {
  open(4, 2);
  expect(1000, Selection::kMissing);
}

TEST_P(SampleBinding, ALongQueueIsDrainedWithTwoHeld) {
  open(10, 2);
  for (std::uint64_t sample = 0; sample < 10; ++sample) publish(*out, sample, static_cast<std::int64_t>(sample) * 10);
  expect(75, Selection::kNew, 7);
  EXPECT_EQ(binder->unused(), 7u);
  expect(85, Selection::kNew, 8);
  expect(1000, Selection::kNew, 9);
  expect(2000, Selection::kRepeat, 9);
}

// Swapped stamps: the sample that came out of order is never newer than one that was used.
TEST_P(SampleBinding, AnOlderStampAfterANewerOneIsReleasedUnused) {
  open(4, 3);
  publish(*out, 0, 200);
  expect(200, Selection::kNew, 0);
  publish(*out, 1, 100);
  expect(210, Selection::kRepeat, 0);
  EXPECT_EQ(binder->unused(), 1u);
}

TEST_P(SampleBinding, SelectionDoesNotDependOnHowFarTheFeederIsAhead) {
  // The same latches with a feeder that is one or many samples ahead.
  std::vector<std::vector<std::uint64_t>> chosen;
  for (const std::uint64_t ahead : {1u, 7u}) {
    open(8, 2);
    std::vector<std::uint64_t> jobs;
    std::uint64_t published = 0;
    for (std::int64_t latch = 0; latch <= 300; latch += 33) {
      // Everything up to the latch is there, and some more.
      while (published < 40 &&
             static_cast<std::int64_t>(published) * 10 <= latch + static_cast<std::int64_t>(ahead) * 10) {
        publish(*out, published, static_cast<std::int64_t>(published) * 10);
        ++published;
        if (published % 3 == 0) (void)binder->select(SensorTime{latch - 33});
      }
      const Selected selected = binder->select(SensorTime{latch});
      ASSERT_TRUE(selected.chunk);
      jobs.push_back(selected.chunk.header->job);
    }
    chosen.push_back(jobs);
    binder.reset();
    out.reset();
    transport.reset();
  }
  EXPECT_EQ(chosen[0], chosen[1]);
}

}  // namespace
}  // namespace takt::transport
