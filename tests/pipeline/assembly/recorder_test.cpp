// Records and the chunks that they are about, over the local transport.
#include "pipeline/assembly/recorder.h"

#include <gtest/gtest.h>

#include <vector>

#include "pipeline/messages/messages.h"

namespace takt::pipeline {
namespace {

// A mode gives a stage another home: its records lie in the rings of two cores, whichever is looked at first.
TEST(Recorder, FindsTheOutputsOfAStageThatMoves) {
  transport::TransportSpec spec;
  spec.backend = transport::Backend::kLocal;
  spec.topics.push_back({"/stage/a", 0, sizeof(ObjectList), 1, {{"recorder", 16, 2}}});
  const auto transport = *transport::make_transport(spec);
  const auto publisher = *transport->publisher("/stage/a");
  std::vector<std::unique_ptr<transport::Subscriber>> outputs;
  outputs.push_back(*transport->subscriber("/stage/a", "recorder"));
  Recorder recorder(2, std::move(outputs), false);
  std::vector<std::uint64_t> told;
  recorder.on_record = [&told](const sched::JobRecord& record) { told.push_back(record.job); };
  constexpr std::size_t kHomes[] = {0, 1, 1, 0, 0, 1, 0};
  for (std::uint64_t job = 0; job < std::size(kHomes); ++job) {
    const auto loan = publisher->loan();
    ASSERT_TRUE(loan);
    loan.header->job = job;
    loan.header->schema = kObjectListSchema;
    loan.header->payload_bytes = 16;
    publisher->publish(loan);
    sched::JobRecord record;
    record.job = job;
    record.slot_end = static_cast<std::int64_t>(100 * job);
    record.published = 1;
    recorder.push(kHomes[job], record);
  }
  recorder.start();
  recorder.stop();
  EXPECT_EQ(recorder.lost_outputs(), 0U);
  EXPECT_EQ(recorder.objects().size(), std::size(kHomes));
  EXPECT_EQ(told, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  for (const sched::JobRecord& record : recorder.records()) EXPECT_NE(record.output, Digest{}) << record.job;
}

}  // namespace
}  // namespace takt::pipeline
